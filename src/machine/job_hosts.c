/* SPDX-License-Identifier: MIT
**
** job_hosts.c - the machine that a plan is made for, compared with the hosts on which the ranks of a job run.
*/
#include "machine/item.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct seat { /* of a rank */
  uint64_t host;
  int64_t  node, rank;
} seat;

static int by_host(const void *a, const void *b) {
  const seat *x = a, *y = b;
  if (x->host != y->host) return x->host < y->host ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_node(const void *a, const void *b) {
  const seat *x = a, *y = b;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Count the ranks that are not where the first rank of their run is, and find the lowest of them, *second, and its *first. */
static int64_t strays(const seat *s, int64_t n, bool hosts, const seat **first, const seat **second) {
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

static const char advice[] = "; `moongrid machine --json` under the launcher writes the machine that a job has";

/* Refuse ranks of one node that run on two hosts, and ranks of two nodes that run on one. */
static mgrid_status compare_groups(const mgrid_machine_model *m, size_t level, seat *s, int64_t n, mgrid_error *err) {
  const seat  *first = NULL, *second;
  mgrid_text   t = { 0 };
  mgrid_status status = MGRID_OK;
  for (int hosts = 0; hosts < 2 && !status; hosts++) {
    qsort(s, (size_t)n, sizeof *s, hosts ? by_host : by_node);
    int64_t found = strays(s, n, hosts, &first, &second);
    if (!found) continue;
    mgrid_text_add(&t, "the ranks do not run where the machine says: ranks %" PRId64 " and %" PRId64, first->rank,
                   second->rank);
    mgrid_text_str(&t, hosts ? " run on one host, and are in " : " are in ");
    mgrid_domain_text(m, level, first->node, &t);
    if (hosts) mgrid_text_str(&t, " and "), mgrid_domain_text(m, level, second->node, &t);
    mgrid_text_add(&t, "%s; %" PRId64 " rank%s so", hosts ? "" : ", and run on two hosts", found,
                   found == 1 ? " is" : "s are");
    status = mgrid_fail(err, t.failed ? MGRID_NO_MEMORY : MGRID_REFUSED, "%s%s", mgrid_text_chars(&t), advice);
  }
  mgrid_text_free(&t);
  return status;
}

/* Equal up to the domain that one of them may have: "n0" and "n0.cluster.org". An address has none. */
static bool same_name(const char *a, const char *b) {
  size_t n = strcspn(a, "."), k = strcspn(b, ".");
  if (a[strspn(a, "0123456789.:")] == '\0' || (a[n] && b[k])) return strcmp(a, b) == 0;
  return n == k && strncmp(a, b, n) == 0;
}

/* Refuse a host that the machine has elsewhere. One that it does not name at all may have another name there, as pods of
** Kubernetes have. */
static mgrid_status compare_name(const mgrid_machine_model *m, size_t level, int64_t rank, const char *name,
                                 mgrid_error *err) {
  const mgrid_tier *t = &m->tier[level];
  int64_t           mine = mgrid_tier_domain(t, mgrid_machine_at(m, rank));
  if (!t->names || (t->names[mine] && same_name(t->names[mine], name))) return MGRID_OK;
  for (int64_t d = 0; d < t->domains; d++) {
    if (!t->names[d] || !same_name(t->names[d], name)) continue;
    mgrid_text at = { 0 };
    mgrid_domain_text(m, level, mine, &at);
    mgrid_fail(err, MGRID_REFUSED,
               "the ranks do not run where the machine says: rank %" PRId64 " runs on %.64s, and is in %s%s", rank,
               name, mgrid_text_chars(&at), advice);
    mgrid_text_free(&at);
    return MGRID_REFUSED;
  }
  return MGRID_OK;
}

mgrid_status mgrid_machine_meets(const mgrid_machine_model *m, const uint64_t *host, int64_t world, int64_t rank,
                                 const char *name, mgrid_error *err) {
  size_t level = mgrid_node_level(m);
  bool   one = true;
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
