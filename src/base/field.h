/* SPDX-License-Identifier: MIT
**
** field.h - reads JSON that this library wrote, or that says so. A field knows its place, for
** messages: "rules[3].rule.of: a number from 0 to 7 expected, not 9". After the first fault nothing
** is read, so that a reader of many fields looks at `failed` once, at their end.
*/
#ifndef MGRID_FIELD_H
#define MGRID_FIELD_H

#include "base/base.h"

#include <jansson.h>

typedef struct mgrid_fields { /* of one JSON text */
  mgrid_error *err;           /* gets the first fault; not NULL */
  mgrid_budget *budget;       /* of what is made of it */
  bool failed;
} mgrid_fields;

typedef struct mgrid_field {
  mgrid_fields *all;
  const struct mgrid_field *in; /* the list or object around it; NULL: it is the whole */
  const char *name;             /* in an object */
  size_t index;                 /* in a list */
  const json_t *v;              /* NULL: it is not there */
} mgrid_field;

/* Return whether a text of JSON nests more brackets than `most`. Jansson takes stack for each, and
** a thread has room for MGRID_JSON_DEEP. 64 nested families take 2 each. */
enum { MGRID_JSON_DEEP = 200 };
bool mgrid_json_deep(const char *text, size_t length, int most);

/* MGRID_BAD_VALUE: "PLACE: `expected` expected, not 9". */
void mgrid_field_fault(const mgrid_field *f, const char *expected);
/* Something could not be made of it: the error is in all->err already and gets the place, or the
** budget is exhausted. */
void mgrid_field_fail(const mgrid_field *f);
/* Return whether the reading goes on: nothing failed, and the budget has `work` more. */
bool mgrid_field_spend(const mgrid_field *f, int64_t work);

/* Return a field of an object. It lies in *f, which must outlive it. */
mgrid_field mgrid_field_of(const mgrid_field *f, const char *name);
/* Return an element of a list likewise. */
mgrid_field mgrid_field_at(const mgrid_field *f, size_t i);
/* It is a fault if it is not an object, or has other fields than these, which are separated by
** blanks. */
void mgrid_field_only(const mgrid_field *f, const char *names);
/* Return the length of a list of low to high elements; 0 after a fault. */
size_t mgrid_field_list(const mgrid_field *f, size_t low, size_t high);
/* Return a whole number; 0 after a fault. */
int64_t mgrid_field_number(const mgrid_field *f, int64_t low, int64_t high);
/* Return a boolean; false where it is not there. */
bool mgrid_field_flag(const mgrid_field *f);
/* Return a text; "" after a fault. */
const char *mgrid_field_text(const mgrid_field *f);
/* Return a list of numbers, which the caller frees; NULL and *n 0 after a fault. */
int64_t *mgrid_field_numbers(const mgrid_field *f, int64_t low, int64_t high, size_t *n);

#endif
