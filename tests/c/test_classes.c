/* SPDX-License-Identifier: MIT
**
** test_classes.c - sets of points by modes, groups in classes, and the laws that stand on them,
** against going through every point, group and rank.
*/
#include "topologies.h"

#include "families/classes.h"

enum { CASES = 2000, SPACE = 2000, SETS = 5 };

/* -------------------------------------------------------------------- points */

/* Random modes, each stride larger than the smaller ones reach: mostly a multiple of the one
** before. */
static mgrid_points draw_points(rng *r) {
  mgrid_points p = { .offset = rng_between(r, 0, 60) };
  int64_t reach = 0, unit = 1;
  for (int n = (int)rng_between(r, 0, 3); n > 0; n--) {
    int64_t size = rng_between(r, 2, 9), stride = unit * rng_between(r, 1, 3);
    while (stride <= reach) stride += unit;
    if (rng_chance(r, 20)) stride++;
    if (reach + (size - 1) * stride > SPACE - 100) break;
    mgrid_points_push(&p, size, stride);
    reach += (size - 1) * stride;
    unit = rng_chance(r, 70) ? stride * size : stride;
  }
  return p;
}

static bool has(const mgrid_points *p, int64_t point) {
  int64_t rest = point - p->offset;
  for (int i = 0; i < p->n && rest >= 0; i++) {
    int64_t step = rest / p->at[i].stride;
    if (step >= p->at[i].size) return false;
    rest -= step * p->at[i].stride;
  }
  return rest == 0;
}

typedef struct noted {
  rng *r;
  const mgrid_points *a, *set;
  int64_t first[SETS + 1], every[1 << SETS];
} noted;

static bool note_first(void *ud, int64_t point, int64_t weight, int64_t in) {
  noted *n = ud;
  check(n->r, has(n->a, point) && weight > 0);
  if (in >= 0) check(n->r, has(&n->set[in], point));
  n->first[in < 0 ? SETS : in] += weight;
  return true;
}

static int mask_of(const mgrid_points *set, size_t n, int64_t point) {
  int mask = 0;
  for (size_t i = 0; i < n; i++) mask |= has(&set[i], point) << i;
  return mask;
}

static bool note_every(void *ud, int64_t point, int64_t weight, int64_t in) {
  noted *n = ud;
  (void)in;
  n->every[mask_of(n->set, SETS, point)] += weight;
  return true;
}

static void test_points(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + 3 * CASES; seed++) {
    rng r = rng_new(seed);
    mgrid_points a = draw_points(&r), set[SETS];
    const mgrid_points *others[SETS];
    int64_t first[SETS + 1] = { 0 }, every[1 << SETS] = { 0 };
    noted n = { .r = &r, .a = &a, .set = set };
    check(&r, mgrid_points_apart(&a));
    for (int i = 0; i < SETS; i++) set[i] = draw_points(&r), others[i] = &set[i];
    for (int64_t x = 0; x < SPACE; x++) {
      int mask = mask_of(set, SETS, x), low = 0;
      if (!has(&a, x)) continue;
      while (low < SETS && !(mask >> low & 1)) low++;
      first[low]++;
      every[mask]++;
    }
    check(&r, mgrid_points_each(&a, SETS, others, false, note_first, &n, NULL));
    check(&r, memcmp(first, n.first, sizeof first) == 0);
    check(&r, mgrid_points_each(&a, SETS, others, true, note_every, &n, NULL));
    check(&r, memcmp(every, n.every, sizeof every) == 0);
  }
}

/* ------------------------------------------------------------------- classes */

