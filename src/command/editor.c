/* SPDX-License-Identifier: MIT
**
** editor.c - reads lines at the prompt of moongrid shell with libedit or readline, which is looked
** for when the prompt starts.
*/
#include "command/cli.h"

#include "base/files.h"
#include "recipe/bind.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HISTORY = 1000 }; /* most lines of the history */

static const char complete_key = 'c'; /* its address: the key of the function that completes */

/* The functions of libedit, which readline has, too. The struct is global, because these libraries
** pass no data of the caller to a function that completes. */
static struct {
  char *(*readline)(const char *prompt);
  int (*add_history)(const char *line);
  void (*stifle_history)(int lines);
  int (*read_history)(const char *path);
  int (*write_history)(const char *path);
  char **(*matches)(const char *word, char *(*each)(const char *word, int state));
  char **line;  /* the line as typed so far */
  lua_State *L; /* the state that reads a line; candidates are on its top */
  int end, next;
} editor;

/* ------------------------------------------------------------------- completion */

static int editor_ask(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &complete_key);
  lua_pushlstring(L, *editor.line, (size_t)editor.end);
  lua_call(L, 1, 1);
  luaL_checktype(L, -1, LUA_TTABLE);
  return 1;
}

/* Return the next candidate, on the heap. NULL: there are no more. */
static char *next_word(const char *word, int state) {
  (void)word;
  if (state == 0) editor.next = 0;
  lua_rawgeti(editor.L, -1, ++editor.next);
  const char *found = lua_tostring(editor.L, -1);
  char *copy = found ? strdup(found) : NULL;
  lua_pop(editor.L, 1);
  return copy;
}

static char **editor_complete(const char *word, int start, int end) {
  (void)start;
  editor.end = end;
  lua_pushcfunction(editor.L, editor_ask);
  char **found = lua_pcall(editor.L, 0, 1, 0) ? NULL : editor.matches(word, next_word);
  lua_pop(editor.L, 1);
  return found;
}

/* ---------------------------------------------------------------------- library */

static bool editor_find(void *library, const char *name, void *to) {
  void *symbol = dlsym(library, name);
  memcpy(to, &symbol, sizeof symbol); /* ISO C cannot convert to a pointer to a function */
  return symbol;
}

static bool editor_open_library(const char *name) {
  void *over = NULL, *append = NULL, *breaks = NULL, *completion = NULL,
       *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);

  char **(*own)(const char *word, int start, int end) = editor_complete;
  static char marks[] = " \t\n\"'(){}[]+-*/%,;=<>~#|&^";
  char *at = marks;
  if (!library) return false;
  bool all = editor_find(library, "readline", &editor.readline)
             && editor_find(library, "add_history", &editor.add_history)
             && editor_find(library, "stifle_history", &editor.stifle_history)
             && editor_find(library, "read_history", &editor.read_history)
             && editor_find(library, "write_history", &editor.write_history)
             && editor_find(library, "rl_completion_matches", &editor.matches)
             && editor_find(library, "rl_line_buffer", &editor.line)
             && editor_find(library, "rl_attempted_completion_function", &completion)
             && editor_find(library, "rl_attempted_completion_over", &over)
             && editor_find(library, "rl_completion_append_character", &append)
             && editor_find(library, "rl_completer_word_break_characters", &breaks);
  if (!all) return dlclose(library), false;
  memcpy(completion, &own, sizeof own);
  memcpy(append, &(int){ 0 }, sizeof(int));
  memcpy(breaks, &at, sizeof at);
  return true;
}

/* ------------------------------------------------------------------------ words */

/* Write the history, readable for this user only. A failure is ignored. */
static void editor_keep(const char *path) {
  mgrid_output *file = mgrid_output_file(path, MGRID_WRITE_OVER, NULL);
  const char *place = file ? mgrid_output_place(file) : NULL;
  bool good = file && editor.write_history(place) == 0;
  if (good && strcmp(place, path) != 0) good = chmod(place, 0600) == 0; /* not a device */
  mgrid_output_end(file, good ? MGRID_OK : MGRID_OUTPUT, NULL);
}

/* read(prompt) -> the next line, which is added to the history; nil: the end. Upvalue: the path of
** the history */
static int read_line(lua_State *L) {
  const char *path = lua_tostring(L, lua_upvalueindex(1));
  editor.L = L;
  char *line = editor.readline(luaL_checkstring(L, 1));
  if (line && *line) {
    editor.add_history(line);
    if (path) editor_keep(path);
  }
  lua_pushstring(L, line);
  free(line);
  return 1;
}

int cli_editor(lua_State *L) {
  static const char *const libraries[] = { "libedit.so.2", "libreadline.so.8", "libedit.so.0" };
  size_t i = 0, n = sizeof libraries / sizeof *libraries;
  const char *path = luaL_optstring(L, 2, NULL);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  while (i < n && !editor_open_library(libraries[i])) i++;
  if (i == n) return 0;
  editor.stifle_history(HISTORY);
  if (path) editor.read_history(path);
  lua_settop(L, 2);
  lua_pushcclosure(L, read_line, 1);
  lua_rotate(L, 1, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &complete_key);
  return 1;
}
