/* SPDX-License-Identifier: MIT
**
** test_lua_host.c - a host with a Lua state of its own: what it hands to scripts and takes from
** them, whoever lets go first, and errors at every allocation of Lua. Under ASan nothing is used
** too late, and nothing is left.
*/
#include "program.h"

#include "moongrid_lua.h"
#include "moongrid_tensor.h"

#include <lauxlib.h>
#include <lualib.h>

typedef struct job {
  mgrid_grid *grid;
  mgrid_family *family;
  mgrid_topology *topology;
  mgrid_plan *plan;
  mgrid_backend *backend;
  mgrid_state *state;
} job;

static job begin(void) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 4 } };
  mgrid_options lazy = MGRID_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  job j;
  lazy.lazy = true;
  j.grid = mgrid_grid_new(mgrid_world(8), 2, dims, &e);
  j.family = mgrid_grid_along(j.grid, 1, &dims[1].name, MGRID_GRID_ORDER, &e);
  j.topology = mgrid_topology_new(8, &e);
  mgrid_topology_add(j.topology, "dp", j.family, &lazy, &e);
  mgrid_topology_add_grid(j.topology, "grid", j.grid, &e);
  j.plan = mgrid_plan_new(j.topology, &e);
  j.backend = mgrid_backend_dry(8, 5, &e);
  j.state = mgrid_materialize(j.plan, j.backend, "job", &e);
  assert_int_equal(e.status, MGRID_OK);
  return j;
}

static void end(const job *j) {
  mgrid_grid_free(j->grid);
  mgrid_family_free(j->family);
  mgrid_topology_free(j->topology);
  mgrid_plan_free(j->plan);
  mgrid_state_free(j->state);
  mgrid_backend_free(j->backend);
}

static lua_State *lua_of_host(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
  lua_setglobal(L, "mg");
  return L;
}

/* Hand everything to scripts, as globals. */
static void hand_over(lua_State *L, const job *j) {
  mgrid_lua_push(L, "Grid", j->grid), lua_setglobal(L, "grid");
  mgrid_lua_push(L, "Family", j->family), lua_setglobal(L, "family");
  mgrid_lua_push(L, "Topology", j->topology), lua_setglobal(L, "topology");
  mgrid_lua_push(L, "Plan", j->plan), lua_setglobal(L, "plan");
  mgrid_lua_push(L, "Job", j->backend), lua_setglobal(L, "job");
  mgrid_lua_push(L, "State", j->state), lua_setglobal(L, "state");
  mgrid_lua_push(L, "Group", mgrid_state_group(j->state, "dp", NULL)), lua_setglobal(L, "group");
}

static int hand_over_protected(lua_State *L) {
  hand_over(L, lua_touserdata(L, 1));
  return 0;
}

static void run(lua_State *L, const char *script) {
  if (luaL_dostring(L, script)) fail_msg("%s", lua_tostring(L, -1));
}

static const char uses_all[] =
    "assert(grid.tp == 2 and tostring(grid 'dp':ranks(0)) == '{0, 2, 4, 6}')\n"
    "assert(family.count == 2 and family == topology.dp)\n"
    "assert(plan:family 'dp'.size == 4 and mg.plan(topology).digest == plan.digest)\n"
    "assert(topology.grid == grid and topology:has 'grid' and not topology:has 'pp')\n"
    "assert(job.rank == 5 and job.world == 8 and job.backend == 'dry')\n"
    "assert(state.rank == 5 and state.dp.position == 2 and state.dp == group)\n"
    "assert(group:next() == 7 and group.size == 4)\n";

static void scripts_use_what_the_host_hands_over(void **unused) {
  (void)unused;
  job j = begin();
  lua_State *L = lua_of_host();
  hand_over(L, &j);
  run(L, uses_all);
  lua_close(L);
  /* all is the host's still */
  assert_int_equal(mgrid_group_size(mgrid_state_group(j.state, "dp", NULL)), 4);
  end(&j);
}

static void scripts_keep_what_the_host_has_freed(void **unused) {
  (void)unused;
  job j = begin();
  lua_State *L = lua_of_host();
  hand_over(L, &j);
  end(&j);
  run(L, uses_all);
  run(L, "state:close() assert(not pcall(function() return state.dp.position end))\n"
         "assert(group.size == 4)\n" /* it holds the state */
         "job:close() assert(not pcall(function() return job.rank end))");
  lua_close(L);
}

