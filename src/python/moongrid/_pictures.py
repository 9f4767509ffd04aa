# SPDX-License-Identifier: MIT
"""What a notebook shows: texts with their data, and pictures."""
from __future__ import annotations

import functools
import html
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _command

if TYPE_CHECKING:
    from ._plan import Plan


class Report(str):
    """Text that a prompt or notebook shows as it is; `data` has what it says as values."""

    data: Any

    def __new__(cls, text: str, data: Any = None) -> Report:
        made = super().__new__(cls, text.rstrip("\n"))
        made.data = data
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"


class Picture:
    """A drawing of a plan. A notebook shows it; print(picture) draws in the terminal; save("a.svg"), "a.txt", or
    "a.html", a page to click in without network (of a plan that has its recipe)."""

    def __init__(self, plan: Plan, words: list[str]) -> None:
        self._plan, self._words = plan, words

    def _draw(self, *words: str, page: bool = False) -> str:
        line, given = self._plan.as_words() if page else (["-"], self._plan.save())
        return _command.run("draw", *line, *self._words, *words, given=given)

    @functools.cached_property
    def svg(self) -> str:
        """The text of the SVG."""
        with tempfile.TemporaryDirectory() as folder:
            self._draw("-o", f"{folder}/plan.svg")
            return Path(folder, "plan.svg").read_text(encoding="utf-8")

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write a file: .svg, .txt or .html."""
        self._draw("-o", os.fspath(file), page=os.fspath(file).endswith(".html"))

    def __str__(self) -> str:
        return self._draw().rstrip("\n")

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        return self.svg


def rows(table: Iterable[tuple[str, ...]], heads: tuple[str, ...]) -> str:
    """Return a table in HTML."""
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in table)
    return f"<table><tr>{''.join(f'<th>{html.escape(head)}</th>' for head in heads)}</tr>{cells}</table>"
