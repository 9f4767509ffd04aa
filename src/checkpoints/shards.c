/* SPDX-License-Identifier: MIT
**
** shards.c - reads and writes the index of a checkpoint, and proves that the parts of each tensor
** hold each of its elements exactly once.
*/
#include "checkpoints/shards.h"
#include "plan/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ================================================================= the proof */

/* The elements of a part are all combinations of its runs, or a slice of these combinations. A
** slice is divided into a few boxes. The ends of all runs cut the first axis into intervals, such
** that all indices of an interval are in the same boxes. For each interval, the next axis is proved
** for these boxes. On the last axis the runs must follow each other without gap or overlap, from
** the first index to the last. */

typedef struct box { /* a box of a part */
  const shards_part *part;
  shards_box in;
} box;

typedef struct span { /* a run of a box: indices start to end - 1 of the tensor's axis */
  int64_t start, end;
  const box *of;
} span;

typedef struct proof {
  const shards_tensor *t;
  int64_t at[MGRID_AXES_MAX]; /* the element that is being checked */
  mgrid_error *err;
} proof;

/* ------------------------------------------------------------------ refusals */

static const char *file_name(const box *b) {
  const char *slash = strrchr(b->part->file->path, '/');
  return slash ? slash + 1 : b->part->file->path;
}

/* Refuse because element p->at is in the boxes a and b; or, if a is NULL, in no part. */
static mgrid_status index_refuse(const proof *p, const box *a, const box *b) {
  char element[MGRID_AXES_MAX * 24] = "";
  size_t n = 0;
  for (size_t k = 0; k < p->t->naxes; k++)
    n += (size_t)snprintf(element + n, sizeof element - n, "%s%" PRId64, k ? ", " : "", p->at[k]);
  if (!a)
    return mgrid_fail(p->err, MGRID_REFUSED,
                      "the index on tensor '%.200s': no part has element [%s]", p->t->name,
                      element);
  return mgrid_fail(
      p->err, MGRID_REFUSED,
      "the index on tensor '%.200s': the parts in %.80s and %.80s both have element [%s]",
      p->t->name, file_name(a), file_name(b), element);
}

/* --------------------------------------------------------------------- boxes */

size_t shards_boxes(size_t naxes, const int64_t *shape, int64_t first, int64_t n, shards_box *out) {
  size_t boxes = 0, last = naxes - 1;
  int64_t stride[MGRID_AXES_MAX], at = first, end = first + n;
  stride[last] = 1;
  for (size_t k = last; k-- > 0;) stride[k] = stride[k + 1] * shape[k + 1];
  for (; at < end; boxes++) {
    size_t axis = 0;
    while (at % stride[axis] || stride[axis] > end - at) axis++;
    shards_box *b = &out[boxes];
    for (size_t k = 0; k <= last; k++) {
      int64_t index = at / stride[k] % shape[k];
      b->low[k] = k > axis ? 0 : index;
      b->high[k] = k > axis ? shape[k] : index + 1;
    }
    int64_t more = shards_min(shape[axis] - b->low[axis], (end - at) / stride[axis]);
    b->high[axis] = b->low[axis] + more;
    at += more * stride[axis];
  }
  return boxes;
}

/* Divide a part into boxes. */
static size_t boxes_of(const shards_part *part, box *out) {
  shards_box list[SHARDS_BOXES_MAX];
  size_t n = part->elements
                 ? shards_boxes(part->naxes, part->shape, part->first, part->elements, list)
                 : 0;
  for (size_t i = 0; i < n; i++) out[i] = (box){ part, list[i] };
  return n;
}

static int by_start(const void *a, const void *b) {
  const span *x = a, *y = b;
  return (x->start > y->start) - (x->start < y->start);
}

/* List the runs of n boxes on an axis, sorted by start. NULL: out of memory. */
static span *spans_of(size_t axis, size_t n, const box *const *boxes, size_t *nspans) {
  size_t room = 1;
  for (size_t i = 0; i < n; i++) room += boxes[i]->part->nruns[axis];
  span *list = malloc(room * sizeof *list);
  *nspans = 0;
  for (size_t i = 0; i < n && list; i++) {
    const shards_part *part = boxes[i]->part;
    int64_t before = 0; /* elements of the part that are before this run */
    for (size_t k = 0; k < part->nruns[axis]; before += part->runs[axis][k++].length) {
      const mgrid_run *run = &part->runs[axis][k];
      int64_t low = shards_max(boxes[i]->in.low[axis], before),
              high = shards_min(boxes[i]->in.high[axis], before + run->length);
      if (low < high)
        list[(*nspans)++] =
            (span){ run->start + low - before, run->start + high - before, boxes[i] };
    }
  }
  if (*nspans) qsort(list, *nspans, sizeof *list, by_start);
  return list;
}

