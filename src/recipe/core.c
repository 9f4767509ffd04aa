/* SPDX-License-Identifier: MIT
**
** core.c - `core`, a table of C functions for the prelude: messages, keys in order, JSON, and
** access to the topology and plan of a recipe. The functions that load a file are in load.c.
*/
#include "recipe/prelude.h"
#include "recipe/value_file.h"
#include "recipe/sandbox.h"
#include "recipe/module_row.h"
#include "recipe/values.h"

#include <inttypes.h>
#include <string.h>

static int core_raise(lua_State *L) { return mgrid_lua_raise(L, "%s", luaL_checkstring(L, 1)); }

/* raise_at(where, message [, the text of its status, such as "bad value"]). Without the third
** argument the error has the status of the error that C raised last, if the message ends with that
** error's text */
static int core_raise_at(lua_State *L) {
  static const mgrid_status kinds[] = { MGRID_BAD_VALUE, MGRID_UNKNOWN_NAME, MGRID_OUT_OF_RANGE,
                                        MGRID_DUPLICATE };
  const char *message = luaL_checkstring(L, 2), *words = luaL_optstring(L, 3, "");
  luaL_checkstring(L, 1);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(words, mgrid_status_text(kinds[i])) == 0) mgrid_lua_note(L, kinds[i], message);
  lua_settop(L, 2);
  lua_concat(L, 2);
  return lua_error(L);
}

/* kind(value) -> "nil", "a table", "a Family" */
static int core_kind(lua_State *L) {
  lua_settop(L, 1);
  lua_pushstring(L, mgrid_lua_kind(L, 1));
  return 1;
}

static int core_where(lua_State *L) {
  mgrid_lua_where(L);
  return 1;
}

enum { NAMES_MAX = 256 };

/* Push the strings in the list at i, at most NAMES_MAX, and return their number. Elements of other
** types are left out. `names` points to the strings on the stack. */
static size_t push_names(lua_State *L, int i, const char **names) {
  size_t n = 0;
  mgrid_lua_stack(L, NAMES_MAX + 4);
  for (lua_Integer k = 1; n < NAMES_MAX && lua_rawgeti(L, i, k) != LUA_TNIL; k++)
    if (lua_type(L, -1) == LUA_TSTRING)
      names[n++] = lua_tostring(L, -1);
    else
      lua_pop(L, 1);
  return n;
}

/* unknown(what, name, known names [, where]) */
static int core_unknown(lua_State *L) {
  const char *known[NAMES_MAX], *what = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2);
  char tail[512];
  mgrid_error e = MGRID_ERROR_INIT;
  lua_settop(L, 4);
  size_t n = push_names(L, 3, known);
  if (lua_type(L, 4) != LUA_TSTRING) return mgrid_lua_unknown(L, what, name, known, n);
  mgrid_suggest(tail, sizeof tail, name, known, n);
  mgrid_fail(&e, MGRID_UNKNOWN_NAME, "unknown %s '%s'%s", what, name, tail);
  return mgrid_lua_raise_at(L, lua_tostring(L, 4), e.status, e.message);
}

/* where_of(function) -> "file:line: " of its definition */
static int core_where_of(lua_State *L) {
  lua_Debug ar;
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_getinfo(L, ">S", &ar);
  if (ar.linedefined > 0)
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.linedefined);
  else
    lua_pushliteral(L, "");
  return 1;
}

/* place() -> "file:line: " of the last read of the word `recipe`. The stack cannot tell it: `return
** recipe {...}` is a tail call, whose caller is gone. */
static int core_place(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_place_key);
  return 1;
}

/* keys(table) -> list of its keys, in the order of mgrid_lua_keys */
static int core_keys(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  mgrid_lua_keys(L, 1);
  return 1;
}

static int core_is_topology(lua_State *L) {
  lua_pushboolean(L, mgrid_lua_test_box(L, 1, MGRID_LUA_TOPOLOGY) != NULL);
  return 1;
}

/* note(topology, name, text, is_text, usual, unread): record a parameter. is_text: its value is
** text. usual: it has its default. unread: `build` has not read it */
static int core_note(lua_State *L) {
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);
  mgrid_error e = MGRID_ERROR_INIT;
  size_t len, size;
  const char *name = luaL_checklstring(L, 2, &len), *value = luaL_checklstring(L, 3, &size);
  if (mgrid_param_check(name, len, value, size, &e) || mgrid_topology_param(t, name, value, &e))
    return mgrid_lua_raise_error(L, &e);
  mgrid_param *p = &t->content.param[t->content.nparams - 1];
  p->text = lua_toboolean(L, 4), p->usual = lua_toboolean(L, 5), p->unread = lua_toboolean(L, 6);
  return 0;
}

