/* SPDX-License-Identifier: MIT
**
** host.c - checks the host's communicator before MPI sees it, because MPI ends the process for a
** bad handle. The process must use the MPI library for which this backend was built, and must have
** been started by that library's launcher. MPI reports neither fault: under the mpirun of another
** library each process believes that it is rank 0 of 1. The file also keeps the duplicate of the
** host's communicator, on which the library makes its calls, for the next backend. open.c takes a
** backend through these checks; other files ask mgrid_mpi_usable.
*/
#include "comm/mpi/mpi.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -------------------------------------------- the library and its launcher */

/* The MPI for whose header this file is compiled, and the name that the other MPI reports.
** Relatives of the two (Intel's MPI, MVAPICH) are accepted. */
#ifdef OPEN_MPI
#define BUILT_WITH "Open MPI"
#define OTHER      "MPICH"
#else
#define BUILT_WITH "MPICH"
#define OTHER      "Open MPI"
#endif

typedef int is_initialized(int *);

/* The library whose functions this backend calls, and another MPI that the process may have
** loaded. */
typedef struct libraries {
  const char *ours;
  char other[256];
} libraries;

static const char *host_file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_mpi(const char *path) {
  static const char *const names[] = { "libmpi.so", "libmpich.so", "libmpi_abi.so",
                                       "libmpi_cray.so", "libmpi_gnu_" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(host_file_of(path), names[i], strlen(names[i])) == 0) return true;
  return false;
}

/* Look for another MPI; for dl_iterate_phdr. */
static int look_for_other(struct dl_phdr_info *info, size_t size, void *ud) {
  libraries *f = ud;
  (void)size;
  if (f->other[0] || !info->dlpi_name || !is_mpi(info->dlpi_name)
      || strcmp(info->dlpi_name, f->ours) == 0)
    return 0;
  snprintf(f->other, sizeof f->other, "%s", info->dlpi_name);
  return 0;
}

/* Return whether the host has initialized the MPI library at this path. */
static bool is_started(const char *path) {
  void *lib = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  is_initialized *ask = NULL;
  int yes = 0;
  if (!lib) return false;
  *(void **)&ask = dlsym(lib, "MPI_Initialized");
  if (ask) ask(&yes);
  dlclose(lib);
  return yes;
}

/* Shorten the library's version text to "Open MPI v4.1.4" or "MPICH 5.0.2". */
static const char *host_version(char *text) {
  static const char word[] = "Version:";
  int n = 0;
  if (MPI_Get_library_version(text, &n) != MPI_SUCCESS) return BUILT_WITH;
  text[strcspn(text, ",\n")] = '\0';
  char *number = strstr(text, word), *from = number;
  if (!number) return text;
  from += sizeof word - 1;
  from += strspn(from, " \t");
  memmove(number, from, strlen(from) + 1);
  return text;
}

/* Return the path of the library whose functions this backend calls. This is slow, so call it only
** where it is needed. */
static const char *our_file(void) {
  Dl_info info;
  return dladdr((void *)(uintptr_t)&MPI_Initialized, &info) && info.dli_fname ? info.dli_fname : "";
}

mgrid_status mgrid_mpi_one_library(mgrid_error *err) {
  char text[MGRID_MPI_VERSION];
  libraries f = { "", "" };
  int ready = 0;
  bool wrong = strstr(host_version(text), OTHER);
  MPI_Initialized(&ready);
  if (ready && !wrong) return MGRID_OK;
  f.ours = our_file();
  if (wrong)
    return mgrid_fail(
        err, MGRID_BACKEND,
        "mpi: this backend was built with " BUILT_WITH
        ", and the program has loaded %.80s (%s); build moongrid with the program's MPI",
        text, f.ours);
  dl_iterate_phdr(look_for_other, &f);
  if (!f.other[0] || !is_started(f.other)) return MGRID_OK;
  return mgrid_fail(err, MGRID_BACKEND,
                    "mpi: the program has started the MPI of %s, and this backend uses %.80s of "
                    "%s; build moongrid with the program's MPI",
                    f.other, text, f.ours);
}

