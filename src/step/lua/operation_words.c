/* SPDX-License-Identifier: MIT
**
** operation_words.c - the operations of a step as methods of s. Each method checks its arguments
** and appends an entry to the program.
*/
#include "step/lua/step_words.h"

#include "recipe/budget.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ entries */

static uint32_t operation_word(lua_State *L, step_writer *w, const char *text) {
  int32_t n = mgrid_step_word(w->step, text);
  return n < 0 ? (uint32_t)mgrid_lua_oom(L) : (uint32_t)n;
}

/* Return the name at i, as a word of the step. `what` is for messages: "the name of a mark". */
static uint32_t name(lua_State *L, int i, step_writer *w, const char *what) {
  size_t len;
  const char *text = luaL_checklstring(L, i, &len);
  mgrid_error err = MGRID_ERROR_INIT;
  if (mgrid_check_line(what, text, len, &err)) mgrid_lua_raise_error(L, &err);
  return operation_word(L, w, text);
}

static int too_many(lua_State *L) {
  return mgrid_lua_raise_as(L, MGRID_LIMIT,
                            "the step has more than %d entries; s:loop(n, function() ... end) "
                            "makes its entries only once",
                            STEP_NODES_MAX);
}

/* Append an entry of the operation on the stream of s, with the line of the recipe. */
static step_node *operation_put(lua_State *L, step_word_step *s, step_writer *w, step_kind kind) {
  lua_Debug ar;

  mgrid_lua_charge(L, 20);
  int stream = s->stream;
  if (w->grouped) {
    int whole = w->now.node[w->open[w->depth - 1]].stream;
    if (kind >= STEP_CALLS)
      mgrid_lua_raise(
          L, "%s goes before or after a group, which has only operations that start together",
          mgrid_step_rows[kind].name);
    if (stream && stream != whole)
      mgrid_lua_raise(L, "a group is on one stream: s:on(name):group(function() ... end)");
    stream = whole;
  }
  bool known = mgrid_lua_caller(L, &ar);
  uint32_t file = known ? operation_word(L, w, ar.source) : 0;
  step_node *n = mgrid_step_write(w, kind);
  if (!n) too_many(L);
  n->file = file;
  n->line = known ? ar.currentline : 0;
  n->stream = (uint16_t)stream;
  s->anchor->used |= UINT64_C(1) << stream;
  return n;
}

/* Return the whole number, 0 or more, at i. It may be a float, as 2 * p.hidden ^ 2 is. */
static int64_t whole(lua_State *L, int i, const char *operation, const char *what, int64_t most) {
  double x = 0;
  int is_integer = 0;
  int64_t n = lua_type(L, i) == LUA_TNUMBER ? lua_tointegerx(L, i, &is_integer) : 0;
  if (lua_type(L, i) != LUA_TNUMBER)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s: %s are a whole number of 0 or more, not %s",
                       operation, what, mgrid_lua_kind(L, i));
  x = mgrid_lua_number(L, i);
  if (x > (double)most)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "%s: %s are %" PRId64 " at most, not %.14g",
                       operation, what, most, x);
  if (!is_integer || n < 0)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s: %s are a whole number of 0 or more, not %.14g%s",
                       operation, what, x, x > 0 ? "; a // b divides whole numbers" : "");
  return n;
}

static step_word_group *operation_check_group(lua_State *L, int i, step_kind kind) {
  const step_operation *o = &mgrid_step_rows[kind];
  step_word_group *g = luaL_testudata(L, i, STEP_LUA_GROUP);
  if (g) return g;
  if (lua_isnoneornil(L, i))
    mgrid_lua_raise_as(
        L, MGRID_BAD_VALUE,
        "%s%s: the group is nil, because this rank is in no group of the family; ask "
        "first: if s.tp then ...",
        o->name, o->takes);
  mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s%s: the group is a group of s, as s.tp, not %s",
                     o->name, o->takes, mgrid_lua_kind(L, i));
  return NULL;
}

static const char *operation_name_of(const step_writer *w, const step_word_group *g) {
  return w->step->plan->content.entry[g->entry].name;
}

