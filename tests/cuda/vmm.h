/* SPDX-License-Identifier: MIT
**
** vmm.h - handles of cuMem, which are memory or multicast objects.
*/
#ifndef RIG_VMM_H
#define RIG_VMM_H

#include "rig.h"

typedef struct rig_multicast rig_multicast;

typedef struct rig_physical_memory {
  struct rig_physical_memory *next;
  rig_multicast *multicast; /* NULL: memory */
  int file, refs;
  size_t bytes;
  bool imported; /* another process has counted it */
  CUmemAllocationProp prop;
} rig_physical_memory;

/* What is behind a handle, with one more reference, or NULL. */
rig_physical_memory *rig_hold(CUmemGenericAllocationHandle handle);
void rig_drop(rig_physical_memory *h);
bool rig_new_handle(CUmemGenericAllocationHandle *out, int file, size_t bytes, bool imported,
                    const CUmemAllocationProp *prop, rig_multicast *multicast);

/* ------------------------------------------------------------------------ multicast.c */

rig_multicast *rig_multicast_open(int file); /* NULL: the file is none */
size_t rig_multicast_bytes(const rig_multicast *m);
void rig_multicast_end(rig_multicast *m);
void rig_multicast_whole(const rig_multicast *m); /* wait until all devices have been added */
int rig_multicast_write(void *physical, size_t at, const void *from, int value, size_t bytes);

#endif
