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
**     mgrid_backend *mpi = mgrid_mpi_backend(comm, NULL, &e);             // moongrid_mpi.h; the launcher is wrong: said here
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
** LIMITS. What goes beyond is refused, and a recipe that spends its budget ends with MGRID_LIMIT.
**   ranks of a world                                   2^31 - 1
**   dims of a grid; modes of a family; tensor's axes   64; 30; 8
**   families one over the other; parts of a family     64; 4096
**   rounds of a cover, and so groups of a rank in it   1024
**   ranks of a rehearsal (a check samples more)        2^20
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

/* ----------------------------------------------------------------- algebra */

/* Where a grid lies: `size` consecutive ranks from `offset` of a world of `world`. */
typedef struct mgrid_window {
  int64_t world, offset, size;
} mgrid_window;

/* The window that is the whole world of `size` ranks. */
MGRID_API mgrid_window mgrid_world(int64_t size);

#define MGRID_FILL (-1) /* size of the one dim that takes what the others leave */

typedef struct mgrid_dim {
  const char *name; /* a letter or _, then letters, digits or _; at most 31 */
  int64_t     size; /* 1 to 2^31 - 1, or MGRID_FILL */
} mgrid_dim;

typedef struct mgrid_grid   mgrid_grid;
typedef struct mgrid_family mgrid_family;

/* Ordered dims over a window, fastest-varying first: the stride of a dim is the
** product of the sizes before it. n in [0, 64]; at most one size is MGRID_FILL. The
** product must be the window's size; refused with the nearest sizes that fit. */
MGRID_API mgrid_grid *mgrid_grid_new(mgrid_window window, size_t n, const mgrid_dim *dims, mgrid_error *err);
/* The same over the ranks of a family's one group, in its order: position 0 of the grid is the rank at position
** 0 of the group. So a grid may lie over ranks 7, 6, ... 0 (mgrid_family_table) or over every second rank, and
** its coordinates, families and text follow that order. Where modes can express it (the ranks of a strided
** family, or of lists that are regular) the families along its dims are strided as well; the others are
** explicit tables, O(ranks) each. `order` stays the caller's; refused unless it has one group.
** O(modes) for a strided family, else O(its ranks). */
MGRID_API mgrid_grid *mgrid_grid_over(const mgrid_family *order, size_t n, const mgrid_dim *dims, mgrid_error *err);
MGRID_API mgrid_grid *mgrid_grid_ref(const mgrid_grid *g); /* another owner; never fails */
MGRID_API void        mgrid_grid_free(mgrid_grid *g);

MGRID_API size_t    mgrid_grid_ndims(const mgrid_grid *g);
MGRID_API mgrid_dim mgrid_grid_dim(const mgrid_grid *g, size_t i); /* i in [0, ndims) */
/* The ranks from the grid's lowest to its highest. A grid of mgrid_grid_over need not have all of them. */
MGRID_API mgrid_window mgrid_grid_window(const mgrid_grid *g);
MGRID_API int64_t      mgrid_grid_size(const mgrid_grid *g); /* ranks: the product of the sizes */
/* Index of a dim, or -1 where the grid has no dim of that name. */
MGRID_API int64_t mgrid_grid_find(const mgrid_grid *g, const char *dim);
/* The rank's position in the grid's order, 0 to size - 1, or -1 for a rank outside the grid. This and the next
** two are O(dims), over another order O(dims + modes), or O(log size) where the order is a table. */
MGRID_API int64_t mgrid_grid_position(const mgrid_grid *g, int64_t rank);
/* The rank's coordinate in dim i, or -1 for a rank outside the grid. */
MGRID_API int64_t mgrid_grid_coord(const mgrid_grid *g, int64_t rank, size_t i);
/* The rank at coords[0..ndims), or -1 where a coordinate is out of range. */
MGRID_API int64_t mgrid_grid_rank(const mgrid_grid *g, const int64_t *coords);
/* Same dims in the same order over the same ranks in the same order, whatever the worlds. O(dims + modes); where
** both orders are tables O(ranks). */
MGRID_API bool mgrid_grid_equal(const mgrid_grid *a, const mgrid_grid *b);
/* "tp 2 x pp 2 x dp 2 over ranks 0..7", as snprintf. The ranks of another order are modes, "over ranks (4:2)" is
** 0, 2, 4, 6, or a list, "over ranks 3,2,1,0". */
MGRID_API size_t mgrid_grid_describe(const mgrid_grid *g, char *buf, size_t len);

/* New grids over the same ranks. Dim `dim` cut into n dims, fastest first, whose product is its size; one may
** be MGRID_FILL. Refused with the nearest sizes. O(dims). */
MGRID_API mgrid_grid *mgrid_grid_unflatten(const mgrid_grid *g, const char *dim, size_t n, const mgrid_dim *dims,
                                           mgrid_error *err);
/* n dims that are neighbours in the grid's order made one, `name`, in that order whatever the order of the
** names. Dims of size 1 between them do not count, and come after it. O(dims). */
MGRID_API mgrid_grid *mgrid_grid_flatten(const mgrid_grid *g, const char *name, size_t n, const char *const *dims,
                                         mgrid_error *err);
