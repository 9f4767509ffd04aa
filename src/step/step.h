/* SPDX-License-Identifier: MIT
**
** step.h - what travels in a step. A step is evaluated into programs (program.c), one for each
** class of ranks that it cannot tell apart (there, too). types.c refines classes into types, whose
** ranks also wait for the same others; executor.c executes one rank of each type, over the places
** of loops.c; proof.c says what the result means. README.md has the argument.
*/
#ifndef MGRID_STEP_INSIDE_H
#define MGRID_STEP_INSIDE_H

#include "base/index.h"
#include "comm/backend.h"
#include "plan/plan.h"

/* Limits: of ranks; of classes; of the entries of all programs; of loops in loops; of the streams
** of a program. */
enum { STEP_WORLD_MAX = 1 << 26, STEP_CLASSES_MAX = 1 << 20 };
enum { STEP_NODES_MAX = 1 << 21, STEP_DEPTH_MAX = 16, STEP_STREAMS_MAX = 32 };
#define STEP_BYTES_MAX (INT64_C(1) << 53)
/* of a proof or a price, beside what has an entry for each rank */
#define STEP_MEMORY_MAX ((size_t)256 << 20)
#define STEP_LEAVES_MAX (INT64_C(1) << 60) /* operations of a program, loops unrolled */

/* ------------------------------------------------------------- operations.c */

/* What an operation does to a program. */
typedef enum step_role {
  STEP_TOGETHER, /* a collective: waits for all members */
  STEP_POINT,    /* a send or a receive */
  STEP_LOCAL,    /* of this rank alone */
  STEP_ORDER,    /* orders streams */
  STEP_BLOCK     /* has entries in it */
} step_role;

/* A call has its number of mgrid_step_operation (moongrid_step.h). */
typedef enum step_kind {
  STEP_ALL_REDUCE,
  STEP_ALL_GATHER,
  STEP_REDUCE_SCATTER,
  STEP_ALL_TO_ALL,
  STEP_BROADCAST,
  STEP_REDUCE,
  STEP_GATHER,
  STEP_SCATTER,
  STEP_BARRIER,
  STEP_SEND,
  STEP_RECV,
  STEP_SENDRECV,
  STEP_GROUP,
  STEP_LOOP,
  STEP_COMPUTE,
  STEP_ALLOC,
  STEP_FREE,
  STEP_MARK,
  STEP_EVENT,
  STEP_WAIT,
  STEP_HOST_WAIT,
  STEP_KINDS
} step_kind;

/* What a member sends, of a group of n. */
typedef enum step_travel {
  STEP_STAYS,        /* nothing */
  STEP_AROUND,       /* (n-1)/n of the bytes around a ring, to the next member */
  STEP_AROUND_TWICE, /* ... and once more; where switches reduce, its bytes once */
  STEP_ALONG,        /* the bytes along a chain, but for the last member */
  STEP_PAIRS,        /* 1/n of the bytes to each other member */
  STEP_TO_ROOT,      /* 1/n of the bytes to the root; from it */
  STEP_FROM_ROOT,
  STEP_MESSAGE /* the bytes to a position */
} step_travel;

typedef struct step_algorithm step_algorithm;

typedef struct step_operation {
  const char *name; /* in a recipe: s:all_reduce */
  step_role role;
  bool rooted;       /* has a root, a position */
  bool sized;        /* takes bytes */
  const char *takes; /* its arguments, for messages */
  step_travel travel;
  bool parts;      /* the bytes are a part for each member */
  mgrid_call call; /* makes it; of a rooted one but a broadcast, for the root alone */
  /* of a family, that stands for it: a gather or a scatter goes through the group as a broadcast
  ** does, and a sendrecv both ways lies on every edge of a ring, as an all_gather. NULL: none, as
  ** of receives, the other side of sends. */
  const char *traffic;
  /* of each library, the last without a name; the fastest counts. NULL: it goes straight. */
  const step_algorithm *nccl, *mpi;
} step_operation;

extern const step_operation mgrid_step_rows[]; /* by step_kind, STEP_KINDS of them */

/* --------------------------------------------------------- program.c: lists */

/* Lists of numbers, each once: list i is data[start[i]] to data[start[i + 1] - 1]. */
typedef struct step_lists {
  size_t n, used; /* lists; numbers in all */
  size_t *start;
  int32_t *data;
  mgrid_index index;
} step_lists;

/* Return the number of the list; -1: no memory. */
int32_t mgrid_step_lists_put(step_lists *x, const int32_t *list, size_t n);
void mgrid_step_lists_free(step_lists *x);

