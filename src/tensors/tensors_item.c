/* SPDX-License-Identifier: MIT
**
** tensors_item.c - tensors as items of topologies and plans: notes about empty parts, JSON, and the
** rules in a saved plan. The Makefile finds mgrid_item_reader_tensors by the name of this file.
*/
#include "plan/json.h"
#include "tensors/of_plan.h"
#include "tensors/tensor.h"

#include <inttypes.h>
#include <stdlib.h>

/* =============================================================== empty parts */

/* Cuts that leave ranks without any element of a tensor, as with 4 heads over 8 ranks. Empty pieces
** are counted by division, for any world. Ranks are checked one by one only to name the first ranks
** that have an empty piece. */

/* most ranks or pieces that are checked one by one; most ranges of ranks that are named */
enum { LOOKED_AT = 1 << 16, RANGES = 4 };

/* Cut n units by k dims, each of which rounds up. Return how many pieces get a unit. */
static int64_t filled_up(const int64_t *size, size_t k, int64_t n) {
  while (k && *size == 1) size++, k--;
  if (k == 0 || n == 0) return n > 0;
  int64_t each = n / *size + (n % *size > 0), full = n / each;
  return full * filled_up(size + 1, k - 1, each)
         + (n % each ? filled_up(size + 1, k - 1, n % each) : 0);
}

/* Return how many pieces have elements of this part of the axis. */
static int64_t filled(const mgrid_slicing *s, size_t part) {
  int64_t n = 0;
  if (s->pieces == 1) return 1;
  if (s->cutting == MGRID_CUT_CEIL)
    return filled_up(s->size, s->ndims, mgrid_slicing_units(s, part));
  if (!mgrid_slicing_listed(s)) return mgrid_min(mgrid_slicing_units(s, part), s->pieces);
  for (int64_t i = 0; i < s->pieces; i++) n += mgrid_piece_size(s, i) > 0;
  return n;
}

/* Return how many pieces have elements of any part of the axis. The part whose elements are in the
** most pieces decides, because these contain the pieces of the other parts. This does not hold if
** several dims round up: then count the pieces, if they are not too many. */
static int64_t filled_any(const mgrid_slicing *s) {
  int64_t n = 0;
  if (s->cutting == MGRID_CUT_CEIL && s->ndims > 1 && s->nparts > 1 && s->pieces <= LOOKED_AT) {
    for (int64_t i = 0; i < s->pieces; i++) n += mgrid_piece_size(s, i) > 0;
    return n;
  }
  for (size_t k = 0; k < s->nparts; k++) {
    int64_t some = filled(s, k);
    if (some > n) n = some;
  }
  return n;
}

int64_t mgrid_tensor_hollow(const mgrid_tensor *t) {
  int64_t with = 1, all = 1;
  for (size_t i = 0; i < t->naxes; i++) {
    with *= filled_any(&t->axis[i]);
    all *= t->axis[i].pieces;
  }
  return mgrid_tensor_holders(t) / all * (all - with);
}

/* Return the largest number of pieces up to `now` with which no piece is empty; 0 if this is not
** known. */
static int64_t tensors_item_nearest(const mgrid_slicing *s, int64_t now) {
  if (s->cutting != MGRID_CUT_CEIL) return now;
  if (s->ndims > 1) return 0;
  for (bool less = true; less;) { /* another part may have fewer units */
    less = false;
    for (size_t i = 0; i < s->nparts; i++) {
      int64_t n = filled_up(&now, 1, mgrid_slicing_units(s, i));
      less |= n < now;
      now = n;
    }
  }
  return now;
}

/* Append "ranks 4..7, 12..15": the n ranks whose piece has no element of the part, or if there are
** many the first ones. */
static void tensors_item_add_ranks(const mgrid_tensor *t, size_t axis, size_t part, int64_t n,
                                   mgrid_text *out) {
  const mgrid_slicing *s = &t->axis[axis];
  int64_t world = t->grid->window.world, last = mgrid_min(world, LOOKED_AT), begun = -1;
  int ranges = 0;
  mgrid_text_str(out, n == 1 ? "rank" : "ranks");
  for (int64_t rank = 0; rank <= last && ranges <= RANGES; rank++) {
    mgrid_coords at;
    bool empty = rank < last && mgrid_tensor_coords(t, rank, &at)
                 && mgrid_piece_in_part(s, part, at.piece[axis]) == 0;
    if (empty && begun < 0) begun = rank;
    if (empty || begun < 0) continue;
    if (ranges++ < RANGES) mgrid_text_add(out, "%s%" PRId64, ranges > 1 ? ", " : " ", begun);
    if (ranges <= RANGES && rank - begun > 1) mgrid_text_add(out, "..%" PRId64, rank - 1);
    begun = -1;
  }
  if (ranges > RANGES || (ranges && last < world)) mgrid_text_str(out, ", ...");
}

