/* SPDX-License-Identifier: MIT
**
** test_structure.c - what is equal is equal: random pairs of steps and of plans, of which one
** differs from the other in one field, or is the same made another way, in another order. Their
** digests are equal exactly if they are, by a comparison field by field that knows nothing of texts
** and hashes. MOONGRID_PAIRS=100000 tries more.
*/
#include "random.h"

#include "comm/compare.h"
#include "machine/machine_item.h"
#include "machine/traffic.h"
#include "moongrid_tensor.h"
#include "plan/json.h"
#include "plan/plan.h"
#include "step/step.h"

#include <math.h>
#include <wchar.h>

static int64_t pairs(int64_t usual) {
  const char *text = getenv("MOONGRID_PAIRS");
  return text ? strtoll(text, NULL, 10) : usual;
}

static double next_to(double x) { return nextafter(x, INFINITY); }

/* ------------------------------------------------------------------- steps */

enum { WORLD = 6, PROGRAMS = 3, ENTRIES = 6, FAMILIES = 3 };

/* Names that look like what a text writes between two of them. */
static const char *const names[] = { "",
                                     "a",
                                     "b",
                                     "a'",
                                     "a' 8 bytes",
                                     "' on a",
                                     "main",
                                     "main ",
                                     "a\nmark 'b",
                                     "a b",
                                     "all_reduce(f0) 8 bytes" };
enum { NAMES = sizeof names / sizeof *names };

typedef struct drawn_entry {
  int64_t kind, listed, stream, family, nth, bytes, number, name, type, waits, event;
  double flops, seconds;
  int64_t inside; /* entries that a loop has in it */
} drawn_entry;

typedef struct drawn_program {
  int64_t n;
  drawn_entry entry[ENTRIES];
} drawn_program;

typedef struct drawn_step {
  drawn_program program[PROGRAMS];
  int64_t of[WORLD];
} drawn_step;

static mgrid_plan *plan_of_step(void) {
  mgrid_error e;
  mgrid_dim dims[] = { { "a", WORLD } };
  const char *along[] = { "a" };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(WORLD), 1, dims, anew(&e));
  mgrid_family *f = mgrid_grid_along(g, 1, along, MGRID_AS_WRITTEN, &e);
  mgrid_topology *t = mgrid_topology_new(WORLD, &e);
  for (int i = 0; i < FAMILIES; i++)
    mgrid_topology_add(t, ((char[]){ 'f', (char)('0' + i), 0 }), f, NULL, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  assert_int_equal(MGRID_OK, e.status);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  mgrid_grid_free(g);
  return p;
}

/* Draw a field that this kind of entry has. */
static void draw_field(rng *r, drawn_entry *e, int64_t field, int64_t at) {
  switch (field) {
  case 0: e->kind = rng_between(r, 0, STEP_KINDS - 1); break;
  case 1: e->stream = rng_between(r, 0, NAMES - 1); break;
  case 2: e->family = rng_between(r, -1, FAMILIES - 1); break;
  case 3: e->nth = rng_between(r, 0, 2); break;
  case 4: e->bytes = rng_between(r, 0, 3) << rng_between(r, 0, 50); break;
  case 5: e->number = rng_between(r, 0, 3); break;
  case 6: e->name = rng_between(r, 0, NAMES - 1); break;
  case 7: e->type = rng_between(r, 0, NAMES - 1); break;
  case 8: e->waits = rng_between(r, 0, NAMES - 1); break;
  case 9: e->event = rng_between(r, -1, at - 1); break;
  case 10:
    e->flops = rng_chance(r, 50) ? next_to(e->flops) : (double)rng_between(r, 0, 2) * 1e12;
    break;
  case 11:
    e->seconds = rng_chance(r, 50) ? next_to(e->seconds) : (double)rng_between(r, 0, 2) / 3;
    break;
  case 12: e->listed = rng_chance(r, 50); break;
  default: e->inside = rng_between(r, 0, 2); break;
  }
}
enum { FIELDS = 14 };

