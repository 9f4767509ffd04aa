/* SPDX-License-Identifier: MIT
**
** run.c - moongrid run: materialize a recipe on the launcher's ranks and prove every communicator.
*/
#include "comm/compare.h"
#include "comm/open.h"
#include "comm/state.h"
#include "command/slice.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES_MAX = 64 };

typedef struct options {
  cli         cli;
  const char *backend;
  const char *carrier;             /* NULL: not given */
  int64_t     timeout, gpu_memory; /* seconds, MiB; 0: not given */
  int         ndevices;
  int         devices[DEVICES_MAX]; /* the GPU of each rank of a machine; empty: chosen by rank */
  bool        json, share_gpu, bandwidth;
} options;

/* A cli_reader of --devices. */
static mgrid_status read_devices(const cli *c, const char *name, const char *value, void *to) {
  options *o = to;
  for (const char *at = value; at;) {
    char *end;
    long  n = strtol(at, &end, 10);
    if (end == at || (*end != '\0' && *end != ',') || n < 0 || n > 1023 || o->ndevices == DEVICES_MAX)
      return cli_usage(c, "%s is a list of GPUs, one for each rank of a machine, as 0,1,2,3; not '%s'", name, value);
    o->devices[o->ndevices++] = (int)n;
    at = *end ? end + 1 : NULL;
  }
  return MGRID_OK;
}

/* List the values of --backend: auto, each that has a library, dry. */
static size_t backends(const char *names[CLI_VALUES_MAX]) {
  names[0] = "auto";
  size_t n = 1 + mgrid_backend_names(names + 1, MGRID_BACKENDS_OPENED);
  names[n++] = "dry";
  return n;
}

/* List the values of --carrier. */
static size_t carriers(const char *names[CLI_VALUES_MAX]) {
  return mgrid_backend_names(names, MGRID_BACKENDS_CARRIERS);
}
_Static_assert((int)MGRID_BACKENDS_MAX + 2 <= (int)CLI_VALUES_MAX, "CLI_VALUES_MAX has room for all");

static mgrid_status show(const options *c, const mgrid_plan *p, mgrid_error *err) {
  return cli_tell(&c->cli, "show", p, c->json ? "json" : NULL, err);
}

/* Run --backend dry: one process plays every rank of the creation schedule. */
static mgrid_status rehearse(const options *c, mgrid_runtime *rt, mgrid_error *err) {
  if (!c->cli.world && rt)
    return mgrid_fail(err, MGRID_USAGE, "--backend dry needs --world N, the number of ranks to play");
  mgrid_created r = { 0 };
  mgrid_plan   *p = cli_plan(&c->cli, rt, c->cli.world, err);
  cli_progress(&c->cli, "rehearsing %" PRId64 " ranks", p ? mgrid_plan_world(p) : 0);
  mgrid_status s = p ? mgrid_plan_rehearse(p, &r, err) : err->status;
  cli_progress_end();
  if (!s) cli_tell(&c->cli, "notes", p, NULL, err);
  if (!s) s = show(c, p, err);
  if (!s && !c->json)
    printf("\nrehearsed      %" PRId64 " rank%s went through %" PRId64 " creation%s of %" PRId64
           " communicator%s; no rank waits forever\n",
           mgrid_plan_world(p), mgrid_s_of(mgrid_plan_world(p)), r.memberships, mgrid_s_of(r.memberships),
           r.communicators, mgrid_s_of(r.communicators));
  mgrid_plan_free(p);
  return s;
}

/* Return how many communicators all ranks hold together, one for each member; -1: unknown. Computed from the plan,
** because the only reduction that backends have over all ranks is a minimum. */
static int64_t held_in_all(const mgrid_plan *p) {
  mgrid_created r = { 0 };
  return mgrid_plan_rehearse(p, &r, NULL) == MGRID_OK ? r.memberships : -1;
}

