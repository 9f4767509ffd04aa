-- SPDX-License-Identifier: MIT
--
-- What trainers refuse, their steps refuse for the same reason: a row for each check in the source of a system, with
-- its file and line. M: megatron/core of megatron-core 0.19.2 (0.16.1 has the same checks); L: Megatron-LM's
-- megatron/training/arguments.py, commit d98e8a64; P: picotron 59714b1; T: torchtitan 0.3.0; D: torchtitan b5bcd76c. If
-- a message offers a value, a row with that value does not get the same refusal. Each parameter changes calls, is
-- refused, or has a reason for changing none.

local mg = require "moongrid"

local function words_of(text) -- of two words for a parameter the last
  local list, at = {}, {}
  for word in text:gmatch "%S+" do
    local name = word:match "^[%w_]+"
    at[name] = at[name] or #list + 1
    list[at[name]] = word
  end
  return list
end

-- Return why a step is refused, and whether it refuses itself, rather than its plan; or "" and the digest of a proved one.
local loaded = {}
local function told(recipe, world, words)
  loaded[recipe] = loaded[recipe] or mg.load(recipe)
  local done, step = pcall(function() return loaded[recipe]:plan(world, words_of(words)):step() end)
  if not done then
    local why, n = tostring(step):gsub("^.-steps%.%w+: ", "")
    return why, n > 0
  end
  assert.is_true((step:prove()), words)
  return "", step.digest
end

