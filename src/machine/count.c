/* SPDX-License-Identifier: MIT
**
** count.c - count how the groups of a family lie in the domains of a level. If family and level are
** described by modes, formulas count at any world size. Otherwise the members are counted one by
** one. Tests compare the two results.
*/
#include "families/classes.h"
#include "machine/count.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ============================================================ in closed form */

/* From member p to p + 1 of a group, one mode takes a step and the smaller modes go back to 0. So a
** group of any size has only as many kinds of edges as modes, and all edges of a kind have the same
** distance. The groups of a class are shifted copies (families/classes.h), so the ranks where the
** edges of a kind begin are a set described by modes ("points"). */

/* An edge from x to x + d leaves a domain of E places if x mod E is among the last d remainders.
** The points of each remainder are counted mode by mode: a mode of n steps replaces each entry of a
** table of E remainders by the sum of n entries, in O(E). If the machine has few, large or unequal
** domains, the points within the bounds of each domain are counted instead, by division. */

enum {
  DENSE_MAX = 1 << 16, /* limit of the remainders in a table */
  LISTED_MAX = 4096,   /* limit of a group's members, for a class without modes */
  RAIL_MAX = 4096,     /* limit of the period of domains that cross levels */
};

/* The domains of a level: by bounds, or by remainders with a period. */
typedef struct bounds {
  int64_t each;           /* places of every domain; 0: the domains differ */
  int64_t used;           /* domains that have ranks */
  const mgrid_tier *tier; /* the level, if its domains differ */
  int64_t world;          /* ranks */
  int64_t period;         /* of domains that cross levels; else 0 */
  int64_t run;            /* consecutive places of a period that are in one domain */
  int64_t *table;         /* [each or period]: points of each remainder; NULL: count by bounds */
  int64_t *scratch;       /* as large as `table` */
} bounds;

static int64_t remainder_of(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r < 0 ? r + b : r;
}

/* ------------------------------------------------------------ by remainders */

/* Add a mode of n steps: replace h[r] by the sum of h[r - k * step] for k = 0 to n - 1, modulo
** E. */
static void count_widen(int64_t *h, int64_t *out, int64_t E, int64_t step, int64_t n) {
  int64_t s = remainder_of(step, E);

  if (s == 0) {
    for (int64_t r = 0; r < E; r++) h[r] *= n;
    return;
  }
  int64_t g = s, b = E;
  while (b) {
    int64_t r = g % b;
    g = b, b = r;
  }
  int64_t length = E / g, around = n / length, rest = n % length;
  for (int64_t c = 0; c < g; c++) { /* one cycle of remainders */
    int64_t all = 0, window = 0, at = c, tail = c;
    for (int64_t i = 0, r = c; i < length; i++, r = (r + s) % E) all += h[r];
    /* the window has `rest` entries: it begins at `tail` and ends at `at` */
    for (int64_t i = 0; i < rest; i++) {
      window += h[at];
      if (i + 1 < rest) at = (at + s) % E;
    }
    for (int64_t i = 0; i < length; i++) {
      out[at] = around * all + (rest ? window : 0);
      at = (at + s) % E;
      if (rest) window += h[at] - h[tail];
      tail = (tail + s) % E;
    }
  }
  memcpy(h, out, (size_t)E * sizeof *h);
}

/* Set table[r] to the number of points whose remainder modulo E is r. */
static void count_fill(const bounds *b, int64_t E, const mgrid_points *p) {
  memset(b->table, 0, (size_t)E * sizeof *b->table);
  b->table[remainder_of(p->offset, E)] = 1;
  for (int i = 0; i < p->n; i++)
    count_widen(b->table, b->scratch, E, p->at[i].stride, p->at[i].size);
}

/* --------------------------------------------------------------- by bounds */

