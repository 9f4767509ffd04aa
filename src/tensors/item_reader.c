/* SPDX-License-Identifier: MIT
**
** item_reader.c - tensors in the rules of a saved plan, written and read. The first tensor of a flat has all members of
** it, the next ones name the tensor before them.
*/
#include "tensors/of_plan.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------- write */

/* Append the fields of a tensor without a flat; the first has no comma. */
static void put_tensor(const mgrid_tensor *x, mgrid_text *t) {
  mgrid_text_str(t, "\"type\":");
  mgrid_text_quoted(t, x->type);
  for (size_t i = 0; i < x->naxes; i++) {
    mgrid_text_str(t, i ? "," : ",\"axes\":[");
    mgrid_slicing_json(&x->axis[i], x->grid, t);
  }
  mgrid_text_str(t, "],\"over\":{");
  mgrid_grid_json(x->grid, t);
  mgrid_text_str(t, "}");
  for (size_t d = 0, n = 0; d <= x->grid->n; d++) {
    if (d == x->grid->n && n) mgrid_text_str(t, "}");
    if (d == x->grid->n || !x->some[d]) continue;
    mgrid_text_str(t, n++ ? "," : ",\"on\":{");
    mgrid_text_quoted(t, x->grid->axis[d].name);
    mgrid_text_str(t, ":");
    mgrid_text_numbers(t, (size_t)x->count[d], x->some[d]);
  }
}

void mgrid_flat_json(const mgrid_flat *f, mgrid_text *t) {
  for (size_t i = 0; i < f->ndims; i++) {
    mgrid_text_str(t, i ? "," : "{\"by\":[");
    mgrid_text_quoted(t, f->member[0]->grid->axis[f->dim[i]].name);
  }
  mgrid_text_str(t, "],\"pad\":");
  mgrid_text_int(t, f->pad);
  for (size_t i = 0; i < f->n; i++) {
    mgrid_text_str(t, i ? "},{" : ",\"members\":[{");
    put_tensor(f->member[i], t);
  }
  mgrid_text_str(t, "}]}");
}

void mgrid_tensor_rule(const mgrid_content *c, size_t i, mgrid_text *t) {
  const mgrid_tensor *x = c->item[i].x;
  mgrid_text_str(t, ",");
  if (!x->flat) {
    put_tensor(x, t);
    return;
  }
  const char *before = NULL;
  for (size_t k = i; k-- > 0 && !before;) {
    const mgrid_tensor *y = c->item[k].kind == &mgrid_tensor_kind ? c->item[k].x : NULL;
    if (y && y->flat && y->flat->rule == x->flat->rule) before = c->item[k].name;
  }
  mgrid_text_str(t, "\"flat\":");
  if (before)
    mgrid_text_quoted(t, before);
  else
    mgrid_flat_json(x->flat, t);
  mgrid_text_str(t, ",\"member\":");
  mgrid_text_int(t, (int64_t)x->at);
}

/* ----------------------------------------------------------------------- read */

typedef struct reading {
  size_t            naxes, ndims; /* ndims: of all axes */
  mgrid_tensor_axis axis[MGRID_AXES_MAX];
  int64_t          *list[MGRID_AXES_MAX][3]; /* parts, bounds, owners */
  const char       *dims[MGRID_DIMS_MAX];
  mgrid_some        some[MGRID_DIMS_MAX];
} reading;

/* Read a list of dims behind those of *n that are there; return the first of its own. */
static const char *const *read_dims(const mgrid_field *s, const char **dims, size_t *n) {
  const mgrid_field by = mgrid_field_of(s, "by");
  const size_t      from = *n, more = mgrid_field_list(&by, 1, MGRID_DIMS_MAX - from);
  for (size_t i = 0; i < more; i++) {
    const mgrid_field dim = mgrid_field_at(&by, i);
    dims[(*n)++] = mgrid_field_text(&dim);
  }
  return &dims[from];
}

