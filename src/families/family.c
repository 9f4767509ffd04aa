/* SPDX-License-Identifier: MIT
**
** family.c - makes and frees families, and answers questions: rank -> (group, position) and back.
** The answers come from the family's form, which this file calls only through its table. An answer
** costs O(modes), or O(log members) for lists.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- life */

mgrid_family *mgrid_family_alloc(const mgrid_form *form, int64_t world, size_t own,
                                 mgrid_error *err) {
  mgrid_family *f = calloc(1, sizeof *f + own);
  if (!f) return mgrid_null_oom(err);
  atomic_init(&f->refs, 1);
  f->form = form;
  f->own = f + 1;
  f->world = world;
  f->nodes = 1;
  f->bytes = sizeof *f + own;
  return f;
}

mgrid_status mgrid_family_put_above(mgrid_family *f, const mgrid_family *below, mgrid_error *err) {
  if (below->depth >= f->depth) f->depth = below->depth + 1;
  f->nodes += below->nodes;
  f->bytes += below->bytes;
  if (f->depth > MGRID_DEPTH_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "families are nested more than %d deep",
                      MGRID_DEPTH_MAX);
  if (f->nodes > MGRID_PARTS_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "a family has at most %d parts, counting nested ones", MGRID_PARTS_MAX);
  return MGRID_OK;
}

mgrid_family *mgrid_family_ref(const mgrid_family *f) {
  mgrid_family *owned = (mgrid_family *)f; /* only the count changes */
  if (owned) atomic_fetch_add(&owned->refs, 1);
  return owned;
}

mgrid_family *mgrid_family_origin(const mgrid_family *f) {
  return mgrid_family_ref(f->origin ? f->origin : f);
}

void mgrid_family_free(mgrid_family *f) {
  if (!f || atomic_fetch_sub(&f->refs, 1) != 1) return;
  if (f->origin)
    mgrid_family_free(f->origin);
  else if (f->form->free)
    f->form->free(f);
  free(f);
}

void mgrid_families_free(size_t n, mgrid_family **f) {
  for (size_t i = 0; i < n; i++) mgrid_family_free(f[i]);
  free(f);
}

mgrid_family *mgrid_family_twin(const mgrid_family *f, mgrid_error *err) {
  if (!f) return NULL;
  mgrid_family *twin = malloc(sizeof *twin);
  if (!twin) return mgrid_null_oom(err);
  /* do not copy the count of owners, which other threads may change */
  size_t after = offsetof(mgrid_family, form);
  memcpy((char *)twin + after, (const char *)f + after, sizeof *twin - after);
  atomic_init(&twin->refs, 1);
  /* the origin of f if f is a twin, so that twins form no chain */
  twin->origin = mgrid_family_origin(f);
  twin->bytes = twin->origin->bytes + sizeof *twin;
  twin->twin = true;
  return twin;
}

/* ------------------------------------------------------------------ checks */

mgrid_status mgrid_count_check(const char *what, size_t n, mgrid_error *err) {
  if (n <= (size_t)MGRID_WORLD_MAX) return MGRID_OK;
  return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%s: %zu elements; at most %" PRId64, what, n,
                    MGRID_WORLD_MAX);
}

mgrid_window mgrid_world(int64_t size) { return (mgrid_window){ size, 0, size }; }

mgrid_status mgrid_window_check(mgrid_window w, mgrid_error *err) {
  if (w.world < 1 || w.world > MGRID_WORLD_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a world has 1 to %" PRId64 " ranks, not %" PRId64,
                      MGRID_WORLD_MAX, w.world);
  if (w.offset < 0 || w.offset >= w.world)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "window offset %" PRId64 " is outside the world (0 to %" PRId64 ")", w.offset,
                      w.world - 1);
  if (w.size < 1 || w.size > w.world - w.offset)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "a window from rank %" PRId64 " of %" PRId64 " has 1 to %" PRId64
                      " ranks, not %" PRId64,
                      w.offset, w.world, w.world - w.offset, w.size);
  return MGRID_OK;
}

/* -------------------------------------------------------------------- keys */

int mgrid_key_order(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

int64_t mgrid_key_at(const uint64_t *keys, int64_t n, int64_t number) {
  int64_t lo = 0;
  while (lo < n) {
    int64_t mid = lo + (n - lo) / 2;
    if (keys[mid] < (uint64_t)number << 32)
      lo = mid + 1;
    else
      n = mid;
  }
  return lo;
}

/* --------------------------------------------------------------- questions */

int64_t mgrid_family_world(const mgrid_family *f) { return f ? f->world : -1; }
int64_t mgrid_family_count(const mgrid_family *f) { return f ? f->count : -1; }
int64_t mgrid_family_max_size(const mgrid_family *f) { return f ? f->max_size : -1; }
int64_t mgrid_family_total(const mgrid_family *f) { return f ? f->total : -1; }

mgrid_coverage mgrid_family_coverage(const mgrid_family *f) {
  if (!f) return MGRID_PARTIAL;
  return f->overlapping ? MGRID_COVER : f->total == f->world ? MGRID_PARTITION : MGRID_PARTIAL;
}

int64_t mgrid_family_size(const mgrid_family *f, int64_t group) {
  if (!f || group < 0 || group >= f->count) return -1;
  return f->size >= 0 ? f->size : f->form->size(f, group);
}

int64_t mgrid_family_rank(const mgrid_family *f, int64_t group, int64_t position) {
  if (position < 0 || position >= mgrid_family_size(f, group)) return -1;
  return f->form->rank(f, group, position);
}

bool mgrid_family_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                         int64_t *position) {
  int64_t unused[2];
  return f && rank >= f->low && rank <= f->high && nth >= 0
         && f->form->locate(f, rank, nth, group ? group : &unused[0],
                            position ? position : &unused[1]);
}

