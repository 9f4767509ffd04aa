/* SPDX-License-Identifier: MIT
**
** bind.c - errors, metatables, checks of arguments, the C objects of userdata, and the Lua files
** that are embedded in the library.
*/
#include "recipe/budget.h"
#include "recipe/bundle.h"
#include "recipe/module_row.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- C objects
** Userdata own C objects, which are in boxes outside of the Lua heap. The boxes of a runtime are in
** a list of its budget, because Lua skips finalizers at the deepest level of calls: the objects
** that remain are released with the runtime. The bytes of an object count as memory of the recipe.
*/

/* The header of a box. */
struct mgrid_lua_held {
  mgrid_lua_held *prev, *next;
  mgrid_lua_budget *budget; /* of the Lua state; NULL: the Lua state is a host's */
  void (*release)(void *box);
  size_t bytes; /* counted as memory of the recipe */
};

static void *bind_box_of(mgrid_lua_held *h) { return h + 1; }
static mgrid_lua_held *held_of(void *box) { return (mgrid_lua_held *)box - 1; }

static void box_drop(mgrid_lua_held *h) {
  mgrid_lua_budget *b = h->budget;
  if (b) {
    *(h->prev ? &h->prev->next : &b->held) = h->next;
    if (h->next) h->next->prev = h->prev;
    b->used -= h->bytes;
  }
  h->release(bind_box_of(h));
  mgrid_release(h);
}

void mgrid_budget_release(mgrid_lua_budget *b) {
  while (b->held) box_drop(b->held);
}

void *mgrid_lua_new_box(lua_State *L, size_t size, int values, const char *class,
                        void (*release)(void *box)) {
  mgrid_lua_budget *b = mgrid_budget_of(L);
  size_t bytes = sizeof(mgrid_lua_held) + size;
  mgrid_lua_held **owner = lua_newuserdatauv(L, sizeof *owner, values), *h;
  *owner = NULL;
  luaL_setmetatable(L, class);
  /* Ask for more than needed, so that garbage is collected here, with finalizers. When memory runs
  ** out in the allocator, Lua collects garbage without calling finalizers. */
  if (b && !mgrid_budget_has(b, bytes + b->limits.memory / 64)) mgrid_budget_refuse(L, b);
  if (!(h = mgrid_zeroed(NULL, bytes))) mgrid_lua_oom(L);
  *h = (mgrid_lua_held){ NULL, b ? b->held : NULL, b, release, bytes };
  if (b) {
    if (h->next) h->next->prev = h;
    b->held = h;
    b->used += bytes;
  }
  *owner = h;
  return bind_box_of(h);
}

void *mgrid_lua_in_box(void *userdata) {
  mgrid_lua_held *h = userdata ? *(mgrid_lua_held **)userdata : NULL;
  return h ? bind_box_of(h) : NULL;
}

void *mgrid_lua_test_box(lua_State *L, int i, const char *class) {
  return mgrid_lua_in_box(luaL_testudata(L, i, class));
}

void *mgrid_lua_check_box(lua_State *L, int i, const char *class) {
  void *box = mgrid_lua_in_box(luaL_checkudata(L, i, class));
  if (!box) mgrid_lua_raise(L, "this %s is freed", strrchr(class, '.') + 1);
  return box;
}

/* With the debug library a program can also call this, with any value. */
int mgrid_lua_free_box(lua_State *L) {
  if (!mgrid_lua_collected(L)) return 0;
  bool ours = lua_type(L, 1) == LUA_TUSERDATA && luaL_getmetafield(L, 1, "__gc") != LUA_TNIL
              && lua_tocfunction(L, -1) == mgrid_lua_free_box;
  mgrid_lua_held **owner = ours ? lua_touserdata(L, 1) : NULL, *h = owner ? *owner : NULL;
  if (!h) return 0;
  *owner = NULL;
  box_drop(h);
  return 0;
}

void mgrid_lua_weigh(lua_State *L, void *box, size_t bytes) {
  mgrid_lua_held *h = held_of(box);
  mgrid_lua_budget *b = h->budget;
  if (!b) return;
  b->used += bytes - h->bytes;
  h->bytes = bytes;
  if (b->used > b->limits.memory && !mgrid_budget_has(b, 0)) mgrid_budget_refuse(L, b);
}

