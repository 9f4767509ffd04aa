/* SPDX-License-Identifier: MIT
**
** sweep.c - moongrid lose --all: every loss of one rank, or of two, and a row for each thing that the job becomes.
*/
#include "survive/command/words.h"
#include "plan/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct worst {
  int64_t value, a, b; /* the units that were lost; b -1: one */
} worst;

/* Losses that become the same. */
typedef struct row {
  mgrid_loss_answer how;
  int64_t           layout, losses, kept; /* kept: the fewest communicators */
  int64_t           whole;                /* of the losses, those after which every part has a copy */
  worst             moved, missing;
  char             *text; /* parameters, or why it stops */
} row;

typedef struct table {
  size_t n;
  row   *at;
} table;

static row *row_of(table *t, const mgrid_loss *x, const mgrid_loss_sums *sums, mgrid_error *err) {
  const char *text = mgrid_text_chars(x->plan ? &x->params : &x->why);
  for (size_t i = 0; i < t->n; i++)
    if (t->at[i].how == x->how && t->at[i].layout == sums->layout && strcmp(t->at[i].text, text) == 0) return &t->at[i];
  row *more = mgrid_grow(t->at, t->n, sizeof *more);
  if (!more) return mgrid_null_oom(err);
  t->at = more;
  more[t->n] = (row){ .how = x->how,
                      .layout = sums->layout,
                      .kept = INT64_MAX,
                      .text = mgrid_strdup(text),
                      .moved = { -1, -1, -1 },
                      .missing = { -1, -1, -1 } };
  return more[t->n].text ? &more[t->n++] : mgrid_null_oom(err);
}

static void larger(worst *w, int64_t value, int64_t a, int64_t b) {
  if (value > w->value) *w = (worst){ value, a, b };
}

static mgrid_status lose(table *t, const lose_units *u, mgrid_losses *l, int64_t a, int64_t b, int64_t *room,
                         mgrid_error *err) {
  size_t n = 0;
  for (int64_t i = u->start[a]; i < u->start[a + 1]; i++) room[n++] = u->rank[i];
  for (int64_t i = b < 0 ? 0 : u->start[b]; i < (b < 0 ? 0 : u->start[b + 1]); i++) room[n++] = u->rank[i];
  mgrid_loss *x = mgrid_loss_new(l, n, room, err);
  if (!x) return err->status;
  row *r = row_of(t, x, &x->sums, err);
  if (r) {
    r->losses++;
    r->whole += x->sums.missing == 0;
    if (x->sums.kept < r->kept) r->kept = x->sums.kept;
    larger(&r->moved, x->sums.moved, a, b);
    larger(&r->missing, x->sums.missing, a, b);
  }
  mgrid_loss_free(x);
  return r ? MGRID_OK : err->status;
}

/* ------------------------------------------------------------------ printing */

static const char *const answers[] = { "stop", "replace", "shrink" };

/* "1.50 GiB (5, 13)" */
static void worst_text(const worst *w, char *out, size_t len) {
  char bytes[32];
  if (w->value <= 0)
    snprintf(out, len, "0 B");
  else if (w->b < 0)
    snprintf(out, len, "%s (%" PRId64 ")", cli_bytes(w->value, bytes, sizeof bytes), w->a);
  else
    snprintf(out, len, "%s (%" PRId64 ", %" PRId64 ")", cli_bytes(w->value, bytes, sizeof bytes), w->a, w->b);
}

static int by_losses(const void *a, const void *b) {
  const row *x = a, *y = b;
  if (!x->how != !y->how) return x->how ? -1 : 1;
  if (x->losses != y->losses) return x->losses > y->losses ? -1 : 1;
  return (x->layout < y->layout) - (x->layout > y->layout);
}

static void put_text(const table *t, const lose_units *u, int64_t all, bool tensors) {
  int64_t losses = 0, fine = 0, whole = 0;
  printf("%-9s %10s %10s %10s  %-24s  %-24s\n", "becomes", "of ranks", "losses", "kept", "most moved",
         "most without a copy");
  for (size_t i = 0; i < t->n; i++) {
    const row *r = &t->at[i];
    char       moved[80], missing[80];
    worst_text(&r->moved, moved, sizeof moved);
    worst_text(&r->missing, missing, sizeof missing);
    losses += r->losses;
    fine += r->how ? r->losses : 0;
    whole += r->how ? r->whole : 0;
    if (r->how)
      printf("%-9s %10" PRId64 " %10" PRId64 " %10" PRId64 "  %-24s  %s\n", answers[r->how], r->layout, r->losses,
             r->kept, moved, missing);
    else
      printf("%-9s %10s %10" PRId64 " %10s  %-24s  %s\n", answers[r->how], "-", r->losses, "-", "-", missing);
    for (const char *at = r->text, *end; *at; at = *end ? end + 1 : end) {
      end = at + strcspn(at, "\n");
      printf("          %.*s\n", (int)(end - at), at);
    }
  }
  printf("%" PRId64 " losses of %s%s%s: the job survives %" PRId64, losses, all == 1 ? "one " : "two ", u->name,
         all == 1 ? "" : "s", fine);
  if (tensors)
    printf(", %" PRId64 " of them without a checkpoint\n", whole);
  else
    printf("\n");
}

