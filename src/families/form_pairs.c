/* SPDX-License-Identifier: MIT
**
** form_pairs.c - the form PAIRS: pairs of ranks at a fixed distance inside every group. Optionally
** the pairs also go around the end, as in a ring. Two ranks make only one pair: if the step is half
** the size of a group, the pairs around the end repeat the others, and are left out.
*/
#include "families/classes.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct pairs {
  mgrid_family *base; /* groups of one size, disjoint */
  int64_t step;       /* positions between partners */
  bool wrap;          /* also pairs around the end */
  int64_t per;        /* pairs of one group */
} pairs;

/* -------------------------------------------------------------------- making */

static int64_t pairs_of(int64_t n, int64_t step, bool wrap) {
  return n < 2 ? 0 : wrap ? n : n - step;
}

/* Return whether pairs around the end are new. If the step is half the size, they are the same
** pairs again. (Do not write this with a sum: groups of one rank accept any step, so a sum may
** overflow.) */
static bool closes(int64_t size, int64_t step, bool wrap) { return wrap && step != size - step; }

/* Make a table of the pairs, for groups that differ in size. */
static mgrid_family *list_pairs(const mgrid_family *f, int64_t step, bool wrap, mgrid_error *err) {
  int64_t count = 0, filled = 0;

  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = mgrid_family_size(f, g);
    if (n > 1 && step >= n)
      return mgrid_null(err, MGRID_REFUSED,
                        "neighbours(%" PRId64 "): group %" PRId64 " has %" PRId64 " ranks", step, g,
                        n);
    count += pairs_of(n, step, closes(n, step, wrap));
  }
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)(count > 0 ? 2 * count : 1) * sizeof *ranks);
  if (starts && ranks) {
    for (int64_t i = 0; i <= count; i++) starts[i] = 2 * i;
    for (int64_t g = 0; g < f->count; g++) {
      int64_t n = mgrid_family_size(f, g);
      for (int64_t i = 0, all = pairs_of(n, step, closes(n, step, wrap)); i < all; i++) {
        ranks[filled++] = (int32_t)mgrid_family_rank(f, g, i);
        ranks[filled++] = (int32_t)mgrid_family_rank(f, g, (i + step) % n);
      }
    }
  }
  return mgrid_table_adopt(mgrid_world(f->world), count, starts, ranks, MGRID_COVER, true, err);
}

typedef struct neighbours {
  int64_t step;
  bool wrap;
} neighbours;

static mgrid_family *neighbours_of_child(const mgrid_family *child, void *ud, mgrid_error *err) {
  const neighbours *n = ud;
  return mgrid_family_neighbours(child, n->step, n->wrap, err);
}

mgrid_family *mgrid_family_neighbours(const mgrid_family *f, int64_t step, bool wrap,
                                      mgrid_error *err) {
  if (!f) return NULL;
  if (f->overlapping)
    return mgrid_null(err, MGRID_REFUSED,
                      "neighbours: the groups share ranks already" MGRID_BY_LIST);
  if (mgrid_family_in_turn(f))
    return mgrid_union_map(f, neighbours_of_child, &(neighbours){ step, wrap }, err);
  if (step < 1 || (f->max_size > 1 && step >= f->max_size))
    return mgrid_null(err, MGRID_OUT_OF_RANGE,
                      "neighbours(%" PRId64 "): the step is 1 to %" PRId64 " in groups of %" PRId64,
                      step, f->max_size > 1 ? f->max_size - 1 : 1, f->max_size);

  if (f->size < 0) return list_pairs(f, step, wrap, err);
  wrap = closes(f->size, step, wrap);
  if (f->size == 2 && !wrap) return mgrid_family_origin(f);

  mgrid_family *made = mgrid_family_alloc(&mgrid_pairs_form, f->world, sizeof(pairs), err);
  if (!made) return NULL;
  pairs *own = made->own;
  *own = (pairs){ mgrid_family_ref(f), step, wrap, pairs_of(f->size, step, wrap) };
  if (mgrid_family_put_above(made, f, err)) {
    mgrid_family_free(made);
    return NULL;
  }

  made->overlapping = f->size >= 2;
  made->count = f->count * own->per;
  made->size = made->max_size = made->count > 0 ? 2 : 0;
  made->total = 2 * made->count;
  made->low = made->count > 0 ? f->low : 0;
  made->high = made->count > 0 ? f->high : -1;
  return made;
}

