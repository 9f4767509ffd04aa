# SPDX-License-Identifier: MIT
"""States: a plan as one rank sees it, with communicators or without; its groups, queries and policies."""
from __future__ import annotations

import ctypes
import dataclasses
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref, c_int64
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from . import _abi
from ._abi import Coverage, Kind, Native, Status
from ._errors import error
from ._families import Grid
from ._library import (Bound, Ranks, encoded, index_of, is_rank, known, library, names_of, new_ranks, no_attribute,
                       numbers_of, rank_of, record)
from ._plan import Change, Plan, Recipe
from ._values import arg_of, args_of, value_of, words_of

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


@dataclasses.dataclass(frozen=True)
class Segment:
    """The segment of a group that this rank is in. start is a position in the group, position one in the segment; first,
    last, next and prev (around the ends) are ranks of the world."""
    index: int
    start: int
    members: int
    position: int
    first: int
    last: int
    next: int
    prev: int


class Shift(NamedTuple):
    """Positions in the group to receive from and to send to; -1: none."""
    source: int
    dest: int


class Group(Bound):
    """This rank's group of a family: an ordered list of ranks, and its communicator. It keeps its state alive."""

    _remedy = "it belongs to a state of this process; copy its ranks, group.ranks, or pickle the plan"

    def __init__(self, state: State, handle: int) -> None:
        self._state, self._at = state, handle

    @property
    def _handle(self) -> int:
        self._state._open()
        return self._at

    @property
    def family(self) -> str:
        """Name of the family."""
        found: bytes = library().c.mgrid_group_family(self._handle)
        return found.decode()

    @property
    def index(self) -> int:
        """Index of the group in the family."""
        return int(library().c.mgrid_group_index(self._handle))

    @property
    def position(self) -> int:
        """Position of this rank in the group: its rank in the communicator."""
        return int(library().c.mgrid_group_position(self._handle))

    @property
    def size(self) -> int:
        """Number of ranks."""
        return int(library().c.mgrid_group_size(self._handle))

    @property
    def ranks(self) -> Ranks:
        """Ranks of the world, in the order of the group."""
        ranks, into = new_ranks(self.size)
        library().c.mgrid_group_ranks(self._handle, len(ranks), into)
        return ranks

    @property
    def launch_order(self) -> int:
        """A number. Of groups that are used at the same time, launch the call on the group with the lowest number first."""
        return int(library().c.mgrid_group_launch_order(self._handle))

    @property
    def backend(self) -> str:
        """The backend that made the communicator: "mpi"; "dry" in a state without communicators; "none" if the family has
        this backend; "" for a group of one rank that has no communicator of its own."""
        found: bytes = library().c.mgrid_group_backend(self._handle)
        return found.decode()

    @property
    def comm(self) -> Intracomm | Any:
        """The communicator, of mpi4py, with the ranks in the order of the group. MPI.COMM_SELF for most groups of one
        rank; None if none was made (in a dry state, for a lazy family before `create`, with the backend "none"). It
        belongs to the state: do not free it. It is COMM_NULL once the state is closed."""
        from ._mpi import comm_of
        handle, made = self._handle, self._state._comms
        if Native(library().c.mgrid_group_native_kind(handle)) == Native.NATIVE_MPI:
            native = library().c.mgrid_group_native(handle)
            return made.get(native) or made.setdefault(native, comm_of(native))
        return comm_of(None) if self.size == 1 and self.backend == "" and self._state.job is not None else None

    def next(self, wrap: bool = True) -> int:
        """Return the rank of the world at the next position; after the last the first, or -1 without wrap."""
        return int(library().c.mgrid_group_beside(self._handle, 1, wrap))

    def prev(self, wrap: bool = True) -> int:
        """Return the rank of the world at the previous position; before the first the last, or -1 without wrap."""
        return int(library().c.mgrid_group_beside(self._handle, -1, wrap))

    def position_of(self, rank: int) -> int:
        """Return the position of a rank of the world, or -1 if it is not in the group."""
        return int(library().c.mgrid_group_position_of(self._handle, rank_of(rank, self._state.world)))

    def shift(self, dim: str, displacement: int = 1) -> Shift:
        """As MPI_Cart_shift, by the name of a dim, for a family with a Cartesian shape."""
        source, dest = c_int64(), c_int64()
        library().call("mgrid_group_shift", self._handle, encoded(dim), displacement, byref(source), byref(dest))
        return Shift(source.value, dest.value)

    def segment(self, *sizes: int) -> Segment:
        """Cut the group into consecutive segments of these sizes (one may be `fill`). Return the segment of this rank."""
        found = _abi.mgrid_segment()
        library().call("mgrid_group_segment", self._handle, *numbers_of(sizes), byref(found))
        return Segment(**record(found))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        return iter(self.ranks.tolist())

    @overload
    def __getitem__(self, position: int) -> int: ...
    @overload
    def __getitem__(self, position: slice) -> list[int]: ...

    def __getitem__(self, position: int | slice) -> int | list[int]:
        if isinstance(position, slice):
            return [*self][position]
        return int(library().c.mgrid_group_at(self._handle, index_of(position, self.size, "position")))

    def __contains__(self, rank: Any) -> bool:
        return is_rank(rank, self._state.world) and self.position_of(rank) >= 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self._at == other._at

    def __hash__(self) -> int:
        return hash(self._at)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.ranks.tolist()[:8])) + (", ..." if self.size > 8 else "")
        return f"Group({self.family!r}[{self.index}], position {self.position} of [{shown}])"


