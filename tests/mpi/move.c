/* SPDX-License-Identifier: MIT
**
** move.c - moves of tensors between random layouts on real ranks: every element is checked by a
** formula, MPI's bytes are counted, and memory beside the buffers stays; every rank reports the
** same refusals. TAP from rank 0. `move overtaken`: a rank sends so late that the others have given
** up. `move killed`: the rank is killed at that point. `move late` and `move absent`: a rank hangs
** during the move, or never comes; rank 0 prints its error and ends the job. `move lost`: a message
** of a rank never leaves, and all ranks run. `move slow`: two ranks take longer than the deadline,
** but make progress; the others wait.
*/
#include "layouts.h"
#include "spies.h"

#include <sys/mman.h>

/* ------------------------------------------------------------ random moves */

static bool one_move(mgrid_backend *b, uint64_t seed) {
  mgrid_error e = MGRID_ERROR_INIT;
  rng r = rng_new(seed);
  int n = (int)rng_between(&r, 1, TENSORS);
  int64_t length[TENSORS][AXES];
  bool large = rng_chance(&r, 10);
  int64_t before = rng_between(&r, 1, size), after = rng_between(&r, 1, size);
  mgrid_move_options what = MGRID_MOVE_OPTIONS_INIT;
  mgrid_move_sums sums = MGRID_MOVE_SUMS_INIT;
  for (int k = 0; k < n; k++)
    for (int i = 0; i < AXES; i++)
      length[k][i] = rng_between(&r, 1, !large ? 15 : i == 2 ? LONGEST : 40);
  mgrid_plan *from = layout(&r, rng_between(&r, 0, size - before), before, length, n, &e);
  mgrid_plan *to = layout(&r, rng_between(&r, 0, size - after), after, length, n, &e);
  what.rounds = rng_chance(&r, 30);
  mgrid_move *m = mgrid_move_new(from, to, rank, 0, NULL, &what, &e);
  mgrid_move_bytes(m, &sums, &e);
  mgrid_move_run_options how = MGRID_MOVE_RUN_OPTIONS_INIT;
  if (rng_chance(&r, 50)) how.window = 2 * 64 * 2 * size << rng_between(&r, 0, 8);
  if (rng_chance(&r, 30)) how.timeout = 60;
  parts src = make_parts(from, n, length, true, &e), dst = make_parts(to, n, length, false, &e);
  sent = 0;
  int64_t wrong = 0;
  bool ok = mgrid_move_run(m, b, src.buffer, dst.buffer, &how, &e) == MGRID_OK;
  ok &= sent == sums.send; /* each byte comes once */
  for (int k = 0; k < n; k++)
    if (dst.bytes[k]) wrong += walk(to, k, length[k], dst.buffer[k].data, true, &e);
  ok &= wrong == 0 && guards_are_whole(&src, n) && guards_are_whole(&dst, n);
  for (int k = 0; k < n; k++)
    if (src.bytes[k]) ok &= walk(from, k, length[k], src.buffer[k].data, true, &e) == 0;
  ok &= mgrid_move_prove(m, b, &how, &e) == MGRID_OK;
  if (!ok)
    fprintf(stderr, "# rank %d: seed %llu: %lld wrong, %lld bytes sent of %lld; %s\n", rank,
            (unsigned long long)seed, (long long)wrong, (long long)sent, (long long)sums.send,
            e.message);
  free_parts(&src, n);
  free_parts(&dst, n);
  mgrid_move_free(m);
  mgrid_plan_free(from);
  mgrid_plan_free(to);
  return ok;
}

/* ------------------------------------------------------------ one tensor, "a" */

static mgrid_plan *plan_of(mgrid_window w, size_t ndims, const mgrid_dim *dims, const char *type,
                           size_t naxes, const mgrid_tensor_axis *axis) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_grid *g = mgrid_grid_new(w, ndims, dims, &e);
  mgrid_tensor *tensor = mgrid_tensor_new(g, type, naxes, axis, NULL, &e);
  mgrid_topology *t = mgrid_topology_new(w.world, &e);
  mgrid_topology_add_tensor(t, "a", tensor, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  mgrid_topology_free(t);
  mgrid_tensor_free(tensor);
  mgrid_grid_free(g);
  return p;
}

