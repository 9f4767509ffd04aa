/* SPDX-License-Identifier: MIT
**
** form_table.c - the form TABLE: explicit lists, the last resort, and the functions that make them.
** The lists come from the user, or from a family of another form: it is written out, mapped, or
** loses ranks. Lists that modes describe become STRIDED. Memory and work are O(members).
*/
#include "families/classes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ===================================================================== TABLE */

typedef struct table {
  int64_t *starts;   /* [count + 1]: group g is ranks[starts[g]] .. ranks[starts[g + 1] - 1] */
  int32_t *ranks;    /* [total] */
  uint64_t *by_rank; /* [total]: rank << 32 | index into ranks, ascending */
  int32_t *round;    /* [count]: the round of each group of a cover; else NULL */
  int64_t rounds;    /* number of rounds of a cover */
} table;

/* Return the group whose list holds ranks[slot]. */
static int64_t table_group_at(const mgrid_family *f, int64_t slot) {
  return mgrid_run_at(((const table *)f->own)->starts, f->count, slot);
}

/* -------------------------------------------------------------------- making */

static mgrid_status outside(mgrid_window w, int64_t rank, int64_t group, mgrid_error *err) {
  return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                    "rank %" PRId64 " of group %" PRId64 " is out of range; ranks are %" PRId64
                    " to %" PRId64,
                    rank, group, w.offset, w.offset + w.size - 1);
}

/* Check that every member is in the window, and that no group is empty. */
static mgrid_status table_check_members(mgrid_window w, int64_t count, const int64_t *starts,
                                        const int32_t *ranks, mgrid_error *err) {
  for (int64_t g = 0; g < count; g++) {
    if (starts[g + 1] <= starts[g])
      return mgrid_fail(err, MGRID_REFUSED, "group %" PRId64 " of the table is empty", g);
    for (int64_t i = starts[g]; i < starts[g + 1]; i++)
      if (ranks[i] < w.offset || ranks[i] >= w.offset + w.size) return outside(w, ranks[i], g, err);
  }
  return MGRID_OK;
}

/* Go through the members, which are sorted by rank. Check them against the declared coverage. Set
** *overlap if a rank occurs twice. With `hint`, a refusal says what the user can declare
** instead. */
static mgrid_status check_coverage(mgrid_window w, const mgrid_family *f, mgrid_coverage declared,
                                   bool hint, bool *overlap, mgrid_error *err) {
  const uint64_t *key = ((const table *)f->own)->by_rank;
  int64_t next = w.offset; /* the lowest rank not seen yet */

  for (int64_t i = 0; i < f->total; i++) {
    int64_t rank = (int64_t)(key[i] >> 32), slot = (int64_t)(key[i] & UINT32_MAX);
    if (i > 0 && rank == (int64_t)(key[i - 1] >> 32)) {
      int64_t before = table_group_at(f, (int64_t)(key[i - 1] & UINT32_MAX));
      int64_t group = table_group_at(f, slot);
      if (before == group)
        return mgrid_fail(err, MGRID_DUPLICATE,
                          "rank %" PRId64 " occurs twice in group %" PRId64 " of the table", rank,
                          group);
      if (declared != MGRID_COVER)
        return mgrid_fail(err, MGRID_REFUSED,
                          "rank %" PRId64 " is in groups %" PRId64 " and %" PRId64 "%s", rank,
                          before, group,
                          hint ? " of the table; declare a 'cover' if that is meant"
                               : "; groups must be disjoint");
      *overlap = true;
    } else if (declared == MGRID_PARTITION && rank != next) {
      break;
    }
    next = rank + 1;
  }
  if (declared == MGRID_PARTITION && next != w.offset + w.size)
    return mgrid_fail(err, MGRID_REFUSED,
                      "rank %" PRId64
                      " is in no group of the table; declare it 'partial' if that is meant",
                      next);
  return MGRID_OK;
}

