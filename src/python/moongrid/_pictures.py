# SPDX-License-Identifier: MIT
"""Texts with their data, and pictures, which a notebook can show."""
from __future__ import annotations

import functools
import html
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._abi import Status
from ._errors import error
from ._library import library

if TYPE_CHECKING:
    from ._plan import Plan


class Report(str):
    """Text that a prompt or notebook shows; `data` has its values."""

    data: Any

    def __new__(cls, text: str, data: Any = None) -> Report:
        made = super().__new__(cls, text.rstrip("\n"))
        made.data = data
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="font-family: monospace">{html.escape(self)}</pre>'


class Picture:
    """A drawing of a plan. A notebook shows it; print(picture) draws in the terminal; save("a.svg"), "a.txt", or
    "a.html", an interactive page without network."""

    def __init__(self, plan: Plan, families: tuple[str, ...] = (), rank: int | None = None) -> None:
        self._plan, self._families, self._rank = plan, families, rank

    def _draw(self, how: str, **options: Any) -> str:
        if self._families:
            options["families"] = self._families
        if self._rank is not None:
            options["rank"] = self._rank
        return library().text("mgrid_plan_draw", self._plan._handle, how.encode(), json.dumps(options).encode())

    @functools.cached_property
    def svg(self) -> str:
        """The text of the SVG."""
        return self._draw("svg", all=True)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write a file: .svg, .txt or .html."""
        name = os.fspath(file)
        if name.endswith(".html"):
            if self._families or self._rank is not None:
                raise error(Status.USAGE, "a page takes no families and no rank: it shows all")
            library().write(file, self._draw("page", recipe=self._plan.name or "a topology"))
        elif name.endswith(".svg"):
            library().write(file, self.svg)
        elif name.endswith(".txt"):
            library().write(file, f"{self}\n")
        else:
            raise error(Status.USAGE, f"a picture is a file that ends with .svg, .html or .txt, not '{name}'")

    def __str__(self) -> str:
        return self._draw("text", all=self._rank is not None, unicode=True).rstrip("\n")

    __repr__ = __str__

    def _repr_svg_(self) -> str:
        return self.svg


def rows(table: Iterable[tuple[str, ...]], heads: tuple[str, ...]) -> str:
    """Return a table in HTML."""
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in table)
    return f"<table><tr>{''.join(f'<th>{html.escape(head)}</th>' for head in heads)}</tr>{cells}</table>"
