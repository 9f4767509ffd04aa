/* SPDX-License-Identifier: MIT
**
** seed.c - a Lua state whose hash tables are the same in every process. Lua derives the seed of its hashes from
** addresses and the time. The length #t of a table with gaps or removed names depends on it, and a recipe can see that.
** Since Lua 5.5 lua_newstate takes the seed. Before, it is set where Lua keeps it, between two allocations of
** lua_newstate: after it was made, and before the first text is hashed. If that memory does not look as in Lua 5.4, the
** seed stays Lua's own.
*/
#include "recipe/runtime.h"

#include <string.h>

enum { SEED = 0x6d677264 };

#if LUA_VERSION_NUM >= 505

lua_State *mgrid_runtime_state(mgrid_budget *b) { return lua_newstate(mgrid_budget_alloc, b, SEED); }

#else

/* The beginning of Lua's global_State. */
typedef struct lua_globals {
  lua_Alloc alloc;
  void     *ud;
  ptrdiff_t bytes, debt;
  size_t    estimate, atomic;
  struct {
    void *hash;
    int   n, size;
  } texts;
  struct {
    lua_Integer   value;
    unsigned char type;
  } registry, nil;
  unsigned int seed;
} lua_globals;

typedef struct making {
  mgrid_budget *budget;
  char         *state; /* the first block; NULL: not yet */
  size_t        size;
  bool          seeded;
} making;

static void *alloc(void *ud, void *ptr, size_t osize, size_t nsize);

/* Return whether this memory is as lua_newstate leaves it before it asks for its second block. */
static bool is_new(const lua_globals *g, const making *m) {
  enum { WHOLE_NUMBER = LUA_TNUMBER }; /* in the making, its nil is the number 0 */
  return g->alloc == alloc && g->ud == m && (size_t)g->bytes == m->size && g->debt == 0 && !g->texts.hash
         && g->texts.n == 0 && g->texts.size == 0 && g->registry.type == LUA_TNIL && g->nil.value == 0
         && g->nil.type == WHOLE_NUMBER;
}

static void set_seed(making *m) {
  lua_globals g;
  for (size_t offset = 0; offset + sizeof g <= m->size; offset += sizeof(void *)) {
    memcpy(&g, m->state + offset, sizeof g);
    if (!is_new(&g, m)) continue;
    g.seed = SEED;
    memcpy(m->state + offset + offsetof(lua_globals, seed), &g.seed, sizeof g.seed);
    return;
  }
}

static void *alloc(void *ud, void *ptr, size_t osize, size_t nsize) {
  making *m = ud;
  if (m->state && !m->seeded) set_seed(m);
  m->seeded = m->state;
  void *block = mgrid_budget_alloc(m->budget, ptr, osize, nsize);
  if (!m->state && block) m->state = memset(block, 0, nsize), m->size = nsize; /* set_seed reads all of it */
  return block;
}

lua_State *mgrid_runtime_state(mgrid_budget *b) {
  making     m = { b, NULL, 0, false };
  lua_State *L = lua_newstate(alloc, &m);
  if (L) lua_setallocf(L, mgrid_budget_alloc, b);
  return L;
}

#endif
