/* SPDX-License-Identifier: MIT
**
** machine_words.h - machines for Lua: `machine` in recipes, laws about its domains, and what a plan
** says about its machine. machine_words.c, collect.c and sending.c need each other: the class in
** machine_words.c lists methods of the other two files, and these methods check that their argument
** is of this class.
*/
#ifndef MGRID_MACHINE_WORDS_H
#define MGRID_MACHINE_WORDS_H

#include "machine/machine_item.h"
#include "recipe/module_row.h"

/* moongrid.Machine is another class: the nodes of a running job (state.machine). */
#define MGRID_LUA_MACHINE "moongrid.MachineModel"

/* The function `serve` of mgrid_lua_module; the request is an mgrid_machine_file. file.c */
mgrid_status mgrid_lua_machine_serve(mgrid_runtime *rt, void *request, mgrid_error *err);
void mgrid_lua_open_machine(lua_State *L);
void mgrid_lua_open_machine_host(lua_State *L);
int mgrid_lua_recipe_on(lua_State *L);
void mgrid_lua_machine_begin(lua_State *L, int64_t world, int values, const char *where);
void mgrid_lua_machine_end(lua_State *L, int topology, const char *where);
int mgrid_lua_plan_machine(lua_State *L);
int mgrid_lua_plan_traffic(lua_State *L);
int mgrid_lua_plan_laws(lua_State *L);
mgrid_status mgrid_lua_machine_law(lua_State *L, int about, const mgrid_plan *p, const char *law,
                                   bool *mine, mgrid_error *err);
/* Return the model of the Machine at i. */
const mgrid_machine_model *mgrid_lua_check_machine(lua_State *L, int i);
/* Push a Machine without a model, and return the pointer to set. */
mgrid_machine_model **mgrid_lua_new_machine(lua_State *L);
/* Raise the error about a level that the machine does not have. The message names the most similar
** level. */
int mgrid_lua_unknown_level(lua_State *L, const mgrid_machine_model *m, const char *name);
int mgrid_lua_machine_cost(lua_State *L); /* sending.c */
int mgrid_lua_machine_leaving(lua_State *L);
int mgrid_lua_machine_assignable(lua_State *L);
int mgrid_lua_machine_assign(lua_State *L);
int mgrid_lua_job_machine(lua_State *L); /* collect.c */
int mgrid_lua_machine_meets(lua_State *L);
/* Return the machine of the plan that is being made, and note that the recipe has read it; NULL:
** none. */
const mgrid_machine_model *mgrid_lua_read_machine(lua_State *L);

#endif
