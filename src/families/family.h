/* SPDX-License-Identifier: MIT
**
** family.h - what a family is inside. A form is a way to hold the groups; each has a file, with its row of operations at
** the end. From the usual to the last resort:
**
**   STRIDED  group i, position p  ->  offset + index[i] + inside[p]
**   PICKED   some positions of the groups of a STRIDED base, in an order that follows no rule of modes
**   PAIRS    position i of a group of the base, and position i + step
**   CUT      pieces of the groups of a base, where no layout of them exists
**   UNION    the groups of one part after those of another
**   ZIP      group i of each part, joined
**   TABLE    explicit lists, with an inverse index by rank
**
** Whatever can be STRIDED is: picks and tables that turn out regular are recognized when
** they are made, so that equal rules have one form.
**
** A file calls only files before it in this list (lint refuses a circle): modes, points; family, which asks a form through
** its row alone; classes, equal, pick; the forms and what makes them: cut, picked, strided, table, lists, parts, union,
** renumber, zip, pairs; what works on families of any form: join, split, layout, dims, order, grid, along, reshape, where,
** read.
*/
#ifndef MGRID_FAMILY_H
#define MGRID_FAMILY_H

#include "base/scan.h"
#include "families/modes.h"

#include <stdatomic.h>

/* The way out where groups share ranks, at the end of a message. */
#define MGRID_BY_LIST "; world:table(lists, \"cover\") holds such groups, listed one by one"

/* A family made of families, one over the other, at most; the parts of one, with all that these are made of; and the
** rounds of a cover, which are as many as a rank of it has groups, or more. */
enum { MGRID_DEPTH_MAX = 64, MGRID_PARTS_MAX = 4096, MGRID_ROUNDS_MAX = 1024 };

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
  mgrid_modes  index;   /* the starts of the groups; right behind `inside`, so that a slice reads both as one list */
  int          ndigits; /* modes of both */
  mgrid_digit *digits;  /* the modes of both, largest stride first */
} mgrid_strided;

typedef struct mgrid_parts { /* of a UNION or ZIP */
  size_t         n;          /* 1 or more */
  mgrid_family **child;      /* [n] */
} mgrid_parts;

typedef struct mgrid_form mgrid_form;

struct mgrid_family {
  atomic_int        refs;        /* owners */
  const mgrid_form *form;        /* the row of its operations */
  bool              twin;        /* its groups never share a communicator */
  bool              overlapping; /* a rank may be in several groups */
  mgrid_family     *origin;      /* of a twin: what it was made from, whose memory it uses */
  mgrid_strided    *rule;        /* of a STRIDED family; of others NULL */
  void             *own;         /* what its form knows of it, behind the family in memory */
  int64_t           world;       /* ranks of the world */
  int64_t           count;       /* groups */
  int64_t           size;        /* members of every group, or -1 where they differ */
  int64_t           max_size;    /* of the largest group; 0 without groups */
  int64_t           total;       /* members of all groups */
  int64_t           low, high;   /* bounds of the members; low > high without groups */
  int               depth;       /* families below this one, one under the other: at most MGRID_DEPTH_MAX */
  int64_t           nodes;       /* it and all below it; one that is below twice counts twice */
  size_t            bytes;       /* of memory that these hold */
};

/* ------------------------------------------------------------ a form's row */

typedef enum mgrid_told { MGRID_NO, MGRID_YES, MGRID_UNTOLD } mgrid_told;
typedef struct mgrid_classes mgrid_classes; /* classes.h */
typedef struct mgrid_sets    mgrid_sets;

/* A split that is being made. */
typedef struct mgrid_splitting {
  int64_t k;      /* members of a run */
  bool    by_row; /* count the groups of the family before their pieces */
  bool    lists;  /* also where no layout exists */
  /* mgrid_family_lists, for groups that differ in size; NULL: they do not. */
  mgrid_family *(*write_out)(const mgrid_family *f, mgrid_error *err);
  mgrid_family *inner, *outer; /* the results, also where one of them failed */
} mgrid_splitting;

/* The shapes that groups have, each shifted along some groups: shape i is that of group i * every. */
typedef struct mgrid_shapes {
  int64_t              n, every; /* n 0: not known */
  const mgrid_strided *root;     /* the rule that all of them are cut from */
} mgrid_shapes;

