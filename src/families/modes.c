/* SPDX-License-Identifier: MIT
**
** modes.c - canonical lists of (size, stride).
*/
#include "families/modes.h"

#include <string.h>

void mgrid_modes_push(mgrid_modes *m, int64_t size, int64_t stride) {
  if (size == 1) return;
  if (m->n > 0) {
    mgrid_mode *last = &m->at[m->n - 1];
    if (stride == last->size * last->stride) {
      last->size *= size;
      return;
    }
  }
  m->at[m->n++] = (mgrid_mode){ size, stride };
}

void mgrid_modes_append(mgrid_modes *m, const mgrid_modes *tail) {
  for (int i = 0; i < tail->n; i++) mgrid_modes_push(m, tail->at[i].size, tail->at[i].stride);
}

int64_t mgrid_modes_count(const mgrid_modes *m) {
  int64_t n = 1;
  for (int i = 0; i < m->n; i++) n *= m->at[i].size;
  return n;
}

int64_t mgrid_modes_offset(const mgrid_modes *m, int64_t i) {
  int64_t offset = 0;
  for (int k = 0; k < m->n; k++) {
    offset += i % m->at[k].size * m->at[k].stride;
    i /= m->at[k].size;
  }
  return offset;
}

int64_t mgrid_modes_span(const mgrid_modes *m) {
  int64_t span = 0;
  for (int i = 0; i < m->n; i++) span += (m->at[i].size - 1) * m->at[i].stride;
  return span;
}

bool mgrid_modes_equal(const mgrid_modes *a, const mgrid_modes *b) {
  return a->n == b->n && memcmp(a->at, b->at, (size_t)a->n * sizeof a->at[0]) == 0;
}

bool mgrid_modes_cut(const mgrid_modes *m, int64_t k, mgrid_modes *inner, mgrid_modes *outer, mgrid_mode *blocking) {
  inner->n = outer->n = 0;
  for (int i = 0; i < m->n; i++) {
    mgrid_mode mode = m->at[i];
    if (k == 1) {
      mgrid_modes_push(outer, mode.size, mode.stride);
    } else if (k % mode.size == 0) {
      mgrid_modes_push(inner, mode.size, mode.stride);
      k /= mode.size;
    } else if (mode.size % k == 0) {
      mgrid_modes_push(inner, k, mode.stride);
      mgrid_modes_push(outer, mode.size / k, mode.stride * k);
      k = 1;
    } else {
      if (blocking) *blocking = mode;
      return false;
    }
  }
  return true;
}

bool mgrid_modes_of(const int64_t *offsets, int64_t n, mgrid_modes *out) {
  out->n = 0;
  int64_t unit = 1; /* offsets[0], offsets[unit], offsets[2*unit], ... remain to be explained */
  while (unit < n) {
    int64_t stride = offsets[unit], run = 1, left = n / unit;
    if (stride <= 0) return false;
    while (run < left && offsets[run * unit] == run * stride) run++;
    if (left % run != 0) return false;
    for (int64_t start = 0; start < left; start += run)
      for (int64_t i = 1; i < run; i++)
        if (offsets[(start + i) * unit] != offsets[start * unit] + i * stride) return false;
    mgrid_modes_push(out, run, stride);
    unit *= run;
  }
  return true;
}

/* Divisors come in pairs (d, n / d), so the loop ends at the square root. */
void mgrid_nearest_divisors(int64_t n, int64_t k, int64_t *below, int64_t *above) {
  *below = *above = 0;
  for (int64_t d = 1; d * d <= n; d++) {
    if (n % d != 0) continue;
    int64_t pair[2] = { d, n / d };
    for (int i = 0; i < 2; i++) {
      if (pair[i] < k && pair[i] > *below) *below = pair[i];
      if (pair[i] > k && (*above == 0 || pair[i] < *above)) *above = pair[i];
    }
  }
}

/* Append modes, each with these marks before, in and behind it. The text is written from its end, as digits are. */
static void put_modes(const mgrid_modes *m, const char marks[3], const char *between, mgrid_text *t) {
  char text[MGRID_MODES_MAX * 48], *end = text + sizeof text, *at = end;
  for (int i = m->n - 1; i >= 0; i--) {
    *--at = marks[2];
    at = mgrid_digits(m->at[i].stride, at);
    *--at = marks[1];
    at = mgrid_digits(m->at[i].size, at);
    *--at = marks[0];
    if (i && *between) *--at = *between;
  }
  mgrid_text_put(t, at, (size_t)(end - at));
}

void mgrid_modes_text(const mgrid_modes *m, mgrid_text *t) {
  if (m->n == 0) mgrid_text_str(t, "(1)");
  put_modes(m, "(:)", "", t);
}

void mgrid_modes_json(const mgrid_modes *m, mgrid_text *t) {
  mgrid_text_str(t, "[");
  put_modes(m, "[,]", ",", t);
  mgrid_text_str(t, "]");
}
