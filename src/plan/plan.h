/* SPDX-License-Identifier: MIT
**
** plan.h - the inside of a plan, and one rank's view of it.
*/

/* THE SCHEDULE. All groups of the job have one order: families in schedule order (`first` ones,
** then the others, then `lazy` ones, each in the order of the topology), within a family by round
** (mgrid_family_rounds), within a round by index. If a group equals an earlier one, and the options
** of both families allow sharing, both use one communicator: the earlier group leads the later one.
** So a communicator is created for each group that no other leads: this is a creation. Each rank
** makes the creations of its own groups, in this order.
**
** NO CYCLIC WAIT. Take the first group, in this order, that is not created yet. All earlier groups
** of its members are created, because they come before it. So all its members are at this group,
** and it completes. Groups may overlap in any way, because the order is total over all groups.
** Members need not communicate to agree on the leader of a group: the members of two equal groups
** are the same ranks, and each of them finds in the plan that the groups are equal.
*/

#ifndef MGRID_PLAN_H
#define MGRID_PLAN_H

#include "plan/topology.h"

#include <jansson.h>

struct mgrid_plan {
  atomic_int refs;
  mgrid_content content;
  int *order;  /* [nentries]: entries in schedule order */
  int *shares; /* [nentries]: the earlier entry whose groups lead all groups of this entry, or -1 */
  /* [nentries]: the launch order (mgrid_group_launch_order) of the first round of an entry */
  int64_t *launch;
  /* XXH3-128 of the plan's rules, each with a newline after it; high half first */
  uint64_t digest[2];
};

/* A group that contains this rank. */
typedef struct mgrid_member {
  int entry;        /* the family: index into the plan's content */
  int64_t group;    /* index in the family */
  int64_t position; /* of this rank */
  int64_t size;     /* ranks of the group */
  /* its communicator: index into mgrid_view.comm. -1: the group has one rank, or its backend is
  ** "none"
  */
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

/* As mgrid_plan_new. Charge the work to the budget. Return NULL without an error once the budget is
** exhausted. */
mgrid_plan *mgrid_plan_make(const mgrid_topology *t, mgrid_budget *budget, mgrid_error *err);

/* ------------------------------------------------------------------- share.c */

/* Return whether a group of the later entry may use a communicator of the earlier one. */
bool mgrid_plan_may_share(const mgrid_plan *p, int later, int earlier);
/* As mgrid_plan_count of the whole plan. Charge the work to the budget; once the budget is
** exhausted, the result means nothing. */
mgrid_status mgrid_plan_count_paid(const mgrid_plan *p, mgrid_budget *budget,
                                   mgrid_plan_counts *out, mgrid_error *err);

mgrid_status mgrid_view_init(mgrid_view *v, const mgrid_plan *p, int64_t rank, mgrid_error *err);
void mgrid_view_free(mgrid_view *v);

/* Return the entry with the group that leads this one; -1: none does, and the group has a
** communicator of its own. It is the entry itself if the group repeats another of its groups. */
int mgrid_plan_leader(const mgrid_plan *p, int entry, int64_t group);
/* Return the number of groups of an entry that no earlier group leads: these are the communicators
** that the entry adds to the job. Groups of one rank do not count. `round` >= 0: count only that
** round. Groups are compared by their modes, in O(modes), or else one by one, in O(groups): in
** tables of more than 1024 groups, in a round of pairs that modes do not give (classes.h), and if
** comparing modes would take too long. The result means nothing once the budget is exhausted. */
int64_t mgrid_plan_led(const mgrid_plan *p, int entry, int64_t round, mgrid_budget *budget);
/* Set led[round] to the same number, for each round of an entry. */
void mgrid_plan_led_by_round(const mgrid_plan *p, int entry, int64_t led[MGRID_ROUNDS_MAX],
                             mgrid_budget *budget);
/* Count for each earlier entry how many groups of this entry it leads: groups[nentries].
** groups[entry] counts groups that repeat another group of the same entry. The cost is that of
** mgrid_plan_led. */
void mgrid_plan_leaders(const mgrid_plan *p, int entry, int64_t *groups, mgrid_budget *budget);
/* Return whether groups of the earlier entry j may lead groups of entry i. If j itself shares, it
** leads none: an entry before j leads all its groups. */
bool mgrid_plan_rivals(const mgrid_plan *p, int i, int j);

typedef enum mgrid_overlap {
  MGRID_NONE, /* no group */
  MGRID_SOME, /* possibly some; the rules cannot tell which */
  MGRID_ALL   /* every group */
} mgrid_overlap;
/* Return how many groups of a are also groups of b, with their members in the same order. Groups of
** one rank do not count. O(modes). */
mgrid_overlap mgrid_groups_within(const mgrid_family *a, const mgrid_family *b);
/* Return whether every group of a occurs in b; groups of one rank do not count. Where the modes
** cannot tell, up to 4096 groups are compared one by one. For more groups the answer is false. Once
** the budget is exhausted, the answer means nothing. */
bool mgrid_all_within(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget);
/* Return whether the two groups have the same members in the same order. */
bool mgrid_same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t gb);
/* Return the first group of b that equals group ga of a, or -1. Look only at groups before
** `limit`. */
int64_t mgrid_group_in(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t limit,
                       mgrid_budget *budget);

