# SPDX-License-Identifier: MIT
"""What the package refuses: kind, status and message, whole."""
from __future__ import annotations

import _ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import Tap, refusal

import moongrid as mg
from moongrid import _abi, _library

BUNDLED = ", ".join(mg.recipes())
QUERIES = ("cp_dp_group_ids, cp_dp_world_size, cp_first_rank, cp_group_ids, cp_last_rank, cp_rank, cp_recv_"
         "rank, cp_send_rank, cp_world_size, dp_first_rank, dp_group_ids, dp_last_rank, dp_rank, dp_world"
         "_size, global_rank, local_rank, pp_first_rank, pp_group_ids, pp_is_first_stage, pp_is_last_stag"
         "e, pp_last_rank, pp_next_rank, pp_prev_rank, pp_rank, pp_world_size, str, tp_first_rank, tp_gro"
         "up_ids, tp_last_rank, tp_rank, tp_world_size, world_size")
NO_POLICY = ("picotron:30: unknown policy 'x'; the recipe has none: policy = { NAME = function(state, q, p) ."
         ".. end } makes one, policy = { layers = policies.layers() } uses a bundled one")
OWN = "return recipe { params = { tp = 2, pp = 1 }, build = function(world) return topology(world) end }"
MISFIT = "picotron:39: tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks"


def plan() -> mg.Plan:
    return mg.plan("picotron", 8, tp=2)


# Every question about one rank of a plan of 8.
OF_RANKS = {
    "Family.of": lambda rank: plan()["tp"].of(rank), "Family.locate": lambda rank: plan()["tp"].locate(rank),
    "Grid.coords": lambda rank: mg.grid(8, a=4, b=2).coords(rank), "Grid.position": lambda rank: mg.grid(8, a=8).position(rank),
    "Group.position_of": lambda rank: plan().at(0)["tp"].position_of(rank), "Plan.at": lambda rank: plan().at(rank),
    "Plan.counts": lambda rank: plan().counts(rank), "Plan.json": lambda rank: plan().json(rank),
    "Plan.resources": lambda rank: plan().resources(rank), "Plan.schedule": lambda rank: plan().schedule(rank),
    "Plan.draw": lambda rank: plan().draw(rank=rank), "Step.class_of": lambda rank: mg.plan("picotron", 8, layers=1).step().class_of(rank),
    "Step.operations": lambda rank: mg.plan("picotron", 8, layers=1).step().operations(rank),
}


