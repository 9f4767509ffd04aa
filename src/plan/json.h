/* SPDX-License-Identifier: MIT
**
** json.h - writes JSON piece by piece into a sink, so that memory does not grow with the output.
** plan/plan_print.c uses it, and so do the modules, each for its own items in a plan.
*/
#ifndef MGRID_JSON_H
#define MGRID_JSON_H

#include "base/base.h"
#include "moongrid.h"

#include <jansson.h>

typedef struct mgrid_json { /* set sink, ud and first = true to start */
  mgrid_sink sink;
  void *ud;
  mgrid_text text; /* not given to the sink yet */
  bool failed;     /* the sink stopped, or a value could not be made: nothing more is written */
  bool first;      /* no comma before the next item */
} mgrid_json;

/* As json_pack, but never NULL. json_pack returns NULL for a value that cannot be made, such as
** text that is not UTF-8; a list or object would then lose this value without an error. This
** function returns a value that cannot be written instead, so that writing it fails. */
json_t *mgrid_json_pack(const char *fmt, ...);
/* Return a path as a string. A path may have any bytes; those that are not UTF-8 are escaped. */
json_t *mgrid_json_path(const char *path);
/* Append a value as JSON text. flags are those of Jansson. */
void mgrid_json_text(const json_t *v, size_t flags, mgrid_text *t);
/* Give the rest of the text to the sink. The other functions do so whenever the text gets long. */
void mgrid_json_flush(mgrid_json *w);
void mgrid_json_put(mgrid_json *w, const char *text); /* unchanged */
/* Encode the value and drop its reference. NULL stands for a value that could not be made: fail. */
void mgrid_json_value(mgrid_json *w, json_t *value);
/* Write the bracket that starts a list or an object. */
void mgrid_json_open(mgrid_json *w, const char *bracket);
/* Write the bracket that ends it. */
void mgrid_json_close(mgrid_json *w, const char *bracket);
/* Start the next item of a list, or the next key. `between` is white space that goes before it. */
void mgrid_json_item(mgrid_json *w, const char *between);
void mgrid_json_key(mgrid_json *w, const char *between, const char *name);
/* Start a list or an object as the next item, or with a name as the value of the next key. */
void mgrid_json_in(mgrid_json *w, const char *between, const char *name, const char *bracket);
/* Write the next item of a list. */
void mgrid_json_element(mgrid_json *w, const char *between, json_t *value);
/* Write a key with its value, on a line of its own in the outermost object. */
void mgrid_json_line(mgrid_json *w, const char *name, json_t *value);
/* Write a key with its value on the same line. */
void mgrid_json_field(mgrid_json *w, const char *name, json_t *value);
void mgrid_json_integer(mgrid_json *w, const char *name, int64_t n);
void mgrid_json_integers(mgrid_json *w, const char *name, size_t n, const int64_t *list);
/* Write the end of the outermost object, give all to the sink, and release the text. */
mgrid_status mgrid_json_end(mgrid_json *w, mgrid_error *err);

#endif
