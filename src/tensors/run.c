/* SPDX-License-Identifier: MIT
**
** run.c - run a move: all ranks agree that they run the same one, then each sends and receives chunks until nothing is
** left (transfers.c).
*/
#include "comm/compare.h"
#include "tensors/transfers.h"
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ------------------------------------------------------------------- agree */

static mgrid_status check_side(mgrid_running *r, bool from, const mgrid_buffer *buffer, char **part, mgrid_error *err) {
  const mgrid_move *m = r->move;
  for (size_t i = 0; i < m->pairs.n; i++) {
    const mgrid_pair   *p = &m->pairs.pair[i];
    const mgrid_tensor *t = mgrid_pairs_tensor(&m->pairs, i, from);
    mgrid_seat          at;
    bool                held = from ? mgrid_pair_held(p, m->rank, &at) : mgrid_pair_seat(p, m->rank, &at);
    int64_t             bytes = held ? mgrid_tensor_elements(t, &at) * t->width : 0;
    if (bytes > 0 && (!buffer[i].data || buffer[i].bytes < bytes))
      return mgrid_fail(
          err, MGRID_REFUSED,
          "the part of tensor '%s' %s the move has %" PRId64 " bytes, its buffer on rank %" PRId64 " %" PRId64,
          m->pairs.name[i], from ? "before" : "after", bytes, m->rank, buffer[i].data ? buffer[i].bytes : 0);
    part[i] = buffer[i].data;
    if (bytes == 0 || !r->ops || !r->ops->reaches) continue;
    mgrid_text   what = { 0 };
    mgrid_status s = MGRID_OK;
    mgrid_text_add(&what, "the part of tensor '%s' %s the move on rank %" PRId64, m->pairs.name[i],
                   from ? "before" : "after", m->rank);
    s = what.failed ? mgrid_oom(err) : r->ops->reaches(r->backend, part[i], what.data, err);
    mgrid_text_free(&what);
    if (s) return s;
  }
  return MGRID_OK;
}

/* Check what can be checked without the other ranks. */
static mgrid_status check(mgrid_running *r, const mgrid_buffer *from, const mgrid_buffer *to,
                          const mgrid_move_run_options *o, mgrid_error *err) {
  const mgrid_move *m = r->move;
  if (!m) return err->status ? err->status : mgrid_fail(err, MGRID_USAGE, "no move was given");
  if (m->pairs.ranks != r->backend->world)
    return mgrid_fail(err, MGRID_REFUSED, "the move is of %" PRId64 " ranks, the communicator has %" PRId64,
                      m->pairs.ranks, r->backend->world);
  if (m->rank != r->backend->rank)
    return mgrid_fail(err, MGRID_REFUSED, "the move is seen from rank %" PRId64 ", this is rank %" PRId64, m->rank,
                      r->backend->rank);
  if (o->window < 1 || !(o->timeout >= 0))
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "a move needs a window of 0 (the default) or more bytes and a timeout of 0 or more");
  if (mgrid_lacks_list(m->pairs.n, from, "parts before the move", err)
      || mgrid_lacks_list(m->pairs.n, to, "parts after the move", err))
    return MGRID_USAGE;
  if (!r->ops && r->backend->world > 1)
    return mgrid_fail(err, MGRID_UNSUPPORTED, "the %s backend moves no data", r->backend->kind->name);
  r->from = calloc(m->pairs.n + 1, sizeof *r->from);
  r->to = calloc(m->pairs.n + 1, sizeof *r->to);
  if (!r->from || !r->to) return mgrid_oom(err);
  mgrid_status s = r->ops && r->ops->ready ? r->ops->ready(r->backend, err) : MGRID_OK;
  if (!s) s = check_side(r, true, from, r->from, err);
  if (!s) s = check_side(r, false, to, r->to, err);
  bool gpu = r->ops && r->ops->copy && (!r->ops->copies || r->ops->copies(r->backend));
  for (size_t i = 0; i < m->pairs.n && gpu && !s; i++)
    if (mgrid_pairs_converts(&m->pairs, i))
      s = mgrid_fail(err, MGRID_UNSUPPORTED,
                     "tensor '%s' is %s before the move and %s after it; in memory of a GPU no type changes",
                     m->pairs.name[i], mgrid_pairs_tensor(&m->pairs, i, true)->type,
                     mgrid_pairs_tensor(&m->pairs, i, false)->type);
  return s;
}

