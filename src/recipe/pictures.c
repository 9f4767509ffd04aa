/* SPDX-License-Identifier: MIT
**
** pictures.c - lua/pictures for every Lua that opens moongrid, and for C.
*/
#include "moongrid_lua.h"

#include "recipe/bundle.h"
#include "recipe/entry.h"
#include "recipe/runtime.h"
#include "recipe/values.h"

#include <lualib.h>
#include <string.h>

/* The `require` of these files, which changes nothing of the host's. Upvalues: what was loaded, by name; the environment of
** the files. */
static int require(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (lua_getfield(L, lua_upvalueindex(1), name) != LUA_TNIL) return 1;
  const mgrid_chunk *c = mgrid_pictures;
  while (c->name && strcmp(c->name + strlen("moongrid."), name) != 0) c++;
  if (!c->name) return luaL_error(L, "no lua/%s.lua", name);
  if (mgrid_bundle_load(L, c)) return lua_error(L);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_setupvalue(L, -2, 1);
  lua_call(L, 0, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, lua_upvalueindex(1), name);
  return 1;
}

static const char *const kinds[] = { "text", "svg", "page" };

/* pictures.svg: load the functions, and return that one. Upvalue: the module */
static int load(lua_State *L) {
  lua_settop(L, 2);
  lua_newtable(L); /* what is loaded */
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_setfield(L, 3, "moongrid");
  lua_newtable(L); /* the environment: the globals, and this `require` */
  lua_newtable(L);
  lua_pushglobaltable(L);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, 4);
  lua_pushvalue(L, 3);
  lua_pushvalue(L, 4);
  lua_pushcclosure(L, require, 2);
  lua_pushvalue(L, -1);
  lua_setfield(L, 4, "require");
  lua_pushliteral(L, "pictures.init");
  lua_call(L, 1, 1);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    lua_getfield(L, 5, kinds[i]);
    lua_setfield(L, 1, kinds[i]);
  }
  lua_pushnil(L);
  lua_setmetatable(L, 1);
  lua_pushvalue(L, 2);
  lua_rawget(L, 1);
  return 1;
}

void mgrid_lua_open_pictures(lua_State *L) {
  lua_newtable(L);
  lua_newtable(L);
  lua_pushvalue(L, -3);
  lua_pushcclosure(L, load, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "pictures");
}

/* ------------------------------------------------------------------------- for C */

typedef struct request {
  const mgrid_plan *plan;
  const char       *how, *options;
  mgrid_sink        sink;
  void             *ud;
  bool              stopped; /* by the sink */
} request;

/* The sink of the picture. Upvalue: the request */
static int put(lua_State *L) {
  request    *r = lua_touserdata(L, lua_upvalueindex(1));
  size_t      len;
  const char *text = luaL_checklstring(L, 1, &len);
  r->stopped = r->sink(r->ud, text, len) != 0;
  return r->stopped ? luaL_error(L, "stopped") : 0;
}

/* Push the options, and for a page a table with the plan as its only frame. */
static void push_options(lua_State *L, const request *r) {
  mgrid_error  e = MGRID_ERROR_INIT;
  json_error_t why;
  json_t      *v = r->options ? mgrid_json_parse(r->options, strlen(r->options), 0, &why) : json_object();
  if (!json_is_object(v)) {
    json_decref(v);
    mgrid_fail(&e, MGRID_BAD_VALUE, "the options of a picture are a JSON object");
    mgrid_lua_raise_error(L, &e);
  }
  if (mgrid_take_json(L, v)) lua_error(L);
}

static int draw(lua_State *L) {
  request *r = lua_touserdata(L, 1);
  luaL_openlibs(L);
  luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
  lua_getfield(L, -1, "pictures");
  if (lua_getfield(L, -1, r->how) != LUA_TFUNCTION)
    return mgrid_lua_raise_as(L, MGRID_UNKNOWN_NAME, "a picture is text, svg or page, not '%s'", r->how);
  push_options(L, r);
  mgrid_lua_push_plan(L, r->plan);
  if (strcmp(r->how, "page") == 0) {
    lua_createtable(L, 1, 0);
    lua_insert(L, -2);
    lua_rawseti(L, -2, 1);
    lua_setfield(L, -2, "frames");
    if (lua_getfield(L, -1, "recipe") == LUA_TNIL) {
      lua_pushstring(L, r->plan->content.recipe);
      lua_setfield(L, -3, "recipe");
    }
    lua_pop(L, 1);
  } else {
    lua_insert(L, -2);
  }
  lua_pushlightuserdata(L, r);
  lua_pushcclosure(L, put, 1);
  lua_call(L, strcmp(r->how, "page") == 0 ? 2 : 3, 0);
  return 0;
}

static lua_State *new_state(void) {
#if LUA_VERSION_NUM >= 505
  return lua_newstate(mgrid_allocate, NULL, 0);
#else
  return lua_newstate(mgrid_allocate, NULL);
#endif
}

mgrid_status mgrid_script_draw(const mgrid_plan *p, const char *how, const char *options, mgrid_sink sink, void *ud,
                               mgrid_error *err) {
  request    r = { p, how, options, sink, ud, false };
  lua_State *L = new_state();
  if (!L) return mgrid_oom(err);
  lua_pushcfunction(L, draw);
  lua_pushlightuserdata(L, &r);
  int          raised = lua_pcall(L, 1, 0, 0);
  const char  *message = raised && raised != LUA_ERRMEM ? lua_tostring(L, -1) : NULL;
  mgrid_status s = MGRID_OK;
  if (raised && r.stopped)
    s = mgrid_unwritten(err);
  else if (raised && message)
    s = mgrid_fail(err, mgrid_lua_status(L, message) ? mgrid_lua_status(L, message) : MGRID_REFUSED, "%s", message);
  else if (raised)
    s = mgrid_oom(err);
  lua_close(L);
  return s;
}