def calls(tap: Tap) -> None:
    p, grid = plan(), mg.grid(8, a=4, b=2)
    recipe = mg.load_text("return recipe { build = function(world) return topology(world) end }", "bare")
    state = p.at(0)
    closed = p.at(0)
    group = closed["tp"]
    closed.close()
    for name, call, wanted in [
        ("no such recipe", lambda: mg.plan("picotro", 8),
         (101, f"no recipe 'picotro': neither bundled nor a file; nearest is 'picotron' ({BUNDLED})")),
        ("no such parameter", lambda: mg.load_text(OWN, "own").plan(8, tpp=3),
         (101, "own:1: unknown parameter 'tpp'; nearest is 'tp' (pp, tp)")),
        ("a value of another kind", lambda: mg.plan("picotron", 8, tp=[2]),
         (102, "picotron:33: parameter 'tp_size' is a size (an integer of 1 or more), not '[2]'")),
        ("sizes that do not fit", lambda: mg.plan("picotron", 8, tp=3), (100, MISFIT)),
        ("no ranks", lambda: mg.plan("picotron", 0), (103, "a world has 1 to 2147483647 ranks, not 0")),
        ("too many ranks", lambda: mg.plan("picotron", 2**31), (103, "a world has 1 to 2147483647 ranks, not 2147483648")),
        ("no such file of parameters", lambda: mg.plan("picotron", 8, "none.json"),
         (100, "cannot open none.json: No such file or directory")),
        ("no such family", lambda: p["dpp"],
         (101, "unknown family 'dpp'; nearest is 'dp' (tp, cp, pp, dp, cp_dp, pp_dp, world_group)")),
        ("a family that is a number", lambda: p[3],
         (101, "unknown family 3; known: tp, cp, pp, dp, cp_dp, pp_dp, world_group")),
        ("a rank outside the world", lambda: p.at(8), (103, "rank 8 is out of range in a world of 8")),
        ("no such query", lambda: p.ask("tp_rnk", 0), (101, f"unknown query 'tp_rnk'; nearest is 'tp_rank' ({QUERIES})")),
        ("the same rank twice", lambda: p.why(3, 3), (102, "both ranks are 3; two different ranks are needed")),
        ("an unknown law", lambda: p.check("wthin(tp, dp)"),
         (101, "unknown law 'wthin'; nearest is 'within' (same, within, disjoint, covers)")),
        ("a law that does not hold", lambda: p.check("disjoint(tp, dp)"),
         (100, "law disjoint(tp, dp) does not hold: rank 0 is in group 0 of tp and in group 0 of dp")),
        ("explain of no family", lambda: p.explain("x"),
         (101, "unknown family 'x'; known: tp, cp, pp, dp, cp_dp, pp_dp, world_group")),
        ("no such policy", lambda: state.policy("x"), (101, NO_POLICY)),
        ("a value that is none", lambda: mg.load_text(_echo(), "echo").plan(8).at(0).policy("echo")(x=object()),
         (102, "'x' is none of None, a truth value, a number, text, a list of numbers or a dict of these, but object")),
        ("a number of more bits", lambda: mg.load_text(_echo(), "echo").plan(8).at(0).policy("echo")(x=2**63),
         (103, "'x' is 9223372036854775808, which 64 bits do not hold")),
        ("dims that do not fit", lambda: mg.grid(8, a=3, b=mg.fill),
         (100, "a 3 does not divide the 8 ranks; nearest: a 2 or 4, or a world of 6 or 9 ranks")),
        ("no such dim", lambda: grid("c"), (101, "unknown dim 'c'; known: a, b")),
        ("no such coordinate", lambda: grid.rank(a=4), (103, "no rank at {'a': 4}: the grid is a 4 x b 2 over ranks 0..7")),
        ("a dim outside of the order", lambda: mg.grid(8, "a", a=4, b=2), (101, "unknown dim of the order 'b'; known: a")),
        ("no such option", lambda: mg.topology(8).add("x", grid("a"), lasy=True),
         (101, "unknown option 'lasy'; nearest is 'lazy' (unique, first, lazy, high_priority, timeout, backend, nccl, "
               "cartesian, windows, device, parent, single)")),
        ("a rule that is none", lambda: mg.rule(8, "(2:1) y"), (102, "layout '(2:1) y', character 7: 'x', '+' or the end expected, not 'y'")),
        ("a list with a rank twice", lambda: mg.table(4, [[0, 1], [1, 2]]), (100, "rank 1 is in groups 0 and 1 of the table; declare a 'cover' if that is meant")),
        ("no such limit", lambda: mg.load("picotron", memry=3),
         (101, "unknown limit 'memry'; nearest is 'memory' (memory, instructions, seconds, call_seconds)")),
        ("a limit that is spent", lambda: mg.load_text("while true do end", "ever", instructions=100000),
         (300, "ever:1: the recipe runs for more than 100000 instructions")),
        ("a topology's value", lambda: mg.topology(8).__setitem__("x", [1]),
         (102, "'x' is neither a Family nor a Grid, but list")),
        ("an unknown rank is lost", lambda: p.lose([8]), (103, "rank 8 is out of range (0 to 7)")),
        ("a rank is lost twice", lambda: p.lose([1, 1]), (105, "rank 1 is lost twice")),
        ("nobody is lost", lambda: p.lose([]), (100, "no rank is lost")),
        ("all are lost", lambda: p.lose(range(8)), (100, "all 8 ranks are lost, and nobody is left to go on")),
        ("a rank that is not a number", lambda: p.lose(["1"]), (102, "an element of the list is '1', not an integer")),
        ("no answer to a loss", lambda: p.lose([1], "shrik"),
         (101, "unknown answer to a loss 'shrik'; nearest is 'shrink' (stop, replace, shrink)")),
        ("the move of a stop", lambda: p.lose([1], "stop").move(0), (100, "the job stops after this loss: nothing moves")),
        ("a loss without a recipe", lambda: mg.topology(4).plan().lose([1]),
         (202, "what a job becomes is up to its recipe: plan(recipe, ...) makes a plan that has one")),
        ("a plan without a recipe", lambda: mg.topology(4).plan().ask("x", 0),
         (202, "the plan has no recipe: it is of a topology, or was read from a file")),
        ("a plan of no families explains", lambda: recipe.plan(8).tensor("w", 0), (101, "unknown tensor 'w'; the plan has none")),
        ("a state that is closed", lambda: closed.ask("x"), (202, "the state is closed")),
        ("a group of a closed state", lambda: group.size, (202, "the state is closed")),
        ("a rank that is not a number", lambda: p.at("3"), (102, "rank is '3', not an integer")),
        ("a world that is not an integer", lambda: mg.plan("picotron", 8.0), (102, "world is 8.0, not an integer")),
        ("a world that C would cut to 8", lambda: mg.plan("picotron", 2**64 + 8),
         (103, "world is 18446744073709551624, which 64 bits do not hold")),
        ("a rank that C would cut to 3", lambda: p["tp"].of(2**64 + 3),
         (103, "rank is 18446744073709551619, which 64 bits do not hold")),
        ("a position that C would cut", lambda: p["tp"].pick(2**64),
         (103, "an element of the list is 18446744073709551616, which 64 bits do not hold")),
        ("a group that is text", lambda: p["tp"]["0"], (102, "group is '0', not an integer")),
        ("a group by half", lambda: p["tp"][0.5], (102, "group is 0.5, not an integer")),
        ("a position that is text", lambda: state["tp"]["0"], (102, "position is '0', not an integer")),
        ("a coordinate below 0", lambda: grid.at(a=-1), (103, "coordinate -1 of dim 'a' is out of range (0 to 3)")),
        *((f"a rank {rank} of {what}", lambda ask=ask, rank=rank: ask(rank), (103, f"rank {rank} is out of range in a world of 8"))
          for rank in (8, -1) for what, ask in OF_RANKS.items()),
        ("a rank of a list that is none", lambda: mg.table(4, [[0, "a"]]), (102, "an element of the list is 'a', not an integer")),
        ("a size that is text", lambda: mg.grid(8, tp="2"), (102, "tp is '2', not an integer")),
        ("a world that is text", lambda: mg.grid("8", tp=2), (102, "world is '8', not an integer")),
        ("a dim that is a number", lambda: grid(3), (102, "3 is not a name")),
        ("a recipe that is a number", lambda: mg.plan(3, 8), (102, "3 is not a recipe; give a name, a file or a Recipe")),
        ("a law that is a number", lambda: p.check(3), (102, "3 is not a name")),
        ("ranks without groups", lambda: mg.table(4, [0, 1]), (102, "0 is not a group; groups are written [[0, 1], [2, 3]]")),
        ("a plan beside a number", lambda: p.diff(3), (102, "3 is not a Plan")),
        ("a move to a number", lambda: p.move(3), (102, "3 is not a Plan")),
        ("a topology of numbers", lambda: mg.topology(8).add("x", 3), (102, "3 is not a Family")),
        ("a union with a number", lambda: mg.union(p["tp"], 3), (102, "3 is not a Family")),
        ("a group that is not there", lambda: p["tp"].groups(4),
         (103, "groups: group 4 is out of range (0 to 3, or -1 to -4 from the end)")),
        ("a list of positions", lambda: p["tp"].pick([0, 1]), (102, "[0, 1] is not an integer; leave out the brackets")),
        ("a list of names", lambda: grid(["a", "b"]), (102, "['a', 'b'] is not a name; leave out the brackets")),
        ("a list of families", lambda: mg.union([p["tp"]]), (102, f"[{p['tp']!r}] is not a Family; leave out the brackets")),
        ("a list of names of families", lambda: p.draw(["tp"]),
         (101, "unknown family ['tp']; known: tp, cp, pp, dp, cp_dp, pp_dp, world_group; leave out the brackets")),
        ("one rank is lost", lambda: p.lose(3), (102, "3 is not a list; [3] is one")),
        ("calls of a rank outside the world", lambda: mg.plan("picotron", 8, layers=1).step().calls(8),
         (103, "rank 8 is out of range in a world of 8")),
        ("sizes in a dict", lambda: mg.grid(8, {"a": 2, "b": 4}),
         (102, "the order of dims is written 'tp-dp', and sizes tp=2, dp=4; not {'a': 2, 'b': 4}")),
        ("parameters as a line", lambda: mg.plan("picotron", 8, "tp=2"),
         (102, "params is 'tp=2', neither a dict nor a file; parameters are written tp=2, or {'tp': 2}")),
        ("parameters as a number", lambda: mg.plan("picotron", 8, 2),
         (102, "params is 2, neither a dict nor a file; parameters are written tp=2, or {'tp': 2}")),
        ("the text of a recipe as its name", lambda: mg.plan("return\nrecipe {}", 8),
         (102, "the name of a recipe has one line; load_text loads a recipe from its text")),
        ("a file as a text", lambda: mg.load_text("own.lua"), (102, "'own.lua' is not the text of a recipe; load takes a file")),
        ("a recipe as a saved plan", lambda: mg.read("own.lua"), (102, "own.lua is a recipe, not a saved plan; plan() plans it")),
        ("a saved plan as a recipe", lambda: mg.load("tests/golden/accelerate.json"),
         (100, "tests/golden/accelerate.json:1: this is not a recipe; read() reads a saved plan")),
        ("a bundled recipe with .lua", lambda: mg.load("megatron.lua"),
         (100, f"cannot open megatron.lua: No such file or directory, in {os.getcwd()}; the bundled recipe is 'megatron'")),
        ("a file of nearly that name", lambda: mg.load("examples/mo.lua"),
         (100, "cannot open examples/mo.lua: No such file or directory, in {cwd}; nearest is 'examples/moe.lua'".format(cwd=os.getcwd()))),
        ("a move of other tensors", lambda: plan().move(plan(), 0, tensors=["w"]), (101, "unknown tensor 'w'; the plan has none")),
    ]:
        tap.same(refusal(call), wanted, name)


