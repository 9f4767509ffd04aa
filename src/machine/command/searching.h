/* SPDX-License-Identifier: MIT
**
** searching.h - a search for the order that costs least, for the files of place --search order alone.
*/
#ifndef MGRID_MACHINE_SEARCHING_H
#define MGRID_MACHINE_SEARCHING_H

#include "machine/assign.h"
#include "machine/command/search.h"
#include "machine/command/sending.h"

#include <jansson.h>

enum {
  WHOLE = 50000,   /* combinations that are all evaluated */
  MANY = 100000,   /* those of a branch and bound */
  LISTED = 362880, /* orders of 9 dims; of 10, every tenth */
  DIMS = 10,
  BEST = 10,
  FREE = 16,
  STARTS = 6,
  ROUNDS = 200,
};

typedef struct free_param {
  const char *name;
  size_t      n;
  char      **value;
} free_param;

/* What a cost is compared by first. */
typedef enum goal { GOAL_BYTES, GOAL_TIME, GOAL_POLICY } goal;

typedef struct found {
  mgrid_cost cost;
  double     value;    /* of the policy */
  size_t     at[FREE]; /* the value of each parameter */
} found;

typedef struct search {
  const cli_search    *s;
  const cli           *c;
  mgrid_runtime       *rt;
  sending              sends;
  mgrid_costing        costing;
  goal                 goal;
  size_t               n;
  free_param           param[FREE];
  int                  order;                    /* which of them is the order; -1: none */
  bool                 sampled;                  /* not all of its orders are listed */
  const char          *arg[CLI_ARGS_MAX + FREE]; /* those that are fixed, then the free ones */
  size_t               nfixed;
  size_t               nbest;
  found                best[BEST + 1];  /* the last may be the present one, which is always there */
  found                now;             /* the present values: the defaults, or those that are listed first */
  bool                 listed;          /* some of them are no defaults */
  bool                 looked, has_now; /* it was evaluated; the recipe takes it */
  double               until;           /* when to stop, on the clock of mgrid_now; 0: never */
  double               first_seconds, now_seconds; /* of their steps, where bytes count; -1: not known */
  bool                 stopped;
  int64_t              evaluated, refused;
  double               all, pruned; /* combinations; those whose sizes cost more at least, whatever the order */
  mgrid_cost           least;       /* no combination has fewer bytes than its .bound; .n 0: not known */
  mgrid_machine_model *own;         /* the machine, if the recipe says it */
  mgrid_assignment     hosts;       /* of the best plan; host NULL: there is nothing to assign */
  mgrid_machine_model *with_hosts;  /* the machine with its ranks on them */
  mgrid_cost           arrival, sorted, assigned; /* as they are listed, in the order of places, as found */
  mgrid_error          refusal;                   /* the first one */
  bool                 whole;
} search;

/* Choose what is free: the lists on the command line, and what the recipe declares; `params` describes its parameters. */
mgrid_status cli_search_free(search *x, const json_t *params, mgrid_error *err);
mgrid_status cli_search_json(const search *x, mgrid_error *err);
void         cli_search_text(const search *x);
/* Are these the present values? */
bool cli_search_is_now(const search *x, const found *f);

#endif
