# SPDX-License-Identifier: MIT
"""moongrid.torch.checked follows real steps of Megatron-core on 8 gloo processes, and names the first call that differs."""
from __future__ import annotations

from typing import Any

from processes import Tap, need, run

need("torch", "torch")
need("megatron.core", "megatron-core")

from megatron.core import parallel_state
from megatron.core.optimizer.clip_grads import get_grad_norm_fp32

import gpt
import moongrid.torch as mt
from on_cpu import on_cpu
from tap import refusal

LAYOUTS = [{"tp": 2, "pp": 2}, {"tp": 4, "pp": 2}, {"tp": 1, "pp": 2, "ep": 2}, {"tp": 2, "pp": 2, "mtp": 2}]
MODEL = {"layers": 4, "hidden": 32, "heads": 4, "vocab": gpt.VOCABULARY, "seq": gpt.LENGTH, "micro_batch": gpt.BATCH,
         "weight_type": "fp32"}


def follow(_rank: int, layout: dict[str, int], lacks: str = "") -> Any:
    with on_cpu():
        experts = {"experts": 4, "topk": 2, "dispatcher": "allgather", "bias": False} if "ep" in layout else {}
        deeper = {"mtp_num_layers": layout["mtp"], "positions": "none"} if "mtp" in layout else {}
        sizes = {name: size for name, size in layout.items() if name != "mtp"}
        replicas = gpt.WORLD // (layout["tp"] * layout["pp"])
        groups = mt.groups("megatron", {"version": gpt.VERSION, **sizes, **MODEL, **experts, **deeper,
                                        "global_batch": gpt.MICROBATCHES * gpt.BATCH * replicas}, sort_ranks=True)
        pgs = gpt.collection(groups)
        if deeper:  # its layers know no other groups
            for name, group in {"PIPELINE_MODEL_PARALLEL_GROUP": pgs.pp, "CONTEXT_PARALLEL_GROUP": pgs.cp,
                                "DATA_PARALLEL_GROUP": pgs.dp, "DATA_PARALLEL_GROUP_WITH_CP": pgs.dp_cp,
                                "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP": pgs.dp_cp}.items():
                setattr(parallel_state, "_" + name, group)
        model = gpt.build(pgs, layout)
        if lacks == "gradients":
            model.config.finalize_model_grads_func = None

        def step() -> None:
            gpt.passes(pgs, model, [])
            grads = [p.main_grad for p in model.parameters()]
            if lacks != "norm":
                get_grad_norm_fp32(grads, grad_stats_parallel_group=pgs.mp)
                if experts:
                    get_grad_norm_fp32(grads, grad_stats_parallel_group=pgs.tp_ep_pp)

        def steps() -> None:
            for _ in range(2):
                step()
                check.end()

        with mt.checked(groups) as check:
            if lacks:
                return refusal(steps)
            steps()
            return check.calls, 2 * sum(1 for call in groups.plan.step().calls(_rank))


if __name__ == "__main__":
    tap = Tap()
    for layout in LAYOUTS:
        name = " x ".join(f"{dim} {size}" for dim, size in layout.items())
        made = run(gpt.WORLD, follow, layout)
        tap.check(all(calls == planned > 0 for calls, planned in made), f"{name}: each call is the step's", made)
    told = run(gpt.WORLD, follow, LAYOUTS[0], "gradients")
    tap.check(all("the call is all_reduce(" in words and "and the step has all_reduce(dp_cp)" in words for _, words in told),
              "gradients that are not summed are named", told)
    told = run(gpt.WORLD, follow, LAYOUTS[0], "norm")
    tap.check(all("the step has not ended: it has all_reduce(mp) of 4 bytes" in words for _, words in told),
              "a norm that is not summed is named", told)
    tap.end()
