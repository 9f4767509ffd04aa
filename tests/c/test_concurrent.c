/* SPDX-License-Identifier: MIT
**
** test_concurrent.c - families that are used at the same time: what lists are refused; they share
** no communicator, in a state and between states; others go on sharing; the order of launches;
** priorities; the plan tells it all.
*/
#include "topologies.h"

#include "comm/state.h"

enum { CASES = 1000 };

static mgrid_error why = MGRID_ERROR_INIT; /* of the last call */

/* Families of 8 ranks: tp; dp, ep, grads and copy with equal groups; one of single ranks; one that
** covers. */
static mgrid_topology *topology(const mgrid_options *dp) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 4 } };
  const char *names[] = { "tp", "dp" };
  const mgrid_dim lone[] = { { "one", 1 }, { "all", MGRID_FILL } };
  const char *one = "one";
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 2, dims, anew(&why));
  mgrid_grid *h = mgrid_grid_new(mgrid_world(8), 2, lone, anew(&why));
  mgrid_family *tp = mgrid_grid_along(g, 1, &names[0], MGRID_GRID_ORDER, anew(&why));
  mgrid_family *along = mgrid_grid_along(g, 1, &names[1], MGRID_GRID_ORDER, anew(&why));
  mgrid_family *single = mgrid_grid_along(h, 1, &one, MGRID_GRID_ORDER, anew(&why));
  mgrid_family *ring = mgrid_family_neighbours(along, 1, true, anew(&why));
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  assert_int_equal(mgrid_topology_add(t, "tp", tp, NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "dp", along, dp, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "ep", along, NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "grads", along, NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "copy", along, NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "single", single, NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "ring", ring, NULL, anew(&why)), MGRID_OK);
  mgrid_family_free(tp);
  mgrid_family_free(along);
  mgrid_family_free(single);
  mgrid_family_free(ring);
  mgrid_grid_free(g);
  mgrid_grid_free(h);
  return t;
}

#define LIST(t, ...) \
  mgrid_topology_concurrent(t, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), \
                            (const char *[]){ __VA_ARGS__ }, anew(&why))

static mgrid_plan *plan_of(mgrid_topology *t) {
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  assert_non_null(p);
  mgrid_topology_free(t);
  return p;
}

static void assert_text(const mgrid_plan *p, const char *family, const char *options) {
  assert_string_equal(p->content.entry[mgrid_content_find(&p->content, family)].choice->text,
                      options);
}

static void assert_shares(const mgrid_plan *p, const char *family, const char *other) {
  int64_t at = p->shares[mgrid_content_find(&p->content, family)];
  assert_string_equal(at < 0 ? "" : mgrid_plan_family_name(p, (size_t)at), other);
}

/* ------------------------------------------------------------------ refusals */