static drawn_step draw(rng *r) {
  drawn_step s = { 0 };
  for (int p = 0; p < PROGRAMS; p++) {
    s.program[p].n = rng_between(r, 0, ENTRIES);
    for (int64_t i = 0; i < s.program[p].n; i++)
      for (int64_t f = 0; f < FIELDS; f++)
        if (f == 0 || rng_chance(r, 40)) draw_field(r, &s.program[p].entry[i], f, i);
  }
  for (int i = 0; i < WORLD; i++) s.of[i] = rng_between(r, 0, PROGRAMS - 1);
  return s;
}

/* Change one field, one rank, the entries of one program, or whose a name is. */
static void change(rng *r, drawn_step *s) {
  drawn_program *p = &s->program[rng_between(r, 0, PROGRAMS - 1)];
  int64_t at = p->n ? rng_between(r, 0, p->n - 1) : 0;
  switch (rng_between(r, 0, 9)) {
  case 0: s->of[rng_between(r, 0, WORLD - 1)] = rng_between(r, 0, PROGRAMS - 1); return;
  case 1: p->n = rng_between(r, 0, ENTRIES); return;
  case 2: { /* two neighbours change places */
    drawn_entry kept = p->entry[at];
    int64_t other = at + 1 < p->n ? at + 1 : at;
    p->entry[at] = p->entry[other], p->entry[other] = kept;
    return;
  }
  case 3: { /* two names do */
    int64_t kept = p->entry[at].name;
    p->entry[at].name = p->entry[at].type, p->entry[at].type = kept;
    return;
  }
  default: draw_field(r, &p->entry[at], rng_between(r, 0, FIELDS - 1), at); return;
  }
}

/* What an entry is in a step: fields that its kind has not are left out, and so is a block's end
** beyond the program's. */
static step_node node_of(const drawn_program *p, int64_t at, drawn_entry *e) {
  *e = p->entry[at];
  const step_operation *o = &mgrid_step_rows[e->kind];
  bool waits = o->role == STEP_ORDER && e->kind != STEP_EVENT;
  if (o->role != STEP_TOGETHER && o->role != STEP_POINT) e->family = -1;
  if (e->family < 0) e->nth = 0;
  if (e->event >= at) e->event = -1;
  if (!waits) e->waits = e->event = -1;
  if (waits && e->event >= 0) e->waits = -1;
  if (waits) e->listed = e->event >= 0;
  if (o->role != STEP_BLOCK || at + e->inside >= p->n) e->inside = 0;
  return (step_node){ .kind = (uint8_t)e->kind,
                      .listed = (uint8_t)e->listed,
                      .bytes = e->bytes,
                      .number = e->number,
                      .flops = e->flops,
                      .seconds = e->seconds };
}

static bool same_program(const drawn_program *a, const drawn_program *b) {
  if (a->n != b->n) return false;
  for (int64_t i = 0; i < a->n; i++) {
    drawn_entry x, y;
    node_of(a, i, &x), node_of(b, i, &y);
    bool same = x.kind == y.kind && x.listed == y.listed && x.stream == y.stream
                && x.family == y.family && x.nth == y.nth && x.bytes == y.bytes
                && x.number == y.number && x.name == y.name && x.type == y.type
                && x.waits == y.waits && x.event == y.event && x.flops == y.flops
                && x.seconds == y.seconds && x.inside == y.inside;
    if (!same) return false;
  }
  return true;
}

static bool same_step(const drawn_step *a, const drawn_step *b) {
  for (int i = 0; i < WORLD; i++)
    if (!same_program(&a->program[a->of[i]], &b->program[b->of[i]])) return false;
  return true;
}

static uint16_t stream_of(step_program *p, uint32_t word) {
  for (uint16_t i = 0; i < p->nstreams; i++)
    if (p->stream[i] == word) return i;
  p->stream[p->nstreams] = word;
  return p->nstreams++;
}

