/* SPDX-License-Identifier: MIT
**
** layout.c - place the cells of a part in an SVG. Rows and columns make tiles; tiles go beside or below each other, whichever
** keeps the picture nearer to the shape of a page.
*/
#include "pictures/svg.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double shape = 1.5; /* width to height: a page in landscape */
enum { SHORT = 12, ROW = 32, COLUMN = 48, TITLE = 15, PAD = 5 };

/* Return how far a block is from the wanted shape, 0 or more. */
static double off_shape(double width, double height) { return fabs(log(width / height / shape)); }

/* Return how many of n blocks of width x height to put in a row. Divisors of n leave no holes. */
static int64_t side_by_side(int64_t n, double width, double height) {
  int64_t best = 1;
  double  least = HUGE_VAL;
  for (int64_t per = 1; per <= n; per++) {
    int64_t rows = (n + per - 1) / per;
    double  off = off_shape((double)per * width, (double)rows * height) + (n % per ? 0.4 : 0);
    if (off < least) least = off, best = per;
  }
  return best;
}

static double text_width(const char *name, int64_t last, double font) {
  return font * 0.58 * ((double)strlen(name) + 1 + snprintf(NULL, 0, "%" PRId64, last));
}

double mgrid_layout_gap(const mgrid_layout *l, int level) { return 8 + 6 * (level - l->tile); }

static void put_frame(mgrid_layout *l, int k, int64_t per, double dx, double dy, double x, double y, double gap) {
  int64_t n = l->part->level[k].shown, rows = (n + per - 1) / per;
  l->frame[k] = (mgrid_frame){ per, dx, dy, x, y, x + (double)per * dx - gap, y + (double)rows * dy - gap };
}

void mgrid_layout_make(mgrid_layout *l, const mgrid_part *p, int64_t cells) {
  int64_t most = p->grid->window.offset + p->grid->window.size - 1, n0 = p->level[0].shown;
  int64_t n1 = p->n > 1 ? p->level[1].shown : 1;
  *l = (mgrid_layout){ .part = p };
  l->font = cells <= 64 ? 12 : cells <= 512 ? 11 : 9;
  double number = l->font * 0.6 * snprintf(NULL, 0, "%" PRId64, most);
  l->cell_width = number + l->font * (cells <= 512 ? 1.6 : 0.9);
  if (cells <= 64 && l->cell_width < 38) l->cell_width = 38;
  l->cell_height = l->font * (cells <= 64 ? 2.2 : cells <= 512 ? 1.9 : 1.6);
  l->tile = !p->machine && p->n > 1 && n0 <= ROW && n1 <= COLUMN ? 2 : 1;
  if (l->tile == 1 && n0 > SHORT) /* a row would be too long: break it */
    put_frame(l, 0, side_by_side(n0, l->cell_width, l->cell_height), l->cell_width, l->cell_height,
              text_width(p->level[0].name, p->level[0].size - 1, 9) + PAD, 0, 0);
  else
    put_frame(l, 0, n0, l->cell_width, l->cell_height, 0, l->tile == 1 ? TITLE : 0, 0);
  if (l->tile == 2)
    put_frame(l, 1, 1, l->frame[0].width, l->cell_height, text_width(p->level[1].name, p->level[1].size - 1, 9) + PAD,
              TITLE, 0);
  for (int k = l->tile; k < p->n; k++) {
    const mgrid_frame *in = &l->frame[k - 1];
    double  gap = mgrid_layout_gap(l, k), label = text_width(p->level[k].name, p->level[k].size - 1, 10) + PAD;
    double  width = (in->width > label ? in->width : label) + 2 * PAD, height = in->height + TITLE + 2 * PAD;
    int64_t per = side_by_side(p->level[k].shown, width + gap, height + gap);
    put_frame(l, k, per, width + gap, height + gap, 0, 0, gap);
  }
  l->width = l->frame[p->n - 1].width, l->height = l->frame[p->n - 1].height;
}

void mgrid_layout_at(const mgrid_layout *l, int level, const int64_t *index, double *x, double *y) {
  *x = *y = 0;
  for (int k = l->part->n - 1; k >= level; k--) {
    const mgrid_frame *f = &l->frame[k];
    *x += f->x + (double)(index[k] % f->per) * f->dx;
    *y += f->y + (double)(index[k] / f->per) * f->dy;
    if (k >= l->tile && k > level) *x += PAD, *y += TITLE + PAD; /* below the title of the box */
  }
}
