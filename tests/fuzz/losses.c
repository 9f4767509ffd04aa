/* SPDX-License-Identifier: MIT
**
** losses.c - fuzz target: what a job becomes when ranks are lost. The bytes choose a recipe,
** bundled or of a grid with tensors, experts with owners, spares, laws and a machine; the answer of
** its policy on_lost, as text of Lua; the lost ranks, and then more of the survivors. It checks
** that each survivor has one rank, that each group reported as kept existed before, that ranks
** receive what others send and what the sums report, and that fresh losses decide the same loss
** alike.
*/
#include "fuzz.h"

#include "survive/next.h"

#include <jansson.h>

enum { WORLD = 32, ARGS = 6, CHAIN = 3 };

static const char *const machines[] = {
  NULL,
  "node:4 gpu:4",
  "rack:2 node:4 gpu:2",
  "row:2 rack:2 node:2 gpu:*",
  "node:* gpu:3",
  "node:2 gpu:8 ranks = 0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15"
};
enum { MACHINES = sizeof machines / sizeof *machines };

/* ------------------------------------------------------------------ recipes */

static const char own[] = "return recipe { params = { order = '%s', tp = %d, dp = param.size(nil), "
                          "pp = %d, owners = param.list { 0, 0, 1, "
                          "1, 2, 2 } },\n"
                          "%s %s %s build = function(world, p)\n"
                          "local g = grid(world, p.order, { tp = p.tp, pp = p.pp, dp = p.dp or "
                          "fill }) local t = topology(world)\n"
                          "t.g = g t.tp = g 'tp' t.dp = g 'dp' t.pp = g 'pp' t.mp = g('tp', 'pp') "
                          "t.twin = t.dp:twin() %s\n"
                          "t.x = tensor { over = 'g', axes = { { 'row', 12 }, { 'column', 7 } }, "
                          "type = 'f32', cut = { %s } }\n"
                          "%s return t end }\n";
static const char *const orders[] = { "tp-dp-pp", "tp-pp-dp", "dp-tp-pp",
                                      "dp-pp-tp", "pp-tp-dp", "pp-dp-tp" };
static const char *const cuts[] = {
  "",           "row = 'tp'",           "column = 'tp', row = 'pp'",
  "row = 'dp'", "row = { 'tp', 'pp' }", "column = { 'pp', cyclic = 2 }"
};
static const char *const more_tensors[] = {
  "",
  "t.e = tensor { over = 'g', axes = { { 'expert', 6 } }, type = 'f32', cut "
  "= { expert = { 'tp', owners = p.owners } } }",
  "t.e = tensor { over = 'g', axes = { { 'expert', 6 } }, type = 'f32', cut "
  "= { expert = { 'dp', owners = p.owners } } }",
  ("t.f0, t.f1 = flat { tensor { over = 'g', axes = { { 'row', 12 } }, type "
   "= 'f32', cut = { row = 'tp' } }, tensor { over = "
   "'g', axes = { { 'row', 5 } }, type = 'f32' }, over = 'dp', pad = 2 }")
};
static const char *const spares[] = { "", "spares = 1,", "spares = 3,",
                                      "spares = { per = 'node' },",
                                      "spares = { per = 'node', count = 2 }," };
static const char *const laws[] = { "",
                                    "",
                                    "",
                                    "within(t.tp, machine.node)",
                                    "spread(t.dp, machine.node)",
                                    "aligned(t.mp, machine.node)" };

typedef struct job {
  mgrid_runtime *rt;
  int64_t world;
  size_t nargs;
  char *args[ARGS];
  const char *how; /* of the caller */
} job;

