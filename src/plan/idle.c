/* SPDX-License-Identifier: MIT
**
** idle.c - ranks that are in no group.
*/
#include "plan/plan.h"

#include <inttypes.h>

enum { LOOKED_AT = 1 << 22, RANGES = 6 };

static bool is_idle(const mgrid_plan *p, int64_t rank) {
  int64_t group, position;
  for (size_t i = 0; i < p->content.nentries; i++)
    if (mgrid_family_locate(p->content.entry[i].family, rank, 0, &group, &position)) return false;
  return true;
}

int64_t mgrid_plan_idle(const mgrid_plan *p, mgrid_text *which) {
  int64_t world = p->content.world, idle = 0;
  int     ranges = 0;
  for (size_t i = 0; i < p->content.nentries; i++)
    if (mgrid_family_coverage(p->content.entry[i].family) == MGRID_PARTITION) return 0;
  if (world > LOOKED_AT) return -1;
  if (p->content.nentries == 0) return 0; /* no groups at all, which is said otherwise */
  for (int64_t r = 0, end; r < world; r = end + 1) {
    for (end = r; end < world && is_idle(p, end);) end++;
    if (end == r) continue;
    idle += end - r;
    if (ranges++ >= RANGES) continue;
    mgrid_text_add(which, "%s%" PRId64, ranges > 1 ? ", " : "", r);
    if (end - r > 1) mgrid_text_add(which, "%s%" PRId64, end - r > 2 ? " to " : ", ", end - 1);
  }
  if (ranges > RANGES) mgrid_text_str(which, ", ...");
  return idle;
}
