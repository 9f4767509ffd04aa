# SPDX-License-Identifier: MIT
"""What the tests here share: the TAP lines of ../python, and N processes that torch.distributed joins by gloo."""
from __future__ import annotations

import os
import socket
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from tap import ROOT, Tap, need  # noqa: E402  # as names of this file, too

__all__ = ["ROOT", "Tap", "need", "run"]
os.environ.update(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", PYTHONWARNINGS="ignore")


def _child(rank: int, world: int, port: int, work: Callable[..., Any], arguments: tuple[Any, ...],
           results: Any) -> None:
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world,
                                timeout=timedelta(seconds=60))
        results.put((rank, work(rank, *arguments), None))
        dist.barrier()  # rank 0 may not leave before the others have what they need
    except BaseException:
        results.put((rank, None, traceback.format_exc()))
    results.close()
    results.join_thread()
    os._exit(0)  # without the destructors of what a failure left half made


def run(world: int, work: Callable[..., Any], *arguments: Any, seconds: int = 120) -> list[Any]:
    """work(rank, *arguments) in `world` processes, forked so that torch is imported once. Returns what each
    returned; raises with the trace of those that failed."""
    import torch.multiprocessing as mp
    context = mp.get_context("fork")
    results = context.Queue()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    children = [context.Process(target=_child, args=(rank, world, port, work, arguments, results))
                for rank in range(world)]
    for child in children:
        child.start()
    got: list[tuple[int, Any, str | None]] = []
    try:
        while len(got) < world:
            got.append(results.get(timeout=seconds))
    finally:
        for child in children:
            child.join(timeout=10 if len(got) == world else 0)
            child.kill()
    traces: dict[str, list[int]] = {}
    for rank, _, trace in sorted(got, key=lambda g: g[0]):
        if trace:
            traces.setdefault(trace, []).append(rank)
    if traces:
        raise RuntimeError("\n".join(f"ranks {ranks}: {trace}" for trace, ranks in traces.items()))
    return [value for _, value, _ in sorted(got, key=lambda g: g[0])]
