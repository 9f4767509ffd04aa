/* SPDX-License-Identifier: MIT
**
** values.h - the arguments of calls.c, drawn from the input: texts, numbers, lists, options of
** every kind, and functions of the host.
*/
#ifndef FUZZ_VALUES_H
#define FUZZ_VALUES_H

#include "pools.h"

/* ------------------------------------------------------------------ values */

static char *keep(fuzz *z, char *text) {
  if (z->ntexts == TEXTS) free(z->texts[--z->ntexts]);
  return z->texts[z->ntexts++] = text;
}

static const char *draw_text(fuzz *z) {
  static const char *const words[] = { "a",
                                       "b",
                                       "c",
                                       "tp",
                                       "dp",
                                       "pp",
                                       "x",
                                       "grid",
                                       "w",
                                       "one",
                                       "list",
                                       "table",
                                       "tp=2",
                                       "dp=3",
                                       "pp",
                                       "a=2",
                                       "b=4",
                                       "world_size",
                                       "",
                                       "(2:1) x (4:2)",
                                       "(2,4):(1,8)",
                                       "8:1",
                                       "(2:1)(2:4)",
                                       "mpi",
                                       "nccl",
                                       "none",
                                       "dry",
                                       "bf16",
                                       "f32",
                                       "max_ctas=4",
                                       "min_ctas=2 max_ctas=3",
                                       "a:2 b:2",
                                       "x:4:periodic y:2",
                                       "{}",
                                       "{\"a\": 1}",
                                       "*.timeout=600",
                                       "tp.lazy=true",
                                       "tp.backend=none",
                                       "a.b[0]",
                                       "list[1]",
                                       "table.deep",
                                       "\xff",
                                       "a b",
                                       "training",
                                       "picotron" };
  size_t i = byte(&z->b), n = sizeof words / sizeof words[0];
  if (i == 255) return z->null = true, NULL;
  return i < 250 ? words[i % n] : keep(z, line(&z->b));
}

static int64_t draw_number(fuzz *z) {
  static const int64_t extremes[] = { INT32_MAX, INT64_MAX, INT64_MIN, INT32_MIN, 1 << 20,
                                      4096,      -7,        -2,        1000,      64 };
  uint8_t i = byte(&z->b);
  return i < 236 ? (i < 200 ? i % 10 : i % 36) - (i % 16 == 15) : extremes[(i - 236) % 10];
}

static int64_t draw_world(fuzz *z) {
  static const int64_t worlds[] = {
    8, 8, 8, 8, 16, 12, 1, 24, 6, 32, 64, 9, 4096, 0, -1, INT32_MAX
  };
  return worlds[below(&z->b, 16)];
}

static size_t draw_count(fuzz *z) { return below(&z->b, FIELDS + 1); }
static bool draw_bool(fuzz *z) { return byte(&z->b) & 1; }

static mgrid_window draw_window(fuzz *z) {
  mgrid_window w = mgrid_world(draw_world(z));
  if (below(&z->b, 8) == 7) w.offset = draw_number(z), w.size = draw_number(z);
  return w;
}

static const char *const *draw_names(fuzz *z) {
  const char **names = z->names[z->turn++ % 2];
  for (int i = 0; i < ROOM; i++) names[i] = i < FIELDS ? draw_text(z) : NULL;
  return names;
}

static const mgrid_family *const *draw_families(fuzz *z) {
  for (int i = 0; i < ROOM; i++) z->families[i] = i < FIELDS ? draw_family(z) : NULL;
  return z->families;
}

static const mgrid_tensor *const *draw_tensors(fuzz *z) {
  for (int i = 0; i < ROOM; i++) z->tensors[i] = i < FIELDS ? draw_tensor(z) : NULL;
  return z->tensors;
}

static const mgrid_dim *draw_dims(fuzz *z) {
  for (int i = 0; i < FIELDS; i++)
    z->dims[i] = (mgrid_dim){ draw_text(z), below(&z->b, 4) ? draw_number(z) : MGRID_FILL };
  return z->dims;
}

static const mgrid_mode *draw_modes(fuzz *z) {
  mgrid_mode *modes = z->modes[z->turn++ % 2];
  for (int i = 0; i < FIELDS; i++) modes[i] = (mgrid_mode){ draw_number(z), draw_number(z) };
  return modes;
}

static const int64_t *draw_numbers(fuzz *z) {
  int64_t *numbers = z->numbers[z->turn++ % 2];
  for (int i = 0; i < ROOM; i++) numbers[i] = i < FIELDS ? draw_number(z) : -1;
  return numbers;
}

