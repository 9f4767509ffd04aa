/* SPDX-License-Identifier: MIT
**
** checkpoints_module.c - checkpoints for Lua: `checkpoint` for hosts.
*/
#include "recipe/module_row.h"

void mgrid_lua_open_checkpoint(lua_State *L); /* checkpoint_words.c */

extern const mgrid_lua_module mgrid_lua_module_checkpoints;
const mgrid_lua_module mgrid_lua_module_checkpoints = { .open_host = mgrid_lua_open_checkpoint };
