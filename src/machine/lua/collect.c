/* SPDX-License-Identifier: MIT
**
** collect.c - job:machine() makes the machine of a running job, and returns the boot id of each
** node, too. If NVML is installed, the machine has the PCI id of each GPU, and NVLink cliques.
** machine:meets(job) checks whether a job runs on the nodes of a given machine.
*/
#include "machine/lua/machine_words.h"

#include "comm/compare.h"
#include "comm/backend_open.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 64, BOOT = 40, PCI = 32, CLIQUE = 48 };

/* What each rank tells about itself. */
typedef struct seat {
  uint64_t host; /* a hash that identifies the node */
  int64_t rank;
  char name[NAME], boot[BOOT], pci[PCI], clique[CLIQUE];
} seat;

/* ----------------------------------------------------------------------- NVML */

/* The parts of NVML's public structs that are used here. */
typedef struct nvml_pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
} nvml_pci;
typedef struct nvml_fabric {
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state; /* 3: cluster and clique are known */
} nvml_fabric;

typedef struct nvml {
  int (*init)(void);
  int (*shutdown)(void);
  int (*handle)(unsigned i, void **device);
  int (*pci)(void *device, nvml_pci *out);
  int (*fabric)(void *device, nvml_fabric *out); /* old drivers do not have this function */
} nvml;

static bool collect_find(void *library, const char *name, void *to) {
  void *at = dlsym(library, name);
  memcpy(to, &at, sizeof at);
  return at != NULL;
}

/* Describe the GPU of this rank: the GPU in CUDA_VISIBLE_DEVICES if that is one number, else the
** GPU whose number is `index`, the rank's index on its node. Without NVML describe nothing. */
static void describe_gpu(seat *s, int64_t index) {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), *device = NULL;
  nvml n = { 0 };
  nvml_pci pci = { 0 };
  nvml_fabric fabric = { 0 };
  const char *seen = getenv("CUDA_VISIBLE_DEVICES");
  char *end = NULL;
  long first = seen ? strtol(seen, &end, 10) : -1;
  bool alone = seen && end != seen && first >= 0 && *end == '\0';

  if (!library) return;
  bool whole = collect_find(library, "nvmlInit_v2", &n.init)
               && collect_find(library, "nvmlShutdown", &n.shutdown)
               && collect_find(library, "nvmlDeviceGetHandleByIndex_v2", &n.handle)
               && collect_find(library, "nvmlDeviceGetPciInfo_v3", &n.pci) && n.init() == 0;
  if (whole && n.handle((unsigned)(alone ? first : index), &device) == 0
      && n.pci(device, &pci) == 0) {
    snprintf(s->pci, sizeof s->pci, "%.31s", pci.bus_id);
    bool known = collect_find(library, "nvmlDeviceGetGpuFabricInfo", &n.fabric)
                 && n.fabric(device, &fabric) == 0;
    size_t at = 0;
    bool named = false; /* a cluster id of zeros means that NVLink does not leave the node */
    for (int i = 0; i < 16; i++) named |= fabric.cluster[i] != 0;
    if (known && named && fabric.state == 3) {
      for (int i = 0; i < 16; i++)
        at += (size_t)snprintf(s->clique + at, sizeof s->clique - at, "%02x", fabric.cluster[i]);
      snprintf(s->clique + at, sizeof s->clique - at, ".%u", fabric.clique);
    }
  }
  if (whole) n.shutdown();
  dlclose(library);
}

static void describe_host(seat *s) {
  gethostname(s->name, sizeof s->name - 1);
  s->host = mgrid_machine_id();
  int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = file >= 0 ? read(file, s->boot, sizeof s->boot - 1) : 0;
  if (file >= 0) close(file);
  s->boot[n > 0 ? strcspn(s->boot, "\n") : 0] = '\0';
}

/* --------------------------------------------------------------- the machine */

/* The keys by which ranks are sorted into places: clique, then node, then rank. */
typedef struct order {
  const seat *s;
  int64_t clique, host; /* the lowest rank of the clique, and of the node */
} order;

static int collect_by_place(const void *a, const void *b) {
  const order *x = a, *y = b;
  if (x->clique != y->clique) return x->clique < y->clique ? -1 : 1;
  if (x->host != y->host) return x->host < y->host ? -1 : 1;
  return (x->s->rank > y->s->rank) - (x->s->rank < y->s->rank);
}

