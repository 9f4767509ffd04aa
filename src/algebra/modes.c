/* SPDX-License-Identifier: MIT
**
** modes.c - canonical lists of (size, stride).
*/
#include "algebra/modes.h"

#include <string.h>

void mg_modes_push(mg_modes *m, int64_t size, int64_t stride) {
  if (size == 1) return;
  if (m->n > 0) {
    mg_mode *last = &m->at[m->n - 1];
    if (stride == last->size * last->stride) {
      last->size *= size;
      return;
    }
  }
  m->at[m->n++] = (mg_mode){ size, stride };
}

void mg_modes_append(mg_modes *m, const mg_modes *tail) {
  for (int i = 0; i < tail->n; i++) mg_modes_push(m, tail->at[i].size, tail->at[i].stride);
}

int64_t mg_modes_count(const mg_modes *m) {
  int64_t n = 1;
  for (int i = 0; i < m->n; i++) n *= m->at[i].size;
  return n;
}

int64_t mg_modes_offset(const mg_modes *m, int64_t i) {
  int64_t offset = 0;
  for (int k = 0; k < m->n; k++) {
    offset += i % m->at[k].size * m->at[k].stride;
    i /= m->at[k].size;
  }
  return offset;
}

int64_t mg_modes_span(const mg_modes *m) {
  int64_t span = 0;
  for (int i = 0; i < m->n; i++) span += (m->at[i].size - 1) * m->at[i].stride;
  return span;
}

bool mg_modes_equal(const mg_modes *a, const mg_modes *b) {
  return a->n == b->n && memcmp(a->at, b->at, (size_t)a->n * sizeof a->at[0]) == 0;
}

bool mg_modes_cut(const mg_modes *m, int64_t k, mg_modes *inner, mg_modes *outer,
                  mg_mode *blocking) {
  inner->n = outer->n = 0;
  for (int i = 0; i < m->n; i++) {
    mg_mode mode = m->at[i];
    if (k == 1) {
      mg_modes_push(outer, mode.size, mode.stride);
    } else if (k % mode.size == 0) {
      mg_modes_push(inner, mode.size, mode.stride);
      k /= mode.size;
    } else if (mode.size % k == 0) {
      mg_modes_push(inner, k, mode.stride);
      mg_modes_push(outer, mode.size / k, mode.stride * k);
      k = 1;
    } else {
      if (blocking) *blocking = mode;
      return false;
    }
  }
  return true;
}

bool mg_modes_of(const int64_t *offsets, int64_t n, mg_modes *out) {
  out->n = 0;
  int64_t unit = 1; /* offsets[0], offsets[unit], offsets[2*unit], ... are left to explain */
  while (unit < n) {
    int64_t stride = offsets[unit], run = 1, left = n / unit;
    if (stride <= 0) return false;
    while (run < left && offsets[run * unit] == run * stride) run++;
    if (left % run != 0 || out->n == MG_MODES_MAX) return false;
    for (int64_t start = 0; start < left; start += run)
      for (int64_t i = 1; i < run; i++)
        if (offsets[(start + i) * unit] != offsets[start * unit] + i * stride) return false;
    mg_modes_push(out, run, stride);
    unit *= run;
  }
  return true;
}

/* Divisors come in pairs, so that walking to the square root is enough. */
void mg_nearest_divisors(int64_t n, int64_t k, int64_t *below, int64_t *above) {
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

void mg_modes_text(const mg_modes *m, mg_text *t) {
  char text[MG_MODES_MAX * 48], *end = text + sizeof text, *at = end;
  if (m->n == 0) mg_text_str(t, "(1)");
  for (int i = m->n - 1; i >= 0; i--) { /* from its end, as digits are found */
    *--at = ')';
    at = mg_digits(m->at[i].stride, at);
    *--at = ':';
    at = mg_digits(m->at[i].size, at);
    *--at = '(';
  }
  mg_text_put(t, at, (size_t)(end - at));
}
