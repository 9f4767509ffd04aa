/* SPDX-License-Identifier: MIT
**
** budget.c - enforces the limits of memory, instructions and time of a recipe, and words their
** errors.
*/
#include "recipe/budget.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

/* Check the clock every STEP instructions, and more often if instructions take long: one
** instruction may go through all of a text or table of LARGE bytes. Blocks up to SMALL bytes are
** allocated without a further check. */
enum { STEP = 1000, STEP_LARGE = 100, STEP_FIRST = 10, LARGE = 64 << 10, SMALL = 1 << 10 };

/* ------------------------------------------------------------------- memory */

static void budget_hook(lua_State *L, lua_Debug *ar);

/* Check the clock every `step` instructions. lua_sethook may be called at any time. */
static void look_after(mgrid_lua_budget *b, int step) {
  if (b->step == step || b->step == 0) return; /* step 0: nothing runs */
  b->step = step;
  lua_sethook(b->L, budget_hook, LUA_MASKCOUNT, step);
}

/* Return whether a block of more than SMALL bytes is allowed. If the block is a text, check the
** limit MGRID_TEXT_MAX, and charge for making the text. */
static bool may_have(mgrid_lua_budget *b, bool text, size_t old, size_t nsize) {
  b->long_text = text && nsize > MGRID_TEXT_MAX + 64; /* plus Lua's own header */
  if (text) mgrid_spend(&b->work, (int64_t)(nsize / 16));
  if (nsize <= LARGE || nsize <= old) return !b->long_text;
  b->large = true;
  look_after(b, STEP_FIRST);
  return !b->long_text;
}

/* Return whether Lua is moving its stack. Since Lua 5.4.5 its frames then hold offsets instead of
** pointers, which lua_getinfo would follow. The first word of a frame locates its function, so a
** low number there is an offset. Addresses in WebAssembly are as low as offsets, but its Lua is
** 5.4.4 (scripts/make/sources). */
static bool is_moving(const lua_Debug *ar) {
#ifdef __wasm__
  return (void)ar, false;
#else
  /* most bytes of a stack: LUAI_MAXSTACK, which the headers of Lua 5.5 do not have */
  enum { MOST = 1000000 * 32 };
  uintptr_t function;
  memcpy(&function, (const void *)ar->i_ci, sizeof function);
  return function < MOST;
#endif
}

/* Keep the position in the recipe when memory is refused, because later Lua has unwound its stack.
** This runs inside the allocator, so it may call only functions that need no memory. */
static void keep_place(mgrid_lua_budget *b) {
  lua_Debug ar;
  /* there may be no Lua state yet; the first position at which memory ran out stays */
  if (!b->L || b->no_memory || !lua_getstack(b->L, 0, &ar) || is_moving(&ar)) return;
  if (mgrid_lua_caller(b->L, &ar))
    snprintf(b->place, sizeof b->place, "%s:%d: ", ar.short_src, ar.currentline);
}

/* Allocate a large block, or any block near the limit. Not inlined, so that usual blocks stay
** fast. */
__attribute__((noinline)) static void *get_block(mgrid_lua_budget *b, void *ptr, bool text,
                                                 size_t old, size_t nsize) {
  bool fits = nsize <= old || b->used + (nsize - old) <= b->limits.memory;
  bool may = nsize <= SMALL || may_have(b, text, old, nsize);
  void *block = fits && may ? b->hooks.allocate(b->hooks.ud, ptr, old, nsize) : NULL;
  if (block) {
    b->used = b->used - old + nsize;
    if (nsize > old) b->refused = 0;
  } else { /* after a refusal Lua collects garbage and asks again; only a second refusal counts */
    keep_place(b);
    b->no_memory |= b->refused == nsize;
    b->refused = nsize;
    b->starved = fits && may;
    if (may) b->long_text = false;
    mgrid_spend(&b->work, (int64_t)(b->used / 64)); /* work of the garbage collection */
    look_after(b, 1);
  }
  return block;
}

