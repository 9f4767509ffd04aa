/* SPDX-License-Identifier: MIT
**
** reshard.c - moongrid reshard: a checkpoint of safetensors files in another layout.
**
** Each rank that holds the first copy of something gets a file. Files are written in sequence, each from its first byte to
** its last through one buffer, the window. They go into a folder that has its name when every byte is on the disk
** (base/output.h).
*/
#include "base/output.h"
#include "checkpoints/command/outputs.h"
#include "command/cli.h"
#include "recipe/runtime.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct options {
  cli         cli;
  int64_t     window;
  const char *output, *names;
  bool        empty;   /* allow ranks that hold nothing of a tensor */
  bool        convert; /* between types of floats */
} options;

typedef struct work {
  const options    *o;
  const mgrid_plan *plan;
  shards           *from;
  outputs           to;
  const char       *folder;
  int64_t           files, made; /* of the result */
  char             *buffer;
  int64_t           window; /* bytes */
  int64_t           done, all;
  double            told; /* when progress was last reported */
  bool              tells;
  json_t           *index;
} work;

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

/* Return how many elements of an output are read at once: those that are not read straight into the buffer take as
** much memory again, of at most 8 bytes each. */
static int64_t at_once(const work *w, const view *v) {
  int64_t width = st_width(v->type);
  return w->window / (v->plain ? width : width + 8);
}

