/* SPDX-License-Identifier: MIT
**
** comm.c - what one communicator needs beside the call that makes it: its ncclConfig_t, its
** windows, its deadline, the wait for calls in progress on it, and the report and suspension of its
** memory. The file also has the list of all communicators of the backend.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* =================================================================== options */

/* Set one field of an ncclConfig_t. MGRID_REFUSED: the headers do not have the field. */
static mgrid_status comm_set(ncclConfig_t *c, const mgrid_nccl_values *v, int field) {
  int n = (int)v->number[field];

  switch ((mgrid_nccl_name)field) {
  case MGRID_NCCL_BLOCKING: c->blocking = n; return MGRID_OK;
  case MGRID_NCCL_CGA_CLUSTER_SIZE: c->cgaClusterSize = n; return MGRID_OK;
  case MGRID_NCCL_MAX_CTAS: c->maxCTAs = n; return MGRID_OK;
  case MGRID_NCCL_MIN_CTAS: c->minCTAs = n; return MGRID_OK;
  case MGRID_NCCL_NET_NAME: c->netName = v->net_name; return MGRID_OK;
  case MGRID_NCCL_SPLIT_SHARE: c->splitShare = n; return MGRID_OK;
#if NCCL_VERSION_CODE >= 22600
  case MGRID_NCCL_TRAFFIC_CLASS: c->trafficClass = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 22700
  case MGRID_NCCL_COLLNET_ENABLE: c->collnetEnable = n; return MGRID_OK;
  case MGRID_NCCL_CTA_POLICY: c->CTAPolicy = n; return MGRID_OK;
  case MGRID_NCCL_SHRINK_SHARE: c->shrinkShare = n; return MGRID_OK;
  case MGRID_NCCL_NVLS_CTAS: c->nvlsCTAs = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 22800
  case MGRID_NCCL_N_CHANNELS_PER_NET_PEER: c->nChannelsPerNetPeer = n; return MGRID_OK;
  case MGRID_NCCL_NVLINK_CENTRIC_SCHED: c->nvlinkCentricSched = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 22900
  case MGRID_NCCL_GRAPH_USAGE_MODE: c->graphUsageMode = n; return MGRID_OK;
  case MGRID_NCCL_NUM_RMA_CTX: c->numRmaCtx = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 23000
  case MGRID_NCCL_MAX_P2P_PEERS: c->maxP2pPeers = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 23007
  case MGRID_NCCL_GRAPH_STREAM_ORDERING: c->graphStreamOrdering = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 23100
  case MGRID_NCCL_HOST_CFT_MODE: c->hostCftMode = n; return MGRID_OK;
  case MGRID_NCCL_LAUNCH_ORDER_IMPLICIT: c->launchOrderImplicit = n; return MGRID_OK;
  case MGRID_NCCL_NUM_RMA_SIG: c->numRmaSig = n; return MGRID_OK;
  case MGRID_NCCL_RMA_EAGER_INIT: c->rmaEagerInit = n; return MGRID_OK;
#endif
#if NCCL_VERSION_CODE >= 23200
  case MGRID_NCCL_NVLS_HOST_MODE: c->nvlsHostMode = n; return MGRID_OK;
#endif
  default: return MGRID_REFUSED;
  }
}