static mgrid_status materialize(const options *c, const cli_addition *by, mgrid_runtime *rt, mgrid_backend *b,
                                const mgrid_plan *p, mgrid_error *err) {
  int64_t proved = 0;
  cli_progress(&c->cli, "creating and proving the communicators of %" PRId64 " ranks", mgrid_backend_world(b));
  mgrid_state *state = mgrid_materialize(p, b, "run", err);
  mgrid_status s = state ? mgrid_state_prove(state, &proved, err) : err->status;
  cli_progress_end();
  if (!s) cli_tell(&c->cli, "unheeded", p, mgrid_backend_name(b), err);
  if (!s) cli_tell(&c->cli, "notes", p, NULL, err);
  if (!s && mgrid_backend_rank(b) == 0 && !(by && c->json)) {
    int64_t held = held_in_all(p);
    bool    alone = mgrid_backend_world(b) == 1;
    s = show(c, p, err);
    if (!s && !c->json && !b->kind->native)
      printf("\nagreed         %s%" PRId64 " rank%s the same plan; %s makes no communicators\n", alone ? "" : "all ",
             mgrid_backend_world(b), alone ? " has" : "s have", mgrid_backend_name(b));
    else if (!s && !c->json)
      printf("\nproved         every communicator on %s%" PRId64 " rank%s (%" PRId64
             " membership%s, %s): members and\n               order, sum, broadcast from every position, ring%s\n",
             alone ? "" : "all ", mgrid_backend_world(b), alone ? "" : "s", held, mgrid_s_of(held),
             mgrid_backend_name(b), b->kind->exchanges ? ", all-to-all" : "");
    fflush(stdout);
  }
  if (c->bandwidth) { /* if rank 0 failed to print, no rank measures */
    s = mgrid_verdict(b, s, err, err);
    if (!s) s = cli_bandwidth(state, err);
  }
  if (by) { /* likewise */
    s = mgrid_verdict(b, s, err, err);
    if (!s) s = by->use(&c->cli, rt, state, c->json, err);
  }
  mgrid_state_free(state);
  return s;
}

/* Without --devices, use the recipe's parameter `devices`, if it has one. */
static mgrid_status recipe_devices(options *c, const mgrid_plan *p, mgrid_error *err) {
  for (size_t i = 0; i < p->content.nparams && c->ndevices == 0; i++) {
    if (strcmp(p->content.param[i].name, "devices") != 0) continue;
    const char *at = p->content.param[i].value;
    for (at += *at == '['; *at && *at != ']';) {
      char *end;
      long  n = strtol(at, &end, 10);
      if (end == at || c->ndevices == DEVICES_MAX)
        return mgrid_fail(err, MGRID_BAD_VALUE, "parameter 'devices' is a list of GPUs, not '%s'",
                          p->content.param[i].value);
      c->devices[c->ndevices++] = (int)n;
      at = *end == ',' ? end + 1 : end;
    }
  }
  return MGRID_OK;
}

/* Return the backend that the command line asks for, over the open one. wanted NULL: auto. */
static mgrid_backend *choose(options *c, const mgrid_descriptor *wanted, mgrid_backend *b, const mgrid_plan *p,
                             mgrid_error *err) {
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_status       s = recipe_devices(c, p, err); /* identical on all ranks, because the plan is */
  if (s || (wanted && !wanted->carried)) return s ? NULL : mgrid_backend_ref(b);
  o.share_gpu = c->share_gpu;
  o.devices = c->devices, o.ndevices = c->ndevices;
  o.budget = c->gpu_memory << 20;
  if (c->timeout) o.timeout = (double)c->timeout;
  return wanted ? mgrid_backend_over(b, wanted->name, &o, err) : mgrid_backend_best(b, &o);
}

/* Return the first call over all ranks, named by the options that must be the same on all. */
static uint64_t call_of(const options *c, mgrid_backend *b) {
  mgrid_text t = { 0 };
  cli_agreed(&c->cli, &t);
  uint64_t call = mgrid_meet_call(b, true, "run%s", mgrid_text_chars(&t));
  mgrid_text_free(&t);
  return call;
}

