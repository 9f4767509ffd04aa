# SPDX-License-Identifier: MIT
"""What a prompt and a notebook show: reprs, HTML, pictures; that the package is typed and its words are explained."""
from __future__ import annotations

import functools
import importlib.util
import inspect
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree
from pathlib import Path

from tap import ROOT, Tap, refusal

import moongrid as mg
from moongrid import _command

SVG = "{http://www.w3.org/2000/svg}svg"


def prompts(tap: Tap) -> None:
    plan = mg.plan("megatron", world=1024, tp=8, pp=4)
    asked = [value._ipython_key_completions_() for value in (plan, plan.at(3), plan["dp"])]
    tap.same(asked, [plan.families, plan.families, []], "families after plan[\"<TAB>")
    for value, wanted in [
        (plan, "Plan('megatron', world=1024, tp=8, pp=4: 32 families)"),
        (mg.plan("picotron", 8, {"tp": 2}), "Plan('picotron', world=8, tp=2: 7 families)"),
        (plan["tp"], "Family(128 groups of 8: {0,1,2,3,4,5,6,7} {8,9,10,11,12,13,14,15} {16,17,18,19,20,21,22,23} "
                     "{24,25,26,27,28,29,30,31} ...)"),
        (plan["dp"].pick(0, -1), "Family(32 groups of 2: {0,248} {1,249} {2,250} {3,251} ...)"),
        (mg.grid(8, tp=2, dp=4), "Grid((tp=2, dp=4), ranks 0..7)"),
        (plan.at(17), "State('megatron', rank 17 of 1024, without communicators)"),
        (plan.at(17)["tp"], "Group('tp'[2], position 1 of [16, 17, 18, 19, 20, 21, 22, 23])"),
        (plan.at(17)["dp"], "Group('dp'[1], position 2 of [1, 9, 17, 25, 33, 41, 49, 57, ...])"),
        (plan.recipe, "Recipe('megatron')"),
    ]:
        tap.same(repr(value), wanted, wanted[:40])
    why = plan.why(3, 515)
    tap.same(repr(why), str(why), "a report is shown as it is")
    tap.check(why._repr_html_().startswith('<pre style="font-family: monospace">ranks 3 and 515 are together in 5 groups\n'), "and in a notebook")
    tap.same(mg.Report("<a> & b", 1)._repr_html_(), '<pre style="font-family: monospace">&lt;a&gt; &amp; b</pre>', "with its signs")


