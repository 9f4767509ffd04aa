/* SPDX-License-Identifier: MIT
**
** next.h - decides what a job becomes when ranks are lost, from a plan, a runtime that makes plans
** for fewer ranks, and the list of lost ranks.
**
** The layout of a plan is all its ranks but the spares. Its places are these ranks, numbered in
** ascending order. In a next plan place i is rank i, and the spares follow.
*/
#ifndef MGRID_NEXT_H
#define MGRID_NEXT_H

#include "plan/plan.h"
#include "tensors/between_plans.h"

#include <jansson.h>

/* ---------------------------------------------------------------- spares.c */

/* The spares of a plan, an item of it. */
typedef struct mgrid_spares {
  atomic_int refs;
  int64_t world;
  mgrid_family *f; /* a family of one group: the spares, ascending. NULL: no spares */
} mgrid_spares;
extern const mgrid_item_kind mgrid_spares_kind;
#define MGRID_SPARES_NAME "spares"
/* Make spares of a list of n ranks, in ascending order. Take the list over, also on failure. If the
** list is NULL, fail with MGRID_NO_MEMORY. */
mgrid_spares *mgrid_spares_new(int64_t world, int64_t n, int32_t *ranks, mgrid_error *err);
/* Make spares of the last `count` ranks of each domain of a level, such as "node". */
struct mgrid_machine_model;
mgrid_spares *mgrid_spares_per(const struct mgrid_machine_model *m, const char *level,
                               int64_t count, int64_t world, mgrid_error *err);
/* Refuse a family that contains a spare. */
mgrid_status mgrid_spares_check(const mgrid_spares *x, const mgrid_content *c, mgrid_error *err);
/* Return the spares of a plan. NULL: it has none. */
const mgrid_spares *mgrid_content_spares(const mgrid_content *c);

/* ---------------------------------------------------------------- next.c */

/* The communicators of a plan, each once: of all groups of more than one rank, but not of families
** with the backend "none". */
typedef struct mgrid_comm_list {
  size_t n;
  int32_t *entry; /* [n]: a family that has the communicator */
  int64_t *start; /* [n + 1]: where the ranks of a communicator start in `member` */
  /* the ranks of communicator 0, in group order; then those of communicator 1; ... */
  int32_t *member;
  mgrid_index index; /* finds a communicator by its ranks */
} mgrid_comm_list;
uint64_t mgrid_comm_hash(const int32_t *member, int64_t n);
/* Return the index of a communicator of c with these members in this order, whose options allow
** sharing with `choice`; -1: there is none. */
int32_t mgrid_comm_find(const mgrid_comm_list *c, const mgrid_plan *p, const int32_t *member,
                        int64_t n, uint64_t hash, const mgrid_choice *choice);

#define MGRID_LOSS_POLICY "on_lost"
/* the names of the answers, indexed by mgrid_loss_answer */
extern const char *const mgrid_loss_answers[];

/* How places of the old layout become places of the new one. Both layouts are taken as a grid of
** a x m x b places, the first dim fastest. The size m shrinks from `was` to `is`. */
typedef struct mgrid_layout_map {
  int64_t a, was, is, b;
} mgrid_layout_map;

/* The bytes that a place of the next layout needs, and how many of these an old rank has. */
typedef struct mgrid_next_bytes {
  int64_t need, stay;
  bool known; /* false: not computed yet */
} mgrid_next_bytes;

/* A plan for the survivors. Unless the recipe reads the machine, it does not depend on which ranks
** are lost, but only on their number. */
typedef struct mgrid_next {
  struct mgrid_next *after; /* the next in the list of all */
  int64_t survivors;        /* how many ranks the plan has, with spares */
  bool shrinks;             /* layouts smaller than the largest possible one were tried, too */
  /* arguments that replace those of the old plan, one on each line; or "" */
  char *params;
  mgrid_plan *plan; /* NULL: the recipe accepts no layout, and the next field says why */
  mgrid_error why;
  int64_t places; /* of the layout */
  mgrid_layout_map map;
  size_t nargs;
  char **args; /* [nargs]: all arguments; owned */
  mgrid_comm_list comms;
  bool paired;       /* the two plans have tensors in common */
  mgrid_pairs pairs; /* if paired: these tensors */
  int64_t uncounted; /* how many tensors of the two plans are not among them */
  /* [places x old ranks]: what was computed so far; NULL: nothing yet, or too many to keep */
  mgrid_next_bytes *bytes;
} mgrid_next;

struct mgrid_losses {
  mgrid_runtime *rt; /* owned */
  mgrid_plan *plan;
  char *how; /* the caller's answer to every loss, or NULL */
  size_t nargs, nchanged;
  /* the plan's arguments; the parameters that the caller's answer changes */
  char **args, **changed;
  char *file; /* a file of parameters, or NULL */
  int64_t world;
  int64_t places; /* of the layout */
  int32_t *rank;  /* [places]: the rank of each place, ascending */
  int32_t *place; /* [world]: the place of each rank; -1: it is a spare */
  mgrid_comm_list comms;
  mgrid_next *next;   /* the plans that were made so far */
  mgrid_state *state; /* a dry state, for the policy */
  /* on_lost; NULL: the recipe does not have this policy, or `how` is the answer */
  mgrid_policy *policy;
};