void mgrid_lua_reserve(lua_State *L, int64_t n, size_t each) {
  mgrid_lua_budget *b = mgrid_budget_of(L);
  if (!b || n <= 0) return;
  size_t bytes = (uint64_t)n > SIZE_MAX / each ? SIZE_MAX : (size_t)n * each;
  if (!mgrid_budget_has(b, bytes)) mgrid_budget_refuse(L, b);
}

/* ------------------------------------------------------------------- errors */

bool mgrid_lua_caller(lua_State *L, lua_Debug *ar) {
  for (int level = 0; level < MGRID_FRAMES && lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "S", ar);
    /* do not ask for the lines of moongrid's own functions, because that takes longer */
    if (strncmp(ar->source, "=moongrid", 9) == 0) continue;
    lua_getinfo(L, "l", ar);
    if (ar->currentline > 0) return true;
  }
  return false;
}

void mgrid_lua_where(lua_State *L) {
  lua_Debug ar;
  if (mgrid_lua_caller(L, &ar))
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else
    lua_pushliteral(L, "");
}

int mgrid_lua_raise_at(lua_State *L, const char *where, mgrid_status status, const char *message) {
  mgrid_lua_note(L, status, message);
  lua_pushfstring(L, "%s%s", where, message);
  return lua_error(L);
}

static int raise(lua_State *L, mgrid_status status, const char *message) {
  mgrid_lua_where(L);
  return mgrid_lua_raise_at(L, lua_tostring(L, -1), status, message);
}

int mgrid_lua_raise(lua_State *L, const char *fmt, ...) {
  char text[1024];
  va_list args;
  va_start(args, fmt);
  mgrid_vformat(text, sizeof text, fmt, args);
  va_end(args);
  return raise(L, MGRID_REFUSED, text);
}

int mgrid_lua_raise_as(lua_State *L, mgrid_status status, const char *fmt, ...) {
  char text[1024];
  va_list args;
  va_start(args, fmt);
  mgrid_vformat(text, sizeof text, fmt, args);
  va_end(args);
  return raise(L, status, text);
}

int mgrid_lua_raise_error(lua_State *L, const mgrid_error *e) {
  return raise(L, e->status, e->message);
}

int mgrid_lua_raise_runtime(lua_State *L, const mgrid_error *e) {
  return e->line ? mgrid_lua_raise_at(L, "", e->status, e->message) : mgrid_lua_raise_error(L, e);
}

int mgrid_lua_oom(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_oom(&e);
  return mgrid_lua_raise_error(L, &e);
}

int mgrid_lua_failure(lua_State *L, const mgrid_error *e) {
  lua_pushnil(L);
  lua_pushstring(L, e->message);
  lua_pushinteger(L, e->status);
  if (e->nmissing == 0) return 3;
  lua_createtable(L, 0, 4);
  mgrid_lua_set_integer(L, "n", e->nmissing);
  mgrid_lua_set_number(L, "seconds", e->waited);
  mgrid_lua_set_string(L, "call", e->call);
  MGRID_LUA_LIST(L, e->nmissing < MGRID_MISSING_SHOWN ? e->nmissing : MGRID_MISSING_SHOWN,
                 lua_pushinteger(L, e->missing[i]));
  lua_setfield(L, -2, "ranks");
  return 4;
}

int mgrid_lua_done(lua_State *L, mgrid_status status, const mgrid_error *e) {
  if (status) return mgrid_lua_failure(L, e);
  lua_pushboolean(L, 1);
  return 1;
}

void mgrid_lua_read_failure(lua_State *L, int i, const char *call, mgrid_error *e) {
  if (lua_isnone(L, i) || lua_toboolean(L, i)) return;
  lua_Integer status = mgrid_lua_opt_integer(L, i + 2, MGRID_REFUSED);
  if (status < 1 || status > 999)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "%s: %lld is not the status of an error", call,
                       (long long)status);
  mgrid_fail(e, (mgrid_status)status, "%s",
             luaL_optstring(L, i + 1, "this rank could not do its part"));
}

