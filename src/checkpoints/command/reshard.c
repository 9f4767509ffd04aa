/* SPDX-License-Identifier: MIT
**
** reshard.c - moongrid reshard: a checkpoint of safetensors files in another layout.
**
** Each rank that holds the first copy of something gets a file. Files are written in sequence, each from its first byte to
** its last through one buffer, the window. They go into a folder with a temporary name (new_folder.h), which is renamed when
** every byte is on the disk.
*/
#include "checkpoints/new_folder.h"
#include "command/cli.h"
#include "checkpoints/index.h"
#include "plan/plan.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct options {
  cli         cli;
  int64_t     window;
  const char *output, *names;
  bool        empty; /* allow ranks that hold nothing of a tensor */
} options;

typedef struct work {
  const options    *o;
  const mgrid_plan *plan;
  shards           *from;
  const char      **is; /* [from->n], the plan's tensor for each stored one */
  const char       *folder;
  int64_t           files, made; /* of the result */
  char             *buffer;
  int64_t           window; /* bytes */
  int64_t           done, all;
  double            told; /* when progress was last reported */
  bool              tells;
  json_t           *index;
} work;

/* -------------------------------------------------------------------- pairs */

static mgrid_status unknown(const work *w, const char *name, const char *where, mgrid_error *err) {
  enum { MOST = 128 };
  const char *known[MOST];
  char        tail[512];
  size_t      n = 0;
  for (; n < mgrid_plan_ntensors(w->plan) && n < MOST; n++) known[n] = mgrid_plan_tensor_name(w->plan, n);
  mgrid_suggest(tail, sizeof tail, name, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "%s: no tensor '%.200s'%s", where, name, tail);
}

/* Pair tensors by the lines of --names. */
static mgrid_status pair_by_file(work *w, char *text, mgrid_error *err) {
  char *save = NULL;
  int   nth = 0;
  for (char *line = text, *next; line; line = next) {
    char where[300];
    next = strchr(line, '\n');
    if (next) *next++ = '\0';
    line[strcspn(line, "#\r")] = '\0';
    char *pattern = strtok_r(line, " \t", &save), *name = pattern ? strtok_r(NULL, " \t", &save) : NULL;
    snprintf(where, sizeof where, "%.250s:%d", w->o->names, ++nth);
    if (!pattern) continue;
    if (!name || strtok_r(NULL, " \t", &save))
      return mgrid_fail(err, MGRID_BAD_VALUE, "%s: a pattern of names and a tensor of the recipe are expected", where);
    size_t k = 0;
    while (k < mgrid_plan_ntensors(w->plan) && strcmp(mgrid_plan_tensor_name(w->plan, k), name) != 0) k++;
    if (k == mgrid_plan_ntensors(w->plan)) return unknown(w, name, where, err);
    for (size_t i = 0; i < w->from->n; i++)
      if (!w->is[i] && fnmatch(pattern, w->from->tensor[i].name, 0) == 0) w->is[i] = mgrid_plan_tensor_name(w->plan, k);
  }
  return MGRID_OK;
}

/* Find the plan's tensor of that name, up to dots and dashes. */
static const char *same_name(const mgrid_plan *p, const char *stored) {
  for (size_t i = 0; i < mgrid_plan_ntensors(p); i++) {
    const char *name = mgrid_plan_tensor_name(p, i);
    size_t      k = 0;
    while (name[k] && name[k] == (stored[k] == '.' || stored[k] == '-' ? '_' : stored[k])) k++;
    if (!name[k] && !stored[k]) return name;
  }
  return NULL;
}

static void put_shape(mgrid_text *t, const char *type, size_t naxes, const int64_t *shape) {
  mgrid_text_str(t, type);
  for (size_t k = 0; k < naxes; k++) mgrid_text_add(t, "%s%" PRId64, k ? " x " : " ", shape[k]);
}

