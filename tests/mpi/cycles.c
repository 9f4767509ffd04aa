/* SPDX-License-Identifier: MIT
**
** cycles.c [N] - objects that are made and freed N times (2000) leave nothing behind. Memory in use
** as malloc counts it, blocks that went through the hooks, descriptors, threads, communicators of
** MPI and mappings of files (such as shared memory) are as many after N cycles as after the first
** ones. TAP from rank 0; a test passes when it does on all ranks.
*/
#include "tap.h"

#include "moongrid_mpi.h"
#include "../c/results.h"

#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct counts {
  int64_t bytes;  /* in use, as malloc says */
  int64_t blocks; /* of the hooks */
  int64_t files;  /* open descriptors */
  int64_t threads;
  int64_t comms;    /* the index that MPI gives to the next communicator */
  int64_t held;     /* communicators of the backend */
  int64_t mappings; /* shared and of files, as shared memory is */
} counts;

static int64_t blocks;
static mgrid_backend *mpi;
static char path[64], other_path[64];

static void *allocate(void *ud, void *block, size_t was, size_t bytes) {
  (void)ud, (void)was;
  blocks += (bytes > 0) - (block != NULL);
  if (bytes > 0) return realloc(block, bytes);
  free(block);
  return NULL;
}

static const mgrid_hooks hooks = { sizeof hooks, NULL, allocate, NULL };

