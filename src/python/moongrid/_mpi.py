# SPDX-License-Identifier: MIT
"""Jobs over MPI, with communicators of mpi4py."""
from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any

from . import _abi
from ._abi import OnDeadline, Status, Threads
from ._errors import error
from ._library import NAME, Bound, PACKAGE, encoded, handle_of, library, names_of
from ._plan import Params, Plan, Recipe, params_of
from ._state import State, new_state
from ._values import words_of

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


def _module() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as why:
        raise error(Status.MISSING, f"mpi() needs mpi4py and an MPI library: {why}") from None
    return MPI


def _folder(MPI: Any) -> str:
    """Return the folder of the backend for the MPI of mpi4py: openmpi or mpich."""
    said = MPI.Get_library_version()
    if hasattr(MPI, "_handleof") and MPI._handleof(MPI.COMM_WORLD) == 0x101:  # MPI 5.0, section 20
        raise error(Status.MISSING, "mpi: this mpi4py uses the standard ABI of MPI 5, for which the package has no library; "
                                    "choose that of the MPI itself by MPI4PY_MPIABI=mpich or MPI4PY_MPIABI=openmpi")
    if "Open MPI" in said:
        return "openmpi"
    if any(name in said for name in ("MPICH", "Intel", "MVAPICH")):  # which have MPICH's ABI
        return "mpich"
    raise error(Status.MISSING, f"mpi: this mpi4py uses {said.splitlines()[0]}; the package has libraries for Open MPI and "
                                "for MPICH and its relatives")


def _load(MPI: Any) -> None:
    """Load the wheel's backend for this MPI, so that the library finds the backend by its name. A clone has one backend,
    which itself checks whether it is for this MPI."""
    file = PACKAGE / "lib" / _folder(MPI) / NAME.replace("libmoongrid", "libmoongrid_mpi")
    if not file.exists():
        return
    try:
        ctypes.CDLL(str(file))
    except OSError as why:
        raise error(Status.MISSING, f"mpi: {why}") from None


def comm_of(native: int | None) -> Intracomm:
    """Return the communicator of mpi4py for the MPI_Comm at an address; COMM_SELF for None."""
    MPI = _module()
    if native is None:
        made: Intracomm = MPI.COMM_SELF
        return made
    made = MPI.Intracomm()
    ctypes.memmove(MPI._addressof(made), native, MPI._sizeof(MPI.Comm))
    return MPI.Cartcomm(made) if made.Get_topology() == MPI.CART else made


def forget(given: dict[int, Intracomm]) -> None:
    """Set communicators of mpi4py that are about to end to COMM_NULL, so that their use is an error of MPI."""
    MPI = _module()
    while given:
        _, comm = given.popitem()
        ctypes.memmove(MPI._addressof(comm), MPI._addressof(MPI.COMM_NULL), MPI._sizeof(MPI.Comm))


class Job(Bound):
    """A running job over a communicator, whose ranks are the world. Made by `mpi`. Close the job on all ranks, after its
    states and before MPI is finalized (it is a context manager)."""

    _remedy = "it belongs to its process; open it there, by mpi(comm)"
    _by = "moongrid.mpi()"

    def __init__(self, handle: int, MPI: Any) -> None:
        self._handle: int | None = handle
        self._MPI = MPI
        self.given: list[dict[int, Intracomm]] = []  # for each open state, the communicators that it gave out

    @property
    def alive(self) -> bool:
        """Whether the job is open, and MPI is not finalized."""
        return bool(self._handle) and not self._MPI.Is_finalized()

    def _open(self) -> int:
        if not self._handle:
            raise error(Status.NOT_NOW, "the job is closed")
        return self._handle

    @property
    def rank(self) -> int:
        """This rank."""
        return int(library().c.mgrid_backend_rank(self._open()))

    @property
    def world(self) -> int:
        """Ranks of the job."""
        return int(library().c.mgrid_backend_world(self._open()))

    @property
    def ncomms(self) -> int:
        """Communicators of all states on this rank; shared ones count once."""
        return int(library().c.mgrid_backend_ncomms(self._open()))

    def materialize(self, plan: Plan, name: str = "") -> State:
        """Agree on a plan, then make this rank's communicators: all or nothing. Collective. If planning can fail on
        some ranks, use `open`, which tells the other ranks."""
        return State(library().call("mgrid_materialize", handle_of(plan, Plan), self._open(), encoded(name)), plan,
                     plan.recipe, self)

    def open(self, recipe: str | os.PathLike[str], params: Params = None, *, name: str = "", **more: Any) -> State:
        """Load a recipe, plan it for this job, agree on the plan, and make the communicators. Collective, all or
        nothing: if one rank cannot load or plan, every rank gets an error."""
        options = _abi.mgrid_open_options(name=encoded(name))
        options.params, given = params_of(params)
        words = words_of({**given, **more})
        handle = library().call("mgrid_open", self._open(), os.fsencode(recipe), *names_of(words), ctypes.byref(options))
        c = library().c
        runtime = c.mgrid_runtime_ref(c.mgrid_state_runtime(handle))
        return new_state(handle, Recipe(runtime, os.fspath(recipe)), self, words, options.params)

    def close(self) -> None:
        """Close the job. Collective; a second call is harmless."""
        handle, self._handle = self._handle, None
        if handle and not self._MPI.Is_finalized():
            for given in self.given:
                forget(given)
            library().c.mgrid_backend_free(handle)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Job(rank {self.rank} of {self.world})" if self._handle else "Job(closed)"


def mpi(comm: Intracomm | None = None, *, timeout: float = 0, threads: Threads = Threads.THREADS_ANY,
        on_deadline: OnDeadline = OnDeadline.DEADLINE_ERROR, communicators: int = 0) -> Job:
    """Open a job over a duplicate of a communicator of mpi4py (None: MPI.COMM_WORLD). Collective over it.

        job = mg.mpi(MPI.COMM_WORLD)
        with job.open("layout.lua", tp=2) as state:
            state["dp"].comm.Allreduce(MPI.IN_PLACE, gradients)   # comm is a communicator of mpi4py
        job.close()

    The options are those of mgrid_mpi_options (moongrid_backend.h). It works with Open MPI and with MPICH and its relatives;
    an mpi4py of another MPI is refused."""
    MPI = _module()
    over: Any = MPI.COMM_WORLD if comm is None else comm
    if not isinstance(over, MPI.Intracomm) or over == MPI.COMM_NULL:
        raise error(Status.USAGE, f"mpi() takes an intracommunicator of mpi4py, not {over!r}")
    _load(MPI)
    handle = ctypes.c_int(over.py2f())
    options = _abi.mgrid_mpi_options(timeout=timeout, threads=int(threads), on_deadline=int(on_deadline),
                                     comm=ctypes.pointer(handle), communicators=communicators)
    opening = _abi.mgrid_backend_options(mpi=ctypes.pointer(options))
    return Job(library().call("mgrid_backend_open", b"mpi", ctypes.byref(opening)), MPI)
