/* SPDX-License-Identifier: MIT
**
** text.c - machines as words: read into a list of words, where a later word for the same level replaces what an earlier
** one says, and then made. So a preset is its text, with more words behind.
*/
#include "machine/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 2 * MGRID_LEVELS_MAX };

typedef struct word {
  char       name[MGRID_NAME_MAX + 1];
  size_t     ncounts; /* of a level; 0: the word says only its link, or what crosses */
  int64_t   *counts;
  char       of[MGRID_NAME_MAX + 1], in[MGRID_NAME_MAX + 1]; /* of what crosses; "" else */
  int64_t    share;
  mgrid_link link;
} word;

typedef struct words {
  size_t   n;
  int64_t  ncounts; /* that were read, of all levels */
  word     at[WORDS_MAX];
  int64_t  nranks;
  int32_t *ranks;
} words;

static void free_words(words *w) {
  for (size_t i = 0; i < w->n; i++) free(w->at[i].counts);
  free(w->ranks);
}

/* ------------------------------------------------------------------- reading */

/* After the first fault nothing is read, so that a reader of many pieces looks at `failed` once, at their end. */
typedef struct scan {
  const char   *text, *at; /* where the next piece begins */
  mgrid_error  *err;       /* gets the first fault */
  mgrid_budget *budget;    /* of what is made of the text */
  bool          failed;
} scan;

/* MGRID_BAD_VALUE: "character 12: `expected` expected, not 'x y'". */
static void fault(scan *s, const char *expected) {
  if (s->failed) return;
  s->failed = true;
  if (!*s->at)
    mgrid_fail(s->err, MGRID_BAD_VALUE, "it ends where %s is expected", expected);
  else
    mgrid_fail(s->err, MGRID_BAD_VALUE, "character %zu: %s expected, not '%.20s'", (size_t)(s->at - s->text) + 1,
               expected, s->at);
}

static void skip_blanks(scan *s) {
  if (!s->failed) s->at += strspn(s->at, " \t\r\n");
}

static bool at_end(scan *s) {
  skip_blanks(s);
  return s->failed || !*s->at;
}

static bool is_next(const scan *s, const char *text) { return !s->failed && strncmp(s->at, text, strlen(text)) == 0; }

/* Does this come next? Then skip it. _word: after blanks, which are skipped, too. */
static bool take(scan *s, const char *text) {
  if (!is_next(s, text)) return false;
  s->at += strlen(text);
  return true;
}

static bool take_word(scan *s, const char *text) {
  const char *from = s->at;
  skip_blanks(s);
  if (take(s, text)) return true;
  s->at = from;
  return false;
}

/* Return a number, 0 or more; 0 after a fault. */
static int64_t read_number(scan *s) {
  int64_t     n = 0;
  const char *from = s->at;
  if (s->failed) return 0;
  while (mgrid_is_digit(*s->at)) {
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *s->at - '0', &n)) {
      s->at = from;
      fault(s, "a number below 2^63");
      return 0;
    }
    s->at++;
  }
  if (s->at == from) fault(s, "a number");
  return n;
}

/* Read the name of a level; "" after a fault. */
static void read_name(scan *s, char name[MGRID_NAME_MAX + 1]) {
  size_t n = 0;
  name[0] = '\0';
  if (s->failed) return;
  while (n <= MGRID_NAME_MAX && (mgrid_is_letter(s->at[n]) || s->at[n] == '_' || (n > 0 && mgrid_is_digit(s->at[n]))))
    n++;
  if (n == 0 || n > MGRID_NAME_MAX) {
    fault(s, "a name of at most 31 letters, digits and _");
    return;
  }
  memcpy(name, s->at, n);
  name[n] = '\0';
  s->at += n;
}

/* "[400GB/s,3us]", or nothing. */
static void read_link(scan *s, mgrid_link *link) {
  const char *why = NULL;
  if (!take_word(s, "[")) return;
  *link = (mgrid_link){ 0, 0 };
  do {
    skip_blanks(s);
    if (!s->failed && !mgrid_link_read(&s->at, link, &why)) fault(s, why);
  } while (take_word(s, ","));
  if (!take_word(s, "]")) fault(s, "',' or ']'");
}

