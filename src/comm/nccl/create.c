/* SPDX-License-Identifier: MIT
**
** create.c - creates all NCCL communicators of a rank: from unique ids, or by splits of a
** communicator of the host or of a parent. A rank handles its groups in schedule order, so no rank
** waits forever: the proof in plan/plan.h holds for any call over members. A rank that gives up
** notifies the other members, so that they give up at once.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ================================================================ unique ids */

/* The first member of a group sends its unique id to all others, along a binomial tree of messages.
** Only members take part. The rank that makes an id serves the sockets of all ranks that use it. So
** a group of more than ranks_per_id members has several ids, each made by another member. */

/* The message: a digest of members and options as the sender knows them, and the ids. */
typedef struct parcel {
  nccl_header header;
  uint64_t digest;
  ncclUniqueId id[]; /* [nids] */
} parcel;

nccl_header mgrid_nccl_header(const nccl_backend *n, uint32_t round) {
  return (nccl_header){ n->base.epoch, n->attempt, round };
}

mgrid_outcome mgrid_nccl_receive(nccl_backend *n, int64_t from, int tag, nccl_header expected,
                                 void *data, size_t bytes, double seconds, mgrid_error *err) {
  double until = mgrid_now() + seconds;
  mgrid_outcome s = MGRID_OK;
  while (!s) {
    double left = until - mgrid_now();
    s = n->carry->recv(n->carrier, from, tag, data, bytes, left > 0.1 ? left : 0.1, err);
    if (!s && memcmp(data, &expected, sizeof expected) == 0) break;
    if (!s && mgrid_now() >= until)
      s = mgrid_fail(err, MGRID_TIMED_OUT,
                     "rank %" PRId64 " sent only other messages for %.3g seconds", from, seconds);
  }
  return s;
}

static int count_ids(const nccl_backend *n, const mgrid_comm_spec *spec) {
  int64_t each = n->options.ranks_per_id;
  return n->lib.CommInitRankScalable && spec->size > each ? (int)((spec->size + each - 1) / each)
                                                          : 1;
}

size_t mgrid_nccl_message(const nccl_backend *n, const mgrid_comm_spec *spec) {
  return sizeof(parcel) + (size_t)count_ids(n, spec) * sizeof(ncclUniqueId);
}

static uint64_t digest_of(const mgrid_comm_spec *spec) {
  const char *nccl = spec->options->asked.nccl;
  return XXH3_64bits_withSeed(spec->ranks, (size_t)spec->size * sizeof *spec->ranks,
                              XXH3_64bits(nccl, strlen(nccl)) ^ (uint64_t)spec->tag);
}

static mgrid_status new_id(nccl_backend *n, const mgrid_comm_spec *spec, ncclUniqueId *id,
                           mgrid_error *err) {
  ncclResult_t r = n->lib.GetUniqueId(id);
  return r == ncclSuccess ? MGRID_OK : mgrid_nccl_failed(n, err, r, "ncclGetUniqueId", spec->name);
}

/* If this rank has to make an id, make it, and send it to the first member, which collects all
** ids. */
static mgrid_outcome gather_ids(nccl_backend *n, const mgrid_comm_spec *spec, int nids,
                                double seconds, parcel *p, mgrid_error *err) {
  struct {
    nccl_header header;
    ncclUniqueId id;
  } own = { .header = p->header };
  int each = n->options.ranks_per_id;
  if (spec->position % each != 0 || spec->position / each >= nids) return MGRID_OK;
  mgrid_outcome s = new_id(n, spec, spec->position == 0 ? &p->id[0] : &own.id, err);
  if (!s && spec->position > 0)
    return n->carry->send(n->carrier, spec->ranks[0], spec->tag, &own, sizeof own, seconds, err);
  for (int k = 1; k < nids && !s; k++) {
    s = mgrid_nccl_receive(n, spec->ranks[k * each], spec->tag, p->header, &own, sizeof own,
                           seconds, err);
    p->id[k] = own.id;
  }
  return s;
}

