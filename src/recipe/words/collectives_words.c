/* SPDX-License-Identifier: MIT
**
** collectives_words.c - collectives for Lua, on buffers that the library allocates, over MPI and
** NCCL alike. They are for self-tests and small benchmarks, not for tensors of a trainer. If the
** backend fails, a call returns nil, message, status; wrong arguments raise.
*/
#include "comm/compare.h"
#include "recipe/bind.h"
#include "recipe/values.h"

#include <inttypes.h>

#define MGRID_LUA_BUFFER "moongrid.Buffer"

typedef struct buffer {
  mgrid_backend *backend;       /* the buffer is an owner of it */
  const mgrid_descriptor *kind; /* the backend that allocated the memory */
  void *data;
  mgrid_type type;
  size_t n; /* elements */
} buffer;

static const char *const type_names[] = { "int32", "int64", "float", "double", NULL };
static const size_t type_sizes[] = { 4, 8, 4, 8 };

static buffer *check_buffer(lua_State *L, int i) {
  buffer *b = luaL_checkudata(L, i, MGRID_LUA_BUFFER);
  if (!b->data) mgrid_lua_raise(L, "the buffer is closed");
  return b;
}

/* ------------------------------------------------------------------------ Buffer */

/* group:buffer(n [, type]) -> Buffer of n zeros, in memory of the CPU or, over NCCL, of the GPU */
static int group_buffer(lua_State *L) {
  mgrid_lua_check_group_of_host(L, 1);
  lua_Integer n = mgrid_lua_check_integer(L, 2);
  int type = luaL_checkoption(L, 3, "float", type_names);
  mgrid_error e = MGRID_ERROR_INIT;
  if (n < 1 || n > (lua_Integer)1 << 40)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a buffer has 1 to 2^40 elements, not %lld",
                              (long long)n);

  buffer *b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = (buffer){ .type = (mgrid_type)type, .n = (size_t)n };
  luaL_setmetatable(L, MGRID_LUA_BUFFER);
  const mgrid_group *g = mgrid_lua_check_group_of_host(L, 1);
  b->backend = g->state->backend, b->kind = mgrid_group_kind(g);
  if (!b->backend->ops->buffer_new)
    return mgrid_lua_raise(L, "a %s state has no buffers", b->backend->kind->name);

  b->data = b->backend->ops->buffer_new(b->backend, b->kind, b->n * type_sizes[type], &e);
  if (!b->data) return mgrid_lua_failure(L, &e);
  b->backend->users++;

  size_t bytes = b->n * type_sizes[type];
  void *zeros = mgrid_zeroed(NULL, bytes);
  if (!zeros) return mgrid_lua_oom(L);
  mgrid_status s = b->backend->ops->copy(b->backend, b->kind, b->data, zeros, bytes, true, &e);
  mgrid_release(zeros);
  return s ? mgrid_lua_failure(L, &e) : 1;
}

static int buffer_close(lua_State *L) {
  buffer *b = luaL_checkudata(L, 1, MGRID_LUA_BUFFER);
  if (!b->data) return 0;
  b->backend->ops->buffer_free(b->backend, b->kind, b->data);
  b->data = NULL;
  mgrid_backend_free(b->backend);
  return 0;
}

/* Store the number at `value` as element i of `to`, in the type of the buffer. */
static void collectives_store(const buffer *b, void *to, size_t i, lua_State *L, int value) {
  switch (b->type) {
  case MGRID_INT32: ((int32_t *)to)[i] = (int32_t)mgrid_lua_check_integer(L, value); return;
  case MGRID_INT64: ((int64_t *)to)[i] = mgrid_lua_check_integer(L, value); return;
  case MGRID_FLOAT: ((float *)to)[i] = (float)luaL_checknumber(L, value); return;
  case MGRID_DOUBLE: ((double *)to)[i] = luaL_checknumber(L, value); return;
  }
}

