/* SPDX-License-Identifier: MIT
**
** place.c - moongrid place: how the groups of a recipe lie on a machine, and what they send between its domains.
*/
#include "machine/command/placing.h"
#include "machine/command/ranks.h"
#include "machine/command/search.h"
#include "machine/count.h"

#include "plan/json.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 65536 }; /* up to so many, the step of a recipe counts unasked */

typedef struct options {
  cli         cli;
  const char *family, *traffic, *search, *objective, *output;
  int64_t     limit;
  bool        json;
} options;

static mgrid_status count(placing *x, mgrid_error *err) {
  for (size_t i = 0; i < x->n; i++)
    for (size_t l = 0; l < x->levels; l++) {
      mgrid_machine_counts *c = &x->counts[cli_placed(x, i, l)];
      *c = (mgrid_machine_counts)MGRID_MACHINE_COUNTS_INIT;
      x->bytes[cli_placed(x, i, l)] = -1;
      mgrid_status s = mgrid_machine_count(x->m, cli_placed_entry(x, i)->family, mgrid_level_name(x->m, l), c, err);
      if (s) return s;
    }
  return MGRID_OK;
}

/* The bytes of each flow at a level, and what leaves each of its domains. */
static mgrid_status count_bytes(placing *x, size_t level, mgrid_error *err) {
  int64_t  world = mgrid_plan_world(x->p), n = 0;
  int32_t *domain = mgrid_domains_of(x->m, level, world);
  for (int64_t r = 0; domain && r < world; r++)
    if (domain[r] >= n) n = domain[r] + 1;
  x->leaving[level] = calloc((size_t)n + 1, sizeof **x->leaving);
  x->domains[level] = n;
  bool starved = !domain || !x->leaving[level];
  for (size_t k = 0; k < x->traffic->n && !starved; k++)
    for (size_t i = 0; i < x->n; i++) {
      if (strcmp(cli_placed_entry(x, i)->name, x->traffic->flow[k].family) != 0) continue;
      double sum =
          mgrid_flow_leaving(&x->traffic->flow[k], cli_placed_entry(x, i)->family, domain, n, x->leaving[level], err);
      if (sum < 0) starved = true;
      double *bytes = &x->bytes[cli_placed(x, i, level)];
      *bytes = (*bytes < 0 ? 0 : *bytes) + sum;
    }
  free(domain);
  return starved ? mgrid_oom(err) : MGRID_OK;
}

/* The domain of a level that most bytes leave; -1: none do. */
static int64_t busiest(const placing *x, size_t level) {
  int64_t most = -1;
  for (int64_t d = 0; x->leaving[level] && d < x->domains[level]; d++)
    if (x->leaving[level][d] > (most < 0 ? 0 : x->leaving[level][most])) most = d;
  return most;
}

/* ---------------------------------------------------------------------- print */

static double members_of(const placing *x, size_t i, size_t l) {
  const mgrid_machine_counts *c = &x->counts[cli_placed(x, i, l)];
  return c->touched ? (double)cli_placed_entry(x, i)->family->total / (double)c->touched : 0;
}

static const char *bytes_text(double bytes, char *buf, size_t len) {
  if (bytes < 0) return "";
  return bytes < 9e18 ? cli_bytes((int64_t)bytes, buf, len) : "over 8 EiB";
}