/* Pay for numbers that the text makes, by their memory. */
static void pay_for(scan *s, int64_t numbers) {
  if (!s->failed && !mgrid_spend(s->budget, 64 * numbers)) s->failed = true;
}

/* "4", "*", "3x18,17". A number of 0 is "*" inside. */
static void read_counts(scan *s, words *all, word *w) {
  skip_blanks(s);
  do {
    const char *from = s->at;
    int64_t     times = 1, n = take(s, "*") ? 0 : read_number(s);
    if (n && take(s, "x")) times = n, n = read_number(s);
    if (!s->failed && ((n == 0 && *from != '*') || times < 1 || n > MGRID_WORLD_MAX)) {
      s->at = from;
      fault(s, "a number from 1 to 2147483647");
    }
    if (!s->failed && times > MGRID_COUNTS_MAX - all->ncounts) {
      s->at = from;
      fault(s, "at most 4194304 numbers in all levels");
    }
    pay_for(s, times);
    all->ncounts += s->failed ? 0 : times;
    for (int64_t i = 0; i < times && !s->failed; i++) {
      if (!MGRID_GROW(w->counts, w->ncounts, 1)) mgrid_oom(s->err), s->failed = true;
      if (!s->failed) w->counts[w->ncounts++] = n;
    }
  } while (take_word(s, ","));
}

/* "8..15,0..7" */
static void read_ranks(scan *s, words *w) {
  free(w->ranks);
  w->ranks = NULL;
  w->nranks = 0;
  do {
    skip_blanks(s);
    const char *from = s->at;
    int64_t     first = read_number(s), last = take(s, "..") ? read_number(s) : first;
    if (!s->failed && (last < first || last >= MGRID_WORLD_MAX || last - first >= MGRID_PLACED_MAX - w->nranks)) {
      s->at = from;
      fault(s, "places from low to high, at most 16777216,");
    }
    pay_for(s, last - first + 1);
    for (int64_t place = first; place <= last && !s->failed; place++) {
      if (!MGRID_GROW(w->ranks, (size_t)w->nranks, 1)) mgrid_oom(s->err), s->failed = true;
      if (!s->failed) w->ranks[w->nranks++] = (int32_t)place;
    }
  } while (take_word(s, ","));
}

/* Return the word for a name: the one that is there, or a new one. */
static word *word_of(words *w, const char *name, scan *s, const char *from) {
  for (size_t i = 0; i < w->n; i++)
    if (strcmp(w->at[i].name, name) == 0) return &w->at[i];
  if (w->n == WORDS_MAX) {
    s->at = from;
    fault(s, "at most 32 levels");
    return NULL;
  }
  word *one = &w->at[w->n++];
  snprintf(one->name, sizeof one->name, "%s", name);
  return one;
}

/* What follows "rail =". */
static void read_crossing(scan *s, word *one) {
  char in[MGRID_NAME_MAX + 1] = "";
  skip_blanks(s);
  read_name(s, one->of);
  one->share = 1;
  *one->in = '\0';
  if (take_word(s, "/")) {
    skip_blanks(s);
    one->share = read_number(s);
  }
  const char *from = s->at;
  if (take_word(s, "in ")) {
    skip_blanks(s);
    read_name(s, in);
    memcpy(one->in, in, sizeof in);
  } else {
    s->at = from;
  }
}

/* Read one word. `fresh`: no word of this text has named the level yet, so that it may replace one of a preset. */
static void read_word(scan *s, words *w, bool fresh[WORDS_MAX]) {
  char        name[MGRID_NAME_MAX + 1];
  const char *from = s->at;
  read_name(s, name);
  if (s->failed) return;
  bool level = take_word(s, ":"), crosses = !level && take_word(s, "=");
  if (crosses && strcmp(name, "ranks") == 0) {
    read_ranks(s, w);
    return;
  }
  skip_blanks(s);
  if (!level && !crosses && !is_next(s, "[")) fault(s, "':' and a number, as in node:4,");
  word *one = s->failed ? NULL : word_of(w, name, s, from);
  if (!one) return;
  if (!fresh[one - w->at] && (level || crosses)) {
    s->at = from;
    fault(s, "a level that is not there yet");
    return;
  }
  fresh[one - w->at] = false;
  if (level) {
    free(one->counts);
    one->counts = NULL;
    one->ncounts = 0;
    read_counts(s, w, one);
  } else if (crosses) {
    read_crossing(s, one);
  }
  read_link(s, &one->link);
}

