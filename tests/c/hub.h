/* SPDX-License-Identifier: MIT
**
** hub.h - what ranks of a job without MPI meet in: a hub of values in this process, whose functions
** are the host's (mgrid_carrier). Ranks are threads. The hub plays each kind of host: a store, a
** store by rank, messages, and a store with an all-gather of its own.
*/
#ifndef TESTS_HUB_H
#define TESTS_HUB_H

#include "backends.h"
#include "program.h"

#include "comm/carriers/carrier.h"

#include <assert.h>
#include <pthread.h>

/* ------------------------------------------------------------------------- the hub */

typedef enum kind { STORE, BY_RANK, MESSAGES, GATHERS, KINDS } kind;

typedef struct value {
  struct value *next;
  char name[192];
  size_t bytes;
  char data[];
} value;

typedef struct hub { /* shared by all ranks */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  kind kind;
  int64_t world;
  value *first;
  int64_t closed; /* ranks that have closed */
} hub;

typedef struct end { /* of one rank */
  hub *hub;
  int64_t rank;
  int gathers; /* calls of its all-gather */
  bool breaks; /* nothing can be added any more */
  bool full;   /* nobody takes a message any more */
} end;

static void until_of(double seconds, struct timespec *t) {
  clock_gettime(CLOCK_REALTIME, t);
  t->tv_sec += (time_t)seconds;
  t->tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
  if (t->tv_nsec >= 1000000000) t->tv_sec++, t->tv_nsec -= 1000000000;
}

static value **find(hub *h, const char *name) {
  value **at = &h->first;
  while (*at && strcmp((*at)->name, name) != 0) at = &(*at)->next;
  return at;
}

/* Add a value behind the others; replace: take the place of one of that name. */
static mgrid_status add(end *e, const char *name, const void *data, size_t bytes, bool replace) {
  hub *h = e->hub;
  value *v = calloc(1, sizeof *v + bytes), **at;
  if (e->breaks) {
    free(v);
    return MGRID_LIMIT;
  }
  snprintf(v->name, sizeof v->name, "%s", name);
  v->bytes = bytes;
  memcpy(v->data, data, bytes);
  pthread_mutex_lock(&h->lock);
  at = find(h, name);
  if (*at && replace) {
    value *was = *at;
    v->next = was->next;
    *at = v;
    free(was);
  } else {
    while (*at) at = &(*at)->next;
    *at = v;
  }
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->lock);
  return MGRID_OK;
}

static mgrid_status take(end *e, const char *name, void *data, size_t bytes, double seconds,
                         bool remove) {
  hub *h = e->hub;
  value **at;
  struct timespec until;
  int late = 0;
  until_of(seconds, &until);
  pthread_mutex_lock(&h->lock);
  while (!*(at = find(h, name)) && !late)
    late = pthread_cond_timedwait(&h->changed, &h->lock, &until);
  value *v = *at;
  if (v && v->bytes == bytes) memcpy(data, v->data, bytes);
  bool found = v != NULL, fits = found && v->bytes == bytes;
  if (v && remove) {
    *at = v->next;
    free(v);
  }
  pthread_mutex_unlock(&h->lock);
  return fits ? MGRID_OK : found ? MGRID_BAD_VALUE : MGRID_TIMED_OUT;
}

static mgrid_status hub_put(void *ud, const char *key, const void *data, size_t bytes) {
  end *e = ud;
  char name[192];
  for (const char *c = key; *c; c++) assert(strchr("abcdefghijklmnopqrstuvwxyz0123456789.-", *c));
  assert(strncmp(key, "moongrid.", 9) == 0 && strlen(key) < 128);
  snprintf(name, sizeof name, "%lld/%s", e->hub->kind == BY_RANK ? (long long)e->rank : -1, key);
  return add(e, name, data, bytes, true);
}

static mgrid_status hub_get(void *ud, int64_t from, const char *key, void *data, size_t bytes,
                            double seconds) {
  end *e = ud;
  char name[192];
  assert(from >= 0 || e->hub->kind != BY_RANK);
  snprintf(name, sizeof name, "%lld/%s", e->hub->kind == BY_RANK ? (long long)from : -1, key);
  return take(e, name, data, bytes, seconds, false);
}

static mgrid_status hub_erase(void *ud, const char *key) {
  end *e = ud;
  char name[192], none;
  snprintf(name, sizeof name, "-1/%s", key);
  return take(e, name, &none, 0, 0, true) == MGRID_TIMED_OUT ? MGRID_BAD_VALUE : MGRID_OK;
}

