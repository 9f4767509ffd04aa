# SPDX-License-Identifier: MIT
"""Create process groups in torch on gloo, each way in turn, each in new processes: torch_groups.py RANKS LAUNCHES
    moongrid    moongrid.torch.groups of the recipe megatron: library, recipe, plan, agreement, groups
    megatron    Megatron-core's own initialize_model_parallel
    stock       the groups that moongrid makes, by torch's new_group, which every rank calls for every group
It prints lines WAY KEY<tab>NUMBER: milliseconds from the start of the first rank to the end of the last, and counts
of rank 0."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "torch"))
from processes import run  # noqa: E402  pylint: disable=wrong-import-position

import megatron.core  # noqa: E402
import moongrid.torch as mg  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import parallel_state  # noqa: E402

SIZES = {"tp": 2, "cp": 2, "pp": 2, "version": ".".join(megatron.core.__version__.split(".")[:2])}


def moongrid() -> None:
    mg.groups("megatron", SIZES)


def megatron_core() -> None:
    parallel_state.initialize_model_parallel(SIZES["tp"], SIZES["pp"], context_parallel_size=SIZES["cp"])


def stock(lists: list[list[int]]) -> None:
    for ranks in lists:
        dist.new_group(ranks, sort_ranks=False)


def measure(_rank: int, way: str, lists: list[list[int]]) -> dict[str, float]:
    make: Callable[[], None] = {"moongrid": moongrid, "megatron": megatron_core, "stock": lambda: stock(lists)}[way]
    first, before = torch.zeros(1), len(os.listdir("/proc/self/task"))
    calls = 0
    new_group = dist.new_group

    def counted(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        return new_group(*arguments, **named)
    dist.new_group = torch.distributed.new_group = counted
    dist.all_reduce(first)
    start = time.monotonic()
    make()
    end = time.monotonic()
    span = torch.tensor([-start, end], dtype=torch.float64)
    dist.all_reduce(span, op=dist.ReduceOp.MAX)
    groups = len(dist.distributed_c10d._world.pg_map) - 1  # without the world
    return {"cold": 1e3 * span.sum().item(), "groups": groups, "calls": calls or groups,
            "threads": len(os.listdir("/proc/self/task")) - before}


def shared(world: int) -> list[list[int]]:
    """The groups that moongrid makes in this world, of all ranks, in one order."""
    plan, found = mg.plan("megatron", world, SIZES), {}
    order = {family: i for i, family in enumerate(plan.families)}
    for rank in range(world):
        view = plan.json(rank)
        for what in view["communicators"]:
            found[order[what["family"]], what["index"]] = view["families"][what["family"]]["ranks"]
    return [found[key] for key in sorted(found)]


if __name__ == "__main__":
    ranks, launches = int(sys.argv[1]), int(sys.argv[2])
    lists = shared(ranks)
    for _ in range(launches):
        for way in ("moongrid", "megatron", "stock"):
            for key, value in run(ranks, measure, way, lists)[0].items():
                print(f"{way} {key}\t{value:.6g}", flush=True)