/* ------------------------------------------------------- program.c: budgets */

/* What an evaluation of all classes, a proof or a price may spend: the instructions and the seconds
** that the runtime has for a plan (mgrid_limits), and STEP_MEMORY_MAX. Without memory there is no
** more work. */
typedef struct step_budget {
  mgrid_budget work, memory; /* memory: bytes */
  const mgrid_limits *limits;
  const char *what; /* "the proof of the step" */
} step_budget;

void mgrid_step_budget_begin(step_budget *b, const mgrid_limits *limits, const char *what);
/* Count bytes before they are allocated. False: there may be no more. */
bool mgrid_step_budget_hold(step_budget *b, size_t bytes);
/* Once it is exhausted: MGRID_LIMIT, "the proof of the step takes more than 10 s of processor
** time". */
mgrid_status mgrid_step_budget_spent(const step_budget *b, mgrid_error *err);

/* ----------------------------------------------------------------- programs */

/* One entry of a program. Entries are stored in the order of the text, a block before what is in
** it. Equal programs are equal bytes, so there is no padding. */
typedef struct step_node {
  uint8_t kind;    /* step_kind */
  uint8_t listed;  /* all_to_all with bytes by position: `bytes` is their sum */
  uint16_t stream; /* of the program */
  int32_t slot;    /* of the step: the groups it goes over; -1: none */
  uint32_t end;    /* the entry after this one and all in it */
  int32_t line;    /* of the recipe; 0: not known */
  uint32_t file;   /* a word of the step: the source; */
  uint32_t name; /* of compute, alloc, free, mark; the list of bytes by position, "4,5"; "": none */
  uint32_t type; /* of the elements; "": none */
  /* STEP_WAIT, STEP_HOST_WAIT: the stream; STEP_WAIT of an event: its entry, see `listed` */
  int32_t other;
  int64_t bytes;  /* of the buffer; of compute: read and written */
  int64_t number; /* root; peer; count of a loop */
  double flops, seconds;
} step_node;

typedef struct step_program {
  size_t n;
  step_node *node; /* [n] */
  uint16_t nstreams;
  uint32_t stream[STEP_STREAMS_MAX]; /* their names, words; the first is "main" */
  int64_t leaves;                    /* operations, loops unrolled */
  int64_t calls;                     /* of them those that communicate; a sendrecv is one */
  int64_t classes;                   /* classes that have it */
} step_program;

/* The family whose communicators a family uses, if it shares all of them; else itself. */
static inline int32_t mgrid_step_leader(const mgrid_plan *p, int32_t family) {
  return p->shares[family] >= 0 ? p->shares[family] : family;
}

/* The groups that an operation goes over: the nth group of a rank in a family. */
typedef struct step_slot {
  int32_t entry, nth; /* index into the plan's content; 0 but for a cover */
} step_slot;

/* What a rank's program depends on. */
typedef enum step_asked {
  STEP_ASKED_SIZE,
  STEP_ASKED_POSITION,
  STEP_ASKED_INDEX,
  STEP_ASKED_COORD,
  STEP_ASKED_RANK
} step_asked;
typedef struct step_read {
  int32_t asked; /* step_asked */
  int32_t of;    /* the family, or the grid */
  int32_t nth;   /* the group of the rank in it; the dim of the grid */
} step_read;

typedef struct step_edge { /* of the tree: the answer to the read of a node leads to another one */
  int32_t node, child;     /* child >= 0: a node; ~child: a class; node -1: the slot is free */
  int64_t value;
} step_edge;

typedef struct step_branch {
  step_read read;
  int64_t value; /* the last answer and where it led, as ranks in a row often answer alike */
  int32_t child;
} step_branch;

typedef struct step_class {
  int32_t program;
  int64_t first, ranks; /* the lowest rank; how many */
} step_class;

struct mgrid_step {
  atomic_int refs;
  mgrid_plan *plan;
  size_t nwords, nslots, nprograms, nclasses, nbranches, nedges;
  char **word; /* [nwords], each once; word 0 is "" */
  step_slot *slot;
  step_program *program;
  step_class *class;
  step_branch *branch; /* the tree; the root is 0. None: the step reads nothing */
  step_edge *edge;
  mgrid_index edges; /* by node and value */
  int32_t *of;       /* [world]: the class of each rank */
  size_t nodes;      /* entries of all programs */
  mgrid_index words, programs;
  step_lists reads;    /* of the branches, each once: a step_read */
  mgrid_limits limits; /* of the runtime that evaluated it */
  uint64_t digest[2];
};

