/* SPDX-License-Identifier: MIT
**
** test_statuses.c - every status has words, and one meaning has one code: from C and from a recipe.
*/
#include "program.h"

#include "moongrid_recipe.h"
#include "results.h"

#include <unistd.h>

/* ------------------------------------------------------------------------ words */

/* The enum of the header, as it is written there: a status that is added without words fails
** here. */
static void test_every_status_has_words(void **state) {
  static char texts[64][40];
  char line[256], name[40];
  int n = 0, value;
  bool inside = false;
  FILE *header = fopen("src/moongrid.h", "r");
  (void)state;
  if (!header) skip(); /* not started in the root of the repository */
  while (fgets(line, sizeof line, header)) {
    inside = strstr(line, "typedef enum mgrid_status")
             || (inside && !strstr(line, "} mgrid_status;"));
    if (!inside || sscanf(line, " MGRID_%39[A-Z_] = %d", name, &value) != 2) continue;
    const char *words = mgrid_status_text((mgrid_status)value);
    if (strcmp(words, "unknown status") == 0) fail_msg("MGRID_%s has no words", name);
    if (value / 100 > 5) fail_msg("MGRID_%s has a kind that no exit code has", name);
    for (int i = 0; i < n; i++)
      if (strcmp(texts[i], words) == 0)
        fail_msg("MGRID_%s has the words of another: %s", name, words);
    snprintf(texts[n++], sizeof texts[0], "%s", words);
  }
  fclose(header);
  assert_true(n >= 21);
  assert_string_equal(mgrid_status_text((mgrid_status)199), "unknown status");
}

/* ------------------------------------------------------------------------ from C */

static mgrid_error e = MGRID_ERROR_INIT;

static void expect(mgrid_status want, const char *call, int line) {
  if (e.status != want)
    fail_msg("line %d: %s is %d (%s), not %d", line, call, (int)e.status, e.message, (int)want);
  if (!*e.message) fail_msg("line %d: %s says nothing", line, call);
  mgrid_error_clear(&e);
}

/* The call leaves this status in e; what it returns is nothing. */
#define gives_null(want, call) (assert_null(call), expect(want, #call, __LINE__))
/* The call returns this status, and leaves it in e. */
#define gives(want, call) (assert_int_equal(call, want), expect(want, #call, __LINE__))

static mgrid_grid *grid(int64_t world, size_t n, const mgrid_dim *dims) {
  return mgrid_grid_new(mgrid_world(world), n, dims, &e);
}

