/* SPDX-License-Identifier: MIT
**
** apart.c - the library leaves the host's communicators alone, and the host cannot change the
** library's: groups of one rank with a communicator of their own, attributes, communicators that
** are borrowed. Runs on any number of ranks.
*/
#include "moongrid_mpi.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static mgrid_error e = MGRID_ERROR_INIT;

/* ---------------------------------------------------------------- groups of one rank */

/* What families may ask for, in every combination. */
enum { UNIQUE = 1, SINGLE = 2, CARTESIAN = 4, LAZY = 8, TWIN = 16, NONE = 32, COMBINATIONS = 64 };

static void name_of(int asks, char *name) { sprintf(name, "f%d", asks); }

/* A family per combination; all groups have one rank. */
static mgrid_plan *singles(void) {
  mgrid_dim dims[] = { { "x", 1 }, { "z", MGRID_FILL } };
  const char *const along[] = { "x" };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(size), 2, dims, &e);
  mgrid_family *f = mgrid_grid_along(g, 1, along, MGRID_GRID_ORDER, &e),
               *twin = mgrid_family_twin(f, &e);
  mgrid_topology *t = mgrid_topology_new(size, &e);
  char name[16];
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

static bool has_own(int asks) {
  return !(asks & NONE) && (asks & (UNIQUE | SINGLE | CARTESIAN | TWIN));
}

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
  test(ok, created ? "groups of one rank with a communicator of their own"
                   : "the same before lazy ones are made");
}

/* A receive of the host's on MPI_COMM_SELF, and one on each other communicator, with wildcards: a
** message comes to its own. */
static void test_messages(const mgrid_state *s) {
  bool ok = true;
  int host = -1, tag = 3;
  MPI_Request pending;
  MPI_Irecv(&host, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &pending);
  for (int a = 0; a < COMBINATIONS; a++) {
    MPI_Comm comm = has_own(a) ? comm_of(s, a) : MPI_COMM_SELF;
    MPI_Request request;
    int sent = a, got = -1;
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
  MPI_Comm x = comm_of(s, UNIQUE), y = comm_of(s, TWIN);
  MPI_Errhandler was, now;
  int key, mine = 5, found = 1, *got;
  bool ok = true;
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
  mgrid_plan *p = singles();
  mgrid_state *s = mgrid_materialize(p, b, "singles", &e), *again = NULL;
  int64_t proved = -1;
  bool ok = s && !mgrid_state_prove(s, &proved, &e) && mgrid_state_ncomms(s) == 0 && proved == 0;
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
  test(again && comm_of(again, SINGLE) == comm_of(s, SINGLE)
           && comm_of(again, UNIQUE) != comm_of(s, UNIQUE),
       "another state shares those that are not unique");
  mgrid_state_free(s);
  mgrid_state_free(again);
  test(mgrid_backend_ncomms(b) == 0, "none is left");
  mgrid_plan_free(p);
}

/* --------------------------------------------------------------------- attributes */

static int copies, deletes;

static int on_copy(MPI_Comm c, int key, void *extra, void *from, void *to, int *flag) {
  (void)c, (void)key, (void)extra;
  copies++;
  *(void **)to = from;
  *flag = 1;
  return MPI_SUCCESS;
}

static int on_delete(MPI_Comm c, int key, void *value, void *extra) {
  (void)c, (void)key, (void)value, (void)extra;
  deletes++;
  return MPI_SUCCESS;
}

/* Families along both dims of a grid, all ranks, and one rank each with a communicator of its
** own. */
static mgrid_plan *layout(void) {
  mgrid_dim dims[] = { { "x", size % 2 ? 1 : 2 }, { "y", MGRID_FILL } };
  const char *const names[] = { "x", "y" };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(size), 2, dims, &e);
  mgrid_topology *t = mgrid_topology_new(size, &e);
  for (int i = 0; i < 3; i++) {
    mgrid_family *f = mgrid_grid_along(g, i < 2 ? 1 : 2, &names[i % 2], MGRID_GRID_ORDER, &e);
    mgrid_options o = MGRID_OPTIONS_INIT;
    o.single = true;
    mgrid_topology_add(t, i < 2 ? names[i] : "all", f, &o, &e);
    mgrid_family_free(f);
  }
  mgrid_plan *p = mgrid_plan_new(t, &e);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
  return p;
}

