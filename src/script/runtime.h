/* SPDX-License-Identifier: MIT
**
** runtime.h - what the command and the Lua module ask of a runtime besides moongrid.h.
*/
#ifndef MG_RUNTIME_H
#define MG_RUNTIME_H

#include "script/budget.h"

#include <jansson.h>

struct mg_runtime {
  lua_State *L;
  mg_budget  budget;
  char      *recipe; /* as it was asked for */
  mg_error   unloaded; /* why there is none, where one was asked for */
};

extern const char mg_recipe_key; /* its address: the registry key of the loaded recipe */

/* Run body(ud) under lua_pcall with a fresh budget. */
mg_status mg_runtime_protected(mg_runtime *rt, lua_CFunction body, void *ud, mg_error *err);
/* Is the recipe loaded, and is the state's plan of it? */
mg_status mg_runtime_check_loaded(const mg_runtime *rt, mg_error *err);
mg_status mg_runtime_check_state(const mg_runtime *rt, const mg_state *s, mg_error *err);

/* As mg_runtime_plan, with the arguments as a JSON object: name -> value, or text that is
** parsed by the parameter's kind. */
mg_plan *mg_runtime_plan_json(mg_runtime *rt, int64_t world, const json_t *args, mg_error *err);
/* Ask a query of the recipe over a state of this process. *answer is a new reference. */
mg_status mg_runtime_ask_json(mg_runtime *rt, mg_state *s, const char *query, const json_t *args, json_t **answer,
                         mg_error *err);
/* mg_policy_call with the table at `at` of a host's Lua, and the result for it, which raises there. */
mg_status mg_policy_call_from(mg_policy *p, lua_State *from, int at, mg_error *err);
void      mg_policy_push_result(const mg_policy *p, lua_State *to);
/* Doc, parameters, policies and queries: a new reference. */
mg_status mg_runtime_info(mg_runtime *rt, json_t **info, mg_error *err);
/* The Lua that the library was built with, "Lua 5.4.4". */
const char *mg_lua_release(void);

#endif
