/* SPDX-License-Identifier: MIT
**
** questions.c - the public questions about a step; the step of a state, about which all ranks
** agree; and the program of a rank call by call, for a trainer that executes it or checks its own
** calls against it.
*/
#include "comm/compare.h"
#include "comm/recipe.h"
#include "comm/state.h"
#include "step/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

mgrid_step *mgrid_step_new(mgrid_runtime *rt, const mgrid_plan *plan, const char *file,
                           mgrid_error *err) {
  step_request r = { .plan = plan, .file = file };
  return rt && plan && mgrid_runtime_serve(rt, "step", &r, err) == MGRID_OK ? r.made : NULL;
}

size_t mgrid_step_nclasses(const mgrid_step *s) { return s ? s->nclasses : 0; }

int64_t mgrid_step_class(const mgrid_step *s, int64_t rank) {
  return s && rank >= 0 && rank < s->plan->content.world ? s->of[rank] : -1;
}

int64_t mgrid_step_operations(const mgrid_step *s, int64_t rank) {
  return mgrid_step_class(s, rank) < 0 ? -1 : mgrid_step_of_rank(s, rank)->leaves;
}

void mgrid_step_digest(const mgrid_step *s, char out[33]) {
  if (out)
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, s ? s->digest[0] : 0, s ? s->digest[1] : 0);
}

mgrid_status mgrid_step_prove(const mgrid_step *s, bool blocking, mgrid_error *err) {
  step_verdict v;
  mgrid_text why = { 0 };
  if (!s) return MGRID_USAGE;
  mgrid_status status = mgrid_step_conclude(s, blocking ? STEP_BLOCKING : STEP_NCCL, 0, &v, err);
  if (status || v.told == STEP_PROVED) return status;
  mgrid_step_verdict_text(s, &v, &why);
  status = mgrid_fail(err, MGRID_UNPROVED, "%s: %.900s", mgrid_step_verdict_names[v.told],
                      mgrid_text_chars(&why));
  mgrid_text_free(&why);
  return status;
}

/* ====================================================== the step of a state */

mgrid_step *mgrid_state_step(mgrid_runtime *rt, const mgrid_state *state, const char *file,
                             mgrid_error *err) {
  mgrid_error own = MGRID_ERROR_INIT;
  char digest[33], text[64];
  if (!rt || !state) return NULL;
  mgrid_peers all = mgrid_peers_all(state->backend);
  mgrid_step *s = mgrid_step_new(rt, state->plan, file, &own);
  mgrid_status status = mgrid_verdict(state->backend, s ? MGRID_OK : own.status, &own, &own);
  mgrid_step_digest(s, digest);
  snprintf(text, sizeof text, "has the step %s", digest);
  mgrid_brought mine = { s ? s->digest[0] ^ s->digest[1] : 0, text, "the step" };
  if (!status) status = mgrid_compare(&all, &mine, &own);
  if (!status) return s;
  mgrid_step_free(s);
  mgrid_error_pass(err, &own);
  return NULL;
}

/* ============================================================= call by call */

struct mgrid_step_follower {
  mgrid_step *step;
  const step_program *program;
  step_sizes sizes;
  step_stops stops;
  step_place place;
  uint32_t part; /* the present call: the entry of the place, or an entry in its block */
};

/* Go to the first call from f->part on, or to the end of the program. */
static void follow_call(mgrid_step_follower *f) {
  const step_program *p = f->program;
  while (f->place.node < p->n) {
    uint32_t end = p->node[f->place.node].end;
    while (f->part < end && p->node[f->part].slot < 0) f->part++;
    if (f->part < end) return;
    mgrid_step_place_next(&f->stops, &f->place, INT64_MAX);
    f->part = f->place.node;
  }
}

void mgrid_step_rewind(mgrid_step_follower *f) {
  if (!f) return;
  f->place = (step_place){ 0 };
  mgrid_step_place_stop(&f->stops, &f->place, INT64_MAX);
  f->part = f->place.node;
  follow_call(f);
}

mgrid_step_follower *mgrid_step_follow(const mgrid_step *s, int64_t rank, mgrid_error *err) {
  if (!s || mgrid_check_rank(rank, s->plan->content.world, err)) return NULL;
  mgrid_step_follower *f = calloc(1, sizeof *f);
  if (!f) return mgrid_null_oom(err);
  f->program = mgrid_step_of_rank(s, rank);
  if (mgrid_step_sizes_of(f->program, &f->sizes, err)) {
    free(f);
    return NULL;
  }
  f->step = mgrid_step_ref(s);
  f->stops = (step_stops){ .program = f->program, .sizes = &f->sizes, .stream = -1, .only = -1 };
  mgrid_step_rewind(f);
  return f;
}

void mgrid_step_follower_free(mgrid_step_follower *f) {
  if (!f) return;
  mgrid_step_sizes_free(&f->sizes);
  mgrid_step_free(f->step);
  free(f);
}

bool mgrid_step_next(mgrid_step_follower *f, mgrid_step_call *out) {
  mgrid_step_call call = MGRID_STEP_CALL_INIT;
  if (!f || mgrid_struct_check(out, sizeof call, "mgrid_step_call", NULL)
      || f->place.node >= f->program->n)
    return false;
  const step_node *n = &f->program->node[f->part];
  call.operation = mgrid_step_rows[n->kind].name;
  call.family = mgrid_step_family_of(f->step, n);
  call.stream = f->step->word[f->program->stream[n->stream]];
  call.file = f->step->word[n->file];
  call.line = n->line;
  call.bytes = n->bytes;
  call.position = mgrid_step_rows[n->kind].rooted || mgrid_step_rows[n->kind].role == STEP_POINT
                      ? n->number
                      : -1;
  mgrid_struct_write(out, &call, sizeof call);
  f->part++;
  follow_call(f);
  return true;
}

_Static_assert((int)STEP_RECV == MGRID_STEP_RECV, "a call has one number");

static mgrid_status unexpected(const mgrid_step_follower *f, mgrid_step_operation op,
                               const mgrid_group *g, int64_t bytes, mgrid_error *err) {
  mgrid_text t = { 0 };
  const step_node *n = f->place.node < f->program->n ? &f->program->node[f->part] : NULL;
  if (n) mgrid_step_node_text(f->step, n, &t);
  if (n)
    mgrid_text_add(&t, " of %" PRId64 " bytes, %s:%d", n->bytes, f->step->word[n->file], n->line);
  mgrid_fail(err, MGRID_DISAGREE,
             "the call is %s(%s) of %" PRId64 " bytes, and the step has %s next",
             (size_t)op < STEP_CALLS ? mgrid_step_rows[op].name : "none", g ? g->name : "", bytes,
             n ? mgrid_text_chars(&t) : "its end");
  mgrid_text_free(&t);
  return MGRID_DISAGREE;
}

mgrid_status mgrid_step_expect(mgrid_step_follower *f, mgrid_step_operation op,
                               const mgrid_group *group, int64_t bytes, mgrid_error *err) {
  if (!f || !group) return MGRID_USAGE;
  const step_program *p = f->program;
  if (f->place.node >= p->n) return unexpected(f, op, group, bytes, err);
  const step_node *n = &p->node[f->part];
  const mgrid_family *own = f->step->plan->content.entry[f->step->slot[n->slot].entry].family;
  if (n->kind != (uint8_t)op || (n->bytes != bytes && !n->listed)
      || (group->family != own && !mgrid_family_equal(group->family, own)))
    return unexpected(f, op, group, bytes, err);
  f->part++;
  follow_call(f);
  return MGRID_OK;
}
