/* SPDX-License-Identifier: MIT
**
** faults.c - one fault at one stage of a job, for scripts/lab/faults, which starts this program for
** each row of its table: faults KIND STAGE ODD one|half. Rank ODD (one), or ranks ODD, ODD+2, ...
** (half), come to the stage and sleep, stop, die, leave, or make another call than the others; or,
** in a cluster (scripts/lab/cluster), the host of rank ODD is cut off or gone. At the stage
** anywhere-SEED ranks make all calls in turn, again and again, and the fault comes at an instant
** that SEED chooses; there KIND may also be pause, of which no rank may get an error. Every other
** rank prints its error and the time that it took, "told RANK SECONDS STATUS MISSING MESSAGE", and
** ends without MPI_Finalize; MISSING has the missing ranks, "3,5", or is "-" if the error has none.
*/
#include "../anew.h"
#include "moongrid_mpi.h"
#include "moongrid_recipe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const double deadline = 2;

static int me, world;
static bool odd;                 /* this rank is at fault */
static char host[64], whose[64]; /* this rank's; in a cluster that of the ranks at fault */
static const char *kind, *stage;
static double begun;
static pid_t *pids;
static char path[64];
static bool *odds;
static double *hit; /* anywhere: when the fault came, which all ranks see */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static void on_cluster(const char *what, const char *which) {
  char line[160];
  snprintf(line, sizeof line, "scripts/lab/cluster %s %s", what, which);
  if (system(line)) _exit(1);
}

static void fault(void) {
  if (is(kind, "cut")) {
    on_cluster("--link down", host);
    return;
  }
  if (is(kind, "gone")) on_cluster("--gone", host);
  if (is(kind, "sleep")) sleep(30);
  if (is(kind, "stop")) raise(SIGSTOP);
  if (is(kind, "kill")) raise(SIGKILL);
  _exit(0); /* leave */
}

/* ------------------------------------------------- where MPI is called in the library
** `at` calls of that function after arm() the fault comes. A meeting is whatever begins a call over all ranks: a collective,
** or messages along a tree. */

static const char *where = "";
static int at;

static void told(const mgrid_error *e);

static void arm(const char *function, int nth) {
  const mgrid_error never = MGRID_ERROR_INIT;
  if (at > 0) told(&never);
  begun = now();
  if (odd && !is(kind, "wrong") && *function) where = function, at = nth;
}

static void passes(const char *function) {
  if (is(where, function) && --at == 0) fault();
}

int MPI_Iallreduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *r) {
  passes("meeting");
  return PMPI_Iallreduce(send, recv, n, type, op, comm, r);
}
int MPI_Irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *r) {
  passes("meeting");
  return PMPI_Irecv(data, n, type, from, tag, comm, r);
}
int MPI_Ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *r) {
  passes("Ibcast");
  return PMPI_Ibcast(data, n, type, root, comm, r);
}
enum { DATA = 4 }; /* the tag of a move */
int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *r) {
  if (tag == DATA) passes("data");
  return PMPI_Isend(data, n, type, to, tag, comm, r);
}
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made) {
  passes("create_group");
  return PMPI_Comm_create_group(comm, group, tag, made);
}
int MPI_Comm_set_name(MPI_Comm comm, const char *name) {
  int rc = PMPI_Comm_set_name(comm, name);
  passes("set_name");
  return rc;
}

/* ---------------------------------------------------------------------- the job */

static const char *missing_of(const mgrid_error *e, char to[MGRID_MISSING_SHOWN * 24]) {
  snprintf(to, 24, "-");
  for (int i = 0, len = 0; i < e->nmissing && i < MGRID_MISSING_SHOWN; i++)
    len += snprintf(to + len, 24, "%s%lld", i ? "," : "", (long long)e->missing[i]);
  return to;
}

static void told(const mgrid_error *e) {
  char line[1600], missing[MGRID_MISSING_SHOWN * 24];
  bool missed = at > 0; /* the library calls MPI in another way now: this program is to follow */
  int n = missed ? snprintf(line, sizeof line, "rank %d never came to its fault, %s\n", me, where)
                 : snprintf(line, sizeof line, "told %d %.2f %d %s %s\n", me,
                            now() - (hit ? *hit : begun), e->status, missing_of(e, missing),
                            e->message);
  if (write(STDOUT_FILENO, line, (size_t)n) != n) _exit(1);
  if (me == world - 1 || odds[world - 1]) unlink(path);
  sleep(2); /* until all have said it; then let none be left */
  /* the launcher would wait for its daemon there */
  if (whose[0] && me == 0) kill(getppid(), SIGKILL);
  for (int r = 0; r < world; r++)
    if (odds[r]) kill(pids[r], SIGKILL);
  _exit(0);
}

