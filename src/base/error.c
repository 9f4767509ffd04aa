/* SPDX-License-Identifier: MIT
**
** error.c - errors are values: a status and one line of text in the caller's struct.
*/
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

const char *mg_version(void) { return MG_VERSION; }

static void fill(mg_error *err, mg_status status, const char *fmt, va_list args) {
  if (!err) return;
  memset(err, 0, sizeof *err);
  err->status = status;
  vsnprintf(err->message, sizeof err->message, fmt, args);
}

mg_status mg_fail(mg_error *err, mg_status status, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fill(err, status, fmt, args);
  va_end(args);
  return status;
}

void *mg_null(mg_error *err, mg_status status, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fill(err, status, fmt, args);
  va_end(args);
  return NULL;
}

mg_status mg_oom(mg_error *err) { return mg_fail(err, MG_LIMIT, "out of memory"); }

void *mg_null_oom(mg_error *err) { return mg_null(err, MG_LIMIT, "out of memory"); }

char *mg_strdup(const char *s) {
  size_t len = strlen(s) + 1;
  char  *copy = malloc(len);
  if (copy) memcpy(copy, s, len);
  return copy;
}
