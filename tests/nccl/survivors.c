/* SPDX-License-Identifier: MIT
**
** survivors.c - ranks are lost, and the others recover over NCCL (mgrid_state_recover): on the
** stand-in, and on NCCL's own host code over the CUDA runtime of tests/cuda, where no kernel runs.
** The lowest survivor prints TAP.
**
**     survivors ulfm|list MOMENT [shrink] [blocks] [unlike]
**
** ulfm: MPI finds the lost ranks. list: the host finds them, and opens the backend of the
** survivors. Under Open MPI 5 with LAUNCH_OPTIONS="--with-ft ulfm" ranks are killed; elsewhere only
** `list` works, and they play dead on the stand-in.
**
** MOMENT   between    two calls, after all communicators were used
**          fresh      before any communicator was used
**          running    others wait for the lost rank in a collective
**          creation   a second state is being made (NCCL's own host code: CUDARIG_DELAY makes it last)
**          again      between two calls, and another rank during the recovery
**
** shrink   the option nccl_shrink, with `unlike` on rank 0 only
** blocks   communicators that block
**
** SHRUNK=n               n memberships come from ncclCommShrink
** BECAUSE=text           why the others do not
** FAIL=rank:function:n   the nth call of this function of the CUDA runtime fails on the rank, during the recovery
** FAILS=text             the first recovery fails with this error on all ranks, and the next one succeeds
** LEAVES=1               a creation fails: NCCL keeps its files, and its thread and memory if it blocks
** AGAIN_AFTER=seconds    when the other rank dies */
#include "rigged.h"

#include <signal.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

static const char recipe[] =
    "return recipe { params = { tp = 2 }, build = function(world, p)\n"
    "  local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) local t = topology(world) t.grid = "
    "g\n"
    "  local with = { nccl = { max_ctas = 2 } }\n"
    "  t.tp, t.dp, t.all = g 'tp':with(with), g 'dp':with(with), g('tp', 'dp'):with(with)\n"
    "  return t end }\n";

static bool by_ulfm, shrinks, blocks, unlike, ulfm;
static char said[8192];
static int alive_rank;
static char *moment;

static void note(void *ud, mgrid_level level, const char *message) {
  size_t len = strlen(said);
  (void)ud;
  if (level != MGRID_LOG_DEBUG) snprintf(said + len, sizeof said - len, "%s\n", message);
}

static int times(const char *text) {
  int n = 0;
  for (const char *at = said; (at = strstr(at, text)); at++) n++;
  return n;
}

/* A test passes when it does on all ranks of `comm`. */
static void check(MPI_Comm comm, bool ok, const char *what, const mgrid_error *e) {
  int all = ok;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  if (!ok) fprintf(stderr, "# rank %d: %s: %d %s\n", rank, what, (int)e->status, e->message);
  if (alive_rank == 0) printf("%sok %d - %s\n", all ? "" : "not ", ++number, what);
  failures += !all;
}

static int total(MPI_Comm comm, int mine) {
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm);
  return all;
}

/* Kill this rank; or, if the launcher would end the job, play dead: the process must then still
** take part in MPI. */
static void die(void) {
  if (ulfm) raise(SIGKILL);
  void *nccl = dlopen("libnccl.so.2", RTLD_NOW), *found = dlsym(nccl, "standin_vanish");
  void (*call)(void) = NULL;
  memcpy(&call, &found, sizeof call);
  if (call) call();
}

/* Start a process that kills this one a moment later. */
static void die_after(double seconds) {
  pid_t target = getpid();
  if (fork()) return;
  usleep((useconds_t)(seconds * 1e6));
  kill(target, SIGKILL);
  _exit(0);
}

static mgrid_backend *open_over(MPI_Comm comm, mgrid_error *e) {
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  mgrid_backend *mpi = mgrid_mpi_backend(comm, NULL, e);
  o.timeout = no_kernels() ? 40 : 10, o.nonblocking = !blocks, o.share_gpu = true;
  mgrid_backend *b = mpi ? mgrid_backend_over(mpi, "nccl", &o, e) : NULL;
  hooks.log = note;
  if (b) mgrid_backend_set_hooks(b, &hooks, e);
  mgrid_backend_free(mpi);
  return b;
}

