/* SPDX-License-Identifier: MIT
**
** open.c - opens and closes a backend, and opens a new one over the ranks that remain after a loss.
** host.c checks the host's communicator, which is then duplicated. A backend opens on all ranks or
** on none, so a rank that has failed still makes the same calls. After a call that failed, the
** backend is broken: only a recovery calls MPI again, and the memory stays, because MPI may write
** to it. After a loss the survivors interrupt the duplicate, agree, shrink it, and open a backend
** over the rest. Their agreements have a deadline; watchdog.c watches MPIX_Comm_shrink and
** MPI_Comm_split, which have none.
*/
#include "comm/mpi/mpi.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* The functions of ULFM; NULL where there are none (lost.c). */
#ifdef OPEN_MPI
extern int MPIX_Comm_revoke(MPI_Comm comm) __attribute__((weak));
extern int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *rest) __attribute__((weak));
extern int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request) __attribute__((weak));
static int (*const revoke_comm)(MPI_Comm) = MPIX_Comm_revoke;
static int (*const shrink_comm)(MPI_Comm, MPI_Comm *) = MPIX_Comm_shrink;
static int (*const begin_agree)(MPI_Comm, int *, MPI_Request *) = MPIX_Comm_iagree;
#else
static int (*const revoke_comm)(MPI_Comm) = NULL;
static int (*const shrink_comm)(MPI_Comm, MPI_Comm *) = NULL;
static int (*const begin_agree)(MPI_Comm, int *, MPI_Request *) = NULL;
#endif

static const mgrid_backend_ops mpi_ops;

/* ---------------------------------------------------- threads and sessions */

