/* SPDX-License-Identifier: MIT
**
** names.c - read rules between names, and match names.
*/
#include "checkpoints/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { ANY = NAMES_CAPTURES + 1 };

/* ------------------------------------------------------------------ reading */

typedef struct reading {
  names       *all;
  names_rule  *rule;
  mgrid_error *err;
} reading;

static mgrid_status wrong(const reading *r, const char *fmt, ...) MGRID_PRINTF(2, 3);
static mgrid_status wrong(const reading *r, const char *fmt, ...) {
  char    what[512];
  va_list args;
  va_start(args, fmt);
  mgrid_vformat(what, sizeof what, fmt, args);
  va_end(args);
  return mgrid_fail(r->err, MGRID_BAD_VALUE, "%.250s:%d: %s", r->all->from, r->rule->line, what);
}

/* Turn the captures of a name into bytes, in place. seen: which occur. */
static mgrid_status read_captures(reading *r, char *name, unsigned *seen) {
  static const char *const kinds[] = { "(%d+)", "(%a+)", "(%w+)", "(.+)" };
  char                    *to = name;
  for (const char *at = name; *at;) {
    size_t k = 0;
    while (k < 4 && strncmp(at, kinds[k], strlen(kinds[k])) != 0) k++;
    if (k < 4) {
      if (r->rule->ncaptures == NAMES_CAPTURES) return wrong(r, "a rule has at most %d captures", NAMES_CAPTURES);
      r->rule->kind[r->rule->ncaptures] = kinds[k][k == 3 ? 1 : 2];
      *seen |= 1U << r->rule->ncaptures;
      *to++ = (char)++r->rule->ncaptures;
      at += strlen(kinds[k]);
    } else if (*at == '%') {
      int nth = at[1] - '0';
      if (nth < 1 || nth > (int)r->rule->ncaptures)
        return wrong(r, "%%%c in '%s' is not a capture; the rule has %zu before it", at[1] ? at[1] : ' ', at,
                     r->rule->ncaptures);
      *seen |= 1U << (nth - 1);
      *to++ = (char)nth;
      at += 2;
    } else if (*at == '(' || *at == ')') {
      return wrong(r, "'%s': captures are (%%d+), (%%a+), (%%w+) and (.+)", at);
    } else {
      *to++ = *at++;
    }
  }
  *to = '\0';
  return MGRID_OK;
}

/* Read NAME or NAME[%1]. */
static mgrid_status read_name(reading *r, int which, char *word, unsigned *seen) {
  names_side *side = &r->rule->side[which];
  size_t      n = strlen(word);
  int         slice = -1;
  if (side->n == NAMES_ON_A_SIDE) return wrong(r, "a side has at most %d names", NAMES_ON_A_SIDE);
  if (n > 4 && strncmp(word + n - 4, "[%", 2) == 0 && word[n - 1] == ']') {
    slice = word[n - 2] - '1';
    word[n - 4] = '\0';
  }
  if (read_captures(r, word, seen)) return r->err->status;
  if (slice >= (int)r->rule->ncaptures) return wrong(r, "[%%%d] is not a capture", slice + 1);
  if (slice >= 0 && r->rule->kind[slice] != 'd')
    return wrong(r, "the index %%%d is not a capture of digits, (%%d+)", slice + 1);
  if (slice >= 0 && *seen & 1U << slice) return wrong(r, "%%%d is in the name and its index", slice + 1);
  if (slice >= 0) *seen |= 1U << slice;
  if (side->n > 0 && side->slice != slice) return wrong(r, "names of one side have different indices");
  side->slice = slice;
  side->name[side->n++] = word;
  return MGRID_OK;
}

/* Read "A + B". seen: for each name, which captures it has. */
static mgrid_status read_side(reading *r, int which, size_t n, char **word, unsigned *seen) {
  if (n % 2 == 0) return wrong(r, "names on a side are separated by ' + '");
  for (size_t i = 0; i < n; i++) {
    if ((strcmp(word[i], "+") == 0) != (i % 2 == 1)) return wrong(r, "names on a side are separated by ' + '");
    if (i % 2 == 0 && read_name(r, which, word[i], &seen[i / 2])) return r->err->status;
  }
  return MGRID_OK;
}

static mgrid_status read_how(reading *r, size_t n, char **word) {
  for (size_t i = 0; i < n; i++) {
    bool more = i + 1 < n;
    if (strcmp(word[i], "transposed") == 0) {
      r->rule->transposed = true;
    } else if (strcmp(word[i], "by") == 0 && more) {
      r->rule->by = word[++i];
      if (i + 2 < n && strcmp(word[i + 1], "or") == 0) r->rule->or_by = word[i += 2];
    } else if (strcmp(word[i], "axis") == 0 && more) {
      char *end;
      r->rule->axis = strtoll(word[++i], &end, 10);
      if (*end || r->rule->axis < 0 || r->rule->axis >= MGRID_AXES_MAX)
        return wrong(r, "axis %s; axes are 0 to %d", word[i], MGRID_AXES_MAX - 1);
    } else {
      return wrong(r, "'%s' after the names; 'by N [or N]', 'axis N' and 'transposed' may be there", word[i]);
    }
  }
  return MGRID_OK;
}