/* The survivors, in the order of their old ranks. */
static MPI_Comm remaining(MPI_Comm of, bool dead) {
  MPI_Comm rest = MPI_COMM_NULL;
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
  if (ulfm) {
    if (MPIX_Comm_shrink(of, &rest) != MPI_SUCCESS) _exit(1);
    return rest;
  }
#endif
  MPI_Comm_split(of, dead, rank, &rest);
  return rest;
}

/* As a host that finds the lost ranks itself: give the list, and a backend with the ranks of the
** next plan. */
static mgrid_status recover_listed(mgrid_state *s, mgrid_losses *l, MPI_Comm rest,
                                   mgrid_recover_options *o, mgrid_state **now, mgrid_loss **x,
                                   mgrid_error *e) {
  int n = 0, many, *there = calloc((size_t)size, sizeof *there);
  int64_t *lost = calloc((size_t)size, sizeof *lost);
  MPI_Comm ordered;
  there[rank] = 1;
  MPI_Allreduce(MPI_IN_PLACE, there, size, MPI_INT, MPI_MAX, rest);
  for (int i = 0; i < size; i++)
    if (!there[i]) lost[n++] = i;
  mgrid_loss *first = mgrid_loss_new(l, (size_t)n, lost, e);
  MPI_Comm_split(rest, 0, first ? (int)mgrid_loss_rank(first, rank) : 0, &ordered);
  MPI_Comm_size(ordered, &many);
  o->backend = open_over(ordered, e), o->nlost = (size_t)n, o->lost = lost;
  mgrid_status status = first && o->backend ? mgrid_state_recover(s, l, o, now, x, NULL, e)
                                            : e->status;
  mgrid_loss_free(first);
  mgrid_backend_free(o->backend);
  free(there), free(lost);
  return status;
}

/* Does NCCL report each communicator as the plan has it? */
static bool as_planned(const mgrid_state *s, int *n) {
  const mgrid_plan *p = mgrid_state_plan(s);
  bool ok = s != NULL;
  for (size_t i = 0; s && i < mgrid_plan_nfamilies(p); i++) {
    const mgrid_group *g = mgrid_state_group(s, mgrid_plan_family_name(p, i), NULL);
    int members = -1, me = -1;
    if (!g || !mgrid_nccl_comm(g)) continue;
    p_CommCount(mgrid_nccl_comm(g), &members), p_CommUserRank(mgrid_nccl_comm(g), &me);
    ok &= members == mgrid_group_size(g) && me == mgrid_group_position(g), ++*n;
  }
  return ok;
}

static void (*fail_call)(const char *, long, int);

/* FAIL=rank:function:n */
static void arm(void) {
  char name[64] = "";
  int who = -1;
  long nth = 0;
  const char *text = getenv("FAIL");
  if (text && fail_call && sscanf(text, "%d:%63[^:]:%ld", &who, name, &nth) == 3 && who == rank)
    fail_call(name, nth, cudaErrorUnknown);
}

static void load_counts(void) {
  static const char *const names[] = { "cudarig_count", "cudarig_fail" };
  void *rig = no_kernels() ? dlopen("libcuda.so.1", RTLD_NOW) : NULL, *found;
  if (rig && (found = dlsym(rig, names[0]))) memcpy(&count, &found, sizeof count);
  if (rig && (found = dlsym(rig, names[1]))) memcpy(&fail_call, &found, sizeof fail_call);
}

typedef struct held {
  long long device, pinned, streams;
  int files, threads;
} held;

static held hold(void) {
  held h = { 0 };
  if (count)
    h.device = device_bytes(), h.pinned = count("host"),
    h.streams = count("streams") + count("events");
  h.files = entries("/proc/self/fd"), h.threads = entries("/proc/self/task");
  return h;
}

/* A thread may stay visible for a moment after its end. */
static bool gave_back(const held *was, mgrid_error *e) {
  held is = hold();
  for (int i = 0; i < 200 && (is.threads > was->threads || is.files > was->files); i++)
    usleep(20000), is = hold();
  bool ok = is.device <= was->device && is.pinned <= was->pinned && is.streams <= was->streams
            && is.files <= was->files && is.threads <= was->threads;
  if (!ok)
    snprintf(anew(e)->message, sizeof e->message,
             "device %lld of %lld, pinned %lld of %lld, streams %lld of %lld, files %d of %d, "
             "threads %d of %d",
             is.device, was->device, is.pinned, was->pinned, is.streams, was->streams, is.files,
             was->files, is.threads, was->threads);
  return ok;
}

