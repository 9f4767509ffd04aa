/* SPDX-License-Identifier: MIT
**
** account.c - counts of bytes, calls and launches; the log; the faults that the environment asks
** for.
*/
#include "rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* "rank:name:number[:error]" of CUDARIG_FAIL, "rank:name:milliseconds" of CUDARIG_DELAY; rank * is
** every one, and name * every function. */
typedef struct fault {
  char name[64];
  long number;
  int error; /* 0: a delay */
} fault;

static const char *const kinds[RIG_KINDS] = { "device", "cumem", "host" };
static struct {
  const char *name;
  atomic_llong n;
} alive[] = { { "streams", 0 }, { "events", 0 } };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rig_site *sites;
static fault faults[32];
static int nfaults, log_fd = -1;
static fault asked; /* of cudarig_fail; its number counts down. Under the lock */
static atomic_bool asks;
static long long limit = -1;
static long long now[RIG_KINDS], peak[RIG_KINDS], taken[RIG_DEVICES];
static atomic_llong launches;

int rig_rank(void) {
  static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (getenv(names[i])) return atoi(getenv(names[i]));
  return 0;
}

void rig_say(const char *format, ...) {
  char line[512];
  va_list args;
  int n = snprintf(line, sizeof line, RIG_NAME ": rank %d: ", rig_rank());
  va_start(args, format);
  vsnprintf(line + n, sizeof line - (size_t)n, format, args);
  va_end(args);
  fprintf(stderr, "%s\n", line);
}

void rig_wrong(const char *format, ...) {
  char text[256];
  va_list args;
  if (!rig_the_manner.wrong) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  rig_the_manner.wrong(text);
}

void rig_leaks(void) {
  rig_stream_leaks();
  rig_memory_leaks();
}

/* -------------------------------------------------------------- the environment */

/* The rest of a word after "rank:", or NULL: it is for another rank. */
static const char *mine(const char *word) {
  char *end;
  if (*word == '*' && word[1] == ':') return word + 2;
  long rank = strtol(word, &end, 10);
  return end != word && *end == ':' && rank == rig_rank() ? end + 1 : NULL;
}

static void read_faults(const char *variable, bool delay) {
  const char *text = getenv(variable);
  char *copy = text ? strdup(text) : NULL, *save = NULL;
  for (char *w = copy ? strtok_r(copy, ",", &save) : NULL; w; w = strtok_r(NULL, ",", &save)) {
    fault f = { .error = delay ? 0 : CUDA_ERROR_UNKNOWN };
    const char *rest = mine(w);
    int error = 0;
    if (!rest) continue;
    int n = sscanf(rest, "%63[A-Za-z0-9_*]:%ld:%d", f.name, &f.number, &error);
    if (n < 2 || nfaults == (int)(sizeof faults / sizeof *faults)) {
      rig_say("%s: '%s' is not rank:name:number, or one too many", variable, w);
      continue;
    }
    if (n == 3 && !delay) f.error = error;
    faults[nfaults++] = f;
  }
  free(copy);
}