/* Make a plan for a world with exactly these spares, instead of those that the recipe asks for.
** Take `spare` over, also on failure. */
mgrid_plan *mgrid_plan_sparing(mgrid_runtime *rt, const char *file, int64_t world, int64_t nspares,
                               int32_t *spare, size_t n, const char *const *args, mgrid_error *err);
/* Make a plan for a world whose first `places` ranks are the layout, and whose other ranks are
** spares. `at`: where each rank is in the machine; NULL: the recipe does not read one. */
mgrid_plan *mgrid_next_plan(mgrid_losses *l, int64_t world, int64_t places, size_t n,
                            const char *const *args, const int32_t *at, mgrid_error *err);
/* Return the plan for the survivors of x, made now or before. NULL: *err says why. If the recipe
** reads the machine and accepts a layout, this also fills x->was and x->is. */
mgrid_next *mgrid_next_of(mgrid_losses *l, mgrid_loss *x, bool shrinks, size_t n,
                          char *const *params, mgrid_error *err);
/* List the tensors of `from` that `to` has with the same element type and axes. The caller frees
** the list. The names belong to `from`. */
const char **mgrid_tensors_alike(const mgrid_plan *from, const mgrid_plan *to, size_t *shared,
                                 mgrid_error *err);

/* For a recipe that reads the machine: place the survivors by next->map, if the recipe accepts
** these places, too. Otherwise leave the survivors as mgrid_next_of has placed them. */
mgrid_status mgrid_loss_place_again(mgrid_losses *l, const mgrid_next *next, mgrid_loss *x,
                                    mgrid_error *err);

/* A request to mgrid_runtime_serve, which lua/spares_words.c answers. */
typedef struct mgrid_lent_request {
  const mgrid_item_kind *kind;
  /* becomes the item of this kind that was lent to the runtime, with one more owner; unchanged if
  ** there is none */
  void *x;
  const mgrid_policy *policy; /* NULL: none */
  mgrid_error *placed;        /* if there is a policy: gets its file and line */
} mgrid_lent_request;

/* ---------------------------------------------------------------- loss.c */

struct mgrid_loss {
  mgrid_loss_answer how;
  mgrid_text why;
  mgrid_text params;      /* the parameters that the answer changes, one on each line */
  mgrid_plan *old, *plan; /* owned; plan NULL: the job stops */
  int64_t world, survivors;
  size_t nlost;
  int64_t *lost; /* [nlost], ascending */
  int32_t *was;  /* [survivors]: the old rank of each new rank; NULL: the job stops */
  int32_t *is;   /* [world]: the new rank of each old rank; -1: it is lost, or the job stops */
  mgrid_loss_sums sums;
  size_t nmissing;
  mgrid_loss_missing_part *missing; /* [nmissing]: the holders are owned */
  size_t ntensors;
  /* [ntensors]: the tensors that both plans have, which move; the names belong to the old plan */
  const char **tensor;
};

/* Do what mgrid_loss_new does. n may also be 0: no rank is lost, all keep their places, and the
** policy is not asked. */
mgrid_loss *mgrid_loss_decide(mgrid_losses *l, size_t n, const int64_t *lost, mgrid_error *err);

/* --------------------------------------------------------------- places.c */

/* Return the machine that the recipe reads; NULL: none. */
const struct mgrid_machine_model *mgrid_losses_machine(const mgrid_losses *l);
/* Fill x->was and x->is: decide which survivor takes which place of the next plan. */
mgrid_status mgrid_loss_place(const mgrid_losses *l, const mgrid_next *next, mgrid_loss *x,
                              mgrid_error *err);
/* List maps from the old layout to a layout of `places` places. Maps that keep the most
** communicators of the old plan (counted by their members, in four random losses) come first.
** Return the number of maps, 1 or more. */
enum { MGRID_LAYOUT_MAPS_MAX = 8 };
size_t mgrid_layout_maps_of(const mgrid_losses *l, int64_t places,
                            mgrid_layout_map map[MGRID_LAYOUT_MAPS_MAX]);
/* Find the map with which the next plan keeps the most communicators of the old one (counted by
** their members), or if it keeps none, the most bytes. */
mgrid_layout_map mgrid_layout_map_of(const mgrid_losses *l, const mgrid_next *next);
/* Return how many bytes a place of the next plan needs. *stay: how many of them an old rank has. */
int64_t mgrid_next_needs(const mgrid_next *next, int64_t place, int64_t old, int64_t *stay);

/* ---------------------------------------------------------------- loss_print.c */

/* Return a loss as JSON (README.md, "JSON"); NULL: out of memory. */
json_t *mgrid_loss_json(const mgrid_loss *x);

#endif
