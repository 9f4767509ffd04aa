/* SPDX-License-Identifier: MIT
**
** backend_list.c - the table of backends: plan/backend_row.h explains the fields.
*/
#include "plan/backend_row.h"

#include <string.h>

/* Name of the library of a backend, as the Makefile builds it, and of what MGRID_ENTRY exports in it. */
#define OF_LIBRARY(backend) \
  .name = backend, .library = "libmoongrid_" backend ".so." MGRID_SOVER, .entry = "mgrid_" backend "_entry"

const mgrid_descriptor mgrid_backends[] = {
  [MGRID_NATIVE_NONE] = { .name = "dry" },
  [MGRID_NATIVE_MPI] = { OF_LIBRARY("mpi"), .native = MGRID_NATIVE_MPI, .lists = true, .revokes = true },
  [MGRID_NATIVE_NCCL] = { OF_LIBRARY("nccl"), .native = MGRID_NATIVE_NCCL, .carrier = &mgrid_backends[MGRID_NATIVE_MPI],
                          .lists = true, .shrinks = true, .revokes = true, .demand = mgrid_nccl_demand },
  [MGRID_BACKEND_PMIX] = { OF_LIBRARY("pmix") },
  [MGRID_BACKEND_CARRIER] = { .name = "carrier" },
  { .name = NULL },
};

const mgrid_descriptor *mgrid_backend_named(const char *name) {
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++)
    if (strcmp(d->name, name) == 0) return d;
  return NULL;
}

size_t mgrid_backend_names(const char *names[], bool makers) {
  size_t n = 0;
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++)
    if (d->library && (d->native || !makers)) names[n++] = d->name;
  return n;
}
