/* SPDX-License-Identifier: MIT
**
** pictures.c - runs lua/pictures for Lua programs that use moongrid, and for C.
*/
#include "moongrid_lua.h"

#include "recipe/bundle.h"
#include "recipe/entry.h"
#include "recipe/runtime.h"
#include "recipe/values.h"
#include "recipe/words/facts.h"

#include <string.h>

/* The `require` of the files in lua/pictures. It leaves the host's `package` as it is. Upvalues: a
** table with the results of loaded files, by name; the environment of the files */
static int require(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (lua_getfield(L, lua_upvalueindex(1), name) != LUA_TNIL) return 1;
  const mgrid_chunk *c = mgrid_bundle_find(mgrid_pictures, lua_pushfstring(L, "moongrid.%s", name));
  if (!c) return luaL_error(L, "no lua/%s.lua", name);
  if (mgrid_bundle_load(L, c)) return lua_error(L);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_setupvalue(L, -2, 1);
  lua_call(L, 0, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, lua_upvalueindex(1), name);
  return 1;
}

/* --------------------------------------------------------------------- for Lua */

/* A field in a table of options. */
typedef struct option {
  const char *name;
  int type;
  const char *is; /* its type, for messages */
} option;

static const option of_picture[] = { { "families", LUA_TTABLE, "a list of names" },
                                     { "all", LUA_TBOOLEAN, "true or false" },
                                     { "rank", LUA_TNUMBER, "a rank" },
                                     { "machine", LUA_TUSERDATA, "a machine" },
                                     { "columns", LUA_TNUMBER, "an integer" },
                                     { "unicode", LUA_TBOOLEAN, "true or false" },
                                     { "color", LUA_TBOOLEAN, "true or false" },
                                     { "most", LUA_TNUMBER, "an integer" } };
static const option of_words[] = { { "families", LUA_TTABLE, "a list of names" },
                                   { "columns", LUA_TNUMBER, "an integer" },
                                   { "read", LUA_TFUNCTION, "a function" },
                                   { "recipe", LUA_TTABLE, "a table" } };
static const option of_page[] = { { "recipe", LUA_TSTRING, "a text" },
                                  { "axes", LUA_TTABLE, "a list" },
                                  { "frames", LUA_TTABLE, "a list of plans" },
                                  { "machine", LUA_TFUNCTION, "a function" } };

/* Check the value of an option, which is on the top and not nil. `p` is the plan for the option
** `rank`. */
static void check_option(lua_State *L, const option *o, const char *what, const mgrid_plan *p) {
  int whole = 1;
  lua_Integer n = o->type == LUA_TNUMBER ? lua_tointegerx(L, -1, &whole) : 1;
  if (lua_type(L, -1) != o->type || !whole)
    mgrid_lua_raise_as(
        L, MGRID_BAD_VALUE, "option '%s' of a %s is %s, not %s", o->name, what, o->is,
        lua_type(L, -1) == LUA_TNUMBER ? luaL_tolstring(L, -1, NULL) : mgrid_lua_kind(L, -1));
  if (strcmp(o->name, "rank") == 0)
    mgrid_lua_opt_rank(L, p, -1);
  else if (n < 1)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "option '%s' of a %s is 1 or more, not %lld", o->name,
                       what, (long long)n);
}

static void pictures_check_options(lua_State *L, int i, const char *what, const option *all,
                                   size_t n, const mgrid_plan *p) {
  const char *names[sizeof of_picture / sizeof *of_picture];
  char named[32];
  for (size_t k = 0; k < n; k++) names[k] = all[k].name;
  snprintf(named, sizeof named, "option of a %s", what);
  mgrid_lua_check_keys(L, i, named, names, n, false);
  for (size_t k = 0; k < n; k++) {
    if (lua_getfield(L, i, names[k]) != LUA_TNIL) check_option(L, &all[k], what, p);
    lua_pop(L, 1);
  }
}

/* Call the function that is the upvalue with `most` arguments, of which the last is a function or
** nil. Use the C locale, because other programs read the numbers in pictures. */
static int call_plain(lua_State *L, int most) {
  lua_settop(L, most);
  if (!lua_isnil(L, most)) luaL_checktype(L, most, LUA_TFUNCTION);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  mgrid_locale host = mgrid_locale_plain();
  int raised = lua_pcall(L, most, 1, 0);
  mgrid_locale_back(host);
  return raised ? lua_error(L) : 1;
}

/* pictures.text(plan [, options [, sink]]), pictures.svg */
static int picture(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  if (!lua_isnoneornil(L, 2)) {
    mgrid_lua_check_table(L, 2, "{ all = true }");
    pictures_check_options(L, 2, "picture", of_picture, sizeof of_picture / sizeof *of_picture, p);
  }
  return call_plain(L, 3);
}

/* pictures.explain(plan [, options [, sink]]) */
static int pictures_explain(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  if (!lua_isnoneornil(L, 2)) {
    mgrid_lua_check_table(L, 2, "{ columns = 80 }");
    pictures_check_options(L, 2, "report", of_words, sizeof of_words / sizeof *of_words, p);
  }
  return call_plain(L, 3);
}

