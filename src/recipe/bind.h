/* SPDX-License-Identifier: MIT
**
** bind.h - grids, families, topologies, plans and states as Lua userdata, and the helpers to make
** them.
**
** Make a userdata in three steps: allocate its box, which is empty; set its metatable; fill in the
** C object. If an error is raised between two steps, __gc can free the userdata. An error message
** starts with the file and line of the innermost Lua function that is not moongrid's own.
*/
#ifndef MGRID_BIND_H
#define MGRID_BIND_H

#include "comm/state.h"

#include <lauxlib.h>
#include <lua.h>

/* ------------------------------------------------------------------ errors */

/* Find the source and line of the innermost running Lua function that is not moongrid's own. False:
** there is none among the last MGRID_FRAMES calls. moongrid's own functions make fewer calls in a
** row. Without this bound, errors at each level of a deep recursion would take time that grows with
** the square of its depth. The search needs no memory, so the allocator may call this function. */
enum { MGRID_FRAMES = 100 };
bool mgrid_lua_caller(lua_State *L, lua_Debug *ar);
/* Push "file:line: " of that function; "" if there is none. */
void mgrid_lua_where(lua_State *L);
/* Raise an error with that position and MGRID_REFUSED, or the given status. Never return. */
int mgrid_lua_raise(lua_State *L, const char *fmt, ...) MGRID_PRINTF(2, 3);
int mgrid_lua_raise_as(lua_State *L, mgrid_status status, const char *fmt, ...) MGRID_PRINTF(3, 4);
int mgrid_lua_raise_error(lua_State *L, const mgrid_error *e);
/* Raise an error with the position `where`, "file:line: " or "". */
int mgrid_lua_raise_at(lua_State *L, const char *where, mgrid_status status, const char *message);
/* Raise an error of a runtime. If *e has a line of the recipe, its message starts with the position
** in the recipe already; else put the position in the script before it. */
int mgrid_lua_raise_runtime(lua_State *L, const mgrid_error *e);
int mgrid_lua_oom(lua_State *L);
/* Return an error as values: push nil, message, status, and return 3. If ranks are missing, also
** push { n, ranks, seconds, call }, and return 4. This is for failures of the job, such as a lost
** rank; mistakes of the program are raised. */
int mgrid_lua_failure(lua_State *L, const mgrid_error *e);
/* If status is MGRID_OK, push true and return 1; else return mgrid_lua_failure(L, e). */
int mgrid_lua_done(lua_State *L, mgrid_status status, const mgrid_error *e);
/* If there is an argument i and it is nil or false, this rank has failed: set *e to the message at
** i + 1 and the status at i + 2. `call` is the name of the calling method, for messages. */
void mgrid_lua_read_failure(lua_State *L, int i, const char *call, mgrid_error *e);
/* Raise that `name` is unknown. The message also gives the nearest of the n known names, and lists
** them. */
int mgrid_lua_unknown(lua_State *L, const char *what, const char *name, const char *const *known,
                      size_t n);
/* Make room for n more values. If there is none, raise "out of memory" (luaL_checkstack would say
** stack overflow). */
void mgrid_lua_stack(lua_State *L, int n);
/* Never inline this function, because it has an mgrid_error, which is large. Inlined, the error
** would lie in the caller's frame while the caller runs functions of the recipe, and recipes can
** nest such calls until the C stack is full. */
#define MGRID_APART __attribute__((noinline))
/* Call the function `question` of lua/prelude/hints.lua. Its arguments are the top `given` values
** of the stack, which its first `answers` results replace. */
void mgrid_lua_hint(lua_State *L, const char *question, int given, int answers);
/* Raise the error about x[1], because an object x of this class is not a list, or about `for r in
** x`, because it is not an iterator. The message says how to visit the contents of x. */
int mgrid_lua_no_list(lua_State *L, const char *class);
int mgrid_lua_no_iterator(lua_State *L, const char *class);
/* The message handler of a call into a recipe. It appends a hint to a message that hints.lua knows.
** An error that is not a text, and Lua's "C stack overflow", become a message with a position.
** budget.c */
int mgrid_lua_message(lua_State *L);

