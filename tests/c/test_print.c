/* SPDX-License-Identifier: MIT
**
** test_print.c - what a topology refuses, the canonical form of options, and the plan as
** text, schedule and JSON.
*/
#include "topologies.h"

#include <jansson.h>
#include <math.h>

static mg_error why; /* of the last call */

#define REFUSED(call, text)                                                                      \
  do {                                                                                           \
    memset(&why, 0, sizeof why);                                                                 \
    assert_int_equal(call, MG_REFUSED);                                                          \
    assert_string_equal(why.message, text);                                                      \
    assert_int_equal(why.status, MG_REFUSED);                                                    \
  } while (0)

static mg_grid *dense(void) {
  const mg_dim dims[] = { { "tp", 2 }, { "pp", 2 }, { "dp", MG_FILL } };
  return mg_grid_new(mg_world(8), 3, dims, &why);
}

static mg_family *along(const mg_grid *g, const char *dim) {
  mg_family *f = mg_grid_along(g, 1, &dim, MG_GRID_ORDER, &why);
  assert_non_null(f);
  return f;
}

/* ---------------------------------------------------------------- topology */

static void test_topology_errors(void **unused) {
  (void)unused;
  mg_grid     *g = dense(), *other = mg_grid_new(mg_world(1), 0, NULL, &why);
  mg_family   *tp = along(g, "tp"), *single = mg_grid_along(other, 0, NULL, MG_GRID_ORDER, &why);
  mg_topology *t = mg_topology_new(8, &why);
  assert_null(mg_topology_new(0, &why));
  assert_string_equal(why.message, "a world has 1 to 2147483647 ranks, not 0");
  assert_null(mg_topology_new(INT64_C(2147483648), &why));
  assert_string_equal(why.message, "a world has 1 to 2147483647 ranks, not 2147483648");
  assert_int_equal(mg_topology_add(t, "tp", tp, NULL, &why), MG_OK);
  assert_int_equal(mg_topology_add_grid(t, "dense", g, &why), MG_OK);
  REFUSED(mg_topology_add(t, "tp", tp, NULL, &why), "the topology already has a family 'tp'");
  REFUSED(mg_topology_add(t, "dense", tp, NULL, &why), "the topology already has a grid 'dense'");
  REFUSED(mg_topology_add_grid(t, "tp", g, &why), "the topology already has a family 'tp'");
  REFUSED(mg_topology_add_grid(t, "dense", g, &why), "the topology already has a grid 'dense'");
  REFUSED(mg_topology_add(t, "one", single, NULL, &why), "family 'one' is of a world of 1 ranks, the topology of 8");
  REFUSED(mg_topology_add_grid(t, "one", other, &why), "grid 'one' is of a world of 1 ranks, the topology of 8");
#define NO_NAME(what) " is no name of a " what " (a letter or _, then letters, digits or _; at most 31)"
  REFUSED(mg_topology_add(t, "", tp, NULL, &why), "''" NO_NAME("family"));
  REFUSED(mg_topology_add(t, NULL, tp, NULL, &why), "''" NO_NAME("family"));
  REFUSED(mg_topology_add(t, "a b", tp, NULL, &why), "'a b'" NO_NAME("family"));
  REFUSED(mg_topology_add(t, "a\nb", tp, NULL, &why), "'a\nb'" NO_NAME("family"));
  REFUSED(mg_topology_add_grid(t, "9", g, &why), "'9'" NO_NAME("grid"));
  assert_int_equal(mg_topology_add(t, "x", NULL, NULL, &why), MG_USAGE); /* of a failed call: quiet */
  assert_string_equal(why.message, "'9'" NO_NAME("grid"));
  mg_plan *p = mg_plan_new(t, &why); /* what was refused left no trace */
  assert_int_equal(mg_plan_nfamilies(p), 1);
  assert_int_equal(mg_plan_ngrids(p), 1);
  assert_int_equal(mg_plan_find(p, "one"), -1);
  assert_null(mg_plan_grid(p, "one"));
  assert_null(mg_plan_new(NULL, &why));
  mg_plan_free(p);
  mg_topology_free(t);
  mg_family_free(tp);
  mg_family_free(single);
  mg_grid_free(g);
  mg_grid_free(other);
}

