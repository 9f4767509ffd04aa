/* SPDX-License-Identifier: MIT
**
** value_file.c - reads values from JSON and, by libyaml, from YAML. A plain scalar of YAML is null,
** a boolean, an integer or a number if it looks like one, as in YAML's core schema; but 0o17, .inf
** and .nan are text. A quoted scalar is text.
*/
#include "recipe/value_file.h"

#include "recipe/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

typedef struct reading {
  const char *path;
  yaml_parser_t *parser;
  json_t *anchors; /* the values with an anchor, by its name; aliases refer to them */
  /* made so far: values, and bytes of their texts. With aliases a small file could become huge */
  int64_t values, bytes;
  mgrid_error *err;
} reading;

/* Refuse a line, counted from 0. Return NULL. */
static json_t *read_refuse(const reading *r, size_t line, const char *what) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_fail(&e, MGRID_REFUSED, "%s:%zu: %s", r->path, line + 1, what);
  e.line = (int)line + 1;
  snprintf(e.file, sizeof e.file, "%.199s", r->path);
  mgrid_error_pass(r->err, &e);
  return NULL;
}

static bool one_of(const char *text, const char *const *words) {
  for (; *words; words++)
    if (strcmp(text, *words) == 0) return true;
  return false;
}

/* Return the value of a plain scalar. NULL: it is a number too large for a double. */
static json_t *plain_scalar(const char *text) {
  static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
  static const char *const trues[] = { "true", "True", "TRUE", NULL }, *const falses[] = {
    "false", "False", "FALSE", NULL
  };
  char *end;
  if (one_of(text, nulls)) return json_null();
  if (one_of(text, trues)) return json_true();
  if (one_of(text, falses)) return json_false();
  if (!strspn(text, "+-.0123456789")) return json_string(text); /* nan and inf are text */
  errno = 0;
  bool hex = strncmp(text, "0x", 2) == 0;
  long long n = strtoll(text, &end, hex ? 16 : 10);
  if (*end == '\0' && errno == 0) return json_integer(n);
  double number = mgrid_read_double(text, &end);
  return *end == '\0' && !hex && strspn(text, "+-.0123456789eE") == strlen(text)
             ? json_real(number)
             : json_string(text);
}

/* Count a value and the bytes of its text before it is made. */
static bool read_take(reading *r, size_t line, int depth, size_t bytes) {
  r->values++, r->bytes += (int64_t)bytes;
  if (depth <= MGRID_VALUES_DEEP && r->values <= MGRID_VALUES_MAX
      && r->bytes <= MGRID_VALUES_TEXT_MAX)
    return true;
  read_refuse(r, line, depth > MGRID_VALUES_DEEP ? MGRID_TOO_DEEP : "too many values");
  return false;
}

/* Count v and all values in it, because an alias repeats them. */
static bool take_all(reading *r, size_t line, int depth, const json_t *v) {
  size_t i;
  const char *key;
  json_t *item;
  if (!read_take(r, line, depth, json_string_length(v))) return false;
  json_array_foreach(v, i, item) if (!take_all(r, line, depth + 1, item)) return false;
  json_object_foreach((json_t *)v, key, item) {
    r->bytes += (int64_t)strlen(key);
    if (!take_all(r, line, depth + 1, item)) return false;
  }
  return true;
}

/* Read the next event. The caller deletes it in every case. */
static bool next_event(const reading *r, yaml_event_t *e) {
  const yaml_parser_t *p = r->parser;
  if (yaml_parser_parse(r->parser, e)) return true;
  if (p->error == YAML_MEMORY_ERROR)
    mgrid_oom(r->err);
  else
    read_refuse(r, p->problem_mark.line, p->problem ? p->problem : "this is not YAML");
  return false;
}

static json_t *scalar(const reading *r, const yaml_event_t *e) {
  const char *text = (const char *)e->data.scalar.value;
  bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  if (strlen(text) != e->data.scalar.length)
    return read_refuse(r, e->start_mark.line, "a text with a zero byte");
  json_t *value = plain ? plain_scalar(text) : json_string(text);
  return value ? value : read_refuse(r, e->start_mark.line, "a number that is too large");
}

