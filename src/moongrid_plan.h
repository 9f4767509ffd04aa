/* SPDX-License-Identifier: MIT
**
** moongrid_plan.h - topologies, which name families and their options, and plans: what all ranks
** agree on, its text and JSON, its proof, and the memory of its NCCL communicators.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_PLAN_H
#define MOONGRID_PLAN_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- topology */

/* Options of a family. Families share a communicator only if no list of mgrid_topology_concurrent
** has both, and their options are equal, apart from `first`, `lazy` and `single`, which say when or
** whether it is made. A text that is NULL or "" counts as not given. */
typedef struct mgrid_options {
  size_t size;        /* sizeof(mgrid_options) */
  bool unique;        /* never share a communicator with another family */
  bool first;         /* create before the families without this option; not with `lazy` */
  bool lazy;          /* leave out of mgrid_materialize; mgrid_state_create makes it */
  bool high_priority; /* its streams of NCCL have high priority */
  double timeout;     /* seconds that NCCL may take to create it, at most 1e9; 0: as the backend */
  /* NULL: as the state; else "mpi", "nccl" or "rccl"; "none": the groups only answer questions, and
  ** never have a communicator */
  const char *backend;
  const char *nccl; /* "min_ctas=4 max_ctas=16": ncclConfig_t fields, see lua/README.md */
  /* "x:4:periodic y:2", dims fastest first: the positions of each group form a grid of 4 x 2, and
  ** its communicator of MPI has this Cartesian topology (moongrid_mpi.h). Refused for groups of
  ** another size. Communicators of NCCL have no topology, but mgrid_group_shift works */
  const char *cartesian;
  /* "kv=4194304": memory registered with NCCL and made with the communicator: mgrid_nccl_window */
  const char *windows;
  const char *device; /* "barriers=4": a device communicator: mgrid_group_device */
  /* a family that is earlier in the schedule, with the same backend; neither may be lazy. The NCCL
  ** communicators of this family are split from those of the parent (ncclCommSplit; if the parent
  ** has nccl = "split_share=1", they share its resources). Each group must be part of one group of
  ** the parent, and groups must not share ranks */
  const char *parent;
  bool single; /* give groups of one rank, too, an MPI communicator of their own: mgrid_mpi_comm */
} mgrid_options;
#define MGRID_OPTIONS_INIT \
  { \
    sizeof(mgrid_options), false, false, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, \
        false \
  }

typedef struct mgrid_topology mgrid_topology;
typedef struct mgrid_plan mgrid_plan;

/* Make an empty topology; world is 1 to 2^31 - 1. A call that cannot add something breaks the
** topology: the topology keeps the first such error, and mgrid_plan_new returns it. So a family
** that could not be made is never left out silently. */
MGRID_API mgrid_topology *mgrid_topology_new(int64_t world, mgrid_error *err);
MGRID_API mgrid_topology *mgrid_topology_ref(mgrid_topology *t); /* another owner; never fails */
MGRID_API void mgrid_topology_free(mgrid_topology *t);
/* Add a family. Communicators are created in the order of these calls, those of families with
** `first` before all others, and those of lazy families on request. The names of families, grids
** and tensors must all be different. options may be NULL. */
MGRID_API mgrid_status mgrid_topology_add(mgrid_topology *t, const char *name,
                                          const mgrid_family *f, const mgrid_options *options,
                                          mgrid_error *err);
/* Add a grid, so that the plan and the state know its coordinates. */
MGRID_API mgrid_status mgrid_topology_add_grid(mgrid_topology *t, const char *name,
                                               const mgrid_grid *g, mgrid_error *err);
/* Declare n families (2 or more, each once) that are used at the same time, the most urgent first.
** Two of them never share a communicator, neither in a state nor between states of the backend,
** even if groups and options are equal: NCCL runs the calls on one communicator one after the
** other, whatever their streams. mgrid_group_launch_order follows the order of the names. The first
** family with communicators gets `high_priority`, unless a family of the list has that option
** already. A family in no list may still share communicators with a listed family. You may call
** this for several lists; an order that contradicts an earlier list is MGRID_REFUSED. The lists are
** part of the plan and its digest. O(families x names). */
MGRID_API mgrid_status mgrid_topology_concurrent(mgrid_topology *t, size_t n,
                                                 const char *const *names, mgrid_error *err);
