/* SPDX-License-Identifier: MIT
**
** shards.h - a checkpoint: tensors stored as parts in several safetensors files, and an index that
** says where. Any part can be read, no matter how the tensors were cut when they were written. Each
** element comes from the one file that holds it. This file needs only the public header and
** jansson, because the example trainer is built with it, too.
*/

/* THE INDEX is Hugging Face's, {"metadata": {...}, "weight_map": {TENSOR: FILE}}, where a file
** holds a whole tensor. For tensors written as parts it also has "parts": for each tensor its type,
** shape and parts; for each part its file and "runs", on each axis a list [start, length, start,
** length, ...]. The elements of a part are all combinations of its runs, in C order. A slice of a
** part also has "first" and "elements", and the file stores that slice as a flat list. The weight
** map then names the file of the first part. Before any data is read, intervals prove that the
** parts hold each element exactly once.
*/

#ifndef MGRID_SHARDS_H
#define MGRID_SHARDS_H

#include "base/files.h"
#include "checkpoints/safetensors.h"

#define SHARDS_INDEX  "model.safetensors.index.json"
#define SHARDS_SINGLE "model.safetensors"

/* The part of a tensor that a file or a rank has: runs on each axis; and of their elements, in C
** order, `elements` elements from `first` on. */
typedef struct shards_part {
  size_t naxes;
  size_t nruns[MGRID_AXES_MAX];
  mgrid_run *runs[MGRID_AXES_MAX]; /* one block of memory, which starts at runs[0] */
  int64_t shape[MGRID_AXES_MAX];   /* sums of the runs on each axis */
  int64_t first, elements;
  st_file *file; /* of a stored part; else NULL */
} shards_part;

typedef struct shards_tensor {
  const char *name, *type;
  int64_t width;
  size_t naxes;
  int64_t shape[MGRID_AXES_MAX];
  size_t nparts;
  shards_part *part; /* [nparts]: together they hold each element once */
} shards_tensor;

typedef struct shards {
  json_t *index; /* owns the names; NULL: there is a single file */
  size_t nfiles;
  st_file **file; /* [nfiles]: only those that were read last are open */
  size_t recent;
  size_t n;
  shards_tensor *tensor; /* [n]: in the order of the index */
  int64_t read;          /* bytes of tensors read so far */
} shards;

/* Open an index, a folder with an index, or a single .safetensors file. NULL: *err says why.
** O(files + parts). */
shards *shards_open(const char *path, mgrid_error *err);
void shards_close(shards *s); /* may be NULL */
/* Read elements `from` to `from` + n - 1 of a rank's part. */
mgrid_status shards_read(shards *s, const shards_tensor *t, const shards_part *want, int64_t from,
                         int64_t n, void *to, mgrid_error *err);

/* Elements of a part in C order, as boxes of it. Each is the largest box that starts where the one
** before it ends. */
typedef struct shards_box {
  /* on each axis, elements low to high - 1 of the part */
  int64_t low[MGRID_AXES_MAX], high[MGRID_AXES_MAX];
} shards_box;
enum { SHARDS_BOXES_MAX = 2 * MGRID_AXES_MAX };
/* List the boxes of n elements from `first` on, at most 2 x naxes - 1. Return how many they are. */
size_t shards_boxes(size_t naxes, const int64_t *shape, int64_t first, int64_t n, shards_box *out);

/* Return what a rank writes of a tensor of the plan: its part, if it holds the first copy of that.
** If it does not, `elements` is 0. */
mgrid_status shards_part_of(const mgrid_plan *p, const char *tensor, int64_t rank, shards_part *out,
                            mgrid_error *err);
void shards_part_free(shards_part *part);
/* Allocate the runs of a part, whose nruns are set; compute its shape and elements from them. */
mgrid_status shards_part_room(shards_part *part, mgrid_error *err);
void shards_part_shape(shards_part *part);
/* Return how a part is stored in a file. */
st_tensor shards_in_file(const char *name, const char *type, const shards_part *part);

/* Write an index: begin an empty one, add parts, write it to a folder. `numbers` are JSON pairs for
** the metadata. If memory runs out, *index becomes NULL and stays so. */
void shards_index_add(json_t **index, const char *file, const char *name, const mgrid_tensor *t,
                      const shards_part *part);
mgrid_status shards_index_write(json_t *index, const char *folder, mgrid_writes how,
                                json_t *metadata, mgrid_error *err);

#endif
