/* SPDX-License-Identifier: MIT
**
** text.c - growing strings, names, and the nearest name for messages.
*/
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Allocate space for `more` characters and the final 0. */
static bool reserve(mgrid_text *t, size_t more) {
  if (t->failed) return false;
  if (t->cap - t->len > more) return true;
  t->failed = !MGRID_ROOM(t->data, t->cap, t->len + more < 128 ? 128 : t->len + more + 1);
  return !t->failed;
}

void mgrid_text_put(mgrid_text *t, const char *s, size_t len) {
  if (!reserve(t, len)) return;
  memcpy(t->data + t->len, s, len);
  t->len += len;
  t->data[t->len] = '\0';
}

void mgrid_text_str(mgrid_text *t, const char *s) { mgrid_text_put(t, s, strlen(s)); }

char *mgrid_digits(int64_t n, char *end) {
  uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
  do *--end = (char)('0' + rest % 10);
  while (rest /= 10);
  if (n < 0) *--end = '-';
  return end;
}

void mgrid_text_int(mgrid_text *t, int64_t n) {
  char digits[24], *end = digits + sizeof digits, *at = mgrid_digits(n, end);
  mgrid_text_put(t, at, (size_t)(end - at));
}

void mgrid_text_quoted(mgrid_text *t, const char *s) {
  mgrid_text_put(t, "\"", 1);
  for (size_t n; *s; s += n) {
    if ((n = strcspn(s, "\"\\")) == 0) mgrid_text_put(t, "\\", n = 1);
    mgrid_text_put(t, s, n);
  }
  mgrid_text_put(t, "\"", 1);
}

void mgrid_text_numbers(mgrid_text *t, size_t n, const int64_t *list) {
  mgrid_text_put(t, "[", 1);
  for (size_t i = 0; i < n; i++) {
    if (i) mgrid_text_put(t, ",", 1);
    mgrid_text_int(t, list[i]);
  }
  mgrid_text_put(t, "]", 1);
}

void mgrid_text_add(mgrid_text *t, const char *fmt, ...) {
  char small[256];
  va_list args;
  va_start(args, fmt);
  int n = mgrid_vformat(small, sizeof small, fmt, args);
  va_end(args);
  if (n < 0) t->failed = true;
  if (n < 0) return;
  if ((size_t)n < sizeof small) {
    mgrid_text_put(t, small, (size_t)n);
    return;
  }
  if (!reserve(t, (size_t)n)) return;
  va_start(args, fmt);
  mgrid_vformat(t->data + t->len, (size_t)n + 1, fmt, args);
  va_end(args);
  t->len += (size_t)n;
}

void mgrid_text_shown(mgrid_text *t, const char *s) {
  char piece[256];
  size_t len = strlen(s);
  for (size_t at = 0; at < len;) { /* in blocks, none of which ends inside a character */
    size_t n = len - at < 60 ? len - at : 60;
    while (n < len - at && n > 56 && ((unsigned char)s[at + n] & 0xc0) == 0x80) n--;
    mgrid_text_put(t, piece, mgrid_shown(piece, sizeof piece, s + at, n));
    at += n;
  }
}

void mgrid_text_free(mgrid_text *t) {
  free(t->data);
  memset(t, 0, sizeof *t);
}

int mgrid_text_sink(void *text, const char *s, size_t len) {
  mgrid_text_put(text, s, len);
  return 0;
}

mgrid_status mgrid_text_flush(mgrid_text *t, mgrid_sink sink, void *ud, mgrid_error *err) {
  if (t->failed) return mgrid_oom(err);
  if (t->len > 0 && sink(ud, t->data, t->len) != 0) return mgrid_unwritten(err);
  t->len = 0;
  return MGRID_OK;
}

size_t mgrid_text_finish(mgrid_text *t, char *buf, size_t len) {
  if (t->failed) { /* a part of the text would look like the whole */
    mgrid_text_free(t);
    return (size_t)snprintf(buf, len, "(no memory for this text)");
  }
  size_t whole = t->len;
  if (buf && len > 0) {
    size_t n = whole < len ? whole : len - 1;
    if (n > 0) memcpy(buf, t->data, n);
    buf[n] = '\0';
  }
  mgrid_text_free(t);
  return whole;
}

void mgrid_text_ellipsis(char *buf, size_t len, size_t whole) {
  if (whole >= len && len > 4) memcpy(buf + len - 4, "...", 4);
}

mgrid_status mgrid_check_line(const char *what, const char *s, size_t len, mgrid_error *err) {
  char shown[64];
  if (mgrid_is_shown(s, len)) return MGRID_OK;
  bool whole = mgrid_shown(shown, sizeof shown, s, len) < sizeof shown - 4;
  return mgrid_fail(err, MGRID_BAD_VALUE,
                    "%s is one line of text in UTF-8, without control characters, not '%s%s'", what,
                    shown, whole ? "" : "...");
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c; }
static bool begins_name(char c) { return mgrid_is_letter(c) || c == '_'; }

