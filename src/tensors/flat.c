/* SPDX-License-Identifier: MIT
**
** flat.c - flats: several tensors concatenated, and cut as one array (tensor.h).
*/
#include "tensors/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---------------------------------------------------------------- questions */

static bool cuts(const mgrid_flat *f, size_t dim) {
  for (size_t i = 0; i < f->ndims; i++)
    if (f->dim[i] == dim) return true;
  return false;
}

/* Return how many elements a slice has, if the concatenated parts have n. */
static int64_t tensor_slice_of(const mgrid_flat *f, int64_t n) {
  int64_t whole = f->slices * f->pad;
  return (n / whole + (n % whole != 0)) * f->pad;
}

int64_t mgrid_flat_start(const mgrid_tensor *t, const mgrid_coords *at, int64_t *each) {
  const mgrid_flat *f = t->flat;
  int64_t sum = 0, start = 0;
  if (f->even) return *each = f->each, f->start[t->at];
  int64_t rank = mgrid_tensor_rank(t, at); /* all ranks with these pieces have equal parts */
  for (size_t i = 0; i < f->n; i++) {
    mgrid_coords coords;
    if (i == t->at) start = sum;
    if (mgrid_tensor_coords(f->member[i], rank, &coords))
      sum += mgrid_tensor_elements(f->member[i], &coords);
  }
  *each = tensor_slice_of(f, sum);
  return start;
}

mgrid_run mgrid_tensor_range(const mgrid_tensor *t, const mgrid_coords *at) {
  int64_t n = 1, each;
  for (size_t i = 0; i < t->naxes; i++) n *= mgrid_piece_size(&t->axis[i], at->piece[i]);
  if (!t->flat) return (mgrid_run){ 0, n };
  int64_t start = mgrid_flat_start(t, at, &each);
  int64_t low = at->slice * each - start, high = low + each;
  low = low > 0 ? low : 0;
  high = high < n ? high : n;
  return low < high ? (mgrid_run){ low, high - low } : (mgrid_run){ 0, 0 };
}

/* Return an upper bound for the largest range of a part: take the largest part of each member. */
static int64_t bound_of(const mgrid_tensor *t) {
  int64_t sum = 0, mine = 0;
  for (size_t i = 0; i < t->flat->n; i++) {
    int64_t n = mgrid_tensor_largest(t->flat->member[i]) / t->width;
    if (i == t->at) mine = n;
    sum += n;
  }
  int64_t each = tensor_slice_of(t->flat, sum);
  return mine < each ? mine : each;
}

int64_t mgrid_flat_largest(const mgrid_tensor *t) {
  enum { LOOKED_AT = 4096 };
  int64_t most = 0, tuples = 1; /* if parts are even, one tuple of pieces is enough */
  for (size_t i = 0; i < t->naxes && !t->flat->even; i++) tuples *= t->axis[i].pieces;
  if (tuples > LOOKED_AT) return bound_of(t);
  for (int64_t k = 0; k < tuples; k++) {
    mgrid_coords at = { { 0 }, 0, 0 };
    int64_t rest = k, each;
    for (size_t i = t->naxes; i-- > 0; rest /= t->axis[i].pieces)
      at.piece[i] = rest % t->axis[i].pieces;
    int64_t start = mgrid_flat_start(t, &at, &each);
    /* the part starts in slice at.slice; the next slice is full of it, or the part ends there */
    at.slice = each ? start / each : 0;
    for (int next = 0; next < 2 && at.slice < t->flat->slices; next++, at.slice++) {
      int64_t n = mgrid_tensor_range(t, &at).length;
      if (n > most) most = n;
    }
  }
  return most;
}

void mgrid_flat_text(const mgrid_tensor *t, mgrid_text *text) {
  const mgrid_flat *f = t->flat;
  const mgrid_grid *g = f->member[0]->grid;
  mgrid_text_add(text, " flat %zu of %zu by ", t->at + 1, f->n);
  for (size_t i = 0; i < f->ndims; i++)
    mgrid_text_add(text, "%s%s", i ? "," : "", g->axis[f->dim[i]].name);
  mgrid_text_add(text, " pad %" PRId64 " as %016" PRIx64, f->pad, f->rule);
}

/* --------------------------------------------------------------------- rule */

void mgrid_tensor_put(const mgrid_tensor *x, mgrid_text *t) {
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
    mgrid_tensor_put(f->member[i], t);
  }
  mgrid_text_str(t, "}]}");
}

/* ------------------------------------------------------------------- making */

void mgrid_flat_free(mgrid_flat *f) {
  if (!f || atomic_fetch_sub(&f->refs, 1) != 1) return;
  for (size_t i = 0; i < f->n; i++) mgrid_tensor_free(f->member[i]);
  free(f->member);
  free(f->start);
  free(f);
}

