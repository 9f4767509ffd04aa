/* SPDX-License-Identifier: MIT
**
** verdict.c - the verdict about a step, and its shortest counterexample.
*/
#include "step/waiting.h"

#include <inttypes.h>
#include <string.h>

const char *const mgrid_step_told_names[] = { "proved", "mismatch", "unmatched", "cycle",
                                              "hazard" };

static void verdict_add(const step_machine *m, step_verdict *v, int64_t rank, uint32_t node,
                        int64_t waits_for) {
  const mgrid_step *s = m->step;
  v->waiting[v->n++] = (step_waiting){ rank, waits_for, s->class[s->of[rank]].program, node };
}

/* ----------------------------------------------------------------- mismatch */

/* Return another rank, of this type, in the group that a slot of `rank` stands for; or -1. */
static int64_t member_of_type(const step_machine *m, int64_t rank, int32_t slot, int32_t type) {
  const mgrid_family *f = m->step->plan->content.entry[m->step->slot[slot].entry].family;
  int64_t group, position;
  if (!f->form->locate(f, rank, m->step->slot[slot].nth, &group, &position)) return -1;
  int64_t size = f->size >= 0 ? f->size : f->form->size(f, group);
  for (int64_t i = 0; i < size; i++)
    if (m->types->of[f->form->rank(f, group, i)] == type && f->form->rank(f, group, i) != rank)
      return f->form->rank(f, group, i);
  return -1;
}

static void tell_mismatch(const step_machine *m, step_verdict *v) {
  const step_post *a = &m->odd[0], *b = &m->odd[1];
  int64_t rank = m->types->type[a->type].first;
  int32_t slot = mgrid_step_machine_program(m, a->type)->node[a->node].slot;
  int64_t other = member_of_type(m, rank, slot, b->type);
  v->told = STEP_MISMATCH;
  verdict_add(m, v, rank, a->node, other);
  if (other >= 0) verdict_add(m, v, other, b->node, rank);
}

/* ---------------------------------------------------------------- unmatched */

typedef struct missing {
  const step_machine *m;
  step_wait who; /* the rank that will not make the call */
  uint32_t node; /* the call in which another rank waits for it */
  bool found;
} missing;

/* This is an mgrid_step_awaited_fn: it finds the first rank that will not make the call. */
static bool verdict_find_missing(const step_wait *to, bool will, void *ud) {
  missing *x = ud;
  if (will) return false;
  x->who = *to, x->node = to->node, x->found = true;
  return true;
}

static bool tell_unmatched(const step_machine *m, step_verdict *v) {
  for (size_t t = 0; t < m->types->n; t++)
    for (size_t i = m->first[t]; i < m->first[t + 1]; i++) {
      int64_t rank = m->types->type[t].first;
      missing x = { .m = m };
      if (!m->cursor[i].posted
          || !mgrid_step_each_awaited(m, &(step_wait){ rank, (int32_t)i, 0 }, verdict_find_missing,
                                      &x)
          || !x.found)
        continue;
      const step_program *p = mgrid_step_machine_program(m, m->types->of[x.who.rank]);
      v->told = STEP_UNMATCHED;
      verdict_add(m, v, rank, x.node, x.who.rank);
      verdict_add(m, v, x.who.rank,
                  x.who.cursor < 0 ? (uint32_t)p->n : m->cursor[x.who.cursor].place.node, -1);
      return true;
    }
  return false;
}

/* Find a send that did not wait and that nobody receives; return false if there is none. */
static bool tell_unreceived(const step_machine *m, step_verdict *v) {
  for (size_t i = 0; i < m->nmeetings; i++) {
    const step_meeting *x = &m->meeting[i];
    if (!x->nposts[0] || mgrid_step_posts(x, 0)->cursor >= 0) continue;
    const step_post *p = mgrid_step_posts(x, 0);
    v->told = STEP_UNMATCHED;
    verdict_add(m, v, m->types->type[p->type].first, p->node, -1);
    return true;
  }
  return false;
}

