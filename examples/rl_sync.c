/* SPDX-License-Identifier: MIT
**
** rl_sync.c - weights that are trained in one layout and used for generation in another. At every
** step the trainer's ranks change the weights, a move that was planned once sends them, and the
** rollout ranks check every element. For comparison the same is done with plain MPI, as trainers do
** it: gather each tensor on one rank, broadcast it to the rollout ranks, slice it.
**
**     mpirun -n 16 rl_sync examples/rl_sync.lua [NAME=VALUE ...] vs first=8 tp=2 pp=1 [NAME=VALUE ...]
**     cc rl_sync.c -o rl_sync $(pkg-config --cflags --libs moongrid_mpi)
**
** The two sides are layouts of one recipe, whose tensors are bf16.
*/
#include <moongrid_mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20 };

static int rank, ranks;

static void *room(size_t n, size_t size) {
  void *p = calloc(n ? n : 1, size);
  if (!p)
    fprintf(stderr, "rl_sync: rank %d has no memory for %zu bytes\n", rank, n * size),
        MPI_Abort(MPI_COMM_WORLD, 1);
  return p;
}

/* ------------------------------------------------------------ which elements */

/* A rank's part of a tensor: all combinations of the runs on its axes, in C order. */
typedef struct elements {
  size_t naxes;
  int64_t length[MGRID_AXES_MAX], n[MGRID_AXES_MAX]; /* of each axis; the number of its runs */
  mgrid_run *run[MGRID_AXES_MAX];
  int64_t count, copy;
} elements;

static elements elements_of(const mgrid_plan *p, const char *name, int64_t of, mgrid_error *e) {
  const mgrid_tensor *t = mgrid_plan_tensor(p, name);
  mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
  elements out = { .naxes = mgrid_tensor_naxes(t) };
  mgrid_tensor_local(p, name, of, &part, e);
  out.count = part.elements;
  out.copy = part.copy;
  for (size_t i = 0; i < out.naxes; i++) {
    out.length[i] = mgrid_tensor_length(t, i);
    out.n[i] = mgrid_tensor_runs(p, name, of, i, 0, NULL, e);
    out.run[i] = room((size_t)out.n[i], sizeof *out.run[i]);
    mgrid_tensor_runs(p, name, of, i, (size_t)out.n[i], out.run[i], e);
  }
  return out;
}

static void elements_free(elements *x) {
  for (size_t i = 0; i < x->naxes; i++) free(x->run[i]);
}

/* Handle n contiguous elements of the part; `index`: of the first of them in the whole tensor. */
typedef void stretch_fn(void *ud, int64_t index, int64_t n);

/* Call fn for all stretches, in the order of the part. */
static void walk(const elements *x, size_t axis, int64_t index, stretch_fn *fn, void *ud) {
  for (const mgrid_run *r = x->run[axis]; r < x->run[axis] + x->n[axis]; r++) {
    int64_t first = index * x->length[axis] + r->start;
    if (axis + 1 == x->naxes)
      fn(ud, first, r->length);
    else
      for (int64_t i = 0; i < r->length; i++) walk(x, axis + 1, first + i, fn, ud);
  }
}

/* ----------------------------------------------------------------- training */

/* This rank's part of every tensor in one layout as bf16, and in f32 before rounding. On a rollout
** rank the f32 numbers are the expected weights, which it computes itself. */
typedef struct weights {
  const mgrid_plan *plan;
  const mgrid_move *move; /* tensor k is tensor k of this move */
  size_t n;
  elements *has;      /* [n] */
  mgrid_buffer *part; /* [n], bf16 */
  float **master;     /* [n] */
  int64_t bytes, count;
  double loss; /* of the weights before the last step */
} weights;

/* Return a number in [-1, 1) for an element, different for each `which`. */
static float number(uint64_t which, size_t tensor, int64_t index) {
  uint64_t x = ((uint64_t)index << 16 | tensor << 8 | which) + 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (float)((x ^ x >> 31) >> 40) / (float)(1 << 23) - 1;
}

static uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

typedef struct place {
  weights *w;
  size_t tensor;
  float *at;
} place;

static void begin(void *ud, int64_t index, int64_t n) {
  place *p = ud;
  for (int64_t i = 0; i < n; i++) *p->at++ = number(0, p->tensor, index + i);
}