def _echo() -> str:
    return "return recipe { policy = { echo = function(_, q) return q end }, build = function(w) return topology(w) end }"


def kinds(tap: Tap) -> None:
    """What may stand after `except`."""
    for kind, call in [(mg.UnknownNameError, lambda: mg.plan("picotro", 8)), (KeyError, lambda: plan()["x"]),
                       (ValueError, lambda: mg.plan("picotron", 8, tp=3)), (mg.RefusedError, lambda: mg.plan("picotron", 0)),
                       (mg.LimitError, lambda: mg.load_text("while true do end", instructions=100000)),
                       (mg.UsageError, lambda: mg.topology(4).plan().ask("x", 0)), (RuntimeError, lambda: mg.grid(8, a=3))]:
        try:
            call()
        except kind as why:
            tap.check(isinstance(why, mg.MoongridError) and why.status is mg.Status(why.status), kind.__name__)
        else:
            tap.check(False, kind.__name__)
    try:
        mg.plan("picotron", 8, tp=3)
    except mg.MoongridError as why:
        tap.same((why.file, why.line), ("picotron", 39), "file and line of the recipe")
    tap.same(plan().get("x", None), None, "get of no family")
    for kind in (mg.Plan, mg.Recipe, mg.Topology, mg.Grid, mg.Family, mg.State, mg.Job, mg.Step, mg.Loss, mg.Move):
        for arguments in ((), (8,), ("megatron", 16), (plan(), 3)):  # C must not get what is not an address
            try:
                kind(*arguments)
            except TypeError as why:
                tap.check(str(why).startswith(f"a {kind.__name__} is made by "), f"{kind.__name__}{arguments}", str(why))
            else:
                tap.check(False, f"{kind.__name__}{arguments}")
    try:
        plan()["tp"][4]
    except IndexError as why:
        tap.same(str(why), "group 4 of 4", "no such group")
    try:
        plan()["tp"].map(lambda ranks: [{}["own"]])
    except KeyError as why:
        tap.same(str(why), "'own'", "a function that raises")


