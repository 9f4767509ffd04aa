/* SPDX-License-Identifier: MIT
**
** moongrid_families.h - grids with named dims, and families of groups. A family follows dims of a
** grid, other families, modes, or lists.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_FAMILIES_H
#define MOONGRID_FAMILIES_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- grids */

/* A window is `size` consecutive ranks of a world of `world` ranks; `offset` is the first one. */
typedef struct mgrid_window {
  int64_t world, offset, size;
} mgrid_window;

/* Return the window that covers a whole world of `size` ranks. */
MGRID_API mgrid_window mgrid_world(int64_t size);

#define MGRID_FILL (-1) /* size of the one dim that takes all ranks that the other dims leave */

typedef struct mgrid_dim {
  const char *name; /* a letter or _, then letters, digits or _; at most 31 */
  int64_t size;     /* 1 to 2^31 - 1, or MGRID_FILL */
} mgrid_dim;

typedef struct mgrid_grid mgrid_grid;
typedef struct mgrid_family mgrid_family;

/* Make a grid of n dims over a window. The first dim varies fastest: the stride of a dim is the
** product of the sizes of the dims before it. n is 0 to 64; at most one size is MGRID_FILL. The
** product of the sizes must be the window's size; if it is not, the error names the nearest sizes
** that fit. */
MGRID_API mgrid_grid *mgrid_grid_new(mgrid_window window, size_t n, const mgrid_dim *dims,
                                     mgrid_error *err);
/* Make a grid over the ranks of a family that has one group, in the order of that group: position 0
** of the grid is the rank at position 0 of the group. So a grid may lie over ranks 7, 6, ... 0
** (mgrid_family_table) or over every second rank; its coordinates, families and text follow that
** order. The families along the grid's dims are strided if the order is, and if the dims begin and
** end where modes of the order do; else they are explicit tables, O(ranks) each. The caller keeps
** `order`. The call takes O(modes) for a strided family, else O(ranks of the grid). */
MGRID_API mgrid_grid *mgrid_grid_over(const mgrid_family *order, size_t n, const mgrid_dim *dims,
                                      mgrid_error *err);
MGRID_API mgrid_grid *mgrid_grid_ref(const mgrid_grid *g); /* adds an owner; never fails */
MGRID_API void mgrid_grid_free(mgrid_grid *g);

MGRID_API size_t mgrid_grid_ndims(const mgrid_grid *g);
MGRID_API mgrid_dim mgrid_grid_dim(const mgrid_grid *g, size_t i); /* i in [0, ndims) */
/* Return the window from the grid's lowest rank to its highest. A grid made by mgrid_grid_over may
** lack some ranks of that window. */
MGRID_API mgrid_window mgrid_grid_window(const mgrid_grid *g);
/* Return the number of ranks: the product of the sizes. */
MGRID_API int64_t mgrid_grid_size(const mgrid_grid *g);
/* Return the index of a dim, or -1 if the grid has no dim of that name. */
MGRID_API int64_t mgrid_grid_find(const mgrid_grid *g, const char *dim);
/* Return the rank's position in the grid's order, 0 to size - 1, or -1 for a rank outside the grid.
** This function, mgrid_grid_coord and mgrid_grid_rank take O(dims). For a grid made by
** mgrid_grid_over they take O(dims + modes), or O(log size) if its order is a table. */
MGRID_API int64_t mgrid_grid_position(const mgrid_grid *g, int64_t rank);
/* Return the rank's coordinate in dim i, or -1 for a rank outside the grid. */
MGRID_API int64_t mgrid_grid_coord(const mgrid_grid *g, int64_t rank, size_t i);
/* Return the rank at coords[0..ndims), or -1 if a coordinate is out of range. */
MGRID_API int64_t mgrid_grid_rank(const mgrid_grid *g, const int64_t *coords);
/* Return whether both have the same dims in the same order over the same ranks in the same order;
** their worlds may differ. O(dims + modes), or O(ranks) if both orders are tables. */
MGRID_API bool mgrid_grid_equal(const mgrid_grid *a, const mgrid_grid *b);
/* Write text such as "tp 2 x pp 2 x dp 2 over ranks 0..7", like snprintf. Ranks in another order
** are written as modes ("over ranks (4:2)" is 0, 2, 4, 6) or as a list ("over ranks 3,2,1,0"). */
MGRID_API size_t mgrid_grid_describe(const mgrid_grid *g, char *buf, size_t len);

