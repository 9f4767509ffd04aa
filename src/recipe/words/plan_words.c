/* SPDX-License-Identifier: MIT
**
** plan_words.c - Plan for Lua: its contents, texts and checks.
*/
#include "plan/json.h"
#include "plan/plan.h"
#include "recipe/bind.h"
#include "recipe/budget.h"
#include "recipe/module_row.h"
#include "recipe/values.h"
#include "recipe/words/facts.h"

#include <string.h>

/* -------------------------------------------------------------- saved plans
** These are only for Lua programs, because recipes read no files.
*/

/* moongrid.is_saved(path [, text]) -> whether the file, or the text, is a saved plan */
static int is_saved(lua_State *L) {
  char head[64];
  size_t n = 0;
  const char *path = luaL_checkstring(L, 1), *text = luaL_optlstring(L, 2, NULL, &n);
  if (!text) n = mgrid_file_begins(path, head, sizeof head);
  lua_pushboolean(L, mgrid_plan_is_saved(text ? text : head, n));
  return 1;
}

/* moongrid.saved(path [, text]) -> Plan */
static int saved(lua_State *L) {
  size_t n = 0;
  const char *path = luaL_checkstring(L, 1), *text = luaL_optlstring(L, 2, NULL, &n);
  mgrid_plan **box = mgrid_lua_new_plan(L);
  mgrid_text file = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (text)
    *box = mgrid_plan_read(text, n, path, &e);
  else if (!mgrid_read_file_up_to(path, MGRID_SAVED_MAX, &file, &e))
    *box = mgrid_plan_read(mgrid_text_chars(&file), file.len, path, &e);
  mgrid_text_free(&file);
  return *box ? 1 : mgrid_lua_raise_error(L, &e);
}

void mgrid_lua_open_saved(lua_State *L) {
  lua_pushcfunction(L, is_saved);
  lua_setfield(L, -2, "is_saved");
  lua_pushcfunction(L, saved);
  lua_setfield(L, -2, "saved");
}

/* -------------------------------------------------------------- differences
** The changes from one plan to another. They are collected as JSON first, because the library
** reports each while it holds memory, so Lua must not raise then.
*/

/* Return a grid of a plan as JSON. */
static json_t *grid_json(const mgrid_content *c, const char *name) {
  const mgrid_grid *g = c->grid[mgrid_content_grid(c, name)].grid;
  json_t *all = mgrid_json_pack("{sI}", "size", (json_int_t)g->size), *dims = json_array();
  for (size_t d = 0; d < g->n; d++)
    json_array_append_new(dims,
                          mgrid_json_pack("[sI]", g->axis[d].name, (json_int_t)g->axis[d].size));
  if (!g->order) json_object_set_new(all, "offset", json_integer(g->window.offset));
  json_object_set_new(all, "dims", dims);
  return all;
}

/* Return a family as JSON, without its groups, because it may have as many groups as ranks. */
static json_t *plan_family_json(const mgrid_content *c, const char *name) {
  const mgrid_entry *e = &c->entry[mgrid_content_find(c, name)];
  const mgrid_family *f = e->family;
  char rule[512];
  mgrid_family_describe(f, rule, sizeof rule);
  json_t *all = mgrid_json_pack("{sIssss}", "count", (json_int_t)f->count, "rule",
                                f->form->listed ? "list" : rule, "options",
                                e->choice->text + (*e->choice->text == ' '));
  if (f->size >= 0) json_object_set_new(all, "size", json_integer(f->size));
  return all;
}

static json_t *value_json(const mgrid_plan *p, const char *what, const char *name,
                          const char *text) {
  if (strcmp(what, "world") == 0) return json_integer(mgrid_plan_world(p));
  if (strcmp(what, "grid") == 0) return grid_json(&p->content, name);
  if (strcmp(what, "family") == 0) return plan_family_json(&p->content, name);
  return json_string(text);
}

typedef struct collected {
  const mgrid_plan *was, *is;
  json_t *changes;
  mgrid_text text;
} collected;

