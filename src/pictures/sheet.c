/* SPDX-License-Identifier: MIT
**
** sheet.c - choose the grids that a family is drawn on, and which of their ranks are drawn.
*/
#include "pictures/draw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK = 64 }; /* groups, and members of each, to check when choosing a grid */

/* -------------------------------------------------------------------- cells */

/* Is the kept coordinate drawn out of turn, as the last but one? */
static bool keeps(const mgrid_tier *l) { return l->kept > l->shown - 2 && l->kept < l->size - (l->shown > 1); }

int64_t mgrid_tier_coord(const mgrid_tier *l, int64_t i) {
  if (i + 1 == l->shown && l->shown > 1) return l->size - 1;
  return keeps(l) && i == (l->shown > 1 ? l->shown - 2 : 0) ? l->kept : i;
}

int64_t mgrid_part_rank(const mgrid_part *p, int64_t cell) {
  int64_t position = 0;
  for (int k = 0; k < p->n; k++) {
    position += mgrid_tier_coord(&p->level[k], cell % p->level[k].shown) * p->level[k].stride;
    cell /= p->level[k].shown;
  }
  if (p->rank_at) return p->rank_at[position];
  return p->grid->order ? mgrid_family_rank(p->grid->order, 0, position) : p->grid->window.offset + position;
}

static void add_part(mgrid_sheet *s, const char *name, const mgrid_grid *g) {
  mgrid_part *p = &s->part[s->nparts++];
  *p = (mgrid_part){ .name = name, .grid = mgrid_grid_ref(g), .cells = g->size };
  for (size_t d = 0; d < g->n; d++)
    if (g->axis[d].size > 1)
      p->level[p->n++] = (mgrid_tier){ g->axis[d].name, g->axis[d].size, g->axis[d].stride, g->axis[d].size, 0 };
  if (p->n == 0) p->level[p->n++] = (mgrid_tier){ g->n ? g->axis[0].name : "rank", 1, 1, 1, 0 };
  s->cells += g->size;
}

/* Draw fewer coordinates of the level with the most; if none has more than three, of the slowest one. */
static void show_less(mgrid_sheet *s) {
  mgrid_part *at = NULL;
  mgrid_tier *most = NULL;
  for (int i = 0; i < s->nparts; i++)
    for (int k = 0; k < s->part[i].n; k++) {
      mgrid_tier *l = &s->part[i].level[k];
      bool        more = !most || l->shown > most->shown || (l->shown == most->shown && most->shown <= 3);
      if (l->shown > 1 && more) at = &s->part[i], most = l;
    }
  if (!most) return;
  int64_t shown = most->shown > 3 ? (most->shown + 1) / 2 : 1;
  s->cells -= at->cells;
  at->cells = at->cells / most->shown * shown;
  s->cells += at->cells;
  most->shown = shown;
}

static void sample(mgrid_sheet *s, int64_t rank, int64_t most) {
  if (s->cells <= (most ? most : MGRID_DRAW_WHOLE)) return;
  s->sampled = true;
  while (s->cells > (most ? most : MGRID_DRAW_SAMPLE)) show_less(s);
  for (int i = 0; i < s->nparts; i++) {
    int64_t position = rank < 0 ? -1 : mgrid_grid_position(s->part[i].grid, rank);
    if (s->part[i].rank_at && rank >= 0) /* where it runs */
      for (position = 0; s->part[i].rank_at[position] != rank;) position++;
    for (int k = 0; k < s->part[i].n && position >= 0; k++) {
      mgrid_tier *l = &s->part[i].level[k];
      l->kept = position / l->stride % l->size;
    }
  }
}

void mgrid_sheet_sampled_text(const mgrid_sheet *s, mgrid_text *t) {
  const char *before = "";
  for (int i = 0; i < s->nparts; i++)
    for (int k = 0; k < s->part[i].n; k++) {
      const mgrid_tier *l = &s->part[i].level[k];
      if (l->shown == l->size) continue;
      int64_t first = l->shown - (l->shown > 1) - keeps(l); /* coordinates drawn from 0 on */
      mgrid_text_add(t, "%s%s", before, l->name);
      if (first > 0) mgrid_text_str(t, " 0");
      if (first == 2) mgrid_text_str(t, ", 1");
      if (first > 2) mgrid_text_add(t, " to %" PRId64, first - 1);
      if (keeps(l)) mgrid_text_add(t, "%s %" PRId64, first > 0 ? "," : "", l->kept);
      if (l->shown > 1) mgrid_text_add(t, " and %" PRId64, l->size - 1);
      mgrid_text_add(t, " of %" PRId64, l->size);
      before = ", ";
    }
}

/* ------------------------------------------------------- a grid from strides */

