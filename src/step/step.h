/* SPDX-License-Identifier: MIT
**
** step.h - the parts of a step. The step is evaluated once for each class: the ranks that get equal
** answers to all that the step reads, and so have one program (program.c). types.c splits the ranks
** with equal programs into types: the groups of two ranks of one type have members of the same
** types. executor.c executes one rank of each type, and loops.c skips iterations that repeat.
** proof.c turns the end of the execution into a verdict. README.md has the rules, inside.md says
** why one rank stands for its type.
*/
#ifndef MGRID_STEP_INSIDE_H
#define MGRID_STEP_INSIDE_H

#include "base/index.h"
#include "comm/backend.h"
#include "plan/plan.h"

/* Limits of a step: the ranks of its world, its classes; the entries of all its programs, the depth
** of its loops, the streams of one program. */
enum { STEP_WORLD_MAX = 1 << 26, STEP_CLASSES_MAX = 1 << 20 };
enum { STEP_NODES_MAX = 1 << 21, STEP_DEPTH_MAX = 16, STEP_STREAMS_MAX = 32 };
#define STEP_BYTES_MAX (INT64_C(1) << 53) /* bytes of an operation */
/* bytes that a proof or a price may allocate; arrays with one element for each rank do not count */
#define STEP_MEMORY_MAX ((size_t)256 << 20)
#define STEP_LEAVES_MAX (INT64_C(1) << 60) /* operations of a program with its loops unrolled */

/* ------------------------------------------------------------- operations.c */

/* What an operation does in a program. */
typedef enum step_role {
  STEP_TOGETHER, /* a collective: ends when all members have begun it */
  STEP_POINT,    /* a send or a receive */
  STEP_LOCAL,    /* work of this rank alone */
  STEP_ORDER,    /* makes a stream wait, or records an event to wait for */
  STEP_BLOCK     /* a block: contains other entries */
} step_role;

/* The kinds of operations. Calls, the kinds that communicate, come first and have the numbers of
** mgrid_step_operation (moongrid_step.h). */
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
  STEP_CALLS, /* the number of calls */
  STEP_SENDRECV = STEP_CALLS,
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

/* What each member sends in a call of a group of n members. */
typedef enum step_travel {
  STEP_STAYS,        /* nothing */
  STEP_AROUND,       /* (n-1)/n of the bytes around a ring, to the next member */
  STEP_AROUND_TWICE, /* 2 (n-1)/n of the bytes; if switches reduce, the bytes once */
  STEP_ALONG,        /* all bytes along a chain; the last member sends nothing */
  STEP_PAIRS,        /* 1/n of the bytes to each other member */
  STEP_TO_ROOT,      /* 1/n of the bytes to the root */
  STEP_FROM_ROOT,    /* the root sends 1/n of the bytes to each other member */
  STEP_MESSAGE       /* all bytes to one position */
} step_travel;

typedef struct step_algorithm step_algorithm;

typedef struct step_operation {
  const char *name; /* name in a recipe: s:all_reduce */
  step_role role;
  bool rooted;       /* has a root, which is a position */
  bool sized;        /* takes bytes */
  const char *takes; /* its arguments, for error messages */
  step_travel travel;
  bool parts; /* the bytes consist of one part for each member */
  /* the call of a backend that makes it; reduce, gather and scatter also set mgrid_work.rooted */
  mgrid_call call;
  /* the word of src/machine/traffic.c that stands for the operation. A gather or a scatter goes
  ** through the group like a broadcast. A sendrecv in both directions uses each edge of a ring,
  ** like an all_gather. NULL: the operation sends nothing, or is a receive, whose send counts
  ** already */
  const char *traffic;
  /* the algorithms of each library, of which the fastest counts; an element without a name ends the
  ** array. NULL: the operation does not communicate, or is a message from one rank to another */
  const step_algorithm *nccl, *mpi;
} step_operation;

extern const step_operation mgrid_step_rows[]; /* [STEP_KINDS], by step_kind */

/* --------------------------------------------------------- program.c: lists */

/* Lists of numbers; equal lists are stored once. List i is data[start[i]] to data[start[i + 1] -
** 1]. */
typedef struct step_lists {
  size_t n, used; /* number of lists; numbers in all lists */
  size_t *start;
  int32_t *data;
  mgrid_index index;
} step_lists;

