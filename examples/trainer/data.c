/* SPDX-License-Identifier: MIT
**
** data.c - a text made by a small grammar, always the same, and the batches cut from it.
*/
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char symbols_of[VOCAB + 1] = "abcdefghijklmnopqrstuvwxyz .,;?\n";

/* The finalizer of splitmix64 over both: a counter-based generator, without state. */
uint64_t data_mix(uint64_t a, uint64_t b) {
  uint64_t z = a * UINT64_C(0x9e3779b97f4a7c15)
               ^ (b + UINT64_C(0x632be59bd9b4e019)) * UINT64_C(0xd1342543de82ef95);
  for (int i = 0; i < 2; i++) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
  }
  return z;
}

typedef struct writer {
  char *text;
  size_t n, length;
  uint64_t seed, next;
} writer;

static size_t choose(writer *w, size_t n) { return (size_t)(data_mix(w->seed, w->next++) % n); }

static void put(writer *w, const char *word) {
  while (*word && w->n < w->length) w->text[w->n++] = *word++;
}

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Noun and verb agree in number, so that the model has to remember the number. */
static void noun_phrase(writer *w, bool plural) {
  static const char *const one[] = { "the ", "a ", "every ", "my " };
  static const char *const many[] = { "the ", "some ", "all ", "my " };
  static const char *const kind[] = { "", "", "red ", "small ", "dark ", "quiet " };
  static const char *const noun[] = { "bird", "dog", "king", "moon", "river", "grid", "clock" };
  put(w, plural ? many[choose(w, COUNT(many))] : one[choose(w, COUNT(one))]);
  put(w, kind[choose(w, COUNT(kind))]);
  put(w, noun[choose(w, COUNT(noun))]);
  if (plural) put(w, "s");
}

static void clause(writer *w) {
  static const char *const verb[] = { "see", "follow", "hear", "want", "paint" };
  static const char *const how[] = { "", "", " slowly", " again", " at night" };
  bool plural = choose(w, 2);
  noun_phrase(w, plural);
  put(w, " ");
  put(w, verb[choose(w, COUNT(verb))]);
  put(w, plural ? " " : "s ");
  noun_phrase(w, choose(w, 2));
  put(w, how[choose(w, COUNT(how))]);
}

char *data_text(uint64_t seed, size_t length) {
  static const char *const join[] = { ", ", "; ", " and ", " when " };
  static const char *const stop[] = { ".\n", ". ", ". ", "?\n" };
  writer w = { room(length + 1, 1), 0, length, data_mix(seed, 7), 0 };
  while (w.n < length) {
    clause(&w);
    if (choose(&w, 3) == 0) {
      put(&w, join[choose(&w, COUNT(join))]);
      clause(&w);
    }
    put(&w, stop[choose(&w, COUNT(stop))]);
  }
  return w.text;
}

char *data_read(const char *path, size_t *length) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  long n = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
  if (n < 0 || fseek(f, 0, SEEK_SET)) {
    fclose(f);
    return NULL;
  }
  char *text = room((size_t)n + 1, 1);
  *length = fread(text, 1, (size_t)n, f);
  fclose(f);
  return text;
}

/* Return the symbol of a character: of a capital, that of the small letter; unknown: the space. */
static int symbol(char c) {
  if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
  const char *at = c ? strchr(symbols_of, c) : NULL;
  return at ? (int)(at - symbols_of) : 26;
}

void data_sample(const char *text, size_t length, const config *c, int64_t step, int sample,
                 int first, int n, int *symbols, int *targets) {
  uint64_t key = data_mix(c->seed, (uint64_t)step);
  size_t from = (size_t)(data_mix(key, (uint64_t)sample) % (length - (size_t)c->seq));
  const char *at = text + from + first;
  for (int i = 0; i < n; i++) {
    symbols[i] = symbol(at[i]);
    targets[i] = symbol(at[i + 1]);
  }
}
