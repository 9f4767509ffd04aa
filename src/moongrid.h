/* SPDX-License-Identifier: MIT
**
** moongrid.h - process groups of parallel training, from a recipe to communicators.
**
** A trainer that embeds moongrid needs this header and, for the communicators themselves,
** moongrid_mpi.h or moongrid_nccl.h. From plan to communicator, without Lua:
**
**     mgrid_error  e = MGRID_ERROR_INIT;
**     mgrid_dim    dims[] = { { "tp", 2 }, { "pp", 2 }, { "dp", MGRID_FILL } };   // fastest first
**     const char  *tp = "tp", *dp = "dp";
**     mgrid_backend *mpi = mgrid_mpi_backend(comm, NULL, &e);             // moongrid_mpi.h; reports a wrong launcher
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
** From a recipe, mgrid_open does all of this; mgrid_mpi_open also opens the backend.
**
** PAGES. A program includes this header, which includes one header for each stage:
**   moongrid_families.h   grids and families
**   moongrid_plan.h       topologies and plans
**   moongrid_backend.h    backends, with moongrid_carrier.h for hosts without MPI
**   moongrid_state.h      states, groups, jobs that lose and gain ranks
**   moongrid_recipe.h     recipes, queries, policies
**   moongrid_tensor.h     tensors, and moves from one layout to another
**   moongrid_machine.h    where ranks run: machines, their domains, what groups cross
**   moongrid_step.h       what travels in a step, proved free of deadlock
**   moongrid_survive.h    lost ranks: spares, how the job goes on without them, ranks that join
** Functions with types of MPI, NCCL or Lua are in moongrid_mpi.h, moongrid_nccl.h and
** moongrid_lua.h. In C++ moongrid_cpp.h is for functions of the host that may throw.
**
** WORDS
**   rank      0-based index in the world, the communicator that the host passes
**   dim       a name and a size; a grid lists its dims fastest-varying first
**   family    all groups made by one rule; a group is an ordered list of ranks,
**             and a rank's position is its index in that list
**   topology  ordered, named families and their options
**   plan      a topology in canonical form, with shared groups, the order of creation and a digest;
**             the same in every process and on every machine
**   state     a plan whose communicators exist, seen from this rank
**   host      the program that embeds this library
**   Ranks, positions, coordinates and numbers of groups count from 0 and are int64_t; -1 is "none".
**   Worlds go up to 2^31 - 1 ranks; all arithmetic is 64-bit and an overflow is refused.
**
** ERRORS
**   On failure a constructor returns NULL, another function -1 or a status that is not MGRID_OK; all
**   fill *err (which may be NULL). Nothing is half made: arguments that the call reads are unchanged;
**   pointers that it sets are NULL, numbers 0 or -1, texts "", unless the call says otherwise; structs
**   for results are as before. Only a topology changes: it is broken then (mgrid_topology_new). The
**   caller owns the error and begins with MGRID_ERROR_INIT. The error keeps the first failure until
**   mgrid_error_clear. So you may chain calls and check once, at the end. A call that gets NULL
**   because an earlier call failed returns NULL, -1 or MGRID_USAGE, and leaves *err as it is. A
**   question to NULL answers NULL, -1, 0, false or "". Any other pointer may be NULL only where the
**   call says so; else the call fails with MGRID_USAGE, and the message names the pointer. The library
**   never prints, exits or aborts, except while it waits for a call of MPI that does not return
**   (mgrid_on_deadline).
**
** OWNERSHIP
**   An object of a constructor (_new, mgrid_grid_along, mgrid_family_..., mgrid_materialize, ...)
**   belongs to the caller, who frees it with the matching _free. _free functions return nothing and
**   accept NULL. Objects with a _ref function are counted: _ref adds an owner, and _free removes
**   one. An object keeps alive the objects that it was made from: a family its grid, a state its
**   plan and its backend, a policy its runtime. So free objects in any order, but a policy before
**   its state. A pointer to const that a question returns is borrowed from the object that was
**   asked. Functions that write text to (buf, len) behave as snprintf: they return the length of
**   the whole text, and end a non-empty buffer with 0.
**
** STRUCTS
**   A struct that the host allocates, for arguments or results, begins with `size`, which its
**   ..._INIT macro sets. mgrid_dim, mgrid_window, mgrid_mode, and structs that say "never changes"
**   have no `size`, and never get new fields. In a struct for arguments, a field that is zero has its
**   default, or counts as missing if it has none. So a host without macros clears the struct and sets
**   `size`. A host built with an older header gets the fields that it knows. MGRID_BAD_STRUCT: `size`
**   is not set, or the struct is of a later version, and a field that this library does not know is
**   not zero. An mgrid_error is not checked in this way.
**
** THREADS
**   There is no global mutable state.
**   grid, family, plan, tensor, machine
**                         immutable: any number of threads at once, _ref and _free too
**   topology              one thread at a time
**   runtime               one thread at a time, together with its policies
**   backend               one thread at a time, together with its states; a collective call blocks
**   group                 questions from any thread while its state exists
**   error                 belongs to the caller; use one in each thread
**
** TIMEOUTS
**   A field `timeout` is in seconds of the clock, with fractions. 0: the default, which the field
**   names. INFINITY of math.h: no limit; the timeout of a family is at most 1e9 (mgrid_options). A
**   timeout below 0, or not a number, is MGRID_OUT_OF_RANGE. The limits of a recipe (mgrid_limits)
**   are budgets, not timeouts.
**
** LIMITS. More than this is refused; a recipe that spends its budget ends with MGRID_LIMIT.
**   ranks of a world                                   2^31 - 1
**   dims of a grid; modes of a family; tensor's axes   64; 30; 8
**   families made of families: depth; parts of one     64; 4096
**   rounds of a cover, and so groups of a rank in it   1024
**   ranks that mgrid_plan_check checks without samples 2^20
**   a name of a dim, grid, family or axis; of a tensor 31; 255 bytes
**   a recipe, a file of parameters, a text in a recipe 2^20 bytes
**   a saved plan; a file that describes a machine      2^24; 2^30 bytes
**   values in a table that is copied, or in JSON       2^18, 32 deep, 2^22 bytes of text
**   values of a call's mgrid_arg                       2^18, tables 16 deep, 2^22 bytes of text
**   names in all lists of mgrid_topology_concurrent    4096
**   a recipe: memory, instructions                     64 MiB, 200 million (mgrid_limits)
**   a recipe: processor time to load and plan it       10 s (mgrid_limits)
**   a query, setting or policy: processor time         2 s (mgrid_limits)
**   a step: its evaluation, its proof, its price       each as a plan of its recipe; 256 MiB of memory
**   a machine: names in lists of its file              2^18 and one for each byte
**   a machine: numbers of domains; listed ranks        2^22; 2^24
**   a recipe's nested brackets, blocks, calls from C   200 levels in all
** A thread that calls the library needs 256 KiB of stack, whatever the recipe. With the bundled
** recipes 64 KiB are enough.
*/
#ifndef MOONGRID_H
#define MOONGRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MGRID_VERSION_MAJOR 1
#define MGRID_VERSION_MINOR 0
#define MGRID_VERSION_PATCH 0
#define MGRID_VERSION       "1.0.0"

