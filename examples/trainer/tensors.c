/* SPDX-License-Identifier: MIT
**
** tensors.c - tells moongrid which rank has which part of each parameter of the whole model, and carries values from
** one layout to another by what it plans from that: each value that a rank needs and does not have is sent to it once.
**
** Weights and the optimizer's two moments are cut alike, so one move carries all three, one after the other. Memory:
** both models, and the window of the move.
*/
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

real *array_of(const param *p, int which) {
  real *all[ARRAYS] = { p->w, p->m, p->v };
  return all[which];
}

void tensor_name(const char *parameter, char out[PARAM_NAME]) {
  snprintf(out, PARAM_NAME, "%s", parameter);
  for (char *dot = out; (dot = strchr(dot, '.'));) *dot = '_';
}

/* The ranks with stage at[0] or at[1] of the pipeline, and of the experts those with this one. */
static mgrid_family *family_of(const model *m, holders where, mgrid_error *err) {
  static const char *const stages[] = { "pp" }, *const experts[] = { "ep", "pp" };
  bool    expert = where.ep >= 0;
  size_t  n = 0;
  int64_t place[2];
  for (int k = 0; k < 2; k++)
    if (k == 0 || where.pp[1] != where.pp[0]) place[n++] = expert ? where.ep + m->l.ep.size * where.pp[k] : where.pp[k];
  mgrid_family *all = mgrid_grid_along(expert ? m->l.experts : m->l.dense, expert ? 2 : 1, expert ? experts : stages,
                                       MGRID_GRID_ORDER, err);
  mgrid_family *on = mgrid_family_pick(all, n, place, err);
  mgrid_family_free(all);
  return on;
}

void tensor_declare(model *m, const char *name, cut how, int rows, int cols, holders where, mgrid_error *err) {
  static const char *const tp[] = { "tp" };
  mgrid_tensor_axis        axis[] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
  char                     text[PARAM_NAME];
  if (err->status) return;
  axis[0].name = "rows", axis[0].length = rows, axis[0].ndims = how == BY_ROWS, axis[0].dims = tp;
  axis[1].name = "cols", axis[1].length = cols, axis[1].ndims = how == BY_COLUMNS, axis[1].dims = tp;
  tensor_name(name, text);
  mgrid_family *on = family_of(m, where, err);
  mgrid_tensor *t = on ? mgrid_tensor_new(where.ep >= 0 ? m->l.experts : m->l.dense, REAL_TYPE, 2, axis, on, err)
                       : NULL;
  if (t) mgrid_topology_add_tensor(m->topology, text, t, err);
  mgrid_tensor_free(t);
  mgrid_family_free(on);
}

static param *find(model *m, const char *tensor) {
  for (int i = 0; i < m->nparams; i++) {
    char text[PARAM_NAME];
    tensor_name(m->params[i].name, text);
    if (strcmp(text, tensor) == 0) return &m->params[i];
  }
  return NULL;
}

/* This rank's part of each tensor of the move; no data where it has none. */
static void set_parts(const mgrid_move *move, param **p, int which, mgrid_buffer *part) {
  for (size_t i = 0; i < mgrid_move_ntensors(move); i++)
    part[i] = p[i] ? (mgrid_buffer){ array_of(p[i], which), (int64_t)p[i]->nrows * p[i]->ncols * (int64_t)sizeof(real) }
                   : (mgrid_buffer){ NULL, 0 };
}

mgrid_status model_carry(model *from, model *to, mgrid_backend *mpi, int rank, const mgrid_loss *loss, int64_t *missing,
                         mgrid_error *err) {
  mgrid_move_options o = MGRID_MOVE_OPTIONS_INIT;
  mgrid_move_sums    sums = MGRID_MOVE_SUMS_INIT;
  int64_t           *is = room((size_t)mgrid_plan_world(from->tensors), sizeof *is); /* new ranks of the old ones */
  for (int64_t i = 0; loss && i < mgrid_plan_world(from->tensors); i++) is[i] = mgrid_loss_rank(loss, i), o.nold++;
  o.old = is;
  mgrid_move *move = mgrid_move_new(from->tensors, to->tensors, rank, 0, NULL, &o, err);
  if (move && !mgrid_move_bytes(move, &sums, err)) *missing += sums.missing * ARRAYS;
  free(is);
  size_t        n = mgrid_move_ntensors(move);
  param       **old = room(n + 1, sizeof(param *)), **new = room(n + 1, sizeof(param *));
  mgrid_buffer *before = room(n + 1, sizeof *before), *after = room(n + 1, sizeof *after);
  for (size_t i = 0; i < n; i++) {
    old[i] = find(from, mgrid_move_tensor(move, i));
    new[i] = find(to, mgrid_move_tensor(move, i));
  }
  mgrid_status s = MGRID_OK; /* a rank without a move takes part all the same, and all get its error */
  for (int which = 0; which < ARRAYS && !s; which++) {
    set_parts(move, old, which, before);
    set_parts(move, new, which, after);
    s = mgrid_move_run(move, mpi, before, after, NULL, err);
  }
  mgrid_move_free(move);
  free(old), free(new), free(before), free(after);
  return s;
}
