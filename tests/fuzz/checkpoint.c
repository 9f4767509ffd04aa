/* SPDX-License-Identifier: MIT
**
** checkpoint.c - fuzz target: a checkpoint of safetensors files and its index. The bytes say how
** many data two files have, which allocation fails, what is read, and then, a line each, the index
** and the headers of the files, input.a and input.b. What is opened is read in several pieces, and
** each element is compared with the one place where a walk over all parts in the JSON finds it: it
** has to be in one part, once.
*/
#include "fuzz.h"

#include "base/base.h"
#include "checkpoints/shards.h"

#include <inttypes.h>

enum { FILES = 2, MOST = 4096 };

typedef struct stored {
  json_t *header;
  const uint8_t *data;
} stored;

static int64_t number(const json_t *list, size_t i) {
  return json_integer_value(json_array_get(list, i));
}

/* The tensor of that name in one of the files, input.a or input.b. */
static const uint8_t *data_of(const stored *file, const char *name, const char *tensor) {
  const stored *f = &file[strcmp(name, "input.b") == 0];
  return f->data + number(json_object_get(json_object_get(f->header, tensor), "data_offsets"), 0);
}

/* Where a part has element `coord`, counted from its first; -1: nowhere. */
static int64_t place_in(const json_t *part, size_t naxes, const int64_t *coord) {
  const json_t *axes = json_object_get(part, "runs"), *elements = json_object_get(part, "elements");
  int64_t place = 0, first = json_integer_value(json_object_get(part, "first"));
  for (size_t k = 0; k < naxes; k++) {
    const json_t *runs = json_array_get(axes, k);
    int64_t before = 0, at = -1;
    for (size_t i = 0; i + 1 < json_array_size(runs); i += 2) {
      int64_t start = number(runs, i), length = number(runs, i + 1);
      if (coord[k] >= start && coord[k] < start + length) at = before + coord[k] - start;
      before += length;
    }
    if (at < 0) return -1;
    place = place * before + at;
  }
  place -= first;
  return place >= 0 && (!elements || place < json_integer_value(elements)) ? place : -1;
}

/* The bytes of element `nth` of a tensor. */
static const uint8_t *element(const shards *s, const stored *file, const shards_tensor *t,
                              int64_t nth) {
  const json_t *about = json_object_get(json_object_get(s->index, "parts"), t->name);
  const uint8_t *found = NULL;
  int64_t coord[MGRID_AXES_MAX], rest = nth;
  const char *whole =
      json_string_value(json_object_get(json_object_get(s->index, "weight_map"), t->name));
  if (!about) return data_of(file, whole, t->name) + nth * t->width;
  for (size_t k = t->naxes; k-- > 0; rest /= t->shape[k]) coord[k] = rest % t->shape[k];
  for (size_t i = 0; i < json_array_size(json_object_get(about, "parts")); i++) {
    const json_t *part = json_array_get(json_object_get(about, "parts"), i);
    int64_t place = place_in(part, t->naxes, coord);
    if (place < 0) continue;
    CHECK(!found);
    found = data_of(file, json_string_value(json_object_get(part, "file")), t->name)
            + place * t->width;
  }
  CHECK(found);
  return found;
}

/* Names in messages are as the files have them; the command writes them out when it tells them. */
static void check_told(mgrid_error *e, bool failed) {
  if (e->status) mgrid_error_reword(e, "%s", e->message);
  fuzz_check_error(e, failed);
}

/* Draw some of a tensor, as a rank might have it: a run or two on each axis, and a slice of
** that. */
static void draw_want(bytes *b, const shards_tensor *t, mgrid_run runs[][2], shards_part *want) {
  *want = (shards_part){ .naxes = t->naxes };
  for (size_t k = 0; k < t->naxes; k++) {
    int64_t start = (int64_t)below(b, (size_t)t->shape[k]);
    int64_t length = t->shape[k] - start - (int64_t)below(b, (size_t)(t->shape[k] - start)),
            end = start + length;
    runs[k][0] = (mgrid_run){ start, length };
    want->runs[k] = runs[k];
    want->nruns[k] = 1;
    want->shape[k] = length;
    if (end + 1 >= t->shape[k] || below(b, 2)) continue;
    runs[k][1] = (mgrid_run){ end + 1, t->shape[k] - end - 1 };
    want->nruns[k] = 2;
    want->shape[k] += runs[k][1].length;
  }
  int64_t all = st_elements(t->naxes, want->shape);
  want->first = (int64_t)below(b, (size_t)all);
  want->elements = all - want->first - (int64_t)below(b, (size_t)(all - want->first));
}

