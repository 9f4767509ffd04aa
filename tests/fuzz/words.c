/* SPDX-License-Identifier: MIT
**
** words.c - fuzz target: text that a host or a command line gives. The first byte says what the
** rest is: parameters and options of a bundled recipe, a line each; modes; options of NCCL; a
** Cartesian shape; names of a topology; arguments of queries; paths into the result of a policy.
*/
#include "fuzz.h"
#include "../c/results.h"

enum { RECIPES_MAX = 64, LINES = 12 };

static mgrid_runtime *runtime[RECIPES_MAX];

static mgrid_runtime *recipe(size_t i) {
  mgrid_limits limits = MGRID_LIMITS_INIT;
  limits.instructions = 3000000, limits.seconds = 0.5, limits.call_seconds = 0.1;
  if (runtime[i]) return runtime[i];
  runtime[i] = mgrid_runtime_new(&limits, NULL, NULL);
  CHECK(mgrid_runtime_load(runtime[i], mgrid_recipe_names()[i], NULL, 0, NULL) == MGRID_OK);
  return runtime[i];
}

static size_t nrecipes(void) {
  size_t n = 0;
  while (mgrid_recipe_names()[n] && n < RECIPES_MAX) n++;
  return n;
}

static void plan_with(bytes *b) {
  static const int64_t worlds[] = { 8, 16, 24, 64 };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = recipe(below(b, nrecipes()));
  int64_t world = worlds[below(b, 4)];
  char *args[LINES];
  size_t n = 0;
  while (more(b) && n < LINES) args[n++] = line(b);
  mgrid_plan *p = mgrid_runtime_plan(rt, world, NULL, n, (const char *const *)args, &e);
  fuzz_check_error(&e, !p);
  if (p) fuzz_ask_plan(p);
  mgrid_plan_free(p);
  for (size_t i = 0; i < n; i++) free(args[i]);
}

static void parse_modes(bytes *b) {
  static const int64_t worlds[] = { 16, 1024, INT32_MAX, 36 };
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t world = worlds[below(b, 4)];
  char *text = line(b), written[512];
  mgrid_family *f = mgrid_family_parse(mgrid_world(world), text, &e), *again = NULL;
  fuzz_check_error(&e, !f);
  if (f && mgrid_family_describe(f, written, sizeof written) < sizeof written && *written == '('
      && mgrid_family_coverage(f) != MGRID_COVER) {
    again = mgrid_family_parse(mgrid_world(world), written, &e);
    if (again) CHECK(mgrid_family_equal(f, again));
  }
  if (f && world <= 1024) {
    int64_t group, position, rank = mgrid_family_rank(f, 0, 0);
    CHECK(rank >= 0 && mgrid_family_locate(f, rank, 0, &group, &position) && group == 0
          && position == 0);
  }
  mgrid_family_free(f);
  mgrid_family_free(again);
  free(text);
}

static void option_texts(bytes *b) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_options o = MGRID_OPTIONS_INIT;
  size_t shape = below(b, 2);
  char *name = line(b), *text = line(b), *value = line(b);
  mgrid_family *f = mgrid_family_parse(mgrid_world(24), "(12:1)(1:1) x (2:12)", NULL);
  mgrid_topology *t = mgrid_topology_new(24, &e);
  if (shape)
    o.cartesian = text;
  else
    o.nccl = text;
  mgrid_topology_add(t, name, f, &o, &e);
  mgrid_topology_param(t, value, text, &e);
  mgrid_topology_recipe(t, value, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  fuzz_check_error(&e, !p);
  if (p) fuzz_ask_plan(p);
  if (p) fuzz_ask_state(NULL, p, 3);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  free(name);
  free(text);
  free(value);
}

