/* SPDX-License-Identifier: MIT
**
** recipe.h - how the core calls recipes. What speaks Lua (recipe/) is a library of its own,
** libmoongrid_lua; libmoongrid reaches it through this table alone, and carries no Lua.
*/
#ifndef MGRID_COMM_RECIPE_H
#define MGRID_COMM_RECIPE_H

#include "comm/backend.h"
#include "plan/item.h"

/* Give the recipe a thing of a module, for all plans from now on: one of each kind, NULL for none.
** The runtime is an owner, and so are those that mgrid_reload makes from it. */
typedef mgrid_status mgrid_recipe_lend(mgrid_runtime *rt, const mgrid_item_kind *kind,
                                       const void *x, mgrid_error *err);
/* Hand the request of a module's C function to what the module has for Lua (recipe/module_row.h). */
typedef mgrid_status mgrid_recipe_serve(mgrid_runtime *rt, const char *module, void *request,
                                        mgrid_error *err);
mgrid_recipe_serve mgrid_runtime_serve;
typedef struct mgrid_recipe_entry mgrid_recipe_entry;
/* The same for a request that needs no runtime, which the module gets as NULL. `entry`: of the
** library with Lua that calls; NULL: libmoongrid_lua is loaded. MGRID_MISSING: it cannot be.
** recipe.c */
mgrid_status mgrid_serve_by(const mgrid_recipe_entry *entry, const char *module, void *request,
                            mgrid_error *err);

/* The functions of that library, X(name, its type), each once: here as a table, in recipe/entry.h
** as mgrid_script_NAME. But for `lend` and `serve` each is a function of moongrid_recipe.h.
** recipe.c has looked at the pointers: those that may not be NULL are not, and results are set as
** they are after a failure. */
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
  int layout; /* MGRID_LAYOUT */
  const char *const *names;
#define X(name, type) type *name;
  MGRID_RECIPE_FUNCTIONS(X)
#undef X
};

/* For a module's function of its public header. recipe.c */
mgrid_recipe_lend mgrid_runtime_lend;

/* What a runtime and a policy begin with: the entry points of the library that made it. */
typedef struct mgrid_made_by {
  const mgrid_recipe_entry *entry;
} mgrid_made_by;

/* mgrid_runtime_free, for state.c, which recipe.c calls. */
static inline void mgrid_runtime_end(mgrid_runtime *rt) {
  if (rt) ((const mgrid_made_by *)(const void *)rt)->entry->runtime_free(rt);
}

#endif
