/* SPDX-License-Identifier: MIT
**
** stream.c - streams and events. Work that nothing holds up runs on the caller's thread; what has
** to wait goes to a thread of the stream, and with it all that comes after. Streams and events are
** both counters of what was issued and what is done, and work waits for counters.
*/
#include "rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct counter counter;

typedef struct place {
  counter *of;
  uint64_t n;
} place;

typedef struct job {
  struct job *next;
  void (*run)(void *);
  void *arg;
  size_t nwaits;
  place *waits;
} job;

struct counter {
  counter *next;
  uint64_t issued, done, id;
  int refs; /* of jobs that wait for it */
  bool event, ours, gone;
  bool apart; /* a stream that the default stream is not ordered with */
  bool timed; /* an event */
  bool busy, worker;
  int device, error;
  double when;
  job *head, *tail;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static counter *counters;
static counter *defaults[RIG_DEVICES];
static uint64_t ids;

static counter *create(bool event, bool ours) { /* under the lock */
  counter *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->event = event, c->ours = ours, c->device = rig_device(), c->id = ++ids;
  c->next = counters;
  counters = c;
  if (!ours) rig_alive(event ? "events" : "streams", 1);
  return c;
}

/* Free what was destroyed when nothing needs it any more. Under the lock. */
static void settle(counter *c) {
  if (!c->gone || c->refs || c->worker || c->busy || c->done < c->issued) return;
  for (counter **at = &counters; *at; at = &(*at)->next)
    if (*at == c) {
      *at = c->next;
      free(c);
      return;
    }
}

static counter *look(const void *handle, bool event) { /* under the lock */
  if (!event && (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)) {
    counter **at = &defaults[rig_device()];
    if (!*at) *at = create(false, true);
    return *at;
  }
  for (counter *c = counters; c; c = c->next)
    if (c == handle) return c->gone || c->event != event || c->ours ? NULL : c;
  return NULL;
}

/* ------------------------------------------------------------------------- running */

static bool held_up(const job *j) {
  for (size_t i = 0; i < j->nwaits; i++)
    if (j->waits[i].of->done < j->waits[i].n) return true;
  return false;
}

static void dispose(job *j) {
  for (size_t i = 0; i < j->nwaits; i++) {
    j->waits[i].of->refs--;
    settle(j->waits[i].of);
  }
  free(j->waits);
  free(j);
}

static void run(counter *s, job *j) { /* under the lock, which it gives up meanwhile */
  s->busy = true;
  pthread_mutex_unlock(&lock);
  j->run(j->arg);
  pthread_mutex_lock(&lock);
  s->busy = false;
  s->done++;
  dispose(j);
  pthread_cond_broadcast(&changed);
}

static void *worker(void *arg) {
  counter *s = arg;
  rig_set_device(s->device);
  pthread_mutex_lock(&lock);
  for (;;) {
    while ((s->head || !s->gone) && (!s->head || s->busy || held_up(s->head)))
      pthread_cond_wait(&changed, &lock);
    job *j = s->head;
    if (!j) break;
    s->head = j->next;
    if (!s->head) s->tail = NULL;
    run(s, j);
  }
  s->worker = false;
  settle(s);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static bool wait_for(job *j, counter *c, uint64_t n) {
  if (c->done >= n) return true;
  place *more = realloc(j->waits, (j->nwaits + 1) * sizeof *more);
  if (!more) return false;
  j->waits = more;
  j->waits[j->nwaits++] = (place){ c, n };
  c->refs++;
  return true;
}

/* The default stream waits for the streams of its device that are not apart, and they for it. */
static bool order(job *j, counter *s) {
  bool ok = true;
  if (s->ours) {
    for (counter *c = counters; c && ok; c = c->next)
      if (!c->event && !c->apart && !c->ours && c->device == s->device)
        ok = wait_for(j, c, c->issued);
  } else if (!s->apart && defaults[s->device])
    ok = wait_for(j, defaults[s->device], defaults[s->device]->issued);
  return ok;
}

static int push(counter *s, job *j, bool may_wait) { /* under the lock */
  if (!order(j, s)) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!s->head && !s->busy && !may_wait && !held_up(j)) {
    s->issued++;
    run(s, j);
    return 0;
  }
  if (!s->worker) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker, s)) return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_detach(thread);
    s->worker = true;
  }
  s->issued++;
  if (s->tail)
    s->tail->next = j;
  else
    s->head = j;
  s->tail = j;
  pthread_cond_broadcast(&changed);
  return 0;
}

static int submit(CUstream stream, void (*what)(void *), void *arg, bool may_wait, CUevent event) {
  job *j = calloc(1, sizeof *j);
  if (!j) return CUDA_ERROR_OUT_OF_MEMORY;
  j->run = what, j->arg = arg;
  pthread_mutex_lock(&lock);
  counter *s = look(stream, false), *v = event ? look(event, true) : NULL;
  int e = !s || (event && !v) ? CUDA_ERROR_INVALID_HANDLE : 0;
  if (!e && v && !wait_for(j, v, v->issued)) e = CUDA_ERROR_OUT_OF_MEMORY;
  if (!e) e = push(s, j, may_wait);
  if (e) dispose(j);
  pthread_mutex_unlock(&lock);
  return e;
}

int rig_submit(CUstream stream, void (*what)(void *), void *arg, bool may_wait) {
  return submit(stream, what, arg, may_wait, NULL);
}

static void nothing(void *arg) { (void)arg; }

int rig_wait_event(CUstream stream, CUevent event) {
  return event ? submit(stream, nothing, NULL, false, event) : CUDA_ERROR_INVALID_HANDLE;
}

