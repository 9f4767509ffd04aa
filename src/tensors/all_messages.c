/* SPDX-License-Identifier: MIT
**
** all_messages.c - the messages of all ranks of a move, their rounds, and their sums. A rank that
** runs a move without rounds computes only its own messages.
*/
#include "tensors/between_plans.h"
#include "tensors/move.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ==================================================================== rounds */

/* Rounds are the colours of a bipartite graph's edges: a message is an edge from a sender to a
** receiver, and no two edges at a sender, or at a receiver, may have the same colour. If the busiest
** rank has n messages, n colours always suffice. Colour a is free at the sender of a new edge, b at
** its receiver. If a is not free at the receiver, follow the path of edges with colours a, b, a, ...
** from there, and swap the two colours on it. The path never reaches the sender, which
** it could enter only by an edge of colour a: a is free there. */

/* most slots of the two tables together, which then take 512 MiB; each has ranks times rounds
** slots */
enum { SLOTS_MAX = 2 * MGRID_EDGES_MAX };

typedef struct colouring {
  mgrid_edge *edge;
  int64_t rounds;
  /* [ranks * rounds]: the edge of that rank and colour, plus 1; 0: none */
  int32_t *sends, *receives;
} colouring;

static int32_t *slot(const colouring *c, bool sender, int64_t rank, int32_t colour) {
  return (sender ? c->sends : c->receives) + rank * c->rounds + colour;
}

static int32_t free_colour(const colouring *c, bool sender, int64_t rank) {
  int32_t colour = 0;
  while (*slot(c, sender, rank, colour)) colour++;
  return colour;
}

static void all_messages_set(const colouring *c, size_t e, int32_t colour) {
  c->edge[e].round = colour;
  *slot(c, true, c->edge[e].from, colour) = (int32_t)e + 1;
  *slot(c, false, c->edge[e].to, colour) = (int32_t)e + 1;
}

/* Swap colours a and b on the path that starts at receiver `rank` with an edge of colour a. If an
** edge is in the slot of the new colour, the next step of the loop recolours that edge. */
static void all_messages_exchange(const colouring *c, int64_t rank, int32_t a, int32_t b) {
  bool sender = false;
  int32_t at = *slot(c, sender, rank, a);
  *slot(c, sender, rank, a) = 0; /* for the new edge */
  while (at) {
    mgrid_edge *e = &c->edge[at - 1];
    int64_t far = sender ? e->to : e->from;
    int32_t next = *slot(c, !sender, far, b);
    *slot(c, sender, rank, b) = at;
    *slot(c, !sender, far, b) = at;
    if (!next) *slot(c, !sender, far, a) = 0;
    e->round = b;
    at = next;
    rank = far;
    sender = !sender;
    int32_t kept = a;
    a = b;
    b = kept;
  }
}

mgrid_status mgrid_edges_colour(size_t n, mgrid_edge *edge, int64_t ranks, int64_t *rounds,
                                mgrid_error *err) {
  int64_t *degree = calloc((size_t)ranks * 2, sizeof *degree), most = 0;

  if (!degree) return mgrid_oom(err);
  for (size_t i = 0; i < n; i++) {
    int64_t a = ++degree[edge[i].from], b = ++degree[ranks + edge[i].to];
    most = a > most ? a : most;
    most = b > most ? b : most;
  }
  free(degree);
  *rounds = most;
  if (n == 0) return MGRID_OK;
  if (n > INT32_MAX || ranks > SLOTS_MAX / 2 / most)
    return mgrid_fail(err, MGRID_LIMIT,
                      "%zu messages of %" PRId64 " ranks are too many to put into %" PRId64
                      " rounds",
                      n, ranks, most);
  int32_t *room = calloc((size_t)(2 * ranks * most), sizeof *room);
  colouring c = { edge, most, room, room ? room + ranks * most : NULL };
  if (!room) return mgrid_oom(err);
  for (size_t i = 0; i < n; i++) {
    int32_t a = free_colour(&c, true, edge[i].from), b = free_colour(&c, false, edge[i].to);
    if (*slot(&c, false, edge[i].to, a)) all_messages_exchange(&c, edge[i].to, a, b);
    all_messages_set(&c, i, a);
  }
  free(room);
  return MGRID_OK;
}

