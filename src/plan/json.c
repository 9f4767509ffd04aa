/* SPDX-License-Identifier: MIT
**
** json.c - the plan as one JSON object. Every value is encoded by Jansson, but for the lists
** of ranks, which are digits and commas and grow with the world: they are written piece by
** piece, so that memory does not grow.
*/
#include "plan/plan.h"

#include <jansson.h>
#include <string.h>

enum { BUFFER = 16384, PIECE = 1024 };

typedef struct writer {
  mgrid_sink sink;
  void      *ud;
  mgrid_text text;   /* not yet given to the sink */
  bool       failed; /* the sink stopped, or a value could not be made: nothing more is written */
  bool       first;  /* no comma before the next item */
} writer;

static void flush(writer *w) {
  w->failed |= w->text.failed;
  if (!w->failed && w->text.len > 0) w->failed = w->sink(w->ud, w->text.data, w->text.len) != 0;
  w->text.len = 0;
}

static int put_piece(const char *text, size_t len, void *ud) {
  writer *w = ud;
  mgrid_text_put(&w->text, text, len);
  if (w->text.len > BUFFER) flush(w);
  return w->failed ? -1 : 0;
}

static void put(writer *w, const char *text) { put_piece(text, strlen(text), w); }

/* Encodes and releases value; a value that could not be made is a failure. */
static void put_value(writer *w, json_t *value) {
  if (!value || json_dump_callback(value, put_piece, w, JSON_COMPACT | JSON_ENCODE_ANY) != 0) w->failed = true;
  json_decref(value);
}

static void item(writer *w, const char *between) {
  if (!w->first) put(w, ",");
  put(w, between);
  w->first = false;
}

static void key(writer *w, const char *indent, const char *name) {
  item(w, indent);
  put_value(w, json_string(name));
  put(w, ": ");
}

static void open(writer *w, const char *bracket) {
  put(w, bracket);
  w->first = true;
}

static void close(writer *w, const char *bracket) {
  put(w, bracket);
  w->first = false;
}

static void put_field(writer *w, const char *name, json_t *value) {
  key(w, w->first ? "" : " ", name);
  put_value(w, value);
}

/* Parameters are text: if the text is JSON (a number, true, a list) print it as it is, else as a string. */
static json_t *param_value(const char *text) {
  json_error_t why;
  json_t      *value = json_loads(text, JSON_DECODE_ANY, &why);
  return value || !*why.text ? value : json_string(text); /* without a fault: no memory */
}

static void put_ranks(writer *w, const mgrid_family *f, int64_t group) {
  int32_t piece[PIECE];
  int64_t size = mgrid_family_size(f, group);
  put(w, "[");
  for (int64_t at = 0; at < size && !w->failed; at += PIECE) {
    int64_t n = size - at < PIECE ? size - at : PIECE;
    mgrid_family_slice(f, group, at, n, piece);
    for (int64_t i = 0; i < n; i++) {
      if (at + i > 0) mgrid_text_put(&w->text, ",", 1);
      mgrid_text_int(&w->text, piece[i]);
    }
    if (w->text.len > BUFFER) flush(w);
  }
  put(w, "]");
}

/* A path may be any bytes; JSON is UTF-8. */
static json_t *path_value(const char *path) {
  char shown[4096];
  if (!mgrid_is_shown(path, strlen(path))) mgrid_shown(shown, sizeof shown, path, strlen(path)), path = shown;
  return json_string(path);
}

static void put_head(writer *w, const mgrid_plan *p, int64_t rank) {
  const mgrid_content *c = &p->content;
  key(w, "\n  ", "recipe");
  put_value(w, *c->recipe ? path_value(c->recipe) : json_null());
  key(w, "\n  ", "world");
  put_value(w, json_integer(c->world));
  if (rank >= 0) {
    key(w, "\n  ", "rank");
    put_value(w, json_integer(rank));
  }
  key(w, "\n  ", "params");
  open(w, "{");
  for (size_t i = 0; i < c->nparams; i++) put_field(w, c->param[i].name, param_value(c->param[i].value));
  close(w, "}");
  key(w, "\n  ", "grids");
  open(w, "{");
  for (size_t i = 0; i < c->ngrids; i++) {
    const mgrid_grid *g = c->grid[i].grid;
    key(w, "\n    ", c->grid[i].name);
    open(w, "{");
    if (!g->order) put_field(w, "offset", json_integer(g->window.offset));
    put_field(w, "size", json_integer(g->size));
    if (g->order && rank < 0) {
      key(w, " ", "ranks");
      put_ranks(w, g->order, 0);
    }
    key(w, " ", rank < 0 ? "dims" : "coords");
    open(w, rank < 0 ? "[" : "{");
    for (size_t d = 0; d < g->n; d++) {
      if (rank < 0) {
        item(w, w->first ? "" : " ");
        put_value(w, json_pack("[sI]", g->axis[d].name, (json_int_t)g->axis[d].size));
      } else {
        int64_t at = mgrid_grid_coord(g, rank, d);
        put_field(w, g->axis[d].name, at < 0 ? json_null() : json_integer(at));
      }
    }
    close(w, rank < 0 ? "]}" : "}}");
  }
  close(w, "}");
  key(w, "\n  ", "concurrent");
  open(w, "[");
  for (size_t i = 0; i < c->nconcurrent; i++) {
    item(w, w->first ? "" : " ");
    open(w, "[");
    for (size_t k = 0; k < c->concurrent[i].n; k++) {
      item(w, "");
      put_value(w, json_string(c->concurrent[i].name[k]));
    }
    close(w, "]");
  }
  close(w, "]");
}