/* MPI's levels of threads, indexed by mgrid_threads. */
static const struct {
  int level;
  const char *name;
} levels[] = { { MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE" },
               { MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED" },
               { MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED" },
               { MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE" } };
enum { LEVELS = sizeof levels / sizeof levels[0] };

int mgrid_mpi_level(mgrid_threads wanted) {
  return (unsigned)wanted < LEVELS && wanted ? levels[wanted].level : MPI_THREAD_FUNNELED;
}

static mgrid_status open_check_options(const mgrid_mpi_options *o, bool sessions, int level,
                                       mgrid_error *err) {
  const char *is = "another level";
  for (size_t i = 0; i < LEVELS; i++)
    if (levels[i].level == level) is = levels[i].name;
  if ((unsigned)o->threads >= LEVELS)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "mpi: %d is none of the levels in mgrid_threads",
                      (int)o->threads);
  if ((unsigned)o->on_deadline > MGRID_DEADLINE_ABORT)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "mpi: %d is none of mgrid_on_deadline",
                      (int)o->on_deadline);
  if (mgrid_timeout_check(o->timeout, "mpi", err)) return MGRID_OUT_OF_RANGE;
  if (o->communicators < 0)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "mpi: communicators is %" PRId64 ", less than 0",
                      o->communicators);
  if (o->threads == MGRID_THREADS_ANY || level >= levels[o->threads].level) return MGRID_OK;
  return mgrid_fail(err, MGRID_UNSUPPORTED, "mpi: %s is wanted, and MPI %s %s",
                    levels[o->threads].name, sessions ? "gives a session" : "was initialized with",
                    is);
}

/* Open the backend's session at the requested level of threads, and find out its actual level. */
#ifdef MGRID_MPI_SESSIONS
static mgrid_status open_session(mpi_backend *m, const mgrid_mpi_options *o, int *level,
                                 mgrid_error *err) {
  static const char key[] = "thread_level";
  char value[64] = "";
  int found = 0;
  MPI_Info info = MPI_INFO_NULL;
  if ((unsigned)o->threads < LEVELS && o->threads && !MPI_Info_create(&info))
    MPI_Info_set(info, key, levels[o->threads].name);
  int rc = MPI_Session_init(info, MPI_ERRORS_RETURN, &m->session);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  if (rc) return mgrid_mpi_failed(err, rc, "MPI_Session_init", "");
  m->sessions = true;
  if (MPI_Session_get_info(m->session, &info)) return MGRID_OK;
  MPI_Info_get(info, key, (int)sizeof value - 1, value, &found);
  for (size_t i = 0; i < LEVELS && found; i++)
    if (strcmp(value, levels[i].name) == 0) *level = levels[i].level;
  MPI_Info_free(&info);
  return MGRID_OK;
}
static void close_session(mpi_backend *m) {
  if (m->sessions) MPI_Session_finalize(&m->session);
}
#else
static mgrid_status open_session(mpi_backend *m, const mgrid_mpi_options *o, int *level,
                                 mgrid_error *err) {
  (void)m, (void)o, (void)level;
  return mgrid_mpi_initialized(err);
}
static void close_session(mpi_backend *m) { (void)m; }
#endif

/* Check that MPI can be used, and find its level of threads. Without MPI_Init, or after
** MPI_Finalize, the host may use sessions, but not if it passes a predefined communicator. */
static mgrid_status begin_with(mpi_backend *m, MPI_Comm parent, const mgrid_mpi_options *o,
                               int *level, mgrid_error *err) {
  if (!mgrid_mpi_initialized(NULL)) {
    MPI_Query_thread(level);
    return *level < MPI_THREAD_SERIALIZED ? mgrid_mpi_in_main_thread(err) : MGRID_OK;
  }
  bool none = parent == MPI_COMM_NULL || parent == MPI_COMM_WORLD || parent == MPI_COMM_SELF;
  return none ? mgrid_mpi_initialized(err) : open_session(m, o, level, err);
}

/* ------------------------------------------------------------------- close */

static void open_end(mpi_backend *m) {
  if (m->channel) mgrid_channel_leave(m, true);
  if (m->members != MPI_GROUP_NULL) MPI_Group_free(&m->members);
  if (m->talk != MPI_COMM_NULL) MPI_Comm_free(&m->talk);
  if (m->given != MPI_COMM_NULL)
    MPI_Comm_set_errhandler(m->given, m->handler);
  else if (m->comm != MPI_COMM_NULL)
    MPI_Comm_free(&m->comm);
  MPI_Errhandler_free(&m->handler);
  if (m->guard != MPI_KEYVAL_INVALID) MPI_Comm_free_keyval(&m->guard);
}

/* Finalize MPI. MPI_Finalize waits for all ranks and has no deadline, so all ranks first meet in a
** call that has one. If a rank does not come and is not lost, MPI is not finalized. */
static void open_finalize(mpi_backend *m) {
  mgrid_error e = MGRID_ERROR_INIT;
  uint64_t here = 0;
  mgrid_status s = m->base.world > 1 ? mgrid_mpi_allreduce(&m->base, &here, 1, &e) : MGRID_OK;
  if (s && s != MGRID_LOST_RANK) {
    mgrid_log(&m->base.hooks, MGRID_LOG_WARN, "%s; MPI is not finalized", e.message);
    return;
  }
  if (m->base.world > 1) mgrid_watch_finalize(m);
  open_end(m), close_session(m);
  MPI_Finalize();
}

static void mpi_close(mgrid_backend *b) {
  mpi_backend *m = (mpi_backend *)b;
  bool usable = mgrid_mpi_there(m) && !m->broken && !m->pending && mgrid_mpi_posted(m, m->seconds);
  if (usable && m->finalize)
    open_finalize(m);
  else if (usable) /* if not, MPI may not be called, or these calls could wait forever */
    open_end(m), close_session(m);
  mgrid_watch_free(m);
  if (m->channel) mgrid_channel_leave(m, false);
  if (m->broken || m->pending) return; /* MPI may still write to this memory */
  free(m->request);
  free(m->here);
  free(m);
}

/* -------------------------------------------------------------------- open */

/* Return whether some ranks belong to another job (MPI_Comm_spawn, MPI_Comm_accept). The answer is
** the same on all ranks. */
static bool several_jobs(const mpi_backend *m) {
  MPI_Group world = MPI_GROUP_NULL, others = MPI_GROUP_NULL;
  int n = 0;
  if (m->sessions || MPI_Comm_group(MPI_COMM_WORLD, &world)) return false;
  if (!MPI_Group_difference(m->members, world, &others)) MPI_Group_size(others, &n);
  if (others != MPI_GROUP_NULL && others != MPI_GROUP_EMPTY) MPI_Group_free(&others);
  MPI_Group_free(&world);
  return n > 0;
}

/* Ranks of another job do not learn of a loss in this job, and may wait for ranks of this job that
** have left the call because of it. So if there are several jobs, end the waits on this
** communicator. Do not do so after a loss in another job: revoke would then wait forever for the
** address of a rank whose job has ended. */
static void tell_other_jobs(const mpi_backend *m, MPI_Comm comm) {
  uint8_t *lost = several_jobs(m) ? mgrid_mpi_all_lost(m) : NULL;
  MPI_Group world = MPI_GROUP_NULL;
  bool here = false;
  if (lost && !MPI_Comm_group(MPI_COMM_WORLD, &world))
    for (int r = 0, own; r < m->base.world && !here; r++)
      here = lost[r] && !MPI_Group_translate_ranks(m->members, 1, &r, world, &own)
             && own != MPI_UNDEFINED;
  if (world != MPI_GROUP_NULL) MPI_Group_free(&world);
  free(lost);
  if (here) mgrid_mpi_end_waits(comm);
}

/* Make the error of a failed call on the host's communicator. */
static mgrid_status fail_in_parent(mpi_backend *m, MPI_Comm parent, int rc, const char *call,
                                   mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  m->comm = parent; /* so that the error names the lost ranks of `parent` */
  mgrid_status s = mgrid_mpi_failed_in(m, &why, rc, call, "the channel of the library");
  if (s == MGRID_LOST_RANK) tell_other_jobs(m, parent);
  m->comm = MPI_COMM_NULL;
  return mgrid_error_pass(err, &why);
}

enum { VERDICT, JOB, SURVIVES, DUPLICATE, WORDS }; /* the words of the first rendezvous */
/* Values of DUPLICATE, of which the ranks take the minimum. OWN: make a duplicate for this backend
** alone. KEPT: make a duplicate and keep it. TAKEN: take the duplicate that is kept. */
enum { OWN, KEPT, TAKEN };

/* The error names no rank, because a roll call needs the duplicate for its messages. */
static mgrid_status not_opened(const mpi_backend *m, mgrid_error *err) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_fail(
      &e, MGRID_TIMED_OUT,
      "after %.3g seconds not all %" PRId64
      " ranks had come to open the backend (mgrid_mpi_backend, mgrid_mpi_open); before it is "
      "open the missing ones cannot be named",
      m->seconds, m->base.world);
  e.waited = m->seconds;
  return mgrid_error_pass(err, &e);
}

/* The first rendezvous, on the host's communicator, with a deadline. m->tree.words become their
** minimum over all ranks. */
static mgrid_status open_meet(mpi_backend *m, MPI_Comm parent, mgrid_error *err) {
  mpi_request call = { 0 };
  mgrid_flip(m->tree.words, WORDS);
  call.rc = MPI_Iallreduce(MPI_IN_PLACE, m->tree.words, WORDS, MPI_INT64_T, MPI_MIN, parent,
                           &call.request);
  mgrid_outcome came = mgrid_wait(mgrid_mpi_through, &call, mgrid_now() + m->seconds, NULL, NULL);
  m->broken |= came != MGRID_OK;
  if (came == MGRID_LATE) return not_opened(m, err);
  if (came) return fail_in_parent(m, parent, call.rc, "MPI_Iallreduce", err);
  mgrid_flip(m->tree.words, WORDS);
  m->job = m->tree.words[JOB];
  m->survives = m->tree.words[SURVIVES];
  return MGRID_OK;
}

/* Connect all pairs of ranks. Open MPI (5.0.11) connects two ranks when one first sends to the
** other. If this first message is the report of a loss, and the other rank was lost together with
** its job, Open MPI waits forever. */
static mgrid_status connect_all(mpi_backend *m, mgrid_error *err) {
  mpi_request call = { 0 };
  char *bytes = calloc((size_t)m->base.world, 2); /* not freed if the call does not end */
  if (!bytes) return mgrid_oom(err);
  call.rc =
      MPI_Ialltoall(bytes, 1, MPI_BYTE, bytes + m->base.world, 1, MPI_BYTE, m->comm, &call.request);
  mgrid_outcome came = mgrid_wait(mgrid_mpi_through, &call, mgrid_now() + m->seconds, NULL, NULL);
  m->broken |= came != MGRID_OK;
  if (came == MGRID_LATE) return not_opened(m, err);
  free(bytes);
  if (came == MGRID_OK) return MGRID_OK;
  mgrid_status s =
      mgrid_mpi_failed_in(m, err, call.rc, "MPI_Ialltoall", "the channel of the library");
  tell_other_jobs(m, m->comm);
  return s;
}

/* Make the library's duplicate. MPI_Comm_create copies no attributes, while MPI_Comm_dup would call
** the host's attribute functions. MPI_Comm_create has no deadline, so all ranks have met just
** before, and watchdog.c watches. */
static mgrid_status make_own(mpi_backend *m, MPI_Comm parent, mgrid_error *err) {
  const mgrid_comm_spec spec = { .name = "the channel of the library" };
  mgrid_watch_begin(m);
  mgrid_watch_enter(m, &spec, "MPI_Comm_create");
  int rc = MPI_Comm_create(parent, m->members, &m->comm);
  mgrid_watch_enter(m, NULL, NULL);
  mgrid_watch_end(m);
  m->broken |= rc != MPI_SUCCESS;
  if (rc) return fail_in_parent(m, parent, rc, "MPI_Comm_create", err);
  MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
  return m->survives && several_jobs(m) ? connect_all(m, err) : MGRID_OK;
}

/* Return this rank's word DUPLICATE. With ULFM a backend needs its own duplicate, because a backend
** that recovers interrupts all calls on its duplicate. */
static uint64_t open_choose(const mpi_channel *kept, bool duplicate, const mpi_backend *m) {
  if (!duplicate || m->sessions || m->survives) return OWN;
  return mgrid_channel_is_free(kept) ? TAKEN : KEPT;
}

/* Take the duplicate that is kept with the host's communicator, or make a new one. */
static mgrid_status take_or_make(mpi_backend *m, MPI_Comm parent, mpi_channel *kept,
                                 mgrid_error *err) {
  const uint64_t what = m->tree.words[DUPLICATE];
  if (what == TAKEN) {
    MPI_Group_free(&m->members);
    mgrid_channel_join(kept, m);
    return MGRID_OK;
  }
  int level = MPI_THREAD_SINGLE;
  mgrid_status s = make_own(m, parent, err);
  MPI_Query_thread(&level);
  int rc = s || what == OWN ? MPI_SUCCESS
                            : mgrid_channel_keep(m, parent, level == MPI_THREAD_MULTIPLE);
  m->broken |= rc != MPI_SUCCESS;
  return rc ? mgrid_mpi_failed(err, rc, "MPI_Comm_set_attr", "the channel of the library") : s;
}

/* Where MPI survives losses, a call may succeed on some ranks and fail on others. So agree, over
** the host's communicator, whether all have opened their backend. */
static mgrid_status all_opened(mpi_backend *m, MPI_Comm parent, mgrid_status mine,
                               mgrid_error *err) {
  int *flag = malloc(sizeof *flag); /* not freed if the call does not end */
  mpi_request call = { 0 };
  if (!flag)
    return mgrid_oom(err); /* at their deadline, the others find that this rank is missing */
  *flag = !mine;
  call.rc = begin_agree(parent, flag, &call.request);
  if (mgrid_wait(mgrid_mpi_through, &call, mgrid_now() + m->seconds, NULL, NULL) == MGRID_LATE)
    return not_opened(m, err);
  bool all = *flag && !call.rc;
  free(flag);
  if (all || mine) return mine;
  return call.rc ? mgrid_mpi_failed_in(m, err, call.rc, "MPIX_Comm_iagree",
                                       "the channel of the library")
                 : mgrid_fail(err, MGRID_LOST_RANK,
                              "a rank was lost before all had opened their backend");
}

/* Open the backend. s, failed: an earlier failure of this rank, which still makes the same
** calls. */
static mgrid_status open_begin(mpi_backend *m, MPI_Comm parent, bool duplicate, mgrid_status s,
                               const mgrid_error *failed, mgrid_error *err) {
  int rank, size;
  MPI_Errhandler was = mgrid_mpi_quiet(parent);
  mpi_channel *kept = m->sessions ? NULL : mgrid_channel_of(parent);

  m->handler = was;
  MPI_Comm_rank(parent, &rank);
  MPI_Comm_size(parent, &size);
  m->base = (mgrid_backend){ .layout = MGRID_LAYOUT,
                             .kind = mgrid_backend_named("mpi"),
                             .ops = &mpi_ops,
                             .rank = rank,
                             .world = size,
                             .users = 1,
                             .wants_single = mgrid_mpi_wants_single,
                             .single = mgrid_mpi_single };
  m->comm = m->talk = m->given = m->rest = MPI_COMM_NULL;
  m->members = MPI_GROUP_NULL;
  m->guard = MPI_KEYVAL_INVALID;
  mgrid_error why = MGRID_ERROR_INIT;
  const char *call = "MPI_Comm_group";
  int rc = MPI_Comm_group(parent, &m->members);
  if (!rc) {
    call = "MPI_Comm_create_keyval";
    rc = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mgrid_mpi_keeps, &m->guard, m);
  }
  if (s) mgrid_error_replace(&why, failed);
  if (rc && !s) s = mgrid_mpi_failed(&why, rc, call, "the parent");
  uint64_t *words = m->tree.words;
  words[VERDICT] = mgrid_verdict_of(&m->base, s);
  if (getrandom(&words[JOB], sizeof words[JOB], GRND_NONBLOCK) < 0) words[JOB] = (uint64_t)getpid();
  words[SURVIVES] = m->survives = mgrid_mpi_survives();
  words[DUPLICATE] = open_choose(kept, duplicate, m);
  mgrid_status made = open_meet(m, parent, err);
  if (!duplicate)
    m->comm = m->given = parent;
  else if (!made)
    made = take_or_make(m, parent, kept, err);

  /* not after a timeout: a rank that did not come would not agree either */
  if (duplicate && m->survives && made != MGRID_TIMED_OUT) {
    made = all_opened(m, parent, made, err);
    m->broken |= made != MGRID_OK;
  }
  if (duplicate) MPI_Comm_set_errhandler(parent, was);
  return made ? made : mgrid_verdict_tell(&m->base, words[VERDICT], s, &why, err);
}

