/* SPDX-License-Identifier: MIT
**
** plan_print.c - the plan as text and as JSON: the canonical lines, the rules of which the digest
** is made, the schedule, and one JSON object with all of it. The output goes to a sink piece by
** piece, so memory does not grow with it.
*/
#include "plan/json.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

/* ============================================================ text and rules */

enum { FULL = 16384 }; /* bytes of text after which the sink is called */

/* -------------------------------------------------------------------- lines */

/* The parts of a plan. Each part has a line in the canonical text, and a rule. First come the
** world, parameters, functions and grids, then the families, then lists of concurrent families and
** items; each kind is in the order of its calls. So a rule names only parts before it. */
size_t mgrid_plan_first_family(const mgrid_plan *p) {
  return 1 + p->content.nparams + p->content.ncalled + p->content.ngrids;
}

size_t mgrid_plan_first_list(const mgrid_plan *p) {
  return mgrid_plan_first_family(p) + p->content.nentries;
}
size_t mgrid_plan_nlines(const mgrid_plan *p) {
  return mgrid_plan_first_list(p) + p->content.nconcurrent + p->content.nitems;
}

static void put_pair(const char *word, const char *name, const char *value, mgrid_text *t) {
  mgrid_text_str(t, word);
  mgrid_text_str(t, name);
  mgrid_text_str(t, " = ");
  mgrid_text_str(t, value);
}

static void print_put_name(const char *word, const char *name, mgrid_text *t) {
  mgrid_text_str(t, word);
  mgrid_text_str(t, " ");
  mgrid_text_str(t, name);
  mgrid_text_str(t, ": ");
}

void mgrid_plan_line(const mgrid_plan *p, size_t i, mgrid_text *t) {
  const mgrid_content *c = &p->content;

  if (i == 0) {
    mgrid_text_str(t, "world ");
    mgrid_text_int(t, c->world);
  } else if ((i -= 1) < c->nparams) {
    put_pair("param ", c->param[i].name, c->param[i].value, t);
  } else if ((i -= c->nparams) < c->ncalled) {
    put_pair("function ", c->called[i].name, c->called[i].version, t);
  } else if ((i -= c->ncalled) < c->ngrids) {
    print_put_name("grid", c->grid[i].name, t);
    mgrid_grid_text(c->grid[i].grid, t);
  } else if ((i -= c->ngrids) < c->nentries) {
    print_put_name("family", c->entry[i].name, t);
    mgrid_family_text(c->entry[i].family, t);
    mgrid_text_str(t, c->entry[i].choice->text);
  } else if ((i -= c->nentries) < c->nconcurrent) {
    mgrid_text_str(t, "concurrent ");
    mgrid_concurrent_text(&c->concurrent[i], " ", t);
  } else if (!mgrid_item_unread(&c->item[i -= c->nconcurrent])) {
    print_put_name(c->item[i].kind->name, c->item[i].name, t);
    c->item[i].kind->text(c->item[i].x, t);
  } else {
    return;
  }
  mgrid_text_str(t, "\n");
}

/* Print the lines from `first` to `end` - 1. */
static mgrid_status print_lines(const mgrid_plan *p, size_t first, size_t end, mgrid_text *t,
                                mgrid_sink sink, void *ud, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = first; i < end && !s; i++) {
    mgrid_plan_line(p, i, t);
    if (t->failed || t->len >= FULL || i + 1 == end) s = mgrid_text_flush(t, sink, ud, err);
  }
  return s;
}

