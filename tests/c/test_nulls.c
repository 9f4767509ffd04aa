/* SPDX-License-Identifier: MIT
**
** test_nulls.c - every public function with NULL in the place of every pointer, one at a time: none
** crashes, each that fails says so, sets its results, and leaves an error alone that the caller has
** not seen yet. The calls are made from the headers by nulls.lua.
*/
#include "program.h"

#include "moongrid.h"
#include "moongrid_tensor.h"

#include <signal.h>
#include <unistd.h>

enum { UNSET = 0xa5 };

/* One of everything, for calls that are right. */
typedef struct fixture {
  mgrid_grid *grid;
  mgrid_family *family;
  mgrid_topology *topology;
  mgrid_plan *plan;
  mgrid_backend *backend;
  mgrid_state *state;
  mgrid_runtime *runtime;
  mgrid_policy *policy;
  const mgrid_group *group;
  mgrid_tensor *tensor;
  mgrid_step *step;
  mgrid_step_follower *step_follower;
  mgrid_step_call call;
  mgrid_plan *after; /* where `move` goes from `plan` */
  mgrid_move *move;
  mgrid_machine_model *model;
  mgrid_losses *losses;
  mgrid_loss *loss;
  mgrid_losses_options losing;
  mgrid_loss_sums lost;
  mgrid_recover_options recovering;
  mgrid_enlarge_options enlarging;
  mgrid_loss *out_loss;
  mgrid_move *out_move;
  const char *tensors[1];
  const mgrid_family *families[1], *nothing_families[4];
  const mgrid_tensor *tensors_of[1], *nothing_tensors[1];
  const char *nothing_names[4];
  const char *names[2], *settings[1];
  mgrid_dim dims[2];
  mgrid_mode modes[1];
  mgrid_arg arg, value;
  int64_t numbers[8], two[1], starts[2];
  int64_t ranks[8];
  mgrid_options options;
  mgrid_hooks hooks;
  mgrid_limits limits;
  mgrid_nccl_options nccl;
  mgrid_backend_options opened;
  mgrid_open_options opening;
  mgrid_function function;
  mgrid_carrier carrier; /* without functions: never opened */
  mgrid_error failed;
  mgrid_plan_counts counts;
  mgrid_change change;
  mgrid_segment segment;
  mgrid_plan_checked checked;
  mgrid_machine machine;
  mgrid_gpu_memory memory;
  mgrid_nccl_window window;
  mgrid_held_memory held;
  int out_int;
  mgrid_site site;
  mgrid_resources resources;
  mgrid_tensor_axis axis;
  mgrid_move_options moving;
  mgrid_step_price_options pricing;
  mgrid_step_time step_time;
  mgrid_move_run_options running;
  mgrid_buffer buffers[1];
  mgrid_tensor_part part;
  mgrid_move_peer peer;
  mgrid_move_sums sums;
  mgrid_machine_level level;
  mgrid_machine_counts crossed;
  /* results, 0xa5 before the call */
  mgrid_family *out_families[4];
  mgrid_tensor *out_tensors[1];
  mgrid_state *out_state;
  const char *out_names[4];
  char text[256];
  int64_t out_numbers[8], list[8];
  size_t out_size;
  mgrid_run runs[4];
  mgrid_move_descriptor descriptors[4];
  bool out_bool;
  double out_doubles[4];
} fixture;

typedef struct answer {
  bool is_status, made, failed; /* returned a status; returns a new object; not MGRID_OK, or NULL */
  bool unset;                   /* it failed, and a result is as it was */
  mgrid_status status;
} answer;

typedef struct place {
  const char *name;
  /* made by a call that may have failed, so that NULL is not a fault here; the mgrid_error */
  bool object, error;
} place;

typedef struct function {
  const char *name;
  answer (*call)(fixture *f, int null, mgrid_error *err);
  int npointers;
  place pointer[10];
} function;

