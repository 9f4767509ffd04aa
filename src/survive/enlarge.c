/* SPDX-License-Identifier: MIT
**
** enlarge.c - lets ranks join a running job. New ranks know the recipe and its arguments, but not
** the old plan, which may come from a recovery. So rank 0 sends the old plan. A rank that finds an
** error, other than a missing argument, still takes part in the calls, and all ranks get its error.
*/
#include "comm/compare.h"
#include "comm/state.h"
#include "survive/next.h"

#include "moongrid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What rank 0 sends first. The text of the old plan and the name of the state follow. */
typedef struct head {
  int64_t world;       /* of the old plan; 0: rank 0 has no old plan */
  uint64_t digest[2];  /* of the old plan */
  uint64_t plan, name; /* bytes of the text, and of the name */
} head;

enum { TOLD_MOST = 1 << 26 };

typedef struct joining {
  mgrid_state *old; /* NULL: this rank is new */
  mgrid_runtime *rt;
  size_t n;
  const char *const *args;
  mgrid_backend *larger;
  const mgrid_enlarge_options *o;
  mgrid_plan *was, *plan; /* owned */
  char *name;
  mgrid_state *now;
  mgrid_move *move;
} joining;

/* --------------------------------------------------------------------- the plan */

/* List the spares of a plan, and then the ranks after its world. */
static int32_t *all_spares(const mgrid_plan *p, int64_t world, int64_t *n) {
  int64_t own = mgrid_plan_nspares(p), used = mgrid_plan_world(p);
  int32_t *list = malloc((size_t)(own + world - used + 1) * sizeof *list);
  *n = 0;
  for (int64_t i = 0; i < own && list; i++) list[(*n)++] = (int32_t)mgrid_plan_spare(p, i);
  for (int64_t r = used; r < world && list; r++) list[(*n)++] = (int32_t)r;
  return list;
}

/* Make the plan of all ranks: the layout is that of the largest world that the recipe accepts, and
** the other ranks are spares. */
static mgrid_status plan_largest(joining *j, mgrid_error *err) {
  const char *file = j->o->params;
  int64_t world = j->larger->world;
  mgrid_error first = MGRID_ERROR_INIT;
  for (int64_t w = world; w > 0 && !j->plan; w--) {
    mgrid_error why = MGRID_ERROR_INIT;
    j->plan = mgrid_runtime_plan(j->rt, w, file, j->n, j->args, &why);
    if (!j->plan && w == world) first = why;
    if (!j->plan && why.status == MGRID_NO_MEMORY) return mgrid_error_pass(err, &why);
  }
  /* the error for a world of all ranks tells most */
  if (!j->plan) return mgrid_error_pass(err, &first);
  if (mgrid_plan_world(j->plan) == world) return MGRID_OK;
  int64_t n;
  int32_t *spare = all_spares(j->plan, world, &n);
  mgrid_plan_free(j->plan);
  j->plan = mgrid_plan_sparing(j->rt, file, world, n, spare, j->n, j->args, err);
  return j->plan ? MGRID_OK : err->status;
}

/* ------------------------------------------------------------- what rank 0 sends */

/* Write the text of the old plan, and after it the name. */
static mgrid_status write_told(const joining *j, head *h, mgrid_text *t, mgrid_error *err) {
  const mgrid_plan *p = j->old->plan;
  const char *name = j->o->name ? j->o->name : j->old->name;
  mgrid_status s = mgrid_plan_save(p, mgrid_text_sink, t, err);
  if (s) return s;
  *h = (head){ p->content.world, { p->digest[0], p->digest[1] }, t->len, strlen(name) };
  mgrid_text_str(t, name);
  if (t->failed) return mgrid_oom(err);
  return t->len < TOLD_MOST
             ? MGRID_OK
             : mgrid_fail(err, MGRID_LIMIT, "the old plan takes %zu bytes of text, at most %d",
                          t->len, TOLD_MOST);
}

