/* SPDX-License-Identifier: MIT
**
** next.h - what a job becomes when ranks are lost. No MPI here, and no Lua: a plan, a runtime that
** makes plans for fewer ranks, and lists of ranks.
**
** The ranks of a layout are its places: all ranks of a plan but its spares, ascending. A next plan
** has its places first, so place i is rank i; the survivors that it does not use follow.
*/
#ifndef MGRID_NEXT_H
#define MGRID_NEXT_H

#include "plan/plan.h"
#include "tensors/between_plans.h"

#include <jansson.h>

/* ---------------------------------------------------------------- spares.c */

/* The spares of a plan: an item. */
typedef struct mgrid_spares {
  atomic_int refs;
  int64_t world;
  mgrid_family *f; /* one group: the spares, ascending */
} mgrid_spares;
extern const mgrid_item_kind mgrid_spares_kind;
#define MGRID_SPARES_NAME "spares"
/* Take a list of n ranks, which it owns from now on, also on failure; NULL: report out of
** memory. */
mgrid_spares *mgrid_spares_new(int64_t world, int64_t n, int32_t *ranks, mgrid_error *err);
/* The last `count` ranks of each domain of a level, "node". MGRID_UNKNOWN_NAME with the nearest
** level. */
struct mgrid_machine_model;
mgrid_spares *mgrid_spares_per(const struct mgrid_machine_model *m, const char *level,
                               int64_t count, int64_t world, mgrid_error *err);
/* Refuse a family that has a spare. */
mgrid_status mgrid_spares_check(const mgrid_spares *x, const mgrid_content *c, mgrid_error *err);
/* Return those of a plan; NULL: none. */
const mgrid_spares *mgrid_content_spares(const mgrid_content *c);

/* ---------------------------------------------------------------- next.c */

/* The communicators of a plan, each once: all groups of more than one rank, of families that have
** any. */
typedef struct mgrid_comm_list {
  size_t n;
  int32_t *entry;    /* [n]: a family that has it */
  int64_t *start;    /* [n + 1], in members */
  int32_t *member;   /* ranks, in order */
  mgrid_index index; /* by the members */
} mgrid_comm_list;
mgrid_status mgrid_comm_list_make(mgrid_comm_list *c, const mgrid_plan *p, mgrid_error *err);
void mgrid_comm_list_free(mgrid_comm_list *c);
uint64_t mgrid_comm_hash(const int32_t *member, int64_t n);
/* Return a communicator of c with these members, in this order, whose options may share with
** `choice`; or -1. */
int32_t mgrid_comm_find(const mgrid_comm_list *c, const mgrid_plan *p, const int32_t *member,
                        int64_t n, uint64_t hash, const mgrid_choice *choice);

#define MGRID_LOSS_POLICY "on_lost"
extern const char *const mgrid_loss_answers[]; /* their words, by mgrid_loss_answer */

/* How places of the old layout become those of the new one: both are a x some x b, dims fastest
** first; the middle one shrinks from `was` to `is`. */
typedef struct mgrid_layout_map {
  int64_t a, was, is, b;
} mgrid_layout_map;

/* What a place of the next layout needs, and what of that an old rank has. */
typedef struct mgrid_next_bytes {
  int64_t need, stay;
  bool known;
} mgrid_next_bytes;

/* A plan for fewer ranks, for any of them. */
typedef struct mgrid_next {
  struct mgrid_next *after; /* in the list of all */
  int64_t survivors;        /* ranks of the plan */
  bool shrinks;             /* else it has all places of the old one */
  char *params;             /* arguments in place of the plan's, each on a line; "": none */
  mgrid_plan *plan;         /* NULL: no layout is accepted, because of: */
  mgrid_error why;
  int64_t places; /* ranks of the layout */
  mgrid_layout_map map;
  size_t nargs;
  char **args; /* [nargs], all arguments, owned */
  mgrid_comm_list comms;
  mgrid_pairs pairs; /* of tensors, ranks of either plan; n 0: there are none */
  bool paired;
  int64_t uncounted;       /* tensors that are in none of the pairs */
  mgrid_next_bytes *bytes; /* [places x old ranks], as far as known; NULL: too many to keep */
} mgrid_next;

struct mgrid_losses {
  mgrid_runtime *rt; /* owners */
  mgrid_plan *plan;
  char *how;
  size_t nargs, nchanged;
  char **args, **changed;
  char *file; /* of parameters */
  int64_t world;
  int64_t places; /* ranks of the layout */
  int32_t *rank;  /* [places], ascending */
  int32_t *place; /* [world]; -1: a spare */
  mgrid_comm_list comms;
  mgrid_next *next;     /* those made so far */
  mgrid_state *state;   /* a dry one, for the policy */
  mgrid_policy *policy; /* on_lost; NULL: the recipe has none, or the caller answers */
};

