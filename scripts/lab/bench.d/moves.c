/* SPDX-License-Identifier: MIT
**
** moves.c - plan one rank's messages of a move, all tensors cut by two dims on both sides.
**
**     moves time ROUNDS WORLD...   microseconds for a tensor and rank, the worlds in turn
**     moves mesh ROUNDS A B        the same of one tensor, a square whose rows dim a cuts, and its columns dim b, to its
**                                  columns by a and rows by b; the bytes of all ranks
**     moves once KIND WORLD        one rank, in a separate function: for callgrind, for memory
*/
#include "bench.h"
#include "moongrid.h"

#include <inttypes.h>

enum { TENSORS = 16, KINDS = 3, RANKS = 64 };

/* fits: 8 x 16 x copies to 16 x 8 x copies. window: the same from one half of the world to the
** other. odd: 6 x 4 x copies to 4 x 6 x copies, so that dims do not divide each other. */
static const char *const kinds[KINDS] = { "fits", "window", "odd" };

typedef struct sides {
  mgrid_plan *from, *to;
} sides;

/* Make a plan of n tensors like this one. It takes over the tensor and its grid. */
static mgrid_plan *plan_of(int n, mgrid_tensor *x, mgrid_grid *g, int64_t world) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_topology *t = mgrid_topology_new(world, &e);
  char name[16];
  for (int i = 0; i < n; i++) {
    snprintf(name, sizeof name, "w%d", i);
    mgrid_topology_add_tensor(t, name, x, &e);
  }
  mgrid_plan *p = mgrid_plan_new(t, &e);
  if (!p) die(e.message);
  mgrid_topology_free(t);
  mgrid_tensor_free(x);
  mgrid_grid_free(g);
  return p;
}

static mgrid_plan *layout(int64_t world, int64_t offset, int64_t size, int64_t tp, int64_t pp) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_window w = { world, offset, size };
  mgrid_dim dims[] = { { "tp", tp }, { "dp", size / tp / pp }, { "pp", pp } };
  static const char *by_pp[] = { "pp" }, *by_tp[] = { "tp" };
  mgrid_tensor_axis axis[] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT,
                               MGRID_TENSOR_AXIS_INIT };
  axis[0].name = "layer", axis[0].length = 96, axis[0].ndims = 1, axis[0].dims = by_pp;
  axis[1].name = "out", axis[1].length = 12288, axis[1].ndims = 1, axis[1].dims = by_tp;
  axis[2].name = "in", axis[2].length = 12288;
  mgrid_grid *g = mgrid_grid_new(w, 3, dims, &e);
  return plan_of(TENSORS, mgrid_tensor_new(g, "bf16", 3, axis, NULL, &e), g, world);
}

static mgrid_plan *square(int64_t a, int64_t b, bool after) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_dim dims[] = { { "b", b }, { "a", a } };
  const char *by_a[] = { "a" }, *by_b[] = { "b" };
  mgrid_tensor_axis axis[] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
  for (int i = 0; i < 2; i++) {
    axis[i].name = i ? "column" : "row", axis[i].length = 4096;
    axis[i].ndims = 1, axis[i].dims = (i == 1) == after ? by_a : by_b;
  }
  mgrid_grid *g = mgrid_grid_new(mgrid_world(a * b), 2, dims, &e);
  return plan_of(1, mgrid_tensor_new(g, "f32", 2, axis, NULL, &e), g, a * b);
}

static sides sides_of(int kind, int64_t world) {
  int64_t half = world / 2, odd = world / 24 * 24;
  if (kind == 0) return (sides){ layout(world, 0, world, 8, 16), layout(world, 0, world, 16, 8) };
  if (kind == 1) return (sides){ layout(world, 0, half, 8, 16), layout(world, half, half, 16, 8) };
  return (sides){ layout(world, 0, odd, 6, 4), layout(world, 0, odd, 4, 6) };
}

__attribute__((noipa)) static size_t one_move(const sides *s, int64_t rank) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_move *m = mgrid_move_new(s->from, s->to, rank, 0, NULL, NULL, &e);
  if (!m) die(e.message);
  size_t n = mgrid_move_npeers(m);
  mgrid_move_free(m);
  return n;
}

static void measure(int rounds, int n, char **worlds) {
  for (int r = 0; r < rounds; r++)
    for (int i = 0; i < n; i++)
      for (int kind = 0; kind < KINDS; kind++) {
        int64_t world = strtoll(worlds[i], NULL, 10);
        sides s = sides_of(kind, world);
        size_t peers = 0;
        double t = now();
        for (int64_t k = 0; k < RANKS; k++) peers += one_move(&s, (k * 2654435761) % world);
        sample(1e6 * (now() - t) / RANKS / TENSORS, "%s %s", kinds[kind], worlds[i]);
        sample((double)peers / RANKS, "%s peers %s", kinds[kind], worlds[i]);
        mgrid_plan_free(s.from);
        mgrid_plan_free(s.to);
      }
}

static void measure_mesh(int rounds, int64_t a, int64_t b) {
  sides s = { square(a, b, false), square(a, b, true) };
  int64_t world = a * b, bytes = 0;
  for (int r = 0; r < rounds; r++) {
    double t = now();
    for (int64_t rank = 0; rank < world; rank++) one_move(&s, rank);
    sample(1e6 * (now() - t) / (double)world, "mesh %" PRId64, world);
  }
  for (int64_t rank = 0; rank < world; rank++) {
    mgrid_move *m = mgrid_move_new(s.from, s.to, rank, 0, NULL, NULL, NULL);
    mgrid_move_sums sums = MGRID_MOVE_SUMS_INIT;
    if (!m || mgrid_move_bytes(m, &sums, NULL)) die("no move");
    bytes += sums.send;
    mgrid_move_free(m);
  }
  sample((double)bytes, "mesh bytes %" PRId64, world);
  mgrid_plan_free(s.from);
  mgrid_plan_free(s.to);
}

int main(int argc, char **argv) {
  if (argc >= 4 && strcmp(argv[1], "time") == 0) {
    measure(atoi(argv[2]), argc - 3, argv + 3);
  } else if (argc == 5 && strcmp(argv[1], "mesh") == 0) {
    measure_mesh(atoi(argv[2]), atoll(argv[3]), atoll(argv[4]));
  } else if (argc == 4 && strcmp(argv[1], "once") == 0) {
    int64_t world = strtoll(argv[3], NULL, 10);
    int kind = 0;
    while (kind < KINDS && strcmp(argv[2], kinds[kind]) != 0) kind++;
    if (kind == KINDS) die("once fits | window | odd WORLD");
    sides s = sides_of(kind, world);
    one_move(&s, world / 3);
    mgrid_plan_free(s.from);
    mgrid_plan_free(s.to);
  } else {
    die("moves time ROUNDS WORLD... | moves mesh ROUNDS A B | moves once KIND WORLD");
  }
  return 0;
}
