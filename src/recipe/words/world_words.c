/* SPDX-License-Identifier: MIT
**
** world_words.c - World for Lua: the ranks of a world, a window of them, or some of them in another
** order.
*/
#include "recipe/bind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- world:modes */

/* Read the modes {size, stride} in field `name` of the table at 2. Return their number. */
static size_t check_modes(lua_State *L, const char *name, mgrid_mode *modes, size_t most) {
  if (lua_getfield(L, 2, name) == LUA_TNIL) {
    lua_pop(L, 1);
    return 0;
  }

  if (!lua_istable(L, -1))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "modes: '%s' is %s, not a list of {size, stride}", name,
                       mgrid_lua_kind(L, -1));
  size_t n = lua_rawlen(L, -1);
  if (n > most) mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "modes: at most %zu, not %zu", most, n);

  for (size_t i = 0; i < n; i++) {
    bool pair = lua_rawgeti(L, -1, (lua_Integer)i + 1) == LUA_TTABLE && lua_rawlen(L, -1) == 2;
    int64_t value[2] = { 0, 0 };
    for (int k = 0; k < 2 && pair; k++) {
      lua_rawgeti(L, -1, k + 1);
      pair = lua_isinteger(L, -1);
      value[k] = lua_tointeger(L, -1);
      lua_pop(L, 1);
    }
    if (!pair)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "modes: %s mode %zu is not {size, stride}", name, i);
    modes[i] = (mgrid_mode){ value[0], value[1] };
    lua_pop(L, 1);
  }

  lua_pop(L, 1);
  return n;
}

/* world:modes{ inside = { {2, 1} }, index = { {4, 2} }, offset = 0 }, world:modes "(2:1) x (4:2) +
** 0" */
static int world_modes(lua_State *L) {
  enum { MOST = 64 };
  static const char *const options[] = { "inside", "index", "offset" };
  const mgrid_lua_world *in = mgrid_lua_check_world(L, 1);
  mgrid_window w = in->window;
  mgrid_mode inside[MOST], index[MOST];
  size_t ninside = 0, nindex = 0;
  int64_t offset = 0;

  if (in->order)
    return mgrid_lua_raise(
        L, "modes cannot use the order of this World; take the modes of the world itself");
  lua_settop(L, 2);
  const char *text = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
  if (!text) {
    luaL_argexpected(L, lua_istable(L, 2), 2, "table or text");
    mgrid_lua_check_keys(L, 2, "option", options, 3, false);
    ninside = check_modes(L, "inside", inside, MOST);
    nindex = check_modes(L, "index", index, MOST);
    if (lua_getfield(L, 2, "offset") != LUA_TNIL && !lua_isinteger(L, -1))
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "modes: the offset is %s, not an integer",
                                mgrid_lua_kind(L, -1));
    offset = lua_tointeger(L, -1);
  }
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  mgrid_error e = MGRID_ERROR_INIT;

  /* try without lists first; charge for lists before making them */
  for (int lists = 0; lists < 2 && !box->f && !e.status; lists++) {
    if (lists) mgrid_lua_charge(L, 16 * w.size);
    if (lists) mgrid_lua_reserve(L, w.size, 24);
    box->f = text ? mgrid_layout_parse(w, text, lists, &e)
                  : mgrid_layout_modes(w, offset, ninside, inside, nindex, index, lists, &e);
  }
  return mgrid_lua_made_family(L, box, &e);
}

static const luaL_Reg layouts[] = { { "modes", world_modes }, { NULL, NULL } };

/* --------------------------------------------------- lists of ranks as text
** A user who ports a system pastes the lists of ranks that its loops print. This turns such a text,
** "[[0, 1], [2, 3]]", into a Lua table. It also accepts one list on each line; tuples;
** range(0, 8, 2); array(...) and tensor(...); spaces instead of commas, as numpy prints them.
*/

