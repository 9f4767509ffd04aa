/* SPDX-License-Identifier: MIT
**
** tensor.c - tensors: which rank holds which pieces.
*/
#include "tensors/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const struct {
  const char *name;
  int64_t width; /* bytes */
} types[] = { { "bf16", 2 },    { "f16", 2 },  { "f32", 4 }, { "f64", 8 }, { "f8_e4m3", 1 },
              { "f8_e5m2", 1 }, { "i8", 1 },   { "i16", 2 }, { "i32", 4 }, { "i64", 8 },
              { "u8", 1 },      { "u16", 2 },  { "u32", 4 }, { "u64", 8 }, { "bool", 1 },
              { "c64", 8 },     { "c128", 16 } };
enum { NTYPES = sizeof types / sizeof types[0] };

static mgrid_status set_type(mgrid_tensor *t, const char *type, mgrid_error *err) {
  const char *known[NTYPES];
  char tail[256];
  for (size_t i = 0; i < NTYPES; i++) {
    known[i] = types[i].name;
    if (strcmp(types[i].name, type) != 0) continue;
    t->type = types[i].name;
    t->width = types[i].width;
    return MGRID_OK;
  }
  mgrid_suggest(tail, sizeof tail, type, known, NTYPES);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown type '%.40s'%s", type, tail);
}

/* --------------------------------------------------------------------- axes */

/* Read axis i of an array. All elements have the size that the first one states, because a host may
** use a version with a larger struct. */
static mgrid_status tensor_read_axis(const mgrid_tensor_axis *axes, size_t i,
                                     mgrid_tensor_axis *out, mgrid_error *err) {
  *out = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
  const void *at = (const char *)axes + i * axes->size;
  return mgrid_struct_read(out, sizeof *out, at, "mgrid_tensor_axis", err);
}

/* Set the dims of an axis. A dim may cut only one axis of a tensor; `cuts` has its name. */
static mgrid_status tensor_set_dims(mgrid_tensor *t, mgrid_slicing *s,
                                    const mgrid_tensor_axis *given, const char **cuts,
                                    mgrid_error *err) {
  s->pieces = 1;
  for (size_t i = 0; i < given->ndims; i++) {
    mgrid_error why = MGRID_ERROR_INIT;
    int64_t d = mgrid_grid_require(t->grid, given->dims[i], &why);
    if (d < 0) {
      mgrid_error_reword(&why, "axis '%s': %s", s->name, why.message);
      return mgrid_error_pass(err, &why);
    }
    if (cuts[d])
      return mgrid_fail(err, MGRID_DUPLICATE,
                        "dim '%s' cuts axis '%s' and axis '%s'; a dim cuts one axis, once",
                        t->grid->axis[d].name, cuts[d], s->name);
    cuts[d] = s->name;
    s->dim[s->ndims] = (uint8_t)d;
    s->size[s->ndims++] = t->count[d];
    s->pieces *= t->count[d];
  }
  return MGRID_OK;
}

static mgrid_status add_axis(mgrid_tensor *t, const mgrid_tensor_axis *given, const char **cuts,
                             mgrid_error *err) {
  mgrid_slicing *s = &t->axis[t->naxes];

  if (!mgrid_is_name(given->name))
    return mgrid_fail(
        err, MGRID_BAD_VALUE,
        "'%s' is not an axis name (a letter or _, then letters, digits or _; at most %d)",
        given->name ? given->name : "", MGRID_NAME_MAX);
  for (size_t i = 0; i < t->naxes; i++)
    if (strcmp(t->axis[i].name, given->name) == 0)
      return mgrid_fail(err, MGRID_DUPLICATE, "axis '%s' occurs twice", given->name);
  if (given->length < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "axis '%s' has length %" PRId64 "; lengths are 1 or more", given->name,
                      given->length);
  if (__builtin_mul_overflow(t->bytes, given->length, &t->bytes))
    return mgrid_fail(err, MGRID_OVERFLOW, "the bytes of the tensor overflow 64 bits at axis '%s'",
                      given->name);
  if (mgrid_lacks_list(given->ndims, given->dims, "dims", err)
      || mgrid_lacks_list(given->nparts, given->parts, "parts", err)
      || mgrid_lacks_list(given->nbounds, given->bounds, "bounds", err)
      || mgrid_lacks_list(given->nowners, given->owners, "owners", err))
    return MGRID_USAGE;
  t->naxes++; /* mgrid_tensor_free frees it from now on */
  memcpy(s->name, given->name, strlen(given->name));
  s->length = given->length;
  mgrid_status status = tensor_set_dims(t, s, given, cuts, err);
  if (!status) status = mgrid_slicing_init(s, t->grid, given, err);
  for (size_t k = 0; k < s->ndims && !status; k++)
    t->share[s->dim[k]] = t->count[s->dim[k]] / s->size[k];
  return status;
}

