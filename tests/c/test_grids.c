/* SPDX-License-Identifier: MIT
**
** test_grids.c - grids over ranks in another order, and grids out of grids, against plain
** enumeration: the rank at each position is a list, and coordinates are counted, not divided.
*/
#include "lists.h"

#include "families/grid.h"
#include "comm/state.h"

enum { ORDERS = 4000, PARTS = 3000 };

/* A grid over an order, and that order as a list. */
typedef struct ordered {
  drawn d; /* its window is in positions */
  int64_t world;
  int64_t *ranks; /* [d.window.size] */
} ordered;

static void ordered_free(ordered *o) {
  mgrid_grid_free(o->d.grid);
  free(o->ranks);
}

/* Ranks of some regular kind: each stride-th one, or a grid of the same ranks read in another
** order. */
static mgrid_family *draw_regular(rng *r, int64_t size, int64_t *world) {
  mgrid_error err;
  drawn d = draw_grid_over(r, (mgrid_window){ size, 0, size });
  drawn_along a = draw_along(r, &d);
  int64_t spread = rng_between(r, 1, 3), offset = rng_between(r, 0, 9);
  mgrid_family *f = NULL;
  const char *names[DRAWN_DIMS + 1];
  mgrid_dim dims[DRAWN_DIMS + 1] = { { "every", spread } };
  memcpy(dims + 1, d.dim, d.n * sizeof *dims);
  memcpy(names, a.in_name, a.nin * sizeof *names);
  memcpy(names + a.nin, a.ix_name, a.nix * sizeof *names);
  *world = offset + size * spread + rng_between(r, 0, 3);
  mgrid_grid *wide =
      mgrid_grid_new((mgrid_window){ *world, offset, size * spread }, d.n + 1, dims, anew(&err));
  check(r, wide != NULL);
  mgrid_family *all = mgrid_grid_along(wide, d.n, names, MGRID_AS_WRITTEN, anew(&err));
  check(r, all && mgrid_family_count(all) == spread);
  int64_t starts[2] = { 0, size };
  int64_t *ranks = malloc((size_t)size * sizeof *ranks);
  assert_non_null(ranks);
  mgrid_family_members(all, rng_between(r, 0, spread - 1), 1, (size_t)size, ranks);
  f = mgrid_family_table(mgrid_world(*world), 1, starts, ranks, MGRID_PARTIAL, anew(&err));
  check(r, f != NULL && f->form == &mgrid_strided_form);
  free(ranks);
  mgrid_family_free(all);
  mgrid_grid_free(wide);
  mgrid_grid_free(d.grid);
  return f;
}

/* Some ranks of a world in any order. */
static mgrid_family *draw_irregular(rng *r, int64_t size, int64_t *world) {
  mgrid_error err;
  *world = size + rng_between(r, 0, 9);
  int64_t starts[2] = { 0, size };
  size_t *any = malloc((size_t)*world * sizeof *any);
  int64_t *ranks = malloc((size_t)size * sizeof *ranks);
  assert_true(any && ranks);
  for (size_t i = 0; i < (size_t)*world; i++) any[i] = i;
  rng_shuffle(r, (size_t)*world, any);
  for (int64_t i = 0; i < size; i++) ranks[i] = (int64_t)any[i];
  mgrid_family *f =
      mgrid_family_table(mgrid_world(*world), 1, starts, ranks, MGRID_PARTIAL, anew(&err));
  check(r, f != NULL);
  free(any);
  free(ranks);
  return f;
}

static ordered draw_ordered(rng *r, int64_t most, bool regular) {
  mgrid_error err;
  ordered o = { 0 };
  int64_t size = draw_dims(r, &o.d, most);
  mgrid_family *f = regular ? draw_regular(r, size, &o.world) : draw_irregular(r, size, &o.world);
  mgrid_dim given[DRAWN_DIMS];
  memcpy(given, o.d.dim, sizeof given);
  if (o.d.n > 0 && rng_chance(r, 30))
    given[rng_between(r, 0, (int64_t)o.d.n - 1)].size = MGRID_FILL;
  o.d.window = (mgrid_window){ size, 0, size };
  o.ranks = malloc((size_t)size * sizeof *o.ranks);
  assert_non_null(o.ranks);
  mgrid_family_members(f, 0, 1, (size_t)size, o.ranks);
  o.d.grid = mgrid_grid_over(f, o.d.n, given, anew(&err));
  check(r, o.d.grid != NULL);
  mgrid_family_free(f); /* the grid does not need it to live */
  return o;
}

