/* SPDX-License-Identifier: MIT
**
** places.c - which survivor takes which place of the new layout.
**
** Both layouts are taken as a grid of a x m x b places, and the middle dim m shrinks: in Megatron a
** is tp x cp, m is dp, and b is pp. The coordinates of m that lost the fewest ranks stay, so that one
** whole replica goes, and not a part of each. An empty place gets a survivor without a place: first
** one with the same coordinates in a and b, because it has the same part of another replica; then a
** spare; then any. a and b are chosen so that the most communicators stay when m loses some
** coordinates, or if none stay, the most bytes.
*/
#include "machine/machine_item.h"
#include "survive/next.h"

#include <stdlib.h>
#include <xxhash.h>

const struct mgrid_machine_model *mgrid_losses_machine(const mgrid_losses *l) {
  const mgrid_machine_item *item = mgrid_content_machine(&l->plan->content);
  return item && !item->unread ? item->model : NULL;
}

/* Return at how many levels of the machine both ranks are in one domain. The machine counts even if
** the recipe does not read it. 0: the plan has no machine, or they share no domain. */
static size_t near_in_machine(const mgrid_losses *l, int64_t a, int64_t b) {
  const mgrid_machine_item *item = mgrid_content_machine(&l->plan->content);
  size_t level = 0;
  if (!item) return 0;
  const mgrid_machine_model *m = item->model;
  int64_t x = mgrid_machine_at(m, a), y = mgrid_machine_at(m, b);
  while (level < m->ntiers
         && mgrid_tier_domain(&m->tier[level], x) == mgrid_tier_domain(&m->tier[level], y))
    level++;
  return level;
}

int64_t mgrid_next_needs(const mgrid_next *next, int64_t place, int64_t old, int64_t *stay) {
  int64_t need = 0;
  *stay = 0;
  for (size_t i = 0; i < next->pairs.n; i++) {
    const mgrid_pair *p = &next->pairs.pair[i];
    mgrid_coords shard, part;
    if (!mgrid_tensor_coords(p->to, place, &part)) continue;
    need += mgrid_tensor_elements(p->to, &part) * p->to->width;
    if (mgrid_tensor_coords(p->from, old, &shard)) *stay += mgrid_common_bytes(p, &shard, &part);
  }
  return need;
}

enum { TRIALS = 4 }; /* how many random losses each map is scored on */

/* Choose the coordinates of the middle dim that stay in a trial; equal arguments give equal
** coordinates. */
static void places_draw(const mgrid_layout_map *f, uint64_t trial, int64_t *keep) {
  int64_t n = 0;
  for (int64_t i = 0; i < f->was && n < f->is; i++) {
    uint64_t key[2] = { trial, (uint64_t)i };
    if ((int64_t)(XXH3_64bits(key, sizeof key) % (uint64_t)(f->was - i)) < f->is - n) keep[n++] = i;
  }
}

/* Return the place of the old layout that becomes `place` of the new one. keep[i]: the old
** coordinate of the middle dim that becomes coordinate i. */
static int64_t old_place_of(const mgrid_layout_map *f, const int64_t *keep, int64_t place) {
  int64_t x = place % f->a, y = place / f->a % f->is, z = place / f->a / f->is;
  return x + f->a * (keep[y] + f->was * z);
}

/* Return whether these ranks are the members of a group of the family, in this order. */
static bool is_group(const mgrid_family *f, const int32_t *member, int64_t n) {
  int64_t group, position;
  for (int64_t nth = 0; mgrid_family_locate(f, member[0], nth, &group, &position); nth++) {
    int64_t i = position == 0 && mgrid_family_size(f, group) == n ? 1 : n + 1;
    while (i < n && mgrid_family_rank(f, group, i) == member[i]) i++;
    if (i == n) return true;
  }
  return false;
}

/* Score a map: over all trials, count the communicators of the next plan that the old plan has in
** the family of the same name. Each counts as many times as it has members. */
static int64_t kept_by(const mgrid_losses *l, const mgrid_next *next, const mgrid_layout_map *f,
                       int32_t *room, int64_t *keep) {
  const mgrid_comm_list *c = &next->comms;
  int64_t kept = 0;
  for (uint64_t trial = 0; trial < TRIALS; trial++) {
    places_draw(f, trial, keep);
    for (size_t i = 0; i < c->n; i++) {
      int64_t n = c->start[i + 1] - c->start[i];
      int old = mgrid_content_find(&l->plan->content, next->plan->content.entry[c->entry[i]].name);
      for (int64_t k = 0; k < n && old >= 0; k++)
        room[k] = l->rank[old_place_of(f, keep, c->member[c->start[i] + k])];
      if (old >= 0 && is_group(l->plan->content.entry[old].family, room, n)) kept += n;
    }
  }
  return kept;
}

