# SPDX-License-Identifier: MIT
"""The process groups of a moongrid recipe, in torch.distributed.

    import moongrid.torch as mt

    dist.init_process_group("nccl")
    groups = mt.groups("megatron", tp=2, pp=2)              # collective; or a path: "layout.lua"
    dist.all_reduce(gradient, group=groups["dp"])
    mesh = mt.device_mesh(groups, "dense")                  # a torch DeviceMesh over a grid of the recipe
    pgs = mt.megatron_collection(groups)                    # Megatron-core's ProcessGroupCollection
    mpu = mt.mpu(groups)                                    # for DeepSpeed and Megatron: mpu.get_data_parallel_group()
    with mt.checked(groups):                                # raises if calls differ from the recipe's step
        train()

examples/torch/README.md says what it promises. It needs torch 2.4 or later, and no MPI.
"""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, Union
from unittest import mock

import torch
import torch.distributed as dist
from torch.distributed import device_mesh as mesh_module
from torch.distributed.device_mesh import DeviceMesh

from ._abi import Status
from ._checked import CheckedCalls
from ._errors import MoongridError, UnknownNameError, error
from ._families import Family, Grid
from ._library import Bound, known, library, no_attribute
from ._plan import Plan, Recipe, plan, recipes
from ._step import Step

__all__ = ["CheckedCalls", "Groups", "Made", "MoongridError", "Mpu", "Plan", "Status", "Step", "checked", "device_mesh",
           "groups", "megatron_collection", "mpu", "plan"]
CheckedCalls.__module__ = __name__

Group = Union[dist.ProcessGroup, Any]  # Any: None or a list, where the recipe has such families
_Choice = TypeVar("_Choice")
# Any: torch's private functions and its stores have no types.
c10d: Any = dist.distributed_c10d
stores: Any = dist


# ---------------------------------------------------------------- the agreement


_AGREEMENT = timedelta(minutes=5)
_CONNECTING = timedelta(seconds=30)


def _agreed(choose: Callable[[], tuple[Plan, str, _Choice]], timeout: Any) -> tuple[int, _Choice]:
    """Call `choose`, which returns a plan, a text of other arguments, and a value. Then check that plan and text are
    equal on all ranks. Collective over the world, by torch's store alone. Return the number of this agreement, which is
    the same on all ranks and was never used before, and the value.

    This rank counts its call before anything can fail, and tells a failure to the others. So they do not wait for it,
    and the next calls of all ranks have the same number again."""
    if not dist.is_initialized():
        raise error(Status.NOT_NOW, "torch.distributed is not initialized: call init_process_group first")
    calls = stores.PrefixStore("moongrid", c10d._get_default_store())
    number: int = calls.add(f"calls of {dist.get_rank()}", 1)
    found, failure = None, None
    try:
        if not isinstance(timeout, timedelta) or timeout <= timedelta():
            timeout, given = _AGREEMENT, timeout
            raise error(Status.BAD_VALUE, f"agreement is {given!r}, not a timedelta above 0")
        found = choose()
    except Exception as why:
        failure = why
    try:
        _compare(calls, number, found and found[0], found[1] if found else _told(failure), timeout)
    except MoongridError as why:
        raise failure or why from None
    except RuntimeError as why:
        raise failure or error(Status.BACKEND, f"torch's store failed: {why}") from why
    assert found is not None
    return number, found[2]


def _told(failure: Exception | None) -> str:
    said = str(failure) if isinstance(failure, MoongridError) else f"{type(failure).__name__}: {failure}"
    return said.encode(errors="replace").decode()


