/* SPDX-License-Identifier: MIT
**
** lookup.h - the fields of State and Group. A trainer reads `state.tp.position` in every step, so
** this is as fast as reading a Lua table, and allocates nothing. Every State and Group has its own
** metatable, whose __index is a table of answers that never change. For a name that is not in this
** table, Lua calls a function, which finds the answer, and adds it to the table unless it may
** change. Closing a state empties these tables; from then on its groups raise.
*/
#ifndef MGRID_LOOKUP_H
#define MGRID_LOOKUP_H

#include "recipe/bind.h"

typedef struct mgrid_state_box {
  mgrid_state *s; /* NULL once it is closed */
  bool owned;     /* the userdata is an owner of the state */
  bool kept;      /* it is a dry state, which user value MGRID_KEEPER owns */
} mgrid_state_box;

/* User values. ANSWERS: the table of answers. OWNER, of a Group: its State. KEEPER, of a dry State:
** the userdata that frees the state; of another State: the Recipe of its plan. */
enum { MGRID_ANSWERS = 1, MGRID_OWNER = 2, MGRID_KEEPER = 2 };

/* Their addresses are keys in the metatables of a State and of a Group, by which these are told
** from other userdata. */
extern const char mgrid_lua_state_key, mgrid_lua_group_key;

/* Give the userdata on the top a metatable of its own, with the metamethods of its class and a
** table of answers. For a missing answer, missing(answers, key) is called; its upvalue is the
** userdata. */
void mgrid_lua_own_metatable(lua_State *L, const char *class, const char *key,
                             lua_CFunction missing);
/* Return the userdata at i if its metatable has this key, else NULL. */
void *mgrid_lua_test_own(lua_State *L, int i, const char *key);
/* Return the userdata at i. Raise if its metatable does not have this key. */
void *mgrid_lua_check_own(lua_State *L, int i, const char *class, const char *key);
/* Keep the value on the top as the answer for `name`. */
void mgrid_lua_keep_answer(lua_State *L, int answers, const char *name);

void mgrid_lua_open_group(lua_State *L); /* register the class. group_words.c */

#endif
