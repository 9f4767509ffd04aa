/* SPDX-License-Identifier: MIT
**
** create.c - InitRank in its forms, Split, Shrink. The ranks meet in a shared object, which
** the unique id names (for children: a name made from the parent's), and compare their arguments.
*/
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRANULE (2LL << 20) /* of GPU memory: a small array takes a whole one */

typedef struct making {
  char object[SHM_NAME]; /* the shared object: of the first id, or of a child */
  uint64_t ids;          /* a hash of all ids */
  long nth;              /* creation of this process, for the faults */
  bool child, split;
  int color, key;
  char parent_object[SHM_NAME];
  ncclComm_t *newcomm; /* of a child: filled when it is ready */
  int nothers;
  char others[][SHM_NAME]; /* the further ids of InitRankScalable */
} making;

static atomic_long creations;

/* ----------------------------------------------------------------- after the meeting */

static uint64_t machine_hash(void) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  static uint64_t hash;
  char name[256] = "";
  pthread_mutex_lock(&once); /* NCCL reads it once per process, at the first communicator */
  if (!hash) {
    const char *id = getenv("NCCL_HOSTID");
    if (!id || !*id) {
      gethostname(name, sizeof name - 1);
      id = name;
    }
    hash = si_hash(0, id, strlen(id));
  }
  pthread_mutex_unlock(&once);
  return hash;
}

/* The first difference of two texts of options, for the message. */
static void difference(const char *mine, const char *other, char *text, size_t room) {
  size_t i = 0;
  while (mine[i] && mine[i] == other[i]) i++;
  while (i && mine[i - 1] != ' ') i--;
  snprintf(text, room, "%.*s here and %.*s", (int)strcspn(mine + i, " "), mine + i,
           (int)strcspn(other + i, " "), other + i);
}

/* Every rank sees all arguments and comes to the same result. */
static ncclResult_t compare(ncclComm_t c, const char *label) {
  const shm_slot *slot = c->seg.slot, *mine = &slot[c->rank];
  char text[256];
  for (int a = 0; a < c->nranks; a++) {
    if (slot[a].ids != mine->ids)
      return si_wrong(ncclInternalError,
                      "%s: the unique ids differ from those of rank %d; " STANDIN_HANG, label, a);
    if (strcmp(slot[a].config, mine->config) != 0) {
      difference(mine->config, slot[a].config, text, sizeof text);
      return si_wrong(ncclInvalidUsage, "%s: config mismatch: %s on rank %d; NCCL would not tell",
                      label, text, a);
    }
  }
  for (int a = 0; a < c->nranks; a++)
    for (int b = a + 1; b < c->nranks; b++) {
      if (slot[a].machine != slot[b].machine || slot[a].bus != slot[b].bus) continue;
      bool me = a == c->rank || b == c->rank;
      return si_fail(me ? ncclInvalidUsage : ncclRemoteError,
                     "Duplicate GPU detected : rank %d and rank %d both on CUDA device %x (%s)%s",
                     a, b, slot[a].bus, label,
                     me ? "" : "; this rank would hang or see a remote error");
    }
  return ncclSuccess;
}

static ncclResult_t no_meeting(ncclComm_t c, shm_end end, const char *what, const char *label,
                               const char *text) {
  char line[SI_TEXT];
  if (end == SHM_STOPPED) {
    standin_log("%s of %s was aborted", what, label);
    return ncclInternalError;
  }
  if (end == SHM_POISONED)
    return si_wrong(ncclInternalError, "%s of %s: %.700s", what, label, text);
  snprintf(line, sizeof line, "%s of %s: %.500s after %.1f s; " STANDIN_HANG, what, label, text,
           standin_deadline());
  shm_poison(&c->seg, line);
  return si_wrong(ncclInternalError, "%s", line);
}

/* (3C + 2) granules, C channels; a child that shares resources (2C + 2). */
static ncclResult_t take_memory(ncclComm_t c, const char *label) {
  bool said = c->config.maxCTAs < 64;
  long long channels = said ? c->config.maxCTAs : c->nranks == 1 ? 64 : 32;
  long long bytes = ((c->family == c ? 3 : 2) * channels + 2) * GRANULE;
  if (!rig_take(RIG_DEVICE, c->device, bytes))
    return si_fail(ncclUnhandledCudaError, "Cuda failure 'out of memory' (%lld MiB for %s)",
                   bytes >> 20, label);
  c->memory = bytes;
  return ncclSuccess;
}

