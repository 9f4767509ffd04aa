/* SPDX-License-Identifier: MIT
**
** test_print.c - what a topology refuses, the canonical form of options, and the plan as
** text, schedule and JSON.
*/
#include "backends.h"
#include "topologies.h"

#include <jansson.h>
#include <math.h>

static mgrid_error why = MGRID_ERROR_INIT; /* of the last call */

#define REFUSED(call, text) \
  do { \
    mgrid_error_clear(&why); \
    assert_int_equal(call / 100, MGRID_REFUSED / 100); \
    assert_string_equal(why.message, text); \
    assert_int_equal(why.status / 100, MGRID_REFUSED / 100); \
  } while (0)

static mgrid_grid *dense(void) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "pp", 2 }, { "dp", MGRID_FILL } };
  return mgrid_grid_new(mgrid_world(8), 3, dims, anew(&why));
}

static mgrid_family *along(const mgrid_grid *g, const char *dim) {
  mgrid_family *f = mgrid_grid_along(g, 1, &dim, MGRID_GRID_ORDER, anew(&why));
  assert_non_null(f);
  return f;
}

/* ---------------------------------------------------------------- topology */

static void test_topology_errors(void **unused) {
  (void)unused;
  mgrid_grid *g = dense(), *other = mgrid_grid_new(mgrid_world(1), 0, NULL, anew(&why));
  mgrid_family *tp = along(g, "tp"),
               *single = mgrid_grid_along(other, 0, NULL, MGRID_GRID_ORDER, anew(&why));
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  assert_null(mgrid_topology_new(0, anew(&why)));
  assert_string_equal(why.message, "a world has 1 to 2147483647 ranks, not 0");
  assert_null(mgrid_topology_new(INT64_C(2147483648), anew(&why)));
  assert_string_equal(why.message, "a world has 1 to 2147483647 ranks, not 2147483648");
  assert_int_equal(mgrid_topology_add(t, "tp", tp, NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add_grid(t, "dense", g, anew(&why)), MGRID_OK);
  REFUSED(mgrid_topology_add(t, "tp", tp, NULL, anew(&why)),
          "the topology already has a family 'tp'");
  REFUSED(mgrid_topology_add(t, "dense", tp, NULL, anew(&why)),
          "the topology already has a grid 'dense'");
  REFUSED(mgrid_topology_add_grid(t, "tp", g, anew(&why)),
          "the topology already has a family 'tp'");
  REFUSED(mgrid_topology_add_grid(t, "dense", g, anew(&why)),
          "the topology already has a grid 'dense'");
  REFUSED(mgrid_topology_add(t, "one", single, NULL, anew(&why)),
          "family 'one' is of a world of 1 ranks, the topology of 8");
  REFUSED(mgrid_topology_add_grid(t, "one", other, anew(&why)),
          "grid 'one' is of a world of 1 ranks, the topology of 8");
#define NO_NAME(what) \
  " is not a " what " name (a letter or _, then letters, digits or _; at most 31)"
  REFUSED(mgrid_topology_add(t, "", tp, NULL, anew(&why)), "''" NO_NAME("family"));
  REFUSED(mgrid_topology_add(t, NULL, tp, NULL, anew(&why)), "''" NO_NAME("family"));
  REFUSED(mgrid_topology_add(t, "a b", tp, NULL, anew(&why)), "'a b'" NO_NAME("family"));
  REFUSED(mgrid_topology_add(t, "a\nb", tp, NULL, anew(&why)), "'a\\nb'" NO_NAME("family"));
  REFUSED(mgrid_topology_add_grid(t, "9", g, anew(&why)), "'9'" NO_NAME("grid"));
  assert_int_equal(mgrid_topology_add(t, "x", NULL, NULL, &why),
                   MGRID_USAGE); /* an argument of a failed call: no new error */
  assert_string_equal(why.message, "'9'" NO_NAME("grid"));
  REFUSED((mgrid_plan_new(t, anew(&why)) ? MGRID_OK : why.status),
          "the topology already has a family 'tp'"); /* the first */
  assert_null(mgrid_plan_new(NULL, anew(&why)));
  mgrid_topology_free(t);
  mgrid_family_free(tp);
  mgrid_family_free(single);
  mgrid_grid_free(g);
  mgrid_grid_free(other);
}

/* ----------------------------------------------------------------- options */

static mgrid_status choose(mgrid_options o, char *text, size_t len) {
  mgrid_choice *c;
  mgrid_status s = mgrid_choice_new(&o, &c, anew(&why));
  snprintf(text, len, "%s", c ? c->text : "");
  mgrid_choice_free(c);
  return s;
}

#define OPTIONS(...) \
  (mgrid_options) { .size = sizeof(mgrid_options), __VA_ARGS__ }

static void test_options_text(void **unused) {
  (void)unused;
  char text[200];
#define TEXT(want, ...) \
  do { \
    assert_int_equal(choose(OPTIONS(__VA_ARGS__), text, sizeof text), MGRID_OK); \
    assert_string_equal(text, want); \
  } while (0)
  TEXT("", .backend = "", .nccl = "");
  TEXT("", .backend = NULL, .nccl = NULL);
  TEXT(" unique first high_priority", .unique = true, .first = true, .high_priority = true);
  TEXT(" lazy timeout_us=600000000 backend=nccl", .lazy = true, .timeout = 600, .backend = "nccl");
  TEXT(" timeout_us=1", .timeout = 1e-9); /* 0 would mean the default */
  TEXT(" timeout_us=1500000", .timeout = 1.5);
  TEXT(" nccl{max_ctas=16 min_ctas=4}", .nccl = "min_ctas=4 max_ctas=16");
  TEXT(" nccl{max_ctas=16 min_ctas=4}", .nccl = ", max_ctas=16,\tmin_ctas=4 ");
  TEXT(" nccl{max_ctas=64 net_name=Socket traffic_class=0}",
       .nccl = "traffic_class=0 net_name=Socket max_ctas=64");
  TEXT(" nccl{max_ctas=16}", .nccl = "max_ctas=+16"); /* one number, one text: else equal */
  TEXT(" nccl{max_ctas=16}", .nccl = "max_ctas=016"); /* configurations are not shared */
}

static void test_options_errors(void **unused) {
  (void)unused;
  char text[200], known[512];
#define BAD(message, ...) REFUSED(choose(OPTIONS(__VA_ARGS__), text, sizeof text), message)
  BAD(unknown_backend(known, "mpj", "mpi", "", MGRID_BACKENDS_MAKERS, "none"), .backend = "mpj");
  BAD(unknown_backend(known, "gloo", "", "", MGRID_BACKENDS_MAKERS, "none"), .backend = "gloo");
  BAD("a timeout is 0 (the default) to 1e9 seconds, not -1", .timeout = -1);
  BAD("a timeout is 0 (the default) to 1e9 seconds, not 2e+09", .timeout = 2e9);
  BAD("a timeout is 0 (the default) to 1e9 seconds, not nan", .timeout = (double)NAN);
  BAD("a timeout is 0 (the default) to 1e9 seconds, not inf", .timeout = (double)INFINITY);
  BAD("a family is 'first' or 'lazy', not both", .first = true, .lazy = true);
  BAD("nccl option 'max_ctas' is not of the form field=value", .nccl = "max_ctas");
  BAD("nccl field 'max_ctas' is 1 to 64, not '65'", .nccl = "max_ctas=65");
  BAD("nccl field 'max_ctas' is 1 to 64, not '0'", .nccl = "max_ctas=0");
  BAD("nccl field 'max_ctas' is 1 to 64, not ''", .nccl = "max_ctas=");
  BAD("nccl field 'max_ctas' is 1 to 64, not '8x'", .nccl = "min_ctas=2 max_ctas=8x");
  BAD("nccl field 'max_ctas' is 1 to 64, not '99999999999999999999'",
      .nccl = "max_ctas=99999999999999999999");
  BAD("nccl field 'blocking' is 0 to 1, not '2'", .nccl = "blocking=2");
  BAD("nccl field 'max_ctas' is given twice", .nccl = "max_ctas=4 max_ctas=4");
#define FIELDS \
  "blocking, cga_cluster_size, collnet_enable, cta_policy, graph_stream_ordering, " \
  "graph_usage_mode, host_cft_mode, launch_order_implicit, max_ctas, max_p2p_peers, min_ctas, " \
  "n_channels_per_net_peer, net_name, num_rma_ctx, num_rma_sig, nvlink_centric_sched, nvls_ctas, " \
  "nvls_host_mode, " \
  "optional, rma_eager_init, shrink_share, split_share, traffic_class"
  BAD("unknown nccl field 'max_cta'; nearest is 'max_ctas' (" FIELDS ")", .nccl = "max_cta=4");
  BAD("unknown nccl field 'qqqq'; known: " FIELDS, .nccl = "qqqq=4");
  BAD("unknown nccl field ''; known: " FIELDS, .nccl = "=4");
  memset(&why, 0, sizeof why);
  assert_int_equal(choose((mgrid_options){ 0 }, text, sizeof text), MGRID_BAD_STRUCT);
  assert_string_equal(why.message, "mgrid_options without its INIT macro (size 0)");
}

/* A refused option leaves the topology as it was. */
static void test_options_refused_by_add(void **unused) {
  (void)unused;
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_grid *g = dense();
  mgrid_family *tp = along(g, "tp");
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  char known[512];
  o.backend = "ncl";
  REFUSED(mgrid_topology_add(t, "tp", tp, &o, anew(&why)),
          unknown_backend(known, "ncl", "nccl", "", MGRID_BACKENDS_MAKERS, "none"));
  o.backend = "nccl";
  /* the name is still free */
  assert_int_equal(mgrid_topology_add(t, "tp", tp, &o, anew(&why)), MGRID_OK);
  mgrid_topology_free(t);
  mgrid_family_free(tp);
  mgrid_grid_free(g);
}

/* ------------------------------------------------------------- text, schedule */

static int collect(void *ud, const char *text, size_t len) {
  mgrid_text_put(ud, text, len);
  return 0;
}

static int stop(void *ud, const char *text, size_t len) {
  (void)text, (void)len;
  return --*(int *)ud < 0;
}

/* tp, pp; embedding picked from pp; pairs; a table of one's own; amax that is tp again. */
static mgrid_plan *example(void) {
  static const int64_t starts[] = { 0, 3, 4 };
  static const int64_t ranks[] = { 6, 0, 3, 1 };
  const int64_t ends[] = { 0, -1 };
  const char *td[] = { "tp", "dp" };
  mgrid_options o = MGRID_OPTIONS_INIT, late = MGRID_OPTIONS_INIT;
  mgrid_grid *g = dense();
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  mgrid_family *f[6] = { along(g, "tp"), along(g, "pp"),
                         mgrid_grid_along(g, 2, td, MGRID_GRID_ORDER, anew(&why)) };
  f[3] = mgrid_family_pick(f[1], 2, ends, anew(&why));
  f[4] = mgrid_family_neighbours(f[2], 1, true, anew(&why));
  f[5] = mgrid_family_table(mgrid_world(8), 2, starts, ranks, MGRID_PARTIAL, anew(&why));
  o.timeout = 600, o.nccl = "max_ctas=16";
  late.lazy = true;
  mgrid_topology_param(t, "tp", "2", anew(&why));
  mgrid_topology_param(t, "order", "tp-pp-dp", anew(&why));
  mgrid_topology_param(t, "moe", "true", anew(&why));
  mgrid_topology_recipe(t, "example.lua", anew(&why));
  mgrid_topology_add_grid(t, "dense", g, anew(&why));
  assert_int_equal(mgrid_topology_add(t, "later", f[2], &late, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "tp", f[0], NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "pp", f[1], NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "embedding", f[3], NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "ring", f[4], NULL, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_add(t, "own", f[5], &o, anew(&why)), MGRID_OK);
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  assert_non_null(p);
  mgrid_topology_free(t);
  for (int i = 0; i < 6; i++) mgrid_family_free(f[i]);
  mgrid_grid_free(g);
  return p;
}

static void test_canonical_text(void **unused) {
  (void)unused;
  mgrid_plan *p = example();
  mgrid_text t = { 0 };
  assert_int_equal(mgrid_plan_print(p, collect, &t, anew(&why)), MGRID_OK);
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
  mgrid_text_free(&t);
  int pieces = 1; /* a sink that has enough: reported, not ignored */
  memset(&why, 0, sizeof why);
  assert_int_equal(mgrid_plan_print(p, stop, &pieces, anew(&why)), MGRID_OUTPUT);
  assert_string_equal(why.message, "the output could not be written");
  pieces = 0; /* JSON comes in large pieces */
  assert_int_equal(mgrid_plan_print_json(p, -1, stop, &pieces, anew(&why)), MGRID_OUTPUT);
  pieces = 1;
  assert_int_equal(mgrid_plan_print_schedule(p, -1, stop, &pieces, anew(&why)), MGRID_OUTPUT);
  mgrid_plan_free(p);
}

static void test_schedule_text(void **unused) {
  (void)unused;
  mgrid_plan *p = example();
  mgrid_text t = { 0 };
  assert_int_equal(mgrid_plan_print_schedule(p, -1, collect, &t, anew(&why)), MGRID_OK);
  /* two of the ring's pairs, {0,1} and {2,3}, are groups of tp already */
  assert_string_equal(
      t.data, "    0  tp               4 communicators at once, 2 ranks each\n"
              "    1  pp               4 communicators at once, 2 ranks each\n"
              "       embedding        shares with pp\n"
              "    2  ring             round 1: 4 communicators at once, 2 ranks each\n"
              "    3  own              1 communicator at once, up to 3 ranks\n"
              "    4  later            2 communicators at once, 4 ranks each, when asked for\n");
  mgrid_text_free(&t);
  assert_int_equal(mgrid_plan_print_schedule(p, 6, collect, &t, anew(&why)), MGRID_OK);
  assert_string_equal(t.data, "    0  tp[3] as 0 of 2, for: tp ring\n"
                              "    1  pp[2] as 1 of 2, for: pp embedding\n"
                              "    2  ring[5] as 1 of 2, for: ring\n"
                              "    3  own[0] as 0 of 3, for: own\n"
                              "    4  later[1] as 2 of 4, for: later\n");
  mgrid_text_free(&t);
  assert_int_equal(mgrid_plan_print_schedule(p, 8, collect, &t, anew(&why)), MGRID_OUT_OF_RANGE);
  assert_string_equal(why.message, "rank 8 is out of range; ranks are 0 to 7");
  mgrid_plan_free(p);
}

/* ---------------------------------------------------------------------- JSON */

static json_t *json_of(const rng *r, const mgrid_plan *p, int64_t rank) {
  mgrid_text t = { 0 };
  json_error_t error;
  check(r, mgrid_plan_print_json(p, rank, collect, &t, anew(&why)) == MGRID_OK);
  json_t *root = json_loadb(t.data, t.len, JSON_REJECT_DUPLICATES, &error);
  if (!root) fail_msg("%s in %s", error.text, t.data);
  mgrid_text_free(&t);
  return root;
}

static int64_t number(const json_t *object, const char *key) {
  assert_true(json_is_integer(json_object_get(object, key)));
  return json_integer_value(json_object_get(object, key));
}

static void check_ranks(const rng *r, const mgrid_family *f, int64_t group, const json_t *list) {
  size_t most = (size_t)mgrid_family_max_size(f);
  int64_t *members = malloc((most + 1) * sizeof *members);
  check(r, (int64_t)json_array_size(list) == mgrid_family_members(f, group, 1, most, members));
  for (size_t i = 0; i < json_array_size(list); i++)
    check(r, json_integer_value(json_array_get(list, i)) == members[i]);
  free(members);
}

static void check_whole(const rng *r, const mgrid_plan *p, const json_t *root) {
  static const char *const coverage[] = { "partition", "partial", "cover" };
  char digest[33];
  mgrid_plan_counts counts = MGRID_PLAN_COUNTS_INIT;
  const json_t *families = json_object_get(root, "families"),
               *comms = json_object_get(root, "communicators");
  check(r, number(root, "world") == mgrid_plan_world(p));
  check(r, json_object_size(families) == mgrid_plan_nfamilies(p));
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    const mgrid_family *f = p->content.entry[i].family;
    const json_t *j = json_object_get(families, mgrid_plan_family_name(p, i)),
                 *shares = json_object_get(j, "shares");
    bool uniform = true;
    for (int64_t g = 1; g < mgrid_family_count(f); g++)
      uniform &= mgrid_family_size(f, g) == mgrid_family_size(f, 0);
    check(r, number(j, "count") == mgrid_family_count(f));
    if (uniform && mgrid_family_count(f) > 0)
      check(r, number(j, "size") == mgrid_family_size(f, 0));
    else if (!uniform)
      check(r, json_is_null(json_object_get(j, "size")));
    check(r, strcmp(json_string_value(json_object_get(j, "coverage")),
                    coverage[mgrid_family_coverage(f)])
                 == 0);
    if (p->shares[i] < 0)
      check(r, json_is_null(shares));
    else
      check(r, strcmp(json_string_value(shares), mgrid_plan_family_name(p, (size_t)p->shares[i]))
                   == 0);
    check(r, (int64_t)json_array_size(json_object_get(j, "groups")) == mgrid_family_count(f));
    for (int64_t g = 0; g < mgrid_family_count(f); g++)
      check_ranks(r, f, g, json_array_get(json_object_get(j, "groups"), (size_t)g));
    const json_t *led =
        json_object_get(json_object_get(comms, "by_family"), mgrid_plan_family_name(p, i));
    check(r, (mgrid_plan_led(p, (int)i, -1, NULL) == 0) == !led);
  }
  mgrid_plan_count(p, -1, &counts, anew(&why));
  check(r, number(comms, "total") == counts.communicators
               && number(comms, "groups") == counts.groups
               && number(comms, "singles") == counts.singles);
  mgrid_plan_digest(p, digest);
  check(r, strcmp(json_string_value(json_object_get(root, "digest")), digest) == 0);
}

static void check_one(const rng *r, const mgrid_plan *p, int64_t rank, const json_t *root,
                      const json_t *whole) {
  mgrid_view v;
  size_t at = 0;
  check(r, mgrid_view_init(&v, p, rank, anew(&why)) == MGRID_OK && number(root, "rank") == rank);
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    const mgrid_family *f = p->content.entry[i].family;
    const json_t *j =
        json_object_get(json_object_get(root, "families"), mgrid_plan_family_name(p, i));
    bool cover = mgrid_family_coverage(f) == MGRID_COVER;
    check(r, cover == json_is_array(j));
    for (size_t nth = 0; at < v.nmembers && v.member[at].entry == (int)i; at++, nth++) {
      const json_t *one = cover ? json_array_get(j, nth) : j;
      const mgrid_member *m = &v.member[at];
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
    const char *name = mgrid_plan_family_name(p, (size_t)v.comm[i].entry);
    check(r, strcmp(json_string_value(json_object_get(c, "family")), name) == 0);
    check(r, number(c, "index") == v.comm[i].group && number(c, "position") == v.comm[i].position
                 && number(c, "size") == v.comm[i].size);
    const json_t *family = json_object_get(json_object_get(whole, "families"), name);
    check(r, json_is_object(json_object_get(c, "options")));
    check(r, json_equal(json_object_get(c, "options"), json_object_get(family, "options")));
  }
  mgrid_view_free(&v);
}

static void test_json(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + 1000; seed++) {
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 16);
    mgrid_plan *p = mgrid_plan_new(t.topology, anew(&why));
    json_t *whole = json_of(&r, p, -1);
    check_whole(&r, p, whole);
    for (int64_t rank = 0; rank < t.world; rank++) {
      json_t *root = json_of(&r, p, rank);
      check_one(&r, p, rank, root, whole);
      json_decref(root);
    }
    json_decref(whole);
    mgrid_plan_free(p);
    topology_free(&t);
  }
}

