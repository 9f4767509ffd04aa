/* SPDX-License-Identifier: MIT
**
** tensors.c - describes to moongrid which rank has which part of each parameter of the whole model,
** and moves values from one layout to another: each value that a rank needs and does not have is
** sent to it once.
**
** The part of a parameter that tp gives to a rank is flattened, and cut into slices by the dim
** `zero`. Weights and the optimizer's two moments have the same slices, so one move is run three
** times. It needs the memory of both models and of the move's window.
*/
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

real *array_of(const param *p, int which) {
  real *all[ARRAYS] = { p->w + p->first, p->m, p->v };
  return all[which];
}

/* Return a family of the ranks that hold a parameter. */
static mgrid_family *family_of(const model *m, holders where, mgrid_error *err) {
  static const char *const stages[] = { "pp" }, *const experts[] = { "ep", "pp" };
  bool expert = where.ep >= 0;
  size_t n = 0;
  int64_t place[2];
  for (int k = 0; k < 2; k++)
    if (k == 0 || where.pp[1] != where.pp[0])
      place[n++] = expert ? where.ep + m->l.ep.size * where.pp[k] : where.pp[k];
  mgrid_family *all = mgrid_grid_along(expert ? m->l.experts : m->l.dense, expert ? 2 : 1,
                                       expert ? experts : stages, MGRID_GRID_ORDER, err);
  mgrid_family *on = mgrid_family_pick(all, n, place, err);
  mgrid_family_free(all);
  return on;
}

void tensor_declare(model *m, const char *name, cut how, int rows, int cols, holders where,
                    mgrid_error *err) {
  static const char *const tp[] = { "tp" }, *const zero[] = { "zero" };
  mgrid_tensor_axis axis[] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
  mgrid_tensor *slices = NULL;
  if (err->status) return;
  axis[0].name = "rows", axis[0].length = rows, axis[0].ndims = how == BY_ROWS, axis[0].dims = tp;
  axis[1].name = "cols", axis[1].length = cols, axis[1].ndims = how == BY_COLUMNS,
  axis[1].dims = tp;
  mgrid_family *on = family_of(m, where, err);
  mgrid_tensor *t =
      on ? mgrid_tensor_new(where.ep >= 0 ? m->l.experts : m->l.dense, REAL_TYPE, 2, axis, on, err)
         : NULL;
  if (t && !mgrid_tensor_flatten(1, (const mgrid_tensor *[]){ t }, 1, zero, 1, &slices, err))
    mgrid_topology_add_tensor(m->topology, name, slices, err);
  mgrid_tensor_free(slices);
  mgrid_tensor_free(t);
  mgrid_family_free(on);
}

void tensor_slices(model *m, mgrid_error *err) {
  const int64_t rank = mgrid_backend_rank(mgrid_state_backend(m->l.state));
  for (int i = 0; i < m->nparams && !err->status; i++) {
    param *p = &m->params[i];
    mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
    mgrid_tensor_local(m->tensors, p->name, rank, &part, err);
    p->slice = (size_t)part.slice, p->first = (size_t)part.first, p->n = (size_t)part.elements;
  }
}

static param *find(model *m, const char *tensor) {
  for (int i = 0; i < m->nparams; i++)
    if (strcmp(m->params[i].name, tensor) == 0) return &m->params[i];
  return NULL;
}

/* Set the buffers of this rank's slices for each tensor of the move; NULL where it has none. */
static void set_parts(const mgrid_move *move, param **p, int which, mgrid_buffer *part) {
  for (size_t i = 0; i < mgrid_move_ntensors(move); i++)
    part[i] = p[i] ? (mgrid_buffer){ array_of(p[i], which), (int64_t)(p[i]->n * sizeof(real)) }
                   : (mgrid_buffer){ NULL, 0 };
}