/* Append "axis 'head' has 4 units of 128 for tp 8, so ". */
static void add_cut(const mgrid_tensor *t, const mgrid_slicing *s, size_t part, mgrid_text *out) {
  int64_t n = mgrid_slicing_units(s, part),
          each = s->cutting == MGRID_CUT_CYCLIC ? s->block : s->unit;
  if (s->nparts > 1) mgrid_text_add(out, "part %zu of ", part);
  mgrid_text_add(out, "axis '%s' has ", s->name);
  if (mgrid_slicing_listed(s)) {
    mgrid_text_add(out, "%s that leave pieces of ", s->owners ? "owners" : "bounds");
    mgrid_slicing_dims(s, t->grid, out);
    mgrid_text_str(out, " empty, so ");
    return;
  }
  mgrid_text_add(out, "%" PRId64 " %s%s", n,
                 s->cutting == MGRID_CUT_CYCLIC ? "block"
                 : each > 1                     ? "unit"
                                                : "element",
                 n == 1 ? "" : "s");
  if (each > 1) mgrid_text_add(out, " of %" PRId64, each);
  mgrid_text_str(out, s->cutting == MGRID_CUT_CEIL ? ", rounded up, for " : " for ");
  mgrid_slicing_dims(s, t->grid, out);
  mgrid_text_str(out, ", so ");
}

bool mgrid_axis_hollow(const mgrid_tensor *t, size_t axis, const char *name, mgrid_text *out) {
  const mgrid_slicing *s = &t->axis[axis];
  int64_t fewest = s->pieces;
  size_t part = 0;

  for (size_t i = 0; i < s->nparts; i++) {
    int64_t n = filled(s, i);
    if (n >= fewest) continue;
    fewest = n;
    part = i;
  }
  if (fewest == s->pieces) return false;
  int64_t holders = mgrid_tensor_holders(t), n = holders / s->pieces * (s->pieces - fewest),
          near = tensors_item_nearest(s, fewest);
  if (name) mgrid_text_add(out, "tensor '%s': ", name);
  add_cut(t, s, part, out);
  tensors_item_add_ranks(t, axis, part, n, out);
  mgrid_text_add(out, " (%" PRId64 " of %" PRId64 ") %s nothing of it", n, holders,
                 n == 1 ? "has" : "have");
  if (mgrid_slicing_listed(s) || !near) return true;
  mgrid_text_str(out, "; nearest: ");
  if (s->ndims == 1)
    mgrid_text_add(out, "%s %" PRId64, t->grid->axis[s->dim[0]].name, near);
  else
    mgrid_text_add(out, "%" PRId64 " piece%s", near, near == 1 ? "" : "s");
  if (s->cutting < MGRID_CUT_CYCLIC && s->nparts == 1 && s->ndims == 1
      && s->pieces % mgrid_slicing_units(s, 0) == 0)
    mgrid_text_str(out, ", or copies = true");
  return true;
}

/* ====================================================================== JSON */

/* Write the runs of a rank's part on each axis: [[start, length], ...]. */
static void put_runs(mgrid_json *w, const mgrid_tensor *t, int64_t rank) {
  mgrid_coords at;
  if (!mgrid_tensor_coords(t, rank, &at)) return;
  mgrid_json_in(w, " ", "runs", "[");
  for (size_t i = 0; i < t->naxes; i++) {
    mgrid_run run;
    mgrid_json_in(w, "", NULL, "[");
    for (mgrid_walk walk = mgrid_walk_begin(&t->axis[i], at.piece[i]);
         mgrid_walk_next(&walk, &run) && !w->failed;) {
      mgrid_json_item(w, "");
      mgrid_json_put(w, "[");
      mgrid_text_int(&w->text, run.start);
      mgrid_json_put(w, ",");
      mgrid_text_int(&w->text, run.length);
      mgrid_json_put(w, "]");
    }
    mgrid_json_close(w, "]");
  }
  mgrid_json_close(w, "]");
}

