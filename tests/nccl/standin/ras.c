/* SPDX-License-Identifier: MIT
**
** ras.c - NCCL's RAS, as far as a client sees it: with STANDIN_RAS=folder each process writes there what it knows of its
** communicators, and the first of them listens at NCCL_RAS_ADDR and answers for all. The JSON has the fault that NCCL
** 2.28.9 has (no comma before the status of a rank that is missing); before 2.28.7 there is text alone.
*/
#include "comm.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const calls[] = { "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce" };
static const int         kinds[] = { BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE };
enum { NCALLS = sizeof calls / sizeof *calls };

static const char *folder(void) {
  const char *path = getenv("STANDIN_RAS");
  return path && *path ? path : NULL;
}

/* ----------------------------------------------------------------- what a process knows */

typedef struct entry {
  unsigned long long id;
  int                size, rank, pid, device, init, error, finalized;
  unsigned long      count[NCALLS];
} entry;

/* Under si_lock. Another name first, so that a reader sees all of it or nothing. */
static void write_all(void) {
  char path[512], part[540];
  snprintf(path, sizeof path, "%s/%d", folder(), (int)getpid());
  snprintf(part, sizeof part, "%s.part", path);
  FILE *file = fopen(part, "we");
  for (ncclComm_t c = si_comm_first(); file && c; c = c->next) {
    if (c->life == LIFE_DEAD || !c->id) continue;
    int now = atomic_load(&c->busy) || c->life == LIFE_MAKING ? (int)ncclInProgress : (int)ncclSuccess;
    fprintf(file, "%llx %d %d %d %d %d %d %d", (unsigned long long)c->id, c->nranks, c->rank, (int)getpid(), c->device,
            c->life == LIFE_MAKING ? now : 0, (int)si_comm_error(c), c->finalized);
    for (int i = 0; i < NCALLS; i++) fprintf(file, " %lu", c->calls[kinds[i]]);
    fputc('\n', file);
  }
  if (file) fclose(file);
  rename(part, path);
}

static size_t read_all(entry **all) {
  size_t         n = 0;
  DIR           *dir = opendir(folder());
  struct dirent *one;
  *all = NULL;
  while (dir && (one = readdir(dir))) {
    char path[800];
    snprintf(path, sizeof path, "%s/%s", folder(), one->d_name);
    FILE *file = strchr(one->d_name, '.') ? NULL : fopen(path, "re");
    entry e;
    while (file
           && fscanf(file, "%llx %d %d %d %d %d %d %d %lu %lu %lu %lu %lu", &e.id, &e.size, &e.rank, &e.pid, &e.device,
                     &e.init, &e.error, &e.finalized, &e.count[0], &e.count[1], &e.count[2], &e.count[3], &e.count[4])
                  == 8 + NCALLS) {
      entry *more = realloc(*all, (n + 1) * sizeof *more);
      if (!more) break;
      *all = more;
      more[n++] = e;
    }
    if (file) fclose(file);
  }
  if (dir) closedir(dir);
  return n;
}

/* --------------------------------------------------------------------------- the answer */

static int by_id_and_rank(const void *a, const void *b) {
  const entry *x = a, *y = b;
  return x->id != y->id ? (x->id < y->id ? -1 : 1) : x->rank - y->rank;
}

static bool is_alive(const entry *e) { return kill(e->pid, 0) == 0; }

static void put_rank(FILE *out, const entry *e, bool first) {
  fprintf(out, "%s        {\n          \"rank\": %d,\n          \"host\": \"127.0.0.1\",\n          \"pid\": %d,\n",
          first ? "" : ",\n", e->rank, e->pid);
  fprintf(out, "          \"cuda_dev\": %d,\n          \"nvml_dev\": %d", e->device, e->device);
  if (!is_alive(e)) {
    fprintf(out,
            "%s\n          \"status\": {\n            \"unresponsive\": true,\n            \"considered_dead\": true\n "
            "         }\n",
            si_version() >= 22902 ? "," : "");
  } else {
    fprintf(out, ",\n          \"status\": {\n            \"init_state\": %d,\n            \"async_error\": %d,\n",
            e->init, e->error);
    fprintf(out,
            "            \"finalize_called\": %s,\n            \"destroy_flag\": false,\n            \"abort_flag\": "
            "false\n          },\n",
            e->finalized ? "true" : "false");
    fprintf(out, "          \"collective_counts\": {\n");
    for (int i = 0; i < NCALLS; i++)
      fprintf(out, "            \"%s\": %lu%s\n", calls[i], e->count[i], i + 1 < NCALLS ? "," : "");
    fprintf(out, "          }\n");
  }
  fprintf(out, "        }");
}

