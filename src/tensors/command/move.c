/* SPDX-License-Identifier: MIT
**
** move.c - moongrid move: which bytes go where when the tensors of one plan become those of another.
*/
#include "tensors/command/words.h"
#include "tensors/between_plans.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct options {
  cli         cli;
  int64_t     rank, machine; /* rank -1: not given; ranks of a machine, 0: not known */
  const char *tensor, *map;
  bool        json, list, convert;
} options;

/* ---------------------------------------------------------------- arguments */

mgrid_status cli_map(const char *text, int64_t most, int64_t **out, size_t *n, mgrid_error *err) {
  const char *p = text;
  int64_t    *list = malloc((size_t)most * sizeof *list);
  if (!list) return mgrid_oom(err);
  for (*n = 0;; p++) {
    int64_t first, last;
    if (!cli_range(&p, &first, &last) || last > MGRID_WORLD_MAX) {
      free(list);
      return mgrid_fail(err, MGRID_BAD_VALUE,
                        "--map '%.100s', character %zu: expected a rank, or a range such as 8..15", text,
                        (size_t)(p - text) + 1);
    }
    if (last - first >= most - (int64_t)*n) {
      free(list);
      return mgrid_fail(err, MGRID_REFUSED, "the map has more than the %" PRId64 " ranks of the world after the move",
                        most);
    }
    while (first <= last) list[(*n)++] = first++;
    if (!*p) break;
  }
  *out = list;
  return MGRID_OK;
}

/* -------------------------------------------------------------------- whole */

static void json_tally(const mgrid_tally *t, int64_t machine) {
  printf("\"minimum\": %" PRId64 ", \"sent\": %" PRId64 ", \"stay\": %" PRId64 ", \"max_send\": %" PRId64
         ", \"max_receive\": %" PRId64 ", \"peers\": %" PRId64 ", ",
         t->minimum, t->sent, t->stay, t->max_send, t->max_receive, t->peers);
  if (t->rounds < 0)
    printf("\"rounds\": null, ");
  else
    printf("\"rounds\": %" PRId64 ", ", t->rounds);
  printf("\"messages\": %" PRId64 ", \"busiest\": %" PRId64 ", \"gather\": %" PRId64, t->messages, t->busiest,
         t->gather);
  if (machine) printf(", \"crossing\": %" PRId64, t->crossing);
}

/* `wide`: columns of the name. */
static void text_tally(int wide, const char *name, const mgrid_tally *t, int64_t machine) {
  char b[6][32], rounds[32] = "-";
  if (t->rounds >= 0) snprintf(rounds, sizeof rounds, "%" PRId64, t->rounds);
  printf("%-*s %10s %10s %10s %10s %10s %7" PRId64 " %7s %10s", wide, name, cli_bytes(t->stay, b[0], sizeof b[0]),
         cli_bytes(t->sent, b[1], sizeof b[1]), cli_bytes(t->minimum, b[2], sizeof b[2]),
         cli_bytes(t->max_send, b[3], sizeof b[3]), cli_bytes(t->max_receive, b[4], sizeof b[4]), t->peers, rounds,
         cli_bytes(t->gather, b[5], sizeof b[5]));
  if (machine) printf(" %10s", cli_bytes(t->crossing, b[0], sizeof b[0]));
  printf("\n");
}

typedef struct listing {
  const mgrid_pairs    *pairs;
  const mgrid_schedule *schedule;
  bool                  json, any;
  int                   wide; /* columns of the names */
} listing;

static void list_message(void *ud, const mgrid_message *m) {
  listing *l = ud;
  int64_t  round = l->schedule ? mgrid_schedule_round(l->schedule, m->from, m->to) : -1;
  if (!l->json) {
    printf("%9" PRId64 " -> %-9" PRId64 " %-*s %14" PRId64, m->from, m->to, l->wide, l->pairs->name[m->tensor],
           m->bytes);
    printf(round < 0 ? "\n" : " %7" PRId64 "\n", round);
    return;
  }
  printf("%s\n    {\"from\": %" PRId64 ", \"to\": %" PRId64 ", \"tensor\": \"%s\", \"bytes\": %" PRId64,
         l->any ? "," : "", m->from, m->to, l->pairs->name[m->tensor], m->bytes);
  printf(round < 0 ? ", \"round\": null}" : ", \"round\": %" PRId64 "}", round);
  l->any = true;
}

static void nothing(void *ud, const mgrid_message *m) { (void)ud, (void)m; }

