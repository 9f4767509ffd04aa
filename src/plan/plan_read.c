/* SPDX-License-Identifier: MIT
**
** plan_read.c - reads a saved plan: JSON with "rules", one for each line of the plan. The text may
** come from anybody, so its length and depth are limited, and reading it has a budget. Either the
** plan has the digest that was saved, or there is an error.
*/
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

enum { WORK = 1 << 25 }; /* takes a second or two */

/* ------------------------------------------------------------------- one rule */

/* Read the options of a family. The lane is not among them: it follows from the concurrent
** families. */
static mgrid_choice *plan_read_options(const mgrid_field *s) {
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_choice *c = NULL;
  mgrid_text names = { 0 };
  char name[MGRID_NAME_MAX + 4];

  for (const mgrid_option *row = mgrid_option_table; row->name && s->v; row++) {
    const bool seconds = row->kind == MGRID_OPTION_SECONDS;
    void *field = mgrid_option_at(&o, row);
    if (seconds) snprintf(name, sizeof name, "%s_us", row->name);
    const mgrid_field f = mgrid_field_of(s, seconds ? name : row->name);
    mgrid_text_str(&names, f.name);
    mgrid_text_str(&names, " ");
    if (row->kind == MGRID_OPTION_FLAG)
      *(bool *)field = mgrid_field_flag(&f);
    else if (f.v && seconds)
      *(double *)field = (double)mgrid_field_number(&f, 1, INT64_C(1) << 50) / 1e6;
    else if (f.v)
      *(const char **)field = mgrid_field_text(&f);
  }
  if (names.failed)
    mgrid_oom(s->all->err), mgrid_field_fail(s);
  else if (s->v)
    mgrid_field_only(s, names.data);
  mgrid_text_free(&names);
  if (!s->all->failed && mgrid_choice_new(&o, &c, s->all->err)) mgrid_field_fail(s);
  return c;
}

static void read_family(const mgrid_field *s, const char *name, mgrid_topology *t) {
  const mgrid_field rule = mgrid_field_of(s, "rule"), options = mgrid_field_of(s, "options");
  mgrid_family *f = mgrid_family_read(&rule, t->content.world);
  mgrid_choice *c = f ? plan_read_options(&options) : NULL;
  if (c && mgrid_topology_put(t, name, f, c, s->all->err)) mgrid_field_fail(s);
  mgrid_choice_free(c);
  mgrid_family_free(f);
}

static void plan_read_grid(const mgrid_field *s, const char *name, mgrid_topology *t) {
  mgrid_grid *g = mgrid_grid_read(s, t->content.world);
  if (g && mgrid_topology_put_grid(t, name, g, s->all->err)) mgrid_field_fail(s);
  mgrid_grid_free(g);
}

static void read_param(const mgrid_field *s, const char *name, mgrid_topology *t) {
  const mgrid_field field = mgrid_field_of(s, "value");
  const char *value = mgrid_field_text(&field);
  if (!s->all->failed && mgrid_topology_param(t, name, value, s->all->err)) mgrid_field_fail(s);
}

static void read_called(const mgrid_field *s, const char *name, mgrid_topology *t) {
  const mgrid_field field = mgrid_field_of(s, "version");
  const char *version = mgrid_field_text(&field);
  if (!s->all->failed && mgrid_topology_called(t, name, version, s->all->err)) mgrid_field_fail(s);
}

/* Read a list of concurrent families. It has no name of its own. */
static void read_concurrent(const mgrid_field *s, mgrid_topology *t) {
  const mgrid_field list = mgrid_field_of(s, "concurrent");
  const size_t n = mgrid_field_list(&list, 2, MGRID_CONCURRENT_MAX);
  const char **names = malloc((n + 1) * sizeof *names);
  mgrid_field_only(s, "concurrent");
  for (size_t i = 0; i < n && names; i++) {
    const mgrid_field name = mgrid_field_at(&list, i);
    names[i] = mgrid_field_text(&name);
  }
  if (!names) mgrid_oom(s->all->err), mgrid_field_fail(s);
  if (!s->all->failed && mgrid_concurrent_add(t, n, names, s->all->budget, s->all->err))
    mgrid_field_fail(s);
  free(names);
}

