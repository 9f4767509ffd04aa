/* SPDX-License-Identifier: MIT
**
** system.c - what this process can learn from its system: the time, its machine, its launcher, its
** limits. Only this C file reads the variables that launchers set; for scripts they are in
** scripts/mpi.d/libraries.
*/
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

/* ================================================================= the clock */

double mgrid_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double mgrid_processor_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void mgrid_pause(int look) {
  struct timespec t = { 0, look < 1000 ? 50000 : 1000000 };
  if (look >= 200)
    nanosleep(&t, NULL);
  else if (look >= 16)
    sched_yield();
}

/* =============================================================== the machine */

/* Identify a machine by host name and boot id, as NCCL does. Several machines may have one name,
** and containers on one machine may have several. */
uint64_t mgrid_machine_id(void) {
  char text[160] = "";
  size_t len;
  ssize_t n = 0;
  gethostname(text, 64);
  len = strnlen(text, 64);
  /* without stdio, which is slower: every rank runs this */
  int boot = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (boot >= 0) {
    n = read(boot, text + len, sizeof text - len);
    close(boot);
  }
  return XXH3_64bits(text, len + (n > 0 ? (size_t)n : 0));
}

int64_t mgrid_cores(int64_t *usable) {
  cpu_set_t set;
  int64_t online = sysconf(_SC_NPROCESSORS_ONLN);
  if (usable) *usable = sched_getaffinity(0, sizeof set, &set) ? online : CPU_COUNT(&set);
  return online;
}

/* ============================================================== the launcher */

/* The variables that launchers set for a rank. The order matters: if srun starts mpirun, the ranks
** of mpirun inherit the variables of srun. */
static const struct launcher_row {
  const char *by, *rank, *size;
} launcher_rows[] = {
  { "Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
  { "a launcher with PMI (MPICH's mpirun, srun --mpi=pmi2)", "PMI_RANK", "PMI_SIZE" },
  /* Slurm's other variables with a size are also set in the script of the job, which is not a
  ** rank */
  { "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" },
  { "a launcher with PMIx", "PMIX_RANK", NULL },
};

/* Read the environment variable `name`, a decimal number (only digits) from `least` to `most`.
** False: it is not set, or has another value. */
static bool number(const char *name, int64_t least, int64_t most, int64_t *n) {
  const char *text = name ? getenv(name) : NULL;
  if (!text || !*text || text[strspn(text, "0123456789")]) return false;
  int64_t said = strtoll(text, NULL, 10);
  if (said < least || said > most) return false;
  *n = said;
  return true;
}

mgrid_launched mgrid_launcher(void) {
  mgrid_launched l = { .pmix = getenv("PMIX_RANK") && !getenv("PMI_RANK"), .size = 1 };
  for (size_t i = 0; i < sizeof launcher_rows / sizeof *launcher_rows; i++) {
    l.by = launcher_rows[i].by;
    l.size = 1;
    l.sized = number(launcher_rows[i].size, 1, MGRID_WORLD_MAX, &l.size);
    int64_t last = l.sized ? l.size - 1 : MGRID_WORLD_MAX - 1;
    if ((l.sized || !launcher_rows[i].size) && number(launcher_rows[i].rank, 0, last, &l.rank))
      return l;
  }
  return (mgrid_launched){ .size = 1 };
}

/* ==================================================================== limits */

/* The limits of ulimit, and of the cgroup into which a container, Slurm or an administrator has put
** this process. They are read after a failure, so this allocates nothing. */

/* Read a small file as text. Return its length; 0: it cannot be read. */
static size_t slurp(const char *path, char *text, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, room - 1) : 0;
  if (fd >= 0) close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0 ? (size_t)n : 0;
}

/* ------------------------------------------------------------------ by ulimit */

static const struct limit_row {
  mgrid_scarce of;
  /* `column` of /proc/self/statm has the pages that the process uses; -1: there is none */
  int resource, column;
  const char *whose, *name;
} limit_rows[] = {
  { MGRID_SCARCE_MEMORY, RLIMIT_AS, 0, "process", "ulimit -v" },
  { MGRID_SCARCE_MEMORY, RLIMIT_DATA, 5, "process", "ulimit -d" },
  { MGRID_SCARCE_THREADS, RLIMIT_NPROC, -1, "user", "ulimit -u" },
  { MGRID_SCARCE_FILES, RLIMIT_NOFILE, -1, "process", "ulimit -n" },
};
enum { NROWS = sizeof limit_rows / sizeof limit_rows[0] };