/* Read the words of one line. */
static mgrid_status read_rule(reading *r, size_t n, char **word) {
  names_rule *rule = r->rule;
  unsigned    seen[2][NAMES_ON_A_SIDE] = { { 0 } };
  size_t      arrow = 0, end, first = 1; /* the side that defines the captures */
  while (arrow < n && strcmp(word[arrow], "->") != 0) arrow++;
  if (arrow == n) {
    if (n != 2) return wrong(r, "NAMES -> NAMES, or a pattern of names and a tensor of the recipe, are expected");
    rule->side[0].name[rule->side[0].n++] = word[0];
    rule->layout = word[1];
    return MGRID_OK;
  }
  end = arrow + 1;
  while (end < n && strcmp(word[end], "by") != 0 && strcmp(word[end], "axis") != 0
         && strcmp(word[end], "transposed") != 0)
    end++;
  if (arrow == 0 || end == arrow + 1) return wrong(r, "NAMES -> NAMES is expected");
  rule->side[0].slice = rule->side[1].slice = -1;
  if (end == arrow + 2 && strcmp(word[arrow + 1], "-") == 0) {
    for (char *at = word[0]; *at; at++)
      if (*at == '*') *at = ANY;
    if (arrow > 1 || end < n) return wrong(r, "one name and nothing else is before and after '-> -'");
    return read_side(r, 0, 1, word, seen[0]);
  }
  for (size_t i = 0; i < arrow; i++)
    if (strchr(word[i], '(')) first = 0;
  for (int k = 0; k < 2; k++) {
    size_t which = k ? 1 - first : first;
    if (which == 0 ? read_side(r, 0, arrow, word, seen[0])
                   : read_side(r, 1, end - arrow - 1, word + arrow + 1, seen[1]))
      return r->err->status;
  }
  if (rule->side[0].n > 1 && rule->side[1].n > 1) return wrong(r, "both sides have several names; one side has one");
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < rule->side[k].n; i++)
      if (seen[k][i] != (1U << rule->ncaptures) - 1) return wrong(r, "each name must have all captures of the rule");
  return read_how(r, n - end, word + end);
}

mgrid_status names_read(names *out, const char *from, const char *text, mgrid_error *err) {
  enum { WORDS = 4 * NAMES_ON_A_SIDE };
  size_t lines = 1;
  for (const char *at = text; *at; at++) lines += *at == '\n';
  *out = (names){ .from = from, .text = strdup(text), .rule = calloc(lines, sizeof *out->rule) };
  if (!out->text || !out->rule) return mgrid_oom(err);
  int     nth = 0;
  reading r = { out, NULL, err };
  for (char *line = out->text, *next; line && !err->status; line = next) {
    char  *word[WORDS], *save = NULL;
    size_t n = 0;
    next = strchr(line, '\n');
    if (next) *next++ = '\0';
    line[strcspn(line, "#\r")] = '\0';
    nth++;
    for (char *at = strtok_r(line, " \t", &save); at && n < WORDS; at = strtok_r(NULL, " \t", &save)) word[n++] = at;
    if (n == 0) continue;
    r.rule = &out->rule[out->n++];
    r.rule->line = nth;
    if (n == WORDS)
      wrong(&r, "a side has at most %d names", NAMES_ON_A_SIDE);
    else
      read_rule(&r, n, word);
  }
  return err->status;
}

void names_free(names *n) {
  free(n->text), free(n->rule);
  *n = (names){ 0 };
}

/* ----------------------------------------------------------------- matching */

static bool is_kind(char kind, char c) {
  unsigned char u = (unsigned char)c;
  return kind == 'd' ? isdigit(u) : kind == 'a' ? isalpha(u) : kind == 'w' ? isalnum(u) : u != 0;
}

static bool fits(const names_rule *r, const char *pattern, const char *name, names_bound *bound) {
  for (; *pattern > ANY; pattern++, name++)
    if (*pattern != *name) return false;
  if (*pattern == '\0') return *name == '\0';
  if (*pattern == ANY) {
    for (size_t n = 0;; n++)
      if (fits(r, pattern + 1, name + n, bound))
        return true;
      else if (name[n] == '\0')
        return false;
  }
  int    k = *pattern - 1;
  size_t most = 0;
  if (bound->at[k]) {
    return strncmp(name, bound->at[k], bound->length[k]) == 0 && fits(r, pattern + 1, name + bound->length[k], bound);
  }
  while (is_kind(r->kind[k], name[most])) most++;
  for (; most > 0; most--) {
    bound->at[k] = name;
    bound->length[k] = most;
    if (fits(r, pattern + 1, name + most, bound)) return true;
  }
  bound->at[k] = NULL;
  return false;
}

bool names_fit(const names_rule *r, int side, size_t i, const char *name, names_bound *bound) {
  *bound = (names_bound){ { NULL }, { 0 } };
  return fits(r, r->side[side].name[i], name, bound);
}

void names_put(const names_rule *r, int side, size_t i, const names_bound *bound, mgrid_text *out) {
  for (const char *at = r->side[side].name[i]; *at; at++)
    if (*at > 0 && *at <= NAMES_CAPTURES)
      mgrid_text_add(out, "%.*s", (int)bound->length[*at - 1], bound->at[*at - 1]);
    else
      mgrid_text_add(out, "%c", *at);
}