/* Return the position at i, which is a number or a member of the group. */
static int64_t operation_check_position(lua_State *L, int i, const step_writer *w,
                                        const step_word_group *g, const char *operation) {
  const step_word_peer *p = luaL_testudata(L, i, STEP_LUA_PEER);
  if (p && p->entry != g->entry)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s: the member is one of %s, not of %s", operation,
                       w->step->plan->content.entry[p->entry].name, operation_name_of(w, g));
  if (!p && lua_type(L, i) != LUA_TNUMBER)
    mgrid_lua_raise_as(
        L, MGRID_BAD_VALUE, "%s(%s): %s is not a position; positions are 0 to %" PRId64, operation,
        operation_name_of(w, g), lua_isnoneornil(L, i) ? "nil" : mgrid_lua_kind(L, i), g->size - 1);
  int64_t at = p ? p->position : mgrid_lua_check_integer(L, i);
  if (at < 0 || at >= g->size)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                       "%s(%s): position %" PRId64 " is not in the group of %" PRId64
                       "; nearest is %" PRId64,
                       operation, operation_name_of(w, g), at, g->size, at < 0 ? 0 : g->size - 1);
  return at;
}

typedef struct extras {
  int64_t root;
  uint32_t type;
} extras;

/* Read the fields root and type of the table at i. Instead of a table, argument i may be the
** root. */
static extras read_extras(lua_State *L, int i, step_writer *w, const step_word_group *g,
                          const step_operation *o) {
  static const char *const known[] = { "type", "root" };
  extras x = { 0, 0 };
  if (lua_isnoneornil(L, i)) return x;
  if (o->rooted && (lua_type(L, i) == LUA_TNUMBER || luaL_testudata(L, i, STEP_LUA_PEER))) {
    x.root = operation_check_position(L, i, w, g, o->name);
    return x;
  }
  mgrid_lua_check_table(L, i, "{ type = \"bf16\" }");
  mgrid_lua_check_keys(L, i, "option of an operation", known, o->rooted ? 2 : 1, false);
  if (lua_getfield(L, i, "type") != LUA_TNIL) x.type = name(L, -1, w, "the type of elements");
  if (o->rooted && lua_getfield(L, i, "root") != LUA_TNIL)
    x.root = operation_check_position(L, lua_gettop(L), w, g, o->name);
  return x;
}

/* Return the sum of a list of bytes by position. *as: the list as a word, "4,5". */
static int64_t operation_check_list(lua_State *L, int i, step_writer *w, const step_word_group *g,
                                    const char *operation, uint32_t *as) {
  luaL_Buffer text;
  lua_Integer n = mgrid_lua_length(L, i);
  int64_t sum = 0;

  if (n != g->size)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                       "%s(%s): the list has %s, and needs one number for each of the %" PRId64
                       " members of the group",
                       operation, operation_name_of(w, g),
                       n < 0 ? "holes" : lua_pushfstring(L, "length %I", (LUAI_UACINT)n), g->size);
  mgrid_lua_charge(L, n);
  for (lua_Integer k = 1; k <= n; k++, lua_pop(L, 1)) {
    lua_rawgeti(L, i, k);
    sum += whole(L, -1, operation, "bytes", STEP_BYTES_MAX);
    if (sum > STEP_BYTES_MAX)
      mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "%s: bytes are %" PRId64 " at most, in all",
                         operation, STEP_BYTES_MAX);
  }
  luaL_buffinit(L, &text);
  for (lua_Integer k = 1; k <= n; k++) {
    if (k > 1) luaL_addchar(&text, ',');
    lua_rawgeti(L, i, k);
    lua_pushinteger(L, lua_tointeger(L, -1)); /* 4.0 becomes 4 */
    lua_remove(L, -2);
    luaL_addvalue(&text);
  }
  luaL_pushresult(&text);
  *as = operation_word(L, w, lua_tostring(L, -1));
  lua_pop(L, 1);
  return sum;
}

/* -------------------------------------------------------------- collectives */

