/* SPDX-License-Identifier: MIT
**
** moongrid_step.h - the step of a recipe: what travels over its groups. moongrid.h includes this
** header, and its rules hold here.
**
** WORDS
**   step       a function of the recipe that makes the program of one rank: its operations in order, with loops
**   class      ranks that the step cannot tell apart: they have one program
**   verdict    whether every rank reaches the end of its program, "proved", or why not (src/step/README.md)
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_STEP_H
#define MOONGRID_STEP_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mgrid_step mgrid_step;

/* Evaluate the step of the runtime's recipe for one of its plans, once for each class of ranks,
** each time with the limits of a call (mgrid_limits). `file` is a file in the recipe's folder that
** returns the step, a function (s, p, base); NULL: the step of the recipe, or of its base. Local;
** O(world) in memory and time. MGRID_UNKNOWN_NAME: there is no step. MGRID_LIMIT: all classes
** together take more than the seconds of a plan, or the world has more than 2^26 ranks. The step
** keeps the plan; the caller frees the step. */
MGRID_API mgrid_step *mgrid_step_new(mgrid_runtime *rt, const mgrid_plan *plan, const char *file,
                                     mgrid_error *err);
MGRID_API mgrid_step *mgrid_step_ref(const mgrid_step *s);
MGRID_API void mgrid_step_free(mgrid_step *s);

/* Evaluate the step for the plan of a state; rt is the runtime that made this plan. Collective over
** the backend, all or nothing: if a rank fails, or has other programs, all ranks get the error that
** names it. */
MGRID_API mgrid_step *mgrid_state_step(mgrid_runtime *rt, const mgrid_state *state,
                                       const char *file, mgrid_error *err);

/* Return the number of classes; the class of a rank (-1: no such rank); the number of operations of
** a rank, loops unrolled. */
MGRID_API size_t mgrid_step_nclasses(const mgrid_step *s);
MGRID_API int64_t mgrid_step_class(const mgrid_step *s, int64_t rank);
MGRID_API int64_t mgrid_step_operations(const mgrid_step *s, int64_t rank);
/* Write the digest of the programs of all ranks, 32 hex digits and a 0. Two digests are equal
** exactly if each rank has an equal program, apart from lines. src/promises.md lists its
** contents. */
MGRID_API void mgrid_step_digest(const mgrid_step *s, char out[33]);

/* ----------------------------------------------------------------- verdict */

/* Prove that every rank reaches the end of its program, under the rules of NCCL. With `blocking`
** the rules are those of MPI: each call ends before the next begins. MGRID_UNPROVED: a rank does
** not reach the end; the message begins with mismatch, unmatched, cycle or hazard, and says which
** ranks wait for which others, in which lines. MGRID_LIMIT: the proof takes more than the seconds
** or instructions of a plan (mgrid_limits of the runtime that made the step); the message says how
** far it came. For a step with several streams the proof may assume that calls of two families fit
** on a GPU together, or start in the same order on all ranks; `moongrid step`, and prove in Lua,
** name these families. Local. */
MGRID_API mgrid_status mgrid_step_prove(const mgrid_step *s, bool blocking, mgrid_error *err);

/* ---------------------------------------- price, a preview (src/stability.md) */

typedef struct mgrid_step_price_options {
  size_t size;   /* sizeof(mgrid_step_price_options) */
  bool blocking; /* under the rules of MPI, with its algorithms; else those of NCCL */
  /* blocking: sends of at most this number of bytes do not wait for their receiver */
  int64_t eager;
  /* floating-point operations of a GPU in a second; 0: take the number from the costs, or from the
  ** data sheet of the machine's preset */
  double flops;
  /* JSON: latencies, measured efficiencies and so on (src/step/README.md); NULL: none */
  const char *costs;
} mgrid_step_price_options;
#define MGRID_STEP_PRICE_OPTIONS_INIT \
  { sizeof(mgrid_step_price_options), false, 0, 0, NULL }

/* Seconds; compute, exposed, hidden and bubble are means over all ranks, and compute + exposed +
** bubble = seconds. */
typedef struct mgrid_step_time {
  size_t size;    /* sizeof(mgrid_step_time) */
  double seconds; /* of the step, from its first operation to its last */
  double compute; /* something computes */
  double exposed; /* bytes move, and nothing computes */
  double hidden;  /* bytes move, and something computes */
  double bubble;  /* neither */
  size_t types;   /* the number of types of ranks; one rank of each was executed */
} mgrid_step_time;
#define MGRID_STEP_TIME_INIT \
  { sizeof(mgrid_step_time), 0, 0, 0, 0, 0, 0 }

/* Price a step on a machine: execute one rank of each type in simulated time (src/step/README.md
** has the model and its limits). MGRID_REFUSED: a needed figure is not known, such as the bandwidth
** of a level. MGRID_UNPROVED: a rank does not reach its end. MGRID_LIMIT: as for the proof. out may
** be NULL. The sink (NULL: none) gets the result as JSON, with more: calls, bytes and levels by
** family, the busiest link, and memory. Local. */
MGRID_API mgrid_status mgrid_step_price(const mgrid_step *s, const mgrid_machine_model *m,
                                        const mgrid_step_price_options *options,
                                        mgrid_step_time *out, mgrid_sink sink, void *ud,
                                        mgrid_error *err);

/* -------------------------------------------------------- one rank's calls */

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

/* A call of a program; a sendrecv or a group is given as the calls in it. Texts live as long as the
** step. */
typedef struct mgrid_step_call {
  size_t size; /* sizeof(mgrid_step_call) */
  /* such as "all_reduce"; stream "main" unless the step names another */
  const char *operation, *family, *stream;
  const char *file; /* the file of the recipe that has `line` */
  int line;
  int64_t bytes; /* as in the recipe */
  /* the position in the group of the root, of the receiver of a send, or of the sender of a
  ** receive; -1: none */
  int64_t position;
} mgrid_step_call;
#define MGRID_STEP_CALL_INIT \
  { sizeof(mgrid_step_call), "", "", "", "", 0, 0, -1 }

/* A follower goes through the program of a rank call by call, also through each iteration of a
** loop. It keeps the step; the caller frees the follower. */
typedef struct mgrid_step_follower mgrid_step_follower;
MGRID_API mgrid_step_follower *mgrid_step_follow(const mgrid_step *s, int64_t rank,
                                                 mgrid_error *err);
MGRID_API void mgrid_step_follower_free(mgrid_step_follower *f);
MGRID_API void mgrid_step_rewind(mgrid_step_follower *f); /* to the first call, for the next step */
/* Write the next call, and go on. False: the program has ended, or *out was not set to
** MGRID_STEP_CALL_INIT. */
MGRID_API bool mgrid_step_next(mgrid_step_follower *f, mgrid_step_call *out);
/* Check that this is the next call, and go on. For debug builds of a trainer, before each call.
** MGRID_DISAGREE: the program has another call next, which the message names with its line; the
** follower stays where it is. `group` must belong to a state of the step's plan. */
MGRID_API mgrid_status mgrid_step_expect(mgrid_step_follower *f, mgrid_step_operation op,
                                         const mgrid_group *group, int64_t bytes, mgrid_error *err);

#ifdef __cplusplus
}
#endif

#endif
