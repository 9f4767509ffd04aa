/* SPDX-License-Identifier: MIT
**
** read.c - check the JSON of NCCL's RAS once: the result has numbers in range and strings that are safe for a terminal, so
** no later code needs to check. The text is scanned before it is parsed, because a JSON parser takes up to a hundred times
** its size in memory.
*/
#include "ras/findings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 32, KINDS_MOST = 64, TEXT_MOST = 256 };
static const size_t memory_most = (size_t)512 << 20;

/* Return why a parser should not try: too deep, or too much memory; NULL: it may. */
static const char *is_too_much(const char *text, size_t len) {
  enum { OBJECT = 320, LIST = 128, MEMBER = 128, ELEMENT = 64 }; /* about the bytes that jansson allocates */
  size_t memory = len;
  int    depth = 0;
  bool   quoted = false;
  for (size_t i = 0; i < len; i++) {
    char c = text[i];
    if (quoted && c == '\\') i++;
    if (c == '"') quoted = !quoted;
    if (quoted || c == '"') continue;
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
    memory += c == '{' ? OBJECT : c == '[' ? LIST : c == ':' ? MEMBER : c == ',' ? ELEMENT : 0;
    if (depth > DEPTH_MOST) return "lists in lists";
    if (memory > memory_most) return "values";
  }
  return NULL;
}

/* NCCL 2.28.7 to 2.28.9 omit the comma after a missing rank: insert one where a line ends with a value and the next starts
** with a name. NULL: out of memory. */
static char *mended(const char *text, size_t len, size_t *longer) {
  size_t commas = 0, n = 0;
  for (size_t i = 0; i < len; i++) commas += text[i] == '\n';
  char *out = malloc(len + commas + 1);
  for (size_t i = 0, next; out && i < len; i++) {
    for (next = i + 1; text[i] == '\n' && next < len && text[next] == ' ';) next++;
    if (text[i] == '\n' && i > 0 && next < len && text[next] == '"' && !strchr(",{[\n", text[i - 1])) out[n++] = ',';
    out[n++] = text[i];
  }
  *longer = n;
  return out;
}

typedef struct reading {
  const char  *address;
  mgrid_error *err;
} reading;

static bool check_number(const reading *r, const json_t *in, const char *key, bool needed, int64_t least,
                         int64_t most) {
  const json_t *value = json_object_get(in, key);
  int64_t       n = json_integer_value(value);
  if (!value && !needed) return true;
  if (json_is_integer(value) && n >= least && n <= most) return true;
  char given[32] = "none";
  if (json_is_integer(value)) snprintf(given, sizeof given, "%" PRId64, n);
  mgrid_fail(r->err, MGRID_BACKEND,
             "the RAS of NCCL at %s gave a '%s' that cannot be: %s, not a number from %" PRId64 " to %" PRId64,
             r->address, key, value && !json_is_integer(value) ? "no whole number" : given, least, most);
  return false;
}

/* Make a string safe for a terminal. */
static bool check_text(const reading *r, const json_t *in, const char *key) {
  json_t     *value = json_object_get(in, key);
  const char *text = json_string_value(value);
  char        shown[TEXT_MOST];
  if (!value) return true;
  if (!text)
    return mgrid_fail(r->err, MGRID_BACKEND, "the RAS of NCCL at %s gave a '%s' that is not text", r->address, key),
           false;
  mgrid_shown(shown, sizeof shown, text, json_string_length(value));
  return strcmp(shown, text) == 0 || json_string_set(value, shown) == 0 || (mgrid_oom(r->err), false);
}

static bool check_type(const reading *r, const json_t *value, bool is_it, const char *what, const char *type) {
  if (!value || is_it) return true;
  mgrid_fail(r->err, MGRID_BACKEND, "the RAS of NCCL at %s gave '%s' that is not %s", r->address, what, type);
  return false;
}

