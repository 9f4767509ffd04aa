/* SPDX-License-Identifier: MIT
**
** test_schedule.c - no rank of a plan waits for ever when all are simulated in one process; a
** broken order is noticed; and a dry state answers every question of its rank.
*/
#include "backends.h"
#include "topologies.h"

#include "comm/state.h"

enum { CASES = 3000 };

static mgrid_error why = MGRID_ERROR_INIT; /* of the last call */

/* --------------------------------------------------------------- rehearsals */

static void test_rehearsals(void **unused) {
  (void)unused;
  int64_t created = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 40);
    mgrid_plan *p = mgrid_plan_new(t.topology, anew(&why));
    mgrid_created done = { 0 };
    mgrid_view v;
    int64_t most = 0, memberships = 0, leaders = 0;
    check(&r, p != NULL);
    if (mgrid_plan_rehearse(p, &done, anew(&why)))
      fail_msg("%s; MOONGRID_SEED=%" PRIu64, why.message, seed);
    check(&r, mgrid_plan_rehearse(p, NULL, anew(&why)) == MGRID_OK); /* `out` may be NULL */
    mgrid_created seen = { 0 };
    if (mgrid_plan_verify(p, 0, &seen, anew(&why)))
      fail_msg("%s; MOONGRID_SEED=%" PRIu64, why.message, seed);
    /* the premises, and what follows from them */
    check(&r, memcmp(&seen, &done, sizeof seen) == 0);
    mgrid_plan_checked checked = MGRID_PLAN_CHECKED_INIT;
    if (mgrid_plan_check(p, &checked, anew(&why)))
      fail_msg("%s; MOONGRID_SEED=%" PRIu64, why.message, seed);
    check(&r,
          checked.communicators == done.communicators && checked.memberships == done.memberships);
    check(&r, checked.most_per_rank == done.most_per_rank);
    if (mgrid_plan_verify(p, 3, &seen, anew(&why)))
      fail_msg("%s; MOONGRID_SEED=%" PRIu64, why.message, seed);
    check(&r, seen.memberships <= done.memberships);
    for (int64_t rank = 0; rank < t.world; rank++) {
      check(&r, mgrid_view_init(&v, p, rank, anew(&why)) == MGRID_OK);
      memberships += (int64_t)v.ncomms;
      if ((int64_t)v.ncomms > most) most = (int64_t)v.ncomms;
      /* one per communicator */
      for (size_t i = 0; i < v.ncomms; i++) leaders += v.comm[i].position == 0;
      mgrid_view_free(&v);
    }
    check(&r, done.communicators == leaders && done.memberships == memberships
                  && done.most_per_rank == most);
    created += leaders;
    mgrid_plan_free(p);
    topology_free(&t);
  }
  assert_true(created > 9 * CASES);
}

/* ---------------------------------------------- the checker itself can fail */

/* rows {0,1}{2,3} and columns {0,2}{1,3} of a square, and then all four. */
static mgrid_plan *square(void) {
  const mgrid_dim dims[] = { { "x", 2 }, { "y", 2 } };
  const char *names[] = { "x", "y" };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(4), 2, dims, anew(&why));
  mgrid_topology *t = mgrid_topology_new(4, anew(&why));
  for (size_t i = 0; i < 3; i++) {
    mgrid_family *f =
        mgrid_grid_along(g, i < 2 ? 1 : 2, i < 2 ? &names[i] : names, MGRID_GRID_ORDER, anew(&why));
    assert_int_equal(
        mgrid_topology_add(t, i < 2 ? (i ? "column" : "row") : "all", f, NULL, anew(&why)),
        MGRID_OK);
    mgrid_family_free(f);
  }
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  assert_non_null(p);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
  return p;
}

static void reverse_steps(mgrid_itinerary *s, int64_t rank) {
  for (int64_t i = s->start[rank], k = s->start[rank + 1] - 1; i < k; i++, k--) {
    mgrid_creation kept = s->step[i];
    s->step[i] = s->step[k];
    s->step[k] = kept;
  }
}

enum tamper {
  NOTHING,
  REVERSE_ODD,
  REVERSE_ALL,
  GROUP,
  NO_GROUP,
  POSITION,
  SIZE,
  LEAVE_OUT,
  REPEAT
};

