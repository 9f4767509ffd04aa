/* SPDX-License-Identifier: MIT
**
** throws.cc - a C++ host whose functions, hooks and sinks throw: each call fails with its message, and the next one works.
*/
#include <moongrid_cpp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

static int  calls;
static bool throws;

static mgrid_status rack_of(void *, size_t, const mgrid_arg *, mgrid_arg *result, mgrid_error *) {
  if (calls++ == 0) throw std::runtime_error("no rack");
  *result = mgrid_arg_integer(nullptr, 1);
  return MGRID_OK;
}

static void *allocate(void *, void *block, size_t, size_t bytes) {
  if (throws) throw std::bad_alloc();
  if (bytes) return std::realloc(block, bytes);
  std::free(block);
  return nullptr;
}

static void    write_line(void *, mgrid_level, const char *) { throw std::runtime_error("the log is full"); }
static int     sink(void *, const char *, size_t) { throw 5; }
static int64_t choose(void *, int64_t, int64_t *, int64_t, mgrid_error *) {
  throw std::logic_error("nothing to choose");
}

static const char recipe[] = "return recipe { build = function(world)\n"
                             "  local x = rack_of(1) print(x)\n"
                             "  local t = topology(world) t.a = grid(world, 'a', { a = fill }) 'a' return t end }";

static mgrid_error *anew(mgrid_error *e) {
  mgrid_error_clear(e);
  return e;
}

int main() {
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_function f = mgrid_function_of("rack_of", "1", MGRID_CAUGHT(rack_of), nullptr);
  mgrid_hooks    h = MGRID_HOOKS_INIT;
  h.log = MGRID_CAUGHT(write_line), h.allocate = MGRID_CAUGHT(allocate);
  mgrid_runtime *rt = mgrid_runtime_new(nullptr, &h, &e);
  mgrid_runtime_function(rt, &f, &e);
  mgrid_runtime_load(rt, "layout", recipe, sizeof recipe - 1, &e);
  for (int i = 0; i < 3; i++) { /* the function throws, the allocator, the log alone */
    throws = i == 1;
    mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, nullptr, anew(&e));
    throws = false;
    std::printf("%s\n", p ? "a plan" : e.message);
    if (p) {
      mgrid_plan_print(p, MGRID_CAUGHT(sink), nullptr, &e);
      std::printf("%s\n", e.message);
      mgrid_family_pick_by(mgrid_plan_family(p, "a"), MGRID_CAUGHT(choose), nullptr, anew(&e));
      std::printf("%s\n", e.message);
    }
    mgrid_plan_free(p);
  }
  mgrid_runtime_describe(rt, false, MGRID_CAUGHT(sink), nullptr, anew(&e));
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, nullptr, anew(&e));
  std::printf("%s\n", p ? "another plan" : e.message);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return 0;
}