def attributes(tap: Tap) -> None:
    """An attribute that is not there: what was meant."""
    p = plan()
    for thing, name, wanted in [
        (p, "dp", "'Plan' object has no attribute 'dp'; a family is plan[\"dp\"]"),
        (p, "dpp", "'Plan' object has no attribute 'dpp'; a family is plan[\"dp\"]"),
        (p, "digset", "'Plan' object has no attribute 'digset'; nearest is 'digest'"),
        (p, "zzzz", "'Plan' object has no attribute 'zzzz'; known: ask, at, check, counts, diff, digest, draw, explain, families, get, "
                    "grids, items, json, keys, lose, move, params, policy, recipe, resources, save, saved, schedule, shares, step, tensor, "
                    "tensors, text, values, why, world"),
        (mg, "draw", "module 'moongrid' has no attribute 'draw'; a plan has it: moongrid.plan(...).draw"),
        (mg, "torch", "module 'moongrid' has no attribute 'torch'; write import moongrid.torch"),
        (mg, "zzzz", "module 'moongrid' has no attribute 'zzzz'"),
        (p, "__zzzz__", "'Plan' object has no attribute '__zzzz__'"),
        (p.at(0), "tp", "'State' object has no attribute 'tp'; a family is state[\"tp\"]"),
        (mg.grid(8, tp=2, dp=4), "tp", "'Grid' object has no attribute 'tp'; grid.dims[\"tp\"] is the size of a dim, grid(\"tp\") its family"),
        (object.__new__(mg.Plan), "_handle", "'Plan' object has no attribute '_handle'"),
    ]:
        try:
            getattr(thing, name)
        except AttributeError as why:
            tap.same(str(why), wanted, f"no attribute: {name}")
        else:
            tap.check(False, f"no attribute: {name}")


