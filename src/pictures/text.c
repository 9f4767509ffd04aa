/* SPDX-License-Identifier: MIT
**
** text.c - a plan as text: grids as boxes of ranks, groups by the lines between them; covers as lists.
**
**       pp 0               pp 1
**             tp 0 tp 1          tp 0 tp 1
**            ┌─────────┐        ┌─────────┐
**       dp 0 │  0    1 │   dp 0 │  4    5 │
**       dp 1 │  2    3 │   dp 1 │  6    7 │
**            └─────────┘        └─────────┘
**
** With a family, lines separate its groups. If lines cannot show the groups, because a group has ranks in several boxes,
** each rank has its group beside it: "4 g2".
*/
#include "pictures/canvas.h"
#include "pictures/draw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT = 2, GAP = 3, LABEL = 96, OUTSIDE = -2, IDLE = -1, ALONE = -3 };

/* One part of a sheet while it is drawn. */
typedef struct tiles {
  const mgrid_drawing *d;
  const mgrid_part    *part;
  const mgrid_family  *family;      /* NULL: no groups */
  int64_t             *group;       /* [cells], the group of each rank; IDLE: none */
  bool                 numbered;    /* each rank has its group beside it */
  bool                 rows_open;   /* no line between two rows */
  int64_t              per;         /* ranks in a row of a box */
  int64_t              chunks;      /* rows that level 0 takes */
  int64_t              rows;        /* of a box */
  int                  cell, label; /* columns of a rank; of the label before a row */
  int                  digits;      /* of the largest rank */
} tiles;

static int64_t count_of(const mgrid_part *p, int from) {
  int64_t n = 1;
  for (int k = from; k < p->n; k++) n *= p->level[k].shown;
  return n;
}

/* Return the cell in a row and column of a box, or -1. */
static int64_t cell_at(const tiles *t, int64_t box, int64_t row, int64_t column) {
  int64_t n0 = t->part->level[0].shown, n1 = t->part->n > 1 ? t->part->level[1].shown : 1;
  int64_t i0 = row % t->chunks * t->per + column, i1 = row / t->chunks;
  if (row < 0 || column < 0 || column >= t->per || i0 >= n0 || i1 >= n1) return -1;
  return (box * n1 + i1) * n0 + i0;
}

/* Return the group of a cell, or OUTSIDE the box: a line separates different ones. */
static int64_t key(const tiles *t, int64_t box, int64_t row, int64_t column) {
  int64_t cell = cell_at(t, box, row, column);
  if (cell < 0 || (t->part->rank_at && mgrid_part_rank(t->part, cell) < 0)) return OUTSIDE;
  return t->family ? t->group[cell] : ALONE;
}

/* -------------------------------------------------------------- measures */

/* Count the areas into which the boxes of this part cut the groups. It counts corners, so an area that is not a rectangle
** counts more than once. */
static int64_t pieces(const tiles *t) {
  int64_t n = 0, boxes = count_of(t->part, 2);
  for (int64_t b = 0; b < boxes; b++)
    for (int64_t r = 0; r < t->rows; r++)
      for (int64_t c = 0; c < t->per; c++) {
        int64_t is = key(t, b, r, c);
        n += is >= 0 && is != key(t, b, r, c - 1) && is != key(t, b, r - 1, c);
      }
  return n;
}

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t different(int64_t *group, int64_t n) {
  int64_t found = 0;
  qsort(group, (size_t)n, sizeof *group, ascending);
  for (int64_t i = 0; i < n; i++) found += group[i] >= 0 && (i == 0 || group[i] != group[i - 1]);
  return found;
}

static bool rows_are_open(const tiles *t) {
  int64_t boxes = count_of(t->part, 2);
  for (int64_t b = 0; b < boxes; b++)
    for (int64_t r = 1; r < t->rows; r++)
      for (int64_t c = 0; c < t->per; c++)
        if (key(t, b, r, c) != key(t, b, r - 1, c)) return false;
  return true;
}

static int widest(const mgrid_tier *l) { return (int)strlen(l->name) + 1 + snprintf(NULL, 0, "%" PRId64, l->size - 1); }

static int64_t most(const tiles *t) {
  int64_t n = 0;
  for (int64_t c = 0; c < t->part->cells; c++)
    if (mgrid_part_rank(t->part, c) > n) n = mgrid_part_rank(t->part, c);
  return n;
}

