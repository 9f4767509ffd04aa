/* SPDX-License-Identifier: MIT
**
** closing.c - one rank that runs ../lua/closing.lua in a Lua of its own, with the module linked
** into the program: ASan reports every use of an object that was closed while a method used it, and
** memory that an error leaks. The arguments go to the script.
*/
#include "moongrid_lua.h"
#include "moongrid_mpi.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdio.h>
#include <stdlib.h>

/* Lua's allocator: after `left` more growths all fail, so that the retry after an emergency
** collection does; below 0 none. */
static int left = -1;
static bool failed;

static void *allocate(void *ud, void *p, size_t was, size_t now) {
  (void)ud;
  if (now == 0) {
    free(p);
    return NULL;
  }
  if (!p || now > was) {
    failed |= left == 0;
    if (left == 0) return NULL;
    if (left > 0) left--;
  }
  return realloc(p, now);
}

/* fail_after(growths) -> whether one has failed since the last call */
static int fail_after(lua_State *L) {
  lua_pushboolean(L, failed);
  left = (int)lua_tointeger(L, 1), failed = false;
  return 1;
}

/* open() -> Job, over the backend that is linked into the program: the module would look for a
** library. */
static int open_job(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  if (!b) return luaL_error(L, "%s", e.message);
  mgrid_lua_push(L, "Job", b);
  mgrid_backend_free(b); /* the Job has it */
  return 1;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
#if LUA_VERSION_NUM >= 505
  lua_State *L = lua_newstate(allocate, NULL, 0);
#else
  lua_State *L = lua_newstate(allocate, NULL);
#endif
  luaL_openlibs(L);
  luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
  lua_pushcfunction(L, open_job);
  lua_setglobal(L, "open_job");
  lua_pushcfunction(L, fail_after);
  lua_setglobal(L, "fail_after");
  int status = luaL_loadfile(L, "tests/lua/closing.lua");
  for (int i = 1; i < argc; i++) lua_pushstring(L, argv[i]);
  if (!status) status = lua_pcall(L, argc - 1, 0, 0);
  if (status) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  lua_close(L);
  printf("%sok 1 - objects that are closed while a method uses them\n1..1\n", status ? "not " : "");
  MPI_Finalize();
  return status != LUA_OK;
}