/* An mgrid_tell: append { kind, what, name, from, to }. */
static void collect(void *ud, const mgrid_difference *d) {
  collected *c = ud;
  json_t *change = mgrid_json_pack("{ss%ss}", "kind", &d->sign, (size_t)1, "what", d->what);
  /* without both, d->name is not a name but the end of a sentence */
  if (d->from || d->to) json_object_set_new(change, "name", json_string(d->name));
  if (d->from && *d->from)
    json_object_set_new(change, "from", value_json(c->was, d->what, d->name, d->from));
  if (d->to && *d->to)
    json_object_set_new(change, "to", value_json(c->is, d->what, d->name, d->to));
  json_array_append_new(c->changes, change);
}

static int put_line(void *ud, const char *s, size_t len) {
  return mgrid_text_sink(&((collected *)ud)->text, s, len);
}

static int plan_text_of(lua_State *L) { return lua_pushvalue(L, lua_upvalueindex(1)), 1; }

/* plan:diff(other [, rank]) -> { differ, changes, kept, created, dropped }; tostring gives its
** lines */
int mgrid_lua_plan_diff(lua_State *L) {
  const mgrid_plan *was = mgrid_lua_check_plan(L, 1), *is = mgrid_lua_check_plan(L, 2);
  int64_t rank = lua_isnoneornil(L, 3) ? 0 : mgrid_lua_check_integer(L, 3);
  mgrid_change change = MGRID_CHANGE_INIT;
  mgrid_error e = MGRID_ERROR_INIT;

  mgrid_lua_charge(L, was->content.world + is->content.world);
  collected c = { was, is, json_array(), { 0 } };
  mgrid_status s = mgrid_plan_differences(was, is, rank, &change, collect, put_line, &c, &e);
  json_t *all =
      mgrid_json_pack("{sbso}", "differ", json_array_size(c.changes) > 0, "changes", c.changes);
  if (mgrid_plan_world(was) == mgrid_plan_world(is))
    json_object_update_new(all, mgrid_json_pack("{sIsIsI}", "kept", (json_int_t)change.kept,
                                                "created", (json_int_t)change.created, "dropped",
                                                (json_int_t)change.dropped));
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
  lua_pushcclosure(L, plan_text_of, 1);
  lua_createtable(L, 0, 1);
  lua_insert(L, -2);
  lua_setfield(L, -2, "__tostring");
  lua_setmetatable(L, -2);
  return 1;
}

/* -------------------------------------------------------------------- plans */

static int new_plan(lua_State *L) {
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);
  mgrid_plan **box = mgrid_lua_new_plan(L);
  mgrid_error e = MGRID_ERROR_INIT;
  *box = mgrid_plan_new(t, &e);
  return *box ? 1 : mgrid_lua_raise_error(L, &e);
}

/* A text that the library prints. A method returns it, or passes it in pieces to a function. In a
** recipe its length is limited and the work is charged. */
typedef struct printed {
  lua_State *L;
  int write; /* index of the function; 0: the method returns the text */
  mgrid_text text;
  mgrid_lua_budget *budget; /* NULL: not in a recipe */
  bool long_text, raised;   /* why it stopped: it is too long, or the function has raised */
} printed;

static printed print_to(lua_State *L, int i) {
  printed t = { .L = L, .budget = mgrid_budget_of(L) };
  if (!lua_isnoneornil(L, i)) luaL_checktype(L, t.write = i, LUA_TFUNCTION);
  mgrid_lua_stack(L, 8);
  return t;
}

typedef struct piece {
  const char *text;
  size_t len;
} piece;

/* write(piece) */
static int write_piece(lua_State *L) {
  const piece *p = lua_touserdata(L, 2);
  lua_settop(L, 1);
  lua_pushlstring(L, p->text, p->len);
  lua_call(L, 1, 0);
  return 0;
}