static void fill_slot(ncclComm_t c, const making *m) {
  shm_slot *mine = &c->seg.slot[c->rank];
  shm_lock(&c->seg);
  mine->machine = machine_hash();
  mine->ids = m->ids;
  mine->bus = rig_bus(rig_physical(c->device)) << 12;
  snprintf(mine->config, sizeof mine->config, "%s", c->config_text);
  shm_unlock(&c->seg);
}

/* Meets the others, on an object that this rank has not joined yet. */
static ncclResult_t meet(ncclComm_t c, const making *m, shm_stop stop) {
  char text[SI_TEXT] = "", label[160];
  shm seg = { .nranks = 0 };
  shm_end end;
  si_comm_label(c, label, sizeof label);
  if (!shm_join(&seg, m->object, c->nranks, c->rank, m->child, text))
    return si_wrong(ncclInternalError, "init of %s: %s", label, text);
  si_lock();
  c->seg = seg;
  si_unlock();
  if (standin_fault("STANDIN_DIE", m->nth)) {
    standin_log("init of %s: this process dies now (STANDIN_DIE)", label);
    _exit(70);
  }
  fill_slot(c, m);
  end = shm_meet(&c->seg, MEET_INIT, stop, text);
  if (end) return no_meeting(c, end, "init", label, text);
  ncclResult_t r = compare(c, label);
  for (int i = 0; i < m->nothers && c->rank == 0 && !r; i++) shm_mark_used(m->others[i]);
  return r ? r : take_memory(c, label);
}

/* ---------------------------------------------------------------------------- the job */

static bool told(shm_stop stop) {
  return (stop.flag[0] && atomic_load(stop.flag[0])) || (stop.flag[1] && atomic_load(stop.flag[1]));
}

/* Sleeps until the time or until somebody aborts; false: aborted. */
static bool sleep_until(double until, shm_stop stop) {
  while (standin_now() < until && !told(stop)) standin_nap(0.005);
  return !told(stop);
}

static ncclResult_t faults(ncclComm_t c, const making *m, shm_stop stop) {
  char label[160];
  double late = standin_fault_seconds("STANDIN_LATE");
  si_comm_label(c, label, sizeof label);
  if (standin_fault("STANDIN_FAIL_INIT", m->nth))
    return si_fail(ncclSystemError, "init of %s fails (STANDIN_FAIL_INIT)", label);
  if (standin_fault("STANDIN_MISSING", m->nth)) {
    standin_log("init of %s never joins (STANDIN_MISSING)", label);
    if (!sleep_until(standin_now() + standin_deadline(), stop)) return ncclInternalError;
    return si_wrong(ncclInternalError, "init of %s: %.1f s without an abort; " STANDIN_HANG, label,
                    standin_deadline());
  }
  if (late > 0) {
    standin_log("init of %s comes %.1f s late (STANDIN_LATE)", label, late);
    if (!sleep_until(standin_now() + late, stop)) return ncclInternalError;
  }
  return ncclSuccess;
}

/* NCCL allocates and synchronizes while it makes a communicator, which waits for every kernel of
** this process on the device (NVIDIA/nccl#195). */
static ncclResult_t wait_for_device(ncclComm_t c, shm_stop stop) {
  char label[160];
  /* sooner than the kernel itself gives up */
  double until = standin_now() + standin_deadline() / 2;
  while (rig_busy(c->device) && standin_now() < until && !told(stop)) standin_nap(0.002);
  if (told(stop)) return ncclInternalError;
  if (standin_now() < until) return ncclSuccess;
  return si_wrong(ncclInternalError, "init of %s waits for what runs on device %d; " STANDIN_HANG,
                  si_comm_label(c, label, sizeof label), c->device);
}

static ncclResult_t make(si_op *op) {
  making *m = op->data;
  ncclComm_t c = op->child;
  shm_stop stop = si_op_stop(op);
  ncclResult_t r = faults(c, m, stop);
  /* aborted before it began, so do not join the others */
  if (!r && told(stop)) r = ncclInternalError;
  if (!r) r = meet(c, m, stop);
  if (!r) r = wait_for_device(c, stop);
  if (r) {
    si_comm_break(c, r);
    return r;
  }
  si_lock();
  c->life = LIFE_LIVE;
  si_unlock();
  return ncclSuccess;
}

