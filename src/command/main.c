/* SPDX-License-Identifier: MIT
**
** main.c - the command moongrid: a Lua state that runs lua/command, and what it says where that fails.
*/
#include "base/base.h"
#include "command/slice.h"
#include "command/words.h"
#include "moongrid_lua.h"
#include "recipe/bind.h"

#include <lualib.h>
#include <string.h>

/* ------------------------------------------------- subcommands that are C */

enum { COMMANDS_MAX = 8 };

/* List those of slices. Return how many. */
static size_t collect(cli_command *all) {
  size_t n = 0;
  for (const cli_slice *const *s = cli_slices; *s; s++)
    for (const cli_command *const *c = (*s)->commands; c && *c && n < COMMANDS_MAX; c++) all[n++] = **c;
  return n;
}

typedef struct line {
  int         argc;
  char      **argv;
  bool        finished; /* a subcommand of C has flushed stdout, or that failed and was said */
  size_t      count;
  cli_command commands[COMMANDS_MAX];
} line;

/* Set a field of the table on the top; NULL: it has none. */
static void set_text(lua_State *L, const char *field, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, field);
}

/* values() -> the names that an option may have. Upvalue: its row */
static int values(lua_State *L) {
  const cli_option *o = lua_touserdata(L, lua_upvalueindex(1));
  const char       *names[CLI_VALUES_MAX];
  size_t            n = o->values(names);
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) lua_pushstring(L, names[i]), lua_rawseti(L, -2, (lua_Integer)i + 1);
  return 1;
}

static void push_option(lua_State *L, const cli_option *o) {
  lua_newtable(L);
  lua_pushstring(L, o->name);
  lua_rawseti(L, -2, 1);
  lua_pushstring(L, o->value);
  lua_rawseti(L, -2, 2);
  set_text(L, "help", o->help);
  set_text(L, "head", o->head);
  lua_pushboolean(L, o->letter);
  lua_setfield(L, -2, "letter");
  if (!o->values) return;
  lua_pushlightuserdata(L, (void *)(uintptr_t)o);
  lua_pushcclosure(L, values, 1);
  lua_setfield(L, -2, "values");
}

/* Push what the help and the completion of a subcommand need, as tables of lua/command have it. */
static void push_row(lua_State *L, const cli_command *c) {
  lua_newtable(L);
  set_text(L, "name", c->name);
  set_text(L, "takes", c->takes);
  set_text(L, "summary", c->does);
  set_text(L, "about", c->about);
  set_text(L, "notes", c->notes);
  set_text(L, "example", c->sample);
  lua_pushboolean(L, true);
  lua_setfield(L, -2, "recipe");
  if (c->place) lua_pushinteger(L, c->place), lua_setfield(L, -2, "place");
  lua_pushstring(L, c->usage);
  for (const cli_addition *const *a = c->additions; *a; a++) {
    lua_pushfstring(L, "%s\n       %s", lua_tostring(L, -1), (*a)->usage);
    lua_remove(L, -2);
  }
  lua_setfield(L, -2, "usage");
  lua_newtable(L);
  for (int i = 0; i < CLI_OPTIONS_MAX && c->options[i].name; i++)
    push_option(L, &c->options[i]), lua_rawseti(L, -2, i + 1);
  lua_setfield(L, -2, "options");
}

/* c_rows() -> the tables of subcommands that are C, as a list and by their names */
static int c_rows(lua_State *L) {
  const line *l = lua_touserdata(L, lua_upvalueindex(1));
  lua_newtable(L);
  for (size_t i = 0; i < l->count; i++) {
    push_row(L, &l->commands[i]);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, l->commands[i].name);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* c_run(name) -> exit code, of the words of this process */
static int c_run(lua_State *L) {
  line       *l = lua_touserdata(L, lua_upvalueindex(1));
  const char *name = luaL_checkstring(L, 1);
  for (size_t i = 0; i < l->count; i++)
    if (strcmp(l->commands[i].name, name) == 0) {
      mgrid_status s = l->commands[i].run(&l->commands[i], l->argc - 1, l->argv + 1);
      l->finished = true;
      lua_pushinteger(L, (int)s / 100);
      return 1;
    }
  return 0;
}

static void open_rows(lua_State *L, line *l) {
  static const luaL_Reg rows[] = { { "c_rows", c_rows }, { "c_run", c_run }, { NULL, NULL } };
  l->count = collect(l->commands);
  lua_pushlightuserdata(L, l);
  luaL_setfuncs(L, rows, 1);
}

/* ------------------------------------------------------------------------ */

/* Run `require "command.base.main"` with the words of the command line; return the exit code. */
static int run(lua_State *L) {
  line *l = lua_touserdata(L, 1);
  luaL_openlibs(L);
  cli_open_files(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, mgrid_lua_open);
  lua_setfield(L, -2, "moongrid");
  luaL_requiref(L, "host", cli_open_words, 0);
  open_rows(L, l);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "command.base.main");
  lua_call(L, 1, 1);
  lua_createtable(L, l->argc, 0);
  for (int i = 1; i < l->argc; i++) {
    lua_pushstring(L, l->argv[i]);
    lua_rawseti(L, -2, i);
  }
  lua_call(L, 1, 1);
  return 1;
}

/* Say what was raised; return its exit code. An integer is an exit code whose message has been said. */
static int fail(lua_State *L, line *l, int raised) {
  cli         c = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (raised != LUA_ERRMEM && lua_isinteger(L, -1)) return (int)lua_tointeger(L, -1);
  const char  *message = raised == LUA_ERRMEM ? NULL : lua_tostring(L, -1);
  mgrid_status s = message ? mgrid_lua_status(L, message) : MGRID_NO_MEMORY;
  if (s && message)
    e.status = s, snprintf(e.message, sizeof e.message, "%s", message); /* may have lines: that of a recipe, a caret */
  else if (message)
    mgrid_fail(&e, MGRID_REFUSED, "%s", message);
  else
    mgrid_oom(&e);
  if (e.status == MGRID_OUTPUT) l->finished = true; /* what stdout lacks is said below */
  cli_find_launcher(&c);
  cli_say(&c, &e);
  return (int)e.status / 100;
}

int main(int argc, char **argv) {
  line l = { .argc = argc, .argv = argv };
  mgrid_locale_plain(); /* a preloaded library may have set another; printf below writes numbers for other programs */
  lua_State *L = luaL_newstate();
  cli        c = { 0 };
  int        code = MGRID_NO_MEMORY / 100;
  cli_tell_by(L);
  if (L) {
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &l);
    int raised = lua_pcall(L, 1, 1, 0);
    cli_progress_end();
    code = raised ? fail(L, &l, raised) : (int)lua_tointeger(L, -1);
    lua_close(L);
  } else {
    fputs("moongrid: out of memory\n", stderr);
  }
  cli_find_launcher(&c);
  mgrid_status s = l.finished ? MGRID_OK : cli_finish(&c, MGRID_OK);
  return code ? code : (int)s / 100;
}
