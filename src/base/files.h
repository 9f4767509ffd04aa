/* SPDX-License-Identifier: MIT
**
** files.h - the one way to write files and folders. A file or folder gets its name only when it is
** complete and on the disk, so a full disk, a signal or a crash leaves what was there before.
**
** PATH is made in the folder PATH.part, which the sticky bit marks as ours. By this mark the next
** process knows what a killed one left, and removes it. Without the mark, PATH.part belongs to
** somebody else, and is refused. A lock on the folder keeps a second process out.
*/
#ifndef MGRID_FILES_H
#define MGRID_FILES_H

#include "base/base.h"

typedef struct mgrid_output mgrid_output;

typedef enum mgrid_writes {
  /* replace an old file; behind a link, replace the file to which it points. Files that are
  ** not regular, and the file of stdout or stderr, are written in place */
  MGRID_WRITE_OVER,
  MGRID_WRITE_HERE, /* as MGRID_WRITE_OVER, but a link is refused */
  /* write under the name itself, which must be free: for a file in a folder that
  ** mgrid_output_folder has started */
  MGRID_WRITE_NEW,
} mgrid_writes;

/* Start a file. NULL: *err says why, and nothing has changed. */
mgrid_output *mgrid_output_file(const char *path, mgrid_writes how, mgrid_error *err);
/* Start a folder; its name must be free. `files` is a list of patterns that ends with NULL. The
** name of each file in the folder must match one of them. */
mgrid_output *mgrid_output_folder(const char *path, const char *const *files, mgrid_error *err);
/* Return the path of the file or folder until it is complete. */
const char *mgrid_output_place(const mgrid_output *o);

mgrid_status mgrid_output_write(mgrid_output *o, const void *data, size_t n, mgrid_error *err);
/* Return a stream to the file. The stream belongs to o; mgrid_output_end reports its errors, too.
** NULL: no memory. */
FILE *mgrid_output_stream(mgrid_output *o);

/* Give the file or folder its name. Remove it instead if something failed before: `before` is the
** caller's status. This frees o, which may be NULL. */
mgrid_status mgrid_output_end(mgrid_output *o, mgrid_status before, mgrid_error *err);

/* Write a whole file in one call. */
mgrid_status mgrid_write_file(const char *path, mgrid_writes how, const char *text, size_t len,
                              mgrid_error *err);

#endif