/* Return the number of the list, which is added if it is new; -1: no memory. */
int32_t mgrid_step_lists_put(step_lists *x, const int32_t *list, size_t n);
void mgrid_step_lists_free(step_lists *x);

/* ------------------------------------------------------- program.c: budgets */

/* What an evaluation of all classes, a proof or a price may spend: the instructions and seconds
** that a runtime grants a plan (mgrid_limits), and STEP_MEMORY_MAX. When the memory is exhausted,
** the work counts as exhausted, too. */
typedef struct step_budget {
  mgrid_budget work, memory; /* memory: bytes */
  const mgrid_limits *limits;
  const char *what; /* "the proof of the step" */
} step_budget;

void mgrid_step_budget_begin(step_budget *b, const mgrid_limits *limits, const char *what);
/* Count bytes before they are allocated. Return false if the memory is exhausted. */
bool mgrid_step_budget_hold(step_budget *b, size_t bytes);
/* The budget is exhausted: fail with MGRID_LIMIT, "the proof of the step takes more than 10 s of
** processor time". */
mgrid_status mgrid_step_budget_spent(const step_budget *b, mgrid_error *err);

/* ----------------------------------------------------------------- programs */

/* One entry of a program. Entries are stored in the order in which the step makes them; a block
** comes before its contents. A word is the index of a text in mgrid_step.word. Programs are
** compared byte by byte, so the struct has no padding. */
typedef struct step_node {
  uint8_t kind; /* step_kind */
  /* all_to_all: bytes are given by position, `bytes` is their sum; STEP_WAIT: `other` is an
  ** event */
  uint8_t listed;
  uint16_t stream; /* a stream of the program */
  int32_t slot;    /* index of a step_slot: the groups in which the operation runs; -1: none */
  uint32_t end;    /* the first entry after this one and its contents */
  int32_t line;    /* line in the recipe; 0: not known */
  uint32_t file;   /* a word: the file of `line` */
  /* a word: the name of a compute, alloc, free or mark; of an all_to_all the list of bytes by
  ** position, "4,5"; else "" */
  uint32_t name;
  uint32_t type; /* a word: the type of the elements; or "" */
  /* STEP_WAIT, STEP_HOST_WAIT: the stream to wait for; STEP_WAIT with `listed`: the entry of the
  ** event */
  int32_t other;
  int64_t bytes;  /* size of the buffer; of a compute: bytes that it reads and writes */
  int64_t number; /* the root; the peer of a message; the iterations of a loop */
  double flops, seconds;
} step_node;

typedef struct step_program {
  size_t n;
  step_node *node; /* [n] */
  uint16_t nstreams;
  uint32_t stream[STEP_STREAMS_MAX]; /* words: the names of the streams; the first is "main" */
  int64_t leaves;                    /* operations with loops unrolled; a group is one operation */
  /* operations that communicate, with loops unrolled; each call in a group counts, and a sendrecv
  ** outside of groups counts once */
  int64_t calls;
} step_program;

/* Return the family that owns the communicators of `family`: another family, if the two share all
** communicators, else `family` itself. */
static inline int32_t mgrid_step_leader(const mgrid_plan *p, int32_t family) {
  return p->shares[family] >= 0 ? p->shares[family] : family;
}

/* A slot says in which group of a rank an operation runs: the rank's nth group of a family. */
typedef struct step_slot {
  /* index of the family in the plan's content; nth is 0 unless the family is a cover */
  int32_t entry, nth;
} step_slot;

/* What a step can read about its rank. The program depends on these answers only. */
typedef enum step_asked {
  STEP_ASKED_SIZE,
  STEP_ASKED_POSITION,
  STEP_ASKED_INDEX,
  STEP_ASKED_COORD,
  STEP_ASKED_RANK
} step_asked;
typedef struct step_read {
  int32_t asked; /* step_asked */
  int32_t of;    /* the family or the grid that is asked */
  int32_t nth;   /* which group of the rank; of a grid: the dim */
} step_read;

/* an edge of the tree of questions (program.c): the child to which an answer at a node leads */
typedef struct step_edge {
  /* child >= 0: a node; child < 0: class ~child */
  int32_t node, child;
  int64_t value;
} step_edge;

typedef struct step_branch {
  step_read read;
  /* the last answer, and the child to which it led: neighbouring ranks often have equal answers */
  int64_t value;
  int32_t child;
} step_branch;

