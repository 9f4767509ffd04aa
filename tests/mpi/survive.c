/* SPDX-License-Identifier: MIT
**
** survive.c - ranks are lost, and the others recover (mgrid_state_recover). With ULFM (Open MPI 5:
** LAUNCH_OPTIONS="--with-ft ulfm" scripts/launch 8 build/tests/mpi/survive) two ranks are killed,
** one when all call, one when the others wait for it in the recovery; each case has a backend of
** its own, because a recovery ends the old one. With any MPI: a host that finds the lost ranks
** itself, and the error of an MPI that ends with its first lost rank. TAP from rank 0.
*/
#include "../anew.h"
#include "moongrid_mpi.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

static int number, failures;

/* A test passes when it does on all ranks of `comm`. */
static void test(MPI_Comm comm, bool ok, const char *what, const mgrid_error *e) {
  int all = ok, rank = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  if (!ok) fprintf(stderr, "# rank %d: %s: %d %s\n", rank, what, (int)e->status, e->message);
  if (rank == 0) printf("%sok %d - %s\n", all ? "" : "not ", ++number, what);
  failures += !all;
}

/* dp takes any number of ranks, or only all of them (whole=1). */
static const char recipe[] =
    "return recipe { params = { tp = 2, whole = 0 }, build = function(world, p)\n"
    "  if p.whole > 0 and world.size ~= p.whole then error(('only %d ranks'):format(p.whole), 0) "
    "end\n"
    "  local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) local t = topology(world) t.grid = "
    "g\n"
    "  t.tp, t.dp, t.all = g 'tp', g 'dp', g('tp', 'dp')\n"
    "  t.w = tensor { axes = { { 'r', 64 }, { 'c', 64 } }, type = 'f32', cut = { r = 'tp' } } "
    "return t end }\n";

typedef struct job {
  mgrid_backend *backend;
  mgrid_state *state, *now;
  mgrid_losses *losses;
  mgrid_loss *loss;
  mgrid_move *move;
} job;

static mgrid_runtime *rt;
static bool nccl; /* the argument: NCCL's communicators, over the same carrier */

static mgrid_backend *open_over(MPI_Comm comm, mgrid_error *e) {
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_backend *mpi = mgrid_mpi_backend(comm, NULL, e);
  o.share_gpu = true, o.timeout = 20;
  if (!nccl || !mpi) return mpi;
  mgrid_backend *b = mgrid_backend_over(mpi, "nccl", &o, e);
  mgrid_backend_free(mpi);
  return b;
}

static job begin(MPI_Comm comm, const char *name, size_t n, const char *const *args,
                 const char *how, mgrid_error *e) {
  job j = { 0 };
  int size;
  mgrid_losses_options o = MGRID_LOSSES_OPTIONS_INIT;
  o.how = how;
  MPI_Comm_size(comm, &size);
  mgrid_plan *p = mgrid_runtime_plan(rt, size, NULL, n, args, e);
  j.backend = open_over(comm, e);
  j.state = mgrid_materialize(p, j.backend, name, e);
  j.losses = mgrid_losses_new(rt, p, n, args, &o, e);
  mgrid_plan_free(p);
  return j;
}

static void end(job *j) {
  mgrid_move_free(j->move);
  mgrid_state_free(j->now);
  mgrid_loss_free(j->loss);
  mgrid_losses_free(j->losses);
  mgrid_state_free(j->state);
  mgrid_backend_free(j->backend);
}

static mgrid_status recover(job *j, const mgrid_recover_options *o, mgrid_error *e) {
  return mgrid_state_recover(j->state, j->losses, o, &j->now, &j->loss, &j->move, anew(e));
}

/* --------------------------------------------------------- the host finds out who is lost */

