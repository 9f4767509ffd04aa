/* SPDX-License-Identifier: MIT
**
** reshard.c - writes a checkpoint in the layout of a plan.
**
** Each rank that holds the first copy of a part gets a file. Files are written one after the other,
** each from its first byte to its last, through one buffer, the window. They go into a folder that
** gets its name only when every byte is on the disk (base/files.h).
*/
#include "checkpoints/reshard.h"
#include "plan/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct resharding {
  reshard_options how;
  mgrid_plan *plan; /* owned */
  shards *from;
  names given, own;
  mgrid_budget budget; /* for the rules in `own` */
  outputs to;
  mgrid_output *folder; /* NULL: the folder is complete, or was removed */
  json_t *index;
  char *buffer;
  reshard_done told;
  st_writer *file;   /* the current file; NULL: the next step begins one */
  int64_t rank;      /* of the current file, or the first rank that may get the next file */
  size_t output;     /* the output that is being written */
  int64_t element;   /* the next element of this output */
  shards_part *part; /* [outputs]: of this rank */
  st_tensor *tensor; /* [outputs]: in the file */
};

/* Refuse layouts in which a rank of a tensor's grid holds nothing of the tensor, because that rank
** could not load its part. */
static mgrid_status check_cuts(const resharding *r, mgrid_error *err) {
  mgrid_text hollow = { 0 };
  mgrid_plan_notes(r->plan, false, &hollow);
  if (hollow.failed)
    mgrid_oom(err);
  else if (hollow.len && !r->how.empty)
    mgrid_fail(err, MGRID_REFUSED, "%s: %.*s; --empty allows this", r->how.recipe,
               (int)strcspn(hollow.data, "\n"), hollow.data);
  mgrid_text_free(&hollow);
  return err->status;
}

/* Return how many elements of an output fit into the window. If they are not read straight into the
** buffer, the stored elements take memory, too, at most 8 bytes each. */
static int64_t reshard_at_once(const resharding *r, const view *v) {
  int64_t width = st_width(v->type);
  return r->how.window / (v->plain ? width : width + 8);
}

/* Return whether the rank holds the first copy of any part. */
static bool writes(const resharding *r, int64_t rank) {
  for (size_t k = 0; k < mgrid_plan_ntensors(r->plan); k++) {
    mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
    if (mgrid_tensor_local(r->plan, mgrid_plan_tensor_name(r->plan, k), rank, &part, NULL))
      continue;
    if (part.held && part.copy == 0 && part.elements) return true;
  }
  return false;
}

/* -------------------------------------------------------------------- steps */

/* Begin the rank's file with its part of each tensor. Add the parts to the index. */
static mgrid_status begin_file(resharding *r, mgrid_error *err) {
  mgrid_text path = { 0 };
  char file[64];
  size_t n = 0;
  snprintf(file, sizeof file, "model-%05" PRId64 "-of-%05" PRId64 ".safetensors", r->told.made + 1,
           r->told.files);
  mgrid_text_add(&path, "%s/%s", mgrid_output_place(r->folder), file);
  mgrid_status s = path.failed ? mgrid_oom(err) : MGRID_OK;
  for (size_t i = 0; i < r->to.n && !s; i++) {
    const output *x = &r->to.at[i];
    s = shards_part_of(r->plan, x->of, r->rank, &r->part[i], err);
    if (s || !r->part[i].elements) continue;
    r->tensor[n++] = shards_in_file(x->name, x->view.type, &r->part[i]);
    shards_index_add(&r->index, file, x->name, x->tensor, &r->part[i]);
  }
  r->file = s ? NULL : st_create(path.data, n, r->tensor, err);
  r->output = 0, r->element = 0;
  mgrid_text_free(&path);
  return err->status;
}

static void end_file(resharding *r, mgrid_error *err) {
  st_writer *file = r->file;
  r->file = NULL;
  if (file && !st_finish(file, err->status, err)) r->told.made++;
  for (size_t i = 0; r->part && i < r->to.n; i++) shards_part_free(&r->part[i]);
  r->rank++;
}

/* Write the next elements of the file. */
static mgrid_status write_some(resharding *r, mgrid_error *err) {
  const view *v = &r->to.at[r->output].view;
  const shards_part *part = &r->part[r->output];
  int64_t width = st_width(v->type), most = reshard_at_once(r, v), n = part->elements - r->element;
  if (n > most) n = most;
  if (view_read(r->from, v, part, r->element, n, r->buffer, err)) return err->status;
  st_write(r->file, r->buffer, n * width, err);
  r->element += n, r->told.done += n * width;
  return err->status;
}

