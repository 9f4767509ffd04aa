/* SPDX-License-Identifier: MIT
**
** options.c - what a family asks of its communicators, checked and in one canonical form.
*/
#include "plan/topology.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The fields of ncclConfig_t in snake case with the ranges that NCCL accepts (NCCL 2.18 to
** 2.30, parseCommConfig in init.cc); net_name is text. */
static const struct {
  const char *name;
  int64_t     low, high;
} nccl_field[] = {
  { "blocking", 0, 1 },
  { "cga_cluster_size", 0, 8 },
  { "collnet_enable", 0, 1 },
  { "cta_policy", 0, 7 },
  { "graph_stream_ordering", 0, 1 },
  { "graph_usage_mode", 0, 2 },
  { "max_ctas", 1, 64 },
  { "max_p2p_peers", 1, INT32_MAX },
  { "min_ctas", 1, 64 },
  { "n_channels_per_net_peer", 1, 64 },
  { "net_name", 0, -1 },
  { "num_rma_ctx", 0, INT32_MAX },
  { "nvlink_centric_sched", 0, 1 },
  { "nvls_ctas", 1, INT32_MAX },
  { "shrink_share", 0, 1 },
  { "split_share", 0, 1 },
  { "traffic_class", 0, INT32_MAX },
};
enum { NCCL_FIELDS = sizeof nccl_field / sizeof nccl_field[0], MAX_CTAS = 6, MIN_CTAS = 8 };

static mg_status unknown_field(const char *name, mg_error *err) {
  const char *known[NCCL_FIELDS];
  char        tail[768];
  for (int i = 0; i < NCCL_FIELDS; i++) known[i] = nccl_field[i].name;
  mg_suggest(tail, sizeof tail, name, known, NCCL_FIELDS);
  return mg_fail(err, MG_REFUSED, "unknown nccl field '%s'%s", name, tail);
}

/* Which field it is, and its value in canonical form: numbers are written as numbers. */
static mg_status check_field(const char *name, const char *value, int *at, char canonical[64], mg_error *err) {
  for (*at = 0; *at < NCCL_FIELDS && strcmp(nccl_field[*at].name, name) != 0;) ++*at;
  if (*at == NCCL_FIELDS) return unknown_field(name, err);
  int64_t low = nccl_field[*at].low, high = nccl_field[*at].high;
  if (low > high) { /* text */
    if ((size_t)snprintf(canonical, 64, "%s", value) < 64) return MG_OK;
    return mg_fail(err, MG_REFUSED, "nccl field '%s' has at most 63 characters", name);
  }
  char     *end;
  long long n = strtoll(value, &end, 10);
  if (*value == '\0' || *end != '\0' || n < low || n > high)
    return mg_fail(err, MG_REFUSED, "nccl field '%s' is %" PRId64 " to %" PRId64 ", not '%s'", name, low, high, value);
  snprintf(canonical, 64, "%lld", n);
  return MG_OK;
}

/* "max_ctas=16 min_ctas=4" in any order and spacing -> sorted, one blank between. */
static mg_status canonical_nccl(const char *text, const char **out, mg_error *err) {
  *out = "";
  if (!text || !*text) return MG_OK;
  char     *copy = mg_strdup(text);
  char      value[NCCL_FIELDS][64] = { "" }, *save = NULL;
  bool      given[NCCL_FIELDS] = { false };
  mg_text   t = { 0 };
  mg_status s = copy ? MG_OK : mg_oom(err);
  for (char *word = copy ? strtok_r(copy, " ,\t\n", &save) : NULL; word && !s; word = strtok_r(NULL, " ,\t\n", &save)) {
    char *eq = strchr(word, '=');
    char  canonical[64];
    int   at;
    if (!eq) {
      s = mg_fail(err, MG_REFUSED, "nccl option '%s' is not of the form field=value", word);
      break;
    }
    *eq = '\0';
    if ((s = check_field(word, eq + 1, &at, canonical, err))) break;
    if (given[at]) s = mg_fail(err, MG_REFUSED, "nccl field '%s' is given twice", word);
    given[at] = true;
    memcpy(value[at], canonical, sizeof canonical);
  }
  for (int i = 0; i < NCCL_FIELDS && !s; i++)
    if (given[i]) mg_text_add(&t, "%s%s=%s", t.len ? " " : "", nccl_field[i].name, value[i]);
  const char *min = value[MIN_CTAS], *max = value[MAX_CTAS];
  if (!s && *min && *max && atoi(min) > atoi(max))
    s = mg_fail(err, MG_REFUSED, "nccl field 'min_ctas' is %s, above 'max_ctas', which is %s", min, max);
  if (!s && t.failed) s = mg_oom(err);
  if (!s && t.len > 0)
    *out = t.data; /* taken over */
  else
    mg_text_free(&t);
  free(copy);
  return s;
}

