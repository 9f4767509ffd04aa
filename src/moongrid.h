/* SPDX-License-Identifier: MIT
**
** moongrid.h - process groups of parallel training, from a recipe to communicators.
**
** A trainer that embeds moongrid needs this header and, for the communicators themselves,
** moongrid_mpi.h or moongrid_nccl.h. The whole way, without Lua:
**
**     mgrid_error  e = MGRID_ERROR_INIT;
**     mgrid_dim    dims[] = { { "tp", 2 }, { "pp", 2 }, { "dp", MGRID_FILL } };   // fastest first
**     const char  *tp = "tp", *dp = "dp";
**     mgrid_backend *mpi = mgrid_mpi_backend(comm, NULL, &e);             // moongrid_mpi.h; tells a wrong launcher
**     int64_t        world = mgrid_backend_world(mpi);
**     mgrid_grid   *grid = mgrid_grid_new(mgrid_world(world), 3, dims, &e);
**     mgrid_family *ftp = mgrid_grid_along(grid, 1, &tp, MGRID_GRID_ORDER, &e);
**     mgrid_family *fdp = mgrid_grid_along(grid, 1, &dp, MGRID_GRID_ORDER, &e);
**     mgrid_topology *t = mgrid_topology_new(world, &e);
**     mgrid_topology_add(t, "tp", ftp, NULL, &e);
**     mgrid_topology_add(t, "dp", fdp, NULL, &e);
**     mgrid_plan    *plan = mgrid_plan_new(t, &e);
**     mgrid_state   *state = mgrid_materialize(plan, mpi, "train", &e);   // collective
**     const mgrid_group *g = mgrid_state_group(state, "tp", &e);
**     if (e.status) give_up(e.message);                                   // the first error of the chain
**     MPI_Allreduce(..., mgrid_mpi_comm(g));
**
** or, from a recipe: mgrid_open, and for MPI mgrid_mpi_open, which opens the backend, too.
**
** PAGES. This header includes the others, one for each stage of the way, which are no use alone:
**   moongrid_families.h   grids and families
**   moongrid_plan.h       topologies and plans
**   moongrid_backend.h    backends, over moongrid_carrier.h where the host has no MPI
**   moongrid_state.h      states, groups, jobs that lose and get ranks
**   moongrid_recipe.h     recipes, queries, policies
**   moongrid_tensor.h     tensors, and moves from one layout to another
** What has types of MPI, NCCL or Lua is in moongrid_mpi.h, moongrid_nccl.h and moongrid_lua.h.
**
** WORDS
**   rank      0-based index in the world, the communicator that the host hands over
**   dim       a name and a size; a grid lists its dims fastest-varying first
**   family    all groups made by one rule; a group is an ordered list of ranks,
**             and a rank's position is its index in that list
**   topology  ordered, named families and their options
**   plan      a topology made canonical: shared groups found, creation scheduled,
**             digest taken; the same in every process and on every machine
**   state     a plan whose communicators exist, seen from this rank
**   host      the program that embeds this library
**   Ranks, positions, coordinates and indices count from 0 and are int64_t; -1 says "none".
**   Worlds go up to 2^31 - 1 ranks; all arithmetic is 64-bit and an overflow is refused.
**
** ERRORS
**   A constructor returns NULL on failure, other functions a status that is not MGRID_OK; both
**   fill *err (which may be NULL). Nothing is half made: on failure the arguments are as before (a topology
**   alone is broken, see there), pointers that were asked for are NULL, numbers 0 or -1, texts "".
**   The error is the caller's: begin with MGRID_ERROR_INIT. The first error stays in it until
**   mgrid_error_clear; no success and no later failure changes it. So calls may be chained and
**   checked once, at the end: a call whose argument is NULL because an earlier call failed returns
**   NULL, -1 or MGRID_USAGE and leaves *err alone; questions to NULL answer NULL, -1, 0, false or "".
**   No other pointer may be NULL unless the call says so: that is MGRID_USAGE, and names what is NULL. The library
**   never prints, exits or aborts, but where MPI gives no way back (mgrid_on_deadline).
**
** OWNERSHIP
**   What a constructor (_new, mgrid_grid_along, mgrid_family_..., mgrid_materialize, ...) returns
**   belongs to the caller, who gives it back with the matching _free. _free functions return
**   nothing and accept NULL. Grids, families, plans, runtimes and backends are counted: _ref makes
**   another owner and _free takes one away. An object keeps alive what it was made from (a family
**   its grid, a state its plan and its backend, a policy its runtime), so the parts may be freed in
**   any order; a policy alone must be freed before its state. Pointers to const that a question
**   returns are borrowed from the object that was asked. Functions that write text into (buf, len)
**   behave as snprintf: they return the length that the whole text has, and always end a non-empty
**   buffer by 0.
**
** STRUCTS
**   A struct that the host allocates begins with `size`, which its ..._INIT macro sets; this holds
**   for arguments and for results. A host that was built with an older header gets the fields it
**   knows. A larger struct than this library knows is MGRID_BAD_STRUCT unless the rest is zero,
**   and so is one without a size; an error alone is taken as it is, since nobody could be told.
**   mgrid_dim, mgrid_window and mgrid_mode never change.
**
** THREADS
**   There is no global mutable state.
**   grid, family, plan    immutable: any number of threads at once, _ref and _free too
**   topology              one thread at a time
**   runtime               one thread at a time, together with its policies
**   backend               one thread at a time, together with its states; a collective call blocks
**   group                 questions from any thread while its state is there
**   error                 belongs to the caller; use one in each thread
**
** TIMEOUTS
**   A field `timeout` is seconds of the clock, also parts of one. 0: the default, which the field names; INFINITY of
**   math.h: no limit. Below 0, or not a number: MGRID_OUT_OF_RANGE. What a recipe may spend (mgrid_limits) is a budget, not
**   a timeout.
**
** LIMITS. What goes beyond is refused, and a recipe that spends its budget ends with MGRID_LIMIT.
**   ranks of a world                                   2^31 - 1
**   dims of a grid; modes of a family; tensor's axes   64; 30; 8
**   families one over the other; parts of a family     64; 4096
**   rounds of a cover, and so groups of a rank in it   1024
**   ranks of a plan that are all checked (of more some) 2^20
**   a name of a dim, grid, family, tensor or axis      31 bytes
**   a file that is read; a text in a recipe            2^20 bytes
**   values of a value that is copied or is JSON        2^18, 32 deep, 2^22 bytes of text
**   values of a call's mgrid_arg                       2^18, tables 16 deep, 2^22 bytes of text
**   names in all lists of concurrent families          4096
**   a recipe: memory, instructions                     64 MiB, 200 million (mgrid_limits)
**   a recipe: processor time to load and plan it       10 s (mgrid_limits)
**   a query, setting or policy: processor time         2 s (mgrid_limits)
**   a recipe's brackets, blocks and calls from C       44 levels in each other, which share the stack
** A thread that calls the library needs 64 KiB of stack, whatever the recipe.
*/
#ifndef MOONGRID_H
#define MOONGRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MGRID_VERSION_MAJOR 0
#define MGRID_VERSION_MINOR 2
#define MGRID_VERSION_PATCH 0
#define MGRID_VERSION       "0.2.0"

