/* SPDX-License-Identifier: MIT
**
** probe.c - what works on this machine, for stock Lua.
*/
#include "comm/backend_open.h"
#include "recipe/bind.h"
#include "recipe/entry.h"
#include "recipe/runtime.h"

#include <string.h>

/* Append { name, works, text } to the list on the top. */
static void push_part(lua_State *L, const char *name, bool works, const char *text) {
  lua_createtable(L, 0, 3);
  mgrid_lua_set_string(L, "name", name);
  mgrid_lua_set_boolean(L, "works", works);
  lua_pushlstring(L, text, strcspn(text, "\n"));
  lua_setfield(L, -2, "text");
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

int mgrid_lua_probe(lua_State *L) {
  enum { WORDS = 1100 };
  char        words[WORDS];
  mgrid_error e = MGRID_ERROR_INIT;
  lua_newtable(L);
  snprintf(words, sizeof words, "moongrid %s, %s", mgrid_version(), mgrid_lua_release());
  push_part(L, "planning", true, words);
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++) {
    if (!d->library) continue;
    mgrid_error_clear(&e);
    bool works = mgrid_backend_probe(d, words, sizeof words, &e) == MGRID_OK;
    push_part(L, d->name, works, works ? words : e.message);
  }
  return 1;
}
