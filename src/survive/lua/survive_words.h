/* SPDX-License-Identifier: MIT
**
** survive_words.h - functions that the files of this folder share.
*/
#ifndef MGRID_SURVIVE_WORDS_H
#define MGRID_SURVIVE_WORDS_H

#include "recipe/module_row.h"
#include "survive/next.h"

void mgrid_lua_open_spares(lua_State *L);
bool mgrid_lua_spares_world(lua_State *L, int world, int values, const char *where);
void mgrid_lua_spares_end(lua_State *L, int topology, const char *where);
int mgrid_lua_plan_spares(lua_State *L);
int mgrid_lua_plan_lose(lua_State *L);
int mgrid_lua_plan_losses(lua_State *L);
int mgrid_lua_plan_together(lua_State *L);
int mgrid_lua_plan_holders(lua_State *L);
void mgrid_lua_open_losses(lua_State *L);

/* Push and return an array of the parameters of a plan that differ from their defaults, each as
** "tp=2". *n: how many there are. */
const char **mgrid_lua_push_changed(lua_State *L, const mgrid_content *c, size_t *n);
/* Push the list of ranks at i as an array. `call` and `name` are for messages. */
int64_t *mgrid_lua_push_lost(lua_State *L, int i, const char *call, const char *name, size_t *n);
/* Push a box for a loss. */
mgrid_loss **mgrid_lua_new_loss(lua_State *L);
/* Push the Loss of the box at `box`, and put its next plan into the empty Plan at `plan`. */
int mgrid_lua_push_loss(lua_State *L, int box, int plan);
/* Raise an error. If it names a file and line already, add no other position. */
int mgrid_lua_raise_loss(lua_State *L, const mgrid_error *e);

extern const luaL_Reg mgrid_lua_survive_state[]; /* methods of State: recover_words.c */

/* Answer an mgrid_lent_request. */
mgrid_status mgrid_lua_serve_lent(mgrid_runtime *rt, void *request, mgrid_error *err);

#endif
