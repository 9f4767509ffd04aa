/* SPDX-License-Identifier: MIT
**
** policy.c - policies and reload across ranks: agreed policies with different results, a recipe
** that is edited while the job runs. TAP from rank 0; a test passes when it does on all ranks.
*/
#include "tap.h"

#include "moongrid_mpi.h"
#include "../c/results.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

/* One file for all ranks, as on a cluster. */
static void write_recipe(const char *text) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

#define RECIPE(sizes, more) \
  "return recipe { params = { tp = 2 }, build = function(world, p)\n" \
  "  local g = grid(world, 'tp-dp-pp', { tp = p.tp, dp = fill" sizes " })\n" \
  "  local t = topology(world)\n" \
  "  t.tp, t.dp = g 'tp', g 'dp'\n" more "  return t end,\n" \
  "policy = { same = function() return { 1, 2 } end, twin = function() return { 1, 2 } end, rank " \
  "= function(s) " \
  "return s.rank end,\n" \
  "  mine = function(s) return s.rank end, group = function(s) return s.tp.index end, rare = " \
  "function(s) if s.rank " \
  "== 1 then error 'no' end return 1 end,\n" \
  "  where = function(s) local m = s.machine\n" \
  "    return { m.machines, m.index, m.local_size, m.local_rank, m.cores, m.gpus, #m.name } end " \
  "},\n" \
  "agreed = { same = 'world', twin = 'world', rank = 'world', group = 'tp', rare = 'world', mine " \
  "= 'tp' } }\n"

static void policies(mgrid_runtime *rt, mgrid_state *s) {
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t n = -1;
  mgrid_policy *same = mgrid_policy_new(rt, s, "same", anew(&e)),
               *other = mgrid_policy_new(rt, s, "rank", anew(&e));
  mgrid_policy *group = mgrid_policy_new(rt, s, "group", anew(&e)),
               *rare = mgrid_policy_new(rt, s, "rare", anew(&e));
  test(same && other && group && rare, "four agreed policies are found");
  test(mgrid_policy_call(same, 0, NULL, anew(&e)) == MGRID_OK, "the same on all ranks is agreed");
  mgrid_status status = mgrid_policy_call(other, 0, NULL, anew(&e));
  test(size == 1 ? status == MGRID_OK
                 : status == MGRID_DISAGREE && e.line > 0 && strcmp(e.file, path) == 0
                       && strstr(e.message, ": policy 'rank' is agreed by the world, and ranks "
                                            "differ: rank 0 returned 0, rank 1 returned 1"),
       "another value on every rank is refused on all, who are told of two");
  test(mgrid_policy_call(group, 0, NULL, anew(&e)) == MGRID_OK
           && read_integer(group, NULL, &n, anew(&e)) == MGRID_OK
           && n == mgrid_group_index(mgrid_state_group(s, "tp", anew(&e))),
       "equal within each group of a family is agreed by it");
  char both[160];
  mgrid_policy *mine = mgrid_policy_new(rt, s, "mine", anew(&e));
  int even = rank / 2 * 2; /* tp is pairs of neighbours */
  snprintf(
      both, sizeof both,
      ": policy 'mine' is agreed by tp, and ranks differ: rank %d returned %d, rank %d returned %d",
      even, even, even + 1, even + 1);
  status = mgrid_policy_call(mine, 0, NULL, anew(&e));
  test(size == 1 ? status == MGRID_OK : status == MGRID_DISAGREE && strstr(e.message, both),
       "another value in a group is told to its members, each group its own");
  mgrid_policy_free(mine);
  status = mgrid_policy_call(rare, 0, NULL, anew(&e));
  test(
      size == 1 ? status == MGRID_OK
      : rank == 1
          ? status == MGRID_REFUSED && strstr(e.message, "no")
          : status == MGRID_DISAGREE
                && strstr(e.message,
                          "policy 'rare' is agreed by the world, and ranks differ: rank 0 returned "
                          "1, rank 1 failed (/tmp/moongrid-policy-"),
      "a failure on one rank is told on all");
  mgrid_policy *twin = mgrid_policy_new(rt, s, "twin", anew(&e));
  status = mgrid_policy_call(rank == 1 ? twin : same, 0, NULL, anew(&e));
  test(
      size == 1
          ? status == MGRID_OK
          : status == MGRID_DISAGREE
                && strstr(e.message, rank == 1 ? ": policy 'twin' is agreed by the world"
                                               : ": policy 'same' is")
                && strstr(e.message,
                          "ranks differ: rank 0 asked for policy 'same', rank 1 for policy 'twin'"),
      "ranks that ask for different policies are told, though these return the same");
  mgrid_policy_free(twin);
  test(mgrid_policy_call(same, 0, NULL, anew(&e)) == MGRID_OK, "and the next call is agreed again");
  mgrid_policy_free(same);
  mgrid_policy_free(other);
  mgrid_policy_free(group);
  mgrid_policy_free(rare);
}