static void print_text(const placing *x) {
  mgrid_text t = { 0 };
  char       b[64];
  int        name = 6, level = 5;
  bool       sends = x->traffic != NULL, said = false;
  cli_show_machine(x->c, x->m);
  if (x->sends->by == SENDING_STEP) {
    cli_sending_text(x->sends, &t);
    cli_wrap(x->c, "traffic", &t);
  } else if (x->sends->why.status) {
    mgrid_text_add(&t, "not counted: the recipe's step is refused (%s)", x->sends->why.message);
    cli_wrap(x->c, "traffic", &t);
  }
  for (size_t i = 0; i < x->n; i++)
    if ((int)strlen(cli_placed_entry(x, i)->name) > name) name = (int)strlen(cli_placed_entry(x, i)->name);
  for (size_t l = 0; l < x->levels; l++)
    if ((int)strlen(mgrid_level_name(x->m, l)) > level) level = (int)strlen(mgrid_level_name(x->m, l));
  printf("\n%-*s  %-*s  %12s %12s %12s  %s%s\n", name, "family", level, "level", "inside", "crossing", "edges",
         "members a domain", sends ? "      bytes" : "");
  for (size_t i = 0; i < x->n; i++)
    for (size_t l = 0; l < x->levels; l++) {
      const mgrid_machine_counts *c = &x->counts[cli_placed(x, i, l)];
      printf("%-*s  %-*s  %12" PRId64 " %12" PRId64 " %12" PRId64 "  %16.4g", name,
             l ? "" : cli_placed_entry(x, i)->name, level, mgrid_level_name(x->m, l), c->inside, c->crossing, c->edges,
             members_of(x, i, l));
      if (sends) printf("  %9s", bytes_text(x->bytes[cli_placed(x, i, l)], b, sizeof b));
      printf("\n");
    }
  for (size_t l = 0; l < x->levels && sends; l++) {
    int64_t    d = busiest(x, l);
    mgrid_link link = mgrid_level_link(x->m, l);
    if (d < 0) continue;
    if (!said) printf("\n");
    mgrid_domain_text(x->m, l, d, &t);
    mgrid_text_add(&t, ": %s cross its bounds", bytes_text(x->leaving[l][d], b, sizeof b));
    if (link.bandwidth > 0 && l < x->m->ntiers)
      mgrid_text_add(&t, ", %.3g s at its link's ", x->leaving[l][d] / link.bandwidth),
          mgrid_bandwidth_text(link.bandwidth, &t);
    cli_wrap(x->c, said ? "" : "busiest", &t);
    said = true;
  }
  mgrid_text_free(&t);
  cli_nccl_facts(x);
}

static json_t *level_json(const placing *x, size_t i, size_t l) {
  const mgrid_machine_counts *c = &x->counts[cli_placed(x, i, l)];
  json_t *one = mgrid_json_pack("{sIsIsIsf}", "inside", (json_int_t)c->inside, "crossing", (json_int_t)c->crossing,
                                "edges", (json_int_t)c->edges, "members", members_of(x, i, l));
  if (x->bytes[cli_placed(x, i, l)] >= 0) json_object_set_new(one, "bytes", json_real(x->bytes[cli_placed(x, i, l)]));
  return one;
}

static mgrid_status print_json(const placing *x, mgrid_error *err) {
  json_t    *families = json_object(), *links = json_object();
  mgrid_text t = { 0 };
  for (size_t i = 0; i < x->n; i++) {
    json_t *levels = json_object();
    for (size_t l = 0; l < x->levels; l++) json_object_set_new(levels, mgrid_level_name(x->m, l), level_json(x, i, l));
    json_object_set_new(families, cli_placed_entry(x, i)->name, mgrid_json_pack("{so}", "levels", levels));
  }
  for (size_t l = 0; l < x->levels && x->traffic; l++) {
    int64_t d = busiest(x, l);
    if (d < 0) continue;
    json_t     *link = mgrid_json_pack("{sIsf}", "domain", (json_int_t)d, "bytes", x->leaving[l][d]);
    const char *name = mgrid_machine_domain_name(x->m, l, d);
    if (name) json_object_set_new(link, "name", json_string(name));
    if (mgrid_level_link(x->m, l).bandwidth > 0 && l < x->m->ntiers)
      json_object_set_new(link, "seconds", json_real(x->leaving[l][d] / mgrid_level_link(x->m, l).bandwidth));
    json_object_set_new(links, mgrid_level_name(x->m, l), link);
  }
  mgrid_machine_text(x->m, &t);
  json_t *all = mgrid_json_pack("{sssIsoso}", "machine", mgrid_text_chars(&t), "world",
                                (json_int_t)mgrid_plan_world(x->p), "families", families, "busiest", links);
  json_object_set_new(all, "nccl", cli_nccl_json(x));
  if (x->traffic) json_object_set_new(all, "traffic", json_string(cli_sending_name(x->sends)));
  mgrid_text_free(&t);
  mgrid_status s = cli_put_json(all, err);
  json_decref(all);
  return s;
}

