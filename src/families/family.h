/* SPDX-License-Identifier: MIT
**
** family.h - the inside of a family. A form is a way to store the groups. Its code is in a file
** form_*.c, with a table of operations for each form. From the most common to the last resort:
**
**   STRIDED  group i, position p  ->  offset + index[i] + inside[p]
**   PICKED   some positions of the groups of a STRIDED base, in an order that follows no rule of modes
**   PAIRS    position i of a group of the base, and position i + step
**   CUT      pieces of the groups of a base, where no layout describes them
**   UNION    the groups of one part after those of another
**   ZIP      group i of each part, joined
**   TABLE    explicit lists, with an inverse index by rank
**
** A family that can be STRIDED is STRIDED: regular picks and tables are recognized when they are
** made, so equal rules have one form.
**
** A file calls only files before it in this list (lint refuses a circle): modes; family, which
** calls a form only through its table; classes, op_pick; the forms and the operations that make
** them: form_view, form_strided, form_table, op_renumber, form_parts, form_pairs; what takes
** families of any form: op_regroup, grid, op_grid, family_read.
*/
#ifndef MGRID_FAMILY_H
#define MGRID_FAMILY_H

#include "base/field.h"
#include "families/modes.h"

#include <stdatomic.h>

/* The alternative where groups share ranks, at the end of a message. */
#define MGRID_BY_LIST "; world:table(lists, \"cover\") holds such groups, listed one by one"

/* Limits: how deep families are made of other families; the parts of one family, counting nested
** ones; the rounds of a cover, which are at least the number of groups that one rank is in. */
enum { MGRID_DEPTH_MAX = 64, MGRID_PARTS_MAX = 4096, MGRID_ROUNDS_MAX = 1024 };

/* A mode as one digit of (rank - offset): digit = (remainder after the larger digits) / stride. */
typedef struct mgrid_digit {
  int64_t stride, size; /* of the mode, in ranks and in steps */
  int64_t weight;       /* added to the group index or the position for each step */
  bool inside;          /* whether it is an inside mode, which gives the position */
} mgrid_digit;

/* Strides are superincreasing: each is larger than the sum that all smaller digits can reach. So
** division, largest stride first, finds the digits of a rank. */
typedef struct mgrid_strided {
  int64_t offset; /* the lowest rank: position 0 of group 0 */
  /* the members of a group, in order; its array, and those of index and digits, stand behind the family */
  mgrid_modes inside;
  /* the starts of the groups; stored after `inside`, so that a slice reads both as one list */
  mgrid_modes index;
  int ndigits;         /* modes of both */
  mgrid_digit *digits; /* the modes of both, largest stride first */
} mgrid_strided;

typedef struct mgrid_parts { /* of a UNION or ZIP */
  size_t n;                  /* 1 or more */
  mgrid_family **child;      /* [n] */
} mgrid_parts;

typedef struct mgrid_form mgrid_form;

struct mgrid_family {
  atomic_int refs;        /* owners */
  const mgrid_form *form; /* its table of operations */
  bool twin;              /* its groups never share a communicator */
  bool overlapping;       /* a rank may be in several groups */
  mgrid_family *origin;   /* of a twin: the family that it was made from, whose memory it uses */
  mgrid_strided *rule;    /* of a STRIDED family; else NULL */
  void *own;              /* data of its form, stored after the family */
  int64_t world;          /* ranks of the world */
  int64_t count;          /* groups */
  int64_t size;           /* members of every group; -1: they differ */
  int64_t max_size;       /* of the largest group; 0 without groups */
  int64_t total;          /* members of all groups */
  int64_t low, high;      /* bounds of the members; low > high without groups */
  int depth;              /* levels of families below this one, at most MGRID_DEPTH_MAX */
  int64_t nodes;          /* itself and all families below it; one that occurs twice counts twice */
  size_t bytes;           /* memory of all of these */
};

/* ------------------------------------------------------------ a form's table */

