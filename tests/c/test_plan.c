/* SPDX-License-Identifier: MIT
**
** test_plan.c - shared groups, counts and rounds of a plan compared with a brute-force dedup of the
** listed groups, over thousands of random topologies; which changes the digest shows.
*/
#include "topologies.h"

enum { CASES = 5000 };

/* The brute force: all groups of all families in schedule order; each is compared with all
** before it. */
typedef struct listed_group {
  int entry;
  int64_t group;
  int leader; /* index of the first equal group with equal options; its own where none */
} listed_group;

typedef struct brute {
  const mgrid_plan *plan;
  lists of[DRAWN_FAMILIES];
  bool none[DRAWN_FAMILIES]; /* no communicators are made of the family */
  size_t n;
  listed_group *at;
} brute;

static bool options_agree(const drawn_options *a, const drawn_options *b) {
  return !a->unique && !b->unique && strcmp(a->backend, "none") != 0
         && a->o.high_priority == b->o.high_priority && strcmp(a->backend, b->backend) == 0
         && a->o.timeout == b->o.timeout && a->nccl == b->nccl;
}

/* first ones, others, lazy ones; each in the order of the topology */
static int pass_of(const drawn_options *o) { return o->o.first ? 0 : o->o.lazy ? 2 : 1; }

static brute brute_of(const mgrid_plan *p, const drawn_topology *t) {
  brute b = { .plan = p };
  for (size_t i = 0; i < t->n; i++) b.of[i] = lists_of(p->content.entry[i].family);
  for (size_t i = 0; i < t->n; i++) b.none[i] = strcmp(t->options[i].backend, "none") == 0;
  for (int pass = 0; pass < 3; pass++)
    for (size_t i = 0; i < t->n; i++)
      if (pass_of(&t->options[i]) == pass)
        for (int64_t round = 0; round < mgrid_family_rounds(p->content.entry[i].family); round++)
          for (int64_t g = 0; g < b.of[i].n; g++) {
            if (mgrid_family_round(p->content.entry[i].family, g) != round) continue;
            b.at = lists_room(b.at, b.n, sizeof *b.at);
            listed_group *here = &b.at[b.n];
            *here = (listed_group){ (int)i, g, (int)b.n };
            for (size_t k = 0; k < b.n && here->leader == (int)b.n; k++)
              if (options_agree(&t->options[i], &t->options[b.at[k].entry])
                  && lists_same_group(&b.of[i], g, &b.of[b.at[k].entry], b.at[k].group))
                here->leader = (int)k;
            b.n++;
          }
  return b;
}

static void brute_free(brute *b, size_t families) {
  for (size_t i = 0; i < families; i++) lists_free(&b->of[i]);
  free(b->at);
}

static int64_t size_at(const brute *b, size_t k) {
  return lists_size(&b->of[b->at[k].entry], b->at[k].group);
}

/* Is there a communicator for the group, of its own or of its leader? */
static bool is_made(const brute *b, size_t k) {
  return size_at(b, k) > 1 && !b->none[b->at[k].entry];
}

/* The earliest family in whose groups all of family i's are found, or -1. */
static int brute_shares(const brute *b, const drawn_topology *t, int i) {
  for (int pass = 0; pass < 3; pass++)
    for (size_t j = 0; j < t->n; j++) {
      if (pass_of(&t->options[j]) != pass) continue;
      if ((int)j == i) return -1; /* only earlier ones can lead */
      if (!options_agree(&t->options[i], &t->options[j])) continue;
      bool all = true, any = false;
      for (int64_t g = 0; g < b->of[i].n && all; g++) {
        bool found = false;
        if (lists_size(&b->of[i], g) < 2) continue;
        for (int64_t k = 0; k < b->of[j].n && !found; k++)
          found = lists_same_group(&b->of[i], g, &b->of[j], k);
        any = true;
        all = found;
      }
      if (all && any) return (int)j;
    }
  return -1;
}

