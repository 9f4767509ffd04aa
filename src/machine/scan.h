/* SPDX-License-Identifier: MIT
**
** scan.h - reads the text of a machine from left to right: words and numbers. After the first fault nothing is read, so
** that a reader of many pieces looks at `failed` once, at their end.
*/
#ifndef MGRID_SCAN_H
#define MGRID_SCAN_H

#include "base/base.h"

typedef struct mgrid_scan {
  const char   *begin, *at, *end; /* the text, which no 0 ends, and where the next piece begins */
  mgrid_error  *err;              /* gets the first fault */
  mgrid_budget *budget;           /* of what is made of the text */
  bool          failed;           /* the error is in *err, or the budget is exhausted */
} mgrid_scan;

static inline mgrid_scan mgrid_scan_begin(const char *text, size_t len, mgrid_budget *budget, mgrid_error *err) {
  return (mgrid_scan){ text, text, text + len, err, budget, false };
}

/* MGRID_BAD_VALUE: "character 12: `expected` expected, not 'x y'". */
void mgrid_scan_fault(mgrid_scan *s, const char *expected);
/* Does this text come next? _take: then skip it. */
bool mgrid_scan_next(const mgrid_scan *s, const char *text);
bool mgrid_scan_take(mgrid_scan *s, const char *text);
/* A number, 0 or more; 0 after a fault. */
int64_t mgrid_scan_number(mgrid_scan *s);
/* A name of a level; "" after a fault. */
void mgrid_scan_name(mgrid_scan *s, char name[MGRID_NAME_MAX + 1]);
#endif
