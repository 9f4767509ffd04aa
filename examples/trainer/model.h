/* SPDX-License-Identifier: MIT
**
** model.h - a character-level transformer that is cut in five ways, and what the files of this
** folder share.
**
** What is cut, and by which group of the layout:
**   tp   matrices: attention by heads, MLPs and experts by hidden units, embedding by symbols
**   cp   sequences, in runs of neighbouring positions
**   pp   layers
**   dp   the batch
**   ep   the experts of a layer, over ranks that are in cp and dp groups of the dense parameters
**
** Arrays are row-major. [T, ..] has a row for each token of a microbatch on this rank, sample by
** sample, position by position. A param has the shape of the whole parameter, and the rows and
** columns that this rank holds. A first value depends only on the seed, the parameter's name and
** the index of the value in the whole parameter, so every layout starts from the same model.
*/
#ifndef TRAINER_MODEL_H
#define TRAINER_MODEL_H

#include <mpi.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <inttypes.h>

#include "moongrid.h"

#ifdef TRAINER_F32
typedef float real;
#define REAL_NAME "single"
#define REAL_TYPE "f32"
#define REAL_MPI  MPI_FLOAT
#else
typedef double real;
#define REAL_NAME "double"
#define REAL_TYPE "f64"
#define REAL_MPI  MPI_DOUBLE
#endif

enum { VOCAB = 32 };

/* Return the hundreds digit of a status, as the moongrid command does for its exit code. */
static inline int exit_code(mgrid_status s) { return (int)s / 100; }

typedef struct config {
  int layers, width, heads, hidden, seq;
  int experts, moe_every; /* layer i has experts where (i + 1) % moe_every == 0; 0: none */
  int batch;              /* sequences of a step, over all ranks */
  uint64_t seed;
} config;
#define CONFIG_INIT \
  { 4, 32, 4, 64, 32, 8, 2, 16, 1 }

/* ------------------------------------------------------------- parallel.c */

typedef struct policies policies;

/* This rank's group of a family. If this rank is in no group of the family, comm is MPI_COMM_NULL,
** rank is -1 and size is 0; but on an idle rank tp, cp, dp, pp, ep, dp_cp, shard and expert_data
** have the size that they have on other ranks. */
typedef struct group {
  const char *family;
  const mgrid_state *state; /* to ask after a failed call whether a rank is lost */
  MPI_Comm comm;
  int rank, size;
} group;

typedef struct layout {
  group tp, cp, dp, pp, ep, dp_cp, shard, copies, expert_data, expert_shard, expert_copies,
      embedding, job;
  /* the grids of the state: of dense parameters, and of experts */
  const mgrid_grid *dense, *experts;
  mgrid_state *state;
  bool idle; /* this rank is in no family: a spare */
} layout;

/* A call over a group, or over all ranks, that finds a rank lost jumps here. */
extern jmp_buf lost_rank;
_Noreturn void left_by_loss(void);

mgrid_status layout_open(mgrid_state *state, layout *l, mgrid_error *err);
/* Collective over all ranks. Return true if no rank has an error in *err. Else return false, with
** the error of the first rank that has one; if all ranks have one, each keeps its own. */
bool everybody(const layout *l, mgrid_error *err);

/* Collectives over one group. group_sum, group_sum_double, group_max and the spreads do nothing in a
** group of one rank. Sums are taken in double, so that layouts differ only by rounding. */
void group_sum(const group *g, real *x, int n);
void group_sum_double(const group *g, double *x, int n);
void group_max(const group *g, real *x, int n);
/* Gather n values of every rank, in the order of the ranks. mine NULL: this rank's values are
** already in place in `all`. */
void group_gather(const group *g, const real *mine, real *all, int n);
/* The reverse: sum `all` over the ranks, and give each rank its n values. */
void group_scatter_sum(const group *g, const real *all, real *mine, int n);
/* Exchange `each` numbers with every rank. */
void group_exchange_counts(const group *g, const int *out, int *in, int each);
/* Send out_rows[i] rows of `width` values to rank i, receive in_rows[i] from it. */
void group_exchange_rows(const group *g, const real *out, const int *out_rows, real *in,
                         const int *in_rows, int width);
