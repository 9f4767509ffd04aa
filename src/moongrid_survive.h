/* SPDX-License-Identifier: MIT
**
** moongrid_survive.h - what a job becomes when ranks are lost, how the job goes on, and how new
** ranks join it. moongrid.h includes this header, and its rules hold here.
**
** WORDS
**   lost      a rank that has ended, or that the others cannot reach
**   survivor  every other rank of the old plan
**   spare     a rank outside all families, kept to take the place of a lost rank
**   next plan the plan of the survivors: the ranks of the layout first, then the idle survivors, which are its spares
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_SURVIVE_H
#define MOONGRID_SURVIVE_H

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ spares */

/* Set the spares of a topology, each once; no family of it may contain them. They are printed, and
** part of the digest. A recipe does this by spares = 2: its build gets a World of the other
** ranks. */
MGRID_API mgrid_status mgrid_topology_spares(mgrid_topology *t, size_t n, const int64_t *ranks,
                                             mgrid_error *err);
/* mgrid_plan_nspares returns how many spares a plan has, mgrid_plan_spare the ith of them,
** ascending; -1: there is none. */
MGRID_API int64_t mgrid_plan_nspares(const mgrid_plan *p);
MGRID_API int64_t mgrid_plan_spare(const mgrid_plan *p, int64_t i);

/* ------------------------------------------------------------------ losses */

typedef enum mgrid_loss_answer {
  MGRID_LOSS_STOP = 0,    /* the job ends; mgrid_loss_describe says why */
  MGRID_LOSS_REPLACE = 1, /* the same layout: spares take the places of the lost ranks */
  MGRID_LOSS_SHRINK = 2   /* a smaller layout, the largest that the recipe accepts */
} mgrid_loss_answer;

typedef struct mgrid_losses mgrid_losses; /* a plan, and all data that its possible losses share */
typedef struct mgrid_loss mgrid_loss;     /* one loss, and what the job becomes */

typedef struct mgrid_losses_options {
  size_t size;        /* sizeof(mgrid_losses_options) */
  const char *how;    /* "replace", "shrink" or "stop"; NULL: ask the recipe */
  const char *params; /* a file of parameters, as of mgrid_runtime_plan; NULL: none */
  /* parameters that a shrink changes, such as "dp=3", as a policy may return them; only with
  ** `how` */
  size_t nparams;
  const char *const *changed;
} mgrid_losses_options;
#define MGRID_LOSSES_OPTIONS_INIT \
  { sizeof(mgrid_losses_options), NULL, NULL, 0, NULL }

/* Prepare for losses of a plan that the runtime made from these arguments. The result keeps the
** plan, the runtime, copies of all arguments, and the plans for fewer ranks, each of which is made
** when it is first needed. Local. One thread at a time. options may be NULL. */
MGRID_API mgrid_losses *mgrid_losses_new(mgrid_runtime *rt, const mgrid_plan *plan, size_t n,
                                         const char *const *args,
                                         const mgrid_losses_options *options, mgrid_error *err);
MGRID_API void mgrid_losses_free(mgrid_losses *l);

/* Decide what the job becomes when these n ranks (1 or more) are lost. Local. You may free `l`
** before the result. The recipe's policy `on_lost` answers. It is called with q = { ranks, lost,
** which = { ranks }, spares, places, missing } (lua/moongrid/meta_recipe.lua) on a dry state. Each
** rank decides alone; then compare mgrid_loss_digest between ranks. Without such a policy the
** answer is "replace" if enough spares are left, else "shrink". If only spares are lost, the policy
** can only stop the job: any other answer is "replace", and no rank moves. A shrink tries layouts
** from the largest down with the arguments of the plan, none larger than the present one;
** parameters that the policy returned replace those arguments. Survivors that the new layout does
** not use are idle: they are spares of the next plan. The others take the places that keep the most
** groups together. It is an error if the policy fails, or returns none of these answers. An answer
** that cannot be carried out gives MGRID_LOSS_STOP. MGRID_OUT_OF_RANGE for an unknown rank,
** MGRID_DUPLICATE for a rank given twice, MGRID_REFUSED if all are lost. */
MGRID_API mgrid_loss *mgrid_loss_new(mgrid_losses *l, size_t n, const int64_t *lost,
                                     mgrid_error *err);
