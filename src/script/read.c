/* SPDX-License-Identifier: MIT
**
** read.c - files that hold a table of plain values: JSON, or YAML (libyaml). A plain scalar of YAML is null, a
** boolean, an integer or a number where it looks like one, as in YAML's core schema; a quoted one is text.
*/
#include "script/read.h"

#include "types/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = MGRID_VALUES_DEEP, VALUES_MAX = MGRID_VALUES_MAX }; /* aliases could make a small file huge */

typedef struct reading {
  const char      *path;
  yaml_document_t *document;
  int              values; /* made so far */
  mgrid_error     *err;
} reading;

/* Refuse at a line, counted from 0; always NULL. */
static json_t *refuse(const reading *r, size_t line, const char *what) {
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

static json_t *plain_scalar(const char *text) {
  static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
  static const char *const trues[] = { "true", "True", "TRUE", NULL }, *const falses[] = { "false", "False", "FALSE",
                                                                                           NULL };
  char *end;
  if (one_of(text, nulls)) return json_null();
  if (one_of(text, trues)) return json_true();
  if (one_of(text, falses)) return json_false();
  if (!strspn(text, "+-.0123456789")) return json_string(text); /* nan, inf: text */
  errno = 0;
  bool      hex = strncmp(text, "0x", 2) == 0;
  long long n = strtoll(text, &end, hex ? 16 : 10);
  if (*end == '\0' && errno == 0) return json_integer(n);
  double number = strtod(text, &end);
  return *end == '\0' && !hex && strspn(text, "+-.0123456789eE") == strlen(text) ? json_real(number)
                                                                                 : json_string(text);
}

static json_t *value_of(reading *r, int index, int depth);

static json_t *mapping(reading *r, const yaml_node_t *node, int depth) {
  json_t *object = json_object();
  for (yaml_node_pair_t *p = node->data.mapping.pairs.start; object && p < node->data.mapping.pairs.top; p++) {
    const yaml_node_t *key = yaml_document_get_node(r->document, p->key);
    bool               text = key->type == YAML_SCALAR_NODE;
    const char        *name = text ? (const char *)key->data.scalar.value : NULL;
    json_t            *value = NULL;
    if (!text || strlen(name) != key->data.scalar.length) /* "\0" in quotes */
      refuse(r, key->start_mark.line, "a key is no text");
    else if (json_object_get(object, name))
      refuse(r, key->start_mark.line, "a key that is there already");
    else
      value = value_of(r, p->value, depth + 1);
    if (value && json_object_set_new(object, name, value) == 0) continue;
    if (value) mgrid_oom(r->err);
    json_decref(object);
    return NULL;
  }
  return object;
}

static json_t *sequence(reading *r, const yaml_node_t *node, int depth) {
  json_t *array = json_array();
  for (yaml_node_item_t *i = node->data.sequence.items.start; array && i < node->data.sequence.items.top; i++) {
    json_t *value = value_of(r, *i, depth + 1);
    if (json_is_null(value)) {
      json_decref(array);
      return refuse(r, yaml_document_get_node(r->document, *i)->start_mark.line, MGRID_GAP);
    }
    if (value && json_array_append_new(array, value) == 0) continue;
    if (value) mgrid_oom(r->err);
    json_decref(array);
    return NULL;
  }
  return array;
}

/* A new reference, or NULL after filling *r->err. */
static json_t *value_of(reading *r, int index, int depth) {
  const yaml_node_t *node = yaml_document_get_node(r->document, index);
  if (depth > DEPTH_MAX || ++r->values > VALUES_MAX)
    return refuse(r, node->start_mark.line, depth > DEPTH_MAX ? MGRID_TOO_DEEP : "too many values");
  const char *text = (const char *)node->data.scalar.value;
  json_t     *value = NULL;
  switch (node->type) {
  case YAML_MAPPING_NODE: value = mapping(r, node, depth); break;
  case YAML_SEQUENCE_NODE: value = sequence(r, node, depth); break;
  case YAML_SCALAR_NODE:
    if (strlen(text) != node->data.scalar.length) return refuse(r, node->start_mark.line, "a text with a zero byte");
    value = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_scalar(text) : json_string(text);
    if (!value) return refuse(r, node->start_mark.line, "a text that is not UTF-8");
    break;
  default: break;
  }
  if (!value && r->err && !r->err->status) mgrid_oom(r->err);
  return value;
}

/* libyaml's work grows with the depth, and with the square of it where brackets are never closed: a first look stops
** where it is too deep. An error in the text is for the second. */
static bool is_deep(const mgrid_text *t, size_t *line) {
  yaml_parser_t parser;
  yaml_event_t  event;
  int           depth = 0;
  bool          end = false;
  if (!yaml_parser_initialize(&parser)) return false; /* as it will be again */
  yaml_parser_set_input_string(&parser, (const unsigned char *)mgrid_text_chars(t), t->len);
  while (!end && depth <= DEPTH_MAX + 1 && yaml_parser_parse(&parser, &event)) {
    yaml_event_type_t type = event.type;
    depth += (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT)
             - (type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT);
    end = type == YAML_STREAM_END_EVENT || type == YAML_NO_EVENT;
    *line = event.start_mark.line;
    yaml_event_delete(&event);
  }
  yaml_parser_delete(&parser);
  return depth > DEPTH_MAX + 1;
}

static json_t *read_yaml(reading *r, const mgrid_text *t) {
  yaml_parser_t   parser;
  yaml_document_t document;
  json_t         *value = NULL;
  size_t          line = 0;
  if (is_deep(t, &line)) return refuse(r, line, MGRID_TOO_DEEP);
  if (!yaml_parser_initialize(&parser)) return mgrid_null_oom(r->err);
  yaml_parser_set_input_string(&parser, (const unsigned char *)mgrid_text_chars(t), t->len);
  if (yaml_parser_load(&parser, &document)) {
    r->document = &document;
    value = yaml_document_get_root_node(&document) ? value_of(r, 1, 0) : json_object(); /* nothing: {} */
    yaml_document_delete(&document);
  } else {
    refuse(r, parser.problem_mark.line, parser.problem ? parser.problem : "this is no YAML");
  }
  yaml_parser_delete(&parser);
  return value;
}

static json_t *read_json(reading *r, const mgrid_text *t) {
  json_error_t why;
  size_t       flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
  json_t      *value = mgrid_json_parse(mgrid_text_chars(t), t->len, flags, &why);
  if (!value && !*why.text) return mgrid_null_oom(r->err);
  if (value && mgrid_json_has_gap(value)) {
    json_decref(value);
    return refuse(r, 0, MGRID_GAP);
  }
  return value ? value : refuse(r, why.line > 0 ? (size_t)why.line - 1 : 0, why.text);
}

json_t *mgrid_read_table(const char *path, mgrid_error *err) {
  size_t       len = strlen(path);
  mgrid_text   t = { 0 };
  bool         is_json = len > 5 && strcmp(path + len - 5, ".json") == 0;
  mgrid_error  mine = MGRID_ERROR_INIT;
  mgrid_locale host = mgrid_locale_plain();
  reading      r = { path, NULL, 0, &mine };
  json_t      *value = NULL;
  if (mgrid_read_file(path, &t, &mine) == MGRID_OK) value = is_json ? read_json(&r, &t) : read_yaml(&r, &t);
  mgrid_text_free(&t);
  mgrid_locale_back(host);
  if (value && !json_is_object(value)) {
    json_decref(value);
    value = refuse(&r, 0, is_json ? "a JSON object is expected" : "a table by name is expected");
  }
  if (!value) mgrid_error_pass(err, &mine);
  return value;
}
