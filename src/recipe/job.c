/* SPDX-License-Identifier: MIT
**
** job.c - moongrid.mpi() and the functions for other backends, for scripts under mpirun. Each
** returns a Job, which is an open backend.
*/
#include "moongrid_lua.h"

#include "comm/backend_open.h"
#include "recipe/module_row.h"

#include <limits.h>

/* Push a Job. If `opened` is NULL, push nil, message, status instead. */
static int job_or_failure(lua_State *L, mgrid_backend **box, mgrid_backend *opened,
                          const mgrid_error *e) {
  *box = opened;
  return opened ? 1 : mgrid_lua_failure(L, e);
}

/* Read the optional table { timeout, threads, on_deadline, communicators, comm }, or `comm` alone,
** at 1. Backends that make no communicators have only `timeout`. *comm holds the Fortran handle of
** the host's communicator, to which the result points. */
static mgrid_mpi_options opening(lua_State *L, const mgrid_descriptor *d, int *comm) {
  static const char *const known[] = { "timeout", "threads", "on_deadline", "communicators",
                                       "comm" };

  static const char *const ends[] = { "error", "abort" }; /* in the order of mgrid_on_deadline */

  /* in the order of mgrid_threads */
  static const char *const levels[] = { "any", "funneled", "serialized", "multiple" };
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  char what[64];
  if (lua_isnoneornil(L, 1)) return o;
  if (d->native && lua_isinteger(L, 1)) {
    lua_createtable(L, 0, 1);
    lua_insert(L, 1);
    lua_setfield(L, 1, "comm");
  }
  luaL_checktype(L, 1, LUA_TTABLE);
  snprintf(what, sizeof what, "option of %s", d->name);
  mgrid_lua_check_keys(L, 1, what, known, d->native ? 5 : 1, false);
  if (lua_getfield(L, 1, "timeout") != LUA_TNIL) o.timeout = luaL_checknumber(L, -1);
  if (lua_getfield(L, 1, "comm") != LUA_TNIL) {
    lua_Integer handle = mgrid_lua_check_integer(L, -1);
    if (handle < INT_MIN || handle > INT_MAX)
      mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                         "comm is the Fortran handle of a communicator (MPI_Comm_c2f), not %lld",
                         (long long)handle);
    *comm = (int)handle;
    o.comm = comm;
  }
  const char *level = lua_getfield(L, 1, "threads") == LUA_TNIL ? levels[0]
                                                                : luaL_checkstring(L, -1);
  while (o.threads < 4 && strcmp(levels[o.threads], level) != 0) o.threads++;
  if (o.threads == 4) mgrid_lua_unknown(L, "level of threads", level, levels, 4);
  const char *end = lua_getfield(L, 1, "on_deadline") == LUA_TNIL ? ends[0]
                                                                  : luaL_checkstring(L, -1);
  if (strcmp(end, ends[0]) != 0 && strcmp(end, ends[1]) != 0)
    mgrid_lua_unknown(L, "on_deadline", end, ends, 2);
  o.on_deadline = strcmp(end, ends[1]) == 0 ? MGRID_DEADLINE_ABORT : MGRID_DEADLINE_ERROR;
  if (lua_getfield(L, 1, "communicators") != LUA_TNIL)
    o.communicators = mgrid_lua_check_integer(L, -1);
  return o;
}

/* Return the backend that the running function opens: the function's upvalue. NULL: the function is
** `auto`. */
static const mgrid_descriptor *job_row_of(lua_State *L) {
  return lua_touserdata(L, lua_upvalueindex(1));
}

