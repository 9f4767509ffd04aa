/* SPDX-License-Identifier: MIT
**
** why.c - why two ranks communicate: the groups that contain both, or else the shortest chain of
** groups between them. The answer is made as JSON. The text is written from the JSON.
*/
#include "families/classes.h"
#include "plan/json.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- groups */

/* Return the step of a view that makes this communicator, or -1. */
static int step_of(const mgrid_view *v, const mgrid_creation *c) {
  for (size_t i = 0; i < v->ncomms; i++)
    if (v->comm[i].entry == c->entry && v->comm[i].group == c->group) return (int)i;
  return -1;
}

/* Return a communicator, with the step at which each of the two ranks makes it. */
static json_t *communicator(const mgrid_plan *p, const mgrid_view *a, const mgrid_view *b,
                            int comm) {
  const mgrid_creation *c = &a->comm[comm];
  return mgrid_json_pack("{sssIs[ii]}", "family", p->content.entry[c->entry].name, "group",
                         (json_int_t)c->group, "steps", comm, step_of(b, c));
}

/* Return the ranks between two positions of a group. */
static json_t *why_between(const mgrid_family *f, int64_t group, int64_t from, int64_t to) {
  json_t *list = json_array();
  for (int64_t i = (from < to ? from : to) + 1; i < (from < to ? to : from) && list; i++)
    if (json_array_append_new(list, json_integer(mgrid_family_rank(f, group, i)))) {
      json_decref(list);
      list = NULL;
    }
  return list;
}

/* Insert a group into the list, after all groups that are not larger. */
static int put_by_size(json_t *list, json_t *one) {
  json_int_t size = json_integer_value(json_object_get(one, "size"));
  size_t index = json_array_size(list);
  while (index > 0
         && json_integer_value(json_object_get(json_array_get(list, index - 1), "size")) > size)
    index--;
  return json_array_insert_new(list, index, one);
}

/* Return all groups that contain both ranks, the smallest first. Groups of equal size are in the
** order of the topology. */
static json_t *why_common(const mgrid_plan *p, const mgrid_view *a, const mgrid_view *b) {
  json_t *list = json_array();
  for (size_t i = 0; i < a->nmembers && list; i++)
    for (size_t k = 0; k < b->nmembers && list; k++) {
      const mgrid_member *x = &a->member[i], *y = &b->member[k];
      if (x->entry != y->entry || x->group != y->group) continue;
      const mgrid_entry *e = &p->content.entry[x->entry];
      json_t *one = mgrid_json_pack(
          "{sssIsIs[II]sbsoso}", "family", e->name, "group", (json_int_t)x->group, "size",
          (json_int_t)x->size, "positions", (json_int_t)x->position, (json_int_t)y->position,
          "pair", x->size == 2, "between",
          why_between(e->family, x->group, x->position, y->position), "communicator",
          x->comm < 0 ? json_null() : communicator(p, a, b, x->comm));
      if (put_by_size(list, one)) {
        json_decref(list);
        list = NULL;
      }
    }
  return list;
}

/* Return the first communicator that both ranks make, or null. */
static json_t *first_meeting(const mgrid_plan *p, const mgrid_view *a, const mgrid_view *b) {
  for (size_t i = 0; i < a->ncomms; i++)
    if (step_of(b, &a->comm[i]) >= 0) return communicator(p, a, b, (int)i);
  return json_null();
}

/* -------------------------------------------------------------------- chains */

enum {
  SEARCHED_AT_ONCE = 4096, /* in larger worlds, look for a chain of two groups first */
  SEARCHED_MAX = 1 << 24   /* most ranks of a world that is searched */
};

/* A breadth-first search over ranks, group by group. Each group is searched once. */
typedef struct search {
  const mgrid_plan *p;
  int32_t *queue; /* [world]: ranks in the order in which they were found */
  int32_t *from;  /* [world]: the rank before it in its chain; -1: none; -2: not found yet */
  int32_t *entry; /* [world]: the family of the group in which a rank was found */
  int64_t *start; /* [entries]: the first bit of each family in `seen` */
  uint8_t *seen;  /* a bit per group */
  int64_t head, tail;
} search;

