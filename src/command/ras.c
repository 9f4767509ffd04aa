/* SPDX-License-Identifier: MIT
**
** ras.c - moongrid doctor --ras: what NCCL's own watchers (RAS, since 2.24) know of a job that runs: one of its
** processes listens on every machine. NCCL tells communicators by hashes; which families they are follows from their
** members: processes of this machine say their rank in their environment, and the plan says the rest.
*/
#include "command/ras.h"

#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PATIENCE = 15, ANSWER_MOST = 256 << 20 };

/* -------------------------------------------------------------------- the socket */

static int dial(const char *address, char *err, size_t room) {
  char            host[256];
  const char     *colon = strrchr(address, ':');
  struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all = NULL;
  struct timeval  limit = { PATIENCE, 0 };
  int             fd = -1;
  snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - address) : (int)strlen(address), address);
  int failed = getaddrinfo(host, colon ? colon + 1 : "28028", &hints, &all);
  snprintf(err, room, "%s", failed ? gai_strerror(failed) : "no address");
  for (struct addrinfo *a = failed ? NULL : all; a && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) break;
    snprintf(err, room, "%s", strerror(errno));
    close(fd);
    fd = -1;
  }
  if (all) freeaddrinfo(all);
  return fd;
}

static bool tell(int fd, const char *line) {
  size_t len = strlen(line);
  return send(fd, line, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* One line of the answer, or with `whole` all of it until the other side closes. malloc'ed; NULL: none. */
static char *hear(int fd, bool whole) {
  size_t len = 0, room = 4096;
  char  *text = malloc(room);
  while (text && len < ANSWER_MOST) {
    if (len + 1 == room) {
      char *more = realloc(text, room *= 2);
      if (!more) break;
      text = more;
    }
    ssize_t n = recv(fd, text + len, whole ? room - len - 1 : 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) len = 0; /* too late: half an answer is none */
    if (n <= 0) break;
    len += (size_t)n;
    if (!whole && text[len - 1] == '\n') break;
  }
  if (text) text[len] = '\0';
  if (text && len > 0) return text;
  free(text);
  return NULL;
}

static bool answers(int fd, const char *line, const char *with) {
  char *got = tell(fd, line) ? hear(fd, false) : NULL;
  bool  yes = got && strncasecmp(got, with, strlen(with)) == 0;
  free(got);
  return yes;
}

/* NCCL 2.28.7 to 2.28.9 leave out the comma after a rank that is missing: put one where a value ends a line and a name
** begins the next. */
static char *mended(const char *text) {
  char *out = malloc(2 * strlen(text) + 1), *at = out;
  for (const char *p = text; out && *p; p++) {
    const char *next = *p == '\n' ? p + 1 + strspn(p + 1, " ") : p;
    if (*p == '\n' && *next == '"' && p > text && !strchr(",{[\n", p[-1])) *at++ = ',';
    *at++ = *p;
  }
  if (out) *at = '\0';
  return out;
}

mgrid_status ras_ask(const char *address, json_t **answer, char **text, mgrid_error *err) {
  char why[128];
  int  fd = dial(address, why, sizeof why);
  *answer = NULL, *text = NULL;
  if (fd < 0)
    return mgrid_fail(err, MGRID_MISSING,
                      "no RAS of NCCL at %s (%s); a job of NCCL 2.24 or later on this machine has one, unless its "
                      "NCCL_RAS_ENABLE is 0; NCCL_RAS_ADDR says where",
                      address, why);
  bool  greets = answers(fd, "CLIENT PROTOCOL 2\n", "SERVER PROTOCOL ");
  bool  json = greets && answers(fd, "SET FORMAT json\n", "OK");
  char *got = greets && tell(fd, json ? "STATUS\n" : "VERBOSE STATUS\n") ? hear(fd, true) : NULL;
  close(fd);
  if (!got)
    return mgrid_fail(err, MGRID_TIMED_OUT, "%s is no RAS of NCCL, or does not answer within %d seconds", address,
                      PATIENCE);
  if (!json) { /* before 2.28.7 */
    *text = got;
    return MGRID_OK;
  }
  json_error_t where;
  char        *whole = mended(got);
  *answer = whole ? json_loads(whole, 0, &where) : NULL;
  free(whole);
  free(got);
  if (*answer) return MGRID_OK;
  return mgrid_fail(err, MGRID_BACKEND, "the RAS of NCCL at %s gave JSON that cannot be read: line %d: %s", address,
                    where.line, where.text);
}

/* --------------------------------------------------------------- ranks of processes */

typedef struct process {
  const char *host;      /* borrowed from the answer */
  int64_t     pid, rank; /* of the world, -1: not known */
} process;

typedef struct processes {
  size_t   n, room;
  process *at;
} processes;

static bool is_here(const char *host) {
  struct ifaddrs *all = NULL;
  char            text[256];
  bool            here = strcmp(host, "localhost") == 0;
  if (getifaddrs(&all) != 0) return here;
  for (struct ifaddrs *a = all; a && !here; a = a->ifa_next) {
    socklen_t len = a->ifa_addr && a->ifa_addr->sa_family == AF_INET    ? sizeof(struct sockaddr_in)
                    : a->ifa_addr && a->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                        : 0;
    if (len && getnameinfo(a->ifa_addr, len, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0)
      here = strcmp(host, text) == 0;
  }
  freeifaddrs(all);
  return here;
}

/* What the launcher put into the environment of a process; -1: nothing that can be read. */
static int64_t rank_of_process(int64_t pid) {
  char    path[64], *line = NULL;
  size_t  room = 0, best = SIZE_MAX;
  int64_t rank = -1;
  snprintf(path, sizeof path, "/proc/%" PRId64 "/environ", pid);
  FILE *file = fopen(path, "re");
  while (file && getdelim(&line, &room, '\0', file) > 0)
    for (size_t i = 0; i < best; i++) {
      const char *known = mgrid_launcher_rank(i), *name = known ? known : "RANK"; /* torchrun's comes last */
      size_t      len = strlen(name);
      if (strncmp(line, name, len) == 0 && line[len] == '=') best = i, rank = strtoll(line + len + 1, NULL, 10);
      if (!known) break;
    }
  free(line);
  if (file) fclose(file);
  return rank;
}

/* The process of an entry of "ranks" or "missing_ranks"; NULL: out of memory. */
static process *find(processes *all, const json_t *entry) {
  const char *host = json_string_value(json_object_get(entry, "host"));
  int64_t     pid = json_integer_value(json_object_get(entry, "pid"));
  host = host ? host : "";
  for (size_t i = 0; i < all->n; i++)
    if (all->at[i].pid == pid && strcmp(all->at[i].host, host) == 0) return &all->at[i];
  if (all->n == all->room) {
    process *more = realloc(all->at, (2 * all->room + 16) * sizeof *more);
    if (!more) return NULL;
    all->at = more, all->room = 2 * all->room + 16;
  }
  all->at[all->n] = (process){ host, pid, is_here(host) ? rank_of_process(pid) : -1 };
  return &all->at[all->n++];
}

/* ---------------------------------------------------------------------- who is it */

static int64_t number(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}

static const char *const lists[] = { "ranks", "missing_ranks" };

/* Is group `group` of the family this communicator, as far as its members are known? */
static bool fits(const json_t *comm, processes *all, const mgrid_family *f, int64_t group) {
  if (mgrid_family_size(f, group) != number(comm, "size")) return false;
  for (int k = 0; k < 2; k++) {
    size_t  i;
    json_t *entry;
    json_array_foreach(json_object_get(comm, lists[k]), i, entry) {
      const process *p = find(all, entry);
      if (p && p->rank >= 0 && mgrid_family_rank(f, group, number(entry, "rank")) != p->rank) return false;
    }
  }
  return true;
}

/* The groups that a communicator may be: "dp[1]"; several names mean the same members, or " or " others. If the
** members are sure, processes learn their ranks. True: something was learned. */
static bool identify(const json_t *comm, processes *all, const mgrid_plan *plan, mgrid_text *names) {
  const json_t       *known = NULL;
  const mgrid_family *first = NULL;
  int64_t             first_group = -1, group, position;
  bool                sure = true, learned = false;
  size_t              i;
  json_t             *entry;
  for (int k = 0; k < 2; k++) json_array_foreach(json_object_get(comm, lists[k]), i, entry) {
      const process *p = find(all, entry);
      if (p && p->rank >= 0) known = entry;
    }
  for (size_t k = 0; known && k < mgrid_plan_nfamilies(plan); k++) {
    const mgrid_family *f = mgrid_plan_family(plan, k);
    int64_t             rank = find(all, known)->rank;
    for (int64_t nth = 0; mgrid_family_locate(f, rank, nth, &group, &position); nth++) {
      if (position != number(known, "rank") || !fits(comm, all, f, group)) continue;
      bool same = first != NULL;
      for (int64_t p = 0; same && p < mgrid_family_size(f, group); p++)
        same = mgrid_family_rank(f, group, p) == mgrid_family_rank(first, first_group, p);
      if (first) sure = sure && same;
      mgrid_text_add(names, "%s%s[%" PRId64 "]",
                     !first ? ""
                     : same ? ", "
                            : " or ",
                     mgrid_plan_family_name(plan, k), group);
      if (!first) first = f, first_group = group;
    }
  }
  for (int k = 0; k < 2 && first && sure; k++) json_array_foreach(json_object_get(comm, lists[k]), i, entry) {
      process *p = find(all, entry);
      if (!p || p->rank >= 0) continue;
      p->rank = mgrid_family_rank(first, first_group, number(entry, "rank"));
      learned = true;
    }
  return learned;
}

/* ------------------------------------------------------------------------ who waits */

static void add_member(mgrid_text *t, processes *all, const json_t *entry, bool whole) {
  const process *p = find(all, entry);
  if (p && p->rank >= 0)
    mgrid_text_add(t, "rank %" PRId64, p->rank);
  else
    mgrid_text_add(t, "member %" PRId64, number(entry, "rank"));
  if (whole && p) mgrid_text_add(t, " (pid %" PRId64 " on %s)", p->pid, p->host);
}

static void add_finding(mgrid_text *t) { mgrid_text_add(t, "%s", t->len ? "; " : ""); }

/* Ranks that have made fewer calls of a kind than others: those wait for them. */
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
      if (behind > 1) mgrid_text_add(t, ", ");
      add_member(t, all, entry, true);
      mgrid_text_add(t, ", whose %s is %" PRId64 " of %" PRId64, kind, n, most);
    }
  }
}

