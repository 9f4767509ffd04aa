/* SPDX-License-Identifier: MIT
**
** outputs.c - finds the stored tensors of which each tensor of the result is made: first by layouts
** and rules of the user, then by equal names, then by layouts and rules of the recipe.
*/
#include "checkpoints/outputs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A tensor of the checkpoint or of the plan. */
typedef struct form {
  const char *name, *type;
  size_t naxes;
  int64_t shape[MGRID_AXES_MAX];
} form;

/* ==================================================================== a rule */

/* A rule between names says that one tensor, the whole, is the concatenation of one or more other
** tensors, its parts, along one axis and in blocks. The checkpoint has the parts and the plan the
** whole, or the other way round. */

/* -------------------------------------------------------------------- forms */

static form tensor_form(const char *name, const mgrid_tensor *t) {
  form f = { .name = name, .type = mgrid_tensor_type(t), .naxes = mgrid_tensor_naxes(t) };
  for (size_t k = 0; k < f.naxes; k++) f.shape[k] = mgrid_tensor_length(t, k);
  return f;
}

static form stored_form(const shards_tensor *t) {
  form f = { .name = t->name, .type = t->type, .naxes = t->naxes };
  memcpy(f.shape, t->shape, sizeof f.shape);
  return f;
}

/* Append "f32 4 x 5". */
static void put_form(mgrid_text *t, const form *f) {
  mgrid_text_str(t, f->type);
  for (size_t k = 0; k < f->naxes; k++)
    mgrid_text_add(t, "%s%" PRId64, k ? " x " : " ", f->shape[k]);
}

/* Refuse elements of another type, unless they can be converted and --convert is given. */
static mgrid_status outputs_check_type(const outputs *o, const form *stored, const form *wanted,
                                       mgrid_error *err) {
  bool can = elements_convert(stored->type, wanted->type);
  if (strcmp(stored->type, wanted->type) == 0 || (o->convert && can)) return MGRID_OK;
  return mgrid_fail(err, MGRID_REFUSED,
                    "tensor '%.200s' is %s in the checkpoint, and '%.200s' of the recipe is %s%s",
                    stored->name, stored->type, wanted->name, wanted->type,
                    can ? "; --convert converts it" : "");
}

/* Return the form of a slice at one index of the first axis, which has all axes but the first. */
static form outputs_slice_of(form f) {
  f.naxes--;
  memmove(f.shape, f.shape + 1, f.naxes * sizeof *f.shape);
  return f;
}

/* ------------------------------------------------------------ a rule applied */

typedef struct applied {
  outputs *o;
  const names *all;
  const names_rule *rule;
  names_bound bound;
  form wanted;
  int side;      /* the side of the rule that has names of the plan */
  size_t slot;   /* the index of the wanted tensor's name on this side */
  int64_t slice; /* the index of the wanted tensor's first axis to make; -1: make all of it */
  const shards_tensor *of[NAMES_ON_A_SIDE]; /* the stored tensors, as named by the other side */
  int64_t blocks;
  size_t nparts;
  form part[NAMES_ON_A_SIDE], whole;
  mgrid_error *err;
} applied;

#define REFUSE(a, ...) \
  mgrid_fail_at((a)->err, MGRID_REFUSED, (a)->all->from, (a)->rule->line, __VA_ARGS__)

static const names_side *stored_side(const applied *a) { return &a->rule->side[1 - a->side]; }

/* Return whether the wanted tensor is the whole, and not one of the parts. */
static bool gathers(const applied *a) { return a->rule->side[a->side].n == 1; }

/* Return the axis of the whole that is `axis` of the parts. */
static size_t to_whole(const applied *a, size_t axis) {
  return a->rule->transposed ? a->whole.naxes - 1 - axis : axis;
}

/* Return a number of 1 or more: the text, or the value of the parameter of this name. 0: it is
** neither. */
static int64_t outputs_number_of(const mgrid_content *c, const char *text) {
  char *end;
  for (size_t i = 0; i < c->nparams; i++)
    if (strcmp(c->param[i].name, text) == 0) text = c->param[i].value;
  errno = 0;
  int64_t n = strtoll(text, &end, 10);
  return *end == '\0' && n > 0 && errno == 0 ? n : 0;
}

