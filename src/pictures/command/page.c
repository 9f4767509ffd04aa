/* SPDX-License-Identifier: MIT
**
** page.c - moongrid draw -o x.html: one page with a plan for each combination of the given worlds and values.
*/
#include "pictures/command/page.h"
#include "command/built_in_texts.h"
#include "pictures/draw.h"
#include "plan/json.h"
#include "recipe/runtime.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 }; /* most plans of a page */

/* Return whether a value of the parameter `name` (n characters) may contain a comma. */
static bool takes_commas(const json_t *info, const char *name, size_t n) {
  const json_t *params = json_object_get(info, "params");
  for (size_t i = 0; i < json_array_size(params); i++) {
    const json_t *p = json_array_get(params, i), *aliases = json_object_get(p, "aliases");
    const char   *kind = json_string_value(json_object_get(p, "kind")),
               *known = json_string_value(json_object_get(p, "name"));
    bool is = strlen(known) == n && strncmp(known, name, n) == 0;
    for (size_t k = 0; k < json_array_size(aliases) && !is; k++) {
      const char *alias = json_string_value(json_array_get(aliases, k));
      is = strlen(alias) == n && strncmp(alias, name, n) == 0;
    }
    if (is)
      return strcmp(kind, "size") != 0 && strcmp(kind, "index") != 0 && strcmp(kind, "integer") != 0
             && strcmp(kind, "number") != 0 && strcmp(kind, "flag") != 0;
  }
  return true; /* the recipe refuses it, in its own words */
}

static json_t *values_of(const char *text) {
  json_t *list = json_array();
  for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    json_array_append_new(list, json_stringn(at, strcspn(at, ",")));
  return list;
}

/* Find the axes: worlds, and numeric parameters with several values. arg[i] is the argument of axis i; -1: the world. */
static json_t *axes_of(const cli *c, const cli_sizes *worlds, const json_t *info, int arg[CLI_ARGS_MAX + 1]) {
  json_t *axes = json_array(), *values = json_array();
  size_t  n = 0;
  for (size_t i = 0; i < worlds->n; i++) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, worlds->at[i]);
    json_array_append_new(values, json_string(text));
  }
  if (worlds->n > 1) {
    json_array_append_new(axes, mgrid_json_pack("{sssO}", "name", "world", "values", values));
    arg[n++] = -1;
  }
  json_decref(values);
  for (size_t i = 0; i < c->nargs; i++) {
    const char *eq = strchr(c->args[i], '=');
    if (!strchr(eq, ',') || takes_commas(info, c->args[i], (size_t)(eq - c->args[i]))) continue;
    json_array_append_new(
        axes, mgrid_json_pack("{ss%so}", "name", c->args[i], (size_t)(eq - c->args[i]), "values", values_of(eq + 1)));
    arg[n++] = (int)i;
  }
  return axes;
}

static const char *value(const json_t *axes, size_t axis, size_t place) {
  return json_string_value(json_array_get(json_object_get(json_array_get(axes, axis), "values"), place));
}

/* Make plan number `which`. False: out of memory. */
static bool evaluate(const cli *c, const cli_sizes *worlds, mgrid_runtime *rt, const json_t *axes, const int *arg,
                     size_t which, mgrid_frame_of_page *out) {
  cli         one = *c;
  int64_t     world = worlds->at[0];
  char       *made[CLI_ARGS_MAX] = { NULL };
  mgrid_error err = MGRID_ERROR_INIT;
  bool        failed = false;
  for (size_t i = json_array_size(axes); i-- > 0;) {
    size_t n = json_array_size(json_object_get(json_array_get(axes, i), "values")), place = which % n;
    which /= n;
    if (arg[i] < 0) {
      world = worlds->at[place];
      continue;
    }
    mgrid_text  t = { 0 };
    const char *given = c->args[arg[i]];
    mgrid_text_put(&t, given, strcspn(given, "="));
    mgrid_text_add(&t, "=%s", value(axes, i, place));
    failed = failed || t.failed;
    one.args[arg[i]] = made[arg[i]] = t.data;
  }
  if (!failed) out->plan = cli_plan(&one, rt, world, &err);
  if (!failed && !out->plan) out->error = mgrid_strdup(err.message);
  for (size_t i = 0; i < CLI_ARGS_MAX; i++) free(made[i]);
  return !failed;
}

/* Return the first error of a value that no plan of the page has: such a value is wrong with all others. NULL: none. */
static const char *refusal(const mgrid_page *page, const json_t *axes) {
  size_t below = page->n; /* plans between two values of an axis; the last axis varies fastest */
  for (size_t i = 0; i < json_array_size(axes); i++) {
    size_t values = json_array_size(json_object_get(json_array_get(axes, i), "values"));
    below /= values;
    for (size_t v = 0; v < values; v++) {
      const char *said = NULL;
      bool        fits = false;
      for (size_t k = 0; k < page->n && !fits; k++) {
        if (k / below % values != v) continue;
        fits = page->frame[k].plan;
        if (!said) said = page->frame[k].error;
      }
      if (!fits) return said ? said : "out of memory";
    }
  }
  return page->n > 1 || page->frame[0].plan ? NULL : page->frame[0].error;
}

mgrid_status cli_page(const cli *c, const cli_sizes *worlds, mgrid_runtime *rt, mgrid_text *out, mgrid_error *err) {
  json_t *info = NULL;
  int     arg[CLI_ARGS_MAX + 1];
  for (size_t i = 0; i < worlds->n; i++)
    if (worlds->at[i] > MGRID_DRAW_WHOLE)
      return mgrid_fail(err, MGRID_LIMIT, "a page has every rank of up to %d; of %" PRId64 " -o FILE.svg draws a part",
                        MGRID_DRAW_WHOLE, worlds->at[i]);
  mgrid_status s = mgrid_runtime_info_json(rt, &info, err);
  if (s) return s;
  json_t             *axes = axes_of(c, worlds, info, arg);
  mgrid_frame_of_page frame[MOST] = { { NULL, NULL } };
  mgrid_page          page = {
             cli_text_of("page.html"), cli_from_stdin(c) ? CLI_STDIN : c->recipe, axes, c->machine != NULL, 1, frame
  };
  for (size_t i = 0; i < json_array_size(axes) && page.n <= MOST; i++)
    page.n *= json_array_size(json_object_get(json_array_get(axes, i), "values"));
  if (page.n > MOST) s = mgrid_fail(err, MGRID_LIMIT, "a page has up to %d plans; fewer values would do", MOST);
  for (size_t i = 0; i < page.n && !s; i++) {
    cli_progress(c, "planning for the page, %zu of %zu", i + 1, page.n);
    if (!evaluate(c, worlds, rt, axes, arg, i, &frame[i])) s = mgrid_oom(err);
  }
  const char *refused = s ? NULL : refusal(&page, axes);
  if (refused) s = mgrid_fail(err, MGRID_REFUSED, "%s", refused);
  if (!s) cli_progress(c, "drawing the page");
  if (!s) s = mgrid_draw_html(&page, out, err);
  cli_progress_end();
  for (size_t i = 0; i < MOST; i++) {
    mgrid_plan_free(frame[i].plan);
    free(frame[i].error);
  }
  json_decref(axes);
  json_decref(info);
  return s;
}