static void put_integers(writer *w, const char *name, size_t n, const int64_t *list) {
  key(w, " ", name);
  put(w, "[");
  for (size_t i = 0; i < n; i++) {
    if (i) mgrid_text_put(&w->text, ",", 1);
    mgrid_text_int(&w->text, list[i]);
  }
  put(w, "]");
}

/* The runs of a rank's part on each axis: [[start, length], ...]. */
static void put_runs(writer *w, const mgrid_tensor *t, int64_t rank) {
  mgrid_seat at;
  if (!mgrid_tensor_seat(t, rank, &at)) return;
  key(w, " ", "runs");
  open(w, "[");
  for (size_t i = 0; i < t->naxes; i++) {
    mgrid_run run;
    item(w, "");
    open(w, "[");
    for (mgrid_walk walk = mgrid_walk_begin(&t->axis[i], at.piece[i]); mgrid_walk_next(&walk, &run) && !w->failed;) {
      item(w, "");
      put(w, "[");
      mgrid_text_int(&w->text, run.start);
      put(w, ",");
      mgrid_text_int(&w->text, run.length);
      put(w, "]");
    }
    close(w, "]");
  }
  close(w, "]");
}

/* What a cut leaves empty, where it does: how many ranks, and a note of each such axis. */
static void put_hollow(writer *w, const mgrid_tensor *t) {
  mgrid_text note = { 0 };
  size_t     n = 0;
  for (size_t i = 0; i < t->naxes; i++) {
    note.len = 0;
    if (!mgrid_axis_hollow(t, i, NULL, &note)) continue;
    if (n++ == 0) {
      put_field(w, "empty", json_integer(mgrid_tensor_hollow(t)));
      key(w, " ", "notes");
      open(w, "[");
    }
    item(w, "");
    w->text.failed |= note.failed;
    put_value(w, note.failed ? NULL : json_string(note.data));
  }
  if (n) close(w, "]");
  mgrid_text_free(&note);
}

/* All tensors, or the parts of a rank: null where it has none. */
static void put_tensors(writer *w, const mgrid_plan *p, int64_t rank) {
  const mgrid_content *c = &p->content;
  if (c->ntensors == 0) return; /* most plans have none */
  key(w, "\n  ", "tensors");
  open(w, "{");
  for (size_t i = 0; i < c->ntensors; i++) {
    const mgrid_tensor *t = c->tensor[i].tensor;
    mgrid_tensor_part   part;
    key(w, "\n    ", c->tensor[i].name);
    if (rank >= 0) mgrid_tensor_part_of(t, rank, &part);
    if (rank >= 0 && !part.held) {
      put(w, "null");
      continue;
    }
    open(w, "{");
    if (rank >= 0) {
      put_integers(w, "shape", part.naxes, part.shape);
      put_field(w, "bytes", json_integer(part.bytes));
      put_field(w, "copy", json_integer(part.copy));
      if (t->flat)
        put_field(w, "flat",
                  json_pack("{sI sI sI sI}", "first", (json_int_t)part.first, "elements", (json_int_t)part.elements,
                            "offset", (json_int_t)part.offset, "slice", (json_int_t)part.slice));
      put_runs(w, t, rank);
    } else {
      put_field(w, "type", json_string(t->type));
      key(w, " ", "axes");
      open(w, "[");
      for (size_t a = 0; a < t->naxes; a++) {
        item(w, w->first ? "" : " ");
        put_value(w, json_pack("[sI]", t->axis[a].name, (json_int_t)t->axis[a].length));
      }
      close(w, "]");
      mgrid_text rule = { 0 };
      mgrid_tensor_text(t, &rule);
      w->text.failed |= rule.failed;
      put_field(w, "rule", rule.failed ? NULL : json_string(rule.data));
      mgrid_text_free(&rule);
      put_field(w, "bytes", json_integer(t->bytes));
      put_field(w, "largest", json_integer(mgrid_tensor_largest(t)));
      put_field(w, "copies", json_integer(t->copies));
      put_field(w, "holders", json_integer(mgrid_tensor_holders(t)));
      put_hollow(w, t);
    }
    close(w, "}");
  }
  close(w, "\n  }");
}