/* Other names: names[i] for dim i, in [0, ndims); NULL leaves its name. O(dims). */
MGRID_API mgrid_grid *mgrid_grid_rename(const mgrid_grid *g, const char *const *names, mgrid_error *err);
/* The part of the grid at fixed coordinates: coords[i] of dim i, in [0, ndims), or -1 to leave the dim free.
** A grid of the free dims, in the same order, over the ranks there; its families leave the other ranks out.
** O(dims + modes); where the grid's order has no such rule O(ranks of the part). */
MGRID_API mgrid_grid *mgrid_grid_at(const mgrid_grid *g, const int64_t *coords, mgrid_error *err);

typedef enum mgrid_order {
  MGRID_GRID_ORDER = 0, /* members in the grid's order, whatever the order of the names */
  MGRID_AS_WRITTEN = 1  /* the first name varies fastest */
} mgrid_order;

/* Family of the named dims: they vary inside a group, the other dims tell the groups
** apart (in grid order). No dim (n = 0): a group per rank. */
MGRID_API mgrid_family *mgrid_grid_along(const mgrid_grid *g, size_t n, const char *const *dims, mgrid_order order,
                                         mgrid_error *err);
/* The same, with the dims that tell the groups apart in a chosen order, first fastest;
** each dim of the grid that is larger than 1 is named once, inside or as index. */
MGRID_API mgrid_family *mgrid_grid_along_by(const mgrid_grid *g, size_t n, const char *const *dims, size_t nindex,
                                            const char *const *index, mgrid_error *err);

MGRID_API mgrid_family *mgrid_family_ref(const mgrid_family *f); /* another owner; never fails */
MGRID_API void          mgrid_family_free(mgrid_family *f);

/* Cut each group into runs of k consecutive positions: *inner has the runs, *outer the
** ranks at equal positions of the runs. Pieces of a group follow each other in index
** order. Of a family of grids refused where k does not meet the mode boundaries (no layout
** exists then), with the sizes that would; with `lists` made all the same, as pieces that are asked of the family.
** So are picked and zipped families, whose runs follow no layout: O(1). Where groups differ in size `lists` makes
** explicit lists, O(world). Either output may be NULL. */
MGRID_API mgrid_status mgrid_family_split(const mgrid_family *f, int64_t k, bool lists, mgrid_family **inner,
                                          mgrid_family **outer, mgrid_error *err);
/* The same with the pieces counted by row: the groups of the family vary first, then the runs, or for *outer the
** positions, so that group i of *inner is in group i % mgrid_family_count(f) of f. Groups have one size. */
MGRID_API mgrid_status mgrid_family_split_rows(const mgrid_family *f, int64_t k, bool lists, mgrid_family **inner,
                                               mgrid_family **outer, mgrid_error *err);
/* Consecutive pieces of every group: the first sizes[0] members, then sizes[1], ...; the pieces of a group follow each
** other in index order. The sizes sum to the group size, or one is MGRID_FILL and takes the rest. The groups of f are
** disjoint and of one size; of a union, of one size in each part. O(n) time and memory, whatever the world; questions
** cost O(log n) more than those to f. Equal sizes are a split, which has a layout where it can. */
MGRID_API mgrid_family *mgrid_family_segments(const mgrid_family *f, size_t n, const int64_t *sizes, mgrid_error *err);
/* Repeated split: out[i] has the groups of level i, sizes[0] the innermost. The
** product of the n sizes must be the group size. out has n elements. From group to group
** of a level the positions below it vary first, then the runs of a group, then the groups. */
MGRID_API mgrid_status mgrid_family_levels(const mgrid_family *f, size_t n, const int64_t *sizes, mgrid_family **out,
                                           mgrid_error *err);
/* Keep the n given positions of every group, in that order; negative ones count from
** the end, duplicates drop. The result leaves ranks out. */
MGRID_API mgrid_family *mgrid_family_pick(const mgrid_family *f, size_t n, const int64_t *positions, mgrid_error *err);
/* The same by a function of the group size: it writes at most `cap` positions and
** returns how many, or -1 after filling *err. It must depend on `size` alone. */
typedef int64_t (*mgrid_pick_fn)(void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err);
MGRID_API mgrid_family *mgrid_family_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err);
/* The same groups in another order: group i of the result is group order[i]. The n elements are all groups, each once.
** O(n) time; where the order follows modes the result is a rule as before, else explicit lists, O(members). */
MGRID_API mgrid_family *mgrid_family_renumber(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err);
/* n consecutive groups become one: the members of the first, then of the second, ... Of a union the groups are counted
** over all its families; where a bundle would have groups of two of them, explicit lists, O(members). */
MGRID_API mgrid_family *mgrid_family_bundle(const mgrid_family *f, int64_t n, mgrid_error *err);
/* Pairs (position i, position i + step) of every group; with `wrap` also those that go
** around the end, but no pair twice: a ring of two ranks is one pair. A cover: a rank may be
** in two groups. step in [1, size). Groups of one rank give no pairs. */
MGRID_API mgrid_family *mgrid_family_neighbours(const mgrid_family *f, int64_t step, bool wrap, mgrid_error *err);
/* The groups of all n families, one family after the other; they must not share ranks. */
MGRID_API mgrid_family *mgrid_family_union(size_t n, const mgrid_family *const *fs, mgrid_error *err);
/* Group i is group i of each family, joined; equal numbers of groups, no shared ranks. */
MGRID_API mgrid_family *mgrid_family_zip(size_t n, const mgrid_family *const *fs, mgrid_error *err);

/* `size` steps, `stride` ranks from one to the next. */
typedef struct mgrid_mode {
  int64_t size, stride;
} mgrid_mode;

