/* SPDX-License-Identifier: MIT
**
** random.h - random cases that can be repeated: a small seeded generator, random grids, and a check
** that prints the seed. A test runs its cases with the seeds first_seed(), first_seed() + 1, ...;
** MOONGRID_SEED=N in the environment starts at N instead, to repeat one case alone.
*/
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include "program.h"

#include "moongrid.h"

#include <inttypes.h>

typedef struct rng {
  uint64_t state, seed;
  const uint8_t *at, *end; /* NULL; a fuzz target has numbers from these bytes, and 0 behind them */
} rng;

/* Fails the test and names the seed of the case; r is an rng *. */
#define check(r, cond) \
  do { \
    if (!(cond)) fail_msg("%s does not hold; MOONGRID_SEED=%" PRIu64, #cond, (r)->seed); \
  } while (0)

static inline uint64_t first_seed(void) {
  const char *text = getenv("MOONGRID_SEED");
  return text ? strtoull(text, NULL, 10) : 1;
}

/* The number of random cases: a third under a sanitizer, which takes ten times as long for each. */
#ifdef __SANITIZE_ADDRESS__
static inline uint64_t cases(uint64_t n) { return n / 3; }
#else
static inline uint64_t cases(uint64_t n) { return n; }
#endif

static inline rng rng_new(uint64_t seed) {
  return (rng){ seed * UINT64_C(0x9E3779B97F4A7C15), seed, NULL, NULL };
}

/* splitmix64: every seed gives a stream of its own. */
static inline uint64_t rng_next(rng *r) {
  if (r->end) return r->at < r->end ? *r->at++ : 0;
  uint64_t z = (r->state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/* A number from low to high, both included. */
static inline int64_t rng_between(rng *r, int64_t low, int64_t high) {
  return low + (int64_t)(rng_next(r) % (uint64_t)(high - low + 1));
}

static inline bool rng_chance(rng *r, int percent) { return rng_between(r, 1, 100) <= percent; }

static inline void rng_shuffle(rng *r, size_t n, size_t *items) {
  for (size_t i = n; i > 1; i--) {
    size_t k = (size_t)rng_between(r, 0, (int64_t)i - 1), kept = items[i - 1];
    items[i - 1] = items[k];
    items[k] = kept;
  }
}

/* A divisor of n, each as likely as the others. */
static inline int64_t rng_divisor(rng *r, int64_t n) {
  int64_t found = 1, seen = 0;
  for (int64_t d = 1; d <= n; d++)
    if (n % d == 0 && rng_between(r, 0, seen++) == 0) found = d;
  return found;
}

/* ------------------------------------------------------------- random grids */

enum { DRAWN_DIMS = 6 };

/* A grid as the test keeps it: its dims, and the library's grid made of them. */
typedef struct drawn {
  mgrid_window window;
  size_t n;
  mgrid_dim dim[DRAWN_DIMS]; /* named "a", "b", ... */
  mgrid_grid *grid;
} drawn;

static inline const char *drawn_name(size_t i) {
  static const char *const name[DRAWN_DIMS] = { "a", "b", "c", "d", "e", "f" };
  return name[i];
}

/* Dims of a product of at most `most`; sizes of 1 are common, primes come too. */
static inline int64_t draw_dims(rng *r, drawn *d, int64_t most) {
  static const int64_t sizes[] = { 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 12 };
  int64_t product = 1;
  d->n = (size_t)rng_between(r, 0, DRAWN_DIMS);
  for (size_t i = 0; i < d->n; i++) {
    int64_t size = sizes[rng_between(r, 0, (int64_t)(sizeof sizes / sizeof *sizes) - 1)];
    if (product * size > most) size = 1;
    product *= size;
    d->dim[i] = (mgrid_dim){ drawn_name(i), size };
  }
  return product;
}

/* Makes the library's grid of a drawn one; sometimes one size is left to be inferred. */
static inline void drawn_make(rng *r, drawn *d) {
  mgrid_error err;
  mgrid_dim given[DRAWN_DIMS];
  memcpy(given, d->dim, sizeof given);
  if (d->n > 0 && rng_chance(r, 30)) given[rng_between(r, 0, (int64_t)d->n - 1)].size = MGRID_FILL;
  d->grid = mgrid_grid_new(d->window, d->n, given, anew(&err));
  check(r, d->grid != NULL);
}

/* A grid over all of a world of its own, or over a window of a larger one. */
static inline drawn draw_grid(rng *r, int64_t most) {
  drawn d = { 0 };
  int64_t size = draw_dims(r, &d, most), before = 0, after = 0;
  if (rng_chance(r, 40)) before = rng_between(r, 0, 20), after = rng_between(r, 0, 20);
  d.window = (mgrid_window){ before + size + after, before, size };
  drawn_make(r, &d);
  return d;
}

/* Another factoring of a given window: sizes are divisors of what is left, in any order. */
static inline drawn draw_grid_over(rng *r, mgrid_window w) {
  drawn d = { .window = w };
  int64_t left = w.size;
  d.n = (size_t)rng_between(r, 1, DRAWN_DIMS);
  for (size_t i = 0; i < d.n; i++) {
    int64_t size = i + 1 == d.n ? left : rng_divisor(r, left);
    d.dim[i] = (mgrid_dim){ drawn_name(i), size };
    left /= size;
  }
  for (size_t i = d.n; i > 1; i--) { /* the rest would always be last otherwise */
    size_t k = (size_t)rng_between(r, 0, (int64_t)i - 1);
    int64_t kept = d.dim[i - 1].size;
    d.dim[i - 1].size = d.dim[k].size;
    d.dim[k].size = kept;
  }
  drawn_make(r, &d);
  return d;
}

/* Some of the dims in any order, and the others in any order. */
typedef struct drawn_along {
  size_t nin, nix;
  size_t in[DRAWN_DIMS], ix[DRAWN_DIMS];
  const char *in_name[DRAWN_DIMS], *ix_name[DRAWN_DIMS];
} drawn_along;

static inline drawn_along draw_along(rng *r, const drawn *d) {
  drawn_along a = { 0 };
  for (size_t i = 0; i < d->n; i++) {
    if (rng_chance(r, 50))
      a.in[a.nin++] = i;
    else
      a.ix[a.nix++] = i;
  }
  rng_shuffle(r, a.nin, a.in);
  rng_shuffle(r, a.nix, a.ix);
  for (size_t i = 0; i < a.nin; i++) a.in_name[i] = drawn_name(a.in[i]);
  for (size_t i = 0; i < a.nix; i++) a.ix_name[i] = drawn_name(a.ix[i]);
  return a;
}

#endif
