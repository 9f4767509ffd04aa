/* SPDX-License-Identifier: MIT
**
** joining.c - ranks join a job between two steps. The weights do not depend on the number of ranks,
** so each step has the same sum as in a job that never changed.
**
**     cc joining.c -o joining $(pkg-config --cflags --libs moongrid_mpi)
**     mpirun -n 4 joining spawn 8 joining.lua [NAME=VALUE ...]     starts ranks if it has fewer than 8
**     mpirun -n 4 joining accept FILE joining.lua [NAME=VALUE ...] accepts jobs that connect to the port in FILE
**     mpirun -n 4 joining connect FILE joining.lua [NAME=VALUE ...] joins the job above
**
** Ranks can join from the end of step 3 on. Under mpirun --with-ft ulfm (Open MPI 5) the job also
** goes on when ranks are killed, and `spawn` then replaces them. JOINING_KILL=4: rank 1 kills
** itself at the beginning of step 4.
*/
#include <moongrid_mpi.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 12, SAMPLES = 24 };

typedef struct job {
  mgrid_runtime *rt;
  size_t nargs;
  const char *const *args;
  mgrid_state *state;
  /* the number of steps done. The weights are in w[step % 2]; the other weights are one step older
  ** or newer. */
  int64_t step;
  double *w[2];
} job;

static int64_t elements(const mgrid_state *s, mgrid_error *e) {
  mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
  mgrid_tensor_local(mgrid_state_plan(s), "w", mgrid_state_rank(s), &part, e);
  return part.elements;
}

/* Print on the first rank of the job only. */
static void say(const job *j, const char *what, int64_t number) {
  const mgrid_plan *p = mgrid_state_plan(j->state);
  if (mgrid_state_rank(j->state) != 0) return;
  printf("step %2" PRId64 ": %" PRId64 " ranks, %" PRId64 " of them spare, %s %" PRId64 "\n",
         j->step, mgrid_plan_world(p), mgrid_plan_nspares(p), what, number);
  fflush(stdout);
}

/* ---------------------------------------------------------------------- a step */

/* The ranks of dp divide the samples among them, and sum their gradients. Then all ranks, including
** spares, find out whether all have done the step, and with equal sums of weights. */
static mgrid_status train(job *j, mgrid_error *e) {
  const mgrid_group *dp = mgrid_state_group(j->state, "dp", e),
                    *tp = mgrid_state_group(j->state, "tp", e);
  const double *now = j->w[j->step % 2];
  double *next = j->w[(j->step + 1) % 2], gradient = 0, sum = 0;
  int64_t n = elements(j->state, e), least = INT64_MAX, less = INT64_MAX;
  usleep(200000); /* instead of computing */
  if (dp) {
    for (int64_t s = mgrid_group_position(dp); s < SAMPLES; s += mgrid_group_size(dp))
      gradient += (double)s;
    int rc = MPI_Allreduce(MPI_IN_PLACE, &gradient, 1, MPI_DOUBLE, MPI_SUM, mgrid_mpi_comm(dp));
    for (int64_t i = 0; i < n; i++) sum += next[i] = now[i] + gradient / SAMPLES;
    if (!rc) rc = MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, mgrid_mpi_comm(tp));
    if (rc) return MGRID_LOST_RANK; /* or MPI had another error: then the recovery fails */
    least = (int64_t)sum, less = -least;
  }
  /* done here; no rank overwrites the older weights before all have done this step */
  j->step++;
  mgrid_status s = mgrid_state_least(j->state, &least, e);
  if (!s) s = mgrid_state_least(j->state, &less, e);
  if (s) return s;
  if (least != -less)
    fprintf(stderr, "the sums of weights differ: %" PRId64 " and %" PRId64 "\n", least, -less),
        abort();
  say(j, "sum", least);
  return MGRID_OK;
}

/* ----------------------------------------------------------- another layout */