static int print_piece(void *to, const char *s, size_t len) {
  printed *t = to;
  t->long_text = t->budget && t->text.len + len > MGRID_TEXT_MAX;
  if (t->long_text || (t->budget && !mgrid_budget_spend(t->budget, (int64_t)len))) return 1;
  if (!t->write) return mgrid_text_sink(&t->text, s, len);
  piece p = { s, len };
  lua_pushcfunction(t->L, write_piece);
  lua_pushvalue(t->L, t->write);
  lua_pushlightuserdata(t->L, &p);
  /* raise later (push_printed), because the function that calls this sink has memory to free */
  t->raised = lua_pcall(t->L, 2, 0, 0) != LUA_OK;
  return t->raised;
}

/* Push the text, or nothing if a function got it. Raise after an error. */
static int push_printed(lua_State *L, mgrid_status s, printed *t, const mgrid_error *e) {
  if (!s && t->write) return 0;
  if (!s) {
    mgrid_lua_push_text(L, &t->text);
    return 1;
  }
  mgrid_text_free(&t->text);
  if (t->raised) return lua_error(L);
  if (t->long_text)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "the text has more than %d bytes, the limit of texts in a recipe",
                              MGRID_TEXT_MAX);
  mgrid_lua_charge(L, 0); /* raises if the budget is exhausted */
  return mgrid_lua_raise_error(L, e);
}

/* Charge for json and schedule, which go through all groups. */
static void charge_groups(lua_State *L, const mgrid_plan *p) {
  mgrid_budget *budget = mgrid_lua_work(L);
  int64_t led[MGRID_ROUNDS_MAX];
  for (size_t i = 0; i < p->content.nentries && budget; i++)
    mgrid_plan_led_by_round(p, (int)i, led, budget);
  mgrid_lua_charge(L, 0);
}

/* plan:json([rank [, write [, site]]]) */
static int plan_json(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t rank = mgrid_lua_opt_rank(L, p, 2);
  mgrid_site site = mgrid_lua_check_site(L, 4);
  printed t = print_to(L, 3);
  mgrid_error e = MGRID_ERROR_INIT;
  charge_groups(L, p);
  return push_printed(L, mgrid_plan_json_at(p, rank, &site, print_piece, &t, &e), &t, &e);
}

