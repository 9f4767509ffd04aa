/* SPDX-License-Identifier: MIT
**
** moongrid_carrier.h - the part of moongrid.h for hosts without MPI, which includes it. examples/carrier.c is a whole
** host of that kind.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* which includes this header in its place */
#elif !defined MOONGRID_CARRIER_H
#define MOONGRID_CARRIER_H

#ifdef __cplusplus
extern "C" {
#endif

/* How the ranks of a host without MPI reach each other: by functions of the host, over what it has already, as
** torch's store, the TCP store of a trainer, etcd, or a folder that all ranks see.
**
** There are `put` and `get`, a store of named values, or `send` and `recv`, messages between two ranks, or both
** pairs; the other entries may be NULL. Where something is not there the library builds it on the rest: messages
** are values that one rank puts and another gets, calls over all ranks go along a tree of messages.
**
** Every function is called in the thread of the call of moongrid that needs it, may block for `seconds` (0: look
** once; INFINITY: as long as it takes), and returns MGRID_OK, MGRID_TIMED_OUT when they have passed, or another status if it
** fails for good: then the call of moongrid fails as well, with what `reason` says. None may call moongrid. Values
** are small: 8 to some 100 bytes, 8 bytes per rank once where ranks are on several machines, and the texts of
** plans when ranks disagree. moongrid reads every message that it sends but after a failure. */
typedef struct mgrid_carrier {
  size_t  size; /* sizeof(mgrid_carrier) */
  void   *ud;   /* first argument of all functions */
  int64_t rank, world;
  double  timeout; /* that a call over all ranks may take, until a backend over this one says otherwise; 0:
                      MGRID_TIMEOUT */
  bool    by_rank; /* of the store: only who knows the rank that put a key can get it, as in PMIx */
  /* Store a value. A key has letters, digits, '.' and '-', at most 127 characters, and begins with "moongrid.";
  ** where the host has several jobs in one store, it puts a name of the job before it. Put again, a key has the new
  ** value. */
  mgrid_status (*put)(void *ud, const char *key, const void *data, size_t bytes);
  /* Wait until the key is there, and copy its value, which has `bytes` bytes. Readers never see half a value. from:
  ** the rank that puts it, -1 for any, which is never asked of a store by rank. */
  mgrid_status (*get)(void *ud, int64_t from, const char *key, void *data, size_t bytes, double seconds);
  /* Forget a key that nobody will get again. NULL: they stay, some 100 bytes for each message. */
  mgrid_status (*erase)(void *ud, const char *key);
  /* A message to a rank, never this one; it need not have arrived when send returns. Tags are 0 to 2^31 - 1.
  ** Messages of one tag between two ranks arrive in order. */
  mgrid_status (*send)(void *ud, int64_t to, int tag, const void *data, size_t bytes, double seconds);
  /* Receive the next message of that rank and tag, which has `bytes` bytes. After MGRID_TIMED_OUT it may still come,
  ** to a later call. */
  mgrid_status (*recv)(void *ud, int64_t from, int tag, void *data, size_t bytes, double seconds);
  /* Over all ranks: all is [world * bytes], this rank's part at rank * bytes; mine and all do not overlap. With bytes
  ** 0 it is a barrier. Calls come in one order on all ranks; after one that failed there is no other. NULL: along
  ** the tree. */
  mgrid_status (*allgather)(void *ud, const void *mine, void *all, size_t bytes, double seconds);
  /* Why the last call failed, in a few words; valid until the next one. */
  const char *(*reason)(void *ud);
  void (*close)(void *ud); /* the backend ends, and calls nothing more */
} mgrid_carrier;
#define MGRID_CARRIER_INIT \
  { sizeof(mgrid_carrier), NULL, -1, 0, 0, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }
/* A backend over the host's carrier. By itself it makes no communicators: ranks agree on plans, and a state answers
** questions; a family with backend "mpi" is MGRID_REFUSED. mgrid_backend_over over it makes NCCL's. A call over all
** ranks fails when ranks have not come within the deadline, and names them; after that the backend is good for nothing.
** The struct is copied; ud outlives the backend. MGRID_OUT_OF_RANGE for rank and world, MGRID_USAGE where neither
** pair of functions is there. Local. Several backends over one store are kept apart if all ranks open them in the
** same order. When it is freed, ranks wait for each other, some 5 seconds at most: the store may be rank 0's, and
** many launchers end a job when its first process ends. */
MGRID_API mgrid_backend *mgrid_carrier_backend(const mgrid_carrier *carrier, mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
