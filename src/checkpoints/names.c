/* SPDX-License-Identifier: MIT
**
** names.c - reads rules between names, and matches names.
*/
#include "checkpoints/names.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { ANY = NAMES_CAPTURES + 1 };

/* ------------------------------------------------------------------ reading */

typedef struct reading {
  names *all;
  names_rule *rule;
  const char *line; /* where the line starts */
  bool any;         /* * stands for any text */
  mgrid_error *err;
} reading;

#define WRONG(r, ...) \
  mgrid_fail_at((r)->err, MGRID_BAD_VALUE, (r)->all->from, (r)->rule->line, __VA_ARGS__)

/* Refuse a line because of the character at `at`. */
static mgrid_status wrong_at(const reading *r, const char *at, const char *what) {
  return WRONG(r, "character %zu: %s", (size_t)(at - r->line) + 1, what);
}

/* Replace each capture of a name by one byte, in place. Set the bits of these captures in *seen. */
static mgrid_status read_captures(reading *r, char *name, unsigned *seen) {
  static const char *const kinds[] = { "(%d+)", "(%a+)", "(%w+)", "(.+)" };
  char *to = name;

  for (const char *at = name; *at;) {
    size_t k = 0;
    while (k < 4 && strncmp(at, kinds[k], strlen(kinds[k])) != 0) k++;
    if (k < 4) {
      if (r->rule->ncaptures == NAMES_CAPTURES)
        return WRONG(r, "a rule has at most %d captures", NAMES_CAPTURES);
      r->rule->kind[r->rule->ncaptures] = kinds[k][k == 3 ? 1 : 2];
      *seen |= 1U << r->rule->ncaptures;
      *to++ = (char)++r->rule->ncaptures;
      at += strlen(kinds[k]);
    } else if (*at == '%') {
      int nth = at[1] - '0';
      if (nth < 1 || nth > (int)r->rule->ncaptures)
        return WRONG(r, "%%%c in '%s' is not a capture; the rule has %zu before it",
                     at[1] ? at[1] : ' ', at, r->rule->ncaptures);
      *seen |= 1U << (nth - 1);
      *to++ = (char)nth;
      at += 2;
    } else if (*at == '(' || *at == ')') {
      return WRONG(r, "'%s': captures are (%%d+), (%%a+), (%%w+) and (.+)", at);
    } else if ((unsigned char)*at <= ANY) {
      return wrong_at(r, at, "a name has no bytes 1 to 5");
    } else if (*at == '*' && r->any) { /* several * in a row are one */
      if (to == name || to[-1] != ANY) *to++ = ANY;
      at++;
    } else {
      *to++ = *at++;
    }
  }
  *to = '\0';
  return MGRID_OK;
}

/* Read a word, NAME or NAME[%1], as the next name of a side. */
static mgrid_status read_name(reading *r, int which, char *word, unsigned *seen) {
  names_side *side = &r->rule->side[which];
  size_t n = strlen(word);
  int slice = -1;

  if (side->n == NAMES_ON_A_SIDE) return WRONG(r, "a side has at most %d names", NAMES_ON_A_SIDE);
  if (n > 4 && strncmp(word + n - 4, "[%", 2) == 0 && word[n - 1] == ']') {
    slice = word[n - 2] - '1';
    if (slice < 0 || slice > 8)
      return wrong_at(r, word + n - 4, "an index is [%1] to [%4], the number of a capture");
    word[n - 4] = '\0';
  }
  if (read_captures(r, word, seen)) return r->err->status;
  if (slice >= (int)r->rule->ncaptures) return WRONG(r, "[%%%d] is not a capture", slice + 1);
  if (slice >= 0 && r->rule->kind[slice] != 'd')
    return WRONG(r, "the index %%%d is not a capture of digits, (%%d+)", slice + 1);
  if (slice >= 0 && *seen & 1U << slice)
    return WRONG(r, "%%%d is in the name and its index", slice + 1);
  if (slice >= 0) *seen |= 1U << slice;
  if (side->n > 0 && side->slice != slice)
    return WRONG(r, "names of one side have different indices");
  side->slice = slice;
  side->name[side->n++] = word;
  return MGRID_OK;
}

