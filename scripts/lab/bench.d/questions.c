/* SPDX-License-Identifier: MIT
**
** questions.c - measure the cost of a question in C, in nanoseconds, and check that it allocates
** nothing. The state is dry, since no question calls MPI.
**
**     questions ROUNDS
*/
#include "layout.h"

typedef struct plain { /* the fields that a trainer without a library would keep */
  int64_t rank, size;
} plain;

__attribute__((noipa)) static int64_t plain_rank(const plain *p) { return p->rank; }
int64_t plain_size(const plain *p); /* plain.c, in a library of its own */

__attribute__((noipa)) static const char *opaque(const char *text) { return text; }

static volatile int64_t sink;

#define MEASURE(name, expression) \
  do { \
    enum { TURNS = 200000 }; \
    long calls = memory_used.calls; \
    double t0 = now(); \
    for (int turn = 0; turn < TURNS; turn++) sink = (int64_t)(expression); \
    double t1 = now(); \
    if (memory_used.calls != calls) die(name " allocates"); \
    if (round >= 0) sample(1e9 * (t1 - t0) / TURNS, name); \
  } while (0)

int main(int argc, char **argv) {
  if (argc != 2) die("questions ROUNDS");
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_topology *t = layout_topology(&MEGATRON, plan_sizes(1048576), true, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  mgrid_backend *b = mgrid_backend_dry(1048576, 524293, &e);
  mgrid_state *s = mgrid_materialize(p, b, "", &e);
  if (!s) die(e.message);
  const mgrid_group *g = mgrid_state_group(s, "dp_cp", &e);
  plain mine = { mgrid_group_position(g), mgrid_group_size(g) };
  const char *early = opaque("gtp_remat"), *middle = opaque("tp"),
             *late = opaque("tp_ep_pp_with_egtp_remat");
  for (int round = -1; round < atoi(argv[1]); round++) {
    MEASURE("loop", turn);
    MEASURE("struct", *(volatile int64_t *)&mine.rank);
    MEASURE("function", plain_rank(&mine));
    MEASURE("library", plain_size(&mine));
    MEASURE("handle rank", mgrid_group_position(g));
    MEASURE("handle size", mgrid_group_size(g));
    MEASURE("handle next", mgrid_group_beside(g, 1, true));
    MEASURE("handle at", mgrid_group_at(g, 3));
    MEASURE("handle position", mgrid_group_position_of(g, 524293));
    MEASURE("name first", (intptr_t)mgrid_state_group(s, early, &e));
    MEASURE("name tp", (intptr_t)mgrid_state_group(s, middle, &e));
    MEASURE("name last", (intptr_t)mgrid_state_group(s, late, &e));
    MEASURE("coord", mgrid_state_coord(s, "dense", "pp", &e));
  }
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  return 0;
}
