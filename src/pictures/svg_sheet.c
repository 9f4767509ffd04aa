/* SPDX-License-Identifier: MIT
**
** svg_sheet.c - a sheet in an SVG: its parts in a row, labels and boxes around tiles, and the numbers of ranks.
*/
#include "pictures/svg.h"

#include <inttypes.h>
#include <string.h>

enum { PARTS_GAP = 28, PART_HEAD = 18 };

void mgrid_svg_sheet_lay(mgrid_svg_sheet *v, const mgrid_sheet *sheet) {
  double right = 0;
  *v = (mgrid_svg_sheet){ .sheet = sheet, .top = sheet->nparts > 1 ? PART_HEAD : 0 };
  for (int i = 0; i < sheet->nparts; i++) {
    mgrid_layout_make(&v->part[i], &sheet->part[i], sheet->cells);
    v->left[i] = right;
    right += v->part[i].width + PARTS_GAP;
    if (v->part[i].height > v->height) v->height = v->part[i].height;
  }
  v->width = right - PARTS_GAP;
  v->height += v->top;
}

static void index_of(const mgrid_part *p, int64_t cell, int64_t *index) {
  for (int k = 0; k < p->n; k++) {
    index[k] = cell % p->level[k].shown;
    cell /= p->level[k].shown;
  }
}

void mgrid_svg_cell_at(const mgrid_svg_sheet *v, int i, int64_t cell, double *x, double *y) {
  int64_t index[MGRID_TIERS_MAX];
  index_of(v->part[i].part, cell, index);
  mgrid_layout_at(&v->part[i], 0, index, x, y);
  *x += v->left[i], *y += v->top;
}

static void put_named(mgrid_text *t, double x, double y, const char *class, const char *name, int64_t n) {
  char text[MGRID_NAME_MAX + 32];
  snprintf(text, sizeof text, *name ? "%s %" PRId64 : "%s%" PRId64, name, n);
  mgrid_svg_text(t, x, y, class, text);
}

/* Write labels and frames of the tile and boxes that start at `cell`, the outer ones first. */
static void put_frames(const mgrid_svg_sheet *v, int i, int64_t cell, mgrid_text *t) {
  const mgrid_layout *l = &v->part[i];
  const mgrid_part   *p = l->part;
  int64_t             index[MGRID_TIERS_MAX], inside = p->cells;
  index_of(p, cell, index);
  for (int k = p->n - 1; k >= 0; k--) {
    const mgrid_tier  *tier = &p->level[k];
    const mgrid_frame *f = &l->frame[k];
    int64_t            coord = mgrid_tier_coord(tier, index[k]);
    double             x, y;
    inside /= tier->shown; /* cells of an entry of this level */
    if (cell % inside != 0) continue;
    mgrid_layout_at(l, k, index, &x, &y);
    x += v->left[i], y += v->top;
    if (k >= l->tile && k > 0) {
      double gap = mgrid_layout_gap(l, k);
      mgrid_text_add(t, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" class=\"box\"/>\n", x, y,
                     f->dx - gap, f->dy - gap);
      put_named(t, x + 6, y + 12, "tile", tier->name, coord);
    } else if (k == 1 || (f->per < tier->shown && index[0] % f->per == 0)) {
      put_named(t, x - 5, y + l->cell_height / 2 + 3, "row", tier->name, coord);
    } else if (k == 0 && f->per == tier->shown && (l->tile == 1 || index[1] == 0)) {
      bool named = l->font * 0.55 * ((double)strlen(tier->name) + 3) < l->cell_width;
      put_named(t, x + l->cell_width / 2, y - 4, "column", named ? tier->name : "", coord);
    }
  }
}

static void put_numbers(const mgrid_svg_sheet *v, int i, mgrid_text *t) {
  const mgrid_layout *l = &v->part[i];
  for (int64_t cell = 0; cell < l->part->cells; cell++) {
    double x, y;
    if (mgrid_part_rank(l->part, cell) < 0) continue;
    mgrid_svg_cell_at(v, i, cell, &x, &y);
    mgrid_text_add(t, "<text x=\"%.1f\" y=\"%.1f\">%" PRId64 "</text>\n", x + l->cell_width / 2,
                   y + l->cell_height / 2 + l->font * 0.36, mgrid_part_rank(l->part, cell));
  }
}

void mgrid_svg_sheet_put(const mgrid_svg_sheet *v, size_t number, mgrid_text *t) {
  const mgrid_sheet *sheet = v->sheet;
  mgrid_text_add(t, "<g id=\"frames%zu\">\n", number);
  for (int i = 0; i < sheet->nparts; i++) {
    if (sheet->nparts > 1) mgrid_svg_text(t, v->left[i], 11, "part", sheet->part[i].name);
    for (int64_t cell = 0; cell < sheet->part[i].cells; cell++) put_frames(v, i, cell, t);
  }
  mgrid_text_add(t, "</g>\n<g id=\"ranks%zu\" class=\"rank\" font-size=\"%g\">\n", number, v->part[0].font);
  for (int i = 0; i < sheet->nparts; i++) put_numbers(v, i, t);
  mgrid_text_str(t, "</g>\n");
}
