/* SPDX-License-Identifier: MIT
**
** missing.c - the ranks that did not arrive at a collective, and the error that names them. Linked into the core and into
** every carrier.
*/
#include "comm/backend.h"

#include <inttypes.h>

void mgrid_missing_add(mgrid_missing *m, int64_t rank) {
  if (m->n < MGRID_MISSING_SHOWN) m->rank[m->n] = rank;
  m->n++;
}

mgrid_status mgrid_missing_heard(const mgrid_missing *m, int64_t world, mgrid_error *err) {
  if (m->n < 0 || m->n > world) return mgrid_cannot_be(err, "%" PRId64 " missing ranks of %" PRId64, m->n, world);
  if (m->lost) return mgrid_cannot_be(err, "ranks lost, as MPI alone tells");
  for (int64_t i = 0; i < m->n && i < MGRID_MISSING_SHOWN; i++)
    if (m->rank[i] < 0 || m->rank[i] >= world)
      return mgrid_cannot_be(err, "a missing rank %" PRId64 " of %" PRId64, m->rank[i], world);
  return MGRID_OK;
}

const char *mgrid_missing_text(const mgrid_missing *m, char to[MGRID_MISSING_TEXT]) {
  const char *who = m->n == 0 ? "some rank" : m->n > 1 ? "ranks " : "rank ", *be = m->n > 1 ? "are" : "is";
  size_t      len = (size_t)snprintf(to, MGRID_MISSING_TEXT, "%s", who);
  for (int64_t i = 0; i < m->n && i < MGRID_MISSING_SHOWN; i++)
    len += (size_t)snprintf(to + len, MGRID_MISSING_TEXT - len, "%s%" PRId64, i > 0 ? ", " : "", m->rank[i]);
  if (m->n > MGRID_MISSING_SHOWN)
    len += (size_t)snprintf(to + len, MGRID_MISSING_TEXT - len, " and %" PRId64 " more", m->n - MGRID_MISSING_SHOWN);
  snprintf(to + len, MGRID_MISSING_TEXT - len, " %s %s", be,
           m->lost ? "lost: MPI says that the process has failed" : "not there");
  return to;
}

mgrid_status mgrid_missing_fail(const mgrid_missing *m, double seconds, mgrid_error *err) {
  char        text[MGRID_MISSING_TEXT];
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_missing_text(m, text);
  if (m->lost)
    mgrid_fail(&e, MGRID_LOST_RANK, "%s", text);
  else
    mgrid_fail(&e, MGRID_TIMED_OUT, "after %.3g seconds not all ranks had come: %s", seconds, text);
  e.nmissing = m->n, e.waited = seconds;
  for (int64_t i = 0; i < m->n && i < MGRID_MISSING_SHOWN; i++) e.missing[i] = m->rank[i];
  return mgrid_error_pass(err, &e);
}