/* Send n values from one rank to all others. */
void group_spread(const group *g, double *x, int n, int from);
void group_spread_reals(const group *g, real *x, size_t n); /* from the first rank */
/* Start a call. Its memory must stay valid until group_finish. */
MPI_Request group_send(const group *g, int to, int tag, const real *x, int n);
MPI_Request group_sum_start(const group *g, double *x, int n);
/* At the end this rank's n sums are at the front of `all`. */
MPI_Request group_scatter_sum_start(const group *g, double *all, int n);
void group_poke(const group *g, MPI_Request *r); /* let the call make progress */
void group_finish(const group *g, MPI_Request *r);
/* After a loss: wait 0.1 s for the end of a call. False: it still uses its memory. */
bool group_forget(MPI_Request *r);
void group_receive(const group *g, int from, int tag, real *x, int n);

/* --------------------------------------------------------------- policy.c */

/* Decisions of the recipe (layout.lua, `policy`). The trainer calls the first four policies on all
** ranks when it makes a model; an error refuses the model. It calls the others between steps; after
** an error it prints the message, keeps the last learning rate, and writes no checkpoint. */
policies *policies_open(mgrid_runtime *rt, mgrid_state *state, bool talks, mgrid_error *err);
void policies_free(policies *p);
/* The schedule for a pipeline of `ranks` ranks. chunks: stages of a rank, more than 1 only if
** *order is "interleaved". order: "1f1b", "gpipe" or "interleaved", valid until the next call. */
mgrid_status policy_schedule(policies *p, int samples, int ranks, int *microbatches, int *chunks,
                             const char **order, mgrid_error *err);
/* each: [stages], the number of layers of each stage */
mgrid_status policy_layers(policies *p, int layers, int stages, int64_t *each, mgrid_error *err);
mgrid_status policy_bucket_bytes(policies *p, const char *family, int ranks, size_t *bytes,
                                 mgrid_error *err);
mgrid_status policy_gradient_family(policies *p, const char *parameter, bool expert,
                                    const char **family, mgrid_error *err);
double policy_learning_rate(policies *p, int64_t step, int64_t steps);
double policies_rate(const policies *p); /* the last rate, which a reload keeps */
void policies_set_rate(policies *p, double rate);
bool policy_checkpoint(policies *p, int64_t step, int64_t steps);

/* ----------------------------------------------------------------- data.c */

uint64_t data_mix(uint64_t a, uint64_t b);         /* a hash of (a, b), as a random number */
char *data_text(uint64_t seed, size_t length);     /* `length` characters, and a 0; free() it */
char *data_read(const char *path, size_t *length); /* a text to free(); NULL with errno */
/* Write symbols first..first + n - 1 of a sample in the batch of `step`, and their targets. The
** target of a symbol is the next symbol. */
void data_sample(const char *text, size_t length, const config *c, int64_t step, int sample,
                 int first, int n, int *symbols, int *targets);

/* -------------------------------------------------------------- weights.c */

enum { PARAM_NAME = 40 };

/* all: the ranks that have the same part of a parameter. Ranks of `shard` share its optimizer
** state: each has a slice. Ranks of `copies` have the same slice. */
typedef struct sharing {
  group *all, *shard, *copies;
  size_t bucket; /* bytes of a bucket, unless one parameter is larger */
} sharing;

/* Of each parameter a rank updates, moves and saves only its slice of the weights and of the
** optimizer's moments. At the beginning of a step the ranks gather whole weights. */
typedef struct param {
  char name[PARAM_NAME];
  int rows, cols;               /* in the whole model */
  int row0, nrows, col0, ncols; /* on this rank */
  size_t slice, first, n;       /* values of a whole slice; where this rank's begins; its values */
  real middle, range;           /* first values: middle +- range, uniform */
  bool expert;
  const sharing *sum; /* the ranks over which the gradient is summed */
  real *w, *g;        /* [nrows x ncols] weight, gradient */
  real *m, *v;        /* [n] the optimizer's moments */
} param;