static const int64_t *draw_ranks(fuzz *z) {
  for (int i = 0; i < ROOM; i++) z->ranks[i] = i < 24 ? draw_number(z) : i;
  return z->ranks;
}

/* Ends of lists, which may go down but never out of draw_ranks. */
static const int64_t *draw_starts(fuzz *z) {
  int64_t at = 0;
  for (int i = 0; i < ROOM; i++) {
    z->starts[i] = at;
    uint8_t step = byte(&z->b);
    at = step == 255 ? (int64_t)below(&z->b, ROOM) - 2 : at + step % 5;
    if (at > ROOM) at = ROOM;
  }
  return z->starts;
}

static const mgrid_arg *draw_args(fuzz *z) {
  for (int i = 0; i < FIELDS; i++) {
    const char *name = draw_text(z);
    mgrid_arg *inner = z->inner;
    switch (below(&z->b, 10)) {
    case 0: z->args[i] = mgrid_arg_boolean(name, draw_bool(z)); break;
    case 1: z->args[i] = mgrid_arg_number(name, (double)draw_number(z) / 2); break;
    case 2: z->args[i] = mgrid_arg_text(name, draw_text(z)); break;
    case 3: z->args[i] = mgrid_arg_integers(name, draw_count(z), draw_numbers(z)); break;
    case 4:
      for (int k = 0; k < FIELDS; k++) z->doubles[k] = (double)draw_number(z) * 0.75;
      z->args[i] = mgrid_arg_numbers(name, draw_count(z), z->doubles);
      break;
    case 5:
      for (int k = 0; k < FIELDS; k++) inner[k] = mgrid_arg_integer(draw_text(z), draw_number(z));
      z->args[i] = mgrid_arg_table(name, draw_count(z), inner);
      break;
    /* all 0 besides */
    case 6: z->args[i] = mgrid_arg_of(name, (mgrid_kind)below(&z->b, 12)); break;
    default: z->args[i] = mgrid_arg_integer(name, draw_number(z));
    }
  }
  return z->args;
}

static const mgrid_tensor_axis *draw_axes(fuzz *z) {
  for (int i = 0; i < FIELDS; i++) {
    mgrid_tensor_axis *a = &z->axes[i];
    *a = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
    a->name = draw_text(z), a->length = draw_number(z);
    a->ndims = below(&z->b, 3);
    if (a->ndims > 0) a->dims = draw_names(z);
    uint8_t how = byte(&z->b);
    if (how > 127) {
      a->cutting = (mgrid_cutting)(how % 6), a->block = draw_number(z), a->unit = draw_number(z);
      a->nparts = below(&z->b, 4), a->parts = draw_numbers(z), a->nbounds = below(&z->b, 5),
      a->bounds = draw_numbers(z), a->nowners = below(&z->b, 5), a->owners = draw_numbers(z);
      a->copies = how & 1;
    }
  }
  return z->axes;
}

static const mgrid_options *draw_options(fuzz *z) {
  uint8_t how = byte(&z->b);
  if (how < 64) return NULL;
  z->options = (mgrid_options)MGRID_OPTIONS_INIT;
  z->options.unique = how & 1, z->options.first = how & 2, z->options.lazy = how & 4,
  z->options.high_priority = how & 8;
  if (how & 16) z->options.timeout = (double)draw_number(z);
  if (how & 32)
    z->options.backend = draw_text(z), z->options.nccl = draw_text(z),
    z->options.cartesian = draw_text(z);
  if (how == 255) z->options.size = (size_t)draw_number(z) % (sizeof z->options + 1);
  return &z->options;
}

/* The host's allocator, which knows how much there was. */
static void *allocate(void *ud, void *block, size_t was, size_t bytes) {
  size_t *before = block ? (size_t *)block - 2 : NULL;
  CHECK(ud && (before ? *before : 0) == was);
  if (bytes == 0) return free(before), NULL;
  size_t *now = bytes < SIZE_MAX - 64 ? realloc(before, bytes + 2 * sizeof *now) : NULL;
  if (now) *now = bytes;
  return now ? now + 2 : NULL;
}

static void take_log(void *ud, mgrid_level level, const char *message) {
  CHECK(ud && level <= MGRID_LOG_WARN && !strchr(message, '\n'));
}

static const mgrid_hooks *draw_hooks(fuzz *z) {
  if (below(&z->b, 2)) return NULL;
  z->hooks = (mgrid_hooks){ sizeof z->hooks, z, allocate, take_log };
  return &z->hooks;
}

