/* SPDX-License-Identifier: MIT
**
** mpi_create.c - communicators of MPI, created by their members alone (MPI_Comm_create_group) on our duplicate of the
** host's. MPI has no creation that does not block, so the members meet before, by messages with a deadline, and who
** gives up tells the others; in the creation itself, where all have come, a watchdog looks at the clock.
*/
#include "comm/mpi.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------- a watchdog
** A thread that lives as long as one call that creates. It calls nothing of MPI, as it must not where MPI is initialized
** below MPI_THREAD_MULTIPLE. */

typedef struct watchdog {
  pthread_t              thread;
  bool                   there; /* the thread was started */
  pthread_mutex_t        lock;
  pthread_cond_t         woken;
  bool                   ends;
  const mgrid_comm_spec *spec;  /* the creation that MPI is in; NULL: none */
  double                 since; /* when it began */
  const mpi_backend     *m;
} watchdog;

/* One line to stderr, in one write: the log of the host is not for other threads. */
static void say_stuck(const watchdog *w) {
  const mgrid_comm_spec *s = w->spec;
  char                   line[640];
  size_t                 len = (size_t)snprintf(line, sizeof line,
                                                "moongrid: [rank %" PRId64 "/%" PRId64
                                                "] after %g seconds MPI_Comm_create_group has not made %s: one of its ranks "
                                                                "died or was stopped inside:",
                                                w->m->base.rank, w->m->base.world, w->m->seconds, s->name);
  for (int64_t i = 0; i < s->size && len < sizeof line - 40; i++)
    len += (size_t)snprintf(line + len, sizeof line - len, " %" PRId32, s->ranks[i]);
  len += (size_t)snprintf(line + len, sizeof line - len, "%s\n",
                          w->m->dies ? "; this process ends" : "; MPI gives no way back from there, it waits on");
  ssize_t written = write(STDERR_FILENO, line, len);
  (void)written;
}

