/* SPDX-License-Identifier: MIT
**
** saved.c - fuzz target: a saved plan. The first byte says which allocation fails. The rest is JSON
** where it begins with a brace, else the rules behind the world, to which their own digest is
** given: so what the fuzzer bends is read to its end. What is read must read the same when it is
** saved again, and everything that can be asked of a plan is asked.
*/
#include "fuzz.h"

#include "plan/plan.h"

/* Write the rules as a saved plan of 16 ranks with this digest. */
static char *whole_of(const char *rules, size_t len, const char *digest) {
  mgrid_text t = { 0 };
  mgrid_text_add(&t, "{\"format\": %d, \"rules\": [{\"world\": 16}, ", MGRID_SAVED_FORMAT);
  mgrid_text_put(&t, rules, len);
  mgrid_text_add(&t, "], \"digest\": \"%s\"}", digest);
  return t.data;
}

static mgrid_plan *read_failing(const char *text, size_t len, int failing, mgrid_error *e) {
  until_failure = failing;
  mgrid_plan *p = mgrid_plan_read(text, len, "saved", e);
  until_failure = -1;
  return p;
}

/* The plan says of itself what it said before it was saved. */
static void check_again(const mgrid_plan *p) {
  mgrid_error e = MGRID_ERROR_INIT;
  char was[33], is[33];
  mgrid_text saved = { 0 }, text = { 0 }, same = { 0 };
  CHECK(mgrid_plan_save(p, mgrid_text_sink, &saved, &e) == MGRID_OK && !saved.failed);
  if (saved.len > MGRID_SAVED_MAX) {
    mgrid_text_free(&saved);
    return;
  }
  mgrid_plan *again = mgrid_plan_read(saved.data, saved.len, "again", &e);
  if (!again) CHECK(e.status == MGRID_LIMIT); /* the work of a plan that was nearly too much */
  mgrid_plan_digest(p, was), mgrid_plan_digest(again, is);
  CHECK(!again || strcmp(was, is) == 0);
  CHECK(mgrid_plan_print(p, mgrid_text_sink, &text, &e) == MGRID_OK);
  if (again) CHECK(mgrid_plan_print(again, mgrid_text_sink, &same, &e) == MGRID_OK);
  CHECK(!again || (text.len == same.len && memcmp(text.data, same.data, text.len) == 0));
  mgrid_text_free(&saved), mgrid_text_free(&text), mgrid_text_free(&same);
  mgrid_plan_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char wrong[] = "saved: digest: '";
  mgrid_error e = MGRID_ERROR_INIT;
  if (size < 1) return 0;
  const char *text = (const char *)data + 1;
  size_t len = size - 1;
  const int failing = data[0] & 2 ? data[0] >> 2 : -1;
  char *whole = len && *text == '{' && memchr(text, '[', len) && !(data[0] & 1)
                    ? NULL
                    : whole_of(text, len, "0");
  mgrid_plan *p = read_failing(whole ? whole : text, whole ? strlen(whole) : len, failing, &e);
  fuzz_check_error(&e, !p);
  if (whole && strncmp(e.message, wrong, sizeof wrong - 1) == 0) {
    char digest[33];
    snprintf(digest, sizeof digest, "%.32s", e.message + sizeof wrong - 1);
    free(whole);
    whole = whole_of(text, len, digest);
    e = (mgrid_error)MGRID_ERROR_INIT;
    p = read_failing(whole, strlen(whole), -1, &e);
    CHECK(p);
  }
  if (p && mgrid_plan_world(p) <= 4096) fuzz_ask_plan(p);
  if (p) check_again(p);
  mgrid_plan_free(p);
  free(whole);
  return 0;
}
