/* SPDX-License-Identifier: MIT
**
** moongrid_resources.h - what a plan's NCCL communicators take, told before they exist; and what they have besides,
** where a family asks for it. moongrid.h includes this header, and its rules on words, errors and structs hold here, too.
*/
#ifndef MOONGRID_RESOURCES_H
#define MOONGRID_RESOURCES_H

#include "moongrid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Predict the GPU memory of NCCL communicators from the sizes of NCCL's allocations (formula and source:
** src/comm/README.md): what they take when they are made, and what the first all-reduce on each adds.
** The number of channels is max_ctas of the family; if that is not given, 32, the most on a node of
** H100. rank < 0: the most of all ranks, field by field; of more than 256 families, long lists or very many kinds of
** ranks an upper bound. O(families^2 x modes). Families made by mpi do not count. */
typedef struct mgrid_gpu_memory {
  size_t  size;          /* sizeof(mgrid_gpu_memory) */
  int64_t communicators; /* of NCCL */
  int64_t created;       /* bytes that they take when they are made */
  int64_t first_use;     /* bytes that the first all-reduce on each adds */
} mgrid_gpu_memory;
#define MGRID_GPU_MEMORY_INIT \
  { sizeof(mgrid_gpu_memory), 0, 0, 0 }
MGRID_API mgrid_status mgrid_plan_gpu_memory(const mgrid_plan *p, int64_t rank, mgrid_gpu_memory *out,
                                             mgrid_error *err);

/* Where a plan is to run, for the prediction below. */
typedef struct mgrid_site {
  size_t  size;               /* sizeof(mgrid_site) */
  int64_t machine_ranks;      /* ranks of a machine, 1 to 4096: machine i has i * machine_ranks and the next ones */
  bool    nvls;               /* the GPUs of a machine have NVLink SHARP, as 8 H100 or H200 with NVSwitch do */
  int64_t min_ctas, max_ctas; /* of NCCL_MIN_CTAS and NCCL_MAX_CTAS in the environment of the job, which override
                                 those of families; 1 to 64, 0: not set */
} mgrid_site;
#define MGRID_SITE_INIT \
  { sizeof(mgrid_site), 8, true, 0, 0 }
enum { MGRID_SITE_SMS = 132, MGRID_SITE_NVLS_SLOTS = 128 }; /* of an H100 or H200; of a machine with 8 of them */
/* What the NCCL communicators of a rank take, when they are made and when they are used, lazy ones too. Formulas and
** their places in NCCL's source: src/comm/README.md. */
typedef struct mgrid_resources {
  size_t  size;          /* sizeof(mgrid_resources) */
  bool    sampled;       /* only some machines of a large world were looked at */
  int64_t communicators; /* of NCCL */
  int64_t created;       /* bytes of GPU memory that they take when they are made */
  int64_t nvls_created;  /* bytes besides, of those with several ranks on a machine that has NVLink SHARP */
  int64_t ring;          /* bytes that the first use of an algorithm adds, on all of them: rings, */
  int64_t tree;          /* trees, where rings were used before, */
  int64_t nvls;          /* NVLink SHARP, */
  int64_t p2p;           /* and messages between all members */
  int64_t blocks;        /* thread blocks, one for an SM, of kernels that run at once: of the families of a
                            list of mgrid_topology_concurrent, or of one communicator */
  int64_t nvls_slots;    /* multicast objects, on all GPUs of the rank's machine, after first use */
  int64_t files;         /* file descriptors of the process, after rings are used, over NCCL's own sockets */
} mgrid_resources;
#define MGRID_RESOURCES_INIT \
  { sizeof(mgrid_resources), false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* site NULL: MGRID_SITE_INIT. rank < 0: of any rank, field by field; the most of all ranks. In a world above 4096 ranks
** communicators, created and ring are then those of mgrid_plan_gpu_memory, the others the most of the ranks on the first
** machine, one in the middle and the last. O(ranks looked at). Local. */
MGRID_API mgrid_status mgrid_plan_resources(const mgrid_plan *p, int64_t rank, const mgrid_site *site,
                                            mgrid_resources *out, mgrid_error *err);

/* A window of a group: memory of this rank from ncclMemAlloc, which all members have registered with
** ncclCommWindowRegister, as symmetric. A family names windows and their bytes in its option `windows`; they are made
** with its communicators, in schedule order, and freed before them. The family shares communicators with no other.
** Refused before anything is made where NCCL is older than 2.27.3. The plan counts them as GPU memory. */
typedef struct mgrid_nccl_window {
  size_t  size;   /* sizeof(mgrid_nccl_window) */
  void   *buffer; /* on the GPU, not zeroed; borrowed: it ends with the communicator */
  int64_t bytes;  /* as the family says */
  void   *handle; /* its ncclWindow_t: mgrid_nccl_window_of in moongrid_nccl.h */
} mgrid_nccl_window;
#define MGRID_NCCL_WINDOW_INIT \
  { sizeof(mgrid_nccl_window), NULL, 0, NULL }
/* The window of that name. All its fields are NULL and 0, without an error, where mgrid_group_native is NULL. An unknown
** name is MGRID_UNKNOWN_NAME. Local, no allocation. */
MGRID_API mgrid_status mgrid_group_window(const mgrid_group *g, const char *name, mgrid_nccl_window *out,
                                          mgrid_error *err);
/* The ncclDevComm that the option `device` asks for (NCCL 2.28.7), made in schedule order and destroyed before the
** communicator. *version (may be NULL): 22809 is NCCL 2.28.9, whose ncclDevComm it is; kernels built with headers of
** another 2.x cannot read it, which mgrid_nccl_device in moongrid_nccl.h looks at. NULL and 0 where there is none.
** Local. */
MGRID_API const void *mgrid_group_device(const mgrid_group *g, int *version);

#ifdef __cplusplus
}
#endif
#endif
