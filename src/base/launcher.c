/* SPDX-License-Identifier: MIT
**
** launcher.c - read what the launcher put into this process's environment. The only C file that names launchers;
** scripts/mpi.d/libraries does it for the scripts.
*/
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* The order matters: under Slurm srun starts mpirun, and mpirun's ranks inherit srun's own variables. */
static const struct row {
  const char *by, *rank, *size;
} rows[] = {
  { "Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
  { "a launcher with PMI (MPICH's mpirun, srun --mpi=pmi2)", "PMI_RANK", "PMI_SIZE" },
  { "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" }, /* the size is not set in the job's script itself */
  { "a launcher with PMIx", "PMIX_RANK", NULL },
};

/* Read a number of digits only, from `least` to `most`. */
static bool number(const char *name, int64_t least, int64_t most, int64_t *n) {
  const char *text = name ? getenv(name) : NULL;
  if (!text || !*text || text[strspn(text, "0123456789")]) return false;
  int64_t said = strtoll(text, NULL, 10);
  if (said < least || said > most) return false;
  *n = said;
  return true;
}

const char *mgrid_launcher_rank(size_t i) { return i < sizeof rows / sizeof *rows ? rows[i].rank : NULL; }

mgrid_launched mgrid_launcher(void) {
  mgrid_launched l = { .pmix = getenv("PMIX_RANK") && !getenv("PMI_RANK"), .size = 1 };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    l.by = rows[i].by;
    l.size = 1;
    l.sized = number(rows[i].size, 1, MGRID_WORLD_MAX, &l.size);
    int64_t last = l.sized ? l.size - 1 : MGRID_WORLD_MAX - 1;
    if ((l.sized || !rows[i].size) && number(rows[i].rank, 0, last, &l.rank)) return l;
  }
  return (mgrid_launched){ .size = 1 };
}
