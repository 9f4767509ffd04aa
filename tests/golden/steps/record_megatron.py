# SPDX-License-Identifier: MIT
"""Record one training step of megatron-core on a CPU, every call of every rank: record_megatron.py CASES.json [ID...]

A process group in Python takes NCCL's place, so that each call of c10d ends in it. One process plays one rank, and gets
what it would get if all ranks had its data. `format` of the written file explains it. Two things of megatron-core are
changed: Torch's norms are marked as Apex's and Transformer Engine's are, and attention does not refuse cp, whose traffic
is Transformer Engine's, nor the widths of latent attention. That runs with Transformer Engine alone. Unless the model has
"transformer_impl": "local", stand-ins take the place of its modules: megatron-core's own Linear, whole on each rank of
tp, for the down projections, and ColumnParallelLinear with a norm before it for the up projections."""
from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import pathlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "torch"))
warnings.simplefilter("ignore")
os.environ["TORCHDYNAMO_DISABLE"] = "1"  # nothing is compiled

import megatron.core
import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.distributed import param_and_grad_buffer
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt import gpt_layer_specs as specs
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.post_training.modelopt.layers import Linear
from megatron.core.tensor_parallel import ColumnParallelLinear, random
from megatron.core.transformer import TransformerConfig, dot_product_attention, multi_latent_attention, torch_norm
from megatron.core.transformer.identity_op import IdentityOp
from megatron.core.transformer.transformer_config import MLATransformerConfig
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.overrides import TorchFunctionMode

from on_cpu import on_cpu

LAYOUT = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "microbatches": 4, "sp": False,
          "dispatcher": "alltoall", "distopt": False, "overlap_grad": False, "overlap_param": False,
          "overlap_p2p": False, "instances": 1}
MODEL = {"layers": 4, "hidden": 64, "heads": 8, "vocab": 512, "seq": 64, "tied": False, "gated": True, "bias": False,
         "norm": "RMSNorm", "positions": "rope", "topk": 2, "bf16": True, "grad_fp32": True, "clip": 1.0}
FORMAT = ("calls: [op, index into groups, bytes that the rank puts in (recv: takes out), peer (a global rank) or root, "
          "phase, place in the framework, type, batch: 0 alone, 1 begins a batch_isend_irecv or coalesced call, 2 goes "
          "on with it]; groups: [the framework's name, ranks]; ranks: by rank its program, indices into calls, "
          "[n, [...]] is n times; weights: parameters of the rank; all_gather's whole buffer is bytes x ranks of the "
          "group; calls over groups of one rank are left out; one training step, after another one")


class Tape:
    """The calls of this rank."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.phase, self.batch = "", 0

    def add(self, group: Recorder, op: str, tensor: torch.Tensor, peer: int | None = None) -> None:
        ranks = dist.get_process_group_ranks(group)
        if len(ranks) == 1:
            return
        name = group.group_desc if group is not dist.group.WORLD else "default_pg"
        place, frame = "", sys._getframe(2)
        while frame and not place:
            path = frame.f_code.co_filename
            if "megatron/core/" in path and "wrapper" not in frame.f_code.co_name:
                place = path.split("megatron/core/")[1] + ":" + frame.f_code.co_qualname
            frame = frame.f_back
        bytes_ = tensor.numel() * tensor.element_size()
        to = None if peer is None else ranks[peer]
        self.calls.append((op, (name, tuple(ranks)), bytes_, to, self.phase, place, str(tensor.dtype)[6:], self.batch))
        self.batch = 2 if self.batch else 0

    @contextlib.contextmanager
    def together(self, *_args: Any, **_kwargs: Any) -> Iterator[Any]:
        self.batch = 1
        yield self
        self.batch = 0

    def wait(self) -> None:
        """What the coalescing manager's user calls."""


tape = Tape()


def _done(value: Any) -> Any:
    future: Any = torch.futures.Future()
    future.set_result(value)
    return torch._C._distributed_c10d._create_work_from_future(future)