/* Count the points below a bound. The points must be distinct and in the order of modes
** (mgrid_points_apart). */
static int64_t below(const mgrid_points *p, int64_t bound) {
  int64_t left = bound - p->offset, all = 1, n = 0;
  if (left <= 0) return 0;
  for (int i = 0; i < p->n; i++) all *= p->at[i].size;
  for (int i = 0; i < p->n; i++) {
    int64_t digit = left / p->at[i].stride;
    all /= p->at[i].size;
    if (digit >= p->at[i].size) return n + p->at[i].size * all;
    n += digit * all;
    left -= digit * p->at[i].stride;
  }
  return n + (left > 0);
}

static int64_t count_between(const mgrid_points *p, int64_t low, int64_t high) {
  return low < high ? below(p, high) - below(p, low) : 0;
}

/* Count the points x for which x + low to x + high lie in one domain. Return false if no
** formula counts them. */
static bool count_inside(const bounds *b, const mgrid_points *p, int64_t low, int64_t high,
                         int64_t *n) {
  *n = 0;
  if (b->table) {
    count_fill(b, b->each, p);
    for (int64_t r = -low > 0 ? -low : 0; r < b->each && r + high < b->each; r++) *n += b->table[r];
    return true;
  }
  if (!mgrid_points_apart(p)) return false;
  for (int64_t d = 0; d < b->used; d++) {
    int64_t start = b->tier ? b->tier->starts[d] : d * b->each,
            end = b->tier ? b->tier->starts[d + 1] : start + b->each;
    *n += count_between(p, start - low, end - high);
  }
  return true;
}

/* Count the points x for which x + distance lies in another domain than x. */
static bool count_leaving(const bounds *b, const mgrid_points *p, int64_t distance, int64_t *n) {
  int64_t all = 1;
  *n = 0;
  for (int i = 0; i < p->n; i++) all *= p->at[i].size;
  if (b->period) {
    count_fill(b, b->period, p);
    for (int64_t r = 0; r < b->period; r++)
      if (b->table[r] && r / b->run != remainder_of(r + distance, b->period) / b->run)
        *n += b->table[r];
    return true;
  }
  if (!count_inside(b, p, distance < 0 ? distance : 0, distance > 0 ? distance : 0, n))
    return false;
  *n = all - *n;
  return true;
}

/* ------------------------------------------------------------------ classes */

/* The shape of the groups of a class: modes with their strides, or a list of offsets. */
typedef struct shape {
  int n; /* modes; 0 if there is a list */
  mgrid_mode mode[MGRID_MODES_MAX];
  /* number of members; the lowest and the highest offset from the first member */
  int64_t size, low, high;
  int64_t *offset; /* [size]; NULL: modes */
} shape;

static bool count_shape_of(const mgrid_family *f, const mgrid_class *c, shape *s) {
  *s = (shape){ .n = c->nshape, .size = c->size };
  if (c->ruled) {
    for (int i = 0; i < c->nshape; i++) {
      int64_t reach = (c->shape[i].size - 1) * c->shape[i].stride;
      s->mode[i] = c->shape[i];
      s->low += reach < 0 ? reach : 0;
      s->high += reach > 0 ? reach : 0;
    }
    return true;
  }
  s->n = 0;
  s->offset = c->size <= LISTED_MAX ? malloc((size_t)c->size * sizeof *s->offset) : NULL;
  for (int64_t p = 0; s->offset && p < c->size; p++) {
    s->offset[p] = mgrid_family_rank(f, c->group, p) - c->start;
    if (s->offset[p] < s->low) s->low = s->offset[p];
    if (s->offset[p] > s->high) s->high = s->offset[p];
  }
  return s->offset != NULL;
}

/* Add a mode, whose stride may be negative, to a set of points. */
static bool count_push(mgrid_points *p, int64_t size, int64_t stride) {
  if (stride < 0) p->offset += (size - 1) * stride;
  return size == 1 || mgrid_points_push(p, size, stride < 0 ? -stride : stride);
}

