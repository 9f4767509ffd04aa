/* SPDX-License-Identifier: MIT
**
** calls.c - fuzz target: a byte string drives the whole public API. A step is a byte that says
** which function, what its arguments are made of, and whether an allocation of it fails. Objects
** lie in pools, from which arguments are taken and in which results are put, so that steps make,
** use and free in any order. The callers are made from the headers by calls.lua.
*/
#include "values.h"

typedef struct function {
  const char *name;
  void (*call)(fuzz *z);
} function;

/* ------------------------------------------------------------------- a call */

static mgrid_error *draw_error(fuzz *z) {
  uint8_t how = byte(&z->b);
  if (how < 240) mgrid_error_clear(&z->err);
  z->null = false;
  until_failure = -1;
  return z->given = how >= 224 && how < 240 ? NULL : &z->err;
}

/* Arguments are drawn; from here on an allocation may fail. */
static void begin(fuzz *z) {
  uint8_t how = byte(&z->b);
  z->was = z->err;
  if (how > 191) until_failure = (how - 192) * (how > 240 ? 8 : 1);
}

static void end(fuzz *z, bool failed) {
  until_failure = -1;
  if (!z->given) return;
  fuzz_check_error(&z->err, false);
  /* mgrid_error_clear */
  if (z->was.status) CHECK(memcmp(&z->was, &z->err, sizeof z->err) == 0 || !z->err.status);
  if (failed && !z->null) CHECK(z->err.status);
}

static void touch(const char *text) {
  if (text && strlen(text) > 100000) abort();
}

static void put_outputs(fuzz *z) {
  for (int i = 0; i < ROOM; i++) {
    if (z->out_families[i]) put_family(z, z->out_families[i]), z->out_families[i] = NULL;
    if (z->out_tensors[i]) put_tensor(z, z->out_tensors[i]), z->out_tensors[i] = NULL;
  }
  if (z->out_state) put_state(z, z->out_state), z->out_state = NULL;
  if (z->out_loss) put_loss(z, z->out_loss), z->out_loss = NULL;
  if (z->out_move) put_move(z, z->out_move), z->out_move = NULL;
}

#include "gen/calls.h"

/* Pools are not empty to begin with. */
static void begin_with(fuzz *z) {
  static const char *const dims[] = { "tp", "dp", "pp" };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_dim d[] = { { "tp", 2 }, { "dp", 2 }, { "pp", 2 } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 3, d, &e);
  put_grid(z, g);
  for (int i = 0; i < 3; i++) put_family(z, mgrid_grid_along(g, 1, dims + i, MGRID_GRID_ORDER, &e));
  mgrid_topology *t = mgrid_topology_new(8, &e);
  mgrid_topology_add(t, "tp", z->family.object[0], NULL, &e);
  mgrid_topology_add(t, "dp", z->family.object[1], NULL, &e);
  mgrid_topology_add_grid(t, "grid", g, &e);
  put_topology(z, t);
  put_backend(z, mgrid_backend_dry(8, 3, &e));
  mgrid_plan *p = mgrid_plan_new(t, &e);
  put_plan(z, p);
  put_state(z, mgrid_materialize(p, z->backend.object[0], "a", &e));
  CHECK(!e.status);
}

static void empty(fuzz *z) {
  for (int i = 0; i < POOL; i++) mgrid_policy_free(z->policy.object[i]);
  for (int i = 0; i < POOL; i++) {
    mgrid_grid_free(z->grid.object[i]);
    mgrid_family_free(z->family.object[i]);
    mgrid_topology_free(z->topology.object[i]);
    mgrid_plan_free(z->plan.object[i]);
    mgrid_state_free(z->state.object[i]);
    mgrid_backend_free(z->backend.object[i]);
    mgrid_runtime_free(z->runtime.object[i]);
    mgrid_tensor_free(z->tensor.object[i]);
    mgrid_move_free(z->move.object[i]);
    mgrid_machine_free(z->machine_model.object[i]);
    mgrid_step_free(z->step.object[i]);
    mgrid_step_follower_free(z->step_follower.object[i]);
    mgrid_loss_free(z->loss.object[i]);
    mgrid_losses_free(z->losses.object[i]);
  }
  for (size_t i = 0; i < z->ntexts; i++) free(z->texts[i]);
  for (size_t i = 0; i < STORED; i++) free(stored[i].data);
  memset(stored, 0, sizeof stored);
  nstored = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz z;
  static int says = -1;
  memset(&z, 0, sizeof z);
  z.err = (mgrid_error)MGRID_ERROR_INIT;
  z.b = (bytes){ data, data + size };
  if (says < 0) says = getenv("FUZZ_SAYS") != NULL;
  begin_with(&z);
  for (int i = 0; i < STEPS && more(&z.b); i++) {
    const function *f = &functions[byte(&z.b) % (sizeof functions / sizeof functions[0])];
    if (says) fprintf(stderr, "%d: %s\n", i, f->name);
    f->call(&z);
    if (says && z.given && z.err.status) fprintf(stderr, "   %s\n", z.err.message);
  }
  empty(&z);
  return 0;
}
