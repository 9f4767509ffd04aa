/* SPDX-License-Identifier: MIT
**
** index.c - numbers by their hash.
*/
#include "base/index.h"

#include <stdlib.h>
#include <string.h>

static void put(const mgrid_index *x, mgrid_slot s) {
  size_t at = s.hash;
  while (x->slot[at & (x->room - 1)].number) at++;
  x->slot[at & (x->room - 1)] = s;
}

bool mgrid_index_put(mgrid_index *x, uint64_t hash, int32_t number) {
  if (2 * (x->n + 1) > x->room) {
    mgrid_index more = { .n = x->n, .room = x->room ? 2 * x->room : 32 };
    if (!(more.slot = calloc(more.room, sizeof *more.slot))) return false;
    for (size_t i = 0; i < x->room; i++)
      if (x->slot[i].number) put(&more, x->slot[i]);
    free(x->slot);
    *x = more;
  }
  put(x, (mgrid_slot){ (uint32_t)hash, number + 1 });
  x->n++;
  return true;
}

void mgrid_index_clear(mgrid_index *x) {
  if (x->slot) memset(x->slot, 0, x->room * sizeof *x->slot);
  x->n = 0;
}

void mgrid_index_free(mgrid_index *x) {
  free(x->slot);
  *x = (mgrid_index){ 0 };
}