#if defined(__GNUC__)
#define MGRID_API __attribute__((visibility("default")))
#else
#define MGRID_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library that runs; MGRID_VERSION is that of the header. */
MGRID_API const char *mgrid_version(void);

/* ------------------------------------------------------------------ errors */

/* What went wrong. Values and meanings stay; the hundreds are the exit code of the command, so a
** code that a later version adds still has a kind: status / 100. */
typedef enum mgrid_status {
  MGRID_OK = 0,

  MGRID_REFUSED = 100,      /* a recipe, sizes or options that contradict each other or do not fit; what the
                               Lua of a recipe raises by itself */
  MGRID_UNKNOWN_NAME = 101, /* no dim, grid, family, parameter, option, policy, backend ... of that name */
  MGRID_BAD_VALUE = 102,    /* a value of another kind or form than was expected */
  MGRID_OUT_OF_RANGE = 103, /* a number outside of its range, which the message has */
  MGRID_OVERFLOW = 104,     /* sizes whose product or sum does not fit */
  MGRID_DUPLICATE = 105,    /* a name, rank or parameter that is given twice */

  MGRID_USAGE = 200,      /* the call is wrong: an argument that no program should pass, NULL among them */
  MGRID_BAD_STRUCT = 201, /* a struct without its size, or of a later version with new fields set */
  MGRID_NOT_NOW = 202,    /* not in this state of the object: loaded already, not created yet, of another recipe */

  MGRID_LIMIT = 300,     /* a budget was spent: memory, instructions or time of a recipe, memory of a GPU */
  MGRID_NO_MEMORY = 301, /* the process has no memory left */
  MGRID_OUTPUT = 302,    /* the sink of a text took no more */

  MGRID_BACKEND = 400,     /* MPI or NCCL failed */
  MGRID_MISSING = 401,     /* a library, driver or GPU is not here */
  MGRID_UNSUPPORTED = 402, /* the backend, or this version of it, cannot do that */
  MGRID_TIMED_OUT = 403,   /* a deadline passed; the message names what did not come */
  MGRID_LOST_RANK = 404, /* the process of a rank has failed, as MPI says (ULFM); or a rank is counted among the lost */
  MGRID_OTHER_RANK = 405, /* another rank gave up first; it has the reason */
  MGRID_UNPROVED = 406,   /* a communicator or a schedule is not what the plan says */

  MGRID_DISAGREE = 500 /* ranks do not have the same plan, recipe or result */
} mgrid_status;