/* Set column widths, and how many ranks fit into a row. */
static void measure(tiles *t) {
  const mgrid_part *p = t->part;
  int               head = widest(&p->level[0]);
  int64_t           n0 = p->level[0].shown, room;
  t->digits = snprintf(NULL, 0, "%" PRId64, most(t));
  t->cell = t->digits + 2;
  if (t->numbered) t->cell += 2 + snprintf(NULL, 0, "%" PRId64, t->family->count - 1);
  if (t->d->rank >= 0) t->cell++; /* a mark before a rank */
  t->label = p->n > 1 ? widest(&p->level[1]) + 1 : 0;
  room = t->d->columns - INDENT - t->label - 1;
  if (t->cell < head + 1 && n0 * (head + 2) <= room) t->cell = head + 1;
  t->per = n0;
  if (n0 * (t->cell + 1) > room) { /* cut level 0 into rows, each after its first coordinate */
    t->label += head + 1;
    room = t->d->columns - INDENT - t->label - 1;
    for (t->per = 1; 2 * t->per * (t->cell + 1) <= room;) t->per *= 2;
  }
  t->chunks = (n0 + t->per - 1) / t->per;
  t->rows = t->chunks * (p->n > 1 ? p->level[1].shown : 1);
}

/* ------------------------------------------------------------------- drawing */

/* The colour of a group: its own; on a machine what it crosses, yellow at the last level before the places, red beyond. */
static int colour_of(const tiles *t, int64_t group) {
  if (!t->part->machine) return (int)(1 + group % 6);
  int reach = mgrid_group_reach(t->part->machine, t->family, group);
  return reach == 0 ? MGRID_PLAIN : reach == 1 ? 3 : 1;
}

static void write_rank(const tiles *t, mgrid_canvas *c, int x, int y, int64_t cell, int64_t own) {
  char        text[64];
  int64_t     rank = mgrid_part_rank(t->part, cell), group = t->family ? t->group[cell] : ALONE;
  bool        mine = t->d->rank >= 0 && (rank == t->d->rank || (group >= 0 && group == own));
  const char *mark = t->d->rank < 0 ? "" : rank == t->d->rank ? ">" : mine ? "*" : " ";
  int         style = group >= 0 ? colour_of(t, group) : MGRID_PLAIN;
  if (rank < 0) return;
  if (t->numbered && group >= 0)
    snprintf(text, sizeof text, "%s%" PRId64 " g%" PRId64, mark, rank, group);
  else
    snprintf(text, sizeof text, "%s%*" PRId64 "%s", mark, t->digits, rank, group == IDLE ? " -" : "");
  if (mine) style |= MGRID_BOLD;
  if (group == IDLE || (t->d->rank >= 0 && !mine)) style |= MGRID_FAINT;
  int blank = t->cell - (int)strlen(text);
  mgrid_canvas_put(c, x + (t->numbered || t->d->rank >= 0 ? blank - 1 : (blank + 1) / 2), y, text,
                   (unsigned char)style);
}

/* Draw the lines around and between ranks: wherever the two sides differ. */
static void draw_lines(const tiles *t, mgrid_canvas *c, int x0, int y0, int64_t box) {
  int high = t->rows_open ? 1 : 2;
  for (int64_t r = 0; r <= t->rows; r++)
    for (int64_t k = 0; k <= t->per; k++) {
      int x = x0 + (int)k * (t->cell + 1), y = t->rows_open ? y0 + (r == 0 ? 0 : (int)t->rows + 1) : y0 + (int)r * 2;
      int64_t nw = key(t, box, r - 1, k - 1), ne = key(t, box, r - 1, k), sw = key(t, box, r, k - 1),
              se = key(t, box, r, k);
      bool edge = !t->rows_open || r == 0 || r == t->rows;
      int  arms = (nw != ne ? MGRID_UP : 0) | (sw != se ? MGRID_DOWN : 0) | (nw != sw ? MGRID_LEFT : 0)
                 | (ne != se ? MGRID_RIGHT : 0);
      if (edge) mgrid_canvas_line(c, x, y, arms);
      for (int i = 1; i <= t->cell && edge && ne != se; i++) mgrid_canvas_line(c, x + i, y, MGRID_LEFT | MGRID_RIGHT);
      if (sw != se) mgrid_canvas_line(c, x, y0 + 1 + (int)r * high, MGRID_UP | MGRID_DOWN);
    }
}

