/* SPDX-License-Identifier: MIT
**
** test_stack.c - how much stack a host's thread needs: a trainer may call the library from one with little. Each case
** runs in a child, on a thread with a stack of so many KiB; to much the child ends by a signal.
*/
#include "random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* KiB that suffice: for the bundled recipes, and for any recipe. Lua allows 200 calls of C in each other, and a recipe
** can have pcall, sort and map call each other so deep. Sanitizers need several times more. */
#if defined(__aarch64__)
enum { USUAL = 64, WORST = 288, TIMES = 8 };
#else
enum { USUAL = 64, WORST = 256, TIMES = 8 };
#endif

static int nothing(void *ud, const char *text, size_t len) {
  (void)ud, (void)text, (void)len;
  return 0;
}

/* Load, plan, describe, ask and call policies. */
static mgrid_status use(const char *recipe, int64_t world, size_t n, const char *const *params, const char *policy,
                        mgrid_error *err) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, err);
  mgrid_status   s = rt ? mgrid_runtime_load(rt, recipe, err) : err->status;
  mgrid_plan    *p = s ? NULL : mgrid_runtime_plan(rt, world, n, params, err);
  mgrid_backend *b = p ? mgrid_backend_dry(world, 3, err) : NULL;
  mgrid_state   *state = b ? mgrid_materialize(p, b, NULL, err) : NULL;
  mgrid_policy  *decide = state && policy ? mgrid_policy_new(rt, state, policy, err) : NULL;
  if (decide) mgrid_policy_call(decide, 0, NULL, err);
  if (p) mgrid_plan_print(p, nothing, NULL, err);
  if (p) mgrid_plan_print_json(p, -1, nothing, NULL, err);
  if (p) mgrid_plan_check(p, NULL, err);
  if (rt && !s) mgrid_runtime_describe(rt, true, nothing, NULL, err);
  mgrid_policy_free(decide);
  mgrid_state_free(state);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return err->status;
}

static void *bundled(void *unused) {
  (void)unused;
  for (const char *const *name = mgrid_recipe_names(); *name; name++) {
    mgrid_error err = MGRID_ERROR_INIT;
    use(*name, 64, 0, NULL, NULL, &err); /* some need parameters */
  }
  return NULL;
}

static const char *path; /* of the recipe */

static void *written(void *unused) {
  mgrid_error err = MGRID_ERROR_INIT;
  (void)unused;
  use(path, 8, 0, NULL, "decide", &err);
  if (err.status) fprintf(stderr, "%s\n", err.message);
  return err.status ? (void *)&path : NULL;
}

/* How the child ended: 0, 1 for an error, or minus the signal. */
static int on_stack(void *(*body)(void *), int kib) {
  pid_t child = fork();
  if (child == 0) {
    pthread_t      thread;
    pthread_attr_t attr;
    void          *failed = NULL;
    pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, (size_t)kib << 10) || pthread_create(&thread, &attr, body, NULL)) _exit(2);
    pthread_join(thread, &failed);
    _exit(failed ? 1 : 0);
  }
  int status = 0;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* As much as this build and this system want: 128 KiB are the least of a thread on arm64. */
static int times(int kib) {
#if defined(__SANITIZE_ADDRESS__)
  kib *= TIMES;
#endif
  int least = (int)(sysconf(_SC_THREAD_STACK_MIN) >> 10);
  return kib > least ? kib : least;
}

static void test_bundled(void **unused) {
  (void)unused;
  assert_int_equal(on_stack(bundled, times(USUAL)), 0);
}

#define S6(s)   s s s s s s
#define S30(s)  S6(s) S6(s) S6(s) S6(s) S6(s)
#define S180(s) S6(S30(s))
#define BUILDING(body) \
  "return recipe { build = function(w)\n" \
  "  local t, f = topology(w), grid(w, 'x', { x = fill }) 'x'\n" body "\n  t.x = f return t end,\n" \
  "  policy = { decide = function() local function d(n) return n == 0 or pcall(d, n - 1) end return d(250) end } }"

static void test_deep_recipes(void **unused) {
  static const char *const deep[] = {
    BUILDING("local function d(n) return n == 0 or pcall(d, n - 1) end d(250)"),
    BUILDING("local function d(n) local l = { 2, 1 } table.sort(l, function() if n > 0 then pcall(d, n - 1) end "
             "return true end) end pcall(d, 250)"),
    BUILDING("local function d(n) f:map(function(l) if n > 0 then pcall(d, n - 1) end return l end) end pcall(d, 250)"),
    BUILDING("local function d(n) f:pick(function() if n > 0 then pcall(d, n - 1) end return 0 end) end pcall(d, 250)"),
    BUILDING("local function d(n) w:order(function(i) if n > 0 and i == 0 then pcall(d, n - 1) end return i end) end "
             "pcall(d, 250)"),
    BUILDING("local s = tostring(f) for i = 1, 64 do f = zip(f) end s = tostring(f) .. tostring(f == zip(f:pick(0)))"),
    BUILDING("local r = recipe { build = topology } for i = 1, 1000 do r = recipe { base = r } end r.build(w, {})"),
    BUILDING("local u = { 1 } for i = 1, 28 do u = { u } end pcall(recipe, { params = { a = param.any(u) } })"),
    BUILDING("local x = " S180("(") "1" S180(")")),
    BUILDING("local x = " S180("{") S180("}")),
    BUILDING("local x " S180("do ") S180("end ")),
    BUILDING("local x = " S180("- ") "1"),
    BUILDING("local x = " S180("'' .. ") "''"),
  };
  char name[] = P_tmpdir "/moongrid-stack-XXXXXX";
  (void)unused;
  for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
    strcpy(name, P_tmpdir "/moongrid-stack-XXXXXX");
    int   fd = mkstemp(name);
    FILE *f = fdopen(fd, "w");
    assert_non_null(f);
    fputs(deep[i], f);
    fclose(f);
    path = name;
    int rc = on_stack(written, times(WORST));
    unlink(name);
    if (rc) print_message("recipe %zu\n", i);
    assert_int_equal(rc, 0);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_bundled),
    cmocka_unit_test(test_deep_recipes),
  };
  return run_program("stack", tests, argc, argv);
}