/* Set the fields for which the family has an option. Refuse those that the headers or the running
** NCCL do not have, because NCCL would ignore them without an error. */
static mgrid_status set_all(const nccl_backend *n, const mgrid_nccl_values *v, const char *name,
                            ncclConfig_t *c, mgrid_error *err) {
  char text[24], since[24];
  for (int i = 0; i < MGRID_NCCL_FIELDS; i++) {
    if (!v->given[i] || i == MGRID_NCCL_OPTIONAL) continue;
    const mgrid_nccl_field *f = &mgrid_nccl_fields[i];
    bool old = n->lib.version < f->version;
    if (!old && comm_set(c, v, i) == MGRID_OK) continue;
    if (v->number[MGRID_NCCL_OPTIONAL]) continue;
    mgrid_nccl_library_text(old ? n->lib.version : NCCL_VERSION_CODE, text);
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "%s: nccl field '%s' came with NCCL %s; %s %s, which would ignore it (say "
                      "optional = true to leave it out there)",
                      name, f->name, mgrid_nccl_library_text(f->version, since),
                      old ? "this is " MAKER_TITLE : "moongrid was built with the headers of",
                      text);
  }
  if (v->number[MGRID_NCCL_CTA_POLICY] > 2 && n->lib.version < 23000)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "%s: nccl field 'cta_policy' is 0 to 2 before NCCL 2.30, not %" PRId64, name,
                      v->number[MGRID_NCCL_CTA_POLICY]);
  return MGRID_OK;
}

/* Set both bounds of the CTAs, or neither: NCCL refuses a lower bound without an upper one. */
static void set_both_bounds(ncclConfig_t *c, const mgrid_nccl_values *v) {
  bool min = v->given[MGRID_NCCL_MIN_CTAS], max = v->given[MGRID_NCCL_MAX_CTAS];
  if (min && !max) c->maxCTAs = 64;
  if (max && !min) c->minCTAs = 1;
}

static mgrid_status make_config(const nccl_backend *n, const mgrid_comm_spec *spec,
                                const char *name, ncclConfig_t *config, mgrid_error *err) {
  static const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
  const mgrid_nccl_values *v = &spec->options->nccl;
  *config = initial;
  config->blocking = !n->options.nonblocking;
  mgrid_status s = set_all(n, v, spec->name, config, err);
  if (s) return s;
  set_both_bounds(config, v);
#if NCCL_VERSION_CODE >= 22703
  if (n->lib.version >= 22703) config->commName = name;
#else
  (void)name;
#endif
  return MGRID_OK;
}

static double mib(int64_t bytes) { return (double)bytes / (1 << 20); }

mgrid_status mgrid_nccl_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                              mgrid_error *err) {
  nccl_backend *m = (nccl_backend *)b;
  int64_t bytes = m->bytes;
  mgrid_status s = MGRID_OK;

  if (m->leaks >= NCCL_LEAKS_MAX)
    return mgrid_fail(
        err, MGRID_LIMIT,
        MAKER
        ": failed creations have left %d threads and sockets of NCCL in this process, which it "
        "never ends; restart the process",
        m->leaks);
  for (size_t i = 0; i < n && !s; i++) {
    ncclConfig_t config;
    if (spec[i].size == 0) continue; /* this rank is not a member */
    if (!mgrid_nccl_makes(spec[i].backend)) {
      s = m->carrier->ops->check(m->carrier, 1, &spec[i], err);
      continue;
    }
    s = make_config(m, &spec[i], NULL, &config, err);
    if (!s) s = mgrid_nccl_can_register(m, &spec[i], err);
    if (!s) bytes += mgrid_nccl_memory(&spec[i].options->nccl, spec[i].size);
    if (!s && m->options.budget > 0 && bytes > m->options.budget)
      s = mgrid_fail(err, MGRID_LIMIT,
                     "%s would bring the communicators of rank %" PRId64
                     " to %.0f MiB of GPU memory, the budget is %.0f MiB; %s",
                     spec[i].name, b->rank, mib(bytes), mib(m->options.budget),
                     /* true: this is the communicator of moves, for which no family has options */
                     spec[i].ranks == m->move.ranks
                         ? "a larger budget has room for it, or MPI moves, where it is CUDA-aware"
                         : "fewer channels (nccl = { max_ctas = ... }) take less");
  }
  if (!s) mgrid_nccl_files(m, n, spec);
  return s;
}

/* ============================================ one communicator, and the list */

