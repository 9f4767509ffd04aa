/* SPDX-License-Identifier: MIT
**
** parts.c - shared by UNION and ZIP: families made of other families.
*/
#include "families/classes.h"

#include <stdlib.h>

mgrid_family *mgrid_parts_new(const mgrid_form *form, size_t n, mgrid_family **child, mgrid_error *err) {
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

void mgrid_parts_free(mgrid_family *f) {
  mgrid_parts *parts = f->own;
  mgrid_families_free(parts->n, parts->child);
}

bool mgrid_parts_same_rule(const mgrid_family *a, const mgrid_family *b) {
  const mgrid_parts *x = a->own, *y = b->own;
  bool               same = x->n == y->n;
  for (size_t i = 0; i < x->n && same; i++) same = mgrid_family_same_rule(x->child[i], y->child[i]);
  return same;
}

void mgrid_parts_text(const mgrid_family *f, mgrid_text *t) {
  const mgrid_parts *parts = f->own;
  mgrid_text_add(t, "%s[", f->form->name);
  for (size_t i = 0; i < parts->n; i++) {
    if (i) mgrid_text_str(t, " | ");
    parts->child[i]->form->text(parts->child[i], t);
  }
  mgrid_text_str(t, "]");
}

void mgrid_parts_json(const mgrid_family *f, mgrid_text *t) {
  const mgrid_parts *parts = f->own;
  mgrid_text_add(t, "{\"%s\":", f->form->name);
  for (size_t i = 0; i < parts->n; i++) {
    mgrid_text_str(t, i ? "," : "[");
    mgrid_family_json(parts->child[i], t);
  }
  mgrid_text_str(t, "]}");
}

bool mgrid_parts_members(const mgrid_family *f, mgrid_sets *list) {
  const mgrid_parts *parts = f->own;
  bool               told = true;
  for (size_t i = 0; i < parts->n && told; i++) told = mgrid_members_of(parts->child[i], list);
  return told;
}
