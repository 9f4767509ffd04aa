/* SPDX-License-Identifier: MIT
**
** words.c - pieces of text that pictures share: lines that wrap, text of users.
*/
#include "pictures/draw.h"

#include <string.h>

void mgrid_draw_wrap(mgrid_text *t, const char *joint, const char *word, size_t columns) {
  const char *before = t->len > 0 ? memrchr(t->data, '\n', t->len) : NULL;
  size_t      line = t->len - (before ? (size_t)(before + 1 - t->data) : 0), n = strlen(joint);
  if (line > 0 && line + n + strlen(word) <= columns) {
    mgrid_text_put(t, joint, n);
  } else if (line > 0) {
    while (n > 0 && joint[n - 1] == ' ') n--;
    mgrid_text_put(t, joint, n);
    mgrid_text_str(t, "\n");
  }
  mgrid_text_str(t, word);
}

/* The length of the UTF-8 sequence at s, 0 where there is none that XML allows. */
static size_t sequence(const unsigned char *s) {
  static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
  size_t                n = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
  uint32_t              code = n < 2 ? *s : *s & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; i++) {
    if (s[i] >> 6 != 2) return 0;
    code = code << 6 | (s[i] & 0x3f);
  }
  bool plain = code >= ' ' && code != 0x7f && !(code >= 0x80 && code < 0xa0);
  bool wrong = (n > 1 && code < least[n]) || (code >= 0xd800 && code < 0xe000) || code == 0xfffe || code == 0xffff
               || code > 0x10ffff;
  return plain && !wrong ? n : 0;
}

void mgrid_draw_safe(mgrid_text *t, const char *text, bool markup) {
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    size_t n = sequence(s);
    if (n == 0)
      mgrid_text_str(t, markup ? "\xEF\xBF\xBD" : "?");
    else if (markup && *s == '&')
      mgrid_text_str(t, "&amp;");
    else if (markup && *s == '<')
      mgrid_text_str(t, "&lt;");
    else if (markup && *s == '>')
      mgrid_text_str(t, "&gt;");
    else if (markup && *s == '"')
      mgrid_text_str(t, "&quot;");
    else
      mgrid_text_put(t, (const char *)s, n);
    s += n ? n : 1;
  }
}
