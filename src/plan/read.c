/* SPDX-License-Identifier: MIT
**
** read.c - read a saved plan: its canonical text, or JSON whose "rules" are the lines of that text. The text may come
** from anybody, so its length is limited and the work for it is paid. The plan is written again and compared with the
** input, so either it has the digest of the saved plan, or there is an error.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_MOST = 1 << 24 }; /* bytes: JSON takes up to 24 times its length of memory */
enum { WORK = 1 << 25 };      /* a second or two */

typedef struct line { /* without its newline; not terminated by 0 */
  const char *at;
  size_t      len;
} line;

enum { READERS = 16 }; /* limit of slices with readers */

typedef struct saved {
  const char     *name; /* of the text, in messages */
  line           *rule; /* [nrules], the lines of the text */
  size_t          nrules;
  const json_t   *all; /* the object; NULL: it is text */
  mgrid_budget    budget;
  mgrid_topology *t;
  void           *items[READERS]; /* state of each of mgrid_item_readers; NULL: it was not needed */
} saved;

/* Return the lines of the text and of the fields beside it: an upper bound for the number of things. */
static size_t lines_of(const saved *v) {
  size_t n = v->nrules;
  for (const mgrid_item_reader *const *r = mgrid_item_readers; *r; r++)
    if ((*r)->beside) n += json_array_size(json_object_get(v->all, (*r)->beside));
  return n;
}

/* Add the place to an error: rule i, or with `field` element i of that field of the JSON. */
static mgrid_status at_place(const saved *v, const char *field, size_t i, mgrid_error *why) {
  if (v->budget.exhausted)
    *why = (mgrid_error)MGRID_ERROR_INIT, mgrid_fail(why, MGRID_LIMIT, "reading the plan takes more work than allowed");
  if (v->all || field)
    return mgrid_error_reword(why, "%.200s: %s[%zu]: %s", v->name, field ? field : "rules", i, why->message);
  snprintf(why->file, sizeof why->file, "%s", v->name);
  mgrid_show(why->file, sizeof why->file);
  why->line = (int)i + 1;
  return mgrid_error_reword(why, "%.200s:%zu: %s", v->name, i + 1, why->message);
}

static mgrid_status of_all(const saved *v, mgrid_error *why) {
  if (v->budget.exhausted && !why->status)
    mgrid_fail(why, MGRID_LIMIT, "reading the plan takes more work than allowed");
  return mgrid_error_reword(why, "%.200s: %s", v->name, why->message);
}

/* ------------------------------------------------------------------- one line */

/* Read "NAME: ". */
static void read_name(mgrid_scan *s, char name[MGRID_NAME_MAX + 1]) {
  mgrid_scan_name(s, name);
  mgrid_scan_want(s, ": ");
}

static void read_family(saved *v, mgrid_scan *s) {
  char name[MGRID_NAME_MAX + 1];
  read_name(s, name);
  mgrid_family *f = s->failed ? NULL : mgrid_family_read(s, v->t->content.world);
  mgrid_choice *c = f ? mgrid_choice_read(s) : NULL;
  if (c && mgrid_topology_put(v->t, name, f, c, s->err)) mgrid_scan_fail(s);
  mgrid_choice_free(c);
  mgrid_family_free(f);
}

static void read_grid(saved *v, mgrid_scan *s) {
  char name[MGRID_NAME_MAX + 1];
  read_name(s, name);
  mgrid_grid *g = s->failed ? NULL : mgrid_grid_read(s, v->t->content.world);
  if (g && mgrid_topology_put_grid(v->t, name, g, s->err)) mgrid_scan_fail(s);
  mgrid_grid_free(g);
}

/* Return the reader i, and start it if needed. NULL: there is none, or it failed to start. */
static const mgrid_item_reader *reader_of(saved *v, size_t i, mgrid_error *err) {
  const mgrid_item_reader *r = i < READERS ? mgrid_item_readers[i] : NULL;
  return r && (v->items[i] || (v->items[i] = r->begin(lines_of(v), err))) ? r : NULL;
}

/* Read "tensor NAME: ..." of a slice; false: no slice has such a word. */
static bool read_item(saved *v, mgrid_scan *s) {
  char   name[MGRID_ITEM_NAME_MAX + 1], word[MGRID_NAME_MAX + 2];
  size_t i = 0;
  for (; i < READERS && mgrid_item_readers[i]; i++) {
    snprintf(word, sizeof word, "%s ", mgrid_item_readers[i]->word);
    if (mgrid_scan_take(s, word)) break;
  }
  if (i == READERS || !mgrid_item_readers[i]) return false;
  const mgrid_item_reader *r = reader_of(v, i, s->err);
  if (!r) mgrid_scan_fail(s);
  mgrid_scan_item_name(s, name);
  mgrid_scan_want(s, ": ");
  if (!s->failed) r->line(v->items[i], name, v->t->content.world, s);
  return true;
}

