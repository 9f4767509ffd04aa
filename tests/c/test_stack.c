/* SPDX-License-Identifier: MIT
**
** test_stack.c - how much stack a host's thread needs: a trainer may call the library from one with
** little. Each case runs in a child, on a thread with a stack of so many KiB; to much the child
** ends by a signal.
*/
#include "random.h"
#include "base/base.h"
#include "moongrid_tensor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* KiB that suffice for a bundled recipe, and for any recipe or saved plan: Lua lets functions of C,
** as pcall, sort and map, call each other 200 deep, and its parser go as deep. Sanitizers need
** several times more. */
enum { KIB = 64, KIB_OF_ANY = 256, TIMES = 8 };

static int nothing(void *ud, const char *text, size_t len) {
  (void)ud, (void)text, (void)len;
  return 0;
}

/* Load, plan, describe, ask and call policies. */
static mgrid_status use(const char *recipe, int64_t world, size_t n, const char *const *params,
                        const char *policy, mgrid_error *err) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, err);
  mgrid_status s = rt ? mgrid_runtime_load(rt, recipe, NULL, 0, err) : err->status;
  mgrid_plan *p = s ? NULL : mgrid_runtime_plan(rt, world, NULL, n, params, err);
  mgrid_backend *b = p ? mgrid_backend_dry(world, 3, err) : NULL;
  mgrid_state *state = b ? mgrid_materialize(p, b, NULL, err) : NULL;
  mgrid_policy *decide = state && policy ? mgrid_policy_new(rt, state, policy, err) : NULL;
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

static const char *path, *expected; /* of the recipe; its error after "PATH:", "": none */

static void *written(void *unused) {
  mgrid_error err = MGRID_ERROR_INIT;
  (void)unused;
  use(path, 8, 0, NULL, *expected ? NULL : "decide", &err);
  const char *after = strncmp(err.message, path, strlen(path)) == 0 ? err.message + strlen(path) + 1
                                                                    : err.message;
  if (strcmp(after, expected) == 0) return NULL;
  fprintf(stderr, "%s\n", err.message);
  return (void *)&path;
}

/* How the child ended: 0, 1 for an error, or minus the signal. */
static int on_stack(void *(*body)(void *), int kib) {
  pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    pthread_attr_t attr;
    void *failed = NULL;
    pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, (size_t)kib << 10)
        || pthread_create(&thread, &attr, body, NULL))
      _exit(2);
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
  assert_int_equal(on_stack(bundled, times(KIB)), 0);
}

/* Does the recipe end so, on a small stack? */
static bool ends(const char *recipe, const char *message) {
  char name[] = P_tmpdir "/moongrid-stack-XXXXXX";
  int fd = mkstemp(name);
  FILE *f = fdopen(fd, "w");
  assert_non_null(f);
  fputs(recipe, f);
  fclose(f);
  path = name, expected = message;
  int rc = on_stack(written, times(KIB_OF_ANY));
  unlink(name);
  if (rc) print_message("%d: %.200s\n", rc, recipe);
  return rc == 0;
}

#define BUILDING(body) \
  "return recipe { build = function(w)\n" \
  "  local t, g = topology(w), grid(w, 'x-y', { x = 2, y = fill }) local f = g('x', 'y')\n" body \
  "\n" \
  "  t.x = f return t end,\n" \
  "  policy = { decide = function() local function d(n) return n == 0 or pcall(d, n - 1) end " \
  "return d(250) end } }"
/* Functions that are called back call what calls them back, till there are no levels. */
#define DEEP(call) \
  BUILDING("local k = 0 local function d(n) local function again() if n > 0 then d(n - 1) end " \
           "end " call " end pcall(d, 250)")
/* What takes most stack, where the levels end: at each of the last dozen. */
#define LAST(body) \
  BUILDING("local function d() local ok, k = pcall(d) k = ok and k or 0 if k < 12 then " \
           "pcall(function() " body " end) end return k + 1 end d()")

static void test_deep_recipes(void **unused) {
  static const char *const deep[] = {
    BUILDING("local function d(n) return n == 0 or pcall(d, n - 1) end d(250)"),
    DEEP("table.sort({ 2, 1 }, function() pcall(again) return true end)"),
    DEEP("table.sort({ 2, 1 }, function() again() return true end)"),
    DEEP("f:map(function(l) pcall(again) return l end)"),
    DEEP("f:map(function(l) again() return l end)"),
    DEEP("f:pick(function() again() return 0 end)"),
    DEEP("f:renumber(function(i) if i == 0 then again() end return i end)"),
    DEEP("f:where(function(_, i) if i == 0 then again() end return true end)"),
    DEEP("w:order(function(i) if i == 0 then again() end return i end)"),
    DEEP("k = k + 1 t.g = g t['w' .. k] = tensor { axes = { { 'a', 32 } }, type = 'bf16', "
         "cut = { a = { 'x', bounds = function() again() return { 0, 16, 32 } end } } }"),
    DEEP("k = k + 1 t.g = g t['w' .. k] = flat { tensor { axes = { { 'a', 32 } }, type = 'bf16', "
         "cut = { a = { 'x', bounds = function() again() return { 0, 16, 32 } end } } }, over = "
         "'y' }"),
    LAST("local z = f for i = 1, 63 do z = zip(z) end local s = tostring(z) .. tostring(z == "
         "zip(z)) z:lists()"),
    LAST("local z = f for i = 1, 63 do z = z:twin() end tostring(z)"),
    LAST("local u = { 1 } for i = 1, 30 do u = { u } end recipe { params = { a = param.any(u) } } "
         "print(u)"),
    LAST("error(string.format('%99.99f %s', 1e308, g))"),
    LAST("return grid(w, 'a-b-c', { a = 2, b = fill, d = 3 })"),
    LAST("return recipe './x.lua'"),
    LAST("return recipe 'megatron'.build(w, { tp = 2 })"),
    LAST("t.w = tensor { axes = { { 'a', 32 } }, type = 'bf16', cut = { a = 'xx' } }"),
    BUILDING("local s = tostring(f) for i = 1, 64 do f = zip(f) end s = tostring(f) .. tostring(f "
             "== zip(f:pick(0)))"),
    BUILDING("local r = recipe { build = topology } for i = 1, 1000 do r = recipe { base = r } end "
             "r.build(w, {})"),
    BUILDING("local u = { 1 } for i = 1, 28 do u = { u } end pcall(recipe, { params = { a = "
             "param.any(u) } })"),
    "return recipe { params = { a = ('['):rep(2000) .. (']'):rep(2000) }, build = topology, policy "
    "= { decide = "
    "function() end } }",
  };
  (void)unused;
  bool all = true;
  for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) all &= ends(deep[i], "");
  assert_true(all);
}

