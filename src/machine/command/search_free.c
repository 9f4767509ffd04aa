/* SPDX-License-Identifier: MIT
**
** search_free.c - what place --search order may choose: an order of dims, and parameters with several values.
*/
#include "machine/command/searching.h"

#include <stdlib.h>
#include <string.h>

static bool add_value(free_param *p, const char *text, size_t len) {
  char *own = strndup(text, len);
  if (!own || !MGRID_GROW(p->value, p->n, 1)) return free(own), false;
  p->value[p->n++] = own;
  return true;
}

/* Add the orders of the words of "tp-dp-pp", each once; *some: not all of them. */
static mgrid_status add_orders(free_param *p, const char *order, bool *some, mgrid_error *err) {
  char  *copy = mgrid_strdup(order), *word[DIMS + 1], *save = NULL;
  size_t n = 0, at[DIMS] = { 0 };
  for (char *w = copy ? strtok_r(copy, "-", &save) : NULL; w && n <= DIMS; w = strtok_r(NULL, "-", &save))
    word[n++] = w;
  if (copy && n > DIMS) {
    free(copy);
    return mgrid_fail(err, MGRID_LIMIT, "order '%.60s' has more than %d dims; list orders: %s=A,B,C", order, DIMS,
                      p->name);
  }
  bool   whole = copy != NULL;
  size_t all = 1, step = 1;
  for (size_t i = 2; i <= n; i++) all *= i;
  if (all > LISTED) step = all / LISTED; /* some of all, evenly */
  *some = step > 1;
  for (size_t j = 0; j < all && whole; j += step) {
    const size_t k = j;
    char         text[256] = "";
    bool         used[DIMS] = { false };
    size_t       left = k;
    for (size_t i = 0, radix = n; i < n; i++, radix--) {
      at[i] = left % radix;
      left /= radix;
      size_t which = 0;
      for (size_t skip = at[i]; used[which] || skip > 0; which++) skip -= !used[which];
      used[which] = true;
      snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "-" : "", word[which]);
    }
    whole = add_value(p, text, strlen(text));
  }
  free(copy);
  return whole ? MGRID_OK : mgrid_oom(err);
}

static mgrid_status add_list(free_param *p, const char *list, mgrid_error *err) {
  for (const char *at = list;; at++) {
    size_t len = strcspn(at, ",");
    if (!add_value(p, at, len)) return mgrid_oom(err);
    at += len;
    if (!*at) return MGRID_OK;
  }
}

static bool is_order(const char *text) {
  const char *dash = text ? strchr(text, '-') : NULL;
  return dash && dash > text && dash[1]
         && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

/* The parameter of the recipe with this name or alias; NULL: there is none. */
static const json_t *declared(const json_t *params, const char *name, size_t len) {
  size_t        i, k;
  const json_t *one, *alias;
  json_array_foreach(params, i, one) {
    const char *full = json_string_value(json_object_get(one, "name"));
    if (full && strlen(full) == len && memcmp(full, name, len) == 0) return one;
    json_array_foreach(json_object_get(one, "aliases"), k, alias) {
      const char *other = json_string_value(alias);
      if (other && strlen(other) == len && memcmp(other, name, len) == 0) return one;
    }
  }
  return NULL;
}

static const char *text_at(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static bool holds_order(const json_t *p) {
  const char *kind = text_at(p, "kind");
  return strcmp(kind, "order") == 0 || (strcmp(kind, "text") == 0 && is_order(text_at(p, "default")));
}

/* Is an argument of the command line about this parameter? */
static bool is_given(const search *x, const json_t *params, const json_t *p) {
  for (size_t k = 0; k < x->c->nargs; k++) {
    const char *eq = strchr(x->c->args[k], '=');
    if (eq && declared(params, x->c->args[k], (size_t)(eq - x->c->args[k])) == p) return true;
  }
  return false;
}

/* One more that is free. NULL after a refusal. */
static free_param *one_more(search *x, const json_t *p, mgrid_error *err) {
  if (x->n == FREE) return mgrid_fail(err, MGRID_LIMIT, "at most %d parameters are free", FREE), NULL;
  if (holds_order(p) && x->order < 0) x->order = (int)x->n;
  x->param[x->n].name = text_at(p, "name");
  return &x->param[x->n++];
}

/* The lists on the command line; all else there is fixed. */
static mgrid_status choose_lists(search *x, const json_t *params, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t k = 0; k < x->c->nargs && !s; k++) {
    const char   *arg = x->c->args[k], *eq = strchr(arg, '=');
    const json_t *p = eq ? declared(params, arg, (size_t)(eq - arg)) : NULL;
    bool list = p && strchr(eq, ',') && strcmp(text_at(p, "kind"), "list") != 0 && eq[1] != '{' && eq[1] != '[';
    if (!list) {
      x->arg[x->nfixed++] = arg;
      continue;
    }
    free_param *f = one_more(x, p, err);
    s = f ? add_list(f, eq + 1, err) : err->status;
  }
  return s;
}

/* Find the present values among those that are free. */
static void find_now(search *x, const json_t *params) {
  for (size_t i = 0; i < x->n; i++) {
    const free_param *p = &x->param[i];
    const char       *usual = text_at(declared(params, p->name, strlen(p->name)), "default");
    size_t            k = 0;
    while (k < p->n && strcmp(p->value[k], usual) != 0) k++;
    x->listed |= k == p->n;
    x->now.at[i] = k < p->n ? k : 0;
  }
}

mgrid_status cli_search_free(search *x, const json_t *params, mgrid_error *err) {
  size_t        i, k;
  const json_t *one, *choice;
  x->order = -1;
  mgrid_status s = choose_lists(x, params, err);
  bool         ordered = false; /* an order is given, or free */
  json_array_foreach(params, i, one) ordered |= holds_order(one) && is_given(x, params, one);
  json_array_foreach(params, i, one) { /* what is declared with its values */
    const json_t *choices = json_object_get(one, "choices");
    if (s || !choices || is_given(x, params, one)) continue;
    ordered |= holds_order(one);
    free_param *f = one_more(x, one, err);
    if (!f) s = err->status;
    json_array_foreach(choices, k, choice) {
      const char *text = json_string_value(choice);
      if (!s && (!text || !add_value(f, text, strlen(text)))) s = mgrid_oom(err);
    }
  }
  for (int declared_ones = 1; declared_ones >= 0; declared_ones--) /* param.order before a text that looks like one */
    json_array_foreach(params, i, one) {
      bool is = strcmp(text_at(one, "kind"), "order") == 0;
      if (s || ordered || is != (declared_ones == 1) || !holds_order(one) || !*text_at(one, "default")) continue;
      ordered = true;
      free_param *f = one_more(x, one, err);
      s = f ? add_orders(f, text_at(one, "default"), &x->sampled, err) : err->status;
    }
  if (!s) find_now(x, params);
  return s;
}