static si_op *new_op(ncclComm_t comm, ncclComm_t child, int nids, ncclResult_t (*run)(si_op *)) {
  si_op *op = calloc(1, sizeof *op);
  making *m = calloc(1, sizeof *m + (size_t)nids * SHM_NAME);
  if (!op || !m) {
    free(op);
    free(m);
    return NULL;
  }
  op->kind = OP_CREATE;
  op->comm = comm, op->child = child;
  op->run = run;
  op->data = m;
  return op;
}

/* --------------------------------------------------------------------------- InitRank */

static void give_up(ncclComm_t c) {
  si_lock();
  si_comm_release(c);
  si_unlock();
}

static ncclResult_t prepare(ncclComm_t *newcomm, int nranks, int rank, int nids,
                            const ncclUniqueId *ids, const ncclConfig_t *config) {
  static const ncclConfig_t none = NCCL_CONFIG_INITIALIZER;
  char name[SHM_NAME];
  if (nids <= 0 || nids > nranks)
    return si_fail(ncclInvalidArgument, "improper usage of ncclCommInitRank: nId = %d, nranks=%d",
                   nids, nranks);
  if (!newcomm || !ids)
    return si_fail(ncclInvalidArgument, "CommInitRank : newcomm or commId argument is NULL");
  *newcomm = NULL;
  if (nranks < 1 || rank < 0 || rank >= nranks)
    return si_fail(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, nranks);
  for (int i = 0; i < nids; i++)
    if (!si_read_id(&ids[i], name))
      return si_wrong(
          ncclInvalidArgument,
          "unique id %d of %d was not made here, or has changed on its way; " STANDIN_HANG, i,
          nids);
  ncclComm_t c = si_comm_new();
  if (!c) return ncclSystemError;
  c->nranks = nranks, c->rank = rank;
  c->id = si_hash(0, &ids[0], sizeof *ids);
  c->family = c;
  cudaGetDevice(&c->device);
  ncclResult_t r = si_config_parse(c, config ? config : &none);
  si_op *op = r ? NULL : new_op(c, c, nids, make);
  if (!op) {
    give_up(c);
    return r ? r : ncclSystemError;
  }
  making *m = op->data;
  si_read_id(&ids[0], m->object);
  m->ids = si_hash(0, ids, (size_t)nids * sizeof *ids);
  m->nth = atomic_fetch_add(&creations, 1) + 1;
  for (int i = 1; i < nids; i++) si_read_id(&ids[i], m->others[m->nothers++]);
  standin_trace("init id=%016llx nids=%d nranks=%d rank=%d device=%d name=%s config=\"%s\"",
                (unsigned long long)c->id, nids, nranks, rank, c->device, *c->name ? c->name : "-",
                c->config_text);
  *newcomm = c; /* set before it is made, as in NCCL: after a later failure it must be aborted */
  r = si_group_add(op);
  if (r) {
    give_up(c);
    *newcomm = NULL;
  }
  return r;
}

/* The answer of a call about one communicator that may work in the background. */
static ncclResult_t answer(const ncclComm_t *newcomm, ncclResult_t r) {
  ncclResult_t now;
  if (r || !newcomm || !*newcomm || (*newcomm)->config.blocking) return r;
  return ncclCommGetAsyncError(*newcomm, &now) ? r : now;
}

SI_API ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank) {
  ncclResult_t r = si_no_driver();
  if (r) return r;
  si_group_enter();
  return si_group_leave(prepare(comm, nranks, rank, 1, &id, NULL));
}

/* The real ones return from their group without closing it when there is no driver. */
static ncclResult_t config_form(ncclComm_t *comm, int nranks, int rank, int nids,
                                const ncclUniqueId *ids, const ncclConfig_t *config) {
  si_group_enter();
  ncclResult_t r = si_no_driver();
  if (r) {
    standin_log("the group of this thread stays open, as real NCCL leaves it");
    return r;
  }
  return answer(comm, si_group_leave(prepare(comm, nranks, rank, nids, ids, config)));
}

SI_API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                           ncclConfig_t *config) {
  return config_form(comm, nranks, rank, 1, &id, config);
}

SI_API ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId,
                                             ncclUniqueId *commIds, ncclConfig_t *config) {
  return config_form(newcomm, nranks, myrank, nId, commIds, config);
}

/* ------------------------------------------------------------------------------- Grow */