static const int64_t *read_list(const mgrid_field *s, const char *name, int64_t **list, size_t *n) {
  const mgrid_field f = mgrid_field_of(s, name);
  if (f.v) *list = mgrid_field_numbers(&f, 0, INT64_MAX, n);
  return *list;
}

static int64_t read_number(const mgrid_field *s, const char *name, int64_t least, int64_t absent) {
  const mgrid_field f = mgrid_field_of(s, name);
  return f.v ? mgrid_field_number(&f, least, INT64_MAX) : absent;
}

static bool read_flag(const mgrid_field *s, const char *name) {
  const mgrid_field f = mgrid_field_of(s, name);
  return mgrid_field_flag(&f);
}

static void read_axis(const mgrid_field *s, reading *r, size_t i) {
  mgrid_tensor_axis *a = &r->axis[i];
  const mgrid_field  name = mgrid_field_of(s, "name"), by = mgrid_field_of(s, "by");
  *a = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
  mgrid_field_only(s, "name length by ceil cyclic unit parts copies bounds owners");
  a->name = mgrid_field_text(&name);
  a->length = read_number(s, "length", 1, 0);
  if (!by.v) return;
  const size_t from = r->ndims;
  a->dims = read_dims(s, r->dims, &r->ndims);
  a->ndims = r->ndims - from;
  a->unit = read_number(s, "unit", 1, a->unit);
  a->copies = read_flag(s, "copies");
  if (read_flag(s, "ceil")) a->cutting = MGRID_CUT_CEIL;
  if ((a->block = read_number(s, "cyclic", 1, 0))) a->cutting = MGRID_CUT_CYCLIC;
  a->parts = read_list(s, "parts", &r->list[i][0], &a->nparts);
  if ((a->bounds = read_list(s, "bounds", &r->list[i][1], &a->nbounds))) a->cutting = MGRID_CUT_BOUNDS;
  if ((a->owners = read_list(s, "owners", &r->list[i][2], &a->nowners))) a->cutting = MGRID_CUT_OWNERS;
}

/* Read coordinates of some dims. */
static void read_some(const mgrid_field *s, reading *r, const mgrid_grid *g) {
  mgrid_text names = { 0 };
  if (!s->v) return;
  for (size_t d = 0; d < g->n; d++) {
    const mgrid_field f = mgrid_field_of(s, g->axis[d].name);
    if (f.v) r->some[d].at = mgrid_field_numbers(&f, 0, g->axis[d].size - 1, &r->some[d].n);
    if (f.v && r->some[d].n == 0) mgrid_field_fault(&f, "coordinates");
    mgrid_text_add(&names, "%s ", g->axis[d].name);
  }
  mgrid_field_only(s, mgrid_text_chars(&names));
  if (names.failed) mgrid_oom(s->all->err), mgrid_field_fail(s);
  mgrid_text_free(&names);
}

#define PLAIN_FIELDS "type axes over on"

static mgrid_tensor *read_plain(const mgrid_field *s, int64_t world) {
  const mgrid_field type = mgrid_field_of(s, "type"), axes = mgrid_field_of(s, "axes");
  const mgrid_field over = mgrid_field_of(s, "over"), on = mgrid_field_of(s, "on");
  mgrid_tensor     *t = NULL;
  reading          *r = mgrid_field_spend(s, (int64_t)MGRID_AXES_MAX * MGRID_DIMS_MAX) ? calloc(1, sizeof *r) : NULL;
  if (!r) {
    if (!s->all->failed) mgrid_oom(s->all->err), mgrid_field_fail(s);
    return NULL;
  }
  const char *word = mgrid_field_text(&type);
  r->naxes = mgrid_field_list(&axes, 1, MGRID_AXES_MAX);
  for (size_t i = 0; i < r->naxes; i++) {
    const mgrid_field axis = mgrid_field_at(&axes, i);
    read_axis(&axis, r, i);
  }
  mgrid_field_only(&over, MGRID_GRID_FIELDS);
  mgrid_grid *g = s->all->failed ? NULL : mgrid_grid_read(&over, world);
  if (g) read_some(&on, r, g);
  if (!s->all->failed) t = mgrid_tensor_at_some(g, word, r->naxes, r->axis, r->some, s->all->err);
  for (size_t i = 0; i < MGRID_AXES_MAX; i++)
    for (size_t k = 0; k < 3; k++) free(r->list[i][k]);
  for (size_t d = 0; d < MGRID_DIMS_MAX; d++) free(r->some[d].at);
  free(r);
  mgrid_grid_free(g);
  if (!t) mgrid_field_fail(s);
  return t;
}

