# SPDX-License-Identifier: MIT
"""Moves beside torch's DTensor: 8 gloo processes carry what a move plans by torch's own messages, from random placements to
others, and end with what DTensor.redistribute gives each of them, element by element."""
from __future__ import annotations

import ctypes
import random
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any

from processes import ROOT, Tap, need, run

need("torch", "torch")

import moongrid_torch as mg
import torch
import torch.distributed as dist
from torch.distributed._tensor import Replicate, Shard, distribute_tensor  # torch.distributed.tensor since 2.5
from torch.distributed.device_mesh import init_device_mesh

WORLD, CASES = 8, 60
RECIPE = str(ROOT / "tests/torch/recipes/placed.lua")
AXES_MAX = 8
STAYS, SENDS, RECEIVES = range(3)
Case = dict[str, list[int]]


class Piece(ctypes.Structure):
    """mgrid_move_piece"""
    _fields_ = [("size", c_size_t), ("way", c_int), ("peer", c_int64), ("tensor", c_size_t), ("naxes", c_size_t),
                ("bytes", c_int64), ("lengths", c_int64 * AXES_MAX), ("from_offset", c_int64),
                ("from_strides", c_int64 * AXES_MAX), ("to_offset", c_int64), ("to_strides", c_int64 * AXES_MAX)]


class Peer(ctypes.Structure):
    """mgrid_move_peer"""
    _fields_ = [("size", c_size_t)] + [(name, c_int64) for name in
                                       ("rank", "send", "receive", "send_round", "receive_round")]


class Part(ctypes.Structure):
    """mgrid_tensor_part"""
    _fields_ = [("size", c_size_t), ("held", c_bool), ("naxes", c_size_t), ("shape", c_int64 * AXES_MAX)] + [
        (name, c_int64) for name in ("elements", "bytes", "copy", "slice", "first", "offset")]


Take = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Piece))
LIBRARY = mg.Library()
for name, result, arguments in [
    ("mgrid_move_new", c_void_p, [c_void_p, c_void_p, c_int64, c_size_t, c_void_p, c_void_p, POINTER(mg.Error)]),
    ("mgrid_move_free", None, [c_void_p]),
    ("mgrid_move_npeers", c_size_t, [c_void_p]),
    ("mgrid_move_peers", c_int, [c_void_p, c_size_t, POINTER(Peer), POINTER(mg.Error)]),
    ("mgrid_move_pieces", c_int, [c_void_p, c_int, c_int64, Take, c_void_p, POINTER(mg.Error)]),
    ("mgrid_tensor_local", c_int, [c_void_p, c_char_p, c_int64, POINTER(Part), POINTER(mg.Error)]),
]:
    getattr(LIBRARY.c, name).restype, getattr(LIBRARY.c, name).argtypes = result, arguments


def pieces(move: int, way: int, peer: int, part: torch.Tensor, before: bool) -> list[torch.Tensor]:
    """Views of the elements of this rank's part that a message has, one behind the other."""
    found: list[torch.Tensor] = []

    def take(_ud: object, at: Any) -> int:
        p = at.contents
        strides, offset = (p.from_strides, p.from_offset) if before else (p.to_strides, p.to_offset)
        found.append(part.as_strided(p.lengths[:p.naxes], strides[:p.naxes], offset))
        return 0
    LIBRARY.call("mgrid_move_pieces", move, way, peer, Take(take), None)
    return found


def carry(plans: list[mg.Plan], rank: int, part: torch.Tensor) -> torch.Tensor:
    """What this rank has after the move of the part that it has before."""
    about = Part(size=ctypes.sizeof(Part))
    LIBRARY.call("mgrid_tensor_local", plans[1]._plan, b"w", rank, ctypes.byref(about))
    after = torch.full(about.shape[:about.naxes], -1, dtype=torch.int64)
    move = LIBRARY.call("mgrid_move_new", plans[0]._plan, plans[1]._plan, rank, 0, None, None)
    for source, target in zip(pieces(move, STAYS, 0, part, True), pieces(move, STAYS, 0, after, False)):
        target.copy_(source)
    coming: list[tuple[int, torch.Tensor]] = []
    works: list[Any] = []
    for i in range(LIBRARY.c.mgrid_move_npeers(move)):
        peer = Peer(size=ctypes.sizeof(Peer))
        LIBRARY.call("mgrid_move_peers", move, i, ctypes.byref(peer))
        if peer.receive:
            coming.append((peer.rank, torch.empty(peer.receive // 8, dtype=torch.int64)))
            works.append(dist.irecv(coming[-1][1], peer.rank))
        if peer.send:
            message = torch.cat([piece.reshape(-1) for piece in pieces(move, SENDS, peer.rank, part, True)])
            assert message.numel() * 8 == peer.send
            works.append(dist.isend(message, peer.rank))
    for work in works:
        work.wait()
    for source, message in coming:
        for piece in pieces(move, RECEIVES, source, after, False):
            piece.copy_(message[:piece.numel()].view(piece.shape))
            message = message[piece.numel():]
        assert message.numel() == 0
    LIBRARY.c.mgrid_move_free(move)
    return after


def placements(places: list[int]) -> list[Any]:
    return [Replicate() if axis < 0 else Shard(axis) for axis in places]


def work(rank: int, cases: list[Case]) -> list[str]:
    """What is wrong, of each case."""
    wrong = []
    for case in cases:
        mesh = init_device_mesh("cpu", tuple(case["mesh"]))
        plans = [mg.Plan(RECIPE, WORLD, {"mesh": case["mesh"], "shape": case["shape"], "place": case[side]}, LIBRARY)
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
