/* SPDX-License-Identifier: MIT
**
** rounds.c - the groups of a cover in rounds, so that a rank is in at most one group of a
** round. Pairs along a line take two rounds, around an odd ring three; explicit covers are
** coloured greedily in group order. Rounds depend on the family alone, so every rank finds
** the same ones.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b, b = r;
  }
  return a;
}

/* x with a * x = 1 (mod m), for coprime a and m. */
static int64_t inverse(int64_t a, int64_t m) {
  int64_t r0 = m, r1 = a % m, x0 = 0, x1 = 1;
  while (r1 > 0) {
    int64_t q = r0 / r1, r = r0 - q * r1, x = x0 - q * x1;
    r0 = r1, r1 = r, x0 = x1, x1 = x;
  }
  return (x0 % m + m) % m;
}

/* Pairs (i, i + step) around n form rings of n / gcd; pair number k of a ring meets only
** the pairs k - 1 and k + 1, so even and odd k alternate and an odd ring needs a third. */
static int64_t pair_round(int64_t n, int64_t step, bool wrap, int64_t i) {
  if (!wrap) return i / step % 2;
  int64_t g = gcd(n, step), ring = n / g;
  int64_t k = ring == 1 ? 0 : i / g * inverse(step / g, ring) % ring;
  return ring % 2 == 1 && k == ring - 1 ? 2 : k % 2;
}

static int64_t pair_rounds(int64_t n, int64_t step, bool wrap) {
  int64_t per = mgrid_pairs_of(n, step, wrap);
  if (!wrap) return per > step ? 2 : 1;
  return n / gcd(n, step) % 2 == 1 ? 3 : 2;
}

/* How many pairs i of one group have pair_round(n, step, wrap, i) == round, without a loop. */
static int64_t pairs_in_round(int64_t n, int64_t step, bool wrap, int64_t round) {
  if (wrap) { /* gcd rings, each with as many even as odd pairs, and an odd one over */
    int64_t rings = gcd(n, step), ring = n / rings;
    return round < 2 ? rings * (ring / 2) : round == 2 && ring % 2 == 1 ? rings : 0;
  }
  int64_t pairs = n - step, runs = pairs / step; /* runs of `step` pairs, rounds 0 1 0 1 ... */
  if (round > 1) return 0;
  return step * ((runs + (round == 0)) / 2) + (runs % 2 == round ? pairs % step : 0);
}

int64_t mgrid_family_rounds(const mgrid_family *f) {
  int64_t rounds = 1;
  if (!f->overlapping) return 1;
  if (f->form == MGRID_PAIRS) return pair_rounds(f->as.pairs.base->size, f->as.pairs.step, f->as.pairs.wrap);
  if (f->form == MGRID_UNION)
    for (size_t i = 0; i < f->as.parts.n; i++) {
      int64_t r = mgrid_family_rounds(f->as.parts.child[i]);
      if (r > rounds) rounds = r;
    }
  return f->form == MGRID_TABLE ? f->as.table.rounds : rounds;
}

int64_t mgrid_family_round(const mgrid_family *f, int64_t group) {
  if (!f->overlapping) return 0;
  if (f->form == MGRID_PAIRS) {
    int64_t n = f->as.pairs.base->size, step = f->as.pairs.step;
    bool    wrap = f->as.pairs.wrap;
    return pair_round(n, step, wrap, group % mgrid_pairs_of(n, step, wrap));
  }
  if (f->form == MGRID_UNION) { /* the children share no rank: their rounds run together */
    const mgrid_family *child = mgrid_union_child(f, &group);
    return mgrid_family_round(child, group);
  }
  return f->form == MGRID_TABLE ? f->as.table.round[group] : 0;
}

int64_t mgrid_family_in_round(const mgrid_family *f, int64_t round) {
  int64_t n = 0;
  if (!f->overlapping) return round == 0 ? f->count : 0;
  if (f->form == MGRID_UNION) {
    for (size_t i = 0; i < f->as.parts.n; i++) n += mgrid_family_in_round(f->as.parts.child[i], round);
    return n;
  }
  if (f->form == MGRID_PAIRS)
    return f->as.pairs.base->count * pairs_in_round(f->as.pairs.base->size, f->as.pairs.step, f->as.pairs.wrap, round);
  for (int64_t g = 0; g < f->count; g++) n += mgrid_family_round(f, g) == round;
  return n;
}

/* Each group gets the lowest round that none of its members has yet. What a rank has of the first 64 rounds
** is a bit mask; beyond them it is a counter, so that a rank in very many groups still gets an answer. */
mgrid_status mgrid_table_rounds(mgrid_family *f, mgrid_error *err) {
  size_t    ranks = (size_t)(f->high - f->low + 1);
  uint64_t *taken = calloc(ranks, sizeof *taken);
  int32_t  *later = calloc(ranks, sizeof *later);
  f->as.table.round = malloc((size_t)f->count * sizeof *f->as.table.round);
  if (!taken || !later || !f->as.table.round) {
    free(taken);
    free(later);
    return mgrid_oom(err);
  }
  for (int64_t g = 0; g < f->count; g++) {
    const int32_t *member = f->as.table.ranks + f->as.table.starts[g];
    int64_t        n = mgrid_family_size(f, g);
    uint64_t       mask = 0;
    int32_t        next = 64;
    for (int64_t i = 0; i < n; i++) {
      mask |= taken[member[i] - f->low];
      if (later[member[i] - f->low] > next) next = later[member[i] - f->low];
    }
    int32_t round = mask == UINT64_MAX ? next : __builtin_ctzll(~mask);
    if (round >= MGRID_ROUNDS_MAX) {
      free(taken);
      free(later);
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "group %" PRId64 " of the table shares ranks with %d others or more; at most %d", g, round,
                        MGRID_ROUNDS_MAX - 1);
    }
    for (int64_t i = 0; i < n; i++) {
      if (round < 64)
        taken[member[i] - f->low] |= UINT64_C(1) << round;
      else
        later[member[i] - f->low] = round + 1;
    }
    f->as.table.round[g] = round;
    if (round >= f->as.table.rounds) f->as.table.rounds = round + 1;
  }
  free(taken);
  free(later);
  return MGRID_OK;
}