typedef struct reader {
  lua_State *L;
  const char *text, *p;
  int64_t world; /* all ranks are below it */
  int words;     /* how many words such as list(tuple(... are open around the current value */
} reader;

/* Raise that the text at r->p is not the expected one. Name its line, and quote it. */
static int world_stuck(const reader *r, const char *expected) {
  int line = 1;
  for (const char *p = r->text; p < r->p; p++) line += *p == '\n';
  return mgrid_lua_raise(r->L, "line %d of the lists: %s expected %s%.20s%s", line, expected,
                         *r->p ? "at '" : "at the end", r->p, *r->p ? "'" : "");
}

/* Skip what separates values. */
static void pasted_skip(reader *r) { r->p += strspn(r->p, " \t\r\n,"); }

/* Skip this word, if it is next. */
static bool world_word(reader *r, const char *name) {
  size_t len = strlen(name);
  if (strncmp(r->p, name, len) != 0 || mgrid_is_letter(r->p[len]) || mgrid_is_digit(r->p[len]))
    return false;
  r->p += len;
  pasted_skip(r);
  return true;
}

static lua_Integer world_integer(reader *r) {
  char *end;
  errno = 0;
  long long n = strtoll(r->p, &end, 10);
  if (end == r->p || *end == '.' || errno) world_stuck(r, "a rank");
  r->p = end;
  pasted_skip(r);
  return n;
}

/* Read "(0, 8, 2)" after the word range. Append its numbers to the table on the top. */
static void range(reader *r) {
  lua_Integer n[3] = { 0, 0, 1 }, given = 0, at = (lua_Integer)lua_rawlen(r->L, -1);
  if (*r->p++ != '(') r->p--, world_stuck(r, "'(' of range");
  for (pasted_skip(r); given < 3 && *r->p != ')'; given++) n[given] = world_integer(r);
  if (*r->p != ')' || given == 0) world_stuck(r, "')' of range");
  if (given == 1) n[1] = n[0], n[0] = 0;
  if (n[2] == 0) world_stuck(r, "a step other than 0 of range");
  if (n[0] < 0 || n[0] > r->world || n[1] > r->world) world_stuck(r, "a range within the world");
  for (lua_Integer i = n[0]; n[2] > 0 ? i < n[1] : i > n[1] && i >= 0;) {
    mgrid_lua_charge(r->L, 16);
    lua_pushinteger(r->L, i);
    lua_rawseti(r->L, -2, ++at);
    if (n[2] > r->world || n[2] < -r->world) break;
    i += n[2];
  }
  r->p++;
  pasted_skip(r);
}

/* Append the values up to the character `close` to the table on the top. At level 0 these are
** tables; from level 1 on they may also be numbers. */
static void items(reader *r, char close, int level) {
  for (pasted_skip(r); *r->p != close;) {
    bool wrapped = world_word(r, "list") || world_word(r, "tuple") || world_word(r, "array")
                   || world_word(r, "tensor");
    char open = *r->p;
    mgrid_lua_charge(r->L, 16);
    if (world_word(r, "range")) {
      if (level < 2) lua_createtable(r->L, 0, 0);
      range(r);
      if (level < 2) lua_rawseti(r->L, -2, (lua_Integer)lua_rawlen(r->L, -2) + 1);
    } else if (wrapped && open == '(') {
      if (++r->words > 4) world_stuck(r, "a rank");
      r->p++;
      items(r, ')', level);
      r->words--;
    } else if (open == '[' || open == '(' || open == '{') {
      if (level == 3) world_stuck(r, "a rank");
      r->p++;
      lua_createtable(r->L, 0, 0);
      items(r, open == '[' ? ']' : open == '(' ? ')' : '}', level + 1);
      lua_rawseti(r->L, -2, (lua_Integer)lua_rawlen(r->L, -2) + 1);
    } else if (level == 0 || *r->p == '\0') {
      world_stuck(r, *r->p ? "'['" : "the end of a list");
    } else {
      lua_pushinteger(r->L, world_integer(r));
      lua_rawseti(r->L, -2, (lua_Integer)lua_rawlen(r->L, -2) + 1);
    }
  }

  if (close) r->p++;
  pasted_skip(r);
}