/* Fill the new state. If all ranks succeed, free the old one; else keep the old one. */
static mgrid_status change_to(job *j, mgrid_state *now, mgrid_move *move, mgrid_error *e) {
  /* a new rank learns the step from the others */
  int64_t step = j->state ? j->step : INT64_MAX, n = elements(now, e);
  double *w = calloc((size_t)n + 1, sizeof *w);
  mgrid_state_least(now, &step, e);
  mgrid_buffer from = { j->w[step % 2], j->state ? elements(j->state, e) * 8 : 0 },
               to = { w, n * 8 };
  if (!e->status) mgrid_move_run(move, mgrid_state_backend(now), &from, &to, NULL, e);
  mgrid_move_free(move);
  mgrid_status s = mgrid_state_settle(now, e->status, e);
  mgrid_state_free(s ? now : j->state);
  if (s) return free(w), s;
  free(j->w[0]), free(j->w[1]);
  j->state = now, j->step = step, j->w[step % 2] = w,
  j->w[(step + 1) % 2] = calloc((size_t)n + 1, sizeof *w);
  return MGRID_OK;
}

/* Go on without the lost ranks, and without ranks that are lost during the recovery. */
static mgrid_status recover(job *j, mgrid_error *e) {
  mgrid_losses *losses =
      mgrid_losses_new(j->rt, mgrid_state_plan(j->state), j->nargs, j->args, NULL, e);
  mgrid_state *now;
  mgrid_move *move;
  mgrid_status s;
  do {
    mgrid_error_clear(e);
    s = mgrid_state_recover(j->state, losses, NULL, &now, NULL, &move, e);
    if (s) break;
    s = change_to(j, now, move, e);
  } while (s == MGRID_LOST_RANK);
  mgrid_losses_free(losses);
  return s;
}

/* Make one job of old and new ranks. If that fails, all get the error, and the old job goes on. */
static mgrid_status join(job *j, MPI_Comm inter, mgrid_error *e) {
  MPI_Comm all = MPI_COMM_NULL; /* it stays NULL after a loss, which mgrid_mpi_backend reports */
  mgrid_state *now = NULL;
  mgrid_move *move = NULL;
  MPI_Intercomm_merge(inter, j->state == NULL, &all); /* the old ranks come first */
  if (all != MPI_COMM_NULL) MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  mgrid_backend *larger = mgrid_mpi_backend(all, NULL, e);
  if (larger) mgrid_state_enlarge(j->state, j->rt, j->nargs, j->args, larger, NULL, &now, &move, e);
  mgrid_status s = now ? change_to(j, now, move, e) : e->status;
  mgrid_backend_free(larger);
  if (s == MGRID_TIMED_OUT) return s; /* the calls below could wait for the missing rank */
  if (all != MPI_COMM_NULL) MPI_Comm_free(&all);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  /* release it also after a loss: otherwise MPI_Finalize writes to the lost rank */
  (s == MGRID_LOST_RANK ? MPI_Comm_free : MPI_Comm_disconnect)(&inter);
  return s;
}

/* --------------------------------------------------------- how ranks come */

/* Between two steps: start the missing ranks, or accept a job that waits at the port. Such a job
** has created FILE.knock; without this file do not call MPI_Comm_accept, which has no deadline. */
static mgrid_status look_for_others(job *j, char **argv, const char *port, mgrid_error *e) {
  mgrid_backend *b = mgrid_state_backend(j->state);
  int64_t lacks = 0, knocks = 1;
  char knock[4096];
  MPI_Comm old, inter = MPI_COMM_NULL;
  if (port) {
    snprintf(knock, sizeof knock, "%s.knock", argv[2]);
    if (mgrid_backend_rank(b) == 0) knocks = access(knock, F_OK) != 0; /* 0: a job waits */
    if (mgrid_state_least(j->state, &knocks, e)) return e->status;
  } else {
    lacks = strtol(argv[2], NULL, 10) - mgrid_backend_world(b);
  }
  if (j->step < 3 || (lacks <= 0 && knocks)) return MGRID_OK;
  if (mgrid_mpi_world(b, &old, e)) return e->status;
  if (port) {
    if (mgrid_backend_rank(b) == 0) remove(knock);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, old, &inter);
  } else {
    MPI_Comm_spawn(argv[0], argv + 1, (int)lacks, MPI_INFO_NULL, 0, old, &inter,
                   MPI_ERRCODES_IGNORE);
  }
  MPI_Comm_free(&old);
  if (inter == MPI_COMM_NULL)
    return snprintf(e->message, sizeof e->message, "MPI has connected no new ranks"),
           e->status = MGRID_BACKEND;
  mgrid_status s = join(j, inter, e);
  if (!s) say(j, "all ranks are at step", j->step);
  return s;
}