static const mgrid_limits *draw_limits(fuzz *z) {
  z->limits = (mgrid_limits)MGRID_LIMITS_INIT;
  z->limits.memory = below(&z->b, 8) ? 16 << 20 : (size_t)1000 * byte(&z->b);
  z->limits.instructions = 200000, z->limits.seconds = 2;
  return &z->limits;
}

static const mgrid_site *draw_site(fuzz *z) {
  if (below(&z->b, 2)) return NULL;
  z->site = (mgrid_site)MGRID_SITE_INIT;
  z->site.machine_ranks = draw_number(z), z->site.no_nvls = draw_bool(z),
  z->site.min_ctas = draw_number(z), z->site.max_ctas = draw_number(z);
  return &z->site;
}

static const mgrid_error *draw_failed(fuzz *z) {
  z->failed = (mgrid_error)MGRID_ERROR_INIT;
  if (draw_bool(z)) z->failed.status = MGRID_REFUSED, strcpy(z->failed.message, "it was refused");
  return &z->failed;
}

static const mgrid_move_options *draw_how_to_move(fuzz *z) {
  z->moves = (mgrid_move_options)MGRID_MOVE_OPTIONS_INIT;
  z->moves.rounds = draw_bool(z), z->moves.nranks = below(&z->b, 2) * draw_count(z),
  z->moves.ranks = draw_ranks(z);
  z->moves.convert = draw_bool(z);
  z->moves.nold = below(&z->b, 2) * draw_count(z), z->moves.old = draw_ranks(z);
  return below(&z->b, 4) ? &z->moves : NULL;
}

static const mgrid_step_price_options *draw_how_to_price(fuzz *z) {
  z->prices = (mgrid_step_price_options)MGRID_STEP_PRICE_OPTIONS_INIT;
  z->prices.blocking = draw_bool(z), z->prices.eager = draw_number(z),
  z->prices.flops = (double)draw_number(z);
  z->prices.costs = draw_text(z);
  return below(&z->b, 4) ? &z->prices : NULL;
}

static const mgrid_recover_options *draw_how_to_recover(fuzz *z) {
  z->recovering = (mgrid_recover_options)MGRID_RECOVER_OPTIONS_INIT;
  z->recovering.timeout = (double)draw_number(z), z->recovering.name = draw_text(z);
  z->recovering.nlost = below(&z->b, 2) * draw_count(z), z->recovering.lost = draw_ranks(z);
  return below(&z->b, 4) ? &z->recovering : NULL;
}

static const mgrid_losses_options *draw_how_to_lose(fuzz *z) {
  z->losing = (mgrid_losses_options)MGRID_LOSSES_OPTIONS_INIT;
  z->losing.how = draw_text(z), z->losing.nparams = below(&z->b, 2),
  z->losing.changed = draw_names(z);
  return below(&z->b, 4) ? &z->losing : NULL;
}

static const mgrid_move_run_options *draw_how_to_run(fuzz *z) {
  z->runs_of_moves = (mgrid_move_run_options)MGRID_MOVE_RUN_OPTIONS_INIT;
  z->runs_of_moves.window = draw_number(z), z->runs_of_moves.timeout = (double)below(&z->b, 3);
  return below(&z->b, 2) ? &z->runs_of_moves : NULL;
}

/* Parts of tensors, of a side: before the move or after it. */
static const mgrid_buffer *draw_buffers(fuzz *z, int side) {
  for (int i = 0; i < ROOM; i++) {
    size_t bytes = below(&z->b, 5) * sizeof z->parts[side] / 4;
    z->buffers[side][i] = (mgrid_buffer){ bytes ? z->parts[side] : NULL, (int64_t)bytes };
  }
  return z->buffers[side];
}

/* A store that this process has, in which other ranks never put anything. */
static struct stored {
  char key[128];
  size_t bytes;
  char *data;
} stored[STORED];
static size_t nstored;

static mgrid_status store_put(void *ud, const char *key, const void *data, size_t bytes) {
  CHECK(ud && strncmp(key, "moongrid.", 9) == 0 && strlen(key) < 128);
  struct stored *s = &stored[nstored++ % STORED];
  free(s->data);
  s->data = malloc(bytes + 1), s->bytes = bytes;
  if (!s->data) return *s->key = '\0', MGRID_NO_MEMORY;
  memcpy(s->data, data, bytes);
  strcpy(s->key, key);
  return MGRID_OK;
}

