/* SPDX-License-Identifier: MIT
**
** machine_item.c - the machine as an item (plan/item.h) of topologies and plans, or lent to a
** runtime by a host. Here it is written as JSON, compared with the nodes of a job, and read back
** from a saved plan. The Makefile finds mgrid_item_reader_machine by the name of this file.
*/
#include "comm/recipe.h"
#include "machine/machine_item.h"
#include "machine/model.h"
#include "machine/traffic.h"
#include "plan/json.h"
#include "plan/plan.h"
#include "plan/topology.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ====================================================================== JSON */

/* The format of the JSON, which lua/machine/machine_json.lua reads back:
**   {"levels": [{"name": "node", "counts": [2, 3], "bandwidth": 4e11, "latency": 3e-06,
**                "domains": ["n0", ...]}, ...],
**    "crossings": [{"name": "rail", "of": "gpu", "share": 1, "in": "rack", ...}],
**    "ranks": [8, 9, ...], "notes": ["..."]} */

static void put_link(mgrid_json *w, mgrid_link link) {
  if (link.bandwidth > 0) mgrid_json_field(w, "bandwidth", json_real(link.bandwidth));
  if (link.latency > 0) mgrid_json_field(w, "latency", json_real(link.latency));
}

static void put_tier(mgrid_json *w, const mgrid_tier *t) {
  mgrid_json_open(w, "{");
  mgrid_json_field(w, "name", json_string(t->name));
  mgrid_json_integers(w, "counts", (size_t)t->ncounts, t->counts);
  put_link(w, t->link);
  if (t->names) {
    mgrid_json_in(w, " ", "domains", "[");
    for (int64_t d = 0; d < t->domains && !w->failed; d++) {
      mgrid_json_element(w, d % 8 ? " " : "\n      ",
                         t->names[d] ? json_string(t->names[d]) : json_null());
    }
    mgrid_json_close(w, "]");
  }
  mgrid_json_close(w, "}");
}

static void put_crossing(mgrid_json *w, const mgrid_machine_model *m, const mgrid_crossing *x) {
  mgrid_json_open(w, "{");
  mgrid_json_field(w, "name", json_string(x->name));
  mgrid_json_field(w, "of", json_string(m->tier[x->of].name));
  mgrid_json_integer(w, "share", x->share);
  if (x->in >= 0) mgrid_json_field(w, "in", json_string(m->tier[x->in].name));
  put_link(w, x->link);
  mgrid_json_close(w, "}");
}

static void machine_item_put_ranks(mgrid_json *w, const mgrid_machine_model *m) {
  mgrid_json_in(w, "\n  ", "ranks", "[");
  for (int64_t r = 0; r < m->nranks; r++) {
    mgrid_json_item(w, r % 32 ? "" : "\n    ");
    mgrid_text_int(&w->text, m->at[r]);
    if (r % 1024 == 0) mgrid_json_flush(w);
  }
  mgrid_json_close(w, "]");
}

static void put_notes(mgrid_json *w, const char *notes) {
  mgrid_json_in(w, "\n  ", "notes", "[");
  for (const char *end; (end = strchr(notes, '\n')); notes = end + 1)
    mgrid_json_element(w, "\n    ", json_stringn(notes, (size_t)(end - notes)));
  mgrid_json_close(w, "]");
}

