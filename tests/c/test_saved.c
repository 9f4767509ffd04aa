/* SPDX-License-Identifier: MIT
**
** test_saved.c - plans that are saved and read back, as rules and as JSON with lists: random ones
** with every form of family, options, concurrent families, tensors and flats, and the bundled
** recipes. And JSON that nobody saved.
*/
#include "backends.h"
#include "topologies.h"

#include "moved.h"
#include "moongrid_tensor.h"

#include "recipe/bind.h"
#include "recipe/runtime.h"

typedef mgrid_status writer(const mgrid_plan *p, mgrid_sink sink, void *ud, mgrid_error *err);

static mgrid_status write_json(const mgrid_plan *p, mgrid_sink sink, void *ud, mgrid_error *err) {
  return mgrid_plan_print_json(p, -1, sink, ud, err);
}

static mgrid_text written(const mgrid_plan *p, writer *w) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_text t = { 0 };
  assert_int_equal(w(p, mgrid_text_sink, &t, &e), MGRID_OK);
  assert_false(t.failed);
  return t;
}

/* Has the plan a flat of which a member is not a tensor of it? */
static bool lacks_member(const mgrid_plan *p) {
  const size_t n = mgrid_plan_ntensors(p);
  for (size_t i = 0; i < n; i++) {
    const mgrid_flat *f = mgrid_plan_tensor(p, mgrid_plan_tensor_name(p, i))->flat;
    size_t found = 0;
    if (!f) continue;
    for (size_t at = 0; at < f->n; at++)
      for (size_t k = 0; k < n; k++) {
        const mgrid_tensor *t = mgrid_plan_tensor(p, mgrid_plan_tensor_name(p, k));
        if (!t->flat || t->flat->rule != f->rule || t->at != at) continue;
        found++;
        break;
      }
    if (found < f->n) return true;
  }
  return false;
}

/* The plan that is read is the one that was saved: by its digest, its text, and all that JSON says
** of it. */
static void check_saved(const rng *r, const mgrid_plan *p) {
  writer *const ways[] = { mgrid_plan_save, write_json };
  writer *const said[] = { mgrid_plan_print, write_json };
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    char was[33], is[33];
    mgrid_error e = MGRID_ERROR_INIT;
    mgrid_text saved = written(p, ways[i]);
    check(r, mgrid_plan_is_saved(saved.data, saved.len));
    mgrid_plan *read = mgrid_plan_read(saved.data, saved.len, "saved", &e);
    if (!read) print_message("%s\n%s\n", e.message, saved.data);
    check(r, read && e.status == MGRID_OK);
    mgrid_plan_digest(p, was);
    mgrid_plan_digest(read, is);
    check(r, strcmp(was, is) == 0);
    for (size_t k = 0; k < sizeof said / sizeof *said; k++) {
      mgrid_text all = written(p, said[k]), again = written(read, said[k]);
      if (again.len != all.len || memcmp(again.data, all.data, all.len) != 0)
        print_message("%s\nnot\n%s\n", again.data, all.data);
      check(r, again.len == all.len && memcmp(again.data, all.data, all.len) == 0);
      mgrid_text_free(&again);
      mgrid_text_free(&all);
    }
    mgrid_plan_free(read);
    mgrid_text_free(&saved);
  }
}