local refused = {
  -- heads, matrices, the vocabulary
  { "megatron", "tp=8 heads=12 hidden=768", "heads 12 is not a multiple of tp, 8; nearest: 8 or 16", "M transformer/transformer_config.py:1323" },
  { "megatron", "tp=4 heads=12 hidden=768 kv_heads=6", "kv_heads 6 neither divides tp nor is a multiple of it, 4; nearest: 4 or 12",
    "M transformer/transformer_config.py:1338" },
  { "megatron", "heads=16 kv_heads=3", "kv_heads 3 does not divide heads, 16; nearest: 2 or 4", "M transformer/attention.py:365" },
  { "megatron", "hidden=100 heads=7", "heads 7 does not divide hidden, 100; nearest: 5 or 10", "L 1332" },
  { "megatron", "tp=8 ffn=1004", "ffn 1004 is not a multiple of tp, 8; nearest: 1000 or 1008", "M tensor_parallel/layers.py:965" },
  { "megatron", "tp=8 vocab=1001", "vocab 1001 is not a multiple of tp, 8; nearest: 1000 or 1008", "M tensor_parallel/layers.py:264" },
  { "megatron", "kv_lora_rank=64 kv_heads=8", "kv_heads 8 with kv_lora_rank: latent attention has no groups of queries; leave out kv_heads or kv_lora_rank",
    "L 1974" },
  { "megatron", "tp=8 kv_lora_rank=64 q_lora_rank=100 transformer_impl=local", "q_lora_rank 100 is not a multiple of tp, 8; nearest: 96 or 104",
    "M tensor_parallel/layers.py:965" },
  { "megatron", "tp=8 kv_lora_rank=64 qk_pos_emb_head_dim=36 transformer_impl=local",
    "kv_lora_rank 64 + 36 is not a multiple of tp, 8; nearest: 60 or 68", "M tensor_parallel/layers.py:965" },
  -- multi-token prediction
  { "megatron", "mtp_num_layers=1", "positions learned with mtp_num_layers 1: the layers that predict more tokens have no learned ones; "
    .. "positions=rope would do", "L validate_args, 'MTP is not supported with'" },
  { "megatron", "pp=2 mtp_num_layers=1 positions=rope overlap=gradients", "tied with mtp_num_layers 1, pp 2 and overlap of gradients: the last "
    .. "stage has a head beside its embedding, without gradients, for which the overlap waits; tied=false would do",
    "M distributed/param_and_grad_buffer.py, per_param_grad_ready_counts in reset()" },
  -- the sequence
  { "megatron", "tp=8 sequence_parallel=true seq=1001", "seq 1001 is not a multiple of tp, 8; nearest: 1000 or 1008",
    "M tensor_parallel/mappings.py:176" },
  { "megatron", "cp=8 seq=1000", "seq 1000 is not a multiple of 2 x cp, 16; nearest: 992 or 1008", "L 1336" },
  { "megatron", "cp=2 tp=2 sequence_parallel=true seq=1002", "seq 1002 is not a multiple of cp x tp, 4; nearest: 1000 or 1004",
    "L 1336, M tensor_parallel/mappings.py:176" },
  -- the batch
  { "megatron", "tp=2 global_batch=9", "global_batch 9 is not a multiple of replicas x micro_batch, 4; nearest: 8 or 12",
    "M num_microbatches_calculator.py:382" },
  { "megatron", "pp=4 vpp=2 layers=8 global_batch=12", "global_batch 12 is not a multiple of replicas x micro_batch x pp, 8; nearest: 8 or 16",
    "M pipeline_parallel/schedules.py:1146" },
  -- stages
  { "megatron", "pp=4 layers=30", "layers 30 is not a multiple of pp, 4; nearest: 28 or 32", "M transformer/transformer_block.py:150" },
  { "megatron", "pp=4 layers=12 vpp=2", "layers 12 is not a multiple of pp x interleave, 8; nearest: 8 or 16",
    "M transformer/transformer_block.py:169" },
  { "megatron", "pp=4 layers=31 embedding_in_split=true loss_in_split=true", "layers 31 + 2 is not a multiple of pp, 4; nearest: 30 or 34",
    "M transformer/transformer_config.py:2076" },
  { "megatron", "pp=4 vpp=2 layers=13 loss_in_split=true", "layers 13 + 1 is not a multiple of pp x interleave, 8; nearest: 7 or 15",
    "M transformer/transformer_config.py:2098" },
  { "megatron", "pp=4 first_stage_layers=3 embedding_in_split=true", "give only stage_layers, or only first_stage_layers and "
    .. "last_stage_layers, or only embedding_in_split and loss_in_split", "M transformer/transformer_config.py:1923" },
  { "megatron", "pp=4 stage_layers=1,2,2,1 last_stage_layers=1", "give only stage_layers, or only first_stage_layers and "
    .. "last_stage_layers, or only embedding_in_split and loss_in_split", "M transformer/transformer_config.py:1945" },
  { "megatron", "pp=4 vpp=2 first_stage_layers=3 layers=15", "first_stage_layers 3 is not a multiple of interleave, 2; nearest: 2 or 4",
    "M transformer/transformer_config.py:2000" },
  { "megatron", "pp=4 vpp=2 last_stage_layers=3 layers=15", "last_stage_layers 3 is not a multiple of interleave, 2; nearest: 2 or 4",
    "M transformer/transformer_config.py:2019" },
  { "megatron", "pp=2 vpp=2 first_stage_layers=2 last_stage_layers=2 layers=4", "first_stage_layers and last_stage_layers with interleave 2 "
    .. "need a stage between these two; pp=3 would do", "M transformer/transformer_layer.py:158, a division by 0" },
  { "megatron", "pp=2 first_stage_layers=3 last_stage_layers=4 layers=8", "layers 8 are not 7, those of the first and last stage, plus a "
    .. "multiple of 0, the other stages' chunks; nearest: 7", "M transformer/transformer_config.py:2035" },
  { "megatron", "pp=4 first_stage_layers=3 last_stage_layers=2 layers=12", "layers 12 are not 5, those of the first and last stage, plus a "
    .. "multiple of 2, the other stages' chunks; nearest: 11 or 13", "M transformer/transformer_config.py:2043" },
  { "megatron", "pp=4 vpp=2 first_stage_layers=2 last_stage_layers=2 layers=10", "layers 10 are not 4, those of the first and last stage, "
    .. "plus a multiple of 4, the other stages' chunks; nearest: 8 or 12", "M transformer/transformer_config.py:2051" },
  { "megatron", "pp=4 stage_layers=1,2,3", "stage_layers has 3 numbers, and there are 4 stages", "M transformer/pipeline_parallel_layer_layout.py:40" },
  { "megatron", "pp=4 stage_layers=1,2,3,1 layers=8", "stage_layers has 7 layers in all, and the model has 8",
    "M transformer/pipeline_parallel_layer_layout.py:106" },
  { "megatron", "pp=4 overlap_p2p=true", "overlap_p2p needs interleave of 2 or more, as in schedules.py", "M pipeline_parallel/schedules.py:2154" },
  { "megatron", "interleave=2", "interleave 2 needs pp of 2 or more and the schedule 1f1b", "L 1001" },
  -- experts
  { "megatron", "ep=2", "ep 2 needs experts; experts=2 would do", "M transformer/transformer_config.py:1468" },
  { "megatron", "moe_ffn=128", "moe_ffn 128 needs experts; give experts, or leave out moe_ffn", "M transformer/transformer_config.py:1551" },
  { "megatron", "topk=2", "topk 2 needs experts; give experts, or leave out topk", "no layer has a router" },
  { "megatron", "shared_ffn=128", "shared_ffn 128 needs experts; give experts, or leave out shared_ffn", "no layer has a router" },
  { "megatron", "dense_layers=2", "dense_layers 2 needs experts; give experts, or leave out dense_layers", "no layer has a router" },
  { "megatron", "ep=4 experts=6", "experts 6 is not a multiple of ep, 4; nearest: 4 or 8", "M transformer/moe/moe_layer.py:185" },
  { "megatron", "topk=9 experts=8", "topk 9 is more than the 8 experts; nearest is 8", "M transformer/moe/moe_utils.py, torch.topk" },
  { "megatron", "tp=2 experts=4 moe_ffn=129", "moe_ffn 129 is not a multiple of etp, 2; nearest: 128 or 130", "M tensor_parallel/layers.py:965" },
  { "megatron", "tp=2 experts=4 shared_ffn=129", "shared_ffn 129 is not a multiple of tp, 2; nearest: 128 or 130",
    "M tensor_parallel/layers.py:965" },
  { "megatron", "tp=2 experts=4 bias=true", "bias with experts and etp 2: experts have biases only if etp is 1, shared experts never; "
    .. "bias=false would do", "M transformer/transformer_config.py:2279" },
  { "megatron", "experts=4 shared_ffn=128 bias=true", "bias with shared_ffn: experts have biases only if etp is 1, shared experts never; "
    .. "bias=false would do", "M transformer/moe/shared_experts.py:124" },
  { "megatron", "tp=2 experts=4 sequence_parallel=false", "sequence_parallel is false with experts and tp 2; true would do",
    "M transformer/moe/moe_layer.py:629" },
  -- the optimizer
  { "megatron", "overlap=weights zero=0", "overlap of weights needs zero=1, the distributed optimizer", "L 1025" },
  { "megatron", "overlap=weights zero=1", "overlap of weights needs that of gradients; overlap=gradients,weights would do", "L 1028" },
  { "megatron", "weight_type=fp32 grad_type=bf16", "grad_type bf16 with weight_type fp32: gradients have the type of the weights, or "
    .. "fp32; grad_type=fp32 would do", "M distributed/distributed_data_parallel.py" },
  { "megatron", "instances=2 zero=0", "zero 0 has no distributed optimizer, but 2 instances of it are given; zero 1 would do",
    "M distributed/param_and_grad_buffer.py:733" },

  { "picotron", "tp=8 heads=12 kv_heads=4 hidden=768", "heads 12 is not a multiple of tp, 8; nearest: 8 or 16", "P model.py:95" },
  { "picotron", "tp=8 heads=16 kv_heads=4", "kv_heads 4 is not a multiple of tp, 8; nearest: 8", "P model.py:96" },
  { "picotron", "hidden=100 heads=7", "heads 7 does not divide hidden, 100; nearest: 5 or 10", "P model.py:257" },
  { "picotron", "heads=16 kv_heads=3", "kv_heads 3 does not divide heads, 16; nearest: 2 or 4", "P model.py:258" },
  { "picotron", "hidden=96 heads=32", "hidden 96 / heads 32 is odd, and rotary positions need pairs; nearest heads: 24 or 48", "P model.py:22" },
  { "picotron", "tp=8 ffn=1004", "ffn 1004 is not a multiple of tp, 8; nearest: 1000 or 1008", "P tensor_parallel/tensor_parallel.py:81" },
  { "picotron", "tp=8 vocab=1001", "vocab 1001 is not a multiple of tp, 8; nearest: 1000 or 1008", "P tensor_parallel/tensor_parallel.py:226" },
  { "picotron", "cp=8 seq=1001", "seq 1001 is not a multiple of cp, 8; nearest: 1000 or 1008", "P train.py:85" },
  { "picotron", "pp=8 layers=6", "layers 6 are fewer than the 7 stages before the last; nearest is 7", "P checkpoint.py:58" },

  { "torchtitan", "tp=8 heads=12 hidden=768", "heads 12 is not a multiple of tp, 8; nearest: 8 or 16", "T models/common/decoder.py:149" },
  { "torchtitan", "tp=8 heads=16 kv_heads=4", "kv_heads 4 is not a multiple of tp, 8; nearest: 8", "T models/common/decoder.py:154" },
  { "torchtitan", "tp=8 seq=1001", "seq 1001 is not a multiple of tp, 8; nearest: 1000 or 1008", "T trainer.py:307" },
  { "torchtitan", "tp=2 cp=2 seq=1002", "seq 1002 is not a multiple of 2 x cp x tp, 8; nearest: 1000 or 1008", "T trainer.py:307" },
  { "torchtitan", "tp=2 cp=2 seq=1002 sequence_parallel=false", "seq 1002 is not a multiple of 2 x cp, 4; nearest: 1000 or 1004",
    "T trainer.py:307" },
  { "torchtitan", "tp=2 recompute=selective", "recompute selective with tp 2 has not been recorded, so its calls are not known; "
    .. "tp 1 would do", "no recording" },
  { "torchtitan", "dp_replicate=8", "8 replicas of whole models: torchtitan does not use FSDP2 there, and its calls are not known; "
    .. "2 shards or more would do", "T models/llama3/infra/parallelize.py, replicate" },
  { "torchtitan", "global_batch=12", "global_batch 12 is not a multiple of replicas x micro_batch, 8; nearest: 8 or 16", "T trainer.py:422" },
  { "torchtitan", "cp=2 spmd_backend=partial_dtensor", "cp 2 needs spmd_backend=spmd_types, not partial_dtensor",
    "D distributed/context_parallel/api.py:26" },
}

