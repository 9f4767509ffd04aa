/* SPDX-License-Identifier: MIT
**
** fuzz.c - fuzz.h's functions.
*/
#include "fuzz.h"

#define MOST_AT_ONCE ((size_t)256 << 20)
#include "../failing.h"
#include "../c/results.h"

static char folder[64];

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (*folder && system(command) != 0) fprintf(stderr, "cannot remove %s\n", folder);
}

const char *fuzz_file(const char *end, const void *data, size_t size) {
  static char path[8][96];
  static int next;
  if (!*folder) {
    /* of scripts/fuzz, which removes it: libFuzzer often ends without atexit */
    const char *in = getenv("FUZZ_FOLDER");
    snprintf(folder, sizeof folder, "%.40s/moongrid-fuzz-XXXXXX", in ? in : "/tmp");
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
  }
  char *name = NULL;
  char want[96];
  snprintf(want, sizeof want, "%s/input%s", folder, end);
  for (int i = 0; i < next && !name; i++)
    if (strcmp(path[i], want) == 0) name = path[i];
  if (!name) name = strcpy(path[next++ % 8], want);
  FILE *file = fopen(name, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
  return name;
}

_Noreturn void fuzz_failed(const char *file, int at_line, const char *condition) {
  fprintf(stderr, "%s:%d: not so: %s\n", file, at_line, condition);
  abort();
}

void fuzz_check_error(const mgrid_error *err, bool failed) {
  if (failed) CHECK(err->status != MGRID_OK);
  if (err->status == MGRID_OK) {
    CHECK(!*err->message);
    return;
  }
  CHECK(strcmp(mgrid_status_text(err->status), mgrid_status_text((mgrid_status)-1)) != 0);
  CHECK(*err->message);
  CHECK(strnlen(err->message, sizeof err->message) < sizeof err->message);
  CHECK(strnlen(err->file, sizeof err->file) < sizeof err->file);
  CHECK(err->line >= 0);
  for (const char *c = err->message; *c;
       c++) { /* a terminal may show it; a text that Lua refuses is quoted, indented */
    if (strncmp(c, "\n  ", 3) == 0) c++;
    CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
  }
}

int fuzz_sink(void *ud, const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) *(size_t *)ud += text[i] != 0;
  return 0;
}

void fuzz_ask_plan(const mgrid_plan *p) {
  size_t length = 0;
  char digest[33];
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan_counts counts = MGRID_PLAN_COUNTS_INIT;
  mgrid_plan_checked checked = MGRID_PLAN_CHECKED_INIT;
  mgrid_gpu_memory memory = MGRID_GPU_MEMORY_INIT;
  mgrid_resources resources = MGRID_RESOURCES_INIT;
  mgrid_change change = MGRID_CHANGE_INIT;
  int64_t last = mgrid_plan_world(p) - 1;
  mgrid_plan_digest(p, digest);
  CHECK(strlen(digest) == 32);
  mgrid_plan_print(p, fuzz_sink, &length, &e);
  mgrid_plan_print_schedule(p, -1, fuzz_sink, &length, &e);
  mgrid_plan_print_json(p, -1, fuzz_sink, &length, &e);
  mgrid_plan_print_json(p, last, fuzz_sink, &length, &e);
  mgrid_plan_count(p, -1, &counts, &e);
  mgrid_plan_count(p, last, &counts, &e);
  mgrid_plan_check(p, &checked, &e);
  mgrid_plan_gpu_memory(p, -1, &memory, &e);
  mgrid_plan_resources(p, -1, NULL, &resources, &e);
  mgrid_plan_diff(p, p, last, &change, fuzz_sink, &length, &e);
  fuzz_check_error(&e, false);
  /* it is a plan */
  CHECK(e.status == MGRID_OK || e.status == MGRID_NO_MEMORY || e.status == MGRID_LIMIT);
}

void fuzz_ask_state(mgrid_runtime *rt, const mgrid_plan *p, int64_t rank) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_backend_dry(mgrid_plan_world(p), rank, &e);
  mgrid_state *s = mgrid_materialize(p, b, "fuzz", &e);
  int64_t proved;
  fuzz_check_error(&e, !s);
  mgrid_state_prove(s, &proved, &e);
  for (size_t i = 0; i < mgrid_plan_nfamilies(p) && s; i++) {
    const char *name = mgrid_plan_family_name(p, i);
    const mgrid_group *g = mgrid_state_group(s, name, &e);
    if (!g) continue;
    int64_t at = mgrid_group_position(g);
    CHECK(mgrid_group_at(g, at) == rank && mgrid_group_position_of(g, rank) == at);
    CHECK(mgrid_group_size(g) > at && mgrid_group_launch_order(g) >= 0);
  }
  fuzz_check_error(&e, false);
  if (rt && s) {
    static const char *const names[] = { "one", "two" };
    char text[64];
    size_t length;
    mgrid_error other = MGRID_ERROR_INIT;
    const mgrid_arg argument = mgrid_arg_integer("a", 1);
    for (int i = 0; i < 2; i++) {
      mgrid_policy *policy = mgrid_policy_new(rt, s, names[i], &other);
      mgrid_policy_call(policy, 0, NULL, &other);
      kind_of(policy, "a[0].b");
      mgrid_policy_free(policy);
      fuzz_check_error(&other, false);
      mgrid_error_clear(&other);
      ask_as(MGRID_IS_JSON, rt, s, names[i], 1, &argument, text, sizeof text, &length, &other);
      mgrid_runtime_group(rt, s, names[i], 0, NULL, &other);
      fuzz_check_error(&other, false);
      mgrid_error_clear(&other);
    }
  }
  mgrid_state_free(s);
  mgrid_backend_free(b);
}