static void test_attributes(void) {
  MPI_Comm own, with[3] = { MPI_COMM_WORLD, MPI_COMM_SELF };
  int key, value = 7;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_create_keyval(on_copy, on_delete, &key, NULL);
  with[2] = own;
  for (int i = 0; i < 3; i++) MPI_Comm_set_attr(with[i], key, &value);
  copies = deletes = 0;
  mgrid_backend *b = mgrid_mpi_backend(own, NULL, &e);
  mgrid_plan *p = layout();
  mgrid_state *s = mgrid_materialize(p, b, "attributes", &e);
  mgrid_state_prove(s, NULL, &e);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  test(!e.status && copies == 0 && deletes == 0, "attributes of the host's are not copied");
  for (int i = 0; i < 3; i++) MPI_Comm_delete_attr(with[i], key);
  MPI_Comm_free_keyval(&key);
  MPI_Comm_free(&own);
  mgrid_plan_free(p);
}

/* ------------------------------------------------------------- communicators of ours */

static int logged;
static void on_log(void *ud, mgrid_level level, const char *text) {
  (void)ud;
  logged += level == MGRID_LOG_WARN && strstr(text, "which is borrowed: mgrid_state_free frees it");
}

/* MPI refuses to free what is borrowed, and it stays good. */
static void test_borrowed(void) {
  static const char *const names[] = { "x", "y", "all" };
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  hooks.log = on_log;
  mgrid_backend_set_hooks(b, &hooks, &e);
  mgrid_plan *p = layout();
  mgrid_state *s = mgrid_materialize(p, b, "borrowed", &e);
  bool ok = s != NULL;
  for (int i = 0; i < 3; i++) {
    MPI_Comm comm = mgrid_mpi_comm(mgrid_state_group(s, names[i], &e)), was = comm, twin;
    int one = 1, sum = 0, n, class = 0;
    ok = ok && MPI_Comm_f2c(mgrid_mpi_comm_f(mgrid_state_group(s, names[i], &e))) == comm;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    /* MPICH's asks those of its own communicators */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(comm, &n);
    int rc = MPI_Comm_free(&comm);
    if (rc) MPI_Error_class(rc, &class);
    ok = ok && class == MPI_ERR_COMM && comm == was && logged == i + 1;
    ok = ok && !MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, was) && sum == n;
    MPI_Comm_dup(was, &twin); /* a duplicate is the host's */
    ok = ok && !MPI_Comm_free(&twin);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  }
  test(ok && !e.status && logged == 3, "MPI_Comm_free of a communicator of ours is refused");
  test(s && !mgrid_state_prove(s, NULL, &e), "and the communicator is as good as before");
  mgrid_state_free(s);
  test(mgrid_backend_ncomms(b) == 0 && logged == 3, "none is left");
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* -------------------------------------------------------------- ranks that leave early */

/* A family of the first n ranks. */
static mgrid_plan *first_ranks(int n) {
  int64_t starts[] = { 0, n };
  int64_t *ranks = calloc((size_t)size, sizeof *ranks);
  for (int i = 0; i < n; i++) ranks[i] = i;
  mgrid_family *f = mgrid_family_table(mgrid_world(size), 1, starts, ranks,
                                       n < size ? MGRID_PARTIAL : MGRID_PARTITION, &e);
  mgrid_topology *t = mgrid_topology_new(size, &e);
  mgrid_topology_add(t, "grid", f, NULL, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  free(ranks);
  return p;
}

/* A grid of fewer ranks after the other: those outside leave at once, the others work and free it
** later, or never. */
static void test_leave(void) {
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  bool ok = true;
  for (int n = size; n > 0; n--) {
    mgrid_plan *p = first_ranks(n), *q = first_ranks(1);
    mgrid_state *s = mgrid_materialize(p, b, "grid", &e), *other;
    mgrid_error no = MGRID_ERROR_INIT;
    mgrid_status left = mgrid_state_leave(s, &no);
    const bool member = rank < n && n > 1;
    int one = 1, sum = 0;
    ok = ok && !e.status
         && (member ? left == MGRID_REFUSED && strstr(no.message, "shares group 0 of 'grid'")
                    : !left);
    other = mgrid_materialize(q, b, "beside", &e); /* while some have the first */
    if (member)
      MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM,
                    mgrid_mpi_comm(mgrid_state_group(s, "grid", &e)));
    ok = ok && (!member || sum == n);
    if (member) mgrid_state_free(s);
    mgrid_state_free(other);
    mgrid_plan_free(p);
    mgrid_plan_free(q);
  }
  test(ok && !e.status, "ranks that are in no group leave a state before the others free it");
  test(mgrid_backend_ncomms(b) == 0, "none is left");
  mgrid_backend_free(b);
}