static mgrid_status set_blocks(applied *a) {
  const names_rule *r = a->rule;
  a->blocks = r->by ? outputs_number_of(&a->o->plan->content, r->by) : 1;
  if (!a->blocks && r->or_by) a->blocks = outputs_number_of(&a->o->plan->content, r->or_by);
  if (a->blocks) return MGRID_OK;
  return REFUSE(a, "'by %.40s' is neither a number of 1 or more nor a parameter that is one",
                a->rule->by);
}

/* Find the stored tensors. *any: the checkpoint has at least one of them; otherwise the rule does
** not apply. */
static mgrid_status find_stored(applied *a, bool *any) {
  const names_side *side = stored_side(a);
  mgrid_text name = { 0 }, lost = { 0 };
  *any = false;
  for (size_t i = 0; i < side->n; i++) {
    name.len = 0;
    names_put(a->rule, 1 - a->side, i, &a->bound, &name);
    const json_t *at = name.failed ? NULL : json_object_get(a->o->stored, name.data);
    a->of[i] = at ? &a->o->from->tensor[json_integer_value(at)] : NULL;
    *any |= at != NULL;
    if (!at && !lost.len) mgrid_text_str(&lost, mgrid_text_chars(&name));
  }
  if (name.failed || lost.failed)
    mgrid_oom(a->err);
  else if (*any && lost.len)
    REFUSE(a, "the checkpoint has no tensor '%.200s', which '%.200s' is made of", lost.data,
           a->wanted.name);
  mgrid_text_free(&name), mgrid_text_free(&lost);
  return a->err->status;
}

/* Return the index that the rule takes of the stored tensors' first axis; -1: it takes all. If its
** digits overflow, return the largest number. */
static int64_t stored_slice(const applied *a) {
  int capture = stored_side(a)->slice;
  int64_t n = 0;
  if (capture < 0) return -1;
  for (size_t i = 0; i < a->bound.length[capture]; i++)
    if (__builtin_mul_overflow(n, 10, &n)
        || __builtin_add_overflow(n, a->bound.at[capture][i] - '0', &n))
      return INT64_MAX;
  return n;
}

/* Set the forms of the stored tensors, as parts or as the whole. */
static mgrid_status set_stored(applied *a) {
  int64_t slice = stored_slice(a);
  for (size_t i = 0; i < stored_side(a)->n && !a->err->status; i++) {
    form f = stored_form(a->of[i]);
    if (outputs_check_type(a->o, &f, &a->wanted, a->err)) break;
    if (slice >= 0 && (f.naxes == 0 || slice >= f.shape[0]))
      return REFUSE(a, "'%.200s' has no index %" PRId64 " on its first axis", f.name, slice);
    if (slice >= 0) f = outputs_slice_of(f);
    *(gathers(a) ? &a->part[i] : &a->whole) = f;
    a->o->used[a->of[i] - a->o->from->tensor] = true;
  }
  return a->err->status;
}

/* Set the forms of the plan's tensors. If the wanted tensor is a part, find all parts, because
** a part starts where the part before it ends. */
static mgrid_status set_wanted(applied *a) {
  form mine = a->slice >= 0 ? outputs_slice_of(a->wanted) : a->wanted;

  a->nparts = gathers(a) ? stored_side(a)->n : a->rule->side[a->side].n;
  if (gathers(a)) a->whole = mine;
  for (size_t i = 0; i < a->nparts && !gathers(a) && !a->err->status; i++) {
    mgrid_text name = { 0 };
    names_put(a->rule, a->side, i, &a->bound, &name);
    const char *known = i == a->slot ? a->wanted.name : NULL;
    const json_t *at = name.failed || known ? NULL : json_object_get(a->o->wanted, name.data);
    if (at) known = mgrid_plan_tensor_name(a->o->plan, (size_t)json_integer_value(at));
    if (name.failed)
      mgrid_oom(a->err);
    else if (!known)
      REFUSE(a, "the recipe has no tensor '%.200s', which is a part of '%.200s'", name.data,
             a->of[0]->name);
    else
      a->part[i] = i == a->slot ? mine : tensor_form(known, mgrid_plan_tensor(a->o->plan, known));
    if (known && i != a->slot && a->slice >= 0 && a->part[i].naxes)
      a->part[i] = outputs_slice_of(a->part[i]);
    mgrid_text_free(&name);
  }
  return a->err->status;
}

