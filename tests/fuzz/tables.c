/* SPDX-License-Identifier: MIT
**
** tables.c - fuzz target: files of parameters and of machines (a table of devices and how they are
** linked) as JSON, YAML and Lua. The first byte says which format, the second which recipe reads
** it.
*/
#include "base/base.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const ends[] = { ".json", ".yaml", ".table.lua" };
  static const char *const recipes[] = { "deepspeed", "jax_mesh", "megatron", "deepspeed_moe" };
  static mgrid_runtime *runtime[4];
  bytes b = { data, data + size };
  const char *end = ends[below(&b, 3)];
  size_t which = below(&b, 5), fails = byte(&b);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_limits limits = MGRID_LIMITS_INIT;
  char arg[160];
  bool machine = which == 4; /* the file of a parameter, not of all parameters */
  const char *path = fuzz_file(end, b.at, (size_t)(b.end - b.at));
  if (machine) which = 1;
  limits.instructions = 1000000, limits.seconds = 2, limits.memory = 16 << 20;
  if (!runtime[which]) {
    runtime[which] = mgrid_runtime_new(&limits, NULL, NULL);
    CHECK(mgrid_runtime_load(runtime[which], recipes[which], NULL, 0, NULL) == MGRID_OK);
  }
  snprintf(arg, sizeof arg, "devices=%s", path);
  const char *args[] = { arg };
  const double began = mgrid_processor_now();
  until_failure = fails ? (long)fails * 4 : -1;
  mgrid_plan *p = mgrid_runtime_plan(runtime[which], 8, machine ? NULL : path, machine, args, &e);
  until_failure = -1;
  CHECK(mgrid_processor_now() - began < 10); /* 2 s of the limit, under sanitizers */
  fuzz_check_error(&e, !p);
  if (p) fuzz_ask_plan(p);
  mgrid_plan_free(p);
  return 0;
}
