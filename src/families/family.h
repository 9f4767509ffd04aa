/* SPDX-License-Identifier: MIT
**
** family.h - the inside of a family, which stores its groups in one of seven forms. The code of a
** form is in a file form_*.c, with a table of operations (mgrid_form). `index` and `inside` are
** lists of modes (modes.h; a mode is a size with a stride). `index` maps the number i of a group to
** an offset, index[i]; `inside` maps a position p to an offset, inside[p]. The forms, the most
** common first:
**
**   STRIDED  group i, position p  ->  offset + index[i] + inside[p]
**   PICKED   some positions of the groups of a STRIDED base, where no modes give their order
**   PAIRS    position i of a group of the base, and position i + step
**   CUT      pieces of the groups of a base, where no modes give the pieces
**   UNION    the groups of the first part, then those of the second, ...
**   ZIP      group i of each part, joined
**   TABLE    explicit lists, with an inverse index by rank
*/

/* Whoever makes a pick or a table looks for modes first. So a family that modes can describe is
** always STRIDED, however it was made. */

/* THE ORDER OF THE FILES. A file calls only files before it in this list (lint refuses a circle):
**
**   modes
**   family                                        calls a form only through the form's table
**   classes, op_pick
**   form_view, form_strided, form_table,
**   op_renumber, form_parts, form_pairs           forms, and the operations that make them
**   op_regroup, op_closure, grid, op_grid,
**   family_read                                   take families of any form
*/
#ifndef MGRID_FAMILY_H
#define MGRID_FAMILY_H

#include "base/field.h"
#include "families/modes.h"

#include <stdatomic.h>

/* At the end of a message about groups that share ranks: which other call accepts them. */
#define MGRID_BY_LIST "; world:table(lists, \"cover\") holds such groups, listed one by one"

/* MGRID_DEPTH_MAX: how deep families are made of other families. MGRID_PARTS_MAX: the parts of one
** family, counting those of its parts. MGRID_ROUNDS_MAX: the rounds of a cover
** (mgrid_family_rounds). The groups of a round share no rank, so a cover has at least as many
** rounds as any of its ranks has groups. */
enum { MGRID_DEPTH_MAX = 64, MGRID_PARTS_MAX = 4096, MGRID_ROUNDS_MAX = 1024 };

/* A mode, seen as one digit of the number (rank - offset). The larger digits leave a remainder; the
** digit is this remainder / stride. */
typedef struct mgrid_digit {
  int64_t stride, size; /* of the mode, in ranks and in steps */
  int64_t weight;       /* how much a step adds to the group index or the position */
  bool inside;          /* true: a mode of `inside`, which gives the position; false: of `index` */
} mgrid_digit;

/* Strides are superincreasing: each is larger than the sum that all smaller digits can reach. So
** dividing by the largest stride first finds the digits of a rank. */
typedef struct mgrid_strided {
  int64_t offset; /* the lowest rank: position 0 of group 0 */
  /* the members of a group, in order. The arrays of inside, index and digits follow the family in
  ** one allocation */
  mgrid_modes inside;
  /* the first rank of each group. Its array follows that of `inside`, so mgrid_family_slice reads
  ** both as one list */
  mgrid_modes index;
  int ndigits;         /* modes of inside and index */
  mgrid_digit *digits; /* [ndigits]: these modes, largest stride first */
} mgrid_strided;

typedef struct mgrid_parts { /* of a UNION or ZIP */
  size_t n;                  /* 1 or more */
  mgrid_family **child;      /* [n] */
} mgrid_parts;

typedef struct mgrid_form mgrid_form;

struct mgrid_family {
  atomic_int refs;        /* owners */
  const mgrid_form *form; /* its table of operations */
  bool twin;              /* a copy whose groups never share a communicator */
  bool overlapping;       /* a rank may be in several groups */
  mgrid_family *origin;   /* of a twin: the family that it copies, and whose memory it uses */
  mgrid_strided *rule;    /* of a STRIDED family; else NULL */
  void *own;              /* data of its form, stored after the family */
  int64_t world;          /* ranks of the world */
  int64_t count;          /* groups */
  int64_t size;           /* members of every group; -1: they differ */
  int64_t max_size;       /* of the largest group; 0 without groups */
  int64_t total;          /* members of all groups */
  int64_t low, high;      /* bounds of the members; low > high without groups */
  int depth;              /* levels of families below this one, at most MGRID_DEPTH_MAX */
  /* this family and all below it; a family that occurs twice counts twice */
  int64_t nodes;
  size_t bytes; /* memory of these families */
};

