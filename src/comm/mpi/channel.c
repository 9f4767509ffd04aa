/* SPDX-License-Identifier: MIT
**
** channel.c - keep the library's duplicate of a host's communicator for the next backend over it. An attribute of that
** communicator holds it, without a copy function: a duplicate of the host's has none, and MPI calls `drop` when the host
** frees its own. Backends hold it as well, and the last holder frees it. So a host may free its communicator first.
**
** Backends that share a duplicate make their calls over all ranks in one order, as states of one backend do. With
** MPI_THREAD_MULTIPLE two threads may use two backends, so there a duplicate has one backend at a time.
*/
#include "comm/mpi/mpi.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

struct mpi_channel {
  MPI_Comm     comm;
  MPI_Group    members;
  uint64_t     job, opened; /* opened: backends so far, equal on all ranks */
  atomic_int   holders;     /* the backends and the attribute */
  bool         alone;       /* one backend at a time */
  bool         broken;      /* a backend that has ended left a call in MPI */
  mpi_backend *first;       /* the backends, linked by `beside` */
};

/* The number of the attribute, plus one; 0: none yet. MPI cannot be asked for it, so this is the only object of the library
** that changes: once, with the first backend. */
static atomic_int mgrid_mpi_attribute;

static void release(mpi_channel *c, bool there) {
  if (atomic_fetch_sub(&c->holders, 1) > 1) return;
  if (there && !c->broken) {
    MPI_Group_free(&c->members);
    MPI_Comm_free(&c->comm);
  }
  free(c);
}

static int drop(MPI_Comm comm, int key, void *channel, void *unused) {
  (void)comm, (void)key, (void)unused;
  release(channel, true);
  return MPI_SUCCESS;
}

/* Of an attribute of MPI_COMM_SELF, which MPI_Finalize deletes first: give the number back. */
static int end_key(MPI_Comm comm, int key, void *value, void *unused) {
  int ours = atomic_exchange(&mgrid_mpi_attribute, 0) - 1;
  (void)comm, (void)key, (void)value, (void)unused;
  return ours < 0 ? MPI_SUCCESS : MPI_Comm_free_keyval(&ours);
}

static int end_with_mpi(void) {
  int end = MPI_KEYVAL_INVALID;
  int rc = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_key, &end, NULL);
  if (!rc) rc = MPI_Comm_set_attr(MPI_COMM_SELF, end, NULL);
  if (end != MPI_KEYVAL_INVALID) MPI_Comm_free_keyval(&end); /* the attribute holds it */
  return rc;
}

/* Return the attribute's number. MPI calls `drop` after the last backend has ended, so this code may not be unloaded. */
static int find_key(int *key) {
  int made = MPI_KEYVAL_INVALID, none = 0;
  *key = atomic_load(&mgrid_mpi_attribute) - 1;
  if (*key >= 0) return MPI_SUCCESS;
  Dl_info info;
  void   *self = dladdr((void *)(uintptr_t)&drop, &info) && info.dli_fname
                     ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)
                     : NULL;
  if (self) dlclose(self); /* NULL: a program, which stays */
  int rc = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &made, NULL);
  if (rc) return rc;
  bool first = atomic_compare_exchange_strong(&mgrid_mpi_attribute, &none, made + 1);
  if (!first) MPI_Comm_free_keyval(&made);
  *key = atomic_load(&mgrid_mpi_attribute) - 1;
  return first ? end_with_mpi() : MPI_SUCCESS;
}

/* MPI_Finalize drops the attributes of MPI_COMM_SELF while MPI can still be called; those of MPI_COMM_WORLD later or never.
** MPI_COMM_SELF itself needs no messages, so its duplicates are not kept. */
static MPI_Comm home_of(MPI_Comm parent) {
  return parent == MPI_COMM_SELF ? MPI_COMM_NULL : parent == MPI_COMM_WORLD ? MPI_COMM_SELF : parent;
}

mpi_channel *mgrid_channel_of(MPI_Comm parent) {
  mpi_channel *c = NULL;
  MPI_Comm     home = home_of(parent);
  int          key = atomic_load(&mgrid_mpi_attribute) - 1, there = 0;
  if (key < 0 || home == MPI_COMM_NULL || MPI_Comm_get_attr(home, key, &c, &there) || !there) return NULL;
  return c;
}

bool mgrid_channel_is_broken(const mpi_channel *c) {
  bool broken = c->broken;
  for (const mpi_backend *m = c->first; m; m = m->beside) broken |= m->broken;
  return broken;
}

/* Of `alone`, look at the number of holders first: its backend may be ending in another thread. */
bool mgrid_channel_is_free(const mpi_channel *c) {
  if (!c || (c->alone && atomic_load(&c->holders) > 1) || mgrid_channel_is_broken(c)) return false;
  for (const mpi_backend *m = c->first; m; m = m->beside)
    if (m->pending) return false;
  return true;
}

/* Numbers of calls differ between the backends of a channel, since their notices meet there. */
void mgrid_channel_join(mpi_channel *c, mpi_backend *m) {
  atomic_fetch_add(&c->holders, 1);
  m->channel = c;
  m->comm = c->comm, m->members = c->members, m->job = c->job;
  m->calls = c->opened++ << 32;
  m->beside = c->first;
  c->first = m;
}

void mgrid_channel_leave(mpi_backend *m, bool usable) {
  mpi_channel  *c = m->channel;
  mpi_backend **at = &c->first;
  while (*at != m) at = &(*at)->beside;
  *at = m->beside;
  c->broken |= !usable;
  m->channel = NULL, m->comm = MPI_COMM_NULL, m->members = MPI_GROUP_NULL;
  release(c, usable);
}

int mgrid_channel_keep(mpi_backend *m, MPI_Comm parent, bool alone) {
  MPI_Comm     home = home_of(parent);
  mpi_channel *c = home == MPI_COMM_NULL ? NULL : calloc(1, sizeof *c);
  int          key, rc;
  if (home == MPI_COMM_NULL) return MPI_SUCCESS;
  if (!c) return MPI_ERR_NO_MEM;
  *c = (mpi_channel){ .comm = m->comm, .members = m->members, .job = m->job, .alone = alone };
  atomic_store(&c->holders, 1);
  rc = find_key(&key);
  if (!rc) rc = MPI_Comm_set_attr(home, key, c); /* drops one that was there */
  if (rc)
    free(c);
  else
    mgrid_channel_join(c, m);
  return rc;
}
