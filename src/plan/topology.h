/* SPDX-License-Identifier: MIT
**
** topology.h - a topology: ordered, named families with their options; named grids; lists of
** families that are used at the same time; items of modules; and the parameters of the recipe.
*/
#ifndef MGRID_TOPOLOGY_H
#define MGRID_TOPOLOGY_H

#include "base/index.h"
#include "families/family.h"
#include "families/grid.h"
#include "plan/options.h"
#include "plan/item.h"

typedef struct mgrid_entry { /* a family in a topology or plan */
  char name[MGRID_NAME_MAX + 1];
  mgrid_family *family;
  mgrid_choice *choice; /* its options; of a twin always with `unique` */
} mgrid_entry;

typedef struct mgrid_named_grid {
  char name[MGRID_NAME_MAX + 1];
  mgrid_grid *grid;
} mgrid_named_grid;

typedef struct mgrid_param {
  char *name, *value; /* of the recipe, as text */
  bool text;          /* the value is text, even if it looks like a number or a list */
  bool usual;         /* the value is the default */
  bool unread;        /* the recipe's build did not read it */
} mgrid_param;

typedef struct mgrid_called { /* a function of the host that the recipe's text names */
  char *name, *version;
} mgrid_called;

/* a list of families that a trainer uses at the same time, the most urgent first */
typedef struct mgrid_concurrent {
  size_t n; /* 2 or more */
  char (*name)[MGRID_NAME_MAX + 1];
} mgrid_concurrent;

/* The content of a topology, which grows, and of a plan, which does not. */
typedef struct mgrid_content {
  int64_t world; /* ranks */
  char *recipe;  /* "": none */
  bool idle;     /* the recipe declares that ranks may be in no group */
  /* hash of the recipe's text if it has policies, compared across ranks; else 0 */
  uint64_t policies;
  size_t nentries, ngrids, nparams, ncalled, nconcurrent, nitems;
  /* [nentries]. This list and the next five are in the order of the calls */
  mgrid_entry *entry;
  mgrid_named_grid *grid; /* [ngrids] */
  mgrid_param *param;     /* [nparams] */
  mgrid_called *called;   /* [ncalled] */
  /* [nconcurrent]. No two lists have two families in opposite orders */
  mgrid_concurrent *concurrent;
  mgrid_item *item;  /* [nitems] */
  size_t held;       /* bytes of the items */
  mgrid_index names; /* of entries, grids and items */
} mgrid_content;

mgrid_status mgrid_content_copy(mgrid_content *to, const mgrid_content *from, mgrid_error *err);
void mgrid_content_free(mgrid_content *c);
int mgrid_content_find(const mgrid_content *c, const char *family); /* or -1 */
int mgrid_content_grid(const mgrid_content *c, const char *grid);   /* or -1 */
/* Return the item of that kind and name, or NULL. */
const mgrid_item *mgrid_content_item(const mgrid_content *c, const mgrid_item_kind *kind,
                                     const char *name);
/* Return how many items are of a kind. */
size_t mgrid_content_items(const mgrid_content *c, const mgrid_item_kind *kind);
/* Return the ith item of a kind, or NULL. */
const mgrid_item *mgrid_content_nth(const mgrid_content *c, const mgrid_item_kind *kind, size_t i);
/* Return the entry of a family. If no family has this name, fail, name the nearest family if memory
** allows, and return -1. The message begins with `before`. */
int mgrid_content_require(const mgrid_content *c, const char *before, const char *family,
                          mgrid_error *err);

struct mgrid_topology {
  atomic_int refs;
  mgrid_content content;
  mgrid_error broken;  /* why a call of moongrid.h failed to add something; no plan is made then */
  mgrid_choice *plain; /* the record of all families without options */
};

/* Return the error with which a public call on a topology begins: that of an earlier call, if the
** caller has not cleared it. */
mgrid_error mgrid_topology_begin(const mgrid_error *err);
/* End a public call, of which s is the status: after a failure the topology is broken. Return s. */
mgrid_status mgrid_topology_end(mgrid_topology *t, mgrid_status s, const mgrid_error *mine,
                                mgrid_error *err);
/* As mgrid_topology_add, but with the options as a record (NULL: none). A failure does not break
** the topology, because Lua raises it. */
mgrid_status mgrid_topology_put(mgrid_topology *t, const char *name, const mgrid_family *f,
                                const mgrid_choice *choice, mgrid_error *err);
/* As mgrid_topology_add_grid. A failure does not break the topology. */
mgrid_status mgrid_topology_put_grid(mgrid_topology *t, const char *name, const mgrid_grid *g,
                                     mgrid_error *err);
/* As mgrid_topology_add_item. A failure does not break the topology. */
mgrid_status mgrid_topology_put_item(mgrid_topology *t, const char *name,
                                     const mgrid_item_kind *kind, const void *x, mgrid_error *err);
/* Check the name and the value of a parameter. Their lengths are given because zero bytes in them
** must be found, and refused. */
mgrid_status mgrid_param_check(const char *name, size_t name_len, const char *value,
                               size_t value_len, mgrid_error *err);
/* Record a function of the host that the recipe names. It is printed, and part of the digest. */
mgrid_status mgrid_topology_called(mgrid_topology *t, const char *name, const char *version,
                                   mgrid_error *err);
/* Add an item of a module under this name, for the module's public function. The topology becomes
** another owner of the item. */
mgrid_status mgrid_topology_add_item(mgrid_topology *t, const char *name,
                                     const mgrid_item_kind *kind, const void *x, mgrid_error *err);
/* Change the options of the family of this name. Its groups, and its index among the families,
** stay. choice NULL: no options. */
mgrid_status mgrid_topology_choose(mgrid_topology *t, const char *name, const mgrid_choice *choice,
                                   mgrid_error *err);
/* Remove the family, grid or item of this name. False: there is none. */
bool mgrid_topology_remove(mgrid_topology *t, const char *name);

/* As mgrid_topology_concurrent (concurrent.c). Charge the work to the budget. Once the budget is
** exhausted there is no error, but the list may be missing. */
enum { MGRID_CONCURRENT_MAX = 4096 }; /* names in all lists */
mgrid_status mgrid_concurrent_add(mgrid_topology *t, size_t n, const char *const *names,
                                  mgrid_budget *budget, mgrid_error *err);
/* Append a list that has been checked (topology.c). */
mgrid_status mgrid_concurrent_append(mgrid_content *c, size_t n, const char *const *names,
                                     mgrid_error *err);
/* Return the index of the family in the list, or list->n if it is not there (topology.c). */
size_t mgrid_concurrent_place(const mgrid_concurrent *list, const char *family);
/* Append the names, separated by `between`. */
void mgrid_concurrent_text(const mgrid_concurrent *list, const char *between, mgrid_text *t);
/* Give different lanes to the families of each list, and high priority to the first, in the records
** of their options. */
mgrid_status mgrid_concurrent_lanes(mgrid_content *c, mgrid_budget *budget, mgrid_error *err);

#endif
