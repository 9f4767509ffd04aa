/* SPDX-License-Identifier: MIT
**
** job.c - makes a model from a recipe, and makes it again at a step boundary, and after ranks are
** lost.
**
** A reload builds the new model beside the old one: moongrid evaluates the recipe, checks that all
** ranks agree, and keeps the communicators that did not change; then the ranks check that all have
** a new model; then each value is sent to the ranks that need it. After a failure in any of these
** the old model goes on.
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
  mgrid_losses_free(p->losses);
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
  if (everybody(&p->layout, err))
    p->model = model_new(&j->c, &p->layout, p->policies, j->text, j->length, err);
  return err->status;
}

mgrid_status job_open(job *j, const char *recipe, size_t n, const char *const *args,
                      mgrid_error *err) {
  job_part *p = &j->part;
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  mgrid_mpi_options mpi = MGRID_MPI_OPTIONS_INIT;
  o.name = "train";
  mpi.timeout = j->deadline;
  j->mpi = mgrid_mpi_backend(MPI_COMM_WORLD, &mpi, err);
  p->state = mgrid_open(j->mpi, recipe, n, args, &o, err);
  mgrid_backend_free(j->mpi); /* the state keeps it */
  p->rt = mgrid_runtime_ref(mgrid_state_runtime(p->state));
  if (p->state) p->losses = mgrid_losses_new(p->rt, mgrid_state_plan(p->state), n, args, NULL, err);
  return p->losses ? part_open(j, p, err) : err->status;
}

mgrid_status job_reload(job *j, size_t n, const char *const *args, mgrid_change *change,
                        mgrid_error *err) {
  job_part new = { 0 };
  mgrid_status s = mgrid_reload(j->part.rt, j->part.state, NULL, n, args, &new.state, change, err);
  if (s) return s;
  new.rt = mgrid_runtime_ref(mgrid_state_runtime(new.state));
  new.losses = mgrid_losses_new(new.rt, mgrid_state_plan(new.state), n, args, NULL, err);
  s = new.losses ? part_open(j, &new, err) : err->status;
  if (!s) { /* after a loss the move may succeed on some ranks and fail on others, so settle */
    s = model_carry(j->part.model, new.model, j->mpi, j->rank, NULL, err);
    s = mgrid_state_settle(new.state, s, err);
  }
  if (s) {
    part_close(&new);
    return s;
  }
  policies_set_rate(new.policies, policies_rate(j->part.policies));
  part_close(&j->part);
  j->part = new;
  return MGRID_OK;
}

/* ------------------------------------------------------------------- ranks are lost */

/* Finish the last step in which a rank has passed the sum over all ranks (step() in main.c): all
** ranks have its gradients, and those that have not updated their slices do so now. */
static mgrid_status catch_up(job *j, const layout *l, mgrid_error *err) {
  /* A rank that was idle has no gradients and no losses, and its step may be ahead of the
  ** others'. */
  const bool idle = j->part.layout.idle;
  int64_t ahead = idle ? INT64_MAX : -j->step, loss = INT64_MAX;
  if (mgrid_state_least(l->state, &ahead, err)) return err->status;
  if (!idle && j->step < -ahead)
    optimizer_update(j->part.model, j->step, policies_rate(j->part.policies));
  if (!idle && j->step == -ahead && ahead < 0) memcpy(&loss, &j->losses[j->step - 1], sizeof loss);
  j->step = -ahead;
  int64_t saved = -j->saved; /* some ranks may not know yet that a save has succeeded */
  if (mgrid_state_least(l->state, &saved, err)) return err->status;
  j->saved = -saved;
  if (mgrid_state_least(l->state, &loss, err)) return err->status;
  if (ahead < 0) memcpy(&j->losses[j->step - 1], &loss, sizeof loss);
  return MGRID_OK;
}

/* A part has no copy left: go back to the last checkpoint of this job or, before the first, to that
** of --resume; without both, to the start. */
static mgrid_status go_back(const job *j, job_part *new, const char *what, int64_t missing,
                            mgrid_error *err) {
  const char *folder = j->saved > j->resumed ? j->checkpoint : j->resume;
  double bytes;
  if (!folder && !j->checkpoint)
    return refuse(err,
                  "%s; no copy is left, %" PRId64
                  " bytes in all, and there is no checkpoint (--checkpoint)",
                  what, missing);
  if (j->rank == 0)
    fprintf(stderr, "trainer: %s; no copy is left, %" PRId64 " bytes in all: it goes back to %s\n",
            what, missing, folder ? "the last checkpoint" : "the start");
  new->step = 0;
  return folder ? checkpoint_read(new->model, j->mpi, folder, &new->step, &bytes, err) : MGRID_OK;
}

/* Fill j->next, of the next layout, from j->part, which lost ranks. */
static mgrid_status fill(job *j, job_part *new, const mgrid_loss *loss, mgrid_error *err) {
  char what[256];
  fault_at("recovered");
  new->rt = mgrid_runtime_ref(j->part.rt);
  new->losses = mgrid_losses_after(j->part.losses, loss, err);
  if (!new->losses || part_open(j, new, err) || catch_up(j, &new->layout, err)) return err->status;
  policies_set_rate(new->policies, policies_rate(j->part.policies));
  new->step = j->step;
  fault_at("moving");
  const int64_t missing = model_missing(j->part.model, loss, what, err);
  if (err->status) return err->status;
  if (missing)
    go_back(j, new, what, missing, err);
  else
    model_carry(j->part.model, new->model, j->mpi, j->rank, loss, err);
  fault_at("moved");
  return err->status;
}

mgrid_status job_recover(job *j, mgrid_error *err) {
  do {
    mgrid_loss *loss = NULL;
    memset(err, 0, sizeof *err), memset(&j->next, 0, sizeof j->next);
    if (mgrid_state_recover(j->part.state, j->part.losses, NULL, &j->next.state, &loss, NULL, err))
      return err->status;
    j->mpi = mgrid_state_backend(j->next.state);
    j->rank = (int)mgrid_backend_rank(j->mpi), j->world = (int)mgrid_backend_world(j->mpi);
    if (setjmp(lost_rank) == 0)
      fill(j, &j->next, loss, err);
    else
      err->status = MGRID_LOST_RANK;
    if (mgrid_state_settle(j->next.state, err->status, err))
      model_forget(j->next.model), part_close(&j->next);
    mgrid_loss_free(loss);
  } while (err->status == MGRID_LOST_RANK);
  if (err->status) return err->status;
  model_forget(j->part.model);
  part_close(&j->part);
  j->part = j->next;
  j->step = j->part.step;
  return MGRID_OK;
}

void job_close(job *j) {
  model_forget(j->part.model);
  part_close(&j->part);
  j->mpi = NULL;
}