/* ------------------------------------------------------------ a form's table */

typedef enum mgrid_tristate { MGRID_NO, MGRID_YES, MGRID_UNDECIDED } mgrid_tristate;
typedef struct mgrid_classes mgrid_classes; /* classes.h */
typedef struct mgrid_sets mgrid_sets;

/* The arguments and results of a split (mgrid_family_split). */
typedef struct mgrid_splitting {
  int64_t k; /* members of an inner piece */
  /* the order of the results. false: all pieces of group 0 of the family, then all of group 1, and
  ** so on. true: the first piece of each group, then the second of each group, and so on */
  bool by_row;
  bool lists; /* make lists where no modes give the pieces */
  /* mgrid_family_lists, for groups of different sizes. It is a pointer, because the function is in
  ** a later file (form_table.c). NULL: all groups have one size */
  mgrid_family *(*write_out)(const mgrid_family *f, mgrid_error *err);
  mgrid_family *inner, *outer; /* the results; one may be set if the other failed */
} mgrid_splitting;

/* The shapes of the groups. Two groups have one shape if adding a constant to the ranks of one
** gives the other. Groups i * every to (i + 1) * every - 1 have shape i, for i from 0 to n - 1;
** later groups repeat these shapes in the same order. */
typedef struct mgrid_shapes {
  int64_t n, every;          /* n is 0: the shapes are not known */
  const mgrid_strided *root; /* every group is a piece of a group of this rule */
} mgrid_shapes;

struct mgrid_form {
  const char *name; /* in messages: "strided" */
  bool listed;      /* the groups are stored as lists */
  /* UNION: f->own is an mgrid_parts, and the groups of a part come after those of the part
  ** before */
  bool in_turn;

  /* Questions. The caller has checked that the group, and the position in it, exist. */
  int64_t (*size)(const mgrid_family *f, int64_t group); /* NULL: all groups have one size */
  int64_t (*rank)(const mgrid_family *f, int64_t group, int64_t position);
  bool (*locate)(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                 int64_t *position);
  /* As mgrid_family_slice and mgrid_family_groups. NULL: the caller asks for one rank, or one
  ** group, at a time. */
  void (*slice)(const mgrid_family *f, int64_t group, int64_t position, int64_t n, int32_t *out);
  int64_t (*range)(const mgrid_family *f, int64_t group, int64_t n, int32_t *out);
  /* Return whether one rule makes both families. The caller has checked that both have this form,
  ** equally many groups, and groups of equal sizes. */
  bool (*same_rule)(const mgrid_family *a, const mgrid_family *b);
  /* Return whether group ga of a equals group gb of b. The caller has checked that both families
  ** have this form, and both groups one size. NULL: always undecided. */
  mgrid_tristate (*same_group)(const mgrid_family *a, int64_t ga, const mgrid_family *b,
                               int64_t gb);
  /* append the rule, as in mgrid_family_describe */
  void (*text)(const mgrid_family *f, mgrid_text *t);
  /* append the rule as JSON, which family_read.c reads */
  void (*json)(const mgrid_family *f, mgrid_text *t);
  void (*explain)(const mgrid_family *f, mgrid_text *t); /* append the rule in plain words */
  void (*free)(mgrid_family *f); /* free what the form owns; NULL: it owns nothing */

  /* Questions about all groups at once. Where modes give the answer, its cost does not grow with
  ** the world. */
  /* NULL: no classes; see mgrid_classes_of */
  bool (*classes)(const mgrid_family *f, mgrid_classes *list);
  /* NULL: by the classes; see mgrid_members_of */
  bool (*members)(const mgrid_family *f, mgrid_sets *list);
  /* the number of groups with one member, where sizes differ; NULL: 0 */
  int64_t (*singles)(const mgrid_family *f);
  mgrid_shapes (*shapes)(const mgrid_family *f); /* NULL: not known */
  /* For groups of two ranks. The distance of a group is its second rank minus its first. Return the
  ** distance of all groups whose second rank is higher than their first, or 0 if these groups have
  ** several distances or the distance is not known. *around: whether there are also groups whose
  ** second rank is lower than their first, because the pairs go around a ring. NULL: the distance
  ** is not known. */
  int64_t (*distance)(const mgrid_family *f, bool *around);
  /* For a form that may overlap: see mgrid_family_rounds. in_round NULL: the caller counts group by
  ** group. */
  int64_t (*rounds)(const mgrid_family *f);
  int64_t (*round)(const mgrid_family *f, int64_t group);
  int64_t (*in_round)(const mgrid_family *f, int64_t round);

