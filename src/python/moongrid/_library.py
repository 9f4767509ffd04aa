# SPDX-License-Identifier: MIT
"""libmoongrid by ctypes: find and open it, call its functions and raise their errors, own its objects."""
from __future__ import annotations

import array
import ctypes
import functools
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from ctypes import POINTER, c_char_p, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union

from . import _abi
from ._errors import error

if TYPE_CHECKING:
    import numpy as numpy
    import numpy.typing
else:
    try:
        import numpy as numpy
    except ModuleNotFoundError:
        numpy = None

# A list of ranks: a numpy array of int64 where numpy is installed, else an array.array of them; both have tolist().
Ranks = Union["numpy.typing.NDArray[numpy.int64]", "array.array[int]"]

_Owner = TypeVar("_Owner", bound="Owner")

PACKAGE = Path(__file__).resolve().parent
NAME = f"libmoongrid.so.{_abi.VERSION.partition('.')[0]}"


def _where() -> str:
    """Return $MOONGRID_LIBRARY, else the library in the wheel, else the library in the clone (this file lies in
    build/python/moongrid), else the library's name, for the loader to find."""
    if wanted := os.environ.get("MOONGRID_LIBRARY"):
        return wanted
    for folder in (PACKAGE / "lib", PACKAGE.parents[1]):
        if (folder / NAME).exists():
            return str(folder / NAME)
    return NAME


class Library:
    """A libmoongrid with the functions of _abi."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path or _where()
        try:
            self.c = ctypes.CDLL(self.path)
            self.c.mgrid_version.restype = c_char_p
            version = self.c.mgrid_version().decode()
            if version != _abi.VERSION:  # the package calls functions that only one release has
                raise OSError(f"{self.path} is of moongrid {version}, this package is of {_abi.VERSION}")
            for name, (result, arguments, _) in _abi.FUNCTIONS.items():
                function = getattr(self.c, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as why:
            raise error(_abi.Status.MISSING, f"no moongrid library: {why}; name it by MOONGRID_LIBRARY=PATH, or build "
                                             "the clone (make)") from None
        self.version = version

    def __repr__(self) -> str:
        return f"Library({self.path!r}, {self.version})"

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function whose last argument is an mgrid_error, and raise the error that it reports."""
        _, types, names = _abi.FUNCTIONS[name]
        for type_, argument, of in zip(types, arguments, names.split()):
            if type_ is c_int64 or type_ is c_size_t:
                whole(argument, of)
        failed = _abi.mgrid_error()
        result = getattr(self.c, name)(*arguments, ctypes.byref(failed))
        if failed.status:
            why = error(failed.status, failed.message.decode(errors="replace"), failed.file.decode(errors="replace"),
                        failed.line)
            why.missing = tuple(failed.missing[:failed.nmissing])
            raise why
        return result

    def text(self, name: str, *arguments: Any) -> str:
        """Return the text that a function prints into a sink."""
        pieces: list[bytes] = []

        def take(_ud: object, text: int, length: int) -> int:
            pieces.append(ctypes.string_at(text, length))
            return 0
        self.call(name, *arguments, _abi.mgrid_sink(take), None)
        return b"".join(pieces).decode()

    def write(self, file: str | os.PathLike[str], text: str) -> None:
        """Write a file as the library and the command do: the old file stays until the new one is complete."""
        data, failed = text.encode(), _abi.mgrid_error()
        if self.c.mgrid_write_file(os.fsencode(file), 0, data, c_size_t(len(data)), ctypes.byref(failed)):
            raise error(failed.status, failed.message.decode(errors="replace"))

    def law(self, plan: int | None, law: bytes) -> None:
        """Raise unless a law of the families of a plan holds."""
        failed = _abi.mgrid_error()
        if self.c.mgrid_plan_law(c_void_p(plan), law, ctypes.byref(failed)):
            raise error(failed.status, failed.message.decode(errors="replace"))

    def nearest(self, name: str, names: Iterable[str]) -> str | None:
        """Return the name that is nearest to an unknown one, or None."""
        n, candidates = names_of(names)
        self.c.mgrid_nearest.restype = c_char_p
        found = self.c.mgrid_nearest(name.encode(errors="replace"), candidates, c_size_t(n))
        return found.decode() if found else None

    def described(self, name: str, *arguments: Any) -> str:
        """Return the text of a function that writes as snprintf does, and cannot fail."""
        function = getattr(self.c, name)
        buffer = ctypes.create_string_buffer(function(*arguments, None, 0) + 1)
        function(*arguments, buffer, len(buffer))
        return buffer.value.decode()


