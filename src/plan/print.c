/* SPDX-License-Identifier: MIT
**
** print.c - the plan as text: the canonical form, its digest, the schedule.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <math.h>
#include <xxhash.h>

enum { FULL = 16384 }; /* bytes of text that are worth a call of the sink */

/* -------------------------------------------------------------------- lines */

/* The parts of a plan, each of which has a line in the canonical text and a rule: the world, then in the order of their
** calls parameters, functions, grids; families; lists of concurrent families, items. So a rule names only what is before
** it. */
size_t mgrid_plan_first_family(const mgrid_plan *p) {
  return 1 + p->content.nparams + p->content.ncalled + p->content.ngrids;
}

size_t mgrid_plan_first_list(const mgrid_plan *p) { return mgrid_plan_first_family(p) + p->content.nentries; }
size_t mgrid_plan_nlines(const mgrid_plan *p) {
  return mgrid_plan_first_list(p) + p->content.nconcurrent + p->content.nitems;
}

static void put_pair(const char *word, const char *name, const char *value, mgrid_text *t) {
  mgrid_text_str(t, word);
  mgrid_text_str(t, name);
  mgrid_text_str(t, " = ");
  mgrid_text_str(t, value);
}

static void put_name(const char *word, const char *name, mgrid_text *t) {
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
    put_name("grid", c->grid[i].name, t);
    mgrid_grid_text(c->grid[i].grid, t);
  } else if ((i -= c->ngrids) < c->nentries) {
    put_name("family", c->entry[i].name, t);
    mgrid_family_text(c->entry[i].family, t);
    mgrid_text_str(t, c->entry[i].choice->text);
  } else if ((i -= c->nentries) < c->nconcurrent) {
    mgrid_text_str(t, "concurrent ");
    mgrid_concurrent_text(&c->concurrent[i], " ", t);
  } else if (!mgrid_item_unread(&c->item[i -= c->nconcurrent])) {
    put_name(c->item[i].kind->name, c->item[i].name, t);
    c->item[i].kind->text(c->item[i].x, t);
  } else {
    return;
  }
  mgrid_text_str(t, "\n");
}

/* Print the lines from `first` to before `end`. */
static mgrid_status print_lines(const mgrid_plan *p, size_t first, size_t end, mgrid_text *t, mgrid_sink sink, void *ud,
                                mgrid_error *err) {
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
  mgrid_text   t = { 0 };
  mgrid_text_str(&t, "moongrid 1\n");
  mgrid_status s = print_lines(p, 0, families, &t, sink, ud, err);
  if (!s) s = print_lines(p, lists, mgrid_plan_nlines(p), &t, sink, ud, err);
  if (!s) s = print_lines(p, families, lists, &t, sink, ud, err);
  mgrid_text_free(&t);
  return s;
}

/* -------------------------------------------------------------------- rules */

/* Append {"WORD":"NAME", of which the rest follows. */
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

/* Append the options that are given, if any, without the lane; seconds are whole microseconds. */
static void put_options(const mgrid_choice *c, mgrid_text *t) {
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

static void put_list(const mgrid_concurrent *list, mgrid_text *t) {
  for (size_t i = 0; i < list->n; i++) {
    mgrid_text_str(t, i ? "," : "{\"concurrent\":[");
    mgrid_text_quoted(t, list->name[i]);
  }
  mgrid_text_str(t, "]");
}

static void put_item(const mgrid_content *c, size_t i, mgrid_text *t) {
  const mgrid_item_kind *kind = c->item[i].kind;
  mgrid_text             text = { 0 };
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
    put_options(c->entry[i].choice, t);
  } else if ((i -= c->nentries) < c->nconcurrent) {
    put_list(&c->concurrent[i], t);
  } else if (!mgrid_item_unread(&c->item[i -= c->nconcurrent])) {
    put_word(c->item[i].kind->name, c->item[i].name, t);
    put_item(c, i, t);
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
  mgrid_text    t = { 0 };
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
  if (out) snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, p ? p->digest[0] : 0, p ? p->digest[1] : 0);
}

/* ---------------------------------------------------------------- schedule */

static mgrid_status print_all_steps(const mgrid_plan *p, mgrid_sink sink, void *ud, mgrid_error *err) {
  int          step = 0;
  mgrid_text   t = { 0 };
  mgrid_status s = MGRID_OK;
  for (size_t k = 0; k < p->content.nentries && !s; k++) {
    const mgrid_entry  *e = &p->content.entry[p->order[k]];
    const mgrid_family *f = e->family;
    if (f->max_size < 2) {
      mgrid_text_add(&t, "       %-16s groups of one rank: no communicator\n", e->name);
    } else if (e->choice->none) {
      mgrid_text_add(&t, "       %-16s backend none: no communicator\n", e->name);
    } else if (p->shares[p->order[k]] >= 0) {
      mgrid_text_add(&t, "       %-16s shares with %s\n", e->name, p->content.entry[p->shares[p->order[k]]].name);
    } else {
      int64_t rounds = mgrid_family_rounds(f), of_round[MGRID_ROUNDS_MAX];
      mgrid_plan_led_by_round(p, p->order[k], of_round, NULL);
      for (int64_t r = 0; r < rounds; r++) {
        int64_t led = of_round[r];
        if (led == 0) continue; /* nothing to create: earlier groups lead the whole round */
        mgrid_text_add(&t, "%5d  %-16s ", step++, e->name);
        if (rounds > 1) mgrid_text_add(&t, "round %" PRId64 ": ", r);
        mgrid_text_add(&t, "%" PRId64 " communicator%s at once, ", led, mgrid_s_of(led));
        if (f->size >= 0)
          mgrid_text_add(&t, "%" PRId64 " ranks each%s\n", f->size, e->choice->asked.lazy ? ", when asked for" : "");
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

static mgrid_status print_rank_steps(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud, mgrid_error *err) {
  mgrid_view   v;
  mgrid_text   t = { 0 };
  mgrid_status s = mgrid_view_init(&v, p, rank, err);
  for (size_t i = 0; i < v.ncomms && !s; i++) {
    const mgrid_creation *c = &v.comm[i];
    mgrid_text_add(&t, "%5zu  %s[%" PRId64 "] as %" PRId64 " of %" PRId64 ", for:", i, p->content.entry[c->entry].name,
                   c->group, c->position, c->size);
    for (size_t m = 0; m < v.nmembers; m++)
      if (v.member[m].comm == (int)i) mgrid_text_add(&t, " %s", p->content.entry[v.member[m].entry].name);
    mgrid_text_add(&t, "\n");
    s = mgrid_text_flush(&t, sink, ud, err);
  }
  mgrid_text_free(&t);
  mgrid_view_free(&v);
  return s;
}

mgrid_status mgrid_plan_print_schedule(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud, mgrid_error *err) {
  if (!p || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  return rank < 0 ? print_all_steps(p, sink, ud, err) : print_rank_steps(p, rank, sink, ud, err);
}