/* Many boxes of long rows in each message, and two shapes of them, which differ in their strides
** alone where y is 2. */
static void boxes(mgrid_backend *b) {
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t length[1][AXES] = { { 61, 61, 128 } }, y = size > 2 && size % 2 == 0 ? 2 : 1;
  const mgrid_dim dims[] = { { "x", size / y }, { "y", y } };
  mgrid_plan *plan[2];
  mgrid_tensor_axis axis[AXES];
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < AXES; k++) {
      axis[k] = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
      axis[k].name = axis_names[k], axis[k].length = length[0][k];
      axis[k].dims = &dim_names[k == 2], axis[k].ndims = k == i || (k == 2 && i == 0);
      if (k < 2) axis[k].cutting = MGRID_CUT_CYCLIC, axis[k].block = 2;
    }
    plan[i] = plan_of(mgrid_world(size), 2, dims, types[0], AXES, axis);
  }
  mgrid_move *m = mgrid_move_new(plan[0], plan[1], rank, 0, NULL, NULL, &e);
  parts src = make_parts(plan[0], 1, length, true, &e),
        dst = make_parts(plan[1], 1, length, false, &e);
  bool ok = mgrid_move_run(m, b, src.buffer, dst.buffer, NULL, &e) == MGRID_OK;
  test(ok && walk(plan[1], 0, length[0], dst.buffer[0].data, true, &e) == 0
           && guards_are_whole(&dst, 1),
       "more boxes than a message takes, of several shapes");
  free_parts(&src, 1), free_parts(&dst, 1);
  mgrid_move_free(m);
  for (int i = 0; i < 2; i++) mgrid_plan_free(plan[i]);
}

/* ---------------------------------------------------------------- refusals */

typedef struct fixture {
  int64_t length[1][AXES];
  mgrid_plan *plan[3];
  mgrid_move *move;
  parts src, dst;
  mgrid_backend *backend;
} fixture;

static fixture fixture_new(mgrid_backend *b, int64_t elements) {
  mgrid_error e = MGRID_ERROR_INIT;
  fixture f = { { { elements, 16, 2 } },    { NULL }, NULL, { { { NULL, 0 } }, { 0 } },
                { { { NULL, 0 } }, { 0 } }, b };
  for (int i = 0; i < 3; i++) {
    mgrid_dim dims[] = { { "x", size } };
    mgrid_tensor_axis axis[AXES];
    for (int k = 0; k < AXES; k++) {
      axis[k] = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
      axis[k].name = axis_names[k];
      axis[k].length = f.length[0][k];
      axis[k].ndims = k == (i + 1) % 2;
      axis[k].dims = dim_names;
      axis[k].cutting = i == 2 ? MGRID_CUT_CEIL : MGRID_CUT_EVEN;
    }
    f.plan[i] = plan_of(mgrid_world(size), 1, dims, types[0], AXES, axis);
  }
  f.move = mgrid_move_new(f.plan[0], f.plan[1], rank, 0, NULL, NULL, &e);
  f.src = make_parts(f.plan[0], 1, f.length, true, &e);
  f.dst = make_parts(f.plan[1], 1, f.length, false, &e);
  return f;
}

static void fixture_free(fixture *f) {
  free_parts(&f->src, 1);
  free_parts(&f->dst, 1);
  mgrid_move_free(f->move);
  for (int i = 0; i < 3; i++) mgrid_plan_free(f->plan[i]);
}

static bool untouched(const parts *p) {
  for (int64_t i = 0; i < p->buffer[0].bytes; i++)
    if (((char *)p->buffer[0].data)[i] != 0x5a) return false;
  return true;
}

static void refused(fixture *f, const mgrid_move *m, const mgrid_buffer *src,
                    const mgrid_move_run_options *o, mgrid_status want, const char *message,
                    const char *what) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_status s = mgrid_move_run(m, f->backend, src, f->dst.buffer, o, &e);
  bool ok = s == want && strcmp(e.message, message) == 0 && untouched(&f->dst);
  if (!ok)
    fprintf(stderr, "# rank %d: status %d, not %d: %s\n", rank, (int)s, (int)want, e.message);
  test(ok, what);
}