static bool is_set(const void *result) { return *(const unsigned char *)result != UNSET; }

static int sink(void *ud, const char *text, size_t len) { return ud && text && len > 0 ? 0 : 0; }

static int64_t pick(void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err) {
  (void)ud, (void)size, (void)cap, (void)err;
  positions[0] = 0;
  return 1;
}

static int64_t map(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                   mgrid_error *err) {
  (void)ud, (void)group, (void)ranks, (void)cap, (void)err;
  return n;
}

static int piece(void *ud, const mgrid_move_piece *p) { return ud && p ? 0 : 0; }

static mgrid_status answer_none(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                                mgrid_error *err) {
  (void)ud, (void)n, (void)args, (void)result, (void)err;
  return MGRID_OK;
}

#include "gen/nulls.h"

static const char recipe[] =
    "return recipe { params = { cut = 'tp' }, build = function(world, p)\n"
    "  local g, t = grid(world, 'tp-dp', { tp = 2, dp = fill }), topology(world)\n"
    "  t.grid, t.tp = g, g 'tp'\n"
    "  t.w = tensor { axes = { { 'a', 8 } }, type = 'f32', cut = { a = p.cut } }\n"
    "  return t end,\n"
    "queries = { world_size = function(s) return s.world end },\n"
    "step = function(s) s:barrier(s.tp) end,\n"
    "policy = { one = function() return { one = 1, half = 0.5, yes = true, text = 'a', list = { 1, "
    "2 } } end } }\n";

static char recipe_path[] = P_tmpdir "/moongrid-nulls-XXXXXX.lua";

