# SPDX-License-Identifier: MIT
"""Compares calls of torch.distributed with the step of a recipe: moongrid.torch.checked."""
from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ._abi import Status
from ._errors import error
from ._library import Bound
from ._step import Step, StepCall

if TYPE_CHECKING:
    from .torch import Groups

Arguments = Mapping[str, Any]


def _bytes(value: Any) -> int:
    """Return the bytes of a tensor, or of all tensors in a list."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    return sum(_bytes(one) for one in value)


class _Call(NamedTuple):
    """The call of a step that a function of torch makes."""
    operation: str
    bytes: Callable[[Arguments, int], int]  # from the arguments, and the size of the group
    peer: str = ""                          # the name of the argument that is the root or the peer


def _of(name: str) -> Callable[[Arguments, int], int]:
    return lambda a, size: _bytes(a[name])


_CALLS = {
    "all_reduce": _Call("all_reduce", _of("tensor")),
    "all_gather": _Call("all_gather", _of("tensor_list")),
    "all_gather_into_tensor": _Call("all_gather", _of("output_tensor")),
    "all_gather_single": _Call("all_gather", _of("output_tensor")),  # torch 2.15's names, which FSDP2 uses
    "reduce_scatter": _Call("reduce_scatter", _of("input_list")),
    "reduce_scatter_tensor": _Call("reduce_scatter", _of("input")),
    "reduce_scatter_single": _Call("reduce_scatter", _of("input")),
    "all_to_all": _Call("all_to_all", _of("input_tensor_list")),
    "all_to_all_single": _Call("all_to_all", _of("input")),
    "broadcast": _Call("broadcast", _of("tensor"), "src"),
    "reduce": _Call("reduce", _of("tensor"), "dst"),
    "gather": _Call("gather", lambda a, size: size * _bytes(a["tensor"]), "dst"),
    "scatter": _Call("scatter", lambda a, size: size * _bytes(a["tensor"]), "src"),
    "barrier": _Call("barrier", lambda a, size: 0),
    "send": _Call("send", _of("tensor"), "dst"),
    "isend": _Call("send", _of("tensor"), "dst"),
    "recv": _Call("recv", _of("tensor"), "src"),
    "irecv": _Call("recv", _of("tensor"), "src"),
}


class CheckedCalls(Bound):
    """The object that `moongrid.torch.checked` yields."""

    _remedy = "it watches the calls of its process"

    def __init__(self, made: Groups, step: Step, rank: int) -> None:
        self._made, self._step, self._rank = made, step, rank
        # Families by their group. A group of one rank sends nothing, so its calls are not compared.
        self._families = {id(one.group): one.families for one in made.made if one.group is not None}
        self._inside = False
        self._originals: list[tuple[Any, str, Any]] = []
        self.calls = 0  # the number of compared calls
        self._steps = 0  # the number of whole steps since `end`
        self._aside = ""  # the last call over the default group since `end`, which was not compared
        self._refused = False
        self._begin()

    def __repr__(self) -> str:
        return f"CheckedCalls({self._step!r}, {self.calls} calls compared)"

    # ------------------------------------------------------------------------------- the step

    def _begin(self) -> None:
        travels = {name for families in self._families.values() for name in families}
        self._left: Iterator[StepCall] = (call for call in self._step.calls(self._rank) if call.family in travels)
        self._next = next(self._left, None)
        self._begun = False

    def _take(self) -> None:
        self._next = next(self._left, None)
        self._begun = True
        if self._next is None:
            self._begin()  # the next call is the first of the next step
            self._steps += 1

    def end(self) -> None:
        """Check that all calls of one step were made since the last `end`, each once."""
        if self._next is not None and (self._begun or self._steps != 1):
            if self._begun:
                raise self._refusal(f"the step has not ended: it has {self._told(self._next)} next")
            if self._steps:
                self._aside = ""
                raise self._refusal(f"the step was made {self._steps} times since the last end()")
            unseen = "" if self._aside else "; calls of DistributedDataParallel and functional collectives are not seen"
            raise self._refusal(f"no call of the step was seen: it has {self._told(self._next)} first{unseen}")
        self._steps, self._aside = 0, ""

    def leave(self) -> None:
        """Check the end of a block that raised no error."""
        if not self._refused and (self._begun or not self.calls):
            self.end()

    def _refusal(self, why: str) -> Exception:
        self._refused = True
        aside = f"; {self._aside} over all ranks, without group= or with None, was not compared" if self._aside else ""
        return error(Status.DISAGREE, why + aside)

    @staticmethod
    def _told(call: StepCall) -> str:
        return f"{call}, {call.file}:{call.line}," if call.line else f"{call}"

    # ----------------------------------------------------------------------------- the calls

    def _seen(self, name: str, arguments: Arguments, group: dist.ProcessGroup) -> StepCall:
        """Return the call that the trainer makes."""
        call, families = _CALLS[name], self._families[id(group)]
        position: Any = -1
        if call.peer:
            position = arguments.get(f"group_{call.peer}")
            if position is None:
                peer = arguments.get(call.peer)
                position = dist.get_group_rank(group, peer if peer is not None else 0)
        size = dist.get_world_size(group)
        return StepCall(call.operation, families[0], "", "", 0, call.bytes(arguments, size), position)

    def _fits(self, seen: StepCall, group: dist.ProcessGroup, planned: StepCall) -> bool:
        return (planned.family in self._families[id(group)] and seen.operation == planned.operation
                and seen.bytes == planned.bytes and seen.position == planned.position)

    def _compare(self, seen: list[tuple[StepCall, dist.ProcessGroup]]) -> None:
        """Compare calls that begin together, in any order."""
        for _ in range(len(seen)):
            planned = self._next
            fits = [i for i, (one, group) in enumerate(seen) if planned and self._fits(one, group, planned)]
            if not fits:
                told = f"and the step has {self._told(planned)} next" if planned else "and the step has no calls"
                raise self._refusal(f"the call is {seen[0][0]}, {told}".rstrip(","))
            del seen[fits[0]]
            self._take()
            self.calls += 1

    def _check(self, name: str, arguments: Arguments) -> None:
        if name == "batch_isend_irecv":
            together: list[tuple[StepCall, Any]] = []
            for op in arguments["p2p_op_list"]:
                kind = op.op.__name__
                if self._compared(kind, op.group):
                    peer = {_CALLS[kind].peer: op.peer}
                    together.append((self._seen(kind, {"tensor": op.tensor, **peer}, op.group), op.group))
            return self._compare(together)
        group: Any = arguments.get("group")
        if self._compared(name, group):
            self._compare([(self._seen(name, arguments, group), group)])
        return None

    def _compared(self, name: str, group: Any) -> bool:
        if group is None or group is dist.group.WORLD:
            self._aside = name
        return id(group) in self._families

    # ------------------------------------------------------------------------------- patches

    def _wrapped(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def call(*args: Any, **more: Any) -> Any:
            if self._inside:
                return original(*args, **more)
            self._inside = True
            try:
                self._check(name, signature.bind(*args, **more).arguments)
                return original(*args, **more)
            finally:
                self._inside = False
        return call

    def patch(self) -> None:
        """Replace the functions of torch.distributed in every module that has them, under any name."""
        wrapped: dict[int, tuple[Any, Any]] = {}
        for name in [*_CALLS, "batch_isend_irecv"]:
            original = getattr(c10d, name, None)
            if original is not None:
                wrapped.setdefault(id(original), (original, self._wrapped(name, original)))
        for module in list(sys.modules.values()):
            for name, value in list(getattr(module, "__dict__", {}).items()):
                original, call = wrapped.get(id(value), (None, None))
                if original is not None and value is original:
                    self._originals.append((module, name, original))
                    setattr(module, name, call)

    def restore(self) -> None:
        """Restore the functions."""
        for module, name, original in reversed(self._originals):
            setattr(module, name, original)
        self._originals.clear()