static mgrid_status store_get(void *ud, int64_t from, const char *key, void *data, size_t bytes,
                              double seconds) {
  CHECK(ud && seconds >= 0 && from >= -1);
  for (size_t i = 0; i < STORED; i++)
    if (strcmp(stored[i].key, key) == 0 && stored[i].bytes == bytes)
      return memcpy(data, stored[i].data, bytes), MGRID_OK;
  return MGRID_TIMED_OUT;
}

static const char *store_reason(void *ud) {
  return ud ? "it is a store of this process alone" : "";
}

static const mgrid_carrier *draw_carrier(fuzz *z) {
  uint8_t how = byte(&z->b);
  z->carrier = (mgrid_carrier)MGRID_CARRIER_INIT;
  z->carrier.ud = stored, z->carrier.rank = how & 3, z->carrier.world = 1 + (how >> 2 & 3),
  z->carrier.timeout = 0.001;
  z->carrier.by_rank = how & 16;
  z->carrier.reason = how & 32 ? store_reason : NULL;
  if (how < 192) z->carrier.put = store_put, z->carrier.get = store_get;
  return &z->carrier;
}

static const mgrid_nccl_options *draw_nccl(fuzz *z) {
  z->nccl = (mgrid_nccl_options)MGRID_NCCL_OPTIONS_INIT;
  z->nccl.share_gpu = draw_bool(z), z->nccl.ranks_per_id = (int)draw_number(z);
  return &z->nccl;
}

static const mgrid_backend_options *draw_backend_options(fuzz *z) {
  z->mpi = (mgrid_mpi_options)MGRID_MPI_OPTIONS_INIT;
  z->opened = (mgrid_backend_options)MGRID_BACKEND_OPTIONS_INIT;
  z->opened.timeout = (double)draw_number(z), z->opened.mpi = draw_bool(z) ? &z->mpi : NULL;
  return draw_bool(z) ? &z->opened : NULL;
}

/* Never MPI, which this process must not start; opened by a carrier that is none. */
static const char *draw_opened(fuzz *z) { return below(&z->b, 2) ? "none" : ""; }
static mgrid_backend *draw_dry(fuzz *z) {
  put_backend(z, mgrid_backend_dry(1, 0, NULL));
  return z->backend.object[(z->backend.next - 1) % POOL];
}

static const char *draw_machine(fuzz *z) {
  static const char *const text[] = { "node:* gpu:4", "rack:2 node:1,3 gpu:2 rail = gpu",
                                      "dgx-h100", "4",
                                      "node:3 gpu:4 rail = gpu / 2 ranks = 8..11,0..3" };
  size_t i = below(&z->b, 6);
  return i < 5 ? text[i] : draw_text(z);
}

static const char *const recipes[] = {
  "return recipe { params = { tp = 2, any = param.any(1), list = param.list({ 1 }), text = "
  "param.text 'a' },\n"
  "  build = function(world, p)\n"
  "  local g, t = grid(world, 'tp-dp', { tp = p.tp, dp = fill }), topology(world)\n"
  "  t.grid, t.tp, t.dp = g, g 'tp', g 'dp'\n"
  "  t.w = tensor { axes = { { 'x', 16 } }, type = 'f32', cut = { x = 'tp' } }\n"
  "  t.a = g('tp', 'dp'):with { cartesian = 'tp:2 dp:4' } return t end,\n"
  "queries = { world_size = function(s) return s.world end, a = function(s, q) return q.a end },\n"
  "settings = { training = param.flag(true), a = param.integer(1) }, getters = { one = 'tp' },\n"
  "arguments = { a = param.integer(1) },\n"
  "policy = { one = function(s, q) return { one = q.a, list = { 1, 2, 3 }, table = { deep = { 0.5 "
  "} } } end,\n"
  "  host = function(s, q) return of_host(q.a, q.b, q) end, a = function(s, q) return s.tp.ranks "
  "end } }\n",
  "return recipe { build = function(world) local t = topology(world)\n"
  "  t.tp = grid(world, 'a-b', { a = 2, b = fill }) 'a' : pick(0) t.dp = world:table { { 0, 2 }, { "
  "3, 1 } } return t "
  "end,\n"
  "policy = { one = function(s) error 'no' end }, agreed = { one = 'world' } }\n",
  "return recipe {"
};
static const char *draw_source(fuzz *z) {
  const char *text = recipes[below(&z->b, 3)];
  z->source = strlen(text) - below(&z->b, 2);
  return text;
}

