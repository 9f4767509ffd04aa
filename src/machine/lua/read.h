/* SPDX-License-Identifier: MIT
**
** read.h - the readers of machines in Lua.
*/
#ifndef MGRID_MACHINE_LUA_READ_H
#define MGRID_MACHINE_LUA_READ_H

#include "machine/readers.h"
#include "recipe/slice.h"

/* The `serve` of mgrid_lua_slice; the request is an mgrid_machine_file. */
mgrid_status mgrid_lua_machine_serve(mgrid_runtime *rt, void *request, mgrid_error *err);
/* Return the file that is being read: the first upvalue. */
mgrid_machine_file *mgrid_lua_machine_file(lua_State *L);
/* Raise after file->why was filled. */
int mgrid_lua_refused(lua_State *L);
/* xml(): the root element of the text. xml.c */
int mgrid_lua_xml(lua_State *L);
/* Make the machine of the table at i, which make.c describes, and apply the words. */
void mgrid_lua_make_machine(lua_State *L, int i, const char *words, mgrid_machine_file *f);

#endif
