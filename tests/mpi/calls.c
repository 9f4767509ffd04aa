/* SPDX-License-Identifier: MIT
**
** calls.c - make one public call that waits for other ranks, again and again: calls NAME KIND
** DEADLINE FOLDER. It runs under struck.c, which strikes a rank. Each rank that gets an error
** prints it, "told RANK STATUS MESSAGE", frees everything, and ends. If KIND is pause, no rank gets
** an error. scripts/lint.d/waits.lua compares the names in the table with the headers.
*/
#include "../anew.h"
#include "base/base.h"
#include "moongrid_mpi.h"
#include "moongrid_recipe.h"
#include "struck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char recipe[] =
    "return recipe { params = { tp = 2 }, build = function(world, p)\n"
    "  local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) local t = topology(world) t.grid = "
    "g\n"
    "  t.tp, t.dp, t.all, t.late = g 'tp', g 'dp', g { 'tp', 'dp' }, g 'tp':with { lazy = true, "
    "unique = true }\n"
    "  t.w = tensor { axes = { { 'r', 512 }, { 'c', 512 } }, type = 'f32', cut = { r = 'tp', c = "
    "'dp' } } return t "
    "end,\n"
    "policy = { of_all = function() return 1 end, of_group = function() return 2 end },\n"
    "agreed = { of_all = 'world', of_group = 'dp' },\n"
    "step = function(s) s:all_reduce(s.tp, 8) end }\n";
static const char *const tp[] = { "tp=2", "tp=1" };

static int me, world;
static double deadline;
static const char *folder;
static mgrid_error e = MGRID_ERROR_INIT;
static mgrid_mpi_options options = MGRID_MPI_OPTIONS_INIT;
static mgrid_runtime *rt;
static mgrid_backend *b, *less; /* less: of the first half of the ranks */
static mgrid_plan *p, *q;
static mgrid_state *s, *old;

static void need(bool well) {
  if (well) return;
  char line[1400];
  int n = snprintf(line, sizeof line, "told %d %d %s\n", me, e.status, e.message);
  if (write(STDOUT_FILENO, line, (size_t)n) != n) _exit(3);
  mgrid_state_free(s);
  mgrid_state_free(old);
  mgrid_backend_free(less);
  mgrid_backend_free(b);
  _exit(0); /* MPI_Finalize is the host's, and waits for the rank that was struck */
}

/* -------------------------------------------------------------------- the calls */

static void agree(void) { need(!mgrid_agree(b, p, NULL, &e)); }

static void materialize(void) {
  mgrid_state *made = mgrid_materialize(q, b, "more", &e);
  need(made);
  mgrid_state_free(made);
}

static void create(void) {
  mgrid_state *made = mgrid_materialize(p, b, "more", &e);
  need(made && !mgrid_state_create(made, "late", &e));
  mgrid_state_free(made);
}

static void prove(void) { need(!mgrid_state_prove(s, NULL, &e)); }
static void settle(void) { need(!mgrid_state_settle(s, MGRID_OK, &e)); }
static void state_step(void) {
  mgrid_step *one = mgrid_state_step(rt, s, NULL, &e);
  need(one);
  mgrid_step_free(one);
}

static void least(void) {
  int64_t number = me;
  need(!mgrid_state_least(s, &number, &e) && number == 0);
}

static void enlarge(void) {
  mgrid_state *now = NULL;
  mgrid_move *move = NULL;
  need(!mgrid_state_enlarge(old, rt, 0, NULL, b, NULL, &now, &move, &e));
  mgrid_move_free(move);
  mgrid_state_free(now);
}

static void grow(void) {
  mgrid_state *grown = old ? mgrid_state_grow(old, p, b, "grown", &e)
                           : mgrid_state_join(p, b, "grown", &e);
  need(grown);
  mgrid_state_free(grown);
}

static void open_state(void) {
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  o.text = recipe, o.length = sizeof recipe - 1;
  mgrid_state *made = mgrid_open(b, "calls.lua", 0, NULL, &o, &e);
  need(made);
  mgrid_state_free(made);
}

static void mpi_open(void) {
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  o.text = recipe, o.length = sizeof recipe - 1;
  mgrid_state *made = mgrid_mpi_open(MPI_COMM_WORLD, "calls.lua", 0, NULL, &options, &o, &e);
  need(made);
  mgrid_state_free(made);
}

static void mpi_backend(void) {
  mgrid_backend *made = mgrid_mpi_backend(MPI_COMM_WORLD, &options, &e);
  need(made);
  mgrid_backend_free(made);
}

static void backend_open(void) {
  mgrid_backend_options o = MGRID_BACKEND_OPTIONS_INIT;
  o.timeout = deadline, o.mpi = &options;
  mgrid_backend *made = mgrid_backend_open("mpi", &o, &e);
  need(made);
  mgrid_backend_free(made);
}

static void mpi_world(void) {
  MPI_Comm made = MPI_COMM_NULL;
  need(!mgrid_mpi_world(b, &made, &e));
  MPI_Comm_free(&made);
}

