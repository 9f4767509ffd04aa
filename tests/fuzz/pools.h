/* SPDX-License-Identifier: MIT
**
** pools.h - what one input of calls.c has made: pools of objects, from which arguments are drawn,
** and room for all that is passed to calls.
*/
#ifndef FUZZ_POOLS_H
#define FUZZ_POOLS_H

#include "fuzz.h"

enum { POOL = 6, ROOM = 64, RANKS = 4096, TEXTS = 512, STEPS = 200, FIELDS = 8, STORED = 64 };

/* What has been made, of one kind. */
typedef struct pool {
  void *object[POOL];
  void *state[POOL]; /* of a group or policy: it ends with this state */
  size_t next;
} pool;

typedef struct fuzz {
  bytes b;
  pool grid, family, topology, plan, backend, state, runtime, policy, group, tensor, move,
      machine_model, step, step_follower, losses, loss;
  bool null;      /* an argument of this call is NULL, which need not be told */
  void *of_state; /* the state drawn last */
  mgrid_error err, was;
  mgrid_error *given;
  char *texts[TEXTS];
  size_t ntexts;
  mgrid_error failed;
  mgrid_options options;
  mgrid_hooks hooks;
  mgrid_limits limits;
  mgrid_site site;
  mgrid_carrier carrier;
  mgrid_nccl_options nccl;
  mgrid_mpi_options mpi;
  mgrid_backend_options opened;
  mgrid_open_options opening;
  mgrid_function function;
  size_t source; /* bytes of the last text of a recipe */
  mgrid_move_options moves;
  mgrid_step_price_options prices;
  mgrid_losses_options losing;
  mgrid_recover_options recovering;
  mgrid_enlarge_options enlarging;
  mgrid_buffer buffers[2][ROOM];
  char parts[2][1 << 16];
  mgrid_move_run_options runs_of_moves;
  mgrid_dim dims[ROOM];
  mgrid_mode modes[2][ROOM];
  mgrid_arg args[ROOM], inner[ROOM];
  mgrid_tensor_axis axes[ROOM];
  const mgrid_family *families[ROOM];
  const mgrid_tensor *tensors[ROOM];
  const char *names[2][ROOM];
  int64_t numbers[2][ROOM], starts[ROOM];
  int64_t ranks[ROOM];
  double doubles[FIELDS];
  int turn;
  /* results */
  mgrid_family *out_families[ROOM];
  mgrid_tensor *out_tensors[ROOM];
  mgrid_state *out_state;
  mgrid_loss *out_loss;
  mgrid_move *out_move;
  const char *out_names[ROOM];
  char text[ROOM];
  int64_t out_numbers[ROOM];
  int64_t out_ranks[RANKS];
  size_t out_size;
  int out_int;
  bool out_bool;
  double out_doubles[ROOM];
  mgrid_run runs[ROOM];
  mgrid_move_descriptor descriptors[ROOM];
} fuzz;

/* ------------------------------------------------------------------- pools */

static void put(pool *p, void *object, void *state, void (*give_back)(void *)) {
  size_t at = p->next++ % POOL;
  if (!object) return;
  if (p->object[at] && give_back) give_back(p->object[at]);
  p->object[at] = object, p->state[at] = state;
}

static void *draw(fuzz *z, pool *p) {
  size_t i = below(&z->b, 16);
  void *object = i == 15 ? NULL : p->object[i % POOL];
  for (size_t k = 0; k < POOL && i < 15 && !object; k++) object = p->object[k];
  z->null |= !object;
  return object;
}

static void *take(fuzz *z, pool *p) {
  size_t i = below(&z->b, POOL);
  void *object = p->object[i];
  p->object[i] = NULL;
  return object;
}

#define KIND(kind, ended) \
  static void give_back_##kind(void *object) { ended; } \
  static inline mgrid_##kind *draw_##kind(fuzz *z) { return draw(z, &z->kind); } \
  static inline mgrid_##kind *take_##kind(fuzz *z) { return take(z, &z->kind); } \
  static inline void put_##kind(fuzz *z, mgrid_##kind *object) { \
    put(&z->kind, object, NULL, give_back_##kind); \
  }

KIND(grid, mgrid_grid_free(object))
KIND(family, mgrid_family_free(object))
KIND(topology, mgrid_topology_free(object))
KIND(plan, mgrid_plan_free(object))
KIND(backend, mgrid_backend_free(object))
KIND(runtime, mgrid_runtime_free(object))
KIND(tensor, mgrid_tensor_free(object))
KIND(move, mgrid_move_free(object))
KIND(machine_model, mgrid_machine_free(object))
KIND(step, mgrid_step_free(object))
KIND(step_follower, mgrid_step_follower_free(object))
KIND(losses, mgrid_losses_free(object))
KIND(loss, mgrid_loss_free(object))

static void give_back_policy(void *object) { mgrid_policy_free(object); }
static inline mgrid_policy *draw_policy(fuzz *z) { return draw(z, &z->policy); }
static inline mgrid_policy *take_policy(fuzz *z) { return take(z, &z->policy); }
static inline void put_policy(fuzz *z, mgrid_policy *p) {
  put(&z->policy, p, z->of_state, give_back_policy);
}
static inline const mgrid_group *draw_group(fuzz *z) { return draw(z, &z->group); }
static inline void put_group(fuzz *z, const mgrid_group *g) {
  put(&z->group, (void *)g, z->of_state, NULL);
}
static inline mgrid_state *draw_state(fuzz *z) { return z->of_state = draw(z, &z->state); }

/* What must not outlive the state: its policies and its groups. */
static void leave(fuzz *z, void *state) {
  for (size_t i = 0; i < POOL && state; i++) {
    if (z->policy.object[i] && z->policy.state[i] == state)
      mgrid_policy_free(z->policy.object[i]), z->policy.object[i] = NULL;
    if (z->group.state[i] == state) z->group.object[i] = NULL;
  }
}

static mgrid_state *take_state(fuzz *z) {
  mgrid_state *s = take(z, &z->state);
  leave(z, s);
  return s;
}

static void put_state(fuzz *z, mgrid_state *s) {
  size_t at = z->state.next % POOL;
  if (s && z->state.object[at]) {
    leave(z, z->state.object[at]);
    mgrid_state_free(z->state.object[at]);
  }
  if (s) z->state.object[at] = NULL;
  put(&z->state, s, NULL, NULL);
}

#endif
