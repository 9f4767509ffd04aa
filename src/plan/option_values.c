/* SPDX-License-Identifier: MIT
**
** option_values.c - options whose values have a notation of their own: Cartesian shapes and named
** numbers. Reading makes the canonical value, which has exactly one text. The file is linked into
** backends, too, so it knows no other option.
*/
#include "plan/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " ,\t\n"; /* between the parts of a value */

/* ========================================================== Cartesian shapes */

/* The text of a shape, whether a family fits it, and steps along a dim. */

static const char periodic[] = "periodic";

/* -------------------------------------------------------------------- text */

static mgrid_status unlike(const char *word, mgrid_error *err) {
  return mgrid_fail(err, MGRID_BAD_VALUE,
                    "cartesian: '%s' is not of the form dim:size or dim:size:periodic", word);
}

/* Read a word "x:4:periodic" as the next dim of s. This cuts the word at its colons. */
static mgrid_status option_values_read_side(mgrid_shape *s, char *word, mgrid_error *err) {
  mgrid_side *side = &s->side[s->n];
  char *size = strchr(word, ':'), *end = NULL, *rest;

  if (!size) return unlike(word, err);
  side->size = strtoll(size + 1, &end, 10);
  if (end == size + 1 || (*end && *end != ':')) return unlike(word, err);
  rest = *end ? end + 1 : NULL;
  *size = '\0';
  if (rest && strcmp(rest, periodic) != 0) {
    const char *known = periodic;
    char tail[64];
    mgrid_suggest(tail, sizeof tail, rest, &known, 1);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "cartesian: dim '%s' is '%.40s'%s", word, rest,
                      tail);
  }
  if (!mgrid_is_name(word))
    return mgrid_fail(
        err, MGRID_BAD_VALUE,
        "cartesian: '%s' is not a dim name (a letter or _, then letters, digits or _; at most %d)",
        word, MGRID_NAME_MAX);
  for (int i = 0; i < s->n; i++)
    if (strcmp(s->side[i].name, word) == 0)
      return mgrid_fail(err, MGRID_DUPLICATE, "cartesian: dim '%s' is named twice", word);
  if (side->size < 1 || side->size > MGRID_WORLD_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "cartesian: dim '%s' has size %.*s; sizes are 1 to %" PRId64, word,
                      (int)(end - size - 1), size + 1, MGRID_WORLD_MAX);
  memcpy(side->name, word, strlen(word) + 1);
  side->periodic = rest != NULL;
  s->n++;
  return MGRID_OK;
}

static int64_t option_values_count_of(const mgrid_shape *s) {
  int64_t count = 1;
  for (int i = 0; i < s->n; i++)
    if (__builtin_mul_overflow(count, s->side[i].size, &count)) return -1;
  return count;
}

mgrid_status mgrid_shape_read(const char *text, mgrid_shape **out, mgrid_error *err) {
  *out = NULL;
  text = text ? text + strspn(text, blanks) : "";
  if (!*text) return MGRID_OK;
  mgrid_shape *s = calloc(1, sizeof *s + MGRID_DIMS_MAX * sizeof s->side[0]);
  char *copy = mgrid_strdup(text), *save = NULL;
  mgrid_status status = s && copy ? MGRID_OK : mgrid_oom(err);
  for (char *word = status ? NULL : strtok_r(copy, blanks, &save); word && !status;
       word = strtok_r(NULL, blanks, &save))
    status = s->n < MGRID_DIMS_MAX ? option_values_read_side(s, word, err)
                                   : mgrid_fail(err, MGRID_OUT_OF_RANGE,
                                                "cartesian: at most %d dims", MGRID_DIMS_MAX);
  if (!status && option_values_count_of(s) < 0)
    status =
        mgrid_fail(err, MGRID_OVERFLOW, "cartesian: the product of the sizes overflows 64 bits");
  free(copy);
  if (status)
    free(s);
  else
    *out = s;
  return status;
}