static void put_digest(writer *w, const mgrid_plan *p) {
  char digest[33];
  mgrid_plan_digest(p, digest);
  key(w, "\n  ", "digest");
  put_value(w, json_string(digest));
}

static json_t *option_value(const mgrid_choice *c, const mgrid_option *row) {
  const void *at = mgrid_option_at(&c->asked, row);
  switch (row->kind) {
  case MGRID_OPTION_FLAG: return json_boolean(*(const bool *)at);
  case MGRID_OPTION_SECONDS: return json_real(*(const double *)at);
  case MGRID_OPTION_WORD:
  case MGRID_OPTION_FIELDS:
  case MGRID_OPTION_SHAPE:
  case MGRID_OPTION_NUMBERS:
  case MGRID_OPTION_NAME: return json_string(*(const char *const *)at);
  }
  return NULL;
}

static void put_options(writer *w, const mgrid_choice *c) {
  key(w, " ", "options");
  open(w, "{");
  for (const mgrid_option *row = mgrid_option_table; row->name; row++)
    if (mgrid_choice_has(c, row)) put_field(w, row->name, option_value(c, row));
  if (c->lane > 0) put_field(w, "lane", json_integer(c->lane));
  close(w, "}");
}

/* Families that share a communicator, and what each would take apart. */
static void put_sharing(writer *w, const mgrid_plan *p, const mgrid_site *site) {
  const mgrid_content *c = &p->content;
  key(w, "\n  ", "sharing");
  open(w, "[");
  for (size_t i = 0; i < c->nentries; i++) {
    mgrid_demand more;
    mgrid_text   unused = { 0 };
    bool         shares = mgrid_plan_sharers(p, (int)i, " ", &unused);
    w->text.failed |= unused.failed;
    mgrid_text_free(&unused);
    if (!shares) continue;
    item(w, "\n    ");
    open(w, "{");
    key(w, "", "families");
    open(w, "[");
    for (size_t k = 0; k < c->nentries; k++) {
      if (k != i && p->shares[k] != (int)i) continue;
      item(w, "");
      put_value(w, json_string(c->entry[k].name));
    }
    close(w, "]");
    mgrid_entry_demand(&c->entry[i], c->entry[i].family->max_size, 1, site, &more);
    put_field(w, "apart_created", json_integer(more.created));
    put_field(w, "apart_ring", json_integer(more.ring));
    close(w, "}");
  }
  close(w, "]");
}

static void put_resources(writer *w, const mgrid_resources *r, const mgrid_site *site) {
  key(w, "\n  ", "resources");
  open(w, "{");
  put_field(w, "machine_ranks", json_integer(site->machine_ranks));
  put_field(w, "sampled", json_boolean(r->sampled));
  put_field(w, "communicators", json_integer(r->communicators));
  put_field(w, "created", json_integer(r->created));
  put_field(w, "nvls_created", json_integer(r->nvls_created));
  put_field(w, "ring", json_integer(r->ring));
  put_field(w, "tree", json_integer(r->tree));
  put_field(w, "nvls", json_integer(r->nvls));
  put_field(w, "p2p", json_integer(r->p2p));
  put_field(w, "blocks", json_integer(r->blocks));
  put_field(w, "nvls_slots", json_integer(r->nvls_slots));
  put_field(w, "files", json_integer(r->files));
  close(w, "}");
}