static void check_counts(const rng *r, const mgrid_plan *p, const brute *b,
                         const drawn_topology *t) {
  mgrid_plan_counts have = MGRID_PLAN_COUNTS_INIT, want = MGRID_PLAN_COUNTS_INIT;
  mgrid_error err = MGRID_ERROR_INIT;
  want.families = (int64_t)t->n;
  for (size_t k = 0; k < b->n; k++) {
    want.singles += size_at(b, k) == 1;
    want.groups += size_at(b, k) > 1;
    want.communicators += is_made(b, k) && b->at[k].leader == (int)k;
  }
  check(r, mgrid_plan_count(p, -1, &have, anew(&err)) == MGRID_OK);
  check(r, have.families == want.families && have.singles == want.singles
               && have.groups == want.groups);
  check(r, have.communicators == want.communicators);
  for (int i = 0; i < (int)t->n; i++) {
    int64_t sum = 0, rounds = mgrid_family_rounds(p->content.entry[i].family);
    check(r, p->shares[i] == brute_shares(b, t, i));
    for (int64_t round = 0; round < rounds; round++) {
      int64_t led = 0;
      for (size_t k = 0; k < b->n; k++)
        led += b->at[k].entry == i && is_made(b, k) && b->at[k].leader == (int)k
               && mgrid_family_round(p->content.entry[i].family, b->at[k].group) == round;
      check(r, mgrid_plan_led(p, i, round, NULL) == led);
      sum += led;
    }
    check(r, mgrid_plan_led(p, i, -1, NULL) == sum);
  }
}

static bool contains(const lists *l, int64_t g, int64_t rank, int64_t *position) {
  for (int64_t p = 0; p < lists_size(l, g); p++)
    if (lists_group(l, g)[p] == rank) {
      *position = p;
      return true;
    }
  return false;
}

/* One rank's view: the communicators it creates are the leaders it is in, in the order of the
** job; each of its groups uses the leader's. */
static void check_view(const rng *r, const mgrid_plan *p, const brute *b, int64_t rank) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_view v;
  mgrid_plan_counts counts = MGRID_PLAN_COUNTS_INIT, want = MGRID_PLAN_COUNTS_INIT;
  int64_t position;
  int *comm = malloc((b->n + 1) * sizeof *comm); /* of each listed group, -1 for none */
  size_t ncomms = 0, nmembers = 0;
  assert_non_null(comm);
  check(r, mgrid_view_init(&v, p, rank, anew(&err)) == MGRID_OK && v.rank == rank);
  for (size_t k = 0; k < b->n; k++) {
    const listed_group *g = &b->at[k];
    comm[k] = -1;
    if (!contains(&b->of[g->entry], g->group, rank, &position)) continue;
    if (is_made(b, k) && g->leader == (int)k) {
      check(r, ncomms < v.ncomms);
      const mgrid_creation *c = &v.comm[ncomms];
      check(r, c->entry == g->entry && c->group == g->group && c->position == position
                   && c->size == size_at(b, k));
      check(r, c->round == mgrid_family_round(p->content.entry[g->entry].family, g->group));
      comm[k] = (int)ncomms++;
    } else if (is_made(b, k)) {
      comm[k] = comm[g->leader];
    }
    want.singles += size_at(b, k) == 1;
    want.groups += size_at(b, k) > 1;
  }
  check(r, v.ncomms == ncomms);
  for (int i = 0; i < (int)mgrid_plan_nfamilies(p); i++) /* members: topology order, then index */
    for (int64_t g = 0; g < b->of[i].n; g++) {
      if (!contains(&b->of[i], g, rank, &position)) continue;
      check(r, nmembers < v.nmembers);
      const mgrid_member *m = &v.member[nmembers++];
      check(r, m->entry == i && m->group == g && m->position == position
                   && m->size == lists_size(&b->of[i], g));
      for (size_t k = 0; k < b->n; k++)
        if (b->at[k].entry == i && b->at[k].group == g) check(r, m->comm == comm[k]);
    }
  check(r, v.nmembers == nmembers);
  want.communicators = (int64_t)ncomms;
  want.families = (int64_t)mgrid_plan_nfamilies(p);
  check(r, mgrid_plan_count(p, rank, &counts, anew(&err)) == MGRID_OK);
  check(r, memcmp(&counts, &want, sizeof want) == 0);
  mgrid_view_free(&v);
  free(comm);
}

static void test_dedup(void **unused) {
  (void)unused;
  int shared = 0, partly = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 16);
    mgrid_plan *p = mgrid_plan_new(t.topology, anew(&err));
    check(&r, p != NULL);
    brute b = brute_of(p, &t);
    check_counts(&r, p, &b, &t);
    for (int64_t rank = 0; rank < t.world; rank++) check_view(&r, p, &b, rank);
    for (size_t i = 0; i < t.n; i++) shared += p->shares[i] >= 0;
    for (size_t k = 0; k < b.n; k++)
      partly += b.at[k].leader != (int)k && size_at(&b, k) > 1 && p->shares[b.at[k].entry] < 0;
    brute_free(&b, t.n);
    mgrid_plan_free(p);
    topology_free(&t);
  }
  assert_true(shared > CASES / 10 && partly > CASES / 10); /* both kinds of sharing were met */
}