/* Send the message along the tree. Position p receives from the position that is p without its
** lowest set bit. It sends to p + 1, p + 2, p + 4, ..., as long as the added number is below that
** bit; position 0 as long as there are such positions. */
static mgrid_outcome send_ids(nccl_backend *n, const mgrid_comm_spec *spec, size_t bytes,
                              double seconds, parcel *p, mgrid_error *err) {
  int64_t at = spec->position, low = at & -at;
  nccl_header header = p->header;
  mgrid_outcome s = MGRID_OK;
  if (at == 0)
    for (low = 1; low < spec->size;) low *= 2;
  else if (!(s = mgrid_nccl_receive(n, spec->ranks[at - low], spec->tag, header, p, bytes, seconds,
                                    err))
           && p->digest != digest_of(spec))
    s = mgrid_fail(err, MGRID_BACKEND,
                   MAKER ": rank %d of %s does not see the same members or options",
                   spec->ranks[at - low], spec->name);
  for (int64_t step = low / 2; step > 0 && !s; step /= 2)
    if (at + step < spec->size)
      s = n->carry->send(n->carrier, spec->ranks[at + step], spec->tag, p, bytes, seconds, err);
  return s;
}

/* Return the ids of a group in *ids; the caller frees them. */
static mgrid_outcome share_ids(nccl_backend *n, const mgrid_comm_spec *spec, double seconds,
                               ncclUniqueId **ids, int *nids, mgrid_error *err) {
  *nids = count_ids(n, spec);
  size_t bytes = mgrid_nccl_message(n, spec);
  parcel *p = malloc(bytes);
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_outcome s = p ? MGRID_OK : mgrid_oom(&why);
  *ids = NULL;
  if (p) p->header = mgrid_nccl_header(n, 0), p->digest = digest_of(spec);
  if (!s) s = gather_ids(n, spec, *nids, seconds, p, &why);
  if (!s) s = send_ids(n, spec, bytes, seconds, p, &why);
  if (!s) {
    memmove(p, p->id, (size_t)*nids * sizeof(ncclUniqueId));
    *ids = (ncclUniqueId *)p;
    return MGRID_OK;
  }
  free(p);
  if (strncmp(why.message, MAKER ":", sizeof MAKER) != 0 && s != MGRID_NO_MEMORY)
    mgrid_error_reword(&why, MAKER ": %s: waiting for its unique id: %.600s", spec->name,
                       why.message);
  mgrid_error_pass(err, &why);
  return s;
}

/* ========================================== from an older communicator */

/* Split a communicator of the host, or of a parent; or shrink a communicator that has lost ranks
** (nccl_recover.c decides when). These calls block if the older communicator is blocking, so they
** run in a thread (process.c). */

/* One call; not freed if it does not end, because its thread still uses it. */
typedef struct derive_job {
  ncclComm_t from;
  int color, key;   /* split */
  int nlost, *lost; /* shrink: the positions to leave out; NCCL sorts them in place */
  /* the shrink failed at once, so the older communicator may point to memory that NCCL has freed */
  bool refused;
  nccl_comm *made; /* NULL: this rank is in no group of this split */
  ncclComm_t nobody;
  ncclConfig_t config;
} derive_job;

static ncclResult_t run_split(const nccl_library *lib, void *ud) {
  derive_job *j = ud;
  if (!j->made) return lib->CommSplit(j->from, NCCL_SPLIT_NOCOLOR, 0, &j->nobody, NULL);
  return lib->CommSplit(j->from, j->color, j->key, &j->made->comm, &j->config);
}

static ncclResult_t run_shrink(const nccl_library *lib, void *ud) {
  derive_job *j = ud;
  ncclResult_t r =
      lib->CommShrink(j->from, j->lost, j->nlost, &j->made->comm, &j->config, NCCL_SHRINK_ABORT);
  j->refused = mgrid_nccl_is_error(r) && !j->made->comm;
  return r;
}

/* Make the call, and wait three times: for the call; for the older communicator, because the new
** one exists only when nothing is in progress on the older one; and for the new one. *keep: NCCL
** may still write to *j. */
static mgrid_outcome derive(nccl_backend *n, const mgrid_comm_spec *spec, derive_job *j,
                            ncclResult_t (*call)(const nccl_library *, void *), const char *what,
                            bool *keep, mgrid_error *err) {
  nccl_comm from = { .comm = j->from };
  double seconds = mgrid_nccl_left(n, spec), until = mgrid_now() + seconds;
  mgrid_outcome s = mgrid_nccl_watch(n, seconds, true, call, j, what, spec->name, keep, err);
  if (s) return s;
  s = mgrid_nccl_wait(n, &from, until - mgrid_now(), true, what, spec->name, err);
  *keep = s != MGRID_OK;
  if (s || !j->made) return s;
  if (!j->made->comm)
    return mgrid_fail(err, MGRID_BACKEND, MAKER ": %s gave no communicator for %s", what,
                      spec->name);
  s = mgrid_nccl_wait(n, j->made, until - mgrid_now(), true, what, spec->name, err);
  if (!s) s = mgrid_nccl_finish(n, spec, j->made, err);
  if (!s) s = mgrid_nccl_register_windows(n, spec, j->made, err);
  return s;
}

