/* SPDX-License-Identifier: MIT
**
** assign.c - assign blocks of ranks to nodes. The bytes between blocks make a graph. At the
** farthest level, the graph is parted among the domains: each takes as many blocks as it has nodes.
** Then the blocks of each domain are parted among its domains of the next level. Each parting tries
** several starts, improves each by the best swaps of two blocks until no swap helps, and keeps the
** best result (Kernighan and Lin, An efficient heuristic procedure for partitioning graphs, 1970,
** with single swaps).
*/
#include "machine/assign.h"

#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STARTS = 16, PASSES = 40, NODES_MAX = 16384 };

/* ------------------------------------------------------------------- traffic */

typedef struct edge {
  uint64_t key; /* the two blocks, the lower number in the upper half */
  double bytes;
} edge;

typedef struct graph {
  int64_t n;    /* number of blocks: one for each node, also for nodes without ranks */
  int64_t each; /* ranks of a block */
  size_t nedges, room;
  edge *edge;
  int64_t *start; /* [n + 1]: where the neighbours of a block begin in `to` and `bytes` */
  int32_t *to;
  double *bytes;
} graph;

static void free_graph(graph *g) {
  free(g->edge);
  free(g->start);
  free(g->to);
  free(g->bytes);
}

static int assign_by_key(const void *a, const void *b) {
  const edge *x = a, *y = b;
  return (x->key > y->key) - (x->key < y->key);
}

/* Merge equal edges: add up their bytes. */
static void assign_merge(graph *g) {
  size_t n = 0;
  if (g->nedges > 1) qsort(g->edge, g->nedges, sizeof *g->edge, assign_by_key);
  for (size_t i = 0; i < g->nedges; i++)
    if (n && g->edge[n - 1].key == g->edge[i].key)
      g->edge[n - 1].bytes += g->edge[i].bytes;
    else
      g->edge[n++] = g->edge[i];
  g->nedges = n;
}

static bool add_edge(graph *g, int64_t a, int64_t b, double bytes) {
  if (a == b || bytes <= 0) return true;
  if (g->nedges == g->room) {
    assign_merge(g); /* many edges are equal, because many members of a group share a node */
    if (g->nedges * 2 >= g->room && !MGRID_ROOM(g->edge, g->room, g->room ? 2 * g->room : 4096))
      return false;
  }
  g->edge[g->nedges++] =
      (edge){ (uint64_t)(a < b ? a : b) << 32 | (uint64_t)(a < b ? b : a), bytes };
  return true;
}

static bool assign_add_flow(graph *g, const mgrid_flow *flow, const mgrid_family *f) {
  int32_t *rank = malloc((size_t)(f->max_size + 1) * sizeof *rank);
  bool whole = rank != NULL;
  for (int64_t group = 0; group < f->count && whole; group++) {
    int64_t n = mgrid_family_size(f, group);
    double bytes = mgrid_flow_edge(flow, n);
    mgrid_family_group(f, group, rank);
    for (int64_t p = 0; p < n; p++) rank[p] /= (int32_t)g->each;
    if (flow->by->pattern == MGRID_PAIRS) {
      for (int64_t p = 0; p < n && whole; p++)
        for (int64_t q = p + 1; q < n && whole; q++)
          whole = add_edge(g, rank[p], rank[q], 2 * bytes);
      continue;
    }
    for (int64_t p = 0; p + 1 < n && whole; p++) whole = add_edge(g, rank[p], rank[p + 1], bytes);
    if (flow->by->pattern == MGRID_RING && n > 2 && whole)
      whole = add_edge(g, rank[n - 1], rank[0], bytes);
  }
  free(rank);
  return whole;
}

