/* SPDX-License-Identifier: MIT
**
** inlines.c - exports the inline functions of moongrid.h as symbols of libmoongrid, for hosts that
** have no C compiler to inline them.
*/
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define MGRID_INLINE MGRID_API
#include "moongrid.h"