def _compare(calls: Any, number: int, plan: Plan | None, asked: str, timeout: timedelta) -> None:
    """Check that all ranks have the same plan and the same text `asked`. Without a plan `asked` is the error."""
    rank, world = dist.get_rank(), dist.get_world_size()
    store = stores.PrefixStore(str(number), calls)
    mine = f"{plan.digest} {asked}" if plan is not None else f"failed: {asked}"
    if store.add(f"count {mine}", 1) == 1 and plan is not None:
        store.set(f"text {mine}", plan.text())  # only the first rank with this plan
    # The counter "here" decides which rank sets the outcome: the last to come, or the first whose wait times out, which
    # adds `late`.
    late = 1 << 32
    if store.add("here", 1) == world:
        equal = plan is not None and store.add(f"count {mine}", 0) == world
        store.set("outcome", "equal" if equal else "different")
    try:
        store.wait(["outcome"], timeout)
    except RuntimeError:  # DistStoreError since torch 2.5
        if store.add("here", late) - late < world:
            absent = [r for r in range(world) if calls.add(f"calls of {r}", 0) < number]
            store.set("outcome", f"{_ranks(absent)} did not make groups within {timeout}")
        store.wait(["outcome"], timeout)
    outcome = store.get("outcome").decode()
    if outcome == "equal":
        if store.add("left", 1) == world:  # the last rank that reads the keys deletes them
            for key in (f"count {mine}", f"text {mine}", "here", "outcome", "left"):
                store.delete_key(key)
        return
    if outcome != "different":
        raise error(Status.TIMED_OUT, outcome)
    store.set(f"rank {rank}", mine)
    said = [store.get(f"rank {r}").decode() for r in range(world)]  # waits for each
    if failed := [r for r in range(world) if said[r].startswith("failed: ")]:
        first = said[failed[0]].removeprefix("failed: ")
        raise error(Status.OTHER_RANK, f"{_ranks(failed)} cannot make groups: {first}")
    most = max(said, key=said.count)
    others = [r for r in range(world) if said[r] != most]
    texts = [store.get(f"text {which}").decode() + f"asked for {which.split(' ', 1)[1]}"
             for which in (said[others[0]], most)]
    lines = itertools.zip_longest(*(text.splitlines() for text in texts), fillvalue="")
    theirs, ours = next((pair for pair in lines if pair[0] != pair[1]), (said[others[0]], most))
    raise error(Status.DISAGREE, f'{_ranks(others)} would make other groups: rank {others[0]} has '
                                         f'"{theirs.strip()}", rank {said.index(most)} has "{ours.strip()}"')


