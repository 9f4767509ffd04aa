# SPDX-License-Identifier: MIT
"""Jobs over communicators of mpi4py, on 4 ranks: groups as communicators, policies, moves, refusals told to every rank.

The first process starts itself by scripts/launch, with the mpirun beside this Python if there is one."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tap import ROOT, Tap, need, refusal

need("mpi4py", "mpi4py")
need("numpy", "numpy")

RECIPE = str(ROOT / "tests/python/recipes/jobs.lua")
RANKS = 4


def launch() -> None:
    """Start the ranks."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as why:
        print(f"1..0 # SKIP mpi4py finds no MPI library: {why}")
        return
    import moongrid as mg
    other = refusal(lambda: mg.mpi(MPI.COMM_SELF).close())
    if other[0] and "MOONGRID_INSTALLED" not in os.environ:  # the clone has a backend for one MPI
        tap = Tap()
        tap.check(re.fullmatch(r"mpi: the program has started the MPI of \S+, and this backend uses (Open MPI v|MPICH )\S+ of "
                               r"\S+; build moongrid with the program's MPI", other[1]) is not None and other[0] == 400,
                  "an mpi4py of another MPI than the clone's is refused", other)
        tap.end()
    beside = Path(sys.prefix) / "bin"
    said = MPI.Get_library_version()
    launcher = {} if (beside / "mpirun").exists() else _launcher("openmpi" if "Open MPI" in said else "mpich")
    if launcher is None:
        print("1..0 # SKIP no mpirun of the MPI library that mpi4py uses")
        return
    done = subprocess.run([str(ROOT / "scripts/launch"), str(RANKS), sys.executable, __file__, "rank"], check=False,
                          env={**os.environ, "PATH": f"{beside}:{os.environ['PATH']}", **launcher})
    sys.exit(done.returncode)


def _launcher(family: str) -> dict[str, str] | None:
    """The system's own mpirun of that family."""
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    return {} if ("Open MPI" in said or "OpenRTE" in said) == (family == "openmpi") else None


class Ranks(Tap):
    """TAP of all ranks: a check holds if it does on each."""

    def __init__(self, comm: Any) -> None:
        super().__init__()
        self.comm = comm

    def check(self, good: bool, what: str, why: object = "") -> None:
        bad = [f"rank {rank}: {text}" for rank, text in enumerate(self.comm.allgather(None if good else str(why))) if text
               is not None]
        if self.comm.rank == 0:
            super().check(not bad, what, "\n".join(bad))
        else:
            self.failed += bool(bad)