static size_t put_list(FILE *out, const entry *e, size_t n, bool alive) {
  size_t some = 0;
  for (size_t i = 0; i < n; i++)
    if (is_alive(&e[i]) == alive) put_rank(out, &e[i], some++ == 0);
  return some;
}

static void put_json(FILE *out) {
  entry *all;
  size_t n = read_all(&all), comms = 0;
  if (n) qsort(all, n, sizeof *all, by_id_and_rank);
  for (size_t i = 0; i < n; i++) comms += i == 0 || all[i].id != all[i - 1].id;
  int v = si_version();
  fprintf(out, "{\n  \"nccl_version\": \"%d.%d.%d\",\n  \"communicators_count\": %zu,\n  \"communicators\": [\n",
          v / 10000, v / 100 % 100, v % 100, comms);
  for (size_t i = 0, next; i < n; i = next) {
    for (next = i; next < n && all[next].id == all[i].id;) next++;
    fprintf(out, "%s    {\n      \"hash\": \"0x%llx\",\n      \"size\": %d,\n      \"ranks\": [\n", i ? ",\n" : "",
            all[i].id, all[i].size);
    put_list(out, &all[i], next - i, true);
    fprintf(out, "\n      ],\n      \"missing_ranks\": [\n");
    put_list(out, &all[i], next - i, false);
    fprintf(out, "\n      ]\n    }");
  }
  fprintf(out, "\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.000,\n    \"timeouts_count\": 0\n  }\n}\n");
  free(all);
}

static void serve(int fd) {
  char  line[256];
  bool  json = false;
  FILE *in = fdopen(fd, "r+"), *out = in ? fdopen(dup(fd), "w") : NULL;
  while (out && fgets(line, sizeof line, in)) {
    line[strcspn(line, "\n")] = '\0';
    bool status = strcasecmp(line, "status") == 0 || strcasecmp(line, "verbose status") == 0;
    if (strncasecmp(line, "client protocol ", 16) == 0)
      fprintf(out, "SERVER PROTOCOL 2\n");
    else if (strcasecmp(line, "set format json") == 0 && si_version() >= 22807)
      json = true, fprintf(out, "OK\n");
    else if (status && json)
      put_json(out);
    else if (status)
      fprintf(out, "Job summary\n===========\n");
    else
      fprintf(out, "ERROR: Unknown command %s\n", line);
    fflush(out);
    if (status) break;
  }
  if (out) fclose(out);
  if (in) fclose(in);
}

static void *listen_on(void *arg) {
  int fd = *(int *)arg, one;
  free(arg);
  while ((one = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0 || errno == EINTR)
    if (one >= 0) serve(one);
  return NULL;
}

/* The first process of the machine gets the port; the others have no need of it. */
static void begin(void) {
  const char        *address = getenv("NCCL_RAS_ADDR"), *colon = address ? strrchr(address, ':') : NULL;
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(colon ? atoi(colon + 1) : 28028)) };
  pthread_t          thread;
  int               *fd = malloc(sizeof *fd), yes = 1;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd) return;
  *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (*fd >= 0 && bind(*fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(*fd, 8) == 0
      && pthread_create(&thread, NULL, listen_on, fd) == 0) {
    pthread_detach(thread);
    return;
  }
  if (*fd >= 0) close(*fd);
  free(fd);
}

void si_ras_update(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!folder() || !standin_env("NCCL_RAS_ENABLE", 1)) return;
  pthread_once(&once, begin);
  si_lock();
  write_all();
  si_unlock();
}

void si_ras_end(void) {
  char path[512];
  if (!folder()) return;
  snprintf(path, sizeof path, "%s/%d", folder(), (int)getpid());
  unlink(path);
}