static void ask(bytes *b) {
  static const char *const with[] = { "megatron", "deepspeed", "optimum_habana",
                                      "megatron_deepspeed" };
  size_t which = below(b, 4), i = 0, length;
  char *query = line(b), *args = line(b), *setting = line(b), answer[64];
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t number;
  while (strcmp(mgrid_recipe_names()[i], with[which]) != 0) i++;
  mgrid_runtime *rt = recipe(i);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, NULL);
  mgrid_backend *dry = mgrid_backend_dry(8, 5, NULL);
  mgrid_state *s = mgrid_materialize(p, dry, NULL, NULL);
  CHECK(s);
  mgrid_arg arg = mgrid_arg_text(setting, args);
  mgrid_status status =
      ask_as(MGRID_IS_JSON, rt, s, query, 1, &arg, answer, sizeof answer, &length, &e);
  fuzz_check_error(&e, status != MGRID_OK);
  ask_integer(rt, s, query, 1, &arg, &number, &e);
  ask_as(MGRID_IS_TEXT, rt, s, query, 1, &arg, answer, sizeof answer, &length, &e);
  mgrid_runtime_group(rt, s, query, 1, &arg, &e);
  mgrid_runtime_set(rt, s, &arg, &e);
  mgrid_state_coord(s, query, args, &e);
  fuzz_check_error(&e, false);
  mgrid_grid_free(mgrid_state_submesh(s, query, 1, (const char *const *)&args, &e));
  mgrid_state_free(s);
  mgrid_backend_free(dry);
  mgrid_plan_free(p);
  free(query);
  free(args);
  free(setting);
}

static void read_result(bytes *b) {
  static mgrid_runtime *rt;
  static mgrid_plan *p;
  static const char text[] = "return recipe { build = function(w) local t = topology(w) t.a = "
                             "grid(w, 'a', { a = fill }) 'a' return t end,\n"
                             "policy = { one = function() return { lr = 0.5, list = { 1, 2, 3 }, "
                             "deep = { { first = 1, ['a b'] = 'x' } },\n"
                             "  ['a.b'] = true, [''] = 1, empty = {} } end } }\n";
  mgrid_error e = MGRID_ERROR_INIT;
  if (!rt) {
    rt = mgrid_runtime_new(NULL, NULL, NULL);
    CHECK(mgrid_runtime_load(rt, fuzz_file("-policy.lua", text, sizeof text - 1), NULL, 0, &e)
          == MGRID_OK);
    p = mgrid_runtime_plan(rt, 4, NULL, 0, NULL, NULL);
  }
  mgrid_backend *dry = mgrid_backend_dry(4, 1, NULL);
  mgrid_state *s = mgrid_materialize(p, dry, NULL, NULL);
  mgrid_policy *policy = mgrid_policy_new(rt, s, "one", &e);
  CHECK(mgrid_policy_call(policy, 0, NULL, &e) == MGRID_OK);
  while (more(b)) {
    char *path = line(b);
    bool yes;
    int64_t integer, integers[4];
    double number, numbers[4];
    size_t length;
    const char *word;
    mgrid_error_clear(&e);
    CHECK(kind_of(policy, path) <= MGRID_IS_LIST);
    for (mgrid_kind kind = MGRID_IS_NONE; kind <= MGRID_IS_JSON + 1; kind++) {
      mgrid_arg value = MGRID_ARG_INIT;
      mgrid_error_clear(&e);
      fuzz_check_error(&e, mgrid_policy_result(policy, path, kind, &value, &e) != MGRID_OK);
      CHECK(e.status || kind == MGRID_IS_NONE || value.kind == kind);
    }
    mgrid_error_clear(&e);
    read_boolean(policy, path, &yes, &e);
    read_integer(policy, path, &integer, &e);
    read_number(policy, path, &number, &e);
    read_text(policy, path, &word, &e);
    read_integers(policy, path, 4, integers, &length, &e);
    read_numbers(policy, path, 4, numbers, &length, &e);
    free(path);
  }
  mgrid_policy_free(policy);
  mgrid_state_free(s);
  mgrid_backend_free(dry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static void (*const kinds[])(bytes *) = { plan_with, parse_modes, option_texts, ask,
                                            read_result };
  bytes b = { data, data + size };
  kinds[below(&b, sizeof kinds / sizeof kinds[0])](&b);
  return 0;
}
