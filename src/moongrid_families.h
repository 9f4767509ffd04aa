/* SPDX-License-Identifier: MIT
**
** moongrid_families.h - grids, whose dims have names, and families of groups: along dims of a grid, out of other families,
** by modes, as lists.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* which includes this header in its place */
#elif !defined MOONGRID_FAMILIES_H
#define MOONGRID_FAMILIES_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- grids */

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

/* ---------------------------------------------------------------- families */

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
/* The groups all of whose ranks are at fixed coordinates of a grid, in the order of f: coords[i] of dim i, in
** [0, mgrid_grid_ndims(g)), or -1 for any. So the groups of tp in the first stage are those of pp 0. The grid need not be
** the one that f was made of; a rank outside of it is at no coordinate. No group there is refused (MGRID_REFUSED), as
** where a dim varies inside the groups. O(modes) for a strided family and a grid over a window; else O(members), and
** explicit lists where those that are left follow no rule. */
MGRID_API mgrid_family *mgrid_family_where(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords,
                                           mgrid_error *err);
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
/* As mgrid_family_zip, of families with fewer groups, too, which serve several: with n groups in the largest, group i
** has group i / (n / count) of a family of `count` groups. A family of one group is in all of them. Each number of groups
** divides the largest. A cover of explicit lists, O(members), where the numbers differ. */
MGRID_API mgrid_family *mgrid_family_zip_spread(size_t n, const mgrid_family *const *fs, mgrid_error *err);

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
                                           const int64_t *ranks, mgrid_coverage declared, mgrid_error *err);
/* Every group through a function: it gets n members in `ranks` and leaves the new ones
** there (at most `cap`), and returns how many, or -1 after filling *err. The result is
** an explicit table: O(world). Groups must come out disjoint. */
typedef int64_t (*mgrid_map_fn)(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap, mgrid_error *err);
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
/* Write the members of a group in order, at most `cap` of them; returns how many there are, or -1 where there is no such
** group. */
MGRID_API int64_t mgrid_family_members(const mgrid_family *f, int64_t group, size_t cap, int64_t *out);
/* The same for n groups from `group` on, one after the other; returns how many members they have, or -1 where there are
** no such groups. Many small groups are written several times faster than by a call for each. */
MGRID_API int64_t mgrid_family_range(const mgrid_family *f, int64_t group, int64_t n, size_t cap, int64_t *out);
/* Canonical text of the rule, as snprintf: equal families have equal text where they
** are strided. "(2:1) x (4:2)" is 4 groups, 2 apart, of 2 neighbours. */
MGRID_API size_t mgrid_family_describe(const mgrid_family *f, char *buf, size_t len);

#ifdef __cplusplus
}
#endif
#endif