/* buffer:set(number) sets all elements; buffer:set{ ... } sets the first ones. Both return the
** buffer */
static int buffer_set(lua_State *L) {
  const buffer *b = check_buffer(L, 1);
  bool list = lua_istable(L, 2);
  size_t n = list ? lua_rawlen(L, 2) : b->n;
  if (n > b->n) return mgrid_lua_raise(L, "%d values for a buffer of %d", (int)n, (int)b->n);
  lua_settop(L, 2);
  /* a userdata, which is freed if a wrong value raises */
  void *copy = lua_newuserdatauv(L, n * type_sizes[b->type] + 1, 0);
  for (size_t i = 0; i < n; i++) {
    if (list) lua_rawgeti(L, 2, (lua_Integer)i + 1);
    collectives_store(b, copy, i, L, list ? -1 : 2);
    if (list) lua_pop(L, 1);
  }
  mgrid_error e = MGRID_ERROR_INIT;
  check_buffer(L, 1); /* a finalizer may have closed it */
  if (b->backend->ops->copy(b->backend, b->kind, b->data, copy, n * type_sizes[b->type], true, &e))
    return mgrid_lua_failure(L, &e);
  lua_settop(L, 1);
  return 1;
}

/* buffer:get([n]) -> list of the first n elements, or of all */
static int buffer_get(lua_State *L) {
  const buffer *b = check_buffer(L, 1);
  lua_Integer n = mgrid_lua_opt_integer(L, 2, (lua_Integer)b->n);

  if (n < 0 || (size_t)n > b->n)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "%lld elements of a buffer of %zu",
                              (long long)n, b->n);
  void *copy = lua_newuserdatauv(L, (size_t)n * type_sizes[b->type] + 1, 0);
  mgrid_error e = MGRID_ERROR_INIT;
  check_buffer(L, 1);
  if (b->backend->ops->copy(b->backend, b->kind, copy, b->data, (size_t)n * type_sizes[b->type],
                            false, &e))
    return mgrid_lua_failure(L, &e);
  lua_createtable(L, (int)n, 0);
  for (lua_Integer i = 0; i < n; i++) {
    switch (b->type) {
    case MGRID_INT32: lua_pushinteger(L, ((int32_t *)copy)[i]); break;
    case MGRID_INT64: lua_pushinteger(L, ((int64_t *)copy)[i]); break;
    case MGRID_FLOAT: lua_pushnumber(L, (double)((float *)copy)[i]); break;
    case MGRID_DOUBLE: lua_pushnumber(L, ((double *)copy)[i]); break;
    }
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int buffer_len(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)check_buffer(L, 1)->n);
  return 1;
}

static int buffer_tostring(lua_State *L) {
  buffer *b = luaL_checkudata(L, 1, MGRID_LUA_BUFFER);
  if (!b->data)
    lua_pushliteral(L, "Buffer (closed)");
  else
    lua_pushfstring(L, "Buffer of %I %s for %s", (LUAI_UACINT)b->n, type_names[b->type],
                    b->kind->name);
  return 1;
}

/* -------------------------------------------------------------------- collectives */

/* Return the buffer at i. Raise unless it is for this group, has `least` elements or more, and has
** the type of `like` (NULL: any). */
static buffer *check_use(lua_State *L, int i, const mgrid_group *g, size_t least,
                         const buffer *like) {
  buffer *b = check_buffer(L, i);
  if (b->kind->native != mgrid_group_kind(g)->native || b->backend != g->state->backend)
    mgrid_lua_raise(
        L, "the buffer is for another job or backend (%s); make it with group:buffer of this group",
        b->kind->name);
  if (like && b->type != like->type)
    mgrid_lua_raise(L, "one buffer has elements of type %s, the other of %s",
                    type_names[like->type], type_names[b->type]);
  if (b->n < least) mgrid_lua_raise(L, "the buffer has %zu elements, %zu are needed", b->n, least);
  return b;
}

static mgrid_reduction reduction(lua_State *L, int i) {
  static const char *const names[] = { "sum", "prod", "min", "max", NULL };
  return (mgrid_reduction)luaL_checkoption(L, i, "sum", names);
}