class Recorder(dist.ProcessGroup):
    """A process group that writes each call down; data stay as if all ranks had this one's."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self.own, self.count = rank, size

    def size(self) -> int:
        return self.count

    def getBackendName(self) -> str:
        return "recorder"

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:
        tape.add(self, "all_reduce", tensors[0])
        return _done(tensors)

    def all_gather_single(self, output: Any, own: Any, opts: Any = None) -> Any:
        tape.add(self, "all_gather", own)
        for part in output.detach().view(-1).chunk(self.count):
            part.copy_(own.detach().reshape(-1))
        return _done(output)

    def allgather(self, outputs: Any, own: Any, opts: Any = None) -> Any:
        tape.add(self, "all_gather", own[0])
        for part in outputs[0]:
            part.copy_(own[0])
        return _done(outputs)

    def reduce_scatter_single(self, output: Any, whole: Any, opts: Any = None) -> Any:
        tape.add(self, "reduce_scatter", whole)
        output.view(-1).copy_(whole.reshape(-1).chunk(self.count)[self.own])
        return _done(output)

    def reduce_scatter(self, outputs: Any, parts: Any, opts: Any = None) -> Any:
        tape.add(self, "reduce_scatter", torch.cat([part.reshape(-1) for part in parts[0]]))
        outputs[0].copy_(parts[0][self.own])
        return _done(outputs)

    def all_to_all_single(self, output: Any, whole: Any, out_sizes: Any, in_sizes: Any, opts: Any = None) -> Any:
        tape.add(self, "all_to_all", whole)
        rows = min(len(output), len(whole))
        output.zero_()[:rows].copy_(whole[:rows])
        return _done(output)

    def broadcast(self, tensors: Any, opts: Any = None) -> Any:
        tape.add(self, "broadcast", tensors[0], opts.rootRank)
        return _done(tensors)

    def send(self, tensors: Any, to: int, tag: int) -> Any:
        tape.add(self, "send", tensors[0], to)
        return _done(tensors)

    def recv(self, tensors: Any, of: int, tag: int) -> Any:
        tape.add(self, "recv", tensors[0], of)
        tensors[0].detach().zero_()
        return _done(tensors)

    def barrier(self, opts: Any = None) -> Any:
        return _done(None)


class Stream:
    """Of a GPU: there is none."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args: self