/* Check that both have the same type and shape. */
static mgrid_status check_pair(const work *w, size_t i, mgrid_error *err) {
  const shards_tensor *s = &w->from->tensor[i];
  const mgrid_tensor  *t = mgrid_plan_tensor(w->plan, w->is[i]);
  size_t               naxes = mgrid_tensor_naxes(t);
  int64_t              shape[MGRID_AXES_MAX];
  for (size_t k = 0; k < naxes; k++) shape[k] = mgrid_tensor_length(t, k);
  if (strcmp(s->type, mgrid_tensor_type(t)) == 0 && s->naxes == naxes
      && memcmp(s->shape, shape, naxes * sizeof *shape) == 0)
    return MGRID_OK;
  mgrid_text is = { 0 }, wanted = { 0 };
  put_shape(&is, s->type, s->naxes, s->shape);
  put_shape(&wanted, mgrid_tensor_type(t), naxes, shape);
  if (is.failed || wanted.failed)
    mgrid_oom(err);
  else
    mgrid_fail(err, MGRID_REFUSED, "tensor '%.200s' is %s in the checkpoint, and '%s' of the recipe is %s", s->name,
               is.data, w->is[i], wanted.data);
  mgrid_text_free(&is), mgrid_text_free(&wanted);
  return err->status;
}

static mgrid_status pair(work *w, mgrid_error *err) {
  mgrid_text names = { 0 };
  w->is = calloc(w->from->n + 1, sizeof *w->is);
  if (!w->is) return mgrid_oom(err);
  mgrid_status s = w->o->names ? mgrid_read_file(w->o->names, &names, err) : MGRID_OK;
  if (!s && names.data) s = pair_by_file(w, names.data, err);
  mgrid_text_free(&names);
  for (size_t i = 0; i < w->from->n && !s; i++) {
    const char *name = w->from->tensor[i].name;
    if (!w->is[i]) w->is[i] = same_name(w->plan, name);
    s = w->is[i] ? check_pair(w, i, err) : unknown(w, name, w->o->names ? w->o->names : w->o->cli.recipe, err);
    if (!s) w->all += mgrid_tensor_bytes(mgrid_plan_tensor(w->plan, w->is[i]));
  }
  for (size_t k = 0; k < mgrid_plan_ntensors(w->plan) && !s; k++) {
    const char *name = mgrid_plan_tensor_name(w->plan, k);
    size_t      i = 0;
    while (i < w->from->n && w->is[i] != name) i++;
    if (i == w->from->n)
      s = mgrid_fail(err, MGRID_REFUSED, "the checkpoint has no tensor that is '%s' of the recipe", name);
  }
  return s;
}

/* Refuse layouts in which a rank of a tensor's grid holds nothing of it: that rank could not load its part. */
static mgrid_status check_cuts(const work *w, mgrid_error *err) {
  mgrid_text hollow = { 0 };
  mgrid_plan_notes(w->plan, false, &hollow);
  if (hollow.failed)
    mgrid_oom(err);
  else if (hollow.len && !w->o->empty)
    mgrid_fail(err, MGRID_REFUSED, "%s: %.*s; --empty writes it so", w->o->cli.recipe, (int)strcspn(hollow.data, "\n"),
               hollow.data);
  mgrid_text_free(&hollow);
  return err->status;
}

/* -------------------------------------------------------------------- files */

static void tell(work *w, bool end) {
  char done[32], all[32];
  if (!w->tells || (!end && mgrid_now() - w->told < 0.1)) return;
  w->told = mgrid_now();
  if (end)
    fprintf(stderr, "\r\033[K");
  else
    fprintf(stderr, "\r\033[K%s of %s, %.0f %%", cli_bytes(w->done, done, sizeof done),
            cli_bytes(w->all, all, sizeof all), 100.0 * (double)w->done / (double)w->all);
}

static mgrid_status copy_part(work *w, st_writer *to, const shards_tensor *t, const shards_part *part,
                              mgrid_error *err) {
  int64_t most = w->window / t->width;
  for (int64_t at = 0; at < part->elements && !err->status; at += most) {
    int64_t n = part->elements - at < most ? part->elements - at : most;
    if (shards_read(w->from, t, part, at, n, w->buffer, err)) break;
    st_write(to, w->buffer, n * t->width, err);
    w->done += n * t->width;
    tell(w, false);
  }
  return err->status;
}

