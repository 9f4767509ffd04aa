/* SPDX-License-Identifier: MIT
**
** options.h - options of families: the table of all options, and the record of the options of one
** family. A record is made once, when a family gets its options, and never changes. Topology, plan,
** communicators and backends point to it. Whatever reads, writes, compares or documents options
** uses the table.
*/
#ifndef MGRID_OPTIONS_H
#define MGRID_OPTIONS_H

#include "families/grid.h"
#include "plan/backend_row.h"

#include <stdatomic.h>

/* ----------------------------------------------------------- option_values.c */

/* The value of an option that is a set of named numbers: the windows of a family, or the contents
** of its device communicator. */
enum { MGRID_NUMBERS_MAX = 16 };

/* A name and the range of its number. The last rule has no name; if it has a range, any other name
** is allowed, too. */
typedef struct mgrid_number_rule {
  const char *name;
  int64_t low, high;
} mgrid_number_rule;
extern const mgrid_number_rule mgrid_window_rules[], mgrid_device_rules[];

typedef struct mgrid_number {
  char name[MGRID_NAME_MAX + 1];
  int64_t value;
} mgrid_number;

typedef struct mgrid_numbers {
  size_t n;
  mgrid_number at[MGRID_NUMBERS_MAX]; /* sorted by name */
} mgrid_numbers;

/* Read "grads=1048576 kv=4194304": in any order, separated by blanks or commas, each name once. For
** "" and NULL, *out becomes NULL. `option` is the name in messages. Free the result with free. */
mgrid_status mgrid_numbers_read(const char *text, const char *option,
                                const mgrid_number_rule *rules, mgrid_numbers **out,
                                mgrid_error *err);
/* Write the numbers in canonical form: sorted by name, separated by one blank. */
void mgrid_numbers_text(const mgrid_numbers *n, mgrid_text *t);
/* Return the number of that name, or 0. n may be NULL. */
int64_t mgrid_numbers_of(const mgrid_numbers *n, const char *name);

/* A shape is the value of the option `cartesian`. The positions of each group form a grid, whose
** dims have names, sizes and periods. Dims go fastest first here and slowest first in MPI, so MPI's
** coordinates are these in reverse. */
typedef struct mgrid_side { /* one dim of a shape */
  char name[MGRID_NAME_MAX + 1];
  int64_t size;
  bool periodic; /* after its last coordinate comes the first */
} mgrid_side;

typedef struct mgrid_shape {
  int n;             /* dims, 1 to MGRID_DIMS_MAX */
  mgrid_side side[]; /* [n], fastest first */
} mgrid_shape;

/* Read "x:4:periodic y:2", separated by blanks or commas. For "" and NULL there is no shape: *out
** becomes NULL. Free the result with free. */
mgrid_status mgrid_shape_read(const char *text, mgrid_shape **out, mgrid_error *err);
/* Write the shape in canonical form: separated by one blank. */
void mgrid_shape_text(const mgrid_shape *s, mgrid_text *t);
/* Refuse a family whose groups do not have as many ranks as this shape. `name` is the family's
** name. Only sizes are compared, not which ranks are adjacent. O(1). */
mgrid_status mgrid_shape_fits(const mgrid_shape *s, const char *name, const mgrid_family *f,
                              mgrid_error *err);

/* Return the index of a dim, or -1 after filling *err. */
int mgrid_shape_find(const mgrid_shape *s, const char *dim, mgrid_error *err);
/* Return the coordinate of a position in dim i. */
int64_t mgrid_shape_coord(const mgrid_shape *s, int64_t position, int i);
/* Return the position `steps` further along dim i, or with `back` before it; -1 if that is
** outside. */
int64_t mgrid_shape_step(const mgrid_shape *s, int64_t position, int i, int64_t steps, bool back);

/* ----------------------------------------------------------------- options.c */

/* The type of the option's field in mgrid_options; in parentheses the value when the option is not
** given. */
typedef enum mgrid_option_kind {
  MGRID_OPTION_FLAG,    /* bool (false) */
  MGRID_OPTION_SECONDS, /* double (0), above 0 and up to 1e9; kept in whole microseconds */
  MGRID_OPTION_WORD,    /* const char * (""), one of `words` */
  /* const char * (""), fields of ncclConfig_t: plan/nccl_options.h. At most one row has it */
  MGRID_OPTION_FIELDS,
  MGRID_OPTION_SHAPE,   /* const char * (""), dims of a grid: mgrid_shape. At most one row has it */
  MGRID_OPTION_NUMBERS, /* const char * (""), mgrid_numbers */
  MGRID_OPTION_NAME     /* const char * (""), the name of another family */
} mgrid_option_kind;

