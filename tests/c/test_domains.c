/* SPDX-License-Identifier: MIT
**
** test_domains.c - machines: their text, their domains and families, and what groups cross, against
** machines that the test draws and numbers place by place.
*/
#include "topologies.h"

#include "machine/count.h"
#include "machine/model.h"
#include "moongrid_machine.h"

enum { CASES = 3000, MOST = 400, TIERS = 4, WORDS = 4096 };

/* A machine as the test keeps it: the domain of each place, level by level, and of a rail. */
typedef struct sketch {
  size_t n; /* levels */
  int64_t places, domains[TIERS + 1];
  int64_t of[TIERS + 1][MOST]; /* the domain of a place; [n]: its rail */
  int64_t index[TIERS][MOST];  /* of the domain within that of the level before */
  char text[WORDS];
  bool rail;
  int64_t at[MOST], nranks; /* places of ranks; nranks 0: in order */
} sketch;

static const char *const level_name[TIERS + 1] = { "pod", "rack", "node", "gpu", "rail" };

/* Add a level below the places found so far: each of them becomes some places. */
static void deepen(rng *r, sketch *s, bool regular, char *at, size_t room) {
  int64_t each = rng_between(r, 1, 4), kids[MOST], n = 0;
  int64_t old = s->n ? s->places : 1, total = 0;
  for (int64_t p = 0; p < old; p++)
    total += kids[p] = regular || s->n == 0 ? each : rng_between(r, 1, 4);
  if (total > MOST) {
    for (int64_t p = 0; p < old; p++) kids[p] = 1;
    total = old;
  }
  int len = snprintf(at, room, "%s%s:", s->n ? " " : "", level_name[s->n]);
  if (regular || s->n == 0)
    len += snprintf(at + len, room - (size_t)len, "%" PRId64, kids[0]);
  else
    for (int64_t p = 0; p < old; p++)
      len += snprintf(at + len, room - (size_t)len, "%s%" PRId64, p ? "," : "", kids[p]);
  static int64_t was[TIERS + 1][MOST], within[TIERS][MOST];
  memcpy(was, s->of, sizeof was);
  memcpy(within, s->index, sizeof within);
  for (int64_t p = 0; p < old; p++) {
    for (int64_t k = 0; k < kids[p]; k++, n++) {
      for (size_t l = 0; l < s->n; l++) s->of[l][n] = was[l][p], s->index[l][n] = within[l][p];
      s->of[s->n][n] = n;
      s->index[s->n][n] = k;
    }
  }
  s->places = n;
  s->domains[s->n++] = n;
}

static void draw_machine(rng *r, sketch *s) {
  memset(s, 0, sizeof *s);
  bool regular = rng_chance(r, 50);
  for (size_t n = (size_t)rng_between(r, 1, TIERS); s->n < n;)
    deepen(r, s, regular || rng_chance(r, 50), s->text + strlen(s->text),
           sizeof s->text - strlen(s->text));
  s->rail = rng_chance(r, 60);
  if (s->rail) {
    size_t of = (size_t)rng_between(r, 0, (int64_t)s->n - 1);
    int64_t share = rng_chance(r, 70) ? 1 : 2, width = 0;
    int in = of > 0 && rng_chance(r, 30) ? (int)rng_between(r, 0, (int64_t)of - 1) : -1;
    snprintf(s->text + strlen(s->text), 64, " rail = %s", level_name[of]);
    if (share > 1) snprintf(s->text + strlen(s->text), 64, " / %" PRId64, share);
    if (in >= 0) snprintf(s->text + strlen(s->text), 64, " in %s", level_name[in]);
    for (int64_t p = 0; p < s->places; p++)
      if (s->index[of][p] / share + 1 > width) width = s->index[of][p] / share + 1;
    for (int64_t p = 0; p < s->places; p++)
      s->of[s->n][p] = s->index[of][p] / share + (in < 0 ? 0 : s->of[in][p] * width);
    s->domains[s->n] = in < 0 ? width : width * s->domains[in];
  }
  if (!rng_chance(r, 25)) return;
  size_t order[MOST];
  for (int64_t p = 0; p < s->places; p++) order[p] = (size_t)p;
  rng_shuffle(r, (size_t)s->places, order);
  s->nranks = rng_between(r, 1, s->places);
  strcat(s->text, " ranks = ");
  for (int64_t k = 0; k < s->nranks; k++) {
    s->at[k] = (int64_t)order[k];
    snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), "%s%" PRId64,
             k ? "," : "", s->at[k]);
  }
}

