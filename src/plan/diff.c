/* SPDX-License-Identifier: MIT
**
** diff.c - the changes from one plan to another: parameters, functions, grids, items, families,
** lists of concurrent families, and the communicators of a rank.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>

typedef struct report {
  mgrid_text text;
  int changes;      /* lines so far */
  mgrid_tell *tell; /* NULL: only text */
  void *ud;
} report;

/* Add a line. `from` is NULL if only the second plan has the thing, `to` if only the first has it.
** Both are NULL if there is nothing more to say. */
static void line(report *r, const char *what, const char *name, const char *from, const char *to) {
  mgrid_difference d = { !from == !to ? '~' : from ? '-' : '+', what, name, from, to };
  mgrid_text_add(&r->text, "%c %-8s %s", d.sign, what, name);
  if (from && *from) mgrid_text_add(&r->text, ": %s", from);
  if (to && *to) mgrid_text_add(&r->text, "%s%s", from ? " -> " : ": ", to);
  mgrid_text_str(&r->text, "\n");
  r->changes++;
  if (r->tell) r->tell(r->ud, &d);
}

static const char *param_of(const mgrid_content *c, const char *name) {
  for (size_t i = 0; i < c->nparams; i++)
    if (strcmp(c->param[i].name, name) == 0) return c->param[i].value;
  return NULL;
}

static void diff_params(report *r, const mgrid_content *a, const mgrid_content *b) {
  char digits[2][40];
  for (size_t i = 0; i < a->nparams; i++) {
    const char *now = param_of(b, a->param[i].name), *was = a->param[i].value;
    if (!now) {
      line(r, "param", a->param[i].name, mgrid_shortest(was, digits[0], sizeof digits[0]), NULL);
    } else if (strcmp(now, was) != 0) {
      line(r, "param", a->param[i].name, mgrid_shortest(was, digits[0], sizeof digits[0]),
           mgrid_shortest(now, digits[1], sizeof digits[1]));
    }
  }
  for (size_t i = 0; i < b->nparams; i++)
    if (!param_of(a, b->param[i].name))
      line(r, "param", b->param[i].name, NULL,
           mgrid_shortest(b->param[i].value, digits[0], sizeof digits[0]));
}

static const char *version_of(const mgrid_content *c, const char *name) {
  for (size_t i = 0; i < c->ncalled; i++)
    if (strcmp(c->called[i].name, name) == 0) return c->called[i].version;
  return NULL;
}

static void diff_functions(report *r, const mgrid_content *a, const mgrid_content *b) {
  for (size_t i = 0; i < a->ncalled; i++) {
    const char *now = version_of(b, a->called[i].name), *was = a->called[i].version;
    if (!now || strcmp(now, was) != 0) line(r, "function", a->called[i].name, was, now);
  }
  for (size_t i = 0; i < b->ncalled; i++)
    if (!version_of(a, b->called[i].name))
      line(r, "function", b->called[i].name, NULL, b->called[i].version);
}

static void grid_text(report *r, const mgrid_grid *g, char *buf, size_t len) {
  mgrid_text t = { 0 };
  mgrid_grid_text(g, &t);
  r->text.failed |= t.failed;
  mgrid_text_ellipsis(buf, len, mgrid_text_finish(&t, buf, len));
}

static void diff_grids(report *r, const mgrid_content *a, const mgrid_content *b) {
  char was[1024], now[1024];
  for (size_t i = 0; i < a->ngrids; i++) {
    int other = mgrid_content_grid(b, a->grid[i].name);
    grid_text(r, a->grid[i].grid, was, sizeof was);
    if (other < 0) {
      line(r, "grid", a->grid[i].name, was, NULL);
      continue;
    }
    grid_text(r, b->grid[other].grid, now, sizeof now);
    if (mgrid_grid_equal(a->grid[i].grid, b->grid[other].grid)) continue;
    line(r, "grid", a->grid[i].name, was, now);
  }
  for (size_t i = 0; i < b->ngrids; i++) {
    if (mgrid_content_grid(a, b->grid[i].name) >= 0) continue;
    grid_text(r, b->grid[i].grid, now, sizeof now);
    line(r, "grid", b->grid[i].name, NULL, now);
  }
}

/* Compare the lists of concurrent families. A list has no name, so it is either gone or new. */
static void diff_concurrent(report *r, bool gone, const mgrid_content *a, const mgrid_content *b) {
  for (size_t i = 0; i < a->nconcurrent; i++) {
    mgrid_text was = { 0 };
    bool found = false;
    mgrid_concurrent_text(&a->concurrent[i], ", ", &was);
    for (size_t k = 0; k < b->nconcurrent && !found && !was.failed; k++) {
      mgrid_text now = { 0 };
      mgrid_concurrent_text(&b->concurrent[k], ", ", &now);
      found = !now.failed && strcmp(was.data, now.data) == 0;
      r->text.failed |= now.failed;
      mgrid_text_free(&now);
    }
    r->text.failed |= was.failed;
    if (!found && !was.failed) line(r, "concurrent", was.data, gone ? "" : NULL, gone ? NULL : "");
    mgrid_text_free(&was);
  }
}