/* Give every third rank another host name, if this user may, because machines are told apart by it.
** A cluster has hosts. */
static void move_out(void) {
  if (!getenv("MOONGRID_CLUSTER") && rank % 3 == 2 && unshare(CLONE_NEWUTS) == 0
      && sethostname("elsewhere", 9) != 0)
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void machines(mgrid_runtime *rt, mgrid_state *s) {
  enum { NAME = 64 };
  char mine[NAME] = "", (*all)[NAME] = malloc((size_t)size * sizeof *all);
  int64_t is[8] = { 0 }, hosts = 0, host = 0, locals = 0, local = 0;
  size_t n = 0;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_policy *where = mgrid_policy_new(rt, s, "where", anew(&e));
  gethostname(mine, NAME - 1);
  if (!all) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Allgather(mine, NAME, MPI_CHAR, all, NAME, MPI_CHAR, MPI_COMM_WORLD);
  for (int r = 0, at = -1; r < size; r++) {
    bool first = true, same = strcmp(all[r], mine) == 0;
    for (int k = 0; k < r; k++) first &= strcmp(all[k], all[r]) != 0;
    if (same && at < 0) host = hosts, at = r;
    hosts += first, locals += same, local += same && r < rank;
  }
  mgrid_status status = mgrid_policy_call(where, 0, NULL, anew(&e));
  if (!status) status = read_integers(where, NULL, 8, is, &n, anew(&e));
  test(status == MGRID_OK && n == 7 && is[4] >= 1 && is[5] == 0 && is[6] == (int64_t)strlen(mine),
       "a policy sees the machine");
  if (rank == 0 && size > 2) printf("# %d machines\n", (int)hosts);
  test(is[0] == hosts && is[1] == host && is[2] == locals && is[3] == local,
       "and how the job lies over machines");
  mgrid_policy_free(where);
  free(all);
}

/* The communicator bears the name of the state that made it, also one that a reload made. */
static bool is_named(const mgrid_state *s, const char *family) {
  char name[MPI_MAX_OBJECT_NAME] = "", want[64];
  int length;
  const mgrid_group *g = mgrid_state_group(s, family, NULL);
  if (!g || mgrid_group_size(g) == 1) return true;
  MPI_Comm_get_name(mgrid_mpi_comm(g), name, &length);
  snprintf(want, sizeof want, "train/%s[%d]", family, (int)mgrid_group_index(g));
  return strcmp(name, want) == 0;
}

/* Is the error the same on all ranks? */
static bool is_one(const mgrid_error *e) {
  mgrid_error first = *e;
  MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
  return e->status && e->status == first.status && e->line == first.line
         && strcmp(e->message, first.message) == 0;
}

/* Recipes that some ranks cannot take: every way to fail, at each of some ranks, or at all, each in
** its own way. */
static void reload_in_part(const mgrid_runtime *rt, mgrid_state *s) {
  static const char *const wrong[] = {
    "return recipe {",
    "return 3",
    "error 'no'",
    "return recipe { build = function(world) return grid(world, 'a', { a = 7 }) end }",
    "return recipe { build = function() return nil .. 1 end }",
    NULL
  };
  enum { WAYS = sizeof wrong / sizeof *wrong };
  bool one = true, quiet = true;
  for (int at = -1; at < size; at++) /* -1: all ranks */
    for (int way = 0; way < WAYS; way++) {
      mgrid_error e = MGRID_ERROR_INIT;
      mgrid_runtime *new_rt;
      mgrid_state *new_s;
      char own[96];
      const char *text = wrong[at < 0 ? (way + rank) % WAYS : way], *from = NULL;
      snprintf(own, sizeof own, "%s.%d.lua", path, rank);
      if (at < 0 || at == rank) from = own;
      FILE *file = from && text ? fopen(own, "w") : NULL; /* NULL: no such file */
      if (file) fputs(text, file), fclose(file);
      mgrid_status status = mgrid_reload(rt, s, from, 0, NULL, &new_s, NULL, &e);
      new_rt = mgrid_runtime_ref(mgrid_state_runtime(new_s));
      if (from && text) unlink(own);
      one = is_one(&e) && status == e.status && one;
      quiet = quiet && !new_s && !new_rt;
    }
  test(one && quiet, "what some ranks cannot take is one error, and one status, on all");
}

static void reload(mgrid_runtime **rt, mgrid_state **s) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *new_rt;
  mgrid_state *new_s;
  mgrid_change c = MGRID_CHANGE_INIT;
  MPI_Comm tp = mgrid_mpi_comm(mgrid_state_group(*s, "tp", anew(&e)));
  int64_t proved;
  bool pairs = size > 1;
  write_recipe(RECIPE("", "  t.all = g('tp', 'dp'):twin()\n"));
  mgrid_status status = mgrid_reload(*rt, *s, NULL, 0, NULL, &new_s, &c, anew(&e));
  new_rt = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  test(status == MGRID_OK && new_s
           && mgrid_mpi_comm(mgrid_state_group(new_s, "tp", anew(&e))) == tp,
       "a family more: tp keeps its communicator");
  test(is_named(*s, "tp") && is_named(new_s, "all"), "what a reload makes has the state's name");
  test(c.created == pairs && c.dropped == 0 && c.kept == (size > 2 ? 2 : pairs),
       "and what changes is counted");
  mgrid_state_free(*s);
  mgrid_runtime_free(*rt);
  *s = new_s, *rt = new_rt;
  test(mgrid_state_prove(*s, &proved, anew(&e)) == MGRID_OK && proved == c.kept + c.created,
       "what is there is proved");
  write_recipe("return recipe { build = function(world) return grid(world, 'a', { a = 3 }) end }");
  status = mgrid_reload(*rt, *s, NULL, 0, NULL, &new_s, &c, anew(&e));
  new_rt = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  test(status == MGRID_REFUSED && !new_s && !new_rt && strstr(e.message, ":1: ") && e.line == 1,
       "nonsense is refused with its place");
  test(mgrid_state_prove(*s, &proved, anew(&e)) == MGRID_OK, "and what runs is untouched");
  write_recipe("return recipe {");
  status = mgrid_reload(*rt, *s, NULL, 0, NULL, &new_s, &c, anew(&e));
  new_rt = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  test(status == MGRID_REFUSED && !new_s, "so is what is not Lua");
  write_recipe(RECIPE("", ""));
  reload_in_part(*rt, *s);
  const char *args[] = { rank == size - 1 ? "tp=1" : "tp=2" };
  status = mgrid_reload(*rt, *s, NULL, 1, args, &new_s, &c, anew(&e));
  new_rt = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  test(size == 1 ? status == MGRID_REFUSED || status == MGRID_OK
                 : status == MGRID_DISAGREE && !new_s,
       "a rank with other parameters is found");
  if (new_s) {
    mgrid_state_free(new_s);
    mgrid_runtime_free(new_rt);
  }
  char other[80];
  snprintf(other, sizeof other, "%s.stale.lua", path);
  /* the last rank has another file, as when a shared file system shows a change to some machines
  ** only */
  FILE *file = rank == size - 1 ? fopen(other, "w") : NULL;
  if (file) fputs(RECIPE("", "") "-- of yesterday\n", file), fclose(file);
  status = mgrid_reload(*rt, *s, rank == size - 1 ? other : NULL, 1,
                        (const char *const[]){ "tp=2" }, &new_s, &c, anew(&e));
  new_rt = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  test(
      status == MGRID_DISAGREE && !new_s
          && strstr(e.message,
                    "the groups are the same, but not the text of the recipe, and it has policies"),
      "so is a rank with another text of the policies");
  if (rank == size - 1) unlink(other);
  status = mgrid_reload(*rt, *s, "picotron", 0, NULL, &new_s, &c, anew(&e));
  new_rt = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  test(status == MGRID_OK, "another recipe altogether");
  mgrid_state_free(*s);
  mgrid_runtime_free(*rt);
  *s = new_s, *rt = new_rt;
  test(mgrid_state_prove(*s, &proved, anew(&e)) == MGRID_OK, "is proved as well");
}