static int64_t domain_of(const sketch *s, size_t level, int64_t rank) {
  return s->of[level][s->nranks ? s->at[rank] : rank];
}

static mgrid_machine_model *parse(rng *r, const char *text) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_machine_model *m = mgrid_machine_parse(text, &err);
  if (!m) fail_msg("%s: %s; MOONGRID_SEED=%" PRIu64, text, err.message, r->seed);
  return m;
}

/* ----------------------------------------------------------------- domains */

static void test_places(void **unused) {
  static sketch s;
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    draw_machine(&r, &s);
    mgrid_machine_model *m = parse(&r, s.text);
    check(&r, mgrid_machine_places(m) == s.places && mgrid_machine_nlevels(m) == s.n + s.rail);
    int64_t ranks = s.nranks ? s.nranks : s.places;
    for (size_t l = 0; l < s.n + s.rail; l++) {
      mgrid_machine_level level = MGRID_MACHINE_LEVEL_INIT;
      check(&r, mgrid_machine_describe_level(m, l, &level, NULL) == MGRID_OK
                    && level.domains == s.domains[l]);
      check(&r, strcmp(level.name, level_name[l < s.n ? l : TIERS]) == 0
                    && level.crosses == (l == s.n));
      for (int64_t k = 0; k < ranks; k++)
        check(&r, mgrid_machine_domain(m, l, k) == domain_of(&s, l, k));
      check(&r, mgrid_machine_domain(m, l, ranks) == -1 && mgrid_machine_domain(m, l, -1) == -1);
    }
    mgrid_machine_free(m);
  }
}

/* What was written is read back as the same machine, as text and as JSON of a scan. */
static void test_text(void **unused) {
  static sketch s;
  static char text[WORDS], again[WORDS];
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    draw_machine(&r, &s);
    mgrid_machine_model *m = parse(&r, s.text);
    check(&r, mgrid_machine_describe(m, text, sizeof text) < sizeof text);
    mgrid_machine_model *n = parse(&r, text);
    mgrid_machine_describe(n, again, sizeof again);
    check(&r, strcmp(text, again) == 0);
    mgrid_machine_free(n);
    mgrid_machine_free(m);
  }
}

/* The family of a level has the ranks of each domain, in order, and leaves out domains without
** ranks. */
static void test_families(void **unused) {
  static sketch s;
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    mgrid_error err = MGRID_ERROR_INIT;
    draw_machine(&r, &s);
    mgrid_machine_model *m = parse(&r, s.text);
    int64_t ranks = s.nranks ? s.nranks : s.places, world = rng_between(&r, 1, ranks);
    for (size_t l = 0; l < s.n + s.rail; l++) {
      mgrid_family *f = mgrid_machine_family(m, level_name[l < s.n ? l : TIERS], world, &err);
      if (!f) fail_msg("%s: %s; MOONGRID_SEED=%" PRIu64, s.text, err.message, seed);
      check(&r, mgrid_family_coverage(f) == MGRID_PARTITION);
      int64_t group = 0;
      for (int64_t d = 0; d < s.domains[l]; d++) {
        int64_t n = 0;
        for (int64_t k = 0; k < world; k++)
          if (domain_of(&s, l, k) == d) check(&r, mgrid_family_rank(f, group, n++) == k);
        check(&r, n == 0 || mgrid_family_size(f, group) == n);
        group += n > 0;
      }
      check(&r, mgrid_family_count(f) == group);
      mgrid_family_free(f);
    }
    mgrid_machine_free(m);
  }
}

/* ------------------------------------------------------------------ counts */

