/* SPDX-License-Identifier: MIT
**
** json.h - write JSON piece by piece into a sink, so that memory does not grow with the output.
** Used by plan/plan_print.c and by the modules, each for its own things in a plan.
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

/* As json_pack, but a value that cannot be made, of text that is not UTF-8 for example, is not lost
** in silence: NULL would be left out of the list or object that it is for. It becomes a value that
** no JSON can hold, so who writes them fails. */
json_t *mgrid_json_pack(const char *fmt, ...);
/* Return a path as a string. A path may be any bytes, which are escaped; JSON is UTF-8. */
json_t *mgrid_json_path(const char *path);
/* Append a value as JSON text, with flags of Jansson. */
void mgrid_json_text(const json_t *v, size_t flags, mgrid_text *t);
/* Give the rest of the text to the sink; the other functions do so from time to time. */
void mgrid_json_flush(mgrid_json *w);
void mgrid_json_put(mgrid_json *w, const char *text); /* unchanged */
/* Encode the value and drop its reference. NULL, a value that could not be made, is a failure. */
void mgrid_json_value(mgrid_json *w, json_t *value);
/* Write the bracket that starts a list or an object. */
void mgrid_json_open(mgrid_json *w, const char *bracket);
/* Write the bracket that ends it. */
void mgrid_json_close(mgrid_json *w, const char *bracket);
/* Start the next item of a list, or the next key, after some white space. */
void mgrid_json_item(mgrid_json *w, const char *between);
void mgrid_json_key(mgrid_json *w, const char *between, const char *name);
/* Start the next item, or with a name the next key, and the list or object that it is. */
void mgrid_json_in(mgrid_json *w, const char *between, const char *name, const char *bracket);
/* Write the next item of a list. */
void mgrid_json_element(mgrid_json *w, const char *between, json_t *value);
/* Write a key with its value, on a line of the outermost object. */
void mgrid_json_line(mgrid_json *w, const char *name, json_t *value);
/* Write a key with its value on the same line. */
void mgrid_json_field(mgrid_json *w, const char *name, json_t *value);
void mgrid_json_integer(mgrid_json *w, const char *name, int64_t n);
void mgrid_json_integers(mgrid_json *w, const char *name, size_t n, const int64_t *list);
/* Write the end of the outermost object, give all to the sink, and release the text. */
mgrid_status mgrid_json_end(mgrid_json *w, mgrid_error *err);

#endif
