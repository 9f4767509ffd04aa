/* SPDX-License-Identifier: MIT
**
** scan.c - words and numbers of the text of a machine.
*/
#include "machine/scan.h"

#include <string.h>

void mgrid_scan_fault(mgrid_scan *s, const char *expected) {
  if (s->failed) return;
  s->failed = true;
  size_t left = (size_t)(s->end - s->at);
  if (left == 0)
    mgrid_fail(s->err, MGRID_BAD_VALUE, "it ends where %s is expected", expected);
  else
    mgrid_fail(s->err, MGRID_BAD_VALUE, "character %zu: %s expected, not '%.*s'", (size_t)(s->at - s->begin) + 1,
               expected, left < 20 ? (int)left : 20, s->at);
}

bool mgrid_scan_next(const mgrid_scan *s, const char *text) {
  size_t len = strlen(text);
  return !s->failed && (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

bool mgrid_scan_take(mgrid_scan *s, const char *text) {
  if (!mgrid_scan_next(s, text)) return false;
  s->at += strlen(text);
  return true;
}

int64_t mgrid_scan_number(mgrid_scan *s) {
  int64_t     n = 0;
  const char *from = s->at;
  if (s->failed) return 0;
  while (s->at < s->end && mgrid_is_digit(*s->at)) {
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *s->at - '0', &n)) {
      s->at = from;
      mgrid_scan_fault(s, "a number below 2^63");
      return 0;
    }
    s->at++;
  }
  if (s->at == from) mgrid_scan_fault(s, "a number");
  return n;
}

void mgrid_scan_name(mgrid_scan *s, char name[MGRID_NAME_MAX + 1]) {
  size_t n = 0, left = (size_t)(s->end - s->at);
  name[0] = '\0';
  if (s->failed) return;
  while (n < left && n <= MGRID_NAME_MAX
         && (mgrid_is_letter(s->at[n]) || s->at[n] == '_' || (n > 0 && mgrid_is_digit(s->at[n]))))
    n++;
  if (n == 0 || n > MGRID_NAME_MAX) {
    mgrid_scan_fault(s, "a name of at most 31 letters, digits and _");
    return;
  }
  memcpy(name, s->at, n);
  name[n] = '\0';
  s->at += n;
}