static void write_program(step_writer *w, const drawn_program *d, int64_t line) {
  for (int64_t i = 0; i < d->n; i++) {
    drawn_entry e;
    step_node given = node_of(d, i, &e), *n = mgrid_step_write(w, (step_kind)e.kind);
    given.slot = e.family < 0 ? -1 : mgrid_step_slot_of(w->step, (int32_t)e.family, (int32_t)e.nth);
    given.end = (uint32_t)(i + 1 + e.inside);
    given.line = (int32_t)line;
    given.name = (uint32_t)mgrid_step_word(w->step, names[e.name]);
    given.type = (uint32_t)mgrid_step_word(w->step, names[e.type]);
    given.stream = stream_of(&w->now, (uint32_t)mgrid_step_word(w->step, names[e.stream]));
    given.other = e.event >= 0 ? (int32_t)e.event
                  : e.waits >= 0
                      ? stream_of(&w->now, (uint32_t)mgrid_step_word(w->step, names[e.waits]))
                      : -1;
    *n = given;
  }
}

/* Make the step: words and slots in an order of its own, programs on other lines, ranks with one
** program in one class or in several, in any order. */
static void digest_of(rng *r, const drawn_step *d, const mgrid_plan *plan, char out[33]) {
  mgrid_error e;
  mgrid_step *s = mgrid_step_alloc(plan, anew(&e));
  step_writer w = { 0 };
  assert_non_null(s);
  for (int64_t i = rng_between(r, 0, NAMES); i > 0; i--)
    mgrid_step_word(s, names[rng_between(r, 0, NAMES - 1)]);
  for (int64_t i = rng_between(r, 0, 3); i > 0; i--)
    mgrid_step_slot_of(s, (int32_t)rng_between(r, 0, FAMILIES - 1), (int32_t)rng_between(r, 0, 2));
  s->class = calloc(2 * PROGRAMS, sizeof *s->class);
  size_t order[2 * PROGRAMS];
  for (size_t i = 0; i < 2 * PROGRAMS; i++) order[i] = i;
  rng_shuffle(r, 2 * PROGRAMS, order);
  for (size_t i = 0; i < 2 * PROGRAMS; i++) { /* class order[i] has program order[i] / 2 */
    mgrid_step_writer_begin(&w, s, 0);
    if (rng_chance(r, 30)) stream_of(&w.now, (uint32_t)mgrid_step_word(s, "never used"));
    write_program(&w, &d->program[order[i] / 2], rng_between(r, 1, 9));
    s->class[s->nclasses++] = (step_class){ .program = mgrid_step_keep(&w) };
  }
  for (int64_t rank = 0; rank < WORLD; rank++)
    for (size_t i = 0; i < 2 * PROGRAMS; i++)
      if (order[i] / 2 == (size_t)d->of[rank] && (order[i] & 1 || rng_chance(r, 50)))
        s->of[rank] = (int32_t)i;
  for (int64_t rank = 0; rank < WORLD; rank++) { /* both coins may have said no */
    size_t i = (size_t)s->of[rank] % (2 * PROGRAMS);
    if (order[i] / 2 == (size_t)d->of[rank]) continue;
    for (i = 0; order[i] / 2 != (size_t)d->of[rank];) i++;
    s->of[rank] = (int32_t)i;
  }
  assert_int_equal(MGRID_OK, mgrid_step_take_digest(s, anew(&e)));
  mgrid_step_digest(s, out);
  mgrid_step_writer_free(&w);
  mgrid_step_free(s);
}

