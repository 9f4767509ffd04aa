/* SPDX-License-Identifier: MIT
**
** carrier.c - fuzz target: a carrier that lies. Honest ranks, as threads, are recorded once for
** each of some jobs: every value that they put. Then each input is one rank of such a job, alone,
** which gets the recorded values, some of them bent, and bytes of the input where nothing was
** recorded. The first bytes say which job and which rank; then there is a byte for each value.
*/
#include "fuzz.h"

#include "comm/carriers/carrier.h"
#include "moongrid_carrier.h"
#include "moongrid_recipe.h"

#include <pthread.h>

static const char recipe[] =
    "return recipe { params = { tp = 2, note = '' }, build = function(world, p)\n"
    "  local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) local t = topology(world)\n"
    "  t.g = g t.tp, t.dp = g 'tp', g 'dp' return t end,\n"
    "policy = { of_all = function(s) return s.rank end }, agreed = { of_all = 'world' } }\n";

/* ---------------------------------------------------------------------- jobs */

typedef enum deed { AGREE, DIFFER, LACK, POLICY, UNLIKE, RELOAD, DEEDS } deed;

typedef struct job {
  int64_t world;
  deed deed;
  bool gathers; /* the host has an all-gather */
} job;
static const job jobs[] = {
  { 2, AGREE, false },  { 4, DIFFER, false }, { 4, LACK, false },    { 2, POLICY, false },
  { 2, UNLIKE, false }, { 2, RELOAD, false }, { 20, DIFFER, false }, { 4, DIFFER, true },
  { 20, LACK, false },  { 4, POLICY, true },
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static const char *path; /* of the recipe */

/* What a rank does; ranks other than 0 differ where that is the job. */
static void live(const job *of, mgrid_carrier *c, mgrid_error *err) {
  bool odd = c->rank == 1 || c->rank == 17;
  mgrid_limits limits = MGRID_LIMITS_INIT;
  const char *args[] = { of->deed == DIFFER && odd ? "tp=1" : "tp=2" }, *other[] = { "tp=1" };
  mgrid_runtime *rt = mgrid_runtime_new(&limits, NULL, NULL);
  CHECK(mgrid_runtime_load(rt, path, NULL, 0, NULL) == MGRID_OK);
  mgrid_plan *plan = mgrid_runtime_plan(rt, of->world, NULL, 1, args, NULL);
  mgrid_backend *b = mgrid_carrier_backend(c, err);
  mgrid_state *state = NULL, *new_state = NULL;
  if (b && of->deed == UNLIKE && odd)
    mgrid_agree(b, plan, NULL, err);
  else if (b)
    state = mgrid_materialize(of->deed == LACK && odd ? NULL : plan, b, "train", err);
  if (state && of->deed == POLICY) {
    mgrid_policy *p = mgrid_policy_new(rt, state, "of_all", err);
    mgrid_policy_call(p, 0, NULL, err);
    mgrid_policy_free(p);
  }
  if (state && of->deed == RELOAD) mgrid_reload(rt, state, NULL, 1, other, &new_state, NULL, err);
  mgrid_state_free(new_state);
  mgrid_state_free(state);
  mgrid_backend_free(b);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
}

/* ----------------------------------------------------------------- the recording */

typedef struct value {
  char key[128];
  size_t bytes;
  void *data;
} value;

static struct recording {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  size_t n;
  value at[4096];
} recordings[JOBS];

typedef struct rank {
  struct recording *of;
  const job *job;
  int64_t rank, gathers;
  bytes *in; /* NULL: it is recorded */
  mgrid_error err;
} rank;

static value *find(struct recording *r, const char *key) {
  for (size_t i = 0; i < r->n; i++)
    if (strcmp(r->at[i].key, key) == 0) return &r->at[i];
  return NULL;
}

static mgrid_status put(void *ud, const char *key, const void *data, size_t bytes) {
  rank *r = ud;
  if (r->in) return MGRID_OK;
  pthread_mutex_lock(&r->of->lock);
  CHECK(r->of->n < sizeof r->of->at / sizeof *r->of->at && !find(r->of, key));
  value *v = &r->of->at[r->of->n++];
  snprintf(v->key, sizeof v->key, "%s", key);
  v->data = malloc(bytes + 1);
  if (!v->data) abort();
  memcpy(v->data, data, v->bytes = bytes);
  pthread_cond_broadcast(&r->of->changed);
  pthread_mutex_unlock(&r->of->lock);
  return MGRID_OK;
}

/* Most values are as they were. */
static void bend(bytes *in, char *data, size_t n) {
  static const int64_t odd[] = { -1, INT64_MAX, INT64_MIN, 1, 0, 1 << 20, 5, 17, 1000 };
  uint8_t how = byte(in);
  if (n == 0) return;
  if (how >= 64 && how < 96) data[byte(in) * 7 % n] ^= (char)(1 << how % 8);
  if (how >= 96 && how < 104) memset(data, 0xff, n);
  if (how >= 104 && how < 112)
    for (size_t i = 0; i < n; i++) data[i] = (char)byte(in);
  if (how >= 112 && how < 160 && n >= 8) memcpy(data + 8 * (byte(in) % (n / 8)), &odd[how % 9], 8);
  if (how >= 160 && how < 176) data[byte(in) * 3 % n] = (char)byte(in);
  if (how >= 176 && how < 184) {
    size_t at = byte(in) * 5 % n;
    memset(data + at, 'x', n - at);
  }
}

static mgrid_status get(void *ud, int64_t from, const char *key, void *data, size_t bytes,
                        double seconds) {
  rank *r = ud;
  (void)from, (void)seconds;
  if (strstr(key, "opened") || strstr(key, "notice")) return MGRID_TIMED_OUT;
  pthread_mutex_lock(&r->of->lock);
  value *v;
  while (!(v = find(r->of, key)) && !r->in) pthread_cond_wait(&r->of->changed, &r->of->lock);
  pthread_mutex_unlock(&r->of->lock);
  if (v && v->bytes == bytes)
    memcpy(data, v->data, bytes);
  else
    memset(data, 0, bytes);
  if (r->in) bend(r->in, data, bytes);
  return MGRID_OK;
}

static mgrid_status gather(void *ud, const void *mine, void *all, size_t bytes, double seconds) {
  rank *r = ud;
  char key[64];
  int64_t number = r->gathers++;
  mgrid_status s = MGRID_OK;
  snprintf(key, sizeof key, "gather.%lld.%lld", (long long)number, (long long)r->rank);
  s = put(r, key, mine, bytes);
  for (int64_t k = 0; k < r->job->world && !s; k++) {
    snprintf(key, sizeof key, "gather.%lld.%lld", (long long)number, (long long)k);
    s = get(r, k, key, (char *)all + (size_t)k * bytes, bytes, seconds);
  }
  return s;
}

static void *run(void *ud) {
  rank *r = ud;
  mgrid_carrier c = MGRID_CARRIER_INIT;
  c.ud = r, c.rank = r->rank, c.world = r->job->world, c.timeout = r->in ? 0.001 : 60;
  c.put = put, c.get = get;
  if (r->job->gathers) c.allgather = gather;
  live(r->job, &c, &r->err);
  return NULL;
}

static void record(const job *of) {
  struct recording *to = &recordings[of - jobs];
  pthread_t thread[32];
  rank ranks[32];
  pthread_mutex_init(&to->lock, NULL);
  pthread_cond_init(&to->changed, NULL);
  for (int64_t k = 0; k < of->world; k++) {
    ranks[k] = (rank){ .of = to, .job = of, .rank = k, .err = MGRID_ERROR_INIT };
    CHECK(pthread_create(&thread[k], NULL, run, &ranks[k]) == 0);
  }
  for (int64_t k = 0; k < of->world; k++) {
    pthread_join(thread[k], NULL);
    if (getenv("FUZZ_SAYS"))
      fprintf(stderr, "job %d rank %d: %s\n", (int)(of - jobs), (int)k, ranks[k].err.message);
    CHECK((ranks[k].err.status == MGRID_OK) == (of->deed == AGREE || of->deed == RELOAD));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool recorded;
  path = fuzz_file(".carrier.lua", recipe, sizeof recipe - 1);
  for (int i = 0; i < JOBS && !recorded; i++) record(&jobs[i]);
  recorded = true;
  bytes b = { data, data + size };
  const job *of = &jobs[below(&b, JOBS)];
  rank r = { .of = &recordings[of - jobs], .job = of, .in = &b, .err = MGRID_ERROR_INIT };
  r.rank = (int64_t)below(&b, (size_t)of->world);
  run(&r);
  fuzz_check_error(&r.err, false);
  if (getenv("FUZZ_SAYS"))
    fprintf(stderr, "job %d rank %d: %s\n", (int)(of - jobs), (int)r.rank, r.err.message);
  return 0;
}
