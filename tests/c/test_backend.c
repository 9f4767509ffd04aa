/* SPDX-License-Identifier: MIT
**
** test_backend.c - a backend that is not in the library: its ranks are threads of this process, and
** a communicator is a list of ranks. It needs nothing but its descriptor and its table of
** operations. Then the table of the backends in the library, and the loop that waits.
*/
#include "random.h"

#include "comm/state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 6 };

/* ------------------------------------------------------------------- the backend */

/* shared by all ranks: at most one parcel in progress from each rank to each */
typedef struct place {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  void *parcel[RANKS][RANKS];
  int comms; /* alive in all ranks */
} place;

typedef struct loopback {
  mgrid_backend base;
  place *place;
  bool fails; /* creations of this rank fail */
} loopback;

typedef struct loop_comm { /* the handle */
  int64_t size;
  int32_t ranks[RANKS];
} loop_comm;

/* Wait until the slot is full or empty, then put `new` there; return the old content. */
static void *swap(place *p, int64_t from, int64_t to, bool full, void *new) {
  void **at = &p->parcel[from][to], *was;
  pthread_mutex_lock(&p->lock);
  while ((*at != NULL) != full) pthread_cond_wait(&p->changed, &p->lock);
  was = *at, *at = new;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
  return was;
}

/* Gather a block from each of n ranks, by position; ranks NULL: all. All other calls use this
** one. */
static void gather(loopback *l, int64_t n, const int32_t *ranks, const void *mine, char *all,
                   size_t bytes) {
  for (int64_t i = 0; i < n; i++)
    swap(l->place, l->base.rank, ranks ? ranks[i] : i, false, memcpy(malloc(bytes), mine, bytes));
  for (int64_t i = 0; i < n; i++) {
    void *parcel = swap(l->place, ranks ? ranks[i] : i, l->base.rank, true, NULL);
    memcpy(all + (size_t)i * bytes, parcel, bytes);
    free(parcel);
  }
}

static mgrid_status loop_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                                   mgrid_error *err) {
  (void)err;
  gather((loopback *)b, b->world, NULL, mine, all, bytes);
  return MGRID_OK;
}

static mgrid_status loop_min(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  uint64_t *all = malloc((size_t)b->world * n * sizeof *all);
  loop_allgather(b, words, all, n * sizeof *words, err);
  for (size_t i = 0; i < (size_t)b->world * n; i++)
    if (all[i] < words[i % n]) words[i % n] = all[i];
  free(all);
  return MGRID_OK;
}

static mgrid_status loop_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                               mgrid_error *err) {
  char *all = malloc((size_t)b->world * bytes);
  loop_allgather(b, data, all, bytes, err);
  memcpy(data, all + (size_t)root * bytes, bytes);
  free(all);
  return MGRID_OK;
}

static mgrid_status loop_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                               mgrid_error *err) {
  for (size_t i = 0; i < n; i++)
    if (spec[i].backend != b->kind)
      return mgrid_fail(err, MGRID_REFUSED, "%s wants %s", spec[i].name, spec[i].backend->name);
  return MGRID_OK;
}

static mgrid_outcome loop_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                 void **native, mgrid_error *err) {
  loopback *l = (loopback *)b;
  if (l->fails) return mgrid_fail(err, MGRID_BACKEND, "%s does not want to be", spec[0].name);
  for (size_t i = 0; i < n; i++) {
    loop_comm *c = native[i] = malloc(sizeof *c);
    c->size = spec[i].size;
    memcpy(c->ranks, spec[i].ranks, (size_t)c->size * sizeof *c->ranks);
    __atomic_add_fetch(&l->place->comms, 1, __ATOMIC_SEQ_CST);
  }
  return MGRID_OK;
}

static void loop_destroy(mgrid_backend *b, size_t n, void **native) {
  for (size_t i = 0; i < n; i++) {
    __atomic_sub_fetch(&((loopback *)b)->place->comms, 1, __ATOMIC_SEQ_CST);
    free(native[i]);
  }
}

static mgrid_outcome loop_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                                mgrid_error *err) {
  const loop_comm *c = native;
  int32_t mine = (int32_t)b->rank, all[RANKS];
  gather((loopback *)b, c->size, c->ranks, &mine, (char *)all, sizeof mine);
  if (c->size == spec->size && memcmp(all, spec->ranks, (size_t)c->size * sizeof mine) == 0)
    return MGRID_OK;
  return mgrid_fail(err, MGRID_BACKEND, "%s has other members", spec->name);
}

static mgrid_outcome loop_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                                     const mgrid_work *w, mgrid_error *err) {
  const loop_comm *c = native;
  int64_t all[RANKS], sum = 0;
  if (w->call != MGRID_ALLREDUCE || w->type != MGRID_INT64 || w->reduction != MGRID_SUM
      || w->count != 1)
    return mgrid_fail(err, MGRID_USAGE, "%s: loopback sums one int64 alone", spec->name);
  gather((loopback *)b, c->size, c->ranks, w->send, (char *)all, sizeof sum);
  for (int64_t i = 0; i < c->size; i++) sum += all[i];
  memcpy(w->recv, &sum, sizeof sum);
  return MGRID_OK;
}

