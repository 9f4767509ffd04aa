/* SPDX-License-Identifier: MIT
**
** kept.c - the library's duplicate of a host's communicator is kept for the next backend over it,
** and the host sees no difference: whichever backend is freed first, in any thread, with any
** options, also on some ranks alone. Arguments: the thread level that the host asks MPI for,
** multiple or funneled; late, for the test that waits for a deadline and leaves a call of MPI
** unfinished. TAP from rank 0; runs on any number of ranks.
*/
#include "../anew.h"
#include "moongrid_mpi.h"
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the library asks of MPI: tests/tests.mk makes these visible to it. */
static int made; /* communicators of the whole parent, which the library's duplicates are */
int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *out) {
  made++;
  return PMPI_Comm_create(comm, group, out);
}

static bool multiple; /* two threads may use two backends at once, so each has its own duplicate */
static mgrid_plan *plan;

static bool works(mgrid_backend *b, mgrid_error *e) {
  mgrid_state *s = mgrid_materialize(plan, b, "job", e);
  bool ok = s && mgrid_state_prove(s, NULL, e) == MGRID_OK;
  mgrid_state_free(s);
  return ok;
}

/* Open a backend over `comm`; it makes that many duplicates. */
static mgrid_backend *opened(MPI_Comm comm, const mgrid_mpi_options *o, int fresh, bool *ok) {
  mgrid_error e = MGRID_ERROR_INIT;
  int before = made;
  mgrid_backend *b = mgrid_mpi_backend(comm, o, &e);
  if (!b || made - before != fresh || !works(b, &e)) {
    fprintf(stderr, "# rank %d: %d duplicates, not %d; %s\n", rank, made - before, fresh,
            e.message);
    *ok = false;
  }
  return b;
}

static void test_next(MPI_Comm comm, const char *what) {
  bool ok = true;
  mgrid_backend *a = opened(comm, NULL, comm != MPI_COMM_WORLD, &ok),
                *b = opened(comm, NULL, multiple, &ok);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_state *one = mgrid_materialize(plan, a, "one", &e),
              *other = mgrid_materialize(plan, b, "other", &e);
  MPI_Comm mine = mgrid_mpi_comm(mgrid_state_group(one, "all", &e));
  MPI_Comm theirs = mgrid_mpi_comm(mgrid_state_group(other, "all", &e));
  int how = MPI_UNEQUAL;
  if (!e.status) MPI_Comm_compare(mine, theirs, &how);
  ok = ok && (how == MPI_CONGRUENT || size == 1) && mgrid_backend_ncomms(a) == (size > 1);
  mgrid_state_free(one);
  mgrid_state_free(other);
  mgrid_backend_free(a);
  ok = ok && works(b, anew(&e));
  mgrid_backend_free(b);
  for (int i = 0; i < 20; i++) mgrid_backend_free(opened(comm, NULL, 0, &ok));
  test(ok, what);
}

static void test_duplicates(void) {
  MPI_Comm own, copy;
  bool ok = true;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  mgrid_backend *a = opened(own, NULL, 1, &ok);
  MPI_Comm_dup(own, &copy);
  mgrid_backend *b = opened(copy, NULL, 1, &ok);
  MPI_Comm_free(&own); /* while its backend is there */
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  mgrid_backend *c = opened(own, NULL, 1, &ok); /* perhaps the same handle as before */
  mgrid_backend_free(b);
  MPI_Comm_free(&copy); /* after its backend */
  mgrid_error e = MGRID_ERROR_INIT;
  ok = ok && works(a, &e) && works(c, &e);
  mgrid_backend_free(a);
  mgrid_backend_free(c);
  MPI_Comm_free(&own);
  test(ok, "a host that duplicates or frees its communicator");
}

/* 3,000 communicators: one left over by each would use up those of MPICH. */
static void test_many(void) {
  bool ok = true;
  for (int i = 0; i < 3000 / (size > 1 ? 6 : 1) && ok; i++) {
    MPI_Comm own;
    mgrid_error e = MGRID_ERROR_INIT;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    mgrid_backend *b = mgrid_mpi_backend(own, NULL, &e);
    if (i % 2) mgrid_backend_free(b);
    MPI_Comm_free(&own);
    if (i % 2 == 0) mgrid_backend_free(b);
    ok = b && e.status == MGRID_OK;
  }
  test(ok, "many communicators of the host, each freed before or after its backend");
}