static mgrid_status tampered(enum tamper what, mgrid_created *out) {
  mgrid_plan *p = square();
  mgrid_itinerary s;
  assert_int_equal(mgrid_itinerary_of(&s, p, anew(&why)), MGRID_OK);
  assert_int_equal(s.start[4], 12);           /* three steps each */
  mgrid_creation *step = &s.step[s.start[1]]; /* rank 1: row[0], column[1], all[0] */
  memset(&why, 0, sizeof why);
  switch (what) {
  case NOTHING: break;
  case REVERSE_ODD: reverse_steps(&s, 1), reverse_steps(&s, 3); break;
  case REVERSE_ALL:
    for (int64_t rank = 0; rank < 4; rank++) reverse_steps(&s, rank);
    break;
  case GROUP: step[0].group = 1; break;
  case NO_GROUP: step[1].group = 7; break;
  case POSITION: step[1].position = 1; break; /* in column[1] it is 0 */
  case SIZE: step[2].size = 3; break;
  case LEAVE_OUT: /* rank 3, the last of them, forgets its last step */ s.start[4]--; break;
  case REPEAT: /* every rank comes to its first group twice instead of to its second */
    for (int64_t rank = 0; rank < 4; rank++) s.step[s.start[rank] + 1] = s.step[s.start[rank]];
    break;
  }
  mgrid_status status = mgrid_itinerary_play(&s, p, out, anew(&why));
  mgrid_itinerary_free(&s);
  mgrid_plan_free(p);
  return status;
}

static void test_checker_passes(void **unused) {
  (void)unused;
  mgrid_created out = { 0 };
  assert_int_equal(tampered(NOTHING, &out), MGRID_OK);
  assert_int_equal(out.communicators, 5);
  assert_int_equal(out.memberships, 12);
  assert_int_equal(out.most_per_rank, 3);
  /* another order is fine if all ranks have it */
  assert_int_equal(tampered(REVERSE_ALL, &out), MGRID_OK);
}

static void test_checker_fails(void **unused) {
  (void)unused;
  static const struct {
    enum tamper what;
    const char *text;
  } bad[] = {
    { REVERSE_ODD, "rank 0 would wait forever in row[0]: 1 of 2 members arrived, rank 1 does not" },
    { GROUP, "rank 1 creates row[1] as member 1 of 2, but is not this member" },
    { NO_GROUP, "rank 1 creates column[7] as member 0 of 2, but is not this member" },
    { POSITION, "rank 1 creates column[1] as member 1 of 2, but is not this member" },
    { SIZE, "rank 1 creates all[0] as member 1 of 3, but is not this member" },
    { LEAVE_OUT, "rank 0 would wait forever in all[0]: 3 of 4 members arrived, rank 3 does not" },
  };
  mgrid_created out = { 0 };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(tampered(bad[i].what, &out), MGRID_UNPROVED);
    assert_string_equal(why.message, bad[i].text);
    assert_int_equal(why.status, MGRID_UNPROVED);
  }
}

/* Families whose fields are changed directly, which no call does. */
static void test_verify_fails(void **unused) {
  (void)unused;
  static const char *const missing = "rank 2 would wait forever in all[0]: rank 3 does not arrive";
  mgrid_created out = { 0 };
  for (int64_t sample = 0; sample <= 2; sample += 2) { /* all ranks; 0 and 2 */
    mgrid_plan *p = square();
    mgrid_family *all = p->content.entry[mgrid_content_find(&p->content, "all")].family;
    assert_int_equal(mgrid_plan_verify(p, sample, &out, anew(&why)), MGRID_OK);
    assert_int_equal(out.communicators, sample ? 4 : 5); /* as seen by their first members */
    all->high = 2; /* who asks with rank 3 is told that it is in no group */
    assert_int_equal(mgrid_plan_verify(p, sample, &out, anew(&why)), MGRID_UNPROVED);
    assert_string_equal(why.message, missing);
    mgrid_plan_free(p);
  }
  mgrid_plan *p = square();
  p->content.entry[mgrid_content_find(&p->content, "column")].family->rule->offset = -1;
  assert_int_equal(mgrid_plan_verify(p, 0, &out, anew(&why)), MGRID_UNPROVED);
  assert_string_equal(why.message,
                      "rank 1 would wait forever in column[0]: rank -1 does not arrive");
  mgrid_plan_free(p);
}

