/* SPDX-License-Identifier: MIT
**
** layout.c - a family made from its modes, or from their text: either as describe prints it, "(2:1) x (4:2) + 8", or in
** the notation of CuTe and torch, "(2,4):(8,1)". In both the first mode varies fastest, as everywhere here.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct layout { /* the modes so far: inside, then index */
  mgrid_modes side[2];
  int64_t     members, span; /* of all modes */
} layout;

/* -------------------------------------------------------------- the members */

/* Write out the members of modes that division cannot resolve; the table checks that they are distinct. */
static mgrid_family *as_lists(mgrid_window w, int64_t offset, const mgrid_modes *inside, const mgrid_modes *index,
                              const char *text, mgrid_error *err) {
  int64_t     size = mgrid_modes_count(inside), count = mgrid_modes_count(index);
  int64_t    *starts = malloc((size_t)(count + 1) * sizeof *starts);
  int32_t    *ranks = malloc((size_t)(count * size) * sizeof *ranks);
  mgrid_error why = MGRID_ERROR_INIT;
  if (starts && ranks) {
    for (int64_t g = 0; g <= count; g++) starts[g] = g * size;
    for (int64_t g = 0; g < count; g++)
      for (int64_t p = 0; p < size; p++)
        ranks[g * size + p] = (int32_t)(offset + mgrid_modes_offset(index, g) + mgrid_modes_offset(inside, p));
  }
  mgrid_family *f = mgrid_table_adopt(w, count, starts, ranks, MGRID_PARTIAL, true, &why);
  if (f) return f;
  if (why.status != MGRID_NO_MEMORY) mgrid_error_reword(&why, "modes %s overlap: %s", text, why.message);
  mgrid_error_pass(err, &why);
  return NULL;
}

/* Make the family of checked modes. NULL with *err untouched where it needs lists and `lists` is false. */
static mgrid_family *family_of(mgrid_window w, int64_t offset, const layout *l, bool lists, mgrid_error *err) {
  const mgrid_modes *inside = &l->side[0], *index = &l->side[1];
  mgrid_text         t = { 0 };
  mgrid_modes_text(inside, &t);
  mgrid_text_str(&t, " x ");
  mgrid_modes_text(index, &t);
  int64_t       last = w.offset + w.size - 1;
  mgrid_family *f = NULL;
  mgrid_error   why = MGRID_ERROR_INIT; /* out of memory does not mean that there is no rule */
  if (t.failed)
    mgrid_oom(err);
  else if (offset < w.offset || offset > last)
    mgrid_fail(err, MGRID_OUT_OF_RANGE,
               "modes %s: offset %" PRId64 " is out of range; ranks are %" PRId64 " to %" PRId64, t.data, offset,
               w.offset, last);
  else if (l->span > last - offset)
    mgrid_fail(err, MGRID_OUT_OF_RANGE, "modes %s: rank %" PRId64 " is out of range; ranks are %" PRId64 " to %" PRId64,
               t.data, offset + l->span, w.offset, last);
  else if (l->members > l->span + 1)
    mgrid_fail(err, MGRID_REFUSED, "modes %s overlap: %" PRId64 " members, but only %" PRId64 " ranks", t.data,
               l->members, l->span + 1);
  else if (!(f = mgrid_strided_new(w.world, offset, inside, index, &why)) && why.status)
    mgrid_error_pass(err, &why);
  else if (!f && lists)
    f = as_lists(w, offset, inside, index, t.data, err);
  mgrid_text_free(&t);
  return f;
}

/* ----------------------------------------------------------------- the modes */

/* Add a mode; `name` is its name in a refusal. */
static mgrid_status add_mode(layout *l, int side, int64_t size, int64_t stride, const char *name, mgrid_error *err) {
  if (size < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%s has size %" PRId64 "; sizes are 1 to %" PRId64, name, size,
                      MGRID_WORLD_MAX);
  if (stride < (size > 1)) /* CuTe writes 1:0 */
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%s has stride %" PRId64 "; strides are 1 to %" PRId64, name, stride,
                      MGRID_WORLD_MAX);
  int64_t reach;
  if (__builtin_mul_overflow(l->members, size, &l->members) || l->members > MGRID_WORLD_MAX
      || __builtin_mul_overflow(size - 1, stride, &reach) || __builtin_add_overflow(l->span, reach, &l->span)
      || l->span > MGRID_WORLD_MAX)
    return mgrid_fail(err, MGRID_OVERFLOW, "%s makes the modes larger than any world", name);
  mgrid_modes_push(&l->side[side], size, stride);
  return MGRID_OK;
}

mgrid_family *mgrid_layout_modes(mgrid_window w, int64_t offset, size_t ninside, const mgrid_mode *inside,
                                 size_t nindex, const mgrid_mode *index, bool lists, mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(ix);
  layout                  l = { { in, ix }, 1, 0 };
  const mgrid_mode *const modes[2] = { inside, index };
  const size_t            n[2] = { ninside, nindex };
  if (mgrid_window_check(w, err)) return NULL;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < n[side]; i++) {
      char name[48];
      snprintf(name, sizeof name, "%s mode %zu", side == 0 ? "inside" : "index", i);
      if (add_mode(&l, side, modes[side][i].size, modes[side][i].stride, name, err)) return NULL;
    }
  return family_of(w, offset, &l, lists, err);
}