static void draw_box(const tiles *t, mgrid_canvas *c, int x0, int y0, int64_t box, int64_t own) {
  const mgrid_part *p = t->part;
  char              text[LABEL * 2];
  int               y = y0, x = x0 + t->label;
  if (p->n > 2) { /* its title: the coordinates of the further dims, slowest last */
    int64_t rest = box;
    int     at = 0;
    for (int k = 2; k < p->n && at < LABEL; k++) {
      at += snprintf(text + at, sizeof text - (size_t)at, "%s%s %" PRId64, k > 2 ? ", " : "", p->level[k].name,
                     mgrid_tier_coord(&p->level[k], rest % p->level[k].shown));
      rest /= p->level[k].shown;
    }
    mgrid_canvas_put(c, x0, y++, text, MGRID_BOLD);
  }
  if (t->chunks == 1) { /* names of the columns, or their numbers if names do not fit */
    bool named = widest(&p->level[0]) <= t->cell;
    for (int64_t k = 0; k < t->per; k++) {
      if (named)
        snprintf(text, sizeof text, "%s %" PRId64, p->level[0].name, mgrid_tier_coord(&p->level[0], k));
      else
        snprintf(text, sizeof text, "%" PRId64, mgrid_tier_coord(&p->level[0], k));
      int blank = t->cell - (int)strlen(text);
      mgrid_canvas_put(c, x + 1 + (int)k * (t->cell + 1) + (blank > 0 ? (blank + 1) / 2 : 0), y, text, MGRID_FAINT);
    }
    y++;
  }
  draw_lines(t, c, x, y, box);
  for (int64_t r = 0; r < t->rows; r++) {
    int  line = y + 1 + (int)r * (t->rows_open ? 1 : 2), at = 0;
    bool begins = r % t->chunks == 0;
    text[0] = '\0';
    if (p->n > 1 && begins)
      at = snprintf(text, LABEL, "%s %" PRId64 "%s", p->level[1].name, mgrid_tier_coord(&p->level[1], r / t->chunks),
                    t->chunks > 1 ? "," : "");
    if (t->chunks > 1)
      snprintf(text + at, LABEL, "%s%s %" PRId64, at ? " " : "", p->level[0].name,
               mgrid_tier_coord(&p->level[0], r % t->chunks * t->per));
    mgrid_canvas_put(c, x - 1 - (int)strlen(text), line, text, MGRID_FAINT);
    for (int64_t k = 0; k < t->per; k++)
      if (cell_at(t, box, r, k) >= 0)
        write_rank(t, c, x + 1 + (int)k * (t->cell + 1), line, cell_at(t, box, r, k), own);
  }
}

/* Return how many boxes fit beside each other: a whole row of the next level, if possible. */
static int64_t abreast(const tiles *t, int width) {
  int64_t fit = (t->d->columns - INDENT + GAP) / (width + GAP), n2 = t->part->n > 2 ? t->part->level[2].shown : 1;
  if (fit < 1) fit = 1;
  if (fit >= n2) return fit / n2 * n2;
  while (n2 % fit != 0) fit--;
  return fit;
}

static mgrid_status draw_part(const tiles *t, mgrid_text *out, mgrid_error *err) {
  const mgrid_part *p = t->part;
  int64_t           boxes = count_of(p, 2), own = IDLE, position;
  if (t->family && t->d->rank >= 0 && !mgrid_family_locate(t->family, t->d->rank, 0, &own, &position)) own = IDLE;
  int     width = t->label + 1 + (int)t->per * (t->cell + 1);
  int     height = (p->n > 2) + (t->chunks == 1) + (t->rows_open ? (int)t->rows + 2 : 2 * (int)t->rows + 1);
  int64_t side = abreast(t, width);
  if (side > boxes) side = boxes;
  for (int64_t b = 0; b < boxes; b += side) {
    mgrid_canvas c;
    if (!mgrid_canvas_make(&c, INDENT + (int)side * (width + GAP), height)) return mgrid_oom(err);
    for (int64_t i = 0; i < side && b + i < boxes; i++) draw_box(t, &c, INDENT + (int)i * (width + GAP), 0, b + i, own);
    mgrid_canvas_text(&c, t->d->unicode, t->d->colour, out);
    mgrid_canvas_free(&c);
  }
  return MGRID_OK;
}

