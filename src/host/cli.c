/* SPDX-License-Identifier: MIT
**
** cli.c - options and messages of the command.
*/
#include "host/cli.h"

#include "base/base.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- launcher */

static const char *first_of(const char *const *names) {
  for (; *names; names++)
    if (getenv(*names)) return getenv(*names);
  return NULL;
}

static void find_launcher(cli *c) {
  static const char *const ranks[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", NULL };
  static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL };
  const char              *rank = first_of(ranks), *size = first_of(sizes);
  c->launched = rank != NULL;
  c->me = rank ? strtoll(rank, NULL, 10) : 0;
  c->ranks = size ? strtoll(size, NULL, 10) : 1;
}

/* ----------------------------------------------------------------- messages */

mgrid_status cli_say(const cli *c, const mgrid_error *e) { return c->me == 0 ? cli_say_own(c, e) : e->status; }

mgrid_status cli_say_own(const cli *c, const mgrid_error *e) {
  if (c->me != 0) usleep(300000);
  if (c->launched)
    fprintf(stderr, "moongrid: [rank %" PRId64 "/%" PRId64 "] %s\n", c->me, c->ranks, e->message);
  else
    fprintf(stderr, "moongrid: %s\n", e->message);
  return e->status;
}

mgrid_status cli_usage(const cli *c, const char *fmt, ...) {
  mgrid_error e = { .status = MGRID_USAGE };
  va_list     args;
  va_start(args, fmt);
  vsnprintf(e.message, sizeof e.message, fmt, args);
  va_end(args);
  return cli_say_own(c, &e);
}

int cli_sink(void *file, const char *text, size_t len) { return fwrite(text, 1, len, file) == len ? 0 : 1; }

mgrid_status cli_finish(const cli *c, mgrid_status s) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return s;
  mgrid_error e;
  mgrid_fail(&e, MGRID_BACKEND, "the output could not be written");
  cli_say(c, &e);
  return s ? s : MGRID_BACKEND;
}

/* ------------------------------------------------------------------ options */

static const struct option long_options[] = {
  { "world", required_argument, NULL, 'w' },
  { "rank", required_argument, NULL, 'k' },
  { "json", no_argument, NULL, 'j' },
  { "schedule", no_argument, NULL, 's' },
  { "text", no_argument, NULL, 't' },
  { "backend", required_argument, NULL, 'b' },
  { "share-gpu", no_argument, NULL, 'g' },
  { "devices", required_argument, NULL, 'd' },
  { "timeout", required_argument, NULL, 'o' },
  { "gpu-memory", required_argument, NULL, 'm' },
  { "bandwidth", no_argument, NULL, 'B' },
  { "params", required_argument, NULL, 'r' },
  { "color", required_argument, NULL, 'c' },
  { "help", no_argument, NULL, 'h' },
  { NULL, 0, NULL, 0 },
};

static mgrid_status unknown_option(const cli *c, const char *option, const char *allowed) {
  const char *known[24];
  size_t      n = 0;
  char        tail[256], word[64];
  for (const struct option *o = long_options; o->name; o++)
    if (o->val == 'h' || o->val == 'c' || strchr(allowed, o->val) || (o->val == 'w' && strchr(allowed, 'W')))
      known[n++] = o->name;
  snprintf(word, sizeof word, "%.*s", (int)strcspn(option, "="), option);
  mgrid_suggest(tail, sizeof tail, word, known, n);
  bool parameter = strchr(allowed, 'r') && !mgrid_nearest(word, known, n);
  return cli_usage(c, "unknown option '--%s' of %s%s%s%s%s", word, c->command, tail,
                   parameter ? "; parameters are written " : "", parameter ? word : "", parameter ? "=VALUE" : "");
}

static mgrid_status parse_integer(const cli *c, const char *what, const char *text, int64_t low, int64_t *out) {
  char     *end;
  long long n = strtoll(text, &end, 10);
  if (*text == '\0' || *end != '\0' || n < low || n > MGRID_WORLD_MAX)
    return cli_usage(c, "%s is an integer from %" PRId64 " to %" PRId64 ", not '%s'", what, low, MGRID_WORLD_MAX, text);
  *out = n;
  return MGRID_OK;
}

static mgrid_status parse_worlds(cli *c, const char *text, bool list) {
  char *copy = mgrid_strdup(text), *save = NULL;
  if (!copy) return MGRID_LIMIT;
  mgrid_status s = *text ? MGRID_OK
                         : cli_usage(c, "--world is an integer from 1 to %" PRId64 ", not ''", MGRID_WORLD_MAX);
  for (char *word = strtok_r(copy, ",", &save); word && !s; word = strtok_r(NULL, ",", &save)) {
    if (c->nworlds == (list ? CLI_WORLDS_MAX : 1))
      s = cli_usage(c, list ? "--world takes at most 64 sizes" : "--world takes one size");
    else
      s = parse_integer(c, "--world", word, 1, &c->worlds[c->nworlds++]);
  }
  free(copy);
  return s;
}