static void test_steps(void **state) {
  (void)state;
  mgrid_plan *plan = plan_of_step();
  int64_t equal = 0, n = pairs(4000);
  for (int64_t i = 0; i < n; i++) {
    rng r = rng_new(first_seed() + (uint64_t)i);
    drawn_step a = draw(&r), b = a;
    char x[33], y[33];
    if (!rng_chance(&r, 30)) change(&r, &b);
    digest_of(&r, &a, plan, x);
    digest_of(&r, &b, plan, y);
    check(&r, (strcmp(x, y) == 0) == same_step(&a, &b));
    equal += same_step(&a, &b);
  }
  if (n > 100) assert_in_range(equal, n / 10, 9 * n / 10);
  mgrid_plan_free(plan);
}

/* ------------------------------------------------------------------- plans */

enum {
  A,
  B,
  C,
  DIM,
  ORDER,
  NAMED,
  PARAM,
  VALUE,
  PARAM2,
  VERSION,
  ALONG0,
  ALONG1,
  OP1,
  FAMILY,
  UNIQUE,
  FIRST,
  PRIORITY,
  TIMEOUT,
  BACKEND,
  NCCL,
  WINDOW,
  DEVICE,
  SINGLE,
  CONCURRENT,
  AXIS,
  LENGTH,
  TYPE,
  CUTTING,
  UNIT,
  CUT_BY,
  TENSOR,
  LEVELS,
  LINKED,
  FLOW_OF,
  CALLS,
  COLLECTIVE,
  INTEGERS
};

typedef struct drawn_plan {
  int64_t v[INTEGERS];
  double bandwidth, latency, bytes;
} drawn_plan;

static int64_t draw_integer(rng *r, int field) {
  static const int64_t most[INTEGERS] = {
    [A] = 3,       [B] = 3,      [C] = 2,      [DIM] = 2,     [ORDER] = 2,    [NAMED] = 1,
    [PARAM] = 3,   [VALUE] = 4,  [PARAM2] = 3, [VERSION] = 2, [ALONG0] = 6,   [ALONG1] = 6,
    [OP1] = 3,     [FAMILY] = 2, [UNIQUE] = 1, [FIRST] = 2,   [PRIORITY] = 1, [TIMEOUT] = 2,
    [BACKEND] = 3, [NCCL] = 2,   [WINDOW] = 2, [DEVICE] = 2,  [SINGLE] = 1,   [CONCURRENT] = 2,
    [AXIS] = 2,    [LENGTH] = 2, [TYPE] = 2,   [CUTTING] = 2, [UNIT] = 1,     [CUT_BY] = 3,
    [TENSOR] = 2,  [LEVELS] = 2, [LINKED] = 2, [FLOW_OF] = 1, [CALLS] = 2,    [COLLECTIVE] = 2
  };
  return rng_between(r, 0, most[field]);
}

static drawn_plan draw_plan(rng *r) {
  drawn_plan d = { .bandwidth = 1 + (double)(rng_next(r) >> 14),
                   .latency = 1e-9 * (double)rng_between(r, 1, 4000) / 3,
                   .bytes = (double)(rng_next(r) >> 20) / 7 };
  if (rng_chance(r, 50)) d.bandwidth = 1e9 * (double)rng_between(r, 1, 900);
  for (int i = 0; i < INTEGERS; i++) d.v[i] = draw_integer(r, i);
  return d;
}

static void change_plan(rng *r, drawn_plan *d) {
  int64_t field = rng_between(r, 0, INTEGERS + 2);
  if (field < INTEGERS) d->v[field] = draw_integer(r, (int)field);
  if (field == INTEGERS) d->bandwidth = next_to(d->bandwidth);
  if (field == INTEGERS + 1) d->latency = next_to(d->latency);
  if (field == INTEGERS + 2) d->bytes = next_to(d->bytes);
}

