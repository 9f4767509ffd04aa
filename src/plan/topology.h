/* SPDX-License-Identifier: MIT
**
** topology.h - ordered, named families with their options, named grids, and the parameters of the recipe.
*/
#ifndef MGRID_TOPOLOGY_H
#define MGRID_TOPOLOGY_H

#include "algebra/family.h"
#include "algebra/grid.h"
#include "plan/options.h"

typedef struct mgrid_entry { /* a family in a topology or plan */
  char          name[MGRID_NAME_MAX + 1];
  mgrid_family *family;
  mgrid_choice *choice; /* its options; of a twin always with `unique` */
} mgrid_entry;

typedef struct mgrid_named_grid {
  char        name[MGRID_NAME_MAX + 1];
  mgrid_grid *grid;
} mgrid_named_grid;

typedef struct mgrid_param {
  char *name, *value; /* of the recipe, as text */
} mgrid_param;

/* Where the families and grids are, by name: open addressing, at most half full. */
typedef struct mgrid_index {
  uint32_t room; /* a power of 2, or 0 */
  int32_t *slot; /* 0: free; i + 1: family i; -i - 1: grid i */
} mgrid_index;

/* Shared by the topology, which grows, and the plan, which does not. */
typedef struct mgrid_content {
  int64_t           world;    /* ranks */
  char             *recipe;   /* "" where there is none */
  uint64_t          policies; /* hash of the text of a recipe with policies, compared across ranks; else 0 */
  size_t            nentries, ngrids, nparams;
  mgrid_entry      *entry; /* [nentries], in the order of the calls; so are the next two */
  mgrid_named_grid *grid;  /* [ngrids] */
  mgrid_param      *param; /* [nparams] */
  mgrid_index       names; /* of entries and grids */
} mgrid_content;

mgrid_status mgrid_content_copy(mgrid_content *to, const mgrid_content *from, mgrid_error *err);
void         mgrid_content_free(mgrid_content *c);
int          mgrid_content_find(const mgrid_content *c, const char *family); /* or -1 */
int          mgrid_content_grid(const mgrid_content *c, const char *grid);   /* or -1 */

struct mgrid_topology {
  mgrid_content content;
  mgrid_choice *plain; /* the record of all families without options */
};

/* mgrid_topology_add with options that are a record already; NULL: none. */
mgrid_status mgrid_topology_put(mgrid_topology *t, const char *name, const mgrid_family *f, const mgrid_choice *choice,
                                mgrid_error *err);
/* Other options for the family of this name, which keeps its groups and its place; NULL: none. */
mgrid_status mgrid_topology_choose(mgrid_topology *t, const char *name, const mgrid_choice *choice, mgrid_error *err);
/* Take out the family or grid of this name. False: there is none. */
bool mgrid_topology_remove(mgrid_topology *t, const char *name);

#endif
