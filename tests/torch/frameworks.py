# SPDX-License-Identifier: MIT
"""A small model trained by DeepSpeed, by FSDP2 with tensor parallelism, and by accelerate over gloo: on groups of their own,
then on ours. The losses are equal to the last digit, and the second time torch makes no group. (Megatron-core: gpt.py.)"""
from __future__ import annotations

import importlib.util
import logging
import os
import warnings
from collections.abc import Callable
from typing import Any

from processes import ROOT, Tap, need, run

need("torch", "torch")

import moongrid as mg
import moongrid.torch as mt
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d as c10d
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

os.environ.update(DS_ACCELERATOR="cpu")
Step = Callable[[Any], float]


def model() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))


def follow(step: Step, replica: int) -> list[str]:
    """The losses of a few steps, each replica with data of its own, to the last digit."""
    draw = torch.Generator().manual_seed(replica)
    return [step(torch.randn(2, 8, generator=draw)).hex() for _ in range(4)]


def loss_of(model: Any, x: Any) -> Any:
    return (model(x) - x.sum(1, keepdim=True)).pow(2).mean()


def as_launched(rank: int, world: int) -> None:
    """What torchrun sets, and both frameworks read."""
    os.environ.update(RANK=f"{rank}", LOCAL_RANK=f"{rank}", WORLD_SIZE=f"{world}", LOCAL_WORLD_SIZE=f"{world}",
                      MASTER_ADDR="127.0.0.1", MASTER_PORT="1")


def made() -> int:
    """Groups that this process has made."""
    return len(c10d._world.pg_map)


# ------------------------------------------------------------------------------------------ DeepSpeed


GRID = """
return recipe {
  build = function(world)
    local g, t = grid(world, "tp-dp", { tp = 2, dp = fill }), topology(world)
    t.tp = g "tp"
    t.dp = g "dp"
    return t
  end,
  %s
}
"""


class Own:
    """The six functions that DeepSpeed asks an mpu, as its users write them, for tp 2 x dp 2."""

    def __init__(self) -> None:
        self.tp, self.dp = (next(group for group in [dist.new_group(ranks) for ranks in lists]
                                 if group != dist.GroupMember.NON_GROUP_MEMBER) for lists in ([[0, 1], [2, 3]], [[0, 2], [1, 3]]))
        for name, group in (("model", self.tp), ("data", self.dp)):
            setattr(self, f"get_{name}_parallel_group", lambda group=group: group)
            setattr(self, f"get_{name}_parallel_rank", group.rank)
            setattr(self, f"get_{name}_parallel_world_size", group.size)


def deepspeed(rank: int) -> dict[str, Any]:
    as_launched(rank, 4)
    logging.disable(logging.WARNING)
    import deepspeed
    deepspeed.ops.__compatible_ops__.clear()  # else it compiles some
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)

    def train(mpu: Any, stage: int, replica: int) -> list[str]:
        engine, *_ = deepspeed.initialize(model=model(), mpu=mpu, config={
            "train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "Adam", "params": {"lr": 0.05, "torch_adam": True}},
            "zero_optimization": {"stage": stage}})

        def step(x: Any) -> float:
            loss = loss_of(engine, x)
            engine.backward(loss)
            engine.step()
            return loss.item()
        return follow(step, replica)
    own, groups = Own(), mt.groups("deepspeed", tp=2)
    ours, replica = mt.mpu(groups), rank // 2
    assert ours.get_data_parallel_group() is groups["dp"] and ours.get_model_parallel_group() is groups["mp"]
    found: dict[str, Any] = {f"stage {stage}": [train(own, stage, replica), train(ours, stage, replica)] for stage in (0, 2, 3)}
    page = (ROOT / "examples/torch/README.md").read_text(encoding="utf-8")
    recipe = mg.load_text(GRID % page.split("```lua\n")[1].split("```")[0])
    found["a recipe of one's own"] = [train(mt.mpu(mt.groups(recipe.plan(4))), 2, replica), found["stage 2"][0]]
    own.dp, own.get_data_parallel_group = own.tp, lambda: own.tp  # type: ignore[attr-defined]
    found["wrong"] = [train(own, 0, replica), found["stage 0"][0]]
    return found


# ------------------------------------------------------------------------- FSDP2, HSDP, tensor parallelism