static bool add_plan(graph *g, const mgrid_plan *p, const mgrid_traffic *traffic) {
  const mgrid_flow usual = { .by = mgrid_collectives, .bytes = 1 << 30, .calls = 1 };
  bool whole = true;
  for (size_t i = 0; i < p->content.nentries && whole; i++) {
    const mgrid_entry *e = &p->content.entry[i];
    bool own = p->shares[i] < 0 && !e->choice->none && e->family->max_size > 1;
    if (!traffic && own) whole = assign_add_flow(g, &usual, e->family);
    for (size_t k = 0; traffic && k < traffic->n && whole; k++)
      if (strcmp(traffic->flow[k].family, e->name) == 0)
        whole = assign_add_flow(g, &traffic->flow[k], e->family);
  }
  return whole;
}

/* Make a list of the neighbours of each block from the edges. */
static bool link_blocks(graph *g) {
  assign_merge(g);
  g->start = calloc((size_t)g->n + 2, sizeof *g->start);
  g->to = malloc((2 * g->nedges + 1) * sizeof *g->to);
  g->bytes = malloc((2 * g->nedges + 1) * sizeof *g->bytes);
  if (!g->start || !g->to || !g->bytes) return false;
  for (size_t i = 0; i < g->nedges; i++)
    g->start[(g->edge[i].key >> 32) + 2]++, g->start[(uint32_t)g->edge[i].key + 2]++;
  for (int64_t b = 1; b <= g->n; b++) g->start[b + 1] += g->start[b];
  for (size_t i = 0; i < g->nedges; i++) {
    int32_t a = (int32_t)(g->edge[i].key >> 32), b = (int32_t)(uint32_t)g->edge[i].key;
    int64_t x = g->start[a + 1]++, y = g->start[b + 1]++;
    g->to[x] = b, g->to[y] = a;
    g->bytes[x] = g->bytes[y] = g->edge[i].bytes;
  }
  return true;
}

/* --------------------------------------------------------------------- parting */

/* The blocks of one domain, which are parted among its domains of the next level. */
typedef struct parting {
  const graph *g;
  int32_t *block; /* [n]: number of the block in the graph */
  int32_t n, parts;
  const int32_t *size;  /* [parts]: how many blocks the part takes */
  int32_t *local;       /* [g->n]: the index of a block in `block`; -1: not in this domain */
  int32_t *part, *best; /* [n]: the part of each block, now and in the best result */
  double *conn;         /* [n * parts]: bytes between a block and each part */
  double *mark;         /* [n]: bytes between a block and the block that moves */
  uint64_t random;
} parting;

static uint64_t assign_draw(parting *x) {
  x->random ^= x->random << 13, x->random ^= x->random >> 7, x->random ^= x->random << 17;
  return x->random;
}

static double assign_cut(const parting *x) {
  double sum = 0;
  for (int32_t i = 0; i < x->n; i++)
    for (int64_t e = x->g->start[x->block[i]]; e < x->g->start[x->block[i] + 1]; e++) {
      int32_t j = x->local[x->g->to[e]];
      if (j > i && x->part[i] != x->part[j]) sum += x->g->bytes[e];
    }
  return sum;
}

static void connect(parting *x) {
  memset(x->conn, 0, (size_t)x->n * (size_t)x->parts * sizeof *x->conn);
  for (int32_t i = 0; i < x->n; i++)
    for (int64_t e = x->g->start[x->block[i]]; e < x->g->start[x->block[i] + 1]; e++) {
      int32_t j = x->local[x->g->to[e]];
      if (j >= 0) x->conn[(size_t)i * (size_t)x->parts + (size_t)x->part[j]] += x->g->bytes[e];
    }
}

static void assign_move(parting *x, int32_t i, int32_t to) {
  for (int64_t e = x->g->start[x->block[i]]; e < x->g->start[x->block[i] + 1]; e++) {
    int32_t j = x->local[x->g->to[e]];
    if (j < 0) continue;
    x->conn[(size_t)j * (size_t)x->parts + (size_t)x->part[i]] -= x->g->bytes[e];
    x->conn[(size_t)j * (size_t)x->parts + (size_t)to] += x->g->bytes[e];
  }
  x->part[i] = to;
}