-- What the systems take, although the steps of others refuse it.
local taken = {
  { "megatron", "sequence_parallel=true seq=1001" }, -- without tp it is off: L 1433
  { "megatron", "pp=2 vpp=2" }, -- recorded; Megatron-LM's L 1006 refuses it
  { "megatron", "tp=4 heads=12 hidden=768 kv_heads=2" }, -- two ranks share a head: M transformer/attention.py:358
  { "megatron", "head_dim=128 hidden=100 heads=7" },
  { "megatron", "experts=4 bias=true" },
  { "picotron", "pp=4 layers=7" },
  { "picotron", "pp=8 layers=7" }, -- the last stage has a norm and the head
  { "torchtitan", "seq=1001" },
  { "torchtitan", "recompute=selective" },
  { "torchtitan", "tp=2 seq=1001 sequence_parallel=false" },
  { "torchtitan", "cp=2 spmd_backend=partial_dtensor version=0.3.0" },
}

describe("a bundled step", function()
  it("refuses what its system refuses, and takes the value that it offers", function()
    local offered = 0
    for _, row in ipairs(refused) do
      local recipe, words, message, source = table.unpack(row)
      assert.equal(message, (told(recipe, 8, words)), source)
      local name, value = message:match "(%w+)=(%S+) would do"
      if not name then name = message:match "heads: (%d+)" and "heads" or message:match "^[%w_]+" end
      for near in (value or message:match "nearest.-: ?(.+)" or message:match "nearest is (%d+)" or ""):gmatch "[^ ]+" do
        if near ~= "or" then
          local changed, n = (" " .. words):gsub(" " .. name .. "=%S+", " " .. name .. "=" .. near)
          local again = told(recipe, 8, n > 0 and changed or words .. " " .. name .. "=" .. near)
          assert.are_not.equal(message:match "^%S+ %S+ %S+ %S+", again:match "^%S+ %S+ %S+ %S+", words .. ": " .. near)
          offered = offered + 1
        end
      end
    end
    assert.is_true(offered > 60)
    for _, row in ipairs(taken) do assert.equal("", (told(row[1], 8, row[2])), row[2]) end
  end)

  -- Beside these words, some value of each parameter makes another step, or the step refuses it; or nothing follows from it in
  -- the step, for a reason.
  local beside = {
    megatron = "tp=2 pp=2 experts=4 vpp=2 layers=8 hidden=64 heads=4 seq=64 vocab=64 global_batch=64",
    picotron = "tp=2 pp=2 layers=8 hidden=64 heads=4 seq=64 vocab=64 global_batch=64",
    torchtitan = "tp=2 layers=8 hidden=64 heads=4 seq=64 vocab=64 global_batch=64",
  }
  local tried = { flag = { "true", "false" }, size = { 2, 4, 8, 1, 3 }, integer = { 2, 4 }, index = { 2, 1 }, number = { 1.5 } }
  local values = { -- of other kinds
    order = "tp-cp-dp-ep-pp", norm = "rms", positions = "rope", dispatcher = "allgather", recompute = "full", fp8 = "e4m3",
    schedule = "gpipe", weight_type = "fp32", grad_type = "bf16", overlap = "gradients", stage_layers = "1,2,2,3", get_embedding_ranks = "all",
    get_position_embedding_ranks = "all", get_loss_ranks = "-1", hierarchical_context_parallel_sizes = "2", version = "0.16",
    pipeline_model_parallel_comm_backend = "ucc", sharp_enabled_group = "dp", high_priority_stream_groups = "ep",
    nccl_communicator_config = '{"dp":{"max_ctas":4}}', distributed_timeout_minutes = 5, spmd_backend = "partial_dtensor",
    nccl_communicator_config_path = "", transformer_impl = "local",
  }
  local more = { -- what a parameter is beside, so that it counts
    megatron = {
      qk_pos_emb_head_dim = "kv_lora_rank=16", qk_head_dim = "kv_lora_rank=16", v_head_dim = "kv_lora_rank=16",
      q_lora_rank = "kv_lora_rank=16", transformer_impl = "kv_lora_rank=16", mtp_num_layers = "positions=rope", load = "dropless=true", bucket = "overlap=gradients hidden=512",
      hierarchical_context_parallel_sizes = "cp=2", dynamic_context_parallel = "version=dev", disable_bias_linear = "etp=1",
      schedule = "vpp=1", tied = "tp=1", untie_embeddings_and_output_weights = "tp=1",
    },
    picotron = {}, torchtitan = {},
  }
  local silent = {
    megatron = {
      version = "the releases make the same calls", pipeline_model_parallel_comm_backend = "a backend", use_sharp = "a backend",
      sharp_enabled_group = "a backend", high_priority_stream_groups = "a priority", nccl_communicator_config = "options",
      nccl_communicator_config_path = "options", distributed_timeout_minutes = "a timeout", order = "other ranks in the same calls",
      get_position_embedding_ranks = "position embeddings are on one stage", get_loss_ranks = "a family more",
      create_gloo_process_groups = "for checkpoints", create_all_gather_groups = "for Megatron-FSDP",
      create_all_gather_group = "for Megatron-FSDP", for_expert_parallelism = "for Megatron-FSDP",
      create_tp_gtp_remat_groups = "for Muon", min_dynamic_context_parallel_size = "for dynamic_cp",
    },
    picotron = { dp_size = "it follows from the others" }, torchtitan = { version = "its checks differ", dp_shard = "it follows from the others" },
  }
  it("has no parameter that is ignored without a reason", function()
    local wrong = {}
    for recipe, words in pairs(beside) do
      for _, param in ipairs(mg.load(recipe):info().params) do
        local base = words .. " " .. (more[recipe][param.name] or "")
        local why, digest = told(recipe, 16, base)
        assert.equal("", why, base)
        local counts, name = false, param.name
        for _, alias in ipairs(param.aliases) do name = base:find("%f[%w]" .. alias .. "=") and alias or name end
        for _, value in ipairs(values[param.name] and { values[param.name] } or tried[param.kind] or { "x" }) do
          local _, other = told(recipe, 16, base .. " " .. name .. "=" .. value)
          counts = counts or other and other ~= digest or false
        end
        if counts == (silent[recipe][param.name] ~= nil) then
          wrong[#wrong + 1] = ("%s %s %s"):format(recipe, param.name, counts and "is not ignored" or "is ignored")
        end
      end
    end
    assert.same({}, wrong)
  end)
end)