/* Count the edges between consecutive members that lead to another domain. */
static bool count_edges(const bounds *b, const mgrid_points *starts, const shape *s,
                        int64_t *edges) {
  int64_t n, wrapped = 0; /* wrapped: how far all smaller modes reach together */
  *edges = 0;
  for (int64_t p = 0; s->offset && p + 1 < s->size; p++) {
    mgrid_points at = *starts;
    at.offset += s->offset[p];
    if (!count_leaving(b, &at, s->offset[p + 1] - s->offset[p], &n)) return false;
    *edges += n;
  }
  for (int j = 0; j < s->n; j++) {
    mgrid_points at = *starts;
    at.offset += wrapped;
    if (!count_push(&at, s->mode[j].size - 1, s->mode[j].stride)) return false;
    for (int i = j + 1; i < s->n; i++)
      if (!count_push(&at, s->mode[i].size, s->mode[i].stride)) return false;
    if (!count_leaving(b, &at, s->mode[j].stride - wrapped, &n)) return false;
    *edges += n;
    wrapped += (s->mode[j].size - 1) * s->mode[j].stride;
  }
  return true;
}

/* Return the offset of the last member of a group from the first. */
static int64_t last_of(const shape *s) {
  int64_t at = s->offset ? s->offset[s->size - 1] : 0;
  for (int i = 0; i < s->n; i++) at += (s->mode[i].size - 1) * s->mode[i].stride;
  return at;
}

static int count_ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Sort the members of the shape in ascending order, so that a group enters each domain only once.
** *shift: the offset of the new first member. Return false if even the sorted modes do not
** ascend. */
static bool sort_shape(shape *s, int64_t *shift) {
  int64_t reach = 0;
  *shift = s->low;
  if (s->offset) {
    qsort(s->offset, (size_t)s->size, sizeof *s->offset, count_ascending);
    *shift = 0;
    return true;
  }
  for (int i = 0; i < s->n; i++) {
    mgrid_mode m = s->mode[i];
    int k = i;
    if (m.stride < 0) m.stride = -m.stride;
    for (; k > 0 && s->mode[k - 1].stride > m.stride; k--) s->mode[k] = s->mode[k - 1];
    s->mode[k] = m;
  }
  for (int i = 0; i < s->n; i++) {
    if (s->mode[i].stride <= reach) return false;
    reach += (s->mode[i].size - 1) * s->mode[i].stride;
  }
  return true;
}

/* For domains that cross levels, count the domains that each group touches, and the groups that
** touch only one domain. */
static bool count_rails(const bounds *b, const mgrid_points *starts, const shape *s,
                        int64_t *inside, int64_t *touched) {
  int64_t P = b->period, rails = (P - 1) / b->run + 1;
  int64_t *has = b->table, *seen = calloc((size_t)rails, sizeof *seen),
          *list = malloc((size_t)P * sizeof *list);
  int64_t n = 0, stamp = 0;

  if (!seen || !list) return free(seen), free(list), false;
  memset(has, 0, (size_t)P * sizeof *has);
  has[0] = !s->offset;
  for (int64_t p = 0; s->offset && p < s->size; p++) has[remainder_of(s->offset[p], P)] = 1;
  for (int i = 0; i < s->n; i++) {
    /* more steps find no new remainders */
    int64_t steps = s->mode[i].size < P ? s->mode[i].size : P;
    count_widen(has, b->scratch, P, s->mode[i].stride, steps);
    for (int64_t r = 0; r < P; r++) has[r] = has[r] != 0;
  }
  for (int64_t r = 0; r < P; r++)
    if (has[r]) list[n++] = r;
  count_fill(b, P, starts);
  for (int64_t r = 0; r < P; r++) {
    if (!b->table[r]) continue;
    int64_t different = 0;
    stamp++;
    for (int64_t i = 0; i < n; i++) {
      int64_t rail = (r + list[i]) % P / b->run;
      different += seen[rail] != stamp;
      seen[rail] = stamp;
    }
    *touched += different * b->table[r];
    *inside += different == 1 ? b->table[r] : 0;
  }
  free(seen);
  free(list);
  return true;
}

