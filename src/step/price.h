/* SPDX-License-Identifier: MIT
**
** price.h - the price of a step: how long it takes on a machine. operations.c computes the time of
** a call, costs.c reads the costs that are not in the text of a machine, and clock.c is the clock
** of an execution. price.c finds how groups lie on the machine and what they send over each level,
** and makes the price.
*/
#ifndef MGRID_STEP_PRICE_H
#define MGRID_STEP_PRICE_H

#include "machine/model.h"
#include "step/step.h"

#include <jansson.h>

/* ------------------------------------------------------------------ costs.c */

enum { STEP_RATES_MAX = 256, STEP_MEASURED_MAX = 256 };

/* The measured share of a level's bandwidth that calls with so many bytes reach. */
typedef struct step_rate {
  step_kind kind; /* STEP_KINDS: every kind */
  int level;      /* a level of the machine; -1: every level */
  double bytes, share;
} step_rate;

/* A measured call. Its group has one member in each domain of a level. */
typedef struct step_measured {
  step_kind kind;
  int level;
  double members, bytes, seconds;
} step_measured;

typedef struct step_fit { /* the result of a fit to the measured calls of a level */
  size_t n;               /* number of calls; 0: none */
  double latency, share;  /* seconds of one hop; share of the bandwidth */
  double median, worst;   /* relative errors of the fit */
} step_fit;

/* Costs that the text of a machine does not contain. */
typedef struct step_costs {
  double flops; /* flops of a GPU per second; 0: not known */
  double start; /* seconds of each compute with flops, besides the time of the flops */
  /* bytes per second that a GPU reads or writes; 0: computes do not wait for memory */
  double memory;
  double capacity;                  /* bytes of a GPU's memory; 0: not known */
  double beside;                    /* bytes of that memory that a rank holds apart from the step */
  double error;                     /* mean relative error of predicted steps; 0: not known */
  double call;                      /* seconds of a call before its bytes move */
  double latency[MGRID_LEVELS_MAX]; /* seconds, by level */
  int nvlink;                       /* the level whose domains NVLink connects; -1: not known */
  bool nvls;                        /* the NVLink switches can reduce */
  int64_t eager;
  bool mpi;
  size_t nrates;
  step_rate rate[STEP_RATES_MAX]; /* in the order of the costs: bytes ascend in each list of rows */
  step_fit fit[MGRID_LEVELS_MAX];
  char source[256]; /* where rates and flops come from; "": the data sheet of the machine */
} step_costs;

/* Set the costs from the machine's preset and from defaults, then from the JSON `text`, if it is
** not NULL. README.md has the keys of the text. */
mgrid_status mgrid_step_costs_of(const mgrid_machine_model *m, bool mpi, const char *text,
                                 step_costs *out, mgrid_error *err);
/* Append the JSON text of a file with costs. `machine`: the file describes a machine; append the
** value of its key "costs", or nothing if the file is not JSON or has no such key. */
mgrid_status mgrid_step_costs_file(const char *path, bool machine, mgrid_text *t, mgrid_error *err);

/* Fit the latency of a hop and the share of the bandwidth to measured calls over one level. */
void mgrid_step_fit(const step_measured *all, size_t n, double call, double bandwidth,
                    step_fit *out);

/* ---------------------------------------------------------- price.c: shapes */

/* How a group lies in the domains of a level. */
typedef struct step_reach {
  int32_t domains;     /* domains that the group touches */
  int32_t least, most; /* fewest and most of its members in one domain */
  /* the largest number of groups of the family that may send out of one of these domains at the
  ** same time */
  int32_t share;
} step_reach;

typedef struct step_shape {
  int64_t size;
  step_reach at[MGRID_LEVELS_MAX]; /* by level, from far to near */
  /* [levels * size]: the domain of each position, numbered in order of appearance; NULL: no message
  ** goes from position to position */
  int32_t *where;
} step_shape;

typedef struct step_shapes {
  size_t n;
  step_shape *shape;
  /* [types * slots]: the shape of the type's group; -1: it has none */
  int32_t *of;
  int32_t *where; /* memory of the shapes' arrays */
  /* [world], for each level but the last: the domain of each rank */
  int32_t *domain[MGRID_LEVELS_MAX];
  int64_t domains[MGRID_LEVELS_MAX];
} step_shapes;

/* ------------------------------------------------------------- operations.c */

/* A step and the machine on which it is priced. */
typedef struct step_pricing {
  const mgrid_step *s;
  const mgrid_machine_model *m;
  step_rules rules;
  step_costs costs;
  step_types types;
  step_shapes shapes;
} step_pricing;

