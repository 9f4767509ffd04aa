/* SPDX-License-Identifier: MIT
**
** plain.c - a shared library of one function: what a getter costs whose struct is not the
** caller's. The measure for mgrid_group_rank.
*/
#include <stdint.h>

typedef struct plain {
  int64_t rank, size;
} plain;

int64_t plain_size(const plain *p);
int64_t plain_size(const plain *p) { return p->size; }