/* The same for the laws of families; what the schedule breaks comes after them. */
static void test_check_fails(void **unused) {
  (void)unused;
  enum { ROW, COLUMN, ALL };
  mgrid_plan_checked out = MGRID_PLAN_CHECKED_INIT;
  mgrid_plan *p = square();
  mgrid_family *row = p->content.entry[ROW].family, *all = p->content.entry[ALL].family;
  assert_int_equal(mgrid_plan_check(p, &out, anew(&why)), MGRID_OK);
  assert_true(!out.sampled && out.members == 12 && out.communicators == 5 && out.memberships == 12);
  assert_int_equal(mgrid_plan_check(p, NULL, anew(&why)), MGRID_OK);
  row->high = 2; /* rank 3 is told that it is in no row */
  assert_int_equal(mgrid_plan_check(p, &out, anew(&why)), MGRID_UNPROVED);
  assert_string_equal(why.message, "family 'row': position 1 of group 1 has a rank that is not "
                                   "found there when it is looked up");
  row->high = 3;
  row->rule->digits[0].weight = 0; /* ranks 2 and 3 are told that they are in the first row */
  assert_int_equal(mgrid_plan_check(p, &out, anew(&why)), MGRID_UNPROVED);
  assert_string_equal(why.message, "family 'row': position 0 of group 1 has a rank that is not "
                                   "found there when it is looked up");
  row->rule->digits[0].weight = 1;
  row->world = 3; /* rank 3 is outside */
  assert_int_equal(mgrid_plan_check(p, &out, anew(&why)), MGRID_UNPROVED);
  assert_string_equal(why.message, "family 'row': position 1 of group 1 has a rank that is not "
                                   "found there when it is looked up");
  row->world = 4;
  all->total = 5;
  assert_int_equal(mgrid_plan_check(p, &out, anew(&why)), MGRID_UNPROVED);
  assert_string_equal(why.message, "family 'all' has 4 members in all its groups, but reports 5");
  all->total = 4;
  /* column[1] is {2, 4}: no rank of the world */
  p->content.entry[COLUMN].family->rule->index.at[0].stride = 2;
  assert_int_equal(mgrid_plan_check(p, &out, anew(&why)), MGRID_UNPROVED);
  assert_string_equal(why.message, "family 'column': position 0 of group 1 has a rank that is not "
                                   "found there when it is looked up");
  mgrid_plan_free(p);
}

/* Of a world that is sampled. */
static void test_check_samples(void **unused) {
  (void)unused;
  const mgrid_dim dims[] = { { "x", 2 }, { "y", MGRID_FILL } };
  const char *x = "x";
  mgrid_plan_checked out = MGRID_PLAN_CHECKED_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(MGRID_WORLD_MAX - 1), 2, dims, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &x, MGRID_GRID_ORDER, anew(&why));
  mgrid_topology *t = mgrid_topology_new(MGRID_WORLD_MAX - 1, anew(&why));
  assert_int_equal(mgrid_topology_add(t, "x", f, NULL, anew(&why)), MGRID_OK);
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  assert_int_equal(mgrid_plan_check(p, &out, anew(&why)), MGRID_OK);
  assert_true(out.sampled && out.members == 1024 && out.memberships >= 256);
  f->high /= 2; /* half of the ranks are told that they are in no group */
  assert_int_equal(mgrid_plan_check(p, &out, anew(&why)), MGRID_UNPROVED);
  assert_non_null(strstr(why.message, "family 'x': position "));
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* Coming to a group a second time waits for all members a second time. */
static void test_checker_counts_each_meeting(void **unused) {
  (void)unused;
  mgrid_created out = { 0 };
  mgrid_status s = tampered(REPEAT, &out);
  assert_true(s == MGRID_BACKEND
              || (s == MGRID_OK && out.communicators == 5 && out.memberships == 12));
}

