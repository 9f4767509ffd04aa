/* SPDX-License-Identifier: MIT
**
** follow.c - a rank's program, call by call: for a trainer that follows it, or asserts that its
** calls are those.
*/
#include "comm/state.h"
#include "step/step.h"

#include <inttypes.h>
#include <stdlib.h>

struct mgrid_step_follower {
  mgrid_step *step;
  const step_program *program;
  step_sizes sizes;
  step_stops stops;
  step_place place;
  uint32_t part; /* the call: the entry of the place, or one in its block */
};

/* Go from an entry to the first call in it or after it; at the end of the program stay there. */
static void follow_settle(mgrid_step_follower *f) {
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
  mgrid_step_place_settle(&f->stops, &f->place, INT64_MAX);
  f->part = f->place.node;
  follow_settle(f);
}

mgrid_step_follower *mgrid_step_follow(const mgrid_step *s, int64_t rank, mgrid_error *err) {
  if (!s || mgrid_check_rank(rank, s->plan->content.world, err)) return NULL;
  mgrid_step_follower *f = calloc(1, sizeof *f);
  if (!f) return mgrid_null_oom(err);
  f->program = &s->program[s->class[s->of[rank]].program];
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
  follow_settle(f);
  return true;
}

static mgrid_status unexpected(const mgrid_step_follower *f, mgrid_step_operation op,
                               const mgrid_group *g, int64_t bytes, mgrid_error *err) {
  mgrid_text t = { 0 };
  const step_node *n = f->place.node < f->program->n ? &f->program->node[f->part] : NULL;
  if (n) mgrid_step_node_text(f->step, n, &t);
  if (n)
    mgrid_text_add(&t, " of %" PRId64 " bytes, %s:%d", n->bytes, f->step->word[n->file], n->line);
  mgrid_fail(err, MGRID_DISAGREE,
             "the call is %s(%s) of %" PRId64 " bytes, and the step has %s next",
             (size_t)op < STEP_KINDS ? mgrid_step_rows[op].name : "none", g ? g->name : "", bytes,
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
  follow_settle(f);
  return MGRID_OK;
}
