/* SPDX-License-Identifier: MIT
**
** arrivals.c - the roll call: small messages by which ranks that wait in a call find out which
** ranks have not arrived. A rank counts as missing because it is silent, not because the deadline
** of another rank passed first. mpi_calls.c calls these functions while it waits.
*/

/* THE ROLL CALL. A rank that waits for long reports to the first rank of its call, again and again.
** The first rank answers. At its deadline it sends the others the list of the ranks that did not
** report. If the first rank itself is silent, the others name it.
**
** A silent rank may wait in another call for the rank that is really missing. So the first rank
** asks the silent ranks. A rank that waits in a call of the library answers with the ranks for
** which it waits, and only the end of such a chain is named. In a move or a step, ranks report from
** the start, so a rank is named as soon as it is silent for a deadline. If no rank is silent but
** nothing moves, the list is empty.
*/

#include "comm/mpi/mpi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------ small messages that nobody waits for */

/* MPI accepts most small messages at once, but not the first message to a node that was cut off
** before there was a connection. A rank that waited until MPI accepts it could not notify the
** others. So nobody waits for these messages. */
enum { NOTE_MOST = 160 }; /* bytes */

struct mpi_note {
  mpi_note *next;
  MPI_Request sent;
  char data[NOTE_MOST];
};

/* Free the messages that MPI has accepted. */
static mgrid_outcome sweep(void *ud) { /* mgrid_look */
  mpi_backend *m = ud;
  for (mpi_note **at = &m->note; *at;) {
    mpi_note *n = *at;
    int taken = 0;
    if (MPI_Test(&n->sent, &taken, MPI_STATUS_IGNORE) || taken) {
      *at = n->next;
      free(n);
    } else {
      at = &n->next;
    }
  }
  return m->note ? MGRID_NOT_YET : MGRID_OK;
}

/* Do the work of mgrid_mpi_post. received: the message ends only when the other rank has received
** it. */
static int arrivals_post(mpi_backend *m, int64_t to, int tag, const void *data, size_t bytes,
                         bool received) {
  mpi_note *n = malloc(sizeof *n);
  if (!n) return MPI_Send(data, (int)bytes, MPI_BYTE, (int)to, tag, m->comm);
  memcpy(n->data, data, bytes);
  int rc = received ? MPI_Issend(n->data, (int)bytes, MPI_BYTE, (int)to, tag, m->comm, &n->sent)
                    : MPI_Isend(n->data, (int)bytes, MPI_BYTE, (int)to, tag, m->comm, &n->sent);
  if (rc) return free(n), rc;
  n->next = m->note;
  m->note = n;
  sweep(m);
  return MPI_SUCCESS;
}

int mgrid_mpi_post(mpi_backend *m, int64_t to, int tag, const void *data, size_t bytes) {
  return arrivals_post(m, to, tag, data, bytes, false);
}

bool mgrid_mpi_posted(mpi_backend *m, double seconds) {
  return mgrid_wait(sweep, m, mgrid_now() + seconds, NULL, NULL) == MGRID_OK;
}

/* ----------------------------------------------------------- the roll call */

static int64_t arrivals_first_of(const mpi_roll *r) { return r->ranks ? r->ranks[0] : 0; }
static int64_t nth_of(const mpi_roll *r, int64_t n) { return r->ranks ? r->ranks[n] : n; }

mpi_roll mgrid_roll_begin(mpi_backend *m, const int32_t *ranks, int64_t size, uint64_t number,
                          double seconds) {
  double now = mgrid_now();
  return (mpi_roll){ .m = m,
                     .ranks = ranks,
                     .size = size,
                     .number = number,
                     .begun = now,
                     .seconds = seconds,
                     .look = now + 0.002,
                     .looked = now,
                     .since = now,
                     .next = now + seconds / 16 };
}

/* Return whether this rank asks the others, and finds the missing ranks by itself. In a move no
** rank does so. Else the first rank does, and if the first rank is in another call, each rank, but
** not in a large group, where too many would ask. */
static bool asks(const mpi_roll *r) {
  const int64_t many = 1024;
  return !r->moves && (arrivals_first_of(r) == r->m->base.rank || (r->left && r->size <= many));
}

