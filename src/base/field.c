/* SPDX-License-Identifier: MIT
**
** field.c - reads numbers, texts and lists from JSON, and knows the place of each for messages.
*/
#include "base/field.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool mgrid_json_deep(const char *text, size_t length, int most) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < length && depth <= most; i++) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\') i++;
    if (!quoted) depth += (text[i] == '{' || text[i] == '[') - (text[i] == '}' || text[i] == ']');
  }
  return depth > most;
}

/* Append the place of a field, "rules[3].rule.of". */
static void put_place(const mgrid_field *f, mgrid_text *t) {
  if (!f->in) return;
  put_place(f->in, t);
  if (f->name)
    mgrid_text_add(t, "%s%.64s", t->len ? "." : "", f->name);
  else
    mgrid_text_add(t, "[%zu]", f->index);
}

void mgrid_field_fail(const mgrid_field *f) {
  mgrid_error *err = f->all->err;
  mgrid_text place = { 0 };
  if (f->all->failed) return;
  f->all->failed = true;
  if (!err->status) return; /* the budget is exhausted, which is not an error here */
  put_place(f, &place);
  if (place.len > 0) mgrid_error_reword(err, "%.400s: %s", place.data, err->message);
  mgrid_text_free(&place);
}

void mgrid_field_fault(const mgrid_field *f, const char *expected) {
  static const char *const kinds[] = { "an object",  "this list", "",      "",
                                       "a fraction", "true",      "false", "null" };
  char shown[64] = "but it is not there";
  if (f->all->failed) return;
  if (json_is_string(f->v))
    snprintf(shown, sizeof shown, "not '%.40s'", json_string_value(f->v));
  else if (json_is_integer(f->v))
    snprintf(shown, sizeof shown, "not %" PRId64, (int64_t)json_integer_value(f->v));
  else if (f->v)
    snprintf(shown, sizeof shown, "not %s", kinds[json_typeof(f->v)]);
  mgrid_fail(f->all->err, MGRID_BAD_VALUE, "%s expected, %s", expected, shown);
  mgrid_field_fail(f);
}

bool mgrid_field_spend(const mgrid_field *f, int64_t work) {
  if (!f->all->failed && mgrid_spend(f->all->budget, work)) return true;
  mgrid_field_fail(f);
  return false;
}

mgrid_field mgrid_field_of(const mgrid_field *f, const char *name) {
  return (mgrid_field){ f->all, f, name, 0, json_object_get(f->v, name) };
}

mgrid_field mgrid_field_at(const mgrid_field *f, size_t i) {
  return (mgrid_field){ f->all, f, NULL, i, json_array_get(f->v, i) };
}

/* Return whether the name is in a list of names that blanks separate. */
static bool is_one_of(const char *name, const char *names) {
  size_t len = strlen(name);
  for (const char *at = names; *at; at += strspn(at, " ")) {
    size_t n = strcspn(at, " ");
    if (n == len && memcmp(at, name, n) == 0) return true;
    at += n;
  }
  return false;
}

static void field_refuse_name(const mgrid_field *f, const char *name, const char *names) {
  enum { KNOWN = 64 };
  const char *known[KNOWN];
  char tail[256], *copy = mgrid_strdup(names), *rest = copy;
  size_t n = 0;
  while (rest && *rest && n < KNOWN) {
    known[n++] = rest;
    rest += strcspn(rest, " ");
    if (*rest) *rest++ = '\0';
  }
  mgrid_suggest(tail, sizeof tail, name, known, n);
  mgrid_fail(f->all->err, MGRID_BAD_VALUE, "unknown field '%.60s'%s", name, tail);
  mgrid_field_fail(f);
  free(copy);
}

void mgrid_field_only(const mgrid_field *f, const char *names) {
  if (!json_is_object(f->v)) mgrid_field_fault(f, "an object");
  const char *name;
  json_t *v, *all = (json_t *)(uintptr_t)f->v; /* the macro takes no const pointer */
  json_object_foreach(all, name, v) if (!f->all->failed && !is_one_of(name, names))
      field_refuse_name(f, name, names);
}

size_t mgrid_field_list(const mgrid_field *f, size_t low, size_t high) {
  const size_t n = json_array_size(f->v);
  char expected[64] = "a list";
  if (json_is_array(f->v) && n >= low && n <= high) return f->all->failed ? 0 : n;
  if (low == high)
    snprintf(expected, sizeof expected, "a list of %zu", low);
  else if (high < SIZE_MAX)
    snprintf(expected, sizeof expected, "a list of %zu to %zu", low, high);
  else if (low > 0)
    snprintf(expected, sizeof expected, "a list of %zu or more", low);
  mgrid_field_fault(f, expected);
  return 0;
}

int64_t mgrid_field_number(const mgrid_field *f, int64_t low, int64_t high) {
  const int64_t n = json_integer_value(f->v);
  char expected[80];
  if (json_is_integer(f->v) && n >= low && n <= high) return f->all->failed ? 0 : n;
  int at = snprintf(expected, sizeof expected, "a number from %" PRId64, low);
  if (high < INT64_MAX) snprintf(expected + at, sizeof expected - (size_t)at, " to %" PRId64, high);
  mgrid_field_fault(f, expected);
  return 0;
}

bool mgrid_field_flag(const mgrid_field *f) {
  if (f->v && !json_is_boolean(f->v)) mgrid_field_fault(f, "true or false");
  return json_is_true(f->v);
}

const char *mgrid_field_text(const mgrid_field *f) {
  if (!json_is_string(f->v)) mgrid_field_fault(f, "a text");
  return f->all->failed ? "" : json_string_value(f->v);
}

int64_t *mgrid_field_numbers(const mgrid_field *f, int64_t low, int64_t high, size_t *n) {
  const size_t length = mgrid_field_list(f, 0, SIZE_MAX);
  int64_t *list = mgrid_field_spend(f, (int64_t)length) ? malloc((length + 1) * sizeof *list)
                                                        : NULL;
  *n = 0;
  if (!list && !f->all->failed) mgrid_oom(f->all->err), mgrid_field_fail(f);
  for (size_t i = 0; i < length && list && !f->all->failed; i++) {
    mgrid_field one = mgrid_field_at(f, i);
    list[i] = mgrid_field_number(&one, low, high);
  }
  if (list && !f->all->failed) return *n = length, list;
  free(list);
  return NULL;
}
