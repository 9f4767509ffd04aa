/* SPDX-License-Identifier: MIT
**
** slice.c - what losses add to the command: the spares in the overview of a plan.
*/
#include "command/slice.h"
#include "survive/next.h"

#include <inttypes.h>

/* The ranks that are in no family, for later. */
static void overview(const cli *c, const mgrid_plan *p) {
  enum { SHOWN = 16 };
  mgrid_text t = { 0 };
  int64_t    n = mgrid_plan_nspares(p);
  if (n == 0) return;
  mgrid_text_add(&t, "%" PRId64 " rank%s in no family, to take the place of a lost one:", n, mgrid_s_of(n));
  for (int64_t i = 0; i < n && i < SHOWN; i++) mgrid_text_add(&t, "%s %" PRId64, i ? "," : "", mgrid_plan_spare(p, i));
  if (n > SHOWN) mgrid_text_str(&t, ", ...");
  printf("\n");
  cli_wrap(c, "spares", &t);
}

extern const cli_slice cli_slice_survive;
const cli_slice        cli_slice_survive = { .overview = overview };
