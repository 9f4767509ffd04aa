/* SPDX-License-Identifier: MIT
**
** checkpoint.c - the model in a folder: a safetensors file from each rank that has something to
** write, and an index.
**
** The rank with the first copy of a part of a parameter writes it; the plan of the parameters says
** which rank that is (tensors.c). Any layout can read the files, because the index says where each
** element is. At a resume the ranks with first copies read: each element is read once, and sent to
** the ranks with other copies. A save removes the files that an interrupted save left, and writes
** files with new names beside the old files. When all are on the disk, the new index replaces the
** old one, and only then the old files are removed. So one checkpoint is complete at any time.
*/
#include "model.h"
#include "checkpoints/shards.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STORED_NAME = PARAM_NAME + 8, PATH = 4096 };

/* The suffix of an array's name, after the name of the parameter. */
static const char *const suffix[ARRAYS] = { "", ".m", ".v" };

static void file_name(char out[64], int64_t save, int64_t rank) {
  snprintf(out, 64, "save%" PRId64 "-rank%" PRId64 ".safetensors", save, rank);
}

static const shards_tensor *find(const shards *s, const char *name) {
  for (size_t i = 0; i < s->n; i++)
    if (strcmp(s->tensor[i].name, name) == 0) return &s->tensor[i];
  return NULL;
}