typedef struct news { /* what ranks in calls send each other */
  uint64_t number;    /* the call in which the sender is */
  /* in an answer, or with the list: the call in which the receiver reported or asked */
  uint64_t to;
  uint64_t moved; /* messages that the sender has finished in moves */
  /* ranks for which the sender waits, if it knows them; or the list of missing ranks */
  mgrid_missing missing;
} news;

static void send_news(const mpi_roll *r, int64_t rank, int tag, uint64_t to) {
  news n = { r->number, to, r->m->moving.count, r->told ? r->missing : r->blamed };
  mgrid_mpi_post(r->m, rank, tag, &n, sizeof n);
}

/* Receive a message with this tag. Return false if there is none. */
static bool receive(const mpi_backend *m, int tag, news *got, int64_t *from) {
  MPI_Status status;
  int there = 0;
  if (MPI_Iprobe(MPI_ANY_SOURCE, tag, m->comm, &there, &status) || !there) return false;
  if (MPI_Recv(got, sizeof *got, MPI_BYTE, status.MPI_SOURCE, tag, m->comm, MPI_STATUS_IGNORE))
    return false;
  if (mgrid_missing_heard(&got->missing, m->base.world, NULL)) got->missing = (mgrid_missing){ 0 };
  *from = status.MPI_SOURCE;
  return true;
}

/* Keep the report of a rank, in the place of its last report. */
static void arrivals_keep(mpi_backend *m, int64_t from, const news *got) {
  if (!m->here) m->here = calloc((size_t)m->base.world, sizeof *m->here);
  if (!m->here) return;
  mpi_report *last = &m->here[from];
  if (got->moved != last->moved) m->moving.last = mgrid_now();
  *last = (mpi_report){ got->number, got->moved, got->missing, mgrid_now() };
}

/* Receive the reports and questions that have arrived, for any call, and answer each. */
static void answer(const mpi_roll *r) {
  news got;
  int64_t from;
  while (receive(r->m, MGRID_TAG_HERE, &got, &from)) {
    arrivals_keep(r->m, from, &got);
    send_news(r, from, MGRID_TAG_THERE, got.number);
  }
}

/* Return whether a number is that of this call, or of another call over the same ranks. A call may
** have ended on some ranks, which now wait in the next call, while others still wait in the first
** one for the missing rank. */
static bool arrivals_is_alike(const mpi_roll *r, uint64_t number) {
  return (number ^ r->number) >> MGRID_MPI_CALL_BITS == 0;
}

/* Receive answers, and the list of missing ranks of this call. */
static void listen(mpi_roll *r, double now) {
  news got;
  int64_t from;
  while (receive(r->m, MGRID_TAG_THERE, &got, &from)) {
    if (got.to != r->number) continue;
    if (asks(r)) arrivals_keep(r->m, from, &got);
    if (from != arrivals_first_of(r)) continue;
    r->since = now, r->answered = true;
    r->left = r->ranks && !r->moves && !arrivals_is_alike(r, got.number);
    if (!asks(r)) r->blamed = got.missing;
  }
  while (!r->told && receive(r->m, MGRID_TAG_MISSING, &got, &from))
    if (got.to == r->number) r->told = true, r->missing = got.missing;
}

/* Return the last report of a rank; NULL: there is none. A report from another call counts only if
** it came after this call began. */
static const mpi_report *report_of(const mpi_roll *r, int64_t rank) {
  const mpi_report *last = r->m->here ? &r->m->here[rank] : NULL;
  return last && (last->number == r->number || last->at >= r->begun) ? last : NULL;
}

/* Add to *out the ranks of `more`, for which a rank in another call waits. Leave out this rank. */
static void add_blamed(const mpi_roll *r, const mgrid_missing *more, mgrid_missing *out) {
  for (int64_t i = 0; i < more->n && i < MGRID_MISSING_SHOWN; i++) {
    bool known = more->rank[i] == r->m->base.rank || out->n >= MGRID_MISSING_SHOWN;
    for (int64_t k = 0; k < out->n && !known; k++) known = out->rank[k] == more->rank[i];
    if (!known) mgrid_missing_add(out, more->rank[i]);
  }
}

