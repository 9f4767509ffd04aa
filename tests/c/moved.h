/* SPDX-License-Identifier: MIT
**
** moved.h - moves between two random layouts, carried by hand: what each rank has in the end is
** compared with plain dealing, element by element.
*/
#ifndef TEST_MOVED_H
#define TEST_MOVED_H

#include "tensors.h"

static inline bool holds(const dealt *t, int64_t rank, int64_t element) {
  if (rank < 0 || rank >= DEALT_WORLD) return false;
  return dealt_whole(t, rank, element) && (!t->flat || t->slice[rank][element]);
}

typedef struct world {
  int64_t ranks, elements;
  dealt from, to;
  int32_t names[DEALT_WORLD], back[DEALT_WORLD];
  int32_t olds[DEALT_WORLD], was[DEALT_WORLD]; /* the same of the side before: -1, it is lost */
  bool renamed, loses;
} world;

static inline bool needs(const world *w, int64_t rank, int64_t element) {
  return holds(&w->to, w->renamed ? w->back[rank] : rank, element);
}

static inline int64_t old_rank(const world *w, int64_t rank) {
  return w->loses ? w->was[rank] : rank;
}

static inline bool had(const world *w, int64_t rank, int64_t element) {
  return holds(&w->from, old_rank(w, rank), element);
}

/* Does anybody who is left have the element? */
static inline bool is_left(const world *w, int64_t element) {
  bool left = false;
  for (int64_t rank = 0; rank < w->ranks && !left; rank++) left = had(w, rank, element);
  return left;
}

/* Grids of two sides: any two; or of one window cut in another way; or windows apart. */
static inline void draw_sides(rng *r, world *w) {
  do {
    mgrid_grid_free(w->from.d.grid);
    w->from.d = draw_grid(r, 32);
  } while (w->from.d.window.world > DEALT_WORLD);
  mgrid_window at = w->from.d.window;
  if (rng_chance(r, 60)) {
    int64_t all = at.size * rng_between(r, 1, 2);
    if (rng_chance(r, 30)) at.offset += at.size;
    if (at.offset + all > DEALT_WORLD) all = at.size;
    if (at.offset + all > DEALT_WORLD) at.offset = 0;
    if (at.world < at.offset + all) at.world = at.offset + all;
    at.size = all;
    w->to.d = draw_grid_over(r, at);
  } else {
    w->to.d = draw_grid(r, 32);
  }
  w->ranks = w->from.d.window.world > w->to.d.window.world ? w->from.d.window.world
                                                           : w->to.d.window.world;
}

static inline void draw_names(rng *r, world *w, mgrid_renaming *names) {
  size_t any[DEALT_WORLD];
  w->renamed = rng_chance(r, 15);
  *names = (mgrid_renaming){ 0 };
  if (!w->renamed) return;
  for (size_t i = 0; i < (size_t)w->ranks; i++) any[i] = i, w->back[i] = -1;
  rng_shuffle(r, (size_t)w->ranks, any);
  int64_t n = w->to.d.window.world;
  for (int64_t i = 0; i < n; i++) {
    w->names[i] = (int32_t)any[i];
    w->back[any[i]] = (int32_t)i;
  }
  *names = (mgrid_renaming){ n, w->names, w->ranks, w->back };
}

/* Ranks before the move get other numbers, and some are lost. */
static inline void draw_lost(rng *r, world *w, mgrid_renaming *olds) {
  size_t any[DEALT_WORLD];
  int64_t n = w->from.d.window.world, lost = rng_between(r, 0, 50);
  w->loses = rng_chance(r, 25);
  *olds = (mgrid_renaming){ 0 };
  if (!w->loses) return;
  for (size_t i = 0; i < (size_t)w->ranks; i++) any[i] = i, w->was[i] = -1;
  if (rng_chance(r, 50)) rng_shuffle(r, (size_t)w->ranks, any);
  for (int64_t i = 0; i < n; i++) {
    w->olds[i] = rng_chance(r, (int)lost) ? -1 : (int32_t)any[i];
    if (w->olds[i] >= 0) w->was[any[i]] = (int32_t)i;
  }
  *olds = (mgrid_renaming){ n, w->olds, w->ranks, w->was };
}

/* -------------------------------------------------------- whole moves, with data */

/* The part of a rank, each element its number in the whole; NULL where it holds none. */
static inline int32_t *stamped(const dealt *t, int64_t rank, int64_t elements, int64_t *n) {
  int32_t *part = malloc((size_t)elements * sizeof *part);
  assert_non_null(part);
  *n = 0;
  for (int64_t e = 0; e < elements; e++)
    if (holds(t, rank, e)) part[(*n)++] = (int32_t)e;
  return part;
}