/* A family by its modes, the first one fastest: position p of group i is the rank offset + (digits of i times their
** strides in `index`) + (digits of p times their strides in `inside`). No inside mode: groups of one rank; no index
** mode: one group. Sizes and strides are 1 or more; the stride of size 1 means nothing and may be 0. Ranks are those of
** the world, also in a window, and lie in it; no rank is in two places. O(modes), unless modes interleave so that
** ranks are not found by dividing, as in (3:2) x (2:3): those are explicit lists, O(members). */
MGRID_API mgrid_family *mgrid_family_modes(mgrid_window window, int64_t offset, size_t ninside,
                                           const mgrid_mode *inside, size_t nindex, const mgrid_mode *index,
                                           mgrid_error *err);
/* The same by text: inside modes, then " x " and index modes, then " + " and the offset; the last two may be left
** out. Modes are "(2:1)(4:8)", with "(1)" for none, as mgrid_family_describe writes them, which is read back to an
** equal family, or sizes and strides apart, "(2,4):(1,8)" or "8:1", nested or not, as CuTe and torch write
** them. The first mode is the fastest, as in CuTe; torch counts its last one fastest, so that a layout of torch is
** read from the right. A fault is MGRID_BAD_VALUE, with its character. */
MGRID_API mgrid_family *mgrid_family_parse(mgrid_window window, const char *text, mgrid_error *err);

typedef enum mgrid_coverage {
  MGRID_PARTITION = 0, /* every rank of the window is in exactly one group */
  MGRID_PARTIAL = 1,   /* ... in at most one group */
  MGRID_COVER = 2      /* a rank may be in several groups */
} mgrid_coverage;

/* Explicit lists: group i is ranks[starts[i]] .. ranks[starts[i+1] - 1]. Refused where
** the lists are not what `declared` says. O(members); a table that is regular is
** recognized and costs nothing afterwards. */
MGRID_API mgrid_family *mgrid_family_table(mgrid_window window, int64_t ngroups, const int64_t *starts,
                                           const int32_t *ranks, mgrid_coverage declared, mgrid_error *err);
/* Every group through a function: it gets n members in `ranks` and leaves the new ones
** there (at most `cap`), and returns how many, or -1 after filling *err. The result is
** an explicit table: O(world). Groups must come out disjoint. */
typedef int64_t (*mgrid_map_fn)(void *ud, int64_t group, int32_t *ranks, int64_t n, int64_t cap, mgrid_error *err);
MGRID_API mgrid_family *mgrid_family_map(const mgrid_family *f, mgrid_map_fn fn, void *ud, mgrid_error *err);
/* The groups without n ranks; the order in them and among them stays. A group that loses all its members
** is left out, so that later ones get lower indices; where all do there are no groups. Ranks that are in
** no group or named twice change nothing; one outside the world is refused. The result is a cover only
** where a rank still is in several groups. O(members); regular lists are recognized, as by
** mgrid_family_table. */
MGRID_API mgrid_family *mgrid_family_without(const mgrid_family *f, size_t n, const int64_t *ranks, mgrid_error *err);
/* The same groups as explicit lists, for operations that need them. O(world). */
MGRID_API mgrid_family *mgrid_family_lists(const mgrid_family *f, mgrid_error *err);
/* The same members; in a topology they get communicators of their own. */
MGRID_API mgrid_family *mgrid_family_twin(const mgrid_family *f, mgrid_error *err);

/* Same groups in the same order with the same order inside. O(modes) for families of
** grids; others are compared by the modes of their parts, or where these do not tell, as of long lists, group by group. */
MGRID_API bool mgrid_family_equal(const mgrid_family *a, const mgrid_family *b);

MGRID_API int64_t        mgrid_family_world(const mgrid_family *f);
MGRID_API int64_t        mgrid_family_count(const mgrid_family *f);               /* groups */
MGRID_API int64_t        mgrid_family_size(const mgrid_family *f, int64_t group); /* -1: no such group */
MGRID_API int64_t        mgrid_family_max_size(const mgrid_family *f);
MGRID_API int64_t        mgrid_family_total(const mgrid_family *f);    /* members of all groups */
MGRID_API mgrid_coverage mgrid_family_coverage(const mgrid_family *f); /* PARTITION: of the world */
/* Rank at a position of a group, or -1. O(modes). */
MGRID_API int64_t mgrid_family_rank(const mgrid_family *f, int64_t group, int64_t position);
/* The rank's nth group (nth = 0, 1, ...; only a cover has more than one) and its
** position there; false where there is none. O(modes). */
MGRID_API bool mgrid_family_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group, int64_t *position);
/* Write the members of a group, mgrid_family_size(f, group) of them, in order. */
MGRID_API void mgrid_family_members(const mgrid_family *f, int64_t group, int32_t *out);
/* The same for n groups from `group` on, one after the other; returns how many ranks that
** are, or -1 where there are no such groups. Many small groups are written several times
** faster than by a call for each. */
MGRID_API int64_t mgrid_family_range(const mgrid_family *f, int64_t group, int64_t n, int32_t *out);
/* Canonical text of the rule, as snprintf: equal families have equal text where they
** are strided. "(2:1) x (4:2)" is 4 groups, 2 apart, of 2 neighbours. */
MGRID_API size_t mgrid_family_describe(const mgrid_family *f, char *buf, size_t len);

/* ------------------------------------------------------- topology and plan */