/* -------------------------------------------------- the budget of a recipe */

/* Charge work done in C, counted as instructions of Lua. Raise when the budget is exhausted. Do
** nothing in a Lua state without a budget, such as a host's own. budget.c */
void mgrid_lua_charge(lua_State *L, int64_t work);
/* Charge `each` for every member of the list at i, and return the length of the list, as lua_rawlen
** does: for a list with holes, an index that has a hole after it. */
size_t mgrid_lua_charge_list(lua_State *L, int i, int64_t each);
/* Charge for finding the nearest to `name` of n names. */
void mgrid_lua_charge_nearest(lua_State *L, const char *name, size_t n);
/* Record the status and text of an error that is about to be raised, for mgrid_budget_verdict, or
** in a host's Lua state for mgrid_lua_status. budget.c */
void mgrid_lua_note(lua_State *L, mgrid_status status, const char *text);
/* In a host's Lua state, return the status of an error whose message a program has caught.
** MGRID_OK: the message does not end with the text that mgrid_lua_note has recorded last. */
mgrid_status mgrid_lua_status(lua_State *L, const char *message);
/* Send a text that a recipe prints to the host's log, after "file:line: ". Cut a text after 800
** bytes. After 1000 texts in one call, say once that the rest is left out. */
void mgrid_lua_say(lua_State *L, const char *text);

/* ----------------------------------------------------------------- classes */

/* A class of userdata. Each list ends with a NULL name. A list may be NULL, except `meta` of a
** class that mgrid_lua_open_class registers. The error about an unknown name lists the fields, then
** the methods. */
typedef struct mgrid_lua_class {
  const char *name;               /* of the metatable: "moongrid.Family" */
  const luaL_Reg *fields;         /* each is a function (object) that pushes one value */
  const luaL_Reg *methods, *more; /* more: methods that another file adds */
  /* metamethods. If __index is not among them, the class gets one that finds fields and methods */
  const luaL_Reg *meta;
} mgrid_lua_class;

void mgrid_lua_open_class(lua_State *L, const mgrid_lua_class *c); /* c must outlive L */
/* Push the method `key` of the object, or the value of its field `key`. False: there is none, and
** nothing is pushed. */
bool mgrid_lua_class_get(lua_State *L, const mgrid_lua_class *c, int object, const char *key);
bool mgrid_lua_class_has(const mgrid_lua_class *c, const char *key);
int mgrid_lua_unknown_field(lua_State *L, const mgrid_lua_class *c, const char *key); /* raises */
/* Append to the list on the top the names of an object's fields and methods, then the dims of a
** Grid, or the names of what is in a Topology. */
void mgrid_lua_members(lua_State *L, int object);

/* A State, Group, Job or Buffer can be closed whenever Lua runs: by a finalizer while a method
** allocates, or by a metamethod of a table that the method reads. So a method first reads its
** arguments and makes its results. Then it asks for the object (mgrid_lua_check_...), and asks
** again after each call that may run Lua. Or it becomes an owner of the object (mgrid_state_ref).
** scripts/lint.d/bindings.lua checks this. */

/* Push a userdata with `values` user values that owns a box of `size` bytes, all zero, and return
** the box. The caller stores a C object in the box. __gc, or the end of the runtime, calls
** `release`. */
typedef struct mgrid_lua_held mgrid_lua_held;
void *mgrid_lua_new_box(lua_State *L, size_t size, int values, const char *class,
                        void (*release)(void *box));
void *mgrid_lua_in_box(void *userdata); /* its box; NULL once the box is freed */
/* Return the box of the userdata at i. If its class is another, or the box is freed, return NULL,
** or raise (check). */
void *mgrid_lua_test_box(lua_State *L, int i, const char *class);
void *mgrid_lua_check_box(lua_State *L, int i, const char *class);
int mgrid_lua_free_box(lua_State *L); /* the __gc of all such classes */
/* Return whether Lua's collector has called the running finalizer. If a program has called it, the
** finalizer must free nothing, because a method may be using the object. */
bool mgrid_lua_collected(lua_State *L);
/* Record that the object in a box holds that many bytes. Raise if the recipe then has more memory
** than its limit, even after a garbage collection. */
void mgrid_lua_weigh(lua_State *L, void *box, size_t bytes);
/* Raise if a recipe does not have n times `each` bytes left, which the caller needs next. */
void mgrid_lua_reserve(lua_State *L, int64_t n, size_t each);