MGRID_API void mgrid_loss_free(mgrid_loss *x);

/* The next plan, NULL after a stop. Its world is the number of survivors. Borrowed. */
MGRID_API const mgrid_plan *mgrid_loss_plan(const mgrid_loss *x);
/* Return the old rank of a rank of the next plan, or the rank in the next plan of an old rank; -1:
** there is none, or the rank is lost. */
MGRID_API int64_t mgrid_loss_old(const mgrid_loss *x, int64_t rank);
MGRID_API int64_t mgrid_loss_rank(const mgrid_loss *x, int64_t old);
/* Write the digest of the decision (lost ranks, answer, next plan, map of ranks), 32 hex digits and
** a 0: it is equal on ranks that decided the same. */
MGRID_API void mgrid_loss_digest(const mgrid_loss *x, char out[33]);

typedef struct mgrid_loss_sums {
  size_t size;             /* sizeof(mgrid_loss_sums) */
  int64_t lost, survivors; /* ranks */
  int64_t layout, idle;    /* ranks of the new layout; survivors in none of its families */
  /* communicators of the job: in both plans (mgrid_loss_kept); only in the next plan; only in the
  ** old one */
  int64_t kept, made, dropped;
  int64_t stay, moved; /* bytes that ranks of the new layout already hold; that others send them */
  int64_t missing;     /* bytes that no survivor holds, each counted once */
  /* tensors that only one of the two plans has in this shape: they do not move */
  int64_t uncounted;
  mgrid_loss_answer how;
  const char *why; /* the reason of a stop, else ""; borrowed */
} mgrid_loss_sums;
#define MGRID_LOSS_SUMS_INIT \
  { sizeof(mgrid_loss_sums), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, MGRID_LOSS_STOP, "" }
MGRID_API mgrid_status mgrid_loss_describe(const mgrid_loss *x, mgrid_loss_sums *out,
                                           mgrid_error *err);

/* Return whether a group of the next plan keeps a communicator of the old plan: equal ordered
** members, and options that allow sharing. *old_family (borrowed) and *old_group (each may be NULL)
** then name a group of that communicator in the old plan. False also for groups of one rank, and
** for unknown groups. */
MGRID_API bool mgrid_loss_kept(const mgrid_loss *x, const char *family, int64_t group,
                               const char **old_family, int64_t *old_group);

/* A part of a tensor of which every copy is lost. */
typedef struct mgrid_loss_missing_part { /* never changes */
  const char *tensor;
  int64_t bytes;
  size_t nholders; /* old ranks that held it, all lost */
  const int64_t *holders;
} mgrid_loss_missing_part;
/* The ith of such parts; NULL: there are no more. mgrid_tensor_runs of the first holder has its
** indices. Borrowed. */
MGRID_API const mgrid_loss_missing_part *mgrid_loss_missing(const mgrid_loss *x, size_t i);

/* Plan the move that fills the new layout from surviving copies, seen from a rank of the next plan.
** The move numbers ranks as the next plan does. Name n tensors; n 0 takes all that both plans have
** in the same shape. MGRID_REFUSED if there are none, or the job stops. Parts that no survivor
** holds are missing from the move (mgrid_move_sums.missing). options may be NULL; the loss sets its
** `ranks` and `old`. */
MGRID_API mgrid_move *mgrid_loss_move(const mgrid_loss *x, int64_t rank, size_t n,
                                      const char *const *tensors, const mgrid_move_options *options,
                                      mgrid_error *err);

/* Print the loss as text, or as JSON. */
MGRID_API mgrid_status mgrid_loss_print(const mgrid_loss *x, bool json, mgrid_sink sink, void *ud,
                                        mgrid_error *err);

