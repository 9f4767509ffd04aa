/* SPDX-License-Identifier: MIT
**
** moments.c - a rank is lost at a random moment of a recovery: before one of its calls of MPI, or
** inside it. The others go on, in time and together. In each round one rank of the job dies while
** all compute, and another while they recover; the rest begin the next round.
** LAUNCH_OPTIONS="--with-ft ulfm" scripts/launch 8 build/tests/mpi/moments [SEED [NTH STEP]]: with
** NTH the second rank of a round dies before its NTH call, in each further round STEP calls later.
** TAP from rank 0. With the name of a call of MPI after SEED, rank 1 is stopped before this call,
** and the watchdog ends the others after 3 seconds. With `deaf` a backend fails to open on rank 1
** alone; then a rank dies before all settle, and rank 1 never hears what the others agreed on.
*/
#include "../anew.h"
#include "moongrid_mpi.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#ifndef OMPI_HAVE_MPI_EXT_FTMPI
int main(void) {
  printf("1..0 # SKIP this MPI ends with its first lost rank\n");
  return 0;
}
#else

/* --------------------------------------------------------------------- the moment */

static bool armed; /* this rank counts its calls of MPI, and dies in one of them: */
static long calls, nth, microseconds;
static const char *stops; /* or it is stopped before this one */

static void die(int signal) {
  (void)signal;
  raise(SIGKILL);
}

/* Kill this process later, because mpirun waits for it. */
static void stop(void) {
  const unsigned while_others_end = 8;
  if (fork() == 0) sleep(while_others_end), kill(getppid(), SIGKILL), _exit(0);
  raise(SIGSTOP);
}

static void counts(const char *call) {
  struct itimerval soon = { .it_value = { .tv_usec = microseconds } };
  if (armed && stops && strcmp(call, stops) == 0) stop();
  if (!armed || stops || calls++ != nth) return;
  if (microseconds == 0) raise(SIGKILL);
  signal(SIGALRM, die);
  setitimer(ITIMER_REAL, &soon, NULL);
}

/* Functions of MPI in place of their own. */
#define SPY(name, takes, gives) \
  int name takes { \
    counts(#name); \
    return P##name gives; \
  }
SPY(MPI_Comm_create_group, (MPI_Comm c, MPI_Group g, int tag, MPI_Comm *made), (c, g, tag, made))
SPY(MPI_Comm_split, (MPI_Comm c, int color, int key, MPI_Comm *made), (c, color, key, made))
SPY(MPI_Cart_create,
    (MPI_Comm c, int n, const int *dims, const int *periods, int reorder, MPI_Comm *made),
    (c, n, dims, periods, reorder, made))
SPY(MPI_Iallreduce,
    (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm c, MPI_Request *r),
    (from, to, n, type, op, c, r))
SPY(MPI_Ibcast, (void *data, int n, MPI_Datatype type, int root, MPI_Comm c, MPI_Request *r),
    (data, n, type, root, c, r))
SPY(MPI_Isend,
    (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm c, MPI_Request *r),
    (data, n, type, to, tag, c, r))
SPY(MPI_Irecv,
    (void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm c, MPI_Request *r),
    (data, n, type, from, tag, c, r))
SPY(MPI_Comm_free, (MPI_Comm * c), (c))
SPY(MPIX_Comm_revoke, (MPI_Comm c), (c))
SPY(MPIX_Comm_shrink, (MPI_Comm c, MPI_Comm *made), (c, made))

static bool told_of_loss; /* MPI tells this rank that its next creation has failed, and makes it */

int MPI_Comm_create(MPI_Comm c, MPI_Group g, MPI_Comm *made) {
  counts("MPI_Comm_create");
  int rc = PMPI_Comm_create(c, g, made);
  return told_of_loss ? told_of_loss = false, MPIX_ERR_PROC_FAILED : rc;
}

static bool deaf; /* this rank takes part in the next agreement, and does not hear its end */

int MPIX_Comm_iagree(MPI_Comm c, int *flag, MPI_Request *r) {
  static int unheard;
  static MPI_Request unseen;
  counts("MPIX_Comm_iagree");
  if (!deaf) return PMPIX_Comm_iagree(c, flag, r);
  deaf = false, unheard = *flag;
  int rc = PMPIX_Comm_iagree(c, &unheard, &unseen);
  return rc ? rc : PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, r);
}

