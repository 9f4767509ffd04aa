/* SPDX-License-Identifier: MIT
**
** trace.c - what all ranks did in a step, as a file that Perfetto and chrome://tracing open: one process for each rank, one
** thread for each stream, a complete event ("X") for each call and compute (Trace Event Format, Duration and Complete
** Events). Times are microseconds since each rank began the step. Below the streams are those as planned on a machine.
*/
#include "step/run.h"
#include "plan/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND = 1024 };  /* events of a rank that are gathered at once */
enum { PLANNED = 100 }; /* added to the number of a stream that is planned */

void mgrid_step_span_add(step_spans *x, uint32_t node, double begun, double seconds) {
  x->full |= x->n == STEP_SPANS_MAX || !MGRID_ROOM(x->span, x->room, x->n + 1);
  if (!x->full) x->span[x->n++] = (step_span){ node, (float)seconds, begun };
}

/* The file while it is written. */
typedef struct trace {
  FILE *f;
  bool  some, lost; /* events were written; one could not be */
} trace;

static void put(trace *t, json_t *event) {
  mgrid_text text = { 0 };
  mgrid_json_text(event, JSON_COMPACT | JSON_SORT_KEYS, &text);
  if (!text.failed && t->some) fputs(",\n", t->f);
  if (!text.failed) fputs(mgrid_text_chars(&text), t->f);
  t->some = true, t->lost |= text.failed;
  mgrid_text_free(&text);
  json_decref(event);
}

/* Names and order of the rank and its streams. */
static void put_names(trace *f, const mgrid_step *s, int64_t rank, bool planned) {
  const step_program *p = &s->program[s->class[s->of[rank]].program];
  mgrid_text          name = { 0 };
  mgrid_text_add(&name, "rank %" PRId64, rank);
  put(f, mgrid_json_pack("{sssssIs{ss}}", "ph", "M", "name", "process_name", "pid", (json_int_t)rank, "args", "name",
                         mgrid_text_chars(&name)));
  put(f, mgrid_json_pack("{sssssIs{sI}}", "ph", "M", "name", "process_sort_index", "pid", (json_int_t)rank, "args",
                         "sort_index", (json_int_t)rank));
  for (int i = 0; i < p->nstreams * (planned ? 2 : 1); i++) {
    int of = i % p->nstreams;
    name.len = 0;
    mgrid_text_add(&name, "%s%s", s->word[p->stream[of]], i < p->nstreams ? "" : ", planned");
    put(f, mgrid_json_pack("{sssssIsis{ss}}", "ph", "M", "name", "thread_name", "pid", (json_int_t)rank, "tid",
                           of + (i < p->nstreams ? 0 : PLANNED), "args", "name", mgrid_text_chars(&name)));
  }
  f->lost |= name.failed;
  mgrid_text_free(&name);
}

static json_t *arguments(const mgrid_step *s, const step_program *p, uint32_t at) {
  json_t *list = json_array();
  for (uint32_t i = at; i < p->node[at].end; i++) {
    const step_node *n = &p->node[i];
    if (n->slot < 0) continue;
    mgrid_text t = { 0 };
    mgrid_step_node_text(s, n, &t);
    json_array_append_new(list, mgrid_json_pack("{sssI}", "call", mgrid_text_chars(&t), "bytes", (json_int_t)n->bytes));
    mgrid_text_free(&t);
  }
  return list;
}

/* An event of a rank's entry, in microseconds. */
static void put_span(trace *f, const mgrid_step *s, int64_t rank, uint32_t node, bool planned, double begun,
                     double took) {
  const step_program *p = &s->program[s->class[s->of[rank]].program];
  const step_node    *n = &p->node[node];
  mgrid_text          t = { 0 };
  if (n->kind == STEP_COMPUTE)
    mgrid_text_str(&t, n->name ? s->word[n->name] : "compute");
  else
    mgrid_step_node_text(s, n, &t);
  const char *category = n->slot >= 0 ? mgrid_step_family_of(s, n) : mgrid_step_rows[n->kind].name;
  put(f, mgrid_json_pack("{sssssssIsisfsfs{sosssi}}", "ph", "X", "name", mgrid_text_chars(&t), "cat", category, "pid",
                         (json_int_t)rank, "tid", (int)n->stream + (planned ? PLANNED : 0), "ts", begun, "dur", took,
                         "args", "planned", arguments(s, p, node), "file", s->word[n->file], "line", (int)n->line));
  mgrid_text_free(&t);
}

/* What was planned: records are of types, whose ranks do the same at the same time. Of loops that go on alike the first
** rounds are there alone. */
static void put_planned(trace *f, const mgrid_step *s, const step_how *how) {
  const step_types *types = &how->price->by.types;
  for (int64_t rank = 0; rank < s->plan->content.world; rank++)
    for (size_t i = 0; i < how->records->n; i++) {
      const step_record *x = &how->records->record[i];
      double             us = 1e6 / STEP_SECOND;
      if (x->type == types->of[rank] && x->node < s->program[s->class[s->of[rank]].program].n)
        put_span(f, s, rank, x->node, true, us * (double)x->moved, us * (double)(x->ended - x->moved));
    }
}

/* The events of a rank are from 0 to room - 1; a node past the program's: none. */
static void put_round(trace *f, const mgrid_step *s, int64_t world, const step_span *all) {
  for (int64_t rank = 0; rank < world; rank++) {
    const step_program *p = &s->program[s->class[s->of[rank]].program];
    for (size_t i = 0; i < ROUND; i++) {
      const step_span *x = &all[(size_t)rank * ROUND + i];
      if (x->node < p->n) put_span(f, s, rank, x->node, false, 1e6 * x->begun, 1e6 * (double)x->seconds);
    }
  }
}

mgrid_status mgrid_step_trace(const mgrid_step *s, mgrid_backend *b, const step_how *how, const step_spans *mine,
                              FILE *file, mgrid_error *err) {
  int64_t      world = mgrid_backend_world(b);
  trace        out = { file, false, false };
  step_span   *part = calloc(ROUND, sizeof *part), *all = calloc((size_t)world * ROUND, sizeof *all);
  uint64_t     left = UINT64_MAX - mine->n; /* the minimum over ranks is that of the most */
  mgrid_status status = mgrid_verdict(b, part && all ? MGRID_OK : MGRID_NO_MEMORY, NULL, err);
  if (!status) status = b->ops->allreduce_min(b, &left, 1, err);
  if (!status && file) fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", file);
  for (int64_t rank = 0; rank < world && !status && file; rank++) put_names(&out, s, rank, how->price != NULL);
  for (size_t at = 0; at < UINT64_MAX - left && !status; at += ROUND) {
    memset(part, 0xFF, ROUND * sizeof *part);
    size_t n = at < mine->n ? mine->n - at : 0;
    memcpy(part, mine->span + (n ? at : 0), (n < ROUND ? n : ROUND) * sizeof *part);
    status = b->ops->allgather(b, part, all, ROUND * sizeof *part, err);
    if (!status && file) put_round(&out, s, world, all);
  }
  if (!status && file && how->price) put_planned(&out, s, how);
  if (!status && file) fputs("\n]}\n", file);
  if (!status && out.lost) status = mgrid_oom(err);
  free(part);
  free(all);
  return status;
}
