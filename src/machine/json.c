/* SPDX-License-Identifier: MIT
**
** json.c - a machine as JSON, which lua/machine/json.lua reads back:
**   {"levels": [{"name": "node", "counts": [2, 3], "bandwidth": 4e11, "latency": 3e-06, "domains": ["n0", ...]}, ...],
**    "crossings": [{"name": "rail", "of": "gpu", "share": 1, "in": "rack", ...}], "ranks": [8, 9, ...], "notes": ["..."]}
*/
#include "machine/model.h"
#include "plan/json.h"

#include <string.h>

static void put_link(mgrid_json *w, mgrid_link link) {
  if (link.bandwidth > 0) mgrid_json_field(w, "bandwidth", json_real(link.bandwidth));
  if (link.latency > 0) mgrid_json_field(w, "latency", json_real(link.latency));
}

static void put_tier(mgrid_json *w, const mgrid_tier *t) {
  mgrid_json_open(w, "{");
  mgrid_json_field(w, "name", json_string(t->name));
  mgrid_json_integers(w, "counts", (size_t)t->ncounts, t->counts);
  put_link(w, t->link);
  if (t->names) {
    mgrid_json_in(w, " ", "domains", "[");
    for (int64_t d = 0; d < t->domains && !w->failed; d++) {
      mgrid_json_element(w, d % 8 ? " " : "\n      ", t->names[d] ? json_string(t->names[d]) : json_null());
    }
    mgrid_json_close(w, "]");
  }
  mgrid_json_close(w, "}");
}

static void put_crossing(mgrid_json *w, const mgrid_machine_model *m, const mgrid_crossing *x) {
  mgrid_json_open(w, "{");
  mgrid_json_field(w, "name", json_string(x->name));
  mgrid_json_field(w, "of", json_string(m->tier[x->of].name));
  mgrid_json_integer(w, "share", x->share);
  if (x->in >= 0) mgrid_json_field(w, "in", json_string(m->tier[x->in].name));
  put_link(w, x->link);
  mgrid_json_close(w, "}");
}

static void put_ranks(mgrid_json *w, const mgrid_machine_model *m) {
  mgrid_json_in(w, "\n  ", "ranks", "[");
  for (int64_t r = 0; r < m->nranks; r++) {
    mgrid_json_item(w, r % 32 ? "" : "\n    ");
    mgrid_text_int(&w->text, m->at[r]);
    if (r % 1024 == 0) mgrid_json_flush(w);
  }
  mgrid_json_close(w, "]");
}

static void put_notes(mgrid_json *w, const char *notes) {
  mgrid_json_in(w, "\n  ", "notes", "[");
  for (const char *end; (end = strchr(notes, '\n')); notes = end + 1)
    mgrid_json_element(w, "\n    ", json_stringn(notes, (size_t)(end - notes)));
  mgrid_json_close(w, "]");
}

mgrid_status mgrid_machine_print_json(const mgrid_machine_model *m, mgrid_sink sink, void *ud, mgrid_error *err) {
  mgrid_json w = { .sink = sink, .ud = ud, .first = true };
  if (!m || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  mgrid_json_open(&w, "{");
  mgrid_json_in(&w, "\n  ", "levels", "[");
  for (size_t i = 0; i < m->ntiers; i++) {
    mgrid_json_item(&w, "\n    ");
    put_tier(&w, &m->tier[i]);
  }
  mgrid_json_close(&w, "]");
  if (m->ncrossings) {
    mgrid_json_in(&w, "\n  ", "crossings", "[");
    for (size_t i = 0; i < m->ncrossings; i++) {
      mgrid_json_item(&w, "\n    ");
      put_crossing(&w, m, &m->crossing[i]);
    }
    mgrid_json_close(&w, "]");
  }
  if (m->at) put_ranks(&w, m);
  if (m->notes) put_notes(&w, m->notes);
  return mgrid_json_end(&w, err);
}