/* Return a number of the index's metadata, or -1 if it is absent. */
static int64_t number_in(const shards *s, const char *name) {
  const json_t *value = json_object_get(json_object_get(s->index, "metadata"), name);
  return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* --------------------------------------------------------------------- writing */

/* The tensors of one rank's file, and their elements in memory. */
typedef struct written {
  size_t n;
  st_tensor *tensor;
  const real **data;
  char (*name)[STORED_NAME];
} written;

static void list_written(const model *m, int rank, written *w, mgrid_error *err) {
  size_t most = (size_t)m->nparams * ARRAYS;
  *w = (written){ 0, room(most + 1, sizeof *w->tensor), room(most + 1, sizeof *w->data),
                  room(most + 1, sizeof *w->name) };
  for (int i = 0; i < m->nparams && !err->status; i++) {
    const char *tensor = m->params[i].name;
    shards_part part = { 0 };
    if (shards_part_of(m->tensors, tensor, rank, &part, err)) return;
    for (int k = 0; k < ARRAYS && part.elements; k++, w->n++) {
      snprintf(w->name[w->n], STORED_NAME, "%s%s", tensor, suffix[k]);
      w->tensor[w->n] = shards_in_file(w->name[w->n], REAL_TYPE, &part);
      w->data[w->n] = array_of(&m->params[i], k);
    }
    shards_part_free(&part);
  }
}

static void write_file(const model *m, const char *path, int rank, mgrid_error *err) {
  written w;
  st_writer *file = NULL;
  list_written(m, rank, &w, err);
  if (w.n && !err->status) file = st_create(path, w.n, w.tensor, err);
  for (size_t i = 0; file && i < w.n && !err->status; i++)
    st_write(file, w.data[i], w.tensor[i].bytes, err);
  if (file) st_finish(file, err->status, err);
  free(w.tensor), free(w.data), free(w.name);
}

/* List the parts of every rank, from the plan, without messages. */
static void write_index(const model *m, const char *folder, int64_t save, int64_t step,
                        mgrid_error *err) {
  json_t *index = json_pack("{s:{}, s:{}}", "weight_map", "parts");
  for (size_t i = 0; i < mgrid_plan_ntensors(m->tensors) && !err->status; i++) {
    const char *tensor = mgrid_plan_tensor_name(m->tensors, i);
    for (int64_t rank = 0; rank < mgrid_plan_world(m->tensors) && !err->status; rank++) {
      char file[64], name[STORED_NAME];
      shards_part part = { 0 };
      file_name(file, save, rank);
      if (shards_part_of(m->tensors, tensor, rank, &part, err)) break;
      for (int k = 0; k < ARRAYS && part.elements; k++) {
        snprintf(name, sizeof name, "%s%s", tensor, suffix[k]);
        shards_index_add(&index, file, name, mgrid_plan_tensor(m->tensors, tensor), &part);
      }
      shards_part_free(&part);
    }
  }
  if (!err->status)
    shards_index_write(index, folder, MGRID_WRITE_OVER,
                       json_pack("{s:I, s:I, s:I}", "step", (json_int_t)step, "save",
                                 (json_int_t)save, "total_size",
                                 (json_int_t)(m->whole * ARRAYS * sizeof(real))),
                       err);
  json_decref(index);
}

/* Remove the files of all other saves, complete or not. */
static void remove_others(const char *folder, int64_t save) {
  DIR *all = opendir(folder);
  for (struct dirent *one; all && (one = readdir(all));) {
    long long of, rank;
    int end = 0;
    char path[PATH];
    const bool ours = sscanf(one->d_name, "save%lld-rank%lld.safetensors%n", &of, &rank, &end) == 2
                      && end;
    if (!ours || of == save || one->d_name[end]) continue;
    if (snprintf(path, sizeof path, "%s/%s", folder, one->d_name) < (int)sizeof path) unlink(path);
  }
  if (all) closedir(all);
}

/* Return the number of the save in the folder, 0 if there is none. Only rank 0 calls it. */
static int64_t last_save(const char *folder, mgrid_error *err) {
  char path[PATH];
  snprintf(path, sizeof path, "%s/" SHARDS_INDEX, folder);
  if (mkdir(folder, 0777) && errno != EEXIST) {
    refuse(err, "%.900s: %s", folder, strerror(errno));
    return 0;
  }
  if (access(path, F_OK) && errno == ENOENT) return 0;
  shards *there = shards_open(path, err);
  int64_t save = there ? number_in(there, "save") : 0;
  if (there && save < 1) refuse(err, "%.900s has a checkpoint that is not of this program", folder);
  shards_close(there);
  return save;
}

mgrid_status checkpoint_write(model *m, mgrid_backend *mpi, const char *folder, int64_t step,
                              mgrid_error *err) {
  const int rank = (int)mgrid_backend_rank(mpi);
  char path[PATH], file[64];
  int64_t save = rank == 0 ? last_save(folder, err) + 1 : INT64_MAX;
  if (rank == 0 && !err->status) remove_others(folder, save - 1);
  if (!everybody(&m->l, err)) return err->status;
  if (mgrid_state_least(m->l.state, &save, err)) return err->status; /* rank 0's */
  file_name(file, save, rank);
  if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
    refuse(err, "the name of the folder is too long");
  else
    write_file(m, path, rank, err);
  const bool wrote = !err->status;
  if (!everybody(&m->l, err)) {
    if (wrote) unlink(path);
    return err->status;
  }
  if (rank == 0) write_index(m, folder, save, step, err);
  if (everybody(&m->l, err) && rank == 0) remove_others(folder, save);
  return err->status;
}

/* --------------------------------------------------------------------- reading */

/* Send a slice that the rank with the first copy has read to the ranks with other copies: over
** `copies`; over tp, if tp does not cut the parameter; and to the last stage, for the embedding. */
static void spread(model *m, const param *p, int which) {
  real *x = array_of(p, which);
  group_spread_reals(p->expert ? &m->l.expert_copies : &m->l.copies, x, p->n);
  if (p->nrows == p->rows && p->ncols == p->cols) group_spread_reals(&m->l.tp, x, p->n);
  if (p == m->embedding && m->l.embedding.size) group_spread_reals(&m->l.embedding, x, p->n);
}

static void read_param(shards *from, const model *m, const param *p, int rank, mgrid_error *err) {
  char name[STORED_NAME];
  shards_part part = { 0 };
  if (err->status || shards_part_of(m->tensors, p->name, rank, &part, err)) return;
  for (int k = 0; k < ARRAYS && part.elements && !err->status; k++) {
    snprintf(name, sizeof name, "%s%s", p->name, suffix[k]);
    const shards_tensor *t = find(from, name);
    if (!t)
      refuse(err, "the checkpoint has no tensor '%s'", name);
    else if (strcmp(t->type, REAL_TYPE) != 0)
      refuse(err, "the checkpoint has '%s' as %s, and this program is for " REAL_TYPE, name,
             t->type);
    else if (t->naxes != 2 || t->shape[0] != p->rows || t->shape[1] != p->cols)
      refuse(err, "the checkpoint has '%s' in another shape than the model's %d x %d", name,
             p->rows, p->cols);
    else
      shards_read(from, t, &part, 0, part.elements, array_of(p, k), err);
  }
  shards_part_free(&part);
}

mgrid_status checkpoint_read(model *m, mgrid_backend *mpi, const char *folder, int64_t *step,
                             double *bytes, mgrid_error *err) {
  const int rank = (int)mgrid_backend_rank(mpi);
  shards *from = shards_open(folder, err);
  if (from && from->n != mgrid_plan_ntensors(m->tensors) * ARRAYS)
    refuse(err, "%.900s has %zu tensors, and the model has %zu", folder, from->n,
           mgrid_plan_ntensors(m->tensors) * ARRAYS);
  for (int i = 0; from && i < m->nparams; i++) read_param(from, m, &m->params[i], rank, err);
  *step = from ? number_in(from, "step") : -1;
  *bytes = from ? (double)from->read : 0;
  if (!err->status && *step < 0)
    refuse(err, "%.900s does not say after which step it was written", folder);
  shards_close(from);
  if (!everybody(&m->l, err)) return err->status;
  group_sum_double(&m->l.job, bytes, 1);
  for (int i = 0; i < m->nparams; i++)
    for (int k = 0; k < ARRAYS; k++) spread(m, &m->params[i], k);
  return MGRID_OK;
}
