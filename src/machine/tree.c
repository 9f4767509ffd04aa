/* SPDX-License-Identifier: MIT
**
** tree.c - hosts and what is above them, and the machine that they make. A host that hangs higher in the tree than others
** has domains of its own at the levels between.
*/
#include "machine/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SHOWN = 60, ABOVE_MAX = MGRID_LEVELS_MAX - 3 }; /* of a name in messages; levels above hosts */

void mgrid_tree_free(mgrid_tree *t) {
  for (int32_t i = 0; i < t->n; i++) free(t->node[i].name);
  free(t->node);
  free(t->slot);
}

mgrid_status mgrid_tree_fault(mgrid_tree *t, int line, mgrid_status status, const char *fmt, ...) {
  char    text[600];
  va_list args;
  va_start(args, fmt);
  mgrid_vformat(text, sizeof text, fmt, args);
  va_end(args);
  return line ? mgrid_fail(t->err, status, "%s:%d: %s", t->file, line, text)
              : mgrid_fail(t->err, status, "%s: %s", t->file, text);
}

static mgrid_status starved(mgrid_tree *t) { return mgrid_oom(t->err); }

/* -------------------------------------------------------------------- names */

static uint32_t place_of(const mgrid_tree *t, bool host, const char *name) {
  uint32_t i = (uint32_t)XXH3_64bits_withSeed(name, strlen(name), host) & (t->room - 1);
  while (t->slot[i] >= 0 && (t->node[t->slot[i]].host != host || strcmp(t->node[t->slot[i]].name, name) != 0))
    i = (i + 1) & (t->room - 1);
  return i;
}

int32_t mgrid_tree_find(const mgrid_tree *t, bool host, const char *name) {
  return t->room ? t->slot[place_of(t, host, name)] : -1;
}

static bool grow_names(mgrid_tree *t) {
  if ((uint32_t)t->n * 2 < t->room) return true;
  uint32_t room = t->room ? 2 * t->room : 64;
  int32_t *slot = malloc(room * sizeof *slot);
  if (!slot) return false;
  memset(slot, 0xff, room * sizeof *slot);
  free(t->slot);
  t->slot = slot;
  t->room = room;
  for (int32_t i = 0; i < t->n; i++) t->slot[place_of(t, t->node[i].host, t->node[i].name)] = i;
  return true;
}

int32_t mgrid_tree_node_of(mgrid_tree *t, bool host, const char *name, int line) {
  int32_t i = mgrid_tree_find(t, host, name);
  if (i >= 0) return i;
  mgrid_error bad = MGRID_ERROR_INIT;
  if (mgrid_check_line(host ? "the name of a host" : "the name of a switch", name, strlen(name), &bad))
    return mgrid_tree_fault(t, line, MGRID_BAD_VALUE, "%s", bad.message), -1;
  if (t->n == INT32_MAX / 4) return mgrid_tree_fault(t, line, MGRID_LIMIT, "too many names"), -1;
  mgrid_tree_node *more = grow_names(t) ? mgrid_grow(t->node, (size_t)t->n, sizeof *more) : NULL;
  if (more) t->node = more;
  char *own = more ? mgrid_strdup(name) : NULL;
  if (!own) return starved(t), -1;
  t->slot[place_of(t, host, name)] = t->n;
  t->node[t->n] = (mgrid_tree_node){ .name = own, .parent = -1, .line = line, .order = -1, .host = host };
  return t->n++;
}

mgrid_status mgrid_tree_add_host(mgrid_tree *t, const char *name, int32_t parent, int64_t slots, int line) {
  int32_t i = mgrid_tree_find(t, true, name);
  if (i >= 0)
    return mgrid_tree_fault(t, line, MGRID_DUPLICATE, "host '%.*s' is there twice, first in line %d", SHOWN, name,
                            t->node[i].line);
  if (slots < 0 || slots > 65536)
    return mgrid_tree_fault(t, line, MGRID_OUT_OF_RANGE, "host '%.*s' has 1 to 65536 slots, not %" PRId64, SHOWN, name,
                            slots);
  if ((i = mgrid_tree_node_of(t, true, name, line)) < 0) return t->err->status;
  t->node[i].order = t->ordered++;
  t->node[i].slots = (int32_t)slots;
  t->node[i].parent = parent;
  return MGRID_OK;
}

mgrid_status mgrid_tree_put_below(mgrid_tree *t, int32_t node, int32_t parent, int line) {
  mgrid_tree_node *n = &t->node[node];
  if (n->parent == parent) return MGRID_OK;
  if (n->parent >= 0)
    return mgrid_tree_fault(t, line, MGRID_DUPLICATE, "%s '%.*s' is below %s '%.*s', and below '%.*s' already",
                            n->host ? "host" : t->above, SHOWN, n->name, t->above, SHOWN, t->node[parent].name, SHOWN,
                            t->node[n->parent].name);
  n->parent = parent;
  return MGRID_OK;
}

