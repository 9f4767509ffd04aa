/* SPDX-License-Identifier: MIT
**
** chart.h - what happens when in a step, as pictures: a row for each stream of each type of ranks. chart.c makes the rows of
** the records of an execution; chart_svg.c, chart_html.c and chart_trace.c write them.
*/
#ifndef MGRID_STEP_CHART_H
#define MGRID_STEP_CHART_H

#include "base/base.h"

enum { CHART_KINDS_MAX = 24, CHART_PARTS_MAX = 8 };

typedef enum chart_sort { CHART_COMPUTES, CHART_MOVES, CHART_WAITS } chart_sort;

typedef struct chart_kind { /* what has a colour: computes of a name, calls over a family, waiting */
  const char *name;         /* borrowed from the step */
  chart_sort  sort;
  int         colour; /* of its sort */
} chart_kind;

typedef struct chart_text { /* an entry of a program */
  char  *text;              /* "all_reduce(tp) of 16.0 MiB, line 12" */
  int    nparts;
  int    kind[CHART_PARTS_MAX]; /* a loop that was taken as one has several, */
  double share[CHART_PARTS_MAX];
} chart_text;

typedef struct chart_bar {
  double  began, from, to; /* seconds; it waited from `began` to `from` */
  int32_t text, by;        /* by: the row of the type that came last; -1: nobody was waited for */
} chart_bar;

typedef struct chart_row {
  char       *label;  /* "pp 3" */
  const char *stream; /* borrowed; "main" */
  int32_t     type;
  int64_t     rank, ranks; /* the lowest; how many are alike */
  size_t      n;
  chart_bar  *bar; /* [n], by `from` */
} chart_row;

typedef struct chart_gap { /* rounds that were not executed one by one */
  double  from, to;
  int64_t times;
} chart_gap;

typedef struct chart {
  double      seconds;
  size_t      nrows, ntexts, ngaps;
  int         nkinds;
  chart_row  *row;
  chart_text *text;
  chart_gap  *gap;
  chart_kind  kind[CHART_KINDS_MAX];
  bool        cut;                      /* some of the step is left out: there was too much */
  char       *title, *settings, *about; /* "step of megatron over 64 ranks", "tp=8 pp=4"; its time, in a sentence */
  chart_bar  *bars;                     /* of all rows */
} chart;

struct step_price;
struct step_records;
mgrid_status mgrid_chart_make(const struct step_price *p, const struct step_records *r, const char *title,
                              const char *settings, chart *out, mgrid_error *err);
void         mgrid_chart_free(chart *c);

/* Append the picture. `page` is chart.html with its script. */
void mgrid_chart_svg(const chart *c, mgrid_text *out);
void mgrid_chart_html(const chart *c, const char *page, mgrid_text *out);
void mgrid_chart_trace(const chart *c, mgrid_text *out);
/* The colour of a kind, "#8db8e3". */
const char *mgrid_chart_colour(const chart_kind *k);
/* Append a time with a unit: "12.3 ms". */
void mgrid_chart_seconds(double seconds, mgrid_text *t);

#endif
