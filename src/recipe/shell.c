/* SPDX-License-Identifier: MIT
**
** shell.c - what is typed at a prompt, in the sandbox and under the limits of the recipe: lua/prelude/shell.lua.
*/
#include "recipe/prelude.h"
#include "recipe/runtime.h"

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

mgrid_status mgrid_runtime_typed(mgrid_runtime *rt, const char *what, const char *text, size_t len, mgrid_error *err) {
  return mgrid_runtime_value(rt, typed_body, &(typed){ what, text, len }, err);
}