static const mgrid_item_reader readers[] = {
  { "family", "family rule options", read_family },
  { "param", "param value", read_param },
  { "grid", "grid " MGRID_GRID_FIELDS, plan_read_grid },
  { "function", "function version", read_called },
};
enum { READERS = sizeof readers / sizeof readers[0] };

static const mgrid_item_reader *reader_of(const mgrid_field *s) {
  for (size_t i = 0; i < READERS; i++)
    if (json_object_get(s->v, readers[i].word)) return &readers[i];
  for (size_t i = 0; mgrid_item_readers[i]; i++)
    if (json_object_get(s->v, mgrid_item_readers[i]->word)) return mgrid_item_readers[i];
  return NULL;
}

static void plan_read_rule(const mgrid_field *s, mgrid_topology *t) {
  const mgrid_item_reader *r = reader_of(s);
  if (!mgrid_field_spend(s, 1)) return;
  if (!r && json_object_get(s->v, "concurrent")) {
    read_concurrent(s, t);
  } else if (!r) {
    mgrid_field_fault(s, "a family, param, grid, function, concurrent or an item such as a tensor");
  } else {
    const mgrid_field word = mgrid_field_of(s, r->word);
    const char *name = mgrid_field_text(&word);
    mgrid_field_only(s, r->fields);
    if (!s->all->failed) r->read(s, name, t);
  }
}

/* ------------------------------------------------------------------ all rules */

static mgrid_topology *read_world(const mgrid_field *rules) {
  const mgrid_field first = mgrid_field_at(rules, 0), world = mgrid_field_of(&first, "world");
  mgrid_field_list(rules, 1, SIZE_MAX);
  mgrid_field_only(&first, "world");
  const int64_t n = mgrid_field_number(&world, 1, MGRID_WORLD_MAX);
  mgrid_topology *t = rules->all->failed ? NULL : mgrid_topology_new(n, rules->all->err);
  if (!t) mgrid_field_fail(rules);
  return t;
}

/* Refuse rules of another format; the message says how to get rules of this format. */
static void check_format(const mgrid_field *all) {
  const mgrid_field format = mgrid_field_of(all, "format"), by = mgrid_field_of(all, "moongrid");
  const char *recipe = json_string_value(json_object_get(all->v, "recipe"));
  const char *version = json_string_value(by.v);

  if (json_object_get(all->v, "rank")) {
    mgrid_fail(all->all->err, MGRID_BAD_VALUE,
               "this is the view of one rank; without --rank the whole plan is saved");
    mgrid_field_fail(all);
  } else if (!json_object_get(all->v, "rules") && !json_object_get(all->v, "format")) {
    mgrid_fail(all->all->err, MGRID_BAD_VALUE,
               "this is not a saved plan, which moongrid plan RECIPE --world N --rules writes");
    mgrid_field_fail(all);
  } else if (!json_is_integer(format.v) || json_integer_value(format.v) != MGRID_SAVED_FORMAT) {
    mgrid_fail(all->all->err, MGRID_BAD_VALUE,
               "it was written by %s%.40s in format %lld of saved plans; moongrid %s reads format "
               "%d: plan it again (moongrid plan %.200s --world N --rules), or use that moongrid",
               version ? "moongrid " : "an older moongrid", version ? version : "",
               (long long)json_integer_value(format.v), MGRID_VERSION, MGRID_SAVED_FORMAT,
               recipe ? recipe : "RECIPE");
    mgrid_field_fail(all);
  }
}

/* A rule has the value of a parameter as text. Mark those that "params" has as the same string. */
static void mark_texts(const mgrid_field *all, const mgrid_topology *t) {
  const json_t *params = json_object_get(all->v, "params");
  for (size_t i = 0; i < t->content.nparams; i++) {
    mgrid_param *p = &t->content.param[i];
    const char *string = json_string_value(json_object_get(params, p->name));
    p->text = string && strcmp(string, p->value) == 0;
  }
}

