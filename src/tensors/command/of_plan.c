/* SPDX-License-Identifier: MIT
**
** of_plan.c - the tensors of a plan in the terminal: a line for each, and what each rank holds of one.
*/
#include "tensors/command/words.h"
#include "tensors/of_plan.h"

#include <inttypes.h>

/* Print the runs of an axis, "0..15 32..47"; only the first ones if there are many. */
static mgrid_status show_runs(const char *tensor, const mgrid_plan *p, int64_t rank, size_t axis, mgrid_error *err) {
  enum { SHOWN = 8 };
  mgrid_run runs[SHOWN];
  int64_t   n = mgrid_tensor_runs(p, tensor, rank, axis, SHOWN, runs, err);
  if (n == 0) printf(" none");
  for (int64_t i = 0; i < n && i < SHOWN; i++)
    printf(" %" PRId64 "..%" PRId64, runs[i].start, runs[i].start + runs[i].length - 1);
  if (n > SHOWN) printf(" ... (%" PRId64 " runs)", n);
  return n < 0 ? err->status : MGRID_OK;
}

static mgrid_status show_part(const char *tensor, const mgrid_plan *p, int64_t rank, mgrid_error *err) {
  mgrid_tensor_part   part = MGRID_TENSOR_PART_INIT;
  mgrid_status        s = mgrid_tensor_local(p, tensor, rank, &part, err);
  const mgrid_tensor *t = s ? NULL : mgrid_plan_tensor(p, tensor);
  if (!s && !part.held) printf("%9" PRId64 "  nothing\n", rank);
  if (s || !part.held) return s;
  printf("%9" PRId64 " %14" PRId64 " bytes, copy %" PRId64 ":", rank, part.bytes, part.copy);
  for (size_t i = 0; i < part.naxes && !s; i++) {
    printf("%s %s", i ? "," : "", mgrid_tensor_axis_name(t, i));
    s = show_runs(tensor, p, rank, i, err);
  }
  if (part.slice > 0)
    printf("; of these %" PRId64 " elements from %" PRId64 " on, at %" PRId64 " of a slice of %" PRId64, part.elements,
           part.first, part.offset, part.slice);
  printf("\n");
  return s;
}

mgrid_status cli_show_tensor(const cli *c, const mgrid_plan *p, int64_t rank, mgrid_error *err) {
  const char  *tensor = cli_added_text(c, "tensor");
  int64_t      first = rank >= 0 ? rank : 0, last = rank >= 0 ? rank : mgrid_plan_world(p) - 1;
  mgrid_status s = cli_all_ranks("a list of parts", last - first + 1, err);
  for (int64_t r = first; r <= last && !s; r++) s = show_part(tensor, p, r, err);
  return s;
}

/* Print a line for each tensor: bytes of the largest part, and of the whole; copies of each part; ranks that hold
** none. */
void cli_show_tensors(const cli *c, const mgrid_plan *p) {
  const char *on = c->bold ? "\033[1m" : "", *off = c->bold ? "\033[0m" : "";
  char        text[1024];
  int         wide = 16;
  for (size_t i = 0; i < mgrid_plan_ntensors(p); i++) wide = cli_wider(wide, mgrid_plan_tensor_name(p, i));
  if (mgrid_plan_ntensors(p) == 0) return;
  printf("\n%s%-*s %14s %14s %9s %9s  %s%s\n", on, wide, "tensor", "bytes", "of a rank", "copies", "without", "rule",
         off);
  for (size_t i = 0; i < mgrid_plan_ntensors(p); i++) {
    const char         *name = mgrid_plan_tensor_name(p, i);
    const mgrid_tensor *t = mgrid_plan_tensor(p, name);
    mgrid_text_ellipsis(text, sizeof text, mgrid_tensor_describe(t, text, sizeof text));
    printf("%-*s %14" PRId64 " %14" PRId64 " %9" PRId64 " %9" PRId64 "  %s\n", wide, name, t->bytes,
           mgrid_tensor_largest(t), t->copies, p->content.world - mgrid_tensor_holders(t) + mgrid_tensor_hollow(t),
           text);
  }
}
