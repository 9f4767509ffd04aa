# SPDX-License-Identifier: MIT
"""Checkpoints that transformers writes of small models, through `moongrid reshard --to llama` and back, each element compared
by numpy: cut, fused, under Megatron's names and as other types. What each rank gets is also cut by numpy on its own."""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from processes import ROOT, Tap, need

for module in ("torch", "transformers", "safetensors", "numpy"):
    need(module, module)

import numpy as np
import torch
import transformers
from safetensors.torch import load_file

Arrays = dict[str, torch.Tensor]
SMALL = dict(vocab_size=120, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=8,
             num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
EXPERTS = dict(num_hidden_layers=4, moe_intermediate_size=48, num_experts=4, num_experts_per_tok=2)
LATENT = dict(q_lora_rank=24, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=12, n_routed_experts=4,
              n_shared_experts=2, num_experts_per_tok=2, moe_intermediate_size=48, first_k_dense_replace=1, n_group=2,
              topk_group=1, num_hidden_layers=3, num_key_value_heads=8)
# name: its config, the sizes that the recipe takes; whether its layout of Megatron is there, too
MODELS: dict[str, tuple[str, dict[str, Any], list[str], bool]] = {
    "llama": ("LlamaConfig", dict(attention_bias=True, mlp_bias=True), ["tp=4 pp=3", "tp=8", "tp=2 pp=2 names=fused"], True),
    "mistral": ("MistralConfig", dict(head_dim=16, sliding_window=None), ["tp=2 pp=3", "tp=8 pp=3", "names=fused"], True),
    "qwen2": ("Qwen2Config", dict(tie_word_embeddings=True), ["tp=4 pp=3", "tp=8", "tp=2 names=fused"], True),
    "qwen3": ("Qwen3Config", dict(head_dim=24, tie_word_embeddings=True), ["tp=2 pp=2", "tp=4"], True),
    "phi3": ("Phi3Config", {}, ["tp=2 pp=3", "tp=1"], False),
    "mixtral": ("MixtralConfig", dict(num_local_experts=4), ["tp=2 ep=2 etp=1", "tp=4 pp=3 ep=1", "ep=4 tp=4 etp=1",
                                                             "ep=2 experts=stacked"], True),
    "qwen2_moe": ("Qwen2MoeConfig", dict(EXPERTS, shared_expert_intermediate_size=80, decoder_sparse_step=2),
                  ["tp=2 ep=2 etp=1", "pp=2 ep=4", "tp=4 ep=2 etp=2 experts=stacked"], True),
    "qwen3_moe": ("Qwen3MoeConfig", dict(EXPERTS, head_dim=16, mlp_only_layers=[1]), ["tp=8 ep=4 etp=2", "pp=3"], True),
    "deepseek_v3": ("DeepseekV3Config", LATENT, ["tp=4 ep=2 etp=2", "tp=8 pp=2", "ep=4 experts=stacked"], True),
}


def moongrid(*words: str) -> str:
    done = subprocess.run([str(ROOT / "build/moongrid"), *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def stored(folder: Path) -> Arrays:
    """All tensors of a folder that transformers wrote."""
    return {name: tensor for file in folder.glob("*.safetensors") for name, tensor in load_file(file).items()}


def whole(folder: Path) -> Arrays:
    """All tensors of a folder that moongrid wrote, put together by its index: each element is in one part."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    files = {file.name: load_file(file) for file in folder.glob("*.safetensors")}
    made: Arrays = {}
    for name, about in index["parts"].items():
        times = np.zeros(about["shape"], int)
        for part in about["parts"]:
            piece = files[part["file"]][name]
            runs = [np.concatenate([np.arange(at, at + n) for at, n in zip(run[::2], run[1::2])]) for run in part["runs"]]
            tensor = made.setdefault(name, torch.zeros(about["shape"], dtype=piece.dtype))
            tensor[tuple(torch.from_numpy(grid) for grid in np.ix_(*runs))] = piece
            times[np.ix_(*runs)] += 1
        assert (times == 1).all(), name
    return made


def same(a: Arrays, b: Arrays) -> str:
    """Return "" or what differs."""
    if a.keys() != b.keys():
        return f"names: {sorted(a.keys() ^ b.keys())[:6]}"
    for name in a:
        if a[name].dtype != b[name].dtype or a[name].shape != b[name].shape or not torch.equal(a[name], b[name]):
            return f"{name}: {a[name].dtype} {tuple(a[name].shape)}, {b[name].dtype} {tuple(b[name].shape)}"
    return ""


def rows(tensor: torch.Tensor, rank: int, of: int, heads: int) -> torch.Tensor:
    """The heads of a rank: their share of the rows, or with fewer heads than ranks one that neighbours share."""
    each = tensor.shape[0] // heads
    first, n = (rank * heads // of, max(1, heads // of))
    return tensor[first * each:(first + n) * each]


def check_ranks(tap: Tap, name: str, arrays: Arrays, config: str, heads: int, kv: int) -> None:
    """What `plan --tensor` gives each rank of tp=8 of queries and keys, beside slices of numpy."""
    if "model.layers.0.self_attn.k_proj.weight" not in arrays:
        return
    wrong = []
    for short, n in (("q", heads), ("k", kv)):
        full = f"model.layers.0.self_attn.{short}_proj.weight"
        for rank in range(8):
            plan = json.loads(moongrid("plan", "llama", "--world", "8", "tp=8", "--params", config, "--json", "--rank",
                                       str(rank)))
            runs = plan["tensors"][full]["runs"]
            got = arrays[full][runs[0][0][0]:runs[0][0][0] + runs[0][0][1]]
            if not torch.equal(got, rows(arrays[full], rank, 8, n)):
                wrong.append((short, rank, runs))
    tap.check(not wrong, f"{name}: each of 8 ranks has its heads, and {kv} heads of keys have copies", wrong)


def megatron_qkv(arrays: Arrays, at: str, kv: int) -> torch.Tensor:
    """linear_qkv as Megatron has it: a group's queries, its key, its value."""
    q, k, v = (arrays[f"{at}.self_attn.{x}_proj.weight"] for x in "qkv")
    return torch.cat([x.reshape(kv, -1, x.shape[1]) for x in (q, k, v)], 1).reshape(-1, q.shape[1])


def check_model(tap: Tap, name: str, folder: Path) -> None:
    kind, settings, layouts, megatron = MODELS[name]
    torch.manual_seed(1)
    config = getattr(transformers, kind)(**{**SMALL, **settings})
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p))
    files = folder / "hf"
    model.save_pretrained(files, max_shard_size="60KB")
    arrays, config_json = stored(files), str(files / "config.json")
    converted = ["--convert"] if any(a.dtype != torch.bfloat16 for a in arrays.values()) or "deepseek" in name else []
    # later releases of transformers keep the routers of some models as f32
    router = {a.dtype for key, a in arrays.items() if key.endswith(".gate.weight")} == {torch.float32}
    routed = ["router_type=f32"] if router else []
    wanted = dict(arrays)
    for key in wanted:  # the recipe keeps this one as f32, as released models have it
        if key.endswith("e_score_correction_bias"):
            wanted[key] = wanted[key].float()
    for i, layout in enumerate(layouts):
        out = folder / f"out{i}"
        moongrid("reshard", str(files), "--to", "llama", *layout.split(), *routed, *converted, "-o", str(out))
        made, back = whole(out), folder / f"back{i}"
        if "names=fused" in layout:
            want = torch.cat([arrays[f"model.layers.1.self_attn.{x}_proj.weight"] for x in "qkv"])
            tap.check(torch.equal(made["model.layers.1.self_attn.qkv_proj.weight"], want), f"{name}, {layout}: q, k, v in one")
        elif "stacked" in layout:
            first = next(key for key in arrays if key.endswith("experts.0.w2.weight") or key.endswith("experts.0.down_proj.weight"))
            want = torch.stack([arrays[first.replace("experts.0", f"experts.{k}")] for k in range(4)])
            tap.check(torch.equal(made[first.replace("experts.0", "experts")], want), f"{name}, {layout}: experts in one")
        else:
            why = same(made, wanted)
            tap.check(not why, f"{name}, {layout}: as transformers wrote it", why)
        moongrid("reshard", str(out), "--to", "llama", "--world", "1", *routed, "--params", config_json, "-o", str(back))
        why = same(whole(back), wanted)
        tap.check(not why, f"{name}, {layout}: and back", why)
    check_ranks(tap, name, arrays, config_json, 8, config.num_key_value_heads)
    if megatron:
        out, back = folder / "megatron", folder / "from_megatron"
        moongrid("reshard", str(files), "--to", "llama", "tp=2", "names=megatron", *routed, *converted, "-o", str(out))
        made = whole(out)
        if "decoder.layers.1.self_attention.linear_qkv.weight" in made:
            want = megatron_qkv(arrays, "model.layers.1", config.num_key_value_heads)
            tap.check(torch.equal(made["decoder.layers.1.self_attention.linear_qkv.weight"], want), f"{name}: Megatron's qkv")
        moongrid("reshard", str(out), "--to", "llama", "--world", "1", *routed, "--params", config_json, "-o", str(back))
        why = same(whole(back), wanted)
        tap.check(not why, f"{name}: from Megatron's names back", why)
    for short, dtype in (("f32", torch.float32), ("f16", torch.float16)):
        out = folder / short
        moongrid("reshard", str(files), "--to", "llama", "--world", "1", f"type={short}", "--convert", "-o", str(out))
        why = same(whole(out), {key: a.float() if "e_score" in key else a.to(dtype) for key, a in wanted.items()})
        tap.check(not why, f"{name}: as {short}, as torch converts it", why)


def main() -> None:
    tap = Tap()
    print(f"# transformers {transformers.__version__}, torch {torch.__version__}")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for name in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            check_model(tap, name, Path(folder))
    tap.end()


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
