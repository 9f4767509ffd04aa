/* SPDX-License-Identifier: MIT
**
** anew.h - the error of one call alone.
*/
#ifndef TEST_ANEW_H
#define TEST_ANEW_H

#include "moongrid.h"

/* The error, empty again: the first one of a chain would stay, and a test looks at that of one
** call. */
static inline mgrid_error *anew(mgrid_error *e) {
  mgrid_error_clear(e);
  return e;
}

#endif