/* A function of the host: it returns its first argument, or fails where there is none. */
static mgrid_status answer_same(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                                mgrid_error *err) {
  CHECK(ud && args && result && result->kind == MGRID_IS_NONE && err && !err->status);
  if (n == 0) return MGRID_BAD_VALUE;
  *result = args[0];
  return MGRID_OK;
}

static const mgrid_function *draw_function(fuzz *z) {
  const char *name = draw_text(z), *version = draw_text(z);
  z->function = mgrid_function_of(below(&z->b, 4) ? "of_host" : name,
                                  below(&z->b, 4) ? "1" : version, answer_same, z);
  z->function.work = draw_number(z);
  return &z->function;
}

static const mgrid_open_options *draw_opening(fuzz *z) {
  z->opening = (mgrid_open_options)MGRID_OPEN_OPTIONS_INIT;
  z->opening.name = draw_text(z), z->opening.limits = draw_limits(z);
  if (below(&z->b, 2)) z->opening.text = draw_source(z), z->opening.length = z->source;
  if (below(&z->b, 2)) z->opening.nfunctions = 1, z->opening.functions = draw_function(z);
  return draw_bool(z) ? &z->opening : NULL;
}
static const char *draw_recipe(fuzz *z) {
  static const char *const ends[] = { "-0.lua", "-1.lua", "-2.lua" };
  size_t i = below(&z->b, 8);
  if (i < 3) return fuzz_file(ends[i], recipes[i], strlen(recipes[i]));
  return i < 5   ? fuzz_file(ends[0], recipes[0], strlen(recipes[0]))
         : i < 6 ? "picotron"
         : i < 7 ? NULL
                 : draw_text(z);
}

static const char *draw_table(fuzz *z) {
  size_t i = below(&z->b, 5);
  return i == 0   ? fuzz_file(".json", "{\"tp\": 2}", 9)
         : i == 1 ? fuzz_file(".yaml", "tp: 2\n", 6)
         : i == 2 ? fuzz_file("-t.lua", "return { tp = 2 }", 17)
         : i == 3 ? NULL
                  : draw_text(z);
}

static const mgrid_enlarge_options *draw_how_to_enlarge(fuzz *z) {
  z->enlarging = (mgrid_enlarge_options)MGRID_ENLARGE_OPTIONS_INIT;
  z->enlarging.name = draw_text(z);
  if (below(&z->b, 2)) z->enlarging.params = draw_table(z);
  return below(&z->b, 4) ? &z->enlarging : NULL;
}

static const char *draw_path(fuzz *z) {
  static const char *const paths[] = { NULL,        "",        "one",
                                       "list",      "list[1]", "table.deep[0]",
                                       "[\"one\"]", "table" };
  size_t i = below(&z->b, 10);
  return i < 8 ? paths[i] : draw_text(z);
}

/* ---------------------------------------------------------- functions of the host */

static int take_text(void *ud, const char *text, size_t len) {
  fuzz *z = ud;
  for (size_t i = 0; i < len; i++) z->out_size += text[i] != 0;
  return len > 0 && byte(&z->b) == 255;
}

static int64_t pick(void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err) {
  static const mgrid_error refused = { .size = sizeof refused,
                                       .status = MGRID_REFUSED,
                                       .message = "refused by the host" };
  fuzz *z = ud;
  /* looked at, not taken: depends on size alone */
  int64_t n = z->b.at < z->b.end ? *z->b.at % (cap + 2) - 1 : 1;
  if (n < 0 && err) *err = refused;
  for (int64_t i = 0; i < n && i < cap; i++)
    positions[i] = (i * 3 + size) % (size + 1) - (size % 5 == 0);
  return n;
}

static int64_t map(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                   mgrid_error *err) {
  static const mgrid_error refused = { .size = sizeof refused,
                                       .status = MGRID_REFUSED,
                                       .message = "refused by the host" };
  fuzz *z = ud;
  uint8_t how = byte(&z->b);
  if (how == 255 && err) *err = refused;
  if (how == 255) return -1;
  if (how > 200 && n < cap) ranks[n++] = draw_number(z);
  if (how > 150 && n > 0) ranks[0] = group % 7;
  return how > 100 && n > 0 ? n - 1 : n;
}

static int take_piece(void *ud, const mgrid_move_piece *piece) {
  fuzz *z = ud;
  CHECK(piece->size && piece->naxes <= MGRID_AXES_MAX && piece->bytes > 0);
  return byte(&z->b) == 255;
}

#endif
