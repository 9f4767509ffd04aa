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

struct mgrid_plan {
  atomic_int    refs;
  mgrid_content content;
  int          *order;  /* [nentries]: schedule order -> entry */
  int          *shares; /* [nentries]: the earlier entry that leads all groups, or -1 */
  uint64_t      digest[2];
};

/* How many groups of `a` are groups of `b` too, members in the same order? */
typedef enum mgrid_overlap { MGRID_NONE, MGRID_SOME, MGRID_ALL } mgrid_overlap;
/* O(modes). MGRID_SOME also stands for "not decided by the rules alone". Groups of one rank
** do not count. */
mgrid_overlap mgrid_groups_within(const mgrid_family *a, const mgrid_family *b);
bool          mgrid_same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t gb);
/* The group of b that equals group ga of a, or -1; only groups before `limit`. */
int64_t mgrid_group_in(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t limit);
/* Groups of entry i that no earlier group leads: the communicators it adds to the job.
** `round` >= 0 counts that round alone. O(modes) where the rules decide, else O(groups). */
int64_t mgrid_plan_led(const mgrid_plan *p, int entry, int64_t round);

typedef struct mgrid_member { /* this rank in one group */
  int     entry;
  int64_t group, position, size;
  int     comm; /* index into mgrid_view.comm; -1 for a group of one rank */
} mgrid_member;

typedef struct mgrid_creation { /* a communicator this rank creates, by the group that leads */
  int     entry;
  int64_t group, round, position, size;
} mgrid_creation;

typedef struct mgrid_view { /* members in topology order, creations in schedule order */
  int64_t         rank;
  size_t          nmembers, ncomms;
  mgrid_member   *member;
  mgrid_creation *comm;
} mgrid_view;

mgrid_status mgrid_view_init(mgrid_view *v, const mgrid_plan *p, int64_t rank, mgrid_error *err);
void         mgrid_view_free(mgrid_view *v);

/* Check what the proof above stands on, for all ranks or (sample > 0) for about so many, spread
** over the world. Memory does not grow with the world; *out counts what was looked at.
** MGRID_BACKEND names rank, family and group. verify.c */
mgrid_status mgrid_plan_verify(const mgrid_plan *p, int64_t sample, mgrid_rehearsal *out, mgrid_error *err);

/* The creations of every rank, each rank's in its own order; tests change them. rehearse.c */
typedef struct mgrid_itinerary {
  int64_t         world;
  int64_t        *start; /* [world + 1]: rank r makes step[start[r]] .. step[start[r + 1] - 1] */
  mgrid_creation *step;
} mgrid_itinerary;
mgrid_status mgrid_itinerary_of(mgrid_itinerary *it, const mgrid_plan *p, mgrid_error *err);
/* Does every rank come through? As mgrid_plan_rehearse, which plays the plan's own itinerary. */
mgrid_status mgrid_itinerary_play(const mgrid_itinerary *it, const mgrid_plan *p, mgrid_rehearsal *out,
                                  mgrid_error *err);
void         mgrid_itinerary_free(mgrid_itinerary *it);

/* Text that the digest is made of: the head (world, parameters, grids), then a line per
** family. print.c */
mgrid_status mgrid_plan_head_text(const mgrid_plan *p, mgrid_text *t, mgrid_error *err);
mgrid_status mgrid_plan_entry_text(const mgrid_plan *p, size_t i, mgrid_text *t, mgrid_error *err);
mgrid_status mgrid_plan_take_digest(mgrid_plan *p, mgrid_error *err);

#endif