/* Print an error that all ranks have: rank 0 prints it, but if rank 0 is missing or was stopped, the others. A deadline
** passes by the clock of each rank, and the first rank to end ends all; so the others wait until rank 0 has printed. */
static void say(const cli *c, const mgrid_error *err) {
  const struct timespec first = { 0, 500000000 };
  if (err->status == MGRID_TIMED_OUT && err->nmissing > 0 && err->missing[0] == 0) {
    cli_say_own(c, err);
  } else {
    cli_say(c, err);
    if (err->status == MGRID_TIMED_OUT && c->me != 0) nanosleep(&first, NULL);
  }
}

/* Plan for --world of a side, else for the number of ranks that the launcher started. NULL after an earlier error, too. */
static mgrid_plan *plan_of(const options *c, mgrid_runtime *rt, int64_t launched, mgrid_error *err) {
  return err->status ? NULL : cli_plan(&c->cli, rt, c->cli.world ? c->cli.world : launched, err);
}

static mgrid_status prove_plan(options *c, const cli_addition *by, const mgrid_descriptor *wanted, mgrid_backend *b,
                               mgrid_runtime *rt, mgrid_error *planning, mgrid_error *err) {
  int64_t     world = mgrid_backend_world(b);
  mgrid_plan *p = NULL;
  if (c->cli.world && c->cli.world != world && !c->cli.launched)
    mgrid_fail(planning, MGRID_USAGE,
               "--world %" PRId64 " was asked for, and this is one rank; mpirun -n %" PRId64
               " moongrid run starts as many, "
               "--backend dry rehearses them",
               c->cli.world, c->cli.world);
  else if (c->cli.world && c->cli.world != world)
    mgrid_fail(planning, MGRID_USAGE, "--world %" PRId64 " was asked for, the launcher started %" PRId64 " rank%s",
               c->cli.world, world, mgrid_s_of(world));
  else
    p = plan_of(c, rt, world, planning);
  /* A rank without a plan takes part too, because the others wait for it; all get its error. */
  mgrid_status s = mgrid_agree_in(b, call_of(c, b), p, false, planning, err);
  if (!s) s = cli_before_ranks(&c->cli, b, p, err);
  mgrid_backend *chosen = s ? NULL : choose(c, wanted, b, p, err);
  if (chosen) cli_guard(&c->cli, chosen->doing);
  if (!s) s = chosen ? materialize(c, by, rt, chosen, p, err) : err->status;
  mgrid_plan_free(p);
  if (chosen) cli_guard(&c->cli, b->doing);
  mgrid_backend_free(chosen);
  return s;
}

/* Go from one side's plan to the other's, by an addition. */
static mgrid_status prove_sides(options *side, const cli_addition *by, const mgrid_descriptor *wanted, mgrid_backend *b,
                                mgrid_runtime **rt, mgrid_error *planning, mgrid_error *err) {
  int64_t         world = mgrid_backend_world(b);
  mgrid_plan     *from = plan_of(&side[0], rt[0], world, planning), *to = plan_of(&side[1], rt[1], world, planning);
  mgrid_location *locations = NULL;
  if (!planning->status) mgrid_locations_new(b, &locations, planning);
  mgrid_status s = mgrid_meet(b, call_of(side, b), err);
  if (!s) s = mgrid_verdict(b, planning->status, planning, err);
  if (!s) s = mgrid_locations_verdict(b, locations, MGRID_OK, NULL, err);
  free(locations);
  mgrid_backend *chosen = s ? NULL : choose(&side[0], wanted, b, from, err);
  if (chosen) cli_guard(&side->cli, chosen->doing);
  if (!s) s = chosen ? by->go(&side->cli, chosen, from, to, b->place.block, planning, err) : err->status;
  mgrid_plan_free(from);
  mgrid_plan_free(to);
  if (chosen) cli_guard(&side->cli, b->doing);
  mgrid_backend_free(chosen);
  return s;
}

