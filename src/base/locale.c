/* SPDX-License-Identifier: MIT
**
** locale.c - the plain locale. A host may call setlocale, for its own users; what a recipe means must not change
** with it: a decimal comma, another order of letters, another upper case.
*/
#include "base/base.h"

#include <locale.h>

/* "C" is a constant of the C library: getting it allocates nothing and cannot fail. Where it does in spite of that,
** uselocale changes nothing. */
mgrid_locale mgrid_locale_plain(void) {
  return (mgrid_locale){ (void *)uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)) };
}

void mgrid_locale_back(mgrid_locale of) { uselocale((locale_t)of.was); }
