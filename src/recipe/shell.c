/* SPDX-License-Identifier: MIT
**
** shell.c - what is typed at a prompt, in the sandbox and under the limits of the recipe: lua/prelude/shell.lua.
*/
#include "recipe/prelude.h"
#include "recipe/runtime.h"
#include "recipe/values.h"

typedef struct typed {
  const char *what, *text;
  size_t      len;
} typed;

static int typed_body(lua_State *L) {
  const typed *t = lua_touserdata(L, 1);
  mgrid_prelude_push(L, t->what);
  lua_pushlstring(L, t->text, t->len);
  lua_call(L, 1, 1);
  return 1;
}

int mgrid_lua_typed(lua_State *L, mgrid_runtime *rt, const char *what) {
  mgrid_error e = MGRID_ERROR_INIT;
  typed       t = { .what = what };
  t.text = luaL_checklstring(L, 2, &t.len);
  if (mgrid_runtime_value(rt, typed_body, &t, &e)) return mgrid_lua_raise_runtime(L, &e);
  t.text = lua_tolstring(rt->L, -1, &t.len);
  if (t.text) return lua_pushlstring(L, t.text, t.len), 1;
  if (mgrid_copy_value(rt->L, -1, L, MGRID_AS_JSON)) return 1;
  return mgrid_budget_after(&rt->budget, &e) ? mgrid_lua_raise_error(L, &e) : mgrid_lua_raise(L, "too many words");
}