/* Run until the moment of the loss; victims do not return, or play dead. Return whether this rank
** noticed the loss. */
static bool lose_ranks(mgrid_backend *b, mgrid_runtime *rt, mgrid_state *s, bool victim,
                       mgrid_error *e) {
  static const char *const other[] = { "tp=4" };
  mgrid_state *second = NULL;
  bool noticed = true;
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(moment, "creation") == 0) {
    if (victim) die_after(0.3);
    mgrid_plan *p = mgrid_runtime_plan(rt, size, NULL, 1, other, e);
    second = mgrid_materialize(p, b, "second", anew(e));
    mgrid_plan_free(p);
    noticed = second == NULL;
    for (int i = 0; victim && i < 100; i++) usleep(100000);
    mgrid_state_free(second);
    return noticed;
  }
  if (victim) die();
  if (strcmp(moment, "running") == 0 && !victim) {
    const mgrid_group *g = mgrid_state_group(s, "all", NULL);
    void *buffer = NULL;
    p_Malloc(&buffer, 8);
    p_AllReduce(buffer, buffer, 1, ncclInt64, ncclSum, mgrid_nccl_comm(g), mgrid_nccl_stream(g));
  }
  if (ulfm) noticed = mgrid_state_prove(s, NULL, anew(e)) == MGRID_LOST_RANK || mgrid_state_hurt(s);
  return noticed;
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_recover_options o = MGRID_RECOVER_OPTIONS_INIT;
  mgrid_losses_options lo = MGRID_LOSSES_OPTIONS_INIT;
  mgrid_state *now = NULL;
  mgrid_loss *x = NULL;
  int n = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 2; i < argc; i++) {
    if (i == 2) moment = argv[i];
    shrinks |= strcmp(argv[i], "shrink") == 0, blocks |= strcmp(argv[i], "blocks") == 0;
    unlike |= strcmp(argv[i], "unlike") == 0;
  }
  if (!moment || size < 4)
    return fprintf(stderr, "survivors ulfm|list MOMENT [shrink] [blocks] [unlike]\n"), 2;
  by_ulfm = strcmp(argv[1], "ulfm") == 0, ulfm = getenv("SURVIVORS_KILLED") != NULL;
  alive_rank = rank;
  load();
  load_counts();
  as_hosts();
  bool again = strcmp(moment, "again") == 0, first = rank == size - 1, second = again && rank == 2;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, "survivors", recipe, strlen(recipe), &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, size, NULL, 0, NULL, &e);
  /* do not count what NCCL keeps after the first state */
  mgrid_backend *b = open_over(MPI_COMM_WORLD, &e);
  mgrid_state *s = mgrid_materialize(p, b, "warm", &e);
  if (s) proved(s, &e), e = (mgrid_error)MGRID_ERROR_INIT;
  mgrid_state_free(s);
  MPI_Barrier(MPI_COMM_WORLD);
  held before = hold();
  s = mgrid_materialize(p, b, "train", anew(&e));
  mgrid_losses *l = mgrid_losses_new(rt, p, 0, NULL, &lo, &e);
  bool used = strcmp(moment, "fresh") != 0;
  check(MPI_COMM_WORLD, s && l && (!used || proved(s, &e)), "a state of all", &e);
  bool noticed = lose_ranks(b, rt, s, first, &e);
  MPI_Comm rest = remaining(MPI_COMM_WORLD, first && !ulfm);
  if (first && !ulfm) goto dead;
  MPI_Comm_rank(rest, &alive_rank);
  check(rest, noticed, "those that remain notice", &e);
  o.nccl_shrink = shrinks && !(unlike && rank > 0), o.timeout = no_kernels() ? 60 : 20;
  said[0] = '\0';
  if (second) die_after(getenv("AGAIN_AFTER") ? atof(getenv("AGAIN_AFTER")) : 0.5);
  arm();
  double begun = MPI_Wtime();
  const char *fails = getenv("FAILS");
  mgrid_status status = by_ulfm ? mgrid_state_recover(s, l, &o, &now, &x, NULL, anew(&e))
                                : recover_listed(s, l, rest, &o, &now, &x, anew(&e));
  double took = MPI_Wtime() - begun;
  for (int i = 0; second && i < 100; i++) usleep(100000);
  MPI_Comm last = again ? remaining(rest, false) : rest;
  MPI_Comm_rank(last, &alive_rank);
  if (again && !by_ulfm) {
    check(last, status == MGRID_LOST_RANK && took < 2 * o.timeout,
          "another loss is an error on all, in time", &e);
    status = recover_listed(s, l, last, &o, &now, &x, anew(&e));
  }
  if (fails) {
    check(last, status && status != MGRID_LOST_RANK && !now, "the first recovery fails on all", &e);
    check(last, total(last, strstr(e.message, fails) != NULL) > 0, fails, &e);
    status = by_ulfm ? mgrid_state_recover(s, l, &o, &now, &x, NULL, anew(&e))
                     : recover_listed(s, l, rest, &o, &now, &x, anew(&e));
  }
  if (unlike) {
    check(last, status == MGRID_DISAGREE && !now,
          "ranks that differ in nccl_shrink are an error on all", &e);
  } else {
    char what[160];
    int many;
    bool planned = as_planned(now, &n);
    MPI_Comm_size(last, &many);
    check(last, !status && planned && mgrid_plan_world(mgrid_loss_plan(x)) == many,
          "they have a new state, as planned", &e);
    int shrunk = total(last, times(", by ncclCommShrink\n")), all = total(last, n);
    int want = getenv("SHRUNK") ? atoi(getenv("SHRUNK")) : shrunk;
    snprintf(what, sizeof what, "%d memberships, %d of them by ncclCommShrink", all, shrunk);
    check(last, shrunk == want, what, &e);
    const char *because = getenv("BECAUSE");
    if (because) {
      snprintf(what, sizeof what, "others are created again, because %s", because);
      check(last, total(last, times(because)) > 0, what, &e);
    }
    const mgrid_group *old = mgrid_state_group(s, "all", NULL);
    if (strcmp(moment, "running") == 0 && !no_kernels()) {
      ncclResult_t state = ncclSuccess, asked = ncclSuccess;
      /* NCCL's thread sets it, perhaps later than the ranks learn of the loss */
      for (int i = 0; i < 500 && !asked && state != ncclRemoteError; i++) {
        if (i) usleep(20000);
        asked = p_CommGetAsyncError(mgrid_nccl_comm(old), &state);
      }
      check(last, asked == ncclSuccess && state == ncclRemoteError, "the old one keeps its error",
            &e);
    }
    check(last, took < 2 * o.timeout, "in time", &e);
    if (by_ulfm)
      check(last, mgrid_state_settle(now, MGRID_OK, anew(&e)) == MGRID_OK && !mgrid_state_hurt(now),
            "all settle", &e);
    if (!no_kernels() || !getenv("FAIL"))
      check(last, proved(now, &e),
            no_kernels() ? "not proved, because no kernel runs" : "and it is proved", &e);
    if (alive_rank == 0) fprintf(stderr, "# recovered in %.2f s\n", took);
    if (getenv("SAY") && atoi(getenv("SAY")) == rank) fprintf(stderr, "%s", said);
  }
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_loss_free(x);
  mgrid_state_free(now);
  MPI_Barrier(last);
  const char *leaves = getenv("LEAVES");
  if (count && !leaves)
    check(last, gave_back(&before, &e), "memory, files and threads are given back", &e);
  if (count && leaves && !blocks)
    check(last, device_bytes() <= before.device, "the GPU's memory is given back", &e);
  mgrid_losses_free(l), mgrid_plan_free(p), mgrid_runtime_free(rt);
  if (alive_rank == 0) printf("1..%d\n", number);
  fflush(stdout);
  MPI_Barrier(last);
dead:
  if (!ulfm) MPI_Barrier(MPI_COMM_WORLD);
  _exit(failures ? 1 : 0); /* MPI_Finalize may wait for the lost ranks */
}
