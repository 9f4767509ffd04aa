/* SPDX-License-Identifier: MIT
**
** machine.c - fuzz target: text of machines, and files of all readers, with words behind their
** names. What is read is written and read again as the same machine, and its domains are asked for.
** The first byte chooses: 0 text of a machine, else a file, with the words of that number behind
** it. Reading an input of 1 KiB takes at most a second of processor time, and five under
** sanitizers; libFuzzer limits the memory (scripts/fuzz).
*/
#include "machine/model.h"
#include "fuzz.h"

static const char *const words[] = {
  "", "gpu:2", "topology=block", "nodes=n[0-3]", "gpu:2 rail = gpu", "topology=t nodes=n1"
};
enum { WORDS = sizeof words / sizeof *words };

static void ask(const mgrid_machine_model *m) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_text text = { 0 }, again = { 0 };
  mgrid_machine_text(m, &text);
  mgrid_machine_model *same =
      text.len < MGRID_MACHINE_TEXT ? mgrid_machine_parse(mgrid_text_chars(&text), &e) : NULL;
  CHECK(text.len >= MGRID_MACHINE_TEXT || same);
  if (same) mgrid_machine_text(same, &again);
  CHECK(!same || strcmp(mgrid_text_chars(&text), mgrid_text_chars(&again)) == 0);
  mgrid_machine_free(same);
  int64_t world = m->at ? m->nranks : m->places ? m->places : 7;
  if (world > 5000) world = m->at ? 0 : 5000;
  for (size_t i = 0; i < mgrid_machine_nlevels(m) && world > 0; i++) {
    mgrid_family *f = mgrid_machine_family(m, mgrid_level_name(m, i), world, &e);
    CHECK(f && mgrid_family_coverage(f) == MGRID_PARTITION);
    for (int64_t r = 0, g, p; r < world; r += 1 + world / 50)
      CHECK(mgrid_family_locate(f, r, 0, &g, &p));
    mgrid_family_free(f);
  }
  mgrid_text_free(&text);
  mgrid_text_free(&again);
}

/* Is it an error of Lua in a reader: "file: ?:-1: attempt to index a nil value", or without the
** position? */
static bool is_of_reader(const char *message) {
  if (strncmp(message, "file: ", 6) != 0) return false;
  message += 6;
  if (*message == '?') message += strcspn(message, " ") + 1;
  return strncmp(message, "attempt to ", 11) == 0 || strncmp(message, "bad argument ", 13) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_machine_model *m;
  if (size == 0) return 0;
  char *text = strndup((const char *)data + 1, size - 1);
  CHECK(text);
  const double began = mgrid_processor_now();
  if (data[0] == 0)
    m = mgrid_machine_parse(text, &e);
  else
    m = mgrid_machine_read(text, strlen(text), "file", words[data[0] % WORDS], &e);
  CHECK(mgrid_processor_now() - began < 5);
  fuzz_check_error(&e, !m);
  CHECK(!is_of_reader(e.message));
  if (m) ask(m);
  mgrid_machine_free(m);
  free(text);
  return 0;
}