/* Options of a family. Families share a communicator only when these are equal
** (`first`, `lazy` and `single` aside, which change when or whether it is made, not what it is) and no list of
** mgrid_topology_concurrent keeps them apart. Set to MGRID_OPTIONS_INIT, then change what is wanted. */
typedef struct mgrid_options {
  size_t      size;          /* sizeof(mgrid_options) */
  bool        unique;        /* never share a communicator with another family */
  bool        first;         /* create before the families that do not say so */
  bool        lazy;          /* leave out of mgrid_materialize; mgrid_state_create makes it */
  bool        high_priority; /* stream priority of the NCCL backend */
  double      timeout;       /* seconds, > 0, that NCCL may take to create it; 0: the backend's default */
  const char *backend;       /* "" for the state's own, else "mpi" or "nccl", or "none": its groups only answer
                                questions, no communicator is ever made for them or shared with them */
  const char *nccl;          /* "min_ctas=4 max_ctas=16": ncclConfig_t fields, see lua/README.md */
  const char *cartesian;     /* "x:4:periodic y:2", dims fastest first: the positions of each group are read as a
                           grid of 4 x 2, and its communicator of MPI has that Cartesian topology
                           (moongrid_mpi.h). Refused for groups of another size. NCCL has nothing like it;
                           mgrid_group_shift works all the same */
  const char *windows;       /* "kv=4194304": memory registered with NCCL, made with the communicator, and */
  const char *device;        /* "barriers=4": a device communicator: moongrid_resources.h */
  const char *parent;        /* the family, earlier in the schedule, out of whose communicators of NCCL these are
                                split (ncclCommSplit; with nccl = "split_share=1" of the parent they share its
                                resources). Each group is part of one group of the parent, and no two share ranks */
  bool        single;        /* with MPI a group of one rank gets a communicator of its own, too: mgrid_mpi_comm */
} mgrid_options;
#define MGRID_OPTIONS_INIT \
  { sizeof(mgrid_options), false, false, false, false, 0, "", "", "", "", "", "", false }

typedef struct mgrid_topology mgrid_topology;
typedef struct mgrid_plan     mgrid_plan;

/* world in [1, 2^31 - 1]. A call that cannot add what it was asked to add breaks the topology: the first such error
** stays in it, and mgrid_plan_new gives that error. So a family that could not be made is never just left out. */
MGRID_API mgrid_topology *mgrid_topology_new(int64_t world, mgrid_error *err);
MGRID_API void            mgrid_topology_free(mgrid_topology *t);
/* Add a family; the order of the calls is the order of creation. Names of families and
** grids are one name space; a name given twice is refused. options may be NULL. */
MGRID_API mgrid_status mgrid_topology_add(mgrid_topology *t, const char *name, const mgrid_family *f,
                                          const mgrid_options *options, mgrid_error *err);
/* Name a grid, so that coordinates can be asked of the plan and the state. */
MGRID_API mgrid_status mgrid_topology_add_grid(mgrid_topology *t, const char *name, const mgrid_grid *g,
                                               mgrid_error *err);
/* The n families (2 or more, each once) that are used at the same time, the most urgent first. Where they make
** communicators they never share one, neither in a state nor between states of the backend, even if groups and
** options are equal: NCCL runs the calls on one communicator one after the other, whatever their streams.
** mgrid_group_launch_order heeds the order of the names. The first family with communicators gets `high_priority`,
** unless families of the list have that option already. A family in no list goes on sharing with a listed one of
** equal groups. May be called again for other families; an order that contradicts an earlier list is
** MGRID_REFUSED. Part of the plan and its digest. O(families x names). */
MGRID_API mgrid_status mgrid_topology_concurrent(mgrid_topology *t, size_t n, const char *const *names,
                                                 mgrid_error *err);
/* Record a parameter of the recipe: printed, and part of the digest. */
MGRID_API mgrid_status mgrid_topology_param(mgrid_topology *t, const char *name, const char *value, mgrid_error *err);
/* The recipe's name: printed, not part of the digest (paths differ between machines). */
MGRID_API mgrid_status mgrid_topology_recipe(mgrid_topology *t, const char *name, mgrid_error *err);

/* Make the topology canonical. O(families^2 x modes) for symbolic families, whatever
** the world. Local: no communication. */
MGRID_API mgrid_plan *mgrid_plan_new(const mgrid_topology *t, mgrid_error *err);
MGRID_API mgrid_plan *mgrid_plan_ref(const mgrid_plan *p);
MGRID_API void        mgrid_plan_free(mgrid_plan *p);

MGRID_API int64_t             mgrid_plan_world(const mgrid_plan *p);
MGRID_API size_t              mgrid_plan_nfamilies(const mgrid_plan *p);
MGRID_API const char         *mgrid_plan_family_name(const mgrid_plan *p, size_t i);
MGRID_API const mgrid_family *mgrid_plan_family(const mgrid_plan *p, size_t i);
MGRID_API int64_t             mgrid_plan_find(const mgrid_plan *p, const char *family); /* or -1 */
MGRID_API size_t              mgrid_plan_ngrids(const mgrid_plan *p);
MGRID_API const char         *mgrid_plan_grid_name(const mgrid_plan *p, size_t i);
MGRID_API const mgrid_grid   *mgrid_plan_grid(const mgrid_plan *p, const char *name); /* or NULL */
/* The earlier family whose communicators all groups of family i use, or -1. */
MGRID_API int64_t mgrid_plan_shares(const mgrid_plan *p, size_t i);
/* 32 hexadecimal digits and a 0: XXH3-128 of the canonical text; of plan NULL zeros. */
MGRID_API void mgrid_plan_digest(const mgrid_plan *p, char out[33]);

