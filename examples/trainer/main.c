/* SPDX-License-Identifier: MIT
**
** main.c - options, the layout from the recipe, the loop.
*/
#include "model.h"

#include "moongrid_mpi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
  "usage: mpirun -n N trainer [options] LAYOUT.lua [NAME=VALUE ...]\n"
  "       trainer --plot FILE.svg CURVE...\n"
  "       trainer --write-text FILE\n"
  "\n"
  "Train a small transformer on characters, cut over N ranks as the recipe says.\n"
  "\n"
  "  --steps N          steps to train (100)\n"
  "  --curve FILE       write the loss of every step\n"
  "  --text FILE        train on this text instead of the one that a small grammar makes\n"
  "  --checkpoint FILE  write the model there now and then (policy_checkpoint); any layout reads it\n"
  "  --resume FILE      begin with what is there\n"
  "  --stop N           end after step N of --steps, as if interrupted\n"
  "  --progress WHEN    auto, always or never\n"
  "  --layers, --width, --heads, --hidden, --seq, --experts, --moe-every, --batch, --seed N\n"
  "  --plot FILE.svg    draw loss curves, and how far each is from the first\n";

typedef struct options {
  config      c;
  int64_t     steps, stop;
  const char *curve, *text, *checkpoint, *resume, *progress, *plot, *write_text;
  bool        gradient_check, help;
  int         nrest;
  char      **rest; /* the recipe and its arguments; curves for --plot */
} options;

static bool number(const char *text, int64_t *to) {
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  *to = n;
  return end != text && !*end && !errno && n >= 0 && n <= 1 << 30;
}

/* NULL, or what is wrong. */
static const char *parse(int argc, char **argv, options *o) {
  int64_t layers = o->c.layers, width = o->c.width, heads = o->c.heads, hidden = o->c.hidden, seq = o->c.seq;
  int64_t experts = o->c.experts, moe = o->c.moe_every, batch = o->c.batch, seed = (int64_t)o->c.seed;
  struct {
    const char  *name;
    const char **text;
    int64_t     *number;
    bool        *flag;
  } known[] = {
    { "--steps", NULL, &o->steps, NULL },      { "--stop", NULL, &o->stop, NULL },
    { "--curve", &o->curve, NULL, NULL },      { "--text", &o->text, NULL, NULL },
    { "--checkpoint", &o->checkpoint, NULL, NULL }, { "--resume", &o->resume, NULL, NULL },
    { "--progress", &o->progress, NULL, NULL }, { "--plot", &o->plot, NULL, NULL },
    { "--write-text", &o->write_text, NULL, NULL }, { "--gradient-check", NULL, NULL, &o->gradient_check },
    { "--help", NULL, NULL, &o->help },        { "--layers", NULL, &layers, NULL },
    { "--width", NULL, &width, NULL },         { "--heads", NULL, &heads, NULL },
    { "--hidden", NULL, &hidden, NULL },       { "--seq", NULL, &seq, NULL },
    { "--experts", NULL, &experts, NULL },     { "--moe-every", NULL, &moe, NULL },
    { "--batch", NULL, &batch, NULL },         { "--seed", NULL, &seed, NULL },
  };
  int i = 1;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
    size_t k = 0, n = sizeof known / sizeof known[0];
    while (k < n && strcmp(known[k].name, argv[i]) != 0) k++;
    if (k == n) return "unknown option";
    if (known[k].flag) *known[k].flag = true;
    else if (++i == argc) return "an option without its value";
    else if (known[k].text) *known[k].text = argv[i];
    else if (!number(argv[i], known[k].number)) return "an option wants a number";
  }
  if (!layers || !width || !heads || !hidden || !seq || !experts || !batch || !o->steps) return "sizes are at least 1";
  o->c = (config){ (int)layers, (int)width, (int)heads, (int)hidden, (int)seq, (int)experts, (int)moe, (int)batch, (uint64_t)seed };
  o->rest = argv + i, o->nrest = argc - i;
  return NULL;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void name_layout(const layout *l, char *out, size_t len) {
  snprintf(out, len, "tp%d cp%d pp%d dp%d ep%d", l->tp.size, l->cp.size, l->pp.size, l->dp.size, l->ep.size);
}

/* A line that moves is for a terminal. mpirun gives rank 0 a terminal of its own, whatever the
** user's output is; so where Linux tells, the output of who started this process counts too. */
static bool on_terminal(void) {
  char path[32], to[16] = "";
  snprintf(path, sizeof path, "/proc/%ld/fd/1", (long)getppid());
  ssize_t n = readlink(path, to, sizeof to - 1);
  return isatty(STDOUT_FILENO) && (n < 0 || strncmp(to, "/dev/pts/", 9) == 0 || strncmp(to, "/dev/tty", 8) == 0);
}

typedef struct report {
  FILE   *curve;
  bool    line;   /* one that moves, on a terminal */
  bool    quiet;
  double  start;
  int64_t first;
  char    name[80];
} report;

static void show(report *r, const model *m, const options *o, int64_t step, double loss) {
  if (r->curve) fprintf(r->curve, "%" PRId64 " %.17g\n", step + 1, loss);
  bool end = step + 1 == o->stop;
  if (r->quiet || !(r->line || end || (step + 1) % 10 == 0)) return;
  double tokens = (double)(step + 1 - r->first) * m->c.batch * m->c.seq / (now() - r->start);
  char   bar[21] = "....................";
  memset(bar, '#', (size_t)(20 * (step + 1) / o->steps));
  printf("%s[%s] step %" PRId64 "/%" PRId64 "  loss %.5f  %.0f tokens/s  %s%s", r->line ? "\r\033[K" : "", bar, step + 1,
         o->steps, loss, tokens, r->name, r->line && !end ? "" : "\n");
  fflush(stdout);
}

