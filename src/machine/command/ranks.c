/* SPDX-License-Identifier: MIT
**
** ranks.c - where ranks run, as launchers read it. The end of the file's name says which: a row each.
*/
#include "machine/command/given.h"
#include "machine/command/ranks.h"

#include <inttypes.h>
#include <string.h>

typedef struct seat {
  const char *host;
  int64_t     index, slot; /* of the host; of the place in it */
} seat;

static seat seat_of(const mgrid_machine_model *m, int64_t rank) {
  size_t  node = mgrid_node_level(m);
  int64_t place = mgrid_machine_at(m, rank), d = mgrid_tier_domain(&m->tier[node], place);
  return (seat){ mgrid_machine_domain_name(m, node, d), d, place - mgrid_tier_start(&m->tier[node], d) };
}

/* Open MPI: mpirun --rankfile FILE. */
static void rankfile(const mgrid_machine_model *m, int64_t world, mgrid_text *t) {
  for (int64_t r = 0; r < world; r++) {
    seat s = seat_of(m, r);
    mgrid_text_add(t, "rank %" PRId64 "=%s slot=%" PRId64 "\n", r, s.host, s.slot);
  }
}

/* A line for each rank: SLURM_HOSTFILE with srun --distribution=arbitrary; MPICH's mpiexec -f FILE. */
static void hosts(const mgrid_machine_model *m, int64_t world, mgrid_text *t) {
  for (int64_t r = 0; r < world; r++) mgrid_text_add(t, "%s\n", seat_of(m, r).host);
}

/* A line for each host, in the order of its first rank: line i is torchrun's --node-rank i, and JAX's process i. */
static void nodes(const mgrid_machine_model *m, int64_t world, mgrid_text *t) {
  int64_t last = -1;
  for (int64_t r = 0; r < world; r++) {
    seat s = seat_of(m, r);
    if (s.index != last) mgrid_text_add(t, "%s\n", s.host);
    last = s.index;
  }
}

/* world:order(...) in a recipe for ranks that a launcher numbers host by host in the order of places: position i of the order
** is the rank that runs where our rank i should. */
static void lua(const mgrid_machine_model *m, int64_t world, mgrid_text *t) {
  mgrid_text_str(t, "world:order {");
  for (int64_t r = 0; r < world; r++) mgrid_text_add(t, "%s%" PRId64, r ? "," : " ", mgrid_machine_at(m, r));
  mgrid_text_str(t, " }\n");
}

static void json(const mgrid_machine_model *m, int64_t world, mgrid_text *t) {
  (void)world;
  mgrid_machine_print_json(m, mgrid_text_sink, t, NULL);
}

static const struct {
  const char *end;
  bool        named; /* hosts have names in it */
  void (*write)(const mgrid_machine_model *m, int64_t world, mgrid_text *t);
} forms[] = { { "rankfile", true, rankfile }, { ".hosts", true, hosts }, { ".nodes", true, nodes },
              { ".lua", false, lua },         { ".json", false, json },  { NULL, false, NULL } };

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), k = strlen(end);
  return n >= k && strcmp(text + n - k, end) == 0;
}

mgrid_status cli_check_ranks_file(const cli *c, const char *path) {
  for (size_t i = 0; forms[i].end; i++)
    if (ends_with(path, forms[i].end)) return MGRID_OK;
  return cli_usage(c, "--output is a file that ends with rankfile, .hosts, .nodes, .lua or .json, not '%s'", path);
}

mgrid_status cli_write_ranks(const char *path, const mgrid_machine_model *m, int64_t world, mgrid_error *err) {
  size_t     i = 0;
  mgrid_text t = { 0 };
  while (!ends_with(path, forms[i].end)) i++;
  for (int64_t r = 0; r < world && forms[i].named; r++)
    if (!seat_of(m, r).host)
      return mgrid_fail(err, MGRID_REFUSED, "%s: the hosts of the machine have no names; a file of hosts gives them",
                        path);
  if (forms[i].write == lua && m->places != world)
    return mgrid_fail(err, MGRID_REFUSED,
                      "%s: an order of the world is of all places of the machine, and it has %" PRId64 " of %" PRId64
                      " ranks",
                      path, m->places, world);
  forms[i].write(m, world, &t);
  mgrid_status s = cli_write_file(path, &t, err);
  mgrid_text_free(&t);
  return s;
}
