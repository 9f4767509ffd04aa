/* SPDX-License-Identifier: MIT
**
** test_memory.c - every allocation of a whole run fails once: the call that needed it
** returns "out of memory", nothing crashes, and (under ASan) nothing leaks. The linker
** routes the library's malloc, calloc and realloc through this file.
*/
#include "program.h"

#include "comm/state.h"
#include "recipe/runtime.h"
#include "moongrid_tensor.h"
#include "results.h"

#include <unistd.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static long until_failure = -1; /* allocations left before one fails; -1: none does */

static bool fails(void) { return until_failure >= 0 && until_failure-- == 0; }

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t size) { return fails() ? NULL : __real_realloc(p, size); }

static uint64_t digest[2]; /* of the plan that a body made last, if it makes one */

static void keep_digest(const mgrid_plan *p) { digest[0] = p->digest[0], digest[1] = p->digest[1]; }

/* Run `body` with the 1st, 2nd, 3rd, ... allocation failing until it needs no more of them.
** It returns MGRID_OK or the status of the call that failed. */
static void sweep(mgrid_status (*body)(mgrid_error *err)) {
  long n = 0;
  mgrid_error none = MGRID_ERROR_INIT;
  assert_int_equal(body(&none), MGRID_OK);
  const uint64_t whole[2] = { digest[0], digest[1] };
  for (bool done = false; !done; n++) {
    mgrid_error err = MGRID_ERROR_INIT;
    until_failure = n;
    mgrid_status s = body(&err);
    done = until_failure >= 0; /* this one was not reached */
    if (s == MGRID_OK && memcmp(whole, digest, sizeof whole) != 0)
      fail_msg("allocation %ld: the plan is another", n);
    until_failure = -1;
    if (done) {
      assert_int_equal(s, MGRID_OK);
    } else if (s != MGRID_OK) { /* success in spite of the failure (a hint left out) is fine, too */
      if (s / 100 != MGRID_LIMIT / 100 || !strstr(err.message, "memory"))
        fail_msg("allocation %ld: status %d, '%s'", n, (int)s, err.message);
    }
    assert_true(n < 200000);
  }
  assert_true(n > 10);
  print_message("# allocations: %ld failed\n", n - 1);
}

static int count_text(void *ud, const char *text, size_t len) {
  (void)text;
  *(size_t *)ud += len;
  return 0;
}

