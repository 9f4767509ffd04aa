-- SPDX-License-Identifier: MIT
--
-- The bundled steps: `steps.NAME { settings }` makes the step of a recipe, which then has the parameters of that step.
-- transformer.lua is loaded when a step is first evaluated.

local core, shared, parameters = ...
local param = parameters.param
local makers, params = {}, setmetatable({}, { __mode = "k" }) -- by step: its parameters by name

local function transformer_params()
  return {
    layers = param.size(nil, "layers of the model, a multiple of the stages (32)"),
    hidden = param.size(nil, "width of the model (4096)"),
    heads = param.size(nil, "attention heads (32)"),
    kv_heads = param.size(nil, "heads of keys and values (as heads)"),
    ffn = param.size(nil, "width of the feed-forward (4 x hidden)"),
    vocab = param.size(nil, "words of the vocabulary (51200)"),
    seq = param.size(nil, "tokens of a sample (2048)"),
    micro_batch = param.size(nil, "samples of a microbatch (1)"),
    global_batch = param.size(nil, "samples of a step (4 microbatches for each stage and replica)"),
    experts = param.size(nil, "experts of a layer; left out, the model is dense"),
    topk = param.size(nil, "experts that a token goes to (2)"),
    moe_ffn = param.size(nil, "width of an expert (as ffn)"),
    recompute = param.text(nil, "what the backward pass computes again: none, selective or full (none)"),
    sequence_parallel = param.flag(nil, "activations between tensor-parallel regions are cut by the sequence (false)"),
    interleave = param.size(nil, "chunks of layers of a stage (1)"),
    schedule = param.text(nil, "of the pipeline: 1f1b, gpipe or zero_bubble (1f1b)"),
    zero = param.index(nil, "what data parallelism shards: 1 the optimizer, 2 gradients, 3 weights (0)"),
    overlap = param.flag(nil, "gradients and weights travel on a stream of their own (false)"),
    weight_type = param.text(nil, "of weights and activations: fp8, bf16, fp16 or fp32 (bf16)"),
    grad_type = param.text(nil, "of gradients that are summed over replicas (fp32)"),
  }
end

-- The families by role: a name, or a list of which the first that the plan has counts; false: none.
local roles = { tp = "tp", pp = "pp", dp = { "dp_cp", "dp" }, cp = "cp", ep = "ep",
                expert_dp = { "expt_dp", "expert_data" } }
local function is_text(v) return type(v) == "string" end

function makers.transformer(settings)
  local where = core.where()
  settings = settings == nil and {} or settings
  if type(settings) ~= "table" then
    core.raise_at(where, "steps.transformer takes a table of settings, not " .. shared.show(settings))
  end
  local own, families, defaults = transformer_params(), {}, {}
  for role, name in pairs(roles) do families[role] = name end
  for key, value in shared.sorted_pairs(settings) do
    if roles[key] then
      if not is_text(value) and value ~= false and not shared.is_list(value, is_text) then
        core.raise_at(where, string.format("steps.transformer: '%s' is the name of a family, a list of names or false, "
          .. "not %s", key, shared.show(value)))
      end
      families[key] = value
    elseif own[key] then
      defaults[key] = value
    else
      local known = core.keys(own)
      for _, role in ipairs(core.keys(roles)) do known[#known + 1] = role end
      core.unknown("setting of steps.transformer", shared.word(key), known, where)
    end
  end
  local make
  local function step(s, p)
    make = make or core.library("transformer", core, shared, core.library "arithmetic")
    make(s, p, families, defaults, where)
  end
  params[step] = own
  return step
end

return { makers = makers, params = params }
