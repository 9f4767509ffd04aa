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
static mgrid_status canonical_nccl(const char *text, const char **out, mgrid_error *err) {
  mgrid_nccl_values v;
  mgrid_text        t = { 0 };
  *out = "";
  if (!text || !*text) return MGRID_OK;
  mgrid_status s = mgrid_nccl_read(text, &v, err);
  if (!s) mgrid_nccl_text(&v, &t);
  if (!s && t.failed) s = mgrid_oom(err);
  if (!s && t.len > 0)
    *out = t.data; /* taken over */
  else
    mgrid_text_free(&t);
  return s;
}

mgrid_status mgrid_choice_init(mgrid_choice *c, const mgrid_options *given, mgrid_error *err) {
  mgrid_options o = MGRID_OPTIONS_INIT;
  memset(c, 0, sizeof *c);
  if (given) { /* an older caller knows fewer fields: the rest keeps its default */
    if (given->size < sizeof(size_t) || given->size > 4096)
      return mgrid_fail(err, MGRID_USAGE, "options without MGRID_OPTIONS_INIT (size %zu)", given->size);
    memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
  }
  if (!o.backend) o.backend = "";
  static const char *const backends[] = { "mpi", "nccl" };
  c->backend = c->nccl = "";
  for (int i = 0; i < 2; i++)
    if (strcmp(o.backend, backends[i]) == 0) c->backend = backends[i];
  if (*o.backend && !*c->backend) {
    char tail[128];
    mgrid_suggest(tail, sizeof tail, o.backend, backends, 2);
    return mgrid_fail(err, MGRID_REFUSED, "unknown backend '%s'%s", o.backend, tail);
  }
  if (!(o.timeout >= 0 && o.timeout <= 1e9))
    return mgrid_fail(err, MGRID_REFUSED, "a timeout is 0 (the default) to 1e9 seconds, not %g", o.timeout);
  c->unique = o.unique, c->first = o.first, c->lazy = o.lazy, c->high_priority = o.high_priority;
  if (c->first && c->lazy) return mgrid_fail(err, MGRID_REFUSED, "a family is either 'first' or 'lazy'");
  c->timeout_us = (int64_t)llround(o.timeout * 1e6);
  if (o.timeout > 0 && c->timeout_us == 0) c->timeout_us = 1;
  return canonical_nccl(o.nccl, &c->nccl, err);
}

mgrid_status mgrid_choice_copy(mgrid_choice *to, const mgrid_choice *from, mgrid_error *err) {
  *to = *from;
  if (!*from->nccl) return MGRID_OK;
  to->nccl = mgrid_strdup(from->nccl);
  if (to->nccl) return MGRID_OK;
  to->nccl = "";
  return mgrid_oom(err);
}

void mgrid_choice_free(mgrid_choice *c) {
  if (c->nccl && *c->nccl) free((char *)(uintptr_t)c->nccl);
  c->nccl = "";
}

bool mgrid_choice_shares(const mgrid_choice *a, const mgrid_choice *b) {
  return !a->unique && !b->unique && a->high_priority == b->high_priority && a->timeout_us == b->timeout_us
         && (a->backend == b->backend || strcmp(a->backend, b->backend) == 0)
         && (a->nccl == b->nccl || strcmp(a->nccl, b->nccl) == 0);
}

void mgrid_choice_text(const mgrid_choice *c, bool identity, mgrid_text *t) {
  if (!identity && c->unique) mgrid_text_add(t, " unique");
  if (!identity && c->first) mgrid_text_add(t, " first");
  if (!identity && c->lazy) mgrid_text_add(t, " lazy");
  if (c->high_priority) mgrid_text_add(t, " high_priority");
  if (c->timeout_us) mgrid_text_add(t, " timeout_us=%" PRId64, c->timeout_us);
  if (*c->backend) mgrid_text_add(t, " backend=%s", c->backend);
  if (*c->nccl) mgrid_text_add(t, " nccl{%s}", c->nccl);
}
