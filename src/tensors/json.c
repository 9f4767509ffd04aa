/* SPDX-License-Identifier: MIT
**
** json.c - a tensor in the JSON of a plan.
*/
#include "plan/json.h"
#include "tensors/of_plan.h"

#include <stdlib.h>

/* Write the runs of a rank's part on each axis: [[start, length], ...]. */
static void put_runs(mgrid_json *w, const mgrid_tensor *t, int64_t rank) {
  mgrid_seat at;
  if (!mgrid_tensor_seat(t, rank, &at)) return;
  mgrid_json_in(w, " ", "runs", "[");
  for (size_t i = 0; i < t->naxes; i++) {
    mgrid_run run;
    mgrid_json_in(w, "", NULL, "[");
    for (mgrid_walk walk = mgrid_walk_begin(&t->axis[i], at.piece[i]); mgrid_walk_next(&walk, &run) && !w->failed;) {
      mgrid_json_item(w, "");
      mgrid_json_put(w, "[");
      mgrid_text_int(&w->text, run.start);
      mgrid_json_put(w, ",");
      mgrid_text_int(&w->text, run.length);
      mgrid_json_put(w, "]");
    }
    mgrid_json_close(w, "]");
  }
  mgrid_json_close(w, "]");
}

/* Write what a cut leaves empty, if anything: how many ranks, and a note for each such axis. */
static void put_hollow(mgrid_json *w, const mgrid_tensor *t) {
  mgrid_text note = { 0 };
  size_t     n = 0;
  for (size_t i = 0; i < t->naxes; i++) {
    note.len = 0;
    if (!mgrid_axis_hollow(t, i, NULL, &note)) continue;
    if (n++ == 0) {
      mgrid_json_integer(w, "empty", mgrid_tensor_hollow(t));
      mgrid_json_in(w, " ", "notes", "[");
    }
    mgrid_json_item(w, "");
    w->text.failed |= note.failed;
    mgrid_json_value(w, note.failed ? NULL : json_string(note.data));
  }
  if (n) mgrid_json_close(w, "]");
  mgrid_text_free(&note);
}

static void put_part(mgrid_json *w, const mgrid_tensor *t, int64_t rank) {
  mgrid_tensor_part part;
  mgrid_tensor_part_of(t, rank, &part);
  if (!part.held) {
    mgrid_json_put(w, "null");
    return;
  }
  mgrid_json_open(w, "{");
  mgrid_json_integers(w, "shape", part.naxes, part.shape);
  mgrid_json_integer(w, "bytes", part.bytes);
  mgrid_json_integer(w, "copy", part.copy);
  if (t->flat)
    mgrid_json_field(w, "flat",
                     mgrid_json_pack("{sI sI sI sI}", "first", (json_int_t)part.first, "elements",
                                     (json_int_t)part.elements, "offset", (json_int_t)part.offset, "slice",
                                     (json_int_t)part.slice));
  put_runs(w, t, rank);
  mgrid_json_close(w, "}");
}

static void put_whole(mgrid_json *w, const mgrid_tensor *t) {
  mgrid_text rule = { 0 };
  mgrid_json_open(w, "{");
  mgrid_json_field(w, "type", json_string(t->type));
  mgrid_json_in(w, " ", "axes", "[");
  for (size_t i = 0; i < t->naxes; i++)
    mgrid_json_element(w, w->first ? "" : " ", mgrid_json_pack("[sI]", t->axis[i].name, (json_int_t)t->axis[i].length));
  mgrid_json_close(w, "]");
  mgrid_tensor_text(t, &rule);
  w->text.failed |= rule.failed;
  mgrid_json_field(w, "rule", rule.failed ? NULL : json_string(rule.data));
  mgrid_text_free(&rule);
  mgrid_json_integer(w, "bytes", t->bytes);
  mgrid_json_integer(w, "largest", mgrid_tensor_largest(t));
  mgrid_json_integer(w, "copies", t->copies);
  mgrid_json_integer(w, "holders", mgrid_tensor_holders(t));
  put_hollow(w, t);
  mgrid_json_close(w, "}");
}

void mgrid_tensor_json(const mgrid_tensor *t, int64_t rank, mgrid_json *w) {
  if (rank < 0)
    put_whole(w, t);
  else
    put_part(w, t, rank);
}