/* ----------------------------------------------------------------- host lists */

enum { NAME = 256 };

typedef struct listing {
  mgrid_tree    *t;
  int            line;
  mgrid_name_fn *each;
  void          *ud;
  mgrid_status   status;
} listing;

static mgrid_status one_name(listing *l, const char *name) {
  if (++l->t->named > l->t->most)
    return mgrid_tree_fault(l->t, l->line, MGRID_LIMIT,
                            "the lists of its names have more than %" PRId64 ": %d, and one for each of its bytes",
                            l->t->most, MGRID_NAMES_MAX);
  return l->each(l->ud, name);
}

/* Expand what follows a prefix: text up to a comma, with brackets of numbers. */
static bool expand(listing *l, const char *prefix, size_t len, const char **at) {
  char        name[NAME];
  const char *p = *at;
  if (len >= sizeof name - 24) return false;
  memcpy(name, prefix, len);
  while (*p && *p != ',' && *p != '[' && *p != ' ' && *p != '\n' && len < sizeof name - 24) {
    if (*p == ']') return false;
    name[len++] = *p++;
  }
  name[len] = '\0';
  *at = p;
  if (*p != '[') {
    if (len == 0 || len >= sizeof name - 24) return false;
    l->status = one_name(l, name);
    return true;
  }
  const char *close = strchr(p, ']'), *behind = close ? close + 1 : NULL;
  if (!close) return false;
  for (p++; p < close;) {
    char     *end;
    size_t    width = strspn(p, "0123456789");
    long long low = width && width < 12 ? strtoll(p, &end, 10) : -1, high = low;
    if (low < 0) return *at = p, false;
    const char *q = end;
    if (*q == '-') {
      size_t w = strspn(q + 1, "0123456789");
      high = w && w < 12 ? strtoll(q + 1, &end, 10) : -1;
      if (high < low) return *at = q, false;
      q = end;
    }
    if (*q != ',' && q != close) return *at = q, false;
    for (long long i = low; i <= high && !l->status; i++) {
      const char *rest = behind;
      int         n = snprintf(name + len, sizeof name - len, "%0*lld", (int)width, i);
      if (!expand(l, name, len + (size_t)n, &rest)) return *at = rest, false;
      *at = rest;
    }
    p = q + (*q == ',');
  }
  return *at > close || l->status;
}

bool mgrid_hostlist(mgrid_tree *t, int line, const char *list, const char **at, mgrid_name_fn *each, void *ud,
                    mgrid_status *status) {
  listing l = { t, line, each, ud, MGRID_OK };
  bool    read = true, more = true;
  for (*at = list; more && read; *at += more) {
    read = expand(&l, "", 0, at) || l.status;
    more = read && !l.status && **at == ',';
  }
  *status = l.status;
  return read && (l.status || **at == '\0' || **at == ' ' || **at == '\n');
}

typedef struct ordering {
  mgrid_tree *t;
  int         line;
} ordering;

static mgrid_status order_one(void *ud, const char *name) {
  ordering *o = ud;
  int32_t   i = mgrid_tree_find(o->t, true, name);
  if (i < 0)
    return mgrid_tree_fault(o->t, o->line, MGRID_UNKNOWN_NAME, "nodes=: there is no host '%.*s' in it", SHOWN, name);
  if (o->t->node[i].order >= 0)
    return mgrid_tree_fault(o->t, o->line, MGRID_DUPLICATE, "nodes=: host '%.*s' is there twice", SHOWN, name);
  o->t->node[i].order = o->t->ordered++;
  return MGRID_OK;
}

mgrid_status mgrid_tree_order(mgrid_tree *t, const char *list, int line) {
  ordering     o = { t, line };
  mgrid_status s;
  const char  *at;
  for (int32_t i = 0; i < t->n; i++) t->node[i].order = -1;
  t->ordered = 0;
  if (mgrid_hostlist(t, line, list, &at, order_one, &o, &s)) return s;
  return mgrid_tree_fault(t, line, MGRID_BAD_VALUE, "a list of hosts, as n[1-4,08],m1, expected, not '%.*s'", SHOWN,
                          at);
}

/* ------------------------------------------------------------------- heights */

/* Name the loop that a node is in. */
static mgrid_status refuse_cycle(mgrid_tree *t, int32_t node) {
  char    loop[400];
  int     len = 0;
  int32_t i = node;
  do {
    len += snprintf(loop + len, sizeof loop - (size_t)len, "%.20s < ", t->node[i].name);
    i = t->node[i].parent;
  } while (i != node && len < (int)sizeof loop - 60);
  return mgrid_tree_fault(t, t->node[node].line, MGRID_REFUSED, "%s '%.*s' is below itself: %s%.20s", t->above, SHOWN,
                          t->node[node].name, loop, t->node[i].name);
}

