/* SPDX-License-Identifier: MIT
**
** between_plans.c - pairs the tensors of two plans, and plans the move of one rank between them.
*/
#include "tensors/between_plans.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- pairs */

void mgrid_pairs_free(mgrid_pairs *p) {
  mgrid_plan_free(p->from);
  mgrid_plan_free(p->to);
  free(p->names.ranks);
  free(p->names.back);
  free(p->olds.ranks);
  free(p->olds.back);
  free(p->name);
  free(p->pair);
  for (size_t i = 0; i < p->room && p->typing; i++) free(p->typing[i].narrow);
  free(p->typing);
  memset(p, 0, sizeof *p);
}

/* Check a map from the ranks of one plan to the ranks of the move, and invert the map. `before`:
** the plan is the one before the move, whose ranks may be lost (-1). */
static mgrid_status set_names(mgrid_pairs *p, mgrid_renaming *r, bool before, size_t n,
                              const int64_t *ranks, mgrid_error *err) {
  int64_t world = (before ? p->from : p->to)->content.world;

  if ((int64_t)n != world)
    return mgrid_fail(err, MGRID_REFUSED, "the map has %zu ranks, the world %s the move %" PRId64,
                      n, before ? "before" : "after", world);
  for (size_t i = 0; i < n; i++) {
    if (before && ranks[i] == -1) continue;
    if (ranks[i] < 0 || ranks[i] >= MGRID_WORLD_MAX)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "rank %" PRId64 " of the map is out of range; ranks are 0 or more%s",
                        ranks[i], before ? ", and -1 is lost" : "");
    if (ranks[i] >= r->nback) r->nback = ranks[i] + 1;
  }
  r->ranks = malloc(n * sizeof *r->ranks);
  r->back = malloc((size_t)(r->nback + 1) * sizeof *r->back);
  if (!r->ranks || !r->back) return mgrid_oom(err);
  for (size_t i = 0; i < n; i++) r->ranks[i] = (int32_t)ranks[i];
  memset(r->back, -1, (size_t)(r->nback + 1) * sizeof *r->back);
  for (size_t i = 0; i < n; i++) {
    if (ranks[i] < 0) continue;
    if (r->back[ranks[i]] >= 0)
      return mgrid_fail(err, MGRID_DUPLICATE,
                        "the map has rank %" PRId64 " for ranks %" PRId32 " and %zu", ranks[i],
                        r->back[ranks[i]], i);
    r->back[ranks[i]] = (int32_t)i;
  }
  r->n = (int64_t)n;
  if (r->nback > p->ranks) p->ranks = r->nback;
  return MGRID_OK;
}

/* Refuse a tensor that only one plan has. */
static mgrid_status check_both(const mgrid_plan *has, const mgrid_plan *lacks, const char *side,
                               mgrid_error *err) {
  const char *name;
  for (size_t i = 0; (name = mgrid_plan_tensor_name(has, i)); i++)
    if (!mgrid_plan_tensor(lacks, name))
      return mgrid_fail(err, MGRID_REFUSED,
                        "tensor '%s' is only in the plan %s the move; name those that move", name,
                        side);
  return MGRID_OK;
}

/* If a tensor is f32 in one plan and bf16 in the other, replace *from or *to by a bf16 tensor. */
static mgrid_status add_typing(mgrid_pairs *p, const mgrid_tensor **from, const mgrid_tensor **to,
                               mgrid_error *err) {
  bool down = strcmp((*from)->type, "f32") == 0 && strcmp((*to)->type, "bf16") == 0;
  bool up = strcmp((*from)->type, "bf16") == 0 && strcmp((*to)->type, "f32") == 0;
  if (!down && !up) return MGRID_OK;
  if (!p->typing && !(p->typing = calloc(p->room, sizeof *p->typing))) return mgrid_oom(err);
  const mgrid_tensor **wide = down ? from : to, *narrow = down ? *to : *from;
  /* a shallow copy of the plan's tensor, which lives as long as the plan */
  mgrid_tensor *same = malloc(sizeof *same);
  if (!same) return mgrid_oom(err);
  memcpy(same, *wide, sizeof *same);
  same->type = narrow->type;
  same->bytes = same->bytes / same->width * narrow->width;
  same->width = narrow->width;
  p->typing[p->n] = (mgrid_typing){ *wide, down, same };
  *wide = same;
  return MGRID_OK;
}

bool mgrid_pairs_converts(const mgrid_pairs *p, size_t i) { return p->typing && p->typing[i].wide; }

const mgrid_tensor *mgrid_pairs_tensor(const mgrid_pairs *p, size_t i, bool before) {
  const mgrid_pair *pair = &p->pair[i];
  if (mgrid_pairs_converts(p, i) && p->typing[i].before == before) return p->typing[i].wide;
  return before ? pair->from : pair->to;
}

