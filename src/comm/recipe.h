/* SPDX-License-Identifier: MIT
**
** recipe.h - how the core calls recipes. All code that uses Lua (recipe/) is in a library of its
** own, libmoongrid_lua. libmoongrid contains no Lua, and calls that library only through this
** table.
*/
#ifndef MGRID_COMM_RECIPE_H
#define MGRID_COMM_RECIPE_H

#include "comm/backend.h"
#include "plan/item.h"

/* Give the recipe an item x of a module, for all plans from now on. It replaces an earlier item of
** this kind; NULL: only remove that. The runtime becomes an owner of the item, and so do runtimes
** that mgrid_reload makes from it. */
typedef mgrid_status mgrid_recipe_lend(mgrid_runtime *rt, const mgrid_item_kind *kind,
                                       const void *x, mgrid_error *err);
/* Pass a request from a module's C function to the module's code for Lua (recipe/module_row.h). */
typedef mgrid_status mgrid_recipe_serve(mgrid_runtime *rt, const char *module, void *request,
                                        mgrid_error *err);
mgrid_recipe_serve mgrid_runtime_serve;
typedef struct mgrid_recipe_entry mgrid_recipe_entry;
/* Pass a request that needs no runtime; the module gets NULL for the runtime. entry: if
** libmoongrid_lua calls this, its own table; NULL: load that library. MGRID_MISSING: it cannot be
** loaded. recipe.c */
mgrid_status mgrid_serve_by(const mgrid_recipe_entry *entry, const char *module, void *request,
                            mgrid_error *err);

/* The functions of libmoongrid_lua, as X(name, its type). Here they become a table; in
** recipe/entry.h they are mgrid_script_NAME. Except for `lend` and `serve`, each does the work of a
** function of moongrid_recipe.h. Before recipe.c calls them, it checks the pointers, and sets the
** results to their values after a failure. */
#define MGRID_RECIPE_FUNCTIONS(X) \
  X(runtime_new, __typeof__(mgrid_runtime_new)) \
  X(runtime_ref, __typeof__(mgrid_runtime_ref)) \
  X(runtime_free, __typeof__(mgrid_runtime_free)) \
  X(function, __typeof__(mgrid_runtime_function)) \
  X(load, __typeof__(mgrid_runtime_load)) \
  X(lend, mgrid_recipe_lend) \
  X(serve, mgrid_recipe_serve) \
  X(plan, __typeof__(mgrid_runtime_plan)) \
  X(plan_values, __typeof__(mgrid_runtime_plan_values)) \
  X(ask, __typeof__(mgrid_runtime_ask)) \
  X(group, __typeof__(mgrid_runtime_group)) \
  X(set, __typeof__(mgrid_runtime_set)) \
  X(describe, __typeof__(mgrid_runtime_describe)) \
  X(reload, __typeof__(mgrid_reload)) \
  X(draw, __typeof__(mgrid_plan_draw)) \
  X(policy_new, __typeof__(mgrid_policy_new)) \
  X(policy_free, __typeof__(mgrid_policy_free)) \
  X(policy_agreed, __typeof__(mgrid_policy_agreed)) \
  X(policy_call, __typeof__(mgrid_policy_call)) \
  X(policy_result, __typeof__(mgrid_policy_result))

struct mgrid_recipe_entry {
  int layout;               /* MGRID_LAYOUT */
  const char *const *names; /* mgrid_recipe_names */
#define X(name, type) type *name;
  MGRID_RECIPE_FUNCTIONS(X)
#undef X
};

/* The function that a module's public header calls. recipe.c */
mgrid_recipe_lend mgrid_runtime_lend;

/* The first field of a runtime and of a policy: the entry points of the library that made it. */
typedef struct mgrid_made_by {
  const mgrid_recipe_entry *entry;
} mgrid_made_by;

/* Do the work of mgrid_runtime_free for state.c, which must not call recipe.c, because recipe.c
** calls state.c. */
static inline void mgrid_runtime_end(mgrid_runtime *rt) {
  if (rt) ((const mgrid_made_by *)(const void *)rt)->entry->runtime_free(rt);
}

#endif