/* More switches are above a host than a machine has levels, or they are a loop. */
static mgrid_status refuse_height(mgrid_tree *t, int32_t host) {
  int32_t at = t->node[host].parent, n = 0;
  while (at >= 0 && n <= t->n) at = t->node[at].parent, n++;
  if (at < 0)
    return mgrid_tree_fault(t, 0, MGRID_LIMIT, "%d levels of %ses above a host are more than %d", (int)n, t->above,
                            ABOVE_MAX);
  enum { LOOP = -3 };
  for (; t->node[at].height != LOOP; at = t->node[at].parent) t->node[at].height = LOOP;
  for (at = host; t->node[at].height != LOOP;) at = t->node[at].parent;
  return refuse_cycle(t, at);
}

/* Find the heights above hosts that are used; those of others stay -1. */
static mgrid_status find_heights(mgrid_tree *t) {
  for (int32_t i = 0; i < t->n; i++) t->node[i].height = -1;
  for (int32_t i = 0; i < t->n; i++) {
    if (!t->node[i].host || (t->ordered && t->node[i].order < 0)) continue;
    int32_t height = 0, at = i;
    for (t->node[i].height = 0; (at = t->node[at].parent) >= 0 && t->node[at].height < ++height;) {
      t->node[at].height = height;
      if (height > ABOVE_MAX) return refuse_height(t, i);
    }
  }
  for (int32_t i = 0; i < t->n; i++) { /* a loop that no host is below */
    for (int32_t at = i; at >= 0 && !t->node[at].host && t->node[at].height == -1; at = t->node[at].parent) {
      t->node[at].height = -2 - i; /* seen from i */
      int32_t up = t->node[at].parent;
      if (up >= 0 && t->node[up].height == -2 - i) return refuse_cycle(t, up);
    }
  }
  return MGRID_OK;
}

/* The domain of a host at a height: the highest ancestor that is not above it. */
static int32_t ancestor(const mgrid_tree *t, int32_t host, int32_t height) {
  while (t->node[host].parent >= 0 && t->node[t->node[host].parent].height <= height) host = t->node[host].parent;
  return host;
}

/* --------------------------------------------------------------------- order */

/* Hosts sorted so that those below one node follow each other; nodes by their first host. */
typedef struct sorted {
  const mgrid_tree *t;
  int64_t          *first; /* of each node: the order of the first host below */
} sorted;

static int64_t order_of(const mgrid_tree *t, int32_t i) { return t->ordered ? t->node[i].order : i; }

static int by_tree(const void *a, const void *b, void *ud) {
  const sorted     *s = ud;
  const mgrid_tree *t = s->t;
  int32_t           x = *(const int32_t *)a, y = *(const int32_t *)b;
  if (x == y) return 0;
  for (int32_t h = INT32_MAX;;) { /* from the roots down to where they part */
    int32_t p = ancestor(t, x, h), q = ancestor(t, y, h);
    if (p != q) return s->first[p] < s->first[q] ? -1 : s->first[p] > s->first[q] ? 1 : p < q ? -1 : 1;
    h = t->node[p].height - 1;
  }
}

static int by_order(const void *a, const void *b, void *ud) {
  const sorted *s = ud;
  int64_t       x = order_of(s->t, *(const int32_t *)a), y = order_of(s->t, *(const int32_t *)b);
  return (x > y) - (x < y);
}

/* ------------------------------------------------------------------ machine */

typedef struct making {
  mgrid_tree          *t;
  mgrid_machine_model *m;
  int32_t             *host; /* [n] in the order of places */
  int64_t              n;
  int32_t              height; /* of the tree */
} making;

/* Add the level of a height; its domains are numbered in the order of hosts. */
static mgrid_status add_level(making *k, int32_t height) {
  int64_t *counts = calloc((size_t)k->n + 1, sizeof *counts), parents = -1;
  char     name[MGRID_NAME_MAX + 1];
  if (!counts) return starved(k->t);
  snprintf(name, sizeof name, height == 0 ? "node" : height == 1 ? "%.20s" : "%.20s%d", k->t->above, (int)height);
  for (int64_t i = 0; i < k->n; i++) {
    bool top = height == k->height;
    bool new_parent = i == 0
                      || (!top && ancestor(k->t, k->host[i], height + 1) != ancestor(k->t, k->host[i - 1], height + 1));
    bool new_domain = new_parent || ancestor(k->t, k->host[i], height) != ancestor(k->t, k->host[i - 1], height);
    parents += new_parent;
    counts[parents] += new_domain;
  }
  mgrid_link   none = { 0, 0 };
  mgrid_status s = mgrid_machine_add(k->m, name, (size_t)parents + 1, counts, none, k->t->err);
  free(counts);
  for (int64_t i = 0, d = -1; i < k->n && !s; i++) {
    int32_t at = ancestor(k->t, k->host[i], height);
    bool    same = i > 0 && at == ancestor(k->t, k->host[i - 1], height);
    if (same) continue;
    d++;
    if (k->t->node[at].height == height && *k->t->node[at].name)
      s = mgrid_machine_name_domain(k->m, k->m->ntiers - 1, d, k->t->node[at].name, k->t->err);
  }
  return s;
}

