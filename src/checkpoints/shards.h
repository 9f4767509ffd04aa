/* SPDX-License-Identifier: MIT
**
** shards.h - a checkpoint: tensors stored as parts in several safetensors files, and an index that
** says where. Any part can be read, however the tensors were cut when written; each element comes
** from the one file that holds it. This file needs only the public header and jansson, because the
** example trainer is built with it, too.
*/

/* THE INDEX is Hugging Face's, {"metadata": {...}, "weight_map": {TENSOR: FILE}}, where a file
** holds a whole tensor. For tensors written as parts it also has "parts": for each tensor its type,
** shape and parts; for each part its file and "runs", on each axis a list [start, length, start,
** length, ...]. A part is every combination of its runs, in C order. A slice of a part has "first"
** and "elements" too, and the file stores that slice as a flat list. The weight map then names the
** file of the first part. Before anything is read, intervals prove that the parts hold each element
** exactly once.
*/

#ifndef MGRID_SHARDS_H
#define MGRID_SHARDS_H

#include "base/files.h"
#include "checkpoints/safetensors.h"

#define SHARDS_INDEX  "model.safetensors.index.json"
#define SHARDS_SINGLE "model.safetensors"

/* The part of a tensor in a file or on a rank: runs on each axis, and of these in C order
** `elements` from `first` on. */
typedef struct shards_part {
  size_t naxes;
  size_t nruns[MGRID_AXES_MAX];
  mgrid_run *runs[MGRID_AXES_MAX]; /* one block of memory, starting at runs[0] */
  int64_t shape[MGRID_AXES_MAX];   /* sums of the runs */
  int64_t first, elements;
  st_file *file; /* of a stored part */
} shards_part;

typedef struct shards_tensor {
  const char *name, *type;
  int64_t width;
  size_t naxes;
  int64_t shape[MGRID_AXES_MAX];
  size_t nparts;
  shards_part *part; /* [nparts], which hold each element once */
} shards_tensor;

typedef struct shards {
  json_t *index; /* owns the names; NULL: a single file */
  size_t nfiles;
  st_file **file; /* [nfiles]; only the last ones read are open */
  size_t recent;
  size_t n;
  shards_tensor *tensor; /* [n] in the order of the index */
  int64_t read;          /* bytes of tensors read so far */
} shards;

/* Open an index, a folder with one, or a single .safetensors file. Returns NULL after an error.
** O(files + parts). */
shards *shards_open(const char *path, mgrid_error *err);
void shards_close(shards *s); /* may be NULL */
/* Read elements from to from + n - 1 of a rank's part. */
mgrid_status shards_read(shards *s, const shards_tensor *t, const shards_part *want, int64_t from,
                         int64_t n, void *to, mgrid_error *err);

/* Elements of a part in C order as boxes of it, each the largest that starts where the one before
** it ends. */
typedef struct shards_box {
  /* on each axis, elements low to high - 1 of the part */
  int64_t low[MGRID_AXES_MAX], high[MGRID_AXES_MAX];
} shards_box;
enum { SHARDS_BOXES_MAX = 2 * MGRID_AXES_MAX };
/* List the boxes of n elements from `first` on, at most 2 x naxes - 1. Return how many. */
size_t shards_boxes(size_t naxes, const int64_t *shape, int64_t first, int64_t n, shards_box *out);

/* Return what a rank writes of a tensor of the plan: its part, if it holds the first copy; else
** elements is 0. */
mgrid_status shards_part_of(const mgrid_plan *p, const char *tensor, int64_t rank, shards_part *out,
                            mgrid_error *err);
void shards_part_free(shards_part *part);
/* Allocate the runs of a part whose nruns are set; compute its shape and elements from them. */
mgrid_status shards_part_room(shards_part *part, mgrid_error *err);
void shards_part_shape(shards_part *part);
/* Return how a part is stored in a file. */
st_tensor shards_in_file(const char *name, const char *type, const shards_part *part);

/* Write an index: start an empty one, add a part, write it to a folder. `numbers` are JSON pairs
** for the metadata. Without memory *index becomes NULL and stays so. */
void shards_index_add(json_t **index, const char *file, const char *name, const mgrid_tensor *t,
                      const shards_part *part);
mgrid_status shards_index_write(json_t *index, const char *folder, mgrid_writes how,
                                json_t *metadata, mgrid_error *err);

#endif