static mgrid_status write_index(resharding *r, mgrid_error *err) {
  json_t *was = json_object_get(r->from->index, "metadata");
  json_t *metadata = json_is_object(was) ? json_copy(was) : json_object();
  json_object_set_new(metadata, "total_size", json_integer((json_int_t)r->told.bytes));
  return shards_index_write(r->index, mgrid_output_place(r->folder), MGRID_WRITE_NEW, metadata,
                            err);
}

/* Give the folder its name. After an error remove it instead. */
static mgrid_status end_folder(resharding *r, mgrid_error *err) {
  mgrid_output *folder = r->folder;
  r->folder = NULL;
  return mgrid_output_end(folder, err->status, err);
}

mgrid_status reshard_step(resharding *r, bool *more, mgrid_error *err) {
  int64_t world = mgrid_plan_world(r->plan);

  *more = r->folder != NULL;
  while (*more && !err->status) {
    if (r->file) {
      for (; r->output < r->to.n && r->element >= r->part[r->output].elements; r->output++)
        r->element = 0;
      if (r->output < r->to.n) break;
      end_file(r, err);
      continue;
    }
    while (r->rank < world && !writes(r, r->rank)) r->rank++;
    *more = r->rank < world;
    if (*more)
      begin_file(r, err);
    else
      write_index(r, err);
  }
  if (*more && !err->status) write_some(r, err);
  if (err->status) end_file(r, err);
  if (r->folder && (err->status || !*more)) end_folder(r, err);
  return err->status;
}

/* ----------------------------------------------------------- begin and end */

reshard_done reshard_so_far(const resharding *r) { return r->told; }

static mgrid_status checkpoints_reshard_begin(resharding *r, mgrid_error *err) {
  static const char *const files[] = { "model-*-of-*.safetensors", SHARDS_INDEX, NULL };
  const reshard_options *o = &r->how;

  if (o->given && names_read(&r->given, o->given_from, o->given, o->given_length, err))
    return err->status;
  if (o->own && names_read(&r->own, o->recipe, o->own, o->own_length, err)) return err->status;

  /* a recipe may come from anybody, so matching may take only a few seconds */
  r->budget = mgrid_budget_new(1 << 30, 0);
  r->own.budget = &r->budget;
  r->to = (outputs){ .plan = r->plan,
                     .from = r->from,
                     .recipe = o->recipe,
                     .given = o->given ? &r->given : NULL,
                     .own = &r->own,
                     .convert = o->convert };
  if (outputs_find(&r->to, err)) return err->status;
  r->told.tensors = r->to.n;
  for (size_t i = 0; i < r->to.n; i++) r->told.bytes += mgrid_tensor_bytes(r->to.at[i].tensor);
  if (check_cuts(r, err)) return err->status;
  for (int64_t rank = 0; rank < mgrid_plan_world(r->plan); rank++) r->told.files += writes(r, rank);
  r->part = calloc(r->to.n + 1, sizeof *r->part);
  r->tensor = calloc(r->to.n + 1, sizeof *r->tensor);
  r->buffer = malloc((size_t)o->window);
  r->index = mgrid_json_pack("{s:{}, s:{}}", "weight_map", "parts");
  if (!r->part || !r->tensor || !r->buffer || !r->index) return mgrid_oom(err);
  r->folder = mgrid_output_folder(o->folder, files, err);
  return err->status;
}

resharding *reshard_begin(shards *from, const mgrid_plan *plan, const reshard_options *o,
                          mgrid_error *err) {
  resharding *r = calloc(1, sizeof *r);
  if (!r) return mgrid_null_oom(err);
  r->how = *o, r->from = from, r->plan = mgrid_plan_ref(plan);
  if (!checkpoints_reshard_begin(r, err)) return r;
  reshard_end(r);
  return NULL;
}

void reshard_end(resharding *r) {
  mgrid_error unfinished = MGRID_ERROR_INIT;
  if (!r) return;
  mgrid_fail(&unfinished, MGRID_REFUSED, "it is not complete");
  if (r->file) end_file(r, &unfinished);
  if (r->folder) end_folder(r, &unfinished);
  outputs_free(&r->to);
  names_free(&r->given), names_free(&r->own);
  json_decref(r->index);
  free(r->part), free(r->tensor), free(r->buffer);
  mgrid_plan_free(r->plan);
  free(r);
}