/* moongrid.mpi([options or comm]), moongrid.pmix([options]) -> Job | nil, message, status. The Job
** of mpi is over MPI_COMM_WORLD, or over the communicator with the Fortran handle `comm`. The Job
** of pmix has the ranks that a launcher with PMIx has started. Collective */
static int job_open_alone(lua_State *L) {
  int comm = 0;
  mgrid_mpi_options mpi = opening(L, job_row_of(L), &comm);
  mgrid_backend_options o = { sizeof o, mpi.timeout, &mpi };
  mgrid_backend **box = mgrid_lua_new_job(L);
  mgrid_error e = MGRID_ERROR_INIT;
  return job_or_failure(L, box, mgrid_backend_open(job_row_of(L)->name, &o, &e), &e);
}

/* Open the backend that the option `carrier` names. Raise for an unknown name. NULL: *e is set. */
static mgrid_backend *job_carrier_of(lua_State *L, const char *name, double timeout,
                                     mgrid_error *e) {
  const char *carriers[MGRID_BACKENDS_MAX];
  size_t n = mgrid_backend_names(carriers, MGRID_BACKENDS_CARRIERS);
  mgrid_backend_options o = { sizeof o, timeout, NULL };
  for (size_t i = 0; i < n; i++)
    if (strcmp(name, carriers[i]) == 0) return mgrid_backend_open(name, &o, e);
  mgrid_lua_unknown(L, "carrier", name, carriers, n);
  return NULL;
}

/* Read the option `device`: the GPU of this rank, or a list of the GPUs of all ranks of a node. A
** negative number is the default. The userdata with the numbers stays on the stack. */
static void read_devices(lua_State *L, mgrid_nccl_options *o) {
  bool list = lua_getfield(L, 1, "device") == LUA_TTABLE;
  size_t n = list ? lua_rawlen(L, -1) : !lua_isnil(L, -1);
  int *devices = n > INT_MAX / sizeof *devices ? NULL
                                               : lua_newuserdatauv(L, (n + 1) * sizeof *devices, 0);
  for (size_t i = 0; devices && i < n; i++) {
    if (list) lua_rawgeti(L, -2, (lua_Integer)i + 1);
    devices[i] = (int)mgrid_lua_check_integer(L, list ? -1 : -2);
    if (list) lua_pop(L, 1);
  }
  if (n > 0 && (list || devices[0] >= 0)) o->devices = devices, o->ndevices = (int)n;
}

/* moongrid.nccl([{ carrier, device, share_gpu, timeout, budget, ranks_per_id, blocking }]) -> Job
** on the GPUs of the carrier's ranks | nil, message, status. The default carrier is MPI over
** MPI_COMM_WORLD. moongrid.auto opens the first GPU backend that all ranks can open. If there is
** none, the Job is the carrier itself. Collective */
static int job_open_over(lua_State *L) {
  static const char *const known[] = { "carrier", "device",       "share_gpu", "timeout",
                                       "budget",  "ranks_per_id", "blocking" };
  const mgrid_descriptor *d = job_row_of(L);
  const char *name = mgrid_backend_usual()->name;
  bool given = false; /* whether the script has given the carrier, as a Job at 2 */
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;

  if (!lua_isnoneornil(L, 1)) {
    char what[64];
    luaL_checktype(L, 1, LUA_TTABLE);
    snprintf(what, sizeof what, "option of %s", d ? d->name : "auto");
    mgrid_lua_check_keys(L, 1, what, known, 7, false);
    lua_settop(L, 1);
    given = lua_getfield(L, 1, "carrier") == LUA_TUSERDATA;
    if (given)
      mgrid_lua_check_job(L, 2);
    else if (!lua_isnil(L, 2))
      name = luaL_checkstring(L, 2);
    if (lua_getfield(L, 1, "ranks_per_id") != LUA_TNIL)
      o.ranks_per_id = (int)mgrid_lua_check_integer(L, -1);
    read_devices(L, &o);
    if (lua_getfield(L, 1, "timeout") != LUA_TNIL) o.timeout = luaL_checknumber(L, -1);
    if (lua_getfield(L, 1, "budget") != LUA_TNIL) o.budget = mgrid_lua_check_integer(L, -1);
    if (lua_getfield(L, 1, "blocking") != LUA_TNIL) o.nonblocking = !lua_toboolean(L, -1);
    lua_getfield(L, 1, "share_gpu");
    o.share_gpu = lua_toboolean(L, -1);
  }
  mgrid_backend **box = mgrid_lua_new_job(L);
  mgrid_backend *carrier = given ? mgrid_backend_ref(mgrid_lua_check_job(L, 2))
                                 : job_carrier_of(L, name, o.timeout, &e);
  if (carrier)
    *box = d ? mgrid_backend_over(carrier, d->name, &o, &e) : mgrid_backend_best(carrier, &o, &e);
  mgrid_backend_free(carrier); /* the backend over it is an owner, too */
  return job_or_failure(L, box, *box, &e);
}

