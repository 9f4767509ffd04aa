/* SPDX-License-Identifier: MIT
**
** findings.c - moongrid doctor --ras: what NCCL's watchers (RAS, since 2.24) report of a running job; on every machine one
** process listens. NCCL identifies communicators by hashes. Their families follow from their members: processes of this
** machine have their rank in their environment, and the plan gives the rest.
*/
#include "ras/findings.h"
#include "plan/json.h"

#include <ifaddrs.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* --------------------------------------------------------------- ranks of processes */

typedef struct process {
  const char *host;      /* borrowed from the answer */
  int64_t     pid, rank; /* global rank, -1: unknown */
} process;

static const char *const lists[] = { "ranks", "missing_ranks" };

/* The known processes, sorted by host and process id. `looks` bounds the comparison with a plan, because an answer may list
** any number of communicators of any size. */
typedef struct processes {
  const mgrid_plan *plan; /* may be NULL */
  size_t            n;
  process          *at;
  mgrid_budget      looks; /* ranks that are compared */
} processes;

/* Return this machine's addresses, each between newlines. */
static void add_addresses(mgrid_text *t) {
  struct ifaddrs *all = NULL;
  char            text[256];
  mgrid_text_str(t, "\nlocalhost\n");
  if (getifaddrs(&all) != 0) return;
  for (struct ifaddrs *a = all; a; a = a->ifa_next) {
    socklen_t len = a->ifa_addr && a->ifa_addr->sa_family == AF_INET    ? sizeof(struct sockaddr_in)
                    : a->ifa_addr && a->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                        : 0;
    if (len && getnameinfo(a->ifa_addr, len, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0)
      mgrid_text_add(t, "%s\n", text);
  }
  freeifaddrs(all);
}

static bool is_here(const char *addresses, const char *host) {
  char line[300];
  snprintf(line, sizeof line, "\n%s\n", host);
  return strstr(addresses, line) != NULL;
}

/* Read the rank that the launcher put into a process's environment; -1 if there is none below `world`. */
static int64_t rank_of_process(int64_t pid, int64_t world) {
  char    path[64], *line = NULL, *end;
  size_t  room = 0, best = SIZE_MAX;
  int64_t rank = -1;
  snprintf(path, sizeof path, "/proc/%" PRId64 "/environ", pid);
  FILE *file = fopen(path, "re");
  while (file && getdelim(&line, &room, '\0', file) > 0)
    for (size_t i = 0; i < best; i++) {
      const char *known = mgrid_launcher_rank(i), *name = known ? known : "RANK"; /* torchrun's comes last */
      size_t      len = strlen(name);
      if (strncmp(line, name, len) == 0 && line[len] == '=') {
        best = i, rank = strtoll(line + len + 1, &end, 10);
        if (*end || end == line + len + 1 || rank < 0 || rank >= world) rank = -1;
      }
      if (!known) break;
    }
  free(line);
  if (file) fclose(file);
  return rank;
}

static int64_t number(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

static int by_place(const void *a, const void *b) {
  const process *x = a, *y = b;
  if (x->pid != y->pid) return x->pid < y->pid ? -1 : 1;
  return strcmp(x->host, y->host);
}

static process process_of(const json_t *entry) {
  const char *host = json_string_value(json_object_get(entry, "host"));
  return (process){ host ? host : "", number(entry, "pid"), -1 };
}

static process *find(const processes *all, const json_t *entry) {
  const process wanted = process_of(entry);
  return bsearch(&wanted, all->at, all->n, sizeof wanted, by_place);
}

/* List each process of the answer once, with its rank if it is on this machine. */
static mgrid_status learn_processes(processes *all, const json_t *comms, mgrid_error *err) {
  mgrid_text addresses = { 0 };
  size_t     room = 0, n = 0, i, k;
  json_t    *comm, *entry;
  int64_t    world = all->plan ? mgrid_plan_world(all->plan) : MGRID_WORLD_MAX;
  json_array_foreach(comms, i, comm) for (int l = 0; l < 2; l++)
      room += json_array_size(json_object_get(comm, lists[l]));
  all->at = malloc((room + 1) * sizeof *all->at);
  add_addresses(&addresses);
  if (!all->at || addresses.failed) {
    mgrid_text_free(&addresses);
    return mgrid_oom(err);
  }
  json_array_foreach(comms, i, comm) for (int l = 0; l < 2; l++)
      json_array_foreach(json_object_get(comm, lists[l]), k, entry) all->at[n++] = process_of(entry);
  qsort(all->at, n, sizeof *all->at, by_place);
  for (i = 0; i < n; i++) {
    if (all->n > 0 && by_place(&all->at[all->n - 1], &all->at[i]) == 0) continue;
    process *p = &all->at[all->n++];
    *p = all->at[i];
    if (is_here(addresses.data, p->host)) p->rank = rank_of_process(p->pid, world);
  }
  mgrid_text_free(&addresses);
  return MGRID_OK;
}

/* ---------------------------------------------------------------------- who is it */

static bool may_look(processes *all) { return mgrid_spend(&all->looks, 1); }

/* Return whether group `group` of the family can be this communicator, by the members that are known. */
static bool fits(const json_t *comm, processes *all, const mgrid_family *f, int64_t group) {
  if (mgrid_family_size(f, group) != number(comm, "size")) return false;
  for (int k = 0; k < 2; k++) {
    size_t  i;
    json_t *entry;
    json_array_foreach(json_object_get(comm, lists[k]), i, entry) {
      const process *p = find(all, entry);
      if (!may_look(all)) return false;
      if (p->rank >= 0 && mgrid_family_rank(f, group, number(entry, "rank")) != p->rank) return false;
    }
  }
  return true;
}

/* Find the groups that a communicator may be: "dp[1]"; several names have the same members, those after " or " others. If
** the members are certain, set the ranks of their processes. Returns whether any was set. */
static bool identify(const json_t *comm, processes *all, mgrid_text *names) {
  const json_t       *known = NULL;
  const mgrid_family *first = NULL;
  int64_t             first_group = -1, group, position;
  bool                sure = true, learned = false;
  size_t              i;
  json_t             *entry;
  for (int k = 0; k < 2; k++) json_array_foreach(json_object_get(comm, lists[k]), i, entry) {
      if (may_look(all) && find(all, entry)->rank >= 0) known = entry;
    }
  for (size_t k = 0; known && k < mgrid_plan_nfamilies(all->plan); k++) {
    const mgrid_family *f = mgrid_plan_family(all->plan, mgrid_plan_family_name(all->plan, k));
    int64_t             rank = find(all, known)->rank;
    for (int64_t nth = 0; may_look(all) && mgrid_family_locate(f, rank, nth, &group, &position); nth++) {
      if (position != number(known, "rank") || !fits(comm, all, f, group)) continue;
      bool same = first != NULL;
      for (int64_t p = 0; same && may_look(all) && p < mgrid_family_size(f, group); p++)
        same = mgrid_family_rank(f, group, p) == mgrid_family_rank(first, first_group, p);
      if (first) sure = sure && same;
      mgrid_text_add(names, "%s%s[%" PRId64 "]",
                     !first ? ""
                     : same ? ", "
                            : " or ",
                     mgrid_plan_family_name(all->plan, k), group);
      if (!first) first = f, first_group = group;
    }
  }
  for (int k = 0; k < 2 && first && sure; k++) json_array_foreach(json_object_get(comm, lists[k]), i, entry) {
      process *p = find(all, entry);
      if (p->rank >= 0) continue;
      p->rank = mgrid_family_rank(first, first_group, number(entry, "rank"));
      learned |= p->rank >= 0;
    }
  return learned;
}

/* ------------------------------------------------------------------------ who waits */

static void add_member(mgrid_text *t, processes *all, const json_t *entry, bool whole) {
  const process *p = find(all, entry);
  if (p->rank >= 0)
    mgrid_text_add(t, "rank %" PRId64, p->rank);
  else
    mgrid_text_add(t, "member %" PRId64, number(entry, "rank"));
  if (whole) mgrid_text_add(t, " (pid %" PRId64 " on %s)", p->pid, p->host);
}

enum { SHOWN = 16 }; /* members of a communicator that are listed; the rest are counted */

static void add_finding(mgrid_text *t) { mgrid_text_add(t, "%s", t->len ? "; " : ""); }

/* Describe the ranks that have made fewer calls of a kind than others: the others wait for them. */
static void tell_behind(mgrid_text *t, processes *all, const json_t *ranks) {
  const char *kind;
  json_t     *count, *entry;
  size_t      i;
  json_object_foreach(json_object_get(json_array_get(ranks, 0), "collective_counts"), kind, count) {
    int64_t most = 0, behind = 0;
    json_array_foreach(ranks, i, entry) {
      int64_t n = number(json_object_get(entry, "collective_counts"), kind);
      most = n > most ? n : most;
    }
    json_array_foreach(ranks, i, entry) {
      int64_t n = number(json_object_get(entry, "collective_counts"), kind);
      if (n == most) continue;
      if (behind++ == 0) add_finding(t), mgrid_text_add(t, "the others wait for ");
      if (behind > SHOWN) continue;
      if (behind > 1) mgrid_text_add(t, ", ");
      add_member(t, all, entry, true);
      mgrid_text_add(t, ", whose %s is %" PRId64 " of %" PRId64, kind, n, most);
    }
    if (behind > SHOWN) mgrid_text_add(t, ", and for %" PRId64 " more", behind - SHOWN);
  }
}

static void tell_states(mgrid_text *t, processes *all, const json_t *comm) {
  size_t  i;
  json_t *entry;
  int64_t n = 0;
  json_array_foreach(json_object_get(comm, "ranks"), i, entry) {
    const json_t *status = json_object_get(entry, "status");
    int64_t       init = number(status, "init_state"), error = number(status, "async_error");
    enum { IN_PROGRESS = 7 };
    if ((!init && (!error || error == IN_PROGRESS)) || ++n > SHOWN) continue;
    add_finding(t);
    add_member(t, all, entry, true);
    if (init == IN_PROGRESS)
      mgrid_text_add(t, " is in its creation");
    else
      mgrid_text_add(t, " has error %" PRId64, init ? init : error);
  }
  json_array_foreach(json_object_get(comm, "missing_ranks"), i, entry) {
    const json_t *status = json_object_get(entry, "status");
    if (++n > SHOWN) continue;
    add_finding(t);
    add_member(t, all, entry, true);
    mgrid_text_add(t, json_is_true(json_object_get(status, "considered_dead")) ? " is dead"
                      : json_is_true(json_object_get(status, "unresponsive"))  ? " does not answer"
                                                                               : " has no such communicator");
  }
  if (n > SHOWN) mgrid_text_add(t, "; and %" PRId64 " more", n - SHOWN);
}

mgrid_status ras_findings(const json_t *answer, const mgrid_plan *plan, json_t **list, mgrid_error *err) {
  enum { LOOKS = 1 << 27 };
  const json_t *comms = json_object_get(answer, "communicators");
  processes     all = { .plan = plan, .looks = mgrid_budget_new(LOOKS, 0) };
  size_t        i;
  json_t       *comm;
  *list = NULL;
  mgrid_status s = learn_processes(&all, comms, err);
  for (bool learned = !s && plan; learned;) {
    learned = false;
    json_array_foreach(comms, i, comm) {
      mgrid_text nothing = { 0 };
      learned |= identify(comm, &all, &nothing);
      mgrid_text_free(&nothing);
    }
  }
  if (!s) *list = json_array();
  if (!s) json_array_foreach(comms, i, comm) {
      mgrid_text names = { 0 }, waits = { 0 };
      if (plan) identify(comm, &all, &names);
      tell_behind(&waits, &all, json_object_get(comm, "ranks"));
      tell_states(&waits, &all, comm);
      const char *hash = json_string_value(json_object_get(comm, "hash"));
      json_array_append_new(*list, mgrid_json_pack("{ss ss sI ss}", "hash", hash ? hash : "", "groups",
                                                   mgrid_text_chars(&names), "size", (json_int_t)number(comm, "size"),
                                                   "finding", mgrid_text_chars(&waits)));
      mgrid_text_free(&names);
      mgrid_text_free(&waits);
    }
  free(all.at);
  if (!s && all.looks.exhausted) {
    s = mgrid_fail(err, MGRID_LIMIT,
                   "the RAS of NCCL names so many communicators that comparing them with the plan takes too long; ask "
                   "without a recipe");
    json_decref(*list);
    *list = NULL;
  }
  return s;
}