/* ------------------------------------------------------ concurrent.c, plan.c */

/* Fill p->launch from the lists of concurrent families and p->order. */
mgrid_status mgrid_plan_take_launch(mgrid_plan *p, mgrid_budget *budget, mgrid_error *err);
/* Return the mgrid_group_launch_order of a group of an entry. */
int64_t mgrid_plan_launch(const mgrid_plan *p, int entry, int64_t group);
/* Check that a group of a family with a parent is inside one group of the parent. O(members). */
mgrid_status mgrid_plan_check_parent(const mgrid_plan *p, int entry, int64_t group,
                                     mgrid_error *err);

/* ------------------------------------------------------------------ verify.c */

/* mgrid_plan_check checks worlds of up to MGRID_CHECK_WHOLE ranks completely. In larger worlds it
** checks MGRID_CHECK_SOME members of each family, and the creations of about MGRID_CHECK_SOME / 4
** ranks. For each creation of such a rank, it also checks that the next member makes it. */
enum { MGRID_CHECK_WHOLE = 1 << 20, MGRID_CHECK_SOME = 1024 };

/* What a check or a rehearsal counts. It looks at all ranks, or at some. */
typedef struct mgrid_created {
  int64_t communicators; /* whose first member it looks at */
  int64_t memberships;   /* communicators of each of these ranks, added up */
  int64_t most_per_rank; /* communicators of the rank that has the most */
} mgrid_created;

/* Check the premises of the proof above: for all ranks, or with sample > 0 for about `sample` ranks
** spread over the world. The memory does not grow with the world. If a premise fails, return
** MGRID_UNPROVED, with rank, family and group in the message. */
mgrid_status mgrid_plan_verify(const mgrid_plan *p, int64_t sample, mgrid_created *out,
                               mgrid_error *err);

/* The creations of every rank, in the order in which the rank makes them. Tests change this struct,
** to see that a wrong order is found. */
typedef struct mgrid_itinerary {
  int64_t world;
  int64_t *start; /* [world + 1]: rank r makes step[start[r]] .. step[start[r + 1] - 1] */
  mgrid_creation *step;
} mgrid_itinerary;
mgrid_status mgrid_itinerary_of(mgrid_itinerary *it, const mgrid_plan *p, mgrid_error *err);
/* Let each rank wait in each of its creations until all members are there, and check that every
** rank reaches its end. If not, return MGRID_UNPROVED, with rank, family and group in the
** message. */
mgrid_status mgrid_itinerary_play(const mgrid_itinerary *it, const mgrid_plan *p,
                                  mgrid_created *out, mgrid_error *err);
void mgrid_itinerary_free(mgrid_itinerary *it);
/* Play the plan's own itinerary. O(members); MGRID_OUT_OF_RANGE above 2^20 ranks. out may be
** NULL. */
mgrid_status mgrid_plan_rehearse(const mgrid_plan *p, mgrid_created *out, mgrid_error *err);

/* ------------------------------------------------------------ laws.c, plan.c */

/* Laws. same: both families have equal groups in the same order. within: every group of a is inside
** one of b. disjoint: no rank is in both. covers: every rank is in a group. If a law does not hold,
** return MGRID_REFUSED with the first counterexample; messages of `within` and `disjoint` call the
** families by `names`. O(modes), or O(members) if modes cannot tell, as for long tables. Charge the
** work to the budget; the result means nothing once the budget is exhausted. mgrid_plan_law reads a
** law from text, "within(tp, node)". */
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

