/* SPDX-License-Identifier: MIT
**
** nccl.h - what the files of the nccl backend share. The backend stands on a carrier (mpi), which
** brings ids from rank to rank and knows the ranks of this machine; groups whose family asks for
** mpi are made there. Use goes one way: nccl.c, watch.c, config.c, ids.c <- comm.c <- derive.c, end.c
** <- create.c, use.c.
*/
#ifndef MGRID_COMM_NCCL_H
#define MGRID_COMM_NCCL_H

#include "comm/backend.h"
#include "comm/nccl/library.h"

typedef struct nccl_comm nccl_comm;
struct nccl_comm {
  ncclComm_t    comm; /* first two: what moongrid_nccl.h reads */
  cudaStream_t  stream;
  nccl_comm    *next; /* of the backend */
  int64_t       bytes;
  bool          blocking; /* NCCL wants those and the others in groups of their own */
  bool          lost;     /* some of its ranks do not answer: it is aborted in the end */
  bool          revoked;
  char          name[128]; /* NCCL keeps the pointer: alive as long as comm is */
  mgrid_choice *options;   /* its family's: a config that NCCL still reads points there */
};

typedef struct nccl_backend {
  mgrid_backend            base; /* first: ops get a pointer to it */
  mgrid_backend           *carrier;
  const mgrid_carrier_ops *carry; /* of the carrier */
  nccl_library             lib;
  mgrid_nccl_options       options;
  int                      device, local_rank, local_size;
  nccl_comm               *made;
  int64_t                  bytes;  /* predicted memory of all that is there */
  double                   begun;  /* of the creation that runs: all its deadlines count from there */
  bool                     after;  /* since the last call over all ranks there was a creation */
  bool                     used;   /* or a collective: other ranks may come late by a deadline */
  bool                     broken; /* a collective failed: communicators are aborted, not destroyed */
} nccl_backend;

/* Does NCCL make it? Else the carrier does. */
static inline bool mgrid_nccl_makes(const mgrid_descriptor *kind) { return kind->native == MGRID_NATIVE_NCCL; }

/* "nccl: what for name: ncclInvalidUsage (...)" */
mgrid_status mgrid_nccl_failed(const nccl_backend *n, mgrid_error *err, ncclResult_t r, const char *call,
                               const char *name);
mgrid_status mgrid_cuda_failed(const nccl_backend *n, mgrid_error *err, cudaError_t r, const char *call,
                               const char *name);

/* A wait ended because that rank gave up: its message, and MGRID_GAVE_UP. */
mgrid_outcome mgrid_nccl_gave_up(int64_t who, mgrid_error *err);
/* Tell all members that we gave up: they need not wait for us. */
void mgrid_nccl_tell(nccl_backend *n, const mgrid_comm_spec *spec);

/* config.c: local checks; and the struct for one communicator, which points to `name` and into the options. */
mgrid_status mgrid_nccl_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_error *err);
mgrid_status mgrid_nccl_config(const nccl_backend *n, const mgrid_comm_spec *spec, const char *name,
                               ncclConfig_t *config, mgrid_error *err);

/* ids.c: the unique ids of one communicator, from its first member to all. *ids is malloc'ed. */
mgrid_outcome mgrid_nccl_ids(nccl_backend *n, const mgrid_comm_spec *spec, double seconds, ncclUniqueId **ids,
                             int *nids, mgrid_error *err);

/* watch.c: a call that blocks, in a thread with a deadline. It gets ud, which must outlive it where
** *left_behind is set. listen: also until another rank gives up. */
mgrid_outcome mgrid_nccl_watch(nccl_backend *n, double seconds, bool listen,
                               ncclResult_t (*call)(const nccl_library *lib, void *ud), void *ud, const char *what,
                               const char *name, bool *left_behind, mgrid_error *err);

/* comm.c: one communicator. One that NCCL has yet to make, with the struct to make it of: */
mgrid_status mgrid_nccl_new(const nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm **made, ncclConfig_t *config,
                            mgrid_error *err);
void         mgrid_nccl_drop(nccl_comm *made); /* the memory alone; NULL is none */
double       mgrid_nccl_patience(const nccl_backend *n, const mgrid_comm_spec *spec); /* seconds it may take to make */
/* Wait until nothing is in progress on it any more; `listen`: or another rank gave up. */
mgrid_outcome mgrid_nccl_wait(nccl_backend *n, nccl_comm *c, double seconds, bool listen, const char *call,
                              const char *name, mgrid_error *err);
/* What NCCL made is what was planned; and a stream for its calls. */
mgrid_status mgrid_nccl_finish(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *made, mgrid_error *err);
/* The backend's list: what is in it is counted, and destroyed with its users. */
void       mgrid_nccl_keep(nccl_backend *n, nccl_comm *made);
nccl_comm *mgrid_nccl_find(nccl_backend *n, const void *native); /* NULL: it is the carrier's */
void       mgrid_nccl_forget(nccl_backend *n, nccl_comm *c);     /* and free it */

/* derive.c: communicators out of others. */
void          mgrid_nccl_lose(mgrid_backend *b, void *native);
mgrid_outcome mgrid_nccl_split_all(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec, void **native,
                                   mgrid_error *err);
mgrid_outcome mgrid_nccl_shrink(mgrid_backend *b, const mgrid_comm_spec *spec, void *from, int n, const int *positions,
                                void **native, mgrid_error *err);
mgrid_outcome mgrid_nccl_revoke(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err);

/* end.c */
void mgrid_nccl_destroy(mgrid_backend *b, size_t n, void **native);
void mgrid_nccl_abort(mgrid_backend *b, size_t n, void **native);

/* create.c */
mgrid_outcome mgrid_nccl_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                                mgrid_error *err);

/* use.c */
mgrid_outcome mgrid_nccl_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err);
void         *mgrid_nccl_buffer_new(mgrid_backend *b, const mgrid_descriptor *kind, size_t bytes, mgrid_error *err);
void          mgrid_nccl_buffer_free(mgrid_backend *b, const mgrid_descriptor *kind, void *buffer);
mgrid_status  mgrid_nccl_copy(mgrid_backend *b, const mgrid_descriptor *kind, void *to, const void *from, size_t bytes,
                              bool to_buffer, mgrid_error *err);
mgrid_outcome mgrid_nccl_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, const mgrid_work *w,
                                    mgrid_error *err);

#endif
