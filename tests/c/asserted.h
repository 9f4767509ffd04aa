/* SPDX-License-Identifier: MIT
**
** asserted.h - grids and families that must be made, and calls that must be refused.
*/
#ifndef TEST_ASSERTED_H
#define TEST_ASSERTED_H

#include "program.h"

#include "moongrid.h"

/* The call, whose error goes to `why` of the file, fails with this status and message. */
#define REFUSED(call, want, text) \
  do { \
    anew(&why); \
    assert_false(call); \
    assert_int_equal(why.status, want); \
    assert_string_equal(why.message, text); \
  } while (0)

static inline mgrid_grid *grid_of(int64_t world, size_t n, const mgrid_dim *dims) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), n, dims, anew(&err));
  if (!g) fail_msg("%s", err.message);
  return g;
}

static inline mgrid_family *along(const mgrid_grid *g, const char *dim) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_family *f = mgrid_grid_along(g, 1, &dim, MGRID_AS_WRITTEN, anew(&err));
  if (!f) fail_msg("%s", err.message);
  return f;
}

#endif
