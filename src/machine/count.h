/* SPDX-License-Identifier: MIT
**
** count.h - how many groups of a family lie in one domain of a level, and how many edges do not.
*/
#ifndef MGRID_MACHINE_COUNT_H
#define MGRID_MACHINE_COUNT_H

#include "machine/model.h"

/* In closed form; false: the family or the machine follows no modes. */
bool mgrid_count_closed(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                        mgrid_machine_counts *c);
/* By going through all members. */
mgrid_status mgrid_count_each(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                              mgrid_machine_counts *c, mgrid_error *err);
/* Set the domain of each rank of a world; return one more than the last of them. */
int64_t mgrid_domains_of(const mgrid_machine_model *m, size_t level, int64_t world,
                         int32_t *domain);
/* Return the first group from `from` on that lies in more than one domain, or -1. O(members before
** it). */
int64_t mgrid_first_crossing(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                             int64_t from);

#endif
