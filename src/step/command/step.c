/* SPDX-License-Identifier: MIT
**
** step.c - moongrid step: what travels in the step of a recipe, and whether every rank reaches its end.
*/
#include "step/command/priced.h"
#include "plan/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
  cli         cli;
  int64_t     rank, eager; /* -1: not given */
  const char *file, *rules, *output;
  step_priced pricing;
  bool        json;
} options;

/* -------------------------------------------------------------------- JSON */

static json_t *counterexample(const mgrid_step *s, const step_verdict *v) {
  json_t *list = json_array();
  for (size_t i = 0; i < v->n; i++) {
    const step_waiting *w = &v->waiting[i];
    const step_program *p = &s->program[w->program];
    const step_node    *n = w->node < p->n ? &p->node[w->node] : NULL;
    json_t             *waits_for = w->waits_for < 0 ? json_null() : json_integer(w->waits_for);
    json_t             *one = n ? mgrid_json_pack("{sIsssssisssOsI}", "rank", (json_int_t)w->rank, "operation",
                                                  mgrid_step_rows[n->kind].name, "family", mgrid_step_family_of(s, n), "line",
                                                  n->line, "file", s->word[n->file], "waits_for", waits_for, "bytes",
                                                  (json_int_t)n->bytes)
                                : mgrid_json_pack("{sIsnsnsnsO}", "rank", (json_int_t)w->rank, "operation", "family", "line",
                                                  "waits_for", waits_for);
    json_decref(waits_for);
    json_array_append_new(list, one);
  }
  return list;
}

static mgrid_status print_json(const options *c, const mgrid_step *s, const step_verdict *v, const step_sum *most,
                               const step_memory *m, const step_price *price, mgrid_error *err) {
  char       digest[33];
  mgrid_text reads = { 0 }, why = { 0 };
  mgrid_step_digest(s, digest);
  mgrid_step_reads_text(s, &reads);
  mgrid_step_verdict_text(s, v, &why);
  json_t *all = mgrid_json_pack(
      "{sssIsIsIsssssssosososs}", "verdict", mgrid_step_told_names[v->told], "classes", (json_int_t)s->nclasses,
      "programs", (json_int_t)s->nprograms, "operations", (json_int_t)mgrid_step_total(s), "digest", digest, "reads",
      mgrid_text_chars(&reads), "rules", c->rules, "families", mgrid_step_families_json(s, most), "memory",
      mgrid_step_memory_json(s, m), "counterexample", counterexample(s, v), "message", mgrid_text_chars(&why));
  mgrid_text_free(&reads);
  mgrid_text_free(&why);
  if (price) mgrid_step_price_json(price, all);
  mgrid_status status = cli_put_json(all, err);
  json_decref(all);
  return status;
}

/* -------------------------------------------------------------------- text */

static const char *const meanings[] = {
  "every rank reaches the end of its program",
  "two calls that meet are not the same",
  "a rank waits for a call that is never made",
  "ranks wait for each other",
  "it ends only if kernels of two communicators run at the same time on a GPU, and these may take each other's SMs",
};

static void print_text(const options *c, const mgrid_step *s, const step_verdict *v, const step_sum *most,
                       const step_memory *m, const step_price *price) {
  char       digest[33], text[32];
  mgrid_text t = { 0 };
  cli_show_head(&c->cli, s->plan, "step of ", false);
  mgrid_step_reads_text(s, &t);
  printf("%zu class%s of ranks%s%s, %" PRId64 " operation%s of all ranks\n", s->nclasses, s->nclasses == 1 ? "" : "es",
         t.len ? "; it reads " : "", mgrid_text_chars(&t), mgrid_step_total(s), mgrid_s_of(mgrid_step_total(s)));
  t.len = 0;
  if (s->nclasses == (size_t)s->plan->content.world && s->nclasses > 1)
    printf("each rank has a program of its own: reads rank or a position of every rank: %zu programs\n", s->nclasses);
  printf("\n  %-24s %12s %12s  of the rank with the most\n", "family", "calls", "bytes");
  for (size_t i = 0; i < s->plan->content.nentries; i++)
    if (most[i].calls)
      printf("  %-24s %12" PRId64 " %12s\n", s->plan->content.entry[i].name, most[i].calls,
             cli_bytes(most[i].bytes, text, sizeof text));
  if (m->peak) {
    printf("\nmemory at most %s on rank %" PRId64, cli_bytes(m->peak, text, sizeof text), m->rank);
    if (m->at) printf(", in '%s'", s->word[m->at]);
    for (size_t i = 0, n = 0; i < m->n; i++)
      if (m->bytes[i])
        printf("%s%s %s", n++ ? ", " : ": ", s->word[m->name[i]], cli_bytes(m->bytes[i], text, sizeof text));
    printf("\n");
  }
  if (price) cli_show_price(&c->cli, price);
  mgrid_step_digest(s, digest);
  printf("\ndigest  %s\nverdict %s under the rules of %s: %s\n", digest, mgrid_step_told_names[v->told],
         strcmp(c->rules, "mpi") == 0 ? "MPI" : "NCCL", meanings[v->told]);
  if (v->n) {
    mgrid_text_str(&t, "  ");
    mgrid_step_verdict_text(s, v, &t);
    mgrid_text_str(&t, "\n");
    cli_fold((void *)(uintptr_t)&c->cli, mgrid_text_chars(&t), t.len);
  }
  mgrid_text_free(&t);
}