static int64_t in_column(int column) {
  char text[128], *at = text;
  if (column < 0 || !slurp("/proc/self/statm", text, sizeof text)) return -1;
  while (column-- > 0 && at) at = strchr(at + 1, ' ');
  return at ? strtoll(at, NULL, 10) * sysconf(_SC_PAGESIZE) : -1;
}

static bool by_ulimit(const struct limit_row *r, mgrid_allowance *a) {
  struct rlimit now;
  /* RLIM_INFINITY is above INT64_MAX */
  if (getrlimit(r->resource, &now) != 0 || now.rlim_cur >= INT64_MAX) return false;
  *a = (mgrid_allowance){ r->of, r->whose, r->name, (int64_t)now.rlim_cur, in_column(r->column) };
  return true;
}

/* ------------------------------------------------------------------ by cgroup */

/* Cgroups of version 2 have one hierarchy. Those of version 1 have a hierarchy for each controller,
** in a folder named after it, and other names of files. */
static const struct group {
  mgrid_scarce of;
  const char *controller;
  struct {
    const char *most, *has;
  } file[2]; /* for version 1 and version 2 */
} groups[] = {
  { MGRID_SCARCE_MEMORY,
    "memory",
    { { "memory.limit_in_bytes", "memory.usage_in_bytes" }, { "memory.max", "memory.current" } } },
  { MGRID_SCARCE_THREADS,
    "pids",
    { { "pids.max", "pids.current" }, { "pids.max", "pids.current" } } },
};
enum { NGROUPS = sizeof groups / sizeof groups[0] };

/* Return whether the list "cpu,memory" contains the word. */
static bool lists(const char *list, size_t len, const char *word) {
  size_t n = strlen(word);
  for (const char *at = list; at + n <= list + len; at++)
    if (strncmp(at, word, n) == 0 && (at == list || at[-1] == ',')
        && (at + n == list + len || at[n] == ','))
      return true;
  return false;
}

/* Find the folder of this process's cgroup for a controller. Return its version, 1 or 2; 0: there
** is none. The first *root characters of the path are the top of the hierarchy. */
static int folder_of(const char *controller, char *path, size_t room, size_t *root) {
  char text[4096];
  int version = 0;
  const char *line = slurp("/proc/self/cgroup", text, sizeof text) ? text : "";
  /* a line is "4:cpu,memory:/a/b", or for version 2 "0::/a" */
  for (const char *end; (end = strchr(line, '\n')); line = end + 1) {
    const char *list = memchr(line, ':', (size_t)(end - line)),
               *place = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
    if (!place++) continue;
    list++;
    size_t len = (size_t)(place - 1 - list);
    bool named = len > 0 && lists(list, len, controller);
    if (!named && (len > 0 || version)) continue;
    version = named ? 1 : 2;
    *root = (size_t)snprintf(path, room, "/sys/fs/cgroup%s%s", named ? "/" : "",
                             named ? controller : "");
    snprintf(path + *root, room - *root, "%.*s", (int)(end - place), place);
    if (named) break;
  }
  return version;
}

/* Return the number in a file of a folder. -1: the file has no number, but for example the word
** "max". */
static int64_t number_in(const char *folder, const char *file) {
  char path[PATH_MAX], text[64], *end;
  snprintf(path, sizeof path, "%.3000s/%s", folder, file);
  if (!slurp(path, text, sizeof text)) return -1;
  long long n = strtoll(text, &end, 10);
  /* version 1 writes a larger number for "no limit" */
  return end > text && n < INT64_MAX / 2 ? n : -1;
}

/* Find the smallest limit of the cgroup and the cgroups above it. False: there is none. */
static bool by_cgroup(const struct group *g, mgrid_allowance *a) {
  char path[PATH_MAX];
  size_t root = 0;
  int version = folder_of(g->controller, path, sizeof path, &root);
  bool found = false;
  for (size_t len = version ? strlen(path) : 0; version && len >= root; len--) {
    if (len > root && path[len] != '/' && path[len] != '\0') continue;
    path[len] = '\0';
    int64_t most = number_in(path, g->file[version - 1].most);
    if (most < 0 || (found && a->most <= most)) continue;
    *a = (mgrid_allowance){ g->of, "cgroup", g->file[version - 1].most, most,
                            number_in(path, g->file[version - 1].has) };
    found = true;
  }
  return found;
}