/* Replace the text at i by a table of lists of ranks below `world`. May raise. */
static void read_pasted(lua_State *L, int i, int64_t world) {
  reader r = { L, lua_tostring(L, i), NULL, world, 0 };
  mgrid_lua_charge(L, (int64_t)lua_rawlen(L, i));
  mgrid_lua_stack(L, 8);
  r.p = r.text + strspn(r.text, " \t\r\n");
  if (mgrid_is_digit(*r.p)
      /* in world:table [[0, 1], [2, 3]] Lua has taken the outer brackets */
      && r.p[strcspn(r.p, "]\n")] != '\n') {
    lua_pushfstring(L, "[[%s]]", r.text);
    r.text = r.p = lua_tostring(L, -1);
    lua_replace(L, i);
  }
  lua_createtable(L, 0, 0);
  items(&r, '\0', 0);
  int all = lua_gettop(L);
  bool around = lua_rawlen(L, all) == 1 && lua_rawgeti(L, all, 1) == LUA_TTABLE
                && lua_rawgeti(L, all + 1, 1) == LUA_TTABLE;
  lua_pushvalue(L, around ? all + 1 : all); /* a list around the groups is not a group */
  lua_replace(L, i);
  lua_settop(L, all - 1);
}

/* ------------------------------------------------------------------- worlds */

static int64_t size_of(const mgrid_lua_world *w) {
  return w->order ? w->order->size : w->window.size;
}

/* Give a World an order, and take ownership of the order. If `order` is NULL, raise the error. */
static int set_order(lua_State *L, mgrid_lua_world *box, mgrid_family *order,
                     const mgrid_error *e) {
  bool plain;
  if (!order) return mgrid_lua_raise_error(L, e);
  box->order = order;
  box->window = mgrid_order_window(order, &plain);
  mgrid_lua_weigh(L, box, sizeof *box + (plain ? 0 : order->bytes));
  if (!plain) return 1;
  mgrid_family_free(order);
  box->order = NULL;
  return 1;
}

/* ------------------------------------------------------------------- parts */

/* world:window(offset [, size]): consecutive ranks. If the World has another order: consecutive
** positions, O(size) */
static int world_window(lua_State *L) {
  const mgrid_lua_world *w = mgrid_lua_check_world(L, 1);
  int64_t all = size_of(w), offset = mgrid_lua_check_integer(L, 2);

  if (offset < 0 || offset >= all)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "window offset %" PRId64 " is outside the %" PRId64
                              " ranks (0 to %" PRId64 ")",
                              offset, all, all - 1);
  int64_t size = mgrid_lua_opt_integer(L, 3, all - offset);
  if (size < 1 || size > all - offset)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "a window from %" PRId64 " has 1 to %" PRId64 " ranks, not %" PRId64,
                              offset, all - offset, size);
  mgrid_lua_world *box = mgrid_lua_new_world(L);
  if (!w->order) {
    box->window = (mgrid_window){ w->window.world, w->window.offset + offset, size };
    return 1;
  }
  mgrid_lua_charge(L, 16 * size);
  mgrid_lua_reserve(L, size, 24);
  mgrid_error e = MGRID_ERROR_INIT;
  int32_t *ranks = mgrid_realloc(NULL, NULL, 0, (size_t)size * sizeof *ranks);
  if (ranks) mgrid_family_slice(w->order, 0, offset, size, ranks);
  return set_order(L, box, mgrid_order_list(w->window, size, ranks, &e), &e);
}

