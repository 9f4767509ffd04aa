/* SPDX-License-Identifier: MIT
**
** next.c - plans for fewer ranks, each made once: the part of a loss that does not depend on which ranks are lost.
*/
#include "survive/next.h"

#include "comm/recipe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void free_texts(size_t n, char **text) {
  for (size_t i = 0; i < n && text; i++) free(text[i]);
  free(text);
}

static char **copy_texts(size_t n, const char *const *text) {
  char **copy = calloc(n + 1, sizeof *copy);
  for (size_t i = 0; i < n && copy; i++)
    if (!(copy[i] = mgrid_strdup(text[i]))) {
      free_texts(i, copy);
      return NULL;
    }
  return copy;
}

/* ------------------------------------------------------------------ losses */

/* Number the places. */
static mgrid_status find_places(mgrid_losses *l, mgrid_error *err) {
  const mgrid_spares *spares = mgrid_content_spares(&l->plan->content);
  int64_t             group, position;
  l->rank = malloc((size_t)l->world * sizeof *l->rank);
  l->place = malloc((size_t)l->world * sizeof *l->place);
  if (!l->rank || !l->place) return mgrid_oom(err);
  for (int64_t r = 0; r < l->world; r++) {
    bool spare = spares && mgrid_family_locate(spares->f, r, 0, &group, &position);
    l->place[r] = spare ? -1 : (int32_t)l->places;
    if (!spare) l->rank[l->places++] = (int32_t)r;
  }
  return MGRID_OK;
}

mgrid_losses *mgrid_losses_new(mgrid_runtime *rt, const mgrid_plan *plan, size_t n, const char *const *args,
                               const mgrid_losses_options *options, mgrid_error *err) {
  mgrid_losses_options o = MGRID_LOSSES_OPTIONS_INIT;
  if (mgrid_lacks(rt, "the runtime", err) || !plan) return NULL;
  if (mgrid_struct_read(&o, sizeof o, options, "mgrid_losses_options", err)) return NULL;
  if (mgrid_lacks_list(n, args, "arguments", err) || mgrid_lacks_list(o.nparams, o.changed, "parameters", err))
    return NULL;
  for (size_t i = 0; i < n + o.nparams; i++)
    if (mgrid_lacks(i < n ? args[i] : o.changed[i - n], i < n ? "an argument" : "a parameter", err)) return NULL;
  char   tail[64];
  size_t k = 0;
  while (o.how && k < 3 && strcmp(mgrid_loss_answers[k], o.how) != 0) k++;
  if (k == 3) {
    mgrid_suggest(tail, sizeof tail, o.how, mgrid_loss_answers, 3);
    return mgrid_null(err, MGRID_UNKNOWN_NAME, "unknown answer to a loss '%s'%s", o.how, tail);
  }
  mgrid_losses *l = calloc(1, sizeof *l);
  if (!l) return mgrid_null_oom(err);
  l->rt = mgrid_runtime_ref(rt);
  l->plan = mgrid_plan_ref(plan);
  l->world = plan->content.world;
  l->nargs = n, l->args = copy_texts(n, args);
  l->nchanged = o.nparams, l->changed = copy_texts(o.nparams, o.changed);
  l->how = o.how ? mgrid_strdup(o.how) : NULL;
  l->file = o.params ? mgrid_strdup(o.params) : NULL;
  mgrid_status s = MGRID_OK;
  if (!l->args || !l->changed || (o.how && !l->how) || (o.params && !l->file)) s = mgrid_oom(err);
  if (!s) s = find_places(l, err);
  if (!s) s = mgrid_comm_list_make(&l->comms, plan, err);
  if (!s) return l;
  mgrid_losses_free(l);
  return NULL;
}

void mgrid_next_free(mgrid_next *x) {
  free(x->params);
  free_texts(x->nargs, x->args);
  free(x->bytes);
  mgrid_comm_list_free(&x->comms);
  if (x->paired) mgrid_pairs_free(&x->pairs);
  mgrid_plan_free(x->plan);
  free(x);
}

