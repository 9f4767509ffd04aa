/* SPDX-License-Identifier: MIT
**
** digests.c - plans as one system makes them, to be compared with those of another byte for byte: a
** line for each of N (2000) random topologies and of the bundled recipes at several worlds, with
** the plan's digest, which is a hash of its text, and a hash of its JSON. Ranks compare digests, so
** hosts with other processors, compilers or C libraries must have the same.
**
**     build/tests/digests [N]
*/
#include "random.h"
#include "topologies.h"

#include <xxhash.h>

/* Where text is written: it is hashed. */
static int hashed(void *ud, const char *text, size_t len) {
  XXH3_64bits_update(ud, text, len);
  return 0;
}

/* The line of a plan, or what refuses it. */
static void say(const char *name, int64_t world, const mgrid_plan *p, const mgrid_error *why) {
  char digest[33];
  mgrid_error err = MGRID_ERROR_INIT;
  XXH3_state_t *json = p ? XXH3_createState() : NULL;
  if (json) {
    XXH3_64bits_reset(json);
    mgrid_plan_digest(p, digest);
    mgrid_plan_print_json(p, -1, hashed, json, &err);
    printf("%s %" PRId64 ": %s %016" PRIx64 "%s\n", name, world, digest,
           (uint64_t)XXH3_64bits_digest(json), err.message);
  } else
    printf("%s %" PRId64 ": %s\n", name, world, p ? "no memory" : why->message);
  XXH3_freeState(json);
}

static void say_drawn(uint64_t seed) {
  mgrid_error err = MGRID_ERROR_INIT;
  char name[32];
  rng r = rng_new(seed);
  drawn_topology t = draw_topology(&r, 60);
  mgrid_plan *p = mgrid_plan_new(t.topology, &err);
  snprintf(name, sizeof name, "seed %" PRIu64, seed);
  say(name, t.world, p, &err);
  mgrid_plan_free(p);
  topology_free(&t);
}

/* With the parameters' own values; some recipes refuse them, and say what is missing. */
static void say_recipe(const char *name, int64_t world) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &err);
  mgrid_plan *p = NULL;
  if (rt && mgrid_runtime_load(rt, name, NULL, 0, &err) == MGRID_OK)
    p = mgrid_runtime_plan(rt, world, NULL, 0, NULL, &err);
  say(name, world, p, &err);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

int main(int argc, char **argv) {
  uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
  for (uint64_t seed = first_seed(); seed < first_seed() + n; seed++) say_drawn(seed);
  for (const char *const *name = mgrid_recipe_names(); *name; name++)
    for (int64_t world = 8; world <= 4096; world *= 8) say_recipe(*name, world);
  return 0;
}
