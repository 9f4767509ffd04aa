/* SPDX-License-Identifier: MIT
**
** inlines.c - the inline functions of moongrid.h as symbols of libmoongrid, for hosts that call
** without a C compiler.
*/
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define MGRID_INLINE MGRID_API
#include "moongrid.h"