/* List the silent ranks. With `alike`, add the ranks that are in other calls; otherwise add the
** ranks for which ranks in other calls wait. */
static void arrivals_find_missing(const mpi_roll *r, double now, double silent, bool alike,
                                  mgrid_missing *out) {
  *out = (mgrid_missing){ 0 };
  for (int64_t i = 0; i < r->size; i++) {
    const mpi_report *last = report_of(r, nth_of(r, i));
    if (nth_of(r, i) == r->m->base.rank) continue;
    bool here = last && now - last->at <= silent,
         elsewhere = here && !arrivals_is_alike(r, last->number);
    if (!here || (alike && elsewhere)) mgrid_missing_add(out, nth_of(r, i));
  }
  for (int64_t i = 0; i < r->size && !alike && r->m->here; i++) {
    const mpi_report *last = report_of(r, nth_of(r, i));
    if (last && now - last->at <= silent && (r->pairs || !arrivals_is_alike(r, last->number)))
      add_blamed(r, &last->missing, out);
  }
}

/* On the first rank: send the list to all others that are not silent. A rank that waits in another
** call gets it only if this call is over all ranks, because then no rank can go on. */
static void arrivals_tell(mpi_roll *r, double now, double silent) {
  for (int64_t i = 1; i < r->size && !r->pairs; i++) {
    const mpi_report *last = report_of(r, nth_of(r, i));
    if (!last || now - last->at > silent || (r->ranks && !arrivals_is_alike(r, last->number)))
      continue;
    news n = { .number = r->number, .to = last->number, .missing = r->missing };
    arrivals_post(r->m, nth_of(r, i), MGRID_TAG_MISSING, &n, sizeof n, !r->ranks && !r->moves);
  }
  r->told = true;
}

/* On the first rank, in a move: if a rank is silent or nothing moves, find the missing ranks and
** tell the others. */
static void watch_over(mpi_roll *r, double now) {
  bool silent = false;
  if (now < r->next) return;
  r->next = now + r->seconds / 16;
  for (int64_t i = 1; i < r->size && !silent; i++) {
    const mpi_report *last = report_of(r, nth_of(r, i));
    silent = now - (last && last->at > r->since ? last->at : r->since) > r->seconds;
  }
  double last = r->m->moving.last > r->since ? r->m->moving.last : r->since;
  if (!silent && now - last <= r->seconds) return;
  arrivals_find_missing(r, now, r->seconds, false, &r->missing);
  arrivals_tell(r, now, r->seconds);
}

/* Name the first rank as missing, because it no longer answers; but if this rank was away, name
** this rank. */
static void arrivals_give_up(mpi_roll *r) {
  r->missing =
      (mgrid_missing){ .n = 1, .rank = { r->away ? r->m->base.rank : arrivals_first_of(r) } };
  r->told = r->guessed = true;
}

/* Report to the first rank, and also to rank 0, which may wait in a call over all ranks. If this
** rank asks, it sends a question to each rank that has not reported lately from this call. */
static void report_now(mpi_roll *r, double now) {
  /* If ranks are few, they report more often: the names of missing ranks may have to pass through
  ** many calls before the deadline. */
  const int64_t few = 64;
  r->next = now + r->seconds / (r->size <= few && !r->moves ? 32 : 8);
  for (int64_t i = 0; i < r->size && asks(r); i++) {
    const mpi_report *last = report_of(r, nth_of(r, i));
    if (nth_of(r, i) == r->m->base.rank || nth_of(r, i) == arrivals_first_of(r)) continue;
    if (!last || last->number != r->number || now - last->at > r->seconds / 4)
      send_news(r, nth_of(r, i), MGRID_TAG_HERE, 0);
  }
  if (arrivals_first_of(r) != r->m->base.rank)
    send_news(r, arrivals_first_of(r), MGRID_TAG_HERE, 0);
  if (arrivals_first_of(r) == 0 || r->m->base.rank == 0 || now < r->next_to_0) return;
  send_news(r, 0, MGRID_TAG_HERE, 0);
  r->next_to_0 = now + r->seconds / 8;
}