void mgrid_lua_stack(lua_State *L, int n) {
  if (!lua_checkstack(L, n)) mgrid_lua_oom(L);
}

int mgrid_lua_unknown(lua_State *L, const char *what, const char *name, const char *const *known,
                      size_t n) {
  char tail[512];
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge_nearest(L, name, n);
  mgrid_suggest(tail, sizeof tail, name, known, n);
  mgrid_fail(&e, MGRID_UNKNOWN_NAME, "unknown %s '%s'%s", what, name, tail);
  return mgrid_lua_raise_error(L, &e);
}

void mgrid_lua_check_keys(lua_State *L, int i, const char *what, const char *const *known, size_t n,
                          bool list) {
  enum { SOME = 256 };
  const char *bad = NULL;
  lua_Integer at = 0;
  i = lua_absindex(L, i);
  mgrid_lua_keys(L, i);
  for (int keys = lua_gettop(L); mgrid_lua_step(L, i, keys, &at); lua_pop(L, 1)) {
    lua_pop(L, 1);
    if (at % SOME == 0) mgrid_lua_charge(L, 4 * SOME);
    if (list && lua_isinteger(L, -1)) continue;
    if (lua_type(L, -1) != LUA_TSTRING)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "each %s needs a name as its key, not a %s", what,
                         luaL_typename(L, -1));
    const char *key = lua_tostring(L, -1);
    bool found = false;
    for (size_t k = 0; k < n && !found; k++) found = strcmp(known[k], key) == 0;
    if (!found && !bad) bad = key;
  }
  if (bad) mgrid_lua_unknown(L, what, bad, known, n);
  lua_pop(L, 1);
}

bool mgrid_lua_collected(lua_State *L) {
  lua_Debug ar;
  if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "n", &ar)) return false;
  /* "hook": the collector runs inside a debug hook, whose frame hides that of the finalizer */
  return strcmp(ar.namewhat, "hook") == 0
         || (strcmp(ar.namewhat, "metamethod") == 0 && strcmp(ar.name, "__gc") == 0);
}

static int bind_refuse(lua_State *L, const char *class, const char *what) {
  lua_pushstring(L, class);
  lua_pushstring(L, what);
  mgrid_lua_hint(L, "walk", 2, 1);
  return mgrid_lua_raise(L, "%s", lua_tostring(L, -1));
}

int mgrid_lua_no_list(lua_State *L, const char *class) { return bind_refuse(L, class, "a list"); }
int mgrid_lua_no_iterator(lua_State *L, const char *class) {
  return bind_refuse(L, class, "an iterator");
}

static const luaL_Reg *bind_find(const luaL_Reg *list, const char *key) {
  for (; list && list->name; list++)
    if (*list->name == *key && strcmp(list->name, key) == 0) return list;
  return NULL;
}

/* Return the fields and methods that a module adds to class c: those after `at`, from module *s on.
** NULL: there are no more. Start with the first module and `at` NULL. */
static const mgrid_lua_class *next_added(const mgrid_lua_class *c,
                                         const mgrid_lua_module *const **s,
                                         const mgrid_lua_class *at) {
  for (; **s; at = NULL, ++*s)
    for (at = at ? at + 1 : (**s)->adds; at && at->name; at++)
      if (strcmp(at->name, c->name) == 0) return at;
  return NULL;
}

/* Find a method of a class; with `fields`, a field. */
static const luaL_Reg *find_in(const mgrid_lua_class *c, bool fields, const char *key) {
  const mgrid_lua_module *const *s = mgrid_lua_modules;
  const luaL_Reg *found = bind_find(fields ? c->fields : c->methods, key);
  if (!found && !fields) found = bind_find(c->more, key);
  for (const mgrid_lua_class *add = NULL; !found && (add = next_added(c, &s, add));)
    found = bind_find(fields ? add->fields : add->methods, key);
  return found;
}

bool mgrid_lua_class_has(const mgrid_lua_class *c, const char *key) {
  return find_in(c, true, key) || find_in(c, false, key);
}

