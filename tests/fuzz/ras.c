/* SPDX-License-Identifier: MIT
**
** ras.c - fuzz target: what somebody answers in the place of NCCL's RAS: JSON that is read, checked, and compared with a
** plan. What comes out has no control characters. The first byte says whether the names of RAS are short in the input, as
** `words` below has them, so that few bytes are many communicators.
*/
#include "ras/findings.h"
#include "fuzz.h"

static const char *const words[] = {
  "{\"communicators\":[",
  "{\"hash\":\"h\",\"size\":",
  ",\"ranks\":[",
  "],\"missing_ranks\":[",
  "{\"rank\":",
  ",\"host\":\"",
  "\",\"pid\":",
  ",\"status\":{\"init_state\":",
  ",\"async_error\":",
  ",\"collective_counts\":{\"AllReduce\":",
  "\"considered_dead\":true",
  "127.0.0.1",
  "localhost",
  "\n  \"",
  "\\u001b[2J",
  "]}",
  "},",
  "]}]}",
};
enum { WORDS = sizeof words / sizeof *words };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mgrid_plan *plan;
  mgrid_error        e = MGRID_ERROR_INIT;
  mgrid_text         text = { 0 };
  json_t            *answer, *list;
  if (!plan) {
    mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, NULL);
    const char    *args[] = { "tp=2" };
    CHECK(mgrid_runtime_load(rt, "picotron", NULL, 0, NULL) == MGRID_OK);
    CHECK((plan = mgrid_runtime_plan(rt, 8, NULL, 1, args, NULL)));
    mgrid_runtime_free(rt);
  }
  for (size_t i = 1; i < size; i++) {
    bool word = size > 0 && data[0] % 2 && data[i] >= 0x80;
    if (word)
      mgrid_text_str(&text, words[data[i] % WORDS]);
    else
      mgrid_text_put(&text, (const char *)&data[i], 1);
  }
  mgrid_status s = ras_read("somewhere", mgrid_text_chars(&text), text.len, &answer, &e);
  fuzz_check_error(&e, s != MGRID_OK);
  if (!s) s = ras_findings(answer, size % 3 ? plan : NULL, &list, &e);
  fuzz_check_error(&e, s != MGRID_OK);
  if (!s) {
    char *said = json_dumps(list, JSON_COMPACT);
    CHECK(said && mgrid_is_shown(said, strlen(said)) && !strstr(said, "\\u001"));
    free(said);
    json_decref(list);
  }
  json_decref(answer);
  mgrid_text_free(&text);
  return 0;
}