/* Groups of s neighbours that start at some multiples of s: of a grid with dims of any order
** and size, the other dims index or, with `gaps`, left at coordinate 0. */
static mgrid_family *draw_starts(rng *r, int64_t s, int64_t runs, int64_t world) {
  mgrid_error err = MGRID_ERROR_INIT;
  const char *in[DRAWN_DIMS] = { "a" }, *ix[DRAWN_DIMS];
  size_t nin = 1, nix = 0, order[DRAWN_DIMS] = { 1, 2, 3, 4 };
  int64_t positions[8], size = 1, offset = s * rng_between(r, 0, world / s - runs);
  drawn d = draw_grid_over(r, (mgrid_window){ runs, 0, runs });
  mgrid_dim dims[DRAWN_DIMS + 1] = { { "a", s } };
  mgrid_grid_free(d.grid);
  d.n = d.n > 5 ? 5 : d.n;
  for (size_t i = 0; i < d.n; i++) {
    dims[i + 1] = (mgrid_dim){ drawn_name(i + 1), d.dim[i].size };
    size *= d.dim[i].size;
    order[i] = i + 1;
  }
  rng_shuffle(r, d.n, order);
  for (size_t i = 0; i < d.n; i++) {
    if (rng_chance(r, 20))
      in[nin++] = drawn_name(order[i]);
    else
      ix[nix++] = drawn_name(order[i]);
  }
  mgrid_grid *g =
      mgrid_grid_new((mgrid_window){ world, offset, s * size }, d.n + 1, dims, anew(&err));
  mgrid_family *all = mgrid_grid_along_by(g, nin, in, nix, ix, anew(&err)), *f;
  for (int64_t i = 0; i < s; i++) positions[i] = i;
  f = mgrid_family_pick(all, (size_t)s, positions, anew(&err));
  check(r, f != NULL);
  mgrid_family_free(all);
  mgrid_grid_free(g);
  return f;
}

/* Sharing that is found by the rules of two families is never more than their lists show, and often
** all of it. */
static void test_rules_against_lists(void **unused) {
  (void)unused;
  int decided = 0, all = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + 4 * CASES; seed++) {
    rng r = rng_new(seed);
    int64_t s = rng_between(&r, 2, 4), runs = rng_between(&r, 1, 6) * rng_between(&r, 1, 6);
    int64_t part = rng_chance(&r, 50) ? runs : rng_between(&r, 1, runs);
    mgrid_family *a = draw_starts(&r, s, part, s * runs), *b = draw_starts(&r, s, runs, s * runs);
    lists la = lists_of(a), lb = lists_of(b);
    int64_t found = 0;
    for (int64_t i = 0; i < la.n; i++)
      for (int64_t k = 0; k < lb.n; k++) found += lists_same_group(&la, i, &lb, k);
    mgrid_overlap said = mgrid_groups_within(a, b);
    check(&r, said != MGRID_ALL || found == la.n);
    check(&r, said != MGRID_NONE || found == 0);
    decided += said != MGRID_SOME;
    all += said == MGRID_ALL && !mgrid_family_equal(a, b);
    mgrid_family_free(a);
    mgrid_family_free(b);
    lists_free(&la);
    lists_free(&lb);
  }
  assert_true(decided > CASES && all > CASES / 10);
}