def _ranks(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8])) + (f" and {len(ranks) - 8} more" if len(ranks) > 8 else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"


# ------------------------------------------------------------------- the groups


@dataclasses.dataclass(frozen=True)
class Made:
    """A process group that this rank is in, and its arguments in torch."""
    families: tuple[str, ...]  # the families that use the group
    ranks: tuple[int, ...]     # in the order of the group
    backend: str               # torch's name
    timeout: timedelta         # of its creation and of every operation on it
    ignored: tuple[str, ...]   # options of the recipe that this backend does not have
    options: object            # ProcessGroupNCCL.Options, or None
    lazy: bool
    group: dist.ProcessGroup | None = None  # None: not created


class Groups(Bound, Mapping[str, Group]):
    """The process groups of this rank by family. groups["dp"] is a ProcessGroup; None if this rank is in no group of
    the family (test for it: torch takes group=None for all ranks); a list if a rank may be in several (pairs). Made by
    `groups`."""

    _remedy = "process groups belong to their process; pickle groups.plan, and make them there"

    def __init__(self, plan: Plan, backends: Mapping[str, str], timeout: timedelta | None, sort_ranks: bool) -> None:
        """Choose the groups; make none yet."""
        self.plan = plan
        self._number = 0  # of the agreement; 0: nothing is made
        self._default = dist.group.WORLD  # the groups live as long as this is torch's default group
        self._alone: dist.ProcessGroup | None = None
        self._view = plan.json(dist.get_rank())
        self.made = [self._choose(i, what["options"], backends, timeout, sort_ranks)
                     for i, what in enumerate(self._view["communicators"])]

    def make(self, number: int) -> None:
        """Make the groups that are not lazy, after the agreement of that number."""
        self._number = number
        try:
            for i, made in enumerate(self.made):
                if not made.lazy:
                    self._create(i)
        except BaseException:
            self.destroy()
            raise

    def __getitem__(self, family: str) -> Group:
        where = self._view["families"][known(family, self.plan.families, "family")]
        if isinstance(where, list):
            return [self._group(family, one) for one in where]
        return None if where is None else self._group(family, where)

    def __contains__(self, family: object) -> bool:
        return family in self.plan.families

    def __iter__(self) -> Iterator[str]:
        return iter(self.plan.families)

    def __len__(self) -> int:
        return len(self.plan.families)

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, () if name[:1] == "_" else self.plan.families, 'a family is groups["{}"]')

    def __repr__(self) -> str:
        return f"Groups({self.plan!r}, {len(self.made)} process groups of this rank)"

    def __str__(self) -> str:
        """The groups made on this rank, a line for each."""
        return "\n".join(f"{' '.join(made.families)}: ranks {' '.join(map(str, made.ranks))}, {made.backend}, "
                         f"{made.timeout.total_seconds():g} s{', lazy' if made.lazy else ''}"
                         + (f" (without {', '.join(made.ignored)})" if made.ignored else "") for made in self.made)

    def create(self, family: str) -> None:
        """Make this rank's groups of a lazy family. Collective over the members of each; a second call is harmless."""
        where = self._view["families"][known(family, self.plan.families, "family")]
        self.alive(f"family '{family}'")
        for one in where if isinstance(where, list) else [where]:
            number = one and one["communicator"]
            if number is not None and self.made[number].group is None:
                self._create(number)

    def destroy(self) -> None:
        """Destroy the process groups, the last first; after that this object has none. Every member must call it. Wait at
        most 30 seconds for members that are still connecting to this rank."""
        if self._default is dist.group.WORLD:
            self._settle()
        made, self.made, self._number = self.made, [], 0
        for group in [self._alone, *(one.group for one in reversed(made))]:
            if group is not None and self._default is dist.group.WORLD:  # else torch has destroyed them with the world
                dist.destroy_process_group(group)
        self._alone = None

    def _settle(self) -> None:
        """Wait until all members have made the groups of this rank: over gloo a rank that closes its connections ends the
        creation of another. A member that has failed never has them, and the store may be gone with rank 0."""
        ended = time.monotonic() + _CONNECTING.total_seconds()
        with contextlib.suppress(RuntimeError):
            for number, made in enumerate(self.made):
                while made.group is not None and self._members(number, 0) < len(made.ranks) and time.monotonic() < ended:
                    time.sleep(0.01)

    def _members(self, number: int, more: int) -> int:
        """Add to the number of members that have made a group; return it."""
        store = stores.PrefixStore("moongrid", c10d._get_default_store())
        members: int = store.add(f"members of {self._name(number)}", more)
        return members

    def _name(self, number: int) -> str:
        what = self._view["communicators"][number]
        return f"moongrid/{self._number}/{what['family']}/{what['index']}"

    def alive(self, what: str) -> None:
        """Raise unless the groups live: neither `destroy` nor torch's destroy_process_group() has ended them."""
        if self._number == 0:
            raise error(Status.NOT_NOW, f"{what} is not created: the groups were destroyed")
        if not dist.is_initialized() or self._default is not dist.group.WORLD:
            raise error(Status.NOT_NOW, f"{what} is gone: destroy_process_group destroyed the groups with torch's world")

    def _find(self, family: str) -> dist.ProcessGroup | None:
        """Return this rank's group of a family; None if it is in no group, if it may be in several, or if the group is not
        made yet."""
        where = self._view["families"][family]
        if not isinstance(where, dict):
            return None
        number = where["communicator"]
        return self.one_rank() if number is None else self.made[number].group

    def _group(self, family: str, where: dict[str, Any]) -> dist.ProcessGroup:
        self.alive(f"family '{family}'")
        if where["communicator"] is None:
            return self.one_rank()
        group: dist.ProcessGroup | None = self.made[where["communicator"]].group
        if group is None:
            raise error(Status.NOT_NOW, f"family '{family}' is not created: it is lazy, call create")
        return group

    def one_rank(self) -> dist.ProcessGroup:
        """Return the one group for all families in which this rank is alone. It is made at its first use, without
        messages."""
        if self._alone is None:
            rank, backend = dist.get_rank(), dist.get_backend()
            self._alone = _new_group(f"moongrid/{self._number}/alone/{rank}", [rank], backend,
                                     c10d._get_default_timeout(backend), None, stores.HashStore(), "one rank")
        return self._alone

    def _choose(self, number: int, asked: Mapping[str, Any], backends: Mapping[str, str], timeout: timedelta | None,
                sort_ranks: bool) -> Made:
        """Choose torch's arguments for communicator `number` of the view."""
        users = {name: one["ranks"] for name, where in self._view["families"].items()
                 for one in (where if isinstance(where, list) else [where]) if one and one["communicator"] == number}
        first, ranks = next(iter(users.items()))
        backend = backends[asked.get("backend", "")]
        if not dist.is_backend_available(backend):
            raise error(Status.MISSING, f"this torch has no backend '{backend}', which '{first}' needs; "
                                                "backends={...} of groups names another")
        limit = timedelta(seconds=asked["timeout"]) if "timeout" in asked else timeout
        limit = limit or c10d._get_default_timeout(backend)
        nccl = backend == "nccl"
        return Made(families=tuple(users), ranks=tuple(sorted(ranks) if sort_ranks else ranks), backend=backend,
                    timeout=limit, ignored=() if nccl else tuple(o for o in ("high_priority", "nccl") if o in asked),
                    options=_nccl_options(first, limit, asked) if nccl else None, lazy=asked.get("lazy", False))

    def _create(self, number: int) -> None:
        made = self.made[number]
        group = _new_group(self._name(number), list(made.ranks), made.backend, made.timeout, made.options,
                           c10d._get_default_store(), " ".join(made.families))
        self.made[number] = dataclasses.replace(made, group=group)
        self._members(number, 1)


