# SPDX-License-Identifier: MIT
"""torch's DTensor from (Shard(0), Shard(1)) to (Shard(1), Shard(0)) of a square of f32:
    dtensor.py carry EDGE TURNS A B      over gloo in A x B processes: ms of the slowest process, bytes that all received
    dtensor.py plan EDGE TURNS A B ...   plan for each mesh, without processes: us, and the bytes that the plan sends
It prints lines KEY<tab>NUMBER."""
from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "torch"))
from processes import run  # noqa: E402  pylint: disable=wrong-import-position

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import DTensor, Shard  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

BEFORE, AFTER = (Shard(0), Shard(1)), (Shard(1), Shard(0))


class Received(TorchDispatchMode):
    """Counts the bytes that collectives bring to this rank."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.namespace in ("_c10d_functional", "_dtensor") and "wait" not in str(func) and "wrap" not in str(func):
            if "all_gather_into_tensor" not in str(func):  # on a CPU torch has no other way to change the axis
                raise RuntimeError(f"{func} is not counted")
            self.bytes += (out.numel() - args[0].numel()) * out.element_size()
        return out


def square(edge: int, mesh: Any) -> DTensor:
    """Element (i, k) is i * edge + k, modulo what a float counts to."""
    a, b = mesh.get_coordinate()
    rows, columns = edge // mesh.size(0), edge // mesh.size(1)
    local = torch.arange(a * rows, (a + 1) * rows)[:, None] * edge + torch.arange(b * columns, (b + 1) * columns)
    return DTensor.from_local((local % 1000003).float(), mesh, BEFORE, run_check=False)


def carry(rank: int, edge: int, turns: int, sizes: tuple[int, int]) -> list[float]:
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("a", "b"))
    tensor, spent = square(edge, mesh), []
    with Received() as received:
        tensor.redistribute(mesh, AFTER)
    for _ in range(turns):
        dist.barrier()
        start = time.monotonic()
        tensor.redistribute(mesh, AFTER)
        took = torch.tensor([time.monotonic() - start], dtype=torch.float64)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        spent.append(took.item())
    total = torch.tensor([received.bytes])
    dist.all_reduce(total)
    return [total.item()] + spent


def plan(edge: int, turns: int, sizes: tuple[int, int]) -> None:
    """Rank 0's plan, on process groups that do nothing; no cache of torch has it."""
    from torch.distributed.tensor import _redistribute as planner
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
    from torch.testing._internal.distributed.fake_pg import FakeStore
    world = sizes[0] * sizes[1]
    dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("a", "b"))
    meta = TensorMeta(torch.Size((edge, edge)), (edge, 1), torch.float32)
    specs = [DTensorSpec(mesh, placements, tensor_meta=meta) for placements in (BEFORE, AFTER)]
    for way, graph in (("greedy", False), ("least cost", True)):
        for _ in range(turns):
            planner.clear_redistribute_planner_cache()
            start = time.perf_counter()
            steps = planner._gen_transform_infos_non_cached(*specs, use_graph_based_transform=graph)
            print(f"{way} {world}\t{1e6 * (time.perf_counter() - start):.4f}")
        held, received = 4 * edge * edge // world, 0
        for step in steps:
            (source, target), n = step.src_dst_placements, mesh.size(step.mesh_dim)
            if source.is_shard() and target.is_replicate():  # all-gather
                received += (n - 1) * held
                held *= n
            elif source.is_shard():  # all-to-all
                received += held * (n - 1) // n
            else:
                held //= n
        print(f"{way} bytes {world}\t{received * world}\n{way} steps {world}\t{len(steps)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    edge, turns, sizes = int(sys.argv[2]), int(sys.argv[3]), [int(size) for size in sys.argv[4:]]
    if sys.argv[1] == "carry":
        found = run(sizes[0] * sizes[1], carry, edge, turns, (sizes[0], sizes[1]))[0]
        print(f"dtensor bytes\t{found[0]}")
        print("\n".join(f"dtensor\t{1e3 * seconds:.4f}" for seconds in found[1:]))
    else:
        for i in range(0, len(sizes), 2):
            plan(edge, turns, (sizes[i], sizes[i + 1]))