/* ------------------------------------------------------------- recovery */

typedef struct mgrid_recover_options {
  size_t size;      /* sizeof(mgrid_recover_options) */
  const char *name; /* of the new state; NULL: as the old one */
  double timeout;   /* seconds that survivors wait for each other; 0: as the backend's */
  /* For a host that finds the lost ranks itself, where the backend cannot: a backend of the
  ** survivors, each with the rank that mgrid_loss_rank gives, and the nlost lost ranks of the old
  ** world. backend NULL: MPI finds them. */
  mgrid_backend *backend;
  size_t nlost;
  const int64_t *lost;
  /* NCCL: if a group only lost members, make its communicator by ncclCommShrink where this works on
  ** all of its survivors, and by a new id elsewhere. Equal on all ranks. */
  bool nccl_shrink;
} mgrid_recover_options;
#define MGRID_RECOVER_OPTIONS_INIT \
  { sizeof(mgrid_recover_options), NULL, 0, NULL, 0, NULL, false }

/* Go on without lost ranks. Collective over all survivors, spares too. Call it when a call failed
** because of a loss (MGRID_LOST_RANK, or MPI's error classes of a failed process and of a revoked
** communicator), or mgrid_state_hurt is true. In order, it
**   1. revokes the communicators of all states of the backend, and the backend's own duplicate, so that waiting calls
**      end on all ranks;
**   2. agrees on which ranks are lost;
**   3. decides by `losses`, which must be of the state's plan, as mgrid_loss_new does, and compares the decision;
**   4. opens a backend of the survivors, each with its rank of the next plan, and materializes that plan beside the old
**      state.
** It does not touch the host's communicators. If another rank is lost meanwhile, it starts again,
** with all lost ranks. It makes all communicators again, because revoked communicators cannot be
** kept (the log has their number). If no rank is lost, as after a call that failed for another
** reason, all ranks keep their places, and go on with new communicators. With options.backend step
** 1 ends only the calls of this rank, so every rank must call mgrid_state_recover.
**   *now   the state of the next plan, which owns its backend (mgrid_state_backend)
**   *loss  the lost ranks, and what the job becomes: the map of ranks, the parts without a copy; loss may be NULL
**   *move  the move that fills the new layout from surviving copies, seen from this rank; move NULL: plan none
** If the plans have no tensor in common, pass move NULL (else MGRID_REFUSED). The old state then
** only answers questions. Keep it until mgrid_state_settle succeeds, so that you can recover from
** it once more; then free it, which is local. The new state takes over its settings.
** MGRID_UNSUPPORTED if the backend ends with its first lost rank (every MPI but Open MPI 5.0 and
** later under mpirun --with-ft ulfm; a carrier of the host without options.backend). MGRID_REFUSED
** if the job stops, by the recipe or because no layout fits the survivors; MGRID_DISAGREE if ranks
** decide differently; MGRID_TIMED_OUT, with the rank, if a survivor does not come: it is stopped,
** or it ended by itself, and MPI declares such a rank lost only under mpirun --mca mpi_ft_detector
** true. After an error nothing was made; start again from the last checkpoint. The caller frees all
** results. */
MGRID_API mgrid_status mgrid_state_recover(mgrid_state *s, mgrid_losses *losses,
                                           const mgrid_recover_options *options, mgrid_state **now,
                                           mgrid_loss **loss, mgrid_move **move, mgrid_error *err);