/* If ranks have an empty part, write how many ranks, and a note for each axis with empty pieces. */
static void put_hollow(mgrid_json *w, const mgrid_tensor *t) {
  mgrid_text note = { 0 };
  size_t n = 0;
  for (size_t i = 0; i < t->naxes; i++) {
    note.len = 0;
    if (!mgrid_axis_hollow(t, i, NULL, &note)) continue;
    if (n++ == 0) {
      mgrid_json_integer(w, "empty", mgrid_tensor_hollow(t));
      mgrid_json_in(w, " ", "notes", "[");
    }
    mgrid_json_item(w, "");
    w->text.failed |= note.failed;
    mgrid_json_value(w, note.failed ? NULL : json_string(note.data));
  }
  if (n) mgrid_json_close(w, "]");
  mgrid_text_free(&note);
}

static void put_part(mgrid_json *w, const mgrid_tensor *t, int64_t rank) {
  mgrid_tensor_part part;
  mgrid_tensor_part_of(t, rank, &part);
  if (!part.held) {
    mgrid_json_put(w, "null");
    return;
  }
  mgrid_json_open(w, "{");
  mgrid_json_integers(w, "shape", part.naxes, part.shape);
  mgrid_json_integer(w, "bytes", part.bytes);
  mgrid_json_integer(w, "copy", part.copy);
  if (t->flat)
    mgrid_json_field(w, "flat",
                     mgrid_json_pack("{sI sI sI sI}", "first", (json_int_t)part.first, "elements",
                                     (json_int_t)part.elements, "offset", (json_int_t)part.offset,
                                     "slice", (json_int_t)part.slice));
  put_runs(w, t, rank);
  mgrid_json_close(w, "}");
}

static void put_whole(mgrid_json *w, const mgrid_tensor *t) {
  mgrid_text rule = { 0 };
  mgrid_json_open(w, "{");
  mgrid_json_field(w, "type", json_string(t->type));
  mgrid_json_in(w, " ", "axes", "[");
  for (size_t i = 0; i < t->naxes; i++)
    mgrid_json_element(w, w->first ? "" : " ",
                       mgrid_json_pack("[sI]", t->axis[i].name, (json_int_t)t->axis[i].length));
  mgrid_json_close(w, "]");
  mgrid_tensor_text(t, &rule);
  w->text.failed |= rule.failed;
  mgrid_json_field(w, "rule", rule.failed ? NULL : json_string(rule.data));
  mgrid_text_free(&rule);
  mgrid_json_integer(w, "bytes", t->bytes);
  mgrid_json_integer(w, "largest", mgrid_tensor_largest(t));
  mgrid_json_integer(w, "copies", t->copies);
  mgrid_json_integer(w, "holders", mgrid_tensor_holders(t));
  put_hollow(w, t);
  mgrid_json_close(w, "}");
}

static void tensors_item_json(const void *x, int64_t rank, mgrid_json *w) {
  if (rank < 0)
    put_whole(w, x);
  else
    put_part(w, x, rank);
}

/* ===================================================== rules of a saved plan */

/* The rule of a flat's first tensor has all members of the flat. The rule of each other tensor of
** the flat names the tensor before it. */

/* ---------------------------------------------------------------------- write */

static void tensors_item_rule(const mgrid_content *c, size_t i, mgrid_text *t) {
  const mgrid_tensor *x = c->item[i].x;
  mgrid_text_str(t, ",");
  if (!x->flat) {
    mgrid_tensor_put(x, t);
    return;
  }
  const char *before = NULL;
  for (size_t k = i; k-- > 0 && !before;) {
    const mgrid_tensor *y = c->item[k].kind == &mgrid_tensor_kind ? c->item[k].x : NULL;
    if (y && y->flat && y->flat->rule == x->flat->rule) before = c->item[k].name;
  }
  mgrid_text_str(t, "\"flat\":");
  if (before)
    mgrid_text_quoted(t, before);
  else
    mgrid_flat_json(x->flat, t);
  mgrid_text_str(t, ",\"member\":");
  mgrid_text_int(t, (int64_t)x->at);
}

/* ----------------------------------------------------------------------- read */

typedef struct reading {
  size_t naxes, ndims; /* ndims: of all axes together */
  mgrid_tensor_axis axis[MGRID_AXES_MAX];
  int64_t *list[MGRID_AXES_MAX][3]; /* parts, bounds, owners */
  const char *dims[MGRID_DIMS_MAX];
  mgrid_some some[MGRID_DIMS_MAX];
} reading;

