/* SPDX-License-Identifier: MIT
**
** classes.c - which ranks a step cannot tell apart. A program follows from the answers to what it
** read. So the reads are a tree: at a node one question, below it a branch for each answer, at a
** leaf the class. A rank walks down by its own answers; where its answer has no branch yet, the
** step is evaluated for it.
*/
#include "step/step.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ answers */

int64_t mgrid_step_answer(const mgrid_plan *p, const step_read *read, int64_t rank) {
  if (read->asked == STEP_ASKED_RANK) return rank;
  if (read->asked == STEP_ASKED_COORD)
    return mgrid_grid_coord(p->content.grid[read->of].grid, rank, (size_t)read->nth);
  const mgrid_family *f = p->content.entry[read->of].family;
  int64_t group, position;
  if (rank < f->low || rank > f->high || !f->form->locate(f, rank, read->nth, &group, &position))
    return -1;
  if (read->asked == STEP_ASKED_POSITION) return position;
  return read->asked == STEP_ASKED_INDEX ? group : f->size >= 0 ? f->size : f->form->size(f, group);
}

/* Return whether all ranks answer alike: such a read is not kept. */
static bool answers_alike(const mgrid_plan *p, const step_read *read) {
  if (read->asked == STEP_ASKED_RANK) return p->content.world == 1;
  if (read->asked == STEP_ASKED_COORD) {
    const mgrid_grid *g = p->content.grid[read->of].grid;
    return g->size == p->content.world && g->axis[read->nth].size == 1;
  }
  const mgrid_family *f = p->content.entry[read->of].family;
  if (f->overlapping || f->size < 0 || f->total != p->content.world || read->nth > 0) return false;
  return read->asked == STEP_ASKED_SIZE
         || (read->asked == STEP_ASKED_POSITION ? f->size : f->count) == 1;
}

bool mgrid_step_ask(step_writer *w, const step_read *read, int64_t *answer) {
  *answer = mgrid_step_answer(w->step->plan, read, w->rank);
  if (answers_alike(w->step->plan, read)) return true;
  for (size_t i = 0; i < w->nreads; i++)
    if (memcmp(&w->read[i], read, sizeof *read) == 0) return true;
  size_t room = w->reads_room;
  if (!MGRID_ROOM(w->read, room, w->nreads + 1)
      || !MGRID_ROOM(w->value, w->reads_room, w->nreads + 1))
    return false;
  w->read[w->nreads] = *read;
  w->value[w->nreads++] = *answer;
  return true;
}

/* ----------------------------------------------------------------- the tree */

static uint64_t classes_hash_of(int32_t node, int64_t value) {
  uint64_t x = ((uint64_t)value + 1) * UINT64_C(0x9E3779B97F4A7C15)
               ^ ((uint64_t)node + 1) * UINT64_C(0xC2B2AE3D27D4EB4F);
  return x ^ x >> 29;
}

static step_edge *classes_find(const mgrid_step *s, int32_t node, int64_t value) {
  size_t at = 0;
  for (int32_t i; (i = mgrid_index_next(&s->edges, classes_hash_of(node, value), &at)) >= 0;)
    if (s->edge[i].node == node && s->edge[i].value == value) return &s->edge[i];
  return NULL;
}

int32_t mgrid_step_find_class(mgrid_step *s, int64_t rank) {
  if (!s->nbranches) return s->nclasses ? 0 : -1;
  for (int32_t at = 0;;) {
    step_branch *b = &s->branch[at];
    int64_t value = mgrid_step_answer(s->plan, &b->read, rank);
    if (value != b->value || b->child == INT32_MIN) {
      const step_edge *e = classes_find(s, at, value);
      if (!e) return -1;
      b->value = value, b->child = e->child;
    }
    if (b->child < 0) return ~b->child;
    at = b->child;
  }
}

static mgrid_status impure(const step_writer *w, mgrid_error *err) {
  (void)w;
  return mgrid_fail(err, MGRID_REFUSED,
                    "the step asks other questions after the same answers: it is evaluated for one "
                    "rank after the other, "
                    "and may not change anything that the next evaluation sees");
}

mgrid_status mgrid_step_add_class(step_writer *w, int32_t program, mgrid_error *err) {
  mgrid_step *s = w->step;
  if (!MGRID_GROW(s->class, s->nclasses, 1)) return mgrid_oom(err);
  if (!w->nreads && s->nclasses) return impure(w, err); /* it read something for the ranks before */
  int32_t leaf = ~(int32_t)s->nclasses, at = 0;
  for (size_t i = 0; i < w->nreads; i++) {
    if (i == 0 && !s->nbranches && s->nclasses) return impure(w, err);
    if ((size_t)at == s->nbranches) {
      if (!MGRID_GROW(s->branch, s->nbranches, 1)) return mgrid_oom(err);
      if (mgrid_step_lists_put(&s->reads, (const int32_t *)&w->read[i], 3) < 0)
        return mgrid_oom(err);
      s->branch[s->nbranches++] = (step_branch){ w->read[i], 0, INT32_MIN };
    }
    if (memcmp(&s->branch[at].read, &w->read[i], sizeof w->read[i]) != 0) return impure(w, err);
    const step_edge *e = classes_find(s, at, w->value[i]);
    bool last = i + 1 == w->nreads;
    if (!e) {
      if (!MGRID_GROW(s->edge, s->nedges, 1)
          || !mgrid_index_put(&s->edges, classes_hash_of(at, w->value[i]), (int32_t)s->nedges))
        return mgrid_oom(err);
      s->edge[s->nedges] = (step_edge){ at, last ? leaf : (int32_t)s->nbranches, w->value[i] };
      e = &s->edge[s->nedges++];
    } else if (last || e->child < 0) {
      return impure(w, err);
    }
    at = e->child;
  }
  s->class[s->nclasses++] = (step_class){ program, w->rank, 0 };
  return MGRID_OK;
}

void mgrid_step_reads_text(const mgrid_step *s, mgrid_text *t) {
  for (size_t i = 0; i < s->reads.n; i++) {
    const step_read *r = mgrid_step_read_of(s, i);
    if (t->len) mgrid_text_str(t, ", ");
    if (r->asked == STEP_ASKED_RANK) {
      mgrid_text_str(t, "rank");
    } else if (r->asked == STEP_ASKED_COORD) {
      const mgrid_named_grid *g = &s->plan->content.grid[r->of];
      mgrid_text_add(t, "%s.%s", g->name, g->grid->axis[r->nth].name);
    } else {
      static const char *const what[] = { "", ".position", ".index" };
      mgrid_text_add(t, "%s%s", s->plan->content.entry[r->of].name, what[r->asked]);
    }
  }
}
