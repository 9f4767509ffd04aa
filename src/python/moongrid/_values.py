# SPDX-License-Identifier: MIT
"""Conversion between values of Python and of the library."""
from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from ctypes import POINTER, c_double, c_int64, cast
from typing import Any

from . import _abi
from ._abi import Kind, Status
from ._errors import error
from ._library import encoded, whole


def words_of(params: Mapping[str, Any]) -> list[str]:
    """Return parameters as the words of a command line: tp=2, hcp=[2,1]."""
    return [f"{name}={value if isinstance(value, str) else _json(name, plain(value))}" for name, value in params.items()]


def _json(name: str, value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        raise error(Status.BAD_VALUE, f"parameter {name!r} is {value!r}, not None, a truth value, a number, text, or a list or "
                                      "dict of these") from None


def plain(value: Any) -> Any:
    """Return numbers and arrays of numpy as numbers and lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def arg_of(name: str, value: Any) -> _abi.mgrid_arg:
    """Return a value as an mgrid_arg, which keeps alive the memory that it points to."""
    arg = _abi.mgrid_arg(size=ctypes.sizeof(_abi.mgrid_arg), name=encoded(name))
    into = getattr(arg, "as")
    value = plain(value)
    if value is None:
        arg.kind = Kind.IS_NONE
    elif isinstance(value, bool):
        arg.kind, into.boolean = Kind.IS_BOOLEAN, value
    elif isinstance(value, int):
        arg.kind, into.integer = Kind.IS_INTEGER, whole(value, f"'{name}'")
    elif isinstance(value, float):
        arg.kind, into.number = Kind.IS_NUMBER, value
    elif isinstance(value, str):
        arg.kind, into.text = Kind.IS_TEXT, encoded(value)
    elif isinstance(value, Mapping):
        inner = [arg_of(str(key), one) for key, one in value.items()]
        arg.kind = Kind.IS_TABLE
        into.table.n, into.table.at = len(inner), cast((_abi.mgrid_arg * len(inner))(*inner), POINTER(_abi.mgrid_arg))
    elif isinstance(value, (list, tuple, range)) and all(type(one) in (int, float) for one in value):
        listed = list(value)
        if all(type(one) is int for one in listed):
            for one in listed:
                whole(one, f"'{name}'")
            arg.kind, into.integers.n = Kind.IS_INTEGERS, len(listed)
            into.integers.at = cast((c_int64 * len(listed))(*listed), POINTER(c_int64))
        else:
            arg.kind, into.numbers.n = Kind.IS_NUMBERS, len(listed)
            into.numbers.at = cast((c_double * len(listed))(*listed), POINTER(c_double))
    else:
        raise error(Status.BAD_VALUE, f"'{name}' is none of None, a truth value, a number, text, a list of numbers or a dict "
                                      f"of these, but {type(value).__name__}")
    return arg


def value_of(arg: _abi.mgrid_arg) -> Any:
    """Return the value of an mgrid_arg that the library made."""
    of, kind = getattr(arg, "as"), Kind(arg.kind)
    if kind == Kind.IS_TEXT:
        return of.text.decode()
    if kind == Kind.IS_TABLE:
        return {of.table.at[i].name.decode(): value_of(of.table.at[i]) for i in range(of.table.n)}
    if kind == Kind.IS_LIST:
        return [value_of(of.table.at[i]) for i in range(of.table.n)]
    if kind in (Kind.IS_INTEGERS, Kind.IS_NUMBERS):
        listed = of.integers if kind == Kind.IS_INTEGERS else of.numbers
        return listed.at[:listed.n]
    return {Kind.IS_BOOLEAN: of.boolean, Kind.IS_INTEGER: of.integer, Kind.IS_NUMBER: of.number}.get(kind)


def args_of(values: Mapping[str, Any]) -> tuple[int, Any]:
    """Return the number of values by name, and the values as an array for C."""
    made = [arg_of(name, value) for name, value in values.items()]
    return len(made), (_abi.mgrid_arg * len(made))(*made)