/* ------------------------------------------------------- walks through tables */

/* Push a list of the keys of the table at i, and return their number. The order is: numbers,
** strings by bytes, false, true, the rest by type. Every walk through a table whose order could be
** seen uses this list. key_order.c */
lua_Integer mgrid_lua_keys(lua_State *L, int i);
/* One step of a walk through the table at i. The list of its keys is at `keys`; *k is 0 before the
** first step. Push the next key and its value. False: there are no more keys. */
bool mgrid_lua_step(lua_State *L, int i, int keys, lua_Integer *k);
/* Return whether the key at a comes before the key at b. */
bool mgrid_lua_key_before(lua_State *L, int a, int b);
/* Store the string keys of the table at i, in this order and at most `most` of them, in `names`,
** and return their number. The table keeps them alive. */
size_t mgrid_lua_names(lua_State *L, int i, const char **names, size_t most);
/* As lua_next, which has no order. Use this only where the order cannot be seen, for example to
** count members. */
int mgrid_lua_next(lua_State *L, int i);
/* Return the length of the list at i; -1: it has other keys than 1 to n. lua_rawlen will not do,
** because for a table with gaps its answer differs between processes. */
lua_Integer mgrid_lua_length(lua_State *L, int i);
/* Push a list of n values; `push` pushes value i, from 0 on. */
#define MGRID_LUA_LIST(L, n, push) \
  do { \
    lua_createtable(L, (int)(n), 0); \
    for (size_t i = 0; i < (size_t)(n); i++) { \
      push; \
      lua_rawseti(L, -2, (lua_Integer)i + 1); \
    } \
  } while (0)
/* Sort the first n members of the list at `list`, a positive index, by a stable merge sort.
** before(L, a, b) returns whether the value at a comes before the value at b. */
typedef bool mgrid_lua_before(lua_State *L, int a, int b);
void mgrid_lua_sort(lua_State *L, int list, lua_Integer n, mgrid_lua_before *before);

/* --------------------------------------------------- arguments and results */

/* Raise if the table at i has a key that is not one of the n known names. Messages call such a key
** `what`: "option". With `list`, integer keys are allowed, too. */
void mgrid_lua_check_keys(lua_State *L, int i, const char *what, const char *const *known, size_t n,
                          bool list);
/* Raise unless argument i is a table. The message shows the example `such_as`, "{ 2, 4 }". */
void mgrid_lua_check_table(lua_State *L, int i, const char *such_as);
/* Set a field of the table on the top. The string NULL becomes nil. */
void mgrid_lua_set_integer(lua_State *L, const char *key, int64_t value);
void mgrid_lua_set_number(lua_State *L, const char *key, double value);
void mgrid_lua_set_boolean(lua_State *L, const char *key, bool value);
void mgrid_lua_set_string(lua_State *L, const char *key, const char *value);
/* Push a rank, position or coordinate, or nil if it is negative, and return 1. */
int mgrid_lua_push_index(lua_State *L, int64_t i);
/* Return what the value at i is, for messages: "nil", "a number", "a Family". The text is among the
** values that this leaves on the stack. */
const char *mgrid_lua_kind(lua_State *L, int i);
/* As luaL_checkinteger and luaL_optinteger, but refuse text: "2" is not a size, although Lua's own
** functions accept it. */
lua_Integer mgrid_lua_check_integer(lua_State *L, int i);
lua_Integer mgrid_lua_opt_integer(lua_State *L, int i, lua_Integer otherwise);
/* Return the number at i. A NaN is returned without its sign, which differs between processors. */
double mgrid_lua_number(lua_State *L, int i);
/* Return the list of integers at i, and their number in *n. Free it by mgrid_release. May raise. */
int64_t *mgrid_lua_check_integers(lua_State *L, int i, size_t *n);
/* As mgrid_lua_check_integers, for sizes. Each is 1 or more, or fill, which becomes MGRID_FILL. */
int64_t *mgrid_lua_check_sizes(lua_State *L, int i, size_t *n);
void mgrid_lua_push_fill(lua_State *L); /* the value of `fill` */
bool mgrid_lua_is_fill(lua_State *L, int i);
/* Return whether the text at i has no zero byte, which would end it in C. */
bool mgrid_lua_is_whole(lua_State *L, int i);
/* Return the text at i. If it has a zero byte, first replace it by a text that shows the byte, so
** that C does not take the part before the byte for a name. */
const char *mgrid_lua_name(lua_State *L, int i);
/* Return the option `wrap` at i, which is "wrap", a boolean or { wrap = boolean }; nil or no
** argument is false. Raise for other values. */
bool mgrid_lua_check_wrap(lua_State *L, int i);
/* Push the text, and free it in every case. Raise if memory has run out. */
void mgrid_lua_push_text(lua_State *L, mgrid_text *t);
/* Push a list of the lines of a text, without their newlines. Leave out what follows the last
** newline. */
void mgrid_lua_push_lines(lua_State *L, const char *text);

