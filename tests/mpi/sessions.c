/* SPDX-License-Identifier: MIT
**
** sessions.c [both] - a host that begins MPI by sessions, without MPI_COMM_WORLD; with `both` it
** also calls MPI_Init. Runs on any number of ranks.
*/
#include "moongrid_mpi.h"

static MPI_Comm host; /* the ranks of the host's session */
#define TAP_COMM host
#include "moongrid_tensor.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)

static mgrid_error e = MGRID_ERROR_INIT;
static bool alone = true; /* the host has sessions and nothing else */

static bool is_initialized(void) {
  int ready = 0;
  MPI_Initialized(&ready);
  return ready;
}

/* All ranks in a grid of one dim; families of all and of one rank each; a tensor cut or whole. */
static mgrid_plan *layout(bool cut) {
  mgrid_dim dims[] = { { "x", MGRID_FILL }, { "one", 1 } };
  const char *const x[] = { "x" }, *const one[] = { "one" };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(size), 2, dims, &e);
  mgrid_topology *t = mgrid_topology_new(size, &e);
  mgrid_family *f = mgrid_grid_along(g, 1, x, MGRID_GRID_ORDER, &e),
               *s = mgrid_grid_along(g, 1, one, MGRID_GRID_ORDER, &e);
  mgrid_options o = MGRID_OPTIONS_INIT, none = MGRID_OPTIONS_INIT, lazy = MGRID_OPTIONS_INIT;
  o.cartesian = "one:1:periodic", none.backend = "none", lazy.lazy = true;
  mgrid_topology_add(t, "x", f, NULL, &e);
  mgrid_topology_add(t, "one", s, NULL, &e);
  mgrid_topology_add(t, "cart", s, &o, &e);
  mgrid_topology_add(t, "none", s, &none, &e);
  mgrid_topology_add(t, "lazy", s, &lazy, &e);
  mgrid_tensor_axis axis = MGRID_TENSOR_AXIS_INIT;
  axis.name = "i", axis.length = 3 * (int64_t)size, axis.dims = x, axis.ndims = cut;
  mgrid_tensor *tensor = mgrid_tensor_new(g, "f64", 1, &axis, NULL, &e);
  mgrid_topology_add_tensor(t, "a", tensor, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  mgrid_tensor_free(tensor);
  mgrid_topology_free(t);
  mgrid_family_free(s);
  mgrid_family_free(f);
  mgrid_grid_free(g);
  return p;
}

/* A group of one rank: its communicator is of one rank, works, and is MPI_COMM_SELF only where that
** is there. */
static bool is_single(const mgrid_state *s, const char *family, bool self) {
  MPI_Comm comm = mgrid_mpi_comm(mgrid_state_group(s, family, &e));
  int n = 0, sum = 0, two = 2;
  if (comm == MPI_COMM_NULL || (comm == MPI_COMM_SELF) != self || MPI_Comm_size(comm, &n) || n != 1)
    return false;
  return !MPI_Allreduce(&two, &sum, 1, MPI_INT, MPI_SUM, comm) && sum == 2;
}

static void test_groups(mgrid_backend *b, const mgrid_plan *p) {
  mgrid_state *s = mgrid_materialize(p, b, "s", anew(&e));
  test(s && !mgrid_state_prove(s, NULL, &e), s ? "groups are made and proved" : e.message);
  int one = 1, sum = 0;
  if (s)
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, mgrid_mpi_comm(mgrid_state_group(s, "x", &e)));
  test(sum == size, "a group of all ranks sums");
  test(s && is_single(s, "one", !alone) && is_single(s, "cart", false),
       "groups of one rank have communicators");
  test(s && mgrid_mpi_comm(mgrid_state_group(s, "none", &e)) == MPI_COMM_NULL,
       "a family without one has none");
  test(s && !mgrid_state_create(s, "lazy", &e) && is_single(s, "lazy", !alone),
       "a lazy one has one later");
  mgrid_state_free(s);
  test(mgrid_backend_ncomms(b) == 0 && !e.status, "none is left");
}

/* A vector in pieces, and then whole on all ranks. */
static void test_move(mgrid_backend *b, const mgrid_plan *from) {
  mgrid_plan *to = layout(false);
  mgrid_move *move = mgrid_move_new(from, to, rank, 0, NULL, NULL, anew(&e));
  double piece[3], *whole = calloc(3 * (size_t)size, sizeof *whole);
  mgrid_buffer src = { piece, sizeof piece }, dst = { whole, 3 * (int64_t)size * 8 };
  for (int i = 0; i < 3; i++) piece[i] = 3 * rank + i;
  bool ok = move && whole && !mgrid_move_run(move, b, &src, &dst, NULL, &e);
  for (int i = 0; i < 3 * size && ok; i++) ok = (int)whole[i] == i;
  test(ok, e.status ? e.message : "a move brings all pieces");
  mgrid_move_free(move);
  free(whole);
  mgrid_plan_free(to);
}

