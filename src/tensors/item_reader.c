/* SPDX-License-Identifier: MIT
**
** item_reader.c - read tensors from the texts that tensor.c, slicing.c and flat.c write. A flat needs all its members,
** and each text has one of them. So they are collected, and the flat is made at the end.
*/
#include "tensors/of_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ one text */

typedef struct reading {
  size_t            naxes, ndims; /* ndims: of all axes */
  mgrid_tensor_axis axis[MGRID_AXES_MAX];
  int64_t          *list[MGRID_AXES_MAX][2]; /* parts; bounds or owners */
  char              name[MGRID_AXES_MAX][MGRID_NAME_MAX + 1];
  char              dim[MGRID_DIMS_MAX][MGRID_NAME_MAX + 1];
  const char       *dims[MGRID_DIMS_MAX];
  mgrid_some        some[MGRID_DIMS_MAX];
} reading;

/* Read "dp,tp". */
static void read_dims(mgrid_scan *s, reading *r, size_t *n, const char *const **dims) {
  *dims = &r->dims[r->ndims];
  do {
    if (r->ndims == MGRID_DIMS_MAX) mgrid_scan_fault(s, "at most 64 dims");
    if (s->failed) return;
    mgrid_scan_name(s, r->dim[r->ndims]);
    r->dims[r->ndims] = r->dim[r->ndims];
    r->ndims++, ++*n;
  } while (mgrid_scan_comma(s));
}

/* Read "hidden 4096 by tp unit 64". */
static void read_axis(mgrid_scan *s, reading *r) {
  if (r->naxes == MGRID_AXES_MAX) mgrid_scan_fault(s, "at most 8 axes");
  if (s->failed) return;
  size_t             i = r->naxes++;
  mgrid_tensor_axis *a = &r->axis[i];
  *a = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
  mgrid_scan_name(s, r->name[i]);
  a->name = r->name[i];
  mgrid_scan_want(s, " ");
  a->length = mgrid_scan_number(s);
  if (!mgrid_scan_take(s, " by ")) return;
  read_dims(s, r, &a->ndims, &a->dims);
  if (mgrid_scan_take(s, " ceil")) a->cutting = MGRID_CUT_CEIL;
  if (mgrid_scan_take(s, " cyclic ")) a->cutting = MGRID_CUT_CYCLIC, a->block = mgrid_scan_number(s);
  if (mgrid_scan_take(s, " unit ")) a->unit = mgrid_scan_number(s);
  if (mgrid_scan_take(s, " parts ")) a->parts = r->list[i][0] = mgrid_scan_numbers(s, &a->nparts);
  if (mgrid_scan_take(s, " copies")) a->copies = true;
  if (mgrid_scan_take(s, " bounds ")) {
    a->cutting = MGRID_CUT_BOUNDS;
    a->bounds = r->list[i][1] = mgrid_scan_numbers(s, &a->nbounds);
  } else if (mgrid_scan_take(s, " owners ")) {
    a->cutting = MGRID_CUT_OWNERS;
    a->owners = r->list[i][1] = mgrid_scan_numbers(s, &a->nowners);
  }
}

/* Read what follows " on ": "tp 0,1, pp 0", coordinates of some dims. */
static void read_some(mgrid_scan *s, reading *r, const mgrid_grid *g) {
  char name[MGRID_NAME_MAX + 1];
  do {
    const char *from = s->at;
    mgrid_scan_name(s, name);
    int64_t d = s->failed ? 0 : mgrid_grid_find(g, name);
    if (d < 0 || (!s->failed && r->some[d].n > 0)) {
      s->at = from;
      mgrid_scan_fault(s, d < 0 ? "a dim of the grid" : "a dim that did not occur yet");
    }
    mgrid_scan_want(s, " ");
    if (!s->failed) r->some[d].at = mgrid_scan_numbers(s, &r->some[d].n);
  } while (mgrid_scan_take(s, ", "));
}