/* ------------------------------------------------------------------------ a round */

/* seconds; calls of a recovery, or fewer; microseconds */
enum { DEADLINE = 20, MOST = 60, SLOWEST = 3000 };

static const char recipe[] =
    "return recipe { build = function(world)\n"
    "  local g = grid(world, 'dp', { dp = fill }) local t = topology(world) t.g = g\n"
    "  t.dp, t.ring = g 'dp', g 'dp':pairs 'wrap'\n"
    "  t.w = tensor { axes = { { 'r', 64 } }, type = 'f32' } return t end }\n";

static MPI_Comm everyone; /* those that live */
static int rank, size, me, number, failures;
static mgrid_error e = MGRID_ERROR_INIT;

static void test(bool ok, const char *what) {
  int all = ok;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, everyone);
  if (!ok) fprintf(stderr, "# rank %d: %s: %d %s\n", me, what, (int)e.status, e.message);
  number++; /* on all: the first rank may die */
  if (rank == 0) printf("%sok %d - %s\n", all ? "" : "not ", number, what);
  if (rank == 0) fflush(stdout);
  failures += !all;
}

/* From here on nobody dies. */
static void count_those_alive(void) {
  int told[] = { number, failures };
  struct itimerval never = { .it_value = { .tv_usec = 0 } };
  MPI_Comm rest;
  armed = false;
  setitimer(ITIMER_REAL, &never, NULL);
  if (MPIX_Comm_shrink(everyone, &rest)) _exit(3);
  MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
  everyone = rest;
  MPI_Comm_rank(everyone, &rank), MPI_Comm_size(everyone, &size);
  MPI_Allreduce(MPI_IN_PLACE, told, 2, MPI_INT, MPI_MAX, everyone);
  number = told[0], failures = told[1];
}

/* Recover, as a trainer does, until all have settled. *worst: the longest call. */
static mgrid_state *go_on(mgrid_state *was, mgrid_losses *losses, double *worst,
                          mgrid_loss **loss) {
  for (;;) {
    mgrid_state *now = NULL;
    mgrid_move *move = NULL;
    double begun = MPI_Wtime();
    mgrid_status s = mgrid_state_recover(was, losses, NULL, &now, loss, &move, anew(&e));
    if (MPI_Wtime() - begun > *worst) *worst = MPI_Wtime() - begun;
    if (s) return NULL;
    mgrid_move_prove(move, mgrid_state_backend(now), NULL, &e);
    mgrid_move_free(move);
    begun = MPI_Wtime();
    s = mgrid_state_settle(now, e.status, &e);
    if (MPI_Wtime() - begun > *worst) *worst = MPI_Wtime() - begun;
    if (!s) return now;
    mgrid_state_free(now), mgrid_loss_free(*loss);
    *loss = NULL;
    if (s != MGRID_LOST_RANK) return NULL;
  }
}

/* The last rank dies, and another while the others recover. Return the state of those that are
** left. */
static mgrid_state *lose_two(mgrid_state *was, mgrid_losses **losses, int second,
                             const char *when) {
  double worst = 0;
  char what[160];
  int before = size;
  mgrid_state *now = was;
  calls = 0;
  if (rank == size - 1) raise(SIGKILL);
  mgrid_state_prove(was, NULL, anew(&e));
  armed = rank == second;
  do { /* once more if the second dies when all have settled */
    mgrid_loss *loss = NULL;
    mgrid_losses *next = NULL;
    mgrid_state *from = now;
    now = go_on(from, *losses, &worst, &loss);
    if (now) next = mgrid_losses_after(*losses, loss, anew(&e));
    mgrid_losses_free(*losses), mgrid_loss_free(loss), mgrid_state_free(from);
    *losses = next;
    count_those_alive();
  } while (now && mgrid_plan_world(mgrid_state_plan(now)) > size);
  snprintf(what, sizeof what, "%d of %d ranks go on; rank %d dies %s", size, before, second, when);
  test(now != NULL && mgrid_plan_world(mgrid_state_plan(now)) == size, what);
  test(worst < DEADLINE + 1, "  in time");
  test(now && mgrid_state_prove(now, NULL, anew(&e)) == MGRID_OK, "  with groups that are proved");
  return now;
}

