/* SPDX-License-Identifier: MIT
**
** test_tensors.c - what is refused about tensors and moves, messages whole.
*/
#include "program.h"

#include "comm/backend.h"
#include "moongrid.h"
#include "tensors/between_plans.h"

typedef struct refused {
  mgrid_tensor_axis axis[2];
  const char *type, *message;
  mgrid_status status;
} refused;

/* An axis x of 12 elements, and what else is said. */
#define AXIS(...) \
  { .size = sizeof(mgrid_tensor_axis), .name = "x", .length = 12, __VA_ARGS__ }
#define CUT(...) AXIS(.ndims = 1, .dims = by_tp, __VA_ARGS__)

static void test_tensor_refusals(void **state) {
  (void)state;
  static const char *const by_tp[] = { "tp" }, *const by_both[] = { "dp", "tp" },
                           *const by_tq[] = { "tq" };
  static const int64_t short_parts[] = { 4, 4 }, long_parts[] = { 8, 8 }, no_parts[] = { 12, 0 },
                       odd[] = { 5, 7 }, bounds[] = { 0, 3, 12 }, late[] = { 0, 8, 6, 9, 12 },
                       part_bounds[] = { 1, 3, 6, 9, 12 },
                       owners[] = { 0, 1, 4, 3, -1, 0, 0, 0, 0, 0, 0, 0 },
                       below[] = { 0, 1, 2, -1 };
  static const refused cases[] = {
    { { AXIS(.ndims = 0) },
      "bf61",
      "unknown type 'bf61'; nearest is 'bf16' (bf16, f16, f32, f64, f8_e4m3, f8_e5m2, i8, "
      "i16, i32, i64, u8, u16, u32, u64, bool, c64, c128)",
      MGRID_UNKNOWN_NAME },
    { { AXIS(.ndims = 1, .dims = by_tq) },
      "f32",
      "axis 'x': unknown dim 'tq'; nearest is 'tp' (tp, dp)",
      MGRID_UNKNOWN_NAME },
    { { CUT(.unit = 5) },
      "f32",
      "axis 'x': unit 5 does not divide 12 elements; nearest: 4 or 6",
      MGRID_REFUSED },
    { { CUT(.unit = 2, .nparts = 2, .parts = odd) },
      "f32",
      "axis 'x': unit 2 does not divide part 0, 5 elements; nearest: 1",
      MGRID_REFUSED },
    { { CUT(.unit = -1) },
      "f32",
      "axis 'x': the unit is -1; it must be 1 to 12",
      MGRID_OUT_OF_RANGE },
    { { CUT(.nparts = 2, .parts = short_parts) },
      "f32",
      "axis 'x': its parts sum to 8, but its length is 12",
      MGRID_REFUSED },
    { { CUT(.nparts = 2, .parts = long_parts) },
      "f32",
      "axis 'x': its parts sum to at least 16, but its length is 12",
      MGRID_REFUSED },
    { { CUT(.nparts = 2, .parts = no_parts) },
      "f32",
      "axis 'x': part 1 has 0 elements; parts have 1 or more",
      MGRID_OUT_OF_RANGE },
    { { CUT(.cutting = MGRID_CUT_CYCLIC) },
      "f32",
      "axis 'x': a block has 0 elements; it must have 1 to 12",
      MGRID_OUT_OF_RANGE },
    { { CUT(.cutting = MGRID_CUT_CYCLIC, .block = 2, .unit = 2) },
      "f32",
      "axis 'x': its cyclic blocks are its units, so it cannot have another unit",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_BOUNDS, .nbounds = 3, .bounds = bounds) },
      "f32",
      "axis 'x' has 3 bounds, but its 4 pieces (tp 4) need 5",
      MGRID_REFUSED },
    { { AXIS(.ndims = 2, .dims = by_both, .cutting = MGRID_CUT_BOUNDS, .nbounds = 3,
             .bounds = bounds) },
      "f32",
      "axis 'x' has 3 bounds, but its 8 pieces (dp 2 x tp 4 = 8) need 9",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_BOUNDS, .nbounds = 5, .bounds = late) },
      "f32",
      "axis 'x': bound 2 is 6, and the bound before it is 8; bounds must ascend to 12",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_BOUNDS, .nbounds = 5, .bounds = part_bounds) },
      "f32",
      "axis 'x': its bounds go from 1 to 12, but must go from 0 to 12",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_BOUNDS, .nbounds = 5, .bounds = part_bounds, .unit = 2) },
      "f32",
      "axis 'x': bounds say where every piece ends, so they cannot have a unit",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_OWNERS, .nowners = 5, .owners = owners) },
      "f32",
      "axis 'x' has 5 owners, but its 12 elements need one each",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_OWNERS, .nowners = 12, .owners = owners, .unit = 3) },
      "f32",
      "axis 'x' has 12 owners, but its 4 units need one each",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_OWNERS) },
      "f32",
      "axis 'x' has 0 owners, but its 12 elements need one each",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_OWNERS, .nowners = 12, .owners = owners, .unit = 5) },
      "f32",
      "axis 'x': unit 5 does not divide 12 elements; nearest: 4 or 6",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_OWNERS, .nowners = 12, .owners = owners) },
      "f32",
      "axis 'x': the owner of element 2 is 4, but its pieces (tp 4) are 0 to 3",
      MGRID_OUT_OF_RANGE },
    { { CUT(.cutting = MGRID_CUT_OWNERS, .nowners = 4, .owners = below, .unit = 3) },
      "f32",
      "axis 'x': the owner of unit 3 is -1, but its pieces (tp 4) are 0 to 3",
      MGRID_OUT_OF_RANGE },
    { { CUT(.cutting = MGRID_CUT_OWNERS, .nowners = 12, .owners = owners, .nparts = 2,
            .parts = odd) },
      "f32",
      "axis 'x': owners say where every element goes, so they cannot have parts",
      MGRID_REFUSED },
    { { CUT(.cutting = MGRID_CUT_OWNERS, .nowners = 12) },
      "f32",
      "the list of 12 owners is NULL",
      MGRID_USAGE },
    { { CUT(.cutting = (mgrid_cutting)9) }, "f32", "axis 'x': 9 is not a way to cut", MGRID_USAGE },
    { { CUT(.unit = 1), CUT(.unit = 1) }, "f32", "axis 'x' occurs twice", MGRID_DUPLICATE },
    { { CUT(.unit = 1),
        { .size = sizeof(mgrid_tensor_axis),
          .name = "y",
          .length = 4,
          .ndims = 1,
          .dims = by_tp } },
      "f32",
      "dim 'tp' cuts axis 'x' and axis 'y'; a dim cuts one axis, once",
      MGRID_DUPLICATE },
    { { AXIS(.ndims = 0), { .size = sizeof(mgrid_tensor_axis), .name = "y", .length = 0 } },
      "f32",
      "axis 'y' has length 0; lengths are 1 or more",
      MGRID_OUT_OF_RANGE },
    { { AXIS(.ndims = 0), { .size = sizeof(mgrid_tensor_axis), .name = "y z", .length = 1 } },
      "f32",
      "'y z' is not an axis name (a letter or _, then letters, digits or _; at most 31)",
      MGRID_BAD_VALUE },
    { { AXIS(.ndims = 0),
        { .size = sizeof(mgrid_tensor_axis), .name = "y", .length = INT64_MAX / 2 } },
      "f32",
      "the bytes of the tensor overflow 64 bits at axis 'y'",
      MGRID_OVERFLOW },
  };
  mgrid_error err;
  mgrid_dim dims[] = { { "tp", 4 }, { "dp", 2 } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 2, dims, anew(&err));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t n = cases[i].axis[1].name ? 2 : 1;
    assert_null(mgrid_tensor_new(g, cases[i].type, n, cases[i].axis, NULL, anew(&err)));
    assert_string_equal(err.message, cases[i].message);
    assert_int_equal(err.status, cases[i].status);
  }
  mgrid_tensor_axis x = AXIS(.ndims = 0);
  assert_null(mgrid_tensor_new(g, "f32", 9, &x, NULL, anew(&err)));
  assert_string_equal(err.message, "a tensor has 1 to 8 axes, not 9");
  mgrid_grid_free(g);
}