/* job:materialize(plan [, name]) -> State | nil, message, status. Collective. */
static int job_materialize(lua_State *L) {
  mgrid_lua_check_job(L, 1);
  mgrid_plan *p = mgrid_lua_check_plan(L, 2);
  const char *name = luaL_optstring(L, 3, "");
  mgrid_state **box = mgrid_lua_new_state(L, true);
  mgrid_error e = MGRID_ERROR_INIT;
  *box = mgrid_materialize(p, mgrid_lua_check_job(L, 1), name, &e);
  if (!*box) return mgrid_lua_failure(L, &e);
  mgrid_lua_keep_recipe(L, 2);
  return 1;
}

static int job_close(lua_State *L) {
  mgrid_backend **box = luaL_checkudata(L, 1, MGRID_LUA_JOB);
  mgrid_backend_free(*box);
  *box = NULL;
  return 0;
}

static int job_rank(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_job(L, 1)->rank);
  return 1;
}

static int job_world(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_job(L, 1)->world);
  return 1;
}

static int job_backend(lua_State *L) {
  lua_pushstring(L, mgrid_lua_check_job(L, 1)->kind->name);
  return 1;
}

static int job_ncomms(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)mgrid_backend_ncomms(mgrid_lua_check_job(L, 1)));
  return 1;
}

static int job_machine_ranks(lua_State *L) {
  int64_t n = mgrid_lua_check_job(L, 1)->spread.block;
  return n ? lua_pushinteger(L, n) : lua_pushnil(L), 1;
}

static int job_tostring(lua_State *L) {
  mgrid_backend *b = *(mgrid_backend **)luaL_checkudata(L, 1, MGRID_LUA_JOB);
  if (!b)
    lua_pushliteral(L, "Job (closed)");
  else
    lua_pushfstring(L, "Job: rank %I of %I", (LUAI_UACINT)b->rank, (LUAI_UACINT)b->world);
  return 1;
}

static const luaL_Reg job_fields[] = { { "rank", job_rank },
                                       { "world", job_world },
                                       { "backend", job_backend },
                                       { "ncomms", job_ncomms },
                                       { "machine_ranks", job_machine_ranks },
                                       { NULL, NULL } };
static const luaL_Reg job_methods[] = { { "materialize", job_materialize },
                                        { "close", job_close },
                                        { NULL, NULL } };
static const luaL_Reg job_meta[] = {
  { "__gc", job_close }, { "__close", job_close }, { "__tostring", job_tostring }, { NULL, NULL }
};
static const mgrid_lua_class job_class = { MGRID_LUA_JOB, job_fields, job_methods,
                                           mgrid_lua_job_use, job_meta };

void mgrid_lua_open_job(lua_State *L) {
  mgrid_lua_open_class(L, &job_class);
  lua_pushlightuserdata(L, NULL);
  lua_pushcclosure(L, job_open_over, 1);
  lua_setfield(L, -2, "auto");
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++) {
    if (!d->library) continue;
    lua_pushlightuserdata(L, (void *)(uintptr_t)d);
    lua_pushcclosure(L, d->carried ? job_open_over : job_open_alone, 1);
    lua_setfield(L, -2, d->name);
  }
}