typedef struct packed {  /* the elements of one message, piece after piece */
  const int32_t *source; /* pack from here, or NULL: */
  int32_t *target;       /* unpack to here */
  const int32_t *take;   /* stays: both */
  int64_t n, bytes;
  int32_t at[DEALT_LENGTH * DEALT_LENGTH];
} packed;

static inline int move_piece(void *ud, const mgrid_move_piece *x) {
  packed *m = ud;
  int64_t i[MGRID_AXES_MAX] = { 0 }, count = 1;
  for (size_t a = 0; a < x->naxes; a++) count *= x->lengths[a];
  m->bytes += x->bytes;
  for (int64_t k = 0; k < count; k++) {
    int64_t from = x->from_offset, to = x->to_offset;
    for (size_t a = 0; a < x->naxes; a++)
      from += i[a] * x->from_strides[a], to += i[a] * x->to_strides[a];
    if (m->take)
      m->target[to] = m->take[from];
    else if (m->source)
      m->at[m->n++] = m->source[from];
    else
      m->target[to] = m->at[m->n++];
    for (size_t a = x->naxes; a-- > 0 && ++i[a] == x->lengths[a];) i[a] = 0;
  }
  return 0;
}

static inline mgrid_plan *plan_with(const rng *r, const dealt *t) {
  mgrid_error err;
  mgrid_topology *topology = mgrid_topology_new(t->d.window.world, anew(&err));
  check(r, mgrid_topology_add_tensor(topology, "t", t->tensor, &err) == MGRID_OK);
  mgrid_plan *p = mgrid_plan_new(topology, &err);
  check(r, p != NULL);
  mgrid_topology_free(topology);
  return p;
}

/* In each round a rank sends one message at most and receives one at most; as many rounds as the
** busiest has. */
static inline void check_rounds(const rng *r, mgrid_move *const *move, int64_t ranks) {
  int64_t busiest = 0, rounds = -1;
  for (int64_t rank = 0; rank < ranks; rank++) {
    mgrid_move_sums sums = MGRID_MOVE_SUMS_INIT;
    bool sends[DEALT_WORLD] = { false }, receives[DEALT_WORLD] = { false };
    mgrid_error err;
    check(r, mgrid_move_bytes(move[rank], &sums, anew(&err)) == MGRID_OK);
    busiest = sums.sends > busiest ? sums.sends : busiest;
    busiest = sums.receives > busiest ? sums.receives : busiest;
    check(r, rounds < 0 || sums.rounds == rounds);
    rounds = sums.rounds;
    for (size_t i = 0; i < mgrid_move_npeers(move[rank]); i++) {
      mgrid_move_peer p = MGRID_MOVE_PEER_INIT;
      check(r, mgrid_move_peers(move[rank], i, &p, &err) == MGRID_OK);
      check(r, (p.send > 0) == (p.send_round >= 0) && p.send_round < rounds);
      check(r, (p.receive > 0) == (p.receive_round >= 0) && p.receive_round < rounds);
      if (p.send) check(r, !sends[p.send_round] && (sends[p.send_round] = true));
      if (p.receive) check(r, !receives[p.receive_round] && (receives[p.receive_round] = true));
      mgrid_move_peer back = MGRID_MOVE_PEER_INIT; /* the other side has the same round */
      for (size_t k = 0; k < mgrid_move_npeers(move[p.rank]) && back.rank != rank; k++)
        mgrid_move_peers(move[p.rank], k, &back, &err);
      check(r, back.rank == rank && back.send == p.receive && back.receive == p.send);
      check(r, back.send_round == p.receive_round && back.receive_round == p.send_round);
    }
  }
  check(r, rounds == busiest);
}

