/* SPDX-License-Identifier: MIT
**
** budget.h - what a recipe may spend: memory, instructions, time. A budget is the allocator's
** `ud` of its Lua state. The instruction count gives the same verdict on every rank; the clock
** only ever aborts. What is spent cannot be caught: every further instruction raises again.
*/
#ifndef MGRID_BUDGET_H
#define MGRID_BUDGET_H

#include "types/bind.h"

typedef struct mgrid_budget {
  mgrid_limits limits;
  size_t       used;         /* bytes of the Lua heap */
  uint64_t     count;        /* instructions of this call */
  double       started;      /* this call, in seconds of the monotonic clock */
  bool         over;         /* spent: `verdict` is raised again and again */
  bool         no_memory;    /* the cap was hit in this call, also after a collection */
  size_t       refused;      /* size of the last block that was refused; Lua collects and asks again */
  mgrid_status status;       /* of the last error that was raised from C */
  char         verdict[256]; /* what was said when it was spent */
} mgrid_budget;

void *mgrid_budget_alloc(void *budget, void *ptr, size_t osize, size_t nsize); /* a lua_Alloc */
/* Make the budget known to its Lua state: from then on mgrid_lua_charge and mgrid_lua_note find it. */
void mgrid_budget_attach(lua_State *L, mgrid_budget *b);
/* A fresh allowance for one protected call, and its end. */
void mgrid_budget_start(lua_State *L, mgrid_budget *b);
void mgrid_budget_stop(lua_State *L);
/* Split "file:line: text" for the struct; the message keeps the whole. */
void mgrid_budget_position(mgrid_error *err);
/* What a call that ended with `rc` of lua_pcall, its error on the top, comes to. */
mgrid_status mgrid_budget_verdict(lua_State *L, const mgrid_budget *b, int rc, mgrid_error *err);

#endif