/* Lists of positions as lists of ranks. */
static void lists_through(lists *l, const int64_t *ranks) {
  for (int64_t i = 0; i < l->total; i++) l->ranks[i] = ranks[l->ranks[i]];
}

/* The groups are these lists, and the family has the form that they have as a table: strided where
** there are modes for them. */
static void check_form(const rng *r, const mgrid_family *f, const lists *want) {
  mgrid_error err;
  char is[4096], would[4096];
  mgrid_family *table = mgrid_family_table(mgrid_world(mgrid_family_world(f)), want->n,
                                           want->starts, want->ranks, MGRID_PARTIAL, anew(&err));
  check(r, table != NULL);
  lists_check(r, f, want);
  check(r, f->form == table->form && mgrid_family_equal(f, table));
  mgrid_family_describe(f, is, sizeof is);
  mgrid_family_describe(table, would, sizeof would);
  check(r, strcmp(is, would) == 0);
  mgrid_family_free(table);
}

static void check_coordinates(const rng *r, const ordered *o) {
  const mgrid_grid *g = o->d.grid;
  int64_t coord[DRAWN_DIMS + 1] = { 0 }, *position = malloc((size_t)o->world * sizeof *position);
  assert_non_null(position);
  for (int64_t rank = 0; rank < o->world; rank++) position[rank] = -1;
  for (int64_t at = 0; at < o->d.window.size; at++) {
    position[o->ranks[at]] = at;
    check(r, mgrid_grid_rank(g, coord) == o->ranks[at]);
    for (size_t i = 0; i < o->d.n; i++) check(r, mgrid_grid_coord(g, o->ranks[at], i) == coord[i]);
    for (size_t i = 0; i < o->d.n && ++coord[i] == o->d.dim[i].size; i++) coord[i] = 0;
  }
  for (int64_t rank = -1; rank <= o->world; rank++) {
    int64_t at = rank < 0 || rank == o->world ? -1 : position[rank];
    check(r, mgrid_grid_position(g, rank) == at);
    for (size_t i = 0; i < o->d.n && at < 0; i++) check(r, mgrid_grid_coord(g, rank, i) == -1);
  }
  mgrid_window w = mgrid_grid_window(g);
  check(r, w.world == o->world && mgrid_grid_size(g) == o->d.window.size);
  check(r, position[w.offset] >= 0 && position[w.offset + w.size - 1] >= 0);
  for (int64_t rank = 0; rank < o->world; rank++)
    check(r, position[rank] < 0 || (rank >= w.offset && rank < w.offset + w.size));
  free(position);
}

static void test_orders(void **unused) {
  (void)unused;
  int strided = 0, tables = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + ORDERS; seed++) {
    mgrid_error err;
    rng r = rng_new(seed);
    bool regular = rng_chance(&r, 60);
    ordered o = draw_ordered(&r, 120, regular);
    drawn_along a = draw_along(&r, &o.d);
    check_coordinates(&r, &o);
    mgrid_family *f = mgrid_grid_along_by(o.d.grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&err));
    check(&r, f != NULL);
    lists want = lists_along(&o.d, a.nin, a.in, a.nix, a.ix);
    lists_through(&want, o.ranks);
    check_form(&r, f, &want);
    mgrid_chosen c;
    check(&r, !mgrid_grid_choose_by(o.d.grid, a.nin, a.in_name, a.nix, a.ix_name, &c, anew(&err)));
    if (regular) /* the rule is found without looking at the ranks */
      check(&r, mgrid_grid_listed(o.d.grid, &c)
                    == (f->form == &mgrid_strided_form ? 0 : o.d.window.size));
    strided += regular && f->form == &mgrid_strided_form && o.d.grid->order;
    tables += f->form == &mgrid_table_form;
    mgrid_family_free(f);
    lists_free(&want);
    ordered_free(&o);
  }
  assert_true(strided > ORDERS / 10 && tables > ORDERS / 10);
}

