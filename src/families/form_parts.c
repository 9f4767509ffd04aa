/* SPDX-License-Identifier: MIT
**
** form_parts.c - the forms UNION and ZIP: families made of other families, their parts. Each part
** answers for its own groups, and operations are applied to each part. Callers have checked that
** the parts fit together.
*/
#include "families/classes.h"

#include <stdlib.h>
#include <string.h>

/* ====================================================================== both */

static mgrid_family *parts_new(const mgrid_form *form, size_t n, mgrid_family **child,
                               mgrid_error *err) {
  mgrid_family *f = n == 0 ? mgrid_null(err, MGRID_USAGE, "a %s of no families", form->name)
                           : mgrid_family_alloc(form, child[0]->world, sizeof(mgrid_parts), err);

  if (!f) {
    mgrid_families_free(n, child);
    return NULL;
  }
  *(mgrid_parts *)f->own = (mgrid_parts){ n, child };
  f->low = INT64_MAX, f->high = -1;
  for (size_t i = 0; i < n; i++) {
    const mgrid_family *c = child[i];
    if (mgrid_family_put_above(f, c, err)) {
      mgrid_family_free(f);
      return NULL;
    }
    f->total += c->total;
    f->overlapping |= c->overlapping;
    if (c->count > 0 && c->low < f->low) f->low = c->low;
    if (c->count > 0 && c->high > f->high) f->high = c->high;
  }
  if (f->total == 0) f->low = 0;
  return f;
}

static void parts_free(mgrid_family *f) {
  mgrid_parts *parts = f->own;
  mgrid_families_free(parts->n, parts->child);
}

static bool parts_same_rule(const mgrid_family *a, const mgrid_family *b) {
  const mgrid_parts *x = a->own, *y = b->own;
  bool same = x->n == y->n;
  for (size_t i = 0; i < x->n && same; i++) same = mgrid_family_same_rule(x->child[i], y->child[i]);
  return same;
}

/* Append "NAME[ | ]", with the texts of the parts. */
static void parts_text(const mgrid_family *f, mgrid_text *t) {
  const mgrid_parts *parts = f->own;
  mgrid_text_add(t, "%s[", f->form->name);
  for (size_t i = 0; i < parts->n; i++) {
    if (i) mgrid_text_str(t, " | ");
    parts->child[i]->form->text(parts->child[i], t);
  }
  mgrid_text_str(t, "]");
}

/* Append {"NAME":[]}, with the JSON of the parts. */
static void parts_json(const mgrid_family *f, mgrid_text *t) {
  const mgrid_parts *parts = f->own;
  mgrid_text_add(t, "{\"%s\":", f->form->name);
  for (size_t i = 0; i < parts->n; i++) {
    mgrid_text_str(t, i ? "," : "[");
    mgrid_family_json(parts->child[i], t);
  }
  mgrid_text_str(t, "]}");
}

/* Append the members of all parts. */
static bool parts_members(const mgrid_family *f, mgrid_sets *list) {
  const mgrid_parts *parts = f->own;
  bool told = true;
  for (size_t i = 0; i < parts->n && told; i++) told = mgrid_members_of(parts->child[i], list);
  return told;
}

/* ===================================================================== UNION */

/* The groups of a UNION are those of its first part, then those of the second, and so on. */

mgrid_family *mgrid_union_new(size_t n, mgrid_family **child, mgrid_error *err) {
  mgrid_family *f = parts_new(&mgrid_union_form, n, child, err);
  for (size_t i = 0; i < n && f; i++) {
    const mgrid_family *c = child[i];
    if (c->count == 0) continue;
    f->size = f->count > 0 && f->size != c->size ? -1 : c->size;
    f->count += c->count;
    if (c->max_size > f->max_size) f->max_size = c->max_size;
  }
  return f;
}

mgrid_family *mgrid_union_map(const mgrid_family *f, mgrid_child_fn op, void *ud,
                              mgrid_error *err) {
  const mgrid_parts *parts = f->own;
  mgrid_family **child = calloc(parts->n, sizeof *child);
  if (!child) return mgrid_null_oom(err);
  for (size_t i = 0; i < parts->n; i++)
    if (!(child[i] = op(parts->child[i], ud, err))) {
      mgrid_families_free(i, child);
      return NULL;
    }
  return mgrid_union_new(parts->n, child, err);
}

/* ----------------------------------------------------------------- questions */

/* Return the part that holds the group. *group becomes the group's number in that part. */
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

static bool union_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                         int64_t *position) {
  const mgrid_parts *parts = f->own;
  int64_t before = 0;
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

static void union_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n,
                        int32_t *out) {
  const mgrid_family *part = part_of(f, &group);
  mgrid_family_slice(part, group, position, n, out);
}