double mgrid_nccl_patience(const nccl_backend *n, const mgrid_comm_spec *spec) {
  return spec->options->asked.timeout > 0 ? spec->options->asked.timeout : n->options.timeout;
}

double mgrid_nccl_left(const nccl_backend *n, const mgrid_comm_spec *spec) {
  double seconds = mgrid_nccl_patience(n, spec);
  return n->creates ? fmax(n->begun + seconds - mgrid_now(), 0.1) : seconds;
}

mgrid_status mgrid_nccl_new(const nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm **made,
                            ncclConfig_t *config, mgrid_error *err) {
  const mgrid_nccl_values *v = &spec->options->nccl;
  nccl_comm *c = *made = calloc(1, sizeof *c);
  if (!c) return mgrid_oom(err);
  snprintf(c->name, sizeof c->name, "%s", spec->name);
  c->options = mgrid_choice_ref(spec->options);
  c->bytes = mgrid_nccl_memory(v, spec->size);
  c->blocking = mgrid_nccl_blocks(n, v);
  mgrid_status s = make_config(n, spec, c->name, config, err);
  if (!s) s = mgrid_nccl_allocate(n, spec, c, err);
  if (!s) return MGRID_OK;
  mgrid_nccl_drop(c);
  *made = NULL;
  return s;
}

void mgrid_nccl_drop(nccl_comm *made) {
  if (!made || made->stuck) return;
  mgrid_nccl_free_memory(made);
  mgrid_choice_free(made->options);
  free(made);
}

typedef struct progress { /* of a wait */
  nccl_backend *n;
  const nccl_comm *comm;
  const char *call, *name;
  bool listen;
  mgrid_error *err;
} progress;

/* An mgrid_look: MGRID_OK when nothing is in progress on the communicator. */
static mgrid_outcome in_progress(void *ud) {
  const progress *p = ud;
  ncclResult_t state = ncclSuccess, r = p->n->lib.CommGetAsyncError(p->comm->comm, &state);
  if (r == ncclSuccess) r = state;
  if (r == ncclInProgress)
    return p->listen && mgrid_nccl_lost(p->n, p->name, p->err) ? MGRID_LOST_RANK : MGRID_NOT_YET;
  return r == ncclSuccess ? MGRID_OK : mgrid_nccl_failed(p->n, p->err, r, p->call, p->name);
}

mgrid_outcome mgrid_nccl_wait(nccl_backend *n, const nccl_comm *c, double seconds, bool listen,
                              const char *call, const char *name, mgrid_error *err) {
  int64_t who;
  progress p = { n, c, call, name, listen, err };
  mgrid_outcome outcome =
      mgrid_wait(in_progress, &p, mgrid_now() + seconds, listen ? n->carrier : NULL, &who);
  if (outcome == MGRID_GAVE_UP) return mgrid_nccl_gave_up(who, err);
  if (outcome == MGRID_LATE)
    return mgrid_fail(err, MGRID_TIMED_OUT, MAKER ": %s for %s did not end within %.3g seconds",
                      call, name, seconds);
  return outcome;
}

mgrid_outcome mgrid_nccl_wait_out(nccl_backend *n, nccl_comm *c, double until, const char *call,
                                  mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  double left = until - mgrid_now();
  mgrid_outcome s = mgrid_nccl_wait(n, c, left > 0.1 ? left : 0.1, false, call, c->name, &why);
  if (s == MGRID_TIMED_OUT) return mgrid_error_pass(err, &why);
  mgrid_error_clear(&why);
  return MGRID_OK;
}

