/* SPDX-License-Identifier: MIT
**
** family_words.c - Family for Lua: its fields, its methods, and functions of several families.
** family_cut.c has the methods that cut groups or select some.
*/
#include "recipe/budget.h"

#include <inttypes.h>
#include <string.h>

int mgrid_lua_made_family(lua_State *L, mgrid_lua_family *box, const mgrid_error *e) {
  if (!box->f) return mgrid_lua_raise_error(L, e);
  mgrid_lua_weigh(L, box, sizeof *box + box->f->bytes);
  return 1;
}

void mgrid_lua_charge_lists(lua_State *L, const mgrid_family *f) {
  mgrid_lua_charge(L, 16 * f->total);
  /* 24 bytes for each member and group: a rank, two lists to sort, a start */
  mgrid_lua_reserve(L, f->total + f->count, 24);
}

void mgrid_lua_charge_family(lua_State *L, const mgrid_family *f) {
  if (!f->rule) mgrid_lua_charge(L, (int64_t)(f->bytes / 4));
}

static int family_bundle(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1), *box;
  int64_t n = mgrid_lua_check_integer(L, 2), work;
  mgrid_error e = MGRID_ERROR_INIT;
  box = mgrid_lua_derive_family(L, NULL);
  if (mgrid_bundle_lists(f->f, n, &work)) mgrid_lua_charge_lists(L, f->f);
  if (work) mgrid_lua_charge(L, work);
  box->f = mgrid_family_bundle(f->f, n, &e);
  return mgrid_lua_made_family(L, box, &e);
}

static int neighbours(lua_State *L, int64_t step, bool wrap) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1), *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  /* only groups of different sizes make lists */
  if (f->f->size < 0 && !f->f->form->in_turn) mgrid_lua_charge_lists(L, f->f);
  box->f = mgrid_family_neighbours(f->f, step, wrap, &e);
  return mgrid_lua_made_family(L, box, &e);
}

/* family:neighbours([step [, "wrap"]]) */
static int family_neighbours(lua_State *L) {
  return neighbours(L, mgrid_lua_opt_integer(L, 2, 1), mgrid_lua_check_wrap(L, 3));
}
static int family_pairs(lua_State *L) { return neighbours(L, 1, mgrid_lua_check_wrap(L, 2)); }

/* family:without{rank, ...}: the groups without these ranks, O(members) */
static int family_without(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  mgrid_lua_check_table(L, 2, "{ 3, 7 }");
  mgrid_lua_charge_lists(L, f->f);
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  size_t n;
  int64_t *ranks = mgrid_lua_check_integers(L, 2, &n);
  box->f = mgrid_family_without(f->f, n, ranks, &e);
  mgrid_release(ranks);
  return mgrid_lua_made_family(L, box, &e);
}

static int family_lists(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1), *box = mgrid_lua_derive_family(L, f);
  mgrid_lua_charge_lists(L, f->f);
  mgrid_error e = MGRID_ERROR_INIT;
  box->f = mgrid_family_lists(f->f, &e);
  return mgrid_lua_made_family(L, box, &e);
}

/* family:twin([options]): a twin of the family, with its options and these */
static int family_twin(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  const bool other = !lua_isnoneornil(L, 2);
  if (other) mgrid_lua_check_table(L, 2, "{ backend = \"mpi\" }");
  mgrid_lua_family *box = mgrid_lua_derive_family(L, other ? NULL : f);
  mgrid_error e = MGRID_ERROR_INIT;
  if (other) mgrid_lua_check_options(L, 2, f->choice, &box->choice);
  box->f = mgrid_family_twin(f->f, &e);
  return mgrid_lua_made_family(L, box, &e);
}

/* If the last argument of zip is "spread", remove it from the stack and return true. */
static bool take_spread(lua_State *L) {
  static const char *const known[] = { "spread" };
  if (lua_type(L, -1) != LUA_TSTRING) return false;
  if (strcmp(lua_tostring(L, -1), known[0]) != 0)
    mgrid_lua_unknown(L, "option", lua_tostring(L, -1), known, 1);
  lua_pop(L, 1);
  return true;
}