static json_t *alias(reading *r, const yaml_event_t *e, int depth) {
  const json_t *v = json_object_get(r->anchors, (const char *)e->data.alias.anchor);
  if (!v) return read_refuse(r, e->start_mark.line, "found undefined alias");
  return take_all(r, e->start_mark.line, depth, v) ? json_deep_copy(v) : NULL;
}

/* Keep a value that has an anchor. */
static void read_keep(const reading *r, const yaml_event_t *e, const yaml_char_t *anchor,
                      json_t *value) {
  const char *name = (const char *)anchor;
  if (!name || !value) return;
  if (json_object_get(r->anchors, name))
    read_refuse(r, e->start_mark.line, "found duplicate anchor");
  else if (json_object_set(r->anchors, name, value) != 0)
    mgrid_oom(r->err);
}

static json_t *value_of(reading *r, const yaml_event_t *e, int depth);

static void add_field(reading *r, const yaml_event_t *key, json_t *object, int depth) {
  const bool text = key->type == YAML_SCALAR_EVENT;
  const char *name = text ? (const char *)key->data.scalar.value : "";
  yaml_event_t e;
  if (!text || strlen(name) != key->data.scalar.length) { /* a quoted key with "\0" in it */
    read_refuse(r, key->start_mark.line, "a key is not text");
    return;
  }
  if (json_object_get(object, name)) {
    read_refuse(r, key->start_mark.line, "the table has this key already");
    return;
  }
  r->bytes += (int64_t)key->data.scalar.length;
  if (key->data.scalar.anchor) {
    json_t *v = scalar(r, key);
    read_keep(r, key, key->data.scalar.anchor, v);
    json_decref(v);
  }
  json_t *value = next_event(r, &e) ? value_of(r, &e, depth + 1) : NULL;
  yaml_event_delete(&e);
  if (value && json_object_set_new(object, name, value) != 0) mgrid_oom(r->err);
}

static void read_add_item(reading *r, const yaml_event_t *e, json_t *array, int depth) {
  json_t *value = value_of(r, e, depth + 1);
  if (json_is_null(value)) read_refuse(r, e->start_mark.line, MGRID_GAP);
  if (value && json_array_append_new(array, value) != 0) mgrid_oom(r->err);
}

/* Read the fields of a mapping, or the items of a sequence, until the event that ends it. */
static json_t *members(reading *r, json_t *all, yaml_event_type_t end, int depth) {
  bool ended = false;
  if (!all) mgrid_oom(r->err);
  while (!ended && !r->err->status) {
    yaml_event_t e;
    bool good = next_event(r, &e);
    ended = good && e.type == end;
    if (good && !ended) (json_is_object(all) ? add_field : read_add_item)(r, &e, all, depth);
    yaml_event_delete(&e);
  }
  return all;
}

/* Return the value that starts with this event, as a new reference. NULL: *r->err is set. */
static json_t *value_of(reading *r, const yaml_event_t *e, int depth) {
  const yaml_char_t *anchor = NULL;
  json_t *value = NULL;

  if (!read_take(r, e->start_mark.line, depth,
                 e->type == YAML_SCALAR_EVENT ? e->data.scalar.length : 0))
    return NULL;
  switch (e->type) {
  case YAML_MAPPING_START_EVENT:
    anchor = e->data.mapping_start.anchor;
    value = members(r, json_object(), YAML_MAPPING_END_EVENT, depth);
    break;
  case YAML_SEQUENCE_START_EVENT:
    anchor = e->data.sequence_start.anchor;
    value = members(r, json_array(), YAML_SEQUENCE_END_EVENT, depth);
    break;
  case YAML_SCALAR_EVENT:
    anchor = e->data.scalar.anchor;
    value = scalar(r, e);
    break;
  case YAML_ALIAS_EVENT: value = alias(r, e, depth); break;
  default: break;
  }
  if (!r->err->status) read_keep(r, e, anchor, value);
  if (!value && !r->err->status) mgrid_oom(r->err);
  if (!r->err->status) return value;
  json_decref(value);
  return NULL;
}