/* pictures.page(page, sink) */
static int page(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  pictures_check_options(L, 1, "page", of_page, sizeof of_page / sizeof *of_page, NULL);
  for (int k = 0; k < 3; k += 2) {
    if (lua_getfield(L, 1, of_page[k].name) == LUA_TNIL)
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "a page needs the option '%s'",
                                of_page[k].name);
    lua_pop(L, 1);
  }
  call_plain(L, 2);
  return 0;
}

static const luaL_Reg kinds[] = { { "text", picture },
                                  { "svg", picture },
                                  { "explain", pictures_explain },
                                  { "page", page },
                                  { NULL, NULL } };

/* __index of `pictures`, at the first use: put all functions into the table, and return the one
** that is asked for. Upvalue: the module */
static int pictures_load(lua_State *L) {
  lua_settop(L, 2);
  lua_newtable(L); /* the results of loaded files */
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
  for (const luaL_Reg *kind = kinds; kind->name; kind++) {
    lua_getfield(L, 5, kind->name);
    lua_pushcclosure(L, kind->func, 1);
    lua_setfield(L, 1, kind->name);
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
  lua_pushcclosure(L, pictures_load, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "pictures");
}

/* ------------------------------------------------------------------------- for C */

typedef struct request {
  const mgrid_plan *plan;
  const char *how, *options;
  mgrid_sink sink;
  void *ud;
  bool stopped; /* by the sink */
} request;

/* The sink of a picture, for Lua. Upvalue: the request */
static int pictures_put(lua_State *L) {
  request *r = lua_touserdata(L, lua_upvalueindex(1));
  size_t len;
  const char *text = luaL_checklstring(L, 1, &len);
  r->stopped = r->sink(r->ud, text, len) != 0;
  return r->stopped ? luaL_error(L, "stopped") : 0;
}

/* read(file) -> its text, or nil */
static int pictures_read_text(lua_State *L) {
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_read_file(luaL_checkstring(L, 1), &t, &e)) {
    mgrid_text_free(&t);
    return 0;
  }
  mgrid_lua_push_text(L, &t);
  return 1;
}

static void push_options(lua_State *L, const request *r) {
  mgrid_error e = MGRID_ERROR_INIT;
  json_error_t why;
  json_t *v = r->options ? mgrid_json_parse(r->options, strlen(r->options), 0, &why)
                         : json_object();
  if (!json_is_object(v)) {
    json_decref(v);
    mgrid_fail(&e, MGRID_BAD_VALUE, "the options of a picture are a JSON object");
    mgrid_lua_raise_error(L, &e);
  }
  if (mgrid_take_json(L, v)) lua_error(L);
}

static int pictures_draw(lua_State *L) {
  request *r = lua_touserdata(L, 1);

  mgrid_lua_open_whole(L);
  lua_getfield(L, -1, "pictures");
  if (lua_getfield(L, -1, r->how) != LUA_TFUNCTION)
    return mgrid_lua_raise_as(L, MGRID_UNKNOWN_NAME,
                              "a picture is text, svg, explain or page, not '%s'", r->how);
  push_options(L, r);
  mgrid_lua_push(L, "Plan", r->plan);
  if (strcmp(r->how, "page") == 0) {
    /* a page has frames: here the plan is the only one */
    pictures_check_options(L, lua_gettop(L) - 1, "page", of_page, 1, NULL);
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
    if (strcmp(r->how, "explain") == 0)
      lua_pushcfunction(L, pictures_read_text), lua_setfield(L, -3, "read");
    lua_insert(L, -2);
  }
  lua_pushlightuserdata(L, r);
  lua_pushcclosure(L, pictures_put, 1);
  lua_call(L, strcmp(r->how, "page") == 0 ? 2 : 3, 0);
  return 0;
}

mgrid_status mgrid_script_draw(const mgrid_plan *p, const char *how, const char *options,
                               mgrid_sink sink, void *ud, mgrid_error *err) {
  request r = { p, how, options, sink, ud, false };
  mgrid_status s = mgrid_runtime_check_lua(err);
  if (s) return s;
  lua_State *L = mgrid_runtime_new_lua(mgrid_allocate, NULL);
  if (!L) return mgrid_oom(err);
  lua_pushcfunction(L, pictures_draw);
  lua_pushlightuserdata(L, &r);
  int raised = lua_pcall(L, 1, 0, 0);
  const char *message = raised && raised != LUA_ERRMEM ? lua_tostring(L, -1) : NULL;
  if (raised && r.stopped)
    s = mgrid_unwritten(err);
  else if (raised && message)
    s = mgrid_fail(err, mgrid_lua_status(L, message) ? mgrid_lua_status(L, message) : MGRID_REFUSED,
                   "%s", message);
  else if (raised)
    s = mgrid_oom(err);
  lua_close(L);
  return s;
}
