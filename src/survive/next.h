/* SPDX-License-Identifier: MIT
**
** next.h - what a job becomes when ranks are lost. This needs no MPI and no Lua: only a plan, a
** runtime that makes plans for fewer ranks, and lists of ranks.
**
** A place of a layout is a rank of it: the places are all ranks of a plan except its spares,
** ascending. A next plan has its places first, so place i is rank i. The survivors that it does not
** use follow.
*/
#ifndef MGRID_NEXT_H
#define MGRID_NEXT_H

#include "plan/plan.h"
#include "tensors/between_plans.h"

#include <jansson.h>

/* ---------------------------------------------------------------- spares.c */

/* The spares of a plan. They are an item. */
typedef struct mgrid_spares {
  atomic_int refs;
  int64_t world;
  mgrid_family *f; /* one group, which has the spares, ascending */
} mgrid_spares;
extern const mgrid_item_kind mgrid_spares_kind;
#define MGRID_SPARES_NAME "spares"
/* Make spares of a list of n ranks. Take the list over, also on failure; NULL means out of
** memory. */
mgrid_spares *mgrid_spares_new(int64_t world, int64_t n, int32_t *ranks, mgrid_error *err);
/* Make spares of the last `count` ranks of each domain of a level, such as "node".
** MGRID_UNKNOWN_NAME with the nearest level. */
struct mgrid_machine_model;
mgrid_spares *mgrid_spares_per(const struct mgrid_machine_model *m, const char *level,
                               int64_t count, int64_t world, mgrid_error *err);
/* Refuse a family that contains a spare. */
mgrid_status mgrid_spares_check(const mgrid_spares *x, const mgrid_content *c, mgrid_error *err);
/* Return the spares of a plan. NULL: it has none. */
const mgrid_spares *mgrid_content_spares(const mgrid_content *c);

/* ---------------------------------------------------------------- next.c */

/* The communicators of a plan, each once: those of all groups of more than one rank, except of
** families that have none. */
typedef struct mgrid_comm_list {
  size_t n;
  int32_t *entry;    /* [n]: a family that has the communicator */
  int64_t *start;    /* [n + 1]: where its members start */
  int32_t *member;   /* its ranks, in order */
  mgrid_index index; /* of the members */
} mgrid_comm_list;
mgrid_status mgrid_comm_list_make(mgrid_comm_list *c, const mgrid_plan *p, mgrid_error *err);
void mgrid_comm_list_free(mgrid_comm_list *c);
uint64_t mgrid_comm_hash(const int32_t *member, int64_t n);
/* Return a communicator of c with these members in this order, whose options allow sharing with
** `choice`; -1: there is none. */
int32_t mgrid_comm_find(const mgrid_comm_list *c, const mgrid_plan *p, const int32_t *member,
                        int64_t n, uint64_t hash, const mgrid_choice *choice);

#define MGRID_LOSS_POLICY "on_lost"
/* the words for answers, indexed by mgrid_loss_answer */
extern const char *const mgrid_loss_answers[];

/* How places of the old layout become places of the new one. Both layouts are read as a grid of a x
** m x b places, fastest first. The middle size m shrinks from `was` to `is`. */
typedef struct mgrid_layout_map {
  int64_t a, was, is, b;
} mgrid_layout_map;

/* The bytes that a place of the next layout needs, and those of them that an old rank has. */
typedef struct mgrid_next_bytes {
  int64_t need, stay;
  bool known;
} mgrid_next_bytes;

/* A plan for a smaller world. It does not depend on which ranks are lost. */
typedef struct mgrid_next {
  struct mgrid_next *after; /* the next in the list of all */
  int64_t survivors;        /* how many ranks the plan has */
  bool shrinks;             /* false: it has all places of the old layout */
  char *params;             /* arguments that replace the plan's, one on each line; "": none */
  mgrid_plan *plan;         /* NULL: no layout is accepted, and the next field says why */
  mgrid_error why;
  int64_t places; /* how many ranks the layout has */
  mgrid_layout_map map;
  size_t nargs;
  char **args; /* [nargs]: all arguments; owned */
  mgrid_comm_list comms;
  mgrid_pairs pairs; /* pairs of tensors, with ranks of both plans; n 0: there are none */
  bool paired;
  int64_t uncounted; /* how many tensors are in none of these pairs */
  /* [places x old ranks]: as far as it is known; NULL: there are too many to keep */
  mgrid_next_bytes *bytes;
} mgrid_next;

