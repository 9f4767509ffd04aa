# SPDX-License-Identifier: MIT
"""Plans, families, questions and moves of the package, beside lists in Python and beside the command."""
from __future__ import annotations

import gc
import itertools
import json
import os
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from tap import ROOT, Tap, refusal

import moongrid as mg
from moongrid import _command

FSDP = str(ROOT / "examples/fsdp_tp.lua")


def command(*words: str) -> str:
    return subprocess.run([_command.path(), *words], check=True, capture_output=True, text=True).stdout


def bundled(tap: Tap) -> None:
    """Every bundled recipe at some worlds: families, ranks and digests are those of the command."""
    for name in mg.recipes():
        for world in (16, 24, 64):
            try:
                plan = mg.plan(name, world)
            except mg.RefusedError as why:
                said = subprocess.run([_command.path(), "plan", name, "--world", str(world)], capture_output=True, text=True,
                                      check=False)
                tap.same(f"moongrid: {why}", said.stderr.strip(), f"{name} refuses {world} ranks")
                continue
            wanted = json.loads(command("plan", name, "--world", str(world), "--json"))
            got = {family: plan[family].tolist() for family in plan}
            tap.same(got, {family: one["groups"] for family, one in wanted["families"].items()}, f"{name}: {world} ranks")
            tap.same((plan.digest, plan.params, plan.json()), (wanted["digest"], wanted["params"], wanted),
                     f"{name}: digest, parameters and JSON")
            shares = {family: one["shares"] for family, one in wanted["families"].items()}
            tap.same({family: plan.shares(family) for family in plan}, shares, f"{name}: what shares communicators")
            for rank in (0, world // 2 + 1):
                view = json.loads(command("plan", name, "--world", str(world), "--rank", str(rank), "--json"))
                state = plan.at(rank)
                places = {}
                for family in state:
                    groups = [{"index": g.index, "position": g.position, "ranks": g.ranks.tolist()}
                              for g in state.groups(family)]
                    places[family] = groups
                listed = {family: [{key: one[key] for key in ("index", "position", "ranks")}
                                   for one in (where if isinstance(where, list) else [where] if where else [])]
                          for family, where in view["families"].items()}
                tap.same(places, listed, f"{name}: the groups of rank {rank}")
                coords = {grid: {dim: state.coord(grid, dim) for dim in plan.grids[grid].dims} for grid in plan.grids}
                tap.same(coords, {grid: one["coords"] or {d: -1 for d in plan.grids[grid].dims}
                                  for grid, one in view["grids"].items()}, f"{name}: the coordinates of rank {rank}")


def algebra(tap: Tap) -> None:
    """Verbs on random families beside the same on lists."""
    seed = int(os.environ.get("MOONGRID_SEED", 41))
    at = random.Random(seed)
    bad: list[str] = []
    for _ in range(200):
        sizes = {f"d{i}": at.choice((1, 2, 3, 4)) for i in range(at.randint(1, 4))}
        grid = mg.grid(mg.Window(300, offset := at.randint(0, 3), _product(sizes.values())), **sizes)
        dims = [dim for dim in sizes if at.random() < 0.5]
        f = grid(*dims)
        lists = _along(sizes, dims, offset)
        k = at.choice([n for n in range(1, f.size + 1) if f.size % n == 0])
        inner, outer = f.split(k, lists=True)
        picked = [at.randrange(-f.size, f.size) for _ in range(2)]
        order = list(range(f.count))
        at.shuffle(order)
        b = at.choice([n for n in range(1, f.count + 1) if f.count % n == 0])
        gone = at.sample(range(300), 2)
        cases: list[tuple[str, Any, list[list[int]]]] = [
            ("along", f, lists), ("inner", inner, [one[i:i + k] for one in lists for i in range(0, len(one), k)]),
            ("outer", outer, [one[i::k] for one in lists for i in range(k)]),
            ("pick", f.pick(*picked), [[one[p] for p in dict.fromkeys(p % len(one) for p in picked)] for one in lists]),
            ("renumber", f.renumber(order), [lists[i] for i in order]),
            ("bundle", f.lists().bundle(b), [sum(lists[i:i + b], []) for i in range(0, len(lists), b)]),
            ("segments", f.segments(1, mg.fill) if f.size > 1 else f,
             [part for one in lists for part in (one[:1], one[1:])] if f.size > 1 else lists),
            ("lists", f.lists(), lists), ("twin", f.twin(), lists),
            ("map", f.map(lambda ranks: ranks[::-1]), [one[::-1] for one in lists]),
            ("without", f.without(gone), [left for one in lists if (left := [r for r in one if r not in gone])]),
            ("table", mg.table(300, lists, mg.Coverage.PARTIAL), lists),
            ("rule", mg.rule(mg.Window(300, offset, grid.size), str(f)) if str(f).startswith("(") else f, lists),
        ]
        for what, made, wanted in cases:
            if made.tolist() != wanted or [ranks.tolist() for ranks in made] != wanted or made.count != len(wanted):
                bad.append(f"{what} of {grid} {dims}: {made.tolist()}, not {wanted}")
            for rank in at.sample(range(300), 5):
                place = next(((i, one.index(rank)) for i, one in enumerate(wanted) if rank in one), None)
                of = made.of(rank)
                if made.locate(rank) != place or (of if of is None else of.tolist()) != (place and wanted[place[0]]):
                    bad.append(f"{what}: rank {rank} is at {made.locate(rank)}, not {place}")
        for rank in at.sample(range(300), 5):
            coords = grid.coords(rank)
            if coords is not None and (grid.rank(**coords) != rank or rank not in grid):
                bad.append(f"{grid}: {coords} is not rank {rank}")
    tap.check(not bad, f"200 random grids, their families and 13 verbs (MOONGRID_SEED={seed})", "\n".join(bad[:5]))
    f = mg.grid(8, a=4, b=2)("a")
    tap.same(f.pairs().tolist(), [[0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7]], "pairs")
    tap.same((f.pairs().coverage, f.coverage), (mg.Coverage.COVER, mg.Coverage.PARTITION), "coverage")
    tap.same([level.tolist() for level in f.levels(2, 2)],
             [[[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 2], [1, 3], [4, 6], [5, 7]]], "levels")
    grid = mg.grid(8, a=2, b=2, c=2)
    tap.same(grid("a").where(grid, c=1).tolist(), [[4, 5], [6, 7]], "where")
    tap.same((grid("a").where(grid, c=0) | grid("a").where(grid, c=1)).tolist(), grid("a").tolist(), "union")
    tap.same(mg.zip(grid("a").where(grid, c=0), grid("a").where(grid, c=1)).tolist(), [[0, 1, 4, 5], [2, 3, 6, 7]], "zip")
    tap.same(grid("b", "a", as_written=True)[0].tolist(), [0, 2, 1, 3], "dims as written")
    tap.same(grid.flatten("ab", "a", "b").unflatten("ab", x=2, y=2).rename(x="a", y="b"), grid, "grids are reshaped")
    tap.same(grid.at(b=1).dims, {"a": 2, "c": 2}, "a part of a grid")
    tap.same(mg.grid(8, "a-b", a=2, b=mg.fill, z=1).dims, {"a": 2, "b": 4, "z": 1}, "an order")


def _product(sizes: Any) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _along(sizes: dict[str, int], dims: list[str], offset: int) -> list[list[int]]:
    """The groups along dims, by counting through all coordinates."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank in range(_product(sizes.values())):
        rest, coords = rank, {}
        for dim, size in sizes.items():
            coords[dim], rest = rest % size, rest // size
        groups.setdefault(tuple(coords[dim] for dim in reversed(list(sizes)) if dim not in dims), []).append(rank + offset)
    return [groups[key] for key in sorted(groups)]


def questions(tap: Tap) -> None:
    plan = mg.plan("megatron", world=16, tp=2, pp=2)
    tap.same([plan.ask("data_parallel_rank", rank=r) for r in range(16)],
             json.loads(command("ask", "megatron", "--world", "16", "tp=2", "pp=2", "--rank", "all", "data_parallel_rank",
                                "--json")), "a query, on every rank")
    state = plan.at(5)
    tap.same(state.group("get_tensor_model_parallel_group"), state["tp"], "a getter")
    tap.same(str(plan.why(0, 9)), command("why", "megatron", "--world", "16", "tp=2", "pp=2", "0", "9").rstrip(), "why")
    tap.same(plan.why(0, 9).data["ranks"], [0, 9], "why, as values")
    tap.same(str(plan.explain("tp")), command("explain", "megatron", "--world", "16", "tp=2", "pp=2", "tp").rstrip(),
             "explain, with the lines of the recipe")
    for made, line in ((plan, ("megatron", "--world", "16", "tp=2", "pp=2")), (mg.plan(FSDP, 16), (FSDP, "--world", "16"))):
        text = command("explain", *line).rstrip()
        with mock.patch.object(subprocess, "run", side_effect=AssertionError("a process is started")):
            tap.same(str(made.explain()), text, "explain of all families, in this process")
            tap.same(refusal(lambda made=made: made.check("covers(x)"))[0], 101, "a law, too")
    other = mg.plan("megatron", 16, tp=4)
    tap.same(str(plan.diff(other)), command("diff", "megatron", "--world", "16", "tp=2", "pp=2", "vs", "tp=4").rstrip(),
             "diff")
    tap.same(plan.diff(plan).data, mg.Change(plan.counts(0)["communicators"], 0, 0), "a plan keeps its communicators")
    tap.same(plan.diff(mg.plan("megatron", 32)).data, None, "between worlds nothing is kept")
    tap.same(plan.check("within(tp, mp)", "covers(tp)").sampled, False, "laws that hold")
    tap.same(str(mg.plan("picotron", 4, tp=2)).splitlines()[:3],
             ["Plan('picotron', world=4, tp=2: 7 families)", "  tp           2 groups of 2: {0,1} {2,3}",
              "  cp           4 groups of 1: {0} {1} {2} ..."], "a line for each family")
    tap.same(str(mg.plan("picotron", 2**30)["world_group"]) and repr(mg.plan("picotron", 2**30)["world_group"]),
             "Family(1 group of 1073741824: {0,1,2,3,4,5,6,7,...})", "a group that no memory holds")
    tap.same(plan.text(), command("plan", "megatron", "--world", "16", "tp=2", "pp=2", "--text"), "the canonical text")
    tap.same(plan.resources(0), {k: v for k, v in plan.json(0)["resources"].items() if k != "machine_ranks"}, "resources")
    tap.same(plan.counts()["communicators"], plan.json()["communicators"]["total"], "counts")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "plan.json")
        plan.save(file)
        again = mg.read(file)
        tap.same((again == plan, again.digest, again["dp"].tolist()), (True, plan.digest, plan["dp"].tolist()),
                 "saved and read")
        tap.same(mg.plan("megatron", 16, _file(folder, "p.json", '{"tp": 2, "pp": 2}')), plan, "parameters of a file")
        tap.same(mg.plan("megatron", 16, {"tp": 2}, pp=2), plan, "parameters of a mapping")
        tap.check("max_ctas=8" in mg.plan("megatron", 16, {"tp": 2, "tp.max_ctas": 8}).text(), "an option of a family")
    group = mg.grid(8, a=4, b=2)
    t = mg.topology(8)
    t["g"], t["a"] = group, group("a")
    t.add("b", group("b"), lazy=True)
    t.concurrent("a", "b")
    made = t.plan()
    tap.same((list(made), made["a"] == group("a"), made.grids["g"] == group), (["a", "b"], True, True), "a topology")
    g = made.at(6)["a"]
    assert isinstance(g, mg.Group)
    tap.same(([*g], g.position, g.next(), g.next(wrap=False), g.prev(), g[-1], 5 in g, 3 in g, len(g), g.segment(2, mg.fill)),
             ([4, 5, 6, 7], 2, 7, 7, 5, 7, True, False, 4, mg.Segment(1, 2, 2, 0, 6, 7, 7, 7)), "a group's answers")
    tap.same(made.at(6).submesh("g", "b"), group.at(a=2), "a part of a grid around a rank")
    tap.same(([list(ranks) for ranks in made["b"][1:3]], made["b"][-1].tolist(), g[1:], g[::-2]),
             ([[1, 5], [2, 6]], [3, 7], [5, 6, 7], [7, 5]), "slices")
    tap.same([rank in thing for thing in (made["a"].pick(0), group, g) for rank in (4, 5, 8, -1, 2.5, "4", None)],
             [True] + [False] * 6 + [True, True] + [False] * 5 + [True, True] + [False] * 5, "what is in a family, grid, group")


def _file(folder: str, name: str, text: str) -> str:
    Path(folder, name).write_text(text, encoding="utf-8")
    return f"{folder}/{name}"


KINDS = """
return recipe {
  params = {
    size = param.size(2), index = param.index(0), integer = param.integer(-3), number = param.number(0.5),
    flag = param.flag(false), order = param.order("tp-dp"), choice = param.choice({ 1, 2 }),
    choice_text = param.choice({ "1", "2" }), list = param.list({ 0, -1 }), names = param.names({ "tp" }),
    table_ = param.table({ a = 1 }), file = param.file({ a = 1 }), any = param.any({ 1, "x" }), text = param.text("0.19"),
  },
  build = function(world)
    local t = topology(world)
    t.all = grid(world, "x", { x = fill }) "x"
    return t
  end,
}
"""


def kinds(tap: Tap) -> None:
    """A parameter of each kind keeps its kind: given, in JSON, in a saved plan, and given again."""
    recipe = mg.load_text(KINDS, "kinds")
    texts = ("0.19", "2", "true", "null", "[1,2]", "{}", '"q"', "1e3", "x", "")
    rounds = [{}, *({"text": one} for one in texts), *({"choice_text": one} for one in ("1", "2")), {"choice": 2}, {"order": "null"},
              {"size": 3, "index": 4, "integer": 5, "number": -1.5e300, "flag": True, "list": [], "names": "true", "table_": {},
               "file": {"b": [1, {"c": "2"}]}, "any": [1.5, "2", {"a": 1}]}]
    with tempfile.TemporaryDirectory() as folder:
        for given in rounds:
            plan = recipe.plan(8, given)
            plan.save(f"{folder}/kinds.json")
            kept, again = mg.read(f"{folder}/kinds.json"), recipe.plan(8, plan.params)
            wanted = {**recipe.plan(8).params, **given}
            tap.same((plan.params, plan.json()["params"], kept.params, again.params), (wanted,) * 4, f"they keep their kind: {given}")
            tap.same([type(one) for one in kept.params.values()], [type(one) for one in wanted.values()], f"and their type: {given}")
            tap.same((kept.digest, again.digest), (plan.digest,) * 2, f"and the digest: {given}")


ECHO = """
return recipe {
  params = { n = 2 },
  settings = { loud = param.flag(false) },
  policy = {
    echo = function(_, q) return q end,
    lists = function(_, q) return { one = q.x, all = { q.x, { 1.5, 2 }, "t" }, [ "a key" ] = { deep = true } } end,
    nothing = function() return nil end,
    fails = function(_, q) return q.x.y end,
  },
  queries = { loud = function(_, _, _, set) return set.loud end, long = function() return ("x"):rep(5000) end },
  build = function(world, p)
    local t = topology(world)
    t.pair = grid(world, "a-b", { a = p.n, b = fill }) "a"
    return t
  end,
}
"""


def policies(tap: Tap) -> None:
    recipe = mg.load_text(ECHO, "echo")
    state = recipe.plan(8).at(3)
    echo = state.policy("echo")
    values: dict[str, Any] = {"none": None, "yes": True, "i": 7, "f": 0.5, "t": "text é", "is": [1, 2, 3], "fs": [0.5, 2.0],
                              "d": {"a": 1, "b": {"c": [4, 5]}}}
    got = [echo(**values) for _ in range(20)]
    gc.collect()
    tap.same(got[0], {k: v for k, v in values.items() if v is not None}, "values go in and come back")
    tap.same(got, [got[0]] * 20, "the same 20 times")
    tap.same(state.policy("lists")(x=[1, 2]), {"one": [1, 2], "all": [[1, 2], [1.5, 2.0], "t"], "a key": {"deep": True}},
             "lists of lists, and keys that are not names")
    tap.same(state.policy("nothing")(), None, "nothing")
    tap.same(state.ask("loud"), False, "a setting")
    state.set("loud", True)
    tap.same((state.ask("loud"), recipe.plan(8).at(3).ask("loud")), (True, False), "is of its state")
    tap.same(state.ask("long"), "x" * 5000, "a long answer")
    tap.same(recipe.plan(8, n=4)["pair"].size, 4, "a recipe plans again")
    tap.same(str(recipe.plan(8).explain("pair")).splitlines()[0], "pair: 4 groups of 2", "a recipe without a file explains")
    tap.same(echo.agreed, "", "a policy that no rank compares")


def held(plan: mg.Plan, name: str, rank: int) -> list[tuple[int, ...]]:
    """The elements of a part by their indices in the tensor, in the order of the rank's memory."""
    part = plan.tensor(name, rank)
    axes = [[start + i for start, length in runs for i in range(length)] for runs in part["runs"]]
    whole = list(itertools.product(*axes))
    return whole[part["first"]:part["first"] + part["elements"]] if part["slice"] else whole


def described(tap: Tap, a: mg.Plan, b: mg.Plan) -> None:
    """Descriptors are carried out in lists of elements: each rank ends with the elements that b says, none of them twice."""
    ranks = [a.move(b, rank) for rank in range(8)]
    way, names = mg.Way, ranks[0].tensors
    before = {(rank, name): held(a, name, rank) for rank in range(8) for name in names}
    after: dict[tuple[int, str], list[Any]] = {(rank, name): [None] * len(held(b, name, rank)) for rank in range(8) for name in names}
    sizes = {name: max(a.tensor(name, rank)["bytes"] // (len(before[rank, name]) or 1) for rank in range(8)) for name in names}
    for m in ranks:
        got = m.descriptors(way.RECEIVES)
        for peer in {d.peer for d in got}:
            sent = [d._replace(peer=peer) for d in ranks[peer].descriptors(way.SENDS) if d.peer == m.rank]
            tap.same([d for d in got if d.peer == peer], sent, f"rank {m.rank} has the descriptors of {peer}")
        for d in got + m.descriptors(way.STAYS):
            size = sizes[d.tensor]
            at, to, n = d.from_offset // size, d.to_offset // size, d.bytes // size
            into = after[m.rank, d.tensor]
            if n <= 0 or into[to:to + n] != [None] * n:
                tap.check(False, "nothing is written twice", str(d))
            into[to:to + n] = before[d.peer, d.tensor][at:at + n]
    tap.check(any(len(m.descriptors(way.RECEIVES)) > 2 for m in ranks), "there are descriptors")
    wanted = {(rank, name): held(b, name, rank) for rank in range(8) for name in names}
    tap.same(after, wanted, "descriptors move every element to its place")


def moves(tap: Tap) -> None:
    a, b = mg.plan(FSDP, 8), mg.plan(FSDP, 8, tp=4, fsdp=False)
    ranks = [a.move(b, rank, rounds=True) for rank in range(8)]
    sent = {(m.rank, peer.rank): peer.send for m in ranks for peer in m.peers if peer.send}
    got = {(peer.rank, m.rank): peer.receive for m in ranks for peer in m.peers if peer.receive}
    tap.check(bool(sent) and sent == got, "what a rank sends another receives")
    for m in ranks:
        s = m.sums
        tap.same((s.send, s.receive, s.sends), (sum(p.send for p in m.peers), sum(p.receive for p in m.peers),
                                                sum(p.send > 0 for p in m.peers)), f"the sums of rank {m.rank}")
        bytes_of = {peer.rank: sum(piece.bytes for piece in m.pieces(mg.Way.SENDS, peer.rank)) for peer in m.peers}
        tap.same(bytes_of, {peer.rank: peer.send for peer in m.peers}, f"the pieces of rank {m.rank} are its messages")
        tap.same(sum(p.bytes for p in m.pieces(mg.Way.STAYS)), s.stay, f"what stays on rank {m.rank}")
    report = a.move(b)
    tap.same(str(report), command("move", FSDP, "--world", "8", "vs", "tp=4", "fsdp=false").rstrip(), "a report of the job")
    small = {"hidden": 32, "head": 4, "ffn": 24, "vocab": 40}
    described(tap, mg.plan(FSDP, 8, small), mg.plan(FSDP, 8, small, tp=4, fsdp=False))
    name = a.tensors[0]
    part = a.tensor(name, 3)
    for length, runs in zip(part["shape"], part["runs"]):
        tap.same(sum(n for _, n in runs), length, f"the runs of {name} on an axis")


def steps(tap: Tap) -> None:
    plan = mg.plan("picotron", 8, tp=2, pp=2, layers=4)
    step = plan.step()
    report = json.loads(command("step", "picotron", "--world", "8", "tp=2", "pp=2", "layers=4", "--json"))
    tap.same((step.digest, step.classes), (report["digest"], report["classes"]), "a step is that of the command")
    step.prove()
    step.prove(blocking=True)
    calls = [list(step.calls(rank)) for rank in range(8)]
    tap.same(max(sum(call.family == "tp" for call in one) for one in calls), report["families"]["tp"]["calls"], "its calls")
    tap.same(sum(map(len, calls)), report["operations"], "operations that communicate")
    tap.check(all(step.operations(rank) > len(calls[rank]) for rank in range(8)), "and others")
    tap.same([step.class_of(rank) for rank in (0, 7)], [0, step.classes - 1], "classes of ranks")
    tap.same({str(call) for call in calls[0] if call.family == "world_group"},
             {"send(world_group to 2) of 16777216 bytes", "recv(world_group from 2) of 16777216 bytes"}, "a call as text")
    family_order = mg.plan(ROOT / "examples/steps/family_order.lua", 4).step()
    tap.same(refusal(family_order.prove), (406, "cycle: rank 0 (dp 0, node 0) waits in reduce_scatter(dp) line 15 for rank 2 "
             "(dp 1, node 0), which waits in all_to_all(node) line 18 for rank 3 (dp 1, node 1), which waits in "
             "reduce_scatter(dp) line 15 for rank 1 (dp 0, node 1), which waits in all_to_all(node) line 18 for rank 0"), "a cycle")
    tap.same(refusal(lambda: mg.topology(4).plan().step()),
             (202, "the step of a plan is its recipe's: plan(recipe, ...) makes one that has it"), "a plan of no recipe")
    tap.same(refusal(lambda: step.calls(8).__next__())[0], 103, "no such rank")


LOSES = """return recipe { spares = 1, params = { tp = 2, dp = param.size(nil) },
policy = { on_lost = function(s, q, p) return p.dp and { how = "shrink", params = { dp = p.dp - 1 } } or q.lost > 1 and "shrink"
  or "replace" end },
build = function(world, p)
  local g = grid(world, "tp-dp", { tp = p.tp, dp = p.dp or fill }) local t = topology(world)
  t.g, t.tp, t.dp = g, g "tp", g "dp"
  t.m = tensor { over = "g", axes = { { "row", 24 } }, type = "f32", cut = { row = "dp" } } return t end }"""


def losses(tap: Tap) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "r.lua").write_text(LOSES)
        plan = mg.plan(f"{folder}/r.lua", 9)
        loss = plan.lose([3, 2])
        words = ("lose", f"{folder}/r.lua", "--world", "9", "--ranks", "2,3")
        wanted = json.loads(command(*words, "--json"))
        head, text = command(*words).split("\n", 1)
        tap.same(str(loss), text, "a loss is that of the command")
        tap.same((loss.how, loss.why, loss.lost, loss.layout, loss.idle, loss.old_ranks, loss.params, loss.uncounted),
                 tuple(wanted[name] for name in ("how", "why", "lost", "layout", "idle", "old_ranks", "params", "uncounted")),
                 "its fields")
        tap.same((loss.communicators, loss.dropped, loss.families), ((3, 2), 3, {"tp": (3, 0), "dp": (0, 2)}), "communicators")
        tap.same((loss.stay, loss.moved, loss.without_copy), (128, 16, 24), "bytes")
        tap.same(loss.missing, [("m", "row 6..11", 24, (2, 3))], "what has no copy")
        assert loss.plan
        tap.same((loss.plan.digest, loss.plan.world), (wanted["digest"], 7), "the plan of those that remain")
        tap.same([loss.rank(old) for old in (0, 3, 8)], [0, None, 6], "the new rank of an old one")
        tap.same(refusal(lambda: loss.rank(9)), (103, "rank 9 is out of range in a world of 9"), "of a rank that there is not")
        tap.same([loss.kept("tp", 1), loss.kept("dp", 0)], [("tp", 2), None], "groups that are kept")
        tap.same(refusal(lambda: loss.kept("x", 0)), (101, "unknown family 'x'; known: dp, tp"), "of no family")
        sums = [loss.move(rank).sums for rank in range(7)]
        tap.same((sum(s.receive for s in sums), sum(s.send for s in sums), sum(s.stay for s in sums)), (16, 16, 128), "its moves")
        again = loss.plan.lose([0])
        assert again.plan
        tap.same((again.how, again.old_ranks), ("replace", [6, 1, 2, 3, 4, 5]), "and they may lose another one")
        tap.same(repr(again), "Loss([0]: replace, a layout of 6 ranks)", "at a prompt")
        tap.same(str(again.plan.explain("tp")).split("\n")[0], "tp: 3 groups of 2", "a plan that the recipe would not make alone")
        tap.same((plan.lose([0], "stop").why, plan.lose([0], "stop").plan), ("the caller says so", None), "a stop")
        fixed = mg.plan(f"{folder}/r.lua", 9, dp=4)
        twice = fixed.lose([0])
        assert twice.plan
        tap.same((twice.params, twice.layout, twice.plan.lose([1]).params), (["dp=3"], 6, ["dp=2"]), "parameters that change")
        kept = fixed.lose([1]).plan
        del fixed, twice
        gc.collect()
        assert kept
        tap.same(kept.lose([0]).params, ["dp=2"], "a plan outlives the loss that it is of")


def main() -> None:
    tap = Tap()
    for part in (bundled, kinds, algebra, questions, policies, moves, steps, losses):
        part(tap)
    gc.collect()
    tap.end()


if __name__ == "__main__":
    main()
