/* SPDX-License-Identifier: MIT
**
** safetensors.c - reads and writes a safetensors file.
*/
#include "checkpoints/safetensors.h"

#include "base/files.h"
#include "plan/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_MAX = 100000000 }; /* limit of a header in bytes; other readers have it, too */

/* -------------------------------------------------------------------- types */

static const struct {
  const char *in_file, *type;
  int64_t width;
} types[] = {
  { "BF16", "bf16", 2 }, { "F16", "f16", 2 },         { "F32", "f32", 4 },
  { "F64", "f64", 8 },   { "I8", "i8", 1 },           { "I16", "i16", 2 },
  { "I32", "i32", 4 },   { "I64", "i64", 8 },         { "U8", "u8", 1 },
  { "U16", "u16", 2 },   { "U32", "u32", 4 },         { "U64", "u64", 8 },
  { "BOOL", "bool", 1 }, { "F8_E4M3", "f8_e4m3", 1 }, { "F8_E5M2", "f8_e5m2", 1 },
  { "C64", "c64", 8 },
};
enum { NTYPES = sizeof types / sizeof types[0] };

/* Find a type by its name in files, or, if that is NULL, by moongrid's name. NTYPES: unknown. */
static size_t type_row(const char *in_file, const char *type) {
  size_t i = 0;
  while (i < NTYPES
         && strcmp(in_file ? in_file : type, in_file ? types[i].in_file : types[i].type) != 0)
    i++;
  return i;
}

int64_t st_width(const char *type) {
  size_t row = type_row(NULL, type);
  return row < NTYPES ? types[row].width : 0;
}

int64_t st_elements(size_t naxes, const int64_t *shape) {
  int64_t n = 1;
  for (size_t i = 0; i < naxes; i++) {
    if (shape[i] == 0) return 0;
    if (shape[i] < 0 || n > INT64_MAX / 16 / shape[i]) return -1;
    n *= shape[i];
  }
  return n;
}

/* ------------------------------------------------------------------- reading */

#define BAD(f, err, ...) mgrid_fail_at(err, MGRID_REFUSED, (f)->path, 0, __VA_ARGS__)

static mgrid_status open_again(st_file *f, mgrid_error *err) {
  /* O_NONBLOCK: opening a pipe must not wait */
  if (f->fd < 0) f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  return f->fd < 0 ? BAD(f, err, "cannot be opened: %s", strerror(errno)) : MGRID_OK;
}

