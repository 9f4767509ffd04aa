# SPDX-License-Identifier: MIT
"""Plans in what torch writes and starts: torch.save, the workers of a DataLoader; what belongs to a process stays there."""
from __future__ import annotations

import copy
import io
import pickle
from typing import Any

from processes import Tap, need, run

need("torch", "torch")

import moongrid as mg
import moongrid.torch as mt
import torch
from torch.utils.data import DataLoader, Dataset


class Ranks(Dataset[Any]):
    """Each item is what a worker reads of the plan."""

    def __init__(self, plan: mg.Plan) -> None:
        self.plan = plan

    def __len__(self) -> int:
        return self.plan.world

    def __getitem__(self, rank: int) -> list[int]:
        return [*self.plan["dp"].of(rank), self.plan.ask("tensor_model_parallel_rank", rank)]


def stays(rank: int) -> list[str]:
    groups = mt.groups("megatron", {"tp": 2})
    said = []
    for thing in (groups, mt.CheckedCalls(groups, groups.plan.step(), rank)):
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            try:
                way(thing)
                said.append(f"{type(thing).__name__} went through {way.__name__}")
            except TypeError as why:
                said.append("" if thing._remedy in str(why) else str(why))
    groups.destroy()
    return said


if __name__ == "__main__":
    tap = Tap()
    plan = mg.plan("megatron", 8, tp=2)
    file = io.BytesIO()
    torch.save({"plan": plan, "step": 3}, file)
    file.seek(0)
    tap.same(torch.load(file, weights_only=False), {"plan": plan, "step": 3}, "torch.save and torch.load")
    ranks = Ranks(plan)
    wanted = [[int(x) for x in ranks[i]] for i in range(8)]
    for start in ("fork", "spawn"):
        loader = DataLoader(ranks, batch_size=None, num_workers=1, multiprocessing_context=start, timeout=100)
        tap.same([[int(x) for x in one] for one in loader], wanted, f"a worker of a DataLoader, by {start}")
    tap.same(run(2, stays), [[""] * 6] * 2, "groups and checked calls stay in their process")
    tap.end()