/* Old ranks learn the object inside the old communicator, as the first and the last one do in
** NCCL. */
static ncclResult_t await_id(ncclComm_t comm, char *object) {
  char label[160];
  double until = standin_now() + standin_deadline();
  shm_stop stop = { { &comm->stop, NULL } };
  shm_end end = SHM_OK;
  comm->grows++;
  shm_lock(&comm->seg);
  while (comm->seg.head->grown < comm->grows && end == SHM_OK)
    end = shm_wait(&comm->seg, until, stop);
  if (end == SHM_OK) memcpy(object, comm->seg.head->grow, SHM_NAME);
  shm_unlock(&comm->seg);
  if (end == SHM_OK) return ncclSuccess;
  if (end == SHM_STOPPED) return ncclInternalError;
  return si_wrong(ncclInternalError,
                  "ncclCommGrow of %s: no rank calls ncclCommGetUniqueId; " STANDIN_HANG,
                  si_comm_label(comm, label, sizeof label));
}

static ncclResult_t read_grow_id(const ncclUniqueId *id, int rank, int nranks, char *object) {
  if (rank < 0 || rank >= nranks)
    return si_fail(ncclInvalidArgument, "ncclCommGrow: new rank %d exceeds total ranks %d", rank,
                   nranks);
  if (!id)
    return si_fail(ncclInvalidArgument, "ncclCommGrow: new ranks must pass non-NULL uniqueId");
  if (si_read_id(id, object)) return ncclSuccess;
  return si_wrong(ncclInvalidArgument,
                  "ncclCommGrow: the id was not made here, or has changed; " STANDIN_HANG);
}

static ncclResult_t grow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank,
                         ncclComm_t *newcomm, const ncclConfig_t *config) {
  static const ncclConfig_t none = NCCL_CONFIG_INITIALIZER;
  char object[SHM_NAME];
  ncclResult_t r = comm ? si_comm_ready(comm, "ncclCommGrow") : si_no_driver();
  if (r) return r;
  if (comm && rank != -1)
    return si_fail(ncclInvalidArgument, "ncclCommGrow: existing ranks must pass rank=-1, got %d",
                   rank);
  r = comm ? await_id(comm, object) : read_grow_id(id, rank, nranks, object);
  if (r) return r;
  ncclComm_t c = si_comm_new();
  if (!c) return ncclSystemError;
  c->nranks = nranks, c->rank = comm ? comm->rank : rank;
  c->id = si_hash(0, object, strlen(object));
  c->family = c;
  cudaGetDevice(&c->device);
  if (comm) c->device = comm->device;
  if (comm && !config)
    si_config_inherit(c, comm);
  else
    r = si_config_parse(c, config ? config : &none);
  si_op *op = r ? NULL : new_op(c, c, 0, make);
  if (!op) {
    give_up(c);
    return r ? r : ncclSystemError;
  }
  making *m = op->data;
  memcpy(m->object, object, sizeof object);
  m->ids = c->id;
  m->nth = atomic_fetch_add(&creations, 1) + 1;
  standin_trace("grow id=%016llx of=%016llx nranks=%d rank=%d name=%s", (unsigned long long)c->id,
                comm ? (unsigned long long)comm->id : 0, nranks, c->rank, *c->name ? c->name : "-");
  *newcomm = c;
  r = si_group_add(op);
  if (!r) return r;
  give_up(c);
  *newcomm = NULL;
  return r;
}

SI_API ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
                                 int rank, ncclComm_t *newcomm, ncclConfig_t *config);
SI_API ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
                                 int rank, ncclComm_t *newcomm, ncclConfig_t *config) {
  if (!si_newer(22902, "ncclCommGrow") || !newcomm) return ncclInvalidArgument;
  if (nRanks <= 0 || (comm && nRanks <= comm->nranks))
    return si_fail(ncclInvalidArgument, "ncclCommGrow: total ranks %d is less than current ranks",
                   nRanks);
  *newcomm = NULL;
  si_group_enter();
  return answer(newcomm, si_group_leave(grow(comm, nRanks, uniqueId, rank, newcomm, config)));
}

SI_API ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);
SI_API ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId) {
  char object[SHM_NAME] = "", label[160];
  ncclResult_t r;
  if (!si_newer(22902, "ncclCommGetUniqueId")) return ncclInvalidArgument;
  if ((r = si_comm_ready(comm, "ncclCommGetUniqueId"))) return r;
  if (getenv("NCCL_COMM_ID"))
    return si_fail(ncclInvalidUsage,
                   "ncclCommGetUniqueId should not be called when NCCL_COMM_ID is set");
  if ((r = si_new_id(uniqueId, object))) return r;
  shm_lock(&comm->seg);
  bool open = comm->seg.head->grown > comm->grows;
  if (!open) {
    memcpy(comm->seg.head->grow, object, sizeof object);
    comm->seg.head->grown++;
    shm_changed(&comm->seg);
  }
  shm_unlock(&comm->seg);
  if (!open) return ncclSuccess;
  return si_wrong(ncclInvalidUsage,
                  "ncclCommGetUniqueId of %s: the last id has not been used; NCCL would not tell",
                  si_comm_label(comm, label, sizeof label));
}

