/* SPDX-License-Identifier: MIT
**
** run.c - moongrid run: materialize a recipe on the launcher's ranks and prove every
** communicator.
*/
#include "base/base.h"
#include "host/cli.h"

#include <inttypes.h>
#include <string.h>

static const char help[] =
  "usage: mpirun -n N moongrid run RECIPE [NAME=VALUE ...] [--backend auto|mpi|dry] [--world N] [--json]\n"
  "\n"
  "Create the recipe's communicators on the ranks of the launcher, prove each of them by\n"
  "collectives (members and order, a sum, a broadcast from every position, a ring), and\n"
  "destroy them. Rank 0 speaks.\n"
  "\n"
  "  --backend B   auto (the default) and mpi: MPI. dry: no launcher; one process plays every\n"
  "                rank of --world N and checks that the creation schedule fits together\n"
  "  --world N     refuse to run on another number of ranks\n"
  "  --json        print the plan as JSON when all is proved\n"
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
             " memberships): members and order, sum,\n               broadcast from every position, ring\n",
             mg_backend_world(b), held_in_all(p));
    fflush(stdout);
  }
  mg_state_free(state);
  return s;
}

static mg_status run_on_mpi(const cli *c, mg_runtime *rt, mg_error *planning, mg_error *err) {
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
  s = p ? materialize(c, b, p, err) : mg_agree(b, NULL, planning, err);
  if (s) cli_say(c, err); /* before MPI_Finalize: a launcher kills the rest at the first exit */
  mg_plan_free(p);
  mg_backend_free(b);
  return s;
}

int cli_run_run(int argc, char **argv) {
  static const char *const backends[] = { "auto", "mpi", "dry" };
  cli                      c;
  mg_error                 err = { 0 }, planning = { 0 };
  mg_status                s = cli_parse(&c, argc, argv, "rwjb");
  if (s) return s;
  if (c.help) return fputs(help, stdout) < 0;
  if (!c.recipe) return cli_usage(&c, "run wants a recipe: a file, or one that 'moongrid recipes' lists");
  bool dry = strcmp(c.backend, "dry") == 0;
  if (!dry && strcmp(c.backend, "auto") != 0 && strcmp(c.backend, "mpi") != 0) {
    char tail[128];
    mg_suggest(tail, sizeof tail, c.backend, backends, 3);
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