def library_of(folder: str, version: str) -> str:
    """Build a library that has a version, and nothing else."""
    Path(folder, "a.c").write_text(f'const char *mgrid_version(void) {{ return "{version}"; }}', encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", f"{folder}/a.c", "-o", f"{folder}/{version}.so"], check=True)
    return f"{folder}/{version}.so"


def libraries(tap: Tap) -> None:
    """A library that is missing, is another one, or is of another release."""
    way_out = "; name it by MOONGRID_LIBRARY=PATH, or build the clone (make)"
    missing = "cannot open shared object file: No such file or directory"
    other = _ctypes.__file__
    tap.same(refusal(lambda: _library.Library("/none/libmoongrid.so")),
             (401, f"no moongrid library: /none/libmoongrid.so: {missing}{way_out}"), "no library")
    tap.same(refusal(lambda: _library.Library(other)),
             (401, f"no moongrid library: {other}: undefined symbol: mgrid_version{way_out}"), "another library")
    if shutil.which("cc"):
        with tempfile.TemporaryDirectory() as folder:
            version = _abi.VERSION.rpartition(".")[0] + ".99"  # it calls functions that only one release has
            tap.same(refusal(lambda: _library.Library(library_of(folder, version))),
                     (401, f"no moongrid library: {folder}/{version}.so is of moongrid {version}, this package is of "
                           f"{_abi.VERSION}{way_out}"), "a library of another release")
    said = subprocess.run([sys.executable, "-c", "import moongrid as mg; mg.recipes()"], capture_output=True, text=True,
                          check=False, env={**os.environ, "MOONGRID_LIBRARY": "/none/from-the-environment.so",
                                            "PYTHONPATH": os.pathsep.join(sys.path)})
    tap.check(f"no moongrid library: /none/from-the-environment.so: {missing}" in said.stderr,
              "MOONGRID_LIBRARY is what is opened", said.stderr)


def main() -> None:
    tap = Tap()
    calls(tap)
    kinds(tap)
    attributes(tap)
    libraries(tap)
    tap.end()


if __name__ == "__main__":
    main()