/* The part of a grid at some coordinates: its ranks are those whose coordinates are so, in the
** grid's order. */
static void test_parts(void **unused) {
  (void)unused;
  int free_and_fixed = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + PARTS; seed++) {
    mgrid_error err;
    rng r = rng_new(seed);
    ordered o = draw_ordered(&r, 200, rng_chance(&r, 70)), part = { .world = o.world };
    int64_t at[DRAWN_DIMS + 1], coord[DRAWN_DIMS] = { 0 };
    part.ranks = malloc((size_t)o.d.window.size * sizeof *part.ranks);
    assert_non_null(part.ranks);
    for (size_t i = 0; i < o.d.n; i++) {
      at[i] = rng_chance(&r, 50) ? -1 : rng_between(&r, 0, o.d.dim[i].size - 1);
      if (at[i] < 0) part.d.dim[part.d.n++] = o.d.dim[i];
    }
    for (int64_t k = 0; k < o.d.window.size; k++) {
      bool there = true;
      for (size_t i = 0; i < o.d.n; i++) there &= at[i] < 0 || at[i] == coord[i];
      if (there) part.ranks[part.d.window.size++] = o.ranks[k];
      for (size_t i = 0; i < o.d.n && ++coord[i] == o.d.dim[i].size; i++) coord[i] = 0;
    }
    part.d.grid = mgrid_grid_at(o.d.grid, at, anew(&err));
    check(&r, part.d.grid && mgrid_grid_ndims(part.d.grid) == part.d.n);
    for (size_t i = 0; i < part.d.n; i++) {
      check(&r, strcmp(mgrid_grid_dim(part.d.grid, i).name, part.d.dim[i].name) == 0);
      check(&r, mgrid_grid_dim(part.d.grid, i).size == part.d.dim[i].size);
    }
    check_coordinates(&r, &part);
    const char *names[DRAWN_DIMS];
    size_t in[DRAWN_DIMS], ix[DRAWN_DIMS], nin = 0, nix = 0;
    for (size_t i = 0; i < part.d.n; i++) {
      if (rng_chance(&r, 50))
        names[nin] = part.d.dim[i].name, in[nin++] = i;
      else
        ix[nix++] = i;
    }
    lists want = lists_along(&part.d, nin, in, nix, ix);
    lists_through(&want, part.ranks);
    mgrid_family *f = mgrid_grid_along(part.d.grid, nin, names, MGRID_GRID_ORDER, anew(&err));
    check(&r, f != NULL);
    check_form(&r, f, &want);
    free_and_fixed += part.d.window.size > 1 && part.d.window.size < o.d.window.size;
    mgrid_family_free(f);
    lists_free(&want);
    ordered_free(&part);
    ordered_free(&o);
  }
  assert_true(free_and_fixed > PARTS / 5);
}

/* unflatten, then flatten and rename of what it made, is the grid again; a rank keeps its
** coordinates, counted. */
static void test_reshapes(void **unused) {
  (void)unused;
  int cut = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + PARTS; seed++) {
    mgrid_error err;
    rng r = rng_new(seed);
    ordered o = draw_ordered(&r, 200, rng_chance(&r, 50));
    if (o.d.n == 0) {
      ordered_free(&o);
      continue;
    }
    size_t d = (size_t)rng_between(&r, 0, (int64_t)o.d.n - 1);
    int64_t size = o.d.dim[d].size, x = rng_divisor(&r, size), y = rng_divisor(&r, size / x);
    mgrid_dim dims[] = { { "x", x },
                         { "y", y },
                         { "z", rng_chance(&r, 50) ? size / x / y : MGRID_FILL } };
    mgrid_grid *more = mgrid_grid_unflatten(o.d.grid, o.d.dim[d].name, 3, dims, anew(&err));
    check(&r, more && mgrid_grid_ndims(more) == o.d.n + 2);
    for (int64_t at = 0; at < o.d.window.size; at++) {
      int64_t rank = o.ranks[at], digit[3], coord = 0;
      for (size_t i = 0; i < o.d.n; i++)
        check(&r, i == d
                      || mgrid_grid_coord(more, rank, i < d ? i : i + 2)
                             == mgrid_grid_coord(o.d.grid, rank, i));
      for (size_t i = 0; i < 3; i++) digit[i] = mgrid_grid_coord(more, rank, d + i);
      /* count to it */
      for (int64_t k = mgrid_grid_coord(o.d.grid, rank, d), c[3] = { 0 }; k >= 0; k--) {
        if (k == 0) coord = c[0] == digit[0] && c[1] == digit[1] && c[2] == digit[2];
        if (++c[0] == x) c[0] = 0, c[1]++;
        if (c[1] == y) c[1] = 0, c[2]++;
      }
      check(&r, coord);
    }
    const char *three[] = { "z", "x", "y" }, *names[DRAWN_DIMS] = { NULL };
    mgrid_grid *one = mgrid_grid_flatten(more, "w", 3, three, anew(&err));
    check(&r, one && mgrid_grid_find(one, "w") == (int64_t)d && !mgrid_grid_equal(one, o.d.grid));
    names[d] = o.d.dim[d].name;
    mgrid_grid *again = mgrid_grid_rename(one, names, anew(&err));
    check(&r, mgrid_grid_equal(again, o.d.grid));
    cut += x > 1 && y > 1;
    mgrid_grid_free(more);
    mgrid_grid_free(one);
    mgrid_grid_free(again);
    ordered_free(&o);
  }
  assert_true(cut > PARTS / 50);
}

