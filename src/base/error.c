/* SPDX-License-Identifier: MIT
**
** error.c - errors are values: a status and one line of text in the caller's struct.
*/
#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *mgrid_version(void) { return MGRID_VERSION; }

/* The text of each status. */
static const struct {
  mgrid_status status;
  const char *text;
} words[] = {
  { MGRID_OK, "ok" },
  { MGRID_REFUSED, "refused" },
  { MGRID_UNKNOWN_NAME, "unknown name" },
  { MGRID_BAD_VALUE, "bad value" },
  { MGRID_OUT_OF_RANGE, "out of range" },
  { MGRID_OVERFLOW, "overflow" },
  { MGRID_DUPLICATE, "given twice" },
  { MGRID_USAGE, "wrong call" },
  { MGRID_BAD_STRUCT, "struct of another version" },
  { MGRID_NOT_NOW, "not in this state" },
  { MGRID_LIMIT, "budget spent" },
  { MGRID_NO_MEMORY, "out of memory" },
  { MGRID_OUTPUT, "output stopped" },
  { MGRID_BACKEND, "backend failed" },
  { MGRID_MISSING, "component missing" },
  { MGRID_UNSUPPORTED, "not supported by the backend" },
  { MGRID_TIMED_OUT, "timed out" },
  { MGRID_LOST_RANK, "lost rank" },
  { MGRID_OTHER_RANK, "another rank failed" },
  { MGRID_UNPROVED, "not proved" },
  { MGRID_NO_KERNEL, "not proved: no kernel ran" },
  { MGRID_DISAGREE, "ranks disagree" },
};

const char *mgrid_status_text(mgrid_status status) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i].status == status) return words[i].text;
  return "unknown status";
}

/* Copy the fields about missing ranks; `from` NULL: clear them. The error of a host that was built
** with an earlier header does not have these fields. */
static void copy_missing(mgrid_error *err, const mgrid_error *from) {
  static const mgrid_error none = MGRID_ERROR_INIT;
  if (err->size < sizeof *err) return;
  if (!from || from->size < sizeof *from) from = &none;
  err->nmissing = from->nmissing, err->waited = from->waited;
  memcpy(err->missing, from->missing, sizeof err->missing);
  memcpy(err->call, from->call, sizeof err->call);
}

void mgrid_error_clear(mgrid_error *err) {
  if (!err) return;
  err->status = MGRID_OK, err->line = 0, err->file[0] = err->message[0] = '\0';
  copy_missing(err, NULL);
}

/* Fill *err, unless it holds an error: a later failure in a chain of calls only follows from the
** first. */
static void error_fill(mgrid_error *err, mgrid_status status, const char *fmt, va_list args) {
  if (!err || err->status) return;
  mgrid_error_clear(err);
  err->status = status;
  mgrid_vformat(err->message, sizeof err->message, fmt, args);
  mgrid_show(err->message, sizeof err->message);
}

mgrid_status mgrid_fail(mgrid_error *err, mgrid_status status, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  error_fill(err, status, fmt, args);
  va_end(args);
  return status;
}

mgrid_status mgrid_fail_at(mgrid_error *err, mgrid_status status, const char *file, int line,
                           const char *fmt, ...) {
  char text[sizeof err->message], number[16] = "";
  va_list args;
  va_start(args, fmt);
  mgrid_vformat(text, sizeof text, fmt, args);
  va_end(args);
  if (line > 0) snprintf(number, sizeof number, ":%d", line);
  return mgrid_fail(err, status, "%.250s%s: %s", file, number, text);
}

void *mgrid_null(mgrid_error *err, mgrid_status status, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  error_fill(err, status, fmt, args);
  va_end(args);
  return NULL;
}

mgrid_status mgrid_oom(mgrid_error *err) {
  char why[MGRID_ALLOWED];
  if (!err || err->status) return MGRID_NO_MEMORY; /* nobody would read the error */
  return mgrid_fail(err, MGRID_NO_MEMORY, "out of memory%s",
                    mgrid_allowed(MGRID_SCARCE_MEMORY, why));
}

mgrid_status mgrid_unwritten(mgrid_error *err) {
  return mgrid_fail(err, MGRID_OUTPUT, "the output could not be written");
}

