/* SPDX-License-Identifier: MIT
**
** topology.c - the builder: families and grids by name, in the order of the calls.
*/
#include "plan/topology.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ----------------------------------------------------------------- content */

void mg_content_free(mg_content *c) {
  for (size_t i = 0; i < c->nentries; i++) {
    mg_family_free(c->entry[i].family);
    mg_choice_free(&c->entry[i].choice);
  }
  for (size_t i = 0; i < c->ngrids; i++) mg_grid_free(c->grid[i].grid);
  for (size_t i = 0; i < c->nparams; i++) {
    free(c->param[i].name);
    free(c->param[i].value);
  }
  free(c->entry);
  free(c->grid);
  free(c->param);
  free(c->names.slot);
  free(c->recipe);
  memset(c, 0, sizeof *c);
}

/* Room for one more of n elements; the arrays double at powers of two. */
static void *grow(void *array, size_t n, size_t each) {
  if (n != 0 && (n & (n - 1)) != 0) return array;
  return realloc(array, (n ? 2 * n : 1) * each);
}

/* Names of families and grids are one name space: what has the name, as mg_index.slot has it. */
static int32_t look_up(const mg_content *c, const char *name) {
  if (c->names.room == 0) return 0;
  uint32_t at = (uint32_t)XXH3_64bits(name, strlen(name));
  for (;; at++) {
    int32_t is = c->names.slot[at & (c->names.room - 1)];
    if (is == 0 || strcmp(name, is > 0 ? c->entry[is - 1].name : c->grid[-is - 1].name) == 0) return is;
  }
}

static void put_name(mg_index *x, const char *name, int32_t is) {
  uint32_t at = (uint32_t)XXH3_64bits(name, strlen(name));
  while (x->slot[at & (x->room - 1)]) at++;
  x->slot[at & (x->room - 1)] = is;
}

/* Room for one name more. */
static mg_status make_room(mg_content *c, mg_error *err) {
  size_t used = c->nentries + c->ngrids + 1;
  if (2 * used <= c->names.room) return MG_OK;
  mg_index more = { c->names.room ? 2 * c->names.room : 32, NULL };
  more.slot = calloc(more.room, sizeof *more.slot);
  if (!more.slot) return mg_oom(err);
  for (size_t i = 0; i < c->nentries; i++) put_name(&more, c->entry[i].name, (int32_t)i + 1);
  for (size_t i = 0; i < c->ngrids; i++) put_name(&more, c->grid[i].name, -(int32_t)i - 1);
  free(c->names.slot);
  c->names = more;
  return MG_OK;
}

int mg_content_find(const mg_content *c, const char *family) {
  int32_t is = look_up(c, family);
  return is > 0 ? is - 1 : -1;
}

int mg_content_grid(const mg_content *c, const char *grid) {
  int32_t is = look_up(c, grid);
  return is < 0 ? -is - 1 : -1;
}

static mg_status add_entry(mg_content *c, const char *name, const mg_family *f,
                           const mg_choice *choice, mg_error *err) {
  if (make_room(c, err)) return MG_LIMIT;
  mg_entry *entry = grow(c->entry, c->nentries, sizeof *entry);
  if (!entry) return mg_oom(err);
  c->entry = entry;
  mg_entry *e = &entry[c->nentries];
  memset(e, 0, sizeof *e);
  memcpy(e->name, name, strlen(name));
  mg_status s = mg_choice_copy(&e->choice, choice, err);
  if (s) return s;
  e->choice.unique |= f->twin;
  e->family = mg_family_ref(f);
  put_name(&c->names, e->name, (int32_t)++c->nentries);
  return MG_OK;
}

static mg_status add_grid(mg_content *c, const char *name, const mg_grid *g, mg_error *err) {
  if (make_room(c, err)) return MG_LIMIT;
  mg_named_grid *grid = grow(c->grid, c->ngrids, sizeof *grid);
  if (!grid) return mg_oom(err);
  c->grid = grid;
  memset(&grid[c->ngrids], 0, sizeof *grid);
  memcpy(grid[c->ngrids].name, name, strlen(name));
  grid[c->ngrids].grid = mg_grid_ref(g);
  put_name(&c->names, name, -(int32_t)++c->ngrids);
  return MG_OK;
}

static mg_status add_param(mg_content *c, const char *name, const char *value, mg_error *err) {
  mg_param *param = grow(c->param, c->nparams, sizeof *param);
  if (!param) return mg_oom(err);
  c->param = param;
  mg_param p = { mg_strdup(name), mg_strdup(value) };
  if (!p.name || !p.value) {
    free(p.name);
    free(p.value);
    return mg_oom(err);
  }
  param[c->nparams++] = p;
  return MG_OK;
}