/* Read the words of a side, A + B. seen: [names of the side]. */
static mgrid_status names_read_side(reading *r, int which, size_t n, char **word, unsigned *seen) {
  if (n % 2 == 0) return WRONG(r, "names on a side are separated by ' + '");
  for (size_t i = 0; i < n; i++) {
    if ((strcmp(word[i], "+") == 0) != (i % 2 == 1))
      return WRONG(r, "names on a side are separated by ' + '");
    if (i % 2 == 0 && read_name(r, which, word[i], &seen[i / 2])) return r->err->status;
  }
  return MGRID_OK;
}

/* Read the words after the names: by 8 axis 1 transposed. */
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
        return WRONG(r, "axis %s; axes are 0 to %d", word[i], MGRID_AXES_MAX - 1);
    } else {
      return WRONG(r, "'%s' after the names; 'by N [or N]', 'axis N' and 'transposed' may be there",
                   word[i]);
    }
  }
  return MGRID_OK;
}

/* Read the words of one line. */
static mgrid_status names_read_rule(reading *r, size_t n, char **word) {
  names_rule *rule = r->rule;
  unsigned seen[2][NAMES_ON_A_SIDE] = { { 0 } };
  size_t arrow = 0, end, first = 1; /* the side that defines the captures */

  while (arrow < n && strcmp(word[arrow], "->") != 0) arrow++;
  if (arrow == n) {
    if (n != 2)
      return WRONG(
          r, "NAMES -> NAMES, or a pattern of names and a tensor of the recipe, are expected");
    rule->side[0].name[rule->side[0].n++] = word[0];
    rule->layout = word[1];
    return MGRID_OK;
  }
  end = arrow + 1;
  while (end < n && strcmp(word[end], "by") != 0 && strcmp(word[end], "axis") != 0
         && strcmp(word[end], "transposed") != 0)
    end++;
  if (arrow == 0 || end == arrow + 1) return WRONG(r, "NAMES -> NAMES is expected");
  rule->side[0].slice = rule->side[1].slice = -1;
  if (end == arrow + 2 && strcmp(word[arrow + 1], "-") == 0) {
    r->any = true;
    if (arrow > 1 || end < n)
      return WRONG(r, "a line that ends with '-> -' has one name before it");
    return names_read_side(r, 0, 1, word, seen[0]);
  }
  for (size_t i = 0; i < arrow; i++)
    if (strchr(word[i], '(')) first = 0;
  for (int k = 0; k < 2; k++) {
    size_t which = k ? 1 - first : first;
    if (which == 0 ? names_read_side(r, 0, arrow, word, seen[0])
                   : names_read_side(r, 1, end - arrow - 1, word + arrow + 1, seen[1]))
      return r->err->status;
  }
  if (rule->side[0].n > 1 && rule->side[1].n > 1)
    return WRONG(r, "both sides have several names, but one side must have one");
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < rule->side[k].n; i++)
      if (seen[k][i] != (1U << rule->ncaptures) - 1)
        return WRONG(r, "each name must have all captures of the rule");
  return read_how(r, n - end, word + end);
}

mgrid_status names_read(names *out, const char *from, const char *text, size_t length,
                        mgrid_error *err) {
  enum { WORDS = 4 * NAMES_ON_A_SIDE };

  *out = (names){ .from = from, .text = malloc(length + 1) };
  if (!out->text) return mgrid_oom(err);
  memcpy(out->text, text, length);
  out->text[length] = '\0';
  int nth = 0;
  for (char *line = out->text, *end = line + length, *stop; line <= end && !err->status;
       line = stop + 1) {
    char *word[WORDS], *save = NULL;
    size_t n = 0;
    names_rule rule = { .line = ++nth };
    reading r = { .all = out, .rule = &rule, .line = line, .err = err };
    if (!(stop = memchr(line, '\n', (size_t)(end - line)))) stop = end;
    *stop = '\0';
    if (line + strlen(line) < stop)
      return wrong_at(&r, line + strlen(line), "a text has no byte 0");
    line[strcspn(line, "#\r")] = '\0';
    for (char *at = strtok_r(line, " \t", &save); at && n < WORDS;
         at = strtok_r(NULL, " \t", &save))
      word[n++] = at;
    if (n == 0) continue;
    if (n == WORDS) return WRONG(&r, "a side has at most %d names", NAMES_ON_A_SIDE);
    if (names_read_rule(&r, n, word)) return err->status;
    if (!MGRID_GROW(out->rule, out->n, 1)) return mgrid_oom(err);
    out->rule[out->n++] = rule;
  }
  return err->status;
}

void names_free(names *n) {
  free(n->text), free(n->rule);
  *n = (names){ 0 };
}

