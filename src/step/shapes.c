/* SPDX-License-Identifier: MIT
**
** shapes.c - how the groups of a step lie on a machine. What a call takes follows from the shape of
** its group: how many domains of each level it touches, and how many groups of its family share
** their links. Ranks whose groups differ in shape are of two types (types.c), so that one rank of a
** type still stands for all.
*/
#include "machine/count.h"
#include "step/price.h"

#include <stdlib.h>
#include <string.h>

typedef struct finding {
  const mgrid_step *s;
  const mgrid_machine_model *m;
  step_shapes *out;
  int64_t world, most;            /* members of a group */
  int32_t *members, *seen, *list; /* seen: by domain, how many members a group has there */
  int32_t *touched;
  bool *by_position; /* of the slots */
  step_budget *budget;
  int32_t *leaving[MGRID_LEVELS_MAX]; /* by domain, groups of the family that leave it */
} finding;

/* Which of the levels have domains of several places. */
static size_t wide_levels(const mgrid_machine_model *m) { return m->ntiers - 1; }

static int32_t shapes_domain_of(const finding *x, size_t level, int32_t rank) {
  return level < wide_levels(x->m) ? x->out->domain[level][rank] : rank;
}

/* Write the domains of a level that a group touches to x->touched, and how many members are in each
** to x->seen. */
static int32_t touch(finding *x, size_t level, int64_t n) {
  const int32_t *domain = x->out->domain[level];
  int32_t count = 0;
  for (int64_t i = 0; i < n; i++)
    if (x->seen[domain[x->members[i]]]++ == 0) x->touched[count++] = domain[x->members[i]];
  return count;
}

static void shapes_forget(finding *x, int32_t count) {
  for (int32_t i = 0; i < count; i++) x->seen[x->touched[i]] = 0;
}

static void shapes_count_leaving(finding *x, const mgrid_family *f) {
  for (size_t l = 0; l < wide_levels(x->m); l++) {
    memset(x->leaving[l], 0, (size_t)(x->out->domains[l] + 1) * sizeof *x->leaving[l]);
    for (int64_t g = 0; g < f->count; g++) {
      int64_t n = f->size >= 0 ? f->size : f->form->size(f, g);
      if (!mgrid_spend(&x->budget->work, 1 + n / 8)) return;
      mgrid_family_group(f, g, x->members);
      int32_t count = touch(x, l, n);
      for (int32_t i = 0; i < count && count > 1; i++) x->leaving[l][x->touched[i]]++;
      shapes_forget(x, count);
    }
  }
}

/* Write what the shape of a group is made of to x->list: four numbers for each level; then, with
** `ordered`, the domains of the positions. */
static size_t shapes_describe(finding *x, int64_t n, bool ordered) {
  size_t at = 0, levels = x->m->ntiers;
  int32_t least, most, share, count;
  x->list[at++] = (int32_t)n;
  for (size_t l = 0; l < levels; l++) {
    count = (int32_t)n, least = most = share = 1;
    if (l < wide_levels(x->m)) {
      count = touch(x, l, n), least = INT32_MAX, most = share = 0;
      for (int32_t i = 0; i < count; i++) {
        int32_t d = x->touched[i], here = x->seen[d];
        least = here < least ? here : least, most = here > most ? here : most;
        share = x->leaving[l][d] > share ? x->leaving[l][d] : share;
      }
      shapes_forget(x, count);
    }
    x->list[at++] = count, x->list[at++] = least, x->list[at++] = most,
    x->list[at++] = count > 1 ? share : 0;
  }
  for (size_t l = 0; l < levels && ordered; l++) {
    int32_t next = 0;
    /* domains are numbered as they come; seen: the number, from 1 on */
    for (int64_t i = 0; i < n; i++) {
      if (l < wide_levels(x->m)) {
        int32_t d = shapes_domain_of(x, l, x->members[i]);
        if (!x->seen[d]) x->touched[next] = d, x->seen[d] = ++next;
        x->list[at++] = x->seen[d] - 1;
      } else {
        x->list[at++] = (int32_t)i;
      }
    }
    shapes_forget(x, l < wide_levels(x->m) ? next : 0);
  }
  return at;
}

/* Set the shape of each rank's group in a slot. */
static bool find_shapes(finding *x, size_t slot, step_lists *shapes, int32_t *of) {
  const mgrid_family *f = x->s->plan->content.entry[x->s->slot[slot].entry].family;
  bool ordered = x->by_position[slot];
  memset(of, -1, (size_t)x->world * sizeof *of);
  shapes_count_leaving(x, f);
  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = f->size >= 0 ? f->size : f->form->size(f, g), group, position;
    if (!mgrid_spend(&x->budget->work, 1 + n / 4)) return true;
    mgrid_family_group(f, g, x->members);
    int32_t shape = mgrid_step_lists_put(shapes, x->list, shapes_describe(x, n, ordered));
    if (shape < 0) return false;
    for (int64_t i = 0; i < n; i++)
      if (!f->overlapping
          || (f->form->locate(f, x->members[i], x->s->slot[slot].nth, &group, &position)
              && group == g))
        of[x->members[i]] = shape;
  }
  return true;
}

