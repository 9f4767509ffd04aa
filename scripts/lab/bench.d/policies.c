/* SPDX-License-Identifier: MIT
**
** policies.c - measure the cost of a decision in Lua, in nanoseconds: of mgrid_policy_call of a
** small function with one argument, and of the same call by Lua's own C interface; of the most
** expensive bundled policy; and of a query of a recipe with many parameters.
**
**     policies ROUNDS
*/
#include "bench.h"
#include "moongrid.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <unistd.h>

enum { TURNS = 20000 };

static const char function[] = "function(state, q) return q.global_batch // 4 end";

static volatile int64_t sink;

/* The call by Lua's own C interface: the table of arguments, lua_pcall, the result. */
static double plain(lua_State *L) {
  double t0 = now();
  for (int turn = 0; turn < TURNS; turn++) {
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, turn);
    lua_setfield(L, -2, "global_batch");
    if (lua_pcall(L, 2, 1, 0)) die(lua_tostring(L, -1));
    sink = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return 1e9 * (now() - t0) / TURNS;
}

static double ours(mgrid_policy *p) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_arg n = MGRID_ARG_INIT;
  double t0 = now();
  for (int turn = 0; turn < TURNS; turn++) {
    mgrid_arg q = mgrid_arg_integer("global_batch", turn);
    if (mgrid_policy_call(p, 1, &q, &e) || mgrid_policy_result(p, NULL, MGRID_IS_INTEGER, &n, &e))
      die(e.message);
    sink = n.as.integer;
  }
  return 1e9 * (now() - t0) / TURNS;
}

/* The bundled policy of the learning rate, which computes a cosine. */
static double bundled(mgrid_policy *p) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_arg rate = MGRID_ARG_INIT;
  double t0 = now();
  for (int turn = 0; turn < TURNS; turn++) {
    mgrid_arg q[] = { mgrid_arg_integer("step", turn), mgrid_arg_integer("steps", TURNS) };
    if (mgrid_policy_call(p, 2, q, &e) || mgrid_policy_result(p, NULL, MGRID_IS_NUMBER, &rate, &e))
      die(e.message);
    sink = rate.as.number > 0;
  }
  return 1e9 * (now() - t0) / TURNS;
}

/* The query of megatron for the rank in the tensor-parallel group. */
static double query(mgrid_runtime *rt, mgrid_state *s) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_arg n = MGRID_ARG_INIT;
  double t0 = now();
  for (int turn = 0; turn < TURNS; turn++) {
    if (mgrid_runtime_ask(rt, s, "tensor_model_parallel_rank", 0, NULL, MGRID_IS_INTEGER, &n, &e))
      die(e.message);
    sink = n.as.integer;
  }
  return 1e9 * (now() - t0) / TURNS;
}

int main(int argc, char **argv) {
  if (argc != 2) die("policies ROUNDS");
  mgrid_error e = MGRID_ERROR_INIT;
  char path[64], code[128];
  snprintf(path, sizeof path, "/tmp/bench-policy-%d.lua", (int)getpid());
  FILE *file = fopen(path, "w");
  if (!file) die("no recipe");
  fprintf(file,
          "return recipe { build = function(world) return topology(world) end, policy = { f = %s,"
          "rate = policies.learning_rate { peak = 1e-3, warmup = 10 } } }",
          function);
  fclose(file);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  if (mgrid_runtime_load(rt, path, NULL, 0, &e)) die(e.message);
  unlink(path);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
  mgrid_backend *b = mgrid_backend_dry(8, 3, &e);
  mgrid_state *s = mgrid_materialize(p, b, "", &e);
  mgrid_policy *f = mgrid_policy_new(rt, s, "f", &e);
  mgrid_policy *rate = mgrid_policy_new(rt, s, "rate", &e);
  if (!f || !rate) die(e.message);
  mgrid_runtime *megatron = mgrid_runtime_new(NULL, NULL, &e);
  const char *sizes[] = { "tp=2", "pp=2" };
  if (mgrid_runtime_load(megatron, "megatron", NULL, 0, &e)) die(e.message);
  mgrid_plan *q = mgrid_runtime_plan(megatron, 8, NULL, 2, sizes, &e);
  mgrid_state *asked = mgrid_materialize(q, b, "", &e);
  if (!asked) die(e.message);
  lua_State *L = luaL_newstate();
  snprintf(code, sizeof code, "return %s", function);
  if (luaL_dostring(L, code)) die(lua_tostring(L, -1));
  for (int round = -1; round < atoi(argv[1]); round++) {
    double lua = plain(L), mine = ours(f), rates = bundled(rate), answer = query(megatron, asked);
    if (round < 0) continue;
    sample(lua, "lua");
    sample(mine, "policy");
    sample(mine - lua, "beyond");
    sample(rates, "bundled");
    sample(answer, "query");
  }
  lua_close(L);
  mgrid_policy_free(f);
  mgrid_policy_free(rate);
  mgrid_state_free(asked);
  mgrid_plan_free(q);
  mgrid_runtime_free(megatron);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return 0;
}