/* ----------------------------------------------------------------- matching
**
** To try each way of dividing a name would take exponential time. So a table says, for each place
** in the pattern and each place in the name, whether the rest of the pattern matches the rest of the
** name. It is filled from the end, in O(pattern x name). Then a walk from the start goes only to
** places that match, and tries the longest text of each capture first.
**
** If a capture occurs twice in the pattern, the table allows any text of its kind for each
** occurrence. So the walk may find that the two texts differ. It then goes back to its last choice.
** This may take exponential time, so its steps are limited.
*/

typedef struct choice {  /* the text name[from .. to) of a capture, or of * */
  size_t item;           /* its place in the pattern */
  size_t from, to, next; /* next: the end to try next */
} choice;

typedef struct matching {
  const names_rule *rule;
  const unsigned char *pattern, *name; /* without equal letters at the start and at the end */
  size_t npattern, nname;
  bool walks;         /* the table keeps all rows, for the walk; false: only two, used in turn */
  bool *table;        /* [nname + 2 or 2][npattern + 1] */
  choice *made;       /* [npattern]: the choices of the walk so far */
  mgrid_budget steps; /* for the walk */
  names_bound bound;
} matching;

enum { STEPS = 1 << 14, STEPS_FOR_PLACE = 64, TABLE_MOST = 1 << 24 };

static bool *names_row_of(const matching *m, size_t at) {
  return m->table + (m->walks ? at : at & 1) * (m->npattern + 1);
}

/* Return whether an item of the pattern is this character, or stands for texts that may have it. */
static bool names_is_of(const names_rule *r, unsigned char item, unsigned char c) {
  bool digit = mgrid_is_digit((char)c), letter = mgrid_is_letter((char)c);
  if (item >= ANY) return item == ANY || c == item;
  char kind = r->kind[item - 1];
  return kind == '.' || (digit && kind != 'a') || (letter && kind != 'd');
}

static bool fill_table(const matching *m) {
  memset(names_row_of(m, m->nname + 1), 0, (m->npattern + 1) * sizeof *m->table);
  for (size_t at = m->nname + 1; at-- > 0;) {
    bool *row = names_row_of(m, at), *next = names_row_of(m, at + 1);
    row[m->npattern] = at == m->nname;
    for (size_t i = m->npattern; i-- > 0;) {
      unsigned char item = m->pattern[i];
      bool one = at < m->nname && names_is_of(m->rule, item, m->name[at]);
      row[i] = (one && (next[i + 1] || (item <= ANY && next[i]))) || (item == ANY && row[i + 1]);
    }
  }
  return *names_row_of(m, 0);
}

static bool take_steps(matching *m, size_t n) { return mgrid_spend(&m->steps, (int64_t)n); }

/* Choose the next text after which the rest matches. A capture begins with its longest text, * with
** its shortest. Return false if no text is left. */
static bool names_choose(matching *m, choice *c) {
  unsigned char item = m->pattern[c->item];
  while ((item == ANY ? c->next <= m->nname : c->next > c->from) && take_steps(m, 1)) {
    c->to = item == ANY ? c->next++ : c->next--;
    if (!names_row_of(m, c->to)[c->item + 1]) continue;
    if (item < ANY) m->bound.at[item - 1] = (const char *)m->name + c->from;
    if (item < ANY) m->bound.length[item - 1] = c->to - c->from;
    return true;
  }
  if (item < ANY) m->bound.at[item - 1] = NULL;
  return false;
}

/* Return the end of the longest text that starts at a place and that a capture may have. */
static size_t names_run_of(matching *m, unsigned char item, size_t at) {
  size_t end = at;
  while (end < m->nname && names_is_of(m->rule, item, m->name[end])) end++;
  take_steps(m, end - at);
  return end;
}

/* Bind the captures. False: the name does not fit, or the steps are used up. */
static bool names_walk(matching *m) {
  size_t n = 0, item = 0, at = 0;

  while (take_steps(m, 1)) {
    unsigned char is = m->pattern[item];
    bool can = names_row_of(m, at)[item];
    if (can && item == m->npattern) return true;
    if (can && is > ANY) {
      item++, at++;
      continue;
    }
    if (can && is < ANY && m->bound.at[is - 1]) { /* this capture occurs again */
      size_t length = m->bound.length[is - 1];
      take_steps(m, length / 16);
      if (length <= m->nname - at && memcmp(m->name + at, m->bound.at[is - 1], length) == 0) {
        item++, at += length;
        continue;
      }
    } else if (can) {
      choice *c = &m->made[n++];
      *c = (choice){ .item = item, .from = at, .next = at };
      if (is < ANY) c->next = m->rule->kind[is - 1] == '.' ? m->nname : names_run_of(m, is, at);
    }
    while (n > 0 && !names_choose(m, &m->made[n - 1])) n--;
    if (n == 0) return false;
    item = m->made[n - 1].item + 1, at = m->made[n - 1].to;
  }
  return false;
}