#define STEP(x) \
  do { \
    if (!(x)) told(&e); \
  } while (0)

static void write_recipe(void) {
  FILE *f = me == 0 ? fopen(path, "w") : NULL;
  if (f)
    fputs("return recipe { params = { tp = 2 }, build = function(world, p)\n"
          "  local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) local t = topology(world) "
          "t.grid = g\n"
          "  t.tp, t.dp, t.all = g 'tp', g 'dp', g { 'tp', 'dp' }\n"
          "  t.w = tensor { axes = { { 'r', 1024 }, { 'c', 1024 } }, type = 'f32', cut = { r = "
          "'tp', c = 'dp' } } "
          "return t end,\n"
          "policy = { of_all = function() return 1 end, of_group = function() return 2 end, other "
          "= function() return "
          "1 end },\n"
          "agreed = { of_all = 'world', of_group = 'all', other = 'world' } }\n",
          f);
  if (f) fclose(f);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* -------------------------------------------------------------------- anywhere */

static void leave(int s) { _exit(s * 0); }

static void rest(double seconds) {
  struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
  nanosleep(&t, NULL);
}

/* A process beside this rank strikes it, so that it can be anywhere. */
static void strike(unsigned seed) {
  srand(seed);
  double delay = 0.1 + 1.5 * (double)rand() / RAND_MAX;
  pid_t victim = getpid();
  signal(SIGUSR1, leave);
  if (fork()) return;
  rest(delay);
  *hit = now();
  kill(victim, is(kind, "kill") ? SIGKILL : is(kind, "leave") ? SIGUSR1 : SIGSTOP);
  if (is(kind, "pause")) rest(deadline * 0.3), kill(victim, SIGCONT);
  _exit(0);
}

static void share_clock(void) {
  char name[80];
  snprintf(name, sizeof name, "%s.hit", path);
  int file = open(name, O_RDWR | O_CREAT, 0600);
  hit = file < 0 || ftruncate(file, sizeof *hit)
            ? MAP_FAILED
            : mmap(NULL, sizeof *hit, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  unlink(name);
  if (hit == MAP_FAILED) _exit(1);
}

static void anywhere(mgrid_runtime *rt, mgrid_backend *b, mgrid_plan *p, mgrid_plan *q,
                     unsigned seed) {
  const char *const tp[] = { "tp=2", "tp=1" };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_state *s = mgrid_materialize(p, b, "train", &e), *old = NULL;
  MPI_Comm part;
  STEP(s);
  /* half of the ranks have a state that grows */
  MPI_Comm_split(MPI_COMM_WORLD, me < world / 2, me, &part);
  if (me < world / 2) {
    mgrid_backend *less = mgrid_mpi_backend(part, NULL, &e);
    STEP(less);
    old = mgrid_materialize(mgrid_runtime_plan(rt, world / 2, NULL, 1, tp, &e), less, "grown", &e);
    STEP(old);
  }
  share_clock();
  if (odd) strike(seed);
  for (int i = 1, goes = 1; goes; i++) {
    mgrid_runtime *next_rt = NULL;
    mgrid_state *next = NULL;
    mgrid_policy *all = mgrid_policy_new(rt, s, "of_all", &e),
                 *some = mgrid_policy_new(rt, s, "of_group", &e);
    mgrid_move *m = mgrid_move_new(p, q, me, 0, NULL, NULL, &e);
    STEP(!mgrid_state_prove(s, NULL, &e));
    STEP(!mgrid_policy_call(all, 0, NULL, &e) && !mgrid_policy_call(some, 0, NULL, &e));
    STEP(!mgrid_move_prove(m, b, NULL, &e));
    mgrid_state *grown = old ? mgrid_state_grow(old, p, b, "grown", &e)
                             : mgrid_state_join(p, b, "grown", &e);
    STEP(grown);
    mgrid_state_free(grown);
    STEP(!mgrid_reload(rt, s, NULL, 1, &tp[i % 2], &next, NULL, &e));
    next_rt = mgrid_runtime_ref(mgrid_state_runtime(next));
    mgrid_policy_free(all), mgrid_policy_free(some), mgrid_move_free(m);
    mgrid_state_free(s), mgrid_runtime_free(rt);
    s = next, rt = next_rt;
    if (!is(kind, "pause")) continue;
    goes = *hit == 0 || now() < *hit + 1.5 * deadline;
    MPI_Bcast(&goes, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  printf("went on %d\n", me);
  MPI_Finalize();
  exit(0);
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  kind = argv[1], stage = argv[2];
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  o.timeout = deadline;
  o.on_deadline = MGRID_DEADLINE_ABORT;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  int first = atoi(argv[3]);
  odd = me == first || (is(argv[4], "half") && me % 2 == first % 2);
  gethostname(host, sizeof host - 1);
  if (is(argv[4], "host")) {
    memcpy(whose, host, sizeof whose);
    MPI_Bcast(whose, sizeof whose, MPI_BYTE, first, MPI_COMM_WORLD);
    odd = is(whose, host);
  }
  pids = calloc((size_t)world, sizeof *pids), odds = calloc((size_t)world, sizeof *odds);
  pid_t pid = getpid();
  MPI_Allgather(&pid, sizeof pid, MPI_BYTE, pids, sizeof pid, MPI_BYTE, MPI_COMM_WORLD);
  MPI_Allgather(&odd, sizeof odd, MPI_BYTE, odds, sizeof odd, MPI_BYTE, MPI_COMM_WORLD);
  snprintf(path, sizeof path, "/tmp/moongrid-faults-%ld.lua", (long)pids[0]);
  write_recipe();
  bool wrong = odd && is(kind, "wrong");
  const char *const other[] = { "tp=1" };
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, &o, &e);
  if (mgrid_runtime_load(rt, path, NULL, 0, &e)) told(&e);
  bool first_stage = is(stage, "agreement");
  mgrid_plan *p = mgrid_runtime_plan(rt, world, NULL, first_stage && wrong, other, &e);
  if (strncmp(stage, "anywhere-", 9) == 0)
    anywhere(rt, b, p, mgrid_runtime_plan(rt, world, NULL, 1, other, &e),
             (unsigned)atoi(stage + 9));
  MPI_Barrier(MPI_COMM_WORLD);
  arm(first_stage                                ? "meeting"
      : is(stage, "between")                     ? "set_name"
      : is(stage, "inside") || is(stage, "last") ? "create_group"
                                                 : "",
      is(stage, "last") ? 3 : 1);
  mgrid_state *s = mgrid_materialize(p, b, "train", &e), *new_s = NULL;
  STEP(s);
  arm(is(stage, "prove")          ? "Ibcast"
      : is(stage, "before_prove") ? "meeting"
                                  : "",
      is(stage, "prove") ? 2 : 1);
  if (is(stage, "before_prove") && wrong) STEP(mgrid_agree(b, p, NULL, &e) == MGRID_OK);
  STEP(mgrid_state_prove(s, NULL, &e) == MGRID_OK);
  bool group = is(stage, "policy_of_group"), policy = group || is(stage, "policy");
  mgrid_policy *all = mgrid_policy_new(rt, s, policy && wrong ? "other" : "of_all", &e);
  mgrid_policy *some = mgrid_policy_new(rt, s, "of_group", &e);
  arm(policy ? "meeting" : "", 1);
  STEP(mgrid_policy_call(group ? some : all, 0, NULL, &e) == MGRID_OK);
  /* for the last rank a call over a group has not ended, for all others it has */
  if (is(stage, "behind")) {
    arm("", 0);
    if (odd) fault();
    if (me == world - 1) STEP(mgrid_policy_call(some, 0, NULL, &e) == MGRID_OK);
  }
  bool reload = is(stage, "reload");
  arm(reload ? "meeting" : "", 1);
  STEP(mgrid_reload(rt, s, path, reload && wrong, other, &new_s, NULL, &e) == MGRID_OK);
  mgrid_policy_free(all);
  mgrid_policy_free(some);
  mgrid_move *m =
      mgrid_move_new(p, mgrid_runtime_plan(rt, world, NULL, 1, other, &e), me, 0, NULL, NULL, &e);
  arm(is(stage, "messages") ? "data" : "", 1);
  STEP(mgrid_move_prove(m, b, NULL, &e) == MGRID_OK);
  bool destroy = is(stage, "destroy");
  begun = now();
  if (destroy && odd && !wrong) fault();
  if (!destroy || !wrong) mgrid_state_free(s); /* waits for nobody; the next call tells */
  mgrid_state *again = mgrid_materialize(p, b, "again", &e);
  STEP(again);
  STEP(false);
}
