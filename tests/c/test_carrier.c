/* SPDX-License-Identifier: MIT
**
** test_carrier.c - jobs over the host's own functions (mgrid_carrier), on each kind of host that
** hub.h plays: every promise is tried with ranks that fail, differ, or never come.
*/
#include "hub.h"

#include <math.h>

static const int64_t worlds[] = { 1, 2, 6, 17, 18, 40 };
enum { WORLDS = sizeof worlds / sizeof worlds[0], MOST = 40 };

/* ---------------------------------------------------------- calls over all ranks */

static void minimum(rank *r) {
  int64_t world = r->b->world;
  uint64_t words[MOST + 1];
  size_t n = (size_t)(r->number ? world + 1 : 3);
  r->right = true;
  for (int call = 0; call < 5; call++) {
    for (size_t i = 0; i < n; i++)
      words[i] = (uint64_t)(1000 * call) + (uint64_t)((r->b->rank + (int64_t)i) % world);
    if (r->b->ops->allreduce_min(r->b, words, n, &r->err)) return;
    for (size_t i = 0; i < n; i++) r->right &= words[i] == (uint64_t)(1000 * call);
  }
}

static void gather(rank *r) {
  static const size_t sizes[] = { 1, 8, 24, 300 };
  unsigned char mine[300], all[300 * MOST];
  r->right = true;
  for (size_t i = 0; i < 4; i++) {
    memset(mine, (int)(r->b->rank + 1 + (int64_t)i), sizeof mine);
    if (r->b->ops->allgather(r->b, mine, all, sizes[i], &r->err)) return;
    for (int64_t k = 0; k < r->b->world; k++)
      for (size_t at = 0; at < sizes[i]; at++)
        r->right &= all[(size_t)k * sizes[i] + at] == k + 1 + (int64_t)i;
  }
}

static void spread(rank *r) {
  char data[500], want[500];
  r->right = true;
  for (int64_t root = 0; root < r->b->world; root += 5) {
    size_t bytes = root % 2 ? 500 : 9;
    memset(want, (int)(root + 1), sizeof want);
    memset(data, r->b->rank == root ? (int)(root + 1) : 99, sizeof data);
    if (r->b->ops->bcast(r->b, data, bytes, root, &r->err)) return;
    r->right &= memcmp(data, want, bytes) == 0;
  }
}

static void test_calls(void **state) {
  static void (*const calls[])(rank *) = { minimum, gather, spread };
  rank r[MOST];
  (void)state;
  for (kind k = 0; k < KINDS; k++)
    for (int w = 0; w < WORLDS; w++)
      for (int call = 0; call < 4; call++) {
        size_t left = run(k, worlds[w], 20, -1, call == 3, calls[call % 3], r);
        for (int64_t i = 0; i < worlds[w]; i++) {
          assert_string_equal(r[i].err.message, "");
          assert_true(r[i].right);
        }
        if (k == STORE || k == MESSAGES) assert_int_equal(left, 0); /* every message was read */
      }
}

/* -------------------------------------------------------- agreement and the verdict */

static mgrid_plan *plan_of(int64_t world, int64_t tp, const char *backend, mgrid_error *err) {
  const mgrid_dim dims[] = { { "tp", tp }, { "dp", MGRID_FILL } };
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_topology *t = mgrid_topology_new(world, err);
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 2, dims, err);
  mgrid_family *f = mgrid_grid_along(g, 1, &dims[1].name, MGRID_GRID_ORDER, err);
  o.backend = backend;
  mgrid_topology_add(t, "dp", f, &o, err);
  mgrid_plan *p = f ? mgrid_plan_new(t, err) : NULL;
  mgrid_family_free(f);
  mgrid_grid_free(g);
  mgrid_topology_free(t);
  return p;
}