def _new_group(name: str, ranks: list[int], backend: str, timeout: timedelta, options: object, store: Any,
               description: str) -> dist.ProcessGroup:
    """Make a group as torch's new_group does, but collective over its members alone, and under a name from the plan.

    new_group(use_local_synchronization=True) names a group by a count of this process. If ranks are in different
    numbers of groups, the counts differ, and the members wait for each other under different names. If the default
    group has a device (init_process_group(device_id=...)), torch also splits each group from it, which is collective
    over the world. So the default group has no device while this group is made; this group gets the device."""
    keyword = "backend_options" if "backend_options" in inspect.signature(
        c10d._new_process_group_helper).parameters else "pg_options"
    default: Any = dist.group.WORLD
    device, default.bound_device_id = default.bound_device_id, None
    try:
        group, _ = c10d._new_process_group_helper(len(ranks), ranks.index(dist.get_rank()), ranks,
                                                  dist.Backend(backend), store, name, timeout=timeout, device_id=device,
                                                  group_desc=description, **{keyword: options})
    except Exception as why:  # torch raises many kinds
        message = f"{backend} made no group of ranks {ranks} for {description}: {why}"
        raise error(Status.BACKEND, message) from why
    finally:
        default.bound_device_id = device
    c10d._world.pg_group_ranks[group] = {rank: position for position, rank in enumerate(ranks)}
    made: dist.ProcessGroup = group
    return made


def _nccl_options(family: str, timeout: timedelta, asked: Mapping[str, Any]) -> object:
    """Return high_priority and the fields of `nccl` as ProcessGroupNCCL.Options; None if neither is asked for."""
    if not ("nccl" in asked or "high_priority" in asked):
        return None
    found = dist.ProcessGroupNCCL.Options(is_high_priority_stream=asked.get("high_priority", False))
    found._timeout = timeout
    fields = dict(field.split("=", 1) for field in asked.get("nccl", "").split())
    optional = fields.pop("optional", "0") == "1"
    for name, value in fields.items():
        if hasattr(found.config, name):
            setattr(found.config, name, value if name == "net_name" else int(value))
        elif not optional:
            raise error(Status.UNSUPPORTED, f"torch {torch.__version__} cannot set the NCCL field '{name}' of "
                                             f"'{family}'; nccl = {{ optional = true }} leaves it out")
    return found


