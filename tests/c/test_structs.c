/* SPDX-License-Identifier: MIT
**
** test_structs.c - structs that begin with their size, as hosts that were built with other headers
** have them: without a size, from an older header (shorter), from a later one (longer).
*/
#include "program.h"

#include "comm/backend.h"
#include "gen/zeroed.h"
#include "results.h"

#include <stdalign.h>
#include <unistd.h>

enum { ROOM = 1024, MARK = 0x5a };

typedef struct things { /* what the calls below work on */
  mgrid_error e;
  mgrid_family *f;
  mgrid_topology *t;
  mgrid_plan *p;
  mgrid_backend *b;
  mgrid_state *s;
  mgrid_runtime *rt;
  mgrid_policy *echo;
  int added;
} things;

/* One call for each struct that the header has, the error aside: its status says what became of the
** struct. */
static mgrid_status limits(things *w, void *x) {
  mgrid_runtime_free(mgrid_runtime_new(x, NULL, &w->e));
  return w->e.status;
}
static mgrid_status opening(things *w, void *x) {
  mgrid_state_free(mgrid_open(w->b, "picotron", 0, NULL, x, &w->e));
  return w->e.status;
}
static mgrid_status hooks_of_runtime(things *w, void *x) {
  mgrid_runtime_free(mgrid_runtime_new(NULL, x, &w->e));
  return w->e.status;
}
static mgrid_status hooks_of_backend(things *w, void *x) {
  mgrid_backend *b = mgrid_backend_dry(8, 0, &w->e);
  mgrid_backend_set_hooks(b, x, &w->e);
  mgrid_backend_free(b);
  return w->e.status;
}
static mgrid_status options(things *w, void *x) {
  char name[16];
  snprintf(name, sizeof name, "f%d", w->added++);
  return mgrid_topology_add(w->t, name, w->f, x, &w->e);
}

/* A carrier of one rank that cannot start: nccl's options are looked at before. */
static mgrid_status alone_min(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  (void)b, (void)words, (void)n, (void)err;
  return MGRID_OK;
}
static mgrid_status alone_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                                mgrid_error *err) {
  (void)b, (void)data, (void)bytes, (void)root, (void)err;
  return MGRID_OK;
}
static mgrid_status no_start(mgrid_backend *b, double seconds, int *rank, int *size,
                             mgrid_error *err) {
  (void)b, (void)seconds, (void)rank, (void)size;
  return mgrid_fail(err, MGRID_BACKEND, "no start");
}
static void no_deadline(mgrid_backend *b, double seconds) { (void)b, (void)seconds; }

static mgrid_status nccl_options(things *w, void *x) {
  static const mgrid_carrier_ops carry = { .start = no_start, .deadline = no_deadline };
  static const mgrid_backend_ops ops = { .allreduce_min = alone_min,
                                         .bcast = alone_bcast,
                                         .carrier = &carry };
  mgrid_backend b = { .layout = MGRID_LAYOUT, .ops = &ops, .world = 1, .users = 1 };
  assert_null(mgrid_backend_over(&b, "nccl", x, &w->e));
  assert_int_equal(b.users, 1); /* given back */
  /* it has no start, or the library is not here */
  if (w->e.status != MGRID_BAD_STRUCT) mgrid_error_clear(&w->e);
  return w->e.status;
}

/* No backend has that name: the options are looked at before. */
static mgrid_status backend_options(things *w, void *x) {
  assert_null(mgrid_backend_open("none of that name", x, &w->e));
  if (w->e.status != MGRID_BAD_STRUCT) mgrid_error_clear(&w->e);
  return w->e.status;
}
static mgrid_status mpi_options(things *w, void *x) {
  mgrid_backend_options o = MGRID_BACKEND_OPTIONS_INIT;
  o.mpi = x;
  assert_null(mgrid_backend_open("none of that name", &o, &w->e));
  if (w->e.status != MGRID_BAD_STRUCT) mgrid_error_clear(&w->e);
  return w->e.status;
}