mgrid_status mgrid_plan_print(const mgrid_plan *p, mgrid_sink sink, void *ud, mgrid_error *err) {
  if (!p || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  const size_t families = mgrid_plan_first_family(p), lists = mgrid_plan_first_list(p);
  mgrid_text t = { 0 };
  mgrid_text_str(&t, "moongrid 1\n");
  mgrid_status s = print_lines(p, 0, families, &t, sink, ud, err);
  if (!s) s = print_lines(p, lists, mgrid_plan_nlines(p), &t, sink, ud, err);
  if (!s) s = print_lines(p, families, lists, &t, sink, ud, err);
  mgrid_text_free(&t);
  return s;
}

/* -------------------------------------------------------------------- rules */

/* Append the beginning of a rule: {"WORD":"NAME". */
static void put_word(const char *word, const char *name, mgrid_text *t) {
  mgrid_text_str(t, "{\"");
  mgrid_text_str(t, word);
  mgrid_text_str(t, "\":");
  mgrid_text_quoted(t, name);
}

static void put_value(const char *name, const char *value, mgrid_text *t) {
  mgrid_text_str(t, name);
  mgrid_text_quoted(t, value);
}

/* Append the options that are given, without the lane. Seconds are whole microseconds. */
static void print_options_text(const mgrid_choice *c, mgrid_text *t) {
  bool any = false;
  for (const mgrid_option *row = mgrid_option_table; row->name; row++) {
    const void *field = mgrid_option_at(&c->asked, row);
    if (!mgrid_choice_has(c, row)) continue;
    mgrid_text_str(t, any ? ",\"" : ",\"options\":{\"");
    mgrid_text_str(t, row->name);
    any = true;
    if (row->kind == MGRID_OPTION_SECONDS) {
      mgrid_text_str(t, "_us\":");
      mgrid_text_int(t, llround(*(const double *)field * 1e6));
    } else if (row->kind == MGRID_OPTION_FLAG) {
      mgrid_text_str(t, "\":true");
    } else {
      put_value("\":", *(const char *const *)field, t);
    }
  }
  if (any) mgrid_text_str(t, "}");
}

static void print_put_list(const mgrid_concurrent *list, mgrid_text *t) {
  for (size_t i = 0; i < list->n; i++) {
    mgrid_text_str(t, i ? "," : "{\"concurrent\":[");
    mgrid_text_quoted(t, list->name[i]);
  }
  mgrid_text_str(t, "]");
}

static void print_put_item(const mgrid_content *c, size_t i, mgrid_text *t) {
  const mgrid_item_kind *kind = c->item[i].kind;
  mgrid_text text = { 0 };
  if (kind->rule) {
    kind->rule(c, i, t);
    return;
  }
  kind->text(c->item[i].x, &text);
  t->failed |= text.failed;
  put_value(",\"text\":", mgrid_text_chars(&text), t);
  mgrid_text_free(&text);
}

bool mgrid_plan_rule(const mgrid_plan *p, size_t i, mgrid_text *t) {
  const mgrid_content *c = &p->content;

  if (i == 0) {
    mgrid_text_str(t, "{\"world\":");
    mgrid_text_int(t, c->world);
  } else if ((i -= 1) < c->nparams) {
    put_word("param", c->param[i].name, t);
    put_value(",\"value\":", c->param[i].value, t);
  } else if ((i -= c->nparams) < c->ncalled) {
    put_word("function", c->called[i].name, t);
    put_value(",\"version\":", c->called[i].version, t);
  } else if ((i -= c->ncalled) < c->ngrids) {
    put_word("grid", c->grid[i].name, t);
    mgrid_text_str(t, ",");
    mgrid_grid_json(c->grid[i].grid, t);
  } else if ((i -= c->ngrids) < c->nentries) {
    put_word("family", c->entry[i].name, t);
    mgrid_text_str(t, ",\"rule\":");
    mgrid_family_json(c->entry[i].family, t);
    print_options_text(c->entry[i].choice, t);
  } else if ((i -= c->nentries) < c->nconcurrent) {
    print_put_list(&c->concurrent[i], t);
  } else if (!mgrid_item_unread(&c->item[i -= c->nconcurrent])) {
    put_word(c->item[i].kind->name, c->item[i].name, t);
    print_put_item(c, i, t);
  } else {
    return false;
  }
  mgrid_text_str(t, "}");
  return true;
}

int mgrid_plan_sharer(const mgrid_plan *p, int entry, int from) {
  for (size_t i = (size_t)from; i < p->content.nentries; i++)
    if (p->shares[i] == entry && p->content.entry[i].family->max_size > 1) return (int)i;
  return -1;
}

/* ------------------------------------------------------------------ digest */

mgrid_status mgrid_plan_take_digest(mgrid_plan *p, mgrid_error *err) {
  XXH3_state_t *state = XXH3_createState();
  mgrid_text t = { 0 };
  if (!state) return mgrid_oom(err);
  XXH3_128bits_reset(state);
  for (size_t i = 0, n = mgrid_plan_nlines(p); i < n && !t.failed; i++) {
    if (mgrid_plan_rule(p, i, &t)) mgrid_text_str(&t, "\n");
    if (t.failed || (t.len < FULL && i + 1 < n)) continue;
    XXH3_128bits_update(state, t.data, t.len);
    t.len = 0;
  }
  XXH128_hash_t h = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  const bool failed = t.failed;
  mgrid_text_free(&t);
  p->digest[0] = h.high64;
  p->digest[1] = h.low64;
  return failed ? mgrid_oom(err) : MGRID_OK;
}

void mgrid_plan_digest(const mgrid_plan *p, char out[33]) {
  if (out)
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, p ? p->digest[0] : 0, p ? p->digest[1] : 0);
}

