/* SPDX-License-Identifier: MIT
**
** policy.c - the decisions that the recipe makes: each function calls a policy by name with typed
** values, and reads its result.
**
** If a policy that is called before training fails, the layout is refused. An error of a policy
** that is called between steps must not end a run: it is printed, and the last learning rate is
** kept, or no checkpoint written.
*/
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct policies {
  mgrid_policy *layers, *schedule, *bucket_bytes, *gradient_family, *learning_rate, *checkpoint;
  double rate; /* the last good result */
  bool talks;  /* whether this rank prints errors; only one rank does */
  char said[sizeof((mgrid_error *)0)->message]; /* the last error printed, to print it once */
};

enum { MOST_CHUNKS = 64 };

#define EACH(p, f) \
  do { \
    f(p, layers); \
    f(p, schedule); \
    f(p, bucket_bytes); \
    f(p, gradient_family); \
    f(p, learning_rate); \
    f(p, checkpoint); \
  } while (0)

policies *policies_open(mgrid_runtime *rt, mgrid_state *state, bool talks, mgrid_error *err) {
  policies *p = room(1, sizeof *p);
  bool ok = true;
  p->talks = talks;
#define FIND(p, name) ok = ok && (p->name = mgrid_policy_new(rt, state, #name, err)) != NULL
  EACH(p, FIND);
  if (ok) return p;
  policies_free(p);
  return NULL;
}

void policies_free(policies *p) {
#define FREE(p, name) mgrid_policy_free(p->name)
  if (p) EACH(p, FREE);
  free(p);
}

static mgrid_arg integer(const char *name, int64_t n) { return mgrid_arg_integer(name, n); }
static mgrid_arg text(const char *name, const char *t) { return mgrid_arg_text(name, t); }
static mgrid_arg boolean(const char *name, bool b) { return mgrid_arg_boolean(name, b); }

static void tell(policies *p, const mgrid_error *err) {
  if (err->status == MGRID_LOST_RANK) left_by_loss();
  /* calls over all ranks would never end */
  if (err->status == MGRID_TIMED_OUT) end_now(err->message, MGRID_TIMED_OUT);
  if (!p->talks || strcmp(p->said, err->message) == 0) return;
  snprintf(p->said, sizeof p->said, "%s", err->message);
  fprintf(stderr, "trainer: %s\n", err->message);
}

/* Read the result of a policy, or the field `path` of it, as a value of this kind. */
static mgrid_arg result(mgrid_policy *p, const char *path, mgrid_kind kind, mgrid_error *err) {
  mgrid_arg value = MGRID_ARG_INIT;
  mgrid_policy_result(p, path, kind, &value, err);
  return value;
}

mgrid_status policy_layers(policies *p, int layers, int stages, int64_t *each, mgrid_error *err) {
  mgrid_arg q[] = { integer("layers", layers), integer("stages", stages) };
  if (mgrid_policy_call(p->layers, 2, q, err)) return err->status;
  mgrid_arg list = result(p->layers, NULL, MGRID_IS_INTEGERS, err);
  mgrid_status s = err->status;
  int64_t sum = 0;
  size_t n = s ? 0 : list.as.integers.n;
  bool ok = n == (size_t)stages;
  for (int i = 0; !s && ok && i < stages; i++) {
    sum += each[i] = list.as.integers.at[i];
    ok = each[i] >= 0 && each[i] <= layers;
  }
  if (s || (ok && sum == layers)) return s;
  return refuse(
      err, "policy 'layers' returned %zu stages with %" PRId64 " layers together; wanted %d and %d",
      n, sum, stages, layers);
}

mgrid_status policy_schedule(policies *p, int samples, int ranks, int *microbatches, int *chunks,
                             const char **order, mgrid_error *err) {
  mgrid_arg q[] = { integer("samples", samples), integer("ranks", ranks) };
  if (mgrid_policy_call(p->schedule, 2, q, err)) return err->status;
  int64_t n = result(p->schedule, "microbatches", MGRID_IS_INTEGER, err).as.integer;
  *order = result(p->schedule, "order", MGRID_IS_TEXT, err).as.text;
  if (err->status) return err->status;
  if (n < 1 || n > samples || samples % n)
    return refuse(
        err, "policy 'schedule' returned %" PRId64 " microbatches, which must divide %d samples", n,
        samples);
  *microbatches = (int)n, *chunks = 1;
  if (strcmp(*order, "1f1b") == 0 || strcmp(*order, "gpipe") == 0) return MGRID_OK;
  if (strcmp(*order, "interleaved") != 0)
    return refuse(
        err,
        "policy 'schedule' returned the order '%s'; '1f1b', 'gpipe' and 'interleaved' are known",
        *order);
  int64_t v = result(p->schedule, "chunks", MGRID_IS_INTEGER, err).as.integer;
  if (err->status) return err->status;
  if (ranks < 2 || n % ranks || v < 2 || v > MOST_CHUNKS)
    return refuse(err,
                  "policy 'schedule' returned 'interleaved' with %" PRId64
                  " microbatches and %" PRId64 " chunks for a pipeline "
                  "of %d ranks; wanted at least 2 ranks, a multiple of them, and 2 to %d chunks",
                  n, v, ranks, MOST_CHUNKS);
  *chunks = (int)v;
  return MGRID_OK;
}

mgrid_status policy_bucket_bytes(policies *p, const char *family, int ranks, size_t *bytes,
                                 mgrid_error *err) {
  mgrid_arg q[] = { text("family", family), integer("ranks", ranks) };
  if (mgrid_policy_call(p->bucket_bytes, 2, q, err)) return err->status;
  int64_t n = result(p->bucket_bytes, NULL, MGRID_IS_INTEGER, err).as.integer;
  if (!err->status && n < 1)
    return refuse(err, "policy 'bucket_bytes' returned %" PRId64 " for %s; wanted at least 1", n,
                  family);
  *bytes = (size_t)n;
  return err->status;
}

mgrid_status policy_gradient_family(policies *p, const char *parameter, bool expert,
                                    const char **family, mgrid_error *err) {
  mgrid_arg q[] = { text("parameter", parameter), boolean("expert", expert) };
  if (mgrid_policy_call(p->gradient_family, 2, q, err)) return err->status;
  *family = result(p->gradient_family, NULL, MGRID_IS_TEXT, err).as.text;
  return err->status;
}

double policy_learning_rate(policies *p, int64_t step, int64_t steps) {
  mgrid_arg q[] = { integer("step", step), integer("steps", steps) };
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_policy_call(p->learning_rate, 2, q, &err);
  double rate = result(p->learning_rate, NULL, MGRID_IS_NUMBER, &err).as.number;
  if (err.status)
    tell(p, &err);
  else
    p->rate = rate;
  return p->rate;
}

double policies_rate(const policies *p) { return p->rate; }
void policies_set_rate(policies *p, double rate) { p->rate = rate; }

bool policy_checkpoint(policies *p, int64_t step, int64_t steps) {
  mgrid_arg q[] = { integer("step", step), integer("steps", steps) };
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_policy_call(p->checkpoint, 2, q, &err);
  bool yes = result(p->checkpoint, NULL, MGRID_IS_BOOLEAN, &err).as.boolean;
  if (err.status) tell(p, &err);
  return yes;
}
