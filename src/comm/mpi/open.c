/* SPDX-License-Identifier: MIT
**
** open.c - open and close a backend of MPI. The host's communicator is checked first, because MPI ends the process when it
** gets an invalid one. Then it is duplicated, and the library calls MPI only on the duplicate.
*/
#include "comm/mpi/mpi.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ------------------------------------------------------------------- MPI's state */

mgrid_status mgrid_mpi_initialized(mgrid_error *err) {
  int ready = 0, gone = 0;
  MPI_Initialized(&ready);
  MPI_Finalized(&gone);
  if (ready && !gone) return MGRID_OK;
  return mgrid_fail(err, MGRID_USAGE, "mpi: %s", gone ? "MPI is finalized already" : "MPI is not initialized yet");
}

/* With sessions, the backend's own session keeps MPI alive. */
static mgrid_status there(const mpi_backend *m, mgrid_error *err) {
  if (m->pid != getpid())
    return mgrid_fail(err, MGRID_USAGE, "mpi: this process was forked from the one that opened the backend");
  return m->sessions ? MGRID_OK : mgrid_mpi_initialized(err);
}
bool mgrid_mpi_there(const mpi_backend *m) { return !there(m, NULL); }

static mgrid_status in_main_thread(mgrid_error *err) {
  int main = 0;
  MPI_Is_thread_main(&main);
  if (main) return MGRID_OK;
  return mgrid_fail(
      err, MGRID_USAGE,
      "mpi: only the thread that initialized MPI may call it; other threads may if it is initialized with "
      "MPI_THREAD_SERIALIZED, or several at once with MPI_THREAD_MULTIPLE");
}

mgrid_status mgrid_mpi_callable(const mpi_backend *m, mgrid_error *err) {
  mgrid_status s = there(m, err);
  return !s && m->main ? in_main_thread(err) : s;
}

mgrid_status mgrid_mpi_usable(const mpi_backend *m, mgrid_error *err) {
  mgrid_missing lost;
  mgrid_status  s = mgrid_mpi_callable(m, err);
  if (s || !(m->channel ? mgrid_channel_is_broken(m->channel) : m->broken)) return s;
  if (mgrid_mpi_lost(m, NULL, 0, &lost)) return mgrid_missing_fail(&lost, 0, err);
  return mgrid_fail(err, MGRID_TIMED_OUT, "mpi: an earlier call over all ranks did not end; the job cannot go on");
}

