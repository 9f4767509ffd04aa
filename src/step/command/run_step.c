/* SPDX-License-Identifier: MIT
**
** run_step.c - moongrid run --step: execute the step of a recipe, and compare what was planned with what was measured.
*/
#include "comm/compare.h"
#include "command/slice.h"
#include "step/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

mgrid_status cli_run_step(const cli *c, mgrid_runtime *rt, mgrid_state *state, bool json, mgrid_error *err);

static mgrid_status read_how(const cli *c, step_how *how, mgrid_error *err) {
  const char *scale = cli_added_text(c, "scale"), *by = cli_added_text(c, "compute");
  char       *end = NULL;
  int64_t     timeout = cli_added_number(c, "timeout");
  *how = (step_how){ cli_added_number(c, "step"), scale ? strtod(scale, &end) : 1, 1e14,
                     timeout ? (double)timeout : MGRID_TIMEOUT, STEP_NOTHING };
  if (scale && (*end || end == scale || !(how->scale > 0) || !isfinite(how->scale)))
    return mgrid_fail(err, MGRID_USAGE, "--scale is a number above 0, as 0.01, not '%s'", scale);
  if (by && strcmp(by, "sleep") != 0 && strcmp(by, "gemm") != 0)
    return mgrid_fail(err, MGRID_USAGE, "--compute is sleep or gemm, not '%s'", by);
  if (by) how->compute = *by == 's' ? STEP_SLEEP : STEP_GEMM;
  return MGRID_OK;
}

/* Whether all communicators of the step are of the backend of GPUs. */
static bool is_all_of(const mgrid_step *s, const mgrid_backend *b) {
  for (size_t i = 0; i < s->nslots; i++) {
    const mgrid_descriptor *d = s->plan->content.entry[s->slot[i].entry].choice->backend;
    if (d && d->native && strcmp(d->name, b->kind->name) != 0) return false;
  }
  return true;
}

/* Refuse a step that may wait forever: on streams, or, where some call blocks, with each call ending before the next
** begins. */
static mgrid_status check_proved(const cli *c, const mgrid_step *s, const mgrid_backend *b, mgrid_error *err) {
  step_verdict v;
  bool         streams = b->ops->streams && is_all_of(s, b);
  if (cli_added_flag(c, "unproved")) return MGRID_OK;
  mgrid_status status = mgrid_step_conclude(s, streams ? STEP_NCCL : STEP_BLOCKING, 0, &v, err);
  if (status || v.told == STEP_PROVED) return status;
  mgrid_text why = { 0 };
  mgrid_step_verdict_text(s, &v, &why);
  status = mgrid_fail(err, MGRID_REFUSED,
                      "the step is not proved under the rules of %s (%s), --unproved runs it: %.700s",
                      streams ? "NCCL" : "MPI", mgrid_step_told_names[v.told], mgrid_text_chars(&why));
  mgrid_text_free(&why);
  return status;
}

/* All ranks have the same programs. */
static mgrid_status agree(mgrid_backend *b, const mgrid_step *s, mgrid_error *err) {
  char        digest[33], text[64];
  mgrid_peers all = mgrid_peers_all(b);
  mgrid_step_digest(s, digest);
  snprintf(text, sizeof text, "has the step %s", digest);
  mgrid_brought mine = { s->digest[0] ^ s->digest[1], text, "the step" };
  return mgrid_compare(&all, &mine, err);
}

/* -------------------------------------------------------------------- report */

/* What every rank brings to rank 0: the seconds of a step, then of each family calls, bytes and seconds of all steps. */
typedef struct gathered {
  size_t  width;
  int64_t world;
  double *all;
} gathered;