/* Upvalue 1 is the step_kind. */
static int operation_together(lua_State *L) {
  step_kind kind = (step_kind)lua_tointeger(L, lua_upvalueindex(1));
  const step_operation *o = &mgrid_step_rows[kind];
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  step_word_group *g = operation_check_group(L, 2, kind);
  bool list = kind == STEP_ALL_TO_ALL && lua_istable(L, 3);
  uint32_t by = 0;
  int64_t bytes = list       ? operation_check_list(L, 3, w, g, o->name, &by)
                  : o->sized ? whole(L, 3, o->name, "bytes", STEP_BYTES_MAX)
                             : 0;
  extras x = read_extras(L, o->sized ? 4 : 3, w, g, o);
  step_node *n = operation_put(L, s, w, kind);
  n->slot = g->slot, n->bytes = bytes, n->listed = list, n->name = by, n->number = x.root,
  n->type = x.type;
  return 0;
}

/* ----------------------------------------------------------- point to point */

static int operation_point(lua_State *L) {
  step_kind kind = (step_kind)lua_tointeger(L, lua_upvalueindex(1));
  const step_operation *o = &mgrid_step_rows[kind];
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  step_word_group *g = operation_check_group(L, 2, kind);
  int64_t peer = operation_check_position(L, 3, w, g, o->name),
          bytes = whole(L, 4, o->name, "bytes", STEP_BYTES_MAX);
  extras x = read_extras(L, 5, w, g, o);
  step_node *n = operation_put(L, s, w, kind);
  n->slot = g->slot, n->bytes = bytes, n->number = peer, n->type = x.type;
  return 0;
}

/* Raise if too many blocks are open for another one. */
static void check_depth(lua_State *L, const step_writer *w) {
  if (w->grouped)
    mgrid_lua_raise(L, "a group has sends, receives and collectives in it, and no loops or groups");
  if (w->depth >= STEP_DEPTH_MAX)
    mgrid_lua_raise_as(L, MGRID_LIMIT,
                       "loops of a step nest %d deep at most; does one call itself?",
                       STEP_DEPTH_MAX);
}

/* s:sendrecv(group, to, from, bytes): `to` or `from` may be nil, as at the ends of a pipeline */
static int sendrecv(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  step_word_group *g = operation_check_group(L, 2, STEP_SENDRECV);
  int64_t to = lua_isnil(L, 3) ? -1 : operation_check_position(L, 3, w, g, "sendrecv");
  int64_t from = lua_isnil(L, 4) ? -1 : operation_check_position(L, 4, w, g, "sendrecv");
  int64_t bytes = whole(L, 5, "sendrecv", "bytes", STEP_BYTES_MAX);
  extras x = read_extras(L, 6, w, g, &mgrid_step_rows[STEP_SENDRECV]);
  bool grouped = w->grouped; /* inside a group the send and the receive belong to that group */
  if (!grouped) {
    check_depth(L, w);
    operation_put(L, s, w, STEP_SENDRECV);
    mgrid_step_open(w);
  }
  for (int i = 0; i < 2; i++) {
    if ((i ? from : to) < 0) continue;
    step_node *n = operation_put(L, s, w, i ? STEP_RECV : STEP_SEND);
    n->slot = g->slot, n->bytes = bytes, n->number = i ? from : to, n->type = x.type;
  }
  if (!grouped) mgrid_step_close(w);
  return 0;
}

/* ------------------------------------------------------------------- blocks */

static void check_function(lua_State *L, int i, const char *what) {
  if (lua_type(L, i) != LUA_TFUNCTION)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s a function, not %s", what, mgrid_lua_kind(L, i));
}

static int group(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  check_function(L, 2, "group(function): the operations that start together are made by");
  check_depth(L, w);
  operation_put(L, s, w, STEP_GROUP);
  mgrid_step_open(w);
  lua_settop(L, 2);
  lua_call(L, 0, 0);
  mgrid_step_close(w);
  return 0;
}

static int loop(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  int64_t n = whole(L, 2, "loop", "iterations", STEP_BYTES_MAX);
  lua_settop(L, 3);
  check_function(L, 3, "loop(n, function): the loop repeats");
  check_depth(L, w);
  if (n == 0) return 0;
  uint64_t used = s->anchor->used;
  operation_put(L, s, w, STEP_LOOP)->number = n;
  s->anchor->used = used;
  mgrid_step_open(w);
  lua_call(L, 0, 0);
  mgrid_step_close(w);
  return 0;
}