/* Charge for the lists of zip(..., "spread"): each family is spread over as many groups as the
** largest has. */
static void charge_spread(lua_State *L, int n, const mgrid_family *const *fs) {
  int64_t count = 0, total = 0;
  bool even = true;
  for (int i = 0; i < n; i++) count = fs[i]->count > count ? fs[i]->count : count;
  for (int i = 0; i < n; i++) {
    even &= fs[i]->count == count;
    if (fs[i]->count && fs[i]->size < 0) mgrid_lua_charge(L, fs[i]->count * fs[i]->nodes);
    if (fs[i]->count) total += mgrid_spread_total(fs[i], count);
    if (total > MGRID_WORLD_MAX) return; /* the zip will be refused */
  }
  if (even) return;
  mgrid_lua_charge(L, 16 * total);
  mgrid_lua_reserve(L, total + count, 24);
}

/* Make the closure by a rule, or else by lists, which are charged. */
static mgrid_family *closure(lua_State *L, size_t n, const mgrid_family *const *fs,
                             mgrid_error *e) {
  bool one_world = n > 0;
  for (size_t i = 1; i < n; i++) one_world &= fs[i]->world == fs[0]->world;
  mgrid_family *made = one_world ? mgrid_closure_by_rule(n, fs, e) : NULL;
  if (made || e->status) return made;
  if (one_world) mgrid_lua_charge(L, fs[0]->world);
  /* for each rank: its root, group, rank and start */
  if (one_world) mgrid_lua_reserve(L, fs[0]->world, 32);
  for (size_t i = 0; i < n; i++) mgrid_lua_charge_lists(L, fs[i]);
  return mgrid_family_closure(n, fs, e);
}

typedef enum joining { UNION, ZIP, SPREAD, CLOSURE } joining;

static int combine(lua_State *L, joining what) {
  enum { MAX = 64 };
  const mgrid_family *fs[MAX];
  int n = lua_gettop(L);
  if (n > MAX) return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "at most %d families at once", MAX);
  for (int i = 1; i <= n; i++) fs[i - 1] = mgrid_lua_check_family(L, i)->f;
  if (what == SPREAD) charge_spread(L, n, fs);
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  mgrid_budget *budget = mgrid_lua_work(L);
  mgrid_error e = MGRID_ERROR_INIT;
  box->f = what == CLOSURE  ? closure(L, (size_t)n, fs, &e)
           : what == SPREAD ? mgrid_family_spread((size_t)n, fs, budget, &e)
                            : mgrid_family_combine(what == ZIP, (size_t)n, fs, budget, &e);
  mgrid_lua_charge(L, 0);
  return mgrid_lua_made_family(L, box, &e);
}

static int families_union(lua_State *L) { return combine(L, UNION); }
static int families_closure(lua_State *L) { return combine(L, CLOSURE); }
static int families_zip(lua_State *L) { return combine(L, take_spread(L) ? SPREAD : ZIP); }

/* family:with{ timeout = 600, nccl = { max_ctas = 16 } } -> the family with its options and
** these */
static int family_with(lua_State *L) {
  mgrid_lua_family *f = mgrid_lua_check_family(L, 1);
  mgrid_lua_check_table(L, 2, "{ timeout = 600 }");
  mgrid_lua_family *box = mgrid_lua_derive_family(L, NULL);
  mgrid_lua_check_options(L, 2, f->choice, &box->choice);
  box->f = mgrid_family_ref(f->f);
  return 1;
}

/* Push the text of a list. A long list shows its first elements and the last. */
static int list_tostring(lua_State *L) {
  enum { WHOLE = 64, FIRST = 32 };
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer n = (lua_Integer)lua_rawlen(L, 1), shown = n > WHOLE ? FIRST : n;
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  luaL_addstring(&b, "{");
  for (lua_Integer i = 1; i <= n; i++) {
    if (i > shown && i < n) {
      luaL_addstring(&b, ", ...");
      i = n;
    }
    if (i > 1) luaL_addstring(&b, ", ");
    lua_rawgeti(L, 1, i);
    luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
    luaL_addvalue(&b);
  }
  luaL_addstring(&b, "}");
  luaL_pushresult(&b);
  return 1;
}

void mgrid_lua_printed_list(lua_State *L) {
  /* its address: the registry key of the metatable, which has no __name, so that messages call the
  ** list a table */
  static const char key;
  if (mgrid_budget_of(L)) return;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, list_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
  }
  lua_setmetatable(L, -2);
}