  /* Operations. The callers of `split` and `bundle` have checked that the groups share no rank.
  ** What NULL means: `split` makes a CUT if all groups have one size, else lists if they are
  ** allowed; `groups` makes lists; `bundle` and `pick` are refused, and the message asks for
  ** lists. */
  /* x->k is 1 or more */
  mgrid_status (*split)(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
  /* n divides the groups */
  mgrid_family *(*bundle)(const mgrid_family *f, int64_t n, mgrid_error *err);
  /* Return whether this bundle writes out all groups as lists. *work: if it does not, how many
  ** positions it lists all the same, as for a PICKED family. NULL: false, 0. */
  bool (*bundle_lists)(const mgrid_family *f, int64_t n, int64_t *work);
  /* Pick distinct positions, from groups of one size. */
  mgrid_family *(*pick)(const mgrid_family *f, int64_t n, const int64_t *positions,
                        mgrid_error *err);
  /* Pick from groups of any sizes. A form that has this function needs no `pick`. mgrid_pick_ask
  ** asks fn for the positions to pick from a group of a size. */
  mgrid_family *(*pick_by)(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err);
  /* Make a family of n different groups of f, in this order. Return NULL and leave *err as it is if
  ** no modes give that order. */
  mgrid_family *(*groups)(const mgrid_family *f, int64_t n, const int64_t *order, mgrid_error *err);
};

/* ------------------------------------------------------------------ family.c */

/* Allocate a family of a form, with one owner. f->own has `own` bytes, all zero. The caller fills
** these, and the sizes and bounds of the family. Return NULL after an error. */
mgrid_family *mgrid_family_alloc(const mgrid_form *form, int64_t world, size_t own,
                                 mgrid_error *err);
/* Count the family `below` as part of f. Refuse f if it is nested too deeply or has too many parts,
** because questions go through the parts by recursion. */
mgrid_status mgrid_family_put_above(mgrid_family *f, const mgrid_family *below, mgrid_error *err);
/* Return the family, or for a twin the family that it was made from, with one more owner. */
mgrid_family *mgrid_family_origin(const mgrid_family *f);
/* Free n families and the array that holds them. */
void mgrid_families_free(size_t n, mgrid_family **f);
/* Refuse with MGRID_OUT_OF_RANGE a list of more elements than a world can have ranks. Such a count
** is a mistake, so the list is not read. */
mgrid_status mgrid_count_check(const char *what, size_t n, mgrid_error *err);
/* Check that the window lies in its world, and that the world has a valid size. */
mgrid_status mgrid_window_check(mgrid_window w, mgrid_error *err);

/* Return the parts if f is a union, whose groups follow each other, else NULL. */
static inline const mgrid_parts *mgrid_family_in_turn(const mgrid_family *f) {
  return f->form->in_turn ? f->own : NULL;
}
/* Write n members of a group, from a position on. */
void mgrid_family_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n,
                        int32_t *out);
/* Write the members of a group. These functions do not check that the group exists;
** mgrid_family_members, for hosts, does. */
void mgrid_family_group(const mgrid_family *f, int64_t group, int32_t *out);
/* Write the members of n groups, one group after the other. Return the number of ranks. */
int64_t mgrid_family_groups(const mgrid_family *f, int64_t group, int64_t n, int32_t *out);
/* Return the number of groups with one member. */
int64_t mgrid_family_singles(const mgrid_family *f);
/* Return whether one rule makes both. True: the groups are equal. False: they may still be
** equal. */
bool mgrid_family_same_rule(const mgrid_family *a, const mgrid_family *b);
/* Append the text of mgrid_family_describe. */
void mgrid_family_text(const mgrid_family *f, mgrid_text *t);
/* Append the family's rule as a JSON object. mgrid_family_read reads it back. */
void mgrid_family_json(const mgrid_family *f, mgrid_text *t);
/* Rounds divide the groups of a cover. The groups of a round share no rank, so they can be created
** at once. Rounds count from 0. All families but covers have one round. */
int64_t mgrid_family_rounds(const mgrid_family *f);
int64_t mgrid_family_round(const mgrid_family *f, int64_t group);
int64_t mgrid_family_in_round(const mgrid_family *f, int64_t round); /* its number of groups */
/* Refuse an operation that needs explicit lists; the message says how to get them. Always return
** NULL. */
void *mgrid_needs_lists(const char *operation, const mgrid_family *f, mgrid_error *err);
/* Call the operation of the form's table; mgrid_bundle refuses if the form has none. */
mgrid_family *mgrid_bundle(const mgrid_family *f, int64_t n, mgrid_error *err);
bool mgrid_bundle_lists(const mgrid_family *f, int64_t n, int64_t *work);

