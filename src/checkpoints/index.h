/* SPDX-License-Identifier: MIT
**
** index.h - a checkpoint: tensors whose parts lie in several safetensors files, and an index that says where. Any part is
** read whatever the parts are in which the tensors were written, each element from the one file that has it.
**
** The index is that of Hugging Face, {"metadata": {...}, "weight_map": {TENSOR: FILE}}, in which a file has the whole of a
** tensor. Where parts were written it has "parts" as well: for each tensor its type, its shape, and its parts; of each
** its file and "runs", on each axis a list [start, length, start, length, ...]: the part is every combination of them, in
** C order. Of a slice of a part the index has "first" and "elements", and the file has a list of these. In the weight map
** then stands the file of the first part. Parts that do not have each element once are refused, by intervals, and before
** anything is read.
** It stands on the public header and jansson alone, as the example trainer is built with it, too.
*/
#ifndef MGRID_SHARDS_H
#define MGRID_SHARDS_H

#include "checkpoints/safetensors.h"

#define SHARDS_INDEX "model.safetensors.index.json"

/* What a file, or a rank, has of a tensor: on each axis some runs, and of that in C order `elements` from `first` on. */
typedef struct shards_part {
  size_t     naxes;
  size_t     nruns[MGRID_AXES_MAX];
  mgrid_run *runs[MGRID_AXES_MAX];  /* one block of memory, which begins at runs[0] */
  int64_t    shape[MGRID_AXES_MAX]; /* sums of the runs */
  int64_t    first, elements;
  st_file   *file; /* of a part that is stored */
} shards_part;

typedef struct shards_tensor {
  const char  *name, *type;
  int64_t      width;
  size_t       naxes;
  int64_t      shape[MGRID_AXES_MAX];
  size_t       nparts;
  shards_part *part; /* [nparts], which have each element once */
} shards_tensor;

typedef struct shards {
  json_t        *index; /* which has the names; NULL: one file */
  size_t         nfiles;
  st_file      **file; /* [nfiles]; those that were read last are open */
  size_t         recent;
  size_t         n;
  shards_tensor *tensor; /* [n] in the order of the index */
  int64_t        read;   /* bytes of tensors, so far */
} shards;

/* Open an index, a folder that has one, or a single .safetensors file. NULL after an error. O(files + parts). */
shards              *shards_open(const char *path, mgrid_error *err);
void                 shards_close(shards *s); /* may be NULL */
const shards_tensor *shards_find(const shards *s, const char *name);
/* A number of the index's metadata; what there is not is -1. */
int64_t shards_number(const shards *s, const char *name);
/* Elements `from` to from + n - 1 of what a rank has. */
mgrid_status shards_read(shards *s, const shards_tensor *t, const shards_part *want, int64_t from, int64_t n, void *to,
                         mgrid_error *err);

/* Do the parts have each element once? Else MGRID_REFUSED with an element that none has, or two. O(rows of the tensor) at
** most, which is what reading all of it takes as well; of parts that are cut on one axis O(runs log runs). */
mgrid_status shards_prove(const shards_tensor *t, mgrid_error *err);

/* What a rank writes of a tensor of the plan: its part where it has the first copy. elements 0: nothing. */
mgrid_status shards_part_of(const mgrid_plan *p, const char *tensor, int64_t rank, shards_part *out, mgrid_error *err);
void         shards_part_free(shards_part *part);
/* How the part of a tensor lies in a file. */
st_tensor shards_in_file(const char *name, const char *type, const shards_part *part);

/* An index that is to be written: an empty one, one part more of a tensor, and its text to a folder. `numbers` are JSON
** pairs for the metadata. No memory: *index is NULL from then on. */
void         shards_index_add(json_t **index, const char *file, const char *name, const mgrid_tensor *t,
                              const shards_part *part);
mgrid_status shards_index_write(json_t *index, const char *folder, json_t *metadata, mgrid_error *err);

#endif
