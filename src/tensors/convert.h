/* SPDX-License-Identifier: MIT
**
** convert.h - elements of moves that change their type: f32 in the tensor, bf16 where they are packed.
*/
#ifndef MGRID_CONVERT_H
#define MGRID_CONVERT_H

#include "comm/backend.h"

enum { MGRID_CONVERT_SCALE = 2 }; /* bytes in the tensor for each packed byte */

/* Return the upper half of a float, rounded to nearest, ties to even. A NaN stays a NaN. */
static inline uint16_t mgrid_bf16_of(uint32_t f32) {
  if ((f32 & 0x7fffffff) > 0x7f800000) return (uint16_t)(f32 >> 16 | 0x40);
  return (uint16_t)((f32 + 0x7fff + (f32 >> 16 & 1)) >> 16);
}
static inline uint32_t mgrid_f32_of(uint16_t bf16) { return (uint32_t)bf16 << 16; }

/* Convert strided rows of f32 to contiguous bf16, or back. */
void mgrid_convert(const mgrid_slab *s);

#endif
