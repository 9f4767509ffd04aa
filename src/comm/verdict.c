/* SPDX-License-Identifier: MIT
**
** verdict.c - does any rank bring a failure? Then every rank returns it. Part of the core and of
** the backends that stand on others.
*/
#include "comm/backend.h"

#include <inttypes.h>
#include <string.h>

mg_status mg_verdict(mg_backend *b, mg_status mine, const mg_error *failed, mg_error *err) {
  const uint64_t later = UINT64_C(1) << 40; /* who gave up because of another rank is not the reason */
  mg_error       first;
  memset(&first, 0, sizeof first);
  if (mine && failed) first = *failed;
  uint64_t  who = mine ? (uint64_t)b->rank + (mine == MG_GAVE_UP ? later : 0) : UINT64_MAX;
  mg_status s = b->ops->allreduce_min(b, &who, 1, err);
  if (s) return s;
  if (who == UINT64_MAX) return MG_OK;
  who %= later;
  s = b->ops->bcast(b, &first, sizeof first, (int64_t)who, err);
  if (s) return s;
  return mg_fail(err, first.status ? first.status : MG_BACKEND, "rank %" PRIu64 ": %.900s", who, first.message);
}
