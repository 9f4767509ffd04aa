/* SPDX-License-Identifier: MIT
**
** pmix.c - a carrier for jobs without MPI whose launcher offers PMIx (mpirun, prterun, srun
** --mpi=pmix). It fills an mgrid_carrier: values by put, commit and get, an all-gather by
** PMIx_Fence.
*/
#include "comm/carriers/carrier.h"

#include <inttypes.h>
#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct request request;

typedef struct pmix_job {
  pmix_proc_t me;
  bool *near; /* [world], whether the rank is on this node */
  int64_t world;
  const uint64_t *opened; /* mgrid_relay.opened */
  request *asked;         /* requests that pmix_find has not finished */
  uint64_t gathers;       /* blocks of all-gathers, so far */
  /* for a key that is used again, PMIx may return the old value, because it keeps values that it
  ** has read */
  bool stale;
  /* a fence did not end, so PMIx_Finalize, which may wait for the fence, is not called */
  bool hung;
  char why[PMIX_MAX_KEYLEN + 128];
} pmix_job;

static const char *pmix_reason(void *ud) { return ((pmix_job *)ud)->why; }

static mgrid_status pmix_failed(pmix_job *j, pmix_status_t r, const char *call) {
  snprintf(j->why, sizeof j->why, "%s: %s", call, PMIx_Error_string(r));
  return MGRID_BACKEND;
}

/* ---------------------------------------------------------------------- values */

static mgrid_status pmix_put(void *ud, const char *key, const void *data, size_t bytes) {
  pmix_job *j = ud;
  pmix_value_t v;
  PMIX_VALUE_CONSTRUCT(&v);
  v.type = PMIX_BYTE_OBJECT;
  v.data.bo.bytes = (char *)(uintptr_t)data; /* PMIx copies the data */
  v.data.bo.size = bytes;
  pmix_status_t r = PMIx_Put(PMIX_GLOBAL, key, &v);
  if (r != PMIX_SUCCESS) return pmix_failed(j, r, "PMIx_Put");
  r = PMIx_Commit();
  return r == PMIX_SUCCESS ? MGRID_OK : pmix_failed(j, r, "PMIx_Commit");
}

/* One request. PMIx never answers some requests, whatever the timeout: for example about a rank
** that has ended on another node. So each request has memory of its own, and stays in the list
** until it is answered. PMIx's thread reads `how` after PMIx_Get_nb has returned. */
struct request {
  request *next;
  pmix_proc_t from;
  pmix_info_t how;
  char key[PMIX_MAX_KEYLEN + 1];
  atomic_bool done;
  pmix_status_t result;
  bool fits; /* the value has `bytes` bytes, and is in `data` now */
  size_t bytes;
  char data[];
};

static void answered(pmix_status_t result, pmix_value_t *v, void *ud) { /* in PMIx's thread */
  request *r = ud;
  r->result = result;
  r->fits = result == PMIX_SUCCESS && v && v->type == PMIX_BYTE_OBJECT
            && v->data.bo.size == r->bytes && (v->data.bo.bytes || !r->bytes);
  if (r->fits && r->bytes) memcpy(r->data, v->data.bo.bytes, r->bytes);
  atomic_store(&r->done, true);
}

