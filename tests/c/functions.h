/* SPDX-License-Identifier: MIT
**
** functions.h - functions of a host, and recipes that call them, for the tests of both.
*/
#ifndef TESTS_FUNCTIONS_H
#define TESTS_FUNCTIONS_H

#include "program.h"

#include "moongrid.h"

/* ------------------------------------------------------------- functions of a host */

static mgrid_status rack_of(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                            mgrid_error *err) {
  (void)err;
  if (n != 1 || args[0].kind != MGRID_IS_INTEGER) return MGRID_BAD_VALUE;
  *result = mgrid_arg_integer(NULL, args[0].as.integer / *(int64_t *)ud);
  return MGRID_OK;
}

/* Return its first argument. */
static mgrid_status echo(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                         mgrid_error *err) {
  (void)ud, (void)err;
  if (n > 0) *result = args[0];
  return MGRID_OK;
}

/* ------------------------------------------------------------------------- helpers */

#define BUILD(lines) "return recipe { build = function(world, p)\n" lines "\nend }"

static const char by_rack[] = BUILD("  local racks = {}\n"
                                    "  for rank = 0, world.size - 1 do\n"
                                    "    local rack = rack_of(rank) + 1\n"
                                    "    racks[rack] = racks[rack] or {}\n"
                                    "    table.insert(racks[rack], rank)\n"
                                    "  end\n"
                                    "  local t = topology(world)\n"
                                    "  t.rack = world:table(racks)\n"
                                    "  return t");

static mgrid_runtime *with(const mgrid_function *f, const char *text, mgrid_error *e) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, e);
  if (f) mgrid_runtime_function(rt, f, e);
  if (!e->status) mgrid_runtime_load(rt, "r", text, strlen(text), e);
  return rt;
}

static int put_text(void *ud, const char *text, size_t len) {
  strncat(ud, text, len);
  return 0;
}

static mgrid_plan *plan_of(const mgrid_function *f, const char *text, mgrid_error *e) {
  mgrid_runtime *rt = with(f, text, e);
  mgrid_plan *p = e->status ? NULL : mgrid_runtime_plan(rt, 8, NULL, 0, NULL, e);
  mgrid_runtime_free(rt);
  return p;
}

static int64_t four = 4;

#endif