mgrid_backend *mgrid_mpi_backend(MPI_Comm parent, const mgrid_mpi_options *options,
                                 mgrid_error *err) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mgrid_error mine = MGRID_ERROR_INIT, why = MGRID_ERROR_INIT;
  int level = MPI_THREAD_SINGLE;
  mpi_backend spare = { 0 };

  if (mgrid_mpi_one_library(err)) return NULL;
  mgrid_status s = mgrid_struct_read(&o, sizeof o, options, "mgrid_mpi_options", &mine);
  if (begin_with(&spare, parent, &o, &level, err)) return NULL;
  bool sessions = spare.sessions;
  if (mgrid_mpi_check_parent(parent, sessions, err)
      || (!sessions && mgrid_mpi_launched(parent, err))) {
    close_session(&spare);
    return NULL;
  }
  if (!s) s = open_check_options(&o, sessions, level, &mine);

  /* A rank without memory takes part with `spare` and without a deadline, because MPI writes to
  ** `spare` when others arrive. */
  mpi_backend *made = calloc(1, sizeof *made), *m = made ? made : &spare;
  if (!made && !s) s = mgrid_oom(&mine);
  *m = spare;
  m->usual = m->seconds = !made ? INFINITY : mgrid_timeout_of(o.timeout);
  m->main = !sessions && level < MPI_THREAD_SERIALIZED;
  m->dies = o.on_deadline == MGRID_DEADLINE_ABORT;
  m->most = o.communicators;
  m->pid = getpid();
  s = open_begin(m, parent, !o.borrow, s, &mine, &why);
  if (!s) return made ? &made->base : NULL;
  if (!m->broken)
    open_end(m), close_session(m), free(made);
  else if (m->channel)
    mgrid_channel_leave(m, false);
  mgrid_error_pass(err, &why);
  return NULL;
}