/* Record a parameter of the recipe, once. It is printed, and part of the digest. Name and value are
** each one line of text in UTF-8, without control characters; the name has no '='. A value that is
** JSON (2, true, [1,2]) is written as such in the plan's JSON, any other as a string. (A recipe
** declares the kinds of its parameters; the values of those that are text are always strings.) */
MGRID_API mgrid_status mgrid_topology_param(mgrid_topology *t, const char *name, const char *value,
                                            mgrid_error *err);
/* Record the recipe's name. It is printed, but not part of the digest: paths differ between
** machines. */
MGRID_API mgrid_status mgrid_topology_recipe(mgrid_topology *t, const char *name, mgrid_error *err);

/* -------------------------------------------------------------------- plan */

/* Make the plan of a topology. O(families^2 x modes) for families that modes describe (mgrid_mode),
** in any world. Local: no communication. */
MGRID_API mgrid_plan *mgrid_plan_new(const mgrid_topology *t, mgrid_error *err);
MGRID_API mgrid_plan *mgrid_plan_ref(const mgrid_plan *p);
MGRID_API void mgrid_plan_free(mgrid_plan *p);

MGRID_API int64_t mgrid_plan_world(const mgrid_plan *p);
MGRID_API size_t mgrid_plan_nfamilies(const mgrid_plan *p);
MGRID_API const char *mgrid_plan_family_name(const mgrid_plan *p, size_t i);
/* Return the family of that name, or NULL. */
MGRID_API const mgrid_family *mgrid_plan_family(const mgrid_plan *p, const char *name);
MGRID_API const char *mgrid_plan_grid_name(const mgrid_plan *p, size_t i);
MGRID_API const mgrid_grid *mgrid_plan_grid(const mgrid_plan *p, const char *name); /* or NULL */
/* If all groups of the family use communicators of one earlier family, return the name of that
** earlier family, else NULL. */
MGRID_API const char *mgrid_plan_shares(const mgrid_plan *p, const char *family);
/* Write the digest as a string of 32 hexadecimal digits. It is the XXH3-128 of the plan's rules, as
** mgrid_plan_save writes them, with a newline after each. A NULL plan gives 32 times "0". */
MGRID_API void mgrid_plan_digest(const mgrid_plan *p, char out[33]);

/* Receives text piece by piece. Returns 0 to go on, any other number to stop. */
typedef int (*mgrid_sink)(void *ud, const char *text, size_t len);
/* Print the canonical text, the schedule of creation, or JSON. rank < 0: of the whole plan, else
** what that rank sees. MGRID_OUT_OF_RANGE for a rank outside the world, MGRID_OUTPUT if the sink
** stops. */
MGRID_API mgrid_status mgrid_plan_print(const mgrid_plan *p, mgrid_sink sink, void *ud,
                                        mgrid_error *err);
MGRID_API mgrid_status mgrid_plan_print_schedule(const mgrid_plan *p, int64_t rank, mgrid_sink sink,
                                                 void *ud, mgrid_error *err);
MGRID_API mgrid_status mgrid_plan_print_json(const mgrid_plan *p, int64_t rank, mgrid_sink sink,
                                             void *ud, mgrid_error *err);

/* Save a plan as JSON for mgrid_plan_read. The JSON has the number of the format, the version of
** moongrid, the name of the recipe, the world, the parameters, the rules and the digest. It takes
** milliseconds in any world, because ranks are written only for families that are lists.
** mgrid_plan_print_json for the whole plan (rank < 0) has the same, and more. */
MGRID_API mgrid_status mgrid_plan_save(const mgrid_plan *p, mgrid_sink sink, void *ud,
                                       mgrid_error *err);
