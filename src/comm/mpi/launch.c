/* SPDX-License-Identifier: MIT
**
** launch.c - check that the MPI library of this process is the one that this backend was built for, and the one whose
** launcher started the process. MPI itself reports neither: under another library's mpirun each process believes that it
** is rank 0 of 1, and with two libraries in a process the handles of one go into calls of the other.
*/
#include "comm/mpi/mpi.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>

/* The family of the header, and the name that the other family reports. Relatives (Intel's, MVAPICH) pass. */
#ifdef OPEN_MPI
#define BUILT_WITH "Open MPI"
#define OTHER      "MPICH"
#else
#define BUILT_WITH "MPICH"
#define OTHER      "Open MPI"
#endif

typedef int is_initialized(int *);

/* The library whose functions this backend calls, and another MPI that the process has loaded. */
typedef struct found {
  const char *ours;
  char        other[256];
} found;

static const char *file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_mpi(const char *path) {
  static const char *const names[] = { "libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpi_cray.so", "libmpi_gnu_" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(file_of(path), names[i], strlen(names[i])) == 0) return true;
  return false;
}

/* For dl_iterate_phdr. */
static int look_for_other(struct dl_phdr_info *info, size_t size, void *ud) {
  found *f = ud;
  (void)size;
  if (f->other[0] || !info->dlpi_name || !is_mpi(info->dlpi_name) || strcmp(info->dlpi_name, f->ours) == 0) return 0;
  snprintf(f->other, sizeof f->other, "%s", info->dlpi_name);
  return 0;
}

/* Return whether the host has initialized the library at that path. */
static bool is_started(const char *path) {
  void           *lib = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  is_initialized *ask = NULL;
  int             yes = 0;
  if (!lib) return false;
  *(void **)&ask = dlsym(lib, "MPI_Initialized");
  if (ask) ask(&yes);
  dlclose(lib);
  return yes;
}

/* Shorten the library's version text to "Open MPI v4.1.4" or "MPICH 5.0.2". */
static const char *version(char *text) {
  static const char word[] = "Version:";
  int               n = 0;
  if (MPI_Get_library_version(text, &n) != MPI_SUCCESS) return BUILT_WITH;
  text[strcspn(text, ",\n")] = '\0';
  char *number = strstr(text, word), *from = number;
  if (!number) return text;
  from += sizeof word - 1;
  from += strspn(from, " \t");
  memmove(number, from, strlen(from) + 1);
  return text;
}

/* Return the path of the library whose functions this backend calls. This is the slowest check when a backend opens. */
static const char *our_file(void) {
  Dl_info info;
  return dladdr((void *)(uintptr_t)&MPI_Initialized, &info) && info.dli_fname ? info.dli_fname : "";
}

mgrid_status mgrid_mpi_one_library(mgrid_error *err) {
  char  text[MGRID_MPI_VERSION];
  found f = { "", "" };
  int   ready = 0;
  bool  wrong = strstr(version(text), OTHER);
  MPI_Initialized(&ready);
  if (ready && !wrong) return MGRID_OK;
  f.ours = our_file();
  if (wrong)
    return mgrid_fail(err, MGRID_BACKEND,
                      "mpi: this backend was built with " BUILT_WITH ", and the program has loaded %.80s (%s); build "
                      "moongrid with the program's MPI",
                      text, f.ours);
  dl_iterate_phdr(look_for_other, &f);
  if (!f.other[0] || !is_started(f.other)) return MGRID_OK;
  return mgrid_fail(
      err, MGRID_BACKEND,
      "mpi: the program has started the MPI of %s, and this backend uses %.80s of %s; build moongrid with "
      "the program's MPI",
      f.other, text, f.ours);
}

/* MPICH reports how it was configured. Without PMIx, under a launcher that offers only PMIx, MPI_Init ends the process
** (5.0) or starts a world of one rank (4.0). */
static bool lacks_pmix(void) {
  char text[MGRID_MPI_VERSION];
  int  n = 0;
  return MPI_Get_library_version(text, &n) == MPI_SUCCESS && strncmp(text, "MPICH Version", 13) == 0
         && strstr(text, "configure:") && !strstr(text, "pmix");
}

/* Return whether MPI is initialized with a world of this process only. A host that hands over MPI_COMM_SELF means that. */
static bool is_alone(MPI_Comm parent) {
  int all = 0, size = 0;
  if (parent == MPI_COMM_NULL || parent == MPI_COMM_SELF) return false;
  return !MPI_Comm_size(MPI_COMM_WORLD, &all) && !MPI_Comm_size(parent, &size) && all == 1 && size == 1;
}

mgrid_status mgrid_mpi_launched(MPI_Comm parent, mgrid_error *err) {
  char           text[MGRID_MPI_VERSION], these[40] = "this process";
  const char    *also = "";
  mgrid_launched l = mgrid_launcher();
  bool           foreign = l.pmix && lacks_pmix();
  if (!l.by || (l.sized && l.size < 2)) return MGRID_OK;
  if (parent == MPI_COMM_NULL ? !foreign : !is_alone(parent) || !(l.sized || foreign)) return MGRID_OK;
  if (l.sized) snprintf(these, sizeof these, "%" PRId64 " processes", l.size);
  if (strcmp(l.by, "srun") == 0) also = foreign ? ", or by srun --mpi=pmi2" : ", or by srun --mpi=pmix or --mpi=pmi2";
  return mgrid_fail(
      err, MGRID_BACKEND,
      "mpi: %s started %s, and the MPI of this one, %.80s, knows of itself alone: start it by that library's own "
      "mpirun%s, or build moongrid with the launcher's MPI",
      l.by, these, version(text), also);
}