static mgrid_status parse_devices(cli *c, const char *text) {
  for (const char *at = text; at;) {
    char *end;
    long  n = strtol(at, &end, 10);
    if (end == at || (*end != '\0' && *end != ',') || n < 0 || n > 1023 || c->ndevices == CLI_DEVICES_MAX)
      return cli_usage(c, "--devices is a list of GPUs, one for each rank of a machine, as 0,1,2,3; not '%s'", text);
    c->devices[c->ndevices++] = (int)n;
    at = *end ? end + 1 : NULL;
  }
  return MGRID_OK;
}

static mgrid_status positional(cli *c, const char *word, const char *allowed) {
  const char *eq = strchr(word, '=');
  if (!strchr(allowed, 'r')) return cli_usage(c, "%s takes no argument '%s'", c->command, word);
  bool argument = eq && !memchr(word, '/', (size_t)(eq - word));
  if (!argument && !c->recipe) {
    c->recipe = word;
    return MGRID_OK;
  }
  if (!argument) return cli_usage(c, "argument '%s' is not of the form NAME=VALUE", word);
  if (c->nargs == CLI_ARGS_MAX) return cli_usage(c, "more than %d arguments", CLI_ARGS_MAX);
  c->args[c->nargs++] = word;
  return MGRID_OK;
}

mgrid_status cli_parse(cli *c, int argc, char **argv, const char *allowed) {
  const char *color = "auto";
  memset(c, 0, sizeof *c);
  c->command = argv[0];
  c->rank = -1;
  c->backend = "auto";
  find_launcher(c);
  opterr = 0;
  optind = 1;
  mgrid_status s = MGRID_OK;
  while (!s) {
    int at = optind, o = getopt_long(argc, argv, "-:h", long_options, NULL);
    if (o == -1) break;
    const char *word = argv[at];
    if (o == ':') return cli_usage(c, "option '%s' wants a value", argv[optind - 1]);
    if (o == '?' && word[0] == '-' && word[1] != '-')
      return cli_usage(c, "unknown option '%s' of %s", word, c->command);
    if (o == '?') return unknown_option(c, argv[optind - 1] + 2, allowed);
    if (o == 'w' && strchr(allowed, 'W')) {
      s = parse_worlds(c, optarg, true);
      continue;
    }
    if (o != 1 && o != 'h' && o != 'c' && !strchr(allowed, o)) return unknown_option(c, word + 2, allowed);
    switch (o) {
    case 1: s = positional(c, optarg, allowed); break;
    case 'w': s = parse_worlds(c, optarg, false); break;
    case 'k': s = parse_integer(c, "--rank", optarg, 0, &c->rank); break;
    case 'b': c->backend = optarg; break;
    case 'j': c->json = true; break;
    case 's': c->schedule = true; break;
    case 't': c->text = true; break;
    case 'r': c->params = optarg; break;
    case 'g': c->share_gpu = true; break;
    case 'B': c->bandwidth = true; break;
    case 'd': s = parse_devices(c, optarg); break;
    case 'o': s = parse_integer(c, "--timeout", optarg, 1, &c->timeout); break;
    case 'm': s = parse_integer(c, "--gpu-memory", optarg, 1, &c->gpu_memory); break;
    case 'h': c->help = true; break;
    case 'c': color = optarg; break;
    default: break;
    }
  }
  for (; optind < argc && !s; optind++) s = positional(c, argv[optind], allowed); /* after "--" */
  if (s) return s;
  if (strcmp(color, "auto") != 0 && strcmp(color, "always") != 0 && strcmp(color, "never") != 0)
    return cli_usage(c, "--color is auto, always or never, not '%s'", color);
  /* ranks see a terminal even when the launcher writes to a file */
  c->bold = *color == 'a' && (color[1] == 'l' || (isatty(1) && !c->launched && !getenv("NO_COLOR")));
  return MGRID_OK;
}

/* ------------------------------------------------------------------ recipes */

mgrid_runtime *cli_load(const cli *c, mgrid_error *err) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, err);
  if (!rt || mgrid_runtime_load(rt, c->recipe, err) == MGRID_OK) return rt;
  mgrid_runtime_free(rt);
  return NULL;
}

mgrid_plan *cli_plan(const cli *c, mgrid_runtime *rt, int64_t world, mgrid_error *err) {
  return mgrid_runtime_plan_file(rt, world, c->params, c->nargs, c->args, err);
}
