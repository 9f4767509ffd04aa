/* SPDX-License-Identifier: MIT
**
** rigged.h - what the programs on NCCL's own host code share: counts of the CUDA runtime of
** tests/cuda, and states of one communicator.
*/
#ifndef TEST_RIGGED_H
#define TEST_RIGGED_H

#include "trainer.h"

#include <dirent.h>

static long long (*count)(const char *); /* cudarig_count of the runtime */

static inline void load_rig(void) {
  void *rig = dlopen("libcuda.so.1", RTLD_NOW), *found = rig ? dlsym(rig, "cudarig_count") : NULL;
  if (!found) exit(77);
  memcpy(&count, &found, sizeof count);
}

static inline long long device_bytes(void) { return count("device") + count("cumem"); }

static inline mgrid_backend *open_nccl(mgrid_backend *mpi, mgrid_error *e) {
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  o.timeout = 40;
  return mgrid_backend_over(mpi, "nccl", &o, e);
}

/* One family over all ranks, with the options of a text. */
static inline mgrid_state *world_of(mgrid_backend *b, const char *options, mgrid_error *e) {
  char text[512];
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  snprintf(text, sizeof text,
           "return recipe { build = function(world) local t = topology(world) "
           "t.w = grid(world, 'a', { a = fill }) 'a':with { unique = true, nccl = { %s } } return "
           "t end }",
           options);
  o.text = text, o.length = strlen(text), o.name = options;
  return mgrid_open(b, "world", 0, NULL, &o, e);
}

static inline int entries(const char *folder) {
  DIR *d = opendir(folder);
  int n = 0;
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

#endif