/* Grids over the world, windows and orders, parameters, and lists of concurrent families. */
static void draw_more(rng *r, drawn_topology *t) {
  static const char *const grid[] = { "g0", "g1", "g2" };
  static const char *const value[] = {
    "", "8", "a = b", "family f0: (1) x (1)", "\xc3\xa9\xe2\x86\x92", "\"x\""
  };
  mgrid_error e = MGRID_ERROR_INIT;
  for (size_t i = 0; i < 3 && rng_chance(r, 60); i++) {
    int64_t from = rng_chance(r, 50) ? 0 : rng_between(r, 0, t->world - 1);
    drawn d = draw_grid_over(r, (mgrid_window){ t->world, from, t->world - from });
    mgrid_grid *over = NULL;
    if (rng_chance(r, 50)) { /* the same ranks in another order */
      int64_t starts[] = { 0, d.window.size };
      int64_t *ranks = malloc((size_t)d.window.size * sizeof *ranks);
      size_t *any = malloc((size_t)d.window.size * sizeof *any);
      for (int64_t k = 0; k < d.window.size; k++) any[k] = (size_t)k;
      rng_shuffle(r, rng_chance(r, 70) ? (size_t)d.window.size : 0, any);
      for (int64_t k = 0; k < d.window.size; k++) ranks[k] = (int64_t)(from + (int64_t)any[k]);
      mgrid_family *order =
          mgrid_family_table(mgrid_world(t->world), 1, starts, ranks, MGRID_PARTIAL, &e);
      over = mgrid_grid_over(order, d.n, d.dim, &e);
      mgrid_family_free(order);
      free(ranks);
      free(any);
    }
    mgrid_topology_add_grid(t->topology, grid[i], over ? over : d.grid, &e);
    mgrid_grid_free(over);
    mgrid_grid_free(d.grid);
  }
  for (size_t i = 0; i < 3 && rng_chance(r, 60); i++)
    mgrid_topology_param(t->topology, i == 1 ? "a b" : grid[i], value[rng_between(r, 0, 5)], &e);
  for (size_t i = 0; i + 1 < t->n && rng_chance(r, 40); i++) {
    const char *names[] = { t->topology->content.entry[i].name,
                            t->topology->content.entry[t->n - 1].name };
    mgrid_topology_concurrent(t->topology, 2, names, &e);
  }
  if (rng_chance(r, 30)) mgrid_topology_recipe(t->topology, "a \"name\"", &e);
  check(r, e.status == MGRID_OK);
}

static void test_drawn(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + cases(1500); seed++) {
    mgrid_error e = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 60);
    draw_more(&r, &t);
    mgrid_plan *p = mgrid_plan_new(t.topology, &e);
    check(&r, p != NULL);
    check_saved(&r, p);
    mgrid_plan_free(p);
    topology_free(&t);
  }
}

static void test_families(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + cases(3000); seed++) {
    mgrid_error e = MGRID_ERROR_INIT;
    lists l;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 64);
    mgrid_family *f = draw_family(&r, &d, (int)rng_between(&r, 0, 5), &l);
    mgrid_topology *t = mgrid_topology_new(d.window.world, &e);
    mgrid_topology_add(t, "f", f, NULL, &e);
    mgrid_plan *p = mgrid_plan_new(t, &e);
    check(&r, p != NULL);
    check_saved(&r, p);
    mgrid_plan_free(p);
    mgrid_topology_free(t);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
    lists_free(&l);
  }
}

static void test_tensors(void **unused) {
  (void)unused;
  int flat = 0;
  world *w = malloc(sizeof *w);
  int64_t length[DEALT_AXES];
  for (uint64_t seed = first_seed(); seed < first_seed() + cases(1000); seed++) {
    rng r = rng_new(seed);
    size_t n = (size_t)rng_between(&r, 1, 2);
    memset(w, 0, sizeof *w);
    draw_sides(&r, w);
    for (size_t i = 0; i < n; i++) length[i] = rng_between(&r, 1, DEALT_LENGTH);
    draw_tensor(&r, &w->from, n, length, true);
    if (rng_chance(&r, 50)) draw_flat(&r, &w->from);
    mgrid_plan *p = plan_with(&r, &w->from);
    flat += lacks_member(p);
    check_saved(&r, p);
    mgrid_plan_free(p);
    dealt_free(&w->from);
    mgrid_grid_free(w->to.d.grid);
  }
  free(w);
  assert_true(flat > (int)cases(1000) / 50);
}

