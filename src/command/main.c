/* SPDX-License-Identifier: MIT
**
** main.c - the command moongrid: a Lua state that runs lua/command, and what it says where that fails.
*/
#include "base/base.h"
#include "command/complete.h"
#include "command/slice.h"
#include "command/words.h"
#include "moongrid_lua.h"
#include "recipe/bind.h"

#include <lualib.h>
#include <string.h>

/* ------------------------------------------------- subcommands that are C */

/* Those of the core: X(name) stands for command_name of src/command/name.c. */
#define COMMANDS(X) X(run)

#define DECLARE(name) extern const cli_command command_##name;
COMMANDS(DECLARE)

#define ROW(name) &command_##name,
static const cli_command *const way[] = { COMMANDS(ROW) };
enum { WAY = sizeof way / sizeof way[0], COMMANDS_MAX = 32 };

/* List them, with those of slices. Return how many. */
static size_t collect(cli_command *all) {
  size_t n = 0;
  for (size_t i = 0; i < WAY; i++) {
    all[n] = *way[i];
    cli_add(&all[n++]);
  }
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

/* c_rows() -> a list of { name, takes, does } */
static int c_rows(lua_State *L) {
  const line *l = lua_touserdata(L, lua_upvalueindex(1));
  lua_newtable(L);
  for (size_t i = 0; i < l->count; i++) {
    const cli_command *c = &l->commands[i];
    lua_createtable(L, 0, 3);
    lua_pushstring(L, c->name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, c->takes);
    lua_setfield(L, -2, "takes");
    lua_pushstring(L, c->does);
    lua_setfield(L, -2, "summary");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* c_run(name [, help]) -> exit code, of the words of this process or of --help */
static int c_run(lua_State *L) {
  line       *l = lua_touserdata(L, lua_upvalueindex(1));
  char        option_help[] = "--help", *asked[] = { NULL, option_help, NULL };
  const char *name = luaL_checkstring(L, 1);
  bool        help = lua_toboolean(L, 2);
  asked[0] = l->argv[1];
  for (size_t i = 0; i < l->count; i++)
    if (strcmp(l->commands[i].name, name) == 0) {
      mgrid_status s = l->commands[i].run(&l->commands[i], help ? 2 : l->argc - 1, help ? asked : l->argv + 1);
      l->finished = true;
      lua_pushinteger(L, (int)s / 100);
      return 1;
    }
  return 0;
}

/* c_complete() -> exit code: candidates for a subcommand of C */
static int c_complete(lua_State *L) {
  line *l = lua_touserdata(L, lua_upvalueindex(1));
  lua_pushinteger(L, (int)cli_complete(l->commands, l->count, l->argc - 2, l->argv + 2) / 100);
  return 1;
}

static void open_rows(lua_State *L, line *l) {
  static const luaL_Reg rows[] = {
    { "c_rows", c_rows }, { "c_run", c_run }, { "c_complete", c_complete }, { NULL, NULL }
  };
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
