/* SPDX-License-Identifier: MIT
**
** chars.c - characters that do not depend on the host: the C locale and its numbers, UTF-8, and
** text from others made safe for a terminal. Everything that prints calls this file; it calls no
** other.
*/
#include "base/base.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* ============================================================== the C locale */

/* A host may call setlocale for its users. This must not change the meaning of a recipe, nor any
** text that another process reads. So here numbers never have a decimal comma, and letters always
** have the same order and the same capitals. */

/* The locale "C" is a constant of the C library, so newlocale allocates nothing and cannot fail.
** (If it failed, uselocale would change nothing.) */
mgrid_locale mgrid_locale_plain(void) {
  return (mgrid_locale){ (void *)uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)) };
}

void mgrid_locale_back(mgrid_locale of) { uselocale((locale_t)of.was); }

int mgrid_vformat(char *buf, size_t len, const char *fmt, va_list args) {
  mgrid_locale host = mgrid_locale_plain();
  int n = vsnprintf(buf, len, fmt, args);
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
  double x = strtod(text, end);
  mgrid_locale_back(host);
  return x;
}

const char *mgrid_shortest(const char *number, char *buf, size_t len) {
  char *end, seventeen[40];
  double x = mgrid_read_double(number, &end);
  if (*end || end == number) return number;
  mgrid_format(seventeen, sizeof seventeen, "%.17g", x);
  if (strcmp(seventeen, number) != 0) return number;
  for (int digits = 15; digits <= 17; digits++) {
    mgrid_format(buf, len, "%.*g", digits, x);
    if (mgrid_read_double(buf, NULL) == x) break;
  }
  return buf;
}

/* ================================================================= safe text */

/* A name, a message or a path may hold bytes that move the cursor, clear the screen or break the
** line. Escape such bytes, and bytes that are not UTF-8, as \x1b. */

/* Return the number of bytes of the character at s, and its code in *out. At most n bytes may be
** read. 0: it is not UTF-8. */
static size_t decoded(const unsigned char *s, size_t n, uint32_t *out) {
  static const struct {
    unsigned char first, mask;
    size_t bytes;
    uint32_t least; /* the lowest code that needs this many bytes */
  } forms[] = { { 0x00, 0x80, 1, 0 },
                { 0xc0, 0xe0, 2, 0x80 },
                { 0xe0, 0xf0, 3, 0x800 },
                { 0xf0, 0xf8, 4, 0x10000 } };

  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if ((*s & forms[i].mask) != forms[i].first || n < forms[i].bytes) continue;
    uint32_t code = *s & (uint32_t)~forms[i].mask & 0xff;
    for (size_t k = 1; k < forms[i].bytes; k++) {
      if ((s[k] & 0xc0) != 0x80) return 0;
      code = code << 6 | (s[k] & 0x3f);
    }
    *out = code;
    return code < forms[i].least || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff
               ? 0
               : forms[i].bytes;
  }
  return 0;
}

/* Return the number of bytes of the character at s. 0: it is not UTF-8, controls the terminal,
** changes the direction of text, or is not allowed in XML. */
static size_t character(const unsigned char *s, size_t n) {
  static const struct {
    uint32_t low, high;
  } unsafe[] = {
    { 0, 0x1f }, { 0x7f, 0x9f }, { 0x202a, 0x202e }, { 0x2066, 0x2069 }, { 0xfffe, 0xffff }
  };
  uint32_t code;
  size_t bytes = decoded(s, n, &code);
  for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe && bytes; i++)
    if (code >= unsafe[i].low && code <= unsafe[i].high) return 0;
  return bytes;
}

bool mgrid_is_utf8(const char *s, size_t len) {
  uint32_t code;
  for (size_t at = 0, n; at < len; at += n)
    if ((unsigned char)s[at] < 0x80)
      n = 1;
    else if ((n = decoded((const unsigned char *)s + at, len - at, &code)) == 0)
      return false;
  return true;
}

bool mgrid_is_shown(const char *s, size_t len) {
  for (size_t at = 0, n; at < len; at += n)
    if (s[at] >= ' ' && s[at] < 0x7f)
      n = 1;
    else if ((n = character((const unsigned char *)s + at, len - at)) == 0)
      return false;
  return true;
}

size_t mgrid_shown(char *out, size_t room, const char *s, size_t len) {
  static const char digits[] = "0123456789abcdef";
  size_t n = 0;
  for (size_t at = 0; at < len;) {
    size_t bytes = character((const unsigned char *)s + at, len - at);
    char code[4] = { '\\', 'x', digits[(unsigned char)s[at] >> 4], digits[s[at] & 15] };
    size_t put = bytes ? bytes : s[at] == '\n' || s[at] == '\t' ? 2 : 4;
    if (put == 2 && !bytes) code[1] = s[at] == '\n' ? 'n' : 't';
    if (n + put >= room) break;
    memcpy(out + n, bytes ? s + at : code, put);
    n += put, at += bytes ? bytes : 1;
  }
  if (room > 0) out[n] = '\0';
  return n;
}

void mgrid_show(char *text, size_t room) {
  char shown[sizeof((mgrid_error *)0)->message];
  size_t len = strnlen(text, room - 1), most = room < sizeof shown ? room : sizeof shown;
  text[len] = '\0';
  if (!mgrid_is_shown(text, len)) memcpy(text, shown, mgrid_shown(shown, most, text, len) + 1);
}
