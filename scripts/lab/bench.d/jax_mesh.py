# SPDX-License-Identifier: MIT
#
# jax_mesh.py: print hosts in the order in which JAX's mesh_utils assigns them to blocks of 8 ranks, for the part
# `place` of scripts/lab/bench. The mesh has the dims of that part's recipe, the slowest first; a host is a granule of 2
# x 4 devices.
from jax.experimental import mesh_utils


class Device:
    platform = "gpu"
    device_kind = "gpu"

    def __init__(self, i):
        self.id, self.process_index = i, i // 8


INSIDE, BETWEEN = (1, 1, 1, 1, 2, 4), (2, 4, 2, 8, 2, 1)  # vp pp cp dp ep tp
devices = [Device(i) for i in range(2048)]
mesh = mesh_utils.create_hybrid_device_mesh(INSIDE, BETWEEN, devices, process_is_granule=True)
flat = [d.process_index for d in mesh.flatten()]
blocks = [flat[i] for i in range(0, len(flat), 8)]
assert all(flat[i] == blocks[i // 8] for i in range(len(flat)))
print(" ".join(map(str, blocks)))