/* number: the rank whose plan differs, and below 0 (-1 - it) the rank without one. 100: all are
** equal. */
static void agree(rank *r) {
  int64_t me = r->b->rank, world = r->b->world;
  mgrid_plan *p =
      plan_of(world, me == r->number ? 1 : 2, "", me == -1 - r->number ? NULL : &r->err);
  mgrid_machine m = MGRID_MACHINE_INIT;
  if (me == -1 - r->number) {
    mgrid_plan_free(p);
    p = plan_of(world, 5, "", &r->err);
  }
  mgrid_state *s = mgrid_materialize(p, r->b, "train", &r->err);
  mgrid_plan_free(p);
  if (!s) return;
  const mgrid_group *g = mgrid_state_group(s, "dp", &r->err);
  mgrid_state_machine(s, &m, &r->err);
  r->right = mgrid_group_size(g) == world / 2 && mgrid_group_position(g) == me / 2
             && !mgrid_group_native(g) && strcmp(mgrid_group_backend(g), "carrier") == 0
             && m.machines == 1 && m.local_rank == me
             && mgrid_state_prove(s, NULL, &r->err) == MGRID_OK;
  mgrid_state_free(s);
}

static void test_agreement(void **state) {
  static const char differ[] =
      "ranks do not have the same plan: rank 3 has \"family dp: (18:1) x (1)\", rank 0 has "
      "\"family dp: (9:2) x (2:1)\"; differing from rank 0: 3";
  static const char none[] =
      "ranks do not have the same plan: rank 7 has none (tp 5 does not divide the 18 ranks; ";
  rank r[MOST];
  (void)state;
  for (kind k = 0; k < KINDS; k++) {
    run(k, 18, 20, -1, 100, agree, r);
    for (int i = 0; i < 18; i++) assert_string_equal(r[i].err.message, "");
    for (int i = 0; i < 18; i++) assert_true(r[i].right);
    run(k, 18, 20, -1, 3, agree, r);
    for (int i = 0; i < 18; i++) assert_int_equal(r[i].err.status, MGRID_DISAGREE);
    for (int i = 0; i < 18; i++) assert_string_equal(r[i].err.message, differ);
    run(k, 18, 20, -1, -8, agree, r);
    for (int i = 0; i < 18; i++) { /* the error of rank 7 is its own: it came first */
      assert_int_equal(r[i].err.status, i == 7 ? MGRID_REFUSED : MGRID_DISAGREE);
      assert_memory_equal(r[i].err.message, i == 7 ? strchr(none, '(') + 1 : none,
                          i == 7 ? 33 : sizeof none - 1);
    }
  }
}

static void wants_mpi(rank *r) {
  mgrid_plan *p = plan_of(r->b->world, 2, r->number ? "nccl" : "mpi", &r->err);
  mgrid_state *s = mgrid_materialize(p, r->b, "train", &r->err);
  r->right = !s;
  mgrid_plan_free(p);
  mgrid_state_free(s);
}

static void test_it_makes_no_communicators(void **state) {
  rank r[MOST];
  (void)state;
  run(STORE, 4, 20, -1, 0, wants_mpi, r);
  assert_int_equal(r[0].err.status, MGRID_REFUSED);
  assert_string_equal(r[0].err.message, "train/dp[0] needs the backend 'mpi', and the carrier of "
                                        "this job is carrier, without MPI; give "
                                        "its family backend = \"none\", or start the job over mpi");
  run(STORE, 4, 20, -1, 1, wants_mpi, r);
  assert_string_equal(
      r[1].err.message,
      "train/dp[1] needs the backend 'nccl', and this job runs on carrier alone; start "
      "it with --backend nccl, or open that backend");
}

/* ------------------------------------------------------------------- who never comes */

static void come(rank *r) {
  uint64_t word = 1;
  double begun = mgrid_now();
  r->b->ops->allreduce_min(r->b, &word, 1, &r->err);
  r->right = mgrid_now() - begun < 10;
  mgrid_error again = MGRID_ERROR_INIT;
  r->right &= r->b->ops->allgather(r->b, &word, &word, sizeof word, &again) == MGRID_TIMED_OUT
              && strcmp(again.message,
                        "carrier: an earlier call over all ranks did not end; the job cannot go on")
                     == 0;
}