typedef struct norm_params {
  param *gain, *bias;
} norm_params;

typedef struct layer_params {
  norm_params norm1, norm2;
  param *q, *k, *v, *out; /* q, k and v follow each other in memory: one matrix */
  bool moe;
  param *up, *down;         /* dense MLP */
  param *router, **experts; /* up of local expert e at 2e, down at 2e + 1 */
} layer_params;

/* ---------------------------------------------------- layers.c, attention.c */

/* In caches: results of a forward pass that the backward pass of the same microbatch needs. */
typedef struct norm_cache {
  real *unit, *scale, *y; /* [T, D] normalized, [T] 1 / deviation, [T, D] result */
} norm_cache;

typedef struct moe_cache {
  /* [T] the expert of each token; the tokens in the order in which they are sent */
  int *expert, *order;
  int *sent, *received;         /* numbers of rows, to and from each rank of ep */
  int *rows, *place;            /* [local experts] numbers of rows; where received row i goes */
  int total;                    /* rows received */
  real *chance, *gate;          /* [T, experts], [T] */
  real *x, *before, *after, *y; /* [total, D], [total, H / tp] twice, [T, D] */
} moe_cache;

typedef struct layer_cache {
  norm_cache norm1, norm2;
  /* [T, 3 D / tp], [b, S, 2 D / tp], [b, heads / tp, s, S], [T, D / tp] */
  real *qkv, *kv, *chance, *mixed;
  real *before, *after; /* [T, H / tp] around the activation of a dense MLP */
  moe_cache moe;
} layer_cache;

typedef struct slot { /* of a microbatch between its forward and its backward pass */
  real *x, *d;        /* [T, D] activations and their gradient, both changed layer by layer */
  layer_cache *layers;
  norm_cache norm; /* last stage */
  real *dlogits;   /* last stage, [T, VOCAB / tp] */
  int *symbols, *targets;
  MPI_Request sent_x, sent_d;
} slot;

typedef struct chunk { /* neighbouring layers: a stage of the pipeline */
  int layer0, nlayers; /* first layer, in the whole model; number of layers */
  int at;              /* index of the first layer in model.layers */
  bool first, last;    /* this stage has the input of the model; it has the output */
} chunk;

/* Parameters whose gradients are summed in one call, and whose weights are gathered in one. */
typedef struct bucket {
  const sharing *over;
  int from, to;   /* of the parameters from..to - 1 those whose `sum` is `over` */
  size_t each;    /* values of a rank: its slices of all these parameters */
  double *values; /* [ranks of shard x each] during the call */
  MPI_Request request;
} bucket;

/* One rank's part of the model. */
typedef struct model {
  config c;
  layout l;
  const char *text;
  size_t length;
  mgrid_topology *topology;  /* the parameters as tensors */
  mgrid_plan *tensors;       /* its plan: which rank has which part of a parameter */
  chunk *chunks;             /* stages of this rank: rank + i x ranks of the pipeline */
  int nchunks, nlayers;      /* nlayers: of all chunks together */
  int *place;                /* [layers of the whole model] the rank of pp that has the layer */
  int samples, microbatches; /* of this rank's share of the batch */
  int b, s, T;               /* of a microbatch: samples, positions, tokens */
  int heads, mine, hidden, vocab, experts; /* this rank's part; mine is heads x head width */
  param *params;
  int nparams;
  /* numbers of values: on this rank; in this rank's slices; of the whole model */
  size_t nvalues, nstate, whole;
  sharing dense, expert;
  real *memory;
  param *embedding, *position;
  norm_params norm;
  layer_params *layers;
  bucket *buckets; /* in the order in which they start */
  int nbuckets, started;
  slot *slots;
  int nslots, warmup;     /* slots of each chunk; forward passes before the first backward pass */
  real *a, *b1, *b2, *b3; /* scratch */
  size_t scratch;
} model;

void *room(size_t n, size_t size); /* zeroed memory; without enough memory it ends the program */
real *reals(size_t n);

