/* SPDX-License-Identifier: MIT
**
** main.c - options, the layout from the recipe, the loop.
*/
#include "model.h"
#include "base/files.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
    "usage: mpirun -n N trainer [options] LAYOUT.lua [NAME=VALUE ...]\n"
    "       trainer --plot FILE.svg CURVE...\n"
    "       trainer --write-text FILE\n"
    "\n"
    "Train a small transformer on characters. LAYOUT.lua, a recipe, cuts it over N ranks.\n"
    "\n"
    "  --steps N          steps to train (100)\n"
    "  --curve FILE       write the loss of every step\n"
    "  --text FILE        train on this text, not on the text that a small grammar makes\n"
    "  --checkpoint DIR   write the model there when the recipe's policy `checkpoint` says so: a "
    "safetensors\n"
    "                     file from each rank that has something to write, and an index; any "
    "layout can read it\n"
    "  --resume DIR       begin with the model of a checkpoint\n"
    "  --deadline N       seconds to wait for a rank (120); then the job ends with status 4\n"
    "  --switch S:ARGS    after step S, reload the recipe with other arguments: --switch "
    "40:tp=2,pp=2;\n"
    "                     may be given several times\n"
    "  --die R:S:POINT, --hang R:S:POINT\n"
    "                     for tests: kill or stop rank R at step S; POINT is begin, rate, gather, "
    "forward, backward,\n"
    "                     bucket, embedding, summed, passed, update, updated, checkpoint, end, "
    "recovered, moving or "
    "moved\n"
    "  --watch            reload the recipe when its file has changed\n"
    "  --stop N           end after step N; the learning rate is still that of --steps\n"
    "  --progress WHEN    show a progress line: auto (on a terminal), always or never\n"
    "  --layers, --width, --heads, --hidden, --seq, --experts, --moe-every, --batch, --seed N\n"
    "  --gradient-check   compare gradients with differences of the loss, on one rank\n"
    "  --plot FILE.svg    draw loss curves, and the distance of each from the first curve\n"
    "  --write-text FILE  write the text\n";

enum { SWITCHES = 16, ARGS = 32 };

typedef struct change_at {
  int64_t step;
  char *text; /* parse() replaces its commas by zeros */
  size_t n;
  const char *args[ARGS];
} change_at;

typedef struct options {
  config c;
  int64_t steps, stop, deadline;
  const char *curve, *text, *checkpoint, *resume, *progress, *plot, *write_text;
  bool gradient_check, help, watch;
  change_at switches[SWITCHES];
  int nswitches;
  int nrest;
  const char *at; /* the option that is parsed, or was refused; NULL at the end */
  char **rest;    /* the recipe and its arguments; curves for --plot */
} options;

static bool number(const char *text, int64_t *to) {
  char *end;
  errno = 0;
  long long n = strtoll(text, &end, 10);
  *to = n;
  return end != text && !*end && !errno && n >= 0 && n <= 1 << 30;
}

/* "40:tp=2,pp=2" */
static const char *parse_switch(options *o, char *text) {
  char *args = strchr(text, ':');
  if (o->nswitches == SWITCHES) return "too many switches";
  change_at *c = &o->switches[o->nswitches++];
  if (args) *args++ = 0;
  if (!args || !number(text, &c->step)) return "--switch wants STEP:NAME=VALUE,NAME=VALUE";
  for (char *next; *args; args = next) {
    next = args + strcspn(args, ",");
    if (*next) *next++ = 0;
    if (c->n == ARGS) return "--switch has too many arguments";
    c->args[c->n++] = args;
  }
  return NULL;
}

