/* SPDX-License-Identifier: MIT
**
** chart_html.c - a chart of time as one HTML page that needs no network: chart.html with its script, and its data as JSON
** in which the characters of markup are escaped. The page puts texts into text nodes only.
*/
#include "pictures/draw.h"
#include "plan/json.h"
#include "step/command/chart.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

static int put_piece(const char *s, size_t len, void *text) {
  mgrid_text *t = text;
  for (size_t i = 0; i < len; i++) {
    if (s[i] == '<' || s[i] == '>' || s[i] == '&')
      mgrid_text_add(t, "\\u%04x", (unsigned)s[i]);
    else
      mgrid_text_put(t, s + i, 1);
  }
  return t->failed ? -1 : 0;
}

static void put_value(json_t *v, mgrid_text *t) {
  if (!v || json_dump_callback(v, put_piece, t, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)))
    t->failed = true;
  json_decref(v);
}

/* A list, with its items by a function. */
static void put_list(mgrid_text *t, const chart *c, const char *name, size_t n,
                     json_t *(*item)(const chart *c, size_t i)) {
  mgrid_text_add(t, ",\n\"%s\":[", name);
  for (size_t i = 0; i < n; i++) {
    if (i) mgrid_text_str(t, ",");
    put_value(item(c, i), t);
  }
  mgrid_text_str(t, "]");
}

static json_t *kind_json(const chart *c, size_t i) {
  return mgrid_json_pack("{ssssss}", "name", c->kind[i].name, "colour", mgrid_chart_colour(&c->kind[i]), "sort",
                         c->kind[i].sort == CHART_COMPUTES ? "computes"
                         : c->kind[i].sort == CHART_MOVES  ? "moves"
                                                           : "waits");
}

static json_t *text_json(const chart *c, size_t i) {
  json_t *parts = json_array();
  for (int k = 0; k < c->text[i].nparts; k++)
    json_array_append_new(parts, mgrid_json_pack("[if]", c->text[i].kind[k], c->text[i].share[k]));
  return mgrid_json_pack("[so]", c->text[i].text, parts);
}

static json_t *gap_json(const chart *c, size_t i) {
  return mgrid_json_pack("[ffI]", 1e9 * c->gap[i].from, 1e9 * c->gap[i].to, (json_int_t)c->gap[i].times);
}

static json_t *row_json(const chart *c, size_t i) {
  const chart_row *r = &c->row[i];
  return mgrid_json_pack("{sssssisIsI}", "label", r->label, "stream", r->stream, "type", (int)r->type, "rank",
                         (json_int_t)r->rank, "ranks", (json_int_t)r->ranks);
}

/* Bars as numbers, five each: nanoseconds since the end of the bar before until it begins to wait, that it waits, that it
** takes; its text; who came last. */
static void put_bars(const chart *c, mgrid_text *t) {
  mgrid_text_str(t, ",\n\"bars\":[");
  for (size_t i = 0; i < c->nrows; i++) {
    int64_t last = 0;
    mgrid_text_str(t, i ? ",\n[" : "\n[");
    for (size_t k = 0; k < c->row[i].n; k++) {
      const chart_bar *b = &c->row[i].bar[k];
      int64_t          began = llround(b->began * 1e9), from = llround(b->from * 1e9), to = llround(b->to * 1e9);
      mgrid_text_add(t, "%s%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%d", k ? "," : "", began - last, from - began,
                     to - from, b->text, b->by);
      last = to;
    }
    mgrid_text_str(t, "]");
  }
  mgrid_text_str(t, "]");
}

void mgrid_chart_html(const chart *c, const char *page, mgrid_text *out) {
  const char *title = strstr(page, "@TITLE@"), *data = strstr(page, "@DATA@");
  mgrid_text_put(out, page, (size_t)(title - page));
  mgrid_draw_safe(out, c->title);
  title += strlen("@TITLE@");
  mgrid_text_put(out, title, (size_t)(data - title));
  mgrid_text_str(out, "{\"title\":");
  put_value(json_string(c->title), out);
  mgrid_text_str(out, ",\"settings\":");
  put_value(json_string(c->settings), out);
  mgrid_text_str(out, ",\"about\":");
  put_value(json_string(c->about), out);
  mgrid_text_add(out, ",\"cut\":%s,\"seconds\":", c->cut ? "true" : "false");
  put_value(json_real(c->seconds), out);
  put_list(out, c, "kinds", (size_t)c->nkinds, kind_json);
  put_list(out, c, "texts", c->ntexts, text_json);
  put_list(out, c, "rows", c->nrows, row_json);
  put_list(out, c, "gaps", c->ngaps, gap_json);
  put_bars(c, out);
  mgrid_text_str(out, "}");
  mgrid_text_str(out, data + strlen("@DATA@"));
}
