# SPDX-License-Identifier: MIT
"""Megatron-core's own forward and backward of a small GPT on 8 processes: once on the groups of its
parallel_state, once on ours. The losses are equal to the last digit."""
from __future__ import annotations

from typing import Any

from processes import Tap, need, run

need("torch", "torch")
need("megatron.core", "megatron-core")

import megatron.core
import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec, get_gpt_mtp_block_spec
from megatron.core.pipeline_parallel.p2p_communication import P2PCommunicator
from megatron.core.pipeline_parallel.schedules import forward_backward_pipelining_without_interleaving
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron.core.transformer import TransformerConfig

import moongrid.torch as mt
from on_cpu import on_cpu
from tap import refusal

WORLD = 8
LAYOUTS = [{"tp": 2, "pp": 2}, {"tp": 1, "pp": 2, "ep": 2}]  # the second with 4 experts in each layer
STEPS, MICROBATCHES, LENGTH, BATCH, VOCABULARY = 4, 4, 16, 2, 64
VERSION = ".".join(megatron.core.__version__.split(".")[:2])


def build(pgs: ProcessGroupCollection, layout: dict[str, int]) -> Any:
    """This rank's part of the model, with the embedding tied between the first and the last stage. "mtp" of a layout:
    layers that predict more tokens."""
    torch.manual_seed(7)
    deeper = layout.get("mtp")
    experts = 4 if "ep" in layout else None
    config = TransformerConfig(
        num_layers=4, hidden_size=32, num_attention_heads=4, tensor_model_parallel_size=layout["tp"],
        pipeline_model_parallel_size=layout["pp"], expert_model_parallel_size=layout.get("ep", 1),
        num_moe_experts=experts, moe_token_dispatcher_type="allgather", pipeline_dtype=torch.float32,
        add_bias_linear=not experts, mtp_num_layers=deeper, use_cpu_initialization=True, hidden_dropout=0.0, attention_dropout=0.0,
        gradient_accumulation_fusion=False, masked_softmax_fusion=False, bias_dropout_fusion=False,
        bias_activation_fusion=False)
    stage, layer = pgs.pp.rank(), get_gpt_layer_local_spec(num_experts=experts)
    model = GPTModel(config, layer, VOCABULARY, LENGTH,
                     pre_process=stage == 0, post_process=stage == pgs.pp.size() - 1,
                     share_embeddings_and_output_weights=True, pg_collection=pgs,
                     position_embedding_type="none" if deeper else "learned_absolute",
                     mtp_block_spec=get_gpt_mtp_block_spec(config, layer, False) if deeper else None)
    settings = DistributedDataParallelConfig(overlap_grad_reduce=False, use_distributed_optimizer=False)
    wrapped = DistributedDataParallel(config, settings, model, pg_collection=pgs)
    config.finalize_model_grads_func = finalize_model_grads
    return wrapped


def train(pgs: ProcessGroupCollection, layout: dict[str, int]) -> list[float]:
    """A few steps of gradient descent; the loss of every microbatch on the last stage, else []."""
    model = build(pgs, layout)
    losses: list[float] = []
    for _ in range(STEPS):
        passes(pgs, model, losses)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.5 * parameter.main_grad
    return losses


def passes(pgs: ProcessGroupCollection, model: Any, losses: list[float]) -> None:
    """The forward and backward passes of a step."""

    def forward(batches: Any, part: Any) -> Any:
        tokens = next(batches)
        positions = torch.arange(LENGTH).expand(BATCH, -1)
        mask = torch.ones(BATCH, 1, LENGTH, LENGTH, dtype=torch.bool).triu(1)
        output = part(tokens[:, :-1], positions, mask, labels=tokens[:, 1:])

        def loss_of(each: Any) -> Any:
            losses.append(each.mean().item())
            return each.mean(), {}
        return output, loss_of

    draw = torch.Generator().manual_seed(pgs.dp.rank())  # the same data again, to be learnt by heart
    batches = iter([torch.randint(VOCABULARY, (BATCH, LENGTH + 1), generator=draw) for _ in range(MICROBATCHES)])
    model.zero_grad_buffer()
    forward_backward_pipelining_without_interleaving(
        forward_step_func=forward, data_iterator=batches, model=model, num_microbatches=MICROBATCHES,
        seq_length=LENGTH, micro_batch_size=BATCH,
        p2p_communicator=P2PCommunicator(pgs.pp, model.config), pg_collection=pgs)


