/* SPDX-License-Identifier: MIT
**
** values.h - plain values (nil, booleans, numbers, strings, lists, tables by name) between C, JSON
** and Lua states: one function for each direction.
*/
#ifndef MGRID_VALUES_H
#define MGRID_VALUES_H

#include "plan/json.h"

#include <jansson.h>
#include <lua.h>

/* Limits of a value that is copied or written: its values, with all members of its tables; the
** bytes of its texts; nesting. A table inside two others is written twice, so shared tables could
** make a small value fill all memory. */
enum { MGRID_VALUES_MAX = 1 << 18, MGRID_VALUES_TEXT_MAX = 1 << 22, MGRID_VALUES_DEEP = 32 };
#define MGRID_TOO_MUCH \
  "a value of more than %d values or %d bytes of text, or nested too deep" /* the first two of these */

/* A recipe pays for each of these. If its budget is spent they fail, too; mgrid_lua_charge(L, 0)
** then raises that, or mgrid_budget_after returns it after the call. */

/* Return whether the value at i is within these limits and not nested in itself. Never raises. */
bool mgrid_value_fits(lua_State *L, int i);
/* Return the value at i as JSON: a new reference, or NULL if JSON has no such value (see
** MGRID_AS_JSON), it is too large, or out of memory. Never raises. */
json_t *mgrid_json_of(lua_State *L, int i);
/* The same for people to read: texts and names are as mgrid_shown writes them. */
json_t *mgrid_json_shown(lua_State *L, int i);
/* Return whether JSON has such a value, and it is not too large: then mgrid_json_of returns NULL
** only if out of memory. Never raises. */
bool mgrid_has_json(lua_State *L, int i);
#define MGRID_NO_JSON \
  "a number that is not finite, text that is not UTF-8, or a table that is neither a list nor by " \
  "name"
/* Return whether a list contains null. In Lua it would be a hole, and be missing when written
** again. */
#define MGRID_GAP      "a list has null in it"
#define MGRID_TOO_DEEP "nested too deep"
bool mgrid_json_has_gap(const json_t *v);
/* Parse JSON text, as json_loadb; a new reference. NULL also if it is nested deeper than values may
** be. */
json_t *mgrid_json_parse(const char *s, size_t len, size_t flags, json_error_t *why);
/* Push a value. May raise if out of memory; the caller still owns v. */
void mgrid_push_json(lua_State *L, const json_t *v);
/* The same, and free v in every case. Returns as lua_pcall: an error is on the top, for the caller
** to raise again. */
int mgrid_take_json(lua_State *L, json_t *v);
/* Return the ith of an array of arguments, whose elements have the size that the host was built
** with. */
const mgrid_arg *mgrid_arg_at(const mgrid_arg *args, size_t i);
/* Return MGRID_BAD_STRUCT unless all arguments, also inside tables, are structs of one size that
** this library can read; MGRID_USAGE if tables are nested too deeply, or in themselves. `kept`:
** "parameter" or "setting" if they are kept, and must have a name and a kind, UTF-8 text and finite
** numbers; else NULL. */
mgrid_status mgrid_args_check(size_t n, const mgrid_arg *args, const char *kept, mgrid_error *err);

/* What a host gives to a recipe: values by name, in the first of these fields that is set, or
** nothing. With `one` it is the value of a setting: that of args[0], JSON or Lua. */
typedef struct mgrid_given {
  const json_t *json;
  lua_State *from; /* a value of a Lua state, at `at`; nil: nothing */
  int at;
  const char *what; /* its name in a refusal: "parameters" */
  size_t n;
  const mgrid_arg *args; /* [n], which mgrid_args_check has checked */
  bool one;
} mgrid_given;

/* Push it. May raise. */
void mgrid_push_given(lua_State *L, const mgrid_given *given);

/* Which tables, numbers and strings may be copied between Lua states. */
typedef enum mgrid_plain {
  MGRID_ANY_KEYS, /* tables by integers and names, any number, any string */
  MGRID_NO_VIEWS, /* the same, but no table with a metatable: recipes have none of their own */
  MGRID_AS_JSON   /* lists or tables by name, finite numbers, UTF-8 */
} mgrid_plain;

/* Push a copy of the plain value at i of `from` to `to`. False: it is not plain, or nested too
** deeply. May raise in `to` if out of memory. After false or an error some values may remain on the
** stack of `to`. */
bool mgrid_copy_value(lua_State *from, int i, lua_State *to, mgrid_plain plain);

#endif
