# SPDX-License-Identifier: MIT
"""calls.py NAME KIND DEADLINE FOLDER: as calls.c, for the calls of Python that wait for other ranks. scripts/lint.d/waits.lua
compares the names in the table with the docstrings."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpi4py

mpi4py.rc.finalize = False  # it waits for the rank that was struck
from mpi4py import MPI  # noqa: E402

import moongrid as mg  # noqa: E402
from moongrid._abi import OnDeadline  # noqa: E402

RECIPE = """return recipe { params = { tp = 2 }, build = function(world, p)
  local g = grid(world, "tp-dp", { tp = p.tp, dp = fill }) local t = topology(world) t.grid = g
  t.tp, t.dp, t.all, t.late = g "tp", g "dp", g { "tp", "dp" }, g "tp":with { lazy = true, unique = true }
  t.w = tensor { axes = { { "r", 512 }, { "c", 512 } }, type = "f32", cut = { r = "tp", c = "dp" } } return t end,
policy = { of_all = function() return 1 end, of_group = function() return 2 end },
agreed = { of_all = "world", of_group = "dp" } }
"""

name, kind, deadline, folder = sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4])
world = MPI.COMM_WORLD
me = world.Get_rank()
path = folder / f"recipe.{me}.lua"
path.write_text(RECIPE)


def opened() -> Any:
    return mg.mpi(world, timeout=deadline, on_deadline=OnDeadline.DEADLINE_ABORT)


world.Barrier()  # some need longer to get here
job = opened()
state = job.open(path)
plan = mg.plan(path, world=world.Get_size())
other = mg.plan(path, world=world.Get_size(), tp=1)


def made(again: Callable[[], Any]) -> Callable[[], None]:
    def call() -> None:
        again().close()
    return call


def create() -> None:
    with job.materialize(plan, "more") as more:
        more.create("late")


def policy() -> None:
    state.policy("of_all")()
    state.policy("of_group")()


def reload() -> None:
    global state
    was = state
    state, _ = state.reload()
    was.close()


def move_run() -> None:
    move = mg.move(plan, other, rank=me)
    move.run(job, [bytearray(4 * 512 * 512)], [bytearray(4 * 512 * 512)])


CALLS: dict[str, Callable[[], Any]] = {
    "Job.materialize": made(lambda: job.materialize(plan, "more")),
    "Job.open": made(lambda: job.open(path, name="more")),
    "Job.close": made(opened),
    "mpi": made(opened),
    "State.create": create,
    "State.prove": lambda: state.prove(),
    "State.policy": policy,
    "Policy.__call__": policy,
    "State.reload": reload,
    "State.close": made(lambda: job.materialize(other, "more")),
    "Move.run": move_run,
    "Move.prove": lambda: mg.move(plan, other, rank=me).prove(job),
}


def goes_on() -> bool:
    """For some seconds after a pause, the same on all ranks."""
    hit = folder / "hit"
    return kind != "pause" or bool(world.bcast(not hit.exists() or time.time() < hit.stat().st_mtime + 1.5 * deadline))


world.Barrier()
(folder / f"begun.{me}").touch()
try:
    while True:
        CALLS[name]()
        if not goes_on():
            break
    state.close()
    job.close()
    MPI.Finalize()
except mg.MoongridError as e:
    os.write(1, f"told {me} {int(e.status)} {e}\n".encode())  # in one piece, beside those of other ranks
    state.close()
    job.close()
    os._exit(0)