/* A family of a small world, and often one made of it; told by classes or not. */
static mgrid_family *draw_made(rng *r, int64_t world, const mgrid_family *earlier) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_family *f = draw_any_family(r, world, earlier), *made = NULL, *rest = NULL;
  int64_t half[2] = { f->max_size / 3 + 1, MGRID_FILL }, pieces[4] = { 0, 0, 0, 0 };
  switch (rng_between(r, 0, 7)) {
  case 0: made = mgrid_family_neighbours(f, rng_between(r, 1, 4), rng_chance(r, 50), &err); break;
  case 1: made = mgrid_family_segments(f, 2, half, &err); break;
  case 2:
    mgrid_family_split(f, rng_divisor(r, f->max_size ? f->max_size : 1), true, false, &made, &rest,
                       &err);
    break;
  case 3:
    mgrid_family_split(f, rng_divisor(r, f->max_size ? f->max_size : 1), true, true, &rest, &made,
                       &err);
    break;
  case 4:
    for (int i = 0; i < 4; i++) pieces[i] = rng_between(r, 0, f->max_size);
    made = mgrid_family_pick(f, (size_t)rng_between(r, 1, 4), pieces, &err);
    break;
  case 5: made = mgrid_family_bundle(f, rng_divisor(r, f->count ? f->count : 1), &err); break;
  default: break;
  }
  mgrid_family_free(rest);
  if (!made) return f;
  mgrid_family_free(f);
  if (!rng_chance(r, 30)) return made;
  mgrid_family *pairs =
      mgrid_family_neighbours(made, rng_between(r, 1, 2), rng_chance(r, 50), anew(&err));
  if (!pairs) return made;
  mgrid_family_free(made);
  return pairs;
}

/* Go through the groups of a class. */
static void check_class(rng *r, const mgrid_family *f, const mgrid_class *c, int *found) {
  int64_t digit[MGRID_MODES_MAX] = { 0 };
  int i = 0;
  while (true) {
    int64_t group = c->group, shift = 0;
    for (i = 0; i < c->nsteps; i++)
      group += digit[i] * c->step[i].weight, shift += digit[i] * c->step[i].stride;
    check(r, group >= 0 && group < f->count && !found[group]++);
    check(r, mgrid_family_size(f, group) == c->size);
    check(r, c->round < 0 || mgrid_family_round(f, group) == c->round);
    for (int64_t p = 0; p < c->size; p++) {
      const mgrid_modes shape = { c->nshape, (mgrid_mode *)c->shape };
      int64_t rank = mgrid_family_rank(f, group, p);
      check(r, rank == mgrid_family_rank(f, c->group, p) + shift);
      if (c->ruled) check(r, rank == c->start + shift + mgrid_modes_offset(&shape, p));
    }
    for (i = 0; i < c->nsteps && ++digit[i] == c->step[i].size; i++) digit[i] = 0;
    if (i == c->nsteps) return;
  }
}

static void test_classes(void **unused) {
  int told = 0, listed = 0;
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    int64_t world = rng_between(&r, 1, 40) * rng_between(&r, 1, 4), group, position;
    mgrid_family *f = draw_made(&r, world, NULL);
    mgrid_classes classes = { 0 };
    mgrid_sets sets = { 0 };
    int *found = calloc((size_t)f->count + 1, sizeof *found);
    if (mgrid_classes_of(f, &classes)) {
      for (size_t i = 0; i < classes.n; i++) check_class(&r, f, &classes.at[i], found);
      for (int64_t g = 0; g < f->count; g++) check(&r, found[g] == 1);
      told += f->form != &mgrid_table_form;
    } else {
      listed++;
    }
    if (mgrid_members_of(f, &sets))
      for (int64_t rank = 0; rank < world; rank++) {
        bool in = false;
        for (size_t i = 0; i < sets.n; i++) in |= has(&sets.at[i], rank);
        check(&r, in == mgrid_family_locate(f, rank, 0, &group, &position));
      }
    else
      check(&r, false);
    free(found);
    free(classes.at);
    free(sets.at);
    mgrid_family_free(f);
  }
  assert_true(told > CASES / 2 && listed < CASES / 20);
}

/* ---------------------------------------------------------------------- laws */

