/* SPDX-License-Identifier: MIT
**
** family.h - what a family is inside. The forms, from the usual to the last resort:
**
**   STRIDED  group i, position p  ->  offset + index[i] + inside[p]
**   PICKED   the same, with p taken from a list of positions that follows no rule of modes
**   PAIRS    position i of a group of the base, and position i + step
**   CUT      pieces of the groups of a base, where no layout of them exists
**   UNION    the groups of one child after those of another
**   ZIP      group i of each child, joined
**   TABLE    explicit lists, with an inverse index by rank
**
** Whatever can be STRIDED is: picks and tables that turn out regular are recognized when
** they are made, so that equal rules have one form.
*/
#ifndef MGRID_FAMILY_H
#define MGRID_FAMILY_H

#include "families/modes.h"

#include <stdatomic.h>

/* The way out where groups share ranks, at the end of a message. */
#define MGRID_BY_LIST "; world:table(lists, \"cover\") holds such groups, listed one by one"

/* A family made of families, one over the other, at most; the parts of one, with all that these are made of; and the
** rounds of a cover, which are as many as a rank of it has groups, or more. */
enum { MGRID_DEPTH_MAX = 64, MGRID_PARTS_MAX = 4096, MGRID_ROUNDS_MAX = 1024 };

typedef enum mgrid_form {
  MGRID_STRIDED,
  MGRID_PICKED,
  MGRID_PAIRS,
  MGRID_CUT,
  MGRID_UNION,
  MGRID_ZIP,
  MGRID_TABLE
} mgrid_form;

/* A mode as one digit of (rank - offset): digit = what larger digits leave / stride. */
typedef struct mgrid_digit {
  int64_t stride, size; /* of the mode, in ranks and in steps */
  int64_t weight;       /* what one step of it adds to the group index or to the position */
  bool    inside;       /* is it an inside mode, which gives the position? */
} mgrid_digit;

/* Strides are superincreasing (each larger than all smaller digits together can reach),
** so the digits of a rank are found by dividing, largest stride first. */
typedef struct mgrid_strided {
  int64_t      offset;  /* the lowest rank: position 0 of group 0 */
  mgrid_modes  inside;  /* the members of a group, in order; its array and the next two follow the family in memory */
  mgrid_modes  index;   /* the starts of the groups; right behind `inside`, so that listing.c reads both as one list */
  int          ndigits; /* modes of both */
  mgrid_digit *digits;  /* the modes of both, largest stride first */
} mgrid_strided;

struct mgrid_family {
  atomic_int    refs;        /* owners */
  mgrid_form    form;        /* which member of `as` is set */
  bool          twin;        /* its groups never share a communicator */
  mgrid_family *origin;      /* of a twin: what it was made from, whose arrays it uses */
  bool          overlapping; /* a rank may be in several groups */
  int64_t       world;       /* ranks of the world */
  int64_t       count;       /* groups */
  int64_t       size;        /* members of every group, or -1 where they differ */
  int64_t       max_size;    /* of the largest group; 0 without groups */
  int64_t       total;       /* members of all groups */
  int64_t       low, high;   /* bounds of the members; low > high without groups */
  int           depth;       /* families below this one, one under the other: at most MGRID_DEPTH_MAX */
  int64_t       nodes;       /* it and all below it; one that is below twice counts twice */
  size_t        bytes;       /* of memory that these hold */
  union {
    mgrid_strided strided;
    struct {
      mgrid_strided base;      /* the groups that are picked from */
      int64_t      *positions; /* [size], in the order of the members */
      int64_t      *sorted;    /* [2 * size]: pairs (position in the base, position here), ascending */
    } picked;
    struct {
      mgrid_family *base; /* groups of one size, disjoint */
      int64_t       step; /* positions between partners */
      bool          wrap; /* also around the end */
    } pairs;
    struct {
      mgrid_family *base;   /* groups of one size, disjoint */
      int64_t       n;      /* pieces of every group, 2 or more */
      int64_t      *starts; /* [n + 1]: piece i is the positions from starts[i] on; NULL: all pieces are equally long */
      bool          links;  /* instead: piece i is the positions i, i + n, i + 2n, ... */
      bool by_row; /* groups of the base vary before the pieces; else the pieces of a group follow each other */
    } cut;
    struct {
      size_t         n;     /* 1 or more */
      mgrid_family **child; /* [n] */
    } parts;                /* UNION, ZIP */
    struct {
      int64_t  *starts;  /* [count + 1]: group g is ranks[starts[g]] .. ranks[starts[g + 1] - 1] */
      int32_t  *ranks;   /* [total] */
      uint64_t *by_rank; /* [total]: rank << 32 | index into ranks, ascending */
      int32_t  *round;   /* [count] of a cover, else NULL: see mgrid_family_round */
      int64_t   rounds;  /* of a cover */
    } table;
  } as;
};