/* Return the axis of a tensor that a dim cuts; NULL: none. */
static const mgrid_slicing *axis_of(const mgrid_tensor *t, size_t dim) {
  for (size_t i = 0; i < t->naxes; i++)
    for (size_t k = 0; k < t->axis[i].ndims; k++)
      if (t->axis[i].dim[k] == dim) return &t->axis[i];
  return NULL;
}

static mgrid_status tensor_check_alike(const mgrid_flat *f, mgrid_error *err) {
  const mgrid_tensor *first = f->member[0];
  int64_t elements = 0;
  for (size_t i = 0; i < f->n; i++) {
    const mgrid_tensor *t = f->member[i];
    if (t->flat)
      return mgrid_fail(err, MGRID_REFUSED, "tensor %zu of the flat is flat already", i + 1);
    if (!mgrid_grid_equal(t->grid, first->grid))
      return mgrid_fail(err, MGRID_REFUSED,
                        "tensor %zu of the flat is over another grid than tensor 1", i + 1);
    if (t->type != first->type)
      return mgrid_fail(err, MGRID_REFUSED,
                        "tensor %zu of the flat is %s, tensor 1 %s; a flat has one type", i + 1,
                        t->type, first->type);
    if (__builtin_add_overflow(elements, t->bytes / t->width, &elements))
      return mgrid_fail(err, MGRID_OVERFLOW,
                        "the elements of the flat overflow 64 bits at tensor %zu", i + 1);
  }
  return MGRID_OK;
}

static mgrid_status flat_set_dims(mgrid_flat *f, size_t n, const char *const *dims,
                                  mgrid_error *err) {
  const mgrid_grid *g = f->member[0]->grid;

  f->slices = 1;
  for (size_t i = 0; i < n; i++) {
    int64_t d = mgrid_grid_require(g, dims[i], err);
    if (d < 0) return err ? err->status : MGRID_UNKNOWN_NAME;
    if (cuts(f, (size_t)d))
      return mgrid_fail(err, MGRID_DUPLICATE, "dim '%s' cuts the flat twice", dims[i]);
    for (size_t k = 0; k < f->n; k++) {
      const mgrid_tensor *t = f->member[k];
      if (axis_of(t, (size_t)d))
        return mgrid_fail(err, MGRID_REFUSED,
                          "dim '%s' cuts axis '%s' of tensor %zu; a flat is cut by dims that cut "
                          "none of its tensors",
                          dims[i], axis_of(t, (size_t)d)->name, k + 1);
      if (t->some[d])
        return mgrid_fail(err, MGRID_REFUSED,
                          "dim '%s' cuts the flat, and tensor %zu is not on all of its coordinates",
                          dims[i], k + 1);
    }
    f->dim[f->ndims++] = (uint8_t)d;
    f->slices *= g->axis[d].size;
  }
  return MGRID_OK;
}

/* Return whether all pieces of an axis have one size. */
static bool is_even(const mgrid_slicing *s) {
  for (int64_t k = 1; mgrid_slicing_listed(s) && k < s->pieces; k++)
    if (mgrid_piece_size(s, k) != mgrid_piece_size(s, 0)) return false;
  return mgrid_piece_size(s, 0) * s->pieces == s->length; /* no piece is larger than piece 0 */
}

static bool on_alike(const mgrid_tensor *a, const mgrid_tensor *b, size_t d) {
  if (!a->some[d] || !b->some[d]) return a->some[d] == b->some[d];
  return a->count[d] == b->count[d]
         && memcmp(a->some[d], b->some[d], (size_t)a->count[d] * sizeof *a->some[d]) == 0;
}

/* Refuse a dim along which the parts of a member differ, unless the dim cuts every member, without
** copies: ranks that hold the same part of one member would have different ranges of it. */
static mgrid_status check_even(mgrid_flat *f, mgrid_error *err) {
  const mgrid_grid *g = f->member[0]->grid;
  f->even = true;
  for (size_t d = 0; d < g->n; d++) {
    size_t uneven = f->n, uncut = f->n; /* members */
    for (size_t i = f->n; i-- > 0;) {
      const mgrid_slicing *s = axis_of(f->member[i], d);
      if (!s || f->member[i]->share[d] > 1) uncut = i;
      if ((s && !is_even(s)) || !on_alike(f->member[i], f->member[0], d)) uneven = i;
    }
    if (uneven == f->n) continue;
    f->even = false;
    if (uncut < f->n)
      return mgrid_fail(
          err, MGRID_REFUSED,
          "parts of tensor %zu differ along '%s', which %s tensor %zu of the flat; cut them "
          "evenly, or put these tensors into different flats",
          uneven + 1, g->axis[d].name,
          axis_of(f->member[uncut], d) ? "makes copies of" : "does not cut", uncut + 1);
  }
  return MGRID_OK;
}

