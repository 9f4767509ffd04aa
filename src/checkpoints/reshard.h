/* SPDX-License-Identifier: MIT
**
** reshard.h - writes a checkpoint in the layout of a plan, step by step.
*/
#ifndef MGRID_RESHARD_H
#define MGRID_RESHARD_H

#include "checkpoints/outputs.h"

typedef struct reshard_options {
  const char *folder; /* the folder to write, which must not exist yet */
  const char *recipe; /* the recipe's name in messages */
  /* the user's rules between names, and their file's name in messages; NULL: none */
  const char *given, *given_from;
  const char *own; /* rules of the recipe; NULL: none */
  size_t given_length, own_length;
  bool convert;   /* allow conversion between types of floats */
  bool empty;     /* allow ranks that hold nothing of a tensor */
  int64_t window; /* bytes of memory for elements */
} reshard_options;

typedef struct reshard_done {
  size_t tensors;
  int64_t bytes, files; /* of the result */
  int64_t done, made;   /* how many of these bytes, and files, are written */
} reshard_done;

typedef struct resharding resharding;

/* Find the outputs and begin the folder. The checkpoint and the strings of the options are borrowed
** until reshard_end. NULL: *err says why. */
resharding *reshard_begin(shards *from, const mgrid_plan *plan, const reshard_options *o,
                          mgrid_error *err);
/* Write one window of elements. *more is false once none is left; then the folder is complete and
** has its name. */
mgrid_status reshard_step(resharding *r, bool *more, mgrid_error *err);
reshard_done reshard_so_far(const resharding *r);
/* Free r, which may be NULL. Remove a folder that is not complete. */
void reshard_end(resharding *r);

#endif
