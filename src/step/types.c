/* SPDX-License-Identifier: MIT
**
** types.c - find the types of ranks in a step. Two ranks are of one type if they have one program,
** and if in each family that the step uses the members of their groups are of the same types. If
** messages go from position to position in a family, the types must also be in the same order, and
** the two ranks at the same position. The ranks with equal programs are split until this holds, as
** the colours of a graph are refined (Weisfeiler and Leman 1968). inside.md says why one rank of a
** type then stands for all.
*/
#include "step/step.h"

#include <stdlib.h>
#include <string.h>

/* What is known about a slot. */
typedef struct used {
  bool ordered; /* messages go from position to position */
  bool rivals;  /* some groups may use the communicator of an earlier family */
} used;

typedef struct refining {
  const mgrid_step *step;
  const mgrid_plan *plan;
  int64_t world;
  size_t nused; /* slots of the step */
  used *used;
  step_budget *budget;
  const int32_t *apart; /* [world]: ranks with different values become different types; or NULL */
  int32_t *color;       /* [world]: the type of each rank so far */
  int32_t *key;         /* [nused * world]: the circle of each rank in each slot */
} refining;

static const mgrid_family *types_family_of(const refining *x, size_t slot) {
  return x->plan->content.entry[x->step->slot[slot].entry].family;
}

/* Return the family that owns the communicator of a group: the slot's family, or an earlier one. */
static int32_t types_leader_of(const refining *x, size_t slot, int64_t group) {
  const mgrid_plan *p = x->plan;
  int32_t e = x->step->slot[slot].entry;
  if (p->shares[e] >= 0 || !x->used[slot].rivals) return mgrid_step_leader(p, e);
  const mgrid_family *f = types_family_of(x, slot);
  for (int j = 0; j < e; j++) {
    const mgrid_family *g = p->content.entry[j].family;
    if (mgrid_plan_rivals(p, e, j) && mgrid_group_in(f, group, g, g->count, &x->budget->work) >= 0)
      return mgrid_step_leader(p, j);
  }
  return e;
}

/* Arrays with one number for each rank and family do not count. A cover may have several slots:
** only the slots beyond one for each family count. */
bool mgrid_step_hold_slots(const mgrid_step *s, step_budget *b) {
  size_t families = s->plan->content.nentries,
         more = s->nslots > families ? s->nslots - families : 0;
  return mgrid_step_budget_hold(b, more * (size_t)s->plan->content.world * sizeof(int32_t));
}

int64_t mgrid_step_largest(const mgrid_step *s) {
  int64_t most = 1;
  for (size_t i = 0; i < s->nslots; i++) {
    int64_t size = s->plan->content.entry[s->slot[i].entry].family->max_size;
    if (size > most) most = size;
  }
  return most;
}

void mgrid_step_by_position(const mgrid_step *s, bool *slots) {
  memset(slots, 0, s->nslots * sizeof *slots);
  for (size_t i = 0; i < s->nprograms; i++)
    for (size_t k = 0; k < s->program[i].n; k++) {
      const step_node *n = &s->program[i].node[k];
      if (n->slot >= 0 && mgrid_step_rows[n->kind].role == STEP_POINT) slots[n->slot] = true;
    }
}

static bool find_used(refining *x) {
  const mgrid_step *s = x->step;
  bool *by_position = malloc(s->nslots + 1), ordered = false;

  x->nused = s->nslots;
  x->used = calloc(s->nslots + 1, sizeof *x->used);
  if (!x->used || !by_position) return free(by_position), false;
  mgrid_step_by_position(s, by_position);
  for (size_t i = 0; i < s->nslots; i++) {
    used *u = &x->used[i];
    u->ordered = by_position[i];
    for (int j = 0; j < s->slot[i].entry && !u->rivals; j++)
      u->rivals = mgrid_plan_rivals(x->plan, s->slot[i].entry, j);
    ordered |= u->ordered;
  }
  free(by_position);

  /* if messages go by position over a communicator, all families that use it are ordered, and then
  ** all families that share another communicator with one of these */
  while (ordered && !x->budget->work.exhausted) {
    ordered = false;
    for (size_t i = 0; i < x->nused; i++)
      for (size_t k = 0; k < x->nused && !x->used[i].ordered; k++) {
        int32_t a = s->slot[i].entry, b = s->slot[k].entry;
        bool one = mgrid_step_leader(x->plan, a) == mgrid_step_leader(x->plan, b)
                   || (a > b ? mgrid_plan_rivals(x->plan, a, b)
                             : a < b && mgrid_plan_rivals(x->plan, b, a));
        mgrid_spend(&x->budget->work, 1);
        if (one && x->used[k].ordered) x->used[i].ordered = ordered = true;
      }
  }
  return true;
}