/* Random plans in which odd ranks go backwards: where such a rank shares two groups with an
** even one, they cannot both come through. */
static void test_checker_fails_at_random(void **unused) {
  (void)unused;
  int failed = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + 1000; seed++) {
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 12);
    mgrid_plan *p = mgrid_plan_new(t.topology, anew(&why));
    mgrid_itinerary s;
    mgrid_created out = { 0 };
    bool crossed = false;
    check(&r, mgrid_itinerary_of(&s, p, anew(&why)) == MGRID_OK);
    for (int64_t odd = 1; odd < t.world; odd += 2)
      for (int64_t even = 0; even < t.world; even += 2) { /* groups that both are in */
        int common = 0;
        for (int64_t i = s.start[odd]; i < s.start[odd + 1]; i++)
          for (int64_t k = s.start[even]; k < s.start[even + 1]; k++)
            common += s.step[i].entry == s.step[k].entry && s.step[i].group == s.step[k].group;
        crossed |= common > 1;
      }
    for (int64_t odd = 1; odd < t.world; odd += 2) reverse_steps(&s, odd);
    mgrid_status status = mgrid_itinerary_play(&s, p, &out, anew(&why));
    check(&r, status == MGRID_OK || status == MGRID_UNPROVED);
    check(&r, !crossed || status == MGRID_UNPROVED);
    failed += status != MGRID_OK;
    mgrid_itinerary_free(&s);
    mgrid_plan_free(p);
    topology_free(&t);
  }
  assert_true(failed > 200);
}

/* --------------------------------------------------------------- dry states */

static void test_dry_backend(void **unused) {
  (void)unused;
  mgrid_backend *b = mgrid_backend_dry(4, 3, anew(&why));
  assert_string_equal(mgrid_backend_name(b), "dry");
  assert_int_equal(mgrid_backend_world(b), 4);
  assert_int_equal(mgrid_backend_rank(b), 3);
  mgrid_backend_free(b);
  mgrid_backend_free(NULL);
  assert_null(mgrid_backend_dry(4, 4, anew(&why)));
  assert_string_equal(why.message, "rank 4 is out of range in a world of 4");
  assert_null(mgrid_backend_dry(4, -1, anew(&why)));
  assert_string_equal(why.message, "rank -1 is out of range in a world of 4");
  assert_null(mgrid_backend_dry(0, 0, anew(&why)));
  assert_string_equal(why.message, "rank 0 is out of range in a world of 0");
  assert_int_equal(why.status, MGRID_OUT_OF_RANGE);
  assert_null(mgrid_backend_open("dry", NULL, anew(&why)));
  assert_string_equal(why.message,
                      "the dry backend has no world of its own: use mgrid_backend_dry");
  assert_null(mgrid_backend_open("mpii", NULL, anew(&why)));
  char text[512];
  assert_string_equal(why.message,
                      unknown_backend(text, "mpii", "mpi", "auto", MGRID_BACKENDS_OPENED, ""));
}

/* Every handle of every rank of random plans against the listed groups. */
static void check_handle(const rng *r, const mgrid_group *g, const lists *l, int64_t group,
                         int64_t at) {
  const int64_t *m = lists_group(l, group);
  int64_t n = lists_size(l, group);
  int64_t *ranks = malloc((size_t)n * sizeof *ranks);
  assert_non_null(ranks);
  check(r,
        mgrid_group_index(g) == group && mgrid_group_size(g) == n && mgrid_group_position(g) == at);
  check(r, mgrid_group_at(g, 0) == m[0] && mgrid_group_at(g, mgrid_group_size(g) - 1) == m[n - 1]);
  check(r, mgrid_group_beside(g, 1, false) == (at + 1 < n ? m[at + 1] : -1));
  check(r, mgrid_group_beside(g, -1, false) == (at > 0 ? m[at - 1] : -1));
  check(r, mgrid_group_beside(g, 1, true) == m[(at + 1) % n]);
  check(r, mgrid_group_beside(g, -1, true) == m[(at + n - 1) % n]);
  check(r, mgrid_group_at(g, -1) == -1 && mgrid_group_at(g, n) == -1);
  check(r, mgrid_group_ranks(g, (size_t)n, ranks) == n);
  for (int64_t p = 0; p < n; p++) {
    check(r, ranks[p] == m[p] && mgrid_group_at(g, p) == m[p]);
    check(r, mgrid_group_position_of(g, m[p]) == p);
  }
  check(r, mgrid_group_position_of(g, -1) == -1 && mgrid_group_position_of(g, INT64_MAX) == -1);
  check(r, mgrid_group_native(g) == NULL);
  free(ranks);
}

