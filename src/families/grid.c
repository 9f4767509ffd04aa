/* SPDX-License-Identifier: MIT
**
** grid.c - grids: ordered dims over a window of the world, or over ranks in another order. Dims are
** modes of positions. An order turns them into modes of ranks where it can. Names and sizes of dims
** are checked here for every grid.
*/
#include "families/grid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* =========================================================== names and sizes */

mgrid_status mgrid_dims_check(size_t n, const mgrid_dim *dims, mgrid_error *err) {
  if (n > MGRID_DIMS_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a grid has at most %d dims, not %zu",
                      MGRID_DIMS_MAX, n);
  if (mgrid_lacks_list(n, dims, "dims", err)) return MGRID_USAGE;

  const char *fill = NULL;
  for (size_t i = 0; i < n; i++) {
    const char *name = dims[i].name;
    if (!mgrid_is_name(name))
      return mgrid_fail(
          err, MGRID_BAD_VALUE,
          "'%s' is not a dim name (a letter or _, then letters, digits or _; at most %d)",
          name ? name : "", MGRID_NAME_MAX);
    for (size_t j = 0; j < i; j++)
      if (strcmp(dims[j].name, name) == 0)
        return mgrid_fail(err, MGRID_DUPLICATE, "dim '%s' occurs twice in the grid", name);
    if (dims[i].size == MGRID_FILL) {
      if (fill)
        return mgrid_fail(err, MGRID_DUPLICATE,
                          "dims '%s' and '%s' are both to be inferred; only one can be", fill,
                          name);
      fill = name;
    } else if (dims[i].size < 1 || dims[i].size > MGRID_WORLD_MAX) {
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "dim '%s' has size %" PRId64 "; sizes are 1 to %" PRId64, name,
                        dims[i].size, MGRID_WORLD_MAX);
    }
  }
  return MGRID_OK;
}

/* Append "tp 3 x pp 2 = 6". A size of 1 is left out, unless all are 1. */
static void product_text(mgrid_text *t, size_t n, const mgrid_dim *dims, int64_t product) {
  size_t shown = 0;
  for (size_t i = 0; i < n; i++)
    if (dims[i].size != MGRID_FILL && (dims[i].size != 1 || product == 1))
      mgrid_text_add(t, "%s%s %" PRId64, shown++ ? " x " : "", dims[i].name, dims[i].size);
  if (shown == 0) mgrid_text_add(t, "1");
  if (shown > 1) mgrid_text_add(t, " = %" PRId64, product);
}

/* Append the sizes that would fit: "; nearest: tp 2 or 4" for a dim, ", or a world of 6 or 9 ranks"
** for a world, window or order. A size of 0 is left out. `said`: the message has such a text
** already. Return whether a size was appended. */
static bool grid_nearest_text(mgrid_text *t, int said, const char *dim, const char *place,
                              int64_t below, int64_t above) {
  if (!below && !above) return false;
  mgrid_text_add(t, said ? ", or " : "; nearest: ");
  if (dim)
    mgrid_text_add(t, "%s ", dim);
  else
    mgrid_text_add(t, "%s %s of ", *place == 'o' ? "an" : "a", place);
  if (below) mgrid_text_add(t, "%" PRId64, below);
  if (below && above) mgrid_text_add(t, " or ");
  if (above) mgrid_text_add(t, "%" PRId64, above);
  if (!dim) mgrid_text_add(t, " ranks");
  return true;
}

/* Refuse the sizes. The message names the first dim that could be resized to fit, and numbers of
** ranks that would fit. */
static mgrid_status refuse_product(const mgrid_whole *whole, size_t n, const mgrid_dim *dims,
                                   int64_t product, bool fill, mgrid_error *err) {
  mgrid_text t = { 0 };

  product_text(&t, n, dims, product);
  mgrid_text_add(&t, fill ? " does not divide " : " does not make ");
  if (whole->dim)
    mgrid_text_add(&t, "%s %" PRId64, whole->dim, whole->size);
  else
    mgrid_text_add(&t, "the %" PRId64 " rank%s", whole->size, mgrid_s_of(whole->size));
  if (!whole->dim && strcmp(whole->place, "world") != 0)
    mgrid_text_add(&t, " of the %s", whole->place);
  int near = 0;
  for (size_t i = 0; i < n && !near; i++) {
    if (dims[i].size == MGRID_FILL || (fill && dims[i].size == 1)) continue;
    int64_t others = product / dims[i].size, below = 0, above = 0;
    if (whole->size % others != 0) continue;
    if (fill)
      mgrid_nearest_divisors(whole->size / others, dims[i].size, &below, &above);
    else
      below = whole->size / others;
    near += grid_nearest_text(&t, near, dims[i].name, NULL, below, above);
  }
  int64_t down = fill ? whole->size / product * product : product;
  int64_t up = fill && product <= MGRID_WORLD_MAX - down ? down + product : 0;
  grid_nearest_text(&t, near, whole->dim, whole->place, down <= MGRID_WORLD_MAX ? down : 0, up);
  mgrid_status s = t.failed ? mgrid_oom(err) : mgrid_fail(err, MGRID_REFUSED, "%s", t.data);
  mgrid_text_free(&t);
  return s;
}