def groups(recipe: str | Plan, params: Mapping[str, Any] | None = None, *, backends: Mapping[str, str] | None = None,
           timeout: timedelta | None = None, agreement: timedelta = _AGREEMENT, sort_ranks: bool = False,
           **more: Any) -> Groups:
    """Make the groups of a recipe (or of a Plan) in torch, with parameters as `plan` takes them: tp=2, or {"tp": 2}.

    Collective over the world. First all ranks agree on the plan and on these arguments; then each rank makes its
    groups, in the plan's order. A refusal is raised on every rank before anything is made. If torch itself fails later,
    the other members of the group get an error after its timeout. Errors are MoongridErrors; if another exception ends
    the call on one rank, the others get a MoongridError that quotes it. init_process_group(device_id=...) makes no
    difference.

    backends    torch's backend for each value of the recipe's option `backend`: by default {"": that of the default
                group, "mpi": "gloo", "nccl": "nccl"}; {"nccl": "gloo"} runs a recipe for GPUs on a laptop
    timeout     of groups whose family has none; by default torch's for the backend
    agreement   how long to wait for the other ranks
    sort_ranks  sort the ranks of each group, as torch's new_group does; by default the order is the recipe's
    """
    def choose() -> tuple[Plan, str, Groups]:
        chosen = _backends(backends)
        if timeout is not None and (not isinstance(timeout, timedelta) or timeout <= timedelta()):
            raise error(Status.BAD_VALUE, f"timeout is {timeout!r}, not a timedelta above 0")
        if isinstance(recipe, Plan) and (params or more):
            raise error(Status.USAGE, "a Plan has its parameters already")
        if "world" in more:
            raise error(Status.USAGE, f"groups takes no world: it is that of torch, {dist.get_world_size()} ranks")
        found = recipe if isinstance(recipe, Plan) else _planned(recipe, params, more)
        if found.world != dist.get_world_size():
            raise error(Status.USAGE, f"the plan is for {found.world} ranks, torch has {dist.get_world_size()}")
        asked = f"backends={json.dumps(chosen)} timeout={timeout} sort_ranks={sort_ranks}"
        return found, asked, Groups(found, chosen, timeout, sort_ranks)
    number, made = _agreed(choose, agreement)
    made.make(number)
    return made


