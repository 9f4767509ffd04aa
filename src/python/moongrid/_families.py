# SPDX-License-Identifier: MIT
"""Grids with named dims, and families of groups."""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ctypes import byref, c_int64
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from . import _abi
from ._abi import Coverage, Status
from ._errors import error
from ._library import (Owner, Ranks, encoded, handle_of, handles_of, index_of, is_rank, known, library, names_of, new_ranks,
                       no_attribute, numbers_of, numpy, rank_of, whole)
from ._values import plain

if TYPE_CHECKING:
    import numpy.typing

fill = _abi.FILL  # the size of the one dim that takes all ranks left by the others


class Window(NamedTuple):
    """`size` consecutive ranks of a world, from `offset` on."""
    world: int
    offset: int
    size: int


class Place(NamedTuple):
    """The group and position of a rank in a family."""
    group: int
    position: int


def _window(world: int | Window) -> _abi.mgrid_window:
    where = Window(*world) if isinstance(world, tuple) else Window(world, 0, world)
    return _abi.mgrid_window(**{field: whole(value, field) for field, value in where._asdict().items()})


def _dims(sizes: Mapping[str, int]) -> tuple[int, Any]:
    dims = [_abi.mgrid_dim(name=encoded(n), size=whole(s, n)) for n, s in sizes.items()]
    return len(dims), (_abi.mgrid_dim * len(dims))(*dims)


