/* SPDX-License-Identifier: MIT
**
** budget.h - limits on the memory, instructions and time of a recipe. A budget is the `ud` of the
** allocator of its Lua state. Every rank counts the same instructions, but ranks check the count at
** different moments, and the clock may stop a single rank. A recipe cannot go on by pcall: once a
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
  double sampled;       /* mgrid_now() at a check at most 10 ms ago */
  double processor;     /* mgrid_processor_now() then */
  bool large;           /* a large block was asked for, so one instruction may take long */
  bool long_text;       /* a text was refused for its length */
  int said;             /* lines that the recipe has printed in this call */
  bool over;            /* exhausted, so every further instruction raises `verdict` */
  bool placed;          /* the verdict has a position in the recipe */
  bool no_memory;       /* memory ran out in this call, even after a collection */
  /* memory ran out below the limit: the process, or the host's allocator, has no more */
  bool starved;
  /* "file:line: " in the recipe when memory was refused; "": the recipe did not run */
  char place[80];
  /* bytes of the last block that was refused; Lua then collects garbage and asks again */
  size_t refused;
  mgrid_status status; /* of the last error that C raised (mgrid_lua_note) */
  size_t length;       /* bytes of this error's text; in a message a position may precede it */
  uint64_t text;       /* hash of this error's text */
  char source[200];  /* the line of the recipe to which it refers, and a line with a caret; or "" */
  char verdict[320]; /* message of the limit that was reached */
} mgrid_lua_budget;

void *mgrid_budget_alloc(void *budget, void *ptr, size_t osize, size_t nsize); /* a lua_Alloc */
/* Start counting for a protected call. It may take `seconds` of processor time, of which `spent`
** are used already. */
void mgrid_budget_start(lua_State *L, mgrid_lua_budget *b, double seconds, double spent);
/* Stop counting when the call has returned. */
void mgrid_budget_stop(mgrid_lua_budget *b);
/* After mgrid_budget_stop, count again, for the work of reading the call's result. This takes from
** the time that the call has left. */
void mgrid_budget_go_on(mgrid_lua_budget *b);
/* Return the error if reading the result has exhausted the budget. */
mgrid_status mgrid_budget_after(const mgrid_lua_budget *b, mgrid_error *err);
/* Charge work without raising. False: the budget is exhausted. */
bool mgrid_budget_spend(mgrid_lua_budget *b, int64_t work);
/* Return the budget to which a C function charges its work; NULL: the Lua state is a host's. After
** the function, mgrid_lua_charge(L, 0) raises if the budget is exhausted. */
mgrid_budget *mgrid_lua_work(lua_State *L);
/* Return the budget of a Lua state. NULL: the state is a host's. */
mgrid_lua_budget *mgrid_budget_of(lua_State *L);
/* Return whether the recipe may take so many more bytes, if necessary after a garbage
** collection. */
bool mgrid_budget_has(mgrid_lua_budget *b, size_t bytes);
/* Record that the memory of the recipe ran out, and raise that. */
int mgrid_budget_refuse(lua_State *L, mgrid_lua_budget *b);
void mgrid_budget_lack(mgrid_lua_budget *b); /* record it without raising */
/* After lua_close, release the C objects whose finalizers Lua has skipped. */
void mgrid_budget_release(mgrid_lua_budget *b);
/* Record the file that the host has named: its name in Lua, which is without its folder; the path
** that the host has given; the folder of the file, with a slash at its end. lines.c */
void mgrid_budget_home(lua_State *L, const char *name, const char *path, const char *folder);
/* Record that the recipe lies in no folder. */
void mgrid_budget_no_home(lua_State *L);
/* Save this record, so that mgrid_budget_back_home can restore it without memory. */
void mgrid_budget_keep_home(lua_State *L);
void mgrid_budget_back_home(lua_State *L);
/* Write the path by which the host knows the file that Lua calls `name`, of len bytes. Of a long
** path write the end. This needs no memory. */
void mgrid_budget_path(lua_State *L, const char *name, size_t len, char *path, size_t room);
/* If a text from Lua starts with "file:line: ", write the line, and the path by which the host
** knows the file, and return the length of "file". Else return 0. This needs no memory. */
enum { MGRID_PLACE_MAX = 200 };
size_t mgrid_budget_place(lua_State *L, const char *text, char path[MGRID_PLACE_MAX], int *line);
/* If the message starts with a position, fill err->file and err->line from it, and put the host's
** path into the message. This needs no memory. */
void mgrid_budget_position(lua_State *L, mgrid_error *err);
/* Note an error about the text of a recipe, and the lines that the host sees below the message: the
** line of the recipe, and a caret. */
void mgrid_budget_quote(lua_State *L, const char *message, const char *source);
/* The error of a recipe whose brackets, blocks, or calls between C and Lua nest too deeply. Lua
** counts these levels, so the limit is the same in every process. */
#define MGRID_NO_LEVEL \
  "the recipe nests too deep: brackets, blocks, .. in a row, and calls through pcall, map and " \
  "the " \
  "like have at most 200 levels"
/* Return whether the error on the top is this one, in Lua's words or ours. */
bool mgrid_budget_no_level(lua_State *L);
/* Return the status of a call for which lua_pcall returned `rc`, and fill *err. The error of Lua is
** on the top. */
mgrid_status mgrid_budget_verdict(lua_State *L, const mgrid_lua_budget *b, int rc,
                                  mgrid_error *err);

#endif