@functools.cache
def library() -> Library:
    """Return the library of this process, opened when it is first needed."""
    return Library()


def version() -> str:
    """Return the version of the library."""
    return str(library().version)


def include() -> str:
    """Return the folder of the C headers: cc -I."""
    return str(PACKAGE / "include" if (PACKAGE / "include").is_dir() else PACKAGE.parents[2] / "src")


def libraries() -> str:
    """Return the folder of the library: cc -L."""
    return str(Path(library().path).resolve().parent)


class Bound:
    """An object that belongs to its process: copying or pickling it raises a TypeError, with `_remedy`."""

    _remedy = ""
    _by = ""  # how a program makes the object; "": by calling the class

    def __new__(cls, *arguments: Any, **_named: Any) -> Any:
        """Refuse a call by a program. The package itself gives a handle as the first argument: an address above
        2^16."""
        if cls._by and not (arguments and type(arguments[0]) is int and arguments[0] >= 1 << 16):
            raise TypeError(f"a {cls.__name__} is made by {cls._by}")
        return super().__new__(cls)

    def _ipython_key_completions_(self) -> list[Any]:
        """Return the families, which complete plan["<TAB>."""
        return [*self] if isinstance(self, Mapping) else []

    def __reduce__(self) -> Any:  # copy.copy and copy.deepcopy ask for it, too
        name = type(self).__name__
        raise TypeError(f"{'an' if name[0] in 'AEIO' else 'a'} {name} cannot be pickled: {self._remedy}")


class Owner(Bound):
    """The owner of an object of the library: when the owner ends, the function `_free` frees the object. A copy is the
    owner itself, because the object never changes and a second owner would free it twice."""

    _free = ""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    def __copy__(self: _Owner) -> _Owner:
        return self

    def __deepcopy__(self: _Owner, memo: dict[int, Any]) -> _Owner:
        return self

    def __del__(self) -> None:
        handle = self.__dict__.pop("_handle", None)
        if handle and self._free:
            getattr(library().c, self._free)(handle)


# ------------------------------------------------------------------------- arguments and results


def whole(value: Any, what: str) -> int:
    """Return an integer of Python or numpy as an int. Raise if it needs more than 64 bits: ctypes would drop the others."""
    try:
        number = operator.index(value)
    except TypeError:
        raise error(_abi.Status.BAD_VALUE, f"{what} is {value!r}, not an integer") from None
    if not -2**63 <= number < 2**63:
        raise error(_abi.Status.OUT_OF_RANGE, f"{what} is {number}, which 64 bits do not hold")
    return number


def brackets(value: Any) -> str:
    """Return the end of a message about a list that was given as one argument instead of several."""
    return "; leave out the brackets" if isinstance(value, list) else ""


def is_rank(value: Any, world: int) -> bool:
    """Return whether a value is an integer of Python or numpy, and a rank of the world."""
    return hasattr(value, "__index__") and 0 <= operator.index(value) < world


def rank_of(rank: Any, world: int) -> int:
    """Return a rank of a world as an integer, or raise."""
    if not 0 <= whole(rank, "rank") < world:
        raise error(_abi.Status.OUT_OF_RANGE, f"rank {rank} is out of range in a world of {world}")
    return operator.index(rank)


def index_of(index: Any, count: int, what: str) -> int:
    """Return an index of a sequence, negative ones from the end, or raise IndexError."""
    if not -count <= whole(index, what) < count:
        raise IndexError(f"{what} {index} of {count}")
    return operator.index(index) % count