/* --------------------------------------------------------------------- proof */

static mgrid_status prove_last(proof *p, size_t n, const span *spans) {
  size_t axis = p->t->naxes - 1;
  int64_t end = 0;
  for (size_t i = 0; i < n; end = spans[i++].end) {
    p->at[axis] = shards_min(end, spans[i].start);
    if (spans[i].start != end)
      return spans[i].start > end ? index_refuse(p, NULL, NULL)
                                  : index_refuse(p, spans[i - 1].of, spans[i].of);
  }
  p->at[axis] = end;
  return end == p->t->shape[axis] ? MGRID_OK : index_refuse(p, NULL, NULL);
}

static mgrid_status prove_axis(proof *p, size_t axis, size_t n, const box *const *boxes);

/* Prove each interval. now[0 .. nnow) are the runs that contain the current interval, and `in` has
** their boxes. */
static mgrid_status prove_intervals(proof *p, size_t axis, size_t n, const span *spans,
                                    const span **now, const box **in) {
  size_t next = 0, nnow = 0;
  int64_t length = p->t->shape[axis];
  for (int64_t x = 0, end = 0; x < length && !p->err->status; x = end) {
    size_t kept = 0;
    for (size_t i = 0; i < nnow; i++)
      if (now[i]->end > x) now[kept++] = now[i];
    nnow = kept;
    while (next < n && spans[next].start == x) now[nnow++] = &spans[next++];
    end = next < n ? spans[next].start : length;
    for (size_t i = 0; i < nnow; i++) {
      end = shards_min(end, now[i]->end);
      in[i] = now[i]->of;
    }
    p->at[axis] = x;
    prove_axis(p, axis + 1, nnow, in);
  }
  return p->err->status;
}

static mgrid_status prove_axis(proof *p, size_t axis, size_t n, const box *const *boxes) {
  size_t nspans;
  span *spans = spans_of(axis, n, boxes, &nspans);
  const span **now = malloc((n + 1) * sizeof(span *));
  const box **in = malloc((n + 1) * sizeof(box *));
  for (size_t k = axis; k < p->t->naxes; k++) p->at[k] = 0;
  if (!spans || !now || !in)
    mgrid_oom(p->err);
  else if (n == 0)
    index_refuse(p, NULL, NULL);
  else if (axis + 1 == p->t->naxes)
    prove_last(p, nspans, spans);
  else
    prove_intervals(p, axis, nspans, spans, now, in);
  free(spans), free(now), free(in);
  return p->err->status;
}

/* Return whether the part is all combinations of its runs, and not a slice of them. */
static bool is_whole(const shards_part *part) {
  return part->elements == st_elements(part->naxes, part->shape);
}

/* Prove that the parts hold each element exactly once. Otherwise return MGRID_REFUSED; the error
** names an element that is in no part, or in two. It takes at most O(rows of the tensor), as
** reading the tensor does; or O(runs log runs) if the parts are cut on one axis only. */
static mgrid_status index_prove(const shards_tensor *t, mgrid_error *err) {
  proof p = { t, { 0 }, err };
  size_t n = 0, room = 1;
  for (size_t i = 0; i < t->nparts; i++)
    room += is_whole(&t->part[i]) ? 1 : 2 * t->part[i].naxes - 1;
  box *boxes = malloc(room * sizeof *boxes);
  const box **each = malloc(room * sizeof(box *));
  for (size_t i = 0; i < t->nparts && boxes; i++) n += boxes_of(&t->part[i], boxes + n);
  for (size_t i = 0; i < n && each && boxes; i++) each[i] = &boxes[i];
  if (boxes && each)
    prove_axis(&p, 0, n, each);
  else
    mgrid_oom(err);
  free(boxes), free(each);
  return err->status;
}

/* ================================================================= the index */

/* -------------------------------------------------------------------- parts */

void shards_part_free(shards_part *part) {
  free(part->runs[0]);
  *part = (shards_part){ 0 };
}

