# SPDX-License-Identifier: MIT
"""moongrid.torch.checked follows real steps of FSDP2 on 4 gloo processes, and names the first call that differs."""
from __future__ import annotations

from typing import Any

from processes import Tap, need, run

need("torch", "torch")

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:
    print("1..0 # SKIP this torch has no fully_shard")
    raise SystemExit(0)

import moongrid.torch as mt
from tap import refusal

WORLD, LAYERS, HIDDEN, FFN, WORDS, LENGTH = 4, 3, 32, 48, 64, 16


class Block(nn.Module):
    """A block with the parameters of Llama's; what it computes does not matter here."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ParameterList([nn.Parameter(torch.ones(HIDDEN)) for _ in range(2)])
        self.attention = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(4)])
        self.up = nn.ModuleList([nn.Linear(HIDDEN, FFN, bias=False) for _ in range(2)])
        self.down = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x: Any) -> Any:
        y = x * self.norms[0]
        for one in self.attention:
            y = one(y)
        x = x + y
        y = x * self.norms[1]
        return x + self.down(self.up[0](y) * self.up[1](y))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, HIDDEN)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.Parameter(torch.ones(HIDDEN))
        self.head = nn.Linear(HIDDEN, WORDS, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x * self.norm)


def follow(rank: int, keeps: bool, recompute: str = "none") -> Any:
    groups = mt.groups("torchtitan", {"layers": LAYERS, "hidden": HIDDEN, "heads": 4, "ffn": FFN, "vocab": WORDS,
                                      "seq": LENGTH, "global_batch": 2 * WORLD, "weight_type": "fp32",
                                      "recompute": recompute})
    over = groups["loss"]
    assert isinstance(over, dist.ProcessGroup)
    mesh = DeviceMesh.from_group(over, "cpu")
    model = Model()
    if recompute == "full":
        model.blocks = nn.ModuleList([checkpoint_wrapper(block) for block in model.blocks])
    for i, block in enumerate(model.blocks):
        fully_shard(block, mesh=mesh, reshard_after_forward=not (keeps and i == 1))
    fully_shard(model, mesh=mesh)

    def step() -> None:
        for _ in range(2):
            model(torch.zeros(1, LENGTH, dtype=torch.long)).sum().backward()
        check.end()

    with mt.checked(groups) as check:
        if keeps:
            return refusal(step)
        step()
        step()
        return check.calls, 2 * sum(1 for _ in groups.plan.step().calls(rank))


if __name__ == "__main__":
    tap = Tap()
    made = run(WORLD, follow, False)
    tap.check(all(calls == planned > 0 for calls, planned in made), "each call is the step's", made)
    made = run(WORLD, follow, False, "full")
    tap.check(all(calls == planned > 0 for calls, planned in made), "so it is when blocks are computed again", made)
    told = run(WORLD, follow, True)
    tap.check(all("the call is reduce_scatter(" in words and "and the step has all_gather(" in words for _, words in told),
              "a block that is not gathered again is named", told)
    tap.end()
