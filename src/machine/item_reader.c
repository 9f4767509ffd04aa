/* SPDX-License-Identifier: MIT
**
** item_reader.c - the machine and the traffic of a saved plan. Their texts are those that a user writes.
*/
#include "machine/item.h"
#include "machine/traffic.h"
#include "plan/topology.h"

#include <string.h>

static void read_machine(const char *text, mgrid_topology *t, mgrid_fields *all) {
  const int64_t        world = t->content.world;
  mgrid_machine_model *m = mgrid_machine_words(text, "machine", all->budget, all->err);
  mgrid_machine_item  *x = NULL;
  if (m && !mgrid_machine_fits(m, world, all->err)) x = mgrid_machine_item_new(m, world, all->err);
  if (x) mgrid_topology_put_item(t, MGRID_MACHINE_NAME, &mgrid_machine_kind, x, all->err);
  if (x) mgrid_machine_kind.free(x);
  mgrid_machine_free(m);
}

static void read_traffic(const char *text, mgrid_topology *t, mgrid_error *err) {
  mgrid_traffic *x = mgrid_traffic_new(t->content.world, err);
  if (x && !mgrid_traffic_parse(x, text, err))
    mgrid_topology_put_item(t, MGRID_TRAFFIC_NAME, &mgrid_traffic_kind, x, err);
  mgrid_traffic_free(x);
}

static void read_item(const mgrid_field *s, const char *name, mgrid_topology *t) {
  const mgrid_field word = mgrid_field_of(s, "machine"), field = mgrid_field_of(s, "text");
  const char       *text = mgrid_field_text(&field);
  if (s->all->failed) return;
  if (strcmp(name, MGRID_MACHINE_NAME) == 0)
    read_machine(text, t, s->all);
  else if (strcmp(name, MGRID_TRAFFIC_NAME) == 0)
    read_traffic(text, t, s->all->err);
  else
    mgrid_field_fault(&word, "'machine' or 'traffic'");
  if (s->all->err->status || s->all->budget->exhausted) mgrid_field_fail(&field);
}

extern const mgrid_item_reader mgrid_item_reader_machine;
const mgrid_item_reader        mgrid_item_reader_machine = { "machine", "machine text", read_item };
