/* SPDX-License-Identifier: MIT
**
** test_refusals.c - what states, plans and moves refuse that a program in C alone can ask of them,
** messages whole. (test_messages.c: the algebra; test_tensors.c: tensors; recipes and Lua programs:
** tests/lua.)
*/
#include "asserted.h"

#include "comm/state.h"
#include "moongrid_state.h"
#include "moongrid_recipe.h"
#include "tensors/move.h"

#include <unistd.h>

static mgrid_error why = MGRID_ERROR_INIT;

/* Families of ranks along x: tp; lazy; a ring of pairs; one without communicators; one with a
** parent, if asked. */
static mgrid_plan *plan_of(int64_t world, bool with_parent) {
  const mgrid_dim dim = { "x", world };
  const char *x = dim.name;
  mgrid_options lazy = MGRID_OPTIONS_INIT, none = MGRID_OPTIONS_INIT, child = MGRID_OPTIONS_INIT;
  lazy.lazy = true, none.backend = "none", child.parent = "tp";
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 1, &dim, anew(&why));
  mgrid_family *tp = mgrid_grid_along(g, 1, &x, MGRID_GRID_ORDER, &why);
  mgrid_family *ring = mgrid_family_neighbours(tp, 1, true, &why);
  mgrid_topology *t = mgrid_topology_new(world, &why);
  mgrid_topology_add(t, "tp", tp, NULL, &why);
  mgrid_topology_add(t, "later", tp, &lazy, &why);
  mgrid_topology_add(t, "ring", ring, NULL, &why);
  mgrid_topology_add(t, "none", tp, &none, &why);
  if (with_parent) mgrid_topology_add(t, "child", tp, &child, &why);
  mgrid_plan *p = mgrid_plan_new(t, &why);
  assert_non_null(p);
  mgrid_topology_free(t);
  mgrid_family_free(ring);
  mgrid_family_free(tp);
  mgrid_grid_free(g);
  return p;
}

static void test_states(void **unused) {
  (void)unused;
  const int64_t lost[] = { 3 };
  mgrid_plan *p = plan_of(8, false);
  mgrid_backend *b = mgrid_backend_dry(8, 0, &why);
  mgrid_state *s = mgrid_materialize(p, b, "train", &why);
  mgrid_work w = { .call = MGRID_BARRIER, .type = MGRID_INT32, .count = 1 };
  assert_int_equal(why.status, MGRID_OK);
  REFUSED(mgrid_group_work(mgrid_state_group(s, "tp", NULL), &w, &why) == MGRID_OK,
          MGRID_UNSUPPORTED, "tp: a dry state has no communicators");
  REFUSED(mgrid_group_work(mgrid_state_group(s, "none", NULL), &w, &why) == MGRID_OK,
          MGRID_UNSUPPORTED, "none has no communicator: the backend of its family is 'none'");
  REFUSED(mgrid_state_shrink(s, "ring", 1, lost, &why), MGRID_REFUSED,
          "'ring' cannot shrink: its groups share ranks");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

static void test_grow(void **unused) {
  (void)unused;
  mgrid_plan *p = plan_of(8, false), *larger = plan_of(16, false), *family = plan_of(16, true);
  mgrid_backend *b = mgrid_backend_dry(8, 0, &why), *whole = mgrid_backend_dry(16, 0, &why),
                *moved = mgrid_backend_dry(16, 1, &why), *small = mgrid_backend_dry(4, 0, &why);
  mgrid_state *s = mgrid_materialize(p, b, "train", &why);
  assert_int_equal(why.status, MGRID_OK);
  REFUSED(mgrid_state_grow(s, larger, small, "grown", &why), MGRID_USAGE,
          "a state of 8 ranks grows into another backend, of as many ranks or more");
  REFUSED(mgrid_state_grow(s, larger, moved, "grown", &why), MGRID_REFUSED,
          "rank 0 is rank 1 of the larger world; ranks that were there keep their numbers");
  REFUSED(mgrid_state_grow(s, family, whole, "grown", &why), MGRID_UNSUPPORTED,
          "family 'child' has a parent: a state with such families cannot grow");
  mgrid_state_free(s);
  mgrid_backend_free(small);
  mgrid_backend_free(moved);
  mgrid_backend_free(whole);
  mgrid_backend_free(b);
  mgrid_plan_free(family);
  mgrid_plan_free(larger);
  mgrid_plan_free(p);
}

static int full(void *ud, const char *text, size_t len) {
  (void)ud, (void)text, (void)len;
  return -1;
}

static void test_outputs(void **unused) {
  (void)unused;
  mgrid_change change = MGRID_CHANGE_INIT;
  mgrid_plan *p = plan_of(8, false), *q = plan_of(16, false);
  REFUSED(mgrid_plan_diff(p, q, 0, &change, full, NULL, &why) == MGRID_OK, MGRID_OUTPUT,
          "the output could not be written");
  mgrid_plan_free(q);
  mgrid_plan_free(p);
}

/* ------------------------------------------------------------------------ moves */

/* A plan with a tensor x of 8 elements, cut into `pieces`; of two axes, if asked. */
static mgrid_plan *with_tensor(int64_t pieces, size_t naxes) {
  const char *const by[] = { "a" };
  const mgrid_dim dims[] = { { "a", pieces }, { "b", MGRID_FILL } };
  mgrid_tensor_axis axis[] = {
    { .size = sizeof *axis, .name = "x", .length = 8, .ndims = 1, .dims = by },
    { .size = sizeof *axis, .name = "y", .length = 1 }
  };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(4), 2, dims, anew(&why));
  mgrid_tensor *x = mgrid_tensor_new(g, "f32", naxes, axis, NULL, &why);
  mgrid_topology *t = mgrid_topology_new(4, &why);
  mgrid_topology_add_tensor(t, "x", x, &why);
  mgrid_plan *p = mgrid_plan_new(t, &why);
  assert_non_null(p);
  mgrid_topology_free(t);
  mgrid_tensor_free(x);
  mgrid_grid_free(g);
  return p;
}

