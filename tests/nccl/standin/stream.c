/* SPDX-License-Identifier: MIT
**
** stream.c - streams and events of the stand-in libcudart. A stream is a queue with a thread
** that starts with the first work; a ticket is a place in it. The default stream waits for
** the blocking streams of its device and they for it, as in CUDA. Destroyed ones stay in a
** list, so that their use can be reported.
*/
#include "cudart.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct wait_for {
  cudaStream_t stream;
  uint64_t     ticket;
} wait_for;

typedef struct work {
  struct work *next;
  cudaError_t (*run)(void *);
  void     *arg;
  wait_for *waits;
  size_t    nwaits;
} work;

struct CUstream_st {
  cudaStream_t next;
  work        *head, *tail;
  uint64_t     issued, done;
  cudaError_t  error;
  int          device, priority;
  bool         apart; /* cudaStreamNonBlocking: not ordered with the default stream */
  bool         ours, started, gone;
};

struct CUevent_st {
  cudaEvent_t next;
  uint64_t    issued, done;
  wait_for    place;
  double      when;
  bool        gone, timed;
};

/* One lock and one condition are enough for a stand-in. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;
static cudaStream_t    streams;
static cudaEvent_t     events;
static cudaStream_t    defaults[SI_MAX_DEVICE];

static void *worker(void *arg) {
  cudaStream_t s = arg;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!s->head && !s->gone) pthread_cond_wait(&changed, &lock);
    work *w = s->head;
    if (!w) break;
    for (size_t i = 0; i < w->nwaits; i++)
      while (w->waits[i].stream->done < w->waits[i].ticket) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    cudaError_t e = w->run(w->arg);
    pthread_mutex_lock(&lock);
    s->head = w->next;
    if (!s->head) s->tail = NULL;
    if (e && !s->error) s->error = e;
    s->done++;
    free(w->waits);
    free(w);
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static cudaStream_t add_stream(int device, int priority, bool apart, bool ours) {
  cudaStream_t s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->device = device, s->priority = priority, s->apart = apart, s->ours = ours;
  s->next = streams;
  streams = s;
  return s;
}

/* The stream behind a handle, or NULL. Under the lock. */
static cudaStream_t look(cudaStream_t handle) {
  if (!handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    cudaStream_t *at = &defaults[cuda_device()];
    if (!*at) *at = add_stream(cuda_device(), 0, false, true);
    return *at;
  }
  for (cudaStream_t s = streams; s; s = s->next)
    if (s == handle) return s->gone || s->ours ? NULL : s;
  return NULL;
}

int standin_stream_device(cudaStream_t stream) {
  pthread_mutex_lock(&lock);
  cudaStream_t s = look(stream);
  int          device = s ? s->device : -1;
  pthread_mutex_unlock(&lock);
  return device;
}

/* ------------------------------------------------------------------------- queueing */

static bool wait_on(work *w, cudaStream_t s, uint64_t ticket) {
  if (s->done >= ticket) return true;
  wait_for *more = realloc(w->waits, (w->nwaits + 1) * sizeof *more);
  if (!more) return false;
  w->waits = more;
  w->waits[w->nwaits++] = (wait_for){ s, ticket };
  return true;
}

/* Order the work with the default stream. */
static bool order(work *w, cudaStream_t s) {
  bool ok = true;
  if (s->ours) {
    for (cudaStream_t o = streams; o && ok; o = o->next)
      if (o != s && !o->apart && !o->ours && o->device == s->device) ok = wait_on(w, o, o->issued);
  } else if (!s->apart && defaults[s->device])
    ok = wait_on(w, defaults[s->device], defaults[s->device]->issued);
  return ok;
}

static void dispose(work *w) {
  free(w->waits);
  free(w);
}

/* Under the lock. */
static cudaError_t push(cudaStream_t s, work *w) {
  if (!order(w, s)) return cudaErrorMemoryAllocation;
  if (!s->started) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, worker, s)) return cudaErrorUnknown;
    pthread_detach(thread);
    s->started = true;
  }
  if (s->tail)
    s->tail->next = w;
  else
    s->head = w;
  s->tail = w;
  s->issued++;
  pthread_cond_broadcast(&changed);
  return cudaSuccess;
}

static void finish(cudaStream_t s, uint64_t ticket) {
  while (s->done < ticket) pthread_cond_wait(&changed, &lock);
}