/* ================================================================== the move */

static int by_ends(const void *a, const void *b) {
  const mgrid_message *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static void all_messages_sort(mgrid_messages *list) {
  if (list->n > 1) qsort(list->at, list->n, sizeof *list->at, by_ends);
}

bool mgrid_pairs_messages(const mgrid_pairs *p, int64_t rank, bool sends, mgrid_messages *list) {
  list->n = 0;
  for (size_t i = 0; i < p->n; i++)
    if (!(sends ? mgrid_pair_sends(&p->pair[i], rank, (int64_t)i, list)
                : mgrid_pair_receives(&p->pair[i], rank, (int64_t)i, list)))
      return false;
  all_messages_sort(list);
  return true;
}

/* ------------------------------------------------------------------- rounds */

mgrid_status mgrid_schedule_make(mgrid_schedule *s, const mgrid_pairs *p, mgrid_error *err) {
  mgrid_messages list = { 0 };
  mgrid_status status = MGRID_OK;

  *s = (mgrid_schedule){ 0, NULL, 0 };
  for (int64_t rank = 0; rank < p->ranks && !status; rank++) {
    if (!mgrid_pairs_messages(p, rank, true, &list)) status = mgrid_oom(err);
    for (size_t i = 0; i < list.n && !status; i++) {
      /* the same message, of which this is another tensor */
      if (i > 0 && list.at[i].to == list.at[i - 1].to) continue;
      if (s->n == MGRID_EDGES_MAX) {
        status = mgrid_fail(err, MGRID_LIMIT,
                            "more than %d messages are too many to put into rounds",
                            MGRID_EDGES_MAX);
        break;
      }
      if (!MGRID_GROW(s->edge, s->n, 1)) {
        status = mgrid_oom(err);
        break;
      }
      s->edge[s->n++] = (mgrid_edge){ (int32_t)rank, (int32_t)list.at[i].to, -1 };
    }
  }
  free(list.at);
  if (!status) status = mgrid_edges_colour(s->n, s->edge, p->ranks, &s->rounds, err);
  if (status) mgrid_schedule_free(s);
  return status;
}

void mgrid_schedule_free(mgrid_schedule *s) {
  free(s->edge);
  *s = (mgrid_schedule){ 0, NULL, 0 };
}

int64_t mgrid_schedule_round(const mgrid_schedule *s, int64_t from, int64_t to) {
  size_t low = 0, high = s->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const mgrid_edge *e = &s->edge[middle];
    if (e->from < from || (e->from == from && e->to < to))
      low = middle + 1;
    else
      high = middle;
  }
  return low < s->n && s->edge[low].from == from && s->edge[low].to == to ? s->edge[low].round : -1;
}

/* ------------------------------------------------------------------- tally */

/* What one rank sends, or what it receives. */
typedef struct load {
  int64_t bytes, messages;
} load;

/* Sum a rank's list for one tensor, or for all (-1). */
static load load_of(const mgrid_messages *list, int64_t tensor) {
  load sum = { 0, 0 };
  int64_t last = -1;
  for (size_t i = 0; i < list->n; i++) {
    const mgrid_message *m = &list->at[i];
    int64_t ends = m->from * (MGRID_WORLD_MAX + 1) + m->to;
    if (tensor >= 0 && m->tensor != tensor) continue;
    sum.bytes += m->bytes;
    sum.messages += ends != last;
    last = ends;
  }
  return sum;
}

/* Count the peers in both lists, which are sorted by peer. */
static int64_t peers_of(const mgrid_messages *sends, const mgrid_messages *receives,
                        int64_t tensor) {
  int64_t n = 0, last = -1;
  size_t i = 0, k = 0;
  while (i < sends->n || k < receives->n) {
    bool left = k == receives->n || (i < sends->n && sends->at[i].to <= receives->at[k].from);
    const mgrid_message *m = left ? &sends->at[i++] : &receives->at[k++];
    int64_t peer = left ? m->to : m->from;
    if ((tensor >= 0 && m->tensor != tensor) || peer == last) continue;
    last = peer;
    n++;
  }
  return n;
}