def fsdp2(rank: int) -> dict[str, Any]:
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    def train(mesh: DeviceMesh) -> list[str]:
        parts = parallelize_module(model(), mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        fully_shard(parts, mesh=mesh["dp_replicate", "dp_shard"])
        optimizer = torch.optim.Adam(parts.parameters(), lr=0.05)

        def step(x: Any) -> float:
            loss = loss_of(parts, x)
            loss.backward()
            nn.utils.clip_grad_norm_(parts.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            return loss.item()
        return follow(step, rank // 2)
    groups = mt.groups("torchtitan", dp_replicate=2, dp_shard=2, tp=2)
    mesh = mt.device_mesh(groups, "dense")
    assert mesh is not None
    before = made()
    ours = train(mesh)
    flat = mesh["dp_replicate", "dp_shard"]._flatten("dp")
    found = {"mesh": [made() - before, flat.get_group() is groups["dp"], mesh["dp_shard"].get_group() is groups["dp_shard"],
                      [dist.get_process_group_ranks(one.get_group()) for one in (flat, mesh["tp"])]]}
    theirs = init_device_mesh("cpu", tuple(mesh.shape), mesh_dim_names=mesh.mesh_dim_names)
    theirs["dp_replicate", "dp_shard"]._flatten("dp")
    return {**found, "HSDP and tp": [train(theirs), ours],
            "flattened": [theirs["dp_replicate", "dp_shard"]._flatten("dp") == flat, True]}


# ------------------------------------------------------------------------------------------ accelerate


def accelerate(rank: int) -> dict[str, Any]:
    as_launched(rank, 4)
    warnings.simplefilter("ignore")
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin, ParallelismConfig

    def train(mesh: DeviceMesh | None) -> list[str]:
        AcceleratorState._reset_state(True)
        PartialState._reset_state()
        PartialState(cpu=True).distributed_type = DistributedType.MULTI_GPU  # it has no FSDP on CPUs
        sizes = ParallelismConfig(dp_replicate_size=2, dp_shard_size=2)
        sizes.device_mesh = mesh
        wrap = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="size_based_wrap", min_num_params=1,
                                              cpu_ram_efficient_loading=False)
        accelerator, parts = Accelerator(cpu=True, parallelism_config=sizes, fsdp_plugin=wrap), model()
        parts, optimizer = accelerator.prepare(parts, torch.optim.Adam(parts.parameters(), lr=0.05))

        def step(x: Any) -> float:
            loss = loss_of(parts, x)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            return loss.item()
        return follow(step, rank)
    groups = mt.groups("accelerate", dp_replicate_size=2, dp_shard_size=2)
    mesh, theirs = mt.device_mesh(groups, "mesh"), train(None)
    assert mesh is not None
    before = made()
    ours = train(mesh)
    return {"HSDP": [theirs, ours], "mesh": [made() - before, True, all(
        mesh[name].get_group() is groups[name] for name in ("dp", "dp_cp", "dp_shard_cp", "dp_shard", "dp_replicate")), []]}


# -------------------------------------------------------------------------------------------- an mpu


def functions(rank: int) -> dict[str, Any]:
    groups = mt.groups("megatron", tp=2, pp=2, version="0.16")
    mpu, coords = mt.mpu(groups), [groups.plan.at(rank).coord("dense", dim) for dim in ("tp", "dp", "pp")]
    odd = []
    mine = mt.mpu(mt.groups(mg.load_text(GRID % "queries = { x = function() end }").plan(8)))
    for call in (lambda: mpu.get_data_paralel_group, lambda: mt.mpu(mt.groups(_bare().plan())),
                 lambda: mine.get_data_parallel_group, lambda: mine.get_data_parallel_world_size, lambda: mine.is_first):
        try:
            call()
        except (AttributeError, mg.MoongridError) as why:
            odd.append(str(why))
    return {"ranks": [mpu.get_tensor_model_parallel_rank(), mpu.get_data_parallel_rank(), mpu.get_pipeline_model_parallel_rank()] == coords,
            "groups": mpu.get_data_parallel_group(with_context_parallel=True) is groups["dp_cp"],
            "sizes": [mpu.get_tensor_model_parallel_world_size(), mpu.get_data_parallel_world_size()],
            "stage": mpu.is_pipeline_first_stage() == (coords[2] == 0), "listed": "get_embedding_group" in dir(mpu),
            "asked": [hasattr(mpu, "get_slice_parallel_rank"), hasattr(mpu, "get_model_parallel_group")], "odd": odd,
            "repr": [repr(mpu).startswith("Mpu(Plan('megatron', world=8, "), repr(groups).startswith("Groups(Plan('megatron', ")]}


def _bare() -> mg.Topology:
    topology = mg.topology(8)
    topology["tp"] = mg.grid(8, tp=2, dp=4)("tp")
    return topology


if __name__ == "__main__":
    tap = Tap()
    answers = run(8, functions)
    for key, wanted in {
        "ranks": True, "groups": True, "sizes": [2, 2], "stage": True, "listed": True, "asked": [False, True], "repr": [True, True],
        "odd": ["'Mpu' object has no attribute 'get_data_paralel_group'; nearest is 'get_data_parallel_group'",
                "the functions of a system are its recipe's: groups of a recipe have them",
                "'Mpu' object has no attribute 'get_data_parallel_group'; a recipe adds it by getters = "
                '{ get_data_parallel_group = "dp" }',
                "'Mpu' object has no attribute 'get_data_parallel_world_size'; a recipe adds it by queries = "
                "{ data_parallel_world_size = function(s) return s.dp.size end }",
                "'Mpu' object has no attribute 'is_first'; a recipe adds it by queries = "
                "{ is_first = function(s) return s.dp.position end }"],
    }.items():
        tap.same([one[key] for one in answers], [wanted] * 8, f"mpu: {key}")
    for name, world, work in (("deepspeed", 4, deepspeed), ("fsdp2", 8, fsdp2), ("accelerate", 4, accelerate)):
        # FSDP2 asks the stream of a device for an event; early versions of torch have none on CPUs
        here = hasattr(torch.cpu.Stream, "record_event") if name == "fsdp2" else importlib.util.find_spec(name)
        if not here:
            tap.check(True, f"{name} # SKIP {name} is not installed, or not for CPUs")
            continue
        for module in ("torch.distributed.tensor.parallel", name if name != "fsdp2" else "torch.distributed.fsdp"):
            importlib.import_module(module)  # once, before the processes are forked
        every = run(world, work)
        for key in every[0]:
            first, second = [one[key][0] for one in every], [one[key][1] for one in every]
            if key == "mesh":
                tap.same([one[key][:3] for one in every], [[0, True, True]] * world, f"{name}: a mesh of our groups alone")
            elif key == "wrong":
                tap.check(first != second, f"{name}: a wrong group gives other losses", first)
            else:
                tap.same(second, first, f"{name}: {key}, equal to the last digit")
    tap.end()