static mgrid_status print_program(const options *c, const mgrid_step *s, mgrid_error *err) {
  mgrid_text t = { 0 };
  int32_t class = s->of[c->rank];
  mgrid_text_add(&t, "rank %" PRId64 ", class %d of %zu, %" PRId64 " ranks\n", c->rank, class, s->nclasses,
                 s->class[class].ranks);
  mgrid_step_program_text(s, &s->program[s->class[class].program], true, &t);
  mgrid_status status = t.failed ? mgrid_oom(err) : MGRID_OK;
  if (!status) cli_sink(stdout, mgrid_text_chars(&t), t.len);
  mgrid_text_free(&t);
  return status;
}

/* --------------------------------------------------------------------- run */

static mgrid_status judge(const options *c, const mgrid_step *s, mgrid_error *err) {
  step_verdict v;
  step_memory  m;
  step_price   price;
  bool         priced = false, mpi = strcmp(c->rules, "mpi") == 0;
  if (c->rank >= 0) return print_program(c, s, err);
  mgrid_status status = mgrid_step_conclude(s, mpi ? STEP_BLOCKING : STEP_NCCL, c->eager, &v, err);
  if (!status) status = mgrid_step_memory(s, &m, err);
  step_sum *most = status ? NULL : mgrid_step_most(s, err);
  if (!most) return err->status;
  if (v.told == STEP_PROVED || v.told == STEP_HAZARD)
    status = cli_price(&c->cli, &c->pricing, s, mpi, c->eager, c->output, &price, &priced, err);
  else if (c->output)
    status = mgrid_fail(err, MGRID_REFUSED, "a step that does not end has no picture: its verdict is %s",
                        mgrid_step_told_names[v.told]);
  if (status == MGRID_LIMIT)
    mgrid_error_reword(err, "the verdict is %s; %s", mgrid_step_told_names[v.told], err->message);
  if (!status && c->json)
    status = print_json(c, s, &v, most, &m, priced ? &price : NULL, err);
  else if (!status)
    print_text(c, s, &v, most, &m, priced ? &price : NULL);
  if (priced) mgrid_step_price_free(&price);
  free(most);
  return status ? status : v.told == STEP_PROVED ? MGRID_OK : MGRID_REFUSED; /* exit code 1 */
}

static mgrid_status show(const cli *c, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], mgrid_error *err) {
  const options *o = (const options *)c;
  mgrid_step    *s = mgrid_step_new(rt[0], plan[0], o->file, err);
  mgrid_status   status = s ? judge(o, s, err) : err->status;
  mgrid_step_free(s);
  return status;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options c = { .rank = -1, .rules = "nccl" };
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (cli_needs(&c.cli, c.cli.world)) return MGRID_USAGE;
  if (cli_is_saved(&c.cli)) return cli_usage(&c.cli, "a saved plan has no step; step takes the recipe");
  if (cli_beyond(&c.cli, c.rank, c.cli.world)) return MGRID_USAGE;
  if (c.eager && strcmp(c.rules, "mpi") != 0) return cli_usage(&c.cli, "--eager is for --rules mpi");
  return cli_with_plans(&c.cli, NULL, show);
}

extern const cli_command command_step;
const cli_command        command_step = {
         .name = "step",
         .takes = "RECIPE --world N [NAME=VALUE ...]",
         .does = "what travels, the proof that no rank waits forever, and the price",
         .usage = "moongrid step RECIPE --world N [NAME=VALUE ...] [--step FILE] [--rank R] [--rules nccl|mpi]\n"
                         "       [--machine MACHINE [--flops X] [--costs FILE] [-o FILE]] [--json]",
         .about = "Evaluate the step of a recipe, once for each class of ranks that it cannot tell apart, and prove that\n"
                         "every rank reaches its end. The verdict is proved; mismatch, if calls that meet differ; unmatched, if\n"
                         "a call never meets its partner; cycle, if ranks wait for each other; hazard, if ranks may wait for\n"
                         "each other when SMs of a GPU are short. The exit code is 1 unless the step is proved.",
         .notes = "Under the rules of NCCL streams run side by side, each in its order, and so do the calls on one\n"
                         "communicator; under those of MPI each call ends before the next begins. Sends wait for their receiver.\n"
                         "\n"
                         "With a machine the step is executed in time, one rank for each type: streams side by side, each call as\n"
                         "long as the fastest algorithm takes over the links that its group crosses and shares with the others\n"
                         "of its family. src/step/README.md has the model and what it leaves out.",
         .sample = "moongrid step megatron --world 64 tp=8 pp=4 layers=32",
         .recipe = true,
         .options = { CLI_WORLD("ranks in the world"),
                      { "step", cli_text, offsetof(options, file), "FILE",
                        .help = "a file that returns the step, function (s, p, base), instead of the recipe's" },
                      { "rank", cli_index, offsetof(options, rank), "R",
                        .help = "the program of one rank, with the lines of the recipe" },
                      { "rules", cli_text, offsetof(options, rules), "nccl|mpi",
                        .help = "the rules of the proof; default: nccl" },
                      { "eager", cli_size, offsetof(options, eager), "BYTES",
                        .help = "with --rules mpi: sends of at most this number of bytes do not wait" },
                      { "flops", cli_text, offsetof(options, pricing.flops), "X",
                        .help = "flops of a GPU in a second, as 400e12 or 400T; default: the peak of its data sheet",
                        .head = "with --machine, the price" },
                      { "costs", cli_text, offsetof(options, pricing.costs), "FILE",
                        .help =
                            "JSON: flops, latencies, measured efficiencies; default: the key \"costs\" of a machine in JSON" },
                      { "output", cli_text, offsetof(options, output), "FILE",
                        .help = "draw the step over time: .svg, by stage and stream; .html, a page with zoom that shows which "
                                       "rank waits for which; .json, events for Perfetto and chrome://tracing",
                        .letter = true },
                      { "json", cli_flag, offsetof(options, json), .help = "one JSON object" } },
         .run = run,
         .after = "check",
};
