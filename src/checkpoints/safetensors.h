/* SPDX-License-Identifier: MIT
**
** safetensors.h - reads and writes a safetensors file: the length of its header in eight bytes,
** little endian; then the header, in JSON; then the elements of the tensors, in C order. Reading
** checks the header. This file needs only base/ and jansson, because the example trainer is built
** with it, too.
*/
#ifndef MGRID_SAFETENSORS_H
#define MGRID_SAFETENSORS_H

#include "base/base.h"

#include <jansson.h>

typedef struct st_tensor {
  const char *name;
  const char *type; /* moongrid's name of the type */
  int64_t width;    /* bytes of an element */
  size_t naxes;
  int64_t shape[MGRID_AXES_MAX];
  int64_t at, bytes; /* offset in the file's data, and length. st_create sets both */
  bool taken;        /* an index lists this tensor as a part */
} st_tensor;

/* Return the bytes of an element of a moongrid type. 0: safetensors files do not have this type. */
int64_t st_width(const char *type);
/* Return the number of elements of a shape, or -1 if it overflows. */
int64_t st_elements(size_t naxes, const int64_t *shape);

/* ------------------------------------------------------------------ reading */

typedef struct st_file {
  char *path;
  int fd;         /* -1: closed; the next read opens it again */
  int64_t data;   /* offset of the data */
  json_t *header; /* owns the names */
  size_t n;
  st_tensor *tensor; /* [n], by offset */
} st_file;

/* Open a file to read. NULL: the error names the file and the fault: it is cut short, its header is
** invalid, or its tensors overlap. */
st_file *st_open(const char *path, mgrid_error *err);
void st_close(st_file *f); /* may be NULL */
st_tensor *st_find(const st_file *f, const char *name);
/* Read n bytes of a tensor, from byte `at` on. */
mgrid_status st_read(st_file *f, const st_tensor *t, int64_t at, void *to, int64_t n,
                     mgrid_error *err);

/* ------------------------------------------------------------------ writing */

typedef struct st_writer st_writer;

/* Begin a file, which must not exist yet. Its header lists n tensors, which are stored in this
** order. */
st_writer *st_create(const char *path, size_t n, st_tensor *tensors, mgrid_error *err);
/* Write the next bytes of the data. */
mgrid_status st_write(st_writer *w, const void *data, int64_t n, mgrid_error *err);
/* Flush the file to disk. Remove it instead if `before` is an error, or if data is missing. Free w,
** which may be NULL. */
mgrid_status st_finish(st_writer *w, mgrid_status before, mgrid_error *err);

#endif
