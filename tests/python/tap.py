# SPDX-License-Identifier: MIT
"""What the tests of the Python package share: TAP lines, refusals. $MOONGRID_INSTALLED: of the package that is installed,
not of the clone."""
from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if "MOONGRID_INSTALLED" not in os.environ:
    sys.path.insert(0, str(ROOT / "build" / "python"))


def need(module: str, name: str) -> None:
    """End, and say that these tests are skipped, where a package is not installed; one that is there and
    fails to import fails the tests."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if not found:
        print(f"1..0 # SKIP {name} is not installed")
        sys.exit(0)


def refusal(call: Callable[[], Any]) -> tuple[int, str]:
    """Status and message of the error, or (0, "") where the call went through."""
    import moongrid as mg
    try:
        call()
    except mg.MoongridError as why:
        return int(why.status), str(why)
    return 0, ""


class Tap:
    """Numbered lines, "ok 1 - what" and "not ok 2 - what"."""

    def __init__(self) -> None:
        self.done = self.failed = 0

    def check(self, good: bool, what: str, why: object = "") -> None:
        self.done += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.done} - {what}", flush=True)
        if not good and why != "":
            print("\n".join(f"# {line}" for line in str(why).splitlines()), flush=True)

    def same(self, got: object, wanted: object, what: str) -> None:
        self.check(got == wanted, what, f"got    {got!r}\nwanted {wanted!r}")

    def end(self) -> None:
        print(f"1..{self.done}")
        sys.exit(self.failed > 0)
