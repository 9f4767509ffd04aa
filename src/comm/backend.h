/* SPDX-License-Identifier: MIT
**
** backend.h - what a backend is: who creates communicators, and the few collectives over
** all ranks that agreement needs. A backend is a library of its own: this header is all it
** shares with the rest, besides the error helpers.
*/
#ifndef MG_BACKEND_H
#define MG_BACKEND_H

#include "base/base.h"

/* One communicator to create: ordered members, and where this rank is among them. */
typedef struct mg_comm_spec {
  const char    *name;  /* "state/family[index]" for logs */
  const char    *config; /* canonical options, "" for the defaults */
  const int32_t *ranks; /* [size], global ranks in group order; NULL where ops->lists is false */
  int64_t        size, position;
  int            tag; /* [0, 32768), equal on all members; another one per family and round */
} mg_comm_spec;

typedef struct mg_backend_ops {
  const char *name;
  bool        lists; /* does it want the ranks written out? */
  /* Over all ranks; words become the element-wise minimum. */
  mg_status (*allreduce_min)(mg_backend *b, uint64_t *words, size_t n, mg_error *err);
  /* Over all ranks; all is [world * bytes]. */
  mg_status (*allgather)(mg_backend *b, const void *mine, void *all, size_t bytes, mg_error *err);
  mg_status (*bcast)(mg_backend *b, void *data, size_t bytes, int64_t root, mg_error *err);
  /* n communicators of this rank, in schedule order; each is a call over its members, who all
  ** name what they share in the same order. After a failure it goes on to the end, because other
  ** members wait in the rest. native[i] is the backend's own and goes back to destroy; it stays
  ** NULL where nothing was made. */
  mg_status (*create)(mg_backend *b, size_t n, const mg_comm_spec *spec, void **native, mg_error *err);
  void (*destroy)(mg_backend *b, void *native);
  /* Over the members: do the members and their order arrive, do sums, broadcasts, a ring? */
  mg_status (*prove)(mg_backend *b, const mg_comm_spec *spec, void *native, mg_error *err);
  void (*close)(mg_backend *b); /* releases b itself */
} mg_backend_ops;

typedef struct mg_shared mg_shared; /* a communicator and its users: pool.c */

struct mg_backend {
  const mg_backend_ops *ops;
  int64_t               rank, world;
  int                   users; /* the opener and the states; the last one closes */
  mg_shared            *pool;  /* of core: communicators that states may share */
  mg_state             *abandoned; /* of core: states that nobody freed; mg_state_abandon */
};

#define MG_MPI_LIBRARY "libmoongrid_mpi.so.0.1"
/* What a backend library exports for mg_backend_open: */
typedef mg_backend *mg_backend_opener(mg_error *err);        /* "mg_mpi_open" */
typedef size_t mg_backend_describer(char *buf, size_t len);  /* "mg_mpi_describe" */

#endif