bool mgrid_is_name(const char *s) {
  if (!s || !begins_name(*s)) return false;
  size_t n = 0;
  for (; s[n]; n++)
    if (!begins_name(s[n]) && !mgrid_is_digit(s[n])) return false;
  return n <= MGRID_NAME_MAX;
}

bool mgrid_is_item_name(const char *s) {
  size_t n = s ? strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/")
               : 0;
  return n > 0 && n <= MGRID_ITEM_NAME_MAX && !s[n];
}

/* Return the edit distance of two words of up to 63 characters. A swap of neighbours is one
** edit. */
static int distance(const char *a, const char *b) {
  enum { MAX = 63 };
  size_t n = strlen(a), m = strlen(b);
  if (n > MAX || m > MAX) return MAX;
  int row[3][MAX + 1];
  for (size_t j = 0; j <= m; j++) row[0][j] = (int)j;
  for (size_t i = 1; i <= n; i++) {
    int *cur = row[i % 3], *up = row[(i - 1) % 3], *up2 = row[(i + 1) % 3];
    cur[0] = (int)i;
    for (size_t j = 1; j <= m; j++) {
      int best = up[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
      if (up[j] + 1 < best) best = up[j] + 1;
      if (cur[j - 1] + 1 < best) best = cur[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < best)
        best = up2[j - 2] + 1;
      cur[j] = best;
    }
  }
  return row[n % 3][m];
}

/* Return whether the parts of a name (tensor_parallel has two) occur in b in the same order, the
** first at the start of b. */
static bool has_parts(const char *a, const char *b) {
  for (bool first = true; *a; first = false) {
    size_t n = strcspn(a, "_-");
    for (; !first && *b && (strcspn(b, "_-") != n || strncmp(a, b, n) != 0);) {
      b += strcspn(b, "_-");
      b += *b != '\0';
    }
    if (n == 0 || strcspn(b, "_-") != n || strncmp(a, b, n) != 0) return false;
    a += n + (a[n] != '\0');
    b += n + (b[n] != '\0');
  }
  return true;
}

const char *mgrid_nearest(const char *word, const char *const *candidates, size_t n) {
  const char *best = NULL;
  int least = 0;

  /* of equally near words, prefer one with the same first letter */
  for (size_t i = 0; i < n; i++) {
    int d = distance(word, candidates[i]);
    bool nearer = best && d == least && *best != *word && *candidates[i] == *word;
    if (!best || d < least || nearer) best = candidates[i], least = d;
  }
  size_t longer = best ? (strlen(word) > strlen(best) ? strlen(word) : strlen(best)) : 0;
  /* SHORTEST: letters that are enough to recognize a word. SLIP: most edits of a typing error */
  enum { SHORTEST = 4, SLIP = 2 };
  bool close = best && (size_t)least * 3 <= longer + 1;
  bool begins = best && lower(*best) == lower(*word);
  bool same = longer > 2 || begins || (best && *word && word[1] == *best && *word == best[1]);
  /* a typing error; words of one or two letters must also begin alike, or have two letters
  ** swapped */
  if (close && least <= SLIP && same) return best;
  for (size_t i = 0; i < n; i++)
    if (strlen(word) >= SHORTEST && has_parts(word, candidates[i])) return candidates[i];
  /* more errors */
  if (close && longer > 2 && (begins || strstr(word, best) || strstr(best, word))) return best;
  for (size_t i = 0; i < n; i++) {
    size_t len = strlen(candidates[i]);
    /* "worldsize" for "world" */
    bool heads = len >= SHORTEST && strlen(word) <= 2 * len
                 && strncmp(word, candidates[i], len) == 0;
    if (heads || (len > 1 && has_parts(candidates[i], word))) return candidates[i];
  }
  return NULL;
}

void mgrid_suggest(char *buf, size_t len, const char *word, const char *const *candidates,
                   size_t n) {
  enum { SHOWN = 32, REST = sizeof ", , ...)" };
  mgrid_text t = { 0 };
  const char *near = mgrid_nearest(word, candidates, n);
  if (near) mgrid_text_add(&t, "; nearest is '%s'", near);
  if (n == 0) mgrid_text_add(&t, "; there are none");
  for (size_t i = 0; i < n; i++) {
    /* do not cut a name in two */
    if (i == SHOWN || (i > 0 && t.len + strlen(candidates[i]) + REST > len)) {
      mgrid_text_add(&t, ", ...");
      break;
    }
    mgrid_text_add(&t, "%s%s", i == 0 ? (near ? " (" : "; known: ") : ", ", candidates[i]);
  }
  if (n > 0 && near) mgrid_text_add(&t, ")");
  mgrid_text_finish(&t, buf, len);
}
