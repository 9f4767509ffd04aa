/* SPDX-License-Identifier: MIT
**
** chart.c - the rows of a chart from the records of an execution.
*/
#include "step/command/chart.h"

#include "step/price.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct making {
  const step_price   *p;
  const step_records *r;
  const mgrid_step   *s;
  chart              *out;
  int                *of_entry, *of_word; /* kinds: of families; of names of computes; -1: none yet */
  int                 waits;
  int32_t           **text_of; /* [programs]: of their entries; -1: none yet. NULL: none of the program */
  int32_t            *row_of;  /* [types]: the first row */
  bool                failed;
} making;

/* -------------------------------------------------------------------- kinds */

static int add_kind(making *x, const char *name, chart_sort sort) {
  chart *c = x->out;
  int    colour = 0;
  if (c->nkinds == CHART_KINDS_MAX) return c->nkinds - 1;
  for (int i = 0; i < c->nkinds; i++) colour += c->kind[i].sort == sort;
  c->kind[c->nkinds] = (chart_kind){ name, sort, colour };
  return c->nkinds++;
}

static int kind_of(making *x, const step_node *n) {
  if (n->kind == STEP_COMPUTE) {
    if (x->of_word[n->name] < 0)
      x->of_word[n->name] = add_kind(x, n->name ? x->s->word[n->name] : "compute", CHART_COMPUTES);
    return x->of_word[n->name];
  }
  int32_t entry = x->s->slot[n->slot].entry;
  if (x->of_entry[entry] < 0) x->of_entry[entry] = add_kind(x, x->s->plan->content.entry[entry].name, CHART_MOVES);
  return x->of_entry[entry];
}

/* -------------------------------------------------------------------- texts */

static void add_part(making *x, chart_text *t, const step_node *n, double seconds) {
  int kind = kind_of(x, n), i = 0;
  while (i < t->nparts && t->kind[i] != kind) i++;
  if (i == CHART_PARTS_MAX) i--;
  if (i == t->nparts) t->kind[t->nparts] = kind, t->share[t->nparts++] = 0;
  t->share[i] += seconds;
}

/* The parts of a loop that was taken as one, and their names. */
static void add_parts(making *x, chart_text *t, int32_t type, const step_program *p, uint32_t from, uint32_t end,
                      int stream, double often, mgrid_text *names) {
  for (uint32_t i = from; i < end; i = p->node[i].end) {
    const step_node *n = &p->node[i];
    if (n->kind == STEP_LOOP) add_parts(x, t, type, p, i + 1, n->end, stream, often * (double)n->number, names);
    bool computes = n->kind == STEP_COMPUTE;
    if (n->stream != stream || (!computes && n->slot < 0)) continue;
    add_part(
        x, t, n,
        often
            * (computes ? mgrid_step_work_of(&x->p->by, n) : mgrid_step_way_of(&x->p->by, type, n, n->bytes).seconds));
    if (names->len > 160) continue;
    if (names->len) mgrid_text_str(names, ", ");
    if (computes)
      mgrid_text_str(names, n->name ? x->s->word[n->name] : "compute");
    else
      mgrid_step_node_text(x->s, n, names);
  }
}

static void put_bytes(int64_t bytes, mgrid_text *t) {
  static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB" };
  double                   x = (double)bytes;
  int                      i = 0;
  while (x >= 1024 && i < 5) x /= 1024, i++;
  mgrid_text_add(t, i ? "%.3g %s" : "%.0f %s", x, units[i]);
}

static char *text_of(making *x, int32_t type, const step_program *p, uint32_t node, chart_text *t) {
  const step_node *n = &p->node[node];
  mgrid_text       text = { 0 }, names = { 0 };
  if (n->kind == STEP_LOOP) {
    add_parts(x, t, type, p, node + 1, n->end, n->stream, 1, &names);
    mgrid_text_add(&text, "%" PRId64 " times: %s", n->number, mgrid_text_chars(&names));
  } else if (n->kind == STEP_COMPUTE) {
    add_part(x, t, n, 1);
    mgrid_text_str(&text, n->name ? x->s->word[n->name] : "compute");
    if (n->flops > 0) mgrid_text_add(&text, " of %.3g flops", n->flops);
  } else {
    add_part(x, t, n, 1);
    mgrid_step_node_text(x->s, n, &text);
    if (mgrid_step_rows[n->kind].sized) mgrid_text_str(&text, " of "), put_bytes(n->bytes, &text);
  }
  double sum = 0;
  for (int i = 0; i < t->nparts; i++) sum += t->share[i];
  for (int i = 0; i < t->nparts; i++) t->share[i] = sum > 0 ? t->share[i] / sum : 1.0 / t->nparts;
  uint32_t line = n->line ? node : n->kind == STEP_LOOP ? node + 1 : node;
  if (p->node[line].line) mgrid_text_add(&text, ", line %d", p->node[line].line);
  char *copy = mgrid_strdup(mgrid_text_chars(&text));
  x->failed |= !copy || text.failed || names.failed;
  mgrid_text_free(&text);
  mgrid_text_free(&names);
  return copy;
}

