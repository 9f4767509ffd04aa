/* SPDX-License-Identifier: MIT
**
** test_base.c - budgets, arrays that grow and the hash table of src/base, with and without memory.
*/
#include "../failing.h"
#include "random.h"

#include "base/index.h"

/* ---------------------------------------------------------------- budgets */

static void test_limit(void **unused) {
  (void)unused;
  assert_true(mgrid_spend(NULL, INT64_MAX)); /* for a host */
  for (uint64_t seed = first_seed(); seed < first_seed() + 200; seed++) {
    rng r = rng_new(seed);
    bool timed = rng_chance(&r, 50);
    int64_t limit = rng_between(&r, 0, 20000), left = limit;
    mgrid_budget b = mgrid_budget_new((uint64_t)limit, timed ? 1000 : 0);
    while (left >= 0) {
      int64_t work = rng_chance(&r, 5) ? rng_between(&r, 0, 9000) : rng_between(&r, 0, 20);
      bool looks = rng_chance(&r, 10);
      left -= work;
      assert_int_equal(looks ? mgrid_budget_look(&b, work) : mgrid_spend(&b, work), left >= 0);
      if (left >= 0) assert_int_equal(b.used, limit - left);
    }
    assert_true(b.exhausted && !b.slow);
    assert_false(mgrid_spend(&b, 0)); /* for good */
  }
}

static void test_too_much(void **unused) {
  (void)unused;
  static const int64_t much[] = { INT64_MAX, -1, INT64_MIN };
  for (size_t i = 0; i < 2 * sizeof much / sizeof *much; i++) {
    mgrid_budget b = mgrid_budget_new(i & 1 ? UINT64_MAX : 1000, 0);
    assert_true(mgrid_spend(&b, 7));
    assert_false(mgrid_spend(&b, much[i / 2]));
    assert_true(b.exhausted);
  }
}

/* Only processor time between the start, or the end of a pause, and a look counts. */
static void test_slow(void **unused) {
  (void)unused;
  mgrid_budget b = mgrid_budget_new(UINT64_MAX, 0.02);
  b.spent = 0.01;
  while (mgrid_spend(&b, 1)) {}
  assert_true(b.slow && b.exhausted);
  b = mgrid_budget_new(UINT64_MAX, 0.02);
  assert_true(mgrid_budget_look(&b, 0));
  mgrid_budget_pause(&b);
  for (double until = mgrid_processor_now() + 0.03; mgrid_processor_now() < until;) {}
  mgrid_budget_resume(&b);
  assert_true(mgrid_budget_look(&b, 0) || b.spent > 0.02);
}

/* ----------------------------------------------------------------- arrays */

static void test_growing(void **unused) {
  (void)unused;
  int *all = NULL;
  size_t n = 0;
  int64_t moves = 0;
  rng r = rng_new(first_seed());
  while (n < 10000) {
    size_t more = (size_t)rng_between(&r, 0, rng_chance(&r, 10) ? 300 : 2);
    int *was = all;
    assert_true(MGRID_GROW(all, n, more));
    moves += all != was;
    for (; more > 0; more--, n++) all[n] = (int)n;
    for (size_t i = 0; i < n; i += 97) assert_int_equal(all[i], i);
  }
  assert_true(moves < 20);
  size_t room = 0, largest = 0;
  free(all);
  all = NULL;
  for (int i = 0; i < 100; i++) { /* emptied and filled again */
    size_t wanted = (size_t)rng_between(&r, 0, 1000);
    assert_true(MGRID_ROOM(all, room, wanted));
    largest = wanted > largest ? wanted : largest;
    assert_true(room >= largest && room <= 2 * largest);
    if (wanted) all[wanted - 1] = 1;
  }
  until_failure = 0;
  assert_false(MGRID_GROW(all, 1024, 1));
  until_failure = 0;
  assert_false(MGRID_ROOM(all, room, room + 1));
  until_failure = -1;
  all[room - 1] = 2; /* it is as it was */
  free(all);
}

/* ------------------------------------------------------------------ index */

enum { THINGS = 3000 };

static uint64_t hash_of(int thing, int different) {
  return (uint64_t)(thing % different) * UINT64_C(0x100000001);
}

/* Return how often the index has a number. */
static int count(const mgrid_index *x, int thing, int different) {
  size_t at = 0;
  int n = 0;
  for (int32_t i; (i = mgrid_index_next(x, hash_of(thing, different), &at)) >= 0;) {
    assert_int_equal(i % different, thing % different);
    n += i == thing;
  }
  return n;
}

static void test_index(void **unused) {
  (void)unused;
  static const int all[] = { 1, 7, 500, THINGS };
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    mgrid_index x = { 0 };
    int different = all[k], things = different > 7 ? THINGS : 300;
    assert_int_equal(count(&x, 0, different), 0);
    for (int i = 0; i < things; i++) assert_true(mgrid_index_put(&x, hash_of(i, different), i));
    for (int i = 0; i < things; i++) assert_int_equal(count(&x, i, different), 1);
    assert_int_equal(count(&x, things, different), 0);
    size_t room = x.room;
    mgrid_index_clear(&x);
    for (int i = 0; i < things; i++) assert_int_equal(count(&x, i, different), 0);
    until_failure = 0;
    for (int i = 0; i < things; i++) assert_true(mgrid_index_put(&x, hash_of(i, different), i));
    until_failure = -1;
    assert_int_equal(x.room, room);
    for (int i = 0; i < things; i++) assert_int_equal(count(&x, i, different), 1);
    mgrid_index_free(&x);
  }
}

static void test_starved_index(void **unused) {
  (void)unused;
  mgrid_index x = { 0 };
  until_failure = 0;
  assert_false(mgrid_index_put(&x, 1, 1));
  until_failure = -1;
  for (int i = 0; x.n == 0 || 2 * (x.n + 1) <= x.room; i++)
    assert_true(mgrid_index_put(&x, hash_of(i, THINGS), i));
  size_t n = x.n;
  until_failure = 0;
  assert_false(mgrid_index_put(&x, 1, 1));
  until_failure = -1;
  assert_int_equal(x.n, n);
  for (int i = 0; i < (int)n; i++) assert_int_equal(count(&x, i, THINGS), 1);
  mgrid_index_free(&x);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_limit), cmocka_unit_test(test_too_much),
    cmocka_unit_test(test_slow),  cmocka_unit_test(test_growing),
    cmocka_unit_test(test_index), cmocka_unit_test(test_starved_index),
  };
  return run_program("base", tests, argc, argv);
}