mgrid_status mgrid_nccl_finish(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *made,
                               mgrid_error *err) {
  const nccl_library *lib = &n->lib;
  int count = -1, rank = -1, device = -1, low = 0, high = 0;
  ncclResult_t r = lib->CommCount(made->comm, &count);
  if (r == ncclSuccess) r = lib->CommUserRank(made->comm, &rank);
  if (r == ncclSuccess) r = lib->CommCuDevice(made->comm, &device);
  if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "ncclCommCount", spec->name);
  if (count != spec->size || rank != spec->position || device != n->device)
    return mgrid_fail(err, MGRID_UNPROVED,
                      MAKER ": %s made rank %" PRId64 " %d of %d on GPU %d instead of %" PRId64
                            " of %" PRId64 " on GPU %d",
                      spec->name, n->base.rank, rank, count, device, spec->position, spec->size,
                      n->device);
  cudaError_t e = lib->cudaDeviceGetStreamPriorityRange(&low, &high);
  if (e == cudaSuccess)
    e = lib->cudaStreamCreateWithPriority(&made->stream, cudaStreamNonBlocking,
                                          spec->options->asked.high_priority ? high : low);
  return e == cudaSuccess
             ? MGRID_OK
             : mgrid_cuda_failed(n, err, e, GPU_CALL("StreamCreateWithPriority"), spec->name);
}

/* ------------------------------------------------------------------------ the list */

void mgrid_nccl_keep(nccl_backend *n, nccl_comm *made) {
  made->next = n->made;
  n->made = made;
  n->bytes += made->bytes;
}

nccl_comm *mgrid_nccl_find(nccl_backend *n, const void *native) {
  nccl_comm *c = n->made;
  while (c && c != native) c = c->next;
  return c;
}

static void unlist(nccl_backend *n, const nccl_comm *c) {
  nccl_comm **at = &n->made;
  while (*at && *at != c) at = &(*at)->next;
  if (*at) *at = c->next;
  n->bytes -= c->bytes;
}

void mgrid_nccl_forget(nccl_backend *n, nccl_comm *c) {
  unlist(n, c);
  mgrid_nccl_drop(c);
}

void mgrid_nccl_adopt(mgrid_backend *b, mgrid_backend *from, void *native) {
  unlist((nccl_backend *)from, native);
  mgrid_nccl_keep((nccl_backend *)b, native);
}

void mgrid_nccl_lose(mgrid_backend *b, void *native) {
  nccl_comm *c = mgrid_nccl_find((nccl_backend *)b, native);
  if (c) c->lost = true;
}

/* =================================================================== windows */

/* A family may ask for windows and for a device communicator. Windows are memory of ncclMemAlloc
** that all members register (ncclCommWindowRegister). A device communicator is made by
** ncclDevCommCreate. Both calls contain a barrier of the members, so they are made in schedule
** order, and undone in the opposite order. */

/* ncclDevCommRequirements, as the public header of each version has it (nccl_device/core.h). 2.28.7
** to 2.28.9 have only `body`. Since 2.29.2 `head` stands before it, since 2.29.7 `late` after it.
** Fields of later versions are beyond `head.size`, so NCCL uses its own initial values for them. */
typedef struct device_needs {
  struct {
    size_t size;
    unsigned int magic, version;
  } head;
  struct {
    void *resources, *teams;
    bool lsa_multimem;
    int barriers, lsa_barriers, rail_barriers, ll_blocks, ll_slots;
    bool gin_force;
    int gin_contexts, gin_signals, gin_counters;
  } body;
  struct {
    int gin_connection;
    bool gin_exclusive_contexts;
    int gin_queue_depth;
  } late;
} device_needs;
#define MAGIC 0xcafebeefU
enum { HEAD_SINCE = 22902, LATE_SINCE = 22907, SHORT_SINCE = 23000, GIN_CONTEXTS = 4 };