/* Swap two blocks of different parts as long as that saves bytes. */
static void improve(parting *x) {
  size_t parts = (size_t)x->parts;
  bool better = true;

  connect(x);
  for (int pass = 0; pass < PASSES && better; pass++) {
    better = false;
    for (int32_t i = 0; i < x->n; i++) {
      const double *mine = &x->conn[(size_t)i * parts];
      double most = 0;
      int32_t with = -1, own = x->part[i];
      bool apart = false;
      for (size_t d = 0; d < parts; d++) apart |= (int32_t)d != own && mine[d] > 0;
      if (!apart) continue; /* all bytes of this block stay in its part */
      for (int64_t e = x->g->start[x->block[i]]; e < x->g->start[x->block[i] + 1]; e++)
        if (x->local[x->g->to[e]] >= 0) x->mark[x->local[x->g->to[e]]] = x->g->bytes[e];
      for (int32_t j = 0; j < x->n; j++) {
        int32_t other = x->part[j];
        if (other == own) continue;
        double gain = mine[other] - mine[own] + x->conn[(size_t)j * parts + (size_t)own]
                      - x->conn[(size_t)j * parts + (size_t)other] - 2 * x->mark[j];
        if (gain > most * (1 + 1e-12) + 1e-6) most = gain, with = j;
      }
      for (int64_t e = x->g->start[x->block[i]]; e < x->g->start[x->block[i] + 1]; e++)
        if (x->local[x->g->to[e]] >= 0) x->mark[x->local[x->g->to[e]]] = 0;
      if (with < 0) continue;
      int32_t other = x->part[with];
      assign_move(x, i, other);
      assign_move(x, with, own);
      better = true;
    }
  }
}

/* Fill the parts in the given order with consecutive blocks. With `grow`, always take the block
** that exchanges most bytes with the blocks that are in the part already. */
static void assign_fill(parting *x, const int32_t *order, bool grow) {
  int32_t at = 0;
  if (grow) memset(x->part, 0xff, (size_t)x->n * sizeof *x->part);
  for (int32_t k = 0; k < x->parts; k++) {
    if (grow) memset(x->mark, 0, (size_t)x->n * sizeof *x->mark);
    for (int32_t left = x->size[order[k]]; left > 0; left--) {
      int32_t i = at;
      if (grow) {
        double most = -1;
        for (int32_t j = 0; j < x->n; j++)
          if (x->part[j] < 0 && x->mark[j] > most) most = x->mark[j], i = j;
        for (int64_t e = x->g->start[x->block[i]]; e < x->g->start[x->block[i] + 1]; e++)
          if (x->local[x->g->to[e]] >= 0) x->mark[x->local[x->g->to[e]]] += x->g->bytes[e];
      }
      x->part[i] = order[k];
      at++;
    }
  }
  memset(x->mark, 0, (size_t)x->n * sizeof *x->mark);
}

static int by_size(const void *a, const void *b, void *ud) {
  const int32_t *size = ud;
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return size[x] != size[y] ? (size[x] > size[y] ? -1 : 1) : (x > y) - (x < y);
}

/* Part the blocks, and put the result into x->best. x->part has the present parts. */
static bool part_blocks(parting *x) {
  int32_t *order = malloc((size_t)x->parts * sizeof *order);

  if (!order) return false;
  double best = assign_cut(x);
  memcpy(x->best, x->part, (size_t)x->n * sizeof *x->best);
  for (int start = 0; start < STARTS && best > 0; start++) {
    for (int32_t k = 0; k < x->parts; k++) order[k] = k;
    if (start == 2 || start == 3)
      qsort_r(order, (size_t)x->parts, sizeof *order, by_size, (void *)(uintptr_t)x->size);
    for (int32_t k = x->parts - 1; start > 5 && k > 0; k--) {
      int32_t j = (int32_t)(assign_draw(x) % (uint64_t)(k + 1)), kept = order[k];
      order[k] = order[j], order[j] = kept;
    }
    if (start == 4 || start == 5)
      for (int32_t k = 0; k < x->parts / 2; k++) {
        int32_t kept = order[k];
        order[k] = order[x->parts - 1 - k], order[x->parts - 1 - k] = kept;
      }
    /* the first start is the present state */
    if (start > 0) assign_fill(x, order, start % 2 == 0 && x->n <= 4096);
    improve(x);
    double now = assign_cut(x);
    if (now < best) {
      best = now;
      memcpy(x->best, x->part, (size_t)x->n * sizeof *x->best);
    }
  }
  free(order);
  return true;
}

