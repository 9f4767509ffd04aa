/* SPDX-License-Identifier: MIT
**
** names.h - rules between the names of two systems, one rule on a line:
**
**   model.layers.(%d+).mlp.down_proj.weight -> l%1_down                    the same tensor under two names
**   a.(%d+).gate.weight + a.%1.up.weight -> l%1_gate_up                    concatenated on the first axis
**   h.%1.q + h.%1.k + h.%1.v -> h.(%d+).qkv by 8                           in 8 blocks, each with a block of q, k, v
**   h.(%d+).mlp.c_fc.weight -> l%1_up transposed                           with its two axes exchanged
**   a.(%d+).experts.(%d+).w1 -> l%1_w1[%2]                                 as slice %2 of the first axis
**   a.(%d+).rotary_emb.inv_freq -> -                                       not wanted
**
** A rule says that both sides have the same elements, so it works in both directions: the
** checkpoint has the names of one side, and the recipe the names of the other. A capture is (%d+),
** (%a+), (%w+) or (.+) where it first occurs; after that %1, %2, ... stand for its text.
** In `NAME -> -`, * stands for any text. All other characters stand for themselves, also dots and
** letters outside ASCII; the bytes 1 to 5 are not allowed. A line of two words, PATTERN TENSOR, is
** a layout: a stored tensor whose name fits the shell pattern is cut like that tensor of the
** recipe, and keeps its name.
*/
#ifndef MGRID_NAMES_H
#define MGRID_NAMES_H

#include "base/base.h"

enum { NAMES_CAPTURES = 4, NAMES_ON_A_SIDE = 16 };

typedef struct names_side {
  size_t n;
  char *name[NAMES_ON_A_SIDE]; /* [n]; bytes 1 to 4 are captures, and byte 5 is any text */
  int slice;                   /* the capture that is an index of the first axis; -1: none */
} names_side;

typedef struct names_rule {
  int line;
  const char *layout; /* the tensor of a layout; its pattern is side[0].name[0]. NULL: a rule */
  names_side side[2]; /* if the second side is empty, tensors that fit the first are not wanted */
  size_t ncaptures;
  char kind[NAMES_CAPTURES]; /* 'd', 'a', 'w' or '.' */
  bool transposed;
  int64_t axis;      /* of the concatenation; the axis of a slice's index is not counted */
  const char *by;    /* a number of blocks, or the name of a parameter with this number; NULL: 1 */
  const char *or_by; /* to use if `by` is a parameter that the plan does not have; NULL: none */
} names_rule;

typedef struct names {
  const char *from; /* where the rules are written, for messages */
  char *text;       /* owns the strings of the rules */
  size_t n;
  names_rule *rule;
  mgrid_budget *budget; /* limits the work of matching; NULL: the user's rules, without a limit */
} names;

/* The texts of a rule's captures in a name. */
typedef struct names_bound {
  const char *at[NAMES_CAPTURES]; /* NULL: none yet */
  size_t length[NAMES_CAPTURES];
} names_bound;

/* Read rules. `from` is borrowed. */
mgrid_status names_read(names *out, const char *from, const char *text, size_t length,
                        mgrid_error *err);
void names_free(names *n);
/* Find whether a name fits name i of a side of the rule, and bind the captures, unless `bound` is
** NULL. If a name fits in several ways, each capture is as long as possible, from left to right.
** O(length of the rule's name x length of the name). MGRID_LIMIT if this is not enough for a
** capture that occurs twice in the rule's name, if captures are bound and the product of the
** lengths is above 2^24, or if the budget is exhausted. */
mgrid_status names_fit(const names *all, const names_rule *r, int side, size_t i, const char *name,
                       names_bound *bound, bool *fits, mgrid_error *err);
/* Find whether a name fits the pattern of a layout. O(length of the pattern x length of the
** name). */
mgrid_status names_laid_out(const names *all, const names_rule *r, const char *name, bool *fits,
                            mgrid_error *err);
/* Append name i of a side, with the texts of its captures. */
void names_put(const names_rule *r, int side, size_t i, const names_bound *bound, mgrid_text *out);

#endif