/* Read the members of a flat, and return tensor `at` of it. */
static mgrid_tensor *read_members(const mgrid_field *s, const mgrid_field *member, int64_t world) {
  const char       *dims[MGRID_DIMS_MAX];
  size_t            ndims = 0;
  const mgrid_field list = mgrid_field_of(s, "members");
  mgrid_field_only(s, "by pad members");
  read_dims(s, dims, &ndims);
  const int64_t  pad = read_number(s, "pad", 1, 0);
  const size_t   n = mgrid_field_list(&list, 1, SIZE_MAX);
  const int64_t  at = mgrid_field_number(member, 0, (int64_t)n - 1);
  mgrid_tensor **one = calloc(2 * n + 1, sizeof *one), **made = one + n, *t = NULL;
  if (!one) mgrid_oom(s->all->err), mgrid_field_fail(s);
  for (size_t i = 0; i < n && !s->all->failed; i++) {
    const mgrid_field f = mgrid_field_at(&list, i);
    mgrid_field_only(&f, PLAIN_FIELDS);
    one[i] = read_plain(&f, world);
  }
  if (!s->all->failed
      && !mgrid_tensor_flatten(n, (const mgrid_tensor *const *)one, ndims, dims, pad, made, s->all->err))
    t = mgrid_tensor_ref(made[at]);
  for (size_t i = 0; i < 2 * n && one; i++) mgrid_tensor_free(one[i]);
  free(one);
  return t;
}

/* Return a member of the flat of a tensor that is in the topology already. */
static mgrid_tensor *next_member(const mgrid_field *s, const mgrid_field *member, const mgrid_topology *t) {
  const char         *name = mgrid_field_text(s);
  const mgrid_item   *item = mgrid_content_item(&t->content, &mgrid_tensor_kind, name);
  const mgrid_tensor *x = item ? item->x : NULL;
  if (!x || !x->flat) {
    mgrid_field_fault(s, "a flat, or the name of an earlier tensor that has it");
    return NULL;
  }
  const int64_t at = mgrid_field_number(member, 0, (int64_t)x->flat->n - 1);
  return s->all->failed ? NULL : mgrid_flat_member(x->flat, (size_t)at, s->all->err);
}

static void read_tensor(const mgrid_field *s, const char *name, mgrid_topology *t) {
  const mgrid_field flat = mgrid_field_of(s, "flat"), member = mgrid_field_of(s, "member");
  mgrid_tensor     *x = NULL;
  if (!flat.v) {
    mgrid_field_only(s, "tensor " PLAIN_FIELDS);
    x = read_plain(s, t->content.world);
  } else {
    mgrid_field_only(s, "tensor flat member");
    x = json_is_object(flat.v) ? read_members(&flat, &member, t->content.world) : next_member(&flat, &member, t);
  }
  if (!x || mgrid_topology_put_item(t, name, &mgrid_tensor_kind, x, s->all->err)) mgrid_field_fail(s);
  mgrid_tensor_free(x);
}

extern const mgrid_item_reader mgrid_item_reader_tensors;
const mgrid_item_reader mgrid_item_reader_tensors = { "tensor", "tensor flat member " PLAIN_FIELDS, read_tensor };