/* ----------------------------------------------------------------- questions */

static int64_t pairs_rank(const mgrid_family *f, int64_t group, int64_t position) {
  const pairs *own = f->own;
  return mgrid_family_rank(own->base, group / own->per,
                           (group % own->per + position * own->step) % own->base->size);
}

/* The rank at position p of the base is the first of pair p and the second of pair p - step. Find
** the nth of these two pairs, in the order of their indices. */
static bool pairs_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                         int64_t *position) {
  const pairs *own = f->own;
  int64_t n = own->base->size, per = own->per, step = own->step, g, p;
  if (per == 0 || !mgrid_family_locate(own->base, rank, 0, &g, &p)) return false;
  int64_t opens = p < per ? p : -1;
  int64_t closes = p >= step ? p - step : own->wrap ? p - step + n : -1;
  int64_t lower = opens < closes ? opens : closes, upper = opens < closes ? closes : opens;
  int64_t pair = lower < 0 ? (nth == 0 ? upper : -1) : (nth == 0 ? lower : nth == 1 ? upper : -1);
  if (pair < 0) return false;
  *group = g * per + pair;
  *position = pair == opens ? 0 : 1;
  return true;
}

static bool pairs_same_rule(const mgrid_family *a, const mgrid_family *b) {
  const pairs *x = a->own, *y = b->own;
  return x->step == y->step && x->wrap == y->wrap && mgrid_family_same_rule(x->base, y->base);
}

static void pairs_text(const mgrid_family *f, mgrid_text *t) {
  const pairs *own = f->own;
  mgrid_text_add(t, "neighbours(%" PRId64 "%s) of [", own->step, own->wrap ? ", wrap" : "");
  own->base->form->text(own->base, t);
  mgrid_text_add(t, "]");
}

static void pairs_json(const mgrid_family *f, mgrid_text *t) {
  const pairs *own = f->own;
  mgrid_text_add(t, "{\"neighbours\":%" PRId64 "%s,\"of\":", own->step,
                 own->wrap ? ",\"wrap\":true" : "");
  mgrid_family_json(own->base, t);
  mgrid_text_str(t, "}");
}

static void pairs_explain(const mgrid_family *f, mgrid_text *t) {
  const pairs *own = f->own;
  mgrid_text_add(t, "pairs: each position of a group of a rule with the one %" PRId64 " further%s",
                 own->step, own->wrap ? ", also around the end" : "");
}

static void pairs_free(mgrid_family *f) { mgrid_family_free(((pairs *)f->own)->base); }

static int64_t pairs_distance(const mgrid_family *f, bool *around) {
  const pairs *own = f->own;
  const mgrid_strided *rule = own->base->rule;
  *around = own->wrap;
  return rule && rule->inside.n == 1 ? rule->inside.at[0].stride * own->step : 0;
}

/* -------------------------------------------------------------------- rounds */

/* Return x with a * x = 1 (mod m). a and m are coprime. */
static int64_t inverse(int64_t a, int64_t m) {
  int64_t r0 = m, r1 = a % m, x0 = 0, x1 = 1;
  while (r1 > 0) {
    int64_t q = r0 / r1, r = r0 - q * r1, x = x0 - q * x1;
    r0 = r1, r1 = r, x0 = x1, x1 = x;
  }
  return (x0 % m + m) % m;
}