/* Return the strided family with the same groups. If there is none, return NULL and leave *err as
** it is. */
static mgrid_family *recognized(const mgrid_family *f, mgrid_error *err) {
  const int32_t *ranks = ((const table *)f->own)->ranks;
  int64_t n = f->size, count = f->count;
  if (f->overlapping || n < 1 || count < 1) return NULL;
  for (int64_t g = 1; g < count; g++)
    for (int64_t p = 1; p < n; p++)
      if (ranks[g * n + p] - ranks[g * n] != ranks[p] - ranks[0]) return NULL;
  int64_t *offsets = malloc((size_t)(n > count ? n : count) * sizeof *offsets);
  /* an error, and not a table: a table in its place would change the digest */
  if (!offsets) return mgrid_null_oom(err);
  MGRID_MODES(inside);
  MGRID_MODES(index);
  mgrid_family *s = NULL;
  for (int64_t p = 0; p < n; p++) offsets[p] = ranks[p] - ranks[0];
  if (mgrid_modes_of(offsets, n, &inside)) {
    for (int64_t g = 0; g < count; g++) offsets[g] = ranks[g * n] - ranks[0];
    if (mgrid_modes_of(offsets, count, &index))
      s = mgrid_strided_new(f->world, ranks[0], &inside, &index, err);
  }
  free(offsets);
  return s;
}

/* Give each group of a cover a round, greedily and in the order of the groups: of the first 64
** rounds the lowest that none of its members has yet, else the round after the last of its members.
** A bit mask holds the first 64 rounds of each rank; of the later ones only the last is kept,
** because a rank may be in very many groups. */
static mgrid_status table_set_rounds(mgrid_family *f, mgrid_error *err) {
  table *own = f->own;
  size_t ranks = (size_t)(f->high - f->low + 1);
  uint64_t *taken = calloc(ranks, sizeof *taken);
  int32_t *later = calloc(ranks, sizeof *later);

  own->round = malloc((size_t)f->count * sizeof *own->round);
  if (!taken || !later || !own->round) {
    free(taken);
    free(later);
    return mgrid_oom(err);
  }
  for (int64_t g = 0; g < f->count; g++) {
    const int32_t *member = own->ranks + own->starts[g];
    int64_t n = mgrid_family_size(f, g);
    uint64_t mask = 0;
    int32_t next = 64;
    for (int64_t i = 0; i < n; i++) {
      mask |= taken[member[i] - f->low];
      if (later[member[i] - f->low] > next) next = later[member[i] - f->low];
    }
    int32_t round = mask == UINT64_MAX ? next : __builtin_ctzll(~mask);
    if (round >= MGRID_ROUNDS_MAX) {
      free(taken);
      free(later);
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "group %" PRId64
                        " of the table shares ranks with %d others or more; at most %d",
                        g, round, MGRID_ROUNDS_MAX - 1);
    }
    for (int64_t i = 0; i < n; i++) {
      if (round < 64)
        taken[member[i] - f->low] |= UINT64_C(1) << round;
      else
        later[member[i] - f->low] = round + 1;
    }
    own->round[g] = round;
    if (round >= own->rounds) own->rounds = round + 1;
  }
  free(taken);
  free(later);
  return MGRID_OK;
}

/* Sort the members by rank, for mgrid_family_locate, and check their coverage. */
static mgrid_status index_by_rank(mgrid_window w, mgrid_family *f, mgrid_coverage declared,
                                  bool hint, mgrid_error *err) {
  if (f->total > (int64_t)UINT32_MAX)
    return mgrid_fail(err, MGRID_OVERFLOW, "a table has at most 2^32 - 1 members");
  table *own = f->own;
  uint64_t *key = own->by_rank = malloc((size_t)(f->total ? f->total : 1) * sizeof *key);
  if (!key) return mgrid_oom(err);
  for (int64_t i = 0; i < f->total; i++) key[i] = (uint64_t)own->ranks[i] << 32 | (uint64_t)i;
  qsort(key, (size_t)f->total, sizeof *key, mgrid_key_order);
  f->low = f->total > 0 ? (int64_t)(key[0] >> 32) : 0;
  f->high = f->total > 0 ? (int64_t)(key[f->total - 1] >> 32) : -1;
  mgrid_status s = check_coverage(w, f, declared, hint, &f->overlapping, err);
  return s || !f->overlapping ? s : table_set_rounds(f, err);
}