/* Check that the concatenated parts have the shape of the whole, and that each part has equal
** blocks. */
static mgrid_status check_forms(const applied *a) {
  size_t axis = (size_t)a->rule->axis;
  int64_t sum = 0;
  bool fits = a->whole.naxes > axis && (!a->rule->transposed || a->whole.naxes == 2);

  for (size_t i = 0; i < a->nparts && fits; i++) {
    const form *p = &a->part[i];
    fits = p->naxes == a->whole.naxes;
    for (size_t k = 0; k < p->naxes && fits; k++)
      fits = k == axis || p->shape[k] == a->whole.shape[to_whole(a, k)];
    if (fits) fits = !__builtin_add_overflow(sum, p->shape[axis], &sum);
    if (fits && p->shape[axis] % a->blocks)
      return REFUSE(a,
                    "'%.200s' has %" PRId64 " elements on axis %zu, which are not %" PRId64
                    " equal blocks",
                    p->name, p->shape[axis], axis, a->blocks);
  }
  if (fits && sum == a->whole.shape[to_whole(a, axis)]) return MGRID_OK;
  mgrid_text t = { 0 };
  for (size_t i = 0; i < a->nparts; i++) {
    mgrid_text_add(&t, "%s'%s' ", i ? " + " : "", a->part[i].name);
    put_form(&t, &a->part[i]);
  }
  mgrid_text_add(&t, "%s %s not '%s' ", a->rule->transposed ? ", transposed," : "",
                 a->nparts > 1 ? "are" : "is", a->whole.name);
  put_form(&t, &a->whole);
  if (t.failed)
    mgrid_oom(a->err);
  else
    REFUSE(a, "%s", t.data);
  mgrid_text_free(&t);
  return a->err->status;
}

/* Append a box with all blocks of part i. */
static mgrid_status add_box(const applied *a, view *v, size_t i, const shards_tensor *of) {
  size_t axis = (size_t)a->rule->axis, skip = stored_side(a)->slice >= 0, shift = a->slice >= 0;
  int64_t blocks = a->nparts > 1 ? a->blocks : 1, block = a->part[i].shape[axis] / blocks,
          before = 0;
  int64_t all = a->whole.shape[to_whole(a, axis)] / blocks;
  view_box *b = view_add(v, a->err);

  if (!b) return a->err->status;
  for (size_t k = 0; k < i; k++) before += a->part[k].shape[axis] / blocks;
  b->of = of;
  b->blocks = blocks;
  if (shift) b->start[0] = a->slice, b->length[0] = 1, b->axis[0] = -1;
  if (skip) b->at[0] = stored_slice(a);
  for (size_t k = 0; k < a->whole.naxes; k++) { /* k is an axis of the parts */
    size_t wanted = gathers(a) ? to_whole(a, k) : k, from = gathers(a) ? k : to_whole(a, k);
    int64_t in_whole = k == axis ? before : 0;
    b->axis[shift + wanted] = (int8_t)(skip + from);
    b->start[shift + wanted] = gathers(a) ? in_whole : 0;
    b->length[shift + wanted] = k == axis ? block : a->part[i].shape[k];
    b->at[skip + from] = gathers(a) ? 0 : in_whole;
    if (k == axis)
      b->along = shift + wanted, b->step = gathers(a) ? all : block,
      b->at_step = gathers(a) ? block : all;
  }
  return MGRID_OK;
}

