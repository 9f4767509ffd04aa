/* SPDX-License-Identifier: MIT
**
** entry.h - what libmoongrid calls here: comm/recipe.h explains, moongrid_recipe.h has the manual.
*/
#ifndef MGRID_SCRIPT_ENTRY_H
#define MGRID_SCRIPT_ENTRY_H

#include "comm/recipe.h"

/* The one thing that the library exports for it, found by this name. */
extern MGRID_API const mgrid_recipe_entry mgrid_lua_entry;

mgrid_runtime *mgrid_script_runtime_new(const mgrid_limits *limits, const mgrid_hooks *hooks, mgrid_error *err);
mgrid_runtime *mgrid_script_runtime_ref(mgrid_runtime *rt);
void           mgrid_script_runtime_free(mgrid_runtime *rt);
mgrid_status   mgrid_script_load(mgrid_runtime *rt, const char *recipe, const char *text, size_t length,
                                 mgrid_error *err);

mgrid_plan *mgrid_script_plan_values(mgrid_runtime *rt, int64_t world, size_t n, const mgrid_arg *args,
                                     mgrid_error *err);
mgrid_plan *mgrid_script_plan_file(mgrid_runtime *rt, int64_t world, const char *path, size_t n,
                                   const char *const *args, mgrid_error *err);

mgrid_status mgrid_script_ask(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args, char *buf,
                              size_t len, size_t *length, mgrid_error *err);
mgrid_status mgrid_script_ask_text(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args, char *buf,
                                   size_t len, size_t *length, mgrid_error *err);
mgrid_status mgrid_script_ask_integer(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args,
                                      int64_t *answer, mgrid_error *err);
const mgrid_group *mgrid_script_group(mgrid_runtime *rt, mgrid_state *s, const char *getter, const char *args,
                                      mgrid_error *err);

mgrid_status mgrid_script_set(mgrid_runtime *rt, mgrid_state *s, const mgrid_arg *setting, mgrid_error *err);

mgrid_status mgrid_script_describe(mgrid_runtime *rt, bool json, mgrid_sink sink, void *ud, mgrid_error *err);

mgrid_status mgrid_script_reload(const mgrid_runtime *rt, mgrid_state *s, const char *recipe, size_t n,
                                 const char *const *args, mgrid_runtime **new_rt, mgrid_state **new_s,
                                 mgrid_change *change, mgrid_error *err);

mgrid_policy *mgrid_script_policy_new(mgrid_runtime *rt, mgrid_state *s, const char *name, mgrid_error *err);
void          mgrid_script_policy_free(mgrid_policy *p);
const char   *mgrid_script_policy_agreed(const mgrid_policy *p);
mgrid_status  mgrid_script_policy_call(mgrid_policy *p, size_t n, const mgrid_arg *args, mgrid_error *err);

mgrid_kind   mgrid_script_policy_kind(const mgrid_policy *p, const char *path);
mgrid_status mgrid_script_policy_boolean(const mgrid_policy *p, const char *path, bool *out, mgrid_error *err);
mgrid_status mgrid_script_policy_integer(const mgrid_policy *p, const char *path, int64_t *out, mgrid_error *err);
mgrid_status mgrid_script_policy_number(const mgrid_policy *p, const char *path, double *out, mgrid_error *err);
mgrid_status mgrid_script_policy_text(const mgrid_policy *p, const char *path, const char **out, mgrid_error *err);
mgrid_status mgrid_script_policy_integers(const mgrid_policy *p, const char *path, int64_t *out, size_t room,
                                          size_t *length, mgrid_error *err);
mgrid_status mgrid_script_policy_numbers(const mgrid_policy *p, const char *path, double *out, size_t room,
                                         size_t *length, mgrid_error *err);
mgrid_status mgrid_script_policy_length(const mgrid_policy *p, const char *path, size_t *out, mgrid_error *err);
mgrid_status mgrid_script_policy_keys(const mgrid_policy *p, const char *path, const char **out, size_t room,
                                      size_t *length, mgrid_error *err);

#endif