/* Set pattern and name, without equal letters at their start and end. Return false if *fits has the
** result already. */
static bool names_begin(matching *m, const char *pattern, const char *name, bool *fits) {
  size_t least = 0;
  m->pattern = (const unsigned char *)pattern, m->name = (const unsigned char *)name;
  for (; *m->pattern > ANY; m->pattern++, m->name++)
    if (*m->pattern != *m->name) return false;
  *fits = !*m->pattern && !*m->name;
  if (!*m->pattern) return false;
  m->npattern = strlen((const char *)m->pattern), m->nname = strlen((const char *)m->name);
  for (; m->pattern[m->npattern - 1] > ANY; m->npattern--, m->nname--)
    if (m->nname == 0 || m->pattern[m->npattern - 1] != m->name[m->nname - 1]) return false;
  for (size_t i = 0; i < m->npattern; i++) least += m->pattern[i] != ANY;
  return least <= m->nname;
}

/* Return whether a capture occurs in the pattern twice. */
static bool recurs(const matching *m) {
  unsigned seen = 0;
  for (size_t i = 0; i < m->npattern; i++) {
    unsigned bit = m->pattern[i] < ANY ? 1U << m->pattern[i] : 0;
    if (seen & bit) return true;
    seen |= bit;
  }
  return false;
}

static mgrid_status pay(const names *all, size_t steps, mgrid_error *err) {
  if (mgrid_spend(all->budget, (int64_t)steps)) return MGRID_OK;
  return mgrid_fail_at(err, MGRID_LIMIT, all->from, 0,
                       "matching names by its rules takes more work than allowed");
}

static mgrid_status names_too_many(const names *all, const names_rule *r, const char *name,
                                   mgrid_error *err) {
  return mgrid_fail_at(
      err, MGRID_LIMIT, all->from, r->line,
      "a capture occurs twice in a name, and there are too many ways to find it in '%.100s'", name);
}

mgrid_status names_fit(const names *all, const names_rule *r, int side, size_t i, const char *name,
                       names_bound *bound, bool *fits, mgrid_error *err) {
  matching m = { .rule = r };
  *fits = false;
  if (bound) *bound = m.bound;
  if (pay(all, 1, err) || !names_begin(&m, r->side[side].name[i], name, fits)) return err->status;
  size_t places = (m.nname + 1) * (m.npattern + 1), rows = 2;
  m.walks = bound || recurs(&m);
  if (m.walks) rows = m.nname + 2;
  if (m.walks && places > TABLE_MOST) return names_too_many(all, r, name, err);
  if (pay(all, places, err)) return err->status;
  m.made =
      malloc(m.walks * m.npattern * sizeof *m.made + rows * (m.npattern + 1) * sizeof *m.table);
  if (!m.made) return mgrid_oom(err);
  m.table = (bool *)(m.made + m.walks * m.npattern);
  m.steps = mgrid_budget_new(STEPS + STEPS_FOR_PLACE * places, 0);
  *fits = fill_table(&m) && (!m.walks || names_walk(&m));
  free(m.made);
  if (m.steps.exhausted) return names_too_many(all, r, name, err);
  if (*fits && bound) *bound = m.bound;
  return pay(all, m.steps.used, err);
}

mgrid_status names_laid_out(const names *all, const names_rule *r, const char *name, bool *fits,
                            mgrid_error *err) {
  const char *pattern = r->side[0].name[0];
  *fits = false;
  if (pay(all, strlen(pattern) * (strlen(name) + 1), err)) return err->status;
  *fits = fnmatch(pattern, name, 0) == 0;
  return MGRID_OK;
}

void names_put(const names_rule *r, int side, size_t i, const names_bound *bound, mgrid_text *out) {
  const unsigned char *at = (const unsigned char *)r->side[side].name[i];
  for (; *at; at++)
    if (*at < ANY)
      mgrid_text_put(out, bound->at[*at - 1], bound->length[*at - 1]);
    else
      mgrid_text_put(out, (const char *)at, 1);
}