static bool search_make(search *s, const mgrid_plan *p) {
  size_t world = (size_t)p->content.world, n = p->content.nentries;
  int64_t groups = 0;
  *s = (search){ p,
                 malloc(world * sizeof *s->queue),
                 malloc(world * sizeof *s->from),
                 malloc(world * sizeof *s->entry),
                 malloc((n + 1) * sizeof *s->start),
                 NULL,
                 0,
                 0 };
  if (!s->queue || !s->from || !s->entry || !s->start) return false;
  for (size_t i = 0; i < n; i++) {
    s->start[i] = groups;
    groups += p->content.entry[i].family->count;
  }
  s->seen = calloc((size_t)groups / 8 + 1, 1);
  for (size_t r = 0; r < world; r++) s->from[r] = -2;
  return s->seen != NULL;
}

static void search_free(search *s) {
  free(s->queue);
  free(s->from);
  free(s->entry);
  free(s->start);
  free(s->seen);
}

static void find_members(search *s, int32_t rank, int entry, int64_t group) {
  const mgrid_family *f = s->p->content.entry[entry].family;
  int64_t bit = s->start[entry] + group, size = mgrid_family_size(f, group);
  if (s->seen[bit / 8] >> (bit % 8) & 1) return;
  s->seen[bit / 8] |= (uint8_t)(1 << (bit % 8));
  for (int64_t k = 0; k < size; k++) {
    int64_t other = mgrid_family_rank(f, group, k);
    if (s->from[other] != -2) continue;
    s->from[other] = rank;
    s->entry[other] = entry;
    s->queue[s->tail++] = (int32_t)other;
  }
}

/* Search from rank a on. Return whether b is found. */
static bool found(search *s, int64_t a, int64_t b) {
  int64_t group, position;
  s->from[a] = -1;
  s->queue[s->tail++] = (int32_t)a;
  while (s->head < s->tail && s->from[b] == -2) {
    int32_t rank = s->queue[s->head++];
    for (size_t i = 0; i < s->p->content.nentries && s->from[b] == -2; i++)
      for (int64_t nth = 0;
           mgrid_family_locate(s->p->content.entry[i].family, rank, nth, &group, &position); nth++)
        find_members(s, rank, (int)i, group);
  }
  return s->from[b] != -2;
}

/* Return the group of a family that contains both ranks. */
static int64_t group_of_both(const mgrid_family *f, int64_t a, int64_t b) {
  int64_t ga, gb, position;
  for (int64_t i = 0; mgrid_family_locate(f, a, i, &ga, &position); i++)
    for (int64_t k = 0; mgrid_family_locate(f, b, k, &gb, &position); k++)
      if (ga == gb) return ga;
  return -1;
}

/* Add the ranks of one group: by the family's rule, or for a short group one by one. */
static bool ranks_of(const mgrid_family *f, int64_t group, mgrid_sets *sets) {
  enum { LISTED = 256 };
  if (f->rule) {
    const mgrid_modes *inside = &f->rule->inside;
    mgrid_points *set = mgrid_sets_add(sets);
    if (!set) return false;
    *set = (mgrid_points){ .offset = mgrid_family_rank(f, group, 0) };
    for (int i = 0; i < inside->n; i++)
      mgrid_points_push(set, inside->at[i].size, inside->at[i].stride);
    return true;
  }
  int64_t size = mgrid_family_size(f, group);
  for (int64_t k = 0; k < size; k++) {
    mgrid_points *set = size <= LISTED ? mgrid_sets_add(sets) : NULL;
    if (!set) return false;
    *set = (mgrid_points){ .offset = mgrid_family_rank(f, group, k) };
  }
  return true;
}

