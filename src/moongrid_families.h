/* SPDX-License-Identifier: MIT
**
** moongrid_families.h - grids with named dims, and families of groups: along dims of a grid, made
** of other families, by modes, or as lists.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* which includes this header in its place */
#elif !defined MOONGRID_FAMILIES_H
#define MOONGRID_FAMILIES_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- grids */

/* The ranks of a grid: `size` consecutive ranks, from `offset` on, in a world of `world` ranks. */
typedef struct mgrid_window {
  int64_t world, offset, size;
} mgrid_window;

/* Return the window that is a whole world of `size` ranks. */
MGRID_API mgrid_window mgrid_world(int64_t size);

#define MGRID_FILL (-1) /* size of the one dim that takes all ranks left by the other dims */

typedef struct mgrid_dim {
  const char *name; /* a letter or _, then letters, digits or _; at most 31 */
  int64_t size;     /* 1 to 2^31 - 1, or MGRID_FILL */
} mgrid_dim;

typedef struct mgrid_grid mgrid_grid;
typedef struct mgrid_family mgrid_family;

/* Make a grid of n dims over a window, fastest-varying first: the stride of a dim is the product of
** the sizes before it. n is 0 to 64; at most one size is MGRID_FILL. The product must be the
** window's size; if not, the error has the nearest sizes that fit. */
MGRID_API mgrid_grid *mgrid_grid_new(mgrid_window window, size_t n, const mgrid_dim *dims,
                                     mgrid_error *err);
/* Make a grid over the ranks of a family that has one group, in the order of that group: position 0
** of the grid is the rank at position 0 of the group. So a grid may lie over ranks 7, 6, ... 0
** (mgrid_family_table) or over every second rank; its coordinates, families and text follow that
** order. If modes can express the order (a strided family, regular lists), the families along its
** dims are strided as well; else they are explicit tables, O(ranks) each. `order` stays the
** caller's. O(modes) for a strided family, else O(its ranks). */
MGRID_API mgrid_grid *mgrid_grid_over(const mgrid_family *order, size_t n, const mgrid_dim *dims,
                                      mgrid_error *err);
MGRID_API mgrid_grid *mgrid_grid_ref(const mgrid_grid *g); /* another owner; never fails */
MGRID_API void mgrid_grid_free(mgrid_grid *g);

MGRID_API size_t mgrid_grid_ndims(const mgrid_grid *g);
MGRID_API mgrid_dim mgrid_grid_dim(const mgrid_grid *g, size_t i); /* i in [0, ndims) */
/* Return the window from the grid's lowest rank to its highest. A grid of mgrid_grid_over may lack
** some ranks of it. */
MGRID_API mgrid_window mgrid_grid_window(const mgrid_grid *g);
/* number of ranks: the product of the sizes */
MGRID_API int64_t mgrid_grid_size(const mgrid_grid *g);
/* Return the index of a dim, or -1 if the grid has no dim of that name. */
MGRID_API int64_t mgrid_grid_find(const mgrid_grid *g, const char *dim);
/* Return the rank's position in the grid's order, 0 to size - 1, or -1 for a rank outside the grid.
** This and the next two are O(dims); over another order O(dims + modes), or O(log size) if the
** order is a table. */
MGRID_API int64_t mgrid_grid_position(const mgrid_grid *g, int64_t rank);
/* Return the rank's coordinate in dim i, or -1 for a rank outside the grid. */
MGRID_API int64_t mgrid_grid_coord(const mgrid_grid *g, int64_t rank, size_t i);
/* Return the rank at coords[0..ndims), or -1 if a coordinate is out of range. */
MGRID_API int64_t mgrid_grid_rank(const mgrid_grid *g, const int64_t *coords);
/* Return whether both have the same dims in the same order over the same ranks in the same order;
** their worlds may differ. O(dims + modes), or O(ranks) if both orders are tables. */
MGRID_API bool mgrid_grid_equal(const mgrid_grid *a, const mgrid_grid *b);
/* Write "tp 2 x pp 2 x dp 2 over ranks 0..7", as snprintf. Ranks in another order are written as
** modes ("over ranks (4:2)" is 0, 2, 4, 6) or as a list ("over ranks 3,2,1,0"). */
MGRID_API size_t mgrid_grid_describe(const mgrid_grid *g, char *buf, size_t len);

