/* SPDX-License-Identifier: MIT
**
** show.c - the head of what is about a plan, and words in the width of a terminal.
*/
#include "command/slice.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>

enum {
  LABEL = 15,
  VALUE_WIDTH = 60,
};

/* Return the columns of a text; a character of UTF-8 has one. */
static int width_of(const char *s, size_t n) {
  int width = 0;
  for (size_t i = 0; i < n; i++) width += ((unsigned char)s[i] & 0xc0) != 0x80;
  return width;
}

/* Print words after text that ends at `column`, each after a blank, folded to fit the terminal; further lines start at
** `indent`. */
static void print_words(const cli *c, const char *words, size_t len, int column, int indent) {
  for (const char *at = words, *end = words + len; at < end;) {
    const char *blank = memchr(at, ' ', (size_t)(end - at));
    size_t      n = (size_t)((blank ? blank : end) - at);
    int         width = width_of(at, n);
    if (column + 1 + width > c->fold && column > indent) column = printf("\n%*s", indent - 1, "") - 1;
    printf(" %.*s", (int)n, at);
    column += 1 + width;
    at += n + (blank != NULL);
  }
  printf("\n");
}

/* Print words after a label. */
static void wrap(const cli *c, const char *label, const char *words) {
  print_words(c, words, strlen(words), printf("%-*s", LABEL - 1, label), LABEL);
}

void cli_wrap(const cli *c, const char *label, mgrid_text *words) {
  if (words->data && !words->failed) wrap(c, label, words->data);
  mgrid_text_free(words);
}

/* Return where the last column of a line of a table starts, after a gap of two blanks or more; 0: there is only one. */
static size_t last_column(const char *line, size_t n) {
  size_t at = 0;
  for (size_t i = strspn(line, " ") + 3; i < n; i++)
    if (line[i] != ' ' && line[i - 1] == ' ' && line[i - 2] == ' ') at = i;
  return at;
}

/* Print a line. If the terminal is narrower, the words of its last column are folded under that column, or with too
** little room there, under the line. */
static void fold(const cli *c, const char *line, size_t n) {
  enum { ROOM = 36, DEEPER = 4 };
  size_t blanks = strspn(line, " "), at = last_column(line, n);
  int    indent = width_of(line, at);
  bool   beside = c->fold - indent >= ROOM;
  size_t head = at - 1; /* width of the line before it, unchanged */
  if (width_of(line, n) <= c->fold) {
    printf("%.*s\n", (int)n, line);
    return;
  }
  if (blanks > ROOM) { /* they belong to the last column */
    print_words(c, line + blanks, n - blanks, printf("%*s", 1 + DEEPER, ""), 2 + DEEPER);
    return;
  }
  if (at == 0) {
    head = blanks + strcspn(line + blanks, " "), at = head + 1, indent = (int)blanks + DEEPER;
  } else if (!beside) {
    while (line[head - 1] == ' ') head--;
    indent = (int)blanks + DEEPER;
  }
  printf("%.*s", (int)head, line);
  print_words(c, line + at, n - at, beside ? width_of(line, head) : printf("\n%*s", indent - 1, "") - 1, indent);
}

int cli_fold(void *of, const char *text, size_t len) {
  for (size_t at = 0; at < len;) {
    const char *end = memchr(text + at, '\n', len - at);
    size_t      n = end ? (size_t)(end - text) - at : len - at;
    fold(of, text + at, n);
    at += n + 1;
  }
  return ferror(stdout);
}

void cli_show_head(const cli *c, const mgrid_plan *p, const char *before, bool all) {
  const char *on = c->bold ? "\033[1m" : "", *off = c->bold ? "\033[0m" : "";
  char        name[4096];
  mgrid_shown(name, sizeof name, p->content.recipe, strlen(p->content.recipe));
  if (!*name) snprintf(name, sizeof name, "plan");
  printf("%s%s%s%s", before, on, name, off);
  int column = (int)(strlen(before) + strlen(name))
               + printf(" over %" PRId64 " rank%s", p->content.world, mgrid_s_of(p->content.world));
  const char *colon = ":";
  for (size_t i = 0; i < p->content.nparams; i++) {
    const mgrid_param *a = &p->content.param[i];
    if (a->usual && !all) continue;
    char        digits[40];
    const char *value = mgrid_shortest(a->value, digits, sizeof digits);
    bool        whole = strlen(value) <= VALUE_WIDTH; /* a table may be long; --text has all of it */
    char        shown[VALUE_WIDTH + 1];
    mgrid_shown(shown, whole ? sizeof shown : sizeof shown - 3, value, strlen(value)); /* whole characters */
    int length = (int)(strlen(a->name) + strlen(shown)) + (whole ? 2 : 5);
    column += printf("%s", colon);
    colon = "";
    if (column + length > c->fold && column > LABEL) column = printf("\n%*s", LABEL - 1, "") - 1;
    column += printf(" %s=%s%s", a->name, shown, whole ? "" : "...");
  }
  printf("\n");
}