void mgrid_lua_push_ranks(lua_State *L, const mgrid_family *f, int64_t group) {
  int64_t n = mgrid_family_size(f, group);
  mgrid_lua_charge(L, n > INT64_MAX / (4 * f->nodes) ? INT64_MAX : 4 * n * f->nodes);
  mgrid_lua_reserve(L, n, 16);
  lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
  for (int64_t p = 0; p < n; p++) {
    lua_pushinteger(L, mgrid_family_rank(f, group, p));
    lua_rawseti(L, -2, p + 1);
  }
  mgrid_lua_printed_list(L);
}

/* family:ranks(group) -> list */
static int family_ranks(lua_State *L) {
  mgrid_family *f = mgrid_lua_check_family(L, 1)->f;
  int64_t group = mgrid_lua_check_integer(L, 2);
  if (group < 0 || group >= f->count)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "group %" PRId64 " is out of range (0 to %" PRId64 ")", group,
                              f->count - 1);
  mgrid_lua_push_ranks(L, f, group);
  return 1;
}

/* Push { { group, position }, ... } for all groups of a rank. */
static int all_places(lua_State *L, const mgrid_family *f, int64_t rank) {
  lua_newtable(L);
  for (int64_t nth = 0, at[2]; mgrid_family_locate(f, rank, nth, &at[0], &at[1]); nth++) {
    mgrid_lua_charge(L, 8 * f->nodes);
    MGRID_LUA_LIST(L, 2, lua_pushinteger(L, at[i]));
    lua_rawseti(L, -2, nth + 1);
  }
  return 1;
}

/* family:locate(rank [, nth]) -> group, position | nil; family:locate(rank, "all") -> a list */
static int family_locate(lua_State *L) {
  static const char *const known[] = { "all" };
  mgrid_family *f = mgrid_lua_check_family(L, 1)->f;
  const char *word = lua_type(L, 3) == LUA_TSTRING ? lua_tostring(L, 3) : NULL;
  if (f->nodes > 64) mgrid_lua_charge(L, f->nodes);
  if (word && strcmp(word, known[0]) != 0) return mgrid_lua_unknown(L, "option", word, known, 1);
  int64_t rank = mgrid_lua_check_integer(L, 2), nth = word ? 0 : mgrid_lua_opt_integer(L, 3, 0),
          group, position;
  if (rank < 0 || rank >= f->world)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "rank %" PRId64 " is out of range (0 to %" PRId64 ")", rank,
                              f->world - 1);
  if (word) return all_places(L, f, rank);
  if (!mgrid_family_locate(f, rank, nth, &group, &position)) return 0;
  lua_pushinteger(L, group);
  lua_pushinteger(L, position);
  return 2;
}

static int next_group(lua_State *L) { /* family, last group or nil -> group, ranks */
  mgrid_family *f = mgrid_lua_check_family(L, 1)->f;
  int64_t group = mgrid_lua_opt_integer(L, 2, -1);
  if (group < -1 || group >= f->count - 1) return 0;
  group++;
  lua_pushinteger(L, group);
  mgrid_lua_push_ranks(L, f, group);
  return 2;
}

/* for group, ranks in family:groups() do, as by pairs(family). family:groups{0, 3} and
** family:groups(0, 3) -> the family of these groups */
static int family_groups(lua_State *L) {
  mgrid_lua_check_family(L, 1);
  if (lua_gettop(L) > 1) return mgrid_lua_some_groups(L);
  lua_pushcfunction(L, next_group);
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

static int family_count(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_family(L, 1)->f->count);
  return 1;
}

static int family_size(lua_State *L) { /* nil if groups differ in size */
  return mgrid_lua_push_index(L, mgrid_lua_check_family(L, 1)->f->size);
}

static int family_coverage(lua_State *L) {
  static const char *const names[] = { "partition", "partial", "cover" };
  lua_pushstring(L, names[mgrid_family_coverage(mgrid_lua_check_family(L, 1)->f)]);
  return 1;
}

static int family_largest(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_family(L, 1)->f->max_size);
  return 1;
}

/* Push the lowest or highest rank; nil for a family without groups. */
static int push_bound(lua_State *L, const mgrid_family *f, int64_t rank) {
  f->count ? lua_pushinteger(L, rank) : lua_pushnil(L);
  return 1;
}

static int family_low(lua_State *L) {
  const mgrid_family *f = mgrid_lua_check_family(L, 1)->f;
  return push_bound(L, f, f->low);
}

static int family_high(lua_State *L) {
  const mgrid_family *f = mgrid_lua_check_family(L, 1)->f;
  return push_bound(L, f, f->high);
}