/* Raise unless all ranks of `part` are ranks of w. */
static void check_within(lua_State *L, const mgrid_lua_world *w, const mgrid_lua_world *part) {
  const mgrid_window *in = &w->window, *of = &part->window;
  if (of->world != in->world)
    mgrid_lua_raise(L, "the family is of a world of %" PRId64 " ranks, and this one has %" PRId64,
                    of->world, in->world);
  if (of->offset < in->offset || of->offset + of->size > in->offset + in->size)
    mgrid_lua_raise_as(
        L, MGRID_OUT_OF_RANGE,
        "the family has ranks %" PRId64 " to %" PRId64 "; this World has %" PRId64 " to %" PRId64,
        of->offset, of->offset + of->size - 1, in->offset, in->offset + in->size - 1);
  if (!w->order) return;
  mgrid_lua_charge(L, 16 * size_of(part));
  for (int64_t i = 0, n = size_of(part), group, position; i < n; i++) {
    int64_t rank = part->order ? mgrid_family_rank(part->order, 0, i) : of->offset + i;
    if (!mgrid_family_locate(w->order, rank, 0, &group, &position))
      mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                         "rank %" PRId64 " at position %" PRId64
                         " of the order is not in this World, which has %" PRId64 " of the ranks",
                         rank, i, size_of(w));
  }
}