/* ------------------------------------------------------------------ holders */

static bool is_member(const mgrid_family *f, int64_t rank) {
  int64_t group, position;
  return rank >= 0 && mgrid_family_locate(f, rank, 0, &group, &position);
}

/* List the coordinates of dim d at which `on` has a member whose other coordinates are in `coord`. */
static mgrid_status set_some(mgrid_tensor *t, size_t d, int64_t *coord, mgrid_error *err) {
  int64_t size = t->grid->axis[d].size, kept = coord[d], n = 0;
  int64_t *some = malloc((size_t)size * sizeof *some);
  if (!some) return mgrid_oom(err);
  for (coord[d] = 0; coord[d] < size; coord[d]++)
    if (is_member(t->on, mgrid_grid_rank(t->grid, coord))) some[n++] = coord[d];
  coord[d] = kept;
  t->count[d] = n;
  if (n < size)
    t->some[d] = some;
  else
    free(some);
  return MGRID_OK;
}

/* Return the index of a coordinate among the coordinates of dim d that hold parts; -1 if it holds
** none. */
static int64_t tensor_place_of(const mgrid_tensor *t, size_t d, int64_t coord) {
  if (!t->some[d]) return coord;
  int64_t low = 0, high = t->count[d];
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (t->some[d][middle] <= coord)
      low = middle;
    else
      high = middle;
  }
  return t->some[d][low] == coord ? low : -1;
}

/* Check that the members of `on` are all combinations of some coordinates of each dim. To find these
** coordinates, vary one coordinate of the first member at a time. Then check every member. */
static mgrid_status set_holders(mgrid_tensor *t, mgrid_error *err) {
  int64_t coord[MGRID_DIMS_MAX + 1], holders = 1, seen = 0;

  if (t->on->world != t->grid->window.world)
    return mgrid_fail(err, MGRID_REFUSED,
                      "`on` is of a world of %" PRId64 " ranks, the grid of %" PRId64, t->on->world,
                      t->grid->window.world);
  if (t->on->total == 0) return mgrid_fail(err, MGRID_REFUSED, "`on` has no ranks");
  if (t->on->overlapping)
    return mgrid_fail(err, MGRID_REFUSED, "`on` is a cover: its groups share ranks");
  int64_t first = mgrid_family_rank(t->on, 0, 0);
  for (size_t d = 0; d < t->grid->n; d++) coord[d] = mgrid_grid_coord(t->grid, first, d);
  if (mgrid_grid_position(t->grid, first) < 0)
    return mgrid_fail(err, MGRID_REFUSED, "rank %" PRId64 " of `on` is outside the grid", first);
  for (size_t d = 0; d < t->grid->n; d++) {
    if (set_some(t, d, coord, err)) return MGRID_NO_MEMORY;
    holders *= t->count[d];
  }
  for (int64_t g = 0; g < t->on->count; g++) {
    int64_t size = mgrid_family_size(t->on, g);
    for (int64_t i = 0; i < size; i++) {
      int64_t rank = mgrid_family_rank(t->on, g, i);
      if (mgrid_grid_position(t->grid, rank) < 0)
        return mgrid_fail(err, MGRID_REFUSED, "rank %" PRId64 " of `on` is outside the grid", rank);
      for (size_t d = 0; d < t->grid->n; d++)
        if (tensor_place_of(t, d, mgrid_grid_coord(t->grid, rank, d)) < 0)
          return mgrid_fail(err, MGRID_REFUSED,
                            "`on` is not every combination of coordinates: rank %" PRId64
                            " is in it with %s %" PRId64 ", rank %" PRId64
                            " is in it, but not with that",
                            rank, t->grid->axis[d].name, mgrid_grid_coord(t->grid, rank, d), first);
      seen++;
    }
  }
  if (seen != holders)
    return mgrid_fail(err, MGRID_REFUSED,
                      "`on` is not every combination of coordinates: it has %" PRId64
                      " ranks, its coordinates make %" PRId64,
                      seen, holders);
  return MGRID_OK;
}