/* plan:text([write]); plan:rules([write]) */
static int plan_text(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  printed t = print_to(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  return push_printed(L, mgrid_plan_print(p, print_piece, &t, &e), &t, &e);
}

static int plan_rules(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  printed t = print_to(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  return push_printed(L, mgrid_plan_save(p, print_piece, &t, &e), &t, &e);
}

/* plan:schedule([rank [, write]]) */
static int plan_schedule(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t rank = mgrid_lua_opt_rank(L, p, 2);
  printed t = print_to(L, 3);
  mgrid_error e = MGRID_ERROR_INIT;
  charge_groups(L, p);
  return push_printed(L, mgrid_plan_print_schedule(p, rank, print_piece, &t, &e), &t, &e);
}

int mgrid_lua_check_entry(lua_State *L, const mgrid_plan *p, int i) {
  const char *name = luaL_checkstring(L, i), *known[256];
  int at = (int)mgrid_content_find(&p->content, name);
  size_t n = 0;
  if (at >= 0) return at;
  for (; n < p->content.nentries && n < 256; n++) known[n] = p->content.entry[n].name;
  return mgrid_lua_unknown(L, "family", name, known, n);
}

static int plan_family(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int i = mgrid_lua_check_entry(L, p, 2);
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  box->f = mgrid_family_ref(p->content.entry[i].family);
  return 1;
}

static int plan_grid(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const char *name = luaL_checkstring(L, 2);
  const mgrid_grid *g = mgrid_plan_grid(p, name);
  if (!g) {
    const char *known[64];
    size_t n = 0;
    for (; n < p->content.ngrids && n < 64; n++) known[n] = p->content.grid[n].name;
    return mgrid_lua_unknown(L, "grid", name, known, n);
  }
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_ref(g);
  return 1;
}

/* plan:counts([rank]) -> { families, groups, singles, communicators } */
static int plan_counts(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  mgrid_plan_counts n = MGRID_PLAN_COUNTS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t rank = mgrid_lua_opt_rank(L, p, 2);
  mgrid_budget *budget = mgrid_lua_work(L);
  mgrid_status s = rank < 0 ? mgrid_plan_count_paid(p, budget, &n, &e)
                            : mgrid_plan_count(p, rank, &n, &e);
  mgrid_lua_charge(L, 0);
  if (s) return mgrid_lua_raise_error(L, &e);
  lua_createtable(L, 0, 4);
  mgrid_lua_set_integer(L, "families", n.families);
  mgrid_lua_set_integer(L, "groups", n.groups);
  mgrid_lua_set_integer(L, "singles", n.singles);
  mgrid_lua_set_integer(L, "communicators", n.communicators);
  return 1;
}

/* plan:rehearse() -> the numbers of communicators and of memberships in them. It raises if creating
** the communicators would deadlock */
static int plan_rehearse(lua_State *L) {
  mgrid_created r = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t each = (int64_t)p->content.nentries + 1;
  mgrid_lua_charge(L, p->content.world * each);
  mgrid_lua_reserve(L, p->content.world * each, 64);
  if (mgrid_plan_rehearse(p, &r, &e)) return mgrid_lua_raise_error(L, &e);
  lua_pushinteger(L, r.communicators);
  lua_pushinteger(L, r.memberships);
  return 2;
}

/* Return the number of nodes of all families; a question about a rank goes through all of them. */
static int64_t nodes_of(const mgrid_plan *p) {
  int64_t n = 0;
  for (size_t i = 0; i < p->content.nentries; i++) n += p->content.entry[i].family->nodes;
  return n;
}

/* plan:check() -> the numbers of checked members and of communicators (nil: only a sample of the
** ranks was checked). It raises if the plan is not consistent, which is a bug of the library */
static int plan_check(lua_State *L) {
  mgrid_plan_checked c = MGRID_PLAN_CHECKED_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t looked = p->content.world <= MGRID_CHECK_WHOLE ? p->content.world : MGRID_CHECK_SOME;
  mgrid_lua_charge(L, looked * (16 * ((int64_t)p->content.nentries + 1) + nodes_of(p)));
  if (mgrid_plan_check(p, &c, &e)) return mgrid_lua_raise_error(L, &e);
  lua_pushinteger(L, c.members);
  if (c.sampled)
    lua_pushnil(L);
  else
    lua_pushinteger(L, c.communicators);
  return 2;
}

/* plan:law(text [, machine]) -> true | false, why. It raises if the text is not a law, or
** names something unknown */
static int plan_law(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const char *law = luaL_checkstring(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_status s = MGRID_OK;
  bool mine = false;
  lua_settop(L, 3);
  mgrid_lua_charge(L, p->content.world + nodes_of(p));
  for (const mgrid_lua_module *const *module = mgrid_lua_modules; *module && !mine; module++)
    if ((*module)->law) s = (*module)->law(L, 3, p, law, &mine, &e);
  if (!mine) s = mgrid_plan_law(p, law, &e);
  if (s && s != MGRID_REFUSED && s != MGRID_UNPROVED) return mgrid_lua_raise_error(L, &e);
  lua_pushboolean(L, !s);
  if (!s) return 1;
  lua_pushstring(L, e.message);
  return 2;
}

/* tostring of a result of plan:why. Upvalues: the plan, the two ranks */
static int why_tostring(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, lua_upvalueindex(1));
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  lua_Integer a = lua_tointeger(L, lua_upvalueindex(2)), b = lua_tointeger(L, lua_upvalueindex(3));
  if (mgrid_plan_why(p, a, b, false, mgrid_text_sink, &t, &e)) {
    mgrid_text_free(&t);
    return mgrid_lua_raise_error(L, &e);
  }
  if (t.len) t.data[--t.len] = '\0'; /* print adds the newline */
  mgrid_lua_push_text(L, &t);
  return 1;
}

/* plan:why(a, b) -> how two ranks are connected, as a table; tostring gives it as text */
static int plan_why(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t a = mgrid_lua_check_integer(L, 2), b = mgrid_lua_check_integer(L, 3);
  mgrid_error e = MGRID_ERROR_INIT;
  json_t *why;
  if (mgrid_plan_why_json(p, a, b, &why, &e)) return mgrid_lua_raise_error(L, &e);
  if (mgrid_take_json(L, why)) return lua_error(L);
  lua_createtable(L, 0, 1);
  for (int i = 1; i <= 3; i++) lua_pushvalue(L, i);
  lua_pushcclosure(L, why_tostring, 3);
  lua_setfield(L, -2, "__tostring");
  lua_setmetatable(L, -2);
  return 1;
}

/* plan:shares(family) -> the family whose communicators it uses | nil */
static int plan_shares(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int i = mgrid_lua_check_entry(L, p, 2);
  if (p->shares[i] >= 0)
    lua_pushstring(L, p->content.entry[p->shares[i]].name);
  else
    lua_pushnil(L);
  return 1;
}

/* plan:dry(rank) -> State without communicators */
static int plan_dry(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t rank = mgrid_lua_check_integer(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_state **box = mgrid_lua_new_state(L, true);
  mgrid_lua_keep_dry(L, box, p, rank, &e);
  return *box ? 1 : mgrid_lua_raise_error(L, &e);
}

/* push_creations(view, plan) -> the list of plan:creates */
static int push_creations(lua_State *L) {
  const mgrid_view *v = lua_touserdata(L, 1);
  const mgrid_plan *p = lua_touserdata(L, 2);
  lua_createtable(L, (int)v->ncomms, 0);
  for (size_t i = 0; i < v->ncomms; i++) {
    lua_createtable(L, 0, 3);
    mgrid_lua_set_string(L, "family", p->content.entry[v->comm[i].entry].name);
    mgrid_lua_set_integer(L, "group", v->comm[i].group);
    mgrid_lua_set_integer(L, "round", v->comm[i].round);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* plan:creates(rank) -> a list of { family, group, round }, in the order of creation */
static int plan_creates(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t rank = mgrid_lua_check_integer(L, 2);
  mgrid_view v;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, 16 * (nodes_of(p) + 1));
  lua_pushcfunction(L, push_creations);
  lua_pushlightuserdata(L, &v);
  lua_pushlightuserdata(L, p);
  if (mgrid_view_init(&v, p, rank, &e)) return mgrid_lua_raise_error(L, &e);
  int raised = lua_pcall(L, 2, 1, 0);
  mgrid_view_free(&v);
  return raised ? lua_error(L) : 1;
}

static int plan_world(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_plan(L, 1)->content.world);
  return 1;
}

static int plan_recipe(lua_State *L) {
  lua_pushstring(L, mgrid_lua_check_plan(L, 1)->content.recipe);
  return 1;
}

static int plan_digest(lua_State *L) {
  char digest[33];
  mgrid_plan_digest(mgrid_lua_check_plan(L, 1), digest);
  lua_pushstring(L, digest);
  return 1;
}

static int plan_families(lua_State *L) {
  const mgrid_content *c = &mgrid_lua_check_plan(L, 1)->content;
  MGRID_LUA_LIST(L, c->nentries, lua_pushstring(L, c->entry[i].name));
  return 1;
}

static int plan_grids(lua_State *L) {
  const mgrid_content *c = &mgrid_lua_check_plan(L, 1)->content;
  MGRID_LUA_LIST(L, c->ngrids, lua_pushstring(L, c->grid[i].name));
  return 1;
}

static int plan_len(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)mgrid_lua_check_plan(L, 1)->content.nentries);
  return 1;
}

static int plan_eq(lua_State *L) {
  mgrid_plan *a = mgrid_lua_check_plan(L, 1), *b = mgrid_lua_check_plan(L, 2);
  lua_pushboolean(L, a->digest[0] == b->digest[0] && a->digest[1] == b->digest[1]);
  return 1;
}

static int plan_tostring(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  char digest[33];
  mgrid_plan_digest(p, digest);
  digest[8] = '\0';
  lua_pushfstring(L, "Plan of %d famil%s over %I rank%s, digest %s...", (int)p->content.nentries,
                  p->content.nentries == 1 ? "y" : "ies", (LUAI_UACINT)p->content.world,
                  mgrid_s_of(p->content.world), digest);
  mgrid_lua_add_families(L, &p->content);
  return 1;
}

static const mgrid_lua_class plan_class;

/* __index of a Plan. Families and grids are not fields; the error for plan.tp says how to get
** them. */
static int plan_index(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
  if (key && mgrid_lua_class_get(L, &plan_class, 1, key)) return 1;
  const char *kind = !key                                        ? NULL
                     : mgrid_content_find(&p->content, key) >= 0 ? "family"
                     : mgrid_plan_grid(p, key)                   ? "grid"
                                                                 : NULL;
  if (kind)
    return mgrid_lua_raise_as(L, MGRID_UNKNOWN_NAME,
                              "a Plan has no field '%s'; plan:%s \"%s\" is its %s", key, kind, key,
                              kind);
  return key ? mgrid_lua_unknown_field(L, &plan_class, key) : mgrid_lua_no_list(L, MGRID_LUA_PLAN);
}

static int plan_next(lua_State *L) { /* plan, last name or nil -> name, Family */
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  int64_t i = lua_isnil(L, 2) ? -1 : mgrid_content_find(&p->content, luaL_checkstring(L, 2));
  if ((size_t)(i + 1) >= p->content.nentries) return 0;
  lua_pushstring(L, p->content.entry[i + 1].name);
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  box->f = mgrid_family_ref(p->content.entry[i + 1].family);
  return 2;
}

static int plan_pairs(lua_State *L) {
  mgrid_lua_check_plan(L, 1);
  lua_pushcfunction(L, plan_next);
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

/* plan.notes -> { "tensor 'w': axis 'x' has ...", ... } */
static int plan_notes(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  mgrid_text lines = { 0 };
  mgrid_lua_charge(L, 64 * (int64_t)p->content.nitems);
  mgrid_plan_notes(p, true, &lines);
  mgrid_lua_push_text(L, &lines);
  mgrid_lua_push_lines(L, lua_tostring(L, -1));
  mgrid_lua_charge_list(L, -1, 1 << 16); /* the ranks that each note has looked at */
  return 1;
}

static const luaL_Reg plan_fields[] = { { "world", plan_world },
                                        { "digest", plan_digest },
                                        { "families", plan_families },
                                        { "grids", plan_grids },
                                        { "recipe", plan_recipe },
                                        { "notes", plan_notes },
                                        { "params", mgrid_lua_plan_params },
                                        { "functions", mgrid_lua_plan_functions },
                                        { "concurrent", mgrid_lua_plan_concurrent },
                                        { NULL, NULL } };
static const luaL_Reg plan_methods[] = {
  { "json", plan_json },         { "text", plan_text },       { "schedule", plan_schedule },
  { "family", plan_family },     { "grid", plan_grid },       { "counts", plan_counts },
  { "rehearse", plan_rehearse }, { "check", plan_check },     { "law", plan_law },
  { "shares", plan_shares },     { "dry", plan_dry },         { "why", plan_why },
  { "rules", plan_rules },       { "creates", plan_creates }, { NULL, NULL }
};
static const luaL_Reg plan_meta[] = { { "__len", plan_len },
                                      { "__eq", plan_eq },
                                      { "__tostring", plan_tostring },
                                      { "__pairs", plan_pairs },
                                      { "__index", plan_index },
                                      { "__gc", mgrid_lua_free_box },
                                      { NULL, NULL } };
static const mgrid_lua_class plan_class = { MGRID_LUA_PLAN, plan_fields, plan_methods,
                                            mgrid_lua_plan_facts, plan_meta };

void mgrid_lua_open_plan(lua_State *L) {
  mgrid_lua_open_class(L, &plan_class);
  lua_pushcfunction(L, new_plan);
  lua_setfield(L, -2, "plan");
}
