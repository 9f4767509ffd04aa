/* SPDX-License-Identifier: MIT
**
** nccl.c - the fields of ncclConfig_t as text, and the memory of a communicator.
*/
#include "plan/nccl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ranges are those that NCCL accepts (parseCommConfig in its init.cc), versions those of the
** first public header with the field; NCCL 2.18 to 2.30. */
const mgrid_nccl_field mgrid_nccl_fields[MGRID_NCCL_FIELDS] = {
  [MGRID_NCCL_BLOCKING] = { "blocking", 0, 1, 21400 },
  [MGRID_NCCL_CGA_CLUSTER_SIZE] = { "cga_cluster_size", 0, 8, 21700 },
  [MGRID_NCCL_COLLNET_ENABLE] = { "collnet_enable", 0, 1, 22700 },
  [MGRID_NCCL_CTA_POLICY] = { "cta_policy", 0, 7, 22700 },
  [MGRID_NCCL_GRAPH_STREAM_ORDERING] = { "graph_stream_ordering", 0, 1, 23007 },
  [MGRID_NCCL_GRAPH_USAGE_MODE] = { "graph_usage_mode", 0, 2, 22900 },
  [MGRID_NCCL_MAX_CTAS] = { "max_ctas", 1, 64, 21700 },
  [MGRID_NCCL_MAX_P2P_PEERS] = { "max_p2p_peers", 1, INT32_MAX, 23000 },
  [MGRID_NCCL_MIN_CTAS] = { "min_ctas", 1, 64, 21700 },
  [MGRID_NCCL_N_CHANNELS_PER_NET_PEER] = { "n_channels_per_net_peer", 1, 64, 22800 },
  [MGRID_NCCL_NET_NAME] = { "net_name", 0, -1, 21700 },
  [MGRID_NCCL_NUM_RMA_CTX] = { "num_rma_ctx", 0, INT32_MAX, 22900 },
  [MGRID_NCCL_NVLINK_CENTRIC_SCHED] = { "nvlink_centric_sched", 0, 1, 22800 },
  [MGRID_NCCL_NVLS_CTAS] = { "nvls_ctas", 1, INT32_MAX, 22700 },
  [MGRID_NCCL_OPTIONAL] = { "optional", 0, 1, 0 },
  [MGRID_NCCL_SHRINK_SHARE] = { "shrink_share", 0, 1, 22700 },
  [MGRID_NCCL_SPLIT_SHARE] = { "split_share", 0, 1, 21800 },
  [MGRID_NCCL_TRAFFIC_CLASS] = { "traffic_class", 0, INT32_MAX, 22600 },
};

static mgrid_status unknown_field(const char *name, mgrid_error *err) {
  const char *known[MGRID_NCCL_FIELDS];
  char        tail[768];
  for (int i = 0; i < MGRID_NCCL_FIELDS; i++) known[i] = mgrid_nccl_fields[i].name;
  mgrid_suggest(tail, sizeof tail, name, known, MGRID_NCCL_FIELDS);
  return mgrid_fail(err, MGRID_REFUSED, "unknown nccl field '%s'%s", name, tail);
}

static mgrid_status read_field(const char *name, const char *value, mgrid_nccl_values *v, mgrid_error *err) {
  int at = 0;
  while (at < MGRID_NCCL_FIELDS && strcmp(mgrid_nccl_fields[at].name, name) != 0) at++;
  if (at == MGRID_NCCL_FIELDS) return unknown_field(name, err);
  int64_t low = mgrid_nccl_fields[at].low, high = mgrid_nccl_fields[at].high;
  if (low > high) { /* text */
    if ((size_t)snprintf(v->net_name, sizeof v->net_name, "%s", value) >= sizeof v->net_name)
      return mgrid_fail(err, MGRID_REFUSED, "nccl field '%s' has at most %zu characters", name, sizeof v->net_name - 1);
  } else {
    char *end;
    v->number[at] = strtoll(value, &end, 10);
    if (*value == '\0' || *end != '\0' || v->number[at] < low || v->number[at] > high)
      return mgrid_fail(err, MGRID_REFUSED, "nccl field '%s' is %" PRId64 " to %" PRId64 ", not '%s'", name, low, high,
                        value);
  }
  if (v->given[at]) return mgrid_fail(err, MGRID_REFUSED, "nccl field '%s' is given twice", name);
  v->given[at] = true;
  return MGRID_OK;
}

mgrid_status mgrid_nccl_read(const char *text, mgrid_nccl_values *v, mgrid_error *err) {
  char        *copy = mgrid_strdup(text ? text : ""), *save = NULL;
  mgrid_status s = copy ? MGRID_OK : mgrid_oom(err);
  memset(v, 0, sizeof *v);
  for (char *word = copy ? strtok_r(copy, " ,\t\n", &save) : NULL; word && !s; word = strtok_r(NULL, " ,\t\n", &save)) {
    char *eq = strchr(word, '=');
    if (eq) *eq = '\0';
    s = eq ? read_field(word, eq + 1, v, err)
           : mgrid_fail(err, MGRID_REFUSED, "nccl option '%s' is not of the form field=value", word);
  }
  int64_t min = v->number[MGRID_NCCL_MIN_CTAS], max = v->number[MGRID_NCCL_MAX_CTAS];
  if (!s && v->given[MGRID_NCCL_MIN_CTAS] && v->given[MGRID_NCCL_MAX_CTAS] && min > max)
    s = mgrid_fail(err, MGRID_REFUSED, "nccl field 'min_ctas' is %" PRId64 ", above 'max_ctas', which is %" PRId64, min,
                   max);
  free(copy);
  return s;
}

void mgrid_nccl_text(const mgrid_nccl_values *v, mgrid_text *t) {
  size_t before = t->len;
  for (int i = 0; i < MGRID_NCCL_FIELDS; i++) {
    if (!v->given[i]) continue;
    if (t->len > before) mgrid_text_str(t, " ");
    mgrid_text_str(t, mgrid_nccl_fields[i].name);
    mgrid_text_str(t, "=");
    if (mgrid_nccl_fields[i].low > mgrid_nccl_fields[i].high)
      mgrid_text_str(t, v->net_name);
    else
      mgrid_text_int(t, v->number[i]);
  }
}

/* ------------------------------------------------------------------- memory */

static int64_t channels(const mgrid_nccl_values *v) {
  if (v->given[MGRID_NCCL_MAX_CTAS]) return v->number[MGRID_NCCL_MAX_CTAS];
  int64_t least = v->given[MGRID_NCCL_MIN_CTAS] ? v->number[MGRID_NCCL_MIN_CTAS] : 1;
  return least > MGRID_NCCL_CHANNELS ? least : MGRID_NCCL_CHANNELS;
}

static int64_t granules(int64_t bytes) { return (bytes + (INT64_C(2) << 20) - 1) / (INT64_C(2) << 20); }

int64_t mgrid_nccl_memory(const mgrid_nccl_values *v, int64_t n) {
  if (n < 2) return 0; /* a group of one rank has none */
  int64_t blocks = channels(v) * (granules(8 * n) + granules(600 * n) + granules(4 * n)) + 2;
  return blocks * (INT64_C(2) << 20);
}

int64_t mgrid_nccl_buffers(const mgrid_nccl_values *v, int64_t n) {
  return n < 2 ? 0 : channels(v) * (INT64_C(184) << 20) / 10;
}
