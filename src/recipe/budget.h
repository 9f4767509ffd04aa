/* SPDX-License-Identifier: MIT
**
** budget.h - limits on the memory, instructions and time of a recipe. A budget is the `ud` of its
** Lua state's allocator. Instructions are counted identically on every rank, except for the last
** check of the count; the clock may stop only one rank. A pcall in the recipe does not help: once a
** budget is spent, every further instruction raises again. The count of memory includes the Lua
** heap and the contents of userdata (bind.c).
*/
#ifndef MGRID_BUDGET_H
#define MGRID_BUDGET_H

#include "recipe/bind.h"

typedef struct mgrid_lua_budget {
  mgrid_limits limits;
  mgrid_hooks hooks;
  lua_State *L;         /* whose heap it is */
  mgrid_lua_held *held; /* the C objects of its userdata, a list (bind.c) */
  size_t used;          /* bytes of the Lua heap and of these objects */
  size_t swept;         /* the same after the last collection between two calls */
  mgrid_budget work;    /* of this call: instructions, and processor time */
  int step;             /* instructions until the next check of the clock */
  bool large;           /* a large block was requested, so one instruction may take long */
  bool long_text;       /* a text was refused for its length */
  int said;             /* lines that the recipe printed in this call */
  bool over;            /* exhausted: every further instruction raises `verdict` */
  bool placed;          /* the verdict has the position of the recipe */
  bool no_memory;       /* memory ran out in this call, even after a collection: */
  bool starved; /* not at the limit, but because the process or the host's allocator has no more */
  char place[80];      /* "file:line: " of the recipe when memory was refused; "": none of it ran */
  size_t refused;      /* bytes of the last block refused; Lua collects garbage and asks again */
  mgrid_status status; /* of the error that C raised last (mgrid_lua_note) */
  size_t length;       /* of its text in bytes; in a message a position may precede it */
  uint64_t text;       /* hash of its text */
  /* the line of a recipe and a caret, two lines that belong to this error; or "" */
  char source[200];
  char verdict[320]; /* message of the limit that was hit */
} mgrid_lua_budget;

void *mgrid_budget_alloc(void *budget, void *ptr, size_t osize, size_t nsize); /* a lua_Alloc */
/* Start counting for one protected call, which may take that many seconds, less those spent; stop
** when it has returned. */
void mgrid_budget_start(lua_State *L, mgrid_lua_budget *b, double seconds, double spent);
void mgrid_budget_stop(mgrid_lua_budget *b);
/* After a stop, continue with the same call, for its result, in its remaining time. */
void mgrid_budget_go_on(mgrid_lua_budget *b);
/* Return the error if the budget was spent in that part. */
mgrid_status mgrid_budget_after(const mgrid_lua_budget *b, mgrid_error *err);
/* Spend that much work, without raising; false: the budget is spent. */
bool mgrid_budget_spend(mgrid_lua_budget *b, int64_t work);
/* Return what work in C is charged to; NULL: it is for a host. Afterwards mgrid_lua_charge(L, 0)
** raises if that is exhausted. */
mgrid_budget *mgrid_lua_work(lua_State *L);
/* Return the budget of a Lua state; NULL: it is a host's. */
mgrid_lua_budget *mgrid_budget_of(lua_State *L);
/* Return whether that many more bytes are available. False: garbage was collected, without effect;
** mgrid_budget_refuse raises. */
bool mgrid_budget_has(mgrid_lua_budget *b, size_t bytes);
int mgrid_budget_refuse(lua_State *L, mgrid_lua_budget *b);
void mgrid_budget_lack(mgrid_lua_budget *b); /* the same, but raises nothing */
/* Release the C objects that finalizers left, after lua_close. */
void mgrid_budget_release(mgrid_lua_budget *b);
/* Record where the host's file lies, which Lua knows by a name without its folder: the host's name
** for it, and its folder with the slash. lines.c */
void mgrid_budget_home(lua_State *L, const char *name, const char *path, const char *folder);
/* Record that it lies nowhere. */
void mgrid_budget_no_home(lua_State *L);
/* Keep the home, so that it can be restored later, which needs no memory. */
void mgrid_budget_keep_home(lua_State *L);
void mgrid_budget_back_home(lua_State *L);
/* Write the path by which the host knows a file, whose name in Lua has len bytes; of a long path
** the end. Needs no memory. */
void mgrid_budget_path(lua_State *L, const char *name, size_t len, char *path, size_t room);
/* For a text "file:line: ..." from Lua: return the bytes of "file", and write the path by which the
** host knows it; 0: the text starts otherwise. Needs no memory. */
enum { MGRID_PLACE_MAX = 200 };
size_t mgrid_budget_place(lua_State *L, const char *text, char path[MGRID_PLACE_MAX], int *line);
/* Fill err->file and err->line from the message, and put that path into it. Needs no memory. */
void mgrid_budget_position(lua_State *L, mgrid_error *err);
/* Note this message about the text of a recipe, and the line of the text that the host is to see
** below it. */
void mgrid_budget_quote(lua_State *L, const char *message, const char *source);
/* How deeply brackets and blocks of a recipe, and calls between C and Lua, may nest: Lua counts
** them, so it is the same in every process. */
#define MGRID_NO_LEVEL \
  "the recipe nests too deep: brackets, blocks, .. in a row and functions called back have 200 " \
  "levels"
/* Return whether the error on the top is that one, in any wording. */
bool mgrid_budget_no_level(lua_State *L);
/* Return the status and fill the error of a call: lua_pcall returned `rc`, with the error on the
** top of the stack. */
mgrid_status mgrid_budget_verdict(lua_State *L, const mgrid_lua_budget *b, int rc,
                                  mgrid_error *err);

#endif
