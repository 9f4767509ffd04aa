/* SPDX-License-Identifier: MIT
**
** state.h - the inside of states and group handles.
*/
#ifndef MGRID_STATE_H
#define MGRID_STATE_H

#include "comm/backend.h"
#include "plan/plan.h"

#include <jansson.h>
#include <stdatomic.h>

/* A communicator in a backend's pool. Groups with the same members in the same order share one
** entry if their options allow it (mgrid_choice_shares), even if they are in different states. */
struct mgrid_shared {
  mgrid_shared *next, *before; /* in the pool */
  /* how many times states have taken it and not released it yet; at 0 it is destroyed */
  int users;
  bool real;                       /* it has been created, so `native` is valid */
  uint64_t hash;                   /* of its size, first and last member; for searching the pool */
  char *name;                      /* "state/family[index]", for logs */
  const mgrid_descriptor *backend; /* the backend that creates it: the family's, else the state's */
  mgrid_choice *options;           /* options of the family that asked first for it */
  mgrid_family *family;            /* that family; its group `group` has the members */
  int64_t group, size, position;   /* index in `family`; how many members; position of this rank */
  int tag;                         /* mgrid_comm_spec.tag */
  int32_t *ranks;                  /* [size], if the backend reads lists; else NULL */
  void *native;                    /* the backend's handle; NULL in a dry state */
};

/* Memory for one call that creates up to `room` communicators. It is allocated before the ranks
** agree: after that, a rank without memory would keep the others waiting. */
typedef struct mgrid_batch {
  size_t n, room;        /* entries; capacity */
  mgrid_shared **entry;  /* [room] */
  mgrid_comm_spec *spec; /* [room], of each entry */
  void **native;         /* [room], of each entry */
} mgrid_batch;

struct mgrid_group {
  const mgrid_state *state;
  const char *name; /* of the family */
  const mgrid_family *family;
  /* index of the group in the family; position of this rank; how many members */
  int64_t index, position, size;
  mgrid_shared *comm; /* NULL if `none`, and for most groups of one rank */
  bool none;          /* the family's backend is "none" */
};

struct mgrid_state {
  atomic_int refs;
  mgrid_state *next; /* in the backend's list */
  mgrid_plan *plan;
  mgrid_backend *backend;
  char *name;             /* argument of mgrid_materialize; "": none */
  mgrid_view view;        /* the plan as this rank sees it */
  size_t ncomms;          /* view.ncomms and the communicators of groups of one rank */
  mgrid_shared **comm;    /* [ncomms]: first those of the view, in schedule order */
  mgrid_batch batch;      /* memory to create and to release all communicators */
  mgrid_group *group;     /* [view.nmembers]: the handles */
  size_t *first;          /* [nentries + 1]: where the groups of a family begin in `group` */
  mgrid_runtime *runtime; /* owned; NULL: the state was made without a runtime */
  bool made;              /* on all ranks, so it is one of the states that ranks compare */
  bool partial;           /* from mgrid_state_shrink, so not every rank has it */
  /* what the host has set for the recipe's queries, by name; NULL: nothing */
  json_t *settings;
};

/* ------------------------------------------------------------------ pool.c */

/* Return the pool's entry for a group, and count one more user. A new entry has no communicator
** yet. */
mgrid_shared *mgrid_pool_take(mgrid_backend *b, const mgrid_plan *p, const mgrid_creation *c,
                              const char *state, mgrid_error *err);
mgrid_status mgrid_batch_init(mgrid_batch *batch, const mgrid_hooks *h, size_t room,
                              mgrid_error *err);
void mgrid_batch_free(mgrid_batch *batch, const mgrid_hooks *h);
/* Add a communicator to the batch, unless it exists already. */
void mgrid_batch_add(mgrid_batch *batch, mgrid_shared *c, int64_t turn);
/* Create the communicator of a group of one rank, unless it exists already. Local. */
mgrid_status mgrid_pool_single(mgrid_backend *b, mgrid_shared *c, mgrid_error *err);
/* Add a creation in which this rank takes part without being a member: mgrid_backend.whole, or a
** split. */
void mgrid_batch_add_absent(mgrid_batch *batch, const mgrid_entry *family,
                            const mgrid_descriptor *backend);
/* Fail if the batch cannot be created. Local; called before any rank creates. */
mgrid_status mgrid_pool_check(mgrid_backend *b, mgrid_batch *batch, mgrid_error *err);
/* Begin a creation: give it a number. The number distinguishes its messages from those of all
** earlier creations over the same carrier. */
void mgrid_pool_count(mgrid_backend *b);
/* Create the batch. After a failure some communicators may exist: call mgrid_pool_undo. */
mgrid_outcome mgrid_pool_create(mgrid_backend *b, mgrid_batch *batch, mgrid_error *err);
/* Put the handles of the first n communicators of the batch into the pool. s: the outcome of their
** creation. Return s. */
mgrid_outcome mgrid_batch_keep(mgrid_batch *batch, size_t n, mgrid_outcome s);
void mgrid_pool_undo(mgrid_backend *b, mgrid_batch *batch);
/* Write to the host's log what was created. */
void mgrid_pool_log(mgrid_backend *b, const mgrid_batch *batch);
mgrid_status mgrid_pool_shrink(mgrid_backend *b, mgrid_shared *c, const mgrid_shared *from, int n,
                               const int *positions, mgrid_error *err);
/* Note that some ranks of the communicator are lost. */
void mgrid_pool_lose(mgrid_backend *b, mgrid_shared *c);
mgrid_status mgrid_pool_revoke(mgrid_backend *b, size_t n, mgrid_shared **c, mgrid_batch *batch,
                               mgrid_error *err);