/* Return a rank that is in a group with a and in another with b, and set *of_a and *of_b to the
** indices of these members of a and b. -1: there is none, or modes cannot tell. */
static int64_t rank_between(const mgrid_view *a, const mgrid_view *b, const mgrid_plan *p,
                            size_t *of_a, size_t *of_b) {
  mgrid_sets own = { 0 }, theirs = { 0 };
  int64_t rank = -1;
  for (*of_a = 0; *of_a < a->nmembers; ++*of_a)
    for (*of_b = 0; *of_b < b->nmembers; ++*of_b) {
      const mgrid_member *x = &a->member[*of_a], *y = &b->member[*of_b];
      own.n = theirs.n = 0;
      if (!ranks_of(p->content.entry[x->entry].family, x->group, &own)
          || !ranks_of(p->content.entry[y->entry].family, y->group, &theirs))
        continue;
      for (size_t i = 0; i < own.n && rank < 0; i++)
        if (!mgrid_sets_overlap(&own.at[i], &theirs, &rank, NULL)) rank = -1;
      if (rank < 0) continue;
      free(own.at);
      free(theirs.at);
      return rank;
    }
  free(own.at);
  free(theirs.at);
  return -1;
}

static json_t *step_between(const mgrid_plan *p, int64_t from, int64_t to, int entry,
                            int64_t group) {
  return mgrid_json_pack("{sIsIsssI}", "from", (json_int_t)from, "to", (json_int_t)to, "family",
                         p->content.entry[entry].name, "group", (json_int_t)group);
}

/* Return the chain of two groups if there is one. In small worlds leave it to the search over all
** ranks. */
static json_t *short_chain(const mgrid_plan *p, const mgrid_view *a, const mgrid_view *b) {
  size_t x, y;
  int64_t rank = p->content.world > SEARCHED_AT_ONCE ? rank_between(a, b, p, &x, &y) : -1;
  if (rank < 0) return NULL;
  const mgrid_member *m = &a->member[x], *n = &b->member[y];
  return mgrid_json_pack("[oo]", step_between(p, a->rank, rank, m->entry, m->group),
                         step_between(p, rank, b->rank, n->entry, n->group));
}

/* Return the steps of the chain from a to b, each in one group; null: there is no chain. */
static json_t *why_chain(const mgrid_plan *p, int64_t a, int64_t b) {
  search s;
  bool made = search_make(&s, p);
  json_t *list = !made ? NULL : found(&s, a, b) ? json_array() : json_null();
  for (int64_t rank = b; json_is_array(list) && rank != a; rank = s.from[rank]) {
    int64_t from = s.from[rank];
    int entry = s.entry[rank];
    json_t *step = step_between(p, from, rank, entry,
                                group_of_both(p->content.entry[entry].family, from, rank));
    if (!json_array_insert_new(list, 0, step)) continue;
    json_decref(list);
    list = NULL;
  }
  search_free(&s);
  return list;
}

/* ----------------------------------------------------------------------- all */

mgrid_status mgrid_plan_why_json(const mgrid_plan *p, int64_t a, int64_t b, json_t **out,
                                 mgrid_error *err) {
  mgrid_view va = { 0 }, vb = { 0 };

  *out = NULL;
  mgrid_status s = mgrid_view_init(&va, p, a, err);
  if (!s) s = mgrid_view_init(&vb, p, b, err);
  if (!s && a == b)
    s = mgrid_fail(err, MGRID_BAD_VALUE,
                   "both ranks are %" PRId64 "; two different ranks are needed", a);
  if (!s) {
    json_t *groups = why_common(p, &va, &vb);
    bool none = groups && json_array_size(groups) == 0;
    json_t *steps = none ? short_chain(p, &va, &vb) : json_null();
    if (!steps && p->content.world > SEARCHED_MAX) {
      s = mgrid_fail(err, MGRID_LIMIT,
                     "ranks %" PRId64 " and %" PRId64
                     " are in no group together, and no two groups connect them; longer chains are "
                     "found in worlds of at most %d ranks",
                     a, b, SEARCHED_MAX);
      json_decref(groups);
    } else {
      *out = mgrid_json_pack("{s[II]sososo}", "ranks", (json_int_t)a, (json_int_t)b, "groups",
                             groups, "first", first_meeting(p, &va, &vb), "chain",
                             steps ? steps : why_chain(p, a, b));
      if (!*out) s = mgrid_oom(err);
    }
  }
  mgrid_view_free(&va);
  mgrid_view_free(&vb);
  return s;
}

