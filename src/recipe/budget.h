/* SPDX-License-Identifier: MIT
**
** budget.h - limits on the memory, instructions and time of a recipe. A budget is the `ud` of the
** allocator of its Lua state. Instructions are counted equally on every rank, except for the last
** check of the count; the clock may stop a single rank. A pcall in the recipe does not help: once a
** budget is exhausted, every further instruction raises again. Memory is the Lua heap and the
** contents of userdata (bind.c).
*/
#ifndef MGRID_BUDGET_H
#define MGRID_BUDGET_H

#include "recipe/bind.h"

typedef struct mgrid_lua_budget {
  mgrid_limits limits;
  mgrid_hooks hooks;
  lua_State *L;         /* the Lua state whose heap it is */
  mgrid_lua_held *held; /* the C objects of its userdata, as a list (bind.c) */
  size_t used;          /* bytes of the Lua heap and of these objects */
  size_t swept;         /* `used` after the last collection between two calls */
  mgrid_budget work;    /* for this call: instructions, and processor time */
  int step;             /* instructions until the next check of the clock */
  bool large;           /* a large block was asked for, so one instruction may take long */
  bool long_text;       /* a text was refused for its length */
  int said;             /* lines that the recipe has printed in this call */
  bool over;            /* exhausted, so every further instruction raises `verdict` */
  bool placed;          /* the verdict has a position in the recipe */
  bool no_memory;       /* memory ran out in this call, even after a collection */
  /* and not because of the limit: the process, or the host's allocator, has no more */
  bool starved;
  /* "file:line: " in the recipe when memory was refused; "": the recipe did not run */
  char place[80];
  /* bytes of the last block that was refused. Lua then collects garbage and asks again */
  size_t refused;
  mgrid_status status; /* of the last error that C raised (mgrid_lua_note) */
  size_t length;       /* bytes of this error's text; in a message a position may precede it */
  uint64_t text;       /* hash of this error's text */
  /* two lines that belong to this error: a line of the recipe, and a caret; or "" */
  char source[200];
  char verdict[320]; /* message of the limit that was reached */
} mgrid_lua_budget;

void *mgrid_budget_alloc(void *budget, void *ptr, size_t osize, size_t nsize); /* a lua_Alloc */
/* Start counting for one protected call. It may take that many seconds, less those already spent.
** Stop when it has returned. */
void mgrid_budget_start(lua_State *L, mgrid_lua_budget *b, double seconds, double spent);
void mgrid_budget_stop(mgrid_lua_budget *b);
/* After a stop, go on with the same call, to get its result, in the time that it has left. */
void mgrid_budget_go_on(mgrid_lua_budget *b);
/* Return the error if the budget was exhausted in this part. */
mgrid_status mgrid_budget_after(const mgrid_lua_budget *b, mgrid_error *err);
/* Charge work without raising. False: the budget is exhausted. */
bool mgrid_budget_spend(mgrid_lua_budget *b, int64_t work);
/* Return the budget that work in C is charged to; NULL: the work is for a host. If it is exhausted
** afterwards, mgrid_lua_charge(L, 0) raises. */
mgrid_budget *mgrid_lua_work(lua_State *L);
/* Return the budget of a Lua state. NULL: the state is a host's. */
mgrid_lua_budget *mgrid_budget_of(lua_State *L);
/* Return whether that many more bytes are available. False: not even after a garbage collection;
** then mgrid_budget_refuse raises. */
bool mgrid_budget_has(mgrid_lua_budget *b, size_t bytes);
int mgrid_budget_refuse(lua_State *L, mgrid_lua_budget *b);
void mgrid_budget_lack(mgrid_lua_budget *b); /* as mgrid_budget_refuse, but raises nothing */
/* After lua_close, release the C objects that finalizers have left. */
void mgrid_budget_release(mgrid_lua_budget *b);
/* Record where the host's file lies, because Lua knows it by a name without its folder. `path` is
** the host's name for it, `folder` its folder with the slash. lines.c */
void mgrid_budget_home(lua_State *L, const char *name, const char *path, const char *folder);
/* Record that the recipe lies in no folder. */
void mgrid_budget_no_home(lua_State *L);
/* Keep this record, so that it can be restored later without memory. */
void mgrid_budget_keep_home(lua_State *L);
void mgrid_budget_back_home(lua_State *L);
/* Write the path by which the host knows a file. Its name in Lua has len bytes. Of a long path
** write the end. This needs no memory. */
void mgrid_budget_path(lua_State *L, const char *name, size_t len, char *path, size_t room);
/* For a text "file:line: ..." from Lua, write the path by which the host knows the file. Return how
** many bytes "file" has; 0: the text does not start so. This needs no memory. */
enum { MGRID_PLACE_MAX = 200 };
size_t mgrid_budget_place(lua_State *L, const char *text, char path[MGRID_PLACE_MAX], int *line);
/* Fill err->file and err->line from the message, and put the host's path into the message. This
** needs no memory. */
void mgrid_budget_position(lua_State *L, mgrid_error *err);
/* Note a message about the text of a recipe, and the line of the text that the host is to see below
** the message. */
void mgrid_budget_quote(lua_State *L, const char *message, const char *source);
/* How deeply brackets and blocks of a recipe, and calls between C and Lua, may nest. Lua counts
** these levels, so the limit is the same in every process. */
#define MGRID_NO_LEVEL \
  "the recipe nests too deep: brackets, blocks, .. in a row and functions called back have 200 " \
  "levels"
/* Return whether the error on the top is the one about levels, in any wording. */
bool mgrid_budget_no_level(lua_State *L);
/* Return the status of a call, and fill *err. lua_pcall returned `rc`, with the error on the top of
** the stack. */
mgrid_status mgrid_budget_verdict(lua_State *L, const mgrid_lua_budget *b, int rc,
                                  mgrid_error *err);

#endif