/* Carry every message by hand; what each rank has then is its part of the other layout. */
static inline void carry(const rng *r, const world *w, mgrid_move *const *move) {
  int32_t *source[DEALT_WORLD];
  packed *m = malloc(sizeof *m);
  int64_t n;
  assert_non_null(m);
  for (int64_t rank = 0; rank < w->ranks; rank++)
    source[rank] = stamped(&w->from, old_rank(w, rank), w->elements, &n);
  for (int64_t rank = 0; rank < w->ranks; rank++) {
    mgrid_error err;
    mgrid_move_sums sums = MGRID_MOVE_SUMS_INIT;
    int32_t *want = stamped(&w->to, w->renamed ? w->back[rank] : rank, w->elements, &n);
    int32_t *got = malloc((size_t)w->elements * sizeof *got);
    assert_non_null(got);
    memset(got, -1, (size_t)w->elements * sizeof *got);
    mgrid_move_bytes(move[rank], &sums, anew(&err));
    *m = (packed){ .target = got, .take = source[rank] };
    check(r, mgrid_move_pieces(move[rank], MGRID_STAYS, -1, move_piece, m, &err) == MGRID_OK
                 && m->bytes == sums.stay);
    for (size_t i = 0; i < mgrid_move_npeers(move[rank]); i++) {
      mgrid_move_peer p = MGRID_MOVE_PEER_INIT;
      mgrid_move_peers(move[rank], i, &p, &err);
      *m = (packed){ .source = source[p.rank] };
      check(r, mgrid_move_pieces(move[p.rank], MGRID_SENDS, rank, move_piece, m, &err) == MGRID_OK);
      check(r, m->bytes == p.receive && m->n * 4 == p.receive);
      m->source = NULL;
      m->target = got;
      m->n = m->bytes = 0;
      check(r,
            mgrid_move_pieces(move[rank], MGRID_RECEIVES, p.rank, move_piece, m, &err) == MGRID_OK);
      check(r, m->bytes == p.receive);
    }
    int64_t missing = 0;
    for (int64_t e = 0; e < n; e++) { /* what nobody has left is as it was */
      bool left = is_left(w, want[e]);
      check(r, got[e] == (left ? want[e] : -1));
      missing += !left;
    }
    check(r, sums.missing == 4 * missing);
    for (int64_t e = n; e < w->elements; e++) check(r, got[e] == -1);
    free(got);
    free(want);
  }
  for (int64_t rank = 0; rank < w->ranks; rank++) free(source[rank]);
  free(m);
}

/* The same by one-sided reads: each rank copies what its descriptors name. Both sides have the same
** ones, which are as long as they can be. */
static inline void carry_by_descriptors(const rng *r, const world *w, mgrid_move *const *move) {
  enum { MOST = 4 * DEALT_ELEMENTS };
  int32_t *source[DEALT_WORLD];
  mgrid_move_descriptor *list = calloc(2 * MOST, sizeof *list), *theirs = list + MOST;
  mgrid_error err;
  int64_t n;
  assert_non_null(list);
  for (int64_t rank = 0; rank < w->ranks; rank++)
    source[rank] = stamped(&w->from, old_rank(w, rank), w->elements, &n);
  for (int64_t rank = 0; rank < w->ranks; rank++) {
    int32_t *want = stamped(&w->to, w->renamed ? w->back[rank] : rank, w->elements, &n);
    char *got = malloc((size_t)w->elements * sizeof *want);
    assert_non_null(got);
    for (mgrid_way way = MGRID_STAYS; way <= MGRID_RECEIVES; way++) {
      int64_t k = mgrid_move_descriptors(move[rank], way, MOST, list, anew(&err));
      check(r, k >= 0 && k <= MOST && mgrid_move_descriptors(move[rank], way, 0, NULL, &err) == k);
      if (k > 1)
        check(r, mgrid_move_descriptors(move[rank], way, 1, theirs, &err) == k
                     && theirs->bytes == list->bytes);
      for (int64_t i = 0; i < k; i++) {
        const mgrid_move_descriptor *d = &list[i], *before = d - 1;
        check(r, d->bytes > 0 && d->tensor == 0 && (way == MGRID_STAYS) == (d->peer == rank));
        if (i > 0) check(r, before->peer <= d->peer);
        if (i > 0 && before->peer == d->peer)
          check(r, before->from_offset + before->bytes != d->from_offset
                       || before->to_offset + before->bytes != d->to_offset);
        if (way != MGRID_SENDS)
          memcpy(got + d->to_offset, (const char *)source[d->peer] + d->from_offset,
                 (size_t)d->bytes);
        if (way != MGRID_RECEIVES) continue;
        int64_t nth = 0,
                all = mgrid_move_descriptors(move[d->peer], MGRID_SENDS, MOST, theirs, &err),
                at = 0;
        for (int64_t x = i; x > 0 && list[x - 1].peer == d->peer; x--) nth++;
        while (at < all && theirs[at].peer != rank) at++;
        at += nth;
        check(r, at < all && theirs[at].peer == rank && theirs[at].from_offset == d->from_offset
                     && theirs[at].to_offset == d->to_offset && theirs[at].bytes == d->bytes);
      }
    }
    for (int64_t e = 0; e < n; e++)
      if (is_left(w, want[e])) check(r, memcmp(got + 4 * e, &want[e], 4) == 0);
    free(got);
    free(want);
  }
  for (int64_t rank = 0; rank < w->ranks; rank++) free(source[rank]);
  free(list);
}