/* ---------------------------------------------------------------- schedule */

static mgrid_status print_all_steps(const mgrid_plan *p, mgrid_sink sink, void *ud,
                                    mgrid_error *err) {
  int step = 0;
  mgrid_text t = { 0 };
  mgrid_status s = MGRID_OK;

  for (size_t k = 0; k < p->content.nentries && !s; k++) {
    const mgrid_entry *e = &p->content.entry[p->order[k]];
    const mgrid_family *f = e->family;
    if (f->max_size < 2) {
      mgrid_text_add(&t, "       %-16s groups of one rank: no communicator\n", e->name);
    } else if (e->choice->none) {
      mgrid_text_add(&t, "       %-16s backend none: no communicator\n", e->name);
    } else if (p->shares[p->order[k]] >= 0) {
      mgrid_text_add(&t, "       %-16s shares with %s\n", e->name,
                     p->content.entry[p->shares[p->order[k]]].name);
    } else {
      int64_t rounds = mgrid_family_rounds(f), of_round[MGRID_ROUNDS_MAX];
      mgrid_plan_led_by_round(p, p->order[k], of_round, NULL);
      for (int64_t r = 0; r < rounds; r++) {
        int64_t led = of_round[r];
        /* nothing to create: earlier groups lead all groups of this round */
        if (led == 0) continue;
        mgrid_text_add(&t, "%5d  %-16s ", step++, e->name);
        if (rounds > 1) mgrid_text_add(&t, "round %" PRId64 ": ", r);
        mgrid_text_add(&t, "%" PRId64 " communicator%s at once, ", led, mgrid_s_of(led));
        if (f->size >= 0)
          mgrid_text_add(&t, "%" PRId64 " ranks each%s\n", f->size,
                         e->choice->asked.lazy ? ", when asked for" : "");
        else
          mgrid_text_add(&t, "up to %" PRId64 " ranks%s\n", f->max_size,
                         e->choice->asked.lazy ? ", when asked for" : "");
      }
    }
    s = mgrid_text_flush(&t, sink, ud, err);
  }
  mgrid_text_free(&t);
  return s;
}

static mgrid_status print_rank_steps(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud,
                                     mgrid_error *err) {
  mgrid_view v;
  mgrid_text t = { 0 };
  mgrid_status s = mgrid_view_init(&v, p, rank, err);
  for (size_t i = 0; i < v.ncomms && !s; i++) {
    const mgrid_creation *c = &v.comm[i];
    mgrid_text_add(&t, "%5zu  %s[%" PRId64 "] as %" PRId64 " of %" PRId64 ", for:", i,
                   p->content.entry[c->entry].name, c->group, c->position, c->size);
    for (size_t m = 0; m < v.nmembers; m++)
      if (v.member[m].comm == (int)i)
        mgrid_text_add(&t, " %s", p->content.entry[v.member[m].entry].name);
    mgrid_text_add(&t, "\n");
    s = mgrid_text_flush(&t, sink, ud, err);
  }
  mgrid_text_free(&t);
  mgrid_view_free(&v);
  return s;
}

