# SPDX-License-Identifier: MIT
"""Append a measured training step to a file that `moongrid calibrate` reads. Call `note` on rank 0 after warm-up steps."""
import json


def note(path, recipe, machine, world, params, seconds, memory=None):
    """seconds: of one step, the median of several; memory: the largest torch.cuda.max_memory_reserved() of any rank."""
    run = {"recipe": recipe, "machine": machine, "world": world, "params": params, "seconds": seconds}
    if memory:
        run["memory"] = memory
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(run) + "\n")
