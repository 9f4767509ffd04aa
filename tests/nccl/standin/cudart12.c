/* SPDX-License-Identifier: MIT
**
** cudart12.c - libcudart.so.12 beside libcudart.so.13: an older runtime, which works with an older
** driver. It needs the other library, which has all other functions.
*/
#include "standin.h"

#define VERSION 12090

SI_API cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = VERSION;
  return cudaSuccess;
}

__attribute__((constructor)) static void the_beginning(void) { rig_the_manner.needed = VERSION; }