typedef struct step_class {
  int32_t program;
  int64_t first, ranks; /* the lowest rank of the class; the number of its ranks */
} step_class;

struct mgrid_step {
  atomic_int refs;
  mgrid_plan *plan;
  size_t nwords, nslots, nprograms, nclasses, nbranches, nedges;
  char **word; /* [nwords], each once; word 0 is "" */
  step_slot *slot;
  step_program *program;
  step_class *class;
  /* the nodes of the tree of questions; the root is 0. No nodes: all ranks get equal answers */
  step_branch *branch;
  step_edge *edge;
  mgrid_index edges; /* finds an edge by node and answer */
  int32_t *of;       /* [world]: the class of each rank */
  size_t nodes;      /* entries of all programs together */
  mgrid_index words, programs;
  step_lists reads;    /* the questions of all nodes, each once, as a step_read */
  mgrid_limits limits; /* limits of the runtime that evaluated the step */
  uint64_t digest[2];
};

/* Return the program of a rank. */
static inline const step_program *mgrid_step_of_rank(const mgrid_step *s, int64_t rank) {
  return &s->program[s->class[s->of[rank]].program];
}

/* A request to lua/evaluate.c. */
typedef struct step_request {
  const mgrid_plan *plan;
  const char *file; /* the file of the step; NULL: the step of the recipe */
  bool ask;         /* only find out whether the recipe has a step */
  bool none;        /* the recipe has no step */
  mgrid_step *made;
} step_request;

/* ---------------------------------------------------------------- program.c */

/* A program that is being written. */
typedef struct step_writer {
  mgrid_step *step;
  int64_t rank;
  step_program now;
  size_t room;                   /* entries for which now.node has memory */
  int depth;                     /* number of open blocks */
  uint32_t open[STEP_DEPTH_MAX]; /* entries of the open blocks */
  bool grouped;                  /* the innermost open block is a group */
  size_t nreads, reads_room;
  /* the questions that the step has asked, each once, in this order, without those to which all
  ** ranks give one answer; and the answers */
  step_read *read;
  int64_t *value;
} step_writer;

mgrid_step *mgrid_step_alloc(const mgrid_plan *plan, mgrid_error *err);
/* Return the number of the word, or of the slot, which is added if it is new; -1: no memory. */
int32_t mgrid_step_word(mgrid_step *s, const char *text);
int32_t mgrid_step_slot_of(mgrid_step *s, int32_t entry, int32_t nth);
void mgrid_step_writer_begin(step_writer *w, mgrid_step *s, int64_t rank);
void mgrid_step_writer_free(step_writer *w);
/* Append an entry. Return NULL if there is no memory or the step has STEP_NODES_MAX entries. */
step_node *mgrid_step_write(step_writer *w, step_kind kind);
/* Open a block, whose entry was appended last. */
void mgrid_step_open(step_writer *w);
/* Close the innermost open block. */
void mgrid_step_close(step_writer *w);
/* Set p->leaves and p->calls. Return p->n, or the entry at which the leaves exceed
** STEP_LEAVES_MAX. */
uint32_t mgrid_step_count(step_program *p);
/* Move the program to the step, unless the step has an equal program. Return the number of the
** program in the step; -1: no memory. */
int32_t mgrid_step_keep(step_writer *w);
/* Append the program as text for people, one entry on each line. `lines`: with the file and line of
** each entry. */
void mgrid_step_program_text(const mgrid_step *s, const step_program *p, bool lines, mgrid_text *t);
/* Append "all_reduce(tp)" or "recv(pp from 3)". */
void mgrid_step_node_text(const mgrid_step *s, const step_node *n, mgrid_text *t);
mgrid_status mgrid_step_take_digest(mgrid_step *s, mgrid_error *err);
const char *mgrid_step_family_of(const mgrid_step *s, const step_node *n); /* "" if it has none */

/* ------------------------------------------------------- program.c: classes */