/* The largest worlds: a grid read in another order, a part of it, in no time. */
static void test_large(void **unused) {
  (void)unused;
  enum { TP = 1024, DP = 2096128 };
  mgrid_error err;
  int64_t world = (int64_t)TP * DP, at[] = { -1, 3 };
  mgrid_dim dims[] = { { "tp", TP }, { "dp", DP } },
            other[] = { { "dp", DP }, { "tp", MGRID_FILL } };
  const char *names[] = { "dp", "tp" };
  char text[200];
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 2, dims, anew(&err));
  mgrid_family *order = mgrid_grid_along(g, 2, names, MGRID_AS_WRITTEN, anew(&err));
  mgrid_grid *turned = mgrid_grid_over(order, 2, other, anew(&err));
  mgrid_family *tp = mgrid_grid_along(g, 1, &names[1], MGRID_GRID_ORDER, anew(&err));
  mgrid_family *same = mgrid_grid_along(turned, 1, &names[1], MGRID_GRID_ORDER, anew(&err));
  assert_true(mgrid_family_equal(tp, same) && same->form == &mgrid_strided_form);
  mgrid_grid_describe(turned, text, sizeof text);
  assert_string_equal(text, "dp 2096128 x tp 1024 over ranks (2096128:1024)(1024:1)");
  for (int64_t rank = 5; rank < world; rank += world / 7)
    for (size_t i = 0; i < 2; i++)
      assert_int_equal(mgrid_grid_coord(turned, rank, i), mgrid_grid_coord(g, rank, !i));
  mgrid_grid *part = mgrid_grid_at(turned, at, anew(&err)); /* tp 3 */
  mgrid_grid_describe(part, text, sizeof text);
  assert_string_equal(text, "dp 2096128 over ranks (2096128:1024) + 3");
  mgrid_grid_free(part);
  mgrid_family_free(same);
  mgrid_family_free(tp);
  mgrid_grid_free(turned);
  mgrid_family_free(order);
  mgrid_grid_free(g);
}

/* Whatever form the family of one group has, ranks that follow each other make the grid of their
** window. */
static void test_one_form(void **unused) {
  (void)unused;
  mgrid_error err;
  mgrid_dim dims[] = { { "x", 3 }, { "y", 2 } };
  const int64_t three[] = { 0, 1, 2 }, rest[] = { 3, 4, 5 };
  mgrid_grid *plain = mgrid_grid_new((mgrid_window){ 9, 2, 6 }, 2, dims, anew(&err));
  const char *both[] = { "x", "y" };
  mgrid_family *f[5] = { mgrid_grid_along(plain, 2, both, MGRID_GRID_ORDER, anew(&err)) };
  f[1] = mgrid_family_lists(f[0], anew(&err));
  f[2] = mgrid_family_twin(f[1], anew(&err));
  f[3] = mgrid_family_twin(f[0], anew(&err));
  const mgrid_family *half[] = { mgrid_family_pick(f[0], 3, three, anew(&err)),
                                 mgrid_family_pick(f[0], 3, rest, anew(&err)) };
  f[4] = mgrid_family_zip(2, half, false, anew(&err));
  for (int i = 0; i < 5; i++) {
    mgrid_grid *g = mgrid_grid_over(f[i], 2, dims, anew(&err));
    assert_true(g && !g->order && mgrid_grid_equal(g, plain));
    mgrid_grid_free(g);
    mgrid_family_free(f[i]);
  }
  mgrid_family_free((mgrid_family *)half[0]);
  mgrid_family_free((mgrid_family *)half[1]);
  mgrid_grid_free(plain);
}

