/* SPDX-License-Identifier: MIT
**
** next.c - the plans that may come next. Layouts are tried from the largest down. The result
** depends on how many ranks are lost, not on which, so it is kept for other losses. But if the
** recipe reads the machine, the result depends on where the survivors run, so the recipe is
** evaluated for each loss, on a machine that has only the survivors. Nothing here sends anything.
*/
#include "comm/recipe.h"
#include "machine/machine_item.h"
#include "survive/next.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* --------------------------------------------- the communicators of a plan */

uint64_t mgrid_comm_hash(const int32_t *member, int64_t n) {
  return XXH3_64bits(member, (size_t)n * sizeof *member);
}

static const mgrid_choice *choice_of(const mgrid_plan *p, int32_t entry) {
  return p->content.entry[entry].choice;
}

static bool has_members(const mgrid_comm_list *c, int32_t i, const int32_t *member, int64_t n) {
  return c->start[i + 1] - c->start[i] == n
         && memcmp(c->member + c->start[i], member, (size_t)n * sizeof *member) == 0;
}

int32_t mgrid_comm_find(const mgrid_comm_list *c, const mgrid_plan *p, const int32_t *member,
                        int64_t n, uint64_t hash, const mgrid_choice *choice) {
  size_t at = 0;
  for (int32_t i; (i = mgrid_index_next(&c->index, hash, &at)) >= 0;)
    if (has_members(c, i, member, n) && mgrid_choice_shares(choice_of(p, c->entry[i]), choice))
      return i;
  return -1;
}

static void comm_list_free(mgrid_comm_list *c) {
  free(c->entry);
  free(c->start);
  free(c->member);
  mgrid_index_free(&c->index);
  *c = (mgrid_comm_list){ 0 };
}

static bool has_comms(const mgrid_plan *p, int32_t entry) {
  return p->shares[entry] < 0 && !choice_of(p, entry)->none
         && p->content.entry[entry].family->max_size > 1;
}

/* Add a group, whose members are already at the end of the list, unless an earlier group has the
** same communicator. False: no memory. */
static bool next_add(mgrid_comm_list *c, const mgrid_plan *p, int32_t entry, int64_t size) {
  const int32_t *member = c->member + c->start[c->n];
  uint64_t hash = mgrid_comm_hash(member, size);
  if (mgrid_comm_find(c, p, member, size, hash, choice_of(p, entry)) >= 0) return true;
  if (!mgrid_index_put(&c->index, hash, (int32_t)c->n)) return false;
  c->entry[c->n] = entry;
  c->start[c->n + 1] = c->start[c->n] + size;
  c->n++;
  return true;
}

static mgrid_status comm_list_make(mgrid_comm_list *c, const mgrid_plan *p, mgrid_error *err) {
  int64_t groups = 0, members = 0;

  *c = (mgrid_comm_list){ 0 };
  for (size_t i = 0; i < p->content.nentries; i++)
    if (has_comms(p, (int32_t)i)) {
      groups += p->content.entry[i].family->count;
      members += p->content.entry[i].family->total;
    }
  if (groups > INT32_MAX / 4)
    return mgrid_fail(err, MGRID_LIMIT, "more than 2^29 groups are too many to compare");
  c->entry = malloc((size_t)(groups + 1) * sizeof *c->entry);
  c->start = calloc((size_t)groups + 2, sizeof *c->start);
  c->member = malloc((size_t)(members + 1) * sizeof *c->member);
  bool whole = c->entry && c->start && c->member;
  for (size_t k = 0; k < p->content.nentries && whole; k++) {
    int i = p->order[k];
    const mgrid_family *f = p->content.entry[i].family;
    for (int64_t g = 0; has_comms(p, i) && g < f->count && whole; g++) {
      int64_t size = mgrid_family_size(f, g);
      if (size < 2) continue;
      mgrid_family_group(f, g, c->member + c->start[c->n]);
      whole = next_add(c, p, i, size);
    }
  }
  if (whole) return MGRID_OK;
  comm_list_free(c);
  return mgrid_oom(err);
}

/* ---------------------------------------------------- the losses of a plan */

const char *const mgrid_loss_answers[] = { "stop", "replace", "shrink" };

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