#if defined(__GNUC__)
#define MGRID_API __attribute__((visibility("default")))
#else
#define MGRID_API
#endif
#ifndef MGRID_INLINE /* libmoongrid exports these functions, too, for hosts without a C compiler */
#define MGRID_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Return the version of the library that runs. MGRID_VERSION is the version of the header. */
MGRID_API const char *mgrid_version(void);

/* ------------------------------------------------------------------ errors */

/* The kinds of errors. Values and meanings never change. status / 100 is the class of the error,
** and the exit code of the command; this will also hold for each status of a later version. */
typedef enum mgrid_status {
  MGRID_OK = 0,

  /* sizes or options that contradict each other or do not fit; an error that a recipe raises */
  MGRID_REFUSED = 100,
  /* no dim, grid, family, parameter, option, policy, backend ... of that name */
  MGRID_UNKNOWN_NAME = 101,
  MGRID_BAD_VALUE = 102,    /* a value of a wrong kind or form */
  MGRID_OUT_OF_RANGE = 103, /* a number outside of its range; the message has the range */
  MGRID_OVERFLOW = 104,     /* sizes whose product or sum does not fit */
  MGRID_DUPLICATE = 105,    /* a name, rank or parameter given twice */

  /* a wrong call: an argument that a correct program never passes, such as NULL */
  MGRID_USAGE = 200,
  /* a struct without its size, or of a later version with new fields set */
  MGRID_BAD_STRUCT = 201,
  /* the object is in a wrong state: loaded already, not created yet, of another recipe */
  MGRID_NOT_NOW = 202,

  /* a budget was spent: memory, instructions or time of a recipe, memory of a GPU */
  MGRID_LIMIT = 300,
  MGRID_NO_MEMORY = 301, /* the process has no memory left */
  MGRID_OUTPUT = 302,    /* a sink stopped, or a file could not be written */

  MGRID_BACKEND = 400,     /* MPI or NCCL failed */
  MGRID_MISSING = 401,     /* a library, driver or GPU is missing */
  MGRID_UNSUPPORTED = 402, /* the backend, or this version of it, cannot do that */
  MGRID_TIMED_OUT = 403,   /* a deadline passed; the message names who or what did not arrive */
  /* MPI reports that the process of a rank has failed (ULFM), or the rank is known to be lost */
  MGRID_LOST_RANK = 404,
  MGRID_OTHER_RANK = 405, /* another rank failed first; the error of that rank says why */
  MGRID_UNPROVED = 406,   /* a proof found a communicator, schedule, move or step to be wrong */
  /* the calls of a proof ended but wrote nothing, because kernels do not run here; nothing is
  ** proved or refuted */
  MGRID_NO_KERNEL = 407,

  MGRID_DISAGREE = 500 /* ranks do not have the same plan, recipe or result */
} mgrid_status;

