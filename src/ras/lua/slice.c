/* SPDX-License-Identifier: MIT
**
** slice.c - moongrid.ras: what NCCL's watchers say of a job that runs, for hosts.
*/
#include "ras/findings.h"
#include "recipe/slice.h"
#include "recipe/values.h"

/* What NCCL before 2.28.7 says. */
static int push_text(lua_State *L, char *text) {
  mgrid_text t = { 0 };
  mgrid_text_shown_lines(&t, text);
  mgrid_release(text);
  lua_pushnil(L);
  mgrid_lua_push_text(L, &t);
  return 2;
}

/* moongrid.ras(address [, plan]) -> a list of { hash, groups, size, finding }, the version of NCCL; nil, text: of an old one */
static int ask(lua_State *L) {
  const char       *address = luaL_checkstring(L, 1);
  const mgrid_plan *plan = lua_isnoneornil(L, 2) ? NULL : mgrid_lua_check_plan(L, 2);
  json_t           *answer = NULL, *list = NULL;
  char             *text = NULL, version[64];
  mgrid_error       e = MGRID_ERROR_INIT;
  if (ras_ask(address, &answer, &text, &e)) return mgrid_lua_raise_error(L, &e);
  if (text) return push_text(L, text);
  const char  *said = json_string_value(json_object_get(answer, "nccl_version"));
  mgrid_status s = ras_findings(answer, plan, &list, &e);
  snprintf(version, sizeof version, "%s", said ? said : "?");
  json_decref(answer);
  if (s) return mgrid_lua_raise_error(L, &e);
  if (mgrid_take_json(L, list)) return lua_error(L);
  lua_pushstring(L, version);
  return 2;
}

static void open_host(lua_State *L) {
  lua_pushcfunction(L, ask);
  lua_setfield(L, -2, "ras");
}

extern const mgrid_lua_slice mgrid_lua_slice_ras;
const mgrid_lua_slice        mgrid_lua_slice_ras = { .open_host = open_host, .name = "ras" };
