# SPDX-License-Identifier: MIT
"""Recipes, topologies and plans."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import html
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _abi, _command
from ._abi import Status
from ._errors import error, known
from ._families import Family, Grid
from ._library import Owner, encoded, handle_of, library, names_of, record, whole
from ._pictures import Picture, Report, rows
from ._step import Step
from ._values import words_of

if TYPE_CHECKING:
    from ._loss import Loss
    from ._move import Move
    from ._state import Policy, State

# Parameters by name, or a file of them (JSON, YAML, or Lua that returns a table). A name with a dot is an option of a
# family: {"tp": 8, "tp.max_ctas": 8}.
Params = Union[Mapping[str, Any], "str | os.PathLike[str]", None]


class Change(NamedTuple):
    """Communicators of a rank that stay, come and go when a job reloads."""
    kept: int
    created: int
    dropped: int


class Checked(NamedTuple):
    """What a check has looked at."""
    sampled: bool
    members: int
    communicators: int
    memberships: int
    most_per_rank: int


class Plan(Owner, Mapping[str, Family]):
    """What all ranks agree on: families by name, the order in which communicators are made, and a digest. Immutable.

        plan = mg.plan("megatron", world=1024, tp=8, pp=4)
        plan["dp"].of(17)        # the ranks of the group that rank 17 is in
        plan.at(17)["dp"].next() # the questions of a rank
        plan                     # in a notebook: a picture
    """

    _free = "mgrid_plan_free"

    def __init__(self, handle: int, recipe: Recipe | None = None, name: str = "", words: Sequence[str] = (),
                 file: bytes | None = None, alone: bool = False) -> None:
        super().__init__(handle)
        self.recipe = recipe  # None: of a topology, or read from a file
        self.name = name
        self._words = list(words)  # "tp=8", with which the recipe was planned,
        self._file = file          # and a file of parameters
        self._alone = alone       # a plan after a loss, which the recipe alone would not make
        self._losses: dict[str | None, Owner] = {}

    # ------------------------------------------------------------------------------------ what it has

    @property
    def world(self) -> int:
        """Ranks of the world."""
        return int(library().c.mgrid_plan_world(self._handle))

    @functools.cached_property
    def digest(self) -> str:
        """32 hexadecimal digits, equal where plans are."""
        text = ctypes.create_string_buffer(33)
        library().c.mgrid_plan_digest(self._handle, text)
        return text.value.decode()

    @functools.cached_property
    def families(self) -> list[str]:
        """Names of the families, in the order of creation."""
        c = library().c
        return [c.mgrid_plan_family_name(self._handle, i).decode() for i in range(c.mgrid_plan_nfamilies(self._handle))]

    @functools.cached_property
    def grids(self) -> dict[str, Grid]:
        """Grids by name."""
        c = library().c
        names = [c.mgrid_plan_grid_name(self._handle, i) for i in range(c.mgrid_plan_ngrids(self._handle))]
        return {name.decode(): Grid(c.mgrid_grid_ref(c.mgrid_plan_grid(self._handle, name))) for name in names}

    @functools.cached_property
    def tensors(self) -> list[str]:
        """Names of the tensors."""
        c = library().c
        return [c.mgrid_plan_tensor_name(self._handle, i).decode() for i in range(c.mgrid_plan_ntensors(self._handle))]

    @functools.cached_property
    def params(self) -> dict[str, Any]:
        """Parameters with their values."""
        found: dict[str, Any] = json.loads(library().text("mgrid_plan_print_json", self._handle, 0))["params"]
        return found

    def __getitem__(self, family: str) -> Family:
        c = library().c
        found = c.mgrid_plan_family(self._handle, known(family, self.families, "family").encode())
        return Family(c.mgrid_family_ref(found))

    def __contains__(self, family: object) -> bool:
        return family in self.families

    def __iter__(self) -> Iterator[str]:
        return iter(self.families)

    def __len__(self) -> int:
        return len(self.families)

    def shares(self, family: str) -> str | None:
        """Return the earlier family whose communicators all groups of this one use, or None."""
        found = library().c.mgrid_plan_shares(self._handle, known(family, self.families, "family").encode())
        return found.decode() if found else None

    def counts(self, rank: int | None = None) -> dict[str, int]:
        """Count families, groups, groups of one rank (singles) and communicators: of the job, or of a rank."""
        found = _abi.mgrid_plan_counts()
        if rank is None:
            library().call("mgrid_plan_count", self._handle, ctypes.byref(found))
        else:
            library().call("mgrid_plan_count_rank", self._handle, rank, ctypes.byref(found))
        return record(found)

    # ------------------------------------------------------------------------------------- questions

    def at(self, rank: int) -> State:
        """Return the plan as a rank sees it, without communicators: its groups, coordinates, queries, policies."""
        from ._state import dry
        return dry(self, rank)

    def ask(self, query: str, rank: int, **arguments: Any) -> Any:
        """Ask a query of the recipe, as that rank would: plan.ask("pipeline_model_parallel_next_rank", rank=3)."""
        return self.at(rank).ask(query, **arguments)

    def policy(self, name: str, rank: int = 0) -> Policy:
        """Return a policy of the recipe, a function to call: plan.policy("microbatches")(global_batch=64)."""
        return self.at(rank).policy(name)

    def why(self, a: int, b: int) -> Report:
        """Explain why two ranks communicate: all groups with both, or the shortest chain of groups. `data` has it as
        values."""
        lib = library()
        return Report(lib.text("mgrid_plan_why", self._handle, a, b, False),
                      json.loads(lib.text("mgrid_plan_why", self._handle, a, b, True)))

    def explain(self, *families: str) -> Report:
        """Explain how families were made: their rule, the lines of the recipe, what shares communicators, what they
        cost."""
        for family in families:
            known(family, self.families, "family")
        line, given = self.as_words()
        return Report(_command.run("explain", *line, *_only(families), given=given))

    def diff(self, other: Plan, rank: int = 0) -> Report:
        """Compare with another plan: + new, - gone, ~ changed. `data` is the Change of that rank's communicators, or None
        where the worlds differ."""
        change = _abi.mgrid_change()
        text = library().text("mgrid_plan_diff", self._handle, handle_of(other, Plan), rank, ctypes.byref(change))
        found = record(change)
        return Report(text, Change(**found) if self.world == other.world else None)

    def move(self, to: Plan, rank: int | None = None, **options: Any) -> Move | Report:
        """Plan how the tensors of this plan become those of another, with the fewest bytes: what one rank sends and
        receives (a Move), or without a rank a report of the job. The options are those of `moongrid.move`."""
        from ._move import move
        return move(self, to, rank, **options)

    def lose(self, ranks: Iterable[int], how: str | None = None) -> Loss:
        """Return what the job becomes when these ranks are lost: plan.lose([5, 13]). The recipe of the plan decides, with
        the parameters of the plan; or `how`: "replace", "shrink" or "stop". Raise for unknown ranks, ranks given twice,
        and a policy on_lost that fails."""
        from ._loss import lose
        return lose(self, ranks, how)

    def check(self, *laws: str) -> Checked:
        """Check that every family is what it says and that no rank waits forever; with laws of yours, "within(tp, mp)",
        "disjoint(a, b)", "same(a, b)", "covers(a)". Raise for the first that does not hold."""
        found = _abi.mgrid_plan_checked()
        library().call("mgrid_plan_check", self._handle, ctypes.byref(found))
        if laws:
            words = [word for law in laws for word in ("--law", encoded(law).decode())]
            said = json.loads(_command.run("check", "-", *words, "--json", given=self.save(), may_fail=True))
            if not said[0]["ok"]:
                raise error(said[0]["status"], said[0]["message"])
        return Checked(**record(found))

    def resources(self, rank: int | None = None, machine: int = 8, nvls: bool = True) -> dict[str, int]:
        """Predict what NCCL's communicators take of a rank's GPU and machine (moongrid_plan.h has the fields)."""
        found, site = _abi.mgrid_resources(), _abi.mgrid_site(machine_ranks=whole(machine, "machine"), no_nvls=not nvls)
        library().call("mgrid_plan_resources", self._handle, -1 if rank is None else rank, ctypes.byref(site),
                       ctypes.byref(found))
        return record(found)

    def tensor(self, name: str, rank: int) -> dict[str, Any]:
        """Describe what a rank holds of a tensor: shape, elements, bytes, which copy; and its runs on each axis."""
        found, tensor = _abi.mgrid_tensor_part(), encoded(name)
        library().call("mgrid_tensor_local", self._handle, tensor, rank, ctypes.byref(found))
        part = record(found)
        part["shape"] = tuple(part["shape"][:part.pop("naxes")])
        part["runs"] = []
        for axis in range(len(part["shape"])):
            n = library().call("mgrid_tensor_runs", self._handle, tensor, rank, axis, 0, None)
            runs = (_abi.mgrid_run * n)()
            library().call("mgrid_tensor_runs", self._handle, tensor, rank, axis, n, runs)
            part["runs"].append([(run.start, run.length) for run in runs])
        return part

    # ------------------------------------------------------------------------------- text and pictures

    def save(self, file: str | os.PathLike[str] | None = None) -> str:
        """Return the plan as JSON of its rules, small at any world size, for `read` and the command; write it to a file,
        if one is given."""
        text = library().text("mgrid_plan_save", self._handle)
        if file is not None:
            Path(file).write_text(text, encoding="utf-8")
        return text

    def step(self, file: str | os.PathLike[str] | None = None) -> Step:
        """Evaluate the step of the recipe, or of a file: what travels over the groups."""
        if self.recipe is None:
            raise error(Status.NOT_NOW, "the step of a plan is its recipe's: plan(recipe, ...) makes one that has it")
        name = os.fsencode(file) if file is not None else None
        return Step(library().call("mgrid_step_new", self.recipe._handle, self._handle, name))

    def json(self, rank: int | None = None) -> dict[str, Any]:
        """Return everything as a dict: with all groups, or what a rank is in."""
        found: dict[str, Any] = json.loads(library().text("mgrid_plan_print_json", self._handle,
                                                          -1 if rank is None else rank))
        return found

    def schedule(self, rank: int | None = None) -> Report:
        """Print the order in which communicators are made: of the job, or of a rank."""
        return Report(library().text("mgrid_plan_print_schedule", self._handle, -1 if rank is None else rank))

    def draw(self, *families: str, rank: int | None = None) -> Picture:
        """Draw the grids and the groups in them: all families, or some; the groups of a rank stand out."""
        for family in families:
            known(family, self.families, "family")
        return Picture(self, _only(families) + (["--rank", str(rank)] if rank is not None else []))

    def _repr_svg_(self) -> str:
        return self.draw().svg

    def _repr_html_(self) -> str:
        table = [(name, str(self[name].count), str(self[name].size), str(self[name]), self.shares(name) or "")
                 for name in self.families]
        return (f"<p>{html.escape(repr(self))}</p>{rows(table, ('family', 'groups', 'ranks', 'rule', 'shares'))}"
                f"{self.draw().svg if self.world <= 4096 else ''}")

    def __str__(self) -> str:
        """The canonical text, of which the digest is made."""
        return library().text("mgrid_plan_print", self._handle)

    def __repr__(self) -> str:
        words = "".join(f", {word}" for word in self._line())
        return f"Plan({self.name or 'a topology'!r}, world={self.world}{words}: {len(self)} families)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def as_words(self) -> tuple[list[str], str | None]:
        """The plan in a line of the command, and that line's standard input: its recipe, else the saved plan."""
        if self.recipe is None or self._alone:
            return ["-"], self.save()
        name = self.recipe.name if self.recipe.text is None else "-"
        return [name, "--world", str(self.world), *self._line()], self.recipe.text

    def _line(self) -> list[str]:
        return [*(["--params", os.fsdecode(self._file)] if self._file else []), *self._words]

    @contextlib.contextmanager
    def saved(self) -> Iterator[str]:
        """The path of a file with the plan, for as long as the block lasts."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(f"{folder}/plan.json")
            yield f"{folder}/plan.json"


def _only(families: Sequence[str]) -> list[str]:
    return ["--family", ",".join(families)] if families else []


class Recipe(Owner):
    """A loaded recipe, made by `load` and `load_text`. Its plans may be of any world.

        megatron = mg.load("megatron")
        plans = [megatron.plan(world, tp=8) for world in (64, 128, 256)]
    """

    _free = "mgrid_runtime_free"

    def __init__(self, handle: int, name: str, text: str | None = None) -> None:
        super().__init__(handle)
        self.name = name
        self.text = text  # of a recipe without a file

    @functools.cached_property
    def info(self) -> dict[str, Any]:
        """What the recipe says of itself: its doc, parameters, settings, policies, queries and getters."""
        found: dict[str, Any] = json.loads(library().text("mgrid_runtime_describe", self._handle, True))
        return found

    def plan(self, world: int, params: Params = None, **more: Any) -> Plan:
        """Evaluate the recipe for a world; parameters are by name or alias. Local."""
        file, given = params_of(params)
        words = words_of({**given, **more})
        handle = library().call("mgrid_runtime_plan_file", self._handle, world, file, *names_of(words))
        return Plan(handle, self, self.name, words, file)

    def __repr__(self) -> str:
        return f"Recipe({self.name!r})"

    def __str__(self) -> str:
        return library().text("mgrid_runtime_describe", self._handle, False)


def params_of(params: Params) -> tuple[bytes | None, Mapping[str, Any]]:
    """Return the file of parameters, and the parameters by name: one of them is empty."""
    if params is None or isinstance(params, Mapping):
        return None, params or {}
    return os.fsencode(params), {}


_LIMITS = ("memory", "instructions", "seconds", "call_seconds")


def _runtime(limits: Mapping[str, float]) -> int:
    struct = _abi.mgrid_limits()
    for name, value in limits.items():
        setattr(struct, known(name, list(_LIMITS), "limit"), value)
    handle: int = library().call("mgrid_runtime_new", ctypes.byref(struct), None)
    return handle


def load(recipe: str | os.PathLike[str], **limits: float) -> Recipe:
    """Load a recipe: the name of a bundled one, or a file. limits: memory in bytes, instructions, seconds, call_seconds."""
    if not isinstance(recipe, (str, os.PathLike)):
        raise error(Status.BAD_VALUE, f"{recipe!r} is no recipe; a name, a file or a Recipe would do")
    made = Recipe(_runtime(limits), os.fspath(recipe))
    library().call("mgrid_runtime_load", made._handle, os.fsencode(recipe))
    return made


def load_text(text: str, name: str = "recipe", **limits: float) -> Recipe:
    """Load a recipe from its text; messages call it `name`."""
    made, lines = Recipe(_runtime(limits), name, text), text.encode()
    library().call("mgrid_runtime_load_text", made._handle, lines, len(lines), encoded(name))
    return made


def plan(recipe: str | os.PathLike[str] | Recipe, world: int, params: Params = None, **more: Any) -> Plan:
    """Plan a recipe for a world of ranks: a bundled one by name, a file, or a Recipe. Local; it needs neither MPI nor a GPU.

        mg.plan("megatron", world=1024, tp=8, pp=4)
        mg.plan("layout.lua", 64, {"tp": 8, "tp.max_ctas": 8})   # with an option of a family
        mg.plan("deepspeed", 64, "params.json")
    """
    return (recipe if isinstance(recipe, Recipe) else load(recipe)).plan(world, params, **more)


def read(file: str | os.PathLike[str]) -> Plan:
    """Read a plan that was saved, by `Plan.save` or by the command (plan --rules, --json, --text)."""
    text = Path(file).read_bytes()
    return Plan(library().call("mgrid_plan_read", text, len(text), os.fsencode(file)), None, os.fspath(file))


class Topology(Owner):
    """Families by name, in the order of creation, from which a plan is made without a recipe.

        g = mg.grid(8, tp=2, pp=2, dp=mg.fill)
        t = mg.topology(8)
        t["tp"] = g("tp")
        t.add("dp", g("dp"), lazy=True)
        plan = t.plan()
    """

    _free = "mgrid_topology_free"

    def add(self, name: str, family: Family, **options: Any) -> None:
        """Add a family, with options of its communicators (mgrid_options of moongrid_plan.h: unique=True, lazy=True,
        backend="none", ...)."""
        struct = _abi.mgrid_options()
        allowed = [field for field, *_ in struct._fields_ if field != "size"]
        for option, value in options.items():
            setattr(struct, known(option, allowed, "option"), value.encode() if isinstance(value, str) else value)
        library().call("mgrid_topology_add", self._handle, encoded(name), handle_of(family, Family),
                       ctypes.byref(struct))

    def __setitem__(self, name: str, value: Family | Grid) -> None:
        if isinstance(value, Grid):
            library().call("mgrid_topology_add_grid", self._handle, name.encode(), value._handle)
        elif isinstance(value, Family):
            self.add(name, value)
        else:
            raise error(Status.BAD_VALUE, f"'{name}' is neither a Family nor a Grid, but {type(value).__name__}")

    def concurrent(self, *families: str) -> None:
        """Declare families that are used at the same time, the most urgent first: they never share a communicator."""
        library().call("mgrid_topology_concurrent", self._handle, *names_of(families))

    def plan(self) -> Plan:
        """Make the plan."""
        return Plan(library().call("mgrid_plan_new", self._handle))


def topology(world: int) -> Topology:
    """Make an empty topology of a world."""
    return Topology(library().call("mgrid_topology_new", world))


def recipes() -> list[str]:
    """Return the names of the bundled recipes."""
    found = ctypes.cast(library().c.mgrid_recipe_names(), ctypes.POINTER(ctypes.c_char_p))
    names: list[str] = []
    while found[len(names)]:
        names.append(found[len(names)].decode())
    return names
