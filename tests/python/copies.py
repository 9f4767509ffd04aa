# SPDX-License-Identifier: MIT
"""copy.copy, copy.deepcopy and pickle of an object of every public class, here and in other processes: a copy is equal
and lives alone, or the answer is a TypeError. A class without a line in `samples` fails."""
from __future__ import annotations

import concurrent.futures
import copy
import dataclasses
import gc
import inspect
import multiprocessing
import os
import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tap import ROOT, Tap, refusal

import moongrid as mg
from moongrid._library import Bound, Owner

ASKED = "return recipe { build = function(w) return topology(w) end, policy = { one = function() return 1 end } }"
Plain = (tuple, str, int)  # NamedTuples, Reports and enums: of Python itself


def closed_job() -> mg.Job:
    job = object.__new__(mg.Job)
    job._handle = None
    return job


def samples() -> Iterator[tuple[type, Any]]:
    """An object of each class that a program can hold."""
    grid = mg.grid(64, tp=8, dp=mg.fill)
    plan, llama = mg.plan("megatron", world=64, tp=8, pp=4), mg.plan("llama", 16, tp=2, pp=2)
    topology = mg.topology(64)
    topology["grid"], topology["tp"] = grid, grid("tp")
    topology.add("dp", grid("dp"), lazy=True)
    topology.concurrent("tp", "dp")
    yield from [(mg.Plan, plan), (mg.Plan, topology.plan()), (mg.Family, plan["dp"]), (mg.Grid, grid),
                (mg.Topology, topology), (mg.Recipe, plan.recipe), (mg.Step, plan.step()), (mg.Loss, plan.lose([5])),
                (mg.Move, mg.move(llama, llama, 0)), (mg.Picture, plan.draw("tp")), (mg.Report, plan.why(0, 9))]
    yield from [(mg.State, plan.at(3)), (mg.Group, plan.at(3)["dp"]), (mg.Job, closed_job()),
                (mg.Policy, mg.load_text(ASKED).plan(8).policy("one"))]
    for kind in (mg.BackendError, mg.DisagreeError, mg.LimitError, mg.MoongridError, mg.RefusedError,
                 mg.UnknownNameError, mg.UsageError):
        yield kind, kind(mg.Status.REFUSED, "tp 3 does not divide 8", "a.lua", 7)
    yield mg.Segment, mg.Segment(0, 0, 2, 1, 0, 1, 0, 0)
    yield mg.StepCall, next(plan.step().calls(0))


def said(thing: Any) -> Any:
    """What a program sees of an object: asked of the original and of the copy."""
    if isinstance(thing, mg.Topology):
        return said(thing.plan())
    if isinstance(thing, mg.Plan):
        return thing.digest, {name: thing[name].tolist() for name in thing}
    if isinstance(thing, mg.Family):
        return thing.tolist(), str(thing), thing.coverage
    if isinstance(thing, mg.Recipe):
        return thing.info, thing.plan(64).digest
    if isinstance(thing, mg.Step):
        return thing.digest, list(thing.calls(3))
    if isinstance(thing, mg.MoongridError):
        return type(thing), thing.status, str(thing), thing.file, thing.line
    return str(thing)


def equal(kind: type, a: Any, b: Any) -> bool:
    return said(a) == said(b) and type(a) is kind and type(b) is kind


WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x)),
        "pickle of protocol 2": lambda x: pickle.loads(pickle.dumps(x, 2))}


def walked(tap: Tap) -> None:
    """Every class x every way; the copy is dropped, then the original still answers."""
    seen: set[type] = set()
    for kind, thing in samples():
        seen.add(kind)
        if kind not in (mg.Picture, mg.Report):  # which a prompt shows as they are
            tap.check("\n" not in repr(thing) and " at 0x" not in repr(thing), f"{kind.__name__}: a repr of one line", repr(thing))
        for name, way in WAYS.items():
            before = said(thing) if not isinstance(thing, mg.Job) else None
            try:
                copied = way(thing)
            except TypeError as why:
                fixed = isinstance(thing, Bound) and thing._remedy and thing._remedy in str(why)
                tap.check(bool(fixed) and (not isinstance(thing, Owner) or "pickle" in name),
                          f"{kind.__name__}: {name} is refused with a remedy", why)
            else:
                same = copied is thing or equal(kind, thing, copied)
                del copied
                gc.collect()
                tap.check(same and before == said(thing), f"{kind.__name__}: {name}")
    public = {getattr(mg, name) for name in mg.__all__}
    classes = {one for one in public if inspect.isclass(one)}
    tap.same(sorted(one.__name__ for one in classes - seen if not issubclass(one, Plain)), [], "every class has a sample")
    tap.same(sorted(one.__name__ for one in classes if issubclass(one, Owner) and not one._remedy
                    and one.__reduce__ is Bound.__reduce__), [], "a class that cannot be pickled has a remedy")