static void loop_close(mgrid_backend *b) { free(b); }

static mgrid_backend *loop_open(place *p, int64_t rank) {
  static const mgrid_descriptor kind = { .name = "loopback", .lists = true };
  static const mgrid_backend_ops ops = { .allreduce_min = loop_min,
                                         .allgather = loop_allgather,
                                         .bcast = loop_bcast,
                                         .check = loop_check,
                                         .create = loop_create,
                                         .destroy = loop_destroy,
                                         .prove = loop_prove,
                                         .collective = loop_collective,
                                         .close = loop_close };
  loopback *l = calloc(1, sizeof *l);
  *l = (loopback){ .base = { .layout = MGRID_LAYOUT,
                             .kind = &kind,
                             .ops = &ops,
                             .rank = rank,
                             .world = RANKS,
                             .users = 1 },
                   .place = p };
  return &l->base;
}

/* --------------------------------------------------------------------- the tests */

/* Two families over six ranks: neighbours, and every second one. */
static mgrid_plan *plan_of(const char *backend, mgrid_error *err) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 3 } };
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_topology *t = mgrid_topology_new(RANKS, err);
  mgrid_grid *g = mgrid_grid_new(mgrid_world(RANKS), 2, dims, err);
  o.backend = backend;
  for (int i = 0; i < 2; i++) {
    mgrid_family *f = mgrid_grid_along(g, 1, &dims[i].name, MGRID_GRID_ORDER, err);
    mgrid_topology_add(t, dims[i].name, f, &o, err);
    mgrid_family_free(f);
  }
  mgrid_plan *p = mgrid_plan_new(t, err);
  mgrid_grid_free(g);
  mgrid_topology_free(t);
  return p;
}

typedef struct rank { /* one rank: its arguments and its results */
  place *place;
  int64_t rank;
  const char *wants; /* the option `backend` of its families */
  int64_t fails_at;  /* this rank fails to create; -1: none */
  mgrid_error err;
  int64_t proved, sum, gathered;
  bool same_members, no_type, name_is_loopback;
} rank;

static void look_at(rank *r, mgrid_state *s) {
  const mgrid_group *g = mgrid_state_group(s, "dp", &r->err);
  const loop_comm *c = mgrid_group_native(g);
  mgrid_work w = {
    .call = MGRID_ALLREDUCE, .type = MGRID_INT64, .reduction = MGRID_SUM, .count = 1
  };
  int64_t ranks[RANKS];
  r->same_members = c->size == 3 && mgrid_group_ranks(g, RANKS, ranks) == 3;
  for (int i = 0; i < 3 && r->same_members; i++) r->same_members = c->ranks[i] == ranks[i];
  r->no_type = mgrid_group_native_kind(g) == MGRID_NATIVE_NONE;
  r->name_is_loopback = strcmp(mgrid_group_backend(g), "loopback") == 0;
  w.send = &r->rank, w.recv = &r->sum;
  if (mgrid_state_prove(s, &r->proved, &r->err) == MGRID_OK) mgrid_group_work(g, &w, &r->err);
}

static void *live(void *ud) {
  rank *r = ud;
  mgrid_backend *b = loop_open(r->place, r->rank);
  mgrid_plan *p = plan_of(r->wants, &r->err);
  ((loopback *)b)->fails = r->fails_at == r->rank;
  mgrid_state *s = mgrid_materialize(p, b, "test", &r->err);
  if (s) look_at(r, s);
  mgrid_state_free(s);
  mgrid_plan_free(p);
  mgrid_backend_free(b);
  return NULL;
}

static void live_all(rank ranks[RANKS], const char *wants, int64_t fails_at) {
  place p = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
  pthread_t thread[RANKS];
  for (int i = 0; i < RANKS; i++) {
    ranks[i] = (rank){ .place = &p, .rank = i, .wants = wants, .fails_at = fails_at };
    assert_int_equal(pthread_create(&thread[i], NULL, live, &ranks[i]), 0);
  }
  for (int i = 0; i < RANKS; i++) pthread_join(thread[i], NULL);
  assert_int_equal(p.comms, 0); /* all are destroyed, whatever happened */
  for (int i = 0; i < RANKS * RANKS; i++) assert_null(p.parcel[i / RANKS][i % RANKS]);
}

static void test_life(void **state) {
  rank ranks[RANKS];
  (void)state;
  live_all(ranks, "", -1);
  for (int i = 0; i < RANKS; i++) {
    assert_int_equal(ranks[i].err.status, MGRID_OK);
    assert_int_equal(ranks[i].proved, 2);
    assert_true(ranks[i].same_members && ranks[i].no_type && ranks[i].name_is_loopback);
    assert_int_equal(ranks[i].sum, i % 2 ? 1 + 3 + 5 : 0 + 2 + 4);
  }
}

static void test_a_rank_that_fails(void **state) {
  rank ranks[RANKS];
  (void)state;
  live_all(ranks, "", 3);
  for (int i = 0; i < RANKS; i++) {
    assert_int_equal(ranks[i].err.status, MGRID_BACKEND);
    assert_string_equal(ranks[i].err.message, "rank 3: test/tp[1] does not want to be");
  }
}