static void tell_states(mgrid_text *t, processes *all, const json_t *comm) {
  size_t  i;
  json_t *entry;
  json_array_foreach(json_object_get(comm, "ranks"), i, entry) {
    const json_t *status = json_object_get(entry, "status");
    int64_t       init = number(status, "init_state"), error = number(status, "async_error");
    enum { IN_PROGRESS = 7 };
    if (!init && (!error || error == IN_PROGRESS)) continue;
    add_finding(t);
    add_member(t, all, entry, true);
    if (init == IN_PROGRESS)
      mgrid_text_add(t, " is in its creation");
    else
      mgrid_text_add(t, " has error %" PRId64, init ? init : error);
  }
  json_array_foreach(json_object_get(comm, "missing_ranks"), i, entry) {
    const json_t *status = json_object_get(entry, "status");
    add_finding(t);
    add_member(t, all, entry, true);
    mgrid_text_add(t, json_is_true(json_object_get(status, "considered_dead")) ? " is dead"
                      : json_is_true(json_object_get(status, "unresponsive"))  ? " does not answer"
                                                                               : " has no such communicator");
  }
}

json_t *ras_findings(const json_t *answer, const mgrid_plan *plan) {
  const json_t *comms = json_object_get(answer, "communicators");
  json_t       *list = json_array(), *comm;
  processes     all = { 0 };
  size_t        i;
  for (bool learned = true; learned && plan;) {
    learned = false;
    json_array_foreach(comms, i, comm) {
      mgrid_text nothing = { 0 };
      learned |= identify(comm, &all, plan, &nothing);
      mgrid_text_free(&nothing);
    }
  }
  json_array_foreach(comms, i, comm) {
    mgrid_text names = { 0 }, waits = { 0 };
    if (plan) identify(comm, &all, plan, &names);
    tell_behind(&waits, &all, json_object_get(comm, "ranks"));
    tell_states(&waits, &all, comm);
    const char *hash = json_string_value(json_object_get(comm, "hash"));
    json_array_append_new(list,
                          json_pack("{ss ss sI ss}", "hash", hash ? hash : "", "groups", names.len ? names.data : "",
                                    "size", (json_int_t)number(comm, "size"), "finding", waits.len ? waits.data : ""));
    mgrid_text_free(&names);
    mgrid_text_free(&waits);
  }
  free(all.at);
  return list;
}