static bool brute_within(const mgrid_family *a, const mgrid_family *b, int64_t *bad) {
  for (*bad = 0; *bad < a->count; ++*bad) {
    int64_t size = mgrid_family_size(a, *bad);
    bool inside = false;
    for (int64_t k = 0; k < b->count && !inside; k++) {
      int64_t n = 0;
      for (int64_t p = 0; p < size; p++)
        for (int64_t q = 0; q < mgrid_family_size(b, k); q++)
          n += mgrid_family_rank(a, *bad, p) == mgrid_family_rank(b, k, q);
      inside = n == size;
    }
    if (!inside) return false;
  }
  return true;
}

static bool brute_equal(const mgrid_family *a, const mgrid_family *b) {
  if (a->count != b->count || a->total != b->total) return false;
  for (int64_t g = 0; g < a->count; g++)
    if (!mgrid_same_group(a, g, b, g)) return false;
  return true;
}

static bool is_member(const mgrid_family *f, int64_t rank) {
  int64_t group, position;
  return mgrid_family_locate(f, rank, 0, &group, &position);
}

static void test_laws(void **unused) {
  static const mgrid_law_names names = { "a", "b" };
  int held[4] = { 0 };
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    int64_t world = rng_between(&r, 10, 40) * rng_between(&r, 1, 6), bad;
    mgrid_family *a = draw_made(&r, world, NULL), *b = draw_made(&r, world, a);
    mgrid_error err;
    bool shared = false, covered = true;
    char text[80];
    for (int64_t rank = 0; rank < world; rank++) {
      shared |= is_member(a, rank) && is_member(b, rank);
      covered &= is_member(a, rank);
    }
    check(&r, brute_equal(a, b) == (mgrid_law_same(a, b, NULL, anew(&err)) == MGRID_OK));
    check(&r, brute_equal(a, b) == mgrid_family_equal(a, b));
    check(&r, covered == (mgrid_law_covers(a, NULL, anew(&err)) == MGRID_OK));
    check(&r, shared == (mgrid_law_disjoint(a, b, &names, NULL, anew(&err)) != MGRID_OK));
    bool within = brute_within(a, b, &bad);
    check(&r, within == (mgrid_law_within(a, b, &names, NULL, anew(&err)) == MGRID_OK));
    snprintf(text, sizeof text, "roup %" PRId64 " of a", bad);
    if (!within) check(&r, strstr(err.message, text) != NULL);
    held[0] += within, held[1] += !shared, held[2] += covered, held[3] += brute_equal(a, b);
    mgrid_family_free(a);
    mgrid_family_free(b);
  }
  for (int i = 0; i < 4; i++) assert_true(held[i] > CASES / 50 && held[i] < CASES - CASES / 50);
}

/* ----------------------------------------------------------------- resources */

/* What NCCL takes of any rank is the most of all ranks. */
static void test_memory_of_any_rank(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES / 4; seed++) {
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 60);
    mgrid_error err;
    mgrid_gpu_memory most = MGRID_GPU_MEMORY_INIT, any = MGRID_GPU_MEMORY_INIT,
                     one = MGRID_GPU_MEMORY_INIT;
    mgrid_plan *p = mgrid_plan_new(t.topology, anew(&err));
    check(&r, p != NULL);
    for (int64_t rank = 0; rank < t.world; rank++) {
      check(&r, mgrid_plan_gpu_memory(p, rank, &one, anew(&err)) == MGRID_OK);
      if (one.communicators > most.communicators) most.communicators = one.communicators;
      if (one.created > most.created) most.created = one.created;
      if (one.first_use > most.first_use) most.first_use = one.first_use;
    }
    check(&r, mgrid_plan_gpu_memory(p, -1, &any, anew(&err)) == MGRID_OK);
    check(&r, any.communicators == most.communicators && any.created == most.created);
    check(&r, any.first_use == most.first_use);
    mgrid_plan_free(p);
    topology_free(&t);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_points),
    cmocka_unit_test(test_classes),
    cmocka_unit_test(test_laws),
    cmocka_unit_test(test_memory_of_any_rank),
  };
  return run_program("classes", tests, argc, argv);
}