/* ----------------------------------------------------------------- options */

static mg_status choose(mg_options o, char *text, size_t len) {
  mg_choice c;
  mg_text   t = { 0 };
  mg_status s = mg_choice_init(&c, &o, &why);
  text[0] = '\0';
  if (s) return s;
  mg_choice_text(&c, false, &t);
  mg_text_finish(&t, text, len);
  mg_choice_free(&c);
  return s;
}

#define OPTIONS(...) (mg_options){ .size = sizeof(mg_options), __VA_ARGS__ }

static void test_options_text(void **unused) {
  (void)unused;
  char text[200];
#define TEXT(want, ...)                                                                          \
  do {                                                                                           \
    assert_int_equal(choose(OPTIONS(__VA_ARGS__), text, sizeof text), MG_OK);                    \
    assert_string_equal(text, want);                                                             \
  } while (0)
  TEXT("", .backend = "", .nccl = "");
  TEXT("", .backend = NULL, .nccl = NULL);
  TEXT(" unique first high_priority", .unique = true, .first = true, .high_priority = true);
  TEXT(" lazy timeout_us=600000000 backend=nccl", .lazy = true, .timeout = 600, .backend = "nccl");
  TEXT(" timeout_us=1", .timeout = 1e-9); /* 0 would mean the default */
  TEXT(" timeout_us=1500000", .timeout = 1.5);
  TEXT(" nccl{max_ctas=16 min_ctas=4}", .nccl = "min_ctas=4 max_ctas=16");
  TEXT(" nccl{max_ctas=16 min_ctas=4}", .nccl = ", max_ctas=16,\tmin_ctas=4 ");
  TEXT(" nccl{max_ctas=64 net_name=Socket traffic_class=0}", .nccl = "traffic_class=0 net_name=Socket max_ctas=64");
  TEXT(" nccl{max_ctas=16}", .nccl = "max_ctas=+16"); /* one number, one text: else equal */
  TEXT(" nccl{max_ctas=16}", .nccl = "max_ctas=016"); /* configurations are not shared */
}

static void test_options_errors(void **unused) {
  (void)unused;
  char text[200];
#define BAD(message, ...) REFUSED(choose(OPTIONS(__VA_ARGS__), text, sizeof text), message)
  BAD("unknown backend 'mpj'; nearest is 'mpi' (mpi, nccl)", .backend = "mpj");
  BAD("unknown backend 'gloo'; known: mpi, nccl", .backend = "gloo");
  BAD("a timeout is 0 (the default) to 1e9 seconds, not -1", .timeout = -1);
  BAD("a timeout is 0 (the default) to 1e9 seconds, not 2e+09", .timeout = 2e9);
  BAD("a timeout is 0 (the default) to 1e9 seconds, not nan", .timeout = (double)NAN);
  BAD("a timeout is 0 (the default) to 1e9 seconds, not inf", .timeout = (double)INFINITY);
  BAD("a family is either 'first' or 'lazy'", .first = true, .lazy = true);
  BAD("nccl option 'max_ctas' is not of the form field=value", .nccl = "max_ctas");
  BAD("nccl field 'max_ctas' is 1 to 64, not '65'", .nccl = "max_ctas=65");
  BAD("nccl field 'max_ctas' is 1 to 64, not '0'", .nccl = "max_ctas=0");
  BAD("nccl field 'max_ctas' is 1 to 64, not ''", .nccl = "max_ctas=");
  BAD("nccl field 'max_ctas' is 1 to 64, not '8x'", .nccl = "min_ctas=2 max_ctas=8x");
  BAD("nccl field 'max_ctas' is 1 to 64, not '99999999999999999999'", .nccl = "max_ctas=99999999999999999999");
  BAD("nccl field 'blocking' is 0 to 1, not '2'", .nccl = "blocking=2");
  BAD("nccl field 'max_ctas' is given twice", .nccl = "max_ctas=4 max_ctas=4");
#define FIELDS                                                                                   \
  "blocking, cga_cluster_size, collnet_enable, cta_policy, graph_stream_ordering, "              \
  "graph_usage_mode, max_ctas, max_p2p_peers, min_ctas, n_channels_per_net_peer, net_name, "     \
  "num_rma_ctx, nvlink_centric_sched, nvls_ctas, optional, shrink_share, split_share, traffic_class"
  BAD("unknown nccl field 'max_cta'; nearest is 'max_ctas' (" FIELDS ")", .nccl = "max_cta=4");
  BAD("unknown nccl field 'qqqq'; known: " FIELDS, .nccl = "qqqq=4");
  BAD("unknown nccl field ''; known: " FIELDS, .nccl = "=4");
  memset(&why, 0, sizeof why);
  assert_int_equal(choose((mg_options){ 0 }, text, sizeof text), MG_USAGE);
  assert_string_equal(why.message, "options without MG_OPTIONS_INIT (size 0)");
}

