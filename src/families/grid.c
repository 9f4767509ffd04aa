/* SPDX-License-Identifier: MIT
**
** grid.c - ordered dims over a window of the world, or over ranks in another order.
*/
#include "families/grid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Make a grid of dims that are checked; it becomes another owner of `order`. */
static mgrid_grid *make(mgrid_window w, const mgrid_family *order, int64_t size, size_t n, const mgrid_dim *dims,
                        int64_t fill, mgrid_error *err) {
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
  int64_t     fill = mgrid_dims_fill(&whole, n, dims, err);
  return fill ? make(w, NULL, w.size, n, dims, fill, err) : NULL;
}

mgrid_grid *mgrid_grid_over(const mgrid_family *ranks, size_t n, const mgrid_dim *dims, mgrid_error *err) {
  if (!ranks || mgrid_dims_check(n, dims, err)) return NULL;
  mgrid_family *order = mgrid_order_of(ranks, err);
  if (!order) return NULL;
  bool         plain;
  mgrid_window w = mgrid_order_window(order, &plain);
  mgrid_whole  whole = { order->size, NULL, "order" };
  int64_t      fill = mgrid_dims_fill(&whole, n, dims, err);
  mgrid_grid  *g = fill ? make(w, plain ? NULL : order, order->size, n, dims, fill, err) : NULL;
  mgrid_family_free(order);
  return g;
}

mgrid_grid *mgrid_grid_like(const mgrid_grid *g, size_t n, const mgrid_dim *dims, mgrid_error *err) {
  return mgrid_dims_check(n, dims, err) ? NULL : make(g->window, g->order, g->size, n, dims, 1, err);
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

mgrid_window mgrid_grid_window(const mgrid_grid *g) { return g ? g->window : (mgrid_window){ -1, -1, -1 }; }

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
  char        tail[512];
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
  if (!a || !b || a->n != b->n || a->size != b->size || a->window.offset != b->window.offset) return false;
  if (!a->order != !b->order || (a->order && !mgrid_family_same_rule(a->order, b->order))) return false;
  for (size_t i = 0; i < a->n; i++)
    if (a->axis[i].size != b->axis[i].size || strcmp(a->axis[i].name, b->axis[i].name) != 0) return false;
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