mgrid_status shards_part_room(shards_part *part, mgrid_error *err) {
  size_t n = 0;
  for (size_t k = 0; k < part->naxes; k++) n += part->nruns[k];
  mgrid_run *runs = calloc(n + 1, sizeof *runs);
  if (!runs) return mgrid_oom(err);
  part->runs[0] = runs;
  for (size_t k = 1; k < part->naxes; k++) part->runs[k] = part->runs[k - 1] + part->nruns[k - 1];
  return MGRID_OK;
}

void shards_part_shape(shards_part *part) {
  for (size_t k = 0; k < part->naxes; k++) {
    part->shape[k] = 0;
    for (size_t i = 0; i < part->nruns[k]; i++) part->shape[k] += part->runs[k][i].length;
  }
}

mgrid_status shards_part_of(const mgrid_plan *p, const char *tensor, int64_t rank, shards_part *out,
                            mgrid_error *err) {
  mgrid_tensor_part about = MGRID_TENSOR_PART_INIT;
  *out = (shards_part){ 0 };
  mgrid_status s = mgrid_tensor_local(p, tensor, rank, &about, err);
  if (s || !about.held || about.copy || !about.elements) return s;
  shards_part part = { .naxes = about.naxes, .first = about.first, .elements = about.elements };
  for (size_t k = 0; k < part.naxes; k++) {
    int64_t n = mgrid_tensor_runs(p, tensor, rank, k, 0, NULL, err);
    if (n < 0) return err->status;
    part.nruns[k] = (size_t)n;
  }
  if ((s = shards_part_room(&part, err))) return s;
  for (size_t k = 0; k < part.naxes; k++)
    mgrid_tensor_runs(p, tensor, rank, k, part.nruns[k], part.runs[k], err);
  shards_part_shape(&part);
  *out = part;
  return MGRID_OK;
}

st_tensor shards_in_file(const char *name, const char *type, const shards_part *part) {
  st_tensor t = {
    .name = name, .type = type, .width = st_width(type), .naxes = 1, .shape = { part->elements }
  };
  if (!is_whole(part)) return t;
  t.naxes = part->naxes;
  memcpy(t.shape, part->shape, sizeof t.shape);
  return t;
}

/* ------------------------------------------------------------ an index to write */

static json_t *list_of(size_t n, const mgrid_run *runs) {
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++) {
    json_array_append_new(list, json_integer(runs[i].start));
    if (json_array_append_new(list, json_integer(runs[i].length))) return json_decref(list), NULL;
  }
  return list;
}

static json_t *json_of_part(const char *file, const shards_part *part) {
  json_t *about = json_pack("{s:s, s:[]}", "file", file, "runs"),
         *runs = json_object_get(about, "runs");
  bool ok = about != NULL;
  for (size_t k = 0; k < part->naxes; k++)
    ok &= !json_array_append_new(runs, list_of(part->nruns[k], part->runs[k]));
  if (!is_whole(part)) {
    ok &= !json_object_set_new(about, "first", json_integer(part->first));
    ok &= !json_object_set_new(about, "elements", json_integer(part->elements));
  }
  if (!ok) json_decref(about);
  return ok ? about : NULL;
}

static json_t *json_of_tensor(const mgrid_tensor *t) {
  json_t *about = json_pack("{s:s, s:[], s:[]}", "type", mgrid_tensor_type(t), "shape", "parts");
  for (size_t k = 0; k < mgrid_tensor_naxes(t); k++)
    json_array_append_new(json_object_get(about, "shape"), json_integer(mgrid_tensor_length(t, k)));
  return about;
}

void shards_index_add(json_t **index, const char *file, const char *name, const mgrid_tensor *t,
                      const shards_part *part) {
  json_t *map = json_object_get(*index, "weight_map"), *parts = json_object_get(*index, "parts");
  bool ok = *index != NULL;
  if (ok && !json_object_get(map, name))
    ok = !json_object_set_new(map, name, json_string(file))
         && !json_object_set_new(parts, name, json_of_tensor(t));
  json_t *list = json_object_get(json_object_get(parts, name), "parts");
  if (ok && !json_array_append_new(list, json_of_part(file, part))) return;
  json_decref(*index);
  *index = NULL;
}

mgrid_status shards_index_write(json_t *index, const char *folder, mgrid_writes how,
                                json_t *metadata, mgrid_error *err) {
  size_t n = strlen(folder) + sizeof "/" SHARDS_INDEX;
  char *path = malloc(n);
  if (!index) json_decref(metadata);
  if (!index || json_object_set_new(index, "metadata", metadata) || !path)
    return free(path), mgrid_oom(err);
  snprintf(path, n, "%s/%s", folder, SHARDS_INDEX);
  mgrid_text text = { 0 };
  mgrid_json_text(index, JSON_INDENT(1), &text);
  if (text.failed)
    mgrid_oom(err);
  else
    mgrid_write_file(path, how, text.data, text.len, err);
  mgrid_text_free(&text);
  free(path);
  return err->status;
}