static int collect_by_host(const void *a, const void *b) {
  const order *x = a, *y = b;
  if (x->s->host != y->s->host) return x->s->host < y->s->host ? -1 : 1;
  return (x->s->rank > y->s->rank) - (x->s->rank < y->s->rank);
}

static int by_clique(const void *a, const void *b) {
  const order *x = a, *y = b;
  int c = strcmp(x->s->clique, y->s->clique);
  return c ? c : (x->s->rank > y->s->rank) - (x->s->rank < y->s->rank);
}

/* Sort the ranks into the order of places. Return whether cliques become a level: every rank knows
** its clique, and no node has several cliques. */
static bool collect_sort(order *o, int64_t n) {
  bool cliques = true;
  qsort(o, (size_t)n, sizeof *o, by_clique);
  for (int64_t i = 0, start = 0; i < n; i++) {
    if (strcmp(o[i].s->clique, o[start].s->clique) != 0) start = i;
    o[i].clique = o[start].s->rank;
    cliques &= o[i].s->clique[0] != '\0';
  }
  qsort(o, (size_t)n, sizeof *o, collect_by_host);
  for (int64_t i = 0, start = 0; i < n; i++) {
    if (o[i].s->host != o[start].s->host) start = i;
    o[i].host = o[start].s->rank;
    cliques &= o[i].clique == o[start].clique;
  }
  for (int64_t i = 0; i < n && !cliques; i++) o[i].clique = 0;
  qsort(o, (size_t)n, sizeof *o, collect_by_place);
  return cliques;
}

static mgrid_status collect_name_all(mgrid_machine_model *m, const order *o, int64_t n,
                                     bool cliques, mgrid_error *err) {
  size_t node = cliques;
  mgrid_status s = MGRID_OK;
  for (int64_t i = 0, host = -1, clique = -1; i < n && !s; i++) {
    if (i == 0 || o[i].host != o[i - 1].host)
      s = mgrid_machine_name_domain(m, node, ++host, o[i].s->name, err);
    if (!s && cliques && (i == 0 || o[i].clique != o[i - 1].clique))
      s = mgrid_machine_name_domain(m, 0, ++clique, o[i].s->clique, err);
    if (!s && o[i].s->pci[0]) s = mgrid_machine_name_domain(m, node + 1, i, o[i].s->pci, err);
  }
  return s;
}

/* Build the levels clique (if known), node and gpu. */
static mgrid_status collect_build(mgrid_machine_model *m, order *o, int64_t n, int64_t *counts,
                                  mgrid_error *err) {
  const mgrid_link none = { 0, 0 };
  bool cliques = collect_sort(o, n), plain = true;
  int64_t hosts = 0, nodes = 0;
  int32_t *at = NULL;
  mgrid_status s = MGRID_OK;

  for (int64_t i = 0; i < n && cliques; i++) { /* count the nodes of each clique */
    if (i == 0 || o[i].clique != o[i - 1].clique) counts[nodes++] = 0;
    counts[nodes - 1] += i == 0 || o[i].host != o[i - 1].host;
  }
  if (cliques) s = mgrid_machine_add(m, "clique", 1, &nodes, none, err);
  if (cliques && !s) s = mgrid_machine_add(m, "node", (size_t)nodes, counts, none, err);
  for (int64_t i = 0; i < n; i++) { /* count the ranks of each node */
    if (i == 0 || o[i].host != o[i - 1].host) counts[hosts++] = 0;
    counts[hosts - 1]++;
    plain &= o[i].s->rank == i;
  }
  if (!cliques && !s) s = mgrid_machine_add(m, "node", 1, &hosts, none, err);
  if (!s) s = mgrid_machine_add(m, "gpu", (size_t)hosts, counts, none, err);
  if (!s) s = collect_name_all(m, o, n, cliques, err);
  if (!s) s = mgrid_machine_finish(m, err);
  if (s || plain) return s;
  if (!(at = mgrid_realloc(NULL, NULL, 0, (size_t)n * sizeof *at))) return mgrid_oom(err);
  for (int64_t i = 0; i < n; i++) at[o[i].s->rank] = (int32_t)i;
  return mgrid_machine_set_ranks(m, n, at, err);
}

