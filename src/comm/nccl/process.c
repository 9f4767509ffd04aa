/* SPDX-License-Identifier: MIT
**
** process.c - the parts of the backend that need no communicator: errors of NCCL and CUDA, notices
** to other ranks, a deadline for calls that block, NCCL's environment, the limit of open files, and
** the GPU of this rank.
*/
#include "comm/nccl/nccl.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ======================================================== errors and notices */

mgrid_status mgrid_nccl_failed(const nccl_backend *n, mgrid_error *err, ncclResult_t r,
                               const char *call, const char *name) {
  const char *detail = n->lib.GetLastError ? n->lib.GetLastError(NULL) : "";
  return mgrid_fail(err, MGRID_BACKEND, MAKER ": %s%s%s: %s%s%.300s%s", call, *name ? " for " : "",
                    name, n->lib.GetErrorString(r), detail && *detail ? " (" : "",
                    detail ? detail : "", detail && *detail ? ")" : "");
}

mgrid_status mgrid_cuda_failed(const nccl_backend *n, mgrid_error *err, cudaError_t r,
                               const char *call, const char *name) {
  return mgrid_fail(err, MGRID_BACKEND, MAKER ": %s%s%s on GPU %d: %s (%s)", call,
                    *name ? " for " : "", name, n->device, n->lib.cudaGetErrorName(r),
                    n->lib.cudaGetErrorString(r));
}

mgrid_outcome mgrid_nccl_gave_up(int64_t who, mgrid_error *err) {
  mgrid_fail(err, MGRID_OTHER_RANK, MAKER ": rank %" PRId64 " gave up", who);
  return MGRID_GAVE_UP;
}

bool mgrid_nccl_lost(nccl_backend *n, const char *name, mgrid_error *err) {
  const double now = mgrid_now(), often = 0.1;
  const mgrid_survival_ops *ops = n->carrier->ops->survival;
  if (!n->creates || !ops || now < n->asked + often) return false;
  n->asked = now;
  if (!ops->hurt(n->carrier)) return false;
  mgrid_fail(err, MGRID_LOST_RANK, MAKER ": a rank was lost while %s was made", name);
  return true;
}

void mgrid_nccl_tell(nccl_backend *n, const mgrid_comm_spec *spec) {
  for (int64_t p = 0; p < spec->size; p++) n->carry->tell(n->carrier, spec->ranks[p]);
}

void mgrid_nccl_tell_world(nccl_backend *n) {
  for (int64_t r = 0; r < n->base.world; r++) n->carry->tell(n->carrier, r);
}

/* ========================================================== calls that block */

/* A call that blocks runs in a thread, and the caller waits for the thread. If the call does not
** end by its deadline, nothing can end it: what `ud` points to is never freed, and the thread is
** left behind. */

enum { RUNS, DONE, LEFT };
#define GRACE_SECONDS 0.2

typedef struct watch {
  nccl_library lib;
  int device;
  ncclResult_t (*call)(const nccl_library *lib, void *ud);
  void *ud;
  ncclResult_t result;
  /* the thread sets DONE, the waiting caller sets LEFT; the later of the two frees this struct */
  atomic_int state;
} watch;

static void *process_run(void *ud) {
  watch *w = ud;
  w->result = w->lib.cudaSetDevice(w->device) == cudaSuccess ? w->call(&w->lib, w->ud)
                                                             : ncclUnhandledCudaError;
  if (atomic_exchange(&w->state, DONE) == LEFT) free(w);
  return NULL;
}

typedef struct watching {
  watch *w;
  nccl_backend *n; /* NULL: wait only for the end of the call */
  const char *name;
  mgrid_error *err;
} watching;

/* An mgrid_look: whether the call has returned. */
static mgrid_outcome has_returned(void *ud) {
  const watching *x = ud;
  if (atomic_load(&x->w->state) == DONE) return MGRID_OK;
  return x->n && mgrid_nccl_lost(x->n, x->name, x->err) ? MGRID_LOST_RANK : MGRID_NOT_YET;
}