/* A refused option leaves the topology as it was. */
static void test_options_refused_by_add(void **unused) {
  (void)unused;
  mg_options   o = MG_OPTIONS_INIT;
  mg_grid     *g = dense();
  mg_family   *tp = along(g, "tp");
  mg_topology *t = mg_topology_new(8, &why);
  o.backend = "ncl";
  REFUSED(mg_topology_add(t, "tp", tp, &o, &why), "unknown backend 'ncl'; nearest is 'nccl' (mpi, nccl)");
  o.backend = "nccl";
  assert_int_equal(mg_topology_add(t, "tp", tp, &o, &why), MG_OK); /* the name is still free */
  mg_topology_free(t);
  mg_family_free(tp);
  mg_grid_free(g);
}

/* ------------------------------------------------------------- text, schedule */

static int collect(void *ud, const char *text, size_t len) {
  mg_text_put(ud, text, len);
  return 0;
}

static int stop(void *ud, const char *text, size_t len) {
  (void)text, (void)len;
  return --*(int *)ud < 0;
}

/* tp, pp; embedding picked from pp; pairs; a table of one's own; amax that is tp again. */
static mg_plan *example(void) {
  static const int64_t starts[] = { 0, 3, 4 };
  static const int32_t ranks[] = { 6, 0, 3, 1 };
  const int64_t        ends[] = { 0, -1 };
  const char          *td[] = { "tp", "dp" };
  mg_options           o = MG_OPTIONS_INIT, late = MG_OPTIONS_INIT;
  mg_grid             *g = dense();
  mg_topology         *t = mg_topology_new(8, &why);
  mg_family           *f[6] = { along(g, "tp"), along(g, "pp"), mg_grid_along(g, 2, td, MG_GRID_ORDER, &why) };
  f[3] = mg_family_pick(f[1], 2, ends, &why);
  f[4] = mg_family_neighbours(f[2], 1, true, &why);
  f[5] = mg_family_table(mg_world(8), 2, starts, ranks, MG_PARTIAL, &why);
  o.timeout = 600, o.nccl = "max_ctas=16";
  late.lazy = true;
  mg_topology_param(t, "tp", "2", &why);
  mg_topology_param(t, "order", "tp-pp-dp", &why);
  mg_topology_param(t, "moe", "true", &why);
  mg_topology_recipe(t, "example.lua", &why);
  mg_topology_add_grid(t, "dense", g, &why);
  assert_int_equal(mg_topology_add(t, "later", f[2], &late, &why), MG_OK);
  assert_int_equal(mg_topology_add(t, "tp", f[0], NULL, &why), MG_OK);
  assert_int_equal(mg_topology_add(t, "pp", f[1], NULL, &why), MG_OK);
  assert_int_equal(mg_topology_add(t, "embedding", f[3], NULL, &why), MG_OK);
  assert_int_equal(mg_topology_add(t, "ring", f[4], NULL, &why), MG_OK);
  assert_int_equal(mg_topology_add(t, "own", f[5], &o, &why), MG_OK);
  mg_plan *p = mg_plan_new(t, &why);
  assert_non_null(p);
  mg_topology_free(t);
  for (int i = 0; i < 6; i++) mg_family_free(f[i]);
  mg_grid_free(g);
  return p;
}