/* ------------------------------------------------------------------------ run */

static mgrid_status choose(const options *o, placing *x, mgrid_error *err) {
  if (o->family) return cli_families(x->p, o->family, x->family, &x->n, err);
  for (x->n = 0; x->n < mgrid_plan_nfamilies(x->p); x->n++) x->family[x->n] = (int)x->n;
  return MGRID_OK;
}

/* Refuse traffic of families that there are not. */
static mgrid_status check_traffic(const placing *x, mgrid_error *err) {
  for (size_t k = 0; k < x->traffic->n; k++)
    if (!mgrid_plan_family(x->p, x->traffic->flow[k].family))
      return cli_unknown_family(x->p, x->traffic->flow[k].family, err);
  return MGRID_OK;
}

static mgrid_status place(const options *o, placing *x, mgrid_error *err) {
  size_t room = mgrid_plan_nfamilies(x->p) + 1, cells = room * (x->levels + 1);
  x->family = malloc(room * sizeof *x->family);
  x->counts = calloc(cells, sizeof *x->counts);
  x->bytes = calloc(cells, sizeof *x->bytes);
  x->leaving = calloc(x->levels + 1, sizeof *x->leaving);
  x->domains = calloc(x->levels + 1, sizeof *x->domains);
  if (!x->family || !x->counts || !x->bytes || !x->leaving || !x->domains) return mgrid_oom(err);
  mgrid_status s = choose(o, x, err);
  if (!s && x->traffic) s = check_traffic(x, err);
  if (!s) s = count(x, err);
  for (size_t l = 0; l < x->levels && x->traffic && !s; l++) s = count_bytes(x, l, err);
  if (s) return s;
  if (o->json) return print_json(x, err);
  s = cli_tell(x->c, "head", x->p, NULL, err);
  if (!s) print_text(x);
  return s;
}

static mgrid_status show(const options *o, mgrid_runtime *rt, const mgrid_plan *p, mgrid_error *err) {
  const cli     *c = &o->cli;
  placing        x = { .c = c, .p = p, .m = cli_required_machine(c, p, err) };
  mgrid_traffic *traffic = NULL;
  sending        sends;
  if (!x.m) return err->status;
  mgrid_status s = cli_sending_begin(&sends, o->traffic, mgrid_plan_world(p), err);
  /* a step looks at every rank */
  bool asks = o->traffic || mgrid_plan_traffic(p) || mgrid_plan_world(p) <= RANKS;
  if (!s && asks) s = cli_sending_of(c, rt, p, &sends, &traffic, NULL, err);
  x.sends = &sends;
  x.traffic = traffic;
  x.levels = mgrid_machine_nlevels(x.m);
  if (!s) s = place(o, &x, err);
  if (!s && o->output) s = cli_write_ranks(o->output, x.m, mgrid_plan_world(p), err);
  for (size_t l = 0; l < x.levels && x.leaving; l++) free(x.leaving[l]);
  free(x.leaving);
  free(x.domains);
  free(x.family);
  free(x.counts);
  free(x.bytes);
  mgrid_traffic_free(traffic);
  cli_sending_end(&sends);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options c = { 0 };
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (cli_needs(&c.cli, c.cli.world)) return MGRID_USAGE;
  if (c.objective && !c.search) return cli_usage(&c.cli, "--objective is for --search order");
  if (c.search && strcmp(c.search, "order") != 0) return cli_usage(&c.cli, "--search is order, not '%s'", c.search);
  if (c.limit && !c.search) return cli_usage(&c.cli, "--limit is for --search order");
  if (c.search && c.family) return cli_usage(&c.cli, "--search takes no --family: every family counts");
  if (c.output && cli_check_ranks_file(&c.cli, c.output)) return MGRID_USAGE;
  if (c.search) return cli_search_order(&(cli_search){ &c.cli, c.traffic, c.objective, c.output, c.limit, c.json });
  mgrid_error    err = MGRID_ERROR_INIT;
  mgrid_runtime *rt;
  mgrid_plan    *p = cli_evaluate(&c.cli, &rt, &err);
  mgrid_status   s = p ? show(&c, rt, p, &err) : err.status;
  if (s) cli_say(&c.cli, &err);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return cli_finish(&c.cli, s);
}

