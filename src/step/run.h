/* SPDX-License-Identifier: MIT
**
** run.h - a step that is executed. run.c walks the program; run_streams.c has its calls on streams of GPUs.
*/
#ifndef MGRID_STEP_RUN_H
#define MGRID_STEP_RUN_H

#include "comm/state.h"
#include "step/step.h"

typedef enum step_computing { STEP_NOTHING, STEP_SLEEP, STEP_GEMM } step_computing;

typedef struct step_how {
  int64_t        steps;
  double         scale;   /* of bytes and of compute */
  double         flops;   /* of a GPU in a second, for STEP_SLEEP */
  double         timeout; /* seconds that a call may take */
  step_computing compute;
} step_how;

typedef struct step_spent { /* by this rank over one family, in all steps */
  double calls, bytes, seconds;
} step_spent;

/* Execute the program of this rank, how->steps times; spent[nentries] by family, *seconds in all. Collective. After an
** error communicators may hold calls that did not end. MGRID_TIMED_OUT: a call took longer, and the message says which. */
mgrid_status mgrid_step_execute(const mgrid_step *s, mgrid_state *state, const step_how *how, step_spent *spent,
                                double *seconds, mgrid_error *err);

/* -------------------------------------------------------------------- inside */

typedef struct step_buffers {
  void *send, *recv;
} step_buffers;

typedef struct step_runner {
  const mgrid_step   *s;
  const step_program *p;
  mgrid_state        *state;
  const step_how     *how;
  step_spent         *spent; /* [nentries] */
  int64_t             rank;
  step_buffers        own, carried; /* for communicators of the backend; of its carrier */
  mgrid_error        *err;
  /* of run_streams.c */
  uint64_t *reached;                  /* [nslots]: calls that ended, in the end also the first of each stream */
  uint32_t *mark;                     /* [n]: of an event */
  int64_t   flying[STEP_STREAMS_MAX]; /* calls in the stream */
  uint32_t  stuck;                    /* the entry that did not end; the program's n: none */
  bool      connects;                 /* it did not get into its stream */
} step_runner;

/* The calls of an entry: one, or all of its block; groups of one rank have none. */
typedef struct step_calls {
  size_t        n;
  mgrid_shared *comm[MGRID_TOGETHER_MAX];
  mgrid_work    work[MGRID_TOGETHER_MAX];
} step_calls;

/* Collect the calls of the entry. */
mgrid_status mgrid_step_calls_of(const step_runner *r, uint32_t at, step_calls *out);
/* Seconds of a compute, for STEP_SLEEP. */
double mgrid_step_sleeps(const step_runner *r, const step_node *n);
/* An entry ended: add its calls to what was spent. */
void mgrid_step_spend(const step_runner *r, uint32_t at, double seconds);

/* Whether the backend of the state has streams, on which calls then begin. */
bool mgrid_step_streams(const step_runner *r);
/* Local. */
mgrid_status mgrid_step_streams_open(step_runner *r);
/* Begin an entry on its stream: calls, compute, events and waits. */
mgrid_status mgrid_step_streams_begin(step_runner *r, uint32_t at);
/* The clock of a step begins; wait until all streams have ended. */
mgrid_status mgrid_step_streams_zero(step_runner *r);
mgrid_status mgrid_step_streams_end(step_runner *r);
/* Collective: free the streams, and tell all ranks how it ended. If calls did not end all have the error that says which
** rank waited for whom. */
mgrid_status mgrid_step_streams_close(step_runner *r, mgrid_status mine);

#endif