/* Pairs around rings of different sizes share those that go around the end. */
static void test_rings_that_share_an_end(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_plan_counts counts = MGRID_PLAN_COUNTS_INIT;
  const char *a = "a";
  const mgrid_dim four[] = { { "a", 4 }, { "b", 5 } }, five[] = { { "a", 5 }, { "b", 4 } };
  mgrid_grid *g[2] = { mgrid_grid_new(mgrid_world(20), 2, four, anew(&err)),
                       mgrid_grid_new(mgrid_world(20), 2, five, anew(&err)) };
  mgrid_family *f[2] = { mgrid_grid_along(g[0], 1, &a, MGRID_GRID_ORDER, anew(&err)),
                         mgrid_grid_along(g[1], 1, &a, MGRID_GRID_ORDER, anew(&err)) };
  mgrid_family *ring[2] = { mgrid_family_neighbours(f[0], 1, true, anew(&err)),
                            mgrid_family_neighbours(f[1], 2, true, anew(&err)) };
  mgrid_topology *t = mgrid_topology_new(20, anew(&err));
  mgrid_topology_add(t, "four", ring[0], NULL, anew(&err));
  mgrid_topology_add(t, "five", ring[1], NULL, anew(&err));
  mgrid_plan *p = mgrid_plan_new(t, anew(&err));
  assert_int_equal(mgrid_plan_count(p, -1, &counts, anew(&err)), MGRID_OK);
  assert_int_equal(counts.groups, 40);
  assert_int_equal(counts.communicators, 38); /* {3,0} and {19,16} are in both */
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  for (int i = 0; i < 2; i++) {
    mgrid_family_free(ring[i]);
    mgrid_family_free(f[i]);
    mgrid_grid_free(g[i]);
  }
}

/* A world of 2^30: a plan costs what its rules cost. */
static void test_large_plan(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_plan_counts counts = MGRID_PLAN_COUNTS_INIT;
  const int64_t world = INT64_C(1) << 30;
  const mgrid_dim dense[] = { { "tp", 8 }, { "pp", 16 }, { "dp", MGRID_FILL } };
  const mgrid_dim moe[] = { { "etp", 8 }, { "ep", 4 }, { "pp", 4 }, { "edp", MGRID_FILL } };
  const char *names[] = { "tp", "pp", "dp", "etp", "ep", "edp" };
  mgrid_grid *g[2] = { mgrid_grid_new(mgrid_world(world), 3, dense, anew(&err)),
                       mgrid_grid_new(mgrid_world(world), 4, moe, anew(&err)) };
  mgrid_topology *t = mgrid_topology_new(world, anew(&err));
  for (int i = 0; i < 6; i++) {
    mgrid_family *f = mgrid_grid_along(g[i / 3], 1, &names[i], MGRID_GRID_ORDER, anew(&err));
    assert_int_equal(mgrid_topology_add(t, names[i], f, NULL, anew(&err)), MGRID_OK);
    mgrid_family_free(f);
  }
  mgrid_plan *p = mgrid_plan_new(t, anew(&err));
  assert_non_null(p);
  assert_int_equal(p->shares[3], 0); /* etp is tp */
  assert_int_equal(p->shares[4], -1);
  assert_int_equal(mgrid_plan_count(p, -1, &counts, anew(&err)), MGRID_OK);
  int64_t groups = world / 8 + world / 16 + 128 + world / 8 + world / 4 + 128;
  assert_int_equal(counts.groups, groups);
  /* edp: 8 x 4 x 4 again, as dp */
  assert_int_equal(counts.communicators, groups - world / 8 - 128);
  assert_int_equal(mgrid_plan_count(p, world - 1, &counts, anew(&err)), MGRID_OK);
  assert_int_equal(counts.communicators, 4);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  for (int i = 0; i < 2; i++) mgrid_grid_free(g[i]);
}

/* -------------------------------------------------------------------- digest */