typedef enum mgrid_tristate { MGRID_NO, MGRID_YES, MGRID_UNDECIDED } mgrid_tristate;
typedef struct mgrid_classes mgrid_classes; /* classes.h */
typedef struct mgrid_sets mgrid_sets;

/* The arguments and results of a split. */
typedef struct mgrid_splitting {
  int64_t k;   /* members of an inner piece */
  bool by_row; /* number the groups of the family before their pieces */
  bool lists;  /* also make pieces that no layout describes */
  /* mgrid_family_lists, for groups of different sizes; NULL where all have one size. */
  mgrid_family *(*write_out)(const mgrid_family *f, mgrid_error *err);
  mgrid_family *inner, *outer; /* the results; one may be set if the other failed */
} mgrid_splitting;

/* The n shapes of the groups: the `every` groups from i * every on are shifts of one. */
typedef struct mgrid_shapes {
  int64_t n, every;          /* n 0: not known */
  const mgrid_strided *root; /* the rule that all of them are cut from */
} mgrid_shapes;

struct mgrid_form {
  const char *name; /* in messages: "strided" */
  bool listed;      /* the groups are stored as lists */
  bool in_turn;     /* f->own is an mgrid_parts; the groups of its parts follow each other */

  /* Questions. The caller has checked that the group, and the position in it, exist. */
  int64_t (*size)(const mgrid_family *f, int64_t group); /* NULL: all groups have one size */
  int64_t (*rank)(const mgrid_family *f, int64_t group, int64_t position);
  bool (*locate)(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                 int64_t *position);
  /* As mgrid_family_slice and mgrid_family_range. NULL: these go rank by rank, group by group. */
  void (*slice)(const mgrid_family *f, int64_t group, int64_t position, int64_t n, int32_t *out);
  int64_t (*range)(const mgrid_family *f, int64_t group, int64_t n, int32_t *out);
  /* Return whether two families of this form, of equal numbers of groups, members and sizes, are
  ** made by the same rule. */
  bool (*same_rule)(const mgrid_family *a, const mgrid_family *b);
  /* Return whether groups of equal size of two families of this form are equal. NULL: the rules
  ** cannot tell. */
  mgrid_tristate (*same_group)(const mgrid_family *a, int64_t ga, const mgrid_family *b,
                               int64_t gb);
  /* append the rule, as in mgrid_family_describe */
  void (*text)(const mgrid_family *f, mgrid_text *t);
  /* append the rule as JSON, which family_read.c reads */
  void (*json)(const mgrid_family *f, mgrid_text *t);
  void (*explain)(const mgrid_family *f, mgrid_text *t); /* append the rule in plain words */
  void (*free)(mgrid_family *f); /* free what the form owns; NULL: it owns nothing */

  /* Questions about all groups at once. Where a rule answers, the cost does not grow with the
  ** world. */
  /* NULL: no classes; see mgrid_classes_of */
  bool (*classes)(const mgrid_family *f, mgrid_classes *list);
  /* NULL: by the classes; see mgrid_members_of */
  bool (*members)(const mgrid_family *f, mgrid_sets *list);
  /* the number of groups with one member, where sizes differ; NULL: 0 */
  int64_t (*singles)(const mgrid_family *f);
  mgrid_shapes (*shapes)(const mgrid_family *f); /* NULL: not known */
  /* For groups of two: return the distance between the ranks of all ascending groups, 0 where it
  ** varies. *around: whether some groups descend, around the end. NULL: the distance varies. */
  int64_t (*distance)(const mgrid_family *f, bool *around);
  /* For a form that may overlap: see mgrid_family_rounds. in_round NULL: count group by group. */
  int64_t (*rounds)(const mgrid_family *f);
  int64_t (*round)(const mgrid_family *f, int64_t group);
  int64_t (*in_round)(const mgrid_family *f, int64_t round);