static int64_t places_gcd(int64_t a, int64_t b) { return b ? places_gcd(b, a % b) : a; }

enum { FEW = 1 << 17 }; /* the most parts of tensors to look at for one map */

/* Score a map: count the bytes that stay where they are, over all trials. 0: there are too many
** parts to look at. */
static int64_t stay_by(const mgrid_losses *l, const mgrid_next *next, const mgrid_layout_map *f,
                       int64_t *keep) {
  int64_t all = 0, stay;
  size_t n = next->paired ? next->pairs.n : 0;
  if (next->places * TRIALS * (int64_t)n > FEW) return 0;
  for (uint64_t trial = 0; trial < TRIALS && n > 0; trial++) {
    places_draw(f, trial, keep);
    for (int64_t i = 0; i < next->places; i++, all += stay)
      mgrid_next_needs(next, i, l->rank[old_place_of(f, keep, i)], &stay);
  }
  return all;
}

mgrid_layout_map mgrid_layout_map_of(const mgrid_losses *l, const mgrid_next *next) {
  int64_t was = l->places, is = next->places, g = places_gcd(was, is), most = -1, most_stay = -1;
  mgrid_layout_map best = { 1, was, is, 1 };
  if (was == is) return best;
  int32_t *room = malloc((size_t)(is + 1) * sizeof *room);
  int64_t *keep = malloc((size_t)(is + 1) * sizeof *keep);
  /* begin with the smallest a x b: of maps with equal scores the first is kept, whose middle dim is
  ** the largest, so that there are the most ways to choose the coordinates that stay */
  for (int64_t ab = 1; ab <= g && room && keep; ab++)
    for (int64_t a = 1; a <= ab && g % ab == 0; a++) {
      if (ab % a) continue;
      mgrid_layout_map f = { a, was / ab, is / ab, ab / a };
      int64_t kept = kept_by(l, next, &f, room, keep),
              stay = kept || most > 0 ? 0 : stay_by(l, next, &f, keep);
      if (kept > most || (kept == most && stay > most_stay))
        best = f, most = kept, most_stay = stay;
    }
  free(room);
  free(keep);
  return best;
}

/* Return whether coordinate y of the middle dim stays. */
static bool is_kept(const mgrid_layout_map *f, const int64_t *keep, int64_t y) {
  int64_t low = 0, high = f->is;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (keep[middle] < y)
      low = middle + 1;
    else
      high = middle;
  }
  return low < f->is && keep[low] == y;
}

/* Score a map without a next plan: over all trials, count the communicators of the old plan that
** lose no member. Each counts as many times as it has members. */
static int64_t whole_by(const mgrid_losses *l, const mgrid_layout_map *f, int64_t *keep) {
  const mgrid_comm_list *c = &l->comms;
  int64_t whole = 0;
  for (uint64_t trial = 0; trial < TRIALS; trial++) {
    places_draw(f, trial, keep);
    for (size_t i = 0; i < c->n; i++) {
      int64_t k = c->start[i];
      for (; k < c->start[i + 1]; k++) {
        int64_t y = l->place[c->member[k]] / f->a % f->was;
        if (!is_kept(f, keep, y)) break;
      }
      if (k == c->start[i + 1]) whole += k - c->start[i];
    }
  }
  return whole;
}

size_t mgrid_layout_maps_of(const mgrid_losses *l, int64_t places,
                            mgrid_layout_map map[MGRID_LAYOUT_MAPS_MAX]) {
  int64_t was = l->places, g = places_gcd(was, places), score[MGRID_LAYOUT_MAPS_MAX],
          *keep = malloc((size_t)(places + 1) * sizeof *keep);
  size_t n = 0;
  map[0] = (mgrid_layout_map){ 1, was, places, 1 };
  if (was == places || !keep) g = 0;
  for (int64_t ab = 1; ab <= g; ab++)
    for (int64_t a = 1; a <= ab && g % ab == 0; a++) {
      if (ab % a) continue;
      mgrid_layout_map f = { a, was / ab, places / ab, ab / a };
      int64_t whole = whole_by(l, &f, keep);
      size_t at = n < MGRID_LAYOUT_MAPS_MAX ? n++ : n;
      for (; at > 0 && whole > score[at - 1]; at--)
        if (at < MGRID_LAYOUT_MAPS_MAX) map[at] = map[at - 1], score[at] = score[at - 1];
      if (at < MGRID_LAYOUT_MAPS_MAX) map[at] = f, score[at] = whole;
    }
  free(keep);
  return n ? n : 1;
}