/* Check that no sum over ranks overflows. All sums are at most what ranks need, which is the bytes
** of each tensor times its copies. */
static mgrid_status check_bytes(const mgrid_pairs *p, mgrid_error *err) {
  int64_t sum = 0, needed;
  for (size_t i = 0; i < p->n; i++) {
    const mgrid_tensor *to = p->pair[i].to;
    if (__builtin_mul_overflow(to->bytes, to->copies, &needed)
        || __builtin_add_overflow(sum, needed, &sum))
      return mgrid_fail(
          err, MGRID_OVERFLOW,
          "the bytes that all ranks hold after the move overflow 64 bits at tensor '%s'",
          p->name[i]);
  }
  return MGRID_OK;
}

static mgrid_status add_pair(mgrid_pairs *p, const char *name, bool convert, mgrid_error *err) {
  const mgrid_tensor *from = mgrid_plan_require_tensor(p->from, name, err);
  const mgrid_tensor *to = from ? mgrid_plan_tensor(p->to, name) : NULL;
  if (!from) return name ? MGRID_UNKNOWN_NAME : MGRID_USAGE;
  if (!to)
    return mgrid_fail(err, MGRID_REFUSED, "tensor '%s' is only in the plan before the move", name);
  for (size_t i = 0; i < p->n; i++)
    if (strcmp(p->name[i], name) == 0)
      return mgrid_fail(err, MGRID_DUPLICATE, "tensor '%s' is named twice", name);
  p->name[p->n] = mgrid_content_item(&p->from->content, &mgrid_tensor_kind, name)->name;
  mgrid_status s = convert ? add_typing(p, &from, &to, err) : MGRID_OK;
  if (!s)
    s = mgrid_pair_init(&p->pair[p->n], from, to, &p->names, &p->olds, (int64_t)p->n, p->machine,
                        name, err);
  p->n += !s;
  return s;
}

mgrid_status mgrid_pairs_init(mgrid_pairs *p, const mgrid_plan *from, const mgrid_plan *to,
                              size_t n, const char *const *names, const mgrid_move_options *options,
                              mgrid_error *err) {
  memset(p, 0, sizeof *p);

  p->from = mgrid_plan_ref(from);
  p->to = mgrid_plan_ref(to);
  p->ranks = from->content.world > to->content.world ? from->content.world : to->content.world;
  if (options->nranks) p->ranks = from->content.world;
  if (options->nold) p->ranks = options->nranks ? 0 : to->content.world;
  p->machine = options->machine;

  if (mgrid_lacks_list(n, names, "tensors", err)
      || mgrid_lacks_list(options->nranks, options->ranks, "ranks", err)
      || mgrid_lacks_list(options->nold, options->old, "ranks before the move", err)) {
    mgrid_pairs_free(p);
    return MGRID_USAGE;
  }

  mgrid_status s = MGRID_OK;
  if (options->nranks) s = set_names(p, &p->names, false, options->nranks, options->ranks, err);
  if (options->nold && !s) s = set_names(p, &p->olds, true, options->nold, options->old, err);
  if (!s && (options->machine < 0 || options->machine > MGRID_MACHINE_RANKS_MAX))
    s = mgrid_fail(err, MGRID_OUT_OF_RANGE,
                   "a machine has 1 to %d ranks, or 0 if none is given, not %" PRId64,
                   MGRID_MACHINE_RANKS_MAX, options->machine);
  if (!s && n == 0) s = check_both(from, to, "before", err);
  if (!s && n == 0) s = check_both(to, from, "after", err);
  if (!s && n == 0 && mgrid_plan_ntensors(from) == 0)
    s = mgrid_fail(err, MGRID_REFUSED,
                   "the plans have no tensors; a recipe defines them: t.weights = tensor { ... }");

  size_t room = p->room = n ? n : mgrid_plan_ntensors(from);
  if (!s) {
    p->name = malloc(room * sizeof *p->name);
    p->pair = malloc(room * sizeof *p->pair);
    if (!p->name || !p->pair) s = mgrid_oom(err);
  }
  for (size_t i = 0; i < room && !s; i++)
    s = add_pair(p, n ? names[i] : mgrid_plan_tensor_name(from, i), options->convert, err);

  if (!s) s = check_bytes(p, err);
  if (s) mgrid_pairs_free(p);
  return s;
}

/* ----------------------------------------------------------------- one rank */

