/* SPDX-License-Identifier: MIT
**
** move.c - moves in memory of GPUs, as a host calls them: memory that is not the GPU's is refused
** on all ranks, and then the right one goes. `move failing`: NCCL fails on the way. `move absent`:
** a rank never comes. `move mpi`: over an MPI that is not CUDA-aware, and one that is. `move kept
** FOLDER`: over a store that keeps every value. TAP from rank 0.
*/
#include "trainer.h"

enum { ROWS = 64, COLUMNS = 48 }; /* of i32 */

/* What an MPI for GPUs has. The stand-in's memory is the CPU's, so that any MPI reaches it. */
static int cuda_aware;
__attribute__((visibility("default"))) int MPIX_Query_cuda_support(void);
int MPIX_Query_cuda_support(void) { return cuda_aware; }

/* A matrix cut by its rows, or by its columns. */
static mgrid_plan *cut(int axis, mgrid_error *e) {
  const mgrid_dim dims[] = { { "x", size } };
  const char *x = "x";
  mgrid_tensor_axis axes[2] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
  axes[0].name = "row", axes[0].length = ROWS;
  axes[1].name = "column", axes[1].length = COLUMNS;
  axes[axis].ndims = 1, axes[axis].dims = &x;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(size), 1, dims, e);
  mgrid_tensor *tensor = mgrid_tensor_new(g, "i32", 2, axes, NULL, e);
  mgrid_topology *t = mgrid_topology_new(size, e);
  mgrid_topology_add_tensor(t, "w", tensor, e);
  mgrid_plan *p = mgrid_plan_new(t, e);
  mgrid_topology_free(t);
  mgrid_tensor_free(tensor);
  mgrid_grid_free(g);
  return p;
}

typedef struct fixture {
  mgrid_plan *plan[2];
  mgrid_move *move;
  mgrid_buffer from, to; /* of the GPU */
  int host[ROWS * COLUMNS];
} fixture;

static void fill(fixture *f) {
  int rows = ROWS / size;
  for (int i = 0; i < rows; i++)
    for (int k = 0; k < COLUMNS; k++) f->host[i * COLUMNS + k] = (rank * rows + i) * COLUMNS + k;
  p_Memcpy(f->from.data, f->host, (size_t)f->from.bytes, cudaMemcpyHostToDevice);
}

static bool arrived(fixture *f) {
  int columns = COLUMNS / size;
  bool ok = p_Memcpy(f->host, f->to.data, (size_t)f->to.bytes, cudaMemcpyDeviceToHost)
            == cudaSuccess;
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < columns; k++)
      ok &= f->host[i * columns + k] == i * COLUMNS + rank * columns + k;
  return ok;
}

static fixture fixture_new(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  fixture f = { 0 };
  for (int i = 0; i < 2; i++) f.plan[i] = cut(i, &e);
  f.move = mgrid_move_new(f.plan[0], f.plan[1], rank, 0, NULL, NULL, &e);
  f.from.bytes = f.to.bytes = (int64_t)sizeof(int) * ROWS * COLUMNS / size;
  p_Malloc(&f.from.data, (size_t)f.from.bytes);
  p_Malloc(&f.to.data, (size_t)f.to.bytes);
  fill(&f);
  return f;
}

static void fixture_free(fixture *f) {
  p_Free(f->from.data);
  p_Free(f->to.data);
  mgrid_move_free(f->move);
  for (int i = 0; i < 2; i++) mgrid_plan_free(f->plan[i]);
}

static void refused(fixture *f, mgrid_backend *b, const mgrid_buffer *from, mgrid_status want,
                    const char *message) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_status s = mgrid_move_run(f->move, b, from, &f->to, NULL, &e);
  bool ok = s == want && strcmp(e.message, message) == 0;
  if (!ok) fprintf(stderr, "# rank %d: status %d: %s\n", rank, (int)s, e.message);
  test(ok, message);
}

static void refusals(fixture *f, mgrid_backend *b) {
  char want[256];
  int last = size - 1, other = (rank + 1) % size;
  mgrid_buffer host = { f->host, f->from.bytes }, small = { f->from.data, 3 },
               elsewhere = { NULL, f->from.bytes };
  snprintf(want, sizeof want,
           "rank %d: the part of tensor 'w' before the move on rank %d is in memory of the CPU; %s "
           "moves what is in that "
           "of the GPU",
           last, last, maker());
  refused(f, b, rank == last ? &host : &f->from, MGRID_REFUSED, want);
  snprintf(want, sizeof want,
           "rank 1: the part of tensor 'w' before the move has %lld bytes, its buffer on rank 1 3",
           (long long)f->from.bytes);
  refused(f, b, rank == 1 ? &small : &f->from, MGRID_REFUSED, want);
  int mine = 0;
  p_GetDevice(&mine);
  p_SetDevice(other);
  p_Malloc(&elsewhere.data, (size_t)elsewhere.bytes);
  p_SetDevice(mine);
  snprintf(want, sizeof want,
           "rank 0: the part of tensor 'w' before the move on rank 0 is in memory of GPU 1; the "
           "backend has GPU 0");
  refused(f, b, &elsewhere, MGRID_REFUSED, want);
  p_Free(elsewhere.data);
}

