/* SPDX-License-Identifier: MIT
**
** convert.c - convert rows of elements that change their type.
*/
#include "tensors/convert.h"

#include <string.h>

/* Neither side has to be aligned. */
static void narrow(char *to, const char *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t wide;
    memcpy(&wide, from + i * (int64_t)sizeof wide, sizeof wide);
    uint16_t half = mgrid_bf16_of(wide);
    memcpy(to + i * (int64_t)sizeof half, &half, sizeof half);
  }
}

static void widen(char *to, const char *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint16_t half;
    memcpy(&half, from + i * (int64_t)sizeof half, sizeof half);
    uint32_t wide = mgrid_f32_of(half);
    memcpy(to + i * (int64_t)sizeof wide, &wide, sizeof wide);
  }
}

void mgrid_convert(const mgrid_slab *s) {
  char   *packed = s->packed;
  int64_t n = s->row / (int64_t)sizeof(uint32_t);
  for (int64_t k = 0; k < s->planes; k++)
    for (int64_t i = 0; i < s->count; i++, packed += s->row / MGRID_CONVERT_SCALE) {
      char *apart = s->apart + k * s->plane_stride + i * s->stride;
      if (s->pack)
        narrow(packed, apart, n);
      else
        widen(apart, packed, n);
    }
}
