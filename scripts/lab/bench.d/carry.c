/* SPDX-License-Identifier: MIT
**
** carry.c - measure the time of a move, of MPI_Alltoallw, of non-blocking messages of the same
** datatypes, of persistent messages of packed buffers, and of an all-gather with a slice: carry
** EDGE TURNS A B, under mpirun of A x B ranks. A square of f32, whose rows dim a cuts and whose
** columns dim b cuts, moves to columns cut by a and rows cut by b: torch's (Shard0, Shard1) to
** (Shard1, Shard0). With B 1 the square is cut by rows before, by columns after.
*/
#include "carry.h"

static int64_t edge, a, b; /* of the square; of the mesh */

static mgrid_plan *layout(bool after) {
  const char *by_a = "a", *by_b = "b";
  mgrid_tensor_axis axes[2] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
  const mgrid_dim dims[] = { { "b", b }, { "a", a } };
  for (int i = 0; i < 2; i++) {
    axes[i].name = i ? "column" : "row", axes[i].length = edge;
    axes[i].ndims = 1, axes[i].dims = (i == 1) == after ? &by_a : &by_b;
  }
  return plan_of(dims, "f32", axes);
}

static float element(int64_t row, int64_t column) {
  return (float)((row * edge + column) % 1000003);
}

/* ------------------------------------------------------ packed and persistent */

static MPI_Request *persistent;
static float *packed;

/* Only for B 1, where the data received from a rank is contiguous. */
static void make_persistent(void) {
  int64_t rows = edge / a;
  int n = (int)(rows * rows);
  persistent = room(2 * size * (int64_t)sizeof *persistent);
  packed = room(from_bytes);
  for (int r = 0; r < size; r++) {
    MPI_Recv_init((float *)to + r * rows * rows, n, MPI_FLOAT, r, 2, MPI_COMM_WORLD,
                  &persistent[r]);
    MPI_Send_init(packed + r * rows * rows, n, MPI_FLOAT, r, 2, MPI_COMM_WORLD,
                  &persistent[size + r]);
  }
}

static void by_persistent(void) {
  int64_t rows = edge / a;
  MPI_Startall(size, persistent); /* the receives */
  for (int k = 0; k < size; k++) {
    int r = (rank + k) % size;
    for (int64_t i = 0; i < rows; i++)
      memcpy(packed + (r * rows + i) * rows, (float *)from + i * edge + r * rows, (size_t)rows * 4);
    MPI_Start(&persistent[size + r]);
  }
  MPI_Waitall(2 * size, persistent, MPI_STATUSES_IGNORE);
}

/* -------------------------------------------------------- all-gather and slice */

static float *whole; /* all parts, one after the other */

static void by_gather(void) {
  int64_t rows = edge / b, columns = edge / a, first_row = rank % b * rows,
          first = rank / b * columns;
  int64_t tall = edge / a, wide = edge / b; /* of a part before */
  MPI_Allgather(from, (int)(from_bytes / 4), MPI_FLOAT, whole, (int)(from_bytes / 4), MPI_FLOAT,
                MPI_COMM_WORLD);
  for (int64_t i = first_row; i < first_row + rows; i++)
    for (int64_t k = first, n; k < first + columns; k += n) {
      const float *part = whole + (i / tall * b + k / wide) * tall * wide;
      n = wide - k % wide < first + columns - k ? wide - k % wide : first + columns - k;
      memcpy((float *)to + (i - first_row) * columns + k - first, part + i % tall * wide + k % wide,
             (size_t)n * 4);
    }
}

static bool right(void) {
  int64_t rows = edge / b, columns = edge / a;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      if (((float *)to)[i * columns + k] != element(rank % b * rows + i, rank / b * columns + k))
        return false;
  return true;
}

int main(int argc, char **argv) {
  const way ways[] = { { "move", by_move },
                       { "alltoallw", by_alltoallw },
                       { "types", by_types },
                       { "gather", by_gather },
                       { "persistent", by_persistent } };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  a = argc == 5 ? atoll(argv[3]) : 0, b = argc == 5 ? atoll(argv[4]) : 0;
  if (a * b != size || a < 1) give_up("carry EDGE TURNS A B, of A x B ranks");
  edge = atoll(argv[1]) / size * size;
  begin(layout(false), layout(true));
  for (int64_t i = 0, wide = edge / b; i < from_bytes / 4; i++)
    ((float *)from)[i] = element(rank / b * (edge / a) + i / wide, rank % b * wide + i % wide);
  whole = room(4 * edge * edge);
  make_types(MPI_FLOAT);
  if (b == 1) make_persistent();
  take_turns(ways, b == 1 ? 5 : 4, atoi(argv[2]), right);
  tell_bytes();
  end();
  return 0;
}