static mgrid_status read_at(st_file *f, int64_t at, void *to, int64_t n, mgrid_error *err) {
  mgrid_status s = open_again(f, err);
  if (s) return s;
  for (char *p = to; n > 0;) {
    ssize_t got = pread(f->fd, p, (size_t)n, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return BAD(f, err, "cannot be read: %s", strerror(errno));
    if (got == 0) return BAD(f, err, "ends at byte %" PRId64 ", where data are expected", at);
    p += got, at += got, n -= got;
  }
  return MGRID_OK;
}

static bool is_count(const json_t *x) { return json_is_integer(x) && json_integer_value(x) >= 0; }

static mgrid_status safetensors_read_tensor(st_file *f, const char *name, const json_t *about,
                                            int64_t data, mgrid_error *err) {
  st_tensor *t = &f->tensor[f->n++];
  const char *type = json_string_value(json_object_get(about, "dtype"));
  const json_t *shape = json_object_get(about, "shape"),
               *places = json_object_get(about, "data_offsets");
  const json_t *from = json_array_get(places, 0), *to = json_array_get(places, 1);
  size_t row = type ? type_row(type, NULL) : NTYPES;
  bool counts = json_is_array(shape) && json_array_size(places) == 2 && is_count(from)
                && is_count(to);

  if (!type || !counts)
    return BAD(f, err, "tensor '%.200s' needs dtype, shape and two data_offsets", name);
  if (row == NTYPES)
    return BAD(f, err, "tensor '%.200s' has the dtype '%.40s', which is not known", name, type);
  *t = (st_tensor){ .name = name, .type = types[row].type, .width = types[row].width };
  if ((t->naxes = json_array_size(shape)) > MGRID_AXES_MAX)
    return BAD(f, err, "tensor '%.200s' has %zu axes; %d are the most", name, t->naxes,
               MGRID_AXES_MAX);
  for (size_t i = 0; i < t->naxes; i++) {
    const json_t *length = json_array_get(shape, i);
    if (!is_count(length))
      return BAD(f, err, "tensor '%.200s' has a shape that is not a list of lengths", name);
    t->shape[i] = json_integer_value(length);
  }
  int64_t n = st_elements(t->naxes, t->shape), end = json_integer_value(to);
  t->at = json_integer_value(from);
  t->bytes = end - t->at;
  if (n < 0 || t->bytes != n * t->width)
    return BAD(f, err,
               "tensor '%.200s' has data_offsets %" PRId64 " to %" PRId64
               ", which is not the size of its shape",
               name, t->at, end);
  if (end > data)
    return BAD(f, err,
               "tensor '%.200s' ends at byte %" PRId64 " of the data, and the file has %" PRId64
               " of them; is it truncated?",
               name, end, data);
  return MGRID_OK;
}

static int safetensors_by_place(const void *a, const void *b) {
  const st_tensor *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static mgrid_status safetensors_read_tensors(st_file *f, int64_t data, mgrid_error *err) {
  const char *name;
  json_t *about;
  int64_t end = 0;
  mgrid_status s = MGRID_OK;
  f->tensor = calloc(json_object_size(f->header) + 1, sizeof *f->tensor);
  if (!f->tensor) return mgrid_oom(err);
  json_object_foreach(f->header, name, about) if (!s && strcmp(name, "__metadata__") != 0)
      s = safetensors_read_tensor(f, name, about, data, err);
  if (s) return s;
  if (f->n) qsort(f->tensor, f->n, sizeof *f->tensor, safetensors_by_place);
  for (size_t i = 0; i < f->n; end = f->tensor[i].at + f->tensor[i].bytes, i++) {
    const st_tensor *t = &f->tensor[i];
    if (t->at < end)
      return BAD(f, err, "tensors '%.200s' and '%.200s' overlap", f->tensor[i - 1].name, t->name);
    if (t->at > end)
      return BAD(f, err, "nothing says what bytes %" PRId64 " to %" PRId64 " of the data are", end,
                 t->at);
  }
  return end == data ? MGRID_OK
                     : BAD(f, err, "%" PRId64 " bytes follow the last tensor", data - end);
}

static mgrid_status read_header(st_file *f, mgrid_error *err) {
  unsigned char first[8];
  uint64_t length = 0;
  struct stat about;
  json_error_t why;
  mgrid_status s = open_again(f, err);

  if (s) return s;
  if (fstat(f->fd, &about) || !S_ISREG(about.st_mode)) return BAD(f, err, "is not a regular file");
  if (about.st_size < 8)
    return BAD(f, err, "has %lld bytes; a safetensors file has 8 or more",
               (long long)about.st_size);
  if ((s = read_at(f, 0, first, 8, err))) return s;
  for (int i = 8; i-- > 0;) length = length << 8 | first[i];
  if (length > (uint64_t)about.st_size - 8)
    return BAD(f, err,
               "its header has %" PRIu64
               " bytes, and the file has %lld; is it a safetensors file, and whole?",
               length, (long long)about.st_size);
  if (length > HEADER_MAX)
    return BAD(f, err, "its header has %" PRIu64 " bytes; %d are the most", length, HEADER_MAX);
  char *text = malloc(length + 1);
  if (!text) return mgrid_oom(err);
  s = read_at(f, 8, text, (int64_t)length, err);
  if (!s) f->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
  free(text);
  if (s) return s;
  if (!json_is_object(f->header))
    return BAD(f, err, "its header is not a JSON object%s%.160s", f->header ? "" : ": ",
               f->header ? "" : why.text);
  f->data = 8 + (int64_t)length;
  return safetensors_read_tensors(f, (int64_t)about.st_size - f->data, err);
}

st_file *st_open(const char *path, mgrid_error *err) {
  st_file *f = calloc(1, sizeof *f);
  if (f) f->fd = -1, f->path = malloc(strlen(path) + 1);
  if (!f || !f->path)
    mgrid_oom(err);
  else if (strcpy(f->path, path), !read_header(f, err))
    return f;
  st_close(f);
  return NULL;
}

void st_close(st_file *f) {
  if (!f) return;
  if (f->fd >= 0) close(f->fd);
  json_decref(f->header);
  free(f->tensor), free(f->path);
  free(f);
}

st_tensor *st_find(const st_file *f, const char *name) {
  if (!json_object_get(f->header, name)) return NULL;
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(f->tensor[i].name, name) == 0) return &f->tensor[i];
  return NULL;
}

mgrid_status st_read(st_file *f, const st_tensor *t, int64_t at, void *to, int64_t n,
                     mgrid_error *err) {
  return read_at(f, f->data + t->at + at, to, n, err);
}

/* ------------------------------------------------------------------- writing */

struct st_writer {
  mgrid_output *file;
  int64_t left; /* bytes of the data that are not written yet */
};

mgrid_status st_finish(st_writer *w, mgrid_status before, mgrid_error *err) {
  if (!w) return before;
  if (!before && w->left)
    before =
        mgrid_fail(err, MGRID_USAGE, "%" PRId64 " bytes of the tensors were not written", w->left);
  mgrid_status s = mgrid_output_end(w->file, before, err);
  free(w);
  return s;
}

/* Make the header. NULL: *err says why, or is empty if memory ran out. */
static json_t *header_of(size_t n, st_tensor *tensors, mgrid_error *err) {
  /* torch's readers need "format" */
  json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
  int64_t at = 0;

  for (size_t i = 0; i < n; i++) {
    st_tensor *t = &tensors[i];
    json_t *shape = json_array();
    for (size_t k = 0; k < t->naxes; k++) json_array_append_new(shape, json_integer(t->shape[k]));
    t->at = at;
    t->bytes = st_elements(t->naxes, t->shape) * t->width;
    at += t->bytes;
    size_t row = type_row(NULL, t->type);
    json_t *about = row == NTYPES
                        ? NULL
                        : json_pack("{s:s, s:o, s:[I, I]}", "dtype", types[row].in_file, "shape",
                                    shape, "data_offsets", (json_int_t)t->at, (json_int_t)at);
    if (row == NTYPES)
      json_decref(shape),
          mgrid_fail(err, MGRID_REFUSED,
                     "tensor '%.200s' has the type '%.40s', which safetensors files do not have",
                     t->name, t->type);
    if (json_object_set_new(header, t->name, about)) {
      json_decref(header);
      return NULL;
    }
  }
  return header;
}

st_writer *st_create(const char *path, size_t n, st_tensor *tensors, mgrid_error *err) {
  unsigned char first[8];
  json_t *header = header_of(n, tensors, err);
  st_writer *w = calloc(1, sizeof *w);
  mgrid_text text = { 0 };
  mgrid_json_text(header, JSON_COMPACT, &text);
  json_decref(header);
  /* the data starts at a multiple of 8 */
  while (text.len % 8 && !text.failed) mgrid_text_str(&text, " ");
  mgrid_status s = text.failed || !w ? mgrid_oom(err) : MGRID_OK;
  if (!s) w->file = mgrid_output_file(path, MGRID_WRITE_NEW, err);
  for (int i = 0; i < 8; i++) first[i] = (unsigned char)(text.len >> 8 * i);
  if (!s && w->file) s = mgrid_output_write(w->file, first, 8, err);
  if (!s && w->file) s = mgrid_output_write(w->file, text.data, text.len, err);
  mgrid_text_free(&text);
  if (!s && w->file) {
    w->left = n ? tensors[n - 1].at + tensors[n - 1].bytes : 0;
    return w;
  }
  st_finish(w, s, err);
  return NULL;
}

mgrid_status st_write(st_writer *w, const void *data, int64_t n, mgrid_error *err) {
  if (n > w->left) return mgrid_fail(err, MGRID_USAGE, "more bytes than the tensors have");
  w->left -= n;
  return mgrid_output_write(w->file, data, (size_t)n, err);
}