/* Return NULL, or the error. */
static const char *parse(int argc, char **argv, options *o) {
  int64_t layers = o->c.layers, width = o->c.width, heads = o->c.heads, hidden = o->c.hidden,
          seq = o->c.seq;
  int64_t experts = o->c.experts, moe = o->c.moe_every, batch = o->c.batch,
          seed = (int64_t)o->c.seed;
  struct {
    const char *name;
    const char **text;
    int64_t *number;
    bool *flag;
  } known[] = {
    { "--steps", NULL, &o->steps, NULL },
    { "--stop", NULL, &o->stop, NULL },
    { "--deadline", NULL, &o->deadline, NULL },
    { "--curve", &o->curve, NULL, NULL },
    { "--text", &o->text, NULL, NULL },
    { "--checkpoint", &o->checkpoint, NULL, NULL },
    { "--resume", &o->resume, NULL, NULL },
    { "--progress", &o->progress, NULL, NULL },
    { "--plot", &o->plot, NULL, NULL },
    { "--write-text", &o->write_text, NULL, NULL },
    { "--gradient-check", NULL, NULL, &o->gradient_check },
    { "--help", NULL, NULL, &o->help },
    { "--watch", NULL, NULL, &o->watch },
    { "--layers", NULL, &layers, NULL },
    { "--width", NULL, &width, NULL },
    { "--heads", NULL, &heads, NULL },
    { "--hidden", NULL, &hidden, NULL },
    { "--seq", NULL, &seq, NULL },
    { "--experts", NULL, &experts, NULL },
    { "--moe-every", NULL, &moe, NULL },
    { "--batch", NULL, &batch, NULL },
    { "--seed", NULL, &seed, NULL },
  };
  int i = 1;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
    size_t k = 0, n = sizeof known / sizeof known[0];
    o->at = argv[i];
    if (strcmp(argv[i], "--switch") == 0) {
      const char *wrong = ++i < argc ? parse_switch(o, argv[i]) : "its value is missing";
      if (wrong) return wrong;
      continue;
    }
    if (strcmp(argv[i], "--die") == 0 || strcmp(argv[i], "--hang") == 0) {
      int signal = argv[i][2] == 'd' ? SIGKILL : SIGSTOP;
      if (++i == argc || !fault_plan(argv[i], signal)) return "RANK:STEP:POINT is wanted";
      continue;
    }
    while (k < n && strcmp(known[k].name, argv[i]) != 0) k++;
    if (k == n) return "unknown option";
    if (known[k].flag)
      *known[k].flag = true;
    else if (++i == argc)
      return "its value is missing";
    else if (known[k].text)
      *known[k].text = argv[i];
    else if (!number(argv[i], known[k].number))
      return "a number from 0 to 1073741824 is wanted";
  }
  o->at = NULL;
  for (int k = 0; k < o->nswitches; k++)
    if (o->switches[k].step >= o->steps)
      return "--switch at the last step or later changes nothing";
  if (!layers || !width || !heads || !hidden || !seq || !experts || !batch || !o->steps)
    return "--steps, --batch and sizes of the model must be at least 1";
  o->c = (config){ (int)layers,  (int)width, (int)heads, (int)hidden,   (int)seq,
                   (int)experts, (int)moe,   (int)batch, (uint64_t)seed };
  o->rest = argv + i, o->nrest = argc - i;
  return NULL;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void name_layout(const layout *l, char *out, size_t len) {
  int n = snprintf(out, len, "tp%d cp%d pp%d dp%d ep%d", l->tp.size, l->cp.size, l->pp.size,
                   l->dp.size, l->ep.size);
  if (l->shard.size > 1) snprintf(out + n, len - (size_t)n, " zero%d", l->shard.size);
}

/* Return whether output goes to a terminal, so that the progress line can be overwritten. mpirun
** gives rank 0 a terminal of its own, so on Linux also look at the output of the parent process. */
static bool on_terminal(void) {
  char path[32], to[16] = "";
  snprintf(path, sizeof path, "/proc/%ld/fd/1", (long)getppid());
  ssize_t n = readlink(path, to, sizeof to - 1);
  return isatty(STDOUT_FILENO)
         && (n < 0 || strncmp(to, "/dev/pts/", 9) == 0 || strncmp(to, "/dev/tty", 8) == 0);
}

typedef struct report {
  FILE *curve;
  bool line; /* overwrite the progress line */
  bool quiet;
  double start, lost; /* lost: when this rank noticed a loss; 0: a step has been done since then */
  int64_t first;
  char name[80];
} report;

static void show(report *r, const model *m, const options *o, int64_t step, double loss) {
  if (r->curve) fprintf(r->curve, "%" PRId64 " %.17g\n", step + 1, loss), fflush(r->curve);
  if (r->lost > 0)
    fprintf(stderr, "trainer: the next step took %.3f s from the loss: %.6f\n", seconds() - r->lost,
            seconds());
  r->lost = 0;
  bool end = step + 1 == o->stop;
  if (r->quiet || !(r->line || end || (step + 1) % 10 == 0)) return;
  double tokens = (double)(step + 1 - r->first) * m->c.batch * m->c.seq / (seconds() - r->start);
  char bar[21] = "....................";
  memset(bar, '#', (size_t)(20 * (step + 1) / o->steps));
  printf("%s[%s] step %" PRId64 "/%" PRId64 "  loss %.5f  %.0f tokens/s  %s%s",
         r->line ? "\r\033[K" : "", bar, step + 1, o->steps, loss, tokens, r->name,
         r->line && !end ? "" : "\n");
  fflush(stdout);
}