/* Return the first group that differs between two families; 0 if none does. */
static int64_t first_change(const mgrid_family *a, const mgrid_family *b) {
  int64_t least = a->count < b->count ? a->count : b->count, g = 0;
  while (g < least && mgrid_same_group(a, g, b, g)) g++;
  return g < a->count || g < b->count ? g : 0;
}

/* Write "by list, group 2 {0,4,8,...}". */
static void listed_text(mgrid_text *t, const mgrid_family *f, int64_t group) {
  enum { SHOWN = 12 };
  int64_t size = mgrid_family_size(f, group);
  mgrid_text_str(t, "by list");
  if (size > 0) mgrid_text_add(t, ", group %" PRId64 " {", group);
  for (int64_t i = 0; i < size && i <= SHOWN; i++)
    if (i == SHOWN)
      mgrid_text_str(t, ",...");
    else
      mgrid_text_add(t, "%s%" PRId64, i ? "," : "", mgrid_family_rank(f, group, i));
  if (size > 0) mgrid_text_str(t, "}");
}

/* Write the rule and options of a family on one line, cut off at the length of buf. Listed groups
** have no rule: write the group `changed`. */
static void entry_text(report *r, const mgrid_entry *e, int64_t changed, char *buf, size_t len) {
  mgrid_text t = { 0 };
  mgrid_text_int(&t, e->family->count);
  mgrid_text_str(&t, e->family->count == 1 ? " group " : " groups ");
  if (!e->family->form->listed)
    mgrid_family_text(e->family, &t);
  else
    listed_text(&t, e->family, changed);
  mgrid_text_str(&t, e->choice->text);
  r->text.failed |= t.failed;
  mgrid_text_ellipsis(buf, len, mgrid_text_finish(&t, buf, len));
}

static size_t diff_families(report *r, const mgrid_content *a, const mgrid_content *b) {
  char was[512], now[512];
  size_t kept = 0;

  for (size_t i = 0; i < a->nentries; i++) {
    const mgrid_entry *e = &a->entry[i];
    int other = mgrid_content_find(b, e->name);
    if (other < 0) {
      entry_text(r, e, 0, was, sizeof was);
      line(r, "family", e->name, was, NULL);
    } else if (!mgrid_family_equal(e->family, b->entry[other].family)
               || strcmp(e->choice->text, b->entry[other].choice->text) != 0) {
      int64_t changed = first_change(e->family, b->entry[other].family);
      entry_text(r, e, changed, was, sizeof was);
      entry_text(r, &b->entry[other], changed, now, sizeof now);
      line(r, "family", e->name, was, now);
    } else {
      kept++;
    }
  }
  for (size_t i = 0; i < b->nentries; i++) {
    if (mgrid_content_find(a, b->entry[i].name) >= 0) continue;
    entry_text(r, &b->entry[i], 0, now, sizeof now);
    line(r, "family", b->entry[i].name, NULL, now);
  }
  return kept;
}

/* Write the text of an item on one line, cut off at the length of buf. */
static void item_text(report *r, const mgrid_item *x, char *buf, size_t len) {
  mgrid_text t = { 0 };
  x->kind->text(x->x, &t);
  r->text.failed |= t.failed;
  mgrid_text_ellipsis(buf, len, mgrid_text_finish(&t, buf, len));
}

static bool item_equal(const mgrid_item *a, const mgrid_item *b) {
  mgrid_text x = { 0 }, y = { 0 };
  a->kind->text(a->x, &x);
  b->kind->text(b->x, &y);
  bool equal = !x.failed && !y.failed && x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
  mgrid_text_free(&x);
  mgrid_text_free(&y);
  return equal;
}

/* Return the item of a plan that corresponds to item x of another plan. NULL: there is none, or no
** group depends on it. */
static const mgrid_item *same_item(const mgrid_content *c, const mgrid_item *x) {
  const mgrid_item *y = mgrid_content_item(c, x->kind, x->name);
  return y && !mgrid_item_unread(y) ? y : NULL;
}

static void diff_items(report *r, const mgrid_content *a, const mgrid_content *b) {
  char was[512], now[512];
  for (size_t i = 0; i < a->nitems; i++) {
    const mgrid_item *x = &a->item[i], *y = same_item(b, x);
    if (mgrid_item_unread(x)) continue;
    item_text(r, x, was, sizeof was);
    if (!y) {
      line(r, x->kind->name, x->name, was, NULL);
    } else if (!item_equal(x, y)) {
      item_text(r, y, now, sizeof now);
      line(r, x->kind->name, x->name, was, now);
    }
  }
  for (size_t i = 0; i < b->nitems; i++) {
    const mgrid_item *y = &b->item[i];
    if (mgrid_item_unread(y) || same_item(a, y)) continue;
    item_text(r, y, now, sizeof now);
    line(r, y->kind->name, y->name, NULL, now);
  }
}