static void test_refused(void **unused) {
  (void)unused;
  mgrid_topology *t = topology(NULL);
  assert_int_equal(LIST(t, "dp", "ept"), MGRID_UNKNOWN_NAME);
  assert_string_equal(
      why.message,
      "concurrent: unknown family 'ept'; nearest is 'ep' (tp, dp, ep, grads, copy, single, "
      "ring)");
  assert_int_equal(LIST(t, "dp", NULL), MGRID_USAGE);
  assert_string_equal(why.message, "the name of the family is NULL");
  assert_int_equal(mgrid_topology_concurrent(t, 2, NULL, anew(&why)), MGRID_USAGE);
  assert_string_equal(why.message, "the list of 2 families is NULL");
  assert_int_equal(LIST(t, "dp", ""), MGRID_UNKNOWN_NAME);
  assert_string_equal(
      why.message, "concurrent: unknown family ''; known: tp, dp, ep, grads, copy, single, ring");
  assert_int_equal(LIST(t, "dp", "ep", "dp"), MGRID_DUPLICATE);
  assert_string_equal(why.message, "concurrent: family 'dp' is in the list twice");
  assert_int_equal(LIST(t, "dp"), MGRID_REFUSED);
  assert_string_equal(why.message, "concurrent: a list has two families or more, not 1");
  assert_int_equal(mgrid_topology_concurrent(t, 0, NULL, anew(&why)), MGRID_REFUSED);
  assert_string_equal(why.message, "concurrent: a list has two families or more, not 0");
  assert_int_equal(t->content.nconcurrent, 0);

  assert_int_equal(LIST(t, "dp", "ep", "tp"), MGRID_OK);
  assert_int_equal(LIST(t, "tp", "grads"), MGRID_OK);
  assert_int_equal(LIST(t, "tp", "dp"), MGRID_REFUSED);
  assert_string_equal(
      why.message, "concurrent: 'tp' is before 'dp' in this list, but after it by earlier lists");
  assert_int_equal(LIST(t, "copy", "grads", "ring", "ep"), MGRID_REFUSED); /* over two lists */
  assert_string_equal(
      why.message,
      "concurrent: 'grads' is before 'ep' in this list, but after it by earlier lists");
  assert_int_equal(LIST(t, "copy", "dp", "grads"), MGRID_OK);
  assert_int_equal(t->content.nconcurrent, 3);
  assert_null(mgrid_plan_new(t, anew(&why))); /* a list that could not be added is never left out */
  assert_non_null(strstr(why.message, "unknown family 'ept'"));
  mgrid_error chain = MGRID_ERROR_INIT;
  assert_int_equal(mgrid_topology_concurrent(NULL, 2, NULL, &chain), MGRID_USAGE);
  assert_int_equal(chain.status, MGRID_OK);
  mgrid_topology_free(t);
}

/* A family that is taken out is in no list any more, and a list of one is none. */
static void test_removed(void **unused) {
  (void)unused;
  mgrid_topology *t = topology(NULL);
  LIST(t, "dp", "ep", "grads");
  LIST(t, "dp", "tp");
  assert_true(mgrid_topology_remove(t, "dp"));
  assert_int_equal(t->content.nconcurrent, 1);
  mgrid_plan *p = plan_of(t);
  assert_shares(p, "grads", "");
  assert_shares(p, "copy", "ep");
  mgrid_plan_free(p);
}

/* ------------------------------------------------------------------- sharing */

static void test_apart(void **unused) {
  (void)unused;
  mgrid_plan *shared = plan_of(topology(NULL));
  assert_shares(shared, "ep", "dp");
  assert_shares(shared, "grads", "dp");
  mgrid_topology *t = topology(NULL);
  LIST(t, "tp", "ep", "dp");
  LIST(t, "ep", "grads");
  mgrid_plan *p = plan_of(t);
  assert_text(p, "tp", " high_priority"); /* the first of its list */
  assert_text(p, "dp", " lane=1");        /* tp has lane 0, though its groups are others */
  assert_text(p, "ep", " high_priority lane=2");
  assert_text(p, "grads", "");
  assert_text(p, "copy", " lane=1"); /* in no list: goes with the first of equal groups */
  assert_shares(p, "ep", "");
  assert_shares(p, "grads", "");
  assert_shares(p, "copy", "dp");
  assert_int_not_equal(memcmp(shared->digest, p->digest, sizeof p->digest), 0);
  mgrid_plan_free(shared);
  mgrid_plan_free(p);
}

static void test_priority(void **unused) {
  (void)unused;
  mgrid_options high = MGRID_OPTIONS_INIT, none = MGRID_OPTIONS_INIT, unique = MGRID_OPTIONS_INIT;
  high.high_priority = true;
  none.backend = "none";
  unique.unique = true;
  mgrid_topology *t = topology(&high); /* dp says so itself: nothing is given */
  LIST(t, "ep", "dp");
  mgrid_plan *p = plan_of(t);
  assert_text(p, "ep", " lane=1");
  assert_text(p, "dp", " high_priority");
  mgrid_plan_free(p);
  t = topology(&none); /* dp makes none, nor does a family of single ranks: the next is the first */
  LIST(t, "single", "dp", "ep", "grads");
  p = plan_of(t);
  assert_text(p, "single", "");
  assert_text(p, "dp", " backend=none");
  assert_text(p, "ep", " high_priority");
  assert_text(p, "grads", " lane=1");
  mgrid_plan_free(p);
  t = topology(&unique); /* needs no lane */
  LIST(t, "dp", "ep", "grads");
  p = plan_of(t);
  assert_text(p, "dp", " unique high_priority");
  assert_text(p, "ep", "");
  assert_text(p, "grads", " lane=1");
  mgrid_plan_free(p);
}

