/* SPDX-License-Identifier: MIT
**
** on_machine.c - ranks drawn where they run: a sheet whose levels are those of a machine, so that a domain is a box.
*/
#include "pictures/draw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 24 }; /* cells of the sheet, with those of places that have no rank */

/* The levels of a machine, without those that cross others. */
static size_t levels_of(const mgrid_machine_model *m) {
  mgrid_machine_level l = MGRID_MACHINE_LEVEL_INIT;
  size_t              n = 0;
  while (n < mgrid_machine_nlevels(m) && !mgrid_machine_describe_level(m, n, &l, NULL) && !l.crosses) n++;
  return n;
}

/* Append to the position of each rank its domain's index in that of the level before; *size: how many indices there are.
** False: it lacks memory. */
static bool add_level(const mgrid_machine_model *m, size_t level, int64_t world, int64_t *position, int64_t *size) {
  int64_t most = 0;
  *size = 1;
  for (int64_t r = 0; r < world && level > 0; r++) {
    int64_t parent = mgrid_machine_domain(m, level - 1, r);
    if (parent > most) most = parent;
  }
  int64_t *first = malloc((size_t)(most + 1) * sizeof *first); /* the lowest domain in each of the level before */
  if (!first) return false;
  for (int64_t p = 0; p <= most; p++) first[p] = INT64_MAX;
  for (int pass = 0; pass < 3; pass++)
    for (int64_t r = 0; r < world; r++) {
      int64_t domain = mgrid_machine_domain(m, level, r), parent = level ? mgrid_machine_domain(m, level - 1, r) : 0;
      if (pass == 0 && domain < first[parent]) first[parent] = domain;
      if (pass == 1 && domain - first[parent] >= *size) *size = domain - first[parent] + 1;
      if (pass == 2) position[r] = position[r] * *size + domain - first[parent];
    }
  free(first);
  return true;
}

/* Make the part from the positions of the ranks, and the sizes of the levels, the farthest first. */
static mgrid_status make_part(mgrid_part *p, const mgrid_machine_model *m, int64_t world, size_t n, const int64_t *size,
                              const int64_t *position, mgrid_error *err) {
  mgrid_dim dims[MGRID_TIERS_MAX];
  int64_t   stride = 1;
  *p = (mgrid_part){ .name = "", .cells = 1, .machine = m };
  for (size_t i = n; i-- > 0;) {
    mgrid_machine_level l = MGRID_MACHINE_LEVEL_INIT;
    if (size[i] == 1) continue;
    mgrid_machine_describe_level(m, i, &l, NULL);
    p->level[p->n] = (mgrid_tier){ l.name, size[i], stride, size[i], 0 };
    dims[p->n++] = (mgrid_dim){ l.name, size[i] };
    stride *= size[i];
  }
  p->cells = stride;
  if (p->n == 0) p->level[p->n] = (mgrid_tier){ "rank", 1, 1, 1, 0 }, dims[p->n++] = (mgrid_dim){ "rank", 1 };
  p->grid = mgrid_grid_new(mgrid_world(stride), (size_t)p->n, dims, err);
  p->rank_at = malloc((size_t)stride * sizeof *p->rank_at);
  if (!p->grid || !p->rank_at) return err->status ? err->status : mgrid_oom(err);
  for (int64_t i = 0; i < stride; i++) p->rank_at[i] = -1;
  for (int64_t r = 0; r < world; r++) p->rank_at[position[r]] = r;
  return MGRID_OK;
}

mgrid_status mgrid_sheet_of_machine(mgrid_sheet *s, const mgrid_machine_model *m, int64_t world, mgrid_error *err) {
  int64_t  size[MGRID_TIERS_MAX], cells = 1;
  int64_t *position = calloc((size_t)world, sizeof *position);
  size_t   n = levels_of(m);
  bool     whole = position != NULL;
  memset(s, 0, sizeof *s);
  for (size_t i = 0; i < n && whole && cells <= MOST; i++) {
    whole = add_level(m, i, world, position, &size[i]);
    if (whole) cells *= size[i];
  }
  mgrid_error  why = MGRID_ERROR_INIT;
  mgrid_status status = !whole         ? mgrid_oom(&why)
                        : cells > MOST ? mgrid_fail(&why, MGRID_LIMIT,
                                                    "the machine has too many places to draw; a smaller world would do")
                                       : make_part(&s->part[0], m, world, n, size, position, &why);
  s->nparts = 1;
  s->cells = s->part[0].cells;
  free(position);
  return status ? mgrid_error_pass(err, &why) : MGRID_OK;
}

int mgrid_reach(const mgrid_machine_model *m, int64_t a, int64_t b) {
  int far = (int)levels_of(m) - 1;
  for (int l = 0; l < far; l++)
    if (mgrid_machine_domain(m, (size_t)l, a) != mgrid_machine_domain(m, (size_t)l, b)) return far - l;
  return 0;
}

int mgrid_group_reach(const mgrid_machine_model *m, const mgrid_family *f, int64_t group) {
  int most = 0;
  for (int64_t k = 1; k < mgrid_family_size(f, group); k++) {
    int one = mgrid_reach(m, mgrid_family_rank(f, group, 0), mgrid_family_rank(f, group, k));
    if (one > most) most = one;
  }
  return most;
}

void mgrid_reach_text(const mgrid_machine_model *m, const mgrid_family *f, mgrid_text *t) {
  size_t n = levels_of(m);
  for (size_t i = n - 1; i-- > 0;) {
    mgrid_machine_level  l = MGRID_MACHINE_LEVEL_INIT;
    mgrid_machine_counts c = MGRID_MACHINE_COUNTS_INIT;
    mgrid_machine_describe_level(m, i, &l, NULL);
    if (mgrid_machine_count(m, f, l.name, &c, NULL)) continue;
    mgrid_text_add(t, "%s%" PRId64 " cross%s a %s", i + 2 == n ? "; " : ", ", c.crossing, c.crossing == 1 ? "es" : "",
                   l.name);
  }
}