static bool count_class(const bounds *b, const mgrid_family *f, const mgrid_class *c,
                        mgrid_machine_counts *out) {
  mgrid_points starts = { .offset = c->start };
  shape s;
  int64_t all = 1, inside = 0, touched = 0, edges = 0, around = 0, shift = 0, entered = 0;
  bool told = count_shape_of(f, c, &s);

  for (int i = 0; i < c->nsteps && told; i++) {
    all *= c->step[i].size;
    told = count_push(&starts, c->step[i].size, c->step[i].stride);
  }
  told = told && count_edges(b, &starts, &s, &edges);
  if (told && s.size > 2) {
    mgrid_points ends = starts;
    ends.offset += last_of(&s);
    told = count_leaving(b, &ends, -last_of(&s), &around);
  }
  if (told && b->period) {
    told = count_rails(b, &starts, &s, &inside, &touched);
  } else if (told) {
    told = count_inside(b, &starts, s.low, s.high, &inside) && sort_shape(&s, &shift);
    mgrid_points lowest = starts;
    lowest.offset += shift;
    told = told && count_edges(b, &lowest, &s, &entered);
    touched = all + entered;
  }
  free(s.offset);
  if (!told) return false;
  out->inside += inside;
  out->crossing += all - inside;
  out->edges += edges + around;
  out->touched += touched;
  return true;
}

/* -------------------------------------------------------------------- levels */

/* Describe a level by bounds or a period. Return false if the level has neither. */
static bool bounds_of(const mgrid_machine_model *m, size_t level, int64_t world, bounds *b) {
  *b = (bounds){ .world = world };
  if (m->at) return false;

  if (level < m->ntiers) {
    const mgrid_tier *t = &m->tier[level];
    b->each = t->each;
    b->tier = t->each ? NULL : t;
    b->used = mgrid_tier_used(t, world);
    return true;
  }

  const mgrid_crossing *x = &m->crossing[level - m->ntiers];
  const mgrid_tier *of = &m->tier[x->of];
  if (x->in >= 0 || !of->each || of->ncounts > 1) return false;
  b->run = of->each * x->share;

  if (x->of > 0 && m->tier[x->of - 1].each < world) {
    b->period = m->tier[x->of - 1].each;
    return b->period > 0 && b->period <= RAIL_MAX;
  }
  if (x->of > 0 && !m->tier[x->of - 1].each) return false;
  b->each = b->run; /* there is only one domain of the level before, so these domains have bounds */
  b->used = (world - 1) / b->run + 1;
  return true;
}

bool mgrid_count_closed(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                        mgrid_machine_counts *c) {
  bounds b;
  mgrid_classes classes = { 0 };
  bool told = bounds_of(m, level, f->world, &b) && mgrid_classes_of(f, &classes);
  bool dense = b.period || (b.each && b.each <= DENSE_MAX && b.each <= b.used);
  if (told && dense) {
    size_t room = (size_t)(b.period ? b.period : b.each);
    b.table = malloc(room * sizeof *b.table);
    b.scratch = malloc(room * sizeof *b.scratch);
    told = b.table && b.scratch;
  }
  for (size_t i = 0; i < classes.n && told; i++) told = count_class(&b, f, &classes.at[i], c);
  free(b.table);
  free(b.scratch);
  free(classes.at);
  return told;
}

/* ================================================================ by members */

int64_t mgrid_domains_of(const mgrid_machine_model *m, size_t level, int64_t world,
                         int32_t *domain) {
  const mgrid_tier *t = level < m->ntiers ? &m->tier[level] : NULL;
  int64_t at = 0, n = 0;
  for (int64_t r = 0; r < world; r++) {
    int64_t place = mgrid_machine_at(m, r);
    if (t && !m->at && t->starts) /* places come in ascending order */
      while (t->starts[at + 1] <= place) at++;
    else
      at = mgrid_place_domain(m, level, place);
    domain[r] = (int32_t)at;
    if (at >= n) n = at + 1;
  }
  return n;
}

