/* SPDX-License-Identifier: MIT
**
** bandwidth.c - moongrid run --bandwidth: measure four collectives on every communicator, in schedule order. All
** groups of a family run at once, as in training.
*/
#include "comm/state.h"
#include "command/cli.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BYTES = 4 << 20, WARM = 2, TIMED = 5, CALLS = 4 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Find the median time of a collective in seconds: WARM calls that do not count, then TIMED that do. */
static mgrid_status measure(mgrid_backend *b, const mgrid_shared *c, const mgrid_work *w, double *seconds,
                            mgrid_error *err) {
  double spent[TIMED];
  for (int i = 0; i < WARM + TIMED; i++) {
    double       begun = mgrid_now();
    mgrid_status s = mgrid_pool_work(b, c, w, err);
    if (s) return s;
    if (i >= WARM) spent[i - WARM] = mgrid_now() - begun;
  }
  qsort(spent, TIMED, sizeof *spent, ascending);
  *seconds = spent[TIMED / 2];
  return MGRID_OK;
}

typedef struct row {
  const mgrid_shared *comm; /* NULL: not measured */
  void               *send, *recv;
  double              rate[CALLS];
} row;

static size_t elements(const mgrid_shared *c) { return BYTES / sizeof(float) / (size_t)c->size * (size_t)c->size; }

/* Allocate the buffers of every communicator before the first collective: a rank that fails later would leave the
** others waiting in it. */
static mgrid_status prepare(mgrid_backend *b, const mgrid_state *s, row *rows, mgrid_error *err) {
  for (size_t i = 0; i < s->view.ncomms; i++) {
    const mgrid_shared *c = s->comm[i];
    if (!c->real || !c->native || c->size > BYTES / (int64_t)sizeof(float)) continue;
    size_t bytes = elements(c) * sizeof(float);
    rows[i].comm = c;
    rows[i].send = b->ops->buffer_new(b, c->backend, bytes, err);
    if (rows[i].send) rows[i].recv = b->ops->buffer_new(b, c->backend, bytes, err);
    if (!rows[i].recv) return err->status;
  }
  return MGRID_OK;
}

/* Measure the collectives of one communicator in GB/s per link of a ring. This is the "bus bandwidth" of nccl-tests,
** which can be compared between group sizes. */
static mgrid_status measure_all(mgrid_backend *b, row *r, mgrid_error *err) {
  size_t           n = (size_t)r->comm->size, all = elements(r->comm), each = all / n;
  mgrid_status     s = MGRID_OK;
  const mgrid_work work[CALLS] = {
    { .call = MGRID_ALLREDUCE, .type = MGRID_FLOAT, .send = r->send, .recv = r->recv, .count = all },
    { .call = MGRID_ALLGATHER, .type = MGRID_FLOAT, .send = r->send, .recv = r->recv, .count = each },
    { .call = MGRID_REDUCE_SCATTER, .type = MGRID_FLOAT, .send = r->send, .recv = r->recv, .count = each },
    { .call = MGRID_ALL_TO_ALL, .type = MGRID_FLOAT, .send = r->send, .recv = r->recv, .count = each }
  };
  for (int k = 0; k < CALLS && !s; k++) {
    double seconds = 0, moved = (k == 0 ? 2.0 : 1.0) * (double)(n - 1) / (double)n * (double)(all * sizeof(float));
    s = measure(b, r->comm, &work[k], &seconds, err);
    r->rate[k] = s ? 0 : moved / seconds / 1e9;
  }
  return s;
}

mgrid_status cli_bandwidth(mgrid_state *s, mgrid_error *err) {
  mgrid_backend *b = s->backend;
  mgrid_error    why = MGRID_ERROR_INIT;
  row           *rows = calloc(s->view.ncomms + 1, sizeof *rows);
  mgrid_status   status = rows ? prepare(b, s, rows, &why) : mgrid_oom(&why);
  status = mgrid_verdict(b, status, &why, &why);
  for (size_t i = 0; i < s->view.ncomms && !status; i++)
    if (rows[i].comm) status = measure_all(b, &rows[i], &why);
  /* Over MPI each rank that waits finds out by itself who is missing; no verdict can follow. */
  if (status != MGRID_TIMED_OUT || b->carrier) status = mgrid_verdict(b, status, &why, &why);
  if (!status && b->rank == 0) {
    printf("\n%-24s %7s %8s %12s %12s %15s %12s   GB/s of the bus, %d MiB, rank 0's groups\n", "bandwidth", "ranks",
           "by", "all-reduce", "all-gather", "reduce-scatter", "all-to-all", BYTES >> 20);
    for (size_t i = 0; i < s->view.ncomms; i++) {
      const mgrid_shared *c = rows[i].comm;
      if (c)
        printf("%-24s %7" PRId64 " %8s %12.3f %12.3f %15.3f %12.3f\n",
               s->plan->content.entry[s->view.comm[i].entry].name, c->size, c->backend->name, rows[i].rate[0],
               rows[i].rate[1], rows[i].rate[2], rows[i].rate[3]);
    }
  }
  for (size_t i = 0; rows && i < s->view.ncomms; i++) {
    if (rows[i].send) b->ops->buffer_free(b, rows[i].comm->backend, rows[i].send);
    if (rows[i].recv) b->ops->buffer_free(b, rows[i].comm->backend, rows[i].recv);
  }
  free(rows);
  return status ? mgrid_error_pass(err, &why) : MGRID_OK;
}
