/* SPDX-License-Identifier: MIT
**
** box.c - C objects that userdata own. They are outside of the Lua heap; those of a runtime are in a list of its
** budget. At the deepest level of calls Lua skips finalizers; objects that these leave are released with the runtime.
** The contents of an object count as memory of the recipe.
*/
#include "recipe/budget.h"

#include <string.h>

struct mgrid_lua_held {
  mgrid_lua_held   *prev, *next;
  mgrid_lua_budget *budget; /* NULL: of a host's Lua state */
  void (*release)(void *box);
  size_t bytes; /* that count, including this header */
};

static void           *box_of(mgrid_lua_held *h) { return h + 1; }
static mgrid_lua_held *held_of(void *box) { return (mgrid_lua_held *)box - 1; }

static void drop(mgrid_lua_held *h) {
  mgrid_lua_budget *b = h->budget;
  if (b) {
    *(h->prev ? &h->prev->next : &b->held) = h->next;
    if (h->next) h->next->prev = h->prev;
    b->used -= h->bytes;
  }
  h->release(box_of(h));
  mgrid_release(h);
}

void mgrid_budget_release(mgrid_lua_budget *b) {
  while (b->held) drop(b->held);
}

void *mgrid_lua_new_box(lua_State *L, size_t size, int values, const char *class, void (*release)(void *box)) {
  mgrid_lua_budget *b = mgrid_budget_of(L);
  size_t            bytes = sizeof(mgrid_lua_held) + size;
  mgrid_lua_held  **owner = lua_newuserdatauv(L, sizeof *owner, values), *h;
  *owner = NULL;
  luaL_setmetatable(L, class);
  /* Ask for some more, so that garbage objects are collected here: where Lua itself runs out, it collects without
  ** finalizers. */
  if (b && !mgrid_budget_has(b, bytes + b->limits.memory / 64)) mgrid_budget_refuse(L, b);
  if (!(h = mgrid_zeroed(NULL, bytes))) mgrid_lua_oom(L);
  *h = (mgrid_lua_held){ NULL, b ? b->held : NULL, b, release, bytes };
  if (b) {
    if (h->next) h->next->prev = h;
    b->held = h;
    b->used += bytes;
  }
  *owner = h;
  return box_of(h);
}

void *mgrid_lua_in_box(void *userdata) {
  mgrid_lua_held *h = userdata ? *(mgrid_lua_held **)userdata : NULL;
  return h ? box_of(h) : NULL;
}

void *mgrid_lua_test_box(lua_State *L, int i, const char *class) {
  return mgrid_lua_in_box(luaL_testudata(L, i, class));
}

void *mgrid_lua_check_box(lua_State *L, int i, const char *class) {
  void *box = mgrid_lua_in_box(luaL_checkudata(L, i, class));
  if (!box) mgrid_lua_raise(L, "this %s is freed", strrchr(class, '.') + 1);
  return box;
}

/* With the debug library programs can call this, too, with any value, even while a method uses the box. */
int mgrid_lua_free_box(lua_State *L) {
  if (!mgrid_lua_collected(L)) return 0;
  bool ours = lua_type(L, 1) == LUA_TUSERDATA && luaL_getmetafield(L, 1, "__gc") != LUA_TNIL
              && lua_tocfunction(L, -1) == mgrid_lua_free_box;
  mgrid_lua_held **owner = ours ? lua_touserdata(L, 1) : NULL, *h = owner ? *owner : NULL;
  if (!h) return 0;
  *owner = NULL;
  drop(h);
  return 0;
}

void mgrid_lua_weigh(lua_State *L, void *box, size_t bytes) {
  mgrid_lua_held   *h = held_of(box);
  mgrid_lua_budget *b = h->budget;
  if (!b) return;
  b->used += bytes - h->bytes;
  h->bytes = bytes;
  if (b->used > b->limits.memory && !mgrid_budget_has(b, 0)) mgrid_budget_refuse(L, b);
}

void mgrid_lua_reserve(lua_State *L, int64_t n, size_t each) {
  mgrid_lua_budget *b = mgrid_budget_of(L);
  if (!b || n <= 0) return;
  size_t bytes = (uint64_t)n > SIZE_MAX / each ? SIZE_MAX : (size_t)n * each;
  if (!mgrid_budget_has(b, bytes)) mgrid_budget_refuse(L, b);
}
