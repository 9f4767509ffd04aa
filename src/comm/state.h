/* SPDX-License-Identifier: MIT
**
** state.h - what a state and a group handle are inside.
*/
#ifndef MG_STATE_H
#define MG_STATE_H

#include "comm/backend.h"
#include "plan/plan.h"

/* A communicator of the backend's pool. Equal members in equal order with equal options
** are one entry, whatever state asked for it, unless it is unique. */
struct mg_shared {
  mg_shared *next;
  int        users;
  bool       unique, real; /* real: create has succeeded, native is valid */
  uint64_t   hash;
  char      *name, *config;
  const char *backend; /* who makes it: what the family asked for, else the backend's name */
  char      *nccl;
  double     timeout;
  bool       high_priority;
  mg_family *family; /* who asked first: its group has the members */
  int64_t    group, size, position;
  int        tag;
  int32_t   *ranks; /* written out, where the backend wants it */
  void      *native;
};

/* Room for one call that creates up to n communicators, made before the ranks agree: after
** that no rank may stop for want of memory. */
typedef struct mg_batch {
  size_t        n;
  mg_shared   **entry;
  mg_comm_spec *spec;
  void        **native;
} mg_batch;

/* Find or make the pool's entry for a group; not created yet where it is new. */
mg_shared *mg_pool_take(mg_backend *b, const mg_plan *p, const mg_creation *c, const char *state,
                        mg_error *err);
mg_status  mg_batch_init(mg_batch *batch, size_t room, mg_error *err);
void       mg_batch_free(mg_batch *batch);
void       mg_batch_add(mg_batch *batch, mg_shared *c); /* unless it is real */
void       mg_batch_add_absent(mg_batch *batch, const char *family, const char *backend); /* of others: mg_backend.whole */
/* Create what is in the batch. What it made is real until undone; a failure leaves the rest. */
mg_status  mg_pool_create(mg_backend *b, mg_batch *batch, mg_error *err);
void       mg_pool_undo(mg_backend *b, mg_batch *batch);
mg_status  mg_pool_check(mg_backend *b, mg_batch *batch, mg_error *err); /* local: before agreement */
mg_status  mg_pool_shrink(mg_backend *b, mg_shared *c, const mg_shared *from, int n, const int *positions,
                          mg_error *err);
void       mg_pool_lose(mg_backend *b, mg_shared *c); /* some of its ranks do not answer any more */
mg_status  mg_pool_revoke(mg_backend *b, const mg_shared *c, mg_error *err);
mg_status  mg_pool_prove(mg_backend *b, const mg_shared *c, mg_error *err);
mg_status  mg_pool_work(mg_backend *b, const mg_shared *c, const mg_work *w, mg_error *err);
/* One user less of each; what has none is destroyed, all of it in one call. */
void mg_pool_release(mg_backend *b, size_t n, mg_shared **c, mg_batch *batch);

struct mg_group {
  const mg_state  *state;
  const char      *name; /* of the family */
  const mg_family *family;
  int64_t          index, position, size;
  const mg_shared *comm; /* NULL for a group of one rank */
};

/* Room for a seat per rank, before the ranks agree; NULL where their places are known already. */
typedef struct mg_seat mg_seat;
mg_status mg_seats_new(const mg_backend *b, mg_seat **seats, mg_error *err);
/* mg_verdict; with seats the ranks also learn how they lie over machines. */
mg_status mg_seats_verdict(mg_backend *b, mg_seat *seats, mg_status mine, const mg_error *failed, mg_error *err);

/* Whose memory and calls the group wants: "mpi", "nccl", "dry"; of a group of one rank the state's. */
const char *mg_group_kind(const mg_group *g);
/* A collective over the group. Not of a dry state, nor before a lazy communicator is created. */
mg_status mg_group_work(const mg_group *g, const mg_work *w, mg_error *err);

/* Give up a state outside of any collective call, as a garbage collector does at a moment of
** its own: its communicators stay until the backend ends. */
void mg_state_abandon(mg_state *s);

/* Everything of a state that is local: this rank's view, its handles, places for communicators. */
mg_status mg_state_prepare(mg_state *s, const mg_plan *plan, mg_backend *b, const char *name, mg_error *err);
/* "unknown family 'x'; nearest is ..." */
mg_status mg_state_unknown(const mg_state *s, const char *family, mg_error *err);

struct mg_state {
  mg_state   *next; /* of the backend's abandoned ones */
  mg_plan    *plan;
  mg_backend *backend;
  mg_view     view;
  mg_shared **comm;  /* [view.ncomms] */
  mg_batch    batch; /* room for all of them */
  mg_group   *group; /* [view.nmembers] */
  size_t     *first; /* [nentries + 1]: where the groups of a family begin in `group` */
};

/* Who waits for whom, given each rank's creations in its own order. dry.c */
typedef struct mg_script { /* rank r creates step[start[r]] .. step[start[r + 1] - 1] */
  int64_t      world;
  int64_t     *start;
  mg_creation *step;
} mg_script;
mg_status mg_script_of(mg_script *s, const mg_plan *p, mg_error *err);
mg_status mg_script_play(const mg_script *s, const mg_plan *p, mg_rehearsal *out, mg_error *err);
void      mg_script_free(mg_script *s);

#endif
