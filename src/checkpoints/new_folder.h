/* SPDX-License-Identifier: MIT
**
** new_folder.h - a folder that is made beside its name, FOLDER.part, and gets the name when all is in it. What a process that was
** killed left there is taken away by the next one; of two at once the second is refused, by a lock on the folder.
*/
#ifndef MGRID_BESIDE_H
#define MGRID_BESIDE_H

#include "base/base.h"

typedef struct beside {
  mgrid_text   name, path; /* of the folder, and where its files go until then */
  int          lock;       /* the open folder, or -1 */
  const char **mine;       /* patterns of the files that are made in it, to the end of the list, a NULL */
} beside;

/* MGRID_REFUSED where the folder is there, is being made, or has files beside it that no pattern fits: nothing is touched. */
mgrid_status beside_open(beside *b, const char *folder, const char **mine, mgrid_error *err);
/* Give it its name, unless there is an error already: then it is taken away, with all that is in it. Also where it was not
** opened. */
mgrid_status beside_close(beside *b, mgrid_error *err);

#endif
