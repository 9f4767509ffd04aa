/* SPDX-License-Identifier: MIT
**
** trainer.c - the nccl backend as a C trainer uses it: accessors, NCCL's own calls on what it gets,
** split from a parent, shrink, revoke, a rank that does not come. Under mpirun with the stand-in
** libraries of standin/ in LD_LIBRARY_PATH. TAP from rank 0.
**
**     trainer use|split|shrink|revoke|late|blocking|scalable|failing|gone|owners|files
*/
#include "trainer.h"

#include <sys/resource.h>

static mgrid_plan *plan_of(const char *const *args, size_t n, mgrid_error *e) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, e);
  mgrid_status s = mgrid_runtime_load(rt, "megatron", NULL, 0, e);
  mgrid_plan *p = s ? NULL : mgrid_runtime_plan(rt, size, NULL, n, args, e);
  mgrid_runtime_free(rt);
  return p;
}

static const char *const tp2_pp2[] = { "tp=2", "pp=2" };

/* ------------------------------------------------------------------------- tests */

static void use(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = plan_of(tp2_pp2, 2, &e);
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), NULL, anew(&e));
  test(b && strcmp(mgrid_backend_name(b), maker()) == 0,
       "the backend opens over the host's communicator");
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  test(s != NULL, "megatron is made");
  mgrid_machine machine = MGRID_MACHINE_INIT;
  int devices = -1, device = -1;
  p_GetDeviceCount(&devices), p_GetDevice(&device);
  mgrid_state_machine(s, &machine, NULL);
  test(machine.machines == 1 && machine.local_rank == rank && machine.gpus == devices
           && machine.gpu == device,
       "the state knows its machine and GPU");
  const mgrid_group *tp = mgrid_state_group(s, "tp", anew(&e)),
                    *cp = mgrid_state_group(s, "cp", anew(&e)),
                    *gloo = mgrid_state_group(s, "dp_gloo", anew(&e));
  test(right(s, "tp") && right(s, "pp") && right(s, "dp"),
       "tp, pp and dp are what was planned, and sum");
  test(strcmp(mgrid_group_backend(tp), maker()) == 0 && mgrid_mpi_comm(tp) == MPI_COMM_NULL
           && mgrid_nccl_stream(tp),
       "a group of NCCL's has no MPI communicator");
  test(!mgrid_nccl_comm(cp) && !mgrid_nccl_stream(cp) && !*mgrid_group_backend(cp)
           && mgrid_mpi_comm(cp) == MPI_COMM_SELF,
       "a group of one rank has none");
  int count = 0;
  if (mgrid_mpi_comm(gloo) != MPI_COMM_NULL) MPI_Comm_size(mgrid_mpi_comm(gloo), &count);
  test(!mgrid_nccl_comm(gloo) && count == mgrid_group_size(gloo),
       "a family that asks for mpi is made by mpi");
  mgrid_state *again = mgrid_materialize(p, b, "again", anew(&e));
  test(again && mgrid_nccl_comm(mgrid_state_group(again, "tp", anew(&e))) == mgrid_nccl_comm(tp),
       "another state shares communicators");
  mgrid_state_free(s);
  test(right(again, "tp"), "and keeps them when the first one ends");
  mgrid_state_free(again);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

static void split(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  ncclUniqueId id;
  ncclComm_t world = NULL, wrong = NULL;
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_plan *p = plan_of(tp2_pp2, 2, &e);
  p_SetDevice(rank);
  if (rank == 0) p_GetUniqueId(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  test(p_CommInitRank(&world, size, id, rank) == ncclSuccess,
       "the host makes a communicator of its own");
  o.parent = world;
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), &o, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "split", anew(&e));
  test(s != NULL, b ? e.message : "megatron is split from it");
  test(s && right(s, "tp") && right(s, "pp") && right(s, "dp") && right(s, "embd")
           && right(s, "mp"),
       "groups, order and sums are the same");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  /* what MPI makes for some ranks is not a split of the others; and what was split shrinks */
  mgrid_plan *some = two(false, true, &e);
  int64_t lost[] = { 1 };
  b = mgrid_backend_over(mpi, maker(), &o, anew(&e));
  s = mgrid_materialize(some, b, "some", anew(&e));
  test(s && right(s, "tp") && right(s, "dp"),
       s ? "with a family of a few ranks that MPI makes" : e.message);
  mgrid_state *left = s && rank != 1 ? mgrid_state_shrink(s, "dp", 1, lost, anew(&e)) : NULL;
  test(rank == 1 || (left && right(left, "dp")), left || rank == 1 ? "and shrinks" : e.message);
  mgrid_state_free(left);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(some);
  /* a parent of other ranks is refused on all */
  if (rank == 0) p_GetUniqueId(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  p_CommInitRank(&wrong, size, id, size - 1 - rank);
  o.parent = wrong;
  b = mgrid_backend_over(mpi, maker(), &o, anew(&e));
  test(!b && strstr(e.message, "the parent makes this rank"),
       "a parent in another order is refused");
  p_CommDestroy(wrong);
  p_CommDestroy(world);
  mgrid_plan_free(p);
}