/* Make the plan from the rules. The saved digest is not compared yet. */
static mgrid_plan *read_plan(const mgrid_field *all) {
  check_format(all);
  const mgrid_field rules = mgrid_field_of(all, "rules");
  const char *recipe = json_string_value(json_object_get(all->v, "recipe"));
  mgrid_topology *t = all->all->failed ? NULL : read_world(&rules);
  mgrid_plan *p = NULL;
  for (size_t i = 1, n = json_array_size(rules.v); i < n && t && !all->all->failed; i++) {
    const mgrid_field rule = mgrid_field_at(&rules, i);
    plan_read_rule(&rule, t);
  }
  if (t) mark_texts(all, t);
  if (!all->all->failed && recipe && mgrid_topology_recipe(t, recipe, all->all->err))
    mgrid_field_fail(all);
  if (!all->all->failed && !(p = mgrid_plan_make(t, all->all->budget, all->all->err)))
    mgrid_field_fail(all);
  mgrid_topology_free(t);
  return p;
}

static mgrid_plan *read_object(const mgrid_field *all) {
  const mgrid_field digest = mgrid_field_of(all, "digest");
  char own[33], expected[96];
  mgrid_plan *p = read_plan(all);
  if (!p) return NULL;
  mgrid_plan_digest(p, own);
  snprintf(expected, sizeof expected, "'%s', which is that of the rules,", own);
  if (strcmp(mgrid_field_text(&digest), own) != 0) mgrid_field_fault(&digest, expected);
  if (!all->all->failed) return p;
  mgrid_plan_free(p);
  return NULL;
}

static mgrid_plan *plan_from_json(const char *text, size_t length, const char *name,
                                  mgrid_fields *all) {
  json_error_t fault;
  json_t *v = json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
  const mgrid_field whole = { .all = all, .v = v };
  mgrid_plan *p = v ? read_object(&whole) : NULL;
  if (!v && json_error_code(&fault) == json_error_out_of_memory) {
    mgrid_oom(all->err);
  } else if (!v) {
    mgrid_fail(all->err, MGRID_BAD_VALUE, "%.200s:%d: %s", name, fault.line, fault.text);
    snprintf(all->err->file, sizeof all->err->file, "%s", name);
    mgrid_show(all->err->file, sizeof all->err->file);
    all->err->line = fault.line;
  }
  json_decref(v);
  return p;
}

/* Return whether this is the text of mgrid_plan_print. */
static bool is_text(const char *text, size_t length) {
  static const char head[] = "moongrid 1";
  const size_t n = sizeof head - 1;
  return length > n && memcmp(text, head, n) == 0 && memchr("\r\n", text[n], 2);
}

bool mgrid_plan_is_saved(const char *text, size_t length) {
  size_t blank = 0;
  while (blank < length && memchr(" \t\r\n", text[blank], 4)) blank++;
  return (blank < length && text[blank] == '{') || is_text(text, length);
}

mgrid_plan *mgrid_plan_read(const char *text, size_t length, const char *name, mgrid_error *err) {
  if (mgrid_lacks(text, "the text of a plan", err)) return NULL;
  mgrid_budget budget = mgrid_budget_new(WORK, 0);
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_fields all = { .err = &why, .budget = &budget };
  mgrid_plan *p = NULL;

  if (!name) name = "plan";
  if (is_text(text, length))
    mgrid_fail(
        &why, MGRID_BAD_VALUE,
        "this is the text of a plan, which is for people; save a plan with plan --rules or --json");
  else if (length > MGRID_SAVED_MAX)
    mgrid_fail(&why, MGRID_LIMIT,
               "%zu bytes; a plan that is read has at most %d: mgrid_plan_save and --rules leave "
               "out lists of ranks",
               length, MGRID_SAVED_MAX);
  else if (mgrid_json_deep(text, length, MGRID_JSON_DEEP))
    mgrid_fail(&why, MGRID_LIMIT, "brackets are nested more than %d deep", MGRID_JSON_DEEP);
  else
    p = plan_from_json(text, length, name, &all);

  if (budget.exhausted && !why.status)
    mgrid_fail(&why, MGRID_LIMIT, "reading the plan takes more work than allowed");
  if (!why.status) return p;
  if (!why.line) mgrid_error_reword(&why, "%.200s: %s", name, why.message);
  mgrid_error_pass(err, &why);
  mgrid_plan_free(p);
  return NULL;
}