/* With the parameters' own values; some recipes refuse them. */
static void test_recipes(void **unused) {
  (void)unused;
  const int64_t worlds[] = { 8, 64, 96, 1024, 16384 };
  rng r = rng_new(0);
  int plans = 0, recipes = 0;
  for (const char *const *name = mgrid_recipe_names(); *name; name++, recipes++)
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
      mgrid_error e = MGRID_ERROR_INIT;
      mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
      assert_int_equal(mgrid_runtime_load(rt, *name, NULL, 0, &e), MGRID_OK);
      mgrid_plan *p = mgrid_runtime_plan(rt, worlds[i], NULL, 0, NULL, &e);
      if (p) check_saved(&r, p), plans++;
      mgrid_plan_free(p);
      mgrid_runtime_free(rt);
    }
  assert_true(plans > 4 * recipes);
}

/* Rules, not ranks: some bytes, and no time. */
static void test_million(void **unused) {
  (void)unused;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  const char *args[] = { "tp=8", "pp=16" };
  assert_int_equal(mgrid_runtime_load(rt, "megatron", NULL, 0, &e), MGRID_OK);
  mgrid_plan *p = mgrid_runtime_plan(rt, 1 << 20, NULL, 2, args, &e);
  assert_non_null(p);
  double began = mgrid_processor_now();
  mgrid_text t = written(p, mgrid_plan_save);
  mgrid_plan *read = mgrid_plan_read(t.data, t.len, NULL, &e);
  double took = mgrid_processor_now() - began;
  print_message("a plan of 2^20 ranks: %zu bytes, saved and read in %.2f ms\n", t.len, took * 1e3);
  assert_non_null(read);
  assert_true(t.len < 16384);
  assert_true(took < 0.1);
  mgrid_text_free(&t);
  mgrid_plan_free(read);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

/* ---------------------------------------------------------- what nobody saved */

#define TP           "{\"family\": \"tp\", \"rule\": {\"inside\": [[2,1]], \"index\": [[4,2]]}}"
#define FAMILY(rule) "{\"family\": \"tp\", \"rule\": {" rule "}}"
#define TENSOR(rest) \
  "{\"tensor\": \"w\", \"type\": \"bf16\", \"axes\": [{\"name\": \"a\", \"length\": 4}], " rest "}"
#define OVER "\"over\": {\"dims\": [[\"tp\",8]], \"offset\": 0, \"size\": 8}"

static void refuse(const char *text, mgrid_status status, const char *message) {
  mgrid_error e = MGRID_ERROR_INIT;
  assert_null(mgrid_plan_read(text, strlen(text), "x", &e));
  assert_string_equal(e.message, message);
  assert_int_equal(e.status, status);
}

/* Write a plan of 8 ranks with more rules. */
static void with_rules(mgrid_text *t, const char *rules) {
  t->len = 0;
  mgrid_text_str(t,
                 "{\"format\": 1, \"moongrid\": \"" MGRID_VERSION "\", \"rules\": [{\"world\": 8}");
  mgrid_text_str(t, rules[0] ? ", " : "");
  mgrid_text_str(t, rules);
  mgrid_text_str(t, "], \"digest\": \"0\"}");
}

static void refuse_rules(const char *rules, mgrid_status status, const char *message) {
  mgrid_text t = { 0 };
  with_rules(&t, rules);
  refuse(t.data, status, message);
  mgrid_text_free(&t);
}

static void test_heads(void **unused) {
  (void)unused;
  const mgrid_status bad = MGRID_BAD_VALUE;
  refuse("", bad, "x:1: '[' or '{' expected near end of file");
  refuse("return recipe {}", bad, "x:1: '[' or '{' expected near 'return'");
  refuse("{", bad, "x:1: string or '}' expected near end of file");
  refuse("[]", bad,
         "x: this is not a saved plan, which moongrid plan RECIPE --world N --rules writes");
  refuse(
      "{\"recipe\": \"megatron\", \"world\": 8, \"rules\": [\"moongrid 1\", \"world 8\"]}", bad,
      "x: it was written by an older moongrid in format 0 of saved plans; moongrid " MGRID_VERSION
      " reads format 1: plan it again (moongrid plan megatron --world N --rules), or use that "
      "moongrid");
  refuse("{\"format\": 2, \"moongrid\": \"9.1.0\"}", bad,
         "x: it was written by moongrid 9.1.0 in format 2 of saved plans; moongrid " MGRID_VERSION
         " reads format 1: plan it again (moongrid plan RECIPE --world N --rules), or use that "
         "moongrid");
  refuse("{\"rank\": 1}", bad,
         "x: this is the view of one rank; without --rank the whole plan is saved");
  refuse("moongrid 1\nworld 8\n", bad,
         "x: this is the text of a plan, which is for people; save a plan with plan --rules or "
         "--json");
  refuse("{\"format\": 1}", bad, "x: rules: a list of 1 or more expected, but it is not there");
  refuse("{\"format\": 1, \"rules\": []}", bad,
         "x: rules: a list of 1 or more expected, not this list");
  refuse("{\"format\": 1, \"rules\": [{\"world\": 0}]}", bad,
         "x: rules[0].world: a number from 1 to 2147483647 expected, not 0");
  refuse("{\"format\": 1, \"rules\": [{\"world\": 8, \"worlds\": 1}]}", bad,
         "x: rules[0]: unknown field 'worlds'; nearest is 'world' (world)");
  refuse("{\"format\": 1, \"rules\": [{\"world\": 99999999999999999999}]}", bad,
         "x:1: too big integer near '99999999999999999999'");
  refuse_rules("", bad,
               "x: digest: '2c566764b630c8719df1cca9ce9c95f3', which is that of the rules, "
               "expected, not '0'");
  refuse("{\"format\": 1, \"rules\": [{\"world\": 8}]}", bad,
         "x: digest: a text expected, but it is not there");
  mgrid_error e = MGRID_ERROR_INIT;
  assert_null(mgrid_plan_read("{\n1", 3, "saved.json", &e));
  assert_string_equal(e.file, "saved.json");
  assert_int_equal(e.line, 2);
}

static void test_refusals(void **unused) {
  (void)unused;
  const mgrid_status bad = MGRID_BAD_VALUE;
  refuse_rules("1", bad,
               "x: rules[1]: a family, param, grid, function, concurrent or an item such as a "
               "tensor expected, not 1");
  refuse_rules("{\"famly\": \"tp\"}", bad,
               "x: rules[1]: a family, param, grid, function, concurrent or an item such as a "
               "tensor expected, not an "
               "object");
  refuse_rules("{\"family\": 1}", bad, "x: rules[1].family: a text expected, not 1");
  refuse_rules("{\"family\": \"tp\"}", bad,
               "x: rules[1].rule: a rule with 'inside', 'groups', 'pick', 'split', 'links', "
               "'segments', 'neighbours', "
               "'union' or 'zip' expected, but it is not there");
  refuse_rules(FAMILY("\"inside\": [[2,1]], \"index\": [[8,2]]"), MGRID_OUT_OF_RANGE,
               "x: rules[1].rule: modes (2:1) x (8:2): rank 15 is out of range; ranks are 0 to 7");
  refuse_rules(FAMILY("\"inside\": [[3,2]], \"index\": [[2,3]]"), bad,
               "x: rules[1].rule: modes whose strides each exceed the reach of the smaller ones "
               "expected, not an "
               "object");
  refuse_rules(FAMILY("\"inside\": [[2]], \"index\": []"), bad,
               "x: rules[1].rule.inside[0]: a list of 2 expected, not this list");
  refuse_rules(
      FAMILY("\"inside\": [[2,1.5]], \"index\": []"), bad,
      "x: rules[1].rule.inside[0][1]: a number from 1 to 2147483647 expected, not a fraction");
  refuse_rules(
      FAMILY("\"inside\": [], \"index\": [], \"ofset\": 1"), bad,
      "x: rules[1].rule: unknown field 'ofset'; nearest is 'offset' (inside, index, offset)");
  refuse_rules(FAMILY("\"inside\": [], \"inside\": []"), bad,
               "x:1: duplicate object key near '\"inside\"'");
  refuse_rules(FAMILY("\"groups\": [[0,8]]"), bad,
               "x: rules[1].rule.groups[0][1]: a number from 0 to 7 expected, not 8");
  refuse_rules(FAMILY("\"groups\": [[0,0]]"), MGRID_DUPLICATE,
               "x: rules[1].rule: rank 0 occurs twice in group 0 of the table");
  refuse_rules(FAMILY("\"groups\": [[]]"), bad,
               "x: rules[1].rule.groups[0]: a list of 1 or more expected, not this list");
  refuse_rules(
      FAMILY("\"split\": 3, \"of\": {\"inside\": [[4,1]], \"index\": [[2,4]]}"), MGRID_REFUSED,
      "x: rules[1].rule: split(3) of groups of 4: 3 does not divide 4; sizes that do: 1, 2, 4");
  refuse_rules(FAMILY("\"split\": 0, \"of\": {\"inside\": [[4,1]], \"index\": [[2,4]]}"), bad,
               "x: rules[1].rule.split: a number from 1 to 2147483647 expected, not 0");
  refuse_rules(FAMILY("\"links\": 2, \"of\": {\"groups\": [[0],[1,2]]}"), bad,
               "x: rules[1].rule.of: a family with groups of one size that share no ranks "
               "expected, not an object");
  refuse_rules(FAMILY("\"pick\": [0], \"of\": {\"groups\": [[0],[1,2]]}"), bad,
               "x: rules[1].rule.of: a rule with 'inside' expected, not an object");
  refuse_rules(FAMILY("\"union\": [{\"inside\": [[4,1]], \"index\": []}, {\"inside\": [[4,2]], "
                      "\"index\": []}]"),
               MGRID_REFUSED,
               "x: rules[1].rule: union: rank 0 is in families 1 and 2; world:table(lists, "
               "\"cover\") holds such "
               "groups, listed one by one");
  refuse_rules("{\"family\": \"tp\", \"rule\": {\"inside\": [], \"index\": []}, \"options\": "
               "{\"lasy\": true}}",
               bad,
               "x: rules[1].options: unknown field 'lasy'; nearest is 'lazy' (unique, first, lazy, "
               "high_priority, "
               "timeout_us, backend, nccl, cartesian, windows, device, parent, single)");
  refuse_rules("{\"family\": \"tp\", \"rule\": {\"inside\": [], \"index\": []}, \"options\": "
               "{\"unique\": 1}}",
               bad, "x: rules[1].options.unique: true or false expected, not 1");
  refuse_rules(
      "{\"family\": \"tp\", \"rule\": {\"inside\": [], \"index\": []}, \"options\": "
      "{\"timeout_us\": \"soon\"}}",
      bad,
      "x: rules[1].options.timeout_us: a number from 1 to 1125899906842624 expected, not 'soon'");
  char backends[512 + 21] = "x: rules[1].options: ";
  unknown_backend(backends + 21, "nothing", "", "", MGRID_BACKENDS_MAKERS, "none");
  refuse_rules("{\"family\": \"tp\", \"rule\": {\"inside\": [], \"index\": []}, \"options\": "
               "{\"backend\": \"nothing\"}}",
               MGRID_UNKNOWN_NAME, backends);
  refuse_rules(TP ", " TP, MGRID_DUPLICATE, "x: rules[2]: the topology already has a family 'tp'");
  refuse_rules("{\"grid\": \"g\", \"dims\": [[\"tp\",2]], \"offset\": 0, \"size\": 8}",
               MGRID_REFUSED,
               "x: rules[1]: tp 2 does not make the 8 ranks; nearest: tp 8, or a world of 2 ranks");
  refuse_rules("{\"grid\": \"g\", \"dims\": [[\"tp\",2]], \"offset\": 7, \"size\": 2}",
               MGRID_OUT_OF_RANGE,
               "x: rules[1]: a window from rank 7 of 8 has 1 to 1 ranks, not 2");
  refuse_rules("{\"concurrent\": [\"a\", \"b\"]}", MGRID_UNKNOWN_NAME,
               "x: rules[1]: concurrent: unknown family 'a'; there are none");
  refuse_rules("{\"concurrent\": [\"a\"]}", bad,
               "x: rules[1].concurrent: a list of 2 to 4096 expected, not this list");
  refuse_rules("{\"param\": \"a\", \"value\": 8}", bad,
               "x: rules[1].value: a text expected, not 8");
  refuse_rules("{\"param\": \"a\", \"value\": \"\\n\"}", bad,
               "x: rules[1]: the value of parameter 'a' is one line of text in UTF-8, without "
               "control characters, not '\\n'");
  refuse_rules("{\"param\": \"a\", \"value\": \"8\"}, {\"param\": \"a\", \"value\": \"8\"}",
               MGRID_DUPLICATE, "x: rules[2]: the topology already has a parameter 'a'");
  refuse_rules(TENSOR("\"over\": {\"dims\": [], \"offset\": 0, \"size\": 8}"), MGRID_REFUSED,
               "x: rules[1].over: 1 does not make the 8 ranks; nearest: a world of 1 ranks");
  refuse_rules(TENSOR(OVER ", \"on\": {\"tp\": [4,1]}"), MGRID_OUT_OF_RANGE,
               "x: rules[1]: coordinates of dim 'tp' are 0 to 7, ascending");
  refuse_rules(TENSOR(OVER ", \"on\": {\"pp\": [1]}"), bad,
               "x: rules[1].on: unknown field 'pp'; known: tp");
  refuse_rules(
      "{\"tensor\": \"w\", \"flat\": \"v\", \"member\": 0}", bad,
      "x: rules[1].flat: a flat, or the name of an earlier tensor that has it expected, not 'v'");
  refuse_rules("{\"tensor\": \"w\", \"flat\": {\"by\": [\"tp\"], \"pad\": 1, \"members\": "
               "[{\"type\": \"bf16\", \"axes\": "
               "[{\"name\": \"a\", \"length\": 4}], " OVER "}]}, \"member\": 1}",
               bad, "x: rules[1].member: a number from 0 to 0 expected, not 1");
}

/* Long and deep ones end by a limit, not by the stack, the memory or the clock. */
static void test_limits(void **unused) {
  (void)unused;
  enum { MANY = 100000 };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_text t = { 0 }, rules = { 0 };
  mgrid_text_str(&rules, "{\"family\": \"tp\", \"rule\": ");
  for (int i = 0; i < 65; i++) mgrid_text_str(&rules, "{\"zip\":[");
  mgrid_text_str(&rules, "{\"inside\": [], \"index\": []}");
  for (int i = 0; i < 65; i++) mgrid_text_str(&rules, "]}");
  mgrid_text_str(&rules, "}");
  with_rules(&t, rules.data);
  assert_null(mgrid_plan_read(t.data, t.len, "deep", anew(&e)));
  assert_string_equal(e.message, "deep: rules[1].rule: families are nested more than 64 deep");
  t.len = 0;
  for (int i = 0; i < MANY; i++) mgrid_text_str(&t, "{\"of\":");
  assert_null(mgrid_plan_read(t.data, t.len, "deep", anew(&e)));
  assert_string_equal(e.message, "deep: brackets are nested more than 200 deep");
  t.len = 0;
  mgrid_text_str(&t, "{\"format\": 1, \"rules\": [{\"world\": 2147483647}");
  for (int i = 0; i < MANY; i++)
    mgrid_text_add(&t, ",{\"family\":\"f%d\",\"rule\":{\"inside\":[[2,1]],\"index\":[[%d,2]]}}", i,
                   i + 2);
  mgrid_text_str(&t, "]}");
  double began = mgrid_processor_now();
  assert_null(mgrid_plan_read(t.data, t.len, "wide", anew(&e)));
  assert_string_equal(e.message, "wide: reading the plan takes more work than allowed");
  assert_int_equal(e.status, MGRID_LIMIT);
  assert_true(mgrid_processor_now() - began < 60);
  t.len = 0;
  mgrid_text_str(&t, "{");
  while (t.len <= MGRID_SAVED_MAX) mgrid_text_str(&t, " \n");
  assert_null(mgrid_plan_read(t.data, t.len, NULL, anew(&e)));
  assert_string_equal(
      e.message,
      "plan: 16777217 bytes; a plan that is read has at most 16777216: mgrid_plan_save and "
      "--rules leave out lists of ranks");
  mgrid_text_free(&rules);
  mgrid_text_free(&t);
}

/* What is read is refused, with the file's name, or is a plan that reads the same again. If only
** the digest is wrong it is set right first, so that what was bent is read to its end. */
static bool check_bent(const rng *r, mgrid_text *t) {
  static const char wrong[] = "bent: digest: '", field[] = "\"digest\": \"";
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *read = mgrid_plan_read(t->data, t->len, "bent", &e);
  const char *own = strncmp(e.message, wrong, sizeof wrong - 1) == 0 ? e.message : NULL;
  char *digest = own ? strstr(t->data, field) : NULL;
  if (digest && strlen(digest) > sizeof field + 32) {
    memcpy(digest + sizeof field - 1, own + sizeof wrong - 1, 32);
    read = mgrid_plan_read(t->data, t->len, "bent", anew(&e));
  }
  check(r, !read == (e.status != MGRID_OK));
  check(r, read || strncmp(e.message, "bent:", 5) == 0);
  if (!read) return false;
  check_saved(r, read);
  mgrid_plan_free(read);
  return true;
}

/* A few bytes changed. */
static void test_bent(void **unused) {
  (void)unused;
  int made = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + cases(400); seed++) {
    mgrid_error e = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 40);
    draw_more(&r, &t);
    mgrid_plan *p = mgrid_plan_new(t.topology, &e);
    mgrid_text whole = written(p, mgrid_plan_save);
    for (int i = 0; i < 60; i++) {
      static const char bytes[] = "0123456789[]{}:,\"abflmnoprstuw";
      mgrid_text bent = { 0 };
      mgrid_text_put(&bent, whole.data, whole.len);
      for (int64_t k = rng_between(&r, 1, 2); k > 0; k--) {
        size_t at = (size_t)rng_between(&r, 0, (int64_t)bent.len - 1);
        if (rng_chance(&r, 30))
          memmove(bent.data + at, bent.data + at + 1, bent.len-- - at);
        else
          bent.data[at] = bytes[rng_between(&r, 0, sizeof bytes - 2)];
      }
      made += check_bent(&r, &bent);
      mgrid_text_free(&bent);
    }
    mgrid_text_free(&whole);
    mgrid_plan_free(p);
    topology_free(&t);
  }
  assert_true(made > 500);
}