/* What mgrid_step_new asks of lua/evaluate.c. */
typedef struct step_request {
  const mgrid_plan *plan;
  const char *file; /* with a step of its own; NULL: the recipe's */
  bool ask;         /* only whether there is one */
  bool none;        /* the recipe has no step */
  mgrid_step *made;
} step_request;

/* ---------------------------------------------------------------- program.c */

/* A program while it is written. */
typedef struct step_writer {
  mgrid_step *step;
  int64_t rank;
  step_program now;
  size_t room;                   /* of now.node */
  int depth;                     /* of open blocks */
  uint32_t open[STEP_DEPTH_MAX]; /* their entries */
  bool grouped;                  /* the innermost open block is a group */
  size_t nreads, reads_room;
  step_read *read; /* each once, in the order of the first time */
  int64_t *value;  /* the answers */
} step_writer;

mgrid_step *mgrid_step_alloc(const mgrid_plan *plan, mgrid_error *err);
int32_t mgrid_step_word(mgrid_step *s, const char *text); /* its number; -1: no memory */
int32_t mgrid_step_slot_of(mgrid_step *s, int32_t entry, int32_t nth); /* likewise */
void mgrid_step_writer_begin(step_writer *w, mgrid_step *s, int64_t rank);
void mgrid_step_writer_free(step_writer *w);
/* Append an entry; NULL: no memory, or the step has STEP_NODES_MAX. */
step_node *mgrid_step_write(step_writer *w, step_kind kind);
/* Open the block of the last entry, and close the last one open. */
void mgrid_step_open(step_writer *w);
void mgrid_step_close(step_writer *w);
/* Count the operations of the program with loops unrolled. Return its n, or the entry at which
** there are more than STEP_LEAVES_MAX. */
uint32_t mgrid_step_count(step_program *p);
/* Return the number of the program in the step, which has each once and owns it from now on; -1: no
** memory. */
int32_t mgrid_step_keep(step_writer *w);
/* Append the program for people, an entry a line. `lines`: with the lines of the recipe. */
void mgrid_step_program_text(const mgrid_step *s, const step_program *p, bool lines, mgrid_text *t);
/* Append "all_reduce(tp)" or "recv(pp from 3)". */
void mgrid_step_node_text(const mgrid_step *s, const step_node *n, mgrid_text *t);
mgrid_status mgrid_step_take_digest(mgrid_step *s, mgrid_error *err);
const char *mgrid_step_family_of(const mgrid_step *s, const step_node *n); /* "" without one */

/* ------------------------------------------------------- program.c: classes */

/* The answer for a rank: the size of its group, -1 if there is none, and so on. */
int64_t mgrid_step_answer(const mgrid_plan *p, const step_read *read, int64_t rank);
/* Note a read of the program that is written and return its answer. False: no memory. */
bool mgrid_step_ask(step_writer *w, const step_read *read, int64_t *answer);
/* Return the class of a rank, -1: none yet. */
int32_t mgrid_step_find_class(mgrid_step *s, int64_t rank);
/* Add a class of the program that was written, with its reads. MGRID_REFUSED: the step does not
** follow from its reads. */
mgrid_status mgrid_step_add_class(step_writer *w, int32_t program, mgrid_error *err);
/* Return one of the s->reads.n questions that lead to other classes. */
static inline const step_read *mgrid_step_read_of(const mgrid_step *s, size_t i) {
  return (const step_read *)&s->reads.data[s->reads.start[i]];
}
/* Append what the step reads that differs between ranks: "pp.position, rank". */
void mgrid_step_reads_text(const mgrid_step *s, mgrid_text *t);

/* -------------------------------------------------------- report.c: traffic */

/* Append what families send, "tp = 12 B all_reduce; dp = 3 B send", for a model of traffic. */
mgrid_status mgrid_step_sends(const mgrid_step *s, mgrid_text *t, mgrid_error *err);

/* ------------------------------------------------------------------ types.c */

/* The ranks of a communicator as seen by types: those of its members. Equal ones are one. */
typedef struct step_circle {
  int32_t leader; /* the family whose communicator it is: index into the plan's content */
  bool ordered;   /* type[i] is that of position i; else each type once */
  int64_t size;   /* members of the group */
  int32_t n;
  int32_t *type; /* [n] */
} step_circle;

typedef struct step_type {
  int32_t class;
  int64_t first, ranks;
  int32_t *circle;   /* [nslots]: -1: in no group */
  int32_t *position; /* [nslots]: of an ordered circle; else 0 */
} step_type;

typedef struct step_types {
  size_t n, ncircles;
  step_type *type;
  step_circle *circle;
  int32_t *of;    /* [world] */
  int32_t *rooms; /* the lists of the types */
} step_types;

