/* SPDX-License-Identifier: MIT
**
** test_saved.c - plans that are saved and read back, as text, as rules and as JSON with lists: random ones with every form
** of family, options, concurrent families, tensors and flats, and the bundled recipes. And texts that nobody saved.
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
  mgrid_text  t = { 0 };
  assert_int_equal(w(p, mgrid_text_sink, &t, &e), MGRID_OK);
  assert_false(t.failed);
  return t;
}

/* Has the plan a flat of which a member is no tensor of it? */
static bool lacks_member(const mgrid_plan *p) {
  const size_t n = mgrid_plan_ntensors(p);
  for (size_t i = 0; i < n; i++) {
    const mgrid_flat *f = mgrid_plan_tensor(p, mgrid_plan_tensor_name(p, i))->flat;
    size_t            found = 0;
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

/* The plan that is read is the one that was saved: by its digest, and by all that JSON says of it. */
static void check_saved(const rng *r, const mgrid_plan *p) {
  writer *const ways[] = { mgrid_plan_print, mgrid_plan_save, write_json };
  mgrid_text    all = written(p, write_json);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    char        was[33], is[33];
    mgrid_error e = MGRID_ERROR_INIT;
    mgrid_text  saved = written(p, ways[i]);
    check(r, mgrid_plan_is_saved(saved.data, saved.len));
    mgrid_plan *read = mgrid_plan_read(saved.data, saved.len, "saved", &e);
    if (i == 0 && lacks_member(p)) {
      check(r, !read && e.status == MGRID_REFUSED && strstr(e.message, "the JSON of such a plan has it in 'flats'"));
    } else {
      if (!read) print_message("%s\n%s\n", e.message, saved.data);
      check(r, read && e.status == MGRID_OK);
      mgrid_plan_digest(p, was);
      mgrid_plan_digest(read, is);
      check(r, strcmp(was, is) == 0);
      free(read->content.recipe); /* text has no name of the recipe */
      check(r, (read->content.recipe = mgrid_strdup(p->content.recipe)));
      mgrid_text again = written(read, write_json);
      for (size_t k = 0; strcmp(again.data, all.data) && k < all.len; k++)
        if (again.data[k] != all.data[k]) {
          print_message("%.300s\nnot\n%.300s\n", again.data + k, all.data + k);
          break;
        }
      check(r, again.len == all.len && memcmp(again.data, all.data, all.len) == 0);
      mgrid_text_free(&again);
    }
    mgrid_plan_free(read);
    mgrid_text_free(&saved);
  }
  mgrid_text_free(&all);
}

/* Grids over the world, windows and orders, parameters, and lists of concurrent families. */
static void draw_more(rng *r, drawn_topology *t) {
  static const char *const grid[] = { "g0", "g1", "g2" };
  static const char *const value[] = { "", "8", "a = b", "family f0: (1) x (1)", "\xc3\xa9\xe2\x86\x92", "\"x\"" };
  mgrid_error              e = MGRID_ERROR_INIT;
  for (size_t i = 0; i < 3 && rng_chance(r, 60); i++) {
    int64_t     from = rng_chance(r, 50) ? 0 : rng_between(r, 0, t->world - 1);
    drawn       d = draw_grid_over(r, (mgrid_window){ t->world, from, t->world - from });
    mgrid_grid *over = NULL;
    if (rng_chance(r, 50)) { /* the same ranks in another order */
      int64_t  starts[] = { 0, d.window.size };
      int64_t *ranks = malloc((size_t)d.window.size * sizeof *ranks);
      size_t  *any = malloc((size_t)d.window.size * sizeof *any);
      for (int64_t k = 0; k < d.window.size; k++) any[k] = (size_t)k;
      rng_shuffle(r, rng_chance(r, 70) ? (size_t)d.window.size : 0, any);
      for (int64_t k = 0; k < d.window.size; k++) ranks[k] = (int64_t)(from + (int64_t)any[k]);
      mgrid_family *order = mgrid_family_table(mgrid_world(t->world), 1, starts, ranks, MGRID_PARTIAL, &e);
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
    const char *names[] = { t->topology->content.entry[i].name, t->topology->content.entry[t->n - 1].name };
    mgrid_topology_concurrent(t->topology, 2, names, &e);
  }
  if (rng_chance(r, 30)) mgrid_topology_recipe(t->topology, "a \"name\"", &e);
  check(r, e.status == MGRID_OK);
}

static void test_drawn(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + 1500; seed++) {
    mgrid_error    e = MGRID_ERROR_INIT;
    rng            r = rng_new(seed);
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
  for (uint64_t seed = first_seed(); seed < first_seed() + 3000; seed++) {
    mgrid_error     e = MGRID_ERROR_INIT;
    lists           l;
    rng             r = rng_new(seed);
    drawn           d = draw_grid(&r, 64);
    mgrid_family   *f = draw_family(&r, &d, (int)rng_between(&r, 0, 5), &l);
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
  int     flat = 0;
  world  *w = malloc(sizeof *w);
  int64_t length[DEALT_AXES];
  for (uint64_t seed = first_seed(); seed < first_seed() + 1000; seed++) {
    rng    r = rng_new(seed);
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
  assert_true(flat > 20);
  free(w);
}

/* With the parameters' own values; some recipes refuse them. */
static void test_recipes(void **unused) {
  (void)unused;
  const int64_t worlds[] = { 8, 64, 96, 1024, 16384 };
  rng           r = rng_new(0);
  int           plans = 0, recipes = 0;
  for (const char *const *name = mgrid_recipe_names(); *name; name++, recipes++)
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
      mgrid_error    e = MGRID_ERROR_INIT;
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
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  const char    *args[] = { "tp=8", "pp=16" };
  assert_int_equal(mgrid_runtime_load(rt, "megatron", NULL, 0, &e), MGRID_OK);
  mgrid_plan *p = mgrid_runtime_plan(rt, 1 << 20, NULL, 2, args, &e);
  assert_non_null(p);
  double      began = mgrid_processor_now();
  mgrid_text  t = written(p, mgrid_plan_save);
  mgrid_plan *read = mgrid_plan_read(t.data, t.len, NULL, &e);
  double      took = mgrid_processor_now() - began;
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

#define HEAD "moongrid 1\nworld 8\n"

static void refuse(const char *text, mgrid_status status, const char *message) {
  mgrid_error e = MGRID_ERROR_INIT;
  assert_null(mgrid_plan_read(text, strlen(text), "x", &e));
  assert_string_equal(e.message, message);
  assert_int_equal(e.status, status);
}

static void test_refusals(void **unused) {
  (void)unused;
  const mgrid_status bad = MGRID_BAD_VALUE;
  refuse("", bad, "x: it ends where 'moongrid 1' and 'world N' are expected");
  refuse("return recipe {}", bad, "x:1: character 1: 'moongrid 1' expected, not 'return recipe {}'");
  refuse("moongrid 2\n", bad, "x:1: character 1: 'moongrid 1' expected, not 'moongrid 2'");
  refuse("moongrid 1\nworld 0\n", MGRID_OUT_OF_RANGE, "x:2: a world has 1 to 2147483647 ranks, not 0");
  refuse("moongrid 1\nworld 8 9\n", bad, "x:2: character 8: the end of the line expected, not ' 9'");
  refuse(HEAD "\n", bad,
         "x:3: it ends where param, function, grid, concurrent, family or a thing such as tensor is expected");
  refuse(HEAD "family tp\n", bad, "x:3: it ends where ': ' is expected");
  refuse(HEAD "family tp: (2:1 x (4:2)\n", bad, "x:3: character 16: ')' expected, not ' x (4:2)'");
  refuse(HEAD "family tp: tp\n", bad, "x:3: character 12: a rule of a family expected, not 'tp'");
  refuse(HEAD "family tp: (2:1) x (8:2)\n", MGRID_OUT_OF_RANGE,
         "x:3: modes (2:1) x (8:2): rank 15 is out of range; ranks are 0 to 7");
  refuse(HEAD "family tp: (3:2) x (2:3)\n", bad,
         "x:3: character 12: modes whose strides each exceed the reach of the smaller ones expected, not '(3:2) x "
         "(2:3)'");
  refuse(HEAD "family tp: (2:1)(2:2) x (2:4)\n", bad,
         "x:3: 'family tp: (4:1) x (2:4)' expected, not 'family tp: (2:1)(2:2) x (2:4)', as a plan is saved");
  refuse(HEAD "family tp: (2:1) x (4:2) lazy first\n", bad,
         "x:3: character 31: an option, in the order of lua/README.md expected, not 'first'");
  refuse(HEAD "family tp: (2:1) x (4:2) unique=1\n", bad, "x:3: character 32: ' ' expected, not '=1'");
  refuse(HEAD "family tp: (2:1) x (4:2) timeout_us=soon\n", bad, "x:3: character 37: a number expected, not 'soon'");
  char backends[512 + 5] = "x:3: ";
  unknown_backend(backends + 5, "nothing", "", "", MGRID_BACKENDS_MAKERS, "none");
  refuse(HEAD "family tp: (2:1) x (4:2) backend=nothing\n", MGRID_UNKNOWN_NAME, backends);
  refuse(HEAD "family tp: {0,8}\n", bad, "x:3: character 15: a rank of this world expected, not '8}'");
  refuse(HEAD "family tp: {0,0}\n", MGRID_DUPLICATE, "x:3: rank 0 occurs twice in group 0 of the table");
  refuse(HEAD "family tp: split(3) of [(4:1) x (2:4)]\n", MGRID_REFUSED,
         "x:3: split(3) of groups of 4: 3 does not divide 4; sizes that do: 1, 2, 4");
  refuse(
      HEAD "family tp: union[(4:1) x (1) | (4:2) x (1)]\n", MGRID_REFUSED,
      "x:3: union: rank 0 is in families 1 and 2; world:table(lists, \"cover\") holds such groups, listed one by one");
  refuse(HEAD "family tp: (2:1) x (4:2)\nfamily tp: (2:1) x (4:2)\n", MGRID_DUPLICATE,
         "x:4: the topology already has a family 'tp'");
  refuse(HEAD "family tp: (2:1) x (4:2)\nparam a = b\n", bad,
         "x:3: 'param a = b' expected, not 'family tp: (2:1) x (4:2)', as a plan is saved");
  refuse(HEAD "grid g: tp 2 over ranks 0..7\n", MGRID_REFUSED,
         "x:3: tp 2 does not make the 8 ranks; nearest: tp 8, or a world of 2 ranks");
  refuse(HEAD "grid g: tp 2 over ranks 9..7\n", bad,
         "x:3: it ends where a highest rank that is not below the lowest is expected");
  refuse(HEAD "concurrent a b\n", MGRID_UNKNOWN_NAME, "x:3: concurrent: unknown family 'a'; there are none");
  refuse(HEAD "tensor w: bf16 a 4 by pp over tp 8 over ranks 0..7\n", MGRID_UNKNOWN_NAME,
         "x:3: axis 'a': unknown dim 'pp'; nearest is 'tp' (tp)");
  refuse(HEAD "tensor w: bf16 a 4 over tp 8 over ranks 0..7 on tp 4,1\n", MGRID_OUT_OF_RANGE,
         "x:3: coordinates of dim 'tp' are 0 to 7, ascending");
  refuse(HEAD "tensor w: bf16 a 4 over tp 8 over ranks 0..7 flat 1 of 9 by tp pad 1 as 0123456789abcdef\n", bad,
         "x:3: it ends where a flat whose members are all here is expected");
  refuse(HEAD "tensor w: bf16 a 4 over tp 8 over ranks 0..7 flat 1 of 2 by tp pad 1 as 0123456789abcdef\n",
         MGRID_REFUSED,
         "x: member 2 of 2 of the flat 0123456789abcdef is missing, because it is not a tensor of the plan; the JSON "
         "of such "
         "a plan "
         "has it in 'flats'");
  refuse(HEAD "grid g: a 2 over ranks 0..9223372036854775807\n", bad,
         "x:3: character 27: a rank of this world expected, not '9223372036854775807'");
  refuse("moongrid 1\r\nworld 8\nfamily tp: (2:1) x (4:2)\r\n", bad,
         "x:2: a line that ends with \\r\\n expected, as the first one does");
  refuse(HEAD "family tp: (2:1) x (4:2)\r\n", bad, "x:3: character 25: ' ' expected, not '\\x0d'");
  refuse("moongrid 1\r\nworld 8\r", bad, "x:2: character 8: the end of the line expected, not '\\x0d'");
  refuse("{", bad, "x:1: string or '}' expected near end of file");
  refuse("{}", bad, "x: a list 'rules' expected, which the JSON of a plan has");
  refuse("{\"rank\": 1}", bad, "x: this is the view of one rank; without --rank the whole plan is saved");
  refuse("{\"rules\": []}", bad, "x: a text 'digest' expected, which the JSON of a plan has");
  refuse("{\"rules\": [1], \"digest\": \"\"}", bad, "x: rules[0]: a string expected");
  refuse("{\"rules\": [\"moongrid 1\", \"world 8\", \"family\"], \"digest\": \"\"}", bad,
         "x: rules[2]: character 1: param, function, grid, concurrent, family or a thing such as tensor expected, not "
         "'family'");
  refuse("{\"rules\": [\"moongrid 1\", \"world 8\"], \"digest\": \"0\"}", bad,
         "x: digest: 99218dad8ce2fb0b36d3cbd99965ad70 expected, which is that of the rules, not '0'");
  mgrid_error e = MGRID_ERROR_INIT;
  assert_null(mgrid_plan_read(HEAD "family tp: x", sizeof HEAD "family tp: x" - 1, "saved.txt", &e));
  assert_string_equal(e.file, "saved.txt");
  assert_int_equal(e.line, 3);
}

/* Long and deep texts end by a limit, not by the stack, the memory or the clock. */
static void test_limits(void **unused) {
  (void)unused;
  enum { MANY = 100000 };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_text  t = { 0 };
  mgrid_text_str(&t, HEAD "family tp: ");
  for (int i = 0; i < MANY; i++) mgrid_text_str(&t, "neighbours(1) of [");
  assert_null(mgrid_plan_read(t.data, t.len, "deep", anew(&e)));
  assert_string_equal(e.message, "deep:3: character 1182: at most 64 nested families expected, not "
                                 "'neighbours(1) of [ne'");
  t.len = 0;
  mgrid_text_str(&t, "moongrid 1\nworld 2147483647\n");
  for (int i = 0; i < MANY; i++) mgrid_text_add(&t, "family f%d: (2:1) x (%d:2)\n", i, i + 2);
  double began = mgrid_processor_now();
  assert_null(mgrid_plan_read(t.data, t.len, "wide", anew(&e)));
  assert_string_equal(e.message, "wide: reading the plan takes more work than allowed");
  assert_int_equal(e.status, MGRID_LIMIT);
  assert_true(mgrid_processor_now() - began < 60);
  t.len = 0;
  while (t.len <= MGRID_SAVED_MAX) mgrid_text_str(&t, " \n");
  assert_null(mgrid_plan_read(t.data, t.len, NULL, anew(&e)));
  assert_string_equal(e.message, "plan: 67108866 bytes of text; a plan that is read has at most 67108864");
  t.data[0] = '{';
  assert_null(mgrid_plan_read(t.data, t.len, NULL, anew(&e)));
  assert_string_equal(e.message, "plan: 67108866 bytes of JSON; a plan that is read has at most 16777216: "
                                 "mgrid_plan_save and --rules leave out lists of ranks");
  mgrid_text_free(&t);
}

/* What is read is refused, with a place, or is a plan whose text is exactly this; lines may end with \r\n, and the last end
** may be missing. */
static bool check_canonical(const rng *r, const char *text, size_t len) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *read = mgrid_plan_read(text, len, "bent", &e);
  check(r, !read == (e.status != MGRID_OK));
  check(r, read || strncmp(e.message, "bent:", 5) == 0);
  if (!read) return false;
  mgrid_text again = written(read, mgrid_plan_print), ends = { 0 };
  const bool windows = strstr(text, "\r\n") != NULL;
  for (size_t i = 0; i < again.len; i++) {
    if (again.data[i] == '\n' && windows) mgrid_text_str(&ends, "\r");
    mgrid_text_put(&ends, again.data + i, 1);
  }
  size_t n = ends.len - (text[len - 1] == '\n' ? 0 : windows ? 2 : 1);
  check(r, n == len && memcmp(ends.data, text, n) == 0);
  mgrid_text_free(&ends);
  mgrid_text_free(&again);
  mgrid_plan_free(read);
  return true;
}

/* A few bytes changed. */
static void test_bent(void **unused) {
  (void)unused;
  int made = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + 400; seed++) {
    mgrid_error    e = MGRID_ERROR_INIT;
    rng            r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 40);
    draw_more(&r, &t);
    mgrid_plan *p = mgrid_plan_new(t.topology, &e);
    mgrid_text  whole = written(p, mgrid_plan_print);
    for (int i = 0; i < 60; i++) {
      static const char bytes[] = "0123456789()[]{}:, x+|\n\r abflmnoprstuw=";
      mgrid_text        bent = { 0 };
      mgrid_text_put(&bent, whole.data, whole.len);
      for (int64_t k = rng_between(&r, 1, 2); k > 0; k--) {
        size_t at = (size_t)rng_between(&r, 0, (int64_t)bent.len - 1);
        if (rng_chance(&r, 30))
          memmove(bent.data + at, bent.data + at + 1, bent.len-- - at - 1);
        else
          bent.data[at] = bytes[rng_between(&r, 0, sizeof bytes - 2)];
      }
      made += check_canonical(&r, bent.data, bent.len);
      mgrid_text_free(&bent);
    }
    for (size_t at = 0; at < whole.len; at++) { /* one line ends as on Windows, or the last one by \r alone */
      if (whole.data[at] != '\n') continue;
      mgrid_text bent = { 0 };
      mgrid_text_add(&bent, "%.*s\r%s", (int)at, whole.data, at + 1 < whole.len ? whole.data + at : "");
      check(&r, !check_canonical(&r, bent.data, bent.len));
      mgrid_text_free(&bent);
    }
    mgrid_text_free(&whole);
    mgrid_plan_free(p);
    topology_free(&t);
  }
  assert_true(made > 1000);
}

/* Each number replaced by those at which arithmetic ends. */
static void bend_numbers(const rng *r, const mgrid_plan *p) {
  static const char *const ends[] = {
    "0", "1", "2147483647", "2147483648", "4294967296", "4611686018427387904", "9223372036854775807"
  };
  mgrid_text whole = written(p, mgrid_plan_print);
  for (size_t at = 0, n; at < whole.len; at += n) {
    n = strspn(whole.data + at, "0123456789");
    for (size_t i = 0; n > 0 && i < sizeof ends / sizeof *ends; i++) {
      mgrid_text bent = { 0 };
      mgrid_text_put(&bent, whole.data, at);
      mgrid_text_str(&bent, ends[i]);
      mgrid_text_str(&bent, whole.data + at + n);
      check_canonical(r, bent.data, bent.len);
      mgrid_text_free(&bent);
    }
    n += n == 0;
  }
  mgrid_text_free(&whole);
}

static void test_numbers(void **unused) {
  (void)unused;
  world  *w = malloc(sizeof *w);
  int64_t length[DEALT_AXES];
  for (uint64_t seed = first_seed(); seed < first_seed() + 200; seed++) {
    mgrid_error    e = MGRID_ERROR_INIT;
    rng            r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 16);
    draw_more(&r, &t);
    mgrid_plan *p = mgrid_plan_new(t.topology, &e);
    bend_numbers(&r, p);
    mgrid_plan_free(p);
    topology_free(&t);
    memset(w, 0, sizeof *w);
    draw_sides(&r, w);
    for (size_t i = 0; i < 2; i++) length[i] = rng_between(&r, 1, DEALT_LENGTH);
    draw_tensor(&r, &w->from, 2, length, true);
    if (rng_chance(&r, 50)) draw_flat(&r, &w->from);
    p = plan_with(&r, &w->from);
    bend_numbers(&r, p);
    mgrid_plan_free(p);
    dealt_free(&w->from);
    mgrid_grid_free(w->to.d.grid);
  }
  free(w);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_drawn),   cmocka_unit_test(test_families), cmocka_unit_test(test_tensors),
    cmocka_unit_test(test_recipes), cmocka_unit_test(test_million),  cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_limits),  cmocka_unit_test(test_bent),     cmocka_unit_test(test_numbers),
  };
  return run_program("saved", tests, argc, argv);
}