static mgrid_status counts(things *w, void *x) { return mgrid_plan_count(w->p, -1, x, &w->e); }
static mgrid_status counts_of_rank(things *w, void *x) {
  return mgrid_plan_count(w->p, 0, x, &w->e);
}
static mgrid_status change(things *w, void *x) {
  return mgrid_plan_diff(w->p, w->p, 0, x, NULL, NULL, &w->e);
}
static mgrid_status memory(things *w, void *x) { return mgrid_plan_gpu_memory(w->p, 0, x, &w->e); }
static mgrid_status site(things *w, void *x) {
  mgrid_resources r = MGRID_RESOURCES_INIT;
  return mgrid_plan_resources(w->p, 0, x, &r, &w->e);
}
static mgrid_status resources(things *w, void *x) {
  return mgrid_plan_resources(w->p, 0, NULL, x, &w->e);
}
static mgrid_status checked(things *w, void *x) { return mgrid_plan_check(w->p, x, &w->e); }
static mgrid_status machine(things *w, void *x) { return mgrid_state_machine(w->s, x, &w->e); }
static mgrid_status segment(things *w, void *x) {
  const mgrid_group *g = mgrid_state_group_nth(w->s, mgrid_plan_family_name(w->p, 0), 0, &w->e);
  const int64_t all = MGRID_FILL;
  assert_non_null(g);
  return mgrid_group_segment(g, 1, &all, x, &w->e);
}
static mgrid_status argument(things *w, void *x) { return mgrid_policy_call(w->echo, 1, x, &w->e); }
static mgrid_status inner_argument(things *w, void *x) {
  mgrid_arg table = mgrid_arg_table("table", 1, x);
  return mgrid_policy_call(w->echo, 1, &table, &w->e);
}
static mgrid_status parameter(things *w, void *x) {
  mgrid_plan_free(mgrid_runtime_plan_values(w->rt, 8, 1, x, &w->e));
  return w->e.status;
}
static mgrid_status reloaded(things *w, void *x) {
  mgrid_runtime *rt;
  mgrid_state *s;
  mgrid_reload(w->rt, w->s, NULL, 0, NULL, &s, x, &w->e);
  rt = mgrid_runtime_ref(mgrid_state_runtime(s));
  /* nothing is made of a struct that is refused */
  assert_true((w->e.status == MGRID_OK) == (rt && s));
  mgrid_state_free(s);
  mgrid_runtime_free(rt);
  return w->e.status;
}

static const mgrid_limits a_limits = MGRID_LIMITS_INIT;
static const mgrid_open_options an_opening = MGRID_OPEN_OPTIONS_INIT;
static const mgrid_hooks a_hooks = MGRID_HOOKS_INIT;
static const mgrid_options an_options = MGRID_OPTIONS_INIT;
static const mgrid_nccl_options a_nccl = MGRID_NCCL_OPTIONS_INIT;
static const mgrid_mpi_options an_mpi = MGRID_MPI_OPTIONS_INIT;
static const mgrid_backend_options a_backend = MGRID_BACKEND_OPTIONS_INIT;
static const mgrid_plan_counts a_counts = MGRID_PLAN_COUNTS_INIT;
static const mgrid_change a_change = MGRID_CHANGE_INIT;
static const mgrid_gpu_memory a_memory = MGRID_GPU_MEMORY_INIT;
static const mgrid_site a_site = MGRID_SITE_INIT;
static const mgrid_resources some_resources = MGRID_RESOURCES_INIT;
static const mgrid_plan_checked a_checked = MGRID_PLAN_CHECKED_INIT;
static const mgrid_machine a_machine = MGRID_MACHINE_INIT;
static const mgrid_segment a_segment = MGRID_SEGMENT_INIT;
static const mgrid_arg an_arg = { sizeof an_arg, "tp", MGRID_IS_INTEGER, { .integer = 2 } };