/* Apply the rule with its captures bound. Set *any to whether it applies. */
static mgrid_status apply(applied *a, view *v, bool *any) {
  if (find_stored(a, any) || !*any) return a->err->status;
  if (set_stored(a) || set_wanted(a) || set_blocks(a) || check_forms(a)) return a->err->status;
  if (!gathers(a)) return add_box(a, v, a->slot, a->of[0]);
  for (size_t i = 0; i < a->nparts && !a->err->status; i++) add_box(a, v, i, a->of[i]);
  return a->err->status;
}

/* Apply the rule for each index of the wanted tensor's first axis. It must apply for all indices,
** or for none. */
static mgrid_status apply_slices(applied *a, view *v, bool *any) {
  int capture = a->rule->side[a->side].slice;
  int64_t n = a->wanted.shape[0];
  char digits[24];
  for (a->slice = 0; a->slice < n && !a->err->status; a->slice++) {
    bool found;
    a->bound.length[capture] = (size_t)snprintf(digits, sizeof digits, "%" PRId64, a->slice);
    a->bound.at[capture] = digits;
    if (apply(a, v, &found) || (!found && a->slice == 0)) break;
    *any = true;
    if (!found)
      REFUSE(a,
             "the checkpoint has slices 0 to %" PRId64
             " of '%.200s', whose first axis has %" PRId64,
             a->slice - 1, a->wanted.name, n);
  }
  return a->err->status;
}

/* Make the view of a tensor of the plan by the first rule that applies: the tensor's name fits one
** side, and the checkpoint has the other side. If no rule applies, the view stays empty. */
static mgrid_status make_by_rules(outputs *o, const names *all, const char *wanted, view *v,
                                  mgrid_error *err) {
  form want = tensor_form(wanted, mgrid_plan_tensor(o->plan, wanted));

  if (view_begin(v, want.type, want.naxes, want.shape, NULL, err)) return err->status;
  for (size_t k = 0; k < all->n && !err->status; k++) {
    const names_rule *rule = &all->rule[k];
    bool any = false;
    if (rule->layout || rule->side[1].n == 0) continue;
    for (int side = 1; side >= 0 && !any && !err->status; side--)
      for (size_t i = 0; i < rule->side[side].n && !any && !err->status; i++) {
        applied a = { .o = o,
                      .all = all,
                      .rule = rule,
                      .wanted = want,
                      .side = side,
                      .slot = i,
                      .slice = -1,
                      .err = err };
        bool fits;
        if (names_fit(all, rule, side, i, wanted, &a.bound, &fits, err) || !fits) continue;
        if (rule->side[side].slice >= 0)
          apply_slices(&a, v, &any);
        else
          apply(&a, v, &any);
      }
    if (any) break;
  }
  return err->status;
}

/* =================================================================== outputs */

static mgrid_status outputs_unknown(const outputs *o, const char *name, const char *where,
                                    mgrid_error *err) {
  enum { MOST = 128 };
  const char *known[MOST];
  char tail[512];
  size_t n = 0;
  for (; n < mgrid_plan_ntensors(o->plan) && n < MOST; n++)
    known[n] = mgrid_plan_tensor_name(o->plan, n);
  mgrid_suggest(tail, sizeof tail, name, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "%s: no tensor '%.200s'%s", where, name, tail);
}

/* Return the length of the shortest prefix of the name that ends in a dot and that several stored
** tensors have, of which none is used; 0 if there is none. Set *n to how many tensors have it. */
static size_t unused_beginning(const outputs *o, const char *name, size_t *n) {
  for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
    size_t length = (size_t)(dot + 1 - name), used = 0;
    *n = 0;
    for (size_t i = 0; i < o->from->n; i++) {
      bool has = strncmp(o->from->tensor[i].name, name, length) == 0;
      *n += has, used += has && o->used[i];
    }
    if (!used && *n > 1) return length;
  }
  return 0;
}