/* Insert the edges of a mode (its stride, and stride times size) into an ascending list in which each divides the next.
** Returns false if they do not fit. */
static bool add_edge(int64_t *edge, int *n, int64_t at) {
  int i = 0;
  while (i < *n && edge[i] < at) i++;
  if (i == *n || *n > MGRID_TIERS_MAX) return false; /* beyond the world */
  if (edge[i] == at) return true;
  if (at % edge[i - 1] != 0 || edge[i] % at != 0) return false;
  memmove(edge + i + 1, edge + i, (size_t)(*n - i) * sizeof *edge);
  edge[i] = at;
  ++*n;
  return true;
}

/* Return the name of the family whose groups run along that dim only. */
static const char *name_of(const mgrid_plan *p, int64_t size, int64_t stride) {
  for (size_t i = 0; i < p->content.nentries; i++) {
    const mgrid_family *f = p->content.entry[i].family;
    if (!f->rule || f->rule->inside.n != 1) continue;
    if (f->rule->inside.at[0].size == size && f->rule->inside.at[0].stride == stride) return p->content.entry[i].name;
  }
  return NULL;
}

/* Make the grid that the strides of the families have in common, else one dim of all ranks. */
static mgrid_grid *common_grid(const mgrid_plan *p, mgrid_error *err) {
  int64_t edge[MGRID_TIERS_MAX + 2] = { 1, p->content.world };
  int     n = p->content.world > 1 ? 2 : 1;
  for (size_t i = 0; i < p->content.nentries; i++) {
    const mgrid_family *f = p->content.entry[i].family;
    if (!f->rule || f->total != f->world) continue;
    int64_t before[MGRID_TIERS_MAX + 2];
    int     was = n;
    bool    fits = true;
    memcpy(before, edge, sizeof edge);
    for (int k = 0; k < f->rule->ndigits && fits; k++) {
      const mgrid_digit *d = &f->rule->digits[k];
      fits = add_edge(edge, &n, d->stride) && add_edge(edge, &n, d->stride * d->size);
    }
    if (fits) continue;
    memcpy(edge, before, sizeof edge);
    n = was;
  }
  mgrid_dim dims[MGRID_TIERS_MAX + 1];
  char      made[MGRID_TIERS_MAX + 1][MGRID_NAME_MAX + 1];
  int       ndims = n - 1;
  for (int k = 0; k < ndims; k++) {
    const char *name = name_of(p, edge[k + 1] / edge[k], edge[k]);
    size_t      used = (size_t)snprintf(made[k], sizeof made[k], ndims == 1 ? "rank" : "dim%d", k);
    while (mgrid_content_find(&p->content, made[k]) >= 0 && used + 1 < sizeof made[k]) /* a family has that name */
      made[k][used++] = '_', made[k][used] = '\0';
    dims[k] = (mgrid_dim){ name ? name : made[k], edge[k + 1] / edge[k] };
  }
  return mgrid_grid_new(mgrid_world(p->content.world), (size_t)ndims, dims, err);
}

/* ----------------------------------------------------------- choosing grids */

/* Return whether the grid has the family's ranks, of those checked. */
static bool holds(const mgrid_grid *g, const mgrid_family *f) {
  if (f->low > f->high) return true;
  if (mgrid_grid_position(g, f->low) < 0 || mgrid_grid_position(g, f->high) < 0) return false;
  if (!g->order) return true;
  for (int64_t i = 0; i < f->count && i < LOOK; i++)
    for (int64_t k = 0, n = mgrid_family_size(f, i); k < n && k < LOOK; k++)
      if (mgrid_grid_position(g, mgrid_family_rank(f, i, k)) < 0) return false;
  return true;
}

/* Return whether the groups run along whole dims of the grid: the dims that differ between a group's first and last member
** multiply to its size. */
static bool aligned(const mgrid_grid *g, const mgrid_family *f) {
  int64_t made = 1, size = f->count ? mgrid_family_size(f, 0) : 1;
  int64_t first = mgrid_family_rank(f, 0, 0), last = mgrid_family_rank(f, 0, size - 1);
  for (size_t d = 0; d < g->n; d++)
    if (mgrid_grid_coord(g, first, d) != mgrid_grid_coord(g, last, d)) made *= g->axis[d].size;
  return made == size;
}

/* Return whether two grids may share ranks. Of grids in another order only the windows are compared. */
static bool apart(const mgrid_grid *a, const mgrid_grid *b) {
  return a->window.offset + a->window.size <= b->window.offset || b->window.offset + b->window.size <= a->window.offset;
}

