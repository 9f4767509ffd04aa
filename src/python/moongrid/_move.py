# SPDX-License-Identifier: MIT
"""Moves: what each rank sends and receives so that the tensors of one plan become those of another."""
from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from . import _abi, _command
from ._abi import Status, Way
from ._errors import error
from ._library import Owner, handle_of, library, names_of, numbers_of, record, whole
from ._pictures import Report
from ._plan import Plan


class Peer(NamedTuple):
    """A rank with which this rank exchanges bytes. The round of a message is -1 if there is no such message, or if
    rounds were not asked for."""
    rank: int
    send: int
    receive: int
    send_round: int
    receive_round: int


class Sums(NamedTuple):
    """What a rank has in a move. stay, send, receive: bytes; sends, receives: messages; rounds: of the whole move, 0 if not
    asked for; missing: bytes that the rank needs and that no rank has."""
    stay: int
    send: int
    receive: int
    sends: int
    receives: int
    rounds: int
    missing: int


class Piece(NamedTuple):
    """A box of elements of one tensor that goes from part to part: element i, j, ... is at offset + i * strides[0] +
    j * strides[1] + ... in the part, counted in elements."""
    way: Way
    peer: int
    tensor: str
    bytes: int
    lengths: tuple[int, ...]
    from_offset: int
    from_strides: tuple[int, ...]
    to_offset: int
    to_strides: tuple[int, ...]


class Descriptor(NamedTuple):
    """Contiguous bytes of a tensor that go to or come from a peer: offsets are bytes in the part of the sender and in that
    of the receiver."""
    peer: int
    tensor: str
    from_offset: int
    to_offset: int
    bytes: int


class Move(Owner):
    """What one rank sends and receives. Made by `move` and `Plan.move` with a rank."""

    _free = "mgrid_move_free"
    _by = "a.move(b, rank)"
    _remedy = "pickle the two plans, and plan the move again: a.move(b, rank)"

    def __init__(self, handle: int, rank: int) -> None:
        super().__init__(handle)
        self.rank = rank
        c = library().c
        self.tensors = [c.mgrid_move_tensor(handle, i).decode() for i in range(c.mgrid_move_ntensors(handle))]

    @property
    def sums(self) -> Sums:
        """The bytes and messages of this rank."""
        found = _abi.mgrid_move_sums()
        library().call("mgrid_move_bytes", self._handle, ctypes.byref(found))
        return Sums(**record(found))

    @property
    def peers(self) -> list[Peer]:
        """The ranks to which this rank sends, or from which it receives."""
        found: list[Peer] = []
        for i in range(library().c.mgrid_move_npeers(self._handle)):
            peer = _abi.mgrid_move_peer()
            library().call("mgrid_move_peers", self._handle, i, ctypes.byref(peer))
            found.append(Peer(**record(peer)))
        return found

    def pieces(self, way: Way, peer: int = -1) -> list[Piece]:
        """List the pieces that this rank sends to a peer (Way.SENDS) or receives from a peer (Way.RECEIVES), or that stay
        (Way.STAYS). A message is its pieces, packed one after the other."""
        found: list[Piece] = []

        def take(_ud: object, at: Any) -> int:
            p, n = at.contents, at.contents.naxes
            found.append(Piece(Way(p.way), p.peer, self.tensors[p.tensor], p.bytes, tuple(p.lengths[:n]), p.from_offset,
                               tuple(p.from_strides[:n]), p.to_offset, tuple(p.to_strides[:n])))
            return 0
        library().call("mgrid_move_pieces", self._handle, int(way), peer, _abi.mgrid_piece_fn(take), None)
        return found

    def descriptors(self, way: Way) -> list[Descriptor]:
        """List the bytes that this rank sends (Way.SENDS), receives or keeps, as contiguous runs by peer. They are for
        transports that read and write registered memory: NIXL's descriptors are (base + offset, bytes, device). Sender
        and receiver have the same list, in the same order."""
        n = library().call("mgrid_move_descriptors", self._handle, int(way), 0, None)
        found = (_abi.mgrid_move_descriptor * n)()
        library().call("mgrid_move_descriptors", self._handle, int(way), n, found)
        return [Descriptor(d.peer, self.tensors[d.tensor], d.from_offset, d.to_offset, d.bytes) for d in found]

    def run(self, job: Any, before: Sequence[Any], after: Sequence[Any], *, window: int = 0, timeout: float = 0) -> None:
        """Run the move over a job of `moongrid.mpi`. before[i] is the memory of this rank's part of tensor i in the old
        layout, after[i] in the new one: numpy arrays, or other writable memory; None where the rank has no part.
        Collective over the job."""
        options = _abi.mgrid_move_run_options(timeout=timeout)
        if window:
            options.window = window
        library().call("mgrid_move_run", self._handle, job._open(), self._buffers(before), self._buffers(after),
                       ctypes.byref(options))

    def prove(self, job: Any) -> None:
        """Move numbers that identify each element, and check each number that arrives. Collective over the job."""
        library().call("mgrid_move_prove", self._handle, job._open(), None)

    def _buffers(self, parts: Sequence[Any]) -> Any:
        if len(parts) != len(self.tensors):
            raise error(Status.BAD_VALUE, f"the move has {len(self.tensors)} tensors ({', '.join(self.tensors)}), not "
                                          f"{len(parts)}")
        made = (_abi.mgrid_buffer * len(parts))()
        for i, part in enumerate(parts):
            if part is None:
                continue
            try:
                memory = memoryview(part).cast("B")
            except TypeError as why:
                raise error(Status.BAD_VALUE, f"'{self.tensors[i]}' is not contiguous memory: {why}") from None
            if memory.readonly:
                raise error(Status.BAD_VALUE, f"'{self.tensors[i]}' is memory that may not be written")
            made[i].bytes = memory.nbytes
            if memory.nbytes:
                made[i].data = ctypes.addressof((ctypes.c_char * memory.nbytes).from_buffer(memory))
        return made

    def __repr__(self) -> str:
        s = self.sums
        return (f"Move(rank {self.rank}, {len(self.tensors)} tensors: {s.stay} bytes stay, {s.send} sent in {s.sends} "
                f"messages, {s.receive} received in {s.receives})")