static void test_who_never_comes_is_named(void **state) {
  /* the root, one with ranks below it, one below that, the last */
  static const int64_t absent[] = { 0, 4, 5, 39 };
  rank r[MOST];
  (void)state;
  for (kind k = 0; k < KINDS; k++)
    for (int a = k == STORE ? 0 : (int)k % 3; a < 4; a += k == STORE ? 1 : 2) {
      char want[128];
      run(k, 40, 1, absent[a], 0, come, r); /* 40 threads may have two cores */
      snprintf(want, sizeof want, "after 1 seconds not all ranks had come: rank %lld is not there",
               (long long)absent[a]);
      for (int i = 0; i < 40; i++) {
        if (i == absent[a]) continue;
        assert_int_equal(r[i].err.status, MGRID_TIMED_OUT);
        assert_string_equal(r[i].err.message, want);
        assert_true(r[i].err.nmissing == 1 && r[i].err.missing[0] == absent[a]
                    && r[i].err.waited == 1);
        assert_true(r[i].right);
      }
    }
}

/* ------------------------------------------------------------------------- messages */

/* Everybody to everybody, some under equal tags, in two phases; nobody reads the second message of
** phase 1. */
static void talk(rank *r) {
  const mgrid_carrier_ops *c = r->b->ops->carrier;
  int64_t me = r->b->rank, world = r->b->world;
  int local_rank = -1, local_size = -1;
  r->right = c->start(r->b, 20, &local_rank, &local_size, &r->err) == MGRID_OK && local_rank == me
             && local_size == world;
  for (uint64_t phase = 1; phase <= 2; phase++) {
    c->phase(r->b, phase);
    for (int64_t to = 0; to < world; to++)
      for (int64_t i = 0; i < 3 && to != me; i++) {
        int64_t text[4] = { me, to, i, (int64_t)phase };
        r->right &= c->send(r->b, to, (int)(i % 2), text, sizeof text, 5, &r->err) == MGRID_OK;
      }
    for (int64_t from = 0; from < world; from++)
      for (int64_t i = 0; i < (phase == 1 ? 2 : 3) && from != me; i++) {
        int64_t text[4] = { 0 };
        r->right &= c->recv(r->b, from, (int)(i % 2), text, sizeof text, 5, &r->err) == MGRID_OK
                    && text[0] == from && text[1] == me && text[2] == i
                    && text[3] == (int64_t)phase;
      }
  }
  uint64_t none;
  double begun = mgrid_now();
  if (me == 0)
    r->right &= c->recv(r->b, world - 1, 7, &none, sizeof none, 0.2, &r->err) == MGRID_TIMED_OUT;
  r->right &= mgrid_now() - begun < 5;
}

static void test_messages(void **state) {
  rank r[MOST];
  (void)state;
  for (kind k = 0; k < KINDS; k++) {
    run(k, 6, 20, -1, 0, talk, r);
    for (int i = 0; i < 6; i++) {
      assert_true(r[i].right);
      assert_string_equal(r[i].err.message, i ? "" : "rank 5 did not come within 0.2 seconds");
    }
  }
}