class NormAndLinear(ColumnParallelLinear):  # type: ignore[misc]
    """Stands in for TELayerNormColumnParallelLinear."""

    def __init__(self, inputs: int, *args: Any, config: Any, **kwargs: Any) -> None:
        super().__init__(inputs, *args, config=config, **kwargs)
        weight = self._parameters.pop("weight")
        one = norm(None, config, inputs)
        for name, parameter in one.named_parameters():
            self.register_parameter("layer_norm_" + name, parameter)
        self.weight, self.norm = weight, lambda x: one(x)

    def forward(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return super().forward(self.norm(x), *args, **kwargs)


def norm(_cls: Any, config: Any, hidden_size: int, eps: float = 1e-5, **_others: Any) -> Any:
    kind = torch.nn.LayerNorm if config.normalization == "LayerNorm" else torch.nn.RMSNorm
    one = kind(hidden_size, eps=eps, dtype=config.params_dtype)
    for parameter in one.parameters():
        parameter.sequence_parallel = config.sequence_parallel
    return one


class Types(TorchFunctionMode):
    """The optimizer wants to see the types of a GPU's tensors, and memory is not pinned."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {name: value for name, value in (kwargs or {}).items() if name != "pin_memory"}
        answer = args[0] if function is torch.Tensor.pin_memory else function(*args, **kwargs)
        return answer.replace("torch.", "torch.cuda.") if function is torch.Tensor.type and len(args) == 1 else answer


def patch(experts: bool) -> None:
    def gather_keys(keys: list[Any], own: list[Any], group: Any = None) -> None:
        """Each rank tells the kinds of its parameters; experts may be on other ranks only."""
        keys[:] = [own + [(key, True) for key, _ in own if experts]] * len(keys)

    dist.all_gather_object = gather_keys
    own = dot_product_attention.DotProductAttention.__init__

    def attention(self: Any, config: Any, *args: Any, k_channels: Any = 0, v_channels: int = 0, **kwargs: Any) -> None:
        size, config.context_parallel_size = config.context_parallel_size, 1
        own(self, config, *args, **kwargs)
        config.context_parallel_size = size
        if v_channels:
            self.hidden_size_per_partition = v_channels * self.num_attention_heads_per_partition

    def batch(ops: Any) -> Any:
        with tape.together():
            return [each.op(each.tensor, each.peer, each.group) for each in ops]

    torch.cuda.Stream = Stream
    torch.cuda.current_stream = torch.cuda.default_stream = lambda *_args: Stream()
    torch.cuda.stream = lambda *_args: contextlib.nullcontext()
    torch.Tensor.record_stream = lambda *_args: None
    random._get_cuda_rng_state = lambda **_kwargs: torch.get_rng_state()
    random._set_cuda_rng_state = lambda *_args, **_kwargs: None
    torch_norm.WrappedTorchNorm.__new__ = norm
    dot_product_attention.DotProductAttention.__init__ = attention
    dist.batch_isend_irecv = batch
    param_and_grad_buffer._coalescing_manager = tape.together
    multi_latent_attention.Linear, multi_latent_attention.HAVE_TE = Linear, False


def layout_of(a: dict[str, Any], m: dict[str, Any]) -> str | None:
    stages = ["t" * layers for layers in a.get("stage_layers", [])]
    return f"E{'|'.join(stages)}{'m' * (m.get('mtp') or 0)}L" if stages else None


def config_of(a: dict[str, Any], m: dict[str, Any]) -> Any:
    latent = "kv_lora_rank" in m
    dtype = torch.bfloat16 if m["bf16"] else torch.float32
    more: dict[str, Any] = {}
    if m.get("experts"):
        pattern = [int(i >= m.get("dense_layers", 0) and i % (m.get("moe_every") or 1) == 0)
                   for i in range(m["layers"])]
        more = {"num_moe_experts": m["experts"], "moe_router_topk": m["topk"], "moe_ffn_hidden_size": m["moe_ffn"],
                "moe_layer_freq": pattern, "moe_token_dispatcher_type": a["dispatcher"],
                "moe_expert_capacity_factor": a.get("capacity"), "moe_pad_expert_input_to_capacity": bool(a.get("capacity")),
                "moe_shared_expert_intermediate_size": m.get("shared_ffn"),
                "moe_router_load_balancing_type": "aux_loss" if m.get("aux") else "none",
                "moe_aux_loss_coeff": m.get("aux") or 0.0,
                "moe_router_enable_expert_bias": bool(m.get("expert_bias")),
                "moe_router_score_function": "sigmoid" if m.get("expert_bias") else "softmax",
                "expert_tensor_parallel_size": a.get("etp")}
    if latent:
        more |= {key: m.get(key) for key in ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim",
                                             "v_head_dim")} | {"rope_type": "rope"}
    elif m.get("kv_heads"):
        more["num_query_groups"] = m["kv_heads"]
    if a.get("recompute"):
        more["recompute_granularity"] = a["recompute"]
    if a.get("recompute") == "full":
        more |= {"recompute_method": "uniform", "recompute_num_layers": 1}
    return (MLATransformerConfig if latent else TransformerConfig)(
        num_layers=m["layers"], hidden_size=m["hidden"], num_attention_heads=m["heads"], ffn_hidden_size=m.get("ffn"),
        tensor_model_parallel_size=a["tp"], pipeline_model_parallel_size=a["pp"], context_parallel_size=a["cp"],
        expert_model_parallel_size=a["ep"], virtual_pipeline_model_parallel_size=a.get("vpp"),
        num_layers_in_first_pipeline_stage=a.get("first"), num_layers_in_last_pipeline_stage=a.get("last"),
        pipeline_model_parallel_layout=layout_of(a, m),
        sequence_parallel=a["sp"], pipeline_dtype=dtype, params_dtype=dtype, bf16=m["bf16"], autocast_dtype=dtype,
        add_bias_linear=m["bias"], gated_linear_unit=m["gated"], normalization=m["norm"],
        activation_func=torch.nn.functional.silu if m["gated"] else torch.nn.functional.gelu,
        qk_layernorm=m.get("qk_norm", False), mtp_num_layers=m.get("mtp"), use_cpu_initialization=True,
        hidden_dropout=0.0, attention_dropout=0.0, gradient_accumulation_fusion=False, masked_softmax_fusion=False,
        bias_dropout_fusion=False, bias_activation_fusion=False, calculate_per_token_loss=bool(m.get("per_token")),
        cross_entropy_loss_fusion=bool(m.get("fused_ce")), cross_entropy_fusion_impl="native",
        overlap_p2p_comm=a["overlap_p2p"], batch_p2p_comm=not a["overlap_p2p"], **more)


def chunk(config: Any, a: dict[str, Any], m: dict[str, Any], number: int | None) -> Any:
    """A stage's part of the model, or of its chunk."""
    first = parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=number)
    last = parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=number)
    block = specs.get_gpt_decoder_block_spec(config, False, m["norm"], vp_stage=number)
    layers = block.layer_specs or specs.get_gpt_decoder_layer_specs(config, False, m["norm"])
    for layer in layers:
        if "kv_lora_rank" in m and m.get("transformer_impl") != "local":
            attention = layer.submodules.self_attention.submodules
            attention.linear_q_down_proj = attention.linear_kv_down_proj = Linear
            if m.get("qk_norm"):
                attention.q_layernorm = attention.kv_layernorm = IdentityOp
                attention.linear_q_up_proj = attention.linear_kv_up_proj = NormAndLinear
    mtp = None
    if m.get("mtp"):
        of = block if block.layer_specs else layers[-1]
        mtp = specs.get_gpt_mtp_block_spec(config, of, False, vp_stage=number)
    model = GPTModel(config, block, m["vocab"], m["seq"], pre_process=first, post_process=last,
                     share_embeddings_and_output_weights=m["tied"], position_embedding_type=m["positions"],
                     mtp_block_spec=mtp, vp_stage=number)
    model = model.to(config.params_dtype)
    settings = DistributedDataParallelConfig(
        grad_reduce_in_fp32=m["grad_fp32"], overlap_grad_reduce=a["overlap_grad"],
        overlap_param_gather=a["overlap_param"], use_distributed_optimizer=a["distopt"], bucket_size=a.get("bucket"),
        num_distributed_optimizer_instances=a["instances"])
    if a["overlap_grad"] and not a.get("bucket"):
        settings.bucket_size = max(40000000, 1000000 * parallel_state.get_data_parallel_world_size(True))
    if not a["overlap_grad"]:
        settings.bucket_size = None
    return DistributedDataParallel(config, settings, model, disable_bucketing=bool(number))


