/* SPDX-License-Identifier: MIT
**
** options.c - what a family asks of its communicators, checked and in one canonical form.
*/
#include "plan/nccl.h"
#include "plan/topology.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One text for one configuration: equal texts, equal communicators. */
static mg_status canonical_nccl(const char *text, const char **out, mg_error *err) {
  mg_nccl_values v;
  mg_text        t = { 0 };
  *out = "";
  if (!text || !*text) return MG_OK;
  mg_status s = mg_nccl_read(text, &v, err);
  if (!s) mg_nccl_text(&v, &t);
  if (!s && t.failed) s = mg_oom(err);
  if (!s && t.len > 0)
    *out = t.data; /* taken over */
  else
    mg_text_free(&t);
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
