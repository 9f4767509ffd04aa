/* SPDX-License-Identifier: MIT
**
** verdict.c - the verdict on a call over all ranks: if a rank failed, every rank returns that
** rank's error. The file also makes the errors that name missing ranks, checks data of other ranks,
** and has the loop in which calls wait (mgrid_wait). It is linked into the core and into every
** backend, so it calls only src/base and the operations of a backend.
*/
#include "comm/backend.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ======================================================= the loop that waits */

/* After MGRID_BUSY, yield the processor at every 17th look, and never sleep: mgrid_pause first
** yields at look 16, counted from 0, and sleeps only later. */
enum { BUSY_LOOKS = 17 };

mgrid_outcome mgrid_wait(mgrid_look *look, void *ud, double until, mgrid_backend *carrier,
                         int64_t *who) {
  for (int turn = 0;; turn++) {
    mgrid_outcome outcome = look(ud);
    if (outcome != MGRID_NOT_YET && outcome != MGRID_BUSY) return outcome;
    if (mgrid_now() > until) return MGRID_LATE;
    int64_t told = carrier ? carrier->ops->carrier->heard(carrier) : -1;
    if (told >= 0) {
      *who = told;
      return MGRID_GAVE_UP;
    }
    mgrid_pause(outcome == MGRID_BUSY ? turn % BUSY_LOOKS : turn);
  }
}

/* ============================================================= missing ranks */

void mgrid_missing_add(mgrid_missing *m, int64_t rank) {
  if (m->n < MGRID_MISSING_SHOWN) m->rank[m->n] = rank;
  m->n++;
}

mgrid_status mgrid_missing_heard(const mgrid_missing *m, int64_t world, mgrid_error *err) {
  if (m->n < 0 || m->n > world)
    return mgrid_cannot_be(err, "%" PRId64 " missing ranks of %" PRId64, m->n, world);
  if (m->lost) return mgrid_cannot_be(err, "lost ranks, which only MPI can report");
  for (int64_t i = 0; i < m->n && i < MGRID_MISSING_SHOWN; i++)
    if (m->rank[i] < 0 || m->rank[i] >= world)
      return mgrid_cannot_be(err, "a missing rank %" PRId64 " of %" PRId64, m->rank[i], world);
  return MGRID_OK;
}

const char *mgrid_missing_text(const mgrid_missing *m, char to[MGRID_MISSING_TEXT]) {
  const char *who = m->n == 0  ? "some rank"
                    : m->n > 1 ? "ranks "
                               : "rank ",
             *be = m->n > 1 ? "are" : "is";
  size_t len = (size_t)snprintf(to, MGRID_MISSING_TEXT, "%s", who);
  for (int64_t i = 0; i < m->n && i < MGRID_MISSING_SHOWN; i++)
    len += (size_t)snprintf(to + len, MGRID_MISSING_TEXT - len, "%s%" PRId64, i > 0 ? ", " : "",
                            m->rank[i]);
  if (m->n > MGRID_MISSING_SHOWN)
    len += (size_t)snprintf(to + len, MGRID_MISSING_TEXT - len, " and %" PRId64 " more",
                            m->n - MGRID_MISSING_SHOWN);
  snprintf(to + len, MGRID_MISSING_TEXT - len, " %s %s", be,
           m->lost ? "lost: MPI says that the process has failed" : "not there");
  return to;
}