/* -------------------------------------- open again, without the lost ranks */

/* Open a backend over `rest`, and own that communicator. The backend gets the settings of `was`,
** its session, and its duty to finalize MPI. `was` keeps session and duty, too, in case this
** attempt fails; as it is interrupted, closing it ends neither the session nor MPI. */
static mgrid_backend *inherit(mpi_backend *was, MPI_Comm rest, mgrid_error *err) {
  mpi_backend *m = calloc(1, sizeof *m);
  mgrid_error mine = MGRID_ERROR_INIT;
  if (!m) return mgrid_null_oom(err); /* at their deadline, the others find this rank missing */
  m->usual = m->seconds = was->usual;
  m->main = was->main, m->dies = was->dies, m->most = was->most, m->sessions = was->sessions;
  m->pid = was->pid;
  mgrid_status s = open_begin(m, rest, false, MGRID_OK, &mine, err);
  m->given = MPI_COMM_NULL;
  MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
  if (s) return NULL; /* another rank was lost; m is not freed, because MPI may still write to it */
  m->base.hooks = was->base.hooks;
  m->session = was->session;
  m->finalize = was->finalize;
  return &m->base;
}

static mgrid_status mpi_revoke(mgrid_backend *b, size_t n, void **native, mgrid_error *err) {
  /* not mgrid_mpi_usable, because this is allowed also after a call that did not end */
  mgrid_status s = mgrid_mpi_callable((mpi_backend *)b, err);
  if (s) return s;
  if (!revoke_comm)
    return mgrid_fail(
        err, MGRID_UNSUPPORTED,
        "mpi: this MPI cannot revoke communicators; Open MPI can, since 5.0 (MPIX_Comm_revoke)");
  if (!((const mpi_backend *)b)->survives)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "mpi: this job cannot revoke communicators; it can if it is started by "
                      "mpirun --with-ft ulfm");
  for (size_t i = 0; i < n; i++) { /* after a failure, go on with the others */
    MPI_Comm comm = *(MPI_Comm *)native[i];
    MPI_Errhandler was = mgrid_mpi_quiet(comm);
    int rc = revoke_comm(comm);
    mgrid_mpi_restore(comm, was);
    if (rc && !s) s = mgrid_mpi_failed(err, rc, "MPIX_Comm_revoke", "");
  }
  return s;
}