bool mgrid_lua_class_get(lua_State *L, const mgrid_lua_class *c, int object, const char *key) {
  const luaL_Reg *method = find_in(c, false, key), *field = method ? NULL : find_in(c, true, key);
  if (!method && !field) return false;
  lua_pushcfunction(L, method ? method->func : field->func);
  if (method) return true;
  lua_pushvalue(L, object);
  lua_call(L, 1, 1);
  return true;
}

static size_t list_names(const luaL_Reg *list, const char **names, size_t n, size_t max) {
  for (; list && list->name && n < max; list++) names[n++] = list->name;
  return n;
}

enum { MEMBERS_MAX = 64 };

/* List the fields and methods of a class, including those that modules add. Return their number. */
static size_t list_members(const mgrid_lua_class *c, const char *known[MEMBERS_MAX]) {
  enum { MAX = MEMBERS_MAX };
  size_t n = 0;
  for (int fields = 1; fields >= 0; fields--) {
    const mgrid_lua_module *const *s = mgrid_lua_modules;
    n = list_names(fields ? c->fields : c->methods, known, n, MAX);
    if (!fields) n = list_names(c->more, known, n, MAX);
    for (const mgrid_lua_class *add = NULL; (add = next_added(c, &s, add));)
      n = list_names(fields ? add->fields : add->methods, known, n, MAX);
  }
  return n;
}

int mgrid_lua_unknown_field(lua_State *L, const mgrid_lua_class *c, const char *key) {
  const char *known[MEMBERS_MAX];
  char what[64];
  snprintf(what, sizeof what, "field of a %s", strrchr(c->name, '.') + 1);
  return mgrid_lua_unknown(L, what, key, known, list_members(c, known));
}

static const char class_key = 'c'; /* its address: the key of the mgrid_lua_class in a metatable */

static void bind_append(lua_State *L, const char *name) {
  lua_pushstring(L, name);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

void mgrid_lua_members(lua_State *L, int object) {
  if (!lua_getmetatable(L, object)) return;
  lua_rawgetp(L, -1, &class_key);
  const mgrid_lua_class *c = lua_touserdata(L, -1);
  lua_pop(L, 2);
  if (!c) return;
  const char *known[MEMBERS_MAX];
  size_t n = list_members(c, known);
  for (size_t i = 0; i < n; i++) bind_append(L, known[i]);
  if (mgrid_lua_test_box(L, object, MGRID_LUA_GRID)) {
    const mgrid_grid *g = mgrid_lua_check_grid(L, object);
    for (size_t i = 0; i < g->n; i++) bind_append(L, g->axis[i].name);
  }
  if (!mgrid_lua_test_box(L, object, MGRID_LUA_TOPOLOGY)) return;
  const mgrid_content *all = &mgrid_lua_check_topology(L, object)->content;
  bind_append(L, "has");
  for (size_t i = 0; i < all->nentries; i++) bind_append(L, all->entry[i].name);
  for (size_t i = 0; i < all->ngrids; i++) bind_append(L, all->grid[i].name);
  for (size_t i = 0; i < all->nitems; i++) bind_append(L, all->item[i].name);
}

/* __index of a class. Upvalue: the class */
static int class_index(lua_State *L) {
  const mgrid_lua_class *c = lua_touserdata(L, lua_upvalueindex(1));
  if (lua_type(L, 2) == LUA_TNUMBER) return mgrid_lua_no_list(L, c->name);
  const char *key = luaL_checkstring(L, 2);
  return mgrid_lua_class_get(L, c, 1, key) ? 1 : mgrid_lua_unknown_field(L, c, key);
}

static int no_assignment(lua_State *L) {
  return mgrid_lua_raise(L, "a %s cannot be changed",
                         strrchr(lua_tostring(L, lua_upvalueindex(1)), '.') + 1);
}

void mgrid_lua_open_class(lua_State *L, const mgrid_lua_class *c) {
  luaL_newmetatable(L, c->name);
  lua_pushlightuserdata(L, (void *)(uintptr_t)c);
  lua_rawsetp(L, -2, &class_key);
  lua_pushlightuserdata(L, (void *)(uintptr_t)c);
  lua_pushcclosure(L, class_index, 1);
  lua_setfield(L, -2, "__index"); /* meta may replace this and __newindex */
  lua_pushstring(L, c->name);
  lua_pushcclosure(L, no_assignment, 1);
  lua_setfield(L, -2, "__newindex");
  luaL_setfuncs(L, c->meta, 0);
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
}

static void free_world(void *box) { mgrid_family_free(((mgrid_lua_world *)box)->order); }
static void free_grid(void *box) { mgrid_grid_free(*(mgrid_grid **)box); }
static void free_plan(void *box) { mgrid_plan_free(*(mgrid_plan **)box); }
static void free_family(void *box) {
  mgrid_family_free(((mgrid_lua_family *)box)->f);
  mgrid_choice_free(((mgrid_lua_family *)box)->choice);
}

mgrid_lua_world *mgrid_lua_new_world(lua_State *L) {
  return mgrid_lua_new_box(L, sizeof(mgrid_lua_world), 0, MGRID_LUA_WORLD, free_world);
}
mgrid_grid **mgrid_lua_new_grid(lua_State *L) {
  return mgrid_lua_new_box(L, sizeof(mgrid_grid *), 0, MGRID_LUA_GRID, free_grid);
}
mgrid_plan **mgrid_lua_new_plan(lua_State *L) {
  return mgrid_lua_new_box(L, sizeof(mgrid_plan *), 3, MGRID_LUA_PLAN, free_plan);
}

mgrid_backend **mgrid_lua_new_job(lua_State *L) {
  mgrid_backend **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, MGRID_LUA_JOB);
  return box;
}

