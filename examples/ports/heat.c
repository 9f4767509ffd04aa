/* SPDX-License-Identifier: MIT
**
** heat.c - heat on a cylinder by Jacobi's method: each rank of a Cartesian communicator has a block
** of the plane, and exchanges halos with its neighbours in x (periodic) and y (cold ends). The
** result must be equal to the last bit to a serial run in the same program, since every cell is
** computed by the same function from the same numbers.
**
** Such a solver calls MPI_Dims_create, MPI_Cart_create, MPI_Cart_coords, MPI_Cart_shift and
** MPI_Cart_sub (MPI 4.0, chapter 8). heat.lua replaces MPI_Dims_create, MPI_Cart_create and
** MPI_Cart_sub; comments beside its lines say which one.
**
**     mpirun -n 8 heat examples/ports/heat.lua x=4
*/
#include "port.h"

#include <math.h>

/* cells of the plane; 8 ranks cut it as 2 x 4, 4 x 2, 8 x 1, 1 x 8 */
enum { WIDE = 48, HIGH = 40, STEPS = 60 };

/* The cells of a rank with a halo around them; cell (x, y) is at[(y + 1) * (nx + 2) + x + 1]. */
typedef struct block {
  int nx, ny;
  double *at, *next;
} block;

static double *cell(double *at, const block *b, int x, int y) {
  return &at[(y + 1) * (b->nx + 2) + x + 1];
}

static block block_new(int nx, int ny, int from_x, int from_y) {
  size_t cells = (size_t)(nx + 2) * (size_t)(ny + 2);
  block b = { nx, ny, calloc(cells, sizeof(double)), calloc(cells, sizeof(double)) };
  if (!b.at || !b.next) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int y = 0; y < ny; y++)
    for (int x = 0; x < nx; x++)
      *cell(b.at, &b, x, y) = sin(0.1 * (from_x + x)) + 0.01 * (from_y + y) * (from_x + x);
  return b;
}

static void block_free(block *b) {
  free(b->at);
  free(b->next);
}

static void jacobi(block *b) {
  for (int y = 0; y < b->ny; y++)
    for (int x = 0; x < b->nx; x++)
      *cell(b->next, b, x, y) = 0.25
                                * (*cell(b->at, b, x - 1, y) + *cell(b->at, b, x + 1, y)
                                   + *cell(b->at, b, x, y - 1) + *cell(b->at, b, x, y + 1));
  double *was = b->at;
  b->at = b->next, b->next = was;
}

/* Fill the halos of the serial run: x is periodic; beyond the ends of y the cells stay 0. */
static void wrap(block *b) {
  for (int y = 0; y < b->ny; y++) {
    *cell(b->at, b, -1, y) = *cell(b->at, b, b->nx - 1, y);
    *cell(b->at, b, b->nx, y) = *cell(b->at, b, 0, y);
  }
}

/* --- the set-up */

typedef struct solver {
  mgrid_state *state;
  const mgrid_group *cart, *ring, *line;
  MPI_Comm comm;            /* of cart */
  int west, east, up, down; /* ranks of comm; MPI_PROC_NULL beyond an end */
  int nx, ny, x, y;         /* cells of this rank; its coordinates in the plane of ranks */
} solver;

static bool set_up(solver *s, mgrid_backend *mpi, const char *recipe, int n,
                   const char *const *args) {
  s->state = port_state(mpi, recipe, n, args, "heat");
  s->cart = mgrid_state_group(s->state, "cart", &port_error);
  s->ring = mgrid_state_group(s->state, "ring", &port_error);
  s->line = mgrid_state_group(s->state, "line", &port_error);
  if (!s->state) return false;
  s->comm = mgrid_mpi_comm(s->cart);
  s->x = (int)mgrid_state_coord(s->state, "plane", "x", &port_error); /* MPI_Cart_coords */
  s->y = (int)mgrid_state_coord(s->state, "plane", "y", &port_error);
  s->nx = WIDE / (int)mgrid_group_size(s->ring);
  s->ny = HIGH / (int)mgrid_group_size(s->line);
  mgrid_mpi_shift(s->cart, "x", 1, &s->west, &s->east, &port_error); /* MPI_Cart_shift */
  mgrid_mpi_shift(s->cart, "y", 1, &s->up, &s->down, &port_error);
  return true;
}