mgrid_status model_carry(model *from, model *to, mgrid_backend *mpi, int rank,
                         const mgrid_loss *loss, mgrid_error *err) {
  mgrid_move_options o = MGRID_MOVE_OPTIONS_INIT;
  /* the new rank of each old rank */
  int64_t *is = room((size_t)mgrid_plan_world(from->tensors), sizeof *is);
  for (int64_t i = 0; loss && i < mgrid_plan_world(from->tensors); i++)
    is[i] = mgrid_loss_rank(loss, i), o.nold++;
  o.old = is;
  mgrid_move *move = mgrid_move_new(from->tensors, to->tensors, rank, 0, NULL, &o, err);
  free(is);
  size_t n = mgrid_move_ntensors(move);
  param **old = room(n + 1, sizeof(param *)), **new = room(n + 1, sizeof(param *));
  mgrid_buffer *before = room(n + 1, sizeof *before), *after = room(n + 1, sizeof *after);
  for (size_t i = 0; i < n; i++) {
    old[i] = find(from, mgrid_move_tensor(move, i));
    new[i] = find(to, mgrid_move_tensor(move, i));
  }
  /* if mgrid_move_new failed on this rank, it calls without a move, and all ranks get its error */
  mgrid_status s = MGRID_OK;
  for (int which = 0; which < ARRAYS && !s; which++) {
    set_parts(move, old, which, before);
    set_parts(move, new, which, after);
    s = mgrid_move_run(move, mpi, before, after, NULL, err);
  }
  mgrid_move_free(move);
  free(old), free(new), free(before), free(after);
  return s;
}

/* ------------------------------------------------------------------- what is lost */

/* A rank's part: values first..first + n - 1 of a box of rows and columns. */
typedef struct part {
  int64_t first, n;
  mgrid_run rows, cols;
} part;

static part part_of(const model *m, const char *tensor, int64_t rank, mgrid_error *err) {
  mgrid_tensor_part is = MGRID_TENSOR_PART_INIT;
  part p = { 0 };
  if (mgrid_tensor_local(m->tensors, tensor, rank, &is, err) || !is.elements) return p;
  p.first = is.first, p.n = is.elements;
  mgrid_tensor_runs(m->tensors, tensor, rank, 0, 1, &p.rows, err);
  mgrid_tensor_runs(m->tensors, tensor, rank, 1, 1, &p.cols, err);
  return p;
}

/* Return whether two parts are equal. Parts that are not equal are disjoint, so starts suffice. */
static bool same(part a, part b) {
  return a.n && a.n == b.n && a.first == b.first && a.rows.start == b.rows.start
         && a.cols.start == b.cols.start;
}

/* "layer1.up (rows 0..31): ranks 2, 3 held it" */
static void describe(const char *tensor, part p, size_t n, const int64_t *held, char what[256]) {
  int64_t from = p.rows.start + p.first / p.cols.length,
          to = p.rows.start + (p.first + p.n - 1) / p.cols.length;
  size_t at = (size_t)snprintf(what, 256, "%s (row%s %" PRId64, tensor, to > from ? "s" : "", from);
  if (to > from) at += (size_t)snprintf(what + at, 256 - at, "..%" PRId64, to);
  at += (size_t)snprintf(what + at, 256 - at, "): rank%s", n > 1 ? "s" : "");
  for (size_t i = 0; i < n && at < 200; i++)
    at += (size_t)snprintf(what + at, 256 - at, "%s %" PRId64, i ? "," : "", held[i]);
  snprintf(what + at, 256 - at, " held it");
}

int64_t model_missing(const model *m, const mgrid_loss *loss, char what[256], mgrid_error *err) {
  const int64_t world = mgrid_plan_world(m->tensors);
  int64_t *held = room((size_t)world, sizeof *held), bytes = 0;
  part *parts = room((size_t)world, sizeof *parts);
  *what = 0;
  for (size_t i = 0; i < mgrid_plan_ntensors(m->tensors); i++) {
    const char *tensor = mgrid_plan_tensor_name(m->tensors, i);
    for (int64_t r = 0; r < world; r++) parts[r] = part_of(m, tensor, r, err);
    for (int64_t r = 0; r < world; r++) {
      size_t n = 0;
      bool left = false;
      for (int64_t k = 0; k < world; k++) {
        if (!same(parts[r], parts[k])) continue;
        left |= mgrid_loss_rank(loss, k) >= 0;
        held[n++] = k;
      }
      if (!n || left || held[0] != r) continue;
      if (!bytes) describe(tensor, parts[r], n, held, what);
      bytes += parts[r].n * ARRAYS * (int64_t)sizeof(real);
    }
  }
  free(held), free(parts);
  return bytes;
}
