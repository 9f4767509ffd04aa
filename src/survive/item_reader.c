/* SPDX-License-Identifier: MIT
**
** item_reader.c - the spares in the text of a saved plan.
*/
#include "survive/next.h"

#include <stdlib.h>

typedef struct reader {
  mgrid_family *f;
} reader;

static void *begin(size_t lines, mgrid_error *err) {
  reader *r = calloc(1, sizeof *r);
  (void)lines;
  return r ? r : mgrid_null_oom(err);
}

static void line(void *all, const char *name, int64_t world, mgrid_scan *s) {
  reader *r = all;
  if (!name || strcmp(name, MGRID_SPARES_NAME) != 0 || r->f)
    mgrid_scan_fault(s, "one line of spares");
  else if ((r->f = mgrid_family_read(s, world)) && (r->f->count != 1 || r->f->total >= world))
    mgrid_scan_fault(s, "one group of spares, and other ranks");
  else if (r->f && !mgrid_spend(s->budget, r->f->total)) /* they become a list */
    mgrid_scan_fail(s);
}

static mgrid_status end(void *all, mgrid_topology *t, mgrid_error *err) {
  reader *r = all;
  if (!r->f) return MGRID_OK;
  int32_t *ranks = malloc((size_t)r->f->total * sizeof *ranks);
  if (ranks) mgrid_family_group(r->f, 0, ranks);
  mgrid_spares *x = mgrid_spares_new(t->content.world, r->f->total, ranks, err);
  mgrid_status  s = x ? mgrid_spares_check(x, &t->content, err) : err->status;
  if (!s) s = mgrid_topology_put_item(t, MGRID_SPARES_NAME, &mgrid_spares_kind, x, err);
  if (x) mgrid_spares_kind.free(x);
  return s;
}

static void free_reader(void *all) {
  reader *r = all;
  mgrid_family_free(r->f);
  free(r);
}

extern const mgrid_item_reader mgrid_item_reader_survive;
const mgrid_item_reader        mgrid_item_reader_survive = { "spares", NULL, begin, line, end, free_reader };