static void test_canonical_text(void **unused) {
  (void)unused;
  mg_plan *p = example();
  mg_text  t = { 0 };
  assert_int_equal(mg_plan_print(p, collect, &t, &why), MG_OK);
  assert_string_equal(t.data, "moongrid 1\n"
                              "world 8\n"
                              "param tp = 2\n"
                              "param order = tp-pp-dp\n"
                              "param moe = true\n"
                              "grid dense: tp 2 x pp 2 x dp 2 over ranks 0..7\n"
                              "family later: (2:1)(2:4) x (2:2) lazy\n"
                              "family tp: (2:1) x (4:2)\n"
                              "family pp: (2:2) x (2:1)(2:4)\n"
                              "family embedding: (2:2) x (2:1)(2:4)\n"
                              "family ring: neighbours(1, wrap) of [(2:1)(2:4) x (2:2)]\n"
                              "family own: {6,0,3}{1} timeout_us=600000000 nccl{max_ctas=16}\n");
  mg_text_free(&t);
  int pieces = 1; /* a sink that has enough: reported, not ignored */
  memset(&why, 0, sizeof why);
  assert_int_equal(mg_plan_print(p, stop, &pieces, &why), MG_LIMIT);
  assert_string_equal(why.message, "the output could not be written");
  pieces = 0; /* JSON comes in large pieces */
  assert_int_equal(mg_plan_print_json(p, -1, stop, &pieces, &why), MG_LIMIT);
  pieces = 1;
  assert_int_equal(mg_plan_print_schedule(p, -1, stop, &pieces, &why), MG_LIMIT);
  mg_plan_free(p);
}

static void test_schedule_text(void **unused) {
  (void)unused;
  mg_plan *p = example();
  mg_text  t = { 0 };
  assert_int_equal(mg_plan_print_schedule(p, -1, collect, &t, &why), MG_OK);
  /* two of the ring's pairs, {0,1} and {2,3}, are groups of tp already */
  assert_string_equal(t.data, "    0  tp               4 communicators at once, 2 ranks each\n"
                              "    1  pp               4 communicators at once, 2 ranks each\n"
                              "       embedding        shares with pp\n"
                              "    2  ring             round 1: 4 communicators at once, 2 ranks each\n"
                              "    3  own              1 communicators at once, up to 3 ranks\n"
                              "    4  later            2 communicators at once, 4 ranks each, when asked for\n");
  mg_text_free(&t);
  assert_int_equal(mg_plan_print_schedule(p, 6, collect, &t, &why), MG_OK);
  assert_string_equal(t.data, "    0  tp[3] as 0 of 2, for: tp ring\n"
                              "    1  pp[2] as 1 of 2, for: pp embedding\n"
                              "    2  ring[5] as 1 of 2, for: ring\n"
                              "    3  own[0] as 0 of 3, for: own\n"
                              "    4  later[1] as 2 of 4, for: later\n");
  mg_text_free(&t);
  assert_int_equal(mg_plan_print_schedule(p, 8, collect, &t, &why), MG_USAGE);
  assert_string_equal(why.message, "rank 8 is out of range; ranks are 0 to 7");
  mg_plan_free(p);
}

/* ---------------------------------------------------------------------- JSON */

