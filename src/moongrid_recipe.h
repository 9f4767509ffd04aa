/* SPDX-License-Identifier: MIT
**
** moongrid_recipe.h - recipes, their queries and their policies. moongrid.h includes this header, and its
** rules on words, errors, ownership, structs and threads hold here, too.
**
**     mgrid_state   *state = mgrid_open(backend, "layout.lua", n, args, NULL, &e);  // "tp=2", ...; collective
**     mgrid_policy  *p = mgrid_policy_new(mgrid_state_runtime(state), state, "microbatches", &e);
**     mgrid_arg      q = mgrid_arg_integer("global_batch", 64);
**     mgrid_policy_call(p, 1, &q, &e);
**     mgrid_policy_integer(p, NULL, &n_micro, &e);
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* which includes this header in its place */
#elif !defined MOONGRID_RECIPE_H
#define MOONGRID_RECIPE_H

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- recipes */

typedef struct mgrid_runtime mgrid_runtime; /* a Lua state with limits, and one recipe */

/* Recipes are Lua, and Lua is in a library of its own, libmoongrid_lua. The first mgrid_runtime_new loads it from
** beside libmoongrid, where it stays loaded (MGRID_MISSING where it is not): the host may have any Lua of its own,
** of any version, and a host without recipes has none. */

typedef struct mgrid_limits {
  size_t   size;         /* sizeof(mgrid_limits) */
  size_t   memory;       /* bytes of the Lua heap and of what its values hold in C; default 64 MiB */
  uint64_t instructions; /* Lua instructions per call, and as many for work in C; default 200 million */
  double   seconds;      /* processor time of this thread to load a recipe and make a plan; default 10 */
  double   call_seconds; /* the same of one query, setting or policy; default 2 */
} mgrid_limits;
#define MGRID_LIMITS_INIT \
  { sizeof(mgrid_limits), (size_t)64 << 20, UINT64_C(200000000), 10.0, 2.0 }

/* limits may be NULL; each is above 0. hooks (NULL: none) are copied, also to the runtimes that mgrid_reload
** makes of this one. */
MGRID_API mgrid_runtime *mgrid_runtime_new(const mgrid_limits *limits, const mgrid_hooks *hooks, mgrid_error *err);
MGRID_API mgrid_runtime *mgrid_runtime_ref(mgrid_runtime *rt); /* another owner; never fails */
MGRID_API void           mgrid_runtime_free(mgrid_runtime *rt);
/* Load a recipe: a file (text, never bytecode) or the name of a bundled one. Once per
** runtime. */
MGRID_API mgrid_status mgrid_runtime_load(mgrid_runtime *rt, const char *recipe, mgrid_error *err);
/* The same with the recipe itself, `length` bytes of text, at most 1 MiB, borrowed for the call; `name` is what messages
** and the plan call it. It lies in no folder: it may name bundled recipes, and no files. */
MGRID_API mgrid_status mgrid_runtime_load_text(mgrid_runtime *rt, const char *text, size_t length, const char *name,
                                               mgrid_error *err);
/* Evaluate the recipe for a world; args (NULL where n is 0) are n strings "name=value": parameters, and options of
** families on top of the recipe's own by names with a dot, "tp.max_ctas=8", "*.timeout=600" (* stands for any part
** of a name, and a family's own option wins; lua/README.md has all). The runtime stays usable after a failure and
** outlives the plan. */
MGRID_API mgrid_plan *mgrid_runtime_plan(mgrid_runtime *rt, int64_t world, size_t n, const char *const *args,
                                         mgrid_error *err);
/* The same with parameters from a file, which args override: a JSON object (a path that ends with .json), a
** mapping of YAML (.yaml, .yml), or Lua that returns a table, return { tp = 2 }, run in the sandbox of recipes.
** Names of the file that are no parameters are refused, but for a recipe with a parameter for them (`rest`).
** path NULL: no file. */
MGRID_API mgrid_plan *mgrid_runtime_plan_file(mgrid_runtime *rt, int64_t world, const char *path, size_t n,
                                              const char *const *args, mgrid_error *err);
/* The same with C values (mgrid_arg is below, at policies). */
typedef struct mgrid_arg mgrid_arg;
MGRID_API mgrid_plan    *mgrid_runtime_plan_values(mgrid_runtime *rt, int64_t world, size_t n, const mgrid_arg *args,
                                                   mgrid_error *err);
