/* SPDX-License-Identifier: MIT
**
** run.c - runs collectives and batches of sends and receives on the thread of a stream. A
** collective runs in rounds: every rank copies a piece into its payload, all meet, every rank
** copies what it needs, all meet again. The first meeting also compares the arguments of the ranks.
*/
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranks meet, calls end, and nothing is written: as where no kernel runs. */
static bool idle(void) { return standin_env("STANDIN_NO_KERNEL", 0) != 0; }

/* ---------------------------------------------------------------------- collectives */

/* Says what differs; false: nothing. Under the lock. */
static bool mismatch(shm *s, char *text) {
  const shm_call *mine = &s->slot[s->rank].call;
  for (int r = 0; r < s->nranks; r++) {
    const shm_call *c = &s->slot[r].call;
    const char *what = NULL;
    uint64_t a = 0, b = 0;
    if (c->number != mine->number)
      what = "number", a = mine->number, b = c->number;
    else if (c->kind != mine->kind) {
      snprintf(text, SI_TEXT,
               "mismatch: %s here, %s on rank %d; " STANDIN_HANG " or give wrong data",
               si_kind_name[mine->kind], si_kind_name[c->kind], r);
      return true;
    } else if (c->type != mine->type)
      what = "datatype", a = (uint64_t)mine->type, b = (uint64_t)c->type;
    else if (c->count != mine->count)
      what = "count", a = mine->count, b = c->count;
    else if (c->op != mine->op)
      what = "redop", a = (uint64_t)mine->op, b = (uint64_t)c->op;
    else if (c->root != mine->root)
      what = "root", a = (uint64_t)mine->root, b = (uint64_t)c->root;
    if (!what) continue;
    snprintf(text, SI_TEXT,
             "mismatch: %s %llu here, %llu on rank %d; " STANDIN_HANG " or give wrong data", what,
             (unsigned long long)a, (unsigned long long)b, r);
    return true;
  }
  return false;
}

/* Elements of a round. */
static size_t piece(const si_call *call, size_t nranks) {
  size_t n = SHM_PAYLOAD / si_type_size(call->type);
  return call->kind == REDUCE_SCATTER ? n / nranks : n;
}

static void lay(ncclComm_t c, const si_call *call, size_t at, size_t n, size_t room) {
  size_t size = si_type_size(call->type);
  char *mine = shm_payload_of(&c->seg, c->rank);
  const char *from = call->from + at * size;
  if (!n || (call->kind == BROADCAST && c->rank != call->root)) return;
  if (call->kind != REDUCE_SCATTER) {
    memcpy(mine, from, n * size);
    return;
  }
  for (size_t r = 0; r < (size_t)c->nranks; r++)
    memcpy(mine + r * room * size, from + r * call->count * size, n * size);
}

static void take(ncclComm_t c, const si_call *call, size_t at, size_t n, size_t room) {
  size_t size = si_type_size(call->type);
  char *to = call->to + at * size;
  if (!n || idle()) return;
  switch (call->kind) {
  case ALL_REDUCE: si_reduce(to, &c->seg, 0, n, call->type, call->op); break;
  case REDUCE:
    if (c->rank == call->root) si_reduce(to, &c->seg, 0, n, call->type, call->op);
    break;
  case REDUCE_SCATTER:
    si_reduce(to, &c->seg, (size_t)c->rank * room * size, n, call->type, call->op);
    break;
  case BROADCAST: memcpy(to, shm_payload_of(&c->seg, call->root), n * size); break;
  case ALL_GATHER:
    for (int r = 0; r < c->nranks; r++)
      memcpy(to + (size_t)r * call->count * size, shm_payload_of(&c->seg, r), n * size);
    break;
  default: break;
  }
}

/* A buffer that was freed since the call. */
static bool freed(ncclComm_t c, const si_call *call, char *text) {
  size_t bytes = call->count * si_type_size(call->type), n = (size_t)c->nranks;
  bool from = call->kind != RECV && (call->kind != BROADCAST || c->rank == call->root);
  bool to = call->kind != SEND && (call->kind != REDUCE || c->rank == call->root);
  bool ok =
      !bytes || !from
      || rig_on_device(call->from, call->kind == REDUCE_SCATTER ? n * bytes : bytes, c->device);
  ok = ok
       && (!bytes || !to
           || rig_on_device(call->to, call->kind == ALL_GATHER ? n * bytes : bytes, c->device));
  if (!ok)
    snprintf(text, SI_TEXT,
             "a buffer was freed before the stream came to it; real NCCL would fault here");
  if (!ok) shm_poison(&c->seg, text);
  return !ok;
}

