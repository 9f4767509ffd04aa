/* SPDX-License-Identifier: MIT
**
** chart_svg.c - a chart of time as SVG. A row is cut into columns of a pixel; a column shows each kind by its share of that
** time, one above the other, so that what is thinner than a pixel is merged with its neighbours and nothing gets lost.
*/
#include "pictures/draw.h"
#include "step/command/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1200, TOP = 102, RIGHT = 24, STEPS = 8, ROWS_MAX = 512 }; /* STEPS: shares are drawn in eighths */

/* Colours that differ in lightness or between blue and yellow (after Paul Tol's schemes): computes are blue and green,
** calls warm, waiting grey. */
static const char *const computes[] = { "#4477aa", "#66ccee", "#228833", "#aaddcc",
                                        "#334488", "#88aa55", "#99bbff", "#117766" };
static const char *const moves[] = { "#ee6677", "#ccbb44", "#ee8866", "#aa3377",
                                     "#ffaabb", "#ddaa33", "#bb5566", "#997700" };

const char *mgrid_chart_colour(const chart_kind *k) {
  if (k->sort == CHART_WAITS) return "#d4d7dd";
  return k->sort == CHART_COMPUTES ? computes[k->colour % 8] : moves[k->colour % 8];
}

typedef struct picture {
  const chart *c;
  mgrid_text  *out;
  size_t       rows;
  double       left, row, step; /* row: its height; step: from row to row */
  float       *share;           /* [WIDTH * kinds] of the row */
} picture;

/* Spread a stretch of time of a kind over the columns. */
static void spread(const picture *p, double from, double to, int kind, double weight) {
  double a = from / p->c->seconds * WIDTH, b = to / p->c->seconds * WIDTH;
  for (int x = (int)a; x < WIDTH && x < b; x++) {
    double in = fmin(b, x + 1) - fmax(a, x);
    if (in > 0) p->share[x * p->c->nkinds + kind] += (float)(in * weight);
  }
}

/* The shares of a column in eighths, which add up to 8 at most. */
static void round_column(const picture *p, int x, int *eighths) {
  const float *share = &p->share[x * p->c->nkinds];
  double       sum = 0, at = 0;
  for (int k = 0; k < p->c->nkinds; k++) sum += share[k];
  double scale = sum > 1 ? 1 / sum : 1;
  for (int k = p->c->nkinds - 1, before = 0; k >= 0; k--) { /* waiting, kind 0, is last: below the others */
    at += share[k] * scale;
    int now = (int)(at * STEPS + 0.5);
    eighths[k] = now - before;
    before = now;
  }
}

static void put_row(const picture *p, size_t i) {
  const chart     *c = p->c;
  const chart_row *row = &c->row[i];
  double           y = TOP + p->step * (double)i;
  memset(p->share, 0, (size_t)WIDTH * (size_t)c->nkinds * sizeof *p->share);
  for (size_t k = 0; k < row->n; k++) {
    const chart_bar  *b = &row->bar[k];
    const chart_text *t = &c->text[b->text];
    if (b->began < b->from) spread(p, b->began, b->from, 0, 1);
    for (int j = 0; j < t->nparts; j++) spread(p, b->from, b->to, t->kind[j], t->share[j]);
  }
  int(*eighths)[CHART_KINDS_MAX] = malloc((size_t)WIDTH * sizeof *eighths);
  if (!eighths) {
    p->out->failed = true;
    return;
  }
  for (int x = 0; x < WIDTH; x++) round_column(p, x, eighths[x]);
  for (int k = c->nkinds - 1; k >= 0; k--) {
    bool any = false;
    for (int x = 0; x < WIDTH;) {
      int end = x + 1, above = 0;
      while (end < WIDTH && memcmp(eighths[end], eighths[x], (size_t)c->nkinds * sizeof(int)) == 0) end++;
      for (int j = c->nkinds - 1; j > k; j--) above += eighths[x][j];
      if (eighths[x][k] > 0) {
        if (!any) mgrid_text_add(p->out, "<path fill=\"%s\" d=\"", mgrid_chart_colour(&c->kind[k]));
        any = true;
        mgrid_text_add(p->out, "M%g %gh%dv%gh-%dz", p->left + x, y + p->row * above / STEPS, end - x,
                       p->row * eighths[x][k] / STEPS, end - x);
      }
      x = end;
    }
    if (any) mgrid_text_str(p->out, "\"/>\n");
  }
  free(eighths);
}

static void put_text(mgrid_text *t, double x, double y, const char *class, const char *text) {
  mgrid_text_add(t, "<text x=\"%g\" y=\"%g\" class=\"%s\">", x, y, class);
  mgrid_draw_safe(t, text);
  mgrid_text_str(t, "</text>\n");
}

/* Labels of rows, as many as there is room for. */
static void put_labels(const picture *p) {
  size_t every = p->step >= 10 ? 1 : (size_t)ceil(10 / p->step);
  for (size_t i = 0; i < p->rows; i += every) {
    const chart_row *row = &p->c->row[i];
    mgrid_text       t = { 0 };
    mgrid_text_str(&t, row->label);
    if (strcmp(row->stream, "main") != 0) mgrid_text_add(&t, " %s", row->stream);
    put_text(p->out, p->left - 6, TOP + p->step * (double)i + p->row / 2 + 3.5, "row", mgrid_text_chars(&t));
    mgrid_text_free(&t);
  }
}