/* fields() -> { name = type }: the fields that modules add to recipe { ... } */
static int core_fields(lua_State *L) {
  lua_newtable(L);
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; *s; s++)
    for (const mgrid_lua_field *f = (*s)->fields; f && f->name; f++)
      mgrid_lua_set_string(L, f->name, f->type);
  return 1;
}

/* begin(world, values of these fields, where) -> the World that `build` gets: call the modules
** before the build of a plan */
static int core_begin(lua_State *L) {
  int64_t world = mgrid_lua_check_world(L, 1)->window.world;
  luaL_checktype(L, 2, LUA_TTABLE);
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; *s; s++)
    if ((*s)->begin) (*s)->begin(L, world, 2, luaL_checkstring(L, 3));
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; *s; s++)
    if ((*s)->world && (*s)->world(L, 1, 2, luaL_checkstring(L, 3))) lua_replace(L, 1);
  lua_settop(L, 1);
  return 1;
}

/* finish(topology, where, world): call the modules after the build of a plan */
static int core_finish(lua_State *L) {
  int64_t is = mgrid_lua_check_topology(L, 1)->content.world,
          wanted = mgrid_lua_check_world(L, 3)->window.world;
  if (is != wanted)
    return mgrid_lua_raise(
        L, "the recipe made a topology for %" PRId64 " ranks in a world of %" PRId64, is, wanted);
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; *s; s++)
    if ((*s)->end) (*s)->end(L, 1, luaL_checkstring(L, 2));
  return 0;
}

/* allow_idle(topology): record that ranks may be in no group */
static int core_allow_idle(lua_State *L) {
  mgrid_lua_check_topology(L, 1)->content.idle = true;
  return 0;
}

/* note_function(topology, name, version): record a function of the host that the recipe names */
static int core_note_function(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_topology_called(mgrid_lua_check_topology(L, 1), luaL_checkstring(L, 2),
                            luaL_checkstring(L, 3), &e))
    return mgrid_lua_raise_error(L, &e);
  return 0;
}

/* Return the plan at 1, or that of the state at 1. */
static const mgrid_plan *core_plan_of(lua_State *L) {
  return mgrid_lua_test_box(L, 1, MGRID_LUA_PLAN) ? mgrid_lua_check_plan(L, 1)
                                                  : mgrid_lua_check_state(L, 1)->plan;
}

/* digest(state or plan) -> the digest of the plan, as bytes */
static int core_digest(lua_State *L) {
  const mgrid_plan *p = core_plan_of(L);
  lua_pushlstring(L, (const char *)p->digest, sizeof p->digest);
  return 1;
}

/* note_policies(topology, hash of the recipe's text): record the hash, which ranks compare, because
** recipes with equal plans may have different policies or steps */
static int core_note_policies(lua_State *L) {
  mgrid_lua_check_topology(L, 1)->content.policies = (uint64_t)luaL_checkinteger(L, 2);
  return 0;
}

/* params(state or plan) -> { name = text }: the parameters with which the plan was evaluated */
static int core_params(lua_State *L) {
  const mgrid_content *c = &core_plan_of(L)->content;
  lua_createtable(L, 0, (int)c->nparams);
  for (size_t i = 0; i < c->nparams; i++)
    mgrid_lua_set_string(L, c->param[i].name, c->param[i].value);
  return 1;
}

/* settings(state) -> { name = value }: a new table of the settings that a host has changed */
static int core_settings(lua_State *L) {
  const json_t *settings = mgrid_lua_check_state(L, 1)->settings;
  if (settings)
    mgrid_push_json(L, settings);
  else
    lua_newtable(L);
  return 1;
}