shm_end si_run_collective(ncclComm_t c, const si_call *call, uint64_t number, shm_stop stop,
                          char *text) {
  shm *s = &c->seg;
  size_t room = piece(call, (size_t)c->nranks), at = 0;
  bool compared = false;
  shm_end end = SHM_OK;
  if (freed(c, call, text)) return SHM_POISONED;
  if (!room) {
    snprintf(text, SI_TEXT, "%d ranks are too many for this stand-in", c->nranks);
    return SHM_POISONED;
  }
  shm_lock(s);
  s->slot[c->rank].call = (shm_call){ number,          call->count,   (int)call->kind,
                                      (int)call->type, (int)call->op, call->root };
  shm_unlock(s);
  do {
    size_t n = call->count - at < room ? call->count - at : room;
    lay(c, call, at, n, room);
    end = shm_meet(s, MEET_DATA, stop, text);
    if (end) return end;
    if (!compared) {
      shm_lock(s);
      bool differ = mismatch(s, text);
      shm_unlock(s);
      if (differ) return SHM_POISONED;
      compared = true;
    }
    take(c, call, at, n, room);
    end = shm_meet(s, MEET_DATA, stop, text);
    at += n;
  } while (!end && at < call->count);
  return end;
}

/* --------------------------------------------------------------- sends and receives */

typedef struct parcel {
  const si_call *call;
  size_t at, bytes;
  bool begun, done;
} parcel;

/* An earlier one to or from the same peer comes first. */
static bool blocked(const parcel *all, size_t i) {
  for (size_t j = 0; j < i; j++)
    if (!all[j].done && all[j].call->kind == all[i].call->kind
        && all[j].call->root == all[i].call->root)
      return true;
  return false;
}

/* Under the lock. A send is done when the last piece has been taken: nothing is buffered. */
static bool advance_send(ncclComm_t c, parcel *p) {
  shm_pair *pair = shm_pair_of(&c->seg, c->rank, p->call->root);
  if (pair->full) return false;
  if (p->begun && p->at == p->bytes) {
    p->done = true;
    return true;
  }
  size_t n = p->bytes - p->at < SHM_PARCEL ? p->bytes - p->at : SHM_PARCEL;
  if (n) memcpy(shm_parcel_of(&c->seg, c->rank, p->call->root), p->call->from + p->at, n);
  pair->count = p->call->count, pair->total = p->bytes, pair->type = (int)p->call->type;
  pair->bytes = (uint32_t)n;
  pair->full = 1;
  p->at += n;
  p->begun = true;
  return true;
}

static bool advance_receive(ncclComm_t c, parcel *p, char *text) {
  shm_pair *pair = shm_pair_of(&c->seg, p->call->root, c->rank);
  if (!pair->full) return false;
  if (pair->count != p->call->count || pair->type != (int)p->call->type) {
    snprintf(
        text, SI_TEXT,
        "mismatch: recv of %zu of type %d here, send of %llu of type %d on rank %d; " STANDIN_HANG
        " or give wrong data",
        p->call->count, (int)p->call->type, (unsigned long long)pair->count, pair->type,
        p->call->root);
    return true;
  }
  if (pair->bytes && !idle())
    memcpy(p->call->to + p->at, shm_parcel_of(&c->seg, p->call->root, c->rank), pair->bytes);
  p->at += pair->bytes;
  p->done = p->at == p->bytes;
  pair->full = 0;
  return true;
}

static void name_waiting(const parcel *all, size_t n, char *text) {
  size_t at = (size_t)snprintf(text, SI_TEXT, "waiting for");
  for (size_t i = 0; i < n && at < SI_TEXT / 2; i++)
    if (!all[i].done)
      at += (size_t)snprintf(text + at, SI_TEXT - at, " %s rank %d",
                             all[i].call->kind == SEND ? "a recv of" : "a send of",
                             all[i].call->root);
}

static bool waits_for_dead(const shm *s, const parcel *all, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!all[i].done && shm_is_dead(&s->slot[all[i].call->root])) return true;
  return false;
}

shm_end si_run_parcels(ncclComm_t c, const si_call *call, size_t n, shm_stop stop, char *text) {
  shm *s = &c->seg;
  parcel *all = calloc(n, sizeof *all);
  double until = standin_now() + standin_deadline();
  shm_end end = all ? SHM_OK : SHM_STOPPED;
  size_t left = n;
  for (size_t i = 0; i < n && !end; i++) {
    all[i] = (parcel){ &call[i], 0, call[i].count * si_type_size(call[i].type), false, false };
    if (freed(c, &call[i], text)) end = SHM_POISONED;
  }
  shm_lock(s);
  while (left && !end) {
    bool moved = false;
    for (size_t i = 0; i < n && !*text; i++) {
      if (all[i].done || blocked(all, i)) continue;
      moved |= call[i].kind == SEND ? advance_send(c, &all[i]) : advance_receive(c, &all[i], text);
      left -= all[i].done;
    }
    if (*text) {
      end = SHM_POISONED;
    } else if (moved) {
      shm_changed(s);
      until = standin_now() + standin_deadline();
    } else
      end = waits_for_dead(s, all, n) ? SHM_DIED : shm_wait(s, until, stop);
    if (end == SHM_POISONED && !*text) shm_reason(s, text);
  }
  if (end == SHM_LATE) name_waiting(all, n, text);
  shm_unlock(s);
  if (end == SHM_POISONED) shm_poison(s, text);
  free(all);
  return end;
}
