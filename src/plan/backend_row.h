/* SPDX-License-Identifier: MIT
**
** backend_row.h - a descriptor of each backend, which can be read before the backend is opened. A plan reads
** the names that the option `backend` may have, and the GPU memory of a communicator; comm reads the rest.
** The table is defined in comm/backend_list.c and declared here, so that includes go one way, comm to plan.
*/
#ifndef MGRID_BACKENDS_H
#define MGRID_BACKENDS_H

#include "plan/nccl.h"

typedef struct mgrid_descriptor mgrid_descriptor;
struct mgrid_descriptor {
  const char  *name;   /* as the option, the command and mgrid_backend_open say it; NULL ends the table */
  mgrid_native native; /* the type of its handles. NONE: it makes no communicators, and no family can ask for it */
  /* Name of the library to load, and of the mgrid_backend_entry (comm/backend.h) that it exports. NULL:
  ** the backend is in this library, and is not opened by name. */
  const char             *library, *entry;
  const mgrid_descriptor *carrier;          /* the backend that carries its messages if none is said, or NULL */
  bool                    lists;            /* create reads mgrid_comm_spec.ranks */
  bool                    shrinks, revokes; /* mgrid_state_shrink and mgrid_state_revoke work, or say why not here */
  /* What a communicator of `size` ranks takes, `local` of them on one machine: mgrid_nccl_demand. NULL: nothing. */
  void (*demand)(const mgrid_nccl_values *v, int64_t size, int64_t local, bool nvls, mgrid_demand *out);
};

/* Indexed by mgrid_native, then those that make no communicators but carry messages. Each backend library has
** a copy of the table, so compare descriptors by
** `native`, not by address. */
extern const mgrid_descriptor mgrid_backends[];
enum { MGRID_BACKENDS_MAX = 8, MGRID_BACKEND_PMIX = MGRID_NATIVE_NCCL + 1, MGRID_BACKEND_CARRIER };

/* The backend of that name, or NULL. */
const mgrid_descriptor *mgrid_backend_named(const char *name);
/* Write the names of those that can be opened, at most MGRID_BACKENDS_MAX; makers: only of those that a family may
** ask for. Returns how many. */
size_t mgrid_backend_names(const char *names[], bool makers);

#endif
