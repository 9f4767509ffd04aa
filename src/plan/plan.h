/* SPDX-License-Identifier: MIT
**
** plan.h - what a plan is inside, and one rank's view of it.
*/

/* THE SCHEDULE. All groups of the job have one order: families in schedule order (`first` ones,
** then the others, then `lazy` ones, each in the order of the topology), within a family by round,
** within a round by index. A group equal to an earlier one uses its communicator, if the options of
** both families allow sharing: the earlier one leads. Each rank creates the groups it is in, in
** this order.
**
** NO CYCLIC WAIT. Among the groups not created yet take the first in this order. Each of its
** members has created all its earlier groups, for those come before it in the order, so all of them
** are at this one, and it completes. Nothing is assumed about overlap: the order is total over all
** groups. That members agree on who leads needs no communication: a group in another family equals
** this one for one member exactly if it does for all.
*/

#ifndef MGRID_PLAN_H
#define MGRID_PLAN_H

#include "plan/topology.h"

#include <jansson.h>

struct mgrid_plan {
  atomic_int refs;
  mgrid_content content;
  int *order;  /* [nentries]: entries in schedule order */
  int *shares; /* [nentries]: the earlier entry that leads all its groups, or -1 */
  /* [nentries]: launch order of the first round of an entry: mgrid_group_launch_order */
  int64_t *launch;
  uint64_t digest[2]; /* XXH3-128 of its rules, each with a newline behind it; high half first */
};

/* A group that contains this rank. */
typedef struct mgrid_member {
  int entry;        /* the family: index into the plan's content */
  int64_t group;    /* index in the family */
  int64_t position; /* of this rank */
  int64_t size;     /* ranks of the group */
  /* its communicator: index into mgrid_view.comm; -1 for a group of one rank, or of backend "none"
  ** */
  int comm;
} mgrid_member;

/* A communicator that this rank creates. The fields are of the first group that uses it. */
typedef struct mgrid_creation {
  int entry;        /* the family of that group */
  int64_t group;    /* index in the family */
  int64_t round;    /* of the group: mgrid_family_round */
  int64_t position; /* of this rank */
  int64_t size;     /* ranks of the group */
} mgrid_creation;

/* The plan as one rank sees it. */
typedef struct mgrid_view {
  int64_t rank;
  size_t nmembers, ncomms;
  mgrid_member *member; /* [nmembers], in the order of the topology, then by group */
  mgrid_creation *comm; /* [ncomms], in schedule order */
} mgrid_view;

/* ------------------------------------------------------------------ plan.c */

/* As mgrid_plan_new, and the work is charged to the budget. NULL without an error once the budget
** is exhausted. */
mgrid_plan *mgrid_plan_make(const mgrid_topology *t, mgrid_budget *budget, mgrid_error *err);

/* ------------------------------------------------------------------- share.c */

/* Return whether a group of the later entry may use a communicator of the earlier one. */
bool mgrid_plan_may_share(const mgrid_plan *p, int later, int earlier);
/* As mgrid_plan_count of the whole plan, and the work is charged to the budget. The result means
** nothing once the budget is exhausted. */
mgrid_status mgrid_plan_count_paid(const mgrid_plan *p, mgrid_budget *budget,
                                   mgrid_plan_counts *out, mgrid_error *err);

mgrid_status mgrid_view_init(mgrid_view *v, const mgrid_plan *p, int64_t rank, mgrid_error *err);
void mgrid_view_free(mgrid_view *v);

/* Return the number of groups of an entry that no earlier group leads: the communicators that it
** adds to the job. `round` >= 0 counts only that round. Groups are compared by their modes,
** O(modes). Where these cannot tell (tables of more than 1024 groups, rounds of pairs around a ring
** that their step does not divide, modes that fit badly together), they are compared one by one,
** O(groups). The result means nothing once the budget is exhausted. */
int64_t mgrid_plan_led(const mgrid_plan *p, int entry, int64_t round, mgrid_budget *budget);
/* The same for each round of an entry; led[] is filled up to its number of rounds. */
void mgrid_plan_led_by_round(const mgrid_plan *p, int entry, int64_t led[MGRID_ROUNDS_MAX],
                             mgrid_budget *budget);
/* Count the groups of an entry that an earlier one leads, by the entry of their leader:
** groups[nentries]. groups[entry] counts those that repeat one of its own. The cost is that of
** mgrid_plan_led. */
void mgrid_plan_leaders(const mgrid_plan *p, int entry, int64_t *groups, mgrid_budget *budget);
/* Return whether some groups of entry i, but not all, may be groups of the earlier entry j. */
bool mgrid_plan_rivals(const mgrid_plan *p, int i, int j);