static void add_machine(mgrid_topology *t, const drawn_plan *d, mgrid_error *e) {
  static const char *const level[] = { "node:*", "node:2", "rack:2 node:*" };
  char text[200], link[80] = "", flow[100];
  static const char *const call[] = { "all_reduce", "all_gather", "send" };
  if (d->v[LINKED] == 1) mgrid_format(link, sizeof link, "[%.17gB/s]", d->bandwidth);
  if (d->v[LINKED] == 2)
    mgrid_format(link, sizeof link, "[%.17gB/s,%.17gs]", d->bandwidth, d->latency);
  snprintf(text, sizeof text, "%s gpu:64%s", level[d->v[LEVELS]], link);
  mgrid_machine_model *m = mgrid_machine_parse(text, e);
  mgrid_machine_item *item = m ? mgrid_machine_item_new(m, t->content.world, e) : NULL;
  mgrid_traffic *x = mgrid_traffic_new(t->content.world, e);
  mgrid_format(flow, sizeof flow, "%.17g B %s x %" PRId64, d->bytes, call[d->v[COLLECTIVE]],
               d->v[CALLS] + 1);
  if (item) mgrid_topology_put_item(t, "machine", &mgrid_machine_kind, item, e);
  if (!mgrid_traffic_add(x, d->v[FLOW_OF] ? "f0" : "f1", flow, e))
    mgrid_topology_put_item(t, MGRID_TRAFFIC_NAME, &mgrid_traffic_kind, x, e);
  if (item) mgrid_machine_kind.free(item);
  mgrid_traffic_free(x);
  mgrid_machine_free(m);
}

static void add_tensor(mgrid_topology *t, const mgrid_grid *g, const drawn_plan *d,
                       mgrid_error *e) {
  static const char *const type[] = { "f32", "bf16", "i8" },
                           *const axis[] = { "row", "col", "r_0" },
                           *const name[] = { "w", "w.0", "w/0" };
  const char *dim = d->v[CUT_BY] < (int64_t)mgrid_grid_ndims(g)
                        ? mgrid_grid_dim(g, (size_t)d->v[CUT_BY]).name
                        : NULL;
  mgrid_tensor_axis a = MGRID_TENSOR_AXIS_INIT;
  a.name = axis[d->v[AXIS]], a.length = 48 << d->v[LENGTH], a.ndims = dim != NULL, a.dims = &dim;
  a.cutting = (mgrid_cutting)d->v[CUTTING], a.block = a.cutting == MGRID_CUT_CYCLIC ? 2 : 0;
  a.unit = a.cutting == MGRID_CUT_CYCLIC ? 0 : d->v[UNIT] * 2;
  mgrid_tensor *w = mgrid_tensor_new(g, type[d->v[TYPE]], 1, &a, NULL, e);
  if (w) mgrid_topology_add_tensor(t, name[d->v[TENSOR]], w, e);
  mgrid_tensor_free(w);
}

static mgrid_family *family_of(const mgrid_grid *g, int64_t along, int64_t op, mgrid_error *e) {
  const char *dims[3];
  size_t n = 0;
  for (size_t i = 0; i < 3; i++)
    if ((along + 1) >> i & 1) dims[n++] = mgrid_grid_dim(g, i).name;
  mgrid_family *f = mgrid_grid_along(g, n, dims, MGRID_AS_WRITTEN, e), *made = NULL;
  int64_t some[] = { 0, -1 }, reversed[] = { -1, 0 };
  if (op == 0 || !f) return f;
  if (op == 1) made = mgrid_family_neighbours(f, 1, false, e);
  if (op == 2) made = mgrid_family_pick(f, 2, some, e);
  if (op == 3) made = mgrid_family_pick(f, 2, reversed, e);
  mgrid_family_free(f);
  return made;
}