static void put_all(writer *w, const mgrid_plan *p, const mgrid_resources *r) {
  static const char *const coverage[] = { "partition", "partial", "cover" };
  key(w, "\n  ", "families");
  open(w, "{");
  for (size_t i = 0; i < p->content.nentries; i++) {
    const mgrid_entry  *e = &p->content.entry[i];
    const mgrid_family *f = e->family;
    key(w, "\n    ", e->name);
    open(w, "{");
    put_field(w, "count", json_integer(f->count));
    put_field(w, "size", f->size >= 0 ? json_integer(f->size) : json_null());
    put_field(w, "coverage", json_string(coverage[mgrid_family_coverage(f)]));
    put_field(w, "launch_order", json_integer(p->launch[i]));
    put_field(w, "shares", p->shares[i] < 0 ? json_null() : json_string(p->content.entry[p->shares[i]].name));
    put_options(w, e->choice);
    key(w, " ", "groups");
    open(w, "[");
    for (int64_t g = 0; g < f->count && !w->failed; g++) {
      item(w, "");
      put_ranks(w, f, g);
    }
    close(w, "]}");
  }
  close(w, "\n  }");
  mgrid_plan_counts n = MGRID_PLAN_COUNTS_INIT;
  mgrid_plan_count(p, &n, NULL);
  key(w, "\n  ", "communicators");
  open(w, "{");
  put_field(w, "total", json_integer(n.communicators));
  put_field(w, "groups", json_integer(n.groups));
  put_field(w, "singles", json_integer(n.singles));
  key(w, " ", "gpu_memory");
  open(w, "{");
  put_field(w, "communicators", json_integer(r->communicators));
  put_field(w, "created", json_integer(r->created));
  put_field(w, "first_use", json_integer(r->ring));
  close(w, "}");
  key(w, " ", "by_family");
  open(w, "{");
  for (size_t k = 0; k < p->content.nentries; k++) {
    int64_t led = mgrid_plan_led(p, p->order[k], -1, NULL);
    if (led > 0) put_field(w, p->content.entry[p->order[k]].name, json_integer(led));
  }
  close(w, "}}");
}

static void put_membership(writer *w, const mgrid_plan *p, const mgrid_member *m) {
  open(w, "{");
  put_field(w, "index", json_integer(m->group));
  put_field(w, "position", json_integer(m->position));
  put_field(w, "size", json_integer(m->size));
  put_field(w, "communicator", m->comm < 0 ? json_null() : json_integer(m->comm));
  put_field(w, "launch_order", json_integer(mgrid_plan_launch(p, m->entry, m->group)));
  key(w, " ", "ranks");
  put_ranks(w, p->content.entry[m->entry].family, m->group);
  close(w, "}");
}

/* The rank's group of each family: a group or null; for a cover a list of groups. */
static void put_rank(writer *w, const mgrid_plan *p, const mgrid_view *v) {
  size_t at = 0;
  key(w, "\n  ", "families");
  open(w, "{");
  for (size_t i = 0; i < p->content.nentries; i++) {
    bool cover = p->content.entry[i].family->overlapping, any = false;
    key(w, "\n    ", p->content.entry[i].name);
    if (cover) open(w, "[");
    for (; at < v->nmembers && v->member[at].entry == (int)i; at++) {
      if (cover) item(w, "");
      put_membership(w, p, &v->member[at]);
      any = true;
    }
    if (cover)
      close(w, "]");
    else if (!any)
      put(w, "null");
  }
  close(w, "\n  }");
  key(w, "\n  ", "communicators");
  open(w, "[");
  for (size_t i = 0; i < v->ncomms; i++) {
    const mgrid_creation *c = &v->comm[i];
    item(w, "\n    ");
    open(w, "{");
    put_field(w, "family", json_string(p->content.entry[c->entry].name));
    put_field(w, "index", json_integer(c->group));
    put_field(w, "position", json_integer(c->position));
    put_field(w, "size", json_integer(c->size));
    put_options(w, p->content.entry[c->entry].choice);
    close(w, "}");
  }
  close(w, "]");
}

mgrid_status mgrid_plan_print_json(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud, mgrid_error *err) {
  const mgrid_site site = MGRID_SITE_INIT;
  return p ? mgrid_plan_json_at(p, rank, &site, sink, ud, err) : MGRID_USAGE;
}

mgrid_status mgrid_plan_json_at(const mgrid_plan *p, int64_t rank, const mgrid_site *site, mgrid_sink sink, void *ud,
                                mgrid_error *err) {
  if (mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  writer          w = { .sink = sink, .ud = ud, .first = true };
  mgrid_view      v = { 0 };
  mgrid_resources r = MGRID_RESOURCES_INIT;
  mgrid_status    s = mgrid_plan_resources(p, rank, site, &r, err);
  if (!s && rank >= 0) s = mgrid_view_init(&v, p, rank, err);
  if (s) return s;
  open(&w, "{");
  put_head(&w, p, rank);
  if (rank < 0) {
    put_all(&w, p, &r);
    put_sharing(&w, p, site);
  } else {
    put_rank(&w, p, &v);
  }
  put_resources(&w, &r, site);
  put_tensors(&w, p, rank);
  put_digest(&w, p);
  close(&w, "\n}\n");
  flush(&w);
  bool no_memory = w.text.failed;
  mgrid_text_free(&w.text);
  mgrid_view_free(&v);
  if (no_memory) return mgrid_oom(err);
  return w.failed ? mgrid_unwritten(err) : MGRID_OK;
}