static mgrid_status open_able(const mgrid_backend *b, mgrid_error *err) {
  mgrid_status s = mgrid_mpi_callable((const mpi_backend *)b, err);
  if (s) return s;
  if (!shrink_comm || !begin_agree)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "mpi: this MPI ends with its first lost rank; Open MPI goes on, since 5.0, "
                      "under mpirun --with-ft ulfm; else start the job again from its last "
                      "checkpoint");
  if (!((const mpi_backend *)b)->survives)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "mpi: this job ends with its first lost rank; it goes on if it is started by "
                      "mpirun --with-ft ulfm; else start it again from its last checkpoint");
  return MGRID_OK;
}

static void open_interrupt(mgrid_backend *b) {
  mpi_backend *m = (mpi_backend *)b;
  m->broken = true;
  mgrid_mpi_end_waits(m->comm);
  mgrid_mpi_end_waits(m->talk);
}

static bool open_hurt(mgrid_backend *b) {
  const mpi_backend *m = (mpi_backend *)b;
  return !mgrid_mpi_callable(m, NULL) && mgrid_mpi_is_hurt(m);
}

typedef struct agreement {
  mpi_request call;
  mpi_backend *m;
  double leave; /* when to stop waiting, if a rank is lost */
} agreement;

static mgrid_outcome have_agreed(void *ud) {
  agreement *a = ud;
  mgrid_missing lost;
  mgrid_outcome through = mgrid_mpi_through(&a->call);
  if (through != MGRID_NOT_YET || mgrid_now() < a->leave || !mgrid_mpi_lost(a->m, NULL, 0, &lost))
    return through;
  return MGRID_GAVE_UP;
}

