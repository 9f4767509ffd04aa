# SPDX-License-Identifier: MIT
"""Run transforms of mpi4py-fft on several meshes, and print digests of the results: transforms.py [moongrid]"""
import hashlib
import sys

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, DistArray, newDistArray
from mpi4py_fft.pencil import Subcomm

if sys.argv[1:] == ["moongrid"]:
    import moongrid_mpi4py_fft

world = MPI.COMM_WORLD


def tell(what: str, *arrays: np.ndarray) -> None:
    """Print a digest of the arrays of all ranks."""
    parts = world.gather([(a.shape, a.tobytes()) for a in arrays])
    if world.rank == 0:
        print(what, hashlib.sha256(repr(parts).encode()).hexdigest()[:16], flush=True)


def transform(shape: tuple[int, ...], dims: list[int], dtype: str) -> None:
    """Transform forward and backward."""
    subcomm = Subcomm(world, dims)
    sizes = [one.Get_size() for one in subcomm]
    fft = PFFT(subcomm, shape, dtype=dtype, planner_effort="FFTW_ESTIMATE")
    u = newDistArray(fft, False)
    u[:] = np.random.default_rng(world.rank).random(u.shape)
    image = fft.forward(u).copy()
    back = fft.backward(image.copy())
    tell(f"{shape} {dtype} on {sizes}", image, back)
    fft.destroy()


for layout in ([0, 1], [0, 0, 1], [1, 0, 1], [0, 1, 1]):
    for kind in ("d", "D", "f"):
        transform((12, 10, 14)[:len(layout)], layout, kind)
transform((8, 6, 4, 10), [0, 0, 0, 1], "d")
array = DistArray((9, 8, 7), subcomm=[0, 0, 1])
array[:] = world.rank
tell("redistributed", array.redistribute(1), array.redistribute(0))
if sys.argv[1:] == ["moongrid"] and world.rank == 0:
    print("communicators", sum(job.ncomms for job in moongrid_mpi4py_fft.jobs.values()), flush=True)
