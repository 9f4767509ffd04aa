/* SPDX-License-Identifier: MIT
**
** index.h - the one hash table. It holds numbers, for example indices of an array. Only the caller
** knows what the numbers stand for, and whether two things are equal. So the caller goes through
** all numbers that have the hash of its key:
**
**   size_t  at = 0;
**   int32_t i = mgrid_index_next(&x, hash, &at);
**   while (i >= 0 && strcmp(name, thing[i].name) != 0) i = mgrid_index_next(&x, hash, &at);
**
** A number goes into the first free slot, beginning with the slot of its hash (open addressing). At
** most half of the slots are in use. The numbers are in no order. { 0 } is empty.
*/
#ifndef MGRID_INDEX_H
#define MGRID_INDEX_H

#include "base/base.h"

typedef struct mgrid_slot {
  uint32_t hash;
  int32_t number; /* the number plus 1; 0: the slot is free */
} mgrid_slot;

typedef struct mgrid_index {
  size_t n, room; /* numbers; slots, a power of two or 0 */
  mgrid_slot *slot;
} mgrid_index;

/* Return the next number with this hash; -1: there are no more. *at is 0 at first. */
static inline int32_t mgrid_index_next(const mgrid_index *x, uint64_t hash, size_t *at) {
  while (x->room) {
    const mgrid_slot *s = &x->slot[((uint32_t)hash + (*at)++) & (x->room - 1)];
    if (s->hash == (uint32_t)hash || s->number == 0) return s->number - 1;
  }
  return -1;
}

/* Add a number, 0 to INT32_MAX - 1. False: no memory, and nothing has changed. */
bool mgrid_index_put(mgrid_index *x, uint64_t hash, int32_t number);
/* Remove all numbers. As many can be added again without new memory. */
void mgrid_index_clear(mgrid_index *x);
void mgrid_index_free(mgrid_index *x);

#endif
