/* SPDX-License-Identifier: MIT
**
** state.h - what a state and a group handle are inside.
*/
#ifndef MGRID_STATE_H
#define MGRID_STATE_H

#include "comm/backend.h"
#include "plan/plan.h"

/* A communicator of the backend's pool. Equal members in equal order with equal options
** are one entry, whatever state asked for it, unless it is unique. */
struct mgrid_shared {
  mgrid_shared           *next;
  int                     users;
  bool                    real; /* create has succeeded, native is valid */
  uint64_t                hash;
  char                   *name;
  const mgrid_descriptor *backend; /* who makes it: what the family asked for, else the backend itself */
  mgrid_choice           *options;
  mgrid_family           *family; /* who asked first: its group has the members */
  int64_t                 group, size, position;
  int                     tag;
  int32_t                *ranks; /* written out, where the backend wants it */
  void                   *native;
};

/* Room for one call that creates up to n communicators, made before the ranks agree: after
** that no rank may stop for want of memory. */
typedef struct mgrid_batch {
  size_t           n, room;
  mgrid_shared   **entry;
  mgrid_comm_spec *spec;
  void           **native;
} mgrid_batch;

/* Find or make the pool's entry for a group; not created yet where it is new. */
mgrid_shared *mgrid_pool_take(mgrid_backend *b, const mgrid_plan *p, const mgrid_creation *c, const char *state,
                              mgrid_error *err);
mgrid_status  mgrid_batch_init(mgrid_batch *batch, const mgrid_hooks *h, size_t room, mgrid_error *err);
void          mgrid_batch_free(mgrid_batch *batch, const mgrid_hooks *h);
void          mgrid_batch_add(mgrid_batch *batch, mgrid_shared *c); /* unless it is real */
void          mgrid_batch_add_absent(mgrid_batch *batch, const mgrid_entry *family,
                                     const mgrid_descriptor *backend); /* of others: mgrid_backend.whole */
/* Create what is in the batch. What it made is real until undone; a failure leaves the rest. */
mgrid_outcome mgrid_pool_create(mgrid_backend *b, mgrid_batch *batch, mgrid_error *err);
void          mgrid_pool_undo(mgrid_backend *b, mgrid_batch *batch);
void          mgrid_pool_log(mgrid_backend *b, const mgrid_batch *batch); /* what was made, for the host's log */
mgrid_status  mgrid_pool_check(mgrid_backend *b, mgrid_batch *batch, mgrid_error *err); /* local: before agreement */
mgrid_status mgrid_pool_shrink(mgrid_backend *b, mgrid_shared *c, const mgrid_shared *from, int n, const int *positions,
                               mgrid_error *err);
void         mgrid_pool_lose(mgrid_backend *b, mgrid_shared *c); /* some of its ranks do not answer any more */
mgrid_status mgrid_pool_revoke(mgrid_backend *b, const mgrid_shared *c, mgrid_error *err);
mgrid_outcome mgrid_pool_prove(mgrid_backend *b, const mgrid_shared *c, mgrid_error *err);
mgrid_status  mgrid_pool_work(mgrid_backend *b, const mgrid_shared *c, const mgrid_work *w, mgrid_error *err);
/* One user less of each; what has none is destroyed, all of it in one call. */
void mgrid_pool_release(mgrid_backend *b, size_t n, mgrid_shared **c, mgrid_batch *batch);

struct mgrid_group {
  const mgrid_state  *state;
  const char         *name; /* of the family */
  const mgrid_family *family;
  int64_t             index, position, size;
  const mgrid_shared *comm; /* NULL for a group of one rank */
};

/* Room for the location of every rank, made before the ranks agree; NULL where they are known already. */
typedef struct mgrid_location mgrid_location;
mgrid_status                  mgrid_locations_new(const mgrid_backend *b, mgrid_location **locations, mgrid_error *err);
/* mgrid_verdict; with locations the ranks also learn how they lie over machines. */
mgrid_status mgrid_locations_verdict(mgrid_backend *b, mgrid_location *locations, mgrid_outcome mine,
                                     const mgrid_error *failed, mgrid_error *err);

/* Whose memory and calls the group wants: of a group of one rank the state's. */
const mgrid_descriptor *mgrid_group_kind(const mgrid_group *g);
/* A collective over the group. Not of a dry state, nor before a lazy communicator is created. */
mgrid_status mgrid_group_work(const mgrid_group *g, const mgrid_work *w, mgrid_error *err);

/* Give up a state outside of any collective call, as a garbage collector does at a moment of
** its own: its communicators stay until the backend ends. */
void mgrid_state_abandon(mgrid_state *s);

/* A state of nothing yet, of whose backend it is an owner. */
mgrid_state *mgrid_state_new(mgrid_backend *b, mgrid_error *err);
/* Everything of a state that is local: this rank's view, its handles, places for communicators. */
mgrid_status mgrid_state_prepare(mgrid_state *s, const mgrid_plan *plan, const char *name, mgrid_error *err);
/* "unknown family 'x'; nearest is ..." */
mgrid_status mgrid_state_unknown(const mgrid_state *s, const char *family, mgrid_error *err);

struct mgrid_state {
  mgrid_state   *next; /* of the backend's abandoned ones */
  mgrid_plan    *plan;
  mgrid_backend *backend;
  char          *name; /* of mgrid_materialize, "" for none */
  mgrid_view     view;
  mgrid_shared **comm;  /* [view.ncomms] */
  mgrid_batch    batch; /* room for all of them */
  mgrid_group   *group; /* [view.nmembers] */
  size_t        *first; /* [nentries + 1]: where the groups of a family begin in `group` */
};

#endif