static mgrid_machine_model *model_of(const seat *all, int64_t n, mgrid_text *boots,
                                     mgrid_error *err) {
  mgrid_machine_model *m = mgrid_machine_alloc(err);
  order *o = mgrid_realloc(NULL, NULL, 0, (size_t)n * sizeof *o);
  int64_t *counts = mgrid_realloc(NULL, NULL, 0, (size_t)n * sizeof *counts);
  mgrid_status s = !m ? MGRID_NO_MEMORY : !o || !counts ? mgrid_oom(err) : MGRID_OK;
  for (int64_t i = 0; i < n && !s; i++) o[i] = (order){ &all[i], 0, 0 };
  if (!s) s = collect_build(m, o, n, counts, err);
  for (int64_t i = 0; i < n && !s; i++)
    if (i == 0 || o[i].host != o[i - 1].host) mgrid_text_add(boots, "%s\n", o[i].s->boot);
  mgrid_release(o);
  mgrid_release(counts);
  if (!s) return m;
  mgrid_machine_free(m);
  return NULL;
}

/* ------------------------------------------------------------------------ run */

/* Replace characters that a text must not contain: the bytes of another rank cannot be trusted. */
static void collect_heard(seat *s) {
  char *const text[] = { s->name, s->boot, s->pci, s->clique };
  const size_t size[] = { sizeof s->name, sizeof s->boot, sizeof s->pci, sizeof s->clique };
  for (int i = 0; i < 4; i++) {
    text[i][size[i] - 1] = '\0';
    for (char *c = text[i]; *c; c++)
      if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\\') *c = '?';
  }
}

static mgrid_status collect_exchange(mgrid_backend *b, seat **all, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  seat own = { .rank = b->rank };
  uint64_t *hosts = mgrid_realloc(NULL, NULL, 0, (size_t)b->world * sizeof *hosts);
  int64_t index = 0;
  *all = mgrid_realloc(NULL, NULL, 0, (size_t)b->world * sizeof **all);
  mgrid_status s = mgrid_meet(b, mgrid_meet_call(b, false, "machine"), err);
  if (!s) s = mgrid_verdict(b, hosts && *all ? MGRID_OK : mgrid_oom(&mine), &mine, err);
  if (!s) s = mgrid_nodes_find(b, hosts, err);
  for (int64_t r = 0; r < b->rank && !s; r++) index += hosts[r] == hosts[b->rank];
  describe_host(&own);
  describe_gpu(&own, index);
  if (!s) s = b->ops->allgather(b, &own, *all, sizeof own, err);
  for (int64_t r = 0; r < b->world && !s; r++) {
    collect_heard(&(*all)[r]);
    (*all)[r].rank = r;
  }
  mgrid_release(hosts);
  return s;
}

/* machine:meets(job) -> true | nil, message, status. Collective. */
int mgrid_lua_machine_meets(lua_State *L) {
  mgrid_error mine = MGRID_ERROR_INIT, e = MGRID_ERROR_INIT;
  const mgrid_machine_model *m = mgrid_lua_check_machine(L, 1);
  mgrid_backend *b = mgrid_lua_check_job(L, 2);
  uint64_t *hosts = mgrid_realloc(NULL, NULL, 0, (size_t)b->world * sizeof *hosts);
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  mgrid_status s = mgrid_meet(b, mgrid_meet_call(b, false, "compare the machine"), &e);
  if (!s) s = mgrid_verdict(b, hosts ? MGRID_OK : mgrid_oom(&mine), &mine, &e);
  if (!s) s = mgrid_nodes_find(b, hosts, &e);
  if (!s)
    s = mgrid_verdict(b, mgrid_machine_check_hosts(m, hosts, b->world, b->rank, name, &mine), &mine,
                      &e);
  mgrid_release(hosts);
  return s ? mgrid_lua_failure(L, &e) : (lua_pushboolean(L, true), 1);
}

/* job:machine() -> Machine, boot ids of its nodes | nil, message, status. Collective. */
int mgrid_lua_job_machine(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_text boots = { 0 };
  seat *all = NULL;
  mgrid_machine_model **m = mgrid_lua_new_machine(L);
  mgrid_backend *b = mgrid_backend_ref(mgrid_lua_check_job(L, 1));
  mgrid_status s = collect_exchange(b, &all, &e);
  if (!s && !(*m = model_of(all, b->world, &boots, &e))) s = e.status;
  s = mgrid_verdict(b, s, &e, &e);
  mgrid_backend_free(b);
  mgrid_release(all);
  if (s) {
    mgrid_text_free(&boots);
    return mgrid_lua_failure(L, &e);
  }
  mgrid_lua_push_text(L, &boots);
  mgrid_lua_push_lines(L, lua_tostring(L, -1));
  lua_remove(L, -2);
  return 2;
}