class Policy(Bound):
    """A policy of a recipe. Call it with its arguments by name; the result is a plain value."""

    _remedy = "it belongs to a state of this process; pickle the plan, and ask plan.policy(name) there"

    def __init__(self, state: State, name: str) -> None:
        self.name, self._state = name, state
        self._handle: int = library().call("mgrid_policy_new", state.recipe_of(), state._open(), encoded(name))
        state._policies.append(self)

    @property
    def agreed(self) -> str:
        """Which ranks compare the results, so that a call is collective over them: "world", a family, or ""."""
        found: bytes = library().c.mgrid_policy_agreed(self._handle)
        return found.decode()

    def __call__(self, **arguments: Any) -> Any:
        """Call the policy. Collective over the ranks that compare the results (`agreed`)."""
        self._state._open()
        library().call("mgrid_policy_call", self._handle, *args_of(arguments))
        result = _abi.mgrid_arg(size=ctypes.sizeof(_abi.mgrid_arg))
        library().call("mgrid_policy_result", self._handle, None, Kind.IS_NONE, byref(result))
        return value_of(result)

    def _close(self) -> None:
        if self._handle:
            library().c.mgrid_policy_free(self._handle)
            self._handle = 0

    def __repr__(self) -> str:
        return f"Policy({self.name!r})"


