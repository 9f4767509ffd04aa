/* SPDX-License-Identifier: MIT
**
** replay.c - each input of a corpus once as it is and a few times with bytes changed, in the same
** way in every run. It is the main of a target where libFuzzer's is not: TARGET FOLDER prints how
** many inputs it tried.
*/
#include "fuzz.h"

#include <dirent.h>

enum { ROUNDS = 16, CHANGES = 3 };

__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv) {
  return (void)argc, (void)argv, 0;
}

static uint32_t next(uint32_t *seed) { return (*seed = *seed * 1664525 + 1013904223) >> 8; }

/* Each round has a copy of its own, so that a read past its end is one past the end of an
** allocation. */
static void try(const char *path, const uint8_t *data, size_t size, uint32_t round) {
  uint32_t seed = round;
  uint8_t *copy = malloc(size + !size), *exact;
  if (!copy) abort();
  memcpy(copy, data, size);
  for (int i = 0; i < CHANGES && round > 0 && size > 0; i++) {
    size_t at = next(&seed) % size;
    copy[at] = (uint8_t)next(&seed);
  }
  if (round > 0) size -= next(&seed) % (size / 8 + 1);
  if (!(exact = realloc(copy, size + !size))) abort();
  fprintf(stderr, "%s, round %u\n", path, (unsigned)round);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
}

int main(int argc, char **argv) {
  static uint8_t data[1 << 16];
  int n = 0;
  LLVMFuzzerInitialize(&argc, &argv);
  DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;
  for (struct dirent *e; folder && (e = readdir(folder));) {
    char path[512];
    snprintf(path, sizeof path, "%.200s/%.200s", argv[1], e->d_name);
    FILE *file = *e->d_name == '.' ? NULL : fopen(path, "rb");
    if (!file) continue;
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    for (uint32_t round = 0; round < ROUNDS; round++) try(path, data, size, round), n++;
  }
  if (folder) closedir(folder);
  printf("%d inputs\n", n);
  return n == 0;
}