/* Return whether this MPI is an MPICH without PMIx, by the configuration that it reports. Under a
** launcher that offers only PMIx, its MPI_Init ends the process (5.0) or starts a world of one rank
** (4.0). */
static bool lacks_pmix(void) {
  char text[MGRID_MPI_VERSION];
  int n = 0;
  return MPI_Get_library_version(text, &n) == MPI_SUCCESS && strncmp(text, "MPICH Version", 13) == 0
         && strstr(text, "configure:") && !strstr(text, "pmix");
}

/* Return whether MPI's world is only this process, though the host did not pass MPI_COMM_SELF. */
static bool is_alone(MPI_Comm parent) {
  int all = 0, size = 0;
  if (parent == MPI_COMM_NULL || parent == MPI_COMM_SELF) return false;
  return !MPI_Comm_size(MPI_COMM_WORLD, &all) && !MPI_Comm_size(parent, &size) && all == 1
         && size == 1;
}

mgrid_status mgrid_mpi_launched(MPI_Comm parent, mgrid_error *err) {
  char text[MGRID_MPI_VERSION], these[40] = "this process";
  const char *also = "";
  mgrid_launched l = mgrid_launcher();
  bool foreign = l.pmix && lacks_pmix();
  if (!l.by || (l.sized && l.size < 2)) return MGRID_OK;
  if (parent == MPI_COMM_NULL ? !foreign : !is_alone(parent) || !(l.sized || foreign))
    return MGRID_OK;
  if (l.sized) snprintf(these, sizeof these, "%" PRId64 " processes", l.size);
  if (strcmp(l.by, "srun") == 0)
    also = foreign ? ", or by srun --mpi=pmi2" : ", or by srun --mpi=pmix or --mpi=pmi2";
  return mgrid_fail(
      err, MGRID_BACKEND,
      "mpi: %s started %s, and the MPI of this one, %.80s, knows of itself alone: "
      "start it by that library's own mpirun%s, or build moongrid with the launcher's "
      "MPI",
      l.by, these, host_version(text), also);
}

/* ------------------------------------------------- the host's communicator */

/* Return whether the host's communicator is valid. Open MPI would read memory of a communicator
** that was freed, so look it up in the table of Fortran handles, which has only valid ones. MPICH
** reports an invalid handle to the error handlers of MPI_COMM_WORLD and, since MPI 4.0, of
** MPI_COMM_SELF; with sessions alone neither exists. */
static bool is_comm(MPI_Comm parent, bool sessions, int *inter) {
#ifdef OPEN_MPI
  (void)sessions;
  return MPI_Comm_f2c(MPI_Comm_c2f(parent)) == parent && !MPI_Comm_test_inter(parent, inter);
#else
  MPI_Errhandler world = MPI_ERRHANDLER_NULL, self = MPI_ERRHANDLER_NULL;
  if (!sessions) world = mgrid_mpi_quiet(MPI_COMM_WORLD), self = mgrid_mpi_quiet(MPI_COMM_SELF);
  int rc = MPI_Comm_test_inter(parent, inter);
  if (!sessions) mgrid_mpi_restore(MPI_COMM_SELF, self), mgrid_mpi_restore(MPI_COMM_WORLD, world);
  return !rc;
#endif
}

mgrid_status mgrid_mpi_check_parent(MPI_Comm parent, bool sessions, mgrid_error *err) {
  int inter = 0;
  if (parent == MPI_COMM_NULL)
    return mgrid_fail(err, MGRID_USAGE, "mpi: the parent is MPI_COMM_NULL");
  if (!is_comm(parent, sessions, &inter))
    return mgrid_fail(err, MGRID_USAGE,
                      "mpi: the parent is not a communicator, or one that was freed");
  if (!inter) return MGRID_OK;
  return mgrid_fail(
      err, MGRID_USAGE,
      "mpi: the parent is an intercommunicator; MPI_Intercomm_merge makes an intracommunicator "
      "of it");
}

/* ----------------------------------------------------------- the duplicate */

