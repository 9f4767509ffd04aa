# SPDX-License-Identifier: MIT
"""The groups of a plan (moongrid plan --json) by torch.distributed.new_group on gloo, the way
Megatron does it: every group by every rank. Under mpirun: gloo.py PLAN.json PORT barrier|free"""
import json
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

rank, world = (int(os.environ.get(f"OMPI_COMM_WORLD_{what}") or os.environ[f"PMI_{what}"]) for what in ("RANK", "SIZE"))
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
with open(sys.argv[1], encoding="utf-8") as file:
    families = json.load(file)["families"].values()
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{sys.argv[2]}", rank=rank, world_size=world,
                        timeout=timedelta(seconds=100))
if sys.argv[3] == "free":  # torch 2.1 and later have no barrier on the store any more
    for name in ("_store_based_barrier", "barrier"):
        if hasattr(dist.distributed_c10d, name):
            setattr(dist.distributed_c10d, name, lambda *args, **more: None)
first = torch.zeros(1)
dist.all_reduce(first)
threads = len(os.listdir("/proc/self/task"))
kept, calls = [], 0
start = time.monotonic()
for family in families:
    for group in family["groups"]:
        made = dist.new_group(group)
        calls += 1
        if rank in group:
            kept.append((made, group))
end = time.monotonic()
span = torch.tensor([-start, end], dtype=torch.float64)
dist.all_reduce(span, op=dist.ReduceOp.MAX)
for made, group in kept:
    total = torch.tensor([rank])
    dist.all_reduce(total, group=made)
    assert total.item() == sum(group)
if rank == 0:
    print(f"cold\t{1e3 * (span[0] + span[1]).item():.6f}\ncalls\t{calls}\ncomms\t{len(kept)}")
    print(f"threads added\t{len(os.listdir('/proc/self/task')) - threads}", flush=True)
dist.all_reduce(first)
os._exit(0)
