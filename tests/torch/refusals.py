# SPDX-License-Identifier: MIT
"""What moongrid.torch refuses, and that every rank is told: each status and message whole."""
from __future__ import annotations

from datetime import timedelta

from processes import ROOT, Tap, need, run
from tap import refusal

need("torch", "torch")

import moongrid.torch as mg
import torch
import torch.distributed as dist

WORLD = 8
ODD, BARE = str(ROOT / "tests/torch/recipes/odd.lua"), str(ROOT / "tests/torch/recipes/bare.lua")
Refusal = tuple[int, str]
MISFIT = "picotron:37: tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks"
NO_BACKEND = "this torch has no backend 'golo', which 'tp' needs; backends={...} of groups names another"
NO_FAMILY = "no family 'bb'; there are part, line, a, b, again, own, turned, later, cpu, single, x, y"
ASKED = 'asked for backends={"": "gloo", "mpi": "gloo", "nccl": "nccl"} timeout=%s sort_ranks=%s'


def bundled() -> list[str]:
    return sorted(path.stem for path in (ROOT / "lua/moongrid/recipes").glob("*.lua"))


def alone(tap: Tap) -> None:
    """Without a process group."""
    for name, call, wanted in [
        ("no such grid of a plan", lambda: mg.plan(ODD, 8).grids["mesh"]("c"), (101, "unknown dim 'c'; known: a, b")),
        ("before init_process_group", lambda: mg.groups("picotron"),
         (202, "torch.distributed is not initialized: call init_process_group first")),
    ]:
        tap.same(refusal(call), wanted, name)


def together(rank: int) -> dict[str, Refusal]:
    """Refused on every rank, one call after the other: none may leave a rank behind."""
    odd = rank == 2
    plan = mg.plan("picotron", WORLD, {"tp": 2})
    found: dict[str, Refusal] = {}
    for name, call in {
        "sizes": lambda: mg.groups("picotron", {"tp": 3}),
        "sizes of one rank": lambda: mg.groups("picotron", {"tp": 3 if odd else 2}),
        "another plan": lambda: mg.groups("picotron", {"tp": 4 if odd else 2}),
        "another recipe": lambda: mg.groups("nanotron" if odd else "picotron", {"tp": 2}),
        "other arguments": lambda: mg.groups(plan, sort_ranks=odd),
        "another timeout": lambda: mg.groups(plan, timeout=timedelta(seconds=5) if odd else None),
        "no recipe on one rank": lambda: mg.groups("picotro" if odd else "picotron"),
        "a plan for another world": lambda: mg.groups(mg.plan("picotron", 4)),
        "a plan with parameters": lambda: mg.groups(plan, {"tp": 2}),
        "no such backend": lambda: mg.groups(plan, backends={"mpj": "gloo"}),
        "a backend that torch lacks": lambda: mg.groups(plan, backends={"": "golo"}),
        "a backend of one rank": lambda: mg.groups(plan, backends={"": "golo"} if odd else None),
        "then it works": lambda: mg.groups(plan),
    }.items():
        found[name] = refusal(call)
    made = mg.groups(ODD)
    bare, late = mg.groups(BARE, {"tp": 2, "cp": 2}), mg.groups(plan)
    late.destroy()
    for name, call in {
        "no such family": lambda: made["bb"],
        "create no such family": lambda: made.create("bb"),
        "lazy": lambda: made["later"],
        "destroyed": lambda: late["tp"],
        "destroyed, of one rank": lambda: late["cp"],
        "no such grid": lambda: mg.device_mesh(made, "mash"),
        "no family for a dim": lambda: mg.device_mesh(bare, "dense"),
        "no collection": lambda: mg.megatron_collection(made),
    }.items():
        found[name] = refusal(call)
    dist.group.WORLD.bound_device_id = torch.device("cuda:0")
    found["bound"] = refusal(lambda: mg.groups(plan))
    dist.group.WORLD.bound_device_id = None
    return found


def differs(theirs: str, ours: str) -> Refusal:
    return 500, f'rank 2 would make other groups: rank 2 has "{theirs}", rank 0 has "{ours}"'


def everywhere(status: int, message: str) -> tuple[Refusal, Refusal]:
    return (status, message), (status, message)


def of_rank_2(status: int, message: str) -> tuple[Refusal, Refusal]:
    """The rank itself has the reason, the others have its name too."""
    return (status, message), (405, f"rank 2 cannot make groups: {message}")


# What rank 2 and what the others are told.
WANTED: list[tuple[str, Refusal, Refusal]] = [
    ("sizes", *everywhere(100, MISFIT)),
    ("sizes of one rank", *of_rank_2(100, MISFIT)),
    ("another plan", *everywhere(*differs("param tp_size = 4", "param tp_size = 2"))),
    ("another recipe", *everywhere(*differs("param tensor_parallel_size = 2", "param tp_size = 2"))),
    ("other arguments", *everywhere(*differs(ASKED % (None, True), ASKED % (None, False)))),
    ("another timeout", *everywhere(*differs(ASKED % ("0:00:05", False), ASKED % (None, False)))),
    ("no recipe on one rank", *of_rank_2(
        101, f"no recipe 'picotro': neither bundled nor a file; nearest is 'picotron' ({', '.join(bundled())})")),
    ("a plan for another world", *everywhere(200, "the plan is for 4 ranks, torch has 8")),
    ("a plan with parameters", *everywhere(200, "a Plan has its parameters already")),
    ("no such backend", *everywhere(101, "no backend 'mpj' in recipes; there are \"\", mpi and nccl")),
    ("a backend that torch lacks", *everywhere(401, NO_BACKEND)),
    ("a backend of one rank", *of_rank_2(401, NO_BACKEND)),
    ("then it works", *everywhere(0, "")),
    ("no such family", *everywhere(101, NO_FAMILY)),
    ("create no such family", *everywhere(101, NO_FAMILY)),
    ("lazy", *everywhere(202, "family 'later' is not created: it is lazy, call create")),
    ("destroyed", *everywhere(202, "family 'tp' is not created: the groups were destroyed")),
    ("destroyed, of one rank", *everywhere(202, "family 'cp' is not created: the groups were destroyed")),
    ("no such grid", *everywhere(101, "no grid 'mash'; there are mesh, some")),
    ("no family for a dim", *everywhere(101, "no family has the groups of dim 'cp' of grid 'dense'; add t.cp = t.dense "
                                             "\"cp\" to the recipe")),
    ("no collection", *everywhere(200, "a ProcessGroupCollection needs the families of the recipe megatron")),
    ("bound", *everywhere(402, "init_process_group(device_id=...) makes torch split every group from the world with "
                               "all ranks; leave device_id out")),
]


def absent(rank: int) -> Refusal:
    """Rank 3 comes when the others have given up."""
    if rank == 3:
        dist.distributed_c10d._get_default_store().wait(["gave up"])
    got = refusal(lambda: mg.groups("picotron", agreement=timedelta(seconds=1)))
    dist.distributed_c10d._get_default_store().set("gave up", "")
    assert refusal(lambda: mg.groups("picotron", agreement=timedelta(seconds=20))) == (0, "")  # the next one works
    return got


if __name__ == "__main__":
    tap = Tap()
    alone(tap)
    every = run(WORLD, together)
    for name, mine, theirs in WANTED:
        tap.same([one.pop(name) for one in every], [mine if r == 2 else theirs for r in range(WORLD)], name)
    tap.same(every, [{}] * WORLD, "no call without an expectation")
    tap.same(run(WORLD, absent), [(403, "rank 3 did not make groups within 0:00:01")] * WORLD, "a rank that comes late")
    tap.end()
