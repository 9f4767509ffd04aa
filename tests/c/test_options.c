/* SPDX-License-Identifier: MIT
**
** test_options.c - every row of the table of options: reading from C, printing, keeping families
** apart. New rows are tested without a change here.
*/
#include "random.h"

#include "plan/plan.h"

static mgrid_error why = MGRID_ERROR_INIT;

/* The nth of two values of an option, none of them the default. */
static void give(mgrid_options *o, const mgrid_option *row, int nth) {
  void *at = mgrid_option_at(o, row);
  const char *words[MGRID_WORDS_MAX];
  switch (row->kind) {
  case MGRID_OPTION_FLAG: *(bool *)at = true; return;
  case MGRID_OPTION_SECONDS: *(double *)at = nth ? 2.5 : 1; return;
  case MGRID_OPTION_WORD:
    assert_true((size_t)nth < row->words(words));
    *(const char **)at = words[nth];
    return;
  case MGRID_OPTION_NUMBERS:
    *(const char **)at = row->rules->name ? (nth ? "multimem=1,barriers=2" : "barriers=4")
                         : nth            ? "b=2 a=1"
                                          : "kv=64";
    return;
  case MGRID_OPTION_NAME: *(const char **)at = nth ? "b" : "a"; return;
  case MGRID_OPTION_SHAPE: *(const char **)at = nth ? "x:8:periodic" : "x:8"; return;
  case MGRID_OPTION_FIELDS:
    *(const char **)at = nth ? "min_ctas=2,max_ctas=8" : "max_ctas=4";
    return;
  }
  fail_msg("option '%s' is of no kind", row->name);
}

static mgrid_choice *choice_of(const mgrid_options *o) {
  mgrid_choice *c;
  assert_int_equal(mgrid_choice_new(o, &c, anew(&why)), MGRID_OK);
  return c;
}

static void test_defaults(void **unused) {
  (void)unused;
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_choice *none = choice_of(NULL), *init = choice_of(&o);
  assert_string_equal(none->text, "");
  assert_string_equal(init->text, "");
  assert_true(mgrid_choice_shares(none, init));
  assert_null(mgrid_choice_ref(NULL));
  for (const mgrid_option *row = mgrid_option_table; row->name; row++)
    assert_false(mgrid_choice_has(init, row));
  mgrid_choice_free(none);
  mgrid_choice_free(init);
}

static void test_table(void **unused) {
  (void)unused;
  size_t end = sizeof(size_t); /* behind `size` */
  for (const mgrid_option *row = mgrid_option_table; row->name; row++) {
    assert_true(mgrid_is_name(row->name));
    /* a field each, in their order */
    assert_true(row->offset >= end && row->offset < sizeof(mgrid_options));
    end = row->offset + 1;
    assert_int_equal(row->kind == MGRID_OPTION_WORD, row->words != NULL);
    assert_true(*row->unset && *row->doc);
  }
}

/* Read from C, printed as text and as JSON, and in its own field. */
static void test_values(void **unused) {
  (void)unused;
  for (const mgrid_option *row = mgrid_option_table; row->name; row++)
    for (int nth = 0; nth < 2; nth++) {
      mgrid_options o = MGRID_OPTIONS_INIT;
      give(&o, row, nth);
      mgrid_choice *c = choice_of(&o);
      assert_int_equal(strncmp(c->text + 1, row->name, strlen(row->name)), 0);
      for (const mgrid_option *other = mgrid_option_table; other->name; other++)
        assert_int_equal(mgrid_choice_has(c, other), other == row);
      mgrid_choice_free(c);
    }
}

