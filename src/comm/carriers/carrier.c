/* SPDX-License-Identifier: MIT
**
** carrier.c - a backend over the host's own functions (mgrid_carrier), for jobs without MPI. It
** makes no communicators. But ranks can agree over it, its states answer questions, and it carries
** the messages of other backends.
*/
#include "comm/carriers/carrier.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Refuse families that ask for a backend with communicators, because a carrier makes none. */
static mgrid_status relay_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                mgrid_error *err) {
  for (size_t i = 0; i < n; i++) {
    const mgrid_descriptor *wanted = spec[i].backend;
    if (wanted->native && wanted->carries)
      return mgrid_fail(err, MGRID_REFUSED,
                        "%s needs the backend '%s', and the carrier of this job is %s, without "
                        "MPI; give its family backend = \"none\", or start the job over mpi",
                        spec[i].name, wanted->name, b->kind->name);
    if (wanted->native)
      return mgrid_fail(err, MGRID_REFUSED,
                        "%s needs the backend '%s', and this job runs on %s alone; start it with "
                        "--backend %s, or open that backend",
                        spec[i].name, wanted->name, b->kind->name, wanted->name);
  }
  return MGRID_OK;
}

static mgrid_outcome relay_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                  void **native, mgrid_error *err) {
  (void)b, (void)n, (void)spec, (void)native, (void)err; /* nothing to make */
  return MGRID_OK;
}

static void relay_destroy(mgrid_backend *b, size_t n, void **native) {
  (void)b, (void)n, (void)native;
}

/* ------------------------------------------------------------------ a carrier */

static double own_deadline(const mgrid_relay *m) { return mgrid_timeout_of(m->host.timeout); }

static void relay_deadline(mgrid_backend *b, double seconds) {
  mgrid_relay *m = (mgrid_relay *)b;
  m->seconds = seconds > 0 ? seconds : own_deadline(m);
}

/* Set the deadline. Find this rank's index on its node, and how many ranks the node has, by an
** all-gather of the nodes of all ranks. */
static mgrid_status relay_start(mgrid_backend *b, double seconds, int *local_rank, int *local_size,
                                mgrid_error *err) {
  mgrid_relay *m = (mgrid_relay *)b;
  uint64_t own = mgrid_machine_id(), *all = m->words;
  relay_deadline(b, seconds);
  mgrid_status s = mgrid_relay_allgather(b, &own, all, sizeof own, err);
  *local_rank = *local_size = 0;
  for (int64_t r = 0; r < b->world && !s; r++) {
    *local_size += all[r] == own;
    *local_rank += all[r] == own && r < b->rank;
  }
  return s;
}

static void relay_close(mgrid_backend *b) {
  mgrid_relay *m = (mgrid_relay *)b;
  const double patience = 2;
  mgrid_relay_leave(m, patience);
  if (m->host.close) m->host.close(m->host.ud);
  free(m->ordinal);
  free(m->words);
  free(m);
}

mgrid_backend *mgrid_carrier_backend(const mgrid_carrier *carrier, mgrid_error *err) {
  static const mgrid_carrier_ops carry = { .start = relay_start,
                                           .deadline = relay_deadline,
                                           .send = mgrid_relay_send,
                                           .recv = mgrid_relay_recv,
                                           .tell = mgrid_relay_tell,
                                           .heard = mgrid_relay_heard,
                                           .phase = mgrid_relay_phase };
  static const mgrid_backend_ops ops = { .allreduce_min = mgrid_relay_allreduce,
                                         .allgather = mgrid_relay_allgather,
                                         .bcast = mgrid_relay_bcast,
                                         .check = relay_check,
                                         .create = relay_create,
                                         .destroy = relay_destroy,
                                         .close = relay_close,
                                         .carrier = &carry };
  mgrid_carrier c = MGRID_CARRIER_INIT;

  if (!carrier) return mgrid_null(err, MGRID_USAGE, "no carrier was given");
  if (mgrid_struct_read(&c, sizeof c, carrier, "mgrid_carrier", err)) return NULL;
  if (c.world < 1 || c.world > MGRID_WORLD_MAX || c.rank < 0 || c.rank >= c.world)
    return mgrid_null(err, MGRID_OUT_OF_RANGE,
                      "carrier: rank %" PRId64 " is out of range in a world of %" PRId64, c.rank,
                      c.world);
  if (!c.put != !c.get || !c.send != !c.recv)
    return mgrid_null(err, MGRID_USAGE, "carrier: '%s' is there without '%s'",
                      c.put && !c.get   ? "put"
                      : c.get && !c.put ? "get"
                      : c.send          ? "send"
                                        : "recv",
                      c.put && !c.get   ? "get"
                      : c.get && !c.put ? "put"
                      : c.send          ? "recv"
                                        : "send");
  if (!c.put && !c.send)
    return mgrid_null(
        err, MGRID_USAGE,
        "carrier: there is neither a store (put and get) nor messages (send and recv)");
  if (mgrid_timeout_check(c.timeout, "carrier", err)) return NULL;
  mgrid_relay *m = calloc(1, sizeof *m);
  if (m) m->words = malloc(8 * (size_t)(c.world + 1) * sizeof *m->words);
  if (!m || !m->words) {
    free(m);
    return mgrid_null_oom(err);
  }
  m->base = (mgrid_backend){ .layout = MGRID_LAYOUT,
                             .kind = mgrid_backend_named("carrier"),
                             .ops = &ops,
                             .rank = c.rank,
                             .world = c.world,
                             .users = 1 };
  m->host = c;
  m->seconds = own_deadline(m);
  if (mgrid_relay_enter(m, err) == MGRID_OK) return &m->base;
  free(m->words);
  free(m);
  return NULL;
}