/* Rank 2 gives up: once in a phase that ends, once in one in which the others wait. It tells all
** but rank 1. */
static void give_up(rank *r) {
  const mgrid_carrier_ops *c = r->b->ops->carrier;
  int64_t me = r->b->rank, heard = -1;
  uint64_t word = 0;
  int local;
  c->start(r->b, 20, &local, &local, &r->err);
  c->phase(r->b, 1);
  for (int64_t to = 0; to < r->b->world && me == 2; to++) c->tell(r->b, to);
  r->right = r->b->ops->allreduce_min(r->b, &word, 1, &r->err) == MGRID_OK;
  c->phase(r->b, 2);
  for (int look = 0; look < 20 && heard < 0; look++, mgrid_pause(2000)) heard = c->heard(r->b);
  r->right &= heard == -1; /* that was in phase 1 */
  r->right &= r->b->ops->allreduce_min(r->b, &word, 1, &r->err) == MGRID_OK;
  double begun = mgrid_now();
  for (int64_t to = 0; to < r->b->world && me == 2; to++)
    if (to != 1) c->tell(r->b, to);
  if (me == 2) return;
  mgrid_outcome s = c->recv(r->b, 3, 7, &word, sizeof word, me == 1 ? 0.5 : 10, &r->err);
  r->right &= s == (me == 1 ? MGRID_TIMED_OUT : MGRID_GAVE_UP) && mgrid_now() - begun < 5;
  /* each one once */
  for (int look = 0; look < 100; look++, mgrid_pause(2000)) r->right &= c->heard(r->b) == -1;
}

static void test_notices(void **state) {
  rank r[MOST];
  (void)state;
  for (kind k = 0; k < KINDS; k++) {
    run(k, 20, 20, -1, 0, give_up, r);
    for (int i = 0; i < 20; i++) {
      if (!r[i].right) print_message("kind %d, rank %d: %s\n", (int)k, i, r[i].err.message);
      assert_true(r[i].right);
      assert_string_equal(r[i].err.message, i == 2   ? ""
                                            : i == 1 ? "rank 3 did not come within 0.5 seconds"
                                                     : "rank 2 gave up");
    }
  }
}

/* ------------------------------------------------------------------- life and errors */

/* Three backends one after the other over one store; the first ends with a message that nobody
** reads. */
static void live_again(rank *r) {
  r->right = true;
  for (int life = 0; life < 3; life++) {
    mgrid_carrier c = carrier_of(&r->end, 20);
    c.close = NULL;
    mgrid_backend *b = mgrid_carrier_backend(&c, &r->err);
    const mgrid_carrier_ops *o = b->ops->carrier;
    uint64_t word = (uint64_t)life, got = 99;
    int64_t next = (b->rank + 1) % b->world, prev = (b->rank + b->world - 1) % b->world;
    r->right &= b->ops->allreduce_min(b, &word, 1, &r->err) == MGRID_OK && word == (uint64_t)life;
    o->phase(b, 2);
    r->right &= o->send(b, next, 3, &word, sizeof word, 5, &r->err) == MGRID_OK;
    if (life > 0)
      r->right &= o->recv(b, prev, 3, &got, sizeof got, 5, &r->err) == MGRID_OK
                  && got == (uint64_t)life;
    mgrid_backend_free(b);
  }
}

static void test_backends_over_one_store_are_kept_apart(void **state) {
  rank r[MOST];
  (void)state;
  for (kind k = 0; k < KINDS; k++) {
    /* the hub's own messages and gathers do not know backends */
    if (k == MESSAGES || k == GATHERS) continue;
    run(k, 4, 20, -1, 0, live_again, r);
    for (int i = 0; i < 4; i++) {
      assert_string_equal(r[i].err.message, "");
      assert_true(r[i].right);
    }
  }
}

static void broken_host(rank *r) {
  uint64_t word = 1;
  r->end.breaks = true;
  r->b->ops->allreduce_min(r->b, &word, 1, &r->err);
}

static void test_a_host_that_fails(void **state) {
  static const char *const call[] = { "put", "put", "send", "allgather" };
  rank r[MOST];
  (void)state;
  for (kind k = 0; k < KINDS; k++) {
    char want[64];
    run(k, 3, 0.3, -1, 0, broken_host, r);
    snprintf(want, sizeof want, "carrier: %s failed: the hub is gone", call[k]);
    assert_int_equal(r[2].err.status, MGRID_BACKEND);
    assert_string_equal(r[2].err.message, want);
  }
}

