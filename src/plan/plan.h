/* SPDX-License-Identifier: MIT
**
** plan.h - what a plan is inside, and one rank's view of it.
**
** THE SCHEDULE. All groups of the job have one order: families in schedule order (`first`
** ones, then the others, then `lazy` ones, each in the order of the topology), within a
** family by round, within a round by index. A group that equals an earlier one, with
** options that may share, is led by it: there is no second creation. Each rank creates the
** groups it is in, in this order.
** No cyclic wait: among the groups not created yet take the first in this order. Each of
** its members has created all its earlier groups, for those come before it in the order,
** so all of them are at this one, and it completes. Nothing is assumed about overlap: the
** order is total over all groups. That members agree on who leads needs no communication:
** a group in another family equals this one for one member exactly if it does for all.
*/
#ifndef MGRID_PLAN_H
#define MGRID_PLAN_H

#include "plan/topology.h"

#include <jansson.h>

struct mgrid_plan {
  atomic_int    refs;
  mgrid_content content;
  int          *order;     /* [nentries]: entries in schedule order */
  int          *shares;    /* [nentries]: the earlier entry that leads all its groups, or -1 */
  int64_t      *launch;    /* [nentries]: launch order of the first round of an entry: mgrid_group_launch_order */
  uint64_t      digest[2]; /* XXH3-128 of the canonical text, high half first */
};

/* A group that this rank is in. */
typedef struct mgrid_member {
  int     entry;    /* the family: index into the plan's content */
  int64_t group;    /* index in the family */
  int64_t position; /* of this rank */
  int64_t size;     /* ranks of the group */
  int     comm;     /* its communicator: index into mgrid_view.comm; -1 for a group of one rank, or of backend "none" */
} mgrid_member;

/* A communicator that this rank creates. The fields are of the first group that uses it. */
typedef struct mgrid_creation {
  int     entry;    /* the family of that group */
  int64_t group;    /* index in the family */
  int64_t round;    /* of the group: mgrid_family_round */
  int64_t position; /* of this rank */
  int64_t size;     /* ranks of the group */
} mgrid_creation;

/* The plan as one rank sees it. */
typedef struct mgrid_view {
  int64_t         rank;
  size_t          nmembers, ncomms;
  mgrid_member   *member; /* [nmembers], in the order of the topology, then by group */
  mgrid_creation *comm;   /* [ncomms], in schedule order */
} mgrid_view;

/* ------------------------------------------------------------------ plan.c */

/* As mgrid_plan_new; NULL without an error where the payer pays no more. */
mgrid_plan *mgrid_plan_make(const mgrid_topology *t, mgrid_payer *payer, mgrid_error *err);
/* May a group of the later entry use a communicator of the earlier one? */
bool mgrid_plan_may_share(const mgrid_plan *p, int later, int earlier);
/* mgrid_plan_count whose work is paid; it means nothing where the payer pays no more. */
mgrid_status mgrid_plan_count_paid(const mgrid_plan *p, mgrid_payer *payer, mgrid_plan_counts *out, mgrid_error *err);

mgrid_status mgrid_view_init(mgrid_view *v, const mgrid_plan *p, int64_t rank, mgrid_error *err);
void         mgrid_view_free(mgrid_view *v);

/* ------------------------------------------------------------------- led.c */

/* Number of groups of an entry that no earlier group leads, which is the number of communicators that it adds to the
** job. `round` >= 0 counts that round alone. The groups are compared by their modes, O(modes); where these do not tell
** (tables of more than 1024 groups, rounds of pairs around a ring that their step does not divide, modes that fit badly
** together) one by one, O(groups). Means nothing where the payer pays no more. */
int64_t mgrid_plan_led(const mgrid_plan *p, int entry, int64_t round, mgrid_payer *payer);
/* The same for each round of an entry with several, as many as led[] has room for. */
void mgrid_plan_led_by_round(const mgrid_plan *p, int entry, int64_t led[MGRID_ROUNDS_MAX], mgrid_payer *payer);
/* Of the groups of an entry those that an earlier one leads, counted by the entry of that: groups[nentries]. Its own has
** those that it repeats. The cost is that of mgrid_plan_led. */
void mgrid_plan_leaders(const mgrid_plan *p, int entry, int64_t *groups);
/* May some groups of entry i, but not all, be groups of the earlier entry j? */
bool mgrid_plan_rivals(const mgrid_plan *p, int i, int j);

