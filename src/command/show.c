/* SPDX-License-Identifier: MIT
**
** show.c - an overview of a plan.
*/
#include "command/cli.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { EXAMPLE_RANKS = 8, EXAMPLE_WIDTH = 32, LINE_WIDTH = 96, VALUE_WIDTH = 60, EXACT_WORLD = 4096 };

/* The first ranks of the first group, as many as fit: "0 2 4 6", "0 8 16 ... 1016". */
static void example(const mgrid_family *f, char *buf, size_t len) {
  int64_t n = mgrid_family_size(f, 0);
  for (int64_t shown = n <= EXAMPLE_RANKS ? n : EXAMPLE_RANKS - 1; shown > 0; shown--) {
    if (shown == n - 1) continue; /* "..." for a single rank would save nothing */
    mgrid_text t = { 0 };
    for (int64_t i = 0; i < shown; i++) mgrid_text_add(&t, "%s%" PRId64, i ? " " : "", mgrid_family_rank(f, 0, i));
    if (shown < n) mgrid_text_add(&t, " ... %" PRId64, mgrid_family_rank(f, 0, n - 1));
    if (mgrid_text_finish(&t, buf, len) <= EXAMPLE_WIDTH) return;
  }
  snprintf(buf, len, "%s", n > 0 ? "..." : "-");
}

static void show_families(const mgrid_plan *p, const char *on, const char *off) {
  int width = 16; /* of the column of names */
  for (size_t i = 0; i < p->content.nentries; i++)
    if ((int)strlen(p->content.entry[i].name) > width) width = (int)strlen(p->content.entry[i].name);
  printf("\n%s%-*s %9s %9s  %-32s %s%s\n", on, width, "family", "groups", "size", "first group", "communicator", off);
  if (p->content.nentries == 0) printf("none: the recipe makes no groups with these parameters\n");
  for (size_t i = 0; i < p->content.nentries; i++) {
    const mgrid_entry  *e = &p->content.entry[i];
    const mgrid_family *f = e->family;
    char                ranks[128], size[32];
    int64_t             led;
    example(f, ranks, sizeof ranks);
    if (f->size >= 0)
      snprintf(size, sizeof size, "%" PRId64, f->size);
    else
      snprintf(size, sizeof size, "<=%" PRId64, f->max_size);
    printf("%-*s %9" PRId64 " %9s  %-32s ", width, e->name, f->count, size, ranks);
    if (f->max_size < 2)
      printf("none needed");
    else if (e->choice->none)
      printf("none made");
    else if (p->shares[i] >= 0)
      printf("shared with %s", p->content.entry[p->shares[i]].name);
    else if ((led = mgrid_plan_led(p, (int)i, -1)) < f->count && f->size > 1)
      printf("%" PRId64 " own, %" PRId64 " shared", led, f->count - led);
    else
      printf("own");
    printf("%s%s\n", *e->choice->text ? "," : "", e->choice->text);
  }
}

/* A line for each tensor: bytes of a rank that has the largest part, and of the whole; how often each part is there;
** ranks that hold none. */
static void show_tensors(const mgrid_plan *p, const char *on, const char *off) {
  char text[1024];
  if (p->content.ntensors == 0) return;
  printf("\n%s%-16s %14s %14s %9s %9s  %s%s\n", on, "tensor", "bytes", "of a rank", "copies", "without", "rule", off);
  for (size_t i = 0; i < p->content.ntensors; i++) {
    const mgrid_tensor *t = p->content.tensor[i].tensor;
    mgrid_text_ellipsis(text, sizeof text, mgrid_tensor_describe(t, text, sizeof text));
    printf("%-16s %14" PRId64 " %14" PRId64 " %9" PRId64 " %9" PRId64 "  %s\n", p->content.tensor[i].name, t->bytes,
           mgrid_tensor_largest(t), t->copies, p->content.world - mgrid_tensor_holders(t), text);
  }
}

