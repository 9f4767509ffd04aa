/* SPDX-License-Identifier: MIT
**
** new_folder.h - make a folder under a temporary name, FOLDER.part, and rename it when it is complete. What a killed process
** left there is removed by the next one. A lock on the folder refuses the second of two processes.
*/
#ifndef MGRID_BESIDE_H
#define MGRID_BESIDE_H

#include "base/base.h"

typedef struct beside {
  mgrid_text   name, path; /* of the folder; of FOLDER.part */
  int          lock;       /* the open folder, or -1 */
  const char **mine;       /* patterns of the files made in it; a NULL ends the list */
} beside;

/* MGRID_REFUSED, with nothing changed, if the folder exists, is being made, or FOLDER.part has a file that fits no pattern. */
mgrid_status beside_open(beside *b, const char *folder, const char **mine, mgrid_error *err);
/* Rename the folder; or remove it with its files if there is an error already. May be called if _open failed. */
mgrid_status beside_close(beside *b, mgrid_error *err);

#endif
