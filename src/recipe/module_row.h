/* SPDX-License-Identifier: MIT
**
** module_row.h - what a module has for Lua: one row, in src/NAME/lua/NAME_module.c. Recipes and
** `require "moongrid"` use a module only through its row.
*/
#ifndef MGRID_MODULE_ROW_H
#define MGRID_MODULE_ROW_H

#include "recipe/bind.h"

/* A field that a module adds to the table of recipe { ... }, and the field's type in Lua. */
typedef struct mgrid_lua_field {
  const char *name, *type;
} mgrid_lua_field;

/* A class whose objects a host and its scripts give each other (moongrid_lua.h). One function
** pushes a userdata that is one more owner. The other returns the object of the userdata at i;
** NULL: it is of another class, or closed. */
typedef struct mgrid_lua_handed {
  const char *class;
  void (*push)(lua_State *L, const void *object);
  void *(*to)(lua_State *L, int i, const char *class);
} mgrid_lua_handed;

/* A module sets to NULL what it does not have. */
typedef struct mgrid_lua_module {
  /* register the module's classes, and put its functions into the table on the top */
  void (*open)(lua_State *L);
  void (*open_host)(lua_State *L); /* put functions there that are not for recipes */
  /* fields and methods for classes of the core, by class; the last name is NULL */
  const mgrid_lua_class *adds;
  /* The kind of item that a topology accepts by t.x = value. The class of such a value. The
  ** function that puts it into the topology under its name; it may raise. */
  const mgrid_item_kind *kind;
  const char *class;
  void (*assign)(lua_State *L, int topology, const char *name, int value);
  const mgrid_lua_handed *handed;
  const mgrid_lua_field *fields; /* ends with a NULL name */
  /* begin: called before the build of a plan for `world` ranks; the table at `values` has the
  ** values of the module's fields, by name. end: called after it, with the topology that build
  ** returned. Both may raise; `where` is "file:line: " of the recipe. */
  void (*begin)(lua_State *L, int64_t world, int values, const char *where);
  void (*end)(lua_State *L, int topology, const char *where);
  /* Called after every `begin`. Push the World that build gets instead of the one at `world`.
  ** False: that one will do, and nothing is pushed. */
  bool (*world)(lua_State *L, int world, int values, const char *where);
  /* If a law is one of the module's (*mine), check it for a plan. `about`: a value that the law is
  ** about; nil: what the plan itself has. */
  mgrid_status (*law)(lua_State *L, int about, const mgrid_plan *p, const char *law, bool *mine,
                      mgrid_error *err);
  /* Answer a request of a C function of the module about a recipe: mgrid_runtime_serve. */
  const char *name; /* of the module */
  mgrid_status (*serve)(mgrid_runtime *rt, void *request, mgrid_error *err);
} mgrid_lua_module;

/* The rows of all modules that have src/NAME/lua/NAME_module.c; a row is called
** mgrid_lua_module_NAME. The last is NULL. The Makefile writes this list from MODULES. */
extern const mgrid_lua_module *const mgrid_lua_modules[];

/* Return the item of that kind that the host has lent to the recipe; NULL: none. runtime.c */
void *mgrid_lua_lent(lua_State *L, const mgrid_item_kind *kind);

#endif
