/* SPDX-License-Identifier: MIT
**
** union.c - the form UNION: the groups of its parts, one part after the other. The part that holds a group answers for
** it; operations go part by part.
*/
#include "families/classes.h"

#include <stdlib.h>

mgrid_family *mgrid_union_new(size_t n, mgrid_family **child, mgrid_error *err) {
  mgrid_family *f = mgrid_parts_new(&mgrid_union_form, n, child, err);
  for (size_t i = 0; i < n && f; i++) {
    const mgrid_family *c = child[i];
    if (c->count == 0) continue;
    f->size = f->count > 0 && f->size != c->size ? -1 : c->size;
    f->count += c->count;
    if (c->max_size > f->max_size) f->max_size = c->max_size;
  }
  return f;
}

mgrid_family *mgrid_union_map(const mgrid_family *f, mgrid_child_fn op, void *ud, mgrid_error *err) {
  const mgrid_parts *parts = f->own;
  mgrid_family     **child = calloc(parts->n, sizeof *child);
  if (!child) return mgrid_null_oom(err);
  for (size_t i = 0; i < parts->n; i++)
    if (!(child[i] = op(parts->child[i], ud, err))) {
      mgrid_families_free(i, child);
      return NULL;
    }
  return mgrid_union_new(parts->n, child, err);
}

/* ----------------------------------------------------------------- questions */

/* Return the part that holds the group; *group becomes its number in that part. */
static const mgrid_family *part_of(const mgrid_family *f, int64_t *group) {
  mgrid_family *const *c = ((const mgrid_parts *)f->own)->child;
  while (*group >= (*c)->count) *group -= (*c++)->count;
  return *c;
}

static int64_t union_size(const mgrid_family *f, int64_t group) {
  const mgrid_family *part = part_of(f, &group);
  return mgrid_family_size(part, group);
}

static int64_t union_rank(const mgrid_family *f, int64_t group, int64_t position) {
  const mgrid_family *part = part_of(f, &group);
  return mgrid_family_rank(part, group, position);
}

static bool union_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group, int64_t *position) {
  const mgrid_parts *parts = f->own;
  int64_t            before = 0;
  for (size_t i = 0; i < parts->n; i++) {
    const mgrid_family *child = parts->child[i];
    for (int64_t k = 0; mgrid_family_locate(child, rank, k, group, position); k++)
      if (nth-- == 0) {
        *group += before;
        return true;
      }
    before += child->count;
  }
  return false;
}

static void union_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n, int32_t *out) {
  const mgrid_family *part = part_of(f, &group);
  mgrid_family_slice(part, group, position, n, out);
}

static int64_t union_range(const mgrid_family *f, int64_t group, int64_t n, int32_t *out) {
  int64_t written = 0;
  for (int64_t left = n, some; left > 0; group += some, left -= some) { /* at most the remaining groups of a part */
    int64_t             own = group;
    const mgrid_family *part = part_of(f, &own);
    some = part->count - own < left ? part->count - own : left;
    written += mgrid_family_groups(part, own, some, out + written);
  }
  return written;
}

static void union_explain(const mgrid_family *f, mgrid_text *t) {
  mgrid_text_add(t, "the groups of %zu rules, one rule after the other", ((const mgrid_parts *)f->own)->n);
}

/* ------------------------------------------------------------ all groups at once */

static bool union_classes(const mgrid_family *f, mgrid_classes *list) {
  const mgrid_parts *parts = f->own;
  int64_t            before = 0;
  for (size_t i = 0; i < parts->n; i++) {
    size_t first = list->n;
    if (!mgrid_classes_of(parts->child[i], list)) return false;
    for (; first < list->n; first++) list->at[first].group += before;
    before += parts->child[i]->count;
  }
  return true;
}

static int64_t union_singles(const mgrid_family *f) {
  const mgrid_parts *parts = f->own;
  int64_t            n = 0;
  for (size_t i = 0; i < parts->n; i++) n += mgrid_family_singles(parts->child[i]);
  return n;
}

/* Return the most rounds of a part. The parts share no rank, so their rounds run together. */
static int64_t union_rounds(const mgrid_family *f) {
  const mgrid_parts *parts = f->own;
  int64_t            most = 1;
  for (size_t i = 0; i < parts->n; i++) {
    int64_t rounds = mgrid_family_rounds(parts->child[i]);
    if (rounds > most) most = rounds;
  }
  return most;
}

