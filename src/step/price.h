/* SPDX-License-Identifier: MIT
**
** price.h - what a step costs on a machine. operations.c has how long a call takes,
** costs.c what is known beside the machine; clock.c runs the step in time; price.c finds how the
** groups lie on the machine and what crosses each level, and makes the answer of these.
*/
#ifndef MGRID_STEP_PRICE_H
#define MGRID_STEP_PRICE_H

#include "machine/model.h"
#include "step/step.h"

#include <jansson.h>

/* ------------------------------------------------------------------ costs.c */

enum { STEP_RATES_MAX = 256, STEP_MEASURED_MAX = 256 };

/* A measured share of a level's bandwidth, for calls of so many bytes. */
typedef struct step_rate {
  step_kind kind; /* STEP_KINDS: every one */
  int level;      /* of the machine; -1: every one */
  double bytes, share;
} step_rate;

/* A call that somebody measured, of a group with one member in each domain of a level. */
typedef struct step_measured {
  step_kind kind;
  int level;
  double members, bytes, seconds;
} step_measured;

typedef struct step_fit { /* of a level to what was measured */
  size_t n;               /* 0: nothing was */
  double latency, share;  /* of a hop; of the bandwidth */
  double median, worst;   /* relative errors */
} step_fit;

/* What is known beside the text of a machine. */
typedef struct step_costs {
  double flops;    /* of a GPU in a second; 0: not known */
  double start;    /* seconds of each compute with flops beside these */
  double memory;   /* bytes that it reads or writes in a second; 0: computes do not wait for them */
  double capacity; /* bytes of its memory; 0: not known */
  double beside;   /* bytes of it that a rank holds beside what the step says */
  double error;    /* mean relative error of measured steps; 0: not known */
  double call;     /* seconds before anything travels; below 0: the default of the rules */
  double latency[MGRID_LEVELS_MAX]; /* of each level */
  int nvlink;                       /* the level whose domains NVLink connects; -1: not known */
  bool nvls;                        /* its switches reduce */
  int64_t eager;
  bool mpi;
  size_t nrates;
  step_rate rate[STEP_RATES_MAX]; /* by kind, level, bytes */
  step_fit fit[MGRID_LEVELS_MAX];
  char source[256]; /* of the rates and flops; "": the machine's data sheet */
} step_costs;

/* Fill in what the machine says and what is usual; then what `text`, JSON, says (NULL: nothing).
** README.md has its keys. */
mgrid_status mgrid_step_costs_of(const mgrid_machine_model *m, bool mpi, const char *text,
                                 step_costs *out, mgrid_error *err);
/* Append the JSON text of such a file. Of the file of a machine (`machine`) the key "costs", if it
** is JSON and has one. */
mgrid_status mgrid_step_costs_file(const char *path, bool machine, mgrid_text *t, mgrid_error *err);

/* Fit the latency of a hop and the share of the bandwidth to calls over one level. */
void mgrid_step_fit(const step_measured *all, size_t n, double call, double bandwidth,
                    step_fit *out);

/* ---------------------------------------------------------- price.c: shapes */

/* How a group lies in the domains of a level. */
typedef struct step_reach {
  int32_t domains;     /* that it touches */
  int32_t least, most; /* of its members in one of them */
  int32_t share;       /* groups of its family that leave one of them, too: at most */
} step_reach;

typedef struct step_shape {
  int64_t size;
  step_reach at[MGRID_LEVELS_MAX]; /* by level, the farthest first */
  /* [levels * size]: domains of the positions, numbered as they come; NULL: nothing goes by
  ** position */
  int32_t *where;
} step_shape;

typedef struct step_shapes {
  size_t n;
  step_shape *shape;
  int32_t *of;                       /* [types * slots]: the shape of the type's group; -1: none */
  int32_t *where;                    /* of all */
  int32_t *domain[MGRID_LEVELS_MAX]; /* [world], of each level but the last */
  int64_t domains[MGRID_LEVELS_MAX];
} step_shapes;

/* ------------------------------------------------------------- operations.c */

