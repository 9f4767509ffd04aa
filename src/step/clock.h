/* SPDX-License-Identifier: MIT
**
** clock.h - the time of an execution (executor.c): how long what it does takes, and what is under
** way. Times are integers of picoseconds.
*/
#ifndef MGRID_STEP_CLOCK_H
#define MGRID_STEP_CLOCK_H

#include "step/price.h"

typedef struct step_event { /* a part of a cursor's operation ends */
  int64_t time;
  int32_t cursor;
} step_event;

typedef struct step_busy { /* of a cursor: which share of the time it computes and moves bytes */
  double computing, moving;
  int64_t active; /* parts that move */
} step_busy;

typedef struct step_clock {
  const step_pricing *pricing;
  bool whole;            /* take loops of a stream in which nobody waits as one operation */
  step_records *records; /* NULL: not needed */
  int64_t now;
  bool over;      /* more time than the clock can show */
  size_t n, room; /* a heap of what ends, the earliest first */
  step_event *event;
  step_busy *busy; /* [ncursors] */
  int64_t *began;  /* [ncursors]: when the operation began to wait */
  step_use *use;   /* [types], in picoseconds, up to `at` */
  int64_t *at;     /* [types] */
  const step_executor *executor;
} step_clock;

mgrid_status mgrid_step_clock_begin(step_executor *m, mgrid_error *err);
void mgrid_step_clock_free(step_clock *c);
/* Count the time up to now of all types. */
void mgrid_step_clock_charge(step_executor *m);
mgrid_status mgrid_step_clock_check(const step_executor *m, mgrid_error *err);
/* Go on to when the next part ends, and return its cursor; -1: nothing is under way. */
int32_t mgrid_step_clock_next(step_executor *m);

/* Whether each round is to be recorded: there are not yet many records. */
bool mgrid_step_clock_every(const step_executor *m);

void mgrid_step_clock_began(step_executor *m, int32_t cursor);
/* The cursor's operation computes, or is a loop as a whole. */
void mgrid_step_clock_work(step_executor *m, int32_t cursor);
/* A part of it travels; the last that it waited for is of type `by`. */
void mgrid_step_clock_move(step_executor *m, int32_t cursor, uint32_t node, int64_t takes,
                           int32_t by);
/* What a call takes that meets in these posts; from now until then. */
int64_t mgrid_step_clock_cost(const step_executor *m, const step_post *posts, uint32_t n);
int64_t mgrid_step_clock_left(const step_executor *m, int64_t until);
int64_t mgrid_step_clock_now(const step_executor *m);
/* Whether a loop is one operation of the stream: all in it is of this rank alone, or with ranks
** that come at the same time. */
bool mgrid_step_clock_whole(const step_stops *w, uint32_t loop);

/* What the clock shows, for loops.c: kept, compared, and put on by so many rounds. */
typedef struct step_snapshot step_snapshot;
bool mgrid_step_snapshot_keep(step_executor *m, step_snapshot **keep); /* false: no memory */
bool mgrid_step_snapshot_same(const step_executor *m, const step_snapshot *was);
void mgrid_step_snapshot_skip(step_executor *m, const step_snapshot *was, int64_t times);
void mgrid_step_snapshot_free(step_snapshot *x);

#endif
