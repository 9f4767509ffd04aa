# SPDX-License-Identifier: MIT
"""What moongrid.torch refuses, and that every rank is told: each status and message whole."""
from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from processes import ROOT, Tap, need, run
from tap import refusal

need("torch", "torch")

import moongrid.torch as mt
import torch
import torch.distributed as dist

WORLD = 8
MOONGRID = ("RefusedError: ", "UnknownNameError: ", "UsageError: ", "BackendError: ")
NO_PARAMETER = refusal(lambda: mt.plan("picotron", WORLD, timout=3))[1]
ODD, BARE = str(ROOT / "tests/torch/recipes/odd.lua"), str(ROOT / "tests/torch/recipes/bare.lua")
Refusal = tuple[int, str]
MISFIT = "picotron:39: tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks"
NO_BACKEND = "this torch has no backend 'golo', which 'tp' needs; backends={...} of groups names another"
NO_FAMILY = "unknown family 'bb'; nearest is 'b' (part, line, a, b, again, own, turned, later, cpu, single, x, y)"
ASKED = 'asked for backends={"": "gloo", "mpi": "gloo", "nccl": "nccl"} timeout=%s sort_ranks=%s'


def bundled() -> list[str]:
    return sorted(path.stem for path in (ROOT / "lua/moongrid/recipes").glob("*.lua"))


def alone(tap: Tap) -> None:
    """Without a process group."""
    for name, call, wanted in [
        ("no such grid of a plan", lambda: mt.plan(ODD, 8).grids["mesh"]("c"), (101, "unknown dim 'c'; known: a, b")),
        ("before init_process_group", lambda: mt.groups("picotron"),
         (202, "torch.distributed is not initialized: call init_process_group first")),
    ]:
        tap.same(refusal(call), wanted, name)


def together(rank: int) -> dict[str, Refusal]:
    """Refused on every rank, one call after the other: none may leave a rank behind."""
    odd = rank == 2
    plan = mt.plan("picotron", WORLD, {"tp": 2})
    found: dict[str, Refusal] = {}
    for name, call in {
        "sizes": lambda: mt.groups("picotron", {"tp": 3}),
        "sizes of one rank": lambda: mt.groups("picotron", {"tp": 3 if odd else 2}),
        "another plan": lambda: mt.groups("picotron", {"tp": 4 if odd else 2}),
        "another recipe": lambda: mt.groups("nanotron" if odd else "picotron", {"tp": 2}),
        "other arguments": lambda: mt.groups(plan, sort_ranks=odd),
        "another timeout": lambda: mt.groups(plan, timeout=timedelta(seconds=5) if odd else None),
        "no recipe on one rank": lambda: mt.groups("picotro" if odd else "picotron"),
        "a plan for another world": lambda: mt.groups(mt.plan("picotron", 4)),
        "a plan with parameters": lambda: mt.groups(plan, {"tp": 2}),
        "a plan with parameters by name": lambda: mt.groups(plan, tp=2),
        "no such backend": lambda: mt.groups(plan, backends={"mpj": "gloo"}),
        "a world": lambda: mt.groups("picotron", world=8),
        "an argument of nearly that name": lambda: mt.groups("picotron", timout=3),
        "a backend that torch lacks": lambda: mt.groups(plan, backends={"": "golo"}),
        "a backend of one rank": lambda: mt.groups(plan, backends={"": "golo"} if odd else None),
        "then it works": lambda: mt.groups(plan),
    }.items():
        found[name] = refusal(call)
    made = mt.groups(ODD)
    bare, late = mt.groups(BARE, {"tp": 2, "cp": 2}), mt.groups(plan)
    late.destroy()
    for name, call in {
        "no such family": lambda: made["bb"],
        "create no such family": lambda: made.create("bb"),
        "lazy": lambda: made["later"],
        "destroyed": lambda: late["tp"],
        "destroyed, of one rank": lambda: late["cp"],
        "no such grid": lambda: mt.device_mesh(made, "mash"),
        "no family for a dim": lambda: mt.device_mesh(bare, "dense"),
        "no collection": lambda: mt.megatron_collection(made),
        "a plan as groups": lambda: mt.mpu(plan), "a mesh over a plan": lambda: mt.device_mesh(plan, "dense"),
        "a collection of a plan": lambda: mt.megatron_collection(plan),
        "calls of a plan": lambda: mt.checked(plan).__enter__(),
    }.items():
        found[name] = refusal(call)
    return found