/* Append the dims of a list to *n dims. Return the address of the first dim that was appended. */
static const char *const *tensors_item_read_dims(const mgrid_field *s, const char **dims,
                                                 size_t *n) {
  const mgrid_field by = mgrid_field_of(s, "by");
  const size_t from = *n, more = mgrid_field_list(&by, 1, MGRID_DIMS_MAX - from);
  for (size_t i = 0; i < more; i++) {
    const mgrid_field dim = mgrid_field_at(&by, i);
    dims[(*n)++] = mgrid_field_text(&dim);
  }
  return &dims[from];
}

static const int64_t *tensors_item_read_list(const mgrid_field *s, const char *name, int64_t **list,
                                             size_t *n) {
  const mgrid_field f = mgrid_field_of(s, name);
  if (f.v) *list = mgrid_field_numbers(&f, 0, INT64_MAX, n);
  return *list;
}

static int64_t tensors_item_read_number(const mgrid_field *s, const char *name, int64_t least,
                                        int64_t absent) {
  const mgrid_field f = mgrid_field_of(s, name);
  return f.v ? mgrid_field_number(&f, least, INT64_MAX) : absent;
}

static bool read_flag(const mgrid_field *s, const char *name) {
  const mgrid_field f = mgrid_field_of(s, name);
  return mgrid_field_flag(&f);
}

static void tensors_item_read_axis(const mgrid_field *s, reading *r, size_t i) {
  mgrid_tensor_axis *a = &r->axis[i];
  const mgrid_field name = mgrid_field_of(s, "name"), by = mgrid_field_of(s, "by");
  *a = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
  mgrid_field_only(s, "name length by ceil cyclic unit parts copies bounds owners");
  a->name = mgrid_field_text(&name);
  a->length = tensors_item_read_number(s, "length", 1, 0);
  if (!by.v) return;
  const size_t from = r->ndims;
  a->dims = tensors_item_read_dims(s, r->dims, &r->ndims);
  a->ndims = r->ndims - from;
  a->unit = tensors_item_read_number(s, "unit", 1, a->unit);
  a->copies = read_flag(s, "copies");
  if (read_flag(s, "ceil")) a->cutting = MGRID_CUT_CEIL;
  if ((a->block = tensors_item_read_number(s, "cyclic", 1, 0))) a->cutting = MGRID_CUT_CYCLIC;
  a->parts = tensors_item_read_list(s, "parts", &r->list[i][0], &a->nparts);
  if ((a->bounds = tensors_item_read_list(s, "bounds", &r->list[i][1], &a->nbounds)))
    a->cutting = MGRID_CUT_BOUNDS;
  if ((a->owners = tensors_item_read_list(s, "owners", &r->list[i][2], &a->nowners)))
    a->cutting = MGRID_CUT_OWNERS;
}

/* Read the coordinates that hold parts, by dim. */
static void read_some(const mgrid_field *s, reading *r, const mgrid_grid *g) {
  mgrid_text names = { 0 };
  if (!s->v) return;
  for (size_t d = 0; d < g->n; d++) {
    const mgrid_field f = mgrid_field_of(s, g->axis[d].name);
    if (f.v) r->some[d].at = mgrid_field_numbers(&f, 0, g->axis[d].size - 1, &r->some[d].n);
    if (f.v && r->some[d].n == 0) mgrid_field_fault(&f, "coordinates");
    mgrid_text_add(&names, "%s ", g->axis[d].name);
  }
  mgrid_field_only(s, mgrid_text_chars(&names));
  if (names.failed) mgrid_oom(s->all->err), mgrid_field_fail(s);
  mgrid_text_free(&names);
}

#define PLAIN_FIELDS "type axes over on"

static mgrid_tensor *read_plain(const mgrid_field *s, int64_t world) {
  const mgrid_field type = mgrid_field_of(s, "type"), axes = mgrid_field_of(s, "axes");
  const mgrid_field over = mgrid_field_of(s, "over"), on = mgrid_field_of(s, "on");
  mgrid_tensor *t = NULL;
  reading *r = mgrid_field_spend(s, (int64_t)MGRID_AXES_MAX * MGRID_DIMS_MAX) ? calloc(1, sizeof *r)
                                                                              : NULL;

  if (!r) {
    if (!s->all->failed) mgrid_oom(s->all->err), mgrid_field_fail(s);
    return NULL;
  }
  const char *word = mgrid_field_text(&type);
  r->naxes = mgrid_field_list(&axes, 1, MGRID_AXES_MAX);
  for (size_t i = 0; i < r->naxes; i++) {
    const mgrid_field axis = mgrid_field_at(&axes, i);
    tensors_item_read_axis(&axis, r, i);
  }
  mgrid_field_only(&over, MGRID_GRID_FIELDS);
  mgrid_grid *g = s->all->failed ? NULL : mgrid_grid_read(&over, world);
  if (g) read_some(&on, r, g);
  if (!s->all->failed) t = mgrid_tensor_at_some(g, word, r->naxes, r->axis, r->some, s->all->err);
  for (size_t i = 0; i < MGRID_AXES_MAX; i++)
    for (size_t k = 0; k < 3; k++) free(r->list[i][k]);
  for (size_t d = 0; d < MGRID_DIMS_MAX; d++) free(r->some[d].at);
  free(r);
  mgrid_grid_free(g);
  if (!t) mgrid_field_fail(s);
  return t;
}