/* Check that this rank has a state if, and only if, it is an old rank, and that the state has the
** same plan as that of rank 0. */
static mgrid_status enlarge_check_side(const joining *j, const head *h, mgrid_error *err) {
  bool is_old = j->larger->rank < h->world;
  if (!h->world)
    return mgrid_fail(err, MGRID_REFUSED,
                      "no state was given, but the old ranks must come first in the larger world "
                      "(MPI_Intercomm_merge with "
                      "high = false on their side)");
  if (is_old != (j->old != NULL))
    return mgrid_fail(err, MGRID_REFUSED,
                      is_old ? "no state was given, but ranks 0 to %" PRId64
                               " of the larger world are old ranks"
                             : "a state was given, but only ranks 0 to %" PRId64
                               " of the larger world are old ranks",
                      h->world - 1);
  if (j->old && memcmp(h->digest, j->old->plan->digest, sizeof h->digest) != 0)
    return mgrid_fail(err, MGRID_DISAGREE,
                      "state '%.64s' has another plan than the state of rank 0", j->old->name);
  return MGRID_OK;
}

/* Read the old plan and the name from the text that rank 0 sent. */
static mgrid_status read_told(joining *j, const head *h, const char *told, mgrid_error *err) {
  j->name = mgrid_strdup(told + h->plan);
  j->was = j->old ? mgrid_plan_ref(j->old->plan)
                  : mgrid_plan_read(told, h->plan, "the old plan", err);
  if (!j->name) return mgrid_oom(err);
  return j->was ? MGRID_OK : err->status;
}

/* Give all ranks the old plan and the name, or one error. *mine: an earlier error of this rank. */
static mgrid_status hear_old(joining *j, mgrid_error *mine, mgrid_error *err) {
  mgrid_backend *b = j->larger;
  head h = { 0 };
  mgrid_text text = { 0 };
  char *told = NULL;

  if (b->rank == 0 && j->old && !mine->status) write_told(j, &h, &text, mine);
  mgrid_status s = mgrid_verdict(b, mine->status, mine, err);
  if (!s) s = mgrid_hear(b, 0, &h, sizeof h, err);
  if (s) return mgrid_text_free(&text), s;
  if (h.plan >= TOLD_MOST || h.name >= TOLD_MOST || h.world < 0 || h.world > b->world)
    mgrid_cannot_be(mine, "an old plan of %" PRId64 " ranks and %" PRIu64 " bytes", h.world,
                    h.plan);
  else
    enlarge_check_side(j, &h, mine);
  if (!mine->status && !(told = calloc(h.plan + h.name + 1, 1))) mgrid_oom(mine);
  if (told && text.data) memcpy(told, text.data, h.plan + h.name);
  mgrid_text_free(&text);
  s = mgrid_verdict(b, mine->status, mine, err);
  if (!s) s = mgrid_hear(b, 0, told, h.plan + h.name, err);
  if (!s) read_told(j, &h, told, mine), s = mgrid_verdict(b, mine->status, mine, err);
  free(told);
  return s;
}

/* ------------------------------------------------------------------- all together */

static mgrid_status plan_move(joining *j, mgrid_error *err) {
  size_t n;
  const char **name = mgrid_tensors_alike(j->was, j->plan, &n, err);
  if (!name) return err->status;
  if (n == 0)
    mgrid_fail(err, MGRID_REFUSED,
               "the plans of the old and the larger world have no tensor in common");
  else
    j->move = mgrid_move_new(j->was, j->plan, j->larger->rank, n, name, NULL, err);
  free(name);
  return j->move ? MGRID_OK : err->status;
}