/* Every form of family, through topology, plan, printing and a dry state. */
static mgrid_status whole_way(mgrid_error *err) {
  enum { FAMILIES = 23 };
  mgrid_dim dims[] = { { "tp", 2 }, { "pp", 4 }, { "dp", MGRID_FILL } };
  const char *const names[] = { "tp", "pp", "dp" };
  const int64_t first[] = { 0 }, rest[] = { 1, 2, 3 }, gone[] = { 5, 9 }, first_last[] = { 0, -1 },
                some[] = { 0, 1, 3 }, starts[] = { 0, 2, 4 }, sizes[] = { 1, 2 },
                order[] = { 3, 1, 2, 0 }, low_half[] = { 0, -1, 0 }, high_half[] = { 1, -1, -1 };
  const int64_t ranks[] = { 0, 5, 5, 9 };
  size_t length = 0;
  mgrid_status s = MGRID_LIMIT;
  mgrid_family *f[FAMILIES] = { 0 }, *halves[6] = { 0 };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(16), 3, dims, err);
  mgrid_topology *t = g ? mgrid_topology_new(16, err) : NULL;
  mgrid_plan *p = NULL;
  mgrid_backend *b = NULL;
  mgrid_state *state = NULL;
  if (t && (f[0] = mgrid_grid_along(g, 1, &names[1], MGRID_GRID_ORDER, err))
      && (f[1] = mgrid_family_pick(f[0], 3, some, err))
      && (f[2] = mgrid_family_neighbours(f[0], 1, true, err))
      && (f[3] = mgrid_family_table(mgrid_world(16), 2, starts, ranks, MGRID_COVER, err))
      && (f[4] = mgrid_family_twin(f[1], err)) && (f[5] = mgrid_family_lists(f[0], err))
      && (f[6] = mgrid_grid_along(g, 2, &names[1], MGRID_AS_WRITTEN, err))
      && (f[7] = mgrid_family_bundle(f[6], 2, err))
      && mgrid_family_split(f[6], 4, false, false, &halves[0], &halves[1], err) == MGRID_OK
      && (f[8] = mgrid_family_union(1, (const mgrid_family *const *)&halves[0], err))
      && mgrid_family_split(f[8], 2, false, false, &halves[2], &halves[3], err) == MGRID_OK
      && (f[9] = mgrid_family_pick(f[8], 1, first, err))
      && (f[10] = mgrid_family_pick(f[8], 3, rest, err))
      && (f[11] = mgrid_family_zip(2, (const mgrid_family *const *)&f[9], false, err))
      && (f[12] = mgrid_family_without(f[0], 2, gone, err))
      && (f[13] = mgrid_family_pick(f[11], 2, first_last, err))
      && (f[14] = mgrid_family_segments(f[1], 2, sizes, err))
      && (f[15] = mgrid_family_pick(f[14], 1, first, err))
      && mgrid_family_split(f[1], 1, false, true, &halves[4], &halves[5], err) == MGRID_OK
      && (f[16] = mgrid_family_bundle(f[1], 2, err))
      && (f[17] = mgrid_family_renumber(f[1], 4, order, err))
      && (f[18] = mgrid_family_parse(mgrid_world(16), "(3,2):(2,8) x 2:3", err))
      && (f[19] = mgrid_family_where(f[5], g, low_half, err))
      && (f[20] = mgrid_family_where(f[0], g, high_half, err))
      && (f[21] = mgrid_family_zip(2, (const mgrid_family *const *)&f[19], true, err))
      && (f[22] = mgrid_family_closure(4, (const mgrid_family *const *)&f[2], err))) {
    mgrid_options o = MGRID_OPTIONS_INIT;
    o.nccl = "max_ctas=4 min_ctas=2";
    o.cartesian = "pp:4:periodic dp:2";
    o.windows = "kv=4096 grads=64", o.device = "barriers=2";
    s = mgrid_topology_add_grid(t, "grid", g, err);
    if (!s) s = mgrid_topology_param(t, "tp", "2", err);
    if (!s) s = mgrid_topology_recipe(t, "made in C", err);
    char name[] = "a";
    for (int i = 0; i < FAMILIES && !s; i++, name[0]++)
      s = mgrid_topology_add(t, name, f[i], i == 6 ? &o : NULL, err);
    if (!s) s = (p = mgrid_plan_new(t, err)) ? MGRID_OK : MGRID_LIMIT;
    if (!s) keep_digest(p);
    if (!s) s = mgrid_plan_print_json(p, -1, count_text, &length, err);
    if (!s) s = mgrid_plan_print_json(p, 3, count_text, &length, err);
    if (!s) s = mgrid_plan_why(p, 0, 3, true, count_text, &length, err);
    if (!s) s = mgrid_plan_why(p, 0, mgrid_plan_world(p) - 1, false, count_text, &length, err);
    if (!s) s = mgrid_plan_print_schedule(p, -1, count_text, &length, err);
    if (!s) s = mgrid_plan_check(p, NULL, err);
    if (!s) s = (b = mgrid_backend_dry(16, 3, err)) ? MGRID_OK : MGRID_LIMIT;
    if (!s) s = (state = mgrid_materialize(p, b, "state", err)) ? MGRID_OK : MGRID_LIMIT;
  }
  mgrid_state_free(state);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  for (int i = 0; i < FAMILIES; i++) mgrid_family_free(f[i]);
  for (int i = 0; i < 6; i++) mgrid_family_free(halves[i]);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
  /* without memory for the text the output ends early, which the printer reports as not written */
  if (s == MGRID_OUTPUT) mgrid_oom(err);
  return s;
}