/* If argument i is { rank = r }, return r; if it is a position, return -1. Reading the table may
** run Lua, so call this before asking for the group. */
static int64_t read_rank(lua_State *L, int i) {
  static const char *const known[] = { "rank" };
  if (!lua_istable(L, i)) return -1;
  mgrid_lua_check_keys(L, i, "word for a member", known, 1, false);
  if (lua_getfield(L, i, "rank") == LUA_TNIL || !lua_isinteger(L, -1))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                       "a member is a position, or { rank = r } with a rank of the world");
  int64_t rank = lua_tointeger(L, -1);
  lua_pop(L, 1);
  return rank;
}

/* Return the position of the member that argument i names. `rank` is the result of read_rank for
** this argument. */
static int64_t collectives_check_position(lua_State *L, int i, int64_t rank, const mgrid_group *g) {
  if (lua_istable(L, i)) {
    int64_t position = mgrid_group_position_of(g, rank);
    if (position < 0)
      mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                         "rank %lld is not in this group of %s, from rank %lld to rank %lld",
                         (long long)rank, g->name, (long long)mgrid_group_at(g, 0),
                         (long long)mgrid_group_at(g, mgrid_group_size(g) - 1));
    return position;
  }
  lua_Integer p = mgrid_lua_check_integer(L, i);
  if (p >= 0 && p < g->size) return p;
  char tail[64] = "";
  if (mgrid_group_position_of(g, p) >= 0)
    snprintf(tail, sizeof tail, "; { rank = %lld } is in it", (long long)p);
  mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                     "position %lld is out of range; the group has positions 0 to %lld%s",
                     (long long)p, (long long)g->size - 1, tail);
  return p;
}

static int do_work(lua_State *L, const mgrid_group *g, const mgrid_work *w) {
  mgrid_error e = MGRID_ERROR_INIT;
  return mgrid_lua_done(L, mgrid_group_work(g, w, &e), &e);
}

/* group:allreduce(buffer [, "sum"]), in place */
static int group_allreduce(lua_State *L) {
  mgrid_lua_check_group_of_host(L, 1);
  mgrid_reduction how = reduction(L, 3);
  const mgrid_group *g = mgrid_lua_check_group_of_host(L, 1);
  buffer *b = check_use(L, 2, g, 1, NULL);
  mgrid_work w = { .call = MGRID_ALLREDUCE,
                   .type = b->type,
                   .reduction = how,
                   .send = b->data,
                   .recv = b->data,
                   .count = b->n };
  return do_work(L, g, &w);
}

/* group:broadcast(buffer, position | { rank = r }) */
static int group_broadcast(lua_State *L) {
  mgrid_lua_check_group_of_host(L, 1);
  int64_t rank = read_rank(L, 3);
  const mgrid_group *g = mgrid_lua_check_group_of_host(L, 1);
  buffer *b = check_use(L, 2, g, 1, NULL);
  int64_t root = collectives_check_position(L, 3, rank, g);
  mgrid_work w = {
    .call = MGRID_BROADCAST, .type = b->type, .recv = b->data, .count = b->n, .root = root
  };
  return do_work(L, g, &w);
}

/* group:allgather(mine, all): `all` has the group's size times #mine elements */
static int group_allgather(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group_of_host(L, 1);
  buffer *mine = check_use(L, 2, g, 1, NULL),
         *all = check_use(L, 3, g, mine->n * (size_t)g->size, mine);
  mgrid_work w = { .call = MGRID_ALLGATHER,
                   .type = mine->type,
                   .send = mine->data,
                   .recv = all->data,
                   .count = mine->n };
  return do_work(L, g, &w);
}

/* group:reduce_scatter(all, mine [, "sum"]) */
static int group_reduce_scatter(lua_State *L) {
  mgrid_lua_check_group_of_host(L, 1);
  mgrid_reduction how = reduction(L, 4);
  const mgrid_group *g = mgrid_lua_check_group_of_host(L, 1);
  buffer *mine = check_use(L, 3, g, 1, NULL),
         *all = check_use(L, 2, g, mine->n * (size_t)g->size, mine);
  mgrid_work w = { .call = MGRID_REDUCE_SCATTER,
                   .type = mine->type,
                   .reduction = how,
                   .send = all->data,
                   .recv = mine->data,
                   .count = mine->n };
  return do_work(L, g, &w);
}

