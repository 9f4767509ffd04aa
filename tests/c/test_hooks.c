/* SPDX-License-Identifier: MIT
**
** test_hooks.c - a host's own allocator and log: every block is given back with the size that it
** had, a failure leaves nothing behind, and the log tells what happens to the job.
*/
#include "program.h"

#include "comm/backend.h"
#include "moongrid_recipe.h"

#include <unistd.h>

/* ------------------------------------------------------------------- an allocator */

typedef struct heap {
  size_t blocks, bytes, calls;
  long until_failure; /* calls that want memory before one gets none; -1: all get some */
  bool wrong;         /* a block came back that is not ours, or with another size */
  char lines[8192];   /* of the log, each with its level in front */
} heap;

enum { HEADER = 32, MAGIC = 0x6d677264 };

/* Every block has its size in front of it, which `was` must be. */
static void *allocate(void *ud, void *block, size_t was, size_t bytes) {
  heap *h = ud;
  size_t *at = block ? (size_t *)(void *)((char *)block - HEADER) : NULL;
  h->calls++;
  if (at && (at[0] != was || at[1] != MAGIC)) h->wrong = true;
  if (!at && was != 0) h->wrong = true;
  if (bytes == 0) {
    if (at) h->blocks--, h->bytes -= was, at[1] = 0, free(at);
    return NULL;
  }
  if (h->until_failure >= 0 && h->until_failure-- == 0) {
    h->until_failure = 0; /* and from then on */
    return NULL;
  }
  size_t *now = realloc(at, HEADER + bytes);
  assert_non_null(now);
  now[0] = bytes, now[1] = MAGIC;
  h->blocks += at == NULL, h->bytes += bytes - was;
  return (char *)now + HEADER;
}

static void write_line(void *ud, mgrid_level level, const char *message) {
  heap *h = ud;
  size_t n = strlen(h->lines);
  snprintf(h->lines + n, sizeof h->lines - n, "%c %s\n", "DIWR"[level], message);
}

static mgrid_hooks hooks_of(heap *h) {
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  *h = (heap){ .until_failure = -1 };
  hooks.ud = h, hooks.allocate = allocate, hooks.log = write_line;
  return hooks;
}

static void all_is_back(const heap *h) {
  assert_false(h->wrong);
  assert_int_equal(h->blocks, 0);
  assert_int_equal(h->bytes, 0);
}

/* ------------------------------------------------------------------------ the tests */

static void test_a_recipe_prints_to_the_log(void **unused) {
  (void)unused;
  heap h;
  mgrid_hooks hooks = hooks_of(&h);
  mgrid_error e = MGRID_ERROR_INIT;
  FILE *file = fopen("build/printing.lua", "w");
  assert_non_null(file);
  fputs("print('loaded', 1)\n"
        "return recipe { build = function(world)\n"
        "  log('%d ranks', world.size)\n"
        "  local t = topology(world)\n"
        "  for i = 1, 1200 do print { i } end\n"
        "  return t\n"
        "end }\n",
        file);
  fclose(file);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, &hooks, &e);
  assert_int_equal(mgrid_runtime_load(rt, "build/printing.lua", NULL, 0, &e), MGRID_OK);
  assert_non_null(strstr(h.lines, "R build/printing.lua:1: loaded 1\n"));
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
  assert_non_null(p);
  assert_non_null(
      strstr(h.lines, "R build/printing.lua:3: 8 ranks\nR build/printing.lua:5: [1]\n"));
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  unlink("build/printing.lua");
  all_is_back(&h);
}

static mgrid_runtime *in_use;
static mgrid_error of_hook;

static void plan_anew(void *ud, mgrid_level level, const char *message) {
  (void)ud, (void)message;
  if (level == MGRID_LOG_RECIPE)
    mgrid_plan_free(mgrid_runtime_plan(in_use, 4, NULL, 0, NULL, anew(&of_hook)));
}

/* Hooks may not call moongrid: one that does leaves the recipe its limits. */
static void test_a_hook_that_calls_back(void **unused) {
  (void)unused;
  mgrid_limits limits = MGRID_LIMITS_INIT;
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  FILE *file = fopen("build/calling.lua", "w");
  assert_non_null(file);
  fputs("return recipe { build = function(world)\n"
        "  if world.size == 4 then return topology(world) end\n"
        "  print 'again'\n"
        "  while true do end\n"
        "end }\n",
        file);
  fclose(file);
  limits.instructions = 1000000, hooks.log = plan_anew;
  in_use = mgrid_runtime_new(&limits, &hooks, &e);
  assert_int_equal(mgrid_runtime_load(in_use, "build/calling.lua", NULL, 0, &e), MGRID_OK);
  assert_null(mgrid_runtime_plan(in_use, 8, NULL, 0, NULL, &e));
  assert_string_equal(e.message,
                      "build/calling.lua:4: the recipe runs for more than 1000000 instructions");
  assert_int_equal(of_hook.status, MGRID_NOT_NOW);
  assert_string_equal(
      of_hook.message,
      "the runtime is running a hook or a function of the host, which must not call "
      "moongrid, nor leave by an exception (moongrid_cpp.h)");
  mgrid_plan_free(mgrid_runtime_plan(in_use, 4, NULL, 0, NULL, anew(&e)));
  assert_int_equal(e.status, MGRID_OK);
  mgrid_runtime_free(in_use);
  unlink("build/calling.lua");
}

