/* SPDX-License-Identifier: MIT
**
** recipe.c - the functions of moongrid_recipe.h. They check their pointers, then call
** libmoongrid_lua. That library is loaded when a function first needs it, so a host without recipes
** carries no Lua.
*/

/* HOW LUA IS LOADED. The host may have another version of Lua, or LuaJIT, whose functions have the
** same names. So libmoongrid_lua is bound to its own Lua first (RTLD_DEEPBIND), and hides that Lua
** from others (RTLD_LOCAL). RTLD_DEEPBIND also binds libmoongrid_lua to the allocator of libc, even
** if the host uses another allocator. So libmoongrid_lua allocates and frees only through
** base/memory.c.
**
** NULL. These functions refuse a NULL pointer that they need. For a NULL runtime, state, plan or
** policy they leave *err alone, because it usually says already why that could not be made.
*/
#include "comm/recipe.h"

#include "comm/backend_open.h"
#include "comm/state.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>

/* The entry of libmoongrid_lua.a, if the program was linked with it (-Wl,-u,mgrid_lua_entry); else
** NULL. */
extern const mgrid_recipe_entry mgrid_lua_entry __attribute__((weak, visibility("hidden")));

/* Sanitizers end a process that uses RTLD_DEEPBIND, and musl has no such flag. A host with a
** sanitizer, or with musl, may contain no Lua but 5.4. */
#ifndef RTLD_DEEPBIND
#define RTLD_DEEPBIND 0
#endif
static int deeply(void) {
  return dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace") ? 0 : RTLD_DEEPBIND;
}

static const mgrid_recipe_entry *entry_of_library(mgrid_error *err) {
  if (&mgrid_lua_entry) return &mgrid_lua_entry;
  /* Load libmoongrid first, without RTLD_DEEPBIND. If the program contains libmoongrid.a, this is a
  ** second copy of the code. That does no harm, because there is no global state. */
  if (!mgrid_library_open("libmoongrid.so." MGRID_SOVER, 0, "what recipes need", err)) return NULL;
  return mgrid_library_entry("libmoongrid_lua.so." MGRID_SOVER, deeply(), "mgrid_lua_entry",
                             "what recipes need", err);
}

static const mgrid_recipe_entry *recipe_entry_of(const void *made) {
  return ((const mgrid_made_by *)made)->entry;
}

/* ------------------------------------------------------------------- runtimes */

mgrid_runtime *mgrid_runtime_new(const mgrid_limits *limits, const mgrid_hooks *hooks,
                                 mgrid_error *err) {
  const mgrid_recipe_entry *entry = entry_of_library(err);
  return entry ? entry->runtime_new(limits, hooks, err) : NULL;
}

mgrid_runtime *mgrid_runtime_ref(mgrid_runtime *rt) {
  return rt ? recipe_entry_of(rt)->runtime_ref(rt) : NULL;
}

void mgrid_runtime_free(mgrid_runtime *rt) { mgrid_runtime_end(rt); }

mgrid_status mgrid_runtime_function(mgrid_runtime *rt, const mgrid_function *f, mgrid_error *err) {
  if (!rt || mgrid_lacks(f, "the function", err)) return MGRID_USAGE;
  return recipe_entry_of(rt)->function(rt, f, err);
}

mgrid_status mgrid_runtime_load(mgrid_runtime *rt, const char *recipe, const char *text,
                                size_t length, mgrid_error *err) {
  if (!rt || mgrid_lacks(recipe, "the recipe", err)
      || mgrid_lacks_list(length, text, "bytes of text", err))
    return MGRID_USAGE;
  return recipe_entry_of(rt)->load(rt, recipe, text, length, err);
}

mgrid_status mgrid_runtime_lend(mgrid_runtime *rt, const mgrid_item_kind *kind, const void *x,
                                mgrid_error *err) {
  return rt ? recipe_entry_of(rt)->lend(rt, kind, x, err) : MGRID_USAGE;
}

mgrid_status mgrid_serve_by(const mgrid_recipe_entry *entry, const char *module, void *request,
                            mgrid_error *err) {
  if (!entry) entry = entry_of_library(err);
  return entry ? entry->serve(NULL, module, request, err) : MGRID_MISSING;
}

mgrid_status mgrid_runtime_serve(mgrid_runtime *rt, const char *module, void *request,
                                 mgrid_error *err) {
  return rt ? recipe_entry_of(rt)->serve(rt, module, request, err) : MGRID_USAGE;
}

