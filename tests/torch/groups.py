# SPDX-License-Identifier: MIT
"""The groups of recipes in torch on 8 gloo processes: members, order, sums, sharing, options, meshes."""
from __future__ import annotations

import json
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

from processes import ROOT, Tap, need, run

need("torch", "torch")

import moongrid.torch as mt
import torch
import torch.distributed as dist
from torch.distributed._tensor import Shard, distribute_tensor  # torch.distributed.tensor since 2.5
from torch.distributed.device_mesh import init_device_mesh

from moongrid import _command

WORLD = 8
ODD = str(ROOT / "tests/torch/recipes/odd.lua")
LAYOUTS: list[tuple[str, dict[str, Any]]] = [
    ("megatron", {"tp": 2, "pp": 2}),
    ("megatron", {"tp": 1, "pp": 4, "cp": 2}),  # an embedding group that middle stages are not in
    ("megatron", {"tp": 2, "cp": 2, "num_distributed_optimizer_instances": 2, "hcp": [2, 1]}),
    ("deepspeed", {"tp": 2, "pp": 2}),
    ("deepspeed_moe", {"ep": 4}),
    ("megatron_deepspeed", {"sp": 2}),
    ("nanotron", {"tp": 2, "pp": 2}),
    ("picotron", {"tp": 2, "cp": 2, "pp": 2}),
    ("torchtitan", {"tp": 2, "dp_shard": 2, "dp_replicate": 2}),
    (str(ROOT / "examples/compose.lua"), {"tp": 2, "pp": 2, "gpus_per_node": 4}),
    (ODD, {}),
]


def listed(value: mt.Group) -> list[dist.ProcessGroup]:
    return value if isinstance(value, list) else [] if value is None else [value]


def use(rank: int, recipe: str, params: dict[str, Any]) -> dict[str, Any]:
    """Everything that this rank's groups answer."""
    groups = mt.groups(recipe, params)
    found: dict[str, Any] = {"ranks": {}, "made": len(groups.made), "objects": set()}
    for family in groups:
        groups.create(family)  # of lazy ones
        for group in listed(groups[family]):
            total, each = torch.tensor([2 ** rank]), [torch.zeros(1, dtype=torch.int64) for _ in range(group.size())]
            dist.all_reduce(total, group=group)
            dist.all_gather(each, torch.tensor([rank]), group=group)
            order = [int(one) for one in each]
            assert total.item() == sum(2 ** member for member in order), (family, total, order)
            assert dist.get_process_group_ranks(group) == order and order[group.rank()] == rank
            found["ranks"].setdefault(family, []).append(order)
            if group.size() > 1:
                found["objects"].add(id(group))
    found["objects"] = len(found["objects"])
    fresh = dist.new_group(list(range(WORLD)))  # torch's own counting of groups still agrees
    dist.all_reduce(torch.zeros(1), group=fresh)
    groups.destroy()
    return found


def expected(recipe: str, params: dict[str, Any], rank: int) -> dict[str, list[list[int]]]:
    """By the command, from the lists of all groups."""
    words = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in params.items()]
    whole = subprocess.run([_command.path(), "plan", recipe, "--world", str(WORLD), "--json", *words],
                           check=True, capture_output=True).stdout
    mine = {name: [group for group in family["groups"] if rank in group]
            for name, family in json.loads(whole)["families"].items()}
    return {name: groups for name, groups in mine.items() if groups}


def details(rank: int) -> dict[str, Any]:
    """Sharing, options, laziness, groups of one rank, several Groups at a time."""
    groups, other = mt.groups(ODD), mt.groups(ODD)
    found: dict[str, Any] = {"text": str(groups)}
    found["shared"] = [groups["b"] is groups["again"], groups["b"] is groups["own"], groups["a"] is groups["cpu"],
                       groups["b"] is other["b"]]
    found["alone"] = [groups._alone is None, listed(groups["single"])[0].size(), groups._alone is groups["single"]]
    groups.create("later")
    found["later"] = listed(groups["later"])[0].size()
    cpu = torch.device("cpu")
    found["timeout"] = [listed(groups[name])[0]._get_backend(cpu).options._timeout for name in ("a", "b")]
    found["names"] = [listed(groups["b"])[0].group_name, listed(other["turned"])[0].group_name]
    sorted_ = mt.groups(ODD, sort_ranks=True, timeout=timedelta(seconds=77))
    found["sorted"] = [made.ranks for made in sorted_.made if "turned" in made.families]
    found["seconds"] = [made.timeout.total_seconds() for made in sorted_.made if made.families[0] in ("a", "b")]
    for one in (groups, other, sorted_):
        one.destroy()
    again = mt.groups(ODD)  # after destroy, the same groups once more
    dist.all_reduce(torch.zeros(1), group=listed(again["b"])[0])
    return found