cudaError_t cuda_submit(cudaStream_t stream, cudaError_t (*run)(void *), void *arg, bool wait) {
  work *w = calloc(1, sizeof *w);
  if (!w) return cudaErrorMemoryAllocation;
  w->run = run, w->arg = arg;
  pthread_mutex_lock(&lock);
  cudaStream_t s = look(stream);
  cudaError_t  e = s ? push(s, w) : cudaErrorInvalidResourceHandle;
  if (e) dispose(w);
  if (!e && wait) {
    finish(s, s->issued);
    e = s->error;
  }
  pthread_mutex_unlock(&lock);
  if (!s) standin_violation("work for %p, which is no live stream", (void *)stream);
  return e;
}

cudaError_t standin_enqueue(cudaStream_t stream, cudaError_t (*run)(void *), void *arg) {
  return cuda_submit(stream, run, arg, false);
}

bool standin_running(int device) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (cudaStream_t s = streams; s && !found; s = s->next) found = s->device == device && s->done < s->issued;
  pthread_mutex_unlock(&lock);
  return found;
}

void cuda_drain(int device) {
  pthread_mutex_lock(&lock);
  for (cudaStream_t s = streams; s; s = s->next)
    if (device < 0 || s->device == device) finish(s, s->issued);
  pthread_mutex_unlock(&lock);
}

/* -------------------------------------------------------------------------- streams */

SI_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  cudaError_t e = standin_driver();
  if (!e && least) *least = 0;
  if (!e && greatest) *greatest = -5;
  return cuda_answer(e);
}

SI_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority) {
  cudaError_t e = standin_driver();
  if (!e && (!stream || flags > cudaStreamNonBlocking)) e = cudaErrorInvalidValue;
  if (e) return cuda_answer(e);
  pthread_mutex_lock(&lock);
  cudaStream_t s = add_stream(cuda_device(), priority, flags == cudaStreamNonBlocking, false);
  pthread_mutex_unlock(&lock);
  if (!s) return cuda_answer(cudaErrorMemoryAllocation);
  *stream = s;
  return cudaSuccess;
}

SI_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

SI_API cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

/* Looks the stream up, asks or waits, and says what a call about it answers. */
static cudaError_t about(const char *call, cudaStream_t stream, bool wait, bool destroy) {
  cudaError_t e = standin_driver();
  if (e) return cuda_answer(e);
  pthread_mutex_lock(&lock);
  cudaStream_t s = destroy && !stream ? NULL : look(stream);
  if (s) {
    if (wait) finish(s, s->issued);
    e = s->done < s->issued ? cudaErrorNotReady : s->error;
    if (destroy) { /* returns at once; what is queued still runs */
      s->gone = true;
      e = cudaSuccess;
      pthread_cond_broadcast(&changed);
    }
  }
  pthread_mutex_unlock(&lock);
  if (!s) return cuda_wrong(cudaErrorInvalidResourceHandle, "%s of %p, which is no live stream", call, (void *)stream);
  return cuda_answer(e);
}

SI_API cudaError_t cudaStreamDestroy(cudaStream_t stream) { return about("cudaStreamDestroy", stream, false, true); }

SI_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return about("cudaStreamSynchronize", stream, true, false);
}

SI_API cudaError_t cudaStreamQuery(cudaStream_t stream) { return about("cudaStreamQuery", stream, false, false); }

SI_API cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t e = standin_driver();
  if (e) return cuda_answer(e);
  cuda_drain(cuda_device());
  pthread_mutex_lock(&lock);
  for (cudaStream_t s = streams; s; s = s->next)
    if (s->device == cuda_device() && !e) e = s->error;
  pthread_mutex_unlock(&lock);
  return cuda_answer(e);
}

typedef struct host_call {
  cudaHostFn_t fn;
  void        *arg;
} host_call;

static cudaError_t call_host(void *arg) {
  host_call h = *(host_call *)arg;
  free(arg);
  h.fn(h.arg);
  return cudaSuccess;
}

SI_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg) {
  cudaError_t e = standin_driver();
  if (!e && !fn) e = cudaErrorInvalidValue;
  if (e) return cuda_answer(e);
  host_call *h = malloc(sizeof *h);
  if (!h) return cuda_answer(cudaErrorMemoryAllocation);
  *h = (host_call){ fn, arg };
  e = cuda_submit(stream, call_host, h, false);
  if (e) free(h);
  return cuda_answer(e);
}

/* --------------------------------------------------------------------------- events */

/* Under the lock. */
static bool known(cudaEvent_t event) {
  for (cudaEvent_t e = events; e; e = e->next)
    if (e == event) return !e->gone;
  return false;
}

static cudaError_t no_event(const char *call, cudaEvent_t event) {
  return cuda_wrong(cudaErrorInvalidResourceHandle, "%s of %p, which is no live event", call, (void *)event);
}