/* ------------------------------------------------- the classes of moongrid */

#define MGRID_LUA_WORLD    "moongrid.World"
#define MGRID_LUA_GRID     "moongrid.Grid"
#define MGRID_LUA_MESH     "moongrid.Mesh"
#define MGRID_LUA_FAMILY   "moongrid.Family"
#define MGRID_LUA_TOPOLOGY "moongrid.Topology"
#define MGRID_LUA_PLAN     "moongrid.Plan"
#define MGRID_LUA_STATE    "moongrid.State"
#define MGRID_LUA_GROUP    "moongrid.Group"
#define MGRID_LUA_KEPT     "moongrid.Kept"
#define MGRID_LUA_JOB      "moongrid.Job"
#define MGRID_LUA_RECIPE   "moongrid.Recipe"

/* The ranks over which a grid may lie: a window, or ranks in another order. */
typedef struct mgrid_lua_world {
  mgrid_window window; /* from the lowest rank to the highest */
  /* the order, as in an mgrid_grid; NULL: the ranks of the window, ascending */
  mgrid_family *order;
} mgrid_lua_world;

/* A family, and the options that it will have in a topology. The user value of a Family is the Grid
** from which it was made, for family:where; nil: there is none. */
typedef struct mgrid_lua_family {
  mgrid_family *f;
  mgrid_choice *choice; /* NULL: none */
} mgrid_lua_family;

/* Push an empty userdata, and return the box for its C object. */
mgrid_lua_world *mgrid_lua_new_world(lua_State *L);
mgrid_grid **mgrid_lua_new_grid(lua_State *L);
/* Push a Family with the options of `like` (NULL: none). */
mgrid_lua_family *mgrid_lua_new_family(lua_State *L, const mgrid_lua_family *like);
/* Push a Family with the options of `like` (NULL: none) and the Grid of the Family at 1. */
mgrid_lua_family *mgrid_lua_derive_family(lua_State *L, const mgrid_lua_family *like);
/* The user values of a Plan that a recipe made: the Recipe, its parameters as texts (module.c), and
** the lines of its families. */
mgrid_plan **mgrid_lua_new_plan(lua_State *L);
/* Push an empty State, and return where to store its state. owned: the State owns this state */
mgrid_state **mgrid_lua_new_state(lua_State *L, bool owned);
/* Keep the Recipe of a Plan with the State on the top, which a job has made from the Plan. */
void mgrid_lua_keep_recipe(lua_State *L, int plan);
/* Push the Recipe of the State at `state`, or another value if there is none. */
void mgrid_lua_push_recipe(lua_State *L, int state);
mgrid_backend **mgrid_lua_new_job(lua_State *L);
mgrid_topology **mgrid_lua_new_topology(lua_State *L);

