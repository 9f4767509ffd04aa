/* SPDX-License-Identifier: MIT
**
** moongrid_recipe.h - recipes, their queries and their policies. moongrid.h includes this header,
** and its rules on words, errors, ownership, structs and threads hold here, too.
**
**     mgrid_state   *state = mgrid_open(backend, "layout.lua", n, args, NULL, &e);  // "tp=2", ...; collective
**     mgrid_policy  *p = mgrid_policy_new(mgrid_state_runtime(state), state, "microbatches", &e);
**     mgrid_arg      q = mgrid_arg_integer("global_batch", 64), n_micro = MGRID_ARG_INIT;
**     mgrid_policy_call(p, 1, &q, &e);
**     mgrid_policy_result(p, NULL, MGRID_IS_INTEGER, &n_micro, &e);  // n_micro.as.integer
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_RECIPE_H
#define MOONGRID_RECIPE_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ values */

typedef enum mgrid_kind {
  MGRID_IS_NONE, /* nil; as the kind that is asked for: any kind */
  MGRID_IS_BOOLEAN,
  MGRID_IS_INTEGER,
  MGRID_IS_NUMBER,
  MGRID_IS_TEXT,
  MGRID_IS_INTEGERS, /* a list of integers */
  MGRID_IS_NUMBERS,  /* a list of numbers, not all of them integers */
  MGRID_IS_TABLE,    /* a table by key, or an empty table */
  MGRID_IS_LIST, /* a list of other values, which have no names; not in parameters and settings */
  MGRID_IS_JSON  /* any value but nil, as its JSON text (as.text) */
} mgrid_kind;

typedef struct mgrid_arg mgrid_arg;
/* A named value: an argument of a policy, query or getter, a parameter, or a setting. The result of
** a policy or a query has no name. Whatever an argument points to is borrowed for the call. The
** functions below make such values. All elements of an array have the same `size`. */
struct mgrid_arg {
  size_t size;      /* sizeof(mgrid_arg) */
  const char *name; /* key in q */
  mgrid_kind kind;
  union {
    bool boolean;
    int64_t integer;
    double number;
    const char *text; /* or JSON */
    struct {
      size_t n;
      const int64_t *at;
    } integers;
    struct {
      size_t n;
      const double *at;
    } numbers;
    struct {
      size_t n;
      const mgrid_arg *at;
    } table; /* or list */
  } as;
};
#define MGRID_ARG_INIT \
  { \
    sizeof(mgrid_arg), NULL, MGRID_IS_NONE, { false } \
  }

MGRID_INLINE mgrid_arg mgrid_arg_of(const char *name, mgrid_kind kind) {
  mgrid_arg a = MGRID_ARG_INIT;
  a.name = name, a.kind = kind;
  return a;
}
MGRID_INLINE mgrid_arg mgrid_arg_boolean(const char *name, bool value) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_BOOLEAN);
  a.as.boolean = value;
  return a;
}
MGRID_INLINE mgrid_arg mgrid_arg_integer(const char *name, int64_t value) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_INTEGER);
  a.as.integer = value;
  return a;
}
MGRID_INLINE mgrid_arg mgrid_arg_number(const char *name, double value) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_NUMBER);
  a.as.number = value;
  return a;
}
MGRID_INLINE mgrid_arg mgrid_arg_text(const char *name, const char *value) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_TEXT);
  a.as.text = value;
  return a;
}
MGRID_INLINE mgrid_arg mgrid_arg_json(const char *name, const char *value) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_JSON);
  a.as.text = value;
  return a;
}
MGRID_INLINE mgrid_arg mgrid_arg_integers(const char *name, size_t n, const int64_t *at) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_INTEGERS);
  a.as.integers.n = n, a.as.integers.at = at;
  return a;
}
MGRID_INLINE mgrid_arg mgrid_arg_numbers(const char *name, size_t n, const double *at) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_NUMBERS);
  a.as.numbers.n = n, a.as.numbers.at = at;
  return a;
}
MGRID_INLINE mgrid_arg mgrid_arg_table(const char *name, size_t n, const mgrid_arg *at) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_TABLE);
  a.as.table.n = n, a.as.table.at = at;
  return a;
}
MGRID_INLINE mgrid_arg mgrid_arg_list(const char *name, size_t n, const mgrid_arg *at) {
  mgrid_arg a = mgrid_arg_of(name, MGRID_IS_LIST);
  a.as.table.n = n, a.as.table.at = at;
  return a;
}

/* ----------------------------------------------------------------- recipes */

typedef struct mgrid_runtime mgrid_runtime; /* a Lua state with limits, and one recipe */