def _planned(recipe: str, params: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Plan:
    try:
        return plan(recipe, dist.get_world_size(), params, **more)
    except UnknownNameError as why:
        for name in more:  # perhaps it is an argument of `groups`
            near = library().nearest(name, ("backends", "timeout", "agreement", "sort_ranks"))
            if near and f"unknown parameter '{name}'" in str(why):
                raise error(why.status, f"{why}; groups takes {near}", why.file, why.line) from None
        raise


def _backends(given: Mapping[str, str] | None) -> dict[str, str]:
    """Return the backend of torch for each value of the recipe's option `backend`."""
    if given is not None and not (isinstance(given, Mapping) and all(isinstance(name, str) for name in given.values())):
        raise error(Status.BAD_VALUE, f"backends is {given!r}, not a dict of names, as {{\"nccl\": \"gloo\"}}")
    chosen = {"": dist.get_backend(), "mpi": "gloo", "nccl": "nccl", **(given or {})}
    if unknown := set(chosen) - {"", "mpi", "nccl"}:
        raise error(Status.UNKNOWN_NAME, f"no backend '{min(map(str, unknown))}' in recipes; there are \"\", mpi and nccl")
    return chosen


# ------------------------------------------------------- what torch users hold


def _of_groups(made: Any) -> Groups:
    if isinstance(made, Groups):
        return made
    raise error(Status.BAD_VALUE, f"{made!r} is not what groups(...) makes")


def device_mesh(made: Groups, grid: str, device_type: str | None = None) -> DeviceMesh | Any:
    """Return a DeviceMesh over a named grid of the plan, slowest dim first as in torch, with these groups inside; None
    on ranks outside the grid. Local.

    Each dim needs a family of the plan with its groups, except dims of one rank. If a family has the joint groups of
    several dims, these are flattened, under its name and under theirs ("dp_cp"): mesh["dp", "cp"]._flatten() has the
    groups of that family. If no family has the joint groups, torch makes groups of its own."""
    over = _of_groups(made).plan.grids[known(grid, list(made.plan.grids), "grid")]
    made.alive(f"a mesh over grid '{grid}'")
    dims = list(over.dims.items())[::-1]
    ranks = over(*over.dims)[0].tolist()
    inside: list[dist.ProcessGroup] = []
    if dist.get_rank() not in ranks:
        return None
    for name, size in dims:
        families = [family for family in made.plan if made.plan[family] == over(name)]
        if size > 1 and not families:
            raise error(Status.UNKNOWN_NAME, f"no family has the groups of dim '{name}' of grid '{grid}'; add "
                                              f"t.{name} = t.{grid} \"{name}\" to the recipe")
        group = made[name if name in families else families[0]] if size > 1 else made.one_rank()
        assert isinstance(group, dist.ProcessGroup)
        inside.append(group)
    mesh = torch.tensor(ranks, dtype=torch.int).view([size for _, size in dims])
    if device_type is None:
        device_type = "cuda" if dist.get_backend() == "nccl" else "cpu"
    made_mesh = DeviceMesh.from_group(inside, device_type, mesh, mesh_dim_names=tuple(name for name, _ in dims))
    if hasattr(made_mesh, "_flatten"):  # since torch 2.5
        _flatten(made_mesh, made, over)
    return made_mesh


def _flatten(mesh: DeviceMesh, made: Groups, over: Grid) -> None:
    """Flatten the mesh along all dims whose joint groups are the groups of a family that is made. torch gets the group
    from one of three functions; here each of the three returns the group of the family."""
    named: dict[Family, dict[str, dist.ProcessGroup]] = {}
    for family in made.plan:
        group = made._find(family)
        if group is not None:
            named.setdefault(made.plan[family], {})[family] = group
    dims: Any = mesh.mesh_dim_names
    taken = {*dims}
    for some in (some for n in range(1, len(dims) + 1) for some in itertools.combinations(dims, n)):
        along = over(*some)
        groups = named.get(along, {})
        for name in ["_".join(some), *(groups if along.size > 1 else ())] if groups else ():
            if name not in taken:
                taken.add(name)
                group = groups.get(name) or next(iter(groups.values()))
                ours: Any = dict.fromkeys(_GIVES_A_GROUP, lambda *_, **__: group)
                with mock.patch.multiple(mesh_module, create=True, **ours):
                    mesh[some]._flatten(name)


_GIVES_A_GROUP = ("_get_default_group", "new_group", "split_group")


def _knows(recipe: Recipe, version: str) -> bool:
    try:
        recipe.plan(1, version=version)
    except MoongridError:
        return False
    return True


def megatron_collection(made: Groups) -> Any:
    """Return Megatron-core's ProcessGroupCollection from groups("megatron", ...), as use_mpu_process_groups fills it: a
    field has the group of the family of its name, or None if this rank is in no group or the plan has no such family
    (inter_dist_opt with one optimizer instance); hcp is the list of hcp_0, hcp_1, ... Local.

    If the recipe knows the version of the installed Megatron-core, its parameter `version` must be this version
    ("0.16") or "dev". Give sort_ranks=True to `groups` for the order of intra_dist_opt in Megatron, which leaves
    sorting to torch."""
    if "tp" not in _of_groups(made) or "intra_dist_opt" not in made:
        raise error(Status.USAGE, "a ProcessGroupCollection needs the families of the recipe megatron")
    try:
        from megatron.core import __version__ as installed
        from megatron.core.process_groups_config import ProcessGroupCollection
    except ModuleNotFoundError as why:
        raise error(Status.MISSING, f"no ProcessGroupCollection: {why}") from why
    asked, version = made.plan.params.get("version"), ".".join(installed.split(".")[:2])
    if made.plan.recipe is not None and asked not in ("dev", version) and _knows(made.plan.recipe, version):
        raise error(Status.REFUSED, f'these are the groups of Megatron-core {asked}, and {installed} is installed: give '
                                    f'version="{version}" to the recipe')
    fields = [field.name for field in dataclasses.fields(ProcessGroupCollection)]
    levels = [name for name in made if name.startswith("hcp_")]
    values = {name: made[name] if name in made else None for name in fields}
    return ProcessGroupCollection(**{**values, "hcp": [made[name] for name in levels] or None})


class Mpu(Bound):
    """The functions of the system that the recipe models, by their own names, over these groups. DeepSpeed and Megatron
    take such an object as `mpu`. A getter returns a ProcessGroup:
    mpu.get_data_parallel_group(with_context_parallel=True). A query has a name with or without "get_":
    mpu.get_data_parallel_rank(), mpu.is_pipeline_first_stage(). `dir` lists the functions, `moongrid recipes NAME`
    explains them. Made by `mpu`."""

    _remedy = "it belongs to its process; pickle groups.plan, and make them there"

    def __init__(self, made: Groups) -> None:
        recipe = _of_groups(made).plan.recipe
        if recipe is None:
            raise error(Status.NOT_NOW, "the functions of a system are its recipe's: groups of a recipe have them")
        self._made, self._state, info = made, made.plan.at(dist.get_rank()), recipe.info
        self._bundled = recipe.name in recipes()
        self._names: dict[str, Callable[..., Any]] = {}
        for query in info["queries"]:
            self._names[query] = self._names[f"get_{query}"] = functools.partial(self._state.ask, query)
        for getter in info["getters"]:
            self._names[getter["name"]] = functools.partial(self._group, getter["name"])

    def _group(self, getter: str, **arguments: Any) -> dist.ProcessGroup | None:
        found = self._state.group(getter, **arguments)
        if found is None:
            return None
        group = self._made[found.family]
        return group[self._state.groups(found.family).index(found)] if isinstance(group, list) else group

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name[:1] == "_" or name not in self._names:
            why = no_attribute(self, name, () if name[:1] == "_" else self._names, "nearest is '{}'")
            raise AttributeError(f"{why}{self._remedy_for(name)}")
        return self._names[name]

    def _remedy_for(self, name: str) -> str:
        if name[:1] == "_" or self._bundled:
            return ""
        if name.endswith("_group"):
            return f'; a recipe adds it by getters = {{ {name} = "dp" }}'
        query, value = name[4:] if name[:4] == "get_" else name, "size" if name.endswith("_size") else "position"
        return f"; a recipe adds it by queries = {{ {query} = function(s) return s.dp.{value} end }}"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names]

    def __repr__(self) -> str:
        return f"Mpu({self._made.plan!r}, {len(self._names)} functions)"