/* Count by the definition: every group, every pair of members that follow each other. */
static mgrid_machine_counts count(const sketch *s, size_t level, const mgrid_family *f) {
  mgrid_machine_counts c = MGRID_MACHINE_COUNTS_INIT;
  for (int64_t g = 0; g < mgrid_family_count(f); g++) {
    int64_t n = mgrid_family_size(f, g), touched = 0;
    bool seen[MOST * TIERS] = { false };
    for (int64_t p = 0; p < n; p++) {
      int64_t d = domain_of(s, level, mgrid_family_rank(f, g, p));
      touched += !seen[d];
      seen[d] = true;
      if (p + 1 < n) c.edges += d != domain_of(s, level, mgrid_family_rank(f, g, p + 1));
    }
    if (n > 2)
      c.edges += domain_of(s, level, mgrid_family_rank(f, g, 0))
                 != domain_of(s, level, mgrid_family_rank(f, g, n - 1));
    c.inside += touched == 1;
    c.crossing += touched > 1;
    c.touched += touched;
  }
  return c;
}

static bool equal(const mgrid_machine_counts *a, const mgrid_machine_counts *b) {
  return a->inside == b->inside && a->crossing == b->crossing && a->edges == b->edges
         && a->touched == b->touched;
}

static void test_counts(void **unused) {
  static sketch s;
  int64_t closed = 0, all = 0;
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    mgrid_error err = MGRID_ERROR_INIT;
    draw_machine(&r, &s);
    mgrid_machine_model *m = parse(&r, s.text);
    int64_t ranks = s.nranks ? s.nranks : s.places;
    mgrid_family *f = draw_any_family(&r, rng_between(&r, 1, ranks), NULL);
    if (rng_chance(&r, 20) && mgrid_family_coverage(f) != MGRID_COVER
        && mgrid_family_max_size(f) > 1) {
      mgrid_family *pairs = mgrid_family_neighbours(f, 1, rng_chance(&r, 50), NULL);
      if (pairs) mgrid_family_free(f), f = pairs;
    }
    for (size_t l = 0; l < s.n + s.rail; l++) {
      mgrid_machine_counts own = count(&s, l, f), c = MGRID_MACHINE_COUNTS_INIT,
                           each = MGRID_MACHINE_COUNTS_INIT;
      check(&r, mgrid_machine_count(m, f, level_name[l < s.n ? l : TIERS], &c, &err) == MGRID_OK
                    && equal(&own, &c));
      check(&r, mgrid_count_each(m, f, l, &each, &err) == MGRID_OK && equal(&own, &each));
      each = (mgrid_machine_counts)MGRID_MACHINE_COUNTS_INIT;
      bool told = mgrid_count_closed(m, f, l, &each);
      check(&r, !told || equal(&own, &each));
      closed += told, all++;
      bool crosses = mgrid_first_crossing(m, f, l) >= 0;
      check(&r, crosses == (own.crossing > 0));
    }
    mgrid_family_free(f);
    mgrid_machine_free(m);
  }
  assert_true(closed > all / 2); /* most are in closed form */
}