/* side, rt: [2] with an addition. */
static mgrid_status run_on_ranks(options *side, const cli_addition *by, const mgrid_descriptor *wanted,
                                 mgrid_runtime **rt, mgrid_error *planning, mgrid_error *err) {
  options                *c = side;
  const mgrid_descriptor *first = wanted && !wanted->carried ? wanted
                                  : c->carrier               ? mgrid_backend_named(c->carrier)
                                                             : mgrid_backend_usual();
  mgrid_mpi_options       mpi = MGRID_MPI_OPTIONS_INIT;
  mgrid_backend_options   o = { sizeof o, c->timeout ? (double)c->timeout : MGRID_TIMEOUT, &mpi };
  mpi.on_deadline = MGRID_DEADLINE_ABORT;
  cli_note_limits(&c->cli);
  cli_guard(&c->cli, "the start of the job");
  cli_guard_alarm(&c->cli, o.timeout, "the job has not started");
  mgrid_backend *b = mgrid_backend_open(first->name, &o, err);
  cli_guard_end();
  if (!b) cli_guard(&c->cli, NULL);
  if (!b) return cli_say_own(&c->cli, err);
  cli_guard(&c->cli, b->doing);
  mgrid_status s = by && by->go ? prove_sides(side, by, wanted, b, rt, planning, err)
                                : prove_plan(c, by, wanted, b, rt[0], planning, err);
  if (!s && first->native) s = mgrid_meet(b, mgrid_meet_call(b, false, "the end of the job"), err);
  cli_guard(&c->cli, NULL);
  /* Print now, not after MPI_Finalize, because the launcher kills all ranks when the first exits with an error. */
  if (s) say(&c->cli, err);
  cli_guard_alarm(&c->cli, o.timeout + 0.75, "the job has not ended"); /* if nobody has said who is missing */
  mgrid_backend_free(b);
  cli_guard_end();
  return s;
}

/* Refuse --carrier for a backend that needs no carrier. */
static mgrid_status check_carrier(const options *c, const mgrid_descriptor *wanted) {
  char list[MGRID_BACKENDS_TEXT];
  if (!c->carrier || !wanted || wanted->carried) return MGRID_OK;
  return cli_usage(&c->cli, "--carrier %s is for %s; --backend %s has none", c->carrier,
                   mgrid_backend_list(list, MGRID_BACKENDS_CARRIED), wanted->name);
}

/* Read one side, or with `vs` two, whose options are merged into the first. *by: the addition that takes two sides.
** False: nothing is left to do. */
static bool parse(options *side, const cli_addition **by, const cli_command *self, int argc, char **argv) {
  options                   *a = &side[0], *b = &side[1];
  const cli_addition *const *some = self->additions;
  bool                       two = false;
  while (*some && !(*some)->go) some++;
  for (int i = 1; i < argc && *some; i++) two |= strcmp(argv[i], "vs") == 0;
  bool whole = two ? cli_parse_sides(&a->cli, &b->cli, self, argc, argv) : cli_parse(&a->cli, self, argc, argv);
  if (!whole) return false;
  if (!two) a->cli.code = cli_needs(&a->cli, 1);
  *by = cli_switched(&a->cli);
  const char *name = *by ? (*by)->options[0].name : "";
  if (!a->cli.code && *by && !two && (*by)->go)
    a->cli.code = cli_usage(&a->cli, "--%s needs two sides with 'vs' between: moongrid run A vs B --%s", name, name);
  if (two && *by && !(*by)->go) a->cli.code = cli_usage(&a->cli, "--%s takes one recipe", name);
  if (two && !*by) a->cli.code = cli_usage(&a->cli, "run takes two recipes to --%s", (*some)->sides);
  if (two && *by && (a->json || a->bandwidth))
    a->cli.code = cli_usage(&a->cli, "--%s takes no --json and no --bandwidth", name);
  return !a->cli.code;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options             side[2] = { { .backend = "auto" }, { .backend = "auto" } }, *c = side;
  mgrid_error         err = MGRID_ERROR_INIT, planning = MGRID_ERROR_INIT;
  mgrid_runtime      *rt[2] = { NULL, NULL };
  char                list[MGRID_BACKENDS_TEXT];
  const cli_addition *by;
  if (!parse(side, &by, self, argc, argv)) return c->cli.code;
  const mgrid_descriptor *wanted = mgrid_backend_named(c->backend);
  const char             *makers = mgrid_backend_list(list, MGRID_BACKENDS_MAKERS);
  if (by && wanted && !wanted->native)
    return cli_usage(&c->cli, "--%s needs a backend that moves data: %s, not %s", by->options[0].name, makers,
                     c->backend);
  if (c->bandwidth && wanted && !wanted->native)
    return cli_usage(&c->cli, "--bandwidth needs a backend that makes communicators: %s, not %s", makers, c->backend);
  mgrid_status s = check_carrier(c, wanted);
  if (s) return s;
  s = cli_open(&c->cli, &rt[0], &planning);
  if (by && by->go && !s) cli_open(&side[1].cli, &rt[1], &planning);
  if (!wanted || wanted->library) {
    s = run_on_ranks(side, by, wanted, rt, &planning, &err);
    if (!c->cli.launched && s / 100 <= MGRID_REFUSED / 100) /* a failed backend has its own reason */
      fputs("moongrid: note: this is one rank, because no launcher started it: mpirun -n N moongrid run ...\n", stderr);
  } else {
    err = planning;
    if (!s) s = rehearse(c, rt[0], &err);
    if (s) cli_say(&c->cli, &err);
  }
  mgrid_runtime_free(rt[0]);
  mgrid_runtime_free(rt[1]);
  return cli_finish(&c->cli, s);
}