static void test_a_family_that_wants_another(void **state) {
  rank ranks[RANKS];
  (void)state;
  live_all(ranks, "nccl", -1);
  for (int i = 0; i < RANKS; i++) { /* all ranks fail, so each returns its own error */
    char want[64];
    snprintf(want, sizeof want, "test/tp[%d] wants nccl", i / 2);
    assert_int_equal(ranks[i].err.status, MGRID_REFUSED);
    assert_string_equal(ranks[i].err.message, want);
  }
}

/* ------------------------------------------------------------- the table, waiting */

/* What a row says that it heeds is an option, and not of all backends. */
static void check_heeds(const mgrid_descriptor *d) {
  char text[MGRID_BACKENDS_TEXT];
  size_t words = 0, heeded = 0;
  for (const char *at = d->heeds; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) words++;
  for (const mgrid_option *row = mgrid_option_table; row->name; row++) {
    const char *by = mgrid_backends_heeding(text, row->name);
    if (strcmp(by, "all") == 0)
      assert_true(mgrid_backend_heeds(d, row->name));
    else
      assert_int_equal(mgrid_backend_heeds(d, row->name), strstr(by, d->name) != NULL);
    heeded += mgrid_backend_heeds(d, row->name) && strcmp(by, "all") != 0;
  }
  assert_int_equal(words, heeded);
}

static void test_table(void **state) {
  const char *names[MGRID_BACKENDS_MAX];
  size_t n = mgrid_backend_names(names, MGRID_BACKENDS_MAKERS), choices = 0, usual = 0;
  (void)state;
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++) {
    char library[64], entry[64];
    assert_ptr_equal(mgrid_backend_named(d->name), d);
    assert_int_equal(d->library == NULL, d->entry == NULL);
    assert_int_equal(d->library == NULL, d->opener != NULL);
    assert_false(d->carried && d->carries);
    usual += d->usual;
    check_heeds(d);
    if (!d->library) continue;
    snprintf(library, sizeof library, "libmoongrid_%s.so.%d", d->name, MGRID_VERSION_MAJOR);
    snprintf(entry, sizeof entry, "mgrid_%s_entry", d->name);
    assert_string_equal(d->library, library);
    assert_string_equal(d->entry, entry);
    if (d->native) assert_string_equal(names[choices++], d->name);
  }
  assert_int_equal(n, choices);
  /* pmix makes no communicators */
  assert_true(mgrid_backend_names(names, MGRID_BACKENDS_OPENED) > n);
  assert_int_equal(usual, 1);
  assert_true(mgrid_backend_usual()->carries && mgrid_backend_usual()->library);
  assert_null(mgrid_backend_named("loopback")); /* it is not in the table of the library */
}

typedef struct watched { /* ends at the nth look */
  int looks, last;
  mgrid_outcome end;
} watched;

static mgrid_outcome look(void *ud) {
  watched *w = ud;
  return ++w->looks < w->last ? MGRID_NOT_YET : w->end;
}

/* at the third time */
static int64_t rank_5_gave_up(mgrid_backend *b) { return ++b->rank < 3 ? -1 : 5; }

static void test_wait(void **state) {
  static const mgrid_carrier_ops carry = { .heard = rank_5_gave_up };
  static const mgrid_backend_ops ops = { .carrier = &carry };
  mgrid_backend carrier = { .ops = &ops };
  int64_t who = -1;
  double soon = mgrid_now() + 0.05, later = mgrid_now() + 60;
  (void)state;
  assert_int_equal(mgrid_wait(look, &(watched){ 0, 300, MGRID_OK }, later, NULL, NULL), MGRID_OK);
  assert_int_equal(mgrid_wait(look, &(watched){ 0, 2, MGRID_LIMIT }, later, NULL, NULL),
                   MGRID_LIMIT);
  /* one look in any case */
  assert_int_equal(mgrid_wait(look, &(watched){ 0, 1, MGRID_OK }, 0, NULL, NULL), MGRID_OK);
  assert_int_equal(mgrid_wait(look, &(watched){ 0, INT32_MAX, MGRID_OK }, soon, NULL, NULL),
                   MGRID_LATE);
  assert_true(mgrid_now() > soon);
  assert_int_equal(mgrid_wait(look, &(watched){ 0, INT32_MAX, MGRID_OK }, later, &carrier, &who),
                   MGRID_GAVE_UP);
  assert_int_equal(who, 5);
  carrier.rank = 0;
  assert_int_equal(mgrid_wait(look, &(watched){ 0, 3, MGRID_OK }, later, &carrier, &who),
                   MGRID_OK); /* "finished" wins over "gave up" */
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_life),
    cmocka_unit_test(test_a_rank_that_fails),
    cmocka_unit_test(test_a_family_that_wants_another),
    cmocka_unit_test(test_table),
    cmocka_unit_test(test_wait),
  };
  return run_program("backend", tests, argc, argv);
}