/* Ask a query of the loaded recipe about a state of its plan. Queries are the getters of the modelled
** system under its own names ("pipeline_model_parallel_next_rank"), else MGRID_UNKNOWN_NAME. args is NULL or a JSON object,
** {"virtual_rank": 1} (megatron_deepspeed). The answer is JSON text, as snprintf into (buf, len); *length (may be
** NULL) is the length of the whole answer. "null": no value on this rank. Local. */
MGRID_API mgrid_status mgrid_runtime_ask(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args,
                                         char *buf, size_t len, size_t *length, mgrid_error *err);
/* The same where the answer is an integer or a truth value (1, 0); -1 for no value. MGRID_BAD_VALUE
** where it is something else. */
MGRID_API mgrid_status mgrid_runtime_ask_integer(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args,
                                                 int64_t *answer, mgrid_error *err);
/* The same where the answer is text, unquoted, as snprintf into (buf, len); "" for no value. MGRID_BAD_VALUE
** where it is something else. */
MGRID_API mgrid_status mgrid_runtime_ask_text(mgrid_runtime *rt, mgrid_state *s, const char *query, const char *args,
                                              char *buf, size_t len, size_t *length, mgrid_error *err);
/* This rank's group that a getter of the modelled system gives ("get_tensor_and_data_parallel_group"), which
** the loaded recipe has in `getters`; args as above, {"with_context_parallel": true}. NULL where the rank is in none
** (no error). MGRID_UNKNOWN_NAME with the nearest getter, MGRID_REFUSED where the plan has no such family, with
** the parameter that would make it; NULL without an error there if the getter takes {"check_initialized": false}.
** Look it up once: the handle is that of mgrid_state_group. Local. */
MGRID_API const mgrid_group *mgrid_runtime_group(mgrid_runtime *rt, mgrid_state *s, const char *getter,
                                                 const char *args, mgrid_error *err);
/* Switch a setting that the loaded recipe declares (settings = { training = param.flag(true) }): what its
** queries over this state see from now on, by name or alias; MGRID_IS_NONE puts the default back. Each state
** has settings of its own, at their defaults when it is made, by mgrid_reload too. They are no part of the
** plan, its digest or any agreement: ranks may differ. MGRID_UNKNOWN_NAME with the nearest name,
** MGRID_BAD_VALUE or MGRID_OUT_OF_RANGE where the value is not of its kind; the setting is as before then. Local. */
MGRID_API mgrid_status mgrid_runtime_set(mgrid_runtime *rt, mgrid_state *s, const mgrid_arg *setting, mgrid_error *err);
/* Doc, parameters, settings, policies, queries, getters and what they take of the loaded recipe, for a person
** or as JSON. */
MGRID_API mgrid_status mgrid_runtime_describe(mgrid_runtime *rt, bool json, mgrid_sink sink, void *ud,
                                              mgrid_error *err);

/* The way from a recipe to communicators in one call: a runtime, its recipe, the plan for the world of the backend, and
** mgrid_materialize over it. The state owns all of them: mgrid_state_free gives back the runtime and the plan, and the
** backend, too, once the host has freed its own share of it (mgrid_backend_free right after this call, if it likes).
** recipe, n and args are those of mgrid_runtime_load and mgrid_runtime_plan. Collective over the backend, all or
** nothing, as mgrid_materialize: a rank that cannot load or plan takes part, and every rank gets an error. The message
** ends with the stage, "(while loading the recipe)", "(while planning for 8 ranks)" or "(while creating the state)";
** backend NULL: what opening it left in *err stays.
**
**     mgrid_backend *b = mgrid_mpi_backend(comm, NULL, &e);
**     mgrid_state *s = mgrid_open(b, "layout.lua", n, args, NULL, &e);
**     mgrid_backend_free(b);
**     ...
**     mgrid_state_free(s);
**
** mgrid_mpi_open of moongrid_mpi.h does the first three.
*/
typedef struct mgrid_open_options {
  size_t              size; /* sizeof(mgrid_open_options) */
  const char         *name; /* of the state; NULL: "" */
  const char         *text; /* the recipe itself, as of mgrid_runtime_load_text, which `recipe` is the name of then; */
  size_t              length; /* bytes of it */
  const char         *params; /* a file of parameters, as of mgrid_runtime_plan_file; NULL: none */
  const mgrid_limits *limits; /* of the runtime, with its hooks; NULL: the defaults */
  const mgrid_hooks  *hooks;
} mgrid_open_options;
#define MGRID_OPEN_OPTIONS_INIT \
  { sizeof(mgrid_open_options), NULL, NULL, 0, NULL, NULL, NULL }