/* Return the answer of a rank to a question, such as the size of its group; -1: the rank has no
** such group or coordinate. */
int64_t mgrid_step_answer(const mgrid_plan *p, const step_read *read, int64_t rank);
/* Set *answer to the answer of the writer's rank. Unless all ranks give the same answer, note that
** the program depends on this question. Return false if there is no memory. */
bool mgrid_step_ask(step_writer *w, const step_read *read, int64_t *answer);
/* Return the class of a rank by its answers; -1: none yet. */
int32_t mgrid_step_find_class(mgrid_step *s, int64_t rank);
/* Add a class for the program that was written, with its questions and answers. MGRID_REFUSED:
** after equal answers the step once asked other questions, so it depends on more than it reads. */
mgrid_status mgrid_step_add_class(step_writer *w, int32_t program, mgrid_error *err);
/* Return question i of the s->reads.n questions whose answers lead to different classes. */
static inline const step_read *mgrid_step_read_of(const mgrid_step *s, size_t i) {
  return (const step_read *)&s->reads.data[s->reads.start[i]];
}
/* Append the questions to which ranks give different answers: "pp.position, rank". */
void mgrid_step_reads_text(const mgrid_step *s, mgrid_text *t);

/* -------------------------------------------------------- report.c: traffic */

/* Append what the families send, as a traffic text: "tp = 12 B all_reduce; dp = 3 B send". */
mgrid_status mgrid_step_sends(const mgrid_step *s, mgrid_text *t, mgrid_error *err);

/* ------------------------------------------------------------------ types.c */

/* A circle: a communicator described by the types of its members. Communicators with the same
** description are one circle. */
typedef struct step_circle {
  /* type[i] is the type of the member at position i; else `type` has each type once */
  bool ordered;
  int64_t size; /* members of the group */
  int32_t n;
  int32_t *type; /* [n] */
} step_circle;

typedef struct step_type {
  int32_t class;
  int64_t first, ranks;
  int32_t *circle; /* [nslots]: the circle of the type's group; -1: in no group */
  /* [nslots]: the position of rank `first` in its group. If the circle is ordered, all ranks of the
  ** type have this position */
  int32_t *position;
} step_type;

typedef struct step_types {
  size_t n, ncircles;
  step_type *type;
  step_circle *circle;
  int32_t *of;    /* [world]: the type of each rank */
  int32_t *rooms; /* memory of the types' arrays */
} step_types;

/* Return the program of a type. */
static inline const step_program *mgrid_step_of_type(const mgrid_step *s, const step_types *t,
                                                     int32_t type) {
  return &s->program[s->class[t->type[type].class].program];
}
/* Split the ranks with equal programs into types until, in each slot, the groups of all ranks of a
** type have members of the same types. Ranks with different values in `apart` get different types;
** NULL: no such condition. Each round of splitting takes O(world x families). MGRID_LIMIT here and
** below: the budget is exhausted. */
mgrid_status mgrid_step_types_of(const mgrid_step *s, const int32_t *apart, step_budget *b,
                                 step_types *out, mgrid_error *err);
void mgrid_step_types_free(step_types *t);
/* Set for each slot whether some program sends messages from position to position over it. */
void mgrid_step_by_position(const mgrid_step *s, bool *slots);
/* Return the size of the largest group that the step uses. */
int64_t mgrid_step_largest(const mgrid_step *s);
/* The rank is a member of `group`. Return whether the slot means this group of the rank, because in
** a cover the rank may be in several. */
static inline bool mgrid_step_has(const mgrid_step *s, size_t slot, int64_t rank, int64_t group) {
  const mgrid_family *f = s->plan->content.entry[s->slot[slot].entry].family;
  int64_t of, position;
  return !f->overlapping
         || (f->form->locate(f, rank, s->slot[slot].nth, &of, &position) && of == group);
}
/* Count the memory of an array with one number for each rank and slot, except the first slots of
** families. Return false if it is too much. */
bool mgrid_step_hold_slots(const mgrid_step *s, step_budget *b);

/* ---------------------------------------------------------- loops.c: places */

typedef enum step_rules {
  STEP_NCCL, /* operations of a stream run in order, and so do calls on one communicator */
  /* a GPU executes one operation at a time, in the order of the program, as if it had no SMs for a
  ** second kernel */
  STEP_ISSUED,
  STEP_BLOCKING /* as in MPI: each call ends before the next begins */
} step_rules;

/* A place in a program: an entry, and how many iterations of the loops around it are left. A group
** counts as one entry. */
typedef struct step_place {
  uint32_t node; /* the program's n: at the end */
  int32_t depth; /* number of loops around the entry */
  int64_t at;    /* entries before the place, with loops unrolled */
  struct {
    uint32_t loop;
    int64_t left;  /* iterations after the present one */
    int64_t began; /* `at` when this iteration began */
  } in[STEP_DEPTH_MAX];
} step_place;