/* Print how many communicators a rank holds: least and most of all ranks, or in a large world those of rank 0. */
static mgrid_status show_counts(const mgrid_plan *p, mgrid_error *err) {
  mgrid_plan_counts all = MGRID_PLAN_COUNTS_INIT, n = MGRID_PLAN_COUNTS_INIT;
  int64_t           world = p->content.world, shown = world <= EXACT_WORLD ? world : 1;
  int64_t           least = INT64_MAX, most = 0, least_groups = INT64_MAX, most_groups = 0;
  mgrid_status      s = mgrid_plan_count(p, &all, err);
  for (int64_t r = 0; r < shown && !s; r++) {
    if ((s = mgrid_plan_count_rank(p, r, &n, err))) break;
    int64_t groups = n.groups + n.singles;
    if (n.communicators < least) least = n.communicators;
    if (n.communicators > most) most = n.communicators;
    if (groups < least_groups) least_groups = groups;
    if (groups > most_groups) most_groups = groups;
  }
  if (s) return s;
  printf("\n%-14s %" PRId64 " communicators for %" PRId64 " groups; %" PRId64 " groups of one rank need none\n",
         "in all", all.communicators, all.groups, all.singles);
  printf("%-14s ", shown == world ? "each rank" : "rank 0");
  printf(least == most ? "%" PRId64 : "%" PRId64 " to %" PRId64, least, most);
  printf(" communicators for ");
  printf(least_groups == most_groups ? "%" PRId64 : "%" PRId64 " to %" PRId64, least_groups, most_groups);
  printf(" groups\n");
  return MGRID_OK;
}

void cli_note_unheeded(const cli *c, const mgrid_plan *p, const char *backend) {
  mgrid_text t = { 0 };
  mgrid_plan_unheeded(p, mgrid_backend_named(backend), &t);
  if (t.len && !t.failed && c->me == 0) fprintf(stderr, "moongrid: note: without effect on %s: %s\n", backend, t.data);
  mgrid_text_free(&t);
}

/* Say which families share and what that costs, and which are used at the same time. */
static mgrid_status show_sharing(const mgrid_plan *p, const mgrid_site *site, mgrid_error *err) {
  const mgrid_content *c = &p->content;
  mgrid_text           t = { 0 };
  for (size_t i = 0; i < c->nentries; i++) {
    mgrid_demand more;
    mgrid_entry_demand(&c->entry[i], c->entry[i].family->max_size, 1, site, &more);
    if (more.created == 0 || !mgrid_plan_sharers(p, (int)i, " ", &t)) continue; /* MPI's calls wait for none */
    mgrid_text_add(&t, ": %.0f MiB\n%-14s ", (double)more.created / (1 << 20), "");
  }
  if (t.len && !t.failed)
    printf("\n%-14s %swith NCCL, calls on families of one line wait for each other; apart, each takes so many MiB\n"
           "%-14s more: concurrent = { ... } in a recipe keeps those apart that are used at the same time\n",
           "sharing", t.data, "");
  for (size_t i = 0; i < c->nconcurrent && !t.failed; i++) {
    t.len = 0;
    mgrid_concurrent_text(&c->concurrent[i], ", ", &t);
    if (!t.failed) printf("%s%-14s %s, launched in this order\n", i ? "" : "\n", i ? "" : "concurrent", t.data);
  }
  bool failed = t.failed;
  mgrid_text_free(&t);
  return failed ? mgrid_oom(err) : MGRID_OK;
}

mgrid_status cli_show_plan(const cli *c, const cli_budgets *b, const mgrid_plan *p, const mgrid_site *site,
                           mgrid_error *err) {
  const char *on = c->bold ? "\033[1m" : "", *off = c->bold ? "\033[0m" : "";
  char        text[2048];
  char        recipe[4096];
  mgrid_shown(recipe, sizeof recipe, p->content.recipe, strlen(p->content.recipe));
  printf("%s%s%s over %" PRId64 " ranks", on, *recipe ? recipe : "plan", off, p->content.world);
  int column = printf("%s", p->content.nparams ? ":" : "");
  for (size_t i = 0; i < p->content.nparams; i++) {
    const mgrid_param *a = &p->content.param[i];
    bool               whole = strlen(a->value) <= VALUE_WIDTH; /* a table may be long; --text has all of it */
    int                shown = whole ? VALUE_WIDTH : VALUE_WIDTH - 3;
    int                length = (int)(strlen(a->name) + strnlen(a->value, VALUE_WIDTH)) + 2;
    if (column + length > LINE_WIDTH) column = printf("\n              ") - 1;
    column += printf(" %s=%.*s%s", a->name, shown, a->value, whole ? "" : "...");
  }
  printf("\n");
  for (size_t i = 0; i < p->content.ngrids; i++) {
    mgrid_text_ellipsis(text, sizeof text, mgrid_grid_describe(p->content.grid[i].grid, text, sizeof text));
    printf("%s%-14s %s\n", i ? "" : "\n", p->content.grid[i].name, text);
  }
  if (p->content.ngrids) printf("%-14s dims are listed fastest-varying first\n", "");
  show_families(p, on, off);
  show_tensors(p, on, off);
  mgrid_status s = show_sharing(p, site, err);
  if (!s) s = show_counts(p, err);
  if (!s) s = cli_show_resources(b, p, site, err);
  if (s) return s;
  mgrid_plan_digest(p, text);
  printf("%-14s %s\n", "digest", text);
  return MGRID_OK;
}