static const mgrid_shared *comm_of(const mgrid_state *s, const char *family) {
  const mgrid_shared *c = mgrid_state_group(s, family, anew(&why))->comm;
  assert_non_null(c);
  return c;
}

/* Between states: dp with dp and ep with ep, but dp never with ep. */
static void test_states(void **unused) {
  (void)unused;
  mgrid_topology *t = topology(NULL), *u = topology(NULL);
  LIST(t, "dp", "ep", "grads");
  LIST(u, "grads", "ep", "dp"); /* another order of launches, the same lanes */
  mgrid_plan *plain = plan_of(topology(NULL)), *p = plan_of(t), *q = plan_of(u);
  mgrid_backend *b = mgrid_backend_dry(8, 3, anew(&why));
  mgrid_state *first = mgrid_materialize(plain, b, "plain", anew(&why));
  mgrid_state *actor = mgrid_materialize(p, b, "actor", anew(&why));
  mgrid_state *critic = mgrid_materialize(p, b, "critic", anew(&why));
  mgrid_state *other = mgrid_materialize(q, b, "other", anew(&why));
  assert_true(first && actor && critic && other);
  static const char *const listed[] = { "dp", "ep", "grads" };
  mgrid_state *const states[] = { actor, critic, other };
  assert_ptr_equal(comm_of(first, "dp"), comm_of(first, "ep"));
  for (int a = 0; a < 3; a++)
    for (int c = 0; c < 3; c++)
      for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
          if (i != k)
            assert_ptr_not_equal(comm_of(states[a], listed[i]), comm_of(states[c], listed[k]));
          if (i == k && a < 2 && c < 2)
            assert_ptr_equal(comm_of(states[a], listed[i]), comm_of(states[c], listed[k]));
        }
  assert_ptr_equal(comm_of(actor, "ep"), comm_of(other, "ep")); /* neither is first */
  assert_ptr_equal(comm_of(actor, "copy"), comm_of(actor, "dp"));
  assert_ptr_equal(comm_of(actor, "tp"), comm_of(first, "tp"));
  mgrid_state *const all[] = { first, actor, critic, other };
  for (int i = 0; i < 4; i++) mgrid_state_free(all[i]);
  mgrid_backend_free(b);
  mgrid_plan_free(plain);
  mgrid_plan_free(p);
  mgrid_plan_free(q);
}

/* Random topologies and lists: the laws of plans hold, and on no rank do two of a list share. */
static void test_random(void **unused) {
  (void)unused;
  int64_t apart = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 24);
    mgrid_plan *before = mgrid_plan_new(t.topology, anew(&why));
    bool listed[DRAWN_FAMILIES][DRAWN_FAMILIES] = { 0 };
    for (int64_t more = rng_between(&r, 1, 3); more > 0 && t.n > 1; more--) {
      const char *names[DRAWN_FAMILIES];
      size_t n = 0, at[DRAWN_FAMILIES];
      /* in the order of the topology, so no list contradicts another */
      for (size_t i = 0; i < t.n; i++)
        if (rng_chance(&r, 50)) at[n] = i, names[n++] = t.topology->content.entry[i].name;
      if (n < 2) continue;
      check(&r, mgrid_topology_concurrent(t.topology, n, names, anew(&why)) == MGRID_OK);
      for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) listed[at[i]][at[k]] = i != k;
    }
    mgrid_plan *p = mgrid_plan_new(t.topology, anew(&why));
    mgrid_created seen = { 0 };
    check(&r, p != NULL);
    if (mgrid_plan_verify(p, 0, &seen, anew(&why)))
      fail_msg("%s; MOONGRID_SEED=%" PRIu64, why.message, seed);
    mgrid_plan_counts n = MGRID_PLAN_COUNTS_INIT, was = MGRID_PLAN_COUNTS_INIT;
    mgrid_plan_count(p, -1, &n, NULL);
    mgrid_plan_count(before, -1, &was, NULL);
    check(&r, seen.communicators == n.communicators);
    apart += n.communicators > was.communicators;
    for (int64_t rank = 0; rank < t.world; rank++) {
      mgrid_view v;
      check(&r, mgrid_view_init(&v, p, rank, anew(&why)) == MGRID_OK);
      for (size_t i = 0; i < v.nmembers; i++)
        for (size_t k = 0; k < v.nmembers; k++)
          check(&r, v.member[i].comm < 0 || v.member[i].comm != v.member[k].comm
                        || !listed[v.member[i].entry][v.member[k].entry]);
      mgrid_view_free(&v);
    }
    mgrid_plan_free(before);
    mgrid_plan_free(p);
    topology_free(&t);
  }
  assert_true(apart > CASES / 10);
}