mgrid_outcome mgrid_nccl_watch(nccl_backend *n, double seconds, bool listen,
                               ncclResult_t (*call)(const nccl_library *lib, void *ud), void *ud,
                               const char *what, const char *name, bool *left_behind,
                               mgrid_error *err) {
  pthread_t thread;
  watch *w = calloc(1, sizeof *w);

  *left_behind = false;
  if (!w) return mgrid_oom(err);
  w->lib = n->lib, w->device = n->device, w->call = call, w->ud = ud;
  if (pthread_create(&thread, NULL, process_run, w) != 0) {
    char why[MGRID_ALLOWED];
    free(w);
    return mgrid_fail(err, MGRID_BACKEND, MAKER ": no thread for %s of %s%s", what, name,
                      mgrid_allowed(MGRID_SCARCE_THREADS, why));
  }
  int64_t who;
  watching x = { w, listen ? n : NULL, name, err };
  mgrid_outcome outcome =
      mgrid_wait(has_returned, &x, mgrid_now() + seconds, listen ? n->carrier : NULL, &who);
  x.n = NULL;
  /* the call may be about to return: then do not leave it behind */
  if (outcome == MGRID_GAVE_UP || outcome == MGRID_LOST_RANK)
    mgrid_wait(has_returned, &x, mgrid_now() + GRACE_SECONDS, NULL, NULL);
  if (outcome != MGRID_OK) pthread_detach(thread);
  if (outcome != MGRID_OK && atomic_exchange(&w->state, LEFT) == RUNS) {
    *left_behind = true;
    n->leaks++;
    if (outcome == MGRID_GAVE_UP) return mgrid_nccl_gave_up(who, err);
    if (outcome == MGRID_LOST_RANK) return outcome;
    return mgrid_fail(
        err, MGRID_TIMED_OUT,
        MAKER
        ": the blocking call %s of %s did not end within %.3g seconds and cannot be cancelled; end "
        "the process",
        what, name, seconds);
  }
  if (outcome == MGRID_OK) pthread_join(thread, NULL);
  ncclResult_t r = w->result;
  free(w);

  /* report the notice even if the call has ended now, because the carrier returns a notice only
  ** once */
  if (outcome == MGRID_GAVE_UP) return mgrid_nccl_gave_up(who, err);
  if (outcome == MGRID_LOST_RANK) return outcome;
  return mgrid_nccl_is_error(r) ? mgrid_nccl_failed(n, err, r, what, name) : MGRID_OK;
}

/* An mgrid_look that only waits. */
static mgrid_outcome never(void *ud) {
  (void)ud;
  return MGRID_NOT_YET;
}

/* A creation may have failed on this rank because another rank gave up, whose notice is still on
** its way. So wait a moment for a notice before this rank notifies others. If none arrives, this
** rank is the first that failed. */
mgrid_outcome mgrid_nccl_whose(nccl_backend *n, mgrid_outcome s) {
  const double moment = 0.1; /* seconds */
  int64_t who;
  if (s / 100 != MGRID_BACKEND / 100) return s;
  return mgrid_wait(never, NULL, mgrid_now() + moment, n->carrier, &who) == MGRID_GAVE_UP
             ? MGRID_GAVE_UP
             : s;
}

/* =========================================================== the environment */

/* NCCL's variables, of the environment and of files, override fields of ncclConfig_t. NCCL reads
** the files only when it makes its first unique id or communicator. That is too late for this
** backend, so it reads them itself. */

/* The variables that override a field of ncclConfig_t (envConfigOverride in NCCL's init.cc), and
** NCCL_HOSTID, NCCL's name of this node. */
static const char *const overriding[] = {
  "NCCL_COMM_BLOCKING",
  "NCCL_MAX_CTAS",
  "NCCL_MIN_CTAS",
  "NCCL_CGA_CLUSTER_SIZE",
  "NCCL_NET",
  "NCCL_COLLNET_ENABLE",
  "NCCL_CTA_POLICY",
  "NCCL_NVLS_NCHANNELS",
  "NCCL_NCHANNELS_PER_NET_PEER",
  "NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE",
  "NCCL_COMM_SPLIT_SHARE_RESOURCES",
  "NCCL_COMM_SHRINK_SHARE_RESOURCES",
  "NCCL_HOSTID",
};

/* Find the first line NAME=VALUE in a file. */
static bool in_file(const char *path, const char *name, char value[NCCL_SETTING]) {
  FILE *file = fopen(path, "re");
  char line[1024];
  size_t len = strlen(name);
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    found = strncmp(line, name, len) == 0 && line[len] == '=';
    if (found) snprintf(value, NCCL_SETTING, "%.*s", NCCL_SETTING - 1, line + len + 1);
  }
  if (file) fclose(file);
  return found;
}

static bool in_home(const char *name, char value[NCCL_SETTING]) {
  const char *file = getenv("NCCL_CONF_FILE");
  struct passwd entry, *user = NULL;
  char room[1024], path[1024];
  if (file && *file) return in_file(file, name, value);
  if (getpwuid_r(getuid(), &entry, room, sizeof room, &user) != 0 || !user) return false;
  snprintf(path, sizeof path, "%s/." MAKER_SETTINGS, user->pw_dir);
  return in_file(path, name, value);
}

bool mgrid_nccl_setting(const char *name, char value[NCCL_SETTING]) {
  const char *set = getenv(name);
  if (!set) return in_home(name, value) || in_file("/etc/" MAKER_SETTINGS, name, value);
  snprintf(value, NCCL_SETTING, "%s", set);
  return true;
}

