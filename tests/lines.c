/* SPDX-License-Identifier: MIT
**
** lines.c - with COV=1: which lines of Lua were reached, as gcov says it of C. The linker gives
** these functions all calls of lua_sethook, which begins a recipe's call, and of luaL_newstate
** (--wrap). At its end a process appends a line "CHUNK LINE LINE ..." for each chunk to the file
** LINES.
*/
#include <lauxlib.h>
#include <lua.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNKS = 400, LINES_MAX = 1024 }; /* a file has at most 500 lines */

typedef struct chunk {
  char name[96];
  atomic_bool reached[LINES_MAX];
} chunk;

static chunk chunks[CHUNKS];
static atomic_int count;
static atomic_flag adding = ATOMIC_FLAG_INIT;
static _Atomic lua_Hook of_caller; /* there is one hook, that of budgets */

lua_State *__wrap_luaL_newstate(void);
void __wrap_lua_sethook(lua_State *L, lua_Hook hook, int mask, int n);
lua_State *__real_luaL_newstate(void);
void __real_lua_sethook(lua_State *L, lua_Hook hook, int mask, int n);
#pragma weak __real_luaL_newstate /* not every program that is linked with this file has Lua */
#pragma weak __real_lua_sethook
#pragma weak lua_getinfo

static chunk *find(const char *name) {
  int n = atomic_load(&count);
  for (int i = 0; i < n; i++)
    if (strcmp(chunks[i].name, name) == 0) return &chunks[i];
  return NULL;
}

/* Return the chunk of this name; NULL if there is no room. */
static chunk *chunk_of(const char *name) {
  chunk *c = find(name);
  if (c || strlen(name) >= sizeof c->name) return c;
  while (atomic_flag_test_and_set(&adding)) {}
  c = find(name);
  if (!c && atomic_load(&count) < CHUNKS) {
    c = &chunks[atomic_load(&count)];
    strcpy(c->name, name);
    atomic_fetch_add(&count, 1);
  }
  atomic_flag_clear(&adding);
  return c;
}

static void hook(lua_State *L, lua_Debug *ar) {
  lua_Hook callers = of_caller;
  if (ar->event != LUA_HOOKLINE) {
    callers(L, ar);
    return;
  }
  if (!lua_getinfo(L, "Sl", ar) || *ar->source != '=' || ar->currentline >= LINES_MAX) return;
  chunk *c = chunk_of(ar->source + 1);
  if (c) atomic_store(&c->reached[ar->currentline], true);
}

lua_State *__wrap_luaL_newstate(void) {
  lua_State *L = __real_luaL_newstate();
  if (L) __real_lua_sethook(L, hook, LUA_MASKLINE, 0);
  return L;
}

void __wrap_lua_sethook(lua_State *L, lua_Hook callers, int mask, int n) {
  if (callers) of_caller = callers;
  __real_lua_sethook(L, callers ? hook : NULL, callers ? mask | LUA_MASKLINE : 0, n);
}

__attribute__((destructor)) static void tell(void) {
  int file = atomic_load(&count) ? open(LINES, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
  for (int i = 0; file >= 0 && i < atomic_load(&count); i++) {
    char text[128 + LINES_MAX * 6];
    size_t len = (size_t)sprintf(text, "%s", chunks[i].name);
    for (int line = 0; line < LINES_MAX; line++)
      if (chunks[i].reached[line]) len += (size_t)sprintf(text + len, " %d", line);
    text[len++] = '\n';
    if (write(file, text, len) < 0) break;
  }
  if (file >= 0) close(file);
}