static void fail(int rank, const char *what, const char *why) {
  fprintf(stderr, "trainer: rank %d: %s: %s\n", rank, what, why);
  MPI_Abort(MPI_COMM_WORLD, exit_code(MGRID_USAGE));
}

static mgrid_status resume(job *j, const options *o, int64_t *step, const report *r,
                           mgrid_error *err) {
  model *m = j->part.model;
  double bytes = 0;
  if (checkpoint_read(m, j->mpi, o->resume, step, &bytes, err)) return err->status;
  if (j->rank == 0 && !r->quiet)
    printf("resumed after step %" PRId64 ": %.0f bytes read by %d ranks, of a model with %.0f\n",
           *step, bytes, j->world, (double)(m->whole * ARRAYS * sizeof(real)));
  return MGRID_OK;
}

/* Return whether the recipe's file has changed since the last call. Rank 0 looks, and tells all
** ranks. */
static bool changed(const job *j, const char *path, struct timespec *last) {
  int64_t no = 1;
  struct stat now;
  mgrid_error e = MGRID_ERROR_INIT;
  if (j->rank == 0 && stat(path, &now) == 0) {
    no = !last->tv_sec
         || (now.st_mtim.tv_sec == last->tv_sec && now.st_mtim.tv_nsec == last->tv_nsec);
    *last = now.st_mtim;
  }
  if (mgrid_state_least(j->part.state, &no, &e) == MGRID_LOST_RANK) left_by_loss();
  return !no;
}

/* The peak of this process's memory, in MiB. */
static double peak(void) {
  struct rusage r;
  return getrusage(RUSAGE_SELF, &r) ? 0 : (double)r.ru_maxrss / 1024;
}

/* After `step` steps: reload if --switch asks for it now or the recipe has changed. */
static void boundary(job *j, const options *o, int64_t step, report *r, const change_at **now,
                     struct timespec *last) {
  const change_at *was = *now;
  bool asked = o->watch && changed(j, o->rest[0], last);
  mgrid_change c = MGRID_CHANGE_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  for (int i = 0; i < o->nswitches; i++)
    if (o->switches[i].step == step) *now = &o->switches[i], asked = true;
  if (!asked) return;
  double before = peak();
  mgrid_status s = job_reload(j, (*now)->n, (*now)->args, &c, &e);
  if (s == MGRID_LOST_RANK) left_by_loss();
  if (s)
    *now = was;
  else
    name_layout(&j->part.layout, r->name, sizeof r->name);
  if (j->rank) return;
  if (s)
    fprintf(stderr, "%strainer: step %" PRId64 ": reload refused, %s goes on: %s\n",
            r->line ? "\n" : "", step, r->name, e.message);
  else if (!r->quiet)
    printf("%sstep %" PRId64 ": reloaded as %s; communicators of rank 0: %" PRId64 " kept, %" PRId64
           " created, %" PRId64
           " dropped; its peak of memory grew by %.0f MiB, %.0f of them parameters\n",
           r->line ? "\r\033[K" : "", step, r->name, c.kept, c.created, c.dropped, peak() - before,
           (double)((j->part.model->nvalues + j->part.model->nstate) * 2 * sizeof(real))
               / (1 << 20));
  fflush(stdout);
}

/* One step: gradients, then a sum over all ranks. A rank that passes the sum knows that each rank
** has its gradients, and needs no other rank for the rest of the step. So after a loss the step is
** done on all ranks or on none (catch_up in job.c). */
static void step(job *j, const options *o, report *r) {
  model *m = j->part.model;
  double one = 1;
  int64_t n = j->step;
  fault_step(n), fault_at("begin");
  double rate = policy_learning_rate(j->part.policies, n, o->steps);
  fault_at("rate");
  if (!m->l.idle) {
    double sum = pipeline_step(m, n);
    gradients_sum(m);
    j->losses[n] = pipeline_loss(m, sum);
    fault_at("summed");
    group_sum_double(&m->l.job, &one, 1);
    /* Open MPI 5.0.11 (coll/han) may return a part of the sum without an error after a loss */
    if (one != m->l.job.size) left_by_loss();
    fault_at("passed");
    optimizer_update(m, n, rate);
  }
  j->step++;
  fault_at("updated");
  if (j->rank == 0) show(r, m, o, n, j->losses[n]);
}

