/* SPDX-License-Identifier: MIT
**
** struck.h - when a rank was struck: struck.c writes it to FOLDER/hit, and the ranks of calls.c
** read it.
*/
#ifndef TEST_STRUCK_H
#define TEST_STRUCK_H

#include <stdio.h>

/* By mgrid_now; 0: not yet. */
static inline double struck_at(const char *folder) {
  char name[400];
  double at = 0;
  snprintf(name, sizeof name, "%s/hit", folder);
  FILE *f = fopen(name, "r");
  if (f && fscanf(f, "%lf", &at) != 1) at = 0;
  if (f) fclose(f);
  return at;
}

#endif
