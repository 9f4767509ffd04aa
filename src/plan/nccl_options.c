/* SPDX-License-Identifier: MIT
**
** nccl_options.c - the fields of ncclConfig_t, and their values as text.
*/
#include "plan/nccl_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The fields, sorted by name. Ranges are those that NCCL accepts (parseCommConfig in its init.cc;
** for 2.31 and 2.32 nccl_options.h and the user guide). A version is that of the first public
** header with the field, from NCCL 2.18 to 2.32. */
#define FLAG   MGRID_NCCL_IS_FLAG
#define NUMBER MGRID_NCCL_IS_NUMBER
#define TEXT   MGRID_NCCL_IS_TEXT
const mgrid_nccl_field mgrid_nccl_fields[MGRID_NCCL_FIELDS] = {
  [MGRID_NCCL_BLOCKING] = { "blocking", FLAG, 0, 1, 21400,
                            "calls return when they are done, not at once" },
  [MGRID_NCCL_CGA_CLUSTER_SIZE] = { "cga_cluster_size", NUMBER, 0, 8, 21700,
                                    "thread blocks in a cluster of a kernel" },
  [MGRID_NCCL_COLLNET_ENABLE] = { "collnet_enable", FLAG, 0, 1, 22700,
                                  "reductions inside the network (SHARP)" },
  [MGRID_NCCL_CTA_POLICY] = { "cta_policy", NUMBER, 0, 7, 22700,
                              "0: default, 1: efficiency, 2: no thread blocks where possible; from "
                              "2.30 on a sum of these" },
  [MGRID_NCCL_GRAPH_STREAM_ORDERING] = { "graph_stream_ordering", FLAG, 0, 1, 23007,
                                         "calls captured into CUDA graphs keep their order" },
  [MGRID_NCCL_GRAPH_USAGE_MODE] = { "graph_usage_mode", NUMBER, 0, 2, 22900,
                                    "0: no CUDA graph, 1: one, 2: several, or graphs and calls" },
  [MGRID_NCCL_HOST_CFT_MODE] = { "host_cft_mode", NUMBER, 1, 3, 23100,
                                 "Compute Fabric Transport: 1: required, 2: not used, 3: used "
                                 "where it works" },
  [MGRID_NCCL_LAUNCH_ORDER_IMPLICIT] = { "launch_order_implicit", FLAG, 0, 1, 23100,
                                         "kernels of several communicators run in the order of "
                                         "their calls" },
  [MGRID_NCCL_MAX_CTAS] = { "max_ctas", NUMBER, 1, 64, 21700,
                            "most channels, on which memory depends" },
  [MGRID_NCCL_MAX_P2P_PEERS] = { "max_p2p_peers", NUMBER, 1, INT32_MAX, 23000,
                                 "peers that are sent to at a time" },
  [MGRID_NCCL_MIN_CTAS] = { "min_ctas", NUMBER, 1, 64, 21700,
                            "fewest channels; not above max_ctas" },
  [MGRID_NCCL_N_CHANNELS_PER_NET_PEER] = { "n_channels_per_net_peer", NUMBER, 1, 64, 22800,
                                           "channels to a peer on another machine" },
  [MGRID_NCCL_NET_NAME] = { "net_name", TEXT, 0, 0, 21700,
                            "network plugin; \"IB\" and \"Socket\" are NCCL's own" },
  [MGRID_NCCL_NUM_RMA_CTX] = { "num_rma_ctx", NUMBER, 0, INT32_MAX, 22900,
                               "contexts for one-sided calls" },
  [MGRID_NCCL_NUM_RMA_SIG] = { "num_rma_sig", NUMBER, 0, INT32_MAX, 23100,
                               "signals of a context for one-sided calls" },
  [MGRID_NCCL_NVLINK_CENTRIC_SCHED] = { "nvlink_centric_sched", FLAG, 0, 1, 22800,
                                        "schedule for NVLink first" },
  [MGRID_NCCL_NVLS_CTAS] = { "nvls_ctas", NUMBER, 1, INT32_MAX, 22700,
                             "thread blocks for NVLink SHARP" },
  [MGRID_NCCL_NVLS_HOST_MODE] = { "nvls_host_mode", NUMBER, 0, 3, 23200,
                                  "NVLink SHARP: 0: used, 1: not as transport, 2: not by symmetric "
                                  "kernels, 3: neither" },
  [MGRID_NCCL_OPTIONAL] = { "optional", FLAG, 0, 1, 0,
                            "leave out what the running NCCL does not know, instead of refusing" },
  [MGRID_NCCL_RMA_EAGER_INIT] = { "rma_eager_init", FLAG, 0, 1, 23100,
                                  "connect for one-sided calls at creation, not at first use" },
  [MGRID_NCCL_SHRINK_SHARE] = { "shrink_share", FLAG, 0, 1, 22700,
                                "a communicator shrunk from it shares its resources" },
  [MGRID_NCCL_SPLIT_SHARE] = { "split_share", FLAG, 0, 1, 21800,
                               "a communicator split from it shares its resources" },
  [MGRID_NCCL_TRAFFIC_CLASS] = { "traffic_class", NUMBER, 0, INT32_MAX, 22600,
                                 "quality of service, for the network plugin" },
};

