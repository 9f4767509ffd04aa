/* SPDX-License-Identifier: MIT
**
** host.c - a program that uses moongrid, with or without a Lua of its own (-DWITH_LUA, any
** version). Prints what its own Lua says before and after, and the plan.
**
**     host               linked with libmoongrid
**     host LIBRARY N how it loads that library (-DLOADED) N times over, as "local" or "global"
*/
#include <moongrid.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_LUA
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static lua_State *own;

/* Something that uses strings, tables, closures and the collector of the host's own Lua. */
static void say(const char *when) {
  if (!own) {
    own = luaL_newstate();
    luaL_openlibs(own);
  }
  if (luaL_loadstring(own, "local t = {} for i = 1, 20000 do t[#t + 1] = tostring(i):rep(3) end\n"
                           "collectgarbage() return _VERSION .. ' ' .. #table.concat(t)")
      || lua_pcall(own, 0, 1, 0)) {
    printf("%s: %s\n", when, lua_tostring(own, -1));
    exit(1);
  }
  printf("%s: %s\n", when, lua_tostring(own, -1));
  lua_settop(own, 0);
}
#else
static void say(const char *when) { (void)when; }
#endif

/* How many mapped files have the word in their names. */
static int mapped(const char *word) {
  char line[4096];
  int n = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) n += strstr(line, word) != NULL;
  if (maps) fclose(maps);
  return n;
}

#ifdef LOADED
#define CALL(name) ((__typeof__(&name))(uintptr_t)dlsym(library, #name))
#else
#define CALL(name) name
#endif

static int plan(void *library) {
  static const char *const args[] = { "tp=2", "pp=2" };
  mgrid_error e = MGRID_ERROR_INIT;
  char digest[33];
  (void)library;
  mgrid_runtime *rt = CALL(mgrid_runtime_new)(NULL, NULL, &e);
  CALL(mgrid_runtime_load)(rt, "megatron", NULL, 0, &e);
  mgrid_plan *p = CALL(mgrid_runtime_plan)(rt, 16, NULL, 2, args, &e);
  mgrid_backend *b = CALL(mgrid_backend_dry)(16, 5, &e);
  mgrid_state *s = CALL(mgrid_materialize)(p, b, "host", &e);
  mgrid_arg rank = MGRID_ARG_INIT;
  CALL(mgrid_runtime_ask)
  (rt, s, "tensor_model_parallel_rank", 0, NULL, MGRID_IS_INTEGER, &rank, &e);
  CALL(mgrid_plan_digest)(p, digest);
  printf("%s rank %d %s\n", digest, rank.kind == MGRID_IS_INTEGER ? (int)rank.as.integer : -1,
         e.message);
  CALL(mgrid_runtime_free)(rt); /* before the plan and the state that it made */
  CALL(mgrid_state_free)(s);
  CALL(mgrid_backend_free)(b);
  CALL(mgrid_plan_free)(p);
  return e.status;
}

int main(int argc, char **argv) {
  void *library = NULL;
  int failed = 0, times = argc > 2 ? atoi(argv[2]) : 1;
  say("before");
#ifdef WITH_LUA
  printf("what speaks Lua is here: %d\n", mapped("libmoongrid_lua"));
#else
  printf("what speaks Lua is here: %d\n", mapped("liblua") + mapped("libmoongrid_lua"));
#endif
  for (int i = 0; i < times && !failed; i++) {
#ifdef LOADED
    library =
        dlopen(argv[1], RTLD_NOW | (strcmp(argv[3], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!library) printf("%s\n", dlerror());
    if (!library) return 1;
#endif
    failed = plan(library);
#ifdef LOADED
    dlclose(library);
    if (i == 0 || i == times - 1) printf("files: %d\n", mapped("moongrid"));
#endif
  }
  say("after");
#ifdef WITH_LUA
  lua_close(own);
#endif
  return failed != 0;
}