static void finish(counter *c, uint64_t n) {
  c->refs++;
  while (c->done < n) pthread_cond_wait(&changed, &lock);
  c->refs--;
  settle(c);
}

int rig_drain(int device) {
  int error = 0;
  pthread_mutex_lock(&lock);
again:
  for (counter *c = counters; c; c = c->next)
    if (!c->event && c->done < c->issued && (device < 0 || c->device == device)) {
      finish(c, c->issued);
      goto again; /* the list may have changed */
    }
  for (const counter *c = counters; c; c = c->next)
    if (!error && (device < 0 || c->device == device)) error = c->error;
  pthread_mutex_unlock(&lock);
  return error;
}

bool rig_busy(int device) {
  bool busy = false;
  pthread_mutex_lock(&lock);
  for (const counter *c = counters; c && !busy; c = c->next)
    busy = !c->event && c->device == device && c->done < c->issued;
  pthread_mutex_unlock(&lock);
  return busy;
}

int rig_stream_device(CUstream stream) {
  pthread_mutex_lock(&lock);
  const counter *s = look(stream, false);
  int device = s ? s->device : -1;
  pthread_mutex_unlock(&lock);
  return device;
}

void rig_stream_fail(CUstream stream, int error) {
  pthread_mutex_lock(&lock);
  counter *s = look(stream, false);
  if (s && !s->error) s->error = error;
  pthread_mutex_unlock(&lock);
}

void rig_stream_leaks(void) {
  pthread_mutex_lock(&lock);
  for (const counter *c = counters; c; c = c->next)
    if (!c->gone && !c->ours && c->event) rig_wrong("leak: an event was never destroyed");
  for (const counter *c = counters; c; c = c->next)
    if (!c->gone && !c->ours && !c->event)
      rig_wrong("leak: a stream on device %d was never destroyed", c->device);
  pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------------ streams and events */

int rig_stream_create(CUstream *stream, unsigned flags) {
  if (!stream || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  counter *s = create(false, false);
  if (s) s->apart = flags == CU_STREAM_NON_BLOCKING;
  pthread_mutex_unlock(&lock);
  *stream = (CUstream)s;
  return s ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

typedef enum what { QUERY, WAIT, END } what;

static int about(const void *handle, bool event, what todo) {
  if (event && !handle) return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&lock);
  counter *c = todo == END && !handle ? NULL : look(handle, event);
  int e = c ? 0 : CUDA_ERROR_INVALID_HANDLE;
  if (c && todo == WAIT) {
    c->refs++;
    finish(c, c->issued);
    e = c->error;
    c->refs--;
    settle(c);
  }
  if (c && todo == QUERY) e = c->done < c->issued ? CUDA_ERROR_NOT_READY : c->error;
  if (c && todo == END) { /* returns at once; what is queued still runs */
    c->gone = true;
    rig_alive(event ? "events" : "streams", -1);
    pthread_cond_broadcast(&changed);
    settle(c);
  }
  pthread_mutex_unlock(&lock);
  return e;
}

int rig_stream_end(CUstream stream) { return about(stream, false, END); }
int rig_stream_wait(CUstream stream) { return about(stream, false, WAIT); }
int rig_stream_query(CUstream stream) { return about(stream, false, QUERY); }
int rig_event_end(CUevent event) { return about(event, true, END); }
int rig_event_state(CUevent event, bool wait) { return about(event, true, wait ? WAIT : QUERY); }

int rig_stream_id(CUstream stream, unsigned long long *id) {
  pthread_mutex_lock(&lock);
  counter *s = look(stream, false);
  if (s && id) *id = s->id;
  pthread_mutex_unlock(&lock);
  return !s ? CUDA_ERROR_INVALID_HANDLE : id ? 0 : CUDA_ERROR_INVALID_VALUE;
}

int rig_event_create(CUevent *event, unsigned flags) {
  if (!event || flags & CU_EVENT_INTERPROCESS)
    return event ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  counter *v = create(true, false);
  if (v) v->timed = !(flags & CU_EVENT_DISABLE_TIMING);
  pthread_mutex_unlock(&lock);
  *event = (CUevent)v;
  return v ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

static void reached(void *arg) {
  counter *v = arg;
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  pthread_mutex_lock(&lock);
  v->done++;
  v->when = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
  pthread_cond_broadcast(&changed);
  settle(v);
  pthread_mutex_unlock(&lock);
}

int rig_event_record(CUevent event, CUstream stream) {
  job *j = calloc(1, sizeof *j);
  if (!j) return CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  counter *v = event ? look(event, true) : NULL, *s = v ? look(stream, false) : NULL;
  int e = s ? 0 : CUDA_ERROR_INVALID_HANDLE;
  j->run = reached, j->arg = v;
  if (v) v->issued++;
  if (!e) e = push(s, j, false);
  if (e) {
    if (v) v->issued--;
    dispose(j);
  }
  pthread_mutex_unlock(&lock);
  return e;
}

int rig_event_ms(float *ms, CUevent from, CUevent to) {
  pthread_mutex_lock(&lock);
  const counter *a = from ? look(from, true) : NULL, *b = to ? look(to, true) : NULL;
  int e = 0;
  if (!ms)
    e = CUDA_ERROR_INVALID_VALUE;
  else if (!a || !b || !a->issued || !b->issued || !a->timed || !b->timed)
    e = CUDA_ERROR_INVALID_HANDLE;
  else if (a->done < a->issued || b->done < b->issued)
    e = CUDA_ERROR_NOT_READY;
  else
    *ms = (float)(b->when - a->when);
  pthread_mutex_unlock(&lock);
  return e;
}