static void test_equality(void **unused) {
  (void)unused;
  mgrid_error err;
  mgrid_dim dims[] = { { "x", 2 }, { "y", 2 } }, other[] = { { "x", 4 }, { "y", 1 } };
  const int64_t starts[] = { 0, 4 };
  const int64_t ranks[][4] = {
    { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 3, 1, 2, 0 }, { 0, 2, 1, 3 }, { 0, 2, 4, 6 }
  };
  enum { N = sizeof ranks / sizeof *ranks };
  mgrid_grid *g[N];
  for (int i = 0; i < N; i++) {
    mgrid_family *f =
        mgrid_family_table(mgrid_world(8), 1, starts, ranks[i], MGRID_PARTIAL, anew(&err));
    g[i] = mgrid_grid_over(f, 2, dims, anew(&err));
    mgrid_grid *same = mgrid_grid_over(f, 2, dims, anew(&err)),
               *unlike = mgrid_grid_over(f, 2, other, anew(&err));
    assert_true(mgrid_grid_equal(g[i], same) && !mgrid_grid_equal(g[i], unlike));
    mgrid_grid_free(same);
    mgrid_grid_free(unlike);
    mgrid_family_free(f);
  }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) assert_int_equal(mgrid_grid_equal(g[i], g[j]), i == j);
  assert_true(!mgrid_grid_equal(g[0], NULL) && mgrid_grid_equal(NULL, NULL));
  for (int i = 0; i < N; i++) mgrid_grid_free(g[i]);
}

/* The slice that has this rank, in a dry state of every rank. */
static void test_submesh(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dims[] = { { "tp", 2 }, { "dp", 2 }, { "pp", 2 } };
  const char *names[] = { "pp", "tp" }, *wrong[] = { "xp" };
  const int64_t starts[] = { 0, 8 };
  const int64_t down[] = { 8, 7, 6, 5, 4, 3, 2, 1 };
  mgrid_family *order = mgrid_family_table(mgrid_world(9), 1, starts, down, MGRID_PARTIAL, &err);
  mgrid_grid *g = mgrid_grid_over(order, 3, dims, &err);
  mgrid_family *f = mgrid_grid_along(g, 2, names, MGRID_GRID_ORDER, &err);
  mgrid_topology *t = mgrid_topology_new(9, &err);
  mgrid_topology_add_grid(t, "mesh", g, &err);
  mgrid_topology_add(t, "stage", f, NULL, &err);
  mgrid_plan *p = mgrid_plan_new(t, &err);
  for (int64_t rank = 0; rank < 9; rank++) {
    mgrid_backend *b = mgrid_backend_dry(9, rank, &err);
    mgrid_state *s = mgrid_materialize(p, b, NULL, &err);
    mgrid_grid *sub = mgrid_state_submesh(s, "mesh", 2, names, &err);
    const mgrid_group *stage = mgrid_state_group(s, "stage", &err);
    assert_int_equal(err.status, MGRID_OK);
    assert_int_equal(mgrid_grid_position(sub, rank), mgrid_group_position(stage));
    assert_true((rank == 0) == (sub == NULL));
    for (int64_t at = 0; sub && at < 4; at++) {
      const int64_t coord[] = { at % 2, at / 2 };
      assert_int_equal(mgrid_grid_rank(sub, coord), mgrid_group_at(stage, at));
    }
    mgrid_grid_free(sub);
    assert_null(mgrid_state_submesh(s, "mesh", 1, wrong, anew(&err)));
    assert_string_equal(err.message, "unknown dim 'xp'; known: tp, dp, pp");
    assert_null(mgrid_state_submesh(s, "mash", 2, names, anew(&err)));
    assert_string_equal(err.message, "unknown grid 'mash'; nearest is 'mesh' (mesh)");
    anew(&err);
    mgrid_state_free(s);
    mgrid_backend_free(b);
  }
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  mgrid_grid_free(g);
  mgrid_family_free(order);
}

