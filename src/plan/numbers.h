/* SPDX-License-Identifier: MIT
**
** numbers.h - an option whose value is a set of named numbers: the windows of a family, and the contents of its device
** communicator.
*/
#ifndef MGRID_NUMBERS_H
#define MGRID_NUMBERS_H

#include "families/grid.h"

enum { MGRID_NUMBERS_MAX = 16 };

/* The range of a number. The last rule has no name; if it has a range, any other name is allowed, too. */
typedef struct mgrid_number_rule {
  const char *name;
  int64_t     low, high;
} mgrid_number_rule;
extern const mgrid_number_rule mgrid_window_rules[], mgrid_device_rules[];

typedef struct mgrid_number {
  char    name[MGRID_NAME_MAX + 1];
  int64_t value;
} mgrid_number;

typedef struct mgrid_numbers {
  size_t       n;
  mgrid_number at[MGRID_NUMBERS_MAX]; /* by name */
} mgrid_numbers;

/* Read "grads=1048576 kv=4194304" in any order, separated by blanks or commas, each name once. "" and NULL: none, *out
** becomes NULL. `option` is the name in messages. Release the result with free. */
mgrid_status mgrid_numbers_read(const char *text, const char *option, const mgrid_number_rule *rules,
                                mgrid_numbers **out, mgrid_error *err);
/* Write the same in canonical form: by name, separated by one blank. */
void mgrid_numbers_text(const mgrid_numbers *n, mgrid_text *t);
/* Return the number of that name, or 0. n may be NULL. */
int64_t mgrid_numbers_of(const mgrid_numbers *n, const char *name);

#endif