static const struct {
  const char *name;
  mgrid_status (*call)(things *w, void *x);
  const void *init;
  size_t size;
  bool result;  /* the call writes to it */
  size_t least; /* bytes that it may not be shorter than: what has no default */
} rows[] = {
  { "mgrid_limits", limits, &a_limits, sizeof a_limits, false, 0 },
  { "mgrid_open_options", opening, &an_opening, sizeof an_opening, false, 0 },
  { "mgrid_hooks", hooks_of_runtime, &a_hooks, sizeof a_hooks, false, 0 },
  { "mgrid_hooks", hooks_of_backend, &a_hooks, sizeof a_hooks, false, 0 },
  { "mgrid_options", options, &an_options, sizeof an_options, false, 0 },
  { "mgrid_plan_counts", counts, &a_counts, sizeof a_counts, true, 0 },
  { "mgrid_plan_counts", counts_of_rank, &a_counts, sizeof a_counts, true, 0 },
  { "mgrid_change", change, &a_change, sizeof a_change, true, 0 },
  { "mgrid_change", reloaded, &a_change, sizeof a_change, true, 0 },
  { "mgrid_gpu_memory", memory, &a_memory, sizeof a_memory, true, 0 },
  { "mgrid_site", site, &a_site, sizeof a_site, false, 0 },
  { "mgrid_resources", resources, &some_resources, sizeof some_resources, true, 0 },
  { "mgrid_plan_checked", checked, &a_checked, sizeof a_checked, true, 0 },
  { "mgrid_machine", machine, &a_machine, sizeof a_machine, true, 0 },
  { "mgrid_segment", segment, &a_segment, sizeof a_segment, true, 0 },
  { "mgrid_arg", argument, &an_arg, sizeof an_arg, false, sizeof an_arg },
  { "mgrid_arg", inner_argument, &an_arg, sizeof an_arg, false, sizeof an_arg },
  { "mgrid_arg", parameter, &an_arg, sizeof an_arg, false, sizeof an_arg },
  { "mgrid_nccl_options", nccl_options, &a_nccl, sizeof a_nccl, false, 0 },
  { "mgrid_backend_options", backend_options, &a_backend, sizeof a_backend, false, 0 },
  { "mgrid_mpi_options", mpi_options, &an_mpi, sizeof an_mpi, false, 0 },
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Call row i with a struct that says `size`, which has its defaults and `behind` in the byte after
** them. */
static mgrid_status call(things *w, int i, size_t size, unsigned char behind,
                         unsigned char *after) {
  alignas(max_align_t) unsigned char x[ROOM] = { 0 };
  memcpy(x, rows[i].init, rows[i].size);
  memcpy(x, &size, sizeof size);
  if (size >= sizeof size && size < rows[i].size)
    memset(x + size, MARK, ROOM - size); /* not the library's: not read, not written */
  else
    x[rows[i].size] = behind;
  mgrid_error_clear(&w->e);
  mgrid_status s = rows[i].call(w, x);
  assert_int_equal(s, w->e.status);
  size_t told;
  memcpy(&told, x, sizeof told);
  assert_int_equal(told, size);
  memcpy(after, x, ROOM);
  return s;
}

static void test_without_a_size(void **state) {
  things *w = *state;
  unsigned char x[ROOM];
  char want[128];
  for (int i = 0; i < ROWS; i++)
    for (size_t size = 0; size <= 5000; size += 5000) {
      if (call(w, i, size, 0, x) != MGRID_BAD_STRUCT)
        fail_msg("row %d, %s of size %zu", i, rows[i].name, size);
      snprintf(want, sizeof want, "%s without its INIT macro (size %zu)", rows[i].name, size);
      if (!strstr(w->e.message, want)) fail_msg("row %d: '%s'", i, w->e.message);
    }
}

static void test_of_a_later_header(void **state) {
  things *w = *state;
  unsigned char x[ROOM];
  char want[128];
  for (int i = 0; i < ROWS; i++) {
    if (call(w, i, rows[i].size + 16, 0, x) != MGRID_OK)
      fail_msg("row %d, %s: %s", i, rows[i].name, w->e.message);
    if (call(w, i, rows[i].size + 16, 1, x) != MGRID_BAD_STRUCT)
      fail_msg("row %d, %s", i, rows[i].name);
    snprintf(want, sizeof want, "%s has %zu bytes, of a later moongrid", rows[i].name,
             rows[i].size + 16);
    if (!strstr(w->e.message, want)) fail_msg("row %d: '%s'", i, w->e.message);
    for (size_t k = sizeof(size_t); k < rows[i].size && rows[i].result; k++)
      /* a refused one is left alone */
      assert_int_equal(x[k], ((const unsigned char *)rows[i].init)[k]);
  }
}

/* Cut off behind any 8 bytes: what it has is read and written as ever, and nothing behind it. */
static void test_of_an_older_header(void **state) {
  things *w = *state;
  unsigned char whole[ROOM], x[ROOM];
  for (int i = 0; i < ROWS; i++) {
    assert_int_equal(call(w, i, rows[i].size, 0, whole), MGRID_OK);
    for (size_t size = sizeof(size_t); size < rows[i].size && !rows[i].least;
         size += sizeof(size_t)) {
      if (call(w, i, size, 0, x) != MGRID_OK)
        fail_msg("row %d, %s of %zu: %s", i, rows[i].name, size, w->e.message);
      if (rows[i].result)
        assert_memory_equal(x + sizeof size, whole + sizeof size, size - sizeof size);
      for (size_t k = size; k < ROOM; k++) assert_int_equal(x[k], MARK);
    }
  }
}

/* A result is written at all: the test above would be content with defaults on both sides. */
static void test_results_are_written(void **state) {
  things *w = *state;
  unsigned char x[ROOM];
  for (int i = 0; i < ROWS; i++) {
    call(w, i, rows[i].size, 0, x);
    bool same = memcmp(x, rows[i].init, rows[i].size) == 0;
    if (rows[i].result && same && rows[i].call != memory)
      fail_msg("row %d, %s is as it was", i, rows[i].name);
    if (!rows[i].result && !same) fail_msg("row %d, %s was written to", i, rows[i].name);
  }
}

/* A host without macros, as one in LuaJIT, clears a struct and sets its size: that is the INIT
** macro, but for the place of a rank that must be given, and for a second size. */
static void test_zeroed(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof zeroed / sizeof *zeroed; i++) {
    alignas(max_align_t) unsigned char x[ROOM * 2] = { 0 }, init[ROOM * 2];
    memcpy(x, &zeroed[i].size, sizeof zeroed[i].size);
    memcpy(init, zeroed[i].init, zeroed[i].size);
    if (strcmp(zeroed[i].name, "mgrid_carrier") == 0) ((mgrid_carrier *)init)->rank = 0;
    if (strcmp(zeroed[i].name, "mgrid_function") == 0) ((mgrid_function *)init)->arg_size = 0;
    for (size_t at = 0; at < zeroed[i].size; at++)
      if (x[at] != init[at])
        fail_msg("%s: byte %zu of its INIT macro is not zero", zeroed[i].name, at);
  }
}