static void set_sizes(mgrid_family *f, int64_t count, const int64_t *starts) {
  f->count = count;
  f->total = starts[count];
  f->size = f->max_size = count > 0 ? starts[1] : 0;
  for (int64_t g = 1; g < count; g++) {
    int64_t n = starts[g + 1] - starts[g];
    if (n != f->size) f->size = -1;
    if (n > f->max_size) f->max_size = n;
  }
}

static mgrid_family *adopt(mgrid_window w, int64_t count, int64_t *starts, int32_t *ranks,
                           mgrid_coverage declared, bool hint, bool recognize, mgrid_error *err) {
  mgrid_family *f = starts && ranks
                        ? mgrid_family_alloc(&mgrid_table_form, w.world, sizeof(table), err)
                        : mgrid_null_oom(err);

  if (!f) {
    free(starts);
    free(ranks);
    return NULL;
  }
  *(table *)f->own = (table){ .starts = starts, .ranks = ranks };
  set_sizes(f, count, starts);
  f->bytes += (size_t)(count + 1) * sizeof *starts
              + (size_t)f->total * (sizeof *ranks + sizeof(uint64_t));
  if (table_check_members(w, count, starts, ranks, err)
      || index_by_rank(w, f, declared, hint, err)) {
    mgrid_family_free(f);
    return NULL;
  }
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_family *strided = recognize ? recognized(f, &why) : NULL;
  if (!strided && !why.status) return f;
  mgrid_family_free(f);
  if (!strided) mgrid_error_pass(err, &why);
  return strided;
}

mgrid_family *mgrid_table_adopt(mgrid_window w, int64_t count, int64_t *starts, int32_t *ranks,
                                mgrid_coverage declared, bool recognize, mgrid_error *err) {
  return adopt(w, count, starts, ranks, declared, false, recognize, err);
}

mgrid_coverage mgrid_table_coverage(const mgrid_family *f) {
  return f->overlapping ? MGRID_COVER : MGRID_PARTIAL;
}

static bool can_be_table(mgrid_window w, int64_t ngroups, const int64_t *starts, bool ranks,
                         mgrid_coverage declared, mgrid_error *err) {
  if (w.world < 1 || w.world > MGRID_WORLD_MAX || w.offset < 0 || w.size < 1
      || w.size > w.world - w.offset)
    return mgrid_null(err, MGRID_OUT_OF_RANGE, "the table's window does not fit its world");
  if (ngroups < 1) return mgrid_null(err, MGRID_REFUSED, "a table has one group or more");
  if (mgrid_lacks(starts, "the list of starts", err)
      || mgrid_lacks(ranks, "the list of ranks", err))
    return NULL;
  if (declared != MGRID_PARTITION && declared != MGRID_PARTIAL && declared != MGRID_COVER)
    return mgrid_null(err, MGRID_BAD_VALUE,
                      "a coverage is MGRID_PARTITION, MGRID_PARTIAL or MGRID_COVER, not %d",
                      (int)declared);
  if (mgrid_count_check("table", (size_t)ngroups, err)) return NULL;
  for (int64_t g = 0; g < ngroups; g++)
    if (starts[0] != 0 || starts[g + 1] <= starts[g])
      return mgrid_null(err, MGRID_REFUSED,
                        starts[0] ? "the starts of a table must begin with 0"
                                  : "group %" PRId64 " of the table is empty",
                        g);
  return true;
}

