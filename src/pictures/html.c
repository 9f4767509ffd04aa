/* SPDX-License-Identifier: MIT
**
** html.c - plans as one HTML page that needs no network: page.html with its scripts, and its data as JSON. The page puts a
** user's texts into text nodes only, and the characters of markup are escaped in the JSON.
*/
#include "pictures/draw.h"
#include "plan/json.h"

#include <string.h>

/* An mgrid_sink: escape JSON for a <script>. */
static int put_json(void *text, const char *s, size_t len) {
  mgrid_text *t = text;
  for (size_t i = 0; i < len; i++) {
    if (s[i] == '<' || s[i] == '>' || s[i] == '&')
      mgrid_text_add(t, "\\u%04x", s[i]);
    else
      mgrid_text_put(t, s + i, 1);
  }
  return t->failed ? -1 : 0;
}

static int put_piece(const char *s, size_t len, void *text) { return put_json(text, s, len); }

/* Write a value and release it. */
static void put_value(mgrid_text *t, json_t *v) {
  if (!v || json_dump_callback(v, put_piece, t, JSON_COMPACT | JSON_ENCODE_ANY)) t->failed = true;
  json_decref(v);
}

static json_t *part_json(const mgrid_part *part) {
  json_t *levels = json_array(), *ranks = json_array();
  for (int i = 0; i < part->n; i++)
    json_array_append_new(levels, mgrid_json_pack("[sI]", part->level[i].name, (json_int_t)part->level[i].size));
  for (int64_t i = 0; i < part->cells; i++) json_array_append_new(ranks, json_integer(mgrid_part_rank(part, i)));
  return mgrid_json_pack("{sssoso}", "name", part->name, "levels", levels, "ranks", ranks);
}

/* Write where ranks are drawn: "sheets", and the "sheet_of" each family. */
static mgrid_status put_sheets(const mgrid_plan *p, bool places, mgrid_text *t, mgrid_error *err) {
  mgrid_sheets               sheets;
  const mgrid_machine_model *m = places ? mgrid_plan_machine(p) : NULL;
  mgrid_status               s = mgrid_sheets_make(&sheets, p, m, -1, 0, err);
  if (!s && m && sheets.sheet->cells != p->content.world) { /* the page draws no empty places */
    mgrid_sheets_free(&sheets);
    s = mgrid_sheets_make(&sheets, p, NULL, -1, 0, err);
  }
  if (s) return s;
  json_t *all = json_array(), *of = json_array();
  for (size_t i = 0; i < sheets.n; i++) {
    json_t *parts = json_array();
    for (int k = 0; k < sheets.sheet[i].nparts; k++) json_array_append_new(parts, part_json(&sheets.sheet[i].part[k]));
    json_array_append_new(all, mgrid_json_pack("{so}", "parts", parts));
  }
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) json_array_append_new(of, json_integer(sheets.of[i]));
  mgrid_sheets_free(&sheets);
  mgrid_text_str(t, ",\"sheets\":");
  put_value(t, all);
  mgrid_text_str(t, ",\"sheet_of\":");
  put_value(t, of);
  return MGRID_OK;
}

/* Write for each grid its name, its dims, and the coordinates of each rank; null for a rank outside. */
static json_t *coords_json(const mgrid_plan *p) {
  json_t *all = json_array();
  for (size_t i = 0; i < p->content.ngrids; i++) {
    const mgrid_grid *g = p->content.grid[i].grid;
    json_t           *dims = json_array(), *ranks = json_array();
    for (size_t d = 0; d < mgrid_grid_ndims(g); d++)
      json_array_append_new(dims, json_string(mgrid_grid_dim(g, d).name));
    for (int64_t r = 0; r < p->content.world; r++) {
      json_t *one = mgrid_grid_position(g, r) < 0 ? json_null() : json_array();
      for (size_t d = 0; d < mgrid_grid_ndims(g) && json_is_array(one); d++)
        json_array_append_new(one, json_integer(mgrid_grid_coord(g, r, d)));
      json_array_append_new(ranks, one);
    }
    json_array_append_new(all, mgrid_json_pack("[soo]", p->content.grid[i].name, dims, ranks));
  }
  return all;
}

