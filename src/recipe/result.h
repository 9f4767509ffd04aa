/* SPDX-License-Identifier: MIT
**
** result.h - turns values of Lua into C values.
*/
#ifndef MGRID_RECIPE_RESULT_H
#define MGRID_RECIPE_RESULT_H

#include "recipe/runtime.h"
#include "recipe/values.h"

/* Makes arrays of mgrid_arg from plain values of Lua. */
typedef struct mgrid_arg_maker {
  lua_State *L;
  int kept;    /* index of the table that keeps the arrays */
  size_t each; /* bytes of an mgrid_arg in the build of the host */
  /* the host's function whose arguments the values are; NULL: they are a result */
  const char *function;
} mgrid_arg_maker;

/* Return an array of n elements. May raise. */
char *mgrid_arg_array(const mgrid_arg_maker *c, size_t n, size_t each);
/* Make element k of an array from the value on the top, and pop the value. May raise. */
void mgrid_arg_put(const mgrid_arg_maker *c, char *array, size_t k, const char *name);

/* Pop the value on the top and keep it as the result, in place of the last one. *result is the
** reference of the result in the registry (LUA_NOREF: make one). Raise if the value is a function,
** a userdata or a thread; the members of a table are checked when the result is read. Messages name
** `from`, such as "policy 'layers'", as the origin of the value. */
void mgrid_result_keep(lua_State *L, int *result, const char *from);
void mgrid_result_forget(lua_State *L, int result);
/* Push the result, or nil if there is none. Never raise. */
void mgrid_result_push(lua_State *L, int result);

/* Push a copy of the result to another Lua state, or raise there. */
void mgrid_result_copy(mgrid_runtime *rt, int result, mgrid_plain plain, const char *from,
                       lua_State *to);

typedef struct mgrid_reading {
  mgrid_runtime *rt;
  int result;
  const char *from, *path; /* path NULL: read all of the result */
  mgrid_kind wanted;
  bool may_lack; /* true: without a value, the answer is MGRID_IS_NONE; false: that is an error */
} mgrid_reading;

/* Read a result, or the value at a path in it, as mgrid_policy_result does. The caller has checked
** the size of *out. */
mgrid_status mgrid_result_read(const mgrid_reading *r, mgrid_arg *out, mgrid_error *err);

#endif
