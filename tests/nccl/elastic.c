/* SPDX-License-Identifier: MIT
**
** elastic.c - the nccl backend when a state changes while the job runs, and what families ask for
** besides communicators. Under mpirun with 8 processes and the stand-in libraries of standin/ in
** LD_LIBRARY_PATH. TAP from rank 0.
**
**     elastic windows|device|refused|suspend|old|grow|reordered|failing
*/
#include "trainer.h"

static char said[8192]; /* lines of the library's log, one after the other */

static void note(void *ud, mgrid_level level, const char *message) {
  size_t len = strlen(said);
  (void)ud;
  if (level != MGRID_LOG_DEBUG) snprintf(said + len, sizeof said - len, "%s\n", message);
}

static mgrid_backend *open_backend(mgrid_backend *mpi, mgrid_error *e) {
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  o.timeout = no_kernels() ? 40 : 4; /* NCCL itself takes seconds on a busy machine */
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), &o, anew(e));
  hooks.log = note;
  if (b) mgrid_backend_set_hooks(b, &hooks, e);
  return b;
}

static bool with_all; /* a third family, of all ranks */

/* tp and dp over `world` ranks, tp fastest; with these options for dp. reversed: dp's groups in the
** opposite order. */
static mgrid_plan *plan_of(int world, const mgrid_options *for_dp, bool reversed, mgrid_error *e) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", MGRID_FILL } };
  const char *names[] = { "tp", "dp" };
  int64_t back[64];
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 2, dims, anew(e));
  mgrid_topology *t = mgrid_topology_new(world, e);
  for (int i = 0; i < 2; i++) {
    mgrid_family *f = mgrid_grid_along(g, 1, &names[i], MGRID_GRID_ORDER, e);
    if (i == 1 && reversed) {
      int64_t n = world / 2, starts[] = { 0, n, 2 * n };
      for (int64_t group = 0; group < 2; group++)
        for (int64_t p = 0; p < n; p++) back[group * n + p] = (int64_t)(group + 2 * (n - 1 - p));
      mgrid_family_free(f);
      f = mgrid_family_table(mgrid_world(world), 2, starts, back, MGRID_PARTITION, e);
    }
    mgrid_topology_add(t, names[i], f, i == 1 ? for_dp : NULL, e);
    mgrid_family_free(f);
  }
  mgrid_family *all = with_all ? mgrid_grid_along(g, 2, names, MGRID_GRID_ORDER, e) : NULL;
  if (all) mgrid_topology_add(t, "all", all, NULL, e);
  mgrid_family_free(all);
  mgrid_plan *p = mgrid_plan_new(t, e);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
  return p;
}

static mgrid_options asking(const char *windows, const char *device) {
  mgrid_options o = MGRID_OPTIONS_INIT;
  o.windows = windows, o.device = device;
  return o;
}

