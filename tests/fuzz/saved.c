/* SPDX-License-Identifier: MIT
**
** saved.c - fuzz target: the text of a saved plan. The first byte says which allocation fails; the rest is text, or JSON
** where it begins with a brace; where the first byte is odd its lines become the rules of JSON. What is read must be written
** again byte for byte, up to the ends of lines of Windows, and everything that can be asked of a plan is asked.
*/
#include "fuzz.h"

#include "plan/plan.h"

/* The lines as rules, with a digest that is wrong. */
static json_t *rules_of(const char *text, size_t len) {
  json_t *rules = json_array();
  for (const char *at = text, *end = text + len; at < end;) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t      n = (size_t)((stop ? stop : end) - at);
    json_array_append_new(rules, json_stringn(at, n)); /* nothing where it is no UTF-8 */
    at += n + 1;
  }
  return json_pack("{soss}", "rules", rules, "digest", "0");
}

/* Is it what a plan writes? Its lines may end with \r\n, and the last end may be missing. */
static bool is_written(const mgrid_text *plan, const char *text, size_t len) {
  const char *end = memchr(text, '\n', len);
  bool        windows = end && end > text && end[-1] == '\r';
  size_t      at = 0;
  for (size_t i = 0; i < plan->len; i++) {
    if (i + 1 == plan->len && at == len) return true;
    if (windows && plan->data[i] == '\n' && (at == len || text[at++] != '\r')) return false;
    if (at == len || text[at++] != plan->data[i]) return false;
  }
  return at == len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mgrid_error e = MGRID_ERROR_INIT;
  if (size < 1) return 0;
  const char *text = (const char *)data + 1;
  size_t      len = size - 1;
  json_t     *object = data[0] & 1 ? rules_of(text, len) : NULL;
  char       *json = object ? json_dumps(object, JSON_COMPACT) : NULL;
  until_failure = data[0] & 2 ? data[0] >> 2 : -1;
  mgrid_plan *p = json ? mgrid_plan_read(json, strlen(json), NULL, &e) : mgrid_plan_read(text, len, "saved", &e);
  until_failure = -1;
  fuzz_check_error(&e, !p);
  CHECK(!p || !json);
  if (p && mgrid_plan_world(p) <= 4096) fuzz_ask_plan(p);
  if (p) {
    mgrid_text again = { 0 };
    CHECK(mgrid_plan_print(p, mgrid_text_sink, &again, NULL) == MGRID_OK && !again.failed);
    size_t blank = 0;
    while (blank < len && strchr(" \t\r\n", text[blank])) blank++;
    CHECK(text[blank] == '{' || is_written(&again, text, len));
    mgrid_text_free(&again);
  }
  mgrid_plan_free(p);
  free(json);
  json_decref(object);
  return 0;
}
