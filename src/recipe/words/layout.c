/* SPDX-License-Identifier: MIT
**
** layout.c - World for Lua: families by their modes.
*/
#include "recipe/bind.h"

/* Read the modes {size, stride} in the field `name` of the table at 2; return their number. */
static size_t check_modes(lua_State *L, const char *name, mgrid_mode *modes, size_t most) {
  if (lua_getfield(L, 2, name) == LUA_TNIL) {
    lua_pop(L, 1);
    return 0;
  }
  if (!lua_istable(L, -1))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "modes: '%s' is %s, not a list of {size, stride}", name,
                       mgrid_lua_kind(L, -1));
  size_t n = lua_rawlen(L, -1);
  if (n > most) mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "modes: at most %zu, not %zu", most, n);
  for (size_t i = 0; i < n; i++) {
    bool    pair = lua_rawgeti(L, -1, (lua_Integer)i + 1) == LUA_TTABLE && lua_rawlen(L, -1) == 2;
    int64_t value[2] = { 0, 0 };
    for (int k = 0; k < 2 && pair; k++) {
      lua_rawgeti(L, -1, k + 1);
      pair = lua_isinteger(L, -1);
      value[k] = lua_tointeger(L, -1);
      lua_pop(L, 1);
    }
    if (!pair) mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "modes: %s mode %zu is not {size, stride}", name, i);
    modes[i] = (mgrid_mode){ value[0], value[1] };
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return n;
}

/* world:modes{ inside = { {2, 1} }, index = { {4, 2} }, offset = 0 }, world:modes "(2:1) x (4:2) + 0" */
static int world_modes(lua_State *L) {
  enum { MOST = 64 };
  static const char *const options[] = { "inside", "index", "offset" };
  const mgrid_lua_world   *in = mgrid_lua_check_world(L, 1);
  mgrid_window             w = in->window;
  mgrid_mode               inside[MOST], index[MOST];
  size_t                   ninside = 0, nindex = 0;
  int64_t                  offset = 0;
  if (in->order)
    return mgrid_lua_raise(L, "strides lie between ranks, which have no order; take the modes of the world itself");
  lua_settop(L, 2);
  const char *text = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
  if (!text) {
    luaL_argexpected(L, lua_istable(L, 2), 2, "table or text");
    mgrid_lua_check_keys(L, 2, "option", options, 3, false);
    ninside = check_modes(L, "inside", inside, MOST);
    nindex = check_modes(L, "index", index, MOST);
    if (lua_getfield(L, 2, "offset") != LUA_TNIL && !lua_isinteger(L, -1))
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "modes: the offset is %s, not an integer", mgrid_lua_kind(L, -1));
    offset = lua_tointeger(L, -1);
  }
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  mgrid_error       e = MGRID_ERROR_INIT;
  for (int lists = 0; lists < 2 && !box->f && !e.status; lists++) { /* charge for lists before making them */
    if (lists) mgrid_lua_charge(L, 16 * w.size);
    if (lists) mgrid_lua_reserve(L, w.size, 24);
    box->f = text ? mgrid_layout_parse(w, text, lists, &e)
                  : mgrid_layout_modes(w, offset, ninside, inside, nindex, index, lists, &e);
  }
  return mgrid_lua_made_family(L, box, &e);
}

const luaL_Reg mgrid_lua_world_layouts[] = { { "modes", world_modes }, { NULL, NULL } };
