/* SPDX-License-Identifier: MIT
**
** carry.h - shared by carry.c and blocks.c: ways to redistribute a matrix that take turns, each
** checked every time, and MPI_Alltoallw with datatypes made from a move's own plan.
*/
#ifndef CARRY_H
#define CARRY_H

#include "moongrid_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static char *from, *to;              /* this rank's parts, */
static int64_t from_bytes, to_bytes; /* and their sizes */
static mgrid_move *move;
static mgrid_backend *backend;

__attribute__((noreturn)) static void give_up(const char *why) {
  fprintf(stderr, "rank %d: %s\n", rank, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static void *room(int64_t bytes) {
  void *p = calloc((size_t)bytes + 1, 1);
  if (!p) give_up("no memory");
  return p;
}

/* A plan with one matrix, "w", whose two axes two dims cut; `dims` fastest first. */
static mgrid_plan *plan_of(const mgrid_dim dims[2], const char *type,
                           const mgrid_tensor_axis axes[2]) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(size), 2, dims, &e);
  mgrid_tensor *t = mgrid_tensor_new(g, type, 2, axes, NULL, &e);
  mgrid_topology *top = mgrid_topology_new(size, &e);
  mgrid_topology_add_tensor(top, "w", t, &e);
  mgrid_plan *p = mgrid_plan_new(top, &e);
  if (!p) give_up(e.message);
  mgrid_topology_free(top);
  mgrid_tensor_free(t);
  mgrid_grid_free(g);
  return p;
}

static int64_t bytes_of(const mgrid_plan *p) {
  mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_tensor_local(p, "w", rank, &part, &e)) give_up(e.message);
  return part.bytes;
}

/* The move from one plan to the other, and room for both parts. */
static void begin(mgrid_plan *before, mgrid_plan *after) {
  mgrid_error e = MGRID_ERROR_INIT;
  backend = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  move = mgrid_move_new(before, after, rank, 0, NULL, NULL, &e);
  if (!backend || !move) give_up(e.message);
  from = room(from_bytes = bytes_of(before)), to = room(to_bytes = bytes_of(after));
}

static void by_move(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_buffer a = { from, from_bytes }, b = { to, to_bytes };
  if (mgrid_move_run(move, backend, &a, &b, NULL, &e)) give_up(e.message);
}

/* ------------------------------------------------------------- MPI_Alltoallw */

/* Make the types once, as a trainer does: for each peer a type of the pieces, which are boxes. */
static int *nothing;
static MPI_Datatype *send_type, *recv_type, element_type;

typedef struct boxes {
  bool from;
  int n, room;
  MPI_Datatype *type;
  MPI_Aint *at;
} boxes;

static int add_box(void *ud, const mgrid_move_piece *p) {
  boxes *b = ud;
  const int64_t *stride = b->from ? p->from_strides : p->to_strides;
  MPI_Datatype row, box;
  int width;
  MPI_Type_size(element_type, &width);
  if (b->n == b->room) {
    b->room = b->room ? 2 * b->room : 16;
    b->type = realloc(b->type, (size_t)b->room * sizeof *b->type),
    b->at = realloc(b->at, (size_t)b->room * sizeof *b->at);
    if (!b->type || !b->at) return 1;
  }
  MPI_Type_create_hvector((int)p->lengths[1], 1, stride[1] * width, element_type, &row);
  MPI_Type_create_hvector((int)p->lengths[0], 1, stride[0] * width, row, &box);
  MPI_Type_free(&row);
  b->at[b->n] = (b->from ? p->from_offset : p->to_offset) * width;
  b->type[b->n++] = box;
  return 0;
}

static MPI_Datatype type_of(mgrid_way way, bool source, int peer, int *count) {
  boxes b = { .from = source };
  MPI_Datatype all = MPI_BYTE;
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_move_pieces(move, way, peer, add_box, &b, &e)) give_up(e.message);
  int *ones = room((int64_t)b.n * (int64_t)sizeof *ones);
  for (int i = 0; i < b.n; i++) ones[i] = 1;
  if (b.n) {
    MPI_Type_create_struct(b.n, ones, b.at, b.type, &all);
    MPI_Type_commit(&all);
  }
  for (int i = 0; i < b.n; i++) MPI_Type_free(&b.type[i]);
  free(b.type), free(b.at), free(ones);
  *count = b.n > 0;
  return all;
}

static int *send_count, *recv_count;

static void make_types(MPI_Datatype element) {
  element_type = element;
  nothing = room(size * (int64_t)sizeof *nothing);
  send_count = room(size * (int64_t)sizeof *send_count),
  recv_count = room(size * (int64_t)sizeof *recv_count);
  send_type = room(size * (int64_t)sizeof *send_type),
  recv_type = room(size * (int64_t)sizeof *recv_type);
  for (int r = 0; r < size; r++) {
    send_type[r] = type_of(r == rank ? MGRID_STAYS : MGRID_SENDS, true, r, &send_count[r]);
    recv_type[r] = type_of(r == rank ? MGRID_STAYS : MGRID_RECEIVES, false, r, &recv_count[r]);
  }
}

static void by_alltoallw(void) {
  MPI_Alltoallw(from, send_count, nothing, send_type, to, recv_count, nothing, recv_type,
                MPI_COMM_WORLD);
}

/* Non-blocking messages of the same types. */
static void by_types(void) {
  MPI_Request *q = room(2 * size * (int64_t)sizeof *q);
  int n = 0;
  for (int k = 0; k < size; k++) {
    int r = (rank + k) % size;
    if (recv_count[r]) MPI_Irecv(to, 1, recv_type[r], r, 1, MPI_COMM_WORLD, &q[n++]);
  }
  for (int k = 0; k < size; k++) {
    int r = (rank + k) % size;
    if (send_count[r]) MPI_Isend(from, 1, send_type[r], r, 1, MPI_COMM_WORLD, &q[n++]);
  }
  MPI_Waitall(n, q, MPI_STATUSES_IGNORE);
  free(q);
}

/* --------------------------------------------------------------------- turns */

typedef struct way {
  const char *name;
  void (*run)(void);
} way;

/* In each turn run all ways, one after the other, so that other work on the machine slows all of
** them alike. For each way print its name, and the ms of the slowest rank. `right` checks `to`,
** which is cleared before each way. */
static void take_turns(const way *ways, int n, int turns, bool (*right)(void)) {
  double *spent = room((int64_t)turns * n * (int64_t)sizeof *spent);
  for (int turn = -2; turn < turns; turn++)
    for (int w = 0; w < n; w++) {
      memset(to, 0, (size_t)to_bytes);
      MPI_Barrier(MPI_COMM_WORLD);
      double begun = MPI_Wtime();
      ways[w].run();
      double mine = MPI_Wtime() - begun, slowest;
      MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (turn >= 0) spent[w * turns + turn] = slowest;
      if (!right()) give_up(ways[w].name);
    }
  for (int w = 0; w < n && rank == 0; w++)
    for (int i = 0; i < turns; i++) printf("%s\t%.4f\n", ways[w].name, 1e3 * spent[w * turns + i]);
  free(spent);
}

static void tell_bytes(void) {
  mgrid_move_sums sums = MGRID_MOVE_SUMS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_move_bytes(move, &sums, &e);
  int64_t all = sums.send;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("bytes\t%lld\n", (long long)all);
}

static void end(void) {
  mgrid_move_free(move);
  mgrid_backend_free(backend);
  MPI_Finalize();
}

#endif
