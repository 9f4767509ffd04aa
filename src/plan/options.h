/* SPDX-License-Identifier: MIT
**
** options.h - options of families: the table of all options, and the record of the options of one family. A record is
** made once, when a family gets its options, and never changes. Topology, plan, communicators and backends point to it.
** Everything that reads, writes, compares or documents options uses the table.
*/
#ifndef MGRID_OPTIONS_H
#define MGRID_OPTIONS_H

#include "base/base.h"
#include "plan/backend_row.h"
#include "plan/numbers.h"
#include "plan/cartesian.h"

#include <stdatomic.h>

/* Type of the field in mgrid_options; in parentheses the value when the option is not given. */
typedef enum mgrid_option_kind {
  MGRID_OPTION_FLAG,    /* bool (false) */
  MGRID_OPTION_SECONDS, /* double (0), above 0 and up to 1e9; kept in whole microseconds */
  MGRID_OPTION_WORD,    /* const char * (""), one of `words` */
  MGRID_OPTION_FIELDS,  /* const char * (""), fields of ncclConfig_t: plan/nccl.h. At most one row */
  MGRID_OPTION_SHAPE,   /* const char * (""), dims of a grid: plan/cartesian.h. At most one row */
  MGRID_OPTION_NUMBERS, /* const char * (""), named numbers: plan/numbers.h */
  MGRID_OPTION_NAME     /* const char * (""), the name of another family */
} mgrid_option_kind;

typedef struct mgrid_option {
  const char       *name; /* in Lua, in text and in JSON; NULL ends the table */
  mgrid_option_kind kind;
  size_t            offset;             /* of its field in mgrid_options */
  size_t (*words)(const char *words[]); /* of a WORD: write them, at most MGRID_WORDS_MAX; return how many */
  const mgrid_number_rule *rules;       /* of NUMBERS */
  bool                     apart;       /* families that differ in it do not share a communicator */
  const char              *unset;       /* text: the value that applies when it is not given */
  const char              *doc;         /* one line that starts in lower case */
} mgrid_option;

enum { MGRID_OPTIONS_MAX = 32, MGRID_WORDS_MAX = MGRID_BACKENDS_MAX + 1 }; /* limits: rows, words of one row */
extern const mgrid_option mgrid_option_table[]; /* in the order in which options are read and written */

/* Return the address of the row's field in *o: a bool *, double * or const char **. Write there only if you own *o. */
static inline void *mgrid_option_at(const mgrid_options *o, const mgrid_option *row) {
  return (char *)(uintptr_t)o + row->offset;
}

/* Options of one family: mgrid_options checked, in canonical form, strings owned. Immutable and counted. */
typedef struct mgrid_choice {
  atomic_int              refs;
  mgrid_options           asked; /* strings are not NULL; seconds are whole microseconds; nccl is sorted by name */
  mgrid_nccl_values       nccl;  /* asked.nccl, parsed */
  mgrid_shape            *shape; /* asked.cartesian, parsed; NULL: none; so are the next two */
  mgrid_numbers          *windows, *device;
  int                     lane;    /* families of a plan in different lanes share nothing: plan/concurrent.c */
  bool                    none;    /* asked.backend is "none": the family never gets a communicator */
  const mgrid_descriptor *backend; /* asked.backend, looked up; NULL: the backend of the state, or `none` */
  const char             *text; /* canonical: " unique timeout_us=600000000 nccl{max_ctas=16}", "" for the defaults */
  const char             *identity; /* the same for the options that keep families apart */
} mgrid_choice;

/* Make a record from the struct of a C program; `given` NULL: the defaults. The caller owns *out, which is NULL on
** failure. The message names the option. MGRID_BAD_STRUCT: MGRID_OPTIONS_INIT was not used. */
mgrid_status mgrid_choice_new(const mgrid_options *given, mgrid_choice **out, mgrid_error *err);
/* The same with values of `nccl` that are already parsed; o->nccl is not read. */
mgrid_status mgrid_choice_make(const mgrid_options *o, const mgrid_nccl_values *nccl, mgrid_choice **out,
                               mgrid_error *err);
/* Copy a record with `unique`; _shapeless: without `cartesian` and `parent`. */
mgrid_status mgrid_choice_unique(const mgrid_choice *c, mgrid_choice **out, mgrid_error *err);
mgrid_status mgrid_choice_shapeless(const mgrid_choice *c, mgrid_choice **out, mgrid_error *err);
/* Copy a record into another lane, with high priority if `urgent`. */
mgrid_status  mgrid_choice_in_lane(const mgrid_choice *c, int lane, bool urgent, mgrid_choice **out, mgrid_error *err);
mgrid_choice *mgrid_choice_ref(const mgrid_choice *c); /* another owner; never fails; NULL gives NULL */
void          mgrid_choice_free(mgrid_choice *c);
/* Return whether this option is given. */
bool mgrid_choice_has(const mgrid_choice *c, const mgrid_option *row);
/* Return whether two families with these options may share a communicator. Never if one of them gets none. */
bool mgrid_choice_shares(const mgrid_choice *a, const mgrid_choice *b);

#endif
