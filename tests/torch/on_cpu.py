# SPDX-License-Identifier: MIT
"""Megatron-core on a CPU. It asks for tensors and random numbers of a GPU; this answers with the CPU's, and
is all that is changed in it. Both runs that are compared use it."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _Devices(TorchFunctionMode):
    """device="cuda" means the CPU, and tensor.cuda() the tensor."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.Tensor.cuda:
            return args[0]
        if "cuda" in str(kwargs.get("device", "")):
            kwargs["device"] = "cpu"
        return function(*args, **kwargs)


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    from megatron.core.tensor_parallel.random import CudaRNGStatesTracker
    from megatron.core.transformer.moe import moe_utils
    vars(moe_utils).setdefault("te_general_gemm", None)  # 0.16 reads it without Transformer Engine, too
    torch.cuda.current_device = lambda: "cpu"
    torch.cuda.current_stream = torch.cuda.synchronize = lambda *_args: None
    CudaRNGStatesTracker.fork = lambda *_args: contextlib.nullcontext()  # nothing here is random: no dropout
    with _Devices():
        yield
