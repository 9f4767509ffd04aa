/* SPDX-License-Identifier: MIT
**
** run.c - moongrid run: materialize a recipe on the launcher's ranks and prove every
** communicator.
*/
#include "comm/open.h"
#include "host/cli.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
  "usage: mpirun -n N moongrid run RECIPE [NAME=VALUE ...] [--backend auto|mpi|nccl|dry] [--world N] [--json]\n"
  "\n"
  "Create the recipe's communicators on the ranks of the launcher, prove each of them by\n"
  "collectives (members and order, a sum, a broadcast from every position, a ring), and\n"
  "destroy them. Rank 0 speaks.\n"
  "\n"
  "  --backend B   auto: nccl where every rank has a GPU of its own, else mpi. dry: no launcher;\n"
  "                one process plays every rank of --world N and checks that the creation\n"
  "                schedule fits together\n"
  "  --world N     refuse to run on another number of ranks\n"
  "  --params FILE parameters, JSON or Lua that returns a table; NAME=VALUE overrides them\n"
  "  --json        print the plan as JSON when all is proved\n"
  "  --bandwidth   and measure all-reduce, all-gather and reduce-scatter of every family\n"
  "\n"
  "with nccl\n"
  "  --devices L   the GPU of each rank of a machine, 0,1,2,3 (a recipe's parameter `devices`\n"
  "                says the same); else rank i of a machine has GPU i\n"
  "  --share-gpu   let several ranks use one GPU; for tests, and slow\n"
  "  --timeout S   seconds that a creation may take, 120 (a family may have its own)\n"
  "  --gpu-memory M  refuse a plan whose communicators would take more MiB on a GPU\n"
  "\n"
  "  --color WHEN  auto, always or never\n";

/* No launcher: does the schedule fit together? */
static mg_status rehearse(const cli *c, mg_runtime *rt, mg_error *err) {
  if (!c->nworlds) return mg_fail(err, MG_USAGE, "--backend dry wants --world N, the number of ranks to play");
  mg_rehearsal r;
  mg_plan     *p = rt ? cli_plan(c, rt, c->worlds[0], err) : NULL;
  mg_status    s = p ? mg_plan_rehearse(p, &r, err) : err->status;
  if (!s) s = c->json ? mg_plan_print_json(p, -1, cli_sink, stdout, err) : cli_show_plan(c, p, err);
  if (!s && !c->json)
    printf("\nrehearsed      %" PRId64 " ranks went through %" PRId64 " creations of %" PRId64
           " communicators; nobody waits for ever\n",
           mg_plan_world(p), r.memberships, r.communicators);
  mg_plan_free(p);
  return s;
}

/* The sum of a number over all ranks, by what the backend has: a minimum is no sum, so the
** plan gives it. */
static int64_t held_in_all(const mg_plan *p) {
  mg_rehearsal r = { 0 };
  return mg_plan_rehearse(p, &r, NULL) == MG_OK ? r.memberships : -1;
}

static mg_status materialize(const cli *c, mg_backend *b, const mg_plan *p, mg_error *err) {
  int64_t   proved = 0;
  mg_state *state = mg_materialize(p, b, "run", err);
  mg_status s = state ? mg_state_prove(state, &proved, err) : err->status;
  if (!s && mg_backend_rank(b) == 0) {
    s = c->json ? mg_plan_print_json(p, -1, cli_sink, stdout, err) : cli_show_plan(c, p, err);
    if (!s && !c->json)
      printf("\nproved         every communicator on all %" PRId64 " ranks (%" PRId64
             " memberships, %s): members and\n               order, sum, broadcast from every position, ring\n",
             mg_backend_world(b), held_in_all(p), mg_backend_name(b));
    fflush(stdout);
  }
  if (c->bandwidth) { /* nothing begins before the plan is told on rank 0 */
    s = mg_verdict(b, s, err, err);
    if (!s) s = cli_bandwidth(state, err);
  }
  mg_state_free(state);
  return s;
}

