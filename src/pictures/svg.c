/* SPDX-License-Identifier: MIT
**
** svg.c - a plan as SVG 1.1: one panel per family, the ranks of a group in one colour and pattern, covers as arrows. The
** numbers, labels and frames of a sheet are written once and used by all its panels, so more families add little. The file
** has no script, and a user's texts are escaped.
*/
#include "pictures/svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
  MARGIN = 24,  /* around the picture */
  HEAD = 40,    /* a panel's name and caption, above its sheet */
  BETWEEN = 36, /* panels */
  PAGE = 1180,  /* greatest width, unless a panel is wider */
  LEAST = 520   /* least width */
};

typedef struct picture {
  const mgrid_drawing *d;
  mgrid_sheets         sheets;
  mgrid_svg_sheet     *laid; /* [sheets.n] */
} picture;

/* A row of panels. */
typedef struct row {
  size_t end;         /* the first panel of the next row */
  double width, high; /* of its panels; of their sheets */
  double head;        /* height of the words above the sheets: sheets of a row start at one height */
} row;

/* ---------------------------------------------------------------------- panels */

/* Write the lines of a text below each other, from y on, and return their number. Frees the text. NULL t: only count. */
static int put_lines(mgrid_text *t, double x, double y, double step, const char *class, mgrid_text *lines) {
  int n = 0;
  for (char *at = lines->len > 0 ? lines->data : NULL, *end; at; at = end ? end + 1 : NULL, n++) {
    end = strchr(at, '\n');
    if (end) *end = '\0';
    if (t) mgrid_svg_text(t, x, y + n * step, class, at);
  }
  if (t) t->failed |= lines->failed;
  mgrid_text_free(lines);
  return n;
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
  cli_put_count(t, e->family);
  if (e->family->overlapping) mgrid_text_str(t, " that share ranks");
  if (e->family->max_size < 2)
    mgrid_text_str(t, ", no communicator");
  else if (p->shares[i] >= 0)
    mgrid_text_add(t, ", shared with %s", p->content.entry[p->shares[i]].name);
  if (d->machine) mgrid_reach_text(d->machine, e->family, t);
  if (d->rank >= 0) own_groups(e->family, d->rank, t);
}

/* Write the families with the same groups but no panel, in lines of `width`. Returns the number of lines. */
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

static const mgrid_svg_sheet *sheet_of(const picture *p, int family) { return &p->laid[p->sheets.of[family]]; }

/* Words of a panel may be wider than its sheet. */
static double panel_width(const picture *p, int family) {
  mgrid_text words = { 0 };
  caption(p->d, family, &words);
  double text = (double)words.len * 6.0, name = (double)strlen(p->d->plan->content.entry[family].name) * 8.5;
  double sheet = sheet_of(p, family)->width;
  mgrid_text_free(&words);
  if (name > text) text = name;
  return text > sheet ? text : sheet;
}

static void put_panel(const picture *p, int family, double x, double y, double head, mgrid_text *t) {
  const mgrid_entry *e = &p->d->plan->content.entry[family];
  int                sheet = p->sheets.of[family];
  mgrid_text         words = { 0 };
  mgrid_text_add(t, "<g transform=\"translate(%.1f,%.1f)\">\n", x, y);
  mgrid_svg_text(t, 0, 0, "family", e->name);
  caption(p->d, family, &words);
  mgrid_svg_text(t, 0, 15, "caption", mgrid_text_chars(&words));
  put_same(p->d, family, panel_width(p, family), t);
  mgrid_text_add(t, "<g transform=\"translate(0,%.1f)\">\n<use xlink:href=\"#frames%d\"/>\n", head - 12, sheet);
  mgrid_svg_groups(&p->laid[sheet], e, p->d->rank, t);
  mgrid_text_add(t, "<use xlink:href=\"#ranks%d\"/>\n</g>\n</g>\n", sheet);
  t->failed |= words.failed;
  mgrid_text_free(&words);
}

/* Make the row that starts with panel i. */
static row row_from(const picture *p, size_t i) {
  const mgrid_drawing *d = p->d;
  row                  r = { .end = i };
  for (; r.end < d->n; r.end++) {
    int    family = d->family[r.end];
    double own = panel_width(p, family), words = HEAD + 14 * put_same(d, family, own, NULL);
    double more = r.width + (r.end > i ? BETWEEN : 0) + own, high = sheet_of(p, family)->height;
    if (r.end > i && more > PAGE) break;
    r.width = more;
    if (words > r.head) r.head = words;
    if (high > r.high) r.high = high;
  }
  return r;
}

/* Return the width: that of the widest row, or of the title. */
static double page_width(const picture *p) {
  double page = LEAST, title = 10.5 * (double)(strlen(p->d->plan->content.recipe) + 24);
  for (size_t i = 0; i < p->d->n;) {
    row r = row_from(p, i);
    if (r.width > page) page = r.width;
    i = r.end;
  }
  return title > page ? title : page;
}

/* Write all panels. Returns the y where they end. */
static double put_panels(const picture *p, double y, mgrid_text *t) {
  double bottom = 0;
  for (size_t i = 0; i < p->d->n;) {
    double x = MARGIN;
    row    r = row_from(p, i);
    for (; i < r.end; i++) {
      put_panel(p, p->d->family[i], x, y + 14, r.head, t);
      x += panel_width(p, p->d->family[i]) + BETWEEN;
    }
    bottom = y + r.head + r.high;
    y = bottom + BETWEEN;
  }
  return bottom;
}

