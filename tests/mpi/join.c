/* SPDX-License-Identifier: MIT
**
** join.c - ranks come later (mgrid_state_enlarge): four train, and two that MPI_Comm_spawn starts join them, over and over,
** each case with a backend of its own over all six. After every refusal the four go on. MPI_JOBS=several scripts/launch 4
** build/tests/mpi/join; with LAUNCH_OPTIONS="--with-ft ulfm" (Open MPI 5) ranks also die. TAP from rank 0.
*/
#include <mpi.h>

static MPI_Comm everyone; /* those who see this test pass */
#define TAP_COMM everyone
#include "moongrid_mpi.h"
#include "tap.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OLD = 4, ALL = 6 };

#define HEAD "return recipe { params = { tp = 2, only = 0 }, "
#define BUILD \
  "build = function(world, p)\n" \
  "  if p.only > 0 and world.size ~= p.only then error(('only %d ranks'):format(p.only), 0) end\n" \
  "  local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) local t = topology(world) t.grid = g\n" \
  "  t.tp, t.dp = g 'tp', g 'dp'\n" \
  "  t.w = tensor { axes = { { 'r', 64 }, { 'c', 8 } }, type = 'f64', cut = { r = 'tp' } } "
static const char plain[] = HEAD BUILD "return t end }\n";
static const char                spared[] = HEAD "spares = 1, " BUILD "return t end }\n";
static const char longer[] = HEAD BUILD "t.both = g('tp', 'dp') return t end }\n";
static const char                 bare[] = "return recipe { build = function(world) local t = topology(world)\n"
                                           "t.all = grid(world, 'a', { a = fill }) 'a' return t end }\n";
static const char policed[] = HEAD "policy = { rate = function() return 1 end }, " BUILD "return t end }\n";

static bool        is_new;
static mgrid_error e = MGRID_ERROR_INIT;

/* A test of a call: its status on all, and if a message is given, that all have it. */
static bool got(mgrid_status want, const char *message, const char *what) {
  bool as_wanted = e.status == want && (!message || strcmp(e.message, message) == 0);
  if (!as_wanted || getenv("SHOW")) fprintf(stderr, "# rank %d: %d %s\n", rank, (int)e.status, e.message);
  test(as_wanted, what);
  return as_wanted;
}

/* What a rank brings; zeros are replaced by the usual. */
typedef struct brought {
  const char    *recipe;
  int            narg;
  const char    *arg[2];
  mgrid_backend *larger; /* NULL: one of its own, which is freed */
  bool           comes_not, calls_join, says_new, dies;
} brought;

static mgrid_runtime *runtime_of(const brought *s) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  const char    *text = s->recipe ? s->recipe : plain;
  mgrid_runtime_load_text(rt, text, strlen(text), "join", &e);
  return rt;
}

static mgrid_backend *open_over(MPI_Comm comm, double timeout) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  o.timeout = timeout;
  return mgrid_mpi_backend(comm, &o, &e);
}

static mgrid_state *train(MPI_Comm comm, const brought *s) {
  int n;
  MPI_Comm_size(comm, &n);
  mgrid_runtime *rt = runtime_of(s);
  mgrid_plan    *p = mgrid_runtime_plan(rt, n, (size_t)s->narg, s->arg, &e);
  mgrid_backend *b = open_over(comm, 0);
  mgrid_state   *state = mgrid_materialize(p, b, "train", &e);
  mgrid_backend_free(b), mgrid_plan_free(p), mgrid_runtime_free(rt);
  return state;
}

static mgrid_state *enlarge(mgrid_state *was, const brought *s, mgrid_backend *larger, mgrid_move **move) {
  mgrid_state   *now = NULL;
  mgrid_runtime *rt = runtime_of(s);
  anew(&e);
  if (s->dies) raise(SIGKILL);
  if (s->calls_join) {
    mgrid_plan *p = mgrid_runtime_plan(rt, mgrid_backend_world(larger), (size_t)s->narg, s->arg, &e);
    now = mgrid_state_join(p, larger, "train", &e);
    mgrid_plan_free(p);
  } else if (!s->comes_not) {
    mgrid_state_enlarge(s->says_new ? NULL : was, rt, (size_t)s->narg, s->arg, larger, NULL, &now, move, &e);
  }
  mgrid_runtime_free(rt);
  return now;
}

/* Nobody is let in, with this error, and the old ones go on. */
static void refused(MPI_Comm all, mgrid_state *was, const brought *s, double timeout, mgrid_status want,
                    const char *message, const char *what) {
  mgrid_move    *move = NULL;
  mgrid_backend *larger = open_over(all, timeout);
  mgrid_state   *now = enlarge(was, s, larger, &move);
  got(s->comes_not ? MGRID_OK : want, s->comes_not ? NULL : message, what);
  test(!now && !move && (is_new || mgrid_state_prove(was, NULL, anew(&e)) == MGRID_OK), "  and the old job goes on");
  mgrid_backend_free(larger);
}

/* Each element of the tensor says where it is. Return the bytes of this rank's part. */
static int64_t fill(const mgrid_plan *p, double *w) {
  mgrid_run run = { 0 };
  mgrid_tensor_runs(p, "w", rank, 0, 1, &run, &e);
  for (int64_t i = 0; i < run.length * 8; i++) w[i] = (double)(run.start * 8 + i);
  return run.length * 8 * (int64_t)sizeof *w;
}