struct mgrid_losses {
  mgrid_runtime *rt; /* owned */
  mgrid_plan *plan;
  char *how;
  size_t nargs, nchanged;
  char **args, **changed;
  char *file; /* of parameters */
  int64_t world;
  int64_t places; /* how many ranks the layout has */
  int32_t *rank;  /* [places], ascending */
  int32_t *place; /* [world]: -1: it is a spare */
  mgrid_comm_list comms;
  mgrid_next *next;     /* the plans that were made so far */
  mgrid_state *state;   /* a dry state, for the policy */
  mgrid_policy *policy; /* on_lost; NULL: the recipe does not have it, or the caller answers */
};

/* Make a plan for a world with exactly these spares, instead of the recipe's. Take `spare` over,
** also on failure. */
mgrid_plan *mgrid_plan_sparing(mgrid_runtime *rt, const char *file, int64_t world, int64_t nspares,
                               int32_t *spare, size_t n, const char *const *args, mgrid_error *err);
/* Make a plan for a world whose last ranks, after `places`, are spares. `at`: the place of each
** rank in the machine; NULL: the recipe does not read a machine. */
mgrid_plan *mgrid_next_plan(mgrid_losses *l, int64_t world, int64_t places, size_t n,
                            const char *const *args, const int32_t *at, mgrid_error *err);
/* Return the plan for these survivors, made now or before. NULL: *err says why. If the recipe reads
** the machine, x also gets the new ranks. */
mgrid_next *mgrid_next_of(mgrid_losses *l, mgrid_loss *x, bool shrinks, size_t n,
                          char *const *params, mgrid_error *err);
/* List the tensors of `from` that `to` has with the same shape. The caller frees the list. The
** names belong to `from`. */
const char **mgrid_tensors_alike(const mgrid_plan *from, const mgrid_plan *to, size_t *shared,
                                 mgrid_error *err);

/* The recipe reads the machine. If it also accepts the survivors where next->map puts them, place
** them so. */
mgrid_status mgrid_loss_place_again(mgrid_losses *l, const mgrid_next *next, mgrid_loss *x,
                                    mgrid_error *err);

/* Ask a runtime for an item that was lent to it: *x gets one more owner; NULL: there is none. Or,
** with a policy, ask for its file and line. lua/spares_words.c answers. */
typedef struct mgrid_lent_request {
  const mgrid_item_kind *kind;
  void *x;
  const mgrid_policy *policy;
  /* an error about the policy's answer, to which the file and line are added */
  mgrid_error *placed;
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
  int32_t *is;   /* [world]: the new rank of each old rank; -1: it is lost */
  mgrid_loss_sums sums;
  size_t nmissing;
  mgrid_loss_missing_part *missing; /* [nmissing]: the holders are owned */
  size_t ntensors;
  const char **tensor; /* [ntensors]: the tensors that move; the names belong to the old plan */
};

/* As mgrid_loss_new, but n may be 0: no rank is lost, all keep their places, and the policy is not
** asked. */
mgrid_loss *mgrid_loss_decide(mgrid_losses *l, size_t n, const int64_t *lost, mgrid_error *err);

/* --------------------------------------------------------------- places.c */

/* Return the machine that the recipe reads; NULL: none. */
const struct mgrid_machine_model *mgrid_losses_machine(const mgrid_losses *l);
/* Fill x->was and x->is: which survivor takes which place of the next plan. */
mgrid_status mgrid_loss_place(const mgrid_losses *l, const mgrid_next *next, mgrid_loss *x,
                              mgrid_error *err);
/* List the maps of layouts to this number of places. Those that keep the most communicators of the
** old plan come first. Return how many they are. */
enum { MGRID_LAYOUT_MAPS_MAX = 8 };
size_t mgrid_layout_maps_of(const mgrid_losses *l, int64_t places,
                            mgrid_layout_map map[MGRID_LAYOUT_MAPS_MAX]);
/* Find the map between two layouts that keeps the most communicators together. */
mgrid_layout_map mgrid_layout_map_of(const mgrid_losses *l, const mgrid_next *next);
/* Return how many bytes a place of the next plan needs. *stay: how many of them an old rank has. */
int64_t mgrid_next_needs(const mgrid_next *next, int64_t place, int64_t old, int64_t *stay);

/* ---------------------------------------------------------------- loss_print.c */

/* Return a loss as JSON (README.md, "JSON"); NULL: out of memory. */
json_t *mgrid_loss_json(const mgrid_loss *x);

#endif
