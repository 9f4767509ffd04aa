/* SPDX-License-Identifier: MIT
**
** join.c - ranks come later (mgrid_state_enlarge): four train, and two that MPI_Comm_spawn starts
** join them, over and over, each case with a backend of its own over all six. After every refusal
** the four go on. MPI_JOBS=several scripts/launch 4 build/tests/mpi/join. `join nccl`: NCCL's
** communicators over MPI. With LAUNCH_OPTIONS="--with-ft ulfm" (Open MPI 5), `join dies`: ranks die
** while they join, and a new rank takes the place of a lost one; `join hear`: an old rank dies.
** TAP from rank 0.
*/
#include <mpi.h>

static MPI_Comm everyone; /* the ranks that take part in this test */
#define TAP_COMM everyone
#include "moongrid_mpi.h"
#include "tap.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#define DIGITS(x) #x
#define NUMBER(x) DIGITS(x)
#define MINE \
  NUMBER(MGRID_VERSION_MAJOR) "." NUMBER(MGRID_VERSION_MINOR) "." NUMBER(MGRID_VERSION_PATCH)
#define OTHER "1.0.99" /* of join_other.c */

enum { OLD = 4, ALL = 6 };

#define HEAD "return recipe { params = { tp = 2, only = 0 }, "
#define BUILD \
  "build = function(world, p)\n" \
  "  if p.only > 0 and world.size ~= p.only then error(('only %d ranks'):format(p.only), 0) end\n" \
  "  local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) local t = topology(world) t.grid = " \
  "g\n" \
  "  t.tp, t.dp = g 'tp', g 'dp'\n" \
  "  t.w = tensor { axes = { { 'r', 64 }, { 'c', 8 } }, type = 'f64', cut = { r = 'tp' } } "
#define UNLIKE "ranks do not have the same plan: "
static const char plain[] = HEAD BUILD "return t end }\n";
static const char spared[] = HEAD "spares = 1, " BUILD "return t end }\n";
static const char longer[] = HEAD BUILD "t.both = g('tp', 'dp') return t end }\n";
static const char bare[] = "return recipe { build = function(world) local t = topology(world)\n"
                           "t.all = grid(world, 'a', { a = fill }) 'a' return t end }\n";
static const char policed[] = HEAD "policy = { rate = function() return 1 end }, " BUILD
                                   "return t end }\n";

static bool is_new, nccl;
static mgrid_error e = MGRID_ERROR_INIT;

/* Test a call: all ranks have this status, and this message if one is given. */
static bool got(mgrid_status want, const char *message, const char *what) {
  bool as_wanted = e.status == want && (!message || strcmp(e.message, message) == 0);
  if (!as_wanted) fprintf(stderr, "# rank %d: %d %s\n", rank, (int)e.status, e.message);
  test(as_wanted, what);
  return as_wanted;
}

/* What a rank passes; zeros stand for the usual values. */
typedef struct brought {
  const char *recipe;
  int narg;
  const char *arg[2];
  mgrid_backend *larger; /* NULL: a new one, which is freed */
  bool comes_not, calls_join, says_new, dies;
} brought;

static mgrid_runtime *runtime_of(const brought *s) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  const char *text = s->recipe ? s->recipe : plain;
  mgrid_runtime_load(rt, "join", text, strlen(text), &e);
  return rt;
}

static mgrid_backend *open_over(MPI_Comm comm, double timeout) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mgrid_nccl_options over = MGRID_NCCL_OPTIONS_INIT;
  o.timeout = timeout, over.share_gpu = true;
  mgrid_backend *mpi = mgrid_mpi_backend(comm, &o, &e);
  if (!nccl || !mpi) return mpi;
  mgrid_backend *b = mgrid_backend_over(mpi, "nccl", &over, &e);
  mgrid_backend_free(mpi);
  return b;
}

static mgrid_state *train(MPI_Comm comm, const brought *s) {
  int n;
  MPI_Comm_size(comm, &n);
  mgrid_runtime *rt = runtime_of(s);
  mgrid_plan *p = mgrid_runtime_plan(rt, n, NULL, (size_t)s->narg, s->arg, &e);
  mgrid_backend *b = open_over(comm, 0);
  mgrid_state *state = mgrid_materialize(p, b, "train", &e);
  mgrid_backend_free(b), mgrid_plan_free(p), mgrid_runtime_free(rt);
  return state;
}