SI_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  cudaError_t e = standin_driver();
  if (!e && !event) e = cudaErrorInvalidValue;
  if (e) return cuda_answer(e);
  cudaEvent_t v = calloc(1, sizeof *v);
  if (!v) return cuda_answer(cudaErrorMemoryAllocation);
  v->timed = !(flags & cudaEventDisableTiming);
  pthread_mutex_lock(&lock);
  v->next = events;
  events = v;
  pthread_mutex_unlock(&lock);
  *event = v;
  return cudaSuccess;
}

SI_API cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

static cudaError_t reached(void *arg) {
  cudaEvent_t v = arg;
  pthread_mutex_lock(&lock);
  v->done++;
  v->when = standin_now();
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

SI_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  cudaError_t e = standin_driver();
  if (e) return cuda_answer(e);
  work *w = calloc(1, sizeof *w);
  if (!w) return cuda_answer(cudaErrorMemoryAllocation);
  w->run = reached, w->arg = event;
  pthread_mutex_lock(&lock);
  bool         ok = known(event);
  cudaStream_t s = ok ? look(stream) : NULL;
  e = s ? push(s, w) : cudaErrorInvalidResourceHandle;
  if (e) dispose(w);
  if (!e) {
    event->issued++;
    event->place = (wait_for){ s, s->issued };
  }
  pthread_mutex_unlock(&lock);
  if (!ok) return no_event("cudaEventRecord", event);
  if (!s) standin_violation("cudaEventRecord on %p, which is no live stream", (void *)stream);
  return cuda_answer(e);
}

static cudaError_t nothing(void *arg) {
  (void)arg;
  return cudaSuccess;
}

SI_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  cudaError_t e = standin_driver();
  (void)flags;
  if (e) return cuda_answer(e);
  work *w = calloc(1, sizeof *w);
  if (!w) return cuda_answer(cudaErrorMemoryAllocation);
  w->run = nothing;
  pthread_mutex_lock(&lock);
  bool         ok = known(event);
  cudaStream_t s = ok ? look(stream) : NULL;
  e = !s ? cudaErrorInvalidResourceHandle : cudaSuccess;
  if (s && event->place.stream && !wait_on(w, event->place.stream, event->place.ticket)) e = cudaErrorMemoryAllocation;
  if (!e) e = push(s, w);
  if (e) dispose(w);
  pthread_mutex_unlock(&lock);
  if (!ok) return no_event("cudaStreamWaitEvent", event);
  if (!s) standin_violation("cudaStreamWaitEvent on %p, which is no live stream", (void *)stream);
  return cuda_answer(e);
}

static cudaError_t event_state(const char *call, cudaEvent_t event, bool wait, bool destroy) {
  cudaError_t e = standin_driver();
  if (e) return cuda_answer(e);
  pthread_mutex_lock(&lock);
  bool ok = known(event);
  if (ok) {
    if (wait && event->place.stream) finish(event->place.stream, event->place.ticket);
    e = event->done < event->issued ? cudaErrorNotReady : cudaSuccess;
    if (destroy) event->gone = true, e = cudaSuccess;
  }
  pthread_mutex_unlock(&lock);
  return ok ? cuda_answer(e) : no_event(call, event);
}

SI_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event_state("cudaEventSynchronize", event, true, false);
}

SI_API cudaError_t cudaEventQuery(cudaEvent_t event) { return event_state("cudaEventQuery", event, false, false); }

SI_API cudaError_t cudaEventDestroy(cudaEvent_t event) { return event_state("cudaEventDestroy", event, false, true); }

SI_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  cudaError_t e = standin_driver();
  if (!e && !ms) e = cudaErrorInvalidValue;
  if (e) return cuda_answer(e);
  pthread_mutex_lock(&lock);
  bool ok = known(start) && known(end) && start->issued && end->issued && start->timed && end->timed;
  if (!ok)
    e = cudaErrorInvalidResourceHandle;
  else if (start->done < start->issued || end->done < end->issued)
    e = cudaErrorNotReady;
  else
    *ms = (float)((end->when - start->when) * 1e3);
  pthread_mutex_unlock(&lock);
  return cuda_answer(e);
}

void cuda_stream_leaks(void) {
  pthread_mutex_lock(&lock);
  for (cudaStream_t s = streams; s; s = s->next)
    if (!s->gone && !s->ours) standin_violation("leak: a stream on device %d was never destroyed", s->device);
  for (cudaEvent_t v = events; v; v = v->next)
    if (!v->gone) standin_violation("leak: an event was never destroyed");
  pthread_mutex_unlock(&lock);
}