class Bad:
    """A value whose text raises."""

    def __str__(self) -> str:
        raise ZeroDivisionError("no text")
    __repr__ = __str__


def raised(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as why:  # of any kind
        return f"{type(why).__name__}: {why}"
    return ""


def odd_calls(rank: int) -> list[tuple[str, str, str]]:
    """Rank 2 fails in a way of its own; then all make the same groups, of other sizes each time: no call may meet another
    than its own."""
    found = []
    for i, (name, call) in enumerate({
        "a Path": lambda: mt.groups("megatron", {"tp": Path("2")}),
        "a set": lambda: mt.groups("megatron", {"tp": {2}}),
        "bytes": lambda: mt.groups("megatron", {"tp": b"2"}),
        "an object": lambda: mt.groups("megatron", {"tp": object}),
        "an object without a text": lambda: mt.groups("megatron", {"tp": Bad()}),
        "a lone surrogate": lambda: mt.groups("megatron", {"order": "\udcff"}),
        "a name that is a number": lambda: mt.groups("megatron", {3: 2}),
        "parameters that are a number": lambda: mt.groups("megatron", 3),
        "a recipe that is None": lambda: mt.groups(None),
        "a backend that is None": lambda: mt.groups("megatron", backends={"": None}),
        "backends that are a name": lambda: mt.groups("megatron", backends="gloo"),
        "a backend by number": lambda: mt.groups("megatron", backends={1: "gloo"}),
        "an agreement in seconds": lambda: mt.groups("megatron", agreement=5),
        "an agreement of no time": lambda: mt.groups("megatron", agreement=timedelta(0)),
        "a timeout in seconds": lambda: mt.groups("megatron", timeout=5),
    }.items()):
        sane = lambda: mt.groups("megatron", agreement=timedelta(seconds=50))
        first = raised(call if rank == 2 else sane)
        second = raised(lambda: mt.groups("megatron", {"tp": 2 ** (i % 3)}, agreement=timedelta(seconds=50)).destroy())
        found.append((name, first, second))
    return found


def bound(rank: int) -> tuple[Any, ...]:
    """init_process_group(device_id=...), as DeepSpeed calls it: groups of unequal numbers on the ranks, each used."""
    default = dist.group.WORLD
    default.bound_device_id = torch.device("cpu", 0)
    made = mt.groups(ODD)
    for group in {id(one.group): one.group for one in made.made if one.group is not None}.values():
        dist.all_reduce(torch.ones(1), group=group)
    made.create("later")
    devices = {str(one.group.bound_device_id) for one in made.made if one.group is not None}
    kept = str(default.bound_device_id)
    made.destroy()
    return kept, devices


def keys(rank: int) -> int:
    """Keys that 20 agreements leave in the store."""
    store = dist.distributed_c10d._get_default_store()
    plan = mt.plan(ODD, WORLD)
    mt.groups(plan).destroy()
    dist.barrier()
    before = store.num_keys()
    dist.barrier()
    for _ in range(20):
        # Without torch's own groups, which leave keys of their own.
        mt._agreed(lambda: (plan, "keys", None), timedelta(seconds=50))
    dist.barrier()
    return int(store.num_keys() - before)


def left_behind(rank: int) -> Refusal:
    """A member that never makes its groups is not waited for without an end."""
    mt._CONNECTING = timedelta(seconds=1)
    made = mt.groups("megatron", {"tp": 2})
    dist.barrier()
    if rank == 0:
        for number in range(len(made.made)):
            made._members(number, -1)
    dist.barrier()
    return refusal(made.destroy)


def gone(rank: int) -> list[Refusal]:
    """After torch's destroy_process_group()."""
    made = mt.groups("megatron", {"tp": 2})
    dist.barrier()
    dist.destroy_process_group()
    found = [refusal(call) for call in (lambda: made["tp"], lambda: made["cp"], lambda: made.create("tp"), made.destroy,
                                        lambda: mt.groups("megatron"), lambda: mt.device_mesh(made, "dense"),
                                        lambda: mt.checked(made).__enter__())]
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # as the harness ends by a barrier
    return [*found, refusal(lambda: made["tp"])]


def empty(rank: int) -> Refusal:
    """A plan without families is one."""
    none = mt.plan(str(ROOT / "tests/torch/recipes/none.lua"), WORLD)
    return refusal(lambda: mt.groups(none).destroy())


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
    ("a plan with parameters by name", *everywhere(200, "a Plan has its parameters already")),
    ("no such backend", *everywhere(101, "no backend 'mpj' in recipes; there are \"\", mpi and nccl")),
    ("a backend that torch lacks", *everywhere(401, NO_BACKEND)),
    ("a backend of one rank", *of_rank_2(401, NO_BACKEND)),
    ("then it works", *everywhere(0, "")),
    ("no such family", *everywhere(101, NO_FAMILY)),
    ("create no such family", *everywhere(101, NO_FAMILY)),
    ("lazy", *everywhere(202, "family 'later' is not created: it is lazy, call create")),
    ("destroyed", *everywhere(202, "family 'tp' is not created: the groups were destroyed")),
    ("destroyed, of one rank", *everywhere(202, "family 'cp' is not created: the groups were destroyed")),
    ("no such grid", *everywhere(101, "unknown grid 'mash'; nearest is 'mesh' (mesh, some)")),
    ("no family for a dim", *everywhere(101, "no family has the groups of dim 'cp' of grid 'dense'; add t.cp = t.dense "
                                             "\"cp\" to the recipe")),
    ("no collection", *everywhere(200, "a ProcessGroupCollection needs the families of the recipe megatron")),
    ("a world", *everywhere(200, "groups takes no world: it is that of torch, 8 ranks")),
    ("an argument of nearly that name", *everywhere(101, f"{NO_PARAMETER}; groups takes timeout")),
    *((name, *everywhere(102, "Plan('picotron', world=8, tp=2: 7 families) is not what groups(...) makes"))
      for name in ("a plan as groups", "a mesh over a plan", "a collection of a plan", "calls of a plan")),
]