/* Charge the budget for n ranks, in all slots. */
static bool pay_ranks(const refining *x, int64_t n) {
  return mgrid_spend(&x->budget->work, 1 + n * (int64_t)x->nused / 8);
}

/* Set the first colours: by the program, by x->apart, by the positions in ordered families, and, in
** families that share only some communicators, by the owner of the communicator. If ranks may be in
** several groups of a family, every rank gets its own colour. */
static bool first_colors(refining *x, step_lists *colors) {
  int32_t *row = malloc((3 * x->nused + 3) * sizeof *row);
  bool done = row != NULL, alone = false;

  for (size_t i = 0; i < x->nused; i++) alone |= types_family_of(x, i)->overlapping;
  for (int64_t r = 0; r < x->world && done; r++) {
    size_t n = 0;
    if (!pay_ranks(x, 1)) break;
    row[n++] = x->step->class[x->step->of[r]].program;
    if (x->apart) row[n++] = x->apart[r];
    if (alone) row[n++] = (int32_t)r;
    for (size_t i = 0; i < x->nused && !alone; i++) {
      const used *u = &x->used[i];
      int64_t group, position;
      if (!u->ordered && !u->rivals) continue;
      bool in =
          mgrid_family_locate(types_family_of(x, i), r, x->step->slot[i].nth, &group, &position);
      row[n++] = in ? u->ordered ? (int32_t)position : 0 : -1;
      if (u->rivals) row[n++] = in ? types_leader_of(x, i, group) : -1;
    }
    x->color[r] = mgrid_step_lists_put(colors, row, n);
    done = x->color[r] >= 0;
  }
  free(row);
  return done;
}

static int types_by_number(const void *a, const void *b) {
  return *(const int32_t *)a < *(const int32_t *)b ? -1 : *(const int32_t *)a > *(const int32_t *)b;
}

/* Sort the numbers, drop equal ones, and return how many are left. Most groups have only a few
** different numbers, so collect these without sorting all. */
static size_t unique(int32_t *list, size_t n) {
  enum { FEW = 16 };
  int32_t few[FEW];
  size_t m = 0;

  for (size_t i = 0; i < n; i++) {
    size_t k = 0;
    if (m && few[m - 1] == list[i]) continue;
    while (k < m && few[k] != list[i]) k++;
    if (k < m) continue;
    if (m == FEW) break;
    few[m++] = list[i];
    if (i + 1 == n) break;
  }
  if (m < FEW) {
    memcpy(list, few, m * sizeof *list);
    qsort(list, m, sizeof *list, types_by_number);
    return m;
  }
  qsort(list, n, sizeof *list, types_by_number);
  m = 0;
  for (size_t i = 0; i < n; i++)
    if (m == 0 || list[m - 1] != list[i]) list[m++] = list[i];
  return m;
}

/* Set the circles of all ranks in a slot from the colours of the members. A circle is a list: the
** family that owns the communicator, whether the circle is ordered, its size, the colours. */
static bool set_circles(refining *x, size_t slot, int32_t *key, step_lists *circles,
                        int32_t *members, int32_t *list) {
  const mgrid_family *f = types_family_of(x, slot);
  bool ordered = x->used[slot].ordered;

  memset(key, -1, (size_t)x->world * sizeof *key);
  for (int64_t g = 0; g < f->count; g++) {
    int64_t size = mgrid_family_size(f, g);
    if (!mgrid_spend(&x->budget->work, 1 + size / 4)) break;
    mgrid_family_group(f, g, members);
    list[0] = types_leader_of(x, slot, g);
    list[1] = ordered;
    list[2] = (int32_t)size;
    for (int64_t i = 0; i < size; i++) list[3 + i] = x->color[members[i]];
    size_t n = ordered ? (size_t)size : unique(list + 3, (size_t)size);
    int32_t circle = mgrid_step_lists_put(circles, list, n + 3);
    if (circle < 0) return false;
    if (2 * circles->used * sizeof *list > STEP_MEMORY_MAX + 8 * (size_t)x->world)
      mgrid_step_budget_hold(x->budget, STEP_MEMORY_MAX);
    for (int64_t i = 0; i < size; i++)
      if (mgrid_step_has(x->step, slot, members[i], g)) key[members[i]] = circle;
  }
  return true;
}

/* Set the circles from the colours. Return new colours, which differ where a colour or a circle
** differs; NULL: no memory. */
static int32_t *refine(refining *x, step_lists *circles, step_lists *colors, int32_t *members,
                       int32_t *list) {
  bool done = true;
  int32_t *row = malloc((x->nused + 1) * sizeof *row),
          *next = malloc((size_t)x->world * sizeof *next);
  for (size_t i = 0; i < x->nused && done; i++)
    done = set_circles(x, i, x->key + i * (size_t)x->world, circles, members, list);
  done = done && row && next;
  for (int64_t r = 0; r < x->world && done && pay_ranks(x, 1); r++) {
    row[0] = x->color[r];
    for (size_t i = 0; i < x->nused; i++) row[i + 1] = x->key[i * (size_t)x->world + (size_t)r];
    next[r] = mgrid_step_lists_put(colors, row, x->nused + 1);
    done = next[r] >= 0;
  }
  free(row);
  if (done) return next;
  free(next);
  return NULL;
}