/* The recipe's word on GPUs, where the command line has none: its parameter `devices`. */
static mg_status recipe_devices(cli *c, const mg_plan *p, mg_error *err) {
  for (size_t i = 0; i < p->content.nparams && c->ndevices == 0; i++) {
    if (strcmp(p->content.param[i].name, "devices") != 0) continue;
    const char *at = p->content.param[i].value;
    for (at += *at == '['; *at && *at != ']';) {
      char *end;
      long  n = strtol(at, &end, 10);
      if (end == at || c->ndevices == CLI_DEVICES_MAX)
        return mg_fail(err, MG_REFUSED, "parameter 'devices' is a list of GPUs, not '%s'", p->content.param[i].value);
      c->devices[c->ndevices++] = (int)n;
      at = *end == ',' ? end + 1 : end;
    }
  }
  return MG_OK;
}

static mg_backend *choose(cli *c, mg_backend *mpi, const mg_plan *p, mg_error *err) {
  mg_nccl_options o = MG_NCCL_OPTIONS_INIT;
  mg_status       s = recipe_devices(c, p, err); /* the same on all ranks: they have one plan */
  if (s || strcmp(c->backend, "mpi") == 0) return s ? NULL : mpi;
  o.share_gpu = c->share_gpu;
  o.devices = c->devices, o.ndevices = c->ndevices;
  o.budget = c->gpu_memory << 20;
  if (c->timeout) o.timeout = (double)c->timeout;
  return strcmp(c->backend, "nccl") == 0 ? mg_nccl_backend(mpi, &o, err) : mg_backend_best(mpi, &o, false);
}

static mg_status run_on_mpi(cli *c, mg_runtime *rt, mg_error *planning, mg_error *err) {
  mg_backend *b = mg_backend_open("mpi", err);
  if (!b) return cli_say_own(c, err);
  int64_t   world = mg_backend_world(b);
  mg_plan  *p = NULL;
  mg_status s;
  if (c->nworlds && c->worlds[0] != world)
    mg_fail(planning, MG_USAGE, "--world %" PRId64 " was asked for, the launcher started %" PRId64 " ranks",
            c->worlds[0], world);
  else if (rt)
    p = cli_plan(c, rt, world, planning);
  /* A rank without a plan says so to the others, who would wait for it. */
  s = mg_agree(b, p, planning, err);
  mg_backend *chosen = s ? NULL : choose(c, b, p, err);
  if (!s) s = chosen ? materialize(c, chosen, p, err) : err->status;
  if (s) cli_say(c, err); /* before MPI_Finalize: a launcher kills the rest at the first exit */
  mg_plan_free(p);
  if (chosen != b) mg_backend_free(chosen);
  mg_backend_free(b);
  return s;
}

int cli_run_run(int argc, char **argv) {
  static const char *const backends[] = { "auto", "mpi", "nccl", "dry" };
  cli                      c;
  mg_error                 err = { 0 }, planning = { 0 };
  mg_status                s = cli_parse(&c, argc, argv, "rwjbgdomB");
  if (s) return s;
  if (c.help) return fputs(help, stdout) < 0;
  if (!c.recipe) return cli_usage(&c, "run wants a recipe: a file, or one that 'moongrid recipes' lists");
  bool dry = strcmp(c.backend, "dry") == 0;
  bool known = dry;
  for (int i = 0; i < 3; i++) known |= strcmp(c.backend, backends[i]) == 0;
  if (!known) {
    char tail[128];
    mg_suggest(tail, sizeof tail, c.backend, backends, 4);
    return cli_usage(&c, "unknown backend '%s'%s", c.backend, tail);
  }
  mg_runtime *rt = cli_load(&c, &planning);
  if (!dry) {
    s = run_on_mpi(&c, rt, &planning, &err);
  } else {
    err = planning;
    s = rt ? rehearse(&c, rt, &err) : err.status;
    if (s) cli_say(&c, &err);
  }
  mg_runtime_free(rt);
  return cli_finish(&c, s);
}
