# SPDX-License-Identifier: MIT
"""Topologies: families by name, from which a plan is made without a recipe."""
from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from . import _abi
from ._abi import Status
from ._errors import error
from ._families import Family, Grid
from ._library import Owner, encoded, handle_of, known, library, names_of
from ._plan import Plan, saved


class Topology(Owner):
    """Families by name, in the order of creation, from which a plan is made without a recipe.

        g = mg.grid(8, tp=2, pp=2, dp=mg.fill)
        t = mg.topology(8)
        t["tp"] = g("tp")
        t.add("dp", g("dp"), lazy=True)
        plan = t.plan()
    """

    _free = "mgrid_topology_free"
    _by = "moongrid.topology(8)"

    def __init__(self, handle: int, world: int) -> None:
        super().__init__(handle)
        self._world = world
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []  # a copy repeats them

    def add(self, name: str, family: Family, **options: Any) -> None:
        """Add a family, with options of its communicators (mgrid_options of moongrid_plan.h: unique=True, lazy=True,
        backend="none", ...)."""
        struct = _abi.mgrid_options()
        allowed = [field for field, *_ in struct._fields_ if field != "size"]
        for option, value in options.items():
            setattr(struct, known(option, allowed, "option"), encoded(value) if isinstance(value, str) else value)
        library().call("mgrid_topology_add", self._handle, encoded(name), handle_of(family, Family),
                       ctypes.byref(struct))
        self._calls.append(("add", (name, family), options))

    def __setitem__(self, name: str, value: Family | Grid) -> None:
        if isinstance(value, Grid):
            library().call("mgrid_topology_add_grid", self._handle, encoded(name), value._handle)
            self._calls.append(("__setitem__", (name, value), {}))
        elif isinstance(value, Family):
            self.add(name, value)
        else:
            raise error(Status.BAD_VALUE, f"'{name}' is neither a Family nor a Grid, but {type(value).__name__}")

    def concurrent(self, *families: str) -> None:
        """Declare families that are used at the same time, the most urgent first: they never share a communicator."""
        library().call("mgrid_topology_concurrent", self._handle, *names_of(families))
        self._calls.append(("concurrent", families, {}))

    def __reduce__(self) -> tuple[Any, ...]:
        return _topology_again, (self._world, self._calls)

    def __copy__(self) -> Topology:
        return _topology_again(self._world, self._calls)

    def __deepcopy__(self, memo: dict[int, Any]) -> Topology:
        return self.__copy__()

    def plan(self) -> Plan:
        """Make the plan."""
        return Plan(library().call("mgrid_plan_new", self._handle))

    def __repr__(self) -> str:
        added = [arguments[0] for method, arguments, _ in self._calls if method != "concurrent"]
        return f"Topology({self._world} ranks: {', '.join(added) or 'empty'})"


def topology(world: int) -> Topology:
    """Make an empty topology of a world."""
    return Topology(library().call("mgrid_topology_new", world), world)


def _topology_again(world: int, calls: Iterable[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> Topology:
    made = topology(world)
    for method, arguments, options in calls:
        getattr(made, method)(*arguments, **options)
    return made


def family_of(text: str, twin: bool) -> Family:
    """Return the family of a plan that Family.__reduce__ saved."""
    found = Plan(saved(text.encode()))["family"]
    return found.twin() if twin else found


def grid_of(text: str) -> Grid:
    """Return the grid of a plan that Grid.__reduce__ saved."""
    return Plan(saved(text.encode())).grids["grid"]