/* Lists of concurrent families through refusals, removal, a plan, its resources, JSON and a
** difference. */
static mgrid_status concurrent_way(mgrid_error *err) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", MGRID_FILL } };
  const char *const names[] = { "dp", "ep", "tp", "x" };
  size_t length = 0;
  mgrid_resources r = MGRID_RESOURCES_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(16), 2, dims, err);
  mgrid_family *tp = mgrid_grid_along(g, 1, &names[2], MGRID_GRID_ORDER, err),
               *dp = mgrid_grid_along(g, 1, &names[0], MGRID_GRID_ORDER, err);
  mgrid_topology *t = mgrid_topology_new(16, err);
  mgrid_plan *p = NULL, *q = NULL;
  mgrid_error refused = MGRID_ERROR_INIT;
  mgrid_status s = t && tp && dp ? MGRID_OK : MGRID_LIMIT;
  for (int i = 0; i < 4 && !s; i++)
    s = mgrid_topology_add(t, names[i], i == 2 ? tp : dp, NULL, err);
  if (!s) s = mgrid_topology_concurrent(t, 2, names, err);
  if (!s) s = mgrid_topology_concurrent(t, 3, names + 1, err);
  if (!s)
    s = mgrid_concurrent_add(t, 2, (const char *[]){ "x", "dp" }, NULL, &refused) ? MGRID_OK
                                                                                  : MGRID_LIMIT;
  if (!s) s = (p = mgrid_plan_new(t, err)) ? MGRID_OK : MGRID_LIMIT;
  if (!s) mgrid_topology_remove(t, "ep");
  if (!s) s = (q = mgrid_plan_new(t, err)) ? MGRID_OK : MGRID_LIMIT;
  if (!s) s = mgrid_plan_diff(p, q, 0, NULL, count_text, &length, err);
  if (!s) s = mgrid_plan_print(p, count_text, &length, err);
  if (!s) s = mgrid_plan_print_json(q, -1, count_text, &length, err);
  if (!s) s = mgrid_plan_resources(p, 3, NULL, &r, err);
  mgrid_plan_free(p);
  mgrid_plan_free(q);
  mgrid_topology_free(t);
  mgrid_family_free(tp);
  mgrid_family_free(dp);
  mgrid_grid_free(g);
  if (s == MGRID_OUTPUT) mgrid_oom(err);
  return s;
}