/* Refuse a stored tensor that nothing needs. The error suggests a rule that leaves this tensor out,
** or all unused tensors with the same prefix. */
static mgrid_status not_needed(const outputs *o, const char *name, const char *where,
                               mgrid_error *err) {
  enum { MOST = 128 };
  const char *known[MOST], *near;
  size_t n = 0, several = 0, used = 0;
  for (size_t i = 0; i < o->from->n; i++) used += o->used[i];
  size_t length = unused_beginning(o, name, &several);
  if (!used || !mgrid_is_item_name(name)) return outputs_unknown(o, name, where, err);
  if (length)
    return mgrid_fail(err, MGRID_UNKNOWN_NAME,
                      "%s: no tensor '%.200s'; --names with the rule '%.*s(.+) -> -' leaves it "
                      "out, and the %zu others "
                      "that begin so",
                      where, name, (int)length, name, several - 1);
  for (; n < mgrid_plan_ntensors(o->plan) && n < MOST; n++)
    known[n] = mgrid_plan_tensor_name(o->plan, n);
  near = mgrid_nearest(name, known, n);
  return mgrid_fail(
      err, MGRID_UNKNOWN_NAME,
      "%s: no tensor '%.200s'%s%.200s%s; --names with the rule '%.255s -> -' leaves it out", where,
      name, near ? "; nearest is '" : "", near ? near : "", near ? "'" : "", name);
}

static output *outputs_add(outputs *o, const char *name, size_t wanted, mgrid_error *err) {
  if (!MGRID_GROW(o->at, o->n, 1)) return mgrid_null_oom(err);
  output *x = &o->at[o->n++];
  *x = (output){ .of = mgrid_plan_tensor_name(o->plan, wanted) };
  x->name = name ? name : x->of;
  x->tensor = mgrid_plan_tensor(o->plan, x->of);
  o->made[wanted] = true;
  return x;
}

/* Make the output of a stored tensor that has the shape of the wanted tensor. */
static mgrid_status outputs_same(outputs *o, size_t stored, size_t wanted, mgrid_error *err) {
  const shards_tensor *s = &o->from->tensor[stored];
  output *x = outputs_add(o, s->name, wanted, err);

  if (!x) return err->status;
  form is = stored_form(s), want = tensor_form(x->of, x->tensor);
  bool alike = is.naxes == want.naxes
               && memcmp(is.shape, want.shape, is.naxes * sizeof *is.shape) == 0;
  o->used[stored] = true;
  if (alike && outputs_check_type(o, &is, &want, err) == MGRID_OK)
    return view_begin(&x->view, want.type, want.naxes, want.shape, s, err);
  if (err->status) return err->status;
  mgrid_text a = { 0 }, b = { 0 };
  put_form(&a, &is);
  put_form(&b, &want);
  if (a.failed || b.failed)
    mgrid_oom(err);
  else
    mgrid_fail(err, MGRID_REFUSED,
               "tensor '%.200s' is %s in the checkpoint, and '%.200s' of the recipe is %s", s->name,
               a.data, x->of, b.data);
  mgrid_text_free(&a), mgrid_text_free(&b);
  return err->status;
}

/* ------------------------------------------------------------------ layouts */

/* Make the outputs of stored tensors whose names fit a layout. The first layout that fits counts. */
static mgrid_status by_layouts(outputs *o, const names *all, mgrid_error *err) {
  for (size_t k = 0; all && k < all->n; k++) {
    const names_rule *r = &all->rule[k];
    char where[300];
    const json_t *at = r->layout ? json_object_get(o->wanted, r->layout) : NULL;
    snprintf(where, sizeof where, "%.250s:%d", all->from, r->line);
    if (!r->layout) continue;
    if (!at) return outputs_unknown(o, r->layout, where, err);
    for (size_t i = 0; i < o->from->n && !err->status; i++) {
      bool fits = false;
      if (!o->used[i] && !names_laid_out(all, r, o->from->tensor[i].name, &fits, err) && fits)
        outputs_same(o, i, (size_t)json_integer_value(at), err);
    }
    if (err->status) break;
  }
  return err->status;
}