static int64_t pairs_rounds(const mgrid_family *f) {
  const pairs *own = f->own;
  if (!own->wrap) return own->per > own->step ? 2 : 1;
  return own->per / mgrid_gcd(own->per, own->step) % 2 == 1 ? 3 : 2;
}

/* Return the round of a pair. The pairs (i, i + step) of a group of n form rings of n / gcd pairs.
** Pair k of a ring shares ranks only with pairs k - 1 and k + 1. So even k are in round 0 and odd k
** in round 1; in an odd ring the last pair needs a third round. */
static int64_t pairs_round(const mgrid_family *f, int64_t group) {
  const pairs *own = f->own;
  int64_t i = group % own->per;
  if (!own->wrap) return i / own->step % 2;
  int64_t g = mgrid_gcd(own->per, own->step), ring = own->per / g;
  int64_t k = ring == 1 ? 0 : i / g * inverse(own->step / g, ring) % ring;
  return ring % 2 == 1 && k == ring - 1 ? 2 : k % 2;
}

/* Return how many groups have this pairs_round, without a loop. */
static int64_t pairs_in_round(const mgrid_family *f, int64_t round) {
  const pairs *own = f->own;
  int64_t groups = own->base->count;
  /* there are gcd rings. In each, even and odd pairs are equally many, and an odd ring has one
  ** more */
  if (own->wrap) {
    int64_t rings = mgrid_gcd(own->per, own->step), ring = own->per / rings;
    return groups * (round < 2 ? rings * (ring / 2) : round == 2 && ring % 2 == 1 ? rings : 0);
  }
  /* pairs in runs of `step`, whose rounds alternate: 0 1 0 1 ... */
  int64_t runs = own->per / own->step;
  if (round > 1) return 0;
  return groups
         * (own->step * ((runs + (round == 0)) / 2)
            + (runs % 2 == round ? own->per % own->step : 0));
}

/* ------------------------------------------------------------------- classes */

/* A run of pairs of groups along one mode: `length` pairs from `first` on. The run occurs `times`
** times, `every` pairs apart. round -1: its pairs are in several rounds. */
typedef struct run {
  int64_t first, length, times, every, round;
} run;

static bool add_run(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base, run r) {
  const pairs *own = f->own;
  int64_t n = base->size, step = own->step, stride = base->shape[0].stride;
  mgrid_class *c = r.length > 0 && r.times > 0 ? mgrid_classes_add(list) : NULL;
  if (!c) return r.length <= 0 || r.times <= 0;
  *c = *base;
  c->group = base->group * own->per + r.first;
  c->start = base->start + r.first * stride;
  c->round = r.round;
  mgrid_class_spread(c, own->per);
  mgrid_class_line(c, 2, step * stride);
  /* false for pairs around the end, whose second rank is lower */
  c->ruled = r.first + step < n;
  return mgrid_class_step(c, r.length, stride, 1)
         && mgrid_class_step(c, r.times, r.every * stride, r.every);
}

/* Add the pairs of groups along one mode: first the even runs of `step` pairs, then the odd runs,
** then the pairs around the end. */
static bool pairs_add_line(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base) {
  const pairs *own = f->own;
  int64_t n = base->size, step = own->step, line = n - step, runs = line / step;
  bool wrap = own->wrap, rounds = !wrap || n % step == 0;
  if (!rounds)
    return add_run(list, f, base, (run){ 0, line, 1, 1, -1 })
           && add_run(list, f, base, (run){ line, step, 1, 1, -1 });
  return add_run(list, f, base, (run){ 0, step, (runs + 1) / 2, 2 * step, 0 })
         && add_run(list, f, base, (run){ step, step, runs / 2, 2 * step, 1 })
         && add_run(list, f, base, (run){ runs * step, line % step, 1, 1, runs % 2 })
         && (!wrap || add_run(list, f, base, (run){ line, step, 1, 1, n / step % 2 ? 2 : 1 }));
}