/* End a split: return the new communicator in *native. After a failure abort it; but in a creation
** over all ranks return it even then, because it is aborted after the verdict. */
static void end_split(nccl_backend *n, derive_job *j, mgrid_outcome s, bool keep, void **native) {
  if (keep) return;
  if (j->made && (!s || n->creates)) {
    j->made->lost = s != MGRID_OK;
    *native = j->made;
  } else if (j->made) {
    mgrid_nccl_abort_one(n, j->made);
  }
  free(j->lost);
  free(j);
}

static derive_job *new_job(ncclComm_t from, mgrid_error *err) {
  derive_job *j = calloc(1, sizeof *j);
  if (!j) return mgrid_null_oom(err);
  j->from = from;
  return j;
}

/* -------------------------------------------------------------------------- split */

static mgrid_outcome split_one(nccl_backend *n, const mgrid_comm_spec *spec, ncclComm_t from,
                               void **native, mgrid_error *err) {
  bool keep = false;
  derive_job *j = new_job(from, err);
  if (!j) return MGRID_NO_MEMORY;
  mgrid_outcome s = spec->size > 0 ? mgrid_nccl_new(n, spec, &j->made, &j->config, err) : MGRID_OK;
  j->color = (int)spec->group, j->key = (int)spec->position;
  if (!s) s = derive(n, spec, j, run_split, "ncclCommSplit", &keep, err);
  end_split(n, j, s, keep, native);
  if (*native) mgrid_nccl_keep(n, *native);
  return s;
}

/* Split the communicator of the host, once for each spec, one split after the other: NCCL fails if
** several splits of one parent are in progress. */
static mgrid_outcome split_all(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec,
                               void **native, mgrid_error *err) {
  mgrid_outcome s = MGRID_OK;
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e != cudaSuccess) s = mgrid_cuda_failed(n, err, e, GPU_CALL("SetDevice"), "");
  if (!s && nspecs > 0) s = mgrid_nccl_idle(n, mgrid_nccl_patience(n, &spec[0]), spec[0].name, err);
  for (size_t i = 0; i < nspecs && !s; i++)
    if (mgrid_nccl_makes(spec[i].backend))
      s = split_one(n, &spec[i], n->options.parent, &native[i], err);
  if (s) mgrid_nccl_tell_world(n); /* all ranks take part in each of these splits */
  return s;
}

/* Make the communicators that are split from a parent, one after the other. */
static mgrid_outcome split_parents(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec,
                                   void **native, mgrid_error *err) {
  mgrid_outcome s = MGRID_OK;
  for (size_t i = 0; i < nspecs && !s; i++) {
    nccl_comm *parent = spec[i].parent ? mgrid_nccl_find(n, *spec[i].parent) : NULL;
    if (!spec[i].parent) continue;
    int before = n->leaks;
    if (parent && parent->comm)
      s = split_one(n, &spec[i], parent->comm, &native[i], err);
    else
      s = mgrid_fail(err, MGRID_BACKEND,
                     MAKER ": %s: the communicator of its parent cannot be used", spec[i].name);
    if (n->leaks > before) parent->comm = NULL, parent->stuck = true; /* a thread still uses it */
    if (s) s = mgrid_nccl_whose(n, s);
    if (s && s != MGRID_GAVE_UP) mgrid_nccl_tell_world(n);
  }
  return s;
}

/* ------------------------------------------------------------------------- shrink */