class State(Bound, Mapping[str, "Group | Any"]):
    """A plan seen from this rank. state["dp"] is its Group; None if the rank is in no group; a list in a cover.

    `Plan.at` makes a state without communicators, `Job.materialize` and `Job.open` make a state with communicators.
    Close a state with communicators before its job, on all ranks in the same order (it is a context manager)."""

    _remedy = "it belongs to its process; pickle state.plan, and ask plan.at(rank) there"
    _by = "plan.at(rank), or by job.open over MPI"

    def __init__(self, handle: int, plan: Plan, recipe: Recipe | None, job: Any = None) -> None:
        self._at: int | None = handle
        self.plan, self.recipe, self.job = plan, recipe, job
        self._policies: list[Policy] = []
        self._comms: dict[int, Intracomm] = {}  # by address, what `Group.comm` has given
        if job is not None:
            job.given.append(self._comms)

    def _open(self) -> int:
        if not self._at:
            raise error(Status.NOT_NOW, "the state is closed")
        if self.job is not None:
            self.job._open()
        return self._at

    def recipe_of(self) -> int | None:
        """Return the runtime of the recipe, or raise if there is none."""
        if self.recipe is None:
            raise error(Status.NOT_NOW, "the plan has no recipe: it is of a topology, or was read from a file")
        return self.recipe._handle

    @property
    def rank(self) -> int:
        """This rank."""
        return int(library().c.mgrid_state_rank(self._open()))

    @property
    def world(self) -> int:
        """Ranks of the world."""
        return self.plan.world

    def __getitem__(self, family: str) -> Group | Any:
        found = self.groups(family)
        if self.plan[family].coverage == Coverage.COVER:
            return found
        return found[0] if found else None

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, () if name[:1] == "_" else self.plan.families, 'a family is state["{}"]')

    def groups(self, family: str) -> list[Group]:
        """List this rank's groups of a family: one at most, or in a cover several."""
        known(family, self.plan.families, "family")
        found: list[Group] = []
        while handle := library().call("mgrid_state_group_nth", self._open(), encoded(family), len(found)):
            found.append(Group(self, handle))
        return found

    def __contains__(self, family: object) -> bool:
        return family in self.plan

    def __iter__(self) -> Iterator[str]:
        return iter(self.plan)

    def __len__(self) -> int:
        return len(self.plan)

    def coord(self, grid: str, dim: str) -> int:
        """Return this rank's coordinate in a dim of a grid of the plan, or -1 outside the grid."""
        return int(library().call("mgrid_state_coord", self._open(), encoded(grid), encoded(dim)))

    def submesh(self, grid: str, *dims: str) -> Grid | None:
        """Return the part of a grid along these dims that this rank is in, or None outside the grid."""
        handle = library().call("mgrid_state_submesh", self._open(), encoded(grid), *names_of(dims))
        return Grid(handle) if handle else None

    @property
    def machine(self) -> dict[str, Any]:
        """The machine of this rank, and how the job is spread over machines (mgrid_machine of moongrid_state.h)."""
        found = _abi.mgrid_machine()
        library().call("mgrid_state_machine", self._open(), byref(found))
        values = record(found)
        return {**values, "name": values["name"].decode()}

    # --------------------------------------------------------------------------- the recipe's answers

    def ask(self, query: str, **arguments: Any) -> Any:
        """Ask a query of the recipe by the modelled system's name for it. It returns None if it has no value on this rank."""
        answer = _abi.mgrid_arg(size=ctypes.sizeof(_abi.mgrid_arg))
        library().call("mgrid_runtime_ask", self.recipe_of(), self._open(), encoded(query), *args_of(arguments),
                       Kind.IS_NONE, byref(answer))
        return value_of(answer)

    def group(self, getter: str, **arguments: Any) -> Group | None:
        """Return the group that a getter of the modelled system returns: state.group("get_data_parallel_group")."""
        n, args = args_of(arguments)
        handle = library().call("mgrid_runtime_group", self.recipe_of(), self._open(), encoded(getter), n, args)
        return Group(self, handle) if handle else None

    def set(self, name: str, value: Any) -> None:
        """Set a setting of the recipe for queries about this state; the value None sets the default."""
        library().call("mgrid_runtime_set", self.recipe_of(), self._open(), byref(arg_of(name, value)))

    def policy(self, name: str) -> Policy:
        """Return a policy of the recipe, a function to call. Its calls are collective over the ranks that its `agreed`
        names."""
        return Policy(self, name)

    # ------------------------------------------------------------------------------- a running job's

    @property
    def ncomms(self) -> int:
        """Number of communicators, without those of groups of one rank."""
        return int(library().c.mgrid_state_ncomms(self._open()))

    def create(self, family: str) -> None:
        """Make the communicators of a lazy family. Collective over the job; a second call is harmless."""
        library().call("mgrid_state_create", self._open(), encoded(family))

    def prove(self) -> int:
        """Prove every communicator by collectives. Return the number of communicators of this rank. Collective."""
        proved = c_int64()
        library().call("mgrid_state_prove", self._open(), byref(proved))
        return proved.value

    def reload(self, recipe: str | os.PathLike[str] | None = None, params: Mapping[str, Any] | None = None,
               **more: Any) -> tuple[State, Change]:
        """Evaluate a recipe (None: the same one, whose file may have changed) with these parameters alone, and make its
        communicators beside those of this state; equal communicators are kept. Collective, all or nothing. It does not
        close this state: do so afterwards."""
        state, change = ctypes.c_void_p(), _abi.mgrid_change()
        words = words_of({**(params or {}), **more})
        library().call("mgrid_reload", self.recipe_of(), self._open(), os.fsencode(recipe) if recipe else None,
                       *names_of(words), byref(state), byref(change))
        assert state.value and self.recipe
        runtime = library().c.mgrid_runtime_ref(library().c.mgrid_state_runtime(state.value))
        of = Recipe(runtime, os.fspath(recipe) if recipe else self.recipe.name)
        return new_state(state.value, of, self.job, words), Change(**record(change))

    def close(self) -> None:
        """Close the state and its groups. Collective if it has communicators; a second call is harmless."""
        for policy in self._policies:
            policy._close()
        self._policies.clear()
        handle, self._at = self._at, None
        if handle and self.job is not None and self.job.alive:
            from ._mpi import forget
            forget(self._comms)
            self.job.given = [given for given in self.job.given if given is not self._comms]
        if handle and (self.job is None or self.job.alive):
            library().c.mgrid_state_free(handle)

    def __enter__(self) -> State:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self.__dict__.get("_at"):
            return
        if self.job is None:
            self.close()
        elif self.job.alive:  # freeing it is collective, so it ends with its job
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2)

    def __repr__(self) -> str:
        if not self._at:
            return "State(closed)"
        what = f"{self.ncomms} communicators" if self.job is not None else "without communicators"
        return f"State({self.plan.name or 'a topology'!r}, rank {self.rank} of {self.world}, {what})"

    def __str__(self) -> str:
        """A line for each family: this rank's groups."""
        return "\n".join(f"{family}: {' '.join(map(repr, self.groups(family))) or 'none'}" for family in self)


def new_state(handle: int, recipe: Recipe, job: Any, words: Sequence[str], file: bytes | None = None) -> State:
    """Return the State of a handle, with its plan."""
    c = library().c
    plan = Plan(c.mgrid_plan_ref(c.mgrid_state_plan(handle)), recipe, recipe.name, words, file)
    return State(handle, plan, recipe, job)


def dry(plan: Plan, rank: int) -> State:
    """Return the state of a rank without communicators."""
    lib = library()
    backend = lib.call("mgrid_backend_dry", plan.world, rank)
    try:
        return State(lib.call("mgrid_materialize", plan._handle, backend, b""), plan, plan.recipe)
    finally:
        lib.c.mgrid_backend_free(backend)
