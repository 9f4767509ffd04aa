/* SPDX-License-Identifier: MIT
**
** vote.c - what all members of one group can do: the minimum of the numbers that they say, by messages among
** themselves, which have deadlines.
*/
#include "comm/nccl/nccl.h"

#include <stdlib.h>

typedef struct ballot {
  nccl_header header;
  uint64_t    number;
} ballot;

static void take_least(ballot *own, const ballot *other) {
  if (other->number < own->number) own->number = other->number;
}

/* Vote up a binomial tree to the first member and down again; the tree is that of ids.c. A member arrives at most so
** much later than another: both may have waited for a deadline before; in a call over all ranks, which met, for one. */
mgrid_outcome mgrid_nccl_vote(nccl_backend *n, const mgrid_comm_spec *spec, uint32_t round, uint64_t mine,
                              uint64_t *least, const char *whom, mgrid_error *err) {
  int64_t       at = spec->position, low = at & -at, step;
  size_t        bytes = mgrid_nccl_message(n, spec);
  double        left = mgrid_nccl_left(n, spec) + NCCL_END_SECONDS, seconds = (n->creates ? left : 2 * left) + 3;
  nccl_header   header = mgrid_nccl_header(n, round);
  ballot        own = { header, mine }, *got = malloc(bytes); /* room for anything that an earlier call has left */
  mgrid_error   why = MGRID_ERROR_INIT;
  mgrid_outcome s = got ? MGRID_OK : mgrid_oom(&why);
  if (at == 0)
    for (low = 1; low < spec->size;) low *= 2;
  for (step = 1; step < low && !s; step *= 2) {
    if (at + step >= spec->size) continue;
    s = mgrid_nccl_receive(n, spec->ranks[at + step], spec->tag, header, got, bytes, seconds, &why);
    if (!s) take_least(&own, got);
  }
  if (!s && at > 0) s = n->carry->send(n->carrier, spec->ranks[at - low], spec->tag, &own, sizeof own, seconds, &why);
  if (!s && at > 0) s = mgrid_nccl_receive(n, spec->ranks[at - low], spec->tag, header, got, bytes, seconds, &why);
  if (!s && at > 0) own = *got;
  for (step = low / 2; step > 0 && !s; step /= 2)
    if (at + step < spec->size)
      s = n->carry->send(n->carrier, spec->ranks[at + step], spec->tag, &own, sizeof own, seconds, &why);
  free(got);
  *least = s ? 0 : own.number;
  if (s && s != MGRID_NO_MEMORY)
    mgrid_error_reword(&why, MAKER ": %s: among %s: %.600s", spec->name, whom, why.message);
  if (s) mgrid_error_pass(err, &why);
  return s;
}
