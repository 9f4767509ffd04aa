# SPDX-License-Identifier: MIT
"""The step of a plan: what travels over its groups (src/step/README.md)."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._abi import Status
from ._errors import error
from ._library import Owner, library, rank_of

if TYPE_CHECKING:
    from ._plan import Plan


class StepCall(NamedTuple):
    """A call of a rank's program."""
    operation: str  # "all_reduce"
    family: str
    stream: str     # "main" unless the step says another
    file: str       # of the recipe
    line: int
    bytes: int
    position: int   # of the root, or of the member that it sends to or receives from; -1: there is none

    def __str__(self) -> str:
        way = {"send": f" to {self.position}", "recv": f" from {self.position}"}.get(self.operation, "")
        root = f", root {self.position}" if self.position >= 0 and not way else ""
        return f"{self.operation}({self.family}{way}) of {self.bytes} bytes{root}"


class Step(Owner):
    """The programs of all ranks, made by `plan.step()`. One program is evaluated for all ranks that the step does not
    distinguish.

        step = mg.plan("megatron", 64, tp=8, pp=4).step()
        step.prove()                 # the MoongridError of a deadlock names which rank waits for which
        for call in step.calls(17): print(call)
    """

    _free = "mgrid_step_free"
    _by = "plan.step()"

    def __init__(self, handle: int, plan: Plan, file: bytes | None) -> None:
        super().__init__(handle)
        self._plan, self._file = plan, file

    @property
    def classes(self) -> int:
        """The number of classes of ranks."""
        return int(library().c.mgrid_step_nclasses(self._handle))

    @property
    def digest(self) -> str:
        """32 hexadecimal digits, equal for two steps if all ranks have equal programs."""
        text = ctypes.create_string_buffer(33)
        library().c.mgrid_step_digest(self._handle, text)
        return text.value.decode()

    def __reduce__(self) -> tuple[Any, ...]:
        return _step_again, (self._plan, self._file and os.path.abspath(self._file), self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def class_of(self, rank: int) -> int:
        """Return the class of a rank."""
        return int(library().c.mgrid_step_class(self._handle, rank_of(rank, self._plan.world)))

    def operations(self, rank: int) -> int:
        """Count the operations of a rank, loops unrolled."""
        return int(library().c.mgrid_step_operations(self._handle, rank_of(rank, self._plan.world)))

    def prove(self, blocking: bool = False) -> None:
        """Prove that every rank reaches the end of its program under the rules of NCCL, or with `blocking` of MPI. If
        the proof takes more than the limits of the recipe, the error (Status.LIMIT) says what is proved so far."""
        library().call("mgrid_step_prove", self._handle, blocking)

    def calls(self, rank: int) -> Iterator[StepCall]:
        """Yield the calls of a rank one by one, loops unrolled as it goes."""
        return self._follow(rank_of(rank, self._plan.world))

    def _follow(self, rank: int) -> Iterator[StepCall]:
        c = library().c
        follower = library().call("mgrid_step_follow", self._handle, rank)
        found = _abi.mgrid_step_call()
        try:
            while c.mgrid_step_next(follower, ctypes.byref(found)):
                yield StepCall(found.operation.decode(), found.family.decode(), found.stream.decode(),
                               found.file.decode(), found.line, found.bytes, found.position)
        finally:
            c.mgrid_step_follower_free(follower)

    def __repr__(self) -> str:
        return f"Step({self._plan.name!r}, {self._plan.world} ranks in {self.classes} classes)"


def _step_again(plan: Plan, file: bytes | None, digest: str) -> Step:
    made = plan.step(os.fsdecode(file) if file else None)
    if made.digest != digest:
        raise error(Status.DISAGREE, "the recipe makes another step than when this one was pickled")
    return made