def on_megatron(_rank: int, layout: dict[str, int]) -> Any:
    with on_cpu():
        parallel_state.initialize_model_parallel(layout["tp"], layout["pp"],
                                                 expert_model_parallel_size=layout.get("ep", 1))
        pgs = ProcessGroupCollection.use_mpu_process_groups()
        return train(pgs, layout), members(pgs)


def collection(groups: mt.Groups) -> ProcessGroupCollection:
    """Our groups as Megatron's. It reads two things from parallel_state all the same: a buffer of its attention, which
    has no group, and, in 0.16, the tensor group of its loss."""
    pgs = mt.megatron_collection(groups)
    parallel_state._set_global_memory_buffer()
    parallel_state._TENSOR_MODEL_PARALLEL_GROUP = pgs.tp if VERSION == "0.16" else None
    return pgs


def on_moongrid(_rank: int, layout: dict[str, int], wrong: bool = False) -> Any:
    with on_cpu():
        pgs = collection(mt.groups("megatron", {"version": VERSION, **layout}, sort_ranks=True))
        if wrong:
            pgs.dp_cp = pgs.cp  # one rank: gradients stay different
        result = train(pgs, layout), members(pgs)
        assert not parallel_state.model_parallel_is_initialized()
        return result


def of_another_version(_rank: int, version: str) -> tuple[int, str]:
    return refusal(lambda: mt.megatron_collection(mt.groups("megatron", version=version)))


def members(pgs: ProcessGroupCollection) -> dict[str, Any]:
    """Ranks and own position of every field."""
    return {name: group and (dist.get_process_group_ranks(group), group.rank()) for name, group in vars(pgs).items()}


if __name__ == "__main__":
    tap = Tap()
    print(f"# torch {torch.__version__}, megatron-core {megatron.core.__version__}")
    other = "0.19" if VERSION == "0.16" else "0.16"
    tap.same(run(1, of_another_version, other),
             [(int(mt.Status.REFUSED), f"these are the groups of Megatron-core {other}, and {megatron.core.__version__} is "
               f'installed: give version="{VERSION}" to the recipe')], "the groups of another version are refused")
    for layout in LAYOUTS:
        name = " x ".join(f"{dim} {size}" for dim, size in layout.items())
        theirs, ours = (run(WORLD, work, layout) for work in (on_megatron, on_moongrid))
        losses = [[value[0] for value in side] for side in (theirs, ours)]
        fields = [[value[1] for value in side] for side in (theirs, ours)]
        tap.same(fields[1], fields[0], f"{name}: every field has the same group")
        tap.same([len(values) for values in losses[1]], [0] * 4 + [STEPS * MICROBATCHES] * 4,
                 f"{name}: the last stage has a loss for each microbatch")
        digits = [[[value.hex() for value in values] for values in side] for side in losses]
        tap.same(digits[1], digits[0], f"{name}: the losses are equal to the last digit")
        last = losses[1][WORLD - 1]
        tap.check(sum(last[-MICROBATCHES:]) < sum(last[:MICROBATCHES]), f"{name}: the model learns", last)
        tap.check(losses[1][4] != losses[1][6], f"{name}: ranks of dp have data of their own")
        wrong = [value[0] for value in run(WORLD, on_moongrid, layout, True)]
        tap.check(wrong[WORLD - 1] != last, f"{name}: a wrong group gives other losses", last)
        print("#", [round(value, 6) for value in last])
    tap.end()
