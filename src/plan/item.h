/* SPDX-License-Identifier: MIT
**
** item.h - what a topology and a plan may hold beside families and grids: the things of slices, as the tensors of
** src/tensors. A slice has a row for its kind of thing, which each thing brings along: the way knows no more of it. Only a
** plan that is read back finds a kind by its name.
*/
#ifndef MGRID_ITEM_H
#define MGRID_ITEM_H

#include "base/scan.h"
#include "moongrid.h"

struct mgrid_json;    /* plan/json.h */
struct mgrid_content; /* plan/topology.h */

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
  /* Write a field of JSON, beside the texts, that the reader below needs of a plan with such things. NULL: it needs none. */
  void (*beside)(const struct mgrid_content *c, struct mgrid_json *w);
} mgrid_item_kind;

/* Makes the things of a kind out of their texts: mgrid_plan_read finds it by the word. A slice with things of a plan has it
** in item_reader.c, as mgrid_item_reader_SLICE; the table of all is written by the Makefile. */
typedef struct mgrid_item_reader {
  const char *word;                               /* the name of the kind */
  const char *beside;                             /* the field of JSON that `beside` of the kind writes; NULL: none */
  void *(*begin)(size_t lines, mgrid_error *err); /* of a text of so many lines */
  /* Read a text; of the field beside the rules `name` is NULL. A failure is in the scan. */
  void (*line)(void *r, const char *name, int64_t world, mgrid_scan *s);
  mgrid_status (*end)(void *r, struct mgrid_topology *t, mgrid_error *err); /* all are read: name them in a topology */
  void (*free)(void *r);
} mgrid_item_reader;

extern const mgrid_item_reader *const mgrid_item_readers[]; /* up to NULL */

typedef struct mgrid_item {
  char                   name[MGRID_NAME_MAX + 1];
  const mgrid_item_kind *kind;
  size_t                 nth; /* of its kind */
  void                  *x;
} mgrid_item;

#endif
