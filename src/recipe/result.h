/* SPDX-License-Identifier: MIT
**
** result.h - turns values of Lua into C values.
*/
#ifndef MGRID_RECIPE_RESULT_H
#define MGRID_RECIPE_RESULT_H

#include "recipe/runtime.h"
#include "recipe/values.h"

/* Makes C values of plain ones: arrays of mgrid_arg, of the size for which the host was built. */
typedef struct mgrid_arg_maker {
  lua_State *L;
  int kept;    /* index of the table that keeps the arrays */
  size_t each; /* bytes of an mgrid_arg */
  /* of the host, for a refusal of its arguments; NULL: the values are a result */
  const char *function;
} mgrid_arg_maker;

/* Return an array of n elements. May raise. */
char *mgrid_arg_array(const mgrid_arg_maker *c, size_t n, size_t each);
/* Make element k of an array from the value on the top, and pop the value. May raise. */
void mgrid_arg_put(const mgrid_arg_maker *c, char *array, size_t k, const char *name);

/* Take the value on the top as the result, in the place of the one before. *result is its reference
** in the registry (LUA_NOREF: make one). Raise if the value is not plain; `from` is "policy
** 'layers'" in the message. */
void mgrid_result_keep(lua_State *L, int *result, const char *from);
void mgrid_result_forget(lua_State *L, int result);
/* Push the result; nil: there is none. Never raise. */
void mgrid_result_push(lua_State *L, int result);

/* Push a copy of the result to another Lua state, or raise there. */
void mgrid_result_copy(mgrid_runtime *rt, int result, mgrid_plain plain, const char *from,
                       lua_State *to);

typedef struct mgrid_reading {
  mgrid_runtime *rt;
  int result;
  const char *from, *path; /* path NULL: read all of the result */
  mgrid_kind wanted;
  bool may_lack; /* if there is no value, read MGRID_IS_NONE */
} mgrid_reading;

/* Read a result, or what is at a path inside of it, as mgrid_policy_result does. *out is a struct
** that was checked. */
mgrid_status mgrid_result_read(const mgrid_reading *r, mgrid_arg *out, mgrid_error *err);

#endif
