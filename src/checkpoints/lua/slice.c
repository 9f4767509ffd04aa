/* SPDX-License-Identifier: MIT
**
** slice.c - checkpoints for Lua: `checkpoint` for hosts.
*/
#include "recipe/slice.h"

void mgrid_lua_open_checkpoint(lua_State *L); /* checkpoint.c */

extern const mgrid_lua_slice mgrid_lua_slice_checkpoints;
const mgrid_lua_slice mgrid_lua_slice_checkpoints = { .open_host = mgrid_lua_open_checkpoint };