/* Two families of the same groups that differ in one option share, or not, as its row says; so do
** their records, and only what keeps apart is in the identity. */
static void test_apart(void **unused) {
  (void)unused;
  const mgrid_dim dim = { "dp", 8 };
  const char *dp = "dp";
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 1, &dim, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &dp, MGRID_GRID_ORDER, anew(&why));
  for (const mgrid_option *row = mgrid_option_table; row->name; row++) {
    mgrid_options o = MGRID_OPTIONS_INIT;
    mgrid_topology *t = mgrid_topology_new(8, anew(&why));
    give(&o, row, 0);
    assert_int_equal(mgrid_topology_add(t, "a", f, NULL, anew(&why)), MGRID_OK);
    assert_int_equal(mgrid_topology_add(t, "b", f, &o, anew(&why)), MGRID_OK);
    mgrid_plan *p = mgrid_plan_new(t, anew(&why));
    assert_int_equal(p->shares[0] < 0 && p->shares[1] < 0, row->apart);
    const mgrid_choice *plain = p->content.entry[0].choice, *with = p->content.entry[1].choice;
    assert_int_equal(mgrid_choice_shares(plain, with), !row->apart);
    assert_int_equal(*with->identity != '\0', row->apart);
    mgrid_plan_free(p);
    mgrid_topology_free(t);
  }
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* A record is made once: plan, topology and a second topology point to it; a twin has its own. */
static void test_one_record(void **unused) {
  (void)unused;
  const mgrid_dim dim = { "dp", 8 };
  const char *dp = "dp";
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 1, &dim, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &dp, MGRID_GRID_ORDER, anew(&why)),
               *twin = mgrid_family_twin(f, anew(&why));
  mgrid_topology *t = mgrid_topology_new(8, anew(&why)), *u = mgrid_topology_new(8, anew(&why));
  o.nccl = "net_name=Socket max_ctas=4";
  mgrid_topology_add(t, "dp", f, &o, anew(&why));
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  mgrid_choice *c = p->content.entry[0].choice;
  assert_ptr_equal(c, t->content.entry[0].choice);
  assert_int_equal(mgrid_topology_put(u, "dp", f, c, anew(&why)), MGRID_OK);
  assert_ptr_equal(c, u->content.entry[0].choice);
  assert_int_equal(mgrid_topology_put(u, "twin", twin, c, anew(&why)), MGRID_OK);
  assert_ptr_not_equal(c, u->content.entry[1].choice);
  assert_string_equal(u->content.entry[1].choice->text, " unique nccl{max_ctas=4 net_name=Socket}");
  assert_int_equal(mgrid_topology_put(u, "dp", f, c, anew(&why)), MGRID_DUPLICATE);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_topology_free(u); /* the last owner of the record */
  mgrid_family_free(twin);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* Other options for a family in a topology, and families and grids that are taken out again, many
** times. */
static void test_changed(void **unused) {
  (void)unused;
  const mgrid_dim dim = { "dp", 8 };
  const char *dp = "dp";
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 1, &dim, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &dp, MGRID_GRID_ORDER, anew(&why)),
               *twin = mgrid_family_twin(f, anew(&why));
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  o.lazy = true;
  mgrid_choice *lazy = choice_of(&o);
  mgrid_topology_add(t, "dp", f, NULL, anew(&why));
  mgrid_topology_add(t, "twin", twin, NULL, anew(&why));
  assert_int_equal(mgrid_topology_choose(t, "twin", lazy, anew(&why)), MGRID_OK);
  assert_string_equal(t->content.entry[0].choice->text, "");
  assert_string_equal(t->content.entry[1].choice->text, " unique lazy");
  assert_int_equal(mgrid_topology_choose(t, "dp", lazy, anew(&why)), MGRID_OK);
  assert_ptr_equal(t->content.entry[0].choice, lazy);
  assert_int_equal(mgrid_topology_choose(t, "dp", NULL, anew(&why)), MGRID_OK);
  assert_string_equal(t->content.entry[0].choice->text, "");
  assert_int_equal(mgrid_topology_choose(t, "pp", lazy, anew(&why)), MGRID_UNKNOWN_NAME);

  char name[16];
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "a%d", i);
    assert_int_equal(mgrid_topology_add(t, name, f, NULL, anew(&why)), MGRID_OK);
    name[0] = 'g';
    assert_int_equal(mgrid_topology_add_grid(t, name, g, anew(&why)), MGRID_OK);
    name[0] = 'a';
    if (i % 3) assert_true(mgrid_topology_remove(t, name));
    name[0] = 'g';
    if (i % 5) assert_true(mgrid_topology_remove(t, name));
  }
  assert_true(mgrid_topology_remove(t, "dp"));
  assert_false(mgrid_topology_remove(t, "dp"));
  assert_int_equal(t->content.nentries, 1 + 34);
  assert_int_equal(t->content.ngrids, 20);
  assert_int_equal(mgrid_content_grid(&t->content, "g95"), 19);
  assert_int_equal(mgrid_content_grid(&t->content, "g96"), -1);
  assert_int_equal(mgrid_content_find(&t->content, "twin"), 0);
  assert_int_equal(mgrid_content_find(&t->content, "a99"), 34);
  assert_int_equal(mgrid_content_find(&t->content, "a98"), -1);
  mgrid_topology_free(t);
  mgrid_choice_free(lazy);
  mgrid_family_free(twin);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* A program that was built when there were fewer options has the others at their defaults. */
static void test_older_caller(void **unused) {
  (void)unused;
  mgrid_options o = MGRID_OPTIONS_INIT;
  o.unique = o.first = true, o.timeout = 5;
  o.size = offsetof(mgrid_options, first);
  mgrid_choice *c = choice_of(&o);
  assert_string_equal(c->text, " unique");
  assert_int_equal(c->asked.size, sizeof o);
  mgrid_choice_free(c);
}