/* Read a plan from the text of mgrid_plan_save, or of mgrid_plan_print_json of all ranks; at most
** 2^24 bytes. Messages call it `name` (NULL: "plan"). O(bytes + families^2 x modes). Local.
**
** The caller owns the plan, which has the saved digest, but no policies. The text need not be
** trusted: text that is not a saved plan is refused (MGRID_BAD_VALUE, or the error of a family's
** constructor), and reading has a budget (MGRID_LIMIT). The message has the line, "saved.json:4:
** ...", or the field, "saved.json: rules[3].rule.of: ...", and what was expected there. An unknown
** field of a rule is refused; unknown fields beside the rules are ignored. If the text has another
** format, the message says how to save the plan in this format. */
MGRID_API mgrid_plan *mgrid_plan_read(const char *text, size_t length, const char *name,
                                      mgrid_error *err);

/* Explain why two ranks communicate, as text or as JSON. For every group with both ranks it has
** their positions, the members between them, the communicator, and the step of each rank's schedule
** that makes it. Then it has the first communicator that both make, or without a common group the
** shortest chain of groups from a to b. JSON has "ranks", "groups", "first" and "chain"; the last
** two may be null. MGRID_OUT_OF_RANGE for a rank outside the world, MGRID_BAD_VALUE for the same
** rank twice, MGRID_LIMIT if no chain of two groups exists in a world above 2^24 ranks. Local.
** O(families + members between the two); a chain of more than two groups takes 12 bytes a rank. */
MGRID_API mgrid_status mgrid_plan_why(const mgrid_plan *p, int64_t a, int64_t b, bool json,
                                      mgrid_sink sink, void *ud, mgrid_error *err);

/* Counts over the whole plan (rank < 0), or of the groups and communicators of one rank. Groups of
** one rank count as `singles`, not in `groups` and `communicators`. */
typedef struct mgrid_plan_counts {
  size_t size; /* sizeof(mgrid_plan_counts) */
  int64_t families, groups, singles, communicators;
} mgrid_plan_counts;
#define MGRID_PLAN_COUNTS_INIT \
  { sizeof(mgrid_plan_counts), 0, 0, 0, 0 }
MGRID_API mgrid_status mgrid_plan_count(const mgrid_plan *p, int64_t rank, mgrid_plan_counts *out,
                                        mgrid_error *err);

/* Print what changes from plan a to plan b (the sink may be NULL): a line for each parameter,
** function, grid, family, tensor and list of concurrent families that is new (+), gone (-) or
** changed (~). If both have the same world, also print how many communicators the rank (below 0:
** rank 0) keeps when a trainer reloads, and put the numbers into *change, which may be NULL.
** Communicators that are never shared (of unique families, twins, and families with windows, a
** device communicator or a parent) are created again; lazy ones are not counted. */
typedef struct mgrid_change {
  size_t size;                    /* sizeof(mgrid_change) */
  int64_t kept, created, dropped; /* communicators of the rank */
} mgrid_change;
#define MGRID_CHANGE_INIT \
  { sizeof(mgrid_change), 0, 0, 0 }
MGRID_API mgrid_status mgrid_plan_diff(const mgrid_plan *a, const mgrid_plan *b, int64_t rank,
                                       mgrid_change *change, mgrid_sink sink, void *ud,
                                       mgrid_error *err);

/* Check that the plan is consistent. In every family, mgrid_family_locate finds each listed member
** at its group and position, a partition has each rank once, and there are mgrid_family_total
** members. In the schedule, every rank creates its groups in one order of all groups, and has in
** each group the position that the plan says. All members of a group create it, so no rank waits
** forever. MGRID_UNPROVED names family, group and position, or for the schedule rank, family and
** group. Every plan that this library makes is consistent, so a failure is a bug in the library.
** Worlds above 2^20 ranks are sampled, the same way in every process: 1024 members of each family,
** and about 256 ranks. O(members checked x modes) time, constant memory. Local. out may be NULL. */
typedef struct mgrid_plan_checked {
  size_t size;           /* sizeof(mgrid_plan_checked) */
  bool sampled;          /* only some members and ranks were checked */
  int64_t members;       /* checked, over all families */
  int64_t communicators; /* whose first member was checked; without sampling, all of the job */
  int64_t memberships;   /* communicators of each checked rank, added up */
  int64_t most_per_rank; /* communicators of the rank that has the most */
} mgrid_plan_checked;
#define MGRID_PLAN_CHECKED_INIT \
  { sizeof(mgrid_plan_checked), false, 0, 0, 0, 0 }