/* Choose several grids without common ranks that hold all ranks of the family. */
static bool choose_several(mgrid_sheet *s, const mgrid_content *c, const mgrid_family *f) {
  int64_t here = 0;
  for (size_t i = 0; i < c->ngrids && s->nparts < MGRID_SHEET_PARTS_MAX; i++) {
    bool fits = true;
    for (int k = 0; k < s->nparts; k++) fits = fits && apart(s->part[k].grid, c->grid[i].grid);
    if (!fits) continue;
    add_part(s, c->grid[i].name, c->grid[i].grid);
    here += c->grid[i].grid->size;
  }
  if (here == c->world) return true;
  for (int64_t i = 0; i < f->count && i < LOOK; i++) /* ranks outside may be idle */
    for (int64_t k = 0, n = mgrid_family_size(f, i); k < n && k < LOOK; k++) {
      bool found = false;
      for (int q = 0; q < s->nparts && !found; q++)
        found = mgrid_grid_position(s->part[q].grid, mgrid_family_rank(f, i, k)) >= 0;
      if (!found) return false;
    }
  return s->nparts > 0;
}

/* Return how well a grid suits a family: 0 not at all, 1 it has the ranks, 2 groups run along its dims, 3 along the dim of
** the family's name. */
static int suits(const mgrid_grid *g, const mgrid_entry *e) {
  if (!holds(g, e->family)) return 0;
  if (!aligned(g, e->family)) return 1;
  int64_t d = mgrid_grid_find(g, e->name);
  return d >= 0 && g->axis[d].size == e->family->size ? 3 : 2;
}

static void choose(mgrid_sheet *s, const mgrid_plan *p, const mgrid_entry *e, const mgrid_grid *common) {
  const mgrid_content    *c = &p->content;
  const mgrid_named_grid *best = NULL;
  int                     most = 0;
  memset(s, 0, sizeof *s);
  for (size_t i = 0; i < c->ngrids; i++) {
    int is = suits(c->grid[i].grid, e);
    if (is > most) best = &c->grid[i], most = is;
  }
  if (best && best->grid->size == c->world) {
    add_part(s, best->name, best->grid);
  } else if (!choose_several(s, c, e->family)) { /* a family of one window is drawn with the others */
    for (int i = 0; i < s->nparts; i++) mgrid_grid_free(s->part[i].grid);
    memset(s, 0, sizeof *s);
    add_part(s, best ? best->name : "", best ? best->grid : common);
  }
}

static bool equal(const mgrid_sheet *a, const mgrid_sheet *b) {
  bool same = a->nparts == b->nparts;
  for (int i = 0; i < a->nparts && same; i++) same = mgrid_grid_equal(a->part[i].grid, b->part[i].grid);
  return same;
}

/* One sheet for all families: the machine. */
static mgrid_status make_places(mgrid_sheets *s, const mgrid_plan *p, const mgrid_machine_model *m, int64_t rank,
                                int64_t most, mgrid_error *err) {
  size_t n = p->content.nentries;
  *s = (mgrid_sheets){ 1, calloc(1, sizeof *s->sheet), calloc(n + 1, sizeof *s->of) };
  mgrid_status status = s->sheet && s->of ? mgrid_sheet_of_machine(s->sheet, m, p->content.world, err) : mgrid_oom(err);
  if (!s->sheet) s->n = 0;
  if (status)
    mgrid_sheets_free(s);
  else
    sample(s->sheet, rank, most);
  return status;
}

mgrid_status mgrid_sheets_make(mgrid_sheets *s, const mgrid_plan *p, const mgrid_machine_model *m, int64_t rank,
                               int64_t most, mgrid_error *err) {
  if (m) return make_places(s, p, m, rank, most, err);
  size_t      n = p->content.nentries;
  mgrid_grid *common = common_grid(p, err);
  *s = (mgrid_sheets){ 0, malloc((n + 1) * sizeof *s->sheet), malloc((n + 1) * sizeof *s->of) };
  if (!common || !s->sheet || !s->of) {
    mgrid_grid_free(common);
    mgrid_sheets_free(s);
    return mgrid_oom(err);
  }
  for (size_t i = 0; i < n; i++) {
    mgrid_sheet *next = &s->sheet[s->n];
    choose(next, p, &p->content.entry[i], common);
    s->of[i] = 0;
    while (!equal(next, &s->sheet[s->of[i]])) s->of[i]++;
    if ((size_t)s->of[i] == s->n)
      s->n++;
    else
      for (int k = 0; k < next->nparts; k++) mgrid_grid_free(next->part[k].grid);
  }
  if (n == 0) { /* only the ranks */
    memset(s->sheet, 0, sizeof *s->sheet);
    add_part(s->sheet, "", common);
    s->n = 1;
  }
  for (size_t i = 0; i < s->n; i++) sample(&s->sheet[i], rank, most);
  mgrid_grid_free(common);
  return MGRID_OK;
}

void mgrid_sheets_free(mgrid_sheets *s) {
  for (size_t i = 0; i < s->n; i++)
    for (int k = 0; k < s->sheet[i].nparts; k++) {
      mgrid_grid_free(s->sheet[i].part[k].grid);
      free(s->sheet[i].part[k].rank_at);
    }
  free(s->sheet);
  free(s->of);
  memset(s, 0, sizeof *s);
}