mgrid_lua_family *mgrid_lua_new_family(lua_State *L, const mgrid_lua_family *like) {
  mgrid_lua_family *box = mgrid_lua_new_box(L, sizeof *box, 1, MGRID_LUA_FAMILY, free_family);
  if (like) box->choice = mgrid_choice_ref(like->choice);
  mgrid_lua_trail_add(L);
  return box;
}

mgrid_lua_family *mgrid_lua_derive_family(lua_State *L, const mgrid_lua_family *like) {
  mgrid_lua_family *box = mgrid_lua_new_family(L, like);
  lua_getiuservalue(L, 1, 1);
  lua_setiuservalue(L, -2, 1);
  return box;
}

mgrid_lua_world *mgrid_lua_check_world(lua_State *L, int i) {
  return mgrid_lua_check_box(L, i, MGRID_LUA_WORLD);
}

mgrid_lua_world *mgrid_lua_world_argument(lua_State *L) {
  if (lua_isinteger(L, 1))
    luaL_argerror(
        L, 1,
        lua_pushfstring(L, "a World, not the number %I: mg.world(%I) makes one, build is given one",
                        (LUAI_UACINT)lua_tointeger(L, 1), (LUAI_UACINT)lua_tointeger(L, 1)));
  return mgrid_lua_check_world(L, 1);
}
mgrid_grid *mgrid_lua_check_grid(lua_State *L, int i) {
  return *(mgrid_grid **)mgrid_lua_check_box(L, i, MGRID_LUA_GRID);
}
mgrid_plan *mgrid_lua_check_plan(lua_State *L, int i) {
  return *(mgrid_plan **)mgrid_lua_check_box(L, i, MGRID_LUA_PLAN);
}

mgrid_lua_family *mgrid_lua_check_family(lua_State *L, int i) {
  return mgrid_lua_check_box(L, i, MGRID_LUA_FAMILY);
}

mgrid_topology *mgrid_lua_check_topology(lua_State *L, int i) {
  return *(mgrid_topology **)mgrid_lua_check_box(L, i, MGRID_LUA_TOPOLOGY);
}

bool mgrid_lua_check_wrap(lua_State *L, int i) {
  static const char *const known[] = { "wrap" };
  if (lua_type(L, i) == LUA_TSTRING) {
    if (strcmp(lua_tostring(L, i), "wrap") != 0)
      mgrid_lua_unknown(L, "option", lua_tostring(L, i), known, 1);
    return true;
  }
  if (lua_isnoneornil(L, i) || lua_isboolean(L, i)) return lua_toboolean(L, i);
  luaL_argexpected(L, lua_istable(L, i), i, "\"wrap\"");
  mgrid_lua_check_keys(L, i, "option", known, 1, false);
  lua_getfield(L, i, "wrap");
  bool wrap = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return wrap;
}

