/* SPDX-License-Identifier: MIT
**
** guest.c - a host that uses its communicator itself while the library works: pending receives,
** collectives of another thread, two backends in two threads; and its wrong arguments.
** Arguments: the thread level that it asks MPI for, multiple or funneled; late, for tests that wait
** for deadlines, or ended, without calls after MPI_Finalize. Runs on any number of ranks.
*/
#include "../anew.h"
#include "moongrid_mpi.h"
#include "tap.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Groups of `tp` ranks and their complement. */
static mgrid_plan *layout(int64_t tp, int world, mgrid_error *err) {
  mgrid_dim dims[] = { { "tp", tp }, { "dp", MGRID_FILL } };
  const char *const names[] = { "tp", "dp" };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 2, dims, err);
  mgrid_family *ftp = mgrid_grid_along(g, 1, &names[0], MGRID_GRID_ORDER, err);
  mgrid_family *fdp = mgrid_grid_along(g, 1, &names[1], MGRID_GRID_ORDER, err);
  mgrid_topology *t = mgrid_topology_new(world, err);
  mgrid_topology_add(t, "tp", ftp, NULL, err);
  mgrid_topology_add(t, "dp", fdp, NULL, err);
  mgrid_plan *p = mgrid_plan_new(t, err);
  mgrid_topology_free(t);
  mgrid_family_free(ftp);
  mgrid_family_free(fdp);
  mgrid_grid_free(g);
  return p;
}

/* Make a state, prove it, free it. */
static bool cycle(mgrid_backend *b, int64_t tp, const char *name, mgrid_error *e) {
  mgrid_plan *p = layout(tp, (int)mgrid_backend_world(b), e);
  mgrid_state *s = mgrid_materialize(p, b, name, e);
  bool ok = s && mgrid_state_prove(s, NULL, e) == MGRID_OK;
  mgrid_state_free(s);
  mgrid_plan_free(p);
  return ok;
}

static int64_t largest(void) { return size % 2 == 0 ? 2 : size; }

/* A receive of the host that takes any message of any rank, pending all the time. */
static void test_wildcard(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Request request;
  MPI_Status from;
  int got = -1, sent = 1000 + rank, next = (rank + 1) % size;
  MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  bool ok = b && cycle(b, largest(), "one", &e) && cycle(b, 1, "other", &e);
  mgrid_backend_free(b);
  ok = ok && got == -1;
  MPI_Barrier(MPI_COMM_WORLD); /* collectives do not meet receives */
  MPI_Send(&sent, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
  MPI_Wait(&request, &from);
  test(ok && e.status == MGRID_OK && got == 1000 + (rank + size - 1) % size && from.MPI_TAG == 7,
       "a pending receive of anything neither hangs nor takes a message");
}

/* The recipe way, with a reload while the receive is pending. */
static void test_reload(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Request request;
  int got = -1, sent = 2000 + rank;
  const char *one = "tp=1", *whole = size % 2 == 0 ? "tp=2" : "tp=1";
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, "picotron", NULL, 0, &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, size, NULL, 1, &one, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_state *s = mgrid_materialize(p, b, "job", &e), *s2 = NULL;
  MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  mgrid_reload(rt, s, NULL, 1, &whole, &s2, NULL, &e);
  mgrid_state_free(s2);
  mgrid_state_free(s);
  mgrid_runtime_free(rt);
  mgrid_plan_free(p);
  mgrid_backend_free(b);
  bool quiet = got == -1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&sent, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (e.status) fprintf(stderr, "# %s\n", e.message);
  test(quiet && e.status == MGRID_OK && s2 && got == 2000 + (rank + size - 1) % size,
       "nor does a reload");
}

/* ------------------------------------------------------------------- threads */

typedef struct metrics { /* a thread of the host that sums over its communicator all the time */
  MPI_Comm comm;
  atomic_bool enough; /* told by this rank; all stop in the same round */
  int rounds, wrong;
} metrics;

static void *sum_up(void *ud) {
  metrics *m = ud;
  for (int all = 0; !all; m->rounds++) {
    int one = 1, mine = atomic_load(&m->enough), n;
    if (MPI_Allreduce(&one, &n, 1, MPI_INT, MPI_SUM, m->comm) || n != size) m->wrong++;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, m->comm);
  }
  return NULL;
}

