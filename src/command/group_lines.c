/* SPDX-License-Identifier: MIT
**
** group_lines.c - groups in the width of a terminal.
*/
#include "command/group_lines.h"

#include <inttypes.h>

/* columns that a rank and its comma may take */

static void put_rank(mgrid_text *t, int64_t rank) {
  char digits[24], *end = digits + sizeof digits, *at = mgrid_digits(rank, end);
  mgrid_text_put(t, at, (size_t)(end - at));
}

/* Append the first n members of a group. False: they need more than `width` columns (0: no limit); some more may have
** been appended. */
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

void cli_put_group(mgrid_text *t, const mgrid_family *f, int64_t group, int width) {
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
    put_members(t, f, group, n, 0), mgrid_text_str(t, "}"); /* nothing to leave out */
  else
    mgrid_text_str(t, mgrid_text_chars(&tail));
  t->failed |= tail.failed;
  mgrid_text_free(&tail);
}

/* Put group g on; false, with nothing added: the text would then be longer than `width`. The first one is put on anyway. */
static bool put_on(mgrid_text *t, const mgrid_family *f, int64_t g, size_t start, size_t width, int longest) {
  size_t was = t->len;
  mgrid_text_str(t, g ? " " : "");
  cli_put_group(t, f, g, longest);
  if (g == 0 || t->len - start <= width) return true;
  t->len = was;
  return false;
}

void cli_put_groups(mgrid_text *t, const mgrid_family *f, int width) {
  mgrid_text last = { 0 };
  size_t     start = t->len, most = width > 0 ? (size_t)width : 0;
  int64_t    g = 0;
  if (f->count == 0) mgrid_text_str(t, "none");
  while (g < f->count && !t->failed && put_on(t, f, g, start, most, width / 3)) g++;
  if (g == f->count || t->failed) return;
  cli_put_group(&last, f, f->count - 1, width / 3);
  t->len = start;
  for (g = 0; g + 1 < f->count && !t->failed; g++) { /* as many as leave room for the rest */
    int rest = snprintf(NULL, 0, " ... %" PRId64 " more ... ", f->count - g - 2) + (int)last.len;
    if (!put_on(t, f, g, start, most > (size_t)rest ? most - (size_t)rest : 0, width / 3)) break;
  }
  if (g + 1 < f->count) mgrid_text_add(t, " ... %" PRId64 " more ...", f->count - g - 1);
  mgrid_text_add(t, " %s", mgrid_text_chars(&last));
  t->failed |= last.failed;
  mgrid_text_free(&last);
}

void cli_put_count(mgrid_text *t, const mgrid_family *f) {
  mgrid_text_add(t, "%" PRId64 " group%s of %s%" PRId64, f->count, mgrid_s_of(f->count), f->size < 0 ? "up to " : "",
                 f->max_size);
}
