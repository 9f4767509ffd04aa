/* SPDX-License-Identifier: MIT
**
** array.c - arrays that grow.
*/
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

bool mgrid_room(void *array, size_t *room, size_t n, size_t each) {
  size_t most = *room ? *room : 1;
  void  *block; /* its own pointer type is not known here */
  if (n <= *room) return true;
  while (most < n) most *= 2;
  memcpy(&block, array, sizeof block);
  if (!(block = realloc(block, most * each))) return false;
  memcpy(array, &block, sizeof block);
  *room = most;
  return true;
}

bool mgrid_grow(void *array, size_t n, size_t more, size_t each) {
  size_t room = n;
  if (n & (n - 1)) room = (size_t)1 << (64 - __builtin_clzll(n)); /* the next power of two */
  return mgrid_room(array, &room, n + more, each);
}