/* The slots of the hosts as a level, if some host says how many it has. */
static mgrid_status add_slots(making *k) {
  int64_t *counts = calloc((size_t)k->n + 1, sizeof *counts), most = 0;
  if (!counts) return starved(k->t);
  for (int64_t i = 0; i < k->n; i++) {
    counts[i] = k->t->node[k->host[i]].slots;
    if (counts[i] > most) most = counts[i];
    if (counts[i] == 0) counts[i] = 1;
  }
  mgrid_link   none = { 0, 0 };
  mgrid_status s =
      most ? mgrid_machine_add(k->m, k->t->slots_are ? k->t->slots_are : "gpu", (size_t)k->n, counts, none, k->t->err)
           : MGRID_OK;
  free(counts);
  return s;
}

/* Where ranks go in the order of the hosts, if that is not the order of places. */
static mgrid_status add_ranks(making *k, int64_t node) {
  mgrid_tree *t = k->t;
  sorted      s = { t, NULL };
  bool        plain = true;
  for (int64_t i = 1; i < k->n && plain; i++) plain = order_of(t, k->host[i - 1]) < order_of(t, k->host[i]);
  if (plain || !t->ordered || k->m->at) return MGRID_OK;
  int64_t *index = malloc((size_t)k->n * sizeof *index), r = 0;
  int32_t *by = malloc((size_t)k->n * sizeof *by), *at = malloc((size_t)k->m->places * sizeof *at), *place = NULL;
  place = calloc((size_t)t->n, sizeof *place);
  if (index && by && at && place) {
    for (int64_t i = 0; i < k->n; i++) place[k->host[i]] = (int32_t)i;
    memcpy(by, k->host, (size_t)k->n * sizeof *by);
    qsort_r(by, (size_t)k->n, sizeof *by, by_order, &s);
    for (int64_t i = 0; i < k->n; i++) {
      const mgrid_tier *tier = &k->m->tier[node];
      for (int64_t p = mgrid_tier_start(tier, place[by[i]]); p < mgrid_tier_start(tier, place[by[i]] + 1); p++)
        at[r++] = (int32_t)p;
    }
  }
  bool whole = index && by && at && place;
  free(index);
  free(by);
  free(place);
  if (whole) return mgrid_machine_set_ranks(k->m, r, at, t->err);
  free(at);
  return starved(t);
}

static mgrid_status sort_hosts(making *k) {
  mgrid_tree *t = k->t;
  sorted      s = { t, malloc((size_t)t->n * sizeof *s.first) };
  k->host = malloc((size_t)t->n * sizeof *k->host);
  if (!s.first || !k->host) return free(s.first), starved(t);
  for (int32_t i = 0; i < t->n; i++) s.first[i] = INT64_MAX;
  for (int32_t i = 0; i < t->n; i++) {
    if (!t->node[i].host || t->node[i].height < 0) continue;
    k->host[k->n++] = i;
    for (int32_t at = i; at >= 0; at = t->node[at].parent) {
      if (s.first[at] > order_of(t, i)) s.first[at] = order_of(t, i);
      if (t->node[at].height > k->height) k->height = t->node[at].height;
    }
  }
  qsort_r(k->host, (size_t)k->n, sizeof *k->host, by_tree, &s);
  free(s.first);
  return MGRID_OK;
}

static mgrid_status make(making *k, const char *words) {
  mgrid_tree  *t = k->t;
  mgrid_status s = find_heights(t);
  if (!s) s = sort_hosts(k);
  if (!s && k->n == 0) s = mgrid_tree_fault(t, 0, MGRID_REFUSED, "there is no host in it");
  for (int32_t h = k->height; h >= 0 && !s; h--) s = add_level(k, h);
  if (!s) s = add_slots(k);
  if (!s) s = mgrid_machine_more(k->m, words, t->err);
  if (!s) s = add_ranks(k, k->height);
  return s;
}

mgrid_machine_model *mgrid_tree_machine(mgrid_tree *t, const char *words) {
  making       k = { .t = t, .m = mgrid_machine_alloc(t->err) };
  mgrid_status s = k.m ? make(&k, words) : MGRID_NO_MEMORY;
  free(k.host);
  if (!s) return k.m;
  mgrid_machine_free(k.m);
  return NULL;
}
