/* SPDX-License-Identifier: MIT
**
** budget.h - what a recipe may spend: memory, instructions, time. A budget is the `ud` of its Lua state's
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
  double       started;      /* this call, in seconds of the monotonic clock */
  bool         over;         /* spent: `verdict` is raised again and again */
  bool         no_memory;    /* there was none in this call, also after a collection: */
  bool         starved;      /* not for the cap, but because the process or the host's allocator has no more */
  size_t       refused;      /* size of the last block that was refused; Lua collects and asks again */
  mgrid_status status;       /* of the error that C raised last, */
  size_t       length;       /* characters of its text, which may follow a position, */
  uint64_t     text;         /* and its hash */
  char         verdict[256]; /* the message when it was spent */
} mgrid_budget;

void *mgrid_budget_alloc(void *budget, void *ptr, size_t osize, size_t nsize); /* a lua_Alloc */
/* Make the budget known to its Lua state: from then on mgrid_lua_charge and mgrid_lua_note find it. */
void mgrid_budget_attach(lua_State *L, mgrid_budget *b);
/* Start counting for one protected call; stop when it has returned. */
void mgrid_budget_start(lua_State *L, mgrid_budget *b);
void mgrid_budget_stop(lua_State *L);
/* Fill file and line from a message "file:line: text", which stays as it is. */
void mgrid_budget_position(mgrid_error *err);
/* The status and the error of a call: lua_pcall returned `rc`, with the error on the top of the stack. */
mgrid_status mgrid_budget_verdict(lua_State *L, const mgrid_budget *b, int rc, mgrid_error *err);

#endif