/* Recipes are Lua, and Lua is in a library of its own, libmoongrid_lua, beside libmoongrid. The
** first mgrid_runtime_new loads this library (MGRID_MISSING: it is not there), and it stays loaded.
** So the host may have a Lua of any version, and a host without recipes loads none. */

typedef struct mgrid_limits {
  size_t size;           /* sizeof(mgrid_limits) */
  size_t memory;         /* bytes of the Lua heap and of the C objects of its values; 0: 64 MiB */
  uint64_t instructions; /* Lua instructions of a call, and as much work in C; 0: 200 million */
  double seconds;        /* processor time of this thread to load a recipe and make a plan; 0: 10 */
  double call_seconds;   /* processor time of one query, setting or policy; 0: 2 */
} mgrid_limits;
#define MGRID_LIMITS_INIT \
  { sizeof(mgrid_limits), 0, 0, 0, 0 }

/* limits may be NULL. hooks (NULL: none) are copied, also to each runtime that mgrid_reload makes
** from this one. */
MGRID_API mgrid_runtime *mgrid_runtime_new(const mgrid_limits *limits, const mgrid_hooks *hooks,
                                           mgrid_error *err);
MGRID_API mgrid_runtime *mgrid_runtime_ref(mgrid_runtime *rt); /* another owner; never fails */
MGRID_API void mgrid_runtime_free(mgrid_runtime *rt);
/* Load a recipe, once in each runtime. If text is NULL, `recipe` is a file (text, never bytecode)
** or the name of a bundled recipe. Else the recipe is `length` bytes of `text`, at most 1 MiB,
** borrowed for the call, and messages and the plan call it `recipe`. Such a recipe has no folder:
** it may use bundled recipes, but no files. */
MGRID_API mgrid_status mgrid_runtime_load(mgrid_runtime *rt, const char *recipe, const char *text,
                                          size_t length, mgrid_error *err);
/* Evaluate the recipe for a world. args (NULL if n is 0) are n strings "name=value". They are
** parameters. A name with a dot is an option of families, which overrides the recipe's:
** "tp.max_ctas=8", or "*.timeout=600", where * stands for any part of a name (lua/README.md lists
** all options). The option of a full name wins over one with *. file (NULL: none) has more
** parameters, which args override. It is a JSON object (.json), a YAML mapping (.yaml, .yml), or
** Lua that returns a table, return { tp = 2 }. Such Lua runs in the sandbox of recipes. A name that
** is not a parameter is refused, unless the recipe has a parameter for all others (`rest`). The
** runtime stays usable after a failure, and may be freed before the plan. */
MGRID_API mgrid_plan *mgrid_runtime_plan(mgrid_runtime *rt, int64_t world, const char *file,
                                         size_t n, const char *const *args, mgrid_error *err);
/* The same with parameters as C values. */
MGRID_API mgrid_plan *mgrid_runtime_plan_values(mgrid_runtime *rt, int64_t world, size_t n,
                                                const mgrid_arg *args, mgrid_error *err);
/* Ask a query of the loaded recipe about a state of its plan. Queries answer what functions of the
** modelled system answer, under the same names ("pipeline_model_parallel_next_rank");
** MGRID_UNKNOWN_NAME for other names. args (NULL if n is 0) are n named arguments, such as
** mgrid_arg_integer("virtual_rank", 1) in megatron_deepspeed. *answer (MGRID_ARG_INIT) is read as
** `kind`, as by mgrid_policy_result, and borrowed until the next query of this runtime. A query may
** have no value on this rank, which is not an error: then *answer is MGRID_IS_NONE, with -1 in
** as.integer for MGRID_IS_INTEGER, "" in as.text for MGRID_IS_TEXT. Local.
**     mgrid_arg next = MGRID_ARG_INIT;
**     mgrid_runtime_ask(rt, s, "pp_next_rank", 0, NULL, MGRID_IS_INTEGER, &next, &e);
**     if (next.as.integer >= 0) ... */
MGRID_API mgrid_status mgrid_runtime_ask(mgrid_runtime *rt, mgrid_state *s, const char *query,
                                         size_t n, const mgrid_arg *args, mgrid_kind kind,
                                         mgrid_arg *answer, mgrid_error *err);