/* s:again(from, to): write the entries `from` to `to` - 1 once more, and return the number of
** entries of the program. Each block among them must be complete. The prelude uses this method,
** because most passes of a pipeline write the same entries. */
static int again(lua_State *L) {
  step_writer *w;
  mgrid_step_lua_check(L, 1, &w);
  lua_Integer from = luaL_checkinteger(L, 2), to = luaL_checkinteger(L, 3);
  uint32_t open[STEP_DEPTH_MAX];
  int depth = 0;
  luaL_argcheck(L, from >= 0 && to >= from && to <= (lua_Integer)w->now.n && !w->grouped, 3,
                "no such entries");
  mgrid_lua_charge(L, 20 * (to - from));

  for (uint32_t i = (uint32_t)from, by = (uint32_t)w->now.n - i; i < (uint32_t)to; i++) {
    step_node *n = mgrid_step_write(w, w->now.node[i].kind);
    if (!n) return too_many(L);
    *n = w->now.node[i];
    while (depth && i >= open[depth - 1]) depth--;
    if (mgrid_step_rows[n->kind].role == STEP_BLOCK) {
      bool is_whole = n->end <= (uint32_t)to;
      for (int d = 0; d < w->depth; d++) is_whole &= w->open[d] != i; /* not closed yet */
      luaL_argcheck(L, is_whole && w->depth + depth < STEP_DEPTH_MAX, 3,
                    "parts of entries, or too deep");
      open[depth++] = n->end;
    }
    n->end += by;
    if (n->kind == STEP_WAIT && n->listed && n->other >= from) n->other += (int32_t)by;
  }
  return lua_pushinteger(L, (lua_Integer)w->now.n), 1;
}

/* ------------------------------------------------------------------ streams */

/* Return the stream whose name is argument 2. If there is no such stream, create it if `make` is
** set, else return -1. */
static int stream_of(lua_State *L, step_writer *w, bool make) {
  step_program *p = &w->now;
  uint32_t is = name(L, 2, w, "the name of a stream");
  for (int i = 0; i < p->nstreams; i++)
    if (p->stream[i] == is) return i;
  if (!make) return -1;
  if (p->nstreams == STEP_STREAMS_MAX)
    return mgrid_lua_raise_as(L, MGRID_LIMIT, "a step has %d streams at most", STEP_STREAMS_MAX);
  p->stream[p->nstreams] = is;
  return p->nstreams++;
}

/* Push an object of a class, with the anchor of the object s at 1. The caller sets its fields. */
static void *push_of_step(lua_State *L, size_t size, const char *class) {
  lua_getiuservalue(L, 1, 1);
  void *made = lua_newuserdatauv(L, size, 1);
  luaL_setmetatable(L, class);
  lua_insert(L, -2);
  lua_setiuservalue(L, -2, 1);
  return made;
}

/* s:on "grads" -> s on another stream */
static int on(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  int stream = stream_of(L, w, true);
  step_word_step *other = push_of_step(L, sizeof *other, STEP_LUA_STEP);
  *other = (step_word_step){ s->anchor, stream };
  return 1;
}

/* Return the stream whose name is argument 2; -1: it has no operations so far, so there is nothing
** to wait for, as in CUDA. But in a block return the stream even without operations, because in a
** loop a later operation may be on it, and the next iteration waits for that operation. */
static int used_stream(lua_State *L, const step_word_step *s, step_writer *w) {
  int stream = stream_of(L, w, w->depth > 0);
  return stream >= 0 && (w->depth > 0 || s->anchor->used >> stream & 1) ? stream : -1;
}

static int event(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  step_node *n = operation_put(L, s, w, STEP_EVENT);
  int32_t node = (int32_t)(n - w->now.node);
  step_word_event *e = push_of_step(L, sizeof *e, STEP_LUA_EVENT);
  *e = (step_word_event){ s->anchor, node };
  return 1;
}

static int operation_wait_for(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  const step_word_event *e = luaL_testudata(L, 2, STEP_LUA_EVENT);
  int of = e ? e->node : used_stream(L, s, w);
  if (e && e->anchor != s->anchor)
    mgrid_lua_raise(L, "wait: the event is of another evaluation of the step");
  if (of < 0) return 0;
  step_node *n = operation_put(L, s, w, STEP_WAIT);
  n->other = of, n->listed = e != NULL;
  return 0;
}