typedef enum mgrid_overlap {
  MGRID_NONE, /* no group */
  MGRID_SOME, /* some groups may be; the rules cannot tell which */
  MGRID_ALL   /* every group */
} mgrid_overlap;
/* Return how many groups of a are groups of b, too, with the members in the same order. Groups of
** one rank do not count. O(modes). */
mgrid_overlap mgrid_groups_within(const mgrid_family *a, const mgrid_family *b);
/* Return whether every group of a of more than one rank occurs in b. Where the modes cannot tell,
** up to 4096 groups are compared one by one. With more groups, or once the budget is exhausted, the
** answer is false. */
bool mgrid_all_within(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget);
/* Return whether the two groups have the same members in the same order. */
bool mgrid_same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t gb);
/* Return the first group of b that equals group ga of a, only groups before `limit`; or -1. */
int64_t mgrid_group_in(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t limit,
                       mgrid_budget *budget);

/* ------------------------------------------------------ concurrent.c, plan.c */

/* Fill p->launch from the lists of concurrent families and p->order. */
mgrid_status mgrid_plan_take_launch(mgrid_plan *p, mgrid_budget *budget, mgrid_error *err);
/* Return the mgrid_group_launch_order of a group of an entry. */
int64_t mgrid_plan_launch(const mgrid_plan *p, int entry, int64_t group);
/* Check that the parent of each family exists and is created before it. */
mgrid_status mgrid_plan_check_parents(const mgrid_plan *p, mgrid_error *err);
/* Check that a group of a family with a parent is inside one group of it, O(members). */
mgrid_status mgrid_plan_check_parent(const mgrid_plan *p, int entry, int64_t group,
                                     mgrid_error *err);

/* ------------------------------------------------------------------ verify.c */

/* mgrid_plan_check checks worlds of up to WHOLE ranks completely. In larger ones it checks SOME
** members of each family, about a quarter as many ranks, and the next member of each of their
** groups. */
enum { MGRID_CHECK_WHOLE = 1 << 20, MGRID_CHECK_SOME = 1024 };

/* The creations of the ranks that were checked or played. */
typedef struct mgrid_created {
  int64_t communicators; /* of the job */
  int64_t memberships;   /* of all ranks in these communicators */
  int64_t most_per_rank; /* communicators of the rank that has the most */
} mgrid_created;

/* Check the premises of the proof above, for all ranks, or with sample > 0 for about `sample` ranks
** spread over the world. Memory does not grow with the world; *out counts what was checked. If a
** premise fails, return MGRID_UNPROVED, with rank, family and group in the message. */
mgrid_status mgrid_plan_verify(const mgrid_plan *p, int64_t sample, mgrid_created *out,
                               mgrid_error *err);

/* The creations of every rank, in the order of that rank. A separate struct, so that tests can
** change it. */
typedef struct mgrid_itinerary {
  int64_t world;
  int64_t *start; /* [world + 1]: rank r makes step[start[r]] .. step[start[r + 1] - 1] */
  mgrid_creation *step;
} mgrid_itinerary;
mgrid_status mgrid_itinerary_of(mgrid_itinerary *it, const mgrid_plan *p, mgrid_error *err);
/* Check that every rank reaches its end, where each waits in each creation until all members are
** there. Else return MGRID_UNPROVED, with rank, family and group in the message. */
mgrid_status mgrid_itinerary_play(const mgrid_itinerary *it, const mgrid_plan *p,
                                  mgrid_created *out, mgrid_error *err);
void mgrid_itinerary_free(mgrid_itinerary *it);
/* The same with the plan's own itinerary. O(members); MGRID_OUT_OF_RANGE above 2^20 ranks. out may
** be NULL. */
mgrid_status mgrid_plan_rehearse(const mgrid_plan *p, mgrid_created *out, mgrid_error *err);

/* ------------------------------------------------------------ laws.c, plan.c */

/* Laws: both families have the same groups (same); every group of a is inside one of b (within); no
** rank is in both (disjoint); every rank is in a group (covers). Else return MGRID_REFUSED with the
** first counterexample, and the names of the families. O(modes); O(members) where no modes tell, as
** for long tables, and then each check costs budget. The result means nothing once the budget is
** exhausted. mgrid_plan_law reads a law from text, "within(tp, node)". */
typedef struct mgrid_law_names {
  const char *a, *b;
} mgrid_law_names;
mgrid_status mgrid_law_same(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget,
                            mgrid_error *err);
mgrid_status mgrid_law_within(const mgrid_family *a, const mgrid_family *b,
                              const mgrid_law_names *names, mgrid_budget *budget, mgrid_error *err);
mgrid_status mgrid_law_disjoint(const mgrid_family *a, const mgrid_family *b,
                                const mgrid_law_names *names, mgrid_budget *budget,
                                mgrid_error *err);
mgrid_status mgrid_law_covers(const mgrid_family *f, mgrid_budget *budget, mgrid_error *err);
mgrid_status mgrid_plan_law(const mgrid_plan *p, const char *law, mgrid_error *err);