typedef struct mgrid_option {
  const char *name; /* in Lua, in text and in JSON; NULL ends the table */
  mgrid_option_kind kind;
  size_t offset; /* of its field in mgrid_options */
  /* for a WORD: write its words, at most MGRID_WORDS_MAX, and return how many they are */
  size_t (*words)(const char *words[]);
  const mgrid_number_rule *rules; /* for NUMBERS */
  bool apart;                     /* families that differ in it do not share a communicator */
  const char *unset;              /* text: the value in effect when the option is not given */
  const char *doc;                /* one line that starts in lower case */
} mgrid_option;

enum {
  MGRID_OPTIONS_MAX = 32,                  /* rows of the table */
  MGRID_WORDS_MAX = MGRID_BACKENDS_MAX + 1 /* words of one row */
};
/* in the order in which options are read and written */
extern const mgrid_option mgrid_option_table[];

/* Return the address of the row's field in *o: a bool *, double * or const char **. Write to it
** only if you own *o. */
static inline void *mgrid_option_at(const mgrid_options *o, const mgrid_option *row) {
  return (char *)(uintptr_t)o + row->offset;
}

/* The record of one family's options. It has mgrid_options that are checked, in canonical form,
** with strings of its own. Immutable and reference-counted. */
typedef struct mgrid_choice {
  atomic_int refs;
  /* strings are not NULL; seconds are whole microseconds; nccl is sorted by name */
  mgrid_options asked;
  mgrid_nccl_values nccl; /* asked.nccl, parsed */
  mgrid_shape
      *shape; /* asked.cartesian, parsed. This field and the next two may be NULL: not given */
  mgrid_numbers *windows, *device;
  int lane;  /* families of a plan in different lanes share nothing: plan/concurrent.c */
  bool none; /* asked.backend is "none": the family never gets a communicator */
  /* the backend named by asked.backend; NULL: that of the state, or none is set */
  const mgrid_descriptor *backend;
  /* canonical: " unique timeout_us=600000000 nccl{max_ctas=16}", "" for the defaults */
  const char *text;
  const char *identity; /* the same, but only of the options that keep families apart */
} mgrid_choice;

/* Make a record from the struct of a C program; `given` NULL: the defaults. The caller owns *out,
** which is NULL on failure. The message names the option. MGRID_BAD_STRUCT: MGRID_OPTIONS_INIT was
** not used. */
mgrid_status mgrid_choice_new(const mgrid_options *given, mgrid_choice **out, mgrid_error *err);
/* As mgrid_choice_new, but the values of `nccl` are already parsed; o->nccl is not read. */
mgrid_status mgrid_choice_make(const mgrid_options *o, const mgrid_nccl_values *nccl,
                               mgrid_choice **out, mgrid_error *err);
/* Copy a record with `unique`. */
mgrid_status mgrid_choice_unique(const mgrid_choice *c, mgrid_choice **out, mgrid_error *err);
/* Copy a record without `cartesian` and `parent`. */
mgrid_status mgrid_choice_shapeless(const mgrid_choice *c, mgrid_choice **out, mgrid_error *err);
/* Copy a record into another lane, with high priority if `urgent`. */
mgrid_status mgrid_choice_in_lane(const mgrid_choice *c, int lane, bool urgent, mgrid_choice **out,
                                  mgrid_error *err);
/* Add an owner. Never fails; NULL gives NULL. */
mgrid_choice *mgrid_choice_ref(const mgrid_choice *c);
void mgrid_choice_free(mgrid_choice *c);
/* Return whether this option is given. */
bool mgrid_choice_has(const mgrid_choice *c, const mgrid_option *row);
/* Return whether two families with these options may share a communicator. They may not if one of
** them gets no communicator, or has the option unique, windows, device or parent; or if their
** `identity` differs. */
bool mgrid_choice_shares(const mgrid_choice *a, const mgrid_choice *b);

#endif