/* Return the group of this rank that a getter of the modelled system returns
** ("get_tensor_and_data_parallel_group"); the loaded recipe lists the getters in `getters`. args
** are as for mgrid_runtime_ask, such as mgrid_arg_boolean("with_context_parallel", true). NULL if
** the rank is in no such group (no error). MGRID_UNKNOWN_NAME with the nearest getter.
** MGRID_REFUSED if the plan has no such family; the message names the parameter that makes it. If
** the getter has an argument "check_initialized" and it is false, NULL without an error instead.
** Look it up once: the handle is that of mgrid_state_group. Local. */
MGRID_API const mgrid_group *mgrid_runtime_group(mgrid_runtime *rt, mgrid_state *s,
                                                 const char *getter, size_t n,
                                                 const mgrid_arg *args, mgrid_error *err);
/* Set a setting that the loaded recipe declares (settings = { training = param.flag(true) }), by
** name or alias. Queries about this state use it from now on. MGRID_IS_NONE restores the default.
** Each new state has its own settings, at their defaults, also that of mgrid_reload; only
** mgrid_state_recover passes them on. Settings are not part of the plan or its digest, and are not
** compared between ranks. MGRID_UNKNOWN_NAME with the nearest name, MGRID_BAD_VALUE or
** MGRID_OUT_OF_RANGE for a wrong value; the setting is unchanged then. Local. */
MGRID_API mgrid_status mgrid_runtime_set(mgrid_runtime *rt, mgrid_state *s,
                                         const mgrid_arg *setting, mgrid_error *err);
/* Print the doc, parameters, settings, policies, queries and getters of the loaded recipe, with
** their arguments, as text or as JSON. */
MGRID_API mgrid_status mgrid_runtime_describe(mgrid_runtime *rt, bool json, mgrid_sink sink,
                                              void *ud, mgrid_error *err);

typedef struct mgrid_function mgrid_function;
/* Options of mgrid_open. */
typedef struct mgrid_open_options {
  size_t size;      /* sizeof(mgrid_open_options) */
  const char *name; /* of the state; NULL: "" */
  /* the text of the recipe, as for mgrid_runtime_load; then `recipe` is its name */
  const char *text;
  size_t length;              /* bytes of text */
  const char *params;         /* a file of parameters, as for mgrid_runtime_plan; NULL: none */
  const mgrid_limits *limits; /* of the runtime; NULL: the defaults */
  const mgrid_hooks *hooks;
  size_t nfunctions; /* functions of the host, as for mgrid_runtime_function */
  const mgrid_function *functions;
  /* parameters as C values, as for mgrid_runtime_plan_values; then n is 0, params NULL */
  size_t nvalues;
  const mgrid_arg *values;
} mgrid_open_options;
#define MGRID_OPEN_OPTIONS_INIT \
  { sizeof(mgrid_open_options), NULL, NULL, 0, NULL, NULL, NULL, 0, NULL, 0, NULL }
/* From a recipe to communicators in one call: make a runtime, load the recipe, plan for the world
** of the backend, and materialize. The state owns the runtime and the plan, and is an owner of the
** backend, so the host may free its backend right after this call. recipe, n and args are those of
** mgrid_runtime_load and mgrid_runtime_plan. options may be NULL. Collective over the backend, all
** or nothing, as mgrid_materialize: a rank that cannot load or plan takes part, and every rank gets
** an error. The message ends with the stage, "(while loading the recipe)", "(while planning for 8
** ranks)" or "(while creating the state)", unless it quotes a line of the recipe. b NULL: *err
** keeps the error of opening the backend.
**     mgrid_backend *b = mgrid_mpi_backend(comm, NULL, &e);
**     mgrid_state *s = mgrid_open(b, "layout.lua", n, args, NULL, &e);
**     mgrid_backend_free(b);
**     ...
**     mgrid_state_free(s);
** mgrid_mpi_open of moongrid_mpi.h does the first three steps. */
MGRID_API mgrid_state *mgrid_open(mgrid_backend *b, const char *recipe, size_t n,
                                  const char *const *args, const mgrid_open_options *options,
                                  mgrid_error *err);
/* Return the runtime of a state of mgrid_open or mgrid_reload, for queries, settings, policies and
** mgrid_reload; NULL for other states. Borrowed: it ends with the state, unless the host adds an
** owner (mgrid_runtime_ref). */
MGRID_API mgrid_runtime *mgrid_state_runtime(const mgrid_state *s);

/* ---------------------------------------------------------------- policies A policy is a Lua
** function of a recipe. It decides something for the trainer, and can be changed without compiling
** the trainer again:
**     policy = { microbatches = function(state, q, p) return q.batch // state.dp.size end }
** Its arguments are the state with its families, groups, grids and machine; q, a table with the
** arguments of the call; and p, the parameters of the plan. policies.NAME in a recipe makes a
** bundled policy; lua/moongrid/meta_recipe.lua documents them. Every call has the runtime's limits.
** After an error the runtime and the policy work as before. A local variable of the recipe keeps
** its value until the next reload.
*/

