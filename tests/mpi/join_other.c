/* SPDX-License-Identifier: MIT
**
** join_other.c - join.c, as if built with another version of the library.
*/
#include "moongrid_mpi.h"

#undef MGRID_VERSION
#define MGRID_VERSION "1.0.99"
#include "comm/rendezvous.c"
#include "join.c"