/* The next four functions make a new grid from a grid. */
/* Cut dim `dim` into n dims, the fastest first. The product of their sizes must be the size of
** `dim`; one size may be MGRID_FILL. If they do not fit, the error names the nearest sizes.
** O(dims). */
MGRID_API mgrid_grid *mgrid_grid_unflatten(const mgrid_grid *g, const char *dim, size_t n,
                                           const mgrid_dim *dims, mgrid_error *err);
/* Merge n dims that follow each other in the grid's order into one, `name`. They keep the grid's
** order, whatever the order of the names. A dim of size 1 between them comes after the new dim.
** O(dims). */
MGRID_API mgrid_grid *mgrid_grid_flatten(const mgrid_grid *g, const char *name, size_t n,
                                         const char *const *dims, mgrid_error *err);
/* Rename dims. `names` has one element for each dim: names[i] is the new name of dim i; NULL keeps
** the old one. O(dims). */
MGRID_API mgrid_grid *mgrid_grid_rename(const mgrid_grid *g, const char *const *names,
                                        mgrid_error *err);
/* Keep the ranks at fixed coordinates. `coords` has one element for each dim: coords[i] is the
** coordinate in dim i, or -1 to leave the dim free. The result has the free dims, in the same
** order; its families contain only the kept ranks. O(dims + modes), or O(kept ranks) if the grid's
** order follows no modes. */
MGRID_API mgrid_grid *mgrid_grid_at(const mgrid_grid *g, const int64_t *coords, mgrid_error *err);

/* ---------------------------------------------------------------- families */

typedef enum mgrid_order {
  MGRID_GRID_ORDER = 0, /* members in the grid's order, whatever the order of the names */
  MGRID_AS_WRITTEN = 1  /* the first name varies fastest */
} mgrid_order;

/* Make the family along the named dims. They vary inside a group; the other dims number the groups,
** in the grid's order. Without dims (n = 0) each rank is a group of its own. */
MGRID_API mgrid_family *mgrid_grid_along(const mgrid_grid *g, size_t n, const char *const *dims,
                                         mgrid_order order, mgrid_error *err);
/* Make the family along the named dims, the first name fastest (as MGRID_AS_WRITTEN). `index` gives
** the order of the dims that number the groups, the fastest first. Name each dim that is larger
** than 1 exactly once, in `dims` or in `index`. */
MGRID_API mgrid_family *mgrid_grid_along_by(const mgrid_grid *g, size_t n, const char *const *dims,
                                            size_t nindex, const char *const *index,
                                            mgrid_error *err);

MGRID_API mgrid_family *mgrid_family_ref(const mgrid_family *f); /* adds an owner; never fails */
MGRID_API void mgrid_family_free(mgrid_family *f);

/* Cut each group into runs of k consecutive positions; k divides the group size, and the groups of
** f share no ranks. The groups of *inner are the runs; a group of *outer has the ranks at one
** position of all runs of a group. In both, groups from one group of f follow each other. For a
** family of a grid, k must end at a boundary of its modes. If it does not, the error names the
** sizes that do; with `lists` the runs are cut all the same, without modes. Picked and zipped
** families are always cut without modes, O(1). If groups differ in size, f must be explicit lists
** or a union; with `lists` any other family becomes explicit lists, O(world). Either output may be
** NULL. `by_row` counts the groups by rows: the groups of f vary first, then the runs (for *outer
** the positions). So group i of *inner lies in group i % mgrid_family_count(f) of f. All groups
** must then have one size. */
MGRID_API mgrid_status mgrid_family_split(const mgrid_family *f, int64_t k, bool lists, bool by_row,
                                          mgrid_family **inner, mgrid_family **outer,
                                          mgrid_error *err);
