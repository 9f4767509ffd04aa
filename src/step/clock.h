/* SPDX-License-Identifier: MIT
**
** clock.h - the clock of an execution (executor.c): it knows how long operations take, and which
** parts of them are under way. A group has a part for each of its calls, any other operation one
** part. Times are integers of picoseconds.
*/
#ifndef MGRID_STEP_CLOCK_H
#define MGRID_STEP_CLOCK_H

#include "step/price.h"

typedef struct step_event { /* when a part of an operation ends */
  int64_t time;
  int32_t cursor;
} step_event;

/* How a cursor (of one stream of one type) spends its time now. computing, moving: shares of its
** time, 0 to 1. */
typedef struct step_busy {
  double computing, moving;
  int64_t active; /* parts that move bytes now */
} step_busy;

typedef struct step_clock {
  const step_pricing *pricing;
  bool whole;            /* take a loop of a stream as one operation if no rank waits in it */
  step_records *records; /* what happened when; NULL: not needed */
  int64_t now;
  bool over;      /* the time became too large to count */
  size_t n, room; /* a heap of parts that will end, the earliest first */
  step_event *event;
  step_busy *busy; /* [ncursors] */
  int64_t *began;  /* [ncursors]: when the present operation began to wait */
  step_use *use;   /* [types]: picoseconds up to the time `at` */
  int64_t *at;     /* [types] */
  const step_executor *executor;
} step_clock;

mgrid_status mgrid_step_clock_begin(step_executor *m, mgrid_error *err);
void mgrid_step_clock_free(step_clock *c);
/* Add the time that has passed to the accounts (`use`) of all types. */
void mgrid_step_clock_charge(step_executor *m);
mgrid_status mgrid_step_clock_check(const step_executor *m, mgrid_error *err);
/* Go on to the end of the next part. Return its cursor; -1: nothing is under way. */
int32_t mgrid_step_clock_next(step_executor *m);

/* Return whether each iteration should still be recorded, because there are few records so far. */
bool mgrid_step_clock_every(const step_executor *m);

/* Begin the cursor's operation, a compute or a whole loop. */
void mgrid_step_clock_work(step_executor *m, int32_t cursor);
/* Begin to move the bytes of entry `node`, a part of the operation. `by`: the type that came
** last. */
void mgrid_step_clock_move(step_executor *m, int32_t cursor, uint32_t node, int64_t takes,
                           int32_t by);
/* Return how long the call takes in which these n posts (step_post) have met. */
int64_t mgrid_step_clock_cost(const step_executor *m, const step_post *posts, uint32_t n);
/* Return whether the clock takes a loop as one operation of its stream: `whole` is set, and each
** entry of the loop is work of this rank alone, or a call among ranks of one type, which reach it
** at the same time. */
bool mgrid_step_clock_whole(const step_stops *w, uint32_t loop);

/* A kept state of the clock. loops.c compares later states with it, to skip repeated iterations. */
typedef struct step_snapshot step_snapshot;
bool mgrid_step_snapshot_keep(step_executor *m, step_snapshot **keep); /* false: no memory */
bool mgrid_step_snapshot_same(const step_executor *m, const step_snapshot *was);
void mgrid_step_snapshot_skip(step_executor *m, const step_snapshot *was, int64_t times);
void mgrid_step_snapshot_free(step_snapshot *x);

#endif
