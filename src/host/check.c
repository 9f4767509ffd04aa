/* SPDX-License-Identifier: MIT
**
** check.c - moongrid check: the laws of a recipe's families at several world sizes.
*/
#include "host/cli.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
  "usage: moongrid check RECIPE --world N[,N...] [NAME=VALUE ...] [--json]\n"
  "\n"
  "Check a recipe at several world sizes: every family asked by rank gives the groups that\n"
  "it lists, partitions hold each rank once, and the creation schedule lets every rank\n"
  "through. Large worlds are sampled, and said to be.\n"
  "\n"
  "  --world N,... worlds to check\n"
  "  --json        an array with one object per world\n"
  "  --color WHEN  accepted by every command; this one has none\n";

enum { WHOLE = 1 << 20, SAMPLES = 4096, REHEARSED = 1 << 16 };

typedef struct verdict {
  bool         whole, rehearsed;
  int64_t      asked; /* members checked */
  mg_rehearsal rehearsal;
} verdict;

static mg_status broken(mg_error *err, const char *family, int64_t group, int64_t position) {
  return mg_fail(err, MG_REFUSED, "family '%s': member %" PRId64 " of group %" PRId64
                 " is not found again by its rank",
                 family, position, group);
}

/* (group, position) -> rank -> (group, position) for one member. */
static bool inverse_holds(const mg_family *f, int64_t group, int64_t position) {
  int64_t g, p, rank = mg_family_rank(f, group, position);
  for (int64_t nth = 0; rank >= 0 && mg_family_locate(f, rank, nth, &g, &p); nth++)
    if (g == group && p == position) return true;
  return false;
}

/* Every member of every group; and the members counted per rank against the coverage. */
static mg_status check_whole(const char *name, const mg_family *f, verdict *v, mg_error *err) {
  uint8_t *seen = calloc((size_t)f->world, 1);
  int32_t *ranks = malloc((size_t)(f->max_size + 1) * sizeof *ranks);
  mg_status s = seen && ranks ? MG_OK : mg_oom(err);
  for (int64_t g = 0; g < f->count && !s; g++) {
    int64_t n = mg_family_size(f, g);
    mg_family_members(f, g, ranks);
    for (int64_t i = 0; i < n && !s; i++, v->asked++) {
      if (mg_family_rank(f, g, i) != ranks[i] || !inverse_holds(f, g, i)) s = broken(err, name, g, i);
      if (!s && seen[ranks[i]]++ && !f->overlapping)
        s = mg_fail(err, MG_REFUSED, "family '%s': rank %" PRId32 " is in two groups", name, ranks[i]);
      if (seen[ranks[i]] > 100) seen[ranks[i]] = 100;
    }
  }
  for (int64_t r = 0; r < f->world && !s && mg_family_coverage(f) == MG_PARTITION; r++)
    if (!seen[r]) s = mg_fail(err, MG_REFUSED, "family '%s': rank %" PRId64 " is in no group", name, r);
  free(seen);
  free(ranks);
  return s;
}

static mg_status check_sample(const char *name, const mg_family *f, verdict *v, mg_error *err) {
  uint64_t x = 88172645463325252u; /* xorshift: the same sample everywhere */
  for (int i = 0; i < SAMPLES && f->count > 0; i++, v->asked++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    int64_t group = (int64_t)(x % (uint64_t)f->count), size = mg_family_size(f, group);
    int64_t position = (int64_t)((x >> 32) % (uint64_t)size);
    if (!inverse_holds(f, group, position)) return broken(err, name, group, position);
  }
  return MG_OK;
}

static mg_status check_plan(const mg_plan *p, verdict *v, mg_error *err) {
  mg_status s = MG_OK;
  memset(v, 0, sizeof *v);
  v->whole = p->content.world <= WHOLE;
  v->rehearsed = p->content.world <= REHEARSED;
  for (size_t i = 0; i < p->content.nentries && !s; i++) {
    const mg_entry *e = &p->content.entry[i];
    s = v->whole ? check_whole(e->name, e->family, v, err) : check_sample(e->name, e->family, v, err);
  }
  return s || !v->rehearsed ? s : mg_plan_rehearse(p, &v->rehearsal, err);
}

static void print_line(int64_t world, const mg_plan *p, const verdict *v) {
  char digest[33];
  mg_plan_digest(p, digest);
  printf("%10" PRId64 "  ok       %zu families, %" PRId64 " members %s", world, p->content.nentries, v->asked,
         v->whole ? "checked" : "sampled");
  if (v->rehearsed)
    printf(", %" PRId64 " communicators rehearsed", v->rehearsal.communicators);
  else
    printf(", schedule not rehearsed above %d ranks", REHEARSED);
  printf("  %s\n", digest);
}

static json_t *json_line(int64_t world, const mg_plan *p, const verdict *v, mg_status s, const mg_error *err) {
  char digest[33];
  if (s) return json_pack("{sIsbsiss}", "world", (json_int_t)world, "ok", 0, "status", (int)s, "message", err->message);
  mg_plan_digest(p, digest);
  return json_pack("{sIsbsIsIsbsbsIss}", "world", (json_int_t)world, "ok", 1, "families", (json_int_t)p->content.nentries,
                   "members", (json_int_t)v->asked, "sampled", !v->whole, "rehearsed", v->rehearsed, "communicators",
                   (json_int_t)v->rehearsal.communicators, "digest", digest);
}

int cli_run_check(int argc, char **argv) {
  cli       c;
  mg_error  err = { 0 };
  mg_status worst = cli_parse(&c, argc, argv, "rWj");
  if (worst) return worst;
  if (c.help) return fputs(help, stdout) < 0;
  if (!c.recipe) return cli_usage(&c, "check wants a recipe: a file, or one that 'moongrid recipes' lists");
  if (!c.nworlds) return cli_usage(&c, "check wants --world N[,N...], the numbers of ranks");
  mg_runtime *rt = cli_load(&c, &err);
  if (!rt) return cli_finish(&c, cli_say(&c, &err));
  json_t *lines = json_array();
  for (size_t i = 0; i < c.nworlds; i++) {
    verdict   v;
    mg_plan  *p = cli_plan(&c, rt, c.worlds[i], &err);
    mg_status s = p ? check_plan(p, &v, &err) : err.status;
    if (c.json)
      json_array_append_new(lines, json_line(c.worlds[i], p, &v, s, &err));
    else if (!s)
      print_line(c.worlds[i], p, &v);
    else
      printf("%10" PRId64 "  %-8s %s\n", c.worlds[i], p ? "BROKEN" : "refused", err.message);
    if (s && !worst) worst = s;
    mg_plan_free(p);
  }
  if (c.json) {
    json_dumpf(lines, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
    printf("\n");
  }
  json_decref(lines);
  mg_runtime_free(rt);
  return cli_finish(&c, worst);
}