MGRID_API mgrid_status mgrid_plan_check(const mgrid_plan *p, mgrid_plan_checked *out,
                                        mgrid_error *err);

/* --------------------------------------------------------------- resources */

/* Predict the GPU memory of NCCL communicators from the sizes of NCCL's allocations (formula and
** source: src/comm/README.md): what they take when they are made, and what the first all-reduce on
** each adds. The number of channels is max_ctas of the family; without it 32, the most on a node of
** H100, or min_ctas if that is more. rank < 0: the most of any rank, field by field; an upper bound
** if the plan has more than 256 families, families with long lists of ranks, or ranks in very many
** different combinations of groups. O(families^2 x modes). Families of the backend mpi do not
** count. */
typedef struct mgrid_gpu_memory {
  size_t size;           /* sizeof(mgrid_gpu_memory) */
  int64_t communicators; /* of NCCL */
  int64_t created;       /* bytes that they take when they are made */
  int64_t first_use;     /* bytes that the first all-reduce on each adds */
} mgrid_gpu_memory;
#define MGRID_GPU_MEMORY_INIT \
  { sizeof(mgrid_gpu_memory), 0, 0, 0 }
MGRID_API mgrid_status mgrid_plan_gpu_memory(const mgrid_plan *p, int64_t rank,
                                             mgrid_gpu_memory *out, mgrid_error *err);

/* The machines on which a plan will run, for the prediction below. */
typedef struct mgrid_site {
  size_t size; /* sizeof(mgrid_site) */
  /* ranks of a machine, 1 to 4096; 0: MGRID_SITE_RANKS. Machine i has the ranks
  ** from i * machine_ranks on */
  int64_t machine_ranks;
  /* the GPUs of a machine lack NVLink SHARP, which 8 H100 or H200 with NVSwitch have */
  bool no_nvls;
  /* NCCL_MIN_CTAS and NCCL_MAX_CTAS in the environment of the job, which override options of
  ** families; 1 to 64, 0: not set */
  int64_t min_ctas, max_ctas;
} mgrid_site;
#define MGRID_SITE_INIT \
  { sizeof(mgrid_site), 0, false, 0, 0 }
/* ranks of a machine, each with a GPU; SMs of an H100 or H200; multicast objects of a machine with
** 8 such GPUs */
enum { MGRID_SITE_RANKS = 8, MGRID_SITE_SMS = 132, MGRID_SITE_NVLS_SLOTS = 128 };
/* What the NCCL communicators of a rank, lazy ones included, take when they are made and when they
** are used. src/comm/README.md has the formulas and their places in NCCL's source. */
typedef struct mgrid_resources {
  size_t size;           /* sizeof(mgrid_resources) */
  bool sampled;          /* only the ranks of some machines were counted */
  int64_t communicators; /* of NCCL */
  int64_t created;       /* bytes of GPU memory that they take when they are made */
  /* bytes besides `created`, for communicators with several ranks on a machine that has NVLink
  ** SHARP */
  int64_t nvls_created;
  int64_t ring; /* bytes that the first use of rings adds, on all communicators */
  int64_t tree; /* of trees, after rings were used */
  int64_t nvls; /* of NVLink SHARP */
  int64_t p2p;  /* of messages between all members */
  /* thread blocks of kernels that run at once, each of which takes an SM: for all families of a
  ** list of mgrid_topology_concurrent, or for one communicator */
  int64_t blocks;
  int64_t nvls_slots; /* multicast objects, on all GPUs of the rank's machine, after first use */
  /* file descriptors of the process after rings are used, if NCCL uses its sockets */
  int64_t files;
} mgrid_resources;
#define MGRID_RESOURCES_INIT \
  { sizeof(mgrid_resources), false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* site NULL: MGRID_SITE_INIT. rank < 0: the most of any rank, field by field. In a world of more
** than 4096 ranks on more than three machines, `communicators`, `created` and `ring` are then found
** as in mgrid_plan_gpu_memory, and the other fields are the most of the ranks on three machines:
** the first, one in the middle, and the last. O(ranks that are counted). Local. */
MGRID_API mgrid_status mgrid_plan_resources(const mgrid_plan *p, int64_t rank,
                                            const mgrid_site *site, mgrid_resources *out,
                                            mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