static void *watch(void *ud) {
  watchdog *w = ud;
  bool      said = false;
  pthread_mutex_lock(&w->lock);
  while (!w->ends) {
    struct timespec t;
    double          wake = (w->spec ? w->since : mgrid_now()) + w->m->seconds;
    if (w->spec && !said && mgrid_now() >= wake) {
      say_stuck(w);
      said = true;
      if (w->m->dies) _exit(4);
    }
    if (wake < mgrid_now() + 0.01) wake = mgrid_now() + w->m->seconds;
    t.tv_sec = (time_t)wake, t.tv_nsec = (long)((wake - (double)t.tv_sec) * 1e9);
    pthread_cond_timedwait(&w->woken, &w->lock, &t);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* Where no thread can be had, there is no watchdog. */
static void start_watch(watchdog *w, const mpi_backend *m) {
  pthread_condattr_t clock;
  memset(w, 0, sizeof *w);
  w->m = m;
  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&w->woken, &clock);
  pthread_condattr_destroy(&clock);
  w->there = pthread_create(&w->thread, NULL, watch, w) == 0;
}

static void enter(watchdog *w, const mgrid_comm_spec *spec) {
  pthread_mutex_lock(&w->lock);
  w->spec = spec, w->since = mgrid_now();
  pthread_mutex_unlock(&w->lock);
}

static void end_watch(watchdog *w) {
  pthread_mutex_lock(&w->lock);
  w->ends = true;
  pthread_cond_signal(&w->woken);
  pthread_mutex_unlock(&w->lock);
  if (w->there) pthread_join(w->thread, NULL);
  pthread_cond_destroy(&w->woken);
  pthread_mutex_destroy(&w->lock);
}

/* ------------------------------------------------------------- the members meet
** In a tree: each hears from its children that all below are there, tells its parent, and hears from it that all are:
** two messages for each member, where MPI's own creation takes six. A member without memory for the communicator says
** so there, and all of them leave it out. */

enum { CHILDREN = 16 };

typedef struct meeting {
  const mgrid_comm_spec *spec;
  mpi_roll               roll;
  double                 until;
  uint64_t               number, in; /* of the communicator; ~ of that: a member below, or any, has no memory */
  mpi_request            request;
  int64_t                who; /* that gave up */
} meeting;

static mgrid_outcome has_come(void *ud) { /* mgrid_look */
  meeting      *t = ud;
  mgrid_outcome through = mgrid_mpi_through(&t->request);
  if (through != MGRID_NOT_YET) return through;
  double before = t->roll.look;
  mgrid_roll_look(&t->roll);
  if (t->roll.look != before && (t->who = mgrid_mpi_heard(&t->roll.m->base)) >= 0) return MGRID_GAVE_UP;
  return MGRID_NOT_YET;
}

static mgrid_outcome hear_member(meeting *t, int64_t position, int tag, bool *lacks, mgrid_error *err) {
  const mgrid_comm_spec *spec = t->spec;
  mpi_backend           *m = t->roll.m;
  int                    from = spec->ranks[position];
  t->request.rc = MPI_Irecv(&t->in, sizeof t->in, MPI_BYTE, from, tag, m->comm, &t->request.request);
  mgrid_outcome o = mgrid_wait(has_come, t, t->until, NULL, NULL);
  if (o == MGRID_OK && t->in != t->number && t->in != ~t->number)
    return mgrid_fail(err, MGRID_DISAGREE,
                      "mpi: rank %d makes another communicator where rank %" PRId64
                      " makes %s; all ranks make theirs in one order",
                      from, m->base.rank, spec->name);
  *lacks |= o == MGRID_OK && t->in != t->number;
  if (o == MGRID_OK) return o;
  if (t->request.rc) return mgrid_mpi_failed(err, t->request.rc, "MPI_Irecv", spec->name);
  MPI_Cancel(&t->request.request);
  MPI_Wait(&t->request.request, MPI_STATUS_IGNORE);
  if (o == MGRID_GAVE_UP) return mgrid_fail(err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", t->who), o;
  mgrid_missing missing = mgrid_roll_end(&t->roll);
  mgrid_error   why = MGRID_ERROR_INIT;
  mgrid_missing_fail(&missing, t->roll.seconds, &why);
  return mgrid_fail(err, MGRID_TIMED_OUT, "mpi: %.700s, to create %s", why.message, spec->name);
}

static mgrid_outcome tell_member(const meeting *t, int64_t position, int tag, bool lacks, mgrid_error *err) {
  uint64_t out = lacks ? ~t->number : t->number;
  int      rc = mgrid_mpi_post(t->roll.m, t->spec->ranks[position], tag, &out, sizeof out);
  return rc ? mgrid_mpi_failed(err, rc, "MPI_Isend", t->spec->name) : MGRID_OK;
}

static mgrid_outcome meet_members(mpi_backend *m, const mgrid_comm_spec *spec, bool *lacks, mgrid_error *err) {
  const double  share = 0.75; /* of the deadline; the rest is for the verdict */
  uint64_t      number = mgrid_mpi_number(spec->name, m->creations);
  meeting       t = { .spec = spec, .roll = mgrid_roll_begin(m, spec->ranks, spec->size, number, share * m->seconds) };
  int64_t       me = spec->position, first = me * CHILDREN + 1, end = first + CHILDREN;
  mgrid_outcome o = MGRID_OK;
  t.number = number, t.until = t.roll.begun + t.roll.seconds;
  if (end > spec->size) end = spec->size;
  for (int64_t i = first; i < end && !o; i++) o = hear_member(&t, i, MGRID_TAG_COME, lacks, err);
  if (me > 0 && !o) o = tell_member(&t, (me - 1) / CHILDREN, MGRID_TAG_COME, *lacks, err);
  if (me > 0 && !o) o = hear_member(&t, (me - 1) / CHILDREN, MGRID_TAG_ALL_COME, lacks, err);
  for (int64_t i = first; i < end && !o; i++) o = tell_member(&t, i, MGRID_TAG_ALL_COME, *lacks, err);
  return o;
}

/* --------------------------------------------------------------------- creation */

/* Give the communicator the Cartesian topology of its family: MPI's dims go slowest first. The ranks stay, so the
** one without a topology has done its work. */
static int attach_shape(const mgrid_shape *shape, MPI_Comm *comm) {
  int      dims[MGRID_DIMS_MAX], periods[MGRID_DIMS_MAX];
  MPI_Comm plain = *comm;
  for (int i = 0; i < shape->n; i++) {
    const mgrid_side *side = &shape->side[shape->n - 1 - i];
    dims[i] = (int)side->size;
    periods[i] = side->periodic;
  }
  int rc = MPI_Cart_create(plain, shape->n, dims, periods, 0, comm);
  return rc ? rc : MPI_Comm_free(&plain);
}

static mgrid_status create_one(mpi_backend *m, const mgrid_comm_spec *spec, watchdog *w, mpi_comm *box,
                               mgrid_error *err) {
  MPI_Group   group;
  MPI_Comm    comm = MPI_COMM_NULL;
  const char *call = "MPI_Group_incl";
  int         rc = MPI_Group_incl(m->members, (int)spec->size, spec->ranks, &group);
  enter(w, spec);
  if (!rc) {
    call = "MPI_Comm_create_group";
    int tag = MGRID_TAGS + spec->tag % (32768 - MGRID_TAGS);
    rc = MPI_Comm_create_group(m->comm, group, tag, &comm);
    MPI_Group_free(&group);
  }
  if (!rc && comm != MPI_COMM_NULL && spec->options->shape) {
    call = "MPI_Cart_create";
    rc = attach_shape(spec->options->shape, &comm);
  }
  enter(w, NULL);
  if (rc) return mgrid_mpi_failed(err, rc, call, spec->name);
  if (comm == MPI_COMM_NULL)
    return mgrid_fail(err, MGRID_BACKEND, "mpi: %s gave rank %" PRId64 " no communicator", spec->name, m->base.rank);
  char name[MPI_MAX_OBJECT_NAME];
  snprintf(name, sizeof name, "%.*s", MPI_MAX_OBJECT_NAME - 1, spec->name);
  MPI_Comm_set_name(comm, name);
  MPI_Comm_set_errhandler(comm, m->handler);
  m->made++;
  box->comm = comm;
  return MGRID_OK;
}

/* Tell those that wait for this rank in the creations it will not come to. */
static void tell_members(mpi_backend *m, size_t n, const mgrid_comm_spec *spec) {
  char *told = calloc((size_t)m->base.world, 1); /* without memory some are told more than once */
  for (size_t i = 0; i < n; i++)
    for (int64_t k = 0; k < spec[i].size; k++) {
      if (!told || !told[spec[i].ranks[k]]) mgrid_mpi_tell(&m->base, spec[i].ranks[k]);
      if (told) told[spec[i].ranks[k]] = 1;
    }
  free(told);
}

/* One after the other: each is a round of messages among its members and three more in MPI. MPI_Comm_idup for equal
** members, threads, and another order were not faster: see scripts/README.md. After an error of MPI the others are made
** all the same, because their members wait in them; where ranks do not come, all give up. */
mgrid_outcome mgrid_mpi_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                               mgrid_error *err) {
  mpi_backend  *m = (mpi_backend *)b;
  mgrid_outcome s = MGRID_OK;
  watchdog      w;
  uint64_t      was = m->phase;
  m->phase = ++m->creations | UINT64_C(1) << 62; /* of notices: those of nccl have others */
  if (n > 0) start_watch(&w, m);
  for (size_t i = 0; i < n; i++) {
    mpi_comm     *box = calloc(1, sizeof *box);
    bool          lacks = !box;
    mgrid_outcome one = meet_members(m, &spec[i], &lacks, s ? NULL : err);
    if (one) {
      free(box);
      tell_members(m, n - i, spec + i);
      m->hurry = true;
      if (!s) s = one;
      break;
    }
    if (!lacks)
      one = create_one(m, &spec[i], &w, box, s ? NULL : err);
    else if (box)
      one = mgrid_fail(s ? NULL : err, MGRID_OTHER_RANK, "a rank of %s is out of memory", spec[i].name);
    else
      one = mgrid_oom(s ? NULL : err);
    if (one)
      free(box);
    else
      native[i] = box;
    if (!s) s = one;
  }
  if (n > 0) end_watch(&w);
  m->phase = was;
  return s;
}