/* Worlds in which no member is looked at: against the same machine and grid, a thousand times
** smaller or divided by hand. */
static void test_large(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_machine_model *m = mgrid_machine_parse("rack:* node:18 gpu:4 rail = gpu", &err);
  mgrid_dim dims[] = { { "tp", 8 }, { "dp", MGRID_FILL }, { "pp", 16 } };
  int64_t world = 72 * 16 * 1024 * 16; /* 18874368 ranks */
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 3, dims, &err);
  const char *tp = "tp", *dp = "dp", *pp = "pp";
  mgrid_family *f[] = { mgrid_grid_along(g, 1, &tp, MGRID_GRID_ORDER, &err),
                        mgrid_grid_along(g, 1, &dp, MGRID_GRID_ORDER, &err),
                        mgrid_grid_along(g, 1, &pp, MGRID_GRID_ORDER, &err) };
  mgrid_machine_counts c = MGRID_MACHINE_COUNTS_INIT;
  assert_int_equal(err.status, MGRID_OK);
  assert_int_equal(mgrid_machine_count(m, f[0], "rack", &c, &err), MGRID_OK);
  assert_int_equal(c.inside, world / 8);
  assert_int_equal(mgrid_machine_count(m, f[0], "node", &c, &err), MGRID_OK);
  assert_int_equal(c.crossing, world / 8);
  assert_int_equal(c.edges, 2 * (world / 8)); /* 3 to 4, and 7 to 0 */
  assert_int_equal(c.touched, 2 * (world / 8));
  assert_int_equal(mgrid_machine_count(m, f[1], "rack", &c, &err), MGRID_OK);
  assert_int_equal(c.crossing, 8 * 16);
  assert_int_equal(c.edges, 8 * 16 * (world / 16 / 72)); /* a ring enters each rack once */
  assert_int_equal(mgrid_machine_count(m, f[2], "rail", &c, &err), MGRID_OK);
  assert_int_equal(c.inside, world / 16);
  assert_int_equal(c.edges, 0);
  for (int i = 0; i < 3; i++) mgrid_family_free(f[i]);
  mgrid_grid_free(g);
  mgrid_machine_free(m);
}

/* ---------------------------------------------------------------- refusals */

static void refuses(const char *text, mgrid_status status, const char *message) {
  mgrid_error err = MGRID_ERROR_INIT;
  assert_null(mgrid_machine_parse(text, &err));
  assert_string_equal(err.message, message);
  assert_int_equal(err.status, status);
}

/* ------------------------------------------------------- hosts of a job */

/* Two ranks are in one node exactly if they run on one host; on one host every machine is fine. */
static void test_hosts(void **unused) {
  static sketch s;
  int64_t fits = 0, refused = 0;
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    draw_machine(&r, &s);
    mgrid_machine_model *m = parse(&r, s.text);
    mgrid_error err = MGRID_ERROR_INIT;
    size_t level = s.n > 2 ? 2 : s.n > 1 ? s.n - 2 : 0;
    uint64_t host[MOST];
    int64_t n = s.nranks ? s.nranks : s.places;
    bool same = true, one = true;
    for (int64_t k = 0; k < n; k++) host[k] = 1000 - (uint64_t)domain_of(&s, level, k);
    for (int i = rng_chance(&r, 50) ? 1 : 0; i > 0; i--)
      host[rng_between(&r, 0, n - 1)] = 1000 - (uint64_t)rng_between(&r, 0, 3);
    for (int64_t k = 0; k < n; k++) {
      one &= host[k] == host[0];
      for (int64_t i = 0; i < k; i++)
        same &= (host[i] == host[k]) == (domain_of(&s, level, i) == domain_of(&s, level, k));
    }
    mgrid_status status = mgrid_machine_check_hosts(m, host, n, 0, "a", &err);
    check(&r,
          status == (one || same || s.n == 1 ? MGRID_OK : MGRID_REFUSED) && status == err.status);
    if (status)
      refused++;
    else
      fits++;
    mgrid_machine_free(m);
  }
  assert_true(fits > CASES / 4 && refused > CASES / 8);
}

static void unlike(const char *machine, const char *hosts, int64_t rank, const char *name,
                   const char *message) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_machine_model *m = mgrid_machine_parse(machine, &err);
  uint64_t host[16];
  int64_t n = (int64_t)strlen(hosts);
  assert_non_null(m);
  for (int64_t i = 0; i < n; i++) host[i] = (uint64_t)hosts[i];
  for (int64_t d = 0; d < 2 && d < m->tier[0].domains; d++)
    mgrid_machine_name_domain(m, 0, d, d ? "n1.cluster" : "n0", &err);
  mgrid_status s = mgrid_machine_check_hosts(m, host, n, rank, name, &err);
  assert_int_equal(s, message ? MGRID_REFUSED : MGRID_OK);
  assert_string_equal(err.message, message ? message : "");
  mgrid_machine_free(m);
}