mgrid_family *mgrid_family_modes(mgrid_window w, int64_t offset, size_t ninside, const mgrid_mode *inside,
                                 size_t nindex, const mgrid_mode *index, mgrid_error *err) {
  if (mgrid_lacks_list(ninside, inside, "inside modes", err)) return NULL;
  if (mgrid_lacks_list(nindex, index, "index modes", err)) return NULL;
  return mgrid_layout_modes(w, offset, ninside, inside, nindex, index, true, err);
}

/* ------------------------------------------------------------------ the text */

typedef struct reading {
  const char  *text, *at;
  mgrid_error *err;
  bool         failed;
} reading;

static void fault(reading *r, const char *expected) {
  if (r->failed) return;
  r->failed = true;
  if (*r->at)
    mgrid_fail(r->err, MGRID_BAD_VALUE, "layout '%.200s', character %zu: %s expected, not '%.20s'", r->text,
               (size_t)(r->at - r->text) + 1, expected, r->at);
  else
    mgrid_fail(r->err, MGRID_BAD_VALUE, "layout '%.200s' ends where %s is expected", r->text, expected);
}

static void skip_blanks(reading *r) {
  while (mgrid_is_space(*r->at)) r->at++;
}

static bool next_is(reading *r, char c) {
  skip_blanks(r);
  return !r->failed && *r->at == c;
}

static bool take(reading *r, char c) {
  bool found = next_is(r, c);
  r->at += found;
  return found;
}

static int64_t read_number(reading *r) {
  int64_t n = 0;
  skip_blanks(r);
  if (!mgrid_is_digit(*r->at)) fault(r, "a number");
  for (; !r->failed && mgrid_is_digit(*r->at); r->at++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *r->at - '0', &n)) fault(r, "a smaller number");
  return n;
}

enum { NUMBERS = 128 };

/* Read a number, or numbers in parentheses, nested or not: "(2,(4,2),)". Append their values in order, at most
** NUMBERS. */
static void read_numbers(reading *r, int64_t *values, size_t *n, int depth) {
  if (!take(r, '(')) {
    if (*n == NUMBERS) fault(r, "at most 128 numbers");
    if (!r->failed) values[(*n)++] = read_number(r);
    return;
  }
  if (depth == 16) fault(r, "at most 16 levels of parentheses");
  while (!r->failed && !next_is(r, ')')) {
    read_numbers(r, values, n, depth + 1);
    if (!take(r, ',') && !next_is(r, ')')) fault(r, "',' or ')'");
  }
  take(r, ')');
}

/* Return whether the text continues with a mode "(2:1)", or the "(1)" of no modes, and not with a list of sizes. */
static bool at_mode(reading *r) {
  const char *p = r->at + strspn(r->at, " \t(");
  p += strspn(p, "0123456789 \t");
  return next_is(r, '(') && (*p == ':' || (*p == ')' && p[1 + strspn(p + 1, " \t")] != ':'));
}

/* Read one side of the text: "(2:1)(4:8)", "(1)", "(2,4):(1,8)" or "8:1". */
static void read_side(reading *r, layout *l, int side) {
  if (at_mode(r)) {
    while (take(r, '(')) {
      const char *begin = r->at;
      int64_t     size = read_number(r), stride = 0;
      if (take(r, ':'))
        stride = read_number(r);
      else if (size != 1)
        fault(r, "':'");
      if (!take(r, ')')) fault(r, "')'");
      char name[64];
      snprintf(name, sizeof name, "mode (%.*s", (int)(r->at - begin < 48 ? r->at - begin : 48), begin);
      if (!r->failed) r->failed = add_mode(l, side, size, stride, name, r->err) != MGRID_OK;
    }
    return;
  }
  int64_t     sizes[NUMBERS], strides[NUMBERS];
  size_t      n = 0, nstrides = 0;
  const char *begin = r->at;
  read_numbers(r, sizes, &n, 0);
  if (!take(r, ':')) fault(r, "':' and the strides");
  read_numbers(r, strides, &nstrides, 0);
  if (!r->failed && n != nstrides) {
    r->failed = true;
    mgrid_fail(r->err, MGRID_REFUSED, "layout '%.200s': %zu sizes and %zu strides in '%.*s'", r->text, n, nstrides,
               (int)(r->at - begin < 200 ? r->at - begin : 200), begin);
  }
  for (size_t i = 0; i < n && !r->failed; i++) {
    char name[64];
    snprintf(name, sizeof name, "mode %" PRId64 ":%" PRId64, sizes[i], strides[i]);
    r->failed = add_mode(l, side, sizes[i], strides[i], name, r->err) != MGRID_OK;
  }
}

mgrid_family *mgrid_layout_parse(mgrid_window w, const char *text, bool lists, mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(ix);
  layout  l = { { in, ix }, 1, 0 };
  reading r = { text, text, err, false };
  int64_t offset = 0;
  if (mgrid_window_check(w, err)) return NULL;
  skip_blanks(&r);
  read_side(&r, &l, 0);
  if (take(&r, 'x')) {
    skip_blanks(&r);
    read_side(&r, &l, 1);
  }
  if (take(&r, '+')) offset = read_number(&r);
  skip_blanks(&r);
  if (*r.at) fault(&r, "'x', '+' or the end");
  return r.failed ? NULL : family_of(w, offset, &l, lists, err);
}

mgrid_family *mgrid_family_parse(mgrid_window w, const char *text, mgrid_error *err) {
  return mgrid_lacks(text, "the text of a family", err) ? NULL : mgrid_layout_parse(w, text, true, err);
}