/* Find the ranks for which this rank waits. This comes before questions and reports, which contain
** these ranks. */
static void blame(mpi_roll *r, double now) {
  const double silent = r->seconds * 3 / 8;
  if (asks(r) && now - r->begun > r->seconds / 4)
    arrivals_find_missing(r, now, silent, false, &r->blamed);
  else if (!asks(r) && now - r->since > silent)
    r->answered = false, r->blamed = (mgrid_missing){ .n = 1, .rank = { arrivals_first_of(r) } };
}

bool mgrid_roll_look(mpi_roll *r) {
  const double rest = 0.005;
  double now = mgrid_now();
  bool first = arrivals_first_of(r) == r->m->base.rank;
  if (r->told || now < r->look) return r->told;
  /* this rank did not run for a long time, so it could not receive answers either */
  if (now - r->looked > r->m->seconds * 3 / 4) r->away = true, r->since = now;
  r->look = now + rest;
  if (mgrid_mpi_lost(r->m, r->ranks, r->size, &r->missing)) return r->told = true;
  r->missing.lost = false;
  listen(r, now);
  bool due = !(first && r->moves) && now >= r->next;
  if (due && !r->moves) blame(r, now);
  answer(r);
  if (first && r->moves) watch_over(r, now);
  if (due) report_now(r, now);
  r->looked = mgrid_now();
  if (!first && r->moves && !r->told && now - r->since > r->seconds) arrivals_give_up(r);
  return r->told;
}

typedef struct ending {
  mpi_roll *roll;
  double until, asked;
  /* the ranks for which the first rank waited at its last answer; since then it may have left its
  ** call */
  mgrid_missing known;
} ending;

/* An mgrid_look. A rank that asks waits until it knows a missing rank. Any other rank waits for the
** list, or for a new answer of the first rank. */
static mgrid_outcome is_known(void *ud) {
  ending *e = ud;
  mpi_roll *r = e->roll;
  double now = mgrid_now();
  if (mgrid_roll_look(r)) return MGRID_OK;
  /* the first rank takes part in a recovery, so it sends no list */
  if (mgrid_mpi_is_interrupted(r->m)) return MGRID_LATE;
  if (asks(r)) {
    arrivals_find_missing(r, now, r->m->seconds / 2, false, &r->missing);
    if (r->missing.n == 0) arrivals_find_missing(r, now, r->m->seconds / 4, false, &r->missing);
  } else if (r->since >= e->asked) {
    r->missing = r->blamed;
  }
  return r->missing.n > 0 ? MGRID_OK : now > e->until ? MGRID_LATE : MGRID_NOT_YET;
}

/* Decide who is missing if is_known has found no rank: on a rank that asks, the ranks in other
** calls; on any other, the ranks that the first rank named last, or else the first rank, if it does
** not answer. */
static void conclude(const ending *e) {
  mpi_roll *r = e->roll;
  if (asks(r))
    arrivals_find_missing(r, mgrid_now(), r->m->seconds / 2, true, &r->missing);
  else if (e->known.n > 0)
    r->missing = e->known;
  else if (!r->answered || r->since < e->asked || r->left)
    arrivals_give_up(r);
}

mgrid_missing mgrid_roll_end(mpi_roll *r) {
  /* moment: seconds until an answer that was sent has arrived. longer: seconds until a rank that
  ** shares its core has answered */
  const double moment = 0.25, longer = 0.85;
  double now = mgrid_now();
  bool first = arrivals_first_of(r) == r->m->base.rank;
  ending e = { r, now + longer, now, r->blamed };
  if (!first && !r->answered) e.known.n = 0;
  if (!first && (!r->answered || r->blamed.n > 0)) e.until = now + moment;
  r->look = r->next = 0;
  if (mgrid_roll_look(r)) return r->missing;
  if (mgrid_wait(is_known, &e, INFINITY, NULL, NULL) != MGRID_OK) conclude(&e);
  if (r->told || !first) return r->missing;
  arrivals_tell(r, mgrid_now(), r->m->seconds / 2);
  /* wait until the list is received, because a recovery, which may come next, would cancel it */
  if (!r->ranks && !r->moves) mgrid_mpi_posted(r->m, moment);
  return r->missing;
}