static mgrid_status copy_part(work *w, st_writer *to, const view *v, const shards_part *part, mgrid_error *err) {
  int64_t most = at_once(w, v), width = st_width(v->type);
  for (int64_t at = 0; at < part->elements && !err->status; at += most) {
    int64_t n = part->elements - at < most ? part->elements - at : most;
    if (view_read(w->from, v, part, at, n, w->buffer, err)) break;
    st_write(to, w->buffer, n * width, err);
    w->done += n * width;
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
  const outputs *o = &w->to;
  mgrid_text     path = { 0 };
  char           file[64];
  size_t         n = 0;
  file_name(w, w->made + 1, file);
  mgrid_status s = path_of(w, file, &path, err);
  for (size_t i = 0; i < o->n && !s; i++) {
    const output *x = &o->at[i];
    s = shards_part_of(w->plan, x->of, rank, &part[i], err);
    if (s || !part[i].elements) continue;
    tensor[n++] = shards_in_file(x->name, x->view.type, &part[i]);
    shards_index_add(&w->index, file, x->name, x->tensor, &part[i]);
  }
  st_writer *to = s ? NULL : st_create(path.data, n, tensor, err);
  for (size_t i = 0; to && i < o->n && !err->status; i++)
    if (part[i].elements) copy_part(w, to, &o->at[i].view, &part[i], err);
  if (to && !st_finish(to, err->status, err)) w->made++;
  for (size_t i = 0; i < o->n; i++) shards_part_free(&part[i]);
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
  return shards_index_write(w->index, w->folder, MGRID_WRITE_NEW, metadata, err);
}

static mgrid_status write_all(work *w, mgrid_error *err) {
  int64_t      world = mgrid_plan_world(w->plan);
  size_t       n = w->to.n + 1;
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
  static const char *const files[] = { "model-*-of-*.safetensors", SHARDS_INDEX, NULL };
  mgrid_output            *folder = mgrid_output_folder(w->o->output, files, err);
  if (!folder) return err->status;
  w->folder = mgrid_output_place(folder);
  return mgrid_output_end(folder, write_all(w, err), err);
}

/* Read the rules of --names, and those of the recipe, if it is not a saved plan. */
static mgrid_status read_rules(const options *o, mgrid_runtime *rt, names *given, names *own, mgrid_error *err) {
  mgrid_text text = { 0 };
  json_t    *info = NULL, *line;
  size_t     i;
  if (o->names && !mgrid_read_file(o->names, &text, err))
    names_read(given, o->names, mgrid_text_chars(&text), text.len, err);
  text.len = 0;
  if (!err->status && rt) mgrid_runtime_info_json(rt, &info, err);
  json_array_foreach(json_object_get(info, "names"), i, line) {
    mgrid_text_put(&text, json_string_value(line), json_string_length(line));
    mgrid_text_str(&text, "\n");
  }
  if (text.failed) mgrid_oom(err);
  if (!err->status && text.len) names_read(own, o->cli.recipe, text.data, text.len, err);
  json_decref(info);
  mgrid_text_free(&text);
  return err->status;
}

/* Pair the tensors, and count the bytes of the result. */
static mgrid_status pair(work *w, const names *given, const names *own, mgrid_error *err) {
  w->to = (outputs){ .plan = w->plan,
                     .from = w->from,
                     .recipe = w->o->cli.recipe,
                     .given = w->o->names ? given : NULL,
                     .own = own,
                     .convert = w->o->convert };
  if (outputs_find(&w->to, err)) return err->status;
  for (size_t i = 0; i < w->to.n; i++) w->all += mgrid_tensor_bytes(w->to.at[i].tensor);
  return MGRID_OK;
}

static mgrid_status reshard(const options *o, const mgrid_plan *plan, const names *given, const names *own,
                            mgrid_error *err) {
  work w = { .o = o, .plan = plan, .window = (o->window ? o->window : 64) << 20, .tells = isatty(2) };
  char bytes[32], where[512];
  mgrid_shown(where, sizeof where, o->output, strlen(o->output));
  w.from = shards_open(o->cli.words[0], err);
  if (w.from && !pair(&w, given, own, err) && !check_cuts(&w, err) && !write_folder(&w, err)) {
    cli_note_items(&o->cli, plan, "");
    printf("%zu tensor%s, %s, in %" PRId64 " file%s of %s\n", w.to.n, mgrid_s_of(w.to.n),
           cli_bytes(w.all, bytes, sizeof bytes), w.files, mgrid_s_of(w.files), where);
  }
  outputs_free(&w.to);
  shards_close(w.from);
  return err->status;
}

/* ------------------------------------------------------------------ command */

/* Plan for the smallest world that the recipe takes with these sizes. A refusal of a world names one that would do; any
** other is of something else. */
static mgrid_plan *smallest_plan(const options *o, mgrid_runtime *rt, mgrid_error *err) {
  enum { MOST = 4096 };
  for (int64_t world = 1; world <= MOST; world++) {
    mgrid_error why = MGRID_ERROR_INIT;
    mgrid_plan *plan = cli_plan(&o->cli, rt, world, &why);
    bool        other = !plan && (why.status / 100 != MGRID_REFUSED / 100 || !strstr(why.message, "a world of "));
    if (plan) mgrid_error_clear(err);
    if (plan) return plan;
    if (world == 1 || other) mgrid_error_replace(err, &why);
    if (other) return NULL;
  }
  mgrid_error_reword(err, "%s; no world of up to %d ranks would do", err->message, MOST);
  return NULL;
}

/* Set the parameters of a recipe with rules between names, which is one of checkpoints: the config in their folder, if
** the command line names no file. */
static void use_config(options *o, mgrid_text *path) {
  mgrid_text_add(path, "%s/config.json", o->cli.words[0]);
  if (!o->cli.params && !path->failed && access(path->data, R_OK) == 0) o->cli.params = path->data;
}

/* Matching for the rules of a recipe, which may come from anybody: a few seconds of it. */
static bool pay(void *steps, int64_t n) { return (*(int64_t *)steps -= n) > 0; }

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options o = { 0 };
  if (!cli_parse(&o.cli, self, argc, argv)) return o.cli.code;
  if (!o.cli.nwords)
    return cli_usage(&o.cli, "reshard needs a checkpoint: an index, its folder, or a .safetensors file");
  if (!o.cli.recipe) return cli_usage(&o.cli, "reshard needs --to RECIPE, whose tensors say the new layout");
  if (!o.output) return cli_usage(&o.cli, "reshard needs -o FOLDER, where the files go");
  mgrid_error    err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = NULL;
  mgrid_plan    *plan = NULL;
  names          given = { 0 }, own = { 0 };
  mgrid_text     config = { 0 };
  int64_t        steps = INT64_C(1) << 30;
  mgrid_payer    payer = { .pay = pay, .ud = &steps };
  if (!cli_open(&o.cli, &rt, &err) && !read_rules(&o, rt, &given, &own, &err)) {
    own.payer = &payer;
    if (own.n) use_config(&o, &config);
    plan = o.cli.world || !rt ? cli_plan(&o.cli, rt, o.cli.world, &err) : smallest_plan(&o, rt, &err);
  }
  if (plan) reshard(&o, plan, &given, &own, &err);
  if (err.status) cli_say(&o.cli, &err);
  names_free(&given), names_free(&own);
  mgrid_text_free(&config);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
  return cli_finish(&o.cli, err.status);
}

