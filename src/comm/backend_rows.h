/* SPDX-License-Identifier: MIT
**
** backend_rows.h - the backends, one row each; plan/backend_row.h explains the fields. Whoever includes this says what to
** do with a row: ROW(name, ...) of a backend with a library, BUILT_IN(name, ...) of one in libmoongrid. All that lists
** backends, messages, help, completion, Lua and documents, follows this order.
*/
BUILT_IN(dry, .makes = "plays every rank in one process, without a launcher", .opener = "mgrid_backend_dry")

ROW(mpi, .makes = "communicators of MPI", .native = MGRID_NATIVE_MPI, .usual = true, .carries = true, .lists = true,
    .revokes = true, .singles = true, .exchanges = true, .heeds = "cartesian single")

ROW(nccl, .makes = "communicators of NCCL", .native = MGRID_NATIVE_NCCL, .carried = true, .gpu = true, .lists = true,
    .shrinks = true, .revokes = true, .grows = true, .splits = true, .furnishes = true,
    .heeds = "high_priority timeout nccl windows device parent", .demand = mgrid_nccl_demand)

ROW(pmix, .makes = "agrees on the plan over PMIx, without MPI, and makes nothing", .carries = true)

BUILT_IN(carrier, .makes = "agrees on the plan over functions of the host", .opener = "mgrid_carrier_backend",
         .carries = true)