def move(a: Plan, b: Plan, rank: int | None = None, *, tensors: Iterable[str] = (), ranks: Iterable[int] | None = None,
         rounds: bool = False, convert: bool = False, machine: int = 0) -> Move | Report:
    """Plan the move of tensors from plan a to plan b, with the fewest bytes. Return a Move: what the rank sends and
    receives; without a rank, return a Report of the whole job, whose `data` has its values.

    tensors  their names; by default all
    ranks    for each rank of b, its rank in a, or a number from a.world on for a new rank; by default the same numbers
    rounds   put messages into rounds, in each of which a rank sends at most one and receives at most one
    convert  a tensor may be f32 in one plan and bf16 in the other; it is sent as bf16
    machine  the number of consecutive ranks on a machine: the fewest bytes go between machines; 0: all are equally near
    """
    for plan in (a, b):
        handle_of(plan, Plan)
    if rank is None:
        words = [word for name in tensors for word in ("--tensor", name)]
        if ranks is not None:
            words += ["--map", ",".join(map(str, ranks))]
        words += ["--machine", str(machine)] if machine else []
        words += ["--convert"] if convert else []
        with a.saved() as before, b.saved() as after:
            return Report(_command.run("move", before, "vs", after, *words),
                          json.loads(_command.run("move", before, "vs", after, *words, "--json")))
    options = _abi.mgrid_move_options(rounds=rounds, convert=convert, machine=whole(machine, "machine"))
    if ranks is not None:
        options.nranks, options.ranks = numbers_of(ranks)
    handle = library().call("mgrid_move_new", handle_of(a, Plan), handle_of(b, Plan), rank, *names_of(tensors),
                            ctypes.byref(options))
    return Move(handle, rank)
