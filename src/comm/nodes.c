/* SPDX-License-Identifier: MIT
**
** nodes.c - this rank's node, and how the ranks are spread over nodes. No extra collective finds
** that out: the first rendezvous of a backend also shows whether there is one node or several, and
** if there are several, the verdict on the first creation carries the node of every rank. A plan
** may say on which nodes ranks run; on several nodes two more collectives compare that with the
** job.
*/
#include "comm/state.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mgrid_location { /* the node of a rank */
  uint64_t node, rank;
};

static int by_node_and_rank(const void *a, const void *b) {
  const mgrid_location *x = a, *y = b;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return x->rank < y->rank ? -1 : 1;
}

/* Let n be the number of consecutive ranks, from rank 0 on, that run on the node of rank 0. If each
** n consecutive ranks (0 to n - 1, n to 2n - 1, ...) run on one node, return n. Else, and if n is 1
** or too large, return 0. */
static int64_t block_of(const mgrid_location *at, int64_t world) {
  int64_t n = 1;
  while (n < world && at[n].node == at[0].node) n++;
  for (int64_t i = n; i < world; i++)
    if (at[i].node != at[i - i % n].node) return 0;
  return n == 1 || n > MGRID_MACHINE_RANKS_MAX ? 0 : n;
}

/* Fill in *p from the nodes of all ranks. The sort puts the ranks of a node together, the lowest
** first. */
static void find_spread(mgrid_rank_spread *p, mgrid_location *at, uint64_t mine, int64_t world,
                        int64_t rank) {
  uint64_t lowest = 0;
  p->block = block_of(at, world);
  qsort(at, (size_t)world, sizeof *at, by_node_and_rank);
  p->nodes = p->index = p->local_size = p->local_rank = 0;
  for (int64_t i = 0; i < world; i++) {
    bool first = i == 0 || at[i].node != at[i - 1].node;
    p->nodes += first;
    if (at[i].node != mine) continue;
    if (first) lowest = at[i].rank;
    p->local_size++;
    p->local_rank += at[i].rank < (uint64_t)rank;
  }
  /* again: there are more blocks than nodes, so some node has several blocks */
  bool again = p->block && p->nodes < (world + p->block - 1) / p->block;
  if (again || p->nodes == 1) p->block = 0;
  for (int64_t i = 0; i < world; i++)
    p->index += (i == 0 || at[i].node != at[i - 1].node) && at[i].rank < lowest;
}

mgrid_status mgrid_locations_new(const mgrid_backend *b, mgrid_location **locations,
                                 mgrid_error *err) {
  *locations = NULL;
  if (b->spread.nodes) return MGRID_OK;
  *locations = malloc((size_t)(b->world + 1) * sizeof **locations);
  return *locations ? MGRID_OK : mgrid_oom(err);
}

/* Exchange the nodes by the all-reduce of the verdict, which takes minimums: each rank brings its
** own node, and the highest number for all other ranks. */
mgrid_status mgrid_locations_verdict(mgrid_backend *b, mgrid_location *locations,
                                     mgrid_outcome mine, const mgrid_error *failed,
                                     mgrid_error *err) {
  if (b->spread.nodes) return mgrid_verdict(b, mine, failed, err);
  /* the words of the all-reduce take the first half of this memory */
  uint64_t *words = (uint64_t *)locations, own = mgrid_machine_id();
  memset(words, 0xff, (size_t)b->world * sizeof *words);
  words[b->rank] = own;
  words[b->world] = mgrid_verdict_of(b, mine);
  mgrid_status s = mgrid_verdict_min(b, words, (size_t)b->world + 1, mine, failed, err);
  if (s) return s;
  uint64_t who = words[b->world];
  words[b->rank] = own; /* even if the carrier changed it */
  for (int64_t r = b->world - 1; r >= 0; r--)
    locations[r] = (mgrid_location){ words[r], (uint64_t)r };
  find_spread(&b->spread, locations, own, b->world, b->rank);
  return mgrid_verdict_tell(b, who, mine, failed, err);
}

/* ------------------------------------------------ what a plan says about nodes */

/* Return the next item of the plan that says something about nodes: the first from item *i on. Set
** *i to its index. NULL: there is none. */
static const mgrid_item *next_meeting(const mgrid_plan *p, size_t *i) {
  for (; *i < p->content.nitems; ++*i) {
    const mgrid_item *item = &p->content.item[*i];
    if (item->kind->meets && !mgrid_item_unread(item)) return item;
  }
  return NULL;
}

mgrid_status mgrid_nodes_new(const mgrid_plan *p, uint64_t **nodes, mgrid_error *err) {
  size_t i = 0;
  *nodes = NULL;
  if (!next_meeting(p, &i)) return MGRID_OK;
  *nodes = malloc((size_t)mgrid_plan_world(p) * sizeof **nodes);
  return *nodes ? MGRID_OK : mgrid_oom(err);
}

mgrid_status mgrid_nodes_find(mgrid_backend *b, uint64_t *nodes, mgrid_error *err) {
  memset(nodes, 0xff, (size_t)b->world * sizeof *nodes);
  nodes[b->rank] = mgrid_machine_id();
  return mgrid_verdict_min(b, nodes, (size_t)b->world, MGRID_OK, NULL, err);
}

mgrid_status mgrid_nodes_check(mgrid_backend *b, const mgrid_plan *p, uint64_t *nodes,
                               mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  char name[sizeof((mgrid_machine *)0)->name] = "";
  size_t i = 0;
  /* nothing to compare, or the rendezvous has found that there is one node */
  if (!nodes || b->spread.nodes == 1) return MGRID_OK;
  mgrid_status s = mgrid_nodes_find(b, nodes, err);
  if (s) return s;
  gethostname(name, sizeof name - 1);
  for (const mgrid_item *item; !s && (item = next_meeting(p, &i)); i++)
    s = item->kind->meets(item->x, nodes, b->world, b->rank, name, &mine);
  return mgrid_verdict(b, s, &mine, err);
}

int64_t mgrid_states_machine(const mgrid_state *from, const mgrid_state *to) {
  const mgrid_backend *b = from->backend;
  return b->world == to->backend->world ? b->spread.block : 0;
}

mgrid_status mgrid_state_machine(const mgrid_state *s, mgrid_machine *out, mgrid_error *err) {
  if (!s) return MGRID_USAGE;
  mgrid_machine m = MGRID_MACHINE_INIT;
  mgrid_status status = mgrid_struct_check(out, sizeof m, "mgrid_machine", err);
  if (status) return status;
  const mgrid_rank_spread *p = &s->backend->spread;
  m.machines = p->nodes, m.index = p->index;
  m.local_size = p->local_size, m.local_rank = p->local_rank;
  m.gpus = p->gpus, m.gpu = p->gpus ? p->gpu : -1;
  m.cores = mgrid_cores(&m.usable_cores);
  m.memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  gethostname(m.name, sizeof m.name - 1);
  mgrid_struct_write(out, &m, sizeof m);
  return MGRID_OK;
}