static int64_t union_range(const mgrid_family *f, int64_t group, int64_t n, int32_t *out) {
  int64_t written = 0;
  /* at most one part at a time */
  for (int64_t left = n, some; left > 0; group += some, left -= some) {
    int64_t own = group;
    const mgrid_family *part = part_of(f, &own);
    some = part->count - own < left ? part->count - own : left;
    written += mgrid_family_groups(part, own, some, out + written);
  }
  return written;
}

static void union_explain(const mgrid_family *f, mgrid_text *t) {
  mgrid_text_add(t, "the groups of %zu rules, one rule after the other",
                 ((const mgrid_parts *)f->own)->n);
}

/* ------------------------------------------------------------ all groups at once */

static bool union_classes(const mgrid_family *f, mgrid_classes *list) {
  const mgrid_parts *parts = f->own;
  int64_t before = 0;
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
  int64_t n = 0;
  for (size_t i = 0; i < parts->n; i++) n += mgrid_family_singles(parts->child[i]);
  return n;
}

/* Return the largest number of rounds of a part. The parts share no ranks, so their rounds can run
** together. */
static int64_t union_rounds(const mgrid_family *f) {
  const mgrid_parts *parts = f->own;
  int64_t most = 1;
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
  int64_t n = 0;
  for (size_t i = 0; i < parts->n; i++) n += mgrid_family_in_round(parts->child[i], round);
  return n;
}

/* ---------------------------------------------------------------- operations */

typedef struct halves {
  const mgrid_splitting *x;
  mgrid_status status;  /* of the last part */
  size_t n;             /* parts split so far */
  mgrid_family **outer; /* [n]: their outer halves */
} halves;

/* Split a part: return its inner half, and keep its outer half for later. */
static mgrid_family *inner_of_part(const mgrid_family *part, void *ud, mgrid_error *err) {
  halves *h = ud;
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
  bool lists = false;
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
  mgrid_family *lists = mgrid_family_lists(f, err),
               *bundled = lists ? mgrid_bundle(lists, n, err) : NULL;
  mgrid_family_free(lists);
  return bundled;
}

typedef struct picking {
  mgrid_pick_fn fn;
  void *ud;
} picking;

static mgrid_family *pick_part(const mgrid_family *part, void *ud, mgrid_error *err) {
  const picking *p = ud;
  return mgrid_family_pick_by(part, p->fn, p->ud, err);
}

static mgrid_family *union_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud,
                                   mgrid_error *err) {
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
  .same_rule = parts_same_rule,
  .text = parts_text,
  .json = parts_json,
  .explain = union_explain,
  .free = parts_free,
  .classes = union_classes,
  .members = parts_members,
  .singles = union_singles,
  .rounds = union_rounds,
  .round = union_round,
  .in_round = union_in_round,
  .split = union_split,
  .bundle = union_bundle,
  .bundle_lists = union_bundle_lists,
  .pick_by = union_pick_by,
};

/* ======================================================================= ZIP */

/* Group i of a ZIP joins group i of each part. */

mgrid_family *mgrid_zip_new(size_t n, mgrid_family **child, mgrid_budget *budget,
                            mgrid_error *err) {
  mgrid_family *f = parts_new(&mgrid_zip_form, n, child, err);

  if (!f) return NULL;
  f->count = child[0]->count;
  for (size_t i = 0; i < n; i++) {
    int64_t size = child[i]->size;
    f->size = f->size < 0 || size < 0 ? -1 : f->size + size;
  }
  f->max_size = f->size;
  if (f->size >= 0) return f;
  int64_t least = INT64_MAX;
  mgrid_classes classes = { 0 };
  bool told = mgrid_classes_of(f, &classes);
  int64_t looks = told ? (int64_t)classes.n : f->count;
  for (int64_t g = 0; g < looks && (told || mgrid_spend(budget, 8 * (int64_t)n)); g++) {
    int64_t size = told ? classes.at[g].size : mgrid_family_size(f, g);
    if (size > f->max_size) f->max_size = size;
    if (size < least) least = size;
  }
  free(classes.at);

  /* the parts may differ in size, while the sums are all equal */
  if (least == f->max_size) f->size = least;
  return f;
}

/* ----------------------------------------------------------------- questions */

static int64_t zip_size(const mgrid_family *f, int64_t group) {
  const mgrid_parts *parts = f->own;
  int64_t size = 0;
  for (size_t i = 0; i < parts->n; i++) size += mgrid_family_size(parts->child[i], group);
  return size;
}

static int64_t zip_rank(const mgrid_family *f, int64_t group, int64_t position) {
  mgrid_family *const *c = ((const mgrid_parts *)f->own)->child;
  for (;; c++) { /* ends, because the position exists in one of the parts */
    int64_t n = mgrid_family_size(*c, group);
    if (position < n) return mgrid_family_rank(*c, group, position);
    position -= n;
  }
}