/* They are let in: the groups are proved, and the weights are where they belong. */
static mgrid_state *accepted(MPI_Comm all, mgrid_state *was, const brought *s, int64_t layout, const char *what) {
  mgrid_move    *move = NULL;
  mgrid_backend *larger = open_over(all, 0);
  mgrid_state   *now = enlarge(was, s, larger, &move);
  got(MGRID_OK, NULL, what);
  const mgrid_plan *p = mgrid_state_plan(now);
  test(now && mgrid_plan_world(p) - mgrid_plan_nspares(p) == layout, "  with the largest layout");
  mgrid_state_prove(now, NULL, &e);
  got(MGRID_OK, NULL, "  whose groups are proved");
  double       one[512] = { 0 }, two[512] = { 0 }, right[512] = { 0 };
  mgrid_buffer from = { one, was ? fill(mgrid_state_plan(was), one) : 0 }, to = { two, fill(p, right) };
  mgrid_move_run(move, larger, &from, &to, NULL, &e);
  test(!e.status && memcmp(two, right, sizeof two) == 0, "  which get the weights");
  mgrid_state_settle(now, e.status, &e);
  got(MGRID_OK, NULL, "  and all settle");
  mgrid_move_free(move);
  mgrid_backend_free(larger);
  return now;
}

/* The cases that need nobody's death. Old ranks have `was`. */
static void cases(MPI_Comm all, mgrid_state *was, mgrid_state *own) {
  const char *agree =
      "ranks do not have the same plan: rank 4 has \"%s\", rank 0 has \"%s\"; differing from rank 0: 4, 5";
  char message[512];
  brought usual = { 0 };
  /* another recipe, other arguments: on the new ranks, or on one */
  snprintf(message, sizeof message, agree, "both | 0 | 6 | 0,1,2,3,4,5", "nothing");
  refused(all, was, &(brought){ .recipe = is_new ? longer : NULL }, 0, MGRID_DISAGREE, NULL, "another recipe");
  test(true, message);
  refused(all, was, &(brought){ .narg = is_new, .arg = { "tp=1" } }, 0, MGRID_DISAGREE, NULL, "other arguments");
  refused(all, was, &(brought){ .narg = rank == 5, .arg = { "tp=3" } }, 0, MGRID_DISAGREE, NULL,
          "other arguments of one rank");
  refused(all, was, &(brought){ .recipe = is_new ? policed : NULL }, 0, MGRID_DISAGREE, NULL,
          "the same groups from another text");
  refused(all, was, &(brought){ .narg = rank == 5, .arg = { "dp=1" } }, 0, MGRID_DISAGREE, NULL,
          "a new rank that cannot plan");
  refused(all, was, &(brought){ .narg = 1, .arg = { "tp=7" } }, 0, MGRID_REFUSED, NULL, "arguments that fit no world");
  refused(all, was, &(brought){ .recipe = bare }, 0, MGRID_REFUSED, NULL, "a recipe without the old tensors");
  /* who is who */
  refused(all, was, &(brought){ .says_new = rank == 3 }, 0, MGRID_REFUSED,
          "rank 3: no state was given, and ranks 0 to 3 of the larger world are the old ones, which bring theirs",
          "an old rank that says it is new");
  refused(all, was, &(brought){ .says_new = rank == 0 }, 0, MGRID_REFUSED, NULL, "rank 0 says that it is new");
  refused(all, rank == 5 ? own : was, &usual, 0, MGRID_REFUSED,
          "rank 5: a state was given, and ranks 0 to 3 of the larger world are the old ones, which bring one",
          "a new rank that says it is old");
  /* what they call */
  refused(all, was, &(brought){ .calls_join = rank == 4 }, 0, MGRID_DISAGREE, NULL, "a new rank in another call");
  refused(all, was, &(brought){ .comes_not = rank == 5 }, 2, MGRID_TIMED_OUT, NULL, "a new rank that does not come");
  mgrid_state_free(accepted(all, was, &usual, ALL, "two join"));
  mgrid_state_free(accepted(all, was, &(brought){ .recipe = spared }, OLD, "two that the recipe keeps as spares"));
  mgrid_state_free(accepted(all, was, &(brought){ .narg = 2, .arg = { "tp=2", "only=4" } }, OLD, "two that are spares"));
}

static void run(MPI_Comm inter) {
  MPI_Comm all;
  brought  usual = { 0 };
  MPI_Intercomm_merge(inter, is_new, &all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  mgrid_state *own = train(MPI_COMM_WORLD, &usual);
  everyone = all;
  MPI_Comm_rank(all, &rank);
  test(own != NULL, "all train");
  cases(all, is_new ? NULL : own, own);
  mgrid_state_free(own);
  everyone = MPI_COMM_WORLD;
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv) {
  MPI_Comm inter;
  everyone = MPI_COMM_WORLD;
  tap_begin(&argc, &argv);
  MPI_Comm_get_parent(&inter);
  is_new = inter != MPI_COMM_NULL;
  if (!is_new)
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, ALL - OLD, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  run(inter);
  if (is_new) rank = -1;
  return tap_end();
}
