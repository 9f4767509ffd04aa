# SPDX-License-Identifier: MIT
"""mpi4py-fft on groups of moongrid. A script imports this module before it makes a Subcomm, and stays the same.

    mpirun -n 4 python -c 'import moongrid_mpi4py_fft; ...'
"""
from mpi4py import MPI
from mpi4py_fft.pencil import Subcomm

import moongrid as mg

own, own_destroy = Subcomm.__new__, Subcomm.destroy
# begin of the port
jobs = {}  # a communicator has one job, which keeps its duplicate


class Mesh:
    """The mesh of a Subcomm: a grid whose last axis varies fastest, as in MPI, and a family along each axis."""

    def __init__(self, comm, dims):
        self.names = [f"axis{i}" for i in range(len(dims))]
        g, layout = mg.grid(comm.size, **dict(reversed([*zip(self.names, dims)]))), mg.topology(comm.size)
        for name in self.names:
            layout[name] = g(name)
        at = comm.py2f()
        if at not in jobs:
            jobs[at] = mg.mpi(MPI.Intracomm(comm))
        self.state = jobs[at].materialize(layout.plan())

    def Get_dim(self):
        return len(self.names)

    def Sub(self, remain_dims):
        return self.state[self.names[remain_dims.index(True)]].comm

    def Free(self):
        pass


class World(MPI.Intracomm):
    """The communicator of a Subcomm."""

    def Create_cart(self, dims, **_):
        self.mesh = Mesh(self, dims)
        return self.mesh


def new(cls, comm, dims=None, reorder=True):
    world = comm if comm.Get_topology() == MPI.CART else World(comm)
    made = own(cls, world, dims, reorder)
    made.state = world.mesh.state if isinstance(world, World) else None
    return made


def destroy(self):
    if self.state:
        self.state.close()
    else:
        own_destroy(self)


Subcomm.__new__, Subcomm.destroy = new, destroy
# end of the port