def pictures(tap: Tap) -> None:
    plan = mg.plan("picotron", 8, tp=2, pp=2)
    for name, text in [("a plan", plan._repr_svg_()), ("some families", plan.draw("tp", "dp")._repr_svg_()),
                       ("a rank", plan.draw(rank=3).svg)]:
        tap.same(tree.fromstring(text).tag, SVG, f"{name}: an SVG")
    tap.check(plan.draw("tp").svg != plan.draw("dp").svg != plan.draw("dp", rank=1).svg, "pictures differ")
    shown = plan._repr_html_()
    table = tree.fromstring(shown[shown.index("<table>"):shown.index("</table>") + len("</table>")])
    wanted = [[name, str(plan[name].count), str(plan[name].size), str(plan[name]), plan.shares(name)] for name in plan]
    tap.same([[cell.text for cell in row] for row in table][1:], wanted, "the table of a plan")
    tap.check("<svg" in shown and "<svg" not in mg.plan("picotron", 8192)._repr_html_(), "a large world has no picture")
    text = subprocess.run([_command.path(), "draw", "picotron", "--world", "8", "tp=2", "pp=2"], capture_output=True,
                          text=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout
    tap.same(str(plan.draw()), text.rstrip(), "in the terminal it is the command's")
    with tempfile.TemporaryDirectory() as folder:
        for kind, begins in (("svg", "<svg"), ("txt", "  "), ("html", "<!doctype html>")):
            plan.draw().save(f"{folder}/a.{kind}")
            said = Path(folder, f"a.{kind}").read_text(encoding="utf-8")
            tap.check(said.lower().startswith(begins) or "<svg" in said[:200], f"saved as {kind}", said[:100])
        tap.same(refusal(lambda: plan.draw().save(f"{folder}/a.png")),
                 (200, f"a picture is a file that ends with .svg, .html or .txt, not '{folder}/a.png'"), "a file of no known kind")
    tap.same(refusal(lambda: plan.draw("tp").save(f"{folder}/a.html"))[0], 200, "a page of some families")
    tap.same(refusal(lambda: plan.draw(rank=8)), (103, "rank 8 is out of range in a world of 8"), "a picture of no rank")
    given = re.findall('class="note">([^<]*=[^<]*)<', mg.plan("megatron", 64, tp=2, pp=4).draw().svg)
    tap.same(given, ["tensor_model_parallel_size=2  pipeline_model_parallel_size=4"], "only the parameters that were given")
    tap.same(refusal(lambda: plan.draw("tq")), (101, "unknown family 'tq'; nearest is 'tp' (tp, cp, pp, dp, cp_dp, pp_dp, world_group)"),
             "a picture of no family")


def words(tap: Tap) -> None:
    """Everything public is explained under its public name, and the command is python -m moongrid."""
    modules = [mg] + ([importlib.import_module("moongrid.torch")] if importlib.util.find_spec("torch") else [])
    silent, elsewhere = [], []
    for module, name in ((module, name) for module in modules for name in module.__all__):
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            members = [f"{name}.{key}" for key, value in vars(thing).items() if not key.startswith("_")
                       and (inspect.isfunction(value) or isinstance(value, (property, functools.cached_property)))
                       and not inspect.getdoc(value)] if inspect.isclass(thing) else []
            silent += members + ([] if inspect.getdoc(thing) else [name])
            if thing.__module__ not in ("moongrid", "moongrid.torch") or thing.__qualname__ != name:
                elsewhere.append(f"{thing.__module__}.{thing.__qualname__}")
    tap.same((silent, elsewhere), ([], []), "every word has a docstring, and its public name")
    tap.same(mg.__version__, mg.version(), "__version__")
    aliases = set()
    for file in [*ROOT.rglob("*.md"), *(ROOT / "src/python").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        if "build" not in file.relative_to(ROOT).parts:
            aliases |= set(re.findall(r"import (moongrid(?:\.torch)? as \w+)", file.read_text(encoding="utf-8")))
    tap.same(aliases, {"moongrid as mg", "moongrid.torch as mt"}, "one alias in all documents")
    tap.check((Path(mg.__file__).parent / "py.typed").exists(), "py.typed")
    said = subprocess.run([sys.executable, "-m", "moongrid", "--version"], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": ":".join(sys.path)})
    tap.same(said.stdout.strip(), f"moongrid {mg.version()}", "python -m moongrid")


USE = """
import moongrid as mg
import moongrid.torch as mt
import torch
import torch.distributed as dist

plan = mg.plan("megatron", world=1024, tp=8, pp=4)
ranks: list[int] = plan["dp"].of(17).tolist()
after: int = plan.at(17)["dp"].next()
with mg.mpi() as job, job.open("megatron", tp=8) as state:
    state["dp"].comm.Barrier()
groups = mt.groups("megatron", tp=2)
dist.all_reduce(torch.ones(groups["dp"].size()), group=groups["dp"])
mesh = mt.device_mesh(groups, "dense")["tp"]
plan.at(17)["dp"].nxt()  # type: ignore[union-attr]
groups["dp"].sise()  # type: ignore[union-attr]
"""


def types(tap: Tap, use: Path) -> None:
    """mypy --strict and pyright on the package and on a program that uses it, where they are installed."""
    package = str(Path(mg.__file__).parent)
    use.write_text(USE, encoding="utf-8")
    for name, words in {"mypy": ["--strict", "--ignore-missing-imports", "--cache-dir", "/dev/null"],
                        "pyright": ["--pythonpath", sys.executable]}.items():
        if not importlib.util.find_spec(name):
            tap.check(True, f"{name} # SKIP {name} is not installed")
            continue
        said = subprocess.run([sys.executable, "-m", name, *words, package, str(use)], capture_output=True, text=True,
                              check=False, cwd=Path(package).parent)
        tap.check(said.returncode == 0, name, said.stdout)


def main() -> None:
    tap = Tap()
    for part in (prompts, pictures, words):
        part(tap)
    with tempfile.TemporaryDirectory() as folder:
        types(tap, Path(folder, "use.py"))
    tap.end()


if __name__ == "__main__":
    main()