/* Receives text piece by piece; returns 0, or anything else to stop. */
typedef int (*mgrid_sink)(void *ud, const char *text, size_t len);
/* The canonical text, the creation schedule, and JSON. rank < 0: everything; else that
** rank's view. MGRID_OUT_OF_RANGE for a rank outside the world, MGRID_OUTPUT when the sink stops. */
MGRID_API mgrid_status mgrid_plan_print(const mgrid_plan *p, mgrid_sink sink, void *ud, mgrid_error *err);
MGRID_API mgrid_status mgrid_plan_print_schedule(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud,
                                                 mgrid_error *err);
MGRID_API mgrid_status mgrid_plan_print_json(const mgrid_plan *p, int64_t rank, mgrid_sink sink, void *ud,
                                             mgrid_error *err);

/* Save a plan as JSON that mgrid_plan_read reads: its recipe's name, world, rules and digest. Milliseconds at any world:
** no ranks are listed but those of families that are lists. mgrid_plan_print_json has the same in "rules" (rank < 0). */
MGRID_API mgrid_status mgrid_plan_save(const mgrid_plan *p, mgrid_sink sink, void *ud, mgrid_error *err);
/* A plan out of the text of mgrid_plan_save, of mgrid_plan_print_json of all ranks (2^24 bytes of JSON at most), or of
** mgrid_plan_print (2^26 bytes; not of plans where a flat has a member that is no tensor of the plan). `name` is what
** messages call it (NULL: "plan"). The plan is the caller's, as one of mgrid_plan_new, and has the digest of the one that
** was saved, or it is refused, MGRID_BAD_VALUE or what the families refuse, with the line, "saved.txt:4: ...", or field,
** "saved.json: rules[3]: ...", and what was expected there. So the text may come from anybody; reading takes a budget of
** work, beyond which it is MGRID_LIMIT. What no digest has is lost: a recipe's policies, and the recipe's name in text. O(bytes
** + families^2 x modes). Local. */
MGRID_API mgrid_plan *mgrid_plan_read(const char *text, size_t length, const char *name, mgrid_error *err);

/* Why two ranks talk, as text, or as JSON: every group that has both, their positions, who is between, the communicator
** with the step in each one's schedule, and the first that both make; without a common group the shortest chain of
** groups from a to b. JSON has "ranks", "groups", "first" and "chain", null where there is none. MGRID_OUT_OF_RANGE: not
** in the world; MGRID_BAD_VALUE: one rank twice; MGRID_LIMIT: no chain of two groups, in a world above 2^24 ranks. Local.
** O(families + members between the two); a chain of more than two groups takes 12 bytes a rank. */
MGRID_API mgrid_status mgrid_plan_why(const mgrid_plan *p, int64_t a, int64_t b, bool json, mgrid_sink sink, void *ud,
                                      mgrid_error *err);

/* Counts over the whole plan. groups and communicators leave groups of one rank out. */
typedef struct mgrid_plan_counts {
  size_t  size; /* sizeof(mgrid_plan_counts) */
  int64_t families, groups, singles, communicators;
} mgrid_plan_counts;
#define MGRID_PLAN_COUNTS_INIT \
  { sizeof(mgrid_plan_counts), 0, 0, 0, 0 }
MGRID_API mgrid_status mgrid_plan_count(const mgrid_plan *p, mgrid_plan_counts *out, mgrid_error *err);
/* Counts for one rank: groups it is in, of them groups of one rank, communicators. */
MGRID_API mgrid_status mgrid_plan_count_rank(const mgrid_plan *p, int64_t rank, mgrid_plan_counts *out,
                                             mgrid_error *err);

/* What changes from plan a to plan b, as text for the sink (which may be NULL): a line for each
** parameter, grid and family that is new (+), gone (-) or changed (~), and if both have one world, how
** many communicators a rank keeps when a trainer reloads (also in *change, which may be NULL; rank < 0:
** rank 0). Those of unique families and twins are made anew; lazy ones are not counted. */
typedef struct mgrid_change {
  size_t  size;                   /* sizeof(mgrid_change) */
  int64_t kept, created, dropped; /* communicators of the rank */
} mgrid_change;
#define MGRID_CHANGE_INIT \
  { sizeof(mgrid_change), 0, 0, 0 }
MGRID_API mgrid_status mgrid_plan_diff(const mgrid_plan *a, const mgrid_plan *b, int64_t rank, mgrid_change *change,
                                       mgrid_sink sink, void *ud, mgrid_error *err);

/* What NCCL's communicators take of a GPU and a process: moongrid_resources.h. */

/* Play every rank of the plan in this process: each walks its own schedule and waits in
** each creation until all members are there. MGRID_UNPROVED when they would wait for ever
** or do not see the same group; the message names rank, family and group. O(members) in time and memory;
** MGRID_OUT_OF_RANGE above 2^20 ranks. out may be NULL. */
typedef struct mgrid_rehearsal {
  size_t  size;          /* sizeof(mgrid_rehearsal) */
  int64_t communicators; /* of the job */
  int64_t memberships;   /* of all ranks in these */
  int64_t most_per_rank; /* communicators of the rank that has most */
} mgrid_rehearsal;
#define MGRID_REHEARSAL_INIT \
  { sizeof(mgrid_rehearsal), 0, 0, 0 }
MGRID_API mgrid_status mgrid_plan_rehearse(const mgrid_plan *p, mgrid_rehearsal *out, mgrid_error *err);