static void read_words(scan *s, words *w) {
  bool fresh[WORDS_MAX];
  memset(fresh, true, sizeof fresh);
  while (!at_end(s)) read_word(s, w, fresh);
}

/* ---------------------------------------------------------------- the machine */

/* Put the words into a machine, which may have levels already. */
static mgrid_status build(mgrid_machine_model *m, words *w, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < w->n && !s; i++) {
    const word *one = &w->at[i];
    int64_t     there = one->ncounts || *one->of ? -1 : mgrid_machine_require(m, one->name, err);
    if (one->ncounts)
      s = mgrid_machine_add(m, one->name, one->ncounts, one->counts, one->link, err);
    else if (!*one->of && there < 0)
      s = MGRID_UNKNOWN_NAME;
    else if (!*one->of && (size_t)there < m->ntiers)
      m->tier[there].link = one->link;
  }
  if (!s) s = mgrid_machine_finish(m, err);
  for (size_t i = 0; i < w->n && !s; i++) {
    const word *one = &w->at[i];
    if (*one->of)
      s = mgrid_machine_add_crossing(m, one->name, one->of, one->share, *one->in ? one->in : NULL, one->link, err);
  }
  if (s || !w->ranks) return s;
  int32_t *ranks = w->ranks;
  w->ranks = NULL;
  return mgrid_machine_set_ranks(m, w->nranks, ranks, err);
}

static mgrid_machine_model *made(words *w, mgrid_error *err) {
  mgrid_machine_model *m = mgrid_machine_alloc(err);
  if (m && !build(m, w, err)) return m;
  mgrid_machine_free(m);
  return NULL;
}

mgrid_status mgrid_machine_more(mgrid_machine_model *m, const char *text, mgrid_error *err) {
  words       *w = calloc(1, sizeof *w);
  scan         s = { .text = text, .at = text, .err = err };
  mgrid_status status = MGRID_BAD_VALUE;
  if (!w) return mgrid_oom(err);
  read_words(&s, w);
  if (!s.failed) status = build(m, w, err);
  free_words(w);
  free(w);
  return s.failed && err && err->status ? err->status : status;
}

/* The preset whose name is the first word of a text; *rest is what follows. */
static const mgrid_preset *preset_at(const char *text, const char **rest) {
  size_t len = strcspn(text, " \t\r\n");
  *rest = text + len;
  for (const mgrid_preset *p = mgrid_presets; p->name; p++)
    if (strlen(p->name) == len && memcmp(p->name, text, len) == 0) return p;
  *rest = text;
  return NULL;
}

static mgrid_status refuse_name(const char *text, mgrid_error *err) {
  enum { SHOWN = 40, KNOWN = 64 };
  const char *known[KNOWN];
  char        first[SHOWN + 1], tail[512];
  size_t      n = 0;
  snprintf(first, sizeof first, "%.*s", (int)strcspn(text, " \t\r\n"), text);
  for (const mgrid_preset *p = mgrid_presets; p->name && n < KNOWN; p++) known[n++] = p->name;
  mgrid_suggest(tail, sizeof tail, first, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME,
                    "unknown machine '%s': it is no file and no preset%s; levels are written as 'node:4 gpu:8'", first,
                    tail);
}

static bool is_number(const char *text) { return *text && text[strspn(text, "0123456789")] == '\0'; }