static void hosts_keep_what_a_script_has_made(void **unused) {
  (void)unused;
  lua_State *L = lua_of_host();
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_backend_dry(8, 3, &e);
  mgrid_lua_push(L, "Job", b);
  lua_setglobal(L, "job");
  run(L, "local t = mg.topology(mg.world(8))\n"
         "local g = mg.grid(mg.world(8), 'tp-dp', { tp = 2, dp = mg.fill })\n"
         "t.tp, t.grid = g 'tp', g\n"
         "local plan = mg.plan(t)\n"
         "local state = job:materialize(plan, 'script')\n"
         "return plan, state, state.tp, g, g 'dp', t, job");
  mgrid_plan *plan = mgrid_plan_ref(mgrid_lua_to(L, -7, "Plan"));
  mgrid_state *state = mgrid_state_ref(mgrid_lua_to(L, -6, "State"));
  const mgrid_group *group = mgrid_lua_to(L, -5, "Group");
  mgrid_grid *grid = mgrid_grid_ref(mgrid_lua_to(L, -4, "Grid"));
  mgrid_family *family = mgrid_family_ref(mgrid_lua_to(L, -3, "Family"));
  mgrid_topology *topology = mgrid_topology_ref(mgrid_lua_to(L, -2, "Topology"));
  assert_ptr_equal(mgrid_lua_to(L, -1, "Job"), b);
  lua_close(L);
  assert_int_equal(mgrid_plan_world(plan), 8);
  assert_ptr_equal(mgrid_state_group(state, "tp", &e), group);
  assert_int_equal(mgrid_group_position(group), 1);
  assert_int_equal(mgrid_grid_dim(grid, 1).size, 4);
  assert_int_equal(mgrid_family_count(family), 2);
  mgrid_plan *again = mgrid_plan_new(topology, &e);
  assert_non_null(again);
  mgrid_plan_free(again);
  mgrid_topology_free(topology);
  mgrid_family_free(family);
  mgrid_grid_free(grid);
  mgrid_state_free(state);
  mgrid_plan_free(plan);
  mgrid_backend_free(b);
}

static void a_topology_grows_on_both_sides(void **unused) {
  (void)unused;
  job j = begin();
  lua_State *L = lua_of_host();
  mgrid_error e = MGRID_ERROR_INIT;
  hand_over(L, &j);
  run(L, "topology.tp = grid 'tp' assert(#topology == 2)");
  mgrid_topology_add(j.topology, "again", j.family, NULL, &e);
  run(L, "assert(#topology == 3 and topology.again == family)\n"
         "local names = {}\n"
         "for name, f in pairs(topology) do names[#names + 1] = name .. f.count end\n"
         "assert(table.concat(names, ' ') == 'dp2 tp4 again2')\n"
         "local ok, e = pcall(function() return topology.agian end)\n"
         "assert(e:find(\"nearest is 'again'\", 1, true), e)");
  mgrid_plan *p = mgrid_plan_new(j.topology, &e);
  assert_non_null(mgrid_plan_family(p, "tp"));
  mgrid_plan_free(p);
  lua_close(L);
  end(&j);
}

static mgrid_status rack_of(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                            mgrid_error *err) {
  (void)ud, (void)err;
  if (n != 1 || args[0].kind != MGRID_IS_INTEGER) return MGRID_BAD_VALUE;
  *result = mgrid_arg_integer(NULL, args[0].as.integer / 4);
  return MGRID_OK;
}