/* group:all_to_all(out, into): block i of `out` goes to position i; block i of `into` comes from
** position i */
static int group_all_to_all(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group_of_host(L, 1);
  size_t members = (size_t)g->size;
  buffer *out = check_use(L, 2, g, members, NULL), *in = check_use(L, 3, g, out->n, out);
  if (out == in) return mgrid_lua_raise(L, "an all-to-all needs two buffers");
  if (out->n % members != 0)
    return mgrid_lua_raise(L, "the buffer has %zu elements, which %zu members do not share equally",
                           out->n, members);
  mgrid_work w = { .call = MGRID_ALL_TO_ALL,
                   .type = out->type,
                   .send = out->data,
                   .recv = in->data,
                   .count = out->n / members };
  return do_work(L, g, &w);
}

/* group:sendrecv(out, to, into, from). `to` and `from` are positions or { rank = r }. Without `out`
** it only receives, without `into` it only sends */
static int group_sendrecv(lua_State *L) {
  lua_settop(L, 5);
  mgrid_lua_check_group_of_host(L, 1);
  int64_t to = lua_isnil(L, 2) ? -1 : read_rank(L, 3),
          from = lua_isnil(L, 4) ? -1 : read_rank(L, 5);
  const mgrid_group *g = mgrid_lua_check_group_of_host(L, 1);
  buffer *out = lua_isnil(L, 2) ? NULL : check_use(L, 2, g, 1, NULL);
  buffer *in = lua_isnil(L, 4) ? NULL : check_use(L, 4, g, 1, out);
  if (!out && !in)
    return mgrid_lua_raise(
        L, "sendrecv of nothing: give a buffer and a position to send, to receive, or both");
  if (out && in && out->n != in->n)
    return mgrid_lua_raise(L, "buffers of %zu and of %zu elements", out->n, in->n);
  mgrid_work w = { .call = MGRID_SENDRECV,
                   .type = out ? out->type : in->type,
                   .send = out ? out->data : NULL,
                   .recv = in ? in->data : NULL,
                   .count = out ? out->n : in->n,
                   .to = out ? collectives_check_position(L, 3, to, g) : -1,
                   .from = in ? collectives_check_position(L, 5, from, g) : -1 };
  return do_work(L, g, &w);
}

/* group:barrier() */
static int group_barrier(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group_of_host(L, 1);
  mgrid_backend *b = g->state->backend;
  mgrid_error e = MGRID_ERROR_INIT;
  if (!b->ops->buffer_new)
    return mgrid_lua_raise(L, "a %s state has no communicators", b->kind->name);
  /* over NCCL, a barrier is an all-reduce of this number */
  void *one = b->ops->buffer_new(b, mgrid_group_kind(g), sizeof(int32_t), &e);
  mgrid_work w = {
    .call = MGRID_BARRIER, .type = MGRID_INT32, .send = one, .recv = one, .count = 1
  };
  mgrid_status s = one ? mgrid_group_work(g, &w, &e) : e.status;
  b->ops->buffer_free(b, mgrid_group_kind(g), one);
  return mgrid_lua_done(L, s, &e);
}

const luaL_Reg mgrid_lua_group_use[] = { { "buffer", group_buffer },
                                         { "allreduce", group_allreduce },
                                         { "broadcast", group_broadcast },
                                         { "allgather", group_allgather },
                                         { "reduce_scatter", group_reduce_scatter },
                                         { "all_to_all", group_all_to_all },
                                         { "sendrecv", group_sendrecv },
                                         { "barrier", group_barrier },
                                         { NULL, NULL } };

/* ------------------------------------------------------------------ over the whole job
** Methods of Job. They use the calls by which ranks agree, so they need no state, and are for small
** data. */

mgrid_backend *mgrid_lua_check_job(lua_State *L, int i) {
  mgrid_backend *b = *(mgrid_backend **)luaL_checkudata(L, i, MGRID_LUA_JOB);
  if (!b) mgrid_lua_raise(L, "the job is closed");
  return b;
}