/* Grids over a list and over modes, grids out of them, and families along their dims, by list and
** by rule. */
static mgrid_status grids_way(mgrid_error *err) {
  enum { GRIDS = 8 };
  const mgrid_dim dims[] = { { "a", 2 }, { "b", 2 }, { "c", MGRID_FILL } },
                  two[] = { { "x", 2 }, { "y", 1 } };
  const char *const names[] = { "a", "b", "c" }, *const renamed[] = { NULL, "d", NULL },
                    *const names_of_part[] = { "a", "c" };
  const int64_t starts[] = { 0, 8 }, at[] = { -1, 1, -1 };
  const int64_t ranks[] = { 7, 6, 5, 4, 3, 2, 1, 9 };
  size_t length = 0;
  mgrid_grid *g[GRIDS] = { mgrid_grid_new(mgrid_world(8), 3, dims, err) };
  mgrid_family *all = mgrid_grid_along(g[0], 3, names, MGRID_AS_WRITTEN, err);
  mgrid_family *list = mgrid_family_table(mgrid_world(10), 1, starts, ranks, MGRID_PARTIAL, err);
  mgrid_family *tables[2] = { 0 };
  mgrid_topology *t = mgrid_topology_new(10, err);
  mgrid_plan *p = NULL;
  mgrid_backend *b = mgrid_backend_dry(10, 9, err);
  mgrid_state *state = NULL;
  mgrid_status s = MGRID_LIMIT;
  g[1] = mgrid_grid_over(all, 3, dims, err);
  g[2] = mgrid_grid_over(list, 3, dims, err);
  g[3] = mgrid_grid_at(g[1], at, err);
  g[4] = mgrid_grid_at(g[2], at, err);
  g[5] = mgrid_grid_unflatten(g[2], "b", 2, two, err);
  g[6] = mgrid_grid_flatten(g[4], "one", 2, names_of_part, err);
  g[7] = mgrid_grid_rename(g[2], renamed, err);
  tables[0] = mgrid_grid_along(g[2], 2, names, MGRID_GRID_ORDER, err);
  tables[1] = mgrid_grid_along(g[4], 1, &names[2], MGRID_GRID_ORDER, err);
  bool made = t && b && tables[0] && tables[1];
  for (int i = 0; i < GRIDS; i++) made &= g[i] != NULL;
  if (made) s = mgrid_topology_add_grid(t, "mesh", g[2], err);
  if (!s) s = mgrid_topology_add(t, "ab", tables[0], NULL, err);
  if (!s) s = (p = mgrid_plan_new(t, err)) ? MGRID_OK : MGRID_LIMIT;
  if (!s) keep_digest(p);
  if (!s) s = mgrid_plan_print_json(p, -1, count_text, &length, err);
  if (!s) s = (state = mgrid_materialize(p, b, NULL, err)) ? MGRID_OK : MGRID_LIMIT;
  mgrid_grid *slice = s ? NULL : mgrid_state_submesh(state, "mesh", 2, names, err);
  if (!s && !slice) s = MGRID_LIMIT;
  mgrid_grid_free(slice);
  mgrid_state_free(state);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  for (int i = 0; i < GRIDS; i++) mgrid_grid_free(g[i]);
  for (int i = 0; i < 2; i++) mgrid_family_free(tables[i]);
  mgrid_family_free(list);
  mgrid_family_free(all);
  if (s == MGRID_OUTPUT) mgrid_oom(err);
  return s;
}

static mgrid_status plan_recipe(const char *recipe, int64_t world, size_t n,
                                const char *const *args, mgrid_error *err) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, err);
  mgrid_status s = rt ? mgrid_runtime_load(rt, recipe, NULL, 0, err) : MGRID_LIMIT;
  mgrid_plan *p = s ? NULL : mgrid_runtime_plan(rt, world, NULL, n, args, err);
  if (!s && !p) s = err->status;
  if (p) keep_digest(p);
  /* Jansson has one error for both */
  if (s == MGRID_USAGE && strstr(err->message, "UTF-8")) s = mgrid_oom(err);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return s;
}

static mgrid_status recipe_way(mgrid_error *err) {
  const char *args[] = { "tp=2", "pp=4", "use_fp8=true" };
  return plan_recipe("megatron_deepspeed", 16, 3, args, err);
}

/* Of tables, which become rules where there is memory to see that they can. */
static mgrid_status tables_way(mgrid_error *err) {
  return plan_recipe("deepspeed", 16, 0, NULL, err);
}

static mgrid_status echo(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                         mgrid_error *err) {
  (void)ud, (void)err;
  if (n > 0) *result = args[0];
  return MGRID_OK;
}

/* A function of the host that a recipe calls with values of many kinds. */
static mgrid_status function_way(mgrid_error *err) {
  static const char text[] =
      "return recipe { build = function(world)\n"
      "  local got = echo { { 1, 2 }, { 0.5 }, { a = 'b', c = { 'd', { e = {} } } } }\n"
      "  local t = topology(world)\n"
      "  t[got[3].c[1]] = grid(world, 'a', { a = fill }) 'a' return t end }";
  mgrid_function f = mgrid_function_of("echo", "1", echo, NULL);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, err);
  mgrid_status s = mgrid_runtime_function(rt, &f, err);
  if (!s) s = mgrid_runtime_load(rt, "r", text, sizeof text - 1, err);
  mgrid_plan *p = s ? NULL : mgrid_runtime_plan(rt, 8, NULL, 0, NULL, err);
  if (p) keep_digest(p);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return err->status;
}

static const char *agreeing; /* the path of a recipe with a policy that all ranks agree on */