/* Check the laws of the plan. Every family: mgrid_family_locate finds each listed member at its group and
** position, a partition has each rank once, and the number of members is mgrid_family_total. The
** schedule: every rank creates its groups in one order of all groups, has in each the position that its
** view says, and all members of a group create it. MGRID_UNPROVED names family, group and position, or
** for the schedule rank, family and group. Every plan of this library keeps these laws, so a failure is a bug in it.
** Worlds above 2^20 ranks are sampled, in the same way in every process: 1024 members of each family, and some 256
** ranks. O(members x modes) of what is looked at, in constant memory. Local. out may be NULL. */
typedef struct mgrid_plan_checked {
  size_t  size;          /* sizeof(mgrid_plan_checked) */
  bool    sampled;       /* only some members and ranks were checked */
  int64_t members;       /* checked, over all families */
  int64_t communicators; /* created by the checked ranks */
  int64_t memberships;   /* of the checked ranks in communicators */
  int64_t most_per_rank; /* communicators of the rank that has most */
} mgrid_plan_checked;
#define MGRID_PLAN_CHECKED_INIT \
  { sizeof(mgrid_plan_checked), false, 0, 0, 0, 0 }
MGRID_API mgrid_status mgrid_plan_check(const mgrid_plan *p, mgrid_plan_checked *out, mgrid_error *err);

/* ------------------------------------------------------ backends and state */

typedef struct mgrid_backend mgrid_backend; /* creates communicators */
typedef struct mgrid_state   mgrid_state;   /* a plan made real, seen from this rank */
typedef struct mgrid_group   mgrid_group;   /* a handle: this rank's group of a family */

/* Opened by name: mgrid_backend_open of moongrid_backend.h; over a communicator: mgrid_mpi_backend of moongrid_mpi.h. */
/* One process plays `rank` of `world`: every question works, no communicator exists. */
MGRID_API mgrid_backend *mgrid_backend_dry(int64_t world, int64_t rank, mgrid_error *err);
/* Ranks of a host without MPI, over functions of its own: mgrid_carrier_backend of moongrid_carrier.h. */

/* "nccl": NCCL communicators on the GPUs of the ranks. It needs a carrier, a backend that sends NCCL's unique
** ids between ranks: mpi, which also makes the groups whose family asks for mpi; pmix; or the host's. */
typedef struct mgrid_nccl_options {
  size_t     size;         /* sizeof(mgrid_nccl_options) */
  int        device;       /* GPU of this rank, -1: by its index among the ranks of its machine */
  bool       share_gpu;    /* let several ranks use one GPU: for tests; slow, and only between those that do */
  double     timeout;      /* seconds that a creation, or a call over all ranks, may take; not above 0: 120 */
  int64_t    budget;       /* bytes of GPU memory for communicators, as predicted; 0: no limit */
  void      *parent;       /* an ncclComm_t of the host's over all ranks in the order of the world, or NULL:
                        communicators are split from it (ncclCommSplit; with its splitShare they share
                        its resources). Then every creation is a call over all ranks, one after the
                        other, `lazy` is not looked at, and states share nothing. It outlives the
                        backend. */
  const int *devices;      /* with device -1: [ndevices], the GPU of each rank of a machine by that index; */
  int        ndevices;     /* 0: GPU i for index i, around again where ranks share */
  int        ranks_per_id; /* groups above that many ranks get several unique ids, each served by another
                           rank (ncclCommInitRankScalable, NCCL 2.23.4); equal on all ranks; below 1: 128 */
  bool       blocking;     /* true: communicators behave as those of ncclCommInitRank: calls return ncclSuccess. false:
                           calls may return ncclInProgress, and a creation that fails is cancelled, where one that
                           blocks leaves a thread in NCCL behind; a family may say otherwise */
} mgrid_nccl_options;
enum { MGRID_NCCL_TIMEOUT = 120, MGRID_NCCL_RANKS_PER_ID = 128 };
#define MGRID_NCCL_OPTIONS_INIT \
  { sizeof(mgrid_nccl_options), -1, false, MGRID_NCCL_TIMEOUT, 0, NULL, NULL, 0, MGRID_NCCL_RANKS_PER_ID, true }
/* "nccl" over a backend that carries its messages (mpi, pmix, mgrid_carrier_backend), which it keeps alive; or with
** carrier NULL as mgrid_backend_open(name) does it: MPI is opened too. options may be NULL. Loads libmoongrid_nccl, NCCL
** and the CUDA runtime, and says exactly what is missing. Collective: one rank that has no GPU is an error on all. */
MGRID_API mgrid_backend *mgrid_backend_over(mgrid_backend *carrier, const char *name, const mgrid_nccl_options *options,
                                            mgrid_error *err);
/* Another owner; never fails. */
MGRID_API mgrid_backend *mgrid_backend_ref(mgrid_backend *b);
/* Give up one owner. States are owners too; when the last owner is gone the backend ends, and with it
** all communicators that were not freed. Collective with MPI: duplicates are freed, and MPI is finalized where the
** backend initialized it. */
MGRID_API void mgrid_backend_free(mgrid_backend *b);
/* The host's own allocator and log; `hooks` (NULL: none) is copied. Before the first state of the backend,
** else MGRID_NOT_NOW. Local. */
MGRID_API mgrid_status mgrid_backend_set_hooks(mgrid_backend *b, const mgrid_hooks *hooks, mgrid_error *err);
MGRID_API const char  *mgrid_backend_name(const mgrid_backend *b);
MGRID_API int64_t      mgrid_backend_rank(const mgrid_backend *b);
MGRID_API int64_t      mgrid_backend_world(const mgrid_backend *b);
/* Communicators that all states of the backend hold on this rank, shared ones once. */
MGRID_API size_t mgrid_backend_ncomms(const mgrid_backend *b);