def play(case: dict[str, Any], rank: int) -> tuple[Any, int]:
    """Return the calls of a rank, and its parameters."""
    a, m = case["layout"], case["model"]
    dist.Backend.register_backend("recorder", lambda _store, rank, size, _timeout: Recorder(rank, size), devices=["cpu"])
    dist.init_process_group("recorder", store=FakeStore(), rank=rank, world_size=case["world"])
    torch.manual_seed(7)
    patch(bool(m.get("experts")) and a["ep"] > 1)
    parallel_state.initialize_model_parallel(
        a["tp"], a["pp"], a.get("vpp"), context_parallel_size=a["cp"], expert_model_parallel_size=a["ep"],
        expert_tensor_parallel_size=a.get("etp"), num_distributed_optimizer_instances=a["instances"],
        create_gloo_process_groups=False)
    config = config_of(a, m)
    numbers = range(a["vpp"]) if a.get("vpp") else [None]
    chunks = [chunk(config, a, m, number) for number in numbers]
    config.finalize_model_grads_func = finalize_model_grads
    if a["overlap_grad"]:
        config.no_sync_func = [one.no_sync for one in chunks] if a.get("vpp") else chunks[0].no_sync
    optimizer = get_megatron_optimizer(OptimizerConfig(
        optimizer="adam", lr=1e-3, bf16=m["bf16"], params_dtype=config.params_dtype, clip_grad=m["clip"],
        use_distributed_optimizer=a["distopt"], overlap_param_gather=a["overlap_param"]), chunks, use_gloo_process_groups=False)
    config.grad_scale_func = optimizer.scale_loss
    tokens = m["seq"] // a["cp"]

    def forward(_batches: Any, part: Any) -> Any:
        ids = torch.randint(m["vocab"], (a["micro_batch"], tokens + 1))
        positions = torch.arange(tokens).expand(a["micro_batch"], -1)
        mask = torch.ones(a["micro_batch"], 1, tokens, tokens, dtype=torch.bool).triu(1)
        output = part(ids[:, :-1], positions, mask, labels=ids[:, 1:], loss_mask=torch.ones(a["micro_batch"], tokens))

        def loss_of(each: Any) -> Any:
            loss = each.float().sum()
            if m.get("per_token"):
                return loss, torch.tensor(each.numel(), dtype=torch.int), {}
            return loss / each.numel(), {}
        return output, loss_of

    run = get_forward_backward_func()
    for _ in range(2):
        tape.calls.clear()
        for one in chunks:
            one.zero_grad_buffer()
        optimizer.zero_grad()
        tape.phase = "passes"
        run(forward_step_func=forward, data_iterator=[iter(())] * len(chunks) if a.get("vpp") else iter(()),
            model=chunks if a.get("vpp") else chunks[0], num_microbatches=a["microbatches"], seq_length=m["seq"],
            micro_batch_size=a["micro_batch"], forward_only=False)
        tape.phase = "optimizer"
        optimizer.step()
    return tape.calls, sum(p.numel() for one in chunks for p in one.parameters())


