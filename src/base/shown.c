/* SPDX-License-Identifier: MIT
**
** shown.c - make text from others safe for a terminal. A name, a message or a path may hold bytes that move the cursor, clear
** the screen or break the line. Such bytes, and what is not UTF-8, are escaped: \x1b.
*/
#include "base/base.h"

#include <string.h>

/* Return the bytes of the character at s, with n bytes left, and its code; 0 if it is not UTF-8. */
static size_t decoded(const unsigned char *s, size_t n, uint32_t *out) {
  static const struct {
    unsigned char first, mask;
    size_t        bytes;
    uint32_t      least; /* the lowest code that needs this many bytes */
  } forms[] = { { 0x00, 0x80, 1, 0 }, { 0xc0, 0xe0, 2, 0x80 }, { 0xe0, 0xf0, 3, 0x800 }, { 0xf0, 0xf8, 4, 0x10000 } };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if ((*s & forms[i].mask) != forms[i].first || n < forms[i].bytes) continue;
    uint32_t code = *s & (uint32_t)~forms[i].mask & 0xff;
    for (size_t k = 1; k < forms[i].bytes; k++) {
      if ((s[k] & 0xc0) != 0x80) return 0;
      code = code << 6 | (s[k] & 0x3f);
    }
    *out = code;
    return code < forms[i].least || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff ? 0 : forms[i].bytes;
  }
  return 0;
}

/* The same, but 0 also for a character that controls the terminal, changes the direction of text, or is none in XML. */
static size_t character(const unsigned char *s, size_t n) {
  static const struct {
    uint32_t low, high;
  } unsafe[] = { { 0, 0x1f }, { 0x7f, 0x9f }, { 0x202a, 0x202e }, { 0x2066, 0x2069 }, { 0xfffe, 0xffff } };
  uint32_t code;
  size_t   bytes = decoded(s, n, &code);
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

mgrid_status mgrid_check_line(const char *what, const char *s, size_t len, mgrid_error *err) {
  char shown[64];
  if (mgrid_is_shown(s, len)) return MGRID_OK;
  bool whole = mgrid_shown(shown, sizeof shown, s, len) < sizeof shown - 4;
  return mgrid_fail(err, MGRID_BAD_VALUE, "%s is one line of text in UTF-8, without control characters, not '%s%s'",
                    what, shown, whole ? "" : "...");
}

size_t mgrid_shown(char *out, size_t room, const char *s, size_t len) {
  static const char digits[] = "0123456789abcdef";
  size_t            n = 0;
  for (size_t at = 0; at < len;) {
    size_t bytes = character((const unsigned char *)s + at, len - at);
    char   code[4] = { '\\', 'x', digits[(unsigned char)s[at] >> 4], digits[s[at] & 15] };
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
  char   shown[sizeof((mgrid_error *)0)->message];
  size_t len = strnlen(text, room - 1), most = room < sizeof shown ? room : sizeof shown;
  text[len] = '\0';
  if (!mgrid_is_shown(text, len)) memcpy(text, shown, mgrid_shown(shown, most, text, len) + 1);
}

static void add_shown(mgrid_text *t, const char *s, size_t len) {
  char piece[256];
  for (size_t at = 0; at < len;) { /* in blocks that end between two characters */
    size_t n = len - at < 60 ? len - at : 60;
    while (n < len - at && n > 56 && ((unsigned char)s[at + n] & 0xc0) == 0x80) n--;
    mgrid_text_put(t, piece, mgrid_shown(piece, sizeof piece, s + at, n));
    at += n;
  }
}

void mgrid_text_shown(mgrid_text *t, const char *s) { add_shown(t, s, strlen(s)); }

void mgrid_text_shown_lines(mgrid_text *t, const char *s) {
  for (size_t n; *s; s += n) {
    add_shown(t, s, n = strcspn(s, "\n"));
    if (s[n] == '\n') mgrid_text_put(t, "\n", 1), n++;
  }
}
