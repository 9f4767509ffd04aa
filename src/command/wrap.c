/* SPDX-License-Identifier: MIT
**
** wrap.c - words in the width of a terminal.
*/
#include "command/cli.h"

#include <string.h>

enum { LABEL = 15 };

/* Return the columns of a text; a character of UTF-8 has one. */
static int width_of(const char *s, size_t n) {
  int width = 0;
  for (size_t i = 0; i < n; i++) width += ((unsigned char)s[i] & 0xc0) != 0x80;
  return width;
}

void cli_wrap(const cli *c, const char *label, mgrid_text *words) {
  bool whole = words->data && !words->failed;
  int  column = whole ? printf("%-*s", LABEL - 1, label) : 0;
  for (const char *at = whole ? words->data : ""; *at;) {
    size_t n = strcspn(at, " ");
    int    width = width_of(at, n);
    if (column + 1 + width > c->columns && column > LABEL) column = printf("\n%*s", LABEL - 1, "") - 1;
    printf(" %.*s", (int)n, at);
    column += 1 + width;
    at += n + (at[n] == ' ');
  }
  if (whole) printf("\n");
  mgrid_text_free(words);
}
