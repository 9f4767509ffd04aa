/* SPDX-License-Identifier: MIT
**
** arrivals.c - which ranks have arrived at a call, and which have not. When a call takes long, every rank in it reports to
** the first of its ranks, repeatedly. The first answers each report and, at its deadline, tells the others which ranks
** it has not heard lately. So a rank is called missing because it does not report, not because its own clock ran out
** first. If the first does not answer, it is the missing one.
**
** In a move ranks report from its start, whether they still move data or wait for the others. So the first knows at
** any time which ranks are silent, and names a rank that was silent for a deadline, no matter who waits for whom.
** Reports count what has moved: if nothing moves for a deadline though no rank is silent, the first reports that too
** (an empty list).
*/
#include "comm/mpi/mpi.h"

#include <stdlib.h>

static int64_t first_of(const mpi_roll *r) { return r->ranks ? r->ranks[0] : 0; }
static int64_t nth_of(const mpi_roll *r, int64_t n) { return r->ranks ? r->ranks[n] : n; }

mpi_roll mgrid_roll_begin(mpi_backend *m, const int32_t *ranks, int64_t size, uint64_t number, double seconds) {
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

typedef struct report { /* to the first */
  uint64_t number, moved;
} report;

typedef struct list {   /* from the first */
  uint64_t      number; /* of the call that this rank has reported */
  mgrid_missing missing;
} list;

/* Receive the reports that have arrived, of any call, and answer each. */
static void answer(mpi_backend *m) {
  for (int there = 1; there;) {
    MPI_Status from;
    report     got = { 0 };
    if (MPI_Iprobe(MPI_ANY_SOURCE, MGRID_TAG_HERE, m->comm, &there, &from) || !there) return;
    MPI_Recv(&got, sizeof got, MPI_BYTE, from.MPI_SOURCE, MGRID_TAG_HERE, m->comm, MPI_STATUS_IGNORE);
    if (!m->here) m->here = calloc((size_t)m->base.world, sizeof *m->here);
    if (m->here) {
      mpi_report *last = &m->here[from.MPI_SOURCE];
      if (got.moved != last->moved) m->moving.last = mgrid_now();
      *last = (mpi_report){ got.number, got.moved, mgrid_now() };
    }
    mgrid_mpi_post(m, from.MPI_SOURCE, MGRID_TAG_THERE, &got.number, sizeof got.number);
  }
}

/* Receive answers and the list, from the first, or from rank 0. */
static void listen(mpi_roll *r, int64_t from, double now) {
  MPI_Comm comm = r->m->comm;
  int      source = (int)from;
  uint64_t number = 0;
  list     got = { 0 };
  for (int there = 1; there;) {
    if (MPI_Iprobe(source, MGRID_TAG_THERE, comm, &there, MPI_STATUS_IGNORE) || !there) break;
    MPI_Recv(&number, sizeof number, MPI_BYTE, source, MGRID_TAG_THERE, comm, MPI_STATUS_IGNORE);
    if (number == r->number && from == first_of(r)) r->since = now, r->answered = true;
  }
  for (int there = 1; there && !r->told;) {
    if (MPI_Iprobe(source, MGRID_TAG_MISSING, comm, &there, MPI_STATUS_IGNORE) || !there) break;
    MPI_Recv(&got, sizeof got, MPI_BYTE, source, MGRID_TAG_MISSING, comm, MPI_STATUS_IGNORE);
    if (got.number == r->number) r->told = true, r->missing = got.missing;
  }
}

/* Return whether the report is of this call, or of another call of the same ranks. A call may end on some ranks while
** others wait in it for the missing one. */
static bool is_alike(const mpi_roll *r, const mpi_report *last) {
  return (last->number ^ r->number) >> MGRID_MPI_CALL_BITS == 0;
}

/* Return a rank's last report, unless it is of another call and older than this one. NULL: there is none. */
static const mpi_report *report_of(const mpi_roll *r, int64_t rank) {
  const mpi_report *last = r->m->here ? &r->m->here[rank] : NULL;
  return last && (last->number == r->number || last->at >= r->begun) ? last : NULL;
}

/* List the silent ranks; with `alike` also those that wait in another call. */
static void find_missing(mpi_roll *r, double now, double silent, bool alike) {
  for (int64_t i = 1; i < r->size; i++) {
    const mpi_report *last = report_of(r, nth_of(r, i));
    if (!last || now - last->at > silent || (alike && !is_alike(r, last))) mgrid_missing_add(&r->missing, nth_of(r, i));
  }
}

/* On the first rank: list the ranks silent for that long, and tell all others. A rank that waits in another call over a
** group is missing only if no rank is silent. In a call over all ranks such a rank gets the list, too: no rank can
** continue. */
static void call_roll(mpi_roll *r, double now, double silent) {
  find_missing(r, now, silent, false);
  if (r->missing.n == 0 && !r->moves) find_missing(r, now, silent, true);
  for (int64_t i = 1; i < r->size; i++) {
    const mpi_report *last = report_of(r, nth_of(r, i));
    if (!last || now - last->at > silent || (r->ranks && !is_alike(r, last))) continue;
    list l = { last->number, r->missing };
    (r->ranks || r->moves ? mgrid_mpi_post : mgrid_mpi_post_received)(r->m, nth_of(r, i), MGRID_TAG_MISSING, &l,
                                                                      sizeof l);
  }
  r->told = true;
}

/* On the first rank, in a move: call the roll if a rank is silent, or nothing moves. */
static void watch_over(mpi_roll *r, double now) {
  bool silent = false;
  if (now < r->next) return;
  r->next = now + r->seconds / 16;
  for (int64_t i = 1; i < r->size && !silent; i++) {
    const mpi_report *last = report_of(r, nth_of(r, i));
    silent = now - (last && last->at > r->since ? last->at : r->since) > r->seconds;
  }
  double last = r->m->moving.last > r->since ? r->m->moving.last : r->since;
  if (silent || now - last > r->seconds) call_roll(r, now, r->seconds);
}

/* Blame the first, which no longer answers; or this rank, if it was away itself. */
static void give_up(mpi_roll *r) {
  r->missing = (mgrid_missing){ .n = 1, .rank = { r->away ? r->m->base.rank : first_of(r) } };
  r->told = r->guessed = true;
}

/* Report to the first rank; and to rank 0, which may wait in a call over all ranks. */
static void report_now(mpi_roll *r, double now) {
  report mine = { r->number, r->m->moving.count };
  r->next = now + r->seconds / 8;
  if (first_of(r) != r->m->base.rank) mgrid_mpi_post(r->m, first_of(r), MGRID_TAG_HERE, &mine, sizeof mine);
  if (first_of(r) != 0 && r->m->base.rank != 0) mgrid_mpi_post(r->m, 0, MGRID_TAG_HERE, &mine, sizeof mine);
}

bool mgrid_roll_look(mpi_roll *r) {
  const double rest = 0.005;
  double       now = mgrid_now();
  bool         first = first_of(r) == r->m->base.rank;
  if (r->told || now < r->look) return r->told;
  if (now - r->looked > r->m->seconds * 3 / 4) r->away = true, r->since = now; /* this rank did not run */
  r->look = now + rest;
  if (mgrid_mpi_lost(r->m, r->ranks, r->size, &r->missing)) return r->told = true;
  r->missing.lost = false;
  answer(r->m);
  if (first && r->moves) watch_over(r, now);
  if (!(first && r->moves) && now >= r->next) report_now(r, now);
  if (!first) listen(r, first_of(r), now);
  if (first_of(r) != 0 && r->m->base.rank != 0) listen(r, 0, now);
  r->looked = mgrid_now();
  if (!first && r->moves && !r->told && now - r->since > r->seconds) give_up(r);
  return r->told;
}

typedef struct ending {
  mpi_roll *roll;
  double    until; /* at least */
} ending;

/* mgrid_look: wait for the list of missing ranks from the first, as long as that answers. */
static mgrid_outcome has_list(void *ud) {
  ending   *e = ud;
  mpi_roll *r = e->roll;
  double    until = r->answered ? r->since + r->m->seconds / 2 : 0;
  if (mgrid_roll_look(r)) return MGRID_OK;
  if (mgrid_mpi_is_interrupted(r->m)) return MGRID_LATE; /* the first recovers, and sends no list */
  return mgrid_now() > (until > e->until ? until : e->until) ? MGRID_LATE : MGRID_NOT_YET;
}

mgrid_missing mgrid_roll_end(mpi_roll *r) {
  const double moment = 0.25; /* for an answer in transit */
  double       now = mgrid_now();
  ending       e = { r, now + moment };
  r->look = 0;
  if (mgrid_roll_look(r)) return r->missing;
  if (first_of(r) == r->m->base.rank) {
    call_roll(r, now, r->m->seconds / 2);
    /* This rank's next call, such as a recovery, may cancel a message that is not received yet: wait for it. */
    if (!r->ranks && !r->moves) mgrid_mpi_posted(r->m, moment);
  } else if (mgrid_wait(has_list, &e, now + r->seconds + 1, NULL, NULL) != MGRID_OK) { /* it may have started later */
    give_up(r);
  }
  return r->missing;
}
