/* SPDX-License-Identifier: MIT
**
** ignored_options.c - the options that a backend does not support, so that nobody expects an effect; the notes of slices.
*/
#include "plan/plan.h"

#include <inttypes.h>

void mgrid_plan_unheeded(const mgrid_plan *p, const mgrid_descriptor *backend, mgrid_text *t) {
  for (const mgrid_option *row = mgrid_option_table; row->name; row++) {
    int64_t n = 0;
    for (size_t i = 0; i < p->content.nentries; i++) {
      const mgrid_choice *c = p->content.entry[i].choice;
      n += mgrid_choice_has(c, row) && !mgrid_backend_heeds(c->backend ? c->backend : backend, row->name);
    }
    if (n > 0) mgrid_text_add(t, "%s%s of %" PRId64 " famil%s", t->len ? ", " : "", row->name, n, n == 1 ? "y" : "ies");
  }
}

void mgrid_plan_notes(const mgrid_plan *p, bool listed, mgrid_text *out) {
  const mgrid_content *c = &p->content;
  for (size_t i = 0; i < c->nitems; i++)
    if (c->item[i].kind->notes) c->item[i].kind->notes(c->item[i].x, c->item[i].name, listed, out);
}