/* Check the options that need the network (GIN). Since 2.29.7 a family must ask for the connection
** of GIN; before, NCCL always made it. */
static mgrid_status check_network(const nccl_backend *n, const mgrid_comm_spec *spec,
                                  mgrid_error *err) {
  static const char *const carried[] = { "barriers", "gin_counters", "gin_signals",
                                         "rail_barriers" };
  const mgrid_numbers *d = spec->options->device;
  bool connected = mgrid_numbers_of(d, "gin_connection") > 0, late = n->lib.version >= LATE_SINCE;
  char text[24];
  if (connected && !late)
    return mgrid_fail(
        err, MGRID_UNSUPPORTED,
        "%s: 'gin_connection' of option 'device' came with NCCL 2.29.7; this is " MAKER_TITLE " %s",
        spec->name, mgrid_nccl_library_text(n->lib.version, text));
  for (size_t i = 0; late && !connected && i < sizeof carried / sizeof *carried; i++)
    if (mgrid_numbers_of(d, carried[i]) > 0)
      return mgrid_fail(err, MGRID_UNSUPPORTED,
                        "%s: '%s' of option 'device' uses the network since NCCL 2.29.7, for which "
                        "gin_connection is 1 (between all members) or 2 (along rails)%s; this "
                        "is " MAKER_TITLE " %s",
                        spec->name, carried[i],
                        i == 0 ? "; within NVLink's reach, lsa_barriers do without" : "",
                        mgrid_nccl_library_text(n->lib.version, text));
  return MGRID_OK;
}

mgrid_status mgrid_nccl_can_register(const nccl_backend *n, const mgrid_comm_spec *spec,
                                     mgrid_error *err) {
  const mgrid_choice *o = spec->options;
  char what[192];
  mgrid_status s = MGRID_OK;
  if (o->windows) {
    snprintf(what, sizeof what, "%.150s: option 'windows'", spec->name);
    s = MGRID_NCCL_HAS(&n->lib, CommWindowRegister, what, err);
    if (!s) s = MGRID_NCCL_HAS(&n->lib, MemAlloc, what, err);
  }
  if (!s && o->device) {
    snprintf(what, sizeof what, "%.150s: option 'device'", spec->name);
    s = MGRID_NCCL_HAS(&n->lib, DevCommCreate, what, err);
  }
  if (!s && o->device) s = check_network(n, spec, err);
  return s;
}

mgrid_status mgrid_nccl_allocate(const nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *c,
                                 mgrid_error *err) {
  const mgrid_numbers *w = spec->options->windows;
  c->free_memory = n->lib.MemFree;
  for (size_t i = 0; w && i < w->n; i++) {
    nccl_window *one = &c->window[i];
    ncclResult_t r = n->lib.MemAlloc(&one->buffer, (size_t)w->at[i].value);
    if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "ncclMemAlloc", spec->name);
    one->bytes = w->at[i].value;
    c->nwindows++;
  }
  if (spec->options->device && !(c->device_room = calloc(1, NCCL_DEVICE_BYTES)))
    return mgrid_oom(err);
  return MGRID_OK;
}

void mgrid_nccl_free_memory(nccl_comm *c) {
  while (c->nwindows > 0) c->free_memory(c->window[--c->nwindows].buffer);
  free(c->device_room);
  c->device_room = NULL;
}

/* ------------------------------------------------------------------------ make */

/* One call; not freed if it does not end, because its thread still uses it. */
typedef struct window_job {
  /* NCCL writes into *comm, for non-blocking communicators also after the call has returned */
  nccl_comm *comm;
  nccl_window *window;
  device_needs needs;
} window_job;

/* Register a window. Windows are symmetric: every member registers memory of one size. */
static ncclResult_t run_register(const nccl_library *lib, void *ud) {
  const window_job *j = ud;
  return lib->CommWindowRegister(j->comm->comm, j->window->buffer, (size_t)j->window->bytes,
                                 &j->window->handle, NCCL_WIN_COLL_SYMMETRIC);
}

static ncclResult_t run_device(const nccl_library *lib, void *ud) {
  window_job *j = ud;
  const void *needs = lib->version < HEAD_SINCE ? (const void *)&j->needs.body
                                                : (const void *)&j->needs;
  return lib->DevCommCreate(j->comm->comm, needs, j->comm->device_room);
}

