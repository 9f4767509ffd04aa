/* SPDX-License-Identifier: MIT
**
** job.c - makes a model from a recipe, and makes it again at a step boundary.
**
** A reload builds the new model beside the one that trains: moongrid evaluates and agrees on the
** recipe and keeps the communicators that did not change; then the ranks check that all have a new model;
** then each value goes from where it is to where it is needed. A failure before that leaves the old model training.
*/
#include "model.h"

#include "moongrid_mpi.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mgrid_status refuse(mgrid_error *err, const char *format, ...) {
  va_list args;
  memset(err, 0, sizeof *err);
  err->status = MGRID_REFUSED;
  va_start(args, format);
  vsnprintf(err->message, sizeof err->message, format, args);
  va_end(args);
  return MGRID_REFUSED;
}

static void part_close(job_part *p) {
  model_free(p->model);
  policies_free(p->policies);
  mgrid_state_free(p->state);
  mgrid_runtime_free(p->rt);
  memset(p, 0, sizeof *p);
}

/* Make policies, groups and model for a state: on all ranks or, with an error, on none. */
static mgrid_status part_open(const job *j, job_part *p, mgrid_error *err) {
  memset(err, 0, sizeof *err);
  mgrid_status s = layout_open(p->state, &p->layout, err);
  if (s) return s; /* the same on all ranks, because they have agreed on the families */
  p->policies = policies_open(p->rt, p->state, j->rank == 0, err);
  if (everybody(&p->layout.job, err)) p->model = model_new(&j->c, &p->layout, p->policies, j->text, j->length, err);
  return err->status;
}

mgrid_status job_open(job *j, const char *recipe, size_t n, const char *const *args, mgrid_error *err) {
  job_part *p = &j->part;
  MPI_Comm_rank(MPI_COMM_WORLD, &j->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j->world);
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  mgrid_mpi_options  mpi = MGRID_MPI_OPTIONS_INIT;
  o.name = "train";
  mpi.timeout = j->deadline;
  j->mpi = mgrid_mpi_backend(MPI_COMM_WORLD, &mpi, err);
  p->state = mgrid_open(j->mpi, recipe, n, args, &o, err);
  p->rt = mgrid_runtime_ref(mgrid_state_runtime(p->state)); /* as that of a reload, which is not the state's */
  return p->state ? part_open(j, p, err) : err->status;
}

mgrid_status job_reload(job *j, size_t n, const char *const *args, mgrid_change *change, mgrid_error *err) {
  job_part new = { 0 };
  mgrid_status s = mgrid_reload(j->part.rt, j->part.state, NULL, n, args, &new.rt, &new.state, change, err);
  if (s) return s;
  if ((s = part_open(j, &new, err))) {
    part_close(&new);
    return s;
  }
  if ((s = model_carry(j->part.model, new.model, j->mpi, j->rank, err))) {
    part_close(&new);
    return s;
  }
  policies_set_rate(new.policies, policies_rate(j->part.policies));
  part_close(&j->part);
  j->part = new;
  return MGRID_OK;
}

void job_close(job *j) {
  part_close(&j->part);
  mgrid_backend_free(j->mpi);
  j->mpi = NULL;
}
