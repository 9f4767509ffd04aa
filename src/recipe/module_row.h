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

/* A class whose objects a host and its scripts give each other (moongrid_lua.h). */
typedef struct mgrid_lua_handed {
  const char *class;
  /* push a userdata that is one more owner of the object */
  void (*push)(lua_State *L, const void *object);
  /* return the object of the userdata at i; NULL: it is of another class, or closed */
  void *(*to)(lua_State *L, int i, const char *class);
} mgrid_lua_handed;

/* Fields that a module does not need are NULL. */
typedef struct mgrid_lua_module {
  /* register the module's classes, and put its functions into the table on the top */
  void (*open)(lua_State *L);
  /* put the functions that programs have, but recipes do not, into the table on the top */
  void (*open_host)(lua_State *L);
  /* fields and methods for classes of the core, by class; the last name is NULL */
  const mgrid_lua_class *adds;
  const mgrid_item_kind *kind; /* of the module's items (plan/item.h), added by t.x = value */
  const char *class;           /* the class of these values */
  /* put the value into the topology under this name, or raise */
  void (*assign)(lua_State *L, int topology, const char *name, int value);
  const mgrid_lua_handed *handed;
  const mgrid_lua_field *fields; /* ends with a NULL name */
  /* Called before `build` of a plan for `world` ranks. The table at `values` has the values of the
  ** module's fields, by name; `where` is "file:line: " of the recipe. May raise. */
  void (*begin)(lua_State *L, int64_t world, int values, const char *where);
  /* Called after `build`, with the topology that it returned. May raise. */
  void (*end)(lua_State *L, int topology, const char *where);
  /* Called after the `begin` of all modules. Push the World that `build` gets instead of the one at
  ** `world`, and return true; or push nothing, and return false. */
  bool (*world)(lua_State *L, int world, int values, const char *where);
  /* If `law` is a law of this module, set *mine and check it for a plan. The value at `about` is
  ** what the law is about, such as a machine; nil: the one that the plan has. */
  mgrid_status (*law)(lua_State *L, int about, const mgrid_plan *p, const char *law, bool *mine,
                      mgrid_error *err);
  const char *name; /* of the module */
  /* Answer a request about a recipe, which C code of the module makes by mgrid_runtime_serve. */
  mgrid_status (*serve)(mgrid_runtime *rt, void *request, mgrid_error *err);
} mgrid_lua_module;

/* The rows of all modules that have src/NAME/lua/NAME_module.c; a row is called
** mgrid_lua_module_NAME. The last is NULL. The Makefile writes this list from MODULES. */
extern const mgrid_lua_module *const mgrid_lua_modules[];

/* Return the item of that kind that the host gave the runtime (mgrid_script_lend); NULL: none.
** runtime.c */
void *mgrid_lua_lent(lua_State *L, const mgrid_item_kind *kind);

#endif