bool mgrid_cgroup_kills(int64_t *killed) {
  char path[PATH_MAX], text[512];
  size_t root = 0;
  int version = folder_of("memory", path, sizeof path, &root);
  size_t len = strlen(version ? path : "");
  if (!version) return false;
  snprintf(path + len, sizeof path - len, "/%s",
           version == 1 ? "memory.oom_control" : "memory.events");
  const char *line = slurp(path, text, sizeof text) ? strstr(text, "oom_kill ") : NULL;
  if (line) *killed = strtoll(line + strlen("oom_kill "), NULL, 10);
  return line != NULL;
}

/* ---------------------------------------------------------- for error messages */

size_t mgrid_allowances(mgrid_allowance all[MGRID_ALLOWANCES]) {
  size_t n = 0;
  for (size_t i = 0; i < NROWS; i++) n += by_ulimit(&limit_rows[i], &all[n]);
  for (size_t i = 0; i < NGROUPS; i++) n += by_cgroup(&groups[i], &all[n]);
  return n;
}

void mgrid_allowance_words(const mgrid_allowance *a, char *buf, size_t room) {
  static const char *const units[] = { "MiB", "threads", "open files" };
  const int shift = a->of == MGRID_SCARCE_MEMORY ? 20 : 0;
  int n = snprintf(buf, room, "the %s may have %" PRId64 " %s (%s)", a->whose, a->most >> shift,
                   units[a->of], a->name);
  if (a->has >= 0) snprintf(buf + n, room - (size_t)n, " and has %" PRId64, a->has >> shift);
}

/* Of the limits of this kind, return the one that leaves the least. NULL: all leave more than
** `within`. A limit whose use is not known counts as if it left `within`. */
static const mgrid_allowance *system_nearest(const mgrid_allowance *all, size_t n, mgrid_scarce of,
                                             int64_t within) {
  const mgrid_allowance *found = NULL;
  int64_t least = within;
  for (size_t i = 0; i < n; i++) {
    int64_t left = all[i].has >= 0 ? all[i].most - all[i].has : within;
    if (all[i].of != of || left > least) continue;
    found = &all[i], least = left;
  }
  return found;
}

/* The memory limit of a cgroup is not considered: at this limit the kernel kills a process, and no
** call fails. A new thread may also fail for lack of memory for its stack. */
const char *mgrid_allowed(mgrid_scarce of, char buf[MGRID_ALLOWED]) {
  const int64_t stack = 16 << 20;
  mgrid_allowance all[MGRID_ALLOWANCES];
  const mgrid_allowance *a = NULL;
  bool threads = of == MGRID_SCARCE_THREADS;
  size_t n = 0;
  for (size_t i = 0; i < NROWS; i++) n += by_ulimit(&limit_rows[i], &all[n]);
  for (size_t i = 0; i < NGROUPS && threads; i++)
    n += groups[i].of == of && by_cgroup(&groups[i], &all[n]);
  if (threads) a = system_nearest(all, n, MGRID_SCARCE_MEMORY, stack);
  if (a && a->has < 0) a = NULL;
  if (!a) a = system_nearest(all, n, of, threads ? 1 : INT64_MAX);
  *buf = '\0';
  if (a) {
    snprintf(buf, MGRID_ALLOWED, ": ");
    mgrid_allowance_words(a, buf + 2, MGRID_ALLOWED - 2);
  }
  return buf;
}

const char *mgrid_allowed_by(int number, char buf[MGRID_ALLOWED]) {
  *buf = '\0';
  return number == EMFILE   ? mgrid_allowed(MGRID_SCARCE_FILES, buf)
         : number == ENOMEM ? mgrid_allowed(MGRID_SCARCE_MEMORY, buf)
         : number == EAGAIN ? mgrid_allowed(MGRID_SCARCE_THREADS, buf)
                            : buf;
}