/* The way from a recipe to a state in one call, where a rank cannot go it. */
static void in_one_call(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  const char *nonsense[] = { "tp=0" };
  bool last = rank == size - 1;
  mgrid_state *s =
      mgrid_mpi_open(MPI_COMM_WORLD, last ? "/none.lua" : path, 0, NULL, NULL, NULL, anew(&e));
  const char *stage = strstr(e.message, " (while loading the recipe)");
  test(!s && strstr(e.message, "cannot open /none.lua") && stage && !strstr(stage + 1, " (while"),
       "a rank that has no recipe tells all ranks");
  s = mgrid_mpi_open(MPI_COMM_WORLD, "picotron", last, nonsense, NULL, NULL, anew(&e));
  test(!s && strstr(e.message, "tp") && strstr(e.message, " (while planning for "),
       "so does one that cannot plan");
  o.size = last ? 3 : sizeof o;
  s = mgrid_mpi_open(MPI_COMM_WORLD, "picotron", 0, NULL, NULL, &o, anew(&e));
  test(!s && strstr(e.message, "mgrid_open_options"), "and one whose options are none");
  o = (mgrid_open_options)MGRID_OPEN_OPTIONS_INIT;
  o.text = "return recipe { build = function(world) local t = topology(world) t.all = grid(world, "
           "'a', { a = fill }) "
           "'a' return t end }";
  o.length = strlen(o.text), o.name = "train";
  s = mgrid_mpi_open(MPI_COMM_WORLD, "mine", 0, NULL, NULL, &o, anew(&e));
  int sum = 1;
  if (s)
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM,
                  mgrid_mpi_comm(mgrid_state_group(s, "all", &e)));
  test(s && sum == size, s ? "a state by one call" : e.message);
  mgrid_state_free(s);
}