/* Counts for each entry of a program. Only loops have `leaves`, `streams` and `busy`. */
typedef struct step_sizes {
  /* entries before this entry, with loops unrolled, in the last iteration of all loops around it;
  ** not set inside a group */
  int64_t *last;
  int64_t *leaves;   /* entries in one iteration of the loop, with inner loops unrolled */
  uint32_t *streams; /* a bit for each stream on which the loop communicates or waits */
  uint32_t *busy;    /* a bit for each stream on which it communicates, waits or computes */
} step_sizes;

/* The entries at which a cursor (step_cursor) stops: the calls and waits of one stream, the calls
** of all streams, or the calls on one circle. */
typedef struct step_stops {
  const step_program *program;
  const step_sizes *sizes;
  const int32_t *circle; /* the circle of each slot */
  int32_t stream, only;  /* the stream, -1: all; the circle, -1: any */
  /* with a clock the cursor also stops at computes, and at loops that the clock takes as one
  ** operation; or NULL */
  const struct step_clock *clock;
  int32_t type;
  mgrid_budget *budget; /* of all searches for stops; NULL: no limit */
} step_stops;

mgrid_status mgrid_step_sizes_of(const step_program *p, step_sizes *out, mgrid_error *err);
void mgrid_step_sizes_free(step_sizes *s);
/* Go to the first stop at or after this place. Return whether a loop with more than `least`
** iterations left began a new iteration on the way. */
bool mgrid_step_place_stop(const step_stops *w, step_place *at, int64_t least);
/* Go to the first stop after this place; otherwise the same. */
bool mgrid_step_place_next(const step_stops *w, step_place *at, int64_t least);
/* Return the value of step_place.at at the entry `node`, in the present iteration of the loops
** around both the place and the entry, and in the last iteration of other loops around the
** entry. */
int64_t mgrid_step_place_of(const step_stops *w, const step_place *at, uint32_t node);
/* From the place on, find the first entry that `is` accepts, in this or a later iteration. Return
** the value of step_place.at there; inside a later loop, that of the loop's last iteration. -1:
** none. */
int64_t mgrid_step_place_find(const step_stops *w, const step_place *at, mgrid_budget *budget,
                              bool (*is)(const step_program *p, uint32_t node, const void *ud),
                              const void *ud);

/* --------------------------------------------------------------- executor.c */

/* A cursor: how far one stream of one type has come. */
typedef struct step_cursor {
  int32_t type, stream; /* stream -1: all streams */
  /* >= 0: the cursor keeps the calls on this circle in order, and is of no stream */
  int32_t circle;
  /* instead the cursor stands for the creation of the circle's communicator by the host */
  bool creates;
  int32_t parts; /* parts of the present operation (clock.h) that have not ended */
  bool posted;   /* the present operation has begun */
  bool queued;
  step_place place;
} step_cursor;

typedef struct step_post { /* an operation that waits for others */
  int32_t cursor;          /* -1: a send that has ended already */
  int32_t type;            /* the type that called it */
  uint32_t node;
  int64_t ready; /* of a send that has ended: when its bytes arrive */
} step_post;

/* where operations meet: a collective on a circle, or the messages between two positions */
typedef struct step_match {
  int32_t circle, from, to; /* from -1: a collective; lower: a creation (executor.c) */
  /* posts that wait: [0] collectives or sends; [1] receives, or collectives that wait for an
  ** earlier collective of the same s:group() */
  uint32_t nposts[2];
  uint32_t first[2];  /* posts before this index have met */
  step_post *post[2]; /* [first + nposts] */
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
  size_t ncursors;   /* type t has the cursors first[t] to first[t + 1] - 1 */
  step_cursor *cursor;
  size_t *first;
  size_t nmatches;
  step_match *match;
  mgrid_index matches;
  int32_t *queue; /* [ncursors]: a heap of the cursors to look at */
  size_t queued;
  int32_t again; /* the cursor whose long loop began a new iteration; -1: none */
  struct step_skips *skips;
  struct step_clock *clock; /* with a clock operations take time (clock.h); or NULL */
  step_budget *budget;
  bool failed;      /* out of memory */
  step_post odd[2]; /* two calls that met and cannot be one call; type -1: none */
} step_executor;

