/* SPDX-License-Identifier: MIT
**
** parallel.c - all messages between ranks, each over a group of the layout.
**
** No other file calls MPI (main.c begins and ends it). Members, positions and communicators of
** groups come from moongrid.
*/
#include "model.h"

#include "moongrid_mpi.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

jmp_buf lost_rank;

_Noreturn void left_by_loss(void) { longjmp(lost_rank, 1); }

static int dim(const mgrid_grid *g, const char *name) {
  for (size_t i = 0; i < mgrid_grid_ndims(g); i++)
    if (strcmp(mgrid_grid_dim(g, i).name, name) == 0) return (int)mgrid_grid_dim(g, i).size;
  return 1;
}

mgrid_status layout_open(mgrid_state *state, layout *l, mgrid_error *err) {
  const struct {
    const char *family;
    group *group;
  } all[] = { { "tp", &l->tp },
              { "cp", &l->cp },
              { "dp", &l->dp },
              { "pp", &l->pp },
              { "ep", &l->ep },
              { "dp_cp", &l->dp_cp },
              { "shard", &l->shard },
              { "copies", &l->copies },
              { "expert_data", &l->expert_data },
              { "expert_shard", &l->expert_shard },
              { "expert_copies", &l->expert_copies },
              { "embedding", &l->embedding },
              { "job", &l->job } };
  l->state = state;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    const mgrid_group *g = mgrid_state_group(state, all[i].family, err);
    if (!g && err->status) return err->status;
    *all[i].group = (group){
      .family = all[i].family,
      .state = state,
      .comm = mgrid_mpi_comm(g),
      .rank = g ? (int)mgrid_group_position(g) : -1,
      .size = g ? (int)mgrid_group_size(g) : 0,
    };
  }
  l->dense = mgrid_plan_grid(mgrid_state_plan(state), "dense");
  l->experts = mgrid_plan_grid(mgrid_state_plan(state), "expert");
  if (!l->dense || !l->experts)
    return refuse(err, "the layout has no grid '%s'", l->dense ? "expert" : "dense");
  l->idle = l->job.rank < 0;
  if (!l->idle) return MGRID_OK;
  l->tp.size = dim(l->dense, "tp"), l->cp.size = dim(l->dense, "cp"),
  l->pp.size = dim(l->dense, "pp");
  l->shard.size = dim(l->dense, "zero"), l->dp.size = l->shard.size * dim(l->dense, "replica");
  l->ep.size = dim(l->experts, "ep"),
  l->expert_data.size = dim(l->experts, "zero") * dim(l->experts, "replica");
  l->dp_cp.size = l->cp.size * l->dp.size;
  return MGRID_OK;
}

/* Return whether this error of MPI says that a rank is lost, or that another rank has noticed a
** loss and revoked the group. */
static bool tells_of_loss(int code) {
#ifdef MPIX_ERR_PROC_FAILED
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING
         || class == MPIX_ERR_REVOKED;
#else
  (void)code;
  return false;
#endif
}

/* After any error: return whether a rank is found to be lost within 2 seconds. Open MPI 5 may
** return MPI_ERR_OTHER some time before its detector reports a stopped rank. */
static bool hurt_soon(const mgrid_state *s) {
  for (int i = 0; i < 1000; i++) {
    if (mgrid_state_hurt(s)) return true;
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
  }
  return false;
}

/* Check the code that a call of MPI returned. After a loss jump to the loop in main.c; any other
** error ends the job. */
static void check(const group *g, int code, const char *what) {
  watch_call();
  if (code == MPI_SUCCESS) return;
  if (tells_of_loss(code) || hurt_soon(g->state)) left_by_loss();
  char text[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  MPI_Error_string(code, text, &n);
  fprintf(stderr, "trainer: %s over %s (position %d of %d): %s\n", what, g->family, g->rank,
          g->size, text);
  MPI_Abort(g->comm, exit_code(MGRID_BACKEND));
}

/* Make a call of MPI. The watchdog sees when it begins and when it ends. */
#define TRY(g, call, what) (watch_call(), check(g, call, what))

bool everybody(const layout *l, mgrid_error *err) {
  mgrid_error own = *err, late = MGRID_ERROR_INIT;
  int64_t failed = own.status != MGRID_OK;
  if (!mgrid_state_settle(l->state, err->status, err)) return true;
  if (err->status == MGRID_LOST_RANK) left_by_loss();
  if (err->status != MGRID_TIMED_OUT && !mgrid_state_least(l->state, &failed, &late) && failed)
    *err = own;
  return false;
}

/* Return whether this rank is alone in the group. */
static bool alone(const group *g) { return g->size <= 1 || g->comm == MPI_COMM_NULL; }

void group_sum_double(const group *g, double *x, int n) {
  if (!alone(g)) TRY(g, MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM, g->comm), "sum");
}

