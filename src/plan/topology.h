/* SPDX-License-Identifier: MIT
**
** topology.h - ordered, named families, their options, the named grids and what led here.
*/
#ifndef MGRID_TOPOLOGY_H
#define MGRID_TOPOLOGY_H

#include "algebra/family.h"
#include "algebra/grid.h"
#include "plan/options.h"

typedef struct mgrid_entry {
  char          name[MGRID_NAME_MAX + 1];
  mgrid_family *family;
  mgrid_choice *choice; /* of a twin always unique */
} mgrid_entry;

typedef struct mgrid_named_grid {
  char        name[MGRID_NAME_MAX + 1];
  mgrid_grid *grid;
} mgrid_named_grid;

typedef struct mgrid_param {
  char *name, *value;
} mgrid_param;

/* Where the families and grids are, by name: open addressing, at most half full. */
typedef struct mgrid_index {
  uint32_t room; /* a power of 2, or 0 */
  int32_t *slot; /* 0: free; i + 1: family i; -i - 1: grid i */
} mgrid_index;

/* Shared by the topology, which grows, and the plan, which does not. */
typedef struct mgrid_content {
  int64_t           world;
  char             *recipe;   /* "" where there is none */
  uint64_t          policies; /* of a recipe with policies: a hash of its text, which ranks compare; else 0 */
  size_t            nentries, ngrids, nparams;
  mgrid_entry      *entry;
  mgrid_named_grid *grid;
  mgrid_param      *param;
  mgrid_index       names;
} mgrid_content;

mgrid_status mgrid_content_copy(mgrid_content *to, const mgrid_content *from, mgrid_error *err);
void         mgrid_content_free(mgrid_content *c);
int          mgrid_content_find(const mgrid_content *c, const char *family); /* or -1 */
int          mgrid_content_grid(const mgrid_content *c, const char *grid);   /* or -1 */

struct mgrid_topology {
  mgrid_content content;
  mgrid_choice *plain; /* of all families that ask for nothing */
};

/* mgrid_topology_add with options that are a record already; NULL: none. */
mgrid_status mgrid_topology_put(mgrid_topology *t, const char *name, const mgrid_family *f, const mgrid_choice *choice,
                                mgrid_error *err);

#endif
