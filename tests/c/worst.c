/* SPDX-License-Identifier: MIT
**
** worst.c - runs what worst_spec.lua writes under small limits, and measures: no call takes more
** than 1.5 times its processor time, and the process no more than 1.5 times the memory, each with
** some more for what is not a fault of a recipe. A machine that is slower gets more time.
**
**     build/tests/worst recipe FILE WORLD CALLS
**         so many calls of a recipe that goes on where the last one ended (tests/lua/worst.lua)
**     build/tests/worst files RECIPE
**         files by a line of standard input each, as the recipe's parameter f, and with all of its parameters
**     build/tests/worst texts
**         files by a line of standard input each, as recipes
**     build/tests/worst machines MIB SECONDS
**         machines by a line of standard input each, as --machine takes them: each within so much memory and time
**     build/tests/worst steps MACHINE
**         steps of recipes, "linear|any WORLD FILE" a line of standard input: evaluated, proved, and priced on the machine.
**         A linear one must be proved, too
*/
#include "moongrid.h"
#include "results.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MEMORY  ((size_t)96 << 20)
#define SECONDS 0.4
/* A call is over the limit beyond these: a busy machine slows a processor down, and the process is
** larger than its recipe. */
#define MOST_SECONDS (1.5 * SECONDS + 0.6)
#define MOST_KIB     ((long)(MEMORY * 3 / 2 + (16 << 20)) / 1024)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long peak(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

/* Return how many times longer than the machine of the limits this one takes for a fixed piece of
** work, in its load of now; at least 1. */
static double slowness(void) {
  const double began = now();
  lua_State *L = luaL_newstate();
  if (!L) return 1;
  luaL_openlibs(L);
  const bool ok = !luaL_dostring(L, "local t, find = {}, string.find "
                                    "for i = 1, 200000 do local name = 'n' .. i % 10000 "
                                    "t[name] = (t[name] or 0) + 1 find(name, '[^%w_]') end");
  lua_close(L);
  const double times = (now() - began) / 0.06;
  return ok && times > 1 ? times : 1;
}

static bool over(double took, double limit) { return took > limit && took > limit * slowness(); }

static double longest;
static int faults;

/* Tell about the call that began then, if it took too much. */
static bool took_too_much(double began, const char *what) {
  const double took = now() - began;
  if (took > longest) longest = took;
  if (!over(took, MOST_SECONDS) && peak() <= MOST_KIB) return false;
  printf("fault: %s: %.2f s of %.2f, %ld MiB of %zu\n", what, took, SECONDS, peak() >> 10,
         MEMORY >> 20);
  fflush(stdout);
  faults++;
  return true;
}

/* The last line that the recipe has said. */
static char said[512];

static void hear(void *ud, mgrid_level level, const char *text) {
  (void)ud;
  if (level == MGRID_LOG_RECIPE) snprintf(said, sizeof said, "%s", text);
}

static mgrid_runtime *open_runtime(double seconds) {
  mgrid_limits l = MGRID_LIMITS_INIT;
  mgrid_hooks h = MGRID_HOOKS_INIT;
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt;
  l.memory = MEMORY, l.instructions = 5000000, l.seconds = seconds, l.call_seconds = SECONDS;
  h.log = hear;
  if (!(rt = mgrid_runtime_new(&l, &h, &err))) printf("no runtime: %s\n", err.message), exit(1);
  return rt;
}

/* ------------------------------------------------------------------ a recipe */

static int run_recipe(const char *path, int64_t world, int most) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = open_runtime(20 * SECONDS); /* to load: the worst values are made then */
  mgrid_backend *b = mgrid_backend_dry(world, 3, &err);
  mgrid_plan *p = NULL;
  mgrid_state *s = NULL;
  if (mgrid_runtime_load(rt, path, NULL, 0, &err) == MGRID_OK)
    p = mgrid_runtime_plan(rt, world, NULL, 0, NULL, &err);
  if (p && b) s = mgrid_materialize(p, b, "worst", &err);
  if (!s) {
    printf("%s\n", err.message);
    return 1;
  }
  int calls = 0;
  size_t length;
  char answer[64] = "";
  /* a process does not get smaller */
  for (double began; calls < most && peak() <= MOST_KIB; calls++) {
    mgrid_error_clear(&err);
    began = now();
    ask_as(MGRID_IS_JSON, rt, s, "try", 0, NULL, answer, sizeof answer, &length, &err);
    if (getenv("WORST_TELLS"))
      printf("%d: %.3f s: %s: %s %s\n", calls, now() - began, said, answer, err.message);
    took_too_much(began, said);
  }
  printf("calls %d, longest %.2f s, peak %ld MiB, %s\n", calls, longest, peak() >> 10, answer);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return faults > 0;
}

/* --------------------------------------------------------------------- files */

static bool next_path(char *path, int size) {
  if (!fgets(path, size, stdin)) return false;
  path[strcspn(path, "\n")] = '\0';
  return true;
}

static int run_files(const char *recipe) {
  char path[480];
  int files = 0;
  for (; next_path(path, sizeof path); files++) {
    char arg[512];
    mgrid_error err = MGRID_ERROR_INIT;
    mgrid_runtime *rt = open_runtime(SECONDS);
    const char *args[] = { arg };
    snprintf(arg, sizeof arg, "f=%s", path);
    const double began = now();
    if (mgrid_runtime_load(rt, recipe ? recipe : path, NULL, 0, &err) == MGRID_OK)
      mgrid_plan_free(mgrid_runtime_plan(rt, 8, NULL, recipe ? 1 : 0, args, &err));
    if (getenv("WORST_TELLS"))
      printf("%s: %.3f s, %ld: %s\n", path, now() - began, peak() >> 10, err.message);
    took_too_much(began, path);
    if (recipe) {
      const double again = now();
      mgrid_error_clear(&err);
      mgrid_plan_free(mgrid_runtime_plan(rt, 8, path, 0, NULL, &err));
      if (getenv("WORST_TELLS"))
        printf("  as parameters: %.3f s, %ld: %s\n", now() - again, peak() >> 10, err.message);
      took_too_much(again, path);
    }
    mgrid_runtime_free(rt);
    if (peak() > MOST_KIB) break;
  }
  printf("files %d, longest %.2f s, peak %ld MiB\n", files, longest, peak() >> 10);
  return faults > 0;
}