class Grid(Owner):
    """Ranks with a coordinate in each of some dims, listed fastest-varying first. Made by `grid`; immutable.

    g("tp") is the family of a dim, as in a recipe: tp varies inside a group, the other dims number the groups.
    """

    _free = "mgrid_grid_free"
    _by = "moongrid.grid(8, tp=2, dp=4)"

    @functools.cached_property
    def dims(self) -> dict[str, int]:
        """Sizes by name, fastest-varying first."""
        c = library().c
        found = [c.mgrid_grid_dim(self._handle, i) for i in range(c.mgrid_grid_ndims(self._handle))]
        return {dim.name.decode(): dim.size for dim in found}

    @property
    def size(self) -> int:
        """Number of ranks: the product of the sizes."""
        return int(library().c.mgrid_grid_size(self._handle))

    @property
    def window(self) -> Window:
        """The ranks from the grid's lowest to its highest, and the world."""
        found = library().c.mgrid_grid_window(self._handle)
        return Window(found.world, found.offset, found.size)

    def __len__(self) -> int:
        return self.size

    def __call__(self, *dims: str, as_written: bool = False, by: Sequence[str] | None = None) -> Family:
        """Return the family of these dims. Members are in the grid's order; as_written: the first name varies fastest.
        by: the order of the dims that number the groups, first fastest (implies as_written)."""
        n, names = names_of(dims)
        if by is not None:
            return Family(library().call("mgrid_grid_along_by", self._handle, n, names, *names_of(by)))
        return Family(library().call("mgrid_grid_along", self._handle, n, names, int(as_written)))

    along = __call__

    def coords(self, rank: int) -> dict[str, int] | None:
        """Return the rank's coordinates by dim, or None outside the grid."""
        if self.position(rank) < 0:
            return None
        return {dim: library().c.mgrid_grid_coord(self._handle, rank, i) for i, dim in enumerate(self.dims)}

    def rank(self, **coords: int) -> int:
        """Return the rank at these coordinates; a dim that is left out is at 0."""
        at = [coords.get(dim, 0) for dim in self.dims]
        for dim in coords:
            known(dim, list(self.dims), "dim")
        found = library().c.mgrid_grid_rank(self._handle, numbers_of(at)[1])
        if found < 0:
            raise error(Status.OUT_OF_RANGE, f"no rank at {coords}: the grid is {self}")
        return int(found)

    def position(self, rank: int) -> int:
        """Return the rank's position in the grid's order, or -1 outside the grid."""
        return int(library().c.mgrid_grid_position(self._handle, rank_of(rank, self.window.world)))

    def __contains__(self, rank: Any) -> bool:
        return is_rank(rank, self.window.world) and self.position(rank) >= 0

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, () if name[:1] == "_" else self.dims,
                               'grid.dims["{0}"] is the size of a dim, grid("{0}") its family')

    def mesh(self) -> numpy.typing.NDArray[numpy.int64]:
        """Return the ranks as a numpy array with an axis for each dim, slowest first, as torch's DeviceMesh has them."""
        if numpy is None:
            raise error(Status.MISSING, "mesh() needs numpy: pip install numpy")
        return numpy.asarray(self(*self.dims)[0], dtype=numpy.int64).reshape(tuple(self.dims.values())[::-1])

    def unflatten(self, dim: str, **sizes: int) -> Grid:
        """Cut a dim into several, fastest first, whose product is its size; one may be `fill`."""
        return Grid(library().call("mgrid_grid_unflatten", self._handle, encoded(dim), *_dims(sizes)))

    def flatten(self, name: str, *dims: str) -> Grid:
        """Merge dims that follow each other in the grid's order into one."""
        return Grid(library().call("mgrid_grid_flatten", self._handle, encoded(name), *names_of(dims)))

    def rename(self, **names: str) -> Grid:
        """Rename dims: old="new"."""
        for dim in names:
            known(dim, list(self.dims), "dim")
        _, new = names_of(names.get(dim, dim) for dim in self.dims)
        return Grid(library().call("mgrid_grid_rename", self._handle, new))

    def _coords(self, coords: Mapping[str, int]) -> Any:
        for dim in coords:
            known(dim, list(self.dims), "dim")
            if coords[dim] < 0:  # in C this means a dim that stays
                raise error(Status.OUT_OF_RANGE, f"coordinate {coords[dim]} of dim '{dim}' is out of range (0 to "
                                                 f"{self.dims[dim] - 1})")
        return numbers_of([coords.get(dim, -1) for dim in self.dims])[1]

    def at(self, **coords: int) -> Grid:
        """Keep the ranks at these coordinates; the other dims stay."""
        return Grid(library().call("mgrid_grid_at", self._handle, self._coords(coords)))

    def __reduce__(self) -> tuple[Any, ...]:
        from ._topology import grid_of, topology
        kept = topology(self.window.world)
        kept["grid"] = self
        return grid_of, (kept.plan().save(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grid) and bool(library().c.mgrid_grid_equal(self._handle, other._handle))

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return library().described("mgrid_grid_describe", self._handle)

    def __repr__(self) -> str:
        low = self.window.offset
        return f"Grid(({', '.join(f'{n}={s}' for n, s in self.dims.items())}), ranks {low}..{low + self.window.size - 1})"


def grid(world: int | Window, order: str | Sequence[str] | None = None, /, **sizes: int) -> Grid:
    """Make a grid over a world: dims by name and size, fastest-varying first; one may be `fill`.

        grid(8, tp=2, pp=2, dp=fill)
        grid(8, "tp-dp-pp", tp=2, pp=2, dp=fill)   # a name of the order without a size has size 1

    The product must be the number of ranks; if not, the error has the nearest sizes that fit."""
    if isinstance(order, Mapping) or (isinstance(order, str) and "," in order):
        raise error(Status.BAD_VALUE, f"the order of dims is written 'tp-dp', and sizes tp=2, dp=4; not {order!r}")
    if order is not None:
        names = order.split("-") if isinstance(order, str) else list(order)
        for dim, size in sizes.items():
            if size != 1:
                known(dim, names, "dim of the order")
        sizes = {**{name: sizes.get(name, 1) for name in names}, **{n: s for n, s in sizes.items() if n not in names}}
    return Grid(library().call("mgrid_grid_new", _window(world), *_dims(sizes)))


class Family(Owner):
    """All groups that one rule makes; a group is an ordered list of ranks. Immutable.

    len(f) is the number of groups, f[i] the ranks of group i, and `for ranks in f` goes through all groups. f == g: the
    same groups in the same order, with members in the same order. Ranks are numpy arrays where numpy is installed.
    str(f) is the text of the rule, which `rule` reads; repr(f) has the groups."""

    _free = "mgrid_family_free"
    _by = 'plan["dp"], moongrid.grid(8, tp=2, dp=4)("dp") or moongrid.table(8, [[0, 1], [2, 3]])'

    @property
    def world(self) -> int:
        """Ranks of the world."""
        return int(library().c.mgrid_family_world(self._handle))

    def __len__(self) -> int:
        return int(library().c.mgrid_family_count(self._handle))

    @property
    def count(self) -> int:
        """Number of groups, even if it is too large for len."""
        return int(library().c.mgrid_family_count(self._handle))

    @property
    def size(self) -> int:
        """Ranks of the largest group."""
        return int(library().c.mgrid_family_max_size(self._handle))

    @property
    def total(self) -> int:
        """Members of all groups."""
        return int(library().c.mgrid_family_total(self._handle))

    @property
    def coverage(self) -> Coverage:
        """PARTITION: every rank of the world is in one group; PARTIAL: in one at most; COVER: maybe in several."""
        return Coverage(library().c.mgrid_family_coverage(self._handle))

    def size_of(self, group: int) -> int:
        """Return the number of ranks of a group."""
        return int(library().c.mgrid_family_size(self._handle, index_of(group, self.count, "group")))

    @overload
    def __getitem__(self, group: int) -> Ranks: ...
    @overload
    def __getitem__(self, group: slice) -> list[Ranks]: ...

    def __getitem__(self, group: int | slice) -> Ranks | list[Ranks]:
        if isinstance(group, slice):
            return [self[i] for i in range(*group.indices(self.count))]
        group = index_of(group, self.count, "group")
        ranks, into = new_ranks(library().c.mgrid_family_size(self._handle, group))
        library().c.mgrid_family_members(self._handle, group, 1, len(ranks), into)
        return ranks

    def ranks(self) -> Ranks:
        """Return the ranks of all groups, one after the other; with numpy and groups of equal size, as an array of
        shape (groups, size). O(members)."""
        ranks, into = new_ranks(self.total)
        library().c.mgrid_family_members(self._handle, 0, self.count, len(ranks), into)
        if numpy is None or self.total != self.count * self.size:
            return ranks
        return numpy.asarray(ranks, dtype=numpy.int64).reshape(self.count, self.size)

    def tolist(self) -> list[list[int]]:
        """Return all groups as lists. O(members)."""
        return [self[i].tolist() for i in range(self.count)]

    def locate(self, rank: int, nth: int = 0) -> Place | None:
        """Return the group of a rank, and the rank's position there; None if the rank is in no group. In a cover, where a
        rank may be in several groups, return the nth of them, from 0."""
        group, position, number = c_int64(), c_int64(), rank_of(rank, self.world)
        if not library().c.mgrid_family_locate(self._handle, number, whole(nth, "nth"), byref(group), byref(position)):
            return None
        return Place(group.value, position.value)

    def of(self, rank: int, nth: int = 0) -> Ranks | Any:
        """Return the ranks of the group of a rank; None if the rank is in no group. nth is that of `locate`."""
        place = self.locate(rank, nth)
        return None if place is None else self[place.group]

    def __iter__(self) -> Iterator[Ranks]:
        return (self[i] for i in range(self.count))

    def __contains__(self, rank: Any) -> bool:
        return is_rank(rank, self.world) and self.locate(rank) is not None

    # ---------------------------------------------------------------------- families made of this one

    def split(self, k: int, lists: bool = False, rows: bool = False) -> tuple[Family, Family]:
        """Cut each group into runs of k consecutive positions. Return the runs, and the ranks at equal positions of the
        runs. lists: make lists if the result follows no rule. rows: count groups first, then runs."""
        inner, outer = ctypes.c_void_p(), ctypes.c_void_p()
        library().call("mgrid_family_split", self._handle, k, lists, rows, byref(inner), byref(outer))
        assert inner.value and outer.value
        return Family(inner.value), Family(outer.value)

    def levels(self, *sizes: int) -> list[Family]:
        """Split repeatedly. Return the families of all levels, the innermost first. The product of the sizes is the
        size of a group."""
        out = (ctypes.c_void_p * len(sizes))()
        library().call("mgrid_family_levels", self._handle, *numbers_of(sizes), out)
        return [Family(one) for one in out if one]

    def segments(self, *sizes: int) -> Family:
        """Cut each group into segments of these sizes; one may be `fill`."""
        return Family(library().call("mgrid_family_segments", self._handle, *numbers_of(sizes)))

    def pick(self, *positions: int) -> Family:
        """Keep these positions of every group; negative ones count from the end."""
        return Family(library().call("mgrid_family_pick", self._handle, *numbers_of(positions)))

    def groups(self, *numbers: int) -> Family:
        """Keep these groups, in this order; negative numbers count from the end."""
        return Family(library().call("mgrid_family_select", self._handle, *numbers_of(numbers)))

    def where(self, over: Grid | Callable[[list[int]], bool], **coords: int) -> Family:
        """Keep the groups whose ranks are all at fixed coordinates of a grid; or, if `over` is a function, the groups for
        whose ranks it returns True (O(members))."""
        if not isinstance(over, Grid):
            return self.groups(*(i for i, ranks in enumerate(self.tolist()) if over(ranks)))
        return Family(library().call("mgrid_family_where", self._handle, over._handle, over._coords(coords)))

    def renumber(self, order: Iterable[int]) -> Family:
        """Reorder the groups: group i of the result is group order[i]."""
        return Family(library().call("mgrid_family_renumber", self._handle, *numbers_of(order)))

    def bundle(self, n: int) -> Family:
        """Join every n consecutive groups."""
        return Family(library().call("mgrid_family_bundle", self._handle, n))

    def pairs(self, wrap: bool = False, step: int = 1) -> Family:
        """Make pairs of ranks that are `step` positions apart in a group; wrap: the last ranks also form pairs with the
        first. A rank may be in two pairs."""
        return Family(library().call("mgrid_family_neighbours", self._handle, step, wrap))

    def map(self, fn: Callable[[list[int]], Iterable[int]]) -> Family:
        """Replace every group by the ranks that a function of its ranks returns. New groups must share no ranks. O(world)."""
        raised: list[BaseException] = []

        def change(_ud: object, _group: int, ranks: Any, n: int, cap: int, _err: object) -> int:
            try:
                new = list(fn(ranks[:n]))
                for i, rank in enumerate(new[:cap]):
                    ranks[i] = rank
                return len(new)
            except BaseException as why:  # must not pass through C
                raised.append(why)
                return 0
        try:
            made = Family(library().call("mgrid_family_map", self._handle, _abi.mgrid_map_fn(change), None))
        except Exception:
            if raised:
                raise raised[0] from None
            raise
        if raised:
            raise raised[0]
        return made

    def without(self, ranks: Iterable[int]) -> Family:
        """Leave out ranks; members and groups keep their order."""
        return Family(library().call("mgrid_family_without", self._handle, *numbers_of(ranks)))

    def lists(self) -> Family:
        """Make the same groups as explicit lists. O(world)."""
        return Family(library().call("mgrid_family_lists", self._handle))

    def twin(self) -> Family:
        """Make the same groups, which in a topology get their own communicators."""
        return Family(library().call("mgrid_family_twin", self._handle))

    def __or__(self, other: Family) -> Family:
        return union(self, other) if isinstance(other, Family) else NotImplemented

    # ---------------------------------------------------------------------------- pickles, comparison, text

    def __reduce__(self) -> tuple[Any, ...]:
        from ._topology import family_of, topology
        kept = topology(self.world)
        kept["family"] = kept["again"] = self  # if they do not share communicators, the family is a twin
        plan = kept.plan()
        return family_of, (plan.save(), self.size > 1 and plan.shares("again") is None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and bool(library().c.mgrid_family_equal(self._handle, other._handle))

    def __hash__(self) -> int:
        return hash((self.world, self.count, self.total))

    def __str__(self) -> str:
        return library().described("mgrid_family_describe", self._handle)

    def few(self, groups: int = 4, ranks: int = 8) -> str:
        """Return the number of groups, and the first ranks of the first groups, as text."""
        shown, c = [], library().c
        for group in range(min(groups, self.count)):
            size = self.size_of(group)
            some = (str(c.mgrid_family_rank(self._handle, group, i)) for i in range(min(ranks, size)))
            shown.append("{" + ",".join(some) + (",...}" if size > ranks else "}"))
        return (f"{self.count} group{'s' * (self.count != 1)} of {self.size}: {' '.join(shown)}"
                f"{' ...' if self.count > groups else ''}")

    def __repr__(self) -> str:
        return f"Family({self.few()})"


def union(*families: Family) -> Family:
    """Make a family of all groups of several families, one family after the other. The families must share no ranks."""
    return Family(library().call("mgrid_family_union", *handles_of(families, Family)))


def zip(*families: Family, spread: bool = False) -> Family:  # as the verb of recipes
    """Join group i of each family into group i. spread: groups of a family that has fewer are used several times."""
    return Family(library().call("mgrid_family_zip", *handles_of(families, Family), spread))


def table(world: int | Window, groups: Iterable[Iterable[int]], coverage: Coverage = Coverage.PARTITION) -> Family:
    """Make a family of lists of ranks, which must have this `coverage`."""
    lists: list[list[int]] = []
    for ranks in groups:
        if not isinstance(ranks, Iterable):
            raise error(Status.BAD_VALUE, f"{ranks!r} is not a group; groups are written [[0, 1], [2, 3]]")
        lists.append(list(plain(ranks)))
    starts = [0]
    for ranks in lists:
        starts.append(starts[-1] + len(ranks))
    _, members = numbers_of([rank for ranks in lists for rank in ranks])
    return Family(library().call("mgrid_family_table", _window(world), len(lists), numbers_of(starts)[1], members,
                                 int(coverage)))


def rule(world: int | Window, text: str) -> Family:
    """Make a family from the text of its rule, "(2:1) x (4:2)", which str(family) writes; layouts of CuTe as well."""
    return Family(library().call("mgrid_family_parse", _window(world), encoded(text)))
