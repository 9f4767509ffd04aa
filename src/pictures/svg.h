/* SPDX-License-Identifier: MIT
**
** svg.h - the parts of an SVG. Each file uses those above it; svg.c makes the document. Lengths are pixels.
*/
#ifndef MGRID_SVG_H
#define MGRID_SVG_H

#include "pictures/draw.h"

/* --------------------------------------------------------------- places of the cells of a part: layout.c */

typedef struct mgrid_frame { /* of one level */
  int64_t per;               /* entries in a row */
  double  dx, dy;            /* from one entry to the next, across and down */
  double  x, y;              /* of the first entry, in the block of this level */
  double  width, height;     /* of the block */
} mgrid_frame;

typedef struct mgrid_layout {
  const mgrid_part *part;
  int               tile; /* levels of a tile: 1 or 2 */
  double            cell_width, cell_height, font;
  double            width, height;
  mgrid_frame       frame[MGRID_TIERS_MAX];
} mgrid_layout;

/* Lay out a part of a sheet with `cells` cells in all. */
void mgrid_layout_make(mgrid_layout *l, const mgrid_part *p, int64_t cells);
/* Return the space between the boxes of a level. */
double mgrid_layout_gap(const mgrid_layout *l, int level);
/* Find the corner of an entry of a level; index[k] is its index at level k, for k >= level. */
void mgrid_layout_at(const mgrid_layout *l, int level, const int64_t *index, double *x, double *y);

/* ------------------------------------------------------------------ styles: svg_style.c */

enum { MGRID_SVG_LOOKS = 40 }; /* consecutive groups that all look different */

/* Append the style sheet and the patterns of groups, for <defs>. */
void mgrid_svg_style(mgrid_text *t);
/* Append a text, which may be a user's, in a class of the style sheet. */
void mgrid_svg_text(mgrid_text *t, double x, double y, const char *class, const char *text);
/* Append the attribute that fills the cells of a group. */
void mgrid_svg_fill(mgrid_text *t, int64_t group);
/* Return the colour of a group's arrows. */
const char *mgrid_svg_ink(int64_t group);

/* ------------------------------------------------------------------ a sheet: svg_sheet.c */

/* The parts of a sheet are drawn in a row. */
typedef struct mgrid_svg_sheet {
  const mgrid_sheet *sheet;
  mgrid_layout       part[MGRID_SHEET_PARTS_MAX];
  double             left[MGRID_SHEET_PARTS_MAX]; /* of each part */
  double             top;                         /* of all parts */
  double             width, height;
} mgrid_svg_sheet;

void mgrid_svg_sheet_lay(mgrid_svg_sheet *v, const mgrid_sheet *sheet);
/* Append what the panels of a sheet share: #framesN, labels and boxes; #ranksN, the numbers. */
void mgrid_svg_sheet_put(const mgrid_svg_sheet *v, size_t number, mgrid_text *t);
/* Find the corner of a cell of part i. */
void mgrid_svg_cell_at(const mgrid_svg_sheet *v, int i, int64_t cell, double *x, double *y);

/* ------------------------------------------------------------------ the groups of a family: svg_groups.c */

/* Append the groups, to be placed between the frames and the numbers of their sheet. The groups of `rank` are highlighted;
** -1: none. */
void mgrid_svg_groups(const mgrid_svg_sheet *v, const mgrid_entry *e, int64_t rank, mgrid_text *t);

#endif