typedef struct mgrid_policy mgrid_policy;

/* Look up a policy of the loaded recipe for a state of its plan. MGRID_UNKNOWN_NAME with the
** nearest name. It keeps the runtime alive; free it before the state. Local. */
MGRID_API mgrid_policy *mgrid_policy_new(mgrid_runtime *rt, mgrid_state *s, const char *name,
                                         mgrid_error *err);
MGRID_API void mgrid_policy_free(mgrid_policy *p);
/* Return which ranks compare the policy's results, as the recipe sets it by agreed = { name =
** "world" }. "world": all ranks. The name of a family: the ranks of each of its groups. A call is
** collective over these ranks. "": none compares, and a call is local. Borrowed from the policy. */
MGRID_API const char *mgrid_policy_agreed(const mgrid_policy *p);
/* Call the policy; args may be NULL if n is 0. Its result stays in the policy until the next call.
**
** A recipe may declare the policy agreed (agreed = { name = "world" } or a family). Then the call
** is collective over the world, or over this rank's group of that family, whose groups share no
** ranks. If results differ, or if ranks call different policies at the same time, all these ranks
** get MGRID_DISAGREE, with the results of two of them; a rank on which the policy failed gets its
** own error instead. An integer and a float of equal value differ. If a rank does not call, or
** passes p NULL, the other ranks wait until the backend's timeout, and MGRID_TIMED_OUT names it. */
MGRID_API mgrid_status mgrid_policy_call(mgrid_policy *p, size_t n, const mgrid_arg *args,
                                         mgrid_error *err);

/* Read the result by path: NULL or "" is the whole result, "lr" the value of that key,
** "layers[0].first" a value further inside. Lists count from 0, as everywhere in C; write a key
** that is not a name as ["a key"]. *result (MGRID_ARG_INIT) gets the value as `kind`:
**     mgrid_arg rates = MGRID_ARG_INIT;
**     mgrid_policy_result(p, "rates", MGRID_IS_NUMBERS, &rates, &e);
** and then has rates.as.numbers.n and rates.as.numbers.at. MGRID_BAD_VALUE for a value of another
** kind, with the policy, the path and both kinds. An integer is also a number, and a number without
** a fraction is also an integer, alone and in lists; {} is also an empty list. MGRID_IS_NONE takes
** a value of any kind; if there is none at the path, the kind of *result is MGRID_IS_NONE. In a
** table, text keys are sorted by their bytes, and other keys are left out. MGRID_IS_JSON takes a
** value of any kind as text, with sorted keys. After an error *result is as MGRID_ARG_INIT. What
** *result points to is borrowed until the next call; JSON until the next read. */
MGRID_API mgrid_status mgrid_policy_result(mgrid_policy *p, const char *path, mgrid_kind kind,
                                           mgrid_arg *result, mgrid_error *err);

/* --------------------------------------------------- functions of the host
** A recipe may call a C function of its host by name, rack_of(rank): in build, in queries and in
** policies. Such a function is pure: its answer depends only on its arguments and its version, so
** it is the same on every rank. A plan has the name and the version of each function that the text
** of its recipe names. They are printed ("function rack_of = 2") and part of the digest. If the
** hosts of two ranks have different versions, every rank gets MGRID_DISAGREE and nothing is
** created. The command has no functions of a host, but shows the plans that a host saves
** (mgrid_plan_save).
**     mgrid_status rack_of(void *ud, size_t n, const mgrid_arg *args,
**                          mgrid_arg *result, mgrid_error *err) {
**       if (n != 1 || args->kind != MGRID_IS_INTEGER) return MGRID_BAD_VALUE;
**       *result = mgrid_arg_integer(NULL, args->as.integer / 8);
**       return MGRID_OK;
**     }
**     mgrid_function f = mgrid_function_of("rack_of", "2", rack_of, NULL);
**     mgrid_runtime_function(rt, &f, &e);  // then mgrid_runtime_load */

/* Answer a call with n arguments, which have no names. They are plain values: a list is
** MGRID_IS_INTEGERS, _NUMBERS or _LIST, an empty table MGRID_IS_TABLE. Set *result, which is
** MGRID_IS_NONE before; it is copied after the return, so keep the data to which it points until
** the next call.
**
** On failure return a status, and fill in *err if there is more to say. The recipe gets the error,
** with its own line; the host gets the status if it is of the 100s or 300s, else MGRID_REFUSED. Do
** not call moongrid with this runtime, its policies or its states, and do not leave the function by
** longjmp or a C++ exception (MGRID_CAUGHT of moongrid_cpp.h ends it). */
typedef mgrid_status mgrid_call_fn(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                                   mgrid_error *err);