mgrid_status mgrid_missing_fail(const mgrid_missing *m, double seconds, mgrid_error *err) {
  char text[MGRID_MISSING_TEXT];
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

/* =============================================================== the verdict */

/* Added to the number of a rank that gave up because another rank failed. So the minimum over all
** ranks is a rank with an error of its own, if there is one. */
#define LATER (UINT64_C(1) << 40)

mgrid_status mgrid_cannot_be(mgrid_error *err, const char *fmt, ...) {
  char what[300];
  va_list args;
  va_start(args, fmt);
  mgrid_vformat(what, sizeof what, fmt, args);
  va_end(args);
  return mgrid_fail(
      err, MGRID_BACKEND,
      "another rank sent an impossible value: %s; the carrier, or a rank, gives other bytes "
      "than were sent",
      what);
}

int64_t mgrid_rank_heard(uint64_t rank, int64_t world, mgrid_error *err) {
  if (rank < (uint64_t)world) return (int64_t)rank;
  mgrid_cannot_be(err, "rank %" PRIu64 " of %" PRId64, rank, world);
  return -1;
}

mgrid_status mgrid_hear(mgrid_backend *b, uint64_t root, void *data, size_t bytes,
                        mgrid_error *err) {
  mgrid_error bad = MGRID_ERROR_INIT;
  int64_t from = mgrid_rank_heard(root, b->world, &bad);
  return from < 0 ? mgrid_error_pass(err, &bad) : b->ops->bcast(b, data, bytes, from, err);
}

void mgrid_error_heard(mgrid_error *e) {
  mgrid_show(e->message, sizeof e->message);
  mgrid_show(e->file, sizeof e->file);
  if (e->line < 0) e->line = 0;
  e->size = sizeof *e;
  if (e->nmissing < 0 || !(e->waited >= 0 && e->waited < INFINITY)) e->nmissing = 0;
  for (int64_t i = 0; i < e->nmissing && i < MGRID_MISSING_SHOWN; i++)
    if (e->missing[i] < 0) e->nmissing = 0;
  mgrid_show(e->call, sizeof e->call);
  if (strcmp(mgrid_status_text(e->status), mgrid_status_text((mgrid_status)-1)) == 0)
    e->status = MGRID_BACKEND;
}

void mgrid_doing_add(const mgrid_backend *b, mgrid_error *err) {
  if ((err->status == MGRID_TIMED_OUT || err->status == MGRID_LOST_RANK) && *b->doing)
    mgrid_error_reword(err, "%.800s, in call %" PRIu64 " over all ranks: %s", err->message,
                       b->meetings, b->doing);
  if (err->nmissing && err->size >= sizeof *err)
    snprintf(err->call, sizeof err->call, "%s", b->doing);
}

uint64_t mgrid_verdict_of(const mgrid_backend *b, mgrid_outcome mine) {
  return mine ? (uint64_t)b->rank + (mine == MGRID_GAVE_UP ? LATER : 0) : UINT64_MAX;
}

mgrid_status mgrid_verdict_tell(mgrid_backend *b, uint64_t who, mgrid_outcome mine,
                                const mgrid_error *failed, mgrid_error *err) {
  mgrid_error first = MGRID_ERROR_INIT;
  if (who == UINT64_MAX) return MGRID_OK;
  if (mine && failed) mgrid_error_replace(&first, failed);
  /* *err becomes the error that all ranks return */
  if (mine && failed == err) mgrid_error_clear(err);
  who %= LATER;
  mgrid_status s = mgrid_hear(b, who, &first, sizeof first, err);
  if (s) return s;
  mgrid_error_heard(&first);
  if (!first.status) first.status = MGRID_BACKEND;
  first.line = 0, first.file[0] = '\0';
  mgrid_error_reword(&first, "rank %" PRIu64 ": %.900s", who, first.message);
  return mgrid_error_pass(err, &first);
}

mgrid_status mgrid_verdict_min(mgrid_backend *b, uint64_t *words, size_t n, mgrid_outcome mine,
                               const mgrid_error *failed, mgrid_error *err) {
  mgrid_error lost = MGRID_ERROR_INIT, own = MGRID_ERROR_INIT;
  mgrid_status s = b->ops->allreduce_min(b, words, n, &lost);
  if (!s) return MGRID_OK;
  mgrid_doing_add(b, &lost);
  if (mine && mine != MGRID_GAVE_UP && failed)
    mgrid_error_replace(&own, failed); /* a rank that only gave up has nothing to add */
  if (own.status)
    mgrid_error_reword(&lost, "%.480s; and on rank %" PRId64 " %.480s", lost.message, b->rank,
                       own.message);
  /* *err becomes the error that names the missing rank; it usually caused this rank's error */
  if (failed == err) mgrid_error_clear(err);
  return mgrid_error_pass(err, &lost);
}

mgrid_status mgrid_verdict(mgrid_backend *b, mgrid_outcome mine, const mgrid_error *failed,
                           mgrid_error *err) {
  uint64_t who = mgrid_verdict_of(b, mine);
  mgrid_status s = mgrid_verdict_min(b, &who, 1, mine, failed, err);
  return s ? s : mgrid_verdict_tell(b, who, mine, failed, err);
}

mgrid_status mgrid_layout_check(int layout, const char *what, mgrid_error *err) {
  int version = layout - 0x6d000000;
  if (layout == MGRID_LAYOUT) return MGRID_OK;
  if (version < 0 || version >= 1000000)
    return mgrid_fail(err, MGRID_MISSING, "%s is not of any moongrid", what);
  return mgrid_fail(err, MGRID_MISSING,
                    "%s is of moongrid %d.%d.%d, this is %s; install both from one version", what,
                    version / 10000, version / 100 % 100, version % 100, MGRID_VERSION);
}
