/* SPDX-License-Identifier: MIT
**
** json.h - writes JSON piece by piece into a sink, so that memory does not grow with what is written: plan/json.c, and the
** slices, each for its own things in a plan.
*/
#ifndef MGRID_JSON_H
#define MGRID_JSON_H

#include "base/base.h"
#include "moongrid.h"

#include <jansson.h>

typedef struct mgrid_json { /* begins with a sink, and first = true */
  mgrid_sink sink;
  void      *ud;
  mgrid_text text;   /* not yet given to the sink */
  bool       failed; /* the sink stopped, or a value could not be made: nothing more is written */
  bool       first;  /* no comma before the next item */
} mgrid_json;

/* Give the sink what it has not yet; the others do so now and then. */
void mgrid_json_flush(mgrid_json *w);
void mgrid_json_put(mgrid_json *w, const char *text); /* as it is */
/* Encode the value, and give it back; NULL, a value that could not be made, is a failure. */
void mgrid_json_value(mgrid_json *w, json_t *value);
/* Begin a list or an object, by a bracket, and end it. */
void mgrid_json_open(mgrid_json *w, const char *bracket);
void mgrid_json_close(mgrid_json *w, const char *bracket);
/* Begin the next item of a list, or the next key, with white space before it. */
void mgrid_json_item(mgrid_json *w, const char *between);
void mgrid_json_key(mgrid_json *w, const char *between, const char *name);
/* A key with its value: on the same line. */
void mgrid_json_field(mgrid_json *w, const char *name, json_t *value);
void mgrid_json_integers(mgrid_json *w, const char *name, size_t n, const int64_t *list);

#endif
