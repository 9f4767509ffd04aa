/* SPDX-License-Identifier: MIT
**
** slice.h - what a slice has for Lua: one row, in src/NAME/lua/slice.c. Recipes and the Lua module go through the rows, and
** call nothing of a slice otherwise.
*/
#ifndef MGRID_LUA_SLICE_H
#define MGRID_LUA_SLICE_H

#include "recipe/bind.h"

/* Whatever a slice does not have is NULL. */
typedef struct mgrid_lua_slice {
  void (*open)(lua_State *L);      /* register its classes, put its words into the table on the top */
  void (*open_host)(lua_State *L); /* put words there that are not for recipes */
  const mgrid_lua_class *adds; /* to classes of the way, by their names: fields and methods; ends with a NULL name */
  /* The kind of thing that a topology takes, t.x = value, and the class of such a value. _assign puts the value under its
  ** name into the topology; it raises. */
  const mgrid_item_kind *kind;
  const char *class;
  void (*assign)(lua_State *L, int topology, const char *name, int value);
} mgrid_lua_slice;

/* One row for each slice that has src/NAME/lua/slice.c, mgrid_lua_slice_NAME; NULL ends. The Makefile writes it from SLICES. */
extern const mgrid_lua_slice *const mgrid_lua_slices[];

#endif
