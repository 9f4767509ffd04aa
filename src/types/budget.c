/* SPDX-License-Identifier: MIT
**
** budget.c - enforces the limits of memory, instructions and time, and words their errors.
*/
#include "types/budget.h"

#include <inttypes.h>
#include <xxhash.h>
#include <stdlib.h>
#include <string.h>

enum { HOOK_STEP = 1000 };

static const char budget_key = 'b'; /* registry key: its address */

void *mgrid_budget_alloc(void *budget, void *ptr, size_t osize, size_t nsize) {
  mgrid_budget *b = budget;
  size_t        old = ptr ? osize : 0; /* Lua passes a type here when there is no block */
  if (nsize == 0) {
    b->used -= old;
    return ptr ? mgrid_realloc(&b->hooks, ptr, old, 0) : NULL;
  }
  bool  fits = nsize <= old || b->used + (nsize - old) <= b->limits.memory;
  void *block = fits ? mgrid_realloc(&b->hooks, ptr, old, nsize) : NULL;
  if (block) {
    b->used = b->used - old + nsize;
    if (nsize > old) b->refused = 0;
  } else { /* after a refusal Lua collects garbage and asks again; only a second refusal counts */
    b->no_memory |= b->refused == nsize;
    b->refused = nsize;
    b->starved = fits;
  }
  return block;
}

void mgrid_budget_attach(lua_State *L, mgrid_budget *b) {
  lua_pushlightuserdata(L, b);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &budget_key);
}

/* NULL in a Lua state without a budget. */
static mgrid_budget *budget_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &budget_key);
  mgrid_budget *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return b;
}

static mgrid_status no_memory(const mgrid_budget *b, mgrid_error *err) {
  bool mib = b->limits.memory >> 20;
  if (b->starved) return mgrid_oom(err);
  return mgrid_fail(err, MGRID_LIMIT, "the recipe needs more than %zu %s of memory",
                    b->limits.memory >> (mib ? 20 : 10), mib ? "MiB" : "KiB");
}

static void budget_hook(lua_State *L, lua_Debug *ar);

static void spend(lua_State *L, mgrid_budget *b, uint64_t work) {
  b->count += work;
  bool slow = mgrid_now() - b->started > b->limits.seconds;
  if (!b->over && !b->no_memory && b->count <= b->limits.instructions && !slow) return;
  if (!b->over) {
    b->over = true;
    lua_sethook(L, budget_hook, LUA_MASKCOUNT, 1);
    mgrid_lua_where(L);
    const char *where = lua_tostring(L, -1);
    if (b->no_memory)
      snprintf(b->verdict, sizeof b->verdict, "not enough memory"); /* as Lua says it: the verdict has the words */
    else if (slow)
      snprintf(b->verdict, sizeof b->verdict, "%sthe recipe runs for more than %g seconds", where, b->limits.seconds);
    else
      snprintf(b->verdict, sizeof b->verdict, "%sthe recipe runs for more than %" PRIu64 " instructions", where,
               b->limits.instructions);
  }
  lua_pushstring(L, b->verdict);
  lua_error(L);
}

static void budget_hook(lua_State *L, lua_Debug *ar) {
  (void)ar;
  mgrid_lua_charge(L, HOOK_STEP);
}

void mgrid_lua_charge(lua_State *L, int64_t work) {
  mgrid_budget *b = budget_of(L);
  if (b) spend(L, b, (uint64_t)work);
}

void mgrid_lua_note(lua_State *L, mgrid_status status, const char *text) {
  mgrid_budget *b = budget_of(L);
  if (!b) return;
  b->status = status;
  b->length = strlen(text);
  b->text = XXH3_64bits(text, b->length);
}

/* The noted status, if this is the noted message: a recipe may have caught that error and raised another. Kinds
** that only hosts cause (MGRID_USAGE) become MGRID_REFUSED, because here the recipe made the call. */
static mgrid_status noted(const mgrid_budget *b, const char *message, size_t length) {
  int  kind = b->status / 100;
  bool same = b->status && length >= b->length && XXH3_64bits(message + length - b->length, b->length) == b->text;
  return same && (kind == 1 || kind == 3) ? b->status : MGRID_REFUSED;
}

void mgrid_budget_start(lua_State *L, mgrid_budget *b) {
  b->count = 0, b->started = mgrid_now();
  b->over = b->no_memory = b->starved = false;
  b->refused = 0;
  b->status = MGRID_OK;
  lua_sethook(L, budget_hook, LUA_MASKCOUNT, HOOK_STEP);
}

void mgrid_budget_stop(lua_State *L) { lua_sethook(L, NULL, 0, 0); }

/* ------------------------------------------------------------ error messages */

void mgrid_budget_position(mgrid_error *err) {
  const char *colon = strchr(err->message, ':');
  while (colon && !(colon[1] >= '0' && colon[1] <= '9')) colon = strchr(colon + 1, ':');
  char *end;
  long  line = colon ? strtol(colon + 1, &end, 10) : 0;
  if (line <= 0 || *end != ':') return;
  size_t len = (size_t)(colon - err->message);
  if (len >= sizeof err->file || memchr(err->message, ' ', len)) return;
  memcpy(err->file, err->message, len);
  err->line = (int)line;
}

/* luaL_Buffer (table.concat uses one) raises this string instead of a memory error. */
static bool is_out_of_memory(lua_State *L) {
  return lua_type(L, -1) == LUA_TSTRING && strcmp(lua_tostring(L, -1), "not enough memory") == 0;
}

/* Cut off a position in the prelude, which does not help a user: "moongrid/recipe.lua:265: text" -> "text". */
static const char *without_prelude(const char *message) {
  const char *text = strncmp(message, "moongrid/", 9) == 0 ? strstr(message, ": ") : NULL;
  return text ? text + 2 : message;
}

/* Outside of any pcall: nothing here may allocate in the Lua state. */
mgrid_status mgrid_budget_verdict(lua_State *L, const mgrid_budget *b, int rc, mgrid_error *err) {
  if (rc == LUA_OK && !b->no_memory) return MGRID_OK;
  mgrid_error  e = MGRID_ERROR_INIT; /* the caller's may have an earlier one, whose place stays */
  mgrid_status s = b->over ? MGRID_LIMIT : MGRID_REFUSED;
  if (rc == LUA_OK || rc == LUA_ERRMEM || is_out_of_memory(L))
    return no_memory(b, err); /* also when the recipe caught it */
  if (lua_type(L, -1) == LUA_TSTRING) {
    size_t      length;
    const char *message = lua_tolstring(L, -1, &length);
    if (!b->over) s = noted(b, message, length);
    mgrid_fail(&e, s, "%s", without_prelude(message));
  } else if (lua_isinteger(L, -1)) /* not lua_tostring, which would make a string */
    mgrid_fail(&e, s, "%lld", (long long)lua_tointeger(L, -1));
  else if (lua_type(L, -1) == LUA_TNUMBER)
    mgrid_fail(&e, s, "%.14g", lua_tonumber(L, -1));
  else /* never call a script's __tostring */
    mgrid_fail(&e, s, "(error object is a %s value)", luaL_typename(L, -1));
  mgrid_budget_position(&e);
  return mgrid_error_pass(err, &e);
}