static mgrid_status enlarge_make(joining *j, bool moves, mgrid_error *err) {
  mgrid_backend *b = j->larger;
  mgrid_error mine = MGRID_ERROR_INIT;
  if (j->old && (b == j->old->backend || b->world < j->old->plan->content.world))
    mgrid_fail(&mine, MGRID_USAGE,
               "a state of %" PRId64 " ranks grows into another backend, of as many ranks or more",
               j->old->plan->content.world);
  mgrid_status s = mgrid_meet(b, mgrid_meet_call(b, false, "enlarge a state"), err);
  if (!s) s = hear_old(j, &mine, err);
  if (s) return s;
  plan_largest(j, &mine); /* a rank that fails goes on without a plan, and all get its error */
  if (!mine.status && moves) plan_move(j, &mine);
  if (mine.status)
    j->now = mgrid_state_make(NULL, b, j->name, NULL,
                              &(mgrid_grown){ .from = j->old, .why = &mine }, err);
  else
    j->now = j->old ? mgrid_state_grow(j->old, j->plan, b, j->name, err)
                    : mgrid_state_join(j->plan, b, j->name, err);
  return j->now ? MGRID_OK : err->status;
}

/* Agree on whether enlarge_make has succeeded on all ranks: where MPI survives losses, it may succeed
** on some ranks and fail on others. */
static mgrid_status all_made(joining *j, mgrid_status made, mgrid_error *err) {
  mgrid_backend *b = j->larger;
  const mgrid_survival_ops *ops = b->ops->survival;
  mgrid_error late = MGRID_ERROR_INIT;
  uint64_t bits = MGRID_ALL_LIVE | !made;
  /* after a timeout do not agree: the rank that did not come would not agree either */
  if (!ops || ops->able(b, NULL) || made == MGRID_TIMED_OUT) return made;
  /* interrupt the other ranks, which may wait for this one */
  if (made == MGRID_LOST_RANK || ops->hurt(b)) bits = 0, ops->interrupt(b);
  mgrid_status s = ops->agree_and(b, &bits, 0, &late);
  if (made || (!s && bits == (MGRID_ALL_LIVE | 1))) return made;
  if (s) return mgrid_error_pass(err, &late);
  return mgrid_fail(err, MGRID_LOST_RANK, "a rank was lost before all had joined");
}

static void enlarge_end(joining *j, bool undo) {
  if (undo) mgrid_move_free(j->move), mgrid_state_free(j->now);
  mgrid_plan_free(j->was), mgrid_plan_free(j->plan);
  free(j->name);
}

mgrid_status mgrid_state_enlarge(mgrid_state *s, mgrid_runtime *rt, size_t n,
                                 const char *const *args, mgrid_backend *larger,
                                 const mgrid_enlarge_options *options, mgrid_state **now,
                                 mgrid_move **move, mgrid_error *err) {
  mgrid_enlarge_options o = MGRID_ENLARGE_OPTIONS_INIT;
  mgrid_error mine = MGRID_ERROR_INIT;

  if (now) *now = NULL;
  if (move) *move = NULL;
  if (mgrid_lacks(rt, "the runtime", err)
      || mgrid_lacks(larger, "a backend of the larger world", err)
      || mgrid_lacks(now, "a place for the new state", err)
      || mgrid_lacks_list(n, args, "arguments", err))
    return MGRID_USAGE;
  if (mgrid_struct_read(&o, sizeof o, options, "mgrid_enlarge_options", err)
      || mgrid_layout_check(larger->layout, "the backend's library", err))
    return err ? err->status : MGRID_USAGE;
  joining j = { .old = s, .rt = rt, .n = n, .args = args, .larger = larger, .o = &o };
  mgrid_status made = all_made(&j, enlarge_make(&j, move, &mine), &mine);
  if (!made)
    mgrid_log(&larger->hooks, MGRID_LOG_INFO,
              "state '%s' is enlarged: %" PRId64 " old and %" PRId64 " new ranks, %" PRId64
              " of all are spares",
              j.name, mgrid_plan_world(j.was), larger->world - mgrid_plan_world(j.was),
              mgrid_plan_nspares(j.plan));
  enlarge_end(&j, made);
  if (made) return mgrid_error_pass(err, &mine);
  j.now->runtime = mgrid_runtime_ref(rt);
  *now = j.now;
  if (move) *move = j.move;
  return MGRID_OK;
}