def meshes(rank: int) -> dict[str, Any]:
    groups = mt.groups("torchtitan", {"tp": 2, "dp_shard": 2, "dp_replicate": 2})
    grid = next(name for name in groups.plan.grids if groups.plan.grids[name].dims.get("dp_replicate") == 2)
    mesh = mt.device_mesh(groups, grid)
    names = mesh.mesh_dim_names
    theirs = init_device_mesh("cpu", tuple(mesh.shape), mesh_dim_names=names)
    part = mt.device_mesh(mt.groups(ODD), "some")
    whole = torch.arange(16.0).view(4, 4)
    back = distribute_tensor(whole, mesh["tp"], [Shard(0)]).full_tensor()
    members = [[dist.get_process_group_ranks(one.get_group(name)) for name in names] for one in (mesh, theirs)]
    flat = not hasattr(mesh, "_flatten") or all(  # since torch 2.5
        mesh["dp_replicate", "dp_shard"]._flatten(name).get_group() is groups["dp"] for name in ("dp", "dp_replicate_dp_shard"))
    return {"mesh": torch.equal(mesh.mesh, theirs.mesh), "members": members[0] == members[1], "flattened": flat,
            "ours": mesh["tp"].get_group() is groups["tp"], "tensor": torch.equal(back, whole),
            "coordinate": mesh.get_coordinate() == theirs.get_coordinate(), "part": part and part.mesh.tolist()}


def nccl_options(tap: Tap) -> None:
    """What a recipe asks of NCCL, without a GPU."""
    if not dist.is_nccl_available():
        tap.check(True, "options of NCCL # SKIP this torch has no NCCL")
        return
    limit = timedelta(seconds=9)
    asked = {"high_priority": True, "nccl": "max_ctas=8 min_ctas=2 net_name=IB optional=1 newer=3"}
    options = mt._nccl_options("tp", limit, asked)
    tap.same([options.is_high_priority_stream, options.config.max_ctas, options.config.min_ctas,
              options.config.net_name, options._timeout], [True, 8, 2, "IB", limit], "options of NCCL")
    tap.same(mt._nccl_options("tp", limit, {"timeout": 9}), None, "no options of NCCL where none are asked for")
    try:
        mt._nccl_options("tp", limit, {"nccl": "newer=3"})
        tap.check(False, "a field that torch does not know is refused")
    except mt.MoongridError as why:
        tap.same(str(why), f"torch {torch.__version__} cannot set the NCCL field 'newer' of 'tp'; nccl = {{ optional = "
                           "true } leaves it out", "a field that torch does not know is refused")


if __name__ == "__main__":
    tap = Tap()
    nccl_options(tap)
    for recipe, params in LAYOUTS:
        name = " ".join([Path(recipe).name, *(f"{key}={value}" for key, value in params.items())])
        every = run(WORLD, use, recipe, params)
        wanted = [expected(recipe, params, r) for r in range(WORLD)]
        tap.same([rank["ranks"] for rank in every], wanted, f"{name}: members in order")
        tap.same([rank["objects"] for rank in every], [rank["made"] for rank in every], f"{name}: no group twice")
    every = run(WORLD, details)
    half = timedelta(minutes=30)
    for key, what, wanted in [
        ("shared", "equal families share, others do not", [[True, False, False, False]] * WORLD),
        ("alone", "a group of one rank is made when it is asked for", [[True, 1, True]] * WORLD),
        ("later", "a lazy family is made by create", [8] * WORLD),
        ("timeout", "timeouts", [[half, timedelta(seconds=30)]] * WORLD),
        ("seconds", "the caller's timeout, but for families that have one", [[77.0, 30.0]] * WORLD),
        ("sorted", "ranks are sorted where that is asked for", [[(0, 1, 2, 3)]] * 4 + [[(4, 5, 6, 7)]] * 4),
        ("names", "names", [[f"moongrid/1/b/{r % 2}", f"moongrid/2/turned/{r // 4}"] for r in range(WORLD)]),
    ]:
        tap.same([one[key] for one in every], wanted, what)
    tap.same(every[3]["text"].splitlines(), [
        "part: ranks 2 3 4 5, gloo, 1800 s", "line: ranks 1 3, gloo, 1800 s", "line: ranks 3 5, gloo, 1800 s",
        "a x: ranks 2 3, gloo, 1800 s", "b again: ranks 1 3 5 7, gloo, 30 s", "own: ranks 1 3 5 7, gloo, 1800 s",
        "turned: ranks 3 0 1 2, gloo, 1800 s", "cpu: ranks 2 3, gloo, 1800 s (without high_priority)", "y: ranks 3 5 7, gloo, 1800 s",
        "later: ranks 0 1 2 3 4 5 6 7, gloo, 1800 s, lazy"], "what was chosen, as text")
    every = run(WORLD, meshes)
    for what in ("mesh", "coordinate", "ours", "flattened", "members", "tensor"):
        tap.same([one[what] for one in every], [True] * WORLD, f"a DeviceMesh: {what}")
    rows = [[2, 3], [4, 5], [6, 7]]
    tap.same([one["part"] for one in every], [None, None] + [rows] * 6, "a mesh over a part of the world")
    tap.end()