/* The arguments of the recipe: at the start, and now; and the time of its file. */
typedef struct course {
  change_at first;
  const change_at *now;
  struct timespec last;
} course;

/* Errors are the same on all ranks, except MGRID_LOST_RANK: ranks notice a loss in different
** calls. */
static mgrid_status train(job *j, const options *o, report *r, course *c, mgrid_error *err) {
  for (;;) {
    if (o->checkpoint && j->saved < j->step
        && policy_checkpoint(j->part.policies, j->step - 1, o->stop)) {
      fault_at("checkpoint");
      if (checkpoint_write(j->part.model, j->mpi, o->checkpoint, j->step, err)) return err->status;
      j->saved = j->step;
    }
    fault_at("end");
    if (j->step >= o->stop) break;
    boundary(j, o, j->step, r, &c->now, &c->last);
    step(j, o, r);
  }
  /* wait until all ranks have done and written everything */
  return mgrid_state_settle(j->part.state, MGRID_OK, err);
}

/* The first rank writes the curve. If it is killed, the next first rank continues it. */
static void open_curve(job *j, const options *o, report *r) {
  char line[128], kept[128] = "";
  FILE *was = !j->step ? NULL : fopen(o->curve, "r");
  while (was && fgets(line, sizeof line, was)) {
    int64_t n;
    double loss;
    if (*line == '#') memcpy(kept, line, sizeof kept);
    if (strchr(line, '\n') && sscanf(line, "%" SCNd64 " %lg", &n, &loss) == 2 && n >= 1
        && n <= j->step)
      j->losses[n - 1] = loss;
  }
  if (was) fclose(was);
  if (r->curve) fclose(r->curve);
  if (!(r->curve = fopen(o->curve, "w"))) fail(j->rank, o->curve, strerror(errno));
  if (*kept)
    fputs(kept, r->curve);
  else
    fprintf(r->curve, "# %s, %d rank%s, %s precision\n", r->name, j->world, j->world > 1 ? "s" : "",
            REAL_NAME);
  for (int64_t n = r->first; n < j->step; n++)
    fprintf(r->curve, "%" PRId64 " %.17g\n", n + 1, j->losses[n]);
  fflush(r->curve);
}

static void begin_report(job *j, const options *o, report *r) {
  bool is_auto = !o->progress || strcmp(o->progress, "auto") == 0;
  r->quiet = !is_auto && strcmp(o->progress, "never") == 0;
  r->line = is_auto ? on_terminal() : !r->quiet;
  if (o->curve && j->rank == 0) open_curve(j, o, r);
}

/* Go on with the survivors. */
static mgrid_status go_on(job *j, const options *o, report *r, mgrid_error *err) {
  double began = seconds();
  int was = j->world;
  if (job_recover(j, err)) return err->status;
  name_layout(&j->part.layout, r->name, sizeof r->name);
  watch_as(j->rank, j->world);
  if (!r->lost) r->lost = began;
  if (j->rank) return MGRID_OK;
  begin_report(j, o, r);
  fprintf(stderr,
          "trainer: step %" PRId64
          ": %d of %d ranks are lost; it goes on as %s on %d, %.3f s after the loss was noticed\n",
          j->step, was - j->world, was, r->name, j->world, seconds() - began);
  return MGRID_OK;
}

/* Train; after each loss go on with the survivors. */
static mgrid_status live(job *j, const options *o, report *r, mgrid_error *err) {
  course c = { .first.n = (size_t)o->nrest - 1 };
  c.now = &c.first;
  for (size_t i = 0; i < c.first.n; i++) c.first.args[i] = o->rest[i + 1];
  if (o->watch) changed(j, o->rest[0], &c.last);
  if (o->resume && resume(j, o, &j->step, r, err)) return err->status;
  j->resume = o->resume, j->saved = j->resumed = j->step;
  r->start = seconds(), r->first = j->step;
  for (;;) {
    if (setjmp(lost_rank) == 0)
      train(j, o, r, &c, err);
    else
      err->status = MGRID_LOST_RANK;
    if (err->status != MGRID_LOST_RANK) return err->status;
    memset(err, 0, sizeof *err);
    if (go_on(j, o, r, err)) return err->status;
  }
}