bool mgrid_lua_is_whole(lua_State *L, int i) {
  size_t len;
  const char *text = lua_tolstring(L, i, &len);
  return strlen(text) == len;
}

const char *mgrid_lua_name(lua_State *L, int i) {
  char shown[256];
  size_t len;
  const char *text = lua_tolstring(L, i, &len);
  if (strlen(text) == len) return text;
  mgrid_shown(shown, sizeof shown, text, len);
  lua_pushstring(L, shown);
  lua_replace(L, i);
  return lua_tostring(L, i);
}

double mgrid_lua_number(lua_State *L, int i) {
  lua_Number n = lua_tonumber(L, i);
  return isnan(n) ? (lua_Number)NAN : n;
}

lua_Integer mgrid_lua_check_integer(lua_State *L, int i) {
  if (lua_type(L, i) == LUA_TSTRING) luaL_typeerror(L, i, "number");
  return luaL_checkinteger(L, i);
}

lua_Integer mgrid_lua_opt_integer(lua_State *L, int i, lua_Integer otherwise) {
  return lua_isnoneornil(L, i) ? otherwise : mgrid_lua_check_integer(L, i);
}

void mgrid_lua_check_table(lua_State *L, int i, const char *such_as) {
  if (lua_istable(L, i)) return;
  const char *is = luaL_getmetafield(L, i, "__name") == LUA_TSTRING ? lua_tostring(L, -1)
                                                                    : luaL_typename(L, i);
  luaL_argerror(L, i, lua_pushfstring(L, "a table such as %s expected, got %s", such_as, is));
}

void mgrid_lua_set_integer(lua_State *L, const char *key, int64_t value) {
  lua_pushinteger(L, value);
  lua_setfield(L, -2, key);
}

void mgrid_lua_set_number(lua_State *L, const char *key, double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, key);
}

void mgrid_lua_set_boolean(lua_State *L, const char *key, bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, key);
}

void mgrid_lua_set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, key);
}

int mgrid_lua_push_index(lua_State *L, int64_t i) {
  i < 0 ? lua_pushnil(L) : lua_pushinteger(L, i);
  return 1;
}

const char *mgrid_lua_kind(lua_State *L, int i) {
  if (lua_isnoneornil(L, i)) return "nil";
  if (luaL_getmetafield(L, i, "__name") != LUA_TSTRING)
    return lua_pushfstring(L, "a %s", luaL_typename(L, i));
  const char *class = lua_tostring(L, -1), *dot = strrchr(class, '.');
  return lua_pushfstring(L, "a %s", dot ? dot + 1 : class);
}

static const char fill_key = 'f'; /* its address is the value of `fill` */

void mgrid_lua_push_fill(lua_State *L) { lua_pushlightuserdata(L, (void *)&fill_key); }
bool mgrid_lua_is_fill(lua_State *L, int i) {
  return lua_islightuserdata(L, i) && lua_touserdata(L, i) == &fill_key;
}

/* Return the list of integers at i. With `sizes` each is 1 or more, or fill. */
static int64_t *bind_check_list(lua_State *L, int i, bool sizes, size_t *n) {
  mgrid_lua_check_table(L, i, sizes ? "{ 2, fill }" : "{ 0, 1 }");
  *n = mgrid_lua_charge_list(L, i, 4);
  mgrid_lua_reserve(L, (int64_t)*n, sizeof(int64_t));

  for (size_t k = 1; k <= *n; k++) { /* check all before allocating, because an error would leak */
    lua_rawgeti(L, i, (lua_Integer)k);
    if (!lua_isinteger(L, -1) && !(sizes && mgrid_lua_is_fill(L, -1)))
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "element %d of the list is %s, not an integer%s",
                         (int)k, mgrid_lua_kind(L, -1), sizes ? " or fill" : "");
    if (sizes && lua_isinteger(L, -1) && lua_tointeger(L, -1) < 1)
      mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                         "element %d of the list is %" PRId64 "; a size is 1 or more, or fill",
                         (int)k, (int64_t)lua_tointeger(L, -1));
    lua_pop(L, 1);
  }

  int64_t *list = mgrid_realloc(NULL, NULL, 0, (*n + 1) * sizeof *list);
  if (!list) mgrid_lua_oom(L);
  for (size_t k = 1; k <= *n; k++) {
    lua_rawgeti(L, i, (lua_Integer)k);
    list[k - 1] = mgrid_lua_is_fill(L, -1) ? MGRID_FILL : lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  return list;
}