struct mgrid_function {
  size_t size;      /* sizeof(mgrid_function) */
  size_t arg_size;  /* sizeof(mgrid_arg); 0: that of the library */
  const char *name; /* of the form of a family's name, and not a word that recipes or Lua have */
  /* one line of text; change it with anything that changes an answer: code, or a table behind it */
  const char *version;
  mgrid_call_fn *call;
  void *ud;     /* first argument of call */
  int64_t work; /* instructions that the recipe's budget is charged for a call; 0: 100 */
};
#define MGRID_FUNCTION_INIT \
  { sizeof(mgrid_function), sizeof(mgrid_arg), NULL, NULL, NULL, NULL, 0 }

MGRID_INLINE mgrid_function mgrid_function_of(const char *name, const char *version,
                                              mgrid_call_fn *call, void *ud) {
  mgrid_function f = MGRID_FUNCTION_INIT;
  f.name = name, f.version = version, f.call = call, f.ud = ud;
  return f;
}

/* Let the recipe of this runtime call a function. Call this before the recipe is loaded (later:
** MGRID_NOT_NOW). name and version are copied. ud must outlive the runtime, and each runtime that
** mgrid_reload makes from it, which has the same functions. MGRID_BAD_VALUE for a name or version
** of a wrong form, MGRID_DUPLICATE for a name that is taken. */
MGRID_API mgrid_status mgrid_runtime_function(mgrid_runtime *rt, const mgrid_function *f,
                                              mgrid_error *err);

/* At a step boundary, evaluate the recipe again (its file may have changed; `recipe` NULL: the same
** one) with n arguments, agree, and materialize beside the old state: equal communicators are kept,
** new ones created. args are all the parameters: those of the old plan do not count. change may be
** NULL. mgrid_state_move (moongrid_tensor.h) then plans how tensors move to the new state.
**
** Collective over the state's backend. On success the caller owns *new_s, and mgrid_state_runtime
** returns its runtime. The caller then frees the old policies and state, and the old runtime if the
** caller made it; this destroys the communicators that are no longer used. If any rank fails, every
** rank gets the same error and the old state is untouched: MGRID_DISAGREE if plans differ or only
** some ranks have a plan, the error of rank 0 if no rank has a plan.
**
** For parameters from a file or as C values, call mgrid_runtime_new, mgrid_runtime_load,
** mgrid_runtime_plan or mgrid_runtime_plan_values, and mgrid_materialize with another name over the
** same backend while the old state exists. */
MGRID_API mgrid_status mgrid_reload(const mgrid_runtime *rt, mgrid_state *s, const char *recipe,
                                    size_t n, const char *const *args, mgrid_state **new_s,
                                    mgrid_change *change, mgrid_error *err);

/* Draw a plan: `how` is "text", "svg", "page" for HTML with its own script, or "explain" for words.
** `options`: NULL for none, or a JSON object, as
**     {"families": ["tp", "dp"], "all": true, "rank": 5, "columns": 80, "unicode": true, "color": true, "most": 4096}
** families: draw only these, in this order; all: if `families` is not given, draw every family, but
** of families with equal groups only the first (with neither, text has the grids, and all groups
** below them, and SVG has no panels); rank: 0 to world - 1; the groups of this rank stand out. Only
** for text: columns: its width, 1 or more (default 80); unicode: draw lines with box characters,
** not ASCII; color: use the colours of a terminal; most: ranks of a grid that are drawn, 1 or more
** (default 4096). A page takes only {"recipe": its title}. An explanation takes families, columns,
** and the recipe of the plan, {"recipe": {"name", "text", "args": ["tp=2"], "file"}}, whose lines
** it then shows. Of a world above 4096 ranks only a part is drawn, and the picture says so. The
** sink gets UTF-8 in pieces; after an error the picture is not whole. Local.
**
** MGRID_UNKNOWN_NAME for another `how`, option or family, MGRID_BAD_VALUE if the options are not a
** JSON object or a value is of another kind, MGRID_OUT_OF_RANGE, MGRID_OUTPUT if the sink stops,
** MGRID_MISSING without libmoongrid_lua. */
MGRID_API mgrid_status mgrid_plan_draw(const mgrid_plan *p, const char *how, const char *options,
                                       mgrid_sink sink, void *ud, mgrid_error *err);

/* Return the names of the bundled recipes, with NULL at the end: without libmoongrid_lua, only
** NULL. */
MGRID_API const char *const *mgrid_recipe_names(void);

#ifdef __cplusplus
}
#endif
#endif
