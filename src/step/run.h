/* SPDX-License-Identifier: MIT
**
** run.h - executing a step on a running job. run.c executes the program of this rank on a backend
** without streams, and turns the measurements of all ranks into a report. run_streams.c executes it
** on a backend with GPU streams.
*/
#ifndef MGRID_STEP_RUN_H
#define MGRID_STEP_RUN_H

#include "comm/state.h"
#include "step/price.h"

#include <jansson.h>

typedef struct step_how {
  int64_t steps;
  double scale;   /* factor of all bytes and computes */
  double flops;   /* flops of a GPU in a second: a compute sleeps as long as its flops take */
  double timeout; /* seconds that a call may take; over MPI: seconds without progress on any rank */
  bool sleeps;    /* computes sleep */
  /* if computes do not sleep: do up to `flops` flops on the CPU, and return the number done. The
  ** function is called until all flops of a compute are done. After an error it sets *broken and
  ** returns `flops`; then the run goes on, and all ranks get the error at its end. NULL: computes
  ** take no time */
  double (*work)(void *ud, double flops);
  void *ud;
  mgrid_error *broken;
  bool unproved;
} step_how;
#define STEP_HOW_INIT \
  { 1, 1, 1e14, MGRID_TIMEOUT, false, NULL, NULL, NULL, false }

typedef struct step_spent { /* what this rank did in one family, in all steps */
  double calls, bytes, seconds;
} step_spent;

/* Prove the step under the rules of the state's backend, unless how->unproved is set; execute it;
** set *out on all ranks to a report about all ranks (lua/moongrid/meta_step.lua has its fields),
** which the caller owns. Collective, with one error for all. MGRID_TIMED_OUT: a call took too long,
** and the message says which. After an error some calls may not have ended on their communicators.
** *last: on rank 0 what each rank did in the last step, with ranks in place of types; NULL: this
** rank does not need it. */
mgrid_status mgrid_step_measure(const mgrid_step *s, mgrid_state *state, const step_how *how,
                                step_records *last, json_t **out, mgrid_error *err);

/* -------------------------------------------------------------------- run.c */

typedef struct step_span { /* an entry that was executed in one step */
  uint32_t node;
  float seconds;
  double begun; /* seconds since the step began */
} step_span;

enum { STEP_SPANS_MAX = 1 << 20 };
typedef struct step_spans { /* the entries of the last step */
  size_t n, room;
  step_span *span;
  /* full: there were more than STEP_SPANS_MAX, or no memory; the rest is left out */
  bool on, full;
} step_spans;

/* Execute the program of this rank how->steps times. spent[nentries]: calls, bytes and seconds of
** each family; *seconds: the time of all steps. *spans: the entries of the last step, if `on` is
** set. Collective. */
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
  double zero; /* when the present step began */
  bool last;   /* the present step is the last */
  int64_t rank;
  /* buffers for the communicators of the backend, and for those of its carrier */
  step_buffers own, carried;
  size_t room;      /* elements of each buffer */
  bool by_position; /* some all_to_all gives its bytes by position */
  /* tells at any time which ranks are silent; NULL: the backend has streams, or cannot tell */
  const mgrid_transport_ops *watch;
  mgrid_error *err;
  /* used by run_streams.c */
  /* [nslots]: calls that have ended; after a timeout also the next call of each stream */
  uint64_t *reached;
  uint32_t *mark;                   /* [n]: the mark of each event */
  int64_t flying[STEP_STREAMS_MAX]; /* calls in each stream that have not ended */
  uint32_t stuck;                   /* the entry that did not end; the program's n: none */
  bool connects;                    /* entry `stuck` did not get into its stream */
} step_runner;

/* The calls of an entry: one call, or all calls of a block. Calls in groups of one rank are left
** out. */
typedef struct step_calls {
  size_t n;
  mgrid_shared *comm[MGRID_TOGETHER_MAX];
  mgrid_work work[MGRID_TOGETHER_MAX];
} step_calls;

/* Collect the calls of the entry. */
mgrid_status mgrid_step_calls_of(const step_runner *r, uint32_t at, step_calls *out);
/* Return the seconds of a compute that sleeps. */
double mgrid_step_sleeps(const step_runner *r, const step_node *n);
/* Called when an entry has ended: add its calls to `spent` and the entry to the spans. `begun`:
** seconds since the step began. */
void mgrid_step_spend(const step_runner *r, uint32_t at, double begun, double seconds);

/* Return whether the state's backend has streams. Then calls run on streams. */
bool mgrid_step_streams(const step_runner *r);
/* Open the streams. Local. */
mgrid_status mgrid_step_streams_open(step_runner *r);
/* Begin an entry on its stream: calls, compute, events and waits. */
mgrid_status mgrid_step_streams_begin(step_runner *r, uint32_t at);
/* Start the time of a step. */
mgrid_status mgrid_step_streams_zero(step_runner *r);
/* Wait until all streams have ended. */
mgrid_status mgrid_step_streams_end(step_runner *r);
/* Free the streams, and return one status on all ranks. If calls did not end, the error says which
** rank waited for which. Collective. */
mgrid_status mgrid_step_streams_close(step_runner *r, mgrid_status mine);

#endif
