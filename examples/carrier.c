/* SPDX-License-Identifier: MIT
**
** carrier.c - a job without MPI: the ranks find each other over a store, here a folder that all of
** them see. For a better store (torch's, a TCP store, etcd) replace put, get and erase; the rest
** stays as it is. The launcher of the processes, such as Kubernetes or a shell loop, passes each
** process its rank:
**
**     cc carrier.c $(pkg-config --cflags --libs moongrid) -o carrier
**     mkdir /tmp/job; for r in 0 1 2 3; do ./carrier /tmp/job $r 4 nccl layout.lua tp=2 & done; wait
**
** Without the word nccl the ranks agree on the plan, but cannot use its communicators.
*/
#include <moongrid.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct store {
  const char *folder;
  char why[256];
} store;

static mgrid_status failed(store *s, const char *what) {
  snprintf(s->why, sizeof s->why, "%.180s: %.60s", what, strerror(errno));
  return MGRID_BACKEND;
}

static const char *why(void *ud) { return ((store *)ud)->why; }

/* Write to a temporary file and rename it, so that no reader sees half a value. */
static mgrid_status put(void *ud, const char *key, const void *data, size_t bytes) {
  store *s = ud;
  char path[512], part[600];
  snprintf(path, sizeof path, "%s/%s", s->folder, key);
  snprintf(part, sizeof part, "%s.%ld", path, (long)getpid());
  FILE *f = fopen(part, "wb");
  if (!f) return failed(s, part);
  size_t written = fwrite(data, 1, bytes, f);
  if (fclose(f) || written != bytes || rename(part, path)) return failed(s, path);
  return MGRID_OK;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static mgrid_status get(void *ud, int64_t from, const char *key, void *data, size_t bytes,
                        double seconds) {
  store *s = ud;
  const struct timespec little = { 0, 1000000 };
  double until = now() + seconds;
  char path[512];
  (void)from; /* every rank can read every key */
  snprintf(path, sizeof path, "%s/%s", s->folder, key);
  for (;; nanosleep(&little, NULL)) {
    FILE *f = fopen(path, "rb");
    if (f) {
      size_t got = fread(data, 1, bytes, f);
      fclose(f);
      return got == bytes ? MGRID_OK : failed(s, path);
    }
    if (errno != ENOENT) return failed(s, path);
    if (now() >= until) return MGRID_TIMED_OUT;
  }
}

static mgrid_status erase(void *ud, const char *key) {
  store *s = ud;
  char path[512];
  snprintf(path, sizeof path, "%s/%s", s->folder, key);
  return unlink(path) ? failed(s, path) : MGRID_OK;
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: carrier FOLDER RANK WORLD [nccl] RECIPE [NAME=VALUE ...]\n");
    return 2;
  }
  bool nccl = strcmp(argv[4], "nccl") == 0 && argc > 5;
  int first = nccl ? 5 : 4;
  store s = { argv[1], "" };
  mgrid_carrier c = MGRID_CARRIER_INIT;
  c.ud = &s;
  c.rank = strtoll(argv[2], NULL, 10), c.world = strtoll(argv[3], NULL, 10);
  c.put = put, c.get = get, c.erase = erase, c.reason = why;
  if (getenv("CARRIER_TIMEOUT")) c.timeout = strtod(getenv("CARRIER_TIMEOUT"), NULL);

  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_carrier_backend(&c, &e);
  if (b && nccl) {
    mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
    o.timeout = c.timeout;
    /* collective; the new backend keeps b */
    mgrid_backend *over = mgrid_backend_over(b, "nccl", &o, &e);
    mgrid_backend_free(b);
    b = over;
  }
  /* A rank that fails to load or plan takes part anyway, so that every rank gets an error. */
  size_t n = (size_t)(argc - first - 1);
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  o.name = "train";
  mgrid_state *state = mgrid_open(b, argv[first], n, (const char *const *)argv + first + 1, &o, &e);
  int64_t proved = 0;
  if (state && mgrid_state_prove(state, &proved, &e) == MGRID_OK)
    printf("rank %lld of %lld: %zu communicators, %lld proved, on %s\n", (long long)c.rank,
           (long long)c.world, mgrid_state_ncomms(state), (long long)proved, mgrid_backend_name(b));
  mgrid_state_free(state);
  mgrid_backend_free(b);
  if (e.status) fprintf(stderr, "carrier: rank %lld: %s\n", (long long)c.rank, e.message);
  return e.status / 100;
}
