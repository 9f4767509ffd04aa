# SPDX-License-Identifier: MIT
"""GPAW on the groups of gpaw.lua: in place of Parallelization.build_communicators, which computes lists of ranks.

    GPAW_MPI_BACKEND=mpi4py mpirun -n 4 python -c 'import moongrid_gpaw; ...'
    GPAW_MPI_BACKEND=mpi4py mpirun -n 4 python -m pytest -p moongrid_gpaw --pyargs gpaw.test.parallel.test_kptpar
"""
from pathlib import Path

from gpaw import mpi
from gpaw.mpi4pywrapper import MPI4PYWrapper

import moongrid as mg

RECIPE = Path(__file__).with_name("gpaw.lua")
own = mpi.Parallelization.build_communicators
# begin of the port
jobs: dict[int, mg.Job] = {}
states: dict[tuple, mg.State] = {}  # calculators of one layout share their communicators


def build_communicators(self, kpt=None, domain=None, band=None, order="kbd"):
    """Return communicators by name: k-points, bands, domains, those of one domain (D), those of one k-point (K)."""
    if not isinstance(self.comm, MPI4PYWrapper):  # one process without MPI
        return own(self, kpt, domain, band, order)
    kpt, domain, band = self.get_communicator_sizes(kpt, domain, band)
    comm = self.comm.comm
    if (at := comm.py2f()) not in jobs:
        jobs[at] = mg.mpi(comm)
    layout = (at, kpt, band, domain, order)
    if layout not in states:
        states[layout] = jobs[at].open(RECIPE, kpt=kpt, band=band, domain=domain, order=order)
    return {name: MPI4PYWrapper(states[layout][name].comm, parent=self.comm) for name in "kbdDK"}


mpi.Parallelization.build_communicators = build_communicators
# end of the port
