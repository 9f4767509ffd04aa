/* SPDX-License-Identifier: MIT
**
** shards.h - a checkpoint: tensors stored as parts in several safetensors files, and an index of
** these parts. Any part can be read, no matter how the tensors were cut when they were written.
** This file needs only the public header, base/ and jansson, because the example trainer is built
** with it, too.
*/

/* THE INDEX is Hugging Face's, {"metadata": {...}, "weight_map": {TENSOR: FILE}}, where a file
** holds a whole tensor. For tensors written as parts it also has "parts": for each tensor its type,
** shape and parts; for each part its file and "runs", on each axis a list [start, length, start,
** length, ...]. The elements of a part are all combinations of its runs, in C order. A part that is
** only a slice of these elements also has "first" and "elements", and the file stores the slice as
** a list. The weight map then names the file of the first part. Before any data is read, a proof
** shows that the parts hold each element exactly once (shards.c).
*/

#ifndef MGRID_SHARDS_H
#define MGRID_SHARDS_H

#include "base/files.h"
#include "checkpoints/safetensors.h"

#define SHARDS_INDEX  "model.safetensors.index.json"
#define SHARDS_SINGLE "model.safetensors"

static inline int64_t shards_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t shards_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* The part of a tensor that a file or a rank has. Of all combinations of its runs, in C order, it
** has `elements` elements from `first` on. */
typedef struct shards_part {
  size_t naxes;
  size_t nruns[MGRID_AXES_MAX];
  mgrid_run *runs[MGRID_AXES_MAX]; /* one block of memory, which starts at runs[0] */
  int64_t shape[MGRID_AXES_MAX];   /* sums of the runs on each axis */
  int64_t first, elements;
  st_file *file; /* NULL: it is not a stored part */
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
  st_file **file; /* [nfiles]: of many files only a few are open at a time */
  size_t opened;  /* with many files: how often a file was opened to read */
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

typedef struct shards_box { /* on each axis, the indices low to high - 1 of a part */
  int64_t low[MGRID_AXES_MAX], high[MGRID_AXES_MAX];
} shards_box;
enum { SHARDS_BOXES_MAX = 2 * MGRID_AXES_MAX };
/* Divide n elements of a part, in C order from `first` on, into boxes, at most 2 x naxes - 1.
** Return how many they are. */
size_t shards_boxes(size_t naxes, const int64_t *shape, int64_t first, int64_t n, shards_box *out);

/* Find the part of a tensor of the plan that a rank writes. If the rank does not hold the first
** copy of a part, or its part is empty, out->elements is 0. */
mgrid_status shards_part_of(const mgrid_plan *p, const char *tensor, int64_t rank, shards_part *out,
                            mgrid_error *err);
void shards_part_free(shards_part *part);
/* Allocate the runs of a part, whose naxes and nruns are set. */
mgrid_status shards_part_room(shards_part *part, mgrid_error *err);
/* Compute the shape of a part from its runs. */
void shards_part_shape(shards_part *part);
/* Return how a part is stored in a file. */
st_tensor shards_in_file(const char *name, const char *type, const shards_part *part);

/* Add a part to an index, {"weight_map": {}, "parts": {}} at first. If memory runs out, *index
** becomes NULL and stays so. */
void shards_index_add(json_t **index, const char *file, const char *name, const mgrid_tensor *t,
                      const shards_part *part);
/* Write the index to a folder. The index owns the metadata from now on. If the index is NULL, fail
** with MGRID_NO_MEMORY. */
mgrid_status shards_index_write(json_t *index, const char *folder, mgrid_writes how,
                                json_t *metadata, mgrid_error *err);

#endif