mgrid_outcome mgrid_nccl_derive(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *from,
                                int nlost, const int *lost, nccl_comm **made, mgrid_error *err) {
  bool keep = false;
  derive_job *j = new_job(from->comm, err);

  if (!j) return MGRID_NO_MEMORY;
  j->lost = malloc(((size_t)nlost + 1) * sizeof *j->lost);
  mgrid_outcome s = j->lost ? mgrid_nccl_new(n, spec, &j->made, &j->config, err) : mgrid_oom(err);
  if (j->lost) memcpy(j->lost, lost, (size_t)nlost * sizeof *j->lost);
  j->nlost = nlost;
  int before = n->leaks;
  if (!s) s = derive(n, spec, j, run_shrink, "ncclCommShrink", &keep, err);
  if (n->leaks > before) {
    from->comm = NULL, from->stuck = true; /* the thread still uses it */
  } else if (keep) { /* the shrink is in progress; an abort of the older communicator ends it */
    if (s != MGRID_GAVE_UP) mgrid_nccl_tell(n, spec);
    mgrid_nccl_abort_all(n, 1, &from);
    keep = from->stuck;
  } else if (j->refused) {
    from->comm = NULL, from->stuck = true;
    mgrid_log(&n->base.hooks, MGRID_LOG_WARN,
              MAKER ": %s: ncclCommShrink refused; the old communicator stays, because NCCL may "
                    "not be able to end it",
              spec->name);
  }
  if (keep) return s;
  *made = j->made;
  if (s && *made) (*made)->lost = true;
  free(j->lost);
  free(j);
  return s;
}

/* ================================================================== from ids */

/* Create communicators from unique ids. First wait until the GPU is idle, and send the ids, in
** schedule order. When all ranks have done so, start creations in that order, a few at a time. Poll
** until all are complete, one has failed, or a deadline has passed. A creation that blocks runs in
** a thread of its own. */

/* A creation that blocks: its thread, which is inside NCCL, and all memory that the thread uses.
** This struct is not freed if the creation does not end. */
typedef struct maker {
  nccl_library lib; /* a copy, because the backend may end before the thread */
  int device, size, position, nids;
  ncclUniqueId *ids;
  ncclConfig_t config; /* points into the nccl_comm */
  ncclComm_t comm;
  ncclResult_t result;
  pthread_t thread;
  atomic_int done;
} maker;

/* One creation in progress. */
typedef struct flight {
  const mgrid_comm_spec *spec; /* NULL: this communicator is not made from an id */
  nccl_comm *made;
  maker *maker; /* NULL: the creation does not block */
  ncclUniqueId *ids;
  int nids;
  ncclConfig_t config;
  bool begun, done;
  bool unregistered; /* its windows are not registered yet, so its members wait for this rank */
} flight;

/* Write "4 ranks: 0 2 4 6", or "1024 ranks: 0 1 2 3 4 5 6 ... 1023". */
static void members_text(const mgrid_comm_spec *spec, char *text, size_t size) {
  enum { SHOWN = 8 };
  size_t len = (size_t)snprintf(text, size, "%" PRId64 " ranks:", spec->size);
  for (int64_t i = 0; i < spec->size; i++) {
    if (spec->size > SHOWN && i == SHOWN - 1) {
      len += (size_t)snprintf(text + len, size - len, " ...");
      i = spec->size - 1;
    }
    len += (size_t)snprintf(text + len, size - len, " %" PRId32, spec->ranks[i]);
  }
}

static mgrid_status too_late(const nccl_backend *n, const mgrid_comm_spec *spec, mgrid_error *err) {
  char members[160];
  members_text(spec, members, sizeof members);
  return mgrid_fail(err, MGRID_TIMED_OUT,
                    MAKER ": %s was not made within %g seconds: rank %" PRId64
                          " of it waits for some of its %s",
                    spec->name, mgrid_nccl_patience(n, spec), n->base.rank, members);
}

/* ---------------------------------------------------------------------- begin */

static mgrid_outcome create_prepare(nccl_backend *n, const mgrid_comm_spec *spec, flight *f,
                                    mgrid_error *err) {
  f->spec = spec;
  mgrid_outcome s = mgrid_nccl_new(n, spec, &f->made, &f->config, err);
  return s ? s : share_ids(n, spec, mgrid_nccl_left(n, spec), &f->ids, &f->nids, err);
}

static ncclResult_t init(const nccl_library *lib, ncclComm_t *comm, int size, int position,
                         int nids, ncclUniqueId *ids, ncclConfig_t *config) {
  if (nids > 1) return lib->CommInitRankScalable(comm, size, position, nids, ids, config);
  return lib->CommInitRankConfig(comm, size, ids[0], position, config);
}