void mgrid_nccl_overridden(mgrid_text *t) {
  char value[NCCL_SETTING];
  for (size_t i = 0; i < sizeof overriding / sizeof *overriding; i++)
    if (mgrid_nccl_setting(overriding[i], value) && *value)
      mgrid_text_add(t, "%s%s=%s", t->len ? ", " : "", overriding[i], value);
}

bool mgrid_nccl_blocks(const nccl_backend *n, const mgrid_nccl_values *v) {
  char value[NCCL_SETTING];
  if (mgrid_nccl_setting("NCCL_COMM_BLOCKING", value) && *value) {
    char *end;
    long number = strtol(value, &end, 0);
    if (number == 0 || number == 1) return number == 1; /* NCCL accepts no other values */
  }
  return v->given[MGRID_NCCL_BLOCKING] ? v->number[MGRID_NCCL_BLOCKING] != 0
                                       : !n->options.nonblocking;
}

/* ================================================================ open files */

/* Return the number of open descriptors; 0 if there is no /proc. */
static int64_t open_now(void) {
  DIR *list = opendir("/proc/self/fd");
  int64_t n = 0;
  while (list && readdir(list)) n++;
  if (list) closedir(list);
  return n > 3 ? n - 3 : 0; /* do not count ".", ".." and the open folder itself */
}

/* Return how many files these communicators may open. A group may be spread over several nodes; and
** NCCL takes ranks that share a GPU for ranks of different nodes. */
static int64_t needed_by(const nccl_backend *m, size_t n, const mgrid_comm_spec *spec) {
  bool spread = m->options.share_gpu || m->local_size < m->base.world;
  int64_t files = 0;
  for (size_t i = 0; i < n; i++) {
    mgrid_demand d;
    if (spec[i].size < 2 || !mgrid_nccl_makes(spec[i].backend)) continue;
    mgrid_nccl_demand(&spec[i].options->nccl, spec[i].size, spread ? 1 : spec[i].size, false, &d);
    files += d.files;
  }
  return files;
}

/* Raise the soft limit to the hard limit. NCCL does so only in a process that serves a unique
** id. */
void mgrid_nccl_files(const nccl_backend *m, size_t n, const mgrid_comm_spec *spec) {
  struct rlimit limit;
  int64_t files = needed_by(m, n, spec), needed = open_now() + files;
  if (files == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= (rlim_t)needed)
    return;
  rlim_t was = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (was < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0)
    mgrid_log(&m->base.hooks, MGRID_LOG_INFO,
              MAKER ": the limit of open files is raised from %" PRIu64 " to %" PRIu64
                    ": communicators may need %" PRId64,
              (uint64_t)was, (uint64_t)limit.rlim_max, needed);
  if (limit.rlim_max < (rlim_t)needed)
    mgrid_log(
        &m->base.hooks, MGRID_LOG_WARN,
        MAKER
        ": communicators of rank %" PRId64 " may need %" PRId64
        " open files, and the hard limit is %" PRIu64
        ": raise it (ulimit -Hn), or let families use fewer channels (nccl = { max_ctas = ... })",
        m->base.rank, needed, (uint64_t)limit.rlim_max);
}

/* =================================================================== the GPU */

mgrid_status mgrid_nccl_choose_gpu(nccl_backend *n, mgrid_error *err) {
  const mgrid_nccl_options *o = &n->options;
  int wanted = -1, at = o->ndevices == 1 ? 0 : n->local_rank;
  if (o->ndevices > 0) {
    if (at >= o->ndevices)
      return mgrid_fail(err, MGRID_USAGE,
                        MAKER ": the list of GPUs has %d for the %d ranks of host %s", o->ndevices,
                        n->local_size, n->lib.node);
    wanted = o->devices[at];
  }
  if (wanted >= n->lib.devices || (wanted < 0 && o->ndevices > 0))
    return mgrid_fail(err, MGRID_USAGE,
                      MAKER ": rank %" PRId64 " is to use GPU %d; host %s has GPUs 0 to %d",
                      n->base.rank, wanted, n->lib.node, n->lib.devices - 1);
  n->device = wanted < 0 ? n->local_rank % n->lib.devices : wanted;
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  /* create the context; cudaSetDevice does so only since CUDA 12 */
  if (e == cudaSuccess) e = n->lib.cudaFree(NULL);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, GPU_CALL("SetDevice"), "");
}

/* -------------------------------------------------------------- one GPU, several ranks */

typedef struct gpu_use { /* the GPU of one rank */
  uint64_t node;
  char bus[32];
  /* share: ranks may share the GPU. chosen: the library chose it, by the index of the rank on its
  ** node. Not bool, because other ranks may send any byte */
  uint8_t share, chosen;
} gpu_use;

