/* SPDX-License-Identifier: MIT
**
** moongrid_mpi.h - the functions of moongrid with types of MPI. Link libmoongrid_mpi and
** libmoongrid.
*/
#ifndef MOONGRID_MPI_H
#define MOONGRID_MPI_H

#include "moongrid.h"

#ifdef __cplusplus /* the C++ bindings that MPI 3 removed would need a library of their own */
#define OMPI_SKIP_MPICXX  1
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Open a backend over a duplicate of the host's communicator, whose ranks are the world. options
** may be NULL.
**
** The host initializes MPI before this call, and finalizes it. Free the backend and its states
** before MPI_Finalize: afterwards, and in a forked child, their calls are MGRID_USAGE. Without
** options.borrow `parent` is used only in this call: later messages of the library are on the
** duplicate, and the host may free `parent` while the backend exists. The communicators of groups
** get the error handler that `parent` has now.
**
** The duplicate is kept as an attribute of `parent`, so that the next backend over `parent` opens
** with one all-reduce. Duplicates of `parent` do not have this attribute; MPI frees it with
** `parent`. Backends share the duplicate. With MPI_THREAD_MULTIPLE only one backend has it at a
** time. States of two backends share nothing. No duplicate is kept with sessions, with ULFM, or for
** MPI_COMM_SELF.
**
** Collective over `parent`, as MPI_Comm_dup: in one order with the host's other collectives on it.
** If a rank does not arrive within the timeout, the other ranks get an error, which cannot name
** that rank. A failure on one rank is an error on all, with two exceptions that are MGRID_USAGE on
** that rank alone: a wrong `parent` (MPI_COMM_NULL, freed, an intercommunicator), and a thread that
** may not call MPI. MPI does not abort while `parent` is checked: with MPICH, MPI_COMM_WORLD and
** MPI_COMM_SELF have MPI_ERRORS_RETURN meanwhile, unless two threads check at once. MGRID_BACKEND
** if the program has another MPI library, or if its launcher started several processes and MPI
** knows only this one (not checked for MPI_COMM_SELF). If a rank is lost meanwhile (Open MPI 5.0
** under mpirun --with-ft ulfm), all others get MGRID_LOST_RANK. If `parent` has ranks of several
** jobs, the library then revokes it, because a job does not learn of the losses of another.
**
** With MPI_THREAD_MULTIPLE each backend may be used in a thread of its own; open them in one order
** on all ranks. For lower levels see mgrid_threads.
**
** A host that uses only MPI Sessions (without MPI_Init, or after MPI_Finalize) passes a
** communicator made of a group of its session (MPI_Comm_create_from_group), with Open MPI 5 or with
** MPICH 4 and later. The backend then has its own session, at the level of options.threads: free it
** before the host ends its last session. A backend that was opened between MPI_Init and
** MPI_Finalize is freed before MPI_Finalize, even if its communicator is of a session. Without
** MPI_Init the library never uses MPI_COMM_WORLD and MPI_COMM_SELF, and refuses them as `parent`
** (MGRID_USAGE): each group of one rank has its own communicator. Then it checks neither the
** calling thread nor the launcher. A handle of anything but a communicator is MGRID_USAGE with Open
** MPI; MPICH ends the process. */
MGRID_API mgrid_backend *mgrid_mpi_backend(MPI_Comm parent, const mgrid_mpi_options *options,
                                           mgrid_error *err);

/* Make a communicator of all ranks of the backend mpi, or of a backend over it, in the backend's
** order, for the host's own calls. The backend of a recovery (mgrid_state_recover) has the
** survivors. With the communicator, MPI_Comm_spawn or MPI_Comm_accept lets others join
** (mgrid_state_enlarge). Collective over the backend. The communicator has the error handler of the
** groups; the caller frees it. MGRID_USAGE for another backend; *comm is MPI_COMM_NULL after an
** error. */
MGRID_API mgrid_status mgrid_mpi_world(mgrid_backend *b, MPI_Comm *comm, mgrid_error *err);

/* Call mgrid_mpi_backend and mgrid_open (moongrid_recipe.h): the state owns everything, and
** mgrid_state_free frees it. mpi and options may be NULL. Collective over `parent`. */
MGRID_INLINE mgrid_state *mgrid_mpi_open(MPI_Comm parent, const char *recipe, size_t n,
                                         const char *const *args, const mgrid_mpi_options *mpi,
                                         const mgrid_open_options *options, mgrid_error *err) {
  mgrid_backend *b = mgrid_mpi_backend(parent, mpi, err);
  mgrid_state *s = mgrid_open(b, recipe, n, args, options, err);
  mgrid_backend_free(b);
  return s;
}