static mgrid_status rack_of(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                            mgrid_error *err) {
  (void)err;
  *result = mgrid_arg_integer(
      NULL, n == 1 && args[0].kind == MGRID_IS_INTEGER ? args[0].as.integer / *(int *)ud : 0);
  return MGRID_OK;
}

/* Ranks whose hosts have other versions of a function, or lack it, get an error before anything is
** created. */
static void functions_of_hosts(void) {
  static const char text[] =
      "return recipe { build = function(world) local t = topology(world)\n"
      "  t.all = grid(world, 'a', { a = fill }) 'a' return t end,\n"
      "  queries = { rack = function(state) return rack_of(state.rank) end } }";
  mgrid_error e = MGRID_ERROR_INIT;
  int four = 4;
  int64_t rack = -1;
  bool last = rank == size - 1 && size > 1;
  mgrid_function f = mgrid_function_of("rack_of", "2026-11", rack_of, &four);
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  o.text = text, o.length = sizeof text - 1, o.functions = &f, o.nfunctions = 1;
  mgrid_state *s = mgrid_mpi_open(MPI_COMM_WORLD, "r", 0, NULL, NULL, &o, anew(&e));
  ask_integer(mgrid_state_runtime(s), s, "rack", 0, NULL, &rack, &e);
  test(s && rack == rank / 4, s ? "a recipe calls a function of the host" : e.message);
  mgrid_state_free(s);
  if (size == 1) return;
  char expected[256];
  snprintf(expected, sizeof expected,
           "ranks do not have the same plan: rank %d has \"function rack_of = 2026-12\", rank 0 "
           "has \"function rack_of = "
           "2026-11\"; differing from rank 0: %d",
           size - 1, size - 1);
  f.version = last ? "2026-12" : "2026-11";
  s = mgrid_mpi_open(MPI_COMM_WORLD, "r", 0, NULL, NULL, &o, anew(&e));
  test(!s && e.status == MGRID_DISAGREE
           && strstr(e.message, size > 2 ? expected : "function rack_of = 2026-12"),
       "another version of it on one rank is told on all");
  o.nfunctions = last ? 0 : 1, f.version = "2026-11";
  s = mgrid_mpi_open(MPI_COMM_WORLD, "r", 0, NULL, NULL, &o, anew(&e));
  test(!s && e.status == MGRID_DISAGREE && strstr(e.message, "function rack_of = 2026-11"),
       "and so is a host without it, though build does not call it");
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  tap_begin(&argc, &argv);
  move_out();
  int id = (int)getpid();
  MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(path, sizeof path, "/tmp/moongrid-policy-%d.lua", id);
  write_recipe(RECIPE("", ""));
  const char *args[] = { size == 1 ? "tp=1" : "tp=2" };
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&e));
  mgrid_status loaded = mgrid_runtime_load(rt, path, NULL, 0, anew(&e));
  mgrid_plan *p = mgrid_runtime_plan(rt, size, NULL, 1, args, anew(&e));
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  test(loaded == MGRID_OK && s, s ? "a recipe with policies" : e.message);
  mgrid_plan_free(p);
  policies(rt, s);
  machines(rt, s);
  if (size > 1) reload(&rt, &s);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_runtime_free(rt);
  in_one_call();
  functions_of_hosts();
  if (rank == 0) unlink(path);
  return tap_end();
}
