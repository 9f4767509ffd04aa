/* SPDX-License-Identifier: MIT
**
** fuzz.h - what the fuzz targets share: numbers and texts out of a byte string, allocations that
** fail, files, and what must hold of every call: an error has a status that exists and one line of
** message.
*/
#ifndef FUZZ_H
#define FUZZ_H

#include "moongrid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* What the input has not said yet; past its end everything is 0. */
typedef struct bytes {
  const uint8_t *at, *end;
} bytes;

static inline bool more(const bytes *b) { return b->at < b->end; }
static inline uint8_t byte(bytes *b) { return b->at < b->end ? *b->at++ : 0; }
static inline size_t below(bytes *b, size_t n) { return n ? byte(b) % n : 0; }

/* A line, without its end, as text; the rest of the input where there is no other line. */
static inline char *line(bytes *b) {
  size_t n = 0;
  while (b->at + n < b->end && b->at[n] != '\n') n++;
  char *text = malloc(n + 1);
  if (!text) abort();
  memcpy(text, b->at, n);
  text[n] = '\0';
  b->at += n + (b->at + n < b->end);
  return text;
}

/* --------------------------------------------------------------- allocations
** The linker routes the library's malloc, calloc and realloc through fuzz.c. More than `most` bytes at once are
** never given: a host has limits as well. */
extern long until_failure; /* allocations left before one fails; -1: none does */

/* -------------------------------------------------------------------- files */

/* Write a file of this process, whose name ends with `end` (".lua"); its path, until the next call
** with that `end`. */
const char *fuzz_file(const char *end, const void *data, size_t size);

/* -------------------------------------------------------------------- checks */

#define CHECK(condition) \
  do \
    if (!(condition)) fuzz_failed(__FILE__, __LINE__, #condition); \
  while (0)
_Noreturn void fuzz_failed(const char *file, int at_line, const char *condition);

/* Is the error as it must be after a call that said `failed`? */
void fuzz_check_error(const mgrid_error *err, bool failed);
/* Takes any text, all of it; *ud, a size_t, counts it. */
int fuzz_sink(void *ud, const char *text, size_t len);
/* A plan and a dry state of it, asked all that can be asked without arguments. */
void fuzz_ask_plan(const mgrid_plan *p);
void fuzz_ask_state(mgrid_runtime *rt, const mgrid_plan *p, int64_t rank);

#endif
