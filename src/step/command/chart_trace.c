/* SPDX-License-Identifier: MIT
**
** chart_trace.c - a chart of time in the trace event format of Chrome, which Perfetto reads: a process for each type of
** ranks, a thread for each stream. Slices of a thread must not overlap: calls of a group, which travel at once, are on
** further threads of the stream.
*/
#include "step/command/chart.h"
#include "plan/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { LANES = 8 };

static int put(const char *s, size_t len, void *text) {
  mgrid_text_put(text, s, len);
  return 0;
}

static void put_event(json_t *v, bool *first, mgrid_text *out) {
  if (!*first) mgrid_text_str(out, ",\n");
  *first = false;
  if (!v || json_dump_callback(v, put, out, JSON_COMPACT | JSON_REAL_PRECISION(15))) out->failed = true;
  json_decref(v);
}

static void put_name(const char *what, int32_t process, size_t thread, const char *name, bool *first, mgrid_text *out) {
  put_event(mgrid_json_pack("{sssssisis{ss}}", "ph", "M", "name", what, "pid", (int)process, "tid", (int)thread, "args",
                            "name", name),
            first, out);
}

static void put_slice(const chart *c, const chart_row *row, size_t thread, const chart_bar *b, bool waits, bool *first,
                      mgrid_text *out) {
  const chart_text *t = &c->text[b->text];
  double            from = waits ? b->began : b->from, to = waits ? b->from : b->to;
  json_t           *args = json_object();
  if (b->by >= 0) {
    mgrid_text who = { 0 };
    mgrid_text_add(&who, "%s (rank %" PRId64 ")", c->row[b->by].label, c->row[b->by].rank);
    json_object_set_new(args, "waited_for", json_string(mgrid_text_chars(&who)));
    json_object_set_new(args, "waited_us", json_real(1e6 * (b->from - b->began)));
    mgrid_text_free(&who);
  }
  put_event(mgrid_json_pack("{sssssssisisfsfso}", "ph", "X", "name", waits ? "waits" : t->text, "cat",
                            waits            ? "wait"
                            : t->nparts == 1 ? c->kind[t->kind[0]].name
                                             : "loop",
                            "pid", (int)row->type, "tid", (int)thread, "ts", 1e6 * from, "dur", 1e6 * (to - from),
                            "args", args),
            first, out);
}

static void put_row(const chart *c, size_t i, bool *first, mgrid_text *out) {
  const chart_row *row = &c->row[i];
  double           until[LANES] = { 0 };
  int              used = 0;
  for (size_t k = 0; k < row->n; k++) {
    const chart_bar *b = &row->bar[k];
    double           early = 1e-13; /* a tenth of a picosecond */
    int              lane = 0;
    while (lane < LANES - 1 && until[lane] > b->from + early) lane++;
    if (b->began < b->from && until[lane] <= b->began + early)
      put_slice(c, row, i * LANES + (size_t)lane, b, true, first, out);
    put_slice(c, row, i * LANES + (size_t)lane, b, false, first, out);
    until[lane] = b->to;
    if (lane >= used) used = lane + 1;
  }
  for (int lane = 0; lane < used; lane++) {
    mgrid_text name = { 0 };
    mgrid_text_str(&name, row->stream);
    if (lane) mgrid_text_add(&name, " (%d)", lane + 1);
    put_name("thread_name", row->type, i * LANES + (size_t)lane, mgrid_text_chars(&name), first, out);
    mgrid_text_free(&name);
  }
}

void mgrid_chart_trace(const chart *c, mgrid_text *out) {
  bool first = true;
  mgrid_text_str(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":");
  json_t *about = mgrid_json_pack("{ssssss}", "title", c->title, "settings", c->settings, "about", c->about);
  if (!about || json_dump_callback(about, put, out, JSON_COMPACT)) out->failed = true;
  json_decref(about);
  mgrid_text_str(out, ",\"traceEvents\":[\n");
  for (size_t i = 0; i < c->nrows; i++) {
    mgrid_text name = { 0 };
    mgrid_text_add(&name, "%s: %" PRId64 " rank%s from %" PRId64, c->row[i].label, c->row[i].ranks,
                   mgrid_s_of(c->row[i].ranks), c->row[i].rank);
    if (i == 0 || c->row[i].type != c->row[i - 1].type)
      put_name("process_name", c->row[i].type, i * LANES, mgrid_text_chars(&name), &first, out);
    mgrid_text_free(&name);
    put_row(c, i, &first, out);
  }
  for (size_t i = 0; i < c->ngaps; i++) {
    mgrid_text name = { 0 };
    mgrid_text_add(&name, "the same %" PRId64 " times more", c->gap[i].times);
    put_event(mgrid_json_pack("{sssssisisfsfss}", "ph", "i", "name", mgrid_text_chars(&name), "pid", 0, "tid", 0, "ts",
                              1e6 * c->gap[i].from, "dur", 1e6 * (c->gap[i].to - c->gap[i].from), "s", "g"),
              &first, out);
    mgrid_text_free(&name);
  }
  mgrid_text_str(out, "\n]}\n");
}