mgrid_status mgrid_check_rank(int64_t rank, int64_t world, mgrid_error *err) {
  if (rank >= 0 && rank < world) return MGRID_OK;
  return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                    "rank %" PRId64 " is out of range; ranks are 0 to %" PRId64, rank, world - 1);
}

void *mgrid_null_oom(mgrid_error *err) {
  mgrid_oom(err);
  return NULL;
}

mgrid_status mgrid_error_pass(mgrid_error *err, const mgrid_error *from) {
  if (!err || err == from || err->status) return from->status;
  return mgrid_error_replace(err, from);
}

mgrid_error *mgrid_error_open(mgrid_error *err) {
  mgrid_error *own = malloc(sizeof *own);
  if (!own) return mgrid_null_oom(err);
  *own = (mgrid_error)MGRID_ERROR_INIT;
  return own;
}

void mgrid_error_close(mgrid_error *own, bool failed, const char *what, mgrid_error *err) {
  if (failed && own->status) mgrid_error_pass(err, own);
  if (failed && !own->status) mgrid_fail(err, MGRID_REFUSED, "%s failed and did not say why", what);
  free(own);
}

mgrid_status mgrid_error_replace(mgrid_error *err, const mgrid_error *from) {
  if (!err || err == from) return from->status;
  err->status = from->status, err->line = from->line;
  memcpy(err->file, from->file, sizeof err->file);
  memcpy(err->message, from->message, sizeof err->message);
  copy_missing(err, from);
  return from->status;
}

mgrid_status mgrid_error_reword(mgrid_error *err, const char *fmt, ...) {
  char text[sizeof err->message];
  va_list args;
  if (!err) return MGRID_OK;
  va_start(args, fmt);
  /* before err->message changes, because the arguments may point into it */
  mgrid_vformat(text, sizeof text, fmt, args);
  va_end(args);
  memcpy(err->message, text, sizeof text);
  mgrid_show(err->message, sizeof err->message);
  return err->status;
}

/* ------------------------------------------------------- the host's structs */

static bool all_zero(const unsigned char *bytes, size_t n) {
  while (n > 0 && bytes[n - 1] == 0) n--;
  return n == 0;
}

mgrid_status mgrid_struct_check(const void *given, size_t known, const char *what,
                                mgrid_error *err) {
  size_t size;
  if (!given) return mgrid_fail(err, MGRID_USAGE, "%s is NULL", what);
  memcpy(&size, given, sizeof size);
  if (size < sizeof size || size > MGRID_STRUCT_MAX)
    return mgrid_fail(err, MGRID_BAD_STRUCT, "%s without its INIT macro (size %zu)", what, size);
  if (size > known && !all_zero((const unsigned char *)given + known, size - known))
    return mgrid_fail(err, MGRID_BAD_STRUCT,
                      "%s has %zu bytes, of a later moongrid; this is %s, which knows %zu and the "
                      "rest is not zero",
                      what, size, MGRID_VERSION, known);
  return MGRID_OK;
}

mgrid_status mgrid_struct_read(void *own, size_t known, const void *given, const char *what,
                               mgrid_error *err) {
  size_t size;
  if (!given) return MGRID_OK;
  mgrid_status s = mgrid_struct_check(given, known, what, err);
  if (s) return s;
  memcpy(&size, given, sizeof size);
  memcpy(own, given, size < known ? size : known);
  memcpy(own, &known, sizeof known);
  return MGRID_OK;
}

void mgrid_struct_write(void *given, const void *own, size_t known) {
  size_t size;
  if (!given) return;
  memcpy(&size, given, sizeof size);
  size_t fields = (size < known ? size : known) - sizeof size;
  memcpy((char *)given + sizeof size, (const char *)own + sizeof size, fields);
}

bool mgrid_lacks(bool given, const char *what, mgrid_error *err) {
  if (!given) mgrid_fail(err, MGRID_USAGE, "%s is NULL", what);
  return !given;
}

bool mgrid_lacks_list(size_t n, bool given, const char *what, mgrid_error *err) {
  bool lacks = n > 0 && !given;
  if (lacks) mgrid_fail(err, MGRID_USAGE, "the list of %zu %s is NULL", n, what);
  return lacks;
}
