/* SPDX-License-Identifier: MIT
**
** state.h - what a state and a group handle are inside.
*/
#ifndef MGRID_STATE_H
#define MGRID_STATE_H

#include "comm/backend.h"
#include "plan/plan.h"

#include <jansson.h>

/* A communicator in the pool of a backend. Groups with equal members in equal order and equal options use
** one entry, also across states, unless they are unique. */
struct mgrid_shared {
  mgrid_shared           *next, *before;         /* in the pool */
  int                     users;                 /* groups and states that hold it; at 0 it is destroyed */
  bool                    real;                  /* create has succeeded, native is valid */
  uint64_t                hash;                  /* of members and options: what the pool is searched by */
  char                   *name;                  /* "state/family[index]", for logs */
  const mgrid_descriptor *backend;               /* the one that makes it: asked for by the family, else the state's */
  mgrid_choice           *options;               /* of the family that asked first */
  mgrid_family           *family;                /* the family that asked first; its group has the members */
  int64_t                 group, size, position; /* index in `family`; members; position of this rank */
  int                     tag;                   /* mgrid_comm_spec.tag */
  int32_t                *ranks;                 /* [size], if the backend reads lists; else NULL */
  void                   *native;                /* handle of the backend; NULL in a dry state */
};

/* Memory for one call that creates up to n communicators. Allocated before the ranks agree, because after
** that a rank without memory would leave the others waiting. */
typedef struct mgrid_batch {
  size_t           n, room; /* entries in it; entries that it has memory for */
  mgrid_shared   **entry;   /* [room] */
  mgrid_comm_spec *spec;    /* [room], of each entry */
  void           **native;  /* [room], of each entry */
} mgrid_batch;

struct mgrid_group {
  const mgrid_state  *state;
  const char         *name; /* of the family */
  const mgrid_family *family;
  int64_t             index, position, size; /* of the group in the family; of this rank; members */
  mgrid_shared       *comm;                  /* NULL where there is `none`, and for most groups of one rank */
  bool                none;                  /* the family's backend is "none" */
};

struct mgrid_state {
  mgrid_state   *next; /* in the backend's list */
  mgrid_plan    *plan;
  mgrid_backend *backend;
  char          *name;     /* argument of mgrid_materialize; "": none */
  mgrid_view     view;     /* the plan as this rank sees it */
  size_t         ncomms;   /* view.ncomms, and one for each group of one rank that has its own */
  mgrid_shared **comm;     /* [ncomms], those of the view first, in schedule order */
  mgrid_batch    batch;    /* memory to create and release all of them */
  mgrid_group   *group;    /* [view.nmembers]: the handles */
  size_t        *first;    /* [nentries + 1]: where the groups of a family begin in `group` */
  mgrid_runtime *runtime;  /* of mgrid_open, which the state owns; else NULL */
  bool           made;     /* on all ranks: it counts when they compare their states */
  bool           partial;  /* of mgrid_state_shrink: not every rank has it */
  json_t        *settings; /* by name, as the host set them for the recipe's queries; NULL: none */
};

/* ------------------------------------------------------------------ pool.c */

/* Find or make the pool's entry for a group; a new one is not created yet. */
mgrid_shared *mgrid_pool_take(mgrid_backend *b, const mgrid_plan *p, const mgrid_creation *c, const char *state,
                              mgrid_error *err);
mgrid_status  mgrid_batch_init(mgrid_batch *batch, const mgrid_hooks *h, size_t room, mgrid_error *err);
void          mgrid_batch_free(mgrid_batch *batch, const mgrid_hooks *h);
void          mgrid_batch_add(mgrid_batch *batch, mgrid_shared *c); /* unless it is created already */
/* Create that of a group of one rank, unless it is. Local. */
mgrid_status mgrid_pool_single(mgrid_backend *b, mgrid_shared *c, mgrid_error *err);
/* One of other ranks: mgrid_backend.whole. */
void mgrid_batch_add_absent(mgrid_batch *batch, const mgrid_entry *family, const mgrid_descriptor *backend);
/* Can what is in the batch be created? Local, called before agreement. */
mgrid_status mgrid_pool_check(mgrid_backend *b, mgrid_batch *batch, mgrid_error *err);
/* Create what is in the batch. After a failure some may be created: undo the batch. */
mgrid_outcome mgrid_pool_create(mgrid_backend *b, mgrid_batch *batch, mgrid_error *err);
void          mgrid_pool_undo(mgrid_backend *b, mgrid_batch *batch);
void          mgrid_pool_log(mgrid_backend *b, const mgrid_batch *batch); /* write what was made to the host's log */
mgrid_status mgrid_pool_shrink(mgrid_backend *b, mgrid_shared *c, const mgrid_shared *from, int n, const int *positions,
                               mgrid_error *err);