const cli_command command_reshard = {
  .name = "reshard",
  .takes = "CHECKPOINT --to RECIPE [...] -o FOLDER",
  .does = "a checkpoint of safetensors files in another layout",
  .usage = "moongrid reshard CHECKPOINT --to RECIPE [--world N] [NAME=VALUE ...] -o FOLDER [--names FILE]\n"
           "       [--convert] [--window MIB] [--empty]",
  .about =
      "Write a checkpoint of safetensors files again, in the layout of a recipe's tensors. CHECKPOINT is a folder as\n"
      "Hugging Face has it or as moongrid wrote it for another layout, its model.safetensors.index.json, or a single\n"
      ".safetensors file. Each rank that has the first copy of a part gets a file; the index of the result says which\n"
      "part each file has, and can be resharded again. An index whose parts do not have each element of a tensor once\n"
      "is refused before anything is written. The recipe llama reads the config.json of the folder; --params names\n"
      "another.\n"
      "\n"
      "A tensor of the checkpoint is the tensor of the recipe that has its name, or its name with _ for each dot and\n"
      "dash, of the same type and shape. Others are paired by rules, lines of a file (--names) or of the recipe: "
      "names\n"
      "on both sides, of which the checkpoint has one side and the recipe the other. A capture (%d+), (%a+), (%w+) or\n"
      "(.+) on one side is %1, %2, ... everywhere else:\n"
      "\n"
      "  model.layers.(%d+).mlp.down_proj.weight -> l%1_down                              # renamed\n"
      "  l.(%d+).q.weight + l.%1.k.weight + l.%1.v.weight -> l%1_qkv                      # concatenated, or cut "
      "apart\n"
      "  l.(%d+).q.weight + l.%1.k.weight + l.%1.v.weight -> l%1_qkv by 8                 # in 8 blocks of q, k, v\n"
      "  h.(%d+).mlp.c_fc.weight -> l%1_up transposed\n"
      "  l.(%d+).experts.(%d+).w1.weight -> l%1_w1[%2]                                    # slices of the first axis\n"
      "  l.(%d+).rotary_emb.inv_freq -> -                                                 # not wanted\n"
      "\n"
      "A line with two words, a pattern of the shell and a tensor of the recipe, lays out each tensor that fits the\n"
      "pattern as that one, and keeps its name. Of the lines the first that fits counts.",
  .sample = "moongrid reshard model.safetensors.index.json --to examples/fsdp_tp.lua --world 8 -o FOLDER",
  .recipe = true,
  .recipe_from = "to",
  .words = 1,
  .options = { { "to", cli_text, offsetof(options, cli.recipe), "RECIPE", .help = "the recipe of the new layout" },
               CLI_WORLD("its ranks; left out, the fewest that the recipe takes"),
               { "output", cli_text, offsetof(options, output), "FOLDER",
                 .help = "where the files go; there is none of this name yet", .letter = true },
               { "names", cli_text, offsetof(options, names), "FILE",
                 .help = "which tensors of the checkpoint are which of the recipe" },
               { "convert", cli_flag, offsetof(options, convert),
                 .help = "also tensors whose type is another in the recipe, of f64, f32, f16 and bf16" },
               { "window", cli_number, offsetof(options, window), "MIB", .help = "memory for elements, at most; 64" },
               { "empty", cli_flag, offsetof(options, empty),
                 .help = "also where a cut leaves ranks without anything of a tensor, as 4 heads over 8 ranks do; "
                         "bounds and owners that say so need no word" } },
  .run = run,
  .after = "diff",
};