static void full_host(rank *r) {
  uint64_t word = 1;
  r->end.full = r->end.rank == 0;
  r->b->ops->allreduce_min(r->b, &word, 1, &r->err);
}

static void test_a_message_that_nobody_takes(void **state) {
  rank r[MOST];
  (void)state;
  run(MESSAGES, 3, 0.3, -1, 0, full_host, r);
  assert_int_equal(r[0].err.status, MGRID_TIMED_OUT);
  assert_string_equal(r[0].err.message, "rank 1 did not take a message within 0.3 seconds");
}

static void test_refusals(void **state) {
  hub h = { .kind = STORE, .world = 4 };
  end e = { &h, 1, 0, false, false };
  mgrid_error err;
  mgrid_carrier c;
  (void)state;
#define REFUSED(change, as, text) \
  c = carrier_of(&e, 20); \
  change; \
  assert_null(mgrid_carrier_backend(&c, anew(&err))); \
  assert_int_equal(err.status, as); \
  assert_string_equal(err.message, text)
  assert_null(mgrid_carrier_backend(NULL, anew(&err)));
  assert_string_equal(err.message, "no carrier was given");
  REFUSED(c.size = 0, MGRID_BAD_STRUCT, "mgrid_carrier without its INIT macro (size 0)");
  REFUSED(c.rank = 4, MGRID_OUT_OF_RANGE, "carrier: rank 4 is out of range in a world of 4");
  REFUSED(c.rank = -1, MGRID_OUT_OF_RANGE, "carrier: rank -1 is out of range in a world of 4");
  REFUSED(c.world = 0, MGRID_OUT_OF_RANGE, "carrier: rank 1 is out of range in a world of 0");
  REFUSED(c.get = NULL, MGRID_USAGE, "carrier: 'put' is there without 'get'");
  REFUSED(c.put = NULL, MGRID_USAGE, "carrier: 'get' is there without 'put'");
  REFUSED(c.send = hub_send, MGRID_USAGE, "carrier: 'send' is there without 'recv'");
  REFUSED(c.recv = hub_recv, MGRID_USAGE, "carrier: 'recv' is there without 'send'");
  REFUSED((c.put = NULL, c.get = NULL), MGRID_USAGE,
          "carrier: there is neither a store (put and get) nor messages (send and recv)");
  REFUSED(c.timeout = (double)NAN, MGRID_OUT_OF_RANGE,
          "carrier: a timeout is 0 (the default) seconds or more, not nan");
  REFUSED(c.timeout = -1, MGRID_OUT_OF_RANGE,
          "carrier: a timeout is 0 (the default) seconds or more, not -1");
  REFUSED((e.breaks = true), MGRID_BACKEND, "carrier: put failed: the hub is gone");
}

static void test_by_name(void **state) {
  mgrid_error err;
  char text[512];
  (void)state;
  assert_null(mgrid_backend_open("carrier", NULL, anew(&err)));
  assert_string_equal(err.message,
                      "the carrier backend has no world of its own: use mgrid_carrier_backend");
  assert_null(mgrid_backend_open("pmx", NULL, anew(&err)));
  assert_string_equal(err.message,
                      unknown_backend(text, "pmx", "pmix", "auto", MGRID_BACKENDS_OPENED, ""));
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_calls),
    cmocka_unit_test(test_agreement),
    cmocka_unit_test(test_it_makes_no_communicators),
    cmocka_unit_test(test_who_never_comes_is_named),
    cmocka_unit_test(test_messages),
    cmocka_unit_test(test_notices),
    cmocka_unit_test(test_backends_over_one_store_are_kept_apart),
    cmocka_unit_test(test_a_host_that_fails),
    cmocka_unit_test(test_a_message_that_nobody_takes),
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_by_name),
  };
  return run_program("carrier", tests, argc, argv);
}
