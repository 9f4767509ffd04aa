/* SPDX-License-Identifier: MIT
**
** step_words.h - what the files of this folder share: s, its groups, members and grids.
*/
#ifndef MGRID_STEP_WORDS_H
#define MGRID_STEP_WORDS_H

#include "recipe/bind.h"
#include "step/price.h"

#define STEP_LUA_STEP  "moongrid.Step"
#define STEP_LUA_GROUP "moongrid.StepGroup"
#define STEP_LUA_PEER  "moongrid.StepPeer"
#define STEP_LUA_GRID  "moongrid.StepGrid"
#define STEP_LUA_EVENT "moongrid.StepEvent"

/* An anchor stands for one evaluation: all objects of the evaluation have it as user value 1. A
** recipe may keep objects after the evaluation. Then their anchor has no writer, and all uses raise
** an error, except the position of a member and tostring. */
typedef struct step_anchor {
  step_writer *writer; /* NULL: the evaluation is over */
  uint64_t used;       /* a bit for each stream that has an operation so far */
} step_anchor;

typedef struct step_word_step {
  step_anchor *anchor;
  int stream;
} step_word_step;

typedef struct step_word_group {
  step_anchor *anchor;
  int32_t entry, nth, slot;
  int64_t size;
} step_word_group;

typedef struct step_word_peer { /* a member, known by its position */
  step_anchor *anchor;
  int32_t entry, nth;
  int64_t position;
} step_word_peer;

typedef struct step_word_event {
  step_anchor *anchor;
  int32_t node;
} step_word_event;

/* step_words.c. Return the object s at i, and its writer. Raise if the evaluation is over. */
step_word_step *mgrid_step_lua_check(lua_State *L, int i, step_writer **w);
/* Register the classes of the objects. */
void mgrid_step_lua_open(lua_State *L);
/* Push the object s of an evaluation with this writer; keep its anchor in the registry at `key`. */
void mgrid_step_lua_push(lua_State *L, step_writer *w, const void *key);

/* operation_words.c: push the method of s for an operation; false: no operation has this name */
bool mgrid_step_lua_push_operation(lua_State *L, const char *key);

/* evaluate.c: the function `serve` of mgrid_lua_module */
mgrid_status mgrid_step_lua_serve(struct mgrid_runtime *rt, void *request, mgrid_error *err);
/* programs.c: plan:step() and the class Programs; times.c: methods of State */
void mgrid_step_lua_open_host(lua_State *L);
extern const luaL_Reg mgrid_step_lua_plan_methods[];
extern const luaL_Reg mgrid_step_lua_state_methods[];
/* push a Programs; the caller sets its step through the returned pointer */
mgrid_step **mgrid_step_lua_new(lua_State *L);

/* Return the rules that the text at i names, "nccl" or "mpi"; nil: NCCL. */
step_rules mgrid_step_lua_rules(lua_State *L, int i);

/* times.c */
int mgrid_step_lua_price(lua_State *L, const mgrid_step *s);

extern const mgrid_lua_class mgrid_step_lua_timeline_class;

#endif