/* options may be NULL. */
MGRID_API mgrid_state *mgrid_open(mgrid_backend *b, const char *recipe, size_t n, const char *const *args,
                                  const mgrid_open_options *options, mgrid_error *err);
/* The runtime of a state that mgrid_open made, for queries, settings, policies and mgrid_reload; NULL of others.
** Borrowed: it ends with the state, unless the host takes a share (mgrid_runtime_ref). */
MGRID_API mgrid_runtime *mgrid_state_runtime(const mgrid_state *s);

/* ---------------------------------------------------------------- policies
** A policy is a Lua function that a recipe exports, policy = { name = function(state, q, p) ... end }:
** a decision that changes without recompiling. It sees the state, its families, groups, grids and
** machine read-only, the arguments by name in q, and in p what the plan was made with; policies.NAME
** of a recipe makes bundled ones, documented in lua/moongrid/meta_recipe.lua. Every call has the
** runtime's limits; after an error the runtime and the policy are as good as before. What a policy
** keeps in a local of the recipe stays until the next reload. */

typedef enum mgrid_kind {
  MGRID_IS_NONE, /* nil */
  MGRID_IS_BOOLEAN,
  MGRID_IS_INTEGER,
  MGRID_IS_NUMBER,
  MGRID_IS_TEXT,
  MGRID_IS_INTEGERS, /* a list */
  MGRID_IS_NUMBERS,  /* a list, of which some are no integers */
  MGRID_IS_TABLE,    /* by key, or empty */
  MGRID_IS_LIST      /* a list of anything else; of results alone */
} mgrid_kind;

/* A named value that the host gives to a policy, as a parameter or as a setting. Everything in it is borrowed for
** the call. The functions below make one. All in an array have the same `size`. */
struct mgrid_arg {
  size_t      size; /* sizeof(mgrid_arg) */
  const char *name; /* key in q */
  mgrid_kind  kind;
  union {
    bool        boolean;
    int64_t     integer;
    double      number;
    const char *text;
    struct {
      size_t         n;
      const int64_t *at;
    } integers;
    struct {
      size_t        n;
      const double *at;
    } numbers;
    struct {
      size_t           n;
      const mgrid_arg *at;
    } table;
  } as;
};
#define MGRID_ARG_INIT \
  { \
    sizeof(mgrid_arg), NULL, MGRID_IS_NONE, { false } \
  }

static inline mgrid_arg mgrid_arg_of(const char *name, mgrid_kind kind) {
  mgrid_arg a = MGRID_ARG_INIT;
  a.name = name, a.kind = kind;
  return a;
}
static inline mgrid_arg mgrid_arg_boolean(const char *name, bool value) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_BOOLEAN);
  a.as.boolean = value;
  return a;
}
static inline mgrid_arg mgrid_arg_integer(const char *name, int64_t value) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_INTEGER);
  a.as.integer = value;
  return a;
}
static inline mgrid_arg mgrid_arg_number(const char *name, double value) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_NUMBER);
  a.as.number = value;
  return a;
}
static inline mgrid_arg mgrid_arg_text(const char *name, const char *value) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_TEXT);
  a.as.text = value;
  return a;
}
static inline mgrid_arg mgrid_arg_integers(const char *name, size_t n, const int64_t *at) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_INTEGERS);
  a.as.integers.n = n, a.as.integers.at = at;
  return a;
}
static inline mgrid_arg mgrid_arg_numbers(const char *name, size_t n, const double *at) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_NUMBERS);
  a.as.numbers.n = n, a.as.numbers.at = at;
  return a;
}
static inline mgrid_arg mgrid_arg_table(const char *name, size_t n, const mgrid_arg *at) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_TABLE);
  a.as.table.n = n, a.as.table.at = at;
  return a;
}

typedef struct mgrid_policy mgrid_policy;

