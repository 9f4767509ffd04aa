# SPDX-License-Identifier: MIT
"""Append a measured training step to a file that `moongrid calibrate` reads. Call it on rank 0 after warm steps."""
import json


def note(path, recipe, machine, world, params, seconds, memory=None):
    """Seconds: the median of some steps; memory: torch.cuda.max_memory_reserved() of the rank with the most."""
    run = {"recipe": recipe, "machine": machine, "world": world, "params": params, "seconds": seconds}
    if memory:
        run["memory"] = memory
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(run) + "\n")