#define ADVICE "; `moongrid machine --json` under the launcher writes the machine that a job has"
static void test_unlike(void **unused) {
  (void)unused;
  unlike("node:2 gpu:2", "aabb", 0, "n0", NULL);
  unlike("node:2 gpu:2", "aabb", 2, "n1", NULL);
  unlike("node:2 gpu:2", "aabb", 0, "pod-7", NULL); /* it may have another name there */
  unlike("node:2 gpu:2", "aaaa", 0, "n1", NULL);    /* one host tries any machine */
  unlike("node:2 gpu:2", "abab", 0, "n0",
         "the ranks do not run where the machine says: ranks 0 and 1 are in node 0 (n0), and run "
         "on two hosts; 2 ranks "
         "are so" ADVICE);
  unlike("node:2 gpu:2", "aabb", 2, "n0",
         "the ranks do not run where the machine says: rank 2 runs on n0, and is in node 1 "
         "(n1.cluster)" ADVICE);
  unlike("node:2 gpu:2 ranks = 0,2,1,3", "aabb", 2, "n0",
         "the ranks do not run where the machine says: ranks 0 and 2 are in node 0 (n0), and run "
         "on two hosts; 2 ranks "
         "are so" ADVICE);
  unlike("node:3 gpu:1", "aab", 2, "n9",
         "the ranks do not run where the machine says: ranks 0 and 1 run on one host, and are in "
         "node 0 (n0) and node 1 "
         "(n1.cluster); 1 rank is so" ADVICE);
  unlike("node:1 gpu:2", "aab", 0, "n0",
         "a world of 3 ranks does not fit the machine, which has 2 places");
}

static void test_refusals(void **unused) {
  mgrid_error err = MGRID_ERROR_INIT;
  (void)unused;
  refuses("", MGRID_BAD_VALUE, "machine '': a machine has one level or more, as in node:4 gpu:8");
  refuses("dgx-h10", MGRID_UNKNOWN_NAME,
          "unknown machine 'dgx-h10': it is neither a file nor a preset; nearest is 'dgx-h100' "
          "(dgx-a100, dgx-b200, dgx-h100, "
          "dgx-h200, gb200-nvl72, mi300x); levels are written as 'node:4 gpu:8'");
  refuses("node:4 gpu", MGRID_BAD_VALUE,
          "machine 'node:4 gpu': it ends where ':' and a number, as in node:4, is expected");
  refuses(
      "node:0 gpu:8", MGRID_BAD_VALUE,
      "machine 'node:0 gpu:8': character 6: a number from 1 to 2147483647 expected, not '0 gpu:8'");
  refuses("node:4 gpu:8[400]", MGRID_BAD_VALUE,
          "machine 'node:4 gpu:8[400]': character 17: a unit after the number, as 400GB/s, "
          "400Gb/s, 3us or 900ns, "
          "expected, not ']'");
  refuses("node:4 gpu:8[400 parsecs]", MGRID_BAD_VALUE,
          "machine 'node:4 gpu:8[400 parsecs]': character 18: a unit after the number, as "
          "400GB/s, 400Gb/s, 3us or "
          "900ns, expected, not 'parsecs]'");
  refuses("node:4 gpu:8[fast]", MGRID_BAD_VALUE,
          "machine 'node:4 gpu:8[fast]': character 14: a bandwidth or a latency, as 400GB/s or 3us "
          "expected, not "
          "'fast]'");
  refuses("node:4 gpu:8[400GB/s", MGRID_BAD_VALUE,
          "machine 'node:4 gpu:8[400GB/s': it ends where ',' or ']' is expected");
  refuses(
      "node:4 node:8", MGRID_BAD_VALUE,
      "machine 'node:4 node:8': character 8: a level that is not there yet expected, not 'node:8'");
  refuses("rack:2 node:3,4,5 gpu:8", MGRID_REFUSED,
          "machine 'rack:2 node:3,4,5 gpu:8': level 'node' has 3 numbers, and there are 2 domains "
          "of 'rack' before it");
  refuses("node:2,3", MGRID_REFUSED,
          "machine 'node:2,3': level 'node' has 2 numbers; the first level has one");
  refuses("node:4 gpu:*", MGRID_OUT_OF_RANGE,
          "machine 'node:4 gpu:*': level 'gpu' has 1 or more domains in each of the level before, "
          "not 0");
  refuses("node:4 gpu:8 rail = gpus", MGRID_UNKNOWN_NAME,
          "machine 'node:4 gpu:8 rail = gpus': unknown level 'gpus'; nearest is 'gpu' (node, gpu)");
  refuses("node:4 gpu:8 rail = node in gpu", MGRID_REFUSED,
          "machine 'node:4 gpu:8 rail = node in gpu': rail = node in gpu: 'gpu' is not a level "
          "before 'node'");
  refuses("node:* gpu:8 plane = node", MGRID_REFUSED,
          "machine 'node:* gpu:8 plane = node': plane = node: 'node' has as many domains as the "
          "ranks need; give it a "
          "number");
  refuses("node:2 gpu:2 ranks = 0,1,4", MGRID_OUT_OF_RANGE,
          "machine 'node:2 gpu:2 ranks = 0,1,4': rank 2 runs at place 4; places are 0 to 3");
  refuses("node:2 gpu:2 ranks = 0,1,0", MGRID_DUPLICATE,
          "machine 'node:2 gpu:2 ranks = 0,1,0': two ranks run at place 0");
  refuses("node:2 gpu:2 ranks = 3..1", MGRID_BAD_VALUE,
          "machine 'node:2 gpu:2 ranks = 3..1': character 22: places from low to high, at most "
          "16777216, expected, not "
          "'3..1'");
  refuses("node:65536 gpu:65536", MGRID_OVERFLOW,
          "machine 'node:65536 gpu:65536': level 'gpu' has more than 2147483647 domains");
  refuses(
      "dgx-h100 rack:4 plane", MGRID_BAD_VALUE,
      "machine 'dgx-h100 rack:4 plane': it ends where ':' and a number, as in node:4, is expected");
  mgrid_machine_model *m = mgrid_machine_parse("node:4 gpu:8", &err);
  assert_null(mgrid_machine_family(m, "nodes", 32, &err));
  assert_string_equal(err.message,
                      "unknown level of the machine 'nodes'; nearest is 'node' (node, gpu)");
  mgrid_error_clear(&err);
  assert_null(mgrid_machine_family(m, "node", 33, &err));
  assert_string_equal(err.message,
                      "a world of 33 ranks does not fit the machine, which has 32 places");
  mgrid_machine_free(m);
}