static mgrid_options options_of(const drawn_plan *d) {
  static const char *const backend[] = { "", "mpi", "nccl", "none" },
                           *const nccl[] = { "", "min_ctas=4", "max_ctas=4" },
                           *const window[] = { "", "kv=64", "kv=65 a=64" },
                           *const device[] = { "", "barriers=4", "multimem=1" };
  mgrid_options o = MGRID_OPTIONS_INIT;
  o.unique = d->v[UNIQUE], o.first = d->v[FIRST] == 1, o.lazy = d->v[FIRST] == 2,
  o.high_priority = d->v[PRIORITY];
  o.timeout = (double)d->v[TIMEOUT] / 1e6, o.backend = backend[d->v[BACKEND]],
  o.nccl = nccl[d->v[NCCL]];
  o.windows = window[d->v[WINDOW]], o.device = device[d->v[DEVICE]], o.single = d->v[SINGLE];
  return o;
}

/* Make the plan; NULL: no topology is like that. Things of one kind are in their order, kinds in
** any. */
static mgrid_plan *plan_of(rng *r, const drawn_plan *d) {
  static const char *const dim[] = { "a", "b", "x" }, *const param[] = { "p", "q", "p q", "p: x" },
                           *const value[] = { "1", "1.0", "1 ", "", "x = 1" },
                           *const family[] = { "f0", "g", "f_" };
  static const int orders[][3] = { { 0, 1, 2 }, { 1, 0, 2 }, { 2, 1, 0 } };
  mgrid_error e;
  const mgrid_dim given[] = { { dim[d->v[DIM]], d->v[A] + 1 },
                              { "c", d->v[B] + 1 },
                              { "d", d->v[C] + 1 } };
  mgrid_dim dims[3];
  size_t todo[] = { 0, 1, 2, 3 };
  int64_t world = given[0].size * given[1].size * given[2].size;
  for (int i = 0; i < 3; i++) dims[i] = given[orders[d->v[ORDER]][i]];
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 3, dims, anew(&e));
  mgrid_topology *t = mgrid_topology_new(world, &e);
  mgrid_family *f0 = family_of(g, d->v[ALONG0], 0, &e),
               *f1 = family_of(g, d->v[ALONG1], d->v[OP1], &e);
  mgrid_options o = options_of(d);
  const char *const both[] = { d->v[CONCURRENT] == 1 ? family[d->v[FAMILY]] : "f1",
                               d->v[CONCURRENT] == 1 ? "f1" : family[d->v[FAMILY]] };
  if (rng_chance(r, 50)) mgrid_topology_recipe(t, "any.lua", &e);
  rng_shuffle(r, 4, todo);
  for (int i = 0; i < 4; i++) {
    if (todo[i] == 0) mgrid_topology_param(t, param[d->v[PARAM]], value[d->v[VALUE]], &e);
    if (todo[i] == 0) mgrid_topology_param(t, "last", param[d->v[PARAM2]], &e);
    if (todo[i] == 1 && d->v[NAMED]) mgrid_topology_add_grid(t, "grid", g, &e);
    if (todo[i] == 2)
      mgrid_topology_add(t, family[d->v[FAMILY]], f0, &o, &e),
          mgrid_topology_add(t, "f1", f1, NULL, &e);
    if (todo[i] == 3) add_tensor(t, g, d, &e), add_machine(t, d, &e);
    if (todo[i] == 3)
      mgrid_topology_called(t, "h", ((const char *[]){ "1", "1.0", "1 = 1" })[d->v[VERSION]], &e);
  }
  if (d->v[CONCURRENT]) mgrid_topology_concurrent(t, 2, both, &e);
  mgrid_plan *p = e.status ? NULL : mgrid_plan_new(t, &e);
  mgrid_family_free(f0);
  mgrid_family_free(f1);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
  return p;
}

