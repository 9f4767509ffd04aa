/* SPDX-License-Identifier: MIT
**
** costs.c - what a price needs besides the links of a machine: flops of a GPU, the time before the
** bytes of a call move, latencies that the machine does not give, and measured efficiencies.
*/
#include "plan/json.h"
#include "step/price.h"

#include <math.h>
#include <string.h>

/* ======================================================== what was measured */

/* Two numbers describe how fast calls over a level are: the latency of a hop and the share of the
** bandwidth. Both are fitted to measured times, by the least squares of relative errors. A measured
** call runs alone, in a group with one member in each domain, so that nothing else uses the
** links. */

/* Set the hops, and the bytes over one link, of the algorithm that is the fastest for many bytes
** (operations.c): a ring, or all messages at once. Return false for other kinds. */
static bool travel_of(step_kind kind, double n, double bytes, double *hops, double *over) {
  double part = (n - 1) / n * bytes;
  switch (mgrid_step_rows[kind].travel) {
  case STEP_AROUND_TWICE: return *hops = 2 * (n - 1), *over = 2 * part, true;
  case STEP_AROUND: return *hops = n - 1, *over = part, true;
  case STEP_ALONG: return *hops = n - 1, *over = bytes, true;
  case STEP_PAIRS: return *hops = 1, *over = part, true;
  case STEP_MESSAGE: return *hops = 1, *over = bytes, true;
  default: return false;
  }
}

static bool fits(step_kind kind) {
  double hops, over;
  return travel_of(kind, 2, 1, &hops, &over);
}

static double seconds_of(const step_measured *x, double call, double latency, double each) {
  double hops = 0, over = 0;
  travel_of(x->kind, x->members, x->bytes, &hops, &over);
  return call + hops * latency + over * each;
}

void mgrid_step_fit(const step_measured *all, size_t n, double call, double bandwidth,
                    step_fit *out) {
  /* sums of the normal equations, over hops and bytes */
  double hh = 0, hb = 0, bb = 0, ht = 0, bt = 0;

  for (size_t i = 0; i < n; i++) {
    double h = 0, b = 0, t = all[i].seconds;
    travel_of(all[i].kind, all[i].members, all[i].bytes, &h, &b);
    h /= t, b /= t, t = (t - call) / t;
    hh += h * h, hb += h * b, bb += b * b, ht += h * t, bt += b * t;
  }
  /* each: seconds per byte */
  double det = hh * bb - hb * hb, latency = 0, each = bb > 0 ? bt / bb : 0;
  if (det > 1e-12 * hh * bb) {
    latency = (ht * bb - bt * hb) / det, each = (bt * hh - ht * hb) / det;
    if (latency < 0) latency = 0, each = bt / bb;
  }
  if (!(each > 1 / bandwidth)) { /* no call is faster than its link */
    each = 1 / bandwidth;
    latency = fmax(0, hh > 0 ? (ht - each * hb) / hh : 0);
  }
  *out = (step_fit){ .n = n, .latency = latency, .share = 1 / (each * bandwidth) };
  double error[STEP_MEASURED_MAX];
  for (size_t i = 0; i < n; i++) {
    double e = fabs(seconds_of(&all[i], call, latency, each) / all[i].seconds - 1);
    size_t k = i;
    for (; k > 0 && error[k - 1] > e; k--) error[k] = error[k - 1];
    error[k] = e;
  }
  out->median = n ? error[(n - 1) / 2] : 0, out->worst = n ? error[n - 1] : 0;
}

/* ==================================================================== costs */

/* The costs that NCCL itself assumes for rings with its low-latency protocol (src/graph/tuning.cc):
** of a call, of a hop over NVLink, of a hop over a network. */
#define NCCL_CALL   3.6e-6
#define NCCL_NVLINK 0.47e-6
#define NCCL_NET    2.7e-6