mg_status mg_content_copy(mg_content *to, const mg_content *from, mg_error *err) {
  memset(to, 0, sizeof *to);
  to->world = from->world;
  to->recipe = mg_strdup(from->recipe);
  to->policies = from->policies;
  mg_status s = to->recipe ? MG_OK : mg_oom(err);
  for (size_t i = 0; i < from->nentries && !s; i++)
    s = add_entry(to, from->entry[i].name, from->entry[i].family, &from->entry[i].choice, err);
  for (size_t i = 0; i < from->ngrids && !s; i++) s = add_grid(to, from->grid[i].name, from->grid[i].grid, err);
  for (size_t i = 0; i < from->nparams && !s; i++)
    s = add_param(to, from->param[i].name, from->param[i].value, err);
  if (s) mg_content_free(to);
  return s;
}

/* ---------------------------------------------------------------- topology */

mg_topology *mg_topology_new(int64_t world, mg_error *err) {
  if (world < 1 || world > MG_WORLD_MAX)
    return mg_null(err, MG_REFUSED, "a world has 1 to %" PRId64 " ranks, not %" PRId64, MG_WORLD_MAX, world);
  mg_topology *t = calloc(1, sizeof *t);
  if (!t) return mg_null_oom(err);
  t->content.world = world;
  t->content.recipe = mg_strdup("");
  if (!t->content.recipe) {
    free(t);
    return mg_null_oom(err);
  }
  return t;
}

void mg_topology_free(mg_topology *t) {
  if (!t) return;
  mg_content_free(&t->content);
  free(t);
}

static mg_status check_new_name(const mg_content *c, const char *what, const char *name, int64_t world,
                                mg_error *err) {
  if (!mg_is_name(name))
    return mg_fail(err, MG_REFUSED, "'%s' is no name of a %s (a letter or _, then letters, digits or _; at most %d)",
                   name ? name : "", what, MG_NAME_MAX);
  int32_t taken = look_up(c, name);
  if (taken)
    return mg_fail(err, MG_REFUSED, "the topology already has a %s '%s'", taken > 0 ? "family" : "grid", name);
  if (world != c->world)
    return mg_fail(err, MG_REFUSED, "%s '%s' is of a world of %" PRId64 " ranks, the topology of %" PRId64, what,
                   name, world, c->world);
  return MG_OK;
}

/* A NULL where something belongs: the call that should have made it has told why. */
static mg_status made_of_nothing(const char *what, const char *name, mg_error *err) {
  if (err && err->status) return MG_USAGE;
  return mg_fail(err, MG_USAGE, "%s '%s' or its topology is NULL", what, name ? name : "");
}

mg_status mg_topology_add(mg_topology *t, const char *name, const mg_family *f, const mg_options *options,
                          mg_error *err) {
  if (!t || !f) return made_of_nothing("family", name, err);
  mg_status s = check_new_name(&t->content, "family", name, f->world, err);
  if (s) return s;
  mg_choice choice;
  if ((s = mg_choice_init(&choice, options, err))) return s;
  s = add_entry(&t->content, name, f, &choice, err);
  mg_choice_free(&choice);
  return s;
}

mg_status mg_topology_add_grid(mg_topology *t, const char *name, const mg_grid *g, mg_error *err) {
  if (!t || !g) return made_of_nothing("grid", name, err);
  mg_status s = check_new_name(&t->content, "grid", name, g->window.world, err);
  return s ? s : add_grid(&t->content, name, g, err);
}

static bool is_one_line(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    if (*c < ' ' || *c == 0x7f) return false;
  return true;
}

mg_status mg_topology_param(mg_topology *t, const char *name, const char *value, mg_error *err) {
  if (!t) return MG_USAGE;
  if (!is_one_line(name))
    return mg_fail(err, MG_REFUSED, "the name of a parameter is one line of text");
  if (!is_one_line(value)) /* it would pass for another line of the canonical text */
    return mg_fail(err, MG_REFUSED, "the value of parameter '%s' is one line of text, without control characters", name);
  return add_param(&t->content, name, value, err);
}

mg_status mg_topology_recipe(mg_topology *t, const char *name, mg_error *err) {
  if (!t) return MG_USAGE;
  char *copy = mg_strdup(name);
  if (!copy) return mg_oom(err);
  free(t->content.recipe);
  t->content.recipe = copy;
  return MG_OK;
}