static void test_allreduce(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  metrics m = { .comm = MPI_COMM_WORLD };
  pthread_t thread;
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  pthread_create(&thread, NULL, sum_up, &m);
  bool ok = b != NULL;
  for (int i = 0; i < 20 && ok; i++) ok = cycle(b, i % 2 ? 1 : largest(), "job", &e);
  mgrid_backend_free(b);
  atomic_store(&m.enough, true);
  pthread_join(thread, NULL);
  if (e.status) fprintf(stderr, "# %s\n", e.message);
  test(ok && m.wrong == 0, "a host's all-reduce in another thread gives the right sum");
}

typedef struct side { /* a backend in a thread of its own */
  mgrid_backend *b;
  int64_t tp;
  mgrid_error e;
  bool ok;
} side;

static void *go(void *ud) {
  side *s = ud;
  for (int i = 0; i < 30 && s->ok; i++) s->ok = cycle(s->b, s->tp, "job", &s->e);
  return NULL;
}

static void test_two_backends(void) {
  side s[2] = { { NULL, largest(), MGRID_ERROR_INIT, true }, { NULL, 1, MGRID_ERROR_INIT, true } };
  pthread_t thread[2];
  for (int i = 0; i < 2; i++) s[i].b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &s[i].e);
  for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, go, &s[i]);
  for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < 2; i++) mgrid_backend_free(s[i].b);
  for (int i = 0; i < 2; i++)
    if (s[i].e.status) fprintf(stderr, "# %s\n", s[i].e.message);
  test(s[0].ok && s[1].ok, "two backends over one communicator in two threads");
}

/* With less than MPI_THREAD_SERIALIZED a thread that may not call MPI is told. */
static void *refused(void *ud) {
  side *s = ud;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = layout(1, size, &e);
  mgrid_state *state = mgrid_materialize(p, s->b, "job", &s->e);
  s->ok = !state && s->e.status == MGRID_USAGE
          && strstr(s->e.message, "only the thread that initialized MPI");
  s->ok = s->ok && !mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e)) && e.status == MGRID_USAGE;
  mgrid_plan_free(p);
  return NULL;
}

static void test_refused(void) {
  side s = { NULL, 1, MGRID_ERROR_INIT, true };
  pthread_t thread;
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  s.b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &s.e);
  pthread_create(&thread, NULL, refused, &s);
  pthread_join(thread, NULL);
  s.ok = s.ok && cycle(s.b, 1, "job", anew(&e)); /* here it works, still */
  mgrid_backend_free(s.b);
  o.threads = MGRID_THREADS_MULTIPLE;
  bool less = !mgrid_mpi_backend(MPI_COMM_WORLD, &o, anew(&e)) && e.status == MGRID_UNSUPPORTED
              && strcmp(e.message,
                        "rank 0: mpi: MPI_THREAD_MULTIPLE is wanted, and MPI was initialized with "
                        "MPI_THREAD_FUNNELED")
                     == 0;
  test(s.ok && less, "threads that may not call MPI are refused");
}

/* ------------------------------------------------------------ what is handed over */

static int called; /* by MPI: the host's error handler */
static void host_handler(MPI_Comm *comm, int *rc, ...) {
  (void)comm, (void)rc;
  called++;
}

static void test_wrong_parents(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Comm half, inter = MPI_COMM_NULL, freed;
  bool ok = !mgrid_mpi_backend(MPI_COMM_NULL, NULL, &e) && e.status == MGRID_USAGE;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  if (size > 1) {
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &inter);
    ok = ok && !mgrid_mpi_backend(inter, NULL, anew(&e)) && e.status == MGRID_USAGE
         && strstr(e.message, "the parent is an intercommunicator");
    MPI_Comm_free(&inter);
  }
  freed = half;
  MPI_Comm_free(&half);
  ok = ok && !mgrid_mpi_backend(freed, NULL, anew(&e)) && e.status == MGRID_USAGE
       && strstr(e.message, "the parent is not a communicator, or one that was freed");
  MPI_Errhandler now;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
  ok = ok && now == MPI_ERRORS_ARE_FATAL; /* as it was */
  MPI_Errhandler_free(&now);
  test(ok, "an intercommunicator and a freed communicator are errors");
}