static void check_state(const rng *r, const mgrid_state *s, const lists *of, int64_t rank) {
  size_t groups = 0;
  for (size_t i = 0; i < mgrid_plan_nfamilies(mgrid_state_plan(s)); i++) {
    const char *name = mgrid_plan_family_name(mgrid_state_plan(s), i);
    size_t nth = 0;
    for (int64_t g = 0; g < of[i].n; g++)
      for (int64_t p = 0; p < lists_size(&of[i], g); p++) {
        if (lists_group(&of[i], g)[p] != rank) continue;
        const mgrid_group *h = mgrid_state_group_nth(s, name, nth, anew(&why));
        check(r, h != NULL && strcmp(mgrid_group_family(h), name) == 0);
        check_handle(r, h, &of[i], g, p);
        if (nth == 0) check(r, mgrid_state_group(s, name, NULL) == h);
        nth++;
        groups++;
      }
    /* in no (further) group: no error */
    check(r, mgrid_state_group_nth(s, name, nth, anew(&why)) == NULL);
    check(r, why.status == MGRID_OK);
    snprintf(why.message, sizeof why.message, "untouched");
    why.status = MGRID_BACKEND; /* nor is one forgotten that the caller has */
    check(r, mgrid_state_group_nth(s, name, nth, &why) == NULL);
    check(r, why.status == MGRID_BACKEND && strcmp(why.message, "untouched") == 0);
  }
  check(r, s->view.nmembers == groups && mgrid_state_rank(s) == rank);
}

static void test_dry_states(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + 500; seed++) {
    rng r = rng_new(seed);
    drawn_topology t = draw_topology(&r, 16);
    mgrid_plan *p = mgrid_plan_new(t.topology, anew(&why));
    lists of[DRAWN_FAMILIES];
    for (size_t i = 0; i < t.n; i++) of[i] = lists_of(p->content.entry[i].family);
    for (int64_t rank = 0; rank < t.world; rank++) {
      mgrid_backend *b = mgrid_backend_dry(t.world, rank, anew(&why));
      mgrid_state *s = mgrid_materialize(p, b, "test", anew(&why));
      check(&r, s != NULL && mgrid_state_plan(s) == p);
      check_state(&r, s, of, rank);
      int64_t proved = -1;
      check(&r, mgrid_state_prove(s, &proved, anew(&why)) == MGRID_OK && proved == 0);
      mgrid_backend_free(b); /* the state still holds it */
      check(&r, mgrid_state_rank(s) == rank);
      mgrid_state_free(s);
    }
    for (size_t i = 0; i < t.n; i++) lists_free(&of[i]);
    mgrid_plan_free(p);
    topology_free(&t);
  }
}