/* By mgrid_threads. */
static const struct {
  int         level;
  const char *name;
} levels[] = { { MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE" },
               { MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED" },
               { MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED" },
               { MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE" } };
enum { LEVELS = sizeof levels / sizeof levels[0] };

static mgrid_status check_options(const mgrid_mpi_options *o, bool sessions, int level, mgrid_error *err) {
  const char *is = "another level";
  for (size_t i = 0; i < LEVELS; i++)
    if (levels[i].level == level) is = levels[i].name;
  if ((unsigned)o->threads >= LEVELS)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "mpi: %d is none of the levels in mgrid_threads", (int)o->threads);
  if ((unsigned)o->on_deadline > MGRID_DEADLINE_ABORT)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "mpi: %d is none of mgrid_on_deadline", (int)o->on_deadline);
  if (mgrid_timeout_check(o->timeout, "mpi", err)) return MGRID_OUT_OF_RANGE;
  if (o->communicators < 0)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "mpi: communicators is %" PRId64 ", less than 0", o->communicators);
  if (o->threads == MGRID_THREADS_ANY || level >= levels[o->threads].level) return MGRID_OK;
  return mgrid_fail(err, MGRID_UNSUPPORTED, "mpi: %s is wanted, and MPI %s %s", levels[o->threads].name,
                    sessions ? "gives a session" : "was initialized with", is);
}

/* Open the backend's session at the requested thread level, and find the level that it got. */
#ifdef MGRID_MPI_SESSIONS
static mgrid_status open_session(mpi_backend *m, const mgrid_mpi_options *o, int *level, mgrid_error *err) {
  static const char key[] = "thread_level";
  char              value[64] = "";
  int               found = 0;
  MPI_Info          info = MPI_INFO_NULL;
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
static mgrid_status open_session(mpi_backend *m, const mgrid_mpi_options *o, int *level, mgrid_error *err) {
  (void)m, (void)o, (void)level;
  return mgrid_mpi_initialized(err);
}
static void close_session(mpi_backend *m) { (void)m; }
#endif

/* Without MPI_Init, or after MPI_Finalize, the host may use sessions, unless it hands over a predefined communicator. */
static mgrid_status begin_with(mpi_backend *m, MPI_Comm parent, const mgrid_mpi_options *o, int *level,
                               mgrid_error *err) {
  if (!mgrid_mpi_initialized(NULL)) {
    MPI_Query_thread(level);
    return *level < MPI_THREAD_SERIALIZED ? in_main_thread(err) : MGRID_OK;
  }
  bool none = parent == MPI_COMM_NULL || parent == MPI_COMM_WORLD || parent == MPI_COMM_SELF;
  return none ? mgrid_mpi_initialized(err) : open_session(m, o, level, err);
}

/* Return whether the host's communicator is one. Open MPI reads memory of a communicator that was freed; but its table of
** Fortran handles holds only valid ones, so look there, and no error can follow. MPICH reports an invalid handle to the error
** handlers of MPI_COMM_WORLD and, since MPI 4.0, MPI_COMM_SELF; with sessions alone there are none. */
static bool is_comm(MPI_Comm parent, bool sessions, int *inter) {
#ifdef OPEN_MPI
  (void)sessions;
  return MPI_Comm_f2c(MPI_Comm_c2f(parent)) == parent && !MPI_Comm_test_inter(parent, inter);
#else
  MPI_Errhandler world = MPI_ERRHANDLER_NULL, self = MPI_ERRHANDLER_NULL;
  if (!sessions) world = mgrid_mpi_quiet(MPI_COMM_WORLD), self = mgrid_mpi_quiet(MPI_COMM_SELF);
  int rc = MPI_Comm_test_inter(parent, inter);
  if (!sessions) mgrid_mpi_restore(MPI_COMM_SELF, self), mgrid_mpi_restore(MPI_COMM_WORLD, world);
  return !rc;
#endif
}

static mgrid_status check_parent(MPI_Comm parent, bool sessions, mgrid_error *err) {
  int inter = 0;
  if (parent == MPI_COMM_NULL) return mgrid_fail(err, MGRID_USAGE, "mpi: the parent is MPI_COMM_NULL");
  if (!is_comm(parent, sessions, &inter))
    return mgrid_fail(err, MGRID_USAGE, "mpi: the parent is no communicator, or one that was freed");
  if (!inter) return MGRID_OK;
  return mgrid_fail(err, MGRID_USAGE, "mpi: the parent is an intercommunicator; MPI_Intercomm_merge makes one for all");
}

/* ---------------------------------------------------------------------- the end */

static void end(mpi_backend *m) {
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

/* MPI_Finalize waits for all ranks and has no deadline. So all ranks meet first, and the clock is watched meanwhile. If a rank
** does not come, MPI is left as it is. */
static void finalize(mpi_backend *m) {
  mgrid_error  e = MGRID_ERROR_INIT;
  uint64_t     here = 0;
  mgrid_status s = m->base.world > 1 ? mgrid_mpi_allreduce(&m->base, &here, 1, &e) : MGRID_OK;
  if (s && s != MGRID_LOST_RANK) {
    mgrid_log(&m->base.hooks, MGRID_LOG_WARN, "%s; MPI is not finalized", e.message);
    return;
  }
  if (m->base.world > 1) mgrid_watch_finalize(m);
  end(m), close_session(m);
  MPI_Finalize();
}

void mgrid_mpi_close(mgrid_backend *b) {
  mpi_backend *m = (mpi_backend *)b;
  bool         usable = mgrid_mpi_there(m) && !m->broken && !m->pending && mgrid_mpi_posted(m, m->seconds);
  if (usable && m->finalize)
    finalize(m);
  else if (usable)
    end(m), close_session(m); /* after a call that did not end, each of these may wait for ever */
  mgrid_watch_free(m);
  if (m->channel) mgrid_channel_leave(m, false);
  if (m->broken || m->pending) return; /* MPI may still write to the memory */
  free(m->request);
  free(m->here);
  free(m);
}

/* -------------------------------------------------------------------- the begin */

/* Return whether some ranks belong to another job (MPI_Comm_spawn, MPI_Comm_accept). Equal on all. */
static bool several_jobs(const mpi_backend *m) {
  MPI_Group world = MPI_GROUP_NULL, others = MPI_GROUP_NULL;
  int       n = 0;
  if (m->sessions || MPI_Comm_group(MPI_COMM_WORLD, &world)) return false;
  if (!MPI_Group_difference(m->members, world, &others)) MPI_Group_size(others, &n);
  if (others != MPI_GROUP_NULL && others != MPI_GROUP_EMPTY) MPI_Group_free(&others);
  MPI_Group_free(&world);
  return n > 0;
}

/* Ranks of another job do not hear of a loss in this one while they wait for ranks that have heard of it and left. So if there
** are several jobs, end their wait on this communicator. Not after a loss in another job: the revoke would then wait for ever for
** the address of a rank whose job has ended. */
static void tell_other_jobs(const mpi_backend *m, MPI_Comm comm) {
  uint8_t  *lost = several_jobs(m) ? mgrid_mpi_all_lost(m) : NULL;
  MPI_Group world = MPI_GROUP_NULL;
  bool      here = false;
  if (lost && !MPI_Comm_group(MPI_COMM_WORLD, &world))
    for (int r = 0, own; r < m->base.world && !here; r++)
      here = lost[r] && !MPI_Group_translate_ranks(m->members, 1, &r, world, &own) && own != MPI_UNDEFINED;
  if (world != MPI_GROUP_NULL) MPI_Group_free(&world);
  free(lost);
  if (here) mgrid_mpi_end_waits(comm);
}

/* A call on the host's communicator has failed. */
static mgrid_status fail_in_parent(mpi_backend *m, MPI_Comm parent, int rc, const char *call, mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  m->comm = parent; /* one of its ranks may be lost */
  mgrid_status s = mgrid_mpi_failed_in(m, &why, rc, call, "the channel of the library");
  if (s == MGRID_LOST_RANK) tell_other_jobs(m, parent);
  m->comm = MPI_COMM_NULL;
  return mgrid_error_pass(err, &why);
}

enum { VERDICT, JOB, SURVIVES, DUPLICATE, WORDS }; /* of the first rendezvous */
/* DUPLICATE: the rank needs its own one; may keep it; can take the one that is kept. */
enum { OWN, KEPT, TAKEN };

/* The first rendezvous, on the host's communicator, with a deadline: the minimum of the first words in m->tree.words. */
static mgrid_status meet(mpi_backend *m, MPI_Comm parent, mgrid_error *err) {
  const mgrid_missing unknown = { 0 };
  mpi_request         call = { 0 };
  mgrid_mpi_turn(m->tree.words, WORDS);
  call.rc = MPI_Iallreduce(MPI_IN_PLACE, m->tree.words, WORDS, MPI_INT64_T, MPI_MIN, parent, &call.request);
  mgrid_outcome came = mgrid_wait(mgrid_mpi_through, &call, mgrid_now() + m->seconds, NULL, NULL);
  m->broken |= came != MGRID_OK;
  if (came == MGRID_LATE) return mgrid_missing_fail(&unknown, m->seconds, err);
  if (came) return fail_in_parent(m, parent, call.rc, "MPI_Iallreduce", err);
  mgrid_mpi_turn(m->tree.words, WORDS);
  m->job = m->tree.words[JOB];
  m->survives = m->tree.words[SURVIVES];
  return MGRID_OK;
}

/* Connect all pairs of ranks. Open MPI (5.0.11) connects two ranks when one first sends to the other, also when it reports a
** loss, and then waits for ever if the other rank was lost with its job. */
static mgrid_status connect_all(mpi_backend *m, mgrid_error *err) {
  const mgrid_missing unknown = { 0 };
  mpi_request         call = { 0 };
  char               *bytes = calloc((size_t)m->base.world, 2); /* leaked if the call does not end */
  if (!bytes) return mgrid_oom(err);
  call.rc = MPI_Ialltoall(bytes, 1, MPI_BYTE, bytes + m->base.world, 1, MPI_BYTE, m->comm, &call.request);
  mgrid_outcome came = mgrid_wait(mgrid_mpi_through, &call, mgrid_now() + m->seconds, NULL, NULL);
  m->broken |= came != MGRID_OK;
  if (came == MGRID_LATE) return mgrid_missing_fail(&unknown, m->seconds, err);
  free(bytes);
  if (came == MGRID_OK) return MGRID_OK;
  mgrid_status s = mgrid_mpi_failed_in(m, err, call.rc, "MPI_Ialltoall", "the channel of the library");
  tell_other_jobs(m, m->comm);
  return s;
}

/* Make the library's communicator with the host's ranks. MPI_Comm_create copies no attributes, where MPI_Comm_dup would
** call the host's attribute functions. It has no deadline, so all ranks have met just before, and watch the clock. */
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

/* Which duplicate this rank could do with. With ULFM a backend that recovers interrupts all that use its duplicate. */
static uint64_t choose(const mpi_channel *kept, bool duplicate, const mpi_backend *m) {
  if (!duplicate || m->sessions || m->survives) return OWN;
  return mgrid_channel_is_free(kept) ? TAKEN : KEPT;
}

/* Take the duplicate that is kept with the host's communicator, or make one. */
static mgrid_status take_or_make(mpi_backend *m, MPI_Comm parent, mpi_channel *kept, mgrid_error *err) {
  const uint64_t what = m->tree.words[DUPLICATE];
  if (what == TAKEN) {
    MPI_Group_free(&m->members);
    mgrid_channel_join(kept, m);
    return MGRID_OK;
  }
  int          level = MPI_THREAD_SINGLE;
  mgrid_status s = make_own(m, parent, err);
  MPI_Query_thread(&level);
  int rc = s || what == OWN ? MPI_SUCCESS : mgrid_channel_keep(m, parent, level == MPI_THREAD_MULTIPLE);
  m->broken |= rc != MPI_SUCCESS;
  return rc ? mgrid_mpi_failed(err, rc, "MPI_Comm_set_attr", "the channel of the library") : s;
}

/* Every rank makes the same calls, also if it has failed before (s). */
static mgrid_status begin(mpi_backend *m, MPI_Comm parent, bool duplicate, mgrid_status s, const mgrid_error *failed,
                          mgrid_error *err) {
  int            rank, size;
  MPI_Errhandler was = mgrid_mpi_quiet(parent);
  mpi_channel   *kept = m->sessions ? NULL : mgrid_channel_of(parent);
  m->handler = was;
  MPI_Comm_rank(parent, &rank);
  MPI_Comm_size(parent, &size);
  m->base = (mgrid_backend){ .layout = MGRID_LAYOUT,
                             .kind = mgrid_backend_named("mpi"),
                             .ops = &mgrid_mpi_ops,
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
  int         rc = MPI_Comm_group(parent, &m->members);
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
  words[DUPLICATE] = choose(kept, duplicate, m);
  mgrid_status made = meet(m, parent, err);
  if (!duplicate)
    m->comm = m->given = parent;
  else if (!made)
    made = take_or_make(m, parent, kept, err);
  if (duplicate && m->survives && made != MGRID_TIMED_OUT) { /* who did not come will not agree either */
    made = mgrid_mpi_all_opened(m, parent, made, err);
    m->broken |= made != MGRID_OK;
  }
  if (duplicate) MPI_Comm_set_errhandler(parent, was);
  return made ? made : mgrid_verdict_tell(&m->base, words[VERDICT], s, &why, err);
}

mgrid_backend *mgrid_mpi_backend(MPI_Comm parent, const mgrid_mpi_options *options, mgrid_error *err) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mgrid_error       mine = MGRID_ERROR_INIT, why = MGRID_ERROR_INIT;
  int               level = MPI_THREAD_SINGLE;
  mpi_backend       spare = { 0 };
  if (mgrid_mpi_one_library(err)) return NULL;
  mgrid_status s = mgrid_struct_read(&o, sizeof o, options, "mgrid_mpi_options", &mine);
  if (begin_with(&spare, parent, &o, &level, err)) return NULL;
  bool sessions = spare.sessions;
  if (check_parent(parent, sessions, err) || (!sessions && mgrid_mpi_launched(parent, err))) {
    close_session(&spare);
    return NULL;
  }
  if (!s) s = check_options(&o, sessions, level, &mine);
  /* A rank without memory takes part with `spare`, and without a deadline, because MPI writes there when others arrive. */
  mpi_backend *made = calloc(1, sizeof *made), *m = made ? made : &spare;
  if (!made && !s) s = mgrid_oom(&mine);
  *m = spare;
  m->usual = m->seconds = !made ? INFINITY : mgrid_timeout_of(o.timeout);
  m->main = !sessions && level < MPI_THREAD_SERIALIZED;
  m->dies = o.on_deadline == MGRID_DEADLINE_ABORT;
  m->most = o.communicators;
  m->pid = getpid();
  s = begin(m, parent, !o.borrow, s, &mine, &why);
  if (!s) return made ? &made->base : NULL;
  if (!m->broken)
    end(m), close_session(m), free(made);
  else if (m->channel)
    mgrid_channel_leave(m, false);
  mgrid_error_pass(err, &why);
  return NULL;
}

/* Open a backend over `rest`, which it takes over, with the settings of `was`, its session and its duty to finalize MPI. `was`
** is interrupted, so closing it ends neither; it keeps both for one more attempt, should this one fail. */
mgrid_backend *mgrid_mpi_inherit(mpi_backend *was, MPI_Comm rest, mgrid_error *err) {
  mpi_backend *m = calloc(1, sizeof *m);
  mgrid_error  mine = MGRID_ERROR_INIT;
  if (!m) return mgrid_null_oom(err); /* the others find it missing at their deadline */
  m->usual = m->seconds = was->usual;
  m->main = was->main, m->dies = was->dies, m->most = was->most, m->sessions = was->sessions;
  m->pid = was->pid;
  mgrid_status s = begin(m, rest, false, MGRID_OK, &mine, err);
  m->given = MPI_COMM_NULL;
  MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
  if (s) return NULL; /* a rank was lost meanwhile; MPI may still write to m */
  m->base.hooks = was->base.hooks;
  m->session = was->session;
  m->finalize = was->finalize;
  return &m->base;
}

mgrid_status mgrid_mpi_world(mgrid_backend *b, MPI_Comm *comm, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  if (comm) *comm = MPI_COMM_NULL;
  if (!b || !comm) return mgrid_fail(err, MGRID_USAGE, "no %s was given", b ? "place for the communicator" : "backend");
  while (b->carrier) b = b->carrier;
  if (mgrid_layout_check(b->layout, "the backend's library", err)) return err ? err->status : MGRID_MISSING;
  if (b->ops != &mgrid_mpi_ops)
    return mgrid_fail(err, MGRID_USAGE, "the %s backend has no communicator of MPI of all ranks", b->kind->name);
  mpi_backend          *m = (mpi_backend *)b;
  mgrid_status          s = mgrid_mpi_usable(m, err);
  uint64_t              here = 0; /* the creation has no deadline, so first wait for all with one */
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

/* For mgrid_backend_open: initialize MPI if necessary, and then finalize it in close. */
static mgrid_backend *mpi_open(const mgrid_backend_options *options, mgrid_error *err) {
  const mgrid_mpi_options *o = options->mpi;
  int                      ready = 0, gone = 0, level;
  mgrid_mpi_options        own = *o;
  own.borrow = false;
  if (own.timeout == 0) own.timeout = options->timeout;
  if (mgrid_mpi_one_library(err)) return NULL; /* first: a handle of another MPI ends the process */
  if (o->comm) return mgrid_mpi_backend_f(*o->comm, &own, err);
  MPI_Initialized(&ready);
  MPI_Finalized(&gone);
  if (!ready && !gone && mgrid_mpi_launched(MPI_COMM_NULL, err)) return NULL;
  int wanted = (unsigned)o->threads < LEVELS && o->threads ? levels[o->threads].level : MPI_THREAD_FUNNELED;
  if (!ready && !gone && MPI_Init_thread(NULL, NULL, wanted, &level) != MPI_SUCCESS)
    return mgrid_null(err, MGRID_BACKEND, "mpi: MPI_Init_thread failed");
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, &own, err);
  if (b)
    ((mpi_backend *)b)->finalize = !ready;
  else if (!ready && !gone)
    MPI_Finalize();
  return b;
}

static mgrid_status mpi_probe(char *buf, size_t len, mgrid_error *err) {
  char text[MGRID_MPI_VERSION];
  int  n = 0;
  (void)err;
  MPI_Get_library_version(text, &n);
  snprintf(buf, len, "%s", text);
  return MGRID_OK;
}

MGRID_ENTRY(mpi) = { MGRID_LAYOUT, .open = mpi_open, .probe = mpi_probe };