/* Wrong options on one rank are an error on all, and the communicator is good for the next. */
static void test_wrong_options(void) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  char want[64];
  if (rank == size - 1) o.size = 3;
  snprintf(want, sizeof want, "rank %d: ", size - 1);
  bool ok = !mgrid_mpi_backend(MPI_COMM_WORLD, &o, &e) && e.status == MGRID_BAD_STRUCT
            && strncmp(e.message, want, strlen(want)) == 0;
  o.size = sizeof o;
  o.threads = rank == 0 ? (mgrid_threads)77 : MGRID_THREADS_ANY;
  ok = ok && !mgrid_mpi_backend(MPI_COMM_WORLD, &o, anew(&e)) && e.status == MGRID_OUT_OF_RANGE;
  o.threads = MGRID_THREADS_ANY,
  o.on_deadline = rank == 0 ? (mgrid_on_deadline)77 : MGRID_DEADLINE_ERROR;
  ok = ok && !mgrid_mpi_backend(MPI_COMM_WORLD, &o, anew(&e))
       && strcmp(e.message, "rank 0: mpi: 77 is none of mgrid_on_deadline") == 0;
  o.on_deadline = MGRID_DEADLINE_ERROR, o.timeout = rank == 0 ? -1 : 0;
  ok = ok && !mgrid_mpi_backend(MPI_COMM_WORLD, &o, anew(&e))
       && strcmp(e.message, "rank 0: mpi: a timeout is 0 (the default) seconds or more, not -1")
              == 0;
  o.timeout = INFINITY; /* no limit */
  mgrid_backend *patient = ok ? mgrid_mpi_backend(MPI_COMM_WORLD, &o, anew(&e)) : NULL;
  ok = patient && cycle(patient, 1, "job", anew(&e));
  mgrid_backend_free(patient);
  o.timeout = 0, o.communicators = rank == 0 ? -1 : 0;
  ok = ok && !mgrid_mpi_backend(MPI_COMM_WORLD, &o, anew(&e))
       && strcmp(e.message, "rank 0: mpi: communicators is -1, less than 0") == 0;
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  ok = ok && b && cycle(b, 1, "job", &e);
  mgrid_backend_free(b);
  if (!ok) fprintf(stderr, "# %s\n", e.message);
  test(ok, "options that are wrong on one rank");
}

/* A rank that opens its backend late: the others are told within the timeout. */
static void test_late(void) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Comm own;
  bool ok = true;
  o.timeout = 0.3;
  MPI_Comm_dup(MPI_COMM_WORLD, &own); /* it is good for nothing afterwards */
  double begun = MPI_Wtime();
  if (rank > 0 || size == 1) {
    mgrid_backend *b = mgrid_mpi_backend(own, &o, &e);
    ok = size == 1 ? b != NULL
                   : !b && e.status == MGRID_TIMED_OUT && MPI_Wtime() - begun < 5
                         && strstr(e.message, "ranks had come to open the backend");
    if (b) mgrid_backend_free(b);
  }
  test(ok, "a rank that does not open its backend");
}

/* A policy that is agreed, and that not all ranks ask: those that do are told who did not. */
static void test_unasked(void) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  char path[64], want[96];
  snprintf(path, sizeof path, "/tmp/moongrid-guest-%d-%d.lua", (int)getpid(), rank);
  FILE *file = fopen(path, "w");
  fputs(
      "return recipe { build = function(world) local t = topology(world) t.all = grid(world, 'a', "
      "{ a = fill }) 'a'\n"
      "  return t end, policy = { one = function() return 1 end }, agreed = { one = 'world' } }\n",
      file);
  fclose(file);
  o.timeout = 0.5;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, path, NULL, 0, &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, size, NULL, 0, NULL, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, &o, &e);
  mgrid_state *s = mgrid_materialize(p, b, "job", &e);
  mgrid_policy *one = mgrid_policy_new(rt, s, "one", &e);
  bool ok = one && mgrid_policy_call(one, 0, NULL, &e) == MGRID_OK;
  if (size > 1 && rank < size - 1) {
    snprintf(want, sizeof want,
             "policy 'one': after 0.5 seconds not all ranks had come: rank %d is not there",
             size - 1);
    ok = ok && mgrid_policy_call(one, 0, NULL, &e) == MGRID_TIMED_OUT && strstr(e.message, want);
    if (!ok) fprintf(stderr, "# %s\n", e.message);
  }
  mgrid_policy_free(one);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  unlink(path);
  /* what is left of the backend waits for ever: it stays */
  test(ok, "an agreed policy that one rank does not ask");
}

