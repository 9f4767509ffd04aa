/* SPDX-License-Identifier: MIT
**
** options.c - the table of options, with one row for each, and the record of a family's options.
** README.md of this folder says how to add an option.
*/
#include "plan/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char no_backend[] = "none";

/* List the names of backends that a family may ask for, and "none". */
static size_t makers(const char *names[]) {
  size_t n = mgrid_backend_names(names, MGRID_BACKENDS_MAKERS);
  names[n] = no_backend;
  return n + 1;
}

const mgrid_option mgrid_option_table[] = {
  { "unique", MGRID_OPTION_FLAG, offsetof(mgrid_options, unique), .apart = true, .unset = "false",
    .doc = "never share with another family" },
  { "first", MGRID_OPTION_FLAG, offsetof(mgrid_options, first), .unset = "false",
    .doc = "create before the families that do not say so; excludes `lazy`" },
  { "lazy", MGRID_OPTION_FLAG, offsetof(mgrid_options, lazy), .unset = "false",
    .doc = "create when `state:create` asks, not before" },
  { "high_priority", MGRID_OPTION_FLAG, offsetof(mgrid_options, high_priority), .apart = true,
    .unset = "false", .doc = "high priority for the stream of its calls" },
  { "timeout", MGRID_OPTION_SECONDS, offsetof(mgrid_options, timeout), .apart = true,
    .unset = "the backend's", .doc = "seconds that its creation may take" },
  { "backend", MGRID_OPTION_WORD, offsetof(mgrid_options, backend), .words = makers, .apart = true,
    .unset = "the state's",
    .doc = "which backend makes it: \"mpi\" keeps a family on the CPU, \"none\" makes no "
           "communicator" },
  { "nccl", MGRID_OPTION_FIELDS, offsetof(mgrid_options, nccl), .apart = true, .unset = "NCCL's",
    .doc = "fields of ncclConfig_t" },
  { "cartesian", MGRID_OPTION_SHAPE, offsetof(mgrid_options, cartesian), .apart = true,
    .unset = "no topology",
    .doc = "dims of every group for MPI's Cartesian topology; `grid:cartesian` writes it" },
  { "windows", MGRID_OPTION_NUMBERS, offsetof(mgrid_options, windows), .rules = mgrid_window_rules,
    .apart = true, .unset = "none",
    .doc = "bytes of symmetric memory, by name, registered as windows of NCCL" },
  { "device", MGRID_OPTION_NUMBERS, offsetof(mgrid_options, device), .rules = mgrid_device_rules,
    .apart = true, .unset = "none", .doc = "a device communicator of NCCL, and what it has" },
  { "parent", MGRID_OPTION_NAME, offsetof(mgrid_options, parent), .apart = true, .unset = "none",
    .doc = "the family whose communicators are split to make its own" },
  { "single", MGRID_OPTION_FLAG, offsetof(mgrid_options, single), .unset = "false",
    .doc = "a group of one rank has a communicator of its own, not MPI_COMM_SELF; `unique`, twins "
           "and `cartesian` imply it" },
  { NULL, MGRID_OPTION_FLAG, 0, NULL, NULL, false, NULL, NULL },
};
_Static_assert(sizeof mgrid_option_table / sizeof mgrid_option_table[0] <= MGRID_OPTIONS_MAX + 1,
               "MGRID_OPTIONS_MAX");

/* ------------------------------------------------------------- canonical form */

static mgrid_status canonical_seconds(const mgrid_option *row, double *seconds, mgrid_error *err) {
  if (!(*seconds >= 0 && *seconds <= 1e9))
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a %s is 0 (the default) to 1e9 seconds, not %g",
                      row->name, *seconds);
  double us = round(*seconds * 1e6);
  if (*seconds > 0 && us < 1) us = 1; /* 0 would mean the default */
  *seconds = us / 1e6;
  return MGRID_OK;
}