/* A window of a world, a lazy family, a grid: names known and unknown. */
static void test_dry_questions(void **unused) {
  (void)unused;
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 3 } };
  const char *tp = "tp", *dp = "dp";
  mgrid_options late = MGRID_OPTIONS_INIT;
  mgrid_grid *g = mgrid_grid_new((mgrid_window){ 8, 2, 6 }, 2, dims, anew(&why));
  mgrid_family *ftp = mgrid_grid_along(g, 1, &tp, MGRID_GRID_ORDER, anew(&why)),
               *fdp = mgrid_grid_along(g, 1, &dp, MGRID_GRID_ORDER, anew(&why));
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  late.lazy = true;
  mgrid_topology_add_grid(t, "text", g, anew(&why));
  mgrid_topology_add(t, "tensor", ftp, NULL, anew(&why));
  mgrid_topology_add(t, "data", fdp, &late, anew(&why));
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  mgrid_backend *b[2] = { mgrid_backend_dry(8, 5, anew(&why)),
                          mgrid_backend_dry(8, 0, anew(&why)) };
  mgrid_state *in = mgrid_materialize(p, b[0], NULL, anew(&why)),
              *out = mgrid_materialize(p, b[1], "out", anew(&why));
  assert_int_equal(mgrid_state_ncomms(in), 1); /* data is lazy */
  assert_int_equal(mgrid_state_create(in, "data", anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_state_create(in, "data", anew(&why)), MGRID_OK); /* again is harmless */
  assert_int_equal(mgrid_state_ncomms(in), 2);
  assert_int_equal(mgrid_state_create(in, "date", anew(&why)), MGRID_UNKNOWN_NAME);
  assert_string_equal(why.message,
                      "rank 5: unknown family 'date'; nearest is 'data' (tensor, data)");
  assert_int_equal(mgrid_group_position(mgrid_state_group(in, "data", anew(&why))), 1);
  assert_int_equal(mgrid_state_coord(in, "text", "tp", anew(&why)), 1);
  assert_int_equal(mgrid_state_coord(in, "text", "dp", anew(&why)), 1);
  assert_null(mgrid_state_group(in, "tensr", anew(&why)));
  assert_int_equal(why.status, MGRID_UNKNOWN_NAME);
  assert_string_equal(why.message, "unknown family 'tensr'; nearest is 'tensor' (tensor, data)");
  assert_null(mgrid_state_group(in, "zzz", anew(&why)));
  assert_string_equal(why.message, "unknown family 'zzz'; known: tensor, data");
  assert_int_equal(mgrid_state_coord(in, "texts", "tp", anew(&why)), -1);
  assert_int_equal(why.status, MGRID_UNKNOWN_NAME);
  assert_string_equal(why.message, "unknown grid 'texts'; nearest is 'text' (text)");
  assert_int_equal(mgrid_state_coord(in, "text", "tq", anew(&why)), -1);
  assert_string_equal(why.message, "unknown dim 'tq'; nearest is 'tp' (tp, dp)");
  why.status = MGRID_BACKEND;
  assert_null(mgrid_state_group(out, "tensor", anew(&why))); /* rank 0 is outside the window */
  assert_int_equal(why.status, MGRID_OK);
  why.status = MGRID_BACKEND;
  assert_int_equal(mgrid_state_coord(out, "text", "tp", anew(&why)), -1);
  assert_int_equal(why.status, MGRID_OK);
  assert_int_equal(mgrid_state_ncomms(out), 0);
  mgrid_plan_free(p); /* states keep their plan */
  assert_int_equal(mgrid_group_at(mgrid_state_group(in, "tensor", anew(&why)), 0), 4);
  mgrid_state_free(in);
  mgrid_state_free(out);
  for (int i = 0; i < 2; i++) mgrid_backend_free(b[i]);
  mgrid_topology_free(t);
  mgrid_family_free(ftp);
  mgrid_family_free(fdp);
  mgrid_grid_free(g);
}

static void test_materialize_errors(void **unused) {
  (void)unused;
  mgrid_plan *p = square();
  mgrid_backend *b = mgrid_backend_dry(8, 1, anew(&why));
  assert_null(mgrid_materialize(p, b, "test", anew(&why)));
  assert_string_equal(why.message, "the plan is for 4 ranks, the communicator has 8");
  assert_int_equal(why.status, MGRID_REFUSED);
  /* an argument of a failed call: no new error */
  assert_null(mgrid_materialize(p, NULL, "test", &why));
  assert_string_equal(why.message, "the plan is for 4 ranks, the communicator has 8");
  assert_null(mgrid_materialize(NULL, b, "test", &why)); /* as the header says of chained calls */
  assert_string_equal(why.message, "the plan is for 4 ranks, the communicator has 8");
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rehearsals),
    cmocka_unit_test(test_checker_passes),
    cmocka_unit_test(test_checker_fails),
    cmocka_unit_test(test_verify_fails),
    cmocka_unit_test(test_check_fails),
    cmocka_unit_test(test_check_samples),
    cmocka_unit_test(test_checker_fails_at_random),
    cmocka_unit_test(test_dry_backend),
    cmocka_unit_test(test_dry_states),
    cmocka_unit_test(test_dry_questions),
    cmocka_unit_test(test_materialize_errors),
    cmocka_unit_test(test_checker_counts_each_meeting),
  };
  return run_program("schedule", tests, argc, argv);
}