/* ----------------------------------------------------------------------- nodes */

typedef struct assigning {
  const mgrid_machine_model *m;
  const graph *g;
  size_t level;  /* the level whose domains are nodes */
  int32_t *node; /* [g->n]: the node of each block */
} assigning;

/* Assign blocks to the nodes `first` to last - 1, which lie in one domain of the level before. */
static bool part_domain(assigning *a, size_t level, int64_t first, int64_t last, int32_t *block) {
  if (level >= a->level || last - first < 2) return true;
  const mgrid_tier *t = &a->m->tier[level], *node = &a->m->tier[a->level];
  int64_t low = mgrid_tier_domain(t, mgrid_tier_start(node, first));
  int64_t high = mgrid_tier_domain(t, mgrid_tier_start(node, last - 1));
  int32_t parts = (int32_t)(high - low + 1), n = (int32_t)(last - first);
  parting x = {
    .g = a->g, .block = block, .n = n, .parts = parts, .random = UINT64_C(0x9E3779B97F4A7C15)
  };
  int32_t *size = calloc((size_t)parts, sizeof *size), *at = calloc((size_t)parts + 1, sizeof *at);
  int32_t *sorted = malloc((size_t)n * sizeof *sorted);

  x.size = size;
  x.local = malloc((size_t)a->g->n * sizeof *x.local);
  x.part = malloc((size_t)n * sizeof *x.part);
  x.best = malloc((size_t)n * sizeof *x.best);
  x.conn = malloc((size_t)n * (size_t)parts * sizeof *x.conn);
  x.mark = calloc((size_t)n, sizeof *x.mark);
  bool whole = size && at && sorted && x.local && x.part && x.best && x.conn && x.mark;
  if (whole) {
    memset(x.local, 0xff, (size_t)a->g->n * sizeof *x.local);
    for (int64_t h = first; h < last; h++)
      size[mgrid_tier_domain(t, mgrid_tier_start(node, h)) - low]++;
    for (int32_t i = 0; i < n; i++) {
      x.local[block[i]] = i;
      x.part[i] = (int32_t)(mgrid_tier_domain(t, mgrid_tier_start(node, a->node[block[i]])) - low);
    }
    whole = part_blocks(&x);
  }
  for (int32_t k = 0; whole && k < parts; k++) at[k + 1] = at[k] + size[k];
  for (int32_t i = 0; whole && i < n; i++)
    sorted[at[x.best[i]]++] = block[i]; /* from here at[k] is where part k + 1 begins */
  if (whole) memcpy(block, sorted, (size_t)n * sizeof *block);
  for (int32_t k = 0, from = 0; whole && k < parts; from += size[k++]) {
    for (int32_t i = 0; i < size[k]; i++) a->node[block[from + i]] = (int32_t)(first + from + i);
    whole = part_domain(a, level + 1, first + from, first + from + size[k], block + from);
  }
  free(size), free(at), free(sorted);
  free(x.local), free(x.part), free(x.best), free(x.conn), free(x.mark);
  return whole;
}

/* ---------------------------------------------------------------------- public */