static int by_peer(const void *a, const void *b) {
  const mgrid_move_peer *x = a, *y = b;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Group the messages of the rank by peer, because all tensors for one peer are sent as one
** message. */
static mgrid_status set_peers(mgrid_move *m, const mgrid_messages *list, mgrid_error *err) {
  if (list->n == 0) return MGRID_OK;
  m->peer = malloc(list->n * sizeof *m->peer);
  if (!m->peer) return mgrid_oom(err);
  for (size_t i = 0; i < list->n; i++) {
    const mgrid_message *x = &list->at[i];
    bool sends = x->from == m->rank;
    m->peer[i] = (mgrid_move_peer)MGRID_MOVE_PEER_INIT;
    m->peer[i].rank = sends ? x->to : x->from;
    *(sends ? &m->peer[i].send : &m->peer[i].receive) = x->bytes;
    *(sends ? &m->sums.send : &m->sums.receive) += x->bytes;
  }

  qsort(m->peer, list->n, sizeof *m->peer, by_peer);
  for (size_t i = 0; i < list->n; i++) {
    mgrid_move_peer *last = m->npeers ? &m->peer[m->npeers - 1] : NULL;
    if (last && last->rank == m->peer[i].rank) {
      last->send += m->peer[i].send;
      last->receive += m->peer[i].receive;
    } else {
      m->peer[m->npeers++] = m->peer[i];
    }
  }

  for (size_t i = 0; i < m->npeers; i++) {
    m->sums.sends += m->peer[i].send > 0;
    m->sums.receives += m->peer[i].receive > 0;
  }
  m->kept = calloc(2 * m->npeers, sizeof *m->kept);
  return m->kept ? MGRID_OK : mgrid_oom(err);
}

static mgrid_status between_plans_set_rounds(mgrid_move *m, mgrid_error *err) {
  mgrid_schedule all;
  mgrid_status s = mgrid_schedule_make(&all, &m->pairs, err);
  if (s) return s;
  for (size_t i = 0; i < m->npeers; i++) {
    mgrid_move_peer *p = &m->peer[i];
    if (p->send) p->send_round = mgrid_schedule_round(&all, m->rank, p->rank);
    if (p->receive) p->receive_round = mgrid_schedule_round(&all, p->rank, m->rank);
  }
  m->sums.rounds = all.rounds;
  mgrid_schedule_free(&all);
  return MGRID_OK;
}

mgrid_move *mgrid_move_new(const mgrid_plan *from, const mgrid_plan *to, int64_t rank,
                           size_t ntensors, const char *const *tensors,
                           const mgrid_move_options *given, mgrid_error *err) {
  mgrid_move_options options = MGRID_MOVE_OPTIONS_INIT;
  mgrid_messages list = { 0 };
  bool ok = true;

  if (!from || !to || mgrid_struct_read(&options, sizeof options, given, "mgrid_move_options", err))
    return NULL;
  mgrid_move *m = calloc(1, sizeof *m);
  if (!m) return mgrid_null_oom(err);
  atomic_init(&m->refs, 1);
  m->rank = rank;
  m->sums = (mgrid_move_sums)MGRID_MOVE_SUMS_INIT;
  mgrid_status s = mgrid_pairs_init(&m->pairs, from, to, ntensors, tensors, &options, err);
  if (!s) s = mgrid_check_rank(rank, m->pairs.ranks, err);
  for (size_t i = 0; i < m->pairs.n && !s && ok; i++) {
    ok = mgrid_pair_sends(&m->pairs.pair[i], rank, (int64_t)i, &list)
         && mgrid_pair_receives(&m->pairs.pair[i], rank, (int64_t)i, &list);
    m->sums.stay += mgrid_pair_stays(&m->pairs.pair[i], rank);
  }
  m->sums.missing = list.missing;
  if (!ok) s = mgrid_oom(err);
  if (!s) s = set_peers(m, &list, err);
  if (!s && options.rounds) s = between_plans_set_rounds(m, err);
  free(list.at);
  if (!s) return m;
  mgrid_move_free(m);
  return NULL;
}

mgrid_move *mgrid_move_ref(mgrid_move *m) {
  if (m) atomic_fetch_add(&m->refs, 1);
  return m;
}

void mgrid_move_free(mgrid_move *m) {
  if (!m || atomic_fetch_sub(&m->refs, 1) != 1) return;
  mgrid_pairs_free(&m->pairs);
  for (size_t i = 0; i < 2 * m->npeers && m->kept; i++) free(m->kept[i].piece);
  free(m->kept);
  free(m->peer);
  free(m);
}

/* ---------------------------------------------------------------- questions */

size_t mgrid_move_ntensors(const mgrid_move *m) { return m ? m->pairs.n : 0; }

const char *mgrid_move_tensor(const mgrid_move *m, size_t i) {
  return m && i < m->pairs.n ? m->pairs.name[i] : NULL;
}

size_t mgrid_move_npeers(const mgrid_move *m) { return m ? m->npeers : 0; }

mgrid_status mgrid_move_peers(const mgrid_move *m, size_t i, mgrid_move_peer *out,
                              mgrid_error *err) {
  if (!m) return MGRID_USAGE;
  mgrid_status s = mgrid_struct_check(out, sizeof *out, "mgrid_move_peer", err);
  if (s) return s;
  if (i >= m->npeers)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "the move has %zu peers, no peer %zu", m->npeers, i);
  mgrid_struct_write(out, &m->peer[i], sizeof *out);
  return MGRID_OK;
}