/* ------------------------------------------------------------ an index to read */

static mgrid_status wrong(const char *tensor, const char *what, mgrid_error *err) {
  return mgrid_fail(err, MGRID_REFUSED, "the index on tensor '%.200s': %s", tensor, what);
}

/* Return the file of this name in the folder of the index. `files` has the numbers of known
** files. */
static st_file *index_file_of(shards *s, json_t *files, const char *folder, const char *name,
                              mgrid_error *err) {
  const json_t *known = json_object_get(files, name);
  if (known) return s->file[json_integer_value(known)];
  if (strchr(name, '/') || *name == '\0' || *name == '.') {
    mgrid_fail(err, MGRID_REFUSED,
               "the index names '%.200s', which is not the name of a file beside it", name);
    return NULL;
  }
  size_t n = strlen(folder) + strlen(name) + 1;
  char *path = malloc(n);
  st_file *f = NULL;
  if (!path || !MGRID_GROW(s->file, s->nfiles, 1)
      || json_object_set_new(files, name, json_integer((json_int_t)s->nfiles)))
    mgrid_oom(err);
  else if (snprintf(path, n, "%s%s", folder, name), access(path, F_OK) && errno == ENOENT)
    mgrid_fail(err, MGRID_REFUSED, "%s is missing; the index names it", path);
  else if ((f = st_open(path, err)))
    s->file[s->nfiles++] = f;
  free(path);
  if (f) close(f->fd), f->fd = -1;
  return f;
}

/* Make the only part of a tensor that is whole in a file. */
static mgrid_status whole_part(const shards_tensor *t, shards_part *part, mgrid_error *err) {
  *part = (shards_part){ .naxes = t->naxes, .elements = st_elements(t->naxes, t->shape) };
  for (size_t k = 0; k < t->naxes; k++) part->nruns[k] = 1;
  if (shards_part_room(part, err)) return err->status;
  for (size_t k = 0; k < t->naxes; k++) part->runs[k][0] = (mgrid_run){ 0, t->shape[k] };
  shards_part_shape(part);
  return MGRID_OK;
}

/* Read an integer. Return false if the value is something else. */
static bool read_integer(const json_t *value, int64_t *out) {
  *out = json_integer_value(value);
  return json_is_integer(value);
}

/* Read the runs of one axis from its list, into memory of the part. */
static mgrid_status index_read_axis(const shards_tensor *t, size_t axis, const json_t *list,
                                    mgrid_run *runs, mgrid_error *err) {
  int64_t end = 0;
  for (size_t i = 0; i < json_array_size(list) / 2; i++) {
    mgrid_run run;
    if (!read_integer(json_array_get(list, 2 * i), &run.start)
        || !read_integer(json_array_get(list, 2 * i + 1), &run.length))
      return wrong(t->name, "the runs of a part are not all integers", err);
    if (run.start < end || run.length < 1 || run.start > t->shape[axis] - run.length)
      return wrong(t->name, "runs of a part are not ascending, or beyond the shape", err);
    runs[i] = run;
    end = run.start + run.length;
  }
  return MGRID_OK;
}

static mgrid_status read_runs(const shards_tensor *t, const json_t *axes, shards_part *part,
                              mgrid_error *err) {
  part->naxes = t->naxes;
  if (json_array_size(axes) != t->naxes)
    return wrong(t->name, "a part has not as many axes as the tensor", err);
  for (size_t k = 0; k < t->naxes; k++) {
    const json_t *list = json_array_get(axes, k);
    if (!json_is_array(list) || json_array_size(list) % 2)
      return wrong(t->name, "the runs of a part are not a list of a start and a length each", err);
    part->nruns[k] = json_array_size(list) / 2;
  }
  if (shards_part_room(part, err)) return err->status;
  for (size_t k = 0; k < t->naxes; k++)
    if (index_read_axis(t, k, json_array_get(axes, k), part->runs[k], err)) return err->status;
  shards_part_shape(part);
  return MGRID_OK;
}