/* -------------------------------------------------------------------- Split and Shrink */

/* A name for the child that all its members compute without messages. */
static void child_object(const char *parent, const char *what, int count, uint64_t more,
                         char *name) {
  uint64_t a = si_hash(0, parent, strlen(parent));
  a = si_hash(a, what, strlen(what));
  a = si_hash(a, &count, sizeof count);
  a = si_hash(a, &more, sizeof more);
  uint64_t b = si_hash(a, &a, sizeof a);
  size_t at = shm_prefix(name, SHM_NAME);
  snprintf(name + at, SHM_NAME - at, "%016llx%016llx", (unsigned long long)a,
           (unsigned long long)b);
}

static bool before(const shm_slot *a, int ra, const shm_slot *b, int rb) {
  return a->key != b->key ? a->key < b->key : ra < rb;
}

/* One exchange over the whole parent, including ranks without a color. */
static ncclResult_t exchange(si_op *op) {
  ncclComm_t p = op->comm;
  making *m = op->data;
  char text[SI_TEXT] = "", label[160];
  shm_stop stop = { { &p->stop, &op->group->stop } };
  shm_slot *mine = &p->seg.slot[p->rank];
  shm_lock(&p->seg);
  mine->color = m->color, mine->key = m->key;
  shm_unlock(&p->seg);
  shm_end end = shm_meet(&p->seg, MEET_SPLIT, stop, text);
  if (!end && op->child) {
    int nranks = 0, rank = 0;
    for (int r = 0; r < p->nranks; r++) {
      if (p->seg.slot[r].color != m->color) continue;
      nranks++;
      rank += before(&p->seg.slot[r], r, mine, p->rank);
    }
    op->child->nranks = nranks, op->child->rank = rank;
  }
  if (!end) end = shm_meet(&p->seg, MEET_SPLIT, stop, text); /* all have read it */
  return end ? no_meeting(p, end, "split", si_comm_label(p, label, sizeof label), text)
             : ncclSuccess;
}

static ncclResult_t make_child(si_op *op) {
  making *m = op->data;
  ncclComm_t c = op->child;
  ncclResult_t r = m->split ? exchange(op) : ncclSuccess;
  if (!c) return r; /* no color: NULL, and no more to do */
  if (r) {
    si_comm_break(c, r);
  } else {
    c->id = si_hash(0, m->object, strlen(m->object));
    r = make(op);
  }
  if (r) { /* it is the caller's to abort */
    op->comm->unmade = *m->newcomm = c;
    return r;
  }
  standin_trace("made id=%016llx nranks=%d rank=%d device=%d name=%s config=\"%s\"",
                (unsigned long long)c->id, c->nranks, c->rank, c->device, *c->name ? c->name : "-",
                c->config_text);
  *m->newcomm = c;
  return ncclSuccess;
}

static ncclResult_t new_child(ncclComm_t parent, bool shared, ncclConfig_t *config,
                              ncclComm_t *child) {
  ncclComm_t c = si_comm_new();
  ncclResult_t r = ncclSuccess;
  if (!c) return ncclSystemError;
  c->device = parent->device;
  if (config)
    r = si_config_parse(c, config);
  else
    si_config_inherit(c, parent);
  const char *a = c->net_name ? c->net_name : "", *b = parent->net_name ? parent->net_name : "";
  if (!r && shared && strcmp(a, b) != 0)
    r = si_fail(ncclInvalidUsage,
                "a child that shares resources has netName \"%s\", its parent \"%s\"", a, b);
  if (r) {
    give_up(c);
    return r;
  }
  c->family = shared ? parent->family : c;
  *child = c;
  return ncclSuccess;
}

static ncclResult_t parent_ready(ncclComm_t comm, ncclComm_t *newcomm, const char *call) {
  ncclResult_t r = si_comm_ready(comm, call);
  if (r) return r;
  if (!newcomm) return si_fail(ncclInvalidArgument, "%s : newcomm argument is NULL", call);
  *newcomm = NULL;
  if (comm->finalized) return si_wrong(ncclInvalidArgument, "%s: the parent is finalized", call);
  if (atomic_load(&comm->family->family_broken))
    return si_fail(ncclInternalError,
                   "%s: a communicator that shares resources with the parent was aborted", call);
  return ncclSuccess;
}

