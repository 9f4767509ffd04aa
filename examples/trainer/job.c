/* SPDX-License-Identifier: MIT
**
** job.c - a recipe made into a model that can train, and made anew at a step boundary.
**
** A reload builds the new model beside the one that trains: moongrid evaluates and agrees on the
** recipe and keeps the communicators that did not change; every rank says whether its new model
** stands; the values go over. Whatever fails before that leaves the old one training.
*/
#include "model.h"

#include "moongrid_mpi.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mg_status refuse(mg_error *err, const char *format, ...) {
  va_list args;
  memset(err, 0, sizeof *err);
  err->status = MG_REFUSED;
  va_start(args, format);
  vsnprintf(err->message, sizeof err->message, format, args);
  va_end(args);
  return MG_REFUSED;
}

static void part_close(job_part *p) {
  model_free(p->model);
  policies_free(p->policies);
  mg_state_free(p->state);
  mg_runtime_free(p->rt);
  memset(p, 0, sizeof *p);
}

/* Policies, groups and model for a state that is there: on all ranks or, with an error, on none. */
static mg_status part_open(const job *j, job_part *p, mg_error *err) {
  memset(err, 0, sizeof *err);
  mg_status s = layout_open(p->state, &p->layout, err);
  if (s) return s; /* as on all ranks: they have agreed on the families */
  p->policies = policies_open(p->rt, p->state, j->rank == 0, err);
  if (everybody(&p->layout.job, err)) p->model = model_new(&j->c, &p->layout, p->policies, j->text, j->length, err);
  return err->status;
}

mg_status job_open(job *j, const char *recipe, size_t n, const char *const *args, mg_error *err) {
  job_part *p = &j->part;
  MPI_Comm_rank(MPI_COMM_WORLD, &j->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j->world);
  p->rt = mg_runtime_new(NULL, err);
  mg_runtime_load(p->rt, recipe, err);
  mg_plan *plan = mg_runtime_plan(p->rt, j->world, n, args, err);
  /* A rank that has no plan takes part all the same and tells the others why. */
  j->mpi = mg_mpi_backend(MPI_COMM_WORLD, plan ? err : NULL);
  p->state = mg_materialize(plan, j->mpi, "train", err);
  mg_plan_free(plan);
  return p->state ? part_open(j, p, err) : err->status;
}

mg_status job_reload(job *j, size_t n, const char *const *args, mg_change *change, mg_error *err) {
  job_part  new = { 0 };
  mg_status s = mg_reload(j->part.rt, j->part.state, NULL, n, args, &new.rt, &new.state, change, err);
  if (s) return s;
  if ((s = part_open(j, &new, err))) {
    part_close(&new);
    return s;
  }
  model_carry(j->part.model, new.model);
  policies_set_rate(new.policies, policies_rate(j->part.policies));
  part_close(&j->part);
  j->part = new;
  return MG_OK;
}

void job_close(job *j) {
  part_close(&j->part);
  mg_backend_free(j->mpi);
  j->mpi = NULL;
}
