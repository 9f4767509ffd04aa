/* SPDX-License-Identifier: MIT
**
** verdict.c - does any rank bring a failure? Then every rank returns it. Part of the core and of
** the backends that stand on others.
*/
#include "comm/backend.h"

#include <inttypes.h>
#include <string.h>

#define LATER (UINT64_C(1) << 40) /* who gave up because of another rank is not the reason */

uint64_t mg_verdict_of(const mg_backend *b, mg_status mine) {
  return mine ? (uint64_t)b->rank + (mine == MG_GAVE_UP ? LATER : 0) : UINT64_MAX;
}

mg_status mg_verdict_tell(mg_backend *b, uint64_t who, mg_status mine, const mg_error *failed, mg_error *err) {
  mg_error first;
  memset(&first, 0, sizeof first);
  if (who == UINT64_MAX) return MG_OK;
  if (mine && failed) first = *failed;
  who %= LATER;
  mg_status s = b->ops->bcast(b, &first, sizeof first, (int64_t)who, err);
  if (s) return s;
  return mg_fail(err, first.status ? first.status : MG_BACKEND, "rank %" PRIu64 ": %.900s", who, first.message);
}

mg_status mg_verdict(mg_backend *b, mg_status mine, const mg_error *failed, mg_error *err) {
  uint64_t  who = mg_verdict_of(b, mine);
  mg_status s = b->ops->allreduce_min(b, &who, 1, err);
  return s ? s : mg_verdict_tell(b, who, mine, failed, err);
}