static void open_fixture(fixture *f) {
  mgrid_error e = MGRID_ERROR_INIT;
  memset(f, UNSET, sizeof *f);
  f->names[0] = "tp", f->names[1] = "dp", f->settings[0] = "tp=2";
  f->dims[0] = (mgrid_dim){ "tp", 2 }, f->dims[1] = (mgrid_dim){ "dp", 4 };
  memset(f->nothing_families, 0, sizeof f->nothing_families);
  f->nothing_tensors[0] = NULL;
  memset(f->nothing_names, 0, sizeof f->nothing_names);
  f->modes[0] = (mgrid_mode){ 2, 1 };
  f->arg = mgrid_arg_integer("tp", 2), f->value = (mgrid_arg)MGRID_ARG_INIT;
  for (int i = 0; i < 8; i++) f->numbers[i] = f->ranks[i] = i;
  f->two[0] = 2, f->starts[0] = 0, f->starts[1] = 8;
  f->options = (mgrid_options)MGRID_OPTIONS_INIT, f->hooks = (mgrid_hooks)MGRID_HOOKS_INIT;
  f->limits = (mgrid_limits)MGRID_LIMITS_INIT,
  f->nccl = (mgrid_nccl_options)MGRID_NCCL_OPTIONS_INIT,
  f->opened = (mgrid_backend_options)MGRID_BACKEND_OPTIONS_INIT,
  f->carrier = (mgrid_carrier)MGRID_CARRIER_INIT;
  f->opening = (mgrid_open_options)MGRID_OPEN_OPTIONS_INIT;
  f->function = mgrid_function_of("of_host", "1", answer_none, NULL);
  f->failed = (mgrid_error)MGRID_ERROR_INIT, f->counts = (mgrid_plan_counts)MGRID_PLAN_COUNTS_INIT;
  f->change = (mgrid_change)MGRID_CHANGE_INIT, f->segment = (mgrid_segment)MGRID_SEGMENT_INIT;
  f->checked = (mgrid_plan_checked)MGRID_PLAN_CHECKED_INIT;
  f->machine = (mgrid_machine)MGRID_MACHINE_INIT,
  f->memory = (mgrid_gpu_memory)MGRID_GPU_MEMORY_INIT;
  f->site = (mgrid_site)MGRID_SITE_INIT, f->resources = (mgrid_resources)MGRID_RESOURCES_INIT;
  f->window = (mgrid_nccl_window)MGRID_NCCL_WINDOW_INIT,
  f->held = (mgrid_held_memory)MGRID_HELD_MEMORY_INIT;
  f->grid = mgrid_grid_new(mgrid_world(8), 2, f->dims, &e);
  f->family = mgrid_grid_along(f->grid, 1, f->names, MGRID_GRID_ORDER, &e);
  f->families[0] = f->family;
  f->topology = mgrid_topology_new(8, &e);
  mgrid_topology_add(f->topology, "tp", f->family, NULL, &e);
  mgrid_topology_add(f->topology, "dp", f->family, NULL, &e);
  f->backend = mgrid_backend_dry(8, 3, &e);
  f->runtime = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(f->runtime, recipe_path, NULL, 0, &e);
  f->plan = mgrid_runtime_plan(f->runtime, 8, NULL, 0, NULL, &e);
  f->step = mgrid_step_new(f->runtime, f->plan, NULL, &e);
  f->step_follower = mgrid_step_follow(f->step, 3, &e);
  f->call = (mgrid_step_call)MGRID_STEP_CALL_INIT;
  f->state = mgrid_materialize(f->plan, f->backend, "train", &e);
  f->group = mgrid_state_group(f->state, "tp", &e);
  f->policy = mgrid_policy_new(f->runtime, f->state, "one", &e);
  mgrid_policy_call(f->policy, 0, NULL, &e);
  f->tensors[0] = "w", f->axis = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT, f->axis.name = "a",
  f->axis.length = 8;
  f->pricing = (mgrid_step_price_options)MGRID_STEP_PRICE_OPTIONS_INIT,
  f->step_time = (mgrid_step_time)MGRID_STEP_TIME_INIT;
  f->moving = (mgrid_move_options)MGRID_MOVE_OPTIONS_INIT,
  f->part = (mgrid_tensor_part)MGRID_TENSOR_PART_INIT;
  f->running = (mgrid_move_run_options)MGRID_MOVE_RUN_OPTIONS_INIT;
  f->peer = (mgrid_move_peer)MGRID_MOVE_PEER_INIT, f->sums = (mgrid_move_sums)MGRID_MOVE_SUMS_INIT;
  f->level = (mgrid_machine_level)MGRID_MACHINE_LEVEL_INIT;
  f->crossed = (mgrid_machine_counts)MGRID_MACHINE_COUNTS_INIT;
  f->model = mgrid_machine_parse("node:2[50GB/s] gpu:4[300GB/s]", &e);
  f->losing = (mgrid_losses_options)MGRID_LOSSES_OPTIONS_INIT,
  f->lost = (mgrid_loss_sums)MGRID_LOSS_SUMS_INIT;
  f->recovering = (mgrid_recover_options)MGRID_RECOVER_OPTIONS_INIT;
  f->enlarging = (mgrid_enlarge_options)MGRID_ENLARGE_OPTIONS_INIT;
  f->losing.how = "stop";
  f->losses = mgrid_losses_new(f->runtime, f->plan, 0, NULL, &f->losing, &e);
  f->loss = mgrid_loss_new(f->losses, 1, (const int64_t[]){ 3 }, &e);
  f->buffers[0] = (mgrid_buffer){ f->text, sizeof f->text };
  f->tensors_of[0] = f->tensor = mgrid_tensor_new(f->grid, "f32", 1, &f->axis, NULL, &e);
  const char *other = "cut=dp";
  mgrid_runtime *again = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(again, recipe_path, NULL, 0, &e);
  f->after = mgrid_runtime_plan(again, 8, NULL, 1, &other, &e);
  mgrid_runtime_free(again);
  f->move = mgrid_move_new(f->plan, f->after, 3, 0, NULL, NULL, &e);
  if (e.status) fail_msg("the fixture: %s", e.message);
}

