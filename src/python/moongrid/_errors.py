# SPDX-License-Identifier: MIT
"""Errors of the library as exceptions."""
from __future__ import annotations

from ._abi import Status


class MoongridError(RuntimeError):
    """An error of the library, MPI, torch or another rank, in one line; two more lines show a recipe that Lua cannot parse.
    A refused value is named with the nearest value that fits.

    status  the Status (moongrid.h has each); its hundreds are the exit codes of the command
    file, line  of the recipe, or "" and 0
    missing     at most 8 of the ranks that did not come to a call, or are lost; () if the library does not know them
    """

    status: Status
    file: str
    line: int
    missing: tuple[int, ...] = ()

    def __init__(self, status: int, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        try:
            self.status = Status(status)
        except ValueError:  # a status of a later library; its hundreds are known
            self.status = Status(status // 100 * 100)
        self.file, self.line = file, line

    def __reduce__(self) -> tuple[object, ...]:  # the default keeps only the message
        return type(self), (int(self.status), str(self), self.file, self.line), {"missing": self.missing}

    def __str__(self) -> str:  # KeyError would put it in quotes
        return str(self.args[0])


class RefusedError(MoongridError, ValueError):
    """Status 100 to 199: sizes, names or options do not fit."""


class UnknownNameError(RefusedError, KeyError):
    """Status 101: no dim, family, parameter, query ... has this name."""


class UsageError(MoongridError, TypeError):
    """Status 200 to 299: a call that no program should make, or that is too early or too late."""


class LimitError(MoongridError):
    """Status 300 to 399: a budget or memory is spent."""


class BackendError(MoongridError):
    """Status 400 to 499: MPI, NCCL or torch failed, or a library or rank is missing."""


class DisagreeError(MoongridError):
    """Status 500: ranks do not have the same plan, recipe or result."""


_KINDS: dict[int, type[MoongridError]] = {1: RefusedError, 2: UsageError, 3: LimitError, 4: BackendError,
                                          5: DisagreeError}


def error(status: int, message: str, file: str = "", line: int = 0) -> MoongridError:
    """Return the exception for a status."""
    kind = UnknownNameError if status == Status.UNKNOWN_NAME else _KINDS.get(status // 100, MoongridError)
    return kind(status, message, file, line)
