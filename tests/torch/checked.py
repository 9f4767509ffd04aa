# SPDX-License-Identifier: MIT
"""moongrid.torch.checked: calls that are those of the recipe's step, and calls that are not, on 4 gloo processes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from processes import ROOT, Tap, need, run
from tap import refusal

need("torch", "torch")

import moongrid.torch as mt
import torch
import torch.distributed as dist
from torch.distributed import all_reduce as by_another_name

WORLD = 4
STEP = str(ROOT / "tests/torch/recipes/step.lua")
LINES = {word: number for number, line in enumerate(open(STEP), 1)
         for word in ("128", "root = 1", "barrier", "s:send(", "sendrecv", "s:loop") if word in line}


def of(count: int) -> torch.Tensor:
    """So many bytes."""
    return torch.zeros(count // 4)


def train(groups: mt.Groups, skip: str = "") -> None:
    """The calls of the step, in the many forms of torch; `skip` leaves one out."""
    tp, pp = groups["tp"], groups["pp"]
    assert isinstance(tp, dist.ProcessGroup) and isinstance(pp, dist.ProcessGroup)
    rank, peer = dist.get_rank(), (dist.get_rank() + 2) % 4
    root = dist.get_global_rank(pp, 1)
    mine = dist.get_rank(pp) == 1
    two = lambda count: [of(count), of(count)]  # noqa: E731
    by_another_name(of(64), group=tp)
    dist.all_reduce(of(128), dist.ReduceOp.SUM, tp)
    dist.all_gather(two(32), of(32), group=tp)
    dist.all_gather_into_tensor(of(128), of(64), group=tp)
    if skip != "reduce_scatter":
        dist.reduce_scatter(of(32), two(32), group=tp)
    dist.reduce_scatter_tensor(of(64), of(128), group=tp)
    dist.all_to_all(two(32), two(32), group=tp)
    dist.all_to_all_single(of(128), of(128), group=tp)
    dist.all_reduce(torch.zeros(1))  # over all ranks: none of the recipe's groups
    dist.broadcast(of(64), root, group=pp)
    dist.reduce(of(64), root, group=pp)
    dist.gather(of(32), two(32) if mine else None, root, group=pp)
    dist.scatter(of(32), two(32) if mine else None, root, group=pp)
    dist.barrier(group=pp)
    if rank < 2:
        dist.send(of(32), peer, group=pp)
    else:
        dist.recv(of(32), peer, group=pp)
    messages = [dist.P2POp(dist.irecv, of(16), peer, pp), dist.P2POp(dist.isend, of(16), peer, pp)]
    for request in dist.batch_isend_irecv(messages):
        request.wait()
    for _ in range(2):
        dist.all_reduce(of(8), group=tp)


def good(rank: int) -> tuple[int, str]:
    groups = mt.groups(STEP)
    before = dist.all_reduce
    with mt.checked(groups) as check:
        for _ in range(3):
            train(groups)
            check.end()
    assert dist.all_reduce is before, "the functions are torch's again"
    train(groups)
    return check.calls, groups.plan.step().digest


def bad(rank: int) -> dict[str, tuple[int, str]]:
    groups = mt.groups(STEP)
    tp, pp = groups["tp"], groups["pp"]
    assert isinstance(tp, dist.ProcessGroup) and isinstance(pp, dist.ProcessGroup)
    found: dict[str, tuple[int, str]] = {}

    def refused(name: str, call: Callable[[], Any]) -> None:
        with mt.checked(groups):
            found[name] = refusal(call)

    refused("another size", lambda: dist.all_reduce(of(60), group=tp))
    refused("another group", lambda: dist.all_reduce(of(64), group=pp))
    refused("another operation", lambda: dist.broadcast(of(64), dist.get_global_rank(tp, 1), group=tp))
    with mt.checked(groups) as check:
        dist.all_reduce(of(64), group=tp)
        found["an early end"] = refusal(check.end)
    refused("a call that is left out", lambda: train(groups, "reduce_scatter"))
    for name, calls in SHORT.items():
        with mt.checked(groups) as check:
            calls(groups)
            found[name] = refusal(check.end)

    def left(part: Callable[[], object]) -> None:
        with mt.checked(groups):
            part()
    found["a block without a call"] = refusal(lambda: left(lambda: None))
    found["a block that ends in a step"] = refusal(lambda: left(lambda: dist.all_reduce(of(64), group=tp)))
    left(lambda: (train(groups), train(groups)))
    found["another step on one rank"] = refusal(lambda: mt.checked(groups, None if rank else other()).__enter__())
    bare = mt.groups("nanotron", {"tp": 2})
    found["no step"] = refusal(lambda: mt.checked(bare).__enter__())
    return found


def ddp(groups: mt.Groups) -> None:
    tp = groups["tp"]
    assert isinstance(tp, dist.ProcessGroup)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4), process_group=tp)
    model(torch.ones(2, 4)).sum().backward()


SHORT: dict[str, Callable[[mt.Groups], object]] = {
    "no call": lambda groups: None,
    "all ranks instead of a group": lambda groups: dist.all_reduce(of(64)),
    "none for a group": lambda groups: dist.all_reduce(of(64), group=None),
    "calls of C++": ddp,
    "a step twice": lambda groups: (train(groups), train(groups)),
}


def other() -> mt.Step:
    return mt.plan(STEP, WORLD).step(ROOT / "tests/torch/recipes/other_step.lua")


def main() -> None:
    tap = Tap()
    plan = mt.plan(STEP, WORLD)
    made = run(WORLD, good)
    whole = len(list(plan.step().calls(0)))
    tap.same([calls for calls, _ in made], [3 * whole] * WORLD, "all calls of three steps are those of the step")
    tap.same({digest for _, digest in made}, {plan.step().digest}, "of the plan")
    told = run(WORLD, bad)
    first = f"and the step has all_reduce(tp) of 64 bytes, {STEP}:{LINES['128'] - 1}, next"
    begins = f"it has all_reduce(tp) of 64 bytes, {STEP}:{LINES['128'] - 1}, first"
    world = "; all_reduce over all ranks, without group= or with None, was not compared"
    unseen = "; calls of DistributedDataParallel and functional collectives are not seen"
    for name, message in {
        "no call": f"no call of the step was seen: {begins}{unseen}",
        "all ranks instead of a group": f"no call of the step was seen: {begins}{world}",
        "none for a group": f"no call of the step was seen: {begins}{world}",
        "calls of C++": f"no call of the step was seen: {begins}{unseen}",
        "a step twice": "the step was made 2 times since the last end()",
        "a block without a call": f"no call of the step was seen: {begins}{unseen}",
        "a block that ends in a step": f"the step has not ended: it has all_reduce(tp) of 128 bytes, {STEP}:{LINES['128']}, next",
        "another size": f"the call is all_reduce(tp) of 60 bytes, {first}",
        "another group": f"the call is all_reduce(pp) of 64 bytes, {first}",
        "another operation": f"the call is broadcast(tp) of 64 bytes, root 1, {first}",
        "an early end": f"the step has not ended: it has all_reduce(tp) of 128 bytes, {STEP}:{LINES['128']}, next",
        "a call that is left out": "the call is reduce_scatter(tp) of 128 bytes, and the step has reduce_scatter(tp) of 64 "
                                   f"bytes, {STEP}:{LINES['128'] - 1}, next",
    }.items():
        tap.same([one[name] for one in told], [(int(mt.Status.DISAGREE), message)] * WORLD, name)
    tap.same(len({one["another step on one rank"] for one in told}), 1, "all ranks have one error about another step")
    tap.same(told[0]["another step on one rank"][0], int(mt.Status.DISAGREE), "another step on one rank")
    tap.same([one["no step"][1].split(":")[0] for one in told], ["the recipe nanotron has no step"] * WORLD, "no step")
    tap.end()


if __name__ == "__main__":
    main()