static bool write_shapes(const step_lists *shapes, size_t levels, step_shapes *out) {
  out->n = shapes->n;
  out->shape = calloc(shapes->n + 1, sizeof *out->shape);
  out->where = malloc((shapes->used + 1) * sizeof *out->where);
  if (!out->shape || !out->where) return false;
  if (shapes->used) memcpy(out->where, shapes->data, shapes->used * sizeof *out->where);
  for (size_t i = 0; i < shapes->n; i++) {
    step_shape *shape = &out->shape[i];
    int32_t *list = out->where + shapes->start[i];
    size_t n = shapes->start[i + 1] - shapes->start[i];
    shape->size = *list++;
    for (size_t l = 0; l < levels; l++, list += 4)
      shape->at[l] = (step_reach){ list[0], list[1], list[2], list[3] };
    if (n > 1 + 4 * levels) shape->where = list;
  }
  return true;
}

static bool shapes_prepare(finding *x) {
  int64_t most = x->world;
  for (size_t l = 0; l < wide_levels(x->m); l++) {
    x->out->domain[l] = malloc((size_t)x->world * sizeof *x->out->domain[l]);
    if (!x->out->domain[l]) return false;
    x->out->domains[l] = mgrid_domains_of(x->m, l, x->world, x->out->domain[l]);
    if (x->out->domains[l] > most) most = x->out->domains[l];
    x->leaving[l] = malloc((size_t)(x->out->domains[l] + 1) * sizeof *x->leaving[l]);
    if (!x->leaving[l]) return false;
  }
  x->most = 1;
  for (size_t i = 0; i < x->s->nslots; i++) {
    int64_t size = x->s->plan->content.entry[x->s->slot[i].entry].family->max_size;
    if (size > x->most) x->most = size;
  }
  x->members = malloc((size_t)x->most * sizeof *x->members);
  x->touched = malloc((size_t)x->most * sizeof *x->touched);
  x->list = malloc((size_t)(x->most + 4) * x->m->ntiers * sizeof *x->list + sizeof *x->list);
  x->seen = calloc((size_t)most + 1, sizeof *x->seen);
  x->by_position = malloc(x->s->nslots + 1);
  if (x->by_position) mgrid_step_by_position(x->s, x->by_position);
  return x->by_position && x->members && x->touched && x->list && x->seen;
}

mgrid_status mgrid_step_shapes_of(const mgrid_step *s, const mgrid_machine_model *m, step_budget *b,
                                  step_shapes *out, step_types *types, mgrid_error *err) {
  finding x = { .s = s, .m = m, .out = out, .budget = b, .world = s->plan->content.world };
  step_lists shapes = { 0 }, pairs = { 0 };
  memset(out, 0, sizeof *out);
  memset(types, 0, sizeof *types);
  mgrid_status status = mgrid_machine_fits(m, x.world, err);
  if (!status && !mgrid_step_hold_slots(s, b)) status = mgrid_step_budget_spent(b, err);
  if (status) return status;
  size_t world = (size_t)x.world;
  int32_t *of = malloc((world * s->nslots + 1) * sizeof *of),
          *apart = calloc(world + 1, sizeof *apart);
  bool done = shapes_prepare(&x) && of && apart;
  for (size_t i = 0; i < s->nslots && done && !b->work.exhausted; i++) {
    done = find_shapes(&x, i, &shapes, of + i * world);
    for (size_t r = 0; r < world && done; r++) {
      int32_t pair[2] = { apart[r], of[i * world + r] };
      apart[r] = mgrid_step_lists_put(&pairs, pair, 2);
      done = apart[r] >= 0;
    }
  }
  done = done && write_shapes(&shapes, m->ntiers, out);
  if (done)
    status = b->work.exhausted ? mgrid_step_budget_spent(b, err)
                               : mgrid_step_types_of(s, apart, b, types, err);
  if (done && !status) out->of = malloc((types->n * s->nslots + 1) * sizeof *out->of);
  for (size_t t = 0; out->of && t < types->n; t++)
    for (size_t i = 0; i < s->nslots; i++)
      out->of[t * s->nslots + i] = of[i * world + (size_t)types->type[t].first];
  for (size_t l = 0; l < wide_levels(m); l++) free(x.leaving[l]);
  mgrid_step_lists_free(&shapes);
  mgrid_step_lists_free(&pairs);
  free(x.members);
  free(x.touched);
  free(x.list);
  free(x.seen);
  free(x.by_position);
  free(of);
  free(apart);
  if (done && !status && out->of) return MGRID_OK;
  mgrid_step_shapes_free(out);
  mgrid_step_types_free(types);
  return status ? status : mgrid_oom(err);
}

void mgrid_step_shapes_free(step_shapes *x) {
  for (size_t l = 0; l < MGRID_LEVELS_MAX; l++) free(x->domain[l]);
  free(x->shape);
  free(x->of);
  free(x->where);
  memset(x, 0, sizeof *x);
}