/* Ask for the value of a key. If the rank is on this node, PMIX_IMMEDIATE makes PMIx answer without
** waiting. For a rank of another node, PMIX_IMMEDIATE would make PMIx search only this node.
** Without it the answer comes at once, too, because each rank has committed something before
** another rank asks for it. */
static pmix_status_t pmix_ask(pmix_job *j, int64_t from, const char *key, size_t bytes) {
  request *r = calloc(1, sizeof *r + bytes);
  if (!r) return PMIX_ERR_NOMEM;
  bool yes = true;
  PMIX_LOAD_PROCID(&r->from, j->me.nspace, (pmix_rank_t)from);
  snprintf(r->key, sizeof r->key, "%s", key);
  r->bytes = bytes;
  PMIX_INFO_LOAD(&r->how, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
  pmix_status_t s = PMIx_Get_nb(&r->from, r->key, &r->how, j->near[from], answered, r);
  if (s != PMIX_SUCCESS) {
    free(r);
    return s;
  }
  r->next = j->asked;
  j->asked = r;
  return s;
}

/* A search for a value. It sends requests until the value is there. */
typedef struct search {
  pmix_job *job;
  int64_t from;
  const char *key;
  void *data;
  size_t bytes;
  bool once; /* send only one request */
} search;

static mgrid_outcome pmix_find(void *ud) { /* mgrid_look */
  search *s = ud;
  request **at = &s->job->asked, *r;
  while (*at && ((*at)->from.rank != (pmix_rank_t)s->from || strcmp((*at)->key, s->key) != 0))
    at = &(*at)->next;
  if (!(r = *at)) {
    pmix_status_t asked = pmix_ask(s->job, s->from, s->key, s->bytes);
    if (asked == PMIX_SUCCESS) return MGRID_NOT_YET;
    if (asked == PMIX_ERR_NOT_FOUND) return s->once ? MGRID_LATE : MGRID_NOT_YET;
    return pmix_failed(s->job, asked, "PMIx_Get");
  }
  if (!atomic_load(&r->done)) return MGRID_NOT_YET;
  *at = r->next;
  pmix_status_t result = r->result;
  bool fits = r->fits;
  if (fits) memcpy(s->data, r->data, s->bytes);
  free(r);
  if (fits) return MGRID_OK;
  if (result == PMIX_ERR_NOT_FOUND) return s->once ? MGRID_LATE : MGRID_NOT_YET;
  if (result != PMIX_SUCCESS) return pmix_failed(s->job, result, "PMIx_Get");
  snprintf(s->job->why, sizeof s->job->why, "the value of %s has another size", s->key);
  return MGRID_BACKEND;
}

static mgrid_status pmix_get(void *ud, int64_t from, const char *key, void *data, size_t bytes,
                             double seconds) {
  const double least = 0.02; /* seconds in which an answer can come */
  search s = { ud, from, key, data, bytes, !(seconds > 0) };
  mgrid_outcome outcome =
      mgrid_wait(pmix_find, &s, mgrid_now() + (seconds > least ? seconds : least), NULL, NULL);
  return outcome == MGRID_LATE ? MGRID_TIMED_OUT : mgrid_status_of(outcome);
}

/* ----------------------------------------------------------------------- fence */

typedef struct fence { /* not freed if it does not end, because PMIx may still use it */
  pmix_info_t how;
  atomic_bool done;
  pmix_status_t result;
} fence;

static void fence_ended(pmix_status_t result, void *ud) { /* in PMIx's thread */
  fence *f = ud;
  f->result = result;
  atomic_store(&f->done, true);
}

static mgrid_outcome has_ended(void *ud) {
  return atomic_load(&((fence *)ud)->done) ? MGRID_OK : MGRID_NOT_YET;
}

/* Wait for all ranks. With `collect`, also exchange the values that they have committed. */
static mgrid_status pmix_fence(pmix_job *j, bool collect, double seconds) {
  fence *f = calloc(1, sizeof *f);
  if (!f) return MGRID_NO_MEMORY;
  PMIX_INFO_LOAD(&f->how, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  pmix_status_t r = PMIx_Fence_nb(NULL, 0, &f->how, 1, fence_ended, f);
  if (r == PMIX_SUCCESS
      && mgrid_wait(has_ended, f, mgrid_now() + seconds, NULL, NULL) == MGRID_LATE) {
    j->hung = true;
    return MGRID_TIMED_OUT;
  }
  if (r == PMIX_SUCCESS) r = f->result;
  free(f);
  return r == PMIX_SUCCESS || r == PMIX_OPERATION_SUCCEEDED ? MGRID_OK
                                                            : pmix_failed(j, r, "PMIx_Fence");
}

/* The blocks of all-gathers use two keys in turn, so that PMIx's memory does not grow with the
** calls. When this rank uses a key again, all ranks have passed the fence of the other key, so they
** have read the old value. All values have one size, because PMIx 4.2 may return the old value if
** the new one has another size. Some installations of PMIx (with its component gds/hash) return old
** values even so, because they keep values that they have read; there every block has a key of its
** own. */
enum { BLOCK = 512 };

/* Exchange a block under a key. Copy the first `bytes` bytes of each rank's block to `all`,
** `stride` bytes apart. */
static mgrid_status pmix_exchange(pmix_job *j, const char *key, char block[BLOCK], char *all,
                                  size_t bytes, size_t stride, double until) {
  double left = until - mgrid_now();
  mgrid_status s = pmix_put(j, key, block, BLOCK);
  if (!s) s = pmix_fence(j, true, left > 0 ? left : 0);
  for (int64_t r = 0; r < j->world && !s; r++) {
    left = until - mgrid_now();
    s = pmix_get(j, r, key, block, BLOCK, left > 1 ? left : 1);
    if (!s) memcpy(all + (size_t)r * stride, block, bytes);
  }
  return s;
}

/* Set j->stale. All ranks have read the value of this key. Give it a new value, and find out
** whether any rank still gets the old one. */
static mgrid_status learn_stale(pmix_job *j, const char *key, double until) {
  static const char fresh[] = "a second value of the key";
  char block[BLOCK] = "", name[96];
  char *seen = calloc((size_t)j->world, sizeof fresh);
  bool stale = false;
  if (!seen) return MGRID_NO_MEMORY;
  snprintf(name, sizeof name, "%s.between", key);
  mgrid_status s = pmix_exchange(j, name, block, seen, 1, 1, until);
  memcpy(block, fresh, sizeof fresh);
  if (!s) s = pmix_exchange(j, key, block, seen, sizeof fresh, sizeof fresh, until);
  for (int64_t r = 0; r < j->world; r++)
    stale |= memcmp(seen + (size_t)r * sizeof fresh, fresh, sizeof fresh) != 0;
  snprintf(name, sizeof name, "%s.stale", key);
  memset(block, stale, sizeof block);
  if (!s) s = pmix_exchange(j, name, block, seen, 1, 1, until);
  for (int64_t r = 0; r < j->world && !s; r++) j->stale |= seen[r] != 0;
  free(seen);
  return s;
}

/* Gather `bytes` bytes of each rank, at most BLOCK, into `all`, `stride` bytes apart. */
static mgrid_status gather_block(pmix_job *j, const char *mine, char *all, size_t bytes,
                                 size_t stride, double until) {
  char key[64], block[BLOCK] = "";
  uint64_t number = j->gathers++;
  snprintf(key, sizeof key, "moongrid.%" PRIu64 ".gather.%" PRIu64, *j->opened,
           j->stale ? number : number % 2);
  memcpy(block, mine, bytes);
  mgrid_status s = pmix_exchange(j, key, block, all, bytes, stride, until);
  return !s && number == 0 ? learn_stale(j, key, until) : s;
}

static mgrid_status pmix_allgather(void *ud, const void *mine, void *all, size_t bytes,
                                   double seconds) {
  double until = mgrid_now() + seconds;
  mgrid_status s = bytes == 0 ? pmix_fence(ud, false, seconds) : MGRID_OK;
  for (size_t at = 0; at < bytes && !s; at += BLOCK)
    s = gather_block(ud, (const char *)mine + at, (char *)all + at,
                     bytes - at < BLOCK ? bytes - at : BLOCK, bytes, until);
  return s;
}

/* ------------------------------------------------------------------------ life */

/* Launchers let a process join PMIx only once: after PMIx_Finalize, its fences fail. The library
** has no global variables, so it notes in the environment that this process has left PMIx. */
static const char left_variable[] = "MOONGRID_PMIX_LEFT";

static void note_left(void) {
  char pid[24];
  snprintf(pid, sizeof pid, "%ld", (long)getpid());
  if (!PMIx_Initialized()) setenv(left_variable, pid, 1);
}

static bool has_left(void) {
  const char *pid = getenv(left_variable);
  return pid && strtol(pid, NULL, 10) == (long)getpid();
}

static void pmix_close(void *ud) {
  pmix_job *j = ud;
  if (!j->hung) PMIx_Finalize(NULL, 0);
  note_left();
  for (request *r = j->asked, *next; r; r = next) {
    next = r->next;
    if (atomic_load(&r->done)) free(r); /* otherwise leave it, because PMIx may still write there */
  }
  free(j->near);
  free(j);
}

/* Find the number of ranks, and which of them are on this node. */
static mgrid_status learn_job(pmix_job *j, mgrid_error *err) {
  pmix_proc_t all;
  pmix_value_t *v = NULL;

  PMIX_LOAD_PROCID(&all, j->me.nspace, PMIX_RANK_WILDCARD);
  pmix_status_t r = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &v);
  if (r != PMIX_SUCCESS)
    return mgrid_fail(err, MGRID_MISSING,
                      "pmix: the launcher does not tell the number of ranks (PMIx_Get: %s)",
                      PMIx_Error_string(r));
  int64_t world = v && v->type == PMIX_UINT32 ? (int64_t)v->data.uint32 : 0;
  if (v) PMIX_VALUE_RELEASE(v);
  if (world < 1 || world > MGRID_WORLD_MAX || j->me.rank >= world)
    return mgrid_fail(err, MGRID_BACKEND,
                      "pmix: the launcher gives impossible numbers: that this is rank %" PRIu32
                      " of %" PRId64 " (PMIX_JOB_SIZE, an unsigned number of 32 bits)",
                      (uint32_t)j->me.rank, world);
  j->world = world;
  j->near = calloc((size_t)j->world + 1, sizeof *j->near);
  if (!j->near) return mgrid_oom(err);
  j->near[j->me.rank] = true;

  /* without an answer, treat the other ranks as if they were on other nodes */
  if (PMIx_Get(&all, PMIX_LOCAL_PEERS, NULL, 0, &v) != PMIX_SUCCESS) return MGRID_OK;
  const char *peers = v && v->type == PMIX_STRING && v->data.string ? v->data.string : "";
  for (const char *at = peers; *at;) {
    char *end;
    long long rank = strtoll(at, &end, 10);
    if (end > at && rank >= 0 && rank < j->world) j->near[rank] = true;
    at = *end ? end + 1 : end;
  }
  if (v) PMIX_VALUE_RELEASE(v);
  return MGRID_OK;
}

static void *nothing(void *ud) { return ud; }

/* PMIx_Init returns the same error if there is no launcher, and if it cannot start a thread. Return
** a text about the limit of threads if this process can start no thread, else "". */
static const char *why_not(char buf[MGRID_ALLOWED]) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, nothing, NULL) != 0)
    return mgrid_allowed(MGRID_SCARCE_THREADS, buf);
  pthread_join(thread, NULL);
  return "";
}

