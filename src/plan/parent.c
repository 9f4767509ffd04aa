/* SPDX-License-Identifier: MIT
**
** parent.c - families whose communicators are split from those of another family: check that the parent exists and is
** created before them. Each rank checks for its own groups that they are inside groups of the parent (comm/state.c),
** because that is O(members).
*/
#include "plan/plan.h"

#include <inttypes.h>

/* Return the index of a family in the schedule. */
static size_t turn_of(const mgrid_plan *p, int entry) {
  size_t k = 0;
  while (p->order[k] != entry) k++;
  return k;
}

static mgrid_status unknown(const mgrid_content *c, const mgrid_entry *e, mgrid_error *err) {
  enum { SHOWN = 64 };
  const char *known[SHOWN];
  size_t      n = 0;
  char        tail[512] = "";
  for (size_t i = 0; i < c->nentries && n < SHOWN; i++)
    if (&c->entry[i] != e) known[n++] = c->entry[i].name;
  mgrid_suggest(tail, sizeof tail, e->choice->asked.parent, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "family '%s': unknown parent '%s'%s", e->name, e->choice->asked.parent,
                    tail);
}

mgrid_status mgrid_plan_check_parents(const mgrid_plan *p, mgrid_error *err) {
  const mgrid_content *c = &p->content;
  for (size_t i = 0; i < c->nentries; i++) {
    const mgrid_entry *e = &c->entry[i];
    const char        *name = e->choice->asked.parent, *why = NULL;
    if (!*name) continue;
    int other = mgrid_content_find(c, name);
    if (other < 0) return unknown(c, e, err);
    const mgrid_choice *parent = c->entry[other].choice;
    if (other == (int)i)
      why = "is itself";
    else if (e->choice->asked.lazy || parent->asked.lazy)
      why = "is made together with it, so neither can be 'lazy'";
    else if (parent->none || e->choice->none)
      why = "or itself has no communicators: the backend is 'none'";
    else if (e->choice->backend != parent->backend)
      why = "has another backend";
    else if (c->entry[other].family->overlapping || e->family->overlapping)
      why = "or itself has groups that share ranks";
    else if (turn_of(p, other) > turn_of(p, (int)i))
      why = "is made later; put it before";
    if (why) return mgrid_fail(err, MGRID_REFUSED, "family '%s': its parent '%s' %s", e->name, name, why);
  }
  return MGRID_OK;
}

mgrid_status mgrid_plan_check_parent(const mgrid_plan *p, int entry, int64_t group, mgrid_error *err) {
  const mgrid_entry  *e = &p->content.entry[entry];
  const mgrid_family *parent = p->content.entry[mgrid_content_find(&p->content, e->choice->asked.parent)].family;
  int64_t             first = -1, in_parent, position;
  for (int64_t i = 0; i < mgrid_family_size(e->family, group); i++) {
    int64_t rank = mgrid_family_rank(e->family, group, i);
    bool    found = mgrid_family_locate(parent, rank, 0, &in_parent, &position);
    if (found && i == 0) first = in_parent;
    if (!found || in_parent != first)
      return mgrid_fail(err, MGRID_REFUSED,
                        "family '%s': group %" PRId64 " is not within one group of its parent '%s': rank %" PRId64
                        " is outside",
                        e->name, group, e->choice->asked.parent, rank);
  }
  return MGRID_OK;
}