/* Copy the ranks of a group. Return MGRID_OUT_OF_RANGE for a rank that is not in the window. */
static mgrid_status ranks_copy(mgrid_window w, int64_t group, int64_t n, const int64_t *from,
                               int32_t *to, mgrid_error *err) {
  for (int64_t i = 0; i < n; i++) {
    if (from[i] < w.offset || from[i] >= w.offset + w.size) return outside(w, from[i], group, err);
    to[i] = (int32_t)from[i];
  }
  return MGRID_OK;
}

/* Make a table from a copy of the lists. The ranks are in `wide` (64 bits) or in `ranks` (32 bits);
** the other is NULL. */
static mgrid_family *copied(mgrid_window w, int64_t ngroups, const int64_t *starts,
                            const int64_t *wide, const int32_t *ranks, mgrid_coverage declared,
                            mgrid_error *err) {
  if (!can_be_table(w, ngroups, starts, wide || ranks, declared, err)) return NULL;
  int64_t total = starts[ngroups];
  int64_t *s = malloc((size_t)(ngroups + 1) * sizeof *s);
  int32_t *r = malloc((size_t)(total > 0 ? total : 1) * sizeof *r);
  mgrid_status fits = MGRID_OK;
  if (s && r) {
    memcpy(s, starts, (size_t)(ngroups + 1) * sizeof *s);
    if (ranks && total > 0) memcpy(r, ranks, (size_t)total * sizeof *r);
    for (int64_t g = 0; g < ngroups && wide && !fits; g++)
      fits = ranks_copy(w, g, s[g + 1] - s[g], wide + s[g], r + s[g], err);
  }
  if (!fits) return adopt(w, ngroups, s, r, declared, true, true, err);
  free(s);
  free(r);
  return NULL;
}

mgrid_family *mgrid_family_table(mgrid_window w, int64_t ngroups, const int64_t *starts,
                                 const int64_t *ranks, mgrid_coverage declared, mgrid_error *err) {
  return copied(w, ngroups, starts, ranks, NULL, declared, err);
}

mgrid_family *mgrid_table_of(mgrid_window w, int64_t ngroups, const int64_t *starts,
                             const int32_t *ranks, mgrid_coverage declared, mgrid_error *err) {
  return copied(w, ngroups, starts, NULL, ranks, declared, err);
}

/* ----------------------------------------------------------------- questions */

static int64_t table_size(const mgrid_family *f, int64_t group) {
  const int64_t *starts = ((const table *)f->own)->starts;
  return starts[group + 1] - starts[group];
}

static int64_t table_rank(const mgrid_family *f, int64_t group, int64_t position) {
  const table *own = f->own;
  return own->ranks[own->starts[group] + position];
}

static bool table_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                         int64_t *position) {
  const table *own = f->own;
  int64_t first = mgrid_key_at(own->by_rank, f->total, rank);
  if (nth >= f->total - first || own->by_rank[first + nth] >> 32 != (uint64_t)rank) return false;
  int64_t slot = (int64_t)(own->by_rank[first + nth] & UINT32_MAX);
  *group = table_group_at(f, slot);
  *position = slot - own->starts[*group];
  return true;
}

static void table_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n,
                        int32_t *out) {
  const table *own = f->own;
  memcpy(out, own->ranks + own->starts[group] + position, (size_t)n * sizeof *out);
}

static int64_t table_range(const mgrid_family *f, int64_t group, int64_t n, int32_t *out) {
  const int64_t *from = ((const table *)f->own)->starts + group;
  table_slice(f, group, 0, from[n] - from[0], out);
  return from[n] - from[0];
}

static bool table_same_rule(const mgrid_family *a, const mgrid_family *b) {
  const table *x = a->own, *y = b->own;
  return memcmp(x->ranks, y->ranks, (size_t)a->total * sizeof *x->ranks) == 0
         && memcmp(x->starts, y->starts, (size_t)a->count * sizeof *x->starts) == 0;
}