static void read_own(bytes *b, job *j) {
  char text[4096], policy[1024] = "", lent[128] = "";
  mgrid_error e = MGRID_ERROR_INIT;
  const char *order = orders[below(b, 6)];
  int tp = (int)below(b, 3) + 1, pp = (int)below(b, 2) + 1;
  const char *cut = cuts[below(b, 6)], *others = more_tensors[below(b, 4)],
             *spare = spares[below(b, 5)];
  const char *law = laws[below(b, 6)], *machine = machines[below(b, MACHINES)];
  j->world = (int64_t)below(b, 24) + 1;
  char *answer = line(b);
  if (machine) snprintf(lent, sizeof lent, "machine = '%s',", machine);
  if (*answer)
    snprintf(policy, sizeof policy, "policy = { on_lost = function(s, q, p) return %.900s end },",
             answer);
  int n = snprintf(text, sizeof text, own, order, tp, pp, spare, lent, policy, law, cut, others);
  CHECK(n < (int)sizeof text);
  mgrid_runtime_load(j->rt, "own", text, (size_t)n, &e);
  fuzz_check_error(&e, false);
  free(answer);
}

static void read_bundled(bytes *b, job *j) {
  size_t n = 0;
  mgrid_error e = MGRID_ERROR_INIT;
  while (mgrid_recipe_names()[n]) n++;
  const char *machine = NULL, *name = mgrid_recipe_names()[below(b, n)];
  j->world = (int64_t)below(b, WORLD) + 1;
  machine = machines[below(b, MACHINES)];
  char *words = line(b), *save = NULL;
  for (char *word = strtok_r(words, " ", &save); word && j->nargs < ARGS;
       word = strtok_r(NULL, " ", &save))
    CHECK((j->args[j->nargs++] = strdup(word)));
  free(words);
  mgrid_runtime_load(j->rt, name, NULL, 0, &e);
  mgrid_machine_model *m = machine ? mgrid_machine_parse(machine, &e) : NULL;
  if (m) mgrid_runtime_machine(j->rt, m, &e);
  mgrid_machine_free(m);
  fuzz_check_error(&e, false);
}

/* ------------------------------------------------------------------- checks */

/* Every survivor has one rank, and nobody else has one. */
static void check_map(const mgrid_loss *x, int64_t world, const bool *lost) {
  int64_t survivors = 0;
  for (int64_t old = 0; old < world; old++) {
    int64_t is = mgrid_loss_rank(x, old);
    CHECK(lost[old] ? is == -1 : is >= 0 && mgrid_loss_old(x, is) == old);
    survivors += !lost[old];
  }
  CHECK(survivors == mgrid_plan_world(mgrid_loss_plan(x)) && mgrid_loss_old(x, survivors) == -1);
}

static void check_kept(const mgrid_loss *x, const mgrid_plan *before) {
  const mgrid_plan *p = mgrid_loss_plan(x);
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    const char *name = mgrid_plan_family_name(p, i), *was = NULL;
    const mgrid_family *f = mgrid_plan_family(p, name);
    for (int64_t g = 0; g < mgrid_family_count(f); g++) {
      int64_t at = -1, n = mgrid_family_size(f, g);
      if (!mgrid_loss_kept(x, name, g, &was, &at)) continue;
      const mgrid_family *old = mgrid_plan_family(before, was);
      CHECK(n > 1 && old && mgrid_family_size(old, at) == n);
      for (int64_t k = 0; k < n; k++)
        CHECK(mgrid_family_rank(old, at, k) == mgrid_loss_old(x, mgrid_family_rank(f, g, k)));
    }
  }
}