def groups(tap: Ranks, mg: Any, MPI: Any) -> None:
    comm = tap.comm
    with mg.mpi(comm) as job:
        tap.same((job.rank, job.world), (comm.rank, comm.size), "a job has the ranks of its communicator")
        for recipe, params in (("megatron", {"tp": 2, "pp": 2}), ("picotron", {"cp": 2}), ("deepspeed", {}),
                               (RECIPE, {}), (RECIPE, {"tp": 4})):
            with job.open(recipe, params) as state:
                bad = []
                for family in state:
                    for group in state.groups(family):
                        c = group.comm
                        if c is None:
                            bad += [] if family in ("later", "world_group") else [f"{family} has none"]
                            continue
                        order = c.allgather(comm.rank)
                        total = c.allreduce(2 ** comm.rank)
                        if not (order == group.ranks.tolist() == [*group] and c.rank == group.position
                                and total == sum(2 ** r for r in order)):
                            bad.append(f"{family}: {order} and {group}")
                tap.check(not bad, f"{Path(recipe).stem} {params}: communicators have the ranks of groups, in order", bad)
                tap.same(state.prove(), state.ncomms, "and are proved")
        with job.open(RECIPE) as state:
            tap.same((state["tp"].comm == state["again"].comm, state["tp"].backend, state["alone"].comm),
                     (False, "mpi", MPI.COMM_SELF), "a twin is apart; a group of one rank is COMM_SELF")
            c = state["all"].comm
            tap.same((isinstance(c, MPI.Cartcomm), c.dims, c.periods, tuple(state["all"].shift("dp")),
                      state["all"].shift("tp").dest), (True, [2, 2], [0, 1], tuple(
                          -1 if r == MPI.PROC_NULL else r for r in c.Shift(0, 1)), c.Shift(1, 1)[1]),
                     "a Cartesian family is a Cartcomm, with MPI's dims in the opposite order")
            tap.same(state["later"].comm, None, "a lazy family has no communicator")
            state.create("later")
            tap.same(state["later"].comm.size, state["later"].size, "until it is created")
            tap.same([g.comm.size for g in state["ring"]], [2, 2], "a cover is a list")
            tap.same(state.ask("tp_rank"), state["tp"].position, "a query")
            tap.same(state.policy("here")(), {"rank": comm.rank, "tp": state["tp"].ranks.tolist()}, "a policy of a rank")
            tap.same(state.policy("same")(value=[1, 2]), [1, 2], "a policy that ranks compare")
            said = refusal(lambda: state.policy("same")(value=comm.rank // 3))
            tap.check(said[0] == 500 and "rank 3" in said[1], "and that differs", said)
            before, made = state.ncomms, job.ncomms
            new, change = state.reload(tp=4)
            tap.same((change.kept >= 1, new["tp"].size, new.recipe.name), (True, 4, RECIPE), "a reload")
            state.close()
            tap.check(job.ncomms < made + before, "frees what is no longer used", (job.ncomms, made))
            new.close()
        tap.same(job.ncomms, 0, "closed states leave nothing")
    half = comm.Split(comm.rank % 2)
    with mg.mpi(half, timeout=30) as job, job.materialize(mg.plan(RECIPE, half.size), "half") as state:
        tap.same((job.world, state["dp"].comm is not None), (2, True), "a job over a part of the world")
    half.Free()


def moves(tap: Ranks, mg: Any, np: Any) -> None:
    comm = tap.comm
    a, b = mg.plan(RECIPE, comm.size), mg.plan(RECIPE, comm.size, tp=1)
    whole = np.arange(96, dtype=np.float32).reshape(12, 8)

    def part(plan: Any, values: Any) -> Any:
        runs = plan.tensor("w", comm.rank)["runs"]
        rows, columns = ([i for start, n in axis for i in range(start, start + n)] for axis in runs)
        return np.ascontiguousarray(values[np.ix_(rows, columns)])
    with mg.mpi(comm) as job:
        move = a.move(b, comm.rank)
        before, after = part(a, whole), np.zeros_like(part(b, whole))
        move.run(job, [before], [after])
        tap.check((after == part(b, whole)).all(), "a move of a tensor in numpy arrays", after)
        move.prove(job)
        tap.check(True, "and its proof")
        tap.same(refusal(lambda: move.run(job, [before], [])), (102, "the move has 1 tensors (w), not 0"), "too few parts")
        tap.same(refusal(lambda: move.run(job, [b"x" * before.nbytes], [after])),
                 (102, "'w' is memory that may not be written"), "bytes")


def refusals(tap: Ranks, mg: Any, MPI: Any) -> None:
    comm = tap.comm

    def told(name: str, call: Callable[[], Any], wanted: tuple[int, str]) -> None:
        tap.same(refusal(call), wanted, name)
    told("no communicator", lambda: mg.mpi(3), (200, "mpi() takes an intracommunicator of mpi4py, not 3"))
    told("COMM_NULL", lambda: mg.mpi(MPI.COMM_NULL),
         (200, f"mpi() takes an intracommunicator of mpi4py, not {MPI.COMM_NULL!r}"))
    fake = type("MPI", (), {"Get_library_version": staticmethod(lambda: "Spectrum MPI 10\n")})
    told("an MPI of an unknown kind", lambda: mg._mpi._folder(fake),
         (401, "mpi: this mpi4py uses Spectrum MPI 10; the package has libraries for Open MPI and for MPICH and its "
               "relatives"))
    fake = type("MPI", (), {"Get_library_version": staticmethod(lambda: "MPICH Version: 5.0"), "COMM_WORLD": None,
                            "_handleof": staticmethod(lambda _: 0x101)})
    told("the standard ABI", lambda: mg._mpi._folder(fake),
         (401, "mpi: this mpi4py uses the standard ABI of MPI 5, for which the package has no library; choose that of the "
               "MPI itself by MPI4PY_MPIABI=mpich or MPI4PY_MPIABI=openmpi"))
    job = mg.mpi(comm)
    odd = comm.rank == 1
    told("a rank with another plan", lambda: job.materialize(mg.plan(RECIPE, comm.size, tp=4 if odd else 2)),
         (500, 'ranks do not have the same plan: rank 1 has "family tp: (4:1) x (1)", rank 0 has "family tp: (2:1) x '
               '(2:2)"; rank 1 has "param tp = 4", rank 0 has "param tp = 2"; differing from rank 0: 1'))
    failed = f"{RECIPE}:13: asked to fail (while planning for 4 ranks)"
    told("a rank that cannot plan", lambda: job.open(RECIPE, fail=odd),
         (100, failed) if odd else (500, f"ranks do not have the same plan: rank 1 has none ({failed})"))
    told("a plan for another world", lambda: job.materialize(mg.plan(RECIPE, 8)),
         (100, "the plan is for 8 ranks, the communicator has 4"))
    state = job.open(RECIPE)
    try:
        state["tp"].comm.Set_errhandler(MPI.ERRORS_RETURN)
        state["tp"].comm.Free()
        freed = "freed"
    except MPI.Exception:
        freed = "refused"
    tap.same(freed, "refused", "to free a group's communicator")
    told("a plan that is a number", lambda: job.materialize(3), (102, "3 is not a Plan"))
    group, comm_of_tp = state["tp"], state["tp"].comm
    tap.check(group.comm is comm_of_tp, "a group has one communicator of mpi4py")
    state.close()
    told("a group of a closed state", lambda: group.comm, (202, "the state is closed"))
    tap.check(comm_of_tp == MPI.COMM_NULL and MPI.COMM_SELF.size == 1, "its communicator is COMM_NULL")
    state = job.open(RECIPE)
    state.close()
    tap.same(job.given, [], "a job keeps nothing of closed states")
    left, alone = job.open(RECIPE)["tp"].comm, MPI.COMM_SELF.size  # a state that nobody closes
    job.close()
    tap.check(left == MPI.COMM_NULL and alone == 1, "communicators of a closed job are COMM_NULL")
    told("a closed job", lambda: job.open(RECIPE), (202, "the job is closed"))
    told("a state of a closed job", lambda: job.world, (202, "the job is closed"))
    inter = comm.Split(comm.rank % 2).Create_intercomm(0, comm, 1 - comm.rank % 2)
    told("an intercommunicator", lambda: mg.mpi(inter), (200, f"mpi() takes an intracommunicator of mpi4py, not {inter!r}"))
    inter.Free()


def main() -> None:
    import numpy as np
    from mpi4py import MPI

    import moongrid as mg
    tap = Ranks(MPI.COMM_WORLD.Dup())
    groups(tap, mg, MPI)
    moves(tap, mg, np)
    refusals(tap, mg, MPI)
    if tap.comm.rank == 0:
        print(f"1..{tap.done}", flush=True)
    sys.exit(tap.failed > 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["rank"]:
        main()
    else:
        launch()