/* Return how many ranks are in no group, and append the first of them, "6, 8 to 15, ...". Ranks
** that an item keeps out of all groups, such as spares, do not count. Return 0 for a plan without
** families. If modes cannot tell, as for long tables, check each rank; return -1 if the world is
** too large for that. */
int64_t mgrid_plan_idle(const mgrid_plan *p, mgrid_text *which);

/* Append the notes of all items (item.h). */
void mgrid_plan_notes(const mgrid_plan *p, bool listed, mgrid_text *out);

/* Append which options have no effect because the family's backend does not support them, "timeout
** of 3 families, nccl of 1 family", or nothing. `backend` makes the families that name no other. */
void mgrid_plan_unheeded(const mgrid_plan *p, const mgrid_descriptor *backend, mgrid_text *t);

/* ------------------------------------------------------------------ diff.c */

/* One difference of two plans. */
typedef struct mgrid_difference {
  char sign;               /* + new, - gone, ~ changed */
  const char *what, *name; /* "family", "tp" */
  /* its text in the first and the second plan; NULL: it is not there, or there is nothing to say */
  const char *from, *to;
} mgrid_difference;

/* Called for each difference. Its texts last until the call returns. */
typedef void mgrid_tell(void *ud, const mgrid_difference *d);

/* As mgrid_plan_diff, but also call `tell` for each difference. tell and sink may be NULL. */
mgrid_status mgrid_plan_differences(const mgrid_plan *a, const mgrid_plan *b, int64_t rank,
                                    mgrid_change *change, mgrid_tell *tell, mgrid_sink sink,
                                    void *ud, mgrid_error *err);

/* ----------------------------------------------- plan_print.c, plan_read.c, why.c */

/* Return the number of lines of a plan. They are its world, parameters, functions and grids; its
** families; its lists of concurrent families and its items. */
size_t mgrid_plan_nlines(const mgrid_plan *p);
/* Return the index of the first line of a family. */
size_t mgrid_plan_first_family(const mgrid_plan *p);
size_t mgrid_plan_first_list(const mgrid_plan *p); /* the line after the families */
/* Append line i of the canonical text. Append nothing for an item on which no group depends. */
void mgrid_plan_line(const mgrid_plan *p, size_t i, mgrid_text *t);
/* Append line i as a JSON object: its rule. plan_read.c makes the line again from its rule, and the
** digest is made of the rules. Return false and append nothing for an item on which no group
** depends. */
bool mgrid_plan_rule(const mgrid_plan *p, size_t i, mgrid_text *t);
mgrid_status mgrid_plan_take_digest(mgrid_plan *p, mgrid_error *err);
/* Return the first entry, from index `from` on, that shares the communicators of this entry; -1:
** none. */
int mgrid_plan_sharer(const mgrid_plan *p, int entry, int from);
/* As mgrid_plan_print_json, but with the resources of NCCL at a site. */
mgrid_status mgrid_plan_json_at(const mgrid_plan *p, int64_t rank, const mgrid_site *site,
                                mgrid_sink sink, void *ud, mgrid_error *err);
/* The format of saved plans. It changes when an older moongrid would make another plan from the
** rules. */
enum { MGRID_SAVED_FORMAT = 1 };
enum { MGRID_SAVED_MAX = 1 << 24 }; /* most bytes of a saved plan */
/* Return whether a text starts like a saved plan, or like the text of mgrid_plan_print, and not
** like a recipe. */
bool mgrid_plan_is_saved(const char *text, size_t length);
/* Make the answer of mgrid_plan_why as JSON; *out is a new reference. */
mgrid_status mgrid_plan_why_json(const mgrid_plan *p, int64_t a, int64_t b, json_t **out,
                                 mgrid_error *err);

/* --------------------------------------------------------------- resources.c */

/* The numbers of mgrid_resources, with their names. The last name is NULL. */
typedef struct mgrid_resources_row {
  const char *name;
  size_t at;
} mgrid_resources_row;
extern const mgrid_resources_row mgrid_resources_rows[];
static inline int64_t *mgrid_resources_number(const mgrid_resources *r,
                                              const mgrid_resources_row *row) {
  return (int64_t *)((uintptr_t)r + row->at);
}

enum { MGRID_MACHINE_RANKS_MAX = 4096 }; /* most ranks of a machine in an mgrid_site */
/* Compute what a communicator of this family takes. It has `size` ranks, `local` of them on one
** machine. If the family names no backend, take the backend that needs the most GPU memory. */
void mgrid_entry_demand(const mgrid_entry *e, int64_t size, int64_t local, const mgrid_site *site,
                        mgrid_demand *out);

#endif
