/* SPDX-License-Identifier: MIT
**
** nccl_options.h - options of NCCL communicators and their GPU memory: a table of the fields of
** ncclConfig_t, the values that a family gives them, and the memory of one communicator. Only
** arithmetic and text; the calls of NCCL are in comm/nccl.
*/
#ifndef MGRID_PLAN_NCCL_H
#define MGRID_PLAN_NCCL_H

#include "base/base.h"

typedef enum mgrid_nccl_name {
  MGRID_NCCL_BLOCKING,
  MGRID_NCCL_CGA_CLUSTER_SIZE,
  MGRID_NCCL_COLLNET_ENABLE,
  MGRID_NCCL_CTA_POLICY,
  MGRID_NCCL_GRAPH_STREAM_ORDERING,
  MGRID_NCCL_GRAPH_USAGE_MODE,
  MGRID_NCCL_HOST_CFT_MODE,
  MGRID_NCCL_LAUNCH_ORDER_IMPLICIT,
  MGRID_NCCL_MAX_CTAS,
  MGRID_NCCL_MAX_P2P_PEERS,
  MGRID_NCCL_MIN_CTAS,
  MGRID_NCCL_N_CHANNELS_PER_NET_PEER,
  MGRID_NCCL_NET_NAME,
  MGRID_NCCL_NUM_RMA_CTX,
  MGRID_NCCL_NUM_RMA_SIG,
  MGRID_NCCL_NVLINK_CENTRIC_SCHED,
  MGRID_NCCL_NVLS_CTAS,
  MGRID_NCCL_NVLS_HOST_MODE,
  /* moongrid's own: leave out fields that the running NCCL does not know, instead of refusing
  ** them */
  MGRID_NCCL_OPTIONAL,
  MGRID_NCCL_RMA_EAGER_INIT,
  MGRID_NCCL_SHRINK_SHARE,
  MGRID_NCCL_SPLIT_SHARE,
  MGRID_NCCL_TRAFFIC_CLASS,
  MGRID_NCCL_FIELDS
} mgrid_nccl_name;

typedef enum mgrid_nccl_kind {
  MGRID_NCCL_IS_FLAG,   /* 0 or 1 */
  MGRID_NCCL_IS_NUMBER, /* low to high */
  MGRID_NCCL_IS_TEXT    /* one word of at most MGRID_NCCL_TEXT_MAX characters */
} mgrid_nccl_kind;

typedef struct mgrid_nccl_field {
  const char *name;
  mgrid_nccl_kind kind;
  int64_t low, high; /* INT32_MAX: NCCL has no upper bound */
  /* the first NCCL that reads the field: 21800 is 2.18.0. Older releases ignore the field silently.
  ** 0: the field is moongrid's own */
  int version;
  const char *doc; /* for the annotations and the README; starts in lower case */
} mgrid_nccl_field;
extern const mgrid_nccl_field mgrid_nccl_fields[MGRID_NCCL_FIELDS]; /* sorted by name */

enum { MGRID_NCCL_TEXT_MAX = 63 };

/* The fields that were given, and their values. */
typedef struct mgrid_nccl_values {
  bool given[MGRID_NCCL_FIELDS];
  int64_t number[MGRID_NCCL_FIELDS]; /* 0 where not given */
  char net_name[MGRID_NCCL_TEXT_MAX + 1];
  int64_t windows; /* bytes of GPU memory of the family's windows, from the option `windows` */
} mgrid_nccl_values;

/* Set a field by a number, after a check of kind and range. It must be a flag or a number. */
mgrid_status mgrid_nccl_set(mgrid_nccl_values *v, int field, int64_t number, mgrid_error *err);
mgrid_status mgrid_nccl_set_text(mgrid_nccl_values *v, int field, const char *text,
                                 mgrid_error *err);
/* Refuse values that exclude each other. */
mgrid_status mgrid_nccl_agree(const mgrid_nccl_values *v, mgrid_error *err);
/* Read "max_ctas=16 min_ctas=4": in any order, separated by blanks or commas, each field once. NULL
** counts as "". */
mgrid_status mgrid_nccl_read(const char *text, mgrid_nccl_values *v, mgrid_error *err);
/* Write the values in canonical form: sorted by name, separated by one blank. */
void mgrid_nccl_text(const mgrid_nccl_values *v, mgrid_text *t);

/* Return the bytes of GPU memory that a communicator of n ranks takes when it is created
** (nccl_demand.c). Each of its C channels has three tables: pointers (8 bytes a rank), peers (600)
** and ranks (4). The communicator has two blocks more. Each table and block is rounded up to 2 MiB,
** the unit of NCCL's cuMem allocations; so a small group takes (3 C + 2) * 2 MiB. The sizes are
** from NCCL 2.28.9, src/channel.cc and alloc.h, and were observed in runs of its CPU code. C is
** max_ctas; without it MGRID_NCCL_CHANNELS, the most that a node of H100 uses, or min_ctas if that
** is more. Windows are added. */
enum { MGRID_NCCL_CHANNELS = 32 };
int64_t mgrid_nccl_granules(int64_t bytes); /* round up to whole allocations */
int64_t mgrid_nccl_memory(const mgrid_nccl_values *v, int64_t n);

/* Resources that one communicator takes on a rank; src/comm/README.md derives them. All are 0 for a
** group of one rank. */
typedef struct mgrid_demand {
  int64_t created;      /* bytes of GPU memory: mgrid_nccl_memory */
  int64_t nvls_created; /* additional bytes, for NVLink SHARP */
  /* bytes that the first use of an algorithm adds; for tree, if ring was used before */
  int64_t ring, tree;
  int64_t nvls, p2p;        /* p2p: after a message to and from every member */
  int64_t blocks;           /* thread blocks of a kernel, one for each channel */
  int64_t multicast, files; /* multicast objects of the rank's machine; file descriptors */
} mgrid_demand;
/* Compute the demand of a communicator of n ranks, `local` of them on this rank's machine,
** including itself. nvls: the machine has NVLink SHARP. */
void mgrid_nccl_demand(const mgrid_nccl_values *v, int64_t n, int64_t local, bool nvls,
                       mgrid_demand *out);

#endif