/* Find the groups of the cells of all parts, and whether lines can show them. `group` has memory for twice the cells. */
static void prepare(tiles *t, const mgrid_sheet *sheet, int64_t *group) {
  int64_t found = 0, at = 0, position;
  for (int i = 0; i < sheet->nparts; i++) {
    t[i].part = &sheet->part[i], t[i].group = group + at;
    for (int64_t k = 0; k < t[i].part->cells && t->family; k++, at++) {
      int64_t rank = mgrid_part_rank(t[i].part, k);
      if (rank < 0 || !mgrid_family_locate(t->family, rank, 0, &group[at], &position)) group[at] = IDLE;
    }
    measure(&t[i]);
    found += t->family ? pieces(&t[i]) : 0;
  }
  memcpy(group + at, group, (size_t)at * sizeof *group);
  bool numbered = found != different(group + at, at);
  for (int i = 0; i < sheet->nparts; i++) {
    t[i].numbered = numbered;
    measure(&t[i]);
    t[i].rows_open = rows_are_open(&t[i]);
  }
}

/* Append which ranks a sampled sheet has, in lines of words. */
static void say_sampled(const mgrid_drawing *d, const mgrid_sheet *sheet, mgrid_text *out) {
  mgrid_text t = { 0 };
  size_t     line = out->len;
  mgrid_text_add(&t, "%" PRId64 " of %" PRId64 " ranks are drawn: ", sheet->cells, d->plan->content.world);
  mgrid_sheet_sampled_text(sheet, &t);
  mgrid_text_add(out, "%*s", INDENT - 1, "");
  char *save = NULL;
  for (char *word = t.failed ? NULL : strtok_r(t.data, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
    if (out->len - line + 1 + strlen(word) > (size_t)d->columns) {
      mgrid_text_str(out, "\n");
      line = out->len;
      mgrid_text_add(out, "%*s", 2 * INDENT - 1, "");
    }
    mgrid_text_add(out, " %s", word);
  }
  mgrid_text_str(out, "\n");
  out->failed |= t.failed;
  mgrid_text_free(&t);
}

static mgrid_status draw_sheet(const mgrid_drawing *d, const mgrid_sheet *sheet, const mgrid_family *f, mgrid_text *out,
                               mgrid_error *err) {
  tiles        t[MGRID_SHEET_PARTS_MAX];
  int64_t     *group = calloc((size_t)sheet->cells * 2, sizeof *group); /* of the cells; then sorted */
  mgrid_status s = group ? MGRID_OK : mgrid_oom(err);
  for (int i = 0; i < sheet->nparts; i++) t[i] = (tiles){ .d = d, .family = f };
  if (!s) prepare(t, sheet, group);
  for (int i = 0; i < sheet->nparts && !s; i++) {
    if (sheet->nparts > 1) mgrid_text_add(out, "%*s%s\n", INDENT, "", sheet->part[i].name);
    s = draw_part(&t[i], out, err);
  }
  free(group);
  if (!s && sheet->sampled) say_sampled(d, sheet, out);
  return s;
}

/* A rank in so many columns, and each of its groups on a line:
**  12 ──┬── 0 {0,12}
**       └── 3 {12,15} */
static void list_groups(const mgrid_drawing *d, const mgrid_family *f, int64_t rank, int columns, int left,
                        mgrid_text *out) {
  const char *dash = d->unicode ? "─" : "-", *fork = d->unicode ? "┬" : "+";
  const char *tee = d->unicode ? "├" : "+", *end = d->unicode ? "└" : "+";
  int64_t     group, position, nth = 0;
  bool        more = mgrid_family_locate(f, rank, 0, &group, &position);
  if (!more) mgrid_text_add(out, "%*s%*" PRId64 "       -\n", INDENT, "", columns, rank);
  while (more) {
    int64_t this = group;
    more = mgrid_family_locate(f, rank, nth + 1, &group, &position);
    if (nth++ == 0)
      mgrid_text_add(out, "%*s%*" PRId64 " %s%s%s", INDENT, "", columns, rank, dash, dash, more ? fork : dash);
    else
      mgrid_text_add(out, "%*s%*s   %s", INDENT, "", columns, "", more ? tee : end);
    mgrid_text_add(out, "%s%s %" PRId64 " ", dash, dash, this);
    cli_put_group(out, f, this, left);
    mgrid_text_str(out, "\n");
  }
}

/* In a cover a rank is in several groups, which lines cannot show: write each rank with its groups. */
static void list_cover(const mgrid_drawing *d, const mgrid_sheet *sheet, const mgrid_family *f, mgrid_text *out) {
  int digits = snprintf(NULL, 0, "%" PRId64, d->plan->content.world - 1), columns = digits > 4 ? digits : 4;
  mgrid_text_add(out, "%*s%*s       groups\n", INDENT, "", columns, "rank");
  for (int i = 0; i < sheet->nparts; i++)
    for (int64_t k = 0; k < sheet->part[i].cells; k++) {
      int64_t rank = mgrid_part_rank(&sheet->part[i], k);
      if (rank >= 0 && (d->rank < 0 || rank == d->rank))
        list_groups(d, f, rank, columns, d->columns - digits - 20, out);
    }
}

/* ----------------------------------------------------------------------- all */

static mgrid_status draw_family(const mgrid_drawing *d, const mgrid_sheets *sheets, int i, mgrid_text *out,
                                mgrid_error *err) {
  const mgrid_entry *e = &d->plan->content.entry[i];
  const char        *on = d->colour ? "\033[1m" : "", *off = d->colour ? "\033[0m" : "";
  int64_t            group, position;
  mgrid_text_add(out, "%s%s%s: ", on, e->name, off);
  cli_put_count(out, e->family);
  if (d->machine) mgrid_reach_text(d->machine, e->family, out);
  if (d->rank >= 0 && !mgrid_family_locate(e->family, d->rank, 0, &group, &position))
    mgrid_text_add(out, "; rank %" PRId64 " is in none", d->rank);
  mgrid_text_str(out, "\n");
  if (!e->family->overlapping) return draw_sheet(d, &sheets->sheet[sheets->of[i]], e->family, out, err);
  list_cover(d, &sheets->sheet[sheets->of[i]], e->family, out);
  return MGRID_OK;
}

/* Return the family before i with the same groups, or -1. */
static int twin_of(const mgrid_plan *p, int i) {
  for (int k = 0; k < i; k++)
    if (mgrid_family_equal(p->content.entry[i].family, p->content.entry[k].family)) return k;
  return -1;
}

static void list_families(const mgrid_drawing *d, mgrid_text *out) {
  const mgrid_content *c = &d->plan->content;
  int                  width = 0;
  for (size_t i = 0; i < c->nentries; i++)
    if ((int)strlen(c->entry[i].name) > width) width = (int)strlen(c->entry[i].name);
  for (size_t i = 0; i < c->nentries; i++) {
    int same = twin_of(d->plan, (int)i);
    mgrid_text_add(out, "%*s%-*s  ", INDENT, "", width, c->entry[i].name);
    if (same >= 0)
      mgrid_text_add(out, "the same groups as %s", c->entry[same].name);
    else
      cli_put_groups(out, c->entry[i].family, d->columns - INDENT - width - 2);
    mgrid_text_str(out, "\n");
  }
}

mgrid_status mgrid_draw_text(const mgrid_drawing *d, mgrid_text *out, mgrid_error *err) {
  mgrid_sheets sheets;
  mgrid_status s = mgrid_sheets_make(&sheets, d->plan, d->machine, d->rank, d->most, err);
  if (s) return s;
  for (size_t i = 0; i < d->n && !s; i++) {
    if (i > 0) mgrid_text_str(out, "\n");
    s = draw_family(d, &sheets, d->family[i], out, err);
  }
  for (size_t i = 0; i < sheets.n && d->n == 0 && !s; i++) {
    const mgrid_sheet *sheet = &sheets.sheet[i];
    if (sheets.n > 1 && sheet->nparts == 1)
      mgrid_text_add(out, "%*s%s\n", INDENT, "", *sheet->part[0].name ? sheet->part[0].name : "ranks");
    s = draw_sheet(d, sheet, NULL, out, err);
    if (!s) mgrid_text_str(out, "\n");
  }
  if (d->n == 0 && !s) list_families(d, out);
  mgrid_sheets_free(&sheets);
  return s ? s : out->failed ? mgrid_oom(err) : MGRID_OK;
}