  /* Operations on families whose groups share no rank. NULL: `split` cuts groups of one size and
  ** lists others, `groups` makes lists, `bundle` and `pick` refuse and ask for lists. */
  /* x->k is 1 or more */
  mgrid_status (*split)(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
  /* n divides the groups */
  mgrid_family *(*bundle)(const mgrid_family *f, int64_t n, mgrid_error *err);
  /* Return whether this bundle makes lists. *work: how many positions these lists have. NULL:
  ** false, 0. */
  bool (*bundle_lists)(const mgrid_family *f, int64_t n, int64_t *work);
  /* Pick distinct positions, from groups of one size. */
  mgrid_family *(*pick)(const mgrid_family *f, int64_t n, const int64_t *positions,
                        mgrid_error *err);
  /* Used instead of `pick`, for groups of any sizes: mgrid_pick_ask gives the positions for a
  ** size. */
  mgrid_family *(*pick_by)(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err);
  /* Make these n groups, none of them twice. NULL with *err untouched: no rule has them in this
  ** order. */
  mgrid_family *(*groups)(const mgrid_family *f, int64_t n, const int64_t *order, mgrid_error *err);
};

/* ------------------------------------------------------------------ family.c */

/* Allocate a family of a form; all else is zero but for depth, nodes and bytes. f->own has room for
** `own` bytes. NULL after an error. */
mgrid_family *mgrid_family_alloc(const mgrid_form *form, int64_t world, size_t own,
                                 mgrid_error *err);
/* Count the family `below` as part of f. Refuse a family that is nested too deeply or has too many
** parts, because every question goes through all of them, by recursion. */
mgrid_status mgrid_family_put_above(mgrid_family *f, const mgrid_family *below, mgrid_error *err);
/* Return the family, or for a twin the family that it was made from, with one more owner. */
mgrid_family *mgrid_family_origin(const mgrid_family *f);
/* Free n families and the array that holds them. */
void mgrid_families_free(size_t n, mgrid_family **f);
/* Return MGRID_OUT_OF_RANGE for more elements than a world can have ranks: such a count is a
** mistake, and nothing is read. */
mgrid_status mgrid_count_check(const char *what, size_t n, mgrid_error *err);
/* Check that the window lies in its world, and that the world has a valid size. */
mgrid_status mgrid_window_check(mgrid_window w, mgrid_error *err);

/* Return the parts if f is a union, whose groups follow each other, else NULL. */
static inline const mgrid_parts *mgrid_family_in_turn(const mgrid_family *f) {
  return f->form->in_turn ? f->own : NULL;
}
/* Write n members of a group, starting at a position. So a long group can be read in pieces. */
void mgrid_family_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n,
                        int32_t *out);
/* Write a group that exists. Hosts have mgrid_family_members (family.c). */
void mgrid_family_group(const mgrid_family *f, int64_t group, int32_t *out);
/* Write n groups that exist; return the number of ranks. Hosts have mgrid_family_range. */
int64_t mgrid_family_groups(const mgrid_family *f, int64_t group, int64_t n, int32_t *out);
/* Return the number of groups with one member. */
int64_t mgrid_family_singles(const mgrid_family *f);
/* Return whether both are made by the same rule. True: the groups are equal. False: they may still
** be equal. */
bool mgrid_family_same_rule(const mgrid_family *a, const mgrid_family *b);
/* Append the text of mgrid_family_describe. */
void mgrid_family_text(const mgrid_family *f, mgrid_text *t);
/* Append its rule as an object, which mgrid_family_read reads. */
void mgrid_family_json(const mgrid_family *f, mgrid_text *t);
/* Divide the groups into rounds. The groups of a round share no rank, so they can be created at
** once. Rounds are 0 to mgrid_family_rounds - 1; all families but covers have one. */
int64_t mgrid_family_rounds(const mgrid_family *f);
int64_t mgrid_family_round(const mgrid_family *f, int64_t group);
int64_t mgrid_family_in_round(const mgrid_family *f, int64_t round); /* its number of groups */
/* Refuse an operation that needs explicit lists; the message says how to get them. Always return
** NULL. */
void *mgrid_needs_lists(const char *operation, const mgrid_family *f, mgrid_error *err);
/* Call the operations of the form's table. */
mgrid_family *mgrid_bundle(const mgrid_family *f, int64_t n, mgrid_error *err);
bool mgrid_bundle_lists(const mgrid_family *f, int64_t n, int64_t *work);