static bool check_counts(const reading *r, json_t *counts) {
  const char *kind;
  json_t     *count;
  if (!check_type(r, counts, json_is_object(counts), "collective_counts", "an object")) return false;
  if (json_object_size(counts) > KINDS_MOST) {
    mgrid_fail(r->err, MGRID_BACKEND, "the RAS of NCCL at %s counts %zu kinds of calls, of at most %d", r->address,
               json_object_size(counts), KINDS_MOST);
    return false;
  }
  json_object_foreach(counts, kind, count) {
    if (strlen(kind) >= TEXT_MOST || !mgrid_is_shown(kind, strlen(kind))) {
      mgrid_fail(r->err, MGRID_BACKEND, "the RAS of NCCL at %s counts calls of '%.60s', which is not a name",
                 r->address, kind);
      return false;
    }
    if (!check_number(r, counts, kind, true, 0, INT64_MAX)) return false;
  }
  return true;
}

/* Check an entry of "ranks" or "missing_ranks" of a communicator of `size`. */
static bool check_member(const reading *r, const json_t *member, int64_t size) {
  json_t *status = json_object_get(member, "status");
  return check_type(r, member, json_is_object(member), "ranks", "a list of objects")
         && check_number(r, member, "rank", true, 0, size - 1) && check_number(r, member, "pid", false, 0, INT32_MAX)
         && check_text(r, member, "host") && check_type(r, status, json_is_object(status), "status", "an object")
         && check_number(r, status, "init_state", false, 0, INT32_MAX)
         && check_number(r, status, "async_error", false, 0, INT32_MAX)
         && check_counts(r, json_object_get(member, "collective_counts"));
}

static bool check_communicator(const reading *r, const json_t *comm) {
  static const char *const lists[] = { "ranks", "missing_ranks" };
  if (!check_type(r, comm, json_is_object(comm), "communicators", "a list of objects")) return false;
  if (!check_number(r, comm, "size", true, 1, MGRID_WORLD_MAX) || !check_text(r, comm, "hash")) return false;
  int64_t size = json_integer_value(json_object_get(comm, "size")), members = 0;
  for (int k = 0; k < 2; k++) {
    const json_t *list = json_object_get(comm, lists[k]);
    size_t        i;
    json_t       *member;
    if (!check_type(r, list, json_is_array(list), lists[k], "a list")) return false;
    members += (int64_t)json_array_size(list);
    if (members > size) {
      mgrid_fail(r->err, MGRID_BACKEND, "the RAS of NCCL at %s gave a communicator of %" PRId64 " ranks that has more",
                 r->address, size);
      return false;
    }
    json_array_foreach(list, i, member) if (!check_member(r, member, size)) return false;
  }
  return true;
}

static bool check_all(const reading *r, const json_t *answer) {
  const json_t *comms = json_object_get(answer, "communicators");
  size_t        i;
  json_t       *comm;
  if (!json_is_array(comms)) {
    mgrid_fail(r->err, MGRID_BACKEND, "the RAS of NCCL at %s gave JSON without a list of communicators", r->address);
    return false;
  }
  json_array_foreach(comms, i, comm) if (!check_communicator(r, comm)) return false;
  return check_text(r, answer, "nccl_version");
}

mgrid_status ras_read(const char *address, const char *text, size_t len, json_t **answer, mgrid_error *err) {
  json_error_t  where;
  const reading r = { address, err };
  *answer = NULL;
  if (len > RAS_MOST)
    return mgrid_fail(err, MGRID_BACKEND, "the RAS of NCCL at %s gave more than %d MiB", address, RAS_MOST >> 20);
  const char *what = is_too_much(text, len);
  if (what) return mgrid_fail(err, MGRID_BACKEND, "the RAS of NCCL at %s gave JSON of too many %s", address, what);
  size_t longer;
  char  *whole = mended(text, len, &longer);
  if (!whole) return mgrid_oom(err);
  *answer = json_loadb(whole, longer, 0, &where);
  free(whole);
  if (!*answer)
    return mgrid_fail(err, MGRID_BACKEND, "the RAS of NCCL at %s gave JSON that cannot be read: line %d: %s", address,
                      where.line, where.text);
  if (check_all(&r, *answer)) return MGRID_OK;
  json_decref(*answer);
  *answer = NULL;
  return err ? err->status : MGRID_BACKEND;
}