/* An error of the network in the middle: all ranks get it, and the backend moves no more. */
static void failing(fixture *f, mgrid_backend *b) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  o.timeout = 2;
  mgrid_status s = mgrid_move_run(f->move, b, &f->from, &f->to, &o, &e);
  bool ok =
      s == MGRID_BACKEND
      && strncmp(e.message, "rank 2: nccl: ncclSend/Recv for moves: remote process exited", 60)
             == 0;
  if (!ok) fprintf(stderr, "# rank %d: status %d: %s\n", rank, (int)s, e.message);
  test(ok, "an error of NCCL on one rank is one on all");
  s = mgrid_move_run(f->move, b, &f->from, &f->to, &o, anew(&e));
  ok = s == MGRID_BACKEND
       && strcmp(e.message, "rank 0: nccl: the backend moves nothing after an earlier failure")
              == 0;
  if (!ok) fprintf(stderr, "# rank %d: status %d: %s\n", rank, (int)s, e.message);
  test(ok, "nothing moves after it");
}

static int absent(fixture *f, mgrid_backend *b) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  o.timeout = 1;
  if (rank == 1) sleep(30);
  mgrid_status s = mgrid_move_run(f->move, b, &f->from, &f->to, &o, &e);
  if (rank == 0) {
    printf("%d: %s\n", (int)s, e.message);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  sleep(10);
  return 1;
}

static void over_mpi(fixture *f, mgrid_backend *b) {
  refused(f, b, &f->from, MGRID_UNSUPPORTED,
          "rank 0: the part of tensor 'w' before the move on rank 0 is in memory of GPU 0, which "
          "this MPI does not reach, "
          "since it is not CUDA-aware; the nccl backend moves it");
  cuda_aware = 1;
  mgrid_error e = MGRID_ERROR_INIT;
  bool ok = mgrid_move_run(f->move, b, &f->from, &f->to, NULL, &e) == MGRID_OK;
  if (!ok) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  test(ok && arrived(f), "an MPI that is CUDA-aware moves it");
}

/* A store that keeps every value: a folder. Writing takes longer than reading, so a reader comes
** before the value that it waits for. */
static mgrid_status put(void *folder, const char *key, const void *data, size_t bytes) {
  char path[512], part[544];
  usleep(5000);
  snprintf(path, sizeof path, "%s/%s", (const char *)folder, key);
  snprintf(part, sizeof part, "%s.part", path);
  FILE *f = fopen(part, "wb");
  bool whole = f && fwrite(data, 1, bytes, f) == bytes;
  if (f) fclose(f);
  return whole && rename(part, path) == 0 ? MGRID_OK : MGRID_BACKEND;
}

static mgrid_status get(void *folder, int64_t from, const char *key, void *data, size_t bytes,
                        double seconds) {
  char path[512];
  (void)from;
  snprintf(path, sizeof path, "%s/%s", (const char *)folder, key);
  for (double left = seconds;; left -= 1e-3) {
    FILE *f = fopen(path, "rb");
    size_t got = f ? fread(data, 1, bytes, f) : 0;
    if (f) fclose(f);
    if (f) return got == bytes ? MGRID_OK : MGRID_BACKEND;
    if (left <= 0) return MGRID_TIMED_OUT;
    usleep(1000);
  }
}

/* No message of a creation after a move has the key of a message of the move, whose value is
** still in the store. */
static void over_store(fixture *f, char *folder) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_carrier c = MGRID_CARRIER_INIT;
  c.ud = folder, c.rank = rank, c.world = size, c.put = put, c.get = get;
  mgrid_backend *store = mgrid_carrier_backend(&c, &e);
  mgrid_backend *b = mgrid_backend_over(store, maker(), NULL, &e);
  mgrid_status s = mgrid_move_run(f->move, b, &f->from, &f->to, NULL, &e);
  test(s == MGRID_OK && arrived(f), "a move over a store that keeps every value");
  mgrid_plan *p = two(false, false, &e);
  mgrid_state *state = mgrid_materialize(p, b, "after", &e);
  if (!state) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  test(state && right(state, "tp") && right(state, "dp"), "communicators after it");
  mgrid_state_free(state);
  mgrid_plan_free(p);
  mgrid_backend_free(b);
  mgrid_backend_free(store);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *carrier;
  tap_begin(&argc, &argv);
  load();
  if (argc > 2) {
    p_SetDevice(rank);
    fixture f = fixture_new();
    over_store(&f, argv[2]);
    fixture_free(&f);
    return tap_end();
  }
  carrier = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  bool mpi = argc > 1 && strcmp(argv[1], "mpi") == 0;
  mgrid_backend *b = mpi ? mgrid_backend_ref(carrier)
                         : mgrid_backend_over(carrier, maker(), NULL, &e);
  if (!b) {
    fprintf(stderr, "# rank %d: %s\n", rank, e.message);
    return 1;
  }
  if (mpi) p_SetDevice(rank);
  fixture f = fixture_new();
  if (argc > 1 && strcmp(argv[1], "absent") == 0) return absent(&f, b);
  if (mpi) {
    over_mpi(&f, b);
  } else if (argc > 1) {
    failing(&f, b);
  } else {
    refusals(&f, b);
    for (int i = 0; i < 3; i++) {
      p_Memcpy(f.to.data, f.host, 1, cudaMemcpyHostToDevice);
      fill(&f);
      bool ok = mgrid_move_run(f.move, b, &f.from, &f.to, NULL, anew(&e)) == MGRID_OK;
      if (!ok) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
      test(ok && arrived(&f), "and after all of these it goes, again and again");
    }
  }
  if (argc <= 1 || mpi) fixture_free(&f);
  mgrid_backend_free(b);
  mgrid_backend_free(carrier);
  return tap_end();
}