/* Copy a list of coordinates of dim d. */
static mgrid_status take_some(mgrid_tensor *t, size_t d, const mgrid_some *some, mgrid_error *err) {
  int64_t size = t->grid->axis[d].size;
  if (some->n == 0) return MGRID_OK;
  for (size_t i = 0; i < some->n; i++)
    if (some->at[i] >= size || (i > 0 && some->at[i] <= some->at[i - 1]))
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "coordinates of dim '%s' are 0 to %" PRId64 ", ascending",
                        t->grid->axis[d].name, size - 1);
  if ((int64_t)some->n == size) return MGRID_OK;
  if (!(t->some[d] = malloc(some->n * sizeof *t->some[d]))) return mgrid_oom(err);
  memcpy(t->some[d], some->at, some->n * sizeof *t->some[d]);
  t->count[d] = (int64_t)some->n;
  return MGRID_OK;
}

/* ------------------------------------------------------------------- making */

/* Make a tensor on the members of a family, or on `some` coordinates of each dim. If both are NULL,
** all ranks of the grid hold it. */
static mgrid_tensor *make_tensor(const mgrid_grid *over, const char *type, size_t naxes,
                                 const mgrid_tensor_axis *axes, const mgrid_family *on,
                                 const mgrid_some *some, mgrid_error *err) {
  const char *cuts[MGRID_DIMS_MAX] = { NULL }; /* the axis that each dim cuts */

  if (naxes < 1 || naxes > MGRID_AXES_MAX)
    return mgrid_null(err, MGRID_OUT_OF_RANGE, "a tensor has 1 to %d axes, not %zu", MGRID_AXES_MAX,
                      naxes);
  mgrid_tensor *t = calloc(1, sizeof *t);
  if (!t) return mgrid_null_oom(err);
  atomic_init(&t->refs, 1);
  t->grid = mgrid_grid_ref(over);
  t->on = mgrid_family_ref(on);
  for (size_t d = 0; d < over->n; d++) t->count[d] = over->axis[d].size;
  mgrid_status s = set_type(t, type, err);
  if (!s && on) s = set_holders(t, err);
  for (size_t d = 0; d < over->n && some && !s; d++) s = take_some(t, d, &some[d], err);
  t->bytes = t->width;
  for (size_t i = 0; i < naxes && !s; i++) {
    mgrid_tensor_axis given;
    s = tensor_read_axis(axes, i, &given, err);
    if (!s) s = add_axis(t, &given, cuts, err);
  }
  t->copies = 1;
  for (size_t d = over->n; d-- > 0 && !s;) {
    if (!cuts[d]) t->share[d] = t->count[d];
    if (!cuts[d] || t->share[d] > 1) t->free_dim[t->nfree++] = (uint8_t)d;
    t->copies *= t->share[d];
  }
  if (!s) return t;
  mgrid_tensor_free(t);
  return NULL;
}

mgrid_tensor *mgrid_tensor_new(const mgrid_grid *over, const char *type, size_t naxes,
                               const mgrid_tensor_axis *axes, const mgrid_family *on,
                               mgrid_error *err) {
  if (!over || mgrid_lacks(type, "the type of the tensor", err)
      || mgrid_lacks_list(naxes, axes, "axes", err))
    return NULL;
  return make_tensor(over, type, naxes, axes, on, NULL, err);
}

mgrid_tensor *mgrid_tensor_at_some(const mgrid_grid *over, const char *type, size_t naxes,
                                   const mgrid_tensor_axis *axes, const mgrid_some *some,
                                   mgrid_error *err) {
  return make_tensor(over, type, naxes, axes, NULL, some, err);
}