mgrid_plan *mgrid_runtime_plan(mgrid_runtime *rt, int64_t world, const char *file, size_t n,
                               const char *const *args, mgrid_error *err) {
  if (!rt || mgrid_lacks_list(n, args, "arguments", err)) return NULL;
  return recipe_entry_of(rt)->plan(rt, world, file, n, args, err);
}

mgrid_plan *mgrid_runtime_plan_values(mgrid_runtime *rt, int64_t world, size_t n,
                                      const mgrid_arg *args, mgrid_error *err) {
  if (!rt || mgrid_lacks_list(n, args, "parameters", err)) return NULL;
  return recipe_entry_of(rt)->plan_values(rt, world, n, args, err);
}

/* Return whether *e holds an error. If it does, add the stage at which mgrid_open failed, unless
** the error names a stage already (that of another rank), or quotes a line of the recipe. */
static bool failed_while(mgrid_error *e, const char *stage, int64_t world) {
  char whole[64];
  snprintf(whole, sizeof whole, stage, world, mgrid_s_of(world));
  if (e->status && !strchr(e->message, '\n') && !strstr(e->message, " (while "))
    mgrid_error_reword(e, "%s (while %s)", e->message, whole);
  return e->status;
}

/* Make the runtime of mgrid_open and load the recipe. If anything fails, *err says why; a runtime
** that was made is returned even so. */
static mgrid_runtime *runtime_of(const mgrid_open_options *o, const char *recipe,
                                 mgrid_error *err) {
  mgrid_runtime *rt = mgrid_runtime_new(o->limits, o->hooks, err);
  if (!rt || mgrid_lacks_list(o->nfunctions, o->functions, "functions", err)) return rt;
  /* step by the size that mgrid_function has in the host's header */
  const char *at = (const char *)o->functions;
  for (size_t i = 0; i < o->nfunctions; i++, at += o->functions->size)
    if (mgrid_runtime_function(rt, (const mgrid_function *)at, err)) return rt;
  mgrid_runtime_load(rt, recipe, o->text, o->length, err);
  return rt;
}

static mgrid_plan *recipe_plan_of(mgrid_runtime *rt, int64_t world, const mgrid_open_options *o,
                                  size_t n, const char *const *args, mgrid_error *err) {
  if (o->nvalues == 0) return mgrid_runtime_plan(rt, world, o->params, n, args, err);
  if (n > 0 || o->params)
    return mgrid_null(err, MGRID_USAGE,
                      "parameters come as values, or as text and from a file, not both ways");
  return mgrid_runtime_plan_values(rt, world, o->nvalues, o->values, err);
}

mgrid_state *mgrid_open(mgrid_backend *b, const char *recipe, size_t n, const char *const *args,
                        const mgrid_open_options *options, mgrid_error *err) {
  if (!b) return NULL;
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  mgrid_error mine = MGRID_ERROR_INIT;
  mgrid_runtime *rt = NULL;
  mgrid_plan *plan = NULL;
  int64_t world = mgrid_backend_world(b);

  if (!mgrid_struct_read(&o, sizeof o, options, "mgrid_open_options", &mine))
    rt = runtime_of(&o, recipe, &mine);
  if (!failed_while(&mine, "loading the recipe", world)) {
    plan = recipe_plan_of(rt, world, &o, n, args, &mine);
    failed_while(&mine, "planning for %" PRId64 " rank%s", world);
  }

  /* if this rank has no plan, all ranks get its error */
  mgrid_state *s = mgrid_materialize(plan, b, o.name, &mine);
  failed_while(&mine, "creating the state", world);

  mgrid_plan_free(plan);
  if (s)
    s->runtime = rt;
  else
    mgrid_runtime_free(rt);
  mgrid_error_pass(err, &mine);
  return s;
}

mgrid_runtime *mgrid_state_runtime(const mgrid_state *s) { return s ? s->runtime : NULL; }

const char *const *mgrid_recipe_names(void) {
  static const char *const none[] = { NULL };
  const mgrid_recipe_entry *entry = entry_of_library(NULL);
  return entry ? entry->names : none;
}

/* ------------------------------------------------------------------ questions */

/* Check the struct that will get a value, and set it to no value. */
static mgrid_status no_value(mgrid_arg *out, mgrid_error *err) {
  const mgrid_arg none = MGRID_ARG_INIT;
  if (mgrid_lacks(out, "the place for the value", err)) return MGRID_USAGE;
  mgrid_status s = mgrid_struct_check(out, sizeof none, "mgrid_arg", err);
  if (!s) mgrid_struct_write(out, &none, sizeof none);
  return s;
}

