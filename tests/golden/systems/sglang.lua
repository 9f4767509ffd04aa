-- SPDX-License-Identifier: MIT
local vllm = require "systems.vllm" -- SGLang's GroupCoordinator is vLLM's

return { recipe = "sglang", backend = "nccl", kinds = vllm.kinds, query = vllm.query }