static void shrink(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = plan_of(tp2_pp2, 1, &e); /* tp2, dp the rest */
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), NULL, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e)), *left = NULL;
  int64_t lost[] = { 2 };
  test(s && right(s, "dp"), "dp before");
  const mgrid_group *dp = mgrid_state_group(s, "dp", anew(&e));
  ncclComm_t before = mgrid_nccl_comm(dp);
  if (rank != 2) left = mgrid_state_shrink(s, "dp", 1, lost, anew(&e));
  const mgrid_group *now = left ? mgrid_state_group(left, "dp", anew(&e)) : NULL;
  bool hit = mgrid_group_position_of(dp, 2) >= 0;
  test(rank == 2
           || (now && mgrid_group_size(now) == mgrid_group_size(dp) - hit
               && mgrid_group_position_of(now, 2) < 0),
       left ? "dp without rank 2" : e.message);
  test(rank == 2 || (mgrid_nccl_comm(now) && (mgrid_nccl_comm(now) == before) == !hit),
       "who lost nobody keeps its own");
  test(rank == 2 || sum_of(now, rank) == want_of(now), "and what is left sums");
  test(!mgrid_state_shrink(s, "dq", 1, lost, anew(&e)) && strstr(e.message, "nearest is 'dp'"),
       "an unknown family is refused");
  lost[0] = size;
  test(!mgrid_state_shrink(s, "dp", 1, lost, anew(&e)) && strstr(e.message, "out of range"),
       "an unknown rank is refused");
  lost[0] = rank;
  test(!mgrid_state_shrink(s, "dp", 1, lost, anew(&e)) && strstr(e.message, "lists itself as lost"),
       "nobody loses itself");
  lost[0] = (rank + 1) % size;
  mgrid_state *gloo = mgrid_state_shrink(s, "dp_gloo", 1, lost, anew(&e));
  test(!gloo || mgrid_group_position_of(mgrid_state_group(s, "dp_gloo", NULL), lost[0]) < 0,
       "MPI's communicators cannot shrink");
  mgrid_state_free(gloo);
  mgrid_state_free(left);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

static void revoked(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = plan_of(tp2_pp2, 1, &e);
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), NULL, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e)), *left = NULL;
  int64_t lost[] = { 1 };
  test(s && mgrid_state_revoke(s, anew(&e)) == MGRID_OK, "revoke");
  if (rank != 1) left = mgrid_state_shrink(s, "dp", 1, lost, anew(&e));
  const mgrid_group *now = left ? mgrid_state_group(left, "dp", anew(&e)) : NULL;
  test(rank == 1 || !mgrid_nccl_comm(now)
           || mgrid_group_position_of(mgrid_state_group(s, "dp", anew(&e)), 1) < 0
           || sum_of(now, rank) == want_of(now),
       left ? "shrink after revoke" : e.message);
  mgrid_state_free(left);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* With STANDIN_FAIL_INIT=3:3 the second creation fails, for tp or dp, since calls that block begin
** in threads: the first lives on, and a third is made. */
static void failing(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), NULL, anew(&e));
  mgrid_state *first = mgrid_materialize(p, b, "first", anew(&e)),
              *second = mgrid_materialize(p, b, "second", anew(&e));
  test(first && !second && strstr(e.message, "rank 3: nccl: creation for second/"),
       "the second creation fails");
  test(mgrid_state_prove(first, NULL, anew(&e)) == MGRID_OK,
       "what was there before is not touched");
  mgrid_state *third = mgrid_materialize(p, b, "third", anew(&e));
  test(third && right(third, "tp") && right(third, "dp"),
       third ? "and a third one is made" : e.message);
  mgrid_state_free(third);
  mgrid_state_free(first);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* Several ids for one communicator: what happens above 128 ranks, at 8. */
static void scalable(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_plan *p = plan_of(tp2_pp2, 1, &e);
  for (o.ranks_per_id = 1; o.ranks_per_id <= 3; o.ranks_per_id++) {
    mgrid_backend *b = mgrid_backend_over(mpi, maker(), &o, anew(&e));
    mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
    test(s && right(s, "tp") && right(s, "dp") && right(s, "tp_dp"), s ? "several ids" : e.message);
    mgrid_state_free(s);
    mgrid_backend_free(b);
  }
  mgrid_plan_free(p);
}

/* The last rank comes to the first creation and not to the second. */
static void late(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_plan *p = plan_of(tp2_pp2, 2, &e);
  o.timeout = 1.5;
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), &o, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "first", anew(&e)), *second = NULL;
  test(s != NULL, "all come");
  if (rank == size - 1)
    sleep(6);
  else
    second = mgrid_materialize(p, b, "second", anew(&e));
  char want[160];
  snprintf(want, sizeof want,
           "after 1.5 seconds not all ranks had come: rank %d is not there, in call 2 over all "
           "ranks: materialize 'second'",
           size - 1);
  bool told = rank == size - 1
              || (!second && e.status == MGRID_TIMED_OUT && strcmp(e.message, want) == 0);
  if (!told) fprintf(stderr, "# %s\n", e.message);
  test(told, "who does not come is named on every other rank");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  if (rank == 0) printf("1..%d\n", number);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  _exit(failures ? 1 : 0); /* MPI cannot be used any more */
}