static bool diff_is_lazy(const mgrid_plan *p, const mgrid_creation *c) {
  return p->content.entry[c->entry].choice->asked.lazy;
}

static int64_t count_now(const mgrid_plan *p, const mgrid_view *v) {
  int64_t n = 0;
  for (size_t i = 0; i < v->ncomms; i++) n += !diff_is_lazy(p, &v->comm[i]);
  return n;
}

/* Count the communicators of a rank that both plans have: those with equal members, and with
** options that allow sharing. Lazy ones do not count, because they may not have been created. */
static mgrid_status count_kept(const mgrid_plan *a, const mgrid_plan *b, int64_t rank,
                               mgrid_change *out, mgrid_error *err) {
  mgrid_view va = { 0 }, vb = { 0 };
  mgrid_status s = mgrid_view_init(&va, a, rank, err);
  if (!s) s = mgrid_view_init(&vb, b, rank, err);
  *out = (mgrid_change)MGRID_CHANGE_INIT;
  for (size_t i = 0; i < vb.ncomms && !s; i++) {
    const mgrid_creation *c = &vb.comm[i];
    const mgrid_entry *e = &b->content.entry[c->entry];
    bool found = false;
    for (size_t k = 0; k < va.ncomms && !found && !diff_is_lazy(b, c); k++) {
      const mgrid_entry *was = &a->content.entry[va.comm[k].entry];
      found = !diff_is_lazy(a, &va.comm[k]) && mgrid_choice_shares(was->choice, e->choice)
              && mgrid_same_group(was->family, va.comm[k].group, e->family, c->group);
    }
    out->kept += found;
  }
  out->created = count_now(b, &vb) - out->kept;
  out->dropped = count_now(a, &va) - out->kept;
  mgrid_view_free(&va);
  mgrid_view_free(&vb);
  return s;
}

mgrid_status mgrid_plan_differences(const mgrid_plan *a, const mgrid_plan *b, int64_t rank,
                                    mgrid_change *change, mgrid_tell *tell, mgrid_sink sink,
                                    void *ud, mgrid_error *err) {
  report r = { { 0 }, 0, tell, ud };
  mgrid_change c = MGRID_CHANGE_INIT;
  mgrid_status s = change ? mgrid_struct_check(change, sizeof c, "mgrid_change", err) : MGRID_OK;
  bool one_world = a->content.world == b->content.world;

  if (s) return s;
  if (!one_world) {
    char from[32], to[32];
    snprintf(from, sizeof from, "%" PRId64, a->content.world);
    snprintf(to, sizeof to, "%" PRId64 " ranks", b->content.world);
    line(&r, "world", "size", from, to);
  }
  diff_params(&r, &a->content, &b->content);
  diff_functions(&r, &a->content, &b->content);
  diff_grids(&r, &a->content, &b->content);
  diff_items(&r, &a->content, &b->content);
  size_t kept = diff_families(&r, &a->content, &b->content);
  diff_concurrent(&r, true, &a->content, &b->content);
  diff_concurrent(&r, false, &b->content, &a->content);
  if (a->content.policies != b->content.policies && a->content.policies && b->content.policies)
    line(&r, "policies", "may differ: the text of the recipe has changed", NULL, NULL);
  if (r.changes == 0 && memcmp(a->digest, b->digest, sizeof a->digest) != 0)
    line(&r, "digest", "differs: equal things in another order, or equal groups by another rule",
         NULL, NULL);
  if (r.changes == 0) mgrid_text_str(&r.text, "no difference\n");
  mgrid_text_add(&r.text, "%zu of %zu famil%s as before\n", kept, b->content.nentries,
                 b->content.nentries == 1 ? "y" : "ies");
  if (one_world) {
    s = count_kept(a, b, rank < 0 ? 0 : rank, &c, err);
    mgrid_text_add(&r.text,
                   "rank %" PRId64 " keeps %" PRId64 " communicator%s, creates %" PRId64
                   ", destroys %" PRId64 "\n",
                   rank < 0 ? 0 : rank, c.kept, mgrid_s_of(c.kept), c.created, c.dropped);
  }
  if (!s && r.text.failed) s = mgrid_oom(err);
  if (!s && sink) s = mgrid_text_flush(&r.text, sink, ud, err);
  mgrid_text_free(&r.text);
  if (!s) mgrid_struct_write(change, &c, sizeof c);
  return s;
}

mgrid_status mgrid_plan_diff(const mgrid_plan *a, const mgrid_plan *b, int64_t rank,
                             mgrid_change *change, mgrid_sink sink, void *ud, mgrid_error *err) {
  return a && b ? mgrid_plan_differences(a, b, rank, change, NULL, sink, ud, err) : MGRID_USAGE;
}
