/* SPDX-License-Identifier: MIT
**
** topology.c - builds a topology: families, grids and items by name, lists of concurrent families,
** all in the order of the calls. No two families, grids or items have the same name.
*/
#include "plan/topology.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Numbers in the index of names: those of grids begin at GRIDS, those of items at ITEMS. */
enum { GRIDS = 1 << 29, ITEMS = 1 << 30 };

/* ------------------------------------------------ lists of concurrent families */

static void free_lists(mgrid_content *c) {
  for (size_t i = 0; i < c->nconcurrent; i++) free(c->concurrent[i].name);
  free(c->concurrent);
}

mgrid_status mgrid_concurrent_append(mgrid_content *c, size_t n, const char *const *names,
                                     mgrid_error *err) {
  if (!MGRID_GROW(c->concurrent, c->nconcurrent, 1)) return mgrid_oom(err);
  mgrid_concurrent *one = &c->concurrent[c->nconcurrent];
  *one = (mgrid_concurrent){ n, calloc(n, sizeof *one->name) };
  if (!one->name) return mgrid_oom(err);
  for (size_t k = 0; k < n; k++) memcpy(one->name[k], names[k], strlen(names[k]));
  c->nconcurrent++;
  return MGRID_OK;
}

static mgrid_status copy_lists(mgrid_content *to, const mgrid_content *from, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < from->nconcurrent && !s; i++) {
    const mgrid_concurrent *list = &from->concurrent[i];
    const char **names = malloc(list->n * sizeof *names);
    for (size_t k = 0; names && k < list->n; k++) names[k] = list->name[k];
    s = names ? mgrid_concurrent_append(to, list->n, names, err) : mgrid_oom(err);
    free(names);
  }
  return s;
}

size_t mgrid_concurrent_place(const mgrid_concurrent *list, const char *family) {
  size_t index = 0;
  while (index < list->n && strcmp(list->name[index], family) != 0) index++;
  return index;
}

static void leave_lists(mgrid_content *c, const char *family) {
  size_t left = 0;
  for (size_t i = 0; i < c->nconcurrent; i++) {
    mgrid_concurrent *list = &c->concurrent[i];
    size_t index = mgrid_concurrent_place(list, family);
    if (index < list->n)
      memmove(list->name + index, list->name + index + 1, (--list->n - index) * sizeof *list->name);
    if (list->n < 2)
      free(list->name);
    else
      c->concurrent[left++] = *list;
  }
  c->nconcurrent = left;
}

/* ----------------------------------------------------------------- content */

void mgrid_content_free(mgrid_content *c) {
  for (size_t i = 0; i < c->nentries; i++) {
    mgrid_family_free(c->entry[i].family);
    mgrid_choice_free(c->entry[i].choice);
  }
  for (size_t i = 0; i < c->ngrids; i++) mgrid_grid_free(c->grid[i].grid);
  free_lists(c);

  for (size_t i = 0; i < c->nparams; i++) {
    free(c->param[i].name);
    free(c->param[i].value);
  }
  for (size_t i = 0; i < c->ncalled; i++) {
    free(c->called[i].name);
    free(c->called[i].version);
  }
  for (size_t i = 0; i < c->nitems; i++) c->item[i].kind->free(c->item[i].x);

  free(c->called);
  free(c->item);
  free(c->entry);
  free(c->grid);
  free(c->param);
  mgrid_index_free(&c->names);
  free(c->recipe);
  memset(c, 0, sizeof *c);
}

static const char *name_at(const mgrid_content *c, int32_t number) {
  if (number >= ITEMS) return c->item[number - ITEMS].name;
  return number >= GRIDS ? c->grid[number - GRIDS].name : c->entry[number].name;
}

static uint64_t topology_hash_of(const char *name) { return XXH3_64bits(name, strlen(name)); }

