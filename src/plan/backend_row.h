/* SPDX-License-Identifier: MIT
**
** backend_row.h - the descriptor of a backend, which can be read before the backend is opened.
** Plans use its name, its options and the GPU memory of a communicator; comm/ uses the rest. The
** rows are in backend_table.h, the table is in backend_list.c. Differences between backends are
** fields here: no code outside a backend's folder asks for its name.
*/
#ifndef MGRID_BACKENDS_H
#define MGRID_BACKENDS_H

#include "plan/nccl_options.h"

#include <string.h>

typedef struct mgrid_descriptor mgrid_descriptor;
struct mgrid_descriptor {
  /* the name in the option, the command and mgrid_backend_open; NULL ends the table */
  const char *name;
  /* for documents: what opening it provides, in one sentence without a full stop */
  const char *doc;
  /* the type of its handles. NONE: the backend makes no communicators, and no family can ask for
  ** it */
  mgrid_native native;
  /* Name of the library to load, and of the mgrid_backend_entry (comm/backend.h) that the library
  ** exports. NULL: the backend is in this library, and is opened by the function `opener` instead
  ** of by name. */
  const char *library, *entry, *opener;
  /* this backend is the carrier if none is given, and "auto" opens it if no `gpu` backend can be
  ** opened. True in one row */
  bool usual;
  bool carries; /* it carries the messages of backends that are `carried` */
  bool carried; /* it is opened over a carrier */
  /* its communicators and buffers are on a GPU. "auto" takes the first such backend that all ranks
  ** can open
  */
  bool gpu;
  bool lists;   /* create reads mgrid_comm_spec.ranks */
  bool shrinks; /* mgrid_state_shrink works, or says why it cannot */
  bool revokes; /* mgrid_state_revoke works, or says why it cannot */
  bool grows;   /* mgrid_state_grow keeps or grows its communicators */
  bool splits;  /* it supports the option `parent`, by a call over the parent's members */
  /* it has windows and device communicators: mgrid_backend_ops.window and .device */
  bool has_windows;
  bool singles;   /* it makes communicators of one rank on request: mgrid_backend.single */
  bool exchanges; /* its proof of a communicator includes an all-to-all */
  /* the options that it supports and some backends do not, such as "timeout nccl"; or NULL */
  const char *heeds;
  /* Compute the resources of a communicator of `size` ranks, `local` of them on one machine:
  ** mgrid_nccl_demand. NULL: none. */
  void (*demand)(const mgrid_nccl_values *v, int64_t size, int64_t local, bool nvls,
                 mgrid_demand *out);
};

/* The descriptors, in the order of backend_table.h. Each backend library has its own copy of the
** table, so compare descriptors with mgrid_same_backend, not by address. */
extern const mgrid_descriptor mgrid_backends[];
enum {
  MGRID_BACKENDS_MAX = 16,                      /* rows */
  MGRID_BACKENDS_TEXT = 16 * MGRID_BACKENDS_MAX /* bytes of a list of all names */
};

/* Return the backend of that name, or NULL. */
const mgrid_descriptor *mgrid_backend_named(const char *name);
const mgrid_descriptor *mgrid_backend_usual(void);
static inline bool mgrid_same_backend(const mgrid_descriptor *a, const mgrid_descriptor *b) {
  return strcmp(a->name, b->name) == 0;
}

/* A subset of the backends that have a library. */
typedef enum mgrid_backends_of {
  MGRID_BACKENDS_OPENED,  /* all */
  MGRID_BACKENDS_MAKERS,  /* those that a family may ask for */
  MGRID_BACKENDS_CARRIED, /* those that need a carrier */
  MGRID_BACKENDS_CARRIERS /* those that carry */
} mgrid_backends_of;
/* Write the names of these backends, at most MGRID_BACKENDS_MAX. Return how many they are. */
size_t mgrid_backend_names(const char *names[], mgrid_backends_of which);
/* Write the same as "mpi, nccl or rccl" and return text. */
const char *mgrid_backend_list(char text[MGRID_BACKENDS_TEXT], mgrid_backends_of which);

/* Return whether the backend supports an option of families. All backends support an option that no
** row names. */
bool mgrid_backend_heeds(const mgrid_descriptor *d, const char *option);
/* Write which backends support the option: "nccl, rccl", or "all". Return text. */
const char *mgrid_backends_heeding(char text[MGRID_BACKENDS_TEXT], const char *option);

#endif
