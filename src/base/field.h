/* SPDX-License-Identifier: MIT
**
** field.h - reads JSON that this library wrote, but that may have been changed. A field knows its
** place in the JSON for messages: "rules[3].rule.of: a number from 0 to 7 expected, not 9". After
** the first fault the functions read nothing more. So a caller that reads many fields checks
** `failed` once, at the end.
*/
#ifndef MGRID_FIELD_H
#define MGRID_FIELD_H

#include "base/base.h"

#include <jansson.h>

typedef struct mgrid_fields { /* of one JSON text */
  mgrid_error *err;           /* gets the first fault; not NULL */
  mgrid_budget *budget;       /* pays for what is made from the text */
  bool failed;
} mgrid_fields;

typedef struct mgrid_field {
  mgrid_fields *all;
  /* the list or object around this field; NULL: the field is the whole text */
  const struct mgrid_field *in;
  const char *name; /* its key, if it is in an object */
  size_t index;     /* its index, if it is in a list */
  const json_t *v;  /* NULL: there is no such field */
} mgrid_field;

/* Return whether brackets in a text of JSON are nested more than `most` deep. Jansson needs stack
** for each level, and a thread has enough for MGRID_JSON_DEEP. 64 nested families need 2 levels
** each. */
enum { MGRID_JSON_DEEP = 200 };
bool mgrid_json_deep(const char *text, size_t length, int most);

/* Report a fault: MGRID_BAD_VALUE, "PLACE: `expected` expected, not 9". */
void mgrid_field_fault(const mgrid_field *f, const char *expected);
/* Report that nothing could be made from the field. If all->err has an error, put the place of the
** field before its message; if not, the budget is exhausted. */
void mgrid_field_fail(const mgrid_field *f);
/* Return whether to go on: nothing has failed, and the budget has `work` left. */
bool mgrid_field_spend(const mgrid_field *f, int64_t work);

/* Return a field of an object. The result points to *f, which must outlive it. */
mgrid_field mgrid_field_of(const mgrid_field *f, const char *name);
/* Return an element of a list. The result points to *f, too. */
mgrid_field mgrid_field_at(const mgrid_field *f, size_t i);
/* Report a fault if the field is not an object, or has a field that is not among `names`. Blanks
** separate the names. */
void mgrid_field_only(const mgrid_field *f, const char *names);
/* Return the length of a list. The length must be from low to high. 0 after a fault. */
size_t mgrid_field_list(const mgrid_field *f, size_t low, size_t high);
/* Return a whole number from low to high; 0 after a fault. */
int64_t mgrid_field_number(const mgrid_field *f, int64_t low, int64_t high);
/* Return a boolean; false if there is no such field. */
bool mgrid_field_flag(const mgrid_field *f);
/* Return a text; "" after a fault. */
const char *mgrid_field_text(const mgrid_field *f);
/* Return a list of numbers, which the caller frees; NULL and *n 0 after a fault. */
int64_t *mgrid_field_numbers(const mgrid_field *f, int64_t low, int64_t high, size_t *n);

#endif
