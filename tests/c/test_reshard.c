/* SPDX-License-Identifier: MIT
**
** test_reshard.c - every allocation of a checkpoint's copy in another layout fails once: it says
** so, and neither the folder that was asked for nor one beside it is left behind. jansson's own
** allocations do not fail, as it reads on without the bytes that it had no memory for.
*/
#include "program.h"

#include "../failing.h"
#include "checkpoints/reshard.h"
#include "moongrid_recipe.h"

#include <sys/stat.h>
#include <unistd.h>

static mgrid_plan *plan;
static const char *rules; /* of the recipe */
static char home[] = P_tmpdir "/moongrid-reshard-XXXXXX";

static void put(const char *name, const void *text, size_t n) {
  FILE *f = fopen(name, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

static void furnish(void) {
  static const char recipe[] =
      "return recipe { build = function(world)\n"
      "  local g, t = grid(world, 'tp-dp', { tp = 2, dp = fill }), topology(world)\n"
      "  t.grid = g\n"
      "  t.a = tensor { axes = { { 'x', 4 }, { 'y', 6 } }, type = 'f32', cut = { y = 'tp' } }\n"
      "  t.b = flat { tensor { axes = { { 'x', 9 } }, type = 'u8' }, over = 'dp' }\n"
      "  return t end }\n";
  static const char ruled[] =
      "return recipe { build = function(world)\n"
      "  local g, t = grid(world, 'tp-dp', { tp = 2, dp = fill }), topology(world)\n"
      "  t.grid = g\n"
      "  t.a = tensor { axes = { { 'x', 4 }, { 'y', 6 } }, type = 'f32' }\n"
      "  t.turned = tensor { axes = { { 'y', 6 }, { 'x', 4 } }, type = 'f32', cut = { y = 'tp' } "
      "}\n"
      "  return t end }\n";
  static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[0,96]},"
                               "\"b\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[96,105]}}";
  unsigned char file[8 + sizeof header - 1 + 105] = { sizeof header - 1 };
  static const char index[] =
      "{\"weight_map\":{\"a\":\"model.safetensors\",\"b\":\"model.safetensors\"}}";
  memcpy(file + 8, header, sizeof header - 1);
  put("recipe.lua", recipe, sizeof recipe - 1);
  put("rules.lua", ruled, sizeof ruled - 1);
  put("model.safetensors", file, sizeof file);
  put("model.safetensors.index.json", index, sizeof index - 1);
}

/* Return the plan of a recipe for 4 ranks. */
static mgrid_plan *plan_of(const char *recipe) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_plan *made = NULL;
  if (rt && !mgrid_runtime_load(rt, recipe, NULL, 0, &e))
    made = mgrid_runtime_plan(rt, 4, NULL, 0, NULL, &e);
  if (!made) fail_msg("%s: %s", recipe, e.message);
  mgrid_runtime_free(rt);
  return made;
}

/* What it said, and its status. */
static mgrid_status reshard(const char *from, const char *to, char said[1024]) {
  mgrid_error e = MGRID_ERROR_INIT;
  reshard_options o = { .folder = to, .recipe = "recipe", .own = rules, .window = 1024 };
  o.own_length = rules ? strlen(rules) : 0;
  shards *s = shards_open(from, &e);
  resharding *r = s ? reshard_begin(s, plan, &o, &e) : NULL;
  for (bool more = r != NULL; more && !reshard_step(r, &more, &e);) continue;
  reshard_end(r);
  shards_close(s);
  snprintf(said, 1024, "%s", e.message);
  return e.status;
}

static bool is_there(const char *path) {
  struct stat about;
  return lstat(path, &about) == 0;
}

static void clear(void) { assert_int_equal(system("rm -rf out"), 0); /* NOLINT: fixed */ }

static void sweep(const char *from) {
  char said[1024];
  long n = 0;
  assert_int_equal(reshard(from, "out", said), MGRID_OK);
  for (bool done = false; !done; n++) {
    clear();
    until_failure = n;
    mgrid_status s = reshard(from, "out", said);
    done = until_failure >= 0;
    until_failure = -1;
    if (done && s) fail_msg("status %d: %s", (int)s, said);
    if (s && !strstr(said, "memory")) fail_msg("allocation %ld: status %d, '%s'", n, (int)s, said);
    if (is_there("out.part") || (s != MGRID_OK) == is_there("out"))
      fail_msg("allocation %ld: status %d, half made: %s", n, (int)s, said);
  }
  clear();
  assert_true(n > 30);
  print_message("# allocations: %ld failed in reshard of %s\n", n - 1, from);
}

static void test_one_file(void **state) { (void)state, sweep("model.safetensors"); }

static void test_an_index(void **state) { (void)state, sweep("model.safetensors.index.json"); }

/* A checkpoint in parts, as reshard itself has written it. */
static void test_parts(void **state) {
  char said[1024];
  (void)state;
  assert_int_equal(reshard("model.safetensors", "parts", said), MGRID_OK);
  sweep("parts");
}

/* Tensors made by rules, and one that is not wanted. */
static void test_rules(void **state) {
  mgrid_plan *was = plan;
  (void)state;
  plan = plan_of("rules.lua"), rules = "a -> turned transposed\nb -> -";
  sweep("model.safetensors");
  mgrid_plan_free(plan);
  plan = was, rules = NULL;
}

/* Errors of the files are those of all others: NULL for no error, and names from outside written
** out. */
static void test_errors(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  st_tensor strange = { .name = "a", .type = "f4", .width = 1, .naxes = 1, .shape = { 3 } };
  (void)state;
  put("text", "not a header", 12);
  assert_null(st_open("text", NULL));
  assert_null(st_open("none\033[2J", NULL));
  assert_null(st_open("none\033[2J", &e));
  assert_string_equal(e.message, "none\\x1b[2J: cannot be opened: No such file or directory");
  assert_null(st_create("made", 1, &strange, NULL));
  mgrid_error_clear(&e);
  assert_null(st_create("made", 1, &strange, &e));
  assert_string_equal(e.message,
                      "tensor 'a' has the type 'f4', which safetensors files do not have");
  assert_false(is_there("made"));
  strange.type = "u8";
  mgrid_error_clear(&e);
  /* not a byte of 3 */
  assert_int_equal(st_finish(st_create("made", 1, &strange, &e), MGRID_OK, NULL), MGRID_USAGE);
  assert_false(is_there("made"));
  st_writer *w = st_create("made", 1, &strange, &e);
  assert_non_null(w);
  assert_int_equal(st_write(w, "1234", 4, &e), MGRID_USAGE);
  assert_int_equal(st_finish(w, e.status, &e), MGRID_USAGE);
  assert_false(is_there("made"));
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_errors),
                                      cmocka_unit_test(test_one_file),
                                      cmocka_unit_test(test_an_index), cmocka_unit_test(test_parts),
                                      cmocka_unit_test(test_rules) };
  char away[sizeof home + 8];
  if (!mkdtemp(home) || chdir(home)) return 1;
  furnish();
  plan = plan_of("recipe.lua");
  int rc = run_program("reshard", tests, argc, argv);
  mgrid_plan_free(plan);
  snprintf(away, sizeof away, "rm -rf %s", home);
  return chdir("/") || system(away) ? 1 : rc; /* NOLINT: fixed */
}