static mgrid_state *enlarge(mgrid_state *was, const brought *s, mgrid_backend *larger,
                            mgrid_move **move) {
  mgrid_state *now = NULL;
  mgrid_runtime *rt = runtime_of(s);
  anew(&e);
  if (s->dies) raise(SIGKILL);
  if (s->calls_join) {
    mgrid_plan *p =
        mgrid_runtime_plan(rt, mgrid_backend_world(larger), NULL, (size_t)s->narg, s->arg, &e);
    now = mgrid_state_join(p, larger, "train", &e);
    mgrid_plan_free(p);
  } else if (!s->comes_not) {
    mgrid_state_enlarge(s->says_new ? NULL : was, rt, (size_t)s->narg, s->arg, larger, NULL, &now,
                        move, &e);
  }
  mgrid_runtime_free(rt);
  return now;
}

/* No rank joins: all get this error, and the old ranks go on. */
static void refused(MPI_Comm all, mgrid_state *was, const brought *s, double timeout,
                    mgrid_status want, const char *message, const char *what) {
  mgrid_move *move = NULL;
  mgrid_backend *larger = open_over(all, timeout);
  mgrid_state *now = enlarge(was, s, larger, &move);
  got(s->comes_not ? MGRID_OK : want, s->comes_not ? NULL : message, what);
  test(!now && !move && (is_new || mgrid_state_prove(was, NULL, anew(&e)) == MGRID_OK),
       "  and the old job goes on");
  mgrid_backend_free(larger);
}

/* Each element of the tensor says where it is. Return the bytes of this rank's part. */
static int64_t fill(const mgrid_plan *p, double *w) {
  mgrid_run run = { 0 };
  mgrid_tensor_runs(p, "w", rank, 0, 1, &run, &e);
  for (int64_t i = 0; i < run.length * 8; i++) w[i] = (double)(run.start * 8 + i);
  return run.length * 8 * (int64_t)sizeof *w;
}

/* All join: the groups are proved, and the weights are where they belong. */
static mgrid_state *accepted(MPI_Comm all, mgrid_state *was, const brought *s, int64_t layout,
                             const char *what) {
  mgrid_move *move = NULL;
  mgrid_backend *larger = open_over(all, 0);
  mgrid_state *now = enlarge(was, s, larger, &move);
  got(MGRID_OK, NULL, what);
  const mgrid_plan *p = mgrid_state_plan(now);
  test(now && mgrid_plan_world(p) - mgrid_plan_nspares(p) == layout, "  with the largest layout");
  mgrid_state_prove(now, NULL, &e);
  got(MGRID_OK, NULL, "  whose groups are proved");
  double one[512] = { 0 }, two[512] = { 0 }, right[512] = { 0 };
  mgrid_buffer from = { one, was ? fill(mgrid_state_plan(was), one) : 0 },
               to = { two, fill(p, right) };
  if (nccl) /* parts are on the GPU */
    mgrid_move_prove(move, larger, NULL, &e), memcpy(two, right, sizeof two);
  else
    mgrid_move_run(move, larger, &from, &to, NULL, &e);
  test(!e.status && memcmp(two, right, sizeof two) == 0, "  which get the weights");
  mgrid_state_settle(now, e.status, &e);
  got(MGRID_OK, NULL, "  and all settle");
  mgrid_move_free(move);
  mgrid_backend_free(larger);
  return now;
}

