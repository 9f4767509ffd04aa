/* SPDX-License-Identifier: MIT
**
** test_cartesian.c - Cartesian shapes of families: steps against the coordinates of random grids,
** text, refusals, what a plan does with them.
*/
#include "random.h"

#include "comm/state.h"

static mgrid_error why = MGRID_ERROR_INIT;

/* The shape of some dims of a grid, with random periods: bit i of *periods is that of the ith
** name. */
static void shape_text(rng *r, const drawn *d, size_t n, const size_t *in, char *text, size_t len,
                       unsigned *periods) {
  size_t at = 0;
  *text = '\0', *periods = 0;
  for (size_t i = 0; i < n; i++) {
    bool periodic = rng_chance(r, 50);
    *periods |= (unsigned)periodic << i;
    at += (size_t)snprintf(text + at, len - at, "%s%s:%" PRId64 "%s", i ? " " : "",
                           drawn_name(in[i]), d->dim[in[i]].size, periodic ? ":periodic" : "");
  }
}

/* Dims of a drawn_along in grid order. */
static size_t in_grid_order(const drawn *d, const drawn_along *a, size_t *in) {
  size_t n = 0;
  for (size_t i = 0; i < d->n; i++)
    for (size_t k = 0; k < a->nin; k++)
      if (a->in[k] == i) in[n++] = i;
  return n;
}

static const mgrid_group *group_of(mgrid_plan *p, int64_t rank, mgrid_state **s) {
  mgrid_backend *b = mgrid_backend_dry(mgrid_plan_world(p), rank, anew(&why));
  *s = mgrid_materialize(p, b, "", anew(&why));
  mgrid_backend_free(b);
  return mgrid_state_group(*s, "f", anew(&why));
}

/* The position of the member `steps` along the dim, found by its coordinates alone. */
static int64_t neighbour(const drawn *d, const mgrid_group *g, int64_t rank, size_t dim,
                         int64_t steps, bool periodic) {
  int64_t coords[DRAWN_DIMS], size = d->dim[dim].size;
  for (size_t i = 0; i < d->n; i++) coords[i] = mgrid_grid_coord(d->grid, rank, i);
  for (int64_t k = steps; k != 0; k += k < 0 ? 1 : -1) { /* one step at a time */
    coords[dim] += k < 0 ? -1 : 1;
    if (coords[dim] < 0 || coords[dim] >= size) {
      if (!periodic) return -1;
      coords[dim] = coords[dim] < 0 ? size - 1 : 0;
    }
  }
  return mgrid_group_position_of(g, mgrid_grid_rank(d->grid, coords));
}

static void test_steps(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + 300; seed++) {
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 64);
    drawn_along a = draw_along(&r, &d);
    size_t in[DRAWN_DIMS], n = in_grid_order(&d, &a, in);
    mgrid_options o = MGRID_OPTIONS_INIT;
    char text[256];
    unsigned periods;
    shape_text(&r, &d, n, in, text, sizeof text, &periods);
    o.cartesian = text;
    mgrid_family *f = mgrid_grid_along(d.grid, a.nin, a.in_name, MGRID_GRID_ORDER, anew(&why));
    mgrid_topology *t = mgrid_topology_new(d.window.world, anew(&why));
    check(&r, mgrid_topology_add(t, "f", f, &o, anew(&why)) == MGRID_OK);
    mgrid_plan *p = mgrid_plan_new(t, anew(&why));
    mgrid_state *s;
    int64_t rank = d.window.offset + rng_between(&r, 0, d.window.size - 1), source, dest;
    const mgrid_group *g = group_of(p, rank, &s);
    for (size_t i = 0; i < n; i++)
      for (int64_t steps = -3; steps <= 3; steps++) {
        bool periodic = periods >> i & 1;
        check(&r, mgrid_group_shift(g, drawn_name(in[i]), steps, &source, &dest, anew(&why))
                      == MGRID_OK);
        check(&r, dest == neighbour(&d, g, rank, in[i], steps, periodic));
        check(&r, source == neighbour(&d, g, rank, in[i], -steps, periodic));
      }
    mgrid_state_free(s);
    mgrid_plan_free(p);
    mgrid_topology_free(t);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
  }
}

/* ----------------------------------------------------------------- messages */

static mgrid_family *family_8(size_t n, const mgrid_dim *dims) {
  const char *names[4];
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), n, dims, anew(&why));
  mgrid_family *f;
  for (size_t i = 0; i < n; i++) names[i] = dims[i].name;
  f = mgrid_grid_along(g, n, names, MGRID_GRID_ORDER, anew(&why));
  mgrid_grid_free(g);
  return f;
}