mgrid_status mgrid_move_bytes(const mgrid_move *m, mgrid_move_sums *out, mgrid_error *err) {
  if (!m) return MGRID_USAGE;
  mgrid_status s = mgrid_struct_check(out, sizeof *out, "mgrid_move_sums", err);
  if (!s) mgrid_struct_write(out, &m->sums, sizeof *out);
  return s;
}

/* most pieces of a message that are kept; a message with more takes longer to send than to plan */
enum { KEPT_MOST = 4 };

/* Return where the pieces of a message are kept. NULL: there is no such message. */
static mgrid_kept *kept_of(const mgrid_move *m, mgrid_way way, int64_t peer) {
  mgrid_move_peer key = { .rank = peer };
  mgrid_move_peer *p = m->npeers && way != MGRID_STAYS
                           ? bsearch(&key, m->peer, m->npeers, sizeof key, by_peer)
                           : NULL;
  return p ? &m->kept[2 * (p - m->peer) + (way == MGRID_RECEIVES)] : NULL;
}

/* Keep piece `at` of a message, unless it is kept already or the message has too many pieces. */
static void between_plans_keep(mgrid_kept *k, const mgrid_move_piece *piece, size_t at) {
  if (at == k->n && at < KEPT_MOST && MGRID_GROW(k->piece, k->n, 1)) k->piece[k->n++] = *piece;
}

void mgrid_stream_begin(mgrid_stream *s, const mgrid_move *m, mgrid_way way, int64_t peer) {
  *s = (mgrid_stream){ .move = m, .kept = kept_of(m, way, peer) };
  s->piece = (mgrid_move_piece){ .size = sizeof s->piece,
                                 .way = way,
                                 .peer = way == MGRID_STAYS ? m->rank : peer };
}

void mgrid_stream_end(mgrid_stream *s) { mgrid_boxes_end(&s->boxes); }

/* Begin the boxes of tensor i. There may be none. */
static mgrid_status open_tensor(mgrid_stream *s, size_t i, mgrid_error *err) {
  const mgrid_pair *p = &s->move->pairs.pair[i];
  mgrid_way way = s->piece.way;
  int64_t from = way == MGRID_RECEIVES ? s->piece.peer : s->move->rank;
  int64_t to = way == MGRID_SENDS ? s->piece.peer : s->move->rank;
  mgrid_coords shard, part;
  bool goes = way == MGRID_STAYS;
  s->piece.tensor = i;
  if (!mgrid_pair_held(p, from, &shard) || !mgrid_pair_coords(p, to, &part)) return MGRID_OK;
  if (!goes && !mgrid_pair_goes(p, &shard, &part, &goes)) return mgrid_oom(err);
  return goes && !mgrid_boxes_begin(&s->boxes, p, &shard, &part) ? mgrid_oom(err) : MGRID_OK;
}

mgrid_status mgrid_stream_next(mgrid_stream *s, bool *more, mgrid_error *err) {
  mgrid_status status = MGRID_OK;
  mgrid_kept *k = s->kept;
  if (k && k->all) {
    *more = s->done < k->n;
    if (*more) s->piece = k->piece[s->done++];
    return MGRID_OK;
  }
  while (!(*more = mgrid_boxes_next(&s->boxes, &s->piece)) && s->next < s->move->pairs.n
         && !status) {
    mgrid_boxes_end(&s->boxes);
    status = open_tensor(s, s->next++, err);
  }
  if (k && *more) between_plans_keep(k, &s->piece, s->done++);
  if (k && !*more && !status) k->all = k->n == s->done;
  return status;
}

mgrid_status mgrid_move_pieces(const mgrid_move *m, mgrid_way way, int64_t peer, mgrid_piece_fn fn,
                               void *ud, mgrid_error *err) {
  if (!m || mgrid_lacks(fn, "the function that takes pieces", err)) return MGRID_USAGE;
  mgrid_status s = way == MGRID_STAYS ? MGRID_OK : mgrid_check_rank(peer, m->pairs.ranks, err);
  if (s || (way != MGRID_STAYS && peer == m->rank)) return s;
  mgrid_stream stream;
  bool more;
  mgrid_stream_begin(&stream, m, way, peer);
  /* the kept lists are for runs of the move; several threads may call this function */
  stream.kept = NULL;
  while (!(s = mgrid_stream_next(&stream, &more, err)) && more)
    if (fn(ud, &stream.piece) != 0) {
      s = mgrid_fail(err, MGRID_OUTPUT, "the function that takes pieces refused one");
      break;
    }
  mgrid_stream_end(&stream);
  return s;
}