static int32_t find_text(making *x, int32_t type, uint32_t node) {
  int32_t             program = x->s->class[x->p->by.types.type[type].class].program;
  const step_program *p = &x->s->program[program];
  if (!x->text_of[program]) {
    x->text_of[program] = malloc((p->n + 1) * sizeof **x->text_of);
    if (!x->text_of[program]) return x->failed = true, 0;
    memset(x->text_of[program], -1, (p->n + 1) * sizeof **x->text_of);
  }
  int32_t *at = &x->text_of[program][node];
  if (*at >= 0) return *at;
  chart_text *more = mgrid_grow(x->out->text, x->out->ntexts, sizeof *more);
  if (!more) return x->failed = true, 0;
  x->out->text = more;
  chart_text *t = &more[x->out->ntexts];
  memset(t, 0, sizeof *t);
  t->text = text_of(x, type, p, node, t);
  return *at = (int32_t)x->out->ntexts++;
}

/* --------------------------------------------------------------------- rows */

/* Append what tells this rank from those of other types: the positions that the step reads, if they differ. */
static void put_label(const making *x, const bool *differs, int64_t rank, mgrid_text *t) {
  const mgrid_step *s = x->s;
  for (size_t i = 0; i < s->reads.n && t->len <= 40; i++) {
    const step_read *read = mgrid_step_read_of(s, i);
    if (!differs[i] || (read->asked != STEP_ASKED_POSITION && read->asked != STEP_ASKED_INDEX)) continue;
    int64_t mine = mgrid_step_answer(s->plan, read, rank);
    mgrid_text_add(t, "%s%s %" PRId64, t->len ? ", " : "", s->plan->content.entry[read->of].name, mine);
  }
  if (!t->len) mgrid_text_add(t, "rank %" PRId64, rank);
}

/* Which of the questions that the step asks have different answers; to be freed. */
static bool *find_differences(const making *x) {
  const step_types *types = &x->p->by.types;
  bool             *differs = calloc(x->s->reads.n + 1, sizeof *differs);
  for (size_t i = 0; differs && i < x->s->reads.n; i++) {
    const step_read *read = mgrid_step_read_of(x->s, i);
    int64_t          first = mgrid_step_answer(x->s->plan, read, types->type[0].first);
    for (size_t k = 1; k < types->n && !differs[i]; k++)
      differs[i] = mgrid_step_answer(x->s->plan, read, types->type[k].first) != first;
  }
  return differs;
}

/* Make a row for each stream of each type that has records, in the order of the ranks. */
static bool make_rows(making *x) {
  const step_types *types = &x->p->by.types;
  size_t            streams = STEP_STREAMS_MAX;
  size_t           *count = calloc(types->n * streams + 1, sizeof *count), rows = 0, at = 0;
  bool             *differs = find_differences(x);
  if (!count || !differs) return free(count), free(differs), false;
  for (size_t i = 0; i < x->r->n; i++) count[(size_t)x->r->record[i].type * streams + (size_t)x->r->record[i].stream]++;
  for (size_t i = 0; i < types->n * streams; i++) rows += count[i] > 0;
  x->out->row = calloc(rows + 1, sizeof *x->out->row);
  x->out->bars = malloc((x->r->n + 1) * sizeof *x->out->bars);
  bool done = x->out->row && x->out->bars;
  for (size_t t = 0; t < types->n && done; t++) {
    const step_type    *type = &types->type[t];
    const step_program *p = &x->s->program[x->s->class[type->class].program];
    mgrid_text          label = { 0 };
    put_label(x, differs, type->first, &label);
    x->row_of[t] = (int32_t)x->out->nrows;
    for (size_t i = 0; i < streams && done; i++) {
      if (!count[t * streams + i]) continue;
      chart_row *row = &x->out->row[x->out->nrows++];
      *row = (chart_row){ mgrid_strdup(mgrid_text_chars(&label)),
                          x->s->word[p->stream[i]],
                          (int32_t)t,
                          type->first,
                          type->ranks,
                          0,
                          x->out->bars + at };
      at += count[t * streams + i];
      done = row->label != NULL;
    }
    mgrid_text_free(&label);
  }
  free(count);
  free(differs);
  return done;
}

static int by_from(const void *a, const void *b) {
  const chart_bar *x = a, *y = b;
  return (x->from > y->from) - (x->from < y->from);
}

