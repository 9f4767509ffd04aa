/* SPDX-License-Identifier: MIT
**
** test_memory.c - every allocation of a whole run fails once: the call that needed it
** returns "out of memory", nothing crashes, and (under ASan) nothing leaks. The linker
** routes the library's malloc, calloc and realloc through this file.
*/
#include "comm/state.h"
#include "script/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static long until_failure = -1; /* allocations left before one fails; -1: none does */

static bool fails(void) { return until_failure >= 0 && until_failure-- == 0; }

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t size) { return fails() ? NULL : __real_realloc(p, size); }

/* Run `body` with the 1st, 2nd, 3rd, ... allocation failing until it needs no more of them.
** It returns MG_OK or the status of the call that failed. */
static void sweep(mg_status (*body)(mg_error *err)) {
  long n = 0;
  for (bool done = false; !done; n++) {
    mg_error err = { 0 };
    until_failure = n;
    mg_status s = body(&err);
    done = until_failure >= 0; /* this one was not reached */
    until_failure = -1;
    if (done) {
      assert_int_equal(s, MG_OK);
    } else if (s != MG_OK) { /* a failure that was survived (a hint left out) is fine, too */
      if (s != MG_LIMIT || !strstr(err.message, "memory"))
        fail_msg("allocation %ld: status %d, '%s'", n, (int)s, err.message);
    }
    assert_true(n < 200000);
  }
  assert_true(n > 10);
}

static int count_text(void *ud, const char *text, size_t len) {
  (void)text;
  *(size_t *)ud += len;
  return 0;
}

/* Every form of family, through topology, plan, printing and a dry state. */
static mg_status whole_way(mg_error *err) {
  mg_dim            dims[] = { { "tp", 2 }, { "pp", 4 }, { "dp", MG_FILL } };
  const char *const names[] = { "tp", "pp", "dp" };
  const int64_t     some[] = { 0, 1, 3 }, starts[] = { 0, 2, 4 };
  const int32_t     ranks[] = { 0, 5, 5, 9 };
  size_t            length = 0;
  mg_status         s = MG_LIMIT;
  mg_family        *f[9] = { 0 }, *halves[2] = { 0 };
  mg_grid          *g = mg_grid_new(mg_world(16), 3, dims, err);
  mg_topology      *t = g ? mg_topology_new(16, err) : NULL;
  mg_plan          *p = NULL;
  mg_backend       *b = NULL;
  mg_state         *state = NULL;
  if (t && (f[0] = mg_grid_along(g, 1, &names[1], MG_GRID_ORDER, err)) &&
      (f[1] = mg_family_pick(f[0], 3, some, err)) && (f[2] = mg_family_neighbours(f[0], 1, true, err)) &&
      (f[3] = mg_family_table(mg_world(16), 2, starts, ranks, MG_COVER, err)) && (f[4] = mg_family_twin(f[1], err)) &&
      (f[5] = mg_family_lists(f[0], err)) && (f[6] = mg_grid_along(g, 2, &names[1], MG_AS_WRITTEN, err)) &&
      (f[7] = mg_family_bundle(f[6], 2, err)) &&
      mg_family_split(f[6], 4, false, &halves[0], &halves[1], err) == MG_OK &&
      (f[8] = mg_family_union(1, (const mg_family *const *)&halves[0], err))) {
    mg_options o = MG_OPTIONS_INIT;
    o.nccl = "max_ctas=4 min_ctas=2";
    s = mg_topology_add_grid(t, "grid", g, err);
    if (!s) s = mg_topology_param(t, "tp", "2", err);
    if (!s) s = mg_topology_recipe(t, "made in C", err);
    char name[] = "a";
    for (int i = 0; i < 9 && !s; i++, name[0]++) s = mg_topology_add(t, name, f[i], i == 6 ? &o : NULL, err);
    if (!s) s = (p = mg_plan_new(t, err)) ? MG_OK : MG_LIMIT;
    if (!s) s = mg_plan_print_json(p, -1, count_text, &length, err);
    if (!s) s = mg_plan_print_json(p, 3, count_text, &length, err);
    if (!s) s = mg_plan_print_schedule(p, -1, count_text, &length, err);
    if (!s) s = mg_plan_rehearse(p, NULL, err);
    if (!s) s = (b = mg_backend_dry(16, 3, err)) ? MG_OK : MG_LIMIT;
    if (!s) s = (state = mg_materialize(p, b, "state", err)) ? MG_OK : MG_LIMIT;
  }
  mg_state_free(state);
  mg_backend_free(b);
  mg_plan_free(p);
  for (int i = 0; i < 9; i++) mg_family_free(f[i]);
  mg_family_free(halves[0]);
  mg_family_free(halves[1]);
  mg_topology_free(t);
  mg_grid_free(g);
  /* a text that could not be made ends the output: the writer calls it unwritten */
  if (s == MG_LIMIT && strstr(err->message, "output")) mg_oom(err);
  return s;
}

static mg_status recipe_way(mg_error *err) {
  mg_runtime *rt = mg_runtime_new(NULL, err);
  const char *args[] = { "tp=2", "pp=4", "use_fp8=true" };
  mg_status   s = rt ? mg_runtime_load(rt, "megatron_deepspeed", err) : MG_LIMIT;
  mg_plan    *p = s ? NULL : mg_runtime_plan(rt, 16, 3, args, err);
  if (!s && !p) s = err->status;
  if (s == MG_USAGE && strstr(err->message, "UTF-8")) s = mg_oom(err); /* Jansson does not tell apart */
  mg_plan_free(p);
  mg_runtime_free(rt);
  return s;
}

static void test_every_allocation_in_c(void **state) {
  (void)state;
  sweep(whole_way);
}

static void test_every_allocation_of_a_recipe(void **state) {
  (void)state;
  sweep(recipe_way);
}

/* The same from inside: caps on the Lua heap that are too small end in one clear error. */
static void test_every_cap_of_the_lua_heap(void **state) {
  mg_limits limits = MG_LIMITS_INIT;
  mg_status s = MG_LIMIT;
  (void)state;
  for (limits.memory = 2000; s != MG_OK; limits.memory += 509) {
    mg_error    err = { 0 };
    mg_runtime *rt = mg_runtime_new(&limits, &err);
    s = rt ? mg_runtime_load(rt, "picotron", &err) : err.status;
    mg_plan *p = s ? NULL : mg_runtime_plan(rt, 8, 0, NULL, &err);
    if (!s && !p) s = err.status;
    if (s && (s != MG_LIMIT || !strstr(err.message, "memory")))
      fail_msg("cap of %zu bytes: status %d, '%s'", limits.memory, (int)s, err.message);
    mg_plan_free(p);
    mg_runtime_free(rt);
    assert_true(limits.memory < (size_t)4 << 20);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_allocation_in_c),
    cmocka_unit_test(test_every_allocation_of_a_recipe),
    cmocka_unit_test(test_every_cap_of_the_lua_heap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
