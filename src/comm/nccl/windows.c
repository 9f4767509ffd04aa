/* SPDX-License-Identifier: MIT
**
** windows.c - what a family asks for besides its communicator: windows, which are memory of ncclMemAlloc that all
** members register (ncclCommWindowRegister), and a device communicator (ncclDevCommCreate). Both calls contain a
** barrier of the members, so they are made in schedule order; their results are freed in the opposite order.
*/
#include "comm/nccl/nccl.h"

#include <stdlib.h>

/* ncclDevCommRequirements, as the public header of each version has it (nccl_device/core.h): `body` alone in 2.28.7 to
** 2.28.9, `head` before it since 2.29.2, `late` after it since 2.29.7. What later versions added, NCCL takes from its own
** initializer if `head.size` ends before it. */
typedef struct device_needs {
  struct {
    size_t       size;
    unsigned int magic, version;
  } head;
  struct {
    void *resources, *teams;
    bool  lsa_multimem;
    int   barriers, lsa_barriers, rail_barriers, ll_blocks, ll_slots;
    bool  gin_force;
    int   gin_contexts, gin_signals, gin_counters;
  } body;
  struct {
    int  gin_connection;
    bool gin_exclusive_contexts;
    int  gin_queue_depth;
  } late;
} device_needs;
#define MAGIC 0xcafebeefU
enum { HEAD_SINCE = 22902, LATE_SINCE = 22907, SHORT_SINCE = 23000, GIN_CONTEXTS = 4 };

/* What NCCL's network carries (GIN) has to be asked for by its connection since 2.29.7. Before, it was made unasked. */
static mgrid_status check_network(const nccl_backend *n, const mgrid_comm_spec *spec, mgrid_error *err) {
  static const char *const carried[] = { "barriers", "gin_counters", "gin_signals", "rail_barriers" };
  const mgrid_numbers     *d = spec->options->device;
  bool                     connected = mgrid_numbers_of(d, "gin_connection") > 0, late = n->lib.version >= LATE_SINCE;
  char                     text[24];
  if (connected && !late)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "%s: 'gin_connection' of option 'device' came with NCCL 2.29.7; this is " MAKER_TITLE " %s",
                      spec->name, mgrid_nccl_library_text(n->lib.version, text));
  for (size_t i = 0; late && !connected && i < sizeof carried / sizeof *carried; i++)
    if (mgrid_numbers_of(d, carried[i]) > 0)
      return mgrid_fail(err, MGRID_UNSUPPORTED,
                        "%s: '%s' of option 'device' uses the network since NCCL 2.29.7, for which gin_connection is 1 "
                        "(between all members) or 2 (along rails)%s; this is " MAKER_TITLE " %s",
                        spec->name, carried[i], i == 0 ? "; within NVLink's reach, lsa_barriers do without" : "",
                        mgrid_nccl_library_text(n->lib.version, text));
  return MGRID_OK;
}

mgrid_status mgrid_nccl_can_furnish(const nccl_backend *n, const mgrid_comm_spec *spec, mgrid_error *err) {
  const mgrid_choice *o = spec->options;
  char                what[192];
  mgrid_status        s = MGRID_OK;
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

mgrid_status mgrid_nccl_allocate(const nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *c, mgrid_error *err) {
  const mgrid_numbers *w = spec->options->windows;
  c->free_memory = n->lib.MemFree;
  for (size_t i = 0; w && i < w->n; i++) {
    nccl_window *one = &c->window[i];
    ncclResult_t r = n->lib.MemAlloc(&one->buffer, (size_t)w->at[i].value);
    if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "ncclMemAlloc", spec->name);
    one->bytes = w->at[i].value;
    c->nwindows++;
  }
  if (spec->options->device && !(c->device_room = calloc(1, NCCL_DEVICE_BYTES))) return mgrid_oom(err);
  return MGRID_OK;
}

void mgrid_nccl_free_memory(nccl_comm *c) {
  while (c->nwindows > 0) c->free_memory(c->window[--c->nwindows].buffer);
  free(c->device_room);
  c->device_room = NULL;
}

/* ------------------------------------------------------------------------ make */

typedef struct furnish_job { /* leaked if the call does not end, because its thread still uses it */
  nccl_comm   *comm;         /* NCCL writes into it, for non-blocking ones also after the call has returned */
  nccl_window *window;
  device_needs needs;
} furnish_job;

/* Windows are symmetric: every member's starts with memory of one size. */
static ncclResult_t run_register(const nccl_library *lib, void *ud) {
  const furnish_job *j = ud;
  return lib->CommWindowRegister(j->comm->comm, j->window->buffer, (size_t)j->window->bytes, &j->window->handle,
                                 NCCL_WIN_COLL_SYMMETRIC);
}

static ncclResult_t run_device(const nccl_library *lib, void *ud) {
  furnish_job *j = ud;
  const void  *needs = lib->version < HEAD_SINCE ? (const void *)&j->needs.body : (const void *)&j->needs;
  return lib->DevCommCreate(j->comm->comm, needs, j->comm->device_room);
}

static mgrid_outcome call(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *c, const furnish_job *what,
                          ncclResult_t (*run)(const nccl_library *, void *), const char *name, mgrid_error *err) {
  double        seconds = mgrid_nccl_left(n, spec), until = mgrid_now() + seconds;
  bool          left_behind = false;
  furnish_job  *j = malloc(sizeof *j);
  mgrid_outcome s;
  if (!j) return mgrid_oom(err);
  *j = *what;
  s = mgrid_nccl_watch(n, seconds, true, run, j, name, spec->name, &left_behind, err);
  if (left_behind)
    c->comm = NULL, c->stuck = true;
  else
    free(j);
  if (!s && !c->blocking) s = mgrid_nccl_wait(n, c, until - mgrid_now(), true, name, spec->name, err);
  return s;
}

static void fill(device_needs *needs, const mgrid_numbers *d, int version) {
  size_t size = version < LATE_SINCE    ? offsetof(device_needs, late)
                : version < SHORT_SINCE ? sizeof *needs
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

mgrid_outcome mgrid_nccl_furnish(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *c, mgrid_error *err) {
  const mgrid_choice *o = spec->options;
  furnish_job         j = { .comm = c };
  mgrid_outcome       s = MGRID_OK;
  for (size_t i = 0; i < c->nwindows && !s; i++) {
    j.window = &c->window[i];
    s = call(n, spec, c, &j, run_register, "ncclCommWindowRegister", err);
    if (!s && !c->window[i].handle) /* without NVLink or cuMem, and with NCCL_LOCAL_REGISTER=0, the call does nothing */
      s = mgrid_fail(err, MGRID_UNSUPPORTED, MAKER ": ncclCommWindowRegister gave no window for '%s' of %s",
                     o->windows->at[i].name, spec->name);
  }
  if (s || !c->device_room) return s;
  fill(&j.needs, o->device, n->lib.version);
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
  out->buffer = c->window[i].buffer, out->bytes = c->window[i].bytes, out->handle = c->window[i].handle;
}

const void *mgrid_nccl_read_device(mgrid_backend *b, void *native, int *version) {
  const nccl_backend *n = (nccl_backend *)b;
  const nccl_comm    *c = mgrid_nccl_find((nccl_backend *)b, native);
  if (!c || !c->device) return NULL;
  *version = n->lib.version;
  return c->device_room;
}