/* Each number replaced by those at which arithmetic ends. */
static void bend_numbers(const rng *r, const mgrid_plan *p) {
  static const char *const ends[] = {
    "0", "1", "2147483647", "2147483648", "4294967296", "4611686018427387904", "9223372036854775807"
  };
  mgrid_text whole = written(p, mgrid_plan_save);
  for (size_t at = 0, n; at < whole.len; at += n) {
    n = strspn(whole.data + at, "0123456789");
    for (size_t i = 0; n > 0 && i < sizeof ends / sizeof *ends; i++) {
      mgrid_text bent = { 0 };
      mgrid_text_put(&bent, whole.data, at);
      mgrid_text_str(&bent, ends[i]);
      mgrid_text_str(&bent, whole.data + at + n);
      check_bent(r, &bent);
      mgrid_text_free(&bent);
    }
    n += n == 0;
  }
  mgrid_text_free(&whole);
}

/* ------------------------------------------------------------------- each field */

/* Read the object, which must be refused; the message begins with "x: " and `place`. */
static void refuse_object(const rng *r, const json_t *all, const char *place) {
  mgrid_error e = MGRID_ERROR_INIT;
  char *text = json_dumps(all, 0), begin[64];
  mgrid_plan *read = mgrid_plan_read(text, strlen(text), "x", &e);
  snprintf(begin, sizeof begin, "x: %s", place);
  if (read || strncmp(e.message, begin, strlen(begin)) != 0)
    print_message("%s\n%s\n", text, e.message);
  check(r, !read && strncmp(e.message, begin, strlen(begin)) == 0);
  free(text);
}