/* `flag` is not freed if the call does not end. After a timeout the watchdog goes on to show that
** this rank has come, because others may look later. If a rank dies in the call, Open MPI (5.0)
** gives the result to some ranks, and others wait forever. A rank that asked whether all are alive
** (MGRID_ALL_LIVE) then knows that they are not, and stops waiting. All meet again in the
** recovery. */
static mgrid_status open_agree_and(mgrid_backend *b, uint64_t *mine, double seconds,
                                   mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  int *flag = malloc(sizeof *flag);
  if (!flag) return mgrid_oom(err);
  if (!(seconds > 0)) seconds = m->usual;
  const double now = mgrid_now();
  agreement a = { .m = m, .leave = *mine & MGRID_ALL_LIVE ? now + seconds / 8 : INFINITY };
  *flag = (int)*mine;
  mgrid_watch_recovery(m, seconds);
  a.call.rc = begin_agree(m->comm, flag, &a.call.request);
  mgrid_outcome came = mgrid_wait(have_agreed, &a, now + seconds, NULL, NULL);
  if (came == MGRID_LATE) return mgrid_watch_survivors(m, err);
  mgrid_watch_end(m);
  if (came == MGRID_GAVE_UP) return *mine = 0, MGRID_OK;
  /* After a loss this call returns an error, the same on all ranks, until the loss is acknowledged
  ** to MPI. *flag is valid even so. */
  *mine = (uint64_t)(unsigned)*flag & (a.call.rc ? ~(uint64_t)MGRID_ALL_LIVE : UINT64_MAX);
  free(flag);
  return MGRID_OK;
}