/* c = alpha op(a) op(b) + beta c, where op(a) is [m, k] and op(b) is [k, n]. */
void gemm(bool ta, bool tb, int m, int n, int k, real alpha, const real *a, int lda, const real *b,
          int ldb, real beta, real *c, int ldc);
void gemm_one_thread(void); /* tells the BLAS library to use one thread */

void norm_room(norm_cache *n, int T, int D);
void norm_forward(const norm_params *p, norm_cache *n, const real *x, int T, int D);
/* d += the gradient of x, for the gradient dy of the norm's result. */
void norm_backward(const norm_params *p, const norm_cache *n, const real *dy, real *d, int T,
                   int D);
void activation_forward(const real *x, real *y, size_t n);
void activation_backward(const real *x, real *d, size_t n);         /* d: gradient, in place */
void linear_forward(const param *p, const real *x, real *y, int n); /* y = x w^T */
/* p->g += dy^T x; dx = dy w, unless dx is NULL. */
void linear_backward(param *p, const real *x, const real *dy, real *dx, int n);

/* Forward: x += f(norm(x)). Backward: d is the gradient of the result, and becomes that of x. */
void attention_forward(model *m, layer_params *p, layer_cache *c, real *x);
void attention_backward(model *m, layer_params *p, layer_cache *c, real *d);
void mlp_forward(model *m, layer_params *p, layer_cache *c, real *x);
void mlp_backward(model *m, layer_params *p, layer_cache *c, real *d);
/* moe.c: y = f(x), where x is the norm's result; dx is the gradient of x. All are [T, D]. */
void moe_room(model *m, moe_cache *c);
void moe_forward(model *m, layer_params *p, moe_cache *c, const real *x, real *y);
void moe_backward(model *m, layer_params *p, moe_cache *c, const real *x, const real *dy, real *dx);

void embed_forward(model *m, slot *s);
void embed_backward(model *m, slot *s);
/* Return the sum of the losses of the tokens of this microbatch on this rank. */
double head_forward(model *m, slot *s);
void head_backward(model *m, slot *s);

/* ------------------------------------------- weights.c, pipeline.c and on */

/* Collective over all ranks. Return NULL with an error on every rank if on one of them the layout
** or a policy does not fit the model. */
model *model_new(const config *c, const layout *l, policies *ask, const char *text, size_t length,
                 mgrid_error *err);
void model_free(model *m);
/* After a loss, before model_free: end calls in progress, or leave their memory to them. */
void model_forget(model *m);

/* Compute the gradients of the batch of `step` on this rank; return this rank's sum of losses. */
double pipeline_step(model *m, int64_t step);
/* Return the mean loss of the step, the same on all ranks that train. */
double pipeline_loss(model *m, double sum);

void buckets_cut(model *m);    /* put the parameters into buckets, once */
void buckets_forget(model *m); /* after a loss, as model_forget */
void weights_gather(model *m); /* whole weights from the slices of all ranks */
/* The gradients of `from` and later parameters are final: start the sums of their buckets. */
void gradients_final(model *m, const param *from);
void gradients_sum(model *m); /* end all sums; the results are in this rank's slices */

void optimizer_update(model *m, int64_t step, double rate);

/* A folder of safetensors files, one from each rank that has something to write, and their index;
** any layout can read them. Both calls are collective over `mpi`, and errors are the same on all
** ranks; at the deadline the error names the missing rank. A write that fails or is interrupted
** leaves the last checkpoint as it was. `bytes`: the bytes of tensors that all ranks have read. */
mgrid_status checkpoint_write(model *m, mgrid_backend *mpi, const char *folder, int64_t step,
                              mgrid_error *err);
mgrid_status checkpoint_read(model *m, mgrid_backend *mpi, const char *folder, int64_t *step,
                             double *bytes, mgrid_error *err);

/* -------------------------------------------------------------- tensors.c */

typedef enum cut { WHOLE, BY_ROWS, BY_COLUMNS } cut; /* by tp */

