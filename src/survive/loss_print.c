/* SPDX-License-Identifier: MIT
**
** loss_print.c - writes a loss as text and as JSON.
*/
#include "survive/next.h"

#include "plan/json.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN = 12, RUNS = 4 }; /* the most parts that the text lists; the most runs of an axis */

static void bytes_text(mgrid_text *t, int64_t bytes) {
  static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  double n = (double)bytes;
  int i = 0;
  while (n >= 1024 && i < 6) n /= 1024, i++;
  mgrid_text_add(t, i == 0 ? "%.0f %s" : n < 10 ? "%.2f %s" : "%.1f %s", n, unit[i]);
}

/* Append n ascending ranks, at(x, 0) to at(x, n - 1): "5, 8..11". */
static void ranks_text(mgrid_text *t, size_t n, int64_t (*at)(const mgrid_loss *x, size_t i),
                       const mgrid_loss *x) {
  enum { RANGES = 16 };
  int ranges = 0;
  for (size_t i = 0, k; i < n; i = k) {
    for (k = i + 1; k < n && at(x, k) == at(x, k - 1) + 1;) k++;
    if (++ranges > RANGES) {
      mgrid_text_str(t, ", ...");
      return;
    }
    mgrid_text_add(t, "%s%" PRId64, i ? ", " : "", at(x, i));
    if (k - i > 1) mgrid_text_add(t, "%s%" PRId64, k - i > 2 ? ".." : ", ", at(x, k - 1));
  }
}

static int64_t lost_at(const mgrid_loss *x, size_t i) { return x->lost[i]; }
static int64_t idle_at(const mgrid_loss *x, size_t i) {
  return x->was[x->sums.layout + (int64_t)i];
}

/* ------------------------------------------------------------ communicators */

/* The communicators of a family of the next plan. */
typedef struct counted {
  const char *name;
  int64_t kept, made;
} counted;

/* Count the communicators of the next family that has any, in the order of the plan. *i is 0 at
** first. Return false if no family is left. */
static bool next_family(const mgrid_loss *x, size_t *i, counted *out) {
  const mgrid_plan *p = x->plan;
  while (*i < p->content.nentries) {
    int entry = p->order[(*i)++];
    const mgrid_entry *e = &p->content.entry[entry];
    if (p->shares[entry] >= 0 || e->choice->none || e->family->max_size < 2) continue;
    *out = (counted){ e->name, 0, 0 };
    for (int64_t g = 0; g < e->family->count; g++) {
      if (mgrid_family_size(e->family, g) < 2 || mgrid_plan_leader(p, entry, g) >= 0) continue;
      bool kept = mgrid_loss_kept(x, e->name, g, NULL, NULL);
      out->kept += kept, out->made += !kept;
    }
    return true;
  }
  return false;
}

static void families_text(const mgrid_loss *x, bool kept, mgrid_text *t) {
  counted c;
  bool any = false;
  for (size_t i = 0; next_family(x, &i, &c);) {
    int64_t n = kept ? c.kept : c.made;
    if (n == 0) continue;
    mgrid_text_add(t, "%s%s %" PRId64, any ? ", " : " (", c.name, n);
    any = true;
  }
  if (any) mgrid_text_str(t, ")");
}

/* ------------------------------------------------------------------ missing */

/* Append the indices of a missing part: " layer 0..7 hidden 0..1023". If the part is a whole
** tensor, append nothing. */
static void range_text(const mgrid_loss *x, const mgrid_loss_missing_part *m, mgrid_text *t) {
  const mgrid_tensor *tensor = mgrid_plan_tensor(x->old, m->tensor);
  mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
  for (size_t i = 0; i < tensor->naxes; i++) {
    mgrid_run runs[RUNS];
    int64_t n = mgrid_tensor_runs(x->old, m->tensor, m->holders[0], i, RUNS, runs, NULL);
    if (n == 1 && runs->length == tensor->axis[i].length) continue;
    mgrid_text_add(t, " %s", tensor->axis[i].name);
    for (int64_t k = 0; k < n && k < RUNS; k++)
      mgrid_text_add(t, "%s%" PRId64 "..%" PRId64, k ? "+" : " ", runs[k].start,
                     runs[k].start + runs[k].length - 1);
    if (n > RUNS) mgrid_text_str(t, "+...");
  }
  mgrid_tensor_local(x->old, m->tensor, m->holders[0], &part, NULL);
  if (part.slice)
    mgrid_text_add(t, " elements %" PRId64 "..%" PRId64 " of that", part.first,
                   part.first + part.elements - 1);
}

