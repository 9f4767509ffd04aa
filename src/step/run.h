/* SPDX-License-Identifier: MIT
**
** run.h - a step that is executed: run.c walks the program, and makes the answer of what
** all ranks measured; run_streams.c has its calls on streams of GPUs.
*/
#ifndef MGRID_STEP_RUN_H
#define MGRID_STEP_RUN_H

#include "comm/state.h"
#include "step/price.h"

#include <jansson.h>

typedef struct step_how {
  int64_t steps;
  double scale;   /* of bytes and of compute */
  double flops;   /* of a GPU in a second, to sleep */
  double timeout; /* seconds that a call may take; over MPI, without progress on any rank */
  bool sleeps;    /* through computes */
  /* Instead, on the CPU: do some of so many flops, and return how many. Called until all are done.
  ** What it cannot do it tells in *broken and returns `flops`: the step goes on, and all ranks get
  ** the error at its end. NULL: no compute takes time. */
  double (*work)(void *ud, double flops);
  void *ud;
  mgrid_error *broken;
  bool unproved;
} step_how;
#define STEP_HOW_INIT \
  { 1, 1, 1e14, MGRID_TIMEOUT, false, NULL, NULL, NULL, false }

typedef struct step_spent { /* by this rank over one family, in all steps */
  double calls, bytes, seconds;
} step_spent;

/* Prove the step under the rules of the state's backend, unless how->unproved; execute it; *out is
** what all ranks measured, a new reference, on all ranks. Collective, with one error for all. After
** an error communicators may hold calls that did not end. MGRID_TIMED_OUT: a call took longer, and
** the message says which. README.md has the fields. *last: on rank 0 what each rank did in the last
** step, the rank in place of the type; NULL: this rank tells nothing of it. */
mgrid_status mgrid_step_measure(const mgrid_step *s, mgrid_state *state, const step_how *how,
                                step_records *last, json_t **out, mgrid_error *err);

/* -------------------------------------------------------------------- run.c */

typedef struct step_span { /* of an entry, in one step */
  uint32_t node;
  float seconds;
  double begun; /* since the step began */
} step_span;

enum { STEP_SPANS_MAX = 1 << 20 };
typedef struct step_spans { /* of the last step */
  size_t n, room;
  step_span *span;
  /* full: more than STEP_SPANS_MAX, or than there is memory for; the rest is left out */
  bool on, full;
} step_spans;

/* Execute the program of this rank, how->steps times; spent[nentries] by family, *seconds in all;
** *spans of the last step, if they are on. Collective. */
mgrid_status mgrid_step_execute(const mgrid_step *s, mgrid_state *state, const step_how *how,
                                step_spent *spent, step_spans *spans, double *seconds,
                                mgrid_error *err);

/* -------------------------------------------------------------------- inside */

typedef struct step_buffers {
  void *send, *recv;
} step_buffers;

typedef struct step_runner {
  const mgrid_step *s;
  const step_program *p;
  mgrid_state *state;
  const step_how *how;
  step_spent *spent; /* [nentries] */
  step_spans *spans;
  double zero; /* when this step began */
  bool last;   /* this is the last one */
  int64_t rank;
  step_buffers own, carried; /* for communicators of the backend; of its carrier */
  size_t room;               /* elements of each */
  bool by_position;          /* some all-to-all of the step has its bytes by position */
  /* knows at any time which ranks are silent, as in a move; NULL: on streams */
  const mgrid_transport_ops *watch;
  mgrid_error *err;
  /* of run_streams.c */
  uint64_t *reached; /* [nslots]: calls that ended, in the end also the first of each stream */
  uint32_t *mark;    /* [n]: of an event */
  int64_t flying[STEP_STREAMS_MAX]; /* calls in the stream */
  uint32_t stuck;                   /* the entry that did not end; the program's n: none */
  bool connects;                    /* it did not get into its stream */
} step_runner;

/* The calls of an entry: one, or all of its block; groups of one rank have none. */
typedef struct step_calls {
  size_t n;
  mgrid_shared *comm[MGRID_TOGETHER_MAX];
  mgrid_work work[MGRID_TOGETHER_MAX];
} step_calls;

/* Collect the calls of the entry. */
mgrid_status mgrid_step_calls_of(const step_runner *r, uint32_t at, step_calls *out);
/* Seconds of a compute that sleeps. */
double mgrid_step_sleeps(const step_runner *r, const step_node *n);
/* An entry ended: add its calls to what was spent, and it to the trace. begun: since the step
** began. */
void mgrid_step_spend(const step_runner *r, uint32_t at, double begun, double seconds);

/* Whether the backend of the state has streams, on which calls then begin. */
bool mgrid_step_streams(const step_runner *r);
/* Local. */
mgrid_status mgrid_step_streams_open(step_runner *r);
/* Begin an entry on its stream: calls, compute, events and waits. */
mgrid_status mgrid_step_streams_begin(step_runner *r, uint32_t at);
/* The clock of a step begins; wait until all streams have ended. */
mgrid_status mgrid_step_streams_zero(step_runner *r);
mgrid_status mgrid_step_streams_end(step_runner *r);
/* Collective: free the streams, and tell all ranks how it ended. If calls did not end all have the
** error that says which rank waited for whom. */
mgrid_status mgrid_step_streams_close(step_runner *r, mgrid_status mine);

#endif
