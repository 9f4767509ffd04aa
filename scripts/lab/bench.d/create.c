/* SPDX-License-Identifier: MIT
**
** create.c - create the communicators of a layout in one way, twice in a process (the first time
** cold), under mpirun. Rank 0 prints the times. Checks the size of every communicator, the rank in
** it, and the sum of its members.
**
**     create small|grid3d|pencil|facts|megatron ours|world|world_kind|split|group|best|idup|split_best|by_size|threads|dup
*/
#include "layout.h"
#include "moongrid_mpi.h"
#include "plan/plan.h"

#include <dirent.h>
#include <pthread.h>

enum { MOST = 64 };

typedef struct job {
  const mgrid_plan *plan;
  int rank, size, n; /* n: communicators that are held; calls: creating calls of MPI */
  int calls;
  MPI_Comm comm[MOST];
  int want_rank[MOST], want_size[MOST];
  int64_t want_sum[MOST];
  MPI_Group members; /* of the world */
  /* member lists, made before the clock starts */
  int32_t **all[MOST]; /* [family][group], for `world` */
  int32_t *mine[MOST];
  mgrid_view view;
  int32_t *shared[MOST]; /* of the communicators of the view */
} job;

static int threads(void) {
  int n = 0;
  DIR *d = opendir("/proc/self/task");
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n - 2;
}

static int32_t *members_of(const mgrid_family *f, int64_t group) {
  int32_t *list = malloc((size_t)mgrid_family_size(f, group) * sizeof *list);
  if (!list) die("no memory");
  mgrid_family_group(f, group, list);
  return list;
}

static int32_t *members(const job *j, int family, int64_t group) {
  return members_of(j->plan->content.entry[family].family, group);
}

static void hold(job *j, MPI_Comm comm, const mgrid_family *f, int64_t group, int64_t position) {
  int64_t n = mgrid_family_size(f, group);
  j->want_rank[j->n] = (int)position;
  j->want_size[j->n] = (int)n;
  j->want_sum[j->n] = 0;
  for (int64_t p = 0; p < n; p++) j->want_sum[j->n] += mgrid_family_rank(f, group, p);
  j->comm[j->n++] = comm;
}