mgrid_tensor *mgrid_tensor_ref(const mgrid_tensor *t) {
  mgrid_tensor *owned = (mgrid_tensor *)t; /* only the count changes */
  if (owned) atomic_fetch_add(&owned->refs, 1);
  return owned;
}

void mgrid_tensor_free(mgrid_tensor *t) {
  if (!t || atomic_fetch_sub(&t->refs, 1) != 1) return;
  if (t->flat) {
    mgrid_flat_free(t->flat);
    free(t);
    return;
  }
  for (size_t i = 0; i < t->naxes; i++) mgrid_slicing_free(&t->axis[i]);
  for (size_t d = 0; d < t->grid->n; d++) free(t->some[d]);
  mgrid_grid_free(t->grid);
  mgrid_family_free(t->on);
  free(t);
}

size_t mgrid_tensor_held(const mgrid_tensor *t) {
  /* a flat tensor also counts its share of the flat: the member, which owns what is counted below */
  size_t bytes = t->flat ? sizeof *t + 2 * sizeof(int64_t) : 0;
  for (size_t i = 0; i < t->naxes; i++) bytes += mgrid_slicing_held(&t->axis[i]);
  for (size_t d = 0; d < t->grid->n; d++)
    bytes += t->some[d] ? (size_t)t->grid->axis[d].size * sizeof(int64_t) : 0;
  return sizeof *t + bytes;
}

/* ---------------------------------------------------------------- questions */

size_t mgrid_tensor_naxes(const mgrid_tensor *t) { return t ? t->naxes : 0; }

const char *mgrid_tensor_axis_name(const mgrid_tensor *t, size_t axis) {
  return t && axis < t->naxes ? t->axis[axis].name : NULL;
}

int64_t mgrid_tensor_length(const mgrid_tensor *t, size_t axis) {
  return t && axis < t->naxes ? t->axis[axis].length : -1;
}

const char *mgrid_tensor_type(const mgrid_tensor *t) { return t ? t->type : ""; }

int64_t mgrid_tensor_bytes(const mgrid_tensor *t) { return t ? t->bytes : -1; }

int64_t mgrid_tensor_copies(const mgrid_tensor *t) { return t ? t->copies : -1; }

int64_t mgrid_tensor_holders(const mgrid_tensor *t) {
  int64_t n = t ? t->copies : -1;
  if (t && t->flat) n *= t->flat->slices;
  for (size_t i = 0; t && i < t->naxes; i++) n *= t->axis[i].pieces;
  return n;
}

bool mgrid_tensor_coords(const mgrid_tensor *t, int64_t rank, mgrid_coords *at) {
  int64_t position = mgrid_grid_position(t->grid, rank), place[MGRID_DIMS_MAX];

  if (position < 0) return false;
  for (size_t d = 0; d < t->grid->n; d++) {
    place[d] = tensor_place_of(t, d, position / t->grid->axis[d].stride % t->grid->axis[d].size);
    if (place[d] < 0) return false;
  }
  for (size_t i = 0; i < t->naxes; i++) {
    const mgrid_slicing *s = &t->axis[i];
    at->piece[i] = 0;
    for (size_t k = 0; k < s->ndims; k++)
      at->piece[i] = at->piece[i] * s->size[k] + place[s->dim[k]] / t->share[s->dim[k]];
  }
  at->copy = 0;
  for (size_t i = 0; i < t->nfree; i++) {
    int64_t share = t->share[t->free_dim[i]];
    at->copy = at->copy * share + place[t->free_dim[i]] % share;
  }
  at->slice = 0;
  for (size_t i = 0; t->flat && i < t->flat->ndims; i++)
    at->slice = at->slice * t->count[t->flat->dim[i]] + place[t->flat->dim[i]];
  return true;
}