static void file_name(const work *w, int64_t nth, char out[64]) {
  snprintf(out, 64, "model-%05" PRId64 "-of-%05" PRId64 ".safetensors", nth, w->files);
}

static mgrid_status path_of(const work *w, const char *file, mgrid_text *path, mgrid_error *err) {
  mgrid_text_add(path, "%s/%s", w->folder, file);
  return path->failed ? mgrid_oom(err) : MGRID_OK;
}

/* Write the rank's part of each tensor to one file, and add it to the index. */
static mgrid_status write_rank(work *w, int64_t rank, shards_part *part, st_tensor *tensor, mgrid_error *err) {
  const shards *from = w->from;
  mgrid_text    path = { 0 };
  char          file[64];
  size_t        n = 0;
  file_name(w, w->made + 1, file);
  mgrid_status s = path_of(w, file, &path, err);
  for (size_t i = 0; i < from->n && !s; i++) {
    s = shards_part_of(w->plan, w->is[i], rank, &part[i], err);
    if (s || !part[i].elements) continue;
    tensor[n++] = shards_in_file(from->tensor[i].name, from->tensor[i].type, &part[i]);
    shards_index_add(&w->index, file, from->tensor[i].name, mgrid_plan_tensor(w->plan, w->is[i]), &part[i]);
  }
  st_writer *to = s ? NULL : st_create(path.data, n, tensor, err);
  for (size_t i = 0; to && i < from->n && !err->status; i++)
    if (part[i].elements) copy_part(w, to, &from->tensor[i], &part[i], err);
  if (to && !st_finish(to, err)) w->made++;
  for (size_t i = 0; i < from->n; i++) shards_part_free(&part[i]);
  mgrid_text_free(&path);
  return err->status;
}

/* Return whether the rank holds the first copy of anything. */
static bool writes(const work *w, int64_t rank) {
  for (size_t k = 0; k < mgrid_plan_ntensors(w->plan); k++) {
    mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
    if (mgrid_tensor_local(w->plan, mgrid_plan_tensor_name(w->plan, k), rank, &part, NULL)) continue;
    if (part.held && part.copy == 0 && part.elements) return true;
  }
  return false;
}

static mgrid_status write_index(work *w, mgrid_error *err) {
  json_t *was = json_object_get(w->from->index, "metadata");
  json_t *metadata = json_is_object(was) ? json_copy(was) : json_object();
  json_object_set_new(metadata, "total_size", json_integer((json_int_t)w->all));
  return shards_index_write(w->index, w->folder, metadata, err);
}

static mgrid_status write_all(work *w, mgrid_error *err) {
  int64_t      world = mgrid_plan_world(w->plan);
  size_t       n = w->from->n + 1;
  shards_part *part = calloc(n, sizeof *part);
  st_tensor   *tensor = calloc(n, sizeof *tensor);
  w->buffer = malloc((size_t)w->window);
  w->index = json_pack("{s:{}, s:{}}", "weight_map", "parts");
  if (!part || !tensor || !w->buffer || !w->index) mgrid_oom(err);
  for (int64_t rank = 0; rank < world; rank++) w->files += writes(w, rank);
  for (int64_t rank = 0; rank < world && !err->status; rank++)
    if (writes(w, rank)) write_rank(w, rank, part, tensor, err);
  if (!err->status) write_index(w, err);
  tell(w, true);
  json_decref(w->index);
  free(part), free(tensor), free(w->buffer);
  return err->status;
}

static mgrid_status write_folder(work *w, mgrid_error *err) {
  static const char *mine[] = { "model-*-of-*.safetensors", "model-*-of-*.safetensors.part", SHARDS_INDEX,
                                SHARDS_INDEX ".part", NULL };
  beside             folder;
  if (!beside_open(&folder, w->o->output, mine, err)) {
    w->folder = folder.path.data;
    write_all(w, err);
  }
  return beside_close(&folder, err);
}