/* A result that could not be compared for lack of memory is not another result. */
static mgrid_status agreed_way(mgrid_error *err) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, err);
  mgrid_status s = rt ? mgrid_runtime_load(rt, agreeing, NULL, 0, err) : MGRID_LIMIT;
  mgrid_plan *p = s ? NULL : mgrid_runtime_plan(rt, 4, NULL, 0, NULL, err);
  mgrid_backend *b = p ? mgrid_backend_dry(4, 1, err) : NULL;
  mgrid_state *state = b ? mgrid_materialize(p, b, NULL, err) : NULL;
  mgrid_policy *decide = state ? mgrid_policy_new(rt, state, "decide", err) : NULL;
  s = decide ? mgrid_policy_call(decide, 0, NULL, err) : err->status;
  if (s == MGRID_BAD_VALUE || s == MGRID_DISAGREE)
    fail_msg("no memory, and told is: %s", err->message);
  mgrid_policy_free(decide);
  mgrid_state_free(state);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return s;
}

static mgrid_status settings_way(mgrid_error *err) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, err);
  mgrid_status s = rt ? mgrid_runtime_load(rt, "optimum_habana", NULL, 0, err) : MGRID_LIMIT;
  mgrid_plan *p = s ? NULL : mgrid_runtime_plan(rt, 8, NULL, 0, NULL, err);
  mgrid_backend *b = p ? mgrid_backend_dry(8, 0, err) : NULL;
  mgrid_state *state = b ? mgrid_materialize(p, b, NULL, err) : NULL;
  mgrid_arg evaluation = mgrid_arg_boolean("training", false);
  mgrid_arg answer = MGRID_ARG_INIT;
  if (state) s = mgrid_runtime_set(rt, state, &evaluation, err);
  if (state && !s)
    s = mgrid_runtime_ask(rt, state, "is_training_mode", 0, NULL, MGRID_IS_JSON, &answer, err);
  if (state && !s && !mgrid_runtime_group(rt, state, "get_data_parallel_group", 0, NULL, err))
    s = err->status;
  if (!state) s = err->status;
  mgrid_state_free(state);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return s;
}

static int take_piece(void *ud, const mgrid_move_piece *piece) {
  *(int64_t *)ud += piece->bytes;
  return 0;
}

/* The plan of a tensor of f32 whose first axis is cut in parts, or with `cyclic` of bf16, in blocks
** and held by a family. */
static mgrid_plan *tensor_plan(const mgrid_dim *dims, bool cyclic, mgrid_error *err) {
  static const char *const by[] = { "tp", "dp" }, *const by_pp[] = { "pp" },
                           *const all[] = { "tp", "dp", "pp" };
  static const int64_t parts[] = { 6, 6 }, bounds[] = { 0, 3, 4, 12 },
                       owners[] = { 2, 0, 0, 1, 2, 2 };
  mgrid_tensor_axis axis[] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
  axis[0].name = "x", axis[0].length = 12, axis[0].ndims = 2, axis[0].dims = by;
  axis[1].name = "y", axis[1].length = 12, axis[1].ndims = 1, axis[1].dims = by_pp;
  axis[0].nparts = cyclic ? 0 : 2, axis[0].parts = parts;
  axis[0].cutting = cyclic ? MGRID_CUT_CYCLIC : MGRID_CUT_EVEN, axis[0].block = 2;
  axis[1].cutting = cyclic ? MGRID_CUT_OWNERS : MGRID_CUT_BOUNDS, axis[1].nbounds = 4,
  axis[1].bounds = bounds;
  axis[1].unit = cyclic ? 2 : 1, axis[1].nowners = 6, axis[1].owners = owners;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(12), 3, dims, err);
  mgrid_family *on = g ? mgrid_grid_along(g, 3, all, MGRID_GRID_ORDER, err) : NULL;
  mgrid_tensor *tensor =
      on ? mgrid_tensor_new(g, cyclic ? "bf16" : "f32", 2, axis, cyclic ? on : NULL, err) : NULL;
  mgrid_topology *t = tensor ? mgrid_topology_new(12, err) : NULL;
  mgrid_status s = t ? mgrid_topology_add_tensor(t, "w", tensor, err) : MGRID_LIMIT;
  /* and one that is laid behind itself, with ends inside, or cut by a dim more */
  axis[0].ndims = cyclic;
  mgrid_tensor *twice[2] = { NULL },
               *half = s ? NULL : mgrid_tensor_new(g, "f32", 2, axis, NULL, err),
               *flat[2] = { half, half };
  if (half)
    s = mgrid_tensor_flatten(2, (const mgrid_tensor *const *)flat, 1, by + cyclic, 5, twice, err);
  if (half && !s) s = mgrid_topology_add_tensor(t, "flat", twice[1], err);
  mgrid_plan *p = half && !s ? mgrid_plan_new(t, err) : NULL;
  for (int i = 0; i < 2; i++) mgrid_tensor_free(twice[i]);
  mgrid_tensor_free(half);
  mgrid_topology_free(t);
  mgrid_tensor_free(tensor);
  mgrid_family_free(on);
  mgrid_grid_free(g);
  return p;
}