/* A function whose arg_size is zero has the library's arguments, and is charged as usual. */
static mgrid_status twice(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                          mgrid_error *err) {
  (void)ud, (void)n, (void)err;
  *result = mgrid_arg_integer(NULL, 2 * args->as.integer);
  return MGRID_OK;
}

static void test_zeroed_function(void **state) {
  things *w = *state;
  const char text[] = "return recipe { build = function(world) local t = topology(world)\n"
                      "t.a = grid(world, 'a', { a = twice(4) }) 'a' return t end }";
  mgrid_function f = { .size = sizeof f, .name = "twice", .version = "1", .call = twice };
  mgrid_limits l = { .size = sizeof l };
  mgrid_runtime *rt = mgrid_runtime_new(&l, NULL, &w->e);
  mgrid_runtime_function(rt, &f, &w->e);
  mgrid_runtime_load(rt, "twice", text, sizeof text - 1, &w->e);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &w->e);
  if (!p) fail_msg("%s", w->e.message);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

/* Elements of a later header are longer: each is found by the size of the first, and all have
** that. */
static void test_strides(void **state) {
  enum { N = 3, MORE = 16 };
  struct {
    mgrid_arg arg;
    unsigned char more[MORE];
  } args[N] = { 0 };
  things *w = *state;
  const char *names[] = { "a", "b", "c" };
  char path[16];
  int64_t value;
  struct {
    mgrid_arg arg;
    unsigned char more[MORE];
  } all = { 0 };
  for (int i = 0; i < N; i++) {
    args[i].arg = mgrid_arg_integer(names[i], 10 + i);
    args[i].arg.size = sizeof args[i];
  }
  mgrid_arg table = mgrid_arg_table("inside", N, &args[0].arg);
  mgrid_error_clear(&w->e);
  assert_int_equal(mgrid_policy_call(w->echo, N, &args[0].arg, &w->e), MGRID_OK);
  all.arg.size = sizeof all;
  assert_int_equal(mgrid_policy_result(w->echo, NULL, MGRID_IS_TABLE, &all.arg, &w->e), MGRID_OK);
  assert_int_equal(all.arg.as.table.n, N);
  /* of the size that the host's header has */
  const char *elements = (const char *)all.arg.as.table.at;
  for (int i = 0; i < N; i++) {
    const mgrid_arg *a = (const mgrid_arg *)(const void *)(elements + (size_t)i * sizeof all);
    assert_int_equal(a->size, sizeof all);
    assert_string_equal(a->name, names[i]);
    assert_int_equal(a->as.integer, 10 + i);
    assert_int_equal(read_integer(w->echo, names[i], &value, &w->e), MGRID_OK);
    assert_int_equal(value, 10 + i);
  }
  assert_int_equal(mgrid_policy_call(w->echo, 1, &table, &w->e), MGRID_OK);
  for (int i = 0; i < N; i++) {
    snprintf(path, sizeof path, "inside.%s", names[i]);
    assert_int_equal(read_integer(w->echo, path, &value, &w->e), MGRID_OK);
    assert_int_equal(value, 10 + i);
  }
  args[2].more[MORE - 1] = 1;
  assert_int_equal(mgrid_policy_call(w->echo, N, &args[0].arg, &w->e), MGRID_BAD_STRUCT);
  args[2].more[MORE - 1] = 0;
  args[1].arg.size = sizeof(mgrid_arg);
  mgrid_error_clear(&w->e);
  assert_int_equal(mgrid_policy_call(w->echo, N, &args[0].arg, &w->e), MGRID_BAD_STRUCT);
  char want[96];
  snprintf(want, sizeof want, "argument 1 has %zu bytes, the first one %zu", sizeof(mgrid_arg),
           sizeof args[0]);
  if (!strstr(w->e.message, want)) fail_msg("%s", w->e.message);
}