/* Append the lists. Each stands between the two `marks`, and `between` separates them. */
static void put_lists(const mgrid_family *f, const char marks[2], const char *between,
                      mgrid_text *t) {
  const table *own = f->own;
  for (int64_t g = 0; g < f->count; g++) {
    if (g) mgrid_text_str(t, between);
    for (int64_t i = own->starts[g]; i < own->starts[g + 1]; i++) {
      mgrid_text_put(t, i == own->starts[g] ? marks : ",", 1);
      mgrid_text_int(t, own->ranks[i]);
    }
    mgrid_text_put(t, marks + 1, 1);
  }
}

static void table_text(const mgrid_family *f, mgrid_text *t) { put_lists(f, "{}", "", t); }

static void table_json(const mgrid_family *f, mgrid_text *t) {
  mgrid_text_str(t, "{\"groups\":[");
  put_lists(f, "[]", ",", t);
  mgrid_text_str(t, "]}");
}

static void table_explain(const mgrid_family *f, mgrid_text *t) {
  (void)f;
  mgrid_text_str(t, "lists of ranks, which follow no rule");
}

static void table_free(mgrid_family *f) {
  table *own = f->own;
  free(own->starts);
  free(own->ranks);
  free(own->by_rank);
  free(own->round);
}

static bool table_classes(const mgrid_family *f, mgrid_classes *list) {
  for (int64_t g = 0; g < f->count; g++) {
    mgrid_class *c = f->count <= MGRID_CLASSES_MAX ? mgrid_classes_add(list) : NULL;
    if (!c) return false;
    *c = (mgrid_class){ .group = g,
                        .start = mgrid_family_rank(f, g, 0),
                        .size = mgrid_family_size(f, g),
                        .round = mgrid_family_round(f, g) };
  }
  return true;
}

/* Add the members as runs of ranks. by_rank has them in order. */
static bool table_members(const mgrid_family *f, mgrid_sets *list) {
  mgrid_points *set = NULL;
  int64_t length = 0;
  for (int64_t i = 0; i < f->total; i++) {
    int64_t rank = (int64_t)(((const table *)f->own)->by_rank[i] >> 32),
            next = set ? set->offset + length : -1;
    if (set && rank < next) continue; /* this rank occurred before */
    if (rank != next) {
      length = 0;
      if (!(set = mgrid_sets_add(list))) return false;
      *set = (mgrid_points){ .offset = rank };
    }
    set->n = ++length > 1;
    set->at[0] = (mgrid_mode){ length, 1 };
  }
  return true;
}

static int64_t table_singles(const mgrid_family *f) {
  int64_t n = 0;
  for (int64_t g = 0; g < f->count; g++) n += table_size(f, g) == 1;
  return n;
}

static int64_t table_rounds(const mgrid_family *f) { return ((const table *)f->own)->rounds; }
static int64_t table_round(const mgrid_family *f, int64_t group) {
  return ((const table *)f->own)->round[group];
}

/* ---------------------------------------------------------------- operations */

static mgrid_status table_split(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err) {
  if (x->by_row) return mgrid_split_cut(x, f, err);

  const table *own = f->own;
  const int64_t *from = own->starts;
  int64_t pieces = 0, k = x->k;
  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = from[g + 1] - from[g];
    if (n % k != 0)
      return mgrid_fail(err, MGRID_REFUSED,
                        "split(%" PRId64 "): group %" PRId64 " has %" PRId64 " ranks", k, g, n);
    pieces += n / k;
  }

  int64_t *in_starts = malloc((size_t)(pieces + 1) * sizeof *in_starts);
  int64_t *out_starts = malloc((size_t)(f->count * k + 1) * sizeof *out_starts);
  int32_t *in_ranks = malloc((size_t)f->total * sizeof *in_ranks);
  int32_t *out_ranks = malloc((size_t)f->total * sizeof *out_ranks);
  if (!in_starts || !out_starts || !in_ranks || !out_ranks) {
    free(in_starts), free(out_starts), free(in_ranks), free(out_ranks);
    return mgrid_oom(err);
  }

  memcpy(in_ranks, own->ranks, (size_t)f->total * sizeof *in_ranks);
  for (int64_t i = 0; i <= pieces; i++) in_starts[i] = i * k;
  int64_t filled = 0, group = 0;
  for (int64_t g = 0; g < f->count; g++) {
    int64_t runs = (from[g + 1] - from[g]) / k;
    for (int64_t p = 0; p < k; p++) { /* one group: the ranks at position p of each run */
      out_starts[group++] = filled;
      for (int64_t r = 0; r < runs; r++) out_ranks[filled++] = own->ranks[from[g] + r * k + p];
    }
  }
  out_starts[group] = filled;

  mgrid_window w = mgrid_world(f->world);
  x->inner = mgrid_table_adopt(w, pieces, in_starts, in_ranks, MGRID_PARTIAL, true, err);
  x->outer = mgrid_table_adopt(w, group, out_starts, out_ranks, MGRID_PARTIAL, true, err);
  return x->inner && x->outer ? MGRID_OK : MGRID_NO_MEMORY;
}