/* The library's duplicate of a host's communicator, kept for the next backend over that
** communicator. An attribute of the host's communicator holds it, without a copy function, so that
** duplicates made by the host do not get it. MPI calls host_drop when the host frees its
** communicator. Backends hold the duplicate, too, and the last holder frees the duplicate; so the
** host may free its communicator before its backends. Backends that share a duplicate make their
** calls over all ranks in one order, as the states of one backend do. With MPI_THREAD_MULTIPLE two
** threads may use two backends, so only one backend at a time has the duplicate. */
struct mpi_channel {
  MPI_Comm comm;
  MPI_Group members;
  uint64_t job, opened; /* opened: how many backends so far; equal on all ranks */
  atomic_int holders;   /* the backends, and the attribute */
  bool alone;           /* only one backend at a time has it */
  bool broken;          /* a backend that has ended may have left a call inside MPI */
  mpi_backend *first;   /* the backends that have it, linked by `beside` */
};

/* The keyval of the attribute, plus 1; 0: there is none yet. MPI cannot be asked later for a
** keyval, so the first backend stores it here, in the only mutable object of the library. */
static atomic_int mgrid_mpi_attribute;

static void host_release(mpi_channel *c, bool there) {
  if (atomic_fetch_sub(&c->holders, 1) > 1) return;
  if (there && !c->broken) {
    MPI_Group_free(&c->members);
    MPI_Comm_free(&c->comm);
  }
  free(c);
}

static int host_drop(MPI_Comm comm, int key, void *channel, void *unused) {
  (void)comm, (void)key, (void)unused;
  host_release(channel, true);
  return MPI_SUCCESS;
}

/* Free the keyval. This is the delete function of an attribute of MPI_COMM_SELF; MPI_Finalize
** deletes these attributes first. */
static int end_key(MPI_Comm comm, int key, void *value, void *unused) {
  int ours = atomic_exchange(&mgrid_mpi_attribute, 0) - 1;
  (void)comm, (void)key, (void)value, (void)unused;
  return ours < 0 ? MPI_SUCCESS : MPI_Comm_free_keyval(&ours);
}

static int end_with_mpi(void) {
  int end = MPI_KEYVAL_INVALID;
  int rc = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_key, &end, NULL);
  if (!rc) rc = MPI_Comm_set_attr(MPI_COMM_SELF, end, NULL);
  /* MPI keeps the keyval until the attribute is deleted */
  if (end != MPI_KEYVAL_INVALID) MPI_Comm_free_keyval(&end);
  return rc;
}

/* Find the keyval, or create it. MPI may call host_drop after the last backend has ended, so this
** code must not be unloaded. */
static int find_key(int *key) {
  int made = MPI_KEYVAL_INVALID, none = 0;
  *key = atomic_load(&mgrid_mpi_attribute) - 1;
  if (*key >= 0) return MPI_SUCCESS;
  Dl_info info;
  void *self = dladdr((void *)(uintptr_t)&host_drop, &info) && info.dli_fname
                   ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)
                   : NULL;
  if (self) dlclose(self); /* NULL: the code is in the program, which is never unloaded */
  int rc = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, host_drop, &made, NULL);
  if (rc) return rc;
  bool first = atomic_compare_exchange_strong(&mgrid_mpi_attribute, &none, made + 1);
  if (!first) MPI_Comm_free_keyval(&made);
  *key = atomic_load(&mgrid_mpi_attribute) - 1;
  return first ? end_with_mpi() : MPI_SUCCESS;
}

/* Return the communicator whose attribute keeps the duplicate of `parent`. MPI_Finalize deletes the
** attributes of MPI_COMM_SELF while MPI can still be called, but those of MPI_COMM_WORLD later or
** never. A duplicate of MPI_COMM_SELF is not kept: no message is ever sent on it. */
static MPI_Comm home_of(MPI_Comm parent) {
  return parent == MPI_COMM_SELF    ? MPI_COMM_NULL
         : parent == MPI_COMM_WORLD ? MPI_COMM_SELF
                                    : parent;
}

mpi_channel *mgrid_channel_of(MPI_Comm parent) {
  mpi_channel *c = NULL;
  MPI_Comm home = home_of(parent);
  int key = atomic_load(&mgrid_mpi_attribute) - 1, there = 0;
  if (key < 0 || home == MPI_COMM_NULL || MPI_Comm_get_attr(home, key, &c, &there) || !there)
    return NULL;
  return c;
}

static bool channel_is_broken(const mpi_channel *c) {
  bool broken = c->broken;
  for (const mpi_backend *m = c->first; m; m = m->beside) broken |= m->broken;
  return broken;
}