bool mgrid_assignable(const mgrid_machine_model *m, int64_t world) {
  const mgrid_tier *node = &m->tier[mgrid_node_level(m)];
  return mgrid_node_level(m) > 0 && node->each && node->domains > 1 && node->domains <= NODES_MAX
         && m->places && (world - 1) / node->each > 0
         && m->tier[mgrid_node_level(m) - 1].domains > 1;
}

/* Set the present node of each block. Blocks without ranks get the nodes that are left. Return
** false if a block is on several nodes, or two blocks are on one node. */
static bool nodes_now(const mgrid_machine_model *m, const mgrid_assignment *a, int64_t world,
                      int64_t nodes, int32_t *node) {
  bool *taken = calloc((size_t)nodes, sizeof *taken), plain = true;
  int64_t left = 0;
  for (int64_t b = 0; b < a->blocks && taken; b++) {
    int64_t d = mgrid_tier_domain(&m->tier[a->level], mgrid_machine_at(m, b * a->each));
    for (int64_t r = b * a->each; r < (b + 1) * a->each && r < world; r++)
      plain &= mgrid_tier_domain(&m->tier[a->level], mgrid_machine_at(m, r)) == d;
    plain &= !taken[d];
    taken[d] = true;
    node[b] = (int32_t)d;
  }
  for (int64_t b = a->blocks; taken && plain && b < nodes; b++) {
    while (taken[left]) left++;
    taken[left] = true;
    node[b] = (int32_t)left;
  }
  plain &= taken != NULL;
  free(taken);
  return plain;
}

mgrid_status mgrid_assign(const mgrid_machine_model *m, const mgrid_plan *p,
                          const mgrid_traffic *traffic, mgrid_assignment *out, mgrid_error *err) {
  int64_t world = mgrid_plan_world(p);

  *out = (mgrid_assignment){ .level = mgrid_node_level(m) };
  if (!mgrid_assignable(m, world))
    return mgrid_fail(
        err, MGRID_REFUSED,
        "no nodes to assign: they must have one size and lie in several domains, and the "
        "ranks must need several of them");
  int64_t nodes = m->tier[out->level].domains;
  graph g = { .n = nodes, .each = m->tier[out->level].each };
  assigning a = { m, &g, out->level, malloc((size_t)nodes * sizeof *a.node) };
  int32_t *block = malloc((size_t)nodes * sizeof *block);
  out->each = g.each;
  out->blocks = (world - 1) / g.each + 1;
  bool plain = a.node && nodes_now(m, out, world, nodes, a.node);
  for (int64_t b = 0; a.node && b < nodes && !plain; b++) a.node[b] = (int32_t)b;
  for (int64_t b = 0; block && b < nodes; b++) block[b] = (int32_t)b;
  bool whole = a.node && block && add_plan(&g, p, traffic) && link_blocks(&g)
               && part_domain(&a, 0, 0, nodes, block);
  free(block);
  free_graph(&g);
  out->node = a.node;
  if (whole) return MGRID_OK;
  free(a.node);
  out->node = NULL;
  return mgrid_oom(err);
}

void mgrid_assignment_free(mgrid_assignment *a) { free(a->node); }

mgrid_machine_model *mgrid_assigned(const mgrid_machine_model *m, const mgrid_assignment *a,
                                    const int32_t *nodes, int64_t world, mgrid_error *err) {
  mgrid_machine_model *own = mgrid_machine_copy(m, err);
  int32_t *at = own && nodes ? malloc((size_t)world * sizeof *at) : NULL;
  if (!own) return NULL;
  free(own->at);
  own->at = NULL;
  own->nranks = 0;
  for (int64_t r = 0; at && r < world; r++)
    at[r] = (int32_t)(mgrid_tier_start(&m->tier[a->level], nodes[r / a->each]) + r % a->each);
  if (nodes && (!at ? mgrid_oom(err) : mgrid_machine_set_ranks(own, world, at, err))) {
    mgrid_machine_free(own);
    return NULL;
  }
  return own;
}