/* Refuse each value below v of another kind, each object without one of its fields or with one
** more, and each list that is not a list. Return how many. */
static int bend_below(const rng *r, const json_t *all, json_t *v) {
  const char *key;
  json_t *one;
  void *next;
  int bent = 0;
  size_t i;
  if (json_is_object(v)) {
    json_object_set_new(v, "another", json_integer(1));
    refuse_object(r, all, "rules[");
    json_object_del(v, "another");
    json_object_foreach_safe(v, next, key, one) {
      json_incref(one);
      json_object_set_new(v, key, json_is_string(one) ? json_integer(1) : json_string("one"));
      refuse_object(r, all, "rules[");
      json_object_set(v, key, one);
      bent += 2 + bend_below(r, all, one);
      json_decref(one);
    }
  } else if (json_is_array(v)) {
    json_array_foreach(v, i, one) {
      json_incref(one);
      json_array_set_new(v, i, json_is_string(one) ? json_integer(1) : json_string("one"));
      refuse_object(r, all, "rules[");
      json_array_set(v, i, one);
      bent += 1 + bend_below(r, all, one);
      json_decref(one);
    }
  }
  return bent;
}

static int bend_fields(const rng *r, const mgrid_plan *p) {
  mgrid_text saved = written(p, mgrid_plan_save);
  json_t *all = json_loadb(saved.data, saved.len, 0, NULL), *rule;
  int bent = 0;
  size_t i;
  json_array_foreach(json_object_get(all, "rules"), i, rule) { bent += bend_below(r, all, rule); }
  json_decref(all);
  mgrid_text_free(&saved);
  return bent;
}

