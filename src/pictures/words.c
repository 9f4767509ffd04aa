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

void mgrid_draw_safe(mgrid_text *t, const char *text) {
  mgrid_text shown = { 0 };
  mgrid_text_shown(&shown, text);
  for (const char *s = mgrid_text_chars(&shown); *s;) {
    size_t n = strcspn(s, "&<>\"");
    mgrid_text_put(t, s, n);
    s += n;
    if (*s) mgrid_text_str(t, *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : "&quot;"), s++;
  }
  t->failed |= shown.failed;
  mgrid_text_free(&shown);
}