static void windows(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_options o = asking("kv=1048576 grads=4096", "");
  mgrid_backend *b = open_backend(mpi, &e);
  mgrid_plan *p = plan_of(size, &o, false, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  mgrid_nccl_window w = MGRID_NCCL_WINDOW_INIT;
  void *memory = NULL;
  test(s != NULL, s ? "a family with windows is there" : e.message);
  const mgrid_group *dp = mgrid_state_group(s, "dp", NULL), *tp = mgrid_state_group(s, "tp", NULL);
  mgrid_status got = mgrid_group_window(dp, "kv", &w, anew(&e));
  test(!got && w.buffer && w.handle && w.bytes == 1048576,
       "its window has memory, a handle, and as many bytes as it says");
  ncclWindow_t one = mgrid_nccl_window_of(dp, "grads", &memory, anew(&e));
  test(one && memory && memory != w.buffer && (void *)one != w.handle,
       "another one is another one");
  p_Memcpy(memory, &(long long){ rank }, 8, cudaMemcpyHostToDevice);
  test(
      p_AllReduce(memory, memory, 1, ncclInt64, ncclSum, mgrid_nccl_comm(dp), mgrid_nccl_stream(dp))
          == ncclSuccess,
      "collectives work on it");
  p_StreamSynchronize(mgrid_nccl_stream(dp));
  got = mgrid_group_window(dp, "kw", &w, anew(&e));
  test(got == MGRID_UNKNOWN_NAME
           && !strcmp(e.message, "family 'dp' has no window 'kw'; nearest is 'kv' (grads, kv)"),
       e.message);
  got = mgrid_group_window(tp, "kv", &w, anew(&e));
  test(got == MGRID_UNKNOWN_NAME && strstr(e.message, "family 'tp' has no window 'kv'"), e.message);
  test(mgrid_group_device(dp, NULL) == NULL, "nobody asked for a device communicator");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

static void device(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_options o =
      asking("kv=65536", no_kernels() ? "lsa_barriers=4" : "lsa_barriers=4 multimem=1");
  mgrid_backend *b = open_backend(mpi, &e);
  mgrid_plan *p = plan_of(size, &o, false, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  int version = 0;
  test(s != NULL, s ? "a family with a device communicator is there" : e.message);
  const mgrid_group *dp = mgrid_state_group(s, "dp", NULL);
  const int *seen = mgrid_group_device(dp, &version);
  int runs = 0, head = 0;
  p_GetVersion(&runs);
  if (seen && runs >= 23000 && !getenv("STANDIN_NCCL_VERSION"))
    head = 2; /* magic and version: ncclDevComm since 2.30 */
  test(seen && version == runs && seen[head] == mgrid_group_position(dp)
           && seen[head + 1] == mgrid_group_size(dp),
       "NCCL has filled it in");
  bool readable = runs / 100 == NCCL_VERSION_CODE / 100;
  test((mgrid_nccl_device(dp) != NULL) == readable,
       "and it is given to programs whose headers know its layout");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* What a library that lacks it says; a window that a rank does not get. */
static void refused(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_options o = asking(getenv("REFUSED_WINDOWS"), getenv("REFUSED_DEVICE"));
  mgrid_backend *b = open_backend(mpi, &e);
  mgrid_plan *p = plan_of(size, &o, false, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  const char *says = getenv("REFUSED_SAYS"); /* without the rank, which may be any */
  test(!s && strstr(e.message, says), e.message);
  mgrid_plan *plain = plan_of(size, NULL, false, &e);
  s = mgrid_materialize(plain, b, "plain", anew(&e));
  test(s && right(s, "dp"), s ? "and without it the state is made" : e.message);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(plain);
  mgrid_plan_free(p);
}

static void suspend(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_held_memory m = MGRID_HELD_MEMORY_INIT;
  mgrid_backend *b = open_backend(mpi, &e);
  mgrid_plan *p = plan_of(size, NULL, false, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  test(mgrid_state_held_memory(s, &m, anew(&e)) == MGRID_OK && m.communicators == 2
           && m.suspended == 0,
       e.message);
  test(m.total > 0 && m.suspendable > 0 && m.total == m.suspendable + m.persistent,
       "what they hold is told");
  mgrid_status done = mgrid_state_suspend(s, anew(&e));
  test(done == MGRID_OK, done ? e.message : "all of it is suspended");
  test(mgrid_state_suspend(s, anew(&e)) == MGRID_OK, e.status ? e.message : "once is enough");
  test(mgrid_state_held_memory(s, &m, anew(&e)) == MGRID_OK && m.suspended == 2,
       "and that is told");
  mgrid_status proved = mgrid_state_prove(s, NULL, anew(&e));
  test(proved == MGRID_NOT_NOW
           && strstr(e.message, "is suspended; mgrid_state_resume takes its memory again"),
       e.message);
  mgrid_state_free(s);
  s = mgrid_materialize(p, b, "train", anew(&e));
  test(mgrid_state_suspend(s, anew(&e)) == MGRID_OK && mgrid_state_resume(s, anew(&e)) == MGRID_OK,
       "and resumed");
  test(mgrid_state_resume(s, anew(&e)) == MGRID_OK, "which twice is not too much either");
  test(s && right(s, "tp") && right(s, "dp"), s ? "then they work" : e.message);
  test(mgrid_state_suspend(s, anew(&e)) == MGRID_OK, "a state that is suspended ends as any other");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* An NCCL before 2.29.7. */
static void old(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_held_memory m = MGRID_HELD_MEMORY_INIT;
  mgrid_backend *b = open_backend(mpi, &e);
  mgrid_plan *p = plan_of(size, NULL, false, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  const char *held = "the GPU memory that a state holds needs ncclCommMemStats, which came with "
                     "NCCL 2.29.7; this is ";
  mgrid_state_held_memory(s, &m, anew(&e));
  test(e.status == MGRID_UNSUPPORTED && strncmp(e.message, held, strlen(held)) == 0, e.message);
  const char *gives = "rank 0: to suspend a state needs ncclCommSuspend, which came with NCCL "
                      "2.29.7; this is NCCL ";
  mgrid_state_suspend(s, anew(&e));
  test(e.status == MGRID_UNSUPPORTED && strncmp(e.message, gives, strlen(gives)) == 0, e.message);
  test(mgrid_state_resume(s, anew(&e)) == MGRID_OK && s && right(s, "dp"), "and nothing was done");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* Six ranks train; two come. */
static void grow(mgrid_backend *mpi, bool reversed) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Comm some = MPI_COMM_NULL;
  enum { WAS = 6 };
  MPI_Comm_split(MPI_COMM_WORLD, rank < WAS ? 0 : MPI_UNDEFINED, rank, &some);
  mgrid_options o = asking("kv=65536", "");
  mgrid_backend *few = some == MPI_COMM_NULL ? NULL : mgrid_mpi_backend(some, NULL, anew(&e));
  mgrid_backend *small = few ? open_backend(few, &e) : NULL, *large = open_backend(mpi, &e);
  mgrid_plan *before = plan_of(WAS, &o, reversed, &e), *after = plan_of(size, &o, reversed, &e);
  mgrid_state *was = small ? mgrid_materialize(before, small, "train", anew(&e)) : NULL, *now;
  test(rank >= WAS || proved(was, &e), e.status ? e.message : "six ranks train");
  const mgrid_group *tp = was ? mgrid_state_group(was, "tp", NULL) : NULL;
  ncclComm_t kept = mgrid_nccl_comm(tp);
  said[0] = '\0';
  now = was ? mgrid_state_grow(was, after, large, "train", anew(&e))
            : mgrid_state_join(after, large, "train", anew(&e));
  test(now != NULL, now ? "eight ranks go on" : e.message);
  const mgrid_group *tp_now = mgrid_state_group(now, "tp", NULL),
                    *dp = mgrid_state_group(now, "dp", NULL);
  test(!was || mgrid_nccl_comm(tp_now) == kept, "a group that is as it was keeps its communicator");
  test(!was || mgrid_nccl_comm(tp) == NULL, "which the old state has no more");
  const char *grown = getenv("GROWN_SAYS");
  char want[256];
  snprintf(want, sizeof want, "train/dp[%d]: 4 ranks, %s", rank % 2,
           grown ? grown : "grown by ncclCommGrow\n");
  test(strstr(said, want) != NULL, said);
  test(rank != 0 || strstr(said, "train/tp[0]: 2 ranks, kept\n"), said);
  mgrid_nccl_window w = MGRID_NCCL_WINDOW_INIT;
  test(mgrid_group_window(dp, "kv", &w, anew(&e)) == MGRID_OK && w.handle,
       "what grows has its windows anew");
  test(now && right(now, "tp") && right(now, "dp"), "all of it works");
  mgrid_state_free(was);
  mgrid_backend_free(small);
  mgrid_backend_free(few);
  test(now && right(now, "tp") && right(now, "dp"), "also without the old state");
  test(proved(now, &e), e.status ? e.message : "and is proved");
  mgrid_state_free(now);
  mgrid_backend_free(large);
  mgrid_plan_free(before);
  mgrid_plan_free(after);
  if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
}

/* A rank cannot make what grows (STANDIN_FAIL_INIT), or gives another plan: an error on all, and
** the old state goes on. Where growing blocks (no NCCL_COMM_BLOCKING=0) it cannot be cancelled. */
static void failing(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Comm some = MPI_COMM_NULL;
  enum { WAS = 6 };
  with_all = true; /* ranks 1, 3, 5 and 7 grow dp[1], and then wait there for the others */
  MPI_Comm_split(MPI_COMM_WORLD, rank < WAS ? 0 : MPI_UNDEFINED, rank, &some);
  mgrid_backend *few = some == MPI_COMM_NULL ? NULL : mgrid_mpi_backend(some, NULL, anew(&e));
  mgrid_backend *small = few ? open_backend(few, &e) : NULL, *large = open_backend(mpi, &e);
  mgrid_plan *before = plan_of(WAS, NULL, false, &e), *after = plan_of(size, NULL, false, &e);
  mgrid_plan *other = plan_of(size, NULL, true, &e);
  mgrid_state *was = small ? mgrid_materialize(before, small, "train", anew(&e)) : NULL, *now;
  mgrid_plan *mine = rank == 7 ? other : after;
  now = was ? mgrid_state_grow(was, mine, large, "train", anew(&e))
            : mgrid_state_join(mine, large, "train", anew(&e));
  test(!now && e.status == MGRID_DISAGREE, e.message);
  double began = MPI_Wtime();
  now = was ? mgrid_state_grow(was, after, large, "train", anew(&e))
            : mgrid_state_join(after, large, "train", anew(&e));
  test(!now && strstr(e.message, "rank 6: nccl: ncclCommGrow for train/dp[0]: ") == e.message,
       e.message);
  test(MPI_Wtime() - began < 3, "all hear at once, also those that wait in the next group");
  /* dp[1] was not begun, or has ended, too */
  bool cancelled = getenv("NCCL_COMM_BLOCKING") || rank % 2;
  bool goes_on =
      !was || (cancelled ? right(was, "dp") : !mgrid_nccl_comm(mgrid_state_group(was, "dp", NULL)));
  test(goes_on && (!was || right(was, "tp")),
       "the old state goes on, but for what is inside of NCCL");
  if (was) mgrid_state_grow(was, after, small, "train", anew(&e));
  test(!was
           || !strcmp(e.message,
                      "a state of 6 ranks grows into another backend, of as many ranks or more")
           || strstr(e.message, "rank 0: a state of 6 ranks grows into another backend"),
       e.message);
  mgrid_state_free(was);
  mgrid_backend_free(small);
  mgrid_backend_free(few);
  mgrid_backend_free(large);
  mgrid_plan_free(before);
  mgrid_plan_free(after);
  mgrid_plan_free(other);
  if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  tap_begin(&argc, &argv);
  load();
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  const char *what = argc > 1 ? argv[1] : "windows";
  if (strcmp(what, "windows") == 0) windows(mpi);
  if (strcmp(what, "device") == 0) device(mpi);
  if (strcmp(what, "refused") == 0) refused(mpi);
  if (strcmp(what, "suspend") == 0) suspend(mpi);
  if (strcmp(what, "old") == 0) old(mpi);
  if (strcmp(what, "grow") == 0) grow(mpi, false);
  if (strcmp(what, "reordered") == 0) grow(mpi, true);
  if (strcmp(what, "failing") == 0) failing(mpi);
  mgrid_backend_free(mpi);
  return tap_end();
}