/* -------------------------------------------------------------- launch order */

static int64_t launch(const mgrid_state *s, const char *family) {
  return mgrid_group_launch_order(mgrid_state_group(s, family, anew(&why)));
}

static void test_launch(void **unused) {
  (void)unused;
  mgrid_topology *t = topology(NULL);
  LIST(t, "ring", "ep", "dp");
  LIST(t, "ep", "tp");
  mgrid_plan *p = plan_of(t);
  int64_t rounds = mgrid_family_rounds(p->content.entry[6].family);
  mgrid_backend *b = mgrid_backend_dry(8, 5, anew(&why));
  mgrid_state *s = mgrid_materialize(p, b, NULL, anew(&why));
  /* grads, copy and single wait for none; then ring, with a number for each of its rounds; then
  ** what waits for it */
  assert_int_equal(launch(s, "grads"), 0);
  assert_int_equal(launch(s, "copy"), 1);
  assert_int_equal(launch(s, "single"), 2);
  for (size_t nth = 0; nth < 2; nth++) {
    const mgrid_group *g = mgrid_state_group_nth(s, "ring", nth, anew(&why));
    assert_int_equal(mgrid_group_launch_order(g),
                     3 + mgrid_family_round(p->content.entry[6].family, mgrid_group_index(g)));
  }
  assert_int_equal(launch(s, "ep"), 3 + rounds);
  assert_int_equal(launch(s, "tp"), 4 + rounds);
  assert_int_equal(launch(s, "dp"), 5 + rounds);
  assert_int_equal(mgrid_group_launch_order(NULL), -1);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* On every rank the numbers differ; all members of a group have the same, which the rule alone
** gives. */
static void test_launch_differs(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES / 4; seed++) {
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 24);
    mgrid_plan *p = mgrid_plan_new(t.topology, anew(&why));
    for (int64_t rank = 0; rank < t.world; rank++) {
      mgrid_view v;
      check(&r, mgrid_view_init(&v, p, rank, anew(&why)) == MGRID_OK);
      for (size_t i = 0; i < v.nmembers; i++)
        for (size_t k = 0; k < i; k++)
          check(&r, mgrid_plan_launch(p, v.member[i].entry, v.member[i].group)
                        != mgrid_plan_launch(p, v.member[k].entry, v.member[k].group));
      mgrid_view_free(&v);
    }
    mgrid_plan_free(p);
    topology_free(&t);
  }
}

/* ------------------------------------------------------------- text and JSON */

static int add_text(void *text, const char *s, size_t len) {
  mgrid_text_put(text, s, len);
  return 0;
}

