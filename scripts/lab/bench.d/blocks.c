/* SPDX-License-Identifier: MIT
**
** blocks.c - move a block-cyclic matrix of doubles, as in ScaLAPACK, to another grid of processes
** with other blocks: blocks EDGE TURNS P Q BLOCK P2 Q2 BLOCK2. Compares a move with pdgemr2d, in
** time and, on every rank, in its result.
*/
#include "carry.h"

/* From ScaLAPACK, which has no header. */
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cpdgemr2d(int m, int n, double *a, int ia, int ja, int *desca, double *b, int ib, int jb,
               int *descb, int context);

typedef struct dealing {
  int p, q, block;
} dealing;

static int edge, contexts[2], descriptions[2][9];
static char *wanted; /* the result of the first way */

/* In C order the column is the slow axis: ScaLAPACK stores column after column. */
static mgrid_plan *layout(dealing d) {
  const char *by[] = { "q", "p" };
  const mgrid_dim dims[] = { { "q", d.q }, { "p", d.p } };
  mgrid_tensor_axis axes[2] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
  for (int i = 0; i < 2; i++) {
    axes[i].name = i ? "row" : "column", axes[i].length = edge;
    axes[i].ndims = 1, axes[i].dims = &by[i];
    axes[i].cutting = MGRID_CUT_CYCLIC, axes[i].block = d.block;
  }
  return plan_of(dims, "f64", axes);
}

/* Return the number of rows that a coordinate has. */
static int local_rows(dealing d) {
  int n = 0;
  for (int at = rank / d.q * d.block; at < edge; at += d.p * d.block)
    n += edge - at < d.block ? edge - at : d.block;
  return n;
}

static void describe(int i, dealing d) {
  int rows = local_rows(d);
  Cblacs_get(0, 0, &contexts[i]);
  Cblacs_gridinit(&contexts[i], "Row", d.p, d.q);
  const int all[9] = { 1, contexts[i], edge, edge, d.block, d.block, 0, 0, rows > 0 ? rows : 1 };
  memcpy(descriptions[i], all, sizeof all);
}

static void by_scalapack(void) {
  Cpdgemr2d(edge, edge, (double *)from, 1, 1, descriptions[0], (double *)to, 1, 1, descriptions[1],
            contexts[0]);
}

/* Fill this rank's part with the numbers of its elements. */
static void fill(dealing d, double *part) {
  int p = rank / d.q, q = rank % d.q;
  for (int k = 0; k < edge; k++)
    for (int i = 0; i < edge; i++)
      if (k / d.block % d.q == q && i / d.block % d.p == p) *part++ = (double)k * edge + i;
}

static bool right(void) { return memcmp(to, wanted, (size_t)to_bytes) == 0; }

int main(int argc, char **argv) {
  const way ways[] = { { "move", by_move },
                       { "scalapack", by_scalapack },
                       { "alltoallw", by_alltoallw },
                       { "types", by_types } };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 9) give_up("blocks EDGE TURNS P Q BLOCK P2 Q2 BLOCK2");
  dealing d[2] = { { atoi(argv[3]), atoi(argv[4]), atoi(argv[5]) },
                   { atoi(argv[6]), atoi(argv[7]), atoi(argv[8]) } };
  if (d[0].p * d[0].q != size || d[1].p * d[1].q != size)
    give_up("P x Q and P2 x Q2 are to be all ranks");
  edge = atoi(argv[1]);
  begin(layout(d[0]), layout(d[1]));
  for (int i = 0; i < 2; i++) describe(i, d[i]);
  wanted = room(to_bytes);
  fill(d[0], (double *)from);
  fill(d[1], (double *)wanted);
  make_types(MPI_DOUBLE);
  take_turns(ways, 4, atoi(argv[2]), right);
  tell_bytes();
  end();
  return 0;
}