/* Cut each group into segments: the first sizes[0] members, then sizes[1], and so on. The segments
** of a group follow each other in the order of the result. The sizes sum to the group size, or one
** is MGRID_FILL and takes the rest. The groups of f must share no ranks and have one size (in a
** union, one size in each family). O(n) time and memory in any world. A question to the result
** costs O(log n) more than to f. If all sizes are equal, the result is *inner of mgrid_family_split
** with `lists`. */
MGRID_API mgrid_family *mgrid_family_segments(const mgrid_family *f, size_t n, const int64_t *sizes,
                                              mgrid_error *err);
/* Split several times. out[i] gets the family of level i, whose groups have sizes[i] ranks; level 0
** is the innermost. The product of the n sizes must be the group size; `out` has room for n
** families. The groups of a level are in this order: the positions below the level vary first, then
** the runs of a group, then the groups of f. */
MGRID_API mgrid_status mgrid_family_levels(const mgrid_family *f, size_t n, const int64_t *sizes,
                                           mgrid_family **out, mgrid_error *err);
/* Keep n positions of every group, in the given order. A negative position counts from the end. A
** position that is given twice counts once. */
MGRID_API mgrid_family *mgrid_family_pick(const mgrid_family *f, size_t n, const int64_t *positions,
                                          mgrid_error *err);
/* Pick positions by a function of the group size. The function writes at most `cap` positions and
** returns their number, or fills *err and returns -1. Its result must depend on `size` alone. */
typedef int64_t (*mgrid_pick_fn)(void *ud, int64_t size, int64_t *positions, int64_t cap,
                                 mgrid_error *err);
MGRID_API mgrid_family *mgrid_family_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud,
                                             mgrid_error *err);
/* Keep the groups whose ranks are all at fixed coordinates of a grid, in the order of f. `coords`
** has mgrid_grid_ndims(g) elements: coords[i] is the coordinate in dim i, or -1 for any. For
** example, with f along tp, pp = 0 keeps the groups in the first stage. f may be made from another
** grid; a rank outside g is at no coordinates. The error is MGRID_REFUSED if no group is left, for
** example because a fixed dim varies inside the groups. O(modes) for a strided family and a grid
** over a window; else O(members), and explicit lists if the kept groups follow no rule. */
MGRID_API mgrid_family *mgrid_family_where(const mgrid_family *f, const mgrid_grid *g,
                                           const int64_t *coords, mgrid_error *err);
/* Reorder the groups: group i of the result is group order[i] of f. `order` lists all n groups,
** each once. O(n) time. For a strided, picked or zipped family and an order that follows modes, the
** result follows a rule, too; else it is explicit lists, O(members). */
MGRID_API mgrid_family *mgrid_family_renumber(const mgrid_family *f, size_t n, const int64_t *order,
                                              mgrid_error *err);
/* Keep n groups, in the order of the list. List a group only once; a negative number counts from
** the end. O(n log n) time. The result has a rule, or is explicit lists, as in
** mgrid_family_renumber. */
MGRID_API mgrid_family *mgrid_family_select(const mgrid_family *f, size_t n, const int64_t *groups,
                                            mgrid_error *err);
