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

static const char help[] = "usage: moongrid check RECIPE --world N[,N...] [NAME=VALUE ...] [--json]\n"
                           "\n"
                           "Check a recipe at several world sizes: every family asked by rank gives the groups that\n"
                           "it lists, partitions hold each rank once, and the creation schedule lets every rank\n"
                           "through. Worlds above 1048576 ranks are sampled, and said to be.\n"
                           "\n"
                           "  --world N,... worlds to check\n"
                           "  --params FILE parameters, JSON or Lua that returns a table; NAME=VALUE overrides them\n"
                           "  --json        an array with one object per world\n"
                           "  --color WHEN  accepted by every command; this one has none\n";

enum { WHOLE = 1 << 20, SAMPLES = 4096, PIECE = 1024 };

typedef struct verdict {
  bool            whole;
  int64_t         asked; /* members checked */
  mgrid_rehearsal schedule;
} verdict;

static mgrid_status broken(mgrid_error *err, const char *family, int64_t group, int64_t position) {
  return mgrid_fail(err, MGRID_REFUSED,
                    "family '%s': member %" PRId64 " of group %" PRId64 " is not found again by its rank", family,
                    position, group);
}

/* (group, position) -> rank -> (group, position) for one member. */
static bool inverse_holds(const mgrid_family *f, int64_t group, int64_t position) {
  int64_t g, p, rank = mgrid_family_rank(f, group, position);
  for (int64_t nth = 0; rank >= 0 && mgrid_family_locate(f, rank, nth, &g, &p); nth++)
    if (g == group && p == position) return true;
  return false;
}

/* Every member of every group, in pieces. A rank in two groups would be found again in one of
** them only, so no two members are one rank; a partition is then as many members as ranks. */
static mgrid_status check_whole(const char *name, const mgrid_family *f, verdict *v, mgrid_error *err) {
  int32_t ranks[PIECE];
  int64_t members = 0;
  for (int64_t g = 0; g < f->count; g++) {
    int64_t size = mgrid_family_size(f, g);
    for (int64_t at = 0; at < size; at += PIECE) {
      int64_t n = size - at < PIECE ? size - at : PIECE;
      mgrid_family_slice(f, g, at, n, ranks);
      for (int64_t i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= f->world || mgrid_family_rank(f, g, at + i) != ranks[i]
            || !inverse_holds(f, g, at + i))
          return broken(err, name, g, at + i);
      }
    }
    members += size;
  }
  v->asked += members;
  if (members == f->total && (mgrid_family_coverage(f) != MGRID_PARTITION || members == f->world)) return MGRID_OK;
  return mgrid_fail(err, MGRID_REFUSED, "family '%s' has %" PRId64 " members in %" PRId64 " ranks, and says %" PRId64,
                    name, members, f->world, f->total);
}

static mgrid_status check_sample(const char *name, const mgrid_family *f, verdict *v, mgrid_error *err) {
  uint64_t x = 88172645463325252u; /* xorshift: the same sample everywhere */
  for (int i = 0; i < SAMPLES && f->count > 0; i++, v->asked++) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    int64_t group = (int64_t)(x % (uint64_t)f->count), size = mgrid_family_size(f, group);
    int64_t position = (int64_t)((x >> 32) % (uint64_t)size);
    if (!inverse_holds(f, group, position)) return broken(err, name, group, position);
  }
  return MGRID_OK;
}

static mgrid_status check_plan(const mgrid_plan *p, verdict *v, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  memset(v, 0, sizeof *v);
  v->whole = p->content.world <= WHOLE;
  for (size_t i = 0; i < p->content.nentries && !s; i++) {
    const mgrid_entry *e = &p->content.entry[i];
    s = v->whole ? check_whole(e->name, e->family, v, err) : check_sample(e->name, e->family, v, err);
  }
  return s ? s : mgrid_plan_verify(p, v->whole ? 0 : SAMPLES, &v->schedule, err);
}

static void print_line(int64_t world, const mgrid_plan *p, const verdict *v) {
  char digest[33];
  mgrid_plan_digest(p, digest);
  printf("%10" PRId64 "  ok       %zu families, %" PRId64 " members %s, ", world, p->content.nentries, v->asked,
         v->whole ? "checked" : "sampled");
  if (v->whole)
    printf("%" PRId64 " communicators in order", v->schedule.communicators);
  else
    printf("schedule sampled");
  printf("  %s\n", digest);
}

static json_t *json_line(int64_t world, const mgrid_plan *p, const verdict *v, mgrid_status s, const mgrid_error *err) {
  char digest[33];
  if (s) return json_pack("{sIsbsiss}", "world", (json_int_t)world, "ok", 0, "status", (int)s, "message", err->message);
  mgrid_plan_digest(p, digest);
  return json_pack("{sIsbsIsIsbsoss}", "world", (json_int_t)world, "ok", 1, "families", (json_int_t)p->content.nentries,
                   "members", (json_int_t)v->asked, "sampled", !v->whole, "communicators",
                   v->whole ? json_integer(v->schedule.communicators) : json_null(), "digest", digest);
}

int cli_run_check(int argc, char **argv) {
  cli          c;
  mgrid_error  err = { 0 };
  mgrid_status worst = cli_parse(&c, argc, argv, "rWj");
  if (worst) return worst;
  if (c.help) return fputs(help, stdout) < 0;
  if (!c.recipe) return cli_usage(&c, "check wants a recipe: a file, or one that 'moongrid recipes' lists");
  if (!c.nworlds) return cli_usage(&c, "check wants --world N[,N...], the numbers of ranks");
  mgrid_runtime *rt = cli_load(&c, &err);
  if (!rt) return cli_finish(&c, cli_say(&c, &err));
  json_t *lines = json_array();
  for (size_t i = 0; i < c.nworlds; i++) {
    verdict      v;
    mgrid_plan  *p = cli_plan(&c, rt, c.worlds[i], &err);
    mgrid_status s = p ? check_plan(p, &v, &err) : err.status;
    if (c.json)
      json_array_append_new(lines, json_line(c.worlds[i], p, &v, s, &err));
    else if (!s)
      print_line(c.worlds[i], p, &v);
    else
      printf("%10" PRId64 "  %-8s %s\n", c.worlds[i], p ? "BROKEN" : "refused", err.message);
    if (s && !worst) worst = s;
    mgrid_plan_free(p);
  }
  if (c.json) {
    json_dumpf(lines, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
    printf("\n");
  }
  json_decref(lines);
  mgrid_runtime_free(rt);
  return cli_finish(&c, worst);
}