/* encode(value, parameter) -> JSON text with sorted keys, equal for equal values. `parameter` is a
** table with `name` and `where`, for an error */
static int core_encode(lua_State *L) {
  json_t *v = mgrid_json_of(L, 1);
  if (!v) {
    char why[128] =
        "a value other than numbers, strings, booleans, lists and tables with names as keys";
    mgrid_lua_charge(L, 0); /* raises if the budget is exhausted */
    if (!mgrid_value_fits(L, 1))
      snprintf(why, sizeof why, MGRID_TOO_MUCH, MGRID_VALUES_MAX, MGRID_VALUES_TEXT_MAX);
    lua_getfield(L, 2, "where");
    lua_getfield(L, 2, "name");
    lua_pushfstring(L, "%sparameter '%s': %s", lua_tostring(L, -2), lua_tostring(L, -1), why);
    return lua_error(L);
  }
  mgrid_text t = { 0 };
  mgrid_json_text(v, JSON_COMPACT | JSON_SORT_KEYS, &t);
  json_decref(v);
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* decode(JSON text) -> value | nil if it is not JSON | nil, why the value is not allowed */
static int core_decode(lua_State *L) {
  json_error_t why;
  size_t len;
  const char *text = luaL_checklstring(L, 1, &len);
  json_t *v = mgrid_json_parse(text, len, JSON_DECODE_ANY, &why);
  /* if Jansson finds no fault in the text, memory ran out */
  if (!v && !*why.text) return mgrid_lua_oom(L);
  if (v && !mgrid_json_has_gap(v)) return mgrid_take_json(L, v) ? lua_error(L) : 1;
  bool gap = v, deep = !v && strcmp(why.text, MGRID_TOO_DEEP) == 0;
  json_decref(v);
  if (!gap && !deep) return 0;
  lua_pushnil(L);
  lua_pushstring(L, gap ? MGRID_GAP : MGRID_TOO_DEEP);
  return 2;
}

/* nearest(name, names) -> the name that may be meant | nil */
static int core_nearest(lua_State *L) {
  const char *known[NAMES_MAX], *name = luaL_checkstring(L, 1);
  lua_settop(L, 2);
  mgrid_lua_charge_nearest(L, name, (size_t)lua_rawlen(L, 2));
  size_t n = push_names(L, 2, known);
  lua_pushstring(L, mgrid_nearest(name, known, n));
  return 1;
}

/* hint(question, ...) -> the answer of lua/prelude/hints.lua */
static int core_hint(lua_State *L) {
  mgrid_lua_hint(L, luaL_checkstring(L, 1), lua_gettop(L) - 1, 1);
  return 1;
}

/* read(path) -> the table in a JSON or YAML file | nil, why not */
static int core_read(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  mgrid_error e = MGRID_ERROR_INIT;
  json_t *table = mgrid_read_table(path, &e);
  if (table) return mgrid_take_json(L, table) ? lua_error(L) : 1;
  if (e.status == MGRID_NO_MEMORY) return mgrid_lua_oom(L);
  lua_pushnil(L);
  lua_pushstring(L, e.message);
  return 2;
}

/* words() -> the table with the globals of recipes */
static int core_words(lua_State *L) {
  mgrid_sandbox_words(L);
  return 1;
}

/* members(value) -> the names of its fields and methods, of the dims of a Grid, or of what is in a
** Topology */
static int core_members(lua_State *L) {
  luaL_checkany(L, 1);
  lua_newtable(L);
  mgrid_lua_members(L, 1);
  return 1;
}

void mgrid_core_push(lua_State *L) {
  static const luaL_Reg core[] = { { "raise", core_raise },
                                   { "raise_at", core_raise_at },
                                   { "message", mgrid_lua_message },
                                   { "kind", core_kind },
                                   { "where", core_where },
                                   { "unknown", core_unknown },
                                   { "where_of", core_where_of },
                                   { "place", core_place },
                                   { "keys", core_keys },
                                   { "is_topology", core_is_topology },
                                   { "note", core_note },
                                   { "note_function", core_note_function },
                                   { "fields", core_fields },
                                   { "begin", core_begin },
                                   { "finish", core_finish },
                                   { "allow_idle", core_allow_idle },
                                   { "note_policies", core_note_policies },
                                   { "params", core_params },
                                   { "digest", core_digest },
                                   { "settings", core_settings },
                                   { "encode", core_encode },
                                   { "decode", core_decode },
                                   { "nearest", core_nearest },
                                   { "hint", core_hint },
                                   { "read", core_read },
                                   { "words", core_words },
                                   { "members", core_members },
                                   { "load", mgrid_core_load },
                                   { "library", mgrid_core_library },
                                   { "choose", mgrid_lua_choose },
                                   { "concurrent", mgrid_lua_concurrent_at },
                                   { NULL, NULL } };

  luaL_newlib(L, core);
}
