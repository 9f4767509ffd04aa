/* SPDX-License-Identifier: MIT
**
** svg.c - a plan as SVG 1.1: a panel per family, the ranks of a group in one colour and pattern; covers as arrows.
** The numbers, labels and frames of a sheet are written once and used by each of its panels, so that a file
** grows little with the families. There is no script in it, and every text of a user is escaped.
*/
#include "draw/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MARGIN = 24,
  HEAD = 40,
  BETWEEN = 36,
  PAGE = 1180,
  LEAST = 520,
  PARTS_GAP = 28,
  PART_HEAD = 18,
  TITLED = 256,
  MANY = 256,
  COLOURS = 8,
  PATTERNS = 5
};

/* Light colours that differ in lightness or in blue and yellow, so that colour-blind people can tell them apart (after
** Paul Tol's light scheme); black text on each has a contrast above 9 to 1. Their darker kin are for arrows. */
static const char *const light[COLOURS] = { "#8db8e3", "#f3b08f", "#eedd88", "#7fd1b9",
                                            "#f7b6c6", "#a8e2f5", "#cdd46a", "#c9b7e4" };
static const char *const dark[COLOURS] = { "#0b5394", "#b45309", "#7a6000", "#00664f",
                                           "#a8244f", "#00708f", "#5f6a00", "#5b3a9b" };
/* Lines and dots over a colour, faint enough to read numbers on. */
static const char *const pattern[PATTERNS] = { "", "<path d=\"M-2,2l4,-4M0,8l8,-8M6,10l4,-4\"/>",
                                               "<path d=\"M0,2h8M0,6h8\"/>", "<path d=\"M-2,6l4,4M0,0l8,8M6,-2l4,4\"/>",
                                               "<path d=\"M1,1h2v2h-2zM5,5h2v2h-2z\" fill=\"#000\" stroke=\"none\"/>" };

/* The colour and the pattern of a group: those of neighbours differ, in both; 40 in a row are all different. */
static int colour_of(int64_t group) { return (int)((group + group / COLOURS) % COLOURS); }
static int pattern_of(int64_t group) { return (int)((2 * (group / COLOURS % PATTERNS) + colour_of(group)) % PATTERNS); }

typedef struct canvas {
  const mgrid_drawing *d;
  const mgrid_sheet   *sheet;
  mgrid_layout         part[MGRID_SHEET_PARTS_MAX];
  double               left[MGRID_SHEET_PARTS_MAX]; /* of each part */
  double               width, height;
} canvas;

typedef struct spot { /* a cell with a group in it */
  int64_t group, rank;
  double  x, y;
} spot;

/* -------------------------------------------------------------------- writing */

