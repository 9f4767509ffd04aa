/* SPDX-License-Identifier: MIT
**
** family.h - what a family is inside. The forms, from the usual to the last resort:
**
**   STRIDED  group i, position p  ->  offset + index[i] + inside[p]
**   PICKED   the same, with p going through a list of positions that is no run
**   PAIRS    position i of a group of the base, and position i + step
**   UNION    the groups of one child after those of another
**   ZIP      group i of each child, joined
**   TABLE    explicit lists, with an inverse index by rank
**
** Whatever can be STRIDED is: picks and tables that turn out regular are recognized when
** they are made, so that equal rules have one form.
*/
#ifndef MGRID_FAMILY_H
#define MGRID_FAMILY_H

#include "algebra/modes.h"

#include <stdatomic.h>

typedef enum mgrid_form { MGRID_STRIDED, MGRID_PICKED, MGRID_PAIRS, MGRID_UNION, MGRID_ZIP, MGRID_TABLE } mgrid_form;

/* One digit of a rank: how much of (rank - offset) it takes, and where it goes. */
typedef struct mgrid_digit {
  int64_t stride, size;
  int64_t weight; /* what one step adds to the group index or to the position */
  bool    inside;
} mgrid_digit;

/* Strides are superincreasing (each larger than all smaller digits together can reach),
** so the digits of a rank are found by dividing, largest stride first. */
typedef struct mgrid_strided { /* the arrays are in the same block as the family */
  int64_t      offset;
  mgrid_modes  inside, index; /* the index modes lie behind the inside ones: together they list all groups */
  int          ndigits;
  mgrid_digit *digits; /* largest stride first; all sizes multiply to a world */
} mgrid_strided;

struct mgrid_family {
  atomic_int    refs;
  mgrid_form    form;
  bool          twin;        /* wants communicators of its own */
  mgrid_family *origin;      /* of a twin: who owns the arrays behind it and below */
  bool          overlapping; /* a rank may be in several groups */
  int64_t       world;
  int64_t       count;     /* groups */
  int64_t       size;      /* members of every group, or -1 where they differ */
  int64_t       max_size;  /* of the largest group; 0 without groups */
  int64_t       total;     /* members of all groups */
  int64_t       low, high; /* bounds of the members; low > high without groups */
  union {
    mgrid_strided strided;
    struct {
      mgrid_strided base;      /* its inside positions are what is picked from */
      int64_t      *positions; /* [size], in the order of the members */
      int64_t      *sorted;    /* [2 * size]: (position, index in positions), ascending */
    } picked;
    struct {
      mgrid_family *base; /* groups of one size, disjoint */
      int64_t       step;
      bool          wrap;
    } pairs;
    struct {
      size_t         n;
      mgrid_family **child;
    } parts; /* UNION, ZIP */
    struct {
      int64_t  *starts;  /* [count + 1] */
      int32_t  *ranks;   /* [total] */
      uint64_t *by_rank; /* [total]: rank << 32 | index into ranks, ascending */
      int32_t  *round;   /* [count] of a cover, else NULL: see mgrid_family_round */
    } table;
  } as;
};

/* New family of a form, or NULL. All else is zero. Room for a rule of nmodes modes is behind it,
** for mgrid_strided_put, which copies the lists there; it says whether the strides are
** superincreasing. */
mgrid_family *mgrid_family_alloc(mgrid_form form, int64_t world, int nmodes, mgrid_error *err);
bool          mgrid_strided_put(mgrid_family *f, mgrid_strided *s, int64_t offset, const mgrid_modes *inside,
                                const mgrid_modes *index);
/* The index of group `nth` members start: offset of group g, position 0. */
static inline int64_t mgrid_strided_start(const mgrid_strided *s, int64_t group) {
  return s->offset + mgrid_modes_offset(&s->index, group);
}
/* Strided family; NULL where the strides are not superincreasing, with *err untouched. */
mgrid_family *mgrid_strided_new(int64_t world, int64_t offset, const mgrid_modes *inside, const mgrid_modes *index,
                                mgrid_error *err);
/* Table that takes over `starts` and `ranks`, also on failure. With `recognize` a regular
** one becomes STRIDED. */
mgrid_family *mgrid_table_adopt(mgrid_window w, int64_t count, int64_t *starts, int32_t *ranks, mgrid_coverage declared,
                                bool recognize, mgrid_error *err);
/* The operations of families on explicit lists (table.c). */
mgrid_status  mgrid_table_split(const mgrid_family *f, int64_t k, mgrid_family **inner, mgrid_family **outer,
                                mgrid_error *err);
mgrid_family *mgrid_table_bundle(const mgrid_family *f, int64_t n, mgrid_error *err);
mgrid_family *mgrid_table_pick(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err);
mgrid_family *mgrid_table_neighbours(const mgrid_family *f, int64_t step, bool wrap, mgrid_error *err);
/* Positions in [0, size) from what the user wrote: range checked, counted from the end
** where negative, duplicates dropped, in place. How many, or -1 after filling *err. */
int64_t mgrid_positions(int64_t size, int64_t *positions, int64_t n, mgrid_error *err);
/* Groups of one round share no rank: round in [0, mgrid_family_rounds). One round for all
** families but covers. rounds.c */
int64_t      mgrid_family_rounds(const mgrid_family *f);
int64_t      mgrid_family_round(const mgrid_family *f, int64_t group);
int64_t      mgrid_family_in_round(const mgrid_family *f, int64_t round); /* groups of the round */
mgrid_status mgrid_table_rounds(mgrid_family *f, mgrid_error *err); /* fills as.table.round; low and high are set */
bool         mgrid_family_same_rule(const mgrid_family *a, const mgrid_family *b); /* sound, not complete */
void         mgrid_family_text(const mgrid_family *f, mgrid_text *t); /* what mgrid_family_describe gives */
/* The child of a union that holds the group, whose number becomes the child's own. */
const mgrid_family *mgrid_union_child(const mgrid_family *f, int64_t *group);
/* Write n members of one group, from a position on: a long group piece by piece. listing.c */
void mgrid_family_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n, int32_t *out);
/* How many pairs a group of n members has. */
int64_t mgrid_pairs_of(int64_t n, int64_t step, bool wrap);

#endif
