/* SPDX-License-Identifier: MIT
**
** moongrid_family.h - families out of families, beside those of moongrid.h: some groups of one, and several joined
** where their numbers differ. moongrid.h includes this header, and its rules on errors and ownership hold here, too.
*/
#ifndef MOONGRID_FAMILY_H
#define MOONGRID_FAMILY_H

#include "moongrid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The groups all of whose ranks are at fixed coordinates of a grid, in the order of f: coords[i] of dim i, in
** [0, mgrid_grid_ndims(g)), or -1 for any. So the groups of tp in the first stage are those of pp 0. The grid need not be
** the one that f was made of; a rank outside of it is at no coordinate. No group there is refused (MGRID_REFUSED), as
** where a dim varies inside the groups. O(modes) for a strided family and a grid over a window; else O(members), and
** explicit lists where those that are left follow no rule. */
MGRID_API mgrid_family *mgrid_family_where(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords,
                                           mgrid_error *err);
/* As mgrid_family_zip, of families with fewer groups, too, which serve several: with n groups in the largest, group i
** has group i / (n / count) of a family of `count` groups. A family of one group is in all of them. Each number of groups
** divides the largest. A cover of explicit lists, O(members), where the numbers differ. */
MGRID_API mgrid_family *mgrid_family_zip_spread(size_t n, const mgrid_family *const *fs, mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