typedef struct step_way { /* how the bytes of a call travel */
  double seconds;
  const char *algorithm; /* "ring" */
  int level;             /* the farthest level that the bytes cross */
} step_way;

/* Times are whole picoseconds, so that repeated iterations take exactly the same time. */
#define STEP_SECOND 1e12

/* Return how the bytes of the call n travel, if it has so many. */
step_way mgrid_step_way_of(const step_pricing *p, int32_t type, const step_node *n, int64_t bytes);
/* Return the seconds of a compute. */
double mgrid_step_work_of(const step_pricing *p, const step_node *n);
int64_t mgrid_step_ticks(double seconds); /* in picoseconds */
/* Refuse computes with flops if the flops of a GPU are not known, and calls over levels whose
** bandwidth is not known. */
mgrid_status mgrid_step_priceable(const step_pricing *p, mgrid_error *err);

/* ------------------------------------------------------------------ price.c */

/* What all groups of a family send out of the domains of a level. A call counts once for each group
** that is in several domains. */
typedef struct step_crossing {
  double calls, bytes;
} step_crossing;

typedef struct step_busiest {
  int level; /* -1: nothing travels */
  int64_t domain;
  /* bytes that leave the domain; their time at the bandwidth of the level, 0: not known */
  double bytes, seconds;
} step_busiest;

/* One bar of a chart: an operation on a stream of a type. */
typedef struct step_record {
  int32_t type, stream;
  uint32_t node;
  int32_t by; /* the type that came last; the others waited for it */
  /* the operation waited from `began` to `moved`, and took from `moved` to `ended` */
  int64_t began, moved, ended;
} step_record;

/* The time from `from` to `to` was not executed: in it the iterations just before `from` repeat
** `times` times. */
typedef struct step_repeat {
  int64_t from, to, times;
} step_repeat;

enum { STEP_RECORDS_MAX = 1 << 21 };
typedef struct step_records {
  size_t n, room, nrepeats;
  step_record *record; /* of a price: sorted by `moved` */
  step_repeat *repeat;
  size_t every; /* repeated iterations are skipped only after so many records */
  bool full;    /* there were more than STEP_RECORDS_MAX; the rest is left out */
} step_records;
void mgrid_step_records_free(step_records *r);

typedef struct step_use { /* time of a type: seconds in a price, picoseconds in a clock */
  /* hidden: in calls that run while something computes; exposed: in other calls */
  double compute, hidden, exposed;
} step_use;

typedef struct step_family_price {
  double seconds; /* seconds in calls, without waiting: the maximum over ranks */
  /* for each kind of call the algorithm that takes the longest; NULL: the kind does not occur */
  const char *way[STEP_CALLS];
  double most[STEP_CALLS]; /* the time that it takes */
} step_family_price;

typedef struct step_price {
  step_pricing by;
  double seconds;
  step_use mean;             /* mean over all ranks */
  step_family_price *family; /* [entries] */
  step_crossing *crossing;   /* [entries * levels] */
  step_busiest busiest;
} step_price;

/* How a loop in which no rank waits is executed: iteration by iteration (STEP_IN_FULL), as one
** operation (STEP_IN_SHORT), or as one operation only if the step has more than 100,000 operations
** (STEP_AS_NEEDED). The time of the step is the same. But if a loop is one operation, it is only
** estimated how much of its calls runs at the same time as computes of other streams. */
typedef enum step_detail { STEP_IN_FULL, STEP_AS_NEEDED, STEP_IN_SHORT } step_detail;

/* Price a step. MGRID_UNPROVED: some rank does not reach its end. `records`: what happens when, for
** pictures; NULL: not needed. */
mgrid_status mgrid_step_price_of(const mgrid_step *s, const mgrid_machine_model *m,
                                 const step_costs *costs, step_detail detail, step_records *records,
                                 step_price *out, mgrid_error *err);
void mgrid_step_price_free(step_price *p);

/* ----------------------------------------------------------------- report.c */

/* Return an object with the fields "families" and "memory" of a step, and unless `price` is NULL
** with the fields of the price. Return NULL with *err after an error. */
json_t *mgrid_step_report(const mgrid_step *s, const step_price *price, mgrid_error *err);
/* Price a step with the options of mgrid_step_price. `records`: what happens when; NULL: not
** needed. */
mgrid_status mgrid_step_price_with(const mgrid_step *s, const mgrid_machine_model *m,
                                   const mgrid_step_price_options *given, step_records *records,
                                   step_price *out, mgrid_error *err);

#endif
