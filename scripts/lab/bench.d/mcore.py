# SPDX-License-Identifier: MIT
"""Print the CPU time of Megatron-core's own initialize_model_parallel for one rank, with a new_group
in place of torch's that does nothing: mcore.py ROUNDS WORLD...
Needs torch, and megatron-core to import."""
import importlib
import importlib.util
import os
import sys
import time
import types

import torch.distributed as dist

where = importlib.util.find_spec("megatron").submodule_search_locations
core = types.ModuleType("megatron.core")  # the package, without all that its __init__ imports
core.__path__ = [os.path.join(path, "core") for path in where]
sys.modules["megatron.core"] = core
from megatron.core import parallel_state  # noqa: E402  pylint: disable=wrong-import-position

calls = 0


def new_group(*_args, **_more):
    global calls
    calls += 1
    return object()


for argument in sys.argv[2:]:
    world = int(argument)
    dist.is_initialized = lambda: True
    dist.get_world_size = lambda *_args, world=world, **_more: world
    dist.get_rank = lambda *_args, world=world, **_more: world // 2 + 5
    dist.new_group = new_group
    for _ in range(int(sys.argv[1])):
        calls = 0
        importlib.reload(parallel_state)  # nothing is initialized again
        start = time.process_time()
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=4 if world == 64 else 8, context_parallel_size=2,
            pipeline_model_parallel_size=4 if world == 64 else 8,
            expert_model_parallel_size=4 if world == 64 else 8, expert_tensor_parallel_size=1)
        print(f"megatron {world}\t{1e6 * (time.process_time() - start):.3f}")
    print(f"megatron calls {world}\t{calls}")