/* These four make a new grid over the same ranks. */
/* Cut dim `dim` into n dims, fastest first, whose product is its size; one may be MGRID_FILL. If
** they do not fit, the error has the nearest sizes. O(dims). */
MGRID_API mgrid_grid *mgrid_grid_unflatten(const mgrid_grid *g, const char *dim, size_t n,
                                           const mgrid_dim *dims, mgrid_error *err);
/* Merge n dims that follow each other in the grid's order into one, `name`. They keep the grid's
** order, whatever the order of the names. Dims of size 1 between them are moved behind the new dim.
** O(dims). */
MGRID_API mgrid_grid *mgrid_grid_flatten(const mgrid_grid *g, const char *name, size_t n,
                                         const char *const *dims, mgrid_error *err);
/* Rename dims: names[i] for dim i of all ndims; NULL keeps the name. O(dims). */
MGRID_API mgrid_grid *mgrid_grid_rename(const mgrid_grid *g, const char *const *names,
                                        mgrid_error *err);
/* Keep the ranks at fixed coordinates: coords[i] of dim i of all ndims, or -1 to leave the dim
** free. The result has the free dims, in the same order; its families leave out all other ranks.
** O(dims + modes), or O(ranks that are kept) if the grid's order follows no modes. */
MGRID_API mgrid_grid *mgrid_grid_at(const mgrid_grid *g, const int64_t *coords, mgrid_error *err);

/* ---------------------------------------------------------------- families */

typedef enum mgrid_order {
  MGRID_GRID_ORDER = 0, /* members in the grid's order, whatever the order of the names */
  MGRID_AS_WRITTEN = 1  /* the first name varies fastest */
} mgrid_order;

/* Make the family of the named dims: they vary inside a group, and the other dims number the
** groups, in grid order. Without dims (n = 0) each rank is a group. */
MGRID_API mgrid_family *mgrid_grid_along(const mgrid_grid *g, size_t n, const char *const *dims,
                                         mgrid_order order, mgrid_error *err);
/* The same, with the dims that number the groups in a chosen order, first fastest. Name each dim of
** the grid that is larger than 1 once, inside or as index. */
MGRID_API mgrid_family *mgrid_grid_along_by(const mgrid_grid *g, size_t n, const char *const *dims,
                                            size_t nindex, const char *const *index,
                                            mgrid_error *err);

MGRID_API mgrid_family *mgrid_family_ref(const mgrid_family *f); /* another owner; never fails */
MGRID_API void mgrid_family_free(mgrid_family *f);

/* Cut each group into runs of k consecutive positions: *inner gets the runs, *outer the ranks at
** equal positions of the runs. The runs of a group follow each other in the order of the result.
** For a family of a grid, k must meet a boundary of its modes; if it does not, the error has the
** sizes that do, or with `lists` the runs are cut anyway, without modes. Picked and zipped families
** are always cut that way, O(1). If groups differ in size, `lists` makes explicit lists, O(world).
** Either output may be NULL. With `by_row` groups are counted by rows: first the groups of the
** family vary, then the runs (for *outer the positions), so that group i of *inner lies in group i
** % mgrid_family_count(f) of f; all groups have one size then. */
MGRID_API mgrid_status mgrid_family_split(const mgrid_family *f, int64_t k, bool lists, bool by_row,
                                          mgrid_family **inner, mgrid_family **outer,
                                          mgrid_error *err);
/* Cut each group into segments: the first sizes[0] members, then sizes[1], and so on. The segments
** of a group follow each other in the order of the result. The sizes sum to the group size, or one
** is MGRID_FILL and takes the rest. The groups of f share no ranks and have one size (in a union,
** one size in each family). O(n) time and memory in any world; questions to the result cost O(log
** n) more than those to f. Equal sizes make a split, which follows modes if it can. */
MGRID_API mgrid_family *mgrid_family_segments(const mgrid_family *f, size_t n, const int64_t *sizes,
                                              mgrid_error *err);
/* Split repeatedly: out[i] gets the groups of level i, of sizes[i] ranks, the innermost first. The
** product of the n sizes must be the group size; out has room for n. Groups of a level are counted
** by the positions below it first, then by the runs of a group, then by the groups. */
MGRID_API mgrid_status mgrid_family_levels(const mgrid_family *f, size_t n, const int64_t *sizes,
                                           mgrid_family **out, mgrid_error *err);