/* job:barrier([call]) */
static int job_barrier(lua_State *L) {
  const char *call = luaL_optstring(L, 2, NULL);
  mgrid_backend *b = mgrid_lua_check_job(L, 1);
  mgrid_error e = MGRID_ERROR_INIT;
  uint64_t word = 0;
  mgrid_status s = call ? mgrid_meet(b, mgrid_meet_call(b, false, "%s", call), &e)
                        : b->ops->allreduce_min(b, &word, 1, &e);
  return mgrid_lua_done(L, s, &e);
}

/* job:settle([done [, message, status]]) -> true | nil, message, status: the verdict of all ranks.
** After a success, all ranks also know on which node each rank runs */
static int job_settle(lua_State *L) {
  mgrid_location *locations = NULL;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_check_job(L, 1);
  mgrid_lua_read_failure(L, 2, "settle", &e);
  mgrid_backend *b = mgrid_lua_check_job(L, 1);
  if (!e.status) mgrid_locations_new(b, &locations, &e);
  mgrid_status s = mgrid_verdict(b, e.status, &e, &e);
  if (!s && locations) s = mgrid_locations_verdict(b, locations, MGRID_OK, NULL, &e);
  mgrid_release(locations);
  return mgrid_lua_done(L, s, &e);
}

/* job:agree(call, plan | nil [, message, status]) -> true | nil, message, status */
static int job_agree(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_check_job(L, 1);
  lua_settop(L, 5);
  mgrid_lua_read_failure(L, 3, "agree", &e);
  const char *call = luaL_checkstring(L, 2);
  const mgrid_plan *p = e.status ? NULL : mgrid_lua_check_plan(L, 3);
  mgrid_backend *b = mgrid_lua_check_job(L, 1);
  mgrid_status s = mgrid_agree_in(b, mgrid_meet_call(b, true, "%s", call), p, false, &e, &e);
  return mgrid_lua_done(L, s, &e);
}

/* The root's first message, by which each rank checks whether the data fits before it is sent. */
typedef struct heading {
  int64_t type; /* of a buffer; VALUE: the data is JSON */
  size_t bytes; /* all ranks refuse more than MOST */
} heading;

enum { VALUE = -1, MOST = 1 << 30 };

/* Pack the root's data into *data. The caller frees *data by mgrid_release. */
static mgrid_status pack(lua_State *L, const buffer *own, heading *p, void **data,
                         mgrid_error *err) {
  if (own) {
    *p = (heading){ own->type, own->n * type_sizes[own->type] };
    if (p->bytes <= MOST && !(*data = mgrid_realloc(NULL, NULL, 0, p->bytes)))
      return mgrid_oom(err);
    return *data ? own->backend->ops->copy(own->backend, own->kind, *data, own->data, p->bytes,
                                           false, err)
                 : MGRID_OK;
  }

  json_t *value = mgrid_json_of(L, 2);
  if (!value)
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "a broadcast is of a Buffer or a plain value, not of a %s",
                      luaL_typename(L, 2));

  mgrid_text text = { 0 };
  mgrid_json_text(value, JSON_COMPACT | JSON_SORT_KEYS, &text);
  json_decref(value);
  if (text.failed) {
    mgrid_text_free(&text);
    return mgrid_oom(err);
  }
  *data = text.data;
  *p = (heading){ VALUE, text.len };
  return MGRID_OK;
}

/* Check that this rank can receive the root's data: a value, or a buffer for which this rank has
** one of equal type and size. */
static mgrid_status buffer_fits(const buffer *own, const heading *p, bool root, void **data,
                                mgrid_error *err) {
  if (p->type < VALUE || p->type >= (int64_t)(sizeof type_sizes / sizeof *type_sizes))
    return mgrid_fail(err, MGRID_BACKEND, "the root broadcasts data of an unknown type, %" PRId64,
                      p->type);
  if (p->bytes > MOST)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "a broadcast over the job is of at most %d bytes, not %zu", MOST, p->bytes);
  if (p->type == VALUE && own)
    return mgrid_fail(err, MGRID_REFUSED, "the root broadcasts a value, this rank has a Buffer");
  if (p->type != VALUE && !own)
    return mgrid_fail(err, MGRID_REFUSED, "the root broadcasts a Buffer, this rank has none");
  if (own && ((int64_t)own->type != p->type || own->n * type_sizes[own->type] != p->bytes))
    return mgrid_fail(
        err, MGRID_REFUSED, "the root broadcasts %zu %s, this rank has a Buffer of %zu %s",
        p->bytes / type_sizes[p->type], type_names[p->type], own->n, type_names[own->type]);
  if (!root && !(*data = mgrid_realloc(NULL, NULL, 0, p->bytes + 1))) return mgrid_oom(err);
  return MGRID_OK;
}