/* Replace the function at index fn by the list of its results f(position, size) for all
** positions. */
static void call_for_each(lua_State *L, int fn, int64_t size) {
  lua_createtable(L, 0, 0);
  for (int64_t i = 0; i < size; i++) {
    lua_pushvalue(L, fn);
    lua_pushinteger(L, i);
    lua_pushinteger(L, size);
    lua_call(L, 2, 1);
    if (!lua_isinteger(L, -1))
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                         "order: the function gave %s for position %" PRId64 ", not a rank",
                         mgrid_lua_kind(L, -1), i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_replace(L, fn);
}

/* Push a World with the ranks of the family f in its order, or if f is NULL with the n ranks in the
** list at 2. Raise if a rank is not in the World at 1. */
MGRID_APART static int order_of(lua_State *L, const mgrid_lua_family *f, int64_t n) {
  const mgrid_lua_world *w = mgrid_lua_check_world(L, 1);
  mgrid_lua_world *box = mgrid_lua_new_world(L);
  mgrid_error e = MGRID_ERROR_INIT;

  if (f) {
    set_order(L, box, mgrid_order_of(f->f, &e), &e);
    check_within(L, w, box);
    return 1;
  }
  for (int64_t i = 0; i < n; i++) { /* check all before allocating, because an error would leak */
    lua_rawgeti(L, 2, i + 1);
    int64_t rank = lua_tointeger(L, -1);
    if (!lua_isinteger(L, -1))
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                                "position %" PRId64 " of the order holds %s, not a rank", i,
                                mgrid_lua_kind(L, -1));
    if (rank < 0 || rank > MGRID_WORLD_MAX)
      return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                                "rank %" PRId64 " at position %" PRId64
                                " of the order is out of range; ranks are %" PRId64 " to %" PRId64,
                                rank, i, w->window.offset, w->window.offset + w->window.size - 1);
    lua_pop(L, 1);
  }
  int32_t *ranks = mgrid_realloc(NULL, NULL, 0, (size_t)(n + 1) * sizeof *ranks);
  for (int64_t i = 0; i < n && ranks; i++) {
    lua_rawgeti(L, 2, i + 1);
    ranks[i] = (int32_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  set_order(L, box, mgrid_order_list(w->window, n, ranks, &e), &e);
  check_within(L, w, box);
  return 1;
}

/* world:order(list), world:order(function(position, size)): O(size log(size)).
** world:order(family of one group): O(modes) if it is strided */
static int world_order(lua_State *L) {
  const mgrid_lua_world *w = mgrid_lua_check_world(L, 1);
  const mgrid_lua_family *f = mgrid_lua_test_box(L, 2, MGRID_LUA_FAMILY);
  bool fn = lua_isfunction(L, 2);
  luaL_argexpected(L, f || lua_istable(L, 2) || fn, 2, "list of ranks, function or family");
  lua_settop(L, 2);
  int64_t n = f ? f->f->total : fn ? size_of(w) : (int64_t)lua_rawlen(L, 2);
  if (!f || !f->f->rule) mgrid_lua_charge(L, n > INT64_MAX / 16 ? n : 16 * n);
  if (!f) mgrid_lua_reserve(L, n, 24);
  if (fn) call_for_each(L, 2, n);
  return order_of(L, f, n);
}

/* world:table(lists or their text, "partition" | "partial" | "cover") */
static int world_table(lua_State *L) {
  static const char *const kinds[] = { "partition", "partial", "cover" };
  const mgrid_lua_world *in = mgrid_lua_check_world(L, 1);
  mgrid_window w = in->window;

  if (in->order)
    return mgrid_lua_raise(
        L, "a table cannot use the order of this World; make the table of the world itself, "
           "\"partial\" if it leaves out ranks");
  if (lua_type(L, 2) == LUA_TSTRING) read_pasted(L, 2, w.offset + w.size);
  mgrid_lua_check_table(L, 2, "{ { 0, 1 }, { 2, 3 } }");
  const char *said = luaL_optstring(L, 3, kinds[0]);
  int kind = 0;
  while (kind < 3 && strcmp(said, kinds[kind]) != 0) kind++;
  if (kind == 3) return mgrid_lua_unknown(L, "kind of table", said, kinds, 3);
  int64_t count = (int64_t)lua_rawlen(L, 2), total = 0;
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  /* check all before allocating, because an error would leak */
  for (int64_t g = 1; g <= count; g++) {
    if (lua_rawgeti(L, 2, g) != LUA_TTABLE)
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                                "group %" PRId64 " of the table is %s, not a list of ranks", g - 1,
                                mgrid_lua_kind(L, -1));
    int64_t n = (int64_t)mgrid_lua_charge_list(L, -1, 16);
    for (int64_t i = 1; i <= n; i++) {
      lua_rawgeti(L, -1, i);
      int64_t rank = lua_tointeger(L, -1);
      if (!lua_isinteger(L, -1))
        return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                                  "group %" PRId64 " of the table holds %s, not a rank", g - 1,
                                  mgrid_lua_kind(L, -1));
      if (rank < 0 || rank > MGRID_WORLD_MAX)
        return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                                  "rank %" PRId64 " of group %" PRId64
                                  " is out of range; ranks are %" PRId64 " to %" PRId64,
                                  rank, g - 1, w.offset, w.offset + w.size - 1);
      lua_pop(L, 1);
    }
    total += n;
    lua_pop(L, 1);
  }
  mgrid_lua_reserve(L, total + count, 24);
  int64_t *starts = mgrid_realloc(NULL, NULL, 0, (size_t)(count + 1) * sizeof *starts);
  int32_t *ranks = mgrid_realloc(NULL, NULL, 0, (size_t)(total + 1) * sizeof *ranks);
  int64_t at = 0;
  for (int64_t g = 1; starts && ranks && g <= count; g++) {
    lua_rawgeti(L, 2, g);
    starts[g - 1] = at;
    for (int64_t i = 1, n = (int64_t)lua_rawlen(L, -1); i <= n; i++) {
      lua_rawgeti(L, -1, i);
      ranks[at++] = (int32_t)lua_tointeger(L, -1);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  mgrid_error e = MGRID_ERROR_INIT;
  if (starts) starts[count] = at;
  if (starts && ranks)
    box->f = mgrid_table_of(w, count, starts, ranks, (mgrid_coverage)kind, &e);
  else
    mgrid_oom(&e);
  mgrid_release(starts);
  mgrid_release(ranks);
  return mgrid_lua_made_family(L, box, &e);
}

/* ------------------------------------------------------------------ answers */

static int world_size(lua_State *L) {
  lua_pushinteger(L, size_of(mgrid_lua_check_world(L, 1)));
  return 1;
}

static int world_offset(lua_State *L) {
  const mgrid_lua_world *w = mgrid_lua_check_world(L, 1);
  if (w->order)
    return mgrid_lua_raise(
        L, "a World in another order has no offset; world:rank(0) is its first rank");
  lua_pushinteger(L, w->window.offset);
  return 1;
}

/* world:rank(position) -> rank */
static int world_rank(lua_State *L) {
  const mgrid_lua_world *w = mgrid_lua_check_world(L, 1);
  int64_t position = mgrid_lua_check_integer(L, 2), size = size_of(w);
  if (position < 0 || position >= size)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "position %" PRId64 " is out of range (0 to %" PRId64 ")", position,
                              size - 1);
  lua_pushinteger(L, w->order ? mgrid_family_rank(w->order, 0, position)
                              : w->window.offset + position);
  return 1;
}