static void test_printed(void **unused) {
  (void)unused;
  mgrid_topology *t = topology(NULL), *u = topology(NULL);
  LIST(t, "dp", "ep");
  LIST(t, "dp", "tp", "ring");
  LIST(u, "dp", "ep");
  LIST(u, "tp", "dp");
  mgrid_plan *p = plan_of(t), *q = plan_of(u);
  mgrid_text text = { 0 };
  assert_int_equal(mgrid_plan_print(p, add_text, &text, anew(&why)), MGRID_OK);
  assert_non_null(strstr(
      text.data, "world 8\nconcurrent dp ep\nconcurrent dp tp ring\nfamily tp: (2:1) x (4:2)\n"
                 "family dp: (4:2) x (2:1) high_priority lane=1\nfamily ep: (4:2) x (2:1)\n"));
  text.len = 0;
  assert_int_equal(mgrid_plan_print_json(p, 0, add_text, &text, anew(&why)), MGRID_OK);
  assert_non_null(
      strstr(text.data, "\"concurrent\": [[\"dp\",\"ep\"], [\"dp\",\"tp\",\"ring\"]],"));
  assert_non_null(
      strstr(text.data, "\"tp\": {\"index\": 0, \"position\": 0, \"size\": 2, \"communicator\": 0, "
                        "\"launch_order\": 1, \"ranks\": [0,1]}"));
  assert_non_null(strstr(text.data, "\"options\": {\"high_priority\": true, \"lane\": 1}}"));
  text.len = 0;
  assert_int_equal(mgrid_plan_print_json(p, -1, add_text, &text, anew(&why)), MGRID_OK);
  assert_non_null(strstr(text.data,
                         "\"coverage\": \"partition\", \"launch_order\": 0, \"shares\": null, "
                         "\"options\": {\"high_priority\": true, \"lane\": 1}"));
  text.len = 0;
  assert_int_equal(mgrid_plan_diff(p, q, 0, NULL, add_text, &text, anew(&why)), MGRID_OK);
  assert_non_null(strstr(text.data, "- concurrent dp, tp, ring\n+ concurrent tp, dp\n"));
  assert_null(strstr(text.data, "concurrent dp, ep"));
  mgrid_text_free(&text);
  mgrid_plan_free(p);
  mgrid_plan_free(q);
}

/* As many names as there may be in all lists, and one more. */
static void test_names_in_lists(void **unused) {
  enum { EACH = 64, LISTS = MGRID_CONCURRENT_MAX / EACH };
  (void)unused;
  char name[EACH][16];
  const char *names[EACH];
  const mgrid_dim dim = { "x", 8 };
  const char *along = dim.name;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 1, &dim, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &along, MGRID_GRID_ORDER, anew(&why));
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  for (int i = 0; i < EACH; i++) {
    snprintf(name[i], sizeof name[i], "f%d", i);
    names[i] = name[i];
    assert_int_equal(mgrid_topology_add(t, name[i], f, NULL, anew(&why)), MGRID_OK);
  }
  for (int i = 0; i < LISTS; i++)
    assert_int_equal(mgrid_topology_concurrent(t, EACH, names, anew(&why)), MGRID_OK);
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  assert_text(p, "f63", " lane=63");
  assert_int_equal(mgrid_topology_concurrent(t, 2, names, anew(&why)), MGRID_OUT_OF_RANGE);
  assert_string_equal(why.message, "concurrent: more than 4096 names in all lists");
  assert_int_equal(mgrid_topology_concurrent(t, SIZE_MAX, names, anew(&why)), MGRID_OUT_OF_RANGE);
  assert_int_equal(t->content.nconcurrent, LISTS);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* A list that was not compared with the earlier ones, because its budget was exhausted: no order of
** launches is found, and the search for one ends. */
static void test_unpaid_lists(void **unused) {
  (void)unused;
  mgrid_budget budget = mgrid_budget_new(0, 0);
  const char *back[] = { "ep", "dp" };
  mgrid_topology *t = topology(NULL);
  assert_int_equal(LIST(t, "dp", "ep"), MGRID_OK);
  mgrid_concurrent_add(t, 2, back, &budget, anew(&why));
  assert_true(budget.exhausted);
  assert_null(mgrid_plan_new(t, anew(&why)));
  assert_string_equal(why.message, "concurrent: the lists have no common order");
  mgrid_topology_free(t);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_refused),      cmocka_unit_test(test_removed),
    cmocka_unit_test(test_apart),        cmocka_unit_test(test_priority),
    cmocka_unit_test(test_states),       cmocka_unit_test(test_random),
    cmocka_unit_test(test_launch),       cmocka_unit_test(test_launch_differs),
    cmocka_unit_test(test_printed),      cmocka_unit_test(test_names_in_lists),
    cmocka_unit_test(test_unpaid_lists),
  };
  return run_program("concurrent", tests, argc, argv);
}
