/* SPDX-License-Identifier: MIT
**
** page.c - moongrid in a browser: what `make wasm` exports. JavaScript calls it in a worker, which
** the page can end:
**
**     const m = await moongrid({ wasmBinary })       // moongrid.js defines this function
**     const at = m.ccall("mgrid_page_answer", "number", ["string"], [JSON.stringify(request)])
**     const answer = JSON.parse(m.UTF8ToString(at))    // and free `at`
**
** lua/pictures/playground.lua describes requests and answers.
*/
#include "moongrid_lua.h"
#include "recipe/bind.h"
#include "recipe/bundle.h"
#include "recipe/values.h"

#include <string.h>

/* JSON in, JSON out; the caller frees it. NULL: out of memory */
char *mgrid_page_answer(const char *request);

/* A searcher for `require`: find the modules of lua/pictures, and `playground`, which is one of
** them. */
static int page_find(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  bool is_main = strcmp(name, "playground") == 0;
  const char *whole = lua_pushfstring(L, "moongrid.%s%s", is_main ? "pictures." : "", name);
  const mgrid_chunk *c = mgrid_bundle_find(mgrid_pictures, whole);
  if (!c) return lua_pushfstring(L, "no lua/%s.lua", name), 1;
  return mgrid_bundle_load(L, c) ? lua_error(L) : 1;
}

/* Return the function that answers. */
static int page_open(lua_State *L) {
  mgrid_lua_open_whole(L);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  lua_pushcfunction(L, page_find);
  lua_rawseti(L, -2, 2); /* in the place of the searcher for files */
  lua_getglobal(L, "require");
  lua_pushliteral(L, "playground");
  lua_call(L, 1, 1);
  return 1;
}

/* page_answer(answer, request) -> text. `request` is a light userdata, the text of the request */
static int page_answer(lua_State *L) {
  const char *request = lua_touserdata(L, 2);
  json_error_t why;
  lua_settop(L, 1);
  json_t *v = mgrid_json_parse(request, strlen(request), JSON_DECODE_ANY, &why);
  if (!v) return luaL_error(L, "the request is not JSON: %s", why.text);
  if (mgrid_take_json(L, v)) return lua_error(L);
  lua_call(L, 1, 1);
  luaL_checkstring(L, -1);
  return 1;
}

/* Return the text on the top, or {"error": text}. */
static char *page_text(lua_State *L, bool raised) {
  const char *text = lua_tostring(L, -1);
  if (!raised) return mgrid_strdup(text);
  mgrid_text t = { 0 };
  json_t *v = json_pack("{s:s}", "error", text ? text : "an error without a message");
  if (v) mgrid_json_text(v, JSON_COMPACT, &t);
  json_decref(v);
  return t.failed ? mgrid_text_free(&t), NULL : t.data;
}

char *mgrid_page_answer(const char *request) {
  static lua_State *L; /* one for the page, which has one thread */
  if (!L) {
    if (!(L = luaL_newstate())) return NULL;
    lua_pushcfunction(L, page_open);
    if (lua_pcall(L, 0, 1, 0)) {
      char *why = page_text(L, true);
      lua_close(L);
      L = NULL;
      return why;
    }
  }
  lua_settop(L, 1);
  lua_pushcfunction(L, page_answer);
  lua_pushvalue(L, 1);
  lua_pushlightuserdata(L, (void *)(uintptr_t)request);
  bool raised = lua_pcall(L, 2, 1, 0);
  char *answer = page_text(L, raised);
  lua_settop(L, 1);
  return answer;
}