def mpu(made: Groups) -> Mpu:
    """Return the functions of the system that the recipe models, over these groups, for DeepSpeed and Megatron. Local.

        engine, *_ = deepspeed.initialize(model=model, config=config, mpu=mt.mpu(groups))
    """
    return Mpu(made)


# --------------------------------------------------------------------- the step


@contextlib.contextmanager
def checked(made: Groups, step: Step | None = None, *, agreement: timedelta = _AGREEMENT) -> Iterator[CheckedCalls]:
    """Compare calls of torch.distributed on these groups with the step of their recipe, for debugging. Before a call
    that is not the next call of this rank's program is made, it raises a MoongridError with both calls and the line of
    the recipe. check.end() raises unless all calls of one step were made since the last end(). The end of the block
    raises in the middle of a step, or if no call was made.

        with mt.checked(groups) as check:
            for batch in batches:
                train(batch)
                check.end()

    First all ranks compare the step's digest (collective). Calls on other groups, and in groups of one rank, are not
    compared. Sends and receives of one batch_isend_irecv may be in any order. Functional collectives, as of DTensor,
    and the calls of DistributedDataParallel are not seen."""
    def choose() -> tuple[Plan, str, Step]:
        found = _of_groups(made).plan.step() if step is None else step
        if not isinstance(found, Step):
            raise error(Status.BAD_VALUE, f"{found!r} is not a Step; groups.plan.step() is one")
        return made.plan, f"step={found.digest}", found
    _, found = _agreed(choose, agreement)
    check = CheckedCalls(made, found, dist.get_rank())
    check.patch()
    try:
        yield check
        check.leave()
    finally:
        check.restore()
