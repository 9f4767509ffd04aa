/* SPDX-License-Identifier: MIT
**
** plain.c - a shared library of one function: the cost of a getter in another library, to
** compare with mgrid_group_position.
*/
#include <stdint.h>

typedef struct plain {
  int64_t rank, size;
} plain;

int64_t plain_size(const plain *p);
int64_t plain_size(const plain *p) { return p->size; }
