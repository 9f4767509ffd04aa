/* SPDX-License-Identifier: MIT
**
** backend_table.h - the backends, one row each; plan/backend_row.h explains the fields. Whoever
** includes this says what to do with a row: ROW(name, ...) of a backend with a library,
** BUILT_IN(name, ...) of one in libmoongrid. All that lists backends, messages, help, completion,
** Lua and documents, follows this order.
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
