/* SPDX-License-Identifier: MIT
**
** cartesian.c - Cartesian shapes: their text, whether a family fits one, steps along a dim.
*/
#include "plan/cartesian.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char periodic[] = "periodic", blanks[] = " ,\t\n";

/* -------------------------------------------------------------------- text */

static mgrid_status unlike(const char *word, mgrid_error *err) {
  return mgrid_fail(err, MGRID_BAD_VALUE, "cartesian: '%s' is not of the form dim:size or dim:size:periodic", word);
}

/* Read a word "x:4:periodic", cutting it at its colons, as the next dim of s. */
static mgrid_status read_side(mgrid_shape *s, char *word, mgrid_error *err) {
  mgrid_side *side = &s->side[s->n];
  char       *size = strchr(word, ':'), *end = NULL, *rest;
  if (!size) return unlike(word, err);
  side->size = strtoll(size + 1, &end, 10);
  if (end == size + 1 || (*end && *end != ':')) return unlike(word, err);
  rest = *end ? end + 1 : NULL;
  *size = '\0';
  if (rest && strcmp(rest, periodic) != 0) {
    const char *known = periodic;
    char        tail[64];
    mgrid_suggest(tail, sizeof tail, rest, &known, 1);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "cartesian: dim '%s' is '%.40s'%s", word, rest, tail);
  }
  if (!mgrid_is_name(word))
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "cartesian: '%s' is not a dim name (a letter or _, then letters, digits or _; at most %d)", word,
                      MGRID_NAME_MAX);
  for (int i = 0; i < s->n; i++)
    if (strcmp(s->side[i].name, word) == 0)
      return mgrid_fail(err, MGRID_DUPLICATE, "cartesian: dim '%s' is named twice", word);
  if (side->size < 1 || side->size > MGRID_WORLD_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "cartesian: dim '%s' has size %.*s; sizes are 1 to %" PRId64, word,
                      (int)(end - size - 1), size + 1, MGRID_WORLD_MAX);
  memcpy(side->name, word, strlen(word) + 1);
  side->periodic = rest != NULL;
  s->n++;
  return MGRID_OK;
}

static int64_t count_of(const mgrid_shape *s) {
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
  char        *copy = mgrid_strdup(text), *save = NULL;
  mgrid_status status = s && copy ? MGRID_OK : mgrid_oom(err);
  for (char *word = status ? NULL : strtok_r(copy, blanks, &save); word && !status;
       word = strtok_r(NULL, blanks, &save))
    status = s->n < MGRID_DIMS_MAX ? read_side(s, word, err)
                                   : mgrid_fail(err, MGRID_OUT_OF_RANGE, "cartesian: at most %d dims", MGRID_DIMS_MAX);
  if (!status && count_of(s) < 0)
    status = mgrid_fail(err, MGRID_OVERFLOW, "cartesian: the product of the sizes overflows 64 bits");
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

/* Write the first dim that could be resized to make the shape fit: "; nearest: x 4". */
static void nearest_text(const mgrid_shape *s, int64_t count, int64_t size, char *buf, size_t len) {
  *buf = '\0';
  for (int i = 0; i < s->n && size > 0 && !*buf; i++) {
    int64_t others = count / s->side[i].size;
    if (size % others == 0) snprintf(buf, len, "; nearest: %s %" PRId64, s->side[i].name, size / others);
  }
}

mgrid_status mgrid_shape_fits(const mgrid_shape *s, const char *name, const mgrid_family *f, mgrid_error *err) {
  int64_t    count = count_of(s);
  char       nearest[96];
  mgrid_text t = { 0 };
  if (f->size == count) return MGRID_OK;
  mgrid_shape_text(s, &t);
  mgrid_status status = MGRID_REFUSED;
  nearest_text(s, count, f->size, nearest, sizeof nearest);
  if (t.failed)
    status = mgrid_oom(err);
  else if (f->size < 0)
    mgrid_fail(err, status, "family '%s' has groups of different sizes, its Cartesian shape %s has %" PRId64 " ranks",
               name, t.data, count);
  else
    mgrid_fail(err, status, "family '%s' has groups of %" PRId64 " rank%s, its Cartesian shape %s has %" PRId64 "%s",
               name, f->size, mgrid_s_of(f->size), t.data, count, nearest);
  mgrid_text_free(&t);
  return status;
}

/* --------------------------------------------------------------- questions */

int mgrid_shape_find(const mgrid_shape *s, const char *dim, mgrid_error *err) {
  const char *known[MGRID_DIMS_MAX];
  char        tail[512];
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
  } else { /* compare before adding: steps may be any number */
    if (back ? steps > coord || steps <= coord - size : steps < -coord || steps >= size - coord) return -1;
    moved = back ? coord - steps : coord + steps;
  }
  return position + (moved - coord) * stride_of(s, i);
}
