/* SPDX-License-Identifier: MIT
**
** cli.h - what the subcommands share: options, messages, text to stdout.
*/
#ifndef MGRID_CLI_H
#define MGRID_CLI_H

#include "moongrid.h"

#include <stdio.h>

enum { CLI_ARGS_MAX = 256, CLI_WORLDS_MAX = 64, CLI_DEVICES_MAX = 64 };

/* Everything any subcommand takes; `allowed` of cli_parse says which ones this one does. */
typedef struct cli {
  const char *command;
  const char *recipe;
  size_t      nargs; /* NAME=VALUE */
  const char *args[CLI_ARGS_MAX];
  size_t      nworlds;
  int64_t     worlds[CLI_WORLDS_MAX];
  int64_t     rank;             /* -1: not given */
  const char *backend, *params; /* params: a file, or NULL */
  bool        json, schedule, text, help, share_gpu, bandwidth;
  int64_t     timeout, gpu_memory; /* seconds, MiB; 0: not given */
  int         ndevices;
  int         devices[CLI_DEVICES_MAX];
  int64_t     me, ranks; /* from the launcher's environment: 0 of 1 without one */
  bool        launched, bold;
} cli;

/* Letters of `allowed`: r recipe and arguments, w --world, W a list of worlds, k --rank,
** j --json, s --schedule, t --text, b --backend, g --share-gpu, d --devices, o --timeout,
** m --gpu-memory, B --bandwidth; --params goes with r. Returns MGRID_OK or MGRID_USAGE after saying why. */
mgrid_status cli_parse(cli *c, int argc, char **argv, const char *allowed);

/* "moongrid: message" on stderr; returns the status. cli_say: what all ranks know alike, so
** rank 0 alone speaks. cli_say_own: what may be this rank's alone; rank 0 goes first, and
** where its exit ends the job the others have no need to repeat it. cli_usage is such a one. */
mgrid_status cli_say(const cli *c, const mgrid_error *e);
mgrid_status cli_say_own(const cli *c, const mgrid_error *e);
mgrid_status cli_usage(const cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An mgrid_sink to a FILE *. */
int cli_sink(void *file, const char *text, size_t len);
/* Flush stdout; a full disk or a closed pipe is a failure. */
mgrid_status cli_finish(const cli *c, mgrid_status s);

/* The runtime with the recipe loaded, or NULL after filling *err. */
mgrid_runtime *cli_load(const cli *c, mgrid_error *err);
mgrid_plan    *cli_plan(const cli *c, mgrid_runtime *rt, int64_t world, mgrid_error *err);

/* The plan at a glance: grids, a line per family, communicators, digest. */
mgrid_status cli_show_plan(const cli *c, const mgrid_plan *p, mgrid_error *err);

/* Measure every communicator of a state; rank 0 prints. Collective. */
mgrid_status cli_bandwidth(mgrid_state *s, mgrid_error *err);

int cli_run_plan(int argc, char **argv);
int cli_run_run(int argc, char **argv);
int cli_run_diff(int argc, char **argv);
int cli_run_check(int argc, char **argv);
int cli_run_recipes(int argc, char **argv);
int cli_run_doctor(int argc, char **argv);

#endif