int64_t mgrid_dims_fill(const mgrid_whole *whole, size_t n, const mgrid_dim *dims,
                        mgrid_error *err) {
  int64_t product = 1;
  bool fill = false;
  for (size_t i = 0; i < n; i++) {
    if (dims[i].size == MGRID_FILL) {
      fill = true;
    } else if (__builtin_mul_overflow(product, dims[i].size, &product)) {
      mgrid_fail(err, MGRID_OVERFLOW, "the product of the sizes overflows 64 bits at dim '%s'",
                 dims[i].name);
      return 0;
    }
  }
  if (fill ? whole->size % product == 0 : product == whole->size) return whole->size / product;
  refuse_product(whole, n, dims, product, fill, err);
  return 0;
}

/* =========================================================== orders of ranks */

/* Check that each rank is in the window and occurs once. */
static mgrid_status grid_check_list(mgrid_window w, int64_t n, const int32_t *ranks,
                                    mgrid_error *err) {
  if (n < 1)
    return mgrid_fail(err, MGRID_REFUSED, "the order has no ranks; it needs 1 to %" PRId64, w.size);

  for (int64_t i = 0; i < n; i++)
    if (ranks[i] < w.offset || ranks[i] >= w.offset + w.size)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "rank %" PRId32 " at position %" PRId64
                        " of the order is out of range; ranks are %" PRId64 " to %" PRId64,
                        ranks[i], i, w.offset, w.offset + w.size - 1);

  uint64_t *key = malloc((size_t)n * sizeof *key); /* rank << 32 | position */
  if (!key) return mgrid_oom(err);
  for (int64_t i = 0; i < n; i++) key[i] = (uint64_t)ranks[i] << 32 | (uint64_t)i;
  qsort(key, (size_t)n, sizeof *key, mgrid_key_order);
  mgrid_status s = MGRID_OK;
  for (int64_t i = 1; i < n && !s; i++)
    if (key[i] >> 32 == key[i - 1] >> 32)
      s = mgrid_fail(err, MGRID_DUPLICATE,
                     "rank %" PRIu64 " is at positions %" PRIu64 " and %" PRIu64
                     " of the order; each is there once",
                     key[i] >> 32, key[i - 1] & UINT32_MAX, key[i] & UINT32_MAX);

  free(key);
  return s;
}

mgrid_family *mgrid_order_list(mgrid_window w, int64_t n, int32_t *ranks, mgrid_error *err) {
  int64_t *starts = ranks ? malloc(2 * sizeof *starts) : NULL;
  if (starts && grid_check_list(w, n, ranks, err)) {
    free(starts);
    free(ranks);
    return NULL;
  }
  if (starts) starts[0] = 0, starts[1] = n;
  return mgrid_table_adopt(w, 1, starts, ranks, MGRID_PARTIAL, true, err);
}

mgrid_family *mgrid_order_of(const mgrid_family *f, mgrid_error *err) {
  if (f->count != 1)
    return mgrid_null(err, MGRID_REFUSED,
                      "a grid needs a family of one group; this one has %" PRId64 "", f->count);
  if (f->rule) return mgrid_family_origin(f);
  int32_t *ranks = malloc((size_t)f->total * sizeof *ranks);
  if (ranks) mgrid_family_group(f, 0, ranks);
  return mgrid_order_list(mgrid_world(f->world), f->total, ranks, err);
}

mgrid_window mgrid_order_window(const mgrid_family *order, bool *plain) {
  const mgrid_modes *inside = order->rule ? &order->rule->inside : NULL;
  *plain = inside && (inside->n == 0 || (inside->n == 1 && inside->at[0].stride == 1));
  return (mgrid_window){ order->world, order->low, order->high - order->low + 1 };
}