/* Read a flat, and return the tensor with the index in `member`. */
static mgrid_tensor *read_members(const mgrid_field *s, const mgrid_field *member, int64_t world) {
  const char *dims[MGRID_DIMS_MAX];
  size_t ndims = 0;
  const mgrid_field list = mgrid_field_of(s, "members");

  mgrid_field_only(s, "by pad members");
  tensors_item_read_dims(s, dims, &ndims);
  const int64_t pad = tensors_item_read_number(s, "pad", 1, 0);
  const size_t n = mgrid_field_list(&list, 1, SIZE_MAX);
  const int64_t at = mgrid_field_number(member, 0, (int64_t)n - 1);
  mgrid_tensor **one = calloc(2 * n + 1, sizeof *one), **made = one + n, *t = NULL;
  if (!one) mgrid_oom(s->all->err), mgrid_field_fail(s);
  for (size_t i = 0; i < n && !s->all->failed; i++) {
    const mgrid_field f = mgrid_field_at(&list, i);
    mgrid_field_only(&f, PLAIN_FIELDS);
    one[i] = read_plain(&f, world);
  }
  if (!s->all->failed
      && !mgrid_tensor_flatten(n, (const mgrid_tensor *const *)one, ndims, dims, pad, made,
                               s->all->err))
    t = mgrid_tensor_ref(made[at]);
  for (size_t i = 0; i < 2 * n && one; i++) mgrid_tensor_free(one[i]);
  free(one);
  return t;
}

/* Return a member of a flat. `s` names an earlier tensor of the topology that is of this flat. */
static mgrid_tensor *next_member(const mgrid_field *s, const mgrid_field *member,
                                 const mgrid_topology *t) {
  const char *name = mgrid_field_text(s);
  const mgrid_item *item = mgrid_content_item(&t->content, &mgrid_tensor_kind, name);
  const mgrid_tensor *x = item ? item->x : NULL;
  if (!x || !x->flat) {
    mgrid_field_fault(s, "a flat, or the name of an earlier tensor that has it");
    return NULL;
  }
  const int64_t at = mgrid_field_number(member, 0, (int64_t)x->flat->n - 1);
  return s->all->failed ? NULL : mgrid_flat_member(x->flat, (size_t)at, s->all->err);
}

static void tensors_item_read_tensor(const mgrid_field *s, const char *name, mgrid_topology *t) {
  const mgrid_field flat = mgrid_field_of(s, "flat"), member = mgrid_field_of(s, "member");
  mgrid_tensor *x = NULL;
  if (!flat.v) {
    mgrid_field_only(s, "tensor " PLAIN_FIELDS);
    x = read_plain(s, t->content.world);
  } else {
    mgrid_field_only(s, "tensor flat member");
    x = json_is_object(flat.v) ? read_members(&flat, &member, t->content.world)
                               : next_member(&flat, &member, t);
  }
  if (!x || mgrid_topology_put_item(t, name, &mgrid_tensor_kind, x, s->all->err))
    mgrid_field_fail(s);
  mgrid_tensor_free(x);
}

extern const mgrid_item_reader mgrid_item_reader_tensors;
const mgrid_item_reader mgrid_item_reader_tensors = { "tensor", "tensor flat member " PLAIN_FIELDS,
                                                      tensors_item_read_tensor };

/* ========================================================= tensors of a plan */

/* ---------------------------------------------- the kind, for topology and plan */

static int64_t tensors_item_world_of(const void *x) {
  return ((const mgrid_tensor *)x)->grid->window.world;
}
static void *tensors_item_ref(const void *x) { return mgrid_tensor_ref(x); }
static void free_tensor(void *x) { mgrid_tensor_free(x); }
static size_t tensors_item_held(const void *x) { return mgrid_tensor_held(x); }
static void tensors_item_text(const void *x, mgrid_text *t) { mgrid_tensor_text(x, t); }

