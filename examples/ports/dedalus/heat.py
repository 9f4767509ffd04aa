# SPDX-License-Identifier: MIT
"""Solve a nonlinear heat equation on several meshes of 4 processes. Print a digest of each field, and the number of
communicators that MPI has made: heat.py [moongrid]"""
import hashlib
import logging
import sys

from dedalus.tools.config import config

config["transforms-fftw"]["PLANNING_RIGOR"] = "estimate"  # measured plans differ between runs, in the last bits
config["parallelism-fftw"]["PLANNING_RIGOR"] = "estimate"
import dedalus.public as d3  # noqa: E402
import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

logging.disable(logging.CRITICAL)
if sys.argv[1:] == ["moongrid"]:
    import moongrid_dedalus


def heat(mesh: list[int]) -> np.ndarray:
    """Return the field after ten steps."""
    coords = d3.CartesianCoordinates("x", "y", "z")
    dist = d3.Distributor(coords, dtype=np.float64, mesh=mesh)
    xb = d3.RealFourier(coords["x"], size=16, bounds=(0, 2 * np.pi), dealias=3 / 2)
    yb = d3.RealFourier(coords["y"], size=16, bounds=(0, 2 * np.pi), dealias=3 / 2)
    zb = d3.ChebyshevT(coords["z"], size=16, bounds=(0, 1), dealias=3 / 2)
    u, shear = dist.Field(name="u", bases=(xb, yb, zb)), dist.Field(name="shear", bases=zb)
    tau1, tau2 = dist.Field(name="tau1", bases=(xb, yb)), dist.Field(name="tau2", bases=(xb, yb))
    x, y, z = dist.local_grids(xb, yb, zb)
    u["g"], shear["g"] = np.sin(x) * np.cos(2 * y) * np.sin(np.pi * z), z
    problem = d3.IVP([u, tau1, tau2], namespace={
        "u": u, "shear": shear, "tau1": tau1, "tau2": tau2, "dx": lambda f: d3.Differentiate(f, coords["x"]),
        "lift": lambda field, n: d3.Lift(field, zb.derivative_basis(2), n)})
    problem.add_equation("dt(u) - lap(u) + lift(tau1, -1) + lift(tau2, -2) = - u*u - shear*dx(u)")
    problem.add_equation("u(z=0) = 0")
    problem.add_equation("u(z=1) = 0")
    solver = problem.build_solver(d3.RK222)
    for _ in range(10):
        solver.step(1e-3)
    u.change_scales(1)
    return u.allgather_data("g")


def made() -> int:
    """Return how many communicators MPI has made for Dedalus on this rank."""
    if sys.argv[1:] == ["moongrid"]:
        return sum(job.ncomms for job in moongrid_dedalus.jobs.values())
    return counted


counted = 0
if sys.argv[1:] != ["moongrid"]:
    from dedalus.core import distributor
    own = distributor.Distributor.__init__

    class Mesh(MPI.Cartcomm):
        """Counts the communicators that it makes."""

        def Sub(self, remain_dims):
            global counted
            counted += 1
            return super().Sub(remain_dims)

    class World(MPI.Intracomm):
        """Counts the meshes that it makes."""

        def Create_cart(self, dims, *rest):
            global counted
            counted += 1
            return Mesh(super().Create_cart(dims, *rest))

    def init(self, coordsystems, comm=None, **options):
        own(self, coordsystems, comm=World(comm or MPI.COMM_WORLD), **options)
    distributor.Distributor.__init__ = init

for mesh in ([4], [2, 2], [1, 4], [2, 2]):
    field = heat(mesh)
    if MPI.COMM_WORLD.rank == 0:
        print(mesh, hashlib.sha256(field.tobytes()).hexdigest()[:16], repr(float(field.sum())), flush=True)
if MPI.COMM_WORLD.rank == 0:
    print("communicators", made(), flush=True)