/* One small topology with one thing changed: 0 is the original, 1 the same once more. */
static void changed(int change, char digest[33]) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_options o = MGRID_OPTIONS_INIT;
  const char *in[] = { "tp", "dp" };
  const mgrid_dim dims[] = { { "tp", 2 }, { "pp", change == 2 ? 4 : 2 }, { "dp", MGRID_FILL } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(change == 3 ? 32 : 16), 3, dims, anew(&err));
  mgrid_family *f[3] = { mgrid_grid_along(g, 1, in, MGRID_GRID_ORDER, anew(&err)),
                         mgrid_grid_along(g, 2, in, MGRID_AS_WRITTEN, anew(&err)),
                         mgrid_grid_along(g, 1, in + 1, MGRID_GRID_ORDER, anew(&err)) };
  mgrid_topology *t = mgrid_topology_new(change == 3 ? 32 : 16, anew(&err));
  if (change == 4) { /* the same members in another order */
    const char *turned[] = { "dp", "tp" };
    mgrid_family_free(f[1]);
    f[1] = mgrid_grid_along(g, 2, turned, MGRID_AS_WRITTEN, anew(&err));
  }
  if (change == 5) { /* the same groups in another order */
    const char *index[] = { "dp", "pp" };
    mgrid_family_free(f[0]);
    f[0] = mgrid_grid_along_by(g, 1, in, 2, index, anew(&err));
  }
  if (change == 6) o.timeout = 60;
  if (change == 7) o.unique = true;
  if (change == 8) o.lazy = true;
  if (change == 9) o.first = true;
  if (change == 10) o.high_priority = true;
  if (change == 11) o.backend = "mpi";
  if (change == 12) o.nccl = "max_ctas=16";
  if (change == 13) o.nccl = "max_ctas=8";
  mgrid_topology_param(t, "tp", change == 14 ? "3" : "2", anew(&err));
  if (change != 15) mgrid_topology_param(t, "pp", "2", anew(&err));
  mgrid_topology_add_grid(t, change == 16 ? "sparse" : "dense", g, anew(&err));
  mgrid_topology_add(t, change == 17 ? "tpx" : "tp", f[0], &o, anew(&err));
  mgrid_topology_add(t, change == 18 ? "dp" : "both", f[change == 18 ? 2 : 1], NULL,
                     anew(&err)); /* order of families */
  mgrid_topology_add(t, change == 18 ? "both" : "dp", f[change == 18 ? 1 : 2], NULL, anew(&err));
  if (change == 19) {
    mgrid_family *twin = mgrid_family_twin(f[0], anew(&err));
    mgrid_topology_add(t, "twin", twin, NULL, anew(&err));
    mgrid_family_free(twin);
  }
  if (change == 20) mgrid_topology_add(t, "twin", f[0], NULL, anew(&err));
  /* does not count */
  mgrid_topology_recipe(t, change == 1 ? "elsewhere/recipe.lua" : "recipe.lua", anew(&err));
  mgrid_plan *p = mgrid_plan_new(t, anew(&err));
  assert_non_null(p);
  mgrid_plan_digest(p, digest);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  for (int i = 0; i < 3; i++) mgrid_family_free(f[i]);
  mgrid_grid_free(g);
}

static void test_digest(void **unused) {
  (void)unused;
  enum { CHANGES = 21 };
  char digest[CHANGES][33];
  for (int i = 0; i < CHANGES; i++) {
    changed(i, digest[i]);
    assert_int_equal(strlen(digest[i]), 32);
    assert_int_equal(strspn(digest[i], "0123456789abcdef"), 32);
    for (int k = 0; k < i; k++)
      if (!(i == 1 && k == 0) && strcmp(digest[i], digest[k]) == 0)
        fail_msg("changes %d and %d have one digest", i, k);
  }
  assert_string_equal(digest[0], digest[1]);
}

/* A value cannot pass for several lines of the text that is hashed. */
static void test_digest_of_odd_values(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  char digest[2][33];
  for (int i = 0; i < 2; i++) {
    mgrid_topology *t = mgrid_topology_new(4, anew(&err));
    mgrid_topology_param(t, "a", i ? "1\nparam b = 2" : "1", anew(&err));
    if (i == 0) mgrid_topology_param(t, "b", "2", anew(&err));
    mgrid_plan *p = mgrid_plan_new(t, anew(&err));
    mgrid_plan_digest(p, digest[i]);
    mgrid_plan_free(p);
    mgrid_topology_free(t);
  }
  assert_string_not_equal(digest[0], digest[1]);
}

/* Random topologies built twice have one digest; the next one nearly always has another. */
static void test_digest_repeats(void **unused) {
  (void)unused;
  char before[33] = "";
  int others = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + 500; seed++) {
    char digest[2][33];
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    for (int i = 0; i < 2; i++) {
      r = rng_new(seed);
      drawn_topology t = draw_topology(&r, 30);
      mgrid_plan *p = mgrid_plan_new(t.topology, anew(&err));
      /* a plan does not follow its topology */
      mgrid_topology_param(t.topology, "late", "1", anew(&err));
      mgrid_plan_digest(p, digest[i]);
      mgrid_plan_free(p);
      topology_free(&t);
    }
    check(&r, strcmp(digest[0], digest[1]) == 0);
    others += strcmp(digest[0], before) != 0;
    strcpy(before, digest[0]);
  }
  assert_true(others > 450); /* tiny worlds do draw the same plan again */
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dedup),
    cmocka_unit_test(test_rules_against_lists),
    cmocka_unit_test(test_rings_that_share_an_end),
    cmocka_unit_test(test_large_plan),
    cmocka_unit_test(test_digest),
    cmocka_unit_test(test_digest_repeats),
    cmocka_unit_test(test_digest_of_odd_values),
  };
  return run_program("plan", tests, argc, argv);
}