/* Compare two keys, for qsort. A key is a number << 32 | a value. */
int mgrid_key_order(const void *a, const void *b);
/* Find the first of n ascending keys that has the number or a larger one. */
int64_t mgrid_key_at(const uint64_t *keys, int64_t n, int64_t number);
/* Return the last of n runs that starts at `at` or before. `starts` is ascending, the first is
** 0. */
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

/* ----------------------------------------------------------------- classes.c */

/* As mgrid_family_equal, and the work is charged to the budget. The result means nothing once the
** budget is exhausted. */
bool mgrid_family_equal_paid(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget);

/* ----------------------------------------------------------------- op_pick.c */

/* Ask for positions in groups of `size`, and turn them into distinct positions in range. Return
** their number, or -1 after filling *err. */
int64_t mgrid_pick_ask(mgrid_pick_fn fn, void *ud, int64_t size, int64_t *positions, int64_t cap,
                       mgrid_error *err);
/* Return the room for the answer of a function about groups of that size. */
static inline int64_t mgrid_pick_room(int64_t size) { return size < 32768 ? 2 * size + 16 : 65536; }

/* --------------------------------------------------------------- form_view.c */

extern const mgrid_form mgrid_cut_form;
/* Cut the groups of a base, which are disjoint and of one size, into n pieces. `starts` holds the
** first position of each piece and then the group size. It is owned from now on, also on failure;
** NULL: report out of memory. Equal pieces become a split, so that they are STRIDED where a layout
** exists. */
mgrid_family *mgrid_cut_at(const mgrid_family *base, int64_t n, int64_t *starts, bool by_row,
                           mgrid_error *err);