static void check(const job *j) {
  for (int i = 0; i < j->n; i++) {
    int rank, size;
    long long sum = j->rank;
    MPI_Comm_rank(j->comm[i], &rank);
    MPI_Comm_size(j->comm[i], &size);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG_LONG, MPI_SUM, j->comm[i]);
    if (rank != j->want_rank[i] || size != j->want_size[i] || sum != j->want_sum[i]) {
      fprintf(stderr, "bench: rank %d: communicator %d is wrong\n", j->rank, i);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

/* --------------------------------------------------------------- the ways */

static MPI_Comm of_group(job *j, MPI_Comm parent, const int32_t *list, int64_t n,
                         int tag) { /* tag < 0: over the parent */
  MPI_Group g;
  MPI_Comm comm;
  MPI_Group_incl(j->members, (int)n, list, &g);
  if (tag < 0)
    MPI_Comm_create(parent, g, &comm);
  else
    MPI_Comm_create_group(parent, g, tag, &comm);
  MPI_Group_free(&g);
  return comm;
}

/* (a) Megatron's way: all ranks of the world take part in the creation of every group. */
static void by_world(job *j, bool kind) {
  for (int i = 0; i < (int)mgrid_plan_nfamilies(j->plan); i++) {
    const mgrid_family *f = j->plan->content.entry[i].family;
    int64_t group = -1, position = -1;
    bool in = mgrid_family_locate(f, j->rank, 0, &group, &position);
    MPI_Comm own = MPI_COMM_NULL;
    if (kind) { /* disjoint groups in one call */
      own = in ? of_group(j, MPI_COMM_WORLD, j->mine[i], mgrid_family_size(f, group), -1)
               : of_group(j, MPI_COMM_WORLD, NULL, 0, -1);
      j->calls++;
    } else {
      for (int64_t g = 0; g < mgrid_family_count(f); g++) {
        MPI_Comm c = of_group(j, MPI_COMM_WORLD, j->all[i][g], mgrid_family_size(f, g), -1);
        if (in && g == group) own = c;
        j->calls++;
      }
    }
    if (in) hold(j, own, f, group, position);
  }
}

/* (b) One split per family. */
static void by_split(job *j) {
  for (int i = 0; i < (int)mgrid_plan_nfamilies(j->plan); i++) {
    const mgrid_family *f = j->plan->content.entry[i].family;
    int64_t group = -1, position = 0;
    bool in = mgrid_family_locate(f, j->rank, 0, &group, &position);
    MPI_Comm c;
    MPI_Comm_split(MPI_COMM_WORLD, in ? (int)group : MPI_UNDEFINED, (int)position, &c);
    j->calls++;
    if (in) hold(j, c, f, group, position);
  }
}

/* (c) Members only, without sharing. */
static void by_group(job *j) {
  for (int i = 0; i < (int)mgrid_plan_nfamilies(j->plan); i++) {
    const mgrid_family *f = j->plan->content.entry[i].family;
    int64_t group, position;
    if (!mgrid_family_locate(f, j->rank, 0, &group, &position)) continue;
    MPI_Comm c = of_group(j, MPI_COMM_WORLD, j->mine[i], mgrid_family_size(f, group), i);
    j->calls++;
    hold(j, c, f, group, position);
  }
}

static void hold_shared(job *j, int k, MPI_Comm c) {
  const mgrid_creation *m = &j->view.comm[k];
  hold(j, c, j->plan->content.entry[m->entry].family, m->group, m->position);
}

/* The communicators that moongrid makes, by plain C with lists made before: the lower bound. */
static void by_best(job *j) {
  for (int k = 0; k < (int)j->view.ncomms; k++) {
    const mgrid_creation *m = &j->view.comm[k];
    MPI_Comm c = of_group(j, MPI_COMM_WORLD, j->shared[k], m->size, m->entry);
    j->calls++;
    hold_shared(j, k, c);
  }
}

/* As by_best, but small groups first: in the order (size, family), the same on all ranks. */
static void by_size(job *j) {
  for (int64_t size = 2; size <= j->size; size++)
    for (int k = 0; k < (int)j->view.ncomms; k++) {
      const mgrid_creation *m = &j->view.comm[k];
      if (m->size != size) continue;
      MPI_Comm c = of_group(j, MPI_COMM_WORLD, j->shared[k], m->size, m->entry);
      j->calls++;
      hold_shared(j, k, c);
    }
}

/* As by_best, but a communicator with the members of an earlier one (and other options) is a
** duplicate of that one, with all duplications in progress at once. */
static void by_idup(job *j) {
  MPI_Request wait[MOST];
  MPI_Status ended[MOST]; /* gcc takes MPICH's MPI_STATUSES_IGNORE for an array of none */
  int n = 0, of[MOST], at[MOST];
  for (int k = 0; k < (int)j->view.ncomms; k++) {
    const mgrid_creation *m = &j->view.comm[k];
    of[k] = -1;
    for (int i = 0; i < k && of[k] < 0; i++)
      if (j->view.comm[i].size == m->size
          && memcmp(j->shared[i], j->shared[k], (size_t)m->size * sizeof **j->shared) == 0)
        of[k] = i;
    if (of[k] < 0) {
      at[k] = j->n;
      hold_shared(j, k, of_group(j, MPI_COMM_WORLD, j->shared[k], m->size, m->entry));
      j->calls++;
    }
  }
  for (int k = 0; k < (int)j->view.ncomms; k++) {
    if (of[k] < 0) continue;
    int slot = j->n;
    hold_shared(j, k, MPI_COMM_NULL);
    MPI_Comm_idup(j->comm[at[of[k]]], &j->comm[slot], &wait[n++]);
    j->calls++;
  }
  MPI_Waitall(n, wait, ended);
}

/* As by_best, but by a split of the world for each family that creates communicators. */
static void by_split_best(job *j) {
  for (int i = 0; i < (int)mgrid_plan_nfamilies(j->plan); i++) {
    const mgrid_family *f = j->plan->content.entry[i].family;
    if (j->plan->shares[i] >= 0 || mgrid_family_max_size(f) < 2) continue;
    int64_t group = -1, position = 0;
    bool in = mgrid_family_locate(f, j->rank, 0, &group, &position);
    MPI_Comm c;
    MPI_Comm_split(MPI_COMM_WORLD, in ? (int)group : MPI_UNDEFINED, (int)position, &c);
    j->calls++;
    if (in) hold(j, c, f, group, position);
  }
}

/* As by_best, but all at once, by a thread for each, with different tags. Needs
** MPI_THREAD_MULTIPLE. */
typedef struct errand {
  job *j;
  int k;
  MPI_Comm comm;
} errand;

static void *run_errand(void *ud) {
  errand *e = ud;
  const mgrid_creation *m = &e->j->view.comm[e->k];
  e->comm = of_group(e->j, MPI_COMM_WORLD, e->j->shared[e->k], m->size, m->entry);
  return NULL;
}

static void by_threads(job *j) {
  errand e[MOST];
  pthread_t t[MOST];
  for (int k = 0; k < (int)j->view.ncomms; k++) {
    e[k] = (errand){ j, k, MPI_COMM_NULL };
    if (pthread_create(&t[k], NULL, run_errand, &e[k])) die("no thread");
  }
  for (int k = 0; k < (int)j->view.ncomms; k++) {
    pthread_join(t[k], NULL);
    j->calls++;
    hold_shared(j, k, e[k].comm);
  }
}

/* A duplicate of the world, which any library makes that does not use the host's communicator: to
** compare with the time to open a backend. */
static void by_dup(job *j) {
  MPI_Comm c;
  MPI_Comm_dup(MPI_COMM_WORLD, &c);
  MPI_Comm_free(&c);
  j->calls++;
}

/* ------------------------------------------------------------------- main */

static void say_max(const char *key, double mine) {
  double most;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) sample(most, "%s", key);
}

/* Print the milliseconds from when the last rank had opened its backend to when the last ended. */
static void say_after(const char *key, double opened, double done) {
  double last[2], mine[2] = { opened, done };
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Reduce(mine, last, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) sample(1e3 * (last[1] - last[0]), "%s", key);
}

/* Print the milliseconds from when the first rank began to when the last ended. */
static void say_wall(const char *key, double began, double done) {
  double first, last;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Reduce(&began, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&done, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) sample(1e3 * (last - first), "%s", key);
}

static void prepare(job *j, bool everything) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Comm_group(MPI_COMM_WORLD, &j->members);
  if (mgrid_view_init(&j->view, j->plan, j->rank, &e)) die(e.message);
  if (j->view.ncomms > MOST || mgrid_plan_nfamilies(j->plan) > MOST) die("too many communicators");
  for (int k = 0; k < (int)j->view.ncomms; k++)
    j->shared[k] = members(j, j->view.comm[k].entry, j->view.comm[k].group);
  for (int i = 0; i < (int)mgrid_plan_nfamilies(j->plan); i++) {
    const mgrid_family *f = j->plan->content.entry[i].family;
    int64_t group, position;
    j->mine[i] = mgrid_family_locate(f, j->rank, 0, &group, &position) ? members_of(f, group)
                                                                       : NULL;
    if (!everything) continue;
    j->all[i] = malloc((size_t)mgrid_family_count(f) * sizeof *j->all[i]);
    if (!j->all[i]) die("no memory");
    for (int64_t g = 0; g < mgrid_family_count(f); g++) j->all[i][g] = members_of(f, g);
  }
}