/* Return a few words for a status, such as "out of range". They are static, and never NULL. */
MGRID_API const char *mgrid_status_text(mgrid_status status);

enum { MGRID_MISSING_SHOWN = 8 };

typedef struct mgrid_error {
  size_t size; /* sizeof(mgrid_error) */
  mgrid_status status;
  int line;       /* of the recipe or saved plan at which the error is; 0: not known */
  char file[200]; /* which has this line; "": not known */
  /* one line, which begins with "file:line:" if the error has a place in a recipe. Two lines follow
  ** only if Lua cannot parse a recipe: the recipe's line, and a caret below the place */
  char message[1024];
  /* The other fields are set for MGRID_TIMED_OUT and MGRID_LOST_RANK, if their values are known.
  ** The message has the same facts. */
  int64_t nmissing;                     /* how many ranks did not come to a call, or are lost */
  int64_t missing[MGRID_MISSING_SHOWN]; /* the first of these ranks */
  double waited;                        /* seconds that this rank waited for them */
  char call[96]; /* the call over all ranks in which it waited, "materialize 'train'"; else "" */
} mgrid_error;
#define MGRID_ERROR_INIT \
  { sizeof(mgrid_error), MGRID_OK, 0, "", "", 0, { 0 }, 0, "" }

/* Clear an error. err may be NULL. */
MGRID_API void mgrid_error_clear(mgrid_error *err);

/* ------------------------------------------------------------------- hooks */

typedef enum mgrid_level {
  MGRID_LOG_DEBUG, /* what was done: a recipe loaded, a communicator made */
  MGRID_LOG_INFO,  /* what changed for the job: a plan, a reload */
  MGRID_LOG_WARN,  /* what a person should look at, though the call continues */
  /* what a recipe prints or logs, "file:line: text", on every rank that evaluates it */
  MGRID_LOG_RECIPE
} mgrid_level;

/* Functions of the host that a runtime (mgrid_runtime_new) or a backend (mgrid_backend_set_hooks)
** calls. Without `allocate` the library uses realloc and free; without `log` it logs nothing. Hooks
** are called in the thread of the call that needs them, and may not call moongrid, nor throw
** (moongrid_cpp.h). If `allocate` returns NULL, the call fails with MGRID_NO_MEMORY. */
typedef struct mgrid_hooks {
  size_t size; /* sizeof(mgrid_hooks) */
  void *ud;    /* first argument of both functions */
  /* As realloc: resize `block` from `was` to `bytes` bytes, and return it. If there is no memory,
  ** return NULL and leave the block unchanged. block NULL: a new block. bytes 0: free it, return
  ** NULL. A runtime uses `allocate` for its Lua heap, a backend for states, handles and members of
  ** communicators. */
  void *(*allocate)(void *ud, void *block, size_t was, size_t bytes);
  /* Log one line; it has no newline at its end. */
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

#include "moongrid_machine.h"
#include "moongrid_step.h"
#include "moongrid_survive.h"
#endif
