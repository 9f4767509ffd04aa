/* SPDX-License-Identifier: MIT
**
** holders.c - what no survivor holds, and how many bytes the others send.
*/
#include "survive/next.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- missing */

static bool is_lost(const mgrid_loss *x, int64_t rank) {
  size_t low = 0, high = x->nlost;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (x->lost[middle] < rank)
      low = middle + 1;
    else
      high = middle;
  }
  return low < x->nlost && x->lost[low] == rank;
}

/* Note the shard of a lost rank if all of its holders are lost, and this rank is the first of them. */
static mgrid_status look_at(mgrid_loss *x, const char *name, const mgrid_tensor *t, int64_t rank, mgrid_error *err) {
  mgrid_seat at;
  if (!mgrid_tensor_seat(t, rank, &at) || at.copy != 0) return MGRID_OK;
  int64_t bytes = mgrid_tensor_elements(t, &at) * t->width, n = 0;
  if (bytes == 0) return MGRID_OK;
  for (at.copy = 1; at.copy < t->copies; at.copy++)
    if (!is_lost(x, mgrid_tensor_rank(t, &at))) return MGRID_OK;
  int64_t *holders = malloc((size_t)t->copies * sizeof *holders);
  if (!holders || !MGRID_GROW(x->missing, x->nmissing, 1)) {
    free(holders);
    return mgrid_oom(err);
  }
  for (at.copy = 0; at.copy < t->copies; at.copy++) holders[n++] = mgrid_tensor_rank(t, &at);
  x->missing[x->nmissing++] = (mgrid_loss_missing_part){ name, bytes, (size_t)n, holders };
  x->sums.missing += bytes;
  return MGRID_OK;
}

mgrid_status mgrid_loss_find_missing(mgrid_loss *x, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < mgrid_plan_ntensors(x->old) && !s; i++) {
    const char         *name = mgrid_plan_tensor_name(x->old, i);
    const mgrid_tensor *t = mgrid_plan_tensor(x->old, name);
    for (size_t k = 0; k < x->nlost && !s; k++) s = look_at(x, name, t, x->lost[k], err);
  }
  return s;
}

/* ------------------------------------------------------------------- bytes */

/* Count what all places need of a tensor and of a shard that is missing. */
static int64_t needed_of(const mgrid_pair *p, const mgrid_loss_missing_part *m, int64_t places) {
  mgrid_seat shard, part;
  int64_t    bytes = 0;
  if (!mgrid_tensor_seat(p->from, m->holders[0], &shard)) return 0;
  for (int64_t i = 0; i < places; i++)
    if (mgrid_tensor_seat(p->to, i, &part)) bytes += mgrid_common_bytes(p, &shard, &part);
  return bytes;
}

int64_t mgrid_next_needs(const mgrid_next *next, int64_t place, int64_t old, int64_t *stay) {
  int64_t need = 0;
  *stay = 0;
  for (size_t i = 0; i < next->pairs.n; i++) {
    const mgrid_pair *p = &next->pairs.pair[i];
    mgrid_seat        shard, part;
    if (!mgrid_tensor_seat(p->to, place, &part)) continue;
    need += mgrid_tensor_elements(p->to, &part) * p->to->width;
    if (mgrid_tensor_seat(p->from, old, &shard)) *stay += mgrid_common_bytes(p, &shard, &part);
  }
  return need;
}

enum { FEW = 1 << 20 }; /* pairs of a place and a rank whose bytes are kept for the next loss */

mgrid_status mgrid_loss_count_bytes(mgrid_next *next, mgrid_loss *x, mgrid_error *err) {
  size_t n = next->paired ? next->pairs.n : 0;
  x->tensor = malloc((n + 1) * sizeof *x->tensor);
  if (!x->tensor) return mgrid_oom(err);
  x->sums.uncounted = next->uncounted;
  for (size_t i = 0; i < n; i++) x->tensor[x->ntensors++] = next->pairs.name[i];
  if (n > 0 && !next->bytes && next->places * x->world <= FEW)
    next->bytes = calloc((size_t)(next->places * x->world), sizeof *next->bytes);
  for (int64_t r = 0; r < next->places && n > 0; r++) {
    mgrid_next_bytes own = { 0, 0, false }, *at = &own;
    if (next->bytes) at = &next->bytes[r * x->world + x->was[r]];
    if (!at->known) at->need = mgrid_next_needs(next, r, x->was[r], &at->stay), at->known = true;
    x->sums.stay += at->stay;
    x->sums.moved += at->need - at->stay;
  }
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < x->nmissing; k++)
      if (strcmp(x->missing[k].tensor, next->pairs.name[i]) == 0)
        x->sums.moved -= needed_of(&next->pairs.pair[i], &x->missing[k], next->places);
  return MGRID_OK;
}
