/* SPDX-License-Identifier: MIT
**
** group_lines.h - groups in the width of a terminal, for lists and pictures.
*/
#ifndef MGRID_GROUP_LINES_H
#define MGRID_GROUP_LINES_H

#include "families/family.h"

/* Append a group: "{0,8,16}", or in at most `width` columns (0: no limit) "{0,8,...,1016}". */
void cli_put_group(mgrid_text *t, const mgrid_family *f, int64_t group, int width);
/* Append the groups of a family in at most `width` columns: "{0,1} {2,3} ... 60 more ... {126,127}". */
void cli_put_groups(mgrid_text *t, const mgrid_family *f, int width);
/* Append "4 groups of 2", "1 group of 8", "4 groups of up to 3". */
void cli_put_count(mgrid_text *t, const mgrid_family *f);

#endif
