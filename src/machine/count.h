/* SPDX-License-Identifier: MIT
**
** count.h - count how the groups of a family lie in the domains of a level: how many groups lie in
** one domain, how many edges lead from one domain to another. An edge joins two consecutive members
** of a group. mgrid_machine_count (moongrid_machine.h) is the public function; it counts in closed
** form if that is possible.
*/
#ifndef MGRID_MACHINE_COUNT_H
#define MGRID_MACHINE_COUNT_H

#include "machine/model.h"

/* Count with formulas, without going through members. Return false if there is no formula, as for a
** family or a machine that is not described by modes (families/family.h). */
bool mgrid_count_closed(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                        mgrid_machine_counts *c);
/* Count by going through all members. */
mgrid_status mgrid_count_each(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                              mgrid_machine_counts *c, mgrid_error *err);
/* Set domain[r] for each rank r of a world. Return the highest domain plus 1. */
int64_t mgrid_domains_of(const mgrid_machine_model *m, size_t level, int64_t world,
                         int32_t *domain);
/* Return the first group that lies in more than one domain, or -1. O(members). */
int64_t mgrid_first_crossing(const mgrid_machine_model *m, const mgrid_family *f, size_t level);

#endif
