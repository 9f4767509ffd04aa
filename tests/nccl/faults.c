/* SPDX-License-Identifier: MIT
**
** faults.c - every fault of the CUDA runtime inside a creation, on NCCL's own host code: for each
** function that rank 1 calls while it creates a communicator, and for each of these calls, a
** creation in which that call fails. Then either all ranks have the state, because NCCL went on, or
** all have an error, in time. Under mpirun with the libraries of tests/cuda; host.sh runs it. TAP
** from rank 0.
**
**     faults [EVERY [FROM [blocking]]]    every EVERY-th of the calls from that on (1 0: all); FAULTS_ONLY=name:nth: that one
**
** From some 300 faults in one process on, the runtime says "out of memory": several processes share
** the calls.
*/
#include "rigged.h"

#define TIMEOUT 6.0
#define GRACE   3.0
enum { FAULTY = 1, FUNCTIONS = 256 };

static void (*fail)(const char *, long, int);
static const char *(*function)(int, long *);
static void load_faults(void) {
  static const char *const names[] = { "cudarig_fail", "cudarig_function" };
  void *rig = dlopen("libcuda.so.1", RTLD_NOW), *found[2];
  for (int i = 0; i < 2; i++)
    if (!(found[i] = rig ? dlsym(rig, names[i]) : NULL)) exit(77);
  memcpy(&fail, &found[0], sizeof fail);
  memcpy(&function, &found[1], sizeof function);
}

static mgrid_backend *open_backend(mgrid_backend *mpi, bool blocking, mgrid_error *e) {
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  o.timeout = TIMEOUT, o.nonblocking = !blocking;
  return mgrid_backend_over(mpi, "nccl", &o, anew(e));
}

/* One communicator of two channels, which are the fewest. */
static mgrid_plan *small_plan(mgrid_error *e) {
  const mgrid_dim dims[] = { { "w", MGRID_FILL } };
  const char *name = "w";
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(size), 1, dims, e);
  mgrid_topology *t = mgrid_topology_new(size, e);
  mgrid_family *f = mgrid_grid_along(g, 1, &name, MGRID_GRID_ORDER, e);
  o.nccl = "max_ctas=2";
  mgrid_topology_add(t, name, f, &o, e);
  mgrid_plan *p = mgrid_plan_new(t, e);
  mgrid_family_free(f);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
  return p;
}

typedef struct calls {
  const char *name;
  long before, during;
} calls;

/* What rank 1 calls in one creation. */
static int record(mgrid_backend *b, const mgrid_plan *p, calls *list) {
  mgrid_error e = MGRID_ERROR_INIT;
  int n = 0;
  for (; n < FUNCTIONS && function(n, NULL); n++) list[n].name = function(n, &list[n].before);
  mgrid_state *s = mgrid_materialize(p, b, "recorded", &e);
  test(s != NULL, s ? "a creation without a fault" : e.message);
  for (int i = 0; i < n; i++) list[i].during = (long)count(list[i].name) - list[i].before;
  mgrid_state_free(s);
  return n;
}

typedef struct tally {
  int tried, refused, made, apart, unnamed, late;
  double worst;
} tally;

/* One creation in which the nth call of that function fails on rank 1. */
static void try(mgrid_backend *mpi, const mgrid_plan *p, bool blocking, const char *name, long nth,
                tally *t) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_backend(mpi, blocking, &e);
  int mine, fewest, most;
  double took, longest;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == FAULTY) fail(name, nth, 999);
  double begun = MPI_Wtime();
  mgrid_state *s = b ? mgrid_materialize(p, b, "faulty", anew(&e)) : NULL;
  took = MPI_Wtime() - begun;
  if (rank == FAULTY) fail(NULL, 0, 0);
  mine = s != NULL;
  MPI_Allreduce(&mine, &fewest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  bool named = strstr(e.message, "rank 1")
               || strstr(e.message, "of its 3 ranks: 0 1 2"); /* who waits cannot know for whom */
  t->tried++, t->refused += !most, t->made += fewest, t->apart += fewest != most;
  t->unnamed += !most && !named, t->late += longest > TIMEOUT + GRACE;
  if (longest > t->worst) t->worst = longest;
  if (rank == 0 && (fewest != most || longest > TIMEOUT + GRACE || (!most && !named)))
    fprintf(stderr, "# call %ld of %s: %s after %.1f s: %s\n", nth, name,
            fewest != most ? "apart"
            : most         ? "made"
                           : "refused",
            longest, e.message);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  if (getenv("FAULTS_SHOW"))
    fprintf(stderr, "# rank %d, call %ld of %s: %lld bytes of the GPU, %d files\n", rank, nth, name,
            device_bytes(), entries("/proc/self/fd"));
}

/* Is it the call that FAULTS_ONLY=name:nth names? */
static bool one_of(const char *only, const char *name, long nth) {
  char text[96];
  snprintf(text, sizeof text, "%s:%ld", name, nth);
  return strcmp(text, only) == 0;
}

static void sweep(mgrid_backend *mpi, int every, int from, bool blocking) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = small_plan(&e);
  static calls list[FUNCTIONS];
  tally t = { 0 };
  char what[200];
  long met = 0;
  const char *only = getenv("FAULTS_ONLY");
  for (int i = 0; i < 2; i++) { /* the first creation of a process has calls of its own */
    mgrid_backend *b = open_backend(mpi, blocking, &e);
    int n = record(b, p, list);
    mgrid_backend_free(b);
    MPI_Bcast(&n, 1, MPI_INT, FAULTY, MPI_COMM_WORLD);
    if (i == 0) continue;
    for (int f = 0; f < n; f++) {
      struct {
        char name[64];
        long n;
      } one = { "", 0 };
      if (rank == FAULTY)
        snprintf(one.name, sizeof one.name, "%s", list[f].name), one.n = list[f].during;
      MPI_Bcast(&one, sizeof one, MPI_BYTE, FAULTY, MPI_COMM_WORLD);
      for (long nth = 1; nth <= one.n; nth++)
        if (only ? one_of(only, one.name, nth) : met++ % every == from)
          try(mpi, p, blocking, one.name, nth, &t);
    }
  }
  snprintf(what, sizeof what,
           "%d faults of one call: %d states refused on all ranks, %d made, worst %.1f s of %g",
           t.tried, t.refused, t.made, t.worst, TIMEOUT + GRACE);
  test(t.tried > 0 && t.apart == 0, what);
  snprintf(what, sizeof what, "%d of them late", t.late);
  test(t.late == 0, what);
  snprintf(what, sizeof what, "%d errors that do not name rank 1", t.unnamed);
  test(t.unnamed == 0, what);
  mgrid_backend *b = open_backend(mpi, blocking, &e);
  mgrid_state *s = b ? mgrid_materialize(p, b, "at last", anew(&e)) : NULL;
  test(s && right(s, "w"), s ? "and afterwards a state is made" : e.message);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  load();
  load_rig();
  load_faults();
  tap_begin(&argc, &argv);
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  int every = argc > 1 ? atoi(argv[1]) : 1, from = argc > 2 ? atoi(argv[2]) : 0;
  sweep(mpi, every > 0 ? every : 1, from, argc > 3 && strcmp(argv[3], "blocking") == 0);
  mgrid_backend_free(mpi);
  return tap_end();
}