static void put_axis(const picture *p, double bottom) {
  double raw = p->c->seconds / 8, unit = raw > 0 ? pow(10, floor(log10(raw))) : 1;
  double tick = raw / unit > 5 ? 10 * unit : raw / unit > 2 ? 5 * unit : raw / unit > 1 ? 2 * unit : unit;
  for (int i = 0; tick * i <= p->c->seconds && p->c->seconds > 0; i++) {
    double     x = p->left + tick * i / p->c->seconds * WIDTH;
    mgrid_text t = { 0 };
    mgrid_chart_seconds(tick * i, &t);
    mgrid_text_add(p->out, "<path class=\"tick\" d=\"M%.1f %dV%.1f\"/>", x, TOP - 4, bottom + 4);
    put_text(p->out, x, bottom + 16, "time", mgrid_text_chars(&t));
    mgrid_text_free(&t);
  }
}

static void put_legend(const picture *p) {
  double x = p->left;
  for (int k = p->c->nkinds - 1; k >= 0; k--) {
    const chart_kind *kind = &p->c->kind[k];
    mgrid_text_add(p->out, "<rect x=\"%g\" y=\"76\" width=\"12\" height=\"12\" fill=\"%s\"/>", x,
                   mgrid_chart_colour(kind));
    put_text(p->out, x + 17, 86, "note", kind->name);
    x += 17 + 7 * (double)strlen(kind->name) + 16;
  }
}

static void put_gaps(const picture *p, double bottom) {
  for (size_t i = 0; i < p->c->ngaps; i++) {
    const chart_gap *g = &p->c->gap[i];
    double           x = p->left + g->from / p->c->seconds * WIDTH, w = (g->to - g->from) / p->c->seconds * WIDTH;
    mgrid_text       t = { 0 };
    mgrid_text_add(p->out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" fill=\"url(#gap)\"/>", x, TOP, w,
                   bottom - TOP);
    mgrid_text_add(&t, "the same %" PRId64 " times more", g->times);
    if (w > 120) put_text(p->out, x + w / 2, (TOP + bottom) / 2, "gap", mgrid_text_chars(&t));
    mgrid_text_free(&t);
  }
}

void mgrid_chart_svg(const chart *c, mgrid_text *out) {
  picture p = { .c = c, .out = out, .rows = c->nrows < ROWS_MAX ? c->nrows : ROWS_MAX };
  size_t  widest = 4;
  for (size_t i = 0; i < p.rows; i++) {
    size_t n = strlen(c->row[i].label) + (strcmp(c->row[i].stream, "main") == 0 ? 0 : strlen(c->row[i].stream) + 1);
    if (n > widest) widest = n;
  }
  p.left = 20 + 6.2 * (double)widest;
  p.step = p.rows <= 24 ? 30 : p.rows <= 96 ? 14 : p.rows <= 256 ? 7 : 4;
  p.row = p.step - (p.step >= 14 ? 3 : 1);
  p.share = malloc((size_t)WIDTH * CHART_KINDS_MAX * sizeof *p.share);
  if (!p.share) {
    out->failed = true;
    return;
  }
  double bottom = TOP + p.step * (double)p.rows, height = bottom + (c->cut || p.rows < c->nrows ? 44 : 28);
  mgrid_text_add(
      out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
      "role=\"img\">\n"
      "<defs><style type=\"text/css\">text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1b1f24}"
      ".title{font-size:18px;font-weight:bold}.note{font-size:12px;fill:#374151}"
      ".row{font-size:%dpx;fill:#374151;text-anchor:end}.time{font-size:10px;fill:#4b5563;text-anchor:middle}"
      ".gap{font-size:13px;text-anchor:middle}.tick{stroke:#1b1f24;stroke-opacity:.18;stroke-width:1;fill:none}"
      ".paper{fill:#fff}.ground{fill:#f6f7f9}</style>\n"
      "<pattern id=\"gap\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" "
      "fill=\"#fff\"/><path d=\"M-2,2l4,-4M0,8l8,-8M6,10l4,-4\" stroke=\"#9aa1ad\"/></pattern></defs>\n"
      "<title>",
      p.left + WIDTH + RIGHT, height, p.left + WIDTH + RIGHT, height, p.step >= 14 ? 11 : 9);
  mgrid_draw_safe(out, c->title);
  mgrid_text_str(out, "</title>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
  put_text(out, 16, 24, "title", c->title);
  put_text(out, 16, 44, "note", c->settings);
  put_text(out, 16, 62, "note", c->about);
  put_legend(&p);
  mgrid_text_add(out, "<rect class=\"ground\" x=\"%g\" y=\"%d\" width=\"%d\" height=\"%g\"/>\n", p.left, TOP, WIDTH,
                 bottom - TOP);
  for (size_t i = 0; i < p.rows && c->seconds > 0; i++) put_row(&p, i);
  put_gaps(&p, bottom);
  put_labels(&p);
  put_axis(&p, bottom);
  if (p.rows < c->nrows) {
    mgrid_text t = { 0 };
    mgrid_text_add(&t, "%zu of %zu rows", p.rows, c->nrows);
    put_text(out, 16, bottom + 34, "note", mgrid_text_chars(&t));
    mgrid_text_free(&t);
  } else if (c->cut) {
    put_text(out, 16, bottom + 34, "note", "the end of the step is left out: it has too many operations");
  }
  mgrid_text_str(out, "</svg>\n");
  free(p.share);
}