mg_status mg_choice_init(mg_choice *c, const mg_options *given, mg_error *err) {
  mg_options o = MG_OPTIONS_INIT;
  memset(c, 0, sizeof *c);
  if (given) { /* an older caller knows fewer fields: the rest keeps its default */
    if (given->size < sizeof(size_t) || given->size > 4096)
      return mg_fail(err, MG_USAGE, "options without MG_OPTIONS_INIT (size %zu)", given->size);
    memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
  }
  if (!o.backend) o.backend = "";
  static const char *const backends[] = { "mpi", "nccl" };
  c->backend = c->nccl = "";
  for (int i = 0; i < 2; i++)
    if (strcmp(o.backend, backends[i]) == 0) c->backend = backends[i];
  if (*o.backend && !*c->backend) {
    char tail[128];
    mg_suggest(tail, sizeof tail, o.backend, backends, 2);
    return mg_fail(err, MG_REFUSED, "unknown backend '%s'%s", o.backend, tail);
  }
  if (!(o.timeout >= 0 && o.timeout <= 1e9))
    return mg_fail(err, MG_REFUSED, "a timeout is 0 (the default) to 1e9 seconds, not %g", o.timeout);
  c->unique = o.unique, c->first = o.first, c->lazy = o.lazy, c->high_priority = o.high_priority;
  if (c->first && c->lazy) return mg_fail(err, MG_REFUSED, "a family is either 'first' or 'lazy'");
  c->timeout_us = (int64_t)llround(o.timeout * 1e6);
  if (o.timeout > 0 && c->timeout_us == 0) c->timeout_us = 1;
  return canonical_nccl(o.nccl, &c->nccl, err);
}

mg_status mg_choice_copy(mg_choice *to, const mg_choice *from, mg_error *err) {
  *to = *from;
  if (!*from->nccl) return MG_OK;
  to->nccl = mg_strdup(from->nccl);
  if (to->nccl) return MG_OK;
  to->nccl = "";
  return mg_oom(err);
}

void mg_choice_free(mg_choice *c) {
  if (c->nccl && *c->nccl) free((char *)(uintptr_t)c->nccl);
  c->nccl = "";
}

bool mg_choice_shares(const mg_choice *a, const mg_choice *b) {
  return !a->unique && !b->unique && a->high_priority == b->high_priority &&
         a->timeout_us == b->timeout_us && (a->backend == b->backend || strcmp(a->backend, b->backend) == 0) &&
         (a->nccl == b->nccl || strcmp(a->nccl, b->nccl) == 0);
}

void mg_choice_text(const mg_choice *c, bool identity, mg_text *t) {
  if (!identity && c->unique) mg_text_add(t, " unique");
  if (!identity && c->first) mg_text_add(t, " first");
  if (!identity && c->lazy) mg_text_add(t, " lazy");
  if (c->high_priority) mg_text_add(t, " high_priority");
  if (c->timeout_us) mg_text_add(t, " timeout_us=%" PRId64, c->timeout_us);
  if (*c->backend) mg_text_add(t, " backend=%s", c->backend);
  if (*c->nccl) mg_text_add(t, " nccl{%s}", c->nccl);
}
