/* SPDX-License-Identifier: MIT
**
** item_reader.c - the machine and the traffic in the text of a saved plan.
*/
#include "machine/item.h"
#include "machine/traffic.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
  mgrid_machine_item *item;
  mgrid_traffic      *traffic;
} reader;

static void *begin(size_t lines, mgrid_error *err) {
  reader *r = calloc(1, sizeof *r);
  (void)lines;
  return r ? r : mgrid_null_oom(err);
}

static void read_machine(reader *r, int64_t world, mgrid_scan *s) {
  mgrid_machine_model *m = mgrid_machine_read_line(s);
  if (!m) return;
  if (mgrid_machine_fits(m, world, s->err) || !(r->item = mgrid_machine_item_new(m, world, s->err))) mgrid_scan_fail(s);
  mgrid_machine_free(m);
}

static void read_traffic(reader *r, int64_t world, mgrid_scan *s) {
  char *copy = strndup(s->at, (size_t)(s->end - s->at));
  if (!copy) mgrid_oom(s->err);
  r->traffic = copy ? mgrid_traffic_new(world, s->err) : NULL;
  if (!r->traffic || mgrid_traffic_parse(r->traffic, copy, s->err)) mgrid_scan_fail(s);
  s->at = s->end;
  free(copy);
}

static void line(void *all, const char *name, int64_t world, mgrid_scan *s) {
  reader *r = all;
  if (name && strcmp(name, MGRID_MACHINE_NAME) == 0 && !r->item)
    read_machine(r, world, s);
  else if (name && strcmp(name, MGRID_TRAFFIC_NAME) == 0 && !r->traffic)
    read_traffic(r, world, s);
  else
    mgrid_scan_fault(s, "one machine of the name 'machine', or 'traffic'");
}

static mgrid_status end(void *all, mgrid_topology *t, mgrid_error *err) {
  reader      *r = all;
  mgrid_status s = MGRID_OK;
  if (r->item) s = mgrid_topology_put_item(t, MGRID_MACHINE_NAME, &mgrid_machine_kind, r->item, err);
  if (r->traffic && !s) s = mgrid_topology_put_item(t, MGRID_TRAFFIC_NAME, &mgrid_traffic_kind, r->traffic, err);
  return s;
}

static void free_reader(void *all) {
  reader *r = all;
  if (r->item) mgrid_machine_kind.free(r->item);
  mgrid_traffic_free(r->traffic);
  free(r);
}

extern const mgrid_item_reader mgrid_item_reader_machine;
const mgrid_item_reader        mgrid_item_reader_machine = { "machine", NULL, begin, line, end, free_reader };