/* Describe a move, for the message if ranks differ. Return its digest. */
static uint64_t name_it(const mgrid_move *m, const mgrid_move_run_options *o, char *text, size_t len) {
  const mgrid_plan     *from = m->pairs.from, *to = m->pairs.to;
  const mgrid_renaming *names = &m->pairs.names, *olds = &m->pairs.olds;
  int64_t               numbers[] = { names->n, m->sums.rounds, o->window, (int64_t)m->pairs.n, m->pairs.machine };
  size_t   at = (size_t)snprintf(text, len, "moves plan %08" PRIx64 " to %08" PRIx64 "%s, window %" PRId64 ":",
                                 from->digest[0] >> 32, to->digest[0] >> 32, m->sums.rounds ? " in rounds" : "",
                                 o->window);
  uint64_t h = XXH3_64bits(numbers, sizeof numbers);
  h = XXH3_64bits_withSeed(from->digest, sizeof from->digest, h);
  h = XXH3_64bits_withSeed(to->digest, sizeof to->digest, h);
  if (names->n) h = XXH3_64bits_withSeed(names->ranks, (size_t)names->n * sizeof *names->ranks, h);
  if (olds->n) h = XXH3_64bits_withSeed(olds->ranks, (size_t)olds->n * sizeof *olds->ranks, h);
  for (size_t i = 0; i < m->pairs.n; i++) {
    h = XXH3_64bits_withSeed(m->pairs.name[i], strlen(m->pairs.name[i]), h);
    if (at < len) at += (size_t)snprintf(text + at, len - at, " %s", m->pairs.name[i]);
  }
  mgrid_text_ellipsis(text, len, at);
  return h;
}

/* Check that all ranks are here with the same move. *lanes: those of the busiest rank. If they are, this is one call
** over all ranks, the rendezvous. */
static mgrid_status agree(mgrid_running *r, const mgrid_move_run_options *o, int64_t *lanes, mgrid_error *err) {
  char          text[MGRID_TOLD] = "";
  mgrid_status  failed = err->status, s;
  uint64_t      who = UINT64_MAX;
  mgrid_error   lost = MGRID_ERROR_INIT;
  mgrid_meeting met = { .have = true, .status = failed, .second = failed != MGRID_OK };
  met.call = mgrid_meet_call(r->backend, false, "a move of tensors");
  if (!failed) {
    met.first = name_it(r->move, o, text, sizeof text);
    met.least = INT64_MAX - (uint64_t)(r->move->sums.rounds ? 2 : r->move->sums.sends + r->move->sums.receives);
  }
  uint64_t digest = met.first;
  if (mgrid_meet_over(r->backend, &met, &lost)) {
    mgrid_error_clear(err);
    return mgrid_error_pass(err, &lost);
  }
  if (met.each) /* the first rank that failed, if any did */
    for (int64_t i = r->backend->world; i-- > 0;) who = met.each[MGRID_MET * i] ? (uint64_t)i : who;
  else if (failed) /* all ranks failed */
    who = 0;
  s = mgrid_verdict_tell(r->backend, who, failed, err, err);
  if (!s && met.each) {
    const mgrid_peers all = mgrid_peers_all(r->backend);
    s = mgrid_compare(&all, &(mgrid_brought){ .digest = digest, .of = "", .text = text }, err);
  }
  free(met.each);
  *lanes = s ? 0 : (int64_t)(INT64_MAX - met.least);
  if (*lanes < 0 || *lanes > INT64_MAX / (4 * MGRID_HALF_LEAST))
    s = mgrid_cannot_be(err, "%" PRId64 " messages at a time", *lanes), *lanes = 0;
  if (!s && *lanes > 0 && o->window / (2 * *lanes) < MGRID_HALF_LEAST)
    s = mgrid_fail(err, MGRID_REFUSED,
                   "a window of %" PRId64 " bytes is too small for %" PRId64 " messages at a time: %" PRId64
                   " at least",
                   o->window, *lanes, 2 * MGRID_HALF_LEAST * *lanes);
  return s;
}