/* Refine the classes until ranks of one type have, for each slot, members of the same types.
** `apart`: ranks that differ in it are of two types; NULL: none do. O(world x families) each time
** that types are told apart. MGRID_LIMIT: the budget is spent, here and below. */
mgrid_status mgrid_step_types_of(const mgrid_step *s, const int32_t *apart, step_budget *b,
                                 step_types *out, mgrid_error *err);
void mgrid_step_types_free(step_types *t);
/* Set for each slot whether messages go from member to member over it. */
void mgrid_step_by_position(const mgrid_step *s, bool *slots);
/* Count the memory of a number for each rank and slot. */
bool mgrid_step_hold_slots(const mgrid_step *s, step_budget *b);

/* ---------------------------------------------------------- loops.c: places */

typedef enum step_rules {
  STEP_NCCL, /* streams in order; the calls on one communicator in one order */
  /* one operation of a GPU at a time, in the order of the program: what is left without free SMs */
  STEP_ISSUED,
  STEP_BLOCKING /* MPI: each call ends before the next begins */
} step_rules;

/* A place in a program: the entry, and the iterations left of the loops around it. A group is one
** entry. */
typedef struct step_place {
  uint32_t node; /* the program's n: at its end */
  int32_t depth; /* loops around it */
  int64_t at;    /* entries before it, loops unrolled */
  struct {
    uint32_t loop;
    int64_t left;  /* iterations after this one */
    int64_t began; /* `at` of the first entry of this iteration */
  } in[STEP_DEPTH_MAX];
} step_place;

/* Of each entry of a program: how many are before it, loops unrolled, in the last iteration of all
** loops around it (in a group: not set). Of each loop: its entries in one iteration, loops in it
** unrolled, and the streams that have some. */
typedef struct step_sizes {
  int64_t *last;   /* [n] */
  int64_t *leaves; /* [n]: of loops */
  uint32_t *streams;
  uint32_t *busy; /* the same, with computes */
} step_sizes;

/* Which entries a walk stops at: those of a stream (-1: all) that communicate or wait; or those on
** one circle. */
typedef struct step_stops {
  const step_program *program;
  const step_sizes *sizes;
  const int32_t *circle; /* of each slot */
  int32_t stream, only;  /* only: the circle; -1: any */
  /* computes take time, and loops that it takes as a whole are stops; NULL: none */
  const struct step_clock *clock;
  int32_t type;
  mgrid_budget *budget; /* of the walks; NULL: none */
} step_stops;

mgrid_status mgrid_step_sizes_of(const step_program *p, step_sizes *out, mgrid_error *err);
void mgrid_step_sizes_free(step_sizes *s);
/* Go to the first stop from this place on. Return whether a loop of more than `least` iterations
** began again on the way. */
bool mgrid_step_place_stop(const step_stops *w, step_place *at, int64_t least);
/* The same from the entry after it. */
bool mgrid_step_place_next(const step_stops *w, step_place *at, int64_t least);
/* Return the `at` of the last time that the entry `node` was passed before this place. */
int64_t mgrid_step_place_of(const step_stops *w, const step_place *at, uint32_t node);
/* Return the next entry from the place on, it included, that `is` accepts, in this iteration or a
** later one; the program's n: there is none. */
uint32_t mgrid_step_place_find(const step_program *p, const step_place *at, mgrid_budget *budget,
                               bool (*is)(const step_program *p, uint32_t node, const void *ud),
                               const void *ud);

/* --------------------------------------------------------------- executor.c */

/* One stream of one type. */
typedef struct step_cursor {
  int32_t type, stream; /* stream -1: all */
  int32_t circle;       /* >= 0: no stream, but the order of the calls on this circle */
  bool creates;         /* ... or its creation, at its first call, by the host */
  int32_t parts;        /* of its operation that others have not met yet */
  bool posted;          /* its operation has begun */
  bool queued;
  step_place place;
} step_cursor;

typedef struct step_post { /* an operation that waits for others */
  int32_t cursor;          /* -1: a send that was sent already, */
  int32_t type;            /* by this type */
  uint32_t node;
  int64_t ready; /* of a send that was sent already: when it is there */
} step_post;

/* a collective on a circle, or sends and receives from one position to another */
typedef struct step_match {
  int32_t circle, from, to; /* from -1: a collective */
  uint32_t nposts[2];       /* of collectives, sends; of receives, later collectives of groups */
  uint32_t first[2];        /* posts before these have met */
  step_post *post[2];       /* [first + nposts] */
} step_match;