/* Execute the program of one rank of each type until no operation can begin. Under STEP_BLOCKING a
** send of at most `eager` bytes does not wait. *done: every program reached its end and every send
** was received. `clock`: operations take time; NULL: they take none. MGRID_LIMIT: the budget is
** exhausted, and the error says how far all ranks came. */
mgrid_status mgrid_step_executor_run(step_executor *m, const mgrid_step *s, const step_types *t,
                                     step_rules rules, int64_t eager, struct step_clock *clock,
                                     step_budget *b, bool *done, mgrid_error *err);
void mgrid_step_executor_free(step_executor *m);
step_stops mgrid_step_executor_stops(const step_executor *m, const step_cursor *c);
const step_program *mgrid_step_executor_program(const step_executor *m, int32_t type);
/* Return the match in which an entry of the cursor meets other ranks; NULL: no rank has made such a
** call yet. */
const step_match *mgrid_step_executor_match(const step_executor *m, const step_cursor *c,
                                            uint32_t node);
/* The operation of cursor c waits for earlier operations of its rank on the same communicators.
** Return the cursor of a circle that is still at such an earlier operation; -1: there is none. */
int32_t mgrid_step_executor_earlier(const step_executor *m, const step_cursor *c);
/* Return the cursor of a creation (`creates`) for which cursor c waits; -1: none. */
int32_t mgrid_step_executor_creation(const step_executor *m, const step_cursor *c);
/* Cursor c is a creation. Return the cursor for which the host waits before that creation; -1:
** none. */
int32_t mgrid_step_executor_host(const step_executor *m, const step_cursor *c);

/* ----------------------------------------------------------- loops.c: skips */

/* Called when a long loop begins a new iteration. If the executor is in the same state as at an
** earlier iteration, the execution repeats: skip as many repetitions as the loops allow. */
void mgrid_step_skip(step_executor *m);
void mgrid_step_skips_free(struct step_skips *s);

/* ------------------------------------------------------------------ proof.c */

/* One rank of a counterexample. */
typedef struct step_waiting {
  int64_t rank, waits_for; /* the rank for which it waits, -1: for none */
  int32_t program;
  uint32_t node; /* where it waits; the program's n: its program has ended */
  bool creates;  /* it waits for the creation of the communicator of `node` */
} step_waiting;

enum { STEP_WAITING_MAX = 64 };  /* ranks of a counterexample */
enum { STEP_ASSUMES_MAX = 256 }; /* pairs of families about which a proof assumes something */

typedef struct step_pair {
  int32_t a, b; /* indexes of families, a < b */
} step_pair;

typedef enum step_verdict_kind {
  STEP_PROVED,
  STEP_MISMATCH,
  STEP_UNMATCHED,
  STEP_CYCLE,
  STEP_HAZARD
} step_verdict_kind;
/* the name of each verdict, by step_verdict_kind: "proved" */
extern const char *const mgrid_step_verdict_names[];

typedef struct step_verdict {
  step_verdict_kind told;
  size_t n;
  step_waiting waiting[STEP_WAITING_MAX]; /* [n]: the ranks of the counterexample */
  size_t nassumes;
  /* [nassumes]: the step is proved if the calls of each pair fit on a GPU together, or start in one
  ** order on all ranks */
  step_pair assumes[STEP_ASSUMES_MAX];
} step_verdict;

mgrid_status mgrid_step_conclude(const mgrid_step *s, step_rules rules, int64_t eager,
                                 step_verdict *v, mgrid_error *err);
/* Append the counterexample as one sentence: "rank 5 (pp 1, tp 1) waits in ...". */
void mgrid_step_verdict_text(const mgrid_step *s, const step_verdict *v, mgrid_text *t);

/* ----------------------------------------------------------- report.c: sums */

typedef struct step_sum { /* what one rank does in one family */
  int64_t calls, bytes;
} step_sum;

/* Add up the calls and bytes of a program by family: sum[nentries]. The send and the receive of a
** sendrecv are two calls. Sums do not grow beyond INT64_MAX. */
void mgrid_step_sums(const mgrid_step *s, const step_program *p, step_sum *sum);
/* Return the sum of step_program.calls over all ranks. */
int64_t mgrid_step_total(const mgrid_step *s);

#endif