static void test_json_head(void **unused) {
  (void)unused;
  rng r = rng_new(0);
  mgrid_plan *p = example();
  json_t *root = json_of(&r, p, 5), *all = json_of(&r, p, -1);
  const json_t *params = json_object_get(root, "params"), *options;
  assert_string_equal(json_string_value(json_object_get(root, "recipe")), "example.lua");
  assert_int_equal(number(params, "tp"), 2); /* numbers and truth are themselves again */
  assert_string_equal(json_string_value(json_object_get(params, "order")), "tp-pp-dp");
  assert_true(json_is_true(json_object_get(params, "moe")));
  const json_t *coords =
      json_object_get(json_object_get(json_object_get(root, "grids"), "dense"), "coords");
  assert_int_equal(number(coords, "tp"), 1);
  assert_int_equal(number(coords, "pp"), 0);
  assert_int_equal(number(coords, "dp"), 1);
  options = json_object_get(json_object_get(json_object_get(all, "families"), "own"), "options");
  assert_true(json_real_value(json_object_get(options, "timeout")) == 600.0);
  assert_string_equal(json_string_value(json_object_get(options, "nccl")), "max_ctas=16");
  assert_int_equal(json_object_size(options), 2);
  mgrid_text t = { 0 };
  assert_int_equal(mgrid_plan_print_json(p, 8, collect, &t, anew(&why)), MGRID_OUT_OF_RANGE);
  assert_string_equal(why.message, "rank 8 is out of range; ranks are 0 to 7");
  json_decref(root);
  json_decref(all);
  mgrid_plan_free(p);
}