/* The state of counting member by member. */
typedef struct walk {
  const int32_t *domain;
  int64_t *seen;       /* of each domain: 1 + the last group that touched it */
  int64_t first, last; /* the domains of the first and the last member so far */
  int64_t position;
  int64_t edges, touched;
} walk;

static void count_member(walk *w, int64_t group, int32_t rank) {
  int64_t d = w->domain[rank];
  if (w->position++ == 0)
    w->first = d;
  else
    w->edges += d != w->last;
  w->touched += w->seen[d] != group + 1;
  w->seen[d] = group + 1;
  w->last = d;
}

mgrid_status mgrid_count_each(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                              mgrid_machine_counts *c, mgrid_error *err) {
  enum { PIECE = 4096 };
  int32_t piece[PIECE];

  if (f->world > MGRID_COUNTED_MAX)
    return mgrid_fail(
        err, MGRID_LIMIT,
        "no formula counts how these groups cross '%s', so ranks are counted one by one, "
        "up to %d, not %" PRId64,
        mgrid_level_name(m, level), MGRID_COUNTED_MAX, f->world);
  int32_t *domain = malloc((size_t)f->world * sizeof *domain);
  int64_t domains = domain ? mgrid_domains_of(m, level, f->world, domain) : 0;
  walk w = { .domain = domain, .seen = calloc((size_t)domains + 1, sizeof *w.seen) };
  for (int64_t g = 0; domain && w.seen && g < f->count; g++) {
    int64_t size = mgrid_family_size(f, g), touched = w.touched;
    w.position = 0;
    for (int64_t at = 0; at < size; at += PIECE) {
      int64_t n = size - at < PIECE ? size - at : PIECE;
      mgrid_family_slice(f, g, at, n, piece);
      for (int64_t i = 0; i < n; i++) count_member(&w, g, piece[i]);
    }
    w.edges += size > 2 && w.first != w.last;
    c->inside += w.touched == touched + 1;
  }
  bool failed = !domain || !w.seen;
  free(domain);
  free(w.seen);
  if (failed) return mgrid_oom(err);
  c->crossing = f->count - c->inside;
  c->edges = w.edges;
  c->touched = w.touched;
  return MGRID_OK;
}

int64_t mgrid_first_crossing(const mgrid_machine_model *m, const mgrid_family *f, size_t level) {
  for (int64_t g = 0; g < f->count; g++) {
    int64_t d = mgrid_place_domain(m, level, mgrid_machine_at(m, mgrid_family_rank(f, g, 0)));
    for (int64_t p = 1, n = mgrid_family_size(f, g); p < n; p++)
      if (mgrid_place_domain(m, level, mgrid_machine_at(m, mgrid_family_rank(f, g, p))) != d)
        return g;
  }
  return -1;
}

mgrid_status mgrid_machine_count(const mgrid_machine_model *m, const mgrid_family *f,
                                 const char *level, mgrid_machine_counts *out, mgrid_error *err) {
  mgrid_machine_counts c = MGRID_MACHINE_COUNTS_INIT;
  if (!m || !f) return MGRID_USAGE;
  mgrid_status s = mgrid_struct_check(out, sizeof c, "mgrid_machine_counts", err);
  if (s) return s;
  int64_t i = mgrid_machine_require(m, level, err);
  if (i < 0) return level ? MGRID_UNKNOWN_NAME : MGRID_USAGE;
  s = mgrid_machine_fits(m, f->world, err);
  if (!s && !mgrid_count_closed(m, f, (size_t)i, &c)) {
    c = (mgrid_machine_counts)MGRID_MACHINE_COUNTS_INIT;
    s = mgrid_count_each(m, f, (size_t)i, &c, err);
  }
  if (!s) mgrid_struct_write(out, &c, sizeof c);
  return s;
}