def families(tap: Tap) -> None:
    """Families of every form, twins and windows."""
    grid = mg.grid(mg.Window(20, 4, 16), tp=2, cp=2, dp=mg.fill)
    forms = {"strided": grid("cp"), "picked": grid("dp").pick(0, -1), "pairs": grid("dp").pairs(True), "one": mg.rule(8, "(1:1)"),
             "table": mg.table(8, [[3, 1], [0, 7, 2]], mg.Coverage.PARTIAL), "bundle": grid("tp").bundle(2),
             "union": grid.at(dp=0)("tp") | grid.at(dp=1)("cp"), "reversed": grid("tp").map(lambda ranks: ranks[::-1])}
    for name, family in forms.items():
        for twin in (False, True):
            there = pickle.loads(pickle.dumps(family.twin() if twin else family))
            apart = mg.topology(family.world)
            apart["a"], apart["b"] = family, there
            shares = apart.plan().shares("b")
            tap.same((there, there.tolist(), said(there), shares is None), (family, family.tolist(), said(family),
                     twin or family.size == 1), f"{name}{', a twin' if twin else ''}")
    tap.same(pickle.loads(pickle.dumps(grid)), grid, "a grid over a window")


def topologies(tap: Tap) -> None:
    """A copy of a topology is another one."""
    grid = mg.grid(8, tp=2, dp=mg.fill)
    one = mg.topology(8)
    one["tp"] = grid("tp")
    for name, way in WAYS.items():
        two = way(one)
        two["dp"] = grid("dp")
        tap.same((list(one.plan()), list(two.plan())), (["tp"], ["tp", "dp"]), f"a topology grows after {name}, alone")


@dataclasses.dataclass
class Config:
    lr: float
    plan: object


def answers(plan: Any) -> tuple[Any, ...]:
    """What a worker answers of a plan and its recipe."""
    return plan["tp"].of(3).tolist(), plan.ask("tensor_model_parallel_world_size", 3), plan.step().digest, plan.digest


def workers(tap: Tap) -> None:
    """Other processes, spawned: the plan, its recipe and its step arrive whole."""
    plan = mg.plan("megatron", 64, tp=8, pp=4)
    config = Config(1.0, plan)
    done = dataclasses.asdict(config)
    del done
    gc.collect()
    tap.same(plan["tp"].of(3).tolist(), list(range(8)), "dataclasses.asdict leaves the plan alone")
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        tap.same(pool.submit(answers, plan).result(60), answers(plan), "a worker asks the plan, its recipe and its step")
        failed = pool.submit(mg.plan, "megatron", 64, tp=3).exception(60)
        tap.same((type(failed), getattr(failed, "status", None)), (mg.RefusedError, mg.Status.REFUSED), "a refusal comes back whole")
        topology = mg.topology(8)
        topology["tp"] = mg.grid(8, tp=2, dp=mg.fill)("tp")
        tap.same(pool.submit(mg.Topology.plan, topology).result(60), topology.plan(), "a topology is planned there")
        back = pool.submit(mg.plan, "picotron", 8, tp=2).result(60)
        tap.same(back.digest, mg.plan("picotron", 8, tp=2).digest, "a plan comes back")


def changed(tap: Tap) -> None:
    """A recipe that changes between the two processes is never taken for the old one."""
    text = 'return recipe { params = { tp = %d }, build = function(w, p) local g = grid(w, "tp-dp", { tp = p.tp, dp = fill })\n' \
           "local t = topology(w); t.tp = g 'tp'; return t end, queries = { width = function() return %d end } }"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "a.lua")
        file.write_text(text % (2, 2), encoding="utf-8")
        here = os.getcwd()
        os.chdir(folder)
        recipe, plan = mg.load("a.lua"), mg.plan("a.lua", 8)
        os.chdir(here)
        kept = pickle.dumps(recipe), pickle.dumps(plan)
        tap.same(pickle.loads(kept[1]).ask("width", 0), 2, "the file is found from another folder")
        file.write_text(text % (2, 4), encoding="utf-8")
        status, message = refusal(lambda: pickle.loads(kept[0]))
        tap.same((status, message), (500, f"recipe '{file}' has changed since it was pickled"), "a recipe that has changed")
        late = pickle.loads(kept[1])
        tap.same((late.digest, late["tp"].of(3).tolist()), (plan.digest, [2, 3]), "its plan is what it was")
        tap.same(refusal(lambda: late.ask("width", 0))[0], 500, "and asks no recipe but its own")
        file.unlink()
        tap.same(refusal(lambda: late.ask("width", 0))[0], 100, "nor one that is gone")


def main() -> None:
    tap = Tap()
    for part in (walked, families, topologies, workers, changed):
        part(tap)
    tap.end()


if __name__ == "__main__":
    main()