static void policy(void) {
  mgrid_policy *all = mgrid_policy_new(rt, s, "of_all", &e),
               *some = mgrid_policy_new(rt, s, "of_group", &e);
  need(!mgrid_policy_call(all, 0, NULL, &e) && !mgrid_policy_call(some, 0, NULL, &e));
  mgrid_policy_free(all), mgrid_policy_free(some);
}

static void reload(void) {
  static int i;
  mgrid_state *next = NULL;
  need(!mgrid_reload(rt, s, NULL, 1, &tp[++i % 2], &next, NULL, &e));
  mgrid_state_free(s);
  s = next, rt = mgrid_state_runtime(next);
}

static void move_prove(void) {
  mgrid_move *m = mgrid_move_new(p, q, me, 0, NULL, NULL, &e);
  need(!mgrid_move_prove(m, b, NULL, &e));
  mgrid_move_free(m);
}

static void move_run(void) {
  static char from[512 * 512 * 4], to[512 * 512 * 4];
  mgrid_buffer before = { from, sizeof from }, after = { to, sizeof to };
  mgrid_move *m = mgrid_move_new(p, q, me, 0, NULL, NULL, &e);
  need(!mgrid_move_run(m, b, &before, &after, NULL, &e));
  mgrid_move_free(m);
}

static const struct {
  const char *name;
  void (*call)(void);
} calls[] = { { "mgrid_agree", agree },
              { "mgrid_materialize", materialize },
              { "mgrid_state_free", materialize },
              { "mgrid_state_create", create },
              { "mgrid_state_prove", prove },
              { "mgrid_state_grow", grow },
              { "mgrid_state_join", grow },
              { "mgrid_state_settle", settle },
              { "mgrid_state_least", least },
              { "mgrid_state_enlarge", enlarge },
              { "mgrid_state_step", state_step },
              { "mgrid_open", open_state },
              { "mgrid_policy_call", policy },
              { "mgrid_reload", reload },
              { "mgrid_move_run", move_run },
              { "mgrid_move_prove", move_prove },
              { "mgrid_mpi_open", mpi_open },
              { "mgrid_mpi_backend", mpi_backend },
              { "mgrid_mpi_world", mpi_world },
              { "mgrid_backend_open", backend_open },
              { "mgrid_backend_free", NULL } };

/* ---------------------------------------------------------------------- the job */

static void begin(void) {
  char name[400];
  snprintf(name, sizeof name, "%s/begun.%d", folder, me);
  FILE *f = fopen(name, "w");
  if (!f || fclose(f)) _exit(3);
}

/* A backend that finalizes MPI when it is freed. */
static void end_of_mpi(void) {
  mgrid_backend_options o = MGRID_BACKEND_OPTIONS_INIT;
  o.timeout = deadline, o.mpi = &options;
  b = mgrid_backend_open("mpi", &o, &e);
  me = b ? (int)mgrid_backend_rank(b) : -1;
  need(b);
  s = mgrid_materialize(mgrid_runtime_plan(rt, mgrid_backend_world(b), NULL, 0, NULL, &e), b, "all",
                        &e);
  need(s);
  mgrid_state_free(s);
  s = NULL;
  begin();
  struct timespec t = { 0, me * 5000000 };
  nanosleep(&t, NULL);
  mgrid_backend_free(b);
  _exit(0);
}

static void begin_job(void) {
  MPI_Comm part;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  b = mgrid_mpi_backend(MPI_COMM_WORLD, &options, &e);
  p = mgrid_runtime_plan(rt, world, NULL, 0, NULL, &e),
  q = mgrid_runtime_plan(rt, world, NULL, 1, &tp[1], &e);
  s = mgrid_materialize(p, b, "train", &e);
  need(s && q);
  MPI_Comm_split(MPI_COMM_WORLD, me < world / 2, me, &part);
  if (me < world / 2) {
    less = mgrid_mpi_backend(part, &options, &e);
    old = mgrid_materialize(mgrid_runtime_plan(rt, world / 2, NULL, 1, tp, &e), less, "grown", &e);
    need(old);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  size_t i = 0;
  while (i < sizeof calls / sizeof *calls && strcmp(calls[i].name, argv[1]) != 0) i++;
  if (i == sizeof calls / sizeof *calls) return 2;
  bool pause = strcmp(argv[2], "pause") == 0;
  deadline = atof(argv[3]), folder = argv[4];
  options.timeout = deadline;
  options.on_deadline = MGRID_DEADLINE_ABORT;
  rt = mgrid_runtime_new(NULL, NULL, &e);
  need(!mgrid_runtime_load(rt, "calls.lua", recipe, sizeof recipe - 1, &e));
  if (!calls[i].call) end_of_mpi();
  begin_job();
  begin();
  for (int goes = 1; goes;) {
    calls[i].call();
    if (!pause) continue;
    double at = struck_at(folder);
    goes = at == 0 || mgrid_now() < at + deadline;
    MPI_Bcast(&goes, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