/* Compare two keys, for qsort. A key is (a number << 32) | a value. */
int mgrid_key_order(const void *a, const void *b);
/* Return the index of the first of n ascending keys that has this number or a larger one. */
int64_t mgrid_key_at(const uint64_t *keys, int64_t n, int64_t number);
/* Return the index of the last of n runs that starts at `at` or before. `starts` ascends from 0. */
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

/* As mgrid_family_equal. Charge the work to the budget; once that is exhausted, the result means
** nothing. */
bool mgrid_family_equal_paid(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget);

/* ----------------------------------------------------------------- op_pick.c */

/* Ask fn which positions to pick from a group of `size` ranks, and refuse wrong ones. fn may count
** from the end, with negative numbers, and may repeat positions. Write each position once, as a
** number from 0. Return how many they are, or -1 after an error. */
int64_t mgrid_pick_ask(mgrid_pick_fn fn, void *ud, int64_t size, int64_t *positions, int64_t cap,
                       mgrid_error *err);
/* Return how many positions fn may give for a group of that size. */
static inline int64_t mgrid_pick_room(int64_t size) { return size < 32768 ? 2 * size + 16 : 65536; }

/* --------------------------------------------------------------- form_view.c */

extern const mgrid_form mgrid_cut_form;
/* Cut the groups of a base into n pieces. The groups are disjoint and of one size. `starts` holds
** the first position of each piece, then the group size. Take `starts` over, also on failure; NULL
** means out of memory. Equal pieces become a split, which is STRIDED if modes give them. */
mgrid_family *mgrid_cut_at(const mgrid_family *base, int64_t n, int64_t *starts, bool by_row,
                           mgrid_error *err);