static void test_options(void) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  bool ok = true;
  o.communicators = 1, o.timeout = 30;
  mgrid_backend *few = opened(MPI_COMM_WORLD, &o, 0, &ok),
                *usual = opened(MPI_COMM_WORLD, NULL, multiple, &ok);
  mgrid_state *first = mgrid_materialize(plan, few, "first", &e), *second = NULL;
  const char *all = "all";
  mgrid_topology *t = mgrid_topology_new(size, &e);
  mgrid_family *f = mgrid_family_ref((mgrid_family *)mgrid_plan_family(plan, all));
  mgrid_options unique = MGRID_OPTIONS_INIT;
  unique.unique = true;
  mgrid_topology_add(t, "again", f, &unique, &e);
  mgrid_plan *more = mgrid_plan_new(t, &e);
  ok = ok && first && more && e.status == MGRID_OK;
  if (size > 1) ok = ok && !mgrid_materialize(more, few, "second", &e) && e.status == MGRID_LIMIT;
  second = mgrid_materialize(more, usual, "second", anew(&e)); /* whose limit is the usual one */
  ok = ok && second;
  mgrid_state_free(first);
  mgrid_state_free(second);
  mgrid_plan_free(more);
  mgrid_family_free(f);
  mgrid_topology_free(t);
  mgrid_backend_free(few);
  /* wrong on one rank: an error on all, though another one is open */
  o.timeout = rank == size - 1 ? -1 : 30;
  ok = ok && !mgrid_mpi_backend(MPI_COMM_WORLD, &o, anew(&e)) && e.status == MGRID_OUT_OF_RANGE
       && works(usual, anew(&e));
  mgrid_backend_free(usual);
  mgrid_backend_free(opened(MPI_COMM_WORLD, NULL, 0, &ok));
  test(ok, "backends with options of their own");
}

static void ignore(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

/* Groups have the error handler that the host's communicator had when their backend was opened. */
static void test_error_handlers(void) {
  MPI_Errhandler own, of[2] = { MPI_ERRHANDLER_NULL, MPI_ERRHANDLER_NULL };
  MPI_Comm comm;
  mgrid_error e = MGRID_ERROR_INIT;
  bool ok = true;
  MPI_Comm_create_errhandler(ignore, &own);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 2; i++) {
    mgrid_backend *b = mgrid_mpi_backend(comm, NULL, &e);
    mgrid_state *s = mgrid_materialize(plan, b, "job", &e);
    MPI_Comm_get_errhandler(size > 1 ? mgrid_mpi_comm(mgrid_state_group(s, "all", &e)) : comm,
                            &of[i]);
    mgrid_state_free(s);
    mgrid_backend_free(b);
    if (i == 0) MPI_Comm_set_errhandler(comm, own);
  }
  ok = e.status == MGRID_OK && of[0] == MPI_ERRORS_ARE_FATAL && (of[1] == own || size == 1);
  for (int i = 0; i < 2; i++) MPI_Errhandler_free(&of[i]);
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&own);
  test(ok, "each with the error handler of its time");
}

/* Some ranks free a backend, others keep it for a while: the next one is opened all the same. */
static void test_some_ranks(void) {
  bool ok = true;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *a = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  if (rank % 2) mgrid_backend_free(a);
  mgrid_backend *b = opened(MPI_COMM_WORLD, NULL, multiple, &ok);
  if (rank % 2 == 0) mgrid_backend_free(a);
  mgrid_backend_free(b);
  test(ok && a, "some ranks free a backend late");
}