/* Read the text up to that of a flat. */
static mgrid_tensor *read_tensor(mgrid_scan *s, int64_t world) {
  char          type[MGRID_NAME_MAX + 1];
  mgrid_grid   *g = NULL;
  mgrid_tensor *t = NULL;
  reading      *r = s->failed ? NULL : calloc(1, sizeof *r);
  if (!r) {
    if (!s->failed) mgrid_oom(s->err);
    mgrid_scan_fail(s);
    return NULL;
  }
  mgrid_scan_name(s, type);
  mgrid_scan_want(s, " ");
  do read_axis(s, r);
  while (mgrid_scan_take(s, ", "));
  mgrid_scan_want(s, " over ");
  if (!s->failed) g = mgrid_grid_read(s, world);
  if (g && mgrid_scan_take(s, " on ")) read_some(s, r, g);
  if (!s->failed && mgrid_spend(s->budget, (int64_t)(r->naxes * MGRID_DIMS_MAX) + (s->end - s->begin)))
    t = mgrid_tensor_at_some(g, type, r->naxes, r->axis, r->some, s->err);
  for (size_t i = 0; i < MGRID_AXES_MAX; i++) free(r->list[i][0]), free(r->list[i][1]);
  for (size_t d = 0; d < MGRID_DIMS_MAX; d++) free(r->some[d].at);
  free(r);
  mgrid_grid_free(g);
  if (!t) mgrid_scan_fail(s);
  return t;
}

/* ------------------------------------------------------------------- all texts */

typedef struct flat { /* what the texts say of a flat */
  uint64_t rule;
  size_t   n, found, ndims;
  int64_t  pad;
  char (*dim)[MGRID_NAME_MAX + 1]; /* [ndims] */
  mgrid_tensor **member, **made;   /* [n] */
} flat;

typedef struct named {
  char          name[MGRID_ITEM_NAME_MAX + 1];
  mgrid_tensor *tensor; /* NULL: member `at` of a flat */
  size_t        flat, at;
} named;

typedef struct tensors {
  size_t lines, members; /* lines of the text; members of all flats, according to their texts */
  size_t nnamed, nflats;
  named *named;
  flat  *flat;
} tensors;

static void *begin(size_t lines, mgrid_error *err) {
  tensors *r = calloc(1, sizeof *r);
  if (!r) return mgrid_null_oom(err);
  r->lines = lines;
  return r;
}

static void free_all(void *all) {
  tensors *r = all;
  if (!r) return;
  for (size_t i = 0; i < r->nnamed; i++) mgrid_tensor_free(r->named[i].tensor);
  for (size_t i = 0; i < r->nflats; i++) {
    for (size_t k = 0; k < r->flat[i].n; k++) {
      if (r->flat[i].member) mgrid_tensor_free(r->flat[i].member[k]);
      if (r->flat[i].made) mgrid_tensor_free(r->flat[i].made[k]);
    }
    free(r->flat[i].member);
    free(r->flat[i].made);
    free(r->flat[i].dim);
  }
  free(r->flat);
  free(r->named);
  free(r);
}

static uint64_t read_rule(mgrid_scan *s) {
  uint64_t rule = 0;
  int      n = 0;
  for (; n < 16 && s->at < s->end && !s->failed; n++, s->at++) {
    const char *digits = "0123456789abcdef", *digit = *s->at ? strchr(digits, *s->at) : NULL;
    if (!digit) break;
    rule = rule << 4 | (uint64_t)(digit - digits);
  }
  if (n < 16) mgrid_scan_fault(s, "16 hexadecimal digits");
  return rule;
}

/* Find the flat of that rule, most often that of the previous text. NULL: a new one, or the scan has failed. */
static flat *known_flat(tensors *r, uint64_t rule, mgrid_scan *s) {
  for (size_t i = r->nflats; i-- > 0 && mgrid_spend(s->budget, 1);)
    if (r->flat[i].rule == rule) return &r->flat[i];
  if (s->budget && s->budget->exhausted) mgrid_scan_fail(s);
  return NULL;
}

static flat *new_flat(tensors *r, uint64_t rule, size_t n, mgrid_scan *s) {
  if (!s->failed && n > r->lines - r->members) mgrid_scan_fault(s, "a flat whose members are all here");
  flat *more = mgrid_scan_room(s, r->flat, r->nflats, sizeof *more);
  if (!more) return NULL;
  r->flat = more;
  flat *f = &more[r->nflats];
  *f = (flat){ .rule = rule, .n = n };
  f->member = calloc(n, sizeof *f->member);
  f->made = calloc(n, sizeof *f->made);
  r->nflats++;
  r->members += n;
  if (f->member && f->made) return f;
  mgrid_oom(s->err);
  mgrid_scan_fail(s);
  return NULL;
}

