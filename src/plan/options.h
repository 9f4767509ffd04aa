/* SPDX-License-Identifier: MIT
**
** options.h - what a family may ask of its communicators: the table of options, and the record of what
** one family asks. A record is made once, where a family gets its options, and never changes; topology,
** plan, the communicators and the backends point to it. Everything that reads, writes, compares or
** documents options goes through the table.
*/
#ifndef MGRID_OPTIONS_H
#define MGRID_OPTIONS_H

#include "plan/backends.h"

#include <stdatomic.h>

/* What the field of mgrid_options is; the value in parentheses says that the option is not given. */
typedef enum mgrid_option_kind {
  MGRID_OPTION_FLAG,    /* bool (false) */
  MGRID_OPTION_SECONDS, /* double (0), above 0 and up to 1e9; kept in whole microseconds */
  MGRID_OPTION_WORD,    /* const char * (""), one of `words` */
  MGRID_OPTION_FIELDS   /* const char * (""), fields of ncclConfig_t: plan/nccl.h. At most one row */
} mgrid_option_kind;

typedef struct mgrid_option {
  const char       *name; /* in Lua, in text and in JSON; NULL ends the table */
  mgrid_option_kind kind;
  size_t            offset;             /* of its field in mgrid_options */
  size_t (*words)(const char *words[]); /* writes them, at most MGRID_WORDS_MAX, and returns how many */
  bool        apart;                    /* families that differ in it do not share a communicator */
  const char *backends;                 /* who heeds it: "all", or names */
  const char *unset;                    /* what holds where it is not given */
  const char *doc;                      /* one line that begins in lower case */
} mgrid_option;

enum { MGRID_OPTIONS_MAX = 32, MGRID_WORDS_MAX = MGRID_BACKENDS_MAX }; /* rows, at most; words of one */
extern const mgrid_option mgrid_option_table[]; /* in the order in which options are read and written */

/* The field of a row: a bool *, double * or const char **; to be written only where *o may be. */
static inline void *mgrid_option_at(const mgrid_options *o, const mgrid_option *row) {
  return (char *)(uintptr_t)o + row->offset;
}

/* What a family asks: mgrid_options checked, in one canonical form, and owned. Immutable and counted. */
typedef struct mgrid_choice {
  atomic_int              refs;
  mgrid_options           asked;    /* strings are not NULL; seconds are whole microseconds; nccl is by name */
  mgrid_nccl_values       nccl;     /* asked.nccl, parsed */
  const mgrid_descriptor *backend;  /* asked.backend, looked up; NULL: the state's own */
  const char             *text;     /* " unique timeout_us=600000000 nccl{max_ctas=16}", "" for the defaults */
  const char             *identity; /* the same of the options that keep families apart */
} mgrid_choice;

/* Of what a C program wrote; `given` NULL: nothing. *out is the caller's, NULL on failure. MGRID_REFUSED
** names the option, MGRID_USAGE: without MGRID_OPTIONS_INIT. */
mgrid_status mgrid_choice_new(const mgrid_options *given, mgrid_choice **out, mgrid_error *err);
/* Of values that are parsed already; o->nccl is not looked at. */
mgrid_status mgrid_choice_make(const mgrid_options *o, const mgrid_nccl_values *nccl, mgrid_choice **out,
                               mgrid_error *err);
/* The same with `unique`. */
mgrid_status  mgrid_choice_unique(const mgrid_choice *c, mgrid_choice **out, mgrid_error *err);
mgrid_choice *mgrid_choice_ref(const mgrid_choice *c); /* another owner; never fails; NULL gives NULL */
void          mgrid_choice_free(mgrid_choice *c);
/* Is this option given? */
bool mgrid_choice_has(const mgrid_choice *c, const mgrid_option *row);
/* May two families with these options share a communicator? */
bool mgrid_choice_shares(const mgrid_choice *a, const mgrid_choice *b);

#endif
