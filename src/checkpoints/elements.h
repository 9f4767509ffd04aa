/* SPDX-License-Identifier: MIT
**
** elements.h - rows of elements that change their place and their type.
*/
#ifndef MGRID_ELEMENTS_H
#define MGRID_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Return whether elements of a type can become those of the other: equal types, or f64, f32, f16 and bf16. */
bool elements_convert(const char *from, const char *to);
/* Copy n elements of `from`, `stride` elements apart, to n elements at `to`, one after the other. Values are rounded to
** the nearest, ties to even; what is too large becomes infinite. Nothing has to be aligned. */
void elements_copy(const char *from_type, const void *from, int64_t stride, const char *to_type, void *to, int64_t n);

#endif
