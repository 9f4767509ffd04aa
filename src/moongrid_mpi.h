/* SPDX-License-Identifier: MIT
**
** moongrid_mpi.h - the few functions of moongrid that speak of MPI. Link libmoongrid_mpi
** and libmoongrid.
*/
#ifndef MOONGRID_MPI_H
#define MOONGRID_MPI_H

#include "moongrid.h"

#ifdef __cplusplus /* the C++ bindings that MPI 3 removed would want a library of their own */
#define OMPI_SKIP_MPICXX  1
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A backend over a communicator of our own with the ranks of the host's, which are the world. MPI is initialized and
** stays the host's: free the backend and its states before MPI_Finalize; afterwards their calls are MGRID_USAGE.
** `parent` is used in this call alone: nothing of the library's meets the host's messages and collectives on it, and it
** may be freed while the backend is there. The communicators of groups get the error handler that it has now. options
** may be NULL. Collective over `parent`, as MPI_Comm_dup: in one order with the host's other collectives on it, and a
** rank that does not come within the timeout is an error on the others. What fails on one rank fails on all, but for a
** wrong `parent` (MPI_COMM_NULL, freed, an intercommunicator) or a thread that may not call MPI, which are MGRID_USAGE
** on the ranks that have them; MPI's abort does not come, as MPI_COMM_WORLD and MPI_COMM_SELF have MPI_ERRORS_RETURN
** while that is looked at. MGRID_BACKEND where the program has another MPI library, or its launcher started several
** processes of which MPI knows this one alone; of MPI_COMM_SELF the launcher is not asked. Several backends over one
** communicator each have a duplicate. With MPI_THREAD_MULTIPLE each may be used in a thread of its own; they are opened
** in one order on all ranks. With less, see mgrid_threads.
** A host with MPI Sessions alone (no MPI_Init, or after MPI_Finalize) hands over a communicator that it made of a group
** of its session (MPI_Comm_create_from_group), with Open MPI 5 or MPICH 4 and later. The backend then has a session of
** its own until it is freed, at the level of options.threads: free it before the host ends its last session. No call
** uses MPI_COMM_WORLD or MPI_COMM_SELF, which are MGRID_USAGE as `parent`: each group of one rank has a communicator of
** its own. Neither the thread that calls nor the launcher is looked at. What is no communicator is MGRID_USAGE with
** Open MPI, and MPICH ends the process. A backend that was opened between MPI_Init and MPI_Finalize is freed before the
** latter, also over a communicator of a session. */
MGRID_API mgrid_backend *mgrid_mpi_backend(MPI_Comm parent, const mgrid_mpi_options *options, mgrid_error *err);

/* mgrid_mpi_backend and mgrid_open (moongrid_recipe.h) in one call: the state owns everything, and mgrid_state_free gives
** it back. mpi and options may be NULL. Collective over `parent`. */
static inline mgrid_state *mgrid_mpi_open(MPI_Comm parent, const char *recipe, size_t n, const char *const *args,
                                          const mgrid_mpi_options *mpi, const mgrid_open_options *options,
                                          mgrid_error *err) {
  mgrid_backend *b = mgrid_mpi_backend(parent, mpi, err);
  mgrid_state   *s = mgrid_open(b, recipe, n, args, options, err);
  mgrid_backend_free(b);
  return s;
}

/* The communicator of a group, ranks in group order. Borrowed: it may be shared by families of equal members, and
** ends with its states. MPI_Comm_free of it is refused, by MPI_ERR_COMM of its error handler (MPICH asks those of
** MPI_COMM_SELF and MPI_COMM_WORLD) and a line in the log. A rank that is in no group (g NULL), a lazy family not
** created yet, a dry state, a family of backend "none" and a group whose communicator is NCCL's have MPI_COMM_NULL. A
** group of one rank has MPI_COMM_SELF (with sessions alone one of its own), which is the host's: a receive of the
** host's that is pending there takes a message on the group, and error handler and attributes are those of
** MPI_COMM_SELF. Only where the family is `unique`, a twin or Cartesian, or asks for it by the option `single`, a
** group of one rank has a communicator of its own, as larger groups have; and where two families are concurrent one
** of them has. Making it is local; mgrid_plan_counts, mgrid_state_ncomms and the schedule leave it out, and
** mgrid_state_prove proves it, too. The communicator of a family with a Cartesian shape (mgrid_options.cartesian,
** grid:cartesian in Lua) has that topology attached, so MPI_Cart_get, MPI_Cart_coords, MPI_Cart_shift and neighbour
** collectives work. MPI's last dim varies fastest, ours the first: MPI's dim 0 is our last, and "x:4 y:2" is MPI's
** dims {2, 4}. Ranks are positions, never reordered. */
static inline MPI_Comm mgrid_mpi_comm(const mgrid_group *g) {
  if (!g) return MPI_COMM_NULL;
  if (mgrid_group_native_kind(g) == MGRID_NATIVE_MPI) return *(MPI_Comm *)mgrid_group_native(g);
  return mgrid_group_size(g) == 1 && !*mgrid_group_backend(g) ? MPI_COMM_SELF : MPI_COMM_NULL;
}

/* The same for Fortran, where an MPI_Comm is an INTEGER; MPI_COMM_NULL's for none. Local. */
static inline MPI_Fint mgrid_mpi_comm_f(const mgrid_group *g) { return MPI_Comm_c2f(mgrid_mpi_comm(g)); }

/* MPI_Cart_shift by the name of a dim: the positions, which are ranks of mgrid_mpi_comm(g), to receive from and
** to send to, or MPI_PROC_NULL past an end that is not periodic. Right for groups of one rank too. Errors as of
** mgrid_group_shift; *source and *dest are as before then. Local. */
static inline mgrid_status mgrid_mpi_shift(const mgrid_group *g, const char *dim, int displacement, int *source,
                                           int *dest, mgrid_error *err) {
  int64_t      from = -1, to = -1;
  mgrid_status s = mgrid_group_shift(g, dim, displacement, &from, &to, err);
  if (s) return s;
  *source = from < 0 ? MPI_PROC_NULL : (int)from;
  *dest = to < 0 ? MPI_PROC_NULL : (int)to;
  return MGRID_OK;
}

/* The neighbours in that communicator, as MPI counts them: positions in the group, not ranks of the world. One on or
** back; at the ends around the group with wrap, else MPI_PROC_NULL, to and from which MPI sends nothing. (The -1 of
** mgrid_group_next is MPI_ANY_SOURCE in some MPIs, which takes any message.) Outside of all groups: MPI_PROC_NULL. */
static inline int mgrid_mpi_next(const mgrid_group *g, bool wrap) {
  int64_t at = mgrid_group_position(g) + 1, n = mgrid_group_size(g);
  return !g || (at == n && !wrap) ? MPI_PROC_NULL : (int)(at % n);
}
static inline int mgrid_mpi_prev(const mgrid_group *g, bool wrap) {
  int64_t at = mgrid_group_position(g), n = mgrid_group_size(g);
  return !g || (at == 0 && !wrap) ? MPI_PROC_NULL : (int)((at + n - 1) % n);
}

#ifdef __cplusplus
}
#endif
#endif