/* Collective over the backend: do all ranks hold the same plan? A rank whose planning
** failed calls with plan NULL and its own error in *failed, so that nobody waits for it.
** MGRID_DISAGREE on every rank, naming the first family that differs and the ranks that differ;
** if planning failed on all ranks, each gets its own error back. failed may be NULL, or err itself. */
MGRID_API mgrid_status mgrid_agree(mgrid_backend *b, const mgrid_plan *plan, const mgrid_error *failed,
                                   mgrid_error *err);
/* Collective over the backend: agree, then create this rank's communicators in schedule
** order. All or nothing: on failure every rank gets an error and nothing stays. Groups
** with equal members and options share a communicator, also with earlier states of the
** same backend. `name` (NULL: "") goes into the names of the communicators; a name that a state of another
** plan has is MGRID_DUPLICATE. Options that the backend does not heed are a warning in the host's log.
** A rank whose planning failed calls with plan NULL and that error alone in *err: it takes part, so that
** nobody waits for it, and every rank gets the error. If the recipe has policies its text is compared as
** well: ranks with equal groups but different files are MGRID_DISAGREE. */
MGRID_API mgrid_state *mgrid_materialize(const mgrid_plan *plan, mgrid_backend *b, const char *name, mgrid_error *err);
/* Collective like mgrid_materialize, in the same order on all ranks. Communicators that
** other states use stay. The state's group handles end here. */
MGRID_API void mgrid_state_free(mgrid_state *s);
/* mgrid_state_free on this rank alone, ahead of the others: of a rank that shares none of its communicators, also lazy
** ones, with another rank; else MGRID_REFUSED, and nothing is freed. Local. The others go on with their communicators
** and free the state later; calls over all ranks of that state (prove, create, move) they make no more. Meanwhile this
** rank may take part in other calls over all ranks, in which only the others compare what states they have. */
MGRID_API mgrid_status mgrid_state_leave(mgrid_state *s, mgrid_error *err);
/* Create the communicators of a lazy family. Collective over the backend; calling it
** again is harmless. */
MGRID_API mgrid_status mgrid_state_create(mgrid_state *s, const char *family, mgrid_error *err);
/* Prove every communicator of this rank by collectives: members and order gathered,
** a sum, a broadcast from every position, a ring, with MPI an all-to-all (up to 512
** members). Collective over the backend; every rank gets the verdict. *proved (may be NULL): communicators proved on
** this rank. */
MGRID_API mgrid_status mgrid_state_prove(mgrid_state *s, int64_t *proved, mgrid_error *err);

MGRID_API const mgrid_plan *mgrid_state_plan(const mgrid_state *s);
MGRID_API int64_t           mgrid_state_rank(const mgrid_state *s);
/* Communicators this state holds, those of groups of one rank left out, and groups this rank belongs to. */
MGRID_API size_t mgrid_state_ncomms(const mgrid_state *s);
MGRID_API size_t mgrid_state_ngroups(const mgrid_state *s);

/* The machine this rank runs on, and how the job is spread over machines, which are told apart by host
** name and boot id and numbered by their lowest rank. Known since the first state of the backend was
** made, so this is local. A dry state answers as if the whole job ran on this machine. */
typedef struct mgrid_machine {
  size_t  size;                   /* sizeof(mgrid_machine) */
  int64_t machines, index;        /* machines of the job; index of this one, 0 to machines - 1 */
  int64_t local_size, local_rank; /* ranks of the job on this machine; index of this rank among them */
  int64_t cores, usable_cores;    /* logical processors: online; that this process is bound to */
  int64_t memory;                 /* bytes of the machine */
  int64_t gpus, gpu;              /* with the nccl backend: GPUs that this process sees, index of its own; else 0, -1 */
  char    name[64];               /* its host name */
} mgrid_machine;
#define MGRID_MACHINE_INIT \
  { sizeof(mgrid_machine), 0, 0, 0, 0, 0, 0, 0, 0, -1, "" }
MGRID_API mgrid_status mgrid_state_machine(const mgrid_state *s, mgrid_machine *m, mgrid_error *err);

/* This rank's group of a family; NULL where the rank is in none (no error) and for an unknown name
** (MGRID_UNKNOWN_NAME, with the nearest one). Looked up once; the handle then costs a pointer read
** and lives as long as the state. */
MGRID_API const mgrid_group *mgrid_state_group(const mgrid_state *s, const char *family, mgrid_error *err);
/* For covers: the nth of this rank's groups of a family (nth = 0, 1, ...); NULL past the last. */
MGRID_API const mgrid_group *mgrid_state_group_nth(const mgrid_state *s, const char *family, size_t nth,
                                                   mgrid_error *err);
/* This rank's coordinate in a dim of a named grid; -1 outside the grid (no error) or for an unknown name
** (MGRID_UNKNOWN_NAME). */
MGRID_API int64_t mgrid_state_coord(const mgrid_state *s, const char *grid, const char *dim, mgrid_error *err);
/* The slice of a named grid along n of its dims that has this rank: mgrid_grid_at with this rank's coordinates in
** the other dims. Its dims have the grid's order, whatever the order of the names; mgrid_grid_position tells this
** rank's position in it. The caller's, as any grid. NULL outside the grid (no error) or for an unknown name. */
MGRID_API mgrid_grid *mgrid_state_submesh(const mgrid_state *s, const char *grid, size_t n, const char *const *dims,
                                          mgrid_error *err);

