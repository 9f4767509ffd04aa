/* SPDX-License-Identifier: MIT
**
** machine.c - state.machine: where this rank runs, and how the job is spread over machines. Read only.
*/
#include "recipe/bind.h"

#include <string.h>

static const char *const fields[] = { "name",  "machines",     "index",  "local_size", "local_rank",
                                      "cores", "usable_cores", "memory", "gpus",       "gpu" };
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* Called for a name without a value: an error, except for `gpu` without a GPU. */
static int machine_missing(lua_State *L) {
  const char *key = luaL_checkstring(L, 2);
  return strcmp(key, "gpu") == 0 ? 0 : mgrid_lua_unknown(L, "field of the machine", key, fields, FIELDS);
}

static int machine_fixed(lua_State *L) { return mgrid_lua_raise(L, "the machine cannot be changed"); }

/* machine, last name or nil -> the next name with a value, that value */
static int machine_next(lua_State *L) {
  size_t i = 0;
  if (!lua_isnil(L, 2))
    while (i < FIELDS && strcmp(fields[i++], luaL_checkstring(L, 2)) != 0) continue;
  for (; i < FIELDS; i++) {
    lua_pushstring(L, fields[i]);
    if (lua_getfield(L, 1, fields[i]) != LUA_TNIL) return 2;
    lua_pop(L, 2);
  }
  return 0;
}

static int machine_pairs(lua_State *L) {
  lua_pushcfunction(L, machine_next);
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

/* Push an empty table whose metatable holds the values, so that __newindex sees and refuses every assignment. */
void mgrid_lua_push_machine(lua_State *L, const mgrid_state *s) {
  static const luaL_Reg meta[] = { { "__newindex", machine_fixed }, { "__pairs", machine_pairs }, { NULL, NULL } };
  mgrid_machine         m = MGRID_MACHINE_INIT;
  mgrid_state_machine(s, &m, NULL);
  const int64_t values[] = { m.machines,     m.index,  m.local_size, m.local_rank, m.cores,
                             m.usable_cores, m.memory, m.gpus,       m.gpu };
  lua_newtable(L);
  luaL_newlib(L, meta);
  lua_createtable(L, 0, FIELDS); /* the values */
  lua_pushstring(L, m.name);
  lua_setfield(L, -2, fields[0]);
  for (int i = 1; i < FIELDS; i++) {
    if (values[i - 1] < 0) continue; /* there is no GPU */
    lua_pushinteger(L, values[i - 1]);
    lua_setfield(L, -2, fields[i]);
  }
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, machine_missing);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "__index");
  mgrid_lua_set_boolean(L, "__metatable", false);
  lua_setmetatable(L, -2);
}
