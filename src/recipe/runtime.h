/* SPDX-License-Identifier: MIT
**
** runtime.h - the inside of a runtime, for the command, the Lua module and the files of src/recipe.
*/
#ifndef MGRID_RUNTIME_H
#define MGRID_RUNTIME_H

#include "comm/recipe.h"
#include "recipe/budget.h"

#include <jansson.h>

enum { MGRID_LENT_MAX = 4 };

/* An item of a module that the host gives to the recipe. */
typedef struct mgrid_lent {
  const mgrid_item_kind *kind;
  void *x;
} mgrid_lent;

struct mgrid_runtime {
  mgrid_made_by made_by;
  lua_State *L;
  mgrid_lua_budget budget;
  int users;            /* number of owners: who made it, each mgrid_runtime_ref, each policy */
  char *recipe;         /* its name or path, as the host gave it; NULL: none is loaded */
  mgrid_text text;      /* the text, if the host gave text; else data is NULL */
  mgrid_error unloaded; /* the error, if loading failed */
  double loading;       /* seconds of processor time that loading took; a plan may take the rest */
  struct mgrid_host_function *functions; /* of the host: function.h */
  mgrid_lent lent[MGRID_LENT_MAX];       /* an entry without a kind is free */
  int answer;                            /* of the last query or getter: result.h */
  bool trails;                           /* plans keep the lines from which their families come */
  /* these lines of the last plan, name of a family -> list of "source:line"; NULL: none, or the
  ** caller has taken them */
  json_t *trail;
};

extern const char mgrid_recipe_key; /* its address: the registry key of the loaded recipe */

/* Make a Lua state. NULL: out of memory. Call mgrid_runtime_check_lua first. */
lua_State *mgrid_runtime_new_lua(lua_Alloc allocate, void *ud);
/* Fail unless all functions of Lua are from one library. */
mgrid_status mgrid_runtime_check_lua(mgrid_error *err);
/* Run body(ud) under lua_pcall, in the C locale. The call has a fresh budget, but rt->loading
** counts as time that it has used. */
mgrid_status mgrid_runtime_protected(mgrid_runtime *rt, lua_CFunction body, void *ud,
                                     mgrid_error *err);
/* Run body(ud) with these limits, which need values other than 0, in a Lua state that is made for
** this call. The state has neither Lua's libraries nor the functions of recipes. */
mgrid_status mgrid_runtime_apart(const mgrid_limits *limits, lua_CFunction body, void *ud,
                                 mgrid_error *err);
/* As mgrid_runtime_protected. The value that body returns stays on the top of rt->L until the next
** call. */
mgrid_status mgrid_runtime_value(mgrid_runtime *rt, lua_CFunction body, void *ud, mgrid_error *err);
/* As mgrid_runtime_protected, for a query, a setting or a policy, which have a shorter limit of
** time. */
mgrid_status mgrid_runtime_call(mgrid_runtime *rt, lua_CFunction body, void *ud, mgrid_error *err);
/* Fail unless a recipe is loaded. */
mgrid_status mgrid_runtime_check_loaded(const mgrid_runtime *rt, mgrid_error *err);
/* Fail unless the state's plan is of this recipe. */
mgrid_status mgrid_runtime_check_state(const mgrid_runtime *rt, const mgrid_state *s,
                                       mgrid_error *err);

typedef struct mgrid_given mgrid_given; /* what a host passes: values.h */

/* As mgrid_runtime_plan, without a file. A parameter is a value, or a text that is parsed as the
** parameter's kind. */
mgrid_plan *mgrid_runtime_plan_with(mgrid_runtime *rt, int64_t world, const mgrid_given *params,
                                    mgrid_error *err);
/* Set rt->trail in each plan from now on. */
mgrid_status mgrid_runtime_trail(mgrid_runtime *rt, mgrid_error *err);
/* Ask a query of the recipe about a state of this process. The answer is kept in rt->answer.
** Messages call the query `from`. */
mgrid_status mgrid_runtime_ask_with(mgrid_runtime *rt, mgrid_state *s, const char *query,
                                    const mgrid_given *args, const char *from, mgrid_error *err);
/* Close the State on the top, because the recipe may have kept it, or a Group of it. Pop it. This
** allocates nothing, so it cannot fail. */
void mgrid_runtime_close_state(lua_State *L);
/* Call a getter of the recipe. *group is this rank's group of the family that the getter names;
** NULL: the rank is in none. */
mgrid_status mgrid_runtime_group_with(mgrid_runtime *rt, mgrid_state *s, const char *getter,
                                      const mgrid_given *args, const mgrid_group **group,
                                      mgrid_error *err);
/* As mgrid_runtime_set, with one value; nil: the default. */
mgrid_status mgrid_runtime_set_with(mgrid_runtime *rt, mgrid_state *s, const char *name,
                                    const mgrid_given *value, mgrid_error *err);
/* As mgrid_policy_call. The arguments are in the table at `at` of a host's Lua state. */
mgrid_status mgrid_policy_call_from(mgrid_policy *p, lua_State *from, int at, mgrid_error *err);
/* Push the result of the last call to a host's Lua state, or raise there. */
void mgrid_policy_push_result(const mgrid_policy *p, lua_State *to);
/* Add the file and line of the policy to an error that has no line of the recipe. */
void mgrid_policy_place(const mgrid_policy *p, mgrid_error *err);
/* Describe the recipe as JSON: its doc, parameters, settings, queries and so on. *info is a new
** reference; NULL after an error. */
mgrid_status mgrid_runtime_info_json(mgrid_runtime *rt, json_t **info, mgrid_error *err);
/* Pass the text at 2, which was typed at a prompt, to the function `what` of the prelude, "run" or
** "complete". Push the answer. May raise. */
int mgrid_lua_typed(lua_State *L, mgrid_runtime *rt, const char *what);
/* Return the release of Lua with which the library was built, "Lua 5.4.4". */
const char *mgrid_lua_release(void);

#endif