/* Without MPIX_Comm_revoke it is refused, and the communicators are as they were. */
static void test_revoke(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = layout(largest(), size, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_state *s = mgrid_materialize(p, b, "job", &e);
  mgrid_status said = mgrid_state_revoke(s, &e);
  bool ok =
      s && (said == MGRID_OK || (said == MGRID_UNSUPPORTED && strstr(e.message, "cannot revoke")));
  MPI_Comm tp = mgrid_mpi_comm(mgrid_state_group(s, "tp", anew(&e)));
  int one = 1;
  if (size > 1 && tp != MPI_COMM_NULL) {
    MPI_Comm_set_errhandler(tp, MPI_ERRORS_RETURN);
    ok = ok && !said == !!MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, tp);
  }
  mgrid_state_free(s);
  mgrid_plan_free(p);
  ok = ok && cycle(b, largest(), "next", anew(&e)); /* others are made as before */
  mgrid_backend_free(b);
  test(ok, said ? "revoking is refused" : "revoked communicators");
}

/* The backend outlives the host's communicator; groups have its error handler; it can be handed
** over whole. */
static void test_parent_freed(void) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Errhandler handler, of;
  MPI_Comm own;
  MPI_Comm_create_errhandler(host_handler, &handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_set_errhandler(own, handler);
  mgrid_backend *b = mgrid_mpi_backend(own, NULL, &e);
  MPI_Comm_free(&own);
  mgrid_plan *p = layout(largest(), size, &e);
  mgrid_state *s = mgrid_materialize(p, b, "job", &e);
  MPI_Comm tp = mgrid_mpi_comm(mgrid_state_group(s, "tp", &e));
  bool ok = s && mgrid_state_prove(s, NULL, &e) == MGRID_OK;
  if (size > 1 && tp != MPI_COMM_NULL) {
    MPI_Comm_get_errhandler(tp, &of);
    ok = ok && of == handler;
    MPI_Errhandler_free(&of);
  }
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_set_errhandler(own, handler);
  o.borrow = true;
  b = mgrid_mpi_backend(own, &o, &e);
  ok = ok && b && cycle(b, largest(), "job", &e);
  mgrid_backend_free(b);
  MPI_Comm_get_errhandler(own, &of);
  ok = ok && of == handler && called == 0; /* as it was */
  MPI_Errhandler_free(&of);
  MPI_Errhandler_free(&handler);
  int one = 1, sum;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own);
  MPI_Comm_free(&own);
  test(ok && sum == size && e.status == MGRID_OK,
       "a communicator that is freed first, and one that is ours");
}

/* ---------------------------------------------------------------------- the end */

static mgrid_plan *last;
static mgrid_backend *left;
static mgrid_state *left_state;

/* After MPI_Finalize every call of a backend is an error. */
static int after_finalize(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  bool ok = !mgrid_materialize(last, left, "late", &e) && e.status == MGRID_USAGE
            && strcmp(e.message, "mpi: MPI is finalized already") == 0;
  ok = ok && mgrid_state_prove(left_state, NULL, anew(&e)) == MGRID_USAGE;
  ok = ok && mgrid_state_create(left_state, "tp", anew(&e)) == MGRID_USAGE;
  ok = ok && !mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e)) && e.status == MGRID_USAGE;
  ok = ok && !mgrid_backend_open("mpi", NULL, anew(&e)) && e.status == MGRID_USAGE;
  mgrid_state_free(left_state);
  mgrid_backend_free(left);
  mgrid_plan_free(last);
  if (!ok) fprintf(stderr, "# rank %d: after MPI_Finalize: %s\n", rank, e.message);
  return !ok;
}

int main(int argc, char **argv) {
  bool multiple = argc < 2 || strcmp(argv[1], "multiple") == 0;
  int level;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (multiple && level >= MPI_THREAD_MULTIPLE) {
    test_allreduce();
    test_two_backends();
  }
  if (level < MPI_THREAD_SERIALIZED) test_refused();
  test_wildcard();
  test_reload();
  test_wrong_parents();
  test_wrong_options();
  test_parent_freed();
  test_revoke();
  mgrid_error e = MGRID_ERROR_INIT;
  last = layout(largest(), size, &e);
  left = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  left_state = mgrid_materialize(last, left, "left", &e);
  test(left_state != NULL, "a state that is there at the end");
  if (argc > 2 && strcmp(argv[2], "late") == 0) test_late(), test_unasked();
  bool ended = argc > 2 && strcmp(argv[2], "ended") == 0;
  if (ended) { /* for a leak check: MPI does not free what is left after its end */
    mgrid_state_free(left_state);
    mgrid_backend_free(left);
    mgrid_plan_free(last);
  }
  int code = tap_end();
  return !ended && after_finalize() ? 1 : code;
}