static const mgrid_comm_spec survivors = { .name = "a communicator of the survivors" };

/* List the ranks of m that are not in `rest`. */
static mgrid_status list_lost(const mpi_backend *m, MPI_Comm rest, bool *lost, mgrid_error *err) {
  const int n = (int)m->base.world;
  MPI_Group left = MPI_GROUP_NULL;
  int *all = malloc(2 * (size_t)n * sizeof *all), *theirs = all ? all + n : NULL;
  if (!all) return mgrid_oom(err);
  for (int i = 0; i < n; i++) all[i] = i;
  int rc = MPI_Comm_group(rest, &left);
  if (!rc) rc = MPI_Group_translate_ranks(m->members, n, all, left, theirs);
  for (int i = 0; i < n && !rc; i++) lost[i] = theirs[i] == MPI_UNDEFINED;
  if (left != MPI_GROUP_NULL) MPI_Group_free(&left);
  free(all);
  return rc ? mgrid_mpi_failed(err, rc, "MPI_Group_translate_ranks", "the survivors") : MGRID_OK;
}

static mgrid_status open_find_lost(mgrid_backend *b, bool *lost, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  /* free the communicator of an earlier attempt, in which another rank was lost */
  if (m->rest != MPI_COMM_NULL) MPI_Comm_free(&m->rest);
  m->rest = MPI_COMM_NULL;
  mgrid_watch_recovery(m, m->usual);
  mgrid_watch_enter(m, &survivors, "MPIX_Comm_shrink");
  int rc = shrink_comm(m->comm, &m->rest);
  mgrid_watch_end(m);
  if (rc) return mgrid_mpi_failed(err, rc, "MPIX_Comm_shrink", "the channel of the library");
  MPI_Comm_set_errhandler(m->rest, MPI_ERRORS_RETURN);
  return list_lost(m, m->rest, lost, err);
}