/* The cases without a death. Old ranks have `was`. */
static void cases(MPI_Comm all, mgrid_state *was, mgrid_state *own) {
  brought usual = { 0 };
  /* another recipe, other arguments: on the new ranks, or on one */
  refused(all, was, &(brought){ .recipe = is_new ? longer : NULL }, 0, MGRID_DISAGREE,
          UNLIKE "rank 4 has \"family both: (6:1) x (1)\", rank 0 has \"nothing\"; differing from "
                 "rank 0: 4, 5",
          "another recipe");
  refused(all, was, &(brought){ .narg = is_new, .arg = { "tp=1" } }, 0, MGRID_DISAGREE,
          UNLIKE "rank 4 has \"family dp: (6:1) x (1)\", rank 0 has \"family dp: (3:2) x (2:1)\"; "
                 "rank 4 has \"param tp = "
                 "1\", rank 0 has \"param tp = 2\"; differing from rank 0: 4, 5",
          "other arguments");
  refused(all, was, &(brought){ .narg = rank == 5, .arg = { "tp=3" } }, 0, MGRID_DISAGREE,
          UNLIKE "rank 5 has \"family dp: (2:3) x (3:1)\", rank 0 has \"family dp: (3:2) x "
                 "(2:1)\"; rank 5 has \"param tp = "
                 "3\", rank 0 has \"param tp = 2\"; differing from rank 0: 5",
          "other arguments of one rank");
  refused(all, was, &(brought){ .recipe = is_new ? policed : NULL }, 0, MGRID_DISAGREE,
          UNLIKE "the groups are the same, but not the text of the recipe, and it has policies; "
                 "differing from rank 0: 4, 5",
          "the same groups from another text");
  refused(all, was, &(brought){ .narg = rank == 5, .arg = { "dp=1" } }, 0, MGRID_DISAGREE,
          UNLIKE "rank 5 has none (join:1: unknown parameter 'dp'; known: only, tp)",
          "a new rank that cannot plan");
  refused(all, was, &(brought){ .narg = 1, .arg = { "tp=7" } }, 0, MGRID_REFUSED,
          "join:3: tp 7 does not divide the 6 ranks; nearest: tp 6, or a world of 7 ranks",
          "arguments that fit no world");
  refused(all, was, &(brought){ .recipe = bare }, 0, MGRID_REFUSED,
          "the plans of the old and the larger world have no tensor in common",
          "a recipe without the old tensors");
  /* old ranks that say they are new, and the reverse */
  refused(all, was, &(brought){ .says_new = rank == 3 }, 0, MGRID_REFUSED,
          "rank 3: no state was given, but ranks 0 to 3 of the larger world are old ranks",
          "an old rank that says it is new");
  refused(all, was, &(brought){ .says_new = rank == 0 }, 0, MGRID_REFUSED,
          "rank 0: no state was given, but the old ranks must come first in the larger world "
          "(MPI_Intercomm_merge with "
          "high = "
          "false on their side)",
          "rank 0 says that it is new");
  refused(all, rank == 5 ? own : was, &usual, 0, MGRID_REFUSED,
          "rank 5: a state was given, but only ranks 0 to 3 of the larger world are old ranks",
          "a new rank that says it is old");
  /* ranks in different calls */
  refused(all, was, &(brought){ .calls_join = rank == 4 }, 0, MGRID_DISAGREE,
          "ranks make unlike calls: rank 0 is in enlarge a state, rank 4 is in materialize "
          "'train'; all ranks must make the same calls in the same order",
          "a new rank in another call");
  refused(all, was, &(brought){ .comes_not = rank == 5 }, 2, MGRID_TIMED_OUT,
          "after 2 seconds not all ranks had come: rank 5 is not there, in call 1 over all ranks: "
          "enlarge a state",
          "a new rank that does not come");
  mgrid_state_free(accepted(all, was, &usual, ALL, "two join"));
  mgrid_state_free(accepted(all, was, &(brought){ .recipe = spared }, OLD,
                            "two that the recipe keeps as spares"));
  mgrid_state_free(accepted(all, was, &(brought){ .narg = 2, .arg = { "tp=2", "only=4" } }, OLD,
                            "two that are spares"));
}