static mgrid_status find_use(const nccl_backend *n, gpu_use *u, mgrid_error *err) {
  memset(u, 0, sizeof *u);
  u->node = mgrid_machine_id();
  u->share = n->options.share_gpu;
  u->chosen = n->options.ndevices == 0;
  cudaError_t e = n->lib.cudaDeviceGetPCIBusId(u->bus, sizeof u->bus, n->device);
  return e == cudaSuccess ? MGRID_OK
                          : mgrid_cuda_failed(n, err, e, GPU_CALL("DeviceGetPCIBusId"), "");
}

static bool same_gpu(const gpu_use *a, const gpu_use *b) {
  return a->node == b->node && strcmp(a->bus, b->bus) == 0;
}

static mgrid_status process_refuse(const nccl_backend *n, const gpu_use *mine, int64_t other,
                                   mgrid_error *err) {
  int64_t low = other < n->base.rank ? other : n->base.rank,
          high = other < n->base.rank ? n->base.rank : other;
  if (mine->chosen && n->local_size > n->lib.devices)
    return mgrid_fail(err, MGRID_MISSING,
                      MAKER
                      ": host %s has %d GPU%s for %d ranks; start fewer, or let ranks share one "
                      "(--share-gpu, mgrid_nccl_options.share_gpu)",
                      n->lib.node, n->lib.devices, mgrid_s_of(n->lib.devices), n->local_size);
  return mgrid_fail(
      err, MGRID_BACKEND,
      MAKER ": ranks %" PRId64 " and %" PRId64 " both are on GPU %s of host %s; give each one of "
            "its own, or let them share it (--share-gpu, mgrid_nccl_options.share_gpu)",
      low, high, mine->bus, n->lib.node);
}

/* NCCL refuses two ranks of one node on one GPU. So let NCCL take ranks that share a GPU for ranks
** of different nodes, by its variable NCCL_HOSTID. nth: the index of this rank among the ranks on
** its GPU. Ranks of a node with the same nth stay on one node for NCCL, and use NVLink among
** themselves. */
static void set_host_id(uint64_t node, int64_t nth) {
  char host_id[64];
  if (nth == 0) return;
  snprintf(host_id, sizeof host_id, "moongrid-%016" PRIx64 "-%" PRId64, node, nth);
  setenv("NCCL_HOSTID", host_id, 0);
}

mgrid_status mgrid_nccl_check_sharing(nccl_backend *n, mgrid_error *err) {
  gpu_use mine, *all = calloc((size_t)n->base.world, sizeof *all);
  mgrid_error own = MGRID_ERROR_INIT;
  mgrid_status found = all ? find_use(n, &mine, &own) : mgrid_oom(&own);
  mgrid_status s = mgrid_verdict(n->carrier, found, &own, err);
  int64_t nth = 0; /* the argument `nth` of set_host_id */

  if (!s) s = n->carrier->ops->allgather(n->carrier, &mine, all, sizeof mine, err);
  for (int64_t r = 0; r < n->base.world && !s; r++) {
    gpu_use *other = &all[r];
    mgrid_show(other->bus, sizeof other->bus);
    bool same = r != n->base.rank && same_gpu(other, &mine);
    if (other->share != mine.share)
      s = mgrid_fail(err, MGRID_USAGE,
                     MAKER ": rank %" PRId64 " %s ranks share a GPU, rank %" PRId64 " %s",
                     n->base.rank, mine.share ? "lets" : "does not let", r,
                     other->share ? "does" : "does not");
    else if (same && !mine.share)
      s = process_refuse(n, &mine, r, err);
    nth += same && r < n->base.rank;
  }
  if (!s) set_host_id(mine.node, nth);
  free(all);
  return s;
}

/* ------------------------------------------------------------------------------ idle */

static ncclResult_t run_synchronize(const nccl_library *lib, void *ud) {
  (void)ud;
  return lib->cudaDeviceSynchronize() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

mgrid_outcome mgrid_nccl_idle(nccl_backend *n, double seconds, const char *name, mgrid_error *err) {
  bool left_behind;
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_outcome s = mgrid_nccl_watch(n, seconds, true, run_synchronize, NULL,
                                     GPU_CALL("DeviceSynchronize"), name, &left_behind, &why);
  if (left_behind) n->leaks--; /* the thread will end with the kernels */
  if (s == MGRID_TIMED_OUT)
    mgrid_error_reword(&why,
                       MAKER ": GPU %d was not idle within %.3g seconds, before %s: communicators "
                             "are not created beside running kernels, because NCCL may wait for "
                             "these (mgrid_state_revoke ends those that wait for lost ranks)",
                       n->device, seconds, name);
  if (s) mgrid_error_pass(err, &why);
  return s;
}
