/* SPDX-License-Identifier: MIT
**
** files.h - the one way to write files and folders: each gets its name when it is complete and on
** the disk, so that a full disk, a signal or a crash leaves what was there before.
**
** PATH is made in the folder PATH.part, which is marked by the sticky bit of its mode. By the mark
** the next process knows what a killed one left, and removes it. A PATH.part without it belongs to
** somebody: it is refused and stays. A lock on that folder refuses the second of two processes.
*/
#ifndef MGRID_FILES_H
#define MGRID_FILES_H

#include "base/base.h"

typedef struct mgrid_output mgrid_output;

typedef enum mgrid_writes {
  /* in place of an old file. Behind a link: of the file that it names. What is not a regular file, and
  ** the file of stdout or stderr, is written as it is. */
  MGRID_WRITE_OVER,
  MGRID_WRITE_HERE, /* the same, but a link is refused */
  /* at once under its name, where nothing is yet: in a folder that is not complete itself */
  MGRID_WRITE_NEW,
} mgrid_writes;

/* Start a file. NULL: *err says why, and nothing has changed. */
mgrid_output *mgrid_output_file(const char *path, mgrid_writes how, mgrid_error *err);
/* Start a folder, where nothing has its name. The files in it fit patterns; a NULL ends these. */
mgrid_output *mgrid_output_folder(const char *path, const char *const *files, mgrid_error *err);
/* Return where it is until it is complete. */
const char *mgrid_output_place(const mgrid_output *o);

mgrid_status mgrid_output_write(mgrid_output *o, const void *data, size_t n, mgrid_error *err);
/* Return a stream to the file, which belongs to o; NULL: no memory. mgrid_output_end reports its
** errors, too. */
FILE *mgrid_output_stream(mgrid_output *o);

/* Give it its name, or remove it if anything failed before: `before` is the caller's status. Frees
** o; NULL is allowed, after an error of the function that begins it. */
mgrid_status mgrid_output_end(mgrid_output *o, mgrid_status before, mgrid_error *err);

/* All in one. */
mgrid_status mgrid_write_file(const char *path, mgrid_writes how, const char *text, size_t len,
                              mgrid_error *err);

#endif
