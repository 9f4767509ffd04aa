/* SPDX-License-Identifier: MIT
**
** backend_table.h - the backends, one row each; plan/backend_row.h explains the fields. A file that
** includes this one first defines two macros: ROW(name, ...) for a backend with a library, and
** BUILT_IN(name, ...) for one in libmoongrid. Messages, help, completion, Lua and documents list
** backends in this order.
*/
BUILT_IN(dry, .opener = "mgrid_backend_dry")

ROW(mpi,
    .doc = "Join the MPI job this process was started in: a duplicate of MPI_COMM_WORLD; "
           "initializes MPI if needed",
    .native = MGRID_NATIVE_MPI, .usual = true, .carries = true, .lists = true, .revokes = true,
    .singles = true, .exchanges = true, .heeds = "cartesian single")

ROW(nccl, .doc = "Create NCCL communicators on the GPUs of the ranks", .native = MGRID_NATIVE_NCCL,
    .carried = true, .gpu = true, .lists = true, .shrinks = true, .revokes = true, .grows = true,
    .splits = true, .has_windows = true,
    .heeds = "high_priority timeout nccl windows device parent", .demand = mgrid_nccl_demand)

ROW(rccl, .doc = "Create RCCL communicators (NCCL for AMD) on the GPUs of the ranks",
    .native = MGRID_NATIVE_NCCL, .carried = true, .gpu = true, .lists = true, .shrinks = true,
    .revokes = true, .grows = true, .splits = true, .has_windows = true,
    .heeds = "high_priority timeout nccl windows device parent", .demand = mgrid_nccl_demand)

ROW(pmix,
    .doc = "Join the job of a launcher with PMIx, without MPI, and agree on plans; it creates no "
           "communicators",
    .carries = true)

BUILT_IN(carrier, .opener = "mgrid_carrier_backend", .carries = true)