static bool zip_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                       int64_t *position) {
  const mgrid_parts *parts = f->own;
  for (size_t i = 0; i < parts->n && nth == 0; i++) {
    if (!mgrid_family_locate(parts->child[i], rank, 0, group, position)) continue;
    for (size_t k = 0; k < i; k++) *position += mgrid_family_size(parts->child[k], *group);
    return true;
  }
  return false;
}

static void zip_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n,
                      int32_t *out) {
  mgrid_family *const *c = ((const mgrid_parts *)f->own)->child;
  for (; n > 0; c++) {
    int64_t size = mgrid_family_size(*c, group), length = size - position;
    if (length > n) length = n;
    if (length > 0) {
      mgrid_family_slice(*c, group, position, length, out);
      out += length, n -= length;
    }
    position = position > size ? position - size : 0;
  }
}

static void zip_explain(const mgrid_family *f, mgrid_text *t) {
  mgrid_text_add(t, "group i of each of %zu rules, joined to one",
                 ((const mgrid_parts *)f->own)->n);
}

/* Add the classes of groups where all parts take equal steps. A group of the zip is then shifted by
** the same step as its parts. */
static bool zip_classes(const mgrid_family *f, mgrid_classes *list) {
  const mgrid_parts *parts = f->own;
  size_t first = list->n;
  bool told = mgrid_classes_of(parts->child[0], list);
  size_t n = list->n - first;
  for (size_t i = 1; i < parts->n && told; i++) {
    mgrid_classes other = { 0 };
    told = mgrid_classes_of(parts->child[i], &other) && other.n == n;
    for (size_t k = 0; k < n && told; k++) {
      mgrid_class *c = &list->at[first + k];
      const mgrid_class *d = &other.at[k];
      told = c->group == d->group && c->nsteps == d->nsteps
             && memcmp(c->step, d->step, (size_t)c->nsteps * sizeof *c->step) == 0;
      c->size += d->size;
      c->ruled = false;
    }
    free(other.at);
  }
  return told;
}

/* ---------------------------------------------------------------- operations */

/* Pick positions of a zip. Consecutive positions that lie in one part are a pick of that part; the
** picks are joined again. */
static mgrid_family *zip_pick(const mgrid_family *f, int64_t n, const int64_t *positions,
                              mgrid_error *err) {
  mgrid_family **child = malloc((size_t)n * sizeof *child);
  int64_t *own = malloc((size_t)n * sizeof *own), next = 0;
  size_t picks = 0;
  bool failed = !child || !own;

  if (failed) mgrid_oom(err);
  while (next < n && !failed) {
    mgrid_family *const *part = ((const mgrid_parts *)f->own)->child;
    int64_t before = 0, run = 0;
    for (; (*part)->size >= 0 && positions[next] >= before + (*part)->size; part++)
      before += (*part)->size;
    for (; next < n && positions[next] >= before && positions[next] < before + (*part)->size;
         next++)
      own[run++] = positions[next] - before;
    child[picks] = run > 0 ? mgrid_family_pick(*part, (size_t)run, own, err)
                           /* sizes vary, so the position lies in different parts */
                           : mgrid_needs_lists("this pick", f, err);
    failed = !child[picks];
    picks += !failed;
  }
  free(own);
  if (!failed && picks > 1) return mgrid_zip_new(picks, child, NULL, err);
  mgrid_family *only = failed ? NULL : child[0];
  for (size_t i = 0; i < picks && failed; i++) mgrid_family_free(child[i]);
  free(child);
  return only;
}

/* Take the same groups of each part. */
static mgrid_family *zip_groups(const mgrid_family *f, int64_t n, const int64_t *order,
                                mgrid_error *err) {
  const mgrid_parts *parts = f->own;
  mgrid_family **child = malloc(parts->n * sizeof *child);
  if (!child) return mgrid_null_oom(err);
  for (size_t i = 0; i < parts->n; i++)
    if (!(child[i] = mgrid_family_select(parts->child[i], (size_t)n, order, err))) {
      mgrid_families_free(i, child);
      return NULL;
    }
  return mgrid_zip_new(parts->n, child, NULL, err);
}

const mgrid_form mgrid_zip_form = {
  .name = "zip",
  .size = zip_size,
  .rank = zip_rank,
  .locate = zip_locate,
  .slice = zip_slice,
  .same_rule = parts_same_rule,
  .text = parts_text,
  .json = parts_json,
  .explain = zip_explain,
  .free = parts_free,
  .classes = zip_classes,
  .members = parts_members,
  .pick = zip_pick,
  .groups = zip_groups,
};