/* Add to a sum, which stops at INT64_MAX: it is only reported. */
static void add_to(int64_t *sum, int64_t value) {
  if (__builtin_add_overflow(*sum, value, sum)) *sum = INT64_MAX;
}

static void all_messages_larger(int64_t *most, int64_t value) {
  if (value > *most) *most = value;
}

static void add_rank(mgrid_tally *t, const mgrid_messages *sends, const mgrid_messages *receives,
                     int64_t tensor) {
  load s = load_of(sends, tensor), r = load_of(receives, tensor);
  t->sent += s.bytes;
  t->messages += s.messages;
  all_messages_larger(&t->max_send, s.bytes);
  all_messages_larger(&t->max_receive, r.bytes);
  all_messages_larger(&t->busiest, s.messages);
  all_messages_larger(&t->busiest, r.messages);
  all_messages_larger(&t->peers, peers_of(sends, receives, tensor));
}

/* Add the bytes that a rank needs and does not hold, the bytes that it needs and holds, and the
** bytes that it would receive if it gathered the whole tensor. */
static void add_parts(mgrid_tally *t, const mgrid_pair *p, int64_t rank) {
  mgrid_coords at;
  if (!mgrid_pair_coords(p, rank, &at)) return;
  int64_t has = 0, need = mgrid_tensor_elements(p->to, &at) * p->to->width,
          stay = mgrid_pair_stays(p, rank);
  t->minimum += need - stay;
  t->stay += stay;
  if (need == 0) return;
  if (mgrid_pair_held(p, rank, &at)) has = mgrid_tensor_elements(p->from, &at) * p->from->width;
  add_to(&t->gather, p->from->bytes - has);
}

static void add_message(mgrid_tally *t, const mgrid_message *m, int64_t machine, int64_t round) {
  if (machine && m->from / machine != m->to / machine) t->crossing += m->bytes;
  all_messages_larger(&t->rounds, round + 1);
}

mgrid_status mgrid_pairs_tally(const mgrid_pairs *p, const mgrid_schedule *s, mgrid_tally *tally,
                               mgrid_error *err) {
  mgrid_messages sends = { 0 }, receives = { 0 };
  mgrid_tally *all = &tally[p->n];
  mgrid_status status = MGRID_OK;

  memset(tally, 0, (p->n + 1) * sizeof *tally);
  for (int64_t rank = 0; rank < p->ranks && !status; rank++) {
    if (!mgrid_pairs_messages(p, rank, true, &sends)
        || !mgrid_pairs_messages(p, rank, false, &receives))
      status = mgrid_oom(err);
    if (status || (sends.n + receives.n == 0)) {
      for (size_t i = 0; i < p->n && !status; i++) add_parts(&tally[i], &p->pair[i], rank);
      continue;
    }
    for (size_t i = 0; i < p->n; i++) {
      add_rank(&tally[i], &sends, &receives, (int64_t)i);
      add_parts(&tally[i], &p->pair[i], rank);
    }
    add_rank(all, &sends, &receives, -1);
    for (size_t i = 0; i < sends.n; i++) {
      const mgrid_message *m = &sends.at[i];
      int64_t round = s ? mgrid_schedule_round(s, m->from, m->to) : -1;
      add_message(&tally[m->tensor], m, p->machine, round);
      add_message(all, m, p->machine, round);
    }
  }
  for (size_t i = 0; i < p->n; i++) {
    all->minimum += tally[i].minimum;
    all->stay += tally[i].stay;
    add_to(&all->gather, tally[i].gather);
    if (!s) tally[i].rounds = -1;
  }
  all->rounds = s ? s->rounds : -1;
  free(sends.at);
  free(receives.at);
  return status;
}