/* ------------------------------------------------------------------ family.c */

/* New family of a form, all else zero but for depth, nodes and bytes, or NULL. Behind it is room for a rule of nmodes
** modes, which mgrid_strided_put fills. */
mgrid_family *mgrid_family_alloc(mgrid_form form, int64_t world, int nmodes, mgrid_error *err);
/* Count the family `below` as part of f. A family that is nested too deep, or has too many parts, is refused, because
** every question goes through all of them, and down by recursion. */
mgrid_status mgrid_family_put_above(mgrid_family *f, const mgrid_family *below, mgrid_error *err);
/* Copy a rule into the room behind f, as *s. False where the strides are not superincreasing. */
bool mgrid_strided_put(mgrid_family *f, mgrid_strided *s, int64_t offset, const mgrid_modes *inside,
                       const mgrid_modes *index);
/* Strided family; NULL where the strides are not superincreasing, with *err untouched. */
mgrid_family *mgrid_strided_new(int64_t world, int64_t offset, const mgrid_modes *inside, const mgrid_modes *index,
                                mgrid_error *err);
/* MGRID_OUT_OF_RANGE for more elements than a world can have ranks: a count that was never meant, of which nothing is
** read. */
mgrid_status mgrid_count_check(const char *what, size_t n, mgrid_error *err);
/* Free n families and the array that holds them. */
void mgrid_families_free(size_t n, mgrid_family **f);

bool mgrid_strided_equal(const mgrid_strided *x, const mgrid_strided *y);
/* The rank at position 0 of a group. */
static inline int64_t mgrid_strided_start(const mgrid_strided *s, int64_t group) {
  return s->offset + mgrid_modes_offset(&s->index, group);
}
/* The child of a union that has the group; *group becomes its number there. */
const mgrid_family *mgrid_union_child(const mgrid_family *f, int64_t *group);
/* The last of n runs that begins at `at` or before; starts are ascending, the first is 0. */
static inline int64_t mgrid_run_at(const int64_t *starts, int64_t n, int64_t at) {
  int64_t lo = 0, hi = n;
  while (hi - lo > 1) {
    int64_t mid = lo + (hi - lo) / 2;
    if (starts[mid] <= at)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}
/* The group of a table whose list holds ranks[slot]. */
int64_t mgrid_table_group(const mgrid_family *f, int64_t slot);
/* How many pairs a group of n members has. */
int64_t mgrid_pairs_of(int64_t n, int64_t step, bool wrap);
/* Are both made by the same rule? True: the groups are equal. False: they may still be equal. */
bool mgrid_family_same_rule(const mgrid_family *a, const mgrid_family *b);
/* Append the text of mgrid_family_describe. */
void mgrid_family_text(const mgrid_family *f, mgrid_text *t);

/* ----------------------------------------------------------------- listing.c */

/* Write n members of one group from a position on, so that a long group can be read in pieces. */
void mgrid_family_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n, int32_t *out);

/* -------------------------------------------------------------------- grid.c */

/* Is it a window of a world that can be? */
mgrid_status mgrid_window_check(mgrid_window w, mgrid_error *err);

/* --------------------------------------------------------------------- cut.c */

/* Pieces of the groups of a base, which are disjoint and of one size: `starts` (owned from now on, also on
** failure; NULL: the error is out of memory) has the first positions of n pieces and then the size. Equal
** pieces are a split, so that they are STRIDED where a layout exists. */
mgrid_family *mgrid_cut_at(const mgrid_family *base, int64_t n, int64_t *starts, bool by_row, mgrid_error *err);
/* n equal runs of consecutive positions, or with `links` the ranks at equal positions of size / n runs. */
mgrid_family *mgrid_cut_evenly(const mgrid_family *base, int64_t n, bool links, bool by_row, mgrid_error *err);
/* Of a CUT: the length of piece i of a group; the position in the base of a position in that piece. */
int64_t mgrid_cut_size(const mgrid_family *f, int64_t piece);
int64_t mgrid_cut_position(const mgrid_family *f, int64_t piece, int64_t position);
/* Which piece a group is; *group becomes that of the base. */
int64_t mgrid_cut_piece(const mgrid_family *f, int64_t *group);
bool    mgrid_cut_locate(const mgrid_family *f, int64_t rank, int64_t *group, int64_t *position);
bool    mgrid_cut_same_rule(const mgrid_family *a, const mgrid_family *b);
/* Append "segments{5,3}", "split(2)" or "links(2)", without the base. */
void mgrid_cut_text(const mgrid_family *f, mgrid_text *t);
/* Check the sizes of n consecutive pieces of `size` positions; *fill becomes what one of MGRID_FILL takes. */
mgrid_status mgrid_segments_check(int64_t size, size_t n, const int64_t *sizes, int64_t *fill, mgrid_error *err);