/* Return the number of a name, or -1. */
static int32_t look_up(const mgrid_content *c, const char *name) {
  if (!name) return -1;
  uint64_t hash = topology_hash_of(name);
  size_t at = 0;
  int32_t i = mgrid_index_next(&c->names, hash, &at);
  while (i >= 0 && strcmp(name, name_at(c, i)) != 0) i = mgrid_index_next(&c->names, hash, &at);
  return i;
}

static mgrid_status topology_put_name(mgrid_content *c, int32_t number, mgrid_error *err) {
  return mgrid_index_put(&c->names, topology_hash_of(name_at(c, number)), number) ? MGRID_OK
                                                                                  : mgrid_oom(err);
}

int mgrid_content_find(const mgrid_content *c, const char *family) {
  int32_t i = look_up(c, family);
  return i < GRIDS ? i : -1;
}

int mgrid_content_require(const mgrid_content *c, const char *before, const char *family,
                          mgrid_error *err) {
  char tail[512] = "";
  int at = mgrid_content_find(c, family);
  if (at >= 0 || mgrid_lacks(family, "the name of the family", err)) return at;
  const char **known = malloc((c->nentries + 1) * sizeof *known);
  for (size_t i = 0; known && i < c->nentries; i++) known[i] = c->entry[i].name;
  if (known) mgrid_suggest(tail, sizeof tail, family, known, c->nentries);
  free(known);
  mgrid_fail(err, MGRID_UNKNOWN_NAME, "%sunknown family '%s'%s", before, family, tail);
  return -1;
}

int mgrid_content_grid(const mgrid_content *c, const char *grid) {
  int32_t i = look_up(c, grid);
  return i >= GRIDS && i < ITEMS ? i - GRIDS : -1;
}

const mgrid_item *mgrid_content_item(const mgrid_content *c, const mgrid_item_kind *kind,
                                     const char *name) {
  int32_t i = look_up(c, name);
  const mgrid_item *item = i >= ITEMS ? &c->item[i - ITEMS] : NULL;
  return item && item->kind == kind ? item : NULL;
}

size_t mgrid_content_items(const mgrid_content *c, const mgrid_item_kind *kind) {
  for (size_t i = c->nitems; i-- > 0;)
    if (c->item[i].kind == kind) return c->item[i].nth + 1;
  return 0;
}

const mgrid_item *mgrid_content_nth(const mgrid_content *c, const mgrid_item_kind *kind, size_t i) {
  for (size_t k = i; k < c->nitems; k++)
    if (c->item[k].kind == kind && c->item[k].nth == i) return &c->item[k];
  return NULL;
}

static mgrid_status check_shape(const char *name, const mgrid_family *f, const mgrid_choice *choice,
                                mgrid_error *err) {
  return choice && choice->shape ? mgrid_shape_fits(choice->shape, name, f, err) : MGRID_OK;
}

/* Make the record of an entry's options. For a twin it is always unique. */
static mgrid_status choice_for(const mgrid_family *f, const mgrid_choice *choice,
                               mgrid_choice **own, mgrid_error *err) {
  if (f->twin) return mgrid_choice_unique(choice, own, err);
  *own = mgrid_choice_ref(choice);
  return MGRID_OK;
}

static mgrid_status topology_add_entry(mgrid_content *c, const char *name, const mgrid_family *f,
                                       const mgrid_choice *choice, mgrid_error *err) {
  if (!MGRID_GROW(c->entry, c->nentries, 1)) return mgrid_oom(err);
  mgrid_entry *e = &c->entry[c->nentries];
  memset(e, 0, sizeof *e);
  memcpy(e->name, name, strlen(name));
  if (choice_for(f, choice, &e->choice, err)) return MGRID_NO_MEMORY;
  if (topology_put_name(c, (int32_t)c->nentries, err)) {
    mgrid_choice_free(e->choice);
    return MGRID_NO_MEMORY;
  }
  e->family = mgrid_family_ref(f);
  c->nentries++;
  return MGRID_OK;
}