def known(name: str, names: Sequence[str], kind: str) -> str:
    """Return the name, or raise if it is not one of `names`."""
    if name in names:
        return name
    near, listed = library().nearest(str(name), names), ", ".join(names) or "none"
    raise error(_abi.Status.UNKNOWN_NAME, f"unknown {kind} {name!r}; " + (f"nearest is '{near}' ({listed})" if near
                                                                            else f"known: {listed}") + brackets(name))


def no_attribute(owner: object, name: str, items: Iterable[str], item: str) -> AttributeError:
    """Return the error for a missing attribute. It names the item of this name and how to write it (`item`), or the
    nearest name, or all names."""
    said = f"'{type(owner).__name__}' object has no attribute '{name}'"
    if not name.startswith("_"):
        items, words = list(items), [word for word in dir(type(owner)) if word[0] != "_"]
        near = name if name in items else library().nearest(name, [*items, *(w for w in words if 2 * len(w) >= len(name))])
        if near:
            said += f"; {item.format(near)}" if near in items else f"; nearest is '{near}'"
        elif words:
            said += f"; known: {', '.join(words)}"
    return AttributeError(said)


def handle_of(value: Any, kind: type[Owner]) -> int | None:
    """Return the handle of an object of this kind, or raise."""
    if not isinstance(value, kind):
        raise error(_abi.Status.BAD_VALUE, f"{value!r} is not a {kind.__name__}{brackets(value)}")
    return value._handle


def encoded(name: Any) -> bytes:
    """Return a name as bytes for C."""
    if not isinstance(name, str):
        raise error(_abi.Status.BAD_VALUE, f"{name!r} is not a name{brackets(name)}")
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise error(_abi.Status.BAD_VALUE, f"{name!r} is not a text that UTF-8 can write") from None


def names_of(names: Iterable[str]) -> tuple[int, Any]:
    """Return the number of names, and the names as an array for C."""
    listed = [encoded(name) for name in names]
    return len(listed), (c_char_p * len(listed))(*listed)


def numbers_of(numbers: Iterable[int]) -> tuple[int, Any]:
    """Return the number of integers, and the integers as an array for C."""
    if numpy is not None and isinstance(numbers, numpy.ndarray) and numbers.dtype.kind == "i":
        numbers = numpy.ascontiguousarray(numbers, dtype=numpy.int64)
        return numbers.size, numbers.ctypes.data_as(POINTER(c_int64))
    if not hasattr(numbers, "__iter__"):
        raise error(_abi.Status.BAD_VALUE, f"{numbers!r} is not a list; [{numbers!r}] is one")
    listed = list(numbers)
    if len(listed) == 1 and isinstance(listed[0], list):
        raise error(_abi.Status.BAD_VALUE, f"{listed[0]!r} is not an integer{brackets(listed[0])}")
    try:
        plain = array.array("q", listed)
    except (TypeError, OverflowError):
        plain = array.array("q", [whole(one, "an element of the list") for one in listed])
    return len(plain), (c_int64 * len(plain)).from_buffer(plain) if plain else (c_int64 * 0)()


def handles_of(owners: Iterable[Owner], kind: type[Owner]) -> tuple[int, Any]:
    """Return the number of objects, and their handles as an array for C."""
    handles = [handle_of(owner, kind) for owner in owners]
    return len(handles), (c_void_p * len(handles))(*handles)


def new_ranks(length: int) -> tuple[Ranks, Any]:
    """Return an array of `length` ranks, and its address for C."""
    if numpy is not None:
        made = numpy.empty(length, dtype=numpy.int64)
        return made, made.ctypes.data_as(POINTER(c_int64))
    plain = array.array("q", bytes(8 * length))
    return plain, (c_int64 * length).from_buffer(plain)


def record(struct: Any) -> dict[str, Any]:
    """Return a struct of results as a dict, without its size."""
    return {name: getattr(struct, name) for name, *_ in struct._fields_ if name != "size"}