const cli_command command_run = {
  .name = "run",
  .place = 30,
  .takes = "RECIPE [NAME=VALUE ...]",
  .does = "create and prove them, under mpirun",
  .usage = "mpirun -n N moongrid run RECIPE [NAME=VALUE ...] [--backend B] [--world N] [--json]",
  .about = "Create the recipe's communicators on the ranks of the launcher, prove each of them by\n"
           "collectives (members and order, a sum, a broadcast from every position, a ring, with MPI\n"
           "an all-to-all), and destroy them. Rank 0 prints.",
  .sample = "mpirun -n 8 moongrid run megatron tp=2 pp=2",
  .options = {
      CLI_WORLD("refuse to run on another number of ranks; with two sides: the ranks of that side, which may be fewer"),
      { "backend", cli_text, offsetof(options, backend),
        .help = "auto: one of GPUs if every rank has its own GPU, else that of MPI. One that only carries messages (--carrier) "
                "agrees on the plan and makes nothing. dry: no launcher; one process plays every rank of --world N and "
                "checks that the creation schedule is consistent", .values = backends, .agreed = true },
      { "carrier", cli_text, offsetof(options, carrier),
        .help = "what carries the messages of a backend of GPUs: MPI, or a launcher without it (prterun, srun --mpi=pmix); "
                "with auto and no GPU, as --backend C", .values = carriers, .agreed = true },
      { "timeout", cli_number, offsetof(options, timeout), "S",
        .help = "seconds that a call over all ranks may take, 120; with GPUs also a creation, for which a family may have "
                "its own; with two sides: seconds without progress after which a rank gives up", .agreed = true },
      { "json", cli_flag, offsetof(options, json), .help = "print the plan as JSON when all is proved" },
      { "print", cli_text, offsetof(options, cli.print), "rank0|all|none",
        .help = "ranks that print what the recipe prints, on stderr; default: rank0" },
      { "bandwidth", cli_flag, offsetof(options, bandwidth),
        .help = "also measure all-reduce, all-gather, reduce-scatter and all-to-all of every family", .agreed = true },
      { "devices", read_devices, 0, "0,1,...",
        .help = "the GPU of each rank of a machine (or the recipe's parameter `devices`); default: rank i of a "
                "machine has GPU i", .head = "with GPUs" },
      { "share-gpu", cli_flag, offsetof(options, share_gpu),
        .help = "let several ranks use one GPU; slow, for tests", .agreed = true },
      { "gpu-memory", cli_number, offsetof(options, gpu_memory), "MIB",
        .help = "refuse a plan whose communicators would need more on a GPU", .agreed = true },
  },
  .run = run,
};