static void test_reload(mgrid_backend *b) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&e)), *new_rt = NULL;
  mgrid_status status = mgrid_runtime_load(rt, "picotron", NULL, 0, &e);
  mgrid_plan *p = status ? NULL : mgrid_runtime_plan(rt, size, NULL, 0, NULL, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", &e), *new_s = NULL;
  const char *args[] = { size % 2 ? "tp=1" : "tp=2" };
  status = s ? mgrid_reload(rt, s, "picotron", 1, args, &new_s, NULL, &e) : e.status;
  new_rt = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  test(!status && !mgrid_state_prove(new_s, NULL, &e),
       e.status ? e.message : "a recipe is loaded again");
  mgrid_state_free(s);
  mgrid_state_free(new_s);
  mgrid_runtime_free(new_rt);
  mgrid_runtime_free(rt);
  mgrid_plan_free(p);
}

static void test_all(MPI_Comm parent, const mgrid_mpi_options *o) {
  mgrid_backend *b = mgrid_mpi_backend(parent, o, anew(&e));
  mgrid_plan *p = layout(true);
  test(b && !e.status, b ? "a backend over a communicator of a session" : e.message);
  if (b) test_groups(b, p), test_move(b, p), test_reload(b);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  int n = 0;
  test(!MPI_Comm_size(host, &n) && n == size, "the host's communicator is there afterwards");
}

/* What is not a communicator of a session. MPICH ends the process where one was freed. */
static void test_wrong(void) {
  MPI_Comm with[] = { MPI_COMM_NULL, MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL };
  bool ok = true;
#ifdef OPEN_MPI
  MPI_Comm_dup(host, &with[3]);
  MPI_Comm freed = with[3];
  MPI_Comm_free(&freed);
#endif
  for (int i = 0; i < 4; i++)
    ok = ok && !mgrid_mpi_backend(with[i], NULL, anew(&e)) && e.status == MGRID_USAGE;
  test(ok, "what is not a communicator of a session is refused");
}

static MPI_Session begin(void) {
  MPI_Session s;
  MPI_Group g;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
  if (MPI_Session_init(info, MPI_ERRORS_RETURN, &s)) exit(1);
  MPI_Info_free(&info);
  if (MPI_Group_from_session_pset(s, "mpi://WORLD", &g)) exit(1);
  if (MPI_Comm_create_from_group(g, "moongrid/test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &host))
    exit(1);
  MPI_Group_free(&g);
  MPI_Comm_rank(host, &rank);
  MPI_Comm_size(host, &size);
  return s;
}

/* The host has a session before MPI_Init and after MPI_Finalize, and so has a backend that was
** opened before. */
static void test_both(void) {
  mgrid_backend *before = mgrid_mpi_backend(host, NULL, anew(&e));
  mgrid_plan *p = layout(true);
  MPI_Init(NULL, NULL);
  test_groups(before, p);
  alone = false;
  test_all(host, NULL);
  test_all(MPI_COMM_WORLD, NULL);
  MPI_Finalize();
  alone = true;
  test_groups(before, p);
  test_all(host, NULL);
  mgrid_backend_free(before);
  mgrid_plan_free(p);
}

int main(int argc, char **argv) {
  MPI_Session s = begin();
  mgrid_mpi_options own = MGRID_MPI_OPTIONS_INIT, threads = MGRID_MPI_OPTIONS_INIT;
  own.borrow = true, threads.threads = MGRID_THREADS_MULTIPLE;
  if (argc > 1 && strcmp(argv[1], "both") == 0) {
    test_both();
  } else {
    test_wrong();
    test_all(host, NULL);
    test_all(host, &own);
    test_all(host, &threads);
    test(!is_initialized(), "MPI_Init was called by nobody");
  }
  int code = tap_total();
  MPI_Comm_free(&host);
  MPI_Session_finalize(&s);
  return code;
}

#else

int main(int argc, char **argv) {
  host = MPI_COMM_WORLD;
  tap_begin(&argc, &argv);
  if (rank == 0) puts("1..0 # SKIP this MPI has no sessions; Open MPI has since 5, MPICH since 4");
  MPI_Finalize();
  return 0;
}

#endif
