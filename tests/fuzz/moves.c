/* SPDX-License-Identifier: MIT
**
** moves.c - fuzz target: tensors and moves by the public headers. The bytes say two grids, how a
** tensor is cut over each, flats, which rank is which, and machines (../c/tensors.h draws them).
** Who has which element is dealt out one by one, and every message of every rank is carried by hand
** (../c/moved.h): nothing may arrive twice, be missing, or lie elsewhere.
*/
#include "fuzz.h"

#include "../c/moved.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  /* what does not hold is an input that fails, not the end of a test */
  return setenv("CMOCKA_TEST_ABORT", "1", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t none = 0;
  world *w = malloc(sizeof *w);
  rng r = { .at = size ? data : &none, .end = size ? data + size : &none };
  CHECK(w);
  check_drawn_move(&r, w);
  free(w);
  return 0;
}
