/* SPDX-License-Identifier: MIT
**
** locale.c - switch to the C locale. A host may call setlocale for its users, but the meaning of a recipe must not change
** with it: no decimal comma, no other order or upper case of letters.
*/
#include "base/base.h"

#include <locale.h>

/* The C library's "C" locale is a constant: to get it allocates nothing and cannot fail. If it fails nevertheless,
** uselocale changes nothing. */
mgrid_locale mgrid_locale_plain(void) {
  return (mgrid_locale){ (void *)uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)) };
}

void mgrid_locale_back(mgrid_locale of) { uselocale((locale_t)of.was); }