static void fill_rows(making *x) {
  chart *c = x->out;
  for (size_t i = 0; i < x->r->n && !x->failed; i++) {
    const step_record *r = &x->r->record[i];
    chart_row         *row = &c->row[x->row_of[r->type]];
    const char        *stream =
        x->s->word[x->s->program[x->s->class[x->p->by.types.type[r->type].class].program].stream[r->stream]];
    while (row->stream != stream) row++;
    double began = (double)r->began / STEP_SECOND, from = (double)r->moved / STEP_SECOND;
    row->bar[row->n++] = (chart_bar){ began, from, (double)r->ended / STEP_SECOND, find_text(x, r->type, r->node),
                                      began < from ? x->row_of[r->by] : -1 };
  }
  for (size_t i = 0; i < c->nrows; i++) qsort(c->row[i].bar, c->row[i].n, sizeof *c->row[i].bar, by_from);
}

void mgrid_chart_seconds(double seconds, mgrid_text *t) {
  double      a = seconds < 0 ? -seconds : seconds;
  const char *unit = a >= 1 || a <= 0 ? "s" : a >= 1e-3 ? "ms" : a >= 1e-6 ? "us" : "ns";
  mgrid_text_add(t, "%.4g %s", seconds * (*unit == 's' ? 1 : *unit == 'm' ? 1e3 : *unit == 'u' ? 1e6 : 1e9), unit);
}

/* Put waiting first, then calls, then computes: columns show them from the bottom up. */
static void sort_kinds(chart *c) {
  int        to[CHART_KINDS_MAX], n = 0;
  chart_kind was[CHART_KINDS_MAX];
  memcpy(was, c->kind, sizeof was);
  for (int sort = CHART_WAITS; sort >= CHART_COMPUTES; sort--)
    for (int k = 0; k < c->nkinds; k++)
      if (was[k].sort == (chart_sort)sort) c->kind[n] = was[k], to[k] = n++;
  for (size_t i = 0; i < c->ntexts; i++)
    for (int k = 0; k < c->text[i].nparts; k++) c->text[i].kind[k] = to[c->text[i].kind[k]];
}

static void put_about(const step_price *p, mgrid_text *t) {
  double all = p->seconds > 0 ? p->seconds : 1;
  mgrid_chart_seconds(p->seconds, t);
  mgrid_text_add(t, ": computes %.1f%%, exposed %.1f%%, bubble %.1f%% of the mean rank; on ",
                 100 * p->mean.compute / all, 100 * p->mean.exposed / all, 100 * mgrid_step_bubble(p) / all);
  mgrid_machine_text(p->by.m, t);
}

mgrid_status mgrid_chart_make(const step_price *p, const step_records *r, const char *title, const char *settings,
                              chart *out, mgrid_error *err) {
  const mgrid_step *s = p->by.s;
  making            x = { .p = p, .r = r, .s = s, .out = out };
  mgrid_text        about = { 0 };
  memset(out, 0, sizeof *out);
  out->seconds = p->seconds, out->cut = r->full;
  x.of_entry = malloc((s->plan->content.nentries + 1) * sizeof *x.of_entry);
  x.of_word = malloc((s->nwords + 1) * sizeof *x.of_word);
  x.text_of = calloc(s->nprograms + 1, sizeof *x.text_of);
  x.row_of = calloc(p->by.types.n + 1, sizeof *x.row_of);
  out->gap = calloc(r->nrepeats + 1, sizeof *out->gap);
  x.failed = !x.of_entry || !x.of_word || !x.text_of || !x.row_of || !out->gap;
  if (!x.failed) {
    memset(x.of_entry, -1, s->plan->content.nentries * sizeof *x.of_entry);
    memset(x.of_word, -1, s->nwords * sizeof *x.of_word);
    x.waits = add_kind(&x, "waits for others", CHART_WAITS); /* kind 0 */
    x.failed = !make_rows(&x);
  }
  if (!x.failed) fill_rows(&x);
  if (!x.failed) sort_kinds(out);
  for (size_t i = 0; i < r->nrepeats && !x.failed; i++)
    out->gap[out->ngaps++] = (chart_gap){ (double)r->repeat[i].from / STEP_SECOND,
                                          (double)r->repeat[i].to / STEP_SECOND, r->repeat[i].times };
  put_about(p, &about);
  out->title = mgrid_strdup(title), out->settings = mgrid_strdup(settings),
  out->about = mgrid_strdup(mgrid_text_chars(&about));
  x.failed |= !out->title || !out->settings || !out->about || about.failed;
  mgrid_text_free(&about);
  for (size_t i = 0; x.text_of && i < s->nprograms; i++) free(x.text_of[i]);
  free(x.text_of);
  free(x.of_entry);
  free(x.of_word);
  free(x.row_of);
  if (!x.failed) return MGRID_OK;
  mgrid_chart_free(out);
  return mgrid_oom(err);
}

void mgrid_chart_free(chart *c) {
  for (size_t i = 0; i < c->nrows; i++) free(c->row[i].label);
  for (size_t i = 0; i < c->ntexts; i++) free(c->text[i].text);
  free(c->row);
  free(c->text);
  free(c->gap);
  free(c->bars);
  free(c->title);
  free(c->settings);
  free(c->about);
  memset(c, 0, sizeof *c);
}