static void close_fixture(fixture *f) {
  for (int i = 0; i < 4; i++)
    if (is_set(&f->out_families[i])) mgrid_family_free(f->out_families[i]);
  if (is_set(&f->out_tensors[0])) mgrid_tensor_free(f->out_tensors[0]);
  if (is_set(&f->out_state)) mgrid_state_free(f->out_state);
  mgrid_move_free(f->move);
  mgrid_machine_free(f->model);
  mgrid_loss_free(f->loss);
  mgrid_losses_free(f->losses);
  mgrid_plan_free(f->after);
  mgrid_step_follower_free(f->step_follower);
  mgrid_step_free(f->step);
  mgrid_tensor_free(f->tensor);
  mgrid_policy_free(f->policy);
  mgrid_state_free(f->state);
  mgrid_backend_free(f->backend);
  mgrid_plan_free(f->plan);
  mgrid_topology_free(f->topology);
  mgrid_family_free(f->family);
  mgrid_grid_free(f->grid);
  mgrid_runtime_free(f->runtime);
}

/* ------------------------------------------------------------------ the cases */

static char now[128];   /* the case that runs */
static sigjmp_buf back; /* from a crash, so that one run finds all of them */

static void crashed(int signal) { siglongjmp(back, signal); }

static int complain(const char *what) {
  print_error("%s: %s\n", now, what);
  return 1;
}

/* Make the call; false: it crashed. */
static bool made(const function *fn, fixture *f, int null, mgrid_error *err, answer *a) {
  if (sigsetjmp(back, 1)) return false;
  *a = fn->call(f, null, err);
  return true;
}

/* One call; the number of faults. null 0: no pointer is NULL. */
static int try(const function *fn, int null, bool pending, int *succeeded) {
  const place *at = null ? &fn->pointer[null - 1] : NULL;
  fixture f;
  mgrid_error err = MGRID_ERROR_INIT, was;
  int faults = 0;
  bool tells = false; /* has it an mgrid_error, and is it there? */
  for (int i = 0; i < fn->npointers; i++) tells |= fn->pointer[i].error && i != null - 1;
  snprintf(now, sizeof now, "%s, %s%s%s", fn->name, at ? at->name : "no pointer",
           at ? " NULL" : " NULL", pending ? ", after an error" : "");
  if (pending) err.status = MGRID_OVERFLOW, strcpy(err.message, "the first error");
  was = err;
  open_fixture(&f);
  answer a;
  if (!made(fn, &f, null, &err, &a)) return complain("it crashed");
  if (pending && strcmp(fn->name, "mgrid_error_clear") != 0 && memcmp(&err, &was, sizeof err) != 0)
    faults += complain("the first error did not stay");
  if (!pending && tells && at && !at->object && a.failed && (!err.status || !*err.message))
    faults += complain("it failed without a message");
  if (!pending && tells && a.is_status && !a.failed && err.status)
    faults += complain("an error of a call that succeeded");
  if (a.unset) faults += complain("it failed and left a result as it was");
  if (!at && !pending && (a.is_status || a.made) && !a.failed) ++*succeeded;
  close_fixture(&f);
  return faults;
}

static void test_every_pointer(void **state) {
  int faults = 0, calls = 0, succeeded = 0, file = mkstemps(recipe_path, 4);
  (void)state;
  assert_int_equal(write(file, recipe, sizeof recipe - 1), sizeof recipe - 1);
  close(file);
  signal(SIGSEGV, crashed);
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    for (int null = 0; null <= functions[i].npointers; null++)
      for (int pending = 0; pending < 2; pending++, calls++)
        faults += try(&functions[i], null, pending, &succeeded);
  unlink(recipe_path);
  print_message("%d calls of %zu functions, %d of them right\n", calls,
                sizeof functions / sizeof functions[0], succeeded);
  assert_int_equal(faults, 0);
  assert_true(succeeded > 60); /* the fixture is what most functions take */
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_pointer) };
  return run_program("nulls", tests, argc, argv);
}