static int64_t union_round(const mgrid_family *f, int64_t group) {
  const mgrid_family *part = part_of(f, &group);
  return mgrid_family_round(part, group);
}

static int64_t union_in_round(const mgrid_family *f, int64_t round) {
  const mgrid_parts *parts = f->own;
  int64_t            n = 0;
  for (size_t i = 0; i < parts->n; i++) n += mgrid_family_in_round(parts->child[i], round);
  return n;
}

/* ---------------------------------------------------------------- operations */

typedef struct halves {
  const mgrid_splitting *x;
  mgrid_status           status; /* of the last part */
  size_t                 n;      /* parts split so far */
  mgrid_family         **outer;  /* [n]: their outer halves */
} halves;

/* Split a part: return its inner half, and keep the outer one for later. */
static mgrid_family *inner_of_part(const mgrid_family *part, void *ud, mgrid_error *err) {
  halves         *h = ud;
  mgrid_splitting own = { .k = h->x->k, .lists = h->x->lists, .write_out = h->x->write_out };
  if ((h->status = mgrid_split(&own, part, err))) {
    mgrid_family_free(own.inner);
    mgrid_family_free(own.outer);
    return NULL;
  }
  h->outer[h->n++] = own.outer;
  return own.inner;
}

static mgrid_status union_split(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err) {
  if (x->by_row) return mgrid_split_cut(x, f, err);
  halves h = { x, MGRID_OK, 0, calloc(((const mgrid_parts *)f->own)->n, sizeof *h.outer) };
  if (!h.outer) return mgrid_oom(err);
  x->inner = mgrid_union_map(f, inner_of_part, &h, err);
  if (x->inner)
    x->outer = mgrid_union_new(h.n, h.outer, err);
  else
    mgrid_families_free(h.n, h.outer);
  return h.status ? h.status : x->inner && x->outer ? MGRID_OK : MGRID_NO_MEMORY;
}

static bool union_bundle_lists(const mgrid_family *f, int64_t n, int64_t *work) {
  const mgrid_parts *parts = f->own;
  bool               lists = false;
  if (n < 1) return false;
  for (size_t i = 0; i < parts->n && !lists; i++)
    lists = parts->child[i]->count % n != 0 || mgrid_bundle_lists(parts->child[i], n, work);
  *work = 0;
  return lists;
}

static mgrid_family *bundle_part(const mgrid_family *part, void *n, mgrid_error *err) {
  return mgrid_bundle(part, *(const int64_t *)n, err);
}

/* Bundle part by part if each bundle lies inside one part, else make lists. */
static mgrid_family *union_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  int64_t work;
  if (!mgrid_bundle_lists(f, n, &work)) return mgrid_union_map(f, bundle_part, &n, err);
  mgrid_family *lists = mgrid_family_lists(f, err), *bundled = lists ? mgrid_bundle(lists, n, err) : NULL;
  mgrid_family_free(lists);
  return bundled;
}

typedef struct picking {
  mgrid_pick_fn fn;
  void         *ud;
} picking;

static mgrid_family *pick_part(const mgrid_family *part, void *ud, mgrid_error *err) {
  const picking *p = ud;
  return mgrid_family_pick_by(part, p->fn, p->ud, err);
}

static mgrid_family *union_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err) {
  return mgrid_union_map(f, pick_part, &(picking){ fn, ud }, err);
}

const mgrid_form mgrid_union_form = {
  .name = "union",
  .in_turn = true,
  .size = union_size,
  .rank = union_rank,
  .locate = union_locate,
  .slice = union_slice,
  .range = union_range,
  .same_rule = mgrid_parts_same_rule,
  .text = mgrid_parts_text,
  .json = mgrid_parts_json,
  .explain = union_explain,
  .free = mgrid_parts_free,
  .classes = union_classes,
  .members = mgrid_parts_members,
  .singles = union_singles,
  .rounds = union_rounds,
  .round = union_round,
  .in_round = union_in_round,
  .split = union_split,
  .bundle = union_bundle,
  .bundle_lists = union_bundle_lists,
  .pick_by = union_pick_by,
};