/* ---------------------------------------------------------------------------------- */

static int set_up(void **state) {
  things *w = *state = calloc(1, sizeof *w);
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 4 } };
  char path[64];
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 2, dims, &w->e);
  w->e.size = sizeof w->e;
  w->f = mgrid_grid_along(g, 1, &dims[0].name, MGRID_GRID_ORDER, &w->e);
  w->t = mgrid_topology_new(8, &w->e);
  snprintf(path, sizeof path, "/tmp/structs-%d.lua", (int)getpid());
  FILE *file = fopen(path, "w");
  fputs("return recipe { params = { tp = 2, more = param.any(0) }, build = function(world, p)\n"
        "  local g, t = grid(world, 'tp-dp', { tp = p.tp, dp = fill }), topology(world)\n"
        "  t.tp, t.dp = g 'tp', g 'dp' return t end,\n"
        "  policy = { echo = function(_, q) return q end } }\n",
        file);
  fclose(file);
  w->rt = mgrid_runtime_new(NULL, NULL, &w->e);
  mgrid_runtime_load(w->rt, path, NULL, 0, &w->e);
  w->p = mgrid_runtime_plan(w->rt, 8, NULL, 0, NULL, &w->e);
  w->b = mgrid_backend_dry(8, 0, &w->e);
  w->s = mgrid_materialize(w->p, w->b, "state", &w->e);
  w->echo = mgrid_policy_new(w->rt, w->s, "echo", &w->e);
  mgrid_grid_free(g);
  if (w->e.status) fprintf(stderr, "%s\n", w->e.message);
  return w->e.status;
}

static int tear_down(void **state) {
  things *w = *state;
  char path[64];
  snprintf(path, sizeof path, "/tmp/structs-%d.lua", (int)getpid());
  unlink(path);
  mgrid_policy_free(w->echo);
  mgrid_state_free(w->s);
  mgrid_backend_free(w->b);
  mgrid_plan_free(w->p);
  mgrid_topology_free(w->t);
  mgrid_family_free(w->f);
  mgrid_runtime_free(w->rt);
  free(w);
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_without_a_size, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_of_a_later_header, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_of_an_older_header, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_results_are_written, set_up, tear_down),
    cmocka_unit_test(test_zeroed),
    cmocka_unit_test_setup_teardown(test_zeroed_function, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_strides, set_up, tear_down),
  };
  return run_program("structs", tests, argc, argv);
}
