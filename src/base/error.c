/* SPDX-License-Identifier: MIT
**
** error.c - errors are values: a status and one line of text in the caller's struct.
*/
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

const char *mgrid_version(void) { return MGRID_VERSION; }

static void fill(mgrid_error *err, mgrid_status status, const char *fmt, va_list args) {
  if (!err) return;
  memset(err, 0, sizeof *err);
  err->status = status;
  vsnprintf(err->message, sizeof err->message, fmt, args);
}

mgrid_status mgrid_fail(mgrid_error *err, mgrid_status status, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fill(err, status, fmt, args);
  va_end(args);
  return status;
}

void *mgrid_null(mgrid_error *err, mgrid_status status, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fill(err, status, fmt, args);
  va_end(args);
  return NULL;
}

mgrid_status mgrid_oom(mgrid_error *err) { return mgrid_fail(err, MGRID_LIMIT, "out of memory"); }

void *mgrid_null_oom(mgrid_error *err) { return mgrid_null(err, MGRID_LIMIT, "out of memory"); }

char *mgrid_strdup(const char *s) {
  size_t len = strlen(s) + 1;
  char  *copy = malloc(len);
  if (copy) memcpy(copy, s, len);
  return copy;
}