/* The numbers and the fields of random plans, and of tensors. */
static void test_values(void **unused) {
  (void)unused;
  world *w = malloc(sizeof *w);
  int64_t length[DEALT_AXES];
  int bent = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + 40; seed++) {
    mgrid_error e = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 16);
    draw_more(&r, &t);
    mgrid_plan *p = mgrid_plan_new(t.topology, &e);
    bend_numbers(&r, p);
    bent += bend_fields(&r, p);
    mgrid_plan_free(p);
    topology_free(&t);
    memset(w, 0, sizeof *w);
    draw_sides(&r, w);
    for (size_t i = 0; i < 2; i++) length[i] = rng_between(&r, 1, DEALT_LENGTH);
    draw_tensor(&r, &w->from, 2, length, true);
    if (rng_chance(&r, 50)) draw_flat(&r, &w->from);
    p = plan_with(&r, &w->from);
    bend_numbers(&r, p);
    bent += bend_fields(&r, p);
    mgrid_plan_free(p);
    dealt_free(&w->from);
    mgrid_grid_free(w->to.d.grid);
  }
  assert_true(bent > 1000);
  free(w);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_drawn),    cmocka_unit_test(test_families),
    cmocka_unit_test(test_tensors),  cmocka_unit_test(test_recipes),
    cmocka_unit_test(test_million),  cmocka_unit_test(test_heads),
    cmocka_unit_test(test_refusals), cmocka_unit_test(test_limits),
    cmocka_unit_test(test_bent),     cmocka_unit_test(test_values),
  };
  return run_program("saved", tests, argc, argv);
}
