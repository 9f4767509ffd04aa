/* SPDX-License-Identifier: MIT
**
** results.h - what a policy returned and a query answered, as plain C values.
*/
#ifndef RESULTS_H
#define RESULTS_H

#include "moongrid_recipe.h"

#include <stdio.h>
#include <string.h>

static inline mgrid_kind kind_of(mgrid_policy *p, const char *path) {
  mgrid_arg value = MGRID_ARG_INIT;
  mgrid_policy_result(p, path, MGRID_IS_NONE, &value, NULL);
  return value.kind;
}

static inline mgrid_status read_boolean(mgrid_policy *p, const char *path, bool *out,
                                        mgrid_error *err) {
  mgrid_arg value = MGRID_ARG_INIT;
  mgrid_status s = mgrid_policy_result(p, path, MGRID_IS_BOOLEAN, &value, err);
  *out = value.as.boolean;
  return s;
}

static inline mgrid_status read_integer(mgrid_policy *p, const char *path, int64_t *out,
                                        mgrid_error *err) {
  mgrid_arg value = MGRID_ARG_INIT;
  mgrid_status s = mgrid_policy_result(p, path, MGRID_IS_INTEGER, &value, err);
  *out = value.as.integer;
  return s;
}

static inline mgrid_status read_number(mgrid_policy *p, const char *path, double *out,
                                       mgrid_error *err) {
  mgrid_arg value = MGRID_ARG_INIT;
  mgrid_status s = mgrid_policy_result(p, path, MGRID_IS_NUMBER, &value, err);
  *out = value.kind == MGRID_IS_NUMBER ? value.as.number : 0;
  return s;
}

static inline mgrid_status read_text(mgrid_policy *p, const char *path, const char **out,
                                     mgrid_error *err) {
  mgrid_arg value = MGRID_ARG_INIT;
  mgrid_status s = mgrid_policy_result(p, path, MGRID_IS_TEXT, &value, err);
  *out = value.as.text;
  return s;
}

/* Copy at most `cap` of the numbers of a list; *length is the number of all. */
static inline mgrid_status read_integers(mgrid_policy *p, const char *path, size_t cap,
                                         int64_t *out, size_t *length, mgrid_error *err) {
  mgrid_arg list = mgrid_arg_integers(NULL, 0, NULL);
  mgrid_status s = mgrid_policy_result(p, path, MGRID_IS_INTEGERS, &list, err);
  size_t n = s ? 0 : list.as.integers.n;
  for (size_t i = 0; i < n && i < cap; i++) out[i] = list.as.integers.at[i];
  if (length) *length = n;
  return s;
}

static inline mgrid_status read_numbers(mgrid_policy *p, const char *path, size_t cap, double *out,
                                        size_t *length, mgrid_error *err) {
  mgrid_arg list = mgrid_arg_numbers(NULL, 0, NULL);
  mgrid_status s = mgrid_policy_result(p, path, MGRID_IS_NUMBERS, &list, err);
  size_t n = s ? 0 : list.as.numbers.n;
  for (size_t i = 0; i < n && i < cap; i++) out[i] = list.as.numbers.at[i];
  if (length) *length = n;
  return s;
}

/* -1: no value on this rank */
static inline mgrid_status ask_integer(mgrid_runtime *rt, mgrid_state *s, const char *query,
                                       size_t n, const mgrid_arg *args, int64_t *out,
                                       mgrid_error *err) {
  mgrid_arg value = MGRID_ARG_INIT;
  mgrid_status status = mgrid_runtime_ask(rt, s, query, n, args, MGRID_IS_INTEGER, &value, err);
  *out = status ? -1 : value.as.integer;
  return status;
}

/* Ask for an answer as text or as JSON, written to the buffer as snprintf does. */
static inline mgrid_status ask_as(mgrid_kind kind, mgrid_runtime *rt, mgrid_state *s,
                                  const char *query, size_t n, const mgrid_arg *args, char *buf,
                                  size_t len, size_t *length, mgrid_error *err) {
  mgrid_arg value = MGRID_ARG_INIT;
  mgrid_status status = mgrid_runtime_ask(rt, s, query, n, args, kind, &value, err);
  const char *text = status ? "" : value.as.text;
  if (len > 0) snprintf(buf, len, "%s", text);
  if (length) *length = strlen(text);
  return status;
}

#endif