/* A step on a machine. */
typedef struct step_pricing {
  const mgrid_step *s;
  const mgrid_machine_model *m;
  step_rules rules;
  step_costs costs;
  step_types types;
  step_shapes shapes;
} step_pricing;

typedef struct step_way { /* how a call travels */
  double seconds;
  const char *algorithm; /* "ring" */
  int level;             /* the farthest that it crosses */
} step_way;

/* times are integers of picoseconds, so that a round takes as long as the one before */
#define STEP_SECOND 1e12

/* How a call of so many bytes travels; and how long an entry that computes takes. In seconds. */
step_way mgrid_step_way_of(const step_pricing *p, int32_t type, const step_node *n, int64_t bytes);
double mgrid_step_work_of(const step_pricing *p, const step_node *n);
int64_t mgrid_step_ticks(double seconds); /* picoseconds */
/* Refuse computes whose rate is not known, and calls over levels whose bandwidth is not. */
mgrid_status mgrid_step_priceable(const step_pricing *p, mgrid_error *err);

/* ------------------------------------------------------------------ price.c */

/* What a family does on a level, over all its groups; a call counts once, where a group crosses. */
typedef struct step_crossing {
  double calls, bytes; /* that leave domains */
} step_crossing;

typedef struct step_busiest {
  int level; /* -1: nothing travels */
  int64_t domain;
  double bytes, seconds; /* out of the domain; at the level's bandwidth, 0: not known */
} step_busiest;

/* One stretch of a chart: an operation of a type's stream. */
typedef struct step_record {
  int32_t type, stream;
  uint32_t node;
  int32_t by;                  /* the type that came last, for which the others waited */
  int64_t began, moved, ended; /* it waited from `began`, and worked from `moved` */
} step_record;

/* a stretch of time that was not executed: what came before it happens again and again */
typedef struct step_repeat {
  int64_t from, to, times;
} step_repeat;

enum { STEP_RECORDS_MAX = 1 << 21 };
typedef struct step_records {
  size_t n, room, nrepeats;
  step_record *record; /* in the order of `moved` */
  step_repeat *repeat;
  size_t every; /* so many are recorded before rounds are skipped */
  bool full;    /* more than STEP_RECORDS_MAX: the rest is left out */
} step_records;
void mgrid_step_records_free(step_records *r);

typedef struct step_use {          /* of the time of a type; seconds */
  double compute, hidden, exposed; /* hidden: calls that travel while something computes */
} step_use;

typedef struct step_family_price {
  double seconds; /* in calls, without waiting, of the rank with the most */
  /* the algorithm of each operation with the most time; NULL: it does not occur */
  const char *way[STEP_KINDS];
  double most[STEP_KINDS];
} step_family_price;

typedef struct step_price {
  step_pricing by;
  double seconds;
  step_use mean;             /* of all ranks */
  step_use *use;             /* [types] */
  step_family_price *family; /* [entries] */
  step_crossing *crossing;   /* [entries * levels] */
  step_busiest busiest;
} step_price;

/* Whether loops of a stream in which nobody waits are taken as one operation. Times do not depend
** on that; which share of their calls travels next to computes of other streams is then an
** estimate. */
/* as needed: of large steps */
typedef enum step_detail { STEP_IN_FULL, STEP_AS_NEEDED, STEP_IN_SHORT } step_detail;

/* Price a step. It must be proved under the rules. `records`: what happens when, for pictures;
** NULL: not needed. */
mgrid_status mgrid_step_price_of(const mgrid_step *s, const mgrid_machine_model *m,
                                 const step_costs *costs, step_detail detail, step_records *records,
                                 step_price *out, mgrid_error *err);
void mgrid_step_price_free(step_price *p);

/* ----------------------------------------------------------------- report.c */

/* Return "families" and "memory" of a step, and with a price all that it has; NULL with *err. */
json_t *mgrid_step_report(const mgrid_step *s, const step_price *price, mgrid_error *err);
/* As mgrid_step_price, whole. `records`: what happens when; NULL: not needed. */
mgrid_status mgrid_step_price_with(const mgrid_step *s, const mgrid_machine_model *m,
                                   const mgrid_step_price_options *given, step_records *records,
                                   step_price *out, mgrid_error *err);

#endif