static void refusals(mgrid_backend *b) {
  mgrid_error e = MGRID_ERROR_INIT;
  fixture f = fixture_new(b, 64);
  char want[512];
  int last = size - 1;
  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  mgrid_buffer small = f.src.buffer[0];
  small.bytes = 7;
  snprintf(
      want, sizeof want,
      "rank %d: the part of tensor 'a' before the move has %lld bytes, its buffer on rank %d 7",
      last, (long long)f.src.bytes[0], last);
  if (64 % size == 0)
    refused(&f, f.move, rank == last ? &small : f.src.buffer, NULL, MGRID_REFUSED, want,
            "a buffer that is too small on one rank is told on all");
  snprintf(want, sizeof want, "rank %d: no move was given", last);
  refused(&f, rank == last ? NULL : f.move, f.src.buffer, NULL, MGRID_USAGE, want,
          "a rank without a move");
  o.window = -1;
  refused(
      &f, f.move, f.src.buffer, &o, MGRID_OUT_OF_RANGE,
      "rank 0: a move needs a window of 0 (the default) or more bytes and a timeout of 0 or more",
      "a window of less than nothing");
  if (size == 1) {
    fixture_free(&f);
    return;
  }
  o.window = 64;
  mgrid_move_sums sums = MGRID_MOVE_SUMS_INIT;
  mgrid_move_bytes(f.move, &sums, &e);
  int64_t most = sums.sends + sums.receives;
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  snprintf(want, sizeof want,
           "a window of 64 bytes is too small for %lld messages at a time: %lld at least",
           (long long)most, (long long)most * 128);
  refused(&f, f.move, f.src.buffer, &o, MGRID_REFUSED, want,
          "a window that is too small for the busiest rank");
  /* another move on the last rank: from the other layout back */
  mgrid_move *other = rank == last ? mgrid_move_new(f.plan[0], f.plan[2], rank, 0, NULL, NULL, &e)
                                   : NULL;
  char d[3][33];
  for (int i = 0; i < 3; i++) mgrid_plan_digest(f.plan[i], d[i]), d[i][8] = '\0';
  snprintf(want, sizeof want,
           "ranks differ: rank 0 moves plan %s to %s, window 67108864: a, rank %d moves plan %s to "
           "%s, window "
           "67108864: a",
           d[0], d[1], last, d[0], d[2]);
  parts dst = f.dst;
  if (rank == last) f.dst = make_parts(f.plan[2], 1, f.length, false, &e);
  refused(&f, other ? other : f.move, f.src.buffer, NULL, MGRID_DISAGREE, want,
          "another move on one rank");
  if (rank == last) free_parts(&f.dst, 1);
  f.dst = dst;
  mgrid_move_free(other);
  /* the move of another rank */
  other = mgrid_move_new(f.plan[0], f.plan[1], 1, 0, NULL, NULL, &e);
  refused(&f, other, f.src.buffer, NULL, MGRID_REFUSED,
          "rank 0: the move is seen from rank 1, this is rank 0", "the move of another rank");
  mgrid_move_free(other);
  test(mgrid_move_run(f.move, b, f.src.buffer, f.dst.buffer, NULL, anew(&e)) == MGRID_OK
           && walk(f.plan[1], 0, f.length[0], f.dst.buffer[0].data, true, &e) == 0,
       "and after all of these the right one goes");
  fixture_free(&f);
}

/* A message of 5 GiB, more than MPI's int can count, in little memory: each buffer is the same
** pages again and again, of a length that no power of two divides, so that an offset that wrapped
** around would show. */
static void big(mgrid_backend *b) {
  enum { PERIOD = (64 << 20) + 4096, TIMES = 80 };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_tensor_axis axis = MGRID_TENSOR_AXIS_INIT;
  const int64_t bytes = (int64_t)PERIOD * TIMES;
  mgrid_plan *plan[2];
  int file = memfd_create("big", 0);
  char *all =
      mmap(NULL, (size_t)bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool ok = file >= 0 && all != MAP_FAILED && ftruncate(file, PERIOD) == 0;
  for (int64_t i = 0; i < TIMES && ok; i++)
    ok = mmap(all + i * PERIOD, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0)
         != MAP_FAILED;
  for (int64_t i = 0; i < PERIOD / 8 && ok && rank == 0; i++) ((int64_t *)all)[i] = i;
  axis.name = "i", axis.length = bytes;
  for (int i = 0; i < 2; i++)
    plan[i] = plan_of((mgrid_window){ 2, i, 1 }, 0, NULL, "f8_e4m3", 1, &axis);
  mgrid_move *m = mgrid_move_new(plan[0], plan[1], rank, 0, NULL, NULL, &e);
  mgrid_buffer mine = { all, bytes }, none = { NULL, 0 };
  sent = 0;
  ok = ok && mgrid_move_run(m, b, rank ? &none : &mine, rank ? &mine : &none, NULL, &e) == MGRID_OK
       && sent == (rank ? 0 : bytes);
  for (int64_t i = 0; i < PERIOD / 8 && ok; i++) ok = ((int64_t *)all)[i] == i;
  if (e.status) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  test(ok, "a tensor of 5 GiB");
  mgrid_move_free(m);
  for (int i = 0; i < 2; i++) mgrid_plan_free(plan[i]);
  munmap(all, (size_t)bytes);
  close(file);
}

/* A rank that hangs on the way (late), never comes, or loses a message. Ends the job. */
static int stuck(const char *how) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  fixture f = fixture_new(b, 100000);
  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  o.timeout = 1;
  if (rank == 1 && strcmp(how, "late") == 0) hang = 1;
  if (rank == 1 && strcmp(how, "absent") == 0) sleep(4);
  loses = rank == 1 && strcmp(how, "lost") == 0;
  mgrid_status s = mgrid_move_run(f.move, b, f.src.buffer, f.dst.buffer, &o, &e);
  if (rank == 0) {
    printf("%d: %s\n", (int)s, e.message);
    s = mgrid_move_run(f.move, b, f.src.buffer, f.dst.buffer, &o, anew(&e));
    printf("%d: %s\n", (int)s, e.message);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  sleep(10);
  return 1;
}

/* Rank 1 stops before it sends, longer than the others wait for it; they give up, and use their
** parts for something else. What it then receives must be no success. Or it is killed there. Ends
** the job. */
static int overtaken(bool killed) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  fixture f = fixture_new(b, 100000);
  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  o.timeout = 1;
  mgrid_move_run(f.move, b, f.src.buffer, f.dst.buffer, NULL, &e);
  if (rank == 1 && !killed) hang = 0;
  dies = rank == 1 && killed;
  mgrid_status s = mgrid_move_run(f.move, b, f.src.buffer, f.dst.buffer, &o, &e);
  if (rank < 2) printf("%d %d: %s\n", rank, (int)s, e.message), fflush(stdout);
  memset(f.src.buffer[0].data, 0, (size_t)f.src.buffer[0].bytes);
  sleep(killed ? 2 : rank == 1 ? 1 : 20);
  MPI_Abort(MPI_COMM_WORLD, 3);
  return 1;
}