mgrid_outcome mgrid_pool_prove(mgrid_backend *b, const mgrid_shared *c, mgrid_error *err);
mgrid_status mgrid_pool_work(mgrid_backend *b, const mgrid_shared *c, const mgrid_work *w,
                             mgrid_error *err);
/* Begin n calls, call i over c[i], and wait until all have ended: `together` of backend.h.
** MGRID_UNSUPPORTED: the backend has no such operation. */
mgrid_outcome mgrid_pool_together(mgrid_backend *b, size_t n, mgrid_shared *const *c,
                                  const mgrid_work *w, double seconds, mgrid_error *err);
/* Begin n calls, 1 to MGRID_TOGETHER_MAX, call i over c[i], on a stream of a backend that has
** streams: `begin` of backend.h. */
mgrid_outcome mgrid_pool_begin(mgrid_backend *b, int stream, size_t n, mgrid_shared *const *c,
                               const mgrid_work *w, uint64_t tag, double seconds, mgrid_error *err);
/* Remove one user of each communicator. Then destroy those that have no user left, in one call. */
void mgrid_pool_release(mgrid_backend *b, size_t n, mgrid_shared **c, mgrid_batch *batch);

/* ----------------------------------------------------------------- state.c */

/* The state from which a state for another world is made. */
typedef struct mgrid_grown {
  const mgrid_state *from; /* NULL: this rank is new */
  const mgrid_error *why;  /* why this rank cannot grow; NULL, or status MGRID_OK: it can */
  /* the new rank of each rank of `from`, -1 for a lost rank; NULL: all ranks keep their numbers */
  const int32_t *now;
} mgrid_grown;
/* Make a state, as mgrid_materialize. With `old`: as mgrid_reload; the new state may have the name
** of `old`. With `grown`: as mgrid_state_grow or mgrid_state_join; or for the survivors of a loss,
** with some communicators shrunk. */
mgrid_state *mgrid_state_make(const mgrid_plan *plan, mgrid_backend *b, const char *name,
                              const mgrid_state *old, const mgrid_grown *grown, mgrid_error *err);
/* Return an empty state. It is another owner of the backend. */
mgrid_state *mgrid_state_new(mgrid_backend *b, mgrid_error *err);
/* Do the local part of making a state: this rank's view, handles, and entries of the pool. */
mgrid_status mgrid_state_prepare(mgrid_state *s, const mgrid_plan *plan, const char *name,
                                 mgrid_error *err);
/* Remove an owner without a collective call. If it was the last owner, the communicators stay until
** the backend is freed. For garbage collectors, which run at different times on different ranks. */
void mgrid_state_abandon(mgrid_state *s);
void mgrid_state_end(mgrid_state *s); /* free the state, whoever owns it. Collective */

/* ----------------------------------------------------------------- group.c */

/* Return the backend of the group's buffers and calls; without a communicator that of the state. */
const mgrid_descriptor *mgrid_group_kind(const mgrid_group *g);
/* Run a collective over the group. It is refused in a dry state, for a family of backend "none",
** and while a lazy group has no communicator. */
mgrid_status mgrid_group_work(const mgrid_group *g, const mgrid_work *w, mgrid_error *err);

/* ----------------------------------------------------------------- origins.c */

/* For each communicator of a batch, the old communicator from which it can be made. */
typedef struct mgrid_growing mgrid_growing;
/* Find the old communicators, and allocate all memory. The caller frees *out, also after a
** failure. */
mgrid_status mgrid_growing_new(const mgrid_grown *grown, const mgrid_state *s, mgrid_growing **out,
                               mgrid_error *err);
void mgrid_growing_free(mgrid_growing *g);
/* Create the communicators of the batch, after the ranks have agreed. */
mgrid_outcome mgrid_pool_grow(mgrid_backend *b, mgrid_batch *batch, mgrid_growing *g,
                              mgrid_error *err);
/* After the creation has succeeded on all ranks, take over the communicators that stay as they are,
** and write to the host's log what became of each. */
void mgrid_growing_end(mgrid_state *s, mgrid_growing *g);

/* ------------------------------------------------------------------- nodes.c */

typedef struct mgrid_location mgrid_location; /* the node of a rank */
/* Allocate memory for the location of every rank, before the ranks agree. *locations becomes NULL
** if the nodes are known already. */
mgrid_status mgrid_locations_new(const mgrid_backend *b, mgrid_location **locations,
                                 mgrid_error *err);
/* Make a verdict (mgrid_verdict). If the nodes are not known yet, the ranks also learn how they are
** spread over nodes. */
mgrid_status mgrid_locations_verdict(mgrid_backend *b, mgrid_location *locations,
                                     mgrid_outcome mine, const mgrid_error *failed,
                                     mgrid_error *err);
/* Allocate memory for the nodes of all ranks, before the ranks agree. A plan with items that say
** where ranks run needs it; for other plans *nodes becomes NULL. */
mgrid_status mgrid_nodes_new(const mgrid_plan *p, uint64_t **nodes, mgrid_error *err);
/* Find the node of each rank, as a number (mgrid_machine_id). Collective. */
mgrid_status mgrid_nodes_find(mgrid_backend *b, uint64_t *nodes, mgrid_error *err);
/* Compare the nodes with the plan, before communicators are created. If `nodes` is not NULL and the
** job has several nodes, this is collective, and all ranks return the same error. */
mgrid_status mgrid_nodes_check(mgrid_backend *b, const mgrid_plan *p, uint64_t *nodes,
                               mgrid_error *err);
/* Return mgrid_move_options.machine for a move between two states. It is 0 if their worlds differ,
** because some ranks then have only one of the states. */
int64_t mgrid_states_machine(const mgrid_state *from, const mgrid_state *to);

#endif