/* Old and new ranks as one, old ones first. */
static MPI_Comm merge(MPI_Comm inter) {
  MPI_Comm all;
  MPI_Intercomm_merge(inter, is_new, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  MPI_Comm_rank(all, &rank);
  return all;
}

static MPI_Comm spawn(MPI_Comm old, const char *program, const char *how, int n) {
  MPI_Comm inter = MPI_COMM_NULL;
  char *args[] = { (char *)(uintptr_t)how, NULL };
  if (MPI_Comm_spawn((char *)(uintptr_t)program, args, n, MPI_INFO_NULL, 0, old, &inter,
                     MPI_ERRCODES_IGNORE))
    exit(3);
  return inter;
}

/* Two ranks come, and take part in all cases. */
static void join(MPI_Comm inter, mgrid_state *was) {
  brought usual = { 0 };
  MPI_Comm all = merge(inter);
  mgrid_state *own = is_new ? train(MPI_COMM_WORLD, &usual) : was;
  everyone = all;
  test(own != NULL, "all train");
  if (nccl)
    mgrid_state_free(accepted(all, was, &usual, ALL, "two join"));
  else
    cases(all, was, own);
  if (is_new) mgrid_state_free(own);
  everyone = MPI_COMM_WORLD;
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
}

/* A rank comes with another version of the library: join_other.c. */
static void other_version(MPI_Comm inter, mgrid_state *was) {
  brought usual = { 0 };
  MPI_Comm all = merge(inter);
  everyone = all;
  refused(all, was, &usual, 0, MGRID_DISAGREE,
          "ranks have unlike versions of moongrid: rank 0 has " MINE ", rank 4 has " OTHER
          "; install one version on all nodes",
          "another version");
  everyone = MPI_COMM_WORLD;
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
}

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
/* ---------------------------------------------------------------- ranks die, and others come */

/* `all` without dead ranks, for the next tests. Its first rank continues the count of tests. */
static void go_on_without(MPI_Comm all) {
  int told[] = { number, failures };
  if (MPIX_Comm_shrink(all, &everyone)) exit(3);
  MPI_Comm_rank(everyone, &rank);
  MPI_Allreduce(MPI_IN_PLACE, told, 2, MPI_INT, MPI_MAX, everyone);
  number = told[0], failures = told[1];
}

/* When the new rank dies. Not while a rank creates a communicator: Open MPI 5.0.11 then crashes or
** waits for ever. */
typedef enum instant { OPENING, JOINING, WAITING, SETTLING } instant;
static const char *const instants[] = { "opening", "joining", "waiting", "settling" };

static void dies_joining(MPI_Comm inter, mgrid_state *was, instant at) {
  static const char what[][64] = { "a new rank dies before it opens its backend",
                                   "a new rank dies before it joins",
                                   "a new rank dies while the others wait for it",
                                   "a new rank dies when all are made" };
  MPI_Comm all = merge(inter);
  mgrid_move *move = NULL;
  brought how = { .dies = is_new && at == JOINING };
  MPI_Barrier(all);
  if (is_new && at == OPENING) raise(SIGKILL);
  mgrid_backend *larger = open_over(all, 20);
  if (larger) MPI_Barrier(all);
  if (is_new && at == WAITING) usleep(300000), raise(SIGKILL);
  mgrid_state *now = larger ? enlarge(was, &how, larger, &move) : NULL;
  if (is_new) raise(SIGKILL);
  test(!now == (at != SETTLING), what[at]);
  /* all survivors settle with the same result, and notice the loss then or in the next call */
  if (now && mgrid_state_settle(now, MGRID_OK, &e) == MGRID_OK) mgrid_state_prove(now, NULL, &e);
  got(MGRID_LOST_RANK,
      at == JOINING || at == WAITING ? "rank 4 is lost: MPI says that the process has failed, in "
                                       "call 1 over all ranks: enlarge a state"
                                     : NULL,
      "  all hear of it");
  mgrid_state_free(now), mgrid_move_free(move);
  mgrid_backend_free(larger);
  test(mgrid_state_prove(was, NULL, anew(&e)) == MGRID_OK, "  and the old job goes on");
}

static instant instant_of(const char *name) {
  int at = OPENING;
  while (at < SETTLING && strcmp(instants[at], name) != 0) at++;
  return at;
}

/* A new rank replaces a lost one: the layout is as large as before. */
static void refilled(MPI_Comm inter, mgrid_state *was) {
  brought usual = { 0 };
  MPI_Comm all = merge(inter);
  go_on_without(all);
  mgrid_state_free(accepted(all, was, &usual, OLD, "one comes in the place of the lost rank"));
}

/* An old rank dies after the merge. The new one is of another job, and hears of it all the same. */
static void old_dies(MPI_Comm inter) {
  MPI_Comm all = merge(inter);
  MPI_Barrier(all);
  if (!is_new && rank == 1) raise(SIGKILL);
  double begun = MPI_Wtime();
  mgrid_backend *larger = open_over(all, 30);
  double took = MPI_Wtime() - begun;
  go_on_without(all);
  test(!larger, "an old rank dies before the backend over old and new ranks");
  got(MGRID_LOST_RANK, "rank 1 is lost: MPI says that the process has failed", "  all hear of it");
  test(took < 25, "  long before the deadline");
}

static void full_circle(const char *program, mgrid_state *was) {
  const char *arg[] = { "tp=2" };
  brought usual = { 0 };
  mgrid_state *now = NULL;
  mgrid_runtime *rt = runtime_of(&usual);
  mgrid_losses *losses = mgrid_losses_new(rt, mgrid_state_plan(was), 1, arg, NULL, anew(&e));
  MPI_Comm old;
  if (rank == 1) raise(SIGKILL);
  mgrid_state_prove(was, NULL, &e);
  mgrid_state_recover(was, losses, NULL, &now, NULL, NULL, anew(&e));
  go_on_without(MPI_COMM_WORLD);
  got(MGRID_OK, NULL, "an old rank dies, and the others recover");
  const mgrid_plan *p = mgrid_state_plan(now);
  test(mgrid_plan_world(p) == 3 && mgrid_plan_nspares(p) == 1, "  two train, and one is idle");
  mgrid_mpi_world(mgrid_state_backend(now), &old, &e);
  got(MGRID_OK, NULL, "  they are a communicator");
  refilled(spawn(old, program, "refilled", 1), now);
  mgrid_state_free(now);
  mgrid_losses_free(losses);
  mgrid_runtime_free(rt);
}

static void deaths(const char *program, const char *how, MPI_Comm parent) {
  brought usual = { 0 };
  mgrid_state *was = is_new ? NULL : train(MPI_COMM_WORLD, &usual);
  if (strcmp(how, "hear") == 0) {
    old_dies(is_new ? parent : spawn(MPI_COMM_WORLD, program, how, 1));
    tap_total();
  } else if (!is_new) {
    for (instant at = OPENING; at <= SETTLING; at++)
      dies_joining(spawn(MPI_COMM_WORLD, program, instants[at], 1), was, at);
    full_circle(program, was);
    tap_total();
  } else if (strcmp(how, "refilled") == 0) {
    refilled(parent, NULL);
  } else {
    dies_joining(parent, NULL, instant_of(how));
  }
  fflush(stdout);
  MPI_Barrier(everyone);
  _exit(failures > 0);
}
#else
static void deaths(const char *program, const char *how, MPI_Comm parent) {
  (void)program, (void)how, (void)parent;
  if (rank == 0) printf("1..0 # SKIP this MPI ends with its first lost rank\n");
}
#endif

int main(int argc, char **argv) {
  MPI_Comm parent;
  brought usual = { 0 };
  char other[4096];
  const char *how = argc > 1 ? argv[1] : "";
  everyone = MPI_COMM_WORLD;
  tap_begin(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  is_new = parent != MPI_COMM_NULL;
  nccl = strcmp(how, "nccl") == 0;
  if (*how && !nccl && strcmp(how, "join") != 0 && strcmp(how, "other") != 0) {
    deaths(argv[0], how, parent);
    MPI_Finalize();
    return 0;
  }
  mgrid_state *was = is_new ? NULL : train(MPI_COMM_WORLD, &usual);
  snprintf(other, sizeof other, "%s_other", argv[0]);
  if (!is_new || strcmp(how, "other") != 0)
    join(is_new ? parent : spawn(MPI_COMM_WORLD, argv[0], nccl ? how : "join", ALL - OLD), was);
  if (!nccl && (!is_new || strcmp(how, "other") == 0))
    other_version(is_new ? parent : spawn(MPI_COMM_WORLD, other, "other", 1), was);
  mgrid_state_free(was);
  if (is_new) rank = -1;
  return tap_end();
}
