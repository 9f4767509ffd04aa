/* SPDX-License-Identifier: MIT
**
** safetensors.h - one file of tensors: eight bytes with the length of a header, least byte first, the header in JSON, and
** the elements of the tensors in C order. Read with every number checked; written beside its name and renamed.
**
** It stands on the public header and jansson alone, as the example trainer is built with it, too.
*/
#ifndef MGRID_SAFETENSORS_H
#define MGRID_SAFETENSORS_H

#include "moongrid.h"

#include <jansson.h>

typedef struct st_tensor {
  const char *name;
  const char *type;  /* as moongrid names it */
  int64_t     width; /* bytes of an element */
  size_t      naxes;
  int64_t     shape[MGRID_AXES_MAX];
  int64_t     at, bytes; /* in the data of the file; st_create sets them */
  bool        taken;     /* for whoever reads: something is read from it */
} st_tensor;

/* Bytes of an element of a type of moongrid; 0: files know no such type. */
int64_t st_width(const char *type);
/* Elements of a shape; -1: more than can be counted. */
int64_t st_elements(size_t naxes, const int64_t *shape);

/* ------------------------------------------------------------------ reading */

typedef struct st_file {
  char      *path;
  int        fd;     /* -1: closed until something is read */
  int64_t    data;   /* where the data begin */
  json_t    *header; /* which has the names */
  size_t     n;
  st_tensor *tensor; /* [n] by place in the file */
} st_file;

/* NULL after an error that names the file: one that ends too early, a header that is none, tensors that overlap. */
st_file   *st_open(const char *path, mgrid_error *err);
void       st_close(st_file *f); /* may be NULL */
st_tensor *st_find(const st_file *f, const char *name);
/* Read n bytes from byte `at` of a tensor. */
mgrid_status st_read(st_file *f, const st_tensor *t, int64_t at, void *to, int64_t n, mgrid_error *err);

/* ------------------------------------------------------------------ writing */

typedef struct st_writer st_writer;

/* Begin a file beside its name, PATH.part, with a header of n tensors, which get places in this order. */
st_writer *st_create(const char *path, size_t n, st_tensor *tensors, mgrid_error *err);
/* The next bytes of the data. */
mgrid_status st_write(st_writer *w, const void *data, int64_t n, mgrid_error *err);
/* Put the file on the disk and under its name, unless there is an error already: then it is removed. Frees w. */
mgrid_status st_finish(st_writer *w, mgrid_error *err);
/* Replace a file by a text, or leave it as it was. */
mgrid_status st_replace(const char *path, const char *text, mgrid_error *err);

/* Put an error into *err unless there is one. For the files that stand on this one. */
mgrid_status st_fail(mgrid_error *err, mgrid_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
mgrid_status st_oom(mgrid_error *err);

#endif
