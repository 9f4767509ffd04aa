/* SPDX-License-Identifier: MIT
**
** moongrid_step.h - the step of a recipe: what travels over its groups. moongrid.h includes this header, and its rules
** hold here.
**
** WORDS
**   step       a function of the recipe, the program of one rank: its operations in order, loops kept as loops
**   class      ranks that the step cannot tell apart: they have one program
**   verdict    whether every rank reaches the end of its program, "proved", or why not (src/step/README.md)
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* which includes this header in its place */
#elif !defined MOONGRID_STEP_H
#define MOONGRID_STEP_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mgrid_step mgrid_step;

/* Evaluate the step of the runtime's recipe for a plan of it, once for each class of ranks, each time with the limits of
** a call (mgrid_limits). `file` is a file of a recipe's folder that returns the step, a function (s, p, base); NULL: the
** recipe's own, or its base's. Local; O(world) in memory and time. MGRID_UNKNOWN_NAME: there is no step. The caller frees
** the step, which keeps the plan. */
MGRID_API mgrid_step *mgrid_step_new(mgrid_runtime *rt, const mgrid_plan *plan, const char *file, mgrid_error *err);
MGRID_API mgrid_step *mgrid_step_ref(const mgrid_step *s);
MGRID_API void        mgrid_step_free(mgrid_step *s);

/* The same for the plan of a state and the runtime that it was planned by, on all ranks of its backend or on none: where a
** rank fails, or has other programs, every rank gets the error that names it. Collective. */
MGRID_API mgrid_step *mgrid_state_step(mgrid_runtime *rt, const mgrid_state *state, const char *file, mgrid_error *err);

/* The number of classes; the class of a rank, -1: no such rank; the number of operations of a rank, loops unrolled. */
MGRID_API size_t  mgrid_step_nclasses(const mgrid_step *s);
MGRID_API int64_t mgrid_step_class(const mgrid_step *s, int64_t rank);
MGRID_API int64_t mgrid_step_operations(const mgrid_step *s, int64_t rank);
/* Write the digest of all programs, 32 hex digits and a 0: equal where ranks have equal programs. */
MGRID_API void mgrid_step_digest(const mgrid_step *s, char out[33]);

/* ----------------------------------------------------------------- verdict */

/* Prove that every rank reaches the end of its program, under the rules of NCCL, or with `blocking` under those of MPI: each
** call ends before the next begins. MGRID_UNPROVED: it is not so; the message says which ranks wait for whom, in which
** lines, after one of the words mismatch, unmatched, cycle, hazard. Local. */
MGRID_API mgrid_status mgrid_step_prove(const mgrid_step *s, bool blocking, mgrid_error *err);

/* ------------------------------------------------------------------- price */

typedef struct mgrid_step_price_options {
  size_t      size;     /* sizeof(mgrid_step_price_options) */
  bool        blocking; /* under the rules of MPI, with its algorithms; else those of NCCL */
  int64_t     eager;    /* blocking: sends of up to so many bytes do not wait for their receiver */
  double      flops;    /* of a GPU in a second; 0: what the costs or the data sheet of the machine's preset say */
  const char *costs;    /* JSON: latencies, measured efficiencies and so on (src/step/README.md); NULL: none */
} mgrid_step_price_options;
#define MGRID_STEP_PRICE_OPTIONS_INIT \
  { sizeof(mgrid_step_price_options), false, 0, 0, NULL }

/* Seconds. Those of ranks are means over all of them, and compute + exposed + bubble = seconds. */
typedef struct mgrid_step_time {
  size_t size;    /* sizeof(mgrid_step_time) */
  double seconds; /* of the step, from its first operation to its last */
  double compute; /* something computes */
  double exposed; /* bytes move, and nothing computes; */
  double hidden;  /* ... and something computes */
  double bubble;  /* neither */
  size_t types;   /* of ranks, one of which was executed for each */
} mgrid_step_time;
#define MGRID_STEP_TIME_INIT \
  { sizeof(mgrid_step_time), 0, 0, 0, 0, 0, 0 }

/* Price a step on a machine: execute one rank of each type in time (src/step/README.md has the model, and what it leaves
** out). MGRID_REFUSED: something that is needed is not known, such as the bandwidth of a level. MGRID_UNPROVED: a rank
** does not reach its end. Local. */
MGRID_API mgrid_status mgrid_step_price(const mgrid_step *s, const mgrid_machine_model *m,
                                        const mgrid_step_price_options *options, mgrid_step_time *out,
                                        mgrid_error *err);
/* Print the price as JSON, with calls, bytes and levels by family, the busiest link, and memory. */
MGRID_API mgrid_status mgrid_step_print_price(const mgrid_step *s, const mgrid_machine_model *m,
                                              const mgrid_step_price_options *options, mgrid_sink sink, void *ud,
                                              mgrid_error *err);

/* --------------------------------------------------------------- one's calls */

typedef enum mgrid_step_operation {
  MGRID_STEP_ALL_REDUCE = 0,
  MGRID_STEP_ALL_GATHER = 1,
  MGRID_STEP_REDUCE_SCATTER = 2,
  MGRID_STEP_ALL_TO_ALL = 3,
  MGRID_STEP_BROADCAST = 4,
  MGRID_STEP_REDUCE = 5,
  MGRID_STEP_GATHER = 6,
  MGRID_STEP_SCATTER = 7,
  MGRID_STEP_BARRIER = 8,
  MGRID_STEP_SEND = 9,
  MGRID_STEP_RECV = 10
} mgrid_step_operation;

/* A call of a program; a sendrecv, or a group, is the calls in it. Texts live as long as the step. */
typedef struct mgrid_step_call {
  size_t      size;                        /* sizeof(mgrid_step_call) */
  const char *operation, *family, *stream; /* "all_reduce"; "main" unless the step says another */
  const char *file;                        /* of the recipe, */
  int         line;
  int64_t     bytes;    /* as the recipe says them */
  int64_t     position; /* the root, or the member that it is sent to or comes from; -1: none */
} mgrid_step_call;
#define MGRID_STEP_CALL_INIT \
  { sizeof(mgrid_step_call), "", "", "", "", 0, 0, -1 }

/* Follows the program of a rank, loops unrolled as it goes. It keeps the step; the caller frees it. */
typedef struct mgrid_step_follower mgrid_step_follower;
MGRID_API mgrid_step_follower     *mgrid_step_follow(const mgrid_step *s, int64_t rank, mgrid_error *err);
MGRID_API void                     mgrid_step_follower_free(mgrid_step_follower *f);
MGRID_API void                     mgrid_step_rewind(mgrid_step_follower *f); /* to the first call, for the next step */
/* Write the next call, and go on. False: there is none. */
MGRID_API bool mgrid_step_next(mgrid_step_follower *f, mgrid_step_call *out);
/* Check that this is the next call, and go on: for debug builds of a trainer, before each call. MGRID_DISAGREE: the program
** has another one, which the message names with its line; the follower stays. The group is of a state of the step's plan. */
MGRID_API mgrid_status mgrid_step_expect(mgrid_step_follower *f, mgrid_step_operation op, const mgrid_group *group,
                                         int64_t bytes, mgrid_error *err);

#ifdef __cplusplus
}
#endif

#endif