static double of(const gathered *g, int64_t rank, size_t family, int field) {
  return g->all[(size_t)rank * g->width + 1 + 3 * family + (size_t)field];
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct family_row {
  double  calls, bytes, planned_calls, planned_bytes; /* of all ranks and steps; planned: of all ranks, one step */
  double  median, worst, least;                       /* seconds of a step in its calls */
  int64_t worst_rank, members;
} family_row;

static family_row row_of(const gathered *g, const mgrid_step *s, size_t family, double steps, double *scratch,
                         step_sum *sum) {
  family_row row = { .least = HUGE_VAL, .worst_rank = -1 };
  size_t     n = 0;
  for (int64_t r = 0; r < g->world; r++) {
    mgrid_step_sums(s, &s->program[s->class[s->of[r]].program], sum);
    row.planned_calls += (double)sum[family].calls, row.planned_bytes += (double)sum[family].bytes;
    if (sum[family].calls == 0) continue;
    double seconds = of(g, r, family, 2) / steps;
    row.calls += of(g, r, family, 0), row.bytes += of(g, r, family, 1);
    scratch[n++] = seconds;
    if (seconds < row.least) row.least = seconds;
    if (seconds >= row.worst) row.worst = seconds, row.worst_rank = r;
  }
  qsort(scratch, n, sizeof *scratch, ascending);
  row.median = n ? scratch[n / 2] : 0;
  row.members = (int64_t)n;
  return row;
}

/* The rank that others wait for: it spends the least time in calls. -1: there is no difference to speak of. */
static int64_t late_rank(const gathered *g, size_t families) {
  double  least = HUGE_VAL, most = 0;
  int64_t late = -1;
  for (int64_t r = 0; r < g->world; r++) {
    double sum = 0;
    for (size_t i = 0; i < families; i++) sum += of(g, r, i, 2);
    if (sum < least) least = sum, late = r;
    if (sum > most) most = sum;
  }
  return most > 1.5 * least ? late : -1;
}

static json_t *family_json(const family_row *w, double steps) {
  return json_pack("{sfsfsfsfsfsfsIsf}", "calls", w->calls / steps, "bytes", w->bytes / steps, "planned_calls",
                   w->planned_calls, "planned_bytes", w->planned_bytes, "seconds", w->median, "worst", w->worst,
                   "worst_rank", (json_int_t)w->worst_rank, "waiting", w->worst - w->least);
}

static mgrid_status report(const mgrid_step *s, const gathered *g, const step_how *how, bool json, mgrid_error *err) {
  size_t    families = s->plan->content.nentries;
  double   *scratch = malloc((size_t)(g->world + 1) * sizeof *scratch), steps = (double)how->steps;
  step_sum *sum = calloc(families + 1, sizeof *sum);
  json_t   *all = json_object();
  char      text[32];
  if (!scratch || !sum || !all) {
    free(scratch);
    free(sum);
    json_decref(all);
    return mgrid_oom(err);
  }
  for (int64_t r = 0; r < g->world; r++) scratch[r] = g->all[(size_t)r * g->width] / steps;
  qsort(scratch, (size_t)g->world, sizeof *scratch, ascending);
  double median = scratch[g->world / 2], worst = scratch[g->world - 1];
  if (!json)
    printf("\nstep           %" PRId64 " time%s on %" PRId64
           " ranks: %.3g ms each (median), %.3g ms on the slowest rank\n\n"
           "  %-22s %12s %12s %12s %12s %12s %12s %6s %12s   of all ranks, a step\n",
           how->steps, mgrid_s_of(how->steps), g->world, 1e3 * median, 1e3 * worst, "family", "calls", "planned",
           "bytes", "planned", "median ms", "worst ms", "rank", "waiting ms");
  for (size_t i = 0; i < families; i++) {
    family_row w = row_of(g, s, i, steps, scratch, sum);
    if (w.planned_calls <= 0) continue;
    char planned[32];
    if (json)
      json_object_set_new(all, s->plan->content.entry[i].name, family_json(&w, steps));
    else
      printf("  %-22s %12.0f %12.0f %12s %12s %12.3f %12.3f %6" PRId64 " %12.3f\n", s->plan->content.entry[i].name,
             w.calls / steps, w.planned_calls, cli_bytes((int64_t)(w.bytes / steps), text, sizeof text),
             cli_bytes((int64_t)w.planned_bytes, planned, sizeof planned), 1e3 * w.median, 1e3 * w.worst, w.worst_rank,
             1e3 * (w.worst - w.least));
  }
  int64_t      late = late_rank(g, families);
  mgrid_status status = MGRID_OK;
  if (json) {
    json_t *line = json_pack("{sIsIsfsfsfsosO}", "steps", (json_int_t)how->steps, "ranks", (json_int_t)g->world,
                             "scale", how->scale, "seconds", median, "worst", worst, "late",
                             late < 0 ? json_null() : json_integer(late), "families", all);
    status = cli_put_json(line, err);
    json_decref(line);
  } else if (late >= 0) {
    printf("\nlate           rank %" PRId64 ": it waits the least, so the others wait for it\n", late);
  }
  fflush(stdout);
  free(scratch);
  free(sum);
  json_decref(all);
  return status;
}

/* ---------------------------------------------------------------------- run */

static mgrid_status execute(const cli *c, const mgrid_step *s, mgrid_state *state, const step_how *how, bool json,
                            mgrid_error *err) {
  mgrid_backend *b = state->backend;
  size_t         families = s->plan->content.nentries;
  int64_t        world = mgrid_backend_world(b);
  gathered       g = { 1 + 3 * families, world, NULL };
  step_spent    *spent = calloc(families + 1, sizeof *spent);
  double        *mine = calloc(g.width, sizeof *mine);
  g.all = calloc((size_t)world * g.width, sizeof *g.all);
  mgrid_status status = mgrid_verdict(b, spent && mine && g.all ? MGRID_OK : MGRID_NO_MEMORY, err, err);
  cli_progress(c, "executing the step");
  if (!status) status = mgrid_step_execute(s, state, how, spent, &mine[0], err);
  cli_progress_end();
  for (size_t i = 0; i < families && !status; i++)
    mine[1 + 3 * i] = spent[i].calls, mine[2 + 3 * i] = spent[i].bytes, mine[3 + 3 * i] = spent[i].seconds;
  if (!status) status = b->ops->allgather(b, mine, g.all, g.width * sizeof *mine, err);
  if (!status && b->rank == 0) status = report(s, &g, how, json, err);
  free(spent);
  free(mine);
  free(g.all);
  return status;
}

mgrid_status cli_run_step(const cli *c, mgrid_runtime *rt, mgrid_state *state, bool json, mgrid_error *err) {
  mgrid_error    own = MGRID_ERROR_INIT;
  mgrid_backend *b = state->backend;
  step_how       how;
  mgrid_step    *s = NULL;
  mgrid_status   status = read_how(c, &how, &own);
  if (!status && !rt) status = mgrid_fail(&own, MGRID_USAGE, "--step needs the recipe: a saved plan has no step");
  if (!status && !b->ops->together && !b->ops->streams)
    status = mgrid_fail(&own, MGRID_UNSUPPORTED, "--step runs over MPI or on GPUs; %s begins no calls together",
                        mgrid_backend_name(b));
  if (!status && b->ops->streams && how.compute == STEP_GEMM)
    status = mgrid_fail(&own, MGRID_UNSUPPORTED, "--compute gemm multiplies on the CPU; with %s take sleep",
                        mgrid_backend_name(b));
  if (!status && !(s = mgrid_step_new(rt, state->plan, NULL, &own))) status = own.status;
  if (!status) status = check_proved(c, s, b, &own);
  status = mgrid_verdict(b, status, &own, &own);
  if (!status) status = agree(b, s, &own);
  if (!status) status = execute(c, s, state, &how, json, &own);
  mgrid_step_free(s);
  return status ? mgrid_error_pass(err, &own) : MGRID_OK;
}