static int run(job *j, const options *o) {
  report r = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  name_layout(&j->part.layout, r.name, sizeof r.name);
  if (o->gradient_check) {
    if (j->world == 1) return gradient_check(j->part.model, j->rank) ? 1 : 0;
    if (j->rank == 0) fprintf(stderr, "trainer: --gradient-check is for one rank\n");
    return exit_code(MGRID_USAGE);
  }
  begin_report(j, o, &r);
  int code = exit_code(live(j, o, &r, &e));
  /* Every rank prints the error, since rank 0 may be missing. MPI_Finalize would wait for it. */
  if (e.status == MGRID_TIMED_OUT || (code && mgrid_state_hurt(j->part.state)))
    end_now(e.message, e.status);
  if (code && j->rank == 0) fprintf(stderr, "%strainer: %s\n", r.line ? "\n" : "", e.message);
  if (r.curve && fclose(r.curve)) code = exit_code(MGRID_USAGE);
  return code;
}

/* Everything between MPI_Init and MPI_Finalize. */
static int whole_job(const options *o, const char *text, size_t length) {
  job j = { .c = o->c,
            .text = text,
            .length = length,
            .deadline = (double)o->deadline,
            .checkpoint = o->checkpoint };
  mgrid_error e = MGRID_ERROR_INIT;
  j.losses = room((size_t)o->steps, sizeof *j.losses);
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.world);
  fault_begin(j.rank);
  watch_begin(j.rank, j.world, j.deadline, j.checkpoint);
  if (setjmp(lost_rank)) end_now("a rank was lost before the first step", MGRID_LOST_RANK);
  mgrid_status s =
      job_open(&j, o->rest[0], (size_t)o->nrest - 1, (const char *const *)(o->rest + 1), &e);
  if (s == MGRID_TIMED_OUT || s == MGRID_LOST_RANK) end_now(e.message, s);
  int code = s ? exit_code(s) : run(&j, o);
  if (s && j.rank == 0) fprintf(stderr, "trainer: %s\n", e.message);
  job_close(&j);
  free(j.losses);
  return code;
}

static int write_text(const char *path, const char *text, size_t length) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_status s = mgrid_write_file(path, MGRID_WRITE_OVER, text, length, &e);
  if (s) fprintf(stderr, "trainer: %s\n", e.message);
  return s ? exit_code(s) : 0;
}

int main(int argc, char **argv) {
  options o = { .c = CONFIG_INIT, .steps = 100 };
  const char *wrong = parse(argc, argv, &o);
  size_t length = 1 << 16;
  if (!wrong && !o.help && !o.write_text && !o.nrest)
    wrong = o.plot ? "--plot wants curves" : "LAYOUT.lua is missing";
  if (!wrong && !o.plot && o.nrest > ARGS) wrong = "too many arguments for the recipe";
  if (wrong || o.help) {
    if (wrong) fprintf(stderr, "trainer: %s%s%s\n", o.at ? o.at : "", o.at ? ": " : "", wrong);
    fputs(help, wrong ? stderr : stdout);
    return wrong ? exit_code(MGRID_USAGE) : 0;
  }
  if (!o.stop || o.stop > o.steps) o.stop = o.steps;
  if (o.plot) return plot(o.plot, o.nrest, (const char *const *)o.rest);
  char *text = o.text ? data_read(o.text, &length) : data_text(o.c.seed, length);
  if (!text || length <= (size_t)o.c.seq) {
    fprintf(stderr, "trainer: %s: %s\n", o.text, text ? "too short" : strerror(errno));
    free(text);
    return exit_code(MGRID_USAGE);
  }
  int code;
  if (o.write_text) {
    code = write_text(o.write_text, text, length);
  } else {
    signal(SIGPIPE, SIG_IGN); /* Open MPI writes once more to the connection of a killed rank */
    MPI_Init(NULL, NULL);
    /* So that calls that fail because of a loss return. Set it before communicators are made, which
    ** inherit it. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    gemm_one_thread();
    code = whole_job(&o, text, length);
    MPI_Finalize();
  }
  free(text);
  return code;
}