/* A move between grids that do not fit into each other, in rounds and piece by piece. */
static mgrid_status moves_way(mgrid_error *err) {
  const mgrid_dim was[] = { { "tp", 2 }, { "dp", 2 }, { "pp", 3 } },
                  is[] = { { "pp", 3 }, { "tp", 2 }, { "dp", 2 } };
  mgrid_move_options o = MGRID_MOVE_OPTIONS_INIT;
  size_t length = 0;
  int64_t bytes = 0;
  o.rounds = o.convert = true;
  mgrid_plan *from = tensor_plan(was, false, err), *to = from ? tensor_plan(is, true, err) : NULL;
  mgrid_status s = to ? mgrid_plan_print_json(to, -1, count_text, &length, err) : MGRID_LIMIT;
  if (!s) s = mgrid_plan_print_json(to, 3, count_text, &length, err);
  mgrid_move *m = s ? NULL : mgrid_move_new(from, to, 5, 0, NULL, &o, err);
  if (!s && !m) s = MGRID_LIMIT;
  for (size_t i = 0; i < mgrid_move_npeers(m) && !s; i++) {
    mgrid_move_peer p = MGRID_MOVE_PEER_INIT;
    s = mgrid_move_peers(m, i, &p, err);
    if (!s) s = mgrid_move_pieces(m, MGRID_SENDS, p.rank, take_piece, &bytes, err);
    if (!s) s = mgrid_move_pieces(m, MGRID_RECEIVES, p.rank, take_piece, &bytes, err);
  }
  int64_t owners[] = { 0, 1, 2 };
  if (!s) s = mgrid_relabel(3, owners, owners, NULL, 3, owners, NULL, err);
  mgrid_move_free(m);
  mgrid_plan_free(from);
  mgrid_plan_free(to);
  if (s == MGRID_OUTPUT) mgrid_oom(err);
  return s;
}

/* A move on one rank that changes the type of the elements, carried out and proved. */
static mgrid_status converts_way(mgrid_error *err) {
  mgrid_move_options o = MGRID_MOVE_OPTIONS_INIT;
  mgrid_tensor_axis axis = MGRID_TENSOR_AXIS_INIT;
  mgrid_plan *plan[2] = { NULL };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(1), 0, NULL, err);
  mgrid_backend *b = g ? mgrid_backend_dry(1, 0, err) : NULL;
  mgrid_status s = b ? MGRID_OK : MGRID_LIMIT;
  axis.name = "x", axis.length = 1000;
  o.convert = true;
  for (int i = 0; i < 2 && !s; i++) {
    mgrid_tensor *tensor = mgrid_tensor_new(g, i ? "bf16" : "f32", 1, &axis, NULL, err);
    mgrid_topology *t = tensor ? mgrid_topology_new(1, err) : NULL;
    if (!t || mgrid_topology_add_tensor(t, "w", tensor, err) || !(plan[i] = mgrid_plan_new(t, err)))
      s = MGRID_LIMIT;
    mgrid_topology_free(t);
    mgrid_tensor_free(tensor);
  }
  mgrid_move *m = s ? NULL : mgrid_move_new(plan[0], plan[1], 0, 0, NULL, &o, err);
  s = m ? mgrid_move_prove(m, b, NULL, err) : MGRID_LIMIT;
  mgrid_move_free(m);
  for (int i = 0; i < 2; i++) mgrid_plan_free(plan[i]);
  mgrid_backend_free(b);
  mgrid_grid_free(g);
  return s;
}