/* The last rank plays dead. */
static void by_host(int rank, int size, mgrid_error *e) {
  static const char *one[] = { "tp=1" };
  MPI_Comm rest;
  mgrid_recover_options o = MGRID_RECOVER_OPTIONS_INIT;
  int64_t lost[] = { size - 1, size - 2 };
  job j = begin(MPI_COMM_WORLD, "hosts", 1, one, NULL, e),
      k = begin(MPI_COMM_WORLD, "disagree", 1, one, NULL, e);
  test(MPI_COMM_WORLD, j.losses && k.losses, "states of all", e);
  MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &rest);
  if (rank < size - 1) {
    mgrid_backend *b = open_over(rest, e), *c = open_over(rest, e);
    o.backend = b, o.nlost = 1, o.lost = lost;
    test(rest,
         recover(&j, &o, e) == MGRID_OK && mgrid_loss_rank(j.loss, size - 1) == -1
             && mgrid_state_prove(j.now, NULL, e) == MGRID_OK,
         "the host's list and backend: groups of those that remain", e);
    test(rest, j.move && mgrid_move_prove(j.move, b, NULL, anew(e)) == MGRID_OK,
         "and the move fills them", e);
    mgrid_losses *next = j.loss ? mgrid_losses_after(j.losses, j.loss, anew(e)) : NULL;
    lost[0] = 0;
    mgrid_loss *two = next ? mgrid_loss_new(next, 1, lost, e) : NULL;
    test(rest, two && mgrid_plan_world(mgrid_loss_plan(two)) == size - 2,
         "the losses of the next plan", e);
    mgrid_loss_free(two), mgrid_losses_free(next);
    o.backend = c, lost[0] = rank == 0 ? size - 2 : size - 1;
    mgrid_status s = recover(&k, &o, e);
    test(rest, s == MGRID_DISAGREE || s == MGRID_REFUSED, "lists that differ are an error on all",
         e);
    o.nlost = 2, lost[0] = size - 1;
    test(rest, recover(&k, &o, e) == MGRID_REFUSED, "a backend of more ranks than remain", e);
    o.lost = NULL;
    test(rest, recover(&k, &o, e) == MGRID_USAGE, "no list", e);
    end(&j);
    mgrid_backend_free(b), mgrid_backend_free(c);
    j = (job){ 0 };
  }
  MPI_Comm_free(&rest);
  MPI_Barrier(MPI_COMM_WORLD);
  end(&k);
}

static void checks(mgrid_error *e) {
  static const char *one[] = { "tp=1" };
  job j = begin(MPI_COMM_WORLD, "checks", 1, one, NULL, e),
      k = begin(MPI_COMM_WORLD, "other", 0, NULL, NULL, e);
  mgrid_recover_options o = MGRID_RECOVER_OPTIONS_INIT;
  test(MPI_COMM_WORLD,
       mgrid_state_recover(NULL, j.losses, NULL, &j.now, NULL, NULL, anew(e)) == MGRID_USAGE,
       "no state", e);
  test(MPI_COMM_WORLD,
       mgrid_state_recover(j.state, NULL, NULL, &j.now, NULL, NULL, anew(e)) == MGRID_USAGE,
       "no losses", e);
  test(MPI_COMM_WORLD,
       mgrid_state_recover(j.state, j.losses, NULL, NULL, NULL, NULL, anew(e)) == MGRID_USAGE,
       "no place for the state", e);
  test(MPI_COMM_WORLD,
       mgrid_state_recover(j.state, k.losses, NULL, &j.now, NULL, NULL, anew(e)) == MGRID_REFUSED
           && strcmp(e->message, "the losses are of another plan than that of state 'checks'") == 0,
       "losses of another plan", e);
  o.timeout = -1;
  test(MPI_COMM_WORLD, recover(&j, &o, e) == MGRID_OUT_OF_RANGE, "a timeout below 0", e);
  o.timeout = 0, o.backend = j.backend;
  test(MPI_COMM_WORLD, recover(&j, &o, e) == MGRID_USAGE, "the state's own backend", e);
  int64_t least = mgrid_backend_rank(j.backend) - 3;
  test(MPI_COMM_WORLD, mgrid_state_least(j.state, &least, anew(e)) == MGRID_OK && least == -3,
       "the least number", e);
  test(MPI_COMM_WORLD,
       mgrid_state_settle(j.state, MGRID_OK, anew(e)) == MGRID_OK && !mgrid_state_hurt(j.state),
       "all settle", e);
  if (mgrid_backend_rank(j.backend) == 1)
    e->status = MGRID_REFUSED, strcpy(e->message, "mine alone");
  mgrid_state_settle(j.state, e->status, e);
  test(MPI_COMM_WORLD, e->status == MGRID_REFUSED && strcmp(e->message, "rank 1: mine alone") == 0,
       "one does not settle", e);
  test(MPI_COMM_WORLD, mgrid_state_prove(j.state, NULL, anew(e)) == MGRID_OK,
       "after which the state goes on", e);
  end(&j), end(&k);
}