static mgrid_family *table_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  const table *own = f->own;
  int64_t count = f->count / n;
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)f->total * sizeof *ranks);
  if (starts && ranks) {
    for (int64_t g = 0; g <= count; g++) starts[g] = own->starts[g * n];
    memcpy(ranks, own->ranks, (size_t)f->total * sizeof *ranks);
  }
  return mgrid_table_adopt(mgrid_world(f->world), count, starts, ranks, MGRID_PARTIAL, true, err);
}

static bool table_bundle_lists(const mgrid_family *f, int64_t n, int64_t *work) {
  (void)f, (void)n, (void)work;
  return true;
}

static mgrid_family *table_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud,
                                   mgrid_error *err) {
  const table *own = f->own;
  int64_t cap = 2 * f->max_size + 16, total = 0;
  int64_t *positions = malloc((size_t)cap * sizeof *positions);
  int64_t *starts = malloc((size_t)(f->count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)(f->total > 0 ? f->total : 1) * sizeof *ranks);
  bool failed = !positions || !starts || !ranks;

  if (failed) mgrid_oom(err);
  for (int64_t g = 0; g < f->count && !failed; g++) {
    int64_t n = mgrid_pick_ask(fn, ud, mgrid_family_size(f, g), positions, cap, err);
    starts[g] = total;
    for (int64_t i = 0; i < n; i++) ranks[total++] = own->ranks[own->starts[g] + positions[i]];
    failed = n < 0;
  }
  free(positions);
  if (failed) {
    free(starts);
    free(ranks);
    return NULL;
  }
  starts[f->count] = total;
  return mgrid_table_adopt(mgrid_world(f->world), f->count, starts, ranks, mgrid_table_coverage(f),
                           true, err);
}

const mgrid_form mgrid_table_form = {
  .name = "table",
  .listed = true,
  .size = table_size,
  .rank = table_rank,
  .locate = table_locate,
  .slice = table_slice,
  .range = table_range,
  .same_rule = table_same_rule,
  .text = table_text,
  .json = table_json,
  .explain = table_explain,
  .free = table_free,
  .classes = table_classes,
  .members = table_members,
  .singles = table_singles,
  .rounds = table_rounds,
  .round = table_round,
  .split = table_split,
  .bundle = table_bundle,
  .bundle_lists = table_bundle_lists,
  .pick_by = table_pick_by,
};

/* ========================================================== what makes lists */

/* Write the groups of f as lists for a table. The caller frees *starts and *ranks, also on
** failure. */
static bool table_write_out(const mgrid_family *f, int64_t **starts, int32_t **ranks) {
  *starts = malloc((size_t)(f->count + 1) * sizeof **starts);
  *ranks = malloc((size_t)(f->total > 0 ? f->total : 1) * sizeof **ranks);
  if (!*starts || !*ranks) return false;
  (*starts)[0] = 0;
  for (int64_t g = 0; g < f->count; g++) {
    mgrid_family_group(f, g, *ranks + (*starts)[g]);
    (*starts)[g + 1] = (*starts)[g] + mgrid_family_size(f, g);
  }
  return true;
}