static mgrid_status add_grid(mgrid_content *c, const char *name, const mgrid_grid *g,
                             mgrid_error *err) {
  if (!MGRID_GROW(c->grid, c->ngrids, 1)) return mgrid_oom(err);
  mgrid_named_grid *one = &c->grid[c->ngrids];
  memset(one, 0, sizeof *one);
  memcpy(one->name, name, strlen(name));
  if (topology_put_name(c, GRIDS + (int32_t)c->ngrids, err)) return MGRID_NO_MEMORY;
  one->grid = mgrid_grid_ref(g);
  c->ngrids++;
  return MGRID_OK;
}

static mgrid_status topology_add_item(mgrid_content *c, const char *name,
                                      const mgrid_item_kind *kind, const void *x,
                                      mgrid_error *err) {
  if (!MGRID_GROW(c->item, c->nitems, 1)) return mgrid_oom(err);
  mgrid_item *one = &c->item[c->nitems];
  *one = (mgrid_item){ .kind = kind, .nth = mgrid_content_items(c, kind) };
  memcpy(one->name, name, strlen(name));
  if (topology_put_name(c, ITEMS + (int32_t)c->nitems, err)) return MGRID_NO_MEMORY;
  one->x = kind->ref(x);
  c->held += kind->held(x);
  c->nitems++;
  return MGRID_OK;
}

static mgrid_status add_param(mgrid_content *c, const char *name, const char *value,
                              mgrid_error *err) {
  if (!MGRID_GROW(c->param, c->nparams, 1)) return mgrid_oom(err);
  mgrid_param p = { mgrid_strdup(name), mgrid_strdup(value), .text = false };
  if (!p.name || !p.value) {
    free(p.name);
    free(p.value);
    return mgrid_oom(err);
  }
  c->param[c->nparams++] = p;
  return MGRID_OK;
}

static mgrid_status add_called(mgrid_content *c, const char *name, const char *version,
                               mgrid_error *err) {
  if (!MGRID_GROW(c->called, c->ncalled, 1)) return mgrid_oom(err);
  mgrid_called f = { mgrid_strdup(name), mgrid_strdup(version) };
  if (!f.name || !f.version) {
    free(f.name);
    free(f.version);
    return mgrid_oom(err);
  }
  c->called[c->ncalled++] = f;
  return MGRID_OK;
}

mgrid_status mgrid_content_copy(mgrid_content *to, const mgrid_content *from, mgrid_error *err) {
  memset(to, 0, sizeof *to);
  to->world = from->world;
  to->recipe = mgrid_strdup(from->recipe);
  to->policies = from->policies;
  to->idle = from->idle;

  mgrid_status s = to->recipe ? MGRID_OK : mgrid_oom(err);
  for (size_t i = 0; i < from->nentries && !s; i++)
    s = topology_add_entry(to, from->entry[i].name, from->entry[i].family, from->entry[i].choice,
                           err);
  for (size_t i = 0; i < from->ngrids && !s; i++)
    s = add_grid(to, from->grid[i].name, from->grid[i].grid, err);
  for (size_t i = 0; i < from->nitems && !s; i++)
    s = topology_add_item(to, from->item[i].name, from->item[i].kind, from->item[i].x, err);
  for (size_t i = 0; i < from->nparams && !s; i++) {
    s = add_param(to, from->param[i].name, from->param[i].value, err);
    mgrid_param *p = s ? NULL : &to->param[i];
    if (p)
      *p = (mgrid_param){ p->name, p->value, from->param[i].text, from->param[i].usual,
                          from->param[i].unread };
  }
  for (size_t i = 0; i < from->ncalled && !s; i++)
    s = add_called(to, from->called[i].name, from->called[i].version, err);

  if (!s) s = copy_lists(to, from, err);
  if (s) mgrid_content_free(to);
  return s;
}

/* ---------------------------------------------------------------- topology */

