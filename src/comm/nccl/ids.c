/* SPDX-License-Identifier: MIT
**
** ids.c - send a unique id from the first member of a group to all, along a binomial tree of messages; only members
** take part. Above ranks_per_id members there are several ids, each made by another member, because the maker of an id
** serves the sockets of all ranks that use it.
**
** A rank handles its groups in schedule order, so no rank waits forever: the proof in plan/plan.h holds for any call
** over members.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The message: a digest of members and options as the sender knows them, then the ids. */
typedef struct parcel {
  nccl_header  header;
  uint64_t     digest;
  ncclUniqueId id[]; /* [nids] */
} parcel;

nccl_header mgrid_nccl_header(const nccl_backend *n, uint32_t round) {
  return (nccl_header){ n->base.epoch, n->attempt, round };
}

mgrid_outcome mgrid_nccl_receive(nccl_backend *n, int64_t from, int tag, nccl_header expected, void *data, size_t bytes,
                                 double seconds, mgrid_error *err) {
  double        until = mgrid_now() + seconds;
  mgrid_outcome s = MGRID_OK;
  while (!s) {
    double left = until - mgrid_now();
    s = n->carry->recv(n->carrier, from, tag, data, bytes, left > 0.1 ? left : 0.1, err);
    if (!s && memcmp(data, &expected, sizeof expected) == 0) break;
    if (!s && mgrid_now() >= until)
      s = mgrid_fail(err, MGRID_TIMED_OUT, "rank %" PRId64 " sent only other messages for %.3g seconds", from, seconds);
  }
  return s;
}

static int count_ids(const nccl_backend *n, const mgrid_comm_spec *spec) {
  int64_t each = n->options.ranks_per_id;
  return n->lib.CommInitRankScalable && spec->size > each ? (int)((spec->size + each - 1) / each) : 1;
}

size_t mgrid_nccl_message(const nccl_backend *n, const mgrid_comm_spec *spec) {
  return sizeof(parcel) + (size_t)count_ids(n, spec) * sizeof(ncclUniqueId);
}

static uint64_t digest_of(const mgrid_comm_spec *spec) {
  const char *nccl = spec->options->asked.nccl;
  return XXH3_64bits_withSeed(spec->ranks, (size_t)spec->size * sizeof *spec->ranks,
                              XXH3_64bits(nccl, strlen(nccl)) ^ (uint64_t)spec->tag);
}

static mgrid_status new_id(nccl_backend *n, const mgrid_comm_spec *spec, ncclUniqueId *id, mgrid_error *err) {
  ncclResult_t r = n->lib.GetUniqueId(id);
  return r == ncclSuccess ? MGRID_OK : mgrid_nccl_failed(n, err, r, "ncclGetUniqueId", spec->name);
}

/* Collect, in the first member, the ids that others made. */
static mgrid_outcome gather(nccl_backend *n, const mgrid_comm_spec *spec, int nids, double seconds, parcel *p,
                            mgrid_error *err) {
  struct {
    nccl_header  header;
    ncclUniqueId id;
  } own = { .header = p->header };
  int each = n->options.ranks_per_id;
  if (spec->position % each != 0 || spec->position / each >= nids) return MGRID_OK;
  mgrid_outcome s = new_id(n, spec, spec->position == 0 ? &p->id[0] : &own.id, err);
  if (!s && spec->position > 0)
    return n->carry->send(n->carrier, spec->ranks[0], spec->tag, &own, sizeof own, seconds, err);
  for (int k = 1; k < nids && !s; k++) {
    s = mgrid_nccl_receive(n, spec->ranks[k * each], spec->tag, p->header, &own, sizeof own, seconds, err);
    p->id[k] = own.id;
  }
  return s;
}

/* Position p receives from p without its lowest set bit, and sends to p + 1, p + 2, p + 4, ... below that bit. */
static mgrid_outcome spread(nccl_backend *n, const mgrid_comm_spec *spec, size_t bytes, double seconds, parcel *p,
                            mgrid_error *err) {
  int64_t       at = spec->position, low = at & -at;
  nccl_header   header = p->header;
  mgrid_outcome s = MGRID_OK;
  if (at == 0)
    for (low = 1; low < spec->size;) low *= 2;
  else if (!(s = mgrid_nccl_receive(n, spec->ranks[at - low], spec->tag, header, p, bytes, seconds, err))
           && p->digest != digest_of(spec))
    s = mgrid_fail(err, MGRID_BACKEND, MAKER ": rank %d of %s does not see the same members or options",
                   spec->ranks[at - low], spec->name);
  for (int64_t step = low / 2; step > 0 && !s; step /= 2)
    if (at + step < spec->size)
      s = n->carry->send(n->carrier, spec->ranks[at + step], spec->tag, p, bytes, seconds, err);
  return s;
}

mgrid_outcome mgrid_nccl_ids(nccl_backend *n, const mgrid_comm_spec *spec, double seconds, ncclUniqueId **ids,
                             int *nids, mgrid_error *err) {
  *nids = count_ids(n, spec);
  size_t        bytes = mgrid_nccl_message(n, spec);
  parcel       *p = malloc(bytes);
  mgrid_error   why = MGRID_ERROR_INIT;
  mgrid_outcome s = p ? MGRID_OK : mgrid_oom(&why);
  *ids = NULL;
  if (p) p->header = mgrid_nccl_header(n, 0), p->digest = digest_of(spec);
  if (!s) s = gather(n, spec, *nids, seconds, p, &why);
  if (!s) s = spread(n, spec, bytes, seconds, p, &why);
  if (!s) {
    memmove(p, p->id, (size_t)*nids * sizeof(ncclUniqueId));
    *ids = (ncclUniqueId *)p;
    return MGRID_OK;
  }
  free(p);
  if (strncmp(why.message, MAKER ":", sizeof MAKER) != 0 && s != MGRID_NO_MEMORY)
    mgrid_error_reword(&why, MAKER ": %s: waiting for its unique id: %.600s", spec->name, why.message);
  mgrid_error_pass(err, &why);
  return s;
}