static void test_presets(void **unused) {
  const char *name, *text, *source, *before = "";
  char own[256];
  (void)unused;
  for (size_t i = 0; mgrid_machine_preset(i, &name, &text, &source); i++) {
    mgrid_error err = MGRID_ERROR_INIT;
    mgrid_machine_model *m = mgrid_machine_parse(name, &err);
    assert_int_equal(err.status, MGRID_OK);
    mgrid_machine_describe(m, own, sizeof own);
    assert_string_equal(own, text);
    assert_true(strcmp(before, name) < 0 && strlen(source) > 20);
    assert_int_equal(mgrid_machine_places(m), 0);
    before = name;
    mgrid_machine_free(m);
  }
  assert_false(mgrid_machine_preset(1000, &name, NULL, NULL));
  assert_null(name);
  rng r = rng_new(1);
  mgrid_machine_model *m = parse(&r, "dgx-h100 node:4[100GB/s] plane = gpu / 4");
  mgrid_machine_describe(m, own, sizeof own);
  assert_string_equal(own, "node:4[100GB/s] gpu:8[450GB/s] rail = gpu[50GB/s] plane = gpu / 4");
  mgrid_machine_free(m);
  m = parse(&r, "8");
  mgrid_machine_describe(m, own, sizeof own);
  assert_string_equal(own, "node:* gpu:8");
  mgrid_machine_free(m);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_places),  cmocka_unit_test(test_text),  cmocka_unit_test(test_families),
    cmocka_unit_test(test_counts),  cmocka_unit_test(test_large), cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_presets), cmocka_unit_test(test_hosts), cmocka_unit_test(test_unlike),
  };
  return run_program("domains", tests, argc, argv);
}