static void test_codes_of_the_algebra(void **state) {
  const mgrid_dim two[] = { { "tp", 2 }, { "dp", 4 } }, same[] = { { "tp", 2 }, { "tp", 4 } },
                  none[] = { { "tp", 0 }, { "dp", 8 } }, odd[] = { { "t p", 2 }, { "dp", 4 } },
                  large[] = { { "a", INT32_MAX }, { "b", INT32_MAX }, { "c", INT32_MAX } },
                  fills[] = { { "tp", MGRID_FILL }, { "dp", MGRID_FILL } };
  const char *tp = "tp", *wrong = "tq", *twice[] = { "tp", "tp" };
  const int64_t far[] = { 7 }, zero[] = { 0, 4 }, overflow[] = { INT32_MAX, INT32_MAX },
                starts[] = { 0, 2 };
  const int64_t again[] = { 1, 1 }, outside[] = { 1, 9 };
  mgrid_family *out[2];
  (void)state;
  mgrid_grid *g = grid(8, 2, two);
  mgrid_family *f = mgrid_grid_along(g, 1, &tp, MGRID_GRID_ORDER, &e);
  assert_int_equal(e.status, MGRID_OK);

  gives_null(MGRID_OUT_OF_RANGE, grid(0, 2, two));
  gives_null(MGRID_OUT_OF_RANGE, mgrid_grid_new((mgrid_window){ 8, 9, 1 }, 2, two, &e));
  gives_null(MGRID_OUT_OF_RANGE, grid(8, 2, none));
  gives_null(MGRID_OUT_OF_RANGE, grid(8, 65, two));
  gives_null(MGRID_BAD_VALUE, grid(8, 2, odd));
  gives_null(MGRID_DUPLICATE, grid(8, 2, same));
  gives_null(MGRID_DUPLICATE, grid(8, 2, fills));
  gives_null(MGRID_OVERFLOW, grid(8, 3, large));
  gives_null(MGRID_REFUSED, grid(12, 2, two));
  gives_null(MGRID_UNKNOWN_NAME, mgrid_grid_along(g, 1, &wrong, MGRID_GRID_ORDER, &e));
  gives_null(MGRID_DUPLICATE, mgrid_grid_along(g, 2, twice, MGRID_GRID_ORDER, &e));
  gives_null(MGRID_UNKNOWN_NAME, mgrid_grid_along_by(g, 1, &tp, 1, &wrong, &e));
  gives_null(MGRID_DUPLICATE, mgrid_grid_along_by(g, 1, &tp, 1, &tp, &e));

  gives_null(MGRID_OUT_OF_RANGE, mgrid_family_pick(f, 1, far, &e));
  gives_null(MGRID_REFUSED, mgrid_family_pick(f, 0, NULL, &e));
  gives(MGRID_OUT_OF_RANGE, mgrid_family_split(f, 0, false, false, &out[0], &out[1], &e));
  gives(MGRID_REFUSED, mgrid_family_split(f, 3, false, false, &out[0], &out[1], &e));
  gives(MGRID_OUT_OF_RANGE, mgrid_family_levels(f, 2, zero, out, &e));
  gives(MGRID_OVERFLOW, mgrid_family_levels(f, 2, overflow, out, &e));
  gives_null(MGRID_OUT_OF_RANGE, mgrid_family_bundle(f, 0, &e));
  gives_null(MGRID_REFUSED, mgrid_family_bundle(f, 3, &e));
  gives_null(MGRID_OUT_OF_RANGE, mgrid_family_neighbours(f, 2, false, &e));
  gives_null(MGRID_OUT_OF_RANGE, mgrid_family_without(f, 1, &(const int64_t){ 8 }, &e));
  gives_null(MGRID_USAGE, mgrid_family_union(0, NULL, &e));
  gives_null(MGRID_DUPLICATE,
             mgrid_family_table(mgrid_world(8), 1, starts, again, MGRID_COVER, &e));
  gives_null(MGRID_OUT_OF_RANGE,
             mgrid_family_table(mgrid_world(8), 1, starts, outside, MGRID_PARTIAL, &e));
  gives_null(MGRID_OUT_OF_RANGE,
             mgrid_family_table((mgrid_window){ 8, 0, 9 }, 1, starts, outside, MGRID_PARTIAL, &e));
  gives_null(MGRID_REFUSED,
             mgrid_family_table(mgrid_world(8), 0, starts, again, MGRID_PARTIAL, &e));
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

static int full(void *ud, const char *text, size_t len) {
  (void)ud, (void)text, (void)len;
  return 1;
}

static void test_codes_of_plan_and_state(void **state) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 4 } };
  const char *tp = "tp";
  mgrid_options o = MGRID_OPTIONS_INIT, slow = MGRID_OPTIONS_INIT, both = MGRID_OPTIONS_INIT;
  (void)state;
  mgrid_grid *g = grid(8, 2, dims);
  mgrid_family *f = mgrid_grid_along(g, 1, &tp, MGRID_GRID_ORDER, &e);
  mgrid_topology *t = mgrid_topology_new(8, &e), *small = mgrid_topology_new(4, &e);
  mgrid_topology_add(t, "tp", f, NULL, &e);
  mgrid_topology_add_grid(t, "grid", g, &e);
  assert_int_equal(e.status, MGRID_OK);

  gives_null(MGRID_OUT_OF_RANGE, mgrid_topology_new(0, &e));
  gives(MGRID_DUPLICATE, mgrid_topology_add(t, "tp", f, NULL, &e));
  gives(MGRID_DUPLICATE, mgrid_topology_add_grid(t, "tp", g, &e));
  gives(MGRID_DUPLICATE, mgrid_topology_add(t, "grid", f, NULL, &e));
  gives(MGRID_BAD_VALUE, mgrid_topology_add(t, "0", f, NULL, &e));
  gives(MGRID_REFUSED, mgrid_topology_add(small, "tp", f, NULL, &e));
  gives(MGRID_USAGE, mgrid_topology_add(t, "none", NULL, NULL, &e));
  gives(MGRID_BAD_VALUE, mgrid_topology_param(t, "a", "two\nlines", &e));
  o.backend = "gloo";
  gives(MGRID_UNKNOWN_NAME, mgrid_topology_add(t, "b", f, &o, &e));
  slow.timeout = -1;
  gives(MGRID_OUT_OF_RANGE, mgrid_topology_add(t, "b", f, &slow, &e));
  both.first = both.lazy = true;
  gives(MGRID_REFUSED, mgrid_topology_add(t, "b", f, &both, &e));
  static const struct {
    const char *fields;
    mgrid_status want;
  } nccl[] = {
    { "max_ctsa=4", MGRID_UNKNOWN_NAME },         { "max_ctas=0", MGRID_OUT_OF_RANGE },
    { "max_ctas=many", MGRID_BAD_VALUE },         { "max_ctas", MGRID_BAD_VALUE },
    { "max_ctas=4 max_ctas=4", MGRID_DUPLICATE }, { "min_ctas=8 max_ctas=4", MGRID_REFUSED }
  };
  for (size_t i = 0; i < sizeof nccl / sizeof *nccl; i++) {
    mgrid_options with = MGRID_OPTIONS_INIT;
    with.nccl = nccl[i].fields;
    gives(nccl[i].want, mgrid_topology_add(t, "b", f, &with, &e));
  }

  gives_null(MGRID_DUPLICATE, mgrid_plan_new(t, &e)); /* the first of these */
  mgrid_topology_free(t);
  t = mgrid_topology_new(8, &e);
  mgrid_topology_add(t, "tp", f, NULL, &e);
  mgrid_topology_add_grid(t, "grid", g, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  mgrid_backend *b = mgrid_backend_dry(8, 3, &e), *other = mgrid_backend_dry(4, 3, &e);
  mgrid_state *s = mgrid_materialize(p, b, "state", &e);
  mgrid_plan_counts counts = MGRID_PLAN_COUNTS_INIT;
  assert_int_equal(e.status, MGRID_OK);
  gives(MGRID_OUT_OF_RANGE, mgrid_plan_count(p, 8, &counts, &e));
  gives(MGRID_USAGE, mgrid_plan_count(p, -1, NULL, &e));
  gives(MGRID_OUT_OF_RANGE, mgrid_plan_print_schedule(p, 8, full, NULL, &e));
  gives(MGRID_OUTPUT, mgrid_plan_print(p, full, NULL, &e));
  gives(MGRID_OUTPUT, mgrid_plan_print_json(p, -1, full, NULL, &e));
  gives_null(MGRID_OUT_OF_RANGE, mgrid_backend_dry(8, 8, &e));
  gives_null(MGRID_UNKNOWN_NAME, mgrid_backend_open("ncll", NULL, &e));
  gives_null(MGRID_USAGE, mgrid_backend_open("dry", NULL, &e));
  gives_null(MGRID_REFUSED, mgrid_materialize(p, other, "state", &e));
  gives_null(MGRID_USAGE, mgrid_materialize(NULL, b, "state", &e));
  mgrid_topology *bare = mgrid_topology_new(8, &e);
  mgrid_plan *another = mgrid_plan_new(bare, &e);
  gives_null(MGRID_DUPLICATE, mgrid_materialize(another, b, "state", &e));
  mgrid_state *beside = mgrid_materialize(p, b, "state", &e),
              *unnamed = mgrid_materialize(another, b, NULL, &e);
  assert_true(beside && unnamed); /* the same plan again; no name at all */
  mgrid_state_free(beside);
  mgrid_state_free(unnamed);
  mgrid_plan_free(another);
  mgrid_topology_free(bare);
  gives(MGRID_REFUSED, mgrid_agree(other, p, NULL, &e));
  gives_null(MGRID_UNKNOWN_NAME, mgrid_state_group(s, "tq", &e));
  gives(MGRID_UNKNOWN_NAME, mgrid_state_create(s, "tq", &e));
  assert_int_equal(mgrid_state_coord(s, "gird", "tp", &e), -1),
      expect(MGRID_UNKNOWN_NAME, "grid", __LINE__);
  assert_int_equal(mgrid_state_coord(s, "grid", "tq", &e), -1),
      expect(MGRID_UNKNOWN_NAME, "dim", __LINE__);
  gives_null(MGRID_UNKNOWN_NAME, mgrid_state_shrink(s, "tq", 0, NULL, &e));
  gives_null(MGRID_OUT_OF_RANGE, mgrid_state_shrink(s, "tp", 1, &(const int64_t){ 9 }, &e));
  gives_null(MGRID_LOST_RANK, mgrid_state_shrink(s, "tp", 1, &(const int64_t){ 3 }, &e));

  mgrid_state_free(s);
  mgrid_backend_free(other);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(small);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* ------------------------------------------------------------------ from a recipe */

static char path[64];

static mgrid_runtime *load(const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  if (mgrid_runtime_load(rt, path, NULL, 0, &e)) mgrid_runtime_free(rt), rt = NULL;
  unlink(path);
  return rt;
}

#define BUILD(body) \
  "return recipe { params = { tp = param.size(2, '', 'tensor'), fast = false }, build = " \
  "function(world, p)\n" body "\nend }"
#define GRID "local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) local t = topology(world) "

static void test_codes_through_a_recipe(void **state) {
  static const struct {
    const char *text, *arg;
    mgrid_status want;
  } cases[] = {
    { "return recipe {", NULL, MGRID_REFUSED },
    { "error 'no'", NULL, MGRID_REFUSED },
    { "return recipe { base = 'picotorn' }", NULL, MGRID_UNKNOWN_NAME },
    { "return recipe { bulid = 1 }", NULL, MGRID_UNKNOWN_NAME },
    { "return recpie {}", NULL, MGRID_UNKNOWN_NAME },
    { BUILD("return grid(world, 'a', { a = fill }) 'b'"), NULL, MGRID_UNKNOWN_NAME },
    { BUILD("return p.pt"), NULL, MGRID_UNKNOWN_NAME },
    { BUILD("return topology(world).tp"), NULL, MGRID_UNKNOWN_NAME },
    { BUILD(GRID "t.tp = g 'tp' :with { lzay = true } return t"), NULL, MGRID_UNKNOWN_NAME },
    { BUILD(GRID "t.tp = g 'tp' :with { backend = 'gloo' } return t"), NULL, MGRID_UNKNOWN_NAME },
    { BUILD(GRID "t.tp = g 'tp' :with { nccl = { max_ctsa = 1 } } return t"), NULL,
      MGRID_UNKNOWN_NAME },
    { BUILD(GRID "t.tp = g 'tp' :pikc(0) return t"), NULL, MGRID_UNKNOWN_NAME },
    { BUILD(GRID "return t"), "pt=2", MGRID_UNKNOWN_NAME },
    { BUILD(GRID "t.tp = g 'tp' :pick(2) return t"), NULL, MGRID_OUT_OF_RANGE },
    { BUILD("return grid(world, 'a', { a = 0 })"), NULL, MGRID_OUT_OF_RANGE },
    { BUILD(GRID "t.tp = g 'tp' :with { timeout = -1 } return t"), NULL, MGRID_OUT_OF_RANGE },
    { BUILD(GRID "return t"), "tp=0", MGRID_OUT_OF_RANGE },
    { BUILD("return grid(world, 'a-b-c', { a = 2147483647, b = 2147483647, c = 2147483647 })"),
      NULL, MGRID_OVERFLOW },
    { BUILD("return grid(world, 'a-a', { a = 2 })"), NULL, MGRID_DUPLICATE },
    { BUILD(GRID "t.tp = g 'tp' t.tp = g 'dp' return t"), NULL, MGRID_DUPLICATE },
    { BUILD(GRID "return t"), "tp=two", MGRID_BAD_VALUE },
    { BUILD(GRID "return t"), "fast=maybe", MGRID_BAD_VALUE },
    { BUILD(GRID "return t"), "tp=3", MGRID_REFUSED },
    { BUILD(GRID "return t"), "tp", MGRID_USAGE },
    { BUILD(GRID "return 1"), NULL, MGRID_REFUSED },
    { BUILD("while true do end"), NULL, MGRID_LIMIT },
    { BUILD("local t = {} for i = 1, 1e9 do t[i] = { i } end"), NULL, MGRID_LIMIT },
    /* what was caught leaves nothing behind; what is raised again keeps its code */
    { BUILD("pcall(function() return p.pt end) error 'another'"), NULL, MGRID_REFUSED },
    { BUILD("local _, why = pcall(function() return p.pt end) error(why, 0)"), NULL,
      MGRID_UNKNOWN_NAME },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mgrid_runtime *rt = load(cases[i].text);
    mgrid_plan *p = rt ? mgrid_runtime_plan(rt, 8, NULL, cases[i].arg ? 1 : 0, &cases[i].arg, &e)
                       : NULL;
    assert_null(p);
    expect(cases[i].want, cases[i].arg ? cases[i].arg : cases[i].text, __LINE__);
    mgrid_runtime_free(rt);
  }
}

static void test_codes_of_a_runtime(void **state) {
  mgrid_limits none = MGRID_LIMITS_INIT, tiny = MGRID_LIMITS_INIT;
  const mgrid_arg twice[] = { mgrid_arg_integer("tp", 2), mgrid_arg_integer("tp", 2) },
                  aliases[] = { mgrid_arg_integer("tp", 2), mgrid_arg_integer("tensor", 2) },
                  text = mgrid_arg_text("tp", "two"), nothing = mgrid_arg_of("tp", (mgrid_kind)99),
                  nameless = mgrid_arg_integer(NULL, 1);
  const char *again[] = { "tp=2", "tp=2" };
  int64_t number;
  (void)state;
  none.seconds = -1;
  gives_null(MGRID_OUT_OF_RANGE, mgrid_runtime_new(&none, NULL, &e));
  tiny.memory = 1000;
  gives_null(MGRID_LIMIT, mgrid_runtime_new(&tiny, NULL, &e));
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  gives_null(MGRID_NOT_NOW, mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e));
  gives(MGRID_UNKNOWN_NAME, mgrid_runtime_load(rt, "megatorn", NULL, 0, &e));
  gives(MGRID_REFUSED, mgrid_runtime_load(rt, "./none.lua", NULL, 0, &e));
  /* why there is no recipe */
  gives_null(MGRID_REFUSED, mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e));
  mgrid_runtime_free(rt);

  rt = load("return recipe { params = { tp = param.size(2, '', 'tensor') },\n"
            "  build = function(world, p) local t = topology(world)\n"
            "    t.tp = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) 'tp' return t end,\n"
            "  queries = { one = function() return 1 end, f = function() return type end },\n"
            "  policy = { one = function() return 1 end, echo = function(_, q) return q end } }\n");
  if (!rt) fail_msg("%s", e.message);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
  mgrid_backend *b = mgrid_backend_dry(8, 0, &e);
  mgrid_state *s = mgrid_materialize(p, b, "", &e);
  mgrid_policy *one = mgrid_policy_new(rt, s, "one", &e),
               *echo = mgrid_policy_new(rt, s, "echo", &e);
  assert_int_equal(e.status, MGRID_OK);
  gives(MGRID_NOT_NOW, mgrid_runtime_load(rt, "megatron", NULL, 0, &e));
  gives_null(MGRID_OUT_OF_RANGE, mgrid_runtime_plan(rt, 0, NULL, 0, NULL, &e));
  gives_null(MGRID_USAGE, mgrid_runtime_plan(rt, 8, NULL, 2, again, &e)); /* of a command line */
  gives_null(MGRID_DUPLICATE, mgrid_runtime_plan_values(rt, 8, 2, twice, &e));
  gives_null(MGRID_DUPLICATE, mgrid_runtime_plan_values(rt, 8, 2, aliases, &e));
  gives_null(MGRID_BAD_VALUE, mgrid_runtime_plan_values(rt, 8, 1, &text, &e));
  gives_null(MGRID_USAGE, mgrid_runtime_plan_values(rt, 8, 1, &nothing, &e));
  gives_null(MGRID_REFUSED, mgrid_runtime_plan(rt, 8, "/nowhere.json", 0, NULL, &e));
  gives(MGRID_UNKNOWN_NAME, ask_as(MGRID_IS_JSON, rt, s, "noe", 0, NULL, NULL, 0, NULL, &e));
  gives(MGRID_BAD_VALUE, ask_as(MGRID_IS_JSON, rt, s, "one", 1, &nameless, NULL, 0, NULL, &e));
  gives(MGRID_BAD_VALUE, ask_integer(rt, s, "f", 0, NULL, &number, &e));
  gives(MGRID_BAD_VALUE, ask_as(MGRID_IS_TEXT, rt, s, "one", 0, NULL, NULL, 0, NULL, &e));
  gives_null(MGRID_UNKNOWN_NAME, mgrid_runtime_group(rt, s, "none", 0, NULL, &e));
  gives(MGRID_OUTPUT, mgrid_runtime_describe(rt, true, full, NULL, &e));
  gives_null(MGRID_UNKNOWN_NAME, mgrid_policy_new(rt, s, "noe", &e));
  gives_null(MGRID_UNKNOWN_NAME,
             mgrid_policy_new(rt, s,
                              "a name of a policy that is longer than any that there could "
                              "be, whatever a recipe is about, and longer still",
                              &e));
  assert_int_equal(mgrid_policy_call(one, 0, NULL, &e), MGRID_OK);
  const char *what;
  gives(MGRID_BAD_VALUE, read_text(one, NULL, &what, &e));
  gives(MGRID_BAD_VALUE, mgrid_policy_call(echo, 1, &nameless, &e));
  gives(MGRID_BAD_VALUE, mgrid_policy_call(echo, 1, &nothing, &e));
  mgrid_arg inside = mgrid_arg_table("inside", 1, NULL);
  inside.as.table.at = &inside; /* a table in itself */
  gives(MGRID_USAGE, mgrid_policy_call(echo, 1, &inside, &e));
  gives_null(MGRID_USAGE, mgrid_runtime_plan_values(rt, 8, 1, &inside, &e));

  mgrid_policy_free(one);
  mgrid_policy_free(echo);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_status_has_words),  cmocka_unit_test(test_codes_of_the_algebra),
    cmocka_unit_test(test_codes_of_plan_and_state), cmocka_unit_test(test_codes_through_a_recipe),
    cmocka_unit_test(test_codes_of_a_runtime),
  };
  snprintf(path, sizeof path, "/tmp/statuses-%d.lua", (int)getpid());
  return run_program("statuses", tests, argc, argv);
}
