/* SPDX-License-Identifier: MIT
**
** tell.c - what subcommands that are C print of a plan is printed by the Lua of the command. It goes with the last of them.
*/
#include "command/cli.h"
#include "command/words.h"
#include "recipe/bind.h"

static lua_State *command; /* of this process */

void cli_tell_by(lua_State *L) { command = L; }

typedef struct telling {
  const char       *function, *word, *color;
  const mgrid_plan *plan;
} telling;

static int tell(lua_State *L) {
  const telling *t = lua_touserdata(L, 1);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "command.base.overview");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "for_c");
  lua_pushstring(L, t->function);
  mgrid_plan **box = mgrid_lua_new_plan(L);
  *box = mgrid_plan_ref(t->plan);
  lua_pushstring(L, t->word);
  lua_pushstring(L, t->color);
  lua_call(L, 4, 0);
  return 0;
}

static int help(lua_State *L) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "command.base.help");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "of_c");
  lua_pushstring(L, lua_touserdata(L, 1));
  lua_call(L, 1, 0);
  return 0;
}

static mgrid_status call(lua_CFunction f, const void *with, mgrid_error *err) {
  lua_pushcfunction(command, f);
  lua_pushlightuserdata(command, (void *)(uintptr_t)with);
  if (lua_pcall(command, 1, 0, 0) == LUA_OK) return MGRID_OK;
  const char  *message = lua_tostring(command, -1);
  mgrid_status s = message ? mgrid_lua_status(command, message) : MGRID_NO_MEMORY;
  mgrid_fail(err, s ? s : MGRID_REFUSED, "%s", message ? message : "out of memory");
  lua_pop(command, 1);
  return s ? s : MGRID_REFUSED;
}

mgrid_status cli_tell(const cli *c, const char *function, const mgrid_plan *p, const char *word, mgrid_error *err) {
  return call(tell, &(telling){ function, word, c->color, p }, err);
}

mgrid_status cli_help(const cli *c) {
  mgrid_error err = MGRID_ERROR_INIT;
  if (call(help, c->command->name, &err)) cli_say(c, &err);
  return cli_finish(c, err.status);
}