/* Element `nth` of a part, as an element of the tensor. */
static int64_t element_of(const shards_tensor *t, const shards_part *want, int64_t nth) {
  int64_t at[MGRID_AXES_MAX], whole = 0;
  for (size_t k = t->naxes; k-- > 0; nth /= want->shape[k]) at[k] = nth % want->shape[k];
  for (size_t k = 0; k < t->naxes; k++) {
    const mgrid_run *run = want->runs[k];
    whole = whole * t->shape[k]
            + (at[k] < run->length ? run->start + at[k] : run[1].start + at[k] - run->length);
  }
  return whole;
}

static void read_some(bytes *b, shards *s, const stored *file, const shards_tensor *t) {
  mgrid_run runs[MGRID_AXES_MAX][2];
  shards_part want;
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t all = st_elements(t->naxes, t->shape);
  CHECK(all >= 0 && t->nparts > 0);
  if (all == 0 || all > MOST || t->naxes == 0) return;
  for (int64_t i = 0; i < all; i++) element(s, file, t, i);
  draw_want(b, t, runs, &want);
  int64_t from = (int64_t)below(b, (size_t)want.elements), n = want.elements - from,
          width = t->width;
  uint8_t *out = malloc((size_t)(n * width));
  if (!out) return;
  shards_read(s, t, &want, from, n, out, &e);
  check_told(&e, e.status);
  CHECK(e.status == MGRID_OK || e.status == MGRID_NO_MEMORY);
  for (int64_t i = 0; i < n && !e.status; i++)
    CHECK(memcmp(out + i * width, element(s, file, t, element_of(t, &want, want.first + from + i)),
                 (size_t)width)
          == 0);
  free(out);
}

/* Eight bytes of length, the header, and the data. */
static void write_file(const char *end, const char *header, const uint8_t *data, size_t n) {
  size_t length = strlen(header);
  uint8_t *all = malloc(8 + length + n);
  if (!all) abort();
  for (size_t i = 0; i < 8; i++) all[i] = (uint8_t)(length >> 8 * i);
  memcpy(all + 8, header, length);
  memcpy(all + 8 + length, data, n);
  fuzz_file(end, all, 8 + length + n);
  free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
  bytes b = { input, input + size };
  size_t n[FILES] = { byte(&b), byte(&b) }, fails = byte(&b);
  uint8_t data[FILES][256], says[32];
  stored file[FILES];
  const char *const ends[FILES] = { ".a", ".b" };
  mgrid_error e = MGRID_ERROR_INIT;
  for (size_t i = 0; i < sizeof says; i++) says[i] = byte(&b);
  bytes how = { says, says + sizeof says };
  char *index = line(&b), *header[FILES] = { line(&b), line(&b) };
  const char *path = fuzz_file(".index.json", index, strlen(index));
  for (size_t f = 0; f < FILES; f++) {
    for (size_t i = 0; i < 256; i++) data[f][i] = (uint8_t)(i * 7 + f * 101 + i / 13);
    write_file(ends[f], header[f], data[f], n[f]);
    file[f] = (stored){ json_loads(header[f], 0, NULL), data[f] };
  }
  until_failure = fails < 128 ? -1 : (long)fails - 128;
  shards *s = shards_open(path, &e);
  check_told(&e, !s);
  for (size_t i = 0; s && i < s->n; i++) read_some(&how, s, file, &s->tensor[i]);
  shards_close(s);
  until_failure = -1;
  for (size_t f = 0; f < FILES; f++) json_decref(file[f].header), free(header[f]);
  free(index);
  return 0;
}
