/* SPDX-License-Identifier: MIT
**
** nccl.h - what a recipe may say about NCCL communicators, and what they will cost: names and
** ranges of the fields of ncclConfig_t, and their memory. Arithmetic and text alone: NCCL itself
** belongs to comm/nccl.
*/
#ifndef MG_PLAN_NCCL_H
#define MG_PLAN_NCCL_H

#include "base/base.h"

typedef enum mg_nccl_name {
  MG_NCCL_BLOCKING,
  MG_NCCL_CGA_CLUSTER_SIZE,
  MG_NCCL_COLLNET_ENABLE,
  MG_NCCL_CTA_POLICY,
  MG_NCCL_GRAPH_STREAM_ORDERING,
  MG_NCCL_GRAPH_USAGE_MODE,
  MG_NCCL_MAX_CTAS,
  MG_NCCL_MAX_P2P_PEERS,
  MG_NCCL_MIN_CTAS,
  MG_NCCL_N_CHANNELS_PER_NET_PEER,
  MG_NCCL_NET_NAME,
  MG_NCCL_NUM_RMA_CTX,
  MG_NCCL_NVLINK_CENTRIC_SCHED,
  MG_NCCL_NVLS_CTAS,
  MG_NCCL_OPTIONAL, /* ours: leave out what the running NCCL does not know, instead of refusing */
  MG_NCCL_SHRINK_SHARE,
  MG_NCCL_SPLIT_SHARE,
  MG_NCCL_TRAFFIC_CLASS,
  MG_NCCL_FIELDS
} mg_nccl_name;

/* `version`: the first NCCL that reads the field (21800 is 2.18.0); older ones ignore it without
** a word. low > high: text. */
typedef struct mg_nccl_field {
  const char *name;
  int64_t     low, high;
  int         version;
} mg_nccl_field;
extern const mg_nccl_field mg_nccl_fields[MG_NCCL_FIELDS]; /* by name */

/* A value of each field that was given. */
typedef struct mg_nccl_values {
  bool    given[MG_NCCL_FIELDS];
  int64_t number[MG_NCCL_FIELDS];
  char    net_name[64];
} mg_nccl_values;

/* "max_ctas=16 min_ctas=4" in any order, separated by blanks or commas; checked for names and
** ranges. `text` NULL is "". */
mg_status mg_nccl_read(const char *text, mg_nccl_values *v, mg_error *err);
/* The same in canonical form: by name, one blank between. */
void mg_nccl_text(const mg_nccl_values *v, mg_text *t);

/* Bytes of GPU memory of a communicator of n ranks when it is made: of C channels each has a
** table of pointers (8 B a rank), of peers (600 B) and of ranks (4 B), and the communicator two
** blocks more, each rounded up to the 2 MiB that NCCL's cuMem allocations take: (3 C + 2) 2 MiB for
** small groups. NCCL 2.28.9, src/channel.cc and alloc.h, and the same in runs of its host code.
** C is max_ctas; where that is not given, MG_NCCL_CHANNELS, which a node of H100 uses at most. */
enum { MG_NCCL_CHANNELS = 32 };
int64_t mg_nccl_memory(const mg_nccl_values *v, int64_t n);
/* What the first all-reduce adds: 18.4 MiB per channel of buffers (in pinned host memory where
** the network takes them from there). */
int64_t mg_nccl_buffers(const mg_nccl_values *v, int64_t n);

#endif