mgrid_machine_model *mgrid_machine_words(const char *text, const char *what, mgrid_budget *budget, mgrid_error *err) {
  const char          *rest;
  char                 plain[64];
  mgrid_error          why = MGRID_ERROR_INIT;
  mgrid_machine_model *m = NULL;
  text += strspn(text, " \t\r\n");
  const mgrid_preset *preset = preset_at(text, &rest);
  if (is_number(text) && strlen(text) < 12) {
    snprintf(plain, sizeof plain, "node:* gpu:%s", text);
    rest = text = plain;
  }
  if (!preset && !strpbrk(text, ":=") && *text) {
    refuse_name(text, err);
    return NULL;
  }
  words *w = calloc(1, sizeof *w);
  if (!w) return mgrid_null_oom(err);
  const char *first = preset ? preset->text : "";
  scan        s = { .text = first, .at = first, .err = &why };
  read_words(&s, w);
  s = (scan){ .text = rest, .at = rest, .err = &why, .budget = budget, .failed = s.failed };
  read_words(&s, w);
  if (!s.failed) m = made(w, &why);
  if (m && preset && !(m->source = mgrid_strdup(preset->name))) {
    mgrid_machine_free(m);
    m = mgrid_null_oom(&why);
  }
  if (why.status && why.status != MGRID_NO_MEMORY)
    mgrid_error_reword(&why, "%s '%.60s%s': %s", what, text, strlen(text) > 60 ? "..." : "", why.message);
  mgrid_error_pass(err, &why);
  free_words(w);
  free(w);
  return m;
}

mgrid_machine_model *mgrid_machine_parse(const char *text, mgrid_error *err) {
  if (mgrid_lacks(text, "the text of the machine", err)) return NULL;
  if (strlen(text) > MGRID_MACHINE_TEXT)
    return mgrid_null(err, MGRID_LIMIT, "the text of a machine has at most %d bytes; a file may have more",
                      MGRID_MACHINE_TEXT);
  return mgrid_machine_words(text, "machine", NULL, err);
}

/* ----------------------------------------------------------- canonical text */

/* Append a list of numbers, with runs of equal ones as "3x18". */
static void counts_text(const mgrid_tier *tier, mgrid_text *t) {
  for (int64_t i = 0, run; i < tier->ncounts; i += run) {
    for (run = 1; i + run < tier->ncounts && tier->counts[i + run] == tier->counts[i]; run++) continue;
    if (i) mgrid_text_str(t, ",");
    if (run > 1) mgrid_text_int(t, run), mgrid_text_str(t, "x");
    if (tier->counts[i])
      mgrid_text_int(t, tier->counts[i]);
    else
      mgrid_text_str(t, "*");
  }
}

void mgrid_machine_text(const mgrid_machine_model *m, mgrid_text *t) {
  for (size_t i = 0; i < m->ntiers; i++) {
    mgrid_text_add(t, "%s%s:", i ? " " : "", m->tier[i].name);
    counts_text(&m->tier[i], t);
    mgrid_link_text(m->tier[i].link, t);
  }
  for (size_t i = 0; i < m->ncrossings; i++) {
    const mgrid_crossing *x = &m->crossing[i];
    mgrid_text_add(t, " %s = %s", x->name, m->tier[x->of].name);
    if (x->share > 1) mgrid_text_add(t, " / %" PRId64, x->share);
    if (x->in >= 0) mgrid_text_add(t, " in %s", m->tier[x->in].name);
    mgrid_link_text(x->link, t);
  }
  if (m->at) mgrid_text_str(t, " ranks = ");
  for (int64_t r = 0, last; m->at && r < m->nranks; r = last + 1) {
    for (last = r; last + 1 < m->nranks && m->at[last + 1] == m->at[last] + 1; last++) continue;
    if (r) mgrid_text_str(t, ",");
    mgrid_text_int(t, m->at[r]);
    if (last > r) mgrid_text_str(t, ".."), mgrid_text_int(t, m->at[last]);
  }
}

size_t mgrid_machine_describe(const mgrid_machine_model *m, char *buf, size_t len) {
  mgrid_text t = { 0 };
  if (m) mgrid_machine_text(m, &t);
  return mgrid_text_finish(&t, buf, len);
}