/* Read what follows " flat ": "2 of 3 by dp,ep pad 64 as 0123456789abcdef". The flat takes ownership of the tensor. */
static flat *read_flat(tensors *r, mgrid_tensor *t, size_t *at, mgrid_scan *s) {
  char        dim[MGRID_DIMS_MAX][MGRID_NAME_MAX + 1];
  size_t      ndims = 0;
  const char *from = s->at;
  int64_t     nth = mgrid_scan_number(s);
  mgrid_scan_want(s, " of ");
  int64_t n = mgrid_scan_number(s);
  mgrid_scan_want(s, " by ");
  do {
    if (ndims == MGRID_DIMS_MAX) mgrid_scan_fault(s, "at most 64 dims");
    if (!s->failed) mgrid_scan_name(s, dim[ndims++]);
  } while (mgrid_scan_comma(s));
  mgrid_scan_want(s, " pad ");
  int64_t pad = mgrid_scan_number(s);
  mgrid_scan_want(s, " as ");
  uint64_t rule = read_rule(s);
  flat    *f = s->failed ? NULL : known_flat(r, rule, s);
  if (!s->failed && (nth < 1 || nth > n)) {
    s->at = from;
    mgrid_scan_fault(s, "the number of a member");
  }
  if (!f && !s->failed && (f = new_flat(r, rule, (size_t)n, s))) {
    f->pad = pad;
    f->ndims = ndims;
    if ((f->dim = calloc(ndims, sizeof *f->dim)))
      memcpy(f->dim, dim, ndims * sizeof *f->dim);
    else
      mgrid_oom(s->err), mgrid_scan_fail(s);
  }
  if (s->failed) {
    mgrid_tensor_free(t);
    return NULL;
  }
  *at = (size_t)nth - 1;
  if ((size_t)n != f->n || pad != f->pad || ndims != f->ndims) {
    s->at = from;
    mgrid_scan_fault(s, "the same flat as in the texts of its other members");
  }
  if (s->failed || f->member[*at]) { /* two names of one member */
    mgrid_tensor_free(t);
    return s->failed ? NULL : f;
  }
  f->member[*at] = t;
  f->found++;
  return f;
}

static void read_line(void *all, const char *name, int64_t world, mgrid_scan *s) {
  tensors      *r = all;
  mgrid_tensor *t = read_tensor(s, world);
  size_t        at = 0;
  flat         *f = NULL;
  if (t && mgrid_scan_take(s, " flat ")) {
    f = read_flat(r, t, &at, s);
    t = NULL;
  }
  named *more = name ? mgrid_scan_room(s, r->named, r->nnamed, sizeof *more) : NULL;
  if (!more || s->failed) {
    mgrid_tensor_free(t);
    if (more) r->named = more;
    return;
  }
  r->named = more;
  named *one = &more[r->nnamed++];
  *one = (named){ .tensor = t, .flat = f ? (size_t)(f - r->flat) : 0, .at = at };
  snprintf(one->name, sizeof one->name, "%s", name);
}

static mgrid_status make_flat(flat *f, mgrid_error *err) {
  const char *dims[MGRID_DIMS_MAX];
  size_t      lost = 0;
  while (lost < f->n && f->member[lost]) lost++;
  if (lost < f->n)
    return mgrid_fail(err, MGRID_REFUSED,
                      "member %zu of %zu of the flat %016" PRIx64
                      " is missing, because it is not a tensor of the plan; the JSON of such a plan has it in 'flats'",
                      lost + 1, f->n, f->rule);
  for (size_t k = 0; k < f->ndims; k++) dims[k] = f->dim[k];
  mgrid_status s =
      mgrid_tensor_flatten(f->n, (const mgrid_tensor *const *)f->member, f->ndims, dims, f->pad, f->made, err);
  if (s || f->made[0]->flat->rule == f->rule) return s;
  return mgrid_fail(err, MGRID_BAD_VALUE, "the flat %016" PRIx64 " has members that make %016" PRIx64 "", f->rule,
                    f->made[0]->flat->rule);
}

static mgrid_status end(void *all, mgrid_topology *t, mgrid_error *err) {
  tensors     *r = all;
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < r->nflats && !s; i++) s = make_flat(&r->flat[i], err);
  for (size_t i = 0; i < r->nnamed && !s; i++) {
    const named *one = &r->named[i];
    s = mgrid_topology_put_item(t, one->name, &mgrid_tensor_kind,
                                one->tensor ? one->tensor : r->flat[one->flat].made[one->at], err);
  }
  return s;
}

extern const mgrid_item_reader mgrid_item_reader_tensors;
const mgrid_item_reader        mgrid_item_reader_tensors = { "tensor", "flats", begin, read_line, end, free_all };