struct mgrid_form {
  const char *name;    /* in messages: "strided" */
  bool        listed;  /* the groups are lists: no rule makes them */
  bool        in_turn; /* f->own is a mgrid_parts, whose groups follow each other */

  /* Questions. A group that they are asked of exists, and a position in it. */
  int64_t (*size)(const mgrid_family *f, int64_t group); /* NULL: all groups have one size */
  int64_t (*rank)(const mgrid_family *f, int64_t group, int64_t position);
  bool (*locate)(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group, int64_t *position);
  /* mgrid_family_slice and _range. NULL: rank by rank, group by group. */
  void (*slice)(const mgrid_family *f, int64_t group, int64_t position, int64_t n, int32_t *out);
  int64_t (*range)(const mgrid_family *f, int64_t group, int64_t n, int32_t *out);
  /* Of two of this form with as many groups, members and sizes: are they made by the same rule? */
  bool (*same_rule)(const mgrid_family *a, const mgrid_family *b);
  /* Of two of this form, groups of one size: are these equal? NULL: the rules do not tell. */
  mgrid_told (*same_group)(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t gb);
  void (*text)(const mgrid_family *f, mgrid_text *t);    /* append the rule, as in mgrid_family_describe */
  void (*explain)(const mgrid_family *f, mgrid_text *t); /* append what the rule says, in words */
  void (*free)(mgrid_family *f);                         /* what the form owns; NULL: nothing */

  /* Questions about all groups at once, whose cost does not grow with the world where a rule answers. */
  bool (*classes)(const mgrid_family *f, mgrid_classes *list); /* NULL: no classes; see mgrid_classes_of */
  bool (*members)(const mgrid_family *f, mgrid_sets *list);    /* NULL: by the classes; see mgrid_members_of */
  int64_t (*singles)(const mgrid_family *f);                   /* groups of one rank, where sizes differ; NULL: none */
  mgrid_shapes (*shapes)(const mgrid_family *f);               /* NULL: not known */
  /* Of groups of two: the distance of the ranks of all ascending ones, 0 where it varies. *around: some descend, around
  ** the end. NULL: it varies. */
  int64_t (*distance)(const mgrid_family *f, bool *around);
  /* Of a form that may overlap: see mgrid_family_rounds. in_round NULL: counted group by group. */
  int64_t (*rounds)(const mgrid_family *f);
  int64_t (*round)(const mgrid_family *f, int64_t group);
  int64_t (*in_round)(const mgrid_family *f, int64_t round);

  /* Operations on families whose groups share no rank. NULL: groups of one size are cut by `split`, others and those of
  ** `renumber` are listed, and `bundle` and `pick` ask for lists. */
  mgrid_status (*split)(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err); /* x->k is 1 or more */
  mgrid_family *(*bundle)(const mgrid_family *f, int64_t n, mgrid_error *err);        /* n divides the groups */
  /* Does such a bundle make lists? *work: positions that are listed besides. NULL: neither. */
  bool (*bundle_lists)(const mgrid_family *f, int64_t n, int64_t *work);
  /* Positions that differ, of groups of one size. */
  mgrid_family *(*pick)(const mgrid_family *f, int64_t n, const int64_t *positions, mgrid_error *err);
  /* Instead of `pick`: of groups of any sizes, which are asked by mgrid_pick_ask. */
  mgrid_family *(*pick_by)(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err);
  /* A list with each group once; NULL with *err untouched where no rule has that order. */
  mgrid_family *(*renumber)(const mgrid_family *f, const int64_t *order, mgrid_error *err);
};

/* ------------------------------------------------------------------ family.c */

/* New family of a form, all else zero but for depth, nodes and bytes, or NULL. f->own has room for `own` bytes. */
mgrid_family *mgrid_family_alloc(const mgrid_form *form, int64_t world, size_t own, mgrid_error *err);
/* Count the family `below` as part of f. A family that is nested too deep, or has too many parts, is refused, because
** every question goes through all of them, and down by recursion. */
mgrid_status mgrid_family_put_above(mgrid_family *f, const mgrid_family *below, mgrid_error *err);
/* The family, or what a twin was made from, owned once more. */
mgrid_family *mgrid_family_origin(const mgrid_family *f);
/* Free n families and the array that holds them. */
void mgrid_families_free(size_t n, mgrid_family **f);
/* MGRID_OUT_OF_RANGE for more elements than a world can have ranks: a count that was never meant, of which nothing is
** read. */
mgrid_status mgrid_count_check(const char *what, size_t n, mgrid_error *err);
/* Is it a window of a world that can be? */
mgrid_status mgrid_window_check(mgrid_window w, mgrid_error *err);