/* A recipe with a function of the host, which scripts plan and ask, and which outlives the host's
** own share. */
static void scripts_have_the_recipes_of_the_host(void **unused) {
  static const char text[] =
      "return recipe { build = function(world) local t = topology(world)\n"
      "  t.rack = grid(world, 'a-b', { a = rack_of(16), b = fill }) 'a' return t end,\n"
      "queries = { rack = function(state) return rack_of(state.rank) end } }";
  mgrid_function f = mgrid_function_of("rack_of", "1", rack_of, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  lua_State *L = lua_of_host();
  (void)unused;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_lua_push(L, "Recipe", rt);
  lua_setglobal(L, "empty");
  run(L,
      "local ok, why = pcall(empty.plan, empty, 8)\n"
      "assert(why:find('the runtime has no recipe: call mgrid_runtime_load first', 1, true), why)");
  mgrid_runtime_function(rt, &f, &e);
  mgrid_runtime_load(rt, "r", text, sizeof text - 1, &e);
  assert_string_equal(e.message, "");
  assert_ptr_equal((lua_getglobal(L, "empty"), mgrid_lua_to(L, -1, "Recipe")), rt);
  lua_setglobal(L, "layout");
  mgrid_runtime_free(rt);
  run(L, "local plan = layout:plan(8)\n"
         "assert(plan:family 'rack'.size == 4 and layout:ask(plan:dry(6), 'rack') == 1)\n"
         "assert(layout:info().functions[1].version == '1')\n"
         "layout, plan = nil, nil collectgarbage()");
  mgrid_lua_push(L, "Recipe", NULL);
  assert_true(lua_isnil(L, -1));
  assert_null(mgrid_lua_to(L, -1, "Recipe"));
  lua_close(L);
}

static void nothing_is_nil_and_others_are_not_taken(void **unused) {
  (void)unused;
  lua_State *L = lua_of_host();
  mgrid_lua_push(L, "Grid", NULL);
  mgrid_lua_push(L, "State", NULL);
  mgrid_lua_push(L, "Group", NULL);
  assert_true(lua_isnil(L, -1) && lua_isnil(L, -2) && lua_isnil(L, -3));
  lua_newtable(L);
  lua_pushinteger(L, 3);
  lua_newuserdatauv(L, 8, 0);
  int top = lua_gettop(L);
  for (int i = -4; i <= top + 1; i++) {
    if (i == 0) continue;
    assert_null(mgrid_lua_to(L, i, "Grid"));
    assert_null(mgrid_lua_to(L, i, "Family"));
    assert_null(mgrid_lua_to(L, i, "Topology"));
    assert_null(mgrid_lua_to(L, i, "Plan"));
    assert_null(mgrid_lua_to(L, i, "Job"));
    assert_null(mgrid_lua_to(L, i, "State"));
    assert_null(mgrid_lua_to(L, i, "Group"));
    assert_null(mgrid_lua_to(L, i, "Recipe"));
  }
  assert_int_equal(lua_gettop(L), top);
  lua_close(L);
}

static void a_lua_without_the_module_is_an_error(void **unused) {
  (void)unused;
  job j = begin();
  lua_State *L = luaL_newstate();
  lua_pushcfunction(L, hand_over_protected);
  lua_pushlightuserdata(L, &j);
  assert_int_equal(lua_pcall(L, 1, 0, 0), LUA_ERRRUN);
  assert_non_null(strstr(lua_tostring(L, -1),
                         "open moongrid in this Lua first: luaL_requiref(L, \"moongrid\""));
  lua_close(L);
  end(&j);
}

/* Lua's allocator: after *left more growths all fail, so that the retry after an emergency
** collection does; below 0 none. */
static void *failing(void *ud, void *p, size_t was, size_t now) {
  int *left = ud;
  if (now == 0) {
    free(p);
    return NULL;
  }
  if ((!p || now > was) && *left == 0) return NULL;
  if ((!p || now > was) && *left > 0) --*left;
  return realloc(p, now);
}

static void errors_at_every_allocation_leak_nothing(void **unused) {
  (void)unused;
  int n = 0;
  for (int rc = LUA_ERRMEM; rc; n++) {
    int left = -1;
    job j = begin();
#if LUA_VERSION_NUM >= 505
    lua_State *L = lua_newstate(failing, &left, 0);
#else
    lua_State *L = lua_newstate(failing, &left);
#endif
    luaL_openlibs(L);
    luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
    lua_setglobal(L, "mg");
    lua_pushcfunction(L, hand_over_protected);
    lua_pushlightuserdata(L, &j);
    left = n;
    rc = lua_pcall(L, 1, 0, 0);
    left = -1;
    if (!rc) run(L, uses_all);
    if (n % 2) lua_close(L), end(&j);
    if (n % 2 == 0) end(&j), lua_close(L);
    assert_true(n < 10000);
  }
  assert_true(n > 20); /* some places did fail */
}

/* What a user's script does: it makes groups on the host's job, plans the host's recipe, asks, and
** closes. */
static const char makes_groups[] =
    "local t = mg.topology(mg.world(8))\n"
    "local g = mg.grid(mg.world(8), 'tp-dp', { tp = 2, dp = mg.fill })\n"
    "t.tp, t.dp, t.half = g 'tp', g 'dp', g 'dp':split(2)\n"
    "t.odd = t.tp:where(function(ranks) return ranks[1] % 4 == 0 end)\n"
    "local plan = mg.plan(t)\n"
    "local mine = job:materialize(plan, 'script')\n"
    "assert(mine.tp.ranks[1] == 4 and plan:why(0, 1) and plan:text())\n"
    "local also = job:materialize(layout:plan(8))\n"
    "assert(layout:ask(also, 'rack') == 1 and also.rack.size == 4)\n"
    "assert(not pcall(layout.plan, layout, 7) and not pcall(function() return mine.pt end))\n"
    "also:close() mine:close()\n"
    "finished = (finished or 0) + 1\n";

static void raises_at(lua_State *L, lua_Debug *unused) {
  (void)unused;
  lua_sethook(L, NULL, 0, 0);
  luaL_error(L, "stopped");
}

typedef struct refuser {
  int left;
} refuser;

static mgrid_status rack_or_refuse(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                                   mgrid_error *err) {
  refuser *r = ud;
  if (r->left-- == 0) return MGRID_BAD_VALUE;
  return rack_of(NULL, n, args, result, err);
}

/* One Lua of a host with a job and a recipe, whose script ends at place n of a way: at the n-th
** instruction, the n-th allocation of Lua, or the n-th call of the host's function. Return whether
** the script got to its end. */
static bool ends_at(char way, int n) {
  static const char text[] =
      "return recipe { build = function(world) local t = topology(world)\n"
      "  t.rack = grid(world, 'a-b', { a = rack_of(16), b = fill }) 'a' return t end,\n"
      "queries = { rack = function(state) return rack_of(state.rank) end } }";
  refuser refuses = { way == 'f' ? n : -1 };
  int left = -1;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_function f = mgrid_function_of("rack_of", "1", rack_or_refuse, &refuses);
  job j = begin();
#if LUA_VERSION_NUM >= 505
  lua_State *L = lua_newstate(failing, &left, 0);
#else
  lua_State *L = lua_newstate(failing, &left);
#endif
  luaL_openlibs(L);
  luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
  lua_setglobal(L, "mg");
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_function(rt, &f, &e);
  mgrid_runtime_load(rt, "r", text, sizeof text - 1, &e);
  assert_string_equal(e.message, "");
  mgrid_lua_push(L, "Recipe", rt), lua_setglobal(L, "layout");
  hand_over(L, &j);
  if (n % 2) mgrid_runtime_free(rt), end(&j); /* the script is the last owner */
  assert_int_equal(luaL_loadstring(L, makes_groups), LUA_OK);
  if (way == 'i') lua_sethook(L, raises_at, LUA_MASKCOUNT, n + 1);
  if (way == 'a') left = n;
  int rc = lua_pcall(L, 0, 0, 0);
  left = -1;
  lua_sethook(L, NULL, 0, 0);
  refuses.left = -1;
  if (rc) { /* the Lua and what it has are whole: the same script gets to its end */
    lua_settop(L, 0);
    run(L, makes_groups);
  }
  lua_getglobal(L, "finished");
  assert_int_equal(lua_tointeger(L, -1), 1);
  if (n % 2 == 0) mgrid_runtime_free(rt), end(&j);
  lua_close(L);
  return !rc;
}

static void scripts_that_end_anywhere_leave_everything_whole(void **unused) {
  (void)unused;
  static const char ways[] = "iaf";
  static const int at_least[] = { 100, 100, 2 };
  for (int w = 0; ways[w]; w++) {
    int n = 0;
    while (!ends_at(ways[w], n)) assert_true(++n < 20000);
    print_message("# %c: %d places\n", ways[w], n);
    assert_true(n >= at_least[w]);
  }
}

static void moves_go_both_ways(void **unused) {
  (void)unused;
  lua_State *L = lua_of_host();
  run(L, "local function plan(tp)\n"
         "  local t = mg.topology(mg.world(8))\n"
         "  local g = mg.grid(mg.world(8), 'tp-dp', { tp = tp, dp = mg.fill })\n"
         "  t.tp, t.w = g 'tp', mg.tensor { axes = { { 'x', 64 } }, over = g, cut = { x = 'tp' }, "
         "type = 'f32' }\n"
         "  return mg.plan(t)\n"
         "end\n"
         "return mg.move(plan(2), plan(4), { rank = 0 })");
  mgrid_move *m = mgrid_move_ref(mgrid_lua_to(L, -1, "Move"));
  assert_non_null(m);
  lua_close(L);
  assert_int_equal(mgrid_move_ntensors(m), 1);
  L = lua_of_host();
  mgrid_lua_push(L, "Move", m);
  mgrid_move_free(m);
  lua_setglobal(L, "move");
  run(L, "assert(#move.tensors == 1)");
  lua_close(L);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(scripts_use_what_the_host_hands_over),
    cmocka_unit_test(scripts_keep_what_the_host_has_freed),
    cmocka_unit_test(hosts_keep_what_a_script_has_made),
    cmocka_unit_test(a_topology_grows_on_both_sides),
    cmocka_unit_test(scripts_have_the_recipes_of_the_host),
    cmocka_unit_test(nothing_is_nil_and_others_are_not_taken),
    cmocka_unit_test(a_lua_without_the_module_is_an_error),
    cmocka_unit_test(errors_at_every_allocation_leak_nothing),
    cmocka_unit_test(scripts_that_end_anywhere_leave_everything_whole),
    cmocka_unit_test(moves_go_both_ways),
  };
  return run_program("lua_host", tests, argc, argv);
}