/* ---------------------------------------------------------------------- document */

/* Write recipe, world and the parameters that differ from their defaults. Returns the y where they end. */
static double put_head(const mgrid_drawing *d, double width, mgrid_text *t) {
  const mgrid_content *c = &d->plan->content;
  mgrid_text           title = { 0 }, params = { 0 };
  double               y = MARGIN + 14;
  mgrid_text_add(&title, "%s over %" PRId64 " rank%s", *c->recipe ? c->recipe : "plan", c->world, mgrid_s_of(c->world));
  mgrid_svg_text(t, MARGIN, y, "title", mgrid_text_chars(&title));
  t->failed |= title.failed;
  for (size_t i = 0; i < c->nparams; i++) {
    if (c->param[i].usual) continue;
    title.len = 0;
    mgrid_text_add(&title, "%s=%s", c->param[i].name, c->param[i].value);
    mgrid_draw_wrap(&params, "  ", mgrid_text_chars(&title), (size_t)(width / 6));
  }
  mgrid_text_free(&title);
  return y + 16 * put_lines(t, MARGIN, y + 16, 16, "note", &params);
}

/* Write how to read the panels. Returns the y where this ends. */
static double put_reading(const picture *p, double width, double y, mgrid_text *t) {
  const mgrid_drawing *d = p->d;
  const size_t         columns = (size_t)(width / 6);
  mgrid_text           lines = { 0 }, more = { 0 };
  bool                 arrows = false, again = false;
  for (size_t i = 0; i < d->n; i++) {
    const mgrid_family *f = d->plan->content.entry[d->family[i]].family;
    arrows |= f->overlapping;
    again |= !f->overlapping && f->count > MGRID_SVG_LOOKS;
  }
  if (d->machine) {
    mgrid_draw_wrap(&lines, " ", "A box is a rank, where it runs; dashed: in no group.", columns);
    mgrid_draw_wrap(&lines, " ", "Grey groups cross no domain; the others have a colour and pattern,", columns);
    mgrid_draw_wrap(&lines, " ", "with a red edge if they cross more than the nearest ones.", columns);
  } else {
    mgrid_draw_wrap(&lines, " ",
                    "A box is a rank. The ranks of a group have one colour and pattern; dashed: in no group.", columns);
  }
  if (again) mgrid_draw_wrap(&lines, " ", "After 40 groups their looks come again.", columns);
  if (arrows) mgrid_draw_wrap(&lines, " ", "An arrow goes from a member of a group to the next.", columns);
  if (d->rank >= 0) mgrid_text_add(&more, "The thick frame is rank %" PRId64 ".", d->rank);
  if (d->rank >= 0) mgrid_draw_wrap(&lines, " ", mgrid_text_chars(&more), columns);
  for (size_t i = 0; i < p->sheets.n; i++) {
    const mgrid_sheet *sheet = &p->sheets.sheet[i];
    if (!sheet->sampled) continue;
    more.len = 0;
    mgrid_text_add(&more, "Only %" PRId64 " of %" PRId64 " ranks are drawn: ", sheet->cells, d->plan->content.world);
    mgrid_sheet_sampled_text(sheet, &more);
    mgrid_text_str(&more, ".");
    mgrid_draw_wrap(&lines, " ", mgrid_text_chars(&more), columns);
    break;
  }
  t->failed |= more.failed;
  mgrid_text_free(&more);
  return y + 16 * (put_lines(t, MARGIN, y, 16, "note", &lines) - 1);
}

static void put_document(const picture *p, mgrid_text *out) {
  mgrid_text body = { 0 };
  double     page = page_width(p), y = put_head(p->d, page, &body);
  y = put_reading(p, page, y + 17, &body);
  y = put_panels(p, y + 23, &body);
  mgrid_text_add(
      out,
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" "
      "width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<defs>\n",
      page + 2 * MARGIN, y + MARGIN, page + 2 * MARGIN, y + MARGIN);
  mgrid_svg_style(out);
  for (size_t i = 0; i < p->sheets.n; i++) mgrid_svg_sheet_put(&p->laid[i], i, out);
  mgrid_text_str(out, "</defs>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#ffffff\"/>\n");
  mgrid_text_put(out, body.data, body.len);
  mgrid_text_str(out, "</svg>\n");
  out->failed |= body.failed;
  mgrid_text_free(&body);
}

mgrid_status mgrid_draw_svg(const mgrid_drawing *d, mgrid_text *out, mgrid_error *err) {
  picture      p = { .d = d };
  mgrid_status s = mgrid_sheets_make(&p.sheets, d->plan, d->machine, d->rank, 0, err);
  if (s) return s;
  p.laid = calloc(p.sheets.n, sizeof *p.laid);
  for (size_t i = 0; i < p.sheets.n && p.laid; i++) mgrid_svg_sheet_lay(&p.laid[i], &p.sheets.sheet[i]);
  if (p.laid) put_document(&p, out);
  out->failed |= !p.laid;
  free(p.laid);
  mgrid_sheets_free(&p.sheets);
  return out->failed ? mgrid_oom(err) : MGRID_OK;
}