/* A recipe with so many in each other, in its third line; on the heap. */
static char *nested(const char *before, const char *open, const char *in, const char *close,
                    int n) {
  static const char head[] = BUILDING("@");
  const char *rest = strchr(head, '@');
  size_t most = sizeof head + strlen(before) + strlen(in)
                + (size_t)n * (strlen(open) + strlen(close));
  char *text = calloc(1, most), *at = text;
  assert_non_null(text);
  at += sprintf(at, "%.*s%s", (int)(rest - head), head, before);
  for (int i = 0; i < n; i++) at += sprintf(at, "%s", open);
  at += sprintf(at, "%s", in);
  for (int i = 0; i < n; i++) at += sprintf(at, "%s", close);
  strcpy(at, rest + 1);
  return text;
}

/* The most that there may be, and one beyond; and many. */
static void test_levels(void **unused) {
  static const struct {
    const char *before, *open, *in, *close;
    int most;
  } all[] = {
    { "local x = ", "(", "1", ")", 191 },
    { "local x = ", "{", "", "}", 192 },
    { "local x = ", "{ x = ", "1", "}", 191 },
    { "local x = ", "type(", "1", ")", 191 },
    { "local x = ", "- ", "1", "", 191 },
    { "local x = ", "'' .. ", "''", "", 191 },
    { "local x = ", "function() return ", "1", " end", 95 },
    { "", "do ", "", "end ", 193 },
    { "local x ", "if x then ", "", "end ", 192 },
    { "local function d(n) local ok, e = pcall(n > 0 and d or type, n - 1) if not ok then error(e, "
      "0) end end d(0 ",
      "+ 1", ")", "", 196 },
    { "local function d(n) table.sort({ 2, 1 }, function() if n > 1 then d(n - 1) end return true "
      "end) end d(0 ",
      "+ 1", ")", "", 197 },
    { "local function d(n) f:map(function(l) if n > 1 then d(n - 1) end return l end) end d(0 ",
      "+ 1", ")", "", 98 },
  };
  static const char refused[] = "3: the recipe nests too deep: brackets, blocks, .. in a row, and "
                                "calls through pcall, map and the like have at most 200 levels";
  (void)unused;
  bool good = true;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (int k = 0; k < 3; k++) {
      char *text = nested(all[i].before, all[i].open, all[i].in, all[i].close,
                          k == 2 ? 5000 : all[i].most + k);
      good &= ends(text, k ? refused : "");
      free(text);
    }
  assert_true(good);
}

static const char *saved; /* the text of a plan */

static void *reading(void *unused) {
  mgrid_error err = MGRID_ERROR_INIT;
  (void)unused;
  mgrid_plan_free(mgrid_plan_read(saved, strlen(saved), "saved", &err));
  if (strcmp(err.message + strlen(err.message) - strlen(expected), expected) == 0) return NULL;
  fprintf(stderr, "%s\n", err.message);
  return (void *)&saved;
}

/* Families in each other: as many as there may be, one more, and as many as brackets allow. */
static void test_saved(void **unused) {
  static const struct {
    const char *open, *close;
    int n;
    const char *message;
  } all[] = {
    { "{\"zip\":[", "]}", 64, "is that of the rules, expected, not '0'" },
    { "{\"zip\":[", "]}", 65, ": families are nested more than 64 deep" },
    { "{\"zip\":[", "]}", 97, ": families are nested more than 64 deep" },
    { "{\"split\":3,\"of\":", "}", 194,
      ": split(3) of groups of 2: 3 does not divide 2; sizes that do: 1, 2" },
    { "{\"zip\":[", "]}", 98, "saved: brackets are nested more than 200 deep" },
  };
  (void)unused;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    mgrid_text t = { 0 };
    mgrid_text_str(&t, "{\"format\":1,\"rules\":[{\"world\":8},{\"family\":\"f\",\"rule\":");
    for (int k = 0; k < all[i].n; k++) mgrid_text_str(&t, all[i].open);
    mgrid_text_str(&t, "{\"groups\":[[0,1],[2,4]]}");
    for (int k = 0; k < all[i].n; k++) mgrid_text_str(&t, all[i].close);
    mgrid_text_str(&t, "}],\"digest\":\"0\"}");
    saved = t.data, expected = all[i].message;
    assert_int_equal(on_stack(reading, times(KIB_OF_ANY)), 0);
    mgrid_text_free(&t);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_bundled),
    cmocka_unit_test(test_deep_recipes),
    cmocka_unit_test(test_levels),
    cmocka_unit_test(test_saved),
  };
  return run_program("stack", tests, argc, argv);
}