static void *run_maker(void *ud) {
  maker *m = ud;
  ncclResult_t r = ncclUnhandledCudaError;
  if (m->lib.cudaSetDevice(m->device) == cudaSuccess)
    r = init(&m->lib, &m->comm, m->size, m->position, m->nids, m->ids, &m->config);
  m->result = r;
  atomic_store(&m->done, 1);
  return NULL;
}

static mgrid_status begin_blocking(nccl_backend *n, flight *f, mgrid_error *err) {
  maker *m = calloc(1, sizeof *m);
  if (!m) return mgrid_oom(err);
  m->lib = n->lib, m->device = n->device, m->config = f->config;
  m->size = (int)f->spec->size, m->position = (int)f->spec->position;
  m->nids = f->nids, m->ids = f->ids;
  if (pthread_create(&m->thread, NULL, run_maker, m) != 0) {
    char why[MGRID_ALLOWED];
    free(m);
    return mgrid_fail(err, MGRID_BACKEND, MAKER ": no thread for the creation of %s%s",
                      f->spec->name, mgrid_allowed(MGRID_SCARCE_THREADS, why));
  }
  f->ids = NULL; /* the maker owns them now */
  f->maker = m, f->begun = true;
  return MGRID_OK;
}

/* If the thread has ended, take its communicator; if not, leave the thread behind. */
static void end_maker(nccl_backend *n, flight *f) {
  maker *m = f->maker;
  f->maker = NULL;
  if (!atomic_load(&m->done)) {
    pthread_detach(m->thread);
    f->made->stuck = true;
    n->leaks++;
    return;
  }
  pthread_join(m->thread, NULL);
  f->made->comm = m->comm;
  free(m->ids);
  free(m);
}

static mgrid_status create_begin(nccl_backend *n, flight *f, mgrid_error *err) {
  if (f->made->blocking) return begin_blocking(n, f, err);
  ncclResult_t r = init(&n->lib, &f->made->comm, (int)f->spec->size, (int)f->spec->position,
                        f->nids, f->ids, &f->config);
  f->begun = f->made->comm != NULL;
  if (!mgrid_nccl_is_error(r)) return MGRID_OK;
  return mgrid_nccl_failed(n, err, r,
                           f->nids > 1 ? "ncclCommInitRankScalable" : "ncclCommInitRankConfig",
                           f->spec->name);
}

/* ----------------------------------------------------------------------- wait */

typedef struct flights { /* all creations */
  nccl_backend *n;
  size_t count, next; /* next: the first that is not started yet */
  size_t most;        /* how many may be in progress at a time */
  flight *at;         /* [count] */
  mgrid_error *err;
} flights;

/* Return the state of a creation. ncclInProgress: it is not complete. */
static ncclResult_t state_of(nccl_backend *n, flight *f) {
  ncclResult_t state = ncclSuccess, r;
  if (!f->maker) {
    r = n->lib.CommGetAsyncError(f->made->comm, &state);
    return r == ncclSuccess ? state : r;
  }
  if (!atomic_load(&f->maker->done)) return ncclInProgress;
  state = f->maker->result;
  end_maker(n, f);
  return state;
}

/* Start creations in schedule order until `most` are in progress. No rank waits forever: of the
** incomplete creations, the first in this order was started by all its members. */
static mgrid_status start_some(flights *all, size_t *running) {
  mgrid_status s = MGRID_OK;
  for (; all->next < all->count && *running < all->most && !s; all->next++) {
    if (!all->at[all->next].spec) continue;
    s = create_begin(all->n, &all->at[all->next], all->err);
    ++*running;
  }
  return s;
}

/* An mgrid_look. Poll all creations in progress, each with its own deadline, and start more. */
static mgrid_outcome in_flight(void *ud) {
  flights *all = ud;
  nccl_backend *n = all->n;
  size_t left = 0;
  for (flight *f = all->at; f < all->at + all->count; f++) {
    if (!f->begun || f->done) continue;
    ncclResult_t state = state_of(n, f);
    if (mgrid_nccl_is_error(state))
      return mgrid_nccl_failed(n, all->err, state, "creation", f->spec->name);
    f->done = state == ncclSuccess;
    if (f->done) continue;
    if (mgrid_now() - n->begun > mgrid_nccl_patience(n, f->spec))
      return too_late(n, f->spec, all->err);
    if (mgrid_nccl_lost(n, f->spec->name, all->err)) return MGRID_LOST_RANK;
    left++;
  }
  mgrid_status s = start_some(all, &left);
  if (s) return s;
  return left ? MGRID_NOT_YET : MGRID_OK;
}