void mgrid_shape_text(const mgrid_shape *s, mgrid_text *t) {
  for (int i = 0; s && i < s->n; i++) {
    mgrid_text_add(t, "%s%s:%" PRId64, i ? " " : "", s->side[i].name, s->side[i].size);
    if (s->side[i].periodic) mgrid_text_add(t, ":%s", periodic);
  }
}

/* -------------------------------------------------------- a family of this shape */

/* Write the first dim that could be resized to make the shape fit, and its new size: "; nearest: x
** 4". */
static void option_values_nearest_text(const mgrid_shape *s, int64_t count, int64_t size, char *buf,
                                       size_t len) {
  *buf = '\0';
  for (int i = 0; i < s->n && size > 0 && !*buf; i++) {
    int64_t others = count / s->side[i].size;
    if (size % others == 0)
      snprintf(buf, len, "; nearest: %s %" PRId64, s->side[i].name, size / others);
  }
}

mgrid_status mgrid_shape_fits(const mgrid_shape *s, const char *name, const mgrid_family *f,
                              mgrid_error *err) {
  int64_t count = option_values_count_of(s);
  char nearest[96];
  mgrid_text t = { 0 };

  if (f->size == count) return MGRID_OK;
  mgrid_shape_text(s, &t);
  mgrid_status status = MGRID_REFUSED;
  option_values_nearest_text(s, count, f->size, nearest, sizeof nearest);
  if (t.failed)
    status = mgrid_oom(err);
  else if (f->size < 0)
    mgrid_fail(err, status,
               "family '%s' has groups of different sizes, but its Cartesian shape %s has %" PRId64
               " ranks",
               name, t.data, count);
  else
    mgrid_fail(err, status,
               "family '%s' has groups of %" PRId64
               " rank%s, but its Cartesian shape %s has %" PRId64 "%s",
               name, f->size, mgrid_s_of(f->size), t.data, count, nearest);
  mgrid_text_free(&t);
  return status;
}

/* --------------------------------------------------------------- questions */

int mgrid_shape_find(const mgrid_shape *s, const char *dim, mgrid_error *err) {
  const char *known[MGRID_DIMS_MAX];
  char tail[512];
  for (int i = 0; i < s->n; i++) {
    known[i] = s->side[i].name;
    if (strcmp(known[i], dim) == 0) return i;
  }
  mgrid_suggest(tail, sizeof tail, dim, known, (size_t)s->n);
  mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown dim '%s'%s", dim, tail);
  return -1;
}

static int64_t stride_of(const mgrid_shape *s, int i) {
  int64_t stride = 1;
  while (i-- > 0) stride *= s->side[i].size;
  return stride;
}

int64_t mgrid_shape_coord(const mgrid_shape *s, int64_t position, int i) {
  return position / stride_of(s, i) % s->side[i].size;
}

int64_t mgrid_shape_step(const mgrid_shape *s, int64_t position, int i, int64_t steps, bool back) {
  int64_t size = s->side[i].size, coord = mgrid_shape_coord(s, position, i), moved;
  if (s->side[i].periodic) {
    moved = (coord + (back ? -(steps % size) : steps % size) + size) % size;
  } else { /* compare before adding, because `steps` may be any number */
    if (back ? steps > coord || steps <= coord - size : steps < -coord || steps >= size - coord)
      return -1;
    moved = back ? coord - steps : coord + steps;
  }
  return position + (moved - coord) * stride_of(s, i);
}

/* ============================================================= named numbers */

/* Functions that read and write named numbers, and find a number by its name. */

const mgrid_number_rule mgrid_window_rules[] = {
  { NULL, 1, INT64_C(1) << 40 },
};

