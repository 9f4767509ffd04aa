/* SPDX-License-Identifier: MIT
**
** topology.h - ordered, named families, their options, the named grids and what led here.
*/
#ifndef MG_TOPOLOGY_H
#define MG_TOPOLOGY_H

#include "algebra/family.h"
#include "algebra/grid.h"

/* mg_options checked and owned. */
typedef struct mg_choice {
  bool    unique, first, lazy, high_priority;
  int64_t timeout_us; /* 0: the backend's default */
  const char *backend; /* "", "mpi", "nccl": constants */
  const char *nccl;    /* fields sorted by name, one blank between: equal text, equal config;
                          owned unless empty */
} mg_choice;

mg_status mg_choice_init(mg_choice *c, const mg_options *o, mg_error *err);
mg_status mg_choice_copy(mg_choice *to, const mg_choice *from, mg_error *err);
void      mg_choice_free(mg_choice *c);
/* May two families with these options share a communicator? */
bool mg_choice_shares(const mg_choice *a, const mg_choice *b);
/* " unique timeout_us=600000000 nccl{max_ctas=16}", "" for the defaults. `identity` leaves
** out what does not change the communicator itself: unique, first, lazy. */
void mg_choice_text(const mg_choice *c, bool identity, mg_text *t);

typedef struct mg_entry {
  char       name[MG_NAME_MAX + 1];
  mg_family *family;
  mg_choice  choice;
} mg_entry;

typedef struct mg_named_grid {
  char     name[MG_NAME_MAX + 1];
  mg_grid *grid;
} mg_named_grid;

typedef struct mg_param {
  char *name, *value;
} mg_param;

/* Where the families and grids are, by name: open addressing, at most half full. */
typedef struct mg_index {
  uint32_t room; /* a power of 2, or 0 */
  int32_t *slot; /* 0: free; i + 1: family i; -i - 1: grid i */
} mg_index;

/* Shared by the topology, which grows, and the plan, which does not. */
typedef struct mg_content {
  int64_t        world;
  char          *recipe; /* "" where there is none */
  uint64_t       policies; /* of a recipe with policies: a hash of its text, which ranks compare; else 0 */
  size_t         nentries, ngrids, nparams;
  mg_entry      *entry;
  mg_named_grid *grid;
  mg_param      *param;
  mg_index       names;
} mg_content;

mg_status mg_content_copy(mg_content *to, const mg_content *from, mg_error *err);
void      mg_content_free(mg_content *c);
int       mg_content_find(const mg_content *c, const char *family); /* or -1 */
int       mg_content_grid(const mg_content *c, const char *grid);   /* or -1 */

struct mg_topology {
  mg_content content;
};

#endif
