/* SPDX-License-Identifier: MIT
**
** svg_groups.c - the groups of a family on a sheet: cells of one colour and pattern; where groups share ranks, arrows.
*/
#include "pictures/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
  TITLED = 256, /* groups of a family: of more, none has a title, */
  MANY = 256    /* and arrows are faint */
};

typedef struct spot { /* a cell with a group in it */
  int64_t group, rank;
  double  x, y;
} spot;

static int by_group(const void *a, const void *b) {
  const spot *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_rank(const void *a, const void *b) {
  const spot *x = a, *y = b;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

/* All cells of the sheet that have ranks, with their first groups, -1 for none. */
static spot *spots_of(const mgrid_svg_sheet *v, const mgrid_family *f, int64_t *found) {
  spot   *all = malloc((size_t)(v->sheet->cells + 1) * sizeof *all);
  int64_t n = 0, position;
  for (int i = 0; i < v->sheet->nparts && all; i++)
    for (int64_t cell = 0; cell < v->sheet->part[i].cells; cell++) {
      spot *s = &all[n];
      s->rank = mgrid_part_rank(&v->sheet->part[i], cell);
      if (s->rank < 0) continue;
      n++;
      if (!mgrid_family_locate(f, s->rank, 0, &s->group, &position)) s->group = -1;
      mgrid_svg_cell_at(v, i, cell, &s->x, &s->y);
    }
  *found = n;
  return all;
}

static const mgrid_machine_model *machine_of(const mgrid_svg_sheet *v) { return v->sheet->part[0].machine; }

/* The attribute of a path around cells. */
static void put_outline(const mgrid_svg_sheet *v, const spot *s, int64_t n, mgrid_text *t) {
  double w = v->part[0].cell_width - 1.5, h = v->part[0].cell_height - 1.5;
  mgrid_text_str(t, "d=\"");
  for (int64_t i = 0; i < n; i++)
    mgrid_text_add(t, "M%.1f,%.1fh%.1fv%.1fh%.1fz", s[i].x + 0.75, s[i].y + 0.75, w, h, -w);
  mgrid_text_str(t, "\"");
}

static void put_cells(const mgrid_svg_sheet *v, const char *look, const spot *s, int64_t n, mgrid_text *t) {
  mgrid_text_add(t, "<path %s ", look);
  put_outline(v, s, n, t);
  mgrid_text_str(t, "/>\n");
}

/* ---------------------------------------------------------------------- colours */

static void put_group(const mgrid_svg_sheet *v, const mgrid_entry *e, const char *class, const spot *s, int64_t n,
                      mgrid_text *t) {
  const mgrid_machine_model *m = machine_of(v);
  int                        reach = m ? mgrid_group_reach(m, e->family, s->group) : 1;
  mgrid_text_add(t, "<path %s", class);
  if (reach)
    mgrid_svg_fill(t, s->group);
  else
    mgrid_text_str(t, "fill=\"#e4e7ec\" ");
  if (reach > 1) mgrid_text_str(t, "stroke=\"#b00020\" stroke-width=\"2\" ");
  put_outline(v, s, n, t);
  if (e->family->count <= TITLED) {
    mgrid_text_add(t, "><title>%s %" PRId64 ": ", e->name, s->group);
    cli_put_group(t, e->family, s->group, 120);
    mgrid_text_str(t, "</title></path>\n");
  } else {
    mgrid_text_str(t, "/>\n");
  }
}

static void put_groups(const mgrid_svg_sheet *v, const mgrid_entry *e, int64_t rank, spot *all, int64_t n,
                       mgrid_text *t) {
  int64_t own = -1, position;
  if (rank >= 0 && !mgrid_family_locate(e->family, rank, 0, &own, &position)) own = -1;
  qsort(all, (size_t)n, sizeof *all, by_group);
  for (int64_t i = 0, end; i < n; i = end) {
    int64_t group = all[i].group;
    for (end = i; end < n && all[end].group == group;) end++;
    if (group < 0) {
      put_cells(v, "class=\"idle\"", all + i, end - i, t);
    } else if (group == own) { /* raised: a shadow, and a dark edge */
      put_cells(v, "class=\"shadow\" transform=\"translate(2.5,2.5)\"", all + i, end - i, t);
      put_group(v, e, "class=\"raised\" ", all + i, end - i, t);
    } else {
      put_group(v, e, rank >= 0 ? "class=\"back\" " : "", all + i, end - i, t);
    }
  }
}

/* ---------------------------------------------------------------------- arrows */

static const spot *find(const spot *all, int64_t n, int64_t rank) {
  spot wanted = { .rank = rank };
  return bsearch(&wanted, all, (size_t)n, sizeof *all, by_rank);
}

/* A bent arrow from one cell to another. It keeps to the left of its way, beside the numbers, so that arrows there
** and back do not cover each other. */
static void put_arrow(const mgrid_svg_sheet *v, const spot *a, const spot *b, const char *class, const char *colour,
                      mgrid_text *t) {
  double w = v->part[0].cell_width, h = v->part[0].cell_height;
  double dx = b->x - a->x, dy = b->y - a->y, length = sqrt(dx * dx + dy * dy);
  if (length < 1) return;
  double nx = dy / length, ny = -dx / length; /* across the way */
  double x0 = a->x + w / 2 + nx * w * 0.33, y0 = a->y + h / 2 + ny * h * 0.34;
  double x1 = b->x + w / 2 + nx * w * 0.33, y1 = b->y + h / 2 + ny * h * 0.34;
  double bend = 3 + 0.08 * length, cx = (x0 + x1) / 2 + nx * bend, cy = (y0 + y1) / 2 + ny * bend;
  double ux = x1 - cx, uy = y1 - cy, u = sqrt(ux * ux + uy * uy); /* where it comes in */
  ux /= u, uy /= u;
  mgrid_text_add(t, "<path class=\"%s\" stroke=\"%s\" fill=\"none\" d=\"M%.1f,%.1fQ%.1f,%.1f %.1f,%.1f\"/>\n", class,
                 colour, x0, y0, cx, cy, x1 - ux * 5, y1 - uy * 5);
  mgrid_text_add(t, "<path class=\"%s\" fill=\"%s\" d=\"M%.1f,%.1fL%.1f,%.1fL%.1f,%.1fz\"/>\n", class, colour, x1, y1,
                 x1 - ux * 7 - uy * 3.5, y1 - uy * 7 + ux * 3.5, x1 - ux * 7 + uy * 3.5, y1 - uy * 7 - ux * 3.5);
}

/* Does an arrow go past several cells? */
static bool is_far(const mgrid_svg_sheet *v, const spot *a, const spot *b) {
  return fabs(a->x - b->x) > 4 * v->part[0].cell_width || fabs(a->y - b->y) > 4 * v->part[0].cell_height;
}

/* Is a rank in that group of a family? */
static bool is_in(const mgrid_family *f, int64_t rank, int64_t group) {
  int64_t at, position;
  for (int64_t nth = 0; rank >= 0 && mgrid_family_locate(f, rank, nth, &at, &position); nth++)
    if (at == group) return true;
  return false;
}

static void put_cover(const mgrid_svg_sheet *v, const mgrid_entry *e, int64_t rank, spot *all, int64_t n,
                      mgrid_text *t) {
  const mgrid_family *f = e->family;
  int64_t             group, position;
  const char         *usual = rank >= 0 || f->count > MANY ? "arrow back" : "arrow";
  put_cells(v, "fill=\"#e4e7ec\"", all, n, t);
  qsort(all, (size_t)n, sizeof *all, by_rank);
  for (int64_t i = 0; i < n && !t->failed; i++)
    for (int64_t nth = 0; mgrid_family_locate(f, all[i].rank, nth, &group, &position); nth++) {
      const spot *next = find(all, n, mgrid_family_rank(f, group, position + 1)); /* none of the last one */
      if (!next) continue;
      const char *class = is_in(f, rank, group) ? "arrow own" : is_far(v, &all[i], next) ? "arrow back" : usual;
      bool inside = machine_of(v) && mgrid_reach(machine_of(v), all[i].rank, next->rank) == 0;
      put_arrow(v, &all[i], next, class, inside ? "#8a93a0" : mgrid_svg_ink(group), t);
    }
}

/* ------------------------------------------------------------------------- all */

void mgrid_svg_groups(const mgrid_svg_sheet *v, const mgrid_entry *e, int64_t rank, mgrid_text *t) {
  int64_t n = 0;
  spot   *all = spots_of(v, e->family, &n);
  if (!all) {
    t->failed = true;
    return;
  }
  (e->family->overlapping ? put_cover : put_groups)(v, e, rank, all, n, t);
  for (int64_t i = 0; i < n && rank >= 0; i++) /* a thick frame around the rank */
    if (all[i].rank == rank) put_cells(v, "class=\"chosen\"", &all[i], 1, t);
  free(all);
}