/* What a rank receives from a survivor is what that one sends it, and all of it is in the sums. */
static void check_moves(const mgrid_loss *x, const mgrid_loss_sums *sums) {
  int64_t n = mgrid_plan_world(mgrid_loss_plan(x)), moved = 0, stay = 0, missing = 0;
  mgrid_move *m[WORLD] = { NULL };
  mgrid_error e = MGRID_ERROR_INIT;
  for (int64_t k = 0; k < n; k++)
    if (!(m[k] = mgrid_loss_move(x, k, 0, NULL, NULL, &e))) break;
  for (int64_t k = 0; k < n && !e.status; k++) {
    mgrid_move_sums of = MGRID_MOVE_SUMS_INIT;
    mgrid_move_bytes(m[k], &of, &e);
    moved += of.receive, stay += of.stay, missing += of.missing;
    for (size_t i = 0; i < mgrid_move_npeers(m[k]); i++) {
      mgrid_move_peer here = MGRID_MOVE_PEER_INIT, there = MGRID_MOVE_PEER_INIT;
      mgrid_move_peers(m[k], i, &here, &e);
      CHECK(here.rank >= 0 && here.rank < n && here.rank != k);
      for (size_t o = 0; o < mgrid_move_npeers(m[here.rank]); o++) {
        mgrid_move_peer one = MGRID_MOVE_PEER_INIT;
        mgrid_move_peers(m[here.rank], o, &one, &e);
        if (one.rank == k) there = one;
      }
      CHECK(here.receive == there.send && here.send == there.receive);
    }
  }
  if (!e.status) CHECK(moved == sums->moved && stay == sums->stay && (!missing || sums->missing));
  if (e.status)
    CHECK(e.status == MGRID_NO_MEMORY
          || (e.status == MGRID_REFUSED && sums->stay + sums->moved == 0));
  for (int64_t k = 0; k < n; k++) mgrid_move_free(m[k]);
}

static int take_text(void *ud, const char *text, size_t len) {
  return mgrid_text_sink(ud, text, len);
}

static void check_print(const mgrid_loss *x) {
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_loss_print(x, true, take_text, &t, &e) == MGRID_OK && !t.failed) {
    json_t *j = json_loads(mgrid_text_chars(&t), 0, NULL);
    CHECK(j);
    json_decref(j);
  }
  mgrid_text_free(&t);
  t = (mgrid_text){ 0 };
  mgrid_loss_print(x, false, take_text, &t, &e);
  for (const char *c = mgrid_text_chars(&t); *c; c++)
    CHECK(*c == '\n' || ((unsigned char)*c >= 0x20 && *c != 0x7f));
  mgrid_text_free(&t);
  fuzz_check_error(&e, false);
}

/* Is a larger layout refused? It is, under the arguments of the plan, where a shrink changes none
** of them. */
static void check_largest(mgrid_losses *l, const mgrid_loss *x, int64_t layout) {
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t most = x->survivors < l->places ? x->survivors : l->places;
  if (mgrid_losses_machine(l) || x->params.len) return;
  for (int64_t n = layout + 1; n <= most && n <= layout + 3; n++) {
    mgrid_plan *p =
        mgrid_next_plan(l, x->survivors, n, l->nargs, (const char *const *)l->args, NULL, &e);
    CHECK(!p);
  }
}

static void check(const job *j, mgrid_losses *l, const mgrid_plan *before, const mgrid_loss *x,
                  const bool *lost) {
  mgrid_loss_sums sums = MGRID_LOSS_SUMS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t world = mgrid_plan_world(before), places = world - mgrid_plan_nspares(before), gone = 0,
          free_spares = 0;
  CHECK(mgrid_loss_describe(x, &sums, &e) == MGRID_OK);
  CHECK((sums.how == MGRID_LOSS_STOP) == !mgrid_loss_plan(x));
  CHECK(!*sums.why == !!mgrid_loss_plan(x));
  CHECK((sums.missing > 0) == (mgrid_loss_missing(x, 0) != NULL));
  check_print(x);
  for (int64_t r = 0; r < world; r++)
    gone += lost[r] && l->place[r] >= 0, free_spares += !lost[r] && l->place[r] < 0;
  /* they were spares */
  if (gone == 0) CHECK(sums.how != MGRID_LOSS_STOP || mgrid_losses_machine(l));
  if (sums.how == MGRID_LOSS_STOP && j->how && strcmp(j->how, "shrink") == 0)
    check_largest(l, x, 0);
  if (!mgrid_loss_plan(x)) return;
  CHECK(sums.layout + mgrid_plan_nspares(mgrid_loss_plan(x)) == sums.survivors
        && sums.layout <= places);
  CHECK(sums.idle == mgrid_plan_nspares(mgrid_loss_plan(x)));
  check_map(x, world, lost);
  check_kept(x, before);
  check_moves(x, &sums);
  if (sums.how == MGRID_LOSS_REPLACE) {
    CHECK(sums.layout == places && gone <= free_spares);
    for (int64_t r = 0; r < world; r++)
      if (!lost[r] && l->place[r] >= 0) CHECK(mgrid_loss_rank(x, r) == l->place[r]);
  } else {
    check_largest(l, x, sums.layout);
  }
}