static void put_text(mgrid_text *t, double x, double y, const char *class, const char *text) {
  mgrid_text_add(t, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
  mgrid_draw_safe(t, text, true);
  mgrid_text_str(t, "</text>\n");
}

/* The lines of a text, one below the other from y on; returns how many they are. It frees the text. NULL t: count them. */
static int put_lines(mgrid_text *t, double x, double y, double step, const char *class, mgrid_text *lines) {
  int n = 0;
  for (char *at = lines->len > 0 ? lines->data : NULL, *end; at; at = end ? end + 1 : NULL, n++) {
    end = strchr(at, '\n');
    if (end) *end = '\0';
    if (t) put_text(t, x, y + n * step, class, at);
  }
  if (t) t->failed |= lines->failed;
  mgrid_text_free(lines);
  return n;
}

static void put_named(mgrid_text *t, double x, double y, const char *class, const char *name, int64_t n) {
  char text[MGRID_NAME_MAX + 32];
  snprintf(text, sizeof text, *name ? "%s %" PRId64 : "%s%" PRId64, name, n);
  put_text(t, x, y, class, text);
}

static void index_of(const mgrid_part *p, int64_t cell, int64_t *index) {
  for (int k = 0; k < p->n; k++) {
    index[k] = cell % p->level[k].shown;
    cell /= p->level[k].shown;
  }
}

/* ---------------------------------------------------------------------- sheets */

static void measure(canvas *c) {
  double x = 0;
  c->height = 0;
  for (int i = 0; i < c->sheet->nparts; i++) {
    mgrid_layout_make(&c->part[i], &c->sheet->part[i], c->sheet->cells);
    c->left[i] = x;
    x += c->part[i].width + PARTS_GAP;
    if (c->part[i].height > c->height) c->height = c->part[i].height;
  }
  c->width = x - PARTS_GAP;
  if (c->sheet->nparts > 1) c->height += PART_HEAD;
}

static double top(const canvas *c) { return c->sheet->nparts > 1 ? PART_HEAD : 0; }

/* Labels and frames of the tile and boxes that begin at `cell`, the outer ones first. */
static void put_frame(const canvas *c, int i, int64_t cell, mgrid_text *t) {
  const mgrid_layout *l = &c->part[i];
  const mgrid_part   *p = l->part;
  int64_t             index[MGRID_TIERS_MAX], inside = p->cells;
  index_of(p, cell, index);
  for (int k = p->n - 1; k >= 0; k--) {
    const mgrid_tier  *v = &p->level[k];
    const mgrid_frame *f = &l->frame[k];
    int64_t            coord = mgrid_tier_coord(v, index[k]);
    double             x, y;
    inside /= v->shown; /* cells of an entry of this level */
    if (cell % inside != 0) continue;
    mgrid_layout_at(l, k, index, &x, &y);
    x += c->left[i], y += top(c);
    if (k >= l->tile && k > 0) {
      double gap = mgrid_layout_gap(l, k);
      mgrid_text_add(t, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" class=\"box\"/>\n", x, y,
                     f->dx - gap, f->dy - gap);
      put_named(t, x + 6, y + 12, "tile", v->name, coord);
    } else if (k == 1 || (f->per < v->shown && index[0] % f->per == 0)) {
      put_named(t, x - 5, y + l->cell_height / 2 + 3, "row", v->name, coord);
    } else if (k == 0 && f->per == v->shown && (l->tile == 1 || index[1] == 0)) {
      bool named = l->font * 0.55 * ((double)strlen(v->name) + 3) < l->cell_width;
      put_named(t, x + l->cell_width / 2, y - 4, "column", named ? v->name : "", coord);
    }
  }
}

/* What all panels of a sheet have in common: numbers, labels, frames. */
static void put_sheet(const canvas *c, size_t number, mgrid_text *t) {
  mgrid_text_add(t, "<g id=\"frames%zu\">\n", number);
  for (int i = 0; i < c->sheet->nparts; i++) {
    if (c->sheet->nparts > 1) put_text(t, c->left[i], 11, "part", c->sheet->part[i].name);
    for (int64_t k = 0; k < c->sheet->part[i].cells; k++) put_frame(c, i, k, t);
  }
  mgrid_text_add(t, "</g>\n<g id=\"ranks%zu\" class=\"rank\" font-size=\"%g\">\n", number, c->part[0].font);
  for (int i = 0; i < c->sheet->nparts; i++) {
    const mgrid_layout *l = &c->part[i];
    for (int64_t k = 0; k < l->part->cells; k++) {
      int64_t index[MGRID_TIERS_MAX];
      double  x, y;
      index_of(l->part, k, index);
      mgrid_layout_at(l, 0, index, &x, &y);
      mgrid_text_add(t, "<text x=\"%.1f\" y=\"%.1f\">%" PRId64 "</text>\n", c->left[i] + x + l->cell_width / 2,
                     top(c) + y + l->cell_height / 2 + l->font * 0.36, mgrid_part_rank(l->part, k));
    }
  }
  mgrid_text_str(t, "</g>\n");
}

/* ---------------------------------------------------------------------- groups */

static int by_group(const void *a, const void *b) {
  const spot *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_rank(const void *a, const void *b) {
  const spot *x = a, *y = b;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

/* All cells of the sheet with their first groups, -1 for none. */
static spot *spots_of(const canvas *c, const mgrid_family *f) {
  spot   *all = malloc((size_t)(c->sheet->cells + 1) * sizeof *all);
  int64_t n = 0, position;
  for (int i = 0; i < c->sheet->nparts && all; i++)
    for (int64_t k = 0; k < c->sheet->part[i].cells; k++) {
      spot   *s = &all[n++];
      int64_t index[MGRID_TIERS_MAX];
      s->rank = mgrid_part_rank(&c->sheet->part[i], k);
      if (!mgrid_family_locate(f, s->rank, 0, &s->group, &position)) s->group = -1;
      index_of(&c->sheet->part[i], k, index);
      mgrid_layout_at(&c->part[i], 0, index, &s->x, &s->y);
      s->x += c->left[i], s->y += top(c);
    }
  return all;
}

/* The cells of one group as one path. */
static void put_cells(const canvas *c, const spot *s, int64_t n, mgrid_text *t) {
  double w = c->part[0].cell_width - 1.5, h = c->part[0].cell_height - 1.5;
  mgrid_text_str(t, "d=\"");
  for (int64_t i = 0; i < n; i++)
    mgrid_text_add(t, "M%.1f,%.1fh%.1fv%.1fh%.1fz", s[i].x + 0.75, s[i].y + 0.75, w, h, -w);
  mgrid_text_str(t, "\"");
}

static void put_group_title(const mgrid_entry *e, int64_t group, mgrid_text *t) {
  mgrid_text_add(t, "><title>%s %" PRId64 ": ", e->name, group);
  mgrid_draw_group(t, e->family, group, 120);
  mgrid_text_str(t, "</title></path>\n");
}

static void put_groups(const canvas *c, const mgrid_entry *e, spot *all, mgrid_text *t) {
  int64_t n = c->sheet->cells, own = -1, position;
  bool    lit = c->d->rank >= 0;
  if (lit && !mgrid_family_locate(e->family, c->d->rank, 0, &own, &position)) own = -1;
  qsort(all, (size_t)n, sizeof *all, by_group);
  for (int64_t i = 0, end; i < n; i = end) {
    int64_t group = all[i].group;
    for (end = i; end < n && all[end].group == group;) end++;
    if (lit && group == own && group >= 0) { /* raised: a shadow, and a dark edge */
      mgrid_text_str(t, "<path class=\"shadow\" transform=\"translate(2.5,2.5)\" ");
      put_cells(c, all + i, end - i, t);
      mgrid_text_str(t, "/>\n");
    }
    const char *of = !lit ? "" : group == own ? "class=\"raised\" " : "class=\"back\" ";
    if (group < 0)
      mgrid_text_str(t, "<path class=\"idle\" ");
    else
      mgrid_text_add(t, "<path %sfill=\"url(#c%dp%d)\" ", of, colour_of(group), pattern_of(group));
    put_cells(c, all + i, end - i, t);
    if (group >= 0 && e->family->count <= TITLED)
      put_group_title(e, group, t);
    else
      mgrid_text_str(t, "/>\n");
  }
}

/* ---------------------------------------------------------------------- covers */

static const spot *find(const spot *all, int64_t n, int64_t rank) {
  spot wanted = { .rank = rank };
  return bsearch(&wanted, all, (size_t)n, sizeof *all, by_rank);
}

/* A bent arrow from one cell to another. It keeps to the left of its way, beside the numbers, so that arrows there
** and back do not cover each other. */
static void put_arrow(const canvas *c, const spot *a, const spot *b, const char *class, const char *colour,
                      mgrid_text *t) {
  double w = c->part[0].cell_width, h = c->part[0].cell_height;
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
static bool is_far(const canvas *c, const spot *a, const spot *b) {
  return fabs(a->x - b->x) > 4 * c->part[0].cell_width || fabs(a->y - b->y) > 4 * c->part[0].cell_height;
}

/* Is a rank in that group of a family? */
static bool is_in(const mgrid_family *f, int64_t rank, int64_t group) {
  int64_t at, position;
  for (int64_t nth = 0; rank >= 0 && mgrid_family_locate(f, rank, nth, &at, &position); nth++)
    if (at == group) return true;
  return false;
}

static void put_cover(const canvas *c, const mgrid_entry *e, spot *all, mgrid_text *t) {
  const mgrid_family *f = e->family;
  int64_t             n = c->sheet->cells, group, position;
  const char         *usual = c->d->rank >= 0 || f->count > MANY ? "arrow back" : "arrow";
  mgrid_text_str(t, "<path fill=\"#e4e7ec\" ");
  put_cells(c, all, n, t);
  mgrid_text_str(t, "/>\n");
  qsort(all, (size_t)n, sizeof *all, by_rank);
  for (int64_t i = 0; i < n && !t->failed; i++)
    for (int64_t nth = 0; mgrid_family_locate(f, all[i].rank, nth, &group, &position); nth++) {
      const spot *next = find(all, n, mgrid_family_rank(f, group, position + 1)); /* none of the last one */
      if (next)
        put_arrow(c, &all[i], next,
                  is_in(f, c->d->rank, group) ? "arrow own"
                  : is_far(c, &all[i], next)  ? "arrow back"
                                              : usual,
                  dark[colour_of(group)], t);
    }
}

/* ---------------------------------------------------------------------- panels */

/* A thick frame around the rank that the picture is about. */
static void put_chosen(const canvas *c, const spot *all, mgrid_text *t) {
  for (int64_t i = 0; i < c->sheet->cells && c->d->rank >= 0; i++) {
    if (all[i].rank != c->d->rank) continue;
    mgrid_text_str(t, "<path class=\"chosen\" ");
    put_cells(c, &all[i], 1, t);
    mgrid_text_str(t, "/>\n");
  }
}

/* "; rank 2: position 1 of group 0, 0 of group 1" */
static void own_groups(const mgrid_family *f, int64_t rank, mgrid_text *t) {
  enum { SHOWN = 4 };
  int64_t group, position, nth = 0;
  mgrid_text_add(t, "; rank %" PRId64, rank);
  for (; mgrid_family_locate(f, rank, nth, &group, &position); nth++)
    if (nth < SHOWN) mgrid_text_add(t, "%s%" PRId64 " of group %" PRId64, nth ? ", " : ": position ", position, group);
  if (nth > SHOWN) mgrid_text_add(t, " and %" PRId64 " more", nth - SHOWN);
  if (nth == 0) mgrid_text_str(t, " is in none");
}

static void caption(const mgrid_drawing *d, int i, mgrid_text *t) {
  const mgrid_plan  *p = d->plan;
  const mgrid_entry *e = &p->content.entry[i];
  mgrid_draw_count(t, e->family);
  if (e->family->overlapping) mgrid_text_str(t, " that share ranks");
  if (e->family->max_size < 2)
    mgrid_text_str(t, ", no communicator");
  else if (p->shares[i] >= 0)
    mgrid_text_add(t, ", shared with %s", p->content.entry[p->shares[i]].name);
  if (d->rank >= 0) own_groups(e->family, d->rank, t);
}

/* Families of the plan that have these groups too and no panel: in lines of `width`. Returns how many lines. */
static int put_same(const mgrid_drawing *d, int i, double width, mgrid_text *t) {
  const mgrid_content *c = &d->plan->content;
  mgrid_text           also = { 0 };
  for (size_t k = 0; k < c->nentries; k++) {
    bool drawn = false;
    for (size_t n = 0; n < d->n; n++) drawn = drawn || d->family[n] == (int)k;
    if (drawn || !mgrid_family_equal(c->entry[k].family, c->entry[i].family)) continue;
    if (also.len == 0) mgrid_text_str(&also, "also ");
    mgrid_draw_wrap(&also, also.len > strlen("also ") ? ", " : "", c->entry[k].name, (size_t)(width / 6));
  }
  return put_lines(t, 0, 29, 14, "caption", &also);
}

/* Words of a panel may be wider than its sheet. */
static double panel_width(const canvas *c, int family) {
  mgrid_text words = { 0 };
  caption(c->d, family, &words);
  double text = (double)words.len * 6.0, name = (double)strlen(c->d->plan->content.entry[family].name) * 8.5;
  mgrid_text_free(&words);
  if (name > text) text = name;
  return text > c->width ? text : c->width;
}

/* head: what the words above the sheet take, so that sheets of a line of panels begin at one height. */
static mgrid_status put_panel(const canvas *c, int family, size_t sheet, double x, double y, double head, mgrid_text *t,
                              mgrid_error *err) {
  const mgrid_entry *e = &c->d->plan->content.entry[family];
  mgrid_text         words = { 0 };
  spot              *all = spots_of(c, e->family);
  if (!all) return mgrid_oom(err);
  mgrid_text_add(t, "<g transform=\"translate(%.1f,%.1f)\">\n", x, y);
  put_text(t, 0, 0, "family", e->name);
  caption(c->d, family, &words);
  put_text(t, 0, 15, "caption", words.data ? words.data : "");
  put_same(c->d, family, panel_width(c, family), t);
  mgrid_text_add(t, "<g transform=\"translate(0,%.1f)\">\n<use xlink:href=\"#frames%zu\"/>\n", head - 12, sheet);
  (e->family->overlapping ? put_cover : put_groups)(c, e, all, t);
  put_chosen(c, all, t);
  mgrid_text_add(t, "<use xlink:href=\"#ranks%zu\"/>\n</g>\n</g>\n", sheet);
  t->failed |= words.failed;
  mgrid_text_free(&words);
  free(all);
  return t->failed ? mgrid_oom(err) : MGRID_OK;
}

static void put_defs(mgrid_text *t) {
  mgrid_text_str(
      t, "<defs>\n<style type=\"text/css\">\n"
         "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1b1f24}\n"
         ".title{font-size:18px;font-weight:bold}.note{font-size:11px;fill:#4b5563}\n"
         ".family{font-size:14px;font-weight:bold}.caption{font-size:11px;fill:#4b5563}\n"
         ".part{font-size:12px;font-weight:bold;fill:#374151}\n"
         ".tile{font-size:10px;font-weight:bold;fill:#374151}\n"
         ".row{font-size:9px;fill:#4b5563;text-anchor:end}.column{font-size:9px;fill:#4b5563;text-anchor:middle}\n"
         ".rank text{text-anchor:middle}\n"
         ".box{fill:#f6f7f9;stroke:#c3c9d2;stroke-width:1}\n"
         ".idle{fill:#ffffff;stroke:#c3c9d2;stroke-dasharray:2,2}\n"
         ".back{opacity:.38}.raised{stroke:#111111;stroke-width:1.6}.shadow{fill:#000000;opacity:.28}\n"
         ".chosen{fill:none;stroke:#111111;stroke-width:3.2}\n"
         ".arrow{stroke-width:1.5}.own{stroke-width:2.6}\n"
         "</style>\n");
  for (int i = 0; i < COLOURS * PATTERNS; i++)
    mgrid_text_add(t,
                   "<pattern id=\"c%dp%d\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" "
                   "height=\"8\" fill=\"%s\"/><g stroke=\"#000\" fill=\"none\" stroke-opacity=\".16\" "
                   "fill-opacity=\".16\">%s</g></pattern>\n",
                   i % COLOURS, i / COLOURS, light[i % COLOURS], pattern[i / COLOURS]);
}

/* Recipe, world and the parameters that are not at their defaults, a line of about 150 letters each; returns where they end. */
static double put_head(const mgrid_drawing *d, double width, mgrid_text *t) {
  const mgrid_content *c = &d->plan->content;
  mgrid_text           title = { 0 }, params = { 0 };
  double               y = MARGIN + 14;
  mgrid_text_add(&title, "%s over %" PRId64 " rank%s", *c->recipe ? c->recipe : "plan", c->world,
                 c->world == 1 ? "" : "s");
  put_text(t, MARGIN, y, "title", title.data ? title.data : "");
  t->failed |= title.failed;
  for (size_t i = 0; i < c->nparams; i++) {
    if (c->param[i].usual) continue;
    title.len = 0;
    mgrid_text_add(&title, "%s=%s", c->param[i].name, c->param[i].value);
    mgrid_draw_wrap(&params, "  ", title.data ? title.data : "", (size_t)(width / 6));
  }
  mgrid_text_free(&title);
  return y + 16 * put_lines(t, MARGIN, y + 16, 16, "note", &params);
}

/* How to read the panels, in sentences. Returns where they end. */
static double put_reading(const mgrid_drawing *d, const mgrid_sheets *sheets, double width, double y, mgrid_text *t) {
  const size_t columns = (size_t)(width / 6);
  mgrid_text   lines = { 0 }, more = { 0 };
  bool         arrows = false, again = false;
  for (size_t i = 0; i < d->n; i++) {
    const mgrid_family *f = d->plan->content.entry[d->family[i]].family;
    arrows |= f->overlapping;
    again |= !f->overlapping && f->count > COLOURS * PATTERNS;
  }
  mgrid_draw_wrap(&lines, " ",
                  "A box is a rank. The ranks of a group have one colour and pattern; dashed: in no group.", columns);
  if (again) mgrid_draw_wrap(&lines, " ", "After 40 groups their looks come again.", columns);
  if (arrows) mgrid_draw_wrap(&lines, " ", "An arrow goes from a member of a group to the next.", columns);
  if (d->rank >= 0) mgrid_text_add(&more, "The thick frame is rank %" PRId64 ".", d->rank);
  if (d->rank >= 0) mgrid_draw_wrap(&lines, " ", more.data ? more.data : "", columns);
  for (size_t i = 0; i < sheets->n; i++) {
    if (!sheets->sheet[i].sampled) continue;
    more.len = 0;
    mgrid_text_add(&more, "Only %" PRId64 " of %" PRId64 " ranks are drawn: ", sheets->sheet[i].cells,
                   d->plan->content.world);
    mgrid_sheet_sampled_text(&sheets->sheet[i], &more);
    mgrid_text_str(&more, ".");
    mgrid_draw_wrap(&lines, " ", more.data ? more.data : "", columns);
    break;
  }
  t->failed |= more.failed;
  mgrid_text_free(&more);
  return y + 16 * (put_lines(t, MARGIN, y, 16, "note", &lines) - 1);
}

/* The first panel that does not fit in the line of panel i; *width and *head are what the line takes. */
static size_t line_of(const mgrid_drawing *d, const mgrid_sheets *sheets, const canvas *c, size_t i, double page,
                      double *width, double *head, double *high) {
  size_t end = i;
  *width = *head = *high = 0;
  for (; end < d->n; end++) {
    const canvas *at = &c[sheets->of[d->family[end]]];
    double        own = panel_width(at, d->family[end]), words = HEAD + 14 * put_same(d, d->family[end], own, NULL);
    double        more = *width + (end > i ? BETWEEN : 0) + own;
    if (end > i && more > page) break;
    *width = more;
    if (words > *head) *head = words;
    if (at->height > *high) *high = at->height;
  }
  return end;
}

/* As wide as the lines of panels, and the title, but PAGE at most if no panel is wider. */
static double page_width(const mgrid_drawing *d, const mgrid_sheets *sheets, const canvas *c) {
  double page = LEAST, width, head, high, title = 10.5 * (double)(strlen(d->plan->content.recipe) + 24);
  for (size_t i = 0, end; i < d->n; i = end) {
    end = line_of(d, sheets, c, i, PAGE, &width, &head, &high);
    if (width > page) page = width;
  }
  return title > page ? title : page;
}

static mgrid_status put_panels(const mgrid_drawing *d, const mgrid_sheets *sheets, const canvas *c, double y,
                               double *bottom, mgrid_text *t, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = 0, end; i < d->n && !s; i = end) {
    double x = MARGIN, width, high, head;
    end = line_of(d, sheets, c, i, PAGE, &width, &head, &high);
    for (size_t k = i; k < end && !s; k++) {
      int sheet = sheets->of[d->family[k]];
      s = put_panel(&c[sheet], d->family[k], (size_t)sheet, x, y + 14, head, t, err);
      x += panel_width(&c[sheet], d->family[k]) + BETWEEN;
    }
    *bottom = y + head + high;
    y = *bottom + BETWEEN;
  }
  return s;
}

mgrid_status mgrid_draw_svg(const mgrid_drawing *d, mgrid_text *out, mgrid_error *err) {
  mgrid_sheets sheets;
  mgrid_text   defs = { 0 }, body = { 0 };
  double       page = 0, bottom = 0;
  mgrid_status s = mgrid_sheets_make(&sheets, d->plan, err);
  if (s) return s;
  canvas *c = calloc(sheets.n, sizeof *c);
  if (!c) s = mgrid_oom(err);
  put_defs(&defs);
  for (size_t i = 0; i < sheets.n && !s; i++) {
    c[i].d = d, c[i].sheet = &sheets.sheet[i];
    measure(&c[i]);
    put_sheet(&c[i], i, &defs);
  }
  if (!s) {
    page = page_width(d, &sheets, c);
    double y = put_head(d, page, &body);
    y = put_reading(d, &sheets, page, y + 17, &body);
    s = put_panels(d, &sheets, c, y + 23, &bottom, &body, err);
  }
  if (!s) {
    mgrid_text_add(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" "
        "width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
        page + 2 * MARGIN, bottom + MARGIN, page + 2 * MARGIN, bottom + MARGIN);
    mgrid_text_put(out, defs.data, defs.len);
    mgrid_text_str(out, "</defs>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#ffffff\"/>\n");
    mgrid_text_put(out, body.data, body.len);
    mgrid_text_str(out, "</svg>\n");
  }
  bool no_memory = defs.failed || body.failed || out->failed;
  mgrid_text_free(&defs);
  mgrid_text_free(&body);
  free(c);
  mgrid_sheets_free(&sheets);
  return s ? s : no_memory ? mgrid_oom(err) : MGRID_OK;
}