mgrid_status mgrid_plan_print_schedule(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud,
                                       mgrid_error *err) {
  if (!p || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  return rank < 0 ? print_all_steps(p, sink, ud, err) : print_rank_steps(p, rank, sink, ud, err);
}

/* ====================================================================== JSON */

enum { PIECE = 1024 };

/* Return the value of a parameter that is not declared as text: what its text is as JSON (a number,
** true, a list), else a string. */
static json_t *param_value(const mgrid_param *p) {
  const char *text = p->value;
  json_error_t why;
  if (p->text || mgrid_json_deep(text, strlen(text), MGRID_JSON_DEEP)) return json_string(text);
  json_t *value = json_loads(text, JSON_DECODE_ANY, &why);
  /* NULL without a fault means out of memory */
  return value || !*why.text ? value : json_string(text);
}

static void print_put_ranks(mgrid_json *w, const mgrid_family *f, int64_t group) {
  int32_t piece[PIECE];
  int64_t size = mgrid_family_size(f, group);
  mgrid_json_put(w, "[");
  for (int64_t first = 0; first < size && !w->failed; first += PIECE) {
    int64_t n = size - first < PIECE ? size - first : PIECE;
    mgrid_family_slice(f, group, first, n, piece);
    for (int64_t i = 0; i < n; i++) {
      if (first + i > 0) mgrid_text_put(&w->text, ",", 1);
      mgrid_text_int(&w->text, piece[i]);
    }
    mgrid_json_put(w, ""); /* gives a full buffer to the sink */
  }
  mgrid_json_put(w, "]");
}

static void put_head(mgrid_json *w, const mgrid_plan *p) {
  const mgrid_content *c = &p->content;
  mgrid_json_line(w, "recipe", *c->recipe ? mgrid_json_path(c->recipe) : json_null());
  mgrid_json_line(w, "world", json_integer(c->world));
  mgrid_json_in(w, "\n  ", "params", "{");
  for (size_t i = 0; i < c->nparams; i++)
    mgrid_json_field(w, c->param[i].name, param_value(&c->param[i]));
  mgrid_json_close(w, "}");
}

static void put_layout(mgrid_json *w, const mgrid_plan *p, int64_t rank) {
  const mgrid_content *c = &p->content;

  if (c->ncalled > 0) {
    mgrid_json_in(w, "\n  ", "functions", "{");
    for (size_t i = 0; i < c->ncalled; i++)
      mgrid_json_field(w, c->called[i].name, json_string(c->called[i].version));
    mgrid_json_close(w, "}");
  }
  mgrid_json_in(w, "\n  ", "grids", "{");
  for (size_t i = 0; i < c->ngrids; i++) {
    const mgrid_grid *g = c->grid[i].grid;
    mgrid_json_in(w, "\n    ", c->grid[i].name, "{");
    if (!g->order) mgrid_json_integer(w, "offset", g->window.offset);
    mgrid_json_integer(w, "size", g->size);
    if (g->order && rank < 0) {
      mgrid_json_key(w, " ", "ranks");
      print_put_ranks(w, g->order, 0);
    }
    mgrid_json_in(w, " ", rank < 0 ? "dims" : "coords", rank < 0 ? "[" : "{");
    for (size_t d = 0; d < g->n; d++) {
      if (rank < 0) {
        mgrid_json_element(w, w->first ? "" : " ",
                           mgrid_json_pack("[sI]", g->axis[d].name, (json_int_t)g->axis[d].size));
      } else {
        int64_t coord = mgrid_grid_coord(g, rank, d);
        mgrid_json_field(w, g->axis[d].name, coord < 0 ? json_null() : json_integer(coord));
      }
    }
    mgrid_json_close(w, rank < 0 ? "]}" : "}}");
  }
  mgrid_json_close(w, "}");
  mgrid_json_in(w, "\n  ", "concurrent", "[");
  for (size_t i = 0; i < c->nconcurrent; i++) {
    mgrid_json_in(w, w->first ? "" : " ", NULL, "[");
    for (size_t k = 0; k < c->concurrent[i].n; k++) {
      mgrid_json_element(w, "", json_string(c->concurrent[i].name[k]));
    }
    mgrid_json_close(w, "]");
  }
  mgrid_json_close(w, "]");
}

/* Write the items of modules. Their kinds are in the order of the first item of each. A plan
** without items has no field for them. */
static void put_items(mgrid_json *w, const mgrid_plan *p, int64_t rank) {
  const mgrid_content *c = &p->content;
  for (size_t k = 0; k < c->nitems; k++) {
    const mgrid_item_kind *kind = c->item[k].kind;
    if (c->item[k].nth > 0 || mgrid_item_unread(&c->item[k])) continue;
    mgrid_json_in(w, "\n  ", kind->names, "{");
    for (size_t i = k; i < c->nitems; i++) {
      if (c->item[i].kind != kind) continue;
      mgrid_json_key(w, "\n    ", c->item[i].name);
      kind->json(c->item[i].x, rank, w);
    }
    mgrid_json_close(w, "\n  }");
  }
}

/* Write the part from which mgrid_plan_read makes the plan: rules, not lists of ranks. */
static void put_rules(mgrid_json *w, const mgrid_plan *p) {
  mgrid_text t = { 0 };
  mgrid_json_line(w, "format", json_integer(MGRID_SAVED_FORMAT));
  mgrid_json_line(w, "moongrid", json_string(MGRID_VERSION));
  mgrid_json_in(w, "\n  ", "rules", "[");
  for (size_t i = 0; i < mgrid_plan_nlines(p) && !w->failed; i++) {
    t.len = 0;
    if (!mgrid_plan_rule(p, i, &t)) continue;
    w->text.failed |= t.failed;
    mgrid_json_item(w, "\n    ");
    mgrid_json_put(w, mgrid_text_chars(&t));
  }
  mgrid_json_close(w, "\n  ]");
  mgrid_text_free(&t);
}

static void put_digest(mgrid_json *w, const mgrid_plan *p) {
  char digest[33];
  mgrid_plan_digest(p, digest);
  mgrid_json_line(w, "digest", json_string(digest));
}

static json_t *option_value(const mgrid_choice *c, const mgrid_option *row) {
  const void *value = mgrid_option_at(&c->asked, row);
  switch (row->kind) {
  case MGRID_OPTION_FLAG: return json_boolean(*(const bool *)value);
  case MGRID_OPTION_SECONDS: return json_real(*(const double *)value);
  case MGRID_OPTION_WORD:
  case MGRID_OPTION_FIELDS:
  case MGRID_OPTION_SHAPE:
  case MGRID_OPTION_NUMBERS:
  case MGRID_OPTION_NAME: return json_string(*(const char *const *)value);
  }
  return NULL;
}

static void options_json(mgrid_json *w, const mgrid_choice *c) {
  mgrid_json_in(w, " ", "options", "{");
  for (const mgrid_option *row = mgrid_option_table; row->name; row++)
    if (mgrid_choice_has(c, row)) mgrid_json_field(w, row->name, option_value(c, row));
  if (c->lane > 0) mgrid_json_integer(w, "lane", c->lane);
  mgrid_json_close(w, "}");
}

/* Write which families share communicators, and how much memory each would take without sharing. */
static void put_sharing(mgrid_json *w, const mgrid_plan *p, const mgrid_site *site) {
  const mgrid_content *c = &p->content;
  mgrid_json_in(w, "\n  ", "sharing", "[");
  for (size_t i = 0; i < c->nentries; i++) {
    mgrid_demand more;
    int k = mgrid_plan_sharer(p, (int)i, (int)i + 1);
    if (k < 0) continue;
    mgrid_json_in(w, "\n    ", NULL, "{");
    mgrid_json_in(w, "", "families", "[");
    mgrid_json_element(w, "", json_string(c->entry[i].name));
    for (; k >= 0; k = mgrid_plan_sharer(p, (int)i, k + 1))
      mgrid_json_element(w, "", json_string(c->entry[k].name));
    mgrid_json_close(w, "]");
    mgrid_entry_demand(&c->entry[i], c->entry[i].family->max_size, 1, site, &more);
    mgrid_json_integer(w, "apart_created", more.created);
    mgrid_json_integer(w, "apart_ring", more.ring);
    mgrid_json_close(w, "}");
  }
  mgrid_json_close(w, "]");
}

static void put_resources(mgrid_json *w, const mgrid_resources *r, const mgrid_site *site) {
  mgrid_json_in(w, "\n  ", "resources", "{");
  mgrid_json_integer(w, "machine_ranks", site->machine_ranks);
  mgrid_json_field(w, "sampled", json_boolean(r->sampled));
  for (const mgrid_resources_row *row = mgrid_resources_rows; row->name; row++)
    mgrid_json_integer(w, row->name, *mgrid_resources_number(r, row));
  mgrid_json_close(w, "}");
}

static void put_all(mgrid_json *w, const mgrid_plan *p, const mgrid_resources *r) {
  static const char *const coverage[] = { "partition", "partial", "cover" };

  mgrid_json_in(w, "\n  ", "families", "{");
  for (size_t i = 0; i < p->content.nentries; i++) {
    const mgrid_entry *e = &p->content.entry[i];
    const mgrid_family *f = e->family;
    mgrid_json_in(w, "\n    ", e->name, "{");
    mgrid_json_integer(w, "count", f->count);
    mgrid_json_field(w, "size", f->size >= 0 ? json_integer(f->size) : json_null());
    mgrid_json_field(w, "coverage", json_string(coverage[mgrid_family_coverage(f)]));
    mgrid_json_integer(w, "launch_order", p->launch[i]);
    mgrid_json_field(w, "shares",
                     p->shares[i] < 0 ? json_null()
                                      : json_string(p->content.entry[p->shares[i]].name));
    options_json(w, e->choice);
    mgrid_json_in(w, " ", "groups", "[");
    for (int64_t g = 0; g < f->count && !w->failed; g++) {
      mgrid_json_item(w, "");
      print_put_ranks(w, f, g);
    }
    mgrid_json_close(w, "]}");
  }
  mgrid_json_close(w, "\n  }");
  mgrid_plan_counts n = MGRID_PLAN_COUNTS_INIT;
  mgrid_plan_count(p, -1, &n, NULL);
  mgrid_json_in(w, "\n  ", "communicators", "{");
  mgrid_json_integer(w, "total", n.communicators);
  mgrid_json_integer(w, "groups", n.groups);
  mgrid_json_integer(w, "singles", n.singles);
  mgrid_json_in(w, " ", "gpu_memory", "{");
  mgrid_json_integer(w, "communicators", r->communicators);
  mgrid_json_integer(w, "created", r->created);
  mgrid_json_integer(w, "first_use", r->ring);
  mgrid_json_close(w, "}");
  mgrid_json_in(w, " ", "by_family", "{");
  for (size_t k = 0; k < p->content.nentries; k++) {
    int64_t led = mgrid_plan_led(p, p->order[k], -1, NULL);
    if (led > 0) mgrid_json_integer(w, p->content.entry[p->order[k]].name, led);
  }
  mgrid_json_close(w, "}}");
}

static void put_membership(mgrid_json *w, const mgrid_plan *p, const mgrid_member *m) {
  mgrid_json_open(w, "{");
  mgrid_json_integer(w, "index", m->group);
  mgrid_json_integer(w, "position", m->position);
  mgrid_json_integer(w, "size", m->size);
  mgrid_json_field(w, "communicator", m->comm < 0 ? json_null() : json_integer(m->comm));
  mgrid_json_integer(w, "launch_order", mgrid_plan_launch(p, m->entry, m->group));
  mgrid_json_key(w, " ", "ranks");
  print_put_ranks(w, p->content.entry[m->entry].family, m->group);
  mgrid_json_close(w, "}");
}

/* Write the rank's group in each family: a group or null, and for a cover a list of groups. */
static void put_rank(mgrid_json *w, const mgrid_plan *p, const mgrid_view *v) {
  size_t next = 0;

  mgrid_json_in(w, "\n  ", "families", "{");
  for (size_t i = 0; i < p->content.nentries; i++) {
    bool cover = p->content.entry[i].family->overlapping, any = false;
    mgrid_json_key(w, "\n    ", p->content.entry[i].name);
    if (cover) mgrid_json_open(w, "[");
    for (; next < v->nmembers && v->member[next].entry == (int)i; next++) {
      if (cover) mgrid_json_item(w, "");
      put_membership(w, p, &v->member[next]);
      any = true;
    }
    if (cover)
      mgrid_json_close(w, "]");
    else if (!any)
      mgrid_json_put(w, "null");
  }
  mgrid_json_close(w, "\n  }");
  mgrid_json_in(w, "\n  ", "communicators", "[");
  for (size_t i = 0; i < v->ncomms; i++) {
    const mgrid_creation *c = &v->comm[i];
    mgrid_json_in(w, "\n    ", NULL, "{");
    mgrid_json_field(w, "family", json_string(p->content.entry[c->entry].name));
    mgrid_json_integer(w, "index", c->group);
    mgrid_json_integer(w, "position", c->position);
    mgrid_json_integer(w, "size", c->size);
    options_json(w, p->content.entry[c->entry].choice);
    mgrid_json_close(w, "}");
  }
  mgrid_json_close(w, "]");
}

mgrid_status mgrid_plan_print_json(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud,
                                   mgrid_error *err) {
  mgrid_site site = MGRID_SITE_INIT;
  site.machine_ranks = MGRID_SITE_RANKS;
  return p ? mgrid_plan_json_at(p, rank, &site, sink, ud, err) : MGRID_USAGE;
}

mgrid_status mgrid_plan_save(const mgrid_plan *p, mgrid_sink sink, void *ud, mgrid_error *err) {
  mgrid_json w = { .sink = sink, .ud = ud, .first = true };
  if (!p || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  mgrid_json_open(&w, "{");
  put_head(&w, p);
  put_rules(&w, p);
  put_digest(&w, p);
  return mgrid_json_end(&w, err);
}

mgrid_status mgrid_plan_json_at(const mgrid_plan *p, int64_t rank, const mgrid_site *site,
                                mgrid_sink sink, void *ud, mgrid_error *err) {
  if (mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  mgrid_json w = { .sink = sink, .ud = ud, .first = true };
  mgrid_view v = { 0 };
  mgrid_resources r = MGRID_RESOURCES_INIT;

  mgrid_status s = mgrid_plan_resources(p, rank, site, &r, err);
  if (!s && rank >= 0) s = mgrid_view_init(&v, p, rank, err);
  if (s) return s;

  mgrid_json_open(&w, "{");
  put_head(&w, p);
  if (rank >= 0) {
    mgrid_json_line(&w, "rank", json_integer(rank));
  }

  put_layout(&w, p, rank);
  if (rank < 0) {
    put_all(&w, p, &r);
    put_sharing(&w, p, site);
  } else {
    put_rank(&w, p, &v);
  }

  put_resources(&w, &r, site);
  put_items(&w, p, rank);
  if (rank < 0) put_rules(&w, p);
  put_digest(&w, p);

  mgrid_view_free(&v);
  return mgrid_json_end(&w, err);
}
