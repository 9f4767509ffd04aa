/* SPDX-License-Identifier: MIT
**
** cartesian.c - Cartesian families on real ranks: MPI's coordinates in their communicators are
** compared with those of the grid, and neighbours with MPI_Cart_shift. Runs on any number of ranks.
*/
#include "moongrid_mpi.h"
#include "tap.h"

#include <string.h>

static mgrid_error e = MGRID_ERROR_INIT;

/* x 2 or 1, y 2 or 1, z the rest; `none` is the same without a shape. */
static mgrid_plan *layout(void) {
  mgrid_dim dims[] = { { "x", size % 2 ? 1 : 2 }, { "y", size % 4 ? 1 : 2 }, { "z", MGRID_FILL } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(size), 3, dims, anew(&e));
  const char *const all[] = { "x", "y", "z" }, *const plane[] = { "x", "z" },
                    *const one[] = { "x" };
  mgrid_family *f = mgrid_grid_along(g, 3, all, MGRID_GRID_ORDER, &e),
               *p = mgrid_grid_along(g, 2, plane, MGRID_GRID_ORDER, &e),
               *l = mgrid_grid_along(g, 1, one, MGRID_GRID_ORDER, &e);
  mgrid_topology *t = mgrid_topology_new(size, &e);
  mgrid_options o = MGRID_OPTIONS_INIT;
  char text[128];
  o.cartesian = text;
  mgrid_topology_add_grid(t, "grid", g, &e);
  mgrid_topology_add(t, "none", f, NULL, &e);
  snprintf(text, sizeof text, "x:%d:periodic y:%d z:%d", (int)dims[0].size, (int)dims[1].size,
           (int)mgrid_grid_dim(g, 2).size);
  mgrid_topology_add(t, "all", f, &o, &e);
  snprintf(text, sizeof text, "x:%d z:%d:periodic", (int)dims[0].size,
           (int)mgrid_grid_dim(g, 2).size);
  mgrid_topology_add(t, "plane", p, &o, &e);
  snprintf(text, sizeof text, "x:%d", (int)dims[0].size);
  mgrid_topology_add(t, "line", l, &o, &e);
  mgrid_plan *plan = mgrid_plan_new(t, &e);
  mgrid_topology_free(t);
  mgrid_family_free(l);
  mgrid_family_free(p);
  mgrid_family_free(f);
  mgrid_grid_free(g);
  return plan;
}

/* Does the communicator have n dims, named from the last of MPI's to the first, and this rank the
** coordinates of the grid? Are all neighbours those of MPI? */
static bool agrees(mgrid_state *s, const char *family, int n, const char *const *names,
                   const char *periodic) {
  const mgrid_group *g = mgrid_state_group(s, family, anew(&e));
  MPI_Comm comm = mgrid_mpi_comm(g);
  int dims[3], periods[3], coords[3], kind, ndims, position, mine[2] = { -9, -9 }, theirs[2];
  bool ok = g != NULL;
  MPI_Topo_test(comm, &kind);
  ok &= kind == MPI_CART;
  if (!ok) return false;
  MPI_Cartdim_get(comm, &ndims);
  ok &= ndims == n;
  if (!ok) return false;
  MPI_Cart_get(comm, n, dims, periods, coords);
  for (int i = 0; i < n; i++) {
    const char *name = names[n - 1 - i];
    ok &= coords[i] == mgrid_state_coord(s, "grid", name, &e)
          && !periods[i] == (strcmp(name, periodic) != 0);
    for (int steps = -3; steps <= 3; steps++) {
      MPI_Cart_shift(comm, i, steps, &theirs[0], &theirs[1]);
      ok &= mgrid_mpi_shift(g, name, steps, &mine[0], &mine[1], &e) == MGRID_OK;
      ok &= mine[0] == theirs[0] && mine[1] == theirs[1];
    }
  }
  MPI_Cart_rank(comm, coords, &position);
  ok &= position == mgrid_group_position(g);
  return ok && !e.status;
}

/* With `lies` the all-to-all of the proof says that the first member is at another position. */
static bool lies;

int MPI_Ialltoall(const void *send, int n, MPI_Datatype type, void *recv, int m, MPI_Datatype to,
                  MPI_Comm comm, MPI_Request *r) {
  if (lies) ((int32_t *)(uintptr_t)send)[1] = 7;
  return PMPI_Ialltoall(send, n, type, recv, m, to, comm, r);
}

/* Every rank gets the verdict, also those whose own groups are right. */
static void prove_lies(mgrid_state *s) {
  lies = true;
  test(mgrid_state_prove(s, NULL, anew(&e)) == MGRID_UNPROVED
           && strstr(e.message, " what rank 0 sent position 7"),
       e.message);
  lies = false;
  test(mgrid_state_prove(s, NULL, anew(&e)) == MGRID_OK, "proved again");
}

int main(int argc, char **argv) {
  static const char *const names[] = { "x", "y", "z" }, *const plane[] = { "x", "z" };
  tap_begin(&argc, &argv);
  mgrid_plan *p = layout();
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_state *s = mgrid_materialize(p, b, "cartesian", &e);
  int64_t proved = 0;
  test(s && !e.status, "a state with Cartesian families");
  if (!s) MPI_Abort(MPI_COMM_WORLD, 1); /* all ranks: materialize fails on all */
  test(agrees(s, "all", 3, names, "x"), "all dims");
  test(agrees(s, "plane", 2, plane, "z"), "two dims, which are not neighbours");
  test(agrees(s, "line", 1, names, ""), "one dim");
  test(mgrid_state_prove(s, &proved, anew(&e)) == MGRID_OK
           && proved == (int64_t)mgrid_state_ncomms(s),
       "proved");

  prove_lies(s);

  const mgrid_group *none = mgrid_state_group(s, "none", anew(&e)),
                    *all = mgrid_state_group(s, "all", anew(&e));
  int kind = -1, source = 5, dest = 5;
  MPI_Topo_test(mgrid_mpi_comm(none), &kind);
  test(kind == MPI_UNDEFINED && (size == 1 || mgrid_mpi_comm(none) != mgrid_mpi_comm(all)),
       "equal groups without a shape have a communicator of their own, without a topology");
  test(mgrid_mpi_shift(all, "w", 1, &source, &dest, anew(&e)) == MGRID_UNKNOWN_NAME
           && strcmp(e.message, "unknown dim 'w'; known: x, y, z") == 0 && source == 5 && dest == 5,
       "a dim that is not there");
  test(mgrid_mpi_shift(all, "x", 1, NULL, NULL, anew(&e)) == MGRID_OK
           && mgrid_mpi_shift(all, "x", 0, NULL, &dest, anew(&e)) == MGRID_OK
           && dest == (int)mgrid_group_position(all),
       "outputs that are NULL");
  dest = 5;
  test(mgrid_mpi_shift(none, "x", 1, &source, &dest, anew(&e)) == MGRID_REFUSED && source == 5
           && dest == 5,
       "a family without a shape");

  mgrid_state *again = mgrid_materialize(p, b, "again", anew(&e));
  test(again && mgrid_mpi_comm(mgrid_state_group(again, "all", &e)) == mgrid_mpi_comm(all),
       "another state shares the communicator with the topology");
  mgrid_state_free(again);
  mgrid_state_free(s);
  test(mgrid_backend_ncomms(b) == 0, "no communicator is left");
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  return tap_end();
}