/* Keep n positions of every group, in the order given; negative ones count from the end, and a
** position given twice counts once. */
MGRID_API mgrid_family *mgrid_family_pick(const mgrid_family *f, size_t n, const int64_t *positions,
                                          mgrid_error *err);
/* The same, by a function of the group size: it writes at most `cap` positions and returns their
** number, or -1 after filling *err. Its result must depend on `size` alone. */
typedef int64_t (*mgrid_pick_fn)(void *ud, int64_t size, int64_t *positions, int64_t cap,
                                 mgrid_error *err);
MGRID_API mgrid_family *mgrid_family_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud,
                                             mgrid_error *err);
/* Keep the groups whose ranks are all at fixed coordinates of a grid, in the order of f: coords[i]
** of dim i of all mgrid_grid_ndims(g), or -1 for any. So the groups of tp in the first stage are
** those at pp 0. f may be made of another grid; a rank outside of g is at no coordinate.
** MGRID_REFUSED if no group is left, for example because a dim varies inside the groups. O(modes)
** for a strided family and a grid over a window; else O(members), and explicit lists if the groups
** that are left follow no rule. */
MGRID_API mgrid_family *mgrid_family_where(const mgrid_family *f, const mgrid_grid *g,
                                           const int64_t *coords, mgrid_error *err);
/* Reorder the groups: group i of the result is group order[i] of f. `order` has all n groups, each
** once. O(n) time; the result is a rule if the order follows modes, else explicit lists,
** O(members). */
MGRID_API mgrid_family *mgrid_family_renumber(const mgrid_family *f, size_t n, const int64_t *order,
                                              mgrid_error *err);
/* Keep n groups, in the order of the list, each once; negative ones count from the end. O(n log n)
** time; the result is a rule if the list follows modes, else explicit lists, O(members). */
MGRID_API mgrid_family *mgrid_family_select(const mgrid_family *f, size_t n, const int64_t *groups,
                                            mgrid_error *err);
/* Join every n consecutive groups: the members of the first, then those of the second, and so on.
** In a union, groups are counted over all its families; if a bundle has groups of two of them, the
** result is explicit lists, O(members).
*/
MGRID_API mgrid_family *mgrid_family_bundle(const mgrid_family *f, int64_t n, mgrid_error *err);
/* Make pairs of the ranks at positions i and i + step of every group; with `wrap` also those around
** the end, each pair once: a ring of two ranks is one pair. The result is a cover: a rank may be in
** two groups. step is 1 to size -
** 1. Groups of one rank give no pairs. */
MGRID_API mgrid_family *mgrid_family_neighbours(const mgrid_family *f, int64_t step, bool wrap,
                                                mgrid_error *err);
/* Make the family of all groups of n families, one family after the other. They must not share
** ranks. */
MGRID_API mgrid_family *mgrid_family_union(size_t n, const mgrid_family *const *fs,
                                           mgrid_error *err);
/* Join group i of each family into group i. The families share no ranks, and have equally many
** groups. With `spread` they may have fewer groups, each of which serves several: if the largest
** family has n groups, group i of the result has group i * count / n, rounded down, of a family of
** `count` groups. So a family of one group is in all of them, and of 6 groups over 10 each is in
** one or two. If counts differ, the result is a cover of explicit lists, O(members). */
MGRID_API mgrid_family *mgrid_family_zip(size_t n, const mgrid_family *const *fs, bool spread,
                                         mgrid_error *err);

/* `size` places, `stride` ranks apart. */
typedef struct mgrid_mode {
  int64_t size, stride;
} mgrid_mode;

/* Make a family of modes, the first one fastest: position p of group i is rank offset + (digits of
** i times their strides in `index`) + (digits of p times their strides in `inside`). Without inside
** modes groups have one rank; without index modes there is one group. Sizes and strides are 1 or
** more; the stride of a size 1 is ignored and may be 0. Ranks count from the start of the world,
** and must lie in the window; no rank occurs twice. O(modes), unless modes interleave so that
** division does not find a rank, as in (3:2) x (2:3): those become explicit lists, O(members). */
MGRID_API mgrid_family *mgrid_family_modes(mgrid_window window, int64_t offset, size_t ninside,
                                           const mgrid_mode *inside, size_t nindex,
                                           const mgrid_mode *index, mgrid_error *err);
