/* SPDX-License-Identifier: MIT
**
** tensor_words.h - functions that the files of this folder share.
*/
#ifndef MGRID_TENSORS_LUA_H
#define MGRID_TENSORS_LUA_H

#include "recipe/module_row.h"
#include "tensors/of_plan.h"

#define MGRID_LUA_TENSOR "moongrid.Tensor"
#define MGRID_LUA_FLAT   "moongrid.Flat"
#define MGRID_LUA_MOVE   "moongrid.Move"
#define MGRID_LUA_MOVES  "moongrid.Moves"

/* Register the classes, and put their constructors into the table on the top. */
void mgrid_lua_open_tensor(lua_State *L); /* tensor, flat, relabel */
void mgrid_lua_open_move(lua_State *L);   /* move, moves */
extern const mgrid_lua_handed mgrid_lua_move_handed;

/* Read the Tensor at `tensor` with the grids of a topology, and add it to the topology. May
** raise. */
void mgrid_lua_add_tensor(lua_State *L, int topology, const char *name, int tensor);
int mgrid_lua_plan_tensors(lua_State *L);
int mgrid_lua_plan_tensor(lua_State *L);

int mgrid_lua_relabel(lua_State *L); /* relabel(was, now): relabel_words.c */

#endif