/* A call of one backend that does not end is an error of the others that share its messages; the
** next one is whole again. */
static void test_broken(void) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  MPI_Comm own;
  mgrid_error e = MGRID_ERROR_INIT;
  bool ok = true;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  o.timeout = 0.5;
  mgrid_backend *a = mgrid_mpi_backend(own, &o, &e), *b = mgrid_mpi_backend(own, NULL, &e);
  ok = a && b;
  if (rank < size - 1 || size == 1) { /* the last rank does not come */
    bool came = works(a, anew(&e));
    ok = ok && (size == 1 ? came : !came && e.status == MGRID_TIMED_OUT);
    if (!multiple && size > 1) ok = ok && !works(b, anew(&e)) && e.status == MGRID_TIMED_OUT;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  mgrid_backend *c = opened(own, NULL, size > 1 || multiple, &ok);
  mgrid_backend_free(c);
  mgrid_backend_free(a);
  mgrid_backend_free(b);
  MPI_Comm_free(&own);
  test(ok, "a rank that does not come to one of them");
}

/* ------------------------------------------------------------------- threads */

enum { THREADS = 4 };

typedef struct side {
  MPI_Comm comm;
  int wrong;
} side;

static void *open_often(void *ud) {
  side *s = ud;
  for (int i = 0; i < 60; i++) {
    mgrid_error e = MGRID_ERROR_INIT;
    mgrid_backend *b = mgrid_mpi_backend(s->comm, NULL, &e);
    s->wrong += !b || !works(b, &e);
    mgrid_backend_free(b);
  }
  return NULL;
}

static bool is_fatal(MPI_Comm comm) {
  MPI_Errhandler now;
  MPI_Comm_get_errhandler(comm, &now);
  bool fatal = now == MPI_ERRORS_ARE_FATAL;
  MPI_Errhandler_free(&now);
  return fatal;
}

static void test_threads(void) {
  side s[THREADS] = { { MPI_COMM_NULL, 0 } };
  pthread_t thread[THREADS];
  bool ok = true;
  for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &s[i].comm);
  for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, open_often, &s[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    ok = ok && s[i].wrong == 0 && is_fatal(s[i].comm);
    MPI_Comm_free(&s[i].comm);
  }
  test(ok, "threads that open backends over communicators of their own");
  test(is_fatal(MPI_COMM_WORLD) && is_fatal(MPI_COMM_SELF),
       "leave the error handlers of MPI's communicators");
}

/* ---------------------------------------------------------------------- fork */

static int in_child(mgrid_backend *b, mgrid_state *s) {
  mgrid_error e = MGRID_ERROR_INIT;
  alarm(20);
  bool refused = mgrid_state_prove(s, NULL, &e) == MGRID_USAGE
                 && strstr(e.message, "was forked from");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  return refused ? 0 : 1;
}

static void test_fork(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_state *s = mgrid_materialize(plan, b, "job", &e);
  int how = -1;
  pid_t child = fork();
  if (child == 0) _exit(in_child(b, s));
  waitpid(child, &how, 0);
  bool ok = WIFEXITED(how) && WEXITSTATUS(how) == 0 && mgrid_state_prove(s, NULL, &e) == MGRID_OK;
  mgrid_state_free(s);
  mgrid_backend_free(b);
  test(ok, "a forked child frees what it got, and may call nothing else");
}

int main(int argc, char **argv) {
  const mgrid_dim dim = { "all", MGRID_FILL };
  const char *const all = dim.name;
  mgrid_error e = MGRID_ERROR_INIT;
  int level;
  multiple = argc > 1 && strcmp(argv[1], "multiple") == 0;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  multiple = level == MPI_THREAD_MULTIPLE;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  mgrid_grid *g = mgrid_grid_new(mgrid_world(size), 1, &dim, &e);
  mgrid_family *f = mgrid_grid_along(g, 1, &all, MGRID_GRID_ORDER, &e);
  mgrid_topology *t = mgrid_topology_new(size, &e);
  mgrid_topology_add(t, all, f, NULL, &e);
  plan = mgrid_plan_new(t, &e);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  mgrid_grid_free(g);
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  test_next(own, "a second backend over one communicator");
  MPI_Comm_free(&own);
  if (multiple) test_threads();
  mgrid_backend_free(mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e));
  test_next(MPI_COMM_WORLD, "the same over MPI_COMM_WORLD");
  test_duplicates();
  test_many();
  test_options();
  test_error_handlers();
  test_some_ranks();
  test_fork();
  if (argc > 2 && strcmp(argv[2], "late") == 0) test_broken();
  mgrid_plan_free(plan);
  return tap_end();
}