/* --------------------------------------------------------------------- run */

mgrid_move *mgrid_state_move(const mgrid_state *from, const mgrid_state *to, size_t ntensors,
                             const char *const *tensors, const mgrid_move_options *given, mgrid_error *err) {
  mgrid_move_options options = MGRID_MOVE_OPTIONS_INIT;
  if (!from || !to || mgrid_struct_read(&options, sizeof options, given, "mgrid_move_options", err)) return NULL;
  if (options.machine == 0) options.machine = mgrid_states_machine(from, to);
  return mgrid_move_new(from->plan, to->plan, from->view.rank, ntensors, tensors, &options, err);
}

/* Carry the data. A rank that fails notifies its peers, which would wait for it. */
static mgrid_outcome carry(mgrid_running *r, const mgrid_move_run_options *o, int64_t lanes, mgrid_error *err) {
  mgrid_outcome s = mgrid_lanes_new(r, o->window, lanes, err);
  r->err = err;
  if (!s) s = mgrid_lanes_run(r, o->timeout);
  mgrid_backend *tells = s ? mgrid_running_carrier(r) : NULL;
  for (size_t i = 0; i < r->move->npeers && tells; i++) tells->ops->carrier->tell(tells, r->move->peer[i].rank);
  return s;
}

mgrid_status mgrid_move_run(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from, const mgrid_buffer *to,
                            const mgrid_move_run_options *given, mgrid_error *err) {
  bool begun;
  return mgrid_move_begin(m, b, from, to, given, &begun, err);
}

mgrid_status mgrid_move_begin(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from, const mgrid_buffer *to,
                              const mgrid_move_run_options *given, bool *begun, mgrid_error *err) {
  *begun = false;
  if (!b || mgrid_layout_check(b->layout, "the backend's library", err)) return b ? MGRID_MISSING : MGRID_USAGE;
  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  mgrid_error            mine = MGRID_ERROR_INIT;
  mgrid_running          r = { .move = m, .backend = b, .ops = b->ops->transport };
  mgrid_outcome          carried = MGRID_OK;
  int64_t                lanes = 0;
  if (!m && err) mgrid_error_pass(&mine, err); /* why there is no move; all ranks get this error */
  mgrid_status read = mgrid_struct_read(&o, sizeof o, given, "mgrid_move_run_options", &mine);
  if (o.window == 0) o.window = (int64_t)64 << 20;
  if (!read) check(&r, from, to, &o, &mine);
  if (!(o.timeout >= 0)) o.timeout = 0;
  mgrid_status s = r.ops ? r.ops->open(b, &o.timeout, &mine) : MGRID_OK;
  bool         opened = r.ops && !s;
  if (!s) s = agree(&r, &o, &lanes, &mine);
  *begun = !s;
  if (!s && lanes > 0 && r.ops->connect) s = r.ops->connect(b, &mine);
  if (!s) {
    carried = carry(&r, &o, lanes, &mine);
    s = mgrid_verdict(b, carried, &mine, &mine);
  }
  bool ours = !opened || r.ops->close(b, s && r.lane);
  mgrid_lanes_free(&r, ours);
  free(r.from);
  free(r.to);
  return s ? mgrid_error_pass(err, &mine) : MGRID_OK;
}