/* ------------------------------------------------------------------ verdict */

static mgrid_status verdict_tell(const step_machine *m, step_verdict *v, mgrid_error *err) {
  step_wait cycle[STEP_WAITING_MAX];
  if (m->odd[0].type >= 0) return tell_mismatch(m, v), MGRID_OK;
  if (tell_unmatched(m, v) && !m->budget->work.exhausted) return MGRID_OK;
  v->told = STEP_CYCLE;
  size_t n = mgrid_step_shortest_cycle(m, STEP_WAITING_MAX, cycle, err);
  for (size_t i = 0; i < n; i++)
    verdict_add(m, v, cycle[i].rank, cycle[i].node, cycle[(i + 1) % n].rank);
  if (m->budget->work.exhausted) {
    mgrid_error why = MGRID_ERROR_INIT;
    mgrid_step_budget_spent(m->budget, &why);
    return mgrid_fail(
        err, MGRID_LIMIT,
        "%s: the step is not proved, because some rank waits forever; to find which one takes more",
        why.message);
  }
  if (!n && !err->status) tell_unreceived(m, v);
  return err->status;
}

/* Return whether a list of concurrent families in the recipe has all families of the
** counterexample. Kernels of such families leave each other SMs (concurrent.c of src/plan). */
static bool is_concurrent(const mgrid_step *s, const step_verdict *v) {
  const mgrid_content *c = &s->plan->content;
  for (size_t i = 0; i < c->nconcurrent; i++) {
    bool all = v->n > 0;
    for (size_t k = 0; k < v->n && all; k++) {
      const step_program *p = &s->program[v->waiting[k].program];
      if (v->waiting[k].node == p->n) continue;
      const char *family = mgrid_step_family_of(s, &p->node[v->waiting[k].node]);
      bool in = false;
      for (size_t j = 0; j < c->concurrent[i].n; j++)
        in |= strcmp(c->concurrent[i].name[j], family) == 0;
      all = in;
    }
    if (all) return true;
  }
  return false;
}

static bool has_streams(const mgrid_step *s) {
  for (size_t i = 0; i < s->nprograms; i++)
    if (s->program[i].nstreams > 1) return true;
  return false;
}

static mgrid_status verdict_execute(const mgrid_step *s, const step_types *t, step_rules rules,
                                    int64_t eager, step_budget *b, step_verdict *v,
                                    mgrid_error *err) {
  step_machine m;
  bool done;
  mgrid_status status = mgrid_step_machine_run(&m, s, t, rules, eager, NULL, b, &done, err);
  if (!status && !done) status = verdict_tell(&m, v, err);
  mgrid_step_machine_free(&m);
  return status;
}

mgrid_status mgrid_step_conclude(const mgrid_step *s, step_rules rules, int64_t eager,
                                 step_verdict *v, mgrid_error *err) {
  step_types t;
  step_budget b;
  mgrid_error own = MGRID_ERROR_INIT;
  *v = (step_verdict){ .told = STEP_PROVED };
  mgrid_step_budget_begin(&b, &s->limits, "the proof of the step");
  if (mgrid_step_types_of(s, NULL, &b, &t, &own)) return mgrid_error_pass(err, &own);
  mgrid_status status = verdict_execute(s, &t, rules, eager, &b, v, &own);
  if (!status && v->told == STEP_PROVED && rules == STEP_NCCL && has_streams(s)) {
    status = verdict_execute(s, &t, STEP_ISSUED, 0, &b, v, &own);
    if (v->told != STEP_PROVED) {
      bool allowed = is_concurrent(s, v);
      v->told = allowed ? STEP_PROVED : STEP_HAZARD;
      if (allowed) v->n = 0;
    }
    if (!status && v->told == STEP_PROVED) status = mgrid_step_assumptions(s, &b, v, &own);
  }
  mgrid_step_types_free(&t);
  return status ? mgrid_error_pass(err, &own) : MGRID_OK;
}

