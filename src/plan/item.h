/* SPDX-License-Identifier: MIT
**
** item.h - items: what modules add to a topology and a plan beside families and grids, such as the
** tensors of src/tensors. A module has a table of functions for its kind of item, and each item
** points to this table. Topologies and plans know nothing else about items. Only the reader of
** saved plans finds a kind by its name.
*/
#ifndef MGRID_ITEM_H
#define MGRID_ITEM_H

#include "base/field.h"
#include "moongrid.h"

struct mgrid_json;    /* plan/json.h */
struct mgrid_content; /* plan/topology.h */

typedef struct mgrid_item_kind {
  const char *name;  /* "tensor": in messages, in texts, and in the rules of a saved plan */
  const char *names; /* "tensors": in JSON */
  int64_t (*world)(const void *x); /* the size of its world */
  void *(*ref)(const void *x);     /* another owner; never fails */
  void (*free)(void *x);           /* remove an owner */
  size_t (*held)(const void *x);   /* bytes of memory */
  /* return whether no group depends on the item; such an item is not in the text, the digest and
  ** the JSON of a plan. NULL: groups depend on all items of this kind */
  bool (*unread)(const void *x);
  void (*text)(const void *x, mgrid_text *t); /* append its rule on one line */
  /* Append the fields of item i, with a comma before each. Its reader makes the item again from
  ** them, and the digest is made of them: so equal items have equal fields. NULL: one field "text",
  ** the item's text as a user would write it. */
  void (*rule)(const struct mgrid_content *c, size_t i, mgrid_text *t);
  /* Write its value, or with rank >= 0 the value of that rank's part. */
  void (*json)(const void *x, int64_t rank, struct mgrid_json *w);
  /* return the ranks that are meant to be in no group; NULL: none */
  const mgrid_family *(*unused)(const void *x);
  /* Append a line for each likely mistake in the item. `listed`: also for axes of tensors whose
  ** pieces are lists. NULL: there are none. */
  void (*notes)(const void *x, const char *name, bool listed, mgrid_text *t);
  /* Before communicators are created, compare the item with the nodes of the job: `host` identifies
  ** the node of each of the `world` ranks, `name` is the name of this rank's node. Refuse a
  ** difference. Only items in the digest are asked, because all ranks have these. NULL: the item
  ** says nothing about nodes. */
  mgrid_status (*meets)(const void *x, const uint64_t *host, int64_t world, int64_t rank,
                        const char *name, mgrid_error *err);
} mgrid_item_kind;

/* The reader of a kind of item in saved plans. It reads the fields that `rule` of the kind wrote,
** and puts the item into the topology under this name. A failure goes into the field. A module with
** items defines mgrid_item_reader_MODULE in MODULE_item.c; the Makefile writes the table of all
** readers. */
typedef struct mgrid_item_reader {
  const char *word;   /* the name of the kind */
  const char *fields; /* all fields that its rule may have, separated by blanks */
  void (*read)(const mgrid_field *s, const char *name, struct mgrid_topology *t);
} mgrid_item_reader;

extern const mgrid_item_reader *const mgrid_item_readers[]; /* ends with NULL */

typedef struct mgrid_item {
  char name[MGRID_ITEM_NAME_MAX + 1];
  const mgrid_item_kind *kind;
  size_t nth; /* index within its kind */
  void *x;
} mgrid_item;

static inline bool mgrid_item_unread(const mgrid_item *i) {
  return i->kind->unread && i->kind->unread(i->x);
}

#endif