static mgrid_backend *open_rest_of(mgrid_backend *b, int64_t rank, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  MPI_Comm mine = MPI_COMM_NULL;
  mgrid_watch_recovery(m, m->usual);
  mgrid_watch_enter(m, &survivors, "MPI_Comm_split");
  int rc = MPI_Comm_split(m->rest, 0, (int)rank, &mine);
  mgrid_watch_end(m);
  if (rc) mgrid_mpi_failed_in(m, err, rc, "MPI_Comm_split", "the survivors");
  if (!rc) MPI_Comm_set_errhandler(mine, m->handler);
  mgrid_backend *left = rc ? NULL : inherit(m, mine, err);
  if (!left) revoke_comm(m->rest); /* other ranks may wait on it */
  if (!left && !rc) revoke_comm(mine);
  return left;
}

static const mgrid_survival_ops survival = { .able = open_able,
                                             .interrupt = open_interrupt,
                                             .hurt = open_hurt,
                                             .agree_and = open_agree_and,
                                             .find_lost = open_find_lost,
                                             .rest = open_rest_of };

/* --------------------------------------------------------------- the table */

static void *buffer_new(mgrid_backend *b, const mgrid_descriptor *kind, size_t bytes,
                        mgrid_error *err) {
  void *buffer = calloc(bytes ? bytes : 1, 1);
  (void)b, (void)kind;
  return buffer ? buffer : mgrid_null_oom(err);
}

static void buffer_free(mgrid_backend *b, const mgrid_descriptor *kind, void *buffer) {
  (void)kind;
  if (!((mpi_backend *)b)->pending) free(buffer); /* otherwise MPI may still write to it */
}

static mgrid_status copy(mgrid_backend *b, const mgrid_descriptor *kind, void *to, const void *from,
                         size_t bytes, bool to_buffer, mgrid_error *err) {
  (void)b, (void)kind, (void)to_buffer, (void)err;
  memcpy(to, from, bytes);
  return MGRID_OK;
}

static const mgrid_backend_ops mpi_ops = {
  .allreduce_min = mgrid_mpi_allreduce,
  .allgather = mgrid_mpi_allgather,
  .bcast = mgrid_mpi_bcast,
  .check = mgrid_mpi_check,
  .create = mgrid_mpi_create,
  .destroy = mgrid_mpi_destroy,
  .revoke = mpi_revoke,
  .prove = mgrid_mpi_prove,
  .close = mpi_close,
  .buffer_new = buffer_new,
  .buffer_free = buffer_free,
  .copy = copy,
  .collective = mgrid_mpi_collective,
  .together = mgrid_mpi_together,
  .carrier = &mgrid_mpi_carrier,
  .transport = &mgrid_mpi_transport,
  .survival = &survival,
};

/* ------------------------------------------- a communicator for the host */

mgrid_status mgrid_mpi_world(mgrid_backend *b, MPI_Comm *comm, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;

  if (comm) *comm = MPI_COMM_NULL;
  if (!b || !comm)
    return mgrid_fail(err, MGRID_USAGE, "no %s was given",
                      b ? "place for the communicator" : "backend");
  while (b->carrier) b = b->carrier;
  if (mgrid_layout_check(b->layout, "the backend's library", err))
    return err ? err->status : MGRID_MISSING;
  if (b->ops != &mpi_ops)
    return mgrid_fail(err, MGRID_USAGE, "the %s backend has no communicator of MPI of all ranks",
                      b->kind->name);
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  /* the creation has no deadline, so first wait for all ranks in a call that has a deadline */
  uint64_t here = 0;
  const mgrid_comm_spec spec = { .name = "a communicator of the host" };
  if (!s) s = mgrid_mpi_allreduce(b, &here, 1, err);
  if (s) return s;
  mgrid_watch_begin(m);
  mgrid_watch_enter(m, &spec, "MPI_Comm_create");
  int rc = MPI_Comm_create(m->comm, m->members, comm);
  mgrid_watch_through(m);
  if (rc) mgrid_mpi_failed_in(m, &mine, rc, "MPI_Comm_create", spec.name);
  s = mgrid_verdict(b, mine.status, &mine, err);
  if (s && !rc) MPI_Comm_free(comm);
  if (s) *comm = MPI_COMM_NULL;
  if (!s) MPI_Comm_set_errhandler(*comm, m->handler);
  return s;
}
