/* SPDX-License-Identifier: MIT
**
** moongrid_survive.h - ranks are lost, and the job goes on: what it becomes. moongrid.h includes this header, and its
** rules hold here.
**
** WORDS
**   lost      a rank that has ended, or that nobody reaches any more
**   survivor  every other rank of the old plan
**   spare     a rank that a plan keeps in no family, to take the place of a lost one
**   next plan the plan of the survivors: the layout's ranks first, then those that are idle, which are its spares
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* which includes this header in its place */
#elif !defined MOONGRID_SURVIVE_H
#define MOONGRID_SURVIVE_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ spares */

/* Name the spares of a topology, each once; none of its families may have them. It is printed, and part of the digest. A
** recipe does this by spares = 2: its build gets a World of the other ranks. */
MGRID_API mgrid_status mgrid_topology_spares(mgrid_topology *t, size_t n, const int64_t *ranks, mgrid_error *err);
/* The number of spares of a plan, and the ith of them, ascending; -1: no such spare. */
MGRID_API int64_t mgrid_plan_nspares(const mgrid_plan *p);
MGRID_API int64_t mgrid_plan_spare(const mgrid_plan *p, int64_t i);

/* ---------------------------------------------------------- what would be */

typedef enum mgrid_loss_answer {
  MGRID_LOSS_STOP = 0,    /* the job ends; mgrid_loss_why says why */
  MGRID_LOSS_REPLACE = 1, /* the same layout: spares take the places of the lost ranks */
  MGRID_LOSS_SHRINK = 2   /* a smaller layout, the largest that the recipe accepts */
} mgrid_loss_answer;

typedef struct mgrid_losses mgrid_losses; /* a plan, and all that does not depend on which of its ranks are lost */
typedef struct mgrid_loss   mgrid_loss;   /* one loss, and what the job becomes */

typedef struct mgrid_losses_options {
  size_t             size;    /* sizeof(mgrid_losses_options) */
  const char        *how;     /* "replace", "shrink" or "stop", instead of asking the recipe; NULL: ask it */
  const char        *params;  /* a file of parameters, as of mgrid_runtime_plan_file; NULL: none */
  size_t             nparams; /* parameters that a shrink may change, "dp=3", as a policy returns them; with `how` */
  const char *const *changed;
} mgrid_losses_options;
#define MGRID_LOSSES_OPTIONS_INIT \
  { sizeof(mgrid_losses_options), NULL, NULL, 0, NULL }

/* Prepare for losses of a plan that the runtime made from these arguments. The plan, the runtime and copies of all
** arguments are kept. Local; plans for fewer ranks are made when they are first needed, and kept. One thread at a time.
** options may be NULL. */
MGRID_API mgrid_losses *mgrid_losses_new(mgrid_runtime *rt, const mgrid_plan *plan, size_t n, const char *const *args,
                                         const mgrid_losses_options *options, mgrid_error *err);
MGRID_API void          mgrid_losses_free(mgrid_losses *l);

/* Decide what the job becomes when these n ranks (1 or more) are lost.
** The answer is that of the recipe's policy `on_lost`, called with q = { ranks, lost, which = { ranks }, spares, missing }
** (lua/moongrid/meta_recipe.lua) about a dry state, so on each rank alone: ranks compare mgrid_loss_digest. Without such a
** policy it is "replace" where enough spares are left, else "shrink". Lost spares alone are always replaced, by none.
** A shrink tries worlds from the largest down with the arguments of the plan, and with the parameters that the policy
** returned in their place. Survivors that the new layout does not use are idle: they are spares of the next plan.
** Survivors keep their places as far as that keeps most groups together.
** A policy that fails, or returns none of these answers, is an error; what it answers and cannot be done is
** MGRID_LOSS_STOP. MGRID_OUT_OF_RANGE for an unknown rank, MGRID_DUPLICATE for a rank given twice, MGRID_REFUSED if all
** are lost. Local. `l` is free to go before the result. */
MGRID_API mgrid_loss *mgrid_loss_new(mgrid_losses *l, size_t n, const int64_t *lost, mgrid_error *err);
MGRID_API void        mgrid_loss_free(mgrid_loss *x);