bool mgrid_order_modes(const mgrid_family *order, const mgrid_modes *positions,
                       mgrid_modes *ranks) {
  MGRID_MODES(before);
  MGRID_MODES(every);
  MGRID_MODES(these);
  MGRID_MODES(behind);
  ranks->n = 0;
  if (!order->rule) return false;
  for (int i = 0; i < positions->n; i++) {
    mgrid_mode m = positions->at[i];
    if (!mgrid_modes_cut(&order->rule->inside, m.stride, &before, &every, NULL)
        || !mgrid_modes_cut(&every, m.size, &these, &behind, NULL))
      return false;
    mgrid_modes_append(ranks, &these);
  }
  return true;
}

void mgrid_order_text(const mgrid_family *order, mgrid_text *t) {
  if (order->rule) {
    mgrid_modes_text(&order->rule->inside, t);
    if (order->low == 0) return;
    mgrid_text_str(t, " + ");
    mgrid_text_int(t, order->low);
    return;
  }
  for (int64_t i = 0; i < order->total; i++) {
    if (i) mgrid_text_str(t, ",");
    mgrid_text_int(t, mgrid_family_rank(order, 0, i));
  }
}

/* ===================================================================== grids */

/* Make a grid of dims that have been checked. The grid becomes another owner of `order`. */
static mgrid_grid *grid_make(mgrid_window w, const mgrid_family *order, int64_t size, size_t n,
                             const mgrid_dim *dims, int64_t fill, mgrid_error *err) {
  mgrid_grid *g = malloc(sizeof *g + n * sizeof g->axis[0]);
  if (!g) return mgrid_null_oom(err);
  atomic_init(&g->refs, 1);
  g->window = w;
  g->order = mgrid_family_ref(order);
  g->size = size;
  g->n = n;
  int64_t stride = 1;
  for (size_t i = 0; i < n; i++) {
    mgrid_axis *a = &g->axis[i];
    memset(a->name, 0, sizeof a->name);
    memcpy(a->name, dims[i].name, strlen(dims[i].name));
    a->size = dims[i].size == MGRID_FILL ? fill : dims[i].size;
    a->stride = stride;
    stride *= a->size;
  }
  return g;
}

mgrid_grid *mgrid_grid_new(mgrid_window w, size_t n, const mgrid_dim *dims, mgrid_error *err) {
  if (mgrid_window_check(w, err) || mgrid_dims_check(n, dims, err)) return NULL;
  mgrid_whole whole = { w.size, NULL, w.size == w.world ? "world" : "window" };
  int64_t fill = mgrid_dims_fill(&whole, n, dims, err);
  return fill ? grid_make(w, NULL, w.size, n, dims, fill, err) : NULL;
}

mgrid_grid *mgrid_grid_over(const mgrid_family *ranks, size_t n, const mgrid_dim *dims,
                            mgrid_error *err) {
  if (!ranks || mgrid_dims_check(n, dims, err)) return NULL;
  mgrid_family *order = mgrid_order_of(ranks, err);
  if (!order) return NULL;
  bool plain;
  mgrid_window w = mgrid_order_window(order, &plain);
  mgrid_whole whole = { order->size, NULL, "order" };
  int64_t fill = mgrid_dims_fill(&whole, n, dims, err);
  mgrid_grid *g = fill ? grid_make(w, plain ? NULL : order, order->size, n, dims, fill, err) : NULL;
  mgrid_family_free(order);
  return g;
}

mgrid_grid *mgrid_grid_like(const mgrid_grid *g, size_t n, const mgrid_dim *dims,
                            mgrid_error *err) {
  return mgrid_dims_check(n, dims, err) ? NULL
                                        : grid_make(g->window, g->order, g->size, n, dims, 1, err);
}

mgrid_grid *mgrid_grid_ref(const mgrid_grid *g) {
  mgrid_grid *owned = (mgrid_grid *)g; /* only the count changes */
  if (owned) atomic_fetch_add(&owned->refs, 1);
  return owned;
}

void mgrid_grid_free(mgrid_grid *g) {
  if (!g || atomic_fetch_sub(&g->refs, 1) != 1) return;
  mgrid_family_free(g->order);
  free(g);
}

/* --------------------------------------------------------------- questions */

size_t mgrid_grid_ndims(const mgrid_grid *g) { return g ? g->n : 0; }

mgrid_dim mgrid_grid_dim(const mgrid_grid *g, size_t i) {
  return g && i < g->n ? (mgrid_dim){ g->axis[i].name, g->axis[i].size } : (mgrid_dim){ NULL, -1 };
}

