/* SPDX-License-Identifier: MIT
**
** zip.c - the form ZIP: group i of each part, joined into one.
*/
#include "families/classes.h"

#include <stdlib.h>
#include <string.h>

mgrid_family *mgrid_zip_new(size_t n, mgrid_family **child, mgrid_budget *budget, mgrid_error *err) {
  mgrid_family *f = mgrid_parts_new(&mgrid_zip_form, n, child, err);
  if (!f) return NULL;
  f->count = child[0]->count;
  for (size_t i = 0; i < n; i++) {
    int64_t size = child[i]->size;
    f->size = f->size < 0 || size < 0 ? -1 : f->size + size;
  }
  f->max_size = f->size;
  if (f->size >= 0) return f;
  int64_t       least = INT64_MAX;
  mgrid_classes classes = { 0 };
  bool          told = mgrid_classes_of(f, &classes);
  int64_t       looks = told ? (int64_t)classes.n : f->count;
  for (int64_t g = 0; g < looks && (told || mgrid_spend(budget, 8 * (int64_t)n)); g++) {
    int64_t size = told ? classes.at[g].size : mgrid_family_size(f, g);
    if (size > f->max_size) f->max_size = size;
    if (size < least) least = size;
  }
  free(classes.at);
  if (least == f->max_size) f->size = least; /* the parts differ in size, but their sums are equal */
  return f;
}

/* ----------------------------------------------------------------- questions */

static int64_t zip_size(const mgrid_family *f, int64_t group) {
  const mgrid_parts *parts = f->own;
  int64_t            size = 0;
  for (size_t i = 0; i < parts->n; i++) size += mgrid_family_size(parts->child[i], group);
  return size;
}

static int64_t zip_rank(const mgrid_family *f, int64_t group, int64_t position) {
  mgrid_family *const *c = ((const mgrid_parts *)f->own)->child;
  for (;; c++) { /* the position exists, so one part holds it */
    int64_t n = mgrid_family_size(*c, group);
    if (position < n) return mgrid_family_rank(*c, group, position);
    position -= n;
  }
}

static bool zip_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group, int64_t *position) {
  const mgrid_parts *parts = f->own;
  for (size_t i = 0; i < parts->n && nth == 0; i++) {
    if (!mgrid_family_locate(parts->child[i], rank, 0, group, position)) continue;
    for (size_t k = 0; k < i; k++) *position += mgrid_family_size(parts->child[k], *group);
    return true;
  }
  return false;
}

static void zip_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n, int32_t *out) {
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
  mgrid_text_add(t, "group i of each of %zu rules, joined to one", ((const mgrid_parts *)f->own)->n);
}

/* Find the classes where all parts have equal steps: a group of the zip is then shifted as its parts are. */
static bool zip_classes(const mgrid_family *f, mgrid_classes *list) {
  const mgrid_parts *parts = f->own;
  size_t             first = list->n;
  bool               told = mgrid_classes_of(parts->child[0], list);
  size_t             n = list->n - first;
  for (size_t i = 1; i < parts->n && told; i++) {
    mgrid_classes other = { 0 };
    told = mgrid_classes_of(parts->child[i], &other) && other.n == n;
    for (size_t k = 0; k < n && told; k++) {
      mgrid_class       *c = &list->at[first + k];
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

/* Consecutive positions in one part are a pick of that part; the picks are joined again. */
static mgrid_family *zip_pick(const mgrid_family *f, int64_t n, const int64_t *positions, mgrid_error *err) {
  mgrid_family **child = malloc((size_t)n * sizeof *child);
  int64_t       *own = malloc((size_t)n * sizeof *own), next = 0;
  size_t         picks = 0;
  bool           failed = !child || !own;
  if (failed) mgrid_oom(err);
  while (next < n && !failed) {
    mgrid_family *const *part = ((const mgrid_parts *)f->own)->child;
    int64_t              before = 0, run = 0;
    for (; (*part)->size >= 0 && positions[next] >= before + (*part)->size; part++) before += (*part)->size;
    for (; next < n && positions[next] >= before && positions[next] < before + (*part)->size; next++)
      own[run++] = positions[next] - before;
    child[picks] = run > 0
                       ? mgrid_family_pick(*part, (size_t)run, own, err)
                       : mgrid_needs_lists("this pick", f, err); /* sizes vary, so no fixed part holds the position */
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

/* The same groups of each part. */
static mgrid_family *zip_groups(const mgrid_family *f, int64_t n, const int64_t *order, mgrid_error *err) {
  const mgrid_parts *parts = f->own;
  mgrid_family     **child = malloc(parts->n * sizeof *child);
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
  .same_rule = mgrid_parts_same_rule,
  .text = mgrid_parts_text,
  .json = mgrid_parts_json,
  .explain = zip_explain,
  .free = mgrid_parts_free,
  .classes = zip_classes,
  .members = mgrid_parts_members,
  .pick = zip_pick,
  .groups = zip_groups,
};