static mgrid_outcome call(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *c,
                          const window_job *what, ncclResult_t (*run)(const nccl_library *, void *),
                          const char *name, mgrid_error *err) {
  double seconds = mgrid_nccl_left(n, spec), until = mgrid_now() + seconds;
  bool left_behind = false;
  window_job *j = malloc(sizeof *j);
  mgrid_outcome s;
  if (!j) return mgrid_oom(err);
  *j = *what;
  s = mgrid_nccl_watch(n, seconds, true, run, j, name, spec->name, &left_behind, err);
  if (left_behind)
    c->comm = NULL, c->stuck = true;
  else
    free(j);
  if (!s && !c->blocking)
    s = mgrid_nccl_wait(n, c, until - mgrid_now(), true, name, spec->name, err);
  return s;
}

static void comm_fill(device_needs *needs, const mgrid_numbers *d, int version) {
  size_t size = version < LATE_SINCE ? offsetof(device_needs, late)
                : version < SHORT_SINCE
                    ? sizeof *needs
                    : offsetof(device_needs, late.gin_queue_depth) + sizeof(int);
  *needs = (device_needs){ .head = { size, MAGIC, (unsigned)version } };
  needs->body.lsa_multimem = mgrid_numbers_of(d, "multimem") != 0;
  needs->body.barriers = (int)mgrid_numbers_of(d, "barriers");
  needs->body.lsa_barriers = (int)mgrid_numbers_of(d, "lsa_barriers");
  needs->body.rail_barriers = (int)mgrid_numbers_of(d, "rail_barriers");
  needs->body.gin_contexts = GIN_CONTEXTS;
  needs->body.gin_signals = (int)mgrid_numbers_of(d, "gin_signals");
  needs->body.gin_counters = (int)mgrid_numbers_of(d, "gin_counters");
  needs->late.gin_connection = (int)mgrid_numbers_of(d, "gin_connection");
}

mgrid_outcome mgrid_nccl_register_windows(nccl_backend *n, const mgrid_comm_spec *spec,
                                          nccl_comm *c, mgrid_error *err) {
  const mgrid_choice *o = spec->options;
  window_job j = { .comm = c };
  mgrid_outcome s = MGRID_OK;
  for (size_t i = 0; i < c->nwindows && !s; i++) {
    j.window = &c->window[i];
    s = call(n, spec, c, &j, run_register, "ncclCommWindowRegister", err);
    /* without NVLink or cuMem, or with NCCL_LOCAL_REGISTER=0, the call succeeds and does nothing */
    if (!s && !c->window[i].handle)
      s = mgrid_fail(err, MGRID_UNSUPPORTED,
                     MAKER ": ncclCommWindowRegister gave no window for '%s' of %s",
                     o->windows->at[i].name, spec->name);
  }
  if (s || !c->device_room) return s;
  comm_fill(&j.needs, o->device, n->lib.version);
  s = call(n, spec, c, &j, run_device, "ncclDevCommCreate", err);
  c->device = s == MGRID_OK;
  return s;
}

/* ------------------------------------------------------------------- end, use */

void mgrid_nccl_clear(nccl_backend *n, nccl_comm *c) {
  if (c->device) n->lib.DevCommDestroy(c->comm, c->device_room);
  c->device = false;
  for (size_t i = c->nwindows; i > 0; i--) {
    if (c->window[i - 1].handle) n->lib.CommWindowDeregister(c->comm, c->window[i - 1].handle);
    c->window[i - 1].handle = NULL;
  }
}

void mgrid_nccl_read_window(mgrid_backend *b, void *native, size_t i, mgrid_nccl_window *out) {
  const nccl_comm *c = mgrid_nccl_find((nccl_backend *)b, native);
  if (!c || i >= c->nwindows) return;
  out->buffer = c->window[i].buffer, out->bytes = c->window[i].bytes,
  out->handle = c->window[i].handle;
}