def worker(case: dict[str, Any], rank: int, to: Any) -> None:
    with on_cpu(), Types(), contextlib.redirect_stdout(io.StringIO()):
        to.send(play(case, rank))
    to.close()


def folded(program: list[Any]) -> list[Any]:
    """Write what repeats at once as [n, [...]]."""
    out, i = [], 0
    while i < len(program):
        best, saved = (0, 1), 0
        for width in range(1, (len(program) - i) // 2 + 1):
            n = 1
            while program[i + n * width:i + (n + 1) * width] == program[i:i + width]:
                n += 1
            if n > 1 and (n - 1) * width > saved + 1:
                best, saved = (width, n), (n - 1) * width
        width, n = best
        if n > 1:
            out.append([n, folded(program[i:i + width])])
        else:
            out.append(program[i])
        i += width * n or 1
    return out


def record(case: dict[str, Any]) -> dict[str, Any]:
    case = {"id": case["id"], "world": case["world"], "layout": LAYOUT | case.get("layout", {}),
            "model": MODEL | case.get("model", {}), "weights": {}}
    groups: dict[Any, int] = {}
    calls: dict[Any, int] = {}
    programs = {}
    context = multiprocessing.get_context("fork")
    for rank in range(case["world"]):
        end, other = context.Pipe(False)
        process = context.Process(target=worker, args=(case, rank, other))
        process.start()
        other.close()
        try:
            made, weights = end.recv()
        except EOFError:
            raise RuntimeError(f"{case['id']}: rank {rank} failed") from None
        process.join()
        program = []
        for op, group, *others in made:
            key = (op, groups.setdefault(group, len(groups)), *others)
            program.append(calls.setdefault(key, len(calls)))
        case["weights"][str(rank)], programs[str(rank)] = weights, folded(program)
    return case | {"groups": [[name, list(ranks)] for name, ranks in groups], "calls": [list(key) for key in calls],
                   "ranks": programs}


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1])
    book = json.loads(path.read_text())
    wanted = sys.argv[2:]
    torch.set_num_threads(1)
    for number, each in enumerate(book["cases"]):
        if not wanted or each["id"] in wanted:
            try:
                book["cases"][number] = record(each)
                print(each["id"], len(book["cases"][number]["calls"]), "calls", flush=True)
            except RuntimeError as e:
                print(e)
    head = {"system": "megatron-core", "version": megatron.core.__version__, "torch": torch.__version__,
            "format": FORMAT}
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in book["cases"])
    path.write_text(json.dumps(head, separators=(",", ":"))[:-1] + ',"cases":[\n' + lines + "\n]}\n")