/* --------------------------------------------------------------------- text */

/* Append the positions of a rank in the families of the counterexample, such as " (pp 1, tp 1)". */
static void put_positions(const mgrid_step *s, const step_verdict *v, int64_t rank, mgrid_text *t) {
  bool any = false;
  for (size_t i = 0; i < s->nslots; i++) {
    bool named = false;
    for (size_t k = 0; k < v->n && !named; k++) {
      const step_program *p = &s->program[v->waiting[k].program];
      named = v->waiting[k].node < p->n && p->node[v->waiting[k].node].slot == (int32_t)i;
    }
    step_read read = { STEP_ASKED_POSITION, s->slot[i].entry, s->slot[i].nth };
    int64_t at = named ? mgrid_step_answer(s->plan, &read, rank) : -1;
    if (at < 0) continue;
    mgrid_text_add(t, "%s%s %" PRId64, any ? ", " : " (",
                   s->plan->content.entry[s->slot[i].entry].name, at);
    any = true;
  }
  if (any) mgrid_text_str(t, ")");
}

/* Append a call, such as "all_reduce(tp) line 12". `files` adds the file; `size` adds bytes, root
** and type. */
static void verdict_put_call(const mgrid_step *s, const step_waiting *w, bool files, bool size,
                             mgrid_text *t) {
  const step_node *n = &s->program[w->program].node[w->node];
  mgrid_step_node_text(s, n, t);
  if (size && mgrid_step_rows[n->kind].sized) mgrid_text_add(t, " of %" PRId64 " bytes", n->bytes);
  if (size && mgrid_step_rows[n->kind].rooted) mgrid_text_add(t, ", root %" PRId64, n->number);
  if (size && n->type) mgrid_text_add(t, ", %s", s->word[n->type]);
  if (n->line && files)
    mgrid_text_add(t, " %s:%d", s->word[n->file], n->line);
  else if (n->line)
    mgrid_text_add(t, " line %d", n->line);
}

static bool has_files(const mgrid_step *s, const step_verdict *v) {
  uint32_t file = 0;
  for (size_t i = 0; i < v->n; i++) {
    const step_program *p = &s->program[v->waiting[i].program];
    if (v->waiting[i].node == p->n) continue;
    uint32_t is = p->node[v->waiting[i].node].file;
    if (file && is != file) return true;
    file = is;
  }
  return false;
}

void mgrid_step_verdict_text(const mgrid_step *s, const step_verdict *v, mgrid_text *t) {
  bool files = has_files(s, v), sizes = v->told == STEP_MISMATCH;
  for (size_t i = 0; i < v->n; i++) {
    const step_waiting *w = &v->waiting[i];
    bool ended = w->node == s->program[w->program].n;
    if (i == 0) mgrid_text_add(t, "rank %" PRId64, w->rank);
    if (i == 0) put_positions(s, v, w->rank, t);
    if (v->told == STEP_UNMATCHED && i == 1) {
      mgrid_text_str(t, ", which does not make that call");
      mgrid_text_str(t, ended ? ": it has ended" : ", and is in ");
      if (!ended) verdict_put_call(s, w, files, false, t);
      return;
    }
    if (v->told == STEP_MISMATCH) {
      if (i) mgrid_text_add(t, ", and rank %" PRId64, w->rank);
      if (i) put_positions(s, v, w->rank, t);
      mgrid_text_str(t, i ? " in " : " is in ");
      verdict_put_call(s, w, files, sizes, t);
      continue;
    }
    mgrid_text_str(t, i ? ", which waits in " : " waits in ");
    verdict_put_call(s, w, files, false, t);
    if (w->waits_for >= 0) mgrid_text_add(t, " for rank %" PRId64, w->waits_for);
    if (w->waits_for >= 0 && i + 1 < v->n) put_positions(s, v, w->waits_for, t);
    if (v->told == STEP_UNMATCHED && w->waits_for < 0)
      mgrid_text_str(t, ", and nobody receives it");
  }
}
