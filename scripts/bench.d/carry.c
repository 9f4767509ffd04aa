/* SPDX-License-Identifier: MIT
**
** carry.c - a move carried out, beside MPI_Alltoallw with derived datatypes, persistent messages of packed buffers, and
** an all-gather of the whole with a slice: carry EDGE TURNS, under mpirun. A square of f32 that is cut by rows becomes
** one that is cut by columns. A line for each way and turn:
** its name, and what the slowest rank took, in ms.
*/
#include "moongrid_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int     rank, size;
static int64_t edge, rows; /* of the square; of a part */
static float  *from, *to, *packed, *whole;

static mgrid_plan *layout(int axis) {
  mgrid_error       e = MGRID_ERROR_INIT;
  mgrid_dim         dims[] = { { "x", size } };
  const char       *dim = "x";
  mgrid_tensor_axis axes[2] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
  mgrid_grid       *g = mgrid_grid_new(mgrid_world(size), 1, dims, &e);
  for (int i = 0; i < 2; i++) axes[i].name = i ? "column" : "row", axes[i].length = edge;
  axes[axis].ndims = 1, axes[axis].dims = &dim;
  mgrid_tensor   *t = mgrid_tensor_new(g, "f32", 2, axes, NULL, &e);
  mgrid_topology *top = mgrid_topology_new(size, &e);
  mgrid_topology_add_tensor(top, "w", t, &e);
  mgrid_plan *p = mgrid_plan_new(top, &e);
  if (!p) fprintf(stderr, "carry: %s\n", e.message), MPI_Abort(MPI_COMM_WORLD, 1);
  return p;
}

static mgrid_move    *move;
static mgrid_backend *backend;

static void by_move(void) {
  mgrid_error  e = MGRID_ERROR_INIT;
  int64_t      bytes = edge * rows * 4;
  mgrid_buffer a = { from, bytes }, b = { to, bytes };
  if (mgrid_move_run(move, backend, &a, &b, NULL, &e))
    fprintf(stderr, "carry: %s\n", e.message), MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Types are made once, as a trainer would. */
static int          *one, *nothing;
static MPI_Datatype *send_type, *recv_type;

static void make_types(void) {
  one = malloc((size_t)size * sizeof *one), nothing = calloc((size_t)size, sizeof *nothing);
  send_type = malloc((size_t)size * sizeof *send_type), recv_type = malloc((size_t)size * sizeof *recv_type);
  for (int r = 0; r < size; r++) {
    int whole_of[] = { (int)rows, (int)edge }, part[] = { (int)rows, (int)rows }, at[] = { 0, r * (int)rows };
    int into[] = { (int)edge, (int)rows }, put[] = { r * (int)rows, 0 };
    MPI_Type_create_subarray(2, whole_of, part, at, MPI_ORDER_C, MPI_FLOAT, &send_type[r]);
    MPI_Type_create_subarray(2, into, part, put, MPI_ORDER_C, MPI_FLOAT, &recv_type[r]);
    MPI_Type_commit(&send_type[r]);
    MPI_Type_commit(&recv_type[r]);
    one[r] = 1;
  }
}

static void by_alltoallw(void) {
  MPI_Alltoallw(from, one, nothing, send_type, to, one, nothing, recv_type, MPI_COMM_WORLD);
}

/* Non-blocking messages of the same datatypes. */
static void by_types(void) {
  MPI_Request q[512];
  int         n = 0;
  for (int k = 0; k < size; k++)
    MPI_Irecv(to, 1, recv_type[(rank + k) % size], (rank + k) % size, 1, MPI_COMM_WORLD, &q[n++]);
  for (int k = 0; k < size; k++)
    MPI_Isend(from, 1, send_type[(rank + k) % size], (rank + k) % size, 1, MPI_COMM_WORLD, &q[n++]);
  MPI_Waitall(n, q, MPI_STATUSES_IGNORE);
}

static MPI_Request *persistent;

static void make_persistent(void) {
  persistent = malloc(2 * (size_t)size * sizeof *persistent);
  for (int r = 0; r < size; r++) {
    MPI_Recv_init(to + r * rows * rows, (int)(rows * rows), MPI_FLOAT, r, 2, MPI_COMM_WORLD, &persistent[r]);
    MPI_Send_init(packed + r * rows * rows, (int)(rows * rows), MPI_FLOAT, r, 2, MPI_COMM_WORLD, &persistent[size + r]);
  }
}

/* Packed by hand, received in place. */
static void by_persistent(void) {
  MPI_Startall(size, persistent); /* the receives */
  for (int k = 0; k < size; k++) {
    int r = (rank + k) % size;
    for (int64_t i = 0; i < rows; i++)
      memcpy(packed + (r * rows + i) * rows, from + i * edge + r * rows, (size_t)rows * 4);
    MPI_Start(&persistent[size + r]);
  }
  MPI_Waitall(2 * size, persistent, MPI_STATUSES_IGNORE);
}

static void by_gather(void) {
  MPI_Allgather(from, (int)(rows * edge), MPI_FLOAT, whole, (int)(rows * edge), MPI_FLOAT, MPI_COMM_WORLD);
  for (int64_t i = 0; i < edge; i++) memcpy(to + i * rows, whole + i * edge + rank * rows, (size_t)rows * 4);
}

static bool right(void) {
  for (int64_t i = 0; i < edge; i++)
    for (int64_t k = 0; k < rows; k++)
      if (to[i * rows + k] != (float)((i * edge + rank * rows + k) % 1000003)) return false;
  return true;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } ways[] = { { "move", by_move },
               { "alltoallw", by_alltoallw },
               { "types", by_types },
               { "persistent", by_persistent },
               { "gather", by_gather } };
  enum { WAYS = sizeof ways / sizeof ways[0] };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int         turns = argc > 2 ? atoi(argv[2]) : 10;
  mgrid_error e = MGRID_ERROR_INIT;
  edge = argc > 1 ? atoll(argv[1]) / size * size : 2048;
  rows = edge / size;
  from = malloc((size_t)(rows * edge) * 4), to = malloc((size_t)(rows * edge) * 4);
  packed = malloc((size_t)(rows * edge) * 4), whole = malloc((size_t)(edge * edge) * 4);
  double *spent = malloc((size_t)turns * WAYS * sizeof *spent);
  if (!from || !to || !packed || !whole || !spent) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int64_t i = 0; i < rows * edge; i++) from[i] = (float)((rank * rows * edge + i) % 1000003);
  backend = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  move = mgrid_move_new(layout(0), layout(1), rank, 0, NULL, NULL, &e);
  make_types();
  make_persistent();
  for (int turn = -2; turn < turns; turn++) /* one way after the other in each turn: all have the same weather */
    for (int w = 0; w < WAYS; w++) {
      memset(to, 0, (size_t)(rows * edge) * 4);
      MPI_Barrier(MPI_COMM_WORLD);
      double begun = MPI_Wtime();
      ways[w].run();
      double mine = MPI_Wtime() - begun, slowest;
      MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (turn >= 0) spent[w * turns + turn] = slowest;
      if (!right()) fprintf(stderr, "carry: %s is wrong\n", ways[w].name), MPI_Abort(MPI_COMM_WORLD, 1);
    }
  for (int w = 0; w < WAYS && rank == 0; w++)
    for (int i = 0; i < turns; i++) printf("%s\t%.4f\n", ways[w].name, 1e3 * spent[w * turns + i]);
  mgrid_move_free(move);
  mgrid_backend_free(backend);
  MPI_Finalize();
  return 0;
}