/* Return how many creations this rank should have in progress. In each of them a thread of NCCL
** spins while it waits, so more creations than processors would slow down all. On one H200, 8 ranks
** on 16 processors made 6 communicators each: two at a time in 140 ms, one at a time in 200, all at
** once in 280 (tests/gpu/README.md). */
static size_t create_at_once(const nccl_backend *n) {
  int64_t usable, online = mgrid_cores(&usable);
  /* if fewer are usable, the launcher has bound this rank to its share of the processors */
  int64_t own = usable < online ? usable : online / n->local_size;
  return own > 2 ? (size_t)own : 2;
}

/* Start all creations that are prepared, and wait for them. */
static mgrid_outcome create_all(nccl_backend *n, size_t count, flight *f, mgrid_error *err) {
  int64_t who;
  flights all = { n, count, 0, create_at_once(n), f, err };
  mgrid_outcome outcome = mgrid_wait(in_flight, &all, INFINITY, n->carrier, &who);
  return outcome == MGRID_GAVE_UP ? mgrid_nccl_gave_up(who, err) : outcome;
}

/* ---------------------------------------------------------------------- create */

/* Notify the members of all incomplete creations, even of those that this rank has not started,
** because members may wait in them. */
static void tell_all(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec, const flight *f) {
  for (size_t i = 0; i < nspecs; i++)
    if (mgrid_nccl_makes(spec[i].backend) && !(f && f[i].done && !f[i].unregistered))
      mgrid_nccl_tell(n, &spec[i]);
}

/* Return whether this rank serves the sockets of a creation, in a thread that ends only when all
** members have arrived. */
static bool serves(const nccl_backend *n, const flight *f) {
  return f->nids > 0
         && f->spec->position % (f->nids > 1 ? n->options.ranks_per_id : f->spec->size) == 0;
}

/* Leave behind the blocking creations that are in progress, because they cannot be cancelled. */
static void create_give_up(nccl_backend *n, size_t nspecs, flight *f) {
  int before = n->leaks;
  for (size_t i = 0; i < nspecs; i++) {
    if (!f[i].done && serves(n, &f[i])) n->leaks++;
    if (f[i].maker) end_maker(n, &f[i]);
  }
  if (n->leaks > before)
    mgrid_log(&n->base.hooks, MGRID_LOG_WARN,
              MAKER ": creations that failed leave %d threads and sockets in this process, %d in "
                    "all; with %d it makes no more communicators",
              n->leaks - before, n->leaks, NCCL_LEAKS_MAX);
}

/* Return whether NCCL makes a communicator from an id, and not by a split. */
static bool by_id(const mgrid_comm_spec *spec) {
  return mgrid_nccl_makes(spec->backend) && !spec->parent;
}

/* Wait until the GPU is idle, at most as long as the longest deadline of the creations. */
static mgrid_outcome wait_idle(nccl_backend *n, size_t count, const mgrid_comm_spec *spec,
                               mgrid_error *err) {
  const char *first = NULL;
  double longest = 0;
  for (size_t i = 0; i < count; i++) {
    if (!by_id(&spec[i])) continue;
    if (!first) first = spec[i].name;
    if (mgrid_nccl_patience(n, &spec[i]) > longest) longest = mgrid_nccl_patience(n, &spec[i]);
  }
  return first ? mgrid_nccl_idle(n, longest, first, err) : MGRID_OK;
}

static bool has_windows(const mgrid_comm_spec *spec) {
  return spec->options->windows || spec->options->device;
}

/* Create all communicators that are prepared, then register their windows, in schedule order. */
static mgrid_outcome make_all(nccl_backend *n, size_t count, flight *f, mgrid_error *err) {
  mgrid_outcome s = create_all(n, count, f, err);
  for (size_t i = 0; i < count && !s; i++)
    if (f[i].spec) s = mgrid_nccl_finish(n, f[i].spec, f[i].made, err);
  for (size_t i = 0; i < count; i++) f[i].unregistered = f[i].spec && has_windows(f[i].spec);
  for (size_t i = 0; i < count && !s; i++) {
    if (f[i].unregistered) s = mgrid_nccl_register_windows(n, f[i].spec, f[i].made, err);
    f[i].unregistered &= s != MGRID_OK;
  }
  return s;
}

