# SPDX-License-Identifier: MIT
"""Recipes, topologies and plans."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import html
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from . import _abi
from ._abi import Status
from ._errors import MoongridError, error
from ._families import Family, Grid
from ._library import Owner, encoded, handle_of, known, library, names_of, no_attribute, rank_of, record, whole
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
    """Communicators of a rank that are kept, created and destroyed when a job reloads."""
    kept: int
    created: int
    dropped: int


class Checked(NamedTuple):
    """What a check counted; sampled: it checked only some members and ranks, because the world is large."""
    sampled: bool
    members: int
    communicators: int
    memberships: int
    most_per_rank: int


class Plan(Owner, Mapping[str, Family]):
    """The plan on which all ranks agree: families by name, the order in which communicators are made, and a digest. Immutable.

        plan = mg.plan("megatron", world=1024, tp=8, pp=4)
        plan["dp"].of(17)        # the ranks of the group that rank 17 is in
        plan.at(17)["dp"].next() # the questions of a rank
        plan                     # in a notebook: a picture
    """

    _free = "mgrid_plan_free"
    _by = 'moongrid.plan("megatron", 16, tp=2)'

    def __init__(self, handle: int, recipe: Recipe | _Source | None = None, name: str = "", words: Sequence[str] = (),
                 file: bytes | None = None, alone: bool = False) -> None:
        super().__init__(handle)
        self._recipe = recipe  # a plan from a pickle has a source, from which the recipe is loaded when it is needed
        self.name = name
        self._words = list(words)  # parameters, as "tp=8"
        self._file = file          # of parameters
        self._alone = alone        # a plan after a loss, which the recipe alone would not make
        self._losses: dict[str | None, Owner] = {}

    # ---------------------------------------------------------------------------------------- contents

    @property
    def recipe(self) -> Recipe | None:
        """The recipe of the plan, or None if it was made from a topology or read from a file."""
        if isinstance(self._recipe, tuple):
            recipe = _load_again(*self._recipe)
            if not self._alone and recipe.planned(self.world, self._file, self._words).digest != self.digest:
                raise error(Status.DISAGREE, f"recipe '{recipe.name}' makes another plan than when this one was pickled")
            self._recipe = recipe
        return self._recipe

    @property
    def world(self) -> int:
        """Ranks of the world."""
        return int(library().c.mgrid_plan_world(self._handle))

    @functools.cached_property
    def digest(self) -> str:
        """32 hexadecimal digits, equal for equal plans."""
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
        names = takewhile(bool, (c.mgrid_plan_grid_name(self._handle, i) for i in count()))
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

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, name, () if name[:1] == "_" else self.families, 'a family is plan["{}"]')

    def _rank(self, rank: int | None) -> int:
        """Return a rank for C; -1: the whole job."""
        return -1 if rank is None else rank_of(rank, self.world)

    def shares(self, family: str) -> str | None:
        """If all groups of the family use communicators of one earlier family, return its name, else None."""
        found = library().c.mgrid_plan_shares(self._handle, known(family, self.families, "family").encode())
        return found.decode() if found else None

    def counts(self, rank: int | None = None) -> dict[str, int]:
        """Count families, groups, groups of one rank (singles) and communicators of the whole job, or of a rank."""
        found = _abi.mgrid_plan_counts()
        library().call("mgrid_plan_count", self._handle, self._rank(rank), ctypes.byref(found))
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
        """Explain why two ranks communicate: all groups with both, or the shortest chain of groups. `data` has the
        values."""
        lib = library()
        return Report(lib.text("mgrid_plan_why", self._handle, a, b, False),
                      json.loads(lib.text("mgrid_plan_why", self._handle, a, b, True)))

    def explain(self, *families: str) -> Report:
        """Explain how families were made: their rules, the lines of the recipe, the families with which they share
        communicators, and their cost."""
        for family in families:
            known(family, self.families, "family")
        options: dict[str, Any] = {"families": families} if families else {}
        if self.recipe is not None and not self._alone:
            options["recipe"] = {"name": self.recipe.name, "args": self._words}
            if self.recipe.text is not None:
                options["recipe"]["text"] = self.recipe.text
            if self._file:
                options["recipe"]["file"] = os.fsdecode(self._file)
        return Report(library().text("mgrid_plan_draw", self._handle, b"explain", json.dumps(options).encode()))

    def diff(self, other: Plan, rank: int = 0) -> Report:
        """Compare with another plan: + new, - gone, ~ changed. `data` is the Change of the communicators of `rank`, or None
        if the worlds differ."""
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
        """Return how the job goes on when these ranks are lost: plan.lose([5, 13]). The recipe decides, with the
        parameters of the plan; or `how`: "replace", "shrink" or "stop". Raise for unknown ranks, ranks given twice, and
        a policy on_lost that fails."""
        from ._loss import lose
        return lose(self, ranks, how)

    def check(self, *laws: str) -> Checked:
        """Check that every family is consistent, that no rank waits forever, and that the laws given hold:
        "within(tp, mp)", "disjoint(a, b)", "same(a, b)", "covers(a)". Raise for the first fault. (The laws of a recipe
        are checked when it is planned.)"""
        found = _abi.mgrid_plan_checked()
        library().call("mgrid_plan_check", self._handle, ctypes.byref(found))
        for law in laws:
            library().law(self._handle, encoded(law))
        return Checked(**record(found))

    def resources(self, rank: int | None = None, machine: int = 8, nvls: bool = True) -> dict[str, int]:
        """Predict what NCCL's communicators take (mgrid_resources of moongrid_plan.h) on machines of `machine`
        ranks."""
        found, site = _abi.mgrid_resources(), _abi.mgrid_site(machine_ranks=whole(machine, "machine"), no_nvls=not nvls)
        library().call("mgrid_plan_resources", self._handle, self._rank(rank), ctypes.byref(site),
                       ctypes.byref(found))
        return record(found)

    def tensor(self, name: str, rank: int) -> dict[str, Any]:
        """Describe a rank's part of a tensor: shape, elements, bytes, index of the copy, and runs on each axis."""
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
        """Return the rules of the plan as JSON, which `read` and the command read; the text is small at any world size.
        With `file`, also write it to this file."""
        text = library().text("mgrid_plan_save", self._handle)
        if file is not None:
            library().write(file, text)
        return text

    def step(self, file: str | os.PathLike[str] | None = None) -> Step:
        """Evaluate the step of the recipe, or of a file: what travels over the groups."""
        if self.recipe is None:
            raise error(Status.NOT_NOW, "the step of a plan is its recipe's: plan(recipe, ...) makes one that has it")
        name = os.fsencode(file) if file is not None else None
        return Step(library().call("mgrid_step_new", self.recipe._handle, self._handle, name), self, name)

    def json(self, rank: int | None = None) -> dict[str, Any]:
        """Return the plan as a dict (src/command/plan-json.md): with all groups, or with the groups of a rank."""
        found: dict[str, Any] = json.loads(library().text("mgrid_plan_print_json", self._handle, self._rank(rank)))
        return found

    def schedule(self, rank: int | None = None) -> Report:
        """Return the order in which communicators are made: by the whole job, or by a rank."""
        return Report(library().text("mgrid_plan_print_schedule", self._handle, self._rank(rank)))

    def draw(self, *families: str, rank: int | None = None) -> Picture:
        """Draw the grids and the groups in them: of all families, or of those named; `rank` highlights its groups."""
        for family in families:
            known(family, self.families, "family")
        self._rank(rank)
        return Picture(self, families, rank)

    def _repr_svg_(self) -> str:
        return self.draw().svg

    def _repr_html_(self) -> str:
        table = [(name, str(self[name].count), str(self[name].size), str(self[name]), self.shares(name) or "")
                 for name in self.families]
        return (f"<p>{html.escape(repr(self))}</p>{rows(table, ('family', 'groups', 'ranks', 'rule', 'shares'))}"
                f"{self.draw().svg if self.world <= 4096 else ''}")

    def text(self) -> str:
        """Return the canonical text: a line for each part of the plan. (The digest is that of the rules, as `save` has.)"""
        return library().text("mgrid_plan_print", self._handle)

    def __str__(self) -> str:
        """A line for each family: its first groups."""
        width = max(map(len, self.families), default=0)
        return "\n".join([repr(self), *(f"  {name:<{width}}  {family.few(3, 4)}" for name, family in self.items())])

    def __repr__(self) -> str:
        words = "".join(f", {word}" for word in self._line())
        return f"Plan({self.name or 'a topology'!r}, world={self.world}{words}: {len(self)} families)"

    def __reduce__(self) -> tuple[Any, ...]:
        source = self._recipe.source if isinstance(self._recipe, Recipe) else self._recipe
        kept, file = json.loads(self.save()), self._file and os.path.abspath(self._file)
        if source and source[1] is None:
            kept["recipe"] = source[0]  # the library compares this name with that of the recipe
        return _plan_again, (json.dumps(kept), source, self.name, self._words, file, self._alone)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def _line(self) -> list[str]:
        return [*(["--params", os.fsdecode(self._file)] if self._file else []), *self._words]

    @contextlib.contextmanager
    def saved(self) -> Iterator[str]:
        """The path of a file with the plan, for as long as the block lasts."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(f"{folder}/plan.json")
            yield f"{folder}/plan.json"


class Recipe(Owner):
    """A loaded recipe, made by `load` and `load_text`. Its plans may be of any world.

        megatron = mg.load("megatron")
        plans = [megatron.plan(world, tp=8) for world in (64, 128, 256)]
    """

    _free = "mgrid_runtime_free"
    _by = 'moongrid.load("layout.lua")'

    def __init__(self, handle: int, name: str, text: str | None = None, limits: Mapping[str, float] | None = None) -> None:
        super().__init__(handle)
        self.name = name
        self.text = text  # of a recipe without a file
        file = None if text is not None or name in recipes() else os.path.abspath(name)
        # From this source another process loads the recipe: a bundled name, a file with its digest, or a text.
        self.source: _Source = (file or name, text, dict(limits or {}), file and _digest_of(file))

    @functools.cached_property
    def info(self) -> dict[str, Any]:
        """The description of the recipe: its doc, parameters, settings, policies, queries and getters."""
        found: dict[str, Any] = json.loads(library().text("mgrid_runtime_describe", self._handle, True))
        return found

    def plan(self, world: int, params: Params = None, **more: Any) -> Plan:
        """Evaluate the recipe for a world; parameters are by name or alias. Local."""
        file, given = params_of(params)
        return self.planned(world, file, words_of({**given, **more}))

    def planned(self, world: int, file: bytes | None, words: Sequence[str]) -> Plan:
        """Evaluate the recipe with a file of parameters and words of a command line."""
        handle = library().call("mgrid_runtime_plan", self._handle, world, file, *names_of(words))
        return Plan(handle, self, self.name, words, file)

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_again, self.source

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.source == other.source

    def __hash__(self) -> int:
        return hash(self.source[:2])

    def __repr__(self) -> str:
        return f"Recipe({self.name!r})"

    def __str__(self) -> str:
        return library().text("mgrid_runtime_describe", self._handle, False)


def params_of(params: Params) -> tuple[bytes | None, Mapping[str, Any]]:
    """Return the file of parameters, and the parameters by name: one of them is empty."""
    if params is None or isinstance(params, Mapping):
        return None, params or {}
    if not isinstance(params, (str, os.PathLike)) or ("=" in str(params) and not os.path.exists(params)):
        raise error(Status.BAD_VALUE, f"params is {params!r}, neither a dict nor a file; parameters are written tp=2, or {{'tp': 2}}")
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
        raise error(Status.BAD_VALUE, f"{recipe!r} is not a recipe; give a name, a file or a Recipe")
    if "\n" in os.fspath(recipe):
        raise error(Status.BAD_VALUE, "the name of a recipe has one line; load_text loads a recipe from its text")
    made = Recipe(_runtime(limits), os.fspath(recipe), None, limits)
    try:
        library().call("mgrid_runtime_load", made._handle, os.fsencode(recipe), None, 0)
    except MoongridError as why:
        raise _with_file(why, Path(recipe)) from None
    return made


def _with_file(why: MoongridError, path: Path) -> MoongridError:
    """Add to the error of loading a recipe what the caller may have meant."""
    hint = "" if "; nearest is" in str(why) else _file_near(path)
    if path.suffix == ".json" and path.is_file():
        hint = "; read() reads a saved plan"
    found = error(why.status, f"{why}{hint}", why.file, why.line)
    return found if hint else why


def _file_near(path: Path) -> str:
    """Return the end of a message with the recipe or file whose name is most similar."""
    if path.is_dir():
        return f"; {path} is a folder, a recipe is a file"
    if path.exists():
        return ""
    if path.suffix == ".lua" and str(path)[:-4] in recipes():
        return f"; the bundled recipe is {str(path)[:-4]!r}"
    names = sorted(one.name for one in path.parent.glob("*.lua"))
    near = f"{path.name}.lua" if f"{path.name}.lua" in names else library().nearest(path.name, names)
    return f"; nearest is '{path.parent / near}'" if near else ""


def load_text(text: str, name: str = "recipe", **limits: float) -> Recipe:
    """Load a recipe from its text; messages call it `name`."""
    if not isinstance(text, str) or text.endswith(".lua"):
        raise error(Status.BAD_VALUE, f"{text!r} is not the text of a recipe; load takes a file")
    made, lines = Recipe(_runtime(limits), name, text, limits), encoded(text)
    library().call("mgrid_runtime_load", made._handle, encoded(name), lines, len(lines))
    return made


def plan(recipe: str | os.PathLike[str] | Recipe, world: int, params: Params = None, **more: Any) -> Plan:
    """Plan a recipe (the name of a bundled one, a file, or a Recipe) for a world of ranks. Local, without MPI or a GPU.

        mg.plan("megatron", world=1024, tp=8, pp=4)
        mg.plan("layout.lua", 64, {"tp": 8, "tp.max_ctas": 8})   # with an option of a family
        mg.plan("deepspeed", 64, "params.json")
    """
    return (recipe if isinstance(recipe, Recipe) else load(recipe)).plan(world, params, **more)


def read(file: str | os.PathLike[str]) -> Plan:
    """Read a plan that was saved by `Plan.save`, or by the command with plan --rules or --json."""
    if Path(file).suffix == ".lua":
        raise error(Status.BAD_VALUE, f"{os.fspath(file)} is a recipe, not a saved plan; plan() plans it")
    return Plan(saved(Path(file).read_bytes(), os.fsencode(file)), None, os.fspath(file))


def saved(text: bytes, name: bytes = b"a pickle") -> int:
    """Return the handle of a saved plan."""
    handle: int = library().call("mgrid_plan_read", text, len(text), name)
    return handle


# ------------------------------------------------------------------------------------------- pickles


# Name or file, text, limits, digest of the file.
_Source = tuple[str, Optional[str], dict[str, float], Optional[str]]


def _digest_of(file: str) -> str | None:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


def _load_again(name: str, text: str | None, limits: Mapping[str, float], digest: str | None) -> Recipe:
    made = load(name, **limits) if text is None else load_text(text, name, **limits)
    if made.source[-1] != digest:
        raise error(Status.DISAGREE, f"recipe '{name}' has changed since it was pickled")
    return made


def _plan_again(text: str, recipe: _Source | None, name: str, words: Sequence[str], file: bytes | None,
                alone: bool) -> Plan:
    return Plan(saved(text.encode()), recipe, name, words, file, alone)


def recipes() -> list[str]:
    """Return the names of the bundled recipes."""
    found = ctypes.cast(library().c.mgrid_recipe_names(), ctypes.POINTER(ctypes.c_char_p))
    names: list[str] = []
    while found[len(names)]:
        names.append(found[len(names)].decode())
    return names