/* Set a number. `text` is the value as the user wrote it, for the message. */
static mgrid_status set_number(mgrid_nccl_values *v, int field, int64_t number, bool is_number,
                               const char *text, mgrid_error *err) {
  const mgrid_nccl_field *f = &mgrid_nccl_fields[field];
  if (!is_number || number < f->low || number > f->high)
    return mgrid_fail(err, is_number ? MGRID_OUT_OF_RANGE : MGRID_BAD_VALUE,
                      "nccl field '%s' is %" PRId64 " to %" PRId64 ", not '%s'", f->name, f->low,
                      f->high, text);
  v->number[field] = number;
  v->given[field] = true;
  return MGRID_OK;
}

static mgrid_status set_word(mgrid_nccl_values *v, int field, const char *text, mgrid_error *err) {
  if (strlen(text) > MGRID_NCCL_TEXT_MAX)
    return mgrid_fail(err, MGRID_BAD_VALUE, "nccl field '%s' has at most %d characters",
                      mgrid_nccl_fields[field].name, MGRID_NCCL_TEXT_MAX);
  memcpy(v->net_name, text, strlen(text) + 1);
  v->given[field] = true;
  return MGRID_OK;
}

mgrid_status mgrid_nccl_set(mgrid_nccl_values *v, int field, int64_t number, mgrid_error *err) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, number);
  return mgrid_nccl_fields[field].kind == TEXT ? set_word(v, field, text, err)
                                               : set_number(v, field, number, true, text, err);
}

mgrid_status mgrid_nccl_set_text(mgrid_nccl_values *v, int field, const char *text,
                                 mgrid_error *err) {
  char *end;
  int64_t number = strtoll(text, &end, 10);
  /* such a character would start another field in the canonical text */
  if (strpbrk(text, " ,=\t\n"))
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "nccl field '%s' is text without blanks and commas, not '%s'",
                      mgrid_nccl_fields[field].name, text);
  return mgrid_nccl_fields[field].kind == TEXT
             ? set_word(v, field, text, err)
             : set_number(v, field, number, end != text && *end == '\0', text, err);
}

mgrid_status mgrid_nccl_agree(const mgrid_nccl_values *v, mgrid_error *err) {
  int64_t min = v->number[MGRID_NCCL_MIN_CTAS], max = v->number[MGRID_NCCL_MAX_CTAS];
  if (!v->given[MGRID_NCCL_MIN_CTAS] || !v->given[MGRID_NCCL_MAX_CTAS] || min <= max)
    return MGRID_OK;
  return mgrid_fail(err, MGRID_REFUSED,
                    "nccl field 'min_ctas' is %" PRId64 ", above 'max_ctas', which is %" PRId64,
                    min, max);
}

/* -------------------------------------------------------------------- text */

static mgrid_status unknown_field(const char *name, mgrid_error *err) {
  const char *known[MGRID_NCCL_FIELDS];
  char tail[768];
  for (int i = 0; i < MGRID_NCCL_FIELDS; i++) known[i] = mgrid_nccl_fields[i].name;
  mgrid_suggest(tail, sizeof tail, name, known, MGRID_NCCL_FIELDS);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown nccl field '%s'%s", name, tail);
}

static mgrid_status nccl_read_field(const char *name, const char *value, mgrid_nccl_values *v,
                                    mgrid_error *err) {
  int field = 0;
  while (field < MGRID_NCCL_FIELDS && strcmp(mgrid_nccl_fields[field].name, name) != 0) field++;
  if (field == MGRID_NCCL_FIELDS) return unknown_field(name, err);
  bool again = v->given[field];
  mgrid_status s = mgrid_nccl_set_text(v, field, value, err);
  return !s && again ? mgrid_fail(err, MGRID_DUPLICATE, "nccl field '%s' is given twice", name) : s;
}

mgrid_status mgrid_nccl_read(const char *text, mgrid_nccl_values *v, mgrid_error *err) {
  char *copy = mgrid_strdup(text ? text : ""), *save = NULL;
  mgrid_status s = copy ? MGRID_OK : mgrid_oom(err);
  memset(v, 0, sizeof *v);
  for (char *word = copy ? strtok_r(copy, " ,\t\n", &save) : NULL; word && !s;
       word = strtok_r(NULL, " ,\t\n", &save)) {
    char *eq = strchr(word, '=');
    if (eq) *eq = '\0';
    s = eq ? nccl_read_field(word, eq + 1, v, err)
           : mgrid_fail(err, MGRID_BAD_VALUE, "nccl option '%s' is not of the form field=value",
                        word);
  }
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
    if (mgrid_nccl_fields[i].kind == TEXT)
      mgrid_text_str(t, v->net_name);
    else
      mgrid_text_int(t, v->number[i]);
  }
}