/* -------------------------------------------------------------------- why */

static void test_why(void **unused) {
  (void)unused;
  mgrid_grid *g = dense();
  mgrid_family *tp = along(g, "tp"), *dp = along(g, "dp");
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  mgrid_topology_add(t, "tp", tp, NULL, anew(&why));
  mgrid_topology_add(t, "dp", dp, NULL, anew(&why));
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  mgrid_text text = { 0 };
  int pieces = 0;
  assert_int_equal(mgrid_plan_why(p, 1, 5, false, collect, &text, anew(&why)), MGRID_OK);
  assert_string_equal(
      text.data,
      "ranks 1 and 5 are together in 1 group\n  dp[1]: positions 0 and 1 of 2, a pair\n"
      "they first meet when dp[1] is created: creation 1 of rank 1, creation 1 of rank 5\n");
  text.len = 0;
  assert_int_equal(mgrid_plan_why(p, 0, 5, false, collect, &text, anew(&why)), MGRID_OK);
  assert_string_equal(
      text.data, "ranks 0 and 5 are together in no group; a shortest way from one to the other\n"
                 "  0 to 1 in tp[0]\n  1 to 5 in dp[1]\n");
  text.len = 0;
  assert_int_equal(mgrid_plan_why(p, 0, 2, false, collect, &text, anew(&why)), MGRID_OK);
  assert_string_equal(
      text.data, "ranks 0 and 2 are together in no group, and no chain of groups connects them\n");
  mgrid_text_free(&text);
  assert_int_equal(mgrid_plan_why(p, 0, 2, true, stop, &pieces, anew(&why)), MGRID_OUTPUT);
  REFUSED(mgrid_plan_why(p, 3, 3, false, collect, &text, anew(&why)),
          "both ranks are 3; two different ranks are needed");
  REFUSED(mgrid_plan_why(p, 0, 8, false, collect, &text, anew(&why)),
          "rank 8 is out of range; ranks are 0 to 7");
  REFUSED(mgrid_plan_why(p, -1, 8, false, collect, &text, anew(&why)),
          "rank -1 is out of range; ranks are 0 to 7");
  assert_int_equal(mgrid_plan_why(NULL, 0, 1, false, collect, &text, anew(&why)), MGRID_USAGE);
  assert_null(text.data);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(tp);
  mgrid_family_free(dp);
  mgrid_grid_free(g);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_topology_errors),
    cmocka_unit_test(test_options_text),
    cmocka_unit_test(test_options_errors),
    cmocka_unit_test(test_options_refused_by_add),
    cmocka_unit_test(test_canonical_text),
    cmocka_unit_test(test_schedule_text),
    cmocka_unit_test(test_json),
    cmocka_unit_test(test_json_head),
    cmocka_unit_test(test_why),
  };
  return run_program("print", tests, argc, argv);
}