static bool same_family(const mgrid_entry *a, const mgrid_entry *b) {
  const mgrid_family *f = a->family, *g = b->family;
  int32_t x[256], y[256];
  if (strcmp(a->name, b->name) != 0 || f->count != g->count || f->total != g->total
      || f->form != g->form)
    return false;
  for (int64_t i = 0; i < f->count; i++) {
    int64_t n = mgrid_family_size(f, i);
    if (n != mgrid_family_size(g, i)) return false;
    mgrid_family_group(f, i, x), mgrid_family_group(g, i, y);
    if (memcmp(x, y, (size_t)n * sizeof *x) != 0) return false;
  }
  const mgrid_options *o = &a->choice->asked, *q = &b->choice->asked;
  return o->unique == q->unique && o->first == q->first && o->lazy == q->lazy
         && o->high_priority == q->high_priority && o->timeout == q->timeout
         && o->single == q->single && strcmp(o->backend, q->backend) == 0
         && strcmp(o->nccl, q->nccl) == 0 && strcmp(o->windows, q->windows) == 0
         && strcmp(o->device, q->device) == 0 && a->choice->lane == b->choice->lane;
}

static bool same_link(mgrid_link a, mgrid_link b) {
  return a.bandwidth == b.bandwidth && a.latency == b.latency;
}

static bool same_machine(const mgrid_machine_model *a, const mgrid_machine_model *b) {
  if (a->ntiers != b->ntiers) return false;
  for (size_t i = 0; i < a->ntiers; i++)
    if (strcmp(a->tier[i].name, b->tier[i].name) != 0 || a->tier[i].domains != b->tier[i].domains
        || a->tier[i].each != b->tier[i].each || !same_link(a->tier[i].link, b->tier[i].link))
      return false;
  return true;
}

/* The tensor, from the numbers that it was made from: without a dim no cut has a meaning. */
static bool same_tensor(const drawn_plan *a, const drawn_plan *b) {
  static const int fields[] = { AXIS, LENGTH, TYPE, TENSOR };
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (a->v[fields[i]] != b->v[fields[i]]) return false;
  if (a->v[CUT_BY] == 3 || b->v[CUT_BY] == 3) return a->v[CUT_BY] == b->v[CUT_BY];
  return a->v[CUT_BY] == b->v[CUT_BY] && a->v[CUTTING] == b->v[CUTTING]
         && (a->v[CUTTING] == MGRID_CUT_CYCLIC || a->v[UNIT] == b->v[UNIT]);
}

static bool same_plan(const mgrid_plan *a, const mgrid_plan *b) {
  const mgrid_content *x = &a->content, *y = &b->content;
  if (x->world != y->world || x->nentries != y->nentries || x->ngrids != y->ngrids
      || x->nconcurrent != y->nconcurrent)
    return false;
  for (size_t i = 0; i < x->nparams; i++)
    if (strcmp(x->param[i].name, y->param[i].name) != 0
        || strcmp(x->param[i].value, y->param[i].value) != 0)
      return false;
  for (size_t i = 0; i < x->ngrids; i++)
    if (!mgrid_grid_equal(x->grid[i].grid, y->grid[i].grid)) return false;
  for (size_t i = 0; i < x->nentries; i++)
    if (!same_family(&x->entry[i], &y->entry[i])) return false;
  for (size_t i = 0; i < x->nconcurrent; i++)
    if (strcmp(x->concurrent[i].name[0], y->concurrent[i].name[0]) != 0) return false;
  const mgrid_flow *f = mgrid_plan_traffic(a)->flow, *g = mgrid_plan_traffic(b)->flow;
  return strcmp(x->called[0].version, y->called[0].version) == 0
         && strcmp(f->family, g->family) == 0 && f->by == g->by && f->bytes == g->bytes
         && f->calls == g->calls && same_machine(mgrid_plan_machine(a), mgrid_plan_machine(b));
}

/* The grid of the tensor is a part of it, which the plan may not name. */
static bool same_grid(const drawn_plan *a, const drawn_plan *b) {
  static const int fields[] = { A, B, C, DIM, ORDER };
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (a->v[fields[i]] != b->v[fields[i]]) return false;
  return true;
}