/* A dry backend that wants its members written out, as those do that make communicators. */
static mgrid_backend *a_backend(mgrid_error *e) {
  static const mgrid_descriptor kind = { .name = "dry", .lists = true };
  mgrid_backend *b = mgrid_backend_dry(16, 5, e);
  b->kind = &kind;
  return b;
}

static mgrid_plan *a_plan(mgrid_error *e) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, e);
  mgrid_runtime_load(rt, "megatron", NULL, 0, e);
  mgrid_plan *p = mgrid_runtime_plan(rt, 16, NULL, 2, (const char *const[]){ "tp=2", "pp=2" }, e);
  mgrid_runtime_free(rt);
  return p;
}

static void test_heap_of_a_runtime(void **state) {
  heap h;
  mgrid_hooks hooks = hooks_of(&h);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, &hooks, &e);
  (void)state;
  mgrid_runtime_load(rt, "megatron", NULL, 0, &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, 16, NULL, 0, NULL, &e);
  assert_int_equal(e.status, MGRID_OK);
  assert_true(h.blocks > 100 && h.bytes > 10000);
  size_t calls = h.calls;
  mgrid_plan_free(p); /* is of plain memory: it outlives the runtime */
  assert_int_equal(h.calls, calls);
  mgrid_runtime_free(rt);
  all_is_back(&h);
}

static void test_memory_of_a_backend(void **state) {
  heap h;
  mgrid_hooks hooks = hooks_of(&h);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = a_plan(&e);
  mgrid_backend *b = a_backend(&e);
  (void)state;
  assert_int_equal(mgrid_backend_set_hooks(b, &hooks, &e), MGRID_OK);
  assert_int_equal(h.calls, 0);
  mgrid_state *s = mgrid_materialize(p, b, "one", &e), *twin = mgrid_materialize(p, b, "two", &e);
  assert_true(s && twin && h.blocks > 5);
  mgrid_backend_free(b); /* the states are its last owners, and end with its hooks */
  mgrid_plan_free(p);
  mgrid_state_free(s);
  assert_true(h.blocks > 0);
  mgrid_state_free(twin);
  all_is_back(&h);
}

/* The nth call gets nothing, nor do those after it, for every n: one clean error, and nothing
** left. */
static void test_an_allocator_that_fails(void **state) {
  heap h;
  mgrid_hooks hooks = hooks_of(&h);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = a_plan(&e);
  bool made = false;
  long n;
  (void)state;
  for (n = 0; !made; n++) {
    mgrid_backend *b = a_backend(&e);
    hooks_of(&h);
    h.until_failure = n;
    mgrid_backend_set_hooks(b, &hooks, &e);
    mgrid_state *s = mgrid_materialize(p, b, "state", &e);
    made = s != NULL;
    assert_int_equal(e.status, made ? MGRID_OK : MGRID_NO_MEMORY);
    if (!made) assert_string_equal(e.message, "out of memory");
    if (!made) assert_int_equal(h.blocks, 0);
    mgrid_error_clear(&e);
    mgrid_state_free(s);
    mgrid_backend_free(b);
    all_is_back(&h);
  }
  assert_true(n > 5);
  mgrid_plan_free(p);
  for (n = 0, made = false; !made; n += 1 + n / 8) {
    hooks_of(&h);
    h.until_failure = n;
    mgrid_runtime *rt = mgrid_runtime_new(NULL, &hooks, &e);
    mgrid_runtime_load(rt, "picotron", NULL, 0, &e);
    p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
    made = p != NULL;
    if (e.status != (made ? MGRID_OK : MGRID_NO_MEMORY))
      fail_msg("block %ld: %d, %s", n, (int)e.status, e.message);
    if (!made) assert_string_equal(e.message, "out of memory");
    mgrid_error_clear(&e);
    mgrid_plan_free(p);
    mgrid_runtime_free(rt);
    all_is_back(&h);
  }
  assert_true(n > 100);
}

