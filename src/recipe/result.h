/* SPDX-License-Identifier: MIT
**
** result.h - values of Lua as C values.
*/
#ifndef MGRID_RECIPE_RESULT_H
#define MGRID_RECIPE_RESULT_H

#include "recipe/runtime.h"
#include "recipe/values.h"

/* Where C values are made of plain ones: arrays of mgrid_arg, with the size that the host was built
** with. */
typedef struct mgrid_arg_maker {
  lua_State *L;
  int kept;             /* index of a table that keeps the arrays */
  size_t each;          /* bytes of an mgrid_arg */
  const char *function; /* of the host, for a refusal of its arguments; NULL: they are a result */
} mgrid_arg_maker;

/* Return an array of n elements. */
char *mgrid_arg_array(const mgrid_arg_maker *c, size_t n, size_t each);
/* Make element k of an array from the value on the top, and pop it. Both may raise. */
void mgrid_arg_put(const mgrid_arg_maker *c, char *array, size_t k, const char *name);

/* Take the value on the top as the result in the registry (LUA_NOREF: a new reference) in place of
** the one before. Raise if it is not plain; `from`: "policy 'layers'". */
void mgrid_result_keep(lua_State *L, int *result, const char *from);
void mgrid_result_forget(lua_State *L, int result);
/* Push it, nil for none. Never raises. */
void mgrid_result_push(lua_State *L, int result);

/* Push a copy to another Lua state, or raise there. */
void mgrid_result_copy(mgrid_runtime *rt, int result, mgrid_plain plain, const char *from,
                       lua_State *to);

typedef struct mgrid_reading {
  mgrid_runtime *rt;
  int result;
  const char *from, *path; /* path NULL: all of it */
  mgrid_kind wanted;
  bool may_lack; /* nothing is read as MGRID_IS_NONE */
} mgrid_reading;

/* Read a result, or what is at a path inside it, as mgrid_policy_result. *out is a checked
** struct. */
mgrid_status mgrid_result_read(const mgrid_reading *r, mgrid_arg *out, mgrid_error *err);

#endif