/* Write for each rank the communicators that it creates, in order: [family, group]. */
static mgrid_status put_creations(const mgrid_plan *p, mgrid_text *t, mgrid_error *err) {
  json_t      *all = json_array(), *order = json_array(), *rounds = json_array();
  mgrid_status s = MGRID_OK;
  for (int64_t r = 0; r < p->content.world && !s; r++) {
    mgrid_view v;
    if ((s = mgrid_view_init(&v, p, r, err))) break;
    json_t *one = json_array();
    for (size_t i = 0; i < v.ncomms; i++)
      json_array_append_new(one, mgrid_json_pack("[iI]", v.comm[i].entry, (json_int_t)v.comm[i].group));
    json_array_append_new(all, one);
    mgrid_view_free(&v);
  }
  for (size_t i = 0; i < p->content.nentries; i++) {
    const mgrid_family *f = p->content.entry[i].family;
    json_t             *one = mgrid_family_rounds(f) > 1 ? json_array() : json_null();
    for (int64_t g = 0; g < f->count && json_is_array(one); g++)
      json_array_append_new(one, json_integer(mgrid_family_round(f, g)));
    json_array_append_new(order, json_integer(p->order[i]));
    json_array_append_new(rounds, one);
  }
  mgrid_text_str(t, ",\"creates\":");
  put_value(t, all);
  mgrid_text_str(t, ",\"order\":");
  put_value(t, order);
  mgrid_text_str(t, ",\"rounds\":");
  put_value(t, rounds);
  return s;
}

/* Write the parameters that differ from their defaults: "tp=8". */
static json_t *given_json(const mgrid_content *c) {
  json_t *all = json_array();
  for (size_t i = 0; i < c->nparams; i++)
    if (!c->param[i].usual) json_array_append_new(all, json_sprintf("%s=%s", c->param[i].name, c->param[i].value));
  return all;
}

static mgrid_status put_frame(const mgrid_frame_of_page *f, bool places, mgrid_text *t, mgrid_error *err) {
  if (!f->plan) {
    mgrid_text_str(t, "{\"error\":");
    put_value(t, json_string(f->error ? f->error : ""));
    mgrid_text_str(t, ",\"plan\":null,\"steps\":[],\"creates\":[]}");
    return MGRID_OK;
  }
  mgrid_text_str(t, "{\"plan\":");
  mgrid_status s = mgrid_plan_print_json(f->plan, -1, put_json, t, err);
  if (!s) s = put_sheets(f->plan, places, t, err);
  if (!s) s = put_creations(f->plan, t, err);
  mgrid_text_str(t, ",\"given\":");
  put_value(t, given_json(&f->plan->content));
  mgrid_text_str(t, ",\"coords\":");
  put_value(t, coords_json(f->plan));
  mgrid_text_str(t, "}");
  return s;
}

mgrid_status mgrid_draw_html(const mgrid_page *page, mgrid_text *out, mgrid_error *err) {
  const char  *title = strstr(page->html, "@TITLE@"), *data = strstr(page->html, "@DATA@");
  mgrid_status s = MGRID_OK;
  mgrid_text_put(out, page->html, (size_t)(title - page->html));
  mgrid_draw_safe(out, page->recipe);
  title += strlen("@TITLE@");
  mgrid_text_put(out, title, (size_t)(data - title));
  mgrid_text_str(out, "{\"recipe\":");
  put_value(out, mgrid_json_path(page->recipe));
  mgrid_text_str(out, ",\"axes\":");
  put_value(out, json_incref((json_t *)(uintptr_t)page->axes));
  mgrid_text_str(out, ",\"frames\":[");
  for (size_t i = 0; i < page->n && !s; i++) {
    if (i) mgrid_text_str(out, ",");
    s = put_frame(&page->frame[i], page->places, out, err);
  }
  mgrid_text_str(out, "]}");
  mgrid_text_str(out, data + strlen("@DATA@"));
  return s ? s : out->failed ? mgrid_oom(err) : MGRID_OK;
}