mgrid_family *mgrid_family_lists(const mgrid_family *f, mgrid_error *err) {
  int64_t *starts = NULL;
  int32_t *ranks = NULL;
  if (!f) return NULL;
  if (!table_write_out(f, &starts, &ranks)) {
    free(starts);
    free(ranks);
    return mgrid_null_oom(err);
  }
  return mgrid_table_adopt(mgrid_world(f->world), f->count, starts, ranks, mgrid_table_coverage(f),
                           false, err);
}

mgrid_family *mgrid_family_map(const mgrid_family *f, mgrid_map_fn fn, void *ud, mgrid_error *err) {
  if (!f || mgrid_lacks(fn, "the function of a map", err)) return NULL;

  int64_t cap = 4 * f->max_size > 1024 ? 4 * f->max_size : 1024, total = 0;
  int64_t *starts = malloc((size_t)(f->count + 1) * sizeof *starts);
  size_t room = (size_t)(f->total + cap);
  int32_t *ranks = malloc(room * sizeof *ranks);
  int64_t *given = malloc((size_t)cap * sizeof *given);
  if (starts) starts[0] = 0;
  bool failed = !starts || !ranks || !given;
  if (failed) mgrid_oom(err);

  for (int64_t g = 0; g < f->count && !failed; g++) {
    if (!MGRID_ROOM(ranks, room, (size_t)(total + cap))) {
      mgrid_oom(err);
      failed = true;
      break;
    }
    mgrid_error *own = mgrid_error_open(err);
    if ((failed = !own)) break;
    int64_t n = fn(ud, g, given, mgrid_family_members(f, g, 1, (size_t)cap, given), cap, own);
    failed = n < 0 || n > cap;
    mgrid_error_close(own, n < 0, "the function of a map", err);
    if (n > cap)
      mgrid_fail(err, MGRID_REFUSED,
                 "map: group %" PRId64 " got %" PRId64 " ranks; at most %" PRId64, g, n, cap);
    failed |= !failed && ranks_copy(mgrid_world(f->world), g, n, given, ranks + total, err);
    total += failed ? 0 : n;
    starts[g + 1] = total;
  }

  free(given);
  if (failed) {
    free(starts);
    free(ranks);
    return NULL;
  }
  return mgrid_table_adopt(mgrid_world(f->world), f->count, starts, ranks, mgrid_table_coverage(f),
                           true, err);
}

mgrid_family *mgrid_family_without(const mgrid_family *f, size_t n, const int64_t *ranks,
                                   mgrid_error *err) {
  int64_t *starts = NULL, group, position;
  int32_t *members = NULL;

  if (!f || mgrid_count_check("without", n, err) || mgrid_lacks_list(n, ranks, "ranks", err))
    return NULL;
  for (size_t i = 0; i < n; i++)
    if (ranks[i] < 0 || ranks[i] >= f->world)
      return mgrid_null(err, MGRID_OUT_OF_RANGE,
                        "without: rank %" PRId64 " is out of range; ranks are 0 to %" PRId64,
                        ranks[i], f->world - 1);
  if (!table_write_out(f, &starts, &members)) {
    free(starts);
    free(members);
    return mgrid_null_oom(err);
  }
  for (size_t i = 0; i < n; i++)
    for (int64_t nth = 0; mgrid_family_locate(f, ranks[i], nth, &group, &position); nth++)
      members[starts[group] + position] = -1;
  /* done in place: the write position never overtakes the read position */
  int64_t groups = 0, kept = 0;
  for (int64_t g = 0, slot = 0; g < f->count; g++) {
    for (int64_t end = starts[g + 1]; slot < end; slot++)
      if (members[slot] >= 0) members[kept++] = members[slot];
    if (kept > starts[groups]) starts[++groups] = kept;
  }
  return mgrid_table_adopt(mgrid_world(f->world), groups, starts, members, mgrid_table_coverage(f),
                           true, err);
}