/* The parts whose groups follow each other in f, if it is a union; else NULL. */
static inline const mgrid_parts *mgrid_family_in_turn(const mgrid_family *f) {
  return f->form->in_turn ? f->own : NULL;
}
/* Write n members of one group from a position on, so that a long group can be read in pieces. */
void mgrid_family_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n, int32_t *out);
/* Groups of one rank. */
int64_t mgrid_family_singles(const mgrid_family *f);
/* Are both made by the same rule? True: the groups are equal. False: they may still be equal. */
bool mgrid_family_same_rule(const mgrid_family *a, const mgrid_family *b);
/* Append the text of mgrid_family_describe. */
void mgrid_family_text(const mgrid_family *f, mgrid_text *t);
/* The groups of a round share no rank, so they can be created at once. Rounds are 0 to
** mgrid_family_rounds - 1; all families but covers have one. */
int64_t mgrid_family_rounds(const mgrid_family *f);
int64_t mgrid_family_round(const mgrid_family *f, int64_t group);
int64_t mgrid_family_in_round(const mgrid_family *f, int64_t round); /* how many groups it has */
/* Refuse an operation that needs explicit lists, and say how to get them; always NULL. */
void *mgrid_needs_lists(const char *operation, const mgrid_family *f, mgrid_error *err);
/* The operations of the row. */
mgrid_family *mgrid_bundle(const mgrid_family *f, int64_t n, mgrid_error *err);
bool          mgrid_bundle_lists(const mgrid_family *f, int64_t n, int64_t *work);

/* Keys are a number << 32 with what belongs to it below. Compare two, for qsort; find the first of n ascending ones that
** has the number or a larger one. */
int     mgrid_key_order(const void *a, const void *b);
int64_t mgrid_key_at(const uint64_t *keys, int64_t n, int64_t number);
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

/* ------------------------------------------------------------------- equal.c */

/* mgrid_family_equal whose work is paid; it means nothing where the payer pays no more. */
bool mgrid_family_equal_paid(const mgrid_family *a, const mgrid_family *b, mgrid_payer *payer);

/* -------------------------------------------------------------------- pick.c */

/* Ask for positions in groups of `size`, and make them positions in range that differ. How many, or -1 after filling
** *err. */
int64_t mgrid_pick_ask(mgrid_pick_fn fn, void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err);
/* Room for what a function may answer about groups of that size. */
static inline int64_t mgrid_pick_room(int64_t size) { return size < 32768 ? 2 * size + 16 : 65536; }

/* --------------------------------------------------------------------- cut.c */