void mgrid_losses_free(mgrid_losses *l) {
  if (!l) return;
  for (mgrid_next *x = l->next, *after; x; x = after) {
    after = x->after;
    mgrid_next_free(x);
  }
  mgrid_policy_free(l->policy);
  mgrid_state_free(l->state);
  mgrid_comm_list_free(&l->comms);
  free(l->rank);
  free(l->place);
  free_texts(l->nargs, l->args);
  free_texts(l->nchanged, l->changed);
  free(l->how);
  free(l->file);
  mgrid_plan_free(l->plan);
  mgrid_runtime_free(l->rt);
  free(l);
}

/* ------------------------------------------------------------- a next plan */

/* List the arguments of the plan, without those that `params` replaces, then `params`. */
static const char **arguments(const mgrid_losses *l, size_t n, char *const *params, size_t *all) {
  const char **list = malloc((l->nargs + n + 1) * sizeof *list);
  *all = 0;
  for (size_t i = 0; i < l->nargs && list; i++) {
    size_t name = strcspn(l->args[i], "="), k = 0;
    while (k < n && (strncmp(params[k], l->args[i], name) != 0 || params[k][name] != '=')) k++;
    if (k == n) list[(*all)++] = l->args[i];
  }
  for (size_t i = 0; i < n && list; i++) list[(*all)++] = params[i];
  return list;
}

mgrid_plan *mgrid_plan_sparing(mgrid_runtime *rt, const char *file, int64_t world, int64_t nspares, int32_t *spare,
                               size_t n, const char *const *args, mgrid_error *err) {
  mgrid_spares *spares = mgrid_spares_new(world, nspares, spare, err);
  mgrid_plan   *p = NULL;
  if (!spares) return NULL;
  if (!mgrid_runtime_lend(rt, &mgrid_spares_kind, spares, err)) p = mgrid_runtime_plan(rt, world, file, n, args, err);
  mgrid_runtime_lend(rt, &mgrid_spares_kind, NULL, NULL);
  mgrid_spares_kind.free(spares);
  if (p && mgrid_plan_nspares(p) != nspares) { /* a plan of a recipe that this library did not make */
    mgrid_plan_free(p);
    return mgrid_null(err, MGRID_REFUSED, "the recipe made a plan without the spares that it was given");
  }
  return p;
}

mgrid_plan *mgrid_next_plan(mgrid_losses *l, int64_t world, int64_t places, size_t n, const char *const *args,
                            const int32_t *at, mgrid_error *err) {
  int32_t *list = malloc((size_t)(world - places + 1) * sizeof *list);
  void    *before = NULL;
  for (int64_t i = places; i < world && list; i++) list[i - places] = (int32_t)i;
  if (at && mgrid_losses_lend(l, world, at, &before, err)) return free(list), NULL;
  mgrid_plan *p = mgrid_plan_sparing(l->rt, l->file, world, world - places, list, n, args, err);
  if (at) mgrid_losses_lend_again(l, before);
  return p;
}

/* Try layouts from the largest down, none larger than the present one; without a shrink only the largest. If the recipe refuses
** all, return MGRID_OK, and leave x->plan NULL. */
static mgrid_status try_worlds(mgrid_losses *l, mgrid_next *x, mgrid_loss *of, mgrid_error *err) {
  int64_t most = x->survivors < l->places ? x->survivors : l->places, least = x->shrinks ? 1 : most;
  for (x->places = most; x->places >= least; x->places--) {
    mgrid_error why = MGRID_ERROR_INIT;
    if (mgrid_losses_machine(l))
      mgrid_next_try_places(l, x, of, &why);
    else
      x->plan = mgrid_next_plan(l, x->survivors, x->places, x->nargs, (const char *const *)x->args, NULL, &why);
    if (why.status == MGRID_NO_MEMORY) return mgrid_error_pass(err, &why);
    if (x->places == most) x->why = why;
    if (x->plan) break;
  }
  return MGRID_OK;
}

