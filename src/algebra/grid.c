/* SPDX-License-Identifier: MIT
**
** grid.c - ordered dims over a window of the world; families along dims.
*/
#include "algebra/grid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mgrid_window mgrid_world(int64_t size) { return (mgrid_window){ size, 0, size }; }

static mgrid_status check_window(mgrid_window w, mgrid_error *err) {
  if (w.world < 1 || w.world > MGRID_WORLD_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a world has 1 to %" PRId64 " ranks, not %" PRId64, MGRID_WORLD_MAX,
                      w.world);
  if (w.offset < 0 || w.offset >= w.world)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "window offset %" PRId64 " is outside the world (0 to %" PRId64 ")",
                      w.offset, w.world - 1);
  if (w.size < 1 || w.size > w.world - w.offset)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "a window from rank %" PRId64 " of %" PRId64 " has 1 to %" PRId64 " ranks, not %" PRId64,
                      w.offset, w.world, w.world - w.offset, w.size);
  return MGRID_OK;
}

/* "tp 3 x pp 2 = 6"; sizes of 1 are left out where there are others. */
static void product_text(mgrid_text *t, size_t n, const mgrid_dim *dims, int64_t product) {
  size_t shown = 0;
  for (size_t i = 0; i < n; i++)
    if (dims[i].size != MGRID_FILL && (dims[i].size != 1 || product == 1))
      mgrid_text_add(t, "%s%s %" PRId64, shown++ ? " x " : "", dims[i].name, dims[i].size);
  if (shown == 0) mgrid_text_add(t, "1");
  if (shown > 1) mgrid_text_add(t, " = %" PRId64, product);
}

/* Append the sizes that would fit (0: there is none): "; nearest: tp 2 or 4" for a dim, ", or a world of 6 or
** 9 ranks" for a place. `said`: not the first such text of the message. True if there was a size to add. */
static bool nearest_text(mgrid_text *t, int said, const char *dim, const char *place, int64_t below, int64_t above) {
  if (!below && !above) return false;
  mgrid_text_add(t, said ? ", or " : "; nearest: ");
  mgrid_text_add(t, "%s ", dim ? dim : place);
  if (below) mgrid_text_add(t, "%" PRId64, below);
  if (below && above) mgrid_text_add(t, " or ");
  if (above) mgrid_text_add(t, "%" PRId64, above);
  if (!dim) mgrid_text_add(t, " ranks");
  return true;
}

/* Refuse. The message names the first dim that could be resized to make the grid fit, and worlds that fit. */
static mgrid_status refuse_product(mgrid_window w, size_t n, const mgrid_dim *dims, int64_t product, bool fill,
                                   mgrid_error *err) {
  mgrid_text t = { 0 };
  product_text(&t, n, dims, product);
  mgrid_text_add(&t, fill ? " does not divide the %" PRId64 " ranks" : " does not make the %" PRId64 " ranks", w.size);
  if (w.size != w.world) mgrid_text_add(&t, " of the window");
  int near = 0;
  for (size_t i = 0; i < n && !near; i++) {
    if (dims[i].size == MGRID_FILL || (fill && dims[i].size == 1)) continue;
    int64_t others = product / dims[i].size, below = 0, above = 0;
    if (w.size % others != 0) continue;
    if (fill)
      mgrid_nearest_divisors(w.size / others, dims[i].size, &below, &above);
    else
      below = w.size / others;
    near += nearest_text(&t, near, dims[i].name, NULL, below, above);
  }
  int64_t down = fill ? w.size / product * product : product;
  int64_t up = fill && product <= MGRID_WORLD_MAX - down ? down + product : 0;
  nearest_text(&t, near, NULL, w.size == w.world ? "a world of" : "a window of", down <= MGRID_WORLD_MAX ? down : 0,
               up);
  mgrid_status s = t.failed ? mgrid_oom(err) : mgrid_fail(err, MGRID_REFUSED, "%s", t.data);
  mgrid_text_free(&t);
  return s;
}

