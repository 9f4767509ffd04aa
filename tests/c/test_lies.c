/* SPDX-License-Identifier: MIT
**
** test_lies.c - what a carrier gives is not what was sent. One rank of two, over a store whose
** values the test makes: each lie is an error that says so, or no notice, and what it says has an
** end and no control characters. The fuzz targets carrier and pmix bend values at random.
*/
#include "program.h"

#include "comm/compare.h"
#include "moongrid_carrier.h"

#include <stdlib.h>

/* A message of carriers/call.c. */
typedef struct parcel {
  mgrid_missing missing;
  uint64_t few[8];
} parcel;

typedef struct store {
  parcel comes;      /* to every call along the tree */
  const void *large; /* what is larger than `few` */
  uint64_t notice[2];
} store;

static mgrid_status put(void *ud, const char *key, const void *data, size_t bytes) {
  (void)ud, (void)key, (void)data, (void)bytes;
  return MGRID_OK;
}

static mgrid_status get(void *ud, int64_t from, const char *key, void *data, size_t bytes,
                        double seconds) {
  const store *s = ud;
  (void)from, (void)seconds;
  if (strstr(key, "opened")) return MGRID_TIMED_OUT;
  if (strstr(key, "notice") && !s->notice[1]) return MGRID_TIMED_OUT;
  const void *is = strstr(key, "notice")      ? s->notice
                   : bytes == sizeof s->comes ? (const void *)&s->comes
                                              : s->large;
  memset(data, 0, bytes);
  if (is) memcpy(data, is, bytes);
  return MGRID_OK;
}

static mgrid_backend *open_over(store *s, int64_t rank) {
  mgrid_carrier c = MGRID_CARRIER_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  c.ud = s, c.rank = rank, c.world = 2, c.timeout = 5, c.put = put, c.get = get;
  mgrid_backend *b = mgrid_carrier_backend(&c, &e);
  assert_non_null(b);
  return b;
}

#define SAYS(e, what) \
  do { \
    assert_int_equal((e).status, MGRID_BACKEND); \
    assert_string_equal((e).message, "another rank sent an impossible value: " what \
                                     "; the carrier, or a rank, gives other bytes " \
                                     "than were sent"); \
  } while (0)

static mgrid_error least_of(int64_t rank, mgrid_missing missing, uint64_t comes, uint64_t own) {
  store s = { .comes = { missing, { comes } } };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_over(&s, rank);
  b->ops->allreduce_min(b, &own, 1, &e);
  mgrid_backend_free(b);
  return e;
}

static void test_missing_ranks(void **state) {
  (void)state;
  for (int64_t rank = 0; rank < 2; rank++) { /* up to the first, and down from it */
    SAYS(least_of(rank, (mgrid_missing){ .n = -1 }, 0, 0), "-1 missing ranks of 2");
    SAYS(least_of(rank, (mgrid_missing){ .n = 3 }, 0, 0), "3 missing ranks of 2");
    SAYS(least_of(rank, (mgrid_missing){ .n = INT64_MAX }, 0, 0),
         "9223372036854775807 missing ranks of 2");
    SAYS(least_of(rank, (mgrid_missing){ .lost = 120 }, 0, 0),
         "lost ranks, which only MPI can report");
    SAYS(least_of(rank, (mgrid_missing){ .n = 1, .rank = { 2 } }, 0, 0), "a missing rank 2 of 2");
    SAYS(least_of(rank, (mgrid_missing){ .n = 1, .rank = { INT64_MIN } }, 0, 0),
         "a missing rank -9223372036854775808 of 2");
  }
  assert_int_equal(least_of(0, (mgrid_missing){ .n = 1, .rank = { 1 } }, 0, 0).status,
                   MGRID_TIMED_OUT); /* this can be */
}

static void test_a_least_that_is_not_the_least(void **state) {
  (void)state;
  assert_int_equal(least_of(1, (mgrid_missing){ .n = 0 }, 7, 8).status, MGRID_OK);
  SAYS(least_of(1, (mgrid_missing){ .n = 0 }, 9, 8), "a minimum above the number of this rank");
}

static void test_ranks(void **state) {
  store s = { 0 };
  mgrid_backend *b = open_over(&s, 0);
  mgrid_peers all = mgrid_peers_all(b);
  uint64_t word = 0;
  mgrid_error e;
  (void)state;
  mgrid_hear(b, 2, &word, sizeof word, anew(&e));
  SAYS(e, "rank 2 of 2");
  mgrid_peers_tell(&all, UINT64_MAX, &word, sizeof word, anew(&e));
  SAYS(e, "rank 18446744073709551615 of 2");
  mgrid_verdict_tell(b, 5, MGRID_OK, NULL, anew(&e));
  SAYS(e, "rank 5 of 2");
  assert_true(mgrid_hear(b, 1, &word, sizeof word, anew(&e)) == MGRID_OK);
  mgrid_backend_free(b);
}

/* Rank 1 failed, it says, with this error. */
static void test_an_error_without_end(void **state) {
  mgrid_error said, e = MGRID_ERROR_INIT;
  (void)state;
  memset(&said, 'x', sizeof said);
  memcpy(said.message, "\033[2J\r\n", 6);
  store s = { .large = &said };
  mgrid_backend *b = open_over(&s, 0);
  /* its status is none */
  assert_int_equal(mgrid_verdict_tell(b, 1, MGRID_OK, NULL, &e), MGRID_BACKEND);
  assert_string_equal(mgrid_status_text(e.status), "backend failed");
  char begin[64];
  snprintf(begin, sizeof begin, "%.30s", e.message);
  assert_string_equal(begin, "rank 1: \\x1b[2J\\x0d\\nxxxxxxxxx");
  assert_true(strlen(e.message) < sizeof e.message);
  mgrid_backend_free(b);
}

static void test_a_notice_of_nobody(void **state) {
  store s = { .notice = { 2, 1 } };
  mgrid_backend *b = open_over(&s, 0);
  (void)state;
  b->ops->carrier->phase(b, 1);
  assert_int_equal(b->ops->carrier->heard(b), -1);
  s.notice[0] = UINT64_MAX;
  b->ops->carrier->phase(b, 2);
  assert_int_equal(b->ops->carrier->heard(b), -1);
  s.notice[0] = 1;
  b->ops->carrier->phase(b, 3);
  assert_int_equal(b->ops->carrier->heard(b), 1);
  mgrid_backend_free(b);
}

/* The root keeps what it has, whatever comes down to it. */
static void test_the_root_keeps_its_data(void **state) {
  char own[100], lie[100];
  mgrid_error e = MGRID_ERROR_INIT;
  store s = { .large = lie };
  mgrid_backend *b = open_over(&s, 1);
  (void)state;
  memset(own, 'a', sizeof own), memset(lie, 'b', sizeof lie);
  assert_int_equal(b->ops->bcast(b, own, sizeof own, 1, &e), MGRID_OK);
  for (size_t i = 0; i < sizeof own; i++) assert_int_equal(own[i], 'a');
  mgrid_backend_free(b);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_missing_ranks),
    cmocka_unit_test(test_a_least_that_is_not_the_least),
    cmocka_unit_test(test_ranks),
    cmocka_unit_test(test_an_error_without_end),
    cmocka_unit_test(test_a_notice_of_nobody),
    cmocka_unit_test(test_the_root_keeps_its_data),
  };
  return run_program("lies", tests, argc, argv);
}
