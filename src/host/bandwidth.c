/* SPDX-License-Identifier: MIT
**
** bandwidth.c - moongrid run --bandwidth: three collectives on every communicator, in schedule
** order. All groups of a family run at once, as they do in training.
*/
#include "comm/state.h"
#include "host/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4 << 20, WARM = 2, TIMED = 5 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median seconds of a call, each waited for. */
static mg_status measure(mg_backend *b, const mg_shared *c, const mg_work *w, double *seconds, mg_error *err) {
  double spent[TIMED];
  for (int i = 0; i < WARM + TIMED; i++) {
    double    begun = mg_now();
    mg_status s = mg_pool_work(b, c, w, err);
    if (s) return s;
    if (i >= WARM) spent[i - WARM] = mg_now() - begun;
  }
  qsort(spent, TIMED, sizeof *spent, ascending);
  *seconds = spent[TIMED / 2];
  return MG_OK;
}

typedef struct row {
  const mg_shared *comm; /* NULL: not measured */
  void            *send, *recv;
  double           rate[3];
} row;

static size_t elements(const mg_shared *c) { return BYTES / sizeof(float) / (size_t)c->size * (size_t)c->size; }

/* Buffers for all before anything is measured: a rank that has none would leave the others waiting. */
static mg_status prepare(mg_backend *b, const mg_state *s, row *rows, mg_error *err) {
  for (size_t i = 0; i < s->view.ncomms; i++) {
    const mg_shared *c = s->comm[i];
    if (!c->real || !c->native || c->size > BYTES / (int64_t)sizeof(float)) continue;
    size_t bytes = elements(c) * sizeof(float);
    rows[i].comm = c;
    rows[i].send = b->ops->buffer_new(b, c->backend, bytes, err);
    if (rows[i].send) rows[i].recv = b->ops->buffer_new(b, c->backend, bytes, err);
    if (!rows[i].recv) return MG_BACKEND;
  }
  return MG_OK;
}

/* GB/s of the bus: what a ring moves over each link, so that group sizes compare. */
static mg_status measure_all(mg_backend *b, row *r, mg_error *err) {
  size_t        n = (size_t)r->comm->size, all = elements(r->comm), each = all / n;
  mg_status     s = MG_OK;
  const mg_work work[3] = { { .call = MG_ALLREDUCE, .type = MG_FLOAT, .send = r->send, .recv = r->recv, .count = all },
                            { .call = MG_ALLGATHER, .type = MG_FLOAT, .send = r->send, .recv = r->recv, .count = each },
                            { .call = MG_REDUCE_SCATTER, .type = MG_FLOAT, .send = r->send, .recv = r->recv,
                              .count = each } };
  for (int k = 0; k < 3 && !s; k++) {
    double seconds = 0, moved = (k == 0 ? 2.0 : 1.0) * (double)(n - 1) / (double)n * (double)(all * sizeof(float));
    s = measure(b, r->comm, &work[k], &seconds, err);
    r->rate[k] = s ? 0 : moved / seconds / 1e9;
  }
  return s;
}

mg_status cli_bandwidth(mg_state *s, mg_error *err) {
  mg_backend *b = s->backend;
  mg_error    why = { 0 };
  row        *rows = calloc(s->view.ncomms + 1, sizeof *rows);
  mg_status   status = rows ? prepare(b, s, rows, &why) : mg_oom(&why);
  status = mg_verdict(b, status, &why, &why);
  for (size_t i = 0; i < s->view.ncomms && !status; i++)
    if (rows[i].comm) status = measure_all(b, &rows[i], &why);
  status = mg_verdict(b, status, &why, &why);
  if (!status && b->rank == 0) {
    printf("\n%-24s %7s %8s %12s %12s %15s   GB/s of the bus, %d MiB, rank 0's groups\n", "bandwidth", "ranks", "by",
           "all-reduce", "all-gather", "reduce-scatter", BYTES >> 20);
    for (size_t i = 0; i < s->view.ncomms; i++) {
      const mg_shared *c = rows[i].comm;
      if (c)
        printf("%-24s %7" PRId64 " %8s %12.3f %12.3f %15.3f\n", s->plan->content.entry[s->view.comm[i].entry].name,
               c->size, c->backend, rows[i].rate[0], rows[i].rate[1], rows[i].rate[2]);
    }
  }
  for (size_t i = 0; rows && i < s->view.ncomms; i++) {
    if (rows[i].send) b->ops->buffer_free(b, rows[i].comm->backend, rows[i].send);
    if (rows[i].recv) b->ops->buffer_free(b, rows[i].comm->backend, rows[i].recv);
  }
  free(rows);
  if (status && err) *err = why;
  return status;
}
