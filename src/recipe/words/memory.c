/* SPDX-License-Identifier: MIT
**
** memory.c - for Lua: the windows and the device communicator of a group; the GPU memory that a state holds, releases
** and takes again. Addresses are light userdata, which a program passes on to kernels.
*/
#include "recipe/bind.h"

static void set_address(lua_State *L, const char *key, const void *address) {
  if (address)
    lua_pushlightuserdata(L, (void *)(uintptr_t)address);
  else
    lua_pushnil(L);
  lua_setfield(L, -2, key);
}

/* group:window(name) -> { buffer, bytes, handle }, or nil where there is no communicator */
int mgrid_lua_group_window(lua_State *L) {
  mgrid_lua_check_group(L, 1);
  const char       *name = luaL_checkstring(L, 2);
  mgrid_nccl_window w = MGRID_NCCL_WINDOW_INIT;
  mgrid_error       e = MGRID_ERROR_INIT;
  if (mgrid_group_window(mgrid_lua_check_group(L, 1), name, &w, &e)) return mgrid_lua_raise_error(L, &e);
  if (!w.buffer) {
    lua_pushnil(L);
    return 1;
  }
  lua_createtable(L, 0, 3);
  set_address(L, "buffer", w.buffer);
  set_address(L, "handle", w.handle);
  mgrid_lua_set_integer(L, "bytes", w.bytes);
  return 1;
}

/* group:device() -> address, version of NCCL; or nil */
int mgrid_lua_group_device(lua_State *L) {
  int         version = 0;
  const void *device = mgrid_group_device(mgrid_lua_check_group(L, 1), &version);
  if (!device) {
    lua_pushnil(L);
    return 1;
  }
  lua_pushlightuserdata(L, (void *)(uintptr_t)device);
  lua_pushinteger(L, version);
  return 2;
}

static int change(lua_State *L, mgrid_status (*call)(mgrid_state *s, mgrid_error *err)) {
  mgrid_error e = MGRID_ERROR_INIT;
  if (call(mgrid_lua_check_host_state(L), &e)) return mgrid_lua_failure(L, &e);
  lua_pushboolean(L, 1);
  return 1;
}

int mgrid_lua_state_suspend(lua_State *L) { return change(L, mgrid_state_suspend); }
int mgrid_lua_state_resume(lua_State *L) { return change(L, mgrid_state_resume); }

/* state:held_memory() -> { communicators, suspended, total, suspendable, persistent } */
int mgrid_lua_state_held_memory(lua_State *L) {
  mgrid_held_memory m = MGRID_HELD_MEMORY_INIT;
  mgrid_error       e = MGRID_ERROR_INIT;
  if (mgrid_state_held_memory(mgrid_lua_check_host_state(L), &m, &e)) return mgrid_lua_failure(L, &e);
  const struct {
    const char *key;
    int64_t     value;
  } fields[] = { { "communicators", m.communicators },
                 { "suspended", m.suspended },
                 { "total", m.total },
                 { "suspendable", m.suspendable },
                 { "persistent", m.persistent } };
  lua_createtable(L, 0, 5);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    lua_pushinteger(L, fields[i].value);
    lua_setfield(L, -2, fields[i].key);
  }
  return 1;
}