/* For each preset of a machine: dense BF16 flops of a GPU; bandwidth and GiB of its memory; the
** level of NVLink domains; whether the NVLink switches reduce (NVLink SHARP, from the third
** generation of NVSwitch on). The numbers are from the data sheets that the presets name. */
static const struct {
  const char *preset;
  double flops, memory, gib;
  const char *nvlink;
  bool nvls;
} known[] = {
  { "dgx-a100", 312e12, 2.039e12, 80, "node", false },
  { "dgx-b200", 2250e12, 8e12, 180, "node", true },
  { "dgx-h100", 989e12, 3.35e12, 80, "node", true },
  { "dgx-h200", 989e12, 4.8e12, 141, "node", true },
  { "gb200-nvl72", 2500e12, 8e12, 186, "rack", true },
  { "mi300x", 1307e12, 5.3e12, 192, "node", false },
};

static void set_latencies(const mgrid_machine_model *m, step_costs *k) {
  for (size_t l = 0; l < m->ntiers; l++) {
    bool near = k->nvlink >= 0 ? (int)l > k->nvlink : l + 1 == m->ntiers;
    k->latency[l] = m->tier[l].link.latency > 0 ? m->tier[l].link.latency
                    : k->mpi                    ? 1e-6
                    : near                      ? NCCL_NVLINK
                                                : NCCL_NET;
  }
}

/* -------------------------------------------------------------------- JSON */

static const char *const keys[] = { "flops",    "start",   "memory", "capacity", "beside",
                                    "call",     "latency", "nvlink", "nvls",     "efficiency",
                                    "measured", "source",  "error" };
enum { KEYS = sizeof keys / sizeof *keys };

static mgrid_status costs_refuse(const char *key, const char *expected, mgrid_error *err) {
  return mgrid_fail(err, MGRID_BAD_VALUE, "costs: %s: %s expected", key, expected);
}

static mgrid_status costs_unknown(const char *what, const char *word, const char *const *all,
                                  size_t n, mgrid_error *err) {
  char tail[256];
  mgrid_suggest(tail, sizeof tail, word, all, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "costs: unknown %s '%.60s'%s", what, word, tail);
}

static mgrid_status costs_level_of(const mgrid_machine_model *m, const char *name, int *level,
                                   mgrid_error *err) {
  const char *all[MGRID_LEVELS_MAX];
  for (size_t l = 0; l < m->ntiers; l++) {
    all[l] = m->tier[l].name;
    if (strcmp(all[l], name) == 0) return *level = (int)l, MGRID_OK;
  }
  return costs_unknown("level", name, all, m->ntiers, err);
}

static mgrid_status read_positive(const json_t *all, const char *key, double *out,
                                  mgrid_error *err) {
  const json_t *v = json_object_get(all, key);
  if (!v) return MGRID_OK;
  double x = json_is_number(v) ? json_number_value(v) : -1;
  if (!(x >= 0) || !isfinite(x)) return costs_refuse(key, "a number from 0 on", err);
  return *out = x, MGRID_OK;
}

/* Return the kind of the call with this name; STEP_CALLS: none has it. */
static step_kind kind_of(const char *name) {
  int kind = 0;
  while (kind < STEP_CALLS && strcmp(mgrid_step_rows[kind].name, name) != 0) kind++;
  return (step_kind)kind;
}

static mgrid_status add_rates(step_costs *k, step_kind kind, int level, const json_t *list,
                              const char *name, mgrid_error *err) {
  double before = 0;
  if (!json_is_array(list) || json_array_size(list) == 0)
    return costs_refuse(name, "a list of [bytes, share of the bandwidth]", err);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    double bytes = json_number_value(json_array_get(one, 0)),
           share = json_number_value(json_array_get(one, 1));
    if (json_array_size(one) != 2 || !(bytes > before) || !(share > 0) || !(share <= 8))
      return costs_refuse(
          name, "[bytes, share] with bytes that ascend, and a share above 0 and up to 8,", err);
    if (k->nrates == STEP_RATES_MAX)
      return mgrid_fail(err, MGRID_LIMIT, "costs: more than %d rows of efficiency", STEP_RATES_MAX);
    k->rate[k->nrates++] = (step_rate){ kind, level, bytes, share };
    before = bytes;
  }
  return MGRID_OK;
}