/* Descend the gradient of half the squared distance to the target weights. */
static void learn(void *ud, int64_t index, int64_t n) {
  place *p = ud;
  for (int64_t i = 0; i < n; i++, p->at++) {
    float gradient = *p->at - number(1, p->tensor, index + i);
    p->w->loss += 0.5 * (double)(gradient * gradient);
    *p->at -= 0.125f * gradient;
  }
}

static void for_all(weights *w, stretch_fn *fn) {
  w->loss = 0;
  for (size_t k = 0; k < w->n; k++)
    if (w->has[k].count) walk(&w->has[k], 0, 0, fn, &(place){ w, k, w->master[k] });
}

static weights weights_new(const mgrid_plan *p, const mgrid_move *m, mgrid_error *e) {
  weights w = { .plan = p, .move = m, .n = mgrid_move_ntensors(m) };
  w.has = room(w.n, sizeof *w.has);
  w.part = room(w.n, sizeof *w.part);
  w.master = room(w.n, sizeof *w.master);
  for (size_t k = 0; k < w.n; k++) {
    w.has[k] = elements_of(p, mgrid_move_tensor(m, k), rank, e);
    w.part[k].bytes = w.has[k].count * (int64_t)sizeof(uint16_t);
    w.part[k].data = room((size_t)w.has[k].count, sizeof(uint16_t));
    w.master[k] = room((size_t)w.has[k].count, sizeof(float));
    w.bytes += w.part[k].bytes;
    w.count += w.has[k].count;
  }
  for_all(&w, begin);
  return w;
}

static void weights_free(weights *w) {
  for (size_t k = 0; k < w->n; k++) {
    elements_free(&w->has[k]);
    free(w->part[k].data);
    free(w->master[k]);
  }
  free(w->has);
  free(w->part);
  free(w->master);
}

/* Round the trainer's weights to bf16 for the move. */
static void round_all(weights *w) {
  for (size_t k = 0; k < w->n; k++)
    for (int64_t i = 0; i < w->has[k].count; i++)
      ((uint16_t *)w->part[k].data)[i] = to_bf16(w->master[k][i]);
}

/* Count wrong elements, and overwrite all elements, so that they must be sent again. */
static int64_t count_wrong(weights *w) {
  int64_t wrong = 0;
  for (size_t k = 0; k < w->n; k++) {
    const uint16_t *got = w->part[k].data;
    for (int64_t i = 0; i < w->has[k].count; i++) wrong += got[i] != to_bf16(w->master[k][i]);
    memset(w->part[k].data, 0xff, (size_t)w->part[k].bytes);
  }
  return wrong;
}

static int64_t bytes_of(const weights *w, size_t k) {
  return mgrid_tensor_bytes(mgrid_plan_tensor(w->plan, mgrid_move_tensor(w->move, k)));
}

/* ---------------------------------------------------- gather, then broadcast */

typedef struct plain {
  /* the ranks that train; the first of these and the ranks that generate */
  MPI_Comm trainers, readers;
  int *rank_of; /* [trainers], in the world */
  int ntrainers;
  uint16_t *whole, *gathered; /* room for the largest tensor: on readers; on the first trainer */
  int64_t received;           /* bytes that this rank receives in a step */
} plain;