static int open_for_rank(const char *variable) {
  char path[4096];
  const char *prefix = getenv(variable);
  if (!prefix || !*prefix) return -1;
  snprintf(path, sizeof path, "%s.%d", prefix, rig_rank());
  return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static void read_environment(void) {
  const char *memory = getenv("CUDARIG_MEMORY"); /* MiB, or rank:MiB */
  read_faults("CUDARIG_FAIL", false);
  read_faults("CUDARIG_DELAY", true);
  log_fd = open_for_rank("CUDARIG_LOG");
  if (memory && strchr(memory, ':')) memory = mine(memory);
  if (memory && *memory) limit = atoll(memory) * (1LL << 20);
}

/* ------------------------------------------------------------------------- calls */

/* name, or name_v2 for the fault of name; * for any */
static bool names(const char *called, const char *wanted) {
  size_t n = strlen(wanted);
  return !strcmp(wanted, "*")
         || (!strncmp(called, wanted, n)
             && (!called[n] || (called[n] == '_' && called[n + 1] == 'v')));
}

void rig_note(const char *text) {
  char line[160];
  if (log_fd < 0) return;
  int n = snprintf(line, sizeof line, "%s\n", text);
  /* one write, so that lines of threads do not mix */
  ssize_t written = write(log_fd, line, (size_t)n);
  (void)written;
}

void cudarig_fail(const char *name, long nth, int error) {
  pthread_mutex_lock(&lock);
  asked = (fault){ .number = nth, .error = error };
  snprintf(asked.name, sizeof asked.name, "%s", name ? name : "");
  pthread_mutex_unlock(&lock);
  atomic_store(&asks, name != NULL);
}

/* The error of this call by cudarig_fail. */
static int asked_error(const char *name) {
  pthread_mutex_lock(&lock);
  bool every = asked.number == 0, hit = names(name, asked.name) && (every || --asked.number == 0);
  int error = hit ? asked.error : 0;
  if (hit && !every) atomic_store(&asks, false);
  pthread_mutex_unlock(&lock);
  return error;
}

int rig_enter(rig_site *site, const char *name) {
  pthread_once(&once, read_environment);
  long nth = atomic_fetch_add(&site->calls, 1) + 1;
  if (nth == 1) {
    pthread_mutex_lock(&lock);
    site->name = name;
    site->next = sites;
    sites = site;
    pthread_mutex_unlock(&lock);
  }
  rig_note(name);
  for (int i = 0; i < nfaults; i++) {
    const fault *f = &faults[i];
    if (!names(name, f->name)) continue;
    if (!f->error) {
      struct timespec t = { f->number / 1000, f->number % 1000 * 1000000 };
      nanosleep(&t, NULL);
    } else if (f->number == 0 || f->number == nth)
      return f->error;
  }
  return atomic_load(&asks) ? asked_error(name) : 0;
}

void rig_launched(const char *what) {
  char line[128];
  if (atomic_fetch_add(&launches, 1) == 0)
    rig_say("a kernel is launched, and does not run; this is the first");
  snprintf(line, sizeof line, "launch of %.100s: does not run", what ? what : "a kernel");
  rig_note(line);
}

void rig_alive(const char *what, int change) {
  for (size_t i = 0; i < sizeof alive / sizeof *alive; i++)
    if (!strcmp(alive[i].name, what)) atomic_fetch_add(&alive[i].n, change);
}

/* ------------------------------------------------------------------------- bytes */

static long long room(void) {
  pthread_once(&once, read_environment);
  return limit >= 0 ? limit : rig_the_machine()->memory;
}

bool rig_take(rig_kind kind, int device, long long bytes) {
  long long all = room();
  bool on_device = kind != RIG_HOST;
  pthread_mutex_lock(&lock);
  bool fits = !on_device || bytes <= 0 || taken[device] + bytes <= all;
  if (fits) {
    if (on_device) taken[device] += bytes;
    now[kind] += bytes;
    if (now[kind] > peak[kind]) peak[kind] = now[kind];
  }
  pthread_mutex_unlock(&lock);
  return fits;
}

long long rig_free_bytes(int device) {
  long long all = room();
  pthread_mutex_lock(&lock);
  all -= taken[device];
  pthread_mutex_unlock(&lock);
  return all;
}

long long cudarig_count(const char *name) {
  long long n = -1;
  char high[32];
  if (!strcmp(name, "launches")) return atomic_load(&launches);
  for (size_t i = 0; i < sizeof alive / sizeof *alive; i++)
    if (!strcmp(alive[i].name, name)) return atomic_load(&alive[i].n);
  pthread_mutex_lock(&lock);
  for (int k = 0; k < RIG_KINDS; k++) {
    snprintf(high, sizeof high, "%s peak", kinds[k]);
    if (!strcmp(name, kinds[k])) n = now[k];
    if (!strcmp(name, high)) n = peak[k];
  }
  for (rig_site *s = sites; s; s = s->next)
    if (names(s->name, name)) n = (n < 0 ? 0 : n) + atomic_load(&s->calls);
  pthread_mutex_unlock(&lock);
  return n;
}

const char *cudarig_function(int i, long *calls) {
  pthread_mutex_lock(&lock);
  rig_site *s = sites;
  while (s && i-- > 0) s = s->next;
  if (s && calls) *calls = atomic_load(&s->calls);
  pthread_mutex_unlock(&lock);
  return s ? s->name : NULL;
}

/* CUDARIG_COUNTS=prefix: what was counted, in prefix.<rank>, when the process ends. */
__attribute__((destructor)) static void the_end(void) {
  int fd = open_for_rank("CUDARIG_COUNTS");
  if (fd < 0) return;
  for (int k = 0; k < RIG_KINDS; k++)
    dprintf(fd, "%s %lld\n%s peak %lld\n", kinds[k], now[k], kinds[k], peak[k]);
  for (size_t i = 0; i < sizeof alive / sizeof *alive; i++)
    dprintf(fd, "%s %lld\n", alive[i].name, atomic_load(&alive[i].n));
  dprintf(fd, "launches %lld\n", atomic_load(&launches));
  for (rig_site *s = sites; s; s = s->next)
    dprintf(fd, "call %s %ld\n", s->name, atomic_load(&s->calls));
  close(fd);
}
