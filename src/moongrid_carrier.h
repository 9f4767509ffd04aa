/* SPDX-License-Identifier: MIT
**
** moongrid_carrier.h - backends for hosts without MPI. moongrid.h includes it. examples/carrier.c
** is such a host.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_CARRIER_H
#define MOONGRID_CARRIER_H

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of a host without MPI, by which its ranks exchange messages over a service that the
** host already has: torch's store, the TCP store of a trainer, etcd, or a folder that all ranks
** see.
**
** Give `put` and `get`, a store of named values, or `send` and `recv`, messages between two ranks,
** or both pairs; the other functions may be NULL. The library does without them: without `send`, a
** message is a value that one rank puts and another gets; without `allgather`, a call over all
** ranks goes along a tree of messages.
**
** A function is called in the thread of the moongrid call that needs it. It may block for `seconds`
** (0: look once; INFINITY: no limit). It returns MGRID_OK, or MGRID_TIMED_OUT after that time. Any
** other status is final: the moongrid call fails, too, with the text of `reason` (only failures of
** `erase` are ignored). None of the functions may call moongrid. Most values have 1 to 150 bytes.
** Some are larger: lists with up to 48 bytes for each rank, when a backend opens, a first state is
** made, or ranks disagree; and after a failure errors, 1.5 KB, and texts of plans. Unless a call
** fails, moongrid receives every message that it sends. */
typedef struct mgrid_carrier {
  size_t size; /* sizeof(mgrid_carrier) */
  void *ud;    /* first argument of all functions */
  int64_t rank, world;
  /* seconds that a call over all ranks may take, unless a backend over this carrier sets a timeout;
  ** 0: MGRID_TIMEOUT */
  double timeout;
  bool by_rank; /* `get` needs the rank that puts the key, as PMIx does */
  /* Store a value. A key begins with "moongrid." and has letters, digits, '.' and '-', at most 127
  ** characters; a host with several jobs in one store puts the name of the job before the key. A
  ** second put replaces the value. */
  mgrid_status (*put)(void *ud, const char *key, const void *data, size_t bytes);
  /* Wait until the key exists, and copy its value, which has `bytes` bytes. Readers never see half
  ** a value. from: the rank that puts it, or -1 for any rank; never -1 with by_rank. */
  mgrid_status (*get)(void *ud, int64_t from, const char *key, void *data, size_t bytes,
                      double seconds);
  /* Delete a key that no rank will get again. NULL: keys stay, about 100 bytes for each message. */
  mgrid_status (*erase)(void *ud, const char *key);
  /* Send a message to another rank; it need not have arrived when send returns. Tags are 0 to 2^31
  ** - 1. Messages of one tag between two ranks arrive in order. */
  mgrid_status (*send)(void *ud, int64_t to, int tag, const void *data, size_t bytes,
                       double seconds);
  /* Receive the next message from a rank with a tag; it has `bytes` bytes. If it comes after
  ** MGRID_TIMED_OUT, a later call may receive it. */
  mgrid_status (*recv)(void *ud, int64_t from, int tag, void *data, size_t bytes, double seconds);
  /* Gather `bytes` bytes of each rank, in the order of ranks, in `all`; mine and all do not
  ** overlap. bytes 0: a barrier. All ranks make these calls in one order, and none after a call
  ** that failed. NULL: along the tree. */
  mgrid_status (*allgather)(void *ud, const void *mine, void *all, size_t bytes, double seconds);
  /* Return why the last call failed, in a few words; valid until the next call. */
  const char *(*reason)(void *ud);
  void (*close)(void *ud); /* the backend has ended, and makes no more calls */
} mgrid_carrier;
#define MGRID_CARRIER_INIT \
  { sizeof(mgrid_carrier), NULL, -1, 0, 0, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }
/* Open a backend over the host's carrier. This backend makes no communicators: ranks agree on
** plans, and a state answers questions; a family with backend "mpi" is MGRID_REFUSED.
** mgrid_backend_over makes NCCL's communicators over it. If ranks do not arrive by the deadline, a
** call over all ranks fails and names them; the backend cannot be used afterwards. The struct is
** copied; ud outlives the backend. MGRID_OUT_OF_RANGE for a wrong rank or world, MGRID_USAGE if
** both pairs of functions are missing, or one of a pair. Local. Several backends may use one store
** if all ranks open them in the same order. When the backend is freed, ranks wait for each other
** for about 5 seconds at most: the store may belong to rank 0, and many launchers end a job when
** its first process ends. */
MGRID_API mgrid_backend *mgrid_carrier_backend(const mgrid_carrier *carrier, mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
