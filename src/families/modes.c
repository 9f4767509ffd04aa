/* SPDX-License-Identifier: MIT
**
** modes.c - lists of modes (size, stride): made canonical, and used as sets of points.
*/
#include "families/modes.h"

#include <stdlib.h>
#include <string.h>

/* =========================================================== canonical lists */

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

bool mgrid_modes_cut(const mgrid_modes *m, int64_t k, mgrid_modes *inner, mgrid_modes *outer,
                     mgrid_mode *blocking) {
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
  /* offsets[0], offsets[unit], offsets[2*unit], ... are not covered by a mode yet */
  int64_t unit = 1;
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

int64_t mgrid_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b, b = r;
  }
  return a;
}

/* Append modes. marks: the characters before the size of a mode, between size and stride, and after
** the stride; `between` separates two modes. The text is written from its end, because mgrid_digits
** writes a number from its end. */
static void put_modes(const mgrid_modes *m, const char marks[3], const char *between,
                      mgrid_text *t) {
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

/* ==================================================================== points */

/* Which points of one set are in which other sets. Two steps of a mode look the same to another set
** if both lie entirely outside of it, or both in whole periods of its largest stride. So a mode is
** cut where that changes, and each piece is examined once. */

enum {
  CUTS_MAX = 1024,  /* most pieces into which one mode is cut */
  CHECKS = 1 << 21, /* most checks in one search */
};

bool mgrid_points_push(mgrid_points *p, int64_t size, int64_t stride) {
  if (size == 1) return true;
  if (p->n == MGRID_POINTS_MODES) return false;
  int place = p->n++;
  for (; place > 0 && p->at[place - 1].stride < stride; place--) p->at[place] = p->at[place - 1];
  p->at[place] = (mgrid_mode){ size, stride };
  return true;
}

static int64_t span_from(const mgrid_points *p, int level) {
  int64_t span = 0;
  for (int i = level; i < p->n; i++) span += (p->at[i].size - 1) * p->at[i].stride;
  return span;
}

static int64_t modes_count_of(const mgrid_points *p) {
  int64_t n = 1;
  for (int i = 0; i < p->n; i++) n *= p->at[i].size;
  return n;
}

bool mgrid_points_apart(const mgrid_points *p) {
  int64_t reach = 0;
  for (int i = p->n - 1; i >= 0; i--) {
    if (p->at[i].stride <= reach) return false;
    reach += (p->at[i].size - 1) * p->at[i].stride;
  }
  return true;
}

/* --------------------------------------------------------------------- walk */

/* The part of another set in which points of the current piece may be: it begins at `offset`, and
** has the modes from `level` on. */
typedef struct rest {
  size_t which;
  int level;
  int64_t offset;
} rest;

typedef struct walk {
  const mgrid_points *const *others;
  mgrid_points_fn fn;
  void *ud;
  bool every;
  mgrid_budget *budget, checks;
  rest *rests; /* a stack: the rests of a piece, then those of the pieces that are cut from it */
  size_t room;
} walk;

/* Narrow a set to the part near the points x to x + span. False: no part of it is there. */
static bool modes_narrow(const mgrid_points *b, int64_t x, int64_t span, rest *r) {
  if (x + span < r->offset || x - r->offset > span_from(b, r->level)) return false;
  for (; r->level < b->n && x >= r->offset; r->level++) {
    mgrid_mode m = b->at[r->level];
    int64_t step = (x - r->offset) / m.stride;
    if (step != (x + span - r->offset) / m.stride) return true;
    if (step >= m.size) return false;
    r->offset += step * m.stride;
    if (x - r->offset > span_from(b, r->level + 1)) return false;
  }
  return x <= r->offset || r->level < b->n;
}

/* Return whether the set holds all points of the piece. True is exact; false may be wrong. */
static bool has_all(const mgrid_points *b, const rest *r, const mgrid_points *a) {
  int left = b->n - r->level;
  if (r->offset == a->offset && left == a->n
      && memcmp(b->at + r->level, a->at, (size_t)left * sizeof *a->at) == 0)
    return true;
  if (left != 1 || a->offset < r->offset) return false;
  mgrid_mode m = b->at[r->level];
  if ((a->offset - r->offset) % m.stride
      || a->offset - r->offset + span_from(a, 0) > (m.size - 1) * m.stride)
    return false;
  for (int i = 0; i < a->n; i++)
    if (a->at[i].stride % m.stride) return false;
  return true;
}

static bool modes_visit(walk *w, const mgrid_points *a, int64_t weight, size_t from, size_t n);

/* Return the first step d for which x + d * stride reaches `mark`, at most `size`. */
static int64_t step_to(int64_t x, mgrid_mode m, int64_t mark) {
  if (mark <= x) return 0;
  int64_t d = (mark - x - 1) / m.stride + 1;
  return d < m.size ? d : m.size;
}

static int modes_ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Visit the steps first to end - 1 of the largest mode as a piece of their own. */
static bool visit_steps(walk *w, const mgrid_points *a, int64_t first, int64_t end, int64_t weight,
                        size_t from, size_t n) {
  mgrid_points piece = *a;
  piece.offset += first * a->at[0].stride;
  piece.at[0].size = end - first;
  if (end - first == 1) memmove(piece.at, piece.at + 1, (size_t)--piece.n * sizeof *piece.at);
  return modes_visit(w, &piece, weight, from, n);
}

/* Cut the largest mode before each step in cut[], and visit the pieces. This sorts and frees cut[].
** `alike`: all steps of a piece look the same, so its first step stands for them. */
static bool visit_pieces(walk *w, const mgrid_points *a, size_t ncuts, int64_t *cut, bool alike,
                         int64_t weight, size_t from, size_t n) {
  bool going = true;
  int64_t size = a->at[0].size, first = 0;
  qsort(cut, ncuts, sizeof *cut, modes_ascending);
  for (size_t i = 0; i <= ncuts && going; i++) {
    int64_t end = i < ncuts ? cut[i] : size;
    if (end <= first || end > size) continue;
    going = visit_steps(w, a, first, alike ? first + 1 : end,
                        alike ? weight * (end - first) : weight, from, n);
    first = end;
  }
  free(cut);
  return going;
}

/* Cut the largest mode (n:s) into (k:s)(n/k:k*s), and a piece with the steps that remain. */
static bool visit_periods(walk *w, const mgrid_points *a, int64_t k, int64_t weight, size_t from,
                          size_t n) {
  mgrid_mode top = a->at[0];
  mgrid_points piece = *a;
  int64_t whole = top.size / k;
  piece.at[0].size = k;
  if (!mgrid_points_push(&piece, whole, k * top.stride) || !modes_visit(w, &piece, weight, from, n))
    return false;
  return top.size % k == 0 || visit_steps(w, a, whole * k, top.size, weight, from, n);
}

/* Cut the piece where the periods of another set start. The largest stride of that set is larger
** than that of the piece. */
static bool visit_by_stride(walk *w, const mgrid_points *a, const rest *r, int64_t inner,
                            int64_t weight, size_t from, size_t n) {
  mgrid_mode top = a->at[0], m = w->others[r->which]->at[r->level];
  int64_t k = m.stride / mgrid_gcd(m.stride, top.stride), both;
  if (k < top.size && !__builtin_mul_overflow(k, top.stride, &both))
    return visit_periods(w, a, k, weight, from, n);
  int64_t span = inner + (top.size - 1) * top.stride, x = a->offset;
  int64_t first = x < r->offset ? 0 : (x - r->offset) / m.stride + 1,
          last = (x + span - r->offset) / m.stride;
  if (last > m.size) last = m.size;
  if (last - first >= CUTS_MAX) return false;
  int64_t offset = r->offset; /* a copy, because w->rests may be moved */
  int64_t *cut = malloc((size_t)(2 * (last - first + 1) + 1) * sizeof *cut);
  size_t ncuts = 0;
  for (int64_t q = first; q <= last && cut; q++) {
    cut[ncuts++] = step_to(x + inner, top, offset + q * m.stride);
    cut[ncuts++] = step_to(x, top, offset + q * m.stride);
  }
  return cut && visit_pieces(w, a, ncuts, cut, false, weight, from, n);
}

/* Cut the piece where the other sets start and end. Their strides divide the stride of the
** piece. */
static bool visit_alike(walk *w, const mgrid_points *a, int64_t inner, int64_t weight, size_t from,
                        size_t n) {
  mgrid_mode top = a->at[0];
  int64_t x = a->offset, *cut = malloc((4 * n + 1) * sizeof *cut);
  size_t ncuts = 0;
  for (size_t i = from; i < from + n && cut; i++) {
    const rest *r = &w->rests[i];
    const mgrid_points *b = w->others[r->which];
    int64_t end = r->offset + 1;
    if (r->level < b->n) end = r->offset + b->at[r->level].size * b->at[r->level].stride;
    cut[ncuts++] = step_to(x + inner, top, r->offset);
    cut[ncuts++] = step_to(x, top, r->offset);
    cut[ncuts++] = step_to(x + inner, top, end);
    cut[ncuts++] = step_to(x, top, end);
  }
  return cut && visit_pieces(w, a, ncuts, cut, true, weight, from, n);
}

/* Report in which of the n sets at rests[from] the points of a piece are. Each point stands for
** `weight` points. */
static bool modes_visit(walk *w, const mgrid_points *a, int64_t weight, size_t from, size_t n) {
  int64_t span = span_from(a, 0);
  size_t to = from + n, kept = 0;

  if (!mgrid_spend(&w->checks, (int64_t)n + 1) || !mgrid_spend(w->budget, (int64_t)n + 1)
      || !MGRID_ROOM(w->rests, w->room, to + n))
    return false;
  for (size_t i = from; i < to; i++) {
    rest r = w->rests[i];
    if (modes_narrow(w->others[r.which], a->offset, span, &r)) w->rests[to + kept++] = r;
  }
  if (kept == 0) return w->fn(w->ud, a->offset, weight * modes_count_of(a), -1);
  const rest *first = &w->rests[to];
  size_t whole = 0, looks = w->every ? kept : 1;
  while (whole < looks && has_all(w->others[first[whole].which], &first[whole], a)) whole++;
  if (whole == looks)
    return w->fn(w->ud, a->offset, weight * modes_count_of(a), (int64_t)first->which);
  mgrid_mode top = a->at[0];
  const rest *largest = NULL; /* the set of the largest stride */
  const rest *beside = NULL;  /* a set whose stride does not divide that of the piece */
  for (size_t i = to; i < to + kept; i++) {
    const rest *r = &w->rests[i];
    const mgrid_points *b = w->others[r->which];
    if (r->level == b->n) continue;
    if (!largest || b->at[r->level].stride > w->others[largest->which]->at[largest->level].stride)
      largest = r;
    if (top.stride % b->at[r->level].stride) beside = r;
  }
  int64_t inner = span - (top.size - 1) * top.stride;
  if (largest && w->others[largest->which]->at[largest->level].stride > top.stride)
    return visit_by_stride(w, a, largest, inner, weight, to, kept);
  if (!beside) return visit_alike(w, a, inner, weight, to, kept);
  int64_t stride = w->others[beside->which]->at[beside->level].stride,
          k = stride / mgrid_gcd(stride, top.stride);
  if (k < top.size) return visit_periods(w, a, k, weight, to, kept);
  if (top.size > CUTS_MAX) return false;
  for (int64_t d = 0; d < top.size; d++)
    if (!visit_steps(w, a, d, d + 1, weight, to, kept)) return false;
  return true;
}

bool mgrid_points_each(const mgrid_points *a, size_t n, const mgrid_points *const *others,
                       bool every, mgrid_points_fn fn, void *ud, mgrid_budget *budget) {
  walk w = { .others = others,
             .fn = fn,
             .ud = ud,
             .every = every,
             .budget = budget,
             .checks = mgrid_budget_new(CHECKS, 0) };
  bool done = MGRID_ROOM(w.rests, w.room, n);
  for (size_t i = 0; i < n && done; i++) w.rests[i] = (rest){ i, 0, others[i]->offset };
  done = done && modes_visit(&w, a, 1, 0, n);
  free(w.rests);
  return done;
}