/* Read "NAME = VALUE", of which both may have blanks, and the name even " = ", and record them. */
typedef mgrid_status record(mgrid_topology *t, const char *name, const char *value, mgrid_error *err);
static void          read_pair(saved *v, mgrid_scan *s, record *as) {
           const char *from = s->at;
           while (s->at < s->end && !mgrid_scan_next(s, " = ")) s->at++;
  char *name = strndup(from, (size_t)(s->at - from));
           mgrid_scan_want(s, " = ");
           char *value = strndup(s->at, (size_t)(s->end - s->at));
           s->at = s->end;
           if (!name || !value) mgrid_oom(s->err), mgrid_scan_fail(s);
  if (!s->failed && as(v->t, name, value, s->err)) mgrid_scan_fail(s);
  free(name);
           free(value);
}

static void read_param(saved *v, mgrid_scan *s) { read_pair(v, s, mgrid_topology_param); }
static void read_called(saved *v, mgrid_scan *s) { read_pair(v, s, mgrid_topology_called); }

/* Read "a b c", after the families. */
static void read_concurrent(saved *v, mgrid_scan *s) {
  char(*name)[MGRID_NAME_MAX + 1] = NULL, (*more)[MGRID_NAME_MAX + 1];
  size_t n = 0;
  do {
    if (n > MGRID_CONCURRENT_MAX) mgrid_scan_fault(s, "at most 4096 families");
    if (!(more = mgrid_scan_room(s, name, n, sizeof *name))) break;
    name = more;
    mgrid_scan_name(s, name[n++]);
  } while (mgrid_scan_take(s, " "));
  const char **names = s->failed ? NULL : malloc(n * sizeof *names);
  if (!names && !s->failed) mgrid_oom(s->err), mgrid_scan_fail(s);
  for (size_t i = 0; i < n && names; i++) names[i] = name[i];
  if (names && mgrid_concurrent_add(v->t, n, names, s->budget, s->err)) mgrid_scan_fail(s);
  free(names);
  free(name);
}

static void read_world(saved *v, mgrid_scan *s) {
  int64_t world = mgrid_scan_number(s);
  if (!s->failed && !(v->t = mgrid_topology_new(world, s->err))) mgrid_scan_fail(s);
}

static const struct {
  const char *word;
  void (*read)(saved *v, mgrid_scan *s);
  bool later; /* after the families */
} lines[] = {
  { "family ", read_family, false }, { "param ", read_param, false },          { "function ", read_called, false },
  { "grid ", read_grid, false },     { "concurrent ", read_concurrent, true },
};
enum { LINES = sizeof lines / sizeof lines[0] };

/* Read a rule, if it belongs to this pass: `later` is the second. */
static void read_line(saved *v, size_t i, bool later, mgrid_scan *s) {
  if (i == 0) {
    mgrid_scan_want(s, "moongrid 1");
  } else if (i == 1) {
    mgrid_scan_want(s, "world ");
    read_world(v, s);
  } else {
    size_t k = 0;
    while (k < LINES && !mgrid_scan_next(s, lines[k].word)) k++;
    if (k == LINES) {
      if (later)
        s->at = s->end;
      else if (!read_item(v, s))
        mgrid_scan_fault(s, "param, function, grid, concurrent, family or a thing such as tensor");
    } else if (lines[k].later == later) {
      mgrid_scan_take(s, lines[k].word);
      lines[k].read(v, s);
    } else {
      s->at = s->end;
    }
  }
  if (!s->failed && s->at < s->end) mgrid_scan_fault(s, "the end of the line");
}

/* ------------------------------------------------------------------- all lines */

static mgrid_status read_lines(saved *v, mgrid_error *why) {
  for (int later = 0; later < 2; later++)
    for (size_t i = later ? 2 : 0; i < v->nrules; i++) {
      mgrid_scan s = mgrid_scan_begin(v->rule[i].at, v->rule[i].len, &v->budget, why);
      read_line(v, i, later, &s);
      if (s.failed) return at_place(v, NULL, i, why);
    }
  if (v->t) return MGRID_OK;
  mgrid_fail(why, MGRID_BAD_VALUE, "it ends where 'moongrid 1' and 'world N' are expected");
  return of_all(v, why);
}

