/* SPDX-License-Identifier: MIT
**
** comms.c - the communicators of a whole plan as lists of ranks, found by a hash of their members.
*/
#include "survive/next.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

uint64_t mgrid_comm_hash(const int32_t *member, int64_t n) { return XXH3_64bits(member, (size_t)n * sizeof *member); }

static const mgrid_choice *choice_of(const mgrid_plan *p, int32_t entry) { return p->content.entry[entry].choice; }

static bool has_members(const mgrid_comm_list *c, int32_t i, const int32_t *member, int64_t n) {
  return c->start[i + 1] - c->start[i] == n && memcmp(c->member + c->start[i], member, (size_t)n * sizeof *member) == 0;
}

int32_t mgrid_comm_find(const mgrid_comm_list *c, const mgrid_plan *p, const int32_t *member, int64_t n, uint64_t hash,
                        const mgrid_choice *choice) {
  size_t at = 0;
  for (int32_t i; (i = mgrid_index_next(&c->index, hash, &at)) >= 0;)
    if (has_members(c, i, member, n) && mgrid_choice_shares(choice_of(p, c->entry[i]), choice)) return i;
  return -1;
}

void mgrid_comm_list_free(mgrid_comm_list *c) {
  free(c->entry);
  free(c->group);
  free(c->start);
  free(c->member);
  mgrid_index_free(&c->index);
  *c = (mgrid_comm_list){ 0 };
}

static bool has_comms(const mgrid_plan *p, int32_t entry) {
  return p->shares[entry] < 0 && !choice_of(p, entry)->none && p->content.entry[entry].family->max_size > 1;
}

/* Add a group, unless an earlier one leads it. Its members follow those in the list. False: no memory. */
static bool add(mgrid_comm_list *c, const mgrid_plan *p, int32_t entry, int64_t group, int64_t size) {
  const int32_t *member = c->member + c->start[c->n];
  uint64_t       hash = mgrid_comm_hash(member, size);
  if (mgrid_comm_find(c, p, member, size, hash, choice_of(p, entry)) >= 0) return true;
  if (!mgrid_index_put(&c->index, hash, (int32_t)c->n)) return false;
  c->entry[c->n] = entry, c->group[c->n] = group;
  c->start[c->n + 1] = c->start[c->n] + size;
  c->n++;
  return true;
}

mgrid_status mgrid_comm_list_make(mgrid_comm_list *c, const mgrid_plan *p, mgrid_error *err) {
  int64_t groups = 0, members = 0;
  *c = (mgrid_comm_list){ 0 };
  for (size_t i = 0; i < p->content.nentries; i++)
    if (has_comms(p, (int32_t)i)) {
      groups += p->content.entry[i].family->count;
      members += p->content.entry[i].family->total;
    }
  if (groups > INT32_MAX / 4) return mgrid_fail(err, MGRID_LIMIT, "more than 2^29 groups are too many to compare");
  c->entry = malloc((size_t)(groups + 1) * sizeof *c->entry);
  c->group = malloc((size_t)(groups + 1) * sizeof *c->group);
  c->start = calloc((size_t)groups + 2, sizeof *c->start);
  c->member = malloc((size_t)(members + 1) * sizeof *c->member);
  bool whole = c->entry && c->group && c->start && c->member;
  for (size_t k = 0; k < p->content.nentries && whole; k++) {
    int                 i = p->order[k];
    const mgrid_family *f = p->content.entry[i].family;
    for (int64_t g = 0; has_comms(p, i) && g < f->count && whole; g++) {
      int64_t size = mgrid_family_size(f, g);
      if (size < 2) continue;
      mgrid_family_group(f, g, c->member + c->start[c->n]);
      whole = add(c, p, i, g, size);
    }
  }
  if (whole) return MGRID_OK;
  mgrid_comm_list_free(c);
  return mgrid_oom(err);
}