/* What a plan tells of every rank's part is what was dealt to it. */
static inline void check_told(const rng *r, const mgrid_plan *p, const dealt *t) {
  for (int64_t rank = 0; rank < t->d.window.world && rank < DEALT_WORLD; rank++) {
    mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
    mgrid_error err;
    int64_t elements = 0, all = dealt_elements(t);
    check(r, mgrid_tensor_local(p, "t", rank, &part, anew(&err)) == MGRID_OK
                 && part.held == t->on[rank]);
    for (int64_t e = 0; e < all; e++) elements += holds(t, rank, e);
    check(r, part.elements == elements && part.bytes == 4 * elements);
    for (size_t i = 0; i < t->naxes && part.held; i++) {
      mgrid_run runs[DEALT_LENGTH];
      bool has[DEALT_LENGTH] = { false };
      int64_t n = mgrid_tensor_runs(p, "t", rank, i, DEALT_LENGTH, runs, &err);
      check(r, n >= 0 && n <= DEALT_LENGTH);
      for (int64_t k = 0; k < n; k++)
        for (int64_t x = 0; x < runs[k].length; x++) has[runs[k].start + x] = true;
      check(r, memcmp(has, t->has[i][rank], sizeof has) == 0);
    }
  }
}

/* Draw two layouts and the move from one to the other, and check all of it. */
static inline void check_drawn_move(rng *r, world *w) {
  int64_t given[DEALT_WORLD], lost[DEALT_WORLD];
  int64_t length[DEALT_AXES];
  mgrid_renaming names, olds;
  mgrid_move_options options = MGRID_MOVE_OPTIONS_INIT;
  mgrid_error err;
  memset(w, 0, sizeof *w);
  draw_sides(r, w);
  size_t naxes = (size_t)rng_between(r, 1, DEALT_AXES);
  w->elements = 1;
  for (size_t i = 0; i < naxes; i++)
    w->elements *= length[i] = rng_between(r, 1, naxes > 2 ? 8 : DEALT_LENGTH);
  draw_tensor(r, &w->from, naxes, length, true);
  draw_tensor(r, &w->to, naxes, length, true);
  if (rng_chance(r, 40)) draw_flat(r, &w->from);
  if (rng_chance(r, 40)) draw_flat(r, &w->to);
  draw_names(r, w, &names);
  draw_lost(r, w, &olds);
  options.rounds = true;
  options.machine = rng_chance(r, 40) ? 1 << rng_between(r, 1, 4) : 0;
  options.nranks = (size_t)names.n;
  for (int64_t i = 0; i < names.n; i++) given[i] = names.ranks[i];
  options.ranks = names.n ? given : NULL;
  options.nold = (size_t)olds.n;
  for (int64_t i = 0; i < olds.n; i++) lost[i] = olds.ranks[i];
  options.old = olds.n ? lost : NULL;
  mgrid_plan *from = plan_with(r, &w->from), *to = plan_with(r, &w->to);
  mgrid_move *move[DEALT_WORLD];
  check_told(r, from, &w->from);
  check_told(r, to, &w->to);
  /* the ranks of a renamed move are those of `from`, and what the map has beyond */
  if (names.n || olds.n) {
    int64_t beyond = !olds.n ? w->from.d.window.world : names.n ? 0 : w->to.d.window.world;
    for (int64_t i = 0; i < names.n; i++)
      if (names.ranks[i] >= beyond) beyond = names.ranks[i] + 1;
    for (int64_t i = 0; i < olds.n; i++)
      if (olds.ranks[i] >= beyond) beyond = olds.ranks[i] + 1;
    w->ranks = beyond;
  }
  for (int64_t rank = 0; rank < w->ranks; rank++) {
    move[rank] = mgrid_move_new(from, to, rank, 0, NULL, &options, anew(&err));
    if (!move[rank]) fail_msg("%s; MOONGRID_SEED=%" PRIu64, err.message, r->seed);
  }
  check(r, !mgrid_move_new(from, to, w->ranks, 0, NULL, &options, anew(&err))
               && err.status == MGRID_OUT_OF_RANGE);
  check_rounds(r, move, w->ranks);
  carry(r, w, move);
  carry_by_descriptors(r, w, move);
  for (int64_t rank = 0; rank < w->ranks; rank++) mgrid_move_free(move[rank]);
  mgrid_plan_free(from);
  mgrid_plan_free(to);
  dealt_free(&w->from);
  dealt_free(&w->to);
}

#endif