/* Call the operation of the form's table. A form without one makes a CUT or lists. */
mgrid_status mgrid_split(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
/* Split a family with groups of one size: the pieces are a CUT. */
mgrid_status mgrid_split_cut(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
/* Split a family with groups of different sizes: the pieces are lists. */
mgrid_status mgrid_split_lists(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
/* Refuse a split, and name the sizes that work. `blocking`: the mode of f inside which a piece
** would end, or NULL. */
mgrid_status mgrid_split_refuse(const mgrid_family *f, int64_t k, const mgrid_mode *blocking,
                                mgrid_error *err);

extern const mgrid_form mgrid_picked_form;
/* Pick positions of a STRIDED base. They are distinct and in range. */
mgrid_family *mgrid_picked_new(const mgrid_family *base, int64_t n, const int64_t *positions,
                               mgrid_error *err);

/* ------------------------------------------------------------ form_strided.c */

extern const mgrid_form mgrid_strided_form;
/* Make a strided family. Return NULL and leave *err as it is if the strides are not
** superincreasing. */
mgrid_family *mgrid_strided_new(int64_t world, int64_t offset, const mgrid_modes *inside,
                                const mgrid_modes *index, mgrid_error *err);
bool mgrid_strided_equal(const mgrid_strided *x, const mgrid_strided *y);
/* Return the rank at position 0 of a group. */
static inline int64_t mgrid_strided_start(const mgrid_strided *s, int64_t group) {
  return s->offset + mgrid_modes_offset(&s->index, group);
}

/* -------------------------------------------------------------- form_table.c */

extern const mgrid_form mgrid_table_form;
/* Make a table. Take `starts` and `ranks` over, also on failure; if one is NULL, report out of
** memory. With `recognize`, lists that modes describe become STRIDED. */
mgrid_family *mgrid_table_adopt(mgrid_window w, int64_t count, int64_t *starts, int32_t *ranks,
                                mgrid_coverage declared, bool recognize, mgrid_error *err);
/* As mgrid_family_table, but with 32-bit ranks. */
mgrid_family *mgrid_table_of(mgrid_window w, int64_t ngroups, const int64_t *starts,
                             const int32_t *ranks, mgrid_coverage declared, mgrid_error *err);
/* Return the coverage for a table made of members of f, group by group: MGRID_COVER if f overlaps,
** else MGRID_PARTIAL. */
mgrid_coverage mgrid_table_coverage(const mgrid_family *f);

/* -------------------------------------------------------------- form_parts.c */

extern const mgrid_form mgrid_union_form, mgrid_zip_form;
/* Make a family of n parts. The caller has checked that they fit together. Take the parts and the
** array over, also on failure. */
mgrid_family *mgrid_union_new(size_t n, mgrid_family **child, mgrid_error *err);
mgrid_family *mgrid_zip_new(size_t n, mgrid_family **child, mgrid_budget *budget, mgrid_error *err);
/* Apply op to each part of a union and make a union of the results; NULL if op fails on one. */
typedef mgrid_family *(*mgrid_child_fn)(const mgrid_family *child, void *ud, mgrid_error *err);
mgrid_family *mgrid_union_map(const mgrid_family *f, mgrid_child_fn op, void *ud, mgrid_error *err);

/* ------------------------------------------------------------- op_renumber.c */

/* As mgrid_family_renumber and mgrid_family_select, but without lists. Return NULL and leave *err
** as it is if no modes give that order. For a zip, renumber each of its parts. */
mgrid_family *mgrid_renumber_by_rule(const mgrid_family *f, size_t n, const int64_t *order,
                                     mgrid_error *err);
mgrid_family *mgrid_select_by_rule(const mgrid_family *f, size_t n, const int64_t *groups,
                                   mgrid_error *err);

/* -------------------------------------------------------------- form_pairs.c */

extern const mgrid_form mgrid_pairs_form;

/* -------------------------------------------------------------- op_regroup.c */

/* As mgrid_family_union and mgrid_family_zip. Charge the work to the budget; once that is
** exhausted, the result means nothing. */
mgrid_family *mgrid_family_combine(bool zip, size_t n, const mgrid_family *const *fs,
                                   mgrid_budget *budget, mgrid_error *err);
/* A zip with `spread` repeats the groups of f until there are `count`. Return how many members
** these have together. A result above MGRID_WORLD_MAX is not exact. */
int64_t mgrid_spread_total(const mgrid_family *f, int64_t count);
/* As mgrid_family_zip with `spread`. Charge the work to the budget; once that is exhausted, the
** result means nothing. */
mgrid_family *mgrid_family_spread(size_t n, const mgrid_family *const *fs, mgrid_budget *budget,
                                  mgrid_error *err);

/* Check the sizes of n consecutive pieces of `size` positions. One size may be MGRID_FILL: *fill
** becomes the size of that piece. */
mgrid_status mgrid_segments_check(int64_t size, size_t n, const int64_t *sizes, int64_t *fill,
                                  mgrid_error *err);

/* ------------------------------------------------------------- op_closure.c */

/* As mgrid_family_closure, in O(modes). n is 1 or more, and the families have one world. Return
** NULL and leave *err as it is if no modes describe the groups of the closure. */
mgrid_family *mgrid_closure_by_rule(size_t n, const mgrid_family *const *fs, mgrid_error *err);

/* ------------------------------------------------------------- family_read.c */

/* As mgrid_family_modes and mgrid_family_parse. Without `lists`, return NULL and leave *err as it
** is where those functions would make lists. */
mgrid_family *mgrid_layout_modes(mgrid_window w, int64_t offset, size_t ninside,
                                 const mgrid_mode *inside, size_t nindex, const mgrid_mode *index,
                                 bool lists, mgrid_error *err);
mgrid_family *mgrid_layout_parse(mgrid_window w, const char *text, bool lists, mgrid_error *err);

/* Read back what mgrid_family_json wrote, in the same form. Return NULL after an error, or once the
** budget is exhausted. */
mgrid_family *mgrid_family_read(const mgrid_field *s, int64_t world);

#endif