/* 1.0000004 seconds and 1 are the same in microseconds: families share, and read back the same. */
static void test_microseconds(void **unused) {
  (void)unused;
  mgrid_options a = MGRID_OPTIONS_INIT, b = MGRID_OPTIONS_INIT;
  a.timeout = 1.0000004, b.timeout = 1;
  mgrid_choice *x = choice_of(&a), *y = choice_of(&b);
  assert_true(x->asked.timeout == 1 && mgrid_choice_shares(x, y));
  mgrid_choice_free(x);
  mgrid_choice_free(y);
}

/* Families that only answer: nothing is counted, scheduled, shared or predicted for them, and every
** question works. */
static void test_backend_none(void **unused) {
  (void)unused;
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 4 } };
  const char *const names[] = { "tp", "dp" };
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_grid *grid = mgrid_grid_new(mgrid_world(8), 2, dims, anew(&why));
  mgrid_family *dp = mgrid_grid_along(grid, 1, &names[1], MGRID_GRID_ORDER, &why);
  mgrid_family *one = mgrid_grid_along(grid, 0, NULL, MGRID_GRID_ORDER, &why);
  mgrid_topology *t = mgrid_topology_new(8, &why);
  o.backend = "none";
  mgrid_topology_add(t, "asked", dp, &o, &why); /* the first of equal groups leads none of them */
  mgrid_topology_add(t, "dp", dp, NULL, &why);
  mgrid_topology_add(t, "again", dp, &o, &why);
  mgrid_topology_add(t, "alone", one, &o, &why);
  mgrid_plan *p = mgrid_plan_new(t, &why);
  mgrid_plan_counts counts = MGRID_PLAN_COUNTS_INIT;
  mgrid_created played = { 0 };
  mgrid_plan_checked checked = MGRID_PLAN_CHECKED_INIT;
  mgrid_gpu_memory memory = MGRID_GPU_MEMORY_INIT;
  mgrid_backend *b = mgrid_backend_dry(8, 5, &why);
  mgrid_state *s = mgrid_materialize(p, b, "state", &why);
  const mgrid_group *asked = mgrid_state_group(s, "asked", &why),
                    *made = mgrid_state_group(s, "dp", &why);
  const mgrid_group *alone = mgrid_state_group(s, "alone", &why);
  assert_int_equal(why.status, MGRID_OK);
  for (size_t i = 0; i < 4; i++) assert_int_equal(p->shares[i], -1);
  assert_int_equal(mgrid_plan_count(p, -1, &counts, &why), MGRID_OK);
  assert_true(counts.families == 4 && counts.groups == 6 && counts.singles == 8
              && counts.communicators == 2);
  assert_int_equal(mgrid_plan_count(p, 5, &counts, &why), MGRID_OK);
  assert_int_equal(counts.communicators, 1);
  assert_int_equal(mgrid_plan_rehearse(p, &played, &why), MGRID_OK);
  assert_true(played.communicators == 2 && played.most_per_rank == 1);
  assert_int_equal(mgrid_plan_check(p, &checked, &why), MGRID_OK);
  assert_int_equal(checked.communicators, 2);
  for (int64_t rank = -1; rank < 8; rank++) {
    assert_int_equal(mgrid_plan_gpu_memory(p, rank, &memory, &why), MGRID_OK);
    assert_int_equal(memory.communicators, 1);
  }
  assert_int_equal(mgrid_state_ncomms(s), 1);
  assert_int_equal(mgrid_plan_count(mgrid_state_plan(s), mgrid_state_rank(s), &counts, &why),
                   MGRID_OK);
  assert_int_equal(counts.groups + counts.singles, 4);
  assert_string_equal(mgrid_group_backend(asked), "none");
  assert_string_equal(mgrid_group_backend(alone), "none");
  assert_string_equal(mgrid_group_backend(made), "dry");
  assert_null(mgrid_group_native(asked));
  assert_int_equal(mgrid_group_native_kind(asked), MGRID_NATIVE_NONE);
  assert_true(mgrid_group_position(asked) == 2 && mgrid_group_size(asked) == 4
              && mgrid_group_beside(asked, 1, false) == 7);
  assert_int_equal(mgrid_state_create(s, "asked", &why), MGRID_OK); /* nothing to create */
  assert_int_equal(mgrid_state_prove(s, NULL, &why), MGRID_OK);
  assert_int_equal(why.status, MGRID_OK);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(dp);
  mgrid_family_free(one);
  mgrid_grid_free(grid);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_defaults),     cmocka_unit_test(test_table),
    cmocka_unit_test(test_values),       cmocka_unit_test(test_apart),
    cmocka_unit_test(test_one_record),   cmocka_unit_test(test_changed),
    cmocka_unit_test(test_older_caller), cmocka_unit_test(test_microseconds),
    cmocka_unit_test(test_backend_none),
  };
  return run_program("options", tests, argc, argv);
}