static mgrid_status put_json(const table *t, const lose_units *u, int64_t all, mgrid_error *err) {
  json_t *rows = json_array();
  for (size_t i = 0; i < t->n; i++) {
    const row   *r = &t->at[i];
    const worst *w[] = { &r->moved, &r->missing };
    json_t *one = mgrid_json_pack("{sssIsIsIsIss}", "how", answers[r->how], "layout", (json_int_t)r->layout, "losses",
                                  (json_int_t)r->losses, "with_copies", (json_int_t)r->whole, "kept",
                                  (json_int_t)(r->how ? r->kept : 0), r->how ? "params" : "why", r->text);
    for (int k = 0; k < 2; k++) {
      json_t *lost = json_array();
      json_array_append_new(lost, json_integer(w[k]->a));
      if (w[k]->b >= 0) json_array_append_new(lost, json_integer(w[k]->b));
      json_object_set_new(one, k ? "missing" : "moved",
                          mgrid_json_pack("{sIso}", "bytes", (json_int_t)w[k]->value, "lost", lost));
    }
    json_array_append_new(rows, one);
  }
  json_t      *whole = mgrid_json_pack("{sssIso}", "of", u->name, "at_once", (json_int_t)all, "rows", rows);
  mgrid_status s = cli_put_json(whole, err);
  json_decref(whole);
  return s;
}

/* A loss takes time in proportion to the ranks: some seconds for ten million of these steps. */
static bool too_many(int64_t all, int64_t units, int64_t world) {
  const double most = 1 << 27, least_memory = 16; /* the ranks themselves take memory, even for one loss */
  double       losses = all == 1 ? (double)units : (double)units * (double)(units - 1) / 2;
  return (losses > least_memory ? losses : least_memory) * (double)world > most;
}

mgrid_status cli_lose_can_try(const lose_options *o, const char *level, int64_t world, int64_t units,
                              mgrid_error *err) {
  int64_t fits = 1, fails = world; /* worlds of which every rank is a unit */
  if (!too_many(o->all, units, world)) return MGRID_OK;
  while (fails - fits > 1) {
    int64_t middle = fits + (fails - fits) / 2;
    *(too_many(o->all, middle, middle) ? &fails : &fits) = middle;
  }
  if (level)
    return mgrid_fail(err, MGRID_LIMIT,
                      "--all %" PRId64 ": %" PRId64 " %ss of %" PRId64
                      " ranks are too many to try in turn; lose those of interest, as --nodes 0,1, or take a smaller "
                      "--world",
                      o->all, units, level, world);
  return mgrid_fail(err, MGRID_LIMIT,
                    "--all %" PRId64 ": %" PRId64 " ranks are too many to try %s in turn; nearest: --world %" PRId64
                    "; or lose those of interest, as --ranks 5,13, or whole nodes, by --level node",
                    o->all, world, o->all == 1 ? "each" : "each pair", fits);
}

mgrid_status cli_lose_all(const lose_options *o, const lose_units *u, mgrid_losses *l, mgrid_error *err) {
  table        t = { 0 };
  int64_t     *room = malloc((size_t)l->world * sizeof *room);
  mgrid_status s = room ? MGRID_OK : mgrid_oom(err);
  if (!s && u->n <= o->all)
    s = mgrid_fail(err, MGRID_REFUSED, "--all %" PRId64 ": there %s %" PRId64 " %s%s, and one is to survive", o->all,
                   u->n == 1 ? "is" : "are", u->n, u->name, mgrid_s_of(u->n));
  for (int64_t a = 0; a < u->n && !s; a++) {
    if (o->all == 1) s = lose(&t, u, l, a, -1, room, err);
    for (int64_t b = a + 1; b < u->n && !s && o->all == 2; b++) s = lose(&t, u, l, a, b, room, err);
  }
  cli_progress_end();
  if (!s && t.n > 1) qsort(t.at, t.n, sizeof *t.at, by_losses);
  if (!s && o->json) s = put_json(&t, u, o->all, err);
  if (!s && !o->json) {
    cli_show_head(&o->cli, l->plan, "", false);
    put_text(&t, u, o->all, mgrid_plan_ntensors(l->plan) > 0);
  }
  for (size_t i = 0; i < t.n; i++) free(t.at[i].text);
  free(t.at);
  free(room);
  return s;
}