/* ----------------------------------------------------------------- share.c */

typedef enum mgrid_overlap {
  MGRID_NONE, /* no group */
  MGRID_SOME, /* some groups may be; the rules do not tell which */
  MGRID_ALL   /* every group */
} mgrid_overlap;
/* How many groups of a are groups of b too, members in the same order? Groups of one rank do not count.
** O(modes). */
mgrid_overlap mgrid_groups_within(const mgrid_family *a, const mgrid_family *b);
/* Does every group of more than one rank of `a` occur in `b`? Where the modes do not tell, up to 4096 groups are
** compared one by one; with more, or where the payer pays no more, the answer is no. */
bool mgrid_all_within(const mgrid_family *a, const mgrid_family *b, mgrid_payer *payer);
/* Have the two groups the same members in the same order? */
bool mgrid_same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t gb);
/* The group of b that equals group ga of a, or -1; only groups before `limit`. */
int64_t mgrid_group_in(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t limit, mgrid_payer *payer);

/* -------------------------------------------------- concurrent.c, parent.c */

/* Fill p->launch from the lists of concurrent families and p->order. */
mgrid_status mgrid_plan_take_launch(mgrid_plan *p, mgrid_payer *payer, mgrid_error *err);
/* mgrid_group_launch_order of a group of an entry. */
int64_t mgrid_plan_launch(const mgrid_plan *p, int entry, int64_t group);
/* Is the parent of each family there, and made before it? And is a group of a family with a parent within
** one group of that? O(members). */
mgrid_status mgrid_plan_check_parents(const mgrid_plan *p, mgrid_error *err);
mgrid_status mgrid_plan_check_parent(const mgrid_plan *p, int entry, int64_t group, mgrid_error *err);

/* ---------------------------------------------------- verify.c, rehearse.c */

/* mgrid_plan_check looks at all of worlds up to WHOLE ranks, of larger ones at SOME members of each family, at about a
** quarter as many ranks, and at the next member of each of their groups. */
enum { MGRID_CHECK_WHOLE = 1 << 20, MGRID_CHECK_SOME = 1024 };

/* What ranks create that were checked, or played. */
typedef struct mgrid_created {
  int64_t communicators; /* of the job */
  int64_t memberships;   /* of all ranks in these */
  int64_t most_per_rank; /* communicators of the rank that has most */
} mgrid_created;

/* Check the premises of the proof above, for all ranks or (sample > 0) for about `sample` ranks spread
** over the world. Memory does not grow with the world; *out counts what was checked. If a premise fails,
** MGRID_UNPROVED with rank, family and group. */
mgrid_status mgrid_plan_verify(const mgrid_plan *p, int64_t sample, mgrid_created *out, mgrid_error *err);

/* The creations of every rank, in the order of that rank. A struct of its own so that tests can change it. */
typedef struct mgrid_itinerary {
  int64_t         world;
  int64_t        *start; /* [world + 1]: rank r makes step[start[r]] .. step[start[r + 1] - 1] */
  mgrid_creation *step;
} mgrid_itinerary;
mgrid_status mgrid_itinerary_of(mgrid_itinerary *it, const mgrid_plan *p, mgrid_error *err);
/* Does every rank reach its end? Each waits in each creation until all members are there. MGRID_UNPROVED names rank, family
** and group. */
mgrid_status mgrid_itinerary_play(const mgrid_itinerary *it, const mgrid_plan *p, mgrid_created *out, mgrid_error *err);
void         mgrid_itinerary_free(mgrid_itinerary *it);
/* The same with the plan's own itinerary. O(members); MGRID_OUT_OF_RANGE above 2^20 ranks. out may be NULL. */
mgrid_status mgrid_plan_rehearse(const mgrid_plan *p, mgrid_created *out, mgrid_error *err);

/* -------------------------------------------------- laws.c, idle_ranks.c, unheeded.c */

/* Laws: have both families the same groups; is every group of a inside one of b; has no rank a group of both; has every
** rank one? MGRID_REFUSED with the first place where it is not so, and what the families are called. O(modes); O(members)
** where no modes tell, as of long tables, and then each look is paid. They mean nothing where the payer pays no more. mgrid_plan_law reads one as text, "within(tp, node)". */
typedef struct mgrid_law_names {
  const char *a, *b;
} mgrid_law_names;
mgrid_status mgrid_law_same(const mgrid_family *a, const mgrid_family *b, mgrid_payer *payer, mgrid_error *err);
mgrid_status mgrid_law_within(const mgrid_family *a, const mgrid_family *b, const mgrid_law_names *names,
                              mgrid_payer *payer, mgrid_error *err);
