/* SPDX-License-Identifier: MIT
**
** price.c - the price of a step as text; what the command line says of the machine.
*/
#include "machine/command/given.h"
#include "command/built_in_texts.h"
#include "step/command/chart.h"
#include "step/command/priced.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- options */

static mgrid_status read_flops(const char *text, double *flops, mgrid_error *err) {
  static const char units[] = "kMGTPE";
  char             *end;
  double            x = mgrid_read_double(text, &end);
  const char       *unit = *end ? strchr(units, *end) : NULL;
  if (end != text && unit) x *= pow(1000, (double)(unit - units + 1)), end++;
  if (end == text || (*end && strcmp(end, "FLOP/s") != 0 && strcmp(end, "flops") != 0) || !(x > 0) || !(x < 1e24))
    return mgrid_fail(err, MGRID_USAGE, "--flops is what a GPU does in a second, as 400e12 or 400T, not '%s'", text);
  return *flops = x, MGRID_OK;
}

/* Return the costs of a file as JSON text, to be freed: the whole file, or the key "costs" of a machine. */
static char *costs_of(const char *path, bool machine, mgrid_error *err) {
  json_error_t why;
  json_t      *all = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
  if (!all && machine) return NULL; /* a file of another kind */
  if (!all) {
    mgrid_fail(err, MGRID_BAD_VALUE, "--costs %s:%d: %.300s", path, why.line > 0 ? why.line : 0, why.text);
    return NULL;
  }
  const json_t *costs = machine ? json_object_get(all, "costs") : all;
  char         *text = costs ? json_dumps(costs, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
  if (costs && !text) mgrid_oom(err);
  json_decref(all);
  return text;
}

static char *read_costs(const cli *c, const step_priced *o, mgrid_error *err) {
  if (o->costs) return costs_of(o->costs, false, err);
  if (!c->machine) return NULL;
  size_t n = strcspn(c->machine, " \t");
  char   path[4096];
  snprintf(path, sizeof path, "%.*s", (int)n, c->machine);
  return mgrid_machine_is_file(c->machine) ? costs_of(path, true, err) : NULL;
}

/* ---------------------------------------------------------------- pictures */

enum { EVERY = 400000 }; /* records of a picture before rounds of loops are drawn as one */

typedef enum picture { NONE, SVG, PAGE, TRACE } picture;

static picture picture_of(const char *path) {
  static const char *const ends[] = { ".svg", ".html", ".json" };
  size_t                   n = path ? strlen(path) : 0;
  for (int i = 0; i < 3; i++)
    if (n > strlen(ends[i]) && strcmp(path + n - strlen(ends[i]), ends[i]) == 0) return (picture)(SVG + i);
  return NONE;
}

/* Append "tp=8 pp=4": what differs from the defaults. */
static void put_settings(const mgrid_content *c, mgrid_text *t) {
  for (size_t i = 0; i < c->nparams; i++)
    if (!c->param[i].usual) mgrid_text_add(t, "%s%s=%s", t->len ? " " : "", c->param[i].name, c->param[i].value);
}

static mgrid_status draw(const step_price *p, const step_records *r, const char *output, mgrid_error *err) {
  const mgrid_content *plan = &p->by.s->plan->content;
  mgrid_text           title = { 0 }, settings = { 0 }, t = { 0 };
  chart                c;
  mgrid_text_str(&title, "step of ");
  mgrid_text_shown(&title, *plan->recipe ? plan->recipe : "a recipe");
  mgrid_text_add(&title, " over %" PRId64 " rank%s", plan->world, mgrid_s_of(plan->world));
  put_settings(plan, &settings);
  mgrid_status status = mgrid_chart_make(p, r, mgrid_text_chars(&title), mgrid_text_chars(&settings), &c, err);
  mgrid_text_free(&title);
  mgrid_text_free(&settings);
  if (status) return status;
  picture how = picture_of(output);
  if (how == SVG) mgrid_chart_svg(&c, &t);
  if (how == PAGE) mgrid_chart_html(&c, cli_text_of("chart.html"), &t);
  if (how == TRACE) mgrid_chart_trace(&c, &t);
  status = cli_write_file(output, &t, err);
  mgrid_text_free(&t);
  mgrid_chart_free(&c);
  return status;
}

static mgrid_status check(const step_priced *o, const char *output, bool machine, mgrid_error *err) {
  const char *needs = o->flops ? "flops" : o->costs ? "costs" : output ? "output" : NULL;
  if (needs && !machine)
    return mgrid_fail(err, MGRID_USAGE,
                      "--%s needs a machine: --machine dgx-h100, or levels, as 'node:*[50GB/s] gpu:8[300GB/s]'", needs);
  if (output && picture_of(output) == NONE)
    return mgrid_fail(err, MGRID_USAGE, "--output is a file that ends with .svg, .html or .json, not '%s'", output);
  return MGRID_OK;
}

mgrid_status cli_price(const cli *c, const step_priced *o, const mgrid_step *s, bool mpi, int64_t eager,
                       const char *output, step_price *out, bool *priced, mgrid_error *err) {
  step_costs                 costs;
  const mgrid_machine_model *m = cli_given_machine(c, s->plan, err);
  mgrid_status               status = err->status ? err->status : check(o, output, m != NULL, err);
  if (status || !m) return status;
  char *text = read_costs(c, o, err);
  status = err->status;
  if (!status) status = mgrid_step_costs_of(m, mpi, text, &costs, err);
  if (!status && o->flops) status = read_flops(o->flops, &costs.flops, err);
  costs.eager = eager > 0 ? eager : 0;
  step_records records = { .every = EVERY };
  if (!status) status = mgrid_step_price_of(s, m, &costs, STEP_AS_NEEDED, output ? &records : NULL, out, err);
  *priced = !status;
  if (!status && output && (status = draw(out, &records, output, err))) {
    mgrid_step_price_free(out);
    *priced = false;
  }
  mgrid_step_records_free(&records);
  free(text);
  return status;
}

/* -------------------------------------------------------------------- text */

const char *cli_seconds(double seconds, char *buf, size_t len) {
  const char *unit = seconds >= 1 ? "s" : seconds >= 1e-3 ? "ms" : seconds >= 1e-6 ? "us" : "ns";
  double      by = seconds >= 1 ? 1 : seconds >= 1e-3 ? 1e3 : seconds >= 1e-6 ? 1e6 : 1e9;
  mgrid_format(buf, len, "%.*f %s", seconds * by >= 100 ? 0 : seconds * by >= 10 ? 1 : 2, seconds * by, unit);
  return seconds > 0 ? buf : "0";
}

static const char *bytes_of(double bytes, char *buf, size_t len) {
  return cli_bytes(bytes < 9e18 ? (int64_t)bytes : INT64_MAX, buf, len);
}

static void show_family(const step_price *p, size_t entry) {
  const step_family_price *f = &p->family[entry];
  char                     text[32], seconds[32];
  mgrid_text               t = { 0 };
  if (f->seconds <= 0) return;
  for (size_t l = 0; l < p->by.m->ntiers; l++) {
    const step_crossing *x = &p->crossing[entry * p->by.m->ntiers + l];
    if (x->bytes > 0)
      mgrid_text_add(&t, "%s%s %s", t.len ? ", " : "", p->by.m->tier[l].name, bytes_of(x->bytes, text, sizeof text));
  }
  for (int i = 0, n = 0; i < STEP_KINDS; i++)
    if (f->way[i]) mgrid_text_add(&t, "%s%s by %s", n++ ? ", " : "; ", mgrid_step_rows[i].name, f->way[i]);
  printf("  %-24s %12s  %s\n", p->by.s->plan->content.entry[entry].name,
         cli_seconds(f->seconds, seconds, sizeof seconds), mgrid_text_chars(&t));
  mgrid_text_free(&t);
}

static void show_share(const char *what, double part, double all, const char *meaning) {
  char text[32];
  printf("  %-10s %10s %5.1f%%  %s\n", what, cli_seconds(part, text, sizeof text), all > 0 ? 100 * part / all : 0,
         meaning);
}

void cli_show_price(const cli *c, const step_price *p) {
  char       text[32], out[32];
  mgrid_text machine = { 0 };
  (void)c;
  mgrid_machine_text(p->by.m, &machine);
  printf("\ntime of the step %s on %s", cli_seconds(p->seconds, text, sizeof text), mgrid_text_chars(&machine));
  if (p->by.costs.flops > 0) printf(", %.4g TFLOP/s", p->by.costs.flops / 1e12);
  if (*p->by.costs.source) printf(" (%s)", p->by.costs.source);
  printf("\n");
  for (size_t l = 0; l < p->by.m->ntiers; l++) {
    const step_fit *f = &p->by.costs.fit[l];
    if (f->n)
      printf("%s fitted to %zu measured call%s: a hop takes %s, %.3g of the bandwidth; error %.1f%% at the median, at "
             "most "
             "%.1f%%\n",
             p->by.m->tier[l].name, f->n, mgrid_s_of((int64_t)f->n), cli_seconds(f->latency, text, sizeof text),
             f->share, 100 * f->median, 100 * f->worst);
  }
  show_share("computes", p->mean.compute, p->seconds, "of the mean rank");
  show_share("exposed", p->mean.exposed, p->seconds, "bytes move, and nothing computes");
  show_share("bubble", mgrid_step_bubble(p), p->seconds, "neither: it waits for other ranks, or has ended");
  show_share("hidden", p->mean.hidden, p->seconds, "bytes move next to computes, as part of these");
  printf("\n  %-24s %12s  %s\n", "family", "time", "bytes out of domains, of all ranks; algorithms");
  for (size_t i = 0; i < p->by.s->plan->content.nentries; i++) show_family(p, i);
  if (p->busiest.level >= 0) {
    machine.len = 0;
    mgrid_step_busiest_text(p, &machine);
    printf("\nbusiest link: out of %s %s, %s of the step at its bandwidth\n", mgrid_text_chars(&machine),
           bytes_of(p->busiest.bytes, text, sizeof text), cli_seconds(p->busiest.seconds, out, sizeof out));
  }
  mgrid_text_free(&machine);
}