/* Find where the members start in a rank's array, if that is the same on all ranks. */
static mgrid_status set_starts(mgrid_flat *f, mgrid_error *err) {
  int64_t whole, elements = 0, padded, bytes;
  for (size_t i = 0; i < f->n; i++) elements += f->member[i]->bytes / f->member[i]->width;
  if (__builtin_mul_overflow(f->slices, f->pad, &whole)
      || __builtin_add_overflow(elements, whole, &padded)
      || __builtin_mul_overflow(padded, f->member[0]->width, &bytes))
    return mgrid_fail(err, MGRID_OVERFLOW,
                      "the flat overflows 64 bits: %" PRId64 " slices, padded to %" PRId64,
                      f->slices, f->pad);
  if (!f->even) return MGRID_OK;
  int64_t at = 0;
  mgrid_coords coords = { { 0 }, 0, 0 };
  if (!(f->start = malloc(f->n * sizeof *f->start))) return mgrid_oom(err);
  for (size_t i = 0; i < f->n; i++) {
    f->start[i] = at;
    at += mgrid_tensor_elements(f->member[i], &coords);
  }
  f->each = tensor_slice_of(f, at);
  return MGRID_OK;
}

static mgrid_status set_rule(mgrid_flat *f, mgrid_error *err) {
  mgrid_text text = { 0 };
  mgrid_flat_json(f, &text);
  if (!text.failed) f->rule = XXH3_64bits(text.data, text.len);
  mgrid_status s = text.failed ? mgrid_oom(err) : MGRID_OK;
  mgrid_text_free(&text);
  return s;
}

mgrid_tensor *mgrid_flat_member(mgrid_flat *f, size_t i, mgrid_error *err) {
  mgrid_tensor *t = malloc(sizeof *t), *m = f->member[i];
  if (!t) return mgrid_null_oom(err);
  memcpy(t, m, sizeof *t);
  atomic_init(&t->refs, 1);
  t->flat = f;
  t->at = i;
  t->nfree = 0;
  for (size_t k = 0; k < m->nfree; k++)
    if (!cuts(f, m->free_dim[k])) t->free_dim[t->nfree++] = m->free_dim[k];
  for (size_t k = 0; k < f->ndims; k++) t->share[f->dim[k]] = 1;
  t->copies /= f->slices;
  atomic_fetch_add(&f->refs, 1);
  return t;
}

static mgrid_status new_flat(mgrid_flat *f, size_t ndims, const char *const *dims,
                             mgrid_error *err) {
  mgrid_status s = tensor_check_alike(f, err);
  if (!s) s = flat_set_dims(f, ndims, dims, err);
  if (!s) s = check_even(f, err);
  if (!s) s = set_starts(f, err);
  return s ? s : set_rule(f, err);
}

mgrid_status mgrid_tensor_flatten(size_t n, const mgrid_tensor *const *tensors, size_t ndims,
                                  const char *const *dims, int64_t pad, mgrid_tensor **out,
                                  mgrid_error *err) {
  if (mgrid_lacks(out, "the array for the tensors of the flat", err)) return MGRID_USAGE;
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  if (mgrid_lacks_list(n, tensors, "tensors", err) || mgrid_lacks_list(ndims, dims, "dims", err))
    return MGRID_USAGE;

  if (n == 0 || ndims == 0)
    return mgrid_fail(err, MGRID_USAGE, "a flat has no %s", n ? "dim that cuts it" : "tensors");
  for (size_t i = 0; i < n; i++)
    if (!tensors[i]) return mgrid_fail(err, MGRID_USAGE, "tensor %zu of the flat is NULL", i + 1);
  if (pad < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "pad is %" PRId64 "; it is 1 or more", pad);

  mgrid_flat *f = calloc(1, sizeof *f);
  mgrid_tensor **made = calloc(n, sizeof *made);
  if (!f || !(f->member = calloc(n, sizeof *f->member)) || !made) {
    free(f ? f->member : NULL);
    free(f);
    free(made);
    return mgrid_oom(err);
  }

  atomic_init(&f->refs, 1);
  f->pad = pad;
  for (f->n = 0; f->n < n; f->n++) f->member[f->n] = mgrid_tensor_ref(tensors[f->n]);
  mgrid_status s = new_flat(f, ndims, dims, err);

  for (size_t i = 0; i < n && !s; i++)
    if (!(made[i] = mgrid_flat_member(f, i, err))) s = MGRID_NO_MEMORY;
  if (!s) memcpy(out, made, n * sizeof *out);
  for (size_t i = 0; i < n && s; i++) mgrid_tensor_free(made[i]);

  mgrid_flat_free(f);
  free(made);
  return s;
}
