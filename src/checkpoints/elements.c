/* SPDX-License-Identifier: MIT
**
** elements.c - rows of elements: gathered, and converted between f64, f32, f16 and bf16.
**
** Conversions go by f64, which has all values of the others, so there is one rounding.
*/
#include "checkpoints/elements.h"
#include "checkpoints/safetensors.h"

#include <string.h>

/* bits of the exponent and of the fraction */
static const struct {
  const char *type;
  int         exponent, fraction;
} floats[] = { { "f64", 11, 52 }, { "f32", 8, 23 }, { "f16", 5, 10 }, { "bf16", 8, 7 } };
enum { NFLOATS = sizeof floats / sizeof floats[0] };

static int float_of(const char *type) {
  for (int i = 0; i < NFLOATS; i++)
    if (strcmp(floats[i].type, type) == 0) return i;
  return -1;
}

bool elements_convert(const char *from, const char *to) {
  return strcmp(from, to) == 0 || (float_of(from) >= 0 && float_of(to) >= 0);
}

/* Return the bits of a float of another type as those of an f64. */
static uint64_t widen(uint64_t bits, int exponent, int fraction) {
  uint64_t sign = bits >> (exponent + fraction) << 63, part = bits & ((UINT64_C(1) << fraction) - 1);
  int64_t  power = (int64_t)(bits >> fraction & ((UINT64_C(1) << exponent) - 1)), top = (INT64_C(1) << exponent) - 1;
  int64_t  bias = top / 2;
  if (power == top) return sign | UINT64_C(0x7ff) << 52 | part << (52 - fraction);
  if (power == 0 && part == 0) return sign;
  if (power == 0) { /* subnormal: normal as an f64, unless it is one */
    if (exponent == 11) return bits;
    for (power = 1; !(part >> fraction); power--) part <<= 1;
    part &= (UINT64_C(1) << fraction) - 1;
  }
  return sign | (uint64_t)(power - bias + 1023) << 52 | part << (52 - fraction);
}

/* Return the bits of an f64 as those of a narrower float, rounded to the nearest, ties to even. */
static uint64_t narrow(uint64_t bits, int exponent, int fraction) {
  uint64_t sign = bits >> 63 << (exponent + fraction), part = bits & ((UINT64_C(1) << 52) - 1);
  int64_t  power = (int64_t)(bits >> 52 & 0x7ff), top = (INT64_C(1) << exponent) - 1, bias = top / 2;
  if (exponent == 11) return bits;
  if (power == 0x7ff) /* infinity; a NaN stays one, quiet */
    return sign | (uint64_t)top << fraction | (part ? part >> (52 - fraction) | UINT64_C(1) << (fraction - 1) : 0);
  if (power == 0) return sign; /* subnormals of f64 are far below half of the least value */
  int64_t drop = 52 - fraction, to = power - 1023 + bias;
  part |= UINT64_C(1) << 52;
  if (to <= 0) drop += 1 - to, to = 0; /* subnormal */
  if (drop > 53) return sign;
  uint64_t kept = part >> drop, rest = part & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
  kept += rest > half || (rest == half && (kept & 1));
  uint64_t all = to ? ((uint64_t)to << fraction) + (kept - (UINT64_C(1) << fraction)) : kept; /* a carry is right */
  return all >= (uint64_t)top << fraction ? sign | (uint64_t)top << fraction : sign | all;
}

static uint64_t load(const char *at, size_t width) {
  uint64_t bits = 0;
  for (size_t i = 0; i < width; i++) bits |= (uint64_t)(unsigned char)at[i] << 8 * i;
  return bits;
}

static void store(char *at, size_t width, uint64_t bits) {
  for (size_t i = 0; i < width; i++) at[i] = (char)(unsigned char)(bits >> 8 * i & 0xff);
}

void elements_copy(const char *from_type, const void *from, int64_t stride, const char *to_type, void *to, int64_t n) {
  size_t      width = (size_t)st_width(from_type), wide = (size_t)st_width(to_type);
  const char *in = from;
  char       *out = to;
  int         a = float_of(from_type), b = float_of(to_type);
  if (strcmp(from_type, to_type) == 0) {
    if (stride == 1)
      memcpy(out, in, (size_t)n * width);
    else
      for (int64_t i = 0; i < n; i++) memcpy(out + (size_t)i * width, in + (size_t)(i * stride) * width, width);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = widen(load(in + (size_t)(i * stride) * width, width), floats[a].exponent, floats[a].fraction);
    store(out + (size_t)i * wide, wide, narrow(bits, floats[b].exponent, floats[b].fraction));
  }
}