/* What is saved and read back is the plan: nothing of it is lost. */
static void check_read(const rng *r, const mgrid_plan *p) {
  mgrid_error e;
  mgrid_text t = { 0 };
  mgrid_plan_save(p, mgrid_text_sink, &t, anew(&e));
  mgrid_plan *again = mgrid_plan_read(t.data, t.len, "saved", &e);
  if (!again) print_message("%s\n%s\n", e.message, t.data);
  check(r, again && same_plan(p, again) && memcmp(p->digest, again->digest, sizeof p->digest) == 0);
  mgrid_plan_free(again);
  mgrid_text_free(&t);
}

static void test_plans(void **state) {
  (void)state;
  int64_t equal = 0, made = 0, n = pairs(6000);
  for (int64_t i = 0; i < n; i++) {
    rng r = rng_new(first_seed() + (uint64_t)i);
    drawn_plan a = draw_plan(&r), b = a;
    if (!rng_chance(&r, 20)) change_plan(&r, &b);
    mgrid_plan *x = plan_of(&r, &a), *y = plan_of(&r, &b);
    if (x && y) {
      bool same = same_grid(&a, &b) && same_tensor(&a, &b) && same_plan(x, y);
      if (same != (memcmp(x->digest, y->digest, sizeof x->digest) == 0)) {
        mgrid_error e;
        mgrid_text t = { 0 };
        mgrid_plan_print(x, mgrid_text_sink, &t, anew(&e)),
            mgrid_plan_print(y, mgrid_text_sink, &t, &e);
        fail_msg("%s, MOONGRID_SEED=%" PRIu64 "\n%s",
                 same ? "equal, but not by digest" : "one digest", r.seed, t.data);
      }
      check_read(&r, x);
      equal += same, made++;
    }
    mgrid_plan_free(x);
    mgrid_plan_free(y);
  }
  if (n > 100) assert_in_range(made, n / 5, n);
  if (n > 100) assert_in_range(equal, made / 10, 9 * made / 10);
}

/* ------------------------------------------------------------------- calls */

/* Two calls that ranks make together are one only if their names are, however late these differ. */
static void test_calls(void **state) {
  (void)state;
  mgrid_error e;
  mgrid_backend *b = mgrid_backend_dry(2, 0, anew(&e));
  for (int same = 0; same < 900; same += 7) {
    char x[1000], y[1000];
    memset(x, 'a', sizeof x), memset(y, 'a', sizeof y);
    x[same + 1] = y[same + 1] = '\0';
    x[same] = 'x';
    bool differ = mgrid_meet_call(b, true, "prove '%s'", x)
                  != mgrid_meet_call(b, true, "prove '%s'", y);
    assert_true(differ);
    assert_true(mgrid_meet_call(b, true, "prove '%s'", x)
                == mgrid_meet_call(b, true, "prove '%s'", x));
  }
  mgrid_backend_free(b);
}

/* ------------------------------------------------------------------- texts */

/* What cannot be written is not left out in silence. */
static void test_lost(void **state) {
  (void)state;
  mgrid_text t = { 0 };
  mgrid_text_str(&t, "world 8");
  assert_false(t.failed);
  mgrid_text_add(&t, "%lc", (wint_t)0x1F600); /* no character of the C locale */
  assert_true(t.failed);
  mgrid_text_free(&t);
  json_t *list = json_array();
  json_array_append_new(list, mgrid_json_pack("{ss}", "file", "\xFF.lua"));
  assert_null(json_dumps(list, 0));
  json_array_clear(list);
  json_array_append_new(list, mgrid_json_pack("{so}", "file", mgrid_json_path("\xFF.lua")));
  char *text = json_dumps(list, JSON_COMPACT);
  assert_string_equal(text, "[{\"file\":\"\\\\xff.lua\"}]");
  free(text);
  json_decref(list);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_steps), cmocka_unit_test(test_plans),
                                      cmocka_unit_test(test_calls), cmocka_unit_test(test_lost) };
  return run_program("structure", tests, argc, argv);
}