/* Questions to a handle: local, no allocation, O(1) to O(modes). */
MGRID_API const char *mgrid_group_family(const mgrid_group *g);
MGRID_API int64_t     mgrid_group_position(const mgrid_group *g); /* of this rank in it */
MGRID_API int64_t     mgrid_group_size(const mgrid_group *g);
MGRID_API int64_t     mgrid_group_index(const mgrid_group *g);                /* which group of the family */
MGRID_API int64_t     mgrid_group_at(const mgrid_group *g, int64_t position); /* global rank or -1 */
MGRID_API int64_t     mgrid_group_first(const mgrid_group *g);
MGRID_API int64_t     mgrid_group_last(const mgrid_group *g);
/* Global rank one position on or back; at the ends around the group with wrap, else -1. MPI wants positions of the
** communicator, and MPI_PROC_NULL for none: mgrid_mpi_next and mgrid_mpi_prev of moongrid_mpi.h. */
MGRID_API int64_t mgrid_group_next(const mgrid_group *g, bool wrap);
MGRID_API int64_t mgrid_group_prev(const mgrid_group *g, bool wrap);
/* Position of a global rank in the group, or -1. */
MGRID_API int64_t mgrid_group_position_of(const mgrid_group *g, int64_t rank);
/* For a family with a Cartesian shape (mgrid_options.cartesian), as MPI_Cart_shift: the positions that this rank
** receives from and sends to when all ranks of the group send `displacement` steps along a dim; -1 where that
** is past an end that is not periodic. Neither needs a communicator. Either output may be NULL.
** MGRID_REFUSED for a family without a shape, MGRID_UNKNOWN_NAME for a dim that it has not; both are -1 then. */
MGRID_API mgrid_status mgrid_group_shift(const mgrid_group *g, const char *dim, int64_t displacement, int64_t *source,
                                         int64_t *dest, mgrid_error *err);
/* Write all members in order, mgrid_group_size(g) of them. */
MGRID_API void mgrid_group_ranks(const mgrid_group *g, int32_t *out);
/* Where calls on the group come among those on this rank's other groups: a trainer that uses several at a time
** launches the lowest number first. Equal on all members, and no two groups of a rank have the same. Families of a
** list of mgrid_topology_concurrent come in its order, others as they are created. Local, O(modes). */
MGRID_API int64_t mgrid_group_launch_order(const mgrid_group *g);
/* A piece of a group that no communicator is made for: trainers whose pieces change from step to step ask anew in
** every step, since asking is local and costs O(n). */
typedef struct mgrid_segment {
  size_t  size;        /* sizeof(mgrid_segment) */
  int64_t index;       /* which segment of the group this rank is in */
  int64_t start;       /* its first position in the group */
  int64_t members;     /* how many ranks it has */
  int64_t position;    /* of this rank in it, 0 to members - 1 */
  int64_t first, last; /* global ranks of its first and last position */
  int64_t next, prev;  /* global ranks beside this one, around the ends of the segment; alone: this rank */
} mgrid_segment;
#define MGRID_SEGMENT_INIT \
  { sizeof(mgrid_segment), -1, -1, -1, -1, -1, -1, -1, -1 }
/* Cut the group into n consecutive pieces, the first of sizes[0] members and so on, as mgrid_family_segments does with
** a family, and say which one this rank is in. The sizes, each 1 or more, sum to the group's, or one is MGRID_FILL. A
** refusal leaves *out as it was. Local, no allocation. Position p of the segment is global rank
** mgrid_group_at(g, out->start + p). */
MGRID_API mgrid_status mgrid_group_segment(const mgrid_group *g, size_t n, const int64_t *sizes, mgrid_segment *out,
                                           mgrid_error *err);
/* The backend that made the group's communicator: "mpi" or "nccl" (a family may ask for one with the
** option `backend`); of a state without communicators "dry", "pmix" or "carrier"; "none" where the family asked for
** that, "" for another group of one rank that has no communicator of its own. */
MGRID_API const char *mgrid_group_backend(const mgrid_group *g);
/* The communicator, or NULL: most groups of one rank, a lazy family not created yet, backend "none", a dry state. See
** mgrid_mpi_comm in moongrid_mpi.h and mgrid_nccl_comm in moongrid_nccl.h, which read it. */
MGRID_API void *mgrid_group_native(const mgrid_group *g);
/* What mgrid_group_native points to. */
typedef enum mgrid_native {
  MGRID_NATIVE_NONE, /* no communicator */
  MGRID_NATIVE_MPI,  /* an MPI_Comm */
  MGRID_NATIVE_NCCL, /* an mgrid_nccl_pair */
  MGRID_NATIVE_OTHER /* what the header of its backend says: mgrid_group_backend */
} mgrid_native;
MGRID_API mgrid_native mgrid_group_native_kind(const mgrid_group *g);

#ifdef __cplusplus
}
#endif

#include "moongrid_backend.h"
#include "moongrid_carrier.h"
#include "moongrid_elastic.h"
#include "moongrid_family.h"
#include "moongrid_resources.h"
#include "moongrid_recipe.h"
#include "moongrid_tensor.h"
#endif
