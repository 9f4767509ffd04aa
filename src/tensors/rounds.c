/* SPDX-License-Identifier: MIT
**
** rounds.c - put messages into rounds: colour the edges between senders and receivers. As many colours as the busiest
** rank has messages always suffice. If the ends of an edge have no free colour in common, an exchange makes one: from
** its receiver on, follow the path of edges with two alternating colours, and swap these. The path never reaches the
** sender, because it would have to enter by the colour that is free there.
*/
#include "tensors/move.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SLOTS_MAX = 2 * MGRID_EDGES_MAX }; /* slots of both tables, 512 MiB: ranks times rounds */

typedef struct colouring {
  mgrid_edge *edge;
  int64_t     rounds;
  int32_t    *sends, *receives; /* [ranks * rounds]: 1 + the edge of that rank and colour, or 0 */
} colouring;

static int32_t *slot(const colouring *c, bool sender, int64_t rank, int32_t colour) {
  return (sender ? c->sends : c->receives) + rank * c->rounds + colour;
}

static int32_t free_colour(const colouring *c, bool sender, int64_t rank) {
  int32_t colour = 0;
  while (*slot(c, sender, rank, colour)) colour++;
  return colour;
}

static void set(const colouring *c, size_t e, int32_t colour) {
  c->edge[e].round = colour;
  *slot(c, true, c->edge[e].from, colour) = (int32_t)e + 1;
  *slot(c, false, c->edge[e].to, colour) = (int32_t)e + 1;
}

/* Swap colours a and b on the path that starts at a receiver with an edge of colour a. An edge takes its slot after the
** edge that was in it has been picked up. */
static void exchange(const colouring *c, int64_t rank, int32_t a, int32_t b) {
  bool    sender = false;
  int32_t at = *slot(c, sender, rank, a);
  *slot(c, sender, rank, a) = 0; /* the slot of the new edge */
  while (at) {
    mgrid_edge *e = &c->edge[at - 1];
    int64_t     far = sender ? e->to : e->from;
    int32_t     next = *slot(c, !sender, far, b);
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

mgrid_status mgrid_edges_colour(size_t n, mgrid_edge *edge, int64_t ranks, int64_t *rounds, mgrid_error *err) {
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
    return mgrid_fail(err, MGRID_LIMIT, "%zu messages of %" PRId64 " ranks are too many to put into %" PRId64 " rounds",
                      n, ranks, most);
  int32_t  *room = calloc((size_t)(2 * ranks * most), sizeof *room);
  colouring c = { edge, most, room, room ? room + ranks * most : NULL };
  if (!room) return mgrid_oom(err);
  for (size_t i = 0; i < n; i++) {
    int32_t a = free_colour(&c, true, edge[i].from), b = free_colour(&c, false, edge[i].to);
    if (*slot(&c, false, edge[i].to, a)) exchange(&c, edge[i].to, a, b);
    set(&c, i, a);
  }
  free(room);
  return MGRID_OK;
}