static int collectives_unpack(lua_State *L, const heading *p, const char *data, mgrid_error *err) {
  json_error_t why = { 0 };
  json_t *value = mgrid_json_parse(data, p->bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
  if (value) return mgrid_take_json(L, value);
  if (json_error_code(&why) == json_error_out_of_memory) return mgrid_oom(err);
  return mgrid_fail(
      err, MGRID_REFUSED,
      "the value of the root cannot be read: the carrier delivered other bytes than were sent");
}

/* job:broadcast(value or buffer [, root]) -> the root's value, or the buffer with the root's
** elements */
static int job_broadcast(lua_State *L) {
  mgrid_backend *b = mgrid_lua_check_job(L, 1);

  lua_settop(L, 3);
  buffer *own = luaL_testudata(L, 2, MGRID_LUA_BUFFER) ? check_buffer(L, 2) : NULL;
  lua_Integer root = mgrid_lua_opt_integer(L, 3, 0);
  if (root < 0 || root >= b->world)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "rank %lld is out of range; ranks are 0 to %" PRId64, (long long)root,
                              b->world - 1);
  if (own && own->backend != b) return mgrid_lua_raise(L, "the buffer is of another job");
  mgrid_error e = MGRID_ERROR_INIT;
  heading p = { VALUE, 0 };
  void *data = NULL;
  bool is_root = root == b->rank;
  mgrid_backend_ref(b); /* reading the value may close the job */
  mgrid_status mine = is_root ? pack(L, own, &p, &data, &e) : MGRID_OK, s;
  const heading packed = p;
  s = b->ops->bcast(b, &p, sizeof p, root, mine ? NULL : &e);
  if (is_root) p = packed; /* the broadcast may have returned another size */
  if (!s) {
    /* a value of no bytes: the root has failed */
    if (!mine && (p.type != VALUE || p.bytes > 0)) mine = buffer_fits(own, &p, is_root, &data, &e);
    s = mgrid_verdict(b, mine, &e, &e);
  }
  if (!s) s = b->ops->bcast(b, data, p.bytes, root, &e);
  if (!s && own && !is_root) s = b->ops->copy(b, own->kind, own->data, data, p.bytes, true, &e);
  mgrid_backend_free(b);
  int raised = s || own ? 0 : collectives_unpack(L, &p, data, &e);
  mgrid_release(data);
  if (s) return mgrid_lua_failure(L, &e);
  if (raised) return e.status ? mgrid_lua_raise_error(L, &e) : lua_error(L);
  if (own) lua_pushvalue(L, 2);
  return 1;
}

const luaL_Reg mgrid_lua_job_use[] = { { "barrier", job_barrier },
                                       { "settle", job_settle },
                                       { "agree", job_agree },
                                       { "broadcast", job_broadcast },
                                       { NULL, NULL } };

static const luaL_Reg buffer_methods[] = {
  { "set", buffer_set }, { "get", buffer_get }, { "close", buffer_close }, { NULL, NULL }
};
static const luaL_Reg buffer_meta[] = { { "__gc", buffer_close },
                                        { "__close", buffer_close },
                                        { "__len", buffer_len },
                                        { "__tostring", buffer_tostring },
                                        { NULL, NULL } };
static const mgrid_lua_class buffer_class = { MGRID_LUA_BUFFER, NULL, buffer_methods, NULL,
                                              buffer_meta };

void mgrid_lua_open_use(lua_State *L) { mgrid_lua_open_class(L, &buffer_class); }