static mgrid_backend *pmix_open(const mgrid_backend_options *o, mgrid_error *err) {
  if (has_left())
    return mgrid_null(err, MGRID_USAGE,
                      "pmix: this process has left its job already, and cannot join it again; keep "
                      "one backend open");

  pmix_job *j = calloc(1, sizeof *j);
  if (!j) return mgrid_null_oom(err);
  pmix_status_t r = PMIx_Init(&j->me, NULL, 0);
  if (r != PMIX_SUCCESS) {
    char most[MGRID_ALLOWED];
    free(j);
    if (getenv("PMIX_NAMESPACE"))
      return mgrid_null(err, MGRID_MISSING,
                        "pmix: the launcher's PMIx cannot be joined (PMIx_Init: %s)%s",
                        PMIx_Error_string(r), why_not(most));
    return mgrid_null(err, MGRID_MISSING,
                      "pmix: no launcher that speaks PMIx started this process (PMIx_Init: %s); "
                      "start it by mpirun, prterun or srun --mpi=pmix",
                      PMIx_Error_string(r));
  }

  mgrid_carrier c = MGRID_CARRIER_INIT;
  c.ud = j;
  c.by_rank = true;
  c.timeout = o->timeout;
  c.put = pmix_put, c.get = pmix_get, c.allgather = pmix_allgather, c.reason = pmix_reason,
  c.close = pmix_close;

  mgrid_backend *b = NULL;
  if (learn_job(j, err) == MGRID_OK) {
    c.rank = j->me.rank, c.world = j->world;
    b = mgrid_carrier_backend(&c, err);
  }
  if (!b) {
    pmix_close(j);
    return NULL;
  }
  b->kind = mgrid_backend_named("pmix");
  j->opened = &((mgrid_relay *)b)->opened;
  return b;
}

static mgrid_status pmix_probe(char *buf, size_t len, mgrid_error *err) {
  (void)err;
  snprintf(buf, len, "%s; %s", PMIx_Get_version(),
           getenv("PMIX_NAMESPACE") ? "its launcher started this process"
                                    : "no launcher with PMIx started this process");
  return MGRID_OK;
}

MGRID_ENTRY(pmix) = { MGRID_LAYOUT, .open = pmix_open, .probe = pmix_probe };