int64_t mgrid_family_singles(const mgrid_family *f) {
  if (f->size >= 0) return f->size == 1 ? f->count : 0;
  return f->form->singles ? f->form->singles(f) : 0;
}

bool mgrid_family_same_rule(const mgrid_family *a, const mgrid_family *b) {
  return a->form == b->form && a->count == b->count && a->total == b->total && a->size == b->size
         && a->form->same_rule(a, b);
}

/* ----------------------------------------------------------------- listing */

void mgrid_family_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n,
                        int32_t *out) {
  if (f->form->slice) {
    f->form->slice(f, group, position, n, out);
    return;
  }
  for (int64_t p = 0; p < n; p++) out[p] = (int32_t)mgrid_family_rank(f, group, position + p);
}

void mgrid_family_group(const mgrid_family *f, int64_t group, int32_t *out) {
  mgrid_family_slice(f, group, 0, mgrid_family_size(f, group), out);
}

int64_t mgrid_family_groups(const mgrid_family *f, int64_t group, int64_t n, int32_t *out) {
  if (f->form->range && n > 0) return f->form->range(f, group, n, out);
  int64_t written = 0;
  for (int64_t g = group; g < group + n; g++) {
    int64_t size = mgrid_family_size(f, g);
    mgrid_family_slice(f, g, 0, size, out + written);
    written += size;
  }
  return written;
}

/* ------------------------------------------------------------------ rounds */

int64_t mgrid_family_rounds(const mgrid_family *f) {
  return f->overlapping ? f->form->rounds(f) : 1;
}

int64_t mgrid_family_round(const mgrid_family *f, int64_t group) {
  return f->overlapping ? f->form->round(f, group) : 0;
}

int64_t mgrid_family_in_round(const mgrid_family *f, int64_t round) {
  int64_t n = 0;
  if (!f->overlapping) return round == 0 ? f->count : 0;
  if (f->form->in_round) return f->form->in_round(f, round);
  for (int64_t g = 0; g < f->count; g++) n += mgrid_family_round(f, g) == round;
  return n;
}

/* -------------------------------------------------------------------- text */

void mgrid_family_text(const mgrid_family *f, mgrid_text *t) {
  f->form->text(f, t);
  if (f->count == 0) mgrid_text_str(t, " (no groups)");
}

void mgrid_family_json(const mgrid_family *f, mgrid_text *t) { f->form->json(f, t); }

size_t mgrid_family_describe(const mgrid_family *f, char *buf, size_t len) {
  mgrid_text t = { 0 };
  if (f) mgrid_family_text(f, &t);
  return mgrid_text_finish(&t, buf, len);
}

/* -------------------------------------------------------------- operations */

void *mgrid_needs_lists(const char *operation, const mgrid_family *f, mgrid_error *err) {
  return mgrid_null(err, MGRID_REFUSED,
                    "%s of a %s family needs explicit lists: call lists() first; its cost grows "
                    "with the number of ranks",
                    operation, f->form->name);
}

mgrid_family *mgrid_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  return f->form->bundle ? f->form->bundle(f, n, err) : mgrid_needs_lists("a bundle", f, err);
}

bool mgrid_bundle_lists(const mgrid_family *f, int64_t n, int64_t *work) {
  *work = 0;
  return f->form->bundle_lists && f->form->bundle_lists(f, n, work);
}

/* ======================================================== members for a host */

/* Families list ranks as 32-bit numbers, and hosts get 64 bits. So the list is made in pieces: each
** is written in 32 bits, and widened while it is in the cache. */

enum { PIECE = 2048 }; /* ranks of a piece */

static void family_widen(const int32_t *from, int64_t n, int64_t *to) {
  for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

/* Write the first n members of a group. */
static void put_members(const mgrid_family *f, int64_t group, int64_t n, int64_t *out) {
  int32_t piece[PIECE];
  for (int64_t at = 0; at < n; at += PIECE) {
    int64_t some = n - at < PIECE ? n - at : PIECE;
    mgrid_family_slice(f, group, at, some, piece);
    family_widen(piece, some, out + at);
  }
}

int64_t mgrid_family_members(const mgrid_family *f, int64_t group, int64_t n, size_t cap,
                             int64_t *out) {
  if (!f || group < 0 || n < 0 || n > f->count - group) return -1;
  int32_t piece[PIECE];
  int64_t written = 0, room = !out ? 0 : cap < INT64_MAX ? (int64_t)cap : INT64_MAX;
  /* how many whole groups fit in a piece */
  int64_t together = f->max_size > 0 ? PIECE / f->max_size : 0;
  for (int64_t g = group, some; g < group + n; g += some) {
    int64_t left = group + n - g, size = mgrid_family_size(f, g);
    some = together < 1 ? 1 : left < together ? left : together;
    if (together > 0 && some * f->max_size <= room - written) {
      size = mgrid_family_groups(f, g, some, piece);
      family_widen(piece, size, out + written);
    } else {
      some = 1;
      int64_t fits = room - written < size ? room - written : size;
      if (fits > 0) put_members(f, g, fits, out + written);
      if (fits <= 0 && f->size >= 0) return n * f->size;
    }
    written += size;
  }
  return written;
}