mgrid_topology *mgrid_topology_new(int64_t world, mgrid_error *err) {
  if (world < 1 || world > MGRID_WORLD_MAX)
    return mgrid_null(err, MGRID_OUT_OF_RANGE, "a world has 1 to %" PRId64 " ranks, not %" PRId64,
                      MGRID_WORLD_MAX, world);
  mgrid_topology *t = calloc(1, sizeof *t);
  if (!t) return mgrid_null_oom(err);
  atomic_init(&t->refs, 1);
  t->content.world = world;
  t->broken = (mgrid_error)MGRID_ERROR_INIT;
  t->content.recipe = mgrid_strdup("");
  mgrid_status s = t->content.recipe ? mgrid_choice_new(NULL, &t->plain, err) : mgrid_oom(err);
  if (!s) return t;
  mgrid_topology_free(t);
  return NULL;
}

mgrid_topology *mgrid_topology_ref(mgrid_topology *t) {
  if (t) atomic_fetch_add(&t->refs, 1);
  return t;
}

void mgrid_topology_free(mgrid_topology *t) {
  if (!t || atomic_fetch_sub(&t->refs, 1) != 1) return;
  mgrid_content_free(&t->content);
  mgrid_choice_free(t->plain);
  free(t);
}

static mgrid_status check_new_name(const mgrid_content *c, const char *what, bool item,
                                   const char *name, int64_t world, mgrid_error *err) {
  if (item && !mgrid_is_item_name(name))
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "'%.300s' is not a %s name (letters, digits, _ . - or /; at most %d)",
                      name ? name : "", what, MGRID_ITEM_NAME_MAX);
  if (!item && !mgrid_is_name(name))
    return mgrid_fail(
        err, MGRID_BAD_VALUE,
        "'%s' is not a %s name (a letter or _, then letters, digits or _; at most %d)",
        name ? name : "", what, MGRID_NAME_MAX);

  int32_t taken = look_up(c, name);
  if (taken >= 0)
    return mgrid_fail(err, MGRID_DUPLICATE, "the topology already has a %s '%s'",
                      taken >= ITEMS   ? c->item[taken - ITEMS].kind->name
                      : taken >= GRIDS ? "grid"
                                       : "family",
                      name);

  if (world != c->world)
    return mgrid_fail(err, MGRID_REFUSED,
                      "%s '%s' is of a world of %" PRId64 " ranks, the topology of %" PRId64, what,
                      name, world, c->world);
  return MGRID_OK;
}

/* Refuse an argument that is NULL. If an earlier call failed to make it and has filled *err, leave
** *err as it is. */
static mgrid_status made_of_nothing(const char *what, const char *name, mgrid_error *err) {
  if (err && err->status) return MGRID_USAGE;
  return mgrid_fail(err, MGRID_USAGE, "%s '%s' or its topology is NULL", what, name ? name : "");
}

static mgrid_status check_new_family(const mgrid_topology *t, const char *name,
                                     const mgrid_family *f, mgrid_error *err) {
  if (!t || !f) return made_of_nothing("family", name, err);
  return check_new_name(&t->content, "family", false, name, f->world, err);
}

mgrid_status mgrid_topology_put(mgrid_topology *t, const char *name, const mgrid_family *f,
                                const mgrid_choice *choice, mgrid_error *err) {
  mgrid_status s = check_new_family(t, name, f, err);
  if (!s) s = check_shape(name, f, choice, err);
  return s ? s : topology_add_entry(&t->content, name, f, choice ? choice : t->plain, err);
}

mgrid_status mgrid_topology_choose(mgrid_topology *t, const char *name, const mgrid_choice *choice,
                                   mgrid_error *err) {
  int index = mgrid_content_find(&t->content, name);
  mgrid_choice *own = NULL;
  if (index < 0)
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "the topology has no family '%s'", name);
  mgrid_entry *e = &t->content.entry[index];
  mgrid_status s = check_shape(name, e->family, choice, err);
  if (!s) s = choice_for(e->family, choice ? choice : t->plain, &own, err);
  if (s) return s;
  mgrid_choice_free(e->choice);
  e->choice = own;
  return MGRID_OK;
}