/* Call the operation of the form's table. */
mgrid_status mgrid_split(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
/* Split any family with groups of one size, as a CUT. */
mgrid_status mgrid_split_cut(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
/* Split one with groups of different sizes, as lists. */
mgrid_status mgrid_split_lists(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
/* Refuse a split, and name the sizes that work. `blocking`: the mode of f's rule that is in the
** way, or NULL. */
mgrid_status mgrid_split_refuse(const mgrid_family *f, int64_t k, const mgrid_mode *blocking,
                                mgrid_error *err);

extern const mgrid_form mgrid_picked_form;
/* Pick positions, distinct and in range, of a STRIDED base. */
mgrid_family *mgrid_picked_new(const mgrid_family *base, int64_t n, const int64_t *positions,
                               mgrid_error *err);

/* ------------------------------------------------------------ form_strided.c */

extern const mgrid_form mgrid_strided_form;
/* Make a strided family. NULL with *err untouched where the strides are not superincreasing. */
mgrid_family *mgrid_strided_new(int64_t world, int64_t offset, const mgrid_modes *inside,
                                const mgrid_modes *index, mgrid_error *err);
bool mgrid_strided_equal(const mgrid_strided *x, const mgrid_strided *y);
/* Return the rank at position 0 of a group. */
static inline int64_t mgrid_strided_start(const mgrid_strided *s, int64_t group) {
  return s->offset + mgrid_modes_offset(&s->index, group);
}

/* -------------------------------------------------------------- form_table.c */

extern const mgrid_form mgrid_table_form;
/* Make a table. It owns `starts` and `ranks` from now on, also on failure; if either is NULL,
** report out of memory. With `recognize`, lists that follow a rule of modes become STRIDED. */
mgrid_family *mgrid_table_adopt(mgrid_window w, int64_t count, int64_t *starts, int32_t *ranks,
                                mgrid_coverage declared, bool recognize, mgrid_error *err);
/* As mgrid_family_table, of 32-bit ranks. */
mgrid_family *mgrid_table_of(mgrid_window w, int64_t ngroups, const int64_t *starts,
                             const int32_t *ranks, mgrid_coverage declared, mgrid_error *err);
/* Return the coverage to declare for a table that holds some of f's members, group by group. */
mgrid_coverage mgrid_table_coverage(const mgrid_family *f);

/* -------------------------------------------------------------- form_parts.c */

extern const mgrid_form mgrid_union_form, mgrid_zip_form;
/* Make a family of n parts, which the caller has checked to fit together. It owns the parts and the
** array from now on, also on failure. */
mgrid_family *mgrid_union_new(size_t n, mgrid_family **child, mgrid_error *err);
mgrid_family *mgrid_zip_new(size_t n, mgrid_family **child, mgrid_budget *budget, mgrid_error *err);
/* Apply op to each part of a union and make a union of the results; NULL if op fails on one. */
typedef mgrid_family *(*mgrid_child_fn)(const mgrid_family *child, void *ud, mgrid_error *err);
mgrid_family *mgrid_union_map(const mgrid_family *f, mgrid_child_fn op, void *ud, mgrid_error *err);

/* ------------------------------------------------------------- op_renumber.c */

/* As mgrid_family_renumber and mgrid_family_select, by a rule, without lists. NULL with *err
** untouched where no rule of modes has that order. A zip is changed part by part. */
mgrid_family *mgrid_renumber_by_rule(const mgrid_family *f, size_t n, const int64_t *order,
                                     mgrid_error *err);
mgrid_family *mgrid_select_by_rule(const mgrid_family *f, size_t n, const int64_t *groups,
                                   mgrid_error *err);

/* -------------------------------------------------------------- form_pairs.c */

extern const mgrid_form mgrid_pairs_form;

/* -------------------------------------------------------------- op_regroup.c */

/* As mgrid_family_union and mgrid_family_zip, and the work is charged to the budget. The result
** means nothing once the budget has nothing left. */
mgrid_family *mgrid_family_combine(bool zip, size_t n, const mgrid_family *const *fs,
                                   mgrid_budget *budget, mgrid_error *err);
/* Return the members of all groups of a family, once a zip spreads it over `count` groups. A
** value above MGRID_WORLD_MAX is not exact. */
int64_t mgrid_spread_total(const mgrid_family *f, int64_t count);
/* As mgrid_family_zip_spread, charged likewise. */
mgrid_family *mgrid_family_spread(size_t n, const mgrid_family *const *fs, mgrid_budget *budget,
                                  mgrid_error *err);

/* Check the sizes of n consecutive pieces of `size` positions; *fill becomes the size of the one
** that is MGRID_FILL. */
mgrid_status mgrid_segments_check(int64_t size, size_t n, const int64_t *sizes, int64_t *fill,
                                  mgrid_error *err);

/* ------------------------------------------------------------- op_closure.c */

/* As mgrid_family_closure, in O(modes). NULL with *err untouched where no rule of modes has these
** groups. The n families are 1 or more, of one world. */
mgrid_family *mgrid_closure_by_rule(size_t n, const mgrid_family *const *fs, mgrid_error *err);

/* ------------------------------------------------------------- family_read.c */

/* As mgrid_family_modes and mgrid_family_parse. Without `lists`, return NULL with *err untouched
** where those would make lists. */
mgrid_family *mgrid_layout_modes(mgrid_window w, int64_t offset, size_t ninside,
                                 const mgrid_mode *inside, size_t nindex, const mgrid_mode *index,
                                 bool lists, mgrid_error *err);
mgrid_family *mgrid_layout_parse(mgrid_window w, const char *text, bool lists, mgrid_error *err);

/* Read the family that mgrid_family_json wrote, in the same form. NULL after a fault, or once the
** budget is exhausted. */
mgrid_family *mgrid_family_read(const mgrid_field *s, int64_t world);

#endif