/* Make the output of each stored tensor that has the name of a tensor of the plan. A dot or dash
** of the name may be a _ in the plan. Leave out tensors that the user's rules make (`ruled`). */
static mgrid_status by_names(outputs *o, const bool *ruled, mgrid_error *err) {
  for (size_t i = 0; i < o->from->n && !err->status; i++) {
    const char *name = o->from->tensor[i].name;
    const json_t *at = o->used[i] ? NULL : json_object_get(o->wanted, name);
    char *plain = at || o->used[i] ? NULL : strdup(name);
    if (!at && !o->used[i] && !plain) return mgrid_oom(err);
    for (char *c = plain; c && *c; c++)
      if (*c == '.' || *c == '-') *c = '_';
    if (plain) at = json_object_get(o->wanted, plain);
    free(plain);
    if (at && !ruled[json_integer_value(at)])
      outputs_same(o, i, (size_t)json_integer_value(at), err);
  }
  return err->status;
}

/* -------------------------------------------------------------------- rules */

/* Make the outputs of tensors of the plan that have none yet, by rules. */
static mgrid_status by_rules(outputs *o, const names *all, mgrid_error *err) {
  size_t n = mgrid_plan_ntensors(o->plan);
  for (size_t k = 0; all && k < n && !err->status; k++) {
    view v = { 0 };
    if (o->made[k]) continue;
    if (make_by_rules(o, all, mgrid_plan_tensor_name(o->plan, k), &v, err) == MGRID_OK && v.n) {
      output *x = outputs_add(o, NULL, k, err);
      if (x) x->view = v, v = (view){ 0 };
    }
    view_free(&v);
  }
  return err->status;
}

/* Mark the stored tensors that rules drop (`NAME -> -`) as used. */
static mgrid_status outputs_drop(outputs *o, const names *all, mgrid_error *err) {
  for (size_t k = 0; all && k < all->n && !err->status; k++)
    for (size_t i = 0;
         i < o->from->n && !all->rule[k].layout && all->rule[k].side[1].n == 0 && !err->status; i++)
      if (!o->used[i])
        names_fit(all, &all->rule[k], 0, 0, o->from->tensor[i].name, NULL, &o->used[i], err);
  return err->status;
}

mgrid_status outputs_find(outputs *o, mgrid_error *err) {
  size_t n = mgrid_plan_ntensors(o->plan);

  o->used = calloc(o->from->n + 1, sizeof *o->used);
  o->made = calloc(n + 1, sizeof *o->made);
  bool *ruled = calloc(n + 1, sizeof *ruled);
  o->stored = json_object(), o->wanted = json_object();
  bool ok = o->used && o->made && ruled;
  for (size_t i = 0; i < o->from->n && ok; i++)
    ok = !json_object_set_new(o->stored, o->from->tensor[i].name, json_integer((json_int_t)i));
  for (size_t k = 0; k < n && ok; k++)
    ok = !json_object_set_new(o->wanted, mgrid_plan_tensor_name(o->plan, k),
                              json_integer((json_int_t)k));
  if (!ok) mgrid_oom(err);
  if (ok && !by_layouts(o, o->given, err) && !by_rules(o, o->given, err)) {
    for (size_t k = 0; k < n; k++) ruled[k] = o->made[k];
    if (!by_names(o, ruled, err) && !by_layouts(o, o->own, err)) by_rules(o, o->own, err);
    if (!err->status && !outputs_drop(o, o->given, err)) outputs_drop(o, o->own, err);
  }
  for (size_t i = 0; i < o->from->n && !err->status; i++)
    if (!o->used[i])
      not_needed(o, o->from->tensor[i].name, o->given ? o->given->from : o->recipe, err);
  for (size_t k = 0; k < n && !err->status; k++)
    if (!o->made[k])
      mgrid_fail(err, MGRID_REFUSED, "the checkpoint has no tensor that is '%s' of the recipe",
                 mgrid_plan_tensor_name(o->plan, k));
  free(ruled);
  return err->status;
}

void outputs_free(outputs *o) {
  for (size_t i = 0; i < o->n; i++) view_free(&o->at[i].view);
  free(o->at), free(o->used), free(o->made);
  json_decref(o->stored), json_decref(o->wanted);
  o->at = NULL;
}
