/* SPDX-License-Identifier: MIT
**
** json_writer.c - writes JSON piece by piece. Jansson encodes every value except lists of integers:
** these grow with the world, and are only digits and commas.
*/
#include "plan/json.h"

#include <string.h>

enum { BUFFER = 16384 };

json_t *mgrid_json_pack(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  json_t *v = json_vpack_ex(NULL, 0, fmt, args);
  va_end(args);
  return v ? v : json_string_nocheck("\xff"); /* fmt has text that is not UTF-8 */
}

json_t *mgrid_json_path(const char *path) {
  if (mgrid_is_shown(path, strlen(path))) return json_string(path);
  mgrid_text t = { 0 };
  mgrid_text_shown(&t, path);
  json_t *v = t.failed ? NULL : json_string(mgrid_text_chars(&t));
  mgrid_text_free(&t);
  return v;
}

void mgrid_json_flush(mgrid_json *w) {
  w->failed |= w->text.failed;
  if (!w->failed && w->text.len > 0) w->failed = w->sink(w->ud, w->text.data, w->text.len) != 0;
  w->text.len = 0;
}

static int json_writer_append(const char *text, size_t len, void *out) {
  mgrid_text_put(out, text, len);
  return ((mgrid_text *)out)->failed ? -1 : 0;
}

void mgrid_json_text(const json_t *v, size_t flags, mgrid_text *t) {
  if (json_dump_callback(v, json_writer_append, t, flags | JSON_ENCODE_ANY) != 0) t->failed = true;
}

static int put_piece(const char *text, size_t len, void *ud) {
  mgrid_json *w = ud;
  mgrid_text_put(&w->text, text, len);
  if (w->text.len > BUFFER) mgrid_json_flush(w);
  return w->failed ? -1 : 0;
}

void mgrid_json_put(mgrid_json *w, const char *text) { put_piece(text, strlen(text), w); }

void mgrid_json_value(mgrid_json *w, json_t *value) {
  if (!value || json_dump_callback(value, put_piece, w, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
    w->failed = true;
  json_decref(value);
}

void mgrid_json_item(mgrid_json *w, const char *between) {
  if (!w->first) mgrid_json_put(w, ",");
  mgrid_json_put(w, between);
  w->first = false;
}

void mgrid_json_key(mgrid_json *w, const char *indent, const char *name) {
  mgrid_json_item(w, indent);
  mgrid_json_value(w, json_string(name));
  mgrid_json_put(w, ": ");
}

void mgrid_json_open(mgrid_json *w, const char *bracket) {
  mgrid_json_put(w, bracket);
  w->first = true;
}

void mgrid_json_close(mgrid_json *w, const char *bracket) {
  mgrid_json_put(w, bracket);
  w->first = false;
}

void mgrid_json_in(mgrid_json *w, const char *between, const char *name, const char *bracket) {
  if (name)
    mgrid_json_key(w, between, name);
  else
    mgrid_json_item(w, between);
  mgrid_json_open(w, bracket);
}

void mgrid_json_element(mgrid_json *w, const char *between, json_t *value) {
  mgrid_json_item(w, between);
  mgrid_json_value(w, value);
}

void mgrid_json_line(mgrid_json *w, const char *name, json_t *value) {
  mgrid_json_key(w, "\n  ", name);
  mgrid_json_value(w, value);
}

void mgrid_json_field(mgrid_json *w, const char *name, json_t *value) {
  mgrid_json_key(w, w->first ? "" : " ", name);
  mgrid_json_value(w, value);
}

void mgrid_json_integer(mgrid_json *w, const char *name, int64_t n) {
  mgrid_json_key(w, w->first ? "" : " ", name);
  mgrid_text_int(&w->text, n);
}

void mgrid_json_integers(mgrid_json *w, const char *name, size_t n, const int64_t *list) {
  mgrid_json_key(w, " ", name);
  mgrid_json_put(w, "[");
  for (size_t i = 0; i < n; i++) {
    if (i) mgrid_text_put(&w->text, ",", 1);
    mgrid_text_int(&w->text, list[i]);
  }
  mgrid_json_put(w, "]");
}

mgrid_status mgrid_json_end(mgrid_json *w, mgrid_error *err) {
  mgrid_json_close(w, "\n}\n");
  mgrid_json_flush(w);
  const bool no_memory = w->text.failed;
  mgrid_text_free(&w->text);
  if (no_memory) return mgrid_oom(err);
  return w->failed ? mgrid_unwritten(err) : MGRID_OK;
}