/* Look up a policy of the loaded recipe for a state of its plan. MGRID_UNKNOWN_NAME with the nearest
** name where there is none. It keeps the runtime alive; free it before the state. Local. */
MGRID_API mgrid_policy *mgrid_policy_new(mgrid_runtime *rt, mgrid_state *s, const char *name, mgrid_error *err);
MGRID_API void          mgrid_policy_free(mgrid_policy *p);
/* Who compares its results, so that a call is collective over them (agreed = { name = "world" }): "world", else the
** name of a family, whose groups compare; "" where nobody does, and a call is local. Borrowed from the policy. */
MGRID_API const char *mgrid_policy_agreed(const mgrid_policy *p);
/* Call it; args may be NULL where n is 0. What it returns stays in the policy until the next call.
** Where the recipe declares it agreed (agreed = { name = "world" } or a family) the call is
** collective over the world or this rank's group of that family (whose groups share no ranks), and
** ranks that do not return the same all get MGRID_DISAGREE, with what two of them have; a rank on which
** it failed gets its own error instead. An integer and a number of equal value are not the same. Ranks that call
** different policies at a time are MGRID_DISAGREE, too. A rank that does not call, or has no such policy (p NULL), takes
** no part: the others wait until the backend's timeout, and MGRID_TIMED_OUT names it. */
MGRID_API mgrid_status mgrid_policy_call(mgrid_policy *p, size_t n, const mgrid_arg *args, mgrid_error *err);

/* The result is read by path: NULL or "" is the whole, "lr" what is at that key, "layers[0].first" goes
** on from there. Lists count from 0, as everywhere in C; a key that is no name is written ["so"]. */

/* The kind of what is at the path; MGRID_IS_NONE where there is nothing. */
MGRID_API mgrid_kind mgrid_policy_kind(const mgrid_policy *p, const char *path);
/* Elements of the list, or keys of the table, at the path. */
MGRID_API mgrid_status mgrid_policy_length(const mgrid_policy *p, const char *path, size_t *out, mgrid_error *err);
/* Text keys of the table at the path, by their bytes, at most `cap` of them; *length (may be NULL) is how many
** there are. Borrowed until the next call. */
MGRID_API mgrid_status mgrid_policy_keys(const mgrid_policy *p, const char *path, size_t cap, const char **out,
                                         size_t *length, mgrid_error *err);
/* Read what is at the path. MGRID_BAD_VALUE where it is of another kind, naming the policy, the path
** and both kinds; *out is 0, false or NULL then. A number is read from an integer as well, an integer
** from a number that is one, alone and in lists; {} is an empty list, too. Text is borrowed until the
** next call; lists are copied, at most `cap` elements, *length (may be NULL) the whole. */
MGRID_API mgrid_status mgrid_policy_boolean(const mgrid_policy *p, const char *path, bool *out, mgrid_error *err);
MGRID_API mgrid_status mgrid_policy_integer(const mgrid_policy *p, const char *path, int64_t *out, mgrid_error *err);
MGRID_API mgrid_status mgrid_policy_number(const mgrid_policy *p, const char *path, double *out, mgrid_error *err);
MGRID_API mgrid_status mgrid_policy_text(const mgrid_policy *p, const char *path, const char **out, mgrid_error *err);
MGRID_API mgrid_status mgrid_policy_integers(const mgrid_policy *p, const char *path, size_t cap, int64_t *out,
                                             size_t *length, mgrid_error *err);
MGRID_API mgrid_status mgrid_policy_numbers(const mgrid_policy *p, const char *path, size_t cap, double *out,
                                            size_t *length, mgrid_error *err);

/* At a step boundary: evaluate the recipe again (its file may have changed; `recipe` NULL: the same
** one) with n arguments, agree, and materialize beside the old state: communicators that are equal are
** kept, new ones created. Collective over the state's backend. On success *new_rt and *new_s are the
** caller's, who then frees the old policies, state and runtime (that of mgrid_open goes with its state); this
** destroys the communicators that are not used any more. On failure, of this rank or another, every rank gets one
** error, its status and its text, and what runs is untouched: MGRID_DISAGREE where some ranks have a plan and others
** have not, or another; where none has one that of rank 0. change may be NULL. Parameters are not carried over: args
** are all there are. With parameters
** from a file or as C values do the same by mgrid_runtime_new, _load, _plan_file or _plan_values, and
** mgrid_materialize, under another name, over the same backend while the old state still exists. mgrid_state_move
** (moongrid_tensor.h) then tells how tensors go from the old state to the new one. */
MGRID_API mgrid_status mgrid_reload(const mgrid_runtime *rt, mgrid_state *s, const char *recipe, size_t n,
                                    const char *const *args, mgrid_runtime **new_rt, mgrid_state **new_s,
                                    mgrid_change *change, mgrid_error *err);

/* Names of the bundled recipes, NULL at the end. */
MGRID_API const char *const *mgrid_recipe_names(void);

#ifdef __cplusplus
}
#endif
#endif