static void test_refusals(void **unused) {
  (void)unused;
  mgrid_error err;
  mgrid_dim dims[] = { { "tp", 2 }, { "dp", 4 }, { "one", 1 }, { "pp", 2 } };
  mgrid_dim some[] = { { "a", 3 }, { "b", MGRID_FILL }, { "tp", MGRID_FILL } };
  const char *tp = "tp", *apart[] = { "pp", "tp" }, *near[] = { "pp", "dp" },
             *renamed[] = { NULL, "tp", NULL, NULL };
  const int64_t at[] = { -1, 4, -1, -1 }, below[] = { -2, -1, -1, -1 };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(16), 4, dims, anew(&err));
  mgrid_family *f = mgrid_grid_along(g, 1, &tp, MGRID_GRID_ORDER, anew(&err));
#define refused(call, code, text) \
  assert_null(call); \
  assert_int_equal(err.status, code); \
  assert_string_equal(err.message, text)
  refused(mgrid_grid_over(f, 2, dims, anew(&err)), MGRID_REFUSED,
          "a grid needs a family of one group; this one has 8");
  refused(mgrid_grid_unflatten(g, "dp", 2, some, anew(&err)), MGRID_REFUSED,
          "a 3 does not divide dp 4; nearest: a 2 or 4, or dp 3 or 6");
  refused(mgrid_grid_unflatten(g, "dp", 1, some, anew(&err)), MGRID_REFUSED,
          "a 3 does not make dp 4; nearest: a 4, or dp 3");
  refused(mgrid_grid_unflatten(g, "cp", 1, some, anew(&err)), MGRID_UNKNOWN_NAME,
          "unknown dim 'cp'; known: tp, dp, one, pp");
  refused(mgrid_grid_unflatten(g, "dp", 1, some + 2, anew(&err)), MGRID_DUPLICATE,
          "dim 'tp' occurs twice in the grid");
  refused(mgrid_grid_flatten(g, "x", 2, apart, anew(&err)), MGRID_REFUSED,
          "dims 'tp' and 'pp' are not adjacent in tp-dp-one-pp; flatten 'dp' of size 4 with them, "
          "or make them adjacent "
          "in the order of the grid");
  refused(mgrid_grid_flatten(g, "tp", 2, near, anew(&err)), MGRID_DUPLICATE,
          "dim 'tp' occurs twice in the grid");
  refused(mgrid_grid_flatten(g, "1x", 2, near, anew(&err)), MGRID_BAD_VALUE,
          "'1x' is not a dim name (a letter or _, then letters, digits or _; at most 31)");
  refused(mgrid_grid_flatten(g, "x", 0, near, anew(&err)), MGRID_REFUSED,
          "flatten: name one dim or more");
  refused(mgrid_grid_rename(g, renamed, anew(&err)), MGRID_DUPLICATE,
          "dim 'tp' occurs twice in the grid");
  refused(mgrid_grid_at(g, at, anew(&err)), MGRID_OUT_OF_RANGE,
          "coordinate 4 of dim 'dp' is out of range (0 to 3)");
  refused(mgrid_grid_at(g, below, anew(&err)), MGRID_OUT_OF_RANGE,
          "coordinate -2 of dim 'tp' is out of range (0 to 1)");
  /* size 1 between them does not count */
  mgrid_grid *flat = mgrid_grid_flatten(g, "x", 2, near, anew(&err));
  char text[100];
  mgrid_grid_describe(flat, text, sizeof text);
  assert_string_equal(text, "tp 2 x x 8 x one 1 over ranks 0..15");
  mgrid_error_clear(&err); /* NULL because an earlier call failed */
  assert_null(mgrid_grid_over(NULL, 2, dims, &err));
  assert_null(mgrid_grid_unflatten(NULL, "dp", 2, dims, &err));
  assert_null(mgrid_grid_flatten(NULL, "x", 2, near, &err));
  assert_null(mgrid_grid_rename(NULL, renamed, &err));
  assert_null(mgrid_grid_at(NULL, at, &err));
  assert_null(mgrid_state_submesh(NULL, "g", 1, &tp, &err));
  assert_true(mgrid_grid_size(NULL) == -1 && mgrid_grid_position(NULL, 0) == -1);
  assert_int_equal(err.status, MGRID_OK);
  mgrid_grid_free(flat);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_orders),   cmocka_unit_test(test_parts),
    cmocka_unit_test(test_reshapes), cmocka_unit_test(test_large),
    cmocka_unit_test(test_one_form), cmocka_unit_test(test_equality),
    cmocka_unit_test(test_submesh),  cmocka_unit_test(test_refusals),
  };
  return run_program("grids", tests, argc, argv);
}