#ifndef OMPI_HAVE_MPI_EXT_FTMPI
static void with_ulfm(int rank, int size, mgrid_error *e) {
  (void)rank, (void)size;
  job j = begin(MPI_COMM_WORLD, "ends", 0, NULL, NULL, e);
  test(MPI_COMM_WORLD,
       recover(&j, NULL, e) == MGRID_UNSUPPORTED
           && strcmp(e->message, "mpi: this MPI ends with its first lost rank; Open MPI goes on, "
                                 "since 5.0, under mpirun --with-ft "
                                 "ulfm; else start the job again from its last checkpoint")
                  == 0,
       "an MPI that ends with its first lost rank", e);
  test(MPI_COMM_WORLD, mgrid_state_prove(j.state, NULL, anew(e)) == MGRID_OK,
       "which changes nothing", e);
  end(&j);
}
#else

/* ------------------------------------------------------------------------------ ranks die */

enum { SHRINKS, STOPS, DIFFERS, FITS_NONE, RELOADS, LATER, NOBODY, CASES };

static void with_ulfm(int rank, int size, mgrid_error *e) {
  char text[16];
  const char *one[] = { "tp=1" }, *two[] = { "tp=2" }, *whole[] = { "tp=1", text }, *why;
  job j[CASES];
  MPI_Comm rest;
  snprintf(text, sizeof text, "whole=%d", size);
  for (int i = 0; i < CASES; i++) {
    const char *how = i == STOPS || (i == DIFFERS && rank == 0) ? "stop"
                      : i == DIFFERS                            ? "shrink"
                                                                : NULL;
    j[i] = begin(MPI_COMM_WORLD, "lives", i == FITS_NONE ? 2 : 1,
                 i == FITS_NONE ? whole
                 : i == SHRINKS ? two
                                : one,
                 how, e);
  }
  test(MPI_COMM_WORLD, !e->status && j[CASES - 1].losses, "states of all", e);
  mgrid_loss_sums none = MGRID_LOSS_SUMS_INIT;
  test(MPI_COMM_WORLD,
       recover(&j[NOBODY], NULL, e) == MGRID_OK && !mgrid_loss_describe(j[NOBODY].loss, &none, e)
           && none.lost == 0 && none.layout == size && none.moved == 0
           && mgrid_loss_rank(j[NOBODY].loss, rank) == rank,
       "nobody is lost, and all recover", e);
  test(MPI_COMM_WORLD,
       mgrid_state_prove(j[NOBODY].now, NULL, anew(e)) == MGRID_OK
           && mgrid_move_prove(j[NOBODY].move, mgrid_state_backend(j[NOBODY].now), NULL, e)
                  == MGRID_OK
           && mgrid_state_settle(j[NOBODY].now, MGRID_OK, e) == MGRID_OK,
       "and go on", e);
  if (rank == size - 1) raise(SIGKILL);

  mgrid_status s = mgrid_state_prove(j[SHRINKS].state, NULL, anew(e));
  mgrid_error first = *e;
  if (MPIX_Comm_shrink(MPI_COMM_WORLD, &rest) != MPI_SUCCESS) _exit(1);
  test(rest, s == MGRID_LOST_RANK, "all notice", &first);
  test(rest, mgrid_state_hurt(j[SHRINKS].state), "the state is hurt", e);
  s = recover(&j[SHRINKS], NULL, e);
  test(rest, s == MGRID_OK, "those that remain recover", e);
  mgrid_loss_sums sums = MGRID_LOSS_SUMS_INIT;
  if (!s) mgrid_loss_describe(j[SHRINKS].loss, &sums, e);
  test(rest,
       sums.survivors == size - 1 && sums.layout == size - 2 && sums.idle == 1 && sums.missing == 0,
       "tp=2 fits one rank less, which is idle", e);
  test(rest, !s && mgrid_state_prove(j[SHRINKS].now, NULL, anew(e)) == MGRID_OK,
       "the new groups are proved", e);
  test(rest,
       !s
           && mgrid_move_prove(j[SHRINKS].move, mgrid_state_backend(j[SHRINKS].now), NULL, anew(e))
                  == MGRID_OK,
       "the move fills them", e);
  test(rest,
       !s && mgrid_state_settle(j[SHRINKS].now, MGRID_OK, anew(e)) == MGRID_OK
           && !mgrid_state_hurt(j[SHRINKS].now),
       "and all settle", e);

  s = recover(&j[STOPS], NULL, e);
  test(rest,
       s == MGRID_REFUSED
           && strstr(e->message, "rank 7 is lost, and the job stops: ") == e->message + 0
           && strstr(e->message, "; go on from the last checkpoint"),
       "the host has it stop", e);
  s = recover(&j[DIFFERS], NULL, e);
  test(rest, s == MGRID_DISAGREE, "ranks that decide differently are an error on all", e);
  s = recover(&j[FITS_NONE], NULL, e);
  why = strstr(e->message, "only 8 ranks");
  test(rest, s == MGRID_REFUSED && why, "no layout fits those that remain", e);

  mgrid_change change = MGRID_CHANGE_INIT;
  s = MGRID_LOST_RANK;
  if (rank % 2 == 0)
    s = mgrid_reload(rt, j[RELOADS].state, NULL, 1, two, &j[RELOADS].now, &change, anew(e));
  test(rest, s == MGRID_LOST_RANK && !j[RELOADS].now, "a reload that some have begun ends", e);
  s = recover(&j[RELOADS], NULL, e);
  test(rest, s == MGRID_OK && mgrid_state_prove(j[RELOADS].now, NULL, anew(e)) == MGRID_OK,
       "and all recover", e);

  /* one more dies while the others wait for it in the recovery */
  if (rank == size - 2) usleep(200000), raise(SIGKILL);
  s = recover(&j[LATER], NULL, e);
  MPI_Comm last;
  if (MPIX_Comm_shrink(rest, &last) != MPI_SUCCESS) _exit(1);
  test(last, s == MGRID_OK && mgrid_plan_world(mgrid_loss_plan(j[LATER].loss)) == size - 2,
       "a loss while recovering starts over", e);
  test(last, !s && mgrid_state_prove(j[LATER].now, NULL, anew(e)) == MGRID_OK,
       "groups without both", e);
  test(last, mgrid_state_settle(j[SHRINKS].now, MGRID_OK, anew(e)) == MGRID_LOST_RANK,
       "and who settles elsewhere hears of it", e);

  /* no rank can know of this loss before all survivors have settled: the dead rank sent nothing,
  ** and all have come */
  if (rank == size - 3) usleep(200000), raise(SIGKILL);
  s = mgrid_state_settle(j[LATER].now, MGRID_OK, anew(e));
  MPI_Comm few;
  if (MPIX_Comm_shrink(last, &few) != MPI_SUCCESS) _exit(1);
  test(few, s == MGRID_LOST_RANK, "a rank that is lost before it settles", e);
  for (int i = 0; i < CASES; i++) end(&j[i]);
  MPI_Comm_rank(few, &rank);
  if (rank == 0) printf("1..%d\n", number);
  fflush(stdout);
  MPI_Barrier(few);
  _exit(failures ? 1 : 0);
}
#endif

int main(int argc, char **argv) {
  int rank, size;
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  nccl = argc > 1 && strcmp(argv[1], "nccl") == 0;
  rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, "survive", recipe, strlen(recipe), &e);
  checks(&e);
  by_host(rank, size, anew(&e));
  with_ulfm(rank, size, anew(&e));
  mgrid_runtime_free(rt);
  if (rank == 0) printf("1..%d\n", number);
  MPI_Finalize();
  return failures ? 1 : 0;
}