static mgrid_status canonical_word(const mgrid_option *row, const char **word, mgrid_error *err) {
  const char *given = *word ? *word : "", *known[MGRID_WORDS_MAX];
  size_t n = row->words(known);
  *word = "";
  for (size_t i = 0; i < n; i++)
    if (strcmp(given, known[i]) == 0) *word = known[i];
  if (!*given || **word) return MGRID_OK;
  char tail[128];
  mgrid_suggest(tail, sizeof tail, given, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown %s '%s'%s", row->name, given, tail);
}

static mgrid_status options_canonical(mgrid_options *o, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (const mgrid_option *row = mgrid_option_table; row->name && !s; row++) {
    void *field = mgrid_option_at(o, row);
    if (row->kind == MGRID_OPTION_SECONDS) s = canonical_seconds(row, field, err);
    if (row->kind == MGRID_OPTION_WORD) s = canonical_word(row, field, err);
  }
  if (!s && o->first && o->lazy)
    s = mgrid_fail(err, MGRID_REFUSED, "a family is 'first' or 'lazy', not both");
  return s;
}

/* -------------------------------------------------------------------- text */

static void put_option(const mgrid_choice *c, const mgrid_option *row, mgrid_text *t) {
  const void *field = mgrid_option_at(&c->asked, row);

  mgrid_text_str(t, " ");
  mgrid_text_str(t, row->name);
  switch (row->kind) {
  case MGRID_OPTION_FLAG: return;
  case MGRID_OPTION_SECONDS:
    mgrid_text_str(t, "_us=");
    mgrid_text_int(t, llround(*(const double *)field * 1e6));
    return;
  case MGRID_OPTION_WORD:
  case MGRID_OPTION_NAME:
    mgrid_text_str(t, "=");
    mgrid_text_str(t, *(const char *const *)field);
    return;
  case MGRID_OPTION_FIELDS:
  case MGRID_OPTION_NUMBERS:
  case MGRID_OPTION_SHAPE:
    mgrid_text_str(t, "{");
    mgrid_text_str(t, *(const char *const *)field);
    mgrid_text_str(t, "}");
    return;
  }
}

/* Turn the text into a string that the record owns. An empty text is a constant. NULL: out of
** memory. */
static const char *taken(mgrid_text *t) {
  if (!t->failed && t->len > 0) return t->data;
  bool failed = t->failed;
  mgrid_text_free(t);
  return failed ? NULL : "";
}

static const char *options_text(const mgrid_choice *c, bool identity) {
  mgrid_text t = { 0 };
  for (const mgrid_option *row = mgrid_option_table; row->name; row++)
    if (mgrid_choice_has(c, row) && (row->apart || !identity)) put_option(c, row, &t);
  if (c->lane > 0) mgrid_text_add(&t, " lane=%d", c->lane);
  return taken(&t);
}

static void options_drop(const char *text) {
  if (text && *text) free((char *)(uintptr_t)text);
}

/* ------------------------------------------------------------------ record */

/* Parse the options that are texts. */
static mgrid_status options_parse(mgrid_choice *c, const mgrid_options *o, mgrid_error *err) {
  mgrid_status s = mgrid_shape_read(o->cartesian, &c->shape, err);
  if (!s) s = mgrid_numbers_read(o->windows, "windows", mgrid_window_rules, &c->windows, err);
  if (!s) s = mgrid_numbers_read(o->device, "device", mgrid_device_rules, &c->device, err);
  for (size_t i = 0; !s && c->windows && i < c->windows->n; i++)
    c->nccl.windows += mgrid_nccl_granules(c->windows->at[i].value);
  if (!s && o->parent && *o->parent && !mgrid_is_name(o->parent))
    s = mgrid_fail(err, MGRID_BAD_VALUE, "option 'parent' is the name of a family, not '%.100s'",
                   o->parent);
  return s;
}

/* Write the canonical form of the options that are texts, and the text of all options. */
static mgrid_status write_texts(mgrid_choice *c, const char *parent, mgrid_error *err) {
  mgrid_text fields = { 0 }, shape = { 0 }, windows = { 0 }, device = { 0 }, name = { 0 };
  mgrid_nccl_text(&c->nccl, &fields);
  mgrid_shape_text(c->shape, &shape);
  mgrid_numbers_text(c->windows, &windows);
  mgrid_numbers_text(c->device, &device);
  mgrid_text_str(&name, parent ? parent : "");
  c->asked.nccl = taken(&fields);
  c->asked.cartesian = taken(&shape);
  c->asked.windows = taken(&windows);
  c->asked.device = taken(&device);
  c->asked.parent = taken(&name);
  bool all = c->asked.nccl && c->asked.cartesian && c->asked.windows && c->asked.device
             && c->asked.parent;
  c->text = all ? options_text(c, false) : NULL;
  c->identity = c->text ? options_text(c, true) : NULL;
  return c->identity ? MGRID_OK : mgrid_oom(err);
}

static mgrid_status options_make(const mgrid_options *o, const mgrid_nccl_values *nccl, int lane,
                                 mgrid_choice **out, mgrid_error *err) {
  mgrid_choice *c = *out = calloc(1, sizeof *c);
  if (!c) return mgrid_oom(err);
  atomic_init(&c->refs, 1);
  c->asked = *o;
  c->asked.nccl = c->asked.cartesian = c->asked.windows = c->asked.device = c->asked.parent = NULL;
  c->nccl = *nccl;
  c->nccl.windows = 0;
  c->lane = lane;
  mgrid_status s = options_canonical(&c->asked, err);
  if (!s) s = mgrid_nccl_agree(&c->nccl, err);
  if (!s) s = options_parse(c, o, err);
  if (!s && *c->asked.backend) c->backend = mgrid_backend_named(c->asked.backend);
  /* canonical_word made asked.backend point to this constant */
  if (!s) c->none = c->asked.backend == no_backend;
  if (!s) s = write_texts(c, o->parent, err);
  if (!s) return MGRID_OK;
  mgrid_choice_free(c);
  *out = NULL;
  return s;
}

mgrid_status mgrid_choice_make(const mgrid_options *o, const mgrid_nccl_values *nccl,
                               mgrid_choice **out, mgrid_error *err) {
  return options_make(o, nccl, 0, out, err);
}

mgrid_status mgrid_choice_in_lane(const mgrid_choice *c, int lane, bool urgent, mgrid_choice **out,
                                  mgrid_error *err) {
  mgrid_options o = c->asked;
  o.high_priority |= urgent;
  return options_make(&o, &c->nccl, lane, out, err);
}

mgrid_status mgrid_choice_new(const mgrid_options *given, mgrid_choice **out, mgrid_error *err) {
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_nccl_values nccl;
  *out = NULL;
  mgrid_status s = mgrid_struct_read(&o, sizeof o, given, "mgrid_options", err);
  if (!s) s = mgrid_nccl_read(o.nccl, &nccl, err);
  return s ? s : mgrid_choice_make(&o, &nccl, out, err);
}

mgrid_status mgrid_choice_unique(const mgrid_choice *c, mgrid_choice **out, mgrid_error *err) {
  mgrid_options o = c->asked;
  o.unique = true;
  if (!c->asked.unique) return mgrid_choice_make(&o, &c->nccl, out, err);
  *out = mgrid_choice_ref(c);
  return MGRID_OK;
}

mgrid_status mgrid_choice_shapeless(const mgrid_choice *c, mgrid_choice **out, mgrid_error *err) {
  mgrid_options o = c->asked;
  o.cartesian = o.parent = "";
  if (c->shape || *c->asked.parent) return options_make(&o, &c->nccl, c->lane, out, err);
  *out = mgrid_choice_ref(c);
  return MGRID_OK;
}

mgrid_choice *mgrid_choice_ref(const mgrid_choice *c) {
  mgrid_choice *owned = (mgrid_choice *)c; /* only the count changes */
  if (owned) atomic_fetch_add(&owned->refs, 1);
  return owned;
}

void mgrid_choice_free(mgrid_choice *c) {
  if (!c || atomic_fetch_sub(&c->refs, 1) != 1) return;
  options_drop(c->asked.nccl);
  options_drop(c->asked.cartesian);
  options_drop(c->asked.windows);
  options_drop(c->asked.device);
  options_drop(c->asked.parent);
  free(c->shape);
  free(c->windows);
  free(c->device);
  options_drop(c->text);
  options_drop(c->identity);
  free(c);
}

/* --------------------------------------------------------------- questions */

bool mgrid_choice_has(const mgrid_choice *c, const mgrid_option *row) {
  const void *field = mgrid_option_at(&c->asked, row);
  if (row->kind == MGRID_OPTION_FLAG) return *(const bool *)field;
  if (row->kind == MGRID_OPTION_SECONDS) return *(const double *)field > 0;
  return **(const char *const *)field != '\0';
}

bool mgrid_choice_shares(const mgrid_choice *a, const mgrid_choice *b) {
  return !a->asked.unique && !b->asked.unique && !a->none && !b->none && !a->windows && !a->device
         && !b->windows && !b->device && !*a->asked.parent && !*b->asked.parent
         && (a == b || strcmp(a->identity, b->identity) == 0);
}