static int leave(void *ud, const mgrid_move_piece *piece) {
  (void)piece;
  return ++*(int *)ud;
}

static void test_moves(void **unused) {
  (void)unused;
  int taken = 0;
  mgrid_plan *a = with_tensor(1, 1), *b = with_tensor(4, 1), *flat = with_tensor(4, 2);
  mgrid_move *m = mgrid_move_new(b, a, 0, 0, NULL, NULL, &why);
  assert_non_null(m);
  REFUSED(mgrid_move_pieces(m, MGRID_SENDS, 4, leave, &taken, &why) == MGRID_OK, MGRID_OUT_OF_RANGE,
          "rank 4 is out of range; ranks are 0 to 3");
  REFUSED(mgrid_move_pieces(m, MGRID_RECEIVES, -1, leave, &taken, &why) == MGRID_OK,
          MGRID_OUT_OF_RANGE, "rank -1 is out of range; ranks are 0 to 3");
  assert_int_equal(taken, 0);
  REFUSED(mgrid_move_descriptors(m, MGRID_SENDS, 1, NULL, &why) == 0, MGRID_USAGE,
          "the list of 1 descriptors is NULL");
  REFUSED(mgrid_move_pieces(m, MGRID_RECEIVES, 1, leave, &taken, &why) == MGRID_OK, MGRID_OUTPUT,
          "the function that takes pieces refused one");
  assert_int_equal(taken, 1);
  mgrid_move_peer peer = MGRID_MOVE_PEER_INIT;
  mgrid_move_options machines = MGRID_MOVE_OPTIONS_INIT;
  machines.machine = 4097;
  REFUSED(mgrid_move_peers(m, 3, &peer, &why) == MGRID_OK, MGRID_OUT_OF_RANGE,
          "the move has 3 peers, no peer 3");
  REFUSED(mgrid_move_new(b, a, 0, 0, NULL, &machines, &why), MGRID_OUT_OF_RANGE,
          "a machine has 1 to 4096 ranks, or 0 if none is given, not 4097");
  REFUSED(mgrid_move_new(b, flat, 0, 0, NULL, NULL, &why), MGRID_REFUSED,
          "tensor 'x' has 1 axes on one side and 2 on the other");
  mgrid_move_free(m);
  mgrid_plan_free(flat);
  mgrid_plan_free(b);
  mgrid_plan_free(a);
}

/* One rank that sends to very many others: the table of rounds would be larger than any machine. */
static void test_rounds(void **unused) {
  (void)unused;
  enum { MANY = 1 << 14 };
  mgrid_edge *edge = calloc(MANY, sizeof *edge);
  int64_t rounds = 0;
  assert_non_null(edge);
  for (int32_t i = 0; i < MANY; i++) edge[i].to = i + 1;
  REFUSED(mgrid_edges_colour(MANY, edge, 1 << 20, &rounds, &why) == MGRID_OK, MGRID_LIMIT,
          "16384 messages of 1048576 ranks are too many to put into 16384 rounds");
  free(edge);
}

static void test_tensor_of_another_world(void **unused) {
  (void)unused;
  const mgrid_dim eight = { "a", 8 }, four = { "a", 4 };
  mgrid_tensor_axis x = { .size = sizeof x, .name = "x", .length = 8 };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 1, &eight, anew(&why)),
             *small = mgrid_grid_new(mgrid_world(4), 1, &four, &why);
  mgrid_family *on = mgrid_grid_along(small, 1, &(const char *){ "a" }, MGRID_GRID_ORDER, &why);
  REFUSED(mgrid_tensor_new(g, "f32", 1, &x, on, &why), MGRID_REFUSED,
          "`on` is of a world of 4 ranks, the grid of 8");
  mgrid_family_free(on);
  mgrid_grid_free(small);
  mgrid_grid_free(g);
}

/* ---------------------------------------------------------------------- recipes */

static void test_recipes(void **unused) {
  (void)unused;
  const char *const args[] = { "tp=\xff" };
  char path[] = P_tmpdir "/moongrid-refusals-XXXXXX.lua";
  int fd = mkstemps(path, 4);
  static const char text[] =
      "local kept return recipe { params = { tp = param.text 'a' }, build = function(w)\n"
      "kept = kept or topology(w) return kept end }\n";
  assert_true(fd >= 0 && write(fd, text, sizeof text - 1) == sizeof text - 1);
  close(fd);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&why));
  assert_int_equal(mgrid_runtime_load(rt, path, NULL, 0, &why), MGRID_OK);
  REFUSED(mgrid_runtime_plan(rt, 8, NULL, 1, args, &why), MGRID_USAGE,
          "argument 'tp=\\xff' is not UTF-8 text");
  mgrid_plan_free(mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &why));
  REFUSED(mgrid_runtime_plan(rt, 16, NULL, 0, NULL, &why), MGRID_REFUSED,
          "the recipe made a topology for 8 ranks in a world of 16");
  mgrid_runtime_free(rt);
  unlink(path);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_states),  cmocka_unit_test(test_grow),
    cmocka_unit_test(test_outputs), cmocka_unit_test(test_moves),
    cmocka_unit_test(test_rounds),  cmocka_unit_test(test_tensor_of_another_world),
    cmocka_unit_test(test_recipes),
  };
  return run_program("refusals", tests, argc, argv);
}