/* Print the notes on cuts that leave ranks without any element of a tensor, on either side. Names need no escapes in
** JSON. */
static void json_notes(const mgrid_plan *from, const mgrid_plan *to) {
  bool any = false;
  for (int side = 0; side < 2; side++) {
    mgrid_text notes = { 0 };
    mgrid_plan_notes(side ? to : from, true, &notes);
    for (const char *at = mgrid_text_chars(&notes), *end; (end = strchr(at, '\n')); at = end + 1, any = true)
      printf("%s\n    \"%s%.*s\"", any ? "," : ",\n  \"notes\": [", side ? "after: " : "before: ", (int)(end - at), at);
    mgrid_text_free(&notes);
  }
  if (any) printf("\n  ]");
}

/* Print the tables, then the messages in a second walk. */
static mgrid_status show_all(const options *o, const mgrid_pairs *p, const mgrid_plan *from, const mgrid_plan *to,
                             mgrid_error *err) {
  mgrid_schedule schedule = { 0, NULL, 0 };
  mgrid_error    why = MGRID_ERROR_INIT;
  mgrid_tally   *tally = malloc((p->n + 1) * sizeof *tally), *again = malloc((p->n + 1) * sizeof *again);
  mgrid_status   s = cli_all_ranks("a move", p->ranks, err);
  if (!s && !(tally && again)) s = mgrid_oom(err);
  bool    rounds = !s && mgrid_schedule_make(&schedule, p, &why) == MGRID_OK;
  listing l = { p, rounds ? &schedule : NULL, o->json, false, 16 };
  for (size_t i = 0; i < p->n; i++) l.wide = cli_wider(l.wide, p->name[i]);
  if (!s && why.status && why.status != MGRID_LIMIT) s = mgrid_error_pass(err, &why);
  if (!s) s = mgrid_pairs_tally(p, l.schedule, tally, nothing, NULL, err);
  cli_progress_end();
  if (!s && o->json) {
    printf("{\n  \"tensors\": [");
    for (size_t i = 0; i < p->n; i++) {
      printf("%s\n    {\"name\": \"%s\", ", i ? "," : "", p->name[i]);
      json_tally(&tally[i], o->machine);
      printf("}");
    }
    printf("\n  ],\n  \"all\": {");
    json_tally(&tally[p->n], o->machine);
    printf("}");
    json_notes(from, to);
    if (o->list) printf(",\n  \"messages\": [");
  } else if (!s) {
    printf("%-*s %10s %10s %10s %10s %10s %7s %7s %10s%s\n", l.wide, "tensor", "stays", "sent", "minimum", "max send",
           "max recv", "peers", "rounds", "by gather", o->machine ? "   crossing" : "");
    for (size_t i = 0; i < p->n; i++) text_tally(l.wide, p->name[i], &tally[i], o->machine);
    if (p->n > 1) text_tally(l.wide, "in all", &tally[p->n], o->machine);
    if (!rounds) printf("no rounds: %s\n", why.message);
    if (o->list)
      printf("\n%9s    %-9s %-*s %14s %7s\n", "from", "to", l.wide, "tensor", "bytes", rounds ? "round" : "");
  }
  if (!s && o->list && !isatty(STDOUT_FILENO))
    cli_progress(&o->cli, "writing the messages of %" PRId64 " ranks", p->ranks);
  if (!s && o->list) s = mgrid_pairs_tally(p, l.schedule, again, list_message, &l, err);
  cli_progress_end();
  if (!s && o->json) printf(o->list ? "\n  ]\n}\n" : "\n}\n");
  mgrid_schedule_free(&schedule);
  free(tally);
  free(again);
  return s;
}

/* ----------------------------------------------------------------- one rank */

