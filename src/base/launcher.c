/* SPDX-License-Identifier: MIT
**
** launcher.c - what the launcher of this process put into its environment. The one file of C with names of
** launchers; scripts/mpi.d/libraries is that of the scripts.
*/
#include "base/base.h"

#include <stdlib.h>

/* In this order: mpirun in a job of Slurm is started by srun, and its ranks inherit what srun said of itself. */
static const struct row {
  const char *by, *rank, *size;
} rows[] = {
  { "Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
  { "a launcher with PMI (MPICH's mpirun, srun --mpi=pmi2)", "PMI_RANK", "PMI_SIZE" },
  { "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" }, /* the second is not set in the job's own script */
  { "a launcher with PMIx", "PMIX_RANK", NULL },
};

static bool number(const char *name, int64_t *n) {
  const char *text = name ? getenv(name) : NULL;
  char       *end;
  if (!text || !*text) return false;
  *n = strtoll(text, &end, 10);
  return !*end && *n >= 0;
}

const char *mgrid_launcher_rank(size_t i) { return i < sizeof rows / sizeof *rows ? rows[i].rank : NULL; }

mgrid_launched mgrid_launcher(void) {
  mgrid_launched l = { .pmix = getenv("PMIX_RANK") && !getenv("PMI_RANK"), .size = 1 };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    l.by = rows[i].by;
    l.sized = number(rows[i].size, &l.size);
    if ((l.sized || !rows[i].size) && number(rows[i].rank, &l.rank)) return l;
  }
  return (mgrid_launched){ .size = 1 };
}