static inline step_post *mgrid_step_posts(const step_match *x, int side) {
  return x->post[side] + x->first[side];
}

typedef struct step_executor {
  const mgrid_step *step;
  const step_types *types;
  step_rules rules;
  int64_t eager;
  step_sizes *sizes; /* [nprograms] */
  size_t ncursors;   /* those of type t are first[t] to first[t + 1] - 1 */
  step_cursor *cursor;
  size_t *first;
  size_t nmatches;
  step_match *match;
  mgrid_index matches;
  int32_t *queue; /* [ncursors]: a heap of those to look at */
  size_t queued;
  int32_t again; /* the cursor whose long loop began again; -1: none */
  struct step_skips *skips;
  struct step_clock *clock; /* what is done takes time (clock.h); NULL: none */
  step_budget *budget;
  bool failed;      /* out of memory */
  step_post odd[2]; /* two calls that do not fit; type -1: none */
} step_executor;

/* Execute the programs as far as they go: one rank of each type. A send of up to `eager` bytes does
** not wait, under STEP_BLOCKING. *done: every program reached its end, and every send was received.
** With a clock things take time; NULL: none do. MGRID_LIMIT: the budget is spent; the error says
** how far all ranks came. */
mgrid_status mgrid_step_executor_run(step_executor *m, const mgrid_step *s, const step_types *t,
                                     step_rules rules, int64_t eager, struct step_clock *clock,
                                     step_budget *b, bool *done, mgrid_error *err);
void mgrid_step_executor_free(step_executor *m);
step_stops mgrid_step_executor_stops(const step_executor *m, const step_cursor *c);
const step_program *mgrid_step_executor_program(const step_executor *m, int32_t type);
/* Return the match of an entry of a type; NULL: nobody has come yet. */
const step_match *mgrid_step_executor_match(const step_executor *m, const step_cursor *c,
                                            uint32_t node);
/* Return the cursor of the creation that keeps this one from going on; -1: none. */
int32_t mgrid_step_executor_creation(const step_executor *m, const step_cursor *c);
/* Return the cursor for which the host waits before it comes to a creation; -1: none. */
int32_t mgrid_step_executor_host(const step_executor *m, const step_cursor *c);

/* ----------------------------------------------------------- loops.c: skips */

/* Called when a long loop begins again: if the executor has come back to where it was, with only
** iterations gone, go on as many times as that repeats. */
void mgrid_step_skip(step_executor *m);
void mgrid_step_skips_free(struct step_skips *s);

/* ------------------------------------------------------------------ proof.c */

/* One rank of a counterexample. */
typedef struct step_waiting {
  int64_t rank, waits_for; /* -1: for none */
  int32_t program;
  uint32_t node; /* the program's n: it has ended */
  bool creates;  /* the communicator of that call */
} step_waiting;

enum { STEP_WAITING_MAX = 64 };  /* ranks of a counterexample */
enum { STEP_ASSUMES_MAX = 256 }; /* pairs of families that a proof assumes something of */

typedef struct step_pair {
  int32_t a, b; /* families, a before b */
} step_pair;

typedef enum step_verdict_kind {
  STEP_PROVED,
  STEP_MISMATCH,
  STEP_UNMATCHED,
  STEP_CYCLE,
  STEP_HAZARD
} step_verdict_kind;
extern const char *const mgrid_step_verdict_names[]; /* by step_verdict_kind: "proved" */

typedef struct step_verdict {
  step_verdict_kind told;
  size_t n;
  step_waiting waiting[STEP_WAITING_MAX]; /* [n]: the counterexample */
  size_t nassumes;
  /* [nassumes]: proved if these fit on a GPU together, or start in order */
  step_pair assumes[STEP_ASSUMES_MAX];
} step_verdict;

mgrid_status mgrid_step_conclude(const mgrid_step *s, step_rules rules, int64_t eager,
                                 step_verdict *v, mgrid_error *err);
/* Append one sentence: "rank 5 (pp 1, tp 1) waits in ...". */
void mgrid_step_verdict_text(const mgrid_step *s, const step_verdict *v, mgrid_text *t);

/* ----------------------------------------------------------- report.c: sums */

typedef struct step_sum { /* what one rank does over one family */
  int64_t calls, bytes;
} step_sum;

/* Add up a program by family: sum[nentries]. A sendrecv is two calls. Sums stop at INT64_MAX. */
void mgrid_step_sums(const mgrid_step *s, const step_program *p, step_sum *sum);
/* Return the operations of all ranks that communicate. */
int64_t mgrid_step_total(const mgrid_step *s);

#endif