/* States that a rank has and others have not: the error says what differs, however many they are
** and whatever names they have. */
static void test_unlike(void) {
  enum { STATES = 12 };
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_plan *p = first_ranks(size);
  bool ok = true;
  for (int freed = 0; freed < STATES && size > 1; freed++) {
    mgrid_state *s[STATES];
    for (int i = 0; i < STATES; i++) {
      char name[64];
      snprintf(name, sizeof name,
               i % 3 == 0 ? "same" : "state %d', 'of a long name, so that few have room", i);
      s[i] = mgrid_materialize(p, b, name, &e);
    }
    ok = ok && !e.status;
    mgrid_error no = MGRID_ERROR_INIT;
    if (rank == size - 1) mgrid_state_free(s[freed]);
    ok = ok && mgrid_agree(b, p, NULL, &no) == MGRID_DISAGREE;
    char *have = strstr(no.message, " has "), *has = have ? strstr(have + 1, ", rank ") : NULL,
         *text;
    text = has ? strstr(has, " has ") : NULL;
    ok = ok && text && (strncmp(have, text, (size_t)(has - have)) != 0 || text[has - have] != ';');
    ok = ok && strncmp(no.message, "ranks have unlike states: rank 0 has ", 37) == 0;
    for (int i = 0; i < STATES; i++)
      if (i != freed || rank < size - 1) mgrid_state_free(s[i]);
    if (!ok) fprintf(stderr, "# %d: %s\n", freed, no.message);
  }
  mgrid_state *s = mgrid_materialize(p, b, "grid", &e), *next = NULL;
  mgrid_error no = MGRID_ERROR_INIT;
  /* the others have it when its name is taken again, by another plan */
  if (rank == 0) mgrid_state_free(s);
  mgrid_plan *q = first_ranks(1);
  if (size > 1) next = mgrid_materialize(q, b, "grid", &no);
  ok = ok && (size == 1 || (!next && strstr(no.message, "rank 0 has none, rank 1 has 'grid'")));
  if (rank > 0) mgrid_state_free(s);
  test(ok && !e.status, "ranks with unlike states are told what differs");
  mgrid_plan_free(p);
  mgrid_plan_free(q);
  mgrid_backend_free(b);
}

/* ---------------------------------------------------------------- how often a rank waits */

static int messages, collectives; /* that the library began on this rank */

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
  messages++;
  return PMPI_Isend(data, n, type, to, tag, comm, request);
}
int MPI_Iallreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request) {
  collectives++;
  return PMPI_Iallreduce(from, to, n, type, op, comm, request);
}

/* Ranks that share cores wait for each other's time slices, so an agreement goes up a tree of 16
** children each and down again: a rank waits for its children and for its parent, not log2(ranks)
** times as in a collective of MPI. */
static void test_waits(void) {
  enum { CHILDREN = 16 };
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_plan *p = first_ranks(size);
  const int left = size - 1 - CHILDREN * rank, children = left < 0          ? 0
                                                          : left < CHILDREN ? left
                                                                            : CHILDREN;
  messages = collectives = 0;
  bool ok = mgrid_agree(b, p, NULL, &e) == MGRID_OK && collectives == 0;
  int calls = messages; /* of the last rank, which has no children */
  MPI_Bcast(&calls, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
  test(ok && (size == 1 || calls > 0) && messages == calls * (children + (rank > 0)),
       "a rank waits twice in each call of an agreement");
  mgrid_plan_free(p);
  mgrid_backend_free(b);
}

int main(int argc, char **argv) {
  tap_begin(&argc, &argv);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  test_singles(b);
  mgrid_backend_free(b);
  test_attributes();
  test_borrowed();
  test_leave();
  test_unlike();
  test_waits();
  MPI_Fint fortran = mgrid_mpi_comm_f(NULL);
  test(MPI_Comm_f2c(fortran) == MPI_COMM_NULL, "the handle for Fortran of no group");
  return tap_end();
}
