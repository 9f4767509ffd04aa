/* SPDX-License-Identifier: MIT
**
** names.c - fuzz target: rules between names, and names that they are tried on. The first byte says
** which allocation fails, the second how many lines are rules and how much work is paid; the other
** lines are names. names.lua reads and matches the same, by other means: both refuse the same
** rules, and find the same names and captures.
*/
#include "fuzz.h"

#include "checkpoints/names.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "gen/names.h"

enum { WHAT_IS_MATCHED = 20 }; /* letters: names.lua takes longer names for too long */

/* Push a function of names.lua. */
static lua_State *oracle(const char *function) {
  static lua_State *L;
  if (!L) {
    L = luaL_newstate();
    luaL_openlibs(L);
    CHECK(luaL_loadbuffer(L, driver, sizeof driver, "=names.lua") == LUA_OK
          && lua_pcall(L, 0, 1, 0) == LUA_OK);
  }
  lua_settop(L, 1);
  lua_getfield(L, 1, function);
  return L;
}

static void call(lua_State *L, int arguments, int results) {
  if (lua_pcall(L, arguments, results, 0) != LUA_OK)
    fuzz_failed(__FILE__, __LINE__, lua_tostring(L, -1));
}

static size_t length_of(lua_State *L, int at) { return (size_t)lua_rawlen(L, at); }

/* The rules are those of names.lua, which are on the top. */
static void compare_rules(lua_State *L, const names *all) {
  CHECK(length_of(L, -1) == all->n);
  for (size_t k = 0; k < all->n; k++) {
    const names_rule *r = &all->rule[k];
    lua_rawgeti(L, -1, (lua_Integer)k + 1);
    CHECK((lua_getfield(L, -1, "layout") == LUA_TBOOLEAN) == (r->layout != NULL));
    for (int side = 0; side < 2 && !r->layout; side++) {
      lua_rawgeti(L, -2, side + 1);
      CHECK(length_of(L, -1) == r->side[side].n);
      lua_getfield(L, -1, "slice");
      CHECK(r->side[side].n == 0 || lua_tointeger(L, -1) == r->side[side].slice + 1);
      lua_pop(L, 2);
    }
    lua_pop(L, 2);
  }
}

/* Compare whether a name fits, and its captures, with what names.lua says. */
static void compare_fit(size_t k, const names_rule *r, int side, size_t i, const char *name,
                        bool fits, const names_bound *bound) {
  lua_State *L = oracle("fits");
  lua_getfield(L, LUA_REGISTRYINDEX, "rules");
  lua_rawgeti(L, -1, (lua_Integer)k + 1);
  lua_remove(L, -2);
  lua_pushinteger(L, side + 1);
  lua_pushinteger(L, (lua_Integer)i + 1);
  lua_pushstring(L, name);
  call(L, 4, 2);
  if (lua_isnil(L, -2)) return;
  CHECK(lua_toboolean(L, -2) == fits);
  for (size_t c = 0; c < r->ncaptures && fits; c++) {
    size_t n = 0;
    const char *text =
        lua_rawgeti(L, -1, (lua_Integer)c + 1) == LUA_TSTRING ? lua_tolstring(L, -1, &n) : NULL;
    CHECK((text != NULL) == (bound->at[c] != NULL));
    CHECK(!text || (n == bound->length[c] && memcmp(text, bound->at[c], n) == 0));
    lua_pop(L, 1);
  }
}

static void try_name(const names *all, size_t k, int side, size_t i, const char *name, long fails) {
  const names_rule *r = &all->rule[k];
  names_bound bound;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_text again = { 0 };
  bool fits = false, any = false;
  until_failure = fails;
  mgrid_status s = names_fit(all, r, side, i, name, &bound, &fits, &e);
  until_failure = -1;
  fuzz_check_error(&e, s != MGRID_OK);
  CHECK(s == MGRID_OK || (s == MGRID_NO_MEMORY && fails >= 0)
        || (s == MGRID_LIMIT && (all->budget || strlen(name) > WHAT_IS_MATCHED)));
  if (s) return;
  compare_fit(k, r, side, i, name, fits, &bound);
  mgrid_error_clear(&e);
  s = names_fit(all, r, side, i, name, NULL, &any, &e); /* with less memory */
  CHECK(s ? s == MGRID_LIMIT && all->budget : any == fits);
  if (!fits || r->side[1].n == 0) return;
  names_put(r, side, i, &bound, &again);
  CHECK(!again.failed && strcmp(mgrid_text_chars(&again), name) == 0);
  mgrid_text_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
  bytes b = { input, input + size };
  uint8_t fail = byte(&b), how = byte(&b);
  long fails = fail & 1 ? fail >> 1 : -1;
  mgrid_budget budget = mgrid_budget_new(1 << 16, 0);
  names all = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  const char *rules = (const char *)b.at;
  for (size_t i = 0; i <= how % 4U; i++) free(line(&b));
  size_t length = (size_t)((const char *)b.at - rules);
  until_failure = fails;
  mgrid_status s = names_read(&all, "rules", rules, length, &e);
  until_failure = -1;
  fuzz_check_error(&e, s != MGRID_OK);
  if (s != MGRID_NO_MEMORY) {
    lua_State *L = oracle("read");
    lua_pushlstring(L, rules, length);
    call(L, 1, 1);
    CHECK(lua_isnil(L, -1) == (s != MGRID_OK));
    if (!s) compare_rules(L, &all);
    lua_setfield(L, LUA_REGISTRYINDEX, "rules");
  }
  if (how & 64) all.budget = &budget;
  while (!s && more(&b)) {
    char *name = line(&b);
    for (size_t k = 0; k < all.n; k++)
      for (int side = 0; side < 2 && !all.rule[k].layout; side++)
        for (size_t i = 0; i < all.rule[k].side[side].n; i++)
          try_name(&all, k, side, i, name, fails);
    free(name);
  }
  names_free(&all);
  return 0;
}