static int64_t why_integer(const json_t *object, const char *key) {
  return json_integer_value(json_object_get(object, key));
}
static int64_t nth(const json_t *object, const char *key, size_t i) {
  return json_integer_value(json_array_get(json_object_get(object, key), i));
}
static const char *why_text(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

/* Append "pp[5]: positions 0 and 3 of 4; between them 69, 101". */
static void put_group(mgrid_text *t, const json_t *g) {
  enum { SHOWN = 6 };
  const json_t *comm = json_object_get(g, "communicator"), *middle = json_object_get(g, "between");
  size_t n = json_array_size(middle);
  mgrid_text_add(t, "  %s[%" PRId64 "]: positions %" PRId64 " and %" PRId64 " of %" PRId64,
                 why_text(g, "family"), why_integer(g, "group"), nth(g, "positions", 0),
                 nth(g, "positions", 1), why_integer(g, "size"));
  if (json_is_true(json_object_get(g, "pair")))
    mgrid_text_str(t, ", a pair");
  else if (n == 0)
    mgrid_text_str(t, ", neighbours");
  for (size_t i = 0; i < n && i < SHOWN; i++)
    mgrid_text_add(t, "%s%" PRId64, i ? ", " : "; between them ",
                   (int64_t)json_integer_value(json_array_get(middle, i)));
  if (n > SHOWN) mgrid_text_add(t, " and %zu more", n - SHOWN);
  if (json_is_null(comm))
    mgrid_text_str(t, "; no communicator");
  else if (strcmp(why_text(comm, "family"), why_text(g, "family")) != 0)
    mgrid_text_add(t, "; communicator of %s[%" PRId64 "]", why_text(comm, "family"),
                   why_integer(comm, "group"));
  mgrid_text_str(t, "\n");
}

static void put_answer(mgrid_text *t, const json_t *why) {
  int64_t a = nth(why, "ranks", 0), b = nth(why, "ranks", 1);
  const json_t *groups = json_object_get(why, "groups"), *first = json_object_get(why, "first");
  const json_t *steps = json_object_get(why, "chain");
  size_t n = json_array_size(groups);

  mgrid_text_add(t, "ranks %" PRId64 " and %" PRId64 " are together in ", a, b);
  if (n == 0 && json_is_null(steps))
    mgrid_text_str(t, "no group, and no chain of groups connects them\n");
  if (n == 0 && !json_is_null(steps))
    mgrid_text_str(t, "no group; a shortest way from one to the other\n");
  if (n > 0) mgrid_text_add(t, "%zu group%s\n", n, mgrid_s_of(n));
  for (size_t i = 0; i < n; i++) put_group(t, json_array_get(groups, i));
  for (size_t i = 0; i < json_array_size(steps); i++) {
    const json_t *step = json_array_get(steps, i);
    mgrid_text_add(t, "  %" PRId64 " to %" PRId64 " in %s[%" PRId64 "]\n",
                   why_integer(step, "from"), why_integer(step, "to"), why_text(step, "family"),
                   why_integer(step, "group"));
  }
  if (n == 0 || json_is_null(first)) return;
  mgrid_text_add(t,
                 "they first meet when %s[%" PRId64 "] is created: creation %" PRId64
                 " of rank %" PRId64 ", creation %" PRId64 " of rank %" PRId64 "\n",
                 why_text(first, "family"), why_integer(first, "group"), nth(first, "steps", 0), a,
                 nth(first, "steps", 1), b);
}

mgrid_status mgrid_plan_why(const mgrid_plan *p, int64_t a, int64_t b, bool json, mgrid_sink sink,
                            void *ud, mgrid_error *err) {
  if (!p || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  json_t *why;
  mgrid_status s = mgrid_plan_why_json(p, a, b, &why, err);
  if (s) return s;
  mgrid_text t = { 0 };
  if (json) {
    mgrid_json_text(why, JSON_INDENT(2), &t);
    mgrid_text_str(&t, "\n");
  } else {
    put_answer(&t, why);
  }
  s = mgrid_text_flush(&t, sink, ud, err);
  mgrid_text_free(&t);
  json_decref(why);
  return s;
}