static double groups_of(const mgrid_state *state) {
  mgrid_plan_counts n = MGRID_PLAN_COUNTS_INIT;
  mgrid_plan_count(mgrid_state_plan(state), mgrid_state_rank(state), &n, NULL);
  return (double)(n.groups + n.singles);
}

static void release(job *j) {
  for (int k = 0; k < (int)j->view.ncomms; k++) free(j->shared[k]);
  for (int i = 0; i < (int)mgrid_plan_nfamilies(j->plan); i++) {
    for (int64_t g = 0; j->all[i] && g < mgrid_family_count(j->plan->content.entry[i].family); g++)
      free(j->all[i][g]);
    free(j->all[i]);
    free(j->mine[i]);
  }
  mgrid_view_free(&j->view);
  MPI_Group_free(&j->members);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  job j = { 0 };
  int level;
  if (argc != 3) die("create LAYOUT WAY");
  const char *way = argv[2];
  bool facts = strcmp(argv[1], "facts") == 0, pencil = strcmp(argv[1], "pencil") == 0;
  bool grid3d = strcmp(argv[1], "grid3d") == 0,
       small = strcmp(argv[1], "small") == 0 || grid3d || pencil;
  bool many = strcmp(way, "threads") == 0, ours = strcmp(way, "ours") == 0;
  MPI_Init_thread(&argc, &argv, many ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  if (many && level < MPI_THREAD_MULTIPLE) die("MPI has no MPI_THREAD_MULTIPLE");
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.size);
  sizes s = { j.size, 2, small ? 1 : 2, pencil ? 1 : 2, 2, 2 };
  MPI_Barrier(MPI_COMM_WORLD);

  /* The time of planning on every rank at once: from the recipe (megatron), from C. */
  if (ours && !facts && !small) {
    const char *args[] = { "tp=2", "cp=2", "pp=2", "ep=2", "etp=2" };
    double t0 = now();
    mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
    if (!rt || mgrid_runtime_load(rt, "megatron", NULL, 0, &e)) die(e.message);
    mgrid_plan *p = mgrid_runtime_plan(rt, j.size, NULL, 5, args, &e);
    if (!p) die(e.message);
    double t1 = now();
    mgrid_plan_free(p);
    mgrid_runtime_free(rt);
    say_wall("recipe", t0, t1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  double t0 = now();
  mgrid_topology *t = layout_topology(pencil   ? &PENCIL
                                      : grid3d ? &GRID3D
                                      : small  ? &SMALL
                                      : facts  ? &FACTS
                                               : &MEGATRON,
                                      s, true, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  if (!p) die(e.message);
  double t1 = now();
  mgrid_topology_free(t);
  say_wall("plan", t0, t1);
  j.plan = p;
  if (!ours) prepare(&j, strcmp(way, "world") == 0);
  int before = threads();

  for (int turn = 0; turn < 2; turn++) {
    mgrid_backend *b = NULL;
    mgrid_state *state = NULL;
    j.n = j.calls = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = now(), opened = 0;
    if (ours) {
      b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
      opened = now();
      state = mgrid_materialize(p, b, "bench", &e);
      if (!state) die(e.message);
      j.calls = (int)mgrid_backend_ncomms(b);
    } else if (strcmp(way, "world") == 0)
      by_world(&j, false);
    else if (strcmp(way, "world_kind") == 0)
      by_world(&j, true);
    else if (strcmp(way, "split") == 0)
      by_split(&j);
    else if (strcmp(way, "group") == 0)
      by_group(&j);
    else if (strcmp(way, "best") == 0)
      by_best(&j);
    else if (strcmp(way, "split_best") == 0)
      by_split_best(&j);
    else if (strcmp(way, "idup") == 0)
      by_idup(&j);
    else if (strcmp(way, "by_size") == 0)
      by_size(&j);
    else if (strcmp(way, "dup") == 0)
      by_dup(&j);
    else if (many)
      by_threads(&j);
    else
      die("no such way");
    double done = now();
    say_wall(turn ? "warm" : "cold", began, done);
    if (ours) {
      int64_t proved;
      say_wall(turn ? "warm opening" : "cold opening", began, opened);
      say_after(turn ? "warm making" : "cold making", opened, done);
      if (mgrid_state_prove(state, &proved, &e)) die(e.message);
      j.n = (int)mgrid_state_ncomms(state);
      if (turn == 0) say_max("threads added", threads() - before);
      if (turn == 0) say_max("ranks of a rank", groups_of(state));
    } else {
      check(&j);
    }
    if (turn == 0) {
      say_max("calls", j.calls);
      say_max("comms", j.n);
      say_max("fewest comms", -j.n);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    mgrid_state_free(state);
    mgrid_backend_free(b);
    for (int i = 0; i < j.n && !ours; i++) MPI_Comm_free(&j.comm[i]);
  }

  /* The time of one all-reduce over the world, of which all creations consist. */
  for (int round = 0; round < 20; round++) {
    int one = 1, sum;
    double a = now();
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    say_wall("allreduce", a, now());
  }
  if (!ours) release(&j);
  mgrid_plan_free(p);
  MPI_Finalize();
  return 0;
}