/* The same from text: inside modes, then " x " and index modes, then " + " and the offset; the last
** two may be left out. Modes are written "(2:1)(4:8)", or "(1)" for none, as mgrid_family_describe
** does (what it writes is read back to an equal family), or with sizes and strides apart,
** "(2,4):(1,8)" or "8:1", nested or not, as in CuTe and torch. The first mode is the fastest, as in
** CuTe; torch's last one is, so read a layout of torch from the right. MGRID_BAD_VALUE names the
** character that does not fit. */
MGRID_API mgrid_family *mgrid_family_parse(mgrid_window window, const char *text, mgrid_error *err);

typedef enum mgrid_coverage {
  MGRID_PARTITION = 0, /* every rank of the window is in exactly one group */
  MGRID_PARTIAL = 1,   /* each rank is in at most one group */
  MGRID_COVER = 2      /* a rank may be in several groups */
} mgrid_coverage;

/* Make a family of explicit lists: group i is ranks[starts[i]] .. ranks[starts[i+1] - 1]. The lists
** must be what `declared` says. O(members); regular lists are recognized, and cost nothing
** afterwards. */
MGRID_API mgrid_family *mgrid_family_table(mgrid_window window, int64_t ngroups,
                                           const int64_t *starts, const int64_t *ranks,
                                           mgrid_coverage declared, mgrid_error *err);
/* Change every group by a function: it gets n members in `ranks`, replaces them by at most `cap`
** others, and returns their number, or -1 after filling *err. The new groups share no ranks. The
** result is explicit lists, O(world). */
typedef int64_t (*mgrid_map_fn)(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                                mgrid_error *err);
MGRID_API mgrid_family *mgrid_family_map(const mgrid_family *f, mgrid_map_fn fn, void *ud,
                                         mgrid_error *err);
/* Leave out n ranks; members and groups keep their order. A group that loses all its members is
** left out, so later groups get lower indices, and there may be no group left. A rank that is in no
** group, or given twice, changes nothing; one outside the world is refused. The result is a cover
** only if a rank still is in several groups. O(members); regular lists are recognized, as by
** mgrid_family_table. */
MGRID_API mgrid_family *mgrid_family_without(const mgrid_family *f, size_t n, const int64_t *ranks,
                                             mgrid_error *err);
/* Make the same groups as explicit lists, for operations that need them. O(world). */
MGRID_API mgrid_family *mgrid_family_lists(const mgrid_family *f, mgrid_error *err);
/* Make the same groups, which in a topology get communicators of their own. */
MGRID_API mgrid_family *mgrid_family_twin(const mgrid_family *f, mgrid_error *err);

/* Return whether both have the same groups in the same order, with members in the same order.
** O(modes) for families of grids; others are compared by the modes of their parts, and group by
** group if these do not decide it (long lists). */
MGRID_API bool mgrid_family_equal(const mgrid_family *a, const mgrid_family *b);

MGRID_API int64_t mgrid_family_world(const mgrid_family *f);
MGRID_API int64_t mgrid_family_count(const mgrid_family *f);               /* groups */
MGRID_API int64_t mgrid_family_size(const mgrid_family *f, int64_t group); /* -1: no such group */
MGRID_API int64_t mgrid_family_max_size(const mgrid_family *f);
MGRID_API int64_t mgrid_family_total(const mgrid_family *f); /* members of all groups */
/* MGRID_PARTITION: of the world */
MGRID_API mgrid_coverage mgrid_family_coverage(const mgrid_family *f);
/* Return the rank at a position of a group, or -1. O(modes). */
MGRID_API int64_t mgrid_family_rank(const mgrid_family *f, int64_t group, int64_t position);
/* Find the rank's nth group (from 0; only in a cover is there more than one) and its position in
** it; return false if there is none. O(modes). */
MGRID_API bool mgrid_family_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                                   int64_t *position);
/* Write the members of n groups from `group` on, in order, one group after the other, at most `cap`
** of them; return how many members they have, or -1 if there are no such groups. For many small
** groups this is several times faster than a call for each. */
MGRID_API int64_t mgrid_family_members(const mgrid_family *f, int64_t group, int64_t n, size_t cap,
                                       int64_t *out);
/* Write the rule as canonical text, as snprintf: equal strided families have equal text. "(2:1) x
** (4:2)" is 4 groups, 2 apart, of 2 neighbours. */
MGRID_API size_t mgrid_family_describe(const mgrid_family *f, char *buf, size_t len);

#ifdef __cplusplus
}
#endif
#endif