static int host_wait(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  int of = used_stream(L, s, w);
  if (of >= 0) operation_put(L, s, w, STEP_HOST_WAIT)->other = of;
  return 0;
}

/* -------------------------------------------------------------------- local */

/* Return the number, 0 or more, in a field of the table at 2; 0 if the field is nil. */
static double amount(lua_State *L, const char *field) {
  int type = lua_getfield(L, 2, field);
  double x = type == LUA_TNUMBER ? mgrid_lua_number(L, -1) : 0;
  if (type != LUA_TNIL && type != LUA_TNUMBER)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "compute: %s is a number of 0 or more, not %s", field,
                       mgrid_lua_kind(L, -1));
  if (!(x >= 0 && x < HUGE_VAL))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "compute: %s is a number of 0 or more, not %.14g", field,
                       x);
  lua_pop(L, 1);
  return x > 0 ? x : 0; /* -0.0 becomes 0 */
}

static int operation_compute(lua_State *L) {
  static const char *const known[] = { "flops", "bytes", "seconds", "name" };
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  mgrid_lua_check_table(L, 2, "{ flops = 1e12, name = \"layer\" }");
  mgrid_lua_check_keys(L, 2, "field of compute", known, 4, false);
  double flops = amount(L, "flops"), bytes = amount(L, "bytes"), seconds = amount(L, "seconds");
  uint32_t is = lua_getfield(L, 2, "name") == LUA_TNIL ? 0
                                                       : name(L, -1, w, "the name of a compute");
  if (bytes > (double)STEP_BYTES_MAX)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "compute: bytes are %" PRId64 " at most",
                       STEP_BYTES_MAX);
  step_node *n = operation_put(L, s, w, STEP_COMPUTE);
  n->flops = flops, n->seconds = seconds, n->bytes = (int64_t)bytes, n->name = is;
  return 0;
}

static int alloc(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  uint32_t is = name(L, 2, w, "the name of memory");
  int64_t bytes = whole(L, 3, "alloc", "bytes", STEP_BYTES_MAX);
  step_node *n = operation_put(L, s, w, STEP_ALLOC);
  n->name = is, n->bytes = bytes;
  return 0;
}

static int free_name(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  uint32_t is = name(L, 2, w, "the name of memory");
  const char *known[64];
  size_t n = 0;
  for (size_t i = 0; i < w->now.n; i++) {
    const step_node *a = &w->now.node[i];
    if (a->kind != STEP_ALLOC) continue;
    if (a->name == is) {
      operation_put(L, s, w, STEP_FREE)->name = is;
      return 0;
    }
    bool told = false;
    for (size_t k = 0; k < n; k++) told |= known[k] == w->step->word[a->name];
    if (!told && n < 64) known[n++] = w->step->word[a->name];
  }
  return mgrid_lua_unknown(L, "name of s:alloc", lua_tostring(L, 2), known, n);
}

static int operation_mark(lua_State *L) {
  step_writer *w;
  step_word_step *s = mgrid_step_lua_check(L, 1, &w);
  uint32_t is = name(L, 2, w, "the name of a mark");
  operation_put(L, s, w, STEP_MARK)->name = is;
  return 0;
}

static const luaL_Reg methods[] = { { "sendrecv", sendrecv },
                                    { "group", group },
                                    { "loop", loop },
                                    { "again", again },
                                    { "on", on },
                                    { "event", event },
                                    { "wait", operation_wait_for },
                                    { "host_wait", host_wait },
                                    { "compute", operation_compute },
                                    { "alloc", alloc },
                                    { "free", free_name },
                                    { "mark", operation_mark },
                                    { NULL, NULL } };

bool mgrid_step_lua_push_operation(lua_State *L, const char *key) {
  for (int i = 0; i < STEP_CALLS; i++) {
    if (strcmp(mgrid_step_rows[i].name, key) != 0) continue;
    bool point = mgrid_step_rows[i].role == STEP_POINT;
    lua_pushinteger(L, i);
    lua_pushcclosure(L, point ? operation_point : operation_together, 1);
    return true;
  }
  for (const luaL_Reg *m = methods; m->name; m++)
    if (strcmp(m->name, key) == 0) return lua_pushcfunction(L, m->func), true;
  return false;
}