/* ------------------------------------------------------------------ an input */

/* Lose ranks; return the losses of the next plan, NULL: there is none. */
static mgrid_losses *lose(bytes *b, const job *j, mgrid_losses *l) {
  int64_t list[2 * WORLD], world = l->world;
  size_t n = below(b, 8) + (below(b, 16) == 15 ? 8 : 0);
  bool lost[WORLD] = { false }, bad = n == 0;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_losses *after = NULL, *alone = NULL;
  for (size_t i = 0; i < n; i++) {
    uint8_t at = byte(b);
    list[i] = at < 250 ? at % world : (int64_t)at - 253;
    bad |= list[i] < 0 || list[i] >= world || lost[list[i]];
    if (list[i] >= 0 && list[i] < world) lost[list[i]] = true;
  }
  mgrid_loss *x = mgrid_loss_new(l, n, list, &e), *again = NULL;
  fuzz_check_error(&e, !x);
  if (x) {
    char one[33], two[33];
    CHECK(!bad);
    check(j, l, l->plan, x, lost);
    mgrid_losses_options o = MGRID_LOSSES_OPTIONS_INIT;
    mgrid_error why = MGRID_ERROR_INIT;
    o.how = j->how;
    alone = mgrid_losses_new(l->rt, l->plan, l->nargs, (const char *const *)l->args, &o, &why);
    if (alone) again = mgrid_loss_new(alone, n, list, &why);
    mgrid_loss_digest(x, one), mgrid_loss_digest(again, two);
    if (!why.status) CHECK(strcmp(one, two) == 0);
    if (why.status) CHECK(why.status == MGRID_NO_MEMORY || why.status == MGRID_LIMIT);
    after = mgrid_losses_after(l, x, &e);
    fuzz_check_error(&e, !after);
    if (e.status) CHECK(e.status == MGRID_NO_MEMORY || !mgrid_loss_plan(x));
  }
  mgrid_losses_free(alone);
  mgrid_loss_free(again);
  mgrid_loss_free(x);
  return after;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const hows[] = { NULL, NULL, "shrink", "replace", "stop" };
  bytes b = { data, data + size };
  job j = { 0 };
  mgrid_limits limits = MGRID_LIMITS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_losses_options o = MGRID_LOSSES_OPTIONS_INIT;
  limits.instructions = 3000000, limits.seconds = 2, limits.call_seconds = 1;
  CHECK((j.rt = mgrid_runtime_new(&limits, NULL, &e)));
  bool bundled = below(&b, 3) == 0;
  o.how = j.how = hows[below(&b, 5)];
  uint8_t fails = byte(&b); /* mostly no allocation does */
  if (bundled)
    read_bundled(&b, &j);
  else
    read_own(&b, &j);
  mgrid_plan *p = mgrid_runtime_plan(j.rt, j.world, NULL, j.nargs, (const char *const *)j.args, &e);
  fuzz_check_error(&e, !p);
  mgrid_losses *l = p ? mgrid_losses_new(j.rt, p, j.nargs, (const char *const *)j.args, &o, &e)
                      : NULL;
  if (fails > 200) until_failure = (long)(fails - 200) * 64 + byte(&b);
  for (int i = 0; i < CHAIN && l; i++) {
    mgrid_losses *next = lose(&b, &j, l);
    mgrid_losses_free(l);
    l = next;
  }
  until_failure = -1;
  mgrid_losses_free(l);
  mgrid_plan_free(p);
  mgrid_runtime_free(j.rt);
  for (size_t i = 0; i < j.nargs; i++) free(j.args[i]);
  return 0;
}
