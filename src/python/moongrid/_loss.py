# SPDX-License-Identifier: MIT
"""How a job goes on when ranks are lost (src/survive/README.md)."""
from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable
from typing import Literal, NamedTuple

from . import _abi
from ._abi import Status
from ._errors import error
from ._library import Owner, encoded, index_of, library, names_of, numbers_of, rank_of
from ._move import Move
from ._plan import Plan, Recipe


class Communicators(NamedTuple):
    """Communicators of a job, or of a family: kept have the same ordered members as before, made are new."""
    kept: int
    made: int


class MissingPart(NamedTuple):
    """A part of a tensor that is lost with all its copies: read it from a checkpoint."""
    tensor: str
    range: str                 # its indices, "row 6..11"; "": the whole tensor
    bytes: int
    holders: tuple[int, ...]   # old ranks that held it


class Loss(Owner):
    """How a job goes on when ranks are lost, made by `Plan.lose`. str(loss) is the text that the command prints.

        loss = mg.plan("llama", 16, tp=2, pp=2).lose([5, 13])
        loss.how, loss.layout              # "shrink", 12: ranks of the new layout
        loss.moved, loss.without_copy      # bytes from surviving copies; bytes that only a checkpoint has
        loss.plan                          # the plan of the survivors, which may lose ranks again
    """

    _free = "mgrid_loss_free"
    _by = "plan.lose([3])"
    _remedy = "pickle the plan, and ask it again: plan.lose(ranks)"

    def __init__(self, handle: int, before: Plan) -> None:
        super().__init__(handle)
        self._before = before
        lib = library()
        found = json.loads(lib.text("mgrid_loss_print", handle, True))
        self.how: Literal["replace", "shrink", "stop"] = found["how"]
        self.why: str = found["why"]                     # of a stop
        self.lost: list[int] = found["lost"]             # ascending
        self.layout: int = found["layout"]               # ranks of the new layout
        self.params: list[str] = found["params"]         # parameters that changed, "dp=3"
        self.idle: list[int] = found["idle"]             # old ranks that are in no family of the new layout
        self.old_ranks: list[int] = found["old_ranks"]   # the old rank of each rank of the plan, from rank 0 on
        self.uncounted: int = found["uncounted"]         # tensors that only one of the two plans has in this shape
        comms, size = found["communicators"], found["bytes"]
        self.communicators = Communicators(comms["kept"], comms["made"])
        self.dropped: int = comms["dropped"]             # communicators that end
        self.families = {name: Communicators(**one) for name, one in comms["families"].items()}
        self.stay: int = size["stay"]                    # bytes that ranks of the new layout already hold
        self.moved: int = size["moved"]                  # bytes that other ranks send them
        self.without_copy: int = size["missing"]         # bytes that no survivor holds, each counted once
        self.missing = [MissingPart(one["tensor"], one["range"], one["bytes"], tuple(one["holders"]))
                        for one in found["missing"]]
        plan = lib.c.mgrid_loss_plan(handle)
        self.plan = _after(before, lib.c.mgrid_plan_ref(plan), self.params) if plan else None

    @property
    def digest(self) -> str:
        """32 hexadecimal digits, equal for equal decisions."""
        text = ctypes.create_string_buffer(33)
        library().c.mgrid_loss_digest(self._handle, text)
        return text.value.decode()

    def rank(self, old: int) -> int | None:
        """Return the rank in the next plan of an old rank; None if it is lost, or if the job stops."""
        found = int(library().c.mgrid_loss_rank(self._handle, rank_of(old, self._before.world)))
        return found if found >= 0 else None

    def kept(self, family: str, group: int) -> tuple[str, int] | None:
        """Return the family and group of the old plan whose communicator a group of the new plan keeps, or None."""
        if self.plan is None:
            return None
        index_of(group, self.plan[family].count, "group")
        name, at = ctypes.c_char_p(), ctypes.c_int64()
        if not library().c.mgrid_loss_kept(self._handle, encoded(family), group, ctypes.byref(name), ctypes.byref(at)):
            return None
        return (name.value or b"").decode(), at.value

    def move(self, rank: int, *tensors: str) -> Move:
        """Plan what a rank of the new plan sends and receives to fill the new layout from surviving copies: for these
        tensors, or for all that both plans have in the same shape."""
        return Move(library().call("mgrid_loss_move", self._handle, rank, *names_of(tensors), None), rank)

    def __str__(self) -> str:
        return library().text("mgrid_loss_print", self._handle, False)

    def __repr__(self) -> str:
        lost = ", ".join(map(str, self.lost[:8])) + (", ..." if len(self.lost) > 8 else "")
        return f"Loss([{lost}]: {f'{self.how}, a layout of {self.layout} ranks' if self.plan else 'stop'})"


def _after(before: Plan, handle: int, params: list[str]) -> Plan:
    """Return the plan after a loss, with the changed parameters."""
    words, changed = list(before._words), {text.partition("=")[0]: text for text in params}
    for i, word in enumerate(words):
        words[i] = changed.pop(word.partition("=")[0], word)
    return Plan(handle, before.recipe, before.name, [*words, *changed.values()], before._file, alone=True)


class _Losses(Owner):
    """A plan, and data that all its possible losses share."""

    _free = "mgrid_losses_free"


def lose(plan: Plan, ranks: Iterable[int], how: str | None) -> Loss:
    """Decide how the job goes on when these ranks are lost."""
    if not isinstance(plan.recipe, Recipe):
        raise error(Status.NOT_NOW, "what a job becomes is up to its recipe: plan(recipe, ...) makes a plan that has one")
    if how not in plan._losses:
        options = _abi.mgrid_losses_options(how=None if how is None else encoded(how), params=plan._file)
        plan._losses[how] = _Losses(library().call("mgrid_losses_new", plan.recipe._handle, plan._handle,
                                                  *names_of(plan._words), ctypes.byref(options)))
    return Loss(library().call("mgrid_loss_new", plan._losses[how]._handle, *numbers_of(ranks)), plan)
