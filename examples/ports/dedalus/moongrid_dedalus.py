# SPDX-License-Identifier: MIT
"""Dedalus on the groups of dedalus.lua. A script imports this module before it makes a Distributor, and stays the same.

    mpirun -n 4 python -c 'import moongrid_dedalus; ...'
    mpirun -n 4 python -m pytest -p moongrid_dedalus --pyargs dedalus.tests.test_cartesian_operators
"""
from pathlib import Path

from dedalus.core import distributor
from mpi4py import MPI

import moongrid as mg

RECIPE = Path(__file__).with_name("dedalus.lua")
own = distributor.Distributor.__init__
# begin of the port
jobs, states = {}, {}  # a communicator has one job; distributors of one mesh share their groups


class Mesh(MPI.Cartcomm):
    """comm_cart, whose parts are families of the recipe."""

    def Sub(self, remain_dims):
        return self.state["along_" + "".join(str(i) for i, keep in enumerate(remain_dims) if keep)].comm


class World(MPI.Intracomm):
    """The communicator of a Distributor."""

    def Create_cart(self, dims, *_):
        if not dims:  # one process
            return super().Create_cart(dims)
        at, mesh = self.py2f(), tuple(int(size) for size in dims)
        if at not in jobs:
            jobs[at] = mg.mpi(MPI.Intracomm(self))
        if (at, mesh) not in states:
            states[at, mesh] = jobs[at].open(RECIPE, mesh=list(mesh))
        made = Mesh(states[at, mesh]["along_" + "".join(map(str, range(len(mesh))))].comm)
        made.state = states[at, mesh]
        return made


def init(self, coordsystems, comm=None, **options):
    own(self, coordsystems, comm=World(comm or MPI.COMM_WORLD), **options)


distributor.Distributor.__init__ = init
# end of the port