static mgrid_status hub_send(void *ud, int64_t to, int tag, const void *data, size_t bytes,
                             double seconds) {
  end *e = ud;
  char name[192];
  (void)seconds;
  if (e->full) return MGRID_TIMED_OUT;
  assert(to != e->rank && to >= 0 && to < e->hub->world && tag >= 0);
  snprintf(name, sizeof name, "%lld to %lld: %d", (long long)e->rank, (long long)to, tag);
  return add(e, name, data, bytes, false);
}

static mgrid_status hub_recv(void *ud, int64_t from, int tag, void *data, size_t bytes,
                             double seconds) {
  end *e = ud;
  char name[192];
  snprintf(name, sizeof name, "%lld to %lld: %d", (long long)from, (long long)e->rank, tag);
  return take(e, name, data, bytes, seconds, true);
}

static mgrid_status hub_allgather(void *ud, const void *mine, void *all, size_t bytes,
                                  double seconds) {
  end *e = ud;
  char name[192];
  double until = mgrid_now() + seconds;
  mgrid_status s = MGRID_OK;
  snprintf(name, sizeof name, "gathered %d: %lld", ++e->gathers, (long long)e->rank);
  s = add(e, name, mine, bytes, false);
  for (int64_t r = 0; r < e->hub->world && !s; r++) {
    double left = until - mgrid_now();
    snprintf(name, sizeof name, "gathered %d: %lld", e->gathers, (long long)r);
    s = take(e, name, (char *)all + (size_t)r * bytes, bytes, left > 0 ? left : 0, false);
  }
  return s;
}

static const char *hub_reason(void *ud) { return ((end *)ud)->breaks ? "the hub is gone" : ""; }

static void hub_close(void *ud) {
  hub *h = ((end *)ud)->hub;
  pthread_mutex_lock(&h->lock);
  h->closed++;
  pthread_mutex_unlock(&h->lock);
}

static mgrid_carrier carrier_of(end *e, double timeout) {
  mgrid_carrier c = MGRID_CARRIER_INIT;
  c.ud = e, c.rank = e->rank, c.world = e->hub->world, c.timeout = timeout;
  c.by_rank = e->hub->kind == BY_RANK;
  c.close = hub_close, c.reason = hub_reason;
  if (e->hub->kind == MESSAGES)
    c.send = hub_send, c.recv = hub_recv;
  else
    c.put = hub_put, c.get = hub_get;
  if (e->hub->kind == STORE || e->hub->kind == GATHERS) c.erase = hub_erase;
  if (e->hub->kind == GATHERS) c.allgather = hub_allgather;
  return c;
}

/* ------------------------------------------------------------------------- a job */

typedef struct rank {
  end end;
  double timeout;
  void (*does)(struct rank *);
  mgrid_backend *b;
  int64_t number; /* an argument of the test's */
  bool right;
  mgrid_error err;
} rank;

static void *live(void *ud) {
  rank *r = ud;
  mgrid_carrier c = carrier_of(&r->end, r->timeout);
  r->b = mgrid_carrier_backend(&c, &r->err);
  if (r->b) r->does(r);
  mgrid_backend_free(r->b);
  return NULL;
}

/* Every rank but `absent` (-1: none) does the same; all of them then have r[i].right or an error.
** What is left in the hub is told. */
static size_t run(kind k, int64_t world, double timeout, int64_t absent, int64_t number,
                  void (*does)(rank *), rank *r) {
  hub h = { .lock = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER,
            .kind = k,
            .world = world };
  pthread_t thread[64];
  size_t left = 0;
  for (int64_t i = 0; i < world; i++) {
    r[i] = (rank){
      .end = { &h, i, 0, false, false }, .timeout = timeout, .does = does, .number = number
    };
    mgrid_error none = MGRID_ERROR_INIT;
    r[i].err = none;
    if (i != absent) assert_int_equal(pthread_create(&thread[i], NULL, live, &r[i]), 0);
  }
  for (int64_t i = 0; i < world; i++)
    if (i != absent) pthread_join(thread[i], NULL);
  assert_int_equal(h.closed, absent < 0 ? world : world - 1);
  while (h.first) {
    value *v = h.first;
    h.first = v->next;
    left += !strstr(v->name, "moongrid.opened.");
    free(v);
  }
  return left;
}

#endif