static json_t *json_of(const rng *r, const mg_plan *p, int64_t rank) {
  mg_text      t = { 0 };
  json_error_t error;
  check(r, mg_plan_print_json(p, rank, collect, &t, &why) == MG_OK);
  json_t *root = json_loadb(t.data, t.len, JSON_REJECT_DUPLICATES, &error);
  if (!root) fail_msg("%s in %s", error.text, t.data);
  mg_text_free(&t);
  return root;
}

static int64_t number(const json_t *object, const char *key) {
  assert_true(json_is_integer(json_object_get(object, key)));
  return json_integer_value(json_object_get(object, key));
}

static void check_ranks(const rng *r, const mg_family *f, int64_t group, const json_t *list) {
  int32_t *members = malloc((size_t)(mg_family_max_size(f) + 1) * sizeof *members);
  mg_family_members(f, group, members);
  check(r, (int64_t)json_array_size(list) == mg_family_size(f, group));
  for (size_t i = 0; i < json_array_size(list); i++)
    check(r, json_integer_value(json_array_get(list, i)) == members[i]);
  free(members);
}

static void check_whole(const rng *r, const mg_plan *p, const json_t *root) {
  static const char *const coverage[] = { "partition", "partial", "cover" };
  char                     digest[33];
  mg_plan_counts           counts;
  const json_t            *families = json_object_get(root, "families"), *comms = json_object_get(root, "communicators");
  check(r, number(root, "world") == mg_plan_world(p));
  check(r, json_object_size(families) == mg_plan_nfamilies(p));
  for (size_t i = 0; i < mg_plan_nfamilies(p); i++) {
    const mg_family *f = mg_plan_family(p, i);
    const json_t    *j = json_object_get(families, mg_plan_family_name(p, i)), *shares = json_object_get(j, "shares");
    bool             uniform = true;
    for (int64_t g = 1; g < mg_family_count(f); g++) uniform &= mg_family_size(f, g) == mg_family_size(f, 0);
    check(r, number(j, "count") == mg_family_count(f));
    if (uniform && mg_family_count(f) > 0)
      check(r, number(j, "size") == mg_family_size(f, 0));
    else if (!uniform)
      check(r, json_is_null(json_object_get(j, "size")));
    check(r, strcmp(json_string_value(json_object_get(j, "coverage")), coverage[mg_family_coverage(f)]) == 0);
    if (mg_plan_shares(p, i) < 0)
      check(r, json_is_null(shares));
    else
      check(r, strcmp(json_string_value(shares), mg_plan_family_name(p, (size_t)mg_plan_shares(p, i))) == 0);
    check(r, (int64_t)json_array_size(json_object_get(j, "groups")) == mg_family_count(f));
    for (int64_t g = 0; g < mg_family_count(f); g++)
      check_ranks(r, f, g, json_array_get(json_object_get(j, "groups"), (size_t)g));
    const json_t *led = json_object_get(json_object_get(comms, "by_family"), mg_plan_family_name(p, i));
    check(r, (mg_plan_led(p, (int)i, -1) == 0) == !led);
  }
  mg_plan_count(p, &counts, &why);
  check(r, number(comms, "total") == counts.communicators && number(comms, "groups") == counts.groups &&
               number(comms, "singles") == counts.singles);
  mg_plan_digest(p, digest);
  check(r, strcmp(json_string_value(json_object_get(root, "digest")), digest) == 0);
}