/* Read which slice of all combinations of its runs a part has. Without "first" and "elements", the
** part has all of them. */
static mgrid_status read_slice(const shards_tensor *t, const json_t *about, shards_part *part,
                               mgrid_error *err) {
  const json_t *first = json_object_get(about, "first"),
               *elements = json_object_get(about, "elements");
  int64_t all = st_elements(part->naxes, part->shape);
  part->first = 0, part->elements = all;
  if ((first && !read_integer(first, &part->first))
      || (elements && !read_integer(elements, &part->elements)))
    return wrong(t->name, "first and elements of a part are integers", err);
  if (part->first < 0 || part->elements < 0 || part->first > all - part->elements)
    return wrong(t->name, "a slice that is beyond its part", err);
  return MGRID_OK;
}

static mgrid_status read_part(shards *s, json_t *files, const char *folder, const shards_tensor *t,
                              const json_t *about, shards_part *part, mgrid_error *err) {
  const char *name = json_string_value(json_object_get(about, "file"));

  if (!name) return wrong(t->name, "a part without its file", err);
  if (read_runs(t, json_object_get(about, "runs"), part, err) || read_slice(t, about, part, err))
    return err->status;
  part->file = index_file_of(s, files, folder, name, err);
  st_tensor *in = part->file ? st_find(part->file, t->name) : NULL;
  if (part->file && !in)
    return mgrid_fail(err, MGRID_REFUSED, "%s has no tensor '%.200s', which the index says",
                      part->file->path, t->name);
  if (!in) return err->status;
  st_tensor is = shards_in_file(t->name, t->type, part);
  if (strcmp(in->type, t->type) != 0 || in->naxes != is.naxes
      || memcmp(in->shape, is.shape, sizeof is.shape) != 0)
    return mgrid_fail(err, MGRID_REFUSED,
                      "%s has another shape or type of tensor '%.200s' than the index says",
                      part->file->path, t->name);
  if (in->taken)
    return mgrid_fail(err, MGRID_REFUSED,
                      "the index on tensor '%.200s': two parts are in %.200s, which has one",
                      t->name, part->file->path);
  in->taken = true;
  return MGRID_OK;
}

/* Read a tensor that the index lists by parts. */
static mgrid_status index_read_parts(shards *s, json_t *files, const char *folder, shards_tensor *t,
                                     const json_t *about, mgrid_error *err) {
  const json_t *shape = json_object_get(about, "shape"), *parts = json_object_get(about, "parts");
  const char *type = json_string_value(json_object_get(about, "type"));
  t->width = type ? st_width(type) : 0;
  t->naxes = json_array_size(shape);
  if (!t->width || !t->naxes || t->naxes > MGRID_AXES_MAX || !json_is_array(parts))
    return wrong(t->name, "type, shape and parts are wanted", err);
  t->type = type;
  for (size_t k = 0; k < t->naxes; k++)
    if (!read_integer(json_array_get(shape, k), &t->shape[k]))
      return wrong(t->name, "the shape is wrong", err);
  if (st_elements(t->naxes, t->shape) < 1) return wrong(t->name, "the shape is wrong", err);
  t->part = calloc(json_array_size(parts) + 1, sizeof *t->part);
  if (!t->part) return mgrid_oom(err);
  for (size_t i = 0; i < json_array_size(parts); i++) {
    t->nparts++;
    if (read_part(s, files, folder, t, json_array_get(parts, i), &t->part[i], err))
      return err->status;
  }
  return index_prove(t, err);
}

/* Read a tensor that is whole in one file. */
static mgrid_status take_whole(shards_tensor *t, st_file *f, const st_tensor *in,
                               mgrid_error *err) {
  *t =
      (shards_tensor){ .name = in->name, .type = in->type, .width = in->width, .naxes = in->naxes };
  memcpy(t->shape, in->shape, sizeof t->shape);
  t->part = calloc(1, sizeof *t->part);
  if (!t->part) return mgrid_oom(err);
  t->nparts = 1;
  if (whole_part(t, t->part, err)) return err->status;
  t->part->file = f;
  return MGRID_OK;
}

