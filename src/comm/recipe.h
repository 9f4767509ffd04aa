/* SPDX-License-Identifier: MIT
**
** recipe.h - the door to recipes. What speaks Lua (types/, script/) is a library of its own, libmoongrid_lua;
** libmoongrid reaches it through this table alone, and carries no Lua.
*/
#ifndef MGRID_COMM_RECIPE_H
#define MGRID_COMM_RECIPE_H

#include "comm/backend.h"

/* Each is the function of moongrid_recipe.h that is called mgrid_runtime_NAME or mgrid_NAME. recipe.c has looked at
** the pointers: those that may not be NULL are not, and results are set as they are after a failure. */
typedef struct mgrid_recipe_entry {
  int layout; /* MGRID_LAYOUT */
  mgrid_runtime *(*runtime_new)(const mgrid_limits *limits, const mgrid_hooks *hooks, mgrid_error *err);
  mgrid_runtime *(*runtime_ref)(mgrid_runtime *rt);
  void (*runtime_free)(mgrid_runtime *rt);
  /* text NULL: mgrid_runtime_load; else mgrid_runtime_load_text, with the name as `recipe` */
  mgrid_status (*load)(mgrid_runtime *rt, const char *recipe, const char *text, size_t length, mgrid_error *err);
  mgrid_plan *(*plan_file)(mgrid_runtime *rt, int64_t world, const char *path, size_t n, const char *const *args,
                           mgrid_error *err);
  mgrid_plan *(*plan_values)(mgrid_runtime *rt, int64_t world, size_t n, const mgrid_arg *args, mgrid_error *err);
  mgrid_status (*ask)(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args, char *buf, size_t len,
                      size_t *length, mgrid_error *err);
  mgrid_status (*ask_integer)(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args, int64_t *answer,
                              mgrid_error *err);
  mgrid_status (*ask_text)(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args, char *buf,
                           size_t len, size_t *length, mgrid_error *err);
  const mgrid_group *(*group)(mgrid_runtime *rt, mgrid_state *s, const char *getter, const char *args,
                              mgrid_error *err);
  mgrid_status (*set)(mgrid_runtime *rt, mgrid_state *s, const mgrid_arg *setting, mgrid_error *err);
  mgrid_status (*describe)(mgrid_runtime *rt, bool json, mgrid_sink sink, void *ud, mgrid_error *err);
  mgrid_status (*reload)(const mgrid_runtime *rt, mgrid_state *s, const char *recipe, size_t n, const char *const *args,
                         mgrid_runtime **new_rt, mgrid_state **new_s, mgrid_change *change, mgrid_error *err);
  const char *const *names;

  mgrid_policy *(*policy_new)(mgrid_runtime *rt, mgrid_state *s, const char *name, mgrid_error *err);
  void (*policy_free)(mgrid_policy *p);
  const char *(*policy_agreed)(const mgrid_policy *p);
  mgrid_status (*policy_call)(mgrid_policy *p, size_t n, const mgrid_arg *args, mgrid_error *err);
  mgrid_kind (*policy_kind)(const mgrid_policy *p, const char *path);
  mgrid_status (*policy_length)(const mgrid_policy *p, const char *path, size_t *out, mgrid_error *err);
  mgrid_status (*policy_keys)(const mgrid_policy *p, const char *path, const char **out, size_t room, size_t *length,
                              mgrid_error *err);
  mgrid_status (*policy_boolean)(const mgrid_policy *p, const char *path, bool *out, mgrid_error *err);
  mgrid_status (*policy_integer)(const mgrid_policy *p, const char *path, int64_t *out, mgrid_error *err);
  mgrid_status (*policy_number)(const mgrid_policy *p, const char *path, double *out, mgrid_error *err);
  mgrid_status (*policy_text)(const mgrid_policy *p, const char *path, const char **out, mgrid_error *err);
  mgrid_status (*policy_integers)(const mgrid_policy *p, const char *path, int64_t *out, size_t room, size_t *length,
                                  mgrid_error *err);
  mgrid_status (*policy_numbers)(const mgrid_policy *p, const char *path, double *out, size_t room, size_t *length,
                                 mgrid_error *err);
} mgrid_recipe_entry;

/* What a runtime and a policy begin with: the entry points of the library that made it. */
typedef struct mgrid_made_by {
  const mgrid_recipe_entry *entry;
} mgrid_made_by;

#endif