/* MPI makes the duplicate on all ranks and tells rank 1 that it could not, as it may when a rank is
** lost. */
static void open_half(const mgrid_mpi_options *o) {
  told_of_loss = rank == 1;
  mgrid_backend *b = mgrid_mpi_backend(everyone, o, anew(&e));
  test(!b && e.status == (rank == 1 ? MGRID_BACKEND : MGRID_LOST_RANK),
       "a backend opens on no rank if it fails on one");
}

/* The last rank dies before all settle, and rank 1 does not hear the end of it. */
static void settle_deaf(mgrid_state *was, mgrid_losses *losses) {
  double begun = MPI_Wtime(), worst = 0;
  mgrid_loss *loss = NULL;
  if (rank == size - 1) raise(SIGKILL);
  deaf = rank == 1;
  mgrid_status s = mgrid_state_settle(was, MGRID_OK, anew(&e));
  worst = MPI_Wtime() - begun;
  mgrid_state *now = s == MGRID_LOST_RANK ? go_on(was, losses, &worst, &loss) : NULL;
  mgrid_loss_free(loss);
  count_those_alive();
  test(now != NULL, "all go on, also the rank that did not hear what the others agreed on");
  test(worst < DEADLINE / 2, "  before the deadline");
}

int main(int argc, char **argv) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  char when[80];
  signal(SIGPIPE, SIG_IGN);
  MPI_Init(&argc, &argv);
  everyone = MPI_COMM_WORLD;
  MPI_Comm_set_errhandler(everyone, MPI_ERRORS_RETURN);
  MPI_Comm_rank(everyone, &rank), MPI_Comm_size(everyone, &size);
  me = rank;
  unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
  srand(seed);
  if (rank == 0) printf("# seed %u\n", seed);
  const bool unheard = argc == 3 && strcmp(argv[2], "deaf") == 0;
  if (argc == 3 && !unheard) stops = argv[2];
  o.timeout = stops ? 3 : DEADLINE, o.on_deadline = MGRID_DEADLINE_ABORT;
  if (unheard) open_half(&o);
  anew(&e);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, "moments", recipe, strlen(recipe), &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, size, NULL, 0, NULL, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, &o, &e);
  mgrid_state *state = mgrid_materialize(p, b, "train", &e);
  mgrid_losses *losses = mgrid_losses_new(rt, p, 0, NULL, NULL, &e);
  mgrid_backend_free(b), mgrid_plan_free(p);
  test(state && losses, "all have a state");
  MPI_Barrier(everyone);
  if (unheard && state && losses) settle_deaf(state, losses);
  for (long round = 0; state && losses && size >= 4 && !unheard; round++) {
    int second = rand() % (size - 1); /* the same on all: they draw the same numbers */
    nth = rand() % MOST, microseconds = rand() % 4 ? rand() % SLOWEST : 0;
    if (stops) second = 1;
    if (argc > 3)
      nth = strtol(argv[2], NULL, 10) + round * strtol(argv[3], NULL, 10), microseconds = 0;
    snprintf(when, sizeof when, "at its call %ld, after %ld us", nth, microseconds);
    state = lose_two(state, &losses, second, when);
  }
  if (rank == 0) printf("1..%d\n", number);
  fflush(stdout);
  MPI_Barrier(everyone);
  _exit(failures ? 1 : 0);
}
#endif