/* Return how many ranks are in no group, 0 for a plan without groups, and append which, "6, 8 to
** 15, ...". By modes; where these cannot tell, as for long tables, each rank is checked. -1: the
** world is too large for that. */
int64_t mgrid_plan_idle(const mgrid_plan *p, mgrid_text *which);

/* Append the notes of all items: a line for each possible mistake (item.h). */
void mgrid_plan_notes(const mgrid_plan *p, bool listed, mgrid_text *out);

/* Append the options of families that their backend does not support, "timeout of 3 families, nccl
** of 1 family", or nothing. `backend` makes the families that ask for no other. */
void mgrid_plan_unheeded(const mgrid_plan *p, const mgrid_descriptor *backend, mgrid_text *t);

/* ------------------------------------------------------------------ diff.c */

/* One difference of two plans. */
typedef struct mgrid_difference {
  char sign;               /* + new, - gone, ~ changed */
  const char *what, *name; /* "family", "tp" */
  const char *from, *to;   /* as text; NULL: it is not in that plan, or there is nothing to say */
} mgrid_difference;

/* Receives each difference; its texts last until the call returns. */
typedef void mgrid_tell(void *ud, const mgrid_difference *d);

/* As mgrid_plan_diff, and calls `tell` for each difference; tell and sink may be NULL. */
mgrid_status mgrid_plan_differences(const mgrid_plan *a, const mgrid_plan *b, int64_t rank,
                                    mgrid_change *change, mgrid_tell *tell, mgrid_sink sink,
                                    void *ud, mgrid_error *err);

/* ----------------------------------------------- plan_print.c, plan_read.c, why.c */

/* Return the number of lines of a plan: its world, parameters, functions and grids, then its
** families, then lists of concurrent families and items. */
size_t mgrid_plan_nlines(const mgrid_plan *p);
/* Return the first line of a family. */
size_t mgrid_plan_first_family(const mgrid_plan *p);
size_t mgrid_plan_first_list(const mgrid_plan *p); /* the line after the families */
/* Append a line of the canonical text; nothing for an item that no group depends on. */
void mgrid_plan_line(const mgrid_plan *p, size_t i, mgrid_text *t);
/* Append a line as an object of JSON, from which plan_read.c makes it again and of which the digest
** is made. False, and nothing, for an item that no group depends on. */
bool mgrid_plan_rule(const mgrid_plan *p, size_t i, mgrid_text *t);
mgrid_status mgrid_plan_take_digest(mgrid_plan *p, mgrid_error *err);
/* Return the first family from `from` on, after this one, that shares its communicators; -1: none
** does. */
int mgrid_plan_sharer(const mgrid_plan *p, int entry, int from);
/* As mgrid_plan_print_json, with the resources of NCCL at a site. */
mgrid_status mgrid_plan_json_at(const mgrid_plan *p, int64_t rank, const mgrid_site *site,
                                mgrid_sink sink, void *ud, mgrid_error *err);
/* The format of saved plans; it changes when an older moongrid would read another plan from the
** rules. */
enum { MGRID_SAVED_FORMAT = 1 };
/* Return whether a text starts as a plan does, and not as a recipe. MGRID_SAVED_MAX: most bytes of
** one that is read. */
enum { MGRID_SAVED_MAX = 1 << 24 };
bool mgrid_plan_is_saved(const char *text, size_t length);
/* Make the answer of mgrid_plan_why as JSON; *out is a new reference. */
mgrid_status mgrid_plan_why_json(const mgrid_plan *p, int64_t a, int64_t b, json_t **out,
                                 mgrid_error *err);

/* --------------------------------------------------------------- resources.c */

/* The numbers of mgrid_resources by name; ends with a NULL name. */
typedef struct mgrid_resources_row {
  const char *name;
  size_t at;
} mgrid_resources_row;
extern const mgrid_resources_row mgrid_resources_rows[];
static inline int64_t *mgrid_resources_number(const mgrid_resources *r,
                                              const mgrid_resources_row *row) {
  return (int64_t *)((uintptr_t)r + row->at);
}

enum { MGRID_MACHINE_RANKS_MAX = 4096 }; /* of an mgrid_site */
/* Compute the demand of a communicator of this family, with `size` ranks, `local` of them on one
** machine. */
void mgrid_entry_demand(const mgrid_entry *e, int64_t size, int64_t local, const mgrid_site *site,
                        mgrid_demand *out);
/* As mgrid_plan_gpu_memory for any rank, at a site. Add to *out, field by field, the most of all
** ranks. Ranks at the same positions of groups take the same, so one of each kind is checked. Where
** the modes cannot tell the kinds, or there are more than 1024, the result is an upper bound. */
void mgrid_plan_memory_bound(const mgrid_plan *p, const mgrid_site *site, mgrid_gpu_memory *out);

#endif