/* Write the types. The last round split no colour, so all ranks of one colour have the same
** circles. */
static bool write_types(const refining *x, const step_lists *circles, size_t ncolors,
                        step_types *out) {
  size_t slots = x->step->nslots;

  if (!mgrid_step_budget_hold(x->budget, 2 * slots * ncolors * sizeof(int32_t))) return false;
  out->n = ncolors, out->ncircles = circles->n;
  out->type = calloc(ncolors + 1, sizeof *out->type);
  out->circle = calloc(circles->n + 1, sizeof *out->circle);
  int32_t *room = malloc((2 * slots * ncolors + 1) * sizeof *room);
  if (!out->type || !out->circle || !room) {
    free(room);
    return false;
  }
  out->rooms = room;
  for (size_t i = 0; i < circles->n; i++) {
    const int32_t *list = &circles->data[circles->start[i]];
    size_t n = circles->start[i + 1] - circles->start[i] - 3;
    int32_t *type = malloc((n + 1) * sizeof *type);
    if (!type) return false;
    memcpy(type, list + 3, n * sizeof *type);
    out->circle[i] = (step_circle){ list[1], list[2], (int32_t)n, type };
  }
  for (size_t i = 0; i < ncolors; i++) out->type[i].first = -1;
  for (int64_t r = 0; r < x->world; r++) {
    step_type *t = &out->type[x->color[r]];
    if (t->first < 0) {
      t->first = r;
      t->class = x->step->of[r];
      t->circle = room, t->position = room + slots;
      room += 2 * slots;
      for (size_t i = 0; i < x->nused; i++) {
        const mgrid_family *f = types_family_of(x, i);
        int64_t group, position = 0;
        t->circle[i] = x->key[i * (size_t)x->world + (size_t)r];
        if (t->circle[i] >= 0) f->form->locate(f, r, x->step->slot[i].nth, &group, &position);
        t->position[i] = (int32_t)position;
      }
    }
    t->ranks++;
  }
  return true;
}

mgrid_status mgrid_step_types_of(const mgrid_step *s, const int32_t *apart, step_budget *b,
                                 step_types *out, mgrid_error *err) {
  refining x = {
    .step = s, .plan = s->plan, .world = s->plan->content.world, .apart = apart, .budget = b
  };
  step_lists colors = { 0 }, circles = { 0 }, next = { 0 };
  int64_t most = mgrid_step_largest(s);

  memset(out, 0, sizeof *out);
  bool done = find_used(&x);
  int32_t *members = malloc((size_t)most * sizeof *members),
          *list = malloc((size_t)(most + 3) * sizeof *list);
  x.color = malloc((size_t)x.world * sizeof *x.color);
  if (done && !mgrid_step_hold_slots(s, b)) done = false;
  x.key = done ? malloc(((size_t)x.world * x.nused + 1) * sizeof *x.key) : NULL;
  done = done && members && list && x.color && x.key && first_colors(&x, &colors);
  size_t n = colors.n;
  while (done && !b->work.exhausted) {
    mgrid_step_lists_free(&circles);
    mgrid_step_lists_free(&next);
    circles = next = (step_lists){ 0 };
    int32_t *color = refine(&x, &circles, &next, members, list);
    done = color != NULL;
    if (!done || next.n == n || b->work.exhausted) {
      free(color);
      break;
    }
    n = next.n;
    free(x.color);
    x.color = color;
  }
  done = done && !b->work.exhausted && write_types(&x, &circles, n, out);
  mgrid_step_lists_free(&colors);
  mgrid_step_lists_free(&circles);
  mgrid_step_lists_free(&next);
  free(members);
  free(list);
  free(x.key);
  free(x.used);
  if (done) {
    out->of = x.color;
    return MGRID_OK;
  }
  free(x.color);
  mgrid_step_types_free(out);
  if (!b->work.exhausted) return mgrid_oom(err);
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_step_budget_spent(b, &why);
  return mgrid_fail(err, MGRID_LIMIT,
                    "%s before the first operation: so far its ranks are of %zu types", why.message,
                    n);
}

void mgrid_step_types_free(step_types *t) {
  for (size_t i = 0; t->circle && i < t->ncircles; i++) free(t->circle[i].type);
  free(t->rooms);
  free(t->type);
  free(t->circle);
  free(t->of);
  memset(t, 0, sizeof *t);
}
