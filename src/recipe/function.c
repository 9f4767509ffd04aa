/* SPDX-License-Identifier: MIT
**
** function.c - functions of the host that its recipes call by name. The arguments of a call are in
** userdata, so they count as memory of the recipe, and are freed if an error is raised.
**
** A plan lists the functions that the text of its recipe names, not those that were called: a query
** or a policy may call a function later, on one rank only. load.c marks the functions that a file
** names, and prelude/recipe.lua collects those of all files of a recipe.
*/
#include "recipe/function.h"

#include "recipe/bundle.h"
#include "recipe/entry.h"
#include "recipe/prelude.h"
#include "recipe/result.h"
#include "recipe/sandbox.h"
#include "recipe/values.h"

#include <string.h>

static const char functions_key = 'f'; /* its address: the registry key of the runtime's list */

/* -------------------------------------------------------------------------- calls */

/* Refuse arguments that are not plain values. The walk through them is charged to the recipe. */
static void check_arguments(lua_State *L, const mgrid_function *f, int n) {
  for (int i = 1; i <= n; i++) {
    if (mgrid_has_json(L, i)) continue;
    mgrid_lua_charge(L, 0); /* raises if the budget is exhausted */
    mgrid_lua_raise_as(
        L, MGRID_BAD_VALUE,
        "%s: argument %d is %s; arguments are finite numbers, text in UTF-8, true, false, "
        "nil, lists, and tables with names as keys",
        f->name, i,
        lua_type(L, i) == LUA_TTABLE ? "a table with other keys or values, or too many"
                                     : mgrid_lua_kind(L, i));
  }
}

static int function_fail(lua_State *L, const mgrid_function *f, mgrid_status status,
                         const mgrid_error *e) {
  mgrid_status s = e->status ? e->status : status;
  const char *text = mgrid_status_text(s);
  if (s == MGRID_NO_MEMORY) return mgrid_lua_oom(L);
  if (strcmp(text, "unknown status") == 0)
    return mgrid_lua_raise(L, "%s: it returned %d, which is not a status", f->name, (int)s);
  if (*e->message) text = e->message;
  char shown[sizeof e->message];
  shown[mgrid_shown(shown, sizeof shown - 1, text, strnlen(text, sizeof e->message))] = '\0';
  return mgrid_lua_raise_as(L, s, "%s: %s", f->name, shown);
}

/* The function that a recipe calls. Upvalue: the mgrid_function */
static int call_host(lua_State *L) {
  const mgrid_function *f = lua_touserdata(L, lua_upvalueindex(1));
  const int n = lua_gettop(L);
  mgrid_arg result = MGRID_ARG_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, f->work);
  check_arguments(L, f, n);
  lua_newtable(L);
  mgrid_arg_maker c = { L, n + 1, f->arg_size, f->name };
  char *args = mgrid_arg_array(&c, (size_t)n, f->arg_size);
  for (int i = 1; i <= n; i++) lua_pushvalue(L, i), mgrid_arg_put(&c, args, (size_t)i - 1, NULL);
  result.size = f->arg_size;
  mgrid_status s = f->call(f->ud, (size_t)n, (const mgrid_arg *)args, &result, &e);
  result.size = f->arg_size; /* the function may have overwritten the size */
  if (!s && !e.status) s = mgrid_args_check(1, &result, NULL, &e);
  if (s || e.status) return function_fail(L, f, s, &e);
  mgrid_push_given(L, &(mgrid_given){ .one = true, .args = &result });
  if (!mgrid_value_fits(L, -1)) mgrid_lua_charge(L, 0); /* raises if the budget is exhausted */
  return 1;
}

/* ------------------------------------------------------------------- registration */

static void free_function(mgrid_host_function *own) {
  if (!own) return;
  mgrid_release((char *)(uintptr_t)own->f.name);
  mgrid_release((char *)(uintptr_t)own->f.version);
  mgrid_release(own);
}

void mgrid_functions_free(mgrid_runtime *rt) {
  for (mgrid_host_function *own = rt->functions, *next; own; own = next) {
    next = own->next;
    free_function(own);
  }
  rt->functions = NULL;
}

typedef struct addition {
  mgrid_host_function *own, **list;
} addition;

static int add_body(lua_State *L) {
  const addition *a = lua_touserdata(L, 1);
  const char *name = a->own->f.name;
  if (mgrid_sandbox_is_taken(L, name))
    return mgrid_lua_raise_as(
        L, MGRID_DUPLICATE,
        "'%s' is a word of recipes or of Lua already: give the function of the host "
        "another name",
        name);
  lua_pushlightuserdata(L, a->list);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &functions_key);
  lua_pushlightuserdata(L, &a->own->f);
  lua_pushcclosure(L, call_host, 1);
  mgrid_sandbox_add(L, name);
  return 0;
}