/* A few words for a status, "out of range"; never NULL, and valid for ever. */
MGRID_API const char *mgrid_status_text(mgrid_status status);

typedef struct mgrid_error {
  size_t       size; /* sizeof(mgrid_error) */
  mgrid_status status;
  int          line;          /* of the recipe, 0 where there is none */
  char         file[200];     /* of the recipe, "" where there is none */
  char         message[1024]; /* one line; begins with file:line: where there is one */
} mgrid_error;
#define MGRID_ERROR_INIT \
  { sizeof(mgrid_error), MGRID_OK, 0, "", "" }

/* Forget an error that was seen. err may be NULL. */
MGRID_API void mgrid_error_clear(mgrid_error *err);

/* ------------------------------------------------------------------- hooks */

typedef enum mgrid_level {
  MGRID_LOG_DEBUG, /* what was done: a recipe loaded, a communicator made */
  MGRID_LOG_INFO,  /* what changed for the job: a plan, a reload */
  MGRID_LOG_WARN,  /* what a person should look at, though the call goes on */
  MGRID_LOG_RECIPE /* what a recipe says with print or log, "file:line: text"; every rank that evaluates it says it */
} mgrid_level;

/* Functions of the host that a runtime (mgrid_runtime_new) or a backend (mgrid_backend_set_hooks)
** calls. Where one is NULL the library uses realloc and free, and logs nothing. Hooks are called in the
** thread of the call that needs them, and may not call moongrid. A call whose allocator gives NULL fails
** with MGRID_NO_MEMORY. */
typedef struct mgrid_hooks {
  size_t size; /* sizeof(mgrid_hooks) */
  void  *ud;   /* first argument of both functions */
  /* As realloc: resize `block`, which has `was` bytes, to `bytes`, and return it; or return NULL and leave
  ** it as it was when memory is out. block NULL: a new block. bytes 0: free it, return NULL. A runtime uses
  ** this for its Lua heap, a backend for states, handles and members of communicators. */
  void *(*allocate)(void *ud, void *block, size_t was, size_t bytes);
  /* One line without an end of line. */
  void (*log)(void *ud, mgrid_level level, const char *message);
} mgrid_hooks;
#define MGRID_HOOKS_INIT \
  { sizeof(mgrid_hooks), NULL, NULL, NULL }

#ifdef __cplusplus
}
#endif

#include "moongrid_families.h"

#include "moongrid_plan.h"

#include "moongrid_backend.h"

#include "moongrid_carrier.h"

#include "moongrid_state.h"

#include "moongrid_recipe.h"

#include "moongrid_tensor.h"
#endif
