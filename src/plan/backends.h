/* SPDX-License-Identifier: MIT
**
** backends.h - what is known of each backend before it is opened: one descriptor each, in one table.
** A plan needs two facts of it: which names the option `backend` may have, and what a communicator
** takes of a GPU. The table itself is in comm/backends.c, because the rest is comm's business; plan
** declares it here, so that includes go one way, from comm to plan, and the linker joins them.
*/
#ifndef MGRID_BACKENDS_H
#define MGRID_BACKENDS_H

#include "plan/nccl.h"

typedef struct mgrid_descriptor mgrid_descriptor;
struct mgrid_descriptor {
  const char  *name;   /* as the option, the command and mgrid_backend_open say it; NULL ends the table */
  mgrid_native native; /* what its handles are, and its place in the table */
  /* The library to load and the mgrid_backend_entry (comm/backend.h) that it exports. NULL: it is a
  ** part of this library, and no family can ask for it. */
  const char             *library, *entry;
  const mgrid_descriptor *carrier;          /* the backend that it stands on, or NULL */
  bool                    lists;            /* create wants the ranks of each group written out */
  bool                    shrinks, revokes; /* mgrid_state_shrink and mgrid_state_revoke work */
  /* Bytes of GPU memory of a communicator of `size` ranks: when it is made, and by the first
  ** all-reduce on top of that. NULL: it takes none. */
  void (*gpu_memory)(const mgrid_nccl_values *v, int64_t size, int64_t *created, int64_t *first_use);
};

/* By mgrid_native. Each backend library has a copy of the table: two descriptors are of one backend
** where their `native` is equal, not their address. */
extern const mgrid_descriptor mgrid_backends[];
enum { MGRID_BACKENDS_MAX = 8 };

/* The backend of that name, or NULL. */
const mgrid_descriptor *mgrid_backend_named(const char *name);
/* Write the names that a family may ask for, at most MGRID_BACKENDS_MAX; returns how many. */
size_t mgrid_backend_names(const char *names[]);

#endif
