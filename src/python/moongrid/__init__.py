# SPDX-License-Identifier: MIT
"""moongrid: the process groups of parallel training, from a recipe to communicators.

    import moongrid as mg

    plan = mg.plan("megatron", world=1024, tp=8, pp=4)   # local: no MPI, no GPU, no compiler
    plan["dp"].of(17)                                    # ranks of the group of rank 17: a numpy array
    plan.at(17).ask("data_parallel_rank")                # the modelled system's own questions
    plan.why(3, 515)
    plan.draw("tp", "pp")                                # a picture in a notebook

    job = mg.mpi(comm)                                   # of mpi4py; moongrid.torch is the bridge to torch
    with job.open("megatron", tp=8) as state:
        state["dp"].comm.Allreduce(MPI.IN_PLACE, gradients)

Refusals are exceptions: MoongridError, with the library's `status` and one line that names the nearest value that fits.
"""
from typing import TYPE_CHECKING

from ._abi import VERSION as __version__
from ._abi import Coverage, Kind, OnDeadline, Status, Threads, Way
from ._errors import (BackendError, DisagreeError, LimitError, MoongridError, RefusedError, UnknownNameError, UsageError)
from ._families import Family, Grid, Place, Window, fill, grid, rule, table, union, zip
from ._library import include, libraries, version
from ._loss import Communicators, Loss, MissingPart
from ._move import Descriptor, Move, Peer, Piece, Sums, move
from ._mpi import Job, mpi
from ._pictures import Picture, Report
from ._plan import Change, Checked, Plan, Recipe, load, load_text, plan, read, recipes
from ._state import Group, Policy, Segment, Shift, State
from ._step import Step, StepCall
from ._topology import Topology, topology

if not TYPE_CHECKING:
    def __getattr__(name):
        hint = "; write import moongrid.torch" if name == "torch" else ""
        if name[:1] != "_" and hasattr(Plan, name):
            hint = f"; a plan has it: moongrid.plan(...).{name}"
        raise AttributeError(f"module 'moongrid' has no attribute '{name}'{hint}")

__all__ = ["BackendError", "Change", "Checked", "Communicators", "Coverage", "Descriptor", "DisagreeError", "Family",
           "Grid", "Group", "Job", "Kind", "LimitError", "Loss", "MissingPart", "MoongridError", "Move",
           "OnDeadline", "Peer", "Picture", "Piece", "Place", "Plan", "Policy", "Recipe", "RefusedError", "Report",
           "Segment", "Shift", "State", "Status", "Step", "StepCall", "Sums", "Threads", "Topology", "UnknownNameError",
           "UsageError", "Way", "Window", "fill", "grid", "include", "libraries", "load", "load_text", "move", "mpi", "plan", "read",
           "recipes", "rule", "table", "topology", "union", "version", "zip"]

for _name in __all__:
    if hasattr(globals()[_name], "__qualname__"):
        globals()[_name].__module__ = __name__  # as messages and help write it: moongrid.RefusedError