/* A cap is a budget, whoever gives the memory; that there is none is something else. */
static void test_a_cap_is_not_the_end_of_memory(void **state) {
  heap h;
  mgrid_hooks hooks = hooks_of(&h);
  mgrid_limits limits = MGRID_LIMITS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  (void)state;
  limits.memory = 60000;
  assert_null(mgrid_runtime_new(&limits, &hooks, &e));
  assert_int_equal(e.status, MGRID_LIMIT);
  assert_string_equal(e.message, "the recipe needs more than 58 KiB of memory");
  all_is_back(&h);
}

static void test_hooks_come_first(void **state) {
  heap h;
  mgrid_hooks hooks = hooks_of(&h);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = a_plan(&e);
  mgrid_backend *b = mgrid_backend_dry(16, 5, &e);
  (void)state;
  assert_int_equal(mgrid_backend_set_hooks(b, &hooks, &e), MGRID_OK);
  assert_int_equal(mgrid_backend_set_hooks(b, NULL, &e), MGRID_OK); /* back to the library's own */
  mgrid_state *s = mgrid_materialize(p, b, "", &e);
  assert_true(s && h.calls == 0 && !*h.lines);
  assert_int_equal(mgrid_backend_set_hooks(b, &hooks, &e), MGRID_NOT_NOW);
  assert_string_equal(
      e.message,
      "hooks must be set before the first state of a backend; this dry backend has had one");
  mgrid_state_free(s);
  /* still: it has had one */
  assert_int_equal(mgrid_backend_set_hooks(b, &hooks, NULL), MGRID_NOT_NOW);
  assert_int_equal(mgrid_backend_set_hooks(NULL, &hooks, NULL), MGRID_USAGE);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

static void test_log(void **state) {
  heap h, of_rt;
  mgrid_hooks hooks = hooks_of(&h), rt_hooks = hooks_of(&of_rt);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_change c = MGRID_CHANGE_INIT;
  mgrid_backend *b = mgrid_backend_dry(4, 0, &e);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, &rt_hooks, &e), *fresh;
  mgrid_state *next;
  char want[128];
  (void)state;
  mgrid_backend_set_hooks(b, &hooks, &e);
  mgrid_runtime_load(rt, "picotron", NULL, 0, &e);
  mgrid_plan *p =
      mgrid_runtime_plan(rt, 4, NULL, 2, (const char *const[]){ "tp_size=2", "dp_size=2" }, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", &e);
  assert_non_null(s);
  snprintf(want, sizeof want,
           "D recipe picotron is loaded\nI recipe picotron is planned for 4 ranks: %zu families\n",
           mgrid_plan_nfamilies(p));
  assert_string_equal(of_rt.lines, want);
  assert_non_null(strstr(h.lines, "D train/tp[0]: made by dry, 0 of 2\n"));
  assert_non_null(strstr(h.lines, "I state 'train' is made: rank 0 of 4, "));
  *of_rt.lines = '\0';
  assert_int_equal(mgrid_reload(rt, s, NULL, 2, (const char *const[]){ "tp_size=4", "dp_size=1" },
                                &next, &c, &e),
                   MGRID_OK);
  fresh = mgrid_runtime_ref(mgrid_state_runtime(next));
  snprintf(want, sizeof want,
           "I recipe picotron is loaded again: %d communicators kept, %d created, %d dropped\n",
           (int)c.kept, (int)c.created, (int)c.dropped);
  assert_true(c.dropped > 0);
  /* the hooks go over to the new runtime */
  assert_non_null(strstr(of_rt.lines, "D recipe picotron is loaded\n"));
  assert_non_null(strstr(of_rt.lines, want));
  *h.lines = '\0';
  mgrid_state_free(s);
  assert_non_null(strstr(h.lines, "D train/tp[0]: freed by its last user\n"));
  *h.lines = '\0';
  assert_null(mgrid_materialize(NULL, b, "nothing", &e));
  assert_string_equal(h.lines, "W state 'nothing' is not made: no plan was given\n");
  mgrid_state_free(next);
  mgrid_runtime_free(fresh);
  mgrid_runtime_free(rt);
  mgrid_plan_free(p);
  mgrid_backend_free(b);
  all_is_back(&h);
  all_is_back(&of_rt);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_heap_of_a_runtime),
    cmocka_unit_test(test_memory_of_a_backend),
    cmocka_unit_test(test_an_allocator_that_fails),
    cmocka_unit_test(test_a_cap_is_not_the_end_of_memory),
    cmocka_unit_test(test_hooks_come_first),
    cmocka_unit_test(test_log),
    cmocka_unit_test(test_a_recipe_prints_to_the_log),
    cmocka_unit_test(test_a_hook_that_calls_back),
  };
  return run_program("hooks", tests, argc, argv);
}
