/* SPDX-License-Identifier: MIT
**
** numbers.c - named numbers: read, write, look up.
*/
#include "plan/numbers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const mgrid_number_rule mgrid_window_rules[] = {
  { NULL, 1, INT64_C(1) << 40 },
};

/* Fields of ncclDevCommRequirements. */
const mgrid_number_rule mgrid_device_rules[] = {
  { "barriers", 0, 1024 },     { "gin_connection", 0, 2 }, { "gin_counters", 0, 65536 }, { "gin_signals", 0, 65536 },
  { "lsa_barriers", 0, 1024 }, { "multimem", 0, 1 },       { "rail_barriers", 0, 1024 }, { NULL, 0, -1 },
};

static const mgrid_number_rule *rule_of(const mgrid_number_rule *rules, const char *name) {
  while (rules->name && strcmp(rules->name, name) != 0) rules++;
  return rules->name || rules->low <= rules->high ? rules : NULL;
}

static mgrid_status unknown(const char *option, const mgrid_number_rule *rules, const char *name, mgrid_error *err) {
  const char *known[MGRID_NUMBERS_MAX];
  size_t      n = 0;
  char        tail[256];
  for (; rules->name; rules++) known[n++] = rules->name;
  mgrid_suggest(tail, sizeof tail, name, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown number '%s' of option '%s'%s", name, option, tail);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const mgrid_number *)a)->name, ((const mgrid_number *)b)->name);
}

/* Read one "name=value" of len characters. */
static mgrid_status read_one(const char *word, size_t len, const char *option, const mgrid_number_rule *rules,
                             mgrid_numbers *out, mgrid_error *err) {
  const char   *equals = memchr(word, '=', len);
  size_t        name_len = equals ? (size_t)(equals - word) : len;
  char          digits[24] = "", *end = digits;
  mgrid_number *one = &out->at[out->n];
  if (!equals || name_len == 0)
    return mgrid_fail(err, MGRID_BAD_VALUE, "option '%s' is names and numbers such as \"%s=%" PRId64 "\", not '%.*s'",
                      option, rules->name ? rules->name : "kv", rules->name ? rules->high : 1 << 20, (int)len, word);
  if (out->n == MGRID_NUMBERS_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "option '%s' has at most %d numbers", option, MGRID_NUMBERS_MAX);
  if (name_len > MGRID_NAME_MAX)
    return mgrid_fail(err, MGRID_BAD_VALUE, "a name in option '%s' has at most %d characters: '%.*s'", option,
                      MGRID_NAME_MAX, (int)name_len, word);
  memcpy(one->name, word, name_len);
  one->name[name_len] = '\0';
  if (!mgrid_is_name(one->name))
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "'%s' in option '%s' is not a name: a letter or _, then letters, digits or _", one->name, option);
  const mgrid_number_rule *rule = rule_of(rules, one->name);
  if (!rule) return unknown(option, rules, one->name, err);
  for (size_t i = 0; i < out->n; i++)
    if (strcmp(out->at[i].name, one->name) == 0)
      return mgrid_fail(err, MGRID_DUPLICATE, "'%s' is given twice in option '%s'", one->name, option);
  size_t value_len = len - name_len - 1;
  if (value_len < sizeof digits) memcpy(digits, equals + 1, value_len);
  one->value = strtoll(digits, &end, 10);
  if (end == digits || *end || one->value < rule->low || one->value > rule->high)
    return mgrid_fail(err, end == digits || *end ? MGRID_BAD_VALUE : MGRID_OUT_OF_RANGE,
                      "'%s' in option '%s' is %" PRId64 " to %" PRId64 ", not '%.*s'", one->name, option, rule->low,
                      rule->high, (int)value_len, equals + 1);
  out->n++;
  return MGRID_OK;
}

mgrid_status mgrid_numbers_read(const char *text, const char *option, const mgrid_number_rule *rules,
                                mgrid_numbers **out, mgrid_error *err) {
  static const char between[] = " ,\t\n";
  *out = NULL;
  text = text ? text + strspn(text, between) : "";
  if (!*text) return MGRID_OK;
  mgrid_numbers *n = calloc(1, sizeof *n);
  mgrid_status   s = n ? MGRID_OK : mgrid_oom(err);
  while (*text && !s) {
    size_t len = strcspn(text, between);
    s = read_one(text, len, option, rules, n, err);
    text += len;
    text += strspn(text, between);
  }
  if (s) {
    free(n);
    return s;
  }
  qsort(n->at, n->n, sizeof *n->at, by_name);
  *out = n;
  return MGRID_OK;
}

void mgrid_numbers_text(const mgrid_numbers *n, mgrid_text *t) {
  for (size_t i = 0; n && i < n->n; i++)
    mgrid_text_add(t, "%s%s=%" PRId64, i ? " " : "", n->at[i].name, n->at[i].value);
}

int64_t mgrid_numbers_of(const mgrid_numbers *n, const char *name) {
  for (size_t i = 0; n && i < n->n; i++)
    if (strcmp(n->at[i].name, name) == 0) return n->at[i].value;
  return 0;
}
