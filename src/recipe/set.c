/* SPDX-License-Identifier: MIT
**
** set.c - settings, which a host switches while it runs and the recipe's queries see. The recipe declares them and
** their kinds; the state keeps the values.
*/
#include "recipe/entry.h"
#include "recipe/prelude.h"
#include "recipe/runtime.h"
#include "recipe/values.h"

typedef struct request {
  mgrid_state       *state;
  const char        *name;
  const mgrid_given *value;
} request;

/* Keep the value at i under this name; nil removes it. False: out of memory. */
static bool keep(lua_State *L, int i, mgrid_state *s, const char *name) {
  if (!s->settings && !(s->settings = json_object())) return false;
  if (!lua_isnil(L, i)) return json_object_set_new(s->settings, name, mgrid_json_of(L, i)) == 0;
  json_object_del(s->settings, name);
  return true;
}

static int set_body(lua_State *L) {
  request *set = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "set");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  lua_pushstring(L, set->name);
  mgrid_push_given(L, set->value);
  lua_call(L, 3, 2);
  if (keep(L, -1, set->state, lua_tostring(L, -2))) return 0;
  mgrid_lua_charge(L, 0); /* raises if that is the reason */
  return mgrid_lua_oom(L);
}

mgrid_status mgrid_runtime_set_with(mgrid_runtime *rt, mgrid_state *s, const char *name, const mgrid_given *value,
                                    mgrid_error *err) {
  mgrid_status status = mgrid_runtime_check_state(rt, s, err);
  return status ? status : mgrid_runtime_call(rt, set_body, &(request){ s, name, value }, 0, err);
}

mgrid_status mgrid_script_set(mgrid_runtime *rt, mgrid_state *s, const mgrid_arg *setting, mgrid_error *err) {
  mgrid_status status = mgrid_args_check(1, setting, "setting", err);
  return status ? status
                : mgrid_runtime_set_with(rt, s, setting->name, &(mgrid_given){ .n = 1, .args = setting, .one = true },
                                         err);
}
