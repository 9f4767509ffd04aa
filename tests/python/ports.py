# SPDX-License-Identifier: MIT
"""GPAW and Dedalus on groups of recipes (examples/ports), each where it is installed with mpi4py: the numbers of their own
groups, and their own tests, on 4 ranks."""
from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from tap import ROOT, Tap, need

need("mpi4py", "mpi4py")

SKIPPED = [name for name in ("gpaw", "dedalus") if not importlib.util.find_spec(name)]


def run(port: str, *words: str) -> str:
    """What rank 0 prints, or an error that no port prints."""
    beside = Path(sys.prefix) / "bin"
    path = [str(ROOT / "examples/ports" / port)] + ([] if "MOONGRID_INSTALLED" in os.environ else [str(ROOT / "build/python")])
    done = subprocess.run([str(ROOT / "scripts/launch"), "4", sys.executable, *words], capture_output=True, text=True,
                          check=False, env={**os.environ, "PATH": f"{beside}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                                            "LAUNCH_SECONDS": "400", "PYTHONPATH": os.pathsep.join(path), "PYTHONHASHSEED": "0",
                                            "OPENBLAS_NUM_THREADS": "1", "GPAW_MPI_BACKEND": "mpi4py"})
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + ("" if done.returncode == 0 else f"\nexit {done.returncode}\n{done.stderr}"))


def numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text)]


def gpaw(tap: Tap) -> None:
    """Sums of GPAW differ from run to run in the 13th digit, also on its own groups."""
    script = str(ROOT / "examples/ports/gpaw/energies.py")
    own, ours = numbers(run("gpaw", script)), numbers(run("gpaw", script, "moongrid"))
    tap.check(len(own) == len(ours) == 22 and all(abs(a - b) < 1e-9 for a, b in zip(own, ours)),
              "GPAW: energies and forces of four calculations", f"{own}\n{ours}")
    said = run("gpaw", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "moongrid_gpaw", "--pyargs",
               "gpaw.test.parallel.test_kptpar", "gpaw.test.parallel.test_fd_parallel")
    found = set(re.findall(r"\d+ (?:passed|failed)[^\n]*? in", said))  # of rank 0 alone, or of each
    tap.check(found == {"2 passed in"} and "\nexit " not in said, "GPAW: its own tests", said[-2000:])


def dedalus(tap: Tap) -> None:
    script = str(ROOT / "examples/ports/dedalus/heat.py")
    own, ours = run("dedalus", script).splitlines(), run("dedalus", script, "moongrid").splitlines()
    tap.check(len(own) == len(ours) == 5 and own[:4] == ours[:4], "Dedalus: a field on four meshes, to the last bit",
              f"{own}\n{ours}")
    tap.same((own[4:], ours[4:]), (["communicators 49"], ["communicators 4"]), "Dedalus: communicators")
    said = run("dedalus", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "moongrid_dedalus", "--pyargs",
               "dedalus.tests.test_cartesian_operators", "-k", "skew_explicit or trace_explicit")
    found = set(re.findall(r"\d+ (?:passed|failed)[^\n]*? in", said))
    tap.check(found == {"32 passed, 96 deselected in"} and "\nexit " not in said, "Dedalus: its own tests", said[-2000:])


if __name__ == "__main__":
    tap = Tap()
    for port in (gpaw, dedalus):
        if port.__name__ in SKIPPED:
            tap.done += 1
            print(f"ok {tap.done} - {port.__name__} # SKIP it is not installed")
        else:
            port(tap)
    tap.end()