/* family:member(group, position) -> rank, number of ranks in the group. A negative position counts
** from the end */
static int family_member(lua_State *L) {
  const mgrid_family *f = mgrid_lua_check_family(L, 1)->f;
  int64_t group = mgrid_lua_check_integer(L, 2), at = mgrid_lua_check_integer(L, 3);
  mgrid_lua_charge(L, f->nodes);
  if (group < 0 || group >= f->count)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "group %" PRId64 " is out of range; there are %" PRId64, group,
                              f->count);
  int64_t size = mgrid_family_size(f, group);
  if (at < -size || at >= size)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "position %" PRId64 " is out of range; group %" PRId64 " has %" PRId64
                              " ranks",
                              at, group, size);
  lua_pushinteger(L, mgrid_family_rank(f, group, at < 0 ? at + size : at));
  lua_pushinteger(L, size);
  return 2;
}

static void set_modes(lua_State *L, const char *name, const mgrid_modes *modes) {
  lua_createtable(L, modes->n, 0);
  for (int i = 0; i < modes->n; i++) {
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, modes->at[i].size);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, modes->at[i].stride);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, name);
}

/* family:modes() -> the rule, as a table for world:modes; nil if the family has no rule */
static int family_modes(lua_State *L) {
  const mgrid_strided *rule = mgrid_lua_check_family(L, 1)->f->rule;
  if (!rule) return lua_pushnil(L), 1;
  lua_createtable(L, 0, 3);
  set_modes(L, "inside", &rule->inside);
  set_modes(L, "index", &rule->index);
  mgrid_lua_set_integer(L, "offset", rule->offset);
  return 1;
}

static int family_eq(lua_State *L) {
  mgrid_budget *budget = mgrid_lua_work(L);
  bool equal = mgrid_family_equal_paid(mgrid_lua_check_family(L, 1)->f,
                                       mgrid_lua_check_family(L, 2)->f, budget);
  mgrid_lua_charge(L, 0);
  lua_pushboolean(L, equal);
  return 1;
}

enum { SUMMARY = 256 };

/* Write the number of groups, their size, and the rule: "4 groups of 2: (2:1) x (4:2)". No garbage
** is collected meanwhile, so no finalizer can change the family. */
static void summarize(lua_State *L, const mgrid_family *f, char text[SUMMARY]) {
  char rule[160];
  mgrid_lua_charge_family(L, f);
  mgrid_lua_reserve(L, (int64_t)f->bytes, 2);
  if (mgrid_family_describe(f, rule, sizeof rule) >= sizeof rule)
    memcpy(rule + sizeof rule - 4, "...", 4);
  snprintf(text, SUMMARY, "%" PRId64 " group%s of %s%" PRId64 ": %s", f->count,
           mgrid_s_of(f->count), f->size < 0 ? "up to " : "", f->size < 0 ? f->max_size : f->size,
           rule);
}

static int family_tostring(lua_State *L) {
  char text[SUMMARY];
  summarize(L, mgrid_lua_check_family(L, 1)->f, text);
  lua_pushfstring(L, "Family of %s", text);
  return 1;
}

void mgrid_lua_add_lines(lua_State *L, size_t n, const void *of, mgrid_lua_line *write) {
  enum { LINES = 20 }; /* lines of a screen */
  int head = lua_gettop(L);
  size_t shown = n <= LINES ? n : LINES - 1;
  luaL_checkstack(L, LINES + 4, NULL);
  for (size_t i = 0; i < shown; i++) {
    char line[MGRID_LUA_COLUMNS + 1];
    mgrid_text_ellipsis(line, sizeof line, write(L, of, i, line));
    lua_pushfstring(L, "\n%s", line);
  }
  if (shown < n) lua_pushfstring(L, "\n  ... %d more", (int)(n - shown));
  lua_concat(L, lua_gettop(L) - head + 1);
}

static size_t write_entry(lua_State *L, const void *content, size_t i,
                          char line[MGRID_LUA_COLUMNS + 1]) {
  const mgrid_content *c = content;
  char text[SUMMARY];
  if (i >= c->nentries)
    return (size_t)snprintf(line, MGRID_LUA_COLUMNS + 1, "  (removed meanwhile)");
  summarize(L, c->entry[i].family, text);
  return (size_t)snprintf(line, MGRID_LUA_COLUMNS + 1, "  %-20s  %s", c->entry[i].name, text);
}

void mgrid_lua_add_families(lua_State *L, const mgrid_content *c) {
  mgrid_lua_add_lines(L, c->nentries, c, write_entry);
}

