/* SPDX-License-Identifier: MIT
**
** mpi_roll.c - who has come to a call, and who has not. When a call takes long every rank in it reports to the first of
** those who take part, which answers at once that it is there, collects reports while it waits itself, and at its
** deadline tells the others who is missing. So a rank is called missing because it did not report, not because
** its own clock ran out first; and if the first does not answer, it is the missing one.
*/
#include "comm/mpi.h"

#include <stdlib.h>

static int64_t first_of(const mpi_roll *r) { return r->ranks ? r->ranks[0] : 0; }
static int64_t nth_of(const mpi_roll *r, int64_t n) { return r->ranks ? r->ranks[n] : n; }

mpi_roll mgrid_roll_begin(mpi_backend *m, const int32_t *ranks, int64_t size, uint64_t number, double seconds) {
  double now = mgrid_now();
  return (mpi_roll){
    .m = m, .ranks = ranks, .size = size, .number = number, .begun = now, .seconds = seconds, .look = now + 0.002
  };
}

/* Take the reports that have arrived, of whatever call, and answer each. */
void mgrid_roll_answer(mpi_backend *m) {
  for (int there = 1; there;) {
    MPI_Status from;
    uint64_t   number = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MGRID_TAG_HERE, m->comm, &there, &from) || !there) return;
    MPI_Recv(&number, sizeof number, MPI_BYTE, from.MPI_SOURCE, MGRID_TAG_HERE, m->comm, MPI_STATUS_IGNORE);
    if (!m->here) m->here = calloc((size_t)m->base.world, sizeof *m->here);
    if (m->here) m->here[from.MPI_SOURCE] = (mpi_report){ number, mgrid_now() };
    mgrid_mpi_post(m, from.MPI_SOURCE, MGRID_TAG_THERE, &number, sizeof number);
  }
}

/* Has the first answered a report of this call? */
static void take_answer(mpi_roll *r) {
  for (int there = 1; there && !r->answered;) {
    uint64_t number = 0;
    if (MPI_Iprobe((int)first_of(r), MGRID_TAG_THERE, r->m->comm, &there, MPI_STATUS_IGNORE) || !there) return;
    MPI_Recv(&number, sizeof number, MPI_BYTE, (int)first_of(r), MGRID_TAG_THERE, r->m->comm, MPI_STATUS_IGNORE);
    r->answered = number == r->number;
  }
}

void mgrid_roll_look(mpi_roll *r) {
  const double rest = 0.005;
  double       now = mgrid_now();
  if (now < r->look) return;
  r->look = now + rest;
  mgrid_roll_answer(r->m);
  if (first_of(r) == r->m->base.rank) return;
  if (!r->reported && now - r->begun >= (r->hurry ? 0 : r->seconds / 4)) {
    r->reported = true;
    mgrid_mpi_post(r->m, first_of(r), MGRID_TAG_HERE, &r->number, sizeof r->number);
  }
  if (r->reported) take_answer(r);
}

typedef struct answer {
  uint64_t      number;
  mgrid_missing missing;
} answer;

/* mgrid_look: the list of who is missing, from the first. */
typedef struct listening {
  mpi_roll *roll;
  answer    got;
} listening;

static mgrid_outcome has_list(void *ud) {
  listening *l = ud;
  mpi_roll  *r = l->roll;
  int        there = 0;
  mgrid_roll_look(r);
  if (MPI_Iprobe((int)first_of(r), MGRID_TAG_MISSING, r->m->comm, &there, MPI_STATUS_IGNORE) || !there)
    return MGRID_NOT_YET;
  MPI_Recv(&l->got, sizeof l->got, MPI_BYTE, (int)first_of(r), MGRID_TAG_MISSING, r->m->comm, MPI_STATUS_IGNORE);
  return l->got.number == r->number ? MGRID_OK : MGRID_NOT_YET;
}

/* Has it come? Also when it is in another call of the same ranks, since a call may end on some ranks while others wait in
** it for the one that is missing; but an old report of such a call says nothing. */
static bool has_come(const mpi_roll *r, int64_t rank) {
  const mpi_report *last = r->m->here ? &r->m->here[rank] : NULL;
  if (!last) return false;
  return last->number == r->number || ((last->number ^ r->number) >> MGRID_MPI_CALL_BITS == 0 && last->at >= r->begun);
}

mgrid_missing mgrid_roll_end(mpi_roll *r) {
  mpi_backend *m = r->m;
  listening    l = { .roll = r };
  const double moment = 0.25; /* for an answer that is on its way */
  answer       a = { 0 };
  r->look = 0;
  mgrid_roll_look(r);
  if (first_of(r) != m->base.rank) {
    double now = mgrid_now(), until = now + moment;
    /* The first may have begun later by a deadline. */
    if (mgrid_wait(has_list, &l, until, NULL, NULL) == MGRID_OK) return l.got.missing;
    if (r->answered && mgrid_wait(has_list, &l, now + r->seconds + 1, NULL, NULL) == MGRID_OK) return l.got.missing;
    return (mgrid_missing){ 1, { first_of(r) } };
  }
  for (int64_t i = 1; i < r->size; i++)
    if (!has_come(r, nth_of(r, i))) mgrid_missing_add(&a.missing, nth_of(r, i));
  for (int64_t i = 1; i < r->size; i++) {
    int64_t rank = nth_of(r, i);
    if (!has_come(r, rank)) continue;
    a.number = m->here[rank].number;
    mgrid_mpi_post(m, rank, MGRID_TAG_MISSING, &a, sizeof a);
  }
  return a.missing;
}
