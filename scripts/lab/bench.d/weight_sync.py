# SPDX-License-Identifier: MIT
"""awex's planner of weight sync, for the move `window` of moves.c: 16 tensors from the first half of the ranks, tp 8 pp 16,
to the other half, tp 16 pp 8.
    weight_sync.py TURNS WORLD     us for a tensor and rank, for ranks of both halves; peers, bytes that one tensor moves
Lines KEY<tab>NUMBER. Nothing is sent: awex gets what its ranks would have told each other, and plans one rank."""
from __future__ import annotations

import sys
import time

import torch
from awex.logging import LogLevel
from awex.meta.meta_resolver import ParameterMeta, ParameterReplicaMeta, ParameterShardMeta
from awex.sharding.param_sharding import ShardingType
from awex.transfer import transfer_plan

TENSORS, SHAPE = 16, (96, 12288, 12288)


def meta(name: str, ranks: int, tp: int, pp: int) -> ParameterMeta:
    """Ranks are tp fastest, then copies, then pp; layers are cut by pp and rows by tp."""
    shape, copies = (SHAPE[0] // pp, SHAPE[1] // tp, SHAPE[2]), ranks // tp // pp
    replicas = []
    for copy in range(copies):
        shards = [
            ParameterShardMeta(
                tp_rank=t, attn_tp_rank=t, pp_rank=p, ep_rank=0, ep_tp_rank=0, global_rank=t + tp * (copy + copies * p),
                world_size=ranks, engine_rank=0, name=name, shape=shape, numel=shape[0] * shape[1] * shape[2],
                dtype=torch.bfloat16, global_offset=(p * shape[0], t * shape[1], 0),
                sharding_type=ShardingType.TP_SHARDING, num_shards=tp, sharding_dim=1)
            for p in range(pp) for t in range(tp)
        ]
        replicas.append(ParameterReplicaMeta(shards=shards))
    return ParameterMeta(name=name, global_numel=SHAPE[0] * SHAPE[1] * SHAPE[2], global_shape=SHAPE,
                         dtype=torch.bfloat16, shards=[s for r in replicas for s in r.shards], replicas=replicas)


def main(turns: int, world: int) -> None:
    half = world // 2
    names = [f"model.layers.{i}.mlp.gate_proj.weight" for i in range(TENSORS)]
    before = [meta(name, half, 8, 16) for name in names]
    after = [meta(name, half, 16, 8) for name in names]
    builder = transfer_plan.TransferPlanBuilder(infer_world_size=half, train_world_size=half)
    peers = []
    for turn in range(turns):
        for rank in (turn * 97 % half, half + turn * 61 % half):
            start = time.perf_counter()
            plan = builder.build_local_transfer_plan(after, before, rank)
            print(f"awex {world}\t{1e6 * (time.perf_counter() - start) / TENSORS:.4f}")
            peers.append(len(plan.operations))
    elements = 0
    for operation in builder.build_weights_mapping_operations(after[:1], before[:1]):
        a, b, c = operation.overlap_shape
        elements += a * b * c
    print(f"awex peers {world}\t{sum(peers) / len(peers)}\nawex bytes {world}\t{2 * elements}")


if __name__ == "__main__":
    transfer_plan.logger.level = LogLevel.CRITICAL  # it prints to stdout
    main(int(sys.argv[1]), int(sys.argv[2]))