typedef struct holders { /* the ranks that have a parameter */
  int pp[2];             /* their position in pp is one of these two */
  int ep;                /* of an expert: their position in ep; -1: any */
} holders;

/* The arrays of a parameter, whose slices are equal: weights, and the optimizer's two moments. */
enum { ARRAYS = 3 };
real *array_of(const param *p, int which); /* this rank's slice of array 0, 1 or 2 */
/* Put a parameter into m->topology, on all ranks. Does nothing after an error. */
void tensor_declare(model *m, const char *name, cut how, int rows, int cols, holders where,
                    mgrid_error *err);
void tensor_slices(model *m, mgrid_error *err); /* sets the slices of m->params */
/* Move all slices of a model to a model of the same config under another layout. Collective over
** `mpi`; errors are the same on all ranks, except MGRID_LOST_RANK. loss: NULL, or the loss of ranks
** after which the move reads the copies that are left. */
mgrid_status model_carry(model *from, model *to, mgrid_backend *mpi, int rank,
                         const mgrid_loss *loss, mgrid_error *err);
/* Return the number of bytes of which the loss left no copy, the same on all ranks. `what` names
** the first part without a copy, and the ranks that held it. */
int64_t model_missing(const model *m, const mgrid_loss *loss, char what[256], mgrid_error *err);

/* ------------------------------------------------------------------ job.c */

typedef struct job_part { /* the part of a job that a reload or a recovery replaces */
  mgrid_runtime *rt;
  mgrid_state *state;
  mgrid_losses *losses; /* of the state's plan */
  policies *policies;
  layout layout;
  model *model;
  int64_t step; /* of job.next: the number of steps that its model has done */
} job_part;

typedef struct job {
  config c;
  const char *text;
  size_t length;
  int rank, world;
  double deadline;     /* seconds that calls over all ranks may take; 0: moongrid's default */
  mgrid_backend *mpi;  /* of the state */
  job_part part, next; /* next: during a recovery */
  const char *checkpoint, *resume; /* folders; NULL: none */
  int64_t step;                    /* the number of steps done; it selects the next batch */
  int64_t saved, resumed;          /* the steps done in the last checkpoint, and in `resume` */
  double *losses;                  /* [steps], for the steps that this rank has done */
} job;

/* Both calls are collective over all ranks. After an error of job_reload every rank continues with
** the old layout; after MGRID_LOST_RANK it calls job_recover first. Call job_close in any case. */
mgrid_status job_open(job *j, const char *recipe, size_t n, const char *const *args,
                      mgrid_error *err);
mgrid_status job_reload(job *j, size_t n, const char *const *args, mgrid_change *change,
                        mgrid_error *err);
/* Go on with the survivors under the next layout, from the copies that they have; if a part has no
** copy left, from the last checkpoint, or from the start. All survivors call it; errors are the
** same on all of them. */
mgrid_status job_recover(job *j, mgrid_error *err);
void job_close(job *j);

/* ------------------------------------------------------------ watchdog.c */

/* From now on end the process if a call of MPI does not end within this number of seconds (0: 120),
** and name the ranks that are missing. checkpoint: folder to name in the message, or NULL. */
void watch_begin(int rank, int world, double seconds, const char *checkpoint);
void watch_as(int rank, int world); /* the rank and the world after a recovery */
void watch_call(void);              /* call it before and after each call of MPI */
/* End the process without MPI_Finalize, which would wait for a missing or lost rank. */
_Noreturn void end_now(const char *why, mgrid_status s);

/* --------------------------------------------------------------- fault.c */

/* Read "RANK:STEP:POINT" of --die or --hang, for tests: send the signal to the rank that has this
** number at the start. False: the text is wrong, or there are too many of them. */
bool fault_plan(const char *text, int signal);
void fault_begin(int rank);
void fault_step(int64_t step);
void fault_at(const char *point);
mgrid_status refuse(mgrid_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* MGRID_REFUSED */

/* Compare gradients with differences of the loss; return the number of values that do not agree. */
int gradient_check(model *m, int rank);

int plot(const char *path, int n, const char *const *curves); /* returns the exit code */

#endif