static mgrid_status function_check(const mgrid_runtime *rt, const mgrid_function *f,
                                   mgrid_error *err) {
  if (rt->recipe || rt->unloaded.status)
    return mgrid_fail(err, MGRID_NOT_NOW,
                      "functions of the host are registered before the recipe is loaded");
  if (mgrid_lacks(f->name, "the name of a function", err)
      || mgrid_lacks(f->version, "the version of a function", err)
      || mgrid_lacks(f->call, "the function", err))
    return MGRID_USAGE;

  if (!mgrid_is_name(f->name))
    return mgrid_fail(
        err, MGRID_BAD_VALUE,
        "'%s' is not a function name (a letter or _, then letters, digits or _; at most %d)",
        f->name, MGRID_NAME_MAX);

  char what[MGRID_NAME_MAX + 40];
  snprintf(what, sizeof what, "the version of function '%s'", f->name);
  if (!*f->version)
    return mgrid_fail(err, MGRID_BAD_VALUE, "%s is one line of text, not empty", what);
  if (mgrid_check_line(what, f->version, strlen(f->version), err)) return MGRID_BAD_VALUE;

  if (f->work < 0)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "the work of function '%s' is 0 (the default) or more, not %lld", f->name,
                      (long long)f->work);
  if (f->arg_size < offsetof(mgrid_arg, as) || f->arg_size > sizeof(mgrid_arg))
    return mgrid_fail(err, MGRID_BAD_STRUCT,
                      "arg_size of function '%s' is sizeof(mgrid_arg), not %zu", f->name,
                      f->arg_size);

  for (const mgrid_host_function *other = rt->functions; other; other = other->next)
    if (strcmp(other->f.name, f->name) == 0)
      return mgrid_fail(err, MGRID_DUPLICATE,
                        "the runtime has a function '%s' already, of version %s", f->name,
                        other->f.version);
  return MGRID_OK;
}

mgrid_status mgrid_script_function(mgrid_runtime *rt, const mgrid_function *given,
                                   mgrid_error *err) {
  mgrid_function f = MGRID_FUNCTION_INIT;
  mgrid_status s = mgrid_struct_read(&f, sizeof f, given, "mgrid_function", err);
  if (f.arg_size == 0) f.arg_size = sizeof(mgrid_arg);
  if (f.work == 0) f.work = 100;
  if (!s) s = function_check(rt, &f, err);
  if (s) return s;
  mgrid_host_function *own = mgrid_zeroed(NULL, sizeof *own), **at = &rt->functions;
  if (!own) return mgrid_oom(err);
  own->f = f;
  own->f.name = mgrid_strdup(f.name), own->f.version = mgrid_strdup(f.version);
  s = own->f.name && own->f.version ? MGRID_OK : mgrid_oom(err);
  if (!s) s = mgrid_runtime_protected(rt, add_body, &(addition){ own, &rt->functions }, err);
  if (s) {
    free_function(own);
    return s;
  }
  while (*at && strcmp((*at)->f.name, f.name) < 0) at = &(*at)->next;
  own->next = *at;
  *at = own;
  return MGRID_OK;
}

mgrid_status mgrid_functions_copy(mgrid_runtime *to, const mgrid_runtime *from, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (const mgrid_host_function *own = from->functions; own && !s; own = own->next)
    s = mgrid_script_function(to, &own->f, err);
  return s;
}

/* ---------------------------------------------------- functions that a text names */

static mgrid_host_function *functions_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &functions_key);
  mgrid_host_function **list = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return list ? *list : NULL;
}

void mgrid_functions_note(lua_State *L, const char *text, size_t len) {
  mgrid_host_function *list = functions_of(L);
  for (mgrid_host_function *own = list; own; own = own->next) own->named = false;
  if (!list || !text) return;
  mgrid_bundle_push(L, "lua_words");
  lua_pushlstring(L, text, len);
  lua_call(L, 1, 1);
  /* by _ENV[...] a recipe can call a function whose name is not in the text */
  const bool all = lua_getfield(L, -1, "_ENV") != LUA_TNIL;
  lua_pop(L, 1);
  for (mgrid_host_function *own = list; own; own = own->next, lua_pop(L, 1))
    own->named = lua_getfield(L, -1, own->f.name) != LUA_TNIL || all;
  lua_pop(L, 1);
}

void mgrid_functions_push(lua_State *L) {
  lua_pushnil(L);
  for (const mgrid_host_function *own = functions_of(L); own; own = own->next) {
    if (!own->named) continue;
    if (lua_isnil(L, -1)) lua_newtable(L), lua_replace(L, -2);
    mgrid_lua_set_string(L, own->f.name, own->f.version);
  }
}