static void missing_text(const mgrid_loss *x, mgrid_text *t) {
  mgrid_text_str(t, "no copy        ");
  bytes_text(t, x->sums.missing);
  mgrid_text_add(t, " in %zu part%s, for a checkpoint to give back\n", x->nmissing,
                 mgrid_s_of((int64_t)x->nmissing));
  for (size_t i = 0; i < x->nmissing && i < SHOWN; i++) {
    const mgrid_loss_missing_part *m = &x->missing[i];
    mgrid_text_add(t, "               %s", m->tensor);
    range_text(x, m, t);
    mgrid_text_str(t, ": ");
    bytes_text(t, m->bytes);
    mgrid_text_add(t, ", rank%s", mgrid_s_of((int64_t)m->nholders));
    for (size_t k = 0; k < m->nholders && k < SHOWN; k++)
      mgrid_text_add(t, "%s%" PRId64, k ? ", " : " ", m->holders[k]);
    mgrid_text_str(t, m->nholders > SHOWN ? ", ... had it\n" : " had it\n");
  }
  if (x->nmissing > SHOWN) mgrid_text_add(t, "               and %zu more\n", x->nmissing - SHOWN);
}

/* --------------------------------------------------------------------- text */

static void put_text(const mgrid_loss *x, mgrid_text *t) {
  mgrid_text_add(t, "lost           %zu of %" PRId64 " ranks%s", x->nlost, x->world,
                 x->nlost ? ": " : "");
  ranks_text(t, x->nlost, lost_at, x);
  mgrid_text_add(t, "\nbecomes        %s", mgrid_loss_answers[x->how]);

  if (!x->plan) {
    mgrid_text_add(t, ": %s\n", mgrid_text_chars(&x->why));
  } else {
    mgrid_text_add(t, ": a layout of %" PRId64 " ranks", x->sums.layout);
    for (const char *at = mgrid_text_chars(&x->params), *end; (end = strchr(at, '\n'));
         at = end + 1)
      mgrid_text_add(t, " %.*s", (int)(end - at), at);
    if (x->sums.idle) {
      mgrid_text_add(t, ", %" PRId64 " idle: ", x->sums.idle);
      ranks_text(t, (size_t)x->sums.idle, idle_at, x);
    }
    mgrid_text_add(t, "\ncommunicators  %" PRId64 " kept", x->sums.kept);
    families_text(x, true, t);
    mgrid_text_add(t, "\n               %" PRId64 " made", x->sums.made);
    families_text(x, false, t);
    mgrid_text_add(t, "\n               %" PRId64 " end\n", x->sums.dropped);
  }

  if (x->ntensors) {
    mgrid_text_str(t, "moved          ");
    bytes_text(t, x->sums.moved);
    mgrid_text_str(t, "; ");
    bytes_text(t, x->sums.stay);
    mgrid_text_str(t, " stay where they are\n");
  }
  if (x->sums.uncounted)
    mgrid_text_add(t,
                   "               %" PRId64
                   " tensor%s of another shape before and after, or in one plan alone\n",
                   x->sums.uncounted, mgrid_s_of(x->sums.uncounted));
  if (x->nmissing) missing_text(x, t);
}

/* --------------------------------------------------------------------- JSON */

