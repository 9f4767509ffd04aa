/* SPDX-License-Identifier: MIT
**
** saved.c - saved plans, for Lua programs: recipes read no files.
*/
#include "plan/plan.h"
#include "recipe/bind.h"

/* moongrid.is_saved(path [, text]) -> whether the file, or the text instead of it, is a saved plan */
static int is_saved(lua_State *L) {
  char        head[64];
  size_t      n = 0;
  const char *path = luaL_checkstring(L, 1), *text = luaL_optlstring(L, 2, NULL, &n);
  if (!text) n = mgrid_file_begins(path, head, sizeof head);
  lua_pushboolean(L, mgrid_plan_is_saved(text ? text : head, n));
  return 1;
}

/* moongrid.saved(path [, text]) -> Plan */
static int saved(lua_State *L) {
  size_t       n = 0;
  const char  *path = luaL_checkstring(L, 1), *text = luaL_optlstring(L, 2, NULL, &n);
  mgrid_plan **box = mgrid_lua_new_plan(L);
  mgrid_text   file = { 0 };
  mgrid_error  e = MGRID_ERROR_INIT;
  if (text)
    *box = mgrid_plan_read(text, n, path, &e);
  else if (!mgrid_read_file_up_to(path, MGRID_SAVED_MAX, &file, &e))
    *box = mgrid_plan_read(mgrid_text_chars(&file), file.len, path, &e);
  mgrid_text_free(&file);
  return *box ? 1 : mgrid_lua_raise_error(L, &e);
}

void mgrid_lua_open_saved(lua_State *L) {
  lua_pushcfunction(L, is_saved);
  lua_setfield(L, -2, "is_saved");
  lua_pushcfunction(L, saved);
  lua_setfield(L, -2, "saved");
}
