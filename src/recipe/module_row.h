/* SPDX-License-Identifier: MIT
**
** module_row.h - the part of a module for Lua: one row, in src/NAME/lua/NAME_module.c. Recipes
** and `require "moongrid"` go through the rows and call nothing else of a module.
*/
#ifndef MGRID_MODULE_ROW_H
#define MGRID_MODULE_ROW_H

#include "recipe/bind.h"

/* A field that a module adds to the table of recipe { ... }, and its type in Lua. */
typedef struct mgrid_lua_field {
  const char *name, *type;
} mgrid_lua_field;

/* A class whose objects a host and its scripts give each other (moongrid_lua.h): push a userdata
** that is one more owner; return the object of the one at i, NULL if it is of another class or
** closed. */
typedef struct mgrid_lua_handed {
  const char *class;
  void (*push)(lua_State *L, const void *object);
  void *(*to)(lua_State *L, int i, const char *class);
} mgrid_lua_handed;

/* A module sets what it does not have to NULL. */
typedef struct mgrid_lua_module {
  /* register its classes, put its functions into the table on the top */
  void (*open)(lua_State *L);
  void (*open_host)(lua_State *L); /* put functions there that are not for recipes */
  /* fields and methods for classes of the core, by their names; ends with a NULL name */
  const mgrid_lua_class *adds;
  /* The kind of thing that a topology accepts, t.x = value, the class of this value, and what puts
  ** it under its name into the topology, which raises. */
  const mgrid_item_kind *kind;
  const char *class;
  void (*assign)(lua_State *L, int topology, const char *name, int value);
  const mgrid_lua_handed *handed;
  const mgrid_lua_field *fields; /* ends with a NULL name */
  /* Before the build of a plan for `world` ranks: the values of its fields by name are in the table
  ** at `values`. After it, with the topology that it returned. Both may raise; `where` is
  ** "file:line: " of the recipe. */
  void (*begin)(lua_State *L, int64_t world, int values, const char *where);
  void (*end)(lua_State *L, int topology, const char *where);
  /* After every `begin`: push the World that build gets instead of the one at `world`; false, with
  ** nothing pushed: that. */
  bool (*world)(lua_State *L, int world, int values, const char *where);
  /* Check a law of a plan, if it is one of the module's (*mine), about the value at `about`; nil:
  ** about what the plan has. */
  mgrid_status (*law)(lua_State *L, int about, const mgrid_plan *p, const char *law, bool *mine,
                      mgrid_error *err);
  /* Do what a C function of the module asks of a recipe: mgrid_runtime_serve. */
  const char *name; /* of the module */
  mgrid_status (*serve)(mgrid_runtime *rt, void *request, mgrid_error *err);
} mgrid_lua_module;

/* One row for each module that has src/NAME/lua/NAME_module.c, mgrid_lua_module_NAME; NULL ends. The
** Makefile writes it from MODULES. */
extern const mgrid_lua_module *const mgrid_lua_modules[];

/* Return what the host has lent to the recipe of that kind; NULL: nothing. runtime.c */
void *mgrid_lua_lent(lua_State *L, const mgrid_item_kind *kind);

#endif