/* Append a line for each axis with empty pieces. */
static void tensors_item_notes(const void *x, const char *name, bool listed, mgrid_text *t) {
  const mgrid_tensor *tensor = x;
  for (size_t i = 0; i < tensor->naxes; i++) {
    if (!listed && mgrid_slicing_listed(&tensor->axis[i])) continue;
    if (mgrid_axis_hollow(tensor, i, name, t)) mgrid_text_str(t, "\n");
  }
}

const mgrid_item_kind mgrid_tensor_kind = {
  .name = "tensor",
  .names = "tensors",
  .world = tensors_item_world_of,
  .ref = tensors_item_ref,
  .free = free_tensor,
  .held = tensors_item_held,
  .text = tensors_item_text,
  .rule = tensors_item_rule,
  .json = tensors_item_json,
  .notes = tensors_item_notes,
};

mgrid_status mgrid_topology_add_tensor(mgrid_topology *t, const char *name, const mgrid_tensor *x,
                                       mgrid_error *err) {
  return mgrid_topology_add_item(t, name, &mgrid_tensor_kind, x, err);
}

/* ----------------------------------------------------------------- questions */

size_t mgrid_plan_ntensors(const mgrid_plan *p) {
  return p ? mgrid_content_items(&p->content, &mgrid_tensor_kind) : 0;
}

const char *mgrid_plan_tensor_name(const mgrid_plan *p, size_t i) {
  const mgrid_item *item = p ? mgrid_content_nth(&p->content, &mgrid_tensor_kind, i) : NULL;
  return item ? item->name : NULL;
}

const mgrid_tensor *mgrid_plan_tensor(const mgrid_plan *p, const char *name) {
  const mgrid_item *item = p && name ? mgrid_content_item(&p->content, &mgrid_tensor_kind, name)
                                     : NULL;
  return item ? item->x : NULL;
}

const mgrid_tensor *mgrid_plan_require_tensor(const mgrid_plan *p, const char *name,
                                              mgrid_error *err) {
  const mgrid_tensor *t = mgrid_plan_tensor(p, name);
  const char *known[256] = { NULL };
  char tail[512];
  size_t n = 0;
  if (t || mgrid_lacks(name, "the name of the tensor", err)) return t;
  while (n < 256 && (known[n] = mgrid_plan_tensor_name(p, n))) n++;
  mgrid_suggest(tail, sizeof tail, name, known, n);
  mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown tensor '%s'%s", name,
             n ? tail : "; the plan has none");
  return NULL;
}

mgrid_status mgrid_tensor_local(const mgrid_plan *p, const char *name, int64_t rank,
                                mgrid_tensor_part *out, mgrid_error *err) {
  mgrid_tensor_part part;
  if (!p) return MGRID_USAGE;
  mgrid_status s = mgrid_struct_check(out, sizeof part, "mgrid_tensor_part", err);
  const mgrid_tensor *t = s ? NULL : mgrid_plan_require_tensor(p, name, err);
  if (!s && !t) s = name ? MGRID_UNKNOWN_NAME : MGRID_USAGE;
  if (!s) s = mgrid_check_rank(rank, p->content.world, err);
  if (s) return s;
  mgrid_tensor_part_of(t, rank, &part);
  mgrid_struct_write(out, &part, sizeof part);
  return MGRID_OK;
}

int64_t mgrid_tensor_runs(const mgrid_plan *p, const char *name, int64_t rank, size_t axis,
                          size_t cap, mgrid_run *runs, mgrid_error *err) {
  const mgrid_tensor *t = p ? mgrid_plan_require_tensor(p, name, err) : NULL;
  mgrid_coords at;
  mgrid_run run;
  int64_t n = 0;
  if (!t || mgrid_check_rank(rank, p->content.world, err)
      || mgrid_lacks_list(cap, runs, "runs", err))
    return -1;
  if (axis >= t->naxes) {
    mgrid_fail(err, MGRID_OUT_OF_RANGE, "tensor '%s' has %zu axes, no axis %zu", name, t->naxes,
               axis);
    return -1;
  }
  if (!mgrid_tensor_coords(t, rank, &at)) return 0;
  for (mgrid_walk w = mgrid_walk_begin(&t->axis[axis], at.piece[axis]); mgrid_walk_next(&w, &run);
       n++)
    if ((size_t)n < cap) runs[n] = run;
  return n;
}