static void remove_item(mgrid_content *c, size_t i) {
  const mgrid_item_kind *kind = c->item[i].kind;
  c->held -= kind->held(c->item[i].x);
  kind->free(c->item[i].x);
  memmove(&c->item[i], &c->item[i + 1], (--c->nitems - i) * sizeof *c->item);
  for (; i < c->nitems; i++) c->item[i].nth -= c->item[i].kind == kind;
}

bool mgrid_topology_remove(mgrid_topology *topology, const char *name) {
  mgrid_content *c = &topology->content;
  mgrid_error unused = MGRID_ERROR_INIT;
  int32_t i = look_up(c, name);

  if (i < 0) return false;
  if (i >= ITEMS) {
    remove_item(c, (size_t)(i - ITEMS));
  } else if (i >= GRIDS) {
    mgrid_named_grid *g = &c->grid[i - GRIDS];
    mgrid_grid_free(g->grid);
    memmove(g, g + 1, (--c->ngrids - (size_t)(i - GRIDS)) * sizeof *g);
  } else {
    mgrid_entry *e = &c->entry[i];
    leave_lists(c, name);
    mgrid_family_free(e->family);
    mgrid_choice_free(e->choice);
    memmove(e, e + 1, (--c->nentries - (size_t)i) * sizeof *e);
  }
  mgrid_index_clear(&c->names); /* the names that stay are added again below */
  for (i = 0; i < (int32_t)c->nentries; i++) topology_put_name(c, i, &unused);
  for (i = 0; i < (int32_t)c->ngrids; i++) topology_put_name(c, GRIDS + i, &unused);
  for (i = 0; i < (int32_t)c->nitems; i++) topology_put_name(c, ITEMS + i, &unused);
  return true;
}

mgrid_status mgrid_topology_put_grid(mgrid_topology *t, const char *name, const mgrid_grid *g,
                                     mgrid_error *err) {
  if (!t || !g) return made_of_nothing("grid", name, err);
  mgrid_status s = check_new_name(&t->content, "grid", false, name, g->window.world, err);
  return s ? s : add_grid(&t->content, name, g, err);
}

/* The public calls. A program may ignore what such a call returns. It must still not get a plan
** that lacks what it tried to add, so the first failure breaks the topology: it makes no plan. */

mgrid_error mgrid_topology_begin(const mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  if (err && err->status) mgrid_error_replace(&mine, err);
  return mine;
}

mgrid_status mgrid_topology_end(mgrid_topology *t, mgrid_status s, const mgrid_error *mine,
                                mgrid_error *err) {
  if (!s) return MGRID_OK;
  if (t && !t->broken.status) mgrid_error_replace(&t->broken, mine);
  mgrid_error_pass(err, mine);
  return s;
}

mgrid_status mgrid_topology_add(mgrid_topology *t, const char *name, const mgrid_family *f,
                                const mgrid_options *options, mgrid_error *err) {
  mgrid_error mine = mgrid_topology_begin(err);
  mgrid_choice *choice = NULL;
  mgrid_status s = check_new_family(t, name, f, &mine);
  if (!s && options) s = mgrid_choice_new(options, &choice, &mine);
  if (!s && options) s = check_shape(name, f, choice, &mine);
  if (!s) s = topology_add_entry(&t->content, name, f, options ? choice : t->plain, &mine);
  mgrid_choice_free(choice);
  return mgrid_topology_end(t, s, &mine, err);
}

mgrid_status mgrid_topology_add_grid(mgrid_topology *t, const char *name, const mgrid_grid *g,
                                     mgrid_error *err) {
  mgrid_error mine = mgrid_topology_begin(err);
  return mgrid_topology_end(t, mgrid_topology_put_grid(t, name, g, &mine), &mine, err);
}

mgrid_status mgrid_topology_put_item(mgrid_topology *t, const char *name,
                                     const mgrid_item_kind *kind, const void *x, mgrid_error *err) {
  if (!t || !x) return made_of_nothing(kind->name, name, err);
  mgrid_status s = check_new_name(&t->content, kind->name, true, name, kind->world(x), err);
  return s ? s : topology_add_item(&t->content, name, kind, x, err);
}