/* A coordinate of the middle dim, and how many of its ranks are lost. */
typedef struct slab {
  int64_t at, lost;
} slab;

static int by_at(const void *a, const void *b) {
  const slab *x = a, *y = b;
  return (x->at > y->at) - (x->at < y->at);
}

static int by_loss(const void *a, const void *b) {
  const slab *x = a, *y = b;
  if (x->lost != y->lost) return x->lost < y->lost ? -1 : 1;
  return by_at(a, b);
}

/* Choose the coordinates that stay, keep[], ascending: those that lost the fewest ranks, and of
** equal ones the first. The other coordinates are in slabs[f->is] and later. */
static void choose_slabs(const mgrid_losses *l, const mgrid_layout_map *f, const mgrid_loss *x,
                         slab *slabs, int64_t *keep) {
  for (int64_t i = 0; i < f->was; i++) slabs[i] = (slab){ i, 0 };
  for (size_t i = 0; i < x->nlost; i++)
    if (l->place[x->lost[i]] >= 0) slabs[l->place[x->lost[i]] / f->a % f->was].lost++;
  qsort(slabs, (size_t)f->was, sizeof *slabs, by_loss);
  qsort(slabs, (size_t)f->is, sizeof *slabs, by_at);
  for (int64_t i = 0; i < f->is; i++) keep[i] = slabs[i].at;
}

/* Return the free spare that is nearest to a rank in the machine; of spares that are equally near,
** the first. -1: no spare is free. */
static int64_t nearest_spare(const mgrid_losses *l, const mgrid_loss *x, int64_t rank) {
  int64_t found = -1;
  size_t most = 0;
  for (int64_t r = 0; r < l->world && l->world > l->places; r++) {
    if (l->place[r] >= 0 || x->is[r] != -1) continue;
    size_t near = near_in_machine(l, rank, r);
    if (found < 0 || near > most) found = r, most = near;
  }
  return found;
}

/* Fill the empty places. x->is[r] is -1 while old rank r is free, and -2 if it is lost. */
static void places_fill(const mgrid_losses *l, const mgrid_next *next, const slab *slabs,
                        const int64_t *keep, mgrid_loss *x) {
  const mgrid_layout_map *f = &next->map;
  int64_t any = 0;
  for (int64_t i = 0; i < next->places; i++) {
    if (x->was[i] >= 0) continue;
    int64_t old = -1;
    for (int64_t k = f->is; k < f->was && old < 0; k++) { /* the coordinates that do not stay */
      int64_t r = l->rank[i % f->a + f->a * (slabs[k].at + f->was * (i / f->a / f->is))];
      if (x->is[r] == -1) old = r;
    }
    if (old < 0) old = nearest_spare(l, x, l->rank[old_place_of(f, keep, i)]);
    while (old < 0 && x->is[any] != -1) any++;
    if (old < 0) old = any;
    x->was[i] = (int32_t)old;
    x->is[old] = (int32_t)i;
  }
}

mgrid_status mgrid_loss_place(const mgrid_losses *l, const mgrid_next *next, mgrid_loss *x,
                              mgrid_error *err) {
  const mgrid_layout_map *f = &next->map;
  slab *slabs = malloc((size_t)f->was * sizeof *slabs);
  int64_t *keep = malloc((size_t)f->is * sizeof *keep);

  x->was = malloc((size_t)x->survivors * sizeof *x->was);
  if (!slabs || !keep || !x->was) {
    free(slabs);
    free(keep);
    return mgrid_oom(err);
  }
  choose_slabs(l, f, x, slabs, keep);
  for (int64_t i = 0; i < next->places; i++) {
    int32_t old = l->rank[old_place_of(f, keep, i)];
    x->was[i] = x->is[old] == -1 ? old : -1;
    if (x->was[i] >= 0) x->is[old] = (int32_t)i;
  }
  places_fill(l, next, slabs, keep, x);
  int64_t at = next->places;
  for (int64_t r = 0; r < l->world; r++)
    if (x->is[r] == -1) x->was[at] = (int32_t)r, x->is[r] = (int32_t)at++;
  for (size_t i = 0; i < x->nlost; i++) x->is[x->lost[i]] = -1;
  free(slabs);
  free(keep);
  return MGRID_OK;
}