static int64_t entries(const char *folder) {
  int64_t n = 0;
  DIR *d = opendir(folder);
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

static int64_t mapped(void) {
  char line[512];
  int64_t n = 0;
  FILE *f = fopen("/proc/self/maps", "r");
  while (f && fgets(line, sizeof line, f)) n += strchr(line, '/') != NULL;
  if (f) fclose(f);
  return n;
}

static counts count(void) {
  MPI_Comm next;
  counts c = { .blocks = blocks, .held = (int64_t)mgrid_backend_ncomms(mpi) };
  MPI_Comm_dup(MPI_COMM_WORLD, &next);
  c.comms = (int64_t)MPI_Comm_c2f(next);
  MPI_Comm_free(&next);
  MPI_Barrier(MPI_COMM_WORLD);
  struct mallinfo2 m = mallinfo2();
  c.bytes = (int64_t)(m.uordblks + m.hblkhd);
  c.files = entries("/proc/self/fd");
  c.threads = entries("/proc/self/task");
  c.mappings = mapped();
  return c;
}

/* One cycle; false: a call of it failed, which is told. */
typedef bool cycle(void);

/* The least of two counts of what a garbage collector gives back at times of its own. */
static void lessen(counts *c, const counts *now) {
  if (now->bytes < c->bytes) c->bytes = now->bytes;
  if (now->blocks < c->blocks) c->blocks = now->blocks;
}

/* Some cycles; what there is after them, and of memory the least that there was meanwhile. */
static bool some(cycle *once, int n, counts *least) {
  *least = (counts){ .bytes = INT64_MAX, .blocks = INT64_MAX };
  for (int i = 0; i < n; i++) {
    if (!once()) return false;
    struct mallinfo2 m = mallinfo2();
    lessen(least, &(counts){ .bytes = (int64_t)(m.uordblks + m.hblkhd), .blocks = blocks });
  }
  counts now = count();
  lessen(&now, least);
  *least = now;
  return true;
}

/* The last quarter of the cycles is compared with the first. What is spared is less than a block
** for each of the cycles between: MPI and libc keep something once, and a cycle of garbage
** collection ends with a few blocks more or less. */
static void grows(const char *what, cycle *once, int n) {
  enum { SPARE = 32768, SPARE_BLOCKS = 500 };
  char says[128];
  counts was = { 0 }, is = { 0 }, between;
  bool ok = some(once, n / 4, &was) && some(once, n / 2, &between) && some(once, n / 4, &is);
  snprintf(says, sizeof says, "%d cycles of %s", n, what);
  test(ok, says);
  bool memory = is.bytes - was.bytes <= SPARE && is.blocks - was.blocks <= SPARE_BLOCKS;
  bool others = is.files == was.files && is.threads == was.threads && is.mappings == was.mappings;
  bool comms = is.comms == was.comms && is.held == was.held;
  snprintf(says, sizeof says, "%s: no growth of memory", what);
  test(memory, says);
  snprintf(says, sizeof says, "%s: none of descriptors, threads, shared memory", what);
  test(others, says);
  snprintf(says, sizeof says, "%s: none of communicators", what);
  test(comms, says);
  int64_t mine = is.bytes - was.bytes, most;
  MPI_Reduce(&mine, &most, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0 && ok)
    printf("# cycles: %d of %s, at most %" PRId64
           " bytes more; blocks, files, threads, communicators%s\n",
           n, what, most < 0 ? 0 : most, memory && others && comms ? " the same" : ": see above");
#define SAY(kind) #kind " %" PRId64 " -> %" PRId64 ", "
  if (!memory || !others || !comms)
    fprintf(stderr,
            "# rank %d: " SAY(bytes) SAY(blocks) SAY(files) SAY(threads) SAY(communicators)
                SAY(held) SAY(mappings) "\n",
            rank, was.bytes, is.bytes, was.blocks, is.blocks, was.files, is.files, was.threads,
            is.threads, was.comms, is.comms, was.held, is.held, was.mappings, is.mappings);
}

static bool failed(const mgrid_error *e) {
  if (e->status) fprintf(stderr, "# rank %d: %s\n", rank, e->message);
  return e->status != MGRID_OK;
}

/* ------------------------------------------------------------------- cycles */

static mgrid_runtime *rt;
static mgrid_plan *plan;
static mgrid_state *state;
static int turn;

static bool runtimes(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *mine = mgrid_runtime_new(NULL, &hooks, &e);
  if (turn++ % 4 == 0) mgrid_runtime_load(mine, path, NULL, 0, &e); /* mostly the runtime alone */
  mgrid_runtime_free(mine);
  return !failed(&e);
}

static bool states(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_state *s = mgrid_materialize(plan, mpi, "cycle", &e);
  mgrid_state_free(s);
  return !failed(&e);
}

static bool policies(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t n = 0;
  mgrid_policy *p = mgrid_policy_new(rt, state, turn++ % 2 ? "one" : "all", &e);
  mgrid_policy_call(p, 0, NULL, &e);
  read_integer(p, NULL, &n, &e);
  mgrid_policy_free(p);
  return !failed(&e) && n == 1;
}

static bool reloads(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_state *new_s;
  mgrid_reload(rt, state, turn++ % 2 ? other_path : path, 0, NULL, &new_s, NULL, &e);
  if (failed(&e)) return false;
  mgrid_state_free(state);
  mgrid_runtime_free(rt);
  rt = mgrid_runtime_ref(mgrid_state_runtime(new_s)), state = new_s;
  return true;
}

static void write_recipe(const char *name, const char *more) {
  FILE *f = rank == 0 ? fopen(name, "w") : NULL;
  if (rank == 0
      && (!f
          || fprintf(f,
                     "local function much() local t = {} for i = 1, 1000 do t[i] = { i } end "
                     "return 1 end -- garbage\n"
                     "return recipe { build = function(world)\n  local g = grid(world, 'tp-dp', { "
                     "tp = 2, dp = fill })\n"
                     "  local t = topology(world)\n  t.grid, t.tp, t.dp = g, g 'tp', g 'dp'\n  "
                     "t.all = g('tp', 'dp')%s\n"
                     "  return t end,\n"
                     "policy = { one = much, all = much },\n"
                     "agreed = { all = 'world' } }\n",
                     more)
                 < 0
          || fclose(f) != 0))
    MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Blocks that malloc keeps for the next call count as used: begin again without that. */
static void begin_without_caches(char **argv) {
  if (getenv("GLIBC_TUNABLES")) return;
  setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0", 1);
  execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  int n = 2000, pid = (int)getpid();
  begin_without_caches(argv);
  tap_begin(&argc, &argv);
  if (argc > 1) n = atoi(argv[1]);
  MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(path, sizeof path, "/tmp/moongrid-cycles-%d.lua", pid);
  snprintf(other_path, sizeof other_path, "/tmp/moongrid-cycles-%d-b.lua", pid);
  write_recipe(path, "");
  write_recipe(other_path, ":twin() t.more = g 'tp':twin()");
  mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_backend_set_hooks(mpi, &hooks, &e);
  rt = mgrid_runtime_new(NULL, &hooks, &e);
  mgrid_runtime_load(rt, path, NULL, 0, &e);
  plan = mgrid_runtime_plan(rt, size, NULL, 0, NULL, &e);
  grows("mgrid_runtime_new and _free", runtimes, n);
  grows("mgrid_materialize and mgrid_state_free", states, n);
  state = mgrid_materialize(plan, mpi, "train", &e);
  test(state != NULL, "a state to stay");
  grows("mgrid_policy_new and _free", policies, n);
  grows("mgrid_reload", reloads, n);
  mgrid_state_free(state);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
  test(mgrid_backend_ncomms(mpi) == 0 && !failed(&e), "at the end no communicator is held");
  mgrid_backend_free(mpi);
  test(blocks == 0, "and every block that came from the hooks has gone back");
  if (rank == 0) unlink(path), unlink(other_path);
  return tap_end();
}
