/* SPDX-License-Identifier: MIT
**
** survive_item.c - reads the spares of a saved plan.
*/
#include "survive/next.h"

#include <stdlib.h>

static void read_spares(const mgrid_field *s, const char *name, mgrid_topology *t) {
  const mgrid_field word = mgrid_field_of(s, "spares"), rule = mgrid_field_of(s, "rule");
  mgrid_error *err = s->all->err;
  mgrid_family *f = mgrid_family_read(&rule, t->content.world);
  mgrid_spares *x = NULL;
  if (strcmp(name, MGRID_SPARES_NAME) != 0) mgrid_field_fault(&word, "'spares'");
  if (f && (f->count != 1 || f->total >= t->content.world))
    mgrid_field_fault(&rule, "one group of spares, and other ranks");
  if (f && mgrid_field_spend(s, f->total)) { /* the ranks become a list */
    int32_t *ranks = malloc((size_t)f->total * sizeof *ranks);
    if (ranks) mgrid_family_group(f, 0, ranks);
    x = mgrid_spares_new(t->content.world, f->total, ranks, err);
  }
  if (x && !mgrid_spares_check(x, &t->content, err))
    mgrid_topology_put_item(t, name, &mgrid_spares_kind, x, err);
  if (err->status) mgrid_field_fail(s);
  if (x) mgrid_spares_kind.free(x);
  mgrid_family_free(f);
}

extern const mgrid_item_reader mgrid_item_reader_survive;
const mgrid_item_reader mgrid_item_reader_survive = { "spares", "spares rule", read_spares };