static void test_holder_refusals(void **state) {
  (void)state;
  mgrid_error err;
  mgrid_tensor_axis x = AXIS(.ndims = 0);
  mgrid_dim dims[] = { { "tp", 2 }, { "dp", 2 } };
  mgrid_window all = mgrid_world(8), low = { 8, 0, 4 };
  mgrid_grid *g = mgrid_grid_new(low, 2, dims, anew(&err));
  static const struct {
    int64_t ranks[4];
    int64_t n;
    const char *message;
  } cases[] = {
    { { 0, 3 },
      2,
      "`on` is not every combination of coordinates: rank 3 is in it with tp 1, rank 0 is in it, "
      "but not with that" },
    { { 0, 1, 2 },
      3,
      "`on` is not every combination of coordinates: it has 3 ranks, its coordinates make 4" },
    { { 0, 5 }, 2, "rank 5 of `on` is outside the grid" },
    { { 6, 1 }, 2, "rank 6 of `on` is outside the grid" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t starts[] = { 0, cases[i].n };
    mgrid_family *on =
        mgrid_family_table(all, 1, starts, cases[i].ranks, MGRID_PARTIAL, anew(&err));
    assert_null(mgrid_tensor_new(g, "f32", 1, &x, on, &err));
    assert_string_equal(err.message, cases[i].message);
    mgrid_family_free(on);
  }
  mgrid_grid_free(g);
}

/* A plan of 4 ranks with tensors of f32 by name, of `length` elements cut by tp. */
static mgrid_plan *plan_of(const char *type, int64_t length, const char *a, const char *b) {
  static const char *const by[] = { "tp" };
  mgrid_error err;
  mgrid_dim dims[] = { { "tp", 4 } };
  mgrid_tensor_axis x = AXIS(.ndims = 1, .dims = by);
  x.length = length;
  mgrid_topology *t = mgrid_topology_new(4, anew(&err));
  mgrid_grid *g = mgrid_grid_new(mgrid_world(4), 1, dims, &err);
  mgrid_tensor *tensor = mgrid_tensor_new(g, type, 1, &x, NULL, &err);
  mgrid_topology_add_tensor(t, a, tensor, &err);
  if (b) mgrid_topology_add_tensor(t, b, tensor, &err);
  mgrid_plan *p = mgrid_plan_new(t, &err);
  assert_int_equal(err.status, MGRID_OK);
  mgrid_tensor_free(tensor);
  mgrid_grid_free(g);
  mgrid_topology_free(t);
  return p;
}

static void test_move_refusals(void **state) {
  (void)state;
  mgrid_error err;
  const char *const w[] = { "w" }, *const wv[] = { "wv" }, *const u[] = { "u" },
                    *const twice[] = { "w", "w" };
  mgrid_plan *plain = plan_of("f32", 8, "w", NULL), *both = plan_of("f32", 8, "w", "u"),
             *longer = plan_of("f32", 9, "w", NULL), *half = plan_of("bf16", 8, "w", NULL);
  const int64_t pair[] = { 0, 1 }, same[] = { 0, 1, 2, 1 }, below[] = { 0, 1, 2, -1 };
  mgrid_move_options short_map = MGRID_MOVE_OPTIONS_INIT, same_map = MGRID_MOVE_OPTIONS_INIT,
                     below_map = MGRID_MOVE_OPTIONS_INIT;
  short_map.ranks = pair, short_map.nranks = 2;
  same_map.ranks = same, same_map.nranks = 4;
  below_map.ranks = below, below_map.nranks = 4;
  const struct {
    mgrid_plan *from, *to;
    size_t n;
    const char *const *names;
    const mgrid_move_options *options;
    const char *message;
  } cases[] = {
    { both, plain, 0, NULL, NULL,
      "tensor 'u' is only in the plan before the move; name those that move" },
    { plain, both, 0, NULL, NULL,
      "tensor 'u' is only in the plan after the move; name those that move" },
    { both, plain, 1, u, NULL, "tensor 'u' is only in the plan before the move" },
    { plain, plain, 1, wv, NULL, "unknown tensor 'wv'; nearest is 'w' (w)" },
    { plain, plain, 2, twice, NULL, "tensor 'w' is named twice" },
    { plain, longer, 1, w, NULL, "tensor 'w': axis 0 is x 8 on one side and x 9 on the other" },
    { plain, half, 1, w, NULL, "tensor 'w' is f32 on one side and bf16 on the other" },
    { plain, plain, 0, NULL, &short_map, "the map has 2 ranks, the world after the move 4" },
    { plain, plain, 0, NULL, &same_map, "the map has rank 1 for ranks 1 and 3" },
    { plain, plain, 0, NULL, &below_map,
      "rank -1 of the map is out of range; ranks are 0 or more" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_null(mgrid_move_new(cases[i].from, cases[i].to, 0, cases[i].n, cases[i].names,
                               cases[i].options, anew(&err)));
    assert_string_equal(err.message, cases[i].message);
  }
  mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
  mgrid_run run;
  assert_int_equal(mgrid_tensor_local(plain, "v", 0, &part, anew(&err)), MGRID_UNKNOWN_NAME);
  assert_string_equal(err.message, "unknown tensor 'v'; known: w");
  assert_int_equal(mgrid_tensor_local(plain, "w", 4, &part, anew(&err)), MGRID_OUT_OF_RANGE);
  assert_string_equal(err.message, "rank 4 is out of range; ranks are 0 to 3");
  assert_int_equal(mgrid_tensor_runs(plain, "w", 0, 1, 1, &run, anew(&err)), -1);
  assert_string_equal(err.message, "tensor 'w' has 1 axes, no axis 1");
  assert_int_equal(mgrid_tensor_runs(plain, "w", 3, 0, 1, &run, anew(&err)), 1);
  assert_true(run.start == 6 && run.length == 2);
  mgrid_plan_free(plain);
  mgrid_plan_free(both);
  mgrid_plan_free(longer);
  mgrid_plan_free(half);
}

/* Between states the move is that between their plans, seen from their rank. */
static void test_move_of_states(void **state) {
  (void)state;
  mgrid_error err;
  mgrid_plan *plan[2] = { NULL };
  mgrid_state *s[2] = { NULL };
  mgrid_backend *dry = mgrid_backend_dry(4, 3, anew(&err));
  mgrid_tensor_axis axis = AXIS(.ndims = 1);
  static const char *const by[] = { "a", "b" };
  const mgrid_dim dims[2][2] = { { { "a", 2 }, { "b", 2 } }, { { "a", 4 }, { "b", 1 } } };
  for (int i = 0; i < 2; i++) {
    axis.dims = by;
    mgrid_grid *g = mgrid_grid_new(mgrid_world(4), 2, dims[i], &err);
    mgrid_tensor *t = mgrid_tensor_new(g, "f32", 1, &axis, NULL, &err);
    mgrid_topology *topology = mgrid_topology_new(4, &err);
    mgrid_topology_add_tensor(topology, "w", t, &err);
    plan[i] = mgrid_plan_new(topology, &err);
    s[i] = mgrid_materialize(plan[i], dry, i ? "new" : "old", &err);
    mgrid_topology_free(topology);
    mgrid_tensor_free(t);
    mgrid_grid_free(g);
  }
  mgrid_move *m = mgrid_state_move(s[0], s[1], 0, NULL, NULL, &err);
  mgrid_move_sums sums = MGRID_MOVE_SUMS_INIT;
  assert_int_equal(mgrid_move_bytes(m, &sums, &err), MGRID_OK);
  assert_true(sums.stay == 12 && sums.receive == 0 && sums.send == 0); /* 6..11, then 9..11 */
  assert_int_equal(m->pairs.machine, 0);
  mgrid_move_free(m);
  dry->spread.block = 2; /* as if there were two machines */
  m = mgrid_state_move(s[0], s[1], 0, NULL, NULL, &err);
  assert_int_equal(m->pairs.machine, 2);
  mgrid_move_free(m);
  mgrid_move_options o = MGRID_MOVE_OPTIONS_INIT;
  o.machine = 3;
  m = mgrid_state_move(s[0], s[1], 0, NULL, &o, &err); /* what is asked for stays */
  assert_int_equal(m->pairs.machine, 3);
  assert_null(mgrid_state_move(s[0], s[1], 1, (const char *const[]){ "v" }, NULL, &err));
  assert_string_equal(err.message, "unknown tensor 'v'; known: w");
  mgrid_move_free(m);
  for (int i = 0; i < 2; i++) {
    mgrid_state_free(s[i]);
    mgrid_plan_free(plan[i]);
  }
  mgrid_backend_free(dry);
}

static void test_flat_refusals(void **state) {
  (void)state;
  static const char *const by_tp[] = { "tp" }, *const by_dp[] = { "dp" }, *const by_dq[] = { "dq" },
                           *const twice[] = { "dp", "dp" };
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 4 } }, other[] = { { "tp", 4 }, { "dp", 2 } };
  mgrid_error err;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 2, dims, anew(&err));
  mgrid_grid *h = mgrid_grid_new(mgrid_world(8), 2, other, &err);
  mgrid_family *dp = mgrid_grid_along(g, 1, by_dp, MGRID_GRID_ORDER, &err);
  mgrid_family *some = mgrid_family_pick(dp, 1, (const int64_t[]){ 0 }, &err);
  mgrid_tensor_axis axis = AXIS(.ndims = 0), cut = CUT(.unit = 1), huge = AXIS(.ndims = 0);
  huge.length = INT64_MAX / 8;
  mgrid_tensor *whole = mgrid_tensor_new(g, "f32", 1, &axis, NULL, &err);
  mgrid_tensor *by_tp_even = mgrid_tensor_new(g, "f32", 1, &cut, NULL, &err);
  cut.length = 13;
  mgrid_tensor *by_tp_odd = mgrid_tensor_new(g, "f32", 1, &cut, NULL, &err);
  mgrid_tensor *half = mgrid_tensor_new(g, "bf16", 1, &axis, NULL, &err);
  mgrid_tensor *elsewhere = mgrid_tensor_new(h, "f32", 1, &axis, NULL, &err);
  mgrid_tensor *large = mgrid_tensor_new(g, "f32", 1, &huge, NULL, &err);
  mgrid_tensor *first = mgrid_tensor_new(g, "f32", 1, &axis, some, &err);
  mgrid_tensor *flat[1];
  assert_int_equal(err.status, MGRID_OK);
  assert_int_equal(
      mgrid_tensor_flatten(1, (const mgrid_tensor *const[]){ whole }, 1, by_dp, 1, flat, &err),
      MGRID_OK);
  const struct {
    size_t n;
    const mgrid_tensor *tensor[3];
    size_t ndims;
    const char *const *dims;
    int64_t pad;
    const char *message;
  } cases[] = {
    { 0, { NULL }, 1, by_dp, 1, "a flat has no tensors" },
    { 1, { whole }, 0, by_dp, 1, "a flat has no dim that cuts it" },
    { 2, { whole, NULL }, 1, by_dp, 1, "tensor 2 of the flat is NULL" },
    { 1, { whole }, 1, by_dp, 0, "pad is 0; it is 1 or more" },
    { 1, { whole }, 1, by_dq, 1, "unknown dim 'dq'; nearest is 'dp' (tp, dp)" },
    { 1, { whole }, 2, twice, 1, "dim 'dp' cuts the flat twice" },
    { 2,
      { whole, half },
      1,
      by_dp,
      1,
      "tensor 2 of the flat is bf16, tensor 1 f32; a flat has one type" },
    { 2,
      { whole, elsewhere },
      1,
      by_dp,
      1,
      "tensor 2 of the flat is over another grid than tensor 1" },
    { 2, { whole, flat[0] }, 1, by_dp, 1, "tensor 2 of the flat is flat already" },
    { 2,
      { whole, by_tp_even },
      1,
      by_tp,
      1,
      "dim 'tp' cuts axis 'x' of tensor 2; a flat is cut by dims that cut none of its tensors" },
    { 2,
      { whole, first },
      1,
      by_dp,
      1,
      "dim 'dp' cuts the flat, and tensor 2 is not on all of its coordinates" },
    { 2,
      { whole, first },
      1,
      by_tp,
      1,
      "parts of tensor 2 differ along 'dp', which does not cut tensor 1 of the flat; cut them "
      "evenly, or put these "
      "tensors into different flats" },
    { 3,
      { by_tp_even, by_tp_odd, whole },
      1,
      by_dp,
      1,
      "parts of tensor 2 differ along 'tp', which does not cut tensor 3 of the flat; cut them "
      "evenly, or put these "
      "tensors into different flats" },
    { 1,
      { large },
      1,
      by_dp,
      INT64_MAX / 4,
      "the flat overflows 64 bits: 4 slices, padded to 2305843009213693951" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    mgrid_tensor *out[3] = { whole, whole, whole };
    mgrid_status s = mgrid_tensor_flatten(cases[i].n, cases[i].tensor, cases[i].ndims,
                                          cases[i].dims, cases[i].pad, out, anew(&err));
    assert_string_equal(err.message, cases[i].message);
    assert_int_equal(err.status, s);
    for (size_t k = 0; k < cases[i].n; k++) assert_null(out[k]);
  }
  mgrid_tensor *uneven[2]; /* a dim that cuts both may do so unevenly */
  assert_int_equal(mgrid_tensor_flatten(2, (const mgrid_tensor *const[]){ by_tp_even, by_tp_odd },
                                        1, by_dp, 3, uneven, anew(&err)),
                   MGRID_OK);
  mgrid_tensor *all[] = { whole, by_tp_even, by_tp_odd, half,      elsewhere,
                          large, first,      flat[0],   uneven[0], uneven[1] };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) mgrid_tensor_free(all[i]);
  mgrid_family_free(some);
  mgrid_family_free(dp);
  mgrid_grid_free(g);
  mgrid_grid_free(h);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_tensor_refusals),
                                      cmocka_unit_test(test_holder_refusals),
                                      cmocka_unit_test(test_move_refusals),
                                      cmocka_unit_test(test_flat_refusals),
                                      cmocka_unit_test(test_move_of_states) };
  return run_program("tensors", tests, argc, argv);
}