static void blocking(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", MGRID_FILL } };
  const char *names[] = { "tp", "dp" };
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(size), 2, dims, anew(&e));
  mgrid_topology *t = mgrid_topology_new(size, anew(&e));
  o.nccl = "blocking=1 max_ctas=4";
  for (int i = 0; i < 2; i++) {
    mgrid_family *f = mgrid_grid_along(g, 1, &names[i], MGRID_GRID_ORDER, anew(&e));
    mgrid_topology_add(t, names[i], f, &o, anew(&e));
    mgrid_family *g2 = mgrid_family_twin(f, anew(&e));
    /* beside those that do not block */
    mgrid_topology_add(t, i ? "dp2" : "tp2", g2, NULL, anew(&e));
    mgrid_family_free(g2);
    mgrid_family_free(f);
  }
  mgrid_plan *p = mgrid_plan_new(t, anew(&e));
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), NULL, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  test(s && right(s, "tp") && right(s, "dp"),
       s ? "blocking communicators, all in one group" : e.message);
  test(s && right(s, "tp2") && right(s, "dp2"), "and others beside them, which do not block");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
}

/* The state keeps its backend, and that its carrier: the host may give them up in any order. */
static void owners(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *carrier = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e),
                *b = mgrid_backend_over(carrier, maker(), NULL, &e);
  mgrid_plan *p = two(false, true, &e);
  int64_t proved = 0;
  mgrid_backend_free(carrier);
  mgrid_state *s = mgrid_materialize(p, b, "train", &e),
              *other = mgrid_materialize(p, b, "other", &e);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  test(e.status == MGRID_OK && right(s, "tp") && right(s, "dp"),
       e.status ? e.message : "NCCL's are good without owners");
  mgrid_state_free(s);
  const mgrid_group *some = mgrid_state_group(other, "some", &e);
  test(mgrid_state_prove(other, &proved, &e) == MGRID_OK && proved == (some ? 3 : 2),
       "and the carrier's");
  mgrid_state_free(other); /* the last owner of all */
  b = mgrid_backend_over(mpi, maker(), NULL, &e);
  mgrid_backend *again = mgrid_backend_ref(b);
  mgrid_backend_free(b);
  test(again && strcmp(mgrid_backend_name(again), maker()) == 0, "another owner keeps a backend");
  mgrid_backend_free(again);
}

/* What the log says of open files, the last line. */
static void keep_line(void *line, mgrid_level level, const char *message) {
  if (strstr(message, "open files")) snprintf(line, 300, "%d %s", (int)level, message);
}

/* A soft limit that is too low is raised to the hard one, and a hard one that is too low is
** told. */
static void files(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  char line[300] = "", want[300];
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  mgrid_plan *p = plan_of(tp2_pp2, 2, &e);
  struct rlimit limit, now = { 0, 0 };
  int next = dup(0); /* about what is open */
  hooks.ud = line, hooks.log = keep_line;
  close(next);
  for (int low = 0; low < 2; low++) {
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)next + 20;
    if (low) limit.rlim_max = limit.rlim_cur;
    mgrid_backend *b = mgrid_backend_over(mpi, maker(), NULL, &e);
    mgrid_backend_set_hooks(b, &hooks, &e);
    setrlimit(RLIMIT_NOFILE, &limit);
    mgrid_state *s = mgrid_materialize(p, b, "train", &e);
    getrlimit(RLIMIT_NOFILE, &now);
    test(e.status == MGRID_OK && now.rlim_cur == limit.rlim_max,
         e.status ? e.message : "the soft limit is the hard one");
    if (low)
      snprintf(want, sizeof want, "the hard limit is %d: raise it (ulimit -Hn)",
               (int)limit.rlim_max);
    else
      snprintf(want, sizeof want, "%d nccl: the limit of open files is raised from %d to ",
               (int)MGRID_LOG_INFO, next + 20);
    test(strstr(line, want) && (!low || *line == '0' + MGRID_LOG_WARN),
         *line ? line : "nothing was said");
    *line = '\0';
    mgrid_state_free(s);
    mgrid_backend_free(b);
  }
  mgrid_plan_free(p);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  tap_begin(&argc, &argv);
  load();
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  const char *what = argc > 1 ? argv[1] : "use";
  if (strcmp(what, "use") == 0) use(mpi);
  if (strcmp(what, "split") == 0) split(mpi);
  if (strcmp(what, "shrink") == 0) shrink(mpi);
  if (strcmp(what, "revoke") == 0) revoked(mpi);
  if (strcmp(what, "late") == 0) late(mpi);
  if (strcmp(what, "scalable") == 0) scalable(mpi);
  if (strcmp(what, "failing") == 0) failing(mpi);
  if (strcmp(what, "blocking") == 0) blocking(mpi);
  if (strcmp(what, "owners") == 0) owners(mpi);
  if (strcmp(what, "files") == 0) files(mpi);
  mgrid_backend_free(mpi);
  return tap_end();
}