/* Add the pairs of groups along several modes. Adding `step` to a position may or may not carry
** from one mode to the next. Each combination gives a class. This call handles shape[mode] and the
** larger modes; `carry`: the smaller modes carry into it; `below` is the product of their sizes. */
static bool add_carries(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base,
                        int mode, bool carry, const mgrid_class *so_far, int64_t below) {
  const pairs *own = f->own;

  if (mode == base->nshape) {
    if (carry && !own->wrap) return true;
    mgrid_class *c = mgrid_classes_add(list);
    if (!c) return false;
    *c = *so_far;
    int64_t step = mgrid_family_rank(f, c->group, 1) - c->start;
    mgrid_class_line(c, 2, step);
    c->ruled = step > 0;
    return true;
  }
  mgrid_mode m = base->shape[mode];
  int64_t step = own->step, add = step / below % m.size + carry,
          low = add < m.size ? m.size - add : 0;
  run runs[3] = { { 0, low, 1, 1, so_far->round }, { low, m.size - low, 1, 1, so_far->round } };
  if (mode == 0) runs[0].round = runs[1].round = -1;
  if (mode == 0 && m.size % (2 * step) == 0) { /* then the first mode alone gives the round */
    runs[1] = (run){ low, step, 1, 1, 1 };
    runs[0] = (run){ 0, step, m.size / step / 2, 2 * step, 0 };
    runs[2] = (run){ step, step, m.size / step / 2 - 1, 2 * step, 1 };
  }
  for (int i = 0; i < 3; i++) { /* runs[1] holds the digits that carry */
    mgrid_class c = *so_far;
    if (runs[i].length == 0 || runs[i].times == 0) continue;
    if (mode == 0) {
      c.group = base->group * own->per;
      mgrid_class_spread(&c, own->per);
    }
    c.group += runs[i].first * below;
    c.start += runs[i].first * m.stride;
    c.round = runs[i].round;
    if (!mgrid_class_step(&c, runs[i].length, m.stride, below)
        || !mgrid_class_step(&c, runs[i].times, runs[i].every * m.stride, runs[i].every * below)
        || !add_carries(list, f, base, mode + 1, i == 1, &c, below * m.size))
      return false;
  }
  return true;
}

static bool pairs_classes(const mgrid_family *f, mgrid_classes *list) {
  const pairs *own = f->own;
  mgrid_classes base = { 0 };
  int64_t per = own->per;
  bool told = mgrid_classes_of(own->base, &base)
              && (per <= MGRID_LISTED_MAX || base.n == 0 || base.at[0].ruled);

  for (size_t i = 0; i < base.n && told; i++) {
    const mgrid_class *b = &base.at[i];
    if (b->ruled) {
      told = b->nshape == 1 ? pairs_add_line(list, f, b) : add_carries(list, f, b, 0, false, b, 1);
      continue;
    }
    for (int64_t k = 0; k < per && told; k++) {
      mgrid_class *c = mgrid_classes_add(list);
      if (!(told = c)) break;
      *c = *b;
      mgrid_class_spread(c, per);
      c->group = b->group * per + k;
      c->start = mgrid_family_rank(f, c->group, 0);
      c->size = 2;
      c->round = mgrid_family_round(f, c->group);
    }
  }
  free(base.at);
  return told;
}

const mgrid_form mgrid_pairs_form = {
  .name = "neighbours",
  .rank = pairs_rank,
  .locate = pairs_locate,
  .same_rule = pairs_same_rule,
  .text = pairs_text,
  .json = pairs_json,
  .explain = pairs_explain,
  .free = pairs_free,
  .classes = pairs_classes,
  .distance = pairs_distance,
  .rounds = pairs_rounds,
  .round = pairs_round,
  .in_round = pairs_in_round,
  /* reached only if there are no groups, because other families of pairs share ranks */
  .split = mgrid_split_lists,
};