/* ------------------------------------------------------------------ machines */

static int run_machines(long mib, double seconds) {
  char source[4096];
  int n = 0;
  for (; next_path(source, sizeof source); n++) {
    mgrid_error err = MGRID_ERROR_INIT;
    const double began = now();
    mgrid_machine_model *m = mgrid_machine_open(source, &err);
    for (size_t i = 0; m && i < mgrid_machine_nlevels(m); i++) {
      mgrid_machine_level level = MGRID_MACHINE_LEVEL_INIT;
      if (mgrid_machine_describe_level(m, i, &level, &err)) continue;
      mgrid_family_free(
          mgrid_machine_family(m, level.name, mgrid_machine_places(m) > 7 ? 7 : 1, &err));
    }
    mgrid_machine_free(m);
    const double took = now() - began;
    if (took > longest) longest = took;
    if (getenv("WORST_TELLS"))
      printf("%s: %.3f s, %ld MiB: %s\n", source, took, peak() >> 10, err.message);
    if (!over(took, seconds) && peak() <= mib << 10) continue;
    printf("fault: %s: %.2f s of %.2f, %ld MiB of %ld\n", source, took, seconds, peak() >> 10, mib);
    return 1; /* a process does not get smaller */
  }
  printf("machines %d, longest %.2f s, peak %ld MiB\n", n, longest, peak() >> 10);
  return 0;
}

/* --------------------------------------------------------------------- steps */

/* Tell about one of the three works with a step, if it took too much, or if a linear one met a
** limit. */
static void look_at(const char *line, const char *work, double began, bool linear,
                    const mgrid_error *err) {
  const double took = now() - began;
  if (took > longest) longest = took;
  if (getenv("WORST_TELLS"))
    printf("%s: %s: %.3f s, %ld MiB: %s\n", line, work, took, peak() >> 10, err->message);
  if (!over(took, MOST_SECONDS) && !(linear && err->status == MGRID_LIMIT)) return;
  printf("fault: %s: %s: %.2f s of %.2f: %s\n", line, work, took, SECONDS, err->message);
  fflush(stdout);
  faults++;
}

static int run_steps(const char *machine) {
  char line[512], path[400], kind[16];
  long world;
  int n = 0;
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_machine_model *m = mgrid_machine_open(machine, &err);
  for (; next_path(line, sizeof line) && sscanf(line, "%15s %ld %399s", kind, &world, path) == 3;
       n++) {
    const bool linear = strcmp(kind, "linear") == 0;
    mgrid_limits l = MGRID_LIMITS_INIT;
    double began = now();
    mgrid_runtime *rt;
    mgrid_plan *p = NULL;
    mgrid_step *s = NULL;
    l.seconds = l.call_seconds = SECONDS;
    mgrid_error_clear(&err);
    rt = mgrid_runtime_new(&l, NULL, &err);
    if (mgrid_runtime_load(rt, path, NULL, 0, &err) == MGRID_OK)
      p = mgrid_runtime_plan(rt, world, NULL, 0, NULL, &err);
    if (!p) printf("%s: %s\n", line, err.message), faults++;
    began = now();
    if (p) s = mgrid_step_new(rt, p, NULL, &err);
    look_at(line, "evaluated", began, linear, &err);
    for (int mpi = 0; s && mpi < 2; mpi++) {
      mgrid_error_clear(&err);
      began = now();
      mgrid_step_prove(s, mpi, &err);
      look_at(line, "proved", began, linear, &err);
    }
    if (s && !err.status) {
      mgrid_step_time t = MGRID_STEP_TIME_INIT;
      began = now();
      mgrid_step_price(s, m, NULL, &t, NULL, NULL, &err);
      look_at(line, "priced", began, linear, &err);
    }
    mgrid_step_free(s);
    mgrid_plan_free(p);
    mgrid_runtime_free(rt);
  }
  mgrid_machine_free(m);
  printf("steps %d, longest %.2f s, peak %ld MiB\n", n, longest, peak() >> 10);
  return faults > 0 || peak() >> 10 > 600;
}

int main(int argc, char **argv) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD,
          /* large blocks go back when they are freed: their holes are not a fault of a recipe */
          64 << 10);
#endif
  if (argc == 5 && strcmp(argv[1], "recipe") == 0)
    return run_recipe(argv[2], atoll(argv[3]), atoi(argv[4]));
  if (argc == 3 && strcmp(argv[1], "files") == 0) return run_files(argv[2]);
  if (argc == 2 && strcmp(argv[1], "texts") == 0) return run_files(NULL);
  if (argc == 4 && strcmp(argv[1], "machines") == 0)
    return run_machines(atol(argv[2]), atof(argv[3]));
  if (argc == 3 && strcmp(argv[1], "steps") == 0) return run_steps(argv[2]);
  fprintf(stderr, "worst recipe FILE WORLD CALLS | files RECIPE | texts | machines MIB SECONDS | "
                  "steps MACHINE\n");
  return 2;
}