static plain plain_new(const weights *from, const weights *to) {
  plain p = { .trainers = MPI_COMM_NULL };
  int64_t most = 0;
  int first;
  for (size_t k = 0; k < from->n; k++) {
    int64_t bytes = bytes_of(from, k);
    most = bytes > most ? bytes : most;
  }
  if (most / 2 > INT32_MAX) { /* moongrid's move has no such limit */
    if (rank == 0)
      fprintf(stderr, "rl_sync: a tensor has more elements than MPI_Bcast can count\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Allreduce(&(int){ from->count ? rank : ranks }, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, from->count ? 0 : MPI_UNDEFINED, rank, &p.trainers);
  MPI_Comm_split(MPI_COMM_WORLD, to->count || rank == first ? 0 : MPI_UNDEFINED,
                 rank == first ? -1 : rank, &p.readers);
  if (p.trainers != MPI_COMM_NULL) {
    MPI_Comm_size(p.trainers, &p.ntrainers);
    p.rank_of = room((size_t)p.ntrainers, sizeof *p.rank_of);
    MPI_Allgather(&rank, 1, MPI_INT, p.rank_of, 1, MPI_INT, p.trainers);
  }
  if (p.readers != MPI_COMM_NULL) p.whole = room((size_t)most, 1);
  if (rank == first) p.gathered = room((size_t)most, 1);
  return p;
}

static void plain_free(plain *p) {
  if (p->trainers != MPI_COMM_NULL) MPI_Comm_free(&p->trainers);
  if (p->readers != MPI_COMM_NULL) MPI_Comm_free(&p->readers);
  free(p->rank_of);
  free(p->whole);
  free(p->gathered);
}

typedef struct copying {
  uint16_t *whole, *part;
} copying;

static void put(void *ud, int64_t index, int64_t n) {
  copying *c = ud;
  memcpy(c->whole + index, c->part, (size_t)n * sizeof *c->part);
  c->part += n;
}

static void get(void *ud, int64_t index, int64_t n) {
  copying *c = ud;
  memcpy(c->part, c->whole + index, (size_t)n * sizeof *c->part);
  c->part += n;
}

/* Gather one tensor on the first of the trainers, from the first copy of each part. */
static void gather(plain *p, const weights *from, size_t k, mgrid_error *e) {
  int *count = room((size_t)p->ntrainers, sizeof *count),
      *at = room((size_t)p->ntrainers + 1, sizeof *at);
  elements *has = room((size_t)p->ntrainers, sizeof *has);
  for (int i = 0; i < p->ntrainers; i++) {
    has[i] = elements_of(from->plan, mgrid_move_tensor(from->move, k), p->rank_of[i], e);
    count[i] = has[i].copy == 0 ? (int)has[i].count : 0;
    at[i + 1] = at[i] + count[i];
    if (p->gathered && p->rank_of[i] != rank) p->received += count[i] * (int64_t)sizeof *p->whole;
  }
  int mine = from->has[k].copy == 0 ? (int)from->has[k].count : 0;
  MPI_Gatherv(from->part[k].data, mine, MPI_UINT16_T, p->gathered, count, at, MPI_UINT16_T, 0,
              p->trainers);
  for (int i = 0; i < p->ntrainers; i++) {
    if (p->gathered && count[i])
      walk(&has[i], 0, 0, put, &(copying){ p->whole, p->gathered + at[i] });
    elements_free(&has[i]);
  }
  free(has);
  free(count);
  free(at);
}

static void gather_and_broadcast(plain *p, const weights *from, const weights *to, mgrid_error *e) {
  p->received = 0;
  for (size_t k = 0; k < from->n; k++) {
    int64_t bytes = bytes_of(from, k);
    if (p->trainers != MPI_COMM_NULL) gather(p, from, k, e);
    if (p->readers == MPI_COMM_NULL) continue;
    MPI_Bcast(p->whole, (int)(bytes / (int64_t)sizeof *p->whole), MPI_UINT16_T, 0, p->readers);
    if (!p->gathered) p->received += bytes;
    if (to->has[k].count) walk(&to->has[k], 0, 0, get, &(copying){ p->whole, to->part[k].data });
  }
}

/* -------------------------------------------------------------------- steps */

typedef struct setup {
  mgrid_runtime *rt;
  mgrid_plan *from, *to;
  mgrid_move *move;
  mgrid_backend *mpi;
} setup;

/* A recipe and its values on both sides of "vs". Tensors of the two sides are matched by name. */
static setup set_up(int argc, char **argv, mgrid_error *e) {
  const char *const *args = (const char *const *)argv;
  int vs = 2;
  setup s = { 0 };
  while (vs < argc && strcmp(argv[vs], "vs") != 0) vs++;
  s.mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, e);
  s.rt = mgrid_runtime_new(NULL, NULL, e);
  mgrid_runtime_load(s.rt, argv[1], NULL, 0, e);
  s.from = mgrid_runtime_plan(s.rt, ranks, NULL, (size_t)vs - 2, args + 2, e);
  s.to = mgrid_runtime_plan(s.rt, ranks, NULL, vs + 1 < argc ? (size_t)(argc - vs - 1) : 0,
                            args + vs + 1, e);
  s.move = mgrid_move_new(s.from, s.to, rank, 0, NULL, NULL, e);
  for (size_t k = 0; k < mgrid_move_ntensors(s.move) && !e->status; k++) {
    const char *name = mgrid_move_tensor(s.move, k);
    if (strcmp(mgrid_tensor_type(mgrid_plan_tensor(s.from, name)), "bf16") == 0) continue;
    e->status = MGRID_REFUSED;
    snprintf(e->message, sizeof e->message, "tensor '%s' is %s; this program has weights of bf16",
             name, mgrid_tensor_type(mgrid_plan_tensor(s.from, name)));
  }
  return s;
}

static void tear_down(setup *s) {
  mgrid_backend_free(s->mpi);
  mgrid_move_free(s->move);
  mgrid_plan_free(s->to);
  mgrid_plan_free(s->from);
  mgrid_runtime_free(s->rt);
}

static double seconds_of(double begun) {
  double took = MPI_Wtime() - begun;
  MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took;
}

static double now(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime();
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *list) {
  qsort(list, STEPS, sizeof *list, by_size);
  return (list[STEPS / 2 - 1] + list[STEPS / 2]) / 2;
}

/* Run 20 steps; return the number of wrong elements on all ranks. */
static int64_t train(const setup *s, mgrid_error *e) {
  enum { NEEDS, RECEIVES, GATHERS, WRONG, WRONG_PLAIN, TRAINS, ROLLS, SUMS };
  mgrid_move_sums sums = MGRID_MOVE_SUMS_INIT;
  weights from = weights_new(s->from, s->move, e), to = weights_new(s->to, s->move, e);
  plain p = plain_new(&from, &to);
  double moving[STEPS], gathering[STEPS], loss[STEPS];
  int64_t all[SUMS] = { 0 };
  mgrid_move_bytes(s->move, &sums, e);
  for (int step = 0; step < STEPS && !e->status; step++) {
    for_all(&from, learn);
    round_all(&from);
    double mean[2] = { from.loss, (double)from.count };
    MPI_Allreduce(MPI_IN_PLACE, mean, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    loss[step] = mean[0] / mean[1];
    for_all(&to, learn); /* the expected weights */
    double begun = now();
    mgrid_move_run(s->move, s->mpi, from.part, to.part, NULL, e);
    moving[step] = seconds_of(begun);
    all[WRONG] += count_wrong(&to);
    begun = now();
    gather_and_broadcast(&p, &from, &to, e);
    gathering[step] = seconds_of(begun);
    all[WRONG_PLAIN] += count_wrong(&to);
  }
  all[NEEDS] = to.bytes - sums.stay, all[RECEIVES] = sums.receive, all[GATHERS] = p.received;
  all[TRAINS] = from.count > 0, all[ROLLS] = to.count > 0;
  MPI_Allreduce(MPI_IN_PLACE, all, SUMS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && !e->status) {
    double ours = median(moving), theirs = median(gathering);
    printf(
        "%zu tensors, trained on %d ranks, generate on %d; %d steps, the loss from %.4f to %.4f\n",
        from.n, (int)all[TRAINS], (int)all[ROLLS], STEPS, loss[0], loss[STEPS - 1]);
    printf("%-24s %14s %12s %9s\n", "", "bytes a step", "ms a step", "wrong");
    printf("%-24s %14lld %12.1f %9lld\n", "one move", (long long)all[RECEIVES], 1e3 * ours,
           (long long)all[WRONG]);
    printf("%-24s %14lld %12.1f %9lld\n", "gather, then broadcast", (long long)all[GATHERS],
           1e3 * theirs, (long long)all[WRONG_PLAIN]);
    printf("%-24s %14lld\n", "the minimum", (long long)all[NEEDS]);
  }
  plain_free(&p);
  weights_free(&from);
  weights_free(&to);
  return all[WRONG] + all[WRONG_PLAIN];
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t wrong = 0;
  int first;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2) {
    if (rank == 0) fprintf(stderr, "usage: rl_sync RECIPE [NAME=VALUE ...] vs [NAME=VALUE ...]\n");
    MPI_Finalize();
    return 2;
  }
  setup s = set_up(argc, argv, &e);
  MPI_Allreduce(&(int){ e.status ? rank : ranks }, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == ranks) {
    wrong = train(&s, &e);
    first = 0; /* a failed move fails on every rank */
  }
  if (e.status && rank == first) fprintf(stderr, "rl_sync: %s\n", e.message);
  tear_down(&s);
  MPI_Finalize();
  return e.status || wrong || first != 0;
}
