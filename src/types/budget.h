/* SPDX-License-Identifier: MIT
**
** budget.h - limits on the memory, instructions and time of a recipe. A budget is the `ud` of its Lua state's
** allocator. Instructions are counted the same on every rank, so all ranks stop at the same place; the
** clock may stop one rank alone. A pcall in the recipe does not help: once a budget is spent, every
** further instruction raises again.
*/
#ifndef MGRID_BUDGET_H
#define MGRID_BUDGET_H

#include "types/bind.h"

typedef struct mgrid_budget {
  mgrid_limits limits;
  mgrid_hooks  hooks;
  size_t       used;         /* bytes of the Lua heap */
  uint64_t     count;        /* instructions of this call */
  double       started;      /* mgrid_now() when this call began */
  bool         over;         /* spent: every further instruction raises `verdict` */
  bool         no_memory;    /* there was none in this call, even after a collection: */
  bool         starved;      /* not for the limit, but because the process or the host's allocator has no more */
  size_t       refused;      /* bytes of the last block refused; Lua collects garbage and asks again */
  mgrid_status status;       /* of the error that C raised last (mgrid_lua_note) */
  size_t       length;       /* of its text in bytes; in a message a position may precede it */
  uint64_t     text;         /* hash of its text */
  char         verdict[256]; /* message of the limit that was hit */
} mgrid_budget;

void *mgrid_budget_alloc(void *budget, void *ptr, size_t osize, size_t nsize); /* a lua_Alloc */
/* Make the budget known to its Lua state: from then on mgrid_lua_charge and mgrid_lua_note find it. */
void mgrid_budget_attach(lua_State *L, mgrid_budget *b);
/* Start counting for one protected call; stop when it has returned. */
void mgrid_budget_start(lua_State *L, mgrid_budget *b);
void mgrid_budget_stop(lua_State *L);
/* Fill err->file and err->line from a message "file:line: text". The message does not change. */
void mgrid_budget_position(mgrid_error *err);
/* The status and the error of a call: lua_pcall returned `rc`, with the error on the top of the stack. */
mgrid_status mgrid_budget_verdict(lua_State *L, const mgrid_budget *b, int rc, mgrid_error *err);

#endif