/* Fields of ncclDevCommRequirements. */
const mgrid_number_rule mgrid_device_rules[] = {
  { "barriers", 0, 1024 },      { "gin_connection", 0, 2 },
  { "gin_counters", 0, 65536 }, { "gin_signals", 0, 65536 },
  { "lsa_barriers", 0, 1024 },  { "multimem", 0, 1 },
  { "rail_barriers", 0, 1024 }, { NULL, 0, -1 },
};

static const mgrid_number_rule *rule_of(const mgrid_number_rule *rules, const char *name) {
  while (rules->name && strcmp(rules->name, name) != 0) rules++;
  return rules->name || rules->low <= rules->high ? rules : NULL;
}

static mgrid_status option_values_unknown(const char *option, const mgrid_number_rule *rules,
                                          const char *name, mgrid_error *err) {
  const char *known[MGRID_NUMBERS_MAX];
  size_t n = 0;
  char tail[256];
  for (; rules->name; rules++) known[n++] = rules->name;
  mgrid_suggest(tail, sizeof tail, name, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown number '%s' of option '%s'%s", name, option,
                    tail);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const mgrid_number *)a)->name, ((const mgrid_number *)b)->name);
}

/* Read one "name=value", which has len characters. */
static mgrid_status read_one(const char *word, size_t len, const char *option,
                             const mgrid_number_rule *rules, mgrid_numbers *out, mgrid_error *err) {
  const char *equals = memchr(word, '=', len);
  size_t name_len = equals ? (size_t)(equals - word) : len;
  char digits[24] = "", *end = digits;
  mgrid_number *one = &out->at[out->n];

  if (!equals || name_len == 0)
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "option '%s' is names and numbers such as \"%s=%" PRId64 "\", not '%.*s'",
                      option, rules->name ? rules->name : "kv", rules->name ? rules->high : 1 << 20,
                      (int)len, word);
  if (out->n == MGRID_NUMBERS_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "option '%s' has at most %d numbers", option,
                      MGRID_NUMBERS_MAX);
  if (name_len > MGRID_NAME_MAX)
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "a name in option '%s' has at most %d characters: '%.*s'", option,
                      MGRID_NAME_MAX, (int)name_len, word);
  memcpy(one->name, word, name_len);
  one->name[name_len] = '\0';
  if (!mgrid_is_name(one->name))
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "'%s' in option '%s' is not a name: a letter or _, then letters, digits or _",
                      one->name, option);
  const mgrid_number_rule *rule = rule_of(rules, one->name);
  if (!rule) return option_values_unknown(option, rules, one->name, err);
  for (size_t i = 0; i < out->n; i++)
    if (strcmp(out->at[i].name, one->name) == 0)
      return mgrid_fail(err, MGRID_DUPLICATE, "'%s' is given twice in option '%s'", one->name,
                        option);
  size_t value_len = len - name_len - 1;
  if (value_len < sizeof digits) memcpy(digits, equals + 1, value_len);
  one->value = strtoll(digits, &end, 10);
  if (end == digits || *end || one->value < rule->low || one->value > rule->high)
    return mgrid_fail(err, end == digits || *end ? MGRID_BAD_VALUE : MGRID_OUT_OF_RANGE,
                      "'%s' in option '%s' is %" PRId64 " to %" PRId64 ", not '%.*s'", one->name,
                      option, rule->low, rule->high, (int)value_len, equals + 1);
  out->n++;
  return MGRID_OK;
}

mgrid_status mgrid_numbers_read(const char *text, const char *option,
                                const mgrid_number_rule *rules, mgrid_numbers **out,
                                mgrid_error *err) {
  *out = NULL;
  text = text ? text + strspn(text, blanks) : "";
  if (!*text) return MGRID_OK;
  mgrid_numbers *n = calloc(1, sizeof *n);
  mgrid_status s = n ? MGRID_OK : mgrid_oom(err);
  while (*text && !s) {
    size_t len = strcspn(text, blanks);
    s = read_one(text, len, option, rules, n, err);
    text += len;
    text += strspn(text, blanks);
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