static mgrid_status find_places(mgrid_losses *l, mgrid_error *err) {
  const mgrid_spares *spares = mgrid_content_spares(&l->plan->content);
  int64_t group, position;
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

/* Find the policy, and give it a dry state of rank 0 on every rank, so that it answers the same on
** all ranks. */
static mgrid_status find_policy(mgrid_losses *l, mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_backend_dry(l->world, 0, err);
  if (b) l->state = mgrid_materialize(l->plan, b, "", err);
  mgrid_backend_free(b);
  if (!l->state) return err->status;
  l->policy = mgrid_policy_new(l->rt, l->state, MGRID_LOSS_POLICY, &why);
  return why.status == MGRID_UNKNOWN_NAME ? MGRID_OK : mgrid_error_pass(err, &why);
}

mgrid_losses *mgrid_losses_new(mgrid_runtime *rt, const mgrid_plan *plan, size_t n,
                               const char *const *args, const mgrid_losses_options *options,
                               mgrid_error *err) {
  mgrid_losses_options o = MGRID_LOSSES_OPTIONS_INIT;

  if (mgrid_lacks(rt, "the runtime", err) || !plan) return NULL;
  if (mgrid_struct_read(&o, sizeof o, options, "mgrid_losses_options", err)) return NULL;
  if (mgrid_lacks_list(n, args, "arguments", err)
      || mgrid_lacks_list(o.nparams, o.changed, "parameters", err))
    return NULL;
  for (size_t i = 0; i < n + o.nparams; i++)
    if (mgrid_lacks(i < n ? args[i] : o.changed[i - n], i < n ? "an argument" : "a parameter", err))
      return NULL;
  char tail[64];
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
  if (!s) s = comm_list_make(&l->comms, plan, err);
  if (!s && !l->how) s = find_policy(l, err);
  if (!s) return l;
  mgrid_losses_free(l);
  return NULL;
}

static void free_next(mgrid_next *x) {
  free(x->params);
  free_texts(x->nargs, x->args);
  free(x->bytes);
  comm_list_free(&x->comms);
  if (x->paired) mgrid_pairs_free(&x->pairs);
  mgrid_plan_free(x->plan);
  free(x);
}

void mgrid_losses_free(mgrid_losses *l) {
  if (!l) return;
  for (mgrid_next *x = l->next, *after; x; x = after) {
    after = x->after;
    free_next(x);
  }
  mgrid_policy_free(l->policy);
  mgrid_state_free(l->state);
  comm_list_free(&l->comms);
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

/* Return whether argument `now` replaces argument `was`: "dp=3" replaces "dp=4". */
static bool replaces(const char *now, const char *was) {
  size_t n = strcspn(was, "=");
  return strncmp(now, was, n) == 0 && now[n] == '=' && was[n] == '=';
}

mgrid_losses *mgrid_losses_after(const mgrid_losses *l, const mgrid_loss *x, mgrid_error *err) {
  size_t n = 0, changed = 0;
  if (!l || !x || x->how == MGRID_LOSS_STOP)
    return mgrid_null(err, MGRID_USAGE,
                      "mgrid_losses_after needs losses, and a loss after which the job goes on");

  char *text = mgrid_strdup(x->params.data ? x->params.data : "");
  for (const char *c = text; c && *c; c++) changed += *c == '\n' || !c[1];
  const char **args = calloc(l->nargs + changed + 1, sizeof *args);
  if (!text || !args) return free(text), free(args), mgrid_null_oom(err);
  for (size_t i = 0; i < l->nargs; i++) args[n++] = l->args[i];
  for (char *at = text, *end; *at; at = end) {
    size_t i = 0;
    end = at + strcspn(at, "\n");
    if (*end) *end++ = 0;
    while (i < l->nargs && !replaces(at, l->args[i])) i++;
    args[i < l->nargs ? i : n++] = at;
  }

  mgrid_losses_options o = MGRID_LOSSES_OPTIONS_INIT;
  o.how = l->how, o.params = l->file;
  mgrid_losses *next = mgrid_losses_new(l->rt, x->plan, n, args, &o, err);
  free(text), free(args);
  return next;
}

/* -------------------------------------------------- a plan for fewer ranks */

/* List where each survivor is in the machine: in the order of the new ranks if x has these,
** otherwise in the order of the old ranks. */
static int32_t *places_of(const mgrid_losses *l, const mgrid_loss *x, mgrid_error *err) {
  int32_t *at = malloc((size_t)x->survivors * sizeof *at);
  int64_t n = 0;
  if (!at) return mgrid_null_oom(err);
  for (int64_t r = 0; r < x->world && !x->was; r++)
    if (x->is[r] != -2) at[n++] = (int32_t)mgrid_machine_at(mgrid_losses_machine(l), r);
  for (int64_t i = 0; i < x->survivors && x->was; i++)
    at[i] = (int32_t)mgrid_machine_at(mgrid_losses_machine(l), x->was[i]);
  return at;
}

/* Lend the runtime a machine with rank i at at[i]. *before: the machine that was lent to the
** runtime until now, with one more owner, or NULL. */
static mgrid_status lend(const mgrid_losses *l, int64_t n, const int32_t *at, void **before,
                         mgrid_error *err) {
  mgrid_lent_request r = { .kind = &mgrid_machine_kind };
  int32_t *own = malloc((size_t)n * sizeof *own);
  mgrid_machine_model *m = own ? mgrid_machine_copy(mgrid_losses_machine(l), err)
                               : mgrid_null_oom(err);
  if (!m) {
    free(own);
    return err->status;
  }
  memcpy(own, at, (size_t)n * sizeof *own);
  mgrid_status s = mgrid_machine_set_ranks(m, n, own, err);
  if (!s) s = mgrid_runtime_serve(l->rt, "survive", &r, err);
  if (!s) s = mgrid_runtime_machine(l->rt, m, err);
  if (s && r.x) mgrid_machine_kind.free(r.x);
  *before = s ? NULL : r.x;
  mgrid_machine_free(m);
  return s;
}

/* Lend the runtime the machine that it had before, and remove the owner that `lend` added. */
static void lend_again(const mgrid_losses *l, void *before) {
  mgrid_runtime_lend(l->rt, &mgrid_machine_kind, before, NULL);
  if (before) mgrid_machine_kind.free(before);
}

/* List the arguments of the plan that `params` does not replace, and then `params`. */
static const char **arguments(const mgrid_losses *l, size_t n, char *const *params, size_t *all) {
  const char **list = malloc((l->nargs + n + 1) * sizeof *list);
  *all = 0;
  for (size_t i = 0; i < l->nargs && list; i++) {
    size_t k = 0;
    while (k < n && !replaces(params[k], l->args[i])) k++;
    if (k == n) list[(*all)++] = l->args[i];
  }
  for (size_t i = 0; i < n && list; i++) list[(*all)++] = params[i];
  return list;
}

mgrid_plan *mgrid_plan_sparing(mgrid_runtime *rt, const char *file, int64_t world, int64_t nspares,
                               int32_t *spare, size_t n, const char *const *args,
                               mgrid_error *err) {
  mgrid_spares *spares = mgrid_spares_new(world, nspares, spare, err);
  mgrid_plan *p = NULL;
  if (!spares) return NULL;
  if (!mgrid_runtime_lend(rt, &mgrid_spares_kind, spares, err))
    p = mgrid_runtime_plan(rt, world, file, n, args, err);
  mgrid_runtime_lend(rt, &mgrid_spares_kind, NULL, NULL);
  mgrid_spares_kind.free(spares);
  /* check this, because another library (libmoongrid_lua) made the plan */
  if (p && mgrid_plan_nspares(p) != nspares) {
    mgrid_plan_free(p);
    return mgrid_null(err, MGRID_REFUSED,
                      "the recipe made a plan without the spares that it was given");
  }
  return p;
}

mgrid_plan *mgrid_next_plan(mgrid_losses *l, int64_t world, int64_t places, size_t n,
                            const char *const *args, const int32_t *at, mgrid_error *err) {
  int32_t *list = malloc((size_t)(world - places + 1) * sizeof *list);
  void *before = NULL;
  for (int64_t i = places; i < world && list; i++) list[i - places] = (int32_t)i;
  if (at && lend(l, world, at, &before, err)) return free(list), NULL;
  mgrid_plan *p = mgrid_plan_sparing(l->rt, l->file, world, world - places, list, n, args, err);
  if (at) lend_again(l, before);
  return p;
}

/* -------------------------------------- where the recipe reads the machine */

/* Take back all new ranks. */
static void reset(mgrid_loss *x) {
  free(x->was);
  x->was = NULL;
  memset(x->is, -1, (size_t)x->world * sizeof *x->is);
  for (size_t i = 0; i < x->nlost; i++) x->is[x->lost[i]] = -2;
}

/* Make the plan for the survivors of x where x->was has placed them. */
static mgrid_plan *plan_at(mgrid_losses *l, const mgrid_next *next, const mgrid_loss *x,
                           mgrid_error *err) {
  int32_t *at = places_of(l, x, err);
  mgrid_plan *p = at ? mgrid_next_plan(l, x->survivors, next->places, next->nargs,
                                       (const char *const *)next->args, at, err)
                     : NULL;
  free(at);
  return p;
}

/* Place the survivors by one map after the other, until the recipe accepts the layout on the
** machine of the survivors. *why: the error of the first map, if the recipe did not accept that. */
static mgrid_status try_places(mgrid_losses *l, mgrid_next *next, mgrid_loss *x, mgrid_error *why) {
  mgrid_layout_map map[MGRID_LAYOUT_MAPS_MAX];
  size_t n = mgrid_layout_maps_of(l, next->places, map);
  for (size_t i = 0; i < n && !next->plan; i++) {
    mgrid_error mine = MGRID_ERROR_INIT;
    reset(x);
    next->map = map[i];
    if (!mgrid_loss_place(l, next, x, &mine)) next->plan = plan_at(l, next, x, &mine);
    if (mine.status == MGRID_NO_MEMORY) return mgrid_error_pass(why, &mine);
    if (i == 0 && !next->plan) mgrid_error_pass(why, &mine);
  }
  if (!next->plan) reset(x);
  return MGRID_OK;
}

static bool same_comms(const mgrid_comm_list *a, const mgrid_comm_list *b) {
  return a->n == b->n && memcmp(a->start, b->start, (a->n + 1) * sizeof *a->start) == 0
         && memcmp(a->member, b->member, (size_t)a->start[a->n] * sizeof *a->member) == 0;
}

mgrid_status mgrid_loss_place_again(mgrid_losses *l, const mgrid_next *next, mgrid_loss *x,
                                    mgrid_error *err) {
  int32_t *was = x->was, *is = malloc((size_t)x->world * sizeof *is);
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_comm_list comms = { 0 };

  if (!is) return mgrid_oom(err);
  memcpy(is, x->is, (size_t)x->world * sizeof *is);
  x->was = NULL;
  reset(x);
  mgrid_status s = mgrid_loss_place(l, next, x, &why);
  bool same = !s && memcmp(was, x->was, (size_t)x->survivors * sizeof *was) == 0;
  mgrid_plan *p = s || same ? NULL : plan_at(l, next, x, &why);
  if (p && !comm_list_make(&comms, p, &why) && same_comms(&comms, &next->comms)) {
    mgrid_plan_free(x->plan);
    x->plan = mgrid_plan_ref(p);
    same = true;
  }
  if (!same) { /* keep the places that the recipe has accepted */
    int32_t *now = x->was;
    x->was = was, was = now;
    memcpy(x->is, is, (size_t)x->world * sizeof *is);
  }
  comm_list_free(&comms);
  mgrid_plan_free(p);
  free(was);
  free(is);
  return why.status == MGRID_NO_MEMORY ? mgrid_error_pass(err, &why) : MGRID_OK;
}

/* ----------------------------------------------------------- the next plan */

/* Try layouts from the largest down; the first is not larger than the old layout. Unless
** x->shrinks, try only this one. If the recipe refuses all, return MGRID_OK and leave x->plan
** NULL. */
static mgrid_status try_worlds(mgrid_losses *l, mgrid_next *x, mgrid_loss *of, mgrid_error *err) {
  int64_t most = x->survivors < l->places ? x->survivors : l->places, least = x->shrinks ? 1 : most;
  for (x->places = most; x->places >= least; x->places--) {
    mgrid_error why = MGRID_ERROR_INIT;
    if (mgrid_losses_machine(l))
      try_places(l, x, of, &why);
    else
      x->plan = mgrid_next_plan(l, x->survivors, x->places, x->nargs, (const char *const *)x->args,
                                NULL, &why);
    if (why.status == MGRID_NO_MEMORY) return mgrid_error_pass(err, &why);
    if (x->places == most) x->why = why;
    if (x->plan) break;
  }
  return MGRID_OK;
}

const char **mgrid_tensors_alike(const mgrid_plan *from, const mgrid_plan *to, size_t *shared,
                                 mgrid_error *err) {
  size_t n = mgrid_plan_ntensors(from);
  const char **name = malloc((n + 1) * sizeof *name);
  *shared = 0;
  if (!name) return mgrid_null_oom(err);
  for (size_t i = 0; i < n; i++) {
    const char *one = mgrid_plan_tensor_name(from, i);
    const mgrid_tensor *was = mgrid_plan_tensor(from, one), *is = mgrid_plan_tensor(to, one);
    bool alike = is && was->type == is->type && was->naxes == is->naxes;
    for (size_t k = 0; alike && k < was->naxes; k++)
      alike = was->axis[k].length == is->axis[k].length
              && strcmp(was->axis[k].name, is->axis[k].name) == 0;
    if (alike) name[(*shared)++] = one;
  }
  return name;
}

static mgrid_status pair_tensors(const mgrid_losses *l, mgrid_next *x, mgrid_error *err) {
  size_t shared;
  const char **name = mgrid_tensors_alike(l->plan, x->plan, &shared, err);
  mgrid_move_options options = MGRID_MOVE_OPTIONS_INIT;
  if (!name) return err->status;
  x->uncounted = (int64_t)(mgrid_plan_ntensors(l->plan) - shared);
  for (size_t i = 0; i < mgrid_plan_ntensors(x->plan); i++)
    x->uncounted += !mgrid_plan_tensor(l->plan, mgrid_plan_tensor_name(x->plan, i));
  mgrid_status s = shared
                       ? mgrid_pairs_init(&x->pairs, l->plan, x->plan, shared, name, &options, err)
                       : MGRID_OK;
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

static mgrid_next *next_make(mgrid_losses *l, mgrid_loss *of, bool shrinks, size_t n,
                             char *const *params, mgrid_error *err) {
  size_t all = 0;
  mgrid_next *x = calloc(1, sizeof *x);
  const char **args = arguments(l, n, params, &all);
  mgrid_status s = MGRID_OK;
  if (!x || !args || !(x->params = joined(n, params)) || !(x->args = copy_texts(all, args)))
    s = mgrid_oom(err);
  if (x) x->survivors = of->survivors, x->shrinks = shrinks, x->why = (mgrid_error)MGRID_ERROR_INIT;
  if (x && x->args) x->nargs = all;
  if (!s) s = try_worlds(l, x, of, err);
  if (!s && x->plan) s = comm_list_make(&x->comms, x->plan, err);
  if (!s && x->plan) s = pair_tensors(l, x, err);
  if (!s && x->plan) x->map = mgrid_layout_map_of(l, x);
  free(args);
  if (!s) return x;
  if (x) free_next(x);
  return NULL;
}

mgrid_next *mgrid_next_of(mgrid_losses *l, mgrid_loss *of, bool shrinks, size_t n,
                          char *const *params, mgrid_error *err) {
  bool by_machine = mgrid_losses_machine(l);
  char *text = joined(n, params);
  mgrid_next *x = l->next;
  if (!text) return mgrid_null_oom(err);
  if (by_machine && x) { /* the last plan is for other survivors, so do not keep it */
    l->next = x->after;
    free_next(x);
    x = NULL;
  }
  while (
      x
      && !(x->survivors == of->survivors && x->shrinks == shrinks && strcmp(x->params, text) == 0))
    x = x->after;
  free(text);
  if (!x && (x = next_make(l, of, shrinks, n, params, err))) {
    x->after = l->next;
    l->next = x;
  }
  return x;
}