/* The file with the port of the job: `accept` writes it, `connect` reads it. */
static void find_port(bool opens, const char *file, char port[MPI_MAX_PORT_NAME]) {
  char name[4096], knock[4096];
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank) return;
  snprintf(name, sizeof name, "%s.new", file), snprintf(knock, sizeof knock, "%s.knock", file);
  if (opens) MPI_Open_port(MPI_INFO_NULL, port);
  for (int i = 0; !opens && access(file, F_OK) && i < 100; i++) usleep(100000);
  FILE *f = fopen(opens ? name : file, opens ? "w" : "r");
  if (!f || (opens ? fputs(port, f) < 0 : !fgets(port, MPI_MAX_PORT_NAME, f)))
    perror(file), MPI_Abort(MPI_COMM_WORLD, 1);
  fclose(f);
  if (opens) rename(name, file);
  if (!opens && (!(f = fopen(knock, "w")) || fclose(f)))
    perror(knock), MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Comm inter;
  char port[MPI_MAX_PORT_NAME] = "";
  int rank, size;
  bool closed = false;
  const char *dies = getenv("JOINING_KILL");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 4)
    return fprintf(stderr, "joining spawn N|accept FILE|connect FILE RECIPE [NAME=VALUE ...]\n"), 2;
  bool opens = strcmp(argv[1], "accept") == 0, connects = strcmp(argv[1], "connect") == 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  job j = { mgrid_runtime_new(NULL, NULL, &e),
            (size_t)argc - 4,
            (const char *const *)argv + 4,
            NULL,
            0,
            { NULL, NULL } };
  mgrid_runtime_load(j.rt, argv[3], NULL, 0, &e);
  if (opens || connects) find_port(opens, argv[2], port);
  MPI_Comm_get_parent(&inter);
  if (connects) MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
  if (inter != MPI_COMM_NULL) { /* this rank is new */
    if (join(&j, inter, &e))
      return fprintf(stderr, "not let in: %s\n", e.message), MPI_Finalize(), 0;
    dies = NULL;
  } else {
    mgrid_plan *p = mgrid_runtime_plan(j.rt, size, NULL, j.nargs, j.args, &e);
    mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
    j.state = mgrid_materialize(p, b, "train", &e);
    mgrid_plan_free(p), mgrid_backend_free(b);
    for (int i = 0; i < 2 && j.state; i++)
      j.w[i] = calloc((size_t)elements(j.state, &e) + 1, sizeof(double));
  }
  while (!e.status && j.step < STEPS) {
    if (dies && rank == 1 && j.step + 1 == strtol(dies, NULL, 10)) raise(SIGKILL);
    if (train(&j, &e)) {
      if (!recover(&j, &e)) say(&j, "the survivors are at step", j.step);
    } else if (!closed && look_for_others(&j, argv, opens || connects ? port : NULL, &e)) {
      if (mgrid_state_rank(j.state) == 0) printf("nobody joins: %s\n", e.message);
      /* if an old rank was lost, the next step reports it, too */
      closed = e.status != MGRID_LOST_RANK;
      mgrid_error_clear(&e);
    }
  }
  if (e.status) return fprintf(stderr, "joining: %s\n", e.message), MPI_Abort(MPI_COMM_WORLD, 1), 1;
  mgrid_state_free(j.state);
  mgrid_runtime_free(j.rt);
  MPI_Finalize();
  return 0;
}
