/* SPDX-License-Identifier: MIT
**
** shell.c - lines of a prompt, in the sandbox and under the limits of the recipe: lua/prelude/shell.lua.
*/
#include "recipe/prelude.h"
#include "recipe/runtime.h"

typedef struct typed {
  const char *what, *text; /* the function of the prelude, and its argument */
} typed;

static int typed_body(lua_State *L) {
  const typed *t = lua_touserdata(L, 1);
  mgrid_prelude_push(L, t->what);
  lua_pushstring(L, t->text);
  lua_call(L, 1, 1);
  return 1;
}

/* Append the text that the function returns; false in *some: it returns none. */
static mgrid_status answer(mgrid_runtime *rt, typed t, mgrid_text *out, bool *some, mgrid_error *err) {
  mgrid_status s = mgrid_runtime_value(rt, typed_body, &t, err);
  if (s) return s;
  size_t      len = 0;
  const char *text = lua_tolstring(rt->L, -1, &len);
  *some = text;
  if (text) mgrid_text_put(out, text, len);
  lua_settop(rt->L, 0);
  return out->failed ? mgrid_oom(err) : MGRID_OK;
}

mgrid_status mgrid_runtime_run(mgrid_runtime *rt, const char *lines, mgrid_text *out, bool *more, mgrid_error *err) {
  bool         some = false;
  mgrid_status s = answer(rt, (typed){ "run", lines }, out, &some, err);
  *more = !s && !some;
  return s;
}

mgrid_status mgrid_runtime_complete(mgrid_runtime *rt, const char *line, mgrid_text *out, mgrid_error *err) {
  bool some;
  return answer(rt, (typed){ "complete", line }, out, &some, err);
}