/* --- the end of the set-up */

/* Compare with MPI's topology of the communicator, whose dims are in the opposite order, y first.
** The communicator of a single rank has none. */
static void ask_mpi(const solver *s) {
  int dims[2], periods[2], coords[2], balanced[2] = { 0, 0 }, from, to, kind;
  MPI_Topo_test(s->comm, &kind);
  EXPECT((kind == MPI_CART) == (port_size > 1));
  if (kind != MPI_CART) return;
  MPI_Cart_get(s->comm, 2, dims, periods, coords);
  EXPECT(dims[0] == mgrid_group_size(s->line) && dims[1] == mgrid_group_size(s->ring));
  EXPECT(!periods[0] && periods[1] && coords[0] == s->y && coords[1] == s->x);
  MPI_Cart_shift(s->comm, 0, 1, &from, &to);
  EXPECT(from == s->up && to == s->down);
  MPI_Cart_shift(s->comm, 1, 1, &from, &to);
  EXPECT(from == s->west && to == s->east);
  MPI_Dims_create(port_size, 2, balanced);
  EXPECT(balanced[0] * balanced[1] == dims[0] * dims[1]
         && balanced[0] <= (dims[0] > dims[1] ? dims[0] : dims[1]));
}

static void exchange(const solver *s, block *b) {
  MPI_Datatype column;
  double *at = b->at;
  int nx = b->nx, ny = b->ny;
  MPI_Type_vector(ny, 1, nx + 2, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Sendrecv(cell(at, b, nx - 1, 0), 1, column, s->east, 0, cell(at, b, -1, 0), 1, column,
               s->west, 0, s->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(cell(at, b, 0, 0), 1, column, s->west, 1, cell(at, b, nx, 0), 1, column, s->east, 1,
               s->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(cell(at, b, 0, ny - 1), nx, MPI_DOUBLE, s->down, 2, cell(at, b, 0, -1), nx,
               MPI_DOUBLE, s->up, 2, s->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(cell(at, b, 0, 0), nx, MPI_DOUBLE, s->up, 3, cell(at, b, 0, ny), nx, MPI_DOUBLE,
               s->down, 3, s->comm, MPI_STATUS_IGNORE);
  MPI_Type_free(&column);
}

/* Return the hottest cell, found over the communicators that replace those of MPI_Cart_sub. */
static double hottest(const solver *s, block *b) {
  double most = -HUGE_VAL;
  for (int y = 0; y < b->ny; y++)
    for (int x = 0; x < b->nx; x++) most = fmax(most, *cell(b->at, b, x, y));
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, mgrid_mpi_comm(s->ring));
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, mgrid_mpi_comm(s->line));
  return most;
}

int main(int argc, char **argv) {
  solver s = { 0 };
  mgrid_backend *mpi = port_begin(&argc, &argv);
  if (argc < 2 || !set_up(&s, mpi, argv[1], argc - 2, (const char *const *)argv + 2))
    port_give_up("heat RECIPE [x=N]");
  EXPECT(s.nx * mgrid_group_size(s.ring) == WIDE && s.ny * mgrid_group_size(s.line) == HIGH);
  ask_mpi(&s);
  EXPECT(mgrid_state_prove(s.state, NULL, &port_error) == MGRID_OK);

  block mine = block_new(s.nx, s.ny, s.x * s.nx, s.y * s.ny), plane = block_new(WIDE, HIGH, 0, 0);
  double most = -HUGE_VAL;
  for (int step = 0; step < STEPS; step++) {
    exchange(&s, &mine);
    jacobi(&mine);
    wrap(&plane);
    jacobi(&plane);
  }
  for (int y = 0; y < s.ny; y++)
    for (int x = 0; x < s.nx; x++)
      EXPECT(*cell(mine.at, &mine, x, y)
             == *cell(plane.at, &plane, s.x * s.nx + x, s.y * s.ny + y));
  for (int y = 0; y < HIGH; y++)
    for (int x = 0; x < WIDE; x++) most = fmax(most, *cell(plane.at, &plane, x, y));
  EXPECT(hottest(&s, &mine) == most);
  block_free(&mine);
  block_free(&plane);
  mgrid_state_free(s.state);
  return port_end("heat", mpi);
}
