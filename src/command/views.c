/* SPDX-License-Identifier: MIT
**
** views.c - one rank of a plan, and the groups of its families.
*/
#include "command/cli.h"
#include "command/group_lines.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- a rank */

/* Print "dp 0, pp 1", or - outside the grid. */
static void show_coordinates(const cli *c, const mgrid_plan *p, int64_t rank) {
  int width = 6;
  for (size_t i = 0; i < p->content.ngrids; i++)
    if ((int)strlen(p->content.grid[i].name) > width) width = (int)strlen(p->content.grid[i].name);
  for (size_t i = 0; i < p->content.ngrids; i++) {
    const mgrid_grid *g = p->content.grid[i].grid;
    int               column = printf("%s%-*s", i ? "" : "\n", width, p->content.grid[i].name);
    if (mgrid_grid_position(g, rank) < 0) printf("  -");
    for (size_t d = 0; d < g->n && mgrid_grid_position(g, rank) >= 0; d++) {
      char text[MGRID_NAME_MAX + 32];
      int  n = snprintf(text, sizeof text, "%s %" PRId64 "%s", g->axis[d].name, mgrid_grid_coord(g, rank, d),
                       d + 1 < g->n ? "," : "");
      if (column + n + 2 > c->fold) column = printf("\n%*s", width, "") - 1;
      column += printf("%s%s", d ? " " : "  ", text);
    }
    printf("\n");
  }
}

/* Return the rank at a position of the group, or - past its ends. */
static const char *neighbour(const mgrid_plan *p, const mgrid_member *m, int64_t position, char *buf, size_t len) {
  int64_t rank = mgrid_family_rank(p->content.entry[m->entry].family, m->group, position);
  snprintf(buf, len, rank < 0 ? "-" : "%" PRId64, rank);
  return buf;
}

static void show_members(const cli *c, const mgrid_plan *p, const mgrid_view *v) {
  const char *on = c->bold ? "\033[1m" : "", *off = c->bold ? "\033[0m" : "";
  int         width = 6;
  mgrid_text  t = { 0 };
  for (size_t i = 0; i < p->content.nentries; i++)
    if ((int)strlen(p->content.entry[i].name) > width) width = (int)strlen(p->content.entry[i].name);
  printf("\n%s%-*s  %7s  %8s  %6s  %6s  %s%s\n", on, width, "family", "group", "position", "before", "after", "ranks",
         off);
  size_t at = 0;
  for (size_t i = 0; i < p->content.nentries; i++) {
    if (at == v->nmembers || v->member[at].entry != (int)i) printf("%-*s  %7s\n", width, p->content.entry[i].name, "-");
    for (; at < v->nmembers && v->member[at].entry == (int)i; at++) {
      const mgrid_member *m = &v->member[at];
      char                before[24], after[24], place[48];
      snprintf(place, sizeof place, "%" PRId64 " of %" PRId64, m->position, m->size);
      t.len = 0;
      cli_put_group(&t, p->content.entry[i].family, m->group, c->columns - width - 37);
      printf("%-*s  %7" PRId64 "  %8s  %6s  %6s  %s\n", width, p->content.entry[i].name, m->group, place,
             neighbour(p, m, m->position - 1, before, sizeof before),
             neighbour(p, m, m->position + 1, after, sizeof after), mgrid_text_chars(&t));
    }
  }
  mgrid_text_free(&t);
}

mgrid_status cli_show_rank(const cli *c, const mgrid_plan *p, int64_t rank, bool all, mgrid_error *err) {
  mgrid_view   v;
  mgrid_status s = mgrid_view_init(&v, p, rank, err);
  if (s) return s;
  char before[48];
  snprintf(before, sizeof before, "rank %" PRId64 " of ", rank);
  cli_show_head(c, p, before, all);
  show_coordinates(c, p, rank);
  show_members(c, p, &v);
  printf(v.ncomms ? "\ncreates, in this order\n" : "\ncreates no communicator\n");
  mgrid_view_free(&v);
  return mgrid_plan_print_schedule(p, rank, cli_fold, (void *)(uintptr_t)c, err);
}

/* ------------------------------------------------------------------- groups */

enum { SOME = 8, MOST = 4096 }; /* groups listed before "more", of every family and of one */

static void list_groups(const cli *c, const mgrid_entry *e, int64_t most) {
  const char         *on = c->bold ? "\033[1m" : "", *off = c->bold ? "\033[0m" : "";
  const mgrid_family *f = e->family;
  mgrid_text          t = { 0 };
  int                 wide = snprintf(NULL, 0, "%" PRId64, f->count);
  cli_put_count(&t, f);
  printf("%s%s%s: %s%s\n", on, e->name, off, mgrid_text_chars(&t), f->overlapping ? " that share ranks" : "");
  for (int64_t g = 0; g < f->count; g++) {
    if (g == most && g + 2 < f->count) {
      printf("  %*s  %" PRId64 " more\n", wide, "...", f->count - g - 1);
      g = f->count - 1;
    }
    t.len = 0;
    cli_put_group(&t, f, g, c->columns - wide - 4);
    printf("  %*" PRId64 "  %s\n", wide, g, mgrid_text_chars(&t));
  }
  mgrid_text_free(&t);
}

mgrid_status cli_families(const mgrid_plan *p, const char *list, int *family, size_t *n, mgrid_error *err) {
  char *copy = mgrid_strdup(list), *save = NULL;
  *n = 0;
  if (!copy) return mgrid_oom(err);
  mgrid_status s = MGRID_OK;
  for (char *name = strtok_r(copy, ",", &save); name && !s; name = strtok_r(NULL, ",", &save)) {
    int64_t at = mgrid_content_find(&p->content, name);
    bool    again = false;
    for (size_t i = 0; i < *n; i++) again = again || family[i] == at;
    if (at >= 0 && !again) family[(*n)++] = (int)at;
    if (at < 0) s = cli_unknown_family(p, name, err);
  }
  free(copy);
  if (!s && *n == 0) s = mgrid_fail(err, MGRID_USAGE, "--family is a list of families, F,G; not '%s'", list);
  return s;
}

mgrid_status cli_show_groups(const cli *c, const mgrid_plan *p, const char *list, mgrid_error *err) {
  const size_t all = p->content.nentries;
  int         *family = malloc((all + 1) * sizeof *family);
  size_t       n = 0;
  if (!family) return mgrid_oom(err);
  mgrid_status s = *list ? cli_families(p, list, family, &n, err) : MGRID_OK;
  for (; !*list && n < all; n++) family[n] = (int)n;
  for (size_t i = 0; i < n && !s; i++) {
    if (i > 0) printf("\n");
    list_groups(c, &p->content.entry[family[i]], *list ? MOST : SOME);
  }
  free(family);
  return s;
}
