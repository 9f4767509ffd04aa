/* SPDX-License-Identifier: MIT
**
** locale.c - switch to the C locale, and numbers in it. A host may call setlocale for its users, but the meaning of a
** recipe must not change with it, nor any text that another process reads: no decimal comma, no other order or upper case
** of letters.
*/
#include "base/base.h"

#include <locale.h>
#include <stdlib.h>

/* The C library's "C" locale is a constant: to get it allocates nothing and cannot fail. If it fails nevertheless,
** uselocale changes nothing. */
mgrid_locale mgrid_locale_plain(void) {
  return (mgrid_locale){ (void *)uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)) };
}

void mgrid_locale_back(mgrid_locale of) { uselocale((locale_t)of.was); }

int mgrid_vformat(char *buf, size_t len, const char *fmt, va_list args) {
  mgrid_locale host = mgrid_locale_plain();
  int          n = vsnprintf(buf, len, fmt, args);
  mgrid_locale_back(host);
  return n;
}

int mgrid_format(char *buf, size_t len, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int n = mgrid_vformat(buf, len, fmt, args);
  va_end(args);
  return n;
}

double mgrid_read_double(const char *text, char **end) {
  mgrid_locale host = mgrid_locale_plain();
  double       x = strtod(text, end);
  mgrid_locale_back(host);
  return x;
}
