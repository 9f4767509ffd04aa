/* SPDX-License-Identifier: MIT
**
** item.h - things of modules in a topology and a plan, beside families and grids: the tensors of
** src/tensors, for example. A module has a table of functions for its kind of thing, and each thing
** points to it. Topologies and plans know nothing else about things. Only the reader of saved plans
** finds a kind by its name.
*/
#ifndef MGRID_ITEM_H
#define MGRID_ITEM_H

#include "base/field.h"
#include "moongrid.h"

struct mgrid_json;    /* plan/json.h */
struct mgrid_content; /* plan/topology.h */

typedef struct mgrid_item_kind {
  const char *name;  /* "tensor": in messages, in texts, in the rules of a saved plan */
  const char *names; /* "tensors": in JSON */
  int64_t (*world)(const void *x); /* the size of its world */
  void *(*ref)(const void *x);     /* another owner; never fails */
  void (*free)(void *x);           /* drop one owner */
  size_t (*held)(const void *x);   /* bytes of memory */
  /* no group depends on it: it is not in the text, the digest and JSON. NULL: it is */
  bool (*unread)(const void *x);
  void (*text)(const void *x, mgrid_text *t); /* its rule on one line */
  /* Append the fields of item i, each after a comma, from which its reader makes it again. Equal
  ** things, equal fields: the digest is over them. NULL: "text", which is its text as a user would
  ** write it. */
  void (*rule)(const struct mgrid_content *c, size_t i, mgrid_text *t);
  /* Write its value, or with rank >= 0 the value of that rank's part. */
  void (*json)(const void *x, int64_t rank, struct mgrid_json *w);
  /* ranks that are meant to be in no group; NULL: none */
  const mgrid_family *(*unused)(const void *x);
  /* Append a line for each possible mistake in it; `listed`: also in what the recipe lists. NULL:
  ** none. */
  void (*notes)(const void *x, const char *name, bool listed, mgrid_text *t);
  /* Compare it with where the ranks of a job run, before their communicators are created: `host`
  ** identifies the host of each of the `world` ranks, `name` is the name of this rank's. Refuse
  ** what differs. Only things in the digest are asked, which all ranks have. NULL: it says nothing
  ** about hosts. */
  mgrid_status (*meets)(const void *x, const uint64_t *host, int64_t world, int64_t rank,
                        const char *name, mgrid_error *err);
} mgrid_item_kind;

/* Makes things of a kind from the rules of a saved plan: reads the fields that `rule` of the kind
** wrote, and puts the thing into the topology by this name. A failure is in the field. A module
** with things in plans defines it in MODULE_item.c, as mgrid_item_reader_MODULE; the Makefile
** writes the table of all. */
typedef struct mgrid_item_reader {
  const char *word;   /* the name of the kind */
  const char *fields; /* all that its rule may have, separated by blanks */
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