static mgrid_status reshard(const cli *c, const mgrid_plan *plan, const mgrid_plan *to, mgrid_error *err) {
  const options *o = (const options *)c;
  (void)to;
  work w = { .o = o, .plan = plan, .window = (o->window ? o->window : 64) << 20, .tells = isatty(2) };
  char bytes[32], where[512];
  mgrid_shown(where, sizeof where, o->output, strlen(o->output));
  w.from = shards_open(o->cli.words[0], err);
  if (w.from && !pair(&w, err) && !check_cuts(&w, err) && !write_folder(&w, err)) {
    cli_note_items(&o->cli, plan, "");
    printf("%zu tensor%s, %s, in %" PRId64 " file%s of %s\n", w.from->n, mgrid_s_of(w.from->n),
           cli_bytes(w.all, bytes, sizeof bytes), w.files, mgrid_s_of(w.files), where);
  }
  shards_close(w.from);
  free(w.is);
  if (err->status) mgrid_error_reword(err, "%s", err->message); /* names of files and tensors may be anything */
  return err->status;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options o = { 0 };
  if (!cli_parse(&o.cli, self, argc, argv)) return o.cli.code;
  if (!o.cli.nwords)
    return cli_usage(&o.cli, "reshard wants a checkpoint: an index, its folder, or a .safetensors file");
  if (!o.cli.recipe) return cli_usage(&o.cli, "reshard wants --to RECIPE, whose tensors say the new layout");
  if (!o.cli.world) return cli_usage(&o.cli, "reshard needs --world N, the number of ranks");
  if (!o.output) return cli_usage(&o.cli, "reshard wants -o FOLDER, where the files go");
  return cli_with_plans(&o.cli, NULL, reshard);
}

const cli_command command_reshard = {
  .name = "reshard",
  .takes = "INDEX --to RECIPE --world N [...] -o FOLDER",
  .does = "a checkpoint of safetensors files in another layout",
  .usage = "moongrid reshard INDEX --to RECIPE --world N [NAME=VALUE ...] -o FOLDER [--names FILE] [--window MIB]\n"
           "       [--empty]",
  .about =
      "Write a checkpoint of safetensors files again, in the layout of a recipe's tensors. INDEX is a\n"
      "model.safetensors.index.json, as Hugging Face has it or as moongrid wrote it for another layout, the folder\n"
      "of one, or a single .safetensors file. Each rank that has the first copy of a part gets a file; the index of\n"
      "the result says which part each file has, and can be resharded again. An index whose parts do not have each\n"
      "element of a tensor once is refused before anything is written.\n"
      "\n"
      "A tensor of the checkpoint is the tensor of the recipe that has its name with _ for each dot and dash, of the\n"
      "same type and shape. Others are paired by a file of names, lines with a pattern of names in the checkpoint\n"
      "and a tensor of the recipe, of which the first that fits counts:\n"
      "\n"
      "  model.layers.*.self_attn.[qkv]_proj.weight   by_rows     # a comment",
  .sample = "moongrid reshard model.safetensors.index.json --to examples/fsdp_tp.lua --world 8 -o FOLDER",
  .recipe = true,
  .recipe_from = "to",
  .words = 1,
  .options = { { "to", cli_text, offsetof(options, cli.recipe), "RECIPE", .help = "the recipe of the new layout" },
               CLI_WORLD("its ranks"),
               { "output", cli_text, offsetof(options, output), "FOLDER",
                 .help = "where the files go; there is none of this name yet", .letter = true },
               { "names", cli_text, offsetof(options, names), "FILE",
                 .help = "which tensors of the checkpoint are which of the recipe" },
               { "window", cli_number, offsetof(options, window), "MIB", .help = "memory for elements, at most; 64" },
               { "empty", cli_flag, offsetof(options, empty),
                 .help = "also where a cut leaves ranks without anything of a tensor, as 4 heads over 8 ranks do; "
                         "bounds and owners that say so need no word" } },
  .run = run,
  .after = "diff",
};
