# SPDX-License-Identifier: MIT
"""Moves beside torch's DTensor: 8 gloo processes carry what a move plans by torch's own messages, from random placements to
others, and end with what DTensor.redistribute gives each of them, element by element."""
from __future__ import annotations

import random
from typing import Any

from processes import ROOT, Tap, need, run

need("torch", "torch")

import moongrid as mg
import torch
import torch.distributed as dist
from torch.distributed._tensor import Replicate, Shard, distribute_tensor  # torch.distributed.tensor since 2.5
from torch.distributed.device_mesh import init_device_mesh

WORLD, CASES = 8, 60
RECIPE = str(ROOT / "tests/torch/recipes/placed.lua")
Case = dict[str, list[int]]


def pieces(move: mg.Move, way: mg.Way, peer: int, part: torch.Tensor, before: bool) -> list[torch.Tensor]:
    """Views of the elements of this rank's part that a message has, one behind the other."""
    return [part.as_strided(p.lengths, p.from_strides if before else p.to_strides, p.from_offset if before else p.to_offset)
            for p in move.pieces(way, peer)]


def carry(plans: list[mg.Plan], rank: int, part: torch.Tensor) -> torch.Tensor:
    """What this rank has after the move of the part that it has before."""
    after = torch.full(plans[1].tensor("w", rank)["shape"], -1, dtype=torch.int64)
    move = plans[0].move(plans[1], rank)
    for source, target in zip(pieces(move, mg.Way.STAYS, 0, part, True), pieces(move, mg.Way.STAYS, 0, after, False)):
        target.copy_(source)
    coming: list[tuple[int, torch.Tensor]] = []
    works: list[Any] = []
    for peer in move.peers:
        if peer.receive:
            coming.append((peer.rank, torch.empty(peer.receive // 8, dtype=torch.int64)))
            works.append(dist.irecv(coming[-1][1], peer.rank))
        if peer.send:
            message = torch.cat([piece.reshape(-1) for piece in pieces(move, mg.Way.SENDS, peer.rank, part, True)])
            assert message.numel() * 8 == peer.send
            works.append(dist.isend(message, peer.rank))
    for work in works:
        work.wait()
    for source, message in coming:
        for piece in pieces(move, mg.Way.RECEIVES, source, after, False):
            piece.copy_(message[:piece.numel()].view(piece.shape))
            message = message[piece.numel():]
        assert message.numel() == 0
    return after


def placements(places: list[int]) -> list[Any]:
    return [Replicate() if axis < 0 else Shard(axis) for axis in places]


def work(rank: int, cases: list[Case]) -> list[str]:
    """What is wrong, of each case."""
    wrong = []
    for case in cases:
        mesh = init_device_mesh("cpu", tuple(case["mesh"]))
        plans = [mg.plan(RECIPE, WORLD, {"mesh": case["mesh"], "shape": case["shape"], "place": case[side]})
                 for side in ("before", "after")]
        whole = torch.arange(torch.Size(case["shape"]).numel()).view(case["shape"])
        tensor = distribute_tensor(whole, mesh, placements(case["before"]))
        theirs = tensor.redistribute(mesh, placements(case["after"])).to_local()
        ours = carry(plans, rank, tensor.to_local().contiguous())
        same = ours.numel() == theirs.numel() and bool((ours.reshape(-1) == theirs.reshape(-1)).all())
        wrong.append("" if same else f"{ours.tolist()} is not {theirs.tolist()}")
    return wrong


def draw(seed: int) -> Case:
    r = random.Random(seed)
    mesh = r.choice([[8], [2, 4], [4, 2], [2, 2, 2]])
    shape = [r.randint(1, 19) for _ in range(r.randint(1, 3))]
    return {"mesh": mesh, "shape": shape, "before": [r.randint(-1, len(shape) - 1) for _ in mesh],
            "after": [r.randint(-1, len(shape) - 1) for _ in mesh]}


if __name__ == "__main__":
    tap = Tap()
    cases = [{"mesh": [2, 4], "shape": [16, 24], "before": [0, 1], "after": [1, 0]}] + [draw(i) for i in range(CASES)]
    for case, *wrong in zip(cases, *run(WORLD, work, cases)):
        tap.check(not any(wrong), ", ".join(f"{key} {value}" for key, value in case.items()),
                  "\n".join(f"rank {rank}: {why}" for rank, why in enumerate(wrong) if why))
    tap.end()