/* Agree whether all ranks have an idle GPU and their ids. NCCL is called only after that, because a
** creation that blocks cannot be cancelled. */
static mgrid_outcome all_prepared(nccl_backend *n, mgrid_outcome mine) {
  mgrid_error told = MGRID_ERROR_INIT;
  n->after = false; /* the phase of the creation does not end with this call */
  mgrid_status s = mgrid_verdict(&n->base, mine, NULL, &told);
  n->after = n->creates = true;
  mgrid_error_clear(&told); /* the verdict after the creation reports this error */
  return mine ? mine : s ? MGRID_GAVE_UP : MGRID_OK;
}

/* Let the carrier create the communicators of families that ask for its backend. Do so even after a
** failure: MPI has no deadline, and other members would wait forever. */
static mgrid_outcome create_carried(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec,
                                    void **native, mgrid_error *err) {
  return n->carrier->ops->create(n->carrier, nspecs, spec, native, err);
}

mgrid_outcome mgrid_nccl_create(mgrid_backend *b, size_t nspecs, const mgrid_comm_spec *spec,
                                void **native, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_error why = MGRID_ERROR_INIT;

  n->carry->phase(n->carrier, 2 * b->epoch); /* even numbers are for creation, odd ones for use */
  n->begun = mgrid_now();
  n->after = n->creates = true;
  if (b->whole) {
    mgrid_outcome carried = create_carried(n, nspecs, spec, native, &why);
    mgrid_outcome split = split_all(n, nspecs, spec, native, carried ? NULL : &why);
    if (carried || split) mgrid_error_pass(err, &why);
    return carried ? carried : split;
  }
  flight *f = calloc(nspecs + 1, sizeof *f);
  mgrid_outcome s = f ? MGRID_OK : mgrid_oom(&why);

  /* the trainer may have set another device in this thread */
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e != cudaSuccess && !s) s = mgrid_cuda_failed(n, &why, e, GPU_CALL("SetDevice"), "");
  if (!s) s = wait_idle(n, nspecs, spec, &why);
  for (size_t i = 0; i < nspecs && !s; i++)
    if (by_id(&spec[i])) s = create_prepare(n, &spec[i], &f[i], &why);
  mgrid_outcome carried = create_carried(n, nspecs, spec, native, s ? NULL : &why);
  if (!s) s = carried;
  if (s) tell_all(n, nspecs, spec, f);
  bool here = s != MGRID_OK;
  s = all_prepared(n, s);
  bool elsewhere = s != MGRID_OK && !here;
  if (!s) s = make_all(n, nspecs, f, &why);
  if (s && !here && !elsewhere) {
    s = mgrid_nccl_whose(n, s);
    /* this comes before the first abort: a member may notice the abort before it gets the notice */
    tell_all(n, nspecs, spec, f);
  }
  if (s && f) create_give_up(n, nspecs, f);
  /* return incomplete communicators, too: they are aborted after the verdict, so that the verdict
  ** does not wait for their aborts */
  for (size_t i = 0; f && i < nspecs; i++) {
    free(f[i].ids);
    if (!f[i].made) continue;
    f[i].made->lost = s != MGRID_OK;
    mgrid_nccl_keep(n, f[i].made);
    native[i] = f[i].made;
  }
  free(f);
  if (!s) s = split_parents(n, nspecs, spec, native, &why);
  if (s) mgrid_error_pass(err, &why);
  return s;
}

mgrid_outcome mgrid_nccl_create_one(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm **made,
                                    mgrid_error *err) {
  flight f = { 0 };
  n->begun = mgrid_now();
  mgrid_outcome s = create_prepare(n, spec, &f, err);
  if (!s) s = make_all(n, 1, &f, err);
  free(f.ids);
  if (s) {
    create_give_up(n, 1, &f);
    if (f.made) mgrid_nccl_abort_one(n, f.made);
    f.made = NULL;
  }
  *made = f.made;
  return s;
}
