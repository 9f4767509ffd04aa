/* SPDX-License-Identifier: MIT
**
** names.h - rules between the names of two systems, one on a line:
**
**   model.layers.(%d+).mlp.down_proj.weight -> l%1_down                    the same tensor under two names
**   a.(%d+).gate.weight + a.%1.up.weight -> l%1_gate_up                    concatenated on the first axis
**   h.%1.q + h.%1.k + h.%1.v -> h.(%d+).qkv by 8                           in 8 blocks, each with a block of q, k, v
**   h.(%d+).mlp.c_fc.weight -> l%1_up transposed                           with its two axes exchanged
**   a.(%d+).experts.(%d+).w1 -> l%1_w1[%2]                                 as slice %2 of the first axis
**   a.(%d+).rotary_emb.inv_freq -> -                                       not wanted
**
** A rule says that both sides have the same elements, so it works in either direction: the side
** that a checkpoint has makes the side that a recipe has. A capture is (%d+), (%a+), (%w+) or (.+)
** where it first occurs; after that %1, %2, ... stand for its text. All other characters stand for
** themselves, also dots and letters that are not ASCII. No name has the bytes 1 to 5. On the left
** of `-> -`, * is any text. Two words, PATTERN TENSOR, are a layout: a stored tensor whose name
** fits the pattern, as in a shell, is cut like that tensor of the recipe, and keeps its name.
*/
#ifndef MGRID_NAMES_H
#define MGRID_NAMES_H

#include "base/base.h"

enum { NAMES_CAPTURES = 4, NAMES_ON_A_SIDE = 16 };

typedef struct names_side {
  size_t n;
  /* bytes 1 to NAMES_CAPTURES stand for captures, and byte 5 for any text */
  char *name[NAMES_ON_A_SIDE];
  int slice; /* the capture that gives an index of the first axis; -1: none */
} names_side;

typedef struct names_rule {
  int line;
  /* the tensor of a layout, whose pattern is side[0].name[0]; NULL: this is a rule */
  const char *layout;
  names_side side[2]; /* if the second side is empty, tensors that fit the first are not wanted */
  size_t ncaptures;
  char kind[NAMES_CAPTURES]; /* 'd', 'a', 'w' or '.' */
  bool transposed;
  /* the axis on which names are concatenated; the axis of a slice's index does not count */
  int64_t axis;
  const char *by;    /* the number of blocks, or the name of a parameter that has it; NULL: 1 */
  const char *or_by; /* another parameter, if the plan does not have that one; NULL: none */
} names_rule;

typedef struct names {
  const char *from; /* where the rules are written, for messages */
  char *text;       /* owns the texts to which rules point */
  size_t n;
  names_rule *rule;
  /* for rules of a recipe: pays for matching; NULL: they are the user's, and free */
  mgrid_budget *budget;
} names;

/* The texts for which the captures of a rule stand in a name. */
typedef struct names_bound {
  const char *at[NAMES_CAPTURES]; /* NULL: not bound */
  size_t length[NAMES_CAPTURES];
} names_bound;

/* Read rules. `from` is borrowed. */
mgrid_status names_read(names *out, const char *from, const char *text, size_t length,
                        mgrid_error *err);
void names_free(names *n);
/* Find whether a name fits name i of a side, and bind the captures: from left to right, each gets
** as much as it can have. `bound` NULL: do not bind them. O(length of the rule's name x length of
** the name). MGRID_LIMIT: a capture occurs twice in the rule's name, and so many steps are not
** enough. */
mgrid_status names_fit(const names *all, const names_rule *r, int side, size_t i, const char *name,
                       names_bound *bound, bool *fits, mgrid_error *err);
/* Find whether a name fits the pattern of a layout. O(length of the pattern x length of the
** name). */
mgrid_status names_laid_out(const names *all, const names_rule *r, const char *name, bool *fits,
                            mgrid_error *err);
/* Append name i of a side, with the texts of its captures. */
void names_put(const names_rule *r, int side, size_t i, const names_bound *bound, mgrid_text *out);

#endif