static mgrid_status show_rank(const options *o, const mgrid_move *m, const mgrid_plan *from, const mgrid_plan *to,
                              mgrid_error *err) {
  mgrid_move_sums sums = MGRID_MOVE_SUMS_INIT;
  mgrid_move_peer peer = MGRID_MOVE_PEER_INIT;
  mgrid_status    s = mgrid_move_bytes(m, &sums, err);
  if (s) return s;
  printf(o->json ? "{\n  \"rank\": %" PRId64 ", \"stay\": %" PRId64 ", \"send\": %" PRId64 ", \"receive\": %" PRId64
                   ",\n  \"peers\": ["
                 : "rank %" PRId64 ": %" PRId64 " bytes stay, %" PRId64 " are sent, %" PRId64 " received\n",
         o->rank, sums.stay, sums.send, sums.receive);
  if (!o->json && mgrid_move_npeers(m)) printf("\n%9s %14s %14s\n", "peer", "sends", "receives");
  for (size_t i = 0; i < mgrid_move_npeers(m) && !s; i++) {
    s = mgrid_move_peers(m, i, &peer, err);
    if (o->json)
      printf("%s\n    {\"rank\": %" PRId64 ", \"send\": %" PRId64 ", \"receive\": %" PRId64 "}", i ? "," : "",
             peer.rank, peer.send, peer.receive);
    else
      printf("%9" PRId64 " %14" PRId64 " %14" PRId64 "\n", peer.rank, peer.send, peer.receive);
  }
  if (o->json) {
    printf(mgrid_move_npeers(m) ? "\n  ]" : "]");
    json_notes(from, to);
    printf("\n}\n");
  }
  return s;
}

static mgrid_status show(const cli *c, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], mgrid_error *err) {
  options            own = *(const options *)c, *o = &own;
  mgrid_move_options how = MGRID_MOVE_OPTIONS_INIT;
  const mgrid_plan  *from = plan[0], *to = plan[1];
  (void)rt;
  own.machine = cli_machine_ranks(c, from);
  how.convert = o->convert, how.machine = o->machine;
  int64_t     *map = NULL;
  mgrid_status s = o->map ? cli_map(o->map, mgrid_plan_world(to), &map, &how.nranks, err) : MGRID_OK;
  size_t       n = o->tensor ? 1 : 0;
  how.ranks = map;
  if (!s && o->rank >= 0) {
    mgrid_move *m = mgrid_move_new(from, to, o->rank, n, &o->tensor, &how, err);
    cli_progress_end();
    s = m ? show_rank(o, m, from, to, err) : err->status;
    mgrid_move_free(m);
  } else if (!s) {
    mgrid_pairs pairs;
    s = mgrid_pairs_init(&pairs, from, to, n, &o->tensor, &how, err);
    if (!s) s = show_all(o, &pairs, from, to, err);
    mgrid_pairs_free(&pairs);
  }
  free(map);
  cli_progress_end();
  if (!s) cli_note_items(c, from, "before: ");
  if (!s) cli_note_items(c, to, "after: ");
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options a = { .rank = -1 }, b = { .rank = -1 };
  if (!cli_parse_sides(&a.cli, &b.cli, false, self, argc, argv)) return a.cli.code;
  if (a.list && a.rank >= 0) return cli_usage(&a.cli, "--list prints the messages of all ranks; it takes no --rank");
  int64_t world = a.cli.world > b.cli.world ? a.cli.world : b.cli.world;
  cli_progress(&a.cli, "planning the move of %" PRId64 " ranks", world);
  return cli_with_plans(&a.cli, &b.cli, show);
}

const cli_command command_move = {
  .name = "move",
  .takes = "A --world N [...] vs B [...]",
  .does = "which bytes go where when tensors change their layout",
  .usage = "moongrid move A --world N [NAME=VALUE ...] vs [B] [--world M] [NAME=VALUE ...] [--tensor T] [--rank R]\n"
           "       [--json] [--list]",
  .about = "Plan the move of the tensors of one plan to the layout of another. Every element that a rank needs and\n"
           "does not hold arrives once, so the bytes sent are the minimum. B is the first recipe if it\n"
           "is left out, and a world given on one side is that of both; parameters are not carried over. With\n"
           "--machine ranks receive from their own machine what a rank there holds, and the bytes between\n"
           "machines, the minimum, are counted.",
  .sample = "moongrid move examples/fsdp_tp.lua --world 8 vs tp=4 fsdp=false",
  .recipe = true,
  .options = { CLI_WORLD("ranks in the world of that side"),
               { "rank", cli_index, offsetof(options, rank), "R", .help = "what one rank sends and receives" },
               { "tensor", cli_text, offsetof(options, tensor), "T", .help = "only this tensor" },
               { "map", cli_text, offsetof(options, map), "RANKS",
                 .help =
                     "the rank that each rank of B is, as 8..15,0..7; left out, the numbers are the same, and ranks "
                     "beyond A only receive" },
               { "convert", cli_flag, offsetof(options, convert),
                 .help = "tensors may be f32 on one side and bf16 on the other; they are sent as bf16" },
               { "list", cli_flag, offsetof(options, list), .help = "every message, with its round" },
               { "json", cli_flag, offsetof(options, json), .help = "one JSON object" } },
  .run = run,
  .after = "diff",
};