int64_t mgrid_tensor_rank(const mgrid_tensor *t, const mgrid_coords *at) {
  int64_t coord[MGRID_DIMS_MAX + 1] = { 0 }, copy = at->copy;
  for (size_t i = 0; i < t->naxes; i++) {
    int64_t piece = at->piece[i];
    for (size_t k = t->axis[i].ndims; k-- > 0; piece /= t->axis[i].size[k])
      coord[t->axis[i].dim[k]] = piece % t->axis[i].size[k] * t->share[t->axis[i].dim[k]];
  }
  for (size_t i = t->nfree; i-- > 0; copy /= t->share[t->free_dim[i]])
    coord[t->free_dim[i]] += copy % t->share[t->free_dim[i]];
  if (t->flat)
    for (int64_t i = (int64_t)t->flat->ndims, slice = at->slice; i-- > 0;
         slice /= t->count[t->flat->dim[i]])
      coord[t->flat->dim[i]] = slice % t->count[t->flat->dim[i]];
  for (size_t d = 0; d < t->grid->n; d++)
    if (t->some[d]) coord[d] = t->some[d][coord[d]];
  return mgrid_grid_rank(t->grid, coord);
}

int64_t mgrid_tensor_elements(const mgrid_tensor *t, const mgrid_coords *at) {
  int64_t n = 1;
  if (t->flat) return mgrid_tensor_range(t, at).length;
  for (size_t i = 0; i < t->naxes; i++) n *= mgrid_piece_size(&t->axis[i], at->piece[i]);
  return n;
}

int64_t mgrid_tensor_largest(const mgrid_tensor *t) {
  int64_t bytes = t->width;
  if (t->flat) return bytes * mgrid_flat_largest(t);
  for (size_t i = 0; i < t->naxes; i++) {
    int64_t most = 0; /* no piece is larger than piece 0, unless pieces are listed */
    int64_t look = mgrid_slicing_listed(&t->axis[i]) ? t->axis[i].pieces : 1;
    for (int64_t k = 0; k < look; k++) {
      int64_t n = mgrid_piece_size(&t->axis[i], k);
      if (n > most) most = n;
    }
    bytes *= most;
  }
  return bytes;
}

void mgrid_tensor_part_of(const mgrid_tensor *t, int64_t rank, mgrid_tensor_part *out) {
  mgrid_coords at;
  *out = (mgrid_tensor_part)MGRID_TENSOR_PART_INIT;
  out->naxes = t->naxes;
  if (!mgrid_tensor_coords(t, rank, &at)) return;
  out->held = true;
  out->elements = 1;
  for (size_t i = 0; i < t->naxes; i++) {
    out->shape[i] = mgrid_piece_size(&t->axis[i], at.piece[i]);
    out->elements *= out->shape[i];
  }
  out->copy = at.copy;
  if (t->flat) {
    mgrid_run range = mgrid_tensor_range(t, &at);
    int64_t start = mgrid_flat_start(t, &at, &out->slice);
    out->elements = range.length;
    out->first = range.start;
    out->offset = range.length ? start + range.start - at.slice * out->slice : 0;
  }
  out->bytes = out->elements * t->width;
}

/* --------------------------------------------------------------------- text */

void mgrid_tensor_text(const mgrid_tensor *t, mgrid_text *text) {
  mgrid_text_str(text, t->type);
  for (size_t i = 0; i < t->naxes; i++) {
    mgrid_text_str(text, i ? ", " : " ");
    mgrid_slicing_text(&t->axis[i], t->grid, text);
  }
  mgrid_text_str(text, " over ");
  mgrid_grid_text(t->grid, text);
  for (size_t d = 0, n = 0; d < t->grid->n; d++) {
    if (!t->some[d]) continue;
    mgrid_text_str(text, n++ ? ", " : " on ");
    mgrid_text_str(text, t->grid->axis[d].name);
    for (int64_t i = 0; i < t->count[d]; i++) {
      mgrid_text_str(text, i ? "," : " ");
      mgrid_text_int(text, t->some[d][i]);
    }
  }
  if (t->flat) mgrid_flat_text(t, text);
}

size_t mgrid_tensor_describe(const mgrid_tensor *t, char *buf, size_t len) {
  mgrid_text text = { 0 };
  if (t) mgrid_tensor_text(t, &text);
  return mgrid_text_finish(&text, buf, len);
}