mgrid_status mgrid_machine_print_json(const mgrid_machine_model *m, mgrid_sink sink, void *ud,
                                      mgrid_error *err) {
  mgrid_json w = { .sink = sink, .ud = ud, .first = true };
  if (!m || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  mgrid_json_open(&w, "{");
  mgrid_json_in(&w, "\n  ", "levels", "[");
  for (size_t i = 0; i < m->ntiers; i++) {
    mgrid_json_item(&w, "\n    ");
    put_tier(&w, &m->tier[i]);
  }
  mgrid_json_close(&w, "]");
  if (m->ncrossings) {
    mgrid_json_in(&w, "\n  ", "crossings", "[");
    for (size_t i = 0; i < m->ncrossings; i++) {
      mgrid_json_item(&w, "\n    ");
      put_crossing(&w, m, &m->crossing[i]);
    }
    mgrid_json_close(&w, "]");
  }
  if (m->at) machine_item_put_ranks(&w, m);
  if (m->notes) put_notes(&w, m->notes);
  return mgrid_json_end(&w, err);
}

/* ======================================================== the nodes of a job */

/* Compare the machine of a plan with the nodes on which the ranks of a job run. */

/* where a rank runs, in the job and in the machine */
typedef struct seat {
  uint64_t host; /* identifies the node of the job */
  int64_t node;  /* of the machine */
  int64_t rank;
} seat;

static int machine_item_by_host(const void *a, const void *b) {
  const seat *x = a, *y = b;
  if (x->host != y->host) return x->host < y->host ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_node(const void *a, const void *b) {
  const seat *x = a, *y = b;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The seats are sorted by the nodes of the job if `hosts` is true, otherwise by the nodes of the
** machine. A run is all seats of one such node. Count the ranks that are on another node of the
** machine (of the job if not `hosts`) than the first rank of their run. Set *second to the lowest
** of these ranks, and *first to the first rank of its run. */
static int64_t strays(const seat *s, int64_t n, bool hosts, const seat **first,
                      const seat **second) {
  int64_t found = 0, start = 0;
  *second = NULL;
  for (int64_t i = 1; i < n; i++) {
    if (hosts ? s[i].host != s[start].host : s[i].node != s[start].node) start = i;
    if (hosts ? s[i].node == s[start].node : s[i].host == s[start].host) continue;
    found++;
    if (!*second || s[i].rank < (*second)->rank) *first = &s[start], *second = &s[i];
  }
  return found;
}

static const char advice[] =
    "; `moongrid machine --json` under the launcher writes the machine that a job has";

/* Refuse if two ranks are on one node of the machine and run on two nodes of the job, or the other
** way round. */
static mgrid_status compare_groups(const mgrid_machine_model *m, size_t level, seat *s, int64_t n,
                                   mgrid_error *err) {
  const seat *first = NULL, *second;
  mgrid_text t = { 0 };
  mgrid_status status = MGRID_OK;
  for (int hosts = 0; hosts < 2 && !status; hosts++) {
    qsort(s, (size_t)n, sizeof *s, hosts ? machine_item_by_host : by_node);
    int64_t found = strays(s, n, hosts, &first, &second);
    if (!found) continue;
    mgrid_text_add(&t,
                   "the ranks do not run where the machine says: ranks %" PRId64 " and %" PRId64,
                   first->rank, second->rank);
    mgrid_text_str(&t, hosts ? " run on one host, and are in " : " are in ");
    mgrid_domain_text(m, level, first->node, &t);
    if (hosts) mgrid_text_str(&t, " and "), mgrid_domain_text(m, level, second->node, &t);
    mgrid_text_add(&t, "%s; %" PRId64 " rank%s so", hosts ? "" : ", and run on two hosts", found,
                   found == 1 ? " is" : "s are");
    status = mgrid_fail(err, t.failed ? MGRID_NO_MEMORY : MGRID_REFUSED, "%s%s",
                        mgrid_text_chars(&t), advice);
  }
  mgrid_text_free(&t);
  return status;
}

/* Return whether two names of nodes are equal, or equal without the DNS domain that one of them
** has: "n0" and "n0.cluster.org". Addresses have no DNS domain. */
static bool same_name(const char *a, const char *b) {
  size_t n = strcspn(a, "."), k = strcspn(b, ".");
  if (a[strspn(a, "0123456789.:")] == '\0' || (a[n] && b[k])) return strcmp(a, b) == 0;
  return n == k && strncmp(a, b, n) == 0;
}

/* Refuse if the machine gives the name of this rank's node to another node. Accept a name that the
** machine does not have, because a node may have another name in the machine than it has itself, as
** pods of Kubernetes do. */
static mgrid_status compare_name(const mgrid_machine_model *m, size_t level, int64_t rank,
                                 const char *name, mgrid_error *err) {
  const mgrid_tier *t = &m->tier[level];
  int64_t mine = mgrid_tier_domain(t, mgrid_machine_at(m, rank));
  if (!t->names || (t->names[mine] && same_name(t->names[mine], name))) return MGRID_OK;
  for (int64_t d = 0; d < t->domains; d++) {
    if (!t->names[d] || !same_name(t->names[d], name)) continue;
    mgrid_text at = { 0 };
    mgrid_domain_text(m, level, mine, &at);
    mgrid_fail(err, MGRID_REFUSED,
               "the ranks do not run where the machine says: rank %" PRId64
               " runs on %.64s, and is in %s%s",
               rank, name, mgrid_text_chars(&at), advice);
    mgrid_text_free(&at);
    return MGRID_REFUSED;
  }
  return MGRID_OK;
}

mgrid_status mgrid_machine_check_hosts(const mgrid_machine_model *m, const uint64_t *host,
                                       int64_t world, int64_t rank, const char *name,
                                       mgrid_error *err) {
  size_t level = mgrid_node_level(m);
  bool one = true;
  for (int64_t r = 1; r < world; r++) one &= host[r] == host[0];
  if (one || (level + 1 == m->ntiers && strcmp(m->tier[level].name, "node") != 0)) return MGRID_OK;
  mgrid_status s = mgrid_machine_fits(m, world, err);
  if (s) return s;
  seat *all = malloc((size_t)world * sizeof *all);
  if (!all) return mgrid_oom(err);
  for (int64_t r = 0; r < world; r++)
    all[r] = (seat){ host[r], mgrid_tier_domain(&m->tier[level], mgrid_machine_at(m, r)), r };
  s = compare_groups(m, level, all, world, err);
  free(all);
  return s ? s : compare_name(m, level, rank, name, err);
}

/* ================================================================== the item */

mgrid_machine_item *mgrid_machine_item_new(const mgrid_machine_model *m, int64_t world,
                                           mgrid_error *err) {
  mgrid_machine_item *x = calloc(1, sizeof *x);
  if (!x) return mgrid_null_oom(err);
  atomic_init(&x->refs, 1);
  x->model = mgrid_machine_ref(m);
  x->world = world;
  return x;
}

static int64_t machine_item_world_of(const void *x) {
  return ((const mgrid_machine_item *)x)->world;
}

static void *machine_item_ref(const void *x) {
  mgrid_machine_item *own = (mgrid_machine_item *)(uintptr_t)x;
  atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
  return own;
}

static void free_machine_item(void *x) {
  mgrid_machine_item *own = x;
  if (atomic_fetch_sub_explicit(&own->refs, 1, memory_order_acq_rel) > 1) return;
  mgrid_machine_free(own->model);
  mgrid_text_free(&own->laws);
  free(own);
}

static size_t machine_item_held(const void *x) {
  return mgrid_machine_held(((const mgrid_machine_item *)x)->model);
}

static bool unread(const void *x) { return ((const mgrid_machine_item *)x)->unread; }

static void text_of_item(const void *x, mgrid_text *t) {
  mgrid_machine_text(((const mgrid_machine_item *)x)->model, t);
}

/* Write the domains of a rank; if rank is below 0, write the machine and the laws that held. */
static void machine_item_json(const void *x, int64_t rank, mgrid_json *w) {
  const mgrid_machine_item *item = x;
  const mgrid_machine_model *m = item->model;
  mgrid_text t = { 0 };
  mgrid_json_open(w, "{");
  for (size_t i = 0; i < m->ntiers + m->ncrossings && rank >= 0; i++)
    mgrid_json_integer(w, mgrid_level_name(m, i),
                       mgrid_place_domain(m, i, mgrid_machine_at(m, rank)));
  if (rank < 0) {
    mgrid_machine_text(m, &t);
    mgrid_json_field(w, "text", t.failed ? NULL : json_string(mgrid_text_chars(&t)));
    mgrid_json_in(w, " ", "laws", "[");
    for (const char *at = mgrid_text_chars(&item->laws), *end; (end = strchr(at, '\n'));
         at = end + 1) {
      mgrid_json_element(w, w->first ? "" : " ", json_stringn(at, (size_t)(end - at)));
    }
    mgrid_json_close(w, "]");
  }
  mgrid_json_close(w, "}");
  mgrid_text_free(&t);
}

static mgrid_status meets(const void *x, const uint64_t *host, int64_t world, int64_t rank,
                          const char *name, mgrid_error *err) {
  return mgrid_machine_check_hosts(((const mgrid_machine_item *)x)->model, host, world, rank, name,
                                   err);
}

const mgrid_item_kind mgrid_machine_kind = {
  .name = "machine",
  .names = "machines",
  .world = machine_item_world_of,
  .ref = machine_item_ref,
  .free = free_machine_item,
  .held = machine_item_held,
  .unread = unread,
  .text = text_of_item,
  .json = machine_item_json,
  .meets = meets,
};

const mgrid_machine_item *mgrid_content_machine(const mgrid_content *c) {
  const mgrid_item *item = mgrid_content_nth(c, &mgrid_machine_kind, 0);
  return item ? item->x : NULL;
}

const mgrid_machine_model *mgrid_plan_machine(const mgrid_plan *p) {
  const mgrid_machine_item *item = p ? mgrid_content_machine(&p->content) : NULL;
  return item ? item->model : NULL;
}

mgrid_status mgrid_runtime_machine(mgrid_runtime *rt, const mgrid_machine_model *m,
                                   mgrid_error *err) {
  if (!rt) return MGRID_USAGE;
  mgrid_machine_item *item = m ? mgrid_machine_item_new(m, 0, err) : NULL;
  if (m && !item) return MGRID_NO_MEMORY;
  mgrid_status s = mgrid_runtime_lend(rt, &mgrid_machine_kind, item, err);
  if (item) free_machine_item(item);
  return s;
}

/* ================================================================ the reader */

/* Read the machine and the traffic of a saved plan, where they are texts as a user writes them. */

static void read_machine(const char *text, mgrid_topology *t, mgrid_fields *all) {
  const int64_t world = t->content.world;
  mgrid_machine_model *m = mgrid_machine_words(text, "machine", all->budget, all->err);
  mgrid_machine_item *x = NULL;
  if (m && !mgrid_machine_fits(m, world, all->err)) x = mgrid_machine_item_new(m, world, all->err);
  if (x) mgrid_topology_put_item(t, MGRID_MACHINE_NAME, &mgrid_machine_kind, x, all->err);
  if (x) mgrid_machine_kind.free(x);
  mgrid_machine_free(m);
}

static void read_traffic(const char *text, mgrid_topology *t, mgrid_error *err) {
  mgrid_traffic *x = mgrid_traffic_new(t->content.world, err);
  if (x && !mgrid_traffic_parse(x, text, err))
    mgrid_topology_put_item(t, MGRID_TRAFFIC_NAME, &mgrid_traffic_kind, x, err);
  mgrid_traffic_free(x);
}

static void read_item(const mgrid_field *s, const char *name, mgrid_topology *t) {
  const mgrid_field word = mgrid_field_of(s, "machine"), field = mgrid_field_of(s, "text");
  const char *text = mgrid_field_text(&field);
  if (s->all->failed) return;
  if (strcmp(name, MGRID_MACHINE_NAME) == 0)
    read_machine(text, t, s->all);
  else if (strcmp(name, MGRID_TRAFFIC_NAME) == 0)
    read_traffic(text, t, s->all->err);
  else
    mgrid_field_fault(&word, "'machine' or 'traffic'");
  if (s->all->err->status || s->all->budget->exhausted) mgrid_field_fail(&field);
}

extern const mgrid_item_reader mgrid_item_reader_machine;
const mgrid_item_reader mgrid_item_reader_machine = { "machine", "machine text", read_item };