mgrid_lua_world *mgrid_lua_check_world(lua_State *L, int i);
/* Return the World that is the first argument of grid and topology. The error for a number of
** ranks, a usual mistake, says how to make a World. */
mgrid_lua_world *mgrid_lua_world_argument(lua_State *L);
mgrid_grid *mgrid_lua_check_grid(lua_State *L, int i);
/* Raise if a grid cannot have n dims. grid_words.c */
void mgrid_lua_check_ndims(lua_State *L, size_t n);
/* Raise that the grid has no such dim. grid_words.c */
int mgrid_lua_unknown_dim(lua_State *L, const mgrid_grid *g, const char *name);
mgrid_lua_family *mgrid_lua_check_family(lua_State *L, int i);
mgrid_topology *mgrid_lua_check_topology(lua_State *L, int i);
mgrid_plan *mgrid_lua_check_plan(lua_State *L, int i);
mgrid_state *mgrid_lua_check_state(lua_State *L, int i);
mgrid_backend *mgrid_lua_check_job(lua_State *L, int i); /* raises if the job is closed */

/* ------------------------------------------------ grids, families, options */

/* Read a table such as { pp = 0 } at i: set coords[g->n]. A dim that is not in the table gets the
** coordinate `absent`. If `absent` is -1 (any coordinate), -1 in the table is the last coordinate
** of the dim, -2 the one before, and so on. May raise. */
void mgrid_lua_check_coords(lua_State *L, int i, const mgrid_grid *g, int64_t absent,
                            int64_t *coords);
/* Finish making a family in this box: raise the error, or count the family's memory and return
** 1. */
int mgrid_lua_made_family(lua_State *L, mgrid_lua_family *box, const mgrid_error *e);
/* Charge the recipe's budget for the explicit lists of the chosen dims, which cost memory and time
** for each rank. grid_words.c */
void mgrid_lua_charge_listed(lua_State *L, const mgrid_grid *g, const mgrid_chosen *c);
/* Charge the budget for the lists of a family's groups. family_words.c */
void mgrid_lua_charge_lists(lua_State *L, const mgrid_family *f);
/* Charge the budget for a walk through the parts of a family. A rule of modes costs nothing.
** family_words.c */
void mgrid_lua_charge_family(lua_State *L, const mgrid_family *f);
/* Write the line about element i of `of`. Return the line's length, as snprintf does. */
enum { MGRID_LUA_COLUMNS = 78 };
typedef size_t mgrid_lua_line(lua_State *L, const void *of, size_t i,
                              char line[MGRID_LUA_COLUMNS + 1]);
/* Append the lines about n elements to the text on the top, at most 20 lines. family_words.c */
void mgrid_lua_add_lines(lua_State *L, size_t n, const void *of, mgrid_lua_line *write);
/* Append the lines about the families of a topology or plan. family_words.c */
void mgrid_lua_add_families(lua_State *L, const mgrid_content *c);
/* Push the list of the ranks of a group, and charge the budget for it. family_words.c */
void mgrid_lua_push_ranks(lua_State *L, const mgrid_family *f, int64_t group);
/* In a host's own Lua, make tostring of the list on the top "{0, 8, 16}" instead of an address. In
** recipes, print shows what is in a list. family_words.c */
void mgrid_lua_printed_list(lua_State *L);
/* Read the options in the table at i, on top of those of a family (NULL: none). May raise.
** options_words.c */
void mgrid_lua_check_options(lua_State *L, int i, const mgrid_choice *on, mgrid_choice **out);
/* choose(topology, family, option, value): set one option, or a field of `nccl`, on top of the
** family's options. The value may be text, as on a command line. May raise. options_words.c */
int mgrid_lua_choose(lua_State *L);

/* family_cut.c: family:pick, family:map */
int mgrid_lua_family_pick(lua_State *L);
int mgrid_lua_family_map(lua_State *L);
int mgrid_lua_some_groups(lua_State *L);         /* family:groups{0, 3}. family_cut.c */
extern const luaL_Reg mgrid_lua_family_pieces[]; /* other methods of Family in family_cut.c */

/* ------------------------------------------------------- topologies, plans */

/* concurrent(topology, names | lists of names), for the prelude. A third argument is the position
** for errors, "file:line: ". topology_words.c */
int mgrid_lua_concurrent_at(lua_State *L);