void *mgrid_budget_alloc(void *budget, void *ptr, size_t osize, size_t nsize) {
  mgrid_lua_budget *b = budget;
  size_t old = ptr ? osize : 0; /* without a block, osize is a type */
  if (nsize == 0) {
    b->used -= old;
    return ptr ? b->hooks.allocate(b->hooks.ud, ptr, old, 0) : NULL;
  }
  if (nsize <= SMALL && b->refused == 0 && b->used + nsize <= b->limits.memory) {
    void *block = b->hooks.allocate(b->hooks.ud, ptr, old, nsize);
    if (block) {
      b->used += nsize - old;
      return block;
    }
  }
  return get_block(b, ptr, !ptr && osize == LUA_TSTRING, old, nsize);
}

bool mgrid_budget_has(mgrid_lua_budget *b, size_t bytes) {
  if (bytes > b->limits.memory) return false;
  if (b->used <= b->limits.memory - bytes) return true;
  lua_gc(b->L, LUA_GCCOLLECT, 0);
  mgrid_spend(&b->work, (int64_t)(b->used / 64));
  return b->used <= b->limits.memory - bytes;
}

void mgrid_budget_lack(mgrid_lua_budget *b) {
  keep_place(b);
  b->no_memory = true;
  b->starved = b->long_text = false;
}

int mgrid_budget_refuse(lua_State *L, mgrid_lua_budget *b) {
  mgrid_budget_lack(b);
  lua_pushliteral(L, "not enough memory"); /* Lua holds this text already, so it needs no memory */
  return lua_error(L);
}

static mgrid_status no_memory(const mgrid_lua_budget *b, mgrid_error *err) {
  bool mib = b->limits.memory >> 20;
  /* not *err, which may hold an earlier error with its position */
  mgrid_error e = MGRID_ERROR_INIT;
  if (b->starved) return mgrid_oom(err);
  if (b->long_text)
    mgrid_fail(&e, MGRID_LIMIT, "%sthe recipe makes a text of more than %d bytes", b->place,
               MGRID_TEXT_MAX);
  else
    mgrid_fail(&e, MGRID_LIMIT, "%sthe recipe needs more than %zu %s of memory", b->place,
               b->limits.memory >> (mib ? 20 : 10), mib ? "MiB" : "KiB");
  mgrid_budget_position(b->L, &e);
  return mgrid_error_pass(err, &e);
}

/* --------------------------------------------------------------------- time */

mgrid_lua_budget *mgrid_budget_of(lua_State *L) {
  void *b;
  return lua_getallocf(L, &b) == mgrid_budget_alloc ? b : NULL;
}

bool mgrid_budget_spend(mgrid_lua_budget *b, int64_t work) {
  if (mgrid_budget_look(&b->work, work) && !b->no_memory) return true;
  if (!b->over) {
    b->over = true;
    look_after(b, 1);
    if (b->no_memory) /* Lua's own words; mgrid_budget_verdict replaces them */
      snprintf(b->verdict, sizeof b->verdict, "not enough memory");
    else if (b->work.slow)
      mgrid_format(b->verdict, sizeof b->verdict,
                   "the recipe takes more than %g s of processor time", b->work.seconds);
    else
      snprintf(b->verdict, sizeof b->verdict,
               "the recipe runs for more than %" PRIu64 " instructions", b->limits.instructions);
  }
  return false;
}

/* Raise the verdict. The first time, put the position in the recipe before the verdict, so that all
** later errors show this position. */
static void raise_verdict(lua_State *L, mgrid_lua_budget *b) {
  if (!b->placed && !b->no_memory) {
    char text[sizeof b->verdict];
    b->placed = true;
    mgrid_lua_where(L);
    memcpy(text, b->verdict, sizeof text);
    snprintf(b->verdict, sizeof b->verdict, "%.150s%.100s", lua_tostring(L, -1), text);
  }
  lua_pushstring(L, b->verdict);
  lua_error(L);
}