GONE = "is gone: destroy_process_group destroyed the groups with torch's world"
ENDED = "family 'tp' is not created: the groups were destroyed"
START = "torch.distributed is not initialized: call init_process_group first"


def absent(rank: int) -> Refusal:
    """Rank 3 comes when the others have given up."""
    if rank == 3:
        dist.distributed_c10d._get_default_store().wait(["gave up"])
    got = refusal(lambda: mt.groups("picotron", agreement=timedelta(seconds=1)))
    dist.distributed_c10d._get_default_store().set("gave up", "")
    assert refusal(lambda: mt.groups("picotron", agreement=timedelta(seconds=20))) == (0, "")  # the next one works
    return got


if __name__ == "__main__":
    tap = Tap()
    alone(tap)
    every = run(WORLD, together)
    for name, mine, theirs in WANTED:
        tap.same([one.pop(name) for one in every], [mine if r == 2 else theirs for r in range(WORLD)], name)
    tap.same(every, [{}] * WORLD, "no call without an expectation")
    tap.same(run(WORLD, absent), [(403, "rank 3 did not make groups within 0:00:01")] * WORLD, "a rank that comes late")
    results = run(WORLD, odd_calls)
    for i, (name, mine, _) in enumerate(results[2]):
        quoted = mine.split(": ", 1)[1] if mine.startswith(MOONGRID) else mine
        tap.check(bool(mine) and not mine.startswith("AssertionError"), f"rank 2 refuses {name}", mine)
        told = {results[r][i][1] for r in range(WORLD) if r != 2}
        tap.same(told, {f"BackendError: rank 2 cannot make groups: {quoted}"}, f"the others are told of {name}")
        tap.same({results[r][i][2] for r in range(WORLD)}, {""}, f"the next call after {name}")
    tap.same(run(WORLD, bound), [("cpu:0", {"cpu:0"})] * WORLD, "a default group with a device")
    tap.check(max(run(WORLD, keys)) <= 1, "agreements leave no keys")
    tap.same(run(WORLD, gone), [[(202, f"family 'tp' {GONE}"), (202, f"family 'cp' {GONE}"), (202, f"family 'tp' {GONE}"),
                                 (0, ""), (202, START), (202, "a mesh over grid 'dense' is not created: the groups were "
                                                              "destroyed"), (202, START), (202, ENDED)]] * WORLD,
             "after destroy_process_group")
    tap.same(run(WORLD, left_behind), [(0, "")] * WORLD, "destroy after a member has failed")
    tap.same(run(WORLD, empty), [(0, "")] * WORLD, "a plan without families")
    tap.end()