/* From now on, record for each new family the line of the recipe that makes it, and the family from
** which it is made. lines.c */
void mgrid_lua_trail_begin(lua_State *L);
/* Record these for the new family on the top, if mgrid_lua_trail_begin was called. */
void mgrid_lua_trail_add(lua_State *L);
/* Push { name = list of "source:line" } for the families of a topology. */
void mgrid_lua_trail_push(lua_State *L, int topology);

/* ---------------------------------------------------- states, groups, jobs */

/* Make a dry state of the plan for a rank, and store it in the empty State on the top. Lua's
** collector frees the state. After a failure the State stays empty, and *err says why. */
void mgrid_lua_keep_dry(lua_State *L, mgrid_state **state, const mgrid_plan *p, int64_t rank,
                        mgrid_error *err);
/* Close the State at i: free its state if the State is an owner. Its groups raise from now on. */
void mgrid_lua_close_state(lua_State *L, int i);
/* Return the State at 1. Raise if it belongs to a query or policy, which cannot communicate. */
mgrid_state *mgrid_lua_check_host_state(lua_State *L);
/* Push the Group of g, a group of the State at `state`, and return 1. The same g gives the same
** Group; NULL gives nil. */
int mgrid_lua_push_group_of(lua_State *L, int state, const mgrid_group *g);
/* Return the group at i. NULL: it is not a group, or its state is closed. */
const mgrid_group *mgrid_lua_to_group(lua_State *L, int i);
const mgrid_group *mgrid_lua_check_group(lua_State *L, int i); /* raises if its state is closed */
/* Return the group at i for a collective over it. Raise for a group of the State of a query or
** policy, which one rank may ask alone, so that a collective would hang. Raise also for a group
** without a backend. */
const mgrid_group *mgrid_lua_check_group_of_host(lua_State *L, int i);
/* Push the Mesh of a rank: a table of its coordinates in the grid, with the metatable at
** `metatable`. Push nil if the rank is outside of the grid. mesh_words.c */
void mgrid_lua_push_mesh(lua_State *L, const mgrid_grid *g, int64_t rank, int metatable);
void mgrid_lua_push_mesh_metatable(lua_State *L, const mgrid_grid *g, int64_t rank);

int mgrid_lua_group_segment(lua_State *L); /* group:segment. family_cut.c */
/* group_words.c: state:suspend, state:resume, state:held_memory */
int mgrid_lua_state_suspend(lua_State *L);
int mgrid_lua_state_resume(lua_State *L);
int mgrid_lua_state_held_memory(lua_State *L);

extern const luaL_Reg mgrid_lua_group_use[], mgrid_lua_job_use[]; /* collectives_words.c */
/* no family may have the name of a field or method of State */
extern const mgrid_lua_class mgrid_lua_state_class;

/* ------------------------------------------------------------- all classes */

/* Open Lua's libraries and moongrid in a Lua state of our own, and push the table of moongrid.
** module.c */
void mgrid_lua_open_whole(lua_State *L);
/* Register the classes, and put their constructors into the table on the top. */
void mgrid_lua_open_world(lua_State *L);    /* world */
void mgrid_lua_open_grid(lua_State *L);     /* grid, fill */
void mgrid_lua_open_family(lua_State *L);   /* union, zip, same */
void mgrid_lua_open_options(lua_State *L);  /* options; not for recipes */
void mgrid_lua_open_topology(lua_State *L); /* topology, concurrent */
void mgrid_lua_open_plan(lua_State *L);     /* plan */
/* no constructor: plan:dry and job:materialize make states */
void mgrid_lua_open_state(lua_State *L);
/* Only for the module `moongrid`, not for recipes: */
void mgrid_lua_open_saved(lua_State *L); /* saved, is_saved */
void mgrid_lua_open_use(lua_State *L);   /* Buffer */
void mgrid_lua_open_job(lua_State *L);   /* mpi and its like */
/* pictures, a table that loads lua/pictures when a field is first read */
void mgrid_lua_open_pictures(lua_State *L);

#endif