MGRID_API mgrid_loss_answer mgrid_loss_how(const mgrid_loss *x);
MGRID_API const char       *mgrid_loss_why(const mgrid_loss *x); /* of a stop, else "" */
/* The next plan, NULL after a stop. Its world is the number of survivors. Borrowed. */
MGRID_API const mgrid_plan *mgrid_loss_plan(const mgrid_loss *x);
/* The old rank of a rank of the next plan, and the new rank of an old one; -1: there is none, or the rank is lost. */
MGRID_API int64_t mgrid_loss_old(const mgrid_loss *x, int64_t rank);
MGRID_API int64_t mgrid_loss_rank(const mgrid_loss *x, int64_t old);
/* Write the digest of answer, next plan and map, 32 hex digits and a 0: equal where ranks have decided the same. */
MGRID_API void mgrid_loss_digest(const mgrid_loss *x, char out[33]);

typedef struct mgrid_loss_sums {
  size_t  size;                /* sizeof(mgrid_loss_sums) */
  int64_t lost, survivors;     /* ranks */
  int64_t layout, idle;        /* ranks of the new layout, and survivors that are in none of its families */
  int64_t kept, made, dropped; /* communicators of the job: whose members and order stay, which are new, which end */
  int64_t stay, moved;         /* bytes that ranks of the new layout need and have; that others send them */
  int64_t missing;             /* bytes of the tensors, counted once, that no survivor holds */
  int64_t uncounted;           /* tensors of which only one of the plans has one of this shape: they do not move */
} mgrid_loss_sums;
#define MGRID_LOSS_SUMS_INIT \
  { sizeof(mgrid_loss_sums), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
MGRID_API mgrid_status mgrid_loss_describe(const mgrid_loss *x, mgrid_loss_sums *out, mgrid_error *err);

/* Return whether a group of the next plan has the members, in their order, of a communicator of the old plan with options
** that may share it. *family (borrowed) and *group (each may be NULL): a family of the old plan that has it. False also for
** groups of one rank, and for unknown ones. */
MGRID_API bool mgrid_loss_kept(const mgrid_loss *x, const char *family, int64_t group, const char **old_family,
                               int64_t *old_group);

/* A part of a tensor of which every copy is lost. */
typedef struct mgrid_loss_missing_part { /* never changes */
  const char    *tensor;
  int64_t        bytes;
  size_t         nholders; /* old ranks that held it, all lost */
  const int64_t *holders;
} mgrid_loss_missing_part;
/* The number of such parts, and the ith of them; NULL: there is none. mgrid_tensor_runs of the first holder has its
** indices. Borrowed. */
MGRID_API size_t                         mgrid_loss_nmissing(const mgrid_loss *x);
MGRID_API const mgrid_loss_missing_part *mgrid_loss_missing(const mgrid_loss *x, size_t i);

/* Plan the move that fills the new layout from surviving copies, seen from a rank of the next plan, whose ranks are those
** of the move. Tensors are named, or all that both plans have in one shape (n 0). What no survivor holds is missing from the
** move (mgrid_move_sums.missing). options may be NULL; `ranks` and `old` in it are the loss's own. */
MGRID_API mgrid_move *mgrid_loss_move(const mgrid_loss *x, int64_t rank, size_t n, const char *const *tensors,
                                      const mgrid_move_options *options, mgrid_error *err);

/* Print the loss as text, or as JSON. */
MGRID_API mgrid_status mgrid_loss_print(const mgrid_loss *x, bool json, mgrid_sink sink, void *ud, mgrid_error *err);

/* ------------------------------------------------------------- recovery */

typedef struct mgrid_recover_options {
  size_t      size;    /* sizeof(mgrid_recover_options) */
  const char *name;    /* of the new state; NULL: as the old one */
  double      timeout; /* seconds that those that remain wait for each other; 0: as the backend's */
  /* A host that finds out itself who is lost, where the backend cannot: a backend of those that remain, in which each has
  ** the rank that mgrid_loss_rank gives, and the n lost ranks of the old world. backend NULL: MPI finds out. */
  mgrid_backend *backend;
  size_t         nlost;
  const int64_t *lost;
} mgrid_recover_options;
#define MGRID_RECOVER_OPTIONS_INIT \
  { sizeof(mgrid_recover_options), NULL, 0, NULL, 0, NULL }

/* Go on without lost ranks. All that remain call it, also spares, when a call of theirs failed because of a loss
** (MGRID_LOST_RANK, or MPI's error classes of a failed process and of a revoked communicator), or mgrid_state_hurt says so.
** In order: it revokes the communicators of all states of the backend, and the backend's own duplicate, so that calls which
** wait end on all ranks; agrees on who is lost; decides by `losses`, which is of the state's plan, as mgrid_loss_new does,
** and compares the decision; opens a backend of those that remain, each with its rank of the next plan; and materializes that
** plan, beside the old state. The host's communicators are not touched. If another rank is lost meanwhile it starts over,
** with both. All communicators are made again: those that a rank has revoked cannot be kept (the log says how many).
**   *now   the state of the next plan, which owns its backend (mgrid_state_backend)
**   *loss  who is lost, and what the job becomes: the map of ranks, what has no copy
**   *move  the move that fills the new layout from surviving copies, seen from this rank; NULL: not asked for
** The old state only answers questions. Keep it until mgrid_state_settle succeeds, so that what is lost meanwhile can be
** recovered from it, too; then free it, which is local. Its settings go over to the new one.
** MGRID_UNSUPPORTED if the backend ends with its first lost rank (every MPI but Open MPI 5.0 and later under mpirun --with-ft
** ulfm; a carrier of the host without options.backend). MGRID_REFUSED if the job stops, by the recipe or because no layout
** fits those that remain; MGRID_DISAGREE if ranks decide differently; MGRID_NOT_NOW if no rank is lost; MGRID_TIMED_OUT if a
** rank that remains does not come, as one that is stopped: MPI takes it for lost only under mpirun --mca mpi_ft_detector true.
** After an error nothing was made, and the job goes on from its last checkpoint. */
MGRID_API mgrid_status mgrid_state_recover(mgrid_state *s, mgrid_losses *losses, const mgrid_recover_options *options,
                                           mgrid_state **now, mgrid_loss **loss, mgrid_move **move, mgrid_error *err);
/* Have all ranks of the state done their part? Called by all of them, with the result of each in `mine` and its error in
** *err. MGRID_OK on all, or an error on all: MGRID_LOST_RANK if a rank was lost or brings that; then free the state, which
** waits for nobody, and recover from the old one again. Else that of the first rank that failed by itself. A rank that was
** not lost must come, too. */
MGRID_API mgrid_status mgrid_state_settle(mgrid_state *s, mgrid_status mine, mgrid_error *err);
/* Find the least number that a rank brings, as the step that every rank has done. Collective over the backend; spares
** take part. */
MGRID_API mgrid_status mgrid_state_least(mgrid_state *s, int64_t *number, mgrid_error *err);
/* Is a rank of the state lost, or has one begun to recover? For a spare, and for a rank that has computed long. Local. */
MGRID_API bool mgrid_state_hurt(const mgrid_state *s);
/* The losses of the next plan, with the arguments that it was made from. */
MGRID_API mgrid_losses *mgrid_losses_after(const mgrid_losses *l, const mgrid_loss *x, mgrid_error *err);
/* Borrowed from the state. */
MGRID_API mgrid_backend *mgrid_state_backend(const mgrid_state *s);

#ifdef __cplusplus
}
#endif
#endif