mgrid_status mgrid_topology_add_item(mgrid_topology *t, const char *name,
                                     const mgrid_item_kind *kind, const void *x, mgrid_error *err) {
  mgrid_error mine = mgrid_topology_begin(err);
  return mgrid_topology_end(t, mgrid_topology_put_item(t, name, kind, x, &mine), &mine, err);
}

mgrid_status mgrid_param_check(const char *name, size_t name_len, const char *value,
                               size_t value_len, mgrid_error *err) {
  char what[160];
  /* A newline would begin another line in texts for people; the first '=' ends the name. */
  mgrid_status s = mgrid_check_line("the name of a parameter", name, name_len, err);
  if (!s && memchr(name, '=', name_len))
    s = mgrid_fail(err, MGRID_BAD_VALUE, "the name of a parameter must not contain '=': '%.100s'",
                   name);
  snprintf(what, sizeof what, "the value of parameter '%.100s'", name);
  return s ? s : mgrid_check_line(what, value, value_len, err);
}

/* Refuse a parameter or function whose name is taken: in JSON the names are fields of one
** object. */
static mgrid_status refuse_twice(const char *what, const char *name, mgrid_error *err) {
  return mgrid_fail(err, MGRID_DUPLICATE, "the topology already has a %s '%.100s'", what, name);
}

static mgrid_status put_param(mgrid_topology *t, const char *name, const char *value,
                              mgrid_error *err) {
  if (mgrid_lacks(name, "the name of a parameter", err)
      || mgrid_lacks(value, "the value of a parameter", err))
    return MGRID_USAGE;
  mgrid_status s = mgrid_param_check(name, strlen(name), value, strlen(value), err);
  for (size_t i = 0; i < t->content.nparams && !s; i++)
    if (strcmp(t->content.param[i].name, name) == 0) s = refuse_twice("parameter", name, err);
  return s ? s : add_param(&t->content, name, value, err);
}

mgrid_status mgrid_topology_param(mgrid_topology *t, const char *name, const char *value,
                                  mgrid_error *err) {
  if (!t) return MGRID_USAGE;
  mgrid_error mine = mgrid_topology_begin(err);
  return mgrid_topology_end(t, put_param(t, name, value, &mine), &mine, err);
}

mgrid_status mgrid_topology_called(mgrid_topology *t, const char *name, const char *version,
                                   mgrid_error *err) {
  if (!mgrid_is_name(name))
    return mgrid_fail(err, MGRID_BAD_VALUE, "'%s' is not a function name", name);
  char what[MGRID_NAME_MAX + 40];
  snprintf(what, sizeof what, "the version of function '%s'", name);
  if (!*version) return mgrid_fail(err, MGRID_BAD_VALUE, "%s is one line of text, not empty", what);
  mgrid_status s = mgrid_check_line(what, version, strlen(version), err);
  for (size_t i = 0; i < t->content.ncalled && !s; i++)
    if (strcmp(t->content.called[i].name, name) == 0) s = refuse_twice("function", name, err);
  return s ? s : add_called(&t->content, name, version, err);
}

static mgrid_status put_recipe(mgrid_topology *t, const char *name, mgrid_error *err) {
  if (mgrid_lacks(name, "the name of the recipe", err)) return MGRID_USAGE;
  char *copy = mgrid_strdup(name);
  if (!copy) return mgrid_oom(err);
  free(t->content.recipe);
  t->content.recipe = copy;
  return MGRID_OK;
}

mgrid_status mgrid_topology_recipe(mgrid_topology *t, const char *name, mgrid_error *err) {
  if (!t) return MGRID_USAGE;
  mgrid_error mine = mgrid_topology_begin(err);
  return mgrid_topology_end(t, put_recipe(t, name, &mine), &mine, err);
}