/* Read measured shares: { "all_reduce": { "node": [[bytes, share], ...] } }. "*" stands for every
** operation or every level. */
static mgrid_status read_rates(const mgrid_machine_model *m, const json_t *all, step_costs *k,
                               mgrid_error *err) {
  const char *names[STEP_CALLS], *name, *where;
  json_t *levels, *list;

  for (int i = 0; i < STEP_CALLS; i++) names[i] = mgrid_step_rows[i].name;
  if (all && !json_is_object(all)) return costs_refuse("efficiency", "an object by operation", err);
  json_object_foreach((json_t *)(uintptr_t)all, name, levels) {
    bool any = strcmp(name, "*") == 0;
    step_kind kind = any ? STEP_KINDS : kind_of(name);
    if (kind == STEP_CALLS) return costs_unknown("operation", name, names, STEP_CALLS, err);
    if (kind == STEP_RECV) kind = STEP_SEND; /* the same message */
    if (!json_is_object(levels)) return costs_refuse(name, "an object by level", err);
    json_object_foreach(levels, where, list) {
      int level = -1;
      mgrid_status s = strcmp(where, "*") == 0 ? MGRID_OK : costs_level_of(m, where, &level, err);
      if (!s) s = add_rates(k, kind, level, list, name, err);
      if (s) return s;
    }
  }
  return MGRID_OK;
}

/* Read measured calls: [["all_reduce", "node", 4, 1e9, 0.05], ...], which are operation, level,
** members, bytes, seconds. */
static mgrid_status read_measured(const mgrid_machine_model *m, const json_t *all, step_costs *k,
                                  mgrid_error *err) {
  step_measured list[STEP_MEASURED_MAX], of_level[STEP_MEASURED_MAX];
  size_t n = json_array_size(all), count;

  if (all && !json_is_array(all))
    return costs_refuse("measured", "a list of [operation, level, members, bytes, seconds]", err);
  if (n > STEP_MEASURED_MAX)
    return mgrid_fail(err, MGRID_LIMIT, "costs: more than %d rows of measured", STEP_MEASURED_MAX);
  for (size_t i = 0; i < n; i++) {
    const json_t *one = json_array_get(all, i);
    const char *name = json_string_value(json_array_get(one, 0)),
               *level = json_string_value(json_array_get(one, 1));
    step_measured *x = &list[i];
    x->kind = name ? kind_of(name) : STEP_CALLS;
    x->members = json_number_value(json_array_get(one, 2));
    x->bytes = json_number_value(json_array_get(one, 3)),
    x->seconds = json_number_value(json_array_get(one, 4));
    if (json_array_size(one) != 5 || !level || !(x->members >= 2) || !(x->bytes > 0)
        || !(x->seconds > k->call) || !fits(x->kind))
      return costs_refuse("measured",
                          "[\"all_reduce\", \"node\", 4, 1e9, 0.05]: operation, level, "
                          "members, bytes, and more seconds "
                          "than a call takes without bytes,",
                          err);
    mgrid_status s = costs_level_of(m, level, &x->level, err);
    if (s) return s;
  }
  for (int l = 0; l < (int)m->ntiers; l++) {
    count = 0;
    for (size_t i = 0; i < n; i++)
      if (list[i].level == l) of_level[count++] = list[i];
    if (count == 0) continue;
    if (!(m->tier[l].link.bandwidth > 0))
      return costs_refuse("measured", "a level whose bandwidth the machine says", err);
    if (k->nrates == STEP_RATES_MAX)
      return mgrid_fail(err, MGRID_LIMIT, "costs: more than %d rows of efficiency", STEP_RATES_MAX);
    mgrid_step_fit(of_level, count, k->call, m->tier[l].link.bandwidth, &k->fit[l]);
    k->latency[l] = k->fit[l].latency;
    k->rate[k->nrates++] = (step_rate){ STEP_KINDS, l, 1, k->fit[l].share };
  }
  return MGRID_OK;
}