/* Half of each row goes from one rank to the next, in chunks that take twice the deadline
** together. */
static void slow(mgrid_backend *b, int mover) {
  enum { PARCELS = 32, HALF = 32 << 10, ROW = 128 };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *plan[2];
  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  const char *x = "x";
  char says[96];
  for (int i = 0; i < 2; i++) {
    mgrid_window w = { size, mover, i + 1 };
    mgrid_dim dim = { "x", i + 1 };
    mgrid_tensor_axis axis[] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
    axis[0].name = "row", axis[0].length = PARCELS * HALF / ROW;
    axis[1].name = "column", axis[1].length = 2 * ROW, axis[1].ndims = 1, axis[1].dims = &x;
    plan[i] = plan_of(w, 1, &dim, "u8", 2, axis);
  }
  mgrid_move *m = mgrid_move_new(plan[0], plan[1], rank, 0, NULL, NULL, &e);
  o.window = 2 * HALF, o.timeout = 2;
  dawdle = rank == mover ? 125 : 0;
  double begun = MPI_Wtime();
  bool ok = mgrid_move_prove(m, b, &o, &e) == MGRID_OK && MPI_Wtime() - begun > 1.5 * o.timeout;
  if (e.status) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  dawdle = 0;
  snprintf(says, sizeof says, "ranks without messages wait as long as rank %d goes on", mover);
  test(ok, says);
  mgrid_move_free(m);
  for (int i = 0; i < 2; i++) mgrid_plan_free(plan[i]);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  tap_begin(&argc, &argv);
  if (argc > 1 && strcmp(argv[1], "slow") == 0) {
    mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
    slow(b, 0);
    slow(b, 2);
    mgrid_backend_free(b);
    return tap_end();
  }
  if (argc > 1 && strcmp(argv[1], "overtaken") == 0) return overtaken(false);
  if (argc > 1 && strcmp(argv[1], "killed") == 0) return overtaken(true);
  if (argc > 1) return stuck(argv[1]);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  bool ok = true;
  uint64_t first = first_seed();
  for (uint64_t seed = first; seed < first + 150; seed++) ok &= one_move(b, seed);
  test(ok,
       "150 random moves: every element, no byte more than planned, nothing beside the buffers");
  boxes(b);
  refusals(b);
  if (size == 2) big(b);
  mgrid_backend_free(b);
  mgrid_backend *dry = mgrid_backend_dry(2, 0, anew(&e));
  fixture f = fixture_new(dry, 64);
  test(size != 2
           || (mgrid_move_run(f.move, dry, f.src.buffer, f.dst.buffer, NULL, anew(&e))
                   == (rank ? MGRID_REFUSED : MGRID_UNSUPPORTED)
               && strcmp(e.message, rank ? "rank 0: the move is seen from rank 1, this is rank 0"
                                         : "rank 0: the dry backend moves no data")
                      == 0),
       "a dry backend moves nothing");
  fixture_free(&f);
  mgrid_backend_free(dry);
  return tap_end();
}