static mgrid_status check_dims(size_t n, const mgrid_dim *dims, mgrid_error *err) {
  if (n > MGRID_DIMS_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a grid has at most %d dims, not %zu", MGRID_DIMS_MAX, n);
  const char *fill = NULL;
  for (size_t i = 0; i < n; i++) {
    const char *name = dims[i].name;
    if (!mgrid_is_name(name))
      return mgrid_fail(err, MGRID_BAD_VALUE,
                        "'%s' is no name of a dim (a letter or _, then letters, digits or _; at most %d)",
                        name ? name : "", MGRID_NAME_MAX);
    for (size_t j = 0; j < i; j++)
      if (strcmp(dims[j].name, name) == 0)
        return mgrid_fail(err, MGRID_DUPLICATE, "dim '%s' occurs twice in the grid", name);
    if (dims[i].size == MGRID_FILL) {
      if (fill)
        return mgrid_fail(err, MGRID_DUPLICATE, "dims '%s' and '%s' are both to be inferred; only one can be", fill,
                          name);
      fill = name;
    } else if (dims[i].size < 1 || dims[i].size > MGRID_WORLD_MAX) {
      return mgrid_fail(err, MGRID_OUT_OF_RANGE, "dim '%s' has size %" PRId64 "; sizes are 1 to %" PRId64, name,
                        dims[i].size, MGRID_WORLD_MAX);
    }
  }
  return MGRID_OK;
}

mgrid_grid *mgrid_grid_new(mgrid_window w, size_t n, const mgrid_dim *dims, mgrid_error *err) {
  if (check_window(w, err) || check_dims(n, dims, err)) return NULL;
  int64_t product = 1;
  bool    fill = false;
  for (size_t i = 0; i < n; i++) {
    if (dims[i].size == MGRID_FILL)
      fill = true;
    else if (__builtin_mul_overflow(product, dims[i].size, &product))
      return mgrid_null(err, MGRID_OVERFLOW, "the product of the sizes overflows 64 bits at dim '%s'", dims[i].name);
  }
  if (fill ? w.size % product != 0 : product != w.size) {
    refuse_product(w, n, dims, product, fill, err);
    return NULL;
  }
  mgrid_grid *g = malloc(sizeof *g + n * sizeof g->axis[0]);
  if (!g) return mgrid_null_oom(err);
  atomic_init(&g->refs, 1);
  g->window = w;
  g->n = n;
  int64_t stride = 1;
  for (size_t i = 0; i < n; i++) {
    mgrid_axis *a = &g->axis[i];
    memset(a->name, 0, sizeof a->name);
    memcpy(a->name, dims[i].name, strlen(dims[i].name));
    a->size = dims[i].size == MGRID_FILL ? w.size / product : dims[i].size;
    a->stride = stride;
    stride *= a->size;
  }
  return g;
}

mgrid_grid *mgrid_grid_ref(const mgrid_grid *g) {
  mgrid_grid *owned = (mgrid_grid *)g; /* only the count changes */
  if (owned) atomic_fetch_add(&owned->refs, 1);
  return owned;
}

void mgrid_grid_free(mgrid_grid *g) {
  if (g && atomic_fetch_sub(&g->refs, 1) == 1) free(g);
}

size_t mgrid_grid_ndims(const mgrid_grid *g) { return g ? g->n : 0; }

mgrid_dim mgrid_grid_dim(const mgrid_grid *g, size_t i) {
  return g && i < g->n ? (mgrid_dim){ g->axis[i].name, g->axis[i].size } : (mgrid_dim){ NULL, -1 };
}

mgrid_window mgrid_grid_window(const mgrid_grid *g) { return g ? g->window : (mgrid_window){ -1, -1, -1 }; }

int64_t mgrid_grid_find(const mgrid_grid *g, const char *dim) {
  for (size_t i = 0; g && i < g->n; i++)
    if (strcmp(g->axis[i].name, dim) == 0) return (int64_t)i;
  return -1;
}

int64_t mgrid_grid_coord(const mgrid_grid *g, int64_t rank, size_t i) {
  if (!g || rank < g->window.offset || rank - g->window.offset >= g->window.size || i >= g->n) return -1;
  return (rank - g->window.offset) / g->axis[i].stride % g->axis[i].size;
}

int64_t mgrid_grid_rank(const mgrid_grid *g, const int64_t *coords) {
  if (!g) return -1;
  int64_t rank = g->window.offset;
  for (size_t i = 0; i < g->n; i++) {
    if (coords[i] < 0 || coords[i] >= g->axis[i].size) return -1;
    rank += coords[i] * g->axis[i].stride;
  }
  return rank;
}

size_t mgrid_grid_describe(const mgrid_grid *g, char *buf, size_t len) {
  mgrid_text t = { 0 };
  if (!g) return mgrid_text_finish(&t, buf, len);
  for (size_t i = 0; i < g->n; i++) {
    mgrid_text_str(&t, i ? " x " : "");
    mgrid_text_str(&t, g->axis[i].name);
    mgrid_text_str(&t, " ");
    mgrid_text_int(&t, g->axis[i].size);
  }
  mgrid_text_str(&t, g->n == 0 ? "1 over ranks " : " over ranks ");
  mgrid_text_int(&t, g->window.offset);
  mgrid_text_str(&t, "..");
  mgrid_text_int(&t, g->window.offset + g->window.size - 1);
  return mgrid_text_finish(&t, buf, len);
}

/* ---------------------------------------------------------------- families */

/* Mark the named dims in marks[dim] with `mark`, and list their indices in the order of the names. */
static mgrid_status resolve(const mgrid_grid *g, size_t n, const char *const *names, char mark, char *marks,
                            size_t *list, mgrid_error *err) {
  for (size_t i = 0; i < n; i++) {
    int d = (int)mgrid_grid_find(g, names[i]);
    if (d < 0) {
      const char *known[MGRID_DIMS_MAX];
      char        tail[512];
      for (size_t k = 0; k < g->n; k++) known[k] = g->axis[k].name;
      mgrid_suggest(tail, sizeof tail, names[i], known, g->n);
      return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown dim '%s'%s", names[i], tail);
    }
    if (marks[d]) return mgrid_fail(err, MGRID_DUPLICATE, "dim '%s' is named twice", names[i]);
    marks[d] = mark;
    list[i] = (size_t)d;
  }
  return MGRID_OK;
}

static mgrid_family *along(const mgrid_grid *g, size_t n, const size_t *inside, size_t m, const size_t *index,
                           mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(ix);
  for (size_t i = 0; i < n; i++) mgrid_modes_push(&in, g->axis[inside[i]].size, g->axis[inside[i]].stride);
  for (size_t i = 0; i < m; i++) mgrid_modes_push(&ix, g->axis[index[i]].size, g->axis[index[i]].stride);
  return mgrid_strided_new(g->window.world, g->window.offset, &in, &ix, err);
}

mgrid_family *mgrid_grid_along(const mgrid_grid *g, size_t n, const char *const *dims, mgrid_order order,
                               mgrid_error *err) {
  if (!g) return NULL;
  char   marks[MGRID_DIMS_MAX] = { 0 };
  size_t named[MGRID_DIMS_MAX], inside[MGRID_DIMS_MAX], index[MGRID_DIMS_MAX], nin = 0, nix = 0;
  if (n > g->n) return mgrid_null(err, MGRID_REFUSED, "%zu dims asked of a grid that has %zu", n, g->n);
  if (resolve(g, n, dims, 'i', marks, named, err)) return NULL;
  for (size_t d = 0; d < g->n; d++) {
    if (marks[d])
      inside[nin++] = d;
    else
      index[nix++] = d;
  }
  return along(g, n, order == MGRID_AS_WRITTEN ? named : inside, nix, index, err);
}

mgrid_family *mgrid_grid_along_by(const mgrid_grid *g, size_t n, const char *const *dims, size_t nindex,
                                  const char *const *index, mgrid_error *err) {
  if (!g) return NULL;
  char   marks[MGRID_DIMS_MAX] = { 0 };
  size_t in[MGRID_DIMS_MAX], ix[MGRID_DIMS_MAX];
  if (n + nindex > g->n)
    return mgrid_null(err, MGRID_REFUSED, "%zu dims asked of a grid that has %zu", n + nindex, g->n);
  if (resolve(g, n, dims, 'i', marks, in, err) || resolve(g, nindex, index, 'x', marks, ix, err)) return NULL;
  for (size_t d = 0; d < g->n; d++)
    if (!marks[d] && g->axis[d].size > 1)
      return mgrid_null(err, MGRID_REFUSED, "dim '%s' of size %" PRId64 " is neither inside nor in the index",
                        g->axis[d].name, g->axis[d].size);
  return along(g, n, in, nindex, ix, err);
}