extern const mgrid_form mgrid_cut_form;
/* Pieces of the groups of a base, which are disjoint and of one size: `starts` (owned from now on, also on
** failure; NULL: the error is out of memory) has the first positions of n pieces and then the size. Equal
** pieces are a split, so that they are STRIDED where a layout exists. */
mgrid_family *mgrid_cut_at(const mgrid_family *base, int64_t n, int64_t *starts, bool by_row, mgrid_error *err);
/* The operation of the row. */
mgrid_status mgrid_split(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
/* The split of any family with groups of one size, whose questions answer for the pieces; of others, which are written
** out. */
mgrid_status mgrid_split_cut(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
mgrid_status mgrid_split_lists(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err);
/* Name the sizes that a split would take; `blocking` is the mode of f's rule that is in the way, or NULL. */
mgrid_status mgrid_split_refuse(const mgrid_family *f, int64_t k, const mgrid_mode *blocking, mgrid_error *err);

/* ------------------------------------------------------------------ picked.c */

extern const mgrid_form mgrid_picked_form;
/* Positions, in range and different, of a STRIDED base. */
mgrid_family *mgrid_picked_new(const mgrid_family *base, int64_t n, const int64_t *positions, mgrid_error *err);

/* ----------------------------------------------------------------- strided.c */

extern const mgrid_form mgrid_strided_form;
/* Strided family; NULL where the strides are not superincreasing, with *err untouched. */
mgrid_family *mgrid_strided_new(int64_t world, int64_t offset, const mgrid_modes *inside, const mgrid_modes *index,
                                mgrid_error *err);
bool          mgrid_strided_equal(const mgrid_strided *x, const mgrid_strided *y);
/* The rank at position 0 of a group. */
static inline int64_t mgrid_strided_start(const mgrid_strided *s, int64_t group) {
  return s->offset + mgrid_modes_offset(&s->index, group);
}

/* ------------------------------------------------------------------- table.c */

extern const mgrid_form mgrid_table_form;
/* Table that owns `starts` and `ranks` from now on, also on failure; if either is NULL the error is out of
** memory. With `recognize` lists that follow a rule of modes become STRIDED. */
mgrid_family *mgrid_table_adopt(mgrid_window w, int64_t count, int64_t *starts, int32_t *ranks, mgrid_coverage declared,
                                bool recognize, mgrid_error *err);
/* The coverage to declare for a table that holds some of f's members, group by group. */
mgrid_coverage mgrid_table_coverage(const mgrid_family *f);

/* ------------------------------------------------------------------- parts.c */

/* What UNION and ZIP have in common. A family of n parts, which have to fit together, without count and sizes; it owns
** them and the array from now on, also on failure. */
mgrid_family *mgrid_parts_new(const mgrid_form *form, size_t n, mgrid_family **child, mgrid_error *err);
void          mgrid_parts_free(mgrid_family *f);
bool          mgrid_parts_same_rule(const mgrid_family *a, const mgrid_family *b);
void          mgrid_parts_text(const mgrid_family *f, mgrid_text *t); /* "NAME[ | ]" */
bool          mgrid_parts_members(const mgrid_family *f, mgrid_sets *list);

/* ------------------------------------------------------------ union.c, zip.c */

extern const mgrid_form mgrid_union_form, mgrid_zip_form;
/* As mgrid_parts_new. */
mgrid_family *mgrid_union_new(size_t n, mgrid_family **child, mgrid_error *err);
mgrid_family *mgrid_zip_new(size_t n, mgrid_family **child, mgrid_payer *payer, mgrid_error *err);
/* Apply op to each part of a union and join the results to a union again; NULL if op fails on one. */
typedef mgrid_family *(*mgrid_child_fn)(const mgrid_family *child, void *ud, mgrid_error *err);
mgrid_family *mgrid_union_map(const mgrid_family *f, mgrid_child_fn op, void *ud, mgrid_error *err);

/* ---------------------------------------------------------------- renumber.c */

/* The groups in that order by a rule, without lists; NULL with *err untouched where no rule of modes has it. A zip is
** renumbered part by part. */
mgrid_family *mgrid_renumber_by_rule(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err);

/* ------------------------------------------------------------------- pairs.c */

extern const mgrid_form mgrid_pairs_form;

/* -------------------------------------------------------------------- join.c */

/* mgrid_family_union, _zip and _zip_spread whose work is paid; what they make means nothing where the payer pays no more. */
mgrid_family *mgrid_family_combine(bool zip, size_t n, const mgrid_family *const *fs, mgrid_payer *payer,
                                   mgrid_error *err);
mgrid_family *mgrid_family_spread(size_t n, const mgrid_family *const *fs, mgrid_payer *payer, mgrid_error *err);

/* ------------------------------------------------------------------- split.c */

/* Check the sizes of n consecutive pieces of `size` positions; *fill becomes what one of MGRID_FILL takes. */
mgrid_status mgrid_segments_check(int64_t size, size_t n, const int64_t *sizes, int64_t *fill, mgrid_error *err);

/* ------------------------------------------------------------------ layout.c */

/* As mgrid_family_modes and mgrid_family_parse; without `lists` NULL with *err untouched where those make lists. */
mgrid_family *mgrid_layout_modes(mgrid_window w, int64_t offset, size_t ninside, const mgrid_mode *inside,
                                 size_t nindex, const mgrid_mode *index, bool lists, mgrid_error *err);
mgrid_family *mgrid_layout_parse(mgrid_window w, const char *text, bool lists, mgrid_error *err);

/* -------------------------------------------------------------------- read.c */

/* The family that mgrid_family_text wrote, in the same form; NULL after a fault, or where the payer pays no more. */
mgrid_family *mgrid_family_read(mgrid_scan *s, int64_t world);

#endif
