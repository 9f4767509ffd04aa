/* SPDX-License-Identifier: MIT
**
** facts.c - what a placement means for NCCL: which families NVLink carries alone, and so can NVLink SHARP (NVLS) reduce;
** which keep to one rail of the network; and variables that NCCL and DeepEP read.
*/
#include "machine/command/placing.h"
#include "plan/json.h"

#include <inttypes.h>
#include <string.h>

/* Families whose groups of several ranks all lie in one domain of the level. */
static bool is_inside(const placing *x, size_t i, size_t level) {
  return cli_placed_entry(x, i)->family->max_size > 1 && x->counts[cli_placed(x, i, level)].crossing == 0;
}

/* Ranks in the NVLink domains, if all of these have as many; else 0. */
static int64_t ranks_of(const placing *x, size_t level) {
  const mgrid_tier *t = &x->m->tier[level];
  int64_t           world = mgrid_plan_world(x->p);
  return t->each && !x->m->at && (world % t->each == 0) ? t->each : 0;
}

static json_t *names_inside(const placing *x, size_t level) {
  json_t *all = json_array();
  for (size_t i = 0; i < x->n; i++)
    if (is_inside(x, i, level)) json_array_append_new(all, json_string(cli_placed_entry(x, i)->name));
  return all;
}

static json_t *variables(const placing *x) {
  json_t *all = json_object();
  int64_t ranks = ranks_of(x, mgrid_nvlink_level(x->m));
  if (ranks > 1) json_object_set_new(all, "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN", json_sprintf("%" PRId64, ranks));
  if (x->m->topology && x->m->source) json_object_set_new(all, "NCCL_TOPO_FILE", mgrid_json_path(x->m->source));
  return all;
}

json_t *cli_nccl_json(const placing *x) {
  size_t  level = mgrid_nvlink_level(x->m);
  json_t *rails = json_object();
  for (size_t l = x->m->ntiers; l < x->levels; l++)
    json_object_set_new(rails, mgrid_level_name(x->m, l), names_inside(x, l));
  return mgrid_json_pack("{s{sssIso}soso}", "nvlink", "level", mgrid_level_name(x->m, level), "ranks",
                         (json_int_t)x->m->tier[level].most, "inside", names_inside(x, level), "rails", rails,
                         "variables", variables(x));
}

static void list(const placing *x, size_t level, const char *none, mgrid_text *t) {
  json_t *names = names_inside(x, level);
  for (size_t i = 0; i < json_array_size(names); i++)
    mgrid_text_add(t, "%s%s", i ? ", " : "", json_string_value(json_array_get(names, i)));
  if (json_array_size(names) == 0) mgrid_text_str(t, none);
  json_decref(names);
}

void cli_nccl_facts(const placing *x) {
  size_t      level = mgrid_nvlink_level(x->m);
  mgrid_text  t = { 0 };
  json_t     *set = variables(x), *value;
  const char *name;
  mgrid_text_add(&t, "inside one NVLink domain, a %s, where NVLink SHARP can reduce: ", mgrid_level_name(x->m, level));
  list(x, level, "no family", &t);
  printf("\n");
  cli_wrap(x->c, "nccl", &t);
  for (size_t l = x->m->ntiers; l < x->levels; l++) {
    mgrid_text_add(&t, "on one %s, whatever nodes they cross: ", mgrid_level_name(x->m, l));
    list(x, l, "no family", &t);
    cli_wrap(x->c, "", &t);
  }
  json_object_foreach(set, name, value) {
    mgrid_text_add(&t, "%s=%s", name, json_string_value(value));
    cli_wrap(x->c, "", &t);
  }
  json_decref(set);
  mgrid_text_free(&t);
}
