/* SPDX-License-Identifier: MIT
**
** facts.h - functions of plan_words.c and facts.c that other files use.
*/
#ifndef MGRID_FACTS_H
#define MGRID_FACTS_H

#include "recipe/bind.h"

/* Return the index of the family whose name is argument i. If the plan has no such family, raise
** with the nearest name. */
int mgrid_lua_check_entry(lua_State *L, const mgrid_plan *p, int i);
/* Return the rank that is argument i, or -1 (all ranks) if there is no such argument. */
int64_t mgrid_lua_opt_rank(lua_State *L, const mgrid_plan *p, int i);
/* Read the table at i, which describes the machines for NCCL. If it is nil, return the default. */
mgrid_site mgrid_lua_check_site(lua_State *L, int i);

int mgrid_lua_plan_params(lua_State *L);
int mgrid_lua_plan_functions(lua_State *L);
int mgrid_lua_plan_concurrent(lua_State *L);
int mgrid_lua_plan_diff(lua_State *L);        /* plan_words.c */
extern const luaL_Reg mgrid_lua_plan_facts[]; /* methods */

#endif