const char **mgrid_tensors_alike(const mgrid_plan *from, const mgrid_plan *to, size_t *shared, mgrid_error *err) {
  size_t       n = mgrid_plan_ntensors(from);
  const char **name = malloc((n + 1) * sizeof *name);
  *shared = 0;
  if (!name) return mgrid_null_oom(err);
  for (size_t i = 0; i < n; i++) {
    const char         *one = mgrid_plan_tensor_name(from, i);
    const mgrid_tensor *was = mgrid_plan_tensor(from, one), *is = mgrid_plan_tensor(to, one);
    bool                alike = is && was->type == is->type && was->naxes == is->naxes;
    for (size_t k = 0; alike && k < was->naxes; k++)
      alike = was->axis[k].length == is->axis[k].length && strcmp(was->axis[k].name, is->axis[k].name) == 0;
    if (alike) name[(*shared)++] = one;
  }
  return name;
}

/* Pair the tensors that both plans have in one shape. */
static mgrid_status pair_tensors(const mgrid_losses *l, mgrid_next *x, mgrid_error *err) {
  size_t             shared;
  const char       **name = mgrid_tensors_alike(l->plan, x->plan, &shared, err);
  mgrid_move_options options = MGRID_MOVE_OPTIONS_INIT;
  if (!name) return err->status;
  x->uncounted = (int64_t)(mgrid_plan_ntensors(l->plan) - shared);
  for (size_t i = 0; i < mgrid_plan_ntensors(x->plan); i++)
    x->uncounted += !mgrid_plan_tensor(l->plan, mgrid_plan_tensor_name(x->plan, i));
  mgrid_status s = shared ? mgrid_pairs_init(&x->pairs, l->plan, x->plan, shared, name, &options, err) : MGRID_OK;
  x->paired = shared && !s;
  free(name);
  return s;
}

static char *joined(size_t n, char *const *params) {
  mgrid_text t = { 0 };
  for (size_t i = 0; i < n; i++) mgrid_text_add(&t, "%s\n", params[i]);
  char *text = t.failed ? NULL : mgrid_strdup(mgrid_text_chars(&t));
  mgrid_text_free(&t);
  return text;
}

static mgrid_next *make(mgrid_losses *l, mgrid_loss *of, bool shrinks, size_t n, char *const *params,
                        mgrid_error *err) {
  size_t       all = 0;
  mgrid_next  *x = calloc(1, sizeof *x);
  const char **args = arguments(l, n, params, &all);
  mgrid_status s = MGRID_OK;
  if (!x || !args || !(x->params = joined(n, params)) || !(x->args = copy_texts(all, args))) s = mgrid_oom(err);
  if (x) x->survivors = of->survivors, x->shrinks = shrinks, x->why = (mgrid_error)MGRID_ERROR_INIT;
  if (x && x->args) x->nargs = all;
  if (!s) s = try_worlds(l, x, of, err);
  if (!s && x->plan) s = mgrid_comm_list_make(&x->comms, x->plan, err);
  if (!s && x->plan) s = pair_tensors(l, x, err);
  if (!s && x->plan) x->fold = mgrid_fold_of(l, x);
  free(args);
  if (!s) return x;
  if (x) mgrid_next_free(x);
  return NULL;
}

mgrid_next *mgrid_next_of(mgrid_losses *l, mgrid_loss *of, bool shrinks, size_t n, char *const *params,
                          mgrid_error *err) {
  bool        by_machine = mgrid_losses_machine(l);
  char       *text = joined(n, params);
  mgrid_next *x = l->next;
  if (!text) return mgrid_null_oom(err);
  if (by_machine && x) { /* most losses have other places: do not keep the last plan */
    l->next = x->after;
    mgrid_next_free(x);
    x = NULL;
  }
  while (x && !(x->survivors == of->survivors && x->shrinks == shrinks && strcmp(x->params, text) == 0)) x = x->after;
  free(text);
  if (!x && (x = make(l, of, shrinks, n, params, err))) {
    x->after = l->next;
    l->next = x;
  }
  return x;
}
