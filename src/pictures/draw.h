/* SPDX-License-Identifier: MIT
**
** draw.h - pictures of a plan: text for a terminal, SVG for a document, a page of HTML. Reads plans and grids and writes
** text; knows nothing of files, terminals or recipes.
**
** A SHEET says where ranks are drawn: on one grid, or on a few that share no ranks, as those of an encoder and a decoder.
** Its levels are the dims of a grid that are larger than 1, fastest first: level 0 runs along a row, level 1 down the rows;
** both make a tile, and further levels are tiles of tiles. A plan without named grids gets the grid that the strides of
** its families have in common.
** A PANEL is a sheet with the groups of one family on it.
*/
#ifndef MGRID_DRAW_H
#define MGRID_DRAW_H

#include "command/group_lines.h"
#include "plan/plan.h"

enum {
  MGRID_DRAW_WHOLE = 4096,   /* a sheet of more ranks is sampled */
  MGRID_DRAW_SAMPLE = 256,   /* down to this many */
  MGRID_SHEET_PARTS_MAX = 8, /* most grids of a sheet */
  MGRID_TIERS_MAX = 31       /* most dims larger than 1: their product is below 2^31 */
};

typedef struct mgrid_tier {
  const char *name;         /* of the dim */
  int64_t     size, stride; /* of the dim, in positions of the grid */
  int64_t     shown;        /* coordinates drawn: all, or the first few and the last; if one: 0 */
  int64_t     kept;         /* drawn, too: last but one if it is not among the first */
} mgrid_tier;

typedef struct mgrid_part {
  const char                *name; /* of the grid; "": no name */
  mgrid_grid                *grid;
  int64_t                   *rank_at; /* of each position of the grid, -1: none; NULL: as the grid says */
  const mgrid_machine_model *machine; /* NULL: ranks are not drawn where they run */
  int64_t                    cells;   /* ranks drawn: the product of `shown` */
  int                        n;       /* 1 or more */
  mgrid_tier                 level[MGRID_TIERS_MAX];
} mgrid_part;

typedef struct mgrid_sheet {
  int        nparts;
  int64_t    cells;   /* of all parts */
  bool       sampled; /* ranks are left out */
  mgrid_part part[MGRID_SHEET_PARTS_MAX];
} mgrid_sheet;

/* The sheets of a plan: each family's, without duplicates. */
typedef struct mgrid_sheets {
  size_t       n;
  mgrid_sheet *sheet; /* [n] */
  int         *of;    /* [families of the plan]: its sheet */
} mgrid_sheets;

/* Draw `rank` (-1: none) where ranks are left out; draw at most `most` ranks of a sheet (0: MGRID_DRAW_WHOLE). With a
** machine there is one sheet, of the places of the ranks. */
mgrid_status mgrid_sheets_make(mgrid_sheets *s, const mgrid_plan *p, const mgrid_machine_model *m, int64_t rank,
                               int64_t most, mgrid_error *err);
void         mgrid_sheets_free(mgrid_sheets *s);
/* Return the i-th coordinate that is drawn. */
int64_t mgrid_tier_coord(const mgrid_tier *l, int64_t i);
/* Return the rank in a cell, 0 to cells - 1, level 0 fastest; -1: nobody runs there. */
int64_t mgrid_part_rank(const mgrid_part *p, int64_t cell);
/* Append what a sampled sheet draws: "dp 0 to 6 and 63 of 64". */
void mgrid_sheet_sampled_text(const mgrid_sheet *s, mgrid_text *t);

/* ------------------------------------------------------------ on_machine.c */

/* Make a sheet of the places of the ranks, one part, whose levels are those of the machine that have several domains. */
mgrid_status mgrid_sheet_of_machine(mgrid_sheet *s, const mgrid_machine_model *m, int64_t world, mgrid_error *err);
/* Return how far two ranks, and those of a group, are apart: 0 in one domain of the level before the places, 1 in two of
** these but one of the level before, and so on. */
int mgrid_reach(const mgrid_machine_model *m, int64_t a, int64_t b);
int mgrid_group_reach(const mgrid_machine_model *m, const mgrid_family *f, int64_t group);
/* Append how many groups cross each level, the nearest first: "; 8 cross a node, 0 cross a rack". */
void mgrid_reach_text(const mgrid_machine_model *m, const mgrid_family *f, mgrid_text *t);

/* What to draw. */
typedef struct mgrid_drawing {
  const mgrid_plan *plan;
  const mgrid_machine_model
            *machine; /* draw ranks where they run, and colour groups by what they cross; NULL: on grids */
  size_t     n;
  const int *family;  /* [n], families of the plan; text with n 0: the sheets, with all groups listed beside them */
  int64_t    rank;    /* highlight this rank's groups; -1: none */
  int        columns; /* width of text */
  int64_t    most;    /* of text: ranks to draw of a sheet; 0: MGRID_DRAW_WHOLE */
  bool       unicode, colour;
} mgrid_drawing;

mgrid_status mgrid_draw_text(const mgrid_drawing *d, mgrid_text *out, mgrid_error *err);
mgrid_status mgrid_draw_svg(const mgrid_drawing *d, mgrid_text *out, mgrid_error *err);

/* A page: for each choice of values a plan, or why there is none. The last axis varies fastest. */
typedef struct mgrid_frame_of_page {
  mgrid_plan *plan;
  char       *error; /* why there is no plan */
} mgrid_frame_of_page;

typedef struct mgrid_page {
  const char          *html;   /* page.html with its scripts */
  const char          *recipe; /* for the title */
  const json_t        *axes;   /* [{ name, values: [text] }] */
  bool                 places; /* ranks are drawn where they run, if every place of the plan's machine has one */
  size_t               n;      /* number of choices */
  mgrid_frame_of_page *frame;  /* [n] */
} mgrid_page;

/* Write a page. Plans have at most MGRID_DRAW_WHOLE ranks. html.c */
mgrid_status mgrid_draw_html(const mgrid_page *page, mgrid_text *out, mgrid_error *err);

/* Append a word; unless it is the first of a line, put the joint before it. A line has at most `columns`, unless a word is
** longer. */
void mgrid_draw_wrap(mgrid_text *t, const char *joint, const char *word, size_t columns);
/* Append a user's text for XML: as mgrid_text_shown, and the characters of markup as entities. */
void mgrid_draw_safe(mgrid_text *t, const char *text);

#endif
