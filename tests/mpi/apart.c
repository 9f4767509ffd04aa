/* SPDX-License-Identifier: MIT
**
** apart.c - what is the host's and what is the library's stay apart: groups of one rank with a communicator of their
** own. Runs on any number of ranks.
*/
#include "moongrid_mpi.h"
#include "tap.h"

#include <string.h>

static mgrid_error e = MGRID_ERROR_INIT;

/* ---------------------------------------------------------------- groups of one rank */

/* What families may ask for, in every combination. */
enum { UNIQUE = 1, SINGLE = 2, CARTESIAN = 4, LAZY = 8, TWIN = 16, NONE = 32, COMBINATIONS = 64 };

static void name_of(int asks, char *name) { sprintf(name, "f%d", asks); }

/* A family per combination; all groups have one rank. */
static mgrid_plan *singles(void) {
  mgrid_dim         dims[] = { { "x", 1 }, { "z", MGRID_FILL } };
  const char *const along[] = { "x" };
  mgrid_grid       *g = mgrid_grid_new(mgrid_world(size), 2, dims, &e);
  mgrid_family     *f = mgrid_grid_along(g, 1, along, MGRID_GRID_ORDER, &e), *twin = mgrid_family_twin(f, &e);
  mgrid_topology   *t = mgrid_topology_new(size, &e);
  char              name[16];
  for (int asks = 0; asks < COMBINATIONS; asks++) {
    mgrid_options o = MGRID_OPTIONS_INIT;
    o.unique = asks & UNIQUE, o.single = asks & SINGLE, o.lazy = asks & LAZY;
    if (asks & CARTESIAN) o.cartesian = "x:1:periodic";
    if (asks & NONE) o.backend = "none";
    name_of(asks, name);
    mgrid_topology_add(t, name, asks & TWIN ? twin : f, &o, &e);
  }
  mgrid_plan *p = mgrid_plan_new(t, &e);
  mgrid_topology_free(t);
  mgrid_family_free(twin);
  mgrid_family_free(f);
  mgrid_grid_free(g);
  return p;
}

static MPI_Comm comm_of(const mgrid_state *s, int asks) {
  char name[16];
  name_of(asks, name);
  return mgrid_mpi_comm(mgrid_state_group(s, name, &e));
}

static bool has_own(int asks) { return !(asks & NONE) && (asks & (UNIQUE | SINGLE | CARTESIAN | TWIN)); }

/* Is it congruent to MPI_COMM_SELF, with the topology that was asked for? */
static bool is_right(MPI_Comm comm, int asks) {
  int same, kind, source = -1, dest = -1;
  MPI_Comm_compare(comm, MPI_COMM_SELF, &same);
  MPI_Topo_test(comm, &kind);
  if (asks & CARTESIAN) MPI_Cart_shift(comm, 0, 1, &source, &dest);
  return same == MPI_CONGRUENT && kind == (asks & CARTESIAN ? MPI_CART : MPI_UNDEFINED)
         && (!(asks & CARTESIAN) || (source == 0 && dest == 0));
}

/* Two families share one if both may share and their shape is the same. */
static bool may_share(int a, int b) {
  return !((a | b) & (UNIQUE | TWIN)) && !((a ^ b) & CARTESIAN);
}

static void test_which(const mgrid_state *s, bool created) {
  bool ok = true;
  for (int a = 0; a < COMBINATIONS; a++) {
    MPI_Comm comm = comm_of(s, a);
    MPI_Comm want = a & NONE ? MPI_COMM_NULL : MPI_COMM_SELF;
    if (!has_own(a))
      ok = ok && comm == want;
    else if (a & LAZY && !created && comm == MPI_COMM_NULL)
      continue; /* one that it shares may be there already */
    else
      ok = ok && comm != MPI_COMM_SELF && comm != MPI_COMM_NULL && is_right(comm, a);
    for (int b = 0; b < a && has_own(a) && created; b++)
      if (has_own(b)) ok = ok && (comm_of(s, b) == comm) == may_share(a, b);
  }
  test(ok, created ? "groups of one rank with a communicator of their own" : "the same before lazy ones are made");
}

/* A receive of the host's on MPI_COMM_SELF, and one on each other communicator, with wildcards: a message comes to its own. */
static void test_messages(const mgrid_state *s) {
  bool        ok = true;
  int         host = -1, tag = 3;
  MPI_Request pending;
  MPI_Irecv(&host, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &pending);
  for (int a = 0; a < COMBINATIONS; a++) {
    MPI_Comm    comm = has_own(a) ? comm_of(s, a) : MPI_COMM_SELF;
    MPI_Request request;
    int         sent = a, got = -1;
    if (!has_own(a)) continue;
    MPI_Irecv(&got, 1, MPI_INT, 0, tag, comm, &request);
    MPI_Send(&sent, 1, MPI_INT, 0, tag, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ok = ok && got == a && host == -1;
  }
  MPI_Send(&tag, 1, MPI_INT, 0, tag, MPI_COMM_SELF);
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  test(ok && host == tag, "a message on a group does not come to a receive on MPI_COMM_SELF");
}

/* Error handlers and attributes of one are not those of another, nor of MPI_COMM_SELF. */
static void test_properties(const mgrid_state *s) {
  MPI_Comm       x = comm_of(s, UNIQUE), y = comm_of(s, TWIN);
  MPI_Errhandler was, now;
  int            key, mine = 5, found = 1, *got;
  bool           ok = true;
  MPI_Comm_get_errhandler(MPI_COMM_SELF, &was);
  MPI_Comm_set_errhandler(x, MPI_ERRORS_RETURN);
  MPI_Comm_get_errhandler(MPI_COMM_SELF, &now);
  ok = ok && now == was && now != MPI_ERRORS_RETURN;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(x, key, &mine);
  MPI_Comm_get_attr(y, key, &got, &found);
  ok = ok && !found;
  MPI_Comm_get_attr(MPI_COMM_SELF, key, &got, &found);
  ok = ok && !found;
  MPI_Comm_free_keyval(&key);
  MPI_Errhandler_free(&was);
  MPI_Errhandler_free(&now);
  test(ok, "nor does it have its error handler or its attributes");
}

static void test_singles(mgrid_backend *b) {
  mgrid_plan  *p = singles();
  mgrid_state *s = mgrid_materialize(p, b, "singles", &e), *again = NULL;
  int64_t      proved = -1;
  bool         ok = s && !mgrid_state_prove(s, &proved, &e) && mgrid_state_ncomms(s) == 0 && proved == 0;
  test(ok && !e.status, "a state of groups of one rank, which are in no schedule");
  if (!s) MPI_Abort(MPI_COMM_WORLD, 1);
  test_which(s, false);
  for (int a = 0; a < COMBINATIONS; a++) {
    char name[16];
    name_of(a, name);
    if (a & LAZY) mgrid_state_create(s, name, &e);
  }
  test(!e.status, "lazy ones are made");
  test_which(s, true);
  test_messages(s);
  test_properties(s);
  again = mgrid_materialize(p, b, "again", &e);
  test(again && comm_of(again, SINGLE) == comm_of(s, SINGLE) && comm_of(again, UNIQUE) != comm_of(s, UNIQUE),
       "another state shares those that are not unique");
  mgrid_state_free(s);
  mgrid_state_free(again);
  test(mgrid_backend_ncomms(b) == 0, "none is left");
  mgrid_plan_free(p);
}

int main(int argc, char **argv) {
  tap_begin(&argc, &argv);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  test_singles(b);
  mgrid_backend_free(b);
  return tap_end();
}