int64_t *mgrid_lua_check_integers(lua_State *L, int i, size_t *n) {
  return bind_check_list(L, i, false, n);
}
int64_t *mgrid_lua_check_sizes(lua_State *L, int i, size_t *n) {
  return bind_check_list(L, i, true, n);
}

static int push_text(lua_State *L) {
  mgrid_text *t = lua_touserdata(L, 1);
  lua_pushlstring(L, mgrid_text_chars(t), t->len);
  return 1;
}

void mgrid_lua_push_text(lua_State *L, mgrid_text *t) {
  bool failed = t->failed;
  lua_pushcfunction(L, push_text);
  lua_pushlightuserdata(L, t);
  int rc = failed ? LUA_OK : lua_pcall(L, 1, 1, 0);
  mgrid_text_free(t);
  if (failed) mgrid_lua_oom(L);
  if (rc) lua_error(L);
}

void mgrid_lua_push_lines(lua_State *L, const char *text) {
  lua_Integer n = 0;
  lua_newtable(L);
  for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
    lua_pushlstring(L, text, (size_t)(end - text));
    lua_rawseti(L, -2, ++n);
  }
}

/* ------------------------------------------------------ embedded Lua files */

const mgrid_chunk *mgrid_bundle_find(const mgrid_chunk *list, const char *name) {
  while (list->name && strcmp(list->name, name) != 0) list++;
  return list->name ? list : NULL;
}

int mgrid_bundle_load(lua_State *L, const mgrid_chunk *c) {
  char name[64];
  snprintf(name, sizeof name, "=%s", c->name);
  if (c->binary && strstr(lua_ident, mgrid_bundle_release)) {
    if (luaL_loadbufferx(L, (const char *)c->binary, c->binary_size, name, "b") == LUA_OK)
      return LUA_OK;
    lua_pop(L, 1); /* this Lua has another format of numbers, or memory ran out: try the text */
  }
  return luaL_loadbufferx(L, (const char *)c->text, c->text_size, name, "t");
}

void mgrid_bundle_push(lua_State *L, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "moongrid/%s.lua", name);
  const mgrid_chunk *c = mgrid_bundle_find(mgrid_prelude, path);
  if (!c) mgrid_lua_raise(L, "there is no %s in the prelude", path);
  if (mgrid_bundle_load(L, c)) lua_error(L);
}

/* nearest(name, list of at most 32 names) -> the name that may be meant | nil */
static int hints_nearest(lua_State *L) {
  const char *known[32];
  size_t n = 0;
  lua_settop(L, 2);
  mgrid_lua_stack(L, 32);
  while (n < 32 && lua_rawgeti(L, 2, (lua_Integer)n + 1) == LUA_TSTRING)
    known[n++] = lua_tostring(L, -1);
  lua_pushstring(L, mgrid_nearest(luaL_checkstring(L, 1), known, n));
  return 1;
}

/* its address: the registry key of the table that hints.lua returns; the file is loaded at the
** first question */
static const char hints_key = 'h';

void mgrid_lua_hint(lua_State *L, const char *question, int given, int answers) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &hints_key) != LUA_TTABLE) {
    lua_pop(L, 1);
    mgrid_bundle_push(L, "hints");
    lua_pushcfunction(L, hints_nearest);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &hints_key);
  }
  lua_getfield(L, -1, question);
  lua_replace(L, -2);
  lua_insert(L, -given - 1);
  lua_call(L, given, answers);
}