static int world_tostring(lua_State *L) {
  const mgrid_lua_world *w = mgrid_lua_check_world(L, 1);
  LUAI_UACINT first = w->window.offset, size = size_of(w);
  char order[160];
  if (w->order) {
    mgrid_text t = { 0 };
    mgrid_order_text(w->order, &t);
    mgrid_text_ellipsis(order, sizeof order, mgrid_text_finish(&t, order, sizeof order));
    lua_pushfstring(L, "World of %I ranks, order %s", size, order);
  } else if (w->window.size == w->window.world) {
    lua_pushfstring(L, "World of %I ranks", size);
  } else {
    lua_pushfstring(L, "World of %I ranks, window %I..%I", (LUAI_UACINT)w->window.world, first,
                    first + size - 1);
  }
  return 1;
}

static int world_eq(lua_State *L) {
  const mgrid_lua_world *a = mgrid_lua_check_world(L, 1), *b = mgrid_lua_check_world(L, 2);
  const mgrid_window *x = &a->window, *y = &b->window;
  bool order = a->order && b->order ? mgrid_family_same_rule(a->order, b->order)
                                    : a->order == b->order;
  lua_pushboolean(L, order && x->world == y->world && x->offset == y->offset && x->size == y->size);
  return 1;
}

static int new_world(lua_State *L) {
  int64_t size = mgrid_lua_check_integer(L, 1);
  if (size < 1 || size > MGRID_WORLD_MAX)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "a world has 1 to %" PRId64 " ranks, not %" PRId64, MGRID_WORLD_MAX,
                              size);
  mgrid_lua_new_world(L)->window = mgrid_world(size);
  return 1;
}

/* Refuse arithmetic and comparison with a World, where a recipe means its size. */
static int no_number(lua_State *L) {
  return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                            "a World is not a number; world.size is its number of ranks");
}

static const luaL_Reg fields[] = { { "size", world_size },
                                   { "offset", world_offset },
                                   { NULL, NULL } };
static const luaL_Reg methods[] = { { "window", world_window },
                                    { "order", world_order },
                                    { "table", world_table },
                                    { "rank", world_rank },
                                    { NULL, NULL } };
static const luaL_Reg meta[] = { { "__len", world_size }, { "__tostring", world_tostring },
                                 { "__eq", world_eq },    { "__gc", mgrid_lua_free_box },
                                 { "__add", no_number },  { "__sub", no_number },
                                 { "__mul", no_number },  { "__div", no_number },
                                 { "__idiv", no_number }, { "__mod", no_number },
                                 { "__lt", no_number },   { "__le", no_number },
                                 { NULL, NULL } };
static const mgrid_lua_class world_class = { MGRID_LUA_WORLD, fields, methods, layouts, meta };

void mgrid_lua_open_world(lua_State *L) {
  mgrid_lua_open_class(L, &world_class);
  lua_pushcfunction(L, new_world);
  lua_setfield(L, -2, "world");
}
