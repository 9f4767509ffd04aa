/* SPDX-License-Identifier: MIT
**
** diff.c - what changes from one plan to another, for Lua. The answer is JSON first, as a recipe's: the library tells each
** difference while it holds memory, so Lua must not raise there.
*/
#include "plan/json.h"
#include "recipe/budget.h"
#include "recipe/values.h"
#include "recipe/words/facts.h"

#include <string.h>

/* Return a grid of a plan as JSON. */
static json_t *grid_json(const mgrid_content *c, const char *name) {
  const mgrid_grid *g = c->grid[mgrid_content_grid(c, name)].grid;
  json_t           *all = mgrid_json_pack("{sI}", "size", (json_int_t)g->size), *dims = json_array();
  for (size_t d = 0; d < g->n; d++)
    json_array_append_new(dims, mgrid_json_pack("[sI]", g->axis[d].name, (json_int_t)g->axis[d].size));
  if (!g->order) json_object_set_new(all, "offset", json_integer(g->window.offset));
  json_object_set_new(all, "dims", dims);
  return all;
}

/* Return a family as JSON, without its groups: there may be as many as ranks. */
static json_t *family_json(const mgrid_content *c, const char *name) {
  const mgrid_entry  *e = &c->entry[mgrid_content_find(c, name)];
  const mgrid_family *f = e->family;
  char                rule[512];
  mgrid_family_describe(f, rule, sizeof rule);
  json_t *all = mgrid_json_pack("{sIssss}", "count", (json_int_t)f->count, "rule", f->form->listed ? "list" : rule,
                                "options", e->choice->text + (*e->choice->text == ' '));
  if (f->size >= 0) json_object_set_new(all, "size", json_integer(f->size));
  return all;
}

static json_t *value_json(const mgrid_plan *p, const char *what, const char *name, const char *text) {
  if (strcmp(what, "world") == 0) return json_integer(mgrid_plan_world(p));
  if (strcmp(what, "grid") == 0) return grid_json(&p->content, name);
  if (strcmp(what, "family") == 0) return family_json(&p->content, name);
  return json_string(text);
}

typedef struct collected {
  const mgrid_plan *was, *is;
  json_t           *changes;
  mgrid_text        text;
} collected;

/* An mgrid_tell: { kind, what, name, from, to }. */
static void collect(void *ud, const mgrid_difference *d) {
  collected *c = ud;
  json_t    *change = mgrid_json_pack("{ss%ss}", "kind", &d->sign, (size_t)1, "what", d->what);
  if (d->from || d->to) json_object_set_new(change, "name", json_string(d->name)); /* otherwise it is a sentence */
  if (d->from && *d->from) json_object_set_new(change, "from", value_json(c->was, d->what, d->name, d->from));
  if (d->to && *d->to) json_object_set_new(change, "to", value_json(c->is, d->what, d->name, d->to));
  json_array_append_new(c->changes, change);
}

static int put_line(void *ud, const char *s, size_t len) { return mgrid_text_sink(&((collected *)ud)->text, s, len); }

static int text_of(lua_State *L) { return lua_pushvalue(L, lua_upvalueindex(1)), 1; }

/* plan:diff(other [, rank]) -> { differ, changes, kept, created, dropped }; tostring gives lines */
int mgrid_lua_plan_diff(lua_State *L) {
  const mgrid_plan *was = mgrid_lua_check_plan(L, 1), *is = mgrid_lua_check_plan(L, 2);
  int64_t           rank = lua_isnoneornil(L, 3) ? 0 : mgrid_lua_check_integer(L, 3);
  mgrid_change      change = MGRID_CHANGE_INIT;
  mgrid_error       e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, was->content.world + is->content.world);
  collected    c = { was, is, json_array(), { 0 } };
  mgrid_status s = mgrid_plan_differences(was, is, rank, &change, collect, put_line, &c, &e);
  json_t      *all = mgrid_json_pack("{sbso}", "differ", json_array_size(c.changes) > 0, "changes", c.changes);
  if (mgrid_plan_world(was) == mgrid_plan_world(is))
    json_object_update_new(all, mgrid_json_pack("{sIsIsI}", "kept", (json_int_t)change.kept, "created",
                                                (json_int_t)change.created, "dropped", (json_int_t)change.dropped));
  if (s) {
    json_decref(all);
    mgrid_text_free(&c.text);
    return mgrid_lua_raise_error(L, &e);
  }
  if (mgrid_take_json(L, all)) {
    mgrid_text_free(&c.text);
    return lua_error(L);
  }
  mgrid_lua_push_text(L, &c.text);
  lua_pushcclosure(L, text_of, 1);
  lua_createtable(L, 0, 1);
  lua_insert(L, -2);
  lua_setfield(L, -2, "__tostring");
  lua_setmetatable(L, -2);
  return 1;
}