extern const cli_command command_place;
const cli_command        command_place = {
         .name = "place",
         .place = 110,
         .takes = "RECIPE --world N --machine M [NAME=VALUE ...]",
         .does = "what its groups cross on a machine",
         .usage = "moongrid place RECIPE --world N --machine M [NAME=VALUE ...] [--family F,G] [--traffic T] [--json]\n"
                         "       moongrid place RECIPE --world N --machine M [NAME=A,B,... ...] --search order [--objective "
                         "bytes|time|POLICY]",
         .about = "For each family and level of the machine, count the groups inside one domain, the groups that cross, and\n"
                         "the edges between two domains: consecutive members, and the last with the first in groups of more than\n"
                         "two. Ranks fill the machine in order, nearest level first, unless it lists their places; it may be\n"
                         "larger than the world. In closed form on regular machines, at any world size.",
         .notes =
             "With traffic (--traffic, else the recipe's field `traffic`, else that of its step) also count the bytes on\n"
                    "these edges, and name for each level the domain whose bounds most bytes cross. Rings carry collectives:\n"
                    "2 (n-1)/n of the bytes of an all_reduce of n ranks on each edge, (n-1)/n of an all_gather or\n"
                    "reduce_scatter; all_to_all goes by pairs.\n"
                    "Then hints for NCCL: families inside one NVLink domain, those on one rail, variables to set.",
         .sample = "moongrid place megatron --world 64 tp=8 pp=2 --machine dgx-h100",
         .options = { CLI_WORLD("ranks in the world"),
                      { "family", cli_text, offsetof(options, family), "F,G", .help = "only these families" },
                      { "traffic", cli_text, offsetof(options, traffic), "T",
                        .help = "what families send in a step, \"tp = 2 GiB all_reduce x 96; dp = 4 GiB reduce_scatter\", "
                                       "or step, what the recipe's step sends; default: the recipe's traffic, else that of "
                                       "its step (up to 65536 ranks, or for a search), else a search assumes an all_reduce "
                                       "of 1 GiB for each communicator" },
                      { "search", cli_text, offsetof(options, search), "order",
                        .help =
                            "find the cheapest plan instead, among all orders of a parameter that holds one, or those listed, "
                                   "order=tp-dp-pp,dp-tp-pp; values of sizes, tp=2,4,8; and what the recipe declares by "
                                   "param.order and param.choice. Print the best 10, and the present one" },
                      { "objective", cli_text, offsetof(options, objective), "O",
                        .help = "bytes across the farthest level that is crossed, then the next; time, that moongrid step "
                                       "prices, or of other traffic that of the busiest link of each level; or a policy of the "
                                       "recipe, which gets q.bytes and q.bound by level, and "
                                       "q.seconds, and returns a number" },
                      { "limit", cli_number, offsetof(options, limit), "SECONDS",
                        .help = "end the search after so long: print the best found, with exit code 3" },
                      { "output", cli_text, offsetof(options, output), "FILE",
                        .help = "write where ranks run: rankfile (Open MPI), .hosts (a line for each rank: SLURM_HOSTFILE, "
                                       "MPICH), "
                                       ".nodes (hosts by node rank: torchrun, JAX), .lua (world:order), .json (for --machine)",
                        .letter = true },
                      { "json", cli_flag, offsetof(options, json), .help = "one JSON object" } },
         .run = run,
};