/* Add the things of slices to the topology, after reading the fields beside the rules. */
static mgrid_status put_items(saved *v, mgrid_error *why) {
  for (size_t i = 0; i < READERS && mgrid_item_readers[i]; i++) {
    const char   *field = mgrid_item_readers[i]->beside;
    const json_t *list = field ? json_object_get(v->all, field) : NULL;
    for (size_t k = 0; k < json_array_size(list); k++) {
      const json_t            *text = json_array_get(list, k);
      const mgrid_item_reader *r = reader_of(v, i, why);
      mgrid_scan               s = mgrid_scan_begin(json_string_value(text), json_string_length(text), &v->budget, why);
      if (!json_is_string(text)) mgrid_scan_fault(&s, "a text");
      if (r && !s.failed) r->line(v->items[i], NULL, v->t->content.world, &s);
      if (r && !s.failed && s.at < s.end) mgrid_scan_fault(&s, "the end of the text");
      if (!r || s.failed) return at_place(v, field, k, why);
    }
    if (v->items[i] && mgrid_item_readers[i]->end(v->items[i], v->t, why)) return of_all(v, why);
  }
  return MGRID_OK;
}

/* Compares the text that the plan writes with the lines that were read. */
typedef struct comparing {
  const saved *v;
  size_t       i; /* the line */
  mgrid_error *why;
} comparing;

static int compare(void *ud, const char *text, size_t len) {
  comparing *c = ud;
  for (const char *end = text + len; text < end;) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    size_t      n = (size_t)((stop ? stop : end) - text);
    const line *l = c->i < c->v->nrules ? &c->v->rule[c->i] : NULL;
    if (!l || l->len != n || memcmp(l->at, text, n) != 0) {
      mgrid_fail(c->why, MGRID_BAD_VALUE, "'%.*s' expected%s%.*s%s, as a plan is saved", n < 200 ? (int)n : 200, text,
                 l ? ", not '" : "",
                 !l             ? 0
                 : l->len < 200 ? (int)l->len
                                : 200,
                 l ? l->at : "", l ? "'" : "");
      at_place(c->v, NULL, c->i, c->why);
      return 1;
    }
    c->i++;
    text += n + 1;
  }
  return 0;
}

/* Make the plan of the lines, without checking the saved digest. */
static mgrid_plan *plan_of(saved *v, const char *recipe, mgrid_error *why) {
  if (read_lines(v, why) || put_items(v, why)) return NULL;
  if (recipe && mgrid_topology_recipe(v->t, recipe, why)) return NULL;
  mgrid_plan *p = mgrid_plan_make(v->t, &v->budget, why);
  comparing   c = { .v = v, .why = why };
  mgrid_error unused = MGRID_ERROR_INIT;
  if (!p) {
    of_all(v, why);
  } else if (mgrid_plan_print(p, compare, &c, &unused)) {
    if (!why->status) mgrid_error_pass(why, &unused);
  } else if (c.i < v->nrules) {
    mgrid_fail(why, MGRID_BAD_VALUE, "the end expected; the lines of a plan have a fixed order");
    at_place(v, NULL, c.i, why);
  }
  if (!why->status) return p;
  mgrid_plan_free(p);
  return NULL;
}

/* -------------------------------------------------------------- text and JSON */

static mgrid_plan *read_text(saved *v, const char *text, size_t length, mgrid_error *why) {
  size_t n = 0;
  for (const char *start = text, *end = text + length; start < end; n++) {
    const char *stop = memchr(start, '\n', (size_t)(end - start));
    start = stop ? stop + 1 : end;
  }
  if (!(v->rule = malloc((n + 1) * sizeof *v->rule))) return mgrid_null_oom(why);
  const char *first = memchr(text, '\n', length);
  bool        windows = first && first > text && first[-1] == '\r'; /* lines end with \r\n, all of them */
  for (const char *start = text, *end = text + length; start < end;) {
    const char *stop = memchr(start, '\n', (size_t)(end - start));
    line       *l = &v->rule[v->nrules++];
    *l = (line){ start, (size_t)((stop ? stop : end) - start) };
    if (stop && windows && (l->len == 0 || l->at[--l->len] != '\r')) {
      mgrid_fail(why, MGRID_BAD_VALUE, "a line that ends with \\r\\n expected, as the first one does");
      at_place(v, NULL, v->nrules - 1, why);
      return NULL;
    }
    start = stop ? stop + 1 : end;
  }
  return plan_of(v, NULL, why);
}