static void check_one(const rng *r, const mg_plan *p, int64_t rank, const json_t *root) {
  mg_view v;
  size_t  at = 0;
  check(r, mg_view_init(&v, p, rank, &why) == MG_OK && number(root, "rank") == rank);
  for (size_t i = 0; i < mg_plan_nfamilies(p); i++) {
    const mg_family *f = mg_plan_family(p, i);
    const json_t    *j = json_object_get(json_object_get(root, "families"), mg_plan_family_name(p, i));
    bool             cover = mg_family_coverage(f) == MG_COVER;
    check(r, cover == json_is_array(j));
    for (size_t nth = 0; at < v.nmembers && v.member[at].entry == (int)i; at++, nth++) {
      const json_t    *one = cover ? json_array_get(j, nth) : j;
      const mg_member *m = &v.member[at];
      check(r, number(one, "index") == m->group && number(one, "position") == m->position);
      check(r, number(one, "size") == m->size);
      check_ranks(r, f, m->group, json_object_get(one, "ranks"));
      if (m->comm < 0)
        check(r, json_is_null(json_object_get(one, "communicator")));
      else
        check(r, number(one, "communicator") == m->comm);
      j = cover ? j : NULL; /* a second group would be a cover's */
    }
    check(r, cover || j == NULL || json_is_null(j));
  }
  const json_t *comms = json_object_get(root, "communicators");
  check(r, json_array_size(comms) == v.ncomms);
  for (size_t i = 0; i < v.ncomms; i++) {
    const json_t *c = json_array_get(comms, i);
    const char *name = mg_plan_family_name(p, (size_t)v.comm[i].entry);
    check(r, strcmp(json_string_value(json_object_get(c, "family")), name) == 0);
    check(r, number(c, "index") == v.comm[i].group && number(c, "position") == v.comm[i].position &&
                 number(c, "size") == v.comm[i].size);
  }
  mg_view_free(&v);
}

static void test_json(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + 1000; seed++) {
    rng            r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 16);
    mg_plan       *p = mg_plan_new(t.topology, &why);
    json_t        *root = json_of(&r, p, -1);
    check_whole(&r, p, root);
    json_decref(root);
    for (int64_t rank = 0; rank < t.world; rank++) {
      root = json_of(&r, p, rank);
      check_one(&r, p, rank, root);
      json_decref(root);
    }
    mg_plan_free(p);
    topology_free(&t);
  }
}

static void test_json_head(void **unused) {
  (void)unused;
  rng           r = rng_new(0);
  mg_plan      *p = example();
  json_t       *root = json_of(&r, p, 5), *all = json_of(&r, p, -1);
  const json_t *params = json_object_get(root, "params"), *options;
  assert_string_equal(json_string_value(json_object_get(root, "recipe")), "example.lua");
  assert_int_equal(number(params, "tp"), 2); /* numbers and truth are themselves again */
  assert_string_equal(json_string_value(json_object_get(params, "order")), "tp-pp-dp");
  assert_true(json_is_true(json_object_get(params, "moe")));
  const json_t *coords = json_object_get(json_object_get(json_object_get(root, "grids"), "dense"), "coords");
  assert_int_equal(number(coords, "tp"), 1);
  assert_int_equal(number(coords, "pp"), 0);
  assert_int_equal(number(coords, "dp"), 1);
  options = json_object_get(json_object_get(json_object_get(all, "families"), "own"), "options");
  assert_true(json_real_value(json_object_get(options, "timeout")) == 600.0);
  assert_string_equal(json_string_value(json_object_get(options, "nccl")), "max_ctas=16");
  assert_int_equal(json_object_size(options), 2);
  mg_text t = { 0 };
  assert_int_equal(mg_plan_print_json(p, 8, collect, &t, &why), MG_USAGE);
  assert_string_equal(why.message, "rank 8 is out of range; ranks are 0 to 7");
  json_decref(root);
  json_decref(all);
  mg_plan_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_topology_errors),
    cmocka_unit_test(test_options_text),
    cmocka_unit_test(test_options_errors),
    cmocka_unit_test(test_options_refused_by_add),
    cmocka_unit_test(test_canonical_text),
    cmocka_unit_test(test_schedule_text),
    cmocka_unit_test(test_json),
    cmocka_unit_test(test_json_head),
  };
  return cmocka_run_group_tests_name("print", tests, NULL, NULL);
}