/* Join every n consecutive groups into one: the members of the first, then those of the second, and
** so on. n divides the number of groups, which share no ranks. In a union, groups are counted over
** all its families. If a new group would have groups of two of its families, the result is explicit
** lists, O(members). MGRID_REFUSED if no modes describe the result; then bundle the lists of
** mgrid_family_lists. */
MGRID_API mgrid_family *mgrid_family_bundle(const mgrid_family *f, int64_t n, mgrid_error *err);
/* Make a pair of the ranks at positions i and i + step of every group. `wrap` adds the pairs around
** the end. Each pair occurs once, so a ring of two ranks is one pair. The result is a cover: a rank
** may be in two pairs. (Of groups of two ranks it is f itself.) `step` is 1 to the group size minus
** 1. A group of one rank gives no pairs. The groups of f share no ranks. */
MGRID_API mgrid_family *mgrid_family_neighbours(const mgrid_family *f, int64_t step, bool wrap,
                                                mgrid_error *err);
/* Make one family of all groups of n families: first those of fs[0], then those of fs[1], and so
** on. The families must not share ranks. */
MGRID_API mgrid_family *mgrid_family_union(size_t n, const mgrid_family *const *fs,
                                           mgrid_error *err);
/* Join group i of each family into group i. The families must share no ranks and have equally many
** groups. With `spread` a family may have fewer groups, and one of its groups goes into several of
** the result: if the largest family has n groups, group i of the result has group i * count / n,
** rounded down, of a family of `count` groups. So a family of one group goes into every group; if 6
** groups meet 10, each goes into one or two. If counts differ, the result is a cover of explicit
** lists, O(members). */
MGRID_API mgrid_family *mgrid_family_zip(size_t n, const mgrid_family *const *fs, bool spread,
                                         mgrid_error *err);

/* Join all ranks that share a group in any of n families, directly or by a chain of such groups.
** The families may share ranks. Members ascend, and groups are counted by their lowest ranks.
** O(modes) for up to 8 strided families over the same ranks whose strides and sizes divide each
** other; else O(members + world), and explicit lists if the groups follow no rule. MGRID_REFUSED:
** there is no family, or their worlds differ. */
MGRID_API mgrid_family *mgrid_family_closure(size_t n, const mgrid_family *const *fs,
                                             mgrid_error *err);

/* A mode is `size` steps of `stride` ranks. */
typedef struct mgrid_mode {
  int64_t size, stride;
} mgrid_mode;

/* Make a family of modes; the first mode varies fastest. The rank at position p of group i is
** offset + (digits of i times their strides in `index`) + (digits of p times their strides in
** `inside`). Without inside modes a group has one rank; without index modes there is one group.
** Sizes and strides are 1 or more; the stride of a mode of size 1 is ignored and may be 0. Ranks
** count from the start of the world, and must lie in the window; no rank may occur twice. O(modes);
** but modes that interleave so that division does not find a rank, as in (3:2) x (2:3), become
** explicit lists, O(members). */
MGRID_API mgrid_family *mgrid_family_modes(mgrid_window window, int64_t offset, size_t ninside,
                                           const mgrid_mode *inside, size_t nindex,
                                           const mgrid_mode *index, mgrid_error *err);
/* Make a family of modes from text: the inside modes, then " x " and the index modes, then " + "
** and the offset. The index modes and the offset may be left out. Write modes as
** mgrid_family_describe does, "(2:1)(4:8)", or "(1)" for none. Or write sizes and strides apart,
** "(2,4):(1,8)" or "8:1", nested or not, as CuTe and torch do. The text of mgrid_family_describe of
** a strided family gives an equal family. The first mode varies fastest, as in CuTe. In torch the
** last one does, so write the modes of a torch layout in reverse. The error MGRID_BAD_VALUE names
** the character that does not fit. */
MGRID_API mgrid_family *mgrid_family_parse(mgrid_window window, const char *text, mgrid_error *err);

typedef enum mgrid_coverage {
  MGRID_PARTITION = 0, /* every rank of the window is in exactly one group */
  MGRID_PARTIAL = 1,   /* each rank is in at most one group */
  MGRID_COVER = 2      /* a rank may be in several groups */
} mgrid_coverage;

