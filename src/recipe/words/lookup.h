/* SPDX-License-Identifier: MIT
**
** lookup.h - how State and Group answer.
**
** A trainer reads `state.tp.position` in every step, so it is as fast as reading a Lua table, and
** allocates nothing. Every State and Group has its own metatable, whose __index is a table of
** answers that never change. A missing name goes to a function, that table's own __index, which
** adds the answer. Closing a state empties these tables; from then on its groups raise.
*/
#ifndef MGRID_ANSWERS_H
#define MGRID_ANSWERS_H

#include "recipe/bind.h"

typedef struct mgrid_state_box {
  mgrid_state *s; /* NULL once closed */
  bool owned;
  bool kept; /* a dry state: user value MGRID_KEEPER owns it */
} mgrid_state_box;

/* User values: the table of answers; for a Group its State; for a dry State the userdata that frees
** it, for another the Recipe of its plan. */
enum { MGRID_ANSWERS = 1, MGRID_OWNER = 2, MGRID_KEEPER = 2 };

/* Keys in the metatables, by their addresses: they distinguish a State and a Group from other
** userdata. */
extern const char mgrid_lua_state_key, mgrid_lua_group_key;

/* Give the userdata on the top its own metatable: the metamethods of its class, and a table of
** answers. For a missing answer, missing(answers, key) is called, with the userdata as upvalue. */
void mgrid_lua_own_metatable(lua_State *L, const char *class, const char *key,
                             lua_CFunction missing);
/* Return the userdata at i if it has this key in its metatable, else NULL. */
void *mgrid_lua_test_own(lua_State *L, int i, const char *key);
/* The same, but raise if it does not. */
void *mgrid_lua_check_own(lua_State *L, int i, const char *class, const char *key);
/* Keep the value on the top as the answer to `name`. */
void mgrid_lua_keep_answer(lua_State *L, int answers, const char *name);

void mgrid_lua_open_group(lua_State *L); /* the class. group_words.c */

#endif
