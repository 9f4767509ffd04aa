/* SPDX-License-Identifier: MIT
**
** dry.c - the backend without communicators. One process plays one rank of a world that does not exist, so every
** question about a plan can be asked without a launcher.
*/
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static mgrid_status dry_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  (void)b, (void)words, (void)n, (void)err; /* the minimum over one rank */
  return MGRID_OK;
}

static mgrid_status dry_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err) {
  (void)err;
  for (int64_t r = 0; r < b->world; r++) memcpy((char *)all + (size_t)r * bytes, mine, bytes);
  return MGRID_OK;
}

static mgrid_status dry_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err) {
  (void)b, (void)data, (void)bytes, (void)root, (void)err;
  return MGRID_OK;
}

static mgrid_outcome dry_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                                mgrid_error *err) {
  (void)b, (void)n, (void)spec, (void)native, (void)err;
  return MGRID_OK;
}

static void dry_destroy(mgrid_backend *b, size_t n, void **native) { (void)b, (void)n, (void)native; }

static mgrid_status dry_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_error *err) {
  (void)b, (void)n, (void)spec, (void)err; /* nothing is created, so all options are fine */
  return MGRID_OK;
}

static void dry_close(mgrid_backend *b) { free(b); }

mgrid_backend *mgrid_backend_dry(int64_t world, int64_t rank, mgrid_error *err) {
  static const mgrid_backend_ops ops = {
    .allreduce_min = dry_allreduce,
    .allgather = dry_allgather,
    .bcast = dry_bcast,
    .check = dry_check,
    .create = dry_create,
    .destroy = dry_destroy,
    .close = dry_close,
  };
  if (world < 1 || world > MGRID_WORLD_MAX || rank < 0 || rank >= world)
    return mgrid_null(err, MGRID_OUT_OF_RANGE, "rank %" PRId64 " is out of range in a world of %" PRId64, rank, world);
  mgrid_backend *b = calloc(1, sizeof *b);
  if (!b) return mgrid_null_oom(err);
  *b = (mgrid_backend){
    .layout = MGRID_LAYOUT, .kind = mgrid_backend_named("dry"), .ops = &ops, .rank = rank, .world = world, .users = 1
  };
  b->place = (mgrid_place){ .machines = 1,
                            .local_size = world,
                            .local_rank = rank }; /* as if the whole job ran on this machine */
  return b;
}