/* Check the budget. Check more often if the instructions since the last check took long, and less
** often if they were fast. In factors of 10: lua_sethook goes through all calls that are active, and
** a recursion may have 200,000 of them. */
static void budget_hook(lua_State *L, lua_Debug *ar) {
  mgrid_lua_budget *b = mgrid_budget_of(L);
  double before = b->work.looked;
  int most = b->large ? STEP_LARGE : STEP;
  (void)ar;
  if (!mgrid_budget_spend(b, b->step)) raise_verdict(L, b);
  double took = b->work.looked - before, processor = 0;
  if (b->work.looked - b->sampled > 1e-2) {
    /* on a busy machine other processes may have taken the time */
    const double now = mgrid_processor_now();
    processor = now - b->processor;
    b->sampled = b->work.looked, b->processor = now;
  }
  if (took > 2e-2 && processor > 2e-2 && b->step > 1)
    look_after(b, b->step > 10 ? b->step / 10 : 1);
  else if (took < 2e-3 && b->step < most)
    look_after(b, 10 * b->step < most ? 10 * b->step : most);
}

mgrid_budget *mgrid_lua_work(lua_State *L) {
  mgrid_lua_budget *b = mgrid_budget_of(L);
  return b ? &b->work : NULL;
}

void mgrid_lua_charge(lua_State *L, int64_t work) {
  mgrid_lua_budget *b = mgrid_budget_of(L);
  if (b && !mgrid_budget_spend(b, work)) raise_verdict(L, b);
}

size_t mgrid_lua_charge_list(lua_State *L, int i, int64_t each) {
  size_t n = lua_rawlen(L, i);
  mgrid_lua_charge(L, n > INT32_MAX ? INT64_MAX : each * (int64_t)n);
  return n;
}

void mgrid_lua_charge_nearest(lua_State *L, const char *name, size_t n) {
  mgrid_lua_charge(L, 8 * (int64_t)(strlen(name) * n)); /* letters times names */
}

void mgrid_lua_say(lua_State *L, const char *text) {
  enum { LINES = 1000, BYTES = 800 }; /* most lines of a call; most bytes of a line */
  mgrid_lua_budget *b = mgrid_budget_of(L);
  if (!b || !b->hooks.log || b->said > LINES) return;
  char where[MGRID_PLACE_MAX + 32] = "", path[MGRID_PLACE_MAX];
  int line;
  mgrid_lua_where(L);
  if (mgrid_budget_place(L, lua_tostring(L, -1), path, &line))
    snprintf(where, sizeof where, "%s:%d: ", path, line);
  lua_pop(L, 1);
  int n = (int)strlen(text), cut = n > BYTES ? BYTES : n;
  /* do not cut inside of a UTF-8 character */
  while (cut < n && cut > 0 && ((unsigned char)text[cut] & 0xC0) == 0x80) cut--;
  if (b->said++ == LINES)
    mgrid_log(&b->hooks, MGRID_LOG_RECIPE, "%s... what is printed from here on is left out", where);
  else
    mgrid_log(&b->hooks, MGRID_LOG_RECIPE, "%s%.*s%s", where, cut, text, cut < n ? "..." : "");
}

/* Keys in the registry of a host's Lua state, which has no budget: the last message raised, and its
** status. */
static const char raised_key = 'r', status_key = 's';

static void note_for_host(lua_State *L, mgrid_status status, const char *text) {
  lua_pushstring(L, text);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &raised_key);
  lua_pushinteger(L, status);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &status_key);
}

mgrid_status mgrid_lua_status(lua_State *L, const char *message) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &raised_key);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &status_key);
  const char *text = lua_tostring(L, -2);
  mgrid_status status = (mgrid_status)lua_tointeger(L, -1);
  size_t length = strlen(message), end = text ? strlen(text) : 0;
  bool same = text && length >= end && strcmp(message + length - end, text) == 0;
  lua_pop(L, 2);
  return same ? status : MGRID_OK;
}