void         mgrid_pool_lose(mgrid_backend *b, mgrid_shared *c); /* some of its ranks are lost */
mgrid_status mgrid_pool_revoke(mgrid_backend *b, size_t n, mgrid_shared **c, mgrid_batch *batch, mgrid_error *err);
mgrid_outcome mgrid_pool_prove(mgrid_backend *b, const mgrid_shared *c, mgrid_error *err);
mgrid_status  mgrid_pool_work(mgrid_backend *b, const mgrid_shared *c, const mgrid_work *w, mgrid_error *err);
/* Drop one user of each; those without users are destroyed, in one call. */
void mgrid_pool_release(mgrid_backend *b, size_t n, mgrid_shared **c, mgrid_batch *batch);

/* ----------------------------------------------------------------- state.c */

/* mgrid_materialize, in the place of the state `old`, whose name the new one may have; NULL: of none. With `grown` it
** is mgrid_state_grow out of its state, or mgrid_state_join. */
typedef struct mgrid_grown {
  const mgrid_state *from; /* NULL: this rank is new */
  const mgrid_error *why;  /* why this rank cannot, with a status; none: it can */
} mgrid_grown;
mgrid_state *mgrid_state_make(const mgrid_plan *plan, mgrid_backend *b, const char *name, const mgrid_state *old,
                              const mgrid_grown *grown, mgrid_error *err);
/* An empty state, which holds a reference to the backend. */
mgrid_state *mgrid_state_new(mgrid_backend *b, mgrid_error *err);
/* The local part of making a state: this rank's view, its handles, entries for its communicators. */
mgrid_status mgrid_state_prepare(mgrid_state *s, const mgrid_plan *plan, const char *name, mgrid_error *err);
/* "unknown family 'x'; nearest is ..." */
mgrid_status mgrid_state_unknown(const mgrid_state *s, const char *family, mgrid_error *err);
/* Give up a state without a collective call, for garbage collectors, which run at different times on
** different ranks: its communicators stay until the backend ends. */
void mgrid_state_abandon(mgrid_state *s);

/* ----------------------------------------------------------------- group.c */

/* The backend whose memory and calls the group uses; for a group of one rank the state's. */
const mgrid_descriptor *mgrid_group_kind(const mgrid_group *g);
/* A collective over the group. Refused in a dry state, for a family of backend "none", and before a lazy communicator is
** created. */
mgrid_status mgrid_group_work(const mgrid_group *g, const mgrid_work *w, mgrid_error *err);

/* ------------------------------------------------------------------ grow.c */

/* What was of the communicators in the batch of s, with memory for all that follows. *out is to be freed also
** after a failure. Then, after the ranks have agreed, create; and when that was done on all ranks, take what is kept. */
typedef struct mgrid_growing mgrid_growing;
mgrid_status  mgrid_growing_new(const mgrid_state *from, const mgrid_state *s, mgrid_growing **out, mgrid_error *err);
void          mgrid_growing_free(mgrid_growing *g);
mgrid_outcome mgrid_pool_grow(mgrid_backend *b, mgrid_batch *batch, mgrid_growing *g, mgrid_error *err);
void          mgrid_growing_end(mgrid_state *s, mgrid_growing *g);

/* --------------------------------------------------------------- machine.c */

/* Memory for the location of every rank, allocated before the ranks agree; NULL: locations are known. */
typedef struct mgrid_location mgrid_location;
mgrid_status                  mgrid_locations_new(const mgrid_backend *b, mgrid_location **locations, mgrid_error *err);
/* mgrid_verdict; with `locations` the ranks also learn how they are spread over machines. */
mgrid_status mgrid_locations_verdict(mgrid_backend *b, mgrid_location *locations, mgrid_outcome mine,
                                     const mgrid_error *failed, mgrid_error *err);
/* mgrid_move_options.machine of a move between two states. 0 also where one has more ranks: those see no two states. */
int64_t mgrid_states_machine(const mgrid_state *from, const mgrid_state *to);

#endif