/* family:explain() -> the rule of the family; the rule in words */
static int family_explain(lua_State *L) {
  mgrid_family *f = mgrid_lua_check_family(L, 1)->f;
  mgrid_text t = { 0 };
  mgrid_lua_charge_family(L, f);
  mgrid_lua_reserve(L, (int64_t)f->bytes, 2);
  mgrid_family_text(f, &t);
  mgrid_lua_push_text(L, &t);
  f->form->explain(f, &t);
  mgrid_lua_push_text(L, &t);
  return 2;
}

/* -------------------------------------------------------------------- laws
** same(a, b), within(a, b), disjoint(a, b), covers(f): raise if the law does not hold, with the
** first counterexample.
*/

/* for messages, since a Family has no name */
static const mgrid_law_names in_order = { "the first family", "the second" };

/* Raise the error if the law `law` does not hold. NULL: the error names it. */
static int finish_law(lua_State *L, const char *law, mgrid_status s, const mgrid_error *e) {
  mgrid_lua_charge(L, 0);
  if (!s) return 0;
  return law ? mgrid_lua_raise_as(L, e->status, "%s: %s", law, e->message)
             : mgrid_lua_raise_error(L, e);
}

static int family_same(lua_State *L) {
  mgrid_family *a = mgrid_lua_check_family(L, 1)->f, *b = mgrid_lua_check_family(L, 2)->f;
  mgrid_budget *budget = mgrid_lua_work(L);
  mgrid_error e = MGRID_ERROR_INIT;
  return finish_law(L, NULL, mgrid_law_same(a, b, budget, &e), &e);
}

static int within(lua_State *L) {
  mgrid_family *a = mgrid_lua_check_family(L, 1)->f, *b = mgrid_lua_check_family(L, 2)->f;
  mgrid_budget *budget = mgrid_lua_work(L);
  mgrid_error e = MGRID_ERROR_INIT;
  return finish_law(L, "within", mgrid_law_within(a, b, &in_order, budget, &e), &e);
}

static int disjoint(lua_State *L) {
  mgrid_family *a = mgrid_lua_check_family(L, 1)->f, *b = mgrid_lua_check_family(L, 2)->f;
  mgrid_budget *budget = mgrid_lua_work(L);
  mgrid_error e = MGRID_ERROR_INIT;
  return finish_law(L, "disjoint", mgrid_law_disjoint(a, b, &in_order, budget, &e), &e);
}

static int covers(lua_State *L) {
  mgrid_family *f = mgrid_lua_check_family(L, 1)->f;
  mgrid_budget *budget = mgrid_lua_work(L);
  mgrid_error e = MGRID_ERROR_INIT;
  return finish_law(L, "covers", mgrid_law_covers(f, budget, &e), &e);
}

static const luaL_Reg family_fields[] = { { "count", family_count },
                                          { "size", family_size },
                                          { "largest", family_largest },
                                          { "coverage", family_coverage },
                                          { "low", family_low },
                                          { "high", family_high },
                                          { NULL, NULL } };
static const luaL_Reg family_methods[] = {
  { "pick", mgrid_lua_family_pick }, { "bundle", family_bundle },
  { "pairs", family_pairs },         { "neighbours", family_neighbours },
  { "map", mgrid_lua_family_map },   { "without", family_without },
  { "lists", family_lists },         { "twin", family_twin },
  { "with", family_with },           { "ranks", family_ranks },
  { "locate", family_locate },       { "member", family_member },
  { "modes", family_modes },         { "groups", family_groups },
  { "explain", family_explain },     { NULL, NULL }
};
static const luaL_Reg family_meta[] = {
  { "__gc", mgrid_lua_free_box },    { "__len", family_count },    { "__eq", family_eq },
  { "__tostring", family_tostring }, { "__pairs", family_groups }, { NULL, NULL }
};
static const mgrid_lua_class family_class = { MGRID_LUA_FAMILY, family_fields, family_methods,
                                              mgrid_lua_family_pieces, family_meta };

void mgrid_lua_open_family(lua_State *L) {
  static const luaL_Reg functions[] = {
    { "union", families_union }, { "zip", families_zip }, { "closure", families_closure },
    { "same", family_same },     { "within", within },    { "disjoint", disjoint },
    { "covers", covers },        { NULL, NULL }
  };
  mgrid_lua_open_class(L, &family_class);
  luaL_setfuncs(L, functions, 0);
}