#ifdef TRAINER_F32
static double *widened(const real *x, size_t n) {
  double *wide = room(n, sizeof *wide);
  for (size_t i = 0; i < n; i++) wide[i] = x[i];
  return wide;
}

static void narrow(double *wide, real *x, int n) {
  for (int i = 0; i < n; i++) x[i] = (real)wide[i];
  free(wide);
}

void group_sum(const group *g, real *x, int n) {
  if (alone(g)) return;
  double *wide = widened(x, (size_t)n);
  group_sum_double(g, wide, n);
  narrow(wide, x, n);
}

void group_scatter_sum(const group *g, const real *all, real *mine, int n) {
  double *wide = widened(all, (size_t)n * (size_t)g->size), *part = room((size_t)n, sizeof *part);
  TRY(g, MPI_Reduce_scatter_block(wide, part, n, MPI_DOUBLE, MPI_SUM, g->comm), "reduce-scatter");
  narrow(part, mine, n);
  free(wide);
}
#else
void group_sum(const group *g, real *x, int n) { group_sum_double(g, x, n); }

void group_scatter_sum(const group *g, const real *all, real *mine, int n) {
  TRY(g, MPI_Reduce_scatter_block(all, mine, n, MPI_DOUBLE, MPI_SUM, g->comm), "reduce-scatter");
}
#endif

void group_max(const group *g, real *x, int n) {
  if (!alone(g)) TRY(g, MPI_Allreduce(MPI_IN_PLACE, x, n, REAL_MPI, MPI_MAX, g->comm), "maximum");
}

void group_gather(const group *g, const real *mine, real *all, int n) {
  TRY(g, MPI_Allgather(mine ? mine : MPI_IN_PLACE, n, REAL_MPI, all, n, REAL_MPI, g->comm),
      "all-gather");
}

void group_exchange_counts(const group *g, const int *out, int *in, int each) {
  TRY(g, MPI_Alltoall(out, each, MPI_INT, in, each, MPI_INT, g->comm), "exchange of counts");
}

void group_exchange_rows(const group *g, const real *out, const int *out_rows, real *in,
                         const int *in_rows, int width) {
  int *n = room((size_t)g->size * 4, sizeof *n), *from = n + g->size, *m = from + g->size,
      *to = m + g->size;
  for (int i = 0; i < g->size; i++) {
    n[i] = out_rows[i] * width;
    m[i] = in_rows[i] * width;
    from[i] = i ? from[i - 1] + n[i - 1] : 0;
    to[i] = i ? to[i - 1] + m[i - 1] : 0;
  }
  watch_call();
  int code = MPI_Alltoallv(out, n, from, REAL_MPI, in, m, to, REAL_MPI, g->comm);
  free(n);
  check(g, code, "exchange of rows");
}

void group_spread(const group *g, double *x, int n, int from) {
  if (!alone(g)) TRY(g, MPI_Bcast(x, n, MPI_DOUBLE, from, g->comm), "broadcast");
}

void group_spread_reals(const group *g, real *x, size_t n) {
  enum { MOST = 1 << 30 };
  for (size_t at = 0; !alone(g) && at < n; at += MOST)
    TRY(g, MPI_Bcast(x + at, (int)(n - at < MOST ? n - at : MOST), REAL_MPI, 0, g->comm),
        "broadcast");
}

MPI_Request group_send(const group *g, int to, int tag, const real *x, int n) {
  MPI_Request r;
  TRY(g, MPI_Isend(x, n, REAL_MPI, to, tag, g->comm, &r), "send");
  return r;
}

MPI_Request group_sum_start(const group *g, double *x, int n) {
  MPI_Request r;
  TRY(g, MPI_Iallreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM, g->comm, &r), "sum");
  return r;
}

MPI_Request group_scatter_sum_start(const group *g, double *all, int n) {
  MPI_Request r;
  TRY(g, MPI_Ireduce_scatter_block(MPI_IN_PLACE, all, n, MPI_DOUBLE, MPI_SUM, g->comm, &r),
      "reduce-scatter");
  return r;
}

void group_poke(const group *g, MPI_Request *r) {
  int done;
  TRY(g, MPI_Test(r, &done, MPI_STATUS_IGNORE), "sum");
}

void group_finish(const group *g, MPI_Request *r) {
  TRY(g, MPI_Wait(r, MPI_STATUS_IGNORE), "wait");
}

/* A request that fails has also ended. */
bool group_forget(MPI_Request *r) {
  int done = *r == MPI_REQUEST_NULL;
  for (int i = 0; i < 100 && !done; i++) {
    if (MPI_Test(r, &done, MPI_STATUS_IGNORE)) done = true;
    if (!done) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  }
  return done;
}

void group_receive(const group *g, int from, int tag, real *x, int n) {
  TRY(g, MPI_Recv(x, n, REAL_MPI, from, tag, g->comm, MPI_STATUS_IGNORE), "receive");
}