static void test_every_allocation_of_moves(void **state) {
  (void)state;
  sweep(moves_way);
  sweep(converts_way);
}

static void test_every_allocation_in_c(void **state) {
  (void)state;
  sweep(whole_way);
}

static void test_every_allocation_of_grids(void **state) {
  (void)state;
  sweep(grids_way);
}

static void test_every_allocation_of_lists(void **state) {
  (void)state;
  sweep(concurrent_way);
}

static void test_every_allocation_of_a_recipe(void **state) {
  (void)state;
  sweep(recipe_way);
}

static void test_every_allocation_of_a_function(void **state) {
  (void)state;
  sweep(function_way);
}

static void test_every_allocation_of_an_agreement(void **state) {
  char path[] = P_tmpdir "/moongrid-agreed-XXXXXX";
  FILE *f = fdopen(mkstemp(path), "w");
  (void)state;
  assert_non_null(f);
  fputs("return recipe { build = function(w) local t = topology(w) t.x = grid(w, 'x', { x = fill "
        "}) 'x' return t end,\n"
        "  policy = { decide = function() return { list = { 1, 2.5, 'three' }, text = ('long "
        "'):rep(9) } end },\n"
        "  agreed = { decide = 'world' } }",
        f);
  fclose(f);
  agreeing = path;
  sweep(agreed_way);
  unlink(path);
}

static void test_every_allocation_of_tables(void **state) {
  (void)state;
  sweep(tables_way);
}

static void test_every_allocation_of_a_setting(void **state) {
  (void)state;
  sweep(settings_way);
}

/* The same from inside: caps on the Lua heap that are too small end in one clear error. */
static void test_every_cap_of_the_lua_heap(void **state) {
  mgrid_limits limits = MGRID_LIMITS_INIT;
  mgrid_status s = MGRID_LIMIT;
  (void)state;
  for (limits.memory = 2000; s != MGRID_OK; limits.memory += 509) {
    mgrid_error err = MGRID_ERROR_INIT;
    mgrid_runtime *rt = mgrid_runtime_new(&limits, NULL, anew(&err));
    s = rt ? mgrid_runtime_load(rt, "picotron", NULL, 0, anew(&err)) : err.status;
    mgrid_plan *p = s ? NULL : mgrid_runtime_plan(rt, 8, NULL, 0, NULL, anew(&err));
    if (!s && !p) s = err.status;
    if (s && (s / 100 != MGRID_LIMIT / 100 || !strstr(err.message, "memory")))
      fail_msg("cap of %zu bytes: status %d, '%s'", limits.memory, (int)s, err.message);
    mgrid_plan_free(p);
    mgrid_runtime_free(rt);
    assert_true(limits.memory < (size_t)4 << 20);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_allocation_in_c),
    cmocka_unit_test(test_every_allocation_of_grids),
    cmocka_unit_test(test_every_allocation_of_a_recipe),
    cmocka_unit_test(test_every_allocation_of_a_setting),
    cmocka_unit_test(test_every_cap_of_the_lua_heap),
    cmocka_unit_test(test_every_allocation_of_lists),
    cmocka_unit_test(test_every_allocation_of_a_function),
    cmocka_unit_test(test_every_allocation_of_an_agreement),
    cmocka_unit_test(test_every_allocation_of_tables),
    cmocka_unit_test(test_every_allocation_of_moves),
  };
  return run_program("memory", tests, argc, argv);
}
