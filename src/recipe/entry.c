/* SPDX-License-Identifier: MIT
**
** entry.c - the entry points of libmoongrid_lua.
*/
#include "recipe/entry.h"

#include "recipe/bundle.h"

const mgrid_recipe_entry mgrid_lua_entry = {
  .layout = MGRID_LAYOUT,
  .runtime_new = mgrid_script_runtime_new,
  .runtime_ref = mgrid_script_runtime_ref,
  .runtime_free = mgrid_script_runtime_free,
  .load = mgrid_script_load,
  .plan_file = mgrid_script_plan_file,
  .plan_values = mgrid_script_plan_values,
  .ask = mgrid_script_ask,
  .ask_integer = mgrid_script_ask_integer,
  .ask_text = mgrid_script_ask_text,
  .group = mgrid_script_group,
  .set = mgrid_script_set,
  .describe = mgrid_script_describe,
  .reload = mgrid_script_reload,
  .names = mgrid_bundled_names,

  .policy_new = mgrid_script_policy_new,
  .policy_free = mgrid_script_policy_free,
  .policy_agreed = mgrid_script_policy_agreed,
  .policy_call = mgrid_script_policy_call,
  .policy_kind = mgrid_script_policy_kind,
  .policy_length = mgrid_script_policy_length,
  .policy_keys = mgrid_script_policy_keys,
  .policy_boolean = mgrid_script_policy_boolean,
  .policy_integer = mgrid_script_policy_integer,
  .policy_number = mgrid_script_policy_number,
  .policy_text = mgrid_script_policy_text,
  .policy_integers = mgrid_script_policy_integers,
  .policy_numbers = mgrid_script_policy_numbers,
};