mgrid_status mgrid_runtime_ask(mgrid_runtime *rt, mgrid_state *s, const char *query, size_t n,
                               const mgrid_arg *args, mgrid_kind kind, mgrid_arg *answer,
                               mgrid_error *err) {
  mgrid_status bad = no_value(answer, rt ? err : NULL);
  if (!rt || mgrid_lacks(query, "the name of the query", err)
      || mgrid_lacks_list(n, args, "arguments", err))
    return MGRID_USAGE;
  if (bad) return bad;
  return recipe_entry_of(rt)->ask(rt, s, query, n, args, kind, answer, err);
}

const mgrid_group *mgrid_runtime_group(mgrid_runtime *rt, mgrid_state *s, const char *getter,
                                       size_t n, const mgrid_arg *args, mgrid_error *err) {
  if (!rt || mgrid_lacks(getter, "the name of the getter", err)
      || mgrid_lacks_list(n, args, "arguments", err))
    return NULL;
  return recipe_entry_of(rt)->group(rt, s, getter, n, args, err);
}

mgrid_status mgrid_runtime_set(mgrid_runtime *rt, mgrid_state *s, const mgrid_arg *setting,
                               mgrid_error *err) {
  if (!rt || mgrid_lacks(setting, "the setting", err)) return MGRID_USAGE;
  return recipe_entry_of(rt)->set(rt, s, setting, err);
}

mgrid_status mgrid_runtime_describe(mgrid_runtime *rt, bool json, mgrid_sink sink, void *ud,
                                    mgrid_error *err) {
  if (!rt || mgrid_lacks(sink, "the sink", err)) return MGRID_USAGE;
  return recipe_entry_of(rt)->describe(rt, json, sink, ud, err);
}

mgrid_status mgrid_plan_draw(const mgrid_plan *p, const char *how, const char *options,
                             mgrid_sink sink, void *ud, mgrid_error *err) {
  if (!p || mgrid_lacks(how, "the kind of the picture", err) || mgrid_lacks(sink, "the sink", err))
    return MGRID_USAGE;
  const mgrid_recipe_entry *entry = entry_of_library(err);
  return entry ? entry->draw(p, how, options, sink, ud, err) : MGRID_MISSING;
}

/* ------------------------------------------------------------------- policies */

mgrid_policy *mgrid_policy_new(mgrid_runtime *rt, mgrid_state *s, const char *name,
                               mgrid_error *err) {
  if (!rt || mgrid_lacks(name, "the name of the policy", err)) return NULL;
  return recipe_entry_of(rt)->policy_new(rt, s, name, err);
}

void mgrid_policy_free(mgrid_policy *p) {
  if (p) recipe_entry_of(p)->policy_free(p);
}

const char *mgrid_policy_agreed(const mgrid_policy *p) {
  return p ? recipe_entry_of(p)->policy_agreed(p) : "";
}

mgrid_status mgrid_policy_call(mgrid_policy *p, size_t n, const mgrid_arg *args, mgrid_error *err) {
  return p ? recipe_entry_of(p)->policy_call(p, n, args, err)
           : MGRID_USAGE; /* policy.c checks args itself, because the call may be collective */
}

mgrid_status mgrid_policy_result(mgrid_policy *p, const char *path, mgrid_kind kind,
                                 mgrid_arg *result, mgrid_error *err) {
  mgrid_status bad = no_value(result, p ? err : NULL);
  if (!p) return MGRID_USAGE;
  return bad ? bad : recipe_entry_of(p)->policy_result(p, path, kind, result, err);
}

/* --------------------------------------------------------------------- reload */

mgrid_status mgrid_reload(const mgrid_runtime *rt, mgrid_state *s, const char *recipe, size_t n,
                          const char *const *args, mgrid_state **new_s, mgrid_change *change,
                          mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  if (new_s) *new_s = NULL;
  if (!s) return MGRID_USAGE;
  if (!rt) mgrid_fail(&mine, MGRID_USAGE, "there is no runtime to reload");
  mgrid_lacks(new_s, "the place for the new state", &mine);
  mgrid_lacks_list(n, args, "arguments", &mine);
  if (!mine.status) return recipe_entry_of(rt)->reload(rt, s, recipe, n, args, new_s, change, err);
  /* the call is collective, so take part in it: the other ranks get this error */
  mgrid_state_make(NULL, s->backend, s->name, s, NULL, &mine);
  return mgrid_error_pass(err, &mine);
}