/* Each of the next functions returns NULL if memory runs out. */
static json_t *print_append(json_t *list, json_t *value) {
  if (json_array_append_new(list, value) == 0) return list;
  json_decref(list);
  return NULL;
}

static json_t *ranks_json(size_t n, int64_t (*at)(const mgrid_loss *x, size_t i),
                          const mgrid_loss *x) {
  json_t *all = json_array();
  for (size_t i = 0; i < n && all; i++) all = print_append(all, json_integer(at(x, i)));
  return all;
}

static int64_t was_at(const mgrid_loss *x, size_t i) { return x->was[i]; }

static json_t *print_families_json(const mgrid_loss *x) {
  json_t *all = json_object();
  counted c;
  for (size_t i = 0; x->plan && next_family(x, &i, &c);) {
    json_t *one = json_pack("{sIsI}", "kept", (json_int_t)c.kept, "made", (json_int_t)c.made);
    if (json_object_set_new(all, c.name, one) == 0) continue;
    json_decref(all);
    return NULL;
  }
  return all;
}

static json_t *params_json(const mgrid_loss *x) {
  json_t *all = json_array();
  for (const char *at = mgrid_text_chars(&x->params), *end; all && (end = strchr(at, '\n'));
       at = end + 1)
    all = print_append(all, json_stringn(at, (size_t)(end - at)));
  return all;
}

static json_t *part_json(const mgrid_loss *x, const mgrid_loss_missing_part *m) {
  mgrid_text range = { 0 };
  json_t *holders = json_array();
  range_text(x, m, &range);
  for (size_t k = 0; k < m->nholders && holders; k++)
    holders = print_append(holders, json_integer(m->holders[k]));
  json_t *part = json_pack("{sssssIso}", "tensor", m->tensor, "range",
                           range.len ? mgrid_text_chars(&range) + 1 : "", "bytes",
                           (json_int_t)m->bytes, "holders", holders);
  if (range.failed) json_decref(part), part = NULL;
  mgrid_text_free(&range);
  return part;
}

static json_t *missing_json(const mgrid_loss *x) {
  json_t *all = json_array();
  for (size_t i = 0; i < x->nmissing && all; i++)
    all = print_append(all, part_json(x, &x->missing[i]));
  return all;
}

json_t *mgrid_loss_json(const mgrid_loss *x) {
  const mgrid_loss_sums *s = &x->sums;
  char digest[33];
  mgrid_plan_digest(x->plan, digest);
  return json_pack("{so ss ss sI so so so ss? s{sI sI sI so} s{sI sI sI} sI so}", "lost",
                   ranks_json(x->nlost, lost_at, x), "how", mgrid_loss_answers[x->how], "why",
                   mgrid_text_chars(&x->why), "layout", (json_int_t)s->layout, "params",
                   params_json(x), "idle", ranks_json(x->plan ? (size_t)s->idle : 0, idle_at, x),
                   "old_ranks", ranks_json(x->plan ? (size_t)x->survivors : 0, was_at, x), "digest",
                   x->plan ? digest : NULL, "communicators", "kept", (json_int_t)s->kept, "made",
                   (json_int_t)s->made, "dropped", (json_int_t)s->dropped, "families",
                   print_families_json(x), "bytes", "stay", (json_int_t)s->stay, "moved",
                   (json_int_t)s->moved, "missing", (json_int_t)s->missing, "uncounted",
                   (json_int_t)s->uncounted, "missing", missing_json(x));
}

mgrid_status mgrid_loss_print(const mgrid_loss *x, bool json, mgrid_sink sink, void *ud,
                              mgrid_error *err) {
  mgrid_text t = { 0 };
  if (!x || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  if (json) {
    json_t *all = mgrid_loss_json(x);
    mgrid_json_text(all, 0, &t);
    mgrid_text_str(&t, "\n");
    json_decref(all);
  } else {
    put_text(x, &t);
  }
  mgrid_status s = mgrid_text_flush(&t, sink, ud, err);
  mgrid_text_free(&t);
  return s;
}
