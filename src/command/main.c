/* SPDX-License-Identifier: MIT
**
** main.c - the command moongrid: a Lua state that runs lua/command, and what to print if that
** fails.
*/
#include "command/cli.h"
#include "moongrid_lua.h"
#include "recipe/bind.h"

#include <inttypes.h>

typedef struct line {
  int argc;
  char **argv;
} line;

/* Run `require "command.base.main"` with the words of the command line. Return the exit code, and
** whether this process may be a rank of a job. */
static int main_run(lua_State *L) {
  const line *l = lua_touserdata(L, 1);
  mgrid_lua_open_whole(L);
  cli_open_files(L);
  luaL_requiref(L, "host", cli_open_words, 0);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "command.base.main");
  lua_call(L, 1, 1);
  lua_createtable(L, l->argc, 0);
  for (int i = 1; i < l->argc; i++) {
    lua_pushstring(L, l->argv[i]);
    lua_rawseti(L, -2, i);
  }
  lua_call(L, 1, 2);
  return 2;
}

/* Print an error that all ranks have, on rank 0; return its exit code. */
static int main_say(mgrid_status status, const char *message) {
  const mgrid_launched l = mgrid_launcher();
  if (l.by && l.rank == 0)
    fprintf(stderr, "moongrid: [rank %" PRId64 "/%" PRId64 "] %s\n", l.rank, l.size, message);
  else if (!l.by)
    fprintf(stderr, "moongrid: %s\n", message);
  return (int)status / 100;
}

/* Print the error that was raised, and return its exit code. If an integer was raised, it is the
** exit code, and the message has been printed. Set *said if the error was that stdout failed. */
static int fail(lua_State *L, int raised, bool *said) {
  mgrid_error e = MGRID_ERROR_INIT;
  if (raised != LUA_ERRMEM && lua_isinteger(L, -1)) return (int)lua_tointeger(L, -1);
  const char *message = raised == LUA_ERRMEM ? NULL : lua_tostring(L, -1);
  mgrid_status s = message ? mgrid_lua_status(L, message) : MGRID_NO_MEMORY;
  *said = s == MGRID_OUTPUT;
  /* a message may have lines: those of a recipe, and carets */
  if (s && message) return main_say(s, message);
  if (message)
    mgrid_fail(&e, MGRID_REFUSED, "%s", message);
  else
    mgrid_oom(&e);
  return main_say(e.status, e.message);
}

/* Whether to free memory at the end. lua_close would take a tenth of the time of a plan, and the
** process frees its memory anyway. But after an error, or if there may be a job, lua_close is
** needed to leave the job. */
#ifdef __SANITIZE_ADDRESS__
enum { FREES = true }; /* because the sanitizer looks for leaks */
#else
enum { FREES = false };
#endif

/* Flush stdout. A full disk or a closed pipe is an error. */
static int main_finish(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  mgrid_unwritten(&e);
  return main_say(e.status, e.message);
}

int main(int argc, char **argv) {
  line l = { argc, argv };
  bool said = false;
  /* a preloaded library may have set another locale, and printf writes numbers for other
  ** programs */
  mgrid_locale_plain();
  lua_State *L = luaL_newstate();
  int code = MGRID_NO_MEMORY / 100;
  if (L) {
    lua_pushcfunction(L, main_run);
    lua_pushlightuserdata(L, &l);
    int raised = lua_pcall(L, 1, 2, 0);
    cli_progress_end();
    code = raised ? fail(L, raised, &said) : (int)lua_tointeger(L, -2);
    if (FREES || raised || lua_toboolean(L, -1)) lua_close(L);
  } else {
    fputs("moongrid: out of memory\n", stderr);
  }
  int unwritten = said ? 0 : main_finish();
  return code ? code : unwritten;
}
