/* SPDX-License-Identifier: MIT
**
** limits.c - check whether the limits of the system are enough for this job.
*/
#include "command/cli.h"

#include <inttypes.h>
#include <string.h>

/* Return what ranks need at least, if all are on this machine: bytes or a number. 8 and 16 ranks of
** Open MPI 4.1 start with 16 open files each and 64 and 100 of mpirun's, and with 100 and 250 MiB
** of addresses. */
static int64_t limits_least(const mgrid_allowance *a, int64_t ranks) {
  bool own = strcmp(a->whose, "process")
             == 0; /* of each rank; those of the cgroup and of the user are of all together */
  switch (a->of) {
  case MGRID_SCARCE_MEMORY: return (own ? 192 + 16 * ranks : 32 + 12 * ranks) << 20;
  case MGRID_SCARCE_THREADS: return 16 + 4 * ranks;
  case MGRID_SCARCE_FILES: return 32 + 4 * ranks;
  }
  return 0;
}

bool cli_limits(int64_t ranks, bool all, mgrid_text *words) {
  mgrid_allowance set[MGRID_ALLOWANCES];
  bool enough = true;
  size_t n = mgrid_allowances(set);
  for (size_t i = 0; i < n; i++) {
    char text[MGRID_ALLOWED];
    int64_t want = limits_least(&set[i], ranks);
    bool low = set[i].most < want;
    enough &= !low;
    if (!low && !all) continue;
    mgrid_allowance_words(&set[i], text, sizeof text);
    mgrid_text_add(words, "%s%s", words->len ? "; " : "", text);
    if (!low) continue;
    mgrid_text_add(words, ", and %" PRId64 " %s %" PRId64, ranks,
                   ranks == 1 ? "rank needs" : "ranks need",
                   want >> (set[i].of == MGRID_SCARCE_MEMORY ? 20 : 0));
  }
  return enough;
}