/* If only one backend at a time may have the duplicate, look at the number of holders before the
** list, because that backend may be ending in another thread. */
bool mgrid_channel_is_free(const mpi_channel *c) {
  if (!c || (c->alone && atomic_load(&c->holders) > 1) || channel_is_broken(c)) return false;
  for (const mpi_backend *m = c->first; m; m = m->beside)
    if (m->pending) return false;
  return true;
}

/* Each backend of a channel numbers its calls in a range of its own, because all their roll calls
** use one communicator. */
void mgrid_channel_join(mpi_channel *c, mpi_backend *m) {
  atomic_fetch_add(&c->holders, 1);
  m->channel = c;
  m->comm = c->comm, m->members = c->members, m->job = c->job;
  m->calls = c->opened++ << 32;
  m->beside = c->first;
  c->first = m;
}

void mgrid_channel_leave(mpi_backend *m, bool usable) {
  mpi_channel *c = m->channel;
  mpi_backend **at = &c->first;
  while (*at != m) at = &(*at)->beside;
  *at = m->beside;
  c->broken |= !usable;
  m->channel = NULL, m->comm = MPI_COMM_NULL, m->members = MPI_GROUP_NULL;
  host_release(c, usable);
}

int mgrid_channel_keep(mpi_backend *m, MPI_Comm parent, bool alone) {
  MPI_Comm home = home_of(parent);
  mpi_channel *c = home == MPI_COMM_NULL ? NULL : calloc(1, sizeof *c);
  int key, rc;
  if (home == MPI_COMM_NULL) return MPI_SUCCESS;
  if (!c) return MPI_ERR_NO_MEM;
  *c = (mpi_channel){ .comm = m->comm, .members = m->members, .job = m->job, .alone = alone };
  atomic_store(&c->holders, 1);
  rc = find_key(&key);
  if (!rc) rc = MPI_Comm_set_attr(home, key, c); /* this drops a duplicate that was there */
  if (rc)
    free(c);
  else
    mgrid_channel_join(c, m);
  return rc;
}

/* ------------------------------------------------------ may MPI be called? */

mgrid_status mgrid_mpi_initialized(mgrid_error *err) {
  int ready = 0, gone = 0;
  MPI_Initialized(&ready);
  MPI_Finalized(&gone);
  if (ready && !gone) return MGRID_OK;
  return mgrid_fail(err, MGRID_USAGE, "mpi: %s",
                    gone ? "MPI is finalized already" : "MPI is not initialized yet");
}

/* Check that MPI still exists. With sessions, the backend's own session keeps it alive. */
static mgrid_status there(const mpi_backend *m, mgrid_error *err) {
  if (m->pid != getpid())
    return mgrid_fail(err, MGRID_USAGE,
                      "mpi: this process was forked from the one that opened the backend");
  return m->sessions ? MGRID_OK : mgrid_mpi_initialized(err);
}
bool mgrid_mpi_there(const mpi_backend *m) { return !there(m, NULL); }

mgrid_status mgrid_mpi_in_main_thread(mgrid_error *err) {
  int main = 0;
  MPI_Is_thread_main(&main);
  if (main) return MGRID_OK;
  return mgrid_fail(err, MGRID_USAGE,
                    "mpi: only the thread that initialized MPI may call it; other threads may if "
                    "it is initialized with MPI_THREAD_SERIALIZED, or several at once with "
                    "MPI_THREAD_MULTIPLE");
}

mgrid_status mgrid_mpi_callable(const mpi_backend *m, mgrid_error *err) {
  mgrid_status s = there(m, err);
  return !s && m->main ? mgrid_mpi_in_main_thread(err) : s;
}

mgrid_status mgrid_mpi_usable(const mpi_backend *m, mgrid_error *err) {
  mgrid_missing lost;
  mgrid_status s = mgrid_mpi_callable(m, err);
  if (s || !(m->channel ? channel_is_broken(m->channel) : m->broken)) return s;
  if (mgrid_mpi_lost(m, NULL, 0, &lost)) return mgrid_missing_fail(&lost, 0, err);
  return mgrid_fail(err, MGRID_TIMED_OUT,
                    "mpi: an earlier call over all ranks did not end; the job cannot go on");
}