const void *mgrid_nccl_read_device(mgrid_backend *b, void *native, int *version) {
  const nccl_backend *n = (nccl_backend *)b;
  const nccl_comm *c = mgrid_nccl_find((nccl_backend *)b, native);
  if (!c || !c->device) return NULL;
  *version = n->lib.version;
  return c->device_room;
}

/* ==================================================================== memory */

/* values of nccl.h since 2.29.7 */
enum { SUSPEND_MEMORY = 1, STAT_SUSPENDABLE = 0, STAT_PERSISTENT = 2, STAT_TOTAL = 3 };

static ncclResult_t run_suspend(const nccl_library *lib, void *ud) {
  return lib->CommSuspend(ud, SUSPEND_MEMORY);
}
static ncclResult_t run_resume(const nccl_library *lib, void *ud) { return lib->CommResume(ud); }

/* Suspend or resume one communicator: give its GPU memory back, or take it again. This is a call
** over its members. */
static mgrid_outcome suspend_one(nccl_backend *n, nccl_comm *c, bool resume, mgrid_error *err) {
  const char *what = resume ? "ncclCommResume" : "ncclCommSuspend";
  double seconds = c->options->asked.timeout > 0 ? c->options->asked.timeout : n->options.timeout;
  bool left_behind = false;
  mgrid_outcome s = mgrid_nccl_watch(n, seconds, true, resume ? run_resume : run_suspend, c->comm,
                                     what, c->name, &left_behind, err);
  if (left_behind) c->comm = NULL, c->stuck = true;
  if (s)
    c->lost = n->broken = true;
  else
    c->suspended = !resume;
  return s;
}

mgrid_outcome mgrid_nccl_resume_one(nccl_backend *n, nccl_comm *c, mgrid_error *err) {
  return suspend_one(n, c, true, err);
}

mgrid_outcome mgrid_nccl_suspend(mgrid_backend *b, size_t count, void **native, bool resume,
                                 bool dry, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_outcome s = MGRID_OK;
  n->used = true;
  for (size_t i = 0; i < count && !s; i++) {
    nccl_comm *c = mgrid_nccl_find(n, native[i]);
    if (!c || c->suspended != resume) continue;
    if (dry) {
      s = resume ? MGRID_NCCL_HAS(&n->lib, CommResume, "to resume a state", err)
                 : MGRID_NCCL_HAS(&n->lib, CommSuspend, "to suspend a state", err);
      if (!s && (!c->comm || c->lost))
        s = mgrid_fail(err, MGRID_BACKEND, MAKER ": %s cannot be used after a failure", c->name);
    } else {
      s = suspend_one(n, c, resume, err);
    }
  }
  if (!dry && s && s != MGRID_GAVE_UP) mgrid_nccl_tell_world(n);
  return s;
}

mgrid_status mgrid_nccl_held(mgrid_backend *b, size_t count, void **native, mgrid_held_memory *sum,
                             mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  const struct {
    int stat;
    int64_t *to;
  } stats[] = { { STAT_TOTAL, &sum->total },
                { STAT_SUSPENDABLE, &sum->suspendable },
                { STAT_PERSISTENT, &sum->persistent } };

  for (size_t i = 0; i < count; i++) {
    const nccl_comm *c = mgrid_nccl_find(n, native[i]);
    if (!c || !c->comm) continue;
    mgrid_status s =
        MGRID_NCCL_HAS(&n->lib, CommMemStats, "the GPU memory that a state holds", err);
    if (s) return s;
    for (size_t k = 0; k < sizeof stats / sizeof *stats; k++) {
      uint64_t value = 0;
      ncclResult_t r = n->lib.CommMemStats(c->comm, stats[k].stat, &value);
      if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "ncclCommMemStats", c->name);
      *stats[k].to += (int64_t)value;
    }
    sum->communicators++;
    sum->suspended += c->suspended;
  }
  return MGRID_OK;
}