/* Make a family of explicit lists: group i is ranks[starts[i]] .. ranks[starts[i+1] - 1]. starts[0]
** is 0. `declared` is what the lists may be: for MGRID_PARTITION exactly that, for MGRID_PARTIAL
** also a partition, for MGRID_COVER any lists without a rank twice in a group. O(members). Lists
** without shared ranks that follow modes become a strided family. */
MGRID_API mgrid_family *mgrid_family_table(mgrid_window window, int64_t ngroups,
                                           const int64_t *starts, const int64_t *ranks,
                                           mgrid_coverage declared, mgrid_error *err);
/* Change every group by a function. The function gets n members in `ranks`, replaces them by 1 to
** `cap` others, and returns their number, or fills *err and returns -1. The new groups must share
** no ranks, unless f is a cover. The result is explicit lists, O(world), or a strided family if
** they follow modes. */
typedef int64_t (*mgrid_map_fn)(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                                mgrid_error *err);
MGRID_API mgrid_family *mgrid_family_map(const mgrid_family *f, mgrid_map_fn fn, void *ud,
                                         mgrid_error *err);
/* Leave out n ranks; members and groups keep their order. A group that loses all its members is
** left out: later groups get lower numbers, and there may be no group left. A rank that is in no
** group, or is given twice, changes nothing; a rank outside the world is refused. The result is a
** cover only if some rank is still in several groups. O(members). Lists that follow modes become a
** strided family, as in mgrid_family_table. */
MGRID_API mgrid_family *mgrid_family_without(const mgrid_family *f, size_t n, const int64_t *ranks,
                                             mgrid_error *err);
/* Make the same groups as explicit lists, for operations that need them. O(world). */
MGRID_API mgrid_family *mgrid_family_lists(const mgrid_family *f, mgrid_error *err);
/* Make a family of the same groups. In a topology it gets communicators of its own. */
MGRID_API mgrid_family *mgrid_family_twin(const mgrid_family *f, mgrid_error *err);

/* Return whether both have the same groups in the same order, with members in the same order, in
** worlds of one size. O(modes) for families of grids. Other families are compared by the modes of
** their parts; if these cannot tell, as for long lists, group by group. */
MGRID_API bool mgrid_family_equal(const mgrid_family *a, const mgrid_family *b);

MGRID_API int64_t mgrid_family_world(const mgrid_family *f);
MGRID_API int64_t mgrid_family_count(const mgrid_family *f);               /* groups */
MGRID_API int64_t mgrid_family_size(const mgrid_family *f, int64_t group); /* -1: no such group */
MGRID_API int64_t mgrid_family_max_size(const mgrid_family *f);
MGRID_API int64_t mgrid_family_total(const mgrid_family *f); /* members of all groups */
/* MGRID_PARTITION means that every rank of the world is in exactly one group. f NULL:
** MGRID_PARTIAL. */
MGRID_API mgrid_coverage mgrid_family_coverage(const mgrid_family *f);
/* Return the rank at a position of a group, or -1. O(modes). */
MGRID_API int64_t mgrid_family_rank(const mgrid_family *f, int64_t group, int64_t position);
/* Find the nth group of a rank, counted from 0, and the rank's position in it. Return false if
** there is none. Either output may be NULL. Only in a cover is a rank in more than one group.
** O(modes). */
MGRID_API bool mgrid_family_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                                   int64_t *position);
/* Write the members of n groups, from number `group` on: one group after the other, the members of
** each in order, at most `cap` in all. Return how many members these groups have, or -1 if there
** are no such groups. For many small groups this is several times faster than a call for each. */
MGRID_API int64_t mgrid_family_members(const mgrid_family *f, int64_t group, int64_t n, size_t cap,
                                       int64_t *out);
/* Write the rule as canonical text, like snprintf. Equal strided families have equal text. "(2:1) x
** (4:2)" means 4 groups of 2 adjacent ranks; the groups start 2 ranks apart. */
MGRID_API size_t mgrid_family_describe(const mgrid_family *f, char *buf, size_t len);

#ifdef __cplusplus
}
#endif
#endif
