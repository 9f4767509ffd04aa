/* SPDX-License-Identifier: MIT
**
** recipe.c - fuzz target: the text of a recipe, loaded, described, planned at three sizes, asked
** and called. The first byte says how often garbage is collected, whether an allocation fails, and
** the sizes.
*/
#include "fuzz.h"

#include "recipe/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int64_t worlds[] = { 8, 1, 12, 64 };
  bytes b = { data, data + size };
  mgrid_limits limits = MGRID_LIMITS_INIT;
  uint8_t how = byte(&b);
  size_t length = 0;
  mgrid_error e = MGRID_ERROR_INIT;
  limits.memory = 8 << 20, limits.instructions = 300000, limits.seconds = 0.3,
  limits.call_seconds = 0.1;
  /* each allocation looks at all that there is */
  if (how & 16) limits.memory = 2 << 20, limits.instructions = 50000;
  if (how & 32) until_failure = byte(&b) * 8 + byte(&b) % 8;
  mgrid_runtime *rt = mgrid_runtime_new(&limits, NULL, &e);
  if (rt && how & 16) lua_gc(rt->L, LUA_GCINC, 1, 1000, 5);
  mgrid_status s =
      mgrid_runtime_load(rt, fuzz_file(".lua", b.at, (size_t)(b.end - b.at)), NULL, 0, &e);
  fuzz_check_error(&e, s != MGRID_OK);
  if (!s) s = mgrid_runtime_describe(rt, false, fuzz_sink, &length, &e);
  if (!s) s = mgrid_runtime_describe(rt, true, fuzz_sink, &length, &e);
  fuzz_check_error(&e, s != MGRID_OK);
  mgrid_plan *p = s ? NULL : mgrid_runtime_plan(rt, worlds[how & 3], NULL, 0, NULL, &e);
  fuzz_check_error(&e, !s && !p);
  if (p) {
    fuzz_ask_plan(p);
    fuzz_ask_state(rt, p, mgrid_plan_world(p) - 1);
  }
  mgrid_plan_free(p);
  until_failure = -1;
  mgrid_runtime_free(rt);
  return 0;
}