/* -------------------------------------------------------------------- join.c */

/* A union or zip of n children. It owns them and the array from now on, also on failure. The caller has
** checked that they fit together. */
mgrid_family *mgrid_family_join(mgrid_form form, size_t n, mgrid_family **child, mgrid_payer *payer, mgrid_error *err);
/* mgrid_family_union, _zip and _zip_spread whose work is paid; what they make means nothing where the payer pays no more. */
mgrid_family *mgrid_family_combine(mgrid_form form, size_t n, const mgrid_family *const *fs, mgrid_payer *payer,
                                   mgrid_error *err);
mgrid_family *mgrid_family_spread(size_t n, const mgrid_family *const *fs, mgrid_payer *payer, mgrid_error *err);
/* Apply op to each child of a union and join the results to a union again; NULL if op fails on a child. */
typedef mgrid_family *(*mgrid_child_fn)(const mgrid_family *child, void *ud, mgrid_error *err);
mgrid_family *mgrid_union_map(const mgrid_family *f, mgrid_child_fn op, void *ud, mgrid_error *err);

/* ------------------------------------------------------------------- equal.c */

/* mgrid_family_equal whose work is paid; it means nothing where the payer pays no more. */
bool mgrid_family_equal_paid(const mgrid_family *a, const mgrid_family *b, mgrid_payer *payer);

/* ------------------------------------------------------------------ layout.c */

/* As mgrid_family_modes and mgrid_family_parse; without `lists` NULL with *err untouched where those make lists. */
mgrid_family *mgrid_layout_modes(mgrid_window w, int64_t offset, size_t ninside, const mgrid_mode *inside,
                                 size_t nindex, const mgrid_mode *index, bool lists, mgrid_error *err);
mgrid_family *mgrid_layout_parse(mgrid_window w, const char *text, bool lists, mgrid_error *err);

/* ------------------------------------------------------------------- split.c */

/* Does a bundle of n groups work on explicit lists? */
bool mgrid_bundle_lists(const mgrid_family *f, int64_t n);

/* -------------------------------------------------------------------- pick.c */

/* Pick n positions from the groups of a base: STRIDED where they follow modes, else PICKED. They are in range
** and differ. */
mgrid_family *mgrid_pick_strided(int64_t world, const mgrid_strided *base, int64_t n, const int64_t *positions,
                                 mgrid_error *err);

/* ---------------------------------------------------------------- renumber.c */

/* The groups in that order by a rule, without lists; NULL with *err untouched where no rule of modes has it. A zip is
** renumbered part by part. */
mgrid_family *mgrid_renumber_by_rule(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err);

/* ------------------------------------------------------------------- table.c */

/* Table that owns `starts` and `ranks` from now on, also on failure; if either is NULL the error is out of
** memory. With `recognize` lists that follow a rule of modes become STRIDED. */
mgrid_family *mgrid_table_adopt(mgrid_window w, int64_t count, int64_t *starts, int32_t *ranks, mgrid_coverage declared,
                                bool recognize, mgrid_error *err);
/* The coverage to declare for a table that holds some of f's members, group by group. */
mgrid_coverage mgrid_table_coverage(const mgrid_family *f);
/* Refuse an operation that needs explicit lists, and say how to get them; always NULL. */
void *mgrid_needs_lists(const char *operation, const mgrid_family *f, mgrid_error *err);

/* ------------------------------------------------------------------ rounds.c */

/* The groups of a round share no rank, so they can be created at once. Rounds are 0 to
** mgrid_family_rounds - 1; all families but covers have one. */
int64_t mgrid_family_rounds(const mgrid_family *f);
int64_t mgrid_family_round(const mgrid_family *f, int64_t group);
int64_t mgrid_family_in_round(const mgrid_family *f, int64_t round); /* how many groups it has */
/* Give the groups of a cover their rounds, as.table.round; low and high are set already. */
mgrid_status mgrid_table_rounds(mgrid_family *f, mgrid_error *err);

#endif