mgrid_window mgrid_grid_window(const mgrid_grid *g) {
  return g ? g->window : (mgrid_window){ -1, -1, -1 };
}

int64_t mgrid_grid_size(const mgrid_grid *g) { return g ? g->size : -1; }

int64_t mgrid_grid_find(const mgrid_grid *g, const char *dim) {
  for (size_t i = 0; g && dim && i < g->n; i++)
    if (strcmp(g->axis[i].name, dim) == 0) return (int64_t)i;
  return -1;
}

int64_t mgrid_grid_require(const mgrid_grid *g, const char *dim, mgrid_error *err) {
  int64_t d = mgrid_grid_find(g, dim);
  if (d >= 0 || mgrid_lacks(dim, "the name of a dim", err)) return d;
  const char *known[MGRID_DIMS_MAX];
  char tail[512];
  for (size_t k = 0; k < g->n; k++) known[k] = g->axis[k].name;
  mgrid_suggest(tail, sizeof tail, dim, known, g->n);
  mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown dim '%s'%s", dim, tail);
  return -1;
}

int64_t mgrid_grid_position(const mgrid_grid *g, int64_t rank) {
  int64_t group, position;
  if (!g || rank < g->window.offset || rank - g->window.offset >= g->window.size) return -1;
  if (!g->order) return rank - g->window.offset;
  return mgrid_family_locate(g->order, rank, 0, &group, &position) ? position : -1;
}

int64_t mgrid_grid_coord(const mgrid_grid *g, int64_t rank, size_t i) {
  int64_t position = mgrid_grid_position(g, rank);
  return position < 0 || i >= g->n ? -1 : position / g->axis[i].stride % g->axis[i].size;
}

int64_t mgrid_grid_rank(const mgrid_grid *g, const int64_t *coords) {
  if (!g || (g->n > 0 && !coords)) return -1;
  int64_t position = 0;
  for (size_t i = 0; i < g->n; i++) {
    if (coords[i] < 0 || coords[i] >= g->axis[i].size) return -1;
    position += coords[i] * g->axis[i].stride;
  }
  return g->order ? mgrid_family_rank(g->order, 0, position) : g->window.offset + position;
}

bool mgrid_grid_equal(const mgrid_grid *a, const mgrid_grid *b) {
  if (a == b) return true;
  if (!a || !b || a->n != b->n || a->size != b->size || a->window.offset != b->window.offset)
    return false;
  if (!a->order != !b->order || (a->order && !mgrid_family_same_rule(a->order, b->order)))
    return false;
  for (size_t i = 0; i < a->n; i++)
    if (a->axis[i].size != b->axis[i].size || strcmp(a->axis[i].name, b->axis[i].name) != 0)
      return false;
  return true;
}

void mgrid_grid_text(const mgrid_grid *g, mgrid_text *t) {
  for (size_t i = 0; i < g->n; i++) {
    mgrid_text_str(t, i ? " x " : "");
    mgrid_text_str(t, g->axis[i].name);
    mgrid_text_str(t, " ");
    mgrid_text_int(t, g->axis[i].size);
  }
  mgrid_text_str(t, g->n == 0 ? "1 over ranks " : " over ranks ");
  if (g->order) {
    mgrid_order_text(g->order, t);
    return;
  }
  mgrid_text_int(t, g->window.offset);
  mgrid_text_str(t, "..");
  mgrid_text_int(t, g->window.offset + g->window.size - 1);
}

void mgrid_grid_json(const mgrid_grid *g, mgrid_text *t) {
  mgrid_text_str(t, "\"dims\":[");
  for (size_t i = 0; i < g->n; i++) {
    mgrid_text_str(t, i ? ",[\"" : "[\"");
    mgrid_text_str(t, g->axis[i].name);
    mgrid_text_str(t, "\",");
    mgrid_text_int(t, g->axis[i].size);
    mgrid_text_str(t, "]");
  }
  mgrid_text_str(t, g->order ? "],\"order\":" : "],\"offset\":");
  if (g->order) {
    mgrid_family_json(g->order, t);
    return;
  }
  mgrid_text_int(t, g->window.offset);
  mgrid_text_str(t, ",\"size\":");
  mgrid_text_int(t, g->window.size);
}

size_t mgrid_grid_describe(const mgrid_grid *g, char *buf, size_t len) {
  mgrid_text t = { 0 };
  if (g) mgrid_grid_text(g, &t);
  return mgrid_text_finish(&t, buf, len);
}