static ncclResult_t queue_child(ncclComm_t comm, ncclComm_t child, ncclComm_t *newcomm,
                                const making *what) {
  si_op *op = new_op(comm, child, 0, make_child);
  if (!op) {
    if (child) give_up(child);
    return ncclSystemError;
  }
  making *m = op->data;
  *m = *what;
  m->newcomm = newcomm;
  m->ids = si_hash(0, m->object, strlen(m->object));
  m->nth = child ? atomic_fetch_add(&creations, 1) + 1 : 0;
  ncclResult_t r = si_group_add(op);
  if (r && child) give_up(child);
  return r;
}

static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                          ncclConfig_t *config) {
  making m = { .child = true, .split = true, .color = color, .key = key };
  ncclComm_t child = NULL;
  ncclResult_t r = parent_ready(comm, newcomm, "ncclCommSplit");
  if (!r && color != NCCL_SPLIT_NOCOLOR)
    r = new_child(comm, comm->config.splitShare, config, &child);
  if (r) return r;
  child_object(comm->seg.name, "split", ++comm->splits, (uint64_t)color, m.object);
  standin_trace("split of=%016llx color=%d key=%d parent=%s", (unsigned long long)comm->id, color,
                key, *comm->name ? comm->name : "-");
  return queue_child(comm, child, newcomm, &m);
}

/* The answer is ncclSuccess also for a non-blocking parent: it is the parent that is polled. */
SI_API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                                  ncclConfig_t *config) {
  si_group_enter();
  ncclResult_t r = si_group_leave(split(comm, color, key, newcomm, config));
  return r == ncclInProgress ? ncclSuccess : r;
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Ends what runs on the parent: the purpose of NCCL_SHRINK_ABORT. An error that it has stays. */
static void clear(ncclComm_t c) {
  double until = standin_now() + standin_deadline();
  atomic_store(&c->pause, 1);
  si_comm_wake_all();
  si_lock();
  while (c->executed < c->issued && si_wait_change(until)) {}
  si_unlock();
  atomic_store(&c->pause, 0);
}

static ncclResult_t shrink(ncclComm_t comm, int *out, int nout, ncclComm_t *newcomm,
                           ncclConfig_t *config, int flags) {
  making m = { .child = true };
  ncclComm_t child = NULL;
  int rank = 0;
  ncclResult_t r = si_comm_alive(comm, "ncclCommShrink");
  if (r) return r;
  if (flags & NCCL_SHRINK_ABORT) {
    si_comm_check_unmade(comm, "ncclCommShrink");
    clear(comm);
  }
  r = parent_ready(comm, newcomm, "ncclCommShrink");
  if (r) return r;
  if (!out || nout <= 0 || nout >= comm->nranks)
    return si_fail(ncclInvalidArgument, "ncclCommShrink: %d ranks to leave out of %d", nout,
                   comm->nranks);
  qsort(out, (size_t)nout, sizeof *out, by_value); /* in place, as NCCL does */
  for (int i = 0; i < nout; i++) {
    if (out[i] < 0 || out[i] >= comm->nranks || (i && out[i] == out[i - 1]))
      return si_fail(ncclInvalidArgument,
                     "ncclCommShrink: rank %d to leave out is twice in the list or not there",
                     out[i]);
    if (out[i] == comm->rank)
      return si_wrong(ncclInvalidArgument,
                      "ncclCommShrink: rank %d is left out and must not call it", comm->rank);
    rank += out[i] < comm->rank;
  }
  r = new_child(comm, !(flags & NCCL_SHRINK_ABORT) && comm->config.shrinkShare, config, &child);
  if (r) return r;
  child->nranks = comm->nranks - nout;
  child->rank = comm->rank - rank;
  /* no count in the name: counts differ between ranks that were left out before and others */
  child_object(comm->seg.name, "shrink", 0, si_hash(0, out, (size_t)nout * sizeof *out), m.object);
  standin_trace("shrink of=%016llx without=%d flags=%d", (unsigned long long)comm->id, nout, flags);
  return queue_child(comm, child, newcomm, &m);
}

SI_API ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
                                   ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags) {
  si_group_enter();
  ncclResult_t r = si_group_leave(
      shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags));
  return r == ncclInProgress ? ncclSuccess : r;
}
