/* SPDX-License-Identifier: MIT
**
** words.c - pieces of text that pictures and lists share: groups, counts, text of users.
*/
#include "pictures/draw.h"

#include <inttypes.h>
#include <string.h>

enum { NUMBER = 12 }; /* columns that a rank and its comma may take */

static void put_rank(mgrid_text *t, int64_t rank) {
  char digits[24], *end = digits + sizeof digits, *at = mgrid_digits(rank, end);
  mgrid_text_put(t, at, (size_t)(end - at));
}

/* The first n members of a group; false, with some more written, where they take over `width` columns (0: any). */
static bool put_members(mgrid_text *t, const mgrid_family *f, int64_t group, int64_t n, size_t width) {
  size_t start = t->len;
  mgrid_text_str(t, "{");
  for (int64_t i = 0; i < n && !t->failed; i++) {
    mgrid_text_str(t, i ? "," : "");
    put_rank(t, mgrid_family_rank(f, group, i));
    if (width && t->len - start + 1 > width) return false;
  }
  return true;
}

void mgrid_draw_group(mgrid_text *t, const mgrid_family *f, int64_t group, int width) {
  int64_t    n = mgrid_family_size(f, group);
  size_t     start = t->len, end;
  mgrid_text tail = { 0 };
  if (put_members(t, f, group, n, (size_t)width)) {
    mgrid_text_str(t, "}");
    return;
  }
  mgrid_text_str(&tail, ",...,");
  put_rank(&tail, mgrid_family_rank(f, group, n - 1));
  mgrid_text_str(&tail, "}");
  t->len = end = start;
  for (int64_t shown = 1; shown + 1 < n && !t->failed; shown++) { /* as many as leave room for the last */
    bool fits = put_members(t, f, group, shown, 0) && t->len - start + tail.len <= (size_t)width;
    if (!fits && shown > 1) break;
    end = t->len;
    t->len = start;
  }
  t->len = end;
  if (t->data) t->data[end] = '\0';
  if (n <= 2)
    put_members(t, f, group, n, 0), mgrid_text_str(t, "}"); /* nothing can be left out */
  else
    mgrid_text_str(t, mgrid_text_chars(&tail));
  t->failed |= tail.failed;
  mgrid_text_free(&tail);
}

void mgrid_draw_groups(mgrid_text *t, const mgrid_family *f, int width) {
  mgrid_text last = { 0 };
  size_t     start = t->len;
  if (f->count == 0) mgrid_text_str(t, "none");
  if (f->count > 0) mgrid_draw_group(&last, f, f->count - 1, width / 3);
  for (int64_t g = 0; g < f->count && !t->failed; g++) {
    size_t was = t->len;
    mgrid_text_str(t, g ? " " : "");
    mgrid_draw_group(t, f, g, width / 3);
    size_t rest = g + 1 == f->count ? 0 : g + 2 == f->count ? last.len + 1 : last.len + 16 + NUMBER;
    if (g == 0 || t->len - start + rest <= (size_t)width) continue;
    t->len = was;
    if (g + 1 < f->count) mgrid_text_add(t, " ... %" PRId64 " more ...", f->count - g - 1);
    mgrid_text_add(t, " %s", mgrid_text_chars(&last));
    break;
  }
  t->failed |= last.failed;
  mgrid_text_free(&last);
}

void mgrid_draw_count(mgrid_text *t, const mgrid_family *f) {
  mgrid_text_add(t, "%" PRId64 " group%s of %s%" PRId64, f->count, mgrid_s_of(f->count), f->size < 0 ? "up to " : "",
                 f->max_size);
}

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
