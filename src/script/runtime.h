/* SPDX-License-Identifier: MIT
**
** runtime.h - what the command and the Lua module ask of a runtime besides moongrid.h.
*/
#ifndef MG_RUNTIME_H
#define MG_RUNTIME_H

#include "script/bind.h"

#include <jansson.h>

/* As mg_runtime_plan, with the arguments as a JSON object: name -> value, or text that is
** parsed by the parameter's kind. */
mg_plan *mg_runtime_plan_json(mg_runtime *rt, int64_t world, const json_t *args, mg_error *err);
/* Ask a query of the recipe over a state of this process. *answer is a new reference. */
mg_status mg_runtime_ask_json(mg_runtime *rt, mg_state *s, const char *query, const json_t *args, json_t **answer,
                         mg_error *err);
/* Doc, parameters and queries: a new reference. */
mg_status mg_runtime_info(mg_runtime *rt, json_t **info, mg_error *err);
/* The Lua that the library was built with, "Lua 5.4.4". */
const char *mg_lua_release(void);

#endif
