/* SPDX-License-Identifier: MIT
**
** limits.c - checks whether the limits of the system are high enough for this job.
*/
#include "command/cli.h"

#include <inttypes.h>
#include <string.h>

/* Return the lowest limit, in bytes or as a count, with which ranks can start if all are on this
** machine. Measured with Open MPI 4.1 for 8 and 16 ranks: mpirun needs 64 and 100 open files, a
** rank 16 files, and a process 100 and 250 MiB of address space. */
static int64_t limits_least(const mgrid_allowance *a, int64_t ranks) {
  /* limits of the cgroup and of the user hold for all ranks together */
  bool own = strcmp(a->whose, "process") == 0;
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
