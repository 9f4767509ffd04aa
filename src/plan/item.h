/* SPDX-License-Identifier: MIT
**
** item.h - what a topology and a plan may hold beside families and grids: the things of slices, as the tensors of
** src/tensors. A slice has a row for its kind of thing. The way knows no more of a thing than its row, and each thing
** brings that along, so that there is no list of kinds.
*/
#ifndef MGRID_ITEM_H
#define MGRID_ITEM_H

#include "base/base.h"
#include "moongrid.h"

struct mgrid_json; /* plan/json.h */

typedef struct mgrid_item_kind {
  const char *name;                /* "tensor": in messages, in the canonical text, in a comparison of plans */
  const char *names;               /* "tensors": in JSON */
  int64_t (*world)(const void *x); /* ranks of the world that it is for */
  void *(*ref)(const void *x);     /* another owner; never fails */
  void (*free)(void *x);           /* of one owner */
  size_t (*held)(const void *x);   /* bytes of memory */
  void (*text)(const void *x, mgrid_text *t); /* its rule on one line, for the digest: equal things have equal texts */
  /* Write its value, or (rank >= 0) that of what a rank has of it. */
  void (*json)(const void *x, int64_t rank, struct mgrid_json *w);
  /* Append a line for whatever of it may be a mistake; `listed`: also where lists of the recipe say so. NULL: nothing can. */
  void (*notes)(const void *x, const char *name, bool listed, mgrid_text *t);
} mgrid_item_kind;

typedef struct mgrid_item {
  char                   name[MGRID_NAME_MAX + 1];
  const mgrid_item_kind *kind;
  size_t                 nth; /* of its kind */
  void                  *x;
} mgrid_item;

#endif