/* Return the first document of the stream, or {} if there is none. */
static json_t *document(reading *r) {
  json_t *value = NULL;
  bool ended = false;
  while (!ended && !r->err->status) {
    yaml_event_t e;
    bool good = next_event(r, &e);
    ended = good && (e.type == YAML_DOCUMENT_END_EVENT || e.type == YAML_STREAM_END_EVENT);
    if (good && !ended && e.type != YAML_STREAM_START_EVENT && e.type != YAML_DOCUMENT_START_EVENT)
      value = value_of(r, &e, 0);
    yaml_event_delete(&e);
  }
  if (!r->err->status) return value ? value : json_object();
  json_decref(value);
  return NULL;
}

/* Find a %TAG directive. Texts with them are refused: the work of libyaml grows with the square of
** their number, and a tag may have any length. */
static const char *find_tag_names(const mgrid_text *t) {
  const char *text = mgrid_text_chars(t), *end = text + t->len, *found = text;
  while ((found = memmem(found, (size_t)(end - found), "%TAG", 4))) {
    const char before = found == text ? '\n' : found[-1];
    if (before == '\n' || before == '\r' || (before & 0x80))
      return found; /* a byte from 0x80 on may end a line break of Unicode */
    found++;
  }
  return NULL;
}

/* Make the value from the events of libyaml. libyaml could make a document itself, but without
** limits and in much more memory, and for each alias it would search all anchors. */
static json_t *read_yaml(reading *r, const mgrid_text *t) {
  yaml_parser_t parser;
  json_t *value = NULL;
  const char *tags = find_tag_names(t);
  if (tags) {
    size_t line = 0;
    for (const char *p = mgrid_text_chars(t); p < tags; p++) line += *p == '\n';
    return read_refuse(r, line, "names of tags (%TAG) are not read");
  }
  if (!yaml_parser_initialize(&parser)) return mgrid_null_oom(r->err);
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser, (const unsigned char *)mgrid_text_chars(t), t->len);
  r->parser = &parser;
  r->anchors = json_object();
  if (r->anchors)
    value = document(r);
  else
    mgrid_oom(r->err);
  json_decref(r->anchors);
  yaml_parser_delete(&parser);
  return value;
}

static json_t *read_json(reading *r, const mgrid_text *t) {
  json_error_t why;
  size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
  json_t *value = mgrid_json_parse(mgrid_text_chars(t), t->len, flags, &why);
  if (!value && !*why.text) return mgrid_null_oom(r->err);
  if (value && mgrid_json_has_gap(value)) {
    json_decref(value);
    return read_refuse(r, 0, MGRID_GAP);
  }
  return value ? value : read_refuse(r, why.line > 0 ? (size_t)why.line - 1 : 0, why.text);
}

json_t *mgrid_read_yaml(const char *name, const char *text, size_t len, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  reading r = { name, NULL, NULL, 0, 0, &mine };
  const mgrid_text t = { .data = (char *)(uintptr_t)text, .len = len };
  json_t *value = read_yaml(&r, &t);
  if (!value) mgrid_error_pass(err, &mine);
  return value;
}

json_t *mgrid_read_table(const char *path, mgrid_error *err) {
  size_t len = strlen(path);
  mgrid_text t = { 0 };
  bool is_json = len > 5 && strcmp(path + len - 5, ".json") == 0;
  mgrid_error mine = MGRID_ERROR_INIT;
  mgrid_locale host = mgrid_locale_plain();
  reading r = { path, NULL, NULL, 0, 0, &mine };
  json_t *value = NULL;
  if (mgrid_read_file(path, &t, &mine) == MGRID_OK)
    value = is_json ? read_json(&r, &t) : read_yaml(&r, &t);
  mgrid_text_free(&t);
  mgrid_locale_back(host);
  if (value && !json_is_object(value)) {
    json_decref(value);
    value = read_refuse(&r, 0,
                        is_json ? "a JSON object is expected"
                                : "lines of a name and a value are expected, as tp: 2");
  }
  if (!value) mgrid_error_pass(err, &mine);
  return value;
}