void mgrid_lua_note(lua_State *L, mgrid_status status, const char *text) {
  mgrid_lua_budget *b = mgrid_budget_of(L);
  if (!b) {
    note_for_host(L, status, text);
    return;
  }
  /* a recipe that catches this error must not go on */
  if (status == MGRID_NO_MEMORY) b->no_memory = b->starved = true;
  b->status = status;
  b->length = strlen(text);
  b->text = XXH3_64bits(text, b->length);
  b->source[0] = '\0';
}

void mgrid_budget_quote(lua_State *L, const char *message, const char *source) {
  mgrid_lua_budget *b = mgrid_budget_of(L);
  mgrid_lua_note(L, MGRID_REFUSED, message);
  snprintf(b->source, sizeof b->source, "%s", source);
}

/* Return whether this message ends with the noted one. If not, the recipe has caught that error and
** raised another. */
static bool is_noted(const mgrid_lua_budget *b, const char *message, size_t length) {
  return b->status && length >= b->length
         && XXH3_64bits(message + length - b->length, b->length) == b->text;
}

/* Between two calls, collect garbage if the memory in use is an eighth of the limit or more, and
** has doubled since the last time. If instead a call reached the limit, Lua would collect without
** finalizers, and keep the objects that wait for them. */
static void tidy(lua_State *L, mgrid_lua_budget *b) {
  if (b->used < b->limits.memory / 8 || b->used / 2 < b->swept) return;
  lua_gc(L, LUA_GCCOLLECT, 0);
  b->swept = b->used;
}

void mgrid_budget_start(lua_State *L, mgrid_lua_budget *b, double seconds, double spent) {
  tidy(L, b);
  b->work = mgrid_budget_new(b->limits.instructions, seconds);
  b->work.spent = spent;
  b->sampled = b->work.looked, b->processor = mgrid_processor_now();
  b->over = b->placed = b->no_memory = b->starved = b->long_text = b->large = false;
  b->refused = 0, b->said = 0, b->place[0] = '\0';
  b->status = MGRID_OK, b->source[0] = '\0';
  b->L = L, b->step = STEP;
  lua_sethook(L, budget_hook, LUA_MASKCOUNT, STEP);
}

void mgrid_budget_stop(mgrid_lua_budget *b) {
  b->step = 0;
  mgrid_budget_pause(&b->work);
  lua_sethook(b->L, NULL, 0, 0);
}

void mgrid_budget_go_on(mgrid_lua_budget *b) {
  if (b->step == 0) mgrid_budget_resume(&b->work);
}

mgrid_status mgrid_budget_after(const mgrid_lua_budget *b, mgrid_error *err) {
  if (b->no_memory) return no_memory(b, err);
  return b->over ? mgrid_fail(err, MGRID_LIMIT, "%s", b->verdict) : MGRID_OK;
}

/* ------------------------------------------------------------ error messages */

/* Return whether memory ran out in luaL_Buffer, which table.concat uses: it raises this string
** instead of a memory error. */
static bool is_out_of_memory(lua_State *L) {
  return lua_type(L, -1) == LUA_TSTRING && strcmp(lua_tostring(L, -1), "not enough memory") == 0;
}

/* Return whether the message on the top ends with this text; a position may precede it. */
static bool ends(lua_State *L, const char *text) {
  size_t len, n = strlen(text);
  const char *message = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
  return message && len >= n && strcmp(message + len - n, text) == 0;
}

static const char no_level[] = "C stack overflow"; /* Lua's own words */

bool mgrid_budget_no_level(lua_State *L) { return ends(L, no_level) || ends(L, MGRID_NO_LEVEL); }