static mgrid_status rules_of(saved *v, mgrid_error *why) {
  const json_t *list = json_object_get(v->all, "rules");
  if (!(v->rule = malloc((json_array_size(list) + 1) * sizeof *v->rule))) return mgrid_oom(why);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *text = json_array_get(list, i);
    if (!json_is_string(text)) {
      mgrid_fail(why, MGRID_BAD_VALUE, "a string expected");
      return at_place(v, NULL, i, why);
    }
    v->rule[v->nrules++] = (line){ json_string_value(text), json_string_length(text) };
  }
  return MGRID_OK;
}

static mgrid_plan *read_object(saved *v, mgrid_error *why) {
  const json_t *all = v->all;
  const char   *digest = json_string_value(json_object_get(all, "digest")), *lacks = NULL;
  char          own[33];
  if (json_object_get(all, "rank"))
    lacks = "this is the view of one rank; without --rank the whole plan is saved";
  else if (!json_is_array(json_object_get(all, "rules")))
    lacks = "a list 'rules' expected, which the JSON of a plan has";
  else if (!digest)
    lacks = "a text 'digest' expected, which the JSON of a plan has";
  if (lacks) {
    mgrid_fail(why, MGRID_BAD_VALUE, "%s", lacks);
    of_all(v, why);
    return NULL;
  }
  if (rules_of(v, why)) return NULL;
  mgrid_plan *p = plan_of(v, json_string_value(json_object_get(all, "recipe")), why);
  mgrid_plan_digest(p, own);
  if (!p || strcmp(own, digest) == 0) return p;
  mgrid_fail(why, MGRID_BAD_VALUE, "digest: %s expected, which is that of the rules, not '%.40s'", own, digest);
  of_all(v, why);
  mgrid_plan_free(p);
  return NULL;
}

static mgrid_plan *read_json(saved *v, const char *text, size_t length, mgrid_error *why) {
  json_error_t fault;
  json_t      *all = json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
  mgrid_plan  *p = NULL;
  v->all = all;
  if (all) {
    p = read_object(v, why);
  } else if (json_error_code(&fault) == json_error_out_of_memory) {
    mgrid_oom(why);
  } else {
    mgrid_fail(why, MGRID_BAD_VALUE, "%.200s:%d: %s", v->name, fault.line, fault.text);
    snprintf(why->file, sizeof why->file, "%s", v->name);
    mgrid_show(why->file, sizeof why->file);
    why->line = fault.line;
  }
  json_decref(all);
  return p;
}

bool mgrid_plan_is_saved(const char *text, size_t length) {
  static const char head[] = "moongrid 1";
  const size_t      n = sizeof head - 1;
  while (length > 0 && (*text == ' ' || *text == '\t' || *text == '\r' || *text == '\n')) text++, length--;
  return length > 0 && (*text == '{' || (length > n && memcmp(text, head, n) == 0 && strchr("\r\n", text[n])));
}

mgrid_plan *mgrid_plan_read(const char *text, size_t length, const char *name, mgrid_error *err) {
  if (mgrid_lacks(text, "the text of a plan", err)) return NULL;
  saved       v = { .name = name ? name : "plan", .budget = mgrid_budget_new(WORK, 0) };
  mgrid_error why = MGRID_ERROR_INIT;
  size_t      blank = 0;
  while (blank < length && memchr(" \t\r\n", text[blank], 4)) blank++;
  bool        json = blank < length && text[blank] == '{';
  size_t      most = json ? JSON_MOST : MGRID_SAVED_MAX;
  mgrid_plan *p = NULL;
  if (length > most) {
    mgrid_fail(&why, MGRID_LIMIT, "%zu bytes of %s; a plan that is read has at most %zu%s", length,
               json ? "JSON" : "text", most, json ? ": mgrid_plan_save and --rules leave out lists of ranks" : "");
    of_all(&v, &why);
  } else {
    p = json ? read_json(&v, text, length, &why) : read_text(&v, text, length, &why);
  }
  if (why.status) mgrid_error_pass(err, &why);
  for (size_t i = 0; i < READERS && mgrid_item_readers[i]; i++)
    if (v.items[i]) mgrid_item_readers[i]->free(v.items[i]);
  mgrid_topology_free(v.t);
  free(v.rule);
  return p;
}