/* Return the communicator of a group, ranks in group order. MPI_COMM_NULL if the rank is in no
** group (g NULL), for a lazy family that is not created yet, in a state without communicators
** ("dry", "pmix", "carrier"), for a family of backend "none", and for a group whose communicator is
** NCCL's.
**
** The communicator is borrowed: families with equal members may share it, and it ends with its
** states. MPI_Comm_free refuses it: the communicator's error handler gets MPI_ERR_COMM (with MPICH
** the handlers of MPI_COMM_SELF and MPI_COMM_WORLD get it), and the log gets a line.
**
** A group of one rank has MPI_COMM_SELF, with its error handler and attributes, in every state,
** even a dry one; only with backend "none" it has MPI_COMM_NULL. The host may use MPI_COMM_SELF,
** too: a receive that the host has posted there takes a message that is sent on the group. Instead
** a group of one rank has a communicator of its own if its family is `unique`, a twin, Cartesian or
** concurrent with another, or has the option `single`, or if the host uses only sessions. Making
** this communicator is local. mgrid_plan_counts, mgrid_state_ncomms and the schedule do not count
** it; mgrid_state_prove proves it.
**
** The communicator of a family with a Cartesian shape (mgrid_options.cartesian, grid:cartesian in
** Lua) has that topology, so MPI_Cart_get, MPI_Cart_coords, MPI_Cart_shift and neighbour
** collectives work. MPI's last dim varies fastest, ours the first: MPI's dim 0 is our last, and
** "x:4 y:2" is MPI's dims {2, 4}. Ranks are positions, never reordered. */
MGRID_INLINE MPI_Comm mgrid_mpi_comm(const mgrid_group *g) {
  if (!g) return MPI_COMM_NULL;
  if (mgrid_group_native_kind(g) == MGRID_NATIVE_MPI) return *(MPI_Comm *)mgrid_group_native(g);
  return mgrid_group_size(g) == 1 && !*mgrid_group_backend(g) ? MPI_COMM_SELF : MPI_COMM_NULL;
}

/* The next two are for moongrid.f90, which builds mgrid_comm and mgrid_open_comm on them.
** mgrid_mpi_backend_f is mgrid_mpi_backend over an INTEGER (comm%mpi_val of mpi_f08). It is
** collective, too; an INTEGER that is not a communicator of this MPI library is MGRID_USAGE.
** mgrid_mpi_native_f returns the INTEGER of a communicator of mgrid_group_native; for NULL the
** INTEGER of MPI_COMM_SELF (self) or MPI_COMM_NULL. */
MGRID_API mgrid_backend *mgrid_mpi_backend_f(MPI_Fint parent, const mgrid_mpi_options *options,
                                             mgrid_error *err);
MGRID_API MPI_Fint mgrid_mpi_native_f(const void *native, bool self);

/* mgrid_mpi_comm for Fortran, where an MPI_Comm is an INTEGER: MPI_COMM_NULL after MPI_Finalize,
** too. Local. */
MGRID_INLINE MPI_Fint mgrid_mpi_comm_f(const mgrid_group *g) {
  bool here = g && mgrid_group_native_kind(g) == MGRID_NATIVE_MPI;
  return mgrid_mpi_native_f(here ? mgrid_group_native(g) : NULL,
                            g && !here && mgrid_group_size(g) == 1 && !*mgrid_group_backend(g));
}

/* MPI_Cart_shift by the name of a dim: find the positions, which are ranks of mgrid_mpi_comm(g), to
** receive from and to send to, or MPI_PROC_NULL past an end that is not periodic. It works for
** groups of one rank, too. Either output may be NULL. Errors are those of mgrid_group_shift;
** *source and *dest are unchanged then. Local. */
MGRID_INLINE mgrid_status mgrid_mpi_shift(const mgrid_group *g, const char *dim, int displacement,
                                          int *source, int *dest, mgrid_error *err) {
  int64_t from = -1, to = -1;
  mgrid_status s = mgrid_group_shift(g, dim, displacement, &from, &to, err);
  if (s) return s;
  if (source) *source = from < 0 ? MPI_PROC_NULL : (int)from;
  if (dest) *dest = to < 0 ? MPI_PROC_NULL : (int)to;
  return MGRID_OK;
}

/* Return this rank's next or previous neighbour in the group's communicator: a position in the
** group, not a rank of the world. Past an end the neighbour is MPI_PROC_NULL, with which MPI
** exchanges nothing, or with `wrap` the member at the other end. (Some MPI libraries take the -1 of
** mgrid_group_beside for MPI_ANY_SOURCE, which receives any message.) MPI_PROC_NULL outside of all
** groups. */
MGRID_INLINE int mgrid_mpi_next(const mgrid_group *g, bool wrap) {
  int64_t at = mgrid_group_position(g) + 1, n = mgrid_group_size(g);
  return !g || (at == n && !wrap) ? MPI_PROC_NULL : (int)(at % n);
}
MGRID_INLINE int mgrid_mpi_prev(const mgrid_group *g, bool wrap) {
  int64_t at = mgrid_group_position(g), n = mgrid_group_size(g);
  return !g || (at == 0 && !wrap) ? MPI_PROC_NULL : (int)((at + n - 1) % n);
}

#ifdef __cplusplus
}
#endif
#endif