static mgrid_status read_map(shards *s, const char *path, json_t *files, mgrid_error *err) {
  json_t *map = json_object_get(s->index, "weight_map"),
         *parts = json_object_get(s->index, "parts"), *value;
  const char *name, *slash = strrchr(path, '/');
  char *folder = strdup(path);

  s->tensor = calloc(json_object_size(map) + 1, sizeof *s->tensor);
  if (!folder || !s->tensor || !files) return free(folder), mgrid_oom(err);
  folder[slash ? slash + 1 - path : 0] = '\0';
  json_object_foreach(map, name, value) {
    shards_tensor *t = &s->tensor[s->n++];
    const json_t *cut = json_object_get(parts, name);
    const char *file = json_string_value(value);
    t->name = name;
    if (!file) {
      wrong(name, "the name of a file is wanted", err);
    } else if (cut) {
      index_read_parts(s, files, folder, t, cut, err);
    } else {
      st_file *f = index_file_of(s, files, folder, file, err);
      const st_tensor *in = f ? st_find(f, name) : NULL;
      if (in)
        take_whole(t, f, in, err);
      else if (f)
        mgrid_fail(err, MGRID_REFUSED, "%s has no tensor '%.200s', which the index says", f->path,
                   name);
    }
    if (err->status) break;
  }
  free(folder);
  return err->status;
}

static mgrid_status read_index(shards *s, const char *path, mgrid_error *err) {
  json_error_t why;
  struct stat about;

  if (stat(path, &about))
    return mgrid_fail(err, MGRID_REFUSED, "cannot open %s: %s", path, strerror(errno));
  if (!S_ISREG(about.st_mode))
    return mgrid_fail(err, MGRID_REFUSED, "cannot read %s: it is not a regular file", path);
  s->index = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
  if (!s->index)
    return mgrid_fail(err, MGRID_REFUSED,
                      "%s: line %d: %.160s; an index, or a file *.safetensors, is expected", path,
                      why.line, why.text);
  if (!json_is_object(json_object_get(s->index, "weight_map")))
    return mgrid_fail(err, MGRID_REFUSED,
                      "%s has no weight_map: it is not an index of safetensors files", path);
  const json_t *parts = json_object_get(s->index, "parts");
  if (parts && !json_is_object(parts))
    return mgrid_fail(err, MGRID_REFUSED,
                      "%s: its parts are not an object with a tensor's name each", path);
  json_t *files = json_object();
  read_map(s, path, files, err);
  json_decref(files);
  return err->status;
}

static mgrid_status read_single(shards *s, const char *path, mgrid_error *err) {
  st_file *f = st_open(path, err);
  if (!f) return err->status;
  s->file = calloc(1, sizeof(st_file *));
  s->tensor = calloc(f->n + 1, sizeof *s->tensor);
  if (!s->file || !s->tensor) return st_close(f), mgrid_oom(err);
  s->file[s->nfiles++] = f;
  for (size_t i = 0; i < f->n; i++)
    if (take_whole(&s->tensor[s->n++], f, &f->tensor[i], err)) return err->status;
  return MGRID_OK;
}

/* Find the index in a folder. If there is none, find the one file of a small model, and set
** *single. */
static mgrid_status in_folder(const char *folder, char *path, size_t room, bool *single,
                              mgrid_error *err) {
  snprintf(path, room, "%s/" SHARDS_INDEX, folder);
  if (access(path, F_OK) == 0) return MGRID_OK;
  snprintf(path, room, "%s/" SHARDS_SINGLE, folder);
  *single = access(path, F_OK) == 0;
  if (*single) return MGRID_OK;
  return mgrid_fail(err, MGRID_REFUSED, "%s has neither " SHARDS_INDEX " nor " SHARDS_SINGLE,
                    folder);
}

shards *shards_open(const char *path, mgrid_error *err) {
  static const char ending[] = ".safetensors";
  struct stat about;
  size_t n = strlen(path), room = n + sizeof "/" SHARDS_INDEX;
  bool folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
  bool single = n >= sizeof ending && strcmp(path + n + 1 - sizeof ending, ending) == 0;
  shards *s = calloc(1, sizeof *s);
  char *at = malloc(room);
  if (at) snprintf(at, room, "%s", path);
  if (!s || !at)
    mgrid_oom(err);
  else if (!folder || !in_folder(path, at, room, &single, err))
    (void)(single ? read_single(s, at, err) : read_index(s, at, err));
  free(at);
  if (!err->status) return s;
  shards_close(s);
  return NULL;
}

void shards_close(shards *s) {
  if (!s) return;
  for (size_t i = 0; i < s->n; i++) {
    for (size_t k = 0; k < s->tensor[i].nparts; k++) shards_part_free(&s->tensor[i].part[k]);
    free(s->tensor[i].part);
  }
  for (size_t i = 0; i < s->nfiles; i++) st_close(s->file[i]);
  json_decref(s->index);
  free(s->file), free(s->tensor), free(s);
}