/* Plan for a world with exactly these spares, in place of the recipe's. The call takes over
** `spare`, also on failure. */
mgrid_plan *mgrid_plan_sparing(mgrid_runtime *rt, const char *file, int64_t world, int64_t nspares,
                               int32_t *spare, size_t n, const char *const *args, mgrid_error *err);
/* Plan for a world whose last ranks, beyond `places`, are spares. `at`: the place of each rank in
** the machine; NULL: the recipe reads none. */
mgrid_plan *mgrid_next_plan(mgrid_losses *l, int64_t world, int64_t places, size_t n,
                            const char *const *args, const int32_t *at, mgrid_error *err);
/* Return the plan for these survivors, made now or before; NULL: an error. Where the recipe reads
** the machine, x gets its ranks as well. */
mgrid_next *mgrid_next_of(mgrid_losses *l, mgrid_loss *x, bool shrinks, size_t n,
                          char *const *params, mgrid_error *err);
/* List the tensors of `from` that `to` has in the same shape. The caller frees the list; the names
** are those of `from`. */
const char **mgrid_tensors_alike(const mgrid_plan *from, const mgrid_plan *to, size_t *shared,
                                 mgrid_error *err);

/* Place the survivors by next->map instead, if the recipe that reads the machine accepts that,
** too. */
mgrid_status mgrid_loss_place_again(mgrid_losses *l, const mgrid_next *next, mgrid_loss *x,
                                    mgrid_error *err);

/* Ask a runtime for a thing that it was lent: *x gets one more owner; NULL: there is none. Or, with
** a policy, for its file and line. Served by lua/spares_words.c. */
typedef struct mgrid_lent_request {
  const mgrid_item_kind *kind;
  void *x;
  const mgrid_policy *policy;
  mgrid_error *placed; /* an error about the policy's answer: add the file and the line */
} mgrid_lent_request;

/* ---------------------------------------------------------------- loss.c */

struct mgrid_loss {
  mgrid_loss_answer how;
  mgrid_text why;
  mgrid_text params;      /* what the answer changes, each on a line */
  mgrid_plan *old, *plan; /* owners; plan NULL: stop */
  int64_t world, survivors;
  size_t nlost;
  int64_t *lost; /* [nlost], ascending */
  int32_t *was;  /* [survivors], the old rank of each new one; NULL: stop */
  int32_t *is;   /* [world], the new rank of each old one, -1: lost */
  mgrid_loss_sums sums;
  size_t nmissing;
  mgrid_loss_missing_part *missing; /* [nmissing]; the holders are owned */
  size_t ntensors;
  const char **tensor; /* [ntensors], those that move; of the old plan */
};

/* mgrid_loss_new, also for n 0: nobody is lost, and all keep their places. The policy is not
** asked. */
mgrid_loss *mgrid_loss_decide(mgrid_losses *l, size_t n, const int64_t *lost, mgrid_error *err);

/* --------------------------------------------------------------- places.c */

/* Return the machine that the recipe reads; NULL: none. */
const struct mgrid_machine_model *mgrid_losses_machine(const mgrid_losses *l);
/* Fill x->was and x->is: who takes which place of the next plan. */
mgrid_status mgrid_loss_place(const mgrid_losses *l, const mgrid_next *next, mgrid_loss *x,
                              mgrid_error *err);
/* List the maps to this number of places; first those that keep the most communicators of the old
** plan. Return how many. */
enum { MGRID_LAYOUT_MAPS_MAX = 8 };
size_t mgrid_layout_maps_of(const mgrid_losses *l, int64_t places,
                            mgrid_layout_map map[MGRID_LAYOUT_MAPS_MAX]);
/* Find the map of two layouts that keeps most communicators together. */
mgrid_layout_map mgrid_layout_map_of(const mgrid_losses *l, const mgrid_next *next);
/* Return the bytes that a place of the next plan needs, and *stay: those of them that an old rank
** has. */
int64_t mgrid_next_needs(const mgrid_next *next, int64_t place, int64_t old, int64_t *stay);

/* ---------------------------------------------------------------- loss_print.c */

/* Return a loss as JSON (README.md, "JSON"); NULL: out of memory. */
json_t *mgrid_loss_json(const mgrid_loss *x);

#endif
