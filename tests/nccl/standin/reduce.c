/* SPDX-License-Identifier: MIT
**
** reduce.c - sum, product, max, min, average over the payloads of all ranks, in the order of
** the ranks on every rank: all get the same bits. Half floats are added up as floats.
*/
#include "comm.h"

#include <string.h>

/* W: the type to compute in; unsigned for integers that could overflow. */
#define REDUCE(NAME, T, W) \
  static void NAME(char *out, shm *s, size_t at, size_t n, ncclRedOp_t op) { \
    for (size_t i = 0; i < n; i++) { \
      T a, b; \
      memcpy(&a, shm_payload_of(s, 0) + at + i * sizeof a, sizeof a); \
      for (int r = 1; r < s->nranks; r++) { \
        memcpy(&b, shm_payload_of(s, r) + at + i * sizeof b, sizeof b); \
        if (op == ncclProd) \
          a = (T)((W)a * (W)b); \
        else if (op == ncclMax) \
          a = b > a ? b : a; \
        else if (op == ncclMin) \
          a = b < a ? b : a; \
        else \
          a = (T)((W)a + (W)b); \
      } \
      if (op == ncclAvg) a = (T)(a / (T)s->nranks); \
      memcpy(out + i * sizeof a, &a, sizeof a); \
    } \
  }

REDUCE(reduce_i8, int8_t, unsigned)
REDUCE(reduce_u8, uint8_t, unsigned)
REDUCE(reduce_i32, int32_t, uint32_t)
REDUCE(reduce_u32, uint32_t, uint32_t)
REDUCE(reduce_i64, int64_t, uint64_t)
REDUCE(reduce_u64, uint64_t, uint64_t)
REDUCE(reduce_f32, float, float)
REDUCE(reduce_f64, double, double)

/* ---------------------------------------------------------------------- half floats */

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static float from_bf16(uint16_t h) { return float_of((uint32_t)h << 16); }

static uint16_t to_bf16(float f) {
  uint32_t x = bits_of(f);
  if ((x & 0x7fffffff) > 0x7f800000) return (uint16_t)(x >> 16 | 0x40); /* not a number */
  return (uint16_t)((x + 0x7fff + (x >> 16 & 1)) >> 16); /* to nearest, ties to even */
}

/* 5 bits of exponent, 10 of fraction. */
static float from_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
  if (e == 31) return float_of(sign | 0x7f800000 | m << 13);
  if (e) return float_of(sign | (e + 112) << 23 | m << 13);
  float f = (float)m * 0x1p-24f;
  return sign ? -f : f;
}

static uint16_t to_f16(float f) {
  uint32_t x = bits_of(f), a = x & 0x7fffffff;
  uint16_t sign = (uint16_t)(x >> 16 & 0x8000);
  if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
  if (a < 0x38800000) { /* a subnormal: adding 0.5 rounds at 2^-24 */
    uint32_t m = bits_of(float_of(a) + 0.5f) - bits_of(0.5f);
    return (uint16_t)(sign | m);
  }
  a += 0xfff + (a >> 13 & 1);
  return (uint16_t)(sign | ((a >> 13) - (112u << 10)));
}

static void reduce_half(char *out, shm *s, size_t at, size_t n, ncclRedOp_t op, bool brain) {
  for (size_t i = 0; i < n; i++) {
    float a = 0;
    uint16_t h;
    for (int r = 0; r < s->nranks; r++) {
      memcpy(&h, shm_payload_of(s, r) + at + i * sizeof h, sizeof h);
      float b = brain ? from_bf16(h) : from_f16(h);
      if (!r)
        a = b;
      else if (op == ncclProd)
        a *= b;
      else if (op == ncclMax)
        a = b > a ? b : a;
      else if (op == ncclMin)
        a = b < a ? b : a;
      else
        a += b;
    }
    if (op == ncclAvg) a /= (float)s->nranks;
    h = brain ? to_bf16(a) : to_f16(a);
    memcpy(out + i * sizeof h, &h, sizeof h);
  }
}

void si_reduce(char *out, shm *s, size_t at, size_t n, ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
  case ncclInt8: reduce_i8(out, s, at, n, op); break;
  case ncclUint8: reduce_u8(out, s, at, n, op); break;
  case ncclInt32: reduce_i32(out, s, at, n, op); break;
  case ncclUint32: reduce_u32(out, s, at, n, op); break;
  case ncclInt64: reduce_i64(out, s, at, n, op); break;
  case ncclUint64: reduce_u64(out, s, at, n, op); break;
  case ncclFloat32: reduce_f32(out, s, at, n, op); break;
  case ncclFloat64: reduce_f64(out, s, at, n, op); break;
  case ncclFloat16: reduce_half(out, s, at, n, op, false); break;
  case ncclBfloat16: reduce_half(out, s, at, n, op, true); break;
  default: break;
  }
}