static mgrid_status read_costs(const mgrid_machine_model *m, const json_t *all, step_costs *k,
                               mgrid_error *err) {
  const char *key;
  json_t *v;

  if (!json_is_object(all))
    return mgrid_fail(err, MGRID_BAD_VALUE, "costs: an object expected, { \"flops\": 4e14 }");
  json_object_foreach((json_t *)(uintptr_t)all, key, v) {
    size_t i = 0;
    while (i < KEYS && strcmp(keys[i], key) != 0) i++;
    if (i == KEYS) return costs_unknown("key", key, keys, KEYS, err);
  }
  const struct {
    const char *key;
    double *to;
  } numbers[] = { { "flops", &k->flops },       { "start", &k->start },   { "memory", &k->memory },
                  { "capacity", &k->capacity }, { "beside", &k->beside }, { "error", &k->error },
                  { "call", &k->call } };
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !s; i++)
    s = read_positive(all, numbers[i].key, numbers[i].to, err);
  const json_t *latency = json_object_get(all, "latency"), *nvlink = json_object_get(all, "nvlink"),
               *nvls = json_object_get(all, "nvls"), *source = json_object_get(all, "source");
  if (!s && nvlink && !json_is_string(nvlink))
    s = costs_refuse("nvlink", "the name of a level", err);
  if (!s && nvlink) s = costs_level_of(m, json_string_value(nvlink), &k->nvlink, err);
  if (!s && k->nvlink + 1 >= (int)m->ntiers && nvlink)
    s = costs_refuse("nvlink", "a level with levels within it", err);
  if (!s && nvls && !json_is_boolean(nvls)) s = costs_refuse("nvls", "true or false", err);
  if (!s && nvls) k->nvls = json_is_true(nvls);
  if (!s && k->nvls && k->nvlink < 0) s = costs_refuse("nvls", "the level nvlink, too,", err);
  set_latencies(m, k);
  if (!s && latency && !json_is_object(latency))
    s = costs_refuse("latency", "an object by level", err);
  json_object_foreach((json_t *)(uintptr_t)latency, key, v) {
    int level;
    if (!s) s = costs_level_of(m, key, &level, err);
    if (!s) s = read_positive(latency, key, &k->latency[level], err);
  }
  if (!s && source && !json_is_string(source)) s = costs_refuse("source", "a text", err);
  if (!s && source)
    s = mgrid_check_line("costs: source", json_string_value(source), json_string_length(source),
                         err);
  if (!s && source)
    mgrid_shown(k->source, sizeof k->source, json_string_value(source), json_string_length(source));
  if (!s) s = read_rates(m, json_object_get(all, "efficiency"), k, err);
  return s ? s : read_measured(m, json_object_get(all, "measured"), k, err);
}

mgrid_status mgrid_step_costs_of(const mgrid_machine_model *m, bool mpi, const char *text,
                                 step_costs *out, mgrid_error *err) {
  memset(out, 0, sizeof *out);
  out->mpi = mpi, out->nvlink = -1, out->call = mpi ? 0 : NCCL_CALL;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (!m->source || strcmp(m->source, known[i].preset) != 0) continue;
    out->flops = known[i].flops, out->memory = known[i].memory, out->nvls = known[i].nvls;
    out->capacity = known[i].gib * 0x1p30;
    for (size_t l = 0; l + 1 < m->ntiers; l++)
      if (strcmp(m->tier[l].name, known[i].nvlink) == 0) out->nvlink = (int)l;
    if (out->nvlink < 0) out->nvls = false;
  }
  set_latencies(m, out);
  if (!text || !*text) return MGRID_OK;
  json_error_t why;
  json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, &why);
  if (!all) return mgrid_fail(err, MGRID_BAD_VALUE, "costs: line %d: %.200s", why.line, why.text);
  mgrid_status s = read_costs(m, all, out, err);
  json_decref(all);
  return s;
}

mgrid_status mgrid_step_costs_file(const char *path, bool machine, mgrid_text *t,
                                   mgrid_error *err) {
  json_error_t why;
  json_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
  if (!all && machine) return MGRID_OK; /* the file is not JSON, so it has no costs */
  if (!all && why.line < 0) return mgrid_fail(err, MGRID_BAD_VALUE, "costs: %.300s", why.text);
  if (!all)
    return mgrid_fail(err, MGRID_BAD_VALUE, "costs %s:%d: %.300s", path, why.line, why.text);
  const json_t *costs = machine ? json_object_get(all, "costs") : all;
  if (costs) mgrid_json_text(costs, 0, t);
  json_decref(all);
  return t->failed ? mgrid_oom(err) : MGRID_OK;
}