static const char *told(const mgrid_family *f, const char *cartesian) {
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  mgrid_options o = MGRID_OPTIONS_INIT;
  o.cartesian = cartesian;
  mgrid_status s = mgrid_topology_add(t, "f", f, &o, anew(&why));
  assert_int_equal(s, why.status);
  assert_int_equal(t->content.nentries, s ? 0 : 1);
  mgrid_topology_free(t);
  return why.message;
}

static void test_messages(void **unused) {
  (void)unused;
  const mgrid_dim dims[] = { { "x", 4 }, { "y", 2 } };
  mgrid_family *f = family_8(2, dims);
  struct {
    const char *text, *message;
  } cases[] = {
    { "x:4 y:2", "" },
    { " x:4,\ty:2:periodic ", "" },
    { "", "" },
    { NULL, "" },
    { "x:8", "" }, /* its own names and cuts: any grid that the ranks are */
    { "a:2 b:2 c:2", "" },
    { "x", "cartesian: 'x' is not of the form dim:size or dim:size:periodic" },
    { "x:", "cartesian: 'x:' is not of the form dim:size or dim:size:periodic" },
    { "x:4x y:2", "cartesian: 'x:4x' is not of the form dim:size or dim:size:periodic" },
    { "x:4:perodic y:2", "cartesian: dim 'x' is 'perodic'; nearest is 'periodic' (periodic)" },
    { "x:4: y:2", "cartesian: dim 'x' is ''; known: periodic" },
    { "x:4:periodic:2", "cartesian: dim 'x' is 'periodic:2'; nearest is 'periodic' (periodic)" },
    { "4:4 y:2",
      "cartesian: '4' is not a dim name (a letter or _, then letters, digits or _; at most 31)" },
    { "x:4 x:2", "cartesian: dim 'x' is named twice" },
    { "x:0", "cartesian: dim 'x' has size 0; sizes are 1 to 2147483647" },
    { "x:-4", "cartesian: dim 'x' has size -4; sizes are 1 to 2147483647" },
    { "x:99999999999999999999:periodic",
      "cartesian: dim 'x' has size 99999999999999999999; sizes are 1 to 2147483647" },
    { "a:2147483647 b:2147483647 c:2147483647",
      "cartesian: the product of the sizes overflows 64 bits" },
    { "x:3 y:2",
      "family 'f' has groups of 8 ranks, but its Cartesian shape x:3 y:2 has 6; nearest: x 4" },
    { "x:3 y:3", "family 'f' has groups of 8 ranks, but its Cartesian shape x:3 y:3 has 9" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(told(f, cases[i].text), cases[i].message);
  char many[1024] = "";
  for (int i = 0; i < 65; i++)
    snprintf(many + strlen(many), sizeof many - strlen(many), "d%d:1 ", i);
  assert_string_equal(told(f, many), "cartesian: at most 64 dims");

  const int64_t ends[] = { 0, 1, 3, 5 };
  mgrid_family *picked = mgrid_family_pick(f, 4, ends, anew(&why)),
               *none = mgrid_family_pick(f, 1, ends, anew(&why));
  mgrid_family *lists = mgrid_family_lists(f, anew(&why));
  assert_string_equal(told(picked, "x:2 y:2"), ""); /* positions are what counts */
  assert_string_equal(told(lists, "x:4 y:2"), "");
  assert_string_equal(
      told(picked, "x:4 y:2"),
      "family 'f' has groups of 4 ranks, but its Cartesian shape x:4 y:2 has 8; nearest: x 2");
  assert_string_equal(
      told(none, "x:2"),
      "family 'f' has groups of 1 rank, but its Cartesian shape x:2 has 2; nearest: x 1");
  mgrid_family_free(lists);
  const int64_t starts[] = { 0, 3, 8 };
  const int64_t ranks[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  mgrid_family *uneven =
      mgrid_family_table(mgrid_world(8), 2, starts, ranks, MGRID_PARTITION, anew(&why));
  assert_string_equal(
      told(uneven, "x:4"),
      "family 'f' has groups of different sizes, but its Cartesian shape x:4 has 4 ranks");
  mgrid_family_free(uneven);
  mgrid_family_free(none);
  mgrid_family_free(picked);
  mgrid_family_free(f);
}

/* --------------------------------------------------------------------- plans */

/* What a plan does with a shape: text, digest, sharing by equal shapes alone; other options keep
** it. */
static void test_plan(void **unused) {
  (void)unused;
  const mgrid_dim dims[] = { { "x", 4 }, { "y", 2 } };
  mgrid_family *f = family_8(2, dims);
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_topology_add(t, "plain", f, NULL, anew(&why));
  o.cartesian = "x:4:periodic,y:2";
  mgrid_topology_add(t, "f", f, &o, anew(&why));
  o.cartesian = "  x:4:periodic   y:2";
  mgrid_topology_add(t, "again", f, &o, anew(&why));
  o.cartesian = "x:4 y:2";
  mgrid_topology_add(t, "other", f, &o, anew(&why));
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  assert_string_equal(p->content.entry[1].choice->text, " cartesian{x:4:periodic y:2}");
  assert_int_equal(p->shares[1], -1);
  assert_int_equal(p->shares[2], 1);
  assert_int_equal(p->shares[3], -1);

  mgrid_text unheeded = { 0 };
  mgrid_plan_unheeded(p, mgrid_backend_named("mpi"), &unheeded);
  assert_int_equal(unheeded.len, 0);
  mgrid_plan_unheeded(p, mgrid_backend_named("nccl"), &unheeded);
  assert_string_equal(unheeded.data, "cartesian of 3 families");
  mgrid_text_free(&unheeded);

  mgrid_choice *unique, *none;
  assert_int_equal(mgrid_choice_unique(p->content.entry[1].choice, &unique, anew(&why)), MGRID_OK);
  assert_string_equal(unique->text, " unique cartesian{x:4:periodic y:2}");
  assert_int_equal(mgrid_choice_shapeless(unique, &none, anew(&why)), MGRID_OK);
  assert_string_equal(none->text, " unique");
  assert_null(none->shape);
  assert_int_equal(mgrid_topology_choose(t, "plain", unique, anew(&why)), MGRID_OK);
  o.cartesian = "x:4";
  mgrid_choice *wrong;
  assert_int_equal(mgrid_choice_new(&o, &wrong, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_topology_choose(t, "other", wrong, anew(&why)), MGRID_REFUSED);
  assert_string_equal(
      why.message,
      "family 'other' has groups of 8 ranks, but its Cartesian shape x:4 has 4; nearest: x 8");
  assert_string_equal(t->content.entry[3].choice->text, " cartesian{x:4 y:2}");

  mgrid_choice_free(wrong);
  mgrid_choice_free(none);
  mgrid_choice_free(unique);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(f);
}

/* Answers of a group, to the ends of what an integer holds; and what it refuses. */
static void test_shift(void **unused) {
  (void)unused;
  const mgrid_dim dims[] = { { "x", 4 }, { "y", 2 } };
  mgrid_family *f = family_8(2, dims);
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  mgrid_options o = MGRID_OPTIONS_INIT;
  o.cartesian = "x:4:periodic y:2";
  mgrid_topology_add(t, "f", f, &o, anew(&why));
  mgrid_topology_add(t, "plain", f, NULL, anew(&why));
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  mgrid_state *s;
  const mgrid_group *g = group_of(p, 5, &s), *plain = mgrid_state_group(s, "plain", anew(&why));
  int64_t source = 77, dest = 77;
  /* 3 modulo 4 */
  assert_int_equal(mgrid_group_shift(g, "x", INT64_MAX, &source, &dest, anew(&why)), MGRID_OK);
  assert_int_equal(source, 6);
  assert_int_equal(dest, 4);
  assert_int_equal(mgrid_group_shift(g, "x", INT64_MIN, &source, &dest, anew(&why)), MGRID_OK);
  assert_int_equal(source, 5);
  assert_int_equal(dest, 5);
  assert_int_equal(mgrid_group_shift(g, "y", INT64_MIN, &source, &dest, anew(&why)), MGRID_OK);
  assert_true(source == -1 && dest == -1);
  assert_int_equal(mgrid_group_shift(g, "y", INT64_MAX, &source, &dest, anew(&why)), MGRID_OK);
  assert_true(source == -1 && dest == -1);
  assert_int_equal(mgrid_group_shift(g, "y", 0, &source, NULL, anew(&why)), MGRID_OK);
  assert_int_equal(source, 5);
  assert_int_equal(mgrid_group_shift(g, "y", -1, NULL, &dest, anew(&why)), MGRID_OK);
  assert_int_equal(dest, 1);
  assert_int_equal(mgrid_group_shift(g, "z", 1, &source, &dest, anew(&why)), MGRID_UNKNOWN_NAME);
  assert_string_equal(why.message, "unknown dim 'z'; known: x, y");
  assert_int_equal(mgrid_group_shift(plain, "x", 1, &source, &dest, anew(&why)), MGRID_REFUSED);
  assert_string_equal(why.message,
                      "family 'plain' has no Cartesian shape: it lacks the option 'cartesian'");
  assert_int_equal(mgrid_group_shift(NULL, "x", 1, &source, &dest, anew(&why)), MGRID_USAGE);
  assert_true(source == -1 && dest == -1);
  mgrid_state_free(s);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(f);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_steps),
    cmocka_unit_test(test_messages),
    cmocka_unit_test(test_plan),
    cmocka_unit_test(test_shift),
  };
  return run_program("cartesian", tests, argc, argv);
}