static int train(model *m, const options *o, report *r, int rank) {
  int64_t step = 0;
  int     code = 0;
  if (o->resume && (code = checkpoint_read(m, o->resume, &step))) {
    fprintf(stderr, "trainer: rank %d: %s: %s\n", rank, o->resume, strerror(code));
    MPI_Abort(MPI_COMM_WORLD, MG_USAGE);
  }
  r->start = now(), r->first = step;
  for (; step < o->stop; step++) {
    double sum = pipeline_step(m, step);
    optimizer_reduce(m);
    optimizer_update(m, step, policy_lr(step, o->steps));
    double loss = pipeline_loss(m, sum);
    if (rank == 0) show(r, m, o, step, loss);
    if (o->checkpoint && policy_checkpoint(step, o->stop) && (code = checkpoint_write(m, o->checkpoint, step + 1))) {
      fprintf(stderr, "trainer: rank %d: %s: %s\n", rank, o->checkpoint, strerror(code));
      MPI_Abort(MPI_COMM_WORLD, MG_USAGE);
    }
  }
  return 0;
}

static int run(model *m, const options *o, const layout *l, int rank, int world) {
  report r = { 0 };
  int    code;
  name_layout(l, r.name, sizeof r.name);
  if (o->gradient_check) {
    if (world == 1) return gradient_check(m, rank) ? 1 : 0;
    if (rank == 0) fprintf(stderr, "trainer: --gradient-check is for one rank\n");
    return MG_USAGE;
  }
  if (rank == 0) {
    bool is_auto = !o->progress || strcmp(o->progress, "auto") == 0;
    r.quiet = !is_auto && strcmp(o->progress, "never") == 0;
    r.line = is_auto ? on_terminal() : !r.quiet;
    if (o->curve && !(r.curve = fopen(o->curve, "w"))) {
      fprintf(stderr, "trainer: %s: %s\n", o->curve, strerror(errno));
      MPI_Abort(MPI_COMM_WORLD, MG_USAGE);
    }
    if (r.curve) fprintf(r.curve, "# %s, %d rank%s, %s precision\n", r.name, world, world > 1 ? "s" : "", REAL_NAME);
  }
  code = train(m, o, &r, rank);
  if (r.curve && fclose(r.curve)) code = MG_USAGE;
  return code;
}

/* Everything between MPI_Init and MPI_Finalize. */
static int job(const options *o, const char *text, size_t length) {
  mg_error e = { .status = MG_OK };
  int      rank, world, code = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  mg_runtime *rt = mg_runtime_new(NULL, &e);
  mg_plan    *plan = NULL;
  if (rt && mg_runtime_load(rt, o->rest[0], &e) == MG_OK)
    plan = mg_runtime_plan(rt, world, (size_t)o->nrest - 1, (const char *const *)(o->rest + 1), &e);
  /* A rank that has no plan takes part all the same and tells the others why. */
  mg_backend *mpi = mg_mpi_backend(MPI_COMM_WORLD, plan ? &e : NULL);
  mg_state   *state = mg_materialize(plan, mpi, "train", &e);
  layout      l;
  model      *m = NULL;
  char        why[160] = "";
  if (!state || layout_open(state, &l, &e)) {
    snprintf(why, sizeof why, "%.150s", e.message);
    code = e.status;
  } else if (!(m = model_new(&o->c, &l, text, length, why, sizeof why))) {
    code = MG_REFUSED;
  }
  if (m) code = run(m, o, &l, rank, world);
  else if (rank == 0) fprintf(stderr, "trainer: %s\n", why);
  model_free(m);
  mg_state_free(state);
  mg_backend_free(mpi);
  mg_plan_free(plan);
  mg_runtime_free(rt);
  return code;
}

static int write_text(const char *path, const char *text, size_t length) {
  FILE *f = fopen(path, "wb");
  bool  ok = f && fwrite(text, 1, length, f) == length;
  if (f && fclose(f)) ok = false;
  if (!ok) fprintf(stderr, "trainer: %s: %s\n", path, strerror(errno));
  return ok ? 0 : MG_USAGE;
}

int main(int argc, char **argv) {
  options     o = { .c = CONFIG_INIT, .steps = 100 };
  const char *wrong = parse(argc, argv, &o);
  size_t      length = 1 << 16;
  if (!wrong && !o.help && !o.write_text && !o.nrest) wrong = o.plot ? "--plot wants curves" : "which LAYOUT.lua?";
  if (wrong || o.help) {
    if (wrong) fprintf(stderr, "trainer: %s\n", wrong);
    fputs(help, wrong ? stderr : stdout);
    return wrong ? MG_USAGE : 0;
  }
  if (!o.stop || o.stop > o.steps) o.stop = o.steps;
  if (o.plot) return plot(o.plot, o.nrest, (const char *const *)o.rest);
  char *text = o.text ? data_read(o.text, &length) : data_text(o.c.seed, length);
  if (!text || length <= (size_t)o.c.seq) {
    fprintf(stderr, "trainer: %s: %s\n", o.text, text ? "too short" : strerror(errno));
    free(text);
    return MG_USAGE;
  }
  int code;
  if (o.write_text) {
    code = write_text(o.write_text, text, length);
  } else {
    MPI_Init(NULL, NULL);
    /* Before the communicators exist, which take it over: what a failed call means is policy_on_lost. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    gemm_one_thread();
    code = job(&o, text, length);
    MPI_Finalize();
  }
  free(text);
  return code;
}