/* Agree on whether every rank of the state has succeeded. Collective: each rank passes its result
** in `mine` and its error in *err. Return MGRID_OK on all ranks, or an error on all:
** MGRID_LOST_RANK if a rank was lost or passes that status; then free the state, which does not
** wait, and recover from the old one again. Otherwise the error of the first rank that failed by
** itself. Every rank that is not lost must call it. If a rank dies during the call, MPI may give
** the result to only some of the other ranks; those without it return MGRID_LOST_RANK, and all meet
** again in the recovery. */
MGRID_API mgrid_status mgrid_state_settle(mgrid_state *s, mgrid_status mine, mgrid_error *err);
/* Set *number to the least *number of all ranks, such as the last step that every rank has done.
** Collective over the backend; spares take part. On an error, such as MGRID_LOST_RANK, *number is
** unchanged. */
MGRID_API mgrid_status mgrid_state_least(mgrid_state *s, int64_t *number, mgrid_error *err);
/* Return whether a rank of the state is lost, or has begun to recover. For spares, and for ranks
** that compute for long without a call. Local, but it calls MPI, so call it only where this rank
** may call MPI. */
MGRID_API bool mgrid_state_hurt(const mgrid_state *s);
/* Return the losses of the next plan, with the arguments that made it. Local; the caller frees
** them. NULL with MGRID_USAGE after a stop, which has no next plan. */
MGRID_API mgrid_losses *mgrid_losses_after(const mgrid_losses *l, const mgrid_loss *x,
                                           mgrid_error *err);
/* Return the backend of a state. Borrowed from the state. */
MGRID_API mgrid_backend *mgrid_state_backend(const mgrid_state *s);

/* ------------------------------------------------------ ranks that join */

typedef struct mgrid_enlarge_options {
  size_t size;        /* sizeof(mgrid_enlarge_options) */
  const char *name;   /* of the new state; NULL: as the old one. Read on rank 0 alone */
  const char *params; /* a file of parameters, as of mgrid_runtime_plan; NULL: none */
} mgrid_enlarge_options;
#define MGRID_ENLARGE_OPTIONS_INIT \
  { sizeof(mgrid_enlarge_options), NULL, NULL }

/* At a step boundary, let new ranks join. Collective over `larger`, a backend over all ranks, old
** and new; the old ones come first and keep their numbers (MPI_Intercomm_merge with high = false on
** the old side; see mgrid_mpi_world). An old rank passes its state; s NULL: this rank is new. All
** pass a runtime with the same recipe, and the same n arguments. In order, the call
**   1. checks that all ranks have the same version of the library, and that exactly the ranks of the
**      old world pass a state;
**   2. plans the largest layout that the recipe accepts in the larger world, with the recipe's own
**      spares; unused ranks become spares, too;
**   3. sends the new ranks the old plan, so that they can plan the move;
**   4. compares the plans, and makes the state by mgrid_state_grow and mgrid_state_join.
**   *now   the state of the larger world, with default settings. It is an owner of rt
**   *move  the move that fills the new layout from the old one, seen from this rank; move NULL: plan none
** If the plans have no tensor in common, pass move NULL (else MGRID_REFUSED). Then run the move
** over `larger` (mgrid_move_run; a new rank passes empty buffers), call mgrid_state_settle on the
** new state, and then free the old one. All or nothing: on failure every rank, old and new, gets
** one error, and the old state is as before (but see mgrid_state_grow about blocking communicators
** of NCCL). MGRID_DISAGREE if a rank has another version, recipe, argument or old plan, or is in
** another call. MGRID_REFUSED if the recipe accepts no layout, an old rank passes no state, or a
** new rank passes a state. MGRID_TIMED_OUT, with the rank, if a rank does not call this within the
** backend's timeout. MGRID_LOST_RANK if a rank is lost meanwhile (Open MPI 5.0 under mpirun
** --with-ft ulfm; other MPIs end the job). Free `larger` after a failure; the old job goes on over
** its own backend. With NCCL, communicators that are kept leave the old state. After a loss or an
** error of yours that comes later, also in mgrid_state_settle, the old state lacks them, so call
** mgrid_state_recover on it. */
MGRID_API mgrid_status mgrid_state_enlarge(mgrid_state *s, mgrid_runtime *rt, size_t n,
                                           const char *const *args, mgrid_backend *larger,
                                           const mgrid_enlarge_options *options, mgrid_state **now,
                                           mgrid_move **move, mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