mgrid_status mgrid_law_disjoint(const mgrid_family *a, const mgrid_family *b, const mgrid_law_names *names,
                                mgrid_payer *payer, mgrid_error *err);
mgrid_status mgrid_law_covers(const mgrid_family *f, mgrid_payer *payer, mgrid_error *err);
mgrid_status mgrid_plan_law(const mgrid_plan *p, const char *law, mgrid_error *err);

/* How many ranks are in no group, 0 of a plan without groups; append which, "6, 8 to 15, ...". By modes; where these do not
** tell, as of long tables, each rank is looked at, and -1 says that the world is too large for that. */
int64_t mgrid_plan_idle(const mgrid_plan *p, mgrid_text *which);

/* Append the notes of all items: a line for whatever may be a mistake (item.h). */
void mgrid_plan_notes(const mgrid_plan *p, bool listed, mgrid_text *out);

/* Append the options of families that their backend does not heed, "timeout of 3 families, nccl of 1 family"; nothing
** where there are none. `backend` makes the families that ask for no other. */
void mgrid_plan_unheeded(const mgrid_plan *p, const mgrid_descriptor *backend, mgrid_text *t);

/* -------------------------------------------------------------------- diff.c */

/* One difference of two plans. */
typedef struct mgrid_difference {
  char        sign;        /* + new, - gone, ~ changed */
  const char *what, *name; /* "family", "tp" */
  const char *from, *to;   /* as text; NULL: not in that plan, or there is no more to say */
} mgrid_difference;

/* Called for each difference; its texts last until it returns. */
typedef void mgrid_tell(void *ud, const mgrid_difference *d);

/* mgrid_plan_diff, which calls `tell` instead of writing text. */
mgrid_status mgrid_plan_differences(const mgrid_plan *a, const mgrid_plan *b, int64_t rank, mgrid_change *change,
                                    mgrid_tell *tell, void *ud, mgrid_error *err);

/* -------------------------------------------- print.c, json.c, read.c, why.c */

/* Text that the digest is made of: the head (world, parameters, grids, items), then a line per
** family. */
mgrid_status mgrid_plan_head_text(const mgrid_plan *p, mgrid_text *t, mgrid_error *err);
mgrid_status mgrid_plan_entry_text(const mgrid_plan *p, size_t i, mgrid_text *t, mgrid_error *err);
mgrid_status mgrid_plan_take_digest(mgrid_plan *p, mgrid_error *err);
/* Append the names of a family and of all that share its communicators; false, and nothing, where none do. */
bool mgrid_plan_sharers(const mgrid_plan *p, int entry, const char *between, mgrid_text *t);
/* mgrid_plan_print_json, with what NCCL takes at a site. */
mgrid_status mgrid_plan_json_at(const mgrid_plan *p, int64_t rank, const mgrid_site *site, mgrid_sink sink, void *ud,
                                mgrid_error *err);
/* Does a text begin as one of mgrid_plan_read, and not as a recipe does? It has at most so many bytes. */
enum { MGRID_SAVED_MAX = 1 << 26 };
bool mgrid_plan_is_saved(const char *text, size_t length);
/* The answer of mgrid_plan_why as JSON, a new reference. */
mgrid_status mgrid_plan_why_json(const mgrid_plan *p, int64_t a, int64_t b, json_t **out, mgrid_error *err);

/* ------------------------------------------------------- cost.c */

enum { MGRID_MACHINE_RANKS_MAX = 4096 }; /* of an mgrid_site */
/* What a communicator of this family takes, with `size` ranks, `local` of them on one machine. */
void mgrid_entry_demand(const mgrid_entry *e, int64_t size, int64_t local, const mgrid_site *site, mgrid_demand *out);
/* mgrid_plan_gpu_memory of any rank, at a site: added to *out, field by field the most of all ranks. Ranks that are at
** the same places of groups have the same, so that one of each kind is looked at; where the modes do not tell these, or
** there are more than 1024 kinds, an upper bound. */
void mgrid_plan_memory_bound(const mgrid_plan *p, const mgrid_site *site, mgrid_gpu_memory *out);

#endif
