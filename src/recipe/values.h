/* SPDX-License-Identifier: MIT
**
** values.h - plain values between C, JSON and Lua states: one function for each direction. Plain
** are nil, booleans, numbers, strings, lists, and tables by name, whose keys are strings.
*/
#ifndef MGRID_VALUES_H
#define MGRID_VALUES_H

#include "plan/json.h"

#include <jansson.h>
#include <lua.h>

/* Limits of a value that is copied or written: the number of values, counting all members of its
** tables; the bytes of its texts; the depth of its tables. A table inside of two others is written
** twice, so without limits a few shared tables could fill all memory. */
enum { MGRID_VALUES_MAX = 1 << 18, MGRID_VALUES_TEXT_MAX = 1 << 22, MGRID_VALUES_DEEP = 32 };
/* Part of a message. Its arguments are the first two of these limits. */
#define MGRID_TOO_MUCH "a value of more than %d values or %d bytes of text, or nested too deep"

/* These functions charge the budget of the recipe, and fail if it is exhausted. Then
** mgrid_lua_charge(L, 0) raises the reason, or mgrid_budget_after returns it after the call. */

/* Return whether the value at i is within these limits and not nested in itself. Never raise. */
bool mgrid_value_fits(lua_State *L, int i);
/* Return the value at i as JSON, a new reference. NULL: JSON has no such value (see MGRID_AS_JSON),
** it is too large, or memory ran out. Never raise. */
json_t *mgrid_json_of(lua_State *L, int i);
/* As mgrid_json_of, for people to read: texts and names are as mgrid_shown writes them. */
json_t *mgrid_json_shown(lua_State *L, int i);
/* Return whether JSON has such a value and it is not too large. If so, mgrid_json_of returns NULL
** only if memory ran out. Never raise. */
bool mgrid_has_json(lua_State *L, int i);
#define MGRID_NO_JSON \
  "a number that is not finite, text that is not UTF-8, or a table whose keys are neither those " \
  "of " \
  "a list nor names"
#define MGRID_GAP      "a list has null in it"
#define MGRID_TOO_DEEP "nested too deep"
/* Return whether a list in v contains null. In Lua that would be a hole, and the element would be
** missing when the list is written again. */
bool mgrid_json_has_gap(const json_t *v);
/* Parse JSON text, as json_loadb does; return a new reference. NULL also if it is nested deeper
** than values may be. */
json_t *mgrid_json_parse(const char *s, size_t len, size_t flags, json_error_t *why);
/* Push v as a value of Lua. The caller still owns v. Raise for a list with null in it, or if memory
** runs out. */
void mgrid_push_json(lua_State *L, const json_t *v);
/* Push v as a value of Lua, and free v in every case. Return the status of lua_pcall. Unless it is
** LUA_OK, an error is on the top, which the caller raises. */
int mgrid_take_json(lua_State *L, json_t *v);
/* Return element i of an array of arguments. Elements have the size of an mgrid_arg in the build of
** the host. */
const mgrid_arg *mgrid_arg_at(const mgrid_arg *args, size_t i);
/* Return MGRID_BAD_STRUCT unless all arguments, also those inside of tables, are structs of one
** size that this library can read. Return MGRID_USAGE if tables are nested too deeply, or in
** themselves. `kept` is "parameter" or "setting" if the values will be kept; then they must have a
** name and a kind, UTF-8 text and finite numbers. Else it is NULL. */
mgrid_status mgrid_args_check(size_t n, const mgrid_arg *args, const char *kept, mgrid_error *err);

/* Values by name that a host passes to a recipe: `json`, `from` or `args`, the first that is
** set. */
typedef struct mgrid_given {
  const json_t *json;
  lua_State *from; /* the value at index `at` of this Lua state; nil: no values */
  int at;
  const char *what; /* these values in a message: "parameters" */
  size_t n;
  const mgrid_arg *args; /* [n], checked by mgrid_args_check */
  bool one;              /* it is one value, that of a setting, instead of values by name */
} mgrid_given;

/* Push these values. May raise. */
void mgrid_push_given(lua_State *L, const mgrid_given *given);

/* Which tables, numbers and strings may be copied between Lua states. */
typedef enum mgrid_plain {
  MGRID_ANY_KEYS, /* tables by integers and names, any number, any string */
  MGRID_NO_VIEWS, /* as MGRID_ANY_KEYS, but no table with a metatable: recipes cannot set one */
  MGRID_AS_JSON   /* lists or tables by name, finite numbers, UTF-8 */
} mgrid_plain;

/* Push a copy of the value at i of `from` to `to`. False: it is not plain, or nested too deeply.
** May raise "out of memory" in `to`. After false or an error, some values may be left on the stack
** of `to`. */
bool mgrid_copy_value(lua_State *from, int i, lua_State *to, mgrid_plain plain);

#endif