/* Push how the function that raised the error was called, such as "method". Then push the name and
** value of each table among the first local variables of this function. */
static void push_call(lua_State *L) {
  enum { LOCALS = 4 };
  lua_Debug ar;
  const char *name;
  if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "n", &ar)) return;
  lua_pushstring(L, ar.namewhat);
  for (int i = 1; i <= LOCALS && (name = lua_getlocal(L, &ar, i)); i++) {
    if (lua_istable(L, -1) && *name != '(')
      lua_pushstring(L, name), lua_insert(L, -2);
    else
      lua_pop(L, 1);
  }
}

static int hint_body(lua_State *L) {
  mgrid_lua_hint(L, "message", lua_gettop(L), 1);
  return 1;
}

int mgrid_lua_message(lua_State *L) {
  const mgrid_lua_budget *b = mgrid_budget_of(L);
  const int top = lua_gettop(L), type = lua_type(L, top);

  if (type == LUA_TSTRING && !ends(L, no_level)) {
    if (b->over || b->no_memory) return 1; /* Lua code for a hint would raise again */
    lua_pushcfunction(L, hint_body);
    lua_pushvalue(L, top);
    push_call(L);
    /* this may fail near the deepest level */
    if (lua_pcall(L, lua_gettop(L) - top - 1, 1, 0)) lua_settop(L, top);
    return 1;
  }
  const char *kind = mgrid_lua_kind(L, top);
  mgrid_lua_where(L);
  if (type == LUA_TSTRING)
    lua_pushliteral(L, MGRID_NO_LEVEL);
  else if (type != LUA_TNUMBER)
    lua_pushfstring(L, "error got %s, not a message such as \"tp must be even\"", kind);
  else if (lua_isinteger(L, top))
    lua_pushvalue(L, top);
  else
    lua_pushnumber(L, mgrid_lua_number(L, top));
  lua_concat(L, 2);
  return 1;
}

/* Cut off a position in the prelude, which does not help a user: "moongrid/recipe.lua:265: text" ->
** "text". */
static const char *without_prelude(const char *message) {
  const char *text = strncmp(message, "moongrid/", 9) == 0 ? strstr(message, ": ") : NULL;
  return text ? text + 2 : message;
}

/* This is outside of any pcall, so nothing here may allocate in the Lua state. */
mgrid_status mgrid_budget_verdict(lua_State *L, const mgrid_lua_budget *b, int rc,
                                  mgrid_error *err) {
  if (rc == LUA_OK && !b->no_memory) return MGRID_OK;
  /* not *err, which may have an earlier error with its position */
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_status s = b->over ? MGRID_LIMIT : MGRID_REFUSED;
  const char *source = "";

  /* b->no_memory: also if the recipe caught the error and raised another */
  if (b->no_memory || rc == LUA_ERRMEM || is_out_of_memory(L)) return no_memory(b, err);

  if (lua_type(L, -1) == LUA_TSTRING) {
    size_t length;
    const char *message = lua_tolstring(L, -1, &length);
    char shown[sizeof e.message]; /* the message with its zero bytes as text */
    int kind = b->status / 100;
    if (!b->over && is_noted(b, message, length)) {
      source = b->source;
      /* a status such as MGRID_USAGE would blame the host for a call that the recipe made */
      if (kind == 1 || kind == 3) s = b->status;
    }
    mgrid_shown(shown, sizeof shown, message, length);
    mgrid_fail(&e, s, "%s", length ? without_prelude(shown) : "an error without a message");
  } else { /* the message handler, which makes text of such an error, could not run */
    mgrid_fail(&e, s, "an error that is a %s", luaL_typename(L, -1));
  }

  mgrid_budget_position(b->L, &e);
  size_t n = strlen(e.message);
  if (*source && n + strlen(source) + 2 < sizeof e.message) sprintf(e.message + n, "\n%s", source);
  return mgrid_error_pass(err, &e);
}
